"""Volumes of voxels: types, layouts, in place, voxels that are no cubes, Rician noise, and what goes wrong."""

import inspect

import numpy as np
import pytest
from conftest import has
from volumes import decibels, noisy_phantom, phantom

import ungrain

# Quick parameters that touch more than one slice.
QUICK = {"bm4d": {"profile": "fast"}, "nlm3d": {"search": 3}, "box": {}, "gaussian": {}, "median": {"radius": 1},
         "bilateral": {"radius": 2}}
SOLID = [method for method in ungrain.volume_methods() if method not in ungrain.methods()]
DTYPES = ["uint8", "uint16", "float16", "float32", "float64", "int16"]


def test_every_method_is_here():
    assert set(ungrain.volume_methods()) <= set(QUICK)
    assert "bm4d" in SOLID and not set(SOLID) & set(ungrain.methods())


@pytest.mark.parametrize("method", ungrain.volume_methods())
def test_it_denoises(method):
    clean = phantom()
    noisy = noisy_phantom(0.1)
    result = ungrain.denoise_volume(noisy, method, **QUICK[method])
    assert result.dtype == noisy.dtype and result.shape == noisy.shape
    far = np.s_[:2, :4, :4]  # in the background
    assert np.abs(clean[far]).max() == 0 and result[far].std() < noisy[far].std() * 0.8
    if method in SOLID:
        assert decibels(result, clean) > decibels(noisy, clean) + 3.5


def test_bm4d_of_measured_noise_is_near_bm4d_of_the_given():
    clean = phantom(40, 48, 44)
    noisy = noisy_phantom(0.06, depth=40, height=48, width=44)
    gain = decibels(ungrain.denoise_volume(noisy), clean) - decibels(noisy, clean)
    assert gain > 5
    assert abs(decibels(ungrain.bm4d(noisy, sigma=0.06), clean) - decibels(noisy, clean) - gain) < 0.6


@pytest.mark.parametrize("method", SOLID)
def test_a_method_by_name_and_by_function(method):
    noisy = noisy_phantom(depth=9)
    np.testing.assert_array_equal(getattr(ungrain, method)(noisy, sigma=0.08, **QUICK[method]),
                                  ungrain.denoise_volume(noisy, method, sigma=0.08, **QUICK[method]))
    assert ungrain.parameters(method)


