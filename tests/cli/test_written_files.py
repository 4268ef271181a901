"""The files that the program writes where others may write too: its journal, and who may read its results."""

from __future__ import annotations

import os
import re
import resource

import pytest

from support import Result, Workspace

JOURNAL = ".ungrain-done.jsonl"
BOX = ("--method", "box")
UNWRITTEN = r"\Aungrain: the journal out/\.ungrain-done\.jsonl: {}: not written, --resume will not know this run\n\Z"
UNUSABLE = r"\Aungrain: the journal out/\.ungrain-done\.jsonl: {}: --resume cannot use it\n\Z"


class TestJournal(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.path("out").mkdir()
        self.journal = self.path("out") / JOURNAL

    def batch(self, *more: str, **options) -> Result:
        return self.run_here("gray.pgm", "colour.ppm", "-o", "out", *BOX, *more, **options)

    def results(self) -> list[str]:
        return sorted(name for name in os.listdir(self.path("out")) if name != JOURNAL)

    def check_unwritten(self, problem: str, **options) -> None:
        result = self.batch(**options)
        assert result.code == 1, result
        assert re.search(UNWRITTEN.format(problem), result.err)
        assert len(result.out_lines) == 2, result
        assert self.results() == ["colour.ppm", "gray.pgm"]
        for name in self.results():
            self.path(f"out/{name}").unlink()

    def check_unusable(self, problem: str) -> None:
        result = self.batch("--resume")
        assert (result.code, result.out) == (1, ""), result
        assert re.search(UNUSABLE.format(problem), result.err)
        assert self.results() == [], "work began"

    def test_link(self) -> None:
        self.path("mine").write_text("mine\n")
        self.journal.symlink_to("../mine")
        self.check_unwritten("is a symbolic link")
        self.check_unusable("is a symbolic link")
        assert self.path("mine").read_text() == "mine\n"

    def test_link_to_nowhere(self) -> None:
        self.journal.symlink_to("../new")
        self.check_unwritten("is a symbolic link")
        self.check_unusable("is a symbolic link")
        assert not self.path("new").exists()

    def test_pipe(self) -> None:
        os.mkfifo(self.journal)
        self.check_unwritten("is not a regular file")
        self.check_unusable("is not a regular file")

    def test_pipe_with_a_reader(self) -> None:
        os.mkfifo(self.journal)
        reader = os.open(self.journal, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(reader, "rb", buffering=0):
            self.check_unwritten("is not a regular file")
            self.check_unusable("is not a regular file")
            assert os.read(reader, 100) == b""

    def test_folder(self) -> None:
        self.journal.mkdir()
        self.check_unwritten("is not a regular file")
        self.check_unusable("is not a regular file")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write any file")
    def test_forbidden(self) -> None:
        self.journal.touch(mode=0)
        self.check_unwritten("Permission denied")
        self.check_unusable("Permission denied")

    def test_disk_full(self) -> None:
        self.journal.write_text("\n" * 40000)
        limit = (20000, 20000)
        self.check_unwritten("File too large", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))

    def test_told_in_json_mode_too(self) -> None:
        self.journal.symlink_to("../new")
        result = self.batch("--json")
        assert (result.code, len(result.out_lines)) == (1, 2), result
        assert re.search(UNWRITTEN.format("is a symbolic link"), result.err)

    def test_huge_line_takes_no_memory(self) -> None:
        assert self.batch("--resume").code == 0
        lines = self.journal.read_text()
        with open(self.journal, "wb") as file:
            file.write(b'{"output": "')
            file.seek(700 << 20)  # a hole
            file.write(b"\n" + lines.encode())
        result = self.batch("--resume", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (600 << 20,) * 2))
        assert (result.code, result.err) == (0, "")
        assert sum(line.endswith("already done") for line in result.out_lines) == 2, result

    def test_huge_file(self) -> None:
        with open(self.journal, "wb") as file:
            file.truncate(1 << 40)
        self.check_unusable("has 1099511627776 bytes, 1 GiB at most is read")

    def test_line_after_one_that_was_cut_off(self) -> None:
        assert self.batch().code == 0
        whole = self.journal.read_text()
        self.journal.write_text(whole[:40])
        assert self.batch().code == 0
        again = self.batch("--resume")
        assert sum(line.endswith("already done") for line in again.out_lines) == 2, again


class TestPermissions(Workspace):
    def mode(self, name: str) -> int:
        return self.path(name).stat().st_mode & 0o7777

    def made(self, *command: str) -> None:
        self.done(*command, "-q", preexec_fn=lambda: os.umask(0o022))

    @pytest.mark.parametrize("mode, expected", [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o755, 0o644)])
    def test_results_of_private_files_are_private(self, mode: int, expected: int) -> None:
        self.path("gray.pgm").chmod(mode)
        self.made("gray.pgm", "-o", "box.pgm", *BOX)
        self.made("noise", "gray.pgm", "-o", "noisy.pgm", "--gaussian", "5")
        assert (self.mode("box.pgm"), self.mode("noisy.pgm")) == (expected, expected)
        self.path("box.pgm").unlink()
        self.path("noisy.pgm").unlink()

    def test_page_is_as_private_as_the_most_private_picture(self) -> None:
        self.made("noise", "gray.pgm", "-o", "noisy.pgm", "--gaussian", "5")
        self.path("noisy.pgm").chmod(0o600)
        result = self.run_here("compare", "gray.pgm", "noisy.pgm", "--html", "page.html")
        assert (result.code, self.mode("page.html")) == (0, 0o600), result

    def test_replaced_file_keeps_its_permissions(self) -> None:
        self.path("gray.pgm").chmod(0o600)
        self.path("box.pgm").touch()
        self.path("box.pgm").chmod(0o664)
        self.made("gray.pgm", "-o", "box.pgm", *BOX)
        assert self.mode("box.pgm") == 0o664
