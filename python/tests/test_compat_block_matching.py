"""compat.bm3d and compat.bm4d: their calls, and how good the results are. The packages themselves run on few machines and
their licence is no free one: figures are stored, not compared on the spot."""

import inspect

import numpy as np
import pytest
from volumes import decibels, noisy_phantom, phantom

import ungrain
from ungrain.compat import bm3d, bm4d

SIZE = {"depth": 32, "height": 40, "width": 36}


def scene(height=96, width=112, channels=None):
    y, x = np.mgrid[0:height, 0:width]
    planes = [0.3 + 0.3 * x / width + 0.25 * ((x // 24 + y // 20 + c) % 2) for c in range(channels or 1)]
    return (np.stack(planes, -1) if channels else planes[0]).astype(np.float32)


def noisy(clean, sigma=0.1, seed=0):
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


# ---- bm4d

def test_bm4d_takes_the_arguments_of_the_package():
    assert list(inspect.signature(bm4d.bm4d).parameters) == ["z", "sigma_psd", "profile", "stage_arg", "blockmatches"]
    assert [stage.value for stage in bm4d.BM4DStages] == [1, 2, 3]


# PSNR in dB on this phantom with sigma 0.1 (the noisy volume has 20.0), as bm4d reached it on a CPU when this was written.
@pytest.mark.parametrize("profile, stage, floor", [("np", bm4d.BM4DStages.ALL_STAGES, 26.0),
                                                   ("np", bm4d.BM4DStages.HARD_THRESHOLDING, 25.6),
                                                   ("lc", bm4d.BM4DStages.ALL_STAGES, 26.1)])
def test_bm4d_is_as_good_as_it_was(profile, stage, floor):
    volume = noisy_phantom(0.1, **SIZE)
    for scale in (1, 255):
        result = bm4d.bm4d(volume.astype(float) * scale, 0.1 * scale, profile, stage)
        assert result.dtype == np.float32 and result.shape == volume.shape
        assert decibels(result / scale, phantom(**SIZE)) > floor


def test_bm4d_is_bm4d():
    volume = noisy_phantom(depth=8)
    np.testing.assert_array_equal(bm4d.bm4d(volume, 0.08), ungrain.bm4d(volume, sigma=0.08))
    np.testing.assert_array_equal(bm4d.bm4d(volume, np.array([0.08]), "lc", bm4d.BM4DStages.HARD_THRESHOLDING),
                                  ungrain.bm4d(volume, sigma=0.08, profile="fast", steps=1))


def test_settings_of_a_bm4d_profile():
    volume, profile = noisy_phantom(depth=8), bm4d.BM4DProfile()
    np.testing.assert_array_equal(bm4d.bm4d(volume, 0.08, profile), bm4d.bm4d(volume, 0.08, "np"))
    np.testing.assert_array_equal(bm4d.bm4d(volume, 0.08, bm4d.BM4DProfileLC()), bm4d.bm4d(volume, 0.08, "lc"))
    profile.bs_ht, profile.step_ht, profile.search_window_ht = (5, 5, 5), (2, 2, 2), (3, 3, 3)
    profile.max_stack_size_wiener, profile.lambda_thr, profile.num_threads, profile.print_info = 8, 3.0, 1, True
    np.testing.assert_array_equal(bm4d.bm4d(volume, 0.08, profile), ungrain.bm4d(
        volume, sigma=0.08, cube=5, wiener_cube=5, stride=2, wiener_stride=3, search=7, wiener_search=15, wiener_group=8,
        lambda_=3))


def test_profiles_of_the_package_itself_are_understood():
    package = type("BM4DProfile", (), {"gamma": 3.0, "bs_ht": (4, 4, 4), "search_window_ht": (7, 7, 7)})
    volume, profile = noisy_phantom(depth=8), package()
    np.testing.assert_array_equal(bm4d.bm4d(volume, 0.08, profile), bm4d.bm4d(volume, 0.08))
    profile.gamma = 2.0
    with pytest.raises(NotImplementedError, match="profile.gamma has no counterpart here"):
        bm4d.bm4d(volume, 0.08, profile)


def unequal_profile():
    profile = bm4d.BM4DProfile()
    profile.bs_ht = (4, 4, 1)
    return profile


@pytest.mark.parametrize("arguments, error, words", [
    ({"sigma_psd": np.ones((8, 30, 2))}, ValueError, "sigma_psd takes a power spectral density of the volume's size"),
    ({"sigma_psd": np.full(noisy_phantom(depth=8).shape, -1.0)}, ValueError, "numbers from 0 up"),
    ({"stage_arg": np.ones((8, 30, 28))}, NotImplementedError, "an estimate of the clean volume has no counterpart"),
    ({"blockmatches": (True, False)}, NotImplementedError, "blockmatches takes"),
    ({"blockmatches": True}, ValueError, "blockmatches takes a value for each"),
    ({"profile": "refilter"}, NotImplementedError, "profile takes one of np, lc"),
    ({"profile": "8x8"}, NotImplementedError, "profile takes one of np, lc"),
    ({"profile": unequal_profile()}, NotImplementedError, "profile.bs_ht takes the same size along all axes"),
    ({"stage_arg": bm4d.BM4DStages.WIENER_FILTERING}, ValueError, "stage_arg takes an estimate"),
    ({"stage_arg": "all"}, TypeError, "stage_arg takes"),
    ({"sigma_psd": -1}, ValueError, "sigma_psd takes a number"),
    ({"z": np.zeros((20, 20))}, NotImplementedError, "compat.bm3d filters images"),
    ({"z": np.zeros((20, 20, 3))}, NotImplementedError, "compat.bm3d filters images"),
    ({"z": np.zeros((8, 8, 8), complex)}, NotImplementedError, "z takes real numbers"),
    ({"z": np.zeros(20)}, ValueError, "z takes a volume"),
])
def test_what_bm4d_does_not_take(arguments, error, words):
    with pytest.raises(error, match=words):
        bm4d.bm4d(**{"z": noisy_phantom(depth=8), "sigma_psd": 0.08, **arguments})


def test_a_power_spectral_density_of_a_volume():
    clean, sigma = phantom(**SIZE), 0.1
    kernel = np.zeros(clean.shape)
    kernel[:2, :2, :2] = sigma / np.sqrt(8)
    transfer = np.fft.fftn(kernel)
    white = np.random.default_rng(0).standard_normal(clean.shape)
    volume = (clean + np.fft.ifftn(np.fft.fftn(white) * transfer).real).astype(np.float32)
    psd = np.abs(transfer) ** 2 * white.size
    result = bm4d.bm4d(volume, psd)
    assert decibels(result, clean) > decibels(bm4d.bm4d(volume, sigma), clean) + 0.5
    pairs = np.einsum("i,j,k->ijk", *[[0.5, 1, 0.5]] * 3)
    np.testing.assert_allclose(result, ungrain.bm4d(volume, sigma=sigma, correlation=pairs), atol=1e-4)
    volume, flat = noisy_phantom(sigma, **SIZE), np.full(clean.shape, sigma**2 * clean.size)
    np.testing.assert_allclose(bm4d.bm4d(volume, flat), bm4d.bm4d(volume, sigma), atol=1e-4)
    np.testing.assert_array_equal(bm4d.bm4d(volume, 0 * flat), volume)


@pytest.mark.parametrize("correlation, error, words", [
    (np.ones((2, 3, 3)), ValueError, "three odd sides"), ("x", TypeError, "takes an array of numbers"),
    (np.zeros((3, 3, 3)), ValueError, "1 in its middle")])
def test_wrong_correlations(correlation, error, words):
    with pytest.raises(error, match=words):
        ungrain.bm4d(noisy_phantom(depth=8), sigma=0.1, correlation=correlation)


# ---- bm3d

def test_bm3d_takes_the_arguments_of_the_package():
    assert list(inspect.signature(bm3d.bm3d).parameters) == ["z", "sigma_psd", "profile", "stage_arg", "blockmatches"]
    assert list(inspect.signature(bm3d.bm3d_rgb).parameters) == ["z", "sigma_psd", "profile", "colorspace"]


# PSNR in dB on this scene with sigma 0.1 (the noisy image has 20.0), as bm3d reached it on a CPU when this was written.
@pytest.mark.parametrize("profile, stage, floor", [("np", bm3d.BM3DStages.ALL_STAGES, 34.5),
                                                   ("np", bm3d.BM3DStages.HARD_THRESHOLDING, 33.2),
                                                   ("high", bm3d.BM3DStages.ALL_STAGES, 34.4)])
def test_bm3d_is_as_good_as_it_was(profile, stage, floor):
    clean = scene()
    for scale in (1, 255):
        result = bm3d.bm3d(noisy(clean) * scale, 0.1 * scale, profile, stage)
        assert result.dtype == np.float32 and result.shape == clean.shape
        assert decibels(result / scale, clean) > floor


def test_bm3d_is_bm3d():
    image = noisy(scene()).astype(np.float32)
    np.testing.assert_array_equal(bm3d.bm3d(image, 0.1), ungrain.bm3d(image, sigma=0.1))
    np.testing.assert_array_equal(bm3d.bm3d(image[..., None], [0.1], "high"), ungrain.bm3d(image, sigma=0.1, profile="high"))
    bytes_ = np.clip(np.rint(image * 255), 0, 255).astype(np.uint8)
    assert np.abs(bm3d.bm3d(bytes_, 25.5) - ungrain.bm3d(bytes_, sigma=25.5)).max() < 0.51


def test_channels_of_bm3d():
    image = noisy(scene(channels=3)).astype(np.float32)
    result = bm3d.bm3d(image, [0.1, 0.05, 0])
    for c, sigma in enumerate([0.1, 0.05, 0]):
        np.testing.assert_array_equal(result[..., c], bm3d.bm3d(image[..., c], sigma))
    np.testing.assert_array_equal(bm3d.bm3d_rgb(image, 0.1), ungrain.bm3d(image, sigma=0.1))
    np.testing.assert_array_equal(bm3d.bm3d_rgb(image, [0.1, 0.1, 0.05]), ungrain.bm3d(image, sigma=[0.1, 0.1, 0.05]))


def coloured(shape, sigma, seed=0):
    """Noise whose neighbours along a row are alike, and its power spectral density as the package has it."""
    kernel = np.zeros(shape)
    kernel[0, :3] = [0.5, 0.7, 0.5]
    kernel *= sigma / np.sqrt((kernel**2).sum())
    transfer = np.fft.fft2(kernel)
    white = np.random.default_rng(seed).standard_normal(shape)
    return np.fft.ifft2(np.fft.fft2(white) * transfer).real, np.abs(transfer) ** 2 * white.size


def test_a_power_spectral_density():
    clean = scene()
    noise, psd = coloured(clean.shape, 0.1)
    assert psd.mean() / clean.size == pytest.approx(0.1**2)
    image = (clean + noise).astype(np.float32)
    result = bm3d.bm3d(image, psd)
    assert decibels(result, clean) > decibels(bm3d.bm3d(image, 0.1), clean) + 1
    np.testing.assert_array_equal(bm3d.bm3d(np.stack([image, image], -1), psd)[..., 1], result)
    np.testing.assert_array_equal(bm3d.bm3d(np.stack([image, image], -1), np.stack([psd * 0.5, psd], -1))[..., 1], result)
    flat = np.full(clean.shape, 0.1**2 * clean.size)
    image = noisy(clean).astype(np.float32)
    assert abs(decibels(bm3d.bm3d(image, flat), clean) - decibels(bm3d.bm3d(image, 0.1), clean)) < 1
    colours = noisy(scene(channels=3))
    assert decibels(bm3d.bm3d_rgb(colours, flat), scene(channels=3)) > 29


def test_an_estimate_instead_of_the_first_step():
    clean = scene()
    image = noisy(clean, 0.15)
    first = bm3d.bm3d(image, 0.15, stage_arg=bm3d.BM3DStages.HARD_THRESHOLDING)
    from_first, from_truth = bm3d.bm3d(image, 0.15, stage_arg=first), bm3d.bm3d(image, 0.15, stage_arg=clean)
    assert decibels(from_first, clean) > decibels(first, clean)
    assert decibels(from_truth, clean) > decibels(from_first, clean) + 0.5
    pair = bm3d.bm3d(np.stack([image, image], -1), 0.15, stage_arg=np.stack([first, clean], -1))
    np.testing.assert_array_equal(pair, np.stack([from_first, from_truth], -1))


def test_settings_of_a_bm3d_profile():
    image, profile = noisy(scene()).astype(np.float32), bm3d.BM3DProfile()
    profile.step_ht, profile.search_window_ht, profile.max_3d_size_ht, profile.lambda_thr3d = 4, 25, 8, 2.9
    expected = ungrain.bm3d(image, sigma=0.1, spacing=4, wiener_spacing=3, search=25, wiener_search=39, group=8, wiener_group=32,
                            lambda_=2.9)
    np.testing.assert_array_equal(bm3d.bm3d(image, 0.1, profile), expected)


@pytest.mark.parametrize("arguments, error, words", [
    ({"blockmatches": (False, True)}, NotImplementedError, "blockmatches takes"),
    ({"profile": "refilter"}, NotImplementedError, "profile takes one of np, lc, vn, high"),
    ({"profile": "deb"}, NotImplementedError, "profile takes one of np, lc, vn, high"),
    ({"stage_arg": np.ones((3, 3))}, ValueError, "stage_arg takes an estimate of z's shape"),
    ({"stage_arg": bm3d.BM3DStages.WIENER_FILTERING}, ValueError, "stage_arg takes an estimate"),
    ({"sigma_psd": np.ones((8, 8))}, ValueError, "sigma_psd takes a power spectral density of the image's size"),
    ({"sigma_psd": [0.1, 0.2]}, ValueError, "sigma_psd takes a standard deviation"),
    ({"z": np.zeros((8, 8), complex)}, NotImplementedError, "z takes real numbers"),
])
def test_what_bm3d_does_not_take(arguments, error, words):
    with pytest.raises(error, match=words):
        bm3d.bm3d(**{"z": noisy(scene()), "sigma_psd": 0.1, **arguments})


def test_what_bm3d_rgb_does_not_take():
    with pytest.raises(NotImplementedError, match="colorspace takes 'opp'"):
        bm3d.bm3d_rgb(scene(channels=3), 0.1, colorspace="YCbCr")
    with pytest.raises(ValueError, match="z takes an image of 3 channels"):
        bm3d.bm3d_rgb(scene(), 0.1)
