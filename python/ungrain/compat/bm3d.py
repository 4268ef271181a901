"""The calls of PyPI's package `bm3d` over ungrain's own BM3D: the same arguments, units and results' shape.

    from ungrain.compat import bm3d

    clean = bm3d.bm3d(image, sigma)
    clean = bm3d.bm3d_rgb(image, sigma)

This is another implementation of the published method, with numbers of its own: results are as good, and not the same bits.
What has no counterpart raises `ungrain.Unsupported` (a `NotImplementedError`): kept block matches, the profiles "refilter",
"vn_old" and "deb", the colour space "YCbCr".
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from .._denoise import denoise
from .._errors import InvalidArgument, Unsupported, shown
from .._noise_model import NoiseModel
from ._arguments import whole
from ._block_matching import check_block_matches, deviations, is_deviation, number, parameters_of, steps_of, threads


class BM3DStages(enum.Enum):
    HARD_THRESHOLDING = 1
    WIENER_FILTERING = 2
    ALL_STAGES = 3


class BM3DProfile:
    """The settings that can be changed; what is not changed is ungrain's own choice for the same purpose ("np")."""

    print_info = False
    bs_ht = 8  # pixels: side of a block
    step_ht = 3  # pixels from one reference block to the next
    max_3d_size_ht = 16  # blocks of a group at most
    search_window_ht = 39  # pixels: side of the window that is searched
    lambda_thr3d = None  # the threshold, in deviations of the noise
    bs_wiener = 8
    step_wiener = 3
    max_3d_size_wiener = 32
    search_window_wiener = 39
    num_threads = 0  # 0: one for each processor


class BM3DProfileLC(BM3DProfile):
    """Low complexity: "lc"."""

    step_ht, search_window_ht = 6, 25
    step_wiener, search_window_wiener, max_3d_size_wiener = 5, 25, 16


class BM3DProfileVN(BM3DProfile):
    """Very noisy images: "vn"."""

    step_ht, max_3d_size_ht = 4, 32
    bs_wiener, step_wiener = 11, 6


class BM3DProfileHigh(BM3DProfile):
    """High quality: "high"."""

    step_ht = step_wiener = 2


def _count(attribute: str, value: Any) -> int:
    return whole(attribute, value, 1, 10000)


def _window(attribute: str, value: Any) -> int:
    return _count(attribute, value) // 2 * 2 + 1


# bm3d's own numbers follow sigma: "vn" needs none of its own.
_STRINGS: dict[str, dict[str, Any]] = {"np": {}, "lc": {"profile": "fast"}, "vn": {}, "high": {"profile": "high"}}
_CLASSES = {"BM3DProfile": "np", "BM3DProfileLC": "lc", "BM3DProfileVN": "vn", "BM3DProfileHigh": "high"}
_CONVERTERS = {"bs_ht": ("patch", _count), "step_ht": ("spacing", _count), "max_3d_size_ht": ("group", _count),
               "search_window_ht": ("search", _window), "lambda_thr3d": ("lambda_", number),
               "bs_wiener": ("wiener_patch", _count), "step_wiener": ("wiener_spacing", _count),
               "max_3d_size_wiener": ("wiener_group", _count), "search_window_wiener": ("wiener_search", _window),
               "num_threads": ("threads", threads)}


def _image(z: Any) -> np.ndarray:
    image = np.asarray(z)
    if image.dtype.kind == "c":
        raise Unsupported("z takes real numbers, got complex ones")
    if image.ndim not in (2, 3):
        raise InvalidArgument(f"z takes an image of rows and columns, or of rows, columns and channels, got shape {image.shape}")
    return image.astype(np.float32)


def _psd(sigma_psd: Any, image: np.ndarray) -> np.ndarray:
    """As NoiseModel has it: its mean is the variance of a pixel. The package's is that of the whole image's transform."""
    psd = np.asarray(sigma_psd, float)
    if psd.shape[:2] != image.shape[:2] or psd.ndim > 3 or (psd.ndim == 3 and psd.shape[2] not in (1, *image.shape[2:])):
        raise InvalidArgument(f"sigma_psd takes a power spectral density of the image's size, {image.shape}, got {psd.shape}")
    return psd / (image.shape[0] * image.shape[1])


