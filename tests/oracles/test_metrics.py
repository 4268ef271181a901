"""PSNR, SSIM and MSE against scikit-image."""
import numpy as np
import pytest
from conftest import picture
from skimage import metrics

CASES = [(np.uint8, 255), (np.uint16, 65535), (np.uint16, 4095), (np.float32, 1.0)]


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("dtype,white", CASES)
@pytest.mark.parametrize("shape", [(11, 11), (64, 97), (301, 200)])
def test_metrics_are_scikit_images(program, shape, dtype, white, channels):
    truth = picture(*shape, channels, seed=1, dtype=dtype, white=white)
    image = picture(*shape, channels, seed=2, dtype=dtype, white=white)
    ours = program.compare(truth, image, "--range", white)
    a, b = truth.astype(np.float64), image.astype(np.float64)
    assert ours["mse"] == pytest.approx(metrics.mean_squared_error(a, b), rel=1e-12)
    assert ours["psnr"] == pytest.approx(metrics.peak_signal_noise_ratio(a, b, data_range=white), abs=1e-9)
    expected = metrics.structural_similarity(a, b, data_range=white, gaussian_weights=True, sigma=1.5,
                                             use_sample_covariance=False, channel_axis=-1 if channels else None)
    assert ours["ssim"] == pytest.approx(expected, abs=1e-6)
    assert ours["max_abs"] == pytest.approx(np.abs(a - b).max(), rel=1e-12)


def test_identical_images(program):
    image = picture(40, 40)
    ours = program.compare(image, image)
    assert ours["psnr"] == "inf" and ours["mse"] == 0 and ours["ssim"] == 1


def test_small_images_have_no_ssim(program):
    assert program.compare(picture(10, 40), picture(10, 40, seed=3))["ssim"] is None


def solid(shape, seed, dtype, white):
    """Slices of a picture, each a little darker than the one before."""
    depth, height, width = shape
    slices = [picture(height, width, seed=seed * 100 + z) * (1 - 0.5 * z / depth) for z in range(depth)]
    values = np.stack(slices) * white
    return np.round(values).astype(dtype) if np.issubdtype(dtype, np.integer) else values.astype(dtype)


@pytest.mark.parametrize("dtype,white", CASES)
@pytest.mark.parametrize("shape", [(11, 11, 11), (17, 40, 23), (31, 12, 50)])
def test_metrics_of_volumes_are_scikit_images(program, shape, dtype, white):
    truth, image = solid(shape, 1, dtype, white), solid(shape, 2, dtype, white)
    mask = np.random.default_rng(3).random(shape) < 0.3
    mask[5, 5, 5] = True  # at least one window's centre
    ours = program.compare(truth, image, "--volume", "--range", white, "--mask", program.save("mask", mask.astype(np.uint8)))
    a, b = truth.astype(np.float64), image.astype(np.float64)
    assert ours["mse"] == pytest.approx(metrics.mean_squared_error(a, b), rel=1e-12)
    assert ours["psnr"] == pytest.approx(metrics.peak_signal_noise_ratio(a, b, data_range=white), abs=1e-9)
    expected, local = metrics.structural_similarity(a, b, data_range=white, gaussian_weights=True, sigma=1.5,
                                                    use_sample_covariance=False, full=True)
    assert ours["ssim"] == pytest.approx(expected, abs=1e-9)
    assert ours["max_abs"] == pytest.approx(np.abs(a - b).max(), rel=1e-12)
    inner = (slice(5, -5),) * 3
    assert ours["mask"]["pixels"] == mask.sum()
    assert ours["mask"]["mse"] == pytest.approx(metrics.mean_squared_error(a[mask], b[mask]), rel=1e-12)
    assert ours["mask"]["ssim"] == pytest.approx(local[inner][mask[inner]].mean(), abs=1e-9)
    assert ours["mask"]["max_abs"] == pytest.approx(np.abs(a - b)[mask].max(), rel=1e-12)
