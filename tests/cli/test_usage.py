"""What users do with the program: each command as its help promises it."""

from __future__ import annotations

import fcntl
import itertools
import json
import pathlib
import math
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import time

import pytest

from support import (PROGRAM, REPOSITORY, Picture, Workspace, jpeg_with_exif, needs_format, orientation_in, picture,
                     png_chunk, read_npy, read_pfm, read_png, read_pnm, read_tiff, start, write_npy, write_pfm,
                     write_png, write_pnm, write_tiff, writes)

BILATERAL = ("-m", "bilateral")  # whichever method is the default
SLOW = (*BILATERAL, "--device", "reference")
COPY = ("-m", "box", "--radius", "0")  # changes no pixel: what is read is what is written


class TestDenoise(Workspace):
    def test_one_file(self) -> None:
        result = self.done("gray.pgm", *BILATERAL, "--sigma-range", "30")
        assert len(result.out_lines) == 1
        assert re.search(r"^gray.pgm -> gray.ungrain.pgm  24x18 u8 gray  bilateral  "
                         r"sigma_range 30 of 255 = 30 of 255  \S+ x\d+  \d+\.\d\d s  \d+\.\d Mpixel/s\n$", result.out)
        before, after = read_pnm(self.path("gray.pgm")), read_pnm(self.path("gray.ungrain.pgm"))
        assert (after.width, after.height, after.white) == (24, 18, 255)
        assert roughness(after) < roughness(before) * 0.8
        self.assert_tidy()

    def test_nothing_given_is_bm3d_with_the_noise_measured(self) -> None:
        write_pnm(self.path("large.ppm"), picture(64, 48, 3))
        measured = json.loads(self.done("estimate", "large.ppm", "--json").out)
        report = json.loads(self.done("large.ppm", "--json").out)
        assert (report["method"], report["params"]["profile"], report["params"]["colour"]) == ("bm3d", "normal", "opponent")
        for channel, sigma in enumerate(measured["channels"]):
            assert report["strengths"][f"sigma[{channel}]"]["on_255"] == pytest.approx(sigma, abs=5e-7)
        before, after = read_pnm(self.path("large.ppm")), read_pnm(self.path("large.ungrain.ppm"))
        assert roughness(after) < roughness(before) * 0.8

    def test_a_map_of_the_noise(self) -> None:
        def write_map(name: str, sigma: float, width: int = 24) -> None:
            write_pfm(self.path(name), Picture(width, 18, 1, [sigma] * width * 18, 1))

        write_map("none.pfm", 0)
        write_map("strong.pfm", 60)
        write_map("wide.pfm", 1, 25)
        self.done("gray.pgm", "--sigma-map", "none.pfm", "-o", "same.pgm")
        assert self.bytes_of("same.pgm") == self.bytes_of("gray.pgm")
        report = json.loads(self.done("gray.pgm", "--sigma-map", "strong.pfm", "-o", "smooth.pgm", "--json").out)
        assert report["strengths"]["sigma"]["on_255"] == pytest.approx(60, abs=5e-4)
        assert roughness(read_pnm(self.path("smooth.pgm"))) < roughness(read_pnm(self.path("gray.pgm"))) * 0.5
        # On the 0-255 scale, as all strengths are.
        write_pnm(self.path("twelve.pgm"), picture(24, 18).scaled(4095))
        report = json.loads(self.done("twelve.pgm", "--sigma-map", "strong.pfm", "--json").out)
        assert report["strengths"]["sigma"]["value"] == pytest.approx(60 * 4095 / 255, abs=0.05)
        assert (self.run_here("gray.pgm", "--sigma-map", "wide.pfm").err
                == "ungrain: gray.pgm: bm3d: sigma_map is 25 x 18, the image 24 x 18\n")
        result = self.run_here("gray.pgm", "--sigma-map", "missing.pfm")
        assert result.code == 2
        assert re.search("^ungrain: --sigma-map: missing.pfm: ", result.err)

    def test_the_commands_name_may_be_given(self) -> None:
        self.done("denoise", "gray.pgm", "-o", "a.pgm")
        self.done("gray.pgm", "-o", "b.pgm")
        assert self.bytes_of("a.pgm") == self.bytes_of("b.pgm")

    def test_many_files(self) -> None:
        result = self.done("gray.pgm", "colour.ppm")
        assert [line.split("  ")[0] for line in result.out_lines] == [
            "gray.pgm -> gray.ungrain.pgm", "colour.ppm -> colour.ungrain.ppm"]

    def test_files_at_once(self) -> None:
        self.path("in").mkdir()
        for number in range(7):
            write_pnm(self.path(f"in/{number}.pgm"), picture(40, 30, seed=number + 1))
        self.done("in", "-o", "one", *BILATERAL)
        result = self.done("in", "-o", "many", *BILATERAL, "--jobs", "3")
        assert [line.split("  ")[0] for line in result.out_lines] == [
            f"in/{number}.pgm -> many/{number}.pgm" for number in range(7)]
        for number in range(7):
            assert self.bytes_of(f"one/{number}.pgm") == self.bytes_of(f"many/{number}.pgm"), number
        again = self.done("in", "-o", "many", *BILATERAL, "-j", "64", "--resume")
        assert sum(line.endswith("already done") for line in again.out_lines) == 7, again.out
        # A share of the memory for each.
        self.done("in", "-o", "tight", *BILATERAL, "-j", "3", "--memory", "1M")
        self.assert_tidy()

    def test_a_file_that_needs_all_of_the_memory(self) -> None:
        self.path("in").mkdir()
        for number in range(5):
            write_pnm(self.path(f"in/{number}.pgm"), picture(70, 60, seed=number + 1))
        method = ("-m", "nlm", "--sigma", "10", "--search", "whole-image", "--threads", "2")
        enough = next(k for k in (64 << step for step in range(12))
                      if self.run_here("in/0.pgm", "-o", "0.pgm", *method, "--memory", f"{k}K").code == 0)
        self.done("in", "-o", "all", *method, "--memory", f"{enough}K", "--jobs", "3")
        assert self.bytes_of("0.pgm") == self.bytes_of("all/0.pgm")

    def test_all_gpus(self) -> None:
        devices = self.done("devices").out
        if not re.search(r"^cuda:all ", devices, re.M):
            pytest.skip("no GPU")
        self.path("in").mkdir()
        for number in range(5):
            write_pnm(self.path(f"in/{number}.pgm"), picture(40, 300, seed=number + 1))
        self.done("in", "-o", "one", *BILATERAL, "--device", "cuda")
        spread = self.done("in", "-o", "all", *BILATERAL, "--device", "cuda:all", "--json")
        assert len(spread.out_lines) == 5
        for number in range(5):
            assert self.bytes_of(f"one/{number}.pgm") == self.bytes_of(f"all/{number}.pgm"), number
        # One file: its bands.
        alone = self.done("in/0.pgm", "-o", "alone.pgm", *BILATERAL, "--device", "cuda:all")
        assert re.search(r"  cuda:all \(\d+ queues? on \d+ GPUs?\) x1  ", alone.out)
        assert self.bytes_of("alone.pgm") == self.bytes_of("one/0.pgm")

    def test_files_at_once_and_one_fails(self) -> None:
        self.path("in").mkdir()
        for number in range(6):
            write_pnm(self.path(f"in/{number}.pgm"), picture(40, 30, seed=number + 1))
        self.path("in/2.pgm").write_bytes(b"P5 40 30 255 too short")
        result = self.run_here("in", "-o", "out", "--jobs", "2", "--json")
        assert result.code == 1
        assert len(result.err_lines) == 2, result.err
        assert result.err_lines[1] == "ungrain: 1 of 6 files failed, the others are done"
        told = [json.loads(line) for line in result.out_lines]
        assert [(line["input"], line["status"]) for line in told] == [
            (f"in/{number}.pgm", "failed" if number == 2 else "done") for number in range(6)]
        self.assert_tidy()

    def test_folder(self) -> None:
        self.path("in/deeper").mkdir(parents=True)
        for name in ("b.pgm", "a.PGM", ".hidden.pgm", "old.ungrain.pgm", "deeper/c.pgm"):
            write_pnm(self.path("in") / name, picture(8, 6))
        self.path("in/notes.txt").write_text("not an image")
        self.path("in/zz.pgm").symlink_to("nowhere")
        result = self.done("in", "-o", "out/")
        assert [line.split("  ")[0] for line in result.out_lines] == ["in/a.PGM -> out/a.PGM", "in/b.pgm -> out/b.pgm"]
        assert sorted(os.listdir(self.path("out"))) == [".ungrain-done.jsonl", "a.PGM", "b.pgm"]

    def test_pattern(self) -> None:
        for name in ("x1.pgm", "x2.pgm", "y1.pgm"):
            write_pnm(self.path(name), picture(8, 6))
        result = self.done("x*.pgm", "y?.pgm", "-o", "out")
        assert len(result.out_lines) == 3
        assert sorted(path.name for path in self.path("out").glob("[xy]*")) == ["x1.pgm", "x2.pgm", "y1.pgm"]

    def test_output_is_a_folder_that_exists(self) -> None:
        self.path("out").mkdir()
        self.done("gray.pgm", "-o", "out")
        assert self.path("out/gray.pgm").exists()

    def test_output_over_an_older_file(self) -> None:
        self.path("out.pgm").write_bytes(b"older")
        self.path("out.pgm").chmod(0o640)
        self.done("gray.pgm", "-o", "out.pgm")
        assert read_pnm(self.path("out.pgm")).width == 24
        assert self.path("out.pgm").stat().st_mode & 0o777 == 0o640

    def test_in_place(self) -> None:
        self.done("gray.pgm", "-o", "separate.pgm")
        self.done("gray.pgm", "-o", "gray.pgm")
        assert self.bytes_of("gray.pgm") == self.bytes_of("separate.pgm")
        self.done("colour.ppm", "-o", "separate.ppm")
        self.done("colour.ppm", "-o", ".")
        assert self.bytes_of("colour.ppm") == self.bytes_of("separate.ppm")
        self.assert_tidy()

    def test_in_place_is_atomic(self) -> None:
        """Whoever opens the file while it is replaced has the old one or the new one, whole."""
        write_pnm(self.path("it.pgm"), picture(96, 72))
        self.done("it.pgm", "-o", "new.pgm", *SLOW, "--radius", "10")
        sizes = {self.bytes_of("it.pgm"), self.bytes_of("new.pgm")}
        process = start("it.pgm", "-o", "it.pgm", *SLOW, "--radius", "10", folder=self.folder)
        seen = set()
        while process.poll() is None:
            seen.add(self.bytes_of("it.pgm"))
            time.sleep(0.001)
        process.communicate()
        seen.add(self.bytes_of("it.pgm"))
        assert seen == sizes

    def test_output_through_a_link(self) -> None:
        self.path("real").mkdir()
        self.path("link.pgm").symlink_to("real/target.pgm")
        self.done("gray.pgm", "-o", "plain.pgm")
        for _ in range(2):  # the target is made, then replaced
            self.done("gray.pgm", "-o", "link.pgm")
            assert self.path("link.pgm").is_symlink()
            assert self.bytes_of("real/target.pgm") == self.bytes_of("plain.pgm")
        self.assert_tidy()

    def test_quiet(self) -> None:
        assert self.done("gray.pgm", "-q").out == ""
        assert self.done("gray.pgm", "colour.ppm", "--quiet", "--resume").out == ""
        assert self.done("noise", "gray.pgm", "-o", "n.pgm", "--gaussian", "5", "-q").out == ""

    def test_spellings_of_options(self, subtests: pytest.Subtests) -> None:
        self.done("gray.pgm", "--output", "a.pgm", "--method", "box", "--radius", "2")
        for number, words in enumerate((["-o", "b.pgm", "-m", "box", "--radius=2"],
                                        ["-ob.pgm", "-mbox", "--radius", "+2"],
                                        ["--output=b.pgm", "--method=box", "--radius=2.0"],
                                        ["-o=b.pgm", "-m=box", "--radius", "2e0"])):
            with subtests.test(number=number):
                self.done(*words, "--", "gray.pgm")
                assert self.bytes_of("a.pgm") == self.bytes_of("b.pgm")
                self.path("b.pgm").unlink()

    def test_order_of_options(self) -> None:
        """The method's options may stand before the method, and files between."""
        self.done("gray.pgm", "-m", "box", "--radius", "2", "-o", "a.pgm")
        self.done("--radius", "2", "-o", "b.pgm", "gray.pgm", "-m", "box")
        assert self.bytes_of("a.pgm") == self.bytes_of("b.pgm")
        assert (self.run_here("--radus", "3", "gray.pgm", "-m", "box").err
                == "ungrain: there is no option --radus; did you mean --radius?\n")

    def test_threads_and_memory_change_no_pixel(self) -> None:
        write_pnm(self.path("tall.ppm"), picture(90, 4000, 3))
        results = set()
        for more in (["--threads", "1"], ["--threads", "2"], ["--memory", "1300K", "--threads", "2"],
                     ["--memory", "1300K", "--threads", "1"]):
            result = self.done("tall.ppm", "-o", "out.ppm", "--json", "--device", "cpu", *BILATERAL, *more)
            report = json.loads(result.out)
            if "--memory" in more:
                assert report["bands"] > 3
                assert report["buffer_bytes"] <= 1300 * 1024
            if "--threads" in more:
                assert report["threads"] == int(more[-1])
            results.add(self.bytes_of("out.ppm"))
        assert len(results) == 1

    def test_strengths_are_on_the_scale_of_8_bits(self) -> None:
        image = picture(24, 18)
        write_pnm(self.path("twelve.pgm"), image.scaled(4095))
        line = self.done("twelve.pgm", *BILATERAL, "--sigma-range", "30", "-o", "a.pgm").out
        assert "sigma_range 30 of 255 = 481.8 of 4095" in line
        assert read_pnm(self.path("a.pgm")).white == 4095
        # The same samples in a file that does not say its white level.
        write_npy(self.path("twelve.npy"), image.scaled(4095), "u2")
        assert "= 481.8 of 4095" in self.done("twelve.npy", *BILATERAL, "--range", "4095", "-o", "a.npy",
                                              "--sigma-range", "30").out
        assert read_npy(self.path("a.npy"))[1].samples == read_pnm(self.path("a.pgm")).samples
        # Twice the samples with twice the white level: twice the result, but for rounding.
        write_pnm(self.path("twice.pgm"), image.scaled(510))
        self.done("twice.pgm", *BILATERAL, "--sigma-range", "30", "-o", "twice.pgm")
        self.done("gray.pgm", *BILATERAL, "--sigma-range", "30", "-o", "once.pgm")
        pairs = zip(read_pnm(self.path("twice.pgm")).samples, read_pnm(self.path("once.pgm")).samples)
        assert max(abs(a - 2 * b) for a, b in pairs) <= 1

    def test_infinite_strength_is_a_plain_blur(self) -> None:
        report = json.loads(self.done("gray.pgm", *BILATERAL, "--sigma-range", "inf", "--json").out)
        assert report["strengths"]["sigma_range"] == {"value": "inf", "on_255": "inf"}

    def test_measured_noise_is_told_on_both_scales(self, subtests: pytest.Subtests) -> None:
        write_pnm(self.path("twelve.pgm"), picture(48, 36).scaled(4095))
        measured = json.loads(self.done("estimate", "twelve.pgm", "--json").out)
        for words in ([], ["--sigma", "auto"]):
            with subtests.test(words=words):
                line = self.done("twelve.pgm", *BILATERAL, *words).out
                assert (f"  sigma {measured['sigma']:.4g} of 255 = {measured['sigma_pixels']:.4g} of 4095  "
                        f"sigma_range ") in line
                report = json.loads(self.done("twelve.pgm", *BILATERAL, *words, "--json").out)
                assert report["strengths"]["sigma"]["on_255"] == pytest.approx(measured["sigma"], abs=5e-7)
                assert report["strengths"]["sigma"]["value"] == pytest.approx(measured["sigma_pixels"], abs=5e-5)
                # What follows the noise is the same as if it had been given.
                self.done("twelve.pgm", *BILATERAL, "-o", "measured.pgm", *words)
                self.done("twelve.pgm", *BILATERAL, "-o", "given.pgm", "--sigma", str(measured["sigma"]))
                assert self.bytes_of("measured.pgm") == self.bytes_of("given.pgm")

    def test_given_noise_is_not_measured(self) -> None:
        report = json.loads(self.done("gray.pgm", *BILATERAL, "--sigma", "10", "--json").out)
        assert report["strengths"]["sigma"] == {"value": 10, "on_255": 10}
        assert report["strengths"]["sigma_range"]["value"] == pytest.approx(24, abs=5e-8)  # 10 (2 + 10 / 25)
        assert float(report["params"]["sigma_space"]) == pytest.approx(1.3, abs=5e-8)  # 1.2 + 10 / 100
        # A strength that is given needs no noise.
        report = json.loads(self.done("gray.pgm", *BILATERAL, "--sigma-range", "10", "--json").out)
        assert list(report["strengths"]) == ["sigma_range"]
        assert report["params"]["sigma_space"] == "3"

    def test_preset(self) -> None:
        report = json.loads(self.done("gray.pgm", "-m", "nlm", "--preset", "paper-003", "--patch", "3", "--json").out)
        params = report["params"]
        assert (params["search"], params["patch"], params["self"], params["sigma"]) == ("whole-image", "3", "max", "0")
        assert report["strengths"]["h"]["on_255"] / 255 == pytest.approx(0.059, abs=0.00005)
        assert float(params["patch_sigma"]) == pytest.approx(1.18, abs=0.002)
        # The order does not matter, and what is given stands.
        other = json.loads(self.done("gray.pgm", "--patch", "3", "-m", "nlm", "--preset=paper-003", "--json").out)
        assert other["params"] == params
        other = json.loads(self.done("gray.pgm", "-m", "nlm", "--preset", "paper-003", "--h", "20", "--search", "5",
                                     "--json").out)["params"]
        assert (other["h"], other["search"], other["patch"]) == ("20", "5", "7")
        # [004]'s leaves the strength to the noise.
        other = json.loads(self.done("gray.pgm", "-m", "nlm", "--preset", "paper-004", "--sigma", "10", "--json").out)
        assert (other["params"]["search"], other["params"]["patch"]) == ("21", "7")
        assert other["strengths"]["h"]["value"] > 0

    def test_zero_strength_returns_the_input(self) -> None:
        self.done("gray.pgm", *BILATERAL, "--sigma-range", "0", "-o", "out.pgm")
        assert self.bytes_of("gray.pgm") == self.bytes_of("out.pgm")

    def test_nonfinite(self) -> None:
        image = picture(12, 9).scaled(1, whole=False)
        image.samples[40] = math.inf
        write_pfm(self.path("a.pfm"), image)
        line = self.done("a.pfm", "-o", "b.pfm").out
        assert "  1 pixels were not finite" in line
        assert all(map(math.isfinite, read_pfm(self.path("b.pfm")).samples))
        self.done("a.pfm", "-o", "b.pfm", "--nonfinite", "keep")
        assert read_pfm(self.path("b.pfm")).samples[40] == math.inf


