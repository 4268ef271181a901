"""One call on any array: types, layouts, stacks, in place, and what goes wrong."""

import concurrent.futures
import copy
import inspect
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from conftest import picture

import ungrain

DTYPES = ["uint8", "uint16", "float16", "float32"]
CONVERTED = ["float64", "int16"]
# Quick parameters that touch more than one row.
QUICK = {"box": {}, "gaussian": {}, "median": {}, "bilateral": {"radius": 2}, "adaptive-bilateral": {"radius": 2},
         "nlm": {"search": 5, "patch": 3}, "nlm-bilateral": {"search": 5, "patch": 3}, "bm3d": {"profile": "fast"},
         "ridge": {"passes": 1, "search": 15}}


def test_every_method_is_here():
    assert set(ungrain.methods()) == set(QUICK)


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("channels", [None, 3])
def test_a_method_by_name_and_by_function(method, channels):
    image = picture(channels=channels, dtype=np.uint8)
    result = ungrain.denoise(image, method, **QUICK[method])
    function = getattr(ungrain, method.replace("-", "_"))
    np.testing.assert_array_equal(function(image, **QUICK[method]), result)
    assert result.dtype == image.dtype and result.shape == image.shape
    assert not np.array_equal(result, image)


def test_bm3d_denoises_by_default():
    clean = picture(96, 96)
    noisy = ungrain.add_noise(clean, 0.1, seed=3)
    assert ungrain.psnr(clean, ungrain.denoise(noisy)) > ungrain.psnr(clean, noisy) + 2.5  # its texture counts as noise in part


@pytest.mark.parametrize("dtype", DTYPES + CONVERTED)
@pytest.mark.parametrize("channels", [None, 1, 3])
def test_type_and_shape_are_kept(library, dtype, channels):
    if library.name.startswith("torch") and dtype == "uint16":
        torch = pytest.importorskip("torch")
        if not hasattr(torch, "uint16"):
            pytest.skip("this PyTorch has no uint16")
    image = picture(channels=channels, dtype=dtype)
    given = library.make(image)
    result = ungrain.bilateral(given, radius=2, sigma=image.max() / 20)
    assert type(result) is type(given) and result.dtype == given.dtype and tuple(result.shape) == image.shape
    np.testing.assert_array_equal(library.read(given), image)
    expected = ungrain.bilateral(image, radius=2, sigma=image.max() / 20, device="cpu")
    np.testing.assert_allclose(library.read(result).astype(float), expected.astype(float),
                               atol={"u": 1, "i": 4, "f": 2e-4}[image.dtype.kind] * (8 if dtype == "float16" else 1))


@pytest.mark.parametrize("dtype,worked_on_as,white", [("float64", "float32", 1), ("int16", "float32", 32767)])
def test_converted_types_are_what_the_documentation_says(dtype, worked_on_as, white):
    image = picture(dtype=dtype)
    expected = ungrain.gaussian(image.astype(worked_on_as), sigma=1.5)
    if dtype == "int16":
        expected = np.clip(np.rint(expected), -32768, 32767)
    np.testing.assert_array_equal(ungrain.gaussian(image, sigma=1.5), expected.astype(dtype))
    # The white level is passed on: strengths that follow the noise are relative to it.
    auto = ungrain.nlm(image, search=5)
    np.testing.assert_array_equal(auto, np.rint(ungrain.nlm(image.astype("float32"), search=5, range=white)).astype(dtype)
                                  if dtype == "int16" else ungrain.nlm(image.astype("float32"), search=5).astype(dtype))


def test_negative_values_of_int16_survive():
    image = (picture(dtype=np.float32) * 2000 - 1000).astype(np.int16)
    result = ungrain.box(image, radius=1)
    assert result.min() < -300 and abs(float(result.mean()) - float(image.mean())) < 5


@pytest.mark.parametrize("dtype", [">u2", ">f4", ">f8", ">i2"])
def test_other_byte_orders(dtype):
    image = picture(dtype=np.dtype(dtype).newbyteorder("=")).astype(dtype)
    result = ungrain.median(image)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result, ungrain.median(image.astype(image.dtype.newbyteorder("="))))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "complex64", "bool"])
def test_other_types_are_refused_by_name(dtype):
    with pytest.raises(TypeError, match=f"image takes uint8, uint16, float16 or float32.*got {dtype}"):
        ungrain.box(np.zeros((4, 4), dtype))


def test_what_is_no_array_is_refused():
    with pytest.raises(TypeError, match="image takes an array.*got list"):
        ungrain.box([[1, 2], [3, 4]])
    with pytest.raises(TypeError, match="got NoneType"):
        ungrain.box(None)


# ---- layouts

LAYOUTS = {
    "C": lambda a: np.ascontiguousarray(a),
    "F": lambda a: np.asfortranarray(a),
    "transposed": lambda a: np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1),
    "upside down": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "mirrored": lambda a: np.ascontiguousarray(a[:, ::-1])[:, ::-1],
    "every other": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "a part": lambda a: np.pad(a, [(3, 5), (2, 7)] + [(0, 0)] * (a.ndim - 2))[3:-5, 2:-7],
    "planar": lambda a: np.ascontiguousarray(np.moveaxis(a, -1, 0)).transpose(1, 2, 0) if a.ndim == 3 else a,
    "odd bytes": lambda a: _packed_field(a),
}


def _packed_field(array):
    records = np.zeros(array.shape, np.dtype([("flag", "u1"), ("value", array.dtype)]))
    records["value"] = array
    return records["value"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [None, 3])
