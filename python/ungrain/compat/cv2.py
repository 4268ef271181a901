"""OpenCV's denoising functions over ungrain: the same arguments, units and borders.

    from ungrain.compat import cv2

They take what OpenCV's take, and 16-bit and float images where OpenCV's take 8 bits only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._denoise import denoise
from .._errors import InvalidArgument, Unsupported, shown
from ._arguments import real, whole

BORDER_CONSTANT, BORDER_REPLICATE, BORDER_REFLECT, BORDER_WRAP, BORDER_REFLECT_101 = 0, 1, 2, 3, 4
BORDER_DEFAULT = BORDER_REFLECT_101
BORDER_ISOLATED = 16
NORM_L1, NORM_L2 = 2, 4

_BORDERS = {BORDER_CONSTANT: "constant", BORDER_REPLICATE: "clamp", BORDER_REFLECT: "symmetric", BORDER_WRAP: "wrap",
            BORDER_REFLECT_101: "mirror"}

_LARGEST_RADIUS = 128
_NOTHING = 1e-6  # smaller sigmas count as 0: OpenCV returns the image as it is


def _source(src: Any, dst: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The image, and the caller's array where the result fits it; like OpenCV, a new array otherwise."""
    image = np.asarray(src)
    fits = isinstance(dst, np.ndarray) and dst.shape == image.shape and dst.dtype == image.dtype
    if image.ndim == 3 and image.shape[2] == 1 and not fits:  # for one channel OpenCV returns rows and columns
        return _source(image[..., 0], dst)
    return image, dst if fits else None


def _separate(image: np.ndarray) -> str:
    """Blue, green and red, or any channels: none is alpha, and no method here distinguishes them."""
    return "multi" if image.ndim == 3 else "gray"


