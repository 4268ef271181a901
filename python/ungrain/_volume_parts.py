"""Volumes that are denoised in parts along all three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _core
from ._arrays import adopt, white_level
from ._errors import Unsupported
from ._parts import Work, chosen_device
from ._volume import VOLUME_INFO, VolumeAxes, channels_of_volume, volume_method

_VOXELS_MEASURED = 64e6  # as the library: of larger volumes the noise is measured on every so many slices
_SIDE_FOR_REACH = 64  # the reach is that of a volume of any size


def method_in_parts(method: Any) -> str:
    """Its own name; refuses a method that cannot filter parts of a volume."""
    method = volume_method(method)
    if method not in VOLUME_INFO:
        raise Unsupported(f"{method} looks along the slices of a whole volume: in parts volumes take {', '.join(VOLUME_INFO)}")
    return method


@dataclass(frozen=True)
class VolumeWork(Work):
    spacing: tuple[float, ...] = (1.0, 1.0, 1.0)  # a voxel's sizes along z, y and x

    @property
    def axes(self) -> VolumeAxes:
        return VolumeAxes(self.shape, self.channel_axis)

    @property
    def _layout(self) -> tuple[int, str, float]:
        axes = self.axes
        return axes.channel, channels_of_volume(self.channels, axes), white_level(self.dtype, self.range)

    def sampled(self) -> list[list[int] | None]:
        """The slices that the noise is measured on."""
        depth, height, width = self.axes.sides(self.shape)
        every = math.ceil(depth / max(1.0, _VOXELS_MEASURED / (height * width)))
        return [list(range(0, depth, every)), None, None]

    def _resolved_values(self, sample: Any) -> dict[str, Any]:
        slices = [] if sample is None else self.sampled()[0]
        if sample is not None:
            library, sample = adopt(sample)
            sample = self.axes.solid(library, sample)
        return _core.resolve_volume(self.method, self.preset, self.parameters, list(self.spacing), list(self.shape), self.native,
                                    *self._layout, sample, slices)

    def reach(self) -> tuple[int, int, int]:
        axes = self.axes
        shape = [size if each == axes.channel else min(size, _SIDE_FOR_REACH) for each, size in enumerate(self.shape)]

        channel_axis, channels, white = self._layout
        white = white or {"uint8": 255.0, "uint16": 65535.0}.get(self.native, 1.0)

        def along_z(parameters: dict[str, Any], native: str) -> int:
            return _core.volume_reach(self.method, parameters, shape, native, channel_axis, channels, white)
        # Within slices a method looks as far as along z where voxels are cubes. Of floats more slices are needed to fill
        # voxels that are not finite.
        cubes = {name: value for name, value in self.parameters.items() if not name.endswith("_z")}
        within = along_z({**cubes, "aspect": 1}, "uint16")
        return along_z(self.parameters, self.native), within, within

    def denoise_part(self, part: Any, at: Sequence[int], out_at: Sequence[int], out_shape: Sequence[int]) -> Any:
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
