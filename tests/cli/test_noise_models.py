"""Models of noise: measured, calibrated, saved, shown."""

from __future__ import annotations

import json
import random
import re

import pytest

from support import Picture, Workspace, page_data, picture, read_pfm, read_pnm, write_pfm, write_pnm, write_tiff


def noisy(level: float, sigma: float, seed: int, width: int = 96, height: int = 64) -> Picture:
    """An even gray with white noise, 8 bits."""
    chance = random.Random(seed)
    values = [min(255, max(0, round(chance.gauss(level, sigma)))) for _ in range(width * height)]
    return Picture(width, height, 1, values, 255)


class TestCalibration(Workspace):
    def test_dark_and_flat_frames(self) -> None:
        write_pnm(self.path("dark.pgm"), noisy(20, 3, 1))
        write_pnm(self.path("flat.pgm"), noisy(180, 11, 2))
        result = self.done("estimate", "dark.pgm", "flat.pgm", "--frames", "even", "--save", "camera.json")
        assert "noise measured in 2 even frames" in result.out
        model = json.loads(self.path("camera.json").read_text())
        assert (model["ungrain"], model["white"], model["colour"]) == ("noise model", 255, "gray")
        levels, deviations = model["channels"][0]["levels"], model["channels"][0]["deviations"]
        assert levels[0] == pytest.approx(20, abs=1)
        assert deviations[0] == pytest.approx(3, abs=0.3)
        assert levels[1] == pytest.approx(180, abs=1)
        assert deviations[1] == pytest.approx(11, abs=1)
        assert levels[2] == 255

    def test_still_frames_are_all_pages_of_all_files(self) -> None:
        write_tiff(self.path("stack.tif"), [noisy(100, 6, seed) for seed in range(3)])
        line = self.done("estimate", "stack.tif", "--frames", "still", "--json").out
        channel = json.loads(line)["model"]["channels"][0]
        for deviation in channel["deviations"]:
            assert deviation == pytest.approx(6, abs=1)

    def test_a_model_that_cannot_be_written(self) -> None:
        write_pnm(self.path("a.pgm"), noisy(100, 6, 1))
        for target in ("missing/m.json", "/dev/full"):
            result = self.run_here("estimate", "a.pgm", "--save", target)
            assert (result.code, len(result.err_lines)) == (1, 1), result.err
            assert target in result.err
        self.assert_tidy()

    def test_a_model_that_is_there_is_replaced_as_a_whole(self) -> None:
        write_pnm(self.path("a.pgm"), noisy(100, 6, 1))
        self.path("m.json").write_text("x" * 100000)
        self.done("estimate", "a.pgm", "--save", "m.json")
        assert json.loads(self.path("m.json").read_text())["ungrain"] == "noise model"

    def test_frames_of_different_sizes(self) -> None:
        write_pnm(self.path("a.pgm"), noisy(100, 6, 1))
        write_pnm(self.path("b.pgm"), noisy(100, 6, 1, 32, 32))
        result = self.run_here("estimate", "a.pgm", "b.pgm", "--frames", "still", "--save", "m.json")
        assert (result.code, result.err_lines) == (2, ["ungrain: still frames must all have one size and type"])
        assert not self.path("m.json").exists()


class TestShown(Workspace):
    def test_a_part(self) -> None:
        left, right = noisy(60, 4, 1), noisy(60, 20, 2)
        rows = []
        for y in range(64):
            rows += left.samples[y * 96:(y + 1) * 96] + right.samples[y * 96:(y + 1) * 96]
        write_pnm(self.path("both.pgm"), Picture(192, 64, 1, rows, 255))
        for region, sigma in (("0,0,96,64", 4), ("96,0,96,64", 20)):
            found = json.loads(self.done("estimate", "both.pgm", "--region", region, "--json").out)
            assert found["sigma"] == pytest.approx(sigma, abs=0.15 * sigma)
        result = self.run_here("estimate", "both.pgm", "--region", "100,0,96,64")
        assert result.err_lines == ["ungrain: both.pgm: is 192 x 64, --region 100,0,96,64 lies outside"]
        for wrong in ("1,2,3", "1,2,3,4,5", "0,0,0,1", "-1,0,1,1", "0,0,99999999999,1", "a"):
            assert self.run_here("estimate", "both.pgm", "--region", wrong).code == 2, wrong
        assert "lies outside" in self.run_here("estimate", "both.pgm", "--region", "2147483647,0,2147483647,1").err

    def test_a_page(self) -> None:
        self.done("estimate", "colour.ppm", "--plot", "noise.html")
        page = self.path("noise.html").read_text()
        for part in ("<h1>Noise of colour.ppm</h1>", "Deviation by level", "luminance", "data:image/", "</html>"):
            assert part in page
        data = page_data(page)
        assert len(data["channels"]) == 3
        assert len(data["blocks"]) > 0
        assert "http://" not in page.replace("http://www.w3.org", "")

    def test_one_image_only(self) -> None:
        result = self.run_here("estimate", "gray.pgm", "colour.ppm", "--plot", "noise.html")
        assert (result.code, result.err_lines) == (2, ["ungrain: --plot takes one file, or --frames"])
        result = self.run_here("estimate", "gray.pgm", "--plot", "gray.pgm")
        assert result.code == 2
        write_tiff(self.path("two.tif"), [picture(40, 30), picture(40, 30)])
        result = self.run_here("estimate", "two.tif", "--save", "m.json")
        assert "two.tif: has 2 pages, --save takes one" in result.err


