"""OME-Zarr: the metadata of multiscale images (OME-NGFF 0.4 in Zarr version 2, 0.5 in version 3), and the levels of their
pyramids."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._errors import CannotRead, InvalidArgument

_KINDS = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}  # where an axis has no type
_OLD_AXES = ("t", "c", "z", "y", "x")  # of version 0.1 and 0.2, which do not name them
_METRES = {"angstrom": 1e-10, "picometer": 1e-12, "nanometer": 1e-9, "micrometer": 1e-6, "millimeter": 1e-3,
           "centimeter": 1e-2, "meter": 1.0}


@dataclass(frozen=True)
class Axis:
    name: str
    kind: str  # space, time, channel, or the file's own word
    unit: str | None = None


@dataclass(frozen=True)
class Level:
    path: str
    scale: tuple[float, ...] | None  # the size of a pixel along each axis


@dataclass(frozen=True)
class Multiscale:
    """The first multiscale image that the attributes of a group describe."""

    file: str  # in messages
    attributes: dict[str, Any]  # the group's own
    axes: tuple[Axis, ...]  # none: the metadata does not tell
    levels: tuple[Level, ...]  # the largest first

    def sides(self, count: int) -> list[int]:
        """The axes of an image (count 2) or a volume (3). Images lie stacked along z."""
        space = [number for number, axis in enumerate(self.axes) if axis.kind == "space"]
        if count == 2 and len(space) == 3:
            space.remove(next((each for each in space if self.axes[each].name == "z"), space[0]))
        if len(space) != count:
            names = ", ".join(axis.name for axis in self.axes)
            raise InvalidArgument(f"{self.file} holds no {'volumes' if count == 3 else 'images'}: its axes are {names}")
        return space

    def sizes(self, axes: Sequence[int]) -> list[float]:
        """Of a pixel of the largest level along these axes, in one unit."""
        scale = self.levels[0].scale
        if scale is None or not self.axes:
            return [1.0] * len(axes)
        units = [self.axes[each].unit for each in axes]
        factors = [1.0] * len(axes)
        if len(set(units)) > 1:
            if not all(unit in _METRES for unit in units):
                raise CannotRead(f"{self.file} has voxels in different units ({', '.join(map(str, units))}); give --spacing")
            factors = [_METRES[str(unit)] for unit in units]
        sizes = [scale[each] * factor for each, factor in zip(axes, factors)]
        if not all(size > 0 and math.isfinite(size) for size in sizes):
            raise CannotRead(f"{self.file} has voxels of {', '.join(f'{size:g}' for size in sizes)}; give --spacing")
        return sizes

    def attributes_with(self, levels: int) -> dict[str, Any]:
        """The group's attributes for an output that has the first so many levels of this image."""
        holder = _holder(self.attributes)
        image = holder["multiscales"][0]
        kept = {**holder, "multiscales": [{**image, "datasets": image["datasets"][:levels]}]}
        return {**self.attributes, "ome": kept} if holder is not self.attributes else kept


def _holder(attributes: dict[str, Any]) -> dict[str, Any]:
    """What has the multiscales: since version 0.5 a part of the attributes."""
    ome = attributes.get("ome")
    return ome if isinstance(ome, dict) else attributes


def read_multiscale(file: str, attributes: dict[str, Any]) -> Multiscale | None:
    """None where the group is no multiscale image. Raises CannotRead where its metadata is wrong."""
    holder = _holder(attributes)
    if "multiscales" not in holder:
        return None

    def wrong(what: str) -> CannotRead:
        return CannotRead(f"{file} has OME-Zarr metadata that is wrong: {what}")
    images = holder["multiscales"]
    if not (isinstance(images, list) and images and isinstance(images[0], dict)):
        raise wrong("multiscales is no list of images")
    image = images[0]
    datasets = image.get("datasets")
    if not (isinstance(datasets, list) and datasets and all(isinstance(each, dict) for each in datasets)):
        raise wrong("an image without datasets")
    paths = [each.get("path") for each in datasets]
    if not all(map(_is_path, paths)) or any(f"{a}/".startswith(f"{b}/") for a, b in itertools.permutations(paths, 2)):
        raise wrong(f"its datasets have the paths {', '.join(repr(path) for path in paths)}")
    axes = _axes_of(image.get("axes"))
    if axes is None or len({axis.name for axis in axes}) < len(axes):
        raise wrong("its axes have no names, or two have the same")
    try:
        whole = _scale_of(image, len(axes))
        scales = [_product(whole, _scale_of(each, len(axes))) for each in datasets]
    except (ValueError, OverflowError) as error:
        raise wrong(str(error)) from None
    return Multiscale(file, attributes, axes, tuple(map(Level, paths, scales)))


