"""Turned and mirrored pictures: the output is upright, and nothing in it turns it again."""

from __future__ import annotations

import subprocess

import numpy as np
import PIL.Image
import pillow_heif
import tifffile

import png_bytes
from pictures import Picture, stored_as, u8, u16
from rows import Fails, Right, add
from rows_modern import box, jxl
from rows_web import JPEG, exif_chunk
from samples import EXIF_KEPT, exif


def stored(picture: Picture, orientation: int) -> np.ndarray:
    return np.ascontiguousarray(u8(stored_as(picture.image, orientation)))


def by_pillow(file_format, orientation, **options):
    def write(path, picture):
        PIL.Image.fromarray(stored(picture, orientation)).save(
            path, format=file_format, exif=exif(orientation), **options
        )

    return write


def oriented_tiff(orientation, dtype=u8):
    def write(path, picture):
        with tifffile.TiffWriter(path) as file:
            for page in picture.pages:
                file.write(
                    np.ascontiguousarray(dtype(stored_as(page, orientation))),
                    metadata=None,
                    photometric="rgb" if page.ndim == 3 else "minisblack",
                    extratags=[(274, 3, 1, orientation, True)],
                )

    return write


def oriented_png(orientation):
    def write(path, picture):
        path.write_bytes(
            png_bytes.png(stored(picture, orientation), 8, png_bytes.RGB, before=exif_chunk(orientation=orientation))
        )

    return write


def oriented_heic(orientation):
    """pillow-heif makes the EXIF block's turn a property of the file (irot, imir)."""

    def write(path, picture):
        image = stored(picture, orientation)
        pillow_heif.encode(
            "RGB", image.shape[1::-1], image.tobytes(), str(path), quality=-1, exif=exif(orientation).tobytes()
        )

    return write


def oriented_jxl(orientation):
    """cjxl puts the JPEG's orientation into the picture's own header."""

    def write(path, picture):
        source = path.with_name("source.jpg")
        by_pillow("JPEG", orientation, **JPEG)(source, picture)
        subprocess.run(["cjxl", str(source), str(path), "--quiet"], check=True, capture_output=True)
        source.unlink()

    return write


WRITERS = {
    "jpg": lambda o: by_pillow("JPEG", o, **JPEG),
    "tif": oriented_tiff,
    "png": oriented_png,
    "webp": lambda o: by_pillow("WEBP", o, lossless=True),
    "avif": lambda o: by_pillow("AVIF", o, quality=100, subsampling="4:4:4"),
    "heic": oriented_heic,
    "jxl": oriented_jxl,
}
OUTPUTS = ("jpg", "tif", "png", "webp", "avif", "heic", "jxl", "jp2", "gif", "ppm", "pam", "pfm", "npy", "fits", "hdr")
TYPE_OF = {"pfm": "f32", "hdr": "f32", "fits": "u8 f32"}
KEEP_EXIF = {"jpg", "png", "webp", "tif"}


def result(extension, source):
    keeps = {}
    if extension in KEEP_EXIF and source in KEEP_EXIF and source != "tif":
        keeps = EXIF_KEPT
    return Right(
        to="." + extension,
        types=TYPE_OF.get(extension, "u8"),
        tolerance=0.12 if extension == "gif" else 0.07,
        keeps=keeps,
        truth=np.flipud if extension == "fits" else None,
    )


for source, writer in WRITERS.items():
    needs = ("cjxl",) if source == "jxl" else ()
    for orientation in range(1, 9):
        add(
            f"orientation/{source}-{orientation}",
            f"in.{source}",
            writer(orientation),
            result(source, source),
            layout="rgb",
            needs=needs,
        )
    for number, extension in enumerate(OUTPUTS):
        if extension == source:
            continue
        orientation = (6, 5, 8, 7, 3, 2, 4)[(number + len(source)) % 7]
        add(
            f"orientation/{source}-{orientation}-to-{extension}",
            f"in.{source}",
            writer(orientation),
            result(extension, source),
            layout="rgb",
            needs=needs,
        )
add("orientation/tif-6-of-3-pages", "in.tif", oriented_tiff(6), Right(), layout="rgb", pages=3)
add("orientation/tif-8-u16", "in.tif", oriented_tiff(8, u16), Right(types="u16"), layout="gray", quality=True)
add(
    "orientation/tif-5-rgba",
    "in.tif",
    lambda p, c: tifffile.imwrite(
        p, stored(c, 5), photometric="rgb", extrasamples=["unassalpha"], metadata=None, extratags=[(274, 3, 1, 5, True)]
    ),
    Right(),
    layout="rgb+alpha",
)


def resolutions(path, picture):
    tifffile.imwrite(
        path,
        stored(picture, 6),
        photometric="rgb",
        metadata=None,
        resolution=(150, 300),
        resolutionunit="INCH",
        extratags=[(274, 3, 1, 6, True)],
    )


# A quarter turn exchanges what is across and what is down.
add(
    "orientation/tif-6-resolution",
    "in.tif",
    resolutions,
    Right(keeps={"resolution": (300.0, 150.0)}),
    layout="rgb",
    checked=False,
)


def pages_turned_differently(path, picture):
    with tifffile.TiffWriter(path) as file:
        for page, orientation in zip(picture.pages, (1, 3, 2)):
            file.write(
                np.ascontiguousarray(u8(stored_as(page, orientation))),
                metadata=None,
                extratags=[(274, 3, 1, orientation, True)],
            )


add(
    "orientation/tif-pages-turned-differently",
    "in.tif",
    pages_turned_differently,
    Right(),
    Fails("orientation|turned|page"),
    pages=3,
    checked=False,
)
for value in (0, 9, 255):
    add(
        f"orientation/jpg-{value}-is-none",
        "in.jpg",
        lambda p, c, value=value: PIL.Image.fromarray(u8(c.image)).save(p, exif=exif(value), **JPEG),
        Right(tolerance=0.05),
        layout="rgb",
        checked=False,
    )
# The standard: the codestream's own orientation holds, the EXIF block's does not.
add(
    "orientation/jxl-exif-is-not-followed",
    "in.jxl",
    jxl(after=box(b"Exif", bytes(4) + exif(6).tobytes()[6:])),
    Right(tolerance=0.06),
    layout="rgb",
)
