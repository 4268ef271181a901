"""HEIC, AVIF, JPEG XL and JPEG 2000."""

from __future__ import annotations

import struct
import subprocess
import threading

import imagecodecs
import numpy as np
import PIL.Image
import pillow_heif

from pictures import scaled, u8, u16, white_of
from rows import Fails, Right, add
from rows_plain import cut, pnm
from rows_web import MODES, jpeg, pillow
from samples import EXIF_KEPT, XMP, exif, icc

LOSSY = {"tolerance": 0.06}
_heif_lock = threading.Lock()

# ---- HEIC and AVIF -----------------------------------------------------------------------------------------------


def heic(depth=8, **options):
    """Lossless."""

    def write(path, picture):
        if depth == 8:
            image, mode = u8(picture.image), MODES[picture.layout]
        else:
            image, mode = u16(picture.image), {"gray": "I;16", "rgb": "RGB;16", "rgb+alpha": "RGBA;16"}[picture.layout]
        with _heif_lock:  # the depth is told by an option of the whole library
            pillow_heif.options.SAVE_HDR_TO_12_BIT = depth == 12
            pillow_heif.encode(mode, image.shape[1::-1], image.tobytes(), str(path), quality=-1, chroma=444, **options)

    return write


def avif(depth=8, **options):
    def write(path, picture):
        image = u8(picture.image) if depth == 8 else scaled(picture.image, np.uint16, 2**depth - 1)
        path.write_bytes(imagecodecs.avif_encode(image, level=100, bitspersample=depth, **options))

    return write


def avif_by_pillow(**options):
    return pillow(format="AVIF", quality=100, subsampling="4:4:4", **options)


for extension, writer in ((".heic", heic), (".avif", avif)):
    name = extension[1:]
    for depth in (8, 10, 12):
        kind = "u8" if depth == 8 else "u16"
        add(
            f"{name}/{depth}-bit-to-png",
            "in" + extension,
            writer(depth),
            Right(to=".png", types=kind, tolerance=0.02),
            layout="rgb",
            quality=True,
        )
        add(f"{name}/{depth}-bit", "in" + extension, writer(depth), Right(types=kind, tolerance=0.05), layout="rgb")
        add(
            f"{name}/{depth}-bit-to-tiff",
            "in" + extension,
            writer(depth),
            Right(to=".tif", types=kind, tolerance=0.02),
            layout="rgb",
        )
    add(f"{name}/alpha-to-png", "in" + extension, writer(), Right(to=".png", tolerance=0.02), layout="rgb+alpha")
    add(f"{name}/alpha", "in" + extension, writer(), Right(tolerance=0.05, alpha_tolerance=0.05), layout="rgb+alpha")
    # Both are read as colours, whatever they hold.
    add(
        f"{name}/gray-to-png",
        "in" + extension,
        writer(),
        Right(to=".png", tolerance=0.02),
        Right(to=".png", layout="rgb", tolerance=0.02),
    )
    add(f"{name}/truncated", "in" + extension, cut(writer(), 0.7), Fails("truncated|damaged|end|cannot"), layout="rgb")
add("heic/exif", "in.heic", heic(exif=exif().tobytes()), Right(**LOSSY, keeps=EXIF_KEPT), layout="rgb")
add(
    "heic/exif-to-jpeg",
    "in.heic",
    heic(exif=exif().tobytes()),
    Right(to=".jpg", **LOSSY, keeps=EXIF_KEPT),
    layout="rgb",
)
add("heic/xmp-to-tiff", "in.heic", heic(xmp=XMP), Right(to=".tif", **LOSSY, keeps={"xmp": XMP}), layout="rgb")
add("avif/exif", "in.avif", avif_by_pillow(exif=exif()), Right(**LOSSY, keeps=EXIF_KEPT), layout="rgb")
add(
    "avif/exif-to-jpeg",
    "in.avif",
    avif_by_pillow(exif=exif()),
    Right(to=".jpg", **LOSSY, keeps=EXIF_KEPT),
    layout="rgb",
)
add(
    "avif/xmp-icc",
    "in.avif",
    avif_by_pillow(xmp=XMP, icc_profile=icc()),
    Right(**LOSSY, keeps={"xmp": XMP, "icc": icc()}),
    layout="rgb",
)


def avif_sequence(path, picture):
    frames = [PIL.Image.fromarray(u8(page)) for page in picture.pages]
    frames[0].save(path, format="AVIF", quality=100, save_all=True, append_images=frames[1:], duration=100)


def heic_pictures(path, picture):
    file = pillow_heif.HeifFile()
    for page in picture.pages:
        file.add_frombytes("RGB", page.shape[1::-1], u8(page).tobytes())
    file.save(str(path), quality=-1)


add(
    "avif/sequence-of-3",
    "in.avif",
    avif_sequence,
    Fails("3|frames|images|sequence|animat"),
    Right(tolerance=0.08),
    layout="rgb",
    pages=3,
)
add(
    "heic/3-pictures",
    "in.heic",
    heic_pictures,
    Fails("3|images|pictures|pages"),
    Right(**LOSSY),
    Right(to=".tif", **LOSSY),
    layout="rgb",
    pages=3,
)
add(
    "heic/3-pictures-to-tiff",
    "in.heic",
    heic_pictures,
    Right(to=".tif", **LOSSY),
    Fails("3|images|pictures|pages"),
    layout="rgb",
    pages=3,
)

