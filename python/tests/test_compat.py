"""The functions of compat against the original libraries; the tolerances stand in their docstrings."""

import importlib
import inspect
import pathlib
import warnings

import numpy as np
import pytest
from conftest import has, picture

import ungrain
from ungrain.compat import cv2 as ours_cv2
from ungrain.compat import skimage as ours_skimage

cv2 = pytest.importorskip("cv2", reason="OpenCV is missing") if has("cv2") else None
restoration = pytest.importorskip("skimage.restoration", reason="scikit-image is missing") if has("skimage") else None
needs_opencv = pytest.mark.skipif(cv2 is None, reason="OpenCV is missing")
needs_skimage = pytest.mark.skipif(restoration is None, reason="scikit-image is missing")
needs_pywt = pytest.mark.skipif(not has("pywt"), reason="PyWavelets is missing")


def decibels(a, b, white):
    return 10 * np.log10(white**2 / max(1e-30, ((a.astype(float) - b) ** 2).mean()))


def noisy(height, width, channels=None, dtype=np.uint8, sigma=20, seed=0):
    """Smooth parts, edges and noise in 8-bit units, without the texture that no filter keeps."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [60 + 100 * x / width + 60 * ((x // 24 + y // 20 + c) % 2) for c in range(channels or 1)]
    clean = np.stack(planes, -1) if channels else planes[0]
    image = np.clip(clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape), 0, 255)
    clean8 = np.rint(clean).astype(np.uint8)
    if np.dtype(dtype) == np.uint8:
        return np.rint(image).astype(np.uint8), clean8
    return (image / 255).astype(dtype), clean8


# ---- OpenCV

BORDERS = ["BORDER_CONSTANT", "BORDER_REPLICATE", "BORDER_REFLECT", "BORDER_REFLECT_101"]


@needs_opencv
def test_opencvs_constants():
    for name in [n for n in ours_cv2.__all__ if n.isupper()]:
        assert getattr(ours_cv2, name) == getattr(cv2, name), name


@needs_opencv
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("d,color,space", [(9, 40, 3), (5, 25, 10), (-1, 30, 2), (3, 0, 0)])
def test_bilateral_of_one_channel(border, d, color, space):
    image, _ = noisy(61, 67)
    expected = cv2.bilateralFilter(image, d, color, space, borderType=getattr(cv2, border))
    result = ours_cv2.bilateralFilter(image, d, color, space, borderType=getattr(ours_cv2, border))
    assert np.abs(result.astype(int) - expected).max() <= 1
    if color:
        image = image.astype(np.float32) / 255
        expected = cv2.bilateralFilter(image, d, color / 255, space, borderType=getattr(cv2, border))
        result = ours_cv2.bilateralFilter(image, d, color / 255, space, borderType=getattr(ours_cv2, border))
        np.testing.assert_allclose(result, expected, atol=2e-4)


@needs_opencv
@pytest.mark.parametrize("border", [*BORDERS, "BORDER_WRAP"])
@pytest.mark.parametrize("d,color,space", [(5, 30, 3), (9, 60, 3), (11, 150, 20), (-1, 30, 2), (2, 40, 1)])
def test_bilateral_of_colours(border, d, color, space):
    """OpenCV compares colours by the sum of the absolute differences."""
    rng = np.random.default_rng(0)
    for image in (noisy(50, 67, 3)[0], rng.integers(0, 256, (7, 200, 3), dtype=np.uint8), noisy(1, 9, 3)[0],
                  (rng.random((30, 31, 3)) > 0.5).astype(np.uint8) * 255):
        border_types = {"borderType": getattr(cv2, border)}
        expected = cv2.bilateralFilter(image, d, color, space, **border_types)
        result = ours_cv2.bilateralFilter(image, d, color, space, **border_types)
        assert result.dtype == image.dtype and np.abs(result.astype(int) - expected).max() <= 1
        image = image.astype(np.float32) / 255
        if border == "BORDER_CONSTANT":
            # OpenCV makes its table of weights for the differences within the image. On ARM its results differ from
            # ours where the border's 0 lies outside the image's values; with a 0 in the image they do not.
            image[0, 0] = 0
        expected = cv2.bilateralFilter(image, d, color / 255, space, **border_types)
        np.testing.assert_allclose(ours_cv2.bilateralFilter(image, d, color / 255, space, **border_types), expected, atol=2e-4)


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_bilateral_of_colours_is_its_definition(channels):
    """Also for types and channels that OpenCV's function does not take."""
    image, _ = noisy(9, 11, channels, np.float64)
    padded = np.pad(image, [(2, 2), (2, 2), (0, 0)], mode="reflect")
    sums, weights = np.zeros(image.shape), np.zeros(image.shape[:2])
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            if dx * dx + dy * dy <= 4:
                other = padded[2 + dy:11 + dy, 2 + dx:13 + dx]
                distance = np.abs(other - image).sum(-1)
                weight = np.exp(-(distance**2) / (2 * 0.3**2) - (dx * dx + dy * dy) / (2 * 1.5**2))
                sums += weight[..., None] * other
                weights += weight
    expected = sums / weights[..., None]
    for dtype, white, within in ((np.float64, 1, 2e-6), (np.float16, 1, 1e-3), (np.uint16, 65535, 1e-4), (np.int16, 32767, 1e-4)):
        given = (np.rint(image * white) if white > 1 else image).astype(dtype)
        result = ours_cv2.bilateralFilter(given[:, ::-1], 5, 0.3 * white, 1.5)[:, ::-1]
        assert result.dtype == dtype
        np.testing.assert_allclose(result / white, expected, atol=within)


