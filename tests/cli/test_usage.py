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
import unittest

from support import (PROGRAM, REPOSITORY, Picture, Workspace, jpeg_with_exif, needs_format, orientation_in, picture,
                     png_chunk, read_npy, read_pfm, read_png, read_pnm, read_tiff, start, write_npy, write_pfm,
                     write_png, write_pnm, write_tiff, writes)

BILATERAL = ("-m", "bilateral")  # whichever method is the default
SLOW = (*BILATERAL, "--device", "reference")
COPY = ("-m", "box", "--radius", "0")  # changes no pixel: what is read is what is written


class Denoise(Workspace):
    def test_one_file(self) -> None:
        result = self.done("gray.pgm", *BILATERAL, "--sigma-range", "30")
        self.assertEqual(len(result.out_lines), 1)
        self.assertRegex(result.out, r"^gray.pgm -> gray.ungrain.pgm  24x18 u8 gray  bilateral  "
                                     r"sigma_range 30 of 255 = 30 of 255  \S+ x\d+  \d+\.\d\d s  \d+\.\d Mpixel/s\n$")
        before, after = read_pnm(self.path("gray.pgm")), read_pnm(self.path("gray.ungrain.pgm"))
        self.assertEqual((after.width, after.height, after.white), (24, 18, 255))
        self.assertLess(roughness(after), roughness(before) * 0.8)
        self.assert_tidy()

    def test_nothing_given_is_bm3d_with_the_noise_measured(self) -> None:
        write_pnm(self.path("large.ppm"), picture(64, 48, 3))
        measured = json.loads(self.done("estimate", "large.ppm", "--json").out)
        report = json.loads(self.done("large.ppm", "--json").out)
        self.assertEqual((report["method"], report["params"]["profile"], report["params"]["colour"]),
                         ("bm3d", "normal", "opponent"))
        for channel, sigma in enumerate(measured["channels"]):
            self.assertAlmostEqual(report["strengths"][f"sigma[{channel}]"]["on_255"], sigma, 6)
        before, after = read_pnm(self.path("large.ppm")), read_pnm(self.path("large.ungrain.ppm"))
        self.assertLess(roughness(after), roughness(before) * 0.8)

    def test_a_map_of_the_noise(self) -> None:
        def write_map(name: str, sigma: float, width: int = 24) -> None:
            write_pfm(self.path(name), Picture(width, 18, 1, [sigma] * width * 18, 1))

        write_map("none.pfm", 0)
        write_map("strong.pfm", 60)
        write_map("wide.pfm", 1, 25)
        self.done("gray.pgm", "--sigma-map", "none.pfm", "-o", "same.pgm")
        self.assertEqual(self.bytes_of("same.pgm"), self.bytes_of("gray.pgm"))
        report = json.loads(self.done("gray.pgm", "--sigma-map", "strong.pfm", "-o", "smooth.pgm", "--json").out)
        self.assertAlmostEqual(report["strengths"]["sigma"]["on_255"], 60, 3)
        self.assertLess(roughness(read_pnm(self.path("smooth.pgm"))), roughness(read_pnm(self.path("gray.pgm"))) * 0.5)
        # On the 0-255 scale, as all strengths are.
        write_pnm(self.path("twelve.pgm"), picture(24, 18).scaled(4095))
        report = json.loads(self.done("twelve.pgm", "--sigma-map", "strong.pfm", "--json").out)
        self.assertAlmostEqual(report["strengths"]["sigma"]["value"], 60 * 4095 / 255, 1)
        self.assertEqual(self.run_here("gray.pgm", "--sigma-map", "wide.pfm").err,
                         "ungrain: gray.pgm: bm3d: sigma_map is 25 x 18, the image 24 x 18\n")
        result = self.run_here("gray.pgm", "--sigma-map", "missing.pfm")
        self.assertEqual(result.code, 2)
        self.assertRegex(result.err, "^ungrain: --sigma-map: missing.pfm: ")

    def test_the_commands_name_may_be_given(self) -> None:
        self.done("denoise", "gray.pgm", "-o", "a.pgm")
        self.done("gray.pgm", "-o", "b.pgm")
        self.assertEqual(self.bytes_of("a.pgm"), self.bytes_of("b.pgm"))

    def test_many_files(self) -> None:
        result = self.done("gray.pgm", "colour.ppm")
        self.assertEqual([line.split("  ")[0] for line in result.out_lines],
                         ["gray.pgm -> gray.ungrain.pgm", "colour.ppm -> colour.ungrain.ppm"])

    def test_files_at_once(self) -> None:
        self.path("in").mkdir()
        for number in range(7):
            write_pnm(self.path(f"in/{number}.pgm"), picture(40, 30, seed=number + 1))
        self.done("in", "-o", "one", *BILATERAL)
        result = self.done("in", "-o", "many", *BILATERAL, "--jobs", "3")
        self.assertEqual([line.split("  ")[0] for line in result.out_lines],
                         [f"in/{number}.pgm -> many/{number}.pgm" for number in range(7)])
        for number in range(7):
            self.assertEqual(self.bytes_of(f"one/{number}.pgm"), self.bytes_of(f"many/{number}.pgm"), number)
        again = self.done("in", "-o", "many", *BILATERAL, "-j", "64", "--resume")
        self.assertEqual(sum(line.endswith("already done") for line in again.out_lines), 7, again.out)
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
        self.assertEqual(self.bytes_of("0.pgm"), self.bytes_of("all/0.pgm"))

    def test_all_gpus(self) -> None:
        devices = self.done("devices").out
        if not re.search(r"^cuda:all ", devices, re.M):
            self.skipTest("no GPU")
        self.path("in").mkdir()
        for number in range(5):
            write_pnm(self.path(f"in/{number}.pgm"), picture(40, 300, seed=number + 1))
        self.done("in", "-o", "one", *BILATERAL, "--device", "cuda")
        spread = self.done("in", "-o", "all", *BILATERAL, "--device", "cuda:all", "--json")
        self.assertEqual(len(spread.out_lines), 5)
        for number in range(5):
            self.assertEqual(self.bytes_of(f"one/{number}.pgm"), self.bytes_of(f"all/{number}.pgm"), number)
        # One file: its bands.
        alone = self.done("in/0.pgm", "-o", "alone.pgm", *BILATERAL, "--device", "cuda:all")
        self.assertRegex(alone.out, r"  cuda:all \(\d+ queues? on \d+ GPUs?\) x1  ")
        self.assertEqual(self.bytes_of("alone.pgm"), self.bytes_of("one/0.pgm"))

    def test_files_at_once_and_one_fails(self) -> None:
        self.path("in").mkdir()
        for number in range(6):
            write_pnm(self.path(f"in/{number}.pgm"), picture(40, 30, seed=number + 1))
        self.path("in/2.pgm").write_bytes(b"P5 40 30 255 too short")
        result = self.run_here("in", "-o", "out", "--jobs", "2", "--json")
        self.assertEqual(result.code, 1)
        self.assertEqual(len(result.err_lines), 2, result.err)
        self.assertEqual(result.err_lines[1], "ungrain: 1 of 6 files failed, the others are done")
        told = [json.loads(line) for line in result.out_lines]
        self.assertEqual([(line["input"], line["status"]) for line in told],
                         [(f"in/{number}.pgm", "failed" if number == 2 else "done") for number in range(6)])
        self.assert_tidy()

    def test_folder(self) -> None:
        self.path("in/deeper").mkdir(parents=True)
        for name in ("b.pgm", "a.PGM", ".hidden.pgm", "old.ungrain.pgm", "deeper/c.pgm"):
            write_pnm(self.path("in") / name, picture(8, 6))
        self.path("in/notes.txt").write_text("not an image")
        self.path("in/zz.pgm").symlink_to("nowhere")
        result = self.done("in", "-o", "out/")
        self.assertEqual([line.split("  ")[0] for line in result.out_lines],
                         ["in/a.PGM -> out/a.PGM", "in/b.pgm -> out/b.pgm"])
        self.assertEqual(sorted(os.listdir(self.path("out"))), [".ungrain-done.jsonl", "a.PGM", "b.pgm"])

    def test_pattern(self) -> None:
        for name in ("x1.pgm", "x2.pgm", "y1.pgm"):
            write_pnm(self.path(name), picture(8, 6))
        result = self.done("x*.pgm", "y?.pgm", "-o", "out")
        self.assertEqual(len(result.out_lines), 3)
        self.assertEqual(sorted(path.name for path in self.path("out").glob("[xy]*")), ["x1.pgm", "x2.pgm", "y1.pgm"])

    def test_output_is_a_folder_that_exists(self) -> None:
        self.path("out").mkdir()
        self.done("gray.pgm", "-o", "out")
        self.assertTrue(self.path("out/gray.pgm").exists())

    def test_output_over_an_older_file(self) -> None:
        self.path("out.pgm").write_bytes(b"older")
        self.path("out.pgm").chmod(0o640)
        self.done("gray.pgm", "-o", "out.pgm")
        self.assertEqual(read_pnm(self.path("out.pgm")).width, 24)
        self.assertEqual(self.path("out.pgm").stat().st_mode & 0o777, 0o640)

    def test_in_place(self) -> None:
        self.done("gray.pgm", "-o", "separate.pgm")
        self.done("gray.pgm", "-o", "gray.pgm")
        self.assertEqual(self.bytes_of("gray.pgm"), self.bytes_of("separate.pgm"))
        self.done("colour.ppm", "-o", "separate.ppm")
        self.done("colour.ppm", "-o", ".")
        self.assertEqual(self.bytes_of("colour.ppm"), self.bytes_of("separate.ppm"))
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
        self.assertEqual(seen, sizes)

    def test_output_through_a_link(self) -> None:
        self.path("real").mkdir()
        self.path("link.pgm").symlink_to("real/target.pgm")
        self.done("gray.pgm", "-o", "plain.pgm")
        for _ in range(2):  # the target is made, then replaced
            self.done("gray.pgm", "-o", "link.pgm")
            self.assertTrue(self.path("link.pgm").is_symlink())
            self.assertEqual(self.bytes_of("real/target.pgm"), self.bytes_of("plain.pgm"))
        self.assert_tidy()

    def test_quiet(self) -> None:
        self.assertEqual(self.done("gray.pgm", "-q").out, "")
        self.assertEqual(self.done("gray.pgm", "colour.ppm", "--quiet", "--resume").out, "")
        self.assertEqual(self.done("noise", "gray.pgm", "-o", "n.pgm", "--gaussian", "5", "-q").out, "")

    def test_spellings_of_options(self) -> None:
        self.done("gray.pgm", "--output", "a.pgm", "--method", "box", "--radius", "2")
        for number, words in enumerate((["-o", "b.pgm", "-m", "box", "--radius=2"],
                                        ["-ob.pgm", "-mbox", "--radius", "+2"],
                                        ["--output=b.pgm", "--method=box", "--radius=2.0"],
                                        ["-o=b.pgm", "-m=box", "--radius", "2e0"])):
            with self.subTest(number):
                self.done(*words, "--", "gray.pgm")
                self.assertEqual(self.bytes_of("a.pgm"), self.bytes_of("b.pgm"))
                self.path("b.pgm").unlink()

    def test_order_of_options(self) -> None:
        """The method's options may stand before the method, and files between."""
        self.done("gray.pgm", "-m", "box", "--radius", "2", "-o", "a.pgm")
        self.done("--radius", "2", "-o", "b.pgm", "gray.pgm", "-m", "box")
        self.assertEqual(self.bytes_of("a.pgm"), self.bytes_of("b.pgm"))
        self.assertEqual(self.run_here("--radus", "3", "gray.pgm", "-m", "box").err,
                         "ungrain: there is no option --radus; did you mean --radius?\n")

    def test_threads_and_memory_change_no_pixel(self) -> None:
        write_pnm(self.path("tall.ppm"), picture(90, 400, 3))
        results = set()
        for more in (["--threads", "1"], ["--threads", "2"], ["--memory", "350K", "--threads", "2"],
                     ["--memory", "350K", "--threads", "1"]):
            result = self.done("tall.ppm", "-o", "out.ppm", "--json", "--device", "cpu", *BILATERAL, *more)
            report = json.loads(result.out)
            if "--memory" in more:
                self.assertGreater(report["bands"], 3)
                self.assertLessEqual(report["buffer_bytes"], 350 * 1024)
            if "--threads" in more:
                self.assertEqual(report["threads"], int(more[-1]))
            results.add(self.bytes_of("out.ppm"))
        self.assertEqual(len(results), 1)

    def test_strengths_are_on_the_scale_of_8_bits(self) -> None:
        image = picture(24, 18)
        write_pnm(self.path("twelve.pgm"), image.scaled(4095))
        line = self.done("twelve.pgm", *BILATERAL, "--sigma-range", "30", "-o", "a.pgm").out
        self.assertIn("sigma_range 30 of 255 = 481.8 of 4095", line)
        self.assertEqual(read_pnm(self.path("a.pgm")).white, 4095)
        # The same samples in a file that does not say its white level.
        write_npy(self.path("twelve.npy"), image.scaled(4095), "u2")
        self.assertIn("= 481.8 of 4095", self.done("twelve.npy", *BILATERAL, "--range", "4095", "-o", "a.npy",
                                                   "--sigma-range", "30").out)
        self.assertEqual(read_npy(self.path("a.npy"))[1].samples, read_pnm(self.path("a.pgm")).samples)
        # Twice the samples with twice the white level: twice the result, but for rounding.
        write_pnm(self.path("twice.pgm"), image.scaled(510))
        self.done("twice.pgm", *BILATERAL, "--sigma-range", "30", "-o", "twice.pgm")
        self.done("gray.pgm", *BILATERAL, "--sigma-range", "30", "-o", "once.pgm")
        pairs = zip(read_pnm(self.path("twice.pgm")).samples, read_pnm(self.path("once.pgm")).samples)
        self.assertLessEqual(max(abs(a - 2 * b) for a, b in pairs), 1)

    def test_infinite_strength_is_a_plain_blur(self) -> None:
        report = json.loads(self.done("gray.pgm", *BILATERAL, "--sigma-range", "inf", "--json").out)
        self.assertEqual(report["strengths"]["sigma_range"], {"value": "inf", "on_255": "inf"})

    def test_measured_noise_is_told_on_both_scales(self) -> None:
        write_pnm(self.path("twelve.pgm"), picture(48, 36).scaled(4095))
        measured = json.loads(self.done("estimate", "twelve.pgm", "--json").out)
        for words in ([], ["--sigma", "auto"]):
            with self.subTest(words):
                line = self.done("twelve.pgm", *BILATERAL, *words).out
                self.assertIn(f"  sigma {measured['sigma']:.4g} of 255 = {measured['sigma_pixels']:.4g} of 4095  "
                              f"sigma_range ", line)
                report = json.loads(self.done("twelve.pgm", *BILATERAL, *words, "--json").out)
                self.assertAlmostEqual(report["strengths"]["sigma"]["on_255"], measured["sigma"], 6)
                self.assertAlmostEqual(report["strengths"]["sigma"]["value"], measured["sigma_pixels"], 4)
                # What follows the noise is the same as if it had been given.
                self.done("twelve.pgm", *BILATERAL, "-o", "measured.pgm", *words)
                self.done("twelve.pgm", *BILATERAL, "-o", "given.pgm", "--sigma", str(measured["sigma"]))
                self.assertEqual(self.bytes_of("measured.pgm"), self.bytes_of("given.pgm"))

    def test_given_noise_is_not_measured(self) -> None:
        report = json.loads(self.done("gray.pgm", *BILATERAL, "--sigma", "10", "--json").out)
        self.assertEqual(report["strengths"]["sigma"], {"value": 10, "on_255": 10})
        self.assertAlmostEqual(report["strengths"]["sigma_range"]["value"], 24)  # 10 (2 + 10 / 25)
        self.assertAlmostEqual(float(report["params"]["sigma_space"]), 1.3)  # 1.2 + 10 / 100
        # A strength that is given needs no noise.
        report = json.loads(self.done("gray.pgm", *BILATERAL, "--sigma-range", "10", "--json").out)
        self.assertEqual(list(report["strengths"]), ["sigma_range"])
        self.assertEqual(report["params"]["sigma_space"], "3")

    def test_preset(self) -> None:
        report = json.loads(self.done("gray.pgm", "-m", "nlm", "--preset", "paper-003", "--patch", "3", "--json").out)
        params = report["params"]
        self.assertEqual((params["search"], params["patch"], params["self"], params["sigma"]),
                         ("whole-image", "3", "max", "0"))
        self.assertAlmostEqual(report["strengths"]["h"]["on_255"] / 255, 0.059, delta=0.00005)
        self.assertAlmostEqual(float(params["patch_sigma"]), 1.18, delta=0.002)
        # The order does not matter, and what is given stands.
        other = json.loads(self.done("gray.pgm", "--patch", "3", "-m", "nlm", "--preset=paper-003", "--json").out)
        self.assertEqual(other["params"], params)
        other = json.loads(self.done("gray.pgm", "-m", "nlm", "--preset", "paper-003", "--h", "20", "--search", "5",
                                     "--json").out)["params"]
        self.assertEqual((other["h"], other["search"], other["patch"]), ("20", "5", "7"))
        # [004]'s leaves the strength to the noise.
        other = json.loads(self.done("gray.pgm", "-m", "nlm", "--preset", "paper-004", "--sigma", "10", "--json").out)
        self.assertEqual((other["params"]["search"], other["params"]["patch"]), ("21", "7"))
        self.assertGreater(other["strengths"]["h"]["value"], 0)

    def test_zero_strength_returns_the_input(self) -> None:
        self.done("gray.pgm", *BILATERAL, "--sigma-range", "0", "-o", "out.pgm")
        self.assertEqual(self.bytes_of("gray.pgm"), self.bytes_of("out.pgm"))

    def test_nonfinite(self) -> None:
        image = picture(12, 9).scaled(1, whole=False)
        image.samples[40] = math.inf
        write_pfm(self.path("a.pfm"), image)
        line = self.done("a.pfm", "-o", "b.pfm").out
        self.assertIn("  1 pixels were not finite", line)
        self.assertTrue(all(map(math.isfinite, read_pfm(self.path("b.pfm")).samples)))
        self.done("a.pfm", "-o", "b.pfm", "--nonfinite", "keep")
        self.assertEqual(read_pfm(self.path("b.pfm")).samples[40], math.inf)


