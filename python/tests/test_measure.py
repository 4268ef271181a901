"""estimate_sigma, add_noise, psnr, ssim, fsim."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import picture

import ungrain


def test_estimate_sigma_finds_what_was_added(library):
    clean = np.full((256, 256), 128, np.uint8)
    noisy = ungrain.add_noise(clean, 12, seed=1)
    assert ungrain.estimate_sigma(library.make(noisy)) == pytest.approx(12, rel=0.05)


def test_estimate_sigma_of_channels_and_stacks():
    rng = np.random.default_rng(0)
    image = (0.5 + rng.standard_normal((200, 200, 3)) * [0.02, 0.04, 0.08]).astype(np.float32)
    each = ungrain.estimate_sigma(image, per_channel=True)
    np.testing.assert_allclose(each, [0.02, 0.04, 0.08], rtol=0.05)
    assert ungrain.estimate_sigma(image) == pytest.approx(np.sqrt((each**2).mean()))
    stack = np.stack([image[..., 0], image[..., 1]])
    np.testing.assert_allclose(ungrain.estimate_sigma(stack, axis=0), [0.02, 0.04], rtol=0.05)
    assert ungrain.estimate_sigma(np.stack([stack, stack, stack]), axis=(0, 1)).shape == (3, 2)
    assert ungrain.estimate_sigma(np.stack([image, image]), axis=0, per_channel=True).shape == (2, 3)


def test_estimate_sigma_is_in_pixel_values_of_every_type():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((200, 200))
    for dtype, level, sigma in (("uint16", 30000, 900), ("int16", -2000, 300), ("float64", 0.5, 0.03), (">f4", 0.5, 0.03)):
        assert ungrain.estimate_sigma((level + sigma * noise).astype(dtype)) == pytest.approx(sigma, rel=0.05)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("white", [0.3, 0.7, 100.1, 4095.3])
def test_noise_cut_off_at_any_white_is_measured(dtype, white):
    """range=image.max(), as the documentation says: a float64 maximum is seldom a float32."""
    clean = np.tile(np.linspace(0, 1.1, 256), (200, 1))
    noisy = np.clip(clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape), 0, 1) * white
    image = noisy.astype(dtype)
    for given in (white, image.max()):
        assert ungrain.estimate_sigma(image, range=given) / white == pytest.approx(0.1, rel=0.12)


@pytest.mark.parametrize("kind,amount", [("gaussian", 10), ("salt-pepper", 0.1), ("speckle", 0.2), ("quantization", 8),
                                         ("poisson", 100)])
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_add_noise(library, kind, amount, dtype):
    image = picture(dtype=dtype, white=255)
    given = library.make(image)
    noisy = ungrain.add_noise(given, amount, kind, seed=5, range=255)
    assert type(noisy) is type(given) and noisy.dtype == given.dtype
    assert not np.array_equal(library.read(noisy), image)
    np.testing.assert_array_equal(library.read(noisy), ungrain.add_noise(image, amount, kind, seed=5, range=255))
    out = library.make(np.zeros_like(image))
    assert ungrain.add_noise(given, amount, kind, seed=5, range=255, out=out) is out
    np.testing.assert_array_equal(library.read(out), library.read(noisy))


def test_add_noise_to_a_stack_takes_the_seeds_that_follow():
    stack = np.stack([picture(dtype=np.uint8)] * 3)
    noisy = ungrain.add_noise(stack, 10, seed=7, axis=0)
    for index in range(3):
        np.testing.assert_array_equal(noisy[index], ungrain.add_noise(stack[index], 10, seed=7 + index))


def test_add_noise_errors():
    with pytest.raises(ValueError, match="kind takes one of gaussian, salt-pepper,.*got 'white'"):
        ungrain.add_noise(picture(), 1, "white")
    with pytest.raises(ValueError, match="salt-pepper"):
        ungrain.add_noise(picture(), 7, "salt-pepper")
    for arguments, message in (({"seed": None}, "seed takes a whole number, got None"), ({"amount": "a"}, "amount takes a number"),
                               ({"kind": 3}, "kind takes a string, got 3"), ({"channels": 3}, "channels takes a string")):
        with pytest.raises(TypeError, match=message):
            ungrain.add_noise(picture(), **{"amount": 0.1, **arguments})
    with pytest.raises(ungrain.InvalidArgument, match="seed takes a whole number from 0"):
        ungrain.add_noise(picture(), 0.1, seed=-1)


def test_add_noise_to_overlapping_parts():
    image = picture(50, 50)
    expected = ungrain.add_noise(image[:-1].copy(), 0.1)
    np.testing.assert_array_equal(ungrain.add_noise(image[:-1], 0.1, out=image[1:]), expected)
    np.testing.assert_array_equal(image[1:], expected)


def test_psnr_is_its_definition(library):
    a, b = picture(dtype=np.uint8), picture(dtype=np.uint8, seed=1)
    expected = 10 * np.log10(255**2 / ((a.astype(float) - b) ** 2).mean())
    assert ungrain.psnr(library.make(a), library.make(b)) == pytest.approx(expected, rel=1e-9)
    assert ungrain.psnr(a, a) == np.inf
    assert ungrain.psnr(a.astype(np.float64), b.astype(np.float64), range=255) == pytest.approx(expected, rel=1e-6)


def test_metrics_of_stacks_and_all_at_once():
    truth = np.stack([picture(48, 48, 3, seed=s) for s in range(2)])
    noisy = ungrain.add_noise(truth, 0.05, axis=0)
    assert ungrain.psnr(truth, noisy, axis=0).shape == (2,)
    assert ungrain.psnr(truth[:0], noisy[:0], axis=0).shape == ungrain.estimate_sigma(truth[:0], axis=0).shape == (0,)
    both = ungrain.compare(truth, noisy, axis=0)
    for index, one in enumerate(both):
        assert one.psnr == ungrain.psnr(truth[index], noisy[index])
        assert one.ssim == ungrain.ssim(truth[index], noisy[index])
        assert one.fsim == ungrain.fsim(truth[index], noisy[index])
        assert one.fsimc is not None and one.mse > 0 and one.max_abs > 0
    assert ungrain.compare(truth[0], noisy[0]) == both[0]


def test_metrics_errors():
    small = picture(8, 8)
    for metric in (ungrain.ssim, ungrain.fsim):
        with pytest.raises(ungrain.InvalidArgument, match="not defined for images of this shape"):
            metric(small, small)
        with pytest.raises(TypeError, match="channel_axis takes a whole number, got None"):
            metric(small, small, channel_axis=None)
    assert ungrain.compare(small, small).ssim is None
    with pytest.raises(ValueError, match="another shape"):
        ungrain.psnr(small, picture(9, 9))
    with pytest.raises(TypeError, match="say the white level"):
        ungrain.psnr(small, picture(8, 8, dtype=np.uint8))
    with pytest.raises(TypeError, match="truth takes uint8"):
        ungrain.psnr(small.astype(np.complex64), small)


def test_ssim_is_scikit_images():
    metrics = pytest.importorskip("skimage.metrics", reason="scikit-image is missing")
    a, b = picture(64, 64), picture(64, 64, seed=1)
    expected = metrics.structural_similarity(a.astype(float), b.astype(float), data_range=1, gaussian_weights=True,
                                             sigma=1.5, use_sample_covariance=False)
    assert ungrain.ssim(a, b) == pytest.approx(expected, abs=5e-3)  # it crops another frame


def test_every_kind_of_noise_is_documented():
    for kind, _ in ungrain._core.noise_kinds():
        assert f'"{kind}"' in ungrain.add_noise.__doc__


INTERRUPTED = """
import os, signal, threading, numpy as np, ungrain
image = np.random.default_rng(0).random((256, 256), np.float32)
stack = np.broadcast_to(image, (1_000_000, 256, 256))  # a day's work
signal.signal(signal.SIGINT, signal.default_int_handler)  # which what runs in the background has not
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    ungrain.fsim(stack, stack, axis=0)
    print("done")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_control_c_stops_between_the_images_of_a_stack():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "interrupted\n", done.stderr
