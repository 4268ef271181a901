"""JPEG, PNG, GIF and WebP."""

from __future__ import annotations

import struct
import subprocess
import zlib

import imagecodecs
import numpy as np
import PIL.Image
import PIL.PngImagePlugin

import png_bytes
from pictures import clean, scaled, u8
from png_bytes import chunk
from rows import Fails, Right, add
from rows_plain import cut
from samples import EXIF_KEPT, EXIF_ODD_KEPT, IPTC, PHOTOSHOP, XMP, exif, icc

MODES = {"gray": "L", "gray+alpha": "LA", "rgb": "RGB", "rgb+alpha": "RGBA", "cmyk": "CMYK"}


def pillow_image(picture, page=0):
    return PIL.Image.frombuffer(
        MODES[picture.layout],
        picture.image.shape[1::-1],
        u8(picture.pages[page]).tobytes(),
        "raw",
        MODES[picture.layout],
        0,
        1,
    )


def pillow(**options):
    def write(path, picture):
        pillow_image(picture).save(path, **options)

    return write


# ---- JPEG --------------------------------------------------------------------------------------------------------

JPEG = {"quality": 98, "subsampling": 0}
JPEG_RIGHT = {"tolerance": 0.03}


def jpeg(**options):
    return pillow(format="JPEG", **{**JPEG, **options})


