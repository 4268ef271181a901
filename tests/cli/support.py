"""What the tests of the command line share: running the program, pictures, and small image files.

The standard library and pytest only. Everything that is written here is written by other code than the program's own, so that a
mistake in its readers and writers is seen.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("UNGRAIN", str(REPOSITORY / "build/release/bin/ungrain"))
LONGEST = 20  # seconds that any one run may take
SOON = 10  # seconds after which an interrupted run has ended: not tight, other tests may run beside this one

# What the program never says: other libraries' messages, and the signs of a crash.
NOISE = re.compile(r"GLib|VIPS-|\bVIPS\b|Traceback|terminate called|what\(\)|Assertion|core dumped|\*\* \(|Sanitizer")


@dataclass
class Result:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def out_lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def err_lines(self) -> list[str]:
        return self.err.splitlines()


def run(*arguments: str | Path, folder: Path | None = None, before=(), timeout=LONGEST, **popen) -> Result:
    """Runs the program with `arguments`, through the command `before` where there is one."""
    start = time.monotonic()
    done = subprocess.run(
        [*before, PROGRAM, *map(os.fspath, arguments)],
        cwd=folder, stdin=popen.pop("stdin", subprocess.DEVNULL), stdout=popen.pop("stdout", subprocess.PIPE),
        stderr=popen.pop("stderr", subprocess.PIPE), timeout=timeout, **popen)
    return Result(done.returncode, (done.stdout or b"").decode(errors="replace"),
                  (done.stderr or b"").decode(errors="replace"), time.monotonic() - start)


@dataclass
class Work:
    """What a run took."""

    peak: int  # bytes of memory, resident
    read: int  # bytes, from files and the page cache alike


def run_measured(*arguments: str | Path, folder: Path | None = None) -> tuple[Result, Work]:
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(*arguments, folder=folder, stdout=out, stderr=err)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is over, and /proc still has its counters
        counters = Path(f"/proc/{process.pid}/io").read_text()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    read = re.search(r"rchar: (\d+)", counters)
    assert read, counters
    return Result(process.returncode, *texts, time.monotonic() - begin), Work(1024 * usage.ru_maxrss, int(read[1]))


def start(*arguments: str | Path, folder: Path | None = None, **popen) -> subprocess.Popen:
    return subprocess.Popen(
        [PROGRAM, *map(os.fspath, arguments)], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=popen.pop("stdout", subprocess.PIPE), stderr=popen.pop("stderr", subprocess.PIPE), **popen)


def wait_until(condition, process: subprocess.Popen, seconds: float = LONGEST) -> None:
    """Until condition() is true. Fails when the program ends first."""
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise AssertionError(f"the program ended too early: {process.communicate()}")
        if time.monotonic() > end:
            process.kill()
            raise AssertionError("waited too long")
        time.sleep(0.002)


def temporaries(folder: Path) -> list[str]:
    """The program's temporary files under `folder`, whatever their state."""
    return sorted(str(path) for path in folder.rglob(".*.ungrain-*"))


