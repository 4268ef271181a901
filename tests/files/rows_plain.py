"""PNM, PAM, PFM, NPY and BMP."""

from __future__ import annotations

import struct

import numpy as np

from pictures import TYPES, scaled, u8, white_of
from rows import Fails, Right, add

# ---- PNM and PAM -------------------------------------------------------------------------------------------------


def pnm(most=255, plain=False, comment=False, crlf=False, tail=b""):
    def write(path, picture):
        image = scaled(picture.image, np.uint16, most)
        height, width = image.shape[:2]
        kind = (2 if image.ndim == 2 else 3) + (0 if plain else 3)
        end = "\r\n" if crlf else "\n"
        note = f"# made for a test{end}" if comment else ""
        header = f"P{kind}{end}{note}{width} {height}{end}{note}{most}\n"
        if plain:
            body = ("\n".join(" ".join(map(str, row)) for row in image.reshape(height, -1)) + "\n").encode()
        else:
            body = image.astype(">u2" if most > 255 else "u1").tobytes()
        path.write_bytes(header.encode() + body + tail)

    return write


def pbm(plain):
    def write(path, picture):
        bits = (picture.image > 0.5).astype(np.uint8)
        height, width = bits.shape
        ink = 1 - bits  # 1 is black
        body = (
            ("\n".join(" ".join(map(str, row)) for row in ink) + "\n").encode()
            if plain
            else np.packbits(ink, axis=1).tobytes()
        )
        path.write_bytes(f"P{1 if plain else 4}\n{width} {height}\n".encode() + body)

    return write


def pam(kind, most=255):
    def write(path, picture):
        image = scaled(picture.image, np.uint16, most)
        height, width = image.shape[:2]
        depth = 1 if image.ndim == 2 else image.shape[2]
        type_line = f"TUPLTYPE {kind}\n" if kind else ""
        header = f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {most}\n{type_line}ENDHDR\n"
        path.write_bytes(header.encode() + image.astype(">u2" if most > 255 else "u1").tobytes())

    return write


def cut(write, keep):
    """The first part of a file."""

    def write_part(path, picture):
        write(path, picture)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * keep)])

    return write_part


for layout, file in (("gray", "in.pgm"), ("rgb", "in.ppm")):
    for most in (255, 65535, 4095, 1023, 100):
        kind = "u8" if most < 256 else "u16"
        add(
            f"pnm/{layout}-{most}",
            file,
            pnm(most),
            Right(types=kind, white=most, range=most),
            layout=layout,
            quality=most != 100,
        )
    add(
        f"pnm/{layout}-plain",
        file,
        pnm(plain=True),
        Right(range=255),
        Fails("plain|ascii|text|P[23]"),
        layout=layout,
        checked=False,
    )
    add(f"pnm/{layout}-comments", file, pnm(comment=True), Right(), layout=layout, checked=False)
    add(f"pnm/{layout}-crlf", file, pnm(crlf=True), Right(), layout=layout)
    add(f"pnm/{layout}-truncated", file, cut(pnm(), 0.6), Fails("truncated|ends|short|pixels|rows"), layout=layout)
    add(f"pnm/{layout}-4095-to-png", file, pnm(4095), Right(to=".png", types="u16", range=4095), layout=layout)
    add(
        f"pnm/{layout}-4095-to-tiff",
        file,
        pnm(4095),
        Right(to=".tif", types="u16", white=4095, range=4095),
        Right(to=".tif", types="u16", range=4095),
        layout=layout,
    )
add("pnm/maxval-0", "in.pgm", lambda p, _: p.write_bytes(b"P5\n4 4\n0\n" + bytes(16)), Fails("max|white|0"))
add("pnm/maxval-70000", "in.pgm", lambda p, _: p.write_bytes(b"P5\n4 4\n70000\n" + bytes(64)), Fails("max|70000|65535"))
add(
    "pnm/huge-size",
    "in.pgm",
    lambda p, _: p.write_bytes(b"P5\n99999999999 9\n255\n"),
    Fails("size|width|large|truncated|ends|short|header"),
)
for plain in (False, True):
    add(
        f"pnm/pbm-{'plain' if plain else 'raw'}",
        "in.pbm",
        pbm(plain),
        Right(to=".pgm", tolerance=0.51),
        Fails("PBM|1 bit|bitmap|black and white"),
    )
