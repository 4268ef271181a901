"""Pictures, and the array libraries; missing ones are skipped with the reason."""

import importlib
import importlib.util

import numpy as np
import pytest

import ungrain


def picture(height=48, width=40, channels=None, dtype=np.float32, seed=0, white=None):
    """Edges, gradients, texture and noise, from black to white of the type."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels or 1):
        base = 0.3 + 0.3 * x / width + 0.2 * ((2 * x + 3 * y) % 31 < 15) + 0.1 * np.sin(0.9 * x + 0.7 * y + c)
        planes.append(np.clip(base + 0.05 * rng.standard_normal(base.shape), 0, 1))
    image = np.stack(planes, axis=-1) if channels else planes[0]
    dtype = np.dtype(dtype)
    if white is None:
        white = 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)
    image = image * white
    return (np.rint(image) if dtype.kind in "ui" else image).astype(dtype)


class Library:
    """How arrays of a library are made, read and found in memory."""

    def __init__(self, name, make, read, address, gpu=False):
        self.name, self.make, self.read, self.address, self.gpu = name, make, read, address, gpu

    def __repr__(self):
        return self.name


def has(module):
    return importlib.util.find_spec(module) is not None


def gpu_missing():
    """Why arrays on a GPU cannot be tested, or nothing."""
    reasons = [device.reason for device in ungrain.devices() if device.name == "cuda" and not device.usable]
    return reasons[0] if reasons else None


def _numpy():
    return Library("numpy", np.asarray, np.asarray, lambda a: a.ctypes.data)


def _torch():
    import torch
    return Library("torch", torch.from_numpy, lambda t: t.numpy(), lambda t: t.data_ptr())


def _cupy():
    import cupy
    return Library("cupy", cupy.asarray, cupy.asnumpy, lambda a: a.data.ptr, gpu=True)


def _torch_cuda():
    import torch
    return Library("torch-cuda", lambda a: torch.from_numpy(np.ascontiguousarray(a)).cuda(), lambda t: t.cpu().numpy(),
                   lambda t: t.data_ptr(), gpu=True)


MAKERS = {"numpy": _numpy, "torch": _torch, "cupy": _cupy, "torch-cuda": _torch_cuda}


def missing(name):
    """Why arrays of this kind cannot be tested, or nothing."""
    module = name.partition("-")[0]
    if not has(module):
        return {"cupy": "CuPy", "torch": "PyTorch"}[module] + " is missing"
    if name in ("cupy", "torch-cuda"):
        if gpu_missing():
            return f"no arrays on a GPU: {gpu_missing()}"
        if not importlib.import_module(module).cuda.is_available():
            return "it sees no GPU"
    return None


# test_array_libraries.py reports once what cannot be tested.
AVAILABLE = [name for name in MAKERS if not missing(name)]
ON_GPU = [name for name in AVAILABLE if name in ("cupy", "torch-cuda")]


@pytest.fixture(params=AVAILABLE)
def library(request):
    return MAKERS[request.param]()


@pytest.fixture(params=ON_GPU)
def gpu_library(request):
    return MAKERS[request.param]()


@pytest.fixture(scope="module")
def scheduler():
    """A client of a cluster of three processes."""
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as local:
        with Client(local, set_as_default=False) as client:
            yield client


@pytest.fixture
def run(scheduler, tmp_path, capsys, monkeypatch):
    """ungrain cluster there, in an empty folder: (exit status, output)."""
    from ungrain import cluster
    monkeypatch.chdir(tmp_path)

    def call(*words):
        status = cluster.main([*map(str, words), "--scheduler", scheduler.scheduler.address])
        said = capsys.readouterr()
        return status, said.out + said.err
    return call