def snapshot(folder: Path) -> dict[str, bytes | str]:
    """Every file's bytes, by its path from `folder`; what cannot be read is told by its kind."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.is_dir():
            found[name] = "folder"
        elif path.is_file():
            found[name] = path.read_bytes() if os.access(path, os.R_OK) else "unreadable"
        else:
            found[name] = "special"
    return found


def remove(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)  # some tests lock theirs
    shutil.rmtree(folder, ignore_errors=True)


class Workspace:
    """Each test in a folder of its own, with a gray and a colour picture in it."""

    @pytest.fixture(autouse=True)
    def workspace(self) -> Iterator[None]:
        if not os.access(PROGRAM, os.X_OK):
            pytest.fail(f"{PROGRAM} is not there: build it, or set UNGRAIN")
        self.folder = Path(tempfile.mkdtemp(prefix="ungrain-cli-"))
        self.folder.chmod(0o755)  # other users are let in: some rows run as one
        write_pnm(self.folder / "gray.pgm", picture(24, 18))
        write_pnm(self.folder / "colour.ppm", picture(24, 18, 3))
        yield
        remove(self.folder)

    def run_here(self, *arguments: str | Path, **options) -> Result:
        return run(*arguments, folder=self.folder, **options)

    def done(self, *arguments: str | Path, **options) -> Result:
        """A run that must succeed, without a word on the standard error."""
        result = self.run_here(*arguments, **options)
        assert (result.code, result.err) == (0, ""), f"{arguments}: {result}"
        return result

    def path(self, name: str) -> Path:
        return self.folder / name

    def bytes_of(self, name: str) -> bytes:
        return self.path(name).read_bytes()

    def assert_tidy(self) -> None:
        assert temporaries(self.folder) == []


# ---- pictures ------------------------------------------------------------------------------------------------------


@dataclass
class Picture:
    """Samples in rows, channels interleaved."""

    width: int
    height: int
    channels: int
    samples: list[float] = field(repr=False)
    white: float = 255
    tuple_type: str = ""  # of a PAM

    def scaled(self, white: float, whole: bool = True) -> "Picture":
        factor = white / self.white
        samples = [round(v * factor) if whole else v * factor for v in self.samples]
        return Picture(self.width, self.height, self.channels, samples, white, self.tuple_type)


def picture(width: int, height: int, channels: int = 1, seed: int = 1) -> Picture:
    """A bright disc on a ramp with noise: the same for the same numbers, everywhere."""
    state = seed * 2654435761 % 2**32
    samples: list[float] = []
    for y in range(height):
        for x in range(width):
            inside = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 3) ** 2
            for channel in range(channels):
                state = (1664525 * state + 1013904223) % 2**32
                noise = (state >> 16) % 41 - 20
                level = 190 - 30 * channel if inside else 40 + 100 * x // width
                samples.append(max(0, min(255, level + noise)))
    return Picture(width, height, channels, samples)


# ---- PNM, PAM, PFM, NPY, PNG, TIFF -----------------------------------------------------------------------------------


def _packed(image: Picture, order: str) -> bytes:
    kind = "B" if image.white <= 255 else "H"
    return struct.pack(f"{order}{len(image.samples)}{kind}", *map(int, image.samples))


def write_pnm(path: Path, image: Picture) -> Path:
    """PGM or PPM; PAM where the name says so."""
    if path.suffix == ".pam":
        tuple_type = f"TUPLTYPE {image.tuple_type}\n" if image.tuple_type else ""
        header = (f"P7\nWIDTH {image.width}\nHEIGHT {image.height}\nDEPTH {image.channels}\n"
                  f"MAXVAL {int(image.white)}\n{tuple_type}ENDHDR\n")
    else:
        header = f"P{6 if image.channels == 3 else 5}\n{image.width} {image.height}\n{int(image.white)}\n"
    path.write_bytes(header.encode() + _packed(image, ">"))
    return path


def read_pnm(path: Path) -> Picture:
    data = path.read_bytes()
    tuple_type = ""
    if data.startswith(b"P7\n"):
        header, _, body = data.partition(b"ENDHDR\n")
        fields = dict(line.split(None, 1) for line in header.decode().splitlines()[1:])
        width, height, channels, white = (int(fields[key]) for key in ("WIDTH", "HEIGHT", "DEPTH", "MAXVAL"))
        tuple_type = fields.get("TUPLTYPE", "")
    else:
        match = re.match(rb"P([56])\s+(\d+)\s+(\d+)\s+(\d+)\s", data)
        assert match, data[:40]
        width, height, white = (int(match[i]) for i in (2, 3, 4))
        channels = 3 if match[1] == b"6" else 1
        body = data[match.end():]
    count = width * height * channels
    kind = "B" if white <= 255 else "H"
    assert len(body) == count * (1 if kind == "B" else 2), f"{path}: {len(body)} bytes"
    return Picture(width, height, channels, list(struct.unpack(f">{count}{kind}", body)), white, tuple_type)


def write_pfm(path: Path, image: Picture) -> Path:
    row = image.width * image.channels
    rows = [image.samples[y * row:(y + 1) * row] for y in reversed(range(image.height))]
    body = b"".join(struct.pack(f"<{row}f", *values) for values in rows)
    kind = "PF" if image.channels == 3 else "Pf"
    path.write_bytes(f"{kind}\n{image.width} {image.height}\n-1.0\n".encode() + body)
    return path


def read_pfm(path: Path) -> Picture:
    kind, size, scale, body = path.read_bytes().split(b"\n", 3)
    width, height = map(int, size.split())
    channels = 3 if kind == b"PF" else 1
    row = width * channels
    values = struct.unpack(f"{'<' if float(scale) < 0 else '>'}{row * height}f", body)
    samples = [v for y in reversed(range(height)) for v in values[y * row:(y + 1) * row]]
    return Picture(width, height, channels, samples, 1)


NPY_KINDS = {"u1": "B", "u2": "H", "f2": "e", "f4": "f", "f8": "d", "i2": "h"}


def npy_bytes(shape: str, dtype: str, body: bytes) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


def write_npy(path: Path, image: Picture, kind: str = "f4") -> Path:
    shape = (image.height, image.width) + ((image.channels,) if image.channels > 1 else ())
    values = image.samples if kind.startswith("f") else map(int, image.samples)
    body = struct.pack(f"<{len(image.samples)}{NPY_KINDS[kind]}", *values)
    path.write_bytes(npy_bytes(str(shape), f"<{kind}", body))
    return path


def read_npy(path: Path) -> tuple[str, Picture]:
    """The samples' kind ("u2") and the picture."""
    data = path.read_bytes()
    (length,) = struct.unpack("<H", data[8:10])
    header = data[10:10 + length].decode()
    dtype = re.search(r"'descr': '(.)(..)'", header)
    shape = [int(n) for n in re.findall(r"\d+", header.split("'shape':")[1])]
    assert dtype, header
    count = len(data[10 + length:]) // struct.calcsize(NPY_KINDS[dtype[2]])
    order = ">" if dtype[1] == ">" else "<"
    values = struct.unpack(f"{order}{count}{NPY_KINDS[dtype[2]]}", data[10 + length:])
    channels = shape[2] if len(shape) > 2 else 1
    return dtype[2], Picture(shape[1], shape[0], channels, list(values))


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