def roughness(image: Picture) -> float:
    pairs = itertools.pairwise(image.samples)
    return sum((a - b) ** 2 for a, b in pairs)


class Json(Workspace):
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
        self.assertEqual(set(first), self.KEYS)
        self.assertEqual((first["input"], first["output"], first["status"]), ("gray.pgm", "out/gray.pgm", "done"))
        self.assertEqual((first["width"], first["height"], first["type"], first["colour"]), (24, 18, "u8", "gray"))
        self.assertEqual((first["method"], first["device"], first["params"]["radius"]), ("bilateral", "cpu", "5"))
        self.assertEqual(first["strengths"], {"sigma_range": {"value": 30, "on_255": 30}})
        # The parts follow each other: they add up to what the file took.
        self.assertAlmostEqual(sum(first["parts_ms"].values()), 1e3 * first["seconds"], delta=2)
        strength = second["strengths"]["sigma_range"]
        self.assertAlmostEqual(strength["value"], 30 * 4095 / 255)
        self.assertAlmostEqual(strength["on_255"], 30)
        self.assertEqual((second["range"], second["type"]), (4095, "u16"))

    def test_skipped(self) -> None:
        self.done("gray.pgm", "--resume")
        result = self.done("gray.pgm", "--resume", "--json")
        self.assertEqual(json.loads(result.out),
                         {"input": "gray.pgm", "output": "gray.ungrain.pgm", "status": "skipped"})

    def test_names_that_are_not_text(self) -> None:
        name = os.fsencode(self.folder) + b"/caf\xe9.pgm"
        with open(name, "wb") as file:
            file.write(self.bytes_of("gray.pgm"))
        result = self.done(os.fsdecode(name), "--json")
        self.assertTrue(json.loads(result.out)["input"].endswith("caf�.pgm"))