def bilateralFilter(src: Any, d: int, sigmaColor: float, sigmaSpace: float, dst: Any = None,
                    borderType: int = BORDER_DEFAULT) -> np.ndarray:
    """As cv2.bilateralFilter, of uint8, uint16, float16 or float32 with 1 to 4 channels, d up to 257.

    The same filter, also of colours, which OpenCV compares by the sum of their absolute differences: to one step of
    8 bits, or 2e-4 of the range in float, where OpenCV looks its weights up in a table. As in OpenCV 5, a sigma of 0 or
    less returns the image as it is.
    """
    image, out = _source(src, dst)
    border = _BORDERS.get(whole("borderType", borderType, None, None) & ~BORDER_ISOLATED)
    if border is None:
        raise Unsupported(f"borderType takes BORDER_CONSTANT, REPLICATE, REFLECT, WRAP or REFLECT_101, got {shown(borderType)}")
    sigma_range, sigma_space = real("sigmaColor", sigmaColor), real("sigmaSpace", sigmaSpace)
    diameter = whole("d", d, None, 2 * _LARGEST_RADIUS + 1)
    if min(sigma_range, sigma_space) <= _NOTHING:
        return denoise(image, "median", radius=0, channels=_separate(image), nonfinite="keep", out=out)
    radius = max(1, diameter // 2 if diameter > 0 else int(np.rint(sigma_space * 1.5)))  # OpenCV's own rule
    if radius > _LARGEST_RADIUS:
        raise InvalidArgument(f"sigmaSpace makes a radius of {radius}: up to {_LARGEST_RADIUS} are supported; d says another")
    return denoise(image, "bilateral", radius=radius, sigma_space=sigma_space, sigma_range=sigma_range, window="disc",
                   colour_distance="city-block", border=border, channels=_separate(image), out=out)


def _windows(templateWindowSize: int, searchWindowSize: int) -> dict[str, Any]:
    template = whole("templateWindowSize", templateWindowSize, 0, 31)
    search = whole("searchWindowSize", searchWindowSize, 0, 255)
    return {"patch": template // 2 * 2 + 1, "search": search // 2 * 2 + 1}


def fastNlMeansDenoising(src: Any, dst: Any = None, h: float | Sequence[float] = 3.0, templateWindowSize: int = 7,
                         searchWindowSize: int = 21, normType: int = NORM_L2) -> np.ndarray:
    """As cv2.fastNlMeansDenoising with NORM_L2, of uint8, uint16, float16 or float32 with 1 to 4 channels.

    The same filter, but OpenCV rounds the patches' distances and drops weights below 0.001. With ``h`` at the noise's
    level or above results differ by 1.2 steps of 8 bits in the root mean square at most, by up to 18 at single pixels of
    photographs that few others look like; at half of it, where small weights are many, by 4 and by 28. ``h`` is in pixel
    values. The form with ``h`` as the second argument is understood too.
    """
    image = np.asarray(src)
    if dst is not None and not (isinstance(dst, np.ndarray) and dst.ndim == image.ndim):  # no image: the strength
        dst, h = (h if isinstance(h, np.ndarray) else None), dst
    if isinstance(h, (Sequence, np.ndarray)) and not isinstance(h, str):
        if len({real("h", each) for each in h}) != 1:
            raise Unsupported("h takes one strength; channels that differ in theirs have no counterpart here")
        h = h[0]
    if normType != NORM_L2:
        raise Unsupported("normType takes NORM_L2; patches are compared by squared differences")
    image, out = _source(image, dst)
    return denoise(image, "nlm", h=real("h", h, 0), sigma=0.0, patch_sigma=0.0, self="one", border="mirror",
                   channels=_separate(image), out=out, **_windows(templateWindowSize, searchWindowSize))


def fastNlMeansDenoisingColored(src: Any, dst: Any = None, h: float = 3.0, hColor: float = 3.0,
                                templateWindowSize: int = 7, searchWindowSize: int = 21) -> np.ndarray:
    """As cv2.fastNlMeansDenoisingColored, of uint8 with 3 channels, or with 4 of which the last becomes 255.

    Works in the same 8-bit CIE-Lab of linear blue, green and red, L with ``h`` and a, b together with ``hColor``. Differs
    by the rounding of both conversions and of OpenCV's weights: 45 dB or more between the results with strengths of half
    the noise's level or more, 40 dB below.
    """
    image, out = _source(src, dst)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (3, 4):
        raise InvalidArgument(f"src takes uint8 of 3 or 4 channels, got {image.dtype} of shape {image.shape}")
    lab = np.array(image[..., :3], order="C")
    _core.bgr_to_lab(lab)
    windows = _windows(templateWindowSize, searchWindowSize)
    for channels, strength in ((slice(0, 1), real("h", h, 0)), (slice(1, 3), real("hColor", hColor, 0))):
        part = lab[..., channels]
        denoise(part, "nlm", h=strength, sigma=0.0, patch_sigma=0.0, self="one", border="mirror",
                channels="multi", out=part, **windows)
    _core.lab_to_bgr(lab)
    if out is None and image.shape[2] == 3:
        return lab
    if out is None:
        out = np.empty_like(image)
    out[..., :3] = lab
    out[..., 3:] = 255
    return out


def medianBlur(src: Any, ksize: int, dst: Any = None) -> np.ndarray:
    """As cv2.medianBlur, of uint8, uint16, float16 or float32 with 1 to 4 channels, ksize up to 129. The same bits."""
    side = whole("ksize", ksize, 1, 129)
    if side % 2 == 0:
        raise InvalidArgument(f"ksize takes an odd number from 1 to 129, got {shown(ksize)}")
    image, out = _source(src, dst)
    return denoise(image, "median", radius=side // 2, border="clamp", channels=_separate(image), out=out)


__all__ = ["BORDER_CONSTANT", "BORDER_DEFAULT", "BORDER_ISOLATED", "BORDER_REFLECT", "BORDER_REFLECT_101",
           "BORDER_REPLICATE", "BORDER_WRAP", "NORM_L1", "NORM_L2", "bilateralFilter", "fastNlMeansDenoising",
           "fastNlMeansDenoisingColored", "medianBlur"]