PNG_COLOUR = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of channels


def png_header(width: int, height: int, bits: int, channels: int) -> bytes:
    body = struct.pack(">IIBBBBB", width, height, bits, PNG_COLOUR[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", body)


def write_png(path: Path, image: Picture, chunks: bytes = b"") -> Path:
    """8 or 16 bits; `chunks` go between the header and the pixels."""
    bits = 8 if image.white <= 255 else 16
    row = image.width * image.channels * bits // 8
    packed = _packed(image, ">")
    filtered = b"".join(b"\0" + packed[y * row:(y + 1) * row] for y in range(image.height))
    path.write_bytes(png_header(image.width, image.height, bits, image.channels) + chunks
                     + png_chunk(b"IDAT", zlib.compress(filtered)) + png_chunk(b"IEND", b""))
    return path


def write_interlaced_png(path: Path, image: Picture) -> Path:
    """8 bits, in the seven passes of Adam7."""
    data = b""
    for left, top, across, down in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                                    (0, 1, 1, 2)):
        for y in range(top, image.height, down):
            starts = (image.channels * (y * image.width + x) for x in range(left, image.width, across))
            pixels = b"".join(bytes(image.samples[at:at + image.channels]) for at in starts)
            data += b"\0" + pixels if pixels else b""
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, PNG_COLOUR[image.channels], 0, 0, 1)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(data))
                     + png_chunk(b"IEND", b""))
    return path


def write_apng(path: Path, frames: list[Picture]) -> Path:
    """An animation of 8-bit frames; readers that know nothing of it see the first."""
    first = frames[0]
    data = png_header(first.width, first.height, 8, first.channels) + png_chunk(b"acTL", struct.pack(">II", len(frames), 0))
    number = 0
    for frame in frames:
        control = struct.pack(">IIIIIHHBB", number, frame.width, frame.height, 0, 0, 1, 10, 0, 0)
        data += png_chunk(b"fcTL", control)
        number += 1
        row = frame.width * frame.channels
        packed = _packed(frame, ">")
        pixels = zlib.compress(b"".join(b"\0" + packed[y * row:(y + 1) * row] for y in range(frame.height)))
        if frame is first:
            data += png_chunk(b"IDAT", pixels)
        else:
            data += png_chunk(b"fdAT", struct.pack(">I", number) + pixels)
            number += 1
    path.write_bytes(data + png_chunk(b"IEND", b""))
    return path


