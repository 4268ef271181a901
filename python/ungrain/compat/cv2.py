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
from .._errors import InvalidArgument, Unsupported

BORDER_CONSTANT, BORDER_REPLICATE, BORDER_REFLECT, BORDER_WRAP, BORDER_REFLECT_101 = 0, 1, 2, 3, 4
BORDER_DEFAULT = BORDER_REFLECT_101
BORDER_ISOLATED = 16
NORM_L1, NORM_L2 = 2, 4

_BORDERS = {BORDER_CONSTANT: "constant", BORDER_REPLICATE: "clamp", BORDER_REFLECT: "symmetric", BORDER_WRAP: "wrap",
            BORDER_REFLECT_101: "mirror"}

# Of three channels OpenCV adds up the absolute differences, we take the root of their mean square. The sum is sqrt(3) to
# 3 times as large, 2.4 times for Gaussian noise and 3 times at gray edges. 2.6 brings the results nearest to OpenCV's on
# scikit-image's astronaut, coffee and chelsea with noise of 20, d from 5 to 11, sigmaColor from 30 to 150: 45 dB or more.
_SUM_OF_DIFFERENCES = 2.6


def _source(src: Any, dst: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The image, and the caller's array where the result fits it; OpenCV makes a new one where it does not."""
    image = np.asarray(src)
    fits = isinstance(dst, np.ndarray) and dst.shape == image.shape and dst.dtype == image.dtype
    return image, dst if fits else None


def _separate(image: np.ndarray) -> str:
    """Blue, green and red, or any channels: none is alpha, and no method here asks which is which."""
    return "multi" if image.ndim == 3 else "gray"


def bilateralFilter(src: Any, d: int, sigmaColor: float, sigmaSpace: float, dst: Any = None,
                    borderType: int = BORDER_DEFAULT) -> np.ndarray:
    """As cv2.bilateralFilter, of uint8, uint16, float16 or float32 with 1 to 4 channels.

    One channel: the same filter, to one step of 8 bits, or 2e-4 of the range in float, where OpenCV looks its weights up
    in a table. Three channels: OpenCV weighs by the sum of the absolute differences, this by the root of their mean
    square, with ``sigmaColor`` divided by 2.6. The results denoise alike (PSNR within 0.4 dB on photographs, 0.7 dB on
    a checkerboard of strong colours) but are not the same: 45 dB or more between them on photographs, 40 dB there.
    """
    image, out = _source(src, dst)
    border = _BORDERS.get(borderType & ~BORDER_ISOLATED)
    if border is None:
        raise Unsupported(f"borderType takes BORDER_CONSTANT, REPLICATE, REFLECT, WRAP or REFLECT_101, got {borderType}")
    # OpenCV's own rules for what is left open.
    sigma_range = sigmaColor if sigmaColor > 0 else 1.0
    sigma_space = sigmaSpace if sigmaSpace > 0 else 1.0
    radius = max(1, d // 2 if d > 0 else int(np.rint(sigma_space * 1.5)))
    if image.ndim == 3 and image.shape[2] > 1:
        sigma_range /= _SUM_OF_DIFFERENCES
    return denoise(image, "bilateral", radius=radius, sigma_space=sigma_space, sigma_range=sigma_range, window="disc",
                   border=border, channels=_separate(image), out=out)


def _windows(templateWindowSize: int, searchWindowSize: int) -> dict[str, Any]:
    return {"patch": templateWindowSize // 2 * 2 + 1, "search": searchWindowSize // 2 * 2 + 1}


def fastNlMeansDenoising(src: Any, dst: Any = None, h: float | Sequence[float] = 3.0, templateWindowSize: int = 7,
                         searchWindowSize: int = 21, normType: int = NORM_L2) -> np.ndarray:
    """As cv2.fastNlMeansDenoising with NORM_L2, of uint8, uint16, float16 or float32 with 1 to 4 channels.

    The same filter, but OpenCV rounds the patches' distances and drops weights below 0.001. With ``h`` at the noise's
    level or above results differ by 2 steps of 8 bits at most; at half of it, where small weights are many, by up to 8
    steps, and the root mean square by 1.2. ``h`` is in pixel values. The form with ``h`` as the second argument is
    understood too.
    """
    if dst is not None and not isinstance(dst, np.ndarray):
        dst, h = (h if isinstance(h, np.ndarray) else None), dst
    if isinstance(h, (Sequence, np.ndarray)):
        if len(h) != 1:
            raise Unsupported("h takes one strength; OpenCV's list of one for each channel has no counterpart")
        h = h[0]
    if normType != NORM_L2:
        raise Unsupported("normType takes NORM_L2; patches are compared by squared differences")
    image, out = _source(src, dst)
    return denoise(image, "nlm", h=float(h), sigma=0.0, patch_sigma=0.0, self="one", border="mirror",
                   channels=_separate(image), out=out, **_windows(templateWindowSize, searchWindowSize))


def fastNlMeansDenoisingColored(src: Any, dst: Any = None, h: float = 3.0, hColor: float = 3.0,
                                templateWindowSize: int = 7, searchWindowSize: int = 21) -> np.ndarray:
    """As cv2.fastNlMeansDenoisingColored, of uint8 with 3 channels, or with 4 of which the last becomes 255.

    Works in the same 8-bit CIE-Lab of linear blue, green and red, L with ``h`` and a, b together with ``hColor``. Differs
    by the rounding of both conversions and of OpenCV's weights: 45 dB or more between the results.
    """
    image, out = _source(src, dst)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (3, 4):
        raise InvalidArgument(f"src takes uint8 of 3 or 4 channels, got {image.dtype} of shape {image.shape}")
    lab = np.array(image[..., :3], order="C")
    _core.bgr_to_lab(lab)
    windows = _windows(templateWindowSize, searchWindowSize)
    for channels, strength in ((slice(0, 1), h), (slice(1, 3), hColor)):
        part = lab[..., channels]
        denoise(part, "nlm", h=float(strength), sigma=0.0, patch_sigma=0.0, self="one", border="mirror",
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
    if ksize < 1 or ksize % 2 == 0:
        raise InvalidArgument(f"ksize takes an odd number from 1 to 129, got {ksize}")
    image, out = _source(src, dst)
    return denoise(image, "median", radius=ksize // 2, border="clamp", channels=_separate(image), out=out)


__all__ = ["BORDER_CONSTANT", "BORDER_DEFAULT", "BORDER_ISOLATED", "BORDER_REFLECT", "BORDER_REFLECT_101",
           "BORDER_REPLICATE", "BORDER_WRAP", "NORM_L1", "NORM_L2", "bilateralFilter", "fastNlMeansDenoising",
           "fastNlMeansDenoisingColored", "medianBlur"]
