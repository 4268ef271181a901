"""Zarr arrays and TIFF stacks that are read in parts, on any machine."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._errors import CannotRead


class Source:
    """An array in a file, indexed by slices like NumPy's. Only the path is sent; each process opens the file itself."""

    def __init__(self, path: str) -> None:
        self._name = path  # in messages
        self._path = located(path)
        self._opened: Any = None
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
    def attributes(self) -> dict[str, Any]:
        return dict(self._array.attrs)

    def identity(self) -> tuple[Any, ...]:
        return self._path, self.shape, self.dtype.str, self.chunks

    @property
    def _array(self) -> Any:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> Any:
        import zarr
        try:
            if self._path.lower().endswith((".tif", ".tiff")):
                import tifffile
                found: Any = zarr.open(tifffile.imread(self._path, aszarr=True), mode="r")
            else:
                found = zarr.open(self._path, mode="r")
        except ImportError as error:
            raise ImportError(f"{self._name} needs {error.name}: pip install {error.name}") from error
        except Exception as error:
            raise CannotRead(f"{self._name} cannot be opened: {_said(error)}") from None
        if isinstance(found, zarr.Group):  # a pyramid: its first level is the image
            levels = sorted(name for name, _ in found.arrays())
            if not levels:
                raise CannotRead(f"{self._name} is a Zarr group without an array; name the array in it")
            found = found[levels[0]]
        return found

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


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{text} ({type(error).__name__})" if text else type(error).__name__


def open_source(path: str) -> Source:
    return Source(str(path))