for layout, kind in (
    ("gray", "GRAYSCALE"),
    ("gray+alpha", "GRAYSCALE_ALPHA"),
    ("rgb", "RGB"),
    ("rgb+alpha", "RGB_ALPHA"),
    ("2 channels", ""),
    ("4 channels", ""),
):
    for most in (255, 65535):
        add(
            f"pam/{layout.replace(' ', '-')}-{most}",
            "in.pam",
            pam(kind, most),
            Right(types="u8" if most < 256 else "u16", white=most, keeps={"tuple": kind} if kind else {}),
            layout=layout,
            quality=bool(kind),
        )
add("pam/odd-tuple-type", "in.pam", pam("SPECTRUM"), Right(), Fails("SPECTRUM|tuple|type"), layout="rgb")

# ---- PFM ---------------------------------------------------------------------------------------------------------


def pfm(order="<", white=1.0, scale=1.0):
    def write(path, picture):
        image = (picture.image * white).astype(order + "f4")
        height, width = image.shape[:2]
        sign = "-" if order == "<" else ""
        path.write_bytes(
            f"{'Pf' if image.ndim == 2 else 'PF'}\n{width} {height}\n{sign}{scale}\n".encode() + image[::-1].tobytes()
        )

    return write


for layout in ("gray", "rgb"):
    for order, name in (("<", "little"), (">", "big")):
        add(
            f"pfm/{layout}-{name}-endian",
            "in.pfm",
            pfm(order),
            Right(types="f32", range=1),
            layout=layout,
            quality=True,
        )
    add(f"pfm/{layout}-to-png", "in.pfm", pfm(), Right(to=".png", types="u8 u16"), layout=layout)
    add(
        f"pfm/{layout}-255-to-png", "in.pfm", pfm(white=255), Right(to=".png", types="u8 u16", range=255), layout=layout
    )
    add(f"pfm/{layout}-truncated", "in.pfm", cut(pfm(), 0.5), Fails("truncated|ends|short|pixels|rows"), layout=layout)

# ---- NPY ---------------------------------------------------------------------------------------------------------


def npy(dtype, order="<", fortran=False, white=None, low=0.0, stack=False, axis=0, version=None):
    def write(path, picture):
        image = picture.stack if stack else picture.image
        values = np.moveaxis(scaled(image, dtype, white, low), 0, axis)
        values = values.astype(np.dtype(dtype).newbyteorder(order))
        with open(path, "wb") as file:
            np.lib.format.write_array(
                file, np.asfortranarray(values) if fortran else np.ascontiguousarray(values), version
            )

    return write


for name in TYPES:
    kept = name if name in ("u8", "u16", "f16", "f32") else f"{name} f32"
    # 64-bit integers may be refused by name; they must not be wrong.
    either = (Fails(name + "|64|type"),) if name in ("u64", "i64") else ()
    white = white_of(TYPES[name])
    add(
        f"npy/{name}",
        "in.npy",
        npy(TYPES[name]),
        Right(types=kept, white=white, range=white),
        *either,
        quality=name not in ("u64", "i64"),
    )
    add(
        f"npy/{name}-rgb-big-endian",
        "in.npy",
        npy(TYPES[name], ">"),
        Right(types=kept, white=white),
        *either,
        layout="rgb",
    )
for name in ("u8", "u16", "f32", "i16", "f64"):
    kept = name if name in ("u8", "u16", "f16", "f32") else f"{name} f32"
    for layout in ("gray", "rgb"):
        add(
            f"npy/{name}-{layout}-fortran",
            "in.npy",
            npy(TYPES[name], fortran=True),
            Right(types=kept, white=white_of(TYPES[name])),
            layout=layout,
        )