@pytest.mark.skipif("nlm3d" not in SOLID, reason="this build has no nlm3d")
def test_nlm_stands_for_nlm3d():
    noisy = noisy_phantom(depth=7)
    np.testing.assert_array_equal(ungrain.denoise_volume(noisy, "nlm", sigma=0.08, search=3),
                                  ungrain.nlm3d(noisy, sigma=0.08, search=3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [None, 2])
def test_type_and_shape_are_kept(library, dtype, channels):
    if library.name.startswith("torch") and dtype == "uint16":
        torch = pytest.importorskip("torch")
        if not hasattr(torch, "uint16"):
            pytest.skip("this PyTorch has no uint16")
    volume = noisy_phantom(dtype=dtype, channels=channels, depth=6, height=12, width=13)
    given = library.make(volume)
    layout = {} if channels is None else {"channel_axis": -1}
    result = ungrain.bm4d(given, sigma=volume.max() / 20, profile="fast", **layout)
    assert type(result) is type(given) and result.dtype == given.dtype and tuple(result.shape) == volume.shape
    assert not np.array_equal(library.read(result), volume)
    if not library.gpu:  # a GPU has other last bits
        np.testing.assert_array_equal(library.read(result), ungrain.bm4d(volume, sigma=volume.max() / 20, profile="fast",
                                                                         **layout))


@pytest.mark.parametrize("method", ["bm4d", "median"])
def test_any_layout(method):
    volume = noisy_phantom(depth=9, height=14, width=11)
    given = {"sigma": 0.08} if method == "bm4d" else {}
    expected = ungrain.denoise_volume(volume, method, **given)
    wide = np.zeros((18, 20, 30), np.float32)
    views = {"gaps between slices": wide[::2, :14, :11], "Fortran order": np.asfortranarray(volume),
             "other byte order": volume.astype(">f4"), "packed slices": np.zeros((18, 14, 11), np.float32)[::2]}
    views["gaps between slices"][...] = volume
    views["packed slices"][...] = volume
    for name, view in views.items():
        before = view.copy()
        result = ungrain.denoise_volume(view, method, **given)
        np.testing.assert_array_equal(result, expected, err_msg=name)
        np.testing.assert_array_equal(view, before, err_msg=name)
        assert result.dtype == view.dtype
        assert ungrain.denoise_volume(view, method, out=view, **given) is view
        np.testing.assert_array_equal(view, expected, err_msg=name)
    assert not wide[1::2].any() and not wide[:, 14:].any() and not wide[:, :, 11:].any()
    reverse = volume[::-1, ::-1, ::-1]
    assert np.abs(ungrain.denoise_volume(reverse, method, **given)[::-1, ::-1, ::-1] - expected).max() < 0.2


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
@pytest.mark.parametrize("method", ["bm4d", "box"])
def test_channels_may_be_anywhere(axis, method):
    volume = noisy_phantom(channels=3, depth=6, height=9, width=8)
    given = {"sigma": [0.08, 0.05, 0]} if method == "bm4d" else {}
    expected = np.stack([ungrain.denoise_volume(volume[..., c], method, device="cpu",
                                                **{name: value[c] for name, value in given.items()}) for c in range(3)], -1)
    moved = np.ascontiguousarray(np.moveaxis(volume, -1, axis))
    result = ungrain.denoise_volume(moved, method, device="cpu", channel_axis=axis, **given)
    np.testing.assert_allclose(np.moveaxis(result, axis, -1), expected, atol=1e-6)


def test_an_output_of_ones_own(library):
    volume = library.make(noisy_phantom(depth=6))
    expected = library.read(ungrain.bm4d(volume, sigma=0.08))
    out = library.make(np.zeros(tuple(volume.shape), np.float32))
    assert ungrain.bm4d(volume, sigma=0.08, out=out) is out
    np.testing.assert_array_equal(library.read(out), expected)
    address = library.address(volume)
    assert ungrain.bm4d(volume, sigma=0.08, out=volume) is volume and library.address(volume) == address
    np.testing.assert_array_equal(library.read(volume), expected)


def test_spacing_is_the_voxels_shape():
    volume = noisy_phantom(depth=9)
    thick = ungrain.bm4d(volume, sigma=0.08, aspect=3)
    np.testing.assert_array_equal(ungrain.denoise_volume(volume, sigma=0.08, spacing=(3, 1, 1)), thick)
    np.testing.assert_array_equal(ungrain.bm4d(volume, sigma=0.08, spacing=(1.5, 0.5, 0.5)), thick)
    np.testing.assert_array_equal(ungrain.bm4d(volume, sigma=0.08, spacing=np.array([3, 4, 0.25])), thick)
    assert not np.array_equal(ungrain.bm4d(volume, sigma=0.08), thick)
    np.testing.assert_array_equal(ungrain.bm4d(volume, sigma=0.08, aspect=3, spacing=(1, 1, 1)), thick)  # given values count


@pytest.mark.parametrize("method, size, along", [("box", "radius", "radius_z"), ("gaussian", "sigma", "sigma_z"),
                                                 ("median", "radius", "radius_t"), ("bilateral", "radius", "radius_t")])
def test_methods_that_look_along_slices(method, size, along):
    volume = noisy_phantom(depth=7)
    given = {"sigma_range": 0.3} if method == "bilateral" else {}
    for spacing, aspect in ((None, 1), ((2, 1, 1), 2)):
        step = {"step_t": aspect} if method == "bilateral" else {}
        expected = ungrain.denoise(volume, method, axis=0, **{size: 2, along: 2 / aspect, **given, **step})
        np.testing.assert_array_equal(ungrain.denoise_volume(volume, method, spacing=spacing, **{size: 2, **given}), expected)
    step = {"step_t": 1} if method == "bilateral" else {}
    expected = ungrain.denoise(volume, method, axis=0, **{size: 2, along: 1, **given, **step})
    np.testing.assert_array_equal(ungrain.denoise_volume(volume, method, **{size: 2, along: 1, **given}), expected)


def test_bilateral_weighs_distances_along_z():
    """A volume turned on its side has the same result, turned."""
    volume = noisy_phantom(depth=24, height=24, width=24)
    result = ungrain.denoise_volume(volume, "bilateral", radius=3, sigma_range=0.3, border="shrink")
    turned = ungrain.denoise_volume(np.ascontiguousarray(volume.transpose(1, 0, 2)), "bilateral", radius=3, sigma_range=0.3,
                                    border="shrink")
    np.testing.assert_allclose(turned.transpose(1, 0, 2), result, atol=1e-5)


def test_noise_is_that_of_the_whole_volume():
    """The first slice may be empty."""
    size = {"depth": 24, "height": 64, "width": 60}
    volume, clean = noisy_phantom(0.08, **size), phantom(**size)
    volume[0] = clean[0]
    assert decibels(ungrain.denoise_volume(volume, "bilateral", radius=2), clean) > decibels(volume, clean) + 4


def test_pixels_that_are_not_finite():
    volume = noisy_phantom(depth=6)
    volume[3, 4, 5] = np.nan
    assert np.isfinite(ungrain.bm4d(volume, sigma=0.08)).all()
    assert np.isnan(ungrain.bm4d(volume, sigma=0.08, nonfinite="keep")[3, 4, 5])
    with pytest.raises(ungrain.BadPixels):
        ungrain.bm4d(volume, sigma=0.08, nonfinite="error")


def test_strength_and_grain():
    volume = noisy_phantom(depth=6)
    np.testing.assert_array_equal(ungrain.bm4d(volume, sigma=0.04, strength=2), ungrain.bm4d(volume, sigma=0.08))
    np.testing.assert_array_equal(ungrain.bm4d(volume, sigma=0.08, strength=0), volume)
    np.testing.assert_allclose(ungrain.bm4d(volume, sigma=0.08, keep_grain=0.5),
                               (volume + ungrain.bm4d(volume, sigma=0.08)) / 2, atol=1e-6)


def test_a_noise_model():
    clean, rng = phantom(), np.random.default_rng(1)
    volume = (clean + np.sqrt(0.02 * clean + 1e-4) * rng.standard_normal(clean.shape)).astype(np.float32)
    model = ungrain.NoiseModel.poisson_gaussian(0.02, 1e-4, white=1)
    assert decibels(ungrain.bm4d(volume, noise_model=model), clean) > decibels(volume, clean) + 3


def test_noise_by_level_is_measured():
    clean, rng = phantom(48, 64, 64), np.random.default_rng(0)
    volume = (clean + np.sqrt(0.03 * clean + 1e-4) * rng.standard_normal(clean.shape)).astype(np.float32)
    assert decibels(ungrain.bm4d(volume, profile="fast"), clean) > decibels(volume, clean) + 4


def test_range_of_large_floats():
    volume = noisy_phantom(0.08)
    scaled = ungrain.denoise_volume(volume * 1000, range=1000)
    np.testing.assert_allclose(scaled / 1000, ungrain.denoise_volume(volume), atol=0.02)
    with pytest.warns(UserWarning, match="say range="):
        ungrain.denoise_volume(volume * 1000)


def test_a_map_of_the_noise():
    volume = noisy_phantom(depth=9)
    given = {"search": 5, "device": "cpu"}
    expected = ungrain.bm4d(volume, sigma=0.08, **given)
    level = np.full(volume.shape, 0.08, np.float32)
    np.testing.assert_allclose(ungrain.bm4d(volume, sigma_map=level, **given), expected, atol=1e-5)
    ramp = level * np.linspace(0.2, 2, volume.shape[2], dtype=np.float32)
    assert not np.allclose(ungrain.bm4d(volume, sigma_map=ramp, **given), expected, atol=1e-3)
    with pytest.raises(ungrain.InvalidArgument, match="sigma_map takes an array of the volume's shape"):
        ungrain.bm4d(volume, sigma_map=level[1:], **given)


def test_progress_and_cancelling():
    volume, told = noisy_phantom(depth=20), []
    ungrain.bm4d(volume, sigma=0.08, progress=told.append, device="cpu")
    assert told == sorted(told) and told[-1] == 1
    with pytest.raises(ungrain.Cancelled):
        ungrain.bm4d(volume, sigma=0.08, progress=lambda done: False, device="cpu")


# ---- magnitudes of MRI

def magnitudes(sigma, coils=1, seed=0):
    clean, rng = phantom(), np.random.default_rng(seed)
    parts = rng.standard_normal((2 * coils, *clean.shape)) * sigma
    parts[0] += clean
    return clean, np.sqrt((parts**2).sum(0)).astype(np.float32)


@pytest.mark.parametrize("coils", [1, 4])
def test_rician_noise(coils):
    clean, volume = magnitudes(0.1, coils)
    plain = ungrain.bm4d(volume, sigma=0.1)
    result = ungrain.bm4d(volume, sigma=0.1, rician=True, coils=coils)
    assert decibels(result, clean) > decibels(plain, clean) + 1
    background = clean == 0
    assert result[background].mean() < plain[background].mean() / 2


@pytest.mark.parametrize("coils", [1, 4])
def test_rician_noise_is_measured(library, coils):
    _, volume = magnitudes(0.1, coils)
    given = library.make(volume)
    found = ungrain.estimate_rician(given, coils)
    assert abs(found.sigma / 0.1 - 1) < 0.1 and found.source in ("background", "object")
    result = ungrain.denoise_volume(given, rician=True, coils=coils, profile="fast")
    expected = ungrain.denoise_volume(given, sigma=found.sigma, rician=True, coils=coils, profile="fast")
    np.testing.assert_array_equal(library.read(result), library.read(expected))
    channels = np.stack([volume, volume], 1)
    assert ungrain.estimate_rician(channels, coils, channel_axis=1).sigma == pytest.approx(found.sigma, rel=1e-3)


def test_rician_noise_with_methods_that_look_along_slices():
    clean, volume = magnitudes(0.1)
    result = ungrain.denoise_volume(volume, "bilateral", radius=2, sigma=0.1, rician=True)
    assert decibels(result, clean) > decibels(volume, clean) + 1


# ---- what goes wrong

@pytest.mark.parametrize("arguments, error, words", [
    ({"method": "bm3d"}, ungrain.InvalidArgument, "bm3d is for images; volumes take bm4d, .*axis=0"),
    ({"method": "bm4"}, ungrain.InvalidArgument, "there is no method 'bm4', did you mean bm3d|bm4d"),
    ({"method": 4}, ungrain.InvalidType, "method takes a string"),
    ({"spacing": (1, 1)}, ungrain.InvalidType, "spacing takes three numbers"),
    ({"spacing": (1, 0, 1)}, ungrain.InvalidArgument, "spacing takes three positive numbers"),
    ({"spacing": 2}, ungrain.InvalidType, "spacing takes three numbers"),
    ({"channel_axis": -1}, ungrain.InvalidArgument, "is no volume: depth x height x width"),
    ({"radius": 3}, ungrain.InvalidType, "bm4d has no parameter 'radius'"),
    ({"coils": 4}, ungrain.InvalidArgument, "coils is for Rician noise"),
    ({"rician": True, "coils": 0}, ungrain.InvalidArgument, "coils takes a whole number from 1 to 128"),
    ({"rician": True, "sigma": [1, 2]}, ungrain.InvalidArgument, "sigma takes one number"),
    ({"threads": "two"}, ungrain.InvalidType, "threads takes a whole number"),
    ({"out": np.zeros((6, 30, 27), np.float32)}, ungrain.InvalidArgument, "another shape"),
])
def test_errors_name_what_is_wrong(arguments, error, words):
    with pytest.raises(error, match=words):
        ungrain.denoise_volume(noisy_phantom(depth=6), **{"sigma": 0.08, **arguments})


def test_images_are_no_volumes():
    with pytest.raises(ungrain.InvalidArgument, match=r"shape \(30, 28\) is no volume"):
        ungrain.bm4d(noisy_phantom(depth=6)[0])
    with pytest.raises(ungrain.Unsupported, match="bm4d is for volumes, this is an image"):
        ungrain.denoise(noisy_phantom(depth=6)[0], "bm4d", sigma=0.08)


def test_rician_noise_is_not_of_colours():
    with pytest.raises(ungrain.InvalidArgument, match="Rician noise is that of gray images"):
        ungrain.bm4d(noisy_phantom(channels=3, depth=6), sigma=0.08, rician=True, channel_axis=-1, channels="rgb")


def test_the_functions_say_what_they_take():
    signature = inspect.signature(ungrain.bm4d).parameters
    assert list(signature)[0] == "volume" and {"sigma", "spacing", "aspect", "rician", "out"} <= set(signature)
    assert "stride" in ungrain.bm4d.__doc__ and "ungrain.denoise_volume" in ungrain.bm4d.__doc__


@pytest.mark.skipif(not has("torch"), reason="PyTorch is missing")
def test_a_layout_of_pytorch():
    import torch
    volume = torch.from_numpy(noisy_phantom(depth=6))
    expected = ungrain.bm4d(volume, sigma=0.08)
    turned = volume.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    assert torch.equal(ungrain.bm4d(turned, sigma=0.08), expected)
