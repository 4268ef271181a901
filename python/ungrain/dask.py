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
from ._errors import InvalidArgument, InvalidType
from ._measure import RicianEstimate
from ._noise_model import NoiseModel
from ._parts import AnyWork, Axes, ImageWork, Work, check_each_by_itself, denoise_parts
from ._sources import Source, open_source
from ._volume import check_coils_alone, correlation_by_offset, voxel_sizes, with_rician
from ._volume_parts import VolumeWork, method_in_parts

__all__ = ["denoise", "denoise_volume", "read", "resolve"]


def read(path: str, chunks: Any = None) -> Any:
    """A Zarr array, the largest level of an OME-Zarr image, or a TIFF file or stack of them ("frames/*.tif"; with tifffile),
    as a Dask array that is read in parts.

    ``chunks`` as Dask takes them; by default the file's own, joined to about 4096 x 4096 pixels. A chunk that cannot be
    read is an error that names it.
    """
    source = open_source(path)
    return lazily(source, _joined(source.chunks, source.shape) if chunks is None else chunks)


def lazily(source: Source, chunks: Any) -> Any:
    return da.from_array(source, chunks=chunks, name=f"ungrain-read-{dask.base.tokenize(source.identity(), chunks)}",
                         asarray=True, fancy=False, inline_array=True)


def _joined(chunks: Sequence[int], shape: Sequence[int], side: int = 4096) -> tuple[int, ...]:
    """Whole chunks of a file, joined until the sides of the last large axes are about `side`."""
    joined = list(chunks)
    large = [axis for axis in range(len(shape)) if shape[axis] > 16][-2:]
    for axis in large:
        joined[axis] = min(shape[axis], max(1, side // chunks[axis]) * chunks[axis])
    return tuple(joined)


def _work_for(array: Any, axes: Axes, method: str, given: dict[str, Any], options: dict[str, Any]) -> ImageWork:
    return ImageWork(method, given, axes.image_shape(array.shape), np.dtype(array.dtype).name, axes.image_channel_axis(),
                     **options)


def _resolved(array: Any, axes: Axes, work: AnyWork) -> list[AnyWork]:
    """One for each image or volume where the noise is measured, else one for all."""
    if not work.needs_sample():
        return [work.resolve()]
    sample = array
    for side, places in zip(axes.sides, work.sampled()):
        if places is not None:
            sample = sample[(slice(None),) * side + (places,)]
    sample = sample.rechunk({each: 1 if each in axes.stack else -1 for each in range_of(array.ndim)})
    measure = dask.delayed(_measure, pure=True)
    found = list(dask.compute(*[measure(work, block, axes) for block in sample.to_delayed().ravel()]))
    for each in found:
        _check_white(max(np.atleast_1d(each.parameters.get("sigma", 0))), work.dtype, work.range)
    return found


range_of = range  # `range` is an argument of denoise()


def _measure(work: AnyWork, block: Any, axes: Axes) -> AnyWork:
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


def _denoise_block(block: Any, *, works: np.ndarray, axes: Axes, starts: list[Any], sizes: list[Any], reach: tuple[int, ...],
                   stack_starts: list[Any], block_id: tuple[int, ...]) -> Any:
    """Denoises one chunk with its surroundings."""
    places = [block_id[each] for each in axes.sides]
    out_at = [int(first[place]) for first, place in zip(starts, places)]
    out_shape = [int(size[place]) for size, place in zip(sizes, places)]
    at = [max(0, first - around) for first, around in zip(out_at, reach)]
    if works.ndim:
        place = tuple(slice(int(first[block_id[each]]), int(first[block_id[each]]) + block.shape[each])
                      for each, first in zip(axes.stack, stack_starts))
        works = works[place]
    return denoise_parts(list(works.ravel()), axes, block, at, out_at, out_shape)


def _denoised(array: Any, axes: Axes, works: Sequence[Work]) -> Any:
    """Every chunk with the pixels around it that the method needs. `works` has one for all images, or one for each."""
    if axes.channel is not None:
        array = array.rechunk({axes.channel: -1})
    reaches = zip(*[each.reach() for each in {each.key(): each for each in works}.values()])
    reach = tuple(min(array.shape[side], max(needed)) for side, needed in zip(axes.sides, reaches))
    # An axis of which a pixel needs all is not split; images of a stack still go to different workers.
    whole = {side: -1 for side, needed in zip(axes.sides, reach) if needed >= array.shape[side]}
    array = array.rechunk(whole) if whole else array
    depth = {each: 0 for each in range_of(array.ndim)}
    depth.update({side: needed for side, needed in zip(axes.sides, reach) if side not in whole})
    array = _with_large_chunks(array, depth)
    around = da.overlap.overlap(array, depth=depth, boundary="none") if any(depth.values()) else array
    stacked = np.empty(len(works), dtype=object)
    stacked[:] = works
    return around.map_blocks(
        _denoise_block, works=stacked.reshape(axes.stack_shape(array.shape) if len(works) > 1 else ()), axes=axes,
        starts=[_starts(array.chunks[side]) for side in axes.sides], sizes=[np.array(array.chunks[side]) for side in axes.sides],
        reach=reach, stack_starts=[_starts(array.chunks[each]) for each in axes.stack], chunks=array.chunks, dtype=array.dtype,
        meta=array._meta, name=f"ungrain-{works[0].method}-{dask.base.tokenize(around.name, repr(works))}")


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
    _check_is_dask(array)
    axes = Axes.of(array.ndim, axis, channel_axis)
    work = _work_for(array, axes, method, _with_sigma(sigma, parameters), {
        "preset": preset, "channels": channels, "range": range, "device": device, "nonfinite": nonfinite,
        "threads": threads, "memory": memory})
    if 0 in array.shape:
        return array
    works = _resolved(array, axes, work)
    check_each_by_itself(works[0], axes)
    return _denoised(array, axes, works)


def _check_is_dask(array: Any) -> None:
    if not isinstance(array, da.Array):
        raise InvalidType(f"array takes a Dask array (dask.array.from_array makes one), got {type(array).__name__}")


def _with_large_chunks(array: Any, depth: dict[int, int]) -> Any:
    """Joins chunks that are smaller than their neighbours' reach."""
    wanted = {}
    for each, needed in depth.items():
        if needed and min(array.chunks[each]) < needed:
            wanted[each] = da.overlap.ensure_minimum_chunksize(needed, array.chunks[each])
    return array.rechunk(wanted) if wanted else array


def _not_measured(coils: int) -> RicianEstimate:
    raise InvalidArgument("sigma of Rician noise is not measured in parts; give it: ungrain.estimate_rician measures some slices")


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
    _check_is_dask(array)
    method = method_in_parts(method)
    axes = Axes.of(array.ndim, None, channel_axis, sides=3)
    given = _with_noise(_with_sigma(sigma, parameters), noise_model, strength, 1, 1, keep_grain, clipping)
    if method == "bm4d" and given.get("correlation") is not None:
        given["correlation"] = correlation_by_offset(given["correlation"])
    if true_or_false("rician", rician):
        given = with_rician(method, given, coils, _not_measured)
    else:
        check_coils_alone(coils)
    work = VolumeWork(method, given, array.shape, np.dtype(array.dtype).name, axes.channel, channels, range, preset, device,
                      nonfinite, threads, memory, spacing=tuple(voxel_sizes(spacing)))
    if 0 in array.shape:
        return array
    return _denoised(array, axes, _resolved(array, axes, work))
