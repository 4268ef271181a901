"""Ctrl-C and its kin in the middle of a batch: what is done stays, nothing half-written is left, --resume goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import pytest

from support import SOON, Workspace, ends_by, picture, start, temporaries, wait_until, write_pnm

FILES = 5
# The reference is slow enough to be interrupted: about half a second a file.
SLOW = ("--method", "bilateral", "--device", "reference", "--radius", "16")


def watches(process: subprocess.Popen) -> bool:
    """Whether the program has taken the signals upon itself: from then on they are blocked."""
    try:
        with open(f"/proc/{process.pid}/status") as status:
            blocked = re.search(r"SigBlk:\s*(\w+)", status.read())
    except OSError:
        return False
    return blocked is not None and bool(int(blocked[1], 16) & 1 << (signal.SIGINT - 1))


# Started in the background or by nohup we ignore Ctrl-C or hang-ups, and the programs that we start with us.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.measured
class TestSignals(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.path("in").mkdir()
        for number in range(FILES):
            write_pnm(self.path(f"in/{number}.pgm"), picture(96, 72, seed=number + 1))

    def start_batch(self, *more: str) -> subprocess.Popen:
        return start("in", "-o", "out", *SLOW, *more, folder=self.folder)

    def interrupt_in_second_file(self, number: int, *more: str) -> tuple[int, str, str]:
        process = self.start_batch(*more)
        out = self.path("out")
        wait_until(lambda: (out / "0.pgm").exists() and temporaries(out), process)
        process.send_signal(number)
        sent = time.monotonic()
        code, printed, errors = ends_by(process)
        assert time.monotonic() - sent < SOON
        return code, printed, errors

    def finished(self) -> list[str]:
        return sorted(path.name for path in self.path("out").glob("[0-9]*.pgm"))

    def assert_results(self, names: list[str]) -> None:
        """Each is what an undisturbed run makes of its input."""
        for name in names:
            self.done(f"in/{name}", "-o", "alone.pgm", "-q", *SLOW)
            assert self.bytes_of("alone.pgm") == self.bytes_of(f"out/{name}"), name

    def check_interrupted(self, number: int, *more: str) -> None:
        code, printed, errors = self.interrupt_in_second_file(number, *more)
        assert code == 1, errors
        match = re.fullmatch(rf"ungrain: interrupted: (\d) of {FILES} files done, no half-written file left\n", errors)
        assert match is not None, errors
        done = int(match[1])
        assert done in range(1, FILES)
        assert len(printed.splitlines()) == done
        assert len(self.finished()) == done
        self.assert_tidy()

        before = {name: os.stat(self.path(f"out/{name}")).st_mtime_ns for name in self.finished()}
        again = self.done("in", "-o", "out", *SLOW, "--resume")
        assert sum(line.endswith("already done") for line in again.out_lines) == done, again.out
        assert len(again.out_lines) == FILES
        for name, made in before.items():
            assert os.stat(self.path(f"out/{name}")).st_mtime_ns == made, f"{name} was made again"
        assert self.finished() == [f"{n}.pgm" for n in range(FILES)]
        self.assert_tidy()
        self.assert_results(["0.pgm", f"{FILES - 1}.pgm"])

    def test_interrupt(self) -> None:
        self.check_interrupted(signal.SIGINT)

    def test_interrupt_of_files_at_once(self) -> None:
        self.check_interrupted(signal.SIGINT, "--jobs", "2")

    def test_terminate(self) -> None:
        self.check_interrupted(signal.SIGTERM)

    def test_hang_up(self) -> None:
        code, _, errors = self.interrupt_in_second_file(signal.SIGHUP)
        assert code == 1
        assert re.search(r"\Aungrain: interrupted: \d of 5 files done", errors)
        self.assert_tidy()

    def test_second_interrupt_ends_at_once(self) -> None:
        # A row of pixels with a wide window: some seconds pass before the program looks at the first interrupt.
        write_pnm(self.path("line.pgm"), picture(1500, 1))
        process = start("line.pgm", "-o", "out.pgm", *SLOW[:4], "--radius", "100", folder=self.folder)
        wait_until(lambda: temporaries(self.folder), process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # two of a signal that nobody has taken yet are one
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        code, _, errors = ends_by(process)
        assert time.monotonic() - sent < SOON
        assert code == 1
        assert len(errors.splitlines()) <= 1, errors
        assert not self.path("out.pgm").exists()
        self.assert_tidy()

    def test_kill_leaves_no_half_file(self) -> None:
        process = self.start_batch()
        out = self.path("out")
        wait_until(lambda: (out / "0.pgm").exists() and temporaries(out), process)
        process.kill()
        ends_by(process)
        assert process.returncode == -signal.SIGKILL
        self.assert_results(self.finished())
        again = self.done("in", "-o", "out", *SLOW, "--resume")
        assert again.out_lines[0].endswith("already done"), again.out
        assert self.finished() == [f"{n}.pgm" for n in range(FILES)]
        # The file that was being written when the program was killed is not taken for an image, and is gone.
        assert "ungrain-" not in again.out
        self.assert_tidy()

    def kill_in_first_file(self, *command: str) -> None:
        process = start(*command, *SLOW, folder=self.folder)
        wait_until(lambda: temporaries(self.folder), process)
        process.kill()
        ends_by(process)
        assert temporaries(self.folder) != []

    def test_what_a_kill_left_is_removed_by_the_next_run_in_the_folder(self) -> None:
        self.kill_in_first_file("in/0.pgm", "-o", "in/a.pgm")
        self.done("in/1.pgm", "-o", "in/b.pgm", "-q", "--method", "box")
        self.assert_tidy()
        self.kill_in_first_file("in/0.pgm", "-o", "in/a.pgm")
        self.done("noise", "in/1.pgm", "-o", "in/c.pgm", "-q", "--gaussian", "5")
        self.assert_tidy()

    def test_what_a_kill_left_is_removed_where_all_is_done(self) -> None:
        self.done("gray.pgm", "-o", "out.pgm", "-q", "--resume")
        self.kill_in_first_file("in/0.pgm", "-o", "other.pgm")
        assert "already done" in self.done("gray.pgm", "-o", "out.pgm", "--resume").out
        self.assert_tidy()

    def test_files_of_a_living_process_stay(self) -> None:
        living = start("in/0.pgm", "-o", "out.pgm", *SLOW, folder=self.folder)
        wait_until(lambda: len(temporaries(self.folder)) == 2, living)  # the file, and its lock before it
        files = temporaries(self.folder)
        self.done("gray.pgm", "-o", "gray.out.pgm", "-q", "--method", "box")
        assert living.poll() is None, "it was to be alive still"
        assert temporaries(self.folder) == files
        assert ends_by(living)[0] == 0
        assert self.path("out.pgm").exists()
        self.assert_tidy()

    def test_interrupt_in_place(self) -> None:
        before = self.bytes_of("in/0.pgm")
        process = start("in/0.pgm", "-o", "in/0.pgm", *SLOW, folder=self.folder)
        wait_until(lambda: temporaries(self.path("in")), process)
        process.send_signal(signal.SIGINT)
        code, _, _ = ends_by(process)
        assert code == 1
        assert self.bytes_of("in/0.pgm") == before
        self.assert_tidy()

    def test_interrupt_ignored_in_the_background(self) -> None:
        # nohup and scripts' background jobs start programs with the signal ignored; that stays so.
        process = start("in/0.pgm", "-o", "out.pgm", *SLOW, folder=self.folder,
                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until(lambda: temporaries(self.folder), process)
        process.send_signal(signal.SIGHUP)
        code, _, errors = ends_by(process)
        assert (code, errors) == (0, "")
        assert self.path("out.pgm").exists()

    def test_interrupt_of_noise_and_compare(self, subtests: pytest.Subtests) -> None:
        write_pnm(self.path("large.pgm"), picture(200, 100))
        # Made large quickly: the same rows again and again.
        rows = self.bytes_of("large.pgm")[-20000:]
        with open(self.path("large.pgm"), "wb") as file:
            file.write(b"P5\n200 250000\n255\n" + rows * 2500)
        commands = {"noise": ["noise", "large.pgm", "-o", "out.pgm", "--poisson", "50"],
                    "compare": ["compare", "large.pgm", "large.pgm"]}
        for name, command in commands.items():
            with subtests.test(name=name):
                process = start(*command, folder=self.folder)
                wait_until(lambda: watches(process), process)
                time.sleep(0.1)
                process.send_signal(signal.SIGINT)
                sent = time.monotonic()
                code, printed, errors = ends_by(process)
                assert time.monotonic() - sent < SOON
                assert (code, printed) == (1, ""), errors
                assert re.search(r"\Aungrain: interrupted[^\n]*\n\Z", errors)
                assert not self.path("out.pgm").exists()
                self.assert_tidy()
