"""Pictures, and the libraries that arrays may come from; those that are missing are skipped with the reason."""

import importlib

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
        white = {"u": 1.0, "i": 1.0, "f": 1.0}[dtype.kind] if dtype.kind == "f" else float(np.iinfo(dtype).max)
    image = image * white
    return (np.rint(image) if dtype.kind in "ui" else image).astype(dtype)


def _numpy():
    return Library("numpy", np.asarray, np.asarray, lambda a: a.ctypes.data)


def _torch_cpu():
    torch = pytest.importorskip("torch", reason="PyTorch is missing")
    return Library("torch", torch.from_numpy, lambda t: t.numpy(), lambda t: t.data_ptr())


def gpu_missing():
    """Why GPU arrays cannot be tried, or nothing."""
    for device in ungrain.devices():
        if device.name.startswith("cuda") and not device.usable:
            return device.reason
    return None


def _cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is missing")
    if reason := gpu_missing():
        pytest.skip(f"GPU arrays: {reason}")
    return Library("cupy", cupy.asarray, cupy.asnumpy, lambda a: a.data.ptr, gpu=True)


def _torch_cuda():
    torch = pytest.importorskip("torch", reason="PyTorch is missing")
    if reason := gpu_missing():
        pytest.skip(f"GPU arrays: {reason}")
    return Library("torch cuda", lambda a: torch.from_numpy(np.ascontiguousarray(a)).cuda(), lambda t: t.cpu().numpy(),
                   lambda t: t.data_ptr(), gpu=True)


class Library:
    """How arrays of a library are made, read and found in memory."""

    def __init__(self, name, make, read, address, gpu=False):
        self.name, self.make, self.read, self.address, self.gpu = name, make, read, address, gpu

    def __repr__(self):
        return self.name


MAKERS = {"numpy": _numpy, "torch": _torch_cpu, "cupy": _cupy, "torch-cuda": _torch_cuda}


@pytest.fixture(params=list(MAKERS))
def library(request):
    return MAKERS[request.param]()


@pytest.fixture(params=["cupy", "torch-cuda"])
def gpu_library(request):
    return MAKERS[request.param]()


def has(module):
    return importlib.util.find_spec(module) is not None