def test_any_strides(layout, dtype, channels):
    image = picture(19, 23, channels, dtype)
    expected = ungrain.bilateral(image, radius=2, sigma=image.max() / 20, device="cpu")
    given = LAYOUTS[layout](image)
    np.testing.assert_array_equal(ungrain.bilateral(given, radius=2, sigma=image.max() / 20, device="cpu"), expected)
    # The same as output, also in place.
    out = LAYOUTS[layout](np.zeros_like(image))
    assert ungrain.bilateral(given, radius=2, sigma=image.max() / 20, out=out, device="cpu") is out
    np.testing.assert_array_equal(out, expected)
    assert ungrain.bilateral(given, radius=2, sigma=image.max() / 20, out=given, device="cpu") is given
    np.testing.assert_array_equal(given, expected)


def test_memory_order_is_kept():
    image = picture(19, 23, 3)
    assert ungrain.box(np.asfortranarray(image)).flags.f_contiguous
    planar = np.ascontiguousarray(np.moveaxis(image, -1, 0)).transpose(1, 2, 0)
    assert ungrain.box(planar).strides == planar.strides


def test_channels_first():
    image = picture(19, 23, 3)
    first = np.ascontiguousarray(np.moveaxis(image, -1, 0))
    np.testing.assert_array_equal(ungrain.box(first, channel_axis=0), np.moveaxis(ungrain.box(image), -1, 0))


def test_subclasses_and_read_only_arrays():
    image = picture(dtype=np.uint8)
    image.flags.writeable = False
    result = ungrain.box(image)
    assert result.flags.writeable
    with pytest.raises(ungrain.InvalidArgument, match="out cannot be written to"):
        ungrain.box(image, out=image)
    masked = np.ma.masked_array(picture(dtype=np.uint8))
    assert type(ungrain.box(masked)) is np.ndarray


def test_anything_that_is_an_array_in_disguise():
    class Exporter:  # only DLPack, as a library of its own would
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **arguments):
            return self.array.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    image = picture(dtype=np.uint8)
    result = ungrain.box(Exporter(image))
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, ungrain.box(image))
    # And back.
    np.testing.assert_array_equal(np.from_dlpack(result), result)

    class Interface:
        __array_interface__ = image.__array_interface__
    np.testing.assert_array_equal(ungrain.box(Interface()), ungrain.box(image))


def pillow_image(mode):
    """Noise of a photograph in any mode."""
    from PIL import Image
    colour = Image.fromarray(picture(channels=3, dtype=np.uint8), "RGB")
    if mode.startswith("I;16"):
        return Image.fromarray(picture(dtype=np.uint16).astype({"I;16": "<u2", "I;16B": ">u2"}[mode]))
    if mode in ("RGBa", "La"):
        return colour.convert(mode.upper()).convert(mode)
    if mode == "LAB":
        return Image.merge("LAB", colour.split())
    if mode in ("LA", "RGBA", "PA"):
        image = colour.convert(mode)
        image.putalpha(Image.fromarray(picture(dtype=np.uint8, seed=5)))
        return image.convert(mode)
    return colour.convert(mode)


@pytest.mark.parametrize("mode, channels", [("L", "gray"), ("RGB", "rgb"), ("LA", "gray-alpha"), ("RGBA", "rgba"), ("CMYK", "multi"),
                                            ("I;16", "gray"), ("I;16B", "gray"), ("F", "gray")])
def test_images_of_pillow(mode, channels):
    pytest.importorskip("PIL", reason="Pillow is missing")
    image = pillow_image(mode)
    assert image.mode == mode
    array = np.asarray(image)
    # The noise is given: so small a picture full of texture may be measured as clean.
    given = {"search": 5, "sigma": 0.04 * (65535 if mode.startswith("I;16") else 255)}
    if mode == "F":
        given["range"] = 255
    expected = ungrain.denoise(array, "nlm", channels=channels, **given)
    for result in (ungrain.denoise(image, "nlm", **given), ungrain.nlm(image, **given),
                   ungrain.Denoiser("nlm", like=image, **given)(image)):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, expected)
    assert not np.array_equal(expected, array)
    if mode in ("LA", "RGBA"):
        np.testing.assert_array_equal(expected[..., -1], array[..., -1])  # alpha
        assert ungrain.estimate_sigma(image) == ungrain.estimate_sigma(array[..., :-1])
        np.testing.assert_array_equal(ungrain.add_noise(image, 9.0), ungrain.add_noise(array, 9.0, channels=channels))
        assert ungrain.psnr(image, expected) == ungrain.psnr(array[..., :-1], expected[..., :-1])
        assert ungrain.psnr(expected, image) == ungrain.psnr(image, expected)
        np.testing.assert_array_equal(ungrain.nlm(image, search=5, channels="multi"), ungrain.nlm(array, search=5))


@pytest.mark.parametrize("mode, advice", [("P", "RGB"), ("PA", "RGBA"), ("1", "L"), ("I", "uint16"), ("YCbCr", "RGB"), ("HSV", "RGB"),
                                          ("LAB", "ImageCms"), ("RGBX", "RGB"), ("RGBa", "RGBA"), ("La", "LA")])
