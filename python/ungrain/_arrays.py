"""Arrays of NumPy, CuPy and PyTorch, and of whatever else speaks DLPack: where they lie, what they become.

The compiled module reads and writes uint8, uint16, float16 and float32 samples in place, through DLPack. float64 and
int16, and samples of the other byte order, are converted on the way in and back on the way out.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ._errors import InvalidArgument, InvalidType, shown

NATIVE = {np.dtype(name): name for name in ("uint8", "uint16", "float16", "float32")}
# The types that others are converted to, and the white level to use where none is given.
CONVERTED = {"float64": ("float32", 1.0), "int16": ("float32", 32767.0)}
_INT16 = (-32768, 32767)
_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_CUDA_HOST, _DLPACK_CUDA_MANAGED = 1, 2, 3, 13


def unsupported(name: str, dtype: object) -> InvalidType:
    return InvalidType(f"{name} takes uint8, uint16, float16 or float32 (float64 and int16 are converted), got {dtype}")


def white_level(dtype: str, given: float | None) -> float:
    """The white level to pass to the library; 0: the type's own."""
    if given is not None:
        try:
            white = float(given)
        except (TypeError, ValueError):
            raise InvalidType(f"range takes a positive number, got {shown(given)}") from None
        except OverflowError:
            white = 0.0
        if not white > 0:
            raise InvalidArgument(f"range takes a positive number, got {shown(given)}")
        return white
    return CONVERTED[dtype][1] if dtype in CONVERTED else 0.0


_PILLOW_ALPHA = {"LA": "gray-alpha", "RGBA": "rgba"}
# Modes whose numbers are not, or not alone, the brightness of gray or of colours: what they are, and what to do
# instead.
_PILLOW_REFUSED = {
    "1": ("black and white", 'convert("L")'),
    "P": ("places in a palette", 'convert("RGB")'),
    "PA": ("places in a palette", 'convert("RGBA")'),
    "La": ("multiplied by alpha", 'convert("LA")'),
    "RGBa": ("multiplied by alpha", 'convert("RGBA")'),
    "RGBX": ("colours and an unused channel", 'convert("RGB")'),
    "YCbCr": ("luma and chroma", 'convert("RGB")'),
    "HSV": ("hue, saturation and value", 'convert("RGB")'),
    "LAB": ("CIE Lab", "PIL.ImageCms converts it to RGB"),
    "I": ("32-bit integers", 'numpy.asarray(image).astype("uint16") holds those of 16 bits'),
}


def _pillow_mode(image: Any) -> str | None:
    """The mode of a Pillow image, without importing Pillow; else None."""
    pillow = sys.modules.get("PIL.Image")
    return image.mode if pillow is not None and isinstance(image, pillow.Image) else None


def _check_pillow(image: Any, name: str) -> None:
    mode = _pillow_mode(image)
    if mode in _PILLOW_REFUSED:
        what, instead = _PILLOW_REFUSED[mode]
        raise InvalidType(f'{name} is a Pillow image of mode "{mode}" ({what}); {instead}'
                          + (" makes one that can be worked on" if instead.startswith("convert") else ""))


def channels_of(image: Any, channels: str) -> str:
    """Resolves "auto": an array cannot say that its last channel is alpha, a Pillow image does."""
    return _PILLOW_ALPHA.get(_pillow_mode(image) or "", channels) if isinstance(channels, str) and channels == "auto" else channels


