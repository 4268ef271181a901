"""Runs the program on NumPy arrays."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("UNGRAIN", str(ROOT / "build/release/bin/ungrain"))


class Program:
    def __init__(self, folder):
        self.folder = folder

    def run(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def save(self, name, array):
        path = self.folder / f"{name}.npy"
        np.save(path, array)
        return path

    def denoise(self, array, method, device="cpu", /, white=255, **options):  # "self" is an option too
        """The array through a method; with white at 255 strengths are in the array's own units."""
        source, result = self.save("in", array), self.folder / "out.npy"
        words = [w for k, v in options.items() for w in ("--" + k.replace("_", "-"), str(v))]
        self.run(source, "-o", result, "--method", method, "--device", device, "--range", white, "-q", *words)
        return np.load(result)

    def compare(self, truth, image, *options):
        out = self.run("compare", self.save("truth", truth), self.save("image", image), "--json", *options)
        return json.loads(out)


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def picture(height, width, channels=None, seed=0, dtype=np.float32, white=1.0):
    """Edges, gradients, texture and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels or 1):
        base = 0.3 + 0.4 * x / width + 0.2 * ((2 * x + 3 * y) % 31 < 15) + 0.1 * np.sin(0.9 * x + 0.7 * y + c)
        planes.append(np.clip(base + 0.05 * rng.standard_normal(base.shape), 0, 1))
    image = np.stack(planes, axis=-1) if channels else planes[0]
    image = image * white
    return np.round(image).astype(dtype) if np.issubdtype(dtype, np.integer) else image.astype(dtype)
