"""denoise() and Denoiser: an array in, an array of the same library, type and layout out."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from . import _core
from ._arrays import CONVERTED, NATIVE, NumPyArrays, adopt, channels_of, unsupported, white_level
from ._errors import InvalidArgument, InvalidType, shown
from ._noise_model import NoiseModel

Array = TypeVar("Array")
Axis = int | Sequence[int] | None
Progress = Callable[[float], bool | None] | None


_WORDS = ("method", "device", "channels", "nonfinite", "kind")
_NUMBERS = {"channel_axis": (-2**31, 2**31 - 1), "threads": (-2**31, 2**31 - 1), "memory": (0, 2**64 - 1), "seed": (0, 2**64 - 1)}


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except (TypeError, ValueError):
        return False
    return True


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    if not _is_whole(value):
        raise InvalidType(f"{name} takes a whole number, got {shown(value)}") from None
    number = operator.index(value)
    if not least <= number <= most:
        limit = "2**64 - 1" if most == 2**64 - 1 else most
        raise InvalidArgument(f"{name} takes a whole number from {least} to {limit}, got {shown(value)}") from None
    return number


def _whole_numbers(values: Any) -> list[int]:
    """Raises TypeError where a value is not a whole number."""
    try:
        return [operator.index(each) for each in values]
    except ValueError as error:
        raise TypeError(str(error)) from None


def true_or_false(name: str, value: Any) -> bool:
    try:
        return bool(value)
    except (TypeError, ValueError):  # an array of several
        raise InvalidType(f"{name} takes True or False, got {shown(value)}") from None


def stack_axes(axis: Axis) -> list[int]:
    if axis is None:
        return []
    try:
        axes = _whole_numbers([axis] if _is_whole(axis) else axis)
    except TypeError:
        raise InvalidType(f"axis takes a whole number, or several, got {shown(axis)}") from None
    for each in axes:
        whole_number("axis", each, -2**31, 2**31 - 1)
    return axes


def _sides(shape: Any) -> list[int]:
    try:
        sides = _whole_numbers(shape)
    except TypeError:
        raise InvalidType(f"shape takes whole numbers of pixels, got {shown(shape)}") from None
    if min(sides, default=0) < 0 or max(sides, default=0) >= 2**63:
        raise InvalidArgument(f"shape takes whole numbers of pixels, got {shown(shape)}")
    return sides


def _row_and_column(name: str, value: Any) -> tuple[int, int]:
    try:
        row, column = _whole_numbers(value)
    except (TypeError, ValueError):
        raise InvalidType(f"{name} takes two whole numbers, of rows and columns, got {shown(value)}") from None
    return whole_number(name, row, -2**31, 2**31 - 1), whole_number(name, column, -2**31, 2**31 - 1)


def check_options(**options: Any) -> None:
    """Names the option whose type the compiled module refused; called only then, so that no other call pays."""
    for name, value in options.items():
        if name in _WORDS or (name == "preset" and value is not None):
            if not isinstance(value, str):
                raise InvalidType(f"{name} takes a string, got {shown(value)}") from None
        elif name in _NUMBERS:
            whole_number(name, value, *_NUMBERS[name])
        elif name == "amount" and not isinstance(value, float):
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                raise InvalidType(f"amount takes a number, got {shown(value)}") from None
        elif name == "progress" and value is not None and not callable(value):
            raise InvalidType(f"progress takes a function, got {shown(value)}") from None


def output_for(library: Any, image: Any, out: Any) -> Any:
    """The caller's array, or a new one with the image's type and layout."""
    if out is None:
        return library.empty_like(image)
    belongs, out = adopt(out, "out")
    if belongs is not library:
        raise InvalidType("out is an array of another library than the image")
    if library.dtype_name(out) != library.dtype_name(image):
        raise InvalidType(f"out has dtype {library.dtype_name(out)}, the image {library.dtype_name(image)}")
    if tuple(out.shape) != tuple(image.shape):
        raise InvalidArgument(f"out has another shape than the image: {tuple(out.shape)}, not {tuple(image.shape)}")
    if any(stride == 0 and size > 1 for stride, size in zip(library.strides(out), out.shape)):
        raise InvalidArgument("out has pixels that share their memory, as broadcasting makes them")
    if library is NumPyArrays and not out.flags.writeable:
        raise InvalidArgument("out cannot be written to")
    return out


def target_for(library: Any, out: Any, work: Any) -> Any:
    """Memory that the library can write: `out` itself, or memory laid out like its input."""
    return out if library.usable(out) else library.empty_like(work)


_WHITE = {"uint8": 255.0, "uint16": 65535.0, "int16": 32767.0}


def _check_white(noise_level: float, dtype: str, range: float | None) -> None:
    """Warns of floats beyond 0 to 1 without a given range: strengths that follow the noise would be far off."""
    white = _WHITE.get(dtype, 1.0)
    if range is not None or noise_level == 0:
        return
    far = "more than half" if noise_level > white / 2 else "less than a 1e-9 part" if noise_level < 1e-9 * white else None
    if far:
        frame, level = sys._getframe(), 1  # the caller's line, outside of this package
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ungrain."):
            frame, level = frame.f_back, level + 1
        warnings.warn(f"the noise's sigma, {noise_level:.4g}, is {far} of white, which is taken to be {white:g} for "
                      f"{dtype}; say range= if it is not", stacklevel=level)


def _worked_on(library: Any, image: Any, out: Any, stream: Any, run: Callable[[Any, Any, int], Any]) -> tuple[Any, Any]:
    """The result's array, and what `run` returned. `run` gets the input, the output and the stream."""
    if stream is not None:
        with library.on_stream(image, stream):
            return _worked_on(library, image, out, None, run)
    work = library.readable(image, "image")
    result = output_for(library, image, out)
    target = target_for(library, result, work)
    returned = run(work, target, library.current_stream(image))
    if target is not result:
        library.store(target, result)
    return result if out is None else out, returned


