"""Volumes that are denoised in parts along all three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import _core
from ._arrays import CONVERTED, NATIVE, adopt, host_array, unsupported, white_level
from ._denoise import check_options
from ._parts import chosen_device
from ._volume import VolumeAxes

_VOXELS_MEASURED = 64e6  # as the library: of larger volumes the noise is measured on every so many slices
_SIDE_FOR_REACH = 64  # the reach is that of a volume of any size


@dataclass(frozen=True)
class VolumeWork:
    """How every part of a volume is denoised. Sent to the workers."""

    method: str
    parameters: dict[str, Any]  # where `resolved`, with everything measured and derived
    shape: tuple[int, ...]  # of the whole volume
    dtype: str
    channel_axis: int | None
    channels: str
    spacing: list[float]
    range: float | None = None
    preset: str | None = None
    device: str = "auto"
    nonfinite: str = "fill"
    threads: int = 1
    memory: int = 0
    resolved: bool = False

    def __post_init__(self) -> None:
        check_options(device=self.device, preset=self.preset, channels=self.channels, nonfinite=self.nonfinite,
                      threads=self.threads, memory=self.memory)
        if self.dtype not in NATIVE.values() and self.dtype not in CONVERTED:
            raise unsupported("array", self.dtype)

    @property
    def axes(self) -> VolumeAxes:
        return VolumeAxes(self.shape, self.channel_axis)

    @property
    def _layout(self) -> tuple[int, str, float]:
        return self.axes.channel, self.channels, white_level(self.dtype, self.range)

    @property
    def _native(self) -> str:
        return CONVERTED.get(self.dtype, (self.dtype,))[0]

    def needs_volume(self) -> bool:
        return not self.resolved and _core.needs_image(self.method, self.preset, self.parameters)

    def sampled(self) -> list[int]:
        """The slices that the noise is measured on."""
        depth, height, width = self.axes.sides(self.shape)
        every = math.ceil(depth / max(1.0, _VOXELS_MEASURED / (height * width)))
        return list(range(0, depth, every))

    def resolve(self, sample: Any = None) -> VolumeWork:
        """With every parameter's value; `sample` has the sampled slices, where needs_volume()."""
        slices = [] if sample is None else self.sampled()
        if sample is not None:
            library, sample = adopt(host_array(sample)[0])
            sample = self.axes.solid(library, sample)
        found = _core.resolve_volume(self.method, self.preset, self.parameters, self.spacing, list(self.shape), self._native,
                                     *self._layout, sample, slices)
        values = {name: value for name, value in found.items() if value is not None}
        return replace(self, parameters=values, preset=None, resolved=True)

    def reach(self) -> tuple[int, int, int]:
        """Voxels that a part needs around it, along z, y and x."""
        axes = self.axes
        shape = [size if each == axes.channel else min(size, _SIDE_FOR_REACH) for each, size in enumerate(self.shape)]

        channel_axis, channels, white = self._layout
        white = white or {"uint8": 255.0, "uint16": 65535.0}.get(self._native, 1.0)

        def along_z(parameters: dict[str, Any], native: str) -> int:
            return _core.volume_reach(self.method, parameters, shape, native, channel_axis, channels, white)
        # Within slices a method looks as far as along z where voxels are cubes. Of floats more slices are needed to fill
        # voxels that are not finite.
        cubes = {name: value for name, value in self.parameters.items() if not name.endswith("_z")}
        within = along_z({**cubes, "aspect": 1}, "uint16")
        return along_z(self.parameters, self._native), within, within

    def denoise_part(self, part: Any, at: Sequence[int], out_at: Sequence[int], out_shape: Sequence[int]) -> Any:
        """The voxels [out_at, out_at + out_shape) along z, y and x, from `part`, whose first voxel is at `at`."""
        axes = self.axes
        library, voxels = adopt(part, "volume")
        work = axes.solid(library, library.readable(voxels, "volume"))
        slices: list[Any] = [slice(None)] * voxels.ndim
        slices[axes.z] = slice(out_at[0] - at[0], out_at[0] - at[0] + out_shape[0])
        target = library.empty_like(work[tuple(slices)])
        device = chosen_device(self.method, self.device, part)
        _core.denoise_volume_part(library.exported(work), library.exported(target), self.method, self.parameters,
                                  list(axes.sides(self.shape)), list(at), out_at[0], *self._layout, device, self.threads,
                                  self.memory, self.nonfinite, library.current_stream(voxels))
        kept: list[Any] = [slice(None)] * voxels.ndim
        for axis, first, start, size in zip((axes.y, axes.x), at[1:], out_at[1:], out_shape[1:]):
            kept[axis] = slice(start - first, start - first + size)
        result = library.empty_like(voxels[tuple(slices)][tuple(kept)])
        library.store(target[tuple(kept)], result)
        return result
