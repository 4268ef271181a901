"""CuPy and PyTorch arrays on a GPU: they stay there, on the caller's stream, and nothing is copied."""

import pickle

import numpy as np
import pytest
from conftest import ON_GPU, missing, picture

import ungrain

if not ON_GPU:
    pytest.skip(f"GPU arrays: {missing('cupy')}; {missing('torch-cuda')}", allow_module_level=True)

CASES = {"box": {"radius": 3}, "gaussian": {"sigma": 2}, "median": {"radius": 2},
         "bilateral": {"radius": 3, "sigma": 0.05}, "adaptive-bilateral": {"radius": 3, "sigma": 0.05},
         "nlm": {"search": 9, "patch": 5, "sigma": 0.05}, "nlm-bilateral": {"search": 9, "patch": 5, "sigma": 0.05}}
if "cuda" in ungrain._methods._INFO["bm3d"]["backends"]:
    CASES["bm3d"] = {"sigma": 0.05, "profile": "fast"}


def address(library, array):
    """The array's address, through DLPack."""
    del library
    return ungrain._core.address(array.__dlpack__(stream=-1))


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("channels", [None, 3])
def test_results_are_the_cpus(gpu_library, method, channels):
    image = picture(61, 83, channels)
    given = gpu_library.make(image)
    result = ungrain.denoise(given, method, **CASES[method])
    assert type(result) is type(given) and result.device == given.device
    expected = ungrain.denoise(image, method, device="cpu", **CASES[method])
    if method == "bm3d":  # patches that are equally near may be grouped otherwise
        assert ungrain.psnr(expected, result) > 45
    else:
        np.testing.assert_allclose(gpu_library.read(result), expected, atol=2e-4)
    np.testing.assert_array_equal(gpu_library.read(given), image)


def test_sigma_is_measured_on_what_lies_there(gpu_library):
    image = ungrain.add_noise(picture(200, 200), 0.1)
    result = ungrain.nlm(gpu_library.make(image))
    np.testing.assert_allclose(gpu_library.read(result), ungrain.nlm(image, device="cpu"), atol=1e-3)


def test_a_pickled_denoiser_keeps_its_gpu(gpu_library):
    image = gpu_library.make(picture(61, 83))
    denoiser = ungrain.Denoiser("nlm", like=image, search=9, patch=5)
    other = pickle.loads(pickle.dumps(denoiser))
    assert other.device == denoiser.device and other.device.startswith("cuda")
    np.testing.assert_array_equal(gpu_library.read(other(image)), gpu_library.read(denoiser(image)))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_the_arrays_own_memory_is_worked_on(gpu_library, dtype):
    image = gpu_library.make(picture(64, 64, 3, dtype))
    assert address(gpu_library, image) == gpu_library.address(image)
    part = image[3:, 5:]
    assert address(gpu_library, part) == gpu_library.address(part)
    out = gpu_library.make(np.zeros((64, 64, 3), dtype))
    where = gpu_library.address(out)
    assert ungrain.box(image, out=out) is out and gpu_library.address(out) == where
    expected = gpu_library.read(ungrain.box(image))
    np.testing.assert_array_equal(gpu_library.read(out), expected)
    ungrain.box(image, out=image)
    np.testing.assert_array_equal(gpu_library.read(image), expected)


@pytest.mark.parametrize("layout", ["F", "a part", "planar"])
def test_any_strides(gpu_library, layout):
    image = picture(30, 40, 3)
    whole = gpu_library.make(np.pad(image, [(2, 3), (4, 1), (0, 0)]))
    given = {"F": lambda: gpu_library.make(np.ascontiguousarray(image.T)).T if gpu_library.name == "cupy"
             else gpu_library.make(np.ascontiguousarray(image.T)).permute(2, 1, 0),
             "a part": lambda: whole[2:-3, 4:-1],
             "planar": lambda: gpu_library.make(np.ascontiguousarray(np.moveaxis(image, -1, 0))).swapaxes(0, 1)
             .swapaxes(1, 2)}[layout]()
    np.testing.assert_array_equal(gpu_library.read(given), image)
    expected = gpu_library.read(ungrain.bilateral(gpu_library.make(image), sigma=0.05))
    np.testing.assert_array_equal(gpu_library.read(ungrain.bilateral(given, sigma=0.05)), expected)
    before = gpu_library.read(whole).copy()
    ungrain.bilateral(given, sigma=0.05, out=given)
    np.testing.assert_array_equal(gpu_library.read(given), expected)
    if layout == "a part":
        after = gpu_library.read(whole)
        after[2:-3, 4:-1] = before[2:-3, 4:-1]
        np.testing.assert_array_equal(after, before)  # nothing around it was changed


def cupy_or_skip():
    return pytest.importorskip("cupy", reason="CuPy is missing")


def torch_or_skip():
    return pytest.importorskip("torch", reason="PyTorch is missing")


def test_cupy_allocates_the_result_and_nothing_else():
    cupy = cupy_or_skip()
    image = cupy.asarray(picture(512, 512))
    denoiser = ungrain.Denoiser("bilateral", like=image, sigma=0.05)
    out = denoiser(image)
    allocated = []

    class Hook(cupy.cuda.MemoryHook):
        name = "count"

        def malloc_preprocess(self, **info):
            allocated.append(info["size"])
    with Hook():
        denoiser(image, out=out)
        assert allocated == []
        denoiser(image)
        assert allocated == [image.nbytes]