class Resume(Workspace):
    def setUp(self) -> None:
        super().setUp()
        self.command = ("gray.pgm", "colour.ppm", "-o", "out", "--resume")
        self.done(*self.command)

    def statuses(self, *more: str) -> list[str]:
        result = self.done(*self.command, "--json", *more)
        return [json.loads(line)["status"] for line in result.out_lines]

    def test_same_again(self) -> None:
        self.assertEqual(self.statuses(), ["skipped", "skipped"])
        line = self.done(*self.command).out_lines[0]
        self.assertEqual(line, "gray.pgm -> out/gray.pgm  already done")

    def test_without_resume(self) -> None:
        result = self.done("gray.pgm", "-o", "out", "--json")
        self.assertEqual(json.loads(result.out)["status"], "done")

    def test_input_changed(self) -> None:
        write_pnm(self.path("gray.pgm"), picture(24, 18, seed=5))
        self.assertEqual(self.statuses(), ["done", "skipped"])
        self.assertEqual(self.statuses(), ["skipped", "skipped"])

    def test_parameters_changed(self) -> None:
        for more in (["-mbilateral", "--radius", "4"], ["-mbilateral", "--sigma-range", "31"], ["-mbox"],
                     ["--range", "200"], ["--device", "cpu"], ["--depth", "u16"], ["--nonfinite", "keep"],
                     ["-mbilateral", "--border", "wrap"]):
            with self.subTest(more):
                self.assertEqual(self.statuses(*more), ["done", "done"])
                self.assertEqual(self.statuses(*more), ["skipped", "skipped"])

    def test_speed_settings_do_not_count(self) -> None:
        self.assertEqual(self.statuses("--threads", "1", "--memory", "64M"), ["skipped", "skipped"])

    def test_output_deleted(self) -> None:
        self.path("out/colour.ppm").unlink()
        self.assertEqual(self.statuses(), ["skipped", "done"])

    def test_output_altered(self) -> None:
        data = self.bytes_of("out/gray.pgm")
        self.path("out/gray.pgm").write_bytes(data[:-1] + b"\0")
        self.assertEqual(self.statuses(), ["done", "skipped"])
        self.assertEqual(self.bytes_of("out/gray.pgm"), data)

    def test_journal_damaged(self) -> None:
        journal = self.path("out/.ungrain-done.jsonl")
        lines = sorted(journal.read_text().splitlines(keepends=True), key=lambda line: "gray.pgm" not in line)
        journal.write_text("not json\n[]\n{}\n" + lines[0] + lines[1][:40])
        self.assertEqual(self.statuses(), ["skipped", "done"])

    def test_in_place(self) -> None:
        # Once filtered, the file is its own result: a second filter would be a mistake.
        self.done("gray.pgm", "-o", "gray.pgm", "--resume")
        before = self.bytes_of("gray.pgm")
        self.assertIn("already done", self.done("gray.pgm", "-o", "gray.pgm", "--resume").out)
        self.assertEqual(self.bytes_of("gray.pgm"), before)


