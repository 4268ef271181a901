"""Images in parts, on a real cluster of processes: the same bits as one call."""

import os
import time

import numpy as np
import pytest
from conftest import has, picture

import ungrain
from ungrain._parts import Axes, ImageWork
from ungrain import _gpus

if not (has("dask") and has("distributed")):
    pytest.skip("Dask (dask, distributed) is missing", allow_module_level=True)

import dask.array as da  # noqa: E402

import ungrain.dask  # noqa: E402

# Methods, their kinds of reach, and parameters that keep their reach small.
QUICK = {"box": {"radius": 3}, "gaussian": {"sigma": 2.0}, "median": {"radius": 2}, "bilateral": {"radius": 3},
         "adaptive-bilateral": {"radius": 3}, "nlm": {"search": 9, "patch": 5}, "nlm-bilateral": {"search": 9, "patch": 5},
         "bm3d": {"search": 11}, "ridge": {"passes": 2, "search": 11, "group": 16}}


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster:
        with Client(cluster) as client:
            yield client


def test_every_method_is_tried():
    assert sorted(QUICK) == sorted(ungrain.methods())


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("method", QUICK)
def test_same_bits_as_one_call(client, method, dtype):
    """Two-step methods too, with measured noise where the method needs it; chunks of different sizes."""
    image = picture(170, 143, 3 if method in ("bilateral", "bm3d") else None, dtype)
    chunks = ((61, 61, 48), (70, 73)) + (((2, 1),) if image.ndim == 3 else ())
    result = ungrain.dask.denoise(da.from_array(image, chunks=chunks), method, **QUICK[method])
    assert result.dtype == image.dtype and result.shape == image.shape
    # ridge begins with bm3d, whose windows reach farther than these chunks.
    assert result.numblocks[:2] == ((1, 1) if method == "ridge" else (3, 2))
    np.testing.assert_array_equal(result.compute(), ungrain.denoise(image, method, **QUICK[method]))


@pytest.mark.parametrize("options", [{"border": "constant"}, {"border": "wrap"}, {"preset": "paper-003"},
                                     {"search": "whole-image"}],
                         ids=lambda options: "-".join(options.values()))
def test_borders_presets_and_whole_images(options):
    image = picture(90, 80)
    given = {"sigma": 0.05, "patch": 5, **({} if "search" in options or "preset" in options else {"search": 9}), **options}
    if "preset" in options:
        del given["patch"]
    result = ungrain.dask.denoise(da.from_array(image, chunks=40), "nlm", **given).compute(scheduler="synchronous")
    np.testing.assert_array_equal(result, ungrain.denoise(image, "nlm", **given))


@pytest.mark.parametrize("dtype", [np.uint16, np.float16, np.float64, np.int16, ">u2"])
def test_types(dtype):
    image = (picture(64, 50) * 1000).astype(dtype)
    result = ungrain.dask.denoise(da.from_array(image, chunks=30), "bilateral", sigma=50, range=1000)
    one = ungrain.denoise(image, "bilateral", sigma=50, range=1000)
    np.testing.assert_array_equal(result.compute(scheduler="synchronous"), one)


def test_noise_of_a_large_image_is_measured_on_the_same_samples():
    """Sampled sparsely: only a part of the rows and columns is gathered."""
    image = picture(1900, 1700, dtype=np.uint8)
    work = ImageWork("bilateral", {}, image.shape, "uint8", -1)
    rows, columns = work.sampled()
    assert len(rows) < 1900 and len(columns) < 1700
    found = ungrain.dask.resolve(da.from_array(image, chunks=(500, 611)), "bilateral")
    assert found[0]["sigma"] == ungrain.estimate_sigma(image)


def test_stack_measures_each_image(client):
    frames = np.stack([picture(50, 40, seed=seed) * (1 + seed) / 4 for seed in range(4)])
    result = ungrain.dask.denoise(da.from_array(frames, chunks=(2, 25, 40)), "nlm", axis=0, search=9)
    np.testing.assert_array_equal(result.compute(), ungrain.denoise(frames, "nlm", axis=0, search=9))


def test_channels_first_in_a_stack():
    frames = np.stack([picture(50, 40, 3, seed=seed).transpose(2, 0, 1) for seed in range(2)])
    given = {"axis": 0, "channel_axis": 1, "sigma": 0.05, "radius": 2}
    result = ungrain.dask.denoise(da.from_array(frames, chunks=(1, 1, 25, 20)), "bilateral", **given)
    np.testing.assert_array_equal(result.compute(scheduler="synchronous"), ungrain.denoise(frames, "bilateral", **given))


def test_nonfinite_pixels_at_chunk_borders():
    image = picture(60, 60)
    image[28:33, 29:31] = np.nan
    for rule in ("fill", "keep"):
        result = ungrain.dask.denoise(da.from_array(image, chunks=30), "box", radius=2, nonfinite=rule)
        np.testing.assert_array_equal(result.compute(scheduler="synchronous"),
                                      ungrain.denoise(image, "box", radius=2, nonfinite=rule))


