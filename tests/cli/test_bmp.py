"""BMP files from and to the command line; the readers and writers here are other code than the program's."""

from __future__ import annotations

import struct
from pathlib import Path

from support import Picture, Workspace, picture, read_pnm, write_pnm

IDENTITY = ("--method", "bilateral", "--sigma-range", "0", "-q")  # gives every sample back


def write_bmp(path: Path, image: Picture) -> Path:
    """24 bits, from the bottom up."""
    row = image.width * 3
    rows = []
    for y in reversed(range(image.height)):
        line = list(map(int, image.samples[y * row:(y + 1) * row]))
        line[0::3], line[2::3] = line[2::3], line[0::3]
        rows.append(bytes(line) + bytes(-row % 4))
    body = b"".join(rows)
    path.write_bytes(b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(body), 0, 54, 40, image.width, image.height, 1,
                                         24, 0, len(body), 2835, 2835, 0, 0) + body)
    return path


def read_bmp(path: Path) -> Picture:
    """8-bit gray, 24 or 32 bits, from the bottom up."""
    data = path.read_bytes()
    size, _, offset, _, width, height, planes, bits = struct.unpack_from("<IIIIiiHH", data, 2)
    assert data[:2] == b"BM" and size == len(data) and planes == 1, path
    channels = bits // 8
    stride = (width * channels + 3) // 4 * 4
    samples: list[float] = []
    for y in reversed(range(height)):
        line = list(data[offset + y * stride:offset + y * stride + width * channels])
        if channels > 1:
            line[0::channels], line[2::channels] = line[2::channels], line[0::channels]
        samples += line
    return Picture(width, height, channels, samples)


class TestBmp(Workspace):
    def test_in_and_out(self) -> None:
        write_bmp(self.path("a.bmp"), picture(23, 17, 3))
        self.done("a.bmp", *IDENTITY)
        assert read_bmp(self.path("a.ungrain.bmp")) == picture(23, 17, 3)
        self.done("a.bmp", "-o", "b.ppm", *IDENTITY)
        assert read_pnm(self.path("b.ppm")).samples == picture(23, 17, 3).samples

    def test_gray_and_alpha(self) -> None:
        self.done("gray.pgm", "-o", "gray.bmp", *IDENTITY)
        assert read_bmp(self.path("gray.bmp")) == picture(24, 18)
        image = picture(9, 7, 4)
        image.tuple_type = "RGB_ALPHA"
        write_pnm(self.path("a.pam"), image)
        self.done("a.pam", "-o", "a.bmp", *IDENTITY)
        assert read_bmp(self.path("a.bmp")).samples == image.samples

    def test_dib_is_written_as_bmp(self) -> None:
        write_bmp(self.path("a.dib"), picture(8, 6, 3))
        assert "a.dib -> a.ungrain.bmp" in self.done("a.dib").out

    def test_found_in_a_folder(self) -> None:
        self.path("in").mkdir()
        write_bmp(self.path("in/a.bmp"), picture(8, 6, 3))
        assert len(self.done("in", "-o", "out/").out_lines) == 1
