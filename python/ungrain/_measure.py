"""Measurements on the host: noise, and the difference of images; and adding noise. GPU arrays are copied there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from . import _core
from ._arrays import NumPyArrays, adopt, channels_of, host_array, white_level
from ._denoise import Array, Axis, check_options, output_for, stack_axes, target_for, true_or_false, whole_number
from ._errors import InvalidArgument, InvalidType, shown
from ._noise_model import NoiseModel, NoiseModelEstimate


def _stacked(values: list[Any], shape: tuple[int, ...], axis: Axis) -> Any:
    """One value, or an array of them with the stack's shape."""
    if axis is None:
        return values[0]
    axes = [a % len(shape) for a in stack_axes(axis)]
    return np.asarray(values).reshape([shape[a] for a in axes] + list(np.shape(values[0]) if values else []))


def estimate_sigma(image: Any, *, per_channel: bool = False, axis: Axis = None, channel_axis: int = -1,
                   channels: str = "auto", range: float | None = None) -> Any:
    """The standard deviation of an image's noise, in pixel values, from the image alone.

    Made for Gaussian noise of one strength all over the image, also where it was cut off at black and white (``range``)
    or compressed. Colour channels are averaged (root mean square), or told apart with ``per_channel=True``. With
    ``axis``, an array with one estimate for each image of the stack.

    ::

        sigma = ungrain.estimate_sigma(image)
    """
    channels = channels_of(image, channels)
    per_channel = true_or_false("per_channel", per_channel)
    samples, dtype = host_array(image)
    try:
        found = _core.estimate(samples, stack_axes(axis), channel_axis, channels, white_level(dtype, range))
    except TypeError:
        check_options(channel_axis=channel_axis, channels=channels)
        raise
    values = [np.asarray(each) if per_channel else total for total, each, _ in found]
    return _stacked(values, samples.shape, axis)


def estimate_noise_model(image: Any, *, iso: float | None = None, axis: Axis = None, channel_axis: int = -1,
                         channels: str = "auto", range: float | None = None, threads: int = 0) -> Any:
    """The noise by level, frequency and channel, from the image alone: a ``NoiseModelEstimate``.

    ``iso`` is the photograph's speed, if it is known: it limits what is taken for noise where the image has no flat
    areas. With ``axis``, a list with one estimate for each image of the stack.
    """
    channels = channels_of(image, channels)
    samples, dtype = host_array(image)
    if iso is not None and not isinstance(iso, (int, float, np.number)):
        raise InvalidType(f"iso takes a number, got {shown(iso)}")
    try:
        found = _core.estimate_model(samples, stack_axes(axis), channel_axis, channels, white_level(dtype, range),
                                     None if iso is None else float(iso), threads)
    except TypeError:
        check_options(channel_axis=channel_axis, channels=channels, threads=threads)
        raise
    estimates = [NoiseModelEstimate(**{**each, "model": NoiseModel.from_dict(each["model"])}) for each in found]
    return estimates[0] if axis is None else estimates


@dataclass(frozen=True)
class RicianEstimate:
    """The noise of magnitudes: ``sigma`` of the real and the imaginary part, and where it was found: ``source`` is
    "background", "object", or "none" where there was too little to measure."""

    sigma: float
    source: str
    background_sigma: float  # what either says; 0 where it says nothing
    object_sigma: float


def rician_of_slices(samples: Any, channel_axis: int | None, coils: int) -> RicianEstimate:
    """Of a volume, or a slice, in host memory; each channel counts."""
    if channel_axis is not None:
        samples = np.moveaxis(samples, channel_axis, 0)
    estimator = _core.RicianEstimator(coils)
    for index in np.ndindex(*samples.shape[:-2]):
        estimator.add_slice(np.ascontiguousarray(samples[index], np.float32))
    return RicianEstimate(**estimator.finish())


def estimate_rician(volume: Any, coils: int = 1, *, channel_axis: int | None = None) -> RicianEstimate:
    """The noise of magnitude MRI, from a volume (z, y, x) or a single slice alone.

    ``coils`` are the receive coils whose root of the sum of squares the volume is; 1: Rician noise. Zeros are taken for a
    mask and left out.

    ::

        sigma = ungrain.estimate_rician(volume).sigma
        clean = ungrain.denoise_volume(volume, sigma=sigma, rician=True)
    """
    samples, _ = host_array(volume, "volume")
    if channel_axis is not None:
        channel_axis = whole_number("channel_axis", channel_axis, -samples.ndim, samples.ndim - 1)
    if samples.ndim - (channel_axis is not None) not in (2, 3):
        raise InvalidArgument(f"an array of shape {samples.shape} is no volume: depth x height x width, and channel_axis= "
                              f"names a fourth axis; got channel_axis={shown(channel_axis)}")
    return rician_of_slices(samples, channel_axis, whole_number("coils", coils, 1, 128))