def roughness(image: Picture) -> float:
    pairs = itertools.pairwise(image.samples)
    return sum((a - b) ** 2 for a, b in pairs)


class TestJson(Workspace):
    KEYS = {"input", "output", "status", "format", "width", "height", "channels", "pages", "type", "colour", "alpha",
            "range", "range_from", "noise_found",
            "output_type", "method", "device", "threads", "bands", "seconds", "filter_ms", "buffer_bytes",
            "nonfinite_pixels",
            "params", "parts_ms", "stages_ms", "strengths"}

    def test_a_line_a_file(self) -> None:
        write_pnm(self.path("twelve.pgm"), picture(9, 7).scaled(4095))
        result = self.done("gray.pgm", "twelve.pgm", "-o", "out", "--json", *BILATERAL, "--sigma-range", "30",
                           "-d", "cpu")
        first, second = map(json.loads, result.out_lines)
        assert set(first) == self.KEYS
        assert (first["input"], first["output"], first["status"]) == ("gray.pgm", "out/gray.pgm", "done")
        assert (first["width"], first["height"], first["type"], first["colour"]) == (24, 18, "u8", "gray")
        assert (first["method"], first["device"], first["params"]["radius"]) == ("bilateral", "cpu", "5")
        assert first["strengths"] == {"sigma_range": {"value": 30, "on_255": 30}}
        # The parts follow each other: they add up to what the file took.
        assert sum(first["parts_ms"].values()) == pytest.approx(1e3 * first["seconds"], abs=2)
        strength = second["strengths"]["sigma_range"]
        assert strength["value"] == pytest.approx(30 * 4095 / 255, abs=5e-8)
        assert strength["on_255"] == pytest.approx(30, abs=5e-8)
        assert (second["range"], second["type"]) == (4095, "u16")

    def test_skipped(self) -> None:
        self.done("gray.pgm", "--resume")
        result = self.done("gray.pgm", "--resume", "--json")
        assert json.loads(result.out) == {"input": "gray.pgm", "output": "gray.ungrain.pgm", "status": "skipped"}

    def test_names_that_are_not_text(self) -> None:
        name = os.fsencode(self.folder) + b"/caf\xe9.pgm"
        with open(name, "wb") as file:
            file.write(self.bytes_of("gray.pgm"))
        result = self.done(os.fsdecode(name), "--json")
        assert json.loads(result.out)["input"].endswith("caf�.pgm")


