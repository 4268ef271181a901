"""What is no image, and images under another name."""

from __future__ import annotations

import os
import struct

import numpy as np

from pictures import u8
from rows import Fails, Right, add
from rows_modern import box
from rows_web import gif, jpeg, png

NOT_IMAGE = "not an image|cannot|unknown|no image"


def content(data: bytes):
    return lambda path, picture: path.write_bytes(data)


MP4 = box(b"ftyp", b"isom\0\0\2\0isomiso2avc1mp41") + box(b"free", b"") + box(b"mdat", bytes(4000))
MOV = box(b"ftyp", b"qt  \0\0\2\0qt  ") + box(b"moov", bytes(400))
MKV = b"\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x23B\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x88matroska" + bytes(2000)
AVI = b"RIFF" + struct.pack("<I", 4000) + b"AVI LIST" + bytes(4000)
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 48 40]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
SVG = (
    b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="48" height="40">'
    b'<rect width="9" height="9"/></svg>\n'
)
HTML = b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"

for name, data in (("mp4", MP4), ("mov", MOV), ("mkv", MKV), ("avi", AVI)):
    add(f"odd/{name}", f"in.{name}", content(data), Fails("video"))
add("odd/mp4-named-jpg", "in.jpg", content(MP4), Fails("video"))
add("odd/y4m", "in.y4m", content(b"YUV4MPEG2 W48 H40 F25:1 Ip C420jpeg\nFRAME\n" + bytes(2880)), Fails("video"))
add("odd/pdf", "in.pdf", content(PDF), Fails("PDF"))
add("odd/svg", "in.svg", content(SVG), Fails("SVG|vector"))
add("odd/text", "in.txt", content(b"some words\n" * 9), Fails(NOT_IMAGE))
add("odd/csv", "in.csv", content(b"1,2,3\n4,5,6\n"), Fails(NOT_IMAGE))
add("odd/html-named-jpg", "in.jpg", content(HTML), Fails(NOT_IMAGE + "|HTML"))
add("odd/text-named-png", "in.png", content(b"some words\n" * 9), Fails(NOT_IMAGE))
add("odd/text-named-tif", "in.tif", content(b"some words\n" * 9), Fails(NOT_IMAGE))
add("odd/zeros-named-tif", "in.tif", content(bytes(4096)), Fails(NOT_IMAGE))
add("odd/zip", "in.zip", content(b"PK\3\4" + bytes(400)), Fails(NOT_IMAGE + "|zip"))
add("odd/gzip-named-fits", "in.fits", content(b"\x1f\x8b\x08" + bytes(400)), Fails(NOT_IMAGE + "|gzip|compressed"))
add("odd/elf", "in.bin", content(b"\x7fELF" + bytes(4000)), Fails(NOT_IMAGE))
add(
    "odd/git-lfs-pointer",
    "in.png",
    content(b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12345\n"),
    Fails(NOT_IMAGE + "|LFS"),
)
add("odd/icon", "in.ico", content(b"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0" + bytes(300)), Fails(NOT_IMAGE + "|icon"))
add(
    "odd/psd",
    "in.psd",
    content(b"8BPS\0\1" + bytes(6) + b"\0\3\0\0\0\x28\0\0\0\x30\0\x08\0\3" + bytes(400)),
    Fails(NOT_IMAGE + "|PSD|Photoshop"),
)
add(
    "odd/nifti",
    "in.nii",
    content(struct.pack("<i", 348) + bytes(340) + b"n+1\0" + bytes(400)),
    Fails(NOT_IMAGE + "|NIfTI"),
)
add("odd/dicom", "in.dcm", content(bytes(128) + b"DICM" + bytes(400)), Fails(NOT_IMAGE + "|DICOM"))
add("odd/hdf5", "in.h5", content(b"\x89HDF\r\n\x1a\n" + bytes(400)), Fails(NOT_IMAGE + "|HDF5"))
add(
    "odd/postscript",
    "in.eps",
    content(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"),
    Fails(NOT_IMAGE + "|PostScript"),
)
for name in ("png", "jpg", "tif", "npy", "pgm", "fits", "bmp", "heic"):
    add(f"odd/empty-{name}", f"in.{name}", content(b""), Fails("empty"))
    add(
        f"odd/signature-alone-{name}",
        f"in.{name}",
        content(
            {
                "png": b"\x89PNG\r\n\x1a\n",
                "jpg": b"\xff\xd8\xff",
                "tif": b"II*\0",
                "npy": b"\x93NUMPY",
                "pgm": b"P5\n",
                "fits": b"SIMPLE  =",
                "bmp": b"BM",
                "heic": b"\0\0\0\x18ftypheic",
            }[name]
        ),
        Fails("truncated|damaged|end|short|not enough|" + NOT_IMAGE + "|header"),
    )
add("odd/dev-null", "in.png", lambda p, c: os.symlink("/dev/null", p), Fails("empty|regular|device|not a file"))
add("odd/dev-zero", "in.png", lambda p, c: os.symlink("/dev/zero", p), Fails("regular|device|not a file|" + NOT_IMAGE))
add(
    "odd/folder-without-images",
    "in.png",
    lambda p, c: p.mkdir(),
    Fails("folder|directory|no image|empty", codes=(1, 2)),
)
add("odd/fifo", "in.png", lambda p, c: os.mkfifo(p), Fails("pipe|FIFO|regular|not a file"))
add("odd/missing", "in.png", lambda p, c: None, Fails("no such|not there|does not exist|missing|no file"))
add(
    "odd/dangling-link",
    "in.png",
    lambda p, c: os.symlink("nowhere", p),
    Fails("no such|not there|does not exist|missing|link|no file"),
)

# ---- the content tells what a file is ----------------------------------------------------------------------------

add("odd/png-named-jpg", "in.jpg", png(), Right(to=".png"), layout="rgb")
add("odd/jpg-named-png", "in.png", jpeg(), Right(to=".png", tolerance=0.03), layout="rgb", checked=False)
add("odd/png-named-tif", "in.tif", png(), Right(to=".tif"), layout="rgb", checked=False)
add("odd/npy-named-png", "in.png", lambda p, c: np.save(open(p, "wb"), u8(c.image)), Right(to=".png"), checked=False)
add(
    "odd/ppm-named-jpg",
    "in.jpg",
    lambda p, c: p.write_bytes(b"P6\n48 40\n255\n" + u8(c.image).tobytes()),
    Right(to=".png"),
    layout="rgb",
)
add(
    "odd/gif-named-webp",
    "in.webp",
    gif(),
    Right(to=".png", tolerance=0.06),
    Right(to=".png", layout="rgb+alpha", alpha=True, tolerance=0.06),
    layout="rgb",
)
add("odd/png-without-extension", "in", png(), Right(to=".png"), layout="rgb")
add("odd/png-with-other-extension", "in.data", png(), Right(to=".png"), layout="rgb")
add("odd/name-with-space-and-brackets", "a b [1].png", png(), Right(to=".png"), layout="rgb")
add("odd/name-in-utf8", "Grüße-世界.png", png(), Right(to=".png"), layout="rgb")
add("odd/name-with-newline", "a\nb.pdf", content(PDF), Fails("PDF"))
add("odd/upper-case-extension", "IN.PNG", png(), Right(to=".png"), layout="rgb")