def check_axes(image: Multiscale, shape: Sequence[int]) -> Multiscale:
    """With the axes of an image of that shape, where its metadata does not name them."""
    path = image.levels[0].path
    if not image.axes and len(shape) == len(_OLD_AXES):
        return Multiscale(image.file, image.attributes, tuple(Axis(name, _KINDS[name]) for name in _OLD_AXES), image.levels)
    if image.axes and len(image.axes) != len(shape):
        names = ", ".join(axis.name for axis in image.axes)
        raise CannotRead(f"{image.file} has OME-Zarr metadata that is wrong: {len(image.axes)} axes ({names}) for the array "
                         f"{path}, which has {len(shape)}")
    return image


def _is_path(path: Any) -> bool:
    """Whether it names something inside the group."""
    return (isinstance(path, str) and "\\" not in path and
            all(part and not part.startswith(".") and part != "zarr.json" for part in path.split("/")))


def _axes_of(given: Any) -> tuple[Axis, ...] | None:
    if given is None:
        return ()
    if not isinstance(given, list):
        return None
    axes = []
    for each in given:
        each = {"name": each} if isinstance(each, str) else each  # version 0.3
        if not (isinstance(each, dict) and isinstance(each.get("name"), str)):
            return None
        kind, unit = each.get("type"), each.get("unit")
        axes.append(Axis(each["name"], kind if isinstance(kind, str) else _KINDS.get(each["name"], "other"),
                         unit if isinstance(unit, str) else None))
    return tuple(axes)


def _scale_of(part: dict[str, Any], axes: int) -> tuple[float, ...] | None:
    transformations = part.get("coordinateTransformations")
    if transformations is None:
        return None
    if not (isinstance(transformations, list) and all(isinstance(each, dict) for each in transformations)):
        raise ValueError("coordinateTransformations is no list of transformations")
    for each in transformations:
        if each.get("type") != "scale":
            continue
        scale = each.get("scale")
        if not (isinstance(scale, list) and all(isinstance(size, (int, float)) for size in scale)):
            raise ValueError("a scale that is no list of numbers")
        if axes and len(scale) != axes:
            raise ValueError(f"a scale of {len(scale)} numbers for {axes} axes")
        return tuple(map(float, scale))
    return None


def _product(a: tuple[float, ...] | None, b: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if a is None or b is None:
        return b if a is None else a
    return tuple(x * y for x, y in zip(a, b))


def shrinking(larger: Sequence[int], shape: Sequence[int], may_shrink: Sequence[int],
              scales: tuple[tuple[float, ...] | None, tuple[float, ...] | None]) -> tuple[int, ...] | None:
    """How many pixels of the larger level one of the smaller stands for along each axis: the ratio of the two levels'
    scales where the shapes agree, or that of the shapes. None: not a whole number, or along an axis that may not shrink."""
    if len(larger) != len(shape):
        return None
    factors = []
    for axis, (large, small) in enumerate(zip(larger, shape)):
        ratios = [large / small] if small else []
        if scales[0] is not None and scales[1] is not None and scales[0][axis] > 0:
            ratios.insert(0, scales[1][axis] / scales[0][axis])
        factor = next((factor for factor in (round(ratio) for ratio in ratios if 0.5 < ratio <= large)
                       if small in (large // factor, -(-large // factor))), None)
        if factor is None or (factor > 1 and axis not in may_shrink):
            return None
        factors.append(factor)
    return tuple(factors)


def means(pixels: Any, factors: Sequence[int]) -> Any:
    """Means over windows of `factors` pixels; those at the far ends have fewer. Integers are rounded."""
    dtype = pixels.dtype
    wide = np.dtype(np.float64 if dtype.kind == "f" else np.int64)
    total, counts = pixels, np.ones((1,) * pixels.ndim, wide)
    for axis, factor in enumerate(factors):
        if factor == 1:
            continue
        starts = np.arange(0, pixels.shape[axis], factor)
        total = np.add.reduceat(total, starts, axis=axis, dtype=wide)
        count = np.minimum(factor, pixels.shape[axis] - starts)
        counts = counts * count.reshape([-1 if each == axis else 1 for each in range(pixels.ndim)])
    if dtype.kind == "f":
        return (total / counts).astype(dtype)
    return ((2 * total.astype(wide) + counts) // (2 * counts)).astype(dtype)
