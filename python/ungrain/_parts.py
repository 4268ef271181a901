"""Images and volumes that are denoised in parts: the meaning of their axes, decisions for a whole one, and the work on a
part."""

from __future__ import annotations

import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from . import _core
from ._arrays import CONVERTED, NATIVE, adopt, host_array, unsupported, white_level
from ._denoise import Axis, Denoiser, check_options, stack_axes, whole_number
from ._errors import InvalidArgument
from ._gpus import own_gpu


@dataclass(frozen=True)
class Axes:
    """The axes of an array that is an image, a volume, or a stack of them."""

    stack: tuple[int, ...]
    sides: tuple[int, ...]  # y and x; of volumes z, y and x
    channel: int | None

    @classmethod
    def of(cls, dimensions: int, axis: Axis, channel_axis: int | None, sides: int = 2) -> Axes:
        """Of images with channels these are last unless channel_axis says otherwise; volumes have none unless it does."""
        def from_front(given: int, name: str) -> int:
            given = whole_number(name, given, -2**31, 2**31 - 1)
            if not -dimensions <= given < dimensions:
                raise InvalidArgument(f"{name} takes an axis of the array, which has {dimensions}, got {given}")
            return given % dimensions
        stack = tuple(from_front(given, "axis") for given in stack_axes(axis))
        left = [each for each in range(dimensions) if each not in stack]
        channel = None
        if len(left) == 3 if sides == 2 else channel_axis is not None:
            channel = from_front(-1 if channel_axis is None else channel_axis, "channel_axis")
            if channel not in left:
                raise InvalidArgument(f"channel_axis and axis both name axis {channel_axis}")
            left.remove(channel)
        if len(left) != sides or len(set(stack)) != len(stack):
            kind = ("image: height x width, or height x width x channels" if sides == 2 else
                    "volume: depth x height x width, and channel_axis= names a fourth axis")
            raise InvalidArgument(f"an array of {dimensions} axes, {len(stack)} of them stacked, is no {kind}; axis= names the "
                                  "axes of a stack")
        return cls(tuple(sorted(stack)), tuple(left), channel)

    def image_axes(self) -> list[int]:
        return sorted([*self.sides] + ([] if self.channel is None else [self.channel]))

    def image_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape[each] for each in self.image_axes())

    def image_channel_axis(self) -> int | None:
        return None if self.channel is None else self.image_axes().index(self.channel)

    def stack_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape[each] for each in self.stack)


@dataclass(frozen=True)
class Work(ABC):
    """How every part of images or volumes of one shape and type is denoised. Sent to the workers."""

    method: str
    parameters: dict[str, Any]  # where `resolved`, with everything measured and derived
    shape: tuple[int, ...]      # of one whole image or volume
    dtype: str
    channel_axis: int | None    # of one of them
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
                raise InvalidArgument(f"{name} is an image; in parts one value for all pixels is taken")

    def needs_sample(self) -> bool:
        return not self.resolved and _core.needs_image(self.method, self.preset, self.parameters)

    @abstractmethod
    def sampled(self) -> list[list[int] | None]:
        """The places along each side that the noise estimate uses; none: all."""

    def resolve(self: AnyWork, sample: Any = None) -> AnyWork:
        """With every parameter's value; `sample` has the sampled places, where needs_sample()."""
        if self.resolved:
            return self
        if sample is not None:
            sample = host_array(sample)[0]
        values = {name: value for name, value in self._resolved_values(sample).items() if value is not None}
        return replace(self, parameters=values, preset=None, resolved=True)

    @abstractmethod
    def _resolved_values(self, sample: Any) -> dict[str, Any]:
        ...

    @abstractmethod
    def reach(self) -> tuple[int, ...]:
        """The pixels that a part needs around it along each side."""

    @abstractmethod
    def denoise_part(self, part: Any, at: Sequence[int], out_at: Sequence[int], out_shape: Sequence[int]) -> Any:
        """The pixels [out_at, out_at + out_shape) along the sides, from `part`, whose first pixel is at `at`."""

    @property
    def native(self) -> str:
        return CONVERTED.get(self.dtype, (self.dtype,))[0]

    def key(self) -> str:
        return repr(self)


AnyWork = TypeVar("AnyWork", bound=Work)


@dataclass(frozen=True)
class ImageWork(Work):
    @property
    def _channel_axis(self) -> int:
        return -1 if self.channel_axis is None else self.channel_axis

    def sampled(self) -> list[list[int] | None]:
        return list(_core.sampled(list(self.shape), self.native, self._channel_axis, self.channels))

    def _resolved_values(self, sample: Any) -> dict[str, Any]:
        return _core.resolve(self.method, self.preset, self.parameters, list(self.shape), self.native, self._channel_axis,
                             self.channels, white_level(self.dtype, self.range), sample)

    def denoiser(self, device: str | None = None) -> Denoiser:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the white level: once, not for every part
            return Denoiser(self.method, shape=self.shape, dtype=self.dtype, device=device or self.device,
                            preset=self.preset, channel_axis=self._channel_axis, channels=self.channels, range=self.range,
                            nonfinite=self.nonfinite, threads=self.threads, memory=self.memory,
                            **{"sigma": "auto", **self.parameters})

    def reach(self) -> tuple[int, int]:
        """The whole image's rows and columns where a part needs all of it."""
        axes = [each for each in range(len(self.shape)) if len(self.shape) == 2 or each != self._channel_axis % 3]
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

    def denoise_part(self, part: Any, at: Sequence[int], out_at: Sequence[int], out_shape: Sequence[int]) -> Any:
        with _borrowed(self, part) as denoiser:
            return denoiser.region(part, at=(at[0], at[1]), out_at=(out_at[0], out_at[1]), out_shape=(out_shape[0], out_shape[1]))


_reaches: dict[str, tuple[tuple[int, int], bool]] = {}
_idle: dict[tuple[str, str], list[Denoiser]] = {}
_idle_lock = threading.Lock()


def check_each_by_itself(work: Work, axes: Axes) -> None:
    """The images of a stack go to different workers: refuses a method that looks along it."""
    if axes.stack and isinstance(work, ImageWork) and work.looks_along_stacks():
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
def _borrowed(work: ImageWork, part: Any) -> Iterator[Denoiser]:
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


def denoise_parts(works: Sequence[Work], axes: Axes, block: Any, at: Sequence[int], out_at: Sequence[int],
                  out_shape: Sequence[int]) -> Any:
    """Every image or volume in a block of a stack; `works` has one for all of them, or one for each."""
    if not axes.stack:
        return works[0].denoise_part(block, at, out_at, out_shape)
    library, block = adopt(block)
    kept: list[Any] = [slice(None)] * block.ndim
    for side, size in zip(axes.sides, out_shape):
        kept[side] = slice(size)
    result = library.empty_like(block[tuple(kept)])
    for number, index in enumerate(np.ndindex(*axes.stack_shape(block.shape))):
        place: list[Any] = [slice(None)] * block.ndim
        for each, value in zip(axes.stack, index):
            place[each] = value
        work = works[number if len(works) > 1 else 0]
        result[tuple(place)] = work.denoise_part(block[tuple(place)], at, out_at, out_shape)
    return result
