"""Small files under the names that the documents use, so that their command lines run as they stand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
from support import PROGRAM, write_nifti  # noqa: E402
from test_dicom import dicom  # noqa: E402

WIDTH, HEIGHT, DEPTH = 96, 64, 8
# A filter that does nothing is a converter.
COPY = ["--method", "box", "--radius", "0", "-q"]


def scene(channels: int = 3) -> np.ndarray:
    """Steps and ramps from 0 to 1."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    planes = [0.2 + 0.4 * (x > 40) + 0.2 * y / HEIGHT, 0.3 + 0.3 * (y > 30), 0.7 - 0.4 * x / WIDTH]
    return planes[0] if channels == 1 else np.stack(planes, -1)


def noisy(clean: np.ndarray, sigma: float = 0.05, seed: int = 0) -> np.ndarray:
    return clean + np.random.default_rng(seed).normal(0, sigma, clean.shape)


def as_bytes(image: np.ndarray, white: int = 255) -> np.ndarray:
    return np.clip(np.round(image * white), 0, white).astype(np.uint8 if white == 255 else np.uint16)


def volume(sigma: float = 0.05, frames: int = 1) -> np.ndarray:
    z, y, x = np.mgrid[:DEPTH, :HEIGHT, :WIDTH]
    solid = 0.2 + 0.5 * ((x - 48) ** 2 + (y - 32) ** 2 + 9 * (z - 4) ** 2 < 600)
    return noisy(np.stack([solid] * frames), sigma)


def runs(*arguments: str | Path, folder: Path) -> None:
    subprocess.run([PROGRAM, *map(os.fspath, arguments)], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60)


def _pictures(folder: Path) -> None:
    np.save(folder / "photo.npy", as_bytes(noisy(scene())))
    np.save(folder / "gray.npy", as_bytes(noisy(scene(1)), 65535))
    for name in ["photo.jpg", "photo2.jpg", "photo.png", "photo.tif", "scan.png", "in.png", "noisy.png", "out.png", "dark.png",
                 "layer.tif"]:
        runs("photo.npy", "-o", name, *COPY, folder=folder)
    for name in ["frame.tif", "scan.tif", "slide.tif"]:
        runs("gray.npy", "-o", name, *COPY, folder=folder)
    np.save(folder / "clean.npy", as_bytes(scene()))
    runs("clean.npy", "-o", "clean.png", *COPY, folder=folder)
    np.save(folder / "sigma.npy", np.full((HEIGHT, WIDTH), 12, np.float32))
    runs("sigma.npy", "-o", "noise.tif", *COPY, "--range", "255", folder=folder)
    np.save(folder / "frame.npy", noisy(scene(1)).astype(np.float32))
    np.save(folder / "stack.npy", as_bytes(noisy(np.stack([scene(1)] * DEPTH))))
    for name, level in [("dark.npy", 0.05), ("flat.npy", 0.5)]:
        np.save(folder / name, as_bytes(noisy(np.full((4, HEIGHT, WIDTH, 3), level), 0.01), 65535))
        runs(name, "-o", Path(name).with_suffix(".tif"), "--axis", "0", *COPY, folder=folder)
    np.save(folder / "k.npy", np.outer([1, 2, 1], [1, 2, 1]).astype(np.float32) / 16)
    np.save(folder / "streaks.npy", np.ones((8, 8), np.float32))
    (folder / "cleaned").mkdir()
    for name in ["photos", "scans"]:
        (folder / name).mkdir()
        shutil.copy(folder / "photo.jpg", folder / name / "a.jpg")
        shutil.copy(folder / "photo2.jpg", folder / name / "b.jpg")
    (folder / "my.json").write_text(json.dumps({"ungrain_preset": 1, "options": {"strength": 0.8}}))


