"""Runs the program on a row's file and judges what it made of it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import pictures
import readers
from rows import Fails, Right, Row
from verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("UNGRAIN", str(ROOT / "build/release/bin/ungrain"))
LONGEST = 30  # seconds that one run may take
# A copy: while another thread changes this process's own, a program cannot be started with it ("Bad address").
ENVIRONMENT = dict(os.environ)

# So mild that every pixel stays what it was within the tolerance, and still the whole way through the program.
MILD = ("--method", "gaussian", "--sigma", "0.3", "--device", "cpu", "--threads", "1", "--json")
DEFAULT = ("--device", "cpu", "--threads", "1", "--json")
POOR = 0.3  # dB below the same picture as 8-bit PNM

# What the program never prints: other libraries' messages, and the signs of a crash.
LIBRARY_NOISE = re.compile(r"GLib|VIPS-|\bVIPS\b|vips|Traceback|terminate called|Assertion|\*\* \(|Sanitizer")


class Wrong(Exception):
    """What the program did wrong."""


def check(condition, why: str) -> None:
    if not condition:
        raise Wrong(why)


@dataclass
class Run:
    code: int
    err: str
    report: dict


def run_program(source: Path, target: Path, *options: str) -> Run:
    command = [PROGRAM, source.name, "-o", target.name, *options]
    try:
        done = subprocess.run(
            command, cwd=source.parent, capture_output=True, timeout=LONGEST, check=False, stdin=subprocess.DEVNULL,
            env=ENVIRONMENT
        )
    except subprocess.TimeoutExpired:
        raise Wrong(f"did not end within {LONGEST} s") from None
    err = done.stderr.decode(errors="replace")
    check(done.returncode in (0, 1, 2), f"ended by {done.returncode}: {err.strip()}")
    lines = done.stdout.decode(errors="replace").splitlines()
    try:
        report = json.loads(lines[0]) if lines else {}
    except ValueError:
        raise Wrong(f"--json printed {lines[0]!r}") from None
    return Run(done.returncode, err, report)


# ---- the error that is wanted ------------------------------------------------------------------------------------


def check_failed(run: Run, row: Row, wanted: list[Fails], target: Path) -> str:
    lines = run.err.splitlines()
    check(len(lines) == 1, f"{len(lines)} lines on the standard error: {run.err.strip()!r}")
    line = lines[0]
    check(all(run.code in fails.codes for fails in wanted), f"exit status {run.code}: {line}")
    name = row.file.replace("\n", " ")
    check(name in line or target.name in line, f"the message names no file: {line}")
    check(not LIBRARY_NOISE.search(line), f"a library's own words: {line}")
    check(bool(wanted), f"refused: {line}")
    after_name = line.replace(name, "").replace(target.name, "")
    check(
        any(re.search(fails.words, after_name, re.I) for fails in wanted),
        f"the message does not match {' or '.join(f.words for f in wanted)!r}: {line}",
    )
    check_left(target.parent, {row.file})
    return line


def check_left(folder: Path, expected: set[str]) -> None:
    left = {path.name for path in folder.iterdir()} - expected
    check(not left, f"left behind: {sorted(left)}")


# ---- the picture that is wanted ----------------------------------------------------------------------------------


def unified(found: readers.Found, channels: int, pages: int) -> list[np.ndarray]:
    """Pages as (height, width, channels) where there are more than one channel.

    FITS holds colours as planes, so three of them are one picture where one is wanted.
    """
    images = [np.squeeze(page, -1) if page.ndim == 3 and page.shape[-1] == 1 else page for page in found.pages]
    if pages == 1 and channels > 1 and len(images) == channels and images[0].ndim == 2:
        images = [np.stack(images, axis=-1)]
    return images


def split_alpha(image: np.ndarray, layout: str) -> tuple[np.ndarray, np.ndarray | None]:
    if not pictures.has_alpha(layout):
        return image, None
    return np.squeeze(image[..., :-1], -1) if image.shape[-1] == 2 else image[..., :-1], image[..., -1]


def check_page(image: np.ndarray, truth: np.ndarray, layout: str, right: Right, where: str) -> None:
    check(
        image.shape[:2] == truth.shape[:2],
        f"{where} is {image.shape[1]}x{image.shape[0]}, not {truth.shape[1]}x{truth.shape[0]}",
    )
    channels, wanted = (shape[2] if len(shape) > 2 else 1 for shape in (image.shape, truth.shape))
    check(channels == wanted, f"{where} has {channels} channels, not {wanted}")
    name = pictures.type_name(image.dtype)
    check(name in right.types.split(), f"{where} holds {name}, not {right.types}")
    white = right.white if right.white is not None else pictures.white_of(image.dtype)
    values = (image.astype(np.float64) - right.low) / (white - right.low)
    colours, alpha = split_alpha(values, layout)
    true_colours, true_alpha = split_alpha(truth, layout)
    error = np.abs(colours - true_colours)
    worst = np.unravel_index(np.argmax(np.nan_to_num(error, nan=np.inf)), error.shape)
    check(
        error[worst] <= right.tolerance,
        f"{where}: row {worst[0]}, column {worst[1]} is {colours[worst]:.4f} of white, not {true_colours[worst]:.4f}",
    )
    if alpha is not None:
        largest = 0.5 / white if white > 1 else 1e-6
        wrong = np.abs(alpha - true_alpha).max()
        check(wrong <= largest + right.alpha_tolerance, f"{where}: alpha changed by {wrong:.4f}")


def same(found, wanted) -> bool:
    if callable(wanted):
        return bool(wanted(found))
    if isinstance(wanted, float) or (isinstance(wanted, tuple) and any(isinstance(v, float) for v in wanted)):
        return found is not None and np.allclose(np.asarray(found, float), wanted, rtol=1e-4)
    return found == wanted


def check_metadata(found: readers.Found, wanted: dict) -> None:
    for name, value in wanted.items():
        have = found.meta.get(name)
        words = f"is {str(have)[:80]!r}" if name in found.meta else "is lost"
        shown = "as wanted" if callable(value) else repr(value)[:80]
        check(same(have, value), f"{name} {words}, not {shown}")


def check_report(report: dict, row: Row, right: Right) -> None:
    check(report.get("status") == "done", f"--json says {report}")
    if right.range is not None:
        check(
            abs(report["range"] - right.range) <= 1e-6 * right.range,
            f"--json says range {report['range']:g}, not {right.range:g}",
        )
    alpha = pictures.has_alpha(row.layout) if right.alpha is None else right.alpha
    check(right.told in report.get("metadata_not_kept", ""), f"--json does not say that {right.told} is not kept")
    check(report["alpha"] == alpha, f"--json says alpha {report['alpha']}")


def check_right(run: Run, row: Row, right: Right, picture: pictures.Picture, target: Path) -> None:
    check(run.code == 0 and not run.err, f"printed {run.err.strip()!r}")
    check(target.is_file(), "exit status 0 and no output")
    check_left(target.parent, {row.file, target.name})
    check_report(run.report, row, right)
    found = readers.read(target)
    layout = right.layout or row.layout
    truths = picture.pages
    if right.truth is None and right.layout and right.layout != row.layout:
        truths = [as_layout(page, row.layout, layout) for page in truths]
    if right.truth is not None:
        truths = [right.truth(page) for page in truths]
    wanted_pages = len(truths) if right.pages is None else right.pages
    images = unified(found, pictures.channels_of(layout), wanted_pages)
    check(len(images) == wanted_pages, f"{len(images)} pages, not {wanted_pages}")
    for number, (image, truth) in enumerate(zip(images, truths), 1):
        check_page(image, truth, layout, right, f"page {number}" if len(images) > 1 else "the output")
    check(
        found.orientation in (None, 0, 1),
        f"the output's orientation is {found.orientation}: upright pixels would be turned again",
    )
    check_metadata(found, right.keeps)


def as_layout(page: np.ndarray, layout: str, wanted: str) -> np.ndarray:
    """A page in the layout that the output format makes of it."""
    colours, alpha = split_alpha(page, layout)
    if wanted.startswith("rgb") and colours.ndim == 2:
        colours = np.stack([colours] * 3, axis=-1)
    if not pictures.has_alpha(wanted):
        return colours
    if alpha is None:
        alpha = np.ones(page.shape[:2])
    return np.dstack([colours, alpha])


def target_of(row: Row) -> Path:
    """The output's name: the extension asked for, else the input's, else one that holds everything."""
    asked = next((wanted.to for wanted in row.expect if wanted.to), Path(row.file).suffix)
    return Path("out" + (asked if readers.knows(asked) else ".tif"))


def judge(row: Row, root: Path) -> Verdict:
    """Files are left under root / row.name for whoever looks for the reason."""
    folder = root / row.name
    folder.mkdir(parents=True)
    rights = [wanted for wanted in row.expect if isinstance(wanted, Right)]
    fails = [wanted for wanted in row.expect if isinstance(wanted, Fails)]
    source = folder / row.file
    right = rights[0] if rights else None
    target = folder / target_of(row)
    picture = pictures.clean(row.layout, row.pages)
    try:
        row.write(source, picture)
        if right is not None and row.checked and right.truth is None and source.suffix == target.suffix:
            check_source(source, row, right, picture)
        before = source.read_bytes() if source.is_file() else None
        run = run_program(source, target, *MILD, *row.options)
        if run.code != 0:
            return Verdict("error", check_failed(run, row, fails, target))
        check(right is not None, f"accepted, where an error was wanted: {fails[0].words if fails else ''}")
        check_any_right(run, row, rights, picture, target)
        check(before is None or source.read_bytes() == before, "the input was changed")
        if row.quality:
            return judge_quality(row, right, root)
    except Wrong as wrong:
        return Verdict("wrong", str(wrong))
    return Verdict("right")


def check_source(source: Path, row: Row, right: Right, picture: pictures.Picture) -> None:
    """The row's own file holds what the row says."""
    found = readers.read(source)
    images = unified(found, pictures.channels_of(row.layout), row.pages)
    check(len(images) == row.pages, f"the row's own file has {len(images)} pages")
    # JPEG XL and HEIF are decoded upright.
    turn = 1 if source.suffix in (".jxl", ".heic") else found.orientation or 1
    for image, truth in zip(images, picture.pages):
        as_stored = dataclasses.replace(right, types=pictures.type_name(image.dtype))
        check_page(pictures.upright(image, turn), truth, row.layout, as_stored, "the row's own file")
    check_metadata(found, right.keeps)