def read_png(path: Path) -> Picture:
    data = path.read_bytes()
    at, body, header = 8, b"", b""
    while at < len(data):
        (size,) = struct.unpack(">I", data[at:at + 4])
        kind = data[at + 4:at + 8]
        if kind == b"IHDR":
            header = data[at + 8:at + 8 + size]
        if kind == b"IDAT":
            body += data[at + 8:at + 8 + size]
        at += 12 + size
    width, height, bits, colour = struct.unpack(">IIBB", header[:10])
    channels = {code: count for count, code in PNG_COLOUR.items()}[colour]
    bytes_per_pixel = channels * bits // 8
    samples = _unfilter(zlib.decompress(body), width * bytes_per_pixel, height, bytes_per_pixel)
    kind = "B" if bits == 8 else "H"
    count = width * height * channels
    return Picture(width, height, channels, list(struct.unpack(f">{count}{kind}", samples)), 2**bits - 1)


def _unfilter(data: bytes, row: int, height: int, pixel: int) -> bytes:
    above = bytearray(row)
    result = bytearray()
    for y in range(height):
        kind = data[y * (row + 1)]
        line = bytearray(data[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for x in range(row):
            a = line[x - pixel] if x >= pixel else 0
            b = above[x]
            c = above[x - pixel] if x >= pixel else 0
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
        result += line
        above = line
    return bytes(result)


def read_bmp(path: Path) -> Picture:
    """As builds without libvips write them into pages: a gray table, or blue, green, red."""
    data = path.read_bytes()
    start, width, height = int.from_bytes(data[10:14], "little"), *struct.unpack("<ii", data[18:26])
    channels = data[28] // 8
    row = (width * channels + 3) // 4 * 4
    samples = []
    for y in range(height):
        line = data[start + (height - 1 - y) * row:][:width * channels]
        samples += line if channels == 1 else [line[x + 2 - c] for x in range(0, len(line), 3) for c in range(3)]
    return Picture(width, height, channels, samples)


def page_data(page: str) -> dict:
    """What a page's script draws."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def page_pictures(page: str) -> list[tuple[str, str, bytes]]:
    """Each picture's name, kind of file and bytes, as the page has them."""
    found = re.findall(r'<img alt="([^"]*)" [^>]*src="data:image/(\w+);base64,([^"]*)"', page)
    return [(name, kind, base64.b64decode(data)) for name, kind, data in found]


def write_nifti(path: Path, size: tuple[int, ...], samples: list[float], spacing: tuple[float, float, float] = (1, 1, 1),
                kind: str = "f4") -> Path:
    """NIfTI-1, little endian, of u1, u2 or f4; compressed where the name ends in .gz."""
    dims = [len(size), *size] + [1] * (7 - len(size))
    header = struct.pack("<i36x8h", 348, *dims) + bytes(14)
    header += struct.pack("<3h8f3f", {"u1": 2, "u2": 512, "f4": 16}[kind], 8 * int(kind[1]), 0, 1, *spacing, 1, 1, 1, 1, 352, 0, 0)
    data = header.ljust(344, b"\0") + b"n+1\0" + bytes(4)
    data += struct.pack(f"<{len(samples)}{NPY_KINDS[kind]}", *samples)
    path.write_bytes(gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)
    return path


def volume(width: int, height: int, depth: int, seed: int = 1) -> list[float]:
    """A ramp with noise, x fastest, then y: whole numbers from 0 to 255, with 0 and 255 among them."""
    state = seed * 2654435761 % 2**32
    samples: list[float] = []
    for i in range(width * height * depth):
        x, y, z = i % width, i // width % height, i // (width * height)
        state = (1664525 * state + 1013904223) % 2**32
        samples.append(20 + 60 * x // width + 60 * y // height + 60 * z // depth + (state >> 16) % 41)
    samples[0], samples[1] = 0, 255
    return samples


def write_tiff(path: Path, pages: list[Picture], description: str = "") -> Path:
    """Little endian, one strip a page, not compressed; 8 or 16 bits, gray or rgb; the first page may have a description."""
    data = bytearray(b"II*\0\0\0\0\0")
    link = 4  # where the offset of the next directory is to be put
    for image in pages:
        bits = 8 if image.white <= 255 else 16
        pixels = _packed(image, "<")
        pixels_at = len(data)
        data += pixels + bytes(len(pixels) % 2)
        tags = [(256, 4, 1, image.width), (257, 4, 1, image.height), (258, 3, 1, bits), (259, 3, 1, 1),
                (262, 3, 1, 2 if image.channels == 3 else 1), (273, 4, 1, pixels_at), (277, 3, 1, image.channels),
                (278, 4, 1, image.height), (279, 4, 1, len(pixels))]
        if image.channels == 3:
            tags[2] = (258, 3, 3, len(data))
            data += struct.pack("<3H", bits, bits, bits) + b"\0\0"
        if description and image is pages[0] and link == 4:
            text = description.encode() + b"\0"
            tags.insert(5, (270, 2, len(text), len(data)))
            data += text + bytes(len(text) % 2)
        struct.pack_into("<I", data, link, len(data))
        data += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
        link = len(data)
        data += struct.pack("<I", 0)
    path.write_bytes(data)
    return path


def read_tiff(path: Path) -> list[Picture]:
    """The pages of a little-endian file of 8 or 16 bits in strips, not compressed."""
    data = path.read_bytes()
    assert data[:4] == b"II*\0", data[:4]
    pages = []
    (at,) = struct.unpack_from("<I", data, 4)
    while at != 0:
        (count,) = struct.unpack_from("<H", data, at)
        tags = {tag: _tiff_values(data, at + 2 + 12 * i, kind, values)
                for i in range(count) for tag, kind, values in [struct.unpack_from("<HHI", data, at + 2 + 12 * i)]}
        assert tags.get(259, [1]) == [1] and 273 in tags, f"{path}: compressed, or tiles"
        body = b"".join(data[start:start + size] for start, size in zip(tags[273], tags[279]))
        bits, channels = tags[258][0], tags.get(277, [1])[0]
        samples = struct.unpack(f"<{len(body) * 8 // bits}{'B' if bits == 8 else 'H'}", body)
        pages.append(Picture(tags[256][0], tags[257][0], channels, list(samples), 2**bits - 1))
        (at,) = struct.unpack_from("<I", data, at + 2 + 12 * count)
    return pages


def tiff_links(data: bytes) -> list[int]:
    """Where a little-endian file holds the offsets of its directories, and the 0 behind the last."""
    links = [4]
    while (at := struct.unpack_from("<I", data, links[-1])[0]) != 0:
        (count,) = struct.unpack_from("<H", data, at)
        links.append(at + 2 + 12 * count)
    return links


def tiff_tag(path: Path, tag: int) -> list[int]:
    """The whole numbers of a tag of the first page; none where it is not there."""
    data = path.read_bytes()
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        found, kind, values = struct.unpack_from("<HHI", data, entry)
        if found == tag:
            return _tiff_values(data, entry, kind, values)
    return []


def tiff_text(path: Path) -> str:
    """The description of the first page of a little-endian file."""
    data = path.read_bytes()
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        tag, _, length, value = struct.unpack_from("<HHII", data, entry)
        if tag == 270 and length > 4:
            return data[value:value + length - 1].decode()
    return ""


def write_imagej(path: Path, pages: list[Picture], counts: str = "") -> Path:
    """As ImageJ writes large stacks: the directory of the first page only, the pixels of all one after the other."""
    first = pages[0]
    text = f"ImageJ=1.53t\nimages={len(pages)}\n{counts or f'slices={len(pages)}'}\nloop=false\n\0".encode()
    text += bytes(len(text) % 2)
    tags = [(256, 4, 1, first.width), (257, 4, 1, first.height), (258, 3, 1, 8 if first.white <= 255 else 16),
            (259, 3, 1, 1), (262, 3, 1, 1), (270, 2, len(text), 0), (273, 4, 1, 0), (277, 3, 1, 1),
            (278, 4, 1, first.height), (279, 4, 1, len(_packed(first, "<")))]
    text_at = 8 + 2 + 12 * len(tags) + 4
    tags[5] = (270, 2, len(text), text_at)
    tags[6] = (273, 4, 1, text_at + len(text))
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    path.write_bytes(b"II*\0\x08\0\0\0" + directory + text + b"".join(_packed(page, "<") for page in pages))
    return path


def write_sparse_tiff(path: Path, width: int, height: int, rows: int = 64) -> Path:
    """A black 8-bit image in strips of so many rows, which takes next to no room on the disk."""
    strips = -(-height // rows)
    sizes = [width * min(rows, height - i * rows) for i in range(strips)]
    lists_at = 8 + 2 + 12 * 9 + 4
    pixels_at = lists_at + 8 * strips
    offsets = [pixels_at + i * width * rows for i in range(strips)]
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
            (273, 4, strips, lists_at), (277, 3, 1, 1), (278, 4, 1, rows), (279, 4, strips, lists_at + 4 * strips)]
    with path.open("wb") as file:
        file.write(b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)))
        file.write(b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4))
        file.write(struct.pack(f"<{2 * strips}I", *offsets, *sizes))
        file.truncate(pixels_at + width * height)
    return path