def test_torch_allocates_the_result_and_nothing_else():
    torch = torch_or_skip()
    image = torch.from_numpy(picture(512, 512)).cuda()
    denoiser = ungrain.Denoiser("bilateral", like=image, sigma=0.05)
    out = denoiser(image)
    torch.cuda.synchronize()

    def count():
        return torch.cuda.memory_stats()["allocation.all.allocated"]
    before = count()
    denoiser(image, out=out)
    assert count() == before
    kept = denoiser(image)
    assert count() == before + 1 and kept.shape == image.shape


def test_cupy_callers_stream():
    """Work is ordered after the stream's earlier work, without the default stream and without waiting."""
    cupy = cupy_or_skip()
    image = cupy.asarray(picture(1024, 1024))
    denoiser = ungrain.Denoiser("nlm", like=image, sigma=0.05)
    expected = cupy.asnumpy(denoiser(image))
    stream = cupy.cuda.Stream(non_blocking=True)
    late = cupy.zeros_like(image)
    busy = cupy.ones((4096, 4096), cupy.float32)
    cupy.cuda.Device().synchronize()
    with stream:
        for _ in range(20):  # keeps the stream busy for a while
            busy = busy @ busy * cupy.float32(1e-4)
        late[...] = image
        result = denoiser(late)
        assert not stream.done  # the call did not wait
    stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(result), expected)
    # The same by name.
    late[...] = 0
    cupy.cuda.Device().synchronize()
    with stream:
        busy = busy @ busy * cupy.float32(1e-4)
        late[...] = image
    out = cupy.empty_like(image)
    denoiser(late, out=out, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(out), expected)
    ungrain.nlm(late, sigma=0.05, out=out, stream=stream.ptr)
    np.testing.assert_array_equal(cupy.asnumpy(out), expected)


def test_torch_callers_stream():
    torch = torch_or_skip()
    image = torch.from_numpy(picture(1024, 1024)).cuda()
    denoiser = ungrain.Denoiser("nlm", like=image, sigma=0.05)
    expected = denoiser(image).cpu().numpy()
    stream = torch.cuda.Stream()
    late = torch.zeros_like(image)
    busy = torch.ones((4096, 4096), device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(20):
            busy = busy @ busy * 1e-4
        late.copy_(image)
        result = denoiser(late)
        assert not stream.query()  # the call did not wait
    stream.synchronize()
    np.testing.assert_array_equal(result.cpu().numpy(), expected)


def test_stacks_stay_there(gpu_library):
    stack = np.stack([picture(50, 60, seed=s) for s in range(3)])
    result = ungrain.bilateral(gpu_library.make(stack), axis=0, sigma=0.05)
    for index in range(3):
        alone = ungrain.bilateral(gpu_library.make(stack[index]), sigma=0.05)
        np.testing.assert_array_equal(gpu_library.read(result)[index], gpu_library.read(alone))


def test_from_one_library_to_the_other():
    cupy, torch = cupy_or_skip(), torch_or_skip()
    image = cupy.asarray(picture(64, 64))
    result = ungrain.box(image)
    assert torch.from_dlpack(result).data_ptr() == result.data.ptr

    class Exporter:  # DLPack and nothing else
        def __dlpack__(self, **arguments):
            return image.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return image.__dlpack_device__()
    other = ungrain.box(Exporter())
    assert isinstance(other, (cupy.ndarray, torch.Tensor))
    np.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(other)), cupy.asnumpy(result))


def test_what_cannot_be(gpu_library):
    image = gpu_library.make(picture(20, 20))
    with pytest.raises(ungrain.Unsupported, match="lies on a GPU"):
        ungrain.box(image, device="cpu")
    with pytest.raises(TypeError, match="another library"):
        ungrain.box(image, out=np.zeros((20, 20), np.float32))
    bad = picture(20, 20)
    bad[3, 4] = np.nan
    with pytest.raises(ungrain.BadPixels, match=r"pixel \(4, 3\)"):
        ungrain.box(gpu_library.make(bad), nonfinite="error")
    with pytest.raises(ungrain.BadPixels):
        ungrain.Denoiser("box", like=image, nonfinite="error")(gpu_library.make(bad))
    assert np.isfinite(gpu_library.read(ungrain.box(gpu_library.make(bad)))).all()


def test_progress_tells_of_each_image(gpu_library):
    stack = gpu_library.make(np.stack([picture(20, 20)] * 4))
    seen = []
    ungrain.box(stack, axis=0, progress=seen.append)
    assert seen == [0.25, 0.5, 0.75, 1]
    with pytest.raises(ungrain.Cancelled):
        ungrain.box(stack, axis=0, progress=lambda fraction: False)


def test_host_arrays_run_there_too():
    image = picture(200, 300, 3, np.uint8)
    result = ungrain.bilateral(image, sigma=10, device="cuda")
    assert np.abs(result.astype(int) - ungrain.bilateral(image, sigma=10, device="cpu")).max() <= 1
    assert ungrain.Denoiser("bilateral", like=image).device.startswith("cuda")