class Formats(Workspace):
    def copied(self, source: str, target: str, *more: str) -> None:
        self.done(source, "-o", target, "-q", *COPY, *more)

    def test_built_in_formats_keep_every_sample(self) -> None:
        image = picture(13, 7, 3)
        deep = image.scaled(65535)
        write_pnm(self.path("a.ppm"), deep)
        self.copied("a.ppm", "b.ppm")
        self.assertEqual(self.bytes_of("a.ppm"), self.bytes_of("b.ppm"))
        write_pfm(self.path("a.pfm"), image.scaled(1, whole=False))
        self.copied("a.pfm", "b.pfm")
        self.assertEqual(self.bytes_of("a.pfm"), self.bytes_of("b.pfm"))
        for kind, samples in (("u1", image), ("u2", deep), ("f2", image.scaled(1, False)),
                              ("f4", image.scaled(1, False))):
            with self.subTest(kind):
                write_npy(self.path("a.npy"), samples, kind)
                self.copied("a.npy", "b.npy")
                self.assertEqual(read_npy(self.path("b.npy")), read_npy(self.path("a.npy")))

    def test_twelve_bits_stay(self) -> None:
        write_pnm(self.path("a.pgm"), picture(9, 7).scaled(4095))
        self.copied("a.pgm", "b.pgm")
        self.assertEqual(self.bytes_of("a.pgm"), self.bytes_of("b.pgm"))

    def test_alpha_is_not_filtered(self) -> None:
        for channels, kind in ((2, "GRAYSCALE_ALPHA"), (4, "RGB_ALPHA")):
            with self.subTest(kind):
                image = picture(16, 12, channels)
                image.tuple_type = kind
                write_pnm(self.path("a.pam"), image)
                self.assertIn("+alpha", self.done("a.pam", "-o", "b.pam").out)
                after = read_pnm(self.path("b.pam"))
                self.assertEqual((after.channels, after.tuple_type), (channels, kind))
                self.assertEqual(after.samples[channels - 1::channels], image.samples[channels - 1::channels])
                self.assertNotEqual(after.samples[0::channels], image.samples[0::channels])

    def test_depth(self) -> None:
        samples = read_pnm(self.path("gray.pgm")).samples
        expected = {"u8": samples, "u16": [v * 257 for v in samples], "f32": [v / 255 for v in samples],
                    "f16": [v / 255 for v in samples]}
        for depth, values in expected.items():
            with self.subTest(depth):
                self.copied("gray.pgm", "b.npy", "--depth", depth)
                kind, image = read_npy(self.path("b.npy"))
                self.assertEqual(kind, depth[0] + str(int(depth[1:]) // 8))
                tolerance = {"f16": 1e-3, "f32": 1e-7}.get(depth, 0)
                self.assertLessEqual(max(abs(a - b) for a, b in zip(image.samples, values)), tolerance)

    def test_depth_goes_from_white_to_white(self) -> None:
        write_pnm(self.path("a.pgm"), Picture(3, 1, 1, [0, 2048, 4095], 4095))
        self.copied("a.pgm", "b.pgm", "--depth", "u8")
        self.assertEqual(read_pnm(self.path("b.pgm")), Picture(3, 1, 1, [0, 128, 255], 255))

    def test_conversion_is_told(self) -> None:
        write_pfm(self.path("a.pfm"), picture(9, 7).scaled(1, whole=False))
        line = self.done("a.pfm", "-o", "b.pgm").out
        self.assertIn("9x7 f32 gray -> u16", line)
        self.assertNotIn("gray ->", self.done("gray.pgm", "-o", "b.pgm").out)

    def test_f64_is_told(self) -> None:
        write_npy(self.path("a.npy"), picture(9, 7).scaled(1, whole=False), "f8")
        self.assertIn("(f64 samples converted to f32)", self.done("a.npy").out)

    def test_png(self) -> None:
        if reason := needs_format(".png"):
            self.skipTest(reason)
        for channels, white in itertools.product((1, 2, 3, 4), (255, 65535)):
            with self.subTest(channels=channels, white=white):
                image = picture(17, 11, channels).scaled(white)
                write_png(self.path("a.png"), image)
                self.copied("a.png", "b.png")
                self.assertEqual(read_png(self.path("b.png")), image)
        self.copied("gray.pgm", "c.png")
        self.assertEqual(read_png(self.path("c.png")).samples, read_pnm(self.path("gray.pgm")).samples)

    def test_each_page_has_noise_of_its_own(self) -> None:
        if problem := needs_format(".tif"):
            self.skipTest(problem)
        rough, smooth = picture(48, 36), picture(48, 36)
        smooth.samples = [round(100 + (v - 100) / 4) for v in smooth.samples]
        for method in ("bilateral", "adaptive-bilateral", "nlm", "nlm-bilateral"):
            with self.subTest(method):
                write_tiff(self.path("a.tif"), [rough, smooth, rough])
                self.done("a.tif", "-o", "b.tif", "-m", method)
                results = read_tiff(self.path("b.tif"))
                for page, result in zip((rough, smooth, rough), results, strict=True):
                    write_pnm(self.path("page.pgm"), page)
                    self.done("page.pgm", "-o", "page.pgm", "-m", method)
                    self.assertEqual(result.samples, read_pnm(self.path("page.pgm")).samples)

    def test_pages(self) -> None:
        if reason := needs_format(".tif"):
            self.skipTest(reason)
        pages = [picture(24, 18, seed=seed) for seed in (1, 2, 3)]
        write_tiff(self.path("a.tif"), pages)
        self.assertIn("24x18 u8 gray 3 pages", self.done("a.tif", "-o", "b.tif").out)
        results = read_tiff(self.path("b.tif"))
        self.assertEqual(len(results), 3)
        for page, result in zip(pages, results):
            write_pnm(self.path("page.pgm"), page)
            self.done("page.pgm", "-o", "page.pgm")
            self.assertEqual(result.samples, read_pnm(self.path("page.pgm")).samples)
        lines = self.done("compare", "a.tif", "b.tif", "--json").out_lines
        self.assertEqual([json.loads(line)["page"] for line in lines], [1, 2, 3])

    def test_deep_tiff(self) -> None:
        if reason := needs_format(".tif"):
            self.skipTest(reason)
        image = picture(24, 18, 3).scaled(65535)
        write_tiff(self.path("a.tif"), [image])
        self.copied("a.tif", "b.tif")
        self.assertEqual(read_tiff(self.path("b.tif")), [image])

    def test_colour_profile_and_resolution_are_kept(self) -> None:
        if reason := needs_format(".png"):
            self.skipTest(reason)
        if shutil.which("vips") is None:
            self.skipTest("there is no vips program to make a profile")
        write_png(self.path("a.png"), picture(16, 12, 3), png_chunk(b"pHYs", struct.pack(">IIB", 3000, 3000, 1)))
        vips = ["vips", "copy", self.path("a.png"), f"{self.path('b.tif')}[profile=srgb]"]
        if subprocess.run(vips, capture_output=True).returncode != 0:
            self.skipTest("vips does not make a profile")
        for name in ("c.tif", "c.png", "c.jpg"):
            with self.subTest(name):
                self.done("b.tif", "-o", name)
                self.assertEqual(self.header(name, "icc-profile-data"), self.header("b.tif", "icc-profile-data"))
                self.assertAlmostEqual(float(self.header(name, "xres")), 3, places=1)

    def header(self, name: str, field: str) -> bytes:
        done = subprocess.run(["vipsheader", "-f", field, self.path(name)], capture_output=True)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def test_exif_orientation_is_followed(self) -> None:
        if reason := needs_format(".jpg"):
            self.skipTest(reason)
        self.done("colour.ppm", "-o", "plain.jpg")
        self.path("turned.jpg").write_bytes(jpeg_with_exif(self.bytes_of("plain.jpg"), 6))
        self.done("turned.jpg", "-o", "out.jpg")
        self.assertEqual(orientation_in(self.bytes_of("out.jpg")), 1)
        report = json.loads(self.done("out.jpg", "--json").out)
        self.assertEqual((report["width"], report["height"]), (18, 24))


class Names(Workspace):
    def test_strange_names(self) -> None:
        for name in ("with space.pgm", "grün 图.pgm", "./-dash.pgm", "a'b\"c.pgm", "[1].pgm", "{}.pgm", "%s%n.pgm",
                     "{0}.pgm",
                     "a=b.pgm", "dots...pgm"):
            with self.subTest(name):
                write_pnm(self.path(name), picture(8, 6))
                result = self.done(name)
                self.assertEqual(len(result.out_lines), 1)
                stem = name.removesuffix(".pgm")
                self.assertIn(f"{name} -> {stem}.ungrain.pgm  ", result.out.replace("./[", "[").replace("./{", "{"))
                self.assertTrue(self.path(f"{stem}.ungrain.pgm").exists())

    def test_dash_after_two_dashes(self) -> None:
        write_pnm(self.path("-x.pgm"), picture(8, 6))
        self.done("-o", "out.pgm", "--", "-x.pgm")
        self.assertTrue(self.path("out.pgm").exists())

    def test_line_break(self) -> None:
        write_pnm(self.path("two\nlines.pgm"), picture(8, 6))
        result = self.done("two\nlines.pgm")
        self.assertEqual(len(result.out_lines), 1, result.out)
        self.assertTrue(self.path("two\nlines.ungrain.pgm").exists())
        self.assertEqual(len(self.done("two\nlines.pgm", "--resume").out_lines), 1)
        self.assertEqual(len(self.done("two\nlines.pgm", "--resume").out_lines), 1)
        self.assertEqual(len(self.done("compare", "two\nlines.pgm", "two\nlines.pgm").out_lines), 2)
        self.assertEqual(len(self.done("noise", "two\nlines.pgm", "-o", "n\n.pgm", "--gaussian", "1").out_lines), 1)
        report = json.loads(self.done("two\nlines.pgm", "--json").out)
        self.assertEqual(report["input"], "two\nlines.pgm")

    def test_a_file_called_as_a_command(self) -> None:
        write_pnm(self.path("noise"), picture(8, 6))
        self.done("./noise", "-o", "out.pgm")
        self.assertTrue(self.path("out.pgm").exists())

    def test_long_name(self) -> None:
        name = "n" * 240 + ".pgm"
        write_pnm(self.path(name), picture(8, 6))
        self.path("out").mkdir()
        self.done(name, "-o", "out")
        self.assertTrue(self.path(f"out/{name}").exists())
        self.assert_tidy()


class Streams(Workspace):
    """Standard streams that are closed, full, or a terminal."""

    def shell(self, line: str, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(["sh", "-c", line, PROGRAM, *arguments], cwd=self.folder, capture_output=True, timeout=20)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_closed(self) -> None:
        self.done("gray.pgm", "-o", "expected.pgm")
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                code, _, errors = self.shell(f'"$0" "$@" {closed}', "gray.pgm", "-o", "out.pgm")
                self.assertEqual((code, errors), (0, ""))
                self.assertEqual(self.bytes_of("out.pgm"), self.bytes_of("expected.pgm"))
                self.assertEqual(self.shell(f'"$0" "$@" {closed}', "missing.pgm", "-o", "out.pgm")[0], 1)
                self.assertEqual(self.bytes_of("out.pgm"), self.bytes_of("expected.pgm"))
        self.assert_tidy()

    def test_reader_goes_away(self) -> None:
        names = []
        for number in range(12):
            names.append(f"{number}.pgm")
            write_pnm(self.path(names[-1]), picture(8, 6))
        code, _, errors = self.shell('{ "$0" "$@"; echo $? >&2; } | head -c 1', *names, "-o", "out", "--json")
        self.assertEqual((code, errors), (0, "0\n"))
        self.assertEqual(len(list(self.path("out").glob("[0-9]*.pgm"))), 12)
        self.assert_tidy()
        self.assertEqual(self.shell('{ "$0" "$@"; } | true', "methods", "--json")[2], "")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_full(self) -> None:
        code, _, errors = self.shell('"$0" "$@" > /dev/full', "gray.pgm", "colour.ppm")
        self.assertEqual(code, 1)
        self.assertEqual(errors, "ungrain: the standard output cannot be written: No space left on device\n")
        self.assertTrue(self.path("gray.ungrain.pgm").exists() and self.path("colour.ungrain.ppm").exists())
        for command in (["methods"], ["devices", "--json"], ["--help"], ["compare", "gray.pgm", "gray.pgm"]):
            with self.subTest(command):
                self.assertEqual(self.shell('"$0" "$@" > /dev/full', *command)[0], 1)
        # Nobody can be told; the status is what is left.
        self.assertEqual(self.shell('"$0" "$@" 2> /dev/full', "missing.pgm")[0], 1)
        self.assertEqual(self.shell('"$0" "$@" 2> /dev/full', "--bogus")[0], 2)
        self.assertEqual(self.shell('"$0" "$@" > /dev/full 2>&1', "missing.pgm", "gray.pgm")[0], 1)
        self.assert_tidy()

    def on_terminal(self, *arguments: str, columns: int = 100) -> tuple[int, str, str]:
        """Status, standard output, and what a terminal as standard error was sent."""
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had: {error}")
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
        self.assertEqual((code, len(out.splitlines())), (0, 4))
        self.assertRegex(shown, r"\r\d/4 \d\.pgm \[#*\.*\] +\d+%  \d+\.\d Mpixel/s  (\d+:\d\d|-:--) left\x1b\[K")
        percents = [int(text) for text in re.findall(r"(\d+)%", shown)]
        self.assertEqual(percents, sorted(percents))
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown[-80:]))

    def test_progress_bar(self) -> None:
        for number in range(2):
            write_pnm(self.path(f"{number}.pgm"), picture(96, 72))
        command = ("0.pgm", "1.pgm", *SLOW, "--radius", "14")
        code, out, shown = self.on_terminal(*command)
        self.assertEqual((code, len(out.splitlines())), (0, 2))
        self.assertRegex(shown, r"\r1/2 0\.pgm \[#*\.*\] +\d+%  \d+\.\d Mpixel/s  (\d+:\d\d|-:--) left\x1b\[K")
        self.assertRegex(shown, r"\r2/2 1\.pgm \[#+\.*\] +\d+%  \d+\.\d Mpixel/s  \d+:\d\d left")
        percents = [int(text) for text in re.findall(r"(\d+)%", shown)]
        self.assertEqual(percents, sorted(percents))
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown[-40:]))
        for text in re.split(r"\r|\x1b\[K", shown):
            self.assertLess(len(text), 100)
        self.assertEqual(shown.count("\n"), 0)

        self.assertEqual(self.on_terminal(*command, "-q")[2], "")
        self.assertEqual(self.on_terminal(*command, "--resume")[0], 0)

    def test_progress_bar_and_errors(self) -> None:
        code, _, shown = self.on_terminal("missing.pgm", "gray.pgm", "nor.pgm")
        self.assertEqual(code, 1)
        self.assertIn("\r\x1b[Kungrain: missing.pgm: there is no such file\r\n", shown)
        self.assertTrue(shown.endswith("ungrain: 2 of 3 files failed, the others are done\r\n"), shown)

    def test_narrow_terminal_and_long_name(self) -> None:
        name = "ü" * 60 + ".pgm"
        write_pnm(self.path(name), picture(8, 6))
        for columns in (1, 20, 41, 60, 61, 62, 300):
            with self.subTest(columns):
                code, _, shown = self.on_terminal(name, columns=columns)
                self.assertEqual(code, 0)
                for text in re.split(r"\r|\x1b\[K", shown):
                    self.assertLess(len(text), max(columns, 2))


