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