def test_bilateral_of_colours_leaves_out_what_is_not_finite():
    image, _ = noisy(20, 20, 3, np.float32)
    image[5, 5, 1] = np.nan
    image[9, 9] = np.inf
    result = ours_cv2.bilateralFilter(image, 5, 0.3, 2)
    assert np.isfinite(result).all() and np.abs(result[5, 5] - result[5, 6]).max() < 0.3


@needs_opencv
@pytest.mark.parametrize("color,space", [(0, 3), (30, 0), (-1, -1), (30, 1e-7)])
@pytest.mark.parametrize("channels", [None, 3])
def test_bilateral_without_a_sigma_is_the_image(color, space, channels):
    image, _ = noisy(20, 21, channels)
    np.testing.assert_array_equal(cv2.bilateralFilter(image, 5, color, space), image)
    np.testing.assert_array_equal(ours_cv2.bilateralFilter(image, 5, color, space), image)


@needs_opencv
def test_one_channel_has_no_axis_of_its_own():
    image = picture(12, 13, 1, np.uint8)
    for ours, theirs, arguments in ((ours_cv2.medianBlur, cv2.medianBlur, (3,)),
                                    (ours_cv2.bilateralFilter, cv2.bilateralFilter, (5, 30, 3)),
                                    (ours_cv2.fastNlMeansDenoising, cv2.fastNlMeansDenoising, ())):
        assert ours(image, *arguments).shape == theirs(image, *arguments).shape == (12, 13)
    dst = np.zeros_like(image)
    assert ours_cv2.medianBlur(image, 3, dst) is dst and dst.any()


def photographs(names, sigma):
    """Parts of scikit-image's own pictures, with noise."""
    io = pytest.importorskip("skimage.io", reason="scikit-image is missing")
    folder = pathlib.Path(importlib.import_module("skimage.data").__file__).parent
    for name in names:
        clean = io.imread(folder / name)[:200, :200]
        rng = np.random.default_rng(1)
        yield np.clip(np.rint(clean + sigma * rng.standard_normal(clean.shape)), 0, 255).astype(np.uint8), clean


@needs_opencv
@pytest.mark.parametrize("sigma,h,most,rms", [(25, 25, 18, 1.2), (25, 50, 18, 1.2), (10, 20, 18, 1.2), (25, 12.5, 28, 4)])
def test_nl_means_of_photographs(sigma, h, most, rms):
    for image, _ in photographs(["camera.png", "moon.png", "page.png", "grass.png", "astronaut.png"], sigma):
        difference = ours_cv2.fastNlMeansDenoising(image, None, h).astype(int) - cv2.fastNlMeansDenoising(image, None, h)
        assert np.abs(difference).max() <= most and np.sqrt((difference**2).mean()) < rms


