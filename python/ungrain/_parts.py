"""Images that are denoised in parts: the meaning of their axes, decisions for a whole image, and the work on a part."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _core
from ._arrays import CONVERTED, NATIVE, adopt, host_array, unsupported, white_level
from ._denoise import Axis, Denoiser, check_options, stack_axes, whole_number
from ._errors import InvalidArgument
from ._gpus import own_gpu


@dataclass(frozen=True)
class Axes:
    """The axes of an array that is an image or a stack of images."""

    stack: tuple[int, ...]
    y: int
    x: int
    channel: int | None

    @classmethod
    def of(cls, dimensions: int, axis: Axis, channel_axis: int) -> Axes:
        def from_front(given: int, name: str) -> int:
            given = whole_number(name, given, -2**31, 2**31 - 1)
            if not -dimensions <= given < dimensions:
                raise InvalidArgument(f"{name} takes an axis of the array, which has {dimensions}, got {given}")
            return given % dimensions
        stack = tuple(from_front(given, "axis") for given in stack_axes(axis))
        left = [each for each in range(dimensions) if each not in stack]
        channel = None
        if len(left) == 3:
            channel = from_front(channel_axis, "channel_axis")
            if channel not in left:
                raise InvalidArgument(f"channel_axis and axis both name axis {channel_axis}")
            left.remove(channel)
        if len(left) != 2 or len(set(stack)) != len(stack):
            raise InvalidArgument(f"an array of {dimensions} axes, {len(stack)} of them stacked, is no image: height x "
                                  "width, or height x width x channels; axis= names the axes of a stack")
        return cls(tuple(sorted(stack)), left[0], left[1], channel)

    def image_axes(self) -> list[int]:
        return sorted([self.y, self.x] + ([] if self.channel is None else [self.channel]))

    def image_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape[each] for each in self.image_axes())

    def image_channel_axis(self) -> int:
        return -1 if self.channel is None else self.image_axes().index(self.channel)

    def stack_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape[each] for each in self.stack)


@dataclass(frozen=True)
class Work:
    """How every part of images of one shape and type is denoised. Sent to the workers."""

    method: str
    parameters: dict[str, Any]  # where `resolved`, with everything measured and derived
    shape: tuple[int, ...]      # of one whole image
    dtype: str
    channel_axis: int           # of one image
    channels: str = "auto"
    range: float | None = None
    preset: str | None = None
    device: str = "auto"
    nonfinite: str = "fill"
    threads: int = 1
    memory: int = 0
    resolved: bool = False

    def __post_init__(self) -> None:
        check_options(method=self.method, device=self.device, preset=self.preset, channels=self.channels,
                      nonfinite=self.nonfinite, threads=self.threads, memory=self.memory)
        if self.dtype not in NATIVE.values() and self.dtype not in CONVERTED:
            raise unsupported("array", self.dtype)
        for name, value in self.parameters.items():
            if value is not None and np.ndim(value) >= 2:
                raise InvalidArgument(f"{name} is an image; images in parts take one value for all pixels")

    @property
    def _native(self) -> str:
        return CONVERTED.get(self.dtype, (self.dtype,))[0]

    def needs_image(self) -> bool:
        return not self.resolved and _core.needs_image(self.method, self.preset, self.parameters)

    def sampled(self) -> tuple[list[int], list[int]]:
        """The rows and columns that the noise estimate uses."""
        rows, columns = _core.sampled(list(self.shape), self._native, self.channel_axis, self.channels)
        return rows, columns

    def resolve(self, sample: Any = None) -> Work:
        """With every parameter's value; `sample` has the sampled rows and columns, where needs_image()."""
        if self.resolved:
            return self
        if sample is not None:
            sample = host_array(sample)[0]
        found = _core.resolve(self.method, self.preset, self.parameters, list(self.shape), self._native, self.channel_axis,
                              self.channels, white_level(self.dtype, self.range), sample)
        values = {name: value for name, value in found.items() if value is not None}
        return replace(self, parameters=values, preset=None, resolved=True)

    def denoiser(self, device: str | None = None) -> Denoiser:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the white level: once, not for every part
            return Denoiser(self.method, shape=self.shape, dtype=self.dtype, device=device or self.device,
                            preset=self.preset, channel_axis=self.channel_axis, channels=self.channels, range=self.range,
                            nonfinite=self.nonfinite, threads=self.threads, memory=self.memory,
                            **{"sigma": "auto", **self.parameters})

    def reach(self) -> tuple[int, int]:
        """Rows and columns that a part needs around it; the whole image's where it needs all of it."""
        axes = [each for each in range(len(self.shape)) if len(self.shape) == 2 or each != self.channel_axis % 3]
        height, width = (self.shape[each] for each in axes)
        if self.parameters.get("border") == "wrap":  # beyond one edge lies the other
            return height, width
        return self._reaches()[0]

    def looks_along_stacks(self) -> bool:
        return self._reaches()[1]

    def _reaches(self) -> tuple[tuple[int, int], bool]:
        key = self.key()
        if key not in _reaches:
            if len(_reaches) > 1000:
                _reaches.clear()
            # Every device has the same reach; the parts are planned where there may be no GPU.
            denoiser = self.denoiser("cpu")
            _reaches[key] = denoiser.reach, denoiser._core.looks_along_stacks()
        return _reaches[key]

    def key(self) -> str:
        return repr(self)


