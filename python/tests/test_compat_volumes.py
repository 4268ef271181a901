"""compat.dipy, and compat.skimage of volumes, against the original libraries where they are there."""

import inspect

import numpy as np
import pytest
from conftest import has
from volumes import decibels, noisy_phantom, phantom

import ungrain
from ungrain.compat import dipy, skimage

SIZE = {"depth": 20, "height": 24, "width": 22}
needs_nlm3d = pytest.mark.skipif("nlm3d" not in ungrain.volume_methods(), reason="this build has no nlm3d")


@pytest.mark.skipif("nlm3d" in ungrain.volume_methods(), reason="this build has nlm3d")
def test_a_build_without_nlm3d_says_so():
    for call in (lambda: dipy.nlmeans(phantom(), 0.1), lambda: skimage.denoise_nl_means(phantom())):
        with pytest.raises(NotImplementedError, match="needs the method nlm3d, which this build does not have"):
            call()


# ---- DIPY

def magnitudes(sigma, seed=0):
    clean, rng = phantom(**SIZE), np.random.default_rng(seed)
    return np.hypot(clean + sigma * rng.standard_normal(clean.shape), sigma * rng.standard_normal(clean.shape))


def test_nlmeans_takes_dipys_arguments():
    ours = list(inspect.signature(dipy.nlmeans).parameters)
    assert ours == ["arr", "sigma", "mask", "patch_radius", "block_radius", "rician", "num_threads", "method"]
    if has("dipy"):
        import dipy.denoise.nlmeans as original
        assert set(inspect.signature(original.nlmeans).parameters) <= set(ours)


@needs_nlm3d
@pytest.mark.parametrize("rician", [True, False])
@pytest.mark.parametrize("dtype, scale", [("float64", 1), ("float32", 300), ("int16", 3000), ("uint8", 200)])
def test_nlmeans_denoises(rician, dtype, scale):
    clean = phantom(**SIZE)
    noisy = (magnitudes(0.1) if rician else np.clip(noisy_phantom(0.1, **SIZE), -1, 1.2)) * scale
    noisy = (np.clip(noisy, 0, 255) if dtype == "uint8" else noisy).astype(dtype)
    result = dipy.nlmeans(noisy, sigma=0.1 * scale, rician=rician)
    assert result.dtype == noisy.dtype and result.shape == noisy.shape
    assert decibels(result / scale, clean) > decibels(noisy / scale, clean) + 1


@needs_nlm3d
def test_nlmeans_is_nlm3d():
    volume = noisy_phantom(0.1, **SIZE)
    white = np.percentile(np.abs(volume), 99)
    np.testing.assert_array_equal(dipy.nlmeans(volume, 0.1, patch_radius=2, block_radius=3, rician=False, num_threads=1),
                                  ungrain.nlm3d(volume, sigma=0.1, patch=5, search=7, range=white))
    np.testing.assert_array_equal(dipy.nlmeans(volume, 0.1, rician=False, method="classic"),
                                  dipy.nlmeans(volume, 0.1, rician=False, block_radius=5))
    np.testing.assert_array_equal(dipy.nlmeans(volume, 0), volume)


@needs_nlm3d
def test_nlmeans_of_several_volumes():
    volumes = np.stack([magnitudes(0.05), magnitudes(0.1, 1)], -1)
    result = dipy.nlmeans(volumes, np.array([0.05, 0.1]))
    for index, sigma in enumerate([0.05, 0.1]):
        np.testing.assert_array_equal(result[..., index], dipy.nlmeans(volumes[..., index], sigma))
    np.testing.assert_array_equal(dipy.nlmeans(volumes, 0.1)[..., 1], result[..., 1])


@needs_nlm3d
def test_nlmeans_of_a_mask():
    volume, mask = magnitudes(0.1), phantom(**SIZE) > 0
    result = dipy.nlmeans(volume, 0.1, mask=mask)
    assert not result[~mask].any()
    np.testing.assert_array_equal(result[mask], dipy.nlmeans(volume, 0.1)[mask])


@needs_nlm3d
@pytest.mark.parametrize("arguments, error, words", [
    ({"sigma": np.full((20, 24, 22), 0.1)}, NotImplementedError, "a map of deviations has no counterpart"),
    ({"sigma": [0.1, 0.2]}, ValueError, "sigma takes a number, or one for each of 1 volumes"),
    ({"sigma": -1}, ValueError, "sigma takes a number"),
    ({"mask": np.ones((3, 3, 3))}, ValueError, "mask takes an array of shape"),
    ({"arr": np.zeros((8, 8))}, ValueError, "arr takes a volume"),
    ({"arr": np.zeros((8, 8, 8), complex)}, TypeError, "arr takes integers or floats"),
    ({"block_radius": 11}, ValueError, "block_radius takes a whole number from 0 up to 10"),
    ({"method": "fast"}, ValueError, "method takes one of blockwise, classic"),
])
def test_what_nlmeans_does_not_take(arguments, error, words):
    with pytest.raises(error, match=words):
        dipy.nlmeans(**{"arr": magnitudes(0.1), "sigma": 0.1, **arguments})


@needs_nlm3d
@pytest.mark.skipif(not has("dipy"), reason="DIPY is missing")
@pytest.mark.parametrize("rician", [True, False])
def test_nlmeans_is_as_good_as_dipys(rician):
    from dipy.denoise.nlmeans import nlmeans as original
    clean = phantom(**SIZE)
    noisy = magnitudes(0.1) if rician else noisy_phantom(0.1, **SIZE).astype(float)
    inside = clean > 0
    theirs = original(noisy, sigma=0.1, rician=rician)
    assert decibels(dipy.nlmeans(noisy, 0.1, rician=rician)[inside], clean[inside]) > decibels(theirs[inside], clean[inside]) - 0.3


# ---- scikit-image

@needs_nlm3d
@pytest.mark.skipif(not has("skimage"), reason="scikit-image is missing")
@pytest.mark.parametrize("fast_mode", [True, False])
def test_denoise_nl_means_of_volumes(fast_mode):
    from skimage import restoration
    clean, noisy = phantom(**SIZE), noisy_phantom(0.1, **SIZE)
    given = {"patch_size": 3, "patch_distance": 3, "h": 0.08, "sigma": 0.1, "fast_mode": fast_mode}
    theirs, ours = restoration.denoise_nl_means(noisy, **given), skimage.denoise_nl_means(noisy, **given)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert decibels(ours, clean) > decibels(theirs, clean) - 1.2
    channels = np.stack([noisy, noisy], 1)
    np.testing.assert_array_equal(skimage.denoise_nl_means(channels, channel_axis=1, **given)[:, 1], ours)
    assert skimage.denoise_nl_means((np.clip(noisy, 0, 1) * 255).astype(np.uint8), **given).dtype == np.float64