class Noise(Workspace):
    KINDS = {"gaussian": "25", "salt-pepper": "0.1", "speckle": "0.2", "quantization": "4", "poisson": "30"}

    def noisy(self, *arguments: str) -> bytes:
        self.done("noise", "gray.pgm", "-o", "noisy.pgm", *arguments)
        return self.bytes_of("noisy.pgm")

    def test_seed(self) -> None:
        for kind, amount in self.KINDS.items():
            with self.subTest(kind):
                first = self.noisy(f"--{kind}", amount, "--seed", "7")
                self.assertNotEqual(first, self.bytes_of("gray.pgm"))
                self.assertEqual(self.noisy(f"--{kind}", amount, "--seed", "7"), first)
                other = self.noisy(f"--{kind}", amount, "--seed", "8")
                (self.assertEqual if kind == "quantization" else self.assertNotEqual)(other, first)
        self.assertEqual(self.noisy("--gaussian", "9"), self.noisy("--gaussian", "9", "--seed", "0"))

    def test_line(self) -> None:
        result = self.done("noise", "gray.pgm", "-o", "n.pgm", "--gaussian", "12.5")
        self.assertEqual(result.out, "gray.pgm -> n.pgm  gaussian 12.5\n")

    def test_nothing_added(self) -> None:
        self.assertEqual(self.noisy("--gaussian", "0"), self.bytes_of("gray.pgm"))

    def test_amount_is_on_the_scale_of_8_bits(self) -> None:
        flat = Picture(64, 64, 1, [0.5] * 4096, 1)
        write_pfm(self.path("flat.pfm"), flat)
        for more, expected in (([], 20 / 255), (["--range", "1000"], 20 / 255 * 1000)):
            with self.subTest(more):
                self.done("noise", "flat.pfm", "-o", "n.pfm", "--gaussian", "20", *more)
                values = read_pfm(self.path("n.pfm")).samples
                deviation = math.sqrt(sum((v - 0.5) ** 2 for v in values) / len(values))
                self.assertAlmostEqual(deviation / expected, 1, delta=0.05)

    def test_depth(self) -> None:
        self.done("noise", "gray.pgm", "-o", "n.npy", "--gaussian", "200", "--depth", "f32")
        kind, image = read_npy(self.path("n.npy"))
        self.assertEqual(kind, "f4")
        self.assertLess(min(image.samples), 0, "float is not clipped")

    def test_in_place(self) -> None:
        expected = self.noisy("--speckle", "0.2")
        self.done("noise", "gray.pgm", "-o", "gray.pgm", "--speckle", "0.2")
        self.assertEqual(self.bytes_of("gray.pgm"), expected)

    def test_camera(self) -> None:
        line = self.done("noise", "colour.ppm", "-o", "n.ppm", "--camera").out
        self.assertEqual(line, "colour.ppm -> n.ppm  camera ISO 1600 gradient\n")
        first = self.bytes_of("n.ppm")
        for same, options in ((True, "--iso 1600 --demosaic gradient --seed 0"), (False, "--iso 3200"),
                              (False, "--demosaic bilinear"), (False, "--seed 1"), (False, "--noiseless")):
            with self.subTest(options):
                self.done("noise", "colour.ppm", "-o", "n.ppm", "--camera", *options.split())
                (self.assertEqual if same else self.assertNotEqual)(self.bytes_of("n.ppm"), first)
        self.assertEqual(self.noisy("--camera", "--noiseless", "--seed", "1"), self.noisy("--camera", "--noiseless"))

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
            self.assertEqual(one[y * wide:y * wide + inside], other[y * narrow:y * narrow + inside], f"row {y}")

    def test_quality(self) -> None:
        if reason := needs_format(".jpg"):
            self.skipTest(reason)
        sizes = []
        for quality in ("95", "40"):
            self.done("noise", "colour.ppm", "-o", "n.jpg", "--camera", "--jpeg-quality", quality)
            sizes.append(len(self.bytes_of("n.jpg")))
        self.assertGreater(sizes[0], sizes[1])


