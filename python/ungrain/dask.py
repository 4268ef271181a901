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

from ._denoise import Axis, _check_white, _with_noise, _with_sigma, true_or_false
from ._errors import InvalidArgument, InvalidType, Unsupported
from ._measure import RicianEstimate
from ._noise_model import NoiseModel
from ._parts import Axes, Work, check_each_by_itself, denoise_parts
from ._sources import open_source
from ._volume import (VOLUME_INFO, VolumeAxes, channels_of_volume, check_coils_alone, volume_method, voxel_sizes,
                      with_rician)
from ._volume_parts import VolumeWork

__all__ = ["denoise", "denoise_volume", "read", "resolve"]


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


def _not_measured(coils: int) -> RicianEstimate:
    raise InvalidArgument("sigma of Rician noise is not measured in parts; give it: ungrain.estimate_rician measures some slices")


def _denoise_volume_block(block: Any, *, work: VolumeWork, starts: list[Any], sizes: list[Any], reach: tuple[int, ...],
                          block_id: tuple[int, ...]) -> Any:
    """Denoises one chunk with its surroundings."""
    axes = work.axes
    places = [block_id[each] for each in (axes.z, axes.y, axes.x)]
    out_at = [int(first[place]) for first, place in zip(starts, places)]
    out_shape = [int(size[place]) for size, place in zip(sizes, places)]
    return work.denoise_part(block, [max(0, first - around) for first, around in zip(out_at, reach)], out_at, out_shape)


def denoise_volume(array: Any, method: str = "bm4d", *, spacing: Sequence[float] | None = None,
                   sigma: float | Sequence[float] | str = "auto", device: str = "auto", preset: str | None = None,
                   channel_axis: int | None = None, channels: str = "auto", range: float | None = None,
                   nonfinite: str = "fill", threads: int = 1, memory: int = 0, noise_model: NoiseModel | None = None,
                   rician: bool = False, coils: int = 1, strength: float = 1, keep_grain: float = 0,
                   clipping: str = "auto", **parameters: Any) -> Any:
    """Denoise a Dask array that is a volume, chunk by chunk, to the same bits as ``ungrain.denoise_volume`` of the whole.
    Only around voxels that are not finite, which are filled from others near them, bits may differ.

    Parameters
    ----------
    array : dask.array.Array
        Depth x height x width, or with ``channel_axis`` four axes, chunked along any of them. Each chunk is filtered with
        the voxels around it that the method needs along all three axes, which come from its neighbours. Channels are
        brought into one chunk; chunks smaller than the reach are joined.
    method : str
        One of the methods that filter volumes as solids: bm4d, for one.
    sigma : float, sequence or "auto"
        "auto": measured from the same slices as in ``ungrain.denoise_volume``, which are read for it when this is called: up
        to 64 million voxels. With ``rician`` it must be given.
    device, threads
        As for ``ungrain.dask.denoise``.
    spacing, preset, channels, range, nonfinite, memory, noise_model, rician, coils, strength, keep_grain, clipping, **parameters
        As for ``ungrain.denoise_volume``.

    Returns
    -------
    dask.array.Array
        Nothing is filtered before it is computed or stored.
    """
    if not isinstance(array, da.Array):
        raise InvalidType(f"array takes a Dask array (dask.array.from_array makes one), got {type(array).__name__}")
    method = volume_method(method)
    if method not in VOLUME_INFO:
        raise Unsupported(f"{method} looks along the slices of a whole volume: in parts volumes take {', '.join(VOLUME_INFO)}")
    axes = VolumeAxes(array.shape, channel_axis)
    sizes = voxel_sizes(spacing)
    given = _with_noise(_with_sigma(sigma, parameters), noise_model, strength, 1, 1, keep_grain, clipping)
    if true_or_false("rician", rician):
        given = with_rician(method, given, coils, _not_measured)
    else:
        check_coils_alone(coils)
    if axes.channel >= 0:
        array = array.rechunk({axes.channel: -1})
    if 0 in array.shape:
        return array
    work = VolumeWork(method, given, array.shape, np.dtype(array.dtype).name, None if axes.channel < 0 else axes.channel,
                      channels_of_volume(channels, axes), sizes, range, preset, device, nonfinite, threads, memory)
    if work.needs_volume():
        index: list[Any] = [slice(None)] * array.ndim
        index[axes.z] = work.sampled()
        work = work.resolve(array[tuple(index)].compute())
        _check_white(max(np.atleast_1d(work.parameters.get("sigma", 0))), work.dtype, range)
    else:
        work = work.resolve()
    solid = axes.z, axes.y, axes.x
    reach = tuple(min(size, needed) for size, needed in zip(axes.sides(array.shape), work.reach()))
    # Where a voxel needs all of an axis, that is not split.
    whole = {each: -1 for each, needed in zip(solid, reach) if needed >= array.shape[each]}
    array = array.rechunk(whole) if whole else array
    depth = {each: 0 for each in range_of(array.ndim)}
    depth.update({each: needed for each, needed in zip(solid, reach) if each not in whole})
    array = _with_large_chunks(array, depth)
    around = da.overlap.overlap(array, depth=depth, boundary="none") if any(depth.values()) else array
    return around.map_blocks(
        _denoise_volume_block, work=work, starts=[_starts(array.chunks[each]) for each in solid],
        sizes=[np.array(array.chunks[each]) for each in solid], reach=reach, chunks=array.chunks, dtype=array.dtype,
        meta=array._meta, name=f"ungrain-{method}-{dask.base.tokenize(around.name, repr(work))}")
