"""Stacks of images in NPY files: --axis."""

from __future__ import annotations

import json
import re
import struct
import unittest
from pathlib import Path

from support import Workspace, needs_format, npy_bytes, picture, read_pnm, read_tiff, write_npy, write_pnm, writes

IDENTITY = ("--method", "bilateral", "--sigma-range", "0", "-q")  # gives every sample back
PAGES, WIDTH, HEIGHT = 3, 11, 9


def pages() -> list[list[float]]:
    return [picture(WIDTH, HEIGHT, seed=page + 1).samples for page in range(PAGES)]


def write_stack(path: Path, axis: int) -> Path:
    """(pages, height, width) in bytes, the axis of the pages at `axis`."""
    stack = pages()
    index = {0: lambda p, y, x: (p, y, x), 1: lambda p, y, x: (y, p, x), 2: lambda p, y, x: (y, x, p)}[axis]
    samples = sorted((index(p, y, x), int(stack[p][y * WIDTH + x]))
                     for p in range(PAGES) for y in range(HEIGHT) for x in range(WIDTH))
    path.write_bytes(npy_bytes(str(index(PAGES, HEIGHT, WIDTH)), "|u1", bytes(value for _, value in samples)))
    return path


class Stacks(Workspace):
    def test_every_axis_comes_back(self) -> None:
        for axis in (0, 1, 2):
            with self.subTest(axis):
                write_stack(self.path("a.npy"), axis)
                for word in (str(axis), str(axis - 3)):
                    self.done("a.npy", "-o", "b.npy", "--axis", word, *IDENTITY)
                    self.assertEqual(self.bytes_of("a.npy")[128:], self.bytes_of("b.npy")[128:])
                    shape = re.compile(rb"'shape': \(([^)]*)\)")
                    self.assertEqual(shape.search(self.bytes_of("a.npy"))[1], shape.search(self.bytes_of("b.npy"))[1])

    def test_each_page_is_what_it_is_alone(self) -> None:
        write_stack(self.path("a.npy"), 2)
        self.done("a.npy", "-o", "b.npy", "--axis", "-1", "-q")
        stacked = self.bytes_of("b.npy")[128:]
        for page in range(PAGES):
            write_pnm(self.path("page.pgm"), picture(WIDTH, HEIGHT, seed=page + 1))
            self.done("page.pgm", "-o", "alone.pgm", "-q")
            self.assertEqual(list(stacked[page::PAGES]), read_pnm(self.path("alone.pgm")).samples)

    def test_to_tiff_and_back(self) -> None:
        if not writes(".tif"):
            self.skipTest(needs_format(".tif"))
        write_stack(self.path("a.npy"), 1)
        self.done("a.npy", "-o", "b.tif", "--axis", "1", *IDENTITY)
        self.assertEqual([page.samples for page in read_tiff(self.path("b.tif"))], pages())
        self.done("b.tif", "-o", "c.npy", *IDENTITY)
        self.assertIn(b"(3, 9, 11)", self.bytes_of("c.npy"))
        self.assertEqual(list(self.bytes_of("c.npy")[128:]), [v for page in pages() for v in page])

    def test_without_axis_the_likely_one_is_told(self) -> None:
        write_stack(self.path("a.npy"), 0)
        result = self.run_here("a.npy")
        self.assertEqual(result.code, 1)
        self.assertRegex(result.err, r"\Aungrain: a.npy: shape \(3, 9, 11\): .*give --axis 0\n\Z")

    def test_json_tells_the_pages(self) -> None:
        write_stack(self.path("a.npy"), 0)
        report = json.loads(self.done("a.npy", "--axis", "0", "--json").out)
        self.assertEqual((report["pages"], report["width"], report["height"]), (PAGES, WIDTH, HEIGHT))

    def test_other_commands(self) -> None:
        write_stack(self.path("a.npy"), 2)
        self.assertEqual(len(self.done("estimate", "a.npy", "--axis", "2").out_lines), 1 + PAGES)
        self.done("noise", "a.npy", "-o", "n.npy", "--axis", "2", "--gaussian", "5")
        self.assertIn(b"(9, 11, 3)", self.bytes_of("n.npy"))
        compared = self.done("compare", "a.npy", "a.npy", "--axis", "2")
        self.assertEqual(len(compared.out_lines), 1 + PAGES)
        self.done("compare", "a.npy", "n.npy", "--axis", "2", "--html", "page.html")
        self.assertIn("first of 3 pages", self.path("page.html").read_text())

    def test_axis_counts_for_resume(self) -> None:
        stack = [v for page in pages() for v in page]
        self.path("a.npy").write_bytes(npy_bytes("(11, 9, 3)", "|u1", struct.pack(f"{len(stack)}B", *map(int, stack))))
        self.done("a.npy", "-o", "out/", "--axis", "2")
        self.assertIn("already done", self.done("a.npy", "-o", "out/", "--axis", "2", "--resume").out)
        self.assertNotIn("already done", self.done("a.npy", "-o", "out/", "--axis", "0", "--resume").out)

    def test_other_files_have_no_axis(self) -> None:
        self.done("gray.pgm", "-o", "b.pgm", "--axis", "0")

    def test_shape_of_one_channel_stays(self) -> None:
        image = picture(4, 3)
        write_npy(self.path("a.npy"), image, "u1")
        body = self.bytes_of("a.npy")[128:]
        self.path("a.npy").write_bytes(npy_bytes("(3, 4, 1)", "|u1", body))
        self.done("a.npy", "-o", "b.npy", *IDENTITY)
        self.assertEqual(self.bytes_of("b.npy"), self.bytes_of("a.npy"))

    def test_wrong_axis(self) -> None:
        write_stack(self.path("a.npy"), 0)
        result = self.run_here("a.npy", "--axis", "first")
        self.assertEqual((result.code, result.err), (2, "ungrain: --axis takes a whole number, got 'first'\n"))
        self.assertIn("shape (3, 9, 11) has no axis 7", self.run_here("a.npy", "--axis", "7").err)


if __name__ == "__main__":
    unittest.main()
