"""The WebAssembly module in node, against the program: descriptions of methods, results, bands, refusals.

Needs build/wasm (make wasm), node and the program; skipped with the reason where one is missing, failed where UNGRAIN_REQUIRE names
"wasm".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from wasm_build import MODULE, PROGRAM, REPOSITORY, assert_near, by_program, noisy, why_not  # noqa: E402

if why_not() and "wasm" not in os.environ.get("UNGRAIN_REQUIRE", ""):
    pytest.skip(why_not(), allow_module_level=True)

# Options of the program and the same as settings of the module.
CASES = {
    "bm3d": {"method": "bm3d"},  # what the program does with nothing given
    "bilateral": {"method": "bilateral"},
    "bilateral of radius 3": {"method": "bilateral", "values": {"radius": "3", "sigma_range": "40"}},
    "gaussian": {"method": "gaussian", "values": {"sigma": "1.5"}},
    "median": {"method": "median", "values": {"radius": "2"}},
    "nlm": {"method": "nlm"},
    "box": {"method": "box"},
    "bilateral, half of the noise": {"method": "bilateral", "noise": {"strength": 0.5, "keep_grain": 0.2}},
}


def node(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess:
    return subprocess.run(["node", REPOSITORY / "wasm/run.mjs", *arguments], input=stdin, capture_output=True, timeout=300,
                          env={**os.environ, "UNGRAIN_WASM_MODULE": str(MODULE)})


def by_module(pixels: np.ndarray, settings: dict, bands: int = 1) -> np.ndarray:
    height, width, channels = pixels.shape
    kind = "f32" if pixels.dtype == np.float32 else "u8"
    done = node(json.dumps(settings), str(width), str(height), str(channels), kind, str(bands), stdin=pixels.tobytes())
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout, pixels.dtype).reshape(pixels.shape)


def options_of(settings: dict) -> list[str]:
    given = {**settings.get("values", {}), **settings.get("noise", {})}
    return ["--method", settings["method"], *(word for name, value in given.items() for word in ("--" + name.replace("_", "-"), str(value)))]


def test_methods_are_the_programs() -> None:
    listed = subprocess.run([PROGRAM, "methods", "--json"], check=True, capture_output=True, text=True, timeout=20).stdout.splitlines()
    expected = {one["name"]: one for one in map(json.loads, listed) if one["for"] == "images"}
    found = {one["name"]: one for one in json.loads(node("describe").stdout)}
    assert found.keys() == expected.keys() and len(found) >= 8
    for name, method in found.items():
        assert method["summary"] == expected[name]["summary"]
        known = {one["name"]: one for one in expected[name]["params"]}
        assert known.keys() >= {one["name"] for one in method["parameters"]} and len(known) - len(method["parameters"]) <= 1  # no images
        for parameter in method["parameters"]:
            same = known[parameter["name"]]
            assert (parameter["help"], parameter["takes"], parameter["choices"]) == (same["help"], same["takes"], same["choices"])
        assert [one["name"] for one in method["presets"]] == [one["name"] for one in expected[name]["presets"]]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_results_are_the_programs(tmp_path, case, channels) -> None:
    settings = CASES[case]
    pixels = noisy(211, 157, channels)
    clean = by_module(pixels, settings)
    assert_near(clean, by_program(tmp_path, pixels, *options_of(settings)), settings["method"])
    assert np.abs(clean.astype(int) - pixels).mean() > 1  # something was done


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("case", ["bm3d", "bilateral", "median", "nlm"])
def test_bands_have_the_bits_of_the_whole(case, kind) -> None:
    pixels = noisy(150, 333, 3).astype(kind)
    whole = by_module(pixels, CASES[case])
    assert np.array_equal(by_module(pixels, CASES[case], bands=4), whole)
    assert np.isfinite(whole).all()


def test_what_is_wrong_is_said() -> None:
    pixels = noisy(16, 16, 1)
    for settings, words in (({"method": "bilateral", "values": {"radius": "-1"}}, "radius"),
                            ({"method": "sharpen"}, "sharpen"),
                            ({"method": "bilateral", "values": {"colour_of_eyes": "1"}}, "colour_of_eyes")):
        done = node(json.dumps(settings), "16", "16", "1", "u8", "1", stdin=pixels.tobytes())
        assert done.returncode == 1 and words in done.stderr.decode().splitlines()[0] and done.stdout == b""

