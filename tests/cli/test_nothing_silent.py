"""Nothing is lost without a word: pages, samples beyond white, metadata, the way a picture stands, memory."""

from __future__ import annotations

import json
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import (REPOSITORY, SOON, Picture, Workspace, ends_by, exif, jpeg_with_exif, needs_format, npy_bytes,
                     orientation_in, picture, png_chunk, read_npy, read_png, read_pnm, read_tiff, run_measured, start,
                     temporaries, tiff_links, tiff_tag, wait_until, write_apng, write_imagej, write_interlaced_png,
                     write_npy, write_pfm, write_png, write_pnm, write_sparse_tiff, write_tiff, writes)

COPY = ("--method", "box", "--radius", "0")  # changes no pixel: what is read is what is written
PAGES = 5
LIMIT = 64 << 20  # of memory
PILLOW = REPOSITORY / "build/files-venv/bin/python"


def stack(count: int = PAGES, width: int = 12, height: int = 9) -> list[Picture]:
    return [picture(width, height, seed=page + 1) for page in range(count)]


def samples(pages: list[Picture]) -> list[list[float]]:
    return [page.samples for page in pages]


class SilentCase(Workspace):
    needed: tuple[str, ...] = ()  # formats

    @pytest.fixture(autouse=True)
    def formats(self, workspace: None) -> None:
        for extension in self.needed:
            if reason := needs_format(extension):
                pytest.skip(reason)

    def refused(self, pattern: str, *arguments: str | Path, code: int = 1) -> str:
        """One line, nothing written. Returns the line."""
        before = sorted(self.folder.rglob("*"))
        result = self.run_here(*arguments)
        assert (result.code, result.out) == (code, ""), f"{arguments}: {result}"
        assert re.search(r"\Aungrain: [^\n]*\n\Z", result.err)
        assert re.search(pattern, result.err)
        assert sorted(self.folder.rglob("*")) == before, "something was written"
        return result.err

    def refused_usage(self, pattern: str, *arguments: str | Path) -> None:
        self.refused(pattern, *arguments, code=2)

    def report(self, *arguments: str | Path) -> dict:
        return json.loads(self.done(*arguments, "--json").out)


