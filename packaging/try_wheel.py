"""Tries an installed ungrain: imports it, filters on every device that is there, and says what it is. For bare systems: needs
NumPy and nothing else. Exit status 1 where something is wrong."""

import pathlib
import platform
import sys

import numpy as np

import ungrain


def main() -> int:
    package = pathlib.Path(ungrain.__file__).parent
    print(f"ungrain {ungrain.__version__}, Python {platform.python_version()}, {' '.join(platform.libc_ver())}, {platform.machine()}")
    print(f"module {next(package.glob('_core*.so')).name}, devices {[device.name for device in ungrain.devices() if device.usable]}")
    columns = np.linspace(40, 200, 96)
    clean = np.where(np.add.outer(np.arange(64), np.arange(96)) % 48 < 24, columns, 255 - columns)
    noisy = (clean + np.random.default_rng(1).normal(0, 25, clean.shape)).astype(np.float32)
    for method in ungrain.methods():
        if method == "ridge":  # slow
            continue
        result = ungrain.denoise(noisy, method=method, range=255, device="cpu")
        assert result.shape == noisy.shape and np.isfinite(result).all(), method
        for device in ungrain.devices():
            if device.usable and device.name.startswith("cuda"):
                difference = np.abs(ungrain.denoise(noisy, method=method, range=255, device=device.name) - result).max()
                assert difference < 1, (method, device.name, difference)
    before, after = (np.sqrt(np.mean((image - clean) ** 2)) for image in (noisy, ungrain.bm3d(noisy, sigma=25, range=255)))
    print(f"bm3d: error {before:.1f} before, {after:.1f} after")
    return 0 if after < before / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
