"""Functions of scikit-image's `skimage.restoration` over ungrain: the same arguments, units and results' types.

    from ungrain.compat import skimage as restoration

As there, integers are scaled to 0 to 1 and come back as float64; floats keep their type. All arithmetic is float32.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._denoise import denoise, true_or_false
from .._errors import InvalidArgument, InvalidType, Unsupported, shown
from .._volume import denoise_volume
from ._arguments import real, whole
from ._nlm3d import needs_nlm3d

_BORDERS = {"constant": "constant", "edge": "clamp", "symmetric": "symmetric", "reflect": "mirror", "wrap": "wrap"}
_FROM_MEDIAN = 0.6744897501960817  # of a normal distribution: the median of |x|, in standard deviations


def _as_float(image: Any, preserve_range: bool = False) -> tuple[np.ndarray, np.dtype]:
    """As float32, and the result's type in scikit-image."""
    image = np.asarray(image)
    if image.dtype.kind == "f":
        return image.astype(np.float32, copy=False), np.dtype(np.float32 if image.dtype.itemsize <= 4 else np.float64)
    if image.dtype.kind == "b":
        return image.astype(np.float32), np.dtype(np.float64)
    if image.dtype.kind not in "iu":
        raise InvalidType(f"image takes integers or floats, got {image.dtype}")
    if preserve_range:
        return image.astype(np.float32), np.dtype(np.float64)
    scaled = (image / np.float64(np.iinfo(image.dtype).max)).astype(np.float32)
    return np.maximum(scaled, np.float32(-1)), np.dtype(np.float64)


def _layout(image: np.ndarray, channel_axis: int | None, function: str) -> dict[str, Any]:
    if image.ndim != (2 if channel_axis is None else 3):
        raise Unsupported(f"{function} takes 2-D images, with channel_axis for those of several channels; "
                          f"got shape {image.shape} and channel_axis={shown(channel_axis)}")
    # The range scales strengths, which are all given here: no warning about it.
    if channel_axis is None:
        return {"range": 1.0}
    return {"channel_axis": whole("channel_axis", channel_axis, -3, 2), "channels": "multi", "range": 1.0}


def denoise_bilateral(image: Any, win_size: int | None = None, sigma_color: float | None = None, sigma_spatial: float = 1,
                      bins: int = 10000, mode: str = "constant", cval: float = 0, *,
                      channel_axis: int | None = None) -> np.ndarray:
    """As skimage.restoration.denoise_bilateral, of up to 4 channels. ``bins`` is ignored: no table is used.

    Colours are compared by their Euclidean distance over the number of channels, as scikit-image does. Its own (0.26)
    reads its table of spatial weights one place further out in every row, so that results differ where ``sigma_spatial``
    is small against the window, and of integers it takes the largest value before they are scaled, so that
    ``sigma_color`` counts for little there; this is the filter that its documentation describes. Of floats with flat
    spatial weights the two agree to 1e-4 of the range at ``bins=200000``, where none is negative: then its table is too
    short.
    """
    del bins
    values, dtype = _as_float(image)
    layout = _layout(values, channel_axis, "denoise_bilateral")
    if win_size is None:
        win_size = max(5, 2 * math.ceil(3 * real("sigma_spatial", sigma_spatial, 0)) + 1)
    radius = (whole("win_size", win_size, 1, 257) - 1) // 2  # even numbers as in scikit-image
    if mode not in _BORDERS:
        raise InvalidArgument(f"mode takes one of {', '.join(_BORDERS)}, got {shown(mode)}")
    if values.size == 0 or values.min() == values.max():
        return np.asarray(image)
    strength = real("sigma_color", sigma_color or values.std(), 0)
    channels = 1 if channel_axis is None else values.shape[channel_axis]
    if mode == "constant" and cval:
        values = values - np.float32(cval)  # pixels outside are then 0
    result = denoise(values, "bilateral", radius=radius, sigma_space=real("sigma_spatial", sigma_spatial, 0),
                     sigma_range=strength * math.sqrt(channels), border=_BORDERS[mode], **layout)
    if mode == "constant" and cval:
        result += np.float32(cval)
    return result.astype(dtype, copy=False)


