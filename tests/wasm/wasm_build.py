"""What the tests of the WebAssembly build share: where it is, pictures, and how far results may differ from the program's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from support import PROGRAM, REPOSITORY, Picture, read_png, write_png  # noqa: E402

BUILD = Path(os.environ.get("UNGRAIN_WASM", REPOSITORY / "build/wasm"))
PAGE = BUILD / "ungrain.html"
MODULE = BUILD / "module"

# Largest and mean difference in levels of 255. WebAssembly has no fused multiply-add: sums differ in their last bits. bm3d compares
# patches with as many bits as the processor's instructions take, and finds others that are as near (src/methods/bm3d/README.md).
TOLERANCES = {"median": (0, 0), "box": (1, 0.01), "gaussian": (1, 0.01), "bilateral": (1, 0.01), "nlm": (1, 0.02), "bm3d": (8, 0.6)}
SAME_QUALITY = 0.05  # dB


def why_not() -> str:
    if not PAGE.is_file():
        return f"{PAGE} is not there (make wasm)"
    if not os.access(PROGRAM, os.X_OK):
        return f"{PROGRAM} was not built"
    if not shutil.which("node"):
        return "no node on this machine"
    return ""


def scene(width: int, height: int, channels: int) -> np.ndarray:
    """A slope, a disc and stripes: height x width x channels."""
    y, x = np.mgrid[0:height, 0:width]
    clean = 60 + 90 * x / width + 60 * (((x - width / 2) ** 2 + (y - height / 2) ** 2) < (height / 3) ** 2)
    clean = clean + 25 * ((x // 9 + y // 7) % 2) * (y > height / 2)
    return np.stack([clean * share for share in (1, 0.85, 0.7)[:channels]], -1)


def noisy(width: int, height: int, channels: int, seed: int = 1) -> np.ndarray:
    """The scene with noise of 18 levels, as uint8."""
    clean = scene(width, height, channels)
    return np.clip(np.rint(clean + np.random.default_rng(seed).normal(0, 18, clean.shape)), 0, 255).astype(np.uint8)


def save_png(path: Path, pixels: np.ndarray) -> Path:
    height, width, channels = pixels.shape
    return write_png(path, Picture(width, height, channels, pixels.reshape(-1).tolist()))


def load_png(path: Path) -> np.ndarray:
    image = read_png(path)
    return np.array(image.samples, np.uint8).reshape(image.height, image.width, image.channels)


def by_program(folder: Path, pixels: np.ndarray, *options: str) -> np.ndarray:
    source = save_png(folder / "noisy.png", pixels)
    target = folder / "clean.png"
    subprocess.run([PROGRAM, source, "-o", target, "-q", "--device", "cpu", *options], check=True, capture_output=True, timeout=120)
    return load_png(target)


def assert_near(found: np.ndarray, expected: np.ndarray, method: str) -> None:
    largest, mean = TOLERANCES[method]
    assert found.shape == expected.shape
    difference = np.abs(found.astype(int) - expected.astype(int))
    where = np.unravel_index(difference.argmax(), difference.shape)
    assert difference.max() <= largest, f"{method}: {found[where]} instead of {expected[where]} at {where}"
    assert difference.mean() <= mean
    truth = scene(found.shape[1], found.shape[0], found.shape[2])
    assert abs(psnr(found, truth) - psnr(expected, truth)) < SAME_QUALITY


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return 20 * np.log10(255) - 10 * np.log10(((image.astype(float) - truth) ** 2).mean())