def _tiff_values(data: bytes, entry: int, kind: int, count: int) -> list[int]:
    code = {3: "H", 4: "I"}.get(kind)
    if code is None:
        return []
    inside = count * struct.calcsize(code) <= 4
    at = entry + 8 if inside else struct.unpack_from("<I", data, entry + 8)[0]
    return list(struct.unpack_from(f"<{count}{code}", data, at))


# ---- EXIF


def exif(orientation: int) -> bytes:
    """One tag."""
    return b"MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x112, 3, 1, orientation, 0, 0)


def jpeg_with_exif(jpeg: bytes, orientation: int) -> bytes:
    """With a segment behind the start of the file."""
    body = b"Exif\0\0" + exif(orientation)
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def orientation_in(exif_bytes: bytes) -> int | None:
    """What EXIF says, whatever is in front of it and behind it; nothing where it says nothing."""
    starts = [at for at in (exif_bytes.find(b"II*\0"), exif_bytes.find(b"MM\0*")) if at >= 0]
    if not starts:
        return None
    at = min(starts)
    order = "<" if exif_bytes[at:at + 2] == b"II" else ">"
    (directory,) = struct.unpack_from(order + "I", exif_bytes, at + 4)
    (count,) = struct.unpack_from(order + "H", exif_bytes, at + directory)
    for i in range(count):
        tag, _, _, value = struct.unpack_from(order + "HHIH", exif_bytes, at + directory + 2 + 12 * i)
        if tag == 0x112:
            return value
    return None


