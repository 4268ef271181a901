"""Everything that can be wrong with a command, a file or the machine: a table, a test a row.

Of every row is asserted: the exit status; one line on the standard error (or as many as the row has patterns), which
begins with "ungrain: " and matches the pattern; nothing that claims success on the standard output; no new file, no
temporary file, and every file that was there unchanged; an end within 20 seconds.
"""

from __future__ import annotations

import math
import os
import random
import re
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

from support import (LONGEST, NOISE, Picture, Result, Workspace, as_other_user, ends_by, full_disk_problem,
                     needs_format, npy_bytes, picture, png_chunk, png_header, run, snapshot, start, temporaries,
                     wait_until, write_npy, write_pfm, write_png, write_pnm, write_tiff)

FAILED, USAGE = 1, 2


@dataclass
class Row:
    name: str
    arguments: str | list[str]  # a text is cut at its spaces
    status: int
    pattern: str | tuple[str, ...]  # searched in the line of the standard error; several: a line each
    prepare: Callable[[Path], object] = lambda folder: None
    makes: tuple[str, ...] = ()  # files that may and must be there afterwards
    changes: tuple[str, ...] = ()  # files that the row itself changes
    skip: Callable[[], str] = lambda: ""  # a reason
    before: Callable[[], tuple[str, ...]] = lambda: ()  # a command that runs the program
    limit: tuple[int, int] | None = None  # a resource and how much of it
    during: Callable[[Path], object] | None = None  # done while the program works on its first file
    out: str = ""  # what the standard output must match; nothing: it must be empty


def holding(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


def cut(name: str, make: Callable[[Path], object], share: float = 0.5) -> Callable[[Path], None]:
    """Makes a file and takes its end away."""

    def prepare(folder: Path) -> None:
        make(folder / name)
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:int(len(data) * share)])

    return prepare


def converted(path: Path) -> None:
    """A file of a format that only libvips writes."""
    source = write_pnm(path.with_suffix(".source.ppm"), picture(64, 48, 3))
    assert run(source, "-o", path, "-q").code == 0
    source.unlink()


def folder_mode(name: str, mode: int) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        (folder / name).mkdir()
        (folder / name).chmod(mode)

    return prepare


def unreadable(name: str) -> Callable[[Path], None]:
    return lambda folder: write_pnm(folder / name, picture(8, 8)).chmod(0)


def other_user() -> tuple[str, ...]:
    return as_other_user()[0]


def no_other_user() -> str:
    return as_other_user()[1]


def big(folder: Path) -> None:
    write_pnm(folder / "big.pgm", picture(300, 300))


def slow(folder: Path) -> None:
    write_pnm(folder / "slow.pgm", picture(120, 90))


def append(folder: Path) -> None:
    with open(folder / "slow.pgm", "ab") as file:
        file.write(b"more")


def shorten(folder: Path) -> None:
    os.truncate(folder / "slow.pgm", 50)


def replace(folder: Path) -> None:
    write_pnm(folder / "other.tmp", picture(120, 90, seed=2)).rename(folder / "slow.pgm")


