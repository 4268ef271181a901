"""ungrain volume: files of slices as volumes."""
from __future__ import annotations

import json
import math
import os
import random
import struct

import pytest

from support import Workspace, npy_bytes
from test_nifti import nifti, samples_of

WIDTH, HEIGHT, DEPTH = 20, 18, 16


def ball(depth: int = DEPTH) -> list[float]:
    """A soft ball in front of a slope, values around 20 to 200."""
    values = []
    for z in range(depth):
        for y in range(HEIGHT):
            for x in range(WIDTH):
                r = math.dist((x, y, z), (WIDTH / 2, HEIGHT / 2, depth / 2))
                values.append(60 + x + (100 if r < 6 else 0))
    return values


def noisy(values: list[float], sigma: float, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [value + draw.gauss(0, sigma) for value in values]


def psnr(found: list[float], clean: list[float]) -> float:
    return 10 * math.log10(255 ** 2 * len(clean) / sum((a - b) ** 2 for a, b in zip(found, clean)))


class TestVolumes(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.clean = ball()
        self.noisy = noisy(self.clean, 12)
        self.write("a.npy", self.noisy)

    def write(self, name: str, values: list[float], depth: int = DEPTH) -> None:
        shape = f"({depth}, {HEIGHT}, {WIDTH})"
        self.path(name).write_bytes(npy_bytes(shape, "<f4", struct.pack(f"<{len(values)}f", *values)))

    def read(self, name: str) -> list[float]:
        data = self.bytes_of(name)
        count = len(data[data.index(b"\n") + 1:]) // 4
        return list(struct.unpack(f"<{count}f", data[-4 * count:]))

    def test_bm4d_is_the_default(self) -> None:
        report = json.loads(self.done("volume", "a.npy", "-o", "b.npy", "--sigma", "12", "--json").out)
        assert (report["method"], report["width"], report["height"], report["depth"], report["pages"]) == (
            "bm4d", WIDTH, HEIGHT, DEPTH, 1)
        assert psnr(self.read("b.npy"), self.clean) > psnr(self.noisy, self.clean) + 5
        line = self.done("volume", "a.npy", "-o", "b.npy", "--sigma", "12").out
        assert f"{WIDTH}x{HEIGHT}x{DEPTH} f32 gray" in line

    def test_the_flag_is_the_command(self) -> None:
        self.done("volume", "a.npy", "-o", "b.npy", "--sigma", "12", "-q")
        self.done("a.npy", "--volume", "-o", "c.npy", "--sigma", "12", "-q")
        assert self.bytes_of("b.npy") == self.bytes_of("c.npy")

    def test_quality(self) -> None:
        for quality, profile in (("fast", "fast"), ("normal", "normal"), ("best", "high")):
            report = json.loads(self.done("volume", "a.npy", "--quality", quality, "--sigma", "12", "--json").out)
            assert (report["method"], report["params"]["profile"]) == ("bm4d", profile)

    def test_series(self) -> None:
        """Volumes of a series do not see each other."""
        other = noisy(ball(), 12, seed=2)
        self.write("two.npy", self.noisy + other, 2 * DEPTH)
        self.write("other.npy", other)
        for method in ("bm4d", "median", "box", "gaussian", "bilateral"):
            arguments = ("-m", method, "-q") + (("--sigma", "12") if method in ("bm4d", "bilateral") else ())
            self.done("volume", "two.npy", "--slices", str(DEPTH), "-o", "r2.npy", *arguments)
            self.done("volume", "a.npy", "-o", "ra.npy", *arguments)
            self.done("volume", "other.npy", "-o", "rb.npy", *arguments)
            assert self.read("r2.npy") == self.read("ra.npy") + self.read("rb.npy"), method

    def test_windows_have_a_depth(self) -> None:
        params = lambda *arguments: json.loads(self.done("volume", "a.npy", "--json", *arguments).out)["params"]
        assert params("-m", "median", "--radius", "2")["radius_t"] == "2"
        assert params("-m", "median", "--radius", "2", "--spacing", "1,1,2")["radius_t"] == "1"
        assert params("-m", "box", "--radius", "3")["radius_z"] == "3"
        assert params("-m", "box", "--radius", "3", "--radius-z", "1")["radius_z"] == "1"
        assert params("-m", "gaussian", "--sigma", "2", "--spacing", "1,1,4")["sigma_z"] == "0.5"
        assert params("--sigma", "9", "--spacing", "0.5,0.5,1.5")["search_z"] == "5"
        assert params("--sigma", "9", "--search-z", "5")["search_z"] == "5"

    def test_noise_is_measured_beside_a_mask(self) -> None:
        """Zeros around the object, and slices without it, do not count."""
        width, height, depth = 72, 64, 12
        draw = random.Random(6)
        inside = lambda x, y, z: 2 <= z < 10 and math.hypot(x - 36, y - 32) < 26
        values = [float(round(900 + 2 * x + draw.gauss(0, 60))) if inside(x, y, z) else 0.0
                  for z in range(depth) for y in range(height) for x in range(width)]
        self.path("m.npy").write_bytes(npy_bytes(f"({depth}, {height}, {width})", "<i2",
                                                 struct.pack(f"<{len(values)}h", *map(int, values))))
        for method in ("bm4d", "nlm3d", "bilateral"):
            report = json.loads(self.done("volume", "m.npy", "-m", method, "-o", "r.npy", "--json").out)
            assert report["noise_found"], method
            strength = next(each["value"] for name, each in report["strengths"].items() if name.startswith("sigma"))
            assert strength == pytest.approx(60, abs=8), method

    def test_memory_changes_no_bit(self) -> None:
        self.write("long.npy", noisy(ball(60), 12), 60)
        self.done("volume", "long.npy", "-o", "b.npy", "--sigma", "12", "-q", "--search", "5")
        self.done("volume", "long.npy", "-o", "c.npy", "--sigma", "12", "-q", "--search", "5", "--memory", "1M", "--threads", "1")
        assert self.bytes_of("b.npy") == self.bytes_of("c.npy")

    def test_slices_too_large_for_the_memory(self) -> None:
        """They are filtered in parts, with the same bits."""
        width, height, depth = 30, 170, 24
        draw = random.Random(3)
        samples = [round(20000 + 60 * x + 8000 * ((x // 7 + y // 9) % 2) + draw.gauss(0, 2000))
                   for z in range(depth) for y in range(height) for x in range(width)]
        self.path("wide.npy").write_bytes(npy_bytes(f"({depth}, {height}, {width})", "<u2",
                                                    struct.pack(f"<{len(samples)}H", *samples)))
        for method, memory in (("bm4d", "700K"), ("nlm3d", "900K")):
            arguments = ("volume", "wide.npy", "-m", method, "--sigma", "8", "--search", "5", "--json", "--threads", "1")
            whole = json.loads(self.done(*arguments, "-o", "b.npy").out)
            parts = json.loads(self.done(*arguments, "-o", "c.npy", "--memory", memory).out)
            assert parts["buffer_bytes"] < whole["buffer_bytes"]
            assert self.bytes_of("b.npy") == self.bytes_of("c.npy"), method

    def test_nifti_keeps_its_header(self) -> None:
        samples = bytes(min(255, max(0, round(value))) for value in self.noisy)
        content = nifti(WIDTH, HEIGHT, DEPTH, samples)
        self.path("a.nii").write_bytes(content)
        self.done("volume", "a.nii", "-o", "b.nii.gz", "--sigma", "12", "-q")
        assert len(samples_of(self.path("b.nii.gz"))) == len(samples)
        self.done("volume", "a.nii", "-o", "b.nii", "--sigma", "12", "-q")
        assert self.bytes_of("b.nii")[40:60] == content[40:60]  # the sizes
        assert self.bytes_of("b.nii")[80:92] == content[80:92]  # those of voxels
        # Its voxels are four times as deep as wide.
        report = json.loads(self.done("volume", "a.nii", "--sigma", "12", "--json").out)
        assert (report["params"]["aspect"], report["params"]["search_z"]) == ("4", "3")

    def test_sigma_map(self) -> None:
        """One number everywhere is that sigma; a map of another size is refused."""
        self.write("map.npy", [12.0] * len(self.noisy))
        self.done("volume", "a.npy", "--range", "255", "-o", "b.npy", "--sigma-map", "map.npy", "-q")
        self.done("volume", "a.npy", "--range", "255", "-o", "c.npy", "--sigma", "12", "-q")
        assert self.read("b.npy") == self.read("c.npy")
        self.write("small.npy", [12.0] * (WIDTH * HEIGHT * 5), 5)
        result = self.run_here("volume", "a.npy", "--sigma-map", "small.npy")
        assert result.code == 1
        assert "sigma_map" in result.err

    def test_rician_noise(self) -> None:
        draw = random.Random(4)
        level = lambda x: 0 if x < WIDTH / 2 else 120
        sigma = 10
        values = [math.hypot(level(i % WIDTH) + draw.gauss(0, sigma), draw.gauss(0, sigma))
                  for i in range(WIDTH * HEIGHT * DEPTH)]
        self.write("m.npy", values)
        arguments = ("--range", "255", "-q", "--noise", "rician", "--sigma", str(sigma))
        self.done("volume", "m.npy", "-o", "b.npy", *arguments)
        result = self.read("b.npy")
        inner = lambda first, end: [result[i] for i in range(len(result)) if first <= i % WIDTH < end]
        mean = lambda list_: sum(list_) / len(list_)
        assert mean(inner(0, 8)) < 0.02 * sigma  # 12.5 before
        assert mean(inner(12, WIDTH)) == pytest.approx(120, abs=0.6)

    def test_refused(self) -> None:
        for arguments, message in (
                (("a.npy", "--slices", "5"), "a.npy: its 16 slices do not make volumes of 5 (--slices)"),
                (("a.npy", "--spacing", "1,1"), "--spacing takes three numbers above 0, such as 1,1,3; got '1,1'"),
                (("a.npy", "--spacing", "1,0,1"), "--spacing takes three numbers above 0, such as 1,1,3; got '1,0,1'"),
                (("a.npy", "--coils", "4"), "--coils belongs to --noise rician"),
                (("a.npy", "-m", "ridge"), "ridge is not for volumes"),
        ):
            result = self.run_here("volume", *arguments)
            assert result.code != 0
            assert len(result.err_lines) == 1, result.err
            assert message in result.err
        self.write("flat.npy", self.noisy[:WIDTH * HEIGHT * 3], 3)
        result = self.run_here("volume", "flat.npy", "--sigma", "12")
        assert "has no cube of" in result.err


class TestZarrVolumes(Workspace):
    """Zarr arrays are handed over to Python; one that prints its last argument stands in for the real one."""

    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        python = self.path("python-that-tells")
        python.write_text('#!/bin/sh\nfor last; do :; done\nprintf %s "$last"\n')
        python.chmod(0o755)
        self.environment = {**os.environ, "UNGRAIN_PYTHON": str(python)}
        for name in ("in.ome.zarr", "folder", "out.zarr"):
            self.path(name).mkdir()
        self.path("group").mkdir()
        self.path("group/zarr.json").write_text("{}")

    def told(self, *arguments: str) -> dict:
        return json.loads(self.done(*arguments, env=self.environment).out)

    def test_what_is_handed_over(self) -> None:
        told = self.told("volume", "in.ome.zarr/", "-o", "out.zarr", "-m", "nlm", "--search=5", "--spacing", "0.2,0.2,1", "--threads",
                         "4", "--memory", "1G", "--nonfinite", "keep", "--range", "4095", "-d", "cpu", "--resume", "-q")
        for name, value in {"input": "in.ome.zarr", "output": "out.zarr", "volume": True, "method": "nlm3d", "spacing": [0.2, 0.2, 1],
                            "words": {"search": "5"}, "workers": 4, "memory": (1 << 30) // 4, "nonfinite": "keep", "range": 4095,
                            "device": "cpu", "quiet": True, "block": 256, "scheduler": None, "overwrite": False}.items():
            assert told[name] == value, name
        told = self.told("in.ome.zarr", "--volume", "--quality", "fast")
        assert (told["method"], told["words"]) == ("bm4d", {"profile": "fast"})
        assert (told["workers"], told["memory"]) == (os.cpu_count(), 0)

    def test_where_the_result_goes(self) -> None:
        for arguments, output in ((("in.ome.zarr",), "in.ungrain.ome.zarr"), (("group",), "group.ungrain.zarr"),
                                  (("in.ome.zarr", "-o", "new.zarr"), "new.zarr"), (("in.ome.zarr", "-o", "out.zarr"), "out.zarr"),
                                  (("in.ome.zarr", "-o", "folder"), "folder/in.ome.zarr"), (("group", "-o", "-.zarr"), "-.zarr"),
                                  (("s3://bucket/in.zarr", "-o", "s3://bucket/out.zarr"), "s3://bucket/out.zarr")):
            assert self.told("volume", *arguments)["output"] == output

    def test_options_without_a_meaning_are_refused(self) -> None:
        for arguments, message in (
                (("--json",), "--json is not for Zarr arrays"), (("--depth", "u8"), "--depth is not for Zarr arrays"),
                (("--axis", "1"), "--axis is not for Zarr arrays; ungrain cluster --volume has one"),
                (("--noise", "rician"), "--noise is not for Zarr arrays"), (("--slices", "4"), "--slices is not for Zarr arrays"),
                (("group",), "2 inputs: Zarr arrays are taken one at a time"),
                (("-o", "out.tif"), "out.tif: of a Zarr array the result is one, too"),
                (("-o", "-"), "-: of a Zarr array the result is one, too"),
                (("--patch-sigma", "1"), "there is no option --patch-sigma")):
            result = self.run_here("volume", "in.ome.zarr", *arguments, env=self.environment)
            assert (result.code, result.out, len(result.err_lines)) == (2, "", 1), result.err
            assert message in result.err
        result = self.run_here("volume", "in.ome.zarr", env={**os.environ, "UNGRAIN_PYTHON": "/nowhere/python"})
        assert result.code == 1
        assert "Zarr needs Python: /nowhere/python cannot be run" in result.err