# ---- what this build and this machine can do ------------------------------------------------------------------------


@cache
def writes(extension: str) -> bool:
    """Whether this build writes such files: those beyond PNM, PFM and NPY need libvips."""
    with tempfile.TemporaryDirectory() as folder:
        source = write_pnm(Path(folder) / "a.pgm", picture(4, 4))
        return run(source, "-o", Path(folder) / f"b{extension}").code == 0


def needs_format(extension: str) -> str:
    """Why a test that needs the format is skipped, or nothing."""
    return "" if writes(extension) else f"this build has no {extension}"


@cache
def as_other_user() -> tuple[tuple[str, ...], str]:
    """A command before the program under which file permissions count, and why there is none."""
    if os.geteuid() != 0:
        return (), ""
    before = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if shutil.which("setpriv") is None:
        return (), "root may do everything, and there is no setpriv to be somebody else"
    try:
        if run("--version", before=before).code == 0:
            return before, ""
    except OSError:
        pass
    return (), "root may do everything, and the program cannot be run as another user"


@cache
def full_disk_problem() -> str:
    """Why no small file system can be mounted for one process, or nothing."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "only root can mount a small file system"
    script = "mount -t tmpfs -o size=64k none /mnt"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True)
    return "" if done.returncode == 0 else "a small file system cannot be mounted here"


def ends_by(process: subprocess.Popen, seconds: float = LONGEST) -> tuple[int, str, str]:
    """Status, standard output and standard error of a process that must end by itself."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace")