@needs_opencv
@pytest.mark.parametrize("sigma,h,least", [(20, 20, 45), (40, 20, 45), (40, 10, 40)])
def test_nl_means_of_photographs_in_colour(sigma, h, least):
    for image, _ in photographs(["astronaut.png", "coffee.png", "ihc.png"], sigma):
        result = ours_cv2.fastNlMeansDenoisingColored(image, None, h, h)
        assert decibels(result, cv2.fastNlMeansDenoisingColored(image, None, h, h), 255) > least


@needs_opencv
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
@pytest.mark.parametrize("h,template,search", [(10, 7, 21), (20, 5, 11), (3, 3, 7), (25, 6, 20)])
def test_nl_means(channels, h, template, search):
    image, clean = noisy(60, 70, channels)
    expected = cv2.fastNlMeansDenoising(image, None, h, template, search)
    result = ours_cv2.fastNlMeansDenoising(image, None, h, template, search)
    difference = result.astype(int) - expected
    weak = h == 10  # half of the noise
    assert np.abs(difference).max() <= (8 if weak else 2)
    assert np.sqrt((difference**2).mean()) < (1.2 if weak else 0.5)
    for strength in ([h], (h,), np.array([h], np.float32), [h] * (channels or 1)):
        np.testing.assert_array_equal(ours_cv2.fastNlMeansDenoising(image, strength, None, template, search), result)
    np.testing.assert_array_equal(ours_cv2.fastNlMeansDenoising(image, h=h, templateWindowSize=template,
                                                                searchWindowSize=search), result)


@needs_opencv
@pytest.mark.parametrize("h,hc", [(10, 10), (5, 15), (3, 3)])
@pytest.mark.parametrize("channels", [3, 4])
def test_nl_means_of_colours(h, hc, channels):
    image, clean = noisy(60, 70, channels)
    expected = cv2.fastNlMeansDenoisingColored(image, None, h, hc, 7, 21)
    result = ours_cv2.fastNlMeansDenoisingColored(image, None, h, hc, 7, 21)
    assert result.shape == expected.shape and decibels(result, expected, 255) > 45
    assert abs(decibels(result, clean, 255) - decibels(expected, clean, 255)) < 0.25


@needs_opencv
def test_opencvs_lab():
    every = np.stack(np.meshgrid(*[np.arange(0, 256, 5, dtype=np.uint8)] * 3), -1).reshape(1, -1, 3)
    lab = every.copy()
    ungrain._core.bgr_to_lab(lab)
    expected = cv2.cvtColor(every, cv2.COLOR_LBGR2Lab)
    difference = np.abs(lab.astype(int) - expected)
    assert difference.max() <= 2 and (difference > 1).mean() < 1e-5 and (difference > 0).mean() < 0.1
    back = expected.copy()
    ungrain._core.lab_to_bgr(back)
    difference = np.abs(back.astype(int) - cv2.cvtColor(expected, cv2.COLOR_Lab2LBGR))
    assert difference.max() <= 1 and (difference > 0).mean() < 0.1


