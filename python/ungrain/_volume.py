"""denoise_volume(): volumes of voxels, filtered along all three axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from . import _core
from ._arrays import NumPyArrays, adopt, white_level
from ._denoise import (Array, Progress, _check_white, _through_the_host, _with_noise, _with_sigma, check_options, output_for,
                       true_or_false, whole_number)
from ._errors import InvalidArgument, InvalidType, shown
from ._measure import RicianEstimate, rician_of_slices
from ._noise_model import NoiseModel

# Methods for images that look along the slices of a volume.
ALONG_SLICES = tuple(_core.methods_along_slices())
VOLUME_INFO = {info["name"]: info for info in _core.volume_methods()}


def volume_methods() -> list[str]:
    """The names of the methods for volumes: those that filter them as solids, then those that look along their slices."""
    return [*VOLUME_INFO, *ALONG_SLICES]


def volume_method(method: Any) -> str:
    """The method's own name; "nlm" is nlm3d."""
    if not isinstance(method, str):
        raise InvalidType(f"method takes a string, got {shown(method)}")
    if method == "nlm" and "nlm3d" in VOLUME_INFO:
        return "nlm3d"
    if method not in VOLUME_INFO and method not in ALONG_SLICES:
        _core.needs_image(method, None, {})  # raises where there is no such method, with the nearest name
        raise InvalidArgument(f"{method} is for images; volumes take {', '.join(volume_methods())}. "
                              f"denoise(volume, '{method}', axis=0) filters each slice by itself")
    return method


class VolumeAxes:
    """The axes z, y and x of an array, and that of its channels."""

    def __init__(self, shape: Sequence[int], channel_axis: Any) -> None:
        count = 3 if channel_axis is None else 4
        if len(shape) != count:
            raise InvalidArgument(f"an array of shape {tuple(shape)} is no volume: depth x height x width, and "
                                  f"channel_axis= names a fourth axis; got channel_axis={shown(channel_axis)}")
        left = list(range(count))
        self.channel = -1
        if channel_axis is not None:
            self.channel = whole_number("channel_axis", channel_axis, -count, count - 1) % count
            left.remove(self.channel)
        self.z, self.y, self.x = left

    def sides(self, shape: Sequence[int]) -> tuple[int, int, int]:
        return shape[self.z], shape[self.y], shape[self.x]

    def is_solid(self, library: Any, array: Any) -> bool:
        """Whether the rows of each slice follow each other without gaps, as the library takes them."""
        strides = library.strides(array)
        _, height, width = self.sides(array.shape)
        return height <= 1 or width <= 1 or strides[self.y] == strides[self.x] * width

    def slices_interleave(self, library: Any, array: Any) -> bool:
        """Whether one slice has voxels between those of another in memory: results then cannot replace them one by one."""
        strides = [abs(stride) for stride in library.strides(array)]
        return any(strides[axis] * array.shape[axis] > strides[self.z] for axis in (self.y, self.x) if array.shape[axis] > 1)

    def solid(self, library: Any, array: Any) -> Any:
        """The array itself, or a copy."""
        if self.is_solid(library, array):
            return array
        return library.packed(array, [self.z, self.y, self.x] + ([self.channel] if self.channel >= 0 else []))


def voxel_sizes(spacing: Any) -> list[float]:
    if spacing is None:
        return [1.0, 1.0, 1.0]
    try:
        sizes = [float(each) for each in spacing]
    except (TypeError, ValueError):
        sizes = []
    if len(sizes) != 3:
        raise InvalidType(f"spacing takes three numbers, the sizes of a voxel along z, y and x, got {shown(spacing)}")
    return sizes


def map_of_slices(levels: Any, axes: VolumeAxes, shape: Sequence[int]) -> np.ndarray:
    """A map of the noise, of the volume's shape or without its channels, with a slice in each row."""
    array = np.asarray(levels, np.float32)
    if axes.channel >= 0 and array.ndim == len(shape):
        array = np.moveaxis(array, axes.channel, -1)
    sides = axes.sides(shape)
    if array.shape[:3] != sides or array.ndim not in (3, 4):
        raise InvalidArgument(f"sigma_map takes an array of the volume's shape {tuple(sides)}, got one of {np.shape(levels)}")
    return np.ascontiguousarray(array).reshape(sides[0], sides[1] * sides[2], *array.shape[3:])


