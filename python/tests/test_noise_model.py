"""Noise models, strength, kept grain: the same for every method."""

import json
import pickle

import numpy as np
import pytest
from conftest import picture

import ungrain


def photon_noise(height=256, width=320, peak=200.0, seed=0):
    """Eight even bars and their photon noise."""
    clean = np.repeat(np.linspace(0.06, 0.9, 8), width // 8)[None, :] * np.ones((height, 1))
    return clean.astype(np.float32), (np.random.default_rng(seed).poisson(clean * peak) / peak).astype(np.float32)


def test_a_model_is_estimated_and_goes_through_json():
    clean, noisy = photon_noise()
    found = ungrain.estimate_noise_model(noisy)
    assert found.finding == "by level"
    model = found.model
    assert len(model.channels) == 1 and model.channels[0].spectrum.shape == (8, 8)
    variance = np.interp(0.5, model.channels[0].levels, np.square(model.channels[0].deviations))
    assert np.sqrt(variance) == pytest.approx(np.sqrt(0.5 / 200), rel=0.15)
    again = ungrain.NoiseModel.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again == model
    np.testing.assert_array_equal(ungrain.nlm(noisy, search=7, noise_model=model),
                                  ungrain.nlm(noisy, search=7, noise_model=again.to_dict()))


def test_what_is_measured_is_what_the_model_gives():
    _, noisy = photon_noise()
    model = ungrain.estimate_noise_model(noisy).model
    for method in ("bilateral", "nlm"):
        np.testing.assert_array_equal(ungrain.denoise(noisy, method), ungrain.denoise(noisy, method, noise_model=model))


def test_estimates_of_stacks():
    _, noisy = photon_noise()
    found = ungrain.estimate_noise_model(np.stack([noisy, noisy]), axis=0, iso=1600)
    assert [each.finding for each in found] == ["by level", "by level"]
    with pytest.raises(ungrain.Error, match="an ISO speed is above 0"):
        ungrain.estimate_noise_model(noisy, iso=-1)
    with pytest.raises(ungrain.InvalidType, match="iso takes a number"):
        ungrain.estimate_noise_model(noisy, iso="high")


def test_a_poisson_gaussian_model_keeps_few_counts_and_beats_one_sigma():
    counts = np.random.default_rng(1).poisson(2.0, (400, 400)).astype(np.float32)
    model = ungrain.NoiseModel.poisson_gaussian(1, 0, white=40)
    blurred = ungrain.gaussian(counts, sigma=15, noise_model=model, range=40)
    assert blurred.mean() == pytest.approx(counts.mean(), rel=0.01)
    clean, noisy = photon_noise(peak=20.0)
    model = ungrain.NoiseModel.poisson_gaussian(1 / 20, 0, white=1)
    one_sigma = ungrain.nlm(noisy, sigma=float(np.std(noisy - clean)))
    assert ungrain.psnr(clean, ungrain.nlm(noisy, noise_model=model)) > ungrain.psnr(clean, one_sigma) + 1


@pytest.mark.parametrize("method", ungrain.methods())
def test_strength_and_grain(method):
    image = picture(channels=3)
    given = {} if method in ("box", "gaussian", "median") else {"sigma": 0.05}
    plain = ungrain.denoise(image, method, **given)
    np.testing.assert_array_equal(ungrain.denoise(image, method, **given, strength=0), image)
    np.testing.assert_array_equal(ungrain.denoise(image, method, **given, keep_grain=1), image)
    half = ungrain.denoise(image, method, **given, keep_grain=0.5)
    np.testing.assert_allclose(half, (image + plain) / 2, atol=1e-5)
    if given:
        np.testing.assert_array_equal(ungrain.denoise(image, method, sigma=0.05, strength=0.5),
                                      ungrain.denoise(image, method, sigma=0.025))


def test_luminance_and_chroma():
    image = picture(channels=3)
    plain = ungrain.bm3d(image, sigma=0.05)
    assert not np.array_equal(ungrain.bm3d(image, sigma=0.05, chroma=2), plain)
    with pytest.raises(ungrain.Error, match="luminance and chroma are for bm3d and ridge, not for nlm"):
        ungrain.nlm(image, sigma=0.05, luminance=0.5)


def test_what_is_refused():
    image = picture()
    model = ungrain.NoiseModel.by_level([0, 1], [0.05, 0.02])
    with pytest.raises(ungrain.Error, match="nlm: sigma and a noise model exclude each other"):
        ungrain.nlm(image, sigma=0.05, noise_model=model)
    with pytest.raises(ungrain.Error, match="the noise model has 3 channels, the image 1 colours"):
        ungrain.nlm(image, noise_model=ungrain.NoiseModel.by_level([0, 1], [0.05, 0.02], channels=3))
    with pytest.raises(ungrain.Error, match="strength takes a number from 0 to 10, got -1"):
        ungrain.nlm(image, sigma=0.05, strength=-1)
    with pytest.raises(ungrain.InvalidType, match="strength takes a number, got"):
        ungrain.nlm(image, sigma=0.05, strength="much")
    with pytest.raises(ungrain.InvalidType, match="noise_model takes a NoiseModel or its dict, got"):
        ungrain.nlm(image, noise_model=3)
    with pytest.raises(ungrain.InvalidType, match="noise_model has no 'channels'"):
        ungrain.nlm(image, noise_model={})
    with pytest.raises(ungrain.Error, match="a spectrum has 64 numbers, got 1"):
        ungrain.nlm(image, noise_model={"channels": [{"levels": [0], "deviations": [1], "spectrum": [1]}]})
    with pytest.raises(ungrain.Error, match="deviations of a noise model are 0 or more"):
        ungrain.nlm(image, noise_model=ungrain.NoiseModel.by_level([0], [-1]))


@pytest.mark.parametrize("method", ["nlm", "bm3d", "box"])
def test_denoisers_keep_it_through_pickles(method):
    image = picture(channels=3)
    model = ungrain.NoiseModel.by_level([0, 1], [0.05, 0.02], channels=3)
    denoiser = ungrain.Denoiser(method, like=image, noise_model=model, strength=0.8, keep_grain=0.2)
    again = pickle.loads(pickle.dumps(denoiser))
    np.testing.assert_array_equal(again(image), denoiser(image))
    np.testing.assert_array_equal(denoiser(image), ungrain.denoise(image, method, noise_model=model, strength=0.8,
                                                                   keep_grain=0.2))


def test_noise_that_was_cut_off_is_made_up_for():
    noisy = np.clip(np.rint(np.random.default_rng(0).normal(20, 25, (300, 300))), 0, 255).astype(np.uint8)
    denoiser = ungrain.Denoiser("nlm", like=noisy)
    assert denoiser.params["cut_at_black"] and "cut_at_white" not in denoiser.params
    assert denoiser(noisy).mean() == pytest.approx(20, abs=0.6)
    assert noisy.mean() > 22.5


def clipped(level=5):
    return np.clip(np.rint(np.random.default_rng(0).normal(level, 25, (256, 256))), 0, 255).astype(np.uint8)


def shift(image, level, *arguments, **options):
    """The change of the mean, in an area whose noise the method averages: as floats that may lie below black."""
    return ungrain.denoise(image, *arguments, **options).astype(np.float64).mean() - level


@pytest.mark.parametrize(("method", "given"), [("median", {}), ("box", {}), ("gaussian", {}), ("bilateral", {"sigma_range": 30}),
                                               ("nlm", {"sigma": 25}), ("nlm", {})])
def test_clipping_is_undone_where_it_is_asked_for(method, given):
    image = clipped().astype(np.float32)  # the result may lie below black
    given = {**given, "range": 255}
    assert abs(shift(image, 5, method, clipping="undo", **given)) < 0.35
    assert shift(image, 5, method, clipping="keep", **given) > 1.5


@pytest.mark.parametrize("given", [{"sigma": 25}, {"h": 30}, {"noise_model": ungrain.NoiseModel.by_level([0], [25])}])
def test_with_noise_that_is_given_nothing_is_looked_for(given):
    image = clipped()
    expected = ungrain.Denoiser("nlm", shape=image.shape, dtype=image.dtype, **given)(image)
    np.testing.assert_array_equal(ungrain.denoise(image, "nlm", **given), expected)
    np.testing.assert_array_equal(ungrain.denoise(image, "nlm", clipping="keep", **given), expected)


def test_what_clipping_takes():
    image = clipped()
    with pytest.raises(ungrain.Error, match="clipping takes one of auto, undo, keep, got 'always'"):
        ungrain.nlm(image, clipping="always")
    with pytest.raises(ungrain.InvalidType, match="clipping takes a string, got"):
        ungrain.nlm(image, clipping=1)
    with pytest.raises(ungrain.Error, match="nlm: clipping='undo' looks at an image; give one with like="):
        ungrain.Denoiser("nlm", shape=image.shape, dtype=image.dtype, sigma=25, clipping="undo")


@pytest.mark.parametrize("method", ["median", "nlm"])
def test_undone_clipping_is_kept_through_pickles(method):
    image = clipped()
    denoiser = ungrain.Denoiser(method, like=image, clipping="undo")
    assert denoiser.params["cut_at_black"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(denoiser))(image), denoiser(image))
    np.testing.assert_array_equal(denoiser(image), ungrain.denoise(image, method, clipping="undo"))


