"""Wrong arguments of every kind: every error is an ungrain.Error, in one line, and the built-in one that fits."""

import inspect
import warnings

import numpy as np
import pytest
from conftest import has, picture

import ungrain
from ungrain.compat import cv2, skimage

IMAGE = picture(16, 16)


class Sized:
    def __len__(self):
        return 2


class Failing:
    def __index__(self):
        raise ValueError("no whole number")

    def __float__(self):
        raise ValueError("no number")


WRONG = [None, "x", b"x", -3, 1.5, float("nan"), 1j, 2**40, -2**40, 2**70, 10**400, [], [1, 2], [[1]], [["a"]], (None,), {"a": 1},
         set(), object(), Sized(), Failing(), np.array(["a"]), np.zeros((2, 2)), np.zeros(3, complex), np.datetime64("2020"), int]


def options_of(function):
    return [each.name for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]


def functions():
    """(name, function, its other arguments)"""
    yield "denoise", ungrain.denoise, {"image": IMAGE, "method": "box"}
    for method in ungrain.methods():
        yield method, getattr(ungrain, method.replace("-", "_")), {"image": IMAGE[:8, :8]}
    yield "Denoiser", ungrain.Denoiser, {"method": "box", "shape": (16, 16), "dtype": "float32"}
    yield "Denoiser like", ungrain.Denoiser, {"method": "box", "like": IMAGE}
    denoiser = ungrain.Denoiser("box", like=IMAGE)
    yield "Denoiser()", denoiser, {"image": IMAGE}
    yield "Denoiser.region", denoiser.region, {"image": IMAGE, "at": (0, 0), "out_at": (0, 0), "out_shape": (16, 16)}
    yield "estimate_sigma", ungrain.estimate_sigma, {"image": IMAGE}
    yield "add_noise", ungrain.add_noise, {"image": IMAGE, "amount": 0.1}
    for function in (ungrain.compare, ungrain.psnr, ungrain.ssim, ungrain.fsim):
        yield function.__name__, function, {"truth": IMAGE, "image": IMAGE}
    yield "parameters", ungrain.parameters, {"method": "box"}
    yield "cv2.bilateralFilter", cv2.bilateralFilter, {"src": IMAGE, "d": 3, "sigmaColor": 1.0, "sigmaSpace": 1.0}
    yield "cv2.medianBlur", cv2.medianBlur, {"src": IMAGE, "ksize": 3}
    yield "skimage.denoise_nl_means", skimage.denoise_nl_means, {"image": IMAGE, "patch_size": 3, "patch_distance": 2}


@pytest.mark.parametrize("name", [name for name, _, _ in functions()])
def test_every_error_is_one_of_ours(name):
    function, given = next((function, given) for each, function, given in functions() if each == name)
    strangers = []
    for option in options_of(function):
        for value in WRONG:
            if option in ("src", "dst") or (option == "image" and function is skimage.denoise_nl_means):
                continue  # like the originals, these take anything that NumPy converts to an array
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(**{**given, option: value})
            except ungrain.Error as error:
                if "\n" in str(error) or len(str(error)) > 400:
                    strangers.append(f"{option}={value!r}: {error}")
            except Exception as error:
                if not (option == "progress" and callable(value)):  # its exception is rethrown
                    strangers.append(f"{option}={value!r}: {type(error).__name__}: {error}")
    assert strangers == []


@pytest.mark.parametrize("call, built_in, message", [
    (lambda: ungrain.denoise([[1.0]]), TypeError, "image takes an array .*, got list"),
    (lambda: ungrain.denoise(IMAGE.astype(complex)), TypeError, "image takes uint8, .* got complex128"),
    (lambda: ungrain.box(IMAGE, threads="4"), TypeError, "threads takes a whole number, got '4'"),
    (lambda: ungrain.box(IMAGE, threads=2**40), ValueError, "threads takes a whole number from .*, got 1099511627776"),
    (lambda: ungrain.box(IMAGE, channel_axis=2**40), ValueError, "channel_axis takes a whole number"),
    (lambda: ungrain.box(IMAGE, axis=2**40), ValueError, "axis takes a whole number"),
    (lambda: ungrain.box(IMAGE, range=10**400), ValueError, "range takes a positive number"),
    (lambda: ungrain.box(IMAGE, sigma_range=1), TypeError, "box has no parameter 'sigma_range'; it has radius, radius_z, border"),
    (lambda: ungrain.bm3d(IMAGE, sigma=[None]), TypeError, "sigma takes a number, got None"),
    (lambda: ungrain.bm3d(IMAGE, sigma_map=[["a"]]), TypeError, r"sigma_map takes an array of numbers, got \[\['a'\]\]"),
    (lambda: ungrain.box(IMAGE, radius=-1), ValueError, "radius takes a whole number"),
    (lambda: ungrain.box(IMAGE, device=np.zeros((40, 40))), TypeError, r"device takes a string, got array\(.*\.\.\.$"),
    (lambda: ungrain.box(IMAGE, out=IMAGE.astype("f8")), TypeError, "out has dtype float64, the image float32"),
    (lambda: ungrain.Denoiser("box"), TypeError, "Denoiser takes like=, or shape= and dtype="),
    (lambda: ungrain.Denoiser("box", shape=(8, 8), dtype="f4")(IMAGE.astype("f8")), TypeError, "image has dtype float64"),
    (lambda: ungrain.Denoiser("box", like=IMAGE).region(IMAGE, at=3, out_at=(0, 0), out_shape=(4, 4)), TypeError,
     "at takes two whole numbers, of rows and columns, got 3"),
    (lambda: ungrain.add_noise(IMAGE, "much"), TypeError, "amount takes a number, got 'much'"),
    (lambda: ungrain.add_noise(IMAGE, 1.0, seed=-1), ValueError, r"seed takes a whole number from 0 to 2\*\*64 - 1"),
    (lambda: ungrain.psnr(IMAGE, IMAGE.astype("f8")), TypeError, "say the white level of both"),
    (lambda: ungrain.parameters(3), TypeError, "method takes a string, got 3"),
    (lambda: skimage.denoise_nl_means(IMAGE, h="x"), TypeError, "h takes a number, got 'x'"),
    (lambda: cv2.medianBlur(IMAGE, "x"), TypeError, "ksize takes a whole number, got 'x'"),
])
def test_the_built_in_exception_that_fits(call, built_in, message):
    with pytest.raises(built_in, match=message) as caught:
        call()
    assert type(caught.value) is {TypeError: ungrain.InvalidType, ValueError: ungrain.InvalidArgument}[built_in]
    assert isinstance(caught.value, ungrain.Error) and caught.value.code == 1


@pytest.mark.skipif(not has("dask"), reason="Dask is missing")
def test_of_dask():
    import dask.array

    import ungrain.dask
    array = dask.array.from_array(picture(16, 16, 3))
    for call in (lambda: ungrain.dask.denoise(IMAGE), lambda: ungrain.dask.denoise(array, "box", channel_axis="x"),
                 lambda: ungrain.dask.denoise(array, "box", axis="x"), lambda: ungrain.dask.denoise(array, 3)):
        with pytest.raises(ungrain.InvalidType):
            call()


def test_what_a_callback_raises_comes_through_as_it_is():
    def progress(_):
        raise TypeError("mine")
    with pytest.raises(TypeError, match="mine") as caught:
        ungrain.box(IMAGE, progress=progress)
    assert type(caught.value) is TypeError