def check_any_right(run: Run, row: Row, rights: list[Right], picture: pictures.Picture, target: Path) -> None:
    """One of several right results."""
    reasons = []
    for right in rights:
        try:
            return check_right(run, row, right, picture, target)
        except Wrong as wrong:
            reasons.append(str(wrong))
    raise Wrong("; or ".join(dict.fromkeys(reasons)))


# ---- the default command -----------------------------------------------------------------------------------------


def colours_of(path: Path, row: Row, right: Right) -> list[np.ndarray]:
    layout = right.layout or row.layout
    images = unified(readers.read(path), pictures.channels_of(layout), row.pages)
    result = []
    for image in images:
        white = right.white if right.white is not None else pictures.white_of(image.dtype)
        values = (image.astype(np.float64) - right.low) / (white - right.low)
        result.append(split_alpha(values, layout)[0])
    return result


_pnm_lock = threading.Lock()


def pnm_psnr(layout: str, page: int, pages: int, options: tuple[str, ...], root: Path) -> float:
    with _pnm_lock:
        return _pnm_psnr(layout, page, pages, options, root)


@cache
def _pnm_psnr(layout: str, page: int, pages: int, options: tuple[str, ...], root: Path) -> float:
    """The PSNR that a command reaches on the noisy picture as 8-bit PNM."""
    colours = "rgb" if layout.startswith("rgb") else "gray"
    folder = root / "8-bit-pnm" / layout / f"{page}-of-{pages}{''.join(options)}"
    folder.mkdir(parents=True)
    image = split_alpha(pictures.noisy(layout, pages).pages[page], layout)[0]
    truth = split_alpha(pictures.clean(layout, pages).pages[page], layout)[0]
    source, target = folder / "in.pnm", folder / "out.pnm"
    height, width = image.shape[:2]
    kind = b"P6" if colours == "rgb" else b"P5"
    source.write_bytes(kind + f"\n{width} {height}\n255\n".encode() + pictures.u8(image).tobytes())
    run = run_program(source, target, *DEFAULT, *options)
    check(run.code == 0, run.err)
    return pictures.psnr(truth, readers.read(target).pages[0] / 255)