_reaches: dict[str, tuple[tuple[int, int], bool]] = {}
_idle: dict[tuple[str, str], list[Denoiser]] = {}
_idle_lock = threading.Lock()


def check_each_by_itself(work: Work, axes: Axes) -> None:
    """The images of a stack go to different workers: refuses a method that looks along it."""
    if axes.stack and work.looks_along_stacks():
        raise InvalidArgument(f"{work.method} looks along the stack with these parameters, and in parts each image is denoised by "
                              "itself; ungrain.denoise takes a stack as a whole")


def chosen_device(method: str, device: str, part: Any) -> str:
    """A worker's own GPU, where it has one and "auto" was asked for. GPU arrays are denoised on their GPU."""
    if not isinstance(part, np.ndarray) and hasattr(part, "device") and hasattr(part.device, "id"):
        return f"cuda:{part.device.id}" if device == "auto" else device
    if device not in ("auto", "cuda"):
        return device
    infos = [*_core.methods(), *_core.volume_methods()]
    on_gpu = any(info["name"] == method and "cuda" in info["backends"] for info in infos)
    gpu = own_gpu() if on_gpu or device == "cuda" else None
    return gpu or device


@contextmanager
def _borrowed(work: Work, part: Any) -> Iterator[Denoiser]:
    """A Denoiser for this thread alone; those of the last kind of work are kept for the next part."""
    key = work.key(), chosen_device(work.method, work.device, part)
    with _idle_lock:
        kept = _idle.get(key, [])
        denoiser = kept.pop() if kept else None
    denoiser = denoiser or work.denoiser(key[1])
    yield denoiser
    with _idle_lock:
        if key not in _idle:
            _idle.clear()
        _idle.setdefault(key, []).append(denoiser)


def denoise_part(work: Work, part: Any, at: tuple[int, int], out_at: tuple[int, int], out_shape: tuple[int, int]) -> Any:
    """Rows and columns [out_at, out_at + out_shape) of one image, from `part`, whose first pixel is at `at`."""
    with _borrowed(work, part) as denoiser:
        return denoiser.region(part, at=at, out_at=out_at, out_shape=out_shape)


def denoise_parts(works: Sequence[Work], axes: Axes, block: Any, at: tuple[int, int], out_at: tuple[int, int],
                  out_shape: tuple[int, int]) -> Any:
    """The same for every image in a block of a stack; `works` has one for all of them, or one for each."""
    if not axes.stack:
        return denoise_part(works[0], block, at, out_at, out_shape)
    library, block = adopt(block)
    kept: list[Any] = [slice(None)] * block.ndim
    kept[axes.y], kept[axes.x] = slice(out_shape[0]), slice(out_shape[1])
    result = library.empty_like(block[tuple(kept)])
    for number, index in enumerate(np.ndindex(*axes.stack_shape(block.shape))):
        place: list[Any] = [slice(None)] * block.ndim
        for each, value in zip(axes.stack, index):
            place[each] = value
        result[tuple(place)] = denoise_part(works[number if len(works) > 1 else 0], block[tuple(place)], at, out_at, out_shape)
    return result