add("npy/i16-negative", "in.npy", npy(np.int16, low=-1000, white=3000), Right(types="i16 f32", low=-1000, white=3000))
add("npy/f32-negative", "in.npy", npy(np.float32, low=-0.4, white=0.6), Right(types="f32", low=-0.4, white=0.6))
for axis in (0, 2):
    add(
        f"npy/stack-axis-{axis}",
        "in.npy",
        npy(np.uint16, stack=True, axis=axis),
        Right(types="u16", to=".tif"),
        pages=7,
        options=("--axis", str(axis)),
        quality=axis == 0,
    )
add("npy/stack-axis-0-to-npy", "in.npy", npy(np.uint8, stack=True), Right(), pages=9, options=("--axis", "0"))
add(
    "npy/stack-rgb-axis-0", "in.npy", npy(np.uint8, stack=True), Right(), pages=9, layout="rgb", options=("--axis", "0")
)
add("npy/stack-without-axis", "in.npy", npy(np.uint8, stack=True), Fails("axis|channels|shape"), pages=9)
add(
    "npy/stack-big-endian-fortran",
    "in.npy",
    npy(np.uint16, ">", fortran=True, stack=True),
    Right(types="u16"),
    pages=9,
    options=("--axis", "0"),
)
add("npy/version-2-header", "in.npy", npy(np.uint8, version=(2, 0)), Right())
add("npy/version-3-header", "in.npy", npy(np.uint8, version=(3, 0)), Right())
add("npy/2-channels", "in.npy", npy(np.uint8), Right(), layout="2 channels")
add("npy/4-channels", "in.npy", npy(np.uint8), Right(), layout="4 channels")
add("npy/5-channels", "in.npy", npy(np.float32), Right(types="f32"), Fails("channels"), layout="5 channels")
add(
    "npy/bool",
    "in.npy",
    lambda p, c: np.save(p, c.image > 0.5),
    Right(types="u8", tolerance=0.51, white=1),
    Right(types="u8", tolerance=0.51),
    Fails("bool|b1"),
)
for kind in ("c8", "c16"):
    add(
        f"npy/complex-{kind}",
        "in.npy",
        lambda p, c, kind=kind: np.save(p, c.image.astype(kind)),
        Fails("complex|" + kind),
    )
add("npy/strings", "in.npy", lambda p, c: np.save(p, np.array([["a", "b"]])), Fails("<U1|text|string|samples|type"))
add(
    "npy/records",
    "in.npy",
    lambda p, c: np.save(p, np.zeros((4, 4), [("a", "u1"), ("b", "f4")])),
    Fails("record|structured"),
)
add(
    "npy/objects",
    "in.npy",
    lambda p, c: np.save(p, np.array([[None]]), allow_pickle=True),
    Fails("object|\\|O|samples|type"),
)
add("npy/scalar", "in.npy", lambda p, c: np.save(p, np.float32(3)), Fails("axes|dimension|shape"))
add("npy/one-axis", "in.npy", lambda p, c: np.save(p, np.zeros(9, "u1")), Fails("axes|dimension|shape"))
add("npy/empty-array", "in.npy", lambda p, c: np.save(p, np.zeros((0, 5), "u1")), Fails("empty|no pixels|shape|size|0"))
add("npy/truncated", "in.npy", cut(npy(np.uint16), 0.7), Fails("truncated|ends|short|pixels|rows"))
add("npy/npz", "in.npz", lambda p, c: np.savez(p, a=u8(c.image)), Fails("npz|zip|not an image"))

# ---- BMP ---------------------------------------------------------------------------------------------------------


def bmp_bytes(rows, bits, palette=b"", compression=0, masks=b"", top_down=False, header=40, size=None):
    """`rows`: each row's bytes, from the top."""
    width, height = size
    stride = (width * bits + 31) // 32 * 4
    body = (
        b"".join(row + bytes(stride - len(row)) for row in (rows if top_down else rows[::-1]))
        if compression in (0, 3)
        else rows
    )
    shown = -height if top_down else height
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        colours = len(palette) // 4
        info = struct.pack(
            "<IiiHHIIiiII", header, width, shown, 1, bits, compression, len(body), 5906, 5906, colours, 0
        )
        info += masks + bytes(max(0, header - 40 - len(masks))) if header > 40 else masks
    offset = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(body), 0, 0, offset) + info + palette + body