class TestResume(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.command = ("gray.pgm", "colour.ppm", "-o", "out", "--resume")
        self.done(*self.command)

    def statuses(self, *more: str) -> list[str]:
        result = self.done(*self.command, "--json", *more)
        return [json.loads(line)["status"] for line in result.out_lines]

    def test_same_again(self) -> None:
        assert self.statuses() == ["skipped", "skipped"]
        line = self.done(*self.command).out_lines[0]
        assert line == "gray.pgm -> out/gray.pgm  already done"

    def test_without_resume(self) -> None:
        result = self.done("gray.pgm", "-o", "out", "--json")
        assert json.loads(result.out)["status"] == "done"

    def test_input_changed(self) -> None:
        write_pnm(self.path("gray.pgm"), picture(24, 18, seed=5))
        assert self.statuses() == ["done", "skipped"]
        assert self.statuses() == ["skipped", "skipped"]

    @pytest.mark.parametrize("more", [
        ["-mbilateral", "--radius", "4"], ["-mbilateral", "--sigma-range", "31"], ["-mbox"],
        ["--range", "200"], ["--device", "cpu"], ["--depth", "u16"], ["--nonfinite", "keep"],
        ["-mbilateral", "--border", "wrap"],
    ])
    def test_parameters_changed(self, more: list[str]) -> None:
        assert self.statuses(*more) == ["done", "done"]
        assert self.statuses(*more) == ["skipped", "skipped"]

    def test_speed_settings_do_not_count(self) -> None:
        assert self.statuses("--threads", "1", "--memory", "64M") == ["skipped", "skipped"]

    def test_output_deleted(self) -> None:
        self.path("out/colour.ppm").unlink()
        assert self.statuses() == ["skipped", "done"]

    def test_output_altered(self) -> None:
        data = self.bytes_of("out/gray.pgm")
        self.path("out/gray.pgm").write_bytes(data[:-1] + b"\0")
        assert self.statuses() == ["done", "skipped"]
        assert self.bytes_of("out/gray.pgm") == data

    def test_journal_damaged(self) -> None:
        journal = self.path("out/.ungrain-done.jsonl")
        lines = sorted(journal.read_text().splitlines(keepends=True), key=lambda line: "gray.pgm" not in line)
        journal.write_text("not json\n[]\n{}\n" + lines[0] + lines[1][:40])
        assert self.statuses() == ["skipped", "done"]

    def test_in_place(self) -> None:
        # Once filtered, the file is its own result: a second filter would be a mistake.
        self.done("gray.pgm", "-o", "gray.pgm", "--resume")
        before = self.bytes_of("gray.pgm")
        assert "already done" in self.done("gray.pgm", "-o", "gray.pgm", "--resume").out
        assert self.bytes_of("gray.pgm") == before


class TestFormats(Workspace):
    def copied(self, source: str, target: str, *more: str) -> None:
        self.done(source, "-o", target, "-q", *COPY, *more)

    def test_built_in_formats_keep_every_sample(self, subtests: pytest.Subtests) -> None:
        image = picture(13, 7, 3)
        deep = image.scaled(65535)
        write_pnm(self.path("a.ppm"), deep)
        self.copied("a.ppm", "b.ppm")
        assert self.bytes_of("a.ppm") == self.bytes_of("b.ppm")
        write_pfm(self.path("a.pfm"), image.scaled(1, whole=False))
        self.copied("a.pfm", "b.pfm")
        assert self.bytes_of("a.pfm") == self.bytes_of("b.pfm")
        for kind, samples in (("u1", image), ("u2", deep), ("f2", image.scaled(1, False)),
                              ("f4", image.scaled(1, False))):
            with subtests.test(kind=kind):
                write_npy(self.path("a.npy"), samples, kind)
                self.copied("a.npy", "b.npy")
                assert read_npy(self.path("b.npy")) == read_npy(self.path("a.npy"))

    def test_twelve_bits_stay(self) -> None:
        write_pnm(self.path("a.pgm"), picture(9, 7).scaled(4095))
        self.copied("a.pgm", "b.pgm")
        assert self.bytes_of("a.pgm") == self.bytes_of("b.pgm")

    @pytest.mark.parametrize("channels, kind", [(2, "GRAYSCALE_ALPHA"), (4, "RGB_ALPHA")])
    def test_alpha_is_not_filtered(self, channels: int, kind: str) -> None:
        image = picture(16, 12, channels)
        image.tuple_type = kind
        write_pnm(self.path("a.pam"), image)
        assert "+alpha" in self.done("a.pam", "-o", "b.pam").out
        after = read_pnm(self.path("b.pam"))
        assert (after.channels, after.tuple_type) == (channels, kind)
        assert after.samples[channels - 1::channels] == image.samples[channels - 1::channels]
        assert after.samples[0::channels] != image.samples[0::channels]

    def test_depth(self, subtests: pytest.Subtests) -> None:
        samples = read_pnm(self.path("gray.pgm")).samples
        expected = {"u8": samples, "u16": [v * 257 for v in samples], "f32": [v / 255 for v in samples],
                    "f16": [v / 255 for v in samples]}
        for depth, values in expected.items():
            with subtests.test(depth=depth):
                self.copied("gray.pgm", "b.npy", "--depth", depth)
                kind, image = read_npy(self.path("b.npy"))
                assert kind == depth[0] + str(int(depth[1:]) // 8)
                tolerance = {"f16": 1e-3, "f32": 1e-7}.get(depth, 0)
                assert max(abs(a - b) for a, b in zip(image.samples, values)) <= tolerance

    def test_depth_goes_from_white_to_white(self) -> None:
        write_pnm(self.path("a.pgm"), Picture(3, 1, 1, [0, 2048, 4095], 4095))
        self.copied("a.pgm", "b.pgm", "--depth", "u8")
        assert read_pnm(self.path("b.pgm")) == Picture(3, 1, 1, [0, 128, 255], 255)

    def test_conversion_is_told(self) -> None:
        write_pfm(self.path("a.pfm"), picture(9, 7).scaled(1, whole=False))
        line = self.done("a.pfm", "-o", "b.pgm").out
        assert "9x7 f32 gray -> u16" in line
        assert "gray ->" not in self.done("gray.pgm", "-o", "b.pgm").out

    def test_f64_is_told(self) -> None:
        write_npy(self.path("a.npy"), picture(9, 7).scaled(1, whole=False), "f8")
        assert "(f64 samples converted to f32)" in self.done("a.npy").out

    @pytest.mark.parametrize("channels", [1, 2, 3, 4])
    @pytest.mark.parametrize("white", [255, 65535])
    def test_png(self, channels: int, white: int) -> None:
        if reason := needs_format(".png"):
            pytest.skip(reason)
        image = picture(17, 11, channels).scaled(white)
        write_png(self.path("a.png"), image)
        self.copied("a.png", "b.png")
        assert read_png(self.path("b.png")) == image
        self.copied("gray.pgm", "c.png")
        assert read_png(self.path("c.png")).samples == read_pnm(self.path("gray.pgm")).samples

    def test_each_page_has_noise_of_its_own(self, subtests: pytest.Subtests) -> None:
        if problem := needs_format(".tif"):
            pytest.skip(problem)
        rough, smooth = picture(48, 36), picture(48, 36)
        smooth.samples = [round(100 + (v - 100) / 4) for v in smooth.samples]
        for method in ("bilateral", "adaptive-bilateral", "nlm", "nlm-bilateral"):
            with subtests.test(method=method):
                write_tiff(self.path("a.tif"), [rough, smooth, rough])
                self.done("a.tif", "-o", "b.tif", "-m", method)
                results = read_tiff(self.path("b.tif"))
                for page, result in zip((rough, smooth, rough), results, strict=True):
                    write_pnm(self.path("page.pgm"), page)
                    self.done("page.pgm", "-o", "page.pgm", "-m", method)
                    assert result.samples == read_pnm(self.path("page.pgm")).samples

    def test_pages(self) -> None:
        if reason := needs_format(".tif"):
            pytest.skip(reason)
        pages = [picture(24, 18, seed=seed) for seed in (1, 2, 3)]
        write_tiff(self.path("a.tif"), pages)
        assert "24x18 u8 gray 3 pages" in self.done("a.tif", "-o", "b.tif").out
        results = read_tiff(self.path("b.tif"))
        assert len(results) == 3
        for page, result in zip(pages, results):
            write_pnm(self.path("page.pgm"), page)
            self.done("page.pgm", "-o", "page.pgm")
            assert result.samples == read_pnm(self.path("page.pgm")).samples
        lines = self.done("compare", "a.tif", "b.tif", "--json").out_lines
        assert [json.loads(line)["page"] for line in lines] == [1, 2, 3]

    def test_deep_tiff(self) -> None:
        if reason := needs_format(".tif"):
            pytest.skip(reason)
        image = picture(24, 18, 3).scaled(65535)
        write_tiff(self.path("a.tif"), [image])
        self.copied("a.tif", "b.tif")
        assert read_tiff(self.path("b.tif")) == [image]

    def test_colour_profile_and_resolution_are_kept(self, subtests: pytest.Subtests) -> None:
        if reason := needs_format(".png"):
            pytest.skip(reason)
        if shutil.which("vips") is None:
            pytest.skip("there is no vips program to make a profile")
        write_png(self.path("a.png"), picture(16, 12, 3), png_chunk(b"pHYs", struct.pack(">IIB", 3000, 3000, 1)))
        vips = ["vips", "copy", self.path("a.png"), f"{self.path('b.tif')}[profile=srgb]"]
        if subprocess.run(vips, capture_output=True).returncode != 0:
            pytest.skip("vips does not make a profile")
        for name in ("c.tif", "c.png", "c.jpg"):
            with subtests.test(name=name):
                self.done("b.tif", "-o", name)
                assert self.header(name, "icc-profile-data") == self.header("b.tif", "icc-profile-data")
                assert float(self.header(name, "xres")) == pytest.approx(3, abs=0.05)

    def header(self, name: str, field: str) -> bytes:
        done = subprocess.run(["vipsheader", "-f", field, self.path(name)], capture_output=True)
        assert done.returncode == 0, done
        return done.stdout

    def test_exif_orientation_is_followed(self) -> None:
        if reason := needs_format(".jpg"):
            pytest.skip(reason)
        self.done("colour.ppm", "-o", "plain.jpg")
        self.path("turned.jpg").write_bytes(jpeg_with_exif(self.bytes_of("plain.jpg"), 6))
        self.done("turned.jpg", "-o", "out.jpg")
        assert orientation_in(self.bytes_of("out.jpg")) == 1
        report = json.loads(self.done("out.jpg", "--json").out)
        assert (report["width"], report["height"]) == (18, 24)


class TestNames(Workspace):
    @pytest.mark.parametrize("name", [
        "with space.pgm", "grün 图.pgm", "./-dash.pgm", "a'b\"c.pgm", "[1].pgm", "{}.pgm", "%s%n.pgm", "{0}.pgm",
        "a=b.pgm", "dots...pgm",
    ])
    def test_strange_names(self, name: str) -> None:
        write_pnm(self.path(name), picture(8, 6))
        result = self.done(name)
        assert len(result.out_lines) == 1
        stem = name.removesuffix(".pgm")
        assert f"{name} -> {stem}.ungrain.pgm  " in result.out.replace("./[", "[").replace("./{", "{")
        assert self.path(f"{stem}.ungrain.pgm").exists()

    def test_dash_after_two_dashes(self) -> None:
        write_pnm(self.path("-x.pgm"), picture(8, 6))
        self.done("-o", "out.pgm", "--", "-x.pgm")
        assert self.path("out.pgm").exists()

    def test_line_break(self) -> None:
        write_pnm(self.path("two\nlines.pgm"), picture(8, 6))
        result = self.done("two\nlines.pgm")
        assert len(result.out_lines) == 1, result.out
        assert self.path("two\nlines.ungrain.pgm").exists()
        assert len(self.done("two\nlines.pgm", "--resume").out_lines) == 1
        assert len(self.done("two\nlines.pgm", "--resume").out_lines) == 1
        assert len(self.done("compare", "two\nlines.pgm", "two\nlines.pgm").out_lines) == 2
        assert len(self.done("noise", "two\nlines.pgm", "-o", "n\n.pgm", "--gaussian", "1").out_lines) == 1
        report = json.loads(self.done("two\nlines.pgm", "--json").out)
        assert report["input"] == "two\nlines.pgm"

    def test_a_file_called_as_a_command(self) -> None:
        write_pnm(self.path("noise"), picture(8, 6))
        self.done("./noise", "-o", "out.pgm")
        assert self.path("out.pgm").exists()

    def test_long_name(self) -> None:
        name = "n" * 240 + ".pgm"
        write_pnm(self.path(name), picture(8, 6))
        self.path("out").mkdir()
        self.done(name, "-o", "out")
        assert self.path(f"out/{name}").exists()
        self.assert_tidy()


class TestStreams(Workspace):
    """Standard streams that are closed, full, or a terminal."""

    def shell(self, line: str, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(["sh", "-c", line, PROGRAM, *arguments], cwd=self.folder, capture_output=True, timeout=20)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_closed(self, subtests: pytest.Subtests) -> None:
        self.done("gray.pgm", "-o", "expected.pgm")
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with subtests.test(closed=closed):
                code, _, errors = self.shell(f'"$0" "$@" {closed}', "gray.pgm", "-o", "out.pgm")
                assert (code, errors) == (0, "")
                assert self.bytes_of("out.pgm") == self.bytes_of("expected.pgm")
                assert self.shell(f'"$0" "$@" {closed}', "missing.pgm", "-o", "out.pgm")[0] == 1
                assert self.bytes_of("out.pgm") == self.bytes_of("expected.pgm")
        self.assert_tidy()

    def test_reader_goes_away(self) -> None:
        names = []
        for number in range(12):
            names.append(f"{number}.pgm")
            write_pnm(self.path(names[-1]), picture(8, 6))
        code, _, errors = self.shell('{ "$0" "$@"; echo $? >&2; } | head -c 1', *names, "-o", "out", "--json")
        assert (code, errors) == (0, "0\n")
        assert len(list(self.path("out").glob("[0-9]*.pgm"))) == 12
        self.assert_tidy()
        assert self.shell('{ "$0" "$@"; } | true', "methods", "--json")[2] == ""

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
    def test_full(self, subtests: pytest.Subtests) -> None:
        code, _, errors = self.shell('"$0" "$@" > /dev/full', "gray.pgm", "colour.ppm")
        assert code == 1
        assert errors == "ungrain: the standard output cannot be written: No space left on device\n"
        assert self.path("gray.ungrain.pgm").exists() and self.path("colour.ungrain.ppm").exists()
        for command in (["methods"], ["devices", "--json"], ["--help"], ["compare", "gray.pgm", "gray.pgm"]):
            with subtests.test(command=command):
                assert self.shell('"$0" "$@" > /dev/full', *command)[0] == 1
        # Nobody can be told; the status is what is left.
        assert self.shell('"$0" "$@" 2> /dev/full', "missing.pgm")[0] == 1
        assert self.shell('"$0" "$@" 2> /dev/full', "--bogus")[0] == 2
        assert self.shell('"$0" "$@" > /dev/full 2>&1', "missing.pgm", "gray.pgm")[0] == 1
        self.assert_tidy()

    def on_terminal(self, *arguments: str, columns: int = 100) -> tuple[int, str, str]:
        """Status, standard output, and what a terminal as standard error was sent."""
        try:
            master, slave = pty.openpty()
        except OSError as error:
            pytest.skip(f"no terminal to be had: {error}")
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = start(*arguments, folder=self.folder, stderr=slave)
        os.close(slave)
        shown = b""
        try:
            while block := os.read(master, 4096):
                shown += block
        except OSError:
            pass  # how Linux tells that the other end is closed
        os.close(master)
        out, _ = process.communicate(timeout=20)
        return process.returncode, out.decode(), shown.decode()

    def test_progress_bar_of_files_at_once(self) -> None:
        for number in range(4):
            write_pnm(self.path(f"{number}.pgm"), picture(96, 72))
        code, out, shown = self.on_terminal(*(f"{n}.pgm" for n in range(4)), *SLOW, "--radius", "14", "-j", "2")
        assert (code, len(out.splitlines())) == (0, 4)
        assert re.search(r"\r\d/4 \d\.pgm \[#*\.*\] +\d+%  \d+\.\d Mpixel/s  (\d+:\d\d|-:--) left\x1b\[K", shown)
        percents = [int(text) for text in re.findall(r"(\d+)%", shown)]
        assert percents == sorted(percents)
        assert shown.endswith("\r\x1b[K"), repr(shown[-80:])

    def test_progress_bar(self) -> None:
        for number in range(2):
            write_pnm(self.path(f"{number}.pgm"), picture(96, 72))
        command = ("0.pgm", "1.pgm", *SLOW, "--radius", "14")
        code, out, shown = self.on_terminal(*command)
        assert (code, len(out.splitlines())) == (0, 2)
        assert re.search(r"\r1/2 0\.pgm \[#*\.*\] +\d+%  \d+\.\d Mpixel/s  (\d+:\d\d|-:--) left\x1b\[K", shown)
        assert re.search(r"\r2/2 1\.pgm \[#+\.*\] +\d+%  \d+\.\d Mpixel/s  \d+:\d\d left", shown)
        percents = [int(text) for text in re.findall(r"(\d+)%", shown)]
        assert percents == sorted(percents)
        assert shown.endswith("\r\x1b[K"), repr(shown[-40:])
        for text in re.split(r"\r|\x1b\[K", shown):
            assert len(text) < 100
        assert shown.count("\n") == 0

        assert self.on_terminal(*command, "-q")[2] == ""
        assert self.on_terminal(*command, "--resume")[0] == 0

    def test_progress_bar_and_errors(self) -> None:
        code, _, shown = self.on_terminal("missing.pgm", "gray.pgm", "nor.pgm")
        assert code == 1
        assert "\r\x1b[Kungrain: missing.pgm: there is no such file\r\n" in shown
        assert shown.endswith("ungrain: 2 of 3 files failed, the others are done\r\n"), shown

    def test_narrow_terminal_and_long_name(self, subtests: pytest.Subtests) -> None:
        name = "ü" * 60 + ".pgm"
        write_pnm(self.path(name), picture(8, 6))
        for columns in (1, 20, 41, 60, 61, 62, 300):
            with subtests.test(columns=columns):
                code, _, shown = self.on_terminal(name, columns=columns)
                assert code == 0
                for text in re.split(r"\r|\x1b\[K", shown):
                    assert len(text) < max(columns, 2)


class TestNoise(Workspace):
    KINDS = {"gaussian": "25", "salt-pepper": "0.1", "speckle": "0.2", "quantization": "4", "poisson": "30"}

    def noisy(self, *arguments: str) -> bytes:
        self.done("noise", "gray.pgm", "-o", "noisy.pgm", *arguments)
        return self.bytes_of("noisy.pgm")

    def test_seed(self, subtests: pytest.Subtests) -> None:
        for kind, amount in self.KINDS.items():
            with subtests.test(kind=kind):
                first = self.noisy(f"--{kind}", amount, "--seed", "7")
                assert first != self.bytes_of("gray.pgm")
                assert self.noisy(f"--{kind}", amount, "--seed", "7") == first
                other = self.noisy(f"--{kind}", amount, "--seed", "8")
                assert (other == first) == (kind == "quantization")
        assert self.noisy("--gaussian", "9") == self.noisy("--gaussian", "9", "--seed", "0")

    def test_line(self) -> None:
        result = self.done("noise", "gray.pgm", "-o", "n.pgm", "--gaussian", "12.5")
        assert result.out == "gray.pgm -> n.pgm  gaussian 12.5\n"

    def test_nothing_added(self) -> None:
        assert self.noisy("--gaussian", "0") == self.bytes_of("gray.pgm")

    def test_amount_is_on_the_scale_of_8_bits(self, subtests: pytest.Subtests) -> None:
        flat = Picture(64, 64, 1, [0.5] * 4096, 1)
        write_pfm(self.path("flat.pfm"), flat)
        for more, expected in (([], 20 / 255), (["--range", "1000"], 20 / 255 * 1000)):
            with subtests.test(more=more):
                self.done("noise", "flat.pfm", "-o", "n.pfm", "--gaussian", "20", *more)
                values = read_pfm(self.path("n.pfm")).samples
                deviation = math.sqrt(sum((v - 0.5) ** 2 for v in values) / len(values))
                assert deviation / expected == pytest.approx(1, abs=0.05)

    def test_depth(self) -> None:
        self.done("noise", "gray.pgm", "-o", "n.npy", "--gaussian", "200", "--depth", "f32")
        kind, image = read_npy(self.path("n.npy"))
        assert kind == "f4"
        assert min(image.samples) < 0, "float is not clipped"

    def test_in_place(self) -> None:
        expected = self.noisy("--speckle", "0.2")
        self.done("noise", "gray.pgm", "-o", "gray.pgm", "--speckle", "0.2")
        assert self.bytes_of("gray.pgm") == expected

    def test_camera(self, subtests: pytest.Subtests) -> None:
        line = self.done("noise", "colour.ppm", "-o", "n.ppm", "--camera").out
        assert line == "colour.ppm -> n.ppm  camera ISO 1600 gradient\n"
        first = self.bytes_of("n.ppm")
        for same, options in ((True, "--iso 1600 --demosaic gradient --seed 0"), (False, "--iso 3200"),
                              (False, "--demosaic bilinear"), (False, "--seed 1"), (False, "--noiseless")):
            with subtests.test(options=options):
                self.done("noise", "colour.ppm", "-o", "n.ppm", "--camera", *options.split())
                assert (self.bytes_of("n.ppm") == first) == same
        assert self.noisy("--camera", "--noiseless", "--seed", "1") == self.noisy("--camera", "--noiseless")

    def test_camera_in_bands(self) -> None:
        # The program works on about a million pixels at a time: here in bands of 499 rows and in one.
        wide, narrow, height = 2100, 1000, 560
        value = lambda x, y: (3 * x + 7 * y + 50 * (x // 40 % 2)) % 256  # noqa: E731
        for name, width in (("wide", wide), ("narrow", narrow)):
            samples = [value(x, y) for y in range(height) for x in range(width)]
            write_pnm(self.path(f"{name}.pgm"), Picture(width, height, 1, samples, 255))
            self.done("noise", f"{name}.pgm", "-o", f"{name}-n.pgm", "--camera", "--demosaic", "bilinear")
        one, other = read_pnm(self.path("wide-n.pgm")).samples, read_pnm(self.path("narrow-n.pgm")).samples
        inside = narrow - 16  # what the right edge does not reach
        for y in range(height):
            assert one[y * wide:y * wide + inside] == other[y * narrow:y * narrow + inside], f"row {y}"

    def test_quality(self) -> None:
        if reason := needs_format(".jpg"):
            pytest.skip(reason)
        sizes = []
        for quality in ("95", "40"):
            self.done("noise", "colour.ppm", "-o", "n.jpg", "--camera", "--jpeg-quality", quality)
            sizes.append(len(self.bytes_of("n.jpg")))
        assert sizes[0] > sizes[1]


class TestCompare(Workspace):
    def test_identical(self) -> None:
        lines = self.done("compare", "gray.pgm", "gray.pgm").out_lines
        assert lines[0].split() == ["PSNR", "dB", "SSIM", "FSIM", "FSIMc", "MSE", "max-abs", "file"]
        assert lines[1].split() == ["inf", "1.000000", "1.000000", "-", "0", "0", "gray.pgm"]

    def test_json(self) -> None:
        self.done("noise", "gray.pgm", "-o", "n.pgm", "--gaussian", "20")
        same, noisy = map(json.loads, self.done("compare", "gray.pgm", "gray.pgm", "n.pgm", "--json").out_lines)
        assert same == {"truth": "gray.pgm", "file": "gray.pgm", "psnr": "inf", "ssim": 1.0, "fsim": 1.0,
                        "fsimc": None, "mse": 0.0, "max_abs": 0.0}
        differences = [a - b for a, b in zip(read_pnm(self.path("gray.pgm")).samples,
                                             read_pnm(self.path("n.pgm")).samples)]
        mse = sum(d * d for d in differences) / len(differences)
        assert noisy["mse"] == pytest.approx(mse, abs=5e-8)
        assert noisy["psnr"] == pytest.approx(10 * math.log10(255**2 / mse), abs=5e-8)
        assert noisy["max_abs"] == max(map(abs, differences))
        assert noisy["ssim"] < 1
        assert noisy["fsim"] < 1

    def test_too_small_for_ssim(self) -> None:
        write_pnm(self.path("small.pgm"), picture(10, 40))
        assert self.done("compare", "small.pgm", "small.pgm").out_lines[1].split()[1] == "-"
        assert json.loads(self.done("compare", "--json", "small.pgm", "small.pgm").out)["ssim"] is None
        write_pnm(self.path("enough.pgm"), picture(11, 11))
        assert self.done("compare", "enough.pgm", "enough.pgm").out_lines[1].split()[1] == "1.000000"

    def test_fsim_of_colour_and_of_small_images(self) -> None:
        assert self.done("compare", "colour.ppm", "colour.ppm").out_lines[1].split()[2:4] == ["1.000000", "1.000000"]
        write_pnm(self.path("small.pgm"), picture(15, 40))
        assert self.done("compare", "small.pgm", "small.pgm").out_lines[1].split()[2:4] == ["-", "-"]
        assert json.loads(self.done("compare", "--json", "small.pgm", "small.pgm").out)["fsim"] is None

    def test_other_white_level(self) -> None:
        image = read_pnm(self.path("gray.pgm"))
        write_pnm(self.path("deep.pgm"), image.scaled(65535))
        assert self.done("compare", "gray.pgm", "deep.pgm").out_lines[1].split()[0] == "inf"
        write_npy(self.path("a.npy"), image.scaled(1, whole=False))
        values = json.loads(self.done("compare", "gray.pgm", "a.npy", "--json").out)
        assert values["max_abs"] < 1e-4

    def test_range(self) -> None:
        write_pfm(self.path("a.pfm"), picture(12, 12))
        other = picture(12, 12)
        other.samples[0] += 1
        write_pfm(self.path("b.pfm"), other)
        found = json.loads(self.done("compare", "a.pfm", "b.pfm", "--json").out)  # 255, by the values
        one = json.loads(self.done("compare", "a.pfm", "b.pfm", "--json", "--range", "1").out)
        wide = json.loads(self.done("compare", "a.pfm", "b.pfm", "--json", "--range", "255").out)
        assert wide["psnr"] - one["psnr"] == pytest.approx(20 * math.log10(255), abs=5e-8)
        assert found["psnr"] == wide["psnr"]


class TestEstimate(Workspace):
    def test_gray_and_colour(self) -> None:
        self.done("demo", "--size", "240x160", "--gaussian", "20", "-o", "demo")
        noisy = next(pathlib.Path(self.path("demo")).glob("noisy.*"))  # .png, or .ppm without libvips
        lines = self.done("estimate", str(noisy), "gray.pgm").out_lines
        assert len(lines) == 3
        assert float(lines[1].split()[0]) == pytest.approx(20, abs=2)
        assert len(lines[1].split()) == 7, "both scales, three channels, what it is like, the file"
        assert (lines[2].split()[2], lines[2].split()[-1]) == ("-", "gray.pgm")

    def test_json(self) -> None:
        estimate = json.loads(self.done("estimate", "colour.ppm", "--json").out)
        assert sorted(estimate) == ["channels", "file", "finding", "sigma", "sigma_pixels", "white"]
        assert estimate["white"] == 255
        assert estimate["sigma"] == estimate["sigma_pixels"]
        squares = sum(sigma * sigma for sigma in estimate["channels"])
        assert estimate["sigma"] == pytest.approx(math.sqrt(squares / 3), abs=5e-8)

    def test_the_noise_by_level_and_frequency(self) -> None:
        result = self.done("estimate", "colour.ppm", "--model")
        assert re.search(r"^ +noise: \d.*; \d+ of \d+ levels show noise without texture", result.out_lines[2])
        assert re.search(r"^ +channel 0, deviation in low / middle / high frequencies: \d", result.out_lines[3])
        assert len(result.out_lines) == 6
        model = json.loads(self.done("estimate", "colour.ppm", "--model", "--json").out)["model"]
        assert sorted(model) == ["calm_levels", "channels", "finding", "levels", "limited_by_colour", "limited_by_iso"]
        assert len(model["channels"]) == 3
        for channel in model["channels"]:
            assert len(channel["spectrum"]) == 64
            assert len(channel["levels"]) == len(channel["deviations"])

    def test_range(self) -> None:
        write_pfm(self.path("a.pfm"), picture(60, 40))
        found = json.loads(self.done("estimate", "a.pfm", "--json").out)
        one = json.loads(self.done("estimate", "a.pfm", "--json", "--range", "1").out)
        wide = json.loads(self.done("estimate", "a.pfm", "--json", "--range", "510").out)
        assert wide["sigma"] == pytest.approx(wide["sigma_pixels"] / 2, abs=5e-8)
        assert one["sigma"] == pytest.approx(one["sigma_pixels"] * 255, abs=5e-8)
        assert (found["white"], found["sigma"]) == (255, found["sigma_pixels"])

    def test_one_bad_file_among_good_ones(self) -> None:
        result = self.run_here("estimate", "gray.pgm", "missing.pgm", "colour.ppm", "--json")
        assert result.code == 1
        assert [json.loads(line)["file"] for line in result.out_lines] == ["gray.pgm", "colour.ppm"]


class TestTell(Workspace):
    """methods, devices, help, version, demo."""

    def all_methods(self) -> list[dict]:
        return [json.loads(line) for line in self.done("methods", "--json").out_lines]

    def methods(self) -> list[dict]:
        return [method for method in self.all_methods() if method["for"] == "images"]

    def test_methods(self, subtests: pytest.Subtests) -> None:
        listed = self.done("methods").out
        for method in self.all_methods():
            assert re.search(rf"(?m)^{method['name']} +{re.escape(method['summary'])} \[", listed)
            told = self.done("methods", method["name"]).out
            for param in method["params"]:
                with subtests.test(method=method["name"], option=param["option"]):
                    assert re.search(r"number|one of|image", param["takes"])
                    assert param["default"]
                    assert re.search(rf"(?m)^  {param['option']} +{re.escape(param['help'])}$", told)
                    assert param["takes"] in told
                    assert f"default {param['default']}\n" in told
            only = self.done("methods", method["name"], "--json").out
            assert json.loads(only) == method
        assert "bilateral" in [method["name"] for method in self.all_methods()]

    def test_markdown(self) -> None:
        text = self.done("methods", "--markdown").out
        for method in self.all_methods():
            assert f"\n## {method['name']}\n" in text
        page = REPOSITORY / "docs/methods.md"
        if not page.exists():
            pytest.skip("docs/methods.md is not there yet")
        expected = page.read_text()
        if not any(method["cuda"] for method in self.all_methods()):  # this build has none
            expected = expected.replace(", cuda.", ".")
        assert expected == text, "docs/methods.md is not what ungrain methods --markdown prints"

    def test_every_method_runs(self, subtests: pytest.Subtests) -> None:
        for method in self.methods():
            for device in ("reference", "cpu"):
                if not method[device]:
                    continue
                with subtests.test(method=method["name"], device=device):
                    report = json.loads(self.done("colour.ppm", "-m", method["name"], "-d", device, "--json").out)
                    assert (report["method"], report["device"]) == (method["name"], device)
                    for param in method["params"]:
                        assert param["name"] in report["params"]

    def test_quality_chooses_the_method(self) -> None:
        for quality, method, profile in (("fast", "bm3d", "fast"), ("normal", "bm3d", "normal"), ("best", "ridge", "normal")):
            report = json.loads(self.done("gray.pgm", "--quality", quality, "--sigma", "20", "--json").out)
            assert (report["method"], report["params"]["profile"]) == (method, profile)
        self.done("gray.pgm", "-m", "bilateral", "--quality", "grid", "--sigma", "20")  # its own

    def test_every_option_is_taken(self, subtests: pytest.Subtests) -> None:
        """The default that is told is a value that the option takes."""
        for method in self.methods():
            for param in method["params"]:
                value = param["default"] if re.fullmatch(r"[\w.-]+", param["default"]) else "auto"
                with subtests.test(method=method["name"], option=param["option"], value=value):
                    self.done("gray.pgm", "-m", method["name"], param["option"], value)

    def test_devices(self) -> None:
        listed = self.done("devices").out
        described = [json.loads(line) for line in self.done("devices", "--json").out_lines]
        assert {"cpu", "reference"} <= {device["device"] for device in described}
        for device in described:
            assert set(device) == {"device", "description", "usable", "reason"}
            assert device["usable"] == (device["reason"] == "")
            assert re.search(rf"(?m)^{device['device']} +\S", listed)

    COMMANDS = ("denoise", "video", "noise", "compare", "methods", "devices", "demo")

    def test_cluster_without_python_is_one_line(self) -> None:
        for python, told in (("/nowhere/python", "cannot be run"), (self.python_without_packages(), "needs the Python package")):
            result = self.run_here("cluster", "in.zarr", "out.zarr", env={**os.environ, "UNGRAIN_PYTHON": python})
            assert (result.code, result.out, len(result.err_lines)) == (1, "", 1)
            assert told in result.err
        assert "pip install '.[dask]' in ungrain's source folder" in result.err
        assert re.search(r"(?m)^  cluster +\w", self.done("--help").out)

    def test_cluster_reads_its_options_before_python(self, subtests: pytest.Subtests) -> None:
        nowhere = {**os.environ, "UNGRAIN_PYTHON": "/nowhere/python"}
        assert "--scheduler ADDRESS" in self.done("cluster", "--help", env=nowhere).out
        for words, told in ((("--method", "nlm", "--patch", "4"), "--patch takes an odd whole number from 1 to 31, or auto"),
                            (("--patch", "5", "--method", "box"), "--patch is an option of nlm, nlm-bilateral, bm3d, ridge, not"),
                            (("--workrs", "4"), "no option --workrs; did you mean --workers?"),
                            (("--block", "0"), "--block: takes a whole number from 1 up, got '0'"),
                            (("--workers", "1", "--scheduler", "tcp://a:1"), "--scheduler and --workers exclude each other")):
            with subtests.test(words=words):
                result = self.run_here("cluster", "in.zarr", "out.zarr", *words, env=nowhere)
                assert (result.code, result.out, len(result.err_lines)) == (2, "", 1)
                assert told in result.err

    def test_cluster_hands_over_what_it_read(self) -> None:
        """A Python that prints its last argument stands in for the real one; names need not be UTF-8."""
        path = self.path("python-that-tells")
        path.write_text('#!/bin/sh\nfor last; do :; done\nprintf %s "$last"\n')
        path.chmod(0o755)
        done = subprocess.run([PROGRAM, "cluster", b'in\xff"\\.zarr', "out.zarr", "--radius=2", "--axis", "0,-1", "-m", "box",
                               "--range", "4095", "--dashboard", "8787", "--worker-memory", "2G", "-q"],
                              cwd=self.folder, env={**os.environ, "UNGRAIN_PYTHON": str(path)}, capture_output=True, check=True)
        assert json.loads(os.fsdecode(done.stdout)) == {
            "input": os.fsdecode(b'in\xff"\\.zarr'), "output": "out.zarr", "scheduler": None, "workers": None,
            "worker_memory": 2 << 30, "dashboard": "127.0.0.1:8787", "block": 4096, "chunk": None, "axis": [0, -1],
            "channel_axis": None, "volume": False, "spacing": None, "channels": "auto", "range": 4095.0, "device": "auto",
            "nonfinite": "fill", "threads": 1, "memory": 0, "overwrite": False, "quiet": True, "method": "box", "preset": None,
            "words": {"radius": "2"}}

    def python_without_packages(self) -> str:
        path = self.path("python-alone")
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
        path.chmod(0o755)
        return str(path)

    def test_help(self, subtests: pytest.Subtests) -> None:
        for text in (self.done("--help").out, self.done("-h").out, self.done("help").out):
            for command in self.COMMANDS:
                assert re.search(rf"(?m)^  {command} +\w", text)
        for command in self.COMMANDS:
            for flag in ("--help", "-h"):
                with subtests.test(command=command):
                    text = self.done(command, flag).out
                    assert "Usage: ungrain" in text
                    # Whatever takes a value tells its default; noise's kinds and its output have none.
                    kinds = r"--(gaussian|salt-pepper|speckle|quantization|poisson|output)\b"
                    without = kinds if command == "noise" else "$^"
                    for line in re.findall(r"(?m)^  (-.*)$", text):
                        takes_value = re.match(r"(-\w,)?--[\w-]+ [A-Zx]+ ", line) or "(a " in line or "(one of" in line
                        if takes_value and not re.search(without, line):
                            assert "default" in line
        assert self.done("gray.pgm", "--help").out == self.done("denoise", "--help").out

    def test_help_of_every_method(self, subtests: pytest.Subtests) -> None:
        defaults = set()
        for method in self.methods():
            text = self.done("--method", method["name"], "--help").out
            defaults.add(re.search(r"--method NAME .*\(default (\w+)\)", text)[1])
            for param in method["params"]:
                with subtests.test(method=method["name"], option=param["option"]):
                    line = re.search(rf"(?m)^  {param['option']} .*$", text)
                    assert line is not None
                    assert param["help"] in line[0]
                    assert param["takes"] in line[0]
                    assert f"default {param['default']}" in line[0]
        assert len(defaults) == 1, "the default does not depend on what was chosen"

    def test_help_of_every_method_for_volumes(self, subtests: pytest.Subtests) -> None:
        for method in self.all_methods():
            if method["for"] != "volumes":
                continue
            text = self.done("volume", "--method", method["name"], "--help").out
            for param in method["params"]:
                with subtests.test(method=method["name"], option=param["option"]):
                    assert re.search(rf"(?m)^  {param['option']} .*{re.escape(param['help'])}", text)
            assert f"{method['name']} is not for images" in self.run_here("gray.pgm", "-m", method["name"]).err
        assert "bm3d is not for volumes" in self.run_here("volume", "gray.pgm", "-m", "bm3d").err

    def test_help_writes_nothing(self) -> None:
        before = sorted(os.listdir(self.folder))
        self.done("gray.pgm", "-o", "out/", "--help")
        self.done("demo", "--help")
        assert sorted(os.listdir(self.folder)) == before

    def test_version(self) -> None:
        for word in ("--version", "-V", "version"):
            assert re.search(r"\Aungrain \d+\.\d+\.\d+\S*\n\Z", self.done(word).out)

    def test_formats_that_are_only_read(self) -> None:
        with open(self.path("scan.pbm"), "wb") as file:
            file.write(b"P4\n9 2\n\xff\x80\x00\x00")
        assert "scan.pbm -> scan.ungrain.pgm" in self.done("scan.pbm").out
        self.done("scan.pbm", "-o", "clean/")
        assert self.bytes_of("clean/scan.pgm") == self.bytes_of("scan.ungrain.pgm")

    def test_demo(self) -> None:
        extension = ".png" if writes(".png") else ".ppm"
        result = self.done("demo", "--size", "96x64", "-o", "pictures")
        rows = {line.split()[0]: float(line.split()[1]) for line in result.out_lines[1:-1]}
        names = [method["name"] for method in self.methods()]
        assert list(rows) == ["(noisy)", *names]
        assert rows["bilateral"] > rows["(noisy)"] + 2
        expected = ["clean", "noisy", *names, *(f"{name}-residual" for name in names)]
        assert sorted(os.listdir(self.path("pictures"))) == sorted(name + extension for name in expected)
        if extension == ".png":
            assert read_png(self.path("pictures/noisy.png")).width == 96
            # The table says what compare says of the files.
            told = json.loads(self.done("compare", "pictures/clean.png", "pictures/bilateral.png", "--json").out)
            assert told["psnr"] == pytest.approx(rows["bilateral"], abs=0.006)

    def test_demo_options(self) -> None:
        first = self.done("demo", "--size", "32x24", "-o", "a", "--gray", "--seed", "3", "--gaussian", "10", "-d",
                          "reference")
        assert "32 x 24, gaussian noise 10 of 255, seed 3" in first.out
        self.done("demo", "--size", "32x24", "-o", "b", "--gray", "--seed", "3", "--gaussian", "10")
        self.done("demo", "--size", "32x24", "-o", "c", "--gray", "--seed", "4", "--gaussian", "10")
        name = "noisy.png" if writes(".png") else "noisy.pgm"
        assert self.bytes_of(f"a/{name}") == self.bytes_of(f"b/{name}")
        assert self.bytes_of(f"a/{name}") != self.bytes_of(f"c/{name}")
        self.done("demo", "--size", "1x1", "-o", "d")
