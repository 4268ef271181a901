"""delegates.xml in the real ImageMagick."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("UNGRAIN", "ungrain")


def imagemagick():
    """A program that is ImageMagick's; other programs are named convert, too."""
    for name in ["magick", "convert-im6.q16", "convert"]:
        if path := shutil.which(name):
            said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stdout
            if "Version: ImageMagick" in said:
                return path
    return None


CONVERT = imagemagick()
pytestmark = [pytest.mark.skipif(CONVERT is None, reason="ImageMagick is missing"),
              pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="the program is missing")]


@pytest.fixture
def folder(tmp_path):
    x = np.linspace(0.2, 0.8, 64)[None, :, None]
    noisy = x + np.random.default_rng(0).normal(0, 0.05, (48, 64, 3))
    np.save(tmp_path / "8.npy", (noisy * 255).astype(np.uint8))
    np.save(tmp_path / "16.npy", (noisy * 65535).astype(np.uint16))
    for bits in ["8", "16"]:
        ungrain(tmp_path, f"{bits}.npy", "-o", f"{bits}.png", "--method", "box", "--radius", "0")
    return tmp_path


def ungrain(folder, *arguments):
    subprocess.run([PROGRAM, *arguments, "-q"], cwd=folder, check=True)


def convert(folder, *arguments):
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    if not (programs / "ungrain").exists():
        (programs / "ungrain").symlink_to(Path(shutil.which(PROGRAM)).resolve())
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "MAGICK_CONFIGURE_PATH": str(FOLDER)}
    return subprocess.run([CONVERT, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def pixels(folder, name):
    ungrain(folder, name, "-o", "pixels.npy", "--method", "box", "--radius", "0")
    return np.load(folder / "pixels.npy")


@pytest.mark.parametrize("bits", ["8", "16"])
def test_reading_denoises(folder, bits):
    done = convert(folder, f"ungrain:{bits}.png", "out.png")
    assert done.returncode == 0, done.stderr
    ungrain(folder, f"{bits}.png", "-o", "wanted.png")
    assert pixels(folder, "out.png").dtype == np.dtype(f"uint{bits}")
    np.testing.assert_array_equal(pixels(folder, "out.png"), pixels(folder, "wanted.png"))


@pytest.mark.parametrize("bits", ["8", "16"])
def test_writing_denoises(folder, bits):
    done = convert(folder, f"{bits}.png", "-flop", "ungrain:out.png")
    assert done.returncode == 0, done.stderr
    assert convert(folder, f"{bits}.png", "-flop", "flopped.png").returncode == 0
    ungrain(folder, "flopped.png", "-o", "wanted.png")
    np.testing.assert_array_equal(pixels(folder, "out.png"), pixels(folder, "wanted.png"))


def test_names_are_no_commands(folder):
    for name in ["a b.png", "a;touch stolen;.png", "$(touch stolen).png", "`touch stolen`.png", 'a"b.png']:
        shutil.copy(folder / "8.png", folder / name)
        convert(folder, f"ungrain:{name}", "out.png")
        assert not (folder / "stolen").exists(), name
