"""ungrain compare of volumes, and over masks. The numbers are computed here from their definitions; SSIM is held against
scikit-image in tests/oracles and in tests/volume_metrics_test.cpp."""

import json
import math
import re
import struct

import pytest

from support import (NPY_KINDS, Picture, Workspace, npy_bytes, page_data, page_pictures, picture, read_bmp, read_png, volume, write_nifti,
                     write_pnm, write_tiff, writes)

SIZE = (14, 13, 12)
COUNT = math.prod(SIZE)


def npy_volume(path, size, samples, kind="f4"):
    width, height, depth = size
    path.write_bytes(npy_bytes(str((depth, height, width)), f"<{kind}", struct.pack(f"<{len(samples)}{NPY_KINDS[kind]}", *samples)))


def mse(a, b, counts=None):
    squares = [(x - y) ** 2 for i, (x, y) in enumerate(zip(a, b)) if counts is None or counts[i]]
    return sum(squares) / len(squares)


def psnr(error, peak):
    return 10 * math.log10(peak * peak / error)


class TestCompareVolumes(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.clean = volume(*SIZE, seed=1)
        self.noisy = volume(*SIZE, seed=2)
        write_nifti(self.path("clean.nii.gz"), SIZE, self.clean, (1, 1, 2))
        write_nifti(self.path("noisy.nii.gz"), SIZE, self.noisy, (1, 1, 2))

    def compared(self, *arguments: str) -> dict:
        return json.loads(self.done("compare", *arguments, "--json").out)

    def refused(self, *arguments: str) -> str:
        result = self.run_here("compare", *arguments)
        assert (result.code, len(result.err_lines)) == (1, 1), result
        self.assert_tidy()
        return result.err_lines[0]

    def test_numbers(self) -> None:
        found = self.compared("clean.nii.gz", "noisy.nii.gz")
        error = mse(self.clean, self.noisy)
        assert found["mse"] == pytest.approx(error, abs=5e-10)
        assert found["psnr"] == pytest.approx(psnr(error, 255), abs=5e-10)
        assert found["max_abs"] == max(abs(x - y) for x, y in zip(self.clean, self.noisy))
        assert 0 < found["ssim"] < 1
        assert (found["peak"], found["peak_from"]) == (255, "largest value of clean.nii.gz")
        for absent in ("fsim", "fsimc", "page", "volume", "mask"):
            assert absent not in found

    def test_table(self) -> None:
        lines = self.done("compare", "clean.nii.gz", "noisy.nii.gz", "clean.nii.gz").out_lines
        assert lines[0] == "peak 255 (largest value of clean.nii.gz)"
        assert lines[1].split() == ["PSNR", "dB", "SSIM", "MSE", "max-abs", "file"]
        assert lines[2].split()[-1] == "noisy.nii.gz"
        assert lines[3].split() == ["inf", "1.000000", "0", "0", "clean.nii.gz"]

    def test_peak(self) -> None:
        doubled = [2 * value for value in self.clean]
        write_nifti(self.path("doubled.nii"), SIZE, doubled)
        error = mse(doubled, self.noisy)
        found = self.compared("doubled.nii", "noisy.nii.gz")  # in the files' own unit, never scaled
        assert found["peak"] == 510
        assert found["mse"] == pytest.approx(error, abs=5e-7)
        assert found["psnr"] == pytest.approx(psnr(error, 510), abs=5e-10)
        found = self.compared("doubled.nii", "noisy.nii.gz", "--range", "1000")
        assert (found["peak"], found["peak_from"]) == (1000, "--range")
        assert found["psnr"] == pytest.approx(psnr(error, 1000), abs=5e-10)
        write_nifti(self.path("bytes.nii"), SIZE, self.clean, kind="u1")
        found = self.compared("bytes.nii", "noisy.nii.gz")
        assert (found["peak"], found["peak_from"]) == (255, "white of the samples' type")
        write_nifti(self.path("words.nii"), SIZE, self.noisy, kind="u2")
        assert self.compared("bytes.nii", "words.nii")["mse"] == pytest.approx(mse(self.clean, self.noisy), abs=5e-10)
        write_nifti(self.path("dark.nii"), SIZE, [0] * COUNT)
        assert self.compared("dark.nii", "noisy.nii.gz")["peak"] == 1

    def test_other_files_of_slices(self, subtests: pytest.Subtests) -> None:
        expected = self.compared("clean.nii.gz", "noisy.nii.gz")
        npy_volume(self.path("clean.npy"), SIZE, self.clean)
        npy_volume(self.path("noisy.npy"), SIZE, self.noisy)
        for files in (("clean.npy", "noisy.npy", "--volume"), ("clean.nii.gz", "noisy.npy")):
            with subtests.test(files=files):
                found = self.compared(*files)
                for metric in ("psnr", "ssim", "mse", "max_abs"):
                    assert found[metric] == expected[metric]
        if not writes(".tif"):
            return
        for name, samples in (("clean.tif", self.clean), ("noisy.tif", self.noisy)):
            side = SIZE[0] * SIZE[1]
            write_tiff(self.path(name), [Picture(SIZE[0], SIZE[1], 1, samples[z * side:(z + 1) * side]) for z in range(SIZE[2])])
        assert self.compared("clean.tif", "noisy.tif", "--volume")["ssim"] == expected["ssim"]
        assert len(self.done("compare", "clean.tif", "noisy.tif", "--json").out_lines) == SIZE[2]  # images
        halves = self.done("compare", "clean.tif", "noisy.tif", "--slices", "6", "--json").out_lines
        assert [json.loads(line)["volume"] for line in halves] == [1, 2]

    def test_several_volumes(self) -> None:
        write_nifti(self.path("clean4.nii"), (*SIZE, 2), self.clean + self.noisy)
        write_nifti(self.path("noisy4.nii"), (*SIZE, 2), self.noisy + self.noisy)
        found = [json.loads(line) for line in self.done("compare", "clean4.nii", "noisy4.nii", "--json").out_lines]
        assert [line["volume"] for line in found] == [1, 2]
        assert found[0]["mse"] == pytest.approx(mse(self.clean, self.noisy), abs=5e-10)
        assert found[1]["psnr"] == "inf"
        assert "noisy4.nii volume 2" in self.done("compare", "clean4.nii", "noisy4.nii").out
        write_nifti(self.path("mask.nii"), SIZE, [1] * COUNT, kind="u1")  # one for all volumes
        found = [json.loads(line) for line in self.done("compare", "clean4.nii", "noisy4.nii", "--json", "--mask", "mask.nii").out_lines]
        assert [line["mask"]["mse"] for line in found] == [line["mse"] for line in found]

    def test_one_slice_is_an_image(self) -> None:
        write_nifti(self.path("a.nii"), (24, 18), picture(24, 18).samples, kind="u1")
        found = self.compared("a.nii", "a.nii")
        assert found["fsim"] == 1

    def test_mask(self) -> None:
        counts = [0.5 if i % 3 == 0 else 0 for i in range(COUNT)]
        counts[1] = float("nan")  # does not count
        write_nifti(self.path("mask.nii.gz"), SIZE, counts)
        counts[1] = 0
        whole = self.compared("clean.nii.gz", "noisy.nii.gz")
        found = self.compared("clean.nii.gz", "noisy.nii.gz", "--mask", "mask.nii.gz")
        assert {name: found[name] for name in whole} == whole
        masked = found["mask"]
        error = mse(self.clean, self.noisy, counts)
        assert (masked["file"], masked["pixels"]) == ("mask.nii.gz", COUNT // 3)
        assert masked["mse"] == pytest.approx(error, abs=5e-10)
        assert masked["psnr"] == pytest.approx(psnr(error, 255), abs=5e-10)
        assert 0 < masked["ssim"] < 1
        assert masked["ssim"] != whole["ssim"]
        lines = self.done("compare", "clean.nii.gz", "noisy.nii.gz", "--mask", "mask.nii.gz").out_lines
        assert lines[3].endswith("noisy.nii.gz, in the mask")
        assert lines[3].split()[0] == f"{psnr(error, 255):.4f}"

    def test_mask_of_images(self) -> None:
        a, b = picture(24, 18, 3, seed=1), picture(24, 18, 3, seed=2)
        write_pnm(self.path("a.ppm"), a)
        write_pnm(self.path("b.ppm"), b)
        write_pnm(self.path("mask.pgm"), Picture(24, 18, 1, [255 if i % 4 == 0 else 0 for i in range(24 * 18)]))
        found = self.compared("a.ppm", "b.ppm", "--mask", "mask.pgm")
        counts = [i // 3 % 4 == 0 for i in range(3 * 24 * 18)]
        assert found["mask"]["mse"] == pytest.approx(mse(a.samples, b.samples, counts), abs=5e-10)
        assert "fsim" in found
        row = self.done("compare", "a.ppm", "b.ppm", "--mask", "mask.pgm").out_lines[2].split()
        assert row[2:4] == ["-", "-"]
        self.done("compare", "a.ppm", "b.ppm", "--mask", "mask.pgm", "--html", "page.html")
        page = self.path("page.html").read_text(encoding="utf-8")
        assert page_data(page)["pictures"][1]["metrics"]["mask"]["pixels"] == 24 * 18 // 4

    def test_what_does_not_fit(self) -> None:
        write_nifti(self.path("other.nii"), (13, 14, 12), self.clean)
        assert (self.refused("clean.nii.gz", "other.nii")
                == "ungrain: other.nii: 13x14x12, 1 channel; clean.nii.gz is 14x13x12, 1 channel: they cannot be compared")
        assert "they cannot be compared" in self.refused("clean.nii.gz", "gray.pgm")
        assert (self.refused("clean.nii.gz", "noisy.nii.gz", "--mask", "other.nii")
                == "ungrain: other.nii: the mask is 13x14x12; clean.nii.gz is 14x13x12")
        assert (self.refused("gray.pgm", "gray.pgm", "--mask", "clean.nii.gz")
                == "ungrain: clean.nii.gz: the mask is 14x13, 12 pages; gray.pgm is 24x18")
        write_nifti(self.path("empty.nii"), SIZE, [0] * COUNT, kind="u1")
        assert (self.refused("clean.nii.gz", "noisy.nii.gz", "--mask", "empty.nii")
                == "ungrain: empty.nii: the mask is empty: all its voxels are 0")
        assert "do not make volumes of 5" in self.refused("clean.nii.gz", "noisy.nii.gz", "--slices", "5")
        assert "missing.nii" in self.refused("clean.nii.gz", "noisy.nii.gz", "--mask", "missing.nii")

    def test_never_over_the_mask(self) -> None:
        write_nifti(self.path("mask.nii"), SIZE, [1] * COUNT, kind="u1")
        before = self.bytes_of("mask.nii")
        assert self.run_here("compare", "clean.nii.gz", "noisy.nii.gz", "--mask", "mask.nii", "--html", "mask.nii").code == 2
        assert self.bytes_of("mask.nii") == before


class TestVolumePage(Workspace):
    def page(self, *files: str) -> str:
        self.done("compare", *files, "--html", "page.html")
        self.assert_tidy()
        return self.path("page.html").read_text(encoding="utf-8")

    def atlases(self, page: str) -> list[Picture]:
        result = []
        for i, (_, kind, data) in enumerate(page_pictures(page)):
            path = self.path(f"atlas-{i}.{kind}")
            path.write_bytes(data)
            result.append((read_png if kind == "png" else read_bmp)(path))
        return result

    def test_atlases_hold_the_voxels(self) -> None:
        """Slices beside each other; black and white are the clean volume's smallest and largest values."""
        size = (7, 5, 6)
        clean, noisy = volume(*size, seed=1), volume(*size, seed=2)
        write_nifti(self.path("clean.nii.gz"), size, [4 * value - 100 for value in clean], (0.5, 1, 3))
        write_nifti(self.path("noisy.nii.gz"), size, [4 * value - 100 for value in noisy])
        page = self.page("clean.nii.gz", "noisy.nii.gz")
        about = page_data(page)["volume"]
        assert about == {"whole": [7, 5, 6], "size": [7, 5, 6], "step": [1, 1, 1], "spacing": [0.5, 1, 3], "columns": 3,
                         "low": -100, "high": 920, "upwards": True}
        for samples, atlas in zip((clean, noisy), self.atlases(page)):
            assert (atlas.width, atlas.height) == (3 * 7, 2 * 5)
            for i, value in enumerate(samples):
                x, y, z = i % 7, i // 7 % 5, i // 35
                assert atlas.samples[(z // 3 * 5 + y) * 21 + z % 3 * 7 + x] == value
        assert "peak 920 (largest value of clean.nii.gz)" in page
        metrics = page_data(page)["pictures"][1]["metrics"]
        assert sorted(metrics) == ["max_abs", "mse", "psnr", "ssim"]

    def test_long_axes_leave_voxels_out(self) -> None:
        size = (600, 4, 3)
        samples = [float(i % 600) for i in range(600 * 4 * 3)]
        write_nifti(self.path("long.nii"), size, samples, (1, 1, 1))
        page = self.page("long.nii", "long.nii")
        data = page_data(page)
        assert (data["volume"]["size"], data["volume"]["step"], data["volume"]["spacing"]) == ([200, 4, 3], [3, 1, 1], [3, 1, 1])
        assert "Shown is one voxel in 3 along x; the numbers are of all voxels." in data["notes"]
        assert self.atlases(page)[0].samples[199] == 255  # voxel 597, the largest that is shown

    def test_odd_values(self) -> None:
        nan, inf = float("nan"), float("inf")
        write_nifti(self.path("odd.nii"), (2, 2, 2), [nan, inf, -inf, 0, 1, 2, 3, 4])
        write_nifti(self.path("none.nii"), (2, 2, 2), [nan] * 8)
        write_nifti(self.path("flat.nii"), (2, 2, 2), [7] * 8)
        odd = self.atlases(self.page("odd.nii", "flat.nii"))[0].samples
        assert odd[:2] == [0, 255]
        for name in ("none.nii", "flat.nii"):
            assert set(self.atlases(self.page(name, name))[0].samples) == {0}

    @pytest.mark.parametrize("name", ['<b>"&.nii', "a</script><script>alert(1)<!--.nii", "{{script}}.nii"])
    def test_nothing_is_fetched_and_names_are_text(self, name: str) -> None:
        self.path(name).parent.mkdir(exist_ok=True)  # the slash of </script> is a folder's
        write_nifti(self.path(name), (4, 3, 2), volume(4, 3, 2))
        page = self.page(name, name)
        assert page_data(page)["title"].endswith(name)
        assert "<b>" not in page
        assert (page.count("<script"), page.count("</script>")) == (2, 2)
        assert re.findall(r"(?:https?:)?//[a-z]", re.sub(r"base64,[^\"]*", "", page)) == []
        assert "default-src 'none'" in page

    def test_nobody_else_may_read_the_page_of_a_private_file(self) -> None:
        write_nifti(self.path("a.nii"), (4, 3, 2), volume(4, 3, 2))
        self.path("a.nii").chmod(0o600)
        self.page("a.nii", "a.nii")
        assert self.path("page.html").stat().st_mode & 0o777 == 0o600
