"""Noise that the user knows: --psd and --noise-kernel."""

from __future__ import annotations

import json
import math
import random

import pytest

from support import Picture, Workspace, read_pnm, write_npy, write_pfm, write_pnm


def deviation(image: Picture) -> float:
    mean = sum(image.samples) / len(image.samples)
    return math.sqrt(sum((value - mean) ** 2 for value in image.samples) / len(image.samples))


def blurred_noise(sigma: float, width: int = 96, height: int = 80, level: float = 128) -> Picture:
    """White noise under a 3 x 3 box, of deviation `sigma` in the end, 8 bits."""
    chance = random.Random(5)
    white = [[chance.gauss(0, sigma / 3) for _ in range(width + 2)] for _ in range(height + 2)]
    values = [min(255, max(0, round(level + sum(white[y + b][x + a] for b in range(3) for a in range(3)))))
              for y in range(height) for x in range(width)]
    return Picture(width, height, 1, values, 255)


def box_psd(sigma: float, size: int = 32) -> Picture:
    """The density of that noise."""
    along = [(1 + 2 * math.cos(2 * math.pi * n / size)) ** 2 for n in range(size)]
    return Picture(size, size, 1, [sigma * sigma / 9 * u * v for v in along for u in along], 1.0)


class TestGivenNoise(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        write_pnm(self.path("a.pgm"), blurred_noise(12))
        write_npy(self.path("psd.npy"), box_psd(12))
        write_pfm(self.path("psd.pfm"), box_psd(12))
        write_pnm(self.path("box.pgm"), Picture(3, 3, 1, [7] * 9, 255))

    def test_known_noise_goes(self) -> None:
        self.done("a.pgm", "-o", "white.pgm", "--sigma", "12")
        left = deviation(read_pnm(self.path("white.pgm")))
        for name, options in (("psd", ("--psd", "psd.npy")), ("pfm", ("--psd", "psd.pfm")),
                              ("kernel", ("--noise-kernel", "box.pgm", "--sigma", "12"))):
            self.done("a.pgm", "-o", f"{name}.pgm", *options)
            assert deviation(read_pnm(self.path(f"{name}.pgm"))) < left / 2, name
        # The same noise, told in three ways.
        results = [read_pnm(self.path(f"{name}.pgm")).samples for name in ("psd", "pfm", "kernel")]
        assert results[0] == results[1]
        assert max(abs(a - b) for a, b in zip(results[0], results[2])) <= 1

    def test_other_methods_take_the_deviation(self) -> None:
        self.done("a.pgm", "-o", "b.pgm", "--method", "nlm", "--psd", "psd.npy")
        assert deviation(read_pnm(self.path("b.pgm"))) < deviation(read_pnm(self.path("a.pgm")))

    def test_options_that_exclude_each_other(self) -> None:
        self.path("m.json").write_text("{}")
        for options, message in (
                (("--psd", "psd.npy", "--sigma", "12"), "--psd and --sigma exclude each other"),
                (("--psd", "psd.npy", "--noise-model", "m.json"), "--noise-model and --psd exclude each other"),
                (("--psd", "psd.npy", "--noise", "auto"), "--noise and --psd exclude each other"),
                (("--psd", "psd.npy", "--gain", "2"), "--gain belongs to --noise poisson-gaussian"),
                (("--psd", "psd.npy", "--noise-kernel", "box.pgm", "--sigma", "12"), "--psd and"),
                (("--noise-kernel", "box.pgm"), "--noise-kernel needs --sigma, the deviation of the noise in the image"),
                (("--noise-kernel", "box.pgm", "--sigma", "1,2"), "--sigma takes")):
            result = self.run_here("a.pgm", "-o", "b.pgm", *options)
            assert (result.code, len(result.err_lines)) == (2, 1), (options, result.err)
            assert message in result.err
            assert not self.path("b.pgm").exists()

    def test_files_that_tell_no_noise(self) -> None:
        write_npy(self.path("negative.npy"), Picture(4, 4, 1, [-1.0] * 16, 1.0))
        write_npy(self.path("three.npy"), Picture(4, 4, 3, [1.0] * 48, 1.0))
        write_pnm(self.path("none.pgm"), Picture(3, 3, 1, [0] * 9, 255))
        for options, message in (
                (("--psd", "negative.npy"), "negative.npy: a power spectral density is 0 or more, got -1"),
                (("--psd", "three.npy"), "three.npy: a power spectral density has 1 channel or one for each of 1, got 3"),
                (("--psd", "missing.npy"), "missing.npy"),
                (("--noise-kernel", "none.pgm", "--sigma", "5"), "none.pgm: a noise kernel has a number that is not 0")):
            result = self.run_here("a.pgm", "-o", "b.pgm", *options)
            assert (result.code, len(result.err_lines)) == (1, 1), (options, result.err)
            assert message in result.err
            assert not self.path("b.pgm").exists()

    def test_a_saved_model_keeps_it(self) -> None:
        write_pnm(self.path("even.pgm"), blurred_noise(12))
        self.done("estimate", "even.pgm", "--save", "m.json")
        model = json.loads(self.path("m.json").read_text())
        channel = model["channels"][0]
        correlation = [(3 - abs(x)) * (3 - abs(y)) / 9 for y in range(-2, 3) for x in range(-2, 3)]
        channel.update(levels=[0], deviations=[12], spectrum=[1] * 64, correlation=correlation)
        self.path("m.json").write_text(json.dumps(model))
        self.done("a.pgm", "-o", "model.pgm", "--noise-model", "m.json", "--scales", "1")
        self.done("a.pgm", "-o", "kernel.pgm", "--noise-kernel", "box.pgm", "--sigma", "12", "--scales", "1")
        pairs = zip(read_pnm(self.path("model.pgm")).samples, read_pnm(self.path("kernel.pgm")).samples)
        assert max(abs(a - b) for a, b in pairs) <= 1
        channel["correlation"] = correlation[1:]
        self.path("m.json").write_text(json.dumps(model))
        result = self.run_here("a.pgm", "-o", "b.pgm", "--noise-model", "m.json")
        assert (result.code, len(result.err_lines)) == (1, 1), result.err
        assert "a noise model's correlation is a square of" in result.err