@needs_opencv
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
@pytest.mark.parametrize("ksize", [1, 3, 5, 9])
def test_median(dtype, channels, ksize):
    image = picture(41, 37, channels, dtype)
    result = ours_cv2.medianBlur(image, ksize)
    if ksize > 5 and (dtype is not np.uint8 or channels == 2):  # not supported by OpenCV
        np.testing.assert_array_equal(result, ungrain.median(image, radius=ksize // 2, border="clamp", channels="multi"))
    else:
        np.testing.assert_array_equal(result, cv2.medianBlur(image, ksize))


def test_dst_is_used_where_it_fits():
    image = picture(dtype=np.uint8)
    dst = np.zeros_like(image)
    assert ours_cv2.medianBlur(image, 3, dst) is dst
    assert ours_cv2.bilateralFilter(image, 5, 20, 3, dst) is dst
    assert ours_cv2.fastNlMeansDenoising(image, dst, 5, 3, 5) is dst
    assert ours_cv2.medianBlur(image, 3, np.zeros((2, 2), np.uint8)).shape == image.shape
    colours = picture(channels=3, dtype=np.uint8)
    dst = np.zeros_like(colours)
    assert ours_cv2.fastNlMeansDenoisingColored(colours, dst) is dst and dst.any()


def test_sixteen_bits_where_opencv_has_eight():
    image = picture(dtype=np.uint16)
    assert ours_cv2.fastNlMeansDenoising(image, None, 2000).dtype == np.uint16
    assert ours_cv2.bilateralFilter(image, 5, 5000, 3).dtype == np.uint16


def test_what_has_no_counterpart_is_refused():
    image = picture(dtype=np.uint8)
    with pytest.raises(ungrain.Unsupported, match="NORM_L2"):
        ours_cv2.fastNlMeansDenoising(image, normType=ours_cv2.NORM_L1)
    with pytest.raises(ungrain.Unsupported, match="borderType"):
        ours_cv2.bilateralFilter(image, 5, 10, 3, borderType=5)
    with pytest.raises(ungrain.InvalidArgument, match="ksize"):
        ours_cv2.medianBlur(image, 4)
    with pytest.raises(ungrain.InvalidArgument, match="src takes uint8"):
        ours_cv2.fastNlMeansDenoisingColored(image)


@pytest.mark.parametrize("call,message", [
    (lambda i: ours_cv2.medianBlur(i, 131), "ksize takes a whole number from 1 up to 129, got 131"),
    (lambda i: ours_cv2.medianBlur(i, 3.0), "ksize takes a whole number, got 3.0"),
    (lambda i: ours_cv2.bilateralFilter(i, 300, 3, 3), "d takes a whole number up to 257, got 300"),
    (lambda i: ours_cv2.bilateralFilter(i, 0, 3, 300), "sigmaSpace makes a radius of 450"),
    (lambda i: ours_cv2.bilateralFilter(i, 5, float("nan"), 3), "sigmaColor takes a number, got nan"),
    (lambda i: ours_cv2.fastNlMeansDenoising(i, None, -5), "h takes a number from 0 up, got -5"),
    (lambda i: ours_cv2.fastNlMeansDenoising(i, None, 5, 41), "templateWindowSize takes a whole number from 0 up to 31"),
    (lambda i: ours_cv2.fastNlMeansDenoising(i, [5, 6]), "h takes one strength"),
    (lambda i: ours_skimage.denoise_bilateral(i, win_size=0), "win_size takes a whole number from 1 up to 257, got 0"),
    (lambda i: ours_skimage.denoise_bilateral(i, sigma_color=-1), "sigma_color takes a number from 0 up, got -1"),
    (lambda i: ours_skimage.denoise_bilateral(i, sigma_spatial=-1), "sigma_spatial takes a number from 0 up, got -1"),
    (lambda i: ours_skimage.denoise_bilateral(np.dstack([i] * 3), channel_axis=3), "channel_axis takes a whole number from -3"),
    (lambda i: ours_skimage.denoise_nl_means(i, patch_size=51), "patch_size takes a whole number from 0 up to 31, got 51"),
    (lambda i: ours_skimage.denoise_nl_means(i, patch_distance=-1), "patch_distance takes a whole number from 0 up to 127"),
    (lambda i: ours_skimage.denoise_nl_means(i, h="a"), "h takes a number, got 'a'"),
    (lambda i: ours_skimage.denoise_nl_means(i, sigma=-1), "sigma takes a number from 0 up, got -1"),
])
def test_errors_name_the_other_librarys_argument(call, message):
    with pytest.raises((TypeError, ungrain.Error), match=message):
        call(picture(dtype=np.uint8))


# ---- scikit-image


@needs_skimage
@pytest.mark.parametrize("name", ["denoise_bilateral", "denoise_nl_means", "estimate_sigma"])
def test_scikit_images_signatures(name):
    theirs = inspect.signature(getattr(restoration, name)).parameters
    ours = inspect.signature(getattr(ours_skimage, name)).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [(p.name, p.kind, p.default) for p in theirs.values()]


@needs_skimage
@pytest.mark.parametrize("mode", ["constant", "edge", "symmetric", "reflect", "wrap"])
@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("sigma_color", [0.1, None])
def test_skimage_bilateral(mode, channels, sigma_color):
    image, _ = noisy(41, 37, channels, np.float64)
    axis = None if channels is None else -1
    arguments = {"win_size": 9, "sigma_color": sigma_color, "sigma_spatial": 1e6, "mode": mode, "channel_axis": axis}
    expected = restoration.denoise_bilateral(image, bins=200000, **arguments)
    result = ours_skimage.denoise_bilateral(image, **arguments)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, atol=1e-4)


@needs_skimage
@pytest.mark.parametrize("win_size", [1, 2, 4, 6])
def test_skimage_bilateral_of_even_windows(win_size):
    image, _ = noisy(20, 21, None, np.float64)
    arguments = {"win_size": win_size, "sigma_color": 0.2, "sigma_spatial": 1e6, "mode": "edge"}
    np.testing.assert_allclose(ours_skimage.denoise_bilateral(image, **arguments),
                               restoration.denoise_bilateral(image, bins=200000, **arguments), atol=1e-4)


@needs_skimage
def test_skimage_bilateral_denoises_as_theirs():
    image, clean = noisy(120, 130, None, np.float64)
    expected = restoration.denoise_bilateral(image, sigma_color=0.25, sigma_spatial=2)
    result = ours_skimage.denoise_bilateral(image, sigma_color=0.25, sigma_spatial=2)
    truth = clean / 255
    assert decibels(result, truth, 1) > decibels(expected, truth, 1) - 0.1


@needs_skimage
def test_skimage_bilateral_cval_and_constants():
    image, _ = noisy(31, 27, None, np.float64)
    arguments = {"win_size": 7, "sigma_color": 0.5, "sigma_spatial": 1e6, "cval": 0.4}
    np.testing.assert_allclose(ours_skimage.denoise_bilateral(image, **arguments),
                               restoration.denoise_bilateral(image, bins=200000, **arguments), atol=1e-4)
    flat = np.full((5, 5), 0.3)
    np.testing.assert_array_equal(ours_skimage.denoise_bilateral(flat), restoration.denoise_bilateral(flat))


@needs_skimage
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float16, np.float32, np.float64])
def test_types_of_results_are_scikit_images(dtype):
    image = picture(25, 27, dtype=dtype)
    for name in ("denoise_bilateral", "denoise_nl_means"):
        if name == "denoise_bilateral" and dtype is np.float16:  # not supported by scikit-image
            continue
        expected = getattr(restoration, name)(image)
        result = getattr(ours_skimage, name)(image)
        assert result.dtype == expected.dtype and result.shape == expected.shape
        if image.dtype.kind == "f" or name == "denoise_nl_means":
            assert abs(result.mean() - expected.mean()) < 0.02
    expected = restoration.denoise_nl_means(image, h=0.1 * float(image.max()), preserve_range=True)
    result = ours_skimage.denoise_nl_means(image, h=0.1 * float(image.max()), preserve_range=True)
    assert result.dtype == expected.dtype and abs(result.mean() / expected.mean() - 1) < 0.02