def judge_quality(row: Row, right: Right, root: Path) -> Verdict:
    """The noisy picture comes nearer to the truth, and as near as from PNM: with nothing given, and with the noise
    level told on the 0-255 scale, which is right only where the white level is.
    """
    folder = root / f"{row.name}-noisy"
    folder.mkdir()
    row.write(folder / row.file, pictures.noisy(row.layout, row.pages))
    verdict = judge_command(row, right, folder, (), root)
    if verdict.word == "right" and right.range is not None:
        verdict = judge_command(row, right, folder, ("--sigma", "20"), root)
    return verdict


def judge_command(row: Row, right: Right, folder: Path, options: tuple[str, ...], root: Path) -> Verdict:
    command = " ".join(options) or "the default command"
    source, target = folder / row.file, folder / target_of(row)
    picture, truth = pictures.noisy(row.layout, row.pages), pictures.clean(row.layout, row.pages)
    run = run_program(source, target, *DEFAULT, *row.options, *options)
    check(run.code == 0 and not run.err, f"{command}: {run.err.strip()}")
    for number, colours in enumerate(colours_of(target, row, right)):
        true_colours, noisy_colours = (split_alpha(p.pages[number], row.layout)[0] for p in (truth, picture))
        if right.truth is not None:
            true_colours, noisy_colours = right.truth(true_colours), right.truth(noisy_colours)
        before, after = pictures.psnr(true_colours, noisy_colours), pictures.psnr(true_colours, colours)
        check(after > before + 1, f"{command}: {before:.2f} dB before, {after:.2f} dB after")
        wanted = pnm_psnr(row.layout, number, row.pages, options, root)
        if after < wanted - POOR:
            return Verdict("poor", f"{command}: {after:.2f} dB, {wanted:.2f} dB as 8-bit PNM")
    return Verdict("right")