def test_images_of_pillow_whose_numbers_are_no_brightness(mode, advice):
    pytest.importorskip("PIL", reason="Pillow is missing")
    image = pillow_image(mode)
    assert image.mode == mode
    for call in (lambda: ungrain.denoise(image), lambda: ungrain.box(image), lambda: ungrain.Denoiser("box", like=image),
                 lambda: ungrain.estimate_sigma(image), lambda: ungrain.add_noise(image, 3.0),
                 lambda: ungrain.psnr(image, image)):
        with pytest.raises(TypeError, match=f'is a Pillow image of mode "{mode}".*{advice}') as caught:
            call()
        assert isinstance(caught.value, ungrain.Error) and "\n" not in str(caught.value)


def test_views_and_classes_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is missing")
    image = picture()
    expected = ungrain.box(image)

    class Image(torch.Tensor):  # as torchvision's
        pass
    Image.__module__ = "elsewhere"
    result = ungrain.box(torch.from_numpy(image).as_subclass(Image))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), expected)
    # The imaginary part of a conjugate: PyTorch keeps the sign lazily and does not change memory.
    negated = torch.complex(torch.zeros(image.shape), -torch.from_numpy(image)).conj().imag
    assert negated.is_neg()
    np.testing.assert_array_equal(ungrain.box(negated).numpy(), expected)
    assert ungrain.psnr(negated, image) == np.inf
    with pytest.raises(ungrain.InvalidArgument, match="out is a negated view"):
        ungrain.box(torch.from_numpy(image), out=negated)
    with pytest.raises(ungrain.InvalidArgument, match="share their memory"):
        ungrain.box(torch.from_numpy(image), out=torch.zeros(image.shape[1]).expand(image.shape))
    # Strengths that are tensors, also in a model.
    levels = torch.full(image.shape, 0.05, requires_grad=True)
    np.testing.assert_array_equal(ungrain.bm3d(image, sigma_map=levels, profile="fast"),
                                  ungrain.bm3d(image, sigma_map=levels.detach().numpy(), profile="fast"))
    colours = picture(channels=3)
    np.testing.assert_array_equal(ungrain.bm3d(colours, sigma=torch.tensor([0.25, 0.5, 0.125]), profile="fast"),
                                  ungrain.bm3d(colours, sigma=[0.25, 0.5, 0.125], profile="fast"))
    for call in (ungrain.box, ungrain.estimate_sigma, lambda image: ungrain.add_noise(image, 0.1)):
        with pytest.raises(TypeError, match="image takes uint8.*got torch.bfloat16"):
            call(torch.zeros(4, 4, dtype=torch.bfloat16))