def with_nan(name: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        image = picture(8, 6).scaled(1, whole=False)
        image.samples[21] = math.nan
        (write_pfm if name.endswith(".pfm") else write_npy)(folder / name, image)

    return prepare


def three(folder: Path) -> None:
    write_pnm(folder / "one.pgm", picture(8, 6))
    (folder / "two.pgm").write_bytes(b"P5\n8 6\n255\nshort")
    write_pnm(folder / "three.pgm", picture(8, 6))


def same_names(folder: Path) -> None:
    for name in ("left", "right"):
        (folder / name).mkdir()
        write_pnm(folder / name / "x.pgm", picture(8, 6))


def no_cuda() -> str:
    return "there is a CUDA device" if re.search(r"^cuda(?!.*not usable)", run("devices").out, re.M) else ""


ADDRESSES = (resource.RLIMIT_AS, 8 << 30)


def no_limit() -> str:
    which, most = ADDRESSES
    limited = run("--version", preexec_fn=lambda: resource.setrlimit(which, (most, most)))
    return "" if limited.code == 0 else "this build (a sanitizer's?) does not run in a limited address space"


def on_full_disk() -> tuple[str, ...]:
    """The program in a namespace of its own where ./full is a file system of 64 KiB. What it leaves there is listed."""
    script = ('mount -t tmpfs -o size=64k none full || exit 99; "$@"; code=$?; ls -A full > left.txt; exit $code')
    return "unshare", "-m", "sh", "-c", script, "sh"


def full_disk(extension: str) -> Row:
    def prepare(folder: Path) -> None:
        # Noise that no encoder makes small.
        samples = list(random.Random(1).randbytes(400 * 300))
        write_pnm(folder / "big.pgm", Picture(400, 300, 1, samples))
        (folder / "full").mkdir()
        (folder / "left.txt").write_text("")

    return Row(f"disk full {extension}", f"big.pgm -o full/out{extension} -m box --radius 0", FAILED,
               r"full/out\S+: .*(No space left|write|full)", prepare, before=on_full_disk,
               skip=lambda: full_disk_problem() or needs_format(extension))


def vips(name: str, arguments: str, pattern: str, prepare, extension: str = ".png", **more) -> Row:
    return Row(name, arguments, FAILED, pattern, prepare, skip=lambda: needs_format(extension), **more)


def values_of(option: str, values: list[str], pattern: str, start_of_command: str = "gray.pgm -o out.pgm") -> list[Row]:
    """A row for each wrong value of an option."""
    return [Row(f"{start_of_command.split()[0]} {option} '{value}'", [*start_of_command.split(), option, value], USAGE,
                rf"^ungrain: {option} {pattern}") for value in values]


NO_PIXELS = png_chunk(b"IDAT", b"") + png_chunk(b"IEND", b"")  # of a PNG
AMOUNT = "takes a number from 0 to 1000000000, got "
NO_VALUE = r"needs a value: \S"
NOISE_COMMAND = "noise gray.pgm -o out.pgm"
BILATERAL = "gray.pgm -o out.pgm -m bilateral"  # whichever method is the default
NLM = "gray.pgm -o out.pgm -m nlm"

ROWS = [
    # -- what the arguments are
    Row("no arguments", "", USAGE, "name at least one file", out="(?s)^ungrain .*Commands"),
    Row("denoise without files", "denoise", USAGE, "name at least one file"),
    Row("options without files", "-m box --radius 3", USAGE, "name at least one file"),
    Row("empty file name", ["gray.pgm", ""], USAGE, "empty name"),
    Row("misspelt command", "metods", USAGE, "no file or command 'metods'; did you mean methods"),
    Row("misspelt option", "gray.pgm -m bilateral --radus 3", USAGE, "no option --radus; did you mean --radius"),
    Row("misspelt option with value", "gray.pgm -m bilateral --sigma-rnge=3", USAGE,
        "no option --sigma-rnge; did you mean --sigma-range"),
    Row("unknown option", "gray.pgm --xyzzy", USAGE, "no option --xyzzy; --help lists them"),
    Row("unknown letter", "gray.pgm -x", USAGE, "no option -x; --help"),
    Row("letters together", "gray.pgm -qx", USAGE, "no option -qx"),
    Row("option of another method", "gray.pgm -m box --window disc", USAGE, "--window is an option of bilateral, .*not"),
    Row("misspelt preset", NLM + " --preset paper-03", USAGE, "nlm has no preset 'paper-03'; did you mean 'paper-003'"),
    Row("unknown preset", NLM + " --preset fast", USAGE, "nlm has no preset 'fast'; there are: paper-003, paper-004"),
    Row("preset of another method", "gray.pgm -m box --preset paper-003", USAGE,
        "--preset is an option of nlm, bm3d, not of the method chosen"),
    Row("unknown method", "gray.pgm --method bilatral", USAGE, "no method 'bilatral'; did you mean 'bilateral'"),
    Row("method far from any", "gray.pgm -m qqqqqqqq", USAGE, "no method 'qqqqqqqq'; there are: .*bilateral"),
    Row("empty method", ["gray.pgm", "--method="], USAGE, "no method ''|--method needs a value"),
    Row("method without name", "gray.pgm --method", USAGE, f"--method {NO_VALUE}"),
    Row("flag with a value", "gray.pgm --json=yes", USAGE, "--json takes no value, got 'yes'"),
    Row("option twice", "gray.pgm -m bilateral --radius 3 --radius 4", USAGE, "--radius is given twice"),
    Row("option twice in both spellings", "gray.pgm -o a.pgm --output b.pgm", USAGE, "--output is given twice"),
    Row("value missing at the end", "gray.pgm -m bilateral --radius", USAGE, f"--radius {NO_VALUE}.*0 to 128"),
    Row("value missing before an option", "gray.pgm -m bilateral --radius --quiet", USAGE,
        f"--radius {NO_VALUE}.*0 to 128"),
    Row("value missing before a letter", "gray.pgm --threads -q", USAGE, "--threads needs a value: 0 to 1024"),
    Row("value missing after =", "-m bilateral --radius= gray.pgm", USAGE, f"--radius {NO_VALUE}"),
    Row("output missing", "gray.pgm -o", USAGE, f"-o {NO_VALUE}"),
    Row("output empty", ["gray.pgm", "-o", ""], USAGE, f"-o {NO_VALUE}"),

    # -- what the values are: an integer, a real number, a choice
    *values_of("--radius", ["-1", "129", "3.5", "3x", "x", "1e99", "nan", "inf", "-inf", "0x3", " 3"],
               "takes a whole number from 0 to 128, got ", BILATERAL),
    *values_of("--radius", [""], NO_VALUE, BILATERAL),
    *values_of("--sigma-space", ["-3", "abc", "3,5", "3 ", "nan", "-inf", "1e999"],
               "takes a number from 0 up, or auto, got ", BILATERAL),
    *values_of("--sigma", ["-1", "nan", "measured", "25,20"], "takes a number from 0 up, or auto, got ", BILATERAL),
    Row("quality that there is not", "gray.pgm --quality bast", USAGE, "--quality takes one of fast, normal, best, got 'bast'"),
    Row("quality and a method", "gray.pgm -m nlm --quality best", USAGE,
        "--quality chooses the method: it and --method exclude each other"),
    *values_of("--quality", ["fast"], "takes one of exact, separable, grid, got 'fast'", BILATERAL),
    *values_of("--patch", ["4", "33", "-1", "2.5"], "takes an odd whole number from 1 to 31, or auto, got ", NLM),
    *values_of("--search", ["20", "257", "whole"], "takes an odd whole number from 1 to 255, or whole-image, got ",
               NLM),
    *values_of("--preset", [""], NO_VALUE, NLM),
    *values_of("--sigma-range", ["-3", "-0.5", "nan", "high", "30%"], "takes a number from 0 up, or auto, got ",
               BILATERAL),
    *values_of("--sigma-range", [""], NO_VALUE, BILATERAL),
    *values_of("--sigma", ["inf", "257"], "takes a number from 0 to 256", "gray.pgm -o out.pgm -m gaussian"),
    *values_of("--window", ["disk", "Square", "3"], "takes one of square, disc, got '", BILATERAL),
    *values_of("--border", ["mirrored"], "takes one of .*; did you mean 'mirror'", BILATERAL),
    *values_of("--window", [""], NO_VALUE, BILATERAL),
    *values_of("--threads", ["-1", "1025", "2.0", "two", "2x", "nan", "inf", "99999999999999999999"],
               "takes a whole number from 0 to 1024, got "),
    *values_of("--jobs", ["0", "-1", "65", "two"], "takes a whole number from 1 to 64, got "),
    *values_of("--memory", ["0", "-1G", "lots", "5Q", "1GG", "nan", "inf", "M", "1e30", "12 M"],
               "takes a size such as 512M or 2G, got "),
    *values_of("--range", ["0", "-255", "white", "255x", "nan", "inf", "1e999"], "takes a number above 0, got "),
    *values_of("--depth", ["8", "u32", "U8", "f64"], "takes one of u8, u16, f16, f32, got "),
    *values_of("--nonfinite", ["skip", "Fill"], "takes one of fill, keep, error, got "),
    *values_of("--device", ["gpu", "cuda:", "cuda:-1", "cuda:1x", "CPU"],
               "takes auto, cpu, cuda, cuda:N, cuda:all or reference, got "),
    *[row for option in ("--threads", "--jobs", "--memory", "--range", "--depth", "--nonfinite", "--device")
      for row in values_of(option, [""], NO_VALUE)],

    # -- values that do not fit each other or the image
    Row("grid of colours together", "colour.ppm -o out.ppm -m bilateral --quality grid", FAILED,
        "^ungrain: colour.ppm: bilateral: quality grid filters colour per-channel only"),
    Row("grid over a disc", BILATERAL + " --quality grid --window disc", FAILED, "only quality exact takes a disc"),
    Row("separable disc", BILATERAL + " --quality separable --window disc", FAILED, "only quality exact takes a disc"),
    *[Row(f"gray in lab {method}", f"gray.pgm -o out.pgm -m {method} --colour lab", FAILED,
          f"{method}: colour lab takes an rgb image, this one is gray")
      for method in ("bilateral", "adaptive-bilateral", "nlm", "nlm-bilateral")],

    # -- the other commands' arguments
    Row("noise without arguments", "noise", USAGE, "noise takes a file, got none"),
    Row("noise without output", "noise gray.pgm --gaussian 5", USAGE, "noise takes --output"),
    Row("noise of no kind", NOISE_COMMAND, USAGE, "takes one of --gaussian, .*; got none"),
    Row("noise of two kinds", NOISE_COMMAND + " --gaussian 5 --speckle 1", USAGE,
        "takes one of .*; got gaussian and speckle"),
    Row("noise of two files", NOISE_COMMAND + " colour.ppm --gaussian 5", USAGE,
        "'colour.ppm' is one argument too many"),
    *values_of("--gaussian", ["-5", "5x", "nan", "inf", "1e10"], AMOUNT, NOISE_COMMAND),
    *values_of("--salt-pepper", ["1.5", "-0.1", "half"], "takes a number from 0 to 1, got ", NOISE_COMMAND),
    *values_of("--quantization", ["1", "2.5", "65537"], "takes a whole number from 2 to 65536, got ", NOISE_COMMAND),
    *values_of("--poisson", ["0", "-1"], "takes a number from 1e-09 ", NOISE_COMMAND),
    Row("noise of a camera and another kind", NOISE_COMMAND + " --gaussian 5 --camera", USAGE,
        "takes one of .*, --camera; got gaussian and camera"),
    *[Row(f"{option} without a camera", f"{NOISE_COMMAND} --gaussian 5 {option}", USAGE,
          f"{option.split()[0]} is an option of --camera") for option in ("--iso 400", "--demosaic bilinear", "--noiseless")],
    *values_of("--iso", ["0", "24", "1000001", "high"], "takes a whole number from 25 to 1000000, got ",
               NOISE_COMMAND + " --camera"),
    *values_of("--demosaic", ["vng", "Bilinear"], "takes one of bilinear, gradient, got ", NOISE_COMMAND + " --camera"),
    Row("camera and independent channels", "noise multi.npy -o out.npy --camera", FAILED,
        "multi.npy: the camera takes gray or rgb images",
        lambda folder: write_npy(folder / "multi.npy", picture(8, 6, 2))),
    *values_of("--seed", ["-1", "1.5", "one", "18446744073709551616"],
               "takes a whole number from 0 to 18446744073709551615",
               NOISE_COMMAND + " --gaussian 5"),
    *values_of("--gaussian", [""], NO_VALUE, NOISE_COMMAND),
    Row("compare nothing", "compare", USAGE, "compare takes the clean image and at least one other"),
    Row("compare one file", "compare gray.pgm", USAGE, "compare takes the clean image and at least one other"),
    *values_of("--range", ["0"], "takes a number above 0", "compare gray.pgm gray.pgm"),
    Row("estimate nothing", "estimate", USAGE, "estimate takes at least one file, got none"),
    *values_of("--range", ["0"], "takes a number above 0", "estimate gray.pgm"),
    Row("methods of no such name", "methods bilatral", USAGE, "no method 'bilatral'; did you mean 'bilateral'"),
    Row("methods of two names", "methods box bilateral", USAGE, "'bilateral' is one argument too many"),
    Row("devices of a name", "devices cpu", USAGE, "'cpu' is one argument too many"),
    *values_of("--size", ["0x5", "5x0", "-5x5", "5", "5x", "x5", "5x5x5", "5X5", "70000x5", "1.5x2", "big"],
               "takes WIDTHxHEIGHT, each from 1 to 65536, got ", "demo -o out"),
    *values_of("--gaussian", ["-1", "nan", "much"], AMOUNT, "demo -o out"),
    *values_of("--seed", ["-1"], "takes a whole number from 0 to", "demo -o out"),
    *values_of("--device", ["gpu"], "takes auto, cpu,", "demo -o out"),
    Row("demo too large for the memory", "demo --size 60000x60000 -o out", FAILED,
        "--size 60000x60000 needs .* of memory", limit=ADDRESSES, skip=no_limit),
    Row("demo into a file", "demo --size 8x8 -o gray.pgm", FAILED, "gray.pgm: the folder cannot be made"),
    Row("demo on no CUDA", "demo --size 8x8 -o out --device cuda", FAILED, "--device cuda: ", skip=no_cuda),

    # -- files that are not there or not files
    Row("missing file", "missing.pgm", FAILED, "missing.pgm: there is no such file"),
    Row("missing file without extension", "missingfile", FAILED, "missingfile: there is no such file"),
    Row("missing file to noise", "noise missing.pgm -o out.pgm --gaussian 5", FAILED,
        "missing.pgm: there is no such file"),
    Row("missing clean file", "compare missing.pgm gray.pgm", FAILED, "missing.pgm: there is no such file"),
    Row("missing file to compare", "compare gray.pgm missing.pgm", FAILED, "missing.pgm: there is no such file"),
    Row("file in a missing folder", "no/such/place.pgm", FAILED, "no/such/place.pgm: there is no such file"),
    Row("file below a file", "gray.pgm/x.pgm", FAILED, "gray.pgm/x.pgm: cannot be opened: Not a directory"),
    Row("name too long", "x" * 300 + ".pgm", FAILED, "x.pgm: cannot be opened: File name too long"),
    Row("link to nowhere", "link.pgm", FAILED, "link.pgm: there is no such file",
        lambda folder: (folder / "link.pgm").symlink_to("nowhere.pgm")),
    Row("link to itself", "link.pgm", FAILED, "link.pgm: cannot be opened: Too many levels",
        lambda folder: (folder / "link.pgm").symlink_to("link.pgm")),
    Row("pattern without matches", "*.tif", USAGE, r"\*.tif: no file matches"),
    Row("folder without images", "empty", USAGE, "empty: no images in this folder", folder_mode("empty", 0o755)),
    Row("folder to noise", "noise empty -o out.pgm --gaussian 5", FAILED, "empty: is a folder, not an image",
        folder_mode("empty", 0o755)),
    Row("folder to compare", "compare gray.pgm empty", FAILED, "empty: is a folder, not an image",
        folder_mode("empty", 0o755)),
    Row("named pipe", "pipe.pgm", FAILED, "pipe.pgm: is not a regular file",
        lambda folder: os.mkfifo(folder / "pipe.pgm")),
    Row("device", "/dev/null -o out.pgm", FAILED, "/dev/null: is not a regular file"),
    Row("unreadable file", "secret.pgm -o out.pgm", FAILED, "secret.pgm: cannot be opened: Permission denied",
        unreadable("secret.pgm"), skip=no_other_user, before=other_user),
    Row("unreadable folder", "secret", FAILED, "secret: Permission denied", folder_mode("secret", 0o000),
        skip=no_other_user, before=other_user),

    # -- files that are no images, or broken ones
    Row("empty file", "empty.pgm", FAILED, "empty.pgm: the file is empty", holding("empty.pgm", b"")),
    Row("text", "notes.txt -o out.pgm", FAILED, "notes.txt: not an image", holding("notes.txt", b"Just some words.\n")),
    Row("table of numbers", "table.csv -o out.pgm", FAILED, "table.csv: not an image",
        holding("table.csv", b"1,2\n3,4\n")),
    Row("random bytes", "random.png -o out.pgm", FAILED, "random.png: not an image",
        holding("random.png", random.Random(7).randbytes(5000))),
    Row("program", "a.out -o out.pgm", FAILED, "a.out: not an image",
        holding("a.out", b"\x7fELF\x02\x01\x01" + bytes(500))),
    Row("drawing", "a.svg -o out.pgm", FAILED, "a.svg: an SVG drawing .*, not an image",
        holding("a.svg", b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')),
    Row("one byte", "one.pgm", FAILED, "one.pgm: not an image", holding("one.pgm", b"P")),
    Row("PGM cut in its header", "cut.pgm", FAILED, "cut.pgm: .*header", holding("cut.pgm", b"P5\n24")),
    Row("PGM cut in its pixels", "cut.pgm", FAILED, "cut.pgm: truncated: .*432 bytes.*24 x 18",
        cut("cut.pgm", lambda path: write_pnm(path, picture(24, 18)))),
    Row("ASCII PGM cut", "cut.pgm", FAILED, "cut.pgm: truncated", holding("cut.pgm", b"P2\n3 3\n255\n1 2 3 4")),
    Row("ASCII PGM with words", "bad.pgm", FAILED, "bad.pgm: row 1 has something that is not a number",
        holding("bad.pgm", b"P2\n2 2\n255\n1 2 three 4\n")),
    Row("PPM cut", "cut.ppm", FAILED, "cut.ppm: truncated",
        cut("cut.ppm", lambda path: write_pnm(path, picture(24, 18, 3)))),
    Row("PFM cut", "cut.pfm", FAILED, "cut.pfm: truncated",
        cut("cut.pfm", lambda path: write_pfm(path, picture(24, 18)))),
    Row("NPY cut in its pixels", "cut.npy", FAILED, "cut.npy: truncated",
        cut("cut.npy", lambda path: write_npy(path, picture(24, 18)))),
    Row("NPY cut in its header", "cut.npy", FAILED, "cut.npy: truncated: it ends in its header",
        cut("cut.npy", lambda path: write_npy(path, picture(24, 18)), 0.02)),
    Row("NPY with a damaged header", "bad.npy", FAILED, "bad.npy: its NPY header is damaged",
        holding("bad.npy", npy_bytes("(4, 4", "|u1", bytes(16)))),
    Row("NPY of structures", "bad.npy", FAILED, "bad.npy: .*type",
        holding("bad.npy", npy_bytes("(4, 4)", "<c8", bytes(128)))),
    Row("PFM with no scale", "bad.pfm", FAILED, 'bad.pfm: its header is damaged: the scale is "zero"',
        holding("bad.pfm", b"Pf\n2 2\nzero\n" + bytes(16))),
    Row("PAM with a strange header", "bad.pam", FAILED, "bad.pam: its PAM header is damaged",
        holding("bad.pam", b"P7\nWIDTH 2\nSIZE 3\nENDHDR\n" + bytes(9))),
    Row("maxval 0", "bad.pgm", FAILED, "bad.pgm: .*0 for the largest sample",
        holding("bad.pgm", b"P5\n2 2\n0\n" + bytes(4))),
    Row("maxval 70000", "bad.pgm", FAILED, "bad.pgm: .*70000 for the largest sample",
        holding("bad.pgm", b"P5\n2 2\n70000\n" + bytes(8))),
    Row("sample above maxval", "bad.pgm", FAILED, "bad.pgm: row 1 has the sample 200: the header says 100 at most",
        holding("bad.pgm", b"P5\n2 2\n100\n\x01\x02\xc8\x03")),
    Row("0 pixels wide", "bad.pgm", FAILED, "bad.pgm: its header says 0 x 5 pixels",
        holding("bad.pgm", b"P5\n0 5\n255\n")),
    Row("0 pixels high", "bad.pgm", FAILED, "bad.pgm: its header says 5 x 0 pixels",
        holding("bad.pgm", b"P5\n5 0\n255\n")),
    Row("NPY of 0 rows", "bad.npy", FAILED, "bad.npy: its header says 4 x 0 pixels",
        holding("bad.npy", npy_bytes("(0, 4)", "|u1", b""))),
    Row("NPY of negative width", "bad.npy", FAILED, "bad.npy: its header says -4 x 4",
        holding("bad.npy", npy_bytes("(4, -4)", "|u1", bytes(16)))),
    Row("NPY of 4 axes", "bad.npy", FAILED, r"bad.npy: shape \(2, 2, 2, 2\)",
        holding("bad.npy", npy_bytes("(2, 2, 2, 2)", "|u1", bytes(16)))),
    Row("5 channels in NPY", "bad.npy", FAILED, r"bad.npy: shape \(2, 2, 5\).*1 to 4 channels",
        holding("bad.npy", npy_bytes("(2, 2, 5)", "|u1", bytes(20)))),
    Row("5 channels in PAM", "bad.pam", FAILED, "bad.pam: has 5 channels: 1 to 4 are supported",
        holding("bad.pam", b"P7\nWIDTH 2\nHEIGHT 2\nDEPTH 5\nMAXVAL 255\nENDHDR\n" + bytes(20))),
    Row("absurd PGM", "bad.pgm", FAILED, "bad.pgm: truncated: .*2000000000 x 2000000000",
        holding("bad.pgm", b"P5\n2000000000 2000000000\n255\n" + bytes(99))),
    Row("PGM beyond any number", "bad.pgm", FAILED, "bad.pgm: its header",
        holding("bad.pgm", b"P5\n99999999999999999999 3\n255\n" + bytes(99))),
    Row("absurd PFM", "bad.pfm", FAILED, "bad.pfm: truncated",
        holding("bad.pfm", b"PF\n2147483647 2147483647\n-1\n" + bytes(99))),
    Row("absurd NPY", "bad.npy", FAILED, "bad.npy: (truncated|its header)",
        holding("bad.npy", npy_bytes("(9223372036854775807, 4)", "<f8", bytes(99)))),
    vips("PNG cut", "cut.png", "cut.png: ", cut("cut.png", lambda path: write_png(path, picture(64, 48)))),
    vips("PNG cut in its header", "cut.png", "cut.png: ",
         cut("cut.png", lambda path: write_png(path, picture(64, 48)), 0.01)),
    vips("PNG with a wrong checksum", "bad.png", "bad.png: ",
         lambda folder: (folder / "bad.png").write_bytes(
             write_png(folder / "bad.png", picture(9, 9)).read_bytes().replace(b"IDAT", b"IDAT\xff", 1))),
    vips("absurd PNG", "bad.png", "bad.png: ",
         holding("bad.png", png_header(2**31 - 1, 2**31 - 1, 8, 1) + NO_PIXELS)),
    vips("PNG of 0 pixels", "bad.png", "bad.png: ",
         holding("bad.png", png_header(0, 5, 8, 1) + NO_PIXELS)),
    vips("TIFF cut", "cut.tif", "cut.tif: ", cut("cut.tif", lambda path: write_tiff(path, [picture(64, 48)])), ".tif"),
    vips("TIFF whose pixels are cut", "cut.tif", "cut.tif: ", cut("cut.tif", converted, 0.9), ".tif"),
    vips("TIFF without pages", "bad.tif", "bad.tif: ",
         holding("bad.tif", b"II*\0\xff\xff\xff\x7f" + bytes(20)), ".tif"),
    vips("JPEG cut", "cut.jpg", "cut.jpg: ", cut("cut.jpg", converted), ".jpg"),
    vips("JPEG cut in its header", "cut.jpg", "cut.jpg: ", cut("cut.jpg", converted, 0.05), ".jpg"),
    vips("WebP cut", "cut.webp", "cut.webp: ", cut("cut.webp", converted), ".webp"),
    vips("GIF cut", "cut.gif", "cut.gif: ", cut("cut.gif", converted, 0.3), ".gif"),
    Row("NaN refused in PFM", "nan.pfm --nonfinite error", FAILED, "nan.pfm: .*(5.*2|2.*5)", with_nan("nan.pfm")),
    Row("NaN refused in NPY", "nan.npy --nonfinite error", FAILED, "nan.npy: .*(5.*2|2.*5)", with_nan("nan.npy")),

    # -- images that do not fit what is asked of them
    Row("lab on gray", "gray.pgm -m bilateral --colour lab", FAILED,
        "gray.pgm: bilateral: colour lab takes an rgb image, this one is gray"),
    Row("memory too small", "gray.pgm --memory 1K", FAILED,
        "gray.pgm: an image of 24 x 18 needs at least .* the limit is 1.0 KiB"),
    Row("compare different sizes", "compare gray.pgm other.pgm", FAILED,
        "other.pgm: 8x8, 1 channel; gray.pgm is 24x18, 1 channel: ",
        lambda folder: write_pnm(folder / "other.pgm", picture(8, 8))),
    Row("compare different channels", "compare gray.pgm colour.ppm", FAILED,
        "colour.ppm: 24x18, 3 channels; gray.pgm is 24x18, 1 channel: they cannot be compared"),
    Row("compare one good and one bad", "compare gray.pgm colour.ppm gray.pgm", FAILED,
        "colour.ppm: .*cannot be compared", out=r"(?s)^ *PSNR dB.*inf.*gray.pgm$"),
    Row("no CUDA", "gray.pgm --device cuda", FAILED, "--device cuda: ", skip=no_cuda),
    Row("no GPU at all", "gray.pgm --device cuda:all", FAILED, "--device cuda:all: ", skip=no_cuda),
    Row("no eighth GPU", "gray.pgm -d cuda:7", FAILED, "--device cuda:7: there is no such device",
        skip=lambda: "there are many" if "cuda:7" in run("devices").out else ""),

    # -- outputs
    Row("unknown output format", "gray.pgm -o out.xyz", FAILED,
        r"out.xyz: .xyz files cannot be written; this build writes .*\.pgm"),
    Row("output without extension", "gray.pgm -o out", FAILED, "out: has no extension to tell the format by"),
    Row("format that is only read", "gray.pgm -o out.exr", FAILED, "out.exr: .exr files cannot be written"),
    Row("noise to an unknown format", "noise gray.pgm -o out.xyz --gaussian 5", FAILED,
        "out.xyz: .xyz files cannot be written"),
    Row("colour to PGM", "colour.ppm -o out.pgm", FAILED, "out.pgm: PGM holds gray, not rgb"),
    Row("type that the format cannot hold", "gray.pgm -o out.pgm --depth f32", FAILED,
        "out.pgm: PGM cannot hold f32 samples; u16 would do"),
    Row("range that the format cannot hold", "gray.pgm -o out.pgm --range 200.5", FAILED, "out.pgm: .*range of 200.5"),
    Row("output folder missing", "gray.pgm -o no/out.pgm", FAILED, "no/out.pgm: the folder no does not exist"),
    Row("output folder's folder missing", "gray.pgm -o no/such/", FAILED, "no/such/: the folder cannot be made"),
    Row("output folder is a file", "gray.pgm -o colour.ppm/", FAILED, "colour.ppm/: the folder cannot be made"),
    Row("output below a file", "gray.pgm -o colour.ppm/out.pgm", FAILED,
        "colour.ppm/out.pgm: .*(not a folder|Not a directory)"),
    Row("output folder not writable", "gray.pgm -o locked/out.pgm", FAILED,
        "locked/out.pgm: the folder locked is not writable",
        folder_mode("locked", 0o555), skip=no_other_user, before=other_user),
    Row("output folder cannot be made", "gray.pgm -o locked/new/", FAILED,
        "locked/new/: the folder cannot be made: Permission denied",
        folder_mode("locked", 0o555), skip=no_other_user, before=other_user),
    Row("demo folder cannot be made", "demo --size 8x8 -o locked/new", FAILED, "locked/new: the folder cannot be made",
        folder_mode("locked", 0o555), skip=no_other_user, before=other_user),
    Row("place beside the input not writable", "locked/x.pgm", FAILED,
        "locked/x.ungrain.pgm: the folder locked is not writable",
        lambda folder: (folder_mode("locked", 0o755)(folder), write_pnm(folder / "locked/x.pgm", picture(8, 8)),
                        (folder / "locked").chmod(0o555)),
        skip=no_other_user, before=other_user),
    Row("output write-protected", "gray.pgm -o fixed/fixed.pgm", FAILED,
        "fixed/fixed.pgm: is not writable: Permission denied",
        lambda folder: (folder_mode("fixed", 0o777)(folder),
                        write_pnm(folder / "fixed/fixed.pgm", picture(8, 8)).chmod(0o444)),
        skip=no_other_user, before=other_user),
    Row("output is a folder of that name", "gray.pgm -o sub", FAILED, "sub/gray.pgm: is a folder",
        lambda folder: (folder / "sub/gray.pgm").mkdir(parents=True)),
    Row("noise into a folder", "noise gray.pgm -o sub.pgm --gaussian 5", FAILED, "sub.pgm: is a folder",
        lambda folder: (folder / "sub.pgm").mkdir()),
    Row("output is a pipe", "gray.pgm -o pipe.pgm", FAILED, "pipe.pgm: is not a regular file",
        lambda folder: os.mkfifo(folder / "pipe.pgm")),
    Row("output is a link in a circle", "gray.pgm -o link.pgm", FAILED, "link.pgm: too many symbolic links",
        lambda folder: (folder / "link.pgm").symlink_to("link.pgm")),
    Row("two inputs to one output", "left/x.pgm right/x.pgm -o out", USAGE,
        "left/x.pgm and right/x.pgm would both be written to out/x.pgm", same_names),
    Row("the same input twice", "gray.pgm ./gray.pgm", USAGE, "gray.pgm and ./gray.pgm would both be written to"),
    Row("several inputs to a file", "gray.pgm colour.ppm -o colour.ppm", USAGE,
        "colour.ppm: 2 inputs need a folder to go to"),
    Row("several inputs to a file's name", "gray.pgm colour.ppm -o new.png", USAGE,
        "new.png: 2 inputs need a folder to go to", skip=lambda: needs_format(".png")),
    Row("result over another input", "gray.pgm gray.ungrain.pgm", USAGE,
        "gray.ungrain.pgm is an input, and the result of gray.pgm",
        lambda folder: write_pnm(folder / "gray.ungrain.pgm", picture(8, 8))),
    Row("pages to a format of one", "pages.tif -o out.png", FAILED, "out.png: PNG holds one page, not 2",
        lambda folder: write_tiff(folder / "pages.tif", [picture(8, 8), picture(8, 8)]),
        skip=lambda: needs_format(".tif")),

    # -- a disk that is full
    *[Row(f"file size limit {extension}", f"big.pgm -o out{extension}", FAILED,
          rf"out\{extension}: .*(File too large|write)", big,
          limit=(resource.RLIMIT_FSIZE, 20000), skip=lambda extension=extension: needs_format(extension))
      for extension in (".pgm", ".npy", ".tif", ".png")],
    Row("file size limit over an older output", "big.pgm -o gray.pgm", FAILED, "gray.pgm: .*File too large", big,
        limit=(resource.RLIMIT_FSIZE, 20000)),
    Row("file size limit in place", "big.pgm -o big.pgm", FAILED, "big.pgm: .*File too large", big,
        limit=(resource.RLIMIT_FSIZE, 20000)),
    Row("file size limit for noise", "noise big.pgm -o out.pgm --gaussian 5", FAILED, "out.pgm: .*File too large", big,
        limit=(resource.RLIMIT_FSIZE, 20000)),
    *[full_disk(extension) for extension in (".pgm", ".npy", ".tif", ".png")],

    # -- an input that changes
    *[Row(f"input changes: {what.__name__}", "slow.pgm -o out.pgm -m bilateral --device reference --radius 20", FAILED,
          "slow.pgm: changed while it was read", slow, during=what, changes=("slow.pgm",))
      for what in (append, shorten, replace)],

    # -- several files
    Row("one of three fails", "one.pgm two.pgm three.pgm -o out", FAILED,
        ("two.pgm: truncated", "1 of 3 files failed, the others are done"), three,
        makes=("out", "out/one.pgm", "out/three.pgm", "out/.ungrain-done.jsonl"),
        out=r"^one.pgm -> out/one.pgm .*\nthree.pgm -> out/three.pgm .*\n$"),
    Row("two of three are missing", "one.pgm no.pgm nor.pgm", FAILED,
        ("no.pgm: there is no such file", "nor.pgm: there is no such file", "2 of 3 files failed"), three,
        makes=("one.ungrain.pgm",), out="^one.pgm -> one.ungrain.pgm "),
    Row("a quiet batch that fails", "-q one.pgm two.pgm", FAILED, ("two.pgm: truncated", "1 of 2 files failed"), three,
        makes=("one.ungrain.pgm",)),
    Row("a failure in JSON", "two.pgm --json", FAILED, "two.pgm: truncated", three,
        out=r'^\{.*"code":"io".*"message":"two.pgm: truncated.*"status":"failed"\}$'),
    Row("lab for one gray of two", "gray.pgm colour.ppm -m bilateral --colour lab", FAILED,
        ("gray.pgm: .*lab", "1 of 2 files failed"), makes=("colour.ungrain.ppm",), out="^colour.ppm -> "),
    Row("a line break in a missing name", ["no\nsuch.pgm"], FAILED, "no such.pgm: there is no such file"),
    Row("a line break in a bad argument", ["gray.pgm", "-m", "bilateral", "--wi\ndow", "disc"], USAGE,
        "no option --wi dow"),
]


class TestBadInput(Workspace):
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
    def test_row(self, row: Row) -> None:
        if reason := row.skip():
            pytest.skip(reason)
        row.prepare(self.folder)
        there = snapshot(self.folder)
        result = self.carry_out(row)
        told = f"{row.name}: {result}"

        assert result.code == row.status, told
        assert result.seconds < LONGEST, told
        assert result.err.endswith("\n"), told
        patterns = (row.pattern,) if isinstance(row.pattern, str) else row.pattern
        assert len(result.err_lines) == len(patterns), told
        for line, pattern in zip(result.err_lines, patterns):
            assert line.startswith("ungrain: ") and len(line) > 15, told
            assert re.search(pattern, line)
        assert NOISE.search(result.err + result.out) is None, told
        assert re.search(row.out or r"\A\Z", result.out), told

        assert temporaries(self.folder) == [], told
        after = snapshot(self.folder)
        assert sorted(set(after) - set(there)) == sorted(row.makes), told
        for name in set(there) - set(row.changes):
            assert after.get(name) == there[name], f"{row.name}: {name} was changed"

    def carry_out(self, row: Row) -> Result:
        arguments = row.arguments.split() if isinstance(row.arguments, str) else row.arguments
        if row.during is not None:
            process = start(*arguments, folder=self.folder)
            wait_until(lambda: temporaries(self.folder), process)
            row.during(self.folder)
            return Result(*ends_by(process), 0)
        limit = {}
        if row.limit is not None:
            which, most = row.limit
            limit["preexec_fn"] = lambda: resource.setrlimit(which, (most, most))
        return self.run_here(*arguments, before=row.before(), **limit)