def spread(image: Picture) -> float:
    mean = sum(image.samples) / len(image.samples)
    return (sum((value - mean) ** 2 for value in image.samples) / len(image.samples)) ** 0.5


class TestUsed(Workspace):
    """Options of denoising that say which noise it is and how much of it goes."""

    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.noisy = noisy(120, 15, 1)
        write_pnm(self.path("noisy.pgm"), self.noisy)

    def spread_with(self, *options: str) -> float:
        self.done("noisy.pgm", "-o", "out.pgm", *options)
        return spread(read_pnm(self.path("out.pgm")))

    @pytest.mark.parametrize("method", ["bm3d", "nlm", "bilateral", "nlm-bilateral", "adaptive-bilateral"])
    def test_strength_means_the_same_for_every_method(self, method: str) -> None:
        weak, plain, strong = (self.spread_with("-m", method, "--strength", x) for x in ("0.5", "1", "1.5"))
        assert weak > plain
        assert strong < plain + 1
        assert self.spread_with("-m", method, "--strength", "0") == pytest.approx(spread(self.noisy), abs=5e-8)

    def test_grain_is_put_back(self) -> None:
        clean = self.spread_with("-m", "bm3d")
        kept = self.spread_with("-m", "bm3d", "--keep-grain", "0.5")
        assert kept == pytest.approx((clean + spread(self.noisy)) / 2, abs=1)
        assert self.spread_with("-m", "bm3d", "--keep-grain", "1") == pytest.approx(spread(self.noisy), abs=0.01)

    def test_a_saved_model_is_used(self) -> None:
        self.done("estimate", "noisy.pgm", "--save", "camera.json")
        assert self.spread_with("--noise-model", "camera.json") < 4
        assert self.spread_with("--noise-model", "camera.json", "--strength", "0.2") > 8

    def test_a_model_of_another_kind_of_image(self) -> None:
        self.done("estimate", "colour.ppm", "--save", "camera.json")
        result = self.run_here("noisy.pgm", "-o", "out.pgm", "--noise-model", "camera.json")
        assert result.err_lines == ["ungrain: camera.json: is the noise of rgb images of 3 channels, "
                                    "the image is gray with 1"]
        assert not self.path("out.pgm").exists()

    def test_files_that_are_no_models(self) -> None:
        for text in ("", "{}", "[1]", '{"ungrain": "noise model"}', "\x00\x01", '{"ungrain": "noise model", "white": 255, '
                     '"colour": "gray", "channels": [{"levels": [0], "deviations": [-1], "spectrum": ' + str([1] * 64) + "}]}"):
            self.path("m.json").write_text(text)
            result = self.run_here("noisy.pgm", "-o", "out.pgm", "--noise-model", "m.json")
            assert result.code != 0
            assert len(result.err_lines) == 1
            assert "m.json" in result.err

    def test_gain_and_read_noise(self) -> None:
        assert self.spread_with("--noise", "poisson-gaussian", "--gain", "1.7", "--read-noise", "4") < 4

    def test_gain_is_measured(self) -> None:
        chance = random.Random(5)
        levels = [20 + 200 * ((x // 16) % 8) / 7 for _ in range(128) for x in range(128)]
        samples = [max(0.0, chance.gauss(level, (1.5 * level) ** 0.5)) for level in levels]
        write_pfm(self.path("photons.pfm"), Picture(128, 128, 1, samples, 255))
        line = self.done("photons.pfm", "-o", "out.pfm", "--range", "255", "--noise", "poisson-gaussian").out
        gain = float(line.split("noise: gain ")[1].split(",")[0])
        assert gain == pytest.approx(1.5, abs=0.4)

    def test_contradictions_end_in_one_line(self, subtests: pytest.Subtests) -> None:
        for options, message in (
                (("--gain", "1"), "--gain belongs to --noise poisson-gaussian"),
                (("--read-noise", "1"), "--read-noise belongs to --noise poisson-gaussian"),
                (("--noise", "poisson-gaussian", "--read-noise", "1"), "--read-noise without --gain: give both, or none to measure them"),
                (("--noise", "pink"), "--noise takes one of auto, poisson-gaussian, rician, got 'pink'"),
                (("--strength", "-1"), "--strength takes a number from 0 to 10, got -1"),
                (("--keep-grain", "2"), "--keep-grain takes a number from 0 to 1, got 2")):
            with subtests.test(options=options):
                result = self.run_here("noisy.pgm", "-o", "out.pgm", *options)
                assert (result.code, result.err_lines) == (2, ["ungrain: " + message])
        for options in (("--sigma", "5", "--noise", "poisson-gaussian", "--gain", "1"), ("--luminance", "0.5"),
                        ("-m", "median", "--strength", "2")):
            with subtests.test(options=options):
                result = self.run_here("noisy.pgm", "-o", "out.pgm", *options)
                assert result.code != 0
                assert len(result.err_lines) == 1, result.err
                assert not self.path("out.pgm").exists()

    def test_what_was_found_is_told(self) -> None:
        line = self.done("noisy.pgm", "-o", "out.pgm").out
        assert re.search(r"noise: 1[3-7]\.\d \(the same at all levels\) -> bm3d", line)

    def test_a_map_on_the_images_own_scale(self) -> None:
        image = self.noisy.scaled(1, whole=False)
        write_pfm(self.path("unit.pfm"), image)
        write_pfm(self.path("map.pfm"), Picture(image.width, image.height, 1, [15 / 255] * len(image.samples), 1))
        self.done("unit.pfm", "-o", "out.pfm", "--range", "1", "--sigma-map", "map.pfm")
        assert spread(read_pfm(self.path("out.pfm"))) < 5 / 255


class TestClipped(Workspace):
    """Noise that was cut off at black: found where the noise is known, undone where it is asked for, left where it is to stay."""

    LEVEL, SIGMA = 5, 25

    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.clipped = noisy(self.LEVEL, self.SIGMA, 3, 256, 192)
        chance = random.Random(3)
        self.drawn = sum(chance.gauss(self.LEVEL, self.SIGMA) for _ in range(256 * 192)) / (256 * 192)
        write_pnm(self.path("clipped.pgm"), self.clipped)

    def shift(self, *options: str) -> float:
        """Of the mean, the result being floats that may lie below black."""
        self.done("clipped.pgm", "-o", "out.pfm", "--depth", "f32", *options)
        samples = read_pfm(self.path("out.pfm")).samples
        return 255 * sum(samples) / len(samples) - self.drawn

    def test_undone_where_the_noise_is_known(self, subtests: pytest.Subtests) -> None:
        self.done("estimate", "clipped.pgm", "--save", "camera.json")
        for options in ((), ("--sigma", "25"), ("--noise-model", "camera.json"),
                        ("--noise", "poisson-gaussian", "--gain", "0.001", "--read-noise", "25")):
            for method in ("nlm", "bilateral"):
                with subtests.test(method=method, options=options):
                    # The saved model is some per cent too strong where nothing but clipped noise was there to be measured.
                    assert abs(self.shift("-m", method, *options)) < (0.6 if "camera.json" in options else 0.3)
                    assert self.shift("-m", method, *options, "--clipping", "keep") > 5
        assert self.shift("-m", "nlm", "--sigma", "25", "--clipping", "auto") == self.shift("-m", "nlm", "--sigma", "25")

    @pytest.mark.parametrize("words", [
        "box", "gaussian", "median", "median --radius 2", "nlm --h 30", "bilateral --sigma-range 30", "bilateral --sigma-range 150",
    ])
    def test_undone_with_every_method_where_asked_for(self, words: str) -> None:
        method = ("-m", *words.split())
        assert abs(self.shift(*method, "--clipping", "undo")) < 0.3
        as_it_is = self.shift(*method)
        assert as_it_is > 0.5
        assert self.shift(*method, "--clipping", "keep") == as_it_is

    def test_the_report_says_so(self, subtests: pytest.Subtests) -> None:
        for options in (("-m", "nlm"), ("-m", "nlm", "--sigma", "25"), ("-m", "median", "--clipping", "undo")):
            with subtests.test(options=options):
                assert "clipped noise at black undone" in self.done("clipped.pgm", "-o", "out.pgm", *options).out
                report = json.loads(self.done("clipped.pgm", "-o", "out.pgm", "--json", *options).out)
                assert report["clipping_undone"] == "black"
        assert "undone" not in self.done("clipped.pgm", "-o", "out.pgm", "-m", "nlm", "--clipping", "keep").out

    def test_each_page_by_itself(self) -> None:
        write_tiff(self.path("two.tif"), [noisy(120, 25, 1, 256, 192), self.clipped])
        assert "clipped noise at black undone" in self.done("two.tif", "-o", "out.tif", "-m", "nlm", "--sigma", "25").out

    def test_where_nothing_was_cut_nothing_changes(self) -> None:
        write_pnm(self.path("gray.pgm"), noisy(120, 15, 1))
        for options in (("-m", "bilateral", "--sigma", "15"), ("-m", "median")):
            results = []
            for rule in ("undo", "keep"):
                assert "undone" not in self.done("gray.pgm", "-o", "out.pgm", *options, "--clipping", rule).out
                results.append(self.path("out.pgm").read_bytes())
            assert results[0] == results[1]

    def test_what_cannot_be_ends_in_one_line(self) -> None:
        result = self.run_here("clipped.pgm", "-o", "out.pgm", "--clipping", "always")
        assert (result.code, result.err_lines) == (2, ["ungrain: --clipping takes one of auto, undo, keep, got 'always'"])
        write_pfm(self.path("map.pfm"), Picture(256, 192, 1, [25] * 256 * 192, 255))
        result = self.run_here("clipped.pgm", "-o", "out.pgm", "--sigma-map", "map.pfm", "--clipping", "undo")
        assert result.code != 0
        assert len(result.err_lines) == 1, result.err
        assert "undoing a cut at black or white and sigma_map exclude each other" in result.err
        assert not self.path("out.pgm").exists()
        self.done("clipped.pgm", "-o", "out.pgm", "--sigma-map", "map.pfm")


class TestTooWeak(Workspace):
    """Noise of less than half a step of the file's samples: no filter's result would be another picture."""

    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        chance = random.Random(1)
        self.values = [60 + x / 4 + y / 16 + chance.gauss(0, 0.42) for y in range(128) for x in range(128)]
        self.weak = Picture(128, 128, 1, [round(value) for value in self.values], 255)
        write_pnm(self.path("weak.pgm"), self.weak)

    def test_the_picture_is_left_as_it_is(self) -> None:
        for method in ("bm3d", "nlm", "bilateral"):
            line = self.done("weak.pgm", "-o", "out.pgm", "-m", method).out
            assert re.search(r"noise: 0\.[345] .*too weak to matter, left as it is", line)
            assert self.path("out.pgm").read_bytes() == self.path("weak.pgm").read_bytes()
        report = json.loads(self.done("weak.pgm", "-o", "out.pgm", "--json").out)
        assert (report["noise_found"], report["noise_too_weak"]) == (True, True)

    def test_pages_and_other_formats_too(self) -> None:
        write_tiff(self.path("two.tif"), [self.weak, self.weak])
        assert "too weak to matter" in self.done("two.tif", "-o", "out.tif").out
        assert "too weak to matter" in self.done("weak.pgm", "-o", "out.tif").out
        self.done("out.tif", "-o", "back.pgm", "-m", "median", "--radius", "0")
        assert read_pnm(self.path("back.pgm")).samples == self.weak.samples

    def test_a_page_that_has_noise_is_filtered(self) -> None:
        write_tiff(self.path("two.tif"), [self.weak, noisy(120, 15, 1, 128, 128)])
        assert "too weak" not in self.done("two.tif", "-o", "out.tif").out
        self.done("out.tif", "-o", "second.pgm", "--pages", "2", "-m", "median", "--radius", "0")
        assert spread(read_pnm(self.path("second.pgm"))) < 5

    @pytest.mark.parametrize("options", [
        ("--strength", "2"), ("--sigma", "5"), ("--noise", "poisson-gaussian", "--gain", "0.1"), ("--depth", "u16"),
    ])
    def test_what_is_asked_for_is_done(self, options: tuple[str, ...]) -> None:
        line = self.done("weak.pgm", "-o", "out.pgm", *options).out
        assert "too weak" not in line
        assert read_pnm(self.path("out.pgm")).samples != self.weak.samples

    def test_samples_that_tell_more(self) -> None:
        deep = Picture(128, 128, 1, [round(257 * value) for value in self.values], 65535)
        write_pnm(self.path("deep.pgm"), deep)
        assert "too weak" not in self.done("deep.pgm", "-o", "out.pgm").out
        assert "too weak" in self.done("deep.pgm", "-o", "out.pgm", "--depth", "u8").out