# ---- JPEG XL -----------------------------------------------------------------------------------------------------


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content) + 8, kind) + content


JXL_SIGNATURE = box(b"JXL ", b"\r\n\x87\n") + box(b"ftyp", b"jxl \0\0\0\0jxl ")


def codestream(data: bytes) -> bytes:
    if data[:2] == b"\xff\x0a":
        return data
    from readers import boxes

    return b"".join(
        content[4 if kind == b"jxlp" else 0 :] for kind, content in boxes(data) if kind in (b"jxlc", b"jxlp")
    )


def jxl(dtype=np.uint8, white=None, lossless=True, before=b"", after=b""):
    def write(path, picture):
        data = imagecodecs.jpegxl_encode(
            scaled(picture.image, dtype, white), lossless=lossless, level=None if lossless else 98
        )
        if before or after:
            data = JXL_SIGNATURE + before + box(b"jxlc", codestream(data)) + after
        path.write_bytes(data)

    return write


for layout in ("gray", "rgb", "rgb+alpha", "gray+alpha"):
    for name, dtype in (("u8", np.uint8), ("u16", np.uint16), ("f32", np.float32)):
        add(
            f"jxl/{layout}-{name}-to-tiff",
            "in.jxl",
            jxl(dtype),
            Right(to=".tif", types=name, range=white_of(dtype)),
            layout=layout,
            quality=True,
        )
        if "gray+" not in layout:
            add(
                f"jxl/{layout}-{name}",
                "in.jxl",
                jxl(dtype),
                # libvips has no gray floats there
                Right(types="u16" if (layout, name) == ("gray", "f32") else name, tolerance=0.06, alpha_tolerance=0.03),
                layout=layout,
            )
add("jxl/lossy-to-png", "in.jxl", jxl(lossless=False), Right(to=".png", tolerance=0.05), layout="rgb")
JXL_EXIF, JXL_XMP = box(b"Exif", bytes(4) + exif().tobytes()[6:]), box(b"xml ", XMP)
for place, boxes_there in (("before", {"before": JXL_EXIF + JXL_XMP}), ("after", {"after": JXL_EXIF + JXL_XMP})):
    for extension in (".jxl", ".jpg", ".png", ".tif"):
        add(
            f"jxl/exif-xmp-{place}-to-{extension[1:]}",
            "in.jxl",
            jxl(**boxes_there),
            Right(to=extension, **LOSSY, keeps={**EXIF_KEPT, "xmp": XMP}),
            layout="rgb",
        )


def jxl_by_cjxl(path, picture):
    source = path.with_name("source.jpg")
    jpeg(quality=100, exif=exif(), xmp=XMP)(source, picture)
    subprocess.run(["cjxl", str(source), str(path), "--quiet"], check=True, capture_output=True)
    source.unlink()


add(
    "jxl/recompressed-jpeg",
    "in.jxl",
    jxl_by_cjxl,
    Right(tolerance=0.06, keeps={**EXIF_KEPT, "xmp": XMP}),
    layout="rgb",
    needs=("cjxl",),
)


def jxl_frames(path, picture):
    path.write_bytes(imagecodecs.jpegxl_encode(u8(picture.stack), lossless=True))


add("jxl/animated-4-frames", "in.jxl", jxl_frames, Fails("4|frames|animat"), Right(to=".jxl"), layout="rgb", pages=4)
add("jxl/truncated", "in.jxl", cut(jxl(), 0.6), Fails("truncated|damaged|end"), layout="rgb")

# ---- JPEG 2000 ---------------------------------------------------------------------------------------------------


def jp2(codec, dtype=np.uint8, white=None, bits=None, tile=None):
    def write(path, picture):
        path.write_bytes(
            imagecodecs.jpeg2k_encode(
                scaled(picture.image, dtype, white),
                codecformat=codec,
                bitspersample=bits,
                reversible=True,
                level=0,
                tile=tile,
            )
        )

    return write


for codec in ("jp2", "j2k"):
    for layout in ("gray", "rgb"):
        for name, dtype in (("u8", np.uint8), ("u16", np.uint16)):
            add(
                f"{codec}/{layout}-{name}-to-png",
                f"in.{codec}",
                jp2(codec, dtype),
                Right(to=".png", types=name),
                layout=layout,
                quality=True,
            )
            add(
                f"{codec}/{layout}-{name}",
                f"in.{codec}",
                jp2(codec, dtype),
                Right(types=name, tolerance=0.06),
                layout=layout,
            )
    add(
        f"{codec}/12-bit-to-png",
        f"in.{codec}",
        jp2(codec, np.uint16, 4095, 12),
        Right(to=".png", types="u16"),
        Fails("12"),
    )
    add(f"{codec}/truncated", f"in.{codec}", cut(jp2(codec), 0.6), Fails("truncated|damaged|end"), layout="rgb")
add(
    "jp2/rgb+alpha-to-png",
    "in.jp2",
    jp2("jp2"),
    Right(to=".png"),
    Right(to=".png", layout="rgb+alpha"),
    layout="rgb+alpha",
)


def tiled_jp2(path, picture):
    source = path.with_name("source.ppm")
    pnm()(source, picture)
    subprocess.run(
        ["opj_compress", "-i", str(source), "-o", str(path), "-t", "16,16", "-n", "3"], check=True, capture_output=True
    )
    source.unlink()


add("jp2/tiled-to-png", "in.jp2", tiled_jp2, Right(to=".png"), layout="rgb", needs=("opj_compress",))