class Compare(Workspace):
    def test_identical(self) -> None:
        lines = self.done("compare", "gray.pgm", "gray.pgm").out_lines
        self.assertEqual(lines[0].split(), ["PSNR", "dB", "SSIM", "FSIM", "FSIMc", "MSE", "max-abs", "file"])
        self.assertEqual(lines[1].split(), ["inf", "1.000000", "1.000000", "-", "0", "0", "gray.pgm"])

    def test_json(self) -> None:
        self.done("noise", "gray.pgm", "-o", "n.pgm", "--gaussian", "20")
        same, noisy = map(json.loads, self.done("compare", "gray.pgm", "gray.pgm", "n.pgm", "--json").out_lines)
        self.assertEqual(same, {"truth": "gray.pgm", "file": "gray.pgm", "psnr": "inf", "ssim": 1.0, "fsim": 1.0,
                                "fsimc": None, "mse": 0.0, "max_abs": 0.0})
        differences = [a - b for a, b in zip(read_pnm(self.path("gray.pgm")).samples,
                                             read_pnm(self.path("n.pgm")).samples)]
        mse = sum(d * d for d in differences) / len(differences)
        self.assertAlmostEqual(noisy["mse"], mse)
        self.assertAlmostEqual(noisy["psnr"], 10 * math.log10(255**2 / mse))
        self.assertEqual(noisy["max_abs"], max(map(abs, differences)))
        self.assertLess(noisy["ssim"], 1)
        self.assertLess(noisy["fsim"], 1)

    def test_too_small_for_ssim(self) -> None:
        write_pnm(self.path("small.pgm"), picture(10, 40))
        self.assertEqual(self.done("compare", "small.pgm", "small.pgm").out_lines[1].split()[1], "-")
        self.assertIsNone(json.loads(self.done("compare", "--json", "small.pgm", "small.pgm").out)["ssim"])
        write_pnm(self.path("enough.pgm"), picture(11, 11))
        self.assertEqual(self.done("compare", "enough.pgm", "enough.pgm").out_lines[1].split()[1], "1.000000")

    def test_fsim_of_colour_and_of_small_images(self) -> None:
        self.assertEqual(self.done("compare", "colour.ppm", "colour.ppm").out_lines[1].split()[2:4],
                         ["1.000000", "1.000000"])
        write_pnm(self.path("small.pgm"), picture(15, 40))
        self.assertEqual(self.done("compare", "small.pgm", "small.pgm").out_lines[1].split()[2:4], ["-", "-"])
        self.assertIsNone(json.loads(self.done("compare", "--json", "small.pgm", "small.pgm").out)["fsim"])

    def test_other_white_level(self) -> None:
        image = read_pnm(self.path("gray.pgm"))
        write_pnm(self.path("deep.pgm"), image.scaled(65535))
        self.assertEqual(self.done("compare", "gray.pgm", "deep.pgm").out_lines[1].split()[0], "inf")
        write_npy(self.path("a.npy"), image.scaled(1, whole=False))
        values = json.loads(self.done("compare", "gray.pgm", "a.npy", "--json").out)
        self.assertLess(values["max_abs"], 1e-4)

    def test_range(self) -> None:
        write_pfm(self.path("a.pfm"), picture(12, 12))
        other = picture(12, 12)
        other.samples[0] += 1
        write_pfm(self.path("b.pfm"), other)
        found = json.loads(self.done("compare", "a.pfm", "b.pfm", "--json").out)  # 255, by the values
        one = json.loads(self.done("compare", "a.pfm", "b.pfm", "--json", "--range", "1").out)
        wide = json.loads(self.done("compare", "a.pfm", "b.pfm", "--json", "--range", "255").out)
        self.assertAlmostEqual(wide["psnr"] - one["psnr"], 20 * math.log10(255))
        self.assertEqual(found["psnr"], wide["psnr"])