class NumPyArrays:
    """Arrays in the host's memory."""

    @staticmethod
    def adopt(image: Any, name: str) -> Any:
        if isinstance(image, np.ndarray):
            return image
        _check_pillow(image, name)
        if hasattr(image, "__array_interface__") or hasattr(image, "__array__"):  # a PIL image, for one
            return np.asarray(image)
        if hasattr(image, "__dlpack__"):
            return np.from_dlpack(image)
        raise InvalidType(f"{name} takes an array (NumPy, CuPy, PyTorch, or any that speaks DLPack), "
                          f"got {type(image).__name__}")

    @staticmethod
    def dtype_name(array: Any) -> str:
        return NATIVE.get(array.dtype) or array.dtype.name

    @staticmethod
    def usable(array: Any) -> bool:
        """Whether the library can read and write it in place."""
        dtype = array.dtype
        if dtype not in NATIVE or not array.flags.aligned:
            return False
        size = dtype.itemsize
        for stride in array.strides:  # of a field of records, any number of bytes
            if stride % size:
                return False
        return True

    @classmethod
    def readable(cls, array: Any, name: str) -> Any:
        """The array itself where the library can work on it, else a copy."""
        if cls.usable(array):
            return array
        wanted = array.dtype.newbyteorder("=")
        if wanted not in NATIVE:
            if wanted.name not in CONVERTED:
                raise unsupported(name, array.dtype)
            wanted = np.dtype(CONVERTED[wanted.name][0])
        return array.astype(wanted)

    @staticmethod
    def strides(array: Any) -> tuple[int, ...]:
        return array.strides

    @staticmethod
    def packed(array: Any, order: list[int]) -> Any:
        """A copy without gaps whose memory has the axes in this order, the last one the densest."""
        return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order).tolist())

    @staticmethod
    def empty_like(array: Any) -> Any:
        return np.empty_like(array, subok=False)

    @staticmethod
    def store(result: Any, out: Any) -> None:
        if out.dtype.kind == "i":
            result = np.clip(np.rint(result), *_INT16)
        np.copyto(out, result, casting="unsafe")

    @staticmethod
    def exported(array: Any) -> Any:
        return array

    @staticmethod
    def to_host(array: Any) -> Any:
        return array

    @staticmethod
    def from_host(array: Any, like: Any) -> Any:
        return array

    @staticmethod
    def device(array: Any) -> str | None:
        return None

    @staticmethod
    def current_stream(array: Any) -> int:
        return 0

    @staticmethod
    def on_stream(array: Any, stream: Any) -> AbstractContextManager[Any]:
        """A context in which the stream is the library's current one."""
        return nullcontext()


class CuPyArrays(NumPyArrays):
    """Arrays in a GPU's memory."""

    @staticmethod
    def adopt(image: Any, name: str) -> Any:
        return image

    @staticmethod
    def usable(array: Any) -> bool:
        return array.dtype in NATIVE

    @classmethod
    def readable(cls, array: Any, name: str) -> Any:
        if cls.usable(array):
            return array
        if array.dtype.name not in CONVERTED:
            raise unsupported(name, array.dtype)
        with array.device:
            return array.astype(CONVERTED[array.dtype.name][0])

    @staticmethod
    def packed(array: Any, order: list[int]) -> Any:
        import cupy
        with array.device:
            return cupy.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order).tolist())

    @staticmethod
    def empty_like(array: Any) -> Any:
        import cupy
        with array.device:
            return cupy.empty_like(array)

    @staticmethod
    def store(result: Any, out: Any) -> None:
        import cupy
        with out.device:
            out[...] = cupy.clip(cupy.rint(result), *_INT16) if out.dtype.kind == "i" else result

    @staticmethod
    def exported(array: Any) -> Any:
        return array.__dlpack__(stream=-1)  # the work is put on the caller's stream: nothing to wait for

    @staticmethod
    def to_host(array: Any) -> Any:
        import cupy
        with array.device:
            return cupy.asnumpy(array)

    @staticmethod
    def from_host(array: Any, like: Any) -> Any:
        import cupy
        with like.device:
            return cupy.asarray(array)

    @staticmethod
    def device(array: Any) -> str | None:
        return f"cuda:{array.device.id}"

    @staticmethod
    def current_stream(array: Any) -> int:
        import cupy
        with array.device:
            return cupy.cuda.get_current_stream().ptr

    @staticmethod
    def on_stream(array: Any, stream: Any) -> AbstractContextManager[Any]:
        import cupy
        return cupy.cuda.ExternalStream(stream_handle(stream), array.device.id)


