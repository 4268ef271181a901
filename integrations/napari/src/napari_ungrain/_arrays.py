"""What is done with a layer's array; nothing here knows Qt or napari."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import ungrain

IMAGES, FRAMES, VOLUMES = KINDS = ("each image by itself", "frames of a clip", "volumes")
_AXES = {IMAGES: 2, FRAMES: 3, VOLUMES: 3}  # of one piece of work, without colour


def methods_for(kind: str) -> list[str]:
    """The methods, the one that is taken unless told otherwise first."""
    names = ungrain.volume_methods() if kind == VOLUMES else ungrain.methods()
    first = "bm4d" if kind == VOLUMES else "bm3d"
    return [first, *(name for name in names if name != first)]


def kinds_for(axes: int, rgb: bool) -> list[str]:
    """What a layer of so many axes can be taken for."""
    space = axes - rgb
    if space < 2:
        return []
    return [IMAGES] if space == 2 else [IMAGES, FRAMES] if rgb else list(KINDS)


def _pieces(shape: Sequence[int], axes: int) -> Iterator[tuple[int, ...]]:
    yield from np.ndindex(*shape[:len(shape) - axes])


def white_level(array: Any) -> float | None:
    """Of floats the largest value, unless that is from 0.1 to 1; None: that of the type (1 of floats)."""
    if np.dtype(array.dtype).kind != "f":
        return None
    largest = 0.0
    for place in _pieces(array.shape, 2):  # little at a time: it may be larger than the memory
        piece = np.asarray(array[place])
        largest = max(largest, float(np.max(np.abs(piece), where=np.isfinite(piece), initial=0)))
    return None if 0.1 <= largest <= 1 or largest == 0 else largest


def _clip(frames: np.ndarray, out: np.ndarray, method: str, options: dict[str, Any], progress: Callable[[float], bool]) -> None:
    clean = ungrain.denoise_video(frames, method, **options)
    try:
        for index, frame in enumerate(clean):
            out[index] = frame
            if not progress((index + 1) / len(out)):
                raise ungrain.Cancelled("cancelled")
    finally:
        clean.close()


def denoise_array(array: Any, method: str = "bm3d", *, kind: str = IMAGES, rgb: bool = False, spacing: Sequence[float] | None = None,
                  progress: Callable[[float], bool] = lambda fraction: True, **options: Any) -> np.ndarray:
    """Denoises an array as napari has them: any number of axes before those of an image, colour behind them where `rgb` says so.

    Dask and Zarr arrays are read piece by piece; the result is a NumPy array. `progress` is called with the fraction done, and stops the
    work (ungrain.Cancelled) where it returns False. `spacing` are the sizes of a voxel along z, y and x.
    """
    shape = tuple(array.shape)
    if kind not in kinds_for(len(shape), rgb):
        raise ungrain.InvalidArgument(f"an array of {len(shape)} axes{', the last of colour,' if rgb else ''} cannot be taken for {kind}")
    if options.get("range") is None:
        options["range"] = white_level(array)
    axes = _AXES[kind] + rgb
    result = np.empty(shape, array.dtype)
    places = list(_pieces(shape, axes))
    for done, place in enumerate(places):

        def told(fraction: float, done: int = done) -> bool:
            return progress((done + fraction) / len(places))

        # A piece that is already in memory is not copied.
        piece = np.asarray(array[place])
        if kind == FRAMES:
            _clip(piece, result[place], method, options, told)
        elif kind == VOLUMES:
            result[place] = ungrain.denoise_volume(piece, method, spacing=spacing, progress=told, **options)
        else:
            result[place] = ungrain.denoise(piece, method, progress=told, **options)
        if not told(1.0):
            raise ungrain.Cancelled("cancelled")
    return result
