"""One GPU for each process of a machine, without a process that assigns them."""

from __future__ import annotations

import os
import tempfile
import threading
from typing import IO

from . import _core

_lock = threading.Lock()
_claimed: tuple[str | None, IO[str] | None] | None = None


def _usable_gpus() -> list[str]:
    return [each["name"] for each in _core.devices()
            if each["name"].startswith("cuda") and each["name"] != "cuda:all" and each["usable"]]


def _identity(index: int) -> str:
    """The GPU's name, unique on the machine: the numbers that a process sees may differ from another's."""
    visible = [word.strip() for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip()]
    name = visible[index] if index < len(visible) else str(index)
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _claim() -> tuple[str | None, IO[str] | None]:
    gpus = _usable_gpus()
    if len(gpus) < 2:
        return (gpus[0] if gpus else None), None
    try:
        import fcntl
    except ImportError:  # Windows
        return gpus[os.getpid() % len(gpus)], None
    for index, gpu in enumerate(gpus):
        file = open(os.path.join(tempfile.gettempdir(), f"ungrain-gpu-{os.getuid()}-{_identity(index)}.lock"), "a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return gpu, file  # locked while the process lives; the system releases the lock however it ends
        except OSError:
            file.close()
    return gpus[os.getpid() % len(gpus)], None  # more processes than GPUs


def own_gpu() -> str | None:
    """The name of this process's GPU, the same at every call; None where there is no usable GPU."""
    global _claimed
    with _lock:
        if _claimed is None:
            _claimed = _claim()
        return _claimed[0]
