"""Zarr arrays and TIFF stacks that are read in parts, on any machine."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._errors import CannotRead
from ._ome import Multiscale, check_axes, read_multiscale


class Source:
    """An array in a file, indexed by slices like NumPy's. Only the path is sent; each process opens the file itself."""

    def __init__(self, path: str) -> None:
        self._name = path  # in messages
        self._path = located(path)
        self._opened: Any = None
        self._inside = ""  # where the array lies in a group
        self.ome: Multiscale | None = None  # of an OME-Zarr image, whose largest level this is
        array = self._array
        self.shape = tuple(array.shape)
        self.dtype = np.dtype(array.dtype)
        self.ndim = len(self.shape)
        self.chunks = tuple(getattr(array, "shards", None) or array.chunks)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def path(self) -> str:
        return self._path

    @property
    def name(self) -> str:
        return self._name

    @property
    def inside(self) -> str:
        """Where the array lies in an OME-Zarr group, such as /0."""
        return self._inside

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._array.attrs)

    def identity(self) -> tuple[Any, ...]:
        return self._path, self._inside, self.shape, self.dtype.str, self.chunks

    @property
    def _array(self) -> Any:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> Any:
        import zarr
        is_tiff = self._path.lower().endswith((".tif", ".tiff"))
        try:
            if is_tiff:
                import tifffile
                found: Any = zarr.open(tifffile.imread(self._path, aszarr=True), mode="r")
            else:
                found = zarr.open(self._path + self._inside, mode="r")
        except ImportError as error:
            raise ImportError(f"{self._name} needs {error.name}: pip install {error.name}") from error
        except Exception as error:
            raise CannotRead(f"{self._name} cannot be opened: {_said(error)}") from None
        return self._array_of(found, is_tiff) if isinstance(found, zarr.Group) else found

    def _array_of(self, group: Any, is_tiff: bool) -> Any:
        """The largest level of a pyramid."""
        import zarr
        attributes = dict(group.attrs)
        image = None if is_tiff else read_multiscale(self._name, attributes)
        if image is None:
            levels = sorted((name for name, _ in group.arrays()), key=_natural)
            if not levels:
                raise CannotRead(f"{self._name} is a Zarr group without an array; name {_image_in(attributes)} in it")
            return group[levels[0]]
        path = image.levels[0].path
        found = self._level(group, path)
        if not isinstance(found, zarr.Array):
            raise CannotRead(f"{self._name} has OME-Zarr metadata that is wrong: there is no array {path}")
        self.ome, self._inside = check_axes(image, found.shape), f"/{path}"
        return found

    def _level(self, group: Any, path: str) -> Any:
        try:
            return group[path]
        except KeyError:
            return None
        except Exception as error:
            raise CannotRead(f"{path} of {self._name} cannot be opened: {_said(error)}") from None

    def smaller_levels(self) -> list[Any]:
        """The arrays of an OME-Zarr image but the largest, as far as there are any."""
        import zarr
        if self.ome is None or len(self.ome.levels) == 1:
            return []
        group = zarr.open_group(self._path, mode="r")
        found = [self._level(group, level.path) for level in self.ome.levels[1:]]
        return list(itertools.takewhile(lambda level: isinstance(level, zarr.Array), found))

    @property
    def zarr_format(self) -> int:
        return int(self._array.metadata.zarr_format)

    @property
    def dimension_names(self) -> Any:
        return getattr(self._array.metadata, "dimension_names", None)

    def __getitem__(self, index: Any) -> Any:
        try:
            return np.asarray(self._array[index])
        except Exception as error:
            raise self._naming_the_chunk(index, error) from None

    def fingerprint(self) -> dict[str, str]:
        """Hashes of pixels in the first, the middle and the last chunk, by their positions: enough to notice that the
        pixels have changed. A chunk that cannot be read has none."""
        found = {}
        for part in (0, 0.5, 1):
            chunk = tuple(int(part * ((size - 1) // each)) for size, each in zip(self.shape, self.chunks))
            index = tuple(slice(i * each, min((i + 1) * each, i * each + 256)) for i, each in zip(chunk, self.chunks))
            try:
                pixels = np.ascontiguousarray(self._array[index])
            except Exception:  # reported when the chunk is needed
                continue
            found["/".join(map(str, chunk))] = hashlib.sha256(pixels.tobytes()).hexdigest()[:16]
        return found

    def _naming_the_chunk(self, index: Any, error: Exception) -> CannotRead:
        """Reads the chunks of the part one by one to find the one that fails."""
        array, slices = self._array, []
        for part, size in zip(index if isinstance(index, tuple) else (index,), self.shape):
            slices.append(range(*part.indices(size)) if isinstance(part, slice) else range(part, part + 1))
        slices += [range(size) for size in self.shape[len(slices):]]
        spans: Sequence[range] = [range(places[0] // chunk, places[-1] // chunk + 1) if len(places) else range(0)
                                  for places, chunk in zip(slices, self.chunks)]
        for place in itertools.product(*spans):
            try:
                array[tuple(slice(i * chunk, (i + 1) * chunk) for i, chunk in zip(place, self.chunks))]
            except Exception as why:
                return CannotRead(f"chunk {self._chunk_name(place)} of {self._name} cannot be read: {_said(why)}")
        return CannotRead(f"a part of {self._name} cannot be read: {_said(error)}")

    def _chunk_name(self, place: tuple[int, ...]) -> str:
        try:
            return str(self._array.metadata.encode_chunk_key(place))
        except Exception:  # not a Zarr store on disk
            return ", ".join(map(str, place))


def located(path: str) -> str:
    """An absolute path: workers have other working folders."""
    path = path.removeprefix("file://")
    return path if "://" in path else os.path.abspath(path)


def _natural(name: str) -> list[Any]:
    """2 before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _image_in(attributes: dict[str, Any]) -> str:
    ome = attributes.get("ome")
    known = {**attributes, **(ome if isinstance(ome, dict) else {})}
    return "an image" if any(each in known for each in ("plate", "well", "bioformats2raw.layout")) else "the array"


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{text} ({type(error).__name__})" if text else type(error).__name__


def open_source(path: str) -> Source:
    return Source(str(path))