class Estimate(Workspace):
    def test_gray_and_colour(self) -> None:
        self.done("demo", "--size", "240x160", "--gaussian", "20", "-o", "demo")
        noisy = next(pathlib.Path(self.path("demo")).glob("noisy.*"))  # .png, or .ppm without libvips
        lines = self.done("estimate", str(noisy), "gray.pgm").out_lines
        self.assertEqual(len(lines), 3)
        self.assertAlmostEqual(float(lines[1].split()[0]), 20, delta=2)
        self.assertEqual(len(lines[1].split()), 7, "both scales, three channels, what it is like, the file")
        self.assertEqual((lines[2].split()[2], lines[2].split()[-1]), ("-", "gray.pgm"))

    def test_json(self) -> None:
        estimate = json.loads(self.done("estimate", "colour.ppm", "--json").out)
        self.assertEqual(sorted(estimate), ["channels", "file", "finding", "sigma", "sigma_pixels", "white"])
        self.assertEqual(estimate["white"], 255)
        self.assertEqual(estimate["sigma"], estimate["sigma_pixels"])
        squares = sum(sigma * sigma for sigma in estimate["channels"])
        self.assertAlmostEqual(estimate["sigma"], math.sqrt(squares / 3))

    def test_the_noise_by_level_and_frequency(self) -> None:
        result = self.done("estimate", "colour.ppm", "--model")
        self.assertRegex(result.out_lines[2], r"^ +noise: \d.*; \d+ of \d+ levels show noise without texture")
        self.assertRegex(result.out_lines[3], r"^ +channel 0, deviation in low / middle / high frequencies: \d")
        self.assertEqual(len(result.out_lines), 6)
        model = json.loads(self.done("estimate", "colour.ppm", "--model", "--json").out)["model"]
        self.assertEqual(sorted(model), ["calm_levels", "channels", "finding", "levels", "limited_by_colour", "limited_by_iso"])
        self.assertEqual(len(model["channels"]), 3)
        for channel in model["channels"]:
            self.assertEqual(len(channel["spectrum"]), 64)
            self.assertEqual(len(channel["levels"]), len(channel["deviations"]))

    def test_range(self) -> None:
        write_pfm(self.path("a.pfm"), picture(60, 40))
        found = json.loads(self.done("estimate", "a.pfm", "--json").out)
        one = json.loads(self.done("estimate", "a.pfm", "--json", "--range", "1").out)
        wide = json.loads(self.done("estimate", "a.pfm", "--json", "--range", "510").out)
        self.assertAlmostEqual(wide["sigma"], wide["sigma_pixels"] / 2)
        self.assertAlmostEqual(one["sigma"], one["sigma_pixels"] * 255)
        self.assertEqual((found["white"], found["sigma"]), (255, found["sigma_pixels"]))

    def test_one_bad_file_among_good_ones(self) -> None:
        result = self.run_here("estimate", "gray.pgm", "missing.pgm", "colour.ppm", "--json")
        self.assertEqual(result.code, 1)
        self.assertEqual([json.loads(line)["file"] for line in result.out_lines], ["gray.pgm", "colour.ppm"])