def _white(z: Any) -> float:
    """The white level that sigma is relative to, by which bm3d chooses its numbers: 1 or 255, or the brightest pixels."""
    image = np.asarray(z)
    if image.dtype.kind == "u":
        return float(np.iinfo(image.dtype).max)
    finite = image[np.isfinite(image)]
    peak = float(np.percentile(np.abs(finite), 99)) if finite.size else 0.0
    return 1.0 if peak <= 1.5 else 255.0 if peak <= 1.5 * 255 else peak


def bm3d(z: Any, sigma_psd: Any, profile: BM3DProfile | str = "np", stage_arg: Any = BM3DStages.ALL_STAGES,
         blockmatches: Any = (False, False)) -> np.ndarray:
    """As bm3d.bm3d: an image, or one of several channels, becomes float32.

    ``sigma_psd`` is the noise's standard deviation, one for all or a list with one for each channel, or its power spectral
    density of the image's size: frequency 0 first, mean over the number of pixels the variance of a pixel.
    ``profile`` is "np" or "vn" (`bm3d`), "lc" and "high" (`bm3d` with ``profile="fast"`` and ``"high"``), or an object of
    BM3DProfile, of this module or of the package: settings of it that were changed are taken over. An array as
    ``stage_arg`` is an estimate of the clean image, instead of the first step. Each channel is filtered by itself, where
    the package takes the first one's block matches for all.
    """
    check_block_matches(blockmatches)
    image = _image(z)
    parameters = parameters_of(profile, _STRINGS, _CLASSES, _CONVERTERS)
    pilot = None
    if isinstance(stage_arg, np.ndarray):
        pilot = stage_arg.astype(np.float32)
        if pilot.size != image.size or pilot.shape[:2] != image.shape[:2]:
            raise InvalidArgument(f"stage_arg takes an estimate of z's shape, {image.shape}, got {pilot.shape}")
    else:
        parameters["steps"] = steps_of(stage_arg)
    planes = image.reshape(*image.shape[:2], -1)
    count = planes.shape[2]
    if is_deviation(sigma_psd):
        noises: list[dict[str, Any]] = [{"sigma": each} for each in deviations(sigma_psd, count)]
    else:
        psd = _psd(sigma_psd, planes).reshape(*planes.shape[:2], -1)
        noises = [{"noise_model": NoiseModel.from_psd(psd[..., c % psd.shape[2]])} for c in range(count)]
    result, white = np.empty_like(planes), _white(z)
    for c in range(count):
        own: dict[str, Any] = {} if pilot is None else {"pilot": np.ascontiguousarray(pilot.reshape(planes.shape)[..., c])}
        result[..., c] = denoise(np.ascontiguousarray(planes[..., c]), "bm3d", range=white, **noises[c], **parameters, **own)
    return result[..., 0] if count == 1 else result


def bm3d_rgb(z: Any, sigma_psd: Any, profile: BM3DProfile | str = "np", colorspace: str = "opp") -> np.ndarray:
    """As bm3d.bm3d_rgb: red, green and blue are filtered as luminance and colour differences, with luminance's groups.

    ``sigma_psd`` as for bm3d(); a power spectral density is [row, column], or [row, column, channel].
    """
    image = _image(z)
    if image.ndim != 3 or image.shape[2] != 3:
        raise InvalidArgument(f"z takes an image of 3 channels, got shape {image.shape}")
    if colorspace != "opp":
        raise Unsupported(f"colorspace takes 'opp', got {shown(colorspace)}")
    parameters = parameters_of(profile, _STRINGS, _CLASSES, _CONVERTERS)
    noise: dict[str, Any]
    if is_deviation(sigma_psd):
        values = deviations(sigma_psd, 3)
        noise = {"sigma": values if len(set(values)) > 1 else values[0]}
    else:
        noise = {"noise_model": NoiseModel.from_psd(_psd(sigma_psd, image), 3)}
    return denoise(image, "bm3d", range=_white(z), channels="rgb", **noise, **parameters)


__all__ = ["BM3DProfile", "BM3DProfileHigh", "BM3DProfileLC", "BM3DProfileVN", "BM3DStages", "bm3d", "bm3d_rgb"]