# ---- stacks


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("channels", [None, 3])
def test_a_stack_is_its_images(library, axis, channels):
    images = [picture(19, 23, channels, np.uint16, seed=s) for s in range(3)]
    if library.name.startswith("torch"):
        images = [(i // 257).astype(np.uint8) for i in images]
    if channels and axis in (2, -1):
        axis = 2
    stack = np.stack(images, axis=axis)
    result = library.read(ungrain.nlm(library.make(stack), axis=axis, search=5, patch=3, device="auto"))
    for index, image in enumerate(images):
        # Each with its own noise.
        expected = library.read(ungrain.nlm(library.make(image), search=5, patch=3))
        np.testing.assert_array_equal(np.take(result, index, axis=axis), expected)


def test_a_stack_of_stacks():
    stack = np.stack([picture(19, 23, seed=s) for s in range(6)]).reshape(2, 3, 19, 23)
    result = ungrain.gaussian(stack, sigma=1, axis=(0, 1))
    np.testing.assert_array_equal(result[1, 2], ungrain.gaussian(stack[1, 2], sigma=1))
    assert ungrain.box(stack[:0], axis=(0, 1)).shape == (0, 3, 19, 23)


def box_along(stack, radius, radius_z):
    """box by its definition on images x height x width [x channels], border symmetric in all three directions."""
    around = [(radius_z, radius_z), (radius, radius), (radius, radius)] + [(0, 0)] * (stack.ndim - 3)
    padded = np.pad(stack.astype(np.float64), around, "symmetric")
    images, height, width = stack.shape[:3]
    parts = [padded[z:z + images, y:y + height, x:x + width]
             for z in range(2 * radius_z + 1) for y in range(2 * radius + 1) for x in range(2 * radius + 1)]
    mean = sum(parts) / len(parts)
    return np.rint(mean) if stack.dtype.kind == "u" else mean


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [None, 3])
def test_box_looks_along_a_stack(library, dtype, channels):
    if dtype == "uint16" and library.name.startswith("torch"):
        pytest.skip("PyTorch has hardly any operations on uint16")
    stack = np.stack([picture(19, 23, channels, dtype, seed=s) for s in range(4)])
    for radius_z in (1, 2):
        result = library.read(ungrain.box(library.make(stack), radius=1, radius_z=radius_z, axis=0))
        np.testing.assert_allclose(result, box_along(stack, 1, radius_z), rtol=0, atol=1e-6)
    # The same in place, by a Denoiser that is made for one of its images, and along another axis.
    expected = library.read(ungrain.box(library.make(stack), radius=1, radius_z=1, axis=0))
    denoiser = ungrain.Denoiser("box", like=library.make(stack[0]), radius=1, radius_z=1)
    np.testing.assert_array_equal(library.read(denoiser(library.make(stack), axis=0)), expected)
    array = library.make(stack.copy())
    assert ungrain.box(array, radius=1, radius_z=1, axis=0, out=array) is array
    np.testing.assert_array_equal(library.read(array), expected)
    array = library.make(stack.copy())
    denoiser(array, axis=0, out=array)
    np.testing.assert_array_equal(library.read(array), expected)
    moved = library.make(np.ascontiguousarray(np.moveaxis(stack, 0, 2)))
    result = library.read(ungrain.box(moved, radius=1, radius_z=1, axis=2, channel_axis=-1))
    np.testing.assert_array_equal(np.moveaxis(result, 2, 0), expected)


def test_without_radius_z_each_image_is_by_itself():
    stack = np.stack([picture(19, 23, dtype="uint16", seed=s) for s in range(4)])
    result = ungrain.box(stack, radius=1, radius_z=0, axis=0)
    np.testing.assert_array_equal(result, np.stack([ungrain.box(image, radius=1) for image in stack]))
    # One image stands in for its neighbours.
    np.testing.assert_array_equal(ungrain.box(stack[:1], radius=1, radius_z=3, axis=0), result[:1])
    np.testing.assert_array_equal(ungrain.box(stack[0], radius=1, radius_z=3), result[0])


def test_sequences_lie_along_the_last_axis_that_is_named():
    stack = np.stack([picture(19, 23, seed=s) for s in range(6)]).reshape(2, 3, 19, 23)
    given = {"sigma": 1, "sigma_z": 1}
    result = ungrain.gaussian(stack, axis=(0, 1), **given)
    np.testing.assert_array_equal(result, np.stack([ungrain.gaussian(each, axis=0, **given) for each in stack]))
    other = ungrain.gaussian(stack, axis=(1, 0), **given)
    np.testing.assert_array_equal(other, np.stack([ungrain.gaussian(stack[:, i], axis=0, **given) for i in range(3)], axis=1))
    assert ungrain.gaussian(stack[:, :0], axis=(0, 1), **given).shape == (2, 0, 19, 23)


def test_what_is_measured_along_a_stack_is_the_first_images():
    stack = np.stack([picture(64, 64, dtype="uint8", seed=s) for s in range(3)])
    given = {"radius": 1, "radius_z": 1, "clipping": "undo"}
    expected = ungrain.Denoiser("box", like=stack[0], **given)(stack, axis=0)
    np.testing.assert_array_equal(ungrain.box(stack, axis=0, **given), expected)


def test_progress_along_a_stack():
    seen = []
    stack = np.stack([picture(300, 300, seed=s) for s in range(8)]).reshape(2, 4, 300, 300)
    ungrain.box(stack, radius_z=1, axis=(0, 1), progress=seen.append, device="cpu")
    assert seen[-1] == 1 and seen == sorted(seen) and 0.5 in seen


def test_shapes_that_are_no_images():
    with pytest.raises(ValueError, match=r"shape \(40, 50, 60\) has 60 channels in axis 2.*axis="):
        ungrain.box(np.zeros((40, 50, 60), np.uint8))
    with pytest.raises(ValueError, match=r"shape \(7,\) is no image"):
        ungrain.box(np.zeros(7, np.uint8))
    with pytest.raises(ValueError, match="axis takes an axis of the array, which has 2, got 2"):
        ungrain.box(np.zeros((4, 4), np.uint8), axis=2)
    with pytest.raises(ValueError, match="axis names axis -3 twice"):
        ungrain.box(np.zeros((4, 4, 4), np.uint8), axis=(0, -3))
    with pytest.raises(ValueError, match="channel_axis and axis both name"):
        ungrain.box(np.zeros((4, 4, 4, 3), np.uint8), axis=3)
    with pytest.raises(ValueError, match="0 x 4 pixels"):
        ungrain.box(np.zeros((4, 0), np.uint8))


# ---- channels, alpha, white


def test_alpha_is_carried_through():
    image = picture(channels=4, dtype=np.uint8)
    result = ungrain.box(image, channels="rgba")
    np.testing.assert_array_equal(result[..., 3], image[..., 3])
    np.testing.assert_array_equal(result[..., :3], ungrain.box(image[..., :3]))
    assert not np.array_equal(ungrain.box(image)[..., 3], image[..., 3])
    with pytest.raises(ValueError, match="channels takes one of auto, gray, gray-alpha, rgb, rgba, multi, got 'bgr'"):
        ungrain.box(image, channels="bgr")
    with pytest.raises(ValueError, match="cannot be rgb"):
        ungrain.box(image, channels="rgb")


def test_range_is_the_white_level():
    image = picture(64, 64)
    expected = ungrain.denoise(image, device="cpu")
    scaled = ungrain.denoise(image * 1000, range=1000, device="cpu")
    np.testing.assert_allclose(scaled / 1000, expected, atol=1e-4)
    with pytest.raises(ValueError, match="range"):
        ungrain.denoise(image, range=-1)


def test_a_white_level_that_cannot_be_is_warned_of():
    image = picture(64, 64) * 1000
    with pytest.warns(UserWarning, match="more than half of white, which is taken to be 1 for float32; say range="):
        ungrain.nlm(image, search=5)
    with pytest.warns(UserWarning, match="say range="):
        ungrain.Denoiser("bm3d", like=image)
    for call in (lambda: ungrain.nlm(image, search=5), lambda: ungrain.denoise(image, "nlm", search=5)):
        with pytest.warns(UserWarning) as caught:  # at the user's line, once for each such line
            call()
        assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="less than a 1e-9 part of white"):  # as fluxes in physical units are
        ungrain.nlm(image * np.float32(1e-16), search=5)
    with pytest.raises(ungrain.InvalidArgument, match="range must be a number from 1e-14 to 1e14; scale the image's values"):
        ungrain.denoise(image * np.float32(1e-23), range=1e-20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = ungrain.denoise(image * np.float32(1e-16), range=1e-13)
        np.testing.assert_allclose(scaled * 1e13, ungrain.denoise(image / 1000), atol=1e-4)
        ungrain.nlm(image, search=5, range=1000)
        ungrain.nlm(image / 1000, search=5)
        ungrain.gaussian(image, sigma=3)


# ---- out


def test_out_must_fit():
    image = picture(dtype=np.uint8)
    with pytest.raises(ValueError, match="out has another shape"):
        ungrain.box(image, out=np.zeros((3, 3), np.uint8))
    with pytest.raises(TypeError, match="out has dtype float32, the image uint8"):
        ungrain.box(image, out=np.zeros(image.shape, np.float32))
    with pytest.raises(ValueError, match="overlap"):
        ungrain.box(image[1:], out=image[:-1])


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "int16", ">u2"])
def test_out_is_not_broadcast_to(library, dtype):
    """Converted types too: NumPy and PyTorch would copy one row into all."""
    if library.name != "numpy" and dtype == ">u2":
        dtype = "float32"
    row = library.make(picture(1, 40, dtype=np.dtype(dtype).newbyteorder("=")).astype(dtype))
    out = library.make(np.zeros((5, 40), dtype))
    for call in (lambda: ungrain.box(row, out=out), lambda: ungrain.add_noise(row, 0.1, out=out)):
        with pytest.raises(ungrain.InvalidArgument, match=r"out has another shape than the image: \(5, 40\), not \(1, 40\)"):
            call()
    assert not library.read(out).any()


