"""The examples, and the lines of the README, run as they stand."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import has

ROOT = pathlib.Path(os.environ.get("UNGRAIN_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, cwd=tmp_path, timeout=300,
                          check=False)
    if done.returncode == 77:
        pytest.skip(f"{example.name}: {done.stdout.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_photographs_example_takes_a_file(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is missing")
    noisy = np.random.default_rng(0).integers(100, 150, (32, 40, 3), dtype=np.uint8)
    image.fromarray(noisy).save(tmp_path / "photo.png")
    subprocess.run([sys.executable, str(ROOT / "examples/photograph.py"), "photo.png"], cwd=tmp_path, timeout=300, check=True)
    written = np.asarray(image.open(tmp_path / "photo.ungrain.png"))
    assert written.shape == noisy.shape and written.std() < noisy.std() / 2


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_pages_lines_run(page, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    setting = "import numpy as np\nimport ungrain\nimage = np.random.default_rng(0).integers(0, 255, (48, 64), dtype=np.uint8)\n" \
              "frames = np.stack([image] * 3)\n" \
              "volume = np.random.default_rng(0).normal(100, 12, (12, 40, 40)).astype(np.float32)\n" \
              "magnitudes = np.sqrt((np.random.default_rng(0).normal(0, 12, (16, 12, 40, 40)) ** 2).sum(0))\n"
    for block in blocks:
        if "ungrain.dask" in block and not has("dask"):
            continue  # its own tests say that it is missing
        if "ungrain.dask" in block:
            block = "import dask.array\narray = dask.array.from_array(image, chunks=32)\n" + block
        done = subprocess.run([sys.executable, "-c", setting + block], capture_output=True, text=True, cwd=tmp_path,
                              timeout=300, check=False)
        assert done.returncode == 0, done.stderr
