"""ungrain-study as a user runs it: on the processor, and its reports."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import NOISE, PROGRAM, REPOSITORY, picture, remove, write_pnm

STUDY = Path(PROGRAM).with_name("ungrain-study")
RESULTS = REPOSITORY / "tests/page/results"


@unittest.skipUnless(os.access(STUDY, os.X_OK), "ungrain-study was not built")
class Study(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ungrain-study-"))
        self.addCleanup(remove, self.folder)

    def run_study(self, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run([STUDY, *map(os.fspath, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotRegex(done.stderr, NOISE)
        return done

    def page(self, *arguments: str | Path) -> str:
        self.run_study("report", *arguments, "--html", "page.html")
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        self.assertLess(len(page), 3_000_000)
        return page

    def test_processor_rungs_and_what_was_left_out(self) -> None:
        done = self.run_study("bilateral", "--device", "cpu", "--sizes", "64x48", "--radii", "1,2", "--json", "b.json")
        self.assertIn("left out, --device cpu: ", done.stderr)
        self.assertIn("ungrain", done.stderr)
        rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
        self.assertEqual([row.split("|")[1].strip() for row in rows[1:]],
                         ["sequential", "threads", "sequential", "threads"])
        results = json.loads((self.folder / "b.json").read_text())
        self.assertEqual((results["ladder"], results["no_gpu"]), ("bilateral", "--device cpu"))
        self.assertIn("ungrain", results["left_out"])
        page = self.page("b.json")
        self.assertIn('id="no-gpu"', page)
        self.assertIn("in place of one thread", page)

    def test_every_ladder_has_processor_rungs(self) -> None:
        for ladder in ("adaptive-bilateral", "nlm", "nlm-bilateral", "nlm-whole-image", "nlm-bilateral-whole-image"):
            with self.subTest(ladder):
                done = self.run_study(ladder, "--device", "cpu", "--sizes", "32x24", "--radii", "1")
                self.assertEqual(len([line for line in done.stdout.splitlines() if line.startswith("| ")]), 3)

    def test_a_ladder_that_is_not_there(self) -> None:
        done = self.run_study("all", "--device", "cpu", "--ladder", "nosuch", "--json", "results", code=1)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("nosuch", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_gpu_that_is_asked_for_must_be_there(self) -> None:
        probe = self.run_study("bilateral", "--sizes", "64x48", "--radii", "1", "--json", "b.json")
        if "gpu" in json.loads((self.folder / "b.json").read_text()):
            self.skipTest("there is a GPU")
        self.assertIn("left out", probe.stderr)
        done = self.run_study("bilateral", "--device", "cuda", "--sizes", "64x48", "--radii", "1", code=1)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_all_and_its_page(self) -> None:
        done = self.run_study("all", "--device", "cpu", "--quick", "--ladder", "adaptive", "--json", "results")
        self.assertIn("ungrain-study report results", done.stdout)
        pictures = json.loads((self.folder / "results/pictures.json").read_text())
        names = [image["name"] for image in pictures["images"]]
        self.assertEqual(names[:2], ["clean", "noisy"])
        self.assertIn("bm3d", names)
        noisy, bm3d = pictures["images"][1], pictures["images"][-1]
        self.assertGreater(bm3d["psnr"], noisy["psnr"] + 5)
        page = self.page("results")
        self.assertIn('class="viewer"', page)
        self.assertEqual(page.count("data:image/png"), len(names))

    def test_a_picture_of_ones_own(self) -> None:
        write_pnm(self.folder / "own.ppm", picture(300, 220, 3))
        done = self.run_study("bilateral", "--device", "cpu", "--image", "own.ppm", "--sizes", "128x96,512x512", "--radii",
                              "1", "--json", "b.json")
        self.assertIn("own.ppm is cut to 128 x 96", done.stderr)
        results = json.loads((self.folder / "b.json").read_text())
        self.assertEqual(results["picture"], "own.ppm")
        self.assertEqual({r["width"] for r in results["rungs"][0]["results"]}, {128})
        write_pnm(self.folder / "tiny.pgm", picture(30, 20))
        for image, words in (("tiny.pgm", "from 203 x 157"), ("missing.png", "missing.png")):
            done = self.run_study("bilateral", "--device", "cpu", "--image", image, code=1)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(words, done.stderr)

    def test_every_table_of_the_papers_is_on_the_page(self) -> None:
        page = self.page(RESULTS)
        tables = re.findall(r'data-table="(\[00\d\]) ([\d.]+)"', page)
        expected = ([("[000]", f"6.{i}") for i in range(3, 19)] + [("[001]", f"6.{i}") for i in range(4, 10)]
                    + [("[002]", f"5.{i}") for i in range(1, 5)] + [("[003]", "1")]
                    + [("[004]", f"{i}") for i in range(1, 8)])
        self.assertEqual(tables, expected)
        # Theirs and ours: [001]'s naive kernel at 1080p and radius 1, 14.7 ms and 0.0274 ms.
        table = page.split('data-table="[001] 6.8"')[1].split("</section>")[0]
        row = re.search(r"<tr><th>1 naive</th><td>([^<]*)</td><td class=\"ours\">([^ <]*)", table)
        assert row
        self.assertEqual((row[1], row[2]), ("14.7", "0.0274"))

    def test_programs_that_are_not_ours_stand_beside_threads_or_nothing(self) -> None:
        table = self.page(RESULTS).split('data-table="[002] 5.1"')[1].split("</section>")[0]
        self.assertIn("hardly a time of computing", table)
        row = re.search(r"<tr><th>lena, 512 x 512</th>(.*?)</tr>", table)
        assert row
        cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row[1])]
        # CUDA and our rung of it, OpenMP and our threads, MATLAB and nothing, the product.
        self.assertEqual(cells, ["740", "10 74×", "3950", "80 49.4×", "7720", "–", "0.8"])

    def test_impossible_figures_are_said_to_be(self) -> None:
        page = self.page(RESULTS)
        self.assertIn("36 T a second", page)
        self.assertIn("looks like a slip", page)

    def test_findings_come_from_the_measurements(self) -> None:
        page = self.page(RESULTS)
        costs = page.split("<h3>Costs</h3>")[1].split("</ul>")[0]
        self.assertIn("constant memory, where lanes read different entries", costs)
        pays = page.split("<h3>Pays</h3>")[1].split("</ul>")[0]
        # By hand from the fixture at r 1, 5 and 15: the cube root of 0.0315/0.0293 * 0.1792/0.1412 * 1.2416/0.9516.
        self.assertIn("<b>1.21×</b>one approximate exponential for both Gaussians", pays)
        # Processor and GPU at the same work: the product's usual bm3d is not what its threads computed here.
        machines = page.split("<h3>One thread, all cores, the GPU</h3>")[1].split("</ul>")[0]
        self.assertIn("bm3d: “ungrain, paper-002” over “threads”, 20×", machines)
        self.assertNotIn("bm3d: “ungrain” over “threads”", machines)

    def test_ladders_that_it_does_not_know(self) -> None:
        page = self.page(RESULTS)
        part = page.split('id="ladder-a-ladder-of-the-future"')[1]
        self.assertIn("&lt;made&gt; &amp; up", part)
        for words in ("matching", "64x32", "31.25 dB"):
            self.assertIn(words, part)
        self.assertIn("another version", page.split('id="findings"')[1].split("<h2")[0])

    def test_text_report(self) -> None:
        done = self.run_study("report", RESULTS)
        self.assertIn("| [001] | 6.8 | image 2, 1920 x 1080 | 1 naive | 1 | 14.6601 | 1.00 | 1920 x 1080 | 0.0274 | 1.00 |",
                      done.stdout)

    def test_wrong_files_are_one_line(self) -> None:
        (self.folder / "bad.json").write_text("{")
        (self.folder / "other.json").write_text('{"ladder": "x"}')
        (self.folder / "empty").mkdir()
        for file in ("missing.json", "bad.json", "other.json", "empty"):
            for html in ([], ["--html", "page.html"]):
                done = self.run_study("report", file, *html, code=1)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(file, done.stderr)


if __name__ == "__main__":
    unittest.main()