def blurred_noise(shape, sigma, seed=3):
    """White noise under a 3 x 3 box."""
    white = np.random.default_rng(seed).normal(0, sigma / 3, (shape[0] + 2, shape[1] + 2))
    return sum(white[y:y + shape[0], x:x + shape[1]] for y in range(3) for x in range(3))


def test_known_noise_of_a_density_or_a_kernel():
    along = np.square(1 + 2 * np.cos(2 * np.pi * np.arange(32) / 32))
    of_psd = ungrain.NoiseModel.from_psd(np.outer(along, along) * 0.05**2 / 9)
    of_kernel = ungrain.NoiseModel.from_kernel(np.ones((3, 3)), 0.05 / 3)
    for model in (of_psd, of_kernel):
        assert model.channels[0].deviations == pytest.approx([0.05], rel=1e-4)
        assert model.channels[0].correlation.shape == (5, 5)
        assert model.channels[0].correlation[2, 1] == pytest.approx(2 / 3, abs=1e-4)
        assert ungrain.NoiseModel.from_dict(json.loads(json.dumps(model.to_dict()))) == model
        assert model.scaled(2).channels[0].correlation is model.channels[0].correlation
    noisy = (0.5 + blurred_noise((96, 96), 0.05)).astype(np.float32)
    left = {name: np.std(ungrain.bm3d(noisy, **noise)) for name, noise in
            {"psd": {"noise_model": of_psd}, "kernel": {"noise_model": of_kernel}, "white": {"sigma": 0.05}}.items()}
    assert left["psd"] == pytest.approx(left["kernel"], rel=1e-2)
    assert left["kernel"] < left["white"] / 2


def test_known_noise_of_channels():
    own = ungrain.NoiseModel.from_psd(np.full((8, 8, 3), [1.0, 2.0, 3.0]), channels=3)
    assert np.square([c.deviations[0] for c in own.channels]) == pytest.approx([2, 2, 2])
    with pytest.raises(ungrain.InvalidArgument, match="1 channel or one for each of 1"):
        ungrain.NoiseModel.from_psd(np.ones((8, 8, 3)))
    with pytest.raises(ungrain.InvalidArgument, match="2 or 3 dimensions"):
        ungrain.NoiseModel.from_psd(np.ones(8))
    with pytest.raises(ungrain.InvalidArgument, match="0 or more"):
        ungrain.NoiseModel.from_psd(-np.ones((8, 8)))