def test_out_has_memory_for_every_pixel():
    image = picture(20, 24)
    shared = np.lib.stride_tricks.as_strided(np.zeros(24, np.float32), image.shape, (0, 4))
    with pytest.raises(ungrain.InvalidArgument, match="out has pixels that share their memory"):
        ungrain.box(image, out=shared)
    one_row = np.lib.stride_tricks.as_strided(np.zeros(24, np.float32), (1, 24), (0, 4))
    np.testing.assert_array_equal(ungrain.box(image[:1], out=one_row), ungrain.box(image[:1]))


def resident_kib():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not tell a process's memory")
def test_many_calls_on_several_threads_keep_no_memory():
    image = picture(128, 128, dtype=np.uint8)
    out = np.empty_like(image)

    def call(times):
        for _ in range(times):
            ungrain.box(image, threads=2, device="cpu", out=out)
    call(500)
    before = resident_kib()
    call(20_000)
    assert resident_kib() - before < 8 * 1024


def test_nothing_is_copied():
    image = picture(600, 700, dtype=np.float32)
    assert ungrain._core.address(image[5:, ::2]) == image[5:, ::2].ctypes.data
    out = np.empty_like(image)
    ungrain.median(image, out=out)
    tracemalloc.start()
    try:
        ungrain.median(image, out=out)
        assert tracemalloc.get_traced_memory()[1] < 20_000  # bytes; the image has 1.7 million
        tracemalloc.reset_peak()
        ungrain.median(image)
        assert tracemalloc.get_traced_memory()[1] < image.nbytes + 20_000  # the result and nothing else
    finally:
        tracemalloc.stop()


# ---- parameters


@pytest.mark.parametrize("call,message", [
    (lambda i: ungrain.bilateral(i, radius=500), "radius takes a whole number from 0 to 128, got 500"),
    (lambda i: ungrain.bilateral(i, radius=1.5), "radius takes a whole number from 0 to 128, got 1.5"),
    (lambda i: ungrain.bilateral(i, radius="wide"), "radius takes a whole number from 0 to 128, got 'wide'"),
    (lambda i: ungrain.bilateral(i, radius=None), "radius takes a whole number"),
    (lambda i: ungrain.bilateral(i, window="disk"), "window takes one of square, disc, got 'disk'; did you mean 'disc'"),
    (lambda i: ungrain.nlm(i, patch=4), "patch takes an odd whole number"),
    (lambda i: ungrain.bm3d(i, sigma=-1), "sigma takes a number from 0 up"),
    (lambda i: ungrain.bm3d(i, sigma=[1, 2]), "sigma has 2 values, the image 1 colour channels"),
    (lambda i: ungrain.denoise(i, "bilatral"), "bilateral"),
    (lambda i: ungrain.nlm(i, preset="paper-1"), "nlm has no preset 'paper-1'"),
    (lambda i: ungrain.box(i, device="gpu"), "device takes auto, cpu, cuda"),
    (lambda i: ungrain.box(i, threads=-1), "threads takes a whole number"),
    (lambda i: ungrain.box(i, nonfinite="ignore"), "nonfinite takes one of fill, keep, error, got 'ignore'"),
])
def test_errors_name_the_parameter(call, message):
    with pytest.raises(ungrain.InvalidArgument, match=message) as caught:
        call(picture(dtype=np.uint8))
    assert isinstance(caught.value, ValueError) and caught.value.code == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options,message", [
    ({"device": 0}, "device takes a string, got 0"), ({"method": None}, "method takes a string, got None"),
    ({"preset": 3}, "preset takes a string, got 3"), ({"channels": 3}, "channels takes a string, got 3"),
    ({"nonfinite": None}, "nonfinite takes a string, got None"), ({"threads": 1.5}, "threads takes a whole number, got 1.5"),
    ({"memory": "1G"}, "memory takes a whole number, got '1G'"), ({"axis": "a"}, "axis takes a whole number, or several"),
    ({"channel_axis": None}, "channel_axis takes a whole number, got None"), ({"range": "x"}, "range takes a positive number"),
    ({"progress": 3}, "progress takes a function, got 3"), ({"sigma": [None]}, "sigma takes a number, got None"),
    ({"sigma": 1j}, "sigma takes a number, got 1j"), ({"sigma": [[0.1]]}, r"sigma takes a number, got \[0.1\]"),
    ({"sigma_": 3}, "bm3d has no parameter 'sigma_'"),
])
def test_options_of_the_wrong_type_are_named(options, message):
    image = picture(16, 16)
    with pytest.raises(TypeError, match=message) as caught:
        ungrain.denoise(image, **options)
    assert "\n" not in str(caught.value)
    for_calls = {"axis", "progress"}
    if not for_calls & set(options):
        with pytest.raises(TypeError, match=message):
            ungrain.Denoiser(**options, like=image)


