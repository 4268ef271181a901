"""The benchmark: its results have what the reports are made from, and it runs without the peers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import PROGRAM, REPOSITORY

BENCH = Path(PROGRAM).with_name("ungrain-bench-cpu")
CASE = "box radius 1 gray u8"


def run(*command, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(os.fspath, command)), capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


@pytest.mark.skipif(not BENCH.exists(), reason="ungrain-bench-cpu was not built")
class TestBench:
    @pytest.fixture(autouse=True)
    def own_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def test_json_has_time_error_and_ceilings(self) -> None:
        path = self.folder / "bench.json"
        done = run(BENCH, "--quick", "--sizes", "64x48", "--threads", "1", "--json", path, CASE)
        assert (done.returncode, done.stderr) == (0, "")
        assert CASE in done.stdout
        results = json.loads(path.read_text())
        machine = results["machine"]
        assert machine["threads"] == 1
        assert machine["multiply_adds_per_ns"][machine["simd"]]["one_thread"] > 0
        assert machine["copy_bytes_per_ns"]["rate"] > 0
        (row,) = results["rows"]
        assert [row[key] for key in ("name", "method", "width", "height", "type", "right", "threads")] == [
            CASE, "box", 64, 48, "u8", True, 1]
        assert row["error"] <= 1
        assert row["mpixel_per_s"] == pytest.approx(64 * 48 / row["ms"] / 1e3, abs=5e-8)
        for bound in ("fma_ms", "copy_ms"):
            assert row["bounds"][bound] > 0

    def test_wrong_words_are_told(self) -> None:
        for words, message in ((["boxes"], "no case begins with 'boxes'"), (["--sizes", "64", CASE], "WIDTHxHEIGHT")):
            done = run(BENCH, *words)
            assert done.returncode == 2
            assert message in done.stderr

    # -S: this Python without the packages that are installed for it.
    def test_without_peers_there_is_a_table(self) -> None:
        command = (sys.executable, "-S", REPOSITORY / "bench/run", "--program", BENCH, "--quick", "--table", "--out",
                   self.folder, CASE)
        done = run(*command)
        assert (done.returncode, done.stderr) == (0, "")
        assert "no peers beside us (not installed: OpenCV" in done.stdout
        assert re.search(rf"(?m)^\| {CASE} .*\| ABSENT .*\| 0 step ", done.stdout)
        assert json.loads((self.folder / "cpu.json").read_text())["rows"][0]["name"] == CASE
        assert "- commit: " in (self.folder / "cpu.md").read_text()
        assert run(*command, UNGRAIN_REQUIRE="peers").returncode == 1
