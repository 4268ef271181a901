"""Volumes in parts along all three axes: the same bits as one call."""

import numpy as np
import pytest
from conftest import has
from volumes import noisy_phantom

import ungrain

if not has("dask"):
    pytest.skip("Dask is missing", allow_module_level=True)

import dask.array as da  # noqa: E402

import ungrain.dask  # noqa: E402

# Methods with a small reach; that of nlm3d is known only where a build has it.
QUICK = {"bm4d": {"search": 3, "wiener_cube": 4, "profile": "fast"}, "nlm3d": {"search": 5}}
SOLID = [method for method in ungrain.volume_methods() if method not in ungrain.methods()]
SIZE = {"depth": 41, "height": 44, "width": 39}
CHUNKS = ((21, 20), (14, 14, 16), (20, 19))  # larger than the reach: 10, and of floats 18 along z


def computed(array):
    return array.compute(scheduler="synchronous")


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
@pytest.mark.parametrize("method", SOLID)
def test_same_bits_as_one_call(method, dtype):
    volume = noisy_phantom(0.08, dtype, **SIZE)
    sigma = 0.08 if volume.dtype.kind == "f" else 16
    result = ungrain.dask.denoise_volume(da.from_array(volume, chunks=CHUNKS), method, sigma=sigma, **QUICK[method])
    assert result.dtype == volume.dtype and result.shape == volume.shape and result.numblocks == (2, 3, 2)
    np.testing.assert_array_equal(computed(result), ungrain.denoise_volume(volume, method, sigma=sigma, **QUICK[method]))


@pytest.mark.parametrize("method", SOLID)
@pytest.mark.parametrize("options", [
    {"spacing": (2.5, 1, 1)}, {"spacing": (1, 2, 2)}, {"strength": 0.7, "keep_grain": 0.2}, {"rician": True, "coils": 2},
    {"noise_model": ungrain.NoiseModel.poisson_gaussian(0.01, 1e-3, white=1)}], ids=lambda options: "-".join(options))
def test_options(method, options):
    volume = np.abs(noisy_phantom(0.08, **SIZE))
    given = {**({} if "noise_model" in options else {"sigma": 0.08}), **QUICK[method], **options}
    result = ungrain.dask.denoise_volume(da.from_array(volume, chunks=CHUNKS), method, **given)
    np.testing.assert_array_equal(computed(result), ungrain.denoise_volume(volume, method, **given))


def test_correlated_noise():
    volume = noisy_phantom(0.08, **SIZE)
    given = {"sigma": 0.08, "correlation": np.einsum("i,j,k->ijk", *[[0.5, 1, 0.5]] * 3), **QUICK["bm4d"]}
    result = computed(ungrain.dask.denoise_volume(da.from_array(volume, chunks=CHUNKS), **given))
    np.testing.assert_array_equal(result, ungrain.denoise_volume(volume, **given))
    del given["correlation"]
    assert not np.array_equal(result, ungrain.denoise_volume(volume, **given))


@pytest.mark.parametrize("method", SOLID)
def test_noise_is_measured_on_the_same_slices(method):
    volume = noisy_phantom(0.08, **SIZE)
    result = ungrain.dask.denoise_volume(da.from_array(volume, chunks=CHUNKS), method, **QUICK[method])
    np.testing.assert_array_equal(computed(result), ungrain.denoise_volume(volume, method, **QUICK[method]))


@pytest.mark.parametrize("method", SOLID)
def test_noise_that_was_cut_at_black(method):
    """It is filled in, by the voxels of the same line, first."""
    volume = noisy_phantom(0.15, np.uint16, **SIZE)
    array = da.from_array(volume, chunks=((21, 20), (24, 20), (20, 19)))
    result = ungrain.dask.denoise_volume(array, method, **QUICK[method])
    assert result.numblocks == (2, 2, 2)
    np.testing.assert_array_equal(computed(result), ungrain.denoise_volume(volume, method, **QUICK[method]))


def test_slices_of_large_volumes():
    from ungrain._volume_parts import VolumeWork
    work = VolumeWork("bm4d", {}, (1000, 4000, 4000), "float32", None)
    assert work.sampled() == [list(range(0, 1000, 250)), None, None]


@pytest.mark.parametrize("axis", [0, 3])
def test_channels(axis):
    volume = np.moveaxis(noisy_phantom(0.08, channels=2, **SIZE), -1, axis)
    chunks = list(CHUNKS)
    chunks.insert(axis, (1, 1))
    given = {"sigma": [0.08, 0.05], "channel_axis": axis, **QUICK["bm4d"]}
    result = ungrain.dask.denoise_volume(da.from_array(volume, chunks=tuple(chunks)), **given)
    np.testing.assert_array_equal(computed(result), ungrain.denoise_volume(volume, **given))


def test_axes_that_a_voxel_needs_all_of_are_not_split():
    volume = noisy_phantom(0.08, depth=12, height=60, width=20)
    result = ungrain.dask.denoise_volume(da.from_array(volume, chunks=(4, 10, 5)), sigma=0.08, **QUICK["bm4d"])
    assert result.numblocks[0] == 1 and result.numblocks[1] > 1
    np.testing.assert_array_equal(computed(result), ungrain.denoise_volume(volume, sigma=0.08, **QUICK["bm4d"]))


def test_voxels_that_are_not_finite():
    volume = noisy_phantom(0.08, **SIZE)
    volume[20, 14, 20] = np.nan
    array = da.from_array(volume, chunks=CHUNKS)
    given = {"sigma": 0.08, **QUICK["bm4d"]}
    result, expected = computed(ungrain.dask.denoise_volume(array, **given)), ungrain.denoise_volume(volume, **given)
    far = np.s_[:, :, 35:]
    assert np.isfinite(result).all() and np.abs(result - expected).max() < 0.2
    np.testing.assert_array_equal(result[far], expected[far])
    assert np.isnan(computed(ungrain.dask.denoise_volume(array, nonfinite="keep", **given))).sum() == 1


def test_what_it_does_not_take():
    array = da.from_array(noisy_phantom(depth=8), chunks=8)
    with pytest.raises(ungrain.Unsupported, match="median looks along the slices of a whole volume"):
        ungrain.dask.denoise_volume(array, "median")
    with pytest.raises(ungrain.InvalidArgument, match="sigma of Rician noise is not measured in parts"):
        ungrain.dask.denoise_volume(array, rician=True)
    with pytest.raises(ungrain.InvalidType, match="array takes a Dask array"):
        ungrain.dask.denoise_volume(noisy_phantom(depth=8))
    with pytest.raises(ungrain.InvalidArgument, match="is no volume"):
        ungrain.dask.denoise_volume(array[0])