def test_numbers_out_of_range_are_named():
    image = picture(16, 16)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ungrain.InvalidArgument, match="range takes a positive number"):
            ungrain.box(image, range=wrong)
    with pytest.raises(ungrain.InvalidArgument, match="memory takes a whole number from 0"):
        ungrain.box(image, memory=-1)


def test_unknown_parameters_are_type_errors():
    with pytest.raises(TypeError, match="nlm has no parameter 'radius'; it has search,"):
        ungrain.nlm(picture(), radius=3)
    with pytest.raises(TypeError, match="box has no parameter 'sigma'"):
        ungrain.denoise(picture(), "box", sigma=3)


def test_values_as_python_has_them():
    image = picture(channels=3)
    ungrain.bm3d(image, sigma=[0.05, 0.06, 0.04], profile="fast", kaiser=False)
    ungrain.bm3d(image, sigma=np.array([0.05, 0.06, 0.04], np.float32), profile="fast", kaiser=True)
    expected = ungrain.nlm(image[:16, :16], search="whole-image", sigma=0.0625)
    np.testing.assert_array_equal(expected, ungrain.nlm(image[:16, :16], search=0, sigma=np.float32(0.0625), patch="auto"))
    assert np.isfinite(expected).all()
    # An array without an axis, as what is measured often is.
    np.testing.assert_array_equal(expected, ungrain.nlm(image[:16, :16], search=0, sigma=np.array(0.0625)))
    stack = np.stack([image[:16, :16, 0]] * 2)
    np.testing.assert_array_equal(ungrain.box(stack, axis=np.array([0])), ungrain.box(stack, axis=0))


def test_presets_and_what_is_given_besides():
    image = picture(24, 24)
    preset = ungrain.nlm(image, preset="paper-003")
    # A default value that is given overrides the preset.
    assert not np.array_equal(preset, ungrain.nlm(image, preset="paper-003", search=21))
    denoiser = ungrain.Denoiser("nlm", like=image, preset="paper-003", search=21)
    assert denoiser.params["search"] == 21


def test_sigma_map():
    image = picture(64, 64)
    flat = np.full(image.shape, 0.05)
    by_map = ungrain.bm3d(image, sigma_map=flat, profile="fast")
    assert ungrain.psnr(by_map, ungrain.bm3d(image, sigma=0.05, profile="fast")) > 40
    np.testing.assert_array_equal(by_map, ungrain.bm3d(image, sigma_map=flat.astype(np.float32), profile="fast"))
    with pytest.raises(ValueError, match="sigma_map"):
        ungrain.bm3d(image, sigma_map=flat[:10])


def test_signatures_and_docstrings_come_from_the_descriptors():
    for method in ungrain.methods():
        function = getattr(ungrain, method.replace("-", "_"))
        shown = inspect.signature(function).parameters
        for info in ungrain.parameters(method):
            assert shown[info["name"]].kind is inspect.Parameter.KEYWORD_ONLY
            assert info["help"].split(";")[0][:30] in " ".join(function.__doc__.split())
            if not info["auto"] and info["kind"] != "image":
                assert shown[info["name"]].default == info["default"]
        assert {"device", "axis", "out", "progress"} <= set(shown)
    assert inspect.signature(ungrain.bilateral).parameters["radius"].default == 5
    assert 'int from 0 to 128' in ungrain.bilateral.__doc__


# ---- NaN


def test_nonfinite():
    image = picture()
    image[3, 4] = np.nan
    assert np.isfinite(ungrain.bilateral(image, sigma=0.05)).all()
    assert np.isnan(ungrain.bilateral(image, sigma=0.05, nonfinite="keep")[3, 4])
    with pytest.raises(ungrain.BadPixels, match=r"pixel \(4, 3\)"):
        ungrain.bilateral(image, sigma=0.05, nonfinite="error")


# ---- progress, threads, interrupts


def test_progress_goes_to_one():
    seen = []
    ungrain.nlm(picture(600, 600), sigma=0.05, progress=seen.append, device="cpu")
    assert seen[-1] == 1 and seen == sorted(seen) and 0 <= seen[0]
    seen.clear()
    stack = np.stack([picture(300, 300, seed=s) for s in range(4)])
    ungrain.nlm(stack, axis=0, sigma=0.05, progress=seen.append, device="cpu")
    assert seen[-1] == 1 and seen == sorted(seen) and 0.25 in seen


