"""The filters against SciPy, scikit-image, OpenCV and a NumPy transcription of their definitions."""
import cv2
import numpy as np
import pytest
from conftest import picture
from scipy import ndimage
from skimage import color, restoration

SCIPY_MODE = {"symmetric": "reflect", "mirror": "mirror", "clamp": "nearest", "constant": "constant", "wrap": "wrap"}
NUMPY_MODE = {"symmetric": "symmetric", "mirror": "reflect", "clamp": "edge", "constant": "constant", "wrap": "wrap"}
OPENCV_MODE = {"symmetric": cv2.BORDER_REFLECT, "mirror": cv2.BORDER_REFLECT_101, "clamp": cv2.BORDER_REPLICATE,
               "constant": cv2.BORDER_CONSTANT}
DEVICES = ["reference", "cpu"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", SCIPY_MODE)
@pytest.mark.parametrize("radius", [1, 4, 30])
def test_box_is_scipys_uniform_filter(program, device, border, radius):
    image = picture(31, 43)
    expected = ndimage.uniform_filter(image.astype(np.float64), 2 * radius + 1, mode=SCIPY_MODE[border])
    np.testing.assert_allclose(program.denoise(image, "box", device, radius=radius, border=border), expected, atol=2e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", SCIPY_MODE)
@pytest.mark.parametrize("sigma", [0.7, 2.5])
def test_gaussian_is_scipys(program, device, border, sigma):
    image = picture(31, 43)
    radius = int(np.ceil(3 * sigma))
    expected = ndimage.gaussian_filter(image.astype(np.float64), sigma, mode=SCIPY_MODE[border], radius=radius)
    np.testing.assert_allclose(program.denoise(image, "gaussian", device, sigma=sigma, border=border), expected,
                               atol=2e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", SCIPY_MODE)
@pytest.mark.parametrize("radius", [1, 3])
def test_median_is_scipys(program, device, border, radius):
    image = picture(31, 43)
    expected = ndimage.median_filter(image, 2 * radius + 1, mode=SCIPY_MODE[border])
    np.testing.assert_array_equal(program.denoise(image, "median", device, radius=radius, border=border), expected)


def bilateral(image, radius, sigma_space, sigma_range, border, disc=False, sum_channels=False, city_block=False,
              moment=None):
    """The definition, in float64. image: H x W x C, one weight a pixel; sigma_range one number or one a pixel. With
    `moment`, the weighted mean of its squared distance from the values instead."""
    image = image.astype(np.float64)
    height, width, channels = image.shape
    inside = np.ones((height, width))
    pad = ((radius, radius), (radius, radius))
    if border == "shrink":
        padded = np.pad(image, pad + ((0, 0),))
        inside = np.pad(inside, pad)
    else:
        padded = np.pad(image, pad + ((0, 0),), mode=NUMPY_MODE[border])
        inside = np.ones(padded.shape[:2])
    total, weights = np.zeros_like(image), np.zeros((height, width))
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if disc and dx * dx + dy * dy > radius * radius:
                continue
            rows, columns = slice(radius + dy, radius + dy + height), slice(radius + dx, radius + dx + width)
            other = padded[rows, columns]
            squared = ((other - image) ** 2).sum(-1) / (1 if sum_channels else channels)
            if city_block:
                squared = np.abs(other - image).sum(-1) ** 2
            weight = np.exp(-(dx * dx + dy * dy) / (2 * sigma_space**2) - squared / (2 * sigma_range**2))
            weight = weight * inside[rows, columns]
            total += weight[..., None] * (other if moment is None else (other - moment) ** 2)
            weights += weight
    return total / weights[..., None]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", [*NUMPY_MODE, "shrink"])
@pytest.mark.parametrize("window", ["square", "disc"])
@pytest.mark.parametrize("colour", ["gray", "joint", "per-channel", "lab"])
def test_bilateral_is_its_definition(program, device, border, window, colour):
    radius, sigma_space, sigma_range = 4, 2.5, 0.12
    image = picture(23, 37, None if colour == "gray" else 3)
    planes = image.reshape(*image.shape[:2], -1)
    common = {"radius": radius, "sigma_space": sigma_space, "border": border, "disc": window == "disc"}
    if colour == "lab":
        # Our white point is the matrix' own, so that gray has no colour; scikit-image's differs by 2e-5.
        lab = bilateral(color.rgb2lab(planes.astype(np.float64)), sigma_range=9, sum_channels=True, **common)
        expected, tolerance, sigma_range = color.lab2rgb(lab), 2e-4, 9
    elif colour == "per-channel":
        expected = np.concatenate([bilateral(planes[..., c:c + 1], sigma_range=sigma_range, **common)
                                   for c in range(3)], axis=-1)
        tolerance = 5e-6
    else:
        expected, tolerance = bilateral(planes, sigma_range=sigma_range, **common), 5e-6
    # Lab needs to know what white is; the others do not care.
    white = 1 if colour == "lab" else 255
    out = program.denoise(image, "bilateral", device, radius=radius, sigma_space=sigma_space, window=window,
                          sigma_range=sigma_range, border=border, white=white,
                          colour="joint" if colour == "gray" else colour)
    np.testing.assert_allclose(out.reshape(expected.shape), expected, atol=tolerance)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", [*NUMPY_MODE, "shrink"])
@pytest.mark.parametrize("channels", [None, 3])
def test_city_block_bilateral_is_its_definition(program, device, border, channels):
    image = picture(23, 37, channels)
    common = {"radius": 4, "sigma_space": 2.5, "sigma_range": 0.3, "border": border}
    expected = bilateral(image.reshape(*image.shape[:2], -1), city_block=True, **common)
    out = program.denoise(image, "bilateral", device, colour_distance="city-block", **common)
    np.testing.assert_allclose(out.reshape(expected.shape), expected, atol=5e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", [*NUMPY_MODE, "shrink"])
@pytest.mark.parametrize("centre", ["mean", "pixel"])
@pytest.mark.parametrize("channels", [None, 3])
def test_adaptive_bilateral_is_its_definition(program, device, border, centre, channels):
    image = picture(23, 37, channels)
    planes = image.reshape(*image.shape[:2], -1).astype(np.float64)
    common = {"radius": 4, "sigma_space": 2.5, "border": border}
    middle = bilateral(planes, sigma_range=0.2, **common) if centre == "mean" else planes
    variance = bilateral(planes, sigma_range=0.2, moment=middle, **common).mean(-1)
    expected = bilateral(planes, sigma_range=0.5 * np.sqrt(variance + 1e-4), **common)
    out = program.denoise(image, "adaptive-bilateral", device, radius=4, sigma_space=2.5, sigma_range=0.2, epsilon=1e-4,
                          centre=centre, border=border)
    np.testing.assert_allclose(out.reshape(expected.shape), expected, atol=1e-5)


def nlm(image, search, patch, patch_sigma, sigma, h, border, self_weight):
    """The definition, in float64. image: H x W x C."""
    image = image.astype(np.float64)
    height, width, channels = image.shape
    reach, half = search // 2, patch // 2
    margin = reach + half
    padded = np.pad(image, ((margin, margin), (margin, margin), (0, 0)), mode=NUMPY_MODE[border])
    k = np.arange(-half, half + 1)
    line = np.exp(-k**2 / (2 * patch_sigma**2)) if patch_sigma else np.ones(patch)
    kernel = np.outer(line, line) / line.sum() ** 2
    total, weights, largest = np.zeros_like(image), np.zeros((height, width)), np.zeros((height, width))
    still = padded[reach:reach + height + 2 * half, reach:reach + width + 2 * half]
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            if dx == dy == 0:
                continue
            moved = padded[reach + dy:reach + dy + height + 2 * half, reach + dx:reach + dx + width + 2 * half]
            squares = ((still - moved) ** 2).mean(-1)
            distance = sum(kernel[i, j] * squares[i:i + height, j:j + width] for i in range(patch) for j in range(patch))
            weight = np.exp(-np.maximum(distance - 2 * sigma**2, 0) / h**2)
            total += weight[..., None] * moved[half:half + height, half:half + width]
            weights += weight
            largest = np.maximum(largest, weight)
    own = largest if self_weight == "max" else np.ones_like(largest)
    return (total + own[..., None] * image) / (weights + own)[..., None]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", NUMPY_MODE)
@pytest.mark.parametrize("self_weight", ["max", "one"])
@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("patch_sigma,sigma", [(0, 0), (1.1, 0.04)])
def test_nlm_is_its_definition(program, device, border, self_weight, channels, patch_sigma, sigma):
    image = picture(23, 31, channels)
    planes = image.reshape(*image.shape[:2], -1)
    expected = nlm(planes, 7, 5, patch_sigma, sigma, 0.1, border, self_weight)
    out = program.denoise(image, "nlm", device, search=7, patch=5, patch_sigma=patch_sigma, sigma=sigma, h=0.1,
                          border=border, self=self_weight)
    np.testing.assert_allclose(out.reshape(expected.shape), expected, atol=1e-5)


def test_whole_image_nlm_is_its_definition(program):
    image = picture(12, 15)
    # Every pixel of the image once: a window large enough, with nothing outside counted.
    padded = np.pad(image.astype(np.float64), 1, mode="symmetric")
    patches = np.stack([padded[i:i + 12, j:j + 15] for i in range(3) for j in range(3)], -1).reshape(-1, 9)
    weights = np.exp(-((patches[:, None] - patches[None]) ** 2).mean(-1) / 0.1**2)
    np.fill_diagonal(weights, 0)
    np.fill_diagonal(weights, weights.max(1))
    expected = (weights @ image.ravel() / weights.sum(1)).reshape(image.shape)
    for device in DEVICES:
        out = program.denoise(image, "nlm", device, search="whole-image", patch=3, h=0.1)
        np.testing.assert_allclose(out, expected, atol=1e-5)


def nlm_bilateral(image, search, patch, sigma_h, sigma_range, sigma_space, border):
    """The definition, in float64. image: H x W x C, one weight a pixel."""
    image = image.astype(np.float64)
    height, width, channels = image.shape
    reach, half = search // 2, patch // 2
    margin = reach + half
    padded = np.pad(image, ((margin, margin), (margin, margin), (0, 0)), mode=NUMPY_MODE[border])
    total, weights = np.zeros_like(image), np.zeros((height, width))
    still = padded[reach:reach + height + 2 * half, reach:reach + width + 2 * half]
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            moved = padded[reach + dy:reach + dy + height + 2 * half, reach + dx:reach + dx + width + 2 * half]
            squares = ((still - moved) ** 2).sum(-1) / channels
            ssd = sum(squares[i:i + height, j:j + width] for i in range(patch) for j in range(patch))
            value = squares[half:half + height, half:half + width]
            weight = (np.exp(-ssd / (2 * sigma_h**2 * patch**2)) * np.exp(-value / (2 * sigma_range**2))
                      * np.exp(-(dx * dx + dy * dy) / (2 * sigma_space**2)))
            total += weight[..., None] * moved[half:half + height, half:half + width]
            weights += weight
    return total / weights[..., None]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", NUMPY_MODE)
@pytest.mark.parametrize("colour", ["gray", "joint", "per-channel"])
@pytest.mark.parametrize("sigma_space", [2.5, np.inf])
def test_nlm_bilateral_is_its_definition(program, device, border, colour, sigma_space):
    image = picture(23, 31, None if colour == "gray" else 3)
    planes = image.reshape(*image.shape[:2], -1)
    groups = [planes[..., c:c + 1] for c in range(3)] if colour == "per-channel" else [planes]
    expected = np.concatenate([nlm_bilateral(group, 7, 5, 0.08, 0.2, sigma_space, border) for group in groups], axis=-1)
    out = program.denoise(image, "nlm-bilateral", device, search=7, patch=5, sigma_h=0.08, sigma_range=0.2,
                          sigma_space=sigma_space, border=border, colour="joint" if colour == "gray" else colour)
    np.testing.assert_allclose(out.reshape(expected.shape), expected, atol=1e-5)


def patches_of(image, patch, border="symmetric"):
    """H·W x patch² values, in float64."""
    half = patch // 2
    padded = np.pad(image.astype(np.float64), half, mode=NUMPY_MODE[border])
    return np.lib.stride_tricks.sliding_window_view(padded, (patch, patch)).reshape(image.size, -1)


def squared_distances(rows):
    """Of every row to every other, taken as they are defined: the usual shortcut over the norms loses digits."""
    return np.stack([((rows - row) ** 2).sum(-1) for row in rows])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", NUMPY_MODE)
@pytest.mark.parametrize("sigma_space", [4, np.inf])
def test_whole_image_nlm_bilateral_is_its_definition(program, device, border, sigma_space):
    image = picture(13, 17)
    y, x = (axis.ravel()[:, None].astype(np.float64) for axis in np.mgrid[0:13, 0:17])
    values = image.astype(np.float64).ravel()
    weights = (np.exp(-squared_distances(patches_of(image, 3, border)) / (2 * 0.1**2 * 9))
               * np.exp(-(values[:, None] - values) ** 2 / (2 * 0.3**2))
               * np.exp(-((x - x.T) ** 2 + (y - y.T) ** 2) / (2 * sigma_space**2)))
    expected = (weights @ values / weights.sum(1)).reshape(image.shape)
    out = program.denoise(image, "nlm-bilateral", device, search="whole-image", patch=3, sigma_h=0.1, sigma_range=0.3,
                          sigma_space=sigma_space, border=border)
    np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("patch", [3, 5, 7])
def test_preset_of_003_is_its_program(program, device, patch):
    """[003]'s reference program, line by line: its formula as printed, with its own numbers, does nothing."""
    filt_sigma, patch_sigma = 0.02, 5 / 3
    image = picture(19, 23)
    k = np.arange(-(patch // 2), patch // 2 + 1)
    gaussian = np.exp(-(k[:, None] ** 2 + k**2) / (2 * patch_sigma**2))
    gaussian /= gaussian.max()
    distances = squared_distances(patches_of(image, patch) * gaussian.ravel())
    weights = np.exp(-distances / filt_sigma)
    np.fill_diagonal(weights, 0)
    np.fill_diagonal(weights, weights.max(1))
    expected = (weights / weights.sum(1, keepdims=True) @ image.astype(np.float64).ravel()).reshape(image.shape)
    assert np.abs(expected - image).max() > 0.02, "it does something"
    out = program.denoise(image, "nlm", device, white=1, preset="paper-003", patch=patch)
    np.testing.assert_allclose(out, expected, atol=1e-5)


def bilateral_along_rows(image, radius, sigma_space, sigma_range, border):
    image = image.astype(np.float64)
    width = image.shape[1]
    if border == "shrink":
        padded = np.pad(image, ((0, 0), (radius, radius), (0, 0)))
        inside = np.pad(np.ones(image.shape[:2]), ((0, 0), (radius, radius)))
    else:
        padded = np.pad(image, ((0, 0), (radius, radius), (0, 0)), mode=NUMPY_MODE[border])
        inside = np.ones(padded.shape[:2])
    total, weights = np.zeros_like(image), np.zeros(image.shape[:2])
    for dx in range(-radius, radius + 1):
        columns = slice(radius + dx, radius + dx + width)
        other = padded[:, columns]
        weight = np.exp(-dx * dx / (2 * sigma_space**2) - ((other - image) ** 2).mean(-1) / (2 * sigma_range**2))
        weight = weight * inside[:, columns]
        total += weight[..., None] * other
        weights += weight
    return total / weights[..., None]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("border", [*NUMPY_MODE, "shrink"])
@pytest.mark.parametrize("channels", [None, 3])
def test_separable_bilateral_is_two_passes(program, device, border, channels):
    image = picture(23, 37, channels)
    planes = image.reshape(*image.shape[:2], -1)
    settings = (4, 2.5, 0.12, border)
    rows = bilateral_along_rows(planes, *settings)
    expected = bilateral_along_rows(rows.transpose(1, 0, 2), *settings).transpose(1, 0, 2)
    out = program.denoise(image, "bilateral", device, radius=4, sigma_space=2.5, sigma_range=0.12, border=border,
                          quality="separable")
    np.testing.assert_allclose(out.reshape(expected.shape), expected, atol=1e-5)


@pytest.mark.parametrize("border", OPENCV_MODE)
@pytest.mark.parametrize("radius", [2, 5])
def test_disc_bilateral_is_opencvs(program, border, radius):
    image = picture(61, 67)
    expected = cv2.bilateralFilter(image, 2 * radius + 1, 0.15, 3.0, borderType=OPENCV_MODE[border])
    out = program.denoise(image, "bilateral", radius=radius, sigma_space=3, sigma_range=0.15, window="disc",
                          border=border)
    # OpenCV takes its exponentials from a table with linear interpolation.
    np.testing.assert_allclose(out, expected, atol=2e-4)


@pytest.mark.parametrize("border", OPENCV_MODE)
@pytest.mark.parametrize("radius", [2, 5])
def test_city_block_bilateral_of_colours_is_opencvs(program, border, radius):
    image = picture(61, 67, 3)
    image[0, 0] = 0  # OpenCV's table of weights ends at the largest difference within the image: let it reach a border of 0
    expected = cv2.bilateralFilter(image, 2 * radius + 1, 0.3, 3.0, borderType=OPENCV_MODE[border])
    out = program.denoise(image, "bilateral", radius=radius, sigma_space=3, sigma_range=0.3, window="disc",
                          colour_distance="city-block", border=border)
    np.testing.assert_allclose(out, expected, atol=2e-4)


def test_disc_bilateral_is_opencvs_on_8_bit(program):
    image = picture(61, 67, dtype=np.uint8, white=255)
    expected = cv2.bilateralFilter(image, 11, 30, 3.0, borderType=cv2.BORDER_REFLECT)
    out = program.denoise(image, "bilateral", radius=5, sigma_space=3, sigma_range=30, window="disc")
    assert np.abs(out.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("border", NUMPY_MODE)
def test_square_bilateral_is_scikit_images(program, border):
    image = picture(41, 37)
    # With flat spatial weights only: scikit-image lays its table of them out one pixel off.
    expected = restoration.denoise_bilateral(image.astype(np.float64), win_size=9, sigma_color=0.15, sigma_spatial=1e6,
                                             bins=200000, mode=NUMPY_MODE[border])
    out = program.denoise(image, "bilateral", radius=4, sigma_space="inf", sigma_range=0.15, border=border)
    # scikit-image takes its exponentials from a table of `bins` steps.
    np.testing.assert_allclose(out, expected, atol=2e-5)