class Tell(Workspace):
    """methods, devices, help, version, demo."""

    def all_methods(self) -> list[dict]:
        return [json.loads(line) for line in self.done("methods", "--json").out_lines]

    def methods(self) -> list[dict]:
        return [method for method in self.all_methods() if method["for"] == "images"]

    def test_methods(self) -> None:
        listed = self.done("methods").out
        for method in self.all_methods():
            self.assertRegex(listed, rf"(?m)^{method['name']} +{re.escape(method['summary'])} \[")
            told = self.done("methods", method["name"]).out
            for param in method["params"]:
                with self.subTest(method=method["name"], option=param["option"]):
                    self.assertRegex(param["takes"], r"number|one of|image")
                    self.assertTrue(param["default"])
                    self.assertRegex(told, rf"(?m)^  {param['option']} +{re.escape(param['help'])}$")
                    self.assertIn(param["takes"], told)
                    self.assertIn(f"default {param['default']}\n", told)
            only = self.done("methods", method["name"], "--json").out
            self.assertEqual(json.loads(only), method)
        self.assertIn("bilateral", [method["name"] for method in self.all_methods()])

    def test_markdown(self) -> None:
        text = self.done("methods", "--markdown").out
        for method in self.all_methods():
            self.assertIn(f"\n## {method['name']}\n", text)
        page = REPOSITORY / "docs/methods.md"
        if not page.exists():
            self.skipTest("docs/methods.md is not there yet")
        expected = page.read_text()
        if not any(method["cuda"] for method in self.all_methods()):  # this build has none
            expected = expected.replace(", cuda.", ".")
        self.assertEqual(expected, text, "docs/methods.md is not what ungrain methods --markdown prints")

    def test_every_method_runs(self) -> None:
        for method in self.methods():
            for device in ("reference", "cpu"):
                if not method[device]:
                    continue
                with self.subTest(method=method["name"], device=device):
                    report = json.loads(self.done("colour.ppm", "-m", method["name"], "-d", device, "--json").out)
                    self.assertEqual((report["method"], report["device"]), (method["name"], device))
                    for param in method["params"]:
                        self.assertIn(param["name"], report["params"])

    def test_quality_chooses_the_method(self) -> None:
        for quality, method, profile in (("fast", "bm3d", "fast"), ("normal", "bm3d", "normal"), ("best", "ridge", "normal")):
            report = json.loads(self.done("gray.pgm", "--quality", quality, "--sigma", "20", "--json").out)
            self.assertEqual((report["method"], report["params"]["profile"]), (method, profile))
        self.done("gray.pgm", "-m", "bilateral", "--quality", "grid", "--sigma", "20")  # its own

    def test_every_option_is_taken(self) -> None:
        """The default that is told is a value that the option takes."""
        for method in self.methods():
            for param in method["params"]:
                value = param["default"] if re.fullmatch(r"[\w.-]+", param["default"]) else "auto"
                with self.subTest(method=method["name"], option=param["option"], value=value):
                    self.done("gray.pgm", "-m", method["name"], param["option"], value)

    def test_devices(self) -> None:
        listed = self.done("devices").out
        described = [json.loads(line) for line in self.done("devices", "--json").out_lines]
        self.assertLessEqual({"cpu", "reference"}, {device["device"] for device in described})
        for device in described:
            self.assertEqual(set(device), {"device", "description", "usable", "reason"})
            self.assertEqual(device["usable"], device["reason"] == "")
            self.assertRegex(listed, rf"(?m)^{device['device']} +\S")

    COMMANDS = ("denoise", "video", "noise", "compare", "methods", "devices", "demo")

    def test_cluster_without_python_is_one_line(self) -> None:
        for python, told in (("/nowhere/python", "cannot be run"), (self.python_without_packages(), "needs the Python package")):
            result = self.run_here("cluster", "in.zarr", "out.zarr", env={**os.environ, "UNGRAIN_PYTHON": python})
            self.assertEqual((result.code, result.out, len(result.err_lines)), (1, "", 1))
            self.assertIn(told, result.err)
        self.assertIn("pip install '.[dask]' in ungrain's source folder", result.err)
        self.assertRegex(self.done("--help").out, r"(?m)^  cluster +\w")

    def test_cluster_reads_its_options_before_python(self) -> None:
        nowhere = {**os.environ, "UNGRAIN_PYTHON": "/nowhere/python"}
        self.assertIn("--scheduler ADDRESS", self.done("cluster", "--help", env=nowhere).out)
        for words, told in ((("--method", "nlm", "--patch", "4"), "--patch takes an odd whole number from 1 to 31, or auto"),
                            (("--patch", "5", "--method", "box"), "--patch is an option of nlm, nlm-bilateral, bm3d, ridge, not"),
                            (("--workrs", "4"), "no option --workrs; did you mean --workers?"),
                            (("--block", "0"), "--block: takes a whole number from 1 up, got '0'"),
                            (("--workers", "1", "--scheduler", "tcp://a:1"), "--scheduler and --workers exclude each other")):
            with self.subTest(words):
                result = self.run_here("cluster", "in.zarr", "out.zarr", *words, env=nowhere)
                self.assertEqual((result.code, result.out, len(result.err_lines)), (2, "", 1))
                self.assertIn(told, result.err)

    def test_cluster_hands_over_what_it_read(self) -> None:
        """A Python that prints its last argument stands in for the real one; names need not be UTF-8."""
        path = self.path("python-that-tells")
        path.write_text('#!/bin/sh\nfor last; do :; done\nprintf %s "$last"\n')
        path.chmod(0o755)
        done = subprocess.run([PROGRAM, "cluster", b'in\xff"\\.zarr', "out.zarr", "--radius=2", "--axis", "0,-1", "-m", "box",
                               "--range", "4095", "--dashboard", "8787", "--worker-memory", "2G", "-q"],
                              cwd=self.folder, env={**os.environ, "UNGRAIN_PYTHON": str(path)}, capture_output=True, check=True)
        self.assertEqual(json.loads(os.fsdecode(done.stdout)), {
            "input": os.fsdecode(b'in\xff"\\.zarr'), "output": "out.zarr", "scheduler": None, "workers": None,
            "worker_memory": 2 << 30, "dashboard": "127.0.0.1:8787", "block": 4096, "chunk": None, "axis": [0, -1],
            "channel_axis": None, "volume": False, "spacing": None, "channels": "auto", "range": 4095.0, "device": "auto", "nonfinite": "fill", "threads": 1,
            "memory": 0, "overwrite": False, "quiet": True, "method": "box", "preset": None, "words": {"radius": "2"}})

    def python_without_packages(self) -> str:
        path = self.path("python-alone")
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
        path.chmod(0o755)
        return str(path)

    def test_help(self) -> None:
        for text in (self.done("--help").out, self.done("-h").out, self.done("help").out):
            for command in self.COMMANDS:
                self.assertRegex(text, rf"(?m)^  {command} +\w")
        for command in self.COMMANDS:
            for flag in ("--help", "-h"):
                with self.subTest(command):
                    text = self.done(command, flag).out
                    self.assertIn("Usage: ungrain", text)
                    # Whatever takes a value tells its default; noise's kinds and its output have none.
                    kinds = r"--(gaussian|salt-pepper|speckle|quantization|poisson|output)\b"
                    without = kinds if command == "noise" else "$^"
                    for line in re.findall(r"(?m)^  (-.*)$", text):
                        takes_value = re.match(r"(-\w,)?--[\w-]+ [A-Zx]+ ", line) or "(a " in line or "(one of" in line
                        if takes_value and not re.search(without, line):
                            self.assertIn("default", line)
        self.assertEqual(self.done("gray.pgm", "--help").out, self.done("denoise", "--help").out)

    def test_help_of_every_method(self) -> None:
        defaults = set()
        for method in self.methods():
            text = self.done("--method", method["name"], "--help").out
            defaults.add(re.search(r"--method NAME .*\(default (\w+)\)", text)[1])
            for param in method["params"]:
                with self.subTest(method=method["name"], option=param["option"]):
                    line = re.search(rf"(?m)^  {param['option']} .*$", text)
                    self.assertIsNotNone(line)
                    self.assertIn(param["help"], line[0])
                    self.assertIn(param["takes"], line[0])
                    self.assertIn(f"default {param['default']}", line[0])
        self.assertEqual(len(defaults), 1, "the default does not depend on what was chosen")

    def test_help_of_every_method_for_volumes(self) -> None:
        for method in self.all_methods():
            if method["for"] != "volumes":
                continue
            text = self.done("volume", "--method", method["name"], "--help").out
            for param in method["params"]:
                with self.subTest(method=method["name"], option=param["option"]):
                    self.assertRegex(text, rf"(?m)^  {param['option']} .*{re.escape(param['help'])}")
            self.assertIn(f"{method['name']} is not for images", self.run_here("gray.pgm", "-m", method["name"]).err)
        self.assertIn("bm3d is not for volumes", self.run_here("volume", "gray.pgm", "-m", "bm3d").err)

    def test_help_writes_nothing(self) -> None:
        before = sorted(os.listdir(self.folder))
        self.done("gray.pgm", "-o", "out/", "--help")
        self.done("demo", "--help")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_version(self) -> None:
        for word in ("--version", "-V", "version"):
            self.assertRegex(self.done(word).out, r"\Aungrain \d+\.\d+\.\d+\S*\n\Z")

    def test_formats_that_are_only_read(self) -> None:
        with open(self.path("scan.pbm"), "wb") as file:
            file.write(b"P4\n9 2\n\xff\x80\x00\x00")
        self.assertIn("scan.pbm -> scan.ungrain.pgm", self.done("scan.pbm").out)
        self.done("scan.pbm", "-o", "clean/")
        self.assertEqual(self.bytes_of("clean/scan.pgm"), self.bytes_of("scan.ungrain.pgm"))

    def test_demo(self) -> None:
        extension = ".png" if writes(".png") else ".ppm"
        result = self.done("demo", "--size", "96x64", "-o", "pictures")
        rows = {line.split()[0]: float(line.split()[1]) for line in result.out_lines[1:-1]}
        names = [method["name"] for method in self.methods()]
        self.assertEqual(list(rows), ["(noisy)", *names])
        self.assertGreater(rows["bilateral"], rows["(noisy)"] + 2)
        expected = ["clean", "noisy", *names, *(f"{name}-residual" for name in names)]
        self.assertEqual(sorted(os.listdir(self.path("pictures"))), sorted(name + extension for name in expected))
        if extension == ".png":
            self.assertEqual((read_png(self.path("pictures/noisy.png")).width), 96)
            # The table says what compare says of the files.
            told = json.loads(self.done("compare", "pictures/clean.png", "pictures/bilateral.png", "--json").out)
            self.assertAlmostEqual(told["psnr"], rows["bilateral"], delta=0.006)

    def test_demo_options(self) -> None:
        first = self.done("demo", "--size", "32x24", "-o", "a", "--gray", "--seed", "3", "--gaussian", "10", "-d",
                          "reference")
        self.assertIn("32 x 24, gaussian noise 10 of 255, seed 3", first.out)
        self.done("demo", "--size", "32x24", "-o", "b", "--gray", "--seed", "3", "--gaussian", "10")
        self.done("demo", "--size", "32x24", "-o", "c", "--gray", "--seed", "4", "--gaussian", "10")
        name = "noisy.png" if writes(".png") else "noisy.pgm"
        self.assertEqual(self.bytes_of(f"a/{name}"), self.bytes_of(f"b/{name}"))
        self.assertNotEqual(self.bytes_of(f"a/{name}"), self.bytes_of(f"c/{name}"))
        self.done("demo", "--size", "1x1", "-o", "d")


if __name__ == "__main__":
    unittest.main()