def with_segment(write, marker, content):
    """A segment behind the file's first two bytes."""

    def write_more(path, picture):
        write(path, picture)
        data = path.read_bytes()
        path.write_bytes(data[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content + data[2:])

    return write_more


def by_command(write, *command):
    """A file that a program makes of one that was written."""

    def write_result(path, picture):
        first = path.with_name("first.jpg")
        write(first, picture)
        path.write_bytes(subprocess.run([*command, str(first)], check=True, capture_output=True).stdout)
        first.unlink()

    return write_result


for layout in ("gray", "rgb"):
    add(f"jpeg/{layout}", "in.jpg", jpeg(quality=100), Right(**JPEG_RIGHT), layout=layout, quality=True)
    add(f"jpeg/{layout}-progressive", "in.jpg", jpeg(progressive=True), Right(**JPEG_RIGHT), layout=layout)
    add(f"jpeg/{layout}-truncated", "in.jpg", cut(jpeg(), 0.6), Fails("truncated|damaged|premature|end"), layout=layout)
    add(
        f"jpeg/{layout}-progressive-truncated",
        "in.jpg",
        cut(jpeg(progressive=True), 0.6),
        Fails("truncated|damaged|premature|end"),
        layout=layout,
    )
    add(
        f"jpeg/{layout}-arithmetic",
        "in.jpg",
        by_command(jpeg(), "jpegtran", "-arithmetic"),
        Right(**JPEG_RIGHT),
        Fails("arithmetic"),
        layout=layout,
        needs=("jpegtran",),
    )
    add(
        f"jpeg/{layout}-restart-markers",
        "in.jpg",
        by_command(jpeg(), "jpegtran", "-restart", "1"),
        Right(**JPEG_RIGHT),
        layout=layout,
        needs=("jpegtran",),
    )
    add(
        f"jpeg/{layout}-12-bit",
        "in.jpg",
        lambda p, c: p.write_bytes(
            imagecodecs.jpeg_encode(scaled(c.image, np.uint16, 4095), level=98, bitspersample=12)
        ),
        Fails("12|precision|bits"),
        layout=layout,
    )
for subsampling, word in ((1, "422"), (2, "420")):
    add(f"jpeg/{word}", "in.jpg", jpeg(subsampling=subsampling), Right(tolerance=0.06), layout="rgb")
add("jpeg/rgb-not-ycc", "in.jpg", jpeg(keep_rgb=True), Right(**JPEG_RIGHT), layout="rgb")
add("jpeg/cmyk", "in.jpg", jpeg(), Right(tolerance=0.06), layout="cmyk")
add("jpeg/cmyk-to-tiff", "in.jpg", jpeg(), Right(to=".tif", tolerance=0.06, keeps={"tag:262": 5}), layout="cmyk")
add("jpeg/cmyk-to-png", "in.jpg", jpeg(), Fails("CMYK|4 channels|PNG", to=".png"), layout="cmyk")
add(
    "jpeg/bytes-behind-the-end",
    "in.jpg",
    lambda p, c: (jpeg()(p, c), p.write_bytes(p.read_bytes() + b"more")),
    Right(**JPEG_RIGHT),
    layout="rgb",
)
add(
    "jpeg/no-end-marker",
    "in.jpg",
    lambda p, c: (jpeg()(p, c), p.write_bytes(p.read_bytes()[:-2])),
    Fails("truncated|damaged|premature|end"),
    Right(**JPEG_RIGHT),
    layout="rgb",
    checked=False,
)
add(
    "jpeg/damaged-in-the-middle",
    "in.jpg",
    lambda p, c: (
        jpeg()(p, c),
        p.write_bytes((d := p.read_bytes())[: len(d) // 2] + b"\xff\xd0\xff\xd1" * 9 + d[len(d) // 2 + 36 :]),
    ),
    Fails("damaged|corrupt|truncated"),
    layout="rgb",
)
add(
    "jpeg/lossless-sof3",
    "in.jpg",
    lambda p, c: p.write_bytes(imagecodecs.ljpeg_encode(u8(c.image))),
    Fails("lossless|unsupported|damaged|cannot|SOF"),
    Right(**JPEG_RIGHT),
)

for extension in (".jpg", ".tif", ".png", ".webp", ".jxl", ".avif", ".heic"):
    lossy = {"tolerance": 0.06} if extension in (".webp", ".jxl", ".avif", ".heic") else JPEG_RIGHT
    # A gray JPEG would become colours in WebP and HEIF: a picture in colours stays what it is.
    add(
        f"jpeg/exif-to{extension.replace('.', '-')}",
        "in.jpg",
        jpeg(exif=exif()),
        Right(to=extension, **lossy, keeps=EXIF_KEPT),
        layout="rgb",
    )
    add(
        f"jpeg/xmp-to{extension.replace('.', '-')}",
        "in.jpg",
        jpeg(xmp=XMP),
        Right(to=extension, **lossy, keeps={"xmp": XMP}),
        layout="rgb",
    )
for extension in (".jpg", ".tif", ".png", ".webp"):
    lossy = {"tolerance": 0.06} if extension == ".webp" else JPEG_RIGHT
    add(
        f"jpeg/icc-to{extension.replace('.', '-')}",
        "in.jpg",
        jpeg(icc_profile=icc()),
        Right(to=extension, **lossy, keeps={"icc": icc()}),
        layout="rgb",
    )
for extension in (".jpg", ".tif"):
    add(
        f"jpeg/iptc-to{extension.replace('.', '-')}",
        "in.jpg",
        with_segment(jpeg(), 0xED, b"Photoshop 3.0\0" + PHOTOSHOP),
        Right(to=extension, **JPEG_RIGHT, keeps={"iptc": IPTC}),
        layout="rgb",
    )
for extension in (".jpg", ".tif", ".png"):
    add(
        f"jpeg/resolution-to{extension.replace('.', '-')}",
        "in.jpg",
        jpeg(dpi=(300, 150)),
        Right(
            to=extension,
            **JPEG_RIGHT,
            keeps={"resolution": lambda v: v is not None and np.allclose(v, (300, 150), atol=0.02)},
        ),
        layout="rgb",
    )
    add(
        f"jpeg/exif-odd-to{extension.replace('.', '-')}",
        "in.jpg",
        jpeg(exif=exif(odd=True)),
        Right(to=extension, **JPEG_RIGHT, keeps={**EXIF_KEPT, **EXIF_ODD_KEPT}),
        layout="rgb",
    )
add(
    "jpeg/comment",
    "in.jpg",
    with_segment(jpeg(), 0xFE, b"a comment"),
    Right(**JPEG_RIGHT, keeps={"comment": b"a comment"}),
    Right(**JPEG_RIGHT, told="comment"),  # libvips before 8.15 writes none
)
add(
    "jpeg/everything",
    "in.jpg",
    with_segment(
        jpeg(exif=exif(odd=True), xmp=XMP, icc_profile=icc(), dpi=(72, 72)), 0xED, b"Photoshop 3.0\0" + PHOTOSHOP
    ),
    Right(**JPEG_RIGHT, keeps={**EXIF_KEPT, **EXIF_ODD_KEPT, "xmp": XMP, "icc": icc(), "iptc": IPTC}),
    layout="rgb",
)
add(
    "jpeg/damaged-exif",
    "in.jpg",
    with_segment(jpeg(), 0xE1, b"Exif\0\0II*\0\xff\xff\xff\x7f" + bytes(20)),
    Right(**JPEG_RIGHT),
)
add("jpeg/extension-jpeg", "in.JPEG", jpeg(), Right(to=".jpg", **JPEG_RIGHT))

# ---- PNG ---------------------------------------------------------------------------------------------------------

COLOUR_TYPES = {
    "gray": png_bytes.GRAY,
    "rgb": png_bytes.RGB,
    "gray+alpha": png_bytes.GRAY_ALPHA,
    "rgb+alpha": png_bytes.RGB_ALPHA,
}


def png(depth=8, interlaced=False, before=b"", after=b""):
    def write(path, picture):
        samples = scaled(picture.image, np.uint16, 2**depth - 1)
        path.write_bytes(png_bytes.png(samples, depth, COLOUR_TYPES[picture.layout], interlaced, before, after))

    return write


for layout, depths in (("gray", (1, 2, 4, 8, 16)), ("rgb", (8, 16)), ("gray+alpha", (8, 16)), ("rgb+alpha", (8, 16))):
    for depth in depths:
        for interlaced in (False, True):
            add(
                f"png/{layout}-{depth}{'-interlaced' if interlaced else ''}",
                "in.png",
                png(depth, interlaced),
                Right(
                    types="u16" if depth == 16 else "u8",
                    range=65535 if depth == 16 else 255,
                    tolerance={1: 0.51, 2: 0.18, 4: 0.045}.get(depth, 0.012),
                ),
                layout=layout,
                quality=depth >= 8,
            )


def png_palette(depth, transparent=False, interlaced=False):
    def write(path, picture):
        levels = 2**depth
        index = np.round(picture.image * (levels - 1)).astype(np.uint8)
        ramp = np.round(np.linspace(0, 255, levels)).astype(np.uint8)
        chunks = chunk(b"PLTE", np.stack([ramp, 255 - ramp, 255 - ramp // 2], axis=1).tobytes())
        if transparent:
            chunks += chunk(b"tRNS", ramp.tobytes())
        path.write_bytes(png_bytes.png(index, depth, png_bytes.PALETTE, interlaced, chunks))

    return write


def png_palette_colours(page):
    return np.dstack([page, 1 - page, 1 - page / 2])


def png_palette_with_alpha(page):
    return np.dstack([png_palette_colours(page), page])


for depth, tolerance in ((1, 0.51), (2, 0.18), (4, 0.045), (8, 0.012)):
    add(
        f"png/palette-{depth}",
        "in.png",
        png_palette(depth),
        Right(layout="rgb", tolerance=tolerance, truth=png_palette_colours),
    )
    add(
        f"png/palette-{depth}-transparent",
        "in.png",
        png_palette(depth, True),
        Right(
            layout="rgb+alpha", alpha=True, tolerance=tolerance, alpha_tolerance=tolerance, truth=png_palette_with_alpha
        ),
    )
add(
    "png/palette-8-interlaced",
    "in.png",
    png_palette(8, interlaced=True),
    Right(layout="rgb", truth=png_palette_colours),
)
# One colour that is transparent, and that no pixel has.
add(
    "png/gray-8-transparent-colour",
    "in.png",
    png(8, before=chunk(b"tRNS", struct.pack(">H", 255))),
    Right(layout="gray+alpha", alpha=True),
    Right(keeps={}),
    checked=False,
)
add(
    "png/rgb-8-transparent-colour",
    "in.png",
    png(8, before=chunk(b"tRNS", struct.pack(">HHH", 255, 255, 255))),
    Right(layout="rgb+alpha", alpha=True),
    Right(keeps={}),
    layout="rgb",
    checked=False,
)
add(
    "png/rgb-16-transparent-colour",
    "in.png",
    png(16, before=chunk(b"tRNS", struct.pack(">HHH", 9, 9, 9))),
    Right(types="u16", layout="rgb+alpha", alpha=True),
    Right(types="u16"),
    layout="rgb",
    checked=False,
)


def itxt(key, text, compress=False):
    body = text.encode()
    return chunk(
        b"iTXt", key.encode() + b"\0" + bytes([compress, 0]) + b"de\0\0" + (zlib.compress(body) if compress else body)
    )


TEXTS = {
    "tEXt": (chunk(b"tEXt", b"Title\0A title"), "A title"),
    "tEXt-latin1": (chunk(b"tEXt", b"Title\0" + "Grüße".encode("latin-1")), "Grüße"),
    "zTXt": (chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"long " * 200)), "long " * 200),
    "iTXt": (itxt("Title", "Grüße, 世界"), "Grüße, 世界"),
    "iTXt-compressed": (itxt("Title", "Grüße, 世界 " * 50, True), "Grüße, 世界 " * 50),
}
for name, (content, text) in TEXTS.items():
    add(f"png/{name}", "in.png", png(before=content), Right(keeps={"text:Title": text}))
add(
    "png/several-texts",
    "in.png",
    png(
        before=chunk(b"tEXt", b"Author\0someone") + chunk(b"tEXt", b"Software\0a program"),
        after=itxt("Comment", "ein Wort über alles"),
    ),
    Right(keeps={"text:Author": "someone", "text:Comment": "ein Wort über alles"}),
)
add("png/empty-text", "in.png", png(before=chunk(b"tEXt", b"Title\0")), Right(keeps={"text:Title": ""}))


def exif_chunk(**options):
    block = exif(**options).tobytes()
    return chunk(b"eXIf", block[6:] if block.startswith(b"Exif\0\0") else block)


XMP_CHUNK = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP)
ICC_CHUNK = chunk(b"iCCP", b"sRGB\0\0" + zlib.compress(icc()))
PHYS_CHUNK = chunk(b"pHYs", struct.pack(">IIB", 11811, 5906, 1))
for extension in (".png", ".jpg", ".tif", ".webp"):
    mark = extension.replace(".", "-")
    lossy = {".jpg": 0.04, ".webp": 0.06}.get(extension, 0.012)
    add(
        f"png/exif-to{mark}",
        "in.png",
        png(before=exif_chunk()),
        Right(to=extension, tolerance=lossy, keeps=EXIF_KEPT),
        layout="rgb",
    )
    add(
        f"png/xmp-to{mark}",
        "in.png",
        png(before=XMP_CHUNK),
        Right(to=extension, tolerance=lossy, keeps={"xmp": XMP}),
        layout="rgb",
    )
    add(
        f"png/icc-to{mark}",
        "in.png",
        png(before=ICC_CHUNK),
        Right(to=extension, tolerance=lossy, keeps={"icc": icc()}),
        layout="rgb",
    )
for extension in (".png", ".jpg", ".tif"):
    add(
        f"png/resolution-to-{extension[1:]}",
        "in.png",
        png(before=PHYS_CHUNK),
        Right(
            to=extension,
            tolerance=0.04,
            keeps={"resolution": lambda v: v is not None and np.allclose(v, (300, 150), atol=0.6)},
        ),
        layout="rgb",
    )
add(
    "png/gamma",
    "in.png",
    png(before=chunk(b"gAMA", struct.pack(">I", 45455))),
    Right(keeps={"gamma": 0.45455}),
    Right(),
    layout="rgb",
)
add(
    "png/gamma-1-linear",
    "in.png",
    png(16, before=chunk(b"gAMA", struct.pack(">I", 100000))),
    Right(types="u16", keeps={"gamma": 1.0}),
    Right(types="u16"),
    layout="rgb",
)
add(
    "png/time-and-background",
    "in.png",
    png(before=chunk(b"bKGD", b"\0\x09"), after=chunk(b"tIME", struct.pack(">HBBBBB", 2024, 1, 2, 3, 4, 5))),
    Right(),
)
add("png/truncated", "in.png", cut(png(), 0.6), Fails("truncated|damaged|end"))
add("png/truncated-16-rgb-interlaced", "in.png", cut(png(16, True), 0.8), Fails("truncated|damaged|end"), layout="rgb")
add(
    "png/no-end-chunk",
    "in.png",
    lambda p, c: (png()(p, c), p.write_bytes(p.read_bytes()[:-12])),
    Fails("truncated|damaged|end"),
    Right(),
)


def flip_byte(write, at):
    def write_damaged(path, picture):
        write(path, picture)
        data = bytearray(path.read_bytes())
        data[at if at >= 0 else len(data) + at] ^= 0x55
        path.write_bytes(data)

    return write_damaged


add("png/crc-of-pixels", "in.png", flip_byte(png(), -18), Fails("CRC|damaged|checksum|truncated"))
add("png/crc-of-header", "in.png", flip_byte(png(), 30), Fails("CRC|damaged|checksum|truncated|not an image"))
add("png/damaged-pixels", "in.png", flip_byte(png(), -200), Fails("CRC|damaged|checksum|truncated"))


def apng(count):
    def write(path, picture):
        path.write_bytes(png_bytes.animated([u8(page) for page in clean("rgb", count).pages], png_bytes.RGB))

    return write


add("png/animated-4-frames", "in.png", apng(4), Fails("4.*frames|frames.*4|4.*pages"), Right(), layout="rgb", pages=4)
add("png/animated-1-frame", "in.png", apng(1), Right(), Fails("animat|frame"), layout="rgb")
add("png/animated-truncated", "in.png", cut(apng(4), 0.6), Fails("frames|truncated|damaged"), layout="rgb", pages=4)

# ---- GIF and WebP ------------------------------------------------------------------------------------------------


def gif(**options):
    def write(path, picture):
        frames = [
            PIL.Image.fromarray(u8(page)).convert("RGB").quantize(256, dither=PIL.Image.Dither.NONE)
            for page in picture.pages
        ]
        more = (
            {"save_all": True, "append_images": frames[1:], "duration": 120, "loop": 3, "disposal": 2}
            if len(frames) > 1
            else {}
        )
        frames[0].save(path, format="GIF", **{**more, **options})

    return write


for layout in ("gray", "rgb"):
    add(
        f"gif/{layout}",
        "in.gif",
        gif(),
        Right(to=".png", layout="rgb", tolerance=0.06),
        *(
            [Right(to=".png", tolerance=0.06)]
            if layout == "gray"
            else [Right(to=".png", layout="rgb+alpha", alpha=True, tolerance=0.06)]
        ),
        layout=layout,
    )
add(
    "gif/interlaced",
    "in.gif",
    gif(interlace=True),
    Right(to=".png", tolerance=0.06),
    Right(to=".png", tolerance=0.06, layout="rgb"),
)
add(
    "gif/to-gif",
    "in.gif",
    gif(),
    Right(layout="rgb", tolerance=0.1),
    Right(tolerance=0.1),
    Right(layout="rgb+alpha", tolerance=0.1, alpha=True),
    layout="gray",
    checked=False,
)
for extension in (".gif", ".webp", ".tif"):
    add(
        f"gif/animated-to-{extension[1:]}",
        "in.gif",
        gif(),
        Right(to=extension, tolerance=0.12, keeps={} if extension == ".tif" else {"delays": [120] * 5}),
        Right(to=extension, layout="rgb+alpha", tolerance=0.12, alpha=True),
        layout="rgb",
        pages=5,
    )
add("gif/animated-loop", "in.gif", gif(), Right(tolerance=0.12, keeps={"loop": 3}), layout="rgb", pages=5)
add("gif/animated-to-png", "in.gif", gif(), Fails("5", to=".png"), layout="rgb", pages=5)
add(
    "gif/animated-truncated",
    "in.gif",
    cut(gif(), 0.5),
    Fails("truncated|damaged|frames|pages|end"),
    layout="rgb",
    pages=5,
)
add("gif/truncated", "in.gif", cut(gif(), 0.8), Fails("truncated|damaged|end"))

WEBP_LOSSLESS = {"format": "WEBP", "lossless": True, "exact": True}
add("webp/lossless-rgb", "in.webp", pillow(**WEBP_LOSSLESS), Right(tolerance=0.06), layout="rgb")
add("webp/lossless-rgb-to-png", "in.webp", pillow(**WEBP_LOSSLESS), Right(to=".png"), layout="rgb", quality=True)
add("webp/lossless-rgba-to-png", "in.webp", pillow(**WEBP_LOSSLESS), Right(to=".png"), layout="rgb+alpha", quality=True)
add("webp/lossless-rgba", "in.webp", pillow(**WEBP_LOSSLESS), Right(tolerance=0.08), layout="rgb+alpha")
add("webp/lossy-rgb", "in.webp", pillow(format="WEBP", quality=95), Right(tolerance=0.08), layout="rgb")
add(
    "webp/lossy-rgba",
    "in.webp",
    pillow(format="WEBP", quality=95, alpha_quality=100),
    Right(tolerance=0.1),
    layout="rgb+alpha",
)
for extension in (".webp", ".png", ".jpg", ".tif"):
    mark = extension[1:]
    add(
        f"webp/exif-to-{mark}",
        "in.webp",
        pillow(**WEBP_LOSSLESS, exif=exif()),
        Right(to=extension, tolerance=0.06, keeps=EXIF_KEPT),
        layout="rgb",
    )
    add(
        f"webp/xmp-icc-to-{mark}",
        "in.webp",
        pillow(**WEBP_LOSSLESS, xmp=XMP, icc_profile=icc()),
        Right(to=extension, tolerance=0.06, keeps={"xmp": XMP, "icc": icc()}),
        layout="rgb",
    )


def webp_frames(path, picture):
    frames = [PIL.Image.fromarray(u8(page)) for page in picture.pages]
    frames[0].save(
        path,
        **WEBP_LOSSLESS,
        save_all=True,
        append_images=frames[1:],
        duration=[100, 200, 300, 400],
        loop=2,
        kmin=1,
        kmax=1,
    )


add(
    "webp/animated",
    "in.webp",
    webp_frames,
    Right(tolerance=0.08, keeps={"delays": [100, 200, 300, 400], "loop": 2}),
    Right(layout="rgb+alpha", alpha=True, tolerance=0.08, keeps={"delays": [100, 200, 300, 400], "loop": 2}),
    layout="rgb",
    pages=4,
)
add(
    "webp/animated-to-tiff",
    "in.webp",
    webp_frames,
    Right(to=".tif"),
    Right(to=".tif", layout="rgb+alpha", alpha=True),
    layout="rgb",
    pages=4,
)
add("webp/animated-to-png", "in.webp", webp_frames, Fails("4", to=".png"), layout="rgb", pages=4)
add("webp/truncated", "in.webp", cut(pillow(**WEBP_LOSSLESS), 0.6), Fails("truncated|damaged|end|parse"), layout="rgb")
add(
    "webp/animated-truncated",
    "in.webp",
    cut(webp_frames, 0.6),
    Fails("truncated|damaged|frames|end|parse"),
    layout="rgb",
    pages=4,
)
