"""The benchmark: its results have what the reports are made from, and it runs without the peers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import PROGRAM, REPOSITORY

BENCH = Path(PROGRAM).with_name("ungrain-bench-cpu")
CASE = "box radius 1 gray u8"


def run(*command, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(os.fspath, command)), capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


@unittest.skipUnless(BENCH.exists(), "ungrain-bench-cpu was not built")
class Bench(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="ungrain-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_json_has_time_error_and_ceilings(self) -> None:
        path = self.folder / "bench.json"
        done = run(BENCH, "--quick", "--sizes", "64x48", "--threads", "1", "--json", path, CASE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(CASE, done.stdout)
        results = json.loads(path.read_text())
        machine = results["machine"]
        self.assertEqual(machine["threads"], 1)
        self.assertGreater(machine["multiply_adds_per_ns"][machine["simd"]]["one_thread"], 0)
        self.assertGreater(machine["copy_bytes_per_ns"]["rate"], 0)
        (row,) = results["rows"]
        self.assertEqual([row[key] for key in ("name", "method", "width", "height", "type", "right", "threads")],
                         [CASE, "box", 64, 48, "u8", True, 1])
        self.assertLessEqual(row["error"], 1)
        self.assertAlmostEqual(row["mpixel_per_s"], 64 * 48 / row["ms"] / 1e3)
        for bound in ("fma_ms", "copy_ms"):
            self.assertGreater(row["bounds"][bound], 0)

    def test_wrong_words_are_told(self) -> None:
        for words, message in ((["boxes"], "no case begins with 'boxes'"), (["--sizes", "64", CASE], "WIDTHxHEIGHT")):
            done = run(BENCH, *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)

    # -S: this Python without the packages that are installed for it.
    def test_without_peers_there_is_a_table(self) -> None:
        command = (sys.executable, "-S", REPOSITORY / "bench/run", "--program", BENCH, "--quick", "--table", "--out",
                   self.folder, CASE)
        done = run(*command)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no peers beside us (not installed: OpenCV", done.stdout)
        self.assertRegex(done.stdout, rf"(?m)^\| {CASE} .*\| ABSENT .*\| 0 step ")
        self.assertEqual(json.loads((self.folder / "cpu.json").read_text())["rows"][0]["name"], CASE)
        self.assertIn("- commit: ", (self.folder / "cpu.md").read_text())
        self.assertEqual(run(*command, UNGRAIN_REQUIRE="peers").returncode, 1)


if __name__ == "__main__":
    unittest.main()
