"""What can be tried without GIMP: the program's command line and its errors. GIMP 3 itself is tried where `gimp-console-3.0` is there."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

PLUGIN = Path(__file__).resolve().parents[1] / "ungrain.py"
PROGRAM = os.environ.get("UNGRAIN", "ungrain")
GIMP = shutil.which("gimp-console-3.0") or shutil.which("gimp-console-3")
pytestmark = pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="the program is missing")


@pytest.fixture
def plugin():
    spec = importlib.util.spec_from_file_location("ungrain_gimp", PLUGIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def layer(tmp_path):
    noisy = np.random.default_rng(0).normal(0.5, 0.05, (40, 48, 4)).astype(np.float32)
    noisy[..., 3] = 1
    np.save(tmp_path / "layer.npy", noisy)
    subprocess.run([PROGRAM, "layer.npy", "-o", "layer.tif", "--alpha", "yes", "--method", "box", "--radius", "0", "-q"], cwd=tmp_path,
                   check=True)
    return tmp_path / "layer.tif"


def pixels(path):
    subprocess.run([PROGRAM, path, "-o", path.with_suffix(".npy"), "--method", "box", "--radius", "0", "-q"], check=True)
    return np.load(path.with_suffix(".npy"))


def test_every_method_of_the_menu(plugin, layer, monkeypatch):
    monkeypatch.setenv("UNGRAIN", PROGRAM)
    for method, _ in plugin.METHODS:
        result = layer.with_name(f"{method}.tif")
        assert plugin.denoise_file(str(layer), str(result), method, 0.9, 12, 0.1) == ""
        samples = pixels(result)
        assert samples.dtype == np.float32 and samples.shape == (40, 48, 4)
        assert samples[..., :3].std() < 0.04 and (samples[..., 3] == 1).all()  # alpha is carried through


def test_errors_are_one_line(plugin, layer, monkeypatch):
    monkeypatch.setenv("UNGRAIN", PROGRAM)
    said = plugin.denoise_file(str(layer), str(layer.with_name("out.tif")), "nothing")
    assert "nothing" in said and "\n" not in said
    monkeypatch.setenv("UNGRAIN", "no-such-program")
    assert "was not found" in plugin.denoise_file(str(layer), str(layer.with_name("out.tif")))


@pytest.mark.skipif(GIMP is None, reason="GIMP 3 is missing")
def test_in_gimp(layer, tmp_path):
    config = tmp_path / "config"
    (config / "plug-ins/ungrain").mkdir(parents=True)
    shutil.copy(PLUGIN, config / "plug-ins/ungrain/ungrain.py")
    script = (f'(let* ((image (car (gimp-file-load RUN-NONINTERACTIVE "{layer}"))))'
              f'(plug-in-ungrain #:run-mode RUN-NONINTERACTIVE #:image image #:drawables (car (gimp-image-get-layers image)) #:sigma 12)'
              f'(gimp-file-save RUN-NONINTERACTIVE image "{tmp_path}/out.tif"))')
    subprocess.run([GIMP, "-i", "--batch-interpreter", "plug-in-script-fu-eval", "-b", script, "--quit"], check=True, timeout=180,
                   env={**os.environ, "GIMP3_DIRECTORY": str(config), "UNGRAIN": shutil.which(PROGRAM)})
    assert (tmp_path / "out.tif").exists()