def _volumes(folder: Path) -> None:
    def nifti(name: str, samples: np.ndarray, kind: str = "f4") -> None:
        size = tuple(reversed(samples.shape if len(samples) > 1 else samples.shape[1:]))
        write_nifti(folder / name, size, samples.ravel().tolist(), kind=kind)

    noisy_volume = np.float32(200) * volume()
    for name in ["t1.nii.gz", "scan.nii.gz", "noisy.nii.gz"]:
        nifti(name, noisy_volume)
    nifti("clean.nii.gz", np.float32(200) * volume(0))
    nifti("out.nii.gz", np.float32(200) * volume(0.01))
    nifti("brain.nii.gz", (volume(0) > 0.4).astype(np.float32))
    nifti("dwi.nii.gz", np.float32(200) * volume(frames=2))
    runs("volume", "t1.nii.gz", "-o", "scan.h5", *COPY, folder=folder)
    np.save(folder / "slices.npy", as_bytes(volume()[0]))
    for name in ["stack.tif", "cells.ome.tif"]:
        runs("slices.npy", "-o", name, "--axis", "0", *COPY, folder=folder)
    (folder / "FOLDER").mkdir()
    draw = np.random.default_rng(0)
    for z in range(12):
        samples = np.round(1000 + 20 * np.arange(20)[None, :] + draw.normal(0, 40, (18, 20))).astype(int)
        (folder / "FOLDER" / f"IM{z:04}").write_bytes(dicom(z, samples.ravel().tolist()))


def _raw(folder: Path) -> None:
    runs("noise", "clean.png", "-o", "IMG_0815.dng", "--camera", folder=folder)
    for name in ["IMG_0815.CR2", "IMG_0001.CR2"]:
        shutil.copy(folder / "IMG_0815.dng", folder / name)  # files are known by what is in them


def _clips(folder: Path) -> None:
    runs("demo", "--frames", "6", "--size", f"{WIDTH}x{HEIGHT}", "-o", "demo", folder=folder)
    shutil.move(folder / "demo/noisy.y4m", folder / "in.y4m")
    shutil.rmtree(folder / "demo")
    frames = folder / "frames"
    frames.mkdir()
    (folder / "clean").mkdir()
    for k in range(4):
        runs("photo.npy", "-o", frames / f"f{k + 1:05}.png", *COPY, folder=folder)
        runs("gray.npy", "-o", frames / f"f{k + 1:05}.tif", *COPY, folder=folder)
    (folder / "in.yuv").write_bytes(np.full(2 * 3 * WIDTH * HEIGHT // 2, 500, "<u2").tobytes())  # two frames of 10 bits
    if shutil.which("ffmpeg"):
        made = subprocess.run(["ffmpeg", "-v", "error", "-i", "in.y4m", "-f", "lavfi", "-i", "sine=duration=0.2", "-c:v", "ffv1",
                               "in.mkv"], cwd=folder, check=False, timeout=60)
        if made.returncode == 0:
            shutil.copy(folder / "in.mkv", folder / "clip.mkv")


def _zarr(folder: Path) -> None:
    try:
        import zarr
    except ImportError:
        return
    for name, values in [("in.zarr", as_bytes(noisy(scene(1)))), ("slide.zarr", as_bytes(noisy(scene(1))))]:
        array = zarr.create_array(store=folder / name, shape=values.shape, chunks=(64, 64), dtype=values.dtype)
        array[:] = values
    values = as_bytes(volume()[0])
    group = zarr.create_group(store=folder / "in.ome.zarr", zarr_format=2)
    array = group.create_array("0", shape=values.shape, chunks=(8, 64, 64), dtype=values.dtype)
    array[:] = values
    group.attrs["multiscales"] = [{
        "version": "0.4", "name": "cells", "axes": [{"name": name, "type": "space"} for name in "zyx"],
        "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 1]}]}]}]


@cache
def reads(extension: str) -> bool:
    listed = subprocess.run([PROGRAM, "formats", "--json"], capture_output=True, text=True, check=True).stdout
    return any(extension in row["extensions"] and row["read"] for row in map(json.loads, listed.splitlines()))


def make(folder: Path) -> None:
    _pictures(folder)
    _volumes(folder)
    if reads(".dng"):
        _raw(folder)
    _clips(folder)
    _zarr(folder)
