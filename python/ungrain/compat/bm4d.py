"""The call of PyPI's package `bm4d` over ungrain's own BM4D: the same arguments, units and results' shape.

    from ungrain.compat import bm4d

    clean = bm4d.bm4d(volume, sigma)

This is another implementation of the published method, with numbers of its own: results are as good, and not the same bits.
An estimate as `stage_arg` and kept block matches raise `ungrain.Unsupported` (a `NotImplementedError`), and so does whatever
else has no counterpart.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from .._errors import InvalidArgument, Unsupported, shown
from .._volume import denoise_volume
from ._arguments import whole
from ._block_matching import check_block_matches, deviations, is_deviation, number, parameters_of, steps_of, threads


class BM4DStages(enum.Enum):
    HARD_THRESHOLDING = 1
    WIENER_FILTERING = 2
    ALL_STAGES = 3


class BM4DProfile:
    """The settings that can be changed; what is not changed is ungrain's own choice for the same purpose ("np")."""

    print_info = False
    bs_ht = (4, 4, 4)  # voxels: sides of a block
    step_ht = (3, 3, 3)  # voxels from one reference block to the next
    max_stack_size_ht = 16  # blocks of a group at most
    search_window_ht = (7, 7, 7)  # voxels: half the side of the box that is searched
    lambda_thr = None  # the threshold, in deviations of the noise
    bs_wiener = (5, 5, 5)
    step_wiener = (3, 3, 3)
    max_stack_size_wiener = 32
    search_window_wiener = (7, 7, 7)
    num_threads = 0  # 0: one for each processor


class BM4DProfileLC(BM4DProfile):
    """Low complexity: "lc"."""

    max_stack_size_wiener = 16
    search_window_ht = (4, 4, 4)
    search_window_wiener = (4, 4, 4)


def _side(attribute: str, value: Any) -> int:
    sides = {whole(attribute, each, 0, 10000) for each in np.ravel(value)}
    if len(sides) != 1:
        raise Unsupported(f"profile.{attribute} takes the same size along all axes, got {shown(value)}")
    return sides.pop()


def _search(attribute: str, value: Any) -> int:
    return 2 * _side(attribute, value) + 1


def _count(attribute: str, value: Any) -> int:
    return whole(attribute, value, 1, 10000)


_STRINGS: dict[str, dict[str, Any]] = {"np": {}, "lc": {"profile": "fast"}}
_CLASSES = {"BM4DProfile": "np", "BM4DProfileLC": "lc"}
_CONVERTERS = {"bs_ht": ("cube", _side), "step_ht": ("stride", _side), "max_stack_size_ht": ("group", _count),
               "search_window_ht": ("search", _search), "lambda_thr": ("lambda_", number),
               "bs_wiener": ("wiener_cube", _side), "step_wiener": ("wiener_stride", _side),
               "max_stack_size_wiener": ("wiener_group", _count), "search_window_wiener": ("wiener_search", _search),
               "num_threads": ("threads", threads)}


def _of_psd(sigma_psd: Any, shape: tuple[int, ...]) -> tuple[float, np.ndarray]:
    """The deviation of a voxel, and how voxels are correlated by their offset, (0, 0, 0) in the middle."""
    psd = np.asarray(sigma_psd, float)
    if psd.shape != shape:
        raise InvalidArgument(f"sigma_psd takes a power spectral density of the volume's size, {shape}, got {psd.shape}")
    if not np.all(np.isfinite(psd)) or np.any(psd < 0):
        raise InvalidArgument("sigma_psd takes a power spectral density of numbers from 0 up")
    covariance = np.fft.ifftn(psd).real / psd.size  # by offset, with its negative ones at the end of each axis
    variance = float(covariance[0, 0, 0])
    if variance == 0:
        return 0.0, np.ones((1, 1, 1))
    offsets = [np.arange(-reach, reach + 1) for reach in (min(4, (side - 1) // 2) for side in shape)]
    return variance**0.5, covariance[np.ix_(*offsets)] / variance


def bm4d(z: Any, sigma_psd: Any, profile: BM4DProfile | str = "np", stage_arg: Any = BM4DStages.ALL_STAGES,
         blockmatches: Any = (False, False)) -> np.ndarray:
    """As bm4d.bm4d: a volume of at least 5 voxels along each axis becomes float32.

    ``profile`` is "np" (`bm4d`), "lc" (`bm4d` with ``profile="fast"``), or an object of BM4DProfile, of this module or of
    the package: settings of it that were changed are taken over. ``sigma_psd`` is the noise's standard deviation, or its
    power spectral density of the volume's size: frequency 0 first, mean over the number of voxels the variance of a voxel.
    """
    check_block_matches(blockmatches)
    volume = np.asarray(z)
    if volume.dtype.kind == "c":
        raise Unsupported("z takes real numbers, got complex ones")
    if volume.ndim == 2 or (volume.ndim == 3 and volume.shape[2] < 5):
        raise Unsupported(f"z of shape {volume.shape} is no volume of 5 slices or more; compat.bm3d filters images")
    if volume.ndim != 3:
        raise InvalidArgument(f"z takes a volume of three axes, got shape {volume.shape}")
    if isinstance(stage_arg, np.ndarray):
        raise Unsupported("stage_arg takes ALL_STAGES or HARD_THRESHOLDING; an estimate of the clean volume has no counterpart")
    steps = steps_of(stage_arg)
    parameters = parameters_of(profile, _STRINGS, _CLASSES, _CONVERTERS)
    if is_deviation(sigma_psd):
        parameters["sigma"] = deviations(sigma_psd, 1)[0]
    else:
        parameters["sigma"], parameters["correlation"] = _of_psd(sigma_psd, volume.shape)
    return denoise_volume(volume.astype(np.float32, order="C"), "bm4d", steps=steps, range=1.0, **parameters)


__all__ = ["BM4DProfile", "BM4DProfileLC", "BM4DStages", "bm4d"]