def test_chunks_smaller_than_the_reach_are_joined():
    image = picture(64, 64)
    result = ungrain.dask.denoise(da.from_array(image, chunks=4), "box", radius=9)
    np.testing.assert_array_equal(result.compute(scheduler="synchronous"), ungrain.denoise(image, "box", radius=9))


def test_only_the_reach_is_read():
    """A corner's chunk touches no pixel farther away than its method looks."""
    work = ImageWork("bilateral", {"radius": 5, "sigma": 10.0}, (4096, 4096), "uint8", -1).resolve()
    assert work.reach() == (5, 5)
    assert ImageWork("bm3d", {"sigma": [10.0]}, (4096, 4096), "uint8", -1).resolve().reach()[0] > 2 * 8


def test_a_worker_killed_in_the_middle(client):
    image = picture(400, 400)
    given = {"sigma": 0.05, "search": 31, "patch": 5}
    result = ungrain.dask.denoise(da.from_array(image, chunks=50), "nlm", **given)
    workers = client.run(os.getpid)
    running = client.compute(result)
    deadline = time.monotonic() + 30
    while not any(client.processing().values()) and not running.done() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(next(iter(workers.values())), 9)
    assert not running.done()
    np.testing.assert_array_equal(running.result(timeout=60), ungrain.denoise(image, "nlm", **given))
    client.wait_for_workers(3, timeout=30)
    assert set(client.run(os.getpid).values()) != set(workers.values())


def test_errors_come_when_called():
    array = da.from_array(picture(20, 20), chunks=10)
    with pytest.raises(ValueError, match="radius takes"):
        ungrain.dask.denoise(array, "box", radius=-1)
    with pytest.raises(TypeError, match="Dask array"):
        ungrain.dask.denoise(picture(20, 20), "box")
    with pytest.raises(ValueError, match="is no image"):
        ungrain.dask.denoise(da.zeros((2, 3, 4, 5)), "box")
    with pytest.raises(ValueError, match="sigma_map is an image"):
        ungrain.dask.denoise(array, "bm3d", sigma_map=picture(20, 20))
    with pytest.raises(TypeError, match="uint8, uint16"):
        ungrain.dask.denoise(da.zeros((5, 5), dtype="int64"), "box")


def test_region_is_checked():
    denoiser = ungrain.Denoiser("box", shape=(40, 40), dtype="uint8", radius=3)
    image = picture(40, 40, dtype=np.uint8)
    np.testing.assert_array_equal(denoiser.region(image[7:33], at=(7, 0), out_at=(10, 5), out_shape=(20, 8)),
                                  denoiser(image)[10:30, 5:13])
    with pytest.raises(ValueError, match="needs the input's pixels"):
        denoiser.region(image[9:33], at=(9, 0), out_at=(10, 5), out_shape=(20, 8))
    with pytest.raises(ValueError, match="outside"):
        denoiser.region(image, at=(0, 0), out_at=(30, 5), out_shape=(20, 8))


def test_axes():
    assert Axes.of(5, (0, 2), 1) == Axes((0, 2), (3, 4), 1)
    assert Axes.of(3, None, None).image_channel_axis() == Axes.of(3, None, -1).image_channel_axis() == 2
    assert Axes.of(5, 0, 1, sides=3) == Axes((0,), (2, 3, 4), 1) and Axes.of(4, 3, None, sides=3) == Axes((3,), (0, 1, 2), None)


def test_one_gpu_for_each_process(monkeypatch, tmp_path):
    """On a made-up machine with two GPUs: the second process takes the second GPU."""
    import subprocess
    import sys
    code = ("import tempfile, sys; tempfile.tempdir = sys.argv[1]; from ungrain import _gpus; "
            "_gpus._usable_gpus = lambda: ['cuda', 'cuda:1']; print(_gpus.own_gpu(), _gpus.own_gpu(), flush=True); "
            "sys.stdin.read()")
    held = []
    for expected in ("cuda cuda\n", "cuda:1 cuda:1\n"):
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        held.append(process)
        assert process.stdout.readline() == expected
    held[0].communicate()  # it ends and releases its GPU
    third = subprocess.run([sys.executable, "-c", code, str(tmp_path)], input="", capture_output=True, text=True, check=True)
    assert third.stdout == "cuda cuda\n"
    held[1].communicate()
    monkeypatch.setattr(_gpus, "_usable_gpus", lambda: [])
    monkeypatch.setattr(_gpus, "_claimed", None)
    assert _gpus.own_gpu() is None


def test_methods_that_look_along_a_stack_are_refused():
    stack = da.from_array(np.stack([picture(40, 50, seed=s) for s in range(3)]), chunks=(1, 20, 25))
    with pytest.raises(ungrain.InvalidArgument, match="box looks along the stack.*ungrain.denoise"):
        ungrain.dask.denoise(stack, "box", axis=0, radius_z=1)
    np.testing.assert_array_equal(ungrain.dask.denoise(stack[0], "box", radius_z=1).compute(scheduler="sync"),
                                  ungrain.box(stack[0].compute(), radius_z=1))
