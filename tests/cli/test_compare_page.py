"""ungrain compare --html: the page has the pictures, the numbers and nothing from elsewhere."""

import re
import struct
from pathlib import Path

import pytest

from support import Picture, Workspace, page_data, page_pictures, picture, read_bmp, read_png, write_npy, write_pnm, writes

KIND = "png" if writes(".png") else "bmp"  # what the build can write


class TestComparePage(Workspace):
    def page(self, *files: str | Path, **options) -> str:
        self.done("compare", *files, "--html", "page.html", **options)
        self.assert_tidy()
        return self.path("page.html").read_text(encoding="utf-8")

    def shown(self, page: str) -> list[Picture]:
        result = []
        for i, (_, kind, data) in enumerate(page_pictures(page)):
            assert kind == KIND
            path = self.path(f"shown-{i}.{kind}")
            path.write_bytes(data)
            result.append((read_png if kind == "png" else read_bmp)(path))
        return result

    @pytest.mark.parametrize("channels, name", [(1, "gray.pgm"), (3, "colour.ppm")])
    def test_pictures_are_the_files(self, channels: int, name: str) -> None:
        clean = picture(97, 61, channels, seed=1)
        noisy = picture(97, 61, channels, seed=2)
        write_pnm(self.path("clean-" + name), clean)
        write_pnm(self.path("noisy-" + name), noisy)
        page = self.page("clean-" + name, "noisy-" + name)
        assert [p.samples for p in self.shown(page)] == [clean.samples, noisy.samples]

    def test_every_kind_of_content_survives_the_compression(self, subtests: pytest.Subtests) -> None:
        flat = [7] * (300 * 200)
        stripes = [(x // 3 * 40 + y) % 256 for y in range(200) for x in range(300)]
        rare = [0] * (300 * 200)
        for i in range(24):  # counts like Fibonacci's make the deepest of Huffman's trees
            a, b = 1, 1
            for _ in range(i):
                a, b = b, a + b
            for k in range(min(a, 2000)):
                rare[(i * 2311 + k * 29) % len(rare)] = 5 * i + 1
        for name, samples in (("flat", flat), ("stripes", stripes), ("rare", rare)):
            with subtests.test(name=name):
                image = Picture(300, 200, 1, samples)
                write_pnm(self.path("a.pgm"), image)
                page = self.page("a.pgm", "a.pgm")
                assert self.shown(page)[1].samples == samples
                assert "∞" in page
        write_pnm(self.path("one.pgm"), Picture(1, 1, 1, [200]))
        assert self.shown(self.page("one.pgm", "one.pgm"))[0].samples == [200]

    def test_more_than_8_bits_are_scaled(self, subtests: pytest.Subtests) -> None:
        image = picture(40, 30)
        write_pnm(self.path("wide.pgm"), image.scaled(65535))
        write_npy(self.path("float.npy"), image.scaled(1, whole=False))
        for name in ("wide.pgm", "float.npy"):
            with subtests.test(name=name):
                assert self.shown(self.page(name, name))[0].samples == image.samples

    def test_numbers_are_those_of_the_table(self) -> None:
        write_pnm(self.path("a.pgm"), picture(64, 48, seed=1))
        write_pnm(self.path("b.pgm"), picture(64, 48, seed=2))
        told = self.done("compare", "a.pgm", "b.pgm", "--html", "page.html").out_lines[1].split()
        page = self.path("page.html").read_text(encoding="utf-8")
        shown = page_data(page)["pictures"]
        assert [one["name"] for one in shown] == ["a.pgm", "b.pgm"]
        assert shown[0]["metrics"] is None
        metrics = shown[1]["metrics"]
        for text, name in zip(told, ("psnr", "ssim", "fsim")):
            assert metrics[name] == pytest.approx(float(text), abs=1e-4)
        # And for readers whose browser runs no scripts.
        assert f"b.pgm {float(told[0]):.2f} dB, SSIM {float(told[1]):.4f}, FSIM {float(told[2]):.4f}" in page

    def test_large_pictures_show_their_middle(self) -> None:
        width, height = 2500, 2000
        rows = bytearray(width * height)
        rows[(height // 2) * width + width // 2] = 255
        self.path("large.pgm").write_bytes(b"P5\n%d %d\n255\n" % (width, height) + rows)
        page = self.page("large.pgm", "large.pgm")
        assert "Shown is the middle, 2000 x 2000 pixels from (250, 0)" in page
        _, kind, data = page_pictures(page)[0]
        size = struct.unpack(">ii", data[16:24]) if kind == "png" else struct.unpack("<ii", data[18:26])
        assert size == (2000, 2000)

    def test_nothing_is_fetched(self) -> None:
        page = self.page("gray.pgm", "gray.pgm")
        assert re.findall(r"(?:https?:)?//[a-z]", re.sub(r"base64,[^\"]*", "", page)) == []
        assert "default-src 'none'" in page

    def test_names_are_text(self) -> None:
        name = '<b>"&.pgm'
        write_pnm(self.path(name), picture(24, 18))
        page = self.page("gray.pgm", name)
        assert "&lt;b&gt;&quot;&amp;.pgm" in page
        assert "<b>" not in page
        assert page_data(page)["pictures"][1]["name"] == name

    @pytest.mark.parametrize("name", ["a</script><script>alert(1)<!--.pgm", "a\u2028b\u2029.pgm", "{{script}}.pgm", "\\u003c.pgm"])
    def test_no_name_ends_the_data(self, name: str) -> None:
        self.path(name).parent.mkdir(exist_ok=True)  # the slash of </script> is a folder's
        write_pnm(self.path(name), picture(24, 18))
        page = self.page(name, "gray.pgm")
        assert page_data(page)["title"].endswith(name)
        assert (page.count("<script"), page.count("</script>")) == (2, 2)
        data = re.search(r'id="data">(.*?)</script>', page, re.S)
        assert data
        assert not re.search("[<\u2028\u2029]", data[1])

    def test_a_file_that_fails_is_not_on_the_page(self) -> None:
        result = self.run_here("compare", "gray.pgm", "missing.pgm", "gray.pgm", "--html", "page.html")
        assert result.code == 1
        names = [name for name, _, _ in page_pictures(self.path("page.html").read_text(encoding="utf-8"))]
        assert names == ["gray.pgm", "gray.pgm"]
        result = self.run_here("compare", "gray.pgm", "missing.pgm", "--html", "none.html")
        assert result.code == 1
        assert not self.path("none.html").exists()

    def test_never_over_an_image(self) -> None:
        before = self.bytes_of("gray.pgm")
        result = self.run_here("compare", "gray.pgm", "gray.pgm", "--html", "./gray.pgm")
        assert result.code == 2
        assert len(result.err_lines) == 1
        assert self.bytes_of("gray.pgm") == before

    def test_a_page_that_cannot_be_written_is_one_line(self) -> None:
        result = self.run_here("compare", "gray.pgm", "gray.pgm", "--html", "nowhere/page.html")
        assert result.code == 1
        assert len(result.err_lines) == 1
        assert "nowhere" in result.err
