"""What the program loads when it starts, and what becomes of files whose libraries are not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import support

PROGRAM = Path(support.PROGRAM).resolve()
MODULE = PROGRAM.parents[1] / "lib/ungrain/ungrain-vips.so"


def libraries_at_start() -> list[str]:
    """Names of the shared libraries that the loader maps before main()."""
    done = subprocess.run([PROGRAM], env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.skipif(not MODULE.exists(), reason="the program was built without libvips")
class TestStart:
    @pytest.fixture(autouse=True)
    def program_alone(self):
        with tempfile.TemporaryDirectory() as folder:  # not tmp_path, which would keep each copy of the program
            self.folder = Path(folder)
            (self.folder / "bin").mkdir()
            self.alone = self.folder / "bin/ungrain"
            shutil.copy(PROGRAM, self.alone)
            self.picture = self.folder / "picture.pgm"
            self.picture.write_bytes(b"P5\n32 32\n255\n" + bytes(range(256)) * 4)
            yield

    def run_alone(self, *arguments: str | Path) -> subprocess.CompletedProcess:
        return subprocess.run([self.alone, *arguments], capture_output=True, text=True, timeout=support.LONGEST)

    def put_module(self, bytes_: bytes) -> Path:
        module = self.folder / "lib/ungrain/ungrain-vips.so"
        module.parent.mkdir(parents=True)
        module.write_bytes(bytes_)
        return module

    def assert_one_line_about(self, done: subprocess.CompletedProcess, file: Path, module: Path) -> None:
        assert done.returncode == 1, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert f"ungrain: {file}: " in done.stderr
        assert f"{module} cannot be loaded" in done.stderr

    def test_libvips_is_not_loaded_at_start(self):
        loaded = libraries_at_start()
        assert [name for name in loaded if "vips" in name or "glib" in name or "gobject" in name or "hdf5" in name] == []
        assert len(loaded) < 40

    def test_what_needs_no_libvips_does_without_it(self, subtests):
        (self.folder / "many").mkdir()
        shutil.copy(self.picture, self.folder / "many/one.pgm")
        for arguments in (["--version"], ["--help"], ["methods"], ["methods", "box"], ["denoise", "--help"], ["devices"],
                          ["compare", self.picture, self.picture],
                          ["estimate", self.picture],
                          ["noise", self.picture, "--gaussian", "5", "-o", self.folder / "noisy.pgm"],
                          ["-m", "box", self.picture],
                          ["-m", "box", self.picture, "-o", self.folder / "out.npy"],
                          ["-m", "box", self.folder / "many", "-o", f"{self.folder}/results/"]):
            with subtests.test(arguments=arguments):
                done = self.run_alone(*arguments)
                assert done.returncode == 0, done.stderr

    def test_a_missing_module_is_named(self):
        module = self.folder / "lib/ungrain/ungrain-vips.so"
        photo = self.folder / "photo.png"
        photo.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
        done = self.run_alone("-m", "box", photo, "-o", self.folder / "out.pgm")
        self.assert_one_line_about(done, photo, module)
        assert not (self.folder / "out.pgm").exists()

    def test_a_module_that_is_missing_for_the_output_is_named(self):
        done = self.run_alone("-m", "box", self.picture, "-o", self.folder / "out.png")
        assert done.returncode == 1, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "ungrain-vips.so cannot be loaded: there is no such file" in done.stderr

    def test_a_broken_module_is_named(self):
        photo = self.folder / "photo.png"
        photo.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
        module = self.put_module(b"not a shared library")
        self.assert_one_line_about(self.run_alone(photo, "-o", self.folder / "out.pgm"), photo, module)

    def test_a_moved_program_finds_its_module(self):
        self.put_module(MODULE.read_bytes())
        done = self.run_alone("-m", "box", self.picture, "-o", self.folder / "out.png")
        assert done.returncode == 0, done.stderr
        assert (self.folder / "out.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
