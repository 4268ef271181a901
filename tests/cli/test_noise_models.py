"""Models of noise: measured, calibrated, saved, shown."""

from __future__ import annotations

import json
import random
import unittest

from support import Picture, Workspace, picture, write_pnm, write_tiff


def noisy(level: float, sigma: float, seed: int, width: int = 96, height: int = 64) -> Picture:
    """An even gray with white noise, 8 bits."""
    chance = random.Random(seed)
    values = [min(255, max(0, round(chance.gauss(level, sigma)))) for _ in range(width * height)]
    return Picture(width, height, 1, values, 255)


class Calibration(Workspace):
    def test_dark_and_flat_frames(self) -> None:
        write_pnm(self.path("dark.pgm"), noisy(20, 3, 1))
        write_pnm(self.path("flat.pgm"), noisy(180, 11, 2))
        result = self.done("estimate", "dark.pgm", "flat.pgm", "--frames", "even", "--save", "camera.json")
        self.assertIn("noise measured in 2 even frames", result.out)
        model = json.loads(self.path("camera.json").read_text())
        self.assertEqual((model["ungrain"], model["white"], model["colour"]), ("noise model", 255, "gray"))
        levels, deviations = model["channels"][0]["levels"], model["channels"][0]["deviations"]
        self.assertAlmostEqual(levels[0], 20, delta=1)
        self.assertAlmostEqual(deviations[0], 3, delta=0.3)
        self.assertAlmostEqual(levels[1], 180, delta=1)
        self.assertAlmostEqual(deviations[1], 11, delta=1)
        self.assertEqual(levels[2], 255)

    def test_still_frames_are_all_pages_of_all_files(self) -> None:
        write_tiff(self.path("stack.tif"), [noisy(100, 6, seed) for seed in range(3)])
        line = self.done("estimate", "stack.tif", "--frames", "still", "--json").out
        channel = json.loads(line)["model"]["channels"][0]
        for deviation in channel["deviations"]:
            self.assertAlmostEqual(deviation, 6, delta=1)

    def test_frames_of_different_sizes(self) -> None:
        write_pnm(self.path("a.pgm"), noisy(100, 6, 1))
        write_pnm(self.path("b.pgm"), noisy(100, 6, 1, 32, 32))
        result = self.run_here("estimate", "a.pgm", "b.pgm", "--frames", "still", "--save", "m.json")
        self.assertEqual((result.code, result.err_lines), (2, ["ungrain: still frames must all have one size and type"]))
        self.assertFalse(self.path("m.json").exists())


class Shown(Workspace):
    def test_a_part(self) -> None:
        left, right = noisy(60, 4, 1), noisy(60, 20, 2)
        rows = []
        for y in range(64):
            rows += left.samples[y * 96:(y + 1) * 96] + right.samples[y * 96:(y + 1) * 96]
        write_pnm(self.path("both.pgm"), Picture(192, 64, 1, rows, 255))
        for region, sigma in (("0,0,96,64", 4), ("96,0,96,64", 20)):
            found = json.loads(self.done("estimate", "both.pgm", "--region", region, "--json").out)
            self.assertAlmostEqual(found["sigma"], sigma, delta=0.15 * sigma)
        result = self.run_here("estimate", "both.pgm", "--region", "100,0,96,64")
        self.assertEqual(result.err_lines, ["ungrain: both.pgm: is 192 x 64, --region 100,0,96,64 lies outside"])
        self.assertEqual(self.run_here("estimate", "both.pgm", "--region", "1,2,3").code, 2)

    def test_a_page(self) -> None:
        self.done("estimate", "colour.ppm", "--plot", "noise.html")
        page = self.path("noise.html").read_text()
        for part in ("<h1>Noise of colour.ppm</h1>", "Deviation by level", "luminance", "data:image/png", "</html>"):
            self.assertIn(part, page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))

    def test_one_image_only(self) -> None:
        result = self.run_here("estimate", "gray.pgm", "colour.ppm", "--plot", "noise.html")
        self.assertEqual((result.code, result.err_lines), (2, ["ungrain: --plot takes one file, or --frames"]))
        result = self.run_here("estimate", "gray.pgm", "--plot", "gray.pgm")
        self.assertEqual(result.code, 2)
        write_tiff(self.path("two.tif"), [picture(40, 30), picture(40, 30)])
        result = self.run_here("estimate", "two.tif", "--save", "m.json")
        self.assertIn("two.tif: has 2 pages, --save takes one", result.err)


if __name__ == "__main__":
    unittest.main()