def test_progress_can_cancel():
    image = picture(900, 900)
    with pytest.raises(ungrain.Cancelled):
        ungrain.nlm(image, sigma=0.05, progress=lambda fraction: False, device="cpu")

    with pytest.raises(ungrain.Cancelled):
        ungrain.nlm(image, sigma=0.05, progress=lambda fraction: np.bool_(False), device="cpu")

    def fail(fraction):
        raise ZeroDivisionError("from the callback")
    with pytest.raises(ZeroDivisionError, match="from the callback"):
        ungrain.nlm(image, sigma=0.05, progress=fail, device="cpu")


def test_the_lock_is_released():
    image = picture(900, 900)
    steps, running = [], threading.Event()

    def work():
        running.set()
        ungrain.nlm(image, sigma=0.05, device="cpu")
        running.clear()
    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    while running.is_set():
        steps.append(1)
    thread.join()
    assert len(steps) > 1000


def test_threads_get_the_same_bits():
    image = picture(200, 200)
    expected = ungrain.nlm(image, sigma=0.05, device="cpu")
    results = [None] * 4

    def work(index):
        results[index] = ungrain.nlm(image, sigma=0.05, device="cpu", threads=index)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


INTERRUPTED = """
import os, signal, threading, numpy as np, ungrain
image = np.random.default_rng(0).random((3000, 3000), np.float32)
signal.signal(signal.SIGINT, signal.default_int_handler)  # which what runs in the background has not
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    ungrain.nlm(image, sigma=0.1, search=51, device="cpu")
    print("done")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_control_c_stops_the_work():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "interrupted\n", done.stderr


# ---- Denoiser


def test_denoiser_is_the_same_as_the_call(library):
    image = picture(40, 50, 3, np.uint8)
    given = library.make(image)
    denoiser = ungrain.Denoiser("nlm", like=given, search=5)
    result = denoiser(given)
    np.testing.assert_array_equal(library.read(result), library.read(ungrain.nlm(given, search=5)))
    assert denoiser.params["sigma"] > 0 and denoiser.params["search"] == 5
    assert denoiser.device.startswith("cuda" if library.gpu else ("cpu", "cuda"))
    assert denoiser.reach[0] >= 2
    out = library.make(np.zeros_like(image))
    assert denoiser.clone()(given, out=out) is out
    np.testing.assert_array_equal(library.read(out), library.read(result))
    assert denoiser(given, out=given) is given
    np.testing.assert_array_equal(library.read(given), library.read(result))


def test_denoiser_from_a_shape():
    image = picture(40, 50, dtype=np.uint16)
    for dtype in (np.uint16, "uint16", np.dtype("uint16")):
        denoiser = ungrain.Denoiser("bilateral", shape=image.shape, dtype=dtype, sigma=2000, device="cpu")
        np.testing.assert_array_equal(denoiser(image), ungrain.bilateral(image, sigma=2000, device="cpu"))
    assert denoiser.report.device == "cpu" and denoiser.report.ms > 0
    assert denoiser.report.strengths["sigma"][0] == 2000
    with pytest.raises(ungrain.InvalidArgument, match="sigma is left to be measured"):
        ungrain.Denoiser("bilateral", shape=(4, 4), dtype="uint8")
    with pytest.raises(TypeError, match="takes like=, or shape= and dtype="):
        ungrain.Denoiser("bilateral", sigma=3)
    with pytest.raises(TypeError, match="made for uint16"):
        denoiser(image.astype(np.uint8))
    with pytest.raises(ValueError, match="made for 50 x 40"):
        denoiser(image[:30])
    assert ungrain.Denoiser("box", shape=np.array([40, 50]), dtype="uint8").reach == (1, 1)
    for wrong in ("bfloat16", 3, "int32"):
        with pytest.raises(TypeError, match=f"dtype takes uint8.*got {wrong}"):
            ungrain.Denoiser("box", shape=(4, 4), dtype=wrong)
    for wrong in (-1, 3.5):
        with pytest.raises((TypeError, ungrain.InvalidArgument), match="shape takes whole numbers of pixels"):
            ungrain.Denoiser("box", shape=(4, wrong), dtype="uint8")


@pytest.mark.parametrize("dtype", CONVERTED)
def test_denoiser_converts_as_the_call_does(dtype):
    image = picture(40, 50, dtype=dtype)
    np.testing.assert_array_equal(ungrain.Denoiser("nlm", like=image, search=5)(image), ungrain.nlm(image, search=5))


def test_denoiser_on_a_stack():
    stack = np.stack([picture(30, 40, seed=s) for s in range(3)])
    denoiser = ungrain.Denoiser("nlm", like=stack[0], search=5)
    result = denoiser(stack, axis=0)
    for image, one in zip(stack, result):
        np.testing.assert_array_equal(one, denoiser(image))


def test_denoiser_works_on_after_a_cancel():
    image = picture(700, 700)
    denoiser = ungrain.Denoiser("nlm", like=image, device="cpu")
    expected = denoiser(image)
    with pytest.raises(ungrain.Cancelled):
        denoiser(image, progress=lambda fraction: False)
    np.testing.assert_array_equal(denoiser(image), expected)


def test_denoiser_in_two_threads_at_once():
    image = picture(700, 700)
    denoiser = ungrain.Denoiser("nlm", like=image, device="cpu")
    inside = []

    def progress(fraction):
        if not inside:
            inside.append(1)
            with pytest.raises(ungrain.InvalidArgument, match="at work in another thread"):
                denoiser(image)
    denoiser(image, progress=progress)
    assert inside


# ---- devices


def denoisers():
    """(name, a Denoiser, an image for it)"""
    for method, options in QUICK.items():
        image = picture(40, 50, 3, dtype=np.uint8)
        yield method, lambda method=method, image=image, options=options: ungrain.Denoiser(method, like=image, **options), image
    image = picture(40, 50)
    levels = np.linspace(0.02, 0.2, image.size).reshape(image.shape)
    yield "sigma_map", lambda: ungrain.Denoiser("bm3d", like=image, sigma_map=levels, profile="fast"), image
    yield "sigma of channels", lambda: ungrain.Denoiser("bm3d", shape=(40, 50, 3), dtype="float32", sigma=[0.1, 0.05, 0.2],
                                                        profile="fast"), picture(40, 50, 3)
    yield "preset", lambda: ungrain.Denoiser("nlm", like=image, preset="paper-003", search=7), image
    yield "whole image", lambda: ungrain.Denoiser("nlm", like=image[:16, :16], search="whole-image"), image[:16, :16]
    yield "float64", lambda: ungrain.Denoiser("bilateral", like=image.astype(float) * 4000, range=4000), image.astype(float) * 4000
    yield "int16", lambda: ungrain.Denoiser("nlm", like=picture(dtype=np.int16), search=5), picture(dtype=np.int16)
    first = np.moveaxis(picture(40, 50, 4), -1, 0)
    yield "alpha first", lambda: ungrain.Denoiser("box", like=first, channel_axis=0, channels="rgba"), first
    holes = image.copy()
    holes[3, 4] = np.nan
    yield "options", lambda: ungrain.Denoiser("median", like=image, device="reference", nonfinite="keep", threads=1,
                                              memory=1 << 30), holes


@pytest.mark.parametrize("make, image", [pytest.param(make, image, id=name) for name, make, image in denoisers()])
def test_denoiser_is_pickled_and_copied(make, image):
    denoiser = make()
    expected = denoiser(image)
    others = [pickle.loads(pickle.dumps(denoiser, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL)]
    others += [copy.copy(denoiser), copy.deepcopy(denoiser), pickle.loads(pickle.dumps(denoiser.clone())),
               pickle.loads(pickle.dumps(others[0])), others[0].clone()]
    for other in others:
        np.testing.assert_array_equal(other(image), expected)
        for name in ("method", "params", "device", "reach"):
            assert getattr(other, name) == getattr(denoiser, name)
        assert other.report.threads == denoiser.report.threads and other.report.bands == denoiser.report.bands
        with pytest.raises(TypeError, match="was made for"):
            other(image.astype("float16"))


def test_a_pickled_map_is_the_one_that_was_given():
    image, levels = picture(), np.full((48, 40), 0.05)
    denoiser = ungrain.Denoiser("bm3d", like=image, sigma_map=levels, profile="fast")
    expected = denoiser(image)
    levels[:] = 0.5
    np.testing.assert_array_equal(denoiser(image), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(denoiser))(image), expected)


def test_pickled_options_are_those_that_were_given():
    denoiser = ungrain.Denoiser("box", like=picture(), nonfinite="error", device="cpu", threads=2)
    other = pickle.loads(pickle.dumps(denoiser))
    hole = picture()
    hole[1, 1] = np.nan
    with pytest.raises(ungrain.BadPixels):
        other(hole)
    assert other.device == "cpu"
    other(picture())
    assert other.report.threads == 2


def test_a_pickled_white_level_is_warned_of_once():
    with pytest.warns(UserWarning, match="say range="):
        denoiser = ungrain.Denoiser("nlm", like=picture() * 4000, search=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(denoiser))


def test_a_gpu_is_pickled_by_its_number():
    """Also without a GPU: the unpickled Denoiser asks for that GPU and no other."""
    denoiser = ungrain.Denoiser("box", like=picture(), device="cpu")
    rebuild, (state,) = denoiser.__reduce__()
    assert state["device"] == "cpu"
    beyond = sum(device.name.startswith("cuda") and device.usable for device in ungrain.devices())
    with pytest.raises(ungrain.NoDevice):
        rebuild({**state, "device": f"cuda:{beyond}"})


@pytest.mark.parametrize("pool", ["multiprocessing", "concurrent.futures"])
def test_a_denoiser_goes_to_other_processes(pool):
    frames = [picture(dtype=np.uint8, seed=seed) for seed in range(4)]
    denoiser = ungrain.Denoiser("nlm", like=frames[0], search=5, threads=2)
    context = multiprocessing.get_context("spawn")
    if pool == "multiprocessing":
        with context.Pool(2) as workers:
            found = workers.map(denoiser, frames)
    else:
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as workers:
            found = list(workers.map(denoiser, frames))
    for frame, clean in zip(frames, found):
        np.testing.assert_array_equal(clean, denoiser(frame))


def test_devices():
    devices = ungrain.devices()
    assert devices[0].name == "cpu" and devices[0].usable
    assert all(d.usable or d.reason for d in devices)


def test_a_gpu_that_is_not_there_is_an_error():
    gpus = [d for d in ungrain.devices() if d.name.startswith("cuda")]
    if any(d.usable for d in gpus):
        pytest.skip("there is a GPU")
    with pytest.raises(ungrain.NoDevice, match="cuda"):
        ungrain.box(picture(), device="cuda")


def test_errors_survive_pickling():  # as multiprocessing does
    error = ungrain.InvalidArgument("radius takes …")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