def denoise_nl_means(image: Any, patch_size: int = 7, patch_distance: int = 11, h: float = 0.1, fast_mode: bool = True,
                     sigma: float = 0.0, *, preserve_range: bool = False, channel_axis: int | None = None) -> np.ndarray:
    """As skimage.restoration.denoise_nl_means, of 2-D images and of volumes with up to 4 channels.

    With ``fast_mode=False`` (Gaussian patches) the filter that its documentation describes, but scikit-image drops weights
    below exp(-5): where ``h`` is the noise's level results differ by up to 0.035 of the range at single pixels, 0.004 in
    the root mean square, at 0.6 of it by 0.05 and 0.009; and in the frame of ``patch_distance`` pixels, where it searches
    inside the image only and this in the mirrored border as well. With ``fast_mode=True`` its own (0.26) sums
    ``patch_size - 1`` rows and columns of each patch but divides by ``patch_size`` squared; this takes whole patches with
    ``h`` larger by ``patch_size / (patch_size - 1)``, which comes nearest: 0.025 of the range in the root mean square
    (patches of 3 pixels: 0.035), and PSNR from 1.2 dB below its own to 4.5 dB above.

    Volumes go through nlm3d: patches are flat boxes of up to 7 voxels in both modes, a ``patch_distance`` above 10 counts as
    10, and each channel is filtered by itself. On a phantom of 20 slices, with patches of 3 and 5 voxels, ``h`` of 0.6 and 1
    of the noise's level and its ``sigma`` given, PSNR is from 2.4 dB below to 3.9 dB above scikit-image's (0.26).
    """
    fast_mode = true_or_false("fast_mode", fast_mode)
    values, dtype = _as_float(image, true_or_false("preserve_range", preserve_range))
    if values.ndim == (3 if channel_axis is None else 4):
        return _nl_means_of_volume(values, patch_size, patch_distance, h, fast_mode, sigma, channel_axis).astype(dtype, copy=False)
    layout = _layout(values, channel_axis, "denoise_nl_means")
    side = whole("patch_size", patch_size, 0, 31) // 2 * 2 + 1
    patch_sigma = 0.0 if fast_mode else (side - 1) / 4
    strength = real("h", h, 0)
    if fast_mode and side > 1:  # patches as far apart, on average, as scikit-image has them
        strength *= side / (side - 1)
    result = denoise(values, "nlm", h=strength, sigma=real("sigma", sigma, 0), patch=side, patch_sigma=patch_sigma,
                     search=2 * whole("patch_distance", patch_distance, 0, 127) + 1, self="one", border="mirror", **layout)
    return result.astype(dtype, copy=False)


def _nl_means_of_volume(values: np.ndarray, patch_size: int, patch_distance: int, h: float, fast_mode: bool, sigma: float,
                        channel_axis: int | None) -> np.ndarray:
    needs_nlm3d("denoise_nl_means")
    side = whole("patch_size", patch_size, 0, 7) // 2 * 2 + 1
    strength = real("h", h, 0)
    if fast_mode and side > 1:
        strength *= (side / (side - 1)) ** 1.5
    return denoise_volume(values, "nlm3d", h=strength, sigma=real("sigma", sigma, 0), patch=side, prefilter=0, self="one",
                          search=2 * min(10, whole("patch_distance", patch_distance, 0, None)) + 1, channel_axis=channel_axis,
                          range=1.0)


def _finest_details(image: Any) -> Any:
    """The coefficients of a Daubechies-2 wavelet that are high-pass along every axis; edges mirrored."""
    root3 = math.sqrt(3)
    taps = [tap / math.sqrt(32) for tap in (-1 - root3, 3 + root3, root3 - 3, 1 - root3)]
    for axis in range(image.ndim):
        size = image.shape[axis]
        padded = np.pad(image, [(3, 3) if a == axis else (0, 0) for a in range(image.ndim)], mode="symmetric")
        padded = np.moveaxis(padded, axis, 0)
        count = (size + 3) // 2
        image = np.moveaxis(sum(tap * padded[4 - j:4 - j + 2 * count:2][:count] for j, tap in enumerate(taps)), 0, axis)
    return image


def estimate_sigma(image: Any, average_sigmas: bool = False, *, channel_axis: int | None = None) -> Any:
    """As skimage.restoration.estimate_sigma, without PyWavelets: the same number to 1e-6 of it.

    `ungrain.estimate_sigma` is the better estimate: it knows of textures, of noise cut off at black and white, and of
    compression.
    """
    image = np.asarray(image)
    if channel_axis is not None:
        sigmas = [estimate_sigma(plane) for plane in np.moveaxis(image, channel_axis, 0)]
        return np.mean(sigmas) if average_sigmas else sigmas
    if image.shape[-1] <= 4:
        warnings.warn(f"image is size {image.shape[-1]} on the last axis, but channel_axis is None. If this is a color "
                      "image, please set channel_axis=-1 for proper noise estimation.", stacklevel=2)
    details = _finest_details(image.astype(np.float64))
    return np.median(np.abs(details[np.nonzero(details)])) / _FROM_MEDIAN


__all__ = ["denoise_bilateral", "denoise_nl_means", "estimate_sigma"]