class TorchArrays(NumPyArrays):
    """Tensors on the host or on a GPU."""

    @staticmethod
    def adopt(image: Any, name: str) -> Any:
        if image.device.type not in ("cpu", "cuda"):
            raise InvalidType(f"{name} lies on {image.device}; tensors on the CPU and on NVIDIA GPUs can be worked on")
        if image.requires_grad:
            image = image.detach()
        if image.is_neg():  # a view whose memory holds the negatives, which DLPack does not tell
            if name == "out":
                raise InvalidArgument("out is a negated view: it cannot be written to")
            image = image.resolve_neg()
        import torch
        return image if type(image) is torch.Tensor else image.as_subclass(torch.Tensor)

    @staticmethod
    def dtype_name(array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    @staticmethod
    def usable(array: Any) -> bool:
        return TorchArrays.dtype_name(array) in NATIVE.values()

    @classmethod
    def readable(cls, array: Any, name: str) -> Any:
        if cls.usable(array):
            return array
        if TorchArrays.dtype_name(array) not in CONVERTED:
            raise unsupported(name, array.dtype)
        return array.float()

    @staticmethod
    def strides(array: Any) -> tuple[int, ...]:
        return array.stride()

    @staticmethod
    def packed(array: Any, order: list[int]) -> Any:
        return array.permute(order).contiguous().permute(np.argsort(order).tolist())

    @staticmethod
    def empty_like(array: Any) -> Any:
        import torch
        return torch.empty_like(array)

    @staticmethod
    def store(result: Any, out: Any) -> None:
        # Not asked for bytes: on a GPU PyTorch refuses limits that the type cannot hold.
        to_integers = result.is_floating_point() and not out.is_floating_point()
        out.copy_(result.round().clamp_(*_INT16) if to_integers else result)

    @staticmethod
    def exported(array: Any) -> Any:
        return array.__dlpack__(stream=-1) if array.is_cuda else array

    @staticmethod
    def to_host(array: Any) -> Any:
        return array.cpu().numpy()

    @staticmethod
    def from_host(array: Any, like: Any) -> Any:
        import torch
        return torch.from_numpy(array).to(like.device)

    @staticmethod
    def device(array: Any) -> str | None:
        return f"cuda:{array.device.index}" if array.is_cuda else None

    @staticmethod
    def current_stream(array: Any) -> int:
        if not array.is_cuda:
            return 0
        import torch
        return torch.cuda.current_stream(array.device).cuda_stream

    @staticmethod
    def on_stream(array: Any, stream: Any) -> AbstractContextManager[Any]:
        if not array.is_cuda:
            return nullcontext()
        import torch
        handle = stream_handle(stream)
        return torch.cuda.stream(torch.cuda.ExternalStream(handle, array.device) if handle
                                 else torch.cuda.default_stream(array.device))


def stream_handle(stream: Any) -> int:
    """The handle of a number (a cudaStream_t) or of any library's stream object."""
    if isinstance(stream, int):
        return stream
    for attribute in ("ptr", "cuda_stream"):  # CuPy's, PyTorch's
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    raise InvalidType(f"stream takes a cudaStream_t as a number, or a stream of CuPy or PyTorch, got {type(stream).__name__}")


def _gpu_array_of_another_library(image: Any, name: str) -> tuple[Any, Any]:
    """A loaded library views it without a copy, and the result is an array of that library."""
    if "torch" in sys.modules and "cupy" not in sys.modules:
        import torch
        return TorchArrays, torch.from_dlpack(image)
    try:
        import cupy
    except ImportError:
        raise InvalidType(f"{name} is a GPU array of {type(image).__module__}: "
                          "its result needs CuPy or PyTorch, neither is there") from None
    return CuPyArrays, cupy.from_dlpack(image)


def adopt(image: Any, name: str = "image") -> tuple[Any, Any]:
    """(the library it belongs to, the array)"""
    if type(image) is np.ndarray:
        return NumPyArrays, image
    module = type(image).__module__
    if module == "cupy" or module.startswith("cupy."):
        return CuPyArrays, CuPyArrays.adopt(image, name)
    tensor = getattr(sys.modules.get("torch"), "Tensor", ())
    if isinstance(image, tensor):  # or of a class made from it, torchvision's for one
        return TorchArrays, TorchArrays.adopt(image, name)
    if not isinstance(image, np.ndarray) and hasattr(image, "__dlpack_device__"):
        kind = int(image.__dlpack_device__()[0])
        if kind in (_DLPACK_CUDA, _DLPACK_CUDA_MANAGED):
            return _gpu_array_of_another_library(image, name)
        if kind in (_DLPACK_CPU, _DLPACK_CUDA_HOST):
            return NumPyArrays, np.from_dlpack(image)
    return NumPyArrays, NumPyArrays.adopt(image, name)


def host_array(image: Any, name: str = "image") -> tuple[Any, str]:
    """The samples in host memory as the library reads them, and the name of their original type."""
    library, image = adopt(image, name)
    dtype = library.dtype_name(image)
    if dtype not in NATIVE.values() and dtype not in CONVERTED:
        raise unsupported(name, image.dtype)
    return NumPyArrays.readable(library.to_host(image), name), dtype
