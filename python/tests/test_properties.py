"""Properties that hold for any array, tried on many (hypothesis)."""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is missing")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import ungrain  # noqa: E402

settings.register_profile("quick", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("quick")

DTYPES = st.sampled_from(["uint8", "uint16", "float16", "float32", "float64", "int16", ">u2", ">f4"])
METHODS = st.sampled_from([("box", {"radius": 1}), ("median", {"radius": 1}), ("gaussian", {"sigma": 0.8}),
                           ("bilateral", {"radius": 2, "sigma_range": 0.3, "sigma_space": 1.5}),
                           ("nlm", {"search": 3, "patch": 3, "h": 0.2})])


@st.composite
def arrays(draw, stacked=False):
    """Any size from 1 x 1, channels, types, and memory layouts: steps, flips, transposes, gaps."""
    sides = [draw(st.integers(1, 12)), draw(st.integers(1, 12))]
    channels = draw(st.sampled_from([None, 1, 2, 3, 4]))
    shape = sides + ([channels] if channels else [])
    if stacked:
        shape = [draw(st.integers(1, 3)), *shape]
    dtype = np.dtype(draw(DTYPES))
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in shape]
    room = [abs(step) * size for step, size in zip(steps, shape)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.random([room[axis] for axis in order])
    if dtype.kind in "ui":
        values = np.rint(values * np.iinfo(dtype).max)
    memory = values.astype(dtype).transpose(np.argsort(order))
    view = memory[tuple(slice(None, None, step) for step in steps)]
    return view[tuple(slice(0, size) for size in shape)]


def scaled(image, parameters):
    """Strengths in pixel values, for any type."""
    white = {"u": 1, "i": 1}.get(image.dtype.kind) and float(np.iinfo(image.dtype).max) or 1.0
    return {k: v * white if k in ("sigma_range", "h") else v for k, v in parameters.items()}


@given(arrays(), METHODS)
def test_layout_changes_nothing(image, method):
    name, parameters = method
    parameters = scaled(image, parameters)
    packed = np.ascontiguousarray(image)
    before = image.copy()
    result = ungrain.denoise(image, name, device="cpu", **parameters)
    assert result.dtype == image.dtype and result.shape == image.shape
    np.testing.assert_array_equal(result, ungrain.denoise(packed, name, device="cpu", **parameters))
    np.testing.assert_array_equal(image, before)
    out = np.zeros_like(image)
    ungrain.denoise(image, name, device="cpu", out=out, **parameters)
    np.testing.assert_array_equal(out, result)
    ungrain.denoise(image, name, device="cpu", out=image, **parameters)
    np.testing.assert_array_equal(image, result)


@given(arrays(), METHODS)
def test_results_stay_within_what_came(image, method):
    name, parameters = method
    result = ungrain.denoise(image, name, device="cpu", **scaled(image, parameters)).astype(np.float64)
    low, high = float(image.min()), float(image.max())
    slack = 0 if image.dtype.kind in "ui" else 1e-3 if image.dtype.itemsize == 2 else 1e-6
    assert result.min() >= low - slack and result.max() <= high + slack


@given(arrays(stacked=True), METHODS)
def test_a_stack_is_its_images(stack, method):
    name, parameters = method
    parameters = scaled(stack, parameters)
    result = ungrain.denoise(stack, name, axis=0, device="cpu", **parameters)
    for image, one in zip(stack, result):
        np.testing.assert_array_equal(one, ungrain.denoise(image, name, device="cpu", **parameters))


@given(arrays())
def test_a_denoiser_gives_the_calls_bits(image):
    denoiser = ungrain.Denoiser("gaussian", shape=image.shape, dtype=image.dtype.newbyteorder("="), device="cpu", sigma=1.2)
    native = image.astype(image.dtype.newbyteorder("="))
    np.testing.assert_array_equal(denoiser(native), ungrain.gaussian(native, sigma=1.2, device="cpu"))


@given(arrays(), st.integers(0, 2**64 - 1))
def test_noise_depends_on_the_seed_alone(image, seed):
    white = float(np.iinfo(image.dtype).max) if image.dtype.kind in "ui" else 1.0
    noisy = ungrain.add_noise(image, 0.1 * white, seed=seed)
    np.testing.assert_array_equal(noisy, ungrain.add_noise(np.ascontiguousarray(image), 0.1 * white, seed=seed))
    assert noisy.dtype == image.dtype


@given(arrays())
def test_an_image_is_itself(image):
    assert ungrain.psnr(image, image) == np.inf
    assert ungrain.estimate_sigma(np.full_like(image, image.ravel()[0])) == 0


JUNK = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.floats(), max_size=3),
                 st.just(object()), st.just({}), st.binary(max_size=4))


@pytest.mark.filterwarnings("ignore:the noise")
@settings(max_examples=200)
@given(st.sampled_from(["bilateral", "nlm", "bm3d", "gaussian"]), st.data())
def test_any_value_is_taken_or_refused_by_name(method, data):
    """Never a crash, never a silent replacement: a refusal names the parameter."""
    name = data.draw(st.sampled_from([p["name"] for p in ungrain.parameters(method)]))
    value = data.draw(JUNK)
    image = np.full((6, 6), 0.5, np.float32)
    fixed = {} if method == "gaussian" or name == "sigma" else {"sigma": 0.1}
    try:
        result = ungrain.denoise(image, method, device="cpu", **{**fixed, name: value})
    except (ungrain.Error, TypeError, ValueError, OverflowError) as error:
        assert str(error)
    else:
        assert result.shape == image.shape and np.isfinite(result).all()
