"""ungrain-study as a user runs it: on the processor, and its reports."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support import NOISE, PROGRAM, REPOSITORY, page_data, page_pictures, picture, write_pnm

STUDY = Path(PROGRAM).with_name("ungrain-study")
RESULTS = REPOSITORY / "tests/page/results"
TIMES = 442  # that the papers print and a rung stands beside


@pytest.mark.skipif(not os.access(STUDY, os.X_OK), reason="ungrain-study was not built")
class TestStudy:
    @pytest.fixture(autouse=True)
    def own_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def run_study(self, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run([STUDY, *map(os.fspath, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == code, done.stderr
        assert not NOISE.search(done.stderr)
        return done

    def page(self, *arguments: str | Path) -> str:
        self.run_study("report", *arguments, "--html", "page.html")
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        assert len(page) < 3_000_000
        return page

    def test_processor_rungs_and_what_was_left_out(self) -> None:
        done = self.run_study("bilateral", "--device", "cpu", "--sizes", "64x48", "--radii", "1,2", "--json", "b.json")
        assert "left out, --device cpu: " in done.stderr
        assert "ungrain" in done.stderr
        rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
        assert [row.split("|")[1].strip() for row in rows[1:]] == ["sequential", "threads", "sequential", "threads"]
        results = json.loads((self.folder / "b.json").read_text())
        assert (results["ladder"], results["no_gpu"]) == ("bilateral", "--device cpu")
        assert "ungrain" in results["left_out"]
        page = self.page("b.json")
        data = page_data(page)
        assert "gpu" not in data["ladders"][0]
        assert any("in place of one thread" in finding["idea"] for finding in data["findings"])

    @pytest.mark.parametrize("ladder", [
        "adaptive-bilateral", "nlm", "nlm-bilateral", "nlm-whole-image", "nlm-bilateral-whole-image",
    ])
    def test_every_ladder_has_processor_rungs(self, ladder: str) -> None:
        done = self.run_study(ladder, "--device", "cpu", "--sizes", "32x24", "--radii", "1")
        assert len([line for line in done.stdout.splitlines() if line.startswith("| ")]) == 3

    def test_a_ladder_that_is_not_there(self) -> None:
        done = self.run_study("all", "--device", "cpu", "--ladder", "nosuch", "--json", "results", code=1)
        assert done.stderr.count("\n") == 1
        assert "nosuch" in done.stderr
        assert list(self.folder.iterdir()) == []

    def test_a_gpu_that_is_asked_for_must_be_there(self) -> None:
        probe = self.run_study("bilateral", "--sizes", "64x48", "--radii", "1", "--json", "b.json")
        if "gpu" in json.loads((self.folder / "b.json").read_text()):
            pytest.skip("there is a GPU")
        assert "left out" in probe.stderr
        done = self.run_study("bilateral", "--device", "cuda", "--sizes", "64x48", "--radii", "1", code=1)
        assert len(done.stderr.splitlines()) == 1

    def test_all_and_its_page(self) -> None:
        done = self.run_study("all", "--device", "cpu", "--quick", "--ladder", "adaptive", "--json", "results")
        assert "ungrain-study report results" in done.stdout
        pictures = json.loads((self.folder / "results/pictures.json").read_text())
        names = [image["name"] for image in pictures["images"]]
        assert names[:2] == ["clean", "noisy"]
        assert "bm3d" in names
        noisy, bm3d = pictures["images"][1], pictures["images"][-1]
        assert bm3d["psnr"] > noisy["psnr"] + 5
        page = self.page("results")
        assert [name for name, _, _ in page_pictures(page)] == names

    def test_a_picture_of_ones_own(self) -> None:
        write_pnm(self.folder / "own.ppm", picture(300, 220, 3))
        done = self.run_study("bilateral", "--device", "cpu", "--image", "own.ppm", "--sizes", "128x96,512x512", "--radii",
                              "1", "--json", "b.json")
        assert "own.ppm is cut to 128 x 96" in done.stderr
        results = json.loads((self.folder / "b.json").read_text())
        assert results["picture"] == "own.ppm"
        assert {r["width"] for r in results["rungs"][0]["results"]} == {128}
        write_pnm(self.folder / "tiny.pgm", picture(30, 20))
        for image, words in (("tiny.pgm", "from 203 x 157"), ("missing.png", "missing.png")):
            done = self.run_study("bilateral", "--device", "cpu", "--image", image, code=1)
            assert len(done.stderr.splitlines()) == 1
            assert words in done.stderr

    def test_shapes_that_no_figure_shows_are_left_out_of_the_page(self) -> None:
        bilateral = page_data(self.page(RESULTS))["ladders"][0]
        shapes = {rung["name"]: rung["results"][0]["all"] for rung in bilateral["rungs"]}
        assert set(shapes["1 naive"][0]) == {"ms", "side", "tiling"}
        assert shapes["ungrain"] == []

    def test_figures_of_the_papers_are_whole(self, subtests: pytest.Subtests) -> None:
        """A time for each version and radius or none, and radii that have a naive kernel's time beside them."""
        papers = json.loads((REPOSITORY / "study/papers/papers.json").read_text(encoding="utf-8"))
        times = 0
        for paper in papers:
            for table in paper["tables"]:
                for block in table.get("times", []):
                    for rung, *ms in block["ms"]:
                        with subtests.test(paper=paper["paper"], table=table["table"], rung=rung):
                            assert len(ms) == len(block["radii"])
                            times += sum(one is not None for one in ms)
                    assert len(block.get("naive_ms", block["radii"])) == len(block["radii"])
        assert times == TIMES

    def test_text_report(self) -> None:
        done = self.run_study("report", RESULTS)
        assert "| [001] | 6.8 | image 2, 1920 x 1080 | 1 naive | 1 | 14.6601 | 1.00 | 1920 x 1080 | 0.0274 | 1.00 |" in done.stdout

    def test_wrong_files_are_one_line(self) -> None:
        (self.folder / "bad.json").write_text("{")
        (self.folder / "other.json").write_text('{"ladder": "x"}')
        (self.folder / "empty").mkdir()
        for file in ("missing.json", "bad.json", "other.json", "empty"):
            for html in ([], ["--html", "page.html"]):
                done = self.run_study("report", file, *html, code=1)
                assert len(done.stderr.splitlines()) == 1, done.stderr
                assert file in done.stderr

    def test_results_that_the_page_cannot_show_are_one_line(self) -> None:
        """The page's script is not left to find out: it would show nothing."""
        whole = json.loads((RESULTS / "nlm.json").read_text())
        del whole["rungs"][0]["results"][0]["largest_error"]
        (self.folder / "nlm.json").write_text(json.dumps(whole))
        done = self.run_study("report", "nlm.json", "--html", "page.html", code=1)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "largest_error" in done.stderr
        assert not (self.folder / "page.html").exists()