class TestStacks(SilentCase):
    """A stack that is damaged says how much of it was found, and gives no output."""

    needed = (".tif",)

    def write_damaged(self, change) -> None:
        data = bytearray(write_tiff(self.path("a.tif"), stack()).read_bytes())
        self.path("a.tif").write_bytes(change(data))

    def test_whole(self) -> None:
        write_tiff(self.path("a.tif"), stack())
        assert self.report("a.tif", "-o", "b.tif", *COPY)["pages"] == PAGES
        assert samples(read_tiff(self.path("b.tif"))) == samples(stack())

    def test_truncated(self, subtests: pytest.Subtests) -> None:
        """Cut where the third page begins, and inside its directory."""
        links = tiff_links(write_tiff(self.path("a.tif"), stack()).read_bytes())
        for end in (links[2] + 4, links[3] - 20):
            with subtests.test(end=end):
                self.write_damaged(lambda data: data[:end])
                self.refused("2 pages were found", "a.tif", "-o", "b.tif", *COPY)

    def test_broken_link(self) -> None:
        def lead_outside(data: bytearray) -> bytearray:
            struct.pack_into("<I", data, tiff_links(data)[3], len(data) + 100)
            return data
        self.write_damaged(lead_outside)
        self.refused("3 pages were found.*outside", "a.tif", "-o", "b.tif", *COPY)

    def test_loop(self) -> None:
        def lead_back(data: bytearray) -> bytearray:
            links = tiff_links(data)
            struct.pack_into("<I", data, links[-1], struct.unpack_from("<I", data, links[1])[0])
            return data
        self.write_damaged(lead_back)
        self.refused(f"{PAGES} pages were found.*loop", "a.tif", "-o", "b.tif", *COPY)

    def test_pages_of_different_size(self) -> None:
        pages = stack()
        pages[3] = picture(20, 9)
        write_tiff(self.path("a.tif"), pages)
        self.refused("page 4 is 20 x 9.*--pages", "a.tif", "-o", "b.tif", *COPY)
        self.done("a.tif", "-o", "b.tif", "--pages", "1-3,5", *COPY)
        assert samples(read_tiff(self.path("b.tif"))) == samples(pages[:3] + pages[4:])
        self.done("a.tif", "-o", "c.tif", "--pages", "4", *COPY)
        assert samples(read_tiff(self.path("c.tif"))) == samples(pages[3:4])

    def test_one_directory_of_imagej(self) -> None:
        write_imagej(self.path("a.tif"), stack())
        assert self.report("a.tif", "-o", "b.tif", *COPY)["pages"] == PAGES
        assert samples(read_tiff(self.path("b.tif"))) == samples(stack())

    def test_one_directory_of_imagej_truncated(self) -> None:
        data = write_imagej(self.path("a.tif"), stack()).read_bytes()
        self.path("a.tif").write_bytes(data[:-12 * 9 - 5])
        self.refused("3 images were found.*5", "a.tif", "-o", "b.tif", *COPY)

    def test_other_commands(self, subtests: pytest.Subtests) -> None:
        self.write_damaged(lambda data: data[:len(data) // 2])
        for arguments in (("estimate", "a.tif"), ("compare", "a.tif", "a.tif"),
                          ("noise", "a.tif", "-o", "b.tif", "--gaussian", "3")):
            with subtests.test(arguments[0]):
                self.refused("2 pages were found", *arguments)

    def test_gif(self, subtests: pytest.Subtests) -> None:
        if reason := needs_format(".gif"):
            pytest.skip(reason)
        write_tiff(self.path("a.tif"), stack())
        self.done("a.tif", "-o", "a.gif", *COPY)
        assert self.report("a.gif", "-o", "b.tif", *COPY)["pages"] == PAGES
        self.path("b.tif").unlink()
        whole = self.bytes_of("a.gif")
        for share in (0.3, 0.6, 0.95):
            with subtests.test(share=share):
                self.path("a.gif").write_bytes(whole[:int(share * len(whole))])
                line = self.refused("truncated: [0-4] whole frames? w(as|ere) found", "a.gif", "-o", "b.tif", *COPY)
        assert "4 whole frames" in line

    def test_animated_png(self) -> None:
        if reason := needs_format(".png"):
            pytest.skip(reason)
        write_apng(self.path("a.png"), stack())
        self.refused(f"animated PNG of {PAGES} frames", "a.png", "-o", "b.png", *COPY)
        self.done("a.png", "-o", "b.png", "--pages", "1", *COPY)
        assert read_png(self.path("b.png")).samples == stack()[0].samples


class TestPages(SilentCase):
    needed = (".tif",)

    @pytest.fixture(autouse=True)
    def prepared(self, formats: None) -> None:
        write_tiff(self.path("a.tif"), stack())

    @pytest.mark.parametrize("text, pages", [
        ("2,4-", (2, 4, 5)), ("1", (1,)), ("2-3", (2, 3)), ("5,1", (1, 5)), ("1-5", (1, 2, 3, 4, 5)),
    ])
    def test_some(self, text: str, pages: tuple[int, ...]) -> None:
        assert self.report("a.tif", "-o", "b.tif", "--pages", text, *COPY)["pages"] == len(pages)
        assert samples(read_tiff(self.path("b.tif"))) == [stack()[page - 1].samples for page in pages]

    def test_of_an_array(self) -> None:
        body = bytes(int(v) for page in stack() for v in page.samples)
        self.path("a.npy").write_bytes(npy_bytes(f"({PAGES}, 9, 12)", "|u1", body))
        self.done("a.npy", "--axis", "0", "-o", "b.npy", "--pages", "2,4", *COPY)
        assert b"(2, 9, 12)" in self.bytes_of("b.npy")
        assert self.bytes_of("b.npy")[128:] == body[108:216] + body[324:432]

    def test_one_page_of_many_fits_a_format_of_one(self) -> None:
        self.refused("holds one page, not 5", "a.tif", "-o", "b.pgm", *COPY)
        self.done("a.tif", "-o", "b.pgm", "--pages", "3", *COPY)
        assert read_pnm(self.path("b.pgm")).samples == stack()[2].samples

    def test_not_there(self) -> None:
        self.refused("has 5 pages: --pages names page 6", "a.tif", "-o", "b.tif", "--pages", "6")
        self.refused("has 5 pages: --pages names page 6", "a.tif", "-o", "b.tif", "--pages", "2,4-9")
        self.refused("has 5 pages: --pages names page 7", "a.tif", "-o", "b.tif", "--pages", "7-")
        self.refused("has 1 page: --pages names page 2", "gray.pgm", "-o", "b.pgm", "--pages", "2")

    @pytest.mark.parametrize("text", ["0", "x", "", "-", "-3", "3-2", "1,,2", "1,", "1.5", "1-2-3", "99999999999999999999"])
    def test_bad_value(self, text: str) -> None:
        self.refused_usage("--pages (takes numbers from 1|needs a value)", "a.tif", f"--pages={text}")


class TestChannels(SilentCase):
    @pytest.fixture(autouse=True)
    def prepared(self, formats: None) -> None:
        self.four = picture(12, 9, 4)
        write_npy(self.path("four.npy"), self.four, "u1")

    def seen(self, *arguments: str) -> tuple[str, bool]:
        report = self.report(*arguments, "-o", "out.npy", *COPY)
        assert read_npy(self.path("out.npy"))[1].samples == self.four.samples
        return report["colour"], report["alpha"]

    def test_alpha(self) -> None:
        assert self.seen("four.npy", "--alpha", "yes") == ("rgb", True)
        assert not self.seen("four.npy", "--alpha", "no")[1]
        self.refused("--alpha yes: none of its 3 channels can be alpha", "colour.ppm", "-o", "b.ppm", "--alpha", "yes")
        self.done("colour.ppm", "-o", "b.ppm", "--alpha", "no", *COPY)

    def test_channels(self) -> None:
        assert self.seen("four.npy", "--channels", "rgba") == ("rgb", True)
        assert self.seen("four.npy", "--channels", "multi") == ("multi", False)
        report = self.report("colour.ppm", "-o", "b.ppm", "--channels", "multi", *COPY)
        assert (report["colour"], report["channels"]) == ("multi", 3)
        report = self.report("gray.pgm", "-o", "b.pgm", "--channels", "gray", *COPY)
        assert (report["colour"], report["channels"]) == ("gray", 1)

    def test_channels_that_are_not_there(self) -> None:
        for kind, count in (("gray", 1), ("gray-alpha", 2), ("rgb", 3)):
            self.refused(f"--channels {kind} means {count} channels?, the file has 4", "four.npy", "-o", "b.npy",
                         "--channels", kind)

    def test_alpha_is_not_filtered(self) -> None:
        """Alpha comes back as it was; a fourth channel that is none is filtered with the others."""
        def fourth(*arguments: str) -> list[float]:
            self.done("four.npy", "-o", "out.npy", "--method", "box", "--radius", "2", *arguments)
            return read_npy(self.path("out.npy"))[1].samples[3::4]
        assert fourth("--alpha", "yes") == self.four.samples[3::4]
        assert fourth("--alpha", "no") != self.four.samples[3::4]

    def test_bad_value(self) -> None:
        self.refused_usage("--alpha takes one of yes, no, got 'maybe'", "four.npy", "--alpha", "maybe")
        for text in ("cmyk", "RGB", "gray, rgb", "4"):
            self.refused_usage(f"--channels takes one of auto, gray, gray-alpha, rgb, rgba, multi, got '{text}'",
                               "four.npy", "--channels", text)


class TestSaving(SilentCase):
    needed = (".tif",)
    NUMBERS = {"none": 1, "lzw": 5, "deflate": 8, "packbits": 32773, "zstd": 50000, "lzma": 34925, "jpeg": 7}

    def write(self, compression: str) -> str:
        """The name of a file of this compression; skips where libtiff has it not."""
        name = f"{compression}.tif"
        result = self.run_here("colour.ppm", "-o", name, "--compression", compression, *COPY)
        if "this build's libtiff does not have" in result.err:
            pytest.skip(result.err)
        assert (result.code, result.err) == (0, "")
        return name

    @pytest.mark.parametrize("compression, number", NUMBERS.items())
    def test_every_compression(self, compression: str, number: int) -> None:
        name = self.write(compression)
        assert tiff_tag(self.path(name), 259) == [number]
        self.done(name, "-o", "back.ppm", *COPY)
        back, given = (read_pnm(self.path(file)).samples for file in ("back.ppm", "colour.ppm"))
        if compression != "jpeg":
            assert back == given
        assert sum(abs(a - b) for a, b in zip(back, given)) / len(given) < 10

    def test_default_is_that_of_the_input(self, subtests: pytest.Subtests) -> None:
        for compression, number in self.NUMBERS.items():
            with subtests.test(compression=compression):
                self.done(self.write(compression), "-o", "same.tif", *COPY)
                assert tiff_tag(self.path("same.tif"), 259) == [number]
        self.done("colour.ppm", "-o", "same.tif", *COPY)
        assert tiff_tag(self.path("same.tif"), 259) == [1]

    def test_compression_that_cannot_hold_it(self) -> None:
        write_pnm(self.path("deep.pgm"), picture(24, 18).scaled(65535))
        self.refused("JPEG in TIFF holds 8-bit", "deep.pgm", "-o", "b.tif", "--compression", "jpeg", *COPY)

    @pytest.mark.parametrize("extension", [".jpg", ".webp"])
    def test_quality(self, extension: str) -> None:
        if reason := needs_format(extension):
            pytest.skip(reason)
        sizes = []
        for quality in ("5", "50", "95", "100"):
            self.done("colour.ppm", "-o", f"b{extension}", "--jpeg-quality", quality, *COPY)
            sizes.append(len(self.bytes_of(f"b{extension}")))
        assert sizes == sorted(set(sizes))
        self.done("colour.ppm", "-o", f"b{extension}", *COPY)
        assert len(self.bytes_of(f"b{extension}")) == sizes[2]

    def test_quality_of_bilateral_is_another(self) -> None:
        for quality in ("exact", "separable"):
            self.done("gray.pgm", "-o", "b.tif", "--method", "bilateral", "--quality", quality, "--jpeg-quality", "80")

    def test_bad_values(self) -> None:
        for text in ("0", "101", "x", "1.5", "-1"):
            self.refused_usage("--jpeg-quality takes a whole number from 1 to 100", "gray.pgm", f"--jpeg-quality={text}")
        for text in ("zip", "LZW", "none, lzw"):
            self.refused_usage("--compression takes one of none, lzw, deflate, packbits, zstd, lzma, jpeg, got",
                               "gray.pgm", "--compression", text)

    def test_no_clobber(self) -> None:
        self.path("out.pgm").write_text("mine")
        result = self.done("gray.pgm", "-o", "out.pgm", "--no-clobber")
        assert "out.pgm  is there already" in result.out
        assert self.bytes_of("out.pgm") == b"mine"
        assert self.report("gray.pgm", "-o", "out.pgm", "--no-clobber")["status"] == "skipped"
        self.done("gray.pgm", "-o", "out.pgm")
        assert read_pnm(self.path("out.pgm")).width == 24

    def test_no_clobber_does_the_others(self) -> None:
        self.path("out").mkdir()
        self.path("out/gray.pgm").write_text("mine")
        self.done("gray.pgm", "colour.ppm", "-o", "out", "--no-clobber")
        assert self.bytes_of("out/gray.pgm") == b"mine"
        assert read_pnm(self.path("out/colour.ppm")).width == 24


class TestMemory(SilentCase):
    needed = (".png",)

    def check_whole_decoder(self, name: str, width: int) -> None:
        """Refused with a number that then does."""
        line = self.refused("must be decoded whole", name, "-o", "b.ppm", "--memory", "1M", *COPY)
        number = re.search(r"--memory (\d+M)", line)
        assert number is not None, line
        for method in ((), COPY):
            assert self.report(name, "-o", "b.ppm", "--memory", number[1], *method)["width"] == width

    def test_interlaced_png(self) -> None:
        image = Picture(800, 600, 3, [(x + y) % 256 for y in range(600) for x in range(3 * 800)])
        write_interlaced_png(self.path("a.png"), image)
        self.check_whole_decoder("a.png", 800)
        assert read_pnm(self.path("b.ppm")).samples == image.samples
        write_png(self.path("rows.png"), image)
        self.done("rows.png", "-o", "b.ppm", "--memory", "1M", *COPY)

    def test_progressive_jpeg(self) -> None:
        if not PILLOW.exists():
            pytest.skip("there is no Pillow: tests/files makes it")
        script = "import sys; from PIL import Image; Image.new('RGB', (800, 600)).save(sys.argv[1], progressive=True)"
        done = subprocess.run([PILLOW, "-c", script, self.path("a.jpg")], capture_output=True)
        if done.returncode != 0:
            pytest.skip("there is no Pillow: tests/files makes it")
        self.check_whole_decoder("a.jpg", 800)

    def check_streaming(self, name: str, output: str, *arguments: str) -> None:
        """200 Mpixel in 64 MiB: the buffers keep to the limit, and what is held besides does not grow with the file."""
        result, work = run_measured(name, "-o", output, "--memory", str(LIMIT), *arguments, folder=self.folder)
        assert (result.code, result.err) == (0, "")
        assert work.peak < LIMIT + (96 << 20)

    @pytest.mark.measured
    @pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the work")
    @pytest.mark.parametrize("arguments", [("--method", "median", "--radius", "1"), ()], ids=["median", "no option"])
    def test_large_pgm(self, arguments: tuple[str, ...]) -> None:
        with self.path("a.pgm").open("wb") as file:
            file.write(b"P5\n20000 10000\n255\n")
            file.truncate(file.tell() + 20000 * 10000)
        self.check_streaming("a.pgm", "b.pgm", *arguments)

    @pytest.mark.measured
    @pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the work")
    @pytest.mark.parametrize("arguments", [("--method", "median", "--radius", "1"), ()], ids=["median", "no option"])
    def test_large_tiff(self, arguments: tuple[str, ...]) -> None:
        if reason := needs_format(".tif"):
            pytest.skip(reason)
        write_sparse_tiff(self.path("a.tif"), 20000, 10000)
        self.check_streaming("a.tif", "b.tif", *arguments)


class TestWhiteLevel(SilentCase):
    """Floats tell no white level: their values do, and what would be cut off is not written."""

    needed = (".png",)

    @pytest.fixture(autouse=True)
    def prepared(self, formats: None) -> None:
        self.image = picture(48, 36)
        self.mean = sum(self.image.samples) / len(self.image.samples) / 255

    def check_png(self, source: str, white: float, origin: str) -> None:
        report = self.report(source, "-o", "b.png")
        assert (report["range"], report["range_from"]) == (white, origin)
        written = read_png(self.path("b.png"))
        assert sum(written.samples) / len(written.samples) / written.white == pytest.approx(self.mean, abs=0.02)

    @pytest.mark.parametrize("white, origin", [(1, "type"), (255, "values"), (4095, "values"), (65535, "values")])
    @pytest.mark.parametrize("kind, write", [("npy", write_npy), ("pfm", write_pfm)])
    def test_floats(self, white: int, origin: str, kind: str, write) -> None:
        write(self.path(f"a.{kind}"), self.image.scaled(white, whole=False))
        self.check_png(f"a.{kind}", white, origin)

    def test_line_tells_it(self) -> None:
        write_npy(self.path("a.npy"), self.image.scaled(4095, whole=False))
        assert "  white 4095 by its values" in self.done("a.npy", "-o", "b.png").out

    def test_given_range(self) -> None:
        write_npy(self.path("a.npy"), self.image.scaled(4095, whole=False))
        report = self.report("a.npy", "-o", "b.png", "--range", "8190")
        assert (report["range"], report["range_from"]) == (8190, "--range")
        written = read_png(self.path("b.png"))
        assert sum(written.samples) / len(written.samples) / written.white == pytest.approx(self.mean / 2, abs=0.02)

    def test_integers(self) -> None:
        write_npy(self.path("a.npy"), self.image, "u1")
        report = self.report("a.npy", "-o", "b.png")
        assert (report["range"], report["range_from"]) == (255, "type")

    def check_refused(self, low: float, high: float, side: str) -> None:
        values = [low + (high - low) * v / 255 for v in self.image.samples]
        write_npy(self.path("a.npy"), Picture(48, 36, 1, values))
        self.refused(f"samples lie {side}.*--range", "a.npy", "-o", "b.png")
        self.refused(f"samples lie {side}.*--range", "a.npy", "-o", "b.npy", "--depth", "u16")
        assert self.report("a.npy", "-o", "b.png", "--range", "2")["range"] == 2
        self.done("a.npy", "-o", "b.npy", *COPY)
        assert read_npy(self.path("b.npy"))[1].samples == read_npy(self.path("a.npy"))[1].samples

    def test_beyond_white(self) -> None:
        self.check_refused(0, 1.4, "above white")

    def test_negative(self) -> None:
        self.check_refused(-1, 1, "below 0")

    def test_nothing_is_left_of_what_was_refused(self) -> None:
        values = [1.4 * v / 255 for v in self.image.samples]
        write_npy(self.path("a.npy"), Picture(48, 36, 1, values))
        self.path("b.png").write_text("mine")
        self.refused("--range", "a.npy", "-o", "b.png")
        assert self.bytes_of("b.png") == b"mine"
        self.assert_tidy()


class TestNoNoise(SilentCase):
    """A picture without noise is handed on, and the report says so."""

    needed = (".png",)
    RAMP = Picture(64, 48, 1, [x for _ in range(48) for x in range(64)])
    FLAT = Picture(64, 48, 3, [90] * 64 * 48 * 3)

    def check_unchanged(self, name: str) -> None:
        output = "out" + Path(name).suffix
        assert "no noise found" in self.done(name, "-o", output).out
        assert self.bytes_of(output) == self.bytes_of(name)
        assert not self.report(name, "-o", output)["noise_found"]
        assert self.bytes_of(output) == self.bytes_of(name)

    def test_png(self) -> None:
        write_png(self.path("flat.png"), self.FLAT, png_chunk(b"tEXt", b"Comment\0kept"))
        write_png(self.path("ramp.png"), self.RAMP)
        self.check_unchanged("flat.png")
        self.check_unchanged("ramp.png")

    def test_rounding_is_no_noise(self) -> None:
        """What rounding to whole numbers leaves of a ramp is 0.29 at most."""
        slant = Picture(64, 48, 1, [2 * x + y for y in range(48) for x in range(64)])
        write_png(self.path("slant.png"), slant)
        self.check_unchanged("slant.png")

    def test_jpeg(self) -> None:
        if reason := needs_format(".jpg"):
            pytest.skip(reason)
        write_pnm(self.path("flat.ppm"), self.FLAT)
        self.done("flat.ppm", "-o", "flat.jpg", "--jpeg-quality", "40", *COPY)
        self.check_unchanged("flat.jpg")

    def test_in_place(self) -> None:
        write_png(self.path("flat.png"), self.FLAT)
        before = self.bytes_of("flat.png")
        self.done("flat.png", "-o", "flat.png")
        assert self.bytes_of("flat.png") == before

    def test_another_format(self) -> None:
        write_png(self.path("flat.png"), self.FLAT)
        assert "no noise found" in self.done("flat.png", "-o", "flat.ppm").out
        assert read_pnm(self.path("flat.ppm")).samples == self.FLAT.samples

    def test_another_type(self) -> None:
        write_png(self.path("flat.png"), self.FLAT)
        self.done("flat.png", "-o", "deep.png", "--depth", "u16")
        assert read_png(self.path("deep.png")).samples == [257 * v for v in self.FLAT.samples]

    def test_strength_that_is_given(self) -> None:
        write_png(self.path("ramp.png"), self.RAMP)
        result = self.done("ramp.png", "-o", "out.png", "--sigma", "20")
        assert "no noise found" not in result.out
        assert "sigma 20 of 255" in result.out
        assert read_png(self.path("out.png")).samples != self.RAMP.samples
        assert self.report("ramp.png", "-o", "out.png", "--sigma", "20")["noise_found"]

    def test_noise(self) -> None:
        write_png(self.path("noisy.png"), picture(64, 48))
        assert "no noise found" not in self.done("noisy.png", "-o", "out.png").out

    def test_nan_is_no_reason_to_be_silent(self) -> None:
        """Samples that are not finite are filled, told or refused also where there is no noise."""
        values = [0.5] * 64 * 48
        values[100] = float("nan")
        write_npy(self.path("a.npy"), Picture(64, 48, 1, values))
        self.refused("not finite|not a finite|NaN", "a.npy", "-o", "b.npy", "--nonfinite", "error")
        assert "1 pixels were not finite" in self.done("a.npy", "-o", "b.npy").out
        assert read_npy(self.path("b.npy"))[1].samples[100] == 0.5


class TestMetadataNotKept(SilentCase):
    needed = (".png",)

    @pytest.fixture(autouse=True)
    def prepared(self, formats: None) -> None:
        chunks = png_chunk(b"tEXt", b"Comment\0a word") + png_chunk(b"eXIf", exif(1))
        write_png(self.path("a.png"), picture(24, 18, 3), chunks)

    def test_line(self) -> None:
        result = self.done("a.png", "-o", "b.ppm")
        assert len(result.out_lines) == 2, result.out
        assert result.out_lines[1] == "b.ppm: metadata not kept: EXIF, PNG text"

    def test_json(self) -> None:
        assert self.report("a.png", "-o", "b.ppm")["metadata_not_kept"] == "EXIF, PNG text"

    def test_quiet(self) -> None:
        assert self.done("a.png", "-o", "b.ppm", "-q").out == ""

    def test_kept(self) -> None:
        assert len(self.done("a.png", "-o", "b.png").out_lines) == 1
        assert "metadata_not_kept" not in self.report("a.png", "-o", "b.png")
        assert b"Comment\0a word" in self.bytes_of("b.png")

    def test_nothing_to_keep(self) -> None:
        assert len(self.done("colour.ppm", "-o", "b.pam").out_lines) == 1


def upright(image: Picture, orientation: int) -> Picture:
    """EXIF's definition: which side of the upright picture the stored row 0 and column 0 are."""
    def stored(x: int, y: int) -> list[float]:
        at = image.channels * (y * image.width + x)
        return image.samples[at:at + image.channels]

    right, bottom = image.width - 1, image.height - 1
    source = {1: lambda x, y: (x, y), 2: lambda x, y: (right - x, y), 3: lambda x, y: (right - x, bottom - y),
              4: lambda x, y: (x, bottom - y), 5: lambda x, y: (y, x), 6: lambda x, y: (y, bottom - x),
              7: lambda x, y: (right - y, bottom - x), 8: lambda x, y: (right - y, x)}[orientation]
    width, height = (image.width, image.height) if orientation < 5 else (image.height, image.width)
    turned = [v for y in range(height) for x in range(width) for v in stored(*source(x, y))]
    return Picture(width, height, image.channels, turned, image.white)


class TestOrientation(SilentCase):
    """Pixels come out upright, whatever the format, and nothing tells a viewer to turn them again."""

    needed = (".jpg",)

    @pytest.fixture(autouse=True)
    def prepared(self, formats: None) -> None:
        self.done("colour.ppm", "-o", "plain.jpg", *COPY)
        self.done("plain.jpg", "-o", "plain.ppm", *COPY)
        self.stored = read_pnm(self.path("plain.ppm"))

    def read(self, name: str) -> Picture:
        readers = {".ppm": read_pnm, ".png": read_png, ".tif": lambda path: read_tiff(path)[0],
                   ".npy": lambda path: read_npy(path)[1]}
        return readers[Path(name).suffix](self.path(name))

    def check_tag(self, name: str) -> None:
        if name.endswith(".tif"):
            assert tiff_tag(self.path(name), 274) in ([], [1])
        elif name.endswith((".png", ".jpg")):
            assert orientation_in(self.bytes_of(name)) in (None, 1)

    def test_every_orientation(self, subtests: pytest.Subtests) -> None:
        for orientation in range(1, 9):
            self.path("a.jpg").write_bytes(jpeg_with_exif(self.bytes_of("plain.jpg"), orientation))
            expected = upright(self.stored, orientation)
            for name in ("b.ppm", "b.png", "b.tif", "b.npy"):
                if needs_format(Path(name).suffix):
                    continue
                with subtests.test(f"{orientation} to {name}"):
                    report = self.report("a.jpg", "-o", name, *COPY)
                    assert (report["width"], report["height"]) == (expected.width, expected.height)
                    found = self.read(name)
                    assert (found.width, found.height, found.samples) == (expected.width, expected.height, expected.samples)
                    self.check_tag(name)

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_jpeg_to_jpeg(self, orientation: int) -> None:
        self.path("a.jpg").write_bytes(jpeg_with_exif(self.bytes_of("plain.jpg"), orientation))
        self.done("a.jpg", "-o", "b.jpg", "--jpeg-quality", "100", *COPY)
        self.check_tag("b.jpg")
        self.done("b.jpg", "-o", "b.ppm", *COPY)
        found, expected = read_pnm(self.path("b.ppm")), upright(self.stored, orientation)
        assert (found.width, found.height) == (expected.width, expected.height)
        assert sum(abs(a - b) for a, b in zip(found.samples, expected.samples)) / len(found.samples) < 4

    @pytest.mark.parametrize("orientation", [0, 9, 65535])
    def test_nonsense(self, orientation: int) -> None:
        self.path("a.jpg").write_bytes(jpeg_with_exif(self.bytes_of("plain.jpg"), orientation))
        self.done("a.jpg", "-o", "b.ppm", *COPY)
        assert read_pnm(self.path("b.ppm")).samples == self.stored.samples

    def test_a_png_file_has_its_exif_once(self) -> None:
        """libpng 1.6.39 writes it again behind the pixels, which readers warn of."""
        if not writes(".png"):
            pytest.skip(needs_format(".png"))
        self.path("a.jpg").write_bytes(jpeg_with_exif(self.bytes_of("plain.jpg"), 1))
        self.done("a.jpg", "-o", "b.png", *COPY)
        data = self.bytes_of("b.png")
        assert data.count(b"eXIf") == 1
        assert data.endswith(b"IEND\xaeB`\x82")
        self.done("b.png", "-o", "c.ppm", *COPY)

    def test_without_noise_it_is_turned_all_the_same(self) -> None:
        """A copy of the bytes would be one that lies on its side, in formats whose viewers follow no tag."""
        half = Picture(64, 32, 3, [200 if x < 96 else 40 for _ in range(32) for x in range(192)])
        write_pnm(self.path("half.ppm"), half)
        self.done("half.ppm", "-o", "half.jpg", *COPY)
        self.path("a.jpg").write_bytes(jpeg_with_exif(self.bytes_of("half.jpg"), 6))
        self.done("a.jpg", "-o", "b.jpg")
        self.check_tag("b.jpg")
        report = self.report("b.jpg", "-o", "c.jpg")
        assert (report["width"], report["height"]) == (32, 64)


@pytest.mark.measured
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the work")
class TestLinear(SilentCase):
    """Four times the pages are four times the work, not sixteen times."""

    needed = (".tif",)

    def bytes_read(self, pages: int, side: int) -> int:
        image = picture(side, side)
        write_tiff(self.path("a.tif"), [image] * pages)
        result, work = run_measured("a.tif", "-o", "b.tif", folder=self.folder)
        assert (result.code, result.err) == (0, "")
        assert len(tiff_links(self.bytes_of("b.tif"))) - 1 == pages
        return work.read

    def check(self, pages: int, side: int) -> None:
        start_up = self.bytes_read(1, side)
        few, many = self.bytes_read(pages // 4, side) - start_up, self.bytes_read(pages, side) - start_up
        assert many < 6 * few

    def test_many_small_pages(self) -> None:
        self.check(2000, 1)

    def test_pages_whose_noise_is_measured(self) -> None:
        self.check(300, 64)

    def test_terminated_among_many_pages(self) -> None:
        write_tiff(self.path("a.tif"), [picture(8, 8)] * 20000)
        before = sorted(self.folder.iterdir())
        process = start("a.tif", "-o", "b.tif", folder=self.folder)
        wait_until(lambda: temporaries(self.folder), process)
        process.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        code, _, errors = ends_by(process)
        assert time.monotonic() - sent < SOON
        assert (code, errors) == (1, "ungrain: interrupted: 0 of 1 files done, no half-written file left\n")
        assert sorted(self.folder.iterdir()) == before


class TestFormats(Workspace):
    """ungrain formats: the table of what can be read and written."""

    def rows(self) -> dict[str, dict]:
        found = [json.loads(line) for line in self.done("formats", "--json").out_lines]
        assert len({row["format"] for row in found}) == len(found), "a name twice"
        return {row["format"]: row for row in found}

    def test_text(self) -> None:
        lines = self.done("formats").out_lines
        assert [line.split("  ")[0] for line in lines[1:]] == list(self.rows())
        assert re.search(r"\nBMP +\.bmp \.dib +yes +u8 +gray, rgb, rgb with alpha +one +-\n", "\n".join(lines))
        assert all(line == line.rstrip() for line in lines)

    def test_json(self) -> None:
        rows = self.rows()
        assert rows["PGM"] == {"format": "PGM", "extensions": [".pgm"], "read": True, "written": True,
                               "types": ["u8", "u16"], "channels": ["gray"], "several_pages": False,
                               "metadata": []}
        assert rows["NPY"]["several_pages"]
        assert (rows["PBM"]["read"], rows["PBM"]["written"], rows["PBM"]["types"]) == (True, False, [])

    def test_what_is_told_is_so(self, subtests: pytest.Subtests) -> None:
        """Each type that a format is said to hold is written; a type that it is not said to hold is refused."""
        for name, row in self.rows().items():
            if not row["written"] or name == "DNG":  # which is made from camera raw files only
                continue
            source = "gray.pgm" if "gray" in row["channels"] else "colour.ppm"
            for depth in ("u8", "u16", "f16", "f32"):
                with subtests.test(f"{name} {depth}"):
                    result = self.run_here(source, "-o", "out" + row["extensions"][0], "--depth", depth, *COPY)
                    assert result.code == (0 if depth in row["types"] else 1), result

    def test_usage(self) -> None:
        result = self.run_here("formats", "--jsn")
        assert (result.code, result.err) == (2, "ungrain: there is no option --jsn; did you mean --json?\n")