def _through_the_host(library: Any, work: Any, target: Any, run: Callable[[Any, Any], Any]) -> Any:
    """What `run` returned; it is given copies in the host's memory."""
    host = library.to_host(work)
    result = np.empty_like(host)
    returned = run(host, result)
    library.store(library.from_host(result, work), target)
    return returned


def _with_sigma(sigma: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    if not (isinstance(sigma, str) and sigma == "auto"):
        parameters["sigma"] = sigma
    if hasattr(parameters.get("sigma_map"), "__dlpack_device__"):  # of any library, on any device
        library, levels = adopt(parameters["sigma_map"], "sigma_map")
        parameters["sigma_map"] = library.to_host(levels)
    return parameters


def _with_noise(parameters: dict[str, Any], noise_model: Any, strength: float, luminance: float, chroma: float,
                keep_grain: float, clipping: str) -> dict[str, Any]:
    """Only values that differ from the default: most calls have none."""
    if noise_model is not None:
        parameters["noise_model"] = noise_model
    for name, value in (("strength", strength), ("luminance", luminance), ("chroma", chroma)):
        if not (isinstance(value, (int, float)) and value == 1):
            parameters[name] = value
    if not (isinstance(keep_grain, (int, float)) and keep_grain == 0):
        parameters["keep_grain"] = keep_grain
    if not (isinstance(clipping, str) and clipping == "auto"):
        parameters["clipping"] = clipping
    return parameters


def denoise(image: Array, method: str = "bm3d", *, sigma: float | Sequence[float] | str = "auto", device: str = "auto",
            preset: str | None = None, axis: Axis = None, channel_axis: int = -1, channels: str = "auto",
            range: float | None = None, nonfinite: str = "fill", threads: int = 0, memory: int = 0,
            noise_model: NoiseModel | None = None, strength: float = 1, luminance: float = 1, chroma: float = 1,
            keep_grain: float = 0, clipping: str = "auto", out: Array | None = None, stream: Any = None,
            progress: Progress = None, **parameters: Any) -> Array:
    """Denoise an image, or a stack of images, with any method.

    Parameters
    ----------
    image : array
        Height x width, or height x width x channels, of uint8, uint16, float16 or float32; NumPy, CuPy, PyTorch, or any
        array that speaks DLPack. Any strides. float64 is filtered as float32, int16 as float32 with white at 32767,
        and other byte orders are swapped; the result has the image's type. Nothing else is copied.
    method : str
        One of ``ungrain.methods()``.
    sigma : float, sequence or "auto"
        The noise's standard deviation in pixel values, from which the other strengths follow. "auto": measured, for
        each image of a stack by itself; where it differs by level or frequency a noise model is measured instead, and
        a cut of the noise at black or white is undone.
    device : str
        "auto" (a GPU or the CPU, whichever is done sooner; a GPU array's own GPU), "cpu", "cuda", "cuda:N", "cuda:all" or
        "reference". A device that was asked for is used or is an error.
    preset : str, optional
        Values of several parameters under one name; given values override them.
    axis : int or sequence of int, optional
        Axes along which images are stacked; each is denoised by itself. Methods that look along a stack (``radius_t`` of
        nlm, nlm-bilateral, bilateral and median, ``radius_z`` of box, ``sigma_z`` of gaussian) look along the last axis that is named, with the noise of its first image where
        noise is measured; a stack on a GPU is copied to the host and back for them.
    channel_axis : int
        Where the channels are, if there are three axes besides ``axis``.
    channels : str
        "gray", "rgb", "rgba" and "gray-alpha" (alpha is carried through), "multi" (1 to 4 independent channels), or
        "auto": 1 channel is gray, 3 are rgb, 2 and 4 are multi.
    range : float, optional
        White level in pixel values: 255 for uint8, 65535 for uint16 and 1 for float unless given. The strengths that
        follow the noise are relative to it: say ``range=4095`` for 12 bits, or ``range=image.max()`` for floats that do
        not go from 0 to 1.
    nonfinite : str
        NaN and infinity: "fill" (from the pixels around), "keep" (the same, and put back), or "error".
    threads : int
        0: one for each processor.
    memory : int
        Bytes for working buffers; 0: half of what is free.
    noise_model : NoiseModel, optional
        The noise by level and frequency, instead of ``sigma``: of ``ungrain.estimate_noise_model``, or your own.
    strength : float from 0 to 10
        Factor of the noise's deviation, given or measured. Box, gaussian and median mix with the image: 0 to 1.
    luminance, chroma : float from 0 to 10
        Further factors for an rgb image's luminance and colour differences. bm3d and ridge only.
    keep_grain : float from 0 to 1
        The share of the removed noise that is put back.
    clipping : str
        Noise that was cut off at black and white, which shifts means. "auto": found and undone where the noise is
        measured; with ``sigma``, a noise model or another strength given, nothing is measured on the image and the
        result is what the method's definition says. "undo": with every method, and with a ``sigma`` that is given too
        (as the program does by default); where no noise is given it is measured for this. "keep": never.
    out : array, optional
        Where the result goes: an array of the same library, shape and type. ``out=image`` works in place.
    stream : optional
        GPU arrays: a CUDA stream, of CuPy or PyTorch or as a number. By default the one that is current in the array's
        library. The work is put on it, and has been done when the call returns.
    progress : callable, optional
        Called with the fraction done, 0 to 1, now and then. Returning False stops the work: ``ungrain.Cancelled``.
        Its exceptions are passed on. Ctrl-C stops the work with or without it.
    **parameters
        The method's own: ``help(ungrain.bilateral)`` and so on.

    Returns
    -------
    array
        Of the same library, shape, type and memory layout, on the same device.
    """
    channels = channels_of(image, channels)
    library, image = adopt(image)
    dtype = library.dtype_name(image)
    layout = (stack_axes(axis) if axis is not None else [], channel_axis, channels, white_level(dtype, range))
    given = _with_noise(_with_sigma(sigma, parameters), noise_model, strength, luminance, chroma, keep_grain,
                        clipping)

    def run(work: Any, target: Any, handle: int) -> float:
        on, device_ = library.device(image), device
        measured = None
        if on is not None:
            device_ = on if device == "auto" else device
            if _core.needs_image(method, preset, given):
                measured = library.to_host(work)
        level = _core.denoise(library.exported(work), library.exported(target), method, preset, given, *layout, device_,
                              threads, memory, nonfinite, progress, measured, handle)
        if level is not None:
            return level
        return cast(float, _through_the_host(library, work, target, lambda host, result: _core.denoise(
            host, result, method, preset, given, *layout, device_, threads, memory, nonfinite, progress, None, 0)))
    try:
        result, level = _worked_on(library, image, out, stream, run)
    except TypeError:
        check_options(method=method, device=device, preset=preset, channel_axis=channel_axis, channels=channels,
                      nonfinite=nonfinite, threads=threads, memory=memory, progress=progress)
        raise
    _check_white(level, dtype, range)
    return result


@dataclass(frozen=True)
class Report:
    """The report of a run."""

    device: str
    threads: int
    bands: int
    ms: float
    stages_ms: dict[str, float]
    buffer_bytes: int
    nonfinite_pixels: int
    strengths: dict[str, tuple[float, float]]  # in pixel values, and on the 0-255 scale
    device_choice: str = ""  # why this device, where it was left to ungrain


class Denoiser:
    """A method prepared for images of one shape and type: everything is checked, chosen and allocated once.

    ::

        denoiser = ungrain.Denoiser("nlm", like=frames[0])      # the noise is measured on it
        for frame in frames:
            denoiser(frame, out=frame)

    Parameters
    ----------
    method : str
        One of ``ungrain.methods()``.
    like : array, optional
        An example image: its shape, type and device are used, and the noise is measured on it where ``sigma``
        is "auto".
    shape, dtype : optional
        Instead of ``like``. ``sigma``, or the strengths that follow it, must then be given.
    sigma, device, preset, channel_axis, channels, range, nonfinite, threads, memory, **parameters
        As for ``ungrain.denoise``, ``noise_model``, ``strength``, ``luminance``, ``chroma``, ``keep_grain`` and
        ``clipping`` too.

    A Denoiser serves one thread at a time; ``clone()`` makes one for another thread. It can be pickled and sent to
    other processes: there it uses the noise measured here, on the device of the same name. On GPU arrays a call enqueues
    the work on the caller's stream and returns: the result is ready when the stream is, as with any operation of CuPy or
    PyTorch.
    """

    def __init__(self, /, method: str = "bm3d", *, like: Any = None, shape: Sequence[int] | None = None, dtype: Any = None,
                 sigma: float | Sequence[float] | str = "auto", device: str = "auto", preset: str | None = None,
                 channel_axis: int = -1, channels: str = "auto", range: float | None = None, nonfinite: str = "fill",
                 threads: int = 0, memory: int = 0, **parameters: Any) -> None:
        if (like is None) == (shape is None) or (shape is None) != (dtype is None):
            raise InvalidType("Denoiser takes like=, or shape= and dtype=")
        given = _with_sigma(sigma, parameters)
        try:
            sides = None if shape is None else _sides(shape)
            self._make(method, like, sides, dtype, given, device, preset, channel_axis, channels, range, nonfinite, threads, memory)
        except TypeError:
            check_options(method=method, device=device, preset=preset, channel_axis=channel_axis, channels=channels,
                          nonfinite=nonfinite, threads=threads, memory=memory)
            raise
        _check_white(self._core.noise_level(), self._dtype, range)

    def _make(self, method: str, like: Any, shape: Sequence[int] | None, dtype: Any, given: dict[str, Any], device: str,
              preset: str | None, channel_axis: int, channels: str, range: float | None, nonfinite: str, threads: int,
              memory: int) -> None:
        needs_image = _core.needs_image(method, preset, given)
        measured = None
        if like is not None:
            channels = channels_of(like, channels)
            library, like = adopt(like, "like")
            work = library.readable(like, "like")
            shape, self._dtype = tuple(like.shape), library.dtype_name(like)
            on = library.device(like)
            if needs_image:
                measured = NumPyArrays.readable(library.to_host(work), "like")
            if on is not None and device == "auto":
                device = on
        else:
            try:
                self._dtype = np.dtype(str(dtype).removeprefix("torch.") if not isinstance(dtype, type) else dtype).name
            except (TypeError, ValueError, SyntaxError):  # by NumPy, of what it cannot read as a type
                raise unsupported("dtype", dtype if isinstance(dtype, str) else shown(dtype)) from None
            if needs_image:
                if given.get("clipping") == "undo":
                    raise InvalidArgument(f"{method}: clipping='undo' looks at an image; give one with like=")
                raise InvalidArgument(f"{method}: sigma is left to be measured; give it, or an image with like=")
        if self._dtype not in NATIVE.values() and self._dtype not in CONVERTED:
            raise unsupported("dtype", self._dtype)
        self._method = method
        self._layout = (channel_axis, channels)
        self._kept = {"shape": tuple(shape or ()), "range": range, "nonfinite": nonfinite, "threads": threads, "memory": memory}
        self._core = _core.Denoiser(method, preset, given, list(shape or ()),
                                    CONVERTED.get(self._dtype, (self._dtype,))[0], channel_axis, channels,
                                    white_level(self._dtype, range), device, threads, memory, nonfinite, measured)
        levels = given.get("sigma_map")
        self._sigma_map = levels if levels is None else np.ascontiguousarray(levels, np.float32)  # as the module holds it

    def __call__(self, image: Array, *, axis: Axis = None, out: Array | None = None, stream: Any = None,
                 progress: Progress = None) -> Array:
        """Denoise an image of the shape and type that this was made for, or a stack of them (``axis``)."""
        library, image = adopt(image)
        dtype = library.dtype_name(image)
        if dtype != self._dtype:
            raise InvalidType(f"image has dtype {dtype}, this Denoiser was made for {self._dtype}")
        axes = stack_axes(axis) if axis is not None else []

        through_the_host = (axes and library.device(image) is not None and self.device.startswith("cuda")
                            and self._core.looks_along_stacks())

        def run(work: Any, target: Any, handle: int) -> None:
            if through_the_host:
                _through_the_host(library, work, target, lambda host, result: self._core.run(
                    host, result, axes, *self._layout, progress, 0))
            else:
                self._core.run(library.exported(work), library.exported(target), axes, *self._layout, progress, handle)
        try:
            return _worked_on(library, image, out, stream, run)[0]
        except TypeError:
            check_options(progress=progress)
            raise

    def region(self, image: Array, *, at: tuple[int, int], out_at: tuple[int, int], out_shape: tuple[int, int]) -> Array:
        """Denoise a part of a larger image: the same bits as that part of the whole image's result.

        This Denoiser was made for the whole image's shape. ``image`` is a part of it whose first pixel is at the row and
        column ``at``. The result, ``out_shape`` rows and columns from ``out_at`` on, must have ``reach`` pixels around it
        in ``image``, as far as the whole image goes.
        """
        at, out_at, out_shape = (_row_and_column(name, value) for name, value in (("at", at), ("out_at", out_at),
                                                                                  ("out_shape", out_shape)))
        library, pixels = adopt(image)
        work = library.readable(pixels, "image")
        channel_axis, channels = self._layout
        top, left = out_at[0] - at[0], out_at[1] - at[1]
        part: list[Any] = [slice(top, top + out_shape[0]), slice(left, left + out_shape[1])]
        shape = list(out_shape)
        if pixels.ndim == 3:
            part.insert(channel_axis % 3, slice(None))
            shape.insert(channel_axis % 3, pixels.shape[channel_axis % 3])
        if min(top, left) < 0 or list(pixels[tuple(part)].shape) != shape:
            raise InvalidArgument("the part that is wanted lies outside the image that is given")
        result: Any = library.empty_like(pixels[tuple(part)])
        target = target_for(library, result, work[tuple(part)])
        self._core.run_region(library.exported(work), *at, library.exported(target), *out_at, channel_axis, channels,
                              library.current_stream(pixels))
        if target is not result:
            library.store(target, result)
        return cast(Array, result)

    def wait(self) -> None:
        """Wait until the last call's work on a GPU is done; raises its errors."""
        self._core.wait()

    def clone(self) -> Denoiser:
        """Another Denoiser with memory of its own, for another thread."""
        other = object.__new__(Denoiser)
        other._method, other._dtype, other._layout = self._method, self._dtype, self._layout
        other._sigma_map, other._kept = self._sigma_map, self._kept
        other._core = self._core.clone()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles it for another process or machine, with the measured values and the device that "auto" chose, so that
        the bits are the same."""
        given = {name: value for name, value in self.params.items() if value is not None}
        if "sigma_map" in given:
            given["sigma_map"] = self._sigma_map
        channel_axis, channels = self._layout
        return _unpickled, ({**self._kept, "method": self._method, "given": given, "dtype": self._dtype, "device": self.device,
                             "channel_axis": channel_axis, "channels": channels},)

    @property
    def method(self) -> str:
        """One of ``ungrain.methods()``."""
        return self._method

    @property
    def device(self) -> str:
        """The device that the work runs on, also where "auto" chose it."""
        return self._core.device()

    @property
    def params(self) -> dict[str, Any]:
        """Every parameter's value, including the measured and derived ones."""
        return self._core.params()

    @property
    def reach(self) -> tuple[int, int]:
        """How far a pixel's neighbourhood extends: rows, columns."""
        return self._core.reach()

    @property
    def report(self) -> Report:
        """Of the last call's last image, or of all where the method looks along the stack. Of images on a GPU only the
        device is known."""
        return Report(**self._core.report())

    def __repr__(self) -> str:
        return f"<ungrain.Denoiser {self._method} on {self.device}>"


def _unpickled(state: dict[str, Any]) -> Denoiser:
    """Does not repeat the warning about the white level."""
    denoiser = object.__new__(Denoiser)
    denoiser._make(like=None, preset=None, **state)
    return denoiser
