"""The macro in the real ImageJ (Debian's package imagej, or IJ_JAR), on a screen that is made up (xvfb)."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

MACRO = Path(__file__).resolve().parents[1] / "ungrain_.ijm"
PROGRAM = os.environ.get("UNGRAIN", "ungrain")
JAR = os.environ.get("IJ_JAR", "/usr/share/java/ij.jar")
pytestmark = [pytest.mark.skipif(shutil.which("java") is None or not Path(JAR).exists(), reason="ImageJ (java, ij.jar) is missing"),
              pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="the program is missing"),
              pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="xvfb is missing")]
COPY = ["--method", "box", "--radius", "0", "-q"]


def noisy(*shape):
    x = np.linspace(0.2, 0.8, shape[-1])
    return x + np.random.default_rng(0).normal(0, 0.05, shape)


def convert(folder, source, target, *options):
    subprocess.run([PROGRAM, source, "-o", target, *COPY, *options], cwd=folder, check=True)


def imagej(folder, options, opened="in.tif", saved="out.tif"):
    """Opens, runs the macro, saves what it made."""
    test = folder / "test.ijm"
    test.write_text(f'open("{folder / opened}");\nrunMacro("{MACRO}", "{options}");\nprint(getTitle());\n'
                    f'saveAs("Tiff", "{folder / saved}");\n')
    # A home of its own, in which the preference names the program that is tested.
    home = folder / "home"
    (home / ".imagej").mkdir(parents=True, exist_ok=True)
    (home / ".imagej/IJ_Prefs.txt").write_text(f".ungrain.program={Path(shutil.which(PROGRAM)).resolve()}\n")
    # ImageJ makes menus even in batch mode, so it needs a screen.
    return subprocess.run(["xvfb-run", "-a", "java", f"-Duser.home={home}", f"-Djava.io.tmpdir={folder}", "-cp", JAR, "ij.ImageJ",
                           "-ijpath", str(home), "-batch", str(test)], capture_output=True, text=True, timeout=40, cwd=folder)


def pixels(folder, name):
    convert(folder, name, name + ".npy")
    return np.load(folder / (name + ".npy"))


@pytest.mark.parametrize("dtype, white", [(np.uint8, 255), (np.uint16, 65535), (np.float32, 1)])
def test_an_image(tmp_path, dtype, white):
    np.save(tmp_path / "in.npy", (noisy(48, 64) * white).astype(dtype))
    convert(tmp_path, "in.npy", "in.tif")
    done = imagej(tmp_path, "--method nlm --sigma 12")
    assert (tmp_path / "out.tif").exists(), done.stdout + done.stderr
    assert "in.tif denoised" in done.stdout
    subprocess.run([PROGRAM, "in.tif", "-o", "wanted.tif", "--method", "nlm", "--sigma", "12", "-q"], cwd=tmp_path, check=True)
    result = pixels(tmp_path, "out.tif")
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, pixels(tmp_path, "wanted.tif"))
    assert not list(tmp_path.glob("ungrain-*")), "temporary files were left"


def test_a_stack_is_a_volume(tmp_path):
    np.save(tmp_path / "in.npy", (noisy(8, 48, 64) * 255).astype(np.uint8))
    convert(tmp_path, "in.npy", "in.tif", "--axis", "0")
    done = imagej(tmp_path, "--volume --sigma 12")
    assert (tmp_path / "out.tif").exists(), done.stdout + done.stderr
    subprocess.run([PROGRAM, "in.tif", "--volume", "-o", "wanted.tif", "--sigma", "12", "-q"], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(pixels(tmp_path, "out.tif"), pixels(tmp_path, "wanted.tif"))


def test_an_error_is_told(tmp_path):
    np.save(tmp_path / "in.npy", (noisy(48, 64) * 255).astype(np.uint8))
    convert(tmp_path, "in.npy", "in.tif")
    done = imagej(tmp_path, "--method nothing")
    assert "in a terminal it says why" in done.stdout and "--method nothing" in done.stdout, done.stdout + done.stderr
    assert not list(tmp_path.glob("ungrain-*")), "temporary files were left"
