"""From every source to every format that can be written, and from there back."""

from __future__ import annotations

import numpy as np

import judge
from rows import Fails, Right, add
from rows_plain import npy, pam, pnm
from rows_tiff import pages_written

# By extension: types it holds, whether it holds gray, alpha, and how far lossy pixels may go.
OUTPUTS = {
    ".pgm": ("u8 u16", 0.012),
    ".ppm": ("u8 u16", 0.012),
    ".pnm": ("u8 u16", 0.012),
    ".pam": ("u8 u16", 0.012),
    ".pfm": ("f32", 0.012),
    ".npy": ("u8 u16 f32", 0.012),
    ".jpg": ("u8", 0.04),
    ".png": ("u8 u16", 0.012),
    ".tif": ("u8 u16 f32", 0.012),
    ".webp": ("u8", 0.06),
    ".gif": ("u8", 0.12),
    ".heic": ("u8 u16", 0.06),
    ".avif": ("u8 u16", 0.06),
    ".jxl": ("u8 u16 f32", 0.06),
    ".jp2": ("u8 u16", 0.06),
    ".fits": ("u8 u16 f32", 0.012),
    ".hdr": ("f32", 0.02),
}
GRAY_BECOMES_RGB = (".webp", ".gif", ".heic", ".avif")
NO_GRAY, NO_COLOUR = (".ppm", ".hdr"), (".pgm",)
NO_ALPHA = (".pgm", ".ppm", ".jpg", ".pfm", ".fits", ".hdr")

SOURCES = {
    "u8-gray": ("in.tif", "gray", "u8", pages_written(np.uint8)),
    "u8-rgb": ("in.tif", "rgb", "u8", pages_written(np.uint8)),
    "u8-rgba": ("in.pam", "rgb+alpha", "u8", pam("RGB_ALPHA")),
    "u16-gray": ("in.pgm", "gray", "u16", pnm(65535)),
    "u16-rgb": ("in.tif", "rgb", "u16", pages_written(np.uint16)),
    "f32-gray": ("in.npy", "gray", "f32", npy(np.float32)),
    "f32-rgb": ("in.npy", "rgb", "f32", npy(np.float32)),
}


def wanted(extension, layout, kind):
    types, tolerance = OUTPUTS[extension]
    held = kind if kind in types.split() else types
    if (extension, layout, kind) == (".jxl", "gray", "f32"):  # libvips has no gray floats there
        held = "u16"
    truth = np.flipud if extension == ".fits" else None
    if "alpha" in layout and extension == ".gif":  # one bit of alpha
        return [Right(to=extension, tolerance=1, alpha_tolerance=0.51), Fails("alpha", to=extension)]
    if layout == "gray" and extension in GRAY_BECOMES_RGB:
        return [
            Right(to=extension, types=held, tolerance=tolerance, layout="rgb"),
            Right(to=extension, types=held, tolerance=tolerance),
        ]
    return [
        Right(
            to=extension,
            types=held,
            tolerance=tolerance,
            truth=truth,
            alpha_tolerance=0.06 if tolerance > 0.02 else 1e-4,
        )
    ]


for source, (file, layout, kind, write) in SOURCES.items():
    for extension in OUTPUTS:
        refused = (
            (layout == "gray" and extension in NO_GRAY)
            or (layout != "gray" and extension in NO_COLOUR)
            or ("alpha" in layout and extension in NO_ALPHA)
        )
        name = f"matrix/{source}-to-{extension[1:]}"
        if refused:
            # A format that cannot hold the channels says so, or the gray becomes colours.
            either = (
                [Right(to=extension, types=OUTPUTS[extension][0], tolerance=OUTPUTS[extension][1], layout="rgb")]
                if layout == "gray"
                else []
            )
            add(name, file, write, Fails("holds|alpha|gray|rgb|colour|channels", to=extension), *either, layout=layout)
        else:
            add(name, file, write, *wanted(extension, layout, kind), layout=layout)


def written_by_us(file, write, kind):
    """A file that the program wrote: what it writes it reads."""

    def write_it(path, picture):
        source = path.with_name("source" + file[2:])
        write(source, picture)
        run = judge.run_program(source, path, *judge.MILD)
        judge.check(run.code == 0, f"not written: {run.err.strip()}")
        source.unlink()

    return write_it


for source in ("u8-rgb", "u16-gray", "f32-rgb"):
    file, layout, kind, write = SOURCES[source]
    for extension, (types, tolerance) in OUTPUTS.items():
        if layout == "gray" and extension in NO_GRAY + GRAY_BECOMES_RGB or layout == "rgb" and extension in NO_COLOUR:
            continue
        # FITS is turned over twice.
        held = kind if kind in types.split() else types
        if (extension, layout, kind) == (".jxl", "gray", "f32"):
            held = "u16"
        add(
            f"matrix/{source}-from-{extension[1:]}",
            "in" + extension,
            written_by_us(file, write, kind),
            Right(to=".tif", types=held, tolerance=2 * tolerance),
            layout=layout,
        )