@needs_skimage
@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("patch,distance,h,sigma", [(7, 11, 0.1, 0), (5, 6, 0.08, 0.08), (4, 5, 0.15, 0)])
def test_skimage_nl_means(channels, patch, distance, h, sigma):
    image, clean = noisy(60, 70, channels, np.float64)
    axis = None if channels is None else -1
    expected = restoration.denoise_nl_means(image, patch, distance, h, sigma=sigma, channel_axis=axis)
    result = ours_skimage.denoise_nl_means(image, patch, distance, h, sigma=sigma, channel_axis=axis)
    assert np.sqrt(((result - expected) ** 2).mean()) < 0.02
    truth = clean / 255
    assert decibels(result, truth, 1) > decibels(expected, truth, 1) - 1.2


@needs_skimage
@pytest.mark.parametrize("patch,rms", [(3, 0.035), (5, 0.025), (7, 0.025)])
@pytest.mark.parametrize("times,known", [(0.6, False), (0.8, True), (1, False), (1.3, True)])
def test_skimage_nl_means_of_photographs(patch, rms, times, known):
    for sigma in (0.04, 0.1):
        for image, clean in photographs(["camera.png", "page.png", "grass.png", "coffee.png"], 0):
            image, truth = image[:80, :80] / 255, clean[:80, :80] / 255
            image = image + sigma * np.random.default_rng(0).standard_normal(image.shape)
            arguments = {"h": times * sigma, "sigma": sigma if known else 0.0, "channel_axis": -1 if image.ndim == 3 else None}
            expected = restoration.denoise_nl_means(image, patch, 6, **arguments)
            result = ours_skimage.denoise_nl_means(image, patch, 6, **arguments)
            assert np.sqrt(((result - expected) ** 2).mean()) < rms
            assert -1.2 < decibels(result, truth, 1) - decibels(expected, truth, 1) < 4.5