def bmp(bits, top_down=False, header=40, masks=None):
    """Gray levels of a palette up to 8 bits; blue, green, red (and nothing) above."""

    def write(path, picture):
        image = picture.image
        height, width = image.shape[:2]
        palette, mask_bytes, compression = b"", b"", 0
        if bits <= 8:
            levels = 2**bits
            index = np.round(image * (levels - 1)).astype(np.uint8)
            gray = [round(255 * i / (levels - 1)) for i in range(levels)]
            palette = b"".join(bytes([g, g, g] + ([0] if header != 12 else [])) for g in gray)
            digits = np.unpackbits(index[..., None], axis=2)[..., 8 - bits :].reshape(height, -1)
            rows = [np.packbits(row).tobytes() for row in digits]
        elif bits == 16:
            red, green, blue = masks or (0x7C00, 0x03E0, 0x001F)
            pixels = sum(
                np.round(image[..., c] * (m // (m & -m))).astype(np.uint16) * (m & -m)
                for c, m in enumerate((red, green, blue))
            )
            rows = [row.astype("<u2").tobytes() for row in pixels]
        else:
            pixels = u8(image)[..., ::-1] if image.shape[2] == 3 else u8(image)[..., [2, 1, 0, 3]]
            if bits == 32 and image.shape[2] == 3:
                pixels = np.dstack([pixels, np.zeros((height, width), np.uint8)])
            rows = [row.tobytes() for row in pixels]
        if masks:
            compression, mask_bytes = 3, struct.pack(f"<{len(masks)}I", *masks)
        path.write_bytes(bmp_bytes(rows, bits, palette, compression, mask_bytes, top_down, header, (width, height)))

    return write


for bits, tolerance in ((1, 0.51), (4, 0.045), (8, 0.012)):
    for top_down in (False, True):
        # A palette of grays may be read as gray or as colours.
        add(
            f"bmp/palette-{bits}{'-top-down' if top_down else ''}",
            "in.bmp",
            bmp(bits, top_down),
            Right(to=".png", tolerance=tolerance),
            Right(to=".png", tolerance=tolerance, layout="rgb"),
            quality=bits == 8,
        )
add("bmp/palette-8-os2", "in.bmp", bmp(8, header=12), Right(to=".png"), Right(to=".png", layout="rgb"))
for top_down in (False, True):
    mark = "-top-down" if top_down else ""
    add(f"bmp/24{mark}", "in.bmp", bmp(24, top_down), Right(to=".png"), layout="rgb", quality=True)
    add(f"bmp/32{mark}", "in.bmp", bmp(32, top_down), Right(to=".png"), layout="rgb")
    add(f"bmp/16{mark}", "in.bmp", bmp(16, top_down), Right(to=".png", tolerance=0.03), layout="rgb")
add("bmp/24-os2", "in.bmp", bmp(24, header=12), Right(to=".png"), Fails("OS/2|header|BMP"), layout="rgb")
add("bmp/24-v5", "in.bmp", bmp(24, header=124), Right(to=".png"), layout="rgb")
add("bmp/16-565", "in.bmp", bmp(16, masks=(0xF800, 0x07E0, 0x001F)), Right(to=".png", tolerance=0.03), layout="rgb")
add(
    "bmp/32-v5-alpha",
    "in.bmp",
    bmp(32, header=124, masks=(0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
    Right(to=".png"),
    layout="rgb+alpha",
)
add("bmp/24-truncated", "in.bmp", cut(bmp(24), 0.6), Fails("truncated|ends|short|damaged"), layout="rgb")
for bits in (4, 8):
    add(
        f"bmp/rle{bits}",
        "in.bmp",
        lambda p, c, bits=bits: p.write_bytes(
            bmp_bytes(
                b"\x30\x01\x00\x00" * 40 + b"\x00\x01", bits, bytes(4 * 2**bits), 1 if bits == 8 else 2, size=(48, 40)
            )
        ),
        Fails("RLE|compress"),
    )
