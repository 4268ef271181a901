"""FITS, OpenEXR, Radiance, and floats whose white level only their values tell."""

from __future__ import annotations

import astropy.io.fits
import imagecodecs
import numpy as np
import OpenEXR
import tifffile

from pictures import TYPES, f32, scaled, white_of
from rows import Fails, Right, add
from rows_plain import cut, npy
from rows_tiff import kept_types, pages_written

# ---- FITS --------------------------------------------------------------------------------------------------------


def fits(dtype, white=None, low=0.0, cards=(), cube=False, where="primary"):
    def write(path, picture):
        image = picture.stack if cube else picture.image
        if image.ndim == 3 and not cube:
            image = np.moveaxis(image, -1, 0)
        hdu = astropy.io.fits.PrimaryHDU(scaled(image, dtype, white, low))
        for card in cards:
            hdu.header.append(card)
        hdus = (
            [hdu]
            if where == "primary"
            else [astropy.io.fits.PrimaryHDU(), astropy.io.fits.ImageHDU(hdu.data, hdu.header)]
        )
        astropy.io.fits.HDUList(hdus).writeto(path)

    return write


for name in ("u8", "i16", "u16", "i32", "u32", "f32", "f64"):  # astropy writes u16 and u32 with BZERO
    white = white_of(TYPES[name])
    add(
        f"fits/{name}",
        "in.fits",
        fits(TYPES[name]),
        Right(types=kept_types(name), white=white, range=white),
        quality=True,
    )
    # FITS counts rows from below, as a telescope's picture is shown.
    add(
        f"fits/{name}-to-tiff",
        "in.fits",
        fits(TYPES[name]),
        Right(to=".tif", types=kept_types(name), white=white, truth=np.flipud),
    )
add("fits/i64", "in.fits", fits(np.int64), Right(types="f32", white=white_of(np.int64)), Fails("64|type"))
add("fits/i16-negative", "in.fits", fits(np.int16, 3000, -1000), Right(types="i16 f32", low=-1000, white=3000))
CARDS = [
    ("OBJECT", "M 31", "what is seen"),
    ("EXPTIME", 120.5, "seconds"),
    ("DATE-OBS", "2024-01-02T03:04:05"),
    ("CRVAL1", 10.6847),
    ("CTYPE1", "RA---TAN"),
    ("GAIN", 2),
]
add(
    "fits/cards",
    "in.fits",
    fits(np.uint16, cards=CARDS),
    Right(
        types="u16",
        keeps={
            "card:OBJECT": "M 31",
            "card:EXPTIME": 120.5,
            "card:DATE-OBS": "2024-01-02T03:04:05",
            "card:CRVAL1": 10.6847,
            "card:CTYPE1": "RA---TAN",
            "card:GAIN": 2,
        },
    ),
)
add(
    "fits/cards-f32",
    "in.fits",
    fits(np.float32, cards=CARDS),
    Right(types="f32", keeps={"card:OBJECT": "M 31", "card:EXPTIME": 120.5}),
)
add("fits/rgb-planes", "in.fits", fits(np.uint16), Right(types="u16"), layout="rgb")
for count in (2, 3, 5, 7):
    add(
        f"fits/cube-of-{count}",
        "in.fits",
        fits(np.float32, cube=True),
        Right(types="f32"),
        Fails(f"{count}|planes|axes|cube"),
        pages=count,
    )
add(
    "fits/cube-to-tiff",
    "in.fits",
    fits(np.float32, cube=True),
    Right(to=".tif", types="f32", truth=np.flipud),
    Right(to=".tif", types="f32"),
    Fails("5|planes|axes|cube"),
    pages=5,
)
add(
    "fits/picture-in-extension",
    "in.fits",
    fits(np.uint16, where="extension"),
    Right(types="u16"),
    Fails("."),
    checked=False,
)
add(
    "fits/no-picture",
    "in.fits",
    lambda p, c: astropy.io.fits.PrimaryHDU().writeto(p),
    Fails("no (picture|image|pixels|axes|data|HDU)|NAXIS|dimension|empty"),
)
add("fits/truncated", "in.fits", cut(fits(np.float32), 0.6), Fails("truncated|damaged|end|short"))
add(
    "fits/nan",
    "in.fits",
    lambda p, c: astropy.io.fits.PrimaryHDU(
        np.where(np.arange(1920).reshape(40, 48) == 100, np.nan, f32(c.image)).astype(np.float32)
    ).writeto(p),
    Right(types="f32", tolerance=0.03),
    checked=False,
)

# ---- OpenEXR and Radiance ----------------------------------------------------------------------------------------


def exr(dtype, white=1.0, compression=OpenEXR.ZIP_COMPRESSION):
    def write(path, picture):
        image = np.ascontiguousarray((picture.image * white).astype(dtype))
        names = {1: "Y", 3: "RGB", 4: "RGBA"}[1 if image.ndim == 2 else image.shape[2]]
        planes = {names: image} if image.ndim == 3 else {"Y": image}
        OpenEXR.File({"compression": compression, "type": OpenEXR.scanlineimage}, planes).write(str(path))

    return write


