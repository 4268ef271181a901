"""What becomes of arrays: no Qt, no napari."""

import numpy as np
import pytest
import ungrain
from napari_ungrain import KINDS, denoise_array
from napari_ungrain._arrays import FRAMES, IMAGES, VOLUMES, kinds_for, methods_for, white_level

RANDOM = np.random.default_rng(1)
FAST = {"profile": "fast"}


def noisy(*shape, dtype=np.uint8, white=255):
    ramp = np.linspace(0.3, 0.6, shape[-1] if shape[-1] > 4 else shape[-2])
    ramp = ramp if shape[-1] > 4 else ramp[:, None]
    values = white * (ramp + RANDOM.normal(0, 0.05, shape))
    return values.astype(dtype)


def test_an_image_is_what_the_package_makes_of_it():
    image = noisy(40, 48)
    np.testing.assert_array_equal(denoise_array(image, **FAST), ungrain.denoise(image, **FAST))


def test_images_of_a_stack_each_by_itself():
    stack = noisy(2, 3, 40, 48, dtype=np.uint16, white=4000)
    result = denoise_array(stack, "nlm", sigma=200)
    assert result.dtype == np.uint16 and result.shape == stack.shape
    np.testing.assert_array_equal(result[1, 2], ungrain.nlm(stack[1, 2], sigma=200))


def test_colours():
    image = noisy(40, 48, 3)
    np.testing.assert_array_equal(denoise_array(image, rgb=True, **FAST), ungrain.denoise(image, **FAST))
    stack = noisy(2, 40, 48, 3)
    np.testing.assert_array_equal(denoise_array(stack, rgb=True, **FAST)[1], ungrain.denoise(stack[1], **FAST))


def test_a_volume_is_a_solid():
    volume = noisy(12, 32, 32)
    result = denoise_array(volume, "bm4d", kind=VOLUMES, spacing=(2, 1, 1), **FAST)
    np.testing.assert_array_equal(result, ungrain.denoise_volume(volume, spacing=(2, 1, 1), **FAST))
    series = np.stack([volume, volume[::-1]])
    np.testing.assert_array_equal(denoise_array(series, "nlm3d", kind=VOLUMES, sigma=12)[1], ungrain.nlm3d(volume[::-1], sigma=12))


def test_frames_are_denoised_together():
    clip = noisy(5, 40, 48)
    result = denoise_array(clip, kind=FRAMES, sigma=12, **FAST)
    np.testing.assert_array_equal(result, np.stack(list(ungrain.denoise_video(clip, sigma=12, **FAST))))
    assert result.std(axis=(1, 2)).mean() < denoise_array(clip, sigma=12, **FAST).std() * 1.05


def test_dask_arrays_are_read_piece_by_piece():
    dask = pytest.importorskip("dask.array")
    stack = noisy(3, 40, 48)
    np.testing.assert_array_equal(denoise_array(dask.from_array(stack, chunks=(1, 40, 48)), **FAST), denoise_array(stack, **FAST))


def test_white_of_floats():
    assert white_level(noisy(8, 8)) is None
    assert white_level(noisy(8, 8, dtype=np.float32, white=1)) is None
    bright = noisy(3, 8, 8, dtype=np.float32, white=1000)
    bright[1, 2, 3] = np.nan
    assert 500 < white_level(bright) < 1000
    assert np.isfinite(denoise_array(bright, "median")).all()


def test_progress_rises_to_the_end_and_stops_the_work():
    told = []
    denoise_array(noisy(4, 40, 48), "box", progress=lambda fraction: told.append(fraction) or True)
    assert told == sorted(told) and told[-1] == 1
    for kind, method in [(IMAGES, "nlm"), (FRAMES, "bm3d"), (VOLUMES, "bm4d")]:
        with pytest.raises(ungrain.Cancelled):
            denoise_array(noisy(6, 40, 48), method, kind=kind, sigma=12, progress=lambda fraction: False)


def test_what_an_array_can_be():
    assert kinds_for(2, rgb=False) == [IMAGES] and kinds_for(3, rgb=True) == [IMAGES]
    assert kinds_for(3, rgb=False) == list(KINDS) and kinds_for(4, rgb=True) == [IMAGES, FRAMES]
    with pytest.raises(ungrain.InvalidArgument):
        denoise_array(noisy(40, 48), "bm4d", kind=VOLUMES)
    with pytest.raises(TypeError):
        denoise_array(np.zeros((8, 8), np.int64))
    assert methods_for(IMAGES)[0] == "bm3d" and methods_for(VOLUMES)[0] == "bm4d"
