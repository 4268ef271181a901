"""Stacks of images in NPY files: --axis."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest

from support import (Picture, Workspace, needs_format, npy_bytes, picture, read_pnm, read_tiff, write_npy, write_pnm,
                     write_tiff, writes)

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


def mean_along(pages: list[Picture], radius: int, radius_z: int) -> list[int]:
    """box by its definition, border symmetric in all three directions, rounded."""
    def inside(place: int, size: int) -> int:
        place %= 2 * size
        return min(place, 2 * size - 1 - place)

    width, height = pages[0].width, pages[0].height
    means = []
    for page in range(len(pages)):
        near = [pages[inside(page + dz, len(pages))].samples for dz in range(-radius_z, radius_z + 1)]
        sums = [sum(samples[i] for samples in near) for i in range(width * height)]
        for y in range(height):
            for x in range(width):
                around = [sums[inside(y + dy, height) * width + inside(x + dx, width)]
                          for dy in range(-radius, radius + 1) for dx in range(-radius, radius + 1)]
                means.append(round(sum(around) / len(around) / len(near)))
    return means


class TestStacks(Workspace):
    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_every_axis_comes_back(self, axis: int) -> None:
        write_stack(self.path("a.npy"), axis)
        for word in (str(axis), str(axis - 3)):
            self.done("a.npy", "-o", "b.npy", "--axis", word, *IDENTITY)
            assert self.bytes_of("a.npy")[128:] == self.bytes_of("b.npy")[128:]
            shape = re.compile(rb"'shape': \(([^)]*)\)")
            assert shape.search(self.bytes_of("a.npy"))[1] == shape.search(self.bytes_of("b.npy"))[1]

    def test_each_page_is_what_it_is_alone(self) -> None:
        write_stack(self.path("a.npy"), 2)
        self.done("a.npy", "-o", "b.npy", "--axis", "-1", "-q")
        stacked = self.bytes_of("b.npy")[128:]
        for page in range(PAGES):
            write_pnm(self.path("page.pgm"), picture(WIDTH, HEIGHT, seed=page + 1))
            self.done("page.pgm", "-o", "alone.pgm", "-q")
            assert list(stacked[page::PAGES]) == read_pnm(self.path("alone.pgm")).samples

    def test_to_tiff_and_back(self) -> None:
        if not writes(".tif"):
            pytest.skip(needs_format(".tif"))
        write_stack(self.path("a.npy"), 1)
        self.done("a.npy", "-o", "b.tif", "--axis", "1", *IDENTITY)
        assert [page.samples for page in read_tiff(self.path("b.tif"))] == pages()
        self.done("b.tif", "-o", "c.npy", *IDENTITY)
        assert b"(3, 9, 11)" in self.bytes_of("c.npy")
        assert list(self.bytes_of("c.npy")[128:]) == [v for page in pages() for v in page]

    def test_without_axis_the_likely_one_is_told(self) -> None:
        write_stack(self.path("a.npy"), 0)
        result = self.run_here("a.npy")
        assert result.code == 1
        assert re.search(r"\Aungrain: a.npy: shape \(3, 9, 11\): .*give --axis 0\n\Z", result.err)

    def test_json_tells_the_pages(self) -> None:
        write_stack(self.path("a.npy"), 0)
        report = json.loads(self.done("a.npy", "--axis", "0", "--json").out)
        assert (report["pages"], report["width"], report["height"]) == (PAGES, WIDTH, HEIGHT)

    def test_other_commands(self) -> None:
        write_stack(self.path("a.npy"), 2)
        assert len(self.done("estimate", "a.npy", "--axis", "2").out_lines) == 1 + PAGES
        self.done("noise", "a.npy", "-o", "n.npy", "--axis", "2", "--gaussian", "5")
        assert b"(9, 11, 3)" in self.bytes_of("n.npy")
        compared = self.done("compare", "a.npy", "a.npy", "--axis", "2")
        assert len(compared.out_lines) == 1 + PAGES
        self.done("compare", "a.npy", "n.npy", "--axis", "2", "--html", "page.html")
        assert "first of 3 pages" in self.path("page.html").read_text()

    def test_axis_counts_for_resume(self) -> None:
        stack = [v for page in pages() for v in page]
        self.path("a.npy").write_bytes(npy_bytes("(11, 9, 3)", "|u1", struct.pack(f"{len(stack)}B", *map(int, stack))))
        self.done("a.npy", "-o", "out/", "--axis", "2")
        assert "already done" in self.done("a.npy", "-o", "out/", "--axis", "2", "--resume").out
        assert "already done" not in self.done("a.npy", "-o", "out/", "--axis", "0", "--resume").out

    def test_other_files_have_no_axis(self) -> None:
        self.done("gray.pgm", "-o", "b.pgm", "--axis", "0")

    def test_shape_of_one_channel_stays(self) -> None:
        image = picture(4, 3)
        write_npy(self.path("a.npy"), image, "u1")
        body = self.bytes_of("a.npy")[128:]
        self.path("a.npy").write_bytes(npy_bytes("(3, 4, 1)", "|u1", body))
        self.done("a.npy", "-o", "b.npy", *IDENTITY)
        assert self.bytes_of("b.npy") == self.bytes_of("a.npy")

    def test_wrong_axis(self) -> None:
        write_stack(self.path("a.npy"), 0)
        result = self.run_here("a.npy", "--axis", "first")
        assert (result.code, result.err) == (2, "ungrain: --axis takes a whole number, got 'first'\n")
        assert "shape (3, 9, 11) has no axis 7" in self.run_here("a.npy", "--axis", "7").err


class TestAlongTheStack(Workspace):
    """Methods that look at the images before and after."""

    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.pages = [picture(40, 150, seed=page + 1) for page in range(4)]
        stack = bytes(int(value) for page in self.pages for value in page.samples)
        self.path("a.npy").write_bytes(npy_bytes("(4, 150, 40)", "|u1", stack))

    def box(self, *arguments: str, radius_z: int = 1) -> str:
        return self.done(*arguments, "--method", "box", "--radius", "1", "--radius-z", str(radius_z), "--json").out

    @pytest.mark.parametrize("radius_z", [1, 2])
    def test_box_is_its_definition(self, radius_z: int) -> None:
        self.box("a.npy", "--axis", "0", "-o", "b.npy", radius_z=radius_z)
        assert list(self.bytes_of("b.npy")[128:]) == mean_along(self.pages, 1, radius_z)

    def test_little_memory_gives_the_same_bits(self) -> None:
        self.box("a.npy", "--axis", "0", "-o", "b.npy")
        least = re.search(r"at least ([\d.]+) KiB", self.run_here("a.npy", "--axis", "0", "--method", "box", "--radius-z", "1",
                                                                  "--threads", "1", "--memory", "1K").err)
        memory = f"{int(1.1 * float(least[1]))}K"
        report = json.loads(self.box("a.npy", "--axis", "0", "-o", "c.npy", "--memory", memory, "--threads", "1"))
        assert report["bands"] > len(self.pages)
        assert self.bytes_of("b.npy") == self.bytes_of("c.npy")

    def test_in_place(self) -> None:
        self.box("a.npy", "--axis", "0", "-o", "a.npy")
        assert list(self.bytes_of("a.npy")[128:]) == mean_along(self.pages, 1, 1)

    def test_pages_of_a_tiff(self) -> None:
        if not writes(".tif"):
            pytest.skip(needs_format(".tif"))
        deep = [page.scaled(65535) for page in self.pages]
        write_tiff(self.path("a.tif"), deep)
        self.box("a.tif", "-o", "b.tif")
        found = [value for page in read_tiff(self.path("b.tif")) for value in page.samples]
        assert found == mean_along(deep, 1, 1)

    def test_chosen_pages_are_the_sequence(self) -> None:
        self.box("a.npy", "--axis", "0", "--pages", "1,3-4", "-o", "b.npy")
        assert list(self.bytes_of("b.npy")[128:]) == mean_along([self.pages[p] for p in (0, 2, 3)], 1, 1)

    def test_floats_into_whole_numbers(self) -> None:
        values = [value / 255 for page in self.pages for value in page.samples]
        self.path("f.npy").write_bytes(npy_bytes("(4, 150, 40)", "<f4", struct.pack(f"<{len(values)}f", *values)))
        self.box("f.npy", "--axis", "0", "--depth", "u8", "-o", "b.npy")
        assert list(self.bytes_of("b.npy")[128:]) == mean_along(self.pages, 1, 1)

    def test_gaussian_looks_along_too(self) -> None:
        gaussian = ("--method", "gaussian", "--sigma", "1", "-q")
        self.done("a.npy", "--axis", "0", "-o", "alone.npy", *gaussian)
        self.done("a.npy", "--axis", "0", "-o", "along.npy", *gaussian, "--sigma-z", "1")
        assert self.bytes_of("alone.npy") != self.bytes_of("along.npy")

    def test_an_image_alone_stands_in_for_its_neighbours(self) -> None:
        write_pnm(self.path("a.pgm"), self.pages[0])
        self.box("a.pgm", "-o", "b.pgm")
        assert read_pnm(self.path("b.pgm")).samples == mean_along(self.pages[:1], 1, 0)

    def test_noise_is_that_of_the_first_page(self) -> None:
        """What is measured is measured once: a first page without noise does not leave the others as they are."""
        flat = Picture(40, 150, 1, [100] * (40 * 150))
        stack = bytes(int(value) for page in [flat, *self.pages] for value in page.samples)
        self.path("d.npy").write_bytes(npy_bytes("(5, 150, 40)", "|u1", stack))
        self.box("d.npy", "--axis", "0", "--clipping", "undo", "-o", "b.npy")
        assert list(self.bytes_of("b.npy")[128:]) == mean_along([flat, *self.pages], 1, 1)