def correlation_by_offset(correlation: Any) -> list[float]:
    """The noise's correlation for offsets of -4 to 4 voxels along z, y and x, from an array of odd sides: 0 beyond them."""
    try:
        array = np.asarray(correlation, float)
    except (TypeError, ValueError):
        raise InvalidType(f"correlation takes an array of numbers, got {shown(correlation)}") from None
    if array.ndim != 3 or any(side % 2 == 0 for side in array.shape):
        raise InvalidArgument(f"correlation takes an array of three odd sides, got shape {array.shape}")
    reach = 4
    cut = array[tuple(slice(max(0, side // 2 - reach), side // 2 + reach + 1) for side in array.shape)]
    return list(np.pad(cut, [(reach - side // 2,) * 2 for side in cut.shape]).ravel())


def channels_of_volume(channels: Any, axes: VolumeAxes) -> Any:
    """Channels are independent unless said otherwise: contrasts and echoes rather than colours."""
    return ("gray" if axes.channel < 0 else "multi") if isinstance(channels, str) and channels == "auto" else channels


def with_rician(method: str, given: dict[str, Any], coils: Any, measure: Callable[[int], RicianEstimate]) -> dict[str, Any]:
    """The noise of magnitudes instead of sigma, measured where that is not given. gaussian's sigma is no noise."""
    coils = whole_number("coils", coils, 1, 128)
    sigma = given.pop("sigma", None) if method != "gaussian" else None
    if sigma is None:
        found = measure(coils)
        if found.source == "none":
            raise InvalidArgument("too little noise was found to measure it; give sigma")
        sigma = found.sigma
    elif np.ndim(sigma) != 0:
        raise InvalidArgument(f"sigma takes one number where the noise is Rician, got {shown(sigma)}")
    return {**given, "rician_sigma": sigma, "coils": coils}


def check_coils_alone(coils: Any) -> None:
    if not (isinstance(coils, int) and coils == 1):
        raise InvalidArgument("coils is for Rician noise: give rician=True, too")


def denoise_volume(volume: Array, method: str = "bm4d", *, spacing: Sequence[float] | None = None,
                   sigma: float | Sequence[float] | str = "auto", device: str = "auto", preset: str | None = None,
                   channel_axis: int | None = None, channels: str = "auto", range: float | None = None,
                   nonfinite: str = "fill", threads: int = 0, memory: int = 0, noise_model: NoiseModel | None = None,
                   rician: bool = False, coils: int = 1, strength: float = 1, keep_grain: float = 0,
                   clipping: str = "auto", out: Array | None = None, stream: Any = None, progress: Progress = None,
                   **parameters: Any) -> Array:
    """Denoise a volume, such as MRI, CT or a microscope's stack, along all three axes.

    Parameters
    ----------
    volume : array
        Depth x height x width (z, y, x), or with ``channel_axis`` four axes, of the libraries and types that
        ``ungrain.denoise`` takes. Slices whose rows do not follow each other in memory without gaps are copied. A volume
        on a GPU is filtered there; box, gaussian, median and bilateral copy it to the host and back.
    method : str
        One of ``ungrain.volume_methods()``; "nlm" stands for nlm3d. Methods for images that are among them look along
        the slices as far as within them: ``radius_z`` (box), ``sigma_z`` (gaussian) and ``radius_t`` (median,
        bilateral) follow ``radius`` or ``sigma``, and ``spacing``, where they are not given.
    spacing : three numbers, optional
        The sizes of a voxel along z, y and x, in any unit: sets ``aspect``.
    sigma : float, sequence or "auto"
        The noise's standard deviation in pixel values, one for all or one for each channel. "auto": measured once on the
        whole volume.
    channel_axis : int, optional
        Where the 1 to 4 channels are, in an array of four axes. Methods for volumes filter each by itself.
    channels : str
        "auto": gray, or independent channels ("multi"). "rgb", "rgba" and "gray-alpha" as for ``ungrain.denoise``.
    rician : bool
        The volume has magnitudes of MRI, whose noise is Rician (or, with several ``coils``, noncentral chi). ``sigma`` is
        then that of the real and the imaginary part, and the result is the true signal: the background becomes 0.
        "auto" measures it as ``ungrain.estimate_rician`` does.
    coils : int from 1 to 128
        Receive coils whose root of the sum of squares the magnitude is; 1 also where they were combined with their
        phases (SENSE). With ``rician`` only.
    correlation : array, optional
        Of bm4d: how the noise at two voxels is correlated, by their offset along z, y and x: an array of odd sides, 1 in
        its middle. Offsets of up to 4 voxels count. Not given: white noise.
    device, preset, range, nonfinite, threads, memory, noise_model, strength, keep_grain, clipping, out, stream, progress
        As for ``ungrain.denoise``.
    **parameters
        The method's own: ``help(ungrain.bm4d)`` and so on.

    Returns
    -------
    array
        Of the same library, shape, type and memory layout, on the same device.
    """
    method = volume_method(method)
    library, array = adopt(volume, "volume")
    dtype = library.dtype_name(array)
    axes = VolumeAxes(array.shape, channel_axis)
    channels = channels_of_volume(channels, axes)
    sizes = voxel_sizes(spacing)
    along_slices = method in ALONG_SLICES
    layout = ([axes.z] if along_slices else [], axes.channel, channels, white_level(dtype, range))
    given = _with_noise(_with_sigma(sigma, parameters), noise_model, strength, 1, 1, keep_grain, clipping)
    if given.get("sigma_map") is not None:
        given["sigma_map"] = map_of_slices(given["sigma_map"], axes, array.shape)
    if method == "bm4d" and given.get("correlation") is not None:
        given["correlation"] = correlation_by_offset(given["correlation"])
    if true_or_false("rician", rician):
        given = with_rician(method, given, coils, lambda count: rician_of_slices(
            library.to_host(array), None if axes.channel < 0 else axes.channel, count))
    else:
        check_coils_alone(coils)

    def run(work: Any, target: Any, handle: int) -> float:
        on, device_ = library.device(array), device
        if on is not None and device == "auto":
            device_ = on
        measured = None
        if _core.needs_image(method, preset, given) and (on is not None or along_slices):
            measured = axes.solid(NumPyArrays, library.to_host(work))

        def call(volume: Any, out: Any, stream: int) -> Any:
            return _core.denoise_volume(volume, out, method, preset, given, sizes, *layout, device_, threads, memory,
                                        nonfinite, progress, measured, stream)
        level = call(library.exported(work), library.exported(target), handle)
        if level is None:
            level = _through_the_host(library, work, target, lambda host, result: call(host, result, 0))
        return cast(float, level)
    try:
        result, level = _worked_on_volume(library, array, out, stream, axes, along_slices, run)
    except TypeError:
        check_options(device=device, preset=preset, channels=channels, nonfinite=nonfinite, threads=threads, memory=memory,
                      progress=progress)
        raise
    _check_white(level, dtype, range)
    return cast(Array, result)


def _worked_on_volume(library: Any, volume: Any, out: Any, stream: Any, axes: VolumeAxes, along_slices: bool,
                      run: Callable[[Any, Any, int], Any]) -> tuple[Any, Any]:
    """The result's array, and what `run` returned. `run` gets solids, copies where the arrays are none; any arrays where
    the method looks along slices."""
    if stream is not None:
        with library.on_stream(volume, stream):
            return _worked_on_volume(library, volume, out, None, axes, along_slices, run)
    work = library.readable(volume, "volume")
    result = output_for(library, volume, out)
    target = result if library.usable(result) else library.empty_like(work)
    if not along_slices:
        work = axes.solid(library, work)
    apart = (out is None or not axes.slices_interleave(library, target)) if along_slices else axes.is_solid(library, target)
    if not apart:
        target = library.empty_like(work)
    returned = run(work, target, library.current_stream(volume))
    if target is not result:
        library.store(target, result)
    return result if out is None else out, returned