def add_noise(image: Array, amount: float, kind: str = "gaussian", *, seed: int = 0, axis: Axis = None,
              channel_axis: int = -1, channels: str = "auto", range: float | None = None,
              out: Array | None = None) -> Array:
    """Add noise of a known kind. The same seed gives the same noise on every machine.

    ``kind`` is one of "gaussian" (``amount``: the standard deviation in pixel values), "salt-pepper" (the share of the
    samples), "speckle" (the standard deviation of n in I + I n), "quantization" (the number of levels) and "poisson"
    (photons at white). Integers are rounded and saturated, floats are not clipped. The images of a stack (``axis``) have
    the seeds that follow.
    """
    channels = channels_of(image, channels)
    library, image = adopt(image)
    result = output_for(library, image, out)
    samples, dtype = host_array(image)
    if library is NumPyArrays:
        target = target_for(library, result, samples)
        same = samples.ctypes.data == target.ctypes.data and samples.strides == target.strides
        if not same and np.may_share_memory(samples, target):
            target = np.empty_like(samples)
    else:
        target = np.empty_like(samples)
    try:
        _core.add_noise(samples, target, kind, amount, seed, stack_axes(axis), channel_axis, channels,
                        white_level(dtype, range))
    except TypeError:
        check_options(kind=kind, amount=amount, seed=seed, channel_axis=channel_axis, channels=channels)
        raise
    if target is not result:
        library.store(target if library is NumPyArrays else library.from_host(target, image), result)
    return result if out is None else out


@dataclass(frozen=True)
class Comparison:
    """The difference of an image from the truth. None: not defined for images so small (or so long)."""

    mse: float
    psnr: float
    max_abs: float
    ssim: float | None
    fsim: float | None
    fsimc: float | None


def _compare(truth: Any, image: Any, axis: Axis, channel_axis: int, channels: str, range: float | None,
             ssim: bool, fsim: bool) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    channels = channels_of(truth, channels_of(image, channels))
    first, dtype = host_array(truth, "truth")
    second, other = host_array(image, "image")
    if dtype != other and range is None:
        raise InvalidType(f"truth is {dtype}, image is {other}: say the white level of both with range=")
    try:
        found = _core.compare(first, second, stack_axes(axis), channel_axis, channels, white_level(dtype, range), ssim, fsim)
    except TypeError:
        check_options(channel_axis=channel_axis, channels=channels)
        raise
    return found, first.shape


@overload
def compare(truth: Any, image: Any, *, axis: None = None, channel_axis: int = -1, channels: str = "auto",
            range: float | None = None) -> Comparison: ...
@overload
def compare(truth: Any, image: Any, *, axis: Axis, channel_axis: int = -1, channels: str = "auto",
            range: float | None = None) -> list[Comparison]: ...
def compare(truth: Any, image: Any, *, axis: Axis = None, channel_axis: int = -1, channels: str = "auto",
            range: float | None = None) -> Comparison | list[Comparison]:
    """MSE, PSNR, largest difference, SSIM, FSIM and FSIMc at once. Alpha is ignored."""
    found, _ = _compare(truth, image, axis, channel_axis, channels, range, True, True)
    list_ = [Comparison(**each) for each in found]
    return list_[0] if axis is None else list_


def _metric(name: Literal["psnr", "ssim", "fsim"], truth: Any, image: Any, axis: Axis, channel_axis: int, channels: str,
            range: float | None) -> Any:
    found, shape = _compare(truth, image, axis, channel_axis, channels, range, name == "ssim", name == "fsim")
    values = [each[name] for each in found]
    if None in values:
        raise InvalidArgument(f"{name} is not defined for images of this shape: {shape}")
    return _stacked(values, shape, axis)


def psnr(truth: Any, image: Any, *, axis: Axis = None, channel_axis: int = -1, channels: str = "auto",
         range: float | None = None) -> Any:
    """Peak signal-to-noise ratio in dB, the peak being white (``range``). Infinite for identical images."""
    return _metric("psnr", truth, image, axis, channel_axis, channels, range)


def ssim(truth: Any, image: Any, *, axis: Axis = None, channel_axis: int = -1, channels: str = "auto",
         range: float | None = None) -> Any:
    """Structural similarity (Wang 2004), the mean over the channels. From 11 pixels a side on."""
    return _metric("ssim", truth, image, axis, channel_axis, channels, range)


def fsim(truth: Any, image: Any, *, axis: Axis = None, channel_axis: int = -1, channels: str = "auto",
         range: float | None = None) -> Any:
    """Feature similarity (Zhang 2011) of the luminance. From 16 pixels a side on."""
    return _metric("fsim", truth, image, axis, channel_axis, channels, range)


@dataclass(frozen=True)
class Device:
    """A device that the work can run on; `reason` says why it is not usable."""

    name: str
    description: str
    usable: bool
    reason: str


def devices() -> list[Device]:
    """The devices that the work can run on."""
    return [Device(**each) for each in _core.devices()]
