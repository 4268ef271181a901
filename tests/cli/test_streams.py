"""- in the place of a file: the standard input and output."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import (LONGEST, PROGRAM, Workspace, ends_by, needs_format, picture, read_npy, read_pnm, wait_until, write_npy,
                     write_pfm, write_png, write_pnm, write_tiff, writes)
from test_bmp import write_bmp
from test_signals import watches

IDENTITY = ("--method", "bilateral", "--sigma-range", "0")  # gives every sample back
SLOW = ("--method", "bilateral", "--device", "reference", "--radius", "16")


class TestStreams(Workspace):
    @pytest.fixture(autouse=True)
    def own_temporaries(self, workspace: None) -> Iterator[None]:
        self.path("tmp").mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.path("tmp"))}
        yield
        assert os.listdir(self.path("tmp")) == [], "something is left in TMPDIR"

    def pipe(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess:
        return subprocess.run([PROGRAM, *arguments], input=given, capture_output=True, cwd=self.folder, timeout=20,
                              env=self.environment)

    def piped(self, *arguments: str, given: bytes) -> bytes:
        """The standard output of a run that must succeed."""
        result = self.pipe(*arguments, given=given)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def start(self, *arguments: str, **popen) -> subprocess.Popen:
        return subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, env=self.environment,
                                stdin=popen.pop("stdin", subprocess.PIPE), stdout=popen.pop("stdout", subprocess.PIPE),
                                stderr=subprocess.PIPE, **popen)

    def assert_refused(self, result: subprocess.CompletedProcess, status: int, pattern: str) -> None:
        assert (result.returncode, result.stdout) == (status, b""), result.stderr
        assert re.search(rf"\Aungrain: {pattern}[^\n]*\n\Z", result.stderr.decode())

    def test_every_format_is_that_of_the_input(self, subtests: pytest.Subtests) -> None:
        write_pfm(self.path("a.pfm"), picture(9, 7).scaled(1, whole=False))
        write_npy(self.path("a.npy"), picture(9, 7, 3), "u2")
        write_bmp(self.path("a.bmp"), picture(9, 7, 3))
        write_pnm(self.path("a.pam"), picture(9, 7, 2))
        for name in ("gray.pgm", "colour.ppm", "a.pfm", "a.npy", "a.bmp", "a.pam"):
            with subtests.test(name=name):
                data = self.bytes_of(name)
                self.done(name, "-o", "file" + Path(name).suffix, "-q", *IDENTITY)
                expected = self.bytes_of("file" + Path(name).suffix)
                assert self.piped("-", "-o", "-", "-q", *IDENTITY, given=data) == expected
                assert self.piped(name, "-o", "-", "-q", *IDENTITY, given=b"") == expected
                self.piped("-", "-o", "again" + Path(name).suffix, *IDENTITY, given=data)
                assert self.bytes_of("again" + Path(name).suffix) == expected

    @pytest.mark.parametrize("extension, write", [
        (".png", lambda path: write_png(path, picture(9, 7, 3))),
        (".tif", lambda path: write_tiff(path, [picture(9, 7), picture(9, 7, seed=2)])),
    ])
    def test_formats_of_the_library(self, extension: str, write) -> None:
        if not writes(extension):
            pytest.skip(needs_format(extension))
        data = write(self.path("a" + extension)).read_bytes()
        self.done("a" + extension, "-o", "b" + extension, "-q", *IDENTITY)
        assert self.piped("-", "-o", "-", *IDENTITY, given=data) == self.bytes_of("b" + extension)

    def test_format(self) -> None:
        data = self.bytes_of("gray.pgm")
        for format in ("npy", ".npy"):
            self.path("out.npy").write_bytes(self.piped("-", "-o", "-", "--format", format, *IDENTITY, given=data))
            assert read_npy(self.path("out.npy"))[1].samples == picture(24, 18).samples
        self.path("out.pgm").write_bytes(self.piped("-", "-o", "-", *IDENTITY, given=b"P4\n8 1\n\x0f"))
        assert read_pnm(self.path("out.pgm")).samples == [255] * 4 + [0] * 4

    def test_reports_go_to_the_standard_error(self) -> None:
        data = self.bytes_of("gray.pgm")
        result = self.pipe("-", "-o", "-", given=data)
        assert re.search(r"\Astandard input -> standard output  24x18 u8 gray [^\n]*\n\Z", result.stderr.decode())
        assert self.pipe("-", "-o", "-", "-q", given=data).stderr == b""
        report = json.loads(self.pipe("-", "-o", "-", "--json", given=data).stderr)
        assert (report["input"], report["output"], report["status"]) == ("-", "-", "done")
        result = self.pipe("-", "-o", "out.pgm", given=data)
        assert re.search(r"\Astandard input -> out.pgm  ", result.stdout.decode())
        assert result.stderr == b""

    def test_other_commands(self) -> None:
        data = self.bytes_of("gray.pgm")
        self.done("noise", "gray.pgm", "-o", "noisy.pgm", "--gaussian", "9")
        noisy = self.pipe("noise", "-", "-o", "-", "--gaussian", "9", given=data)
        assert (noisy.returncode, noisy.stdout) == (0, self.bytes_of("noisy.pgm"))
        assert noisy.stderr == b"standard input -> standard output  gaussian 9\n"
        estimate = self.piped("estimate", "-", given=data).decode()
        assert estimate.replace("standard input", "gray.pgm") == self.done("estimate", "gray.pgm").out
        compared = self.piped("compare", "gray.pgm", "-", given=noisy.stdout).decode()
        assert compared.replace("standard input", "noisy.pgm") == self.done("compare", "gray.pgm", "noisy.pgm").out
        self.piped("compare", "-", "noisy.pgm", "--html", "page.html", given=data)
        assert "Comparison with standard input" in self.path("page.html").read_text()

    def test_what_is_wrong_with_the_input_is_told_by_its_name(self) -> None:
        data = self.bytes_of("gray.pgm")
        self.assert_refused(self.pipe("-", "-o", "-", given=data[:50]), 1, "standard input: truncated: ")
        self.assert_refused(self.pipe("-", "-o", "-"), 1, "standard input: the file is empty")
        self.assert_refused(self.pipe("-", "-o", "-", given=b"just text"), 1, "standard input: not an image")
        self.assert_refused(self.pipe("estimate", "-", given=data[:50]), 1, "standard input: truncated: ")
        self.assert_refused(self.pipe("-", "-o", "-", "--depth", "f32", given=data), 1,
                            "standard output: PGM cannot hold f32 samples")
        failed = self.pipe("-", "-o", "-", "--json", given=data[:50])
        assert re.search(r"\Astandard input: trunc", json.loads(failed.stderr.decode().splitlines()[1])["message"])

    def test_usage(self, subtests: pytest.Subtests) -> None:
        data = self.bytes_of("gray.pgm")
        self.path("out").mkdir()
        for arguments, pattern in ((("-", "-", "-o", "-"), r"the standard input \(-\) can be read once"),
                                   (("compare", "-", "-"), r"the standard input \(-\) can be read once"),
                                   (("-",), "the standard input has no name for its result"),
                                   (("-", "-o", "out"), "the standard input has no name for its result"),
                                   (("-", "gray.pgm", "-o", "out/"), "the standard input has no name"),
                                   (("gray.pgm", "colour.ppm", "-o", "-"), "2 inputs cannot all go to the standard out"),
                                   (("-", "-o", "-", "--resume"), "--resume is for files"),
                                   (("-", "-o", "x.pgm", "--format", "pgm"), r"--format is for the standard output"),
                                   (("-", "-o", "-", "--format", "doc"), r"--format takes one of pgm, .* got 'doc'")):
            with subtests.test(arguments=arguments):
                self.assert_refused(self.pipe(*arguments, given=data), 2, pattern)
        assert os.listdir(self.path("out")) == []

    def test_a_folder_goes_to_no_stream(self) -> None:
        self.path("two").mkdir()
        for name in "ab":
            write_pnm(self.path(f"two/{name}.pgm"), picture(8, 6))
        self.assert_refused(self.pipe("two", "-o", "-"), 2, "2 inputs cannot all go to the standard output")

    def test_a_terminal_is_refused(self) -> None:
        main, terminal = pty.openpty()
        with os.fdopen(main, "rb"):
            process = self.start("gray.pgm", "-o", "-", stdout=terminal)
            assert ends_by(process)[::2] == (2, "ungrain: the standard output is a terminal: send it to a file or "
                                                "a program, or name a file\n")
            process = self.start("-", "-o", "out.pgm", stdin=terminal)
            os.close(terminal)
            assert ends_by(process)[::2] == (2, "ungrain: the standard input is a terminal, not an image\n")

    def test_closed_output(self) -> None:
        done = subprocess.run(["sh", "-c", f'"{PROGRAM}" gray.pgm -o - >&-'], cwd=self.folder, env=self.environment,
                              capture_output=True, timeout=20)
        assert (done.returncode, done.stderr) == (1, b"ungrain: standard output: is closed\n")

    def test_full_output(self) -> None:
        with open("/dev/full", "wb") as full:
            process = self.start("gray.pgm", "-o", "-", stdout=full)
        assert ends_by(process)[::2] == (1, "ungrain: standard output: cannot be written: No space left on device\n")

    def test_reader_goes_away(self) -> None:
        write_pnm(self.path("large.pgm"), picture(700, 500))
        process = self.start("large.pgm", "-o", "-", "-q", "--method", "median", "--radius", "1")
        assert process.stdout.read(2) == b"P5"
        process.stdout.close()
        process.stdout = None
        code, _, errors = ends_by(process)
        assert (code, errors) == (1, "ungrain: standard output: cannot be written: Broken pipe\n")

    def test_no_room_for_the_copy(self) -> None:
        self.environment["TMPDIR"] = str(self.path("nowhere"))
        result = self.pipe("-", "-o", "-", given=self.bytes_of("gray.pgm"))
        self.assert_refused(result, 1, "TMPDIR: names no folder for temporary files")

    def copies(self) -> list[Path]:
        return [path for path in self.path("tmp").glob("ungrain-*/input")]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_interrupted_while_waiting_for_the_input(self, number: signal.Signals) -> None:
        process = self.start("-", "-o", "-")
        process.stdin.write(b"P5\n")
        process.stdin.flush()
        wait_until(self.copies, process)
        copy = self.copies()[0]
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
        self.interrupt(process, number)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_interrupted_while_it_works(self, number: signal.Signals) -> None:
        write_pnm(self.path("slow.pgm"), picture(300, 200))
        with open(self.path("slow.pgm"), "rb") as slow:
            process = self.start("-", "-o", "-", *SLOW, stdin=slow)
        wait_until(lambda: list(self.path("tmp").glob("ungrain-*/.result*")), process)
        self.interrupt(process, number)

    def test_interrupted_while_nobody_reads(self) -> None:
        write_pnm(self.path("large.pgm"), picture(700, 500))
        process = self.start("large.pgm", "-o", "-", "-q", "--method", "median", "--radius", "1")
        wait_until(lambda: list(self.path("tmp").glob("ungrain-*/result.pgm")), process)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=LONGEST)
        assert process.returncode == 1
        process.communicate()

    def test_second_interrupt(self) -> None:
        write_pnm(self.path("line.pgm"), picture(1500, 1))
        with open(self.path("line.pgm"), "rb") as line:
            process = self.start("-", "-o", "-", *SLOW[:4], "--radius", "100", stdin=line)
        wait_until(lambda: list(self.path("tmp").glob("ungrain-*/.result*")), process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert ends_by(process)[0] == 1

    def interrupt(self, process: subprocess.Popen, number: int) -> None:
        assert watches(process)
        process.send_signal(number)
        process.wait(timeout=LONGEST)
        code, out, errors = ends_by(process)
        assert (code, out) == (1, "")
        assert re.search(r"\Aungrain: interrupted[^\n]*\n\Z", errors)
        assert os.listdir(self.path("tmp")) == []