for name in ("f16", "f32"):
    for layout in ("gray", "rgb", "rgb+alpha"):
        add(
            f"exr/{layout}-{name}-to-tiff",
            "in.exr",
            exr(TYPES[name]),
            Right(to=".tif", types="f32 f16", alpha_tolerance=1e-3),
            *(
                [Right(to=".tif", types="f32 f16", layout="rgb+alpha", alpha=True, alpha_tolerance=1e-3)]
                if layout == "rgb"
                else []
            ),
            *(
                [
                    Right(to=".tif", types="f32", layout="rgb"),
                    Right(to=".tif", types="f32", layout="rgb+alpha", alpha=True),
                ]
                if layout == "gray"
                else []
            ),
            layout=layout,
            quality=layout != "gray",
        )
    add(
        f"exr/rgb-{name}-to-npy",
        "in.exr",
        exr(TYPES[name]),
        Right(to=".npy", types="f32 f16"),
        Right(to=".npy", types="f32", layout="rgb+alpha", alpha=True),
        layout="rgb",
    )
for word, compression in (
    ("none", OpenEXR.NO_COMPRESSION),
    ("rle", OpenEXR.RLE_COMPRESSION),
    ("piz", OpenEXR.PIZ_COMPRESSION),
):
    add(
        f"exr/{word}",
        "in.exr",
        exr(np.float32, compression=compression),
        Right(to=".tif", types="f32"),
        Right(to=".tif", types="f32", layout="rgb+alpha", alpha=True),
        layout="rgb",
    )
add("exr/truncated", "in.exr", cut(exr(np.float32), 0.6), Fails("truncated|damaged|end|read", to=".tif"), layout="rgb")


def radiance(path, picture):
    path.write_bytes(imagecodecs.rgbe_encode(f32(picture.image), header=True))


add("hdr/rgb", "in.hdr", radiance, Right(types="f32", tolerance=0.02), layout="rgb", quality=True)
add("hdr/rgb-to-tiff", "in.hdr", radiance, Right(to=".tif", types="f32", tolerance=0.02), layout="rgb")
add("hdr/rgb-to-png", "in.hdr", radiance, Right(to=".png", types="u8 u16", tolerance=0.02), layout="rgb")
add("hdr/truncated", "in.hdr", cut(radiance, 0.6), Fails("truncated|damaged|end|scanline"), layout="rgb")

# ---- floats ------------------------------------------------------------------------------------------------------

for white in (1, 255, 4095, 65535):
    for name in ("f32", "f64"):
        for extension, write in (
            (".npy", npy(TYPES[name], white=white)),
            (".tif", pages_written(TYPES[name], white)),
            (".fits", fits(TYPES[name], white)),
        ):
            # The white level is found from the largest value, which the picture has near to white.
            more = {"truth": np.flipud} if extension == ".fits" else {}
            add(
                f"float/{extension[1:]}-{name}-{white}-to-png",
                "in" + extension,
                write,
                Right(to=".png", types="u8 u16", range=white, **more),
            )
    add(
        f"float/exr-{white}-to-png",
        "in.exr",
        exr(np.float32, white),
        Right(to=".png", types="u8 u16", range=white),
        Right(to=".png", types="u8 u16", range=white, layout="rgb+alpha", alpha=True),
        layout="rgb",
    )
    add(
        f"float/npy-f32-{white}-to-jpeg",
        "in.npy",
        npy(np.float32, white=white),
        Right(to=".jpg", range=white, tolerance=0.03),
    )
    add(
        f"float/npy-f32-{white}-kept",
        "in.npy",
        npy(np.float32, white=white),
        Right(types="f32", white=white, range=white),
        quality=True,
    )
    add(
        f"float/tiff-f32-{white}-stack-to-u16",
        "in.tif",
        pages_written(np.float32, white),
        Right(types="u16", range=white),
        pages=4,
        options=("--depth", "u16"),
        checked=False,
    )
for name, write in (
    ("npy", lambda p, c: np.save(p, c.image * 1e300)),
    ("tif", lambda p, c: tifffile.imwrite(p, c.image * 1e300)),
    ("fits", lambda p, c: astropy.io.fits.PrimaryHDU(c.image * 1e300).writeto(p)),
):
    add(f"float/{name}-f64-1e300", f"in.{name}", write, Fails("1e\\+?300|f32|float|range|large|e\\+"))
for name, write in (
    ("npy", npy(np.float32, low=-0.4, white=0.6)),
    ("tif", pages_written(np.float32, 0.6, -0.4)),
    ("fits", fits(np.float32, 0.6, -0.4)),
):
    add(f"float/{name}-negative-to-png", f"in.{name}", write, Fails("negative|below 0|less than 0|-0\\.", to=".png"))
add(
    "float/npy-i16-negative-to-png",
    "in.npy",
    npy(np.int16, low=-1000, white=3000),
    Fails("negative|below 0|less than 0|-\\d", to=".png"),
)
