"""Images larger than a machine, on the cluster that you have: Dask arrays in, Dask arrays out.

    import ungrain.dask

    array = ungrain.dask.read("slide.zarr")                  # or any Dask array of yours
    clean = ungrain.dask.denoise(array, "nlm", sigma=12)     # nothing is filtered yet
    clean.to_zarr("clean.zarr")

The result has the same bits as ``ungrain.denoise`` of the whole array on one machine. It needs Dask and, for files,
Zarr: ``pip install dask distributed zarr``. docs/cluster.md has the way from one machine to many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

try:
    import dask
    import dask.array as da
except ImportError as error:
    raise ImportError("ungrain.dask needs Dask: pip install dask distributed zarr") from error

from ._denoise import Axis, _check_white, _with_sigma
from ._errors import InvalidType
from ._parts import Axes, Work, check_each_by_itself, denoise_parts
from ._sources import open_source

__all__ = ["denoise", "read", "resolve"]


def read(path: str, chunks: Any = None) -> Any:
    """A Zarr array, or a TIFF file or stack of them ("frames/*.tif"; with tifffile), as a Dask array that is read in parts.

    ``chunks`` as Dask takes them; by default the file's own, joined to about 4096 x 4096 pixels. A chunk that cannot be
    read is an error that names it.
    """
    source = open_source(path)
    if chunks is None:
        chunks = _joined(source.chunks, source.shape)
    return da.from_array(source, chunks=chunks, name=f"ungrain-read-{dask.base.tokenize(path, source.identity())}",
                         asarray=True, fancy=False, inline_array=True)


def _joined(chunks: Sequence[int], shape: Sequence[int], side: int = 4096) -> tuple[int, ...]:
    """Whole chunks of a file, joined until the sides of the last large axes are about `side`."""
    joined = list(chunks)
    large = [axis for axis in range(len(shape)) if shape[axis] > 16][-2:]
    for axis in large:
        joined[axis] = min(shape[axis], max(1, side // chunks[axis]) * chunks[axis])
    return tuple(joined)


def _work_for(array: Any, axes: Axes, method: str, given: dict[str, Any], options: dict[str, Any]) -> Work:
    return Work(method, given, axes.image_shape(array.shape), np.dtype(array.dtype).name, axes.image_channel_axis(),
                **options)


def _resolved(array: Any, axes: Axes, work: Work) -> list[Work]:
    """One for each image where the noise is measured, else one for all."""
    if not work.needs_image():
        return [work.resolve()]
    rows, columns = work.sampled()
    index: list[Any] = [slice(None)] * array.ndim
    index[axes.y] = rows
    sample = array[tuple(index)]
    index[axes.y], index[axes.x] = slice(None), columns
    sample = sample[tuple(index)].rechunk({each: 1 if each in axes.stack else -1 for each in range_of(array.ndim)})
    measure = dask.delayed(_measure, pure=True)
    found = list(dask.compute(*[measure(work, block, axes) for block in sample.to_delayed().ravel()]))
    for each in found:
        _check_white(max(np.atleast_1d(each.parameters.get("sigma", 0))), work.dtype, work.range)
    return found


range_of = range  # `range` is an argument of denoise()


def _measure(work: Work, block: Any, axes: Axes) -> Work:
    return work.resolve(block.reshape([block.shape[each] for each in axes.image_axes()]))


def resolve(array: Any, method: str = "bm3d", *, sigma: float | Sequence[float] | str = "auto", preset: str | None = None,
            axis: Axis = None, channel_axis: int = -1, channels: str = "auto", range: float | None = None,
            **parameters: Any) -> list[dict[str, Any]]:
    """Every parameter's value, the measured and derived ones too: one for all, or where the noise is measured one for each
    image of a stack. Reads the array where the noise is measured."""
    axes = Axes.of(array.ndim, axis, channel_axis)
    work = _work_for(array, axes, method, _with_sigma(sigma, parameters),
                     {"preset": preset, "channels": channels, "range": range})
    return [each.parameters for each in _resolved(array, axes, work)]


def _denoise_block(block: Any, *, works: np.ndarray, axes: Axes, starts: tuple[Any, Any], sizes: tuple[Any, Any],
                   reach: tuple[int, int], stack_starts: list[Any], block_id: tuple[int, ...]) -> Any:
    """Denoises one chunk with its surroundings."""
    rows, columns = block_id[axes.y], block_id[axes.x]
    out_at = int(starts[0][rows]), int(starts[1][columns])
    out_shape = int(sizes[0][rows]), int(sizes[1][columns])
    at = max(0, out_at[0] - reach[0]), max(0, out_at[1] - reach[1])
    if works.ndim:
        place = tuple(slice(int(first[block_id[each]]), int(first[block_id[each]]) + block.shape[each])
                      for each, first in zip(axes.stack, stack_starts))
        works = works[place]
    return denoise_parts(list(works.ravel()), axes, block, at, out_at, out_shape)


def _starts(sizes: Sequence[int]) -> Any:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)


def denoise(array: Any, method: str = "bm3d", *, sigma: float | Sequence[float] | str = "auto", device: str = "auto",
            preset: str | None = None, axis: Axis = None, channel_axis: int = -1, channels: str = "auto",
            range: float | None = None, nonfinite: str = "fill", threads: int = 1, memory: int = 0,
            **parameters: Any) -> Any:
    """Denoise a Dask array, chunk by chunk, to the same bits as ``ungrain.denoise`` of the whole array.

    Parameters
    ----------
    array : dask.array.Array
        An image or (``axis``) a stack of them, as for ``ungrain.denoise``; chunks of NumPy or CuPy arrays. Each chunk is
        filtered with the pixels around it that the method needs, which come from its neighbours. Channels are brought into
        one chunk; chunks smaller than the reach are joined.
    sigma : float, sequence or "auto"
        "auto": measured once for each whole image, from the same samples as in ``ungrain.denoise``. The array is
        read for it when this is called, since the reach may follow the noise.
    device : str
        "auto": a GPU of its own for each worker where there are GPUs, else the CPU. On a cluster that has both say which:
        the last bits of the two differ.
    threads : int
        For each chunk. Dask's workers work on as many chunks at once as they have threads, hence 1; 0: one for each
        processor. Changes no pixel.
    preset, channel_axis, channels, range, nonfinite, memory, **parameters
        As for ``ungrain.denoise``.

    Returns
    -------
    dask.array.Array
        Nothing is filtered before it is computed or stored.
    """
    if not isinstance(array, da.Array):
        raise InvalidType(f"array takes a Dask array (dask.array.from_array makes one), got {type(array).__name__}")
    axes = Axes.of(array.ndim, axis, channel_axis)
    given = _with_sigma(sigma, parameters)
    work = _work_for(array, axes, method, given, {
        "preset": preset, "channels": channels, "range": range, "device": device, "nonfinite": nonfinite,
        "threads": threads, "memory": memory})
    if axes.channel is not None:
        array = array.rechunk({axes.channel: -1})
    if 0 in array.shape:
        return array
    works = _resolved(array, axes, work)
    check_each_by_itself(works[0], axes)
    reaches = [each.reach() for each in {repr(each): each for each in works}.values()]
    height, width = array.shape[axes.y], array.shape[axes.x]
    reach = min(height, max(rows for rows, _ in reaches)), min(width, max(columns for _, columns in reaches))
    # Where a pixel needs the whole image, the image is not split; images of a stack still go to different workers.
    whole = {each: -1 for each, needed, size in ((axes.y, reach[0], height), (axes.x, reach[1], width)) if needed >= size}
    array = array.rechunk(whole) if whole else array
    depth = {each: 0 for each in range_of(array.ndim)}
    depth[axes.y], depth[axes.x] = (0 if axes.y in whole else reach[0]), (0 if axes.x in whole else reach[1])
    array = _with_large_chunks(array, depth)
    around = da.overlap.overlap(array, depth=depth, boundary="none") if any(depth.values()) else array
    stacked = np.empty(axes.stack_shape(array.shape) if len(works) > 1 else (), dtype=object)
    if len(works) > 1:
        stacked.ravel()[:] = works
        stacked = stacked.reshape(axes.stack_shape(array.shape))
    else:
        stacked[()] = works[0]
    return around.map_blocks(
        _denoise_block, works=stacked, axes=axes, starts=(_starts(array.chunks[axes.y]), _starts(array.chunks[axes.x])),
        sizes=(np.array(array.chunks[axes.y]), np.array(array.chunks[axes.x])), reach=reach,
        stack_starts=[_starts(array.chunks[each]) for each in axes.stack], chunks=array.chunks, dtype=array.dtype,
        meta=array._meta, name=f"ungrain-{method}-{dask.base.tokenize(around.name, repr(works))}")


def _with_large_chunks(array: Any, depth: dict[int, int]) -> Any:
    """Joins chunks that are smaller than their neighbours' reach."""
    wanted = {}
    for each, needed in depth.items():
        if needed and min(array.chunks[each]) < needed:
            wanted[each] = da.overlap.ensure_minimum_chunksize(needed, array.chunks[each])
    return array.rechunk(wanted) if wanted else array