@needs_skimage
@pytest.mark.parametrize("times,most,rms", [(1, 0.035, 0.004), (0.6, 0.05, 0.009)])
def test_skimage_nl_means_of_photographs_with_gaussian_patches(times, most, rms):
    for image, clean in photographs(["camera.png", "coffee.png"], 0):
        image = image[:60, :60] / 255
        image = image + 0.1 * np.random.default_rng(0).standard_normal(image.shape)
        arguments = {"h": times * 0.1, "fast_mode": False, "channel_axis": -1 if image.ndim == 3 else None}
        difference = (ours_skimage.denoise_nl_means(image, 5, 6, **arguments)
                      - restoration.denoise_nl_means(image, 5, 6, **arguments))[6:-6, 6:-6]
        assert np.abs(difference).max() < most and np.sqrt((difference**2).mean()) < rms


def test_skimage_has_no_range_to_be_told_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours_skimage.denoise_nl_means(picture() * 4000, h=200, sigma=150, preserve_range=True)


@needs_skimage
def test_skimage_nl_means_with_gaussian_patches():
    image, _ = noisy(60, 70, None, np.float64)
    expected = restoration.denoise_nl_means(image, 5, 6, 0.1, fast_mode=False)
    result = ours_skimage.denoise_nl_means(image, 5, 6, 0.1, fast_mode=False)
    difference = (result - expected)[6:-6, 6:-6]
    assert np.abs(difference).max() < 0.01 and np.sqrt((difference**2).mean()) < 0.001


@needs_skimage
@needs_pywt
@pytest.mark.parametrize("shape", [(40, 50), (41, 37), (16, 5), (8, 9, 10)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_skimage_estimate_sigma(shape, dtype):
    image = np.random.default_rng(0).normal(100, 10, shape).astype(dtype)
    assert ours_skimage.estimate_sigma(image) == pytest.approx(restoration.estimate_sigma(image), rel=1e-5)


@needs_skimage
@needs_pywt
def test_skimage_estimate_sigma_of_channels():
    image = picture(40, 50, 3)
    for average in (False, True):
        np.testing.assert_allclose(ours_skimage.estimate_sigma(image, average, channel_axis=-1),
                                   restoration.estimate_sigma(image, average, channel_axis=-1), rtol=1e-5)
    with pytest.warns(UserWarning, match="channel_axis"):
        ours_skimage.estimate_sigma(image)


def test_skimage_three_dimensions_are_refused():
    """test_compat_volumes.py has denoise_nl_means of volumes."""
    with pytest.raises(ungrain.Unsupported, match="2-D images"):
        ours_skimage.denoise_bilateral(np.zeros((8, 9, 10)))
    with pytest.raises(ungrain.Unsupported, match="2-D images"):
        ours_skimage.denoise_nl_means(np.zeros((8, 9, 10, 2, 2)))
