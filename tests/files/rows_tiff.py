"""TIFF in all its forms, raw pictures among them."""

from __future__ import annotations

import numpy as np
import PIL.Image
import tifffile

from pictures import TYPES, clean, scaled, u8, u16, white_of
from rows import Fails, Right, add
from rows_plain import cut
from samples import EXIF_KEPT, IPTC, XMP, icc
from tiff_bytes import ASCII, BYTE, LONG, RATIONAL, SHORT, Directory, image_tags, tiff

OUR_TYPES = ("u8", "u16", "f32")


def kept_types(name: str) -> str:
    """Types that may stand for one in the output: itself, or f32 where the program converts."""
    return name if name in OUR_TYPES else f"{name} f32"


def pages_written(dtype=np.uint8, white=None, low=0.0, **options):
    """By tifffile, a page at a time."""
    options.setdefault("metadata", None)

    def write(path, picture):
        first = picture.image
        more = dict(options)
        if first.ndim == 3 and "photometric" not in more:
            more["photometric"] = "rgb" if picture.layout.startswith("rgb") else "minisblack"
        writer = {k: more.pop(k) for k in ("bigtiff", "byteorder") if k in more}
        with tifffile.TiffWriter(path, **writer) as file:
            for page in picture.pages:
                page = scaled(page, dtype, white, low)
                planar = more.get("planarconfig") == "separate" and page.ndim == 3
                file.write(np.ascontiguousarray(np.moveaxis(page, -1, 0)) if planar else page, **more)

    return write


# ---- layouts, compressions and types -----------------------------------------------------------------------------

LOSSLESS = ("none", "lzw", "zlib", "packbits", "zstd", "lzma", "webp")
SHAPES = {"strips": {"rowsperstrip": 7}, "tiles": {"tile": (16, 32)}}
MAY_LACK = {"zstd": "zstd", "lzma": "lzma", "webp": "webp", "jpeg2000": "jpeg ?2000|33004|33005|34712"}

for shape, shape_options in SHAPES.items():
    for planar in ("contig", "separate"):
        for compression in LOSSLESS:
            if compression == "webp" and planar == "separate":
                continue
            options = {**shape_options, "planarconfig": planar}
            if compression != "none":
                options["compression"] = compression
            if compression == "webp":
                options["compressionargs"] = {"lossless": True}
            either = [Fails(MAY_LACK[compression] + "|compression")] if compression in MAY_LACK else []
            if shape == "tiles" and planar == "separate":  # may be refused, but not as damaged
                either.append(Fails("^(?!.*damaged).*(plane|planar)"))
            add(
                f"tiff/{shape}-{planar}-{compression}",
                "in.tif",
                pages_written(**options),
                Right(),
                *either,
                layout="rgb",
                quality=compression == "none",
            )
            if compression in ("none", "lzw") and planar == "contig":
                add(
                    f"tiff/{shape}-{compression}-u16-gray",
                    "in.tif",
                    pages_written(np.uint16, **options),
                    Right(types="u16"),
                )
for shape, options in {"strips": {"rowsperstrip": 16}, "tiles": SHAPES["tiles"]}.items():
    for layout in ("gray", "rgb"):
        add(
            f"tiff/{shape}-jpeg-{layout}",
            "in.tif",
            pages_written(compression="jpeg", compressionargs={"level": 98}, **options),
            Right(tolerance=0.04),
            layout=layout,
        )
add(
    "tiff/jpeg2000",
    "in.tif",
    pages_written(compression="jpeg2000"),
    Right(),
    Fails("jpeg.?2000|compression|3[34]\\d\\d\\d"),
)
add("tiff/jpegxl", "in.tif", pages_written(compression="jpegxl"), Right(), Fails("jpeg.?xl|compression|50002"))

for name in TYPES:
    white = white_of(TYPES[name])
    wide = (Fails("64|type"),) if name in ("u64", "i64") else ()
    for layout in ("gray", "rgb"):
        add(
            f"tiff/{name}-{layout}",
            "in.tif",
            pages_written(TYPES[name]),
            Right(types=kept_types(name), white=white, range=white),
            *wide,
            layout=layout,
            quality=name not in ("u64", "i64"),
        )
    add(
        f"tiff/{name}-big-endian",
        "in.tif",
        pages_written(TYPES[name], byteorder=">"),
        Right(types=kept_types(name), white=white),
        *wide,
    )
    if name not in ("i8", "u64", "i64"):
        kind = "f" if name.startswith("f") else ""
        add(
            f"tiff/{name}-predictor-{'3' if kind else '2'}",
            "in.tif",
            pages_written(TYPES[name], compression="zlib", predictor=True),
            Right(types=kept_types(name), white=white),
        )
    add(
        f"tiff/{name}-bigtiff-tiles",
        "in.tif",
        pages_written(TYPES[name], bigtiff=True, tile=(16, 16)),
        Right(types=kept_types(name), white=white),
        *wide,
    )
add("tiff/i16-negative", "in.tif", pages_written(np.int16, 3000, -1000), Right(types="i16 f32", low=-1000, white=3000))
add(
    "tiff/lzw-predictor-2-u16-rgb",
    "in.tif",
    pages_written(np.uint16, compression="lzw", predictor=2),
    Right(types="u16"),
    layout="rgb",
)
add("tiff/complex64", "in.tif", lambda p, c: tifffile.imwrite(p, c.image.astype(np.complex64)), Fails("complex"))
add(
    "tiff/complex128",
    "in.tif",
    lambda p, c: tifffile.imwrite(p, c.image.astype(np.complex128)),
    Fails("complex|64|type"),
)

# ---- odd depths and colours --------------------------------------------------------------------------------------


def packed(index: np.ndarray, bits: int) -> bytes:
    """Rows of `bits` a sample, the first in the highest bits, each row from a new byte."""
    height = index.shape[0]
    shifts = np.arange(bits - 1, -1, -1)
    digits = (index.reshape(height, -1, 1).astype(np.uint32) >> shifts & 1).astype(np.uint8)
    return np.packbits(digits.reshape(height, -1), axis=1).tobytes()


def few_bits(bits, photometric=1, order="<"):
    def write(path, picture):
        image = picture.image if photometric else 1 - picture.image
        height, width = image.shape[:2]
        channels = 1 if image.ndim == 2 else image.shape[2]
        index = np.round(image * (2**bits - 1)).astype(np.uint32)
        tags = image_tags(width, height, bits, channels, 2 if channels == 3 else photometric)
        path.write_bytes(tiff([Directory(tags, [packed(index, bits)])], order))

    return write


for bits, tolerance in ((1, 0.51), (2, 0.18), (4, 0.045)):
    for photometric in (0, 1):
        add(
            f"tiff/{bits}-bit-min-is-{'black' if photometric else 'white'}",
            "in.tif",
            few_bits(bits, photometric),
            Right(tolerance=tolerance),
            Fails(f"{bits} bit"),
            checked=False,
        )
for bits in (10, 12, 14):
    add(
        f"tiff/{bits}-bit",
        "in.tif",
        few_bits(bits),
        Right(types="u16 f32", white=2**bits - 1, range=2**bits - 1),
        Right(types="u16"),
        Fails(f"{bits}"),
    )
add(
    "tiff/12-bit-rgb",
    "in.tif",
    few_bits(12),
    Right(types="u16", white=4095, range=4095),
    Right(types="u16"),
    Fails("12"),
    layout="rgb",
)
for name in ("u8", "u16", "f32"):

    def min_is_white(path, picture, dtype=TYPES[name]):
        tifffile.imwrite(path, scaled(1 - picture.image, dtype), photometric="miniswhite", metadata=None)

    add(
        f"tiff/{name}-min-is-white",
        "in.tif",
        min_is_white,
        Right(types=name),
        Fails("white") if name == "f32" else Right(types=name),
        checked=False,
    )


def g4(path, picture):
    PIL.Image.fromarray(picture.image > 0.5).save(path, compression="group4")


add("tiff/ccitt-g4", "in.tif", g4, Right(tolerance=0.51), Fails("1 bit|CCITT|black"), checked=False)
add(
    "tiff/ccitt-g3",
    "in.tif",
    lambda p, c: PIL.Image.fromarray(c.image > 0.5).save(p, compression="group3"),
    Right(tolerance=0.51),
    Fails("1 bit|CCITT|black"),
    checked=False,
)


def palette(bits):
    def write(path, picture):
        image = picture.image
        height, width = image.shape
        levels = 2**bits
        index = np.round(image * (levels - 1)).astype(np.uint32)
        ramp = np.round(np.linspace(0, 65535, levels)).astype(int)
        # Red as the level, green and blue turned, so that a lost palette is seen.
        colours = [*ramp, *(65535 - ramp), *(65535 - ramp // 2)]
        tags = image_tags(width, height, bits, 1, 3, t320=(SHORT, [int(c) for c in colours]))
        path.write_bytes(tiff([Directory(tags, [packed(index, bits)])]))

    return write


def palette_colours(page):
    return np.dstack([page, 1 - page, 1 - page / 2])


for bits, tolerance in ((4, 0.045), (8, 0.012)):
    for extension in (".tif", ".png"):
        add(
            f"tiff/palette-{bits}-to-{extension[1:]}",
            "in.tif",
            palette(bits),
            Right(to=extension, layout="rgb", tolerance=tolerance, truth=palette_colours),
            Fails("palette"),
        )


def cmyk(dtype=np.uint8, **options):
    return pages_written(dtype, photometric="separated", **options)


add("tiff/cmyk-u8", "in.tif", cmyk(), Right(keeps={"tag:262": 5}), layout="cmyk")
add(
    "tiff/cmyk-u16-planar",
    "in.tif",
    cmyk(np.uint16, planarconfig="separate"),
    Right(types="u16", keeps={"tag:262": 5}),
    layout="cmyk",
)
add("tiff/cmyk-to-jpeg", "in.tif", cmyk(), Right(to=".jpg", tolerance=0.04), layout="cmyk")
add(
    "tiff/cmyk-to-png",
    "in.tif",
    cmyk(),
    Fails("CMYK|4 channels|PNG"),
    Right(to=".png", layout="rgb", tolerance=1),
    layout="cmyk",
)


def ycbcr(subsampled):
    """Uncompressed YCbCr, its chroma halved or not."""

    def write(path, picture):
        rgb = u8(picture.image).astype(float)
        height, width = rgb.shape[:2]
        y = rgb @ [0.299, 0.587, 0.114]
        cb, cr = 128 + (rgb[..., 2] - y) / 1.772, 128 + (rgb[..., 0] - y) / 1.402
        y, cb, cr = (np.clip(np.round(v), 0, 255).astype(np.uint8) for v in (y, cb, cr))
        if subsampled:
            half = [c.reshape(height // 2, 2, width // 2, 2).mean((1, 3)).round().astype(np.uint8) for c in (cb, cr)]
            luma = y.reshape(height // 2, 2, width // 2, 2).swapaxes(1, 2).reshape(height // 2, width // 2, 4)
            data = np.dstack([luma, *half]).tobytes()
        else:
            data = np.dstack([y, cb, cr]).tobytes()
        step = 2 if subsampled else 1
        tags = image_tags(
            width,
            height,
            8,
            3,
            6,
            t530=(SHORT, [step, step]),
            t532=(RATIONAL, [(0, 1), (255, 1), (128, 1), (255, 1), (128, 1), (255, 1)]),
        )
        path.write_bytes(tiff([Directory(tags, [data])]))

    return write


for subsampled in (False, True):
    add(
        f"tiff/ycbcr-{'4:2:0' if subsampled else '4:4:4'}".replace(":", ""),
        "in.tif",
        ycbcr(subsampled),
        Right(tolerance=0.05),
        Fails("YCbCr"),
        layout="rgb",
        checked=False,
    )


def lab(dtype):
    def write(path, picture):
        lightness = scaled(picture.image[..., 0], dtype)
        signed = np.int8 if dtype == np.uint8 else np.int16
        chroma = [scaled(picture.image[..., c], signed, low=-white_of(signed)).view(dtype) for c in (1, 2)]
        tifffile.imwrite(path, np.dstack([lightness, *chroma]), photometric="cielab", metadata=None)

    return write


for name in ("u8", "u16"):
    # As integers (a and b in two's complement) or as floats of L 0 to 100, a and b -127 to 127.
    add(
        f"tiff/lab-{name}",
        "in.tif",
        lab(TYPES[name]),
        Right(types="f32", keeps={"lab": True}),
        Fails("Lab"),
        layout="rgb",
    )

# ---- more channels -----------------------------------------------------------------------------------------------

for layout in ("2 channels", "4 channels", "5 channels"):
    count = int(layout[0])
    refused = (Fails("channels"),) if count > 4 else ()
    for name in ("u8", "u16", "f32"):
        add(
            f"tiff/{count}-channels-{name}",
            "in.tif",
            pages_written(
                TYPES[name], photometric="minisblack", planarconfig="contig", extrasamples=["unspecified"] * (count - 1)
            ),
            Right(types=name, alpha=False, keeps={"extra": [0] * (count - 1)}),
            *refused,
            layout=layout,
            quality=False,
        )
add(
    "tiff/rgb-plus-unspecified",
    "in.tif",
    pages_written(photometric="rgb", extrasamples=["unspecified"]),
    Right(alpha=False, keeps={"extra": [0], "tag:262": 2}),
    layout="4 channels",
)


def with_alpha(kind, dtype):
    def write(path, picture):
        page = picture.image if kind == "unassalpha" else premultiplied(picture.image)
        tifffile.imwrite(
            path,
            scaled(page, dtype),
            photometric="rgb" if page.shape[2] == 4 else "minisblack",
            planarconfig="contig",
            extrasamples=[kind],
            metadata=None,
        )

    return write


def premultiplied(page):
    return np.dstack([page[..., :-1] * page[..., -1:], page[..., -1]])


for layout in ("gray+alpha", "rgb+alpha"):
    for name in ("u8", "u16", "f32"):
        add(
            f"tiff/{layout}-unassociated-{name}",
            "in.tif",
            with_alpha("unassalpha", TYPES[name]),
            Right(types=name, keeps={"extra": [2]}),
            layout=layout,
        )
        add(
            f"tiff/{layout}-associated-{name}",
            "in.tif",
            with_alpha("assocalpha", TYPES[name]),
            Right(types=name, keeps={"extra": [1]}, truth=premultiplied),
            Right(types=name, keeps={"extra": [2]}, tolerance=0.02),
            layout=layout,
        )

# ---- pages -------------------------------------------------------------------------------------------------------

for count in (2, 5, 17, 300):
    add(f"tiff/{count}-pages", "in.tif", pages_written(), Right(), pages=count)
add(
    "tiff/5-pages-u16-rgb-tiles-lzw",
    "in.tif",
    pages_written(np.uint16, tile=(16, 16), compression="lzw"),
    Right(types="u16"),
    pages=5,
    layout="rgb",
    quality=True,
)
add(
    "tiff/5-pages-bigtiff-big-endian",
    "in.tif",
    pages_written(np.float32, bigtiff=True, byteorder=">"),
    Right(types="f32"),
    pages=5,
)
add(
    "tiff/5-pages-to-webp",
    "in.tif",
    pages_written(),
    Right(to=".webp", layout="rgb", tolerance=0.06),
    Fails("pages|frames"),
    pages=5,
)
for extension in (".png", ".jpg", ".jp2", ".pgm", ".pfm", ".jxl", ".avif"):
    add(
        f"tiff/5-pages-to{extension.replace('.', '-')}",
        "in.tif",
        pages_written(),
        Fails("5"),
        Right(to=extension, types="u8 f32"),
        pages=5,
    )
add("tiff/5-pages-to-npy", "in.tif", pages_written(), Right(to=".npy"), Fails("5"), pages=5)
add(
    "tiff/5-pages-to-fits",
    "in.tif",
    pages_written(),
    Right(to=".fits"),
    Right(to=".fits", truth=np.flipud),
    Fails("5"),
    pages=5,
)


def sizes(path, picture):
    with tifffile.TiffWriter(path) as file:
        for width, height in ((48, 40), (32, 20), (48, 40)):
            file.write(u8(clean("gray", 1, width, height).image), metadata=None)


def kinds(path, picture):
    with tifffile.TiffWriter(path) as file:
        file.write(u8(picture.image), metadata=None)
        file.write(u16(picture.image), metadata=None)


def layouts(path, picture):
    with tifffile.TiffWriter(path) as file:
        file.write(u8(picture.image), metadata=None)
        file.write(u8(clean("rgb").image), photometric="rgb", metadata=None)


add("tiff/pages-of-different-sizes", "in.tif", sizes, Fails("page|size"))
add(
    "tiff/pages-of-different-types",
    "in.tif",
    kinds,
    Fails("page|type|bits|differ"),
    Right(types="u8 u16"),
    pages=2,
    checked=False,
)
add("tiff/pages-of-different-layouts", "in.tif", layouts, Fails("page|channels|differ"))


def five_pages(last_link=0, order="<", big=False, count=5):
    def write(path, picture):
        pages = [Directory(image_tags(48, 40), [u8(page).tobytes()]) for page in clean("gray", count).pages]
        path.write_bytes(tiff(pages, order, big, last_link))

    return write


add("tiff/truncated-in-page-4", "in.tif", cut(five_pages(), 0.7), Fails(r"\b[3-5]\b"))
add("tiff/truncated-in-page-4-big-endian", "in.tif", cut(five_pages(order=">"), 0.7), Fails(r"\b[3-5]\b"))
add("tiff/truncated-bigtiff", "in.tif", cut(five_pages(big=True), 0.7), Fails(r"\b[3-5]\b"))
add("tiff/truncated-by-tifffile", "in.tif", cut(pages_written(), 0.7), Fails("page|truncated|damaged"), pages=5)
add("tiff/truncated-one-page", "in.tif", cut(pages_written(rowsperstrip=4), 0.6), Fails("truncated|damaged|ends|short"))
add(
    "tiff/truncated-header",
    "in.tif",
    lambda p, c: p.write_bytes(b"II*\0\x08\0\0"),
    Fails("truncated|damaged|not an image"),
)
add("tiff/broken-link", "in.tif", five_pages(last_link=0x7FFFFFF0), Fails("page|link|director|truncated|damaged"))
add("tiff/link-into-nowhere", "in.tif", five_pages(last_link=12), Fails("page|link|director|truncated|damaged"))
for target in (0, 2, 4):
    add(
        f"tiff/cyclic-to-page-{target + 1}",
        "in.tif",
        five_pages(last_link=f"cycle {target}"),
        Fails("cycl|loop|circular|again|twice|itself"),
    )
add("tiff/no-strips", "in.tif", lambda p, c: p.write_bytes(tiff([Directory(image_tags(48, 40))])), Fails("."))
add("tiff/zero-width", "in.tif", lambda p, c: p.write_bytes(tiff([Directory(image_tags(0, 40), [b"a"])])), Fails("."))
add(
    "tiff/huge-size",
    "in.tif",
    lambda p, c: p.write_bytes(tiff([Directory(image_tags(2**31, 2**31), [b"a"])])),
    Fails("."),
)

# ---- ImageJ and OME ----------------------------------------------------------------------------------------------

RESOLUTION = (3.7037037, 3.7037037)  # pixels a micron


def imagej(**options):
    def write(path, picture):
        tifffile.imwrite(
            path,
            scaled(picture.stack, options.get("dtype", np.uint16)),
            imagej=True,
            resolution=RESOLUTION,
            metadata={
                "axes": options.get("axes", "ZYX"),
                "unit": "um",
                "spacing": 0.5,
                "Labels": [f"slice {n}" for n in range(len(picture.pages))],
                "Info": "taken by a test",
            },
        )

    return write


IMAGEJ_KEPT = {
    "tag:282": lambda v: abs(v[0] / v[1] - RESOLUTION[0]) < 1e-6,
    "tag:296": lambda v: int(v) == 1,
    "imagej:unit": "um",
    "imagej:spacing": 0.5,
    "imagej:images": 5,
}
IJ_METADATA = {"imagej:Labels": [f"slice {n}" for n in range(5)], "imagej:Info": "taken by a test"}
add("tiff/imagej-stack", "in.tif", imagej(), Right(types="u16", keeps=IMAGEJ_KEPT), pages=5, quality=True)
add("tiff/imagej-metadata", "in.tif", imagej(), Right(types="u16", keeps=IJ_METADATA), pages=5)
add(
    "tiff/imagej-time-f32",
    "in.tif",
    imagej(dtype=np.float32, axes="TYX"),
    Right(types="f32", keeps={"imagej:frames": 5}),
    pages=5,
)


def imagej_hyperstack(path, picture):
    stack = u16(picture.stack).reshape(3, 2, *picture.image.shape)
    tifffile.imwrite(path, stack, imagej=True, metadata={"axes": "ZCYX"})


add(
    "tiff/imagej-hyperstack-3z-2c",
    "in.tif",
    imagej_hyperstack,
    Right(types="u16", keeps={"imagej:channels": 2, "imagej:slices": 3}),
    pages=6,
)


def one_directory(order=">", dtype=np.uint16, lie=False, end=0):
    """As ImageJ writes stacks beyond 4 GB: one directory, the planes one after another behind it."""

    def write(path, picture):
        height, width = picture.image.shape
        bits = np.dtype(dtype).itemsize * 8
        planes = b"".join(
            scaled(page, dtype).astype(np.dtype(dtype).newbyteorder(order)).tobytes() for page in picture.pages
        )
        count = len(picture.pages)
        text = f"ImageJ=1.54f\nimages={count}\nslices={count}\nunit=um\nspacing=0.5\nloop=false\n"
        tags = image_tags(
            width,
            height,
            bits,
            t270=(ASCII, text),
            t282=(RATIONAL, [(37037, 10000)]),
            t283=(RATIONAL, [(37037, 10000)]),
            t296=(SHORT, [1]),
        )
        if np.dtype(dtype).kind == "f":
            tags[339] = (SHORT, [3])
        first = len(planes) // count
        head = len(tiff([Directory(tags, [bytes(first)], strip_offsets=[0])], order))
        head += head % 2
        data = tiff([Directory(tags, [bytes(first)], strip_offsets=[head])], order).ljust(head, b"\0") + planes
        path.write_bytes(data[: len(data) - end])

    return write


for name in ("u8", "u16", "f32"):
    for order, word in ((">", "big"), ("<", "little")):
        add(
            f"tiff/imagej-one-directory-{name}-{word}-endian",
            "in.tif",
            one_directory(order, TYPES[name]),
            Right(types=name, keeps={"imagej:unit": "um"}),
            pages=5,
        )
add(
    "tiff/imagej-one-directory-truncated",
    "in.tif",
    one_directory(end=3000),
    Fails("truncated|images|pages|ends|short"),
    pages=5,
)


def ome(path, picture):
    tifffile.imwrite(
        path, u16(picture.stack), ome=True, metadata={"axes": "ZYX", "PhysicalSizeX": 0.25, "PhysicalSizeXUnit": "µm"}
    )


add(
    "tiff/ome-stack",
    "in.ome.tif",
    ome,
    Right(to=".tif", types="u16", keeps={"description": lambda v: 'PhysicalSizeX="0.25"' in (v or "")}),
    pages=5,
    quality=True,
)

# ---- metadata ----------------------------------------------------------------------------------------------------


def tagged(*extra, layout_pages=1, **options):
    def write(path, picture):
        with tifffile.TiffWriter(path) as file:
            for page in picture.pages:
                file.write(
                    u8(page),
                    metadata=None,
                    extratags=list(extra),
                    photometric="rgb" if page.ndim == 3 else "minisblack",
                    **options,
                )

    return write


add("tiff/description", "in.tif", tagged(description="a cell, 20x"), Right(keeps={"description": "a cell, 20x"}))
add(
    "tiff/description-utf8",
    "in.tif",
    tagged((270, 2, 0, "Größe 20 µm".encode(), True)),
    Right(keeps={"description": lambda v: v in ("Größe 20 µm", "Größe 20 µm".encode().decode("latin-1"))}),
)
add(
    "tiff/resolution-inch",
    "in.tif",
    tagged(resolution=(300, 150), resolutionunit="INCH"),
    Right(keeps={"resolution": (300.0, 150.0), "tag:296": lambda v: int(v) == 2}),
)
add(
    "tiff/resolution-cm",
    "in.tif",
    tagged(resolution=(118, 59), resolutionunit="CENTIMETER"),
    Right(keeps={"tag:282": lambda v: abs(v[0] / v[1] - 118) < 1e-6, "tag:296": lambda v: int(v) == 3}),
)
add(
    "tiff/resolution-no-unit",
    "in.tif",
    tagged(resolution=(1, 2), resolutionunit="NONE"),
    Right(keeps={"tag:283": lambda v: abs(v[0] / v[1] - 2) < 1e-6, "tag:296": lambda v: int(v) == 1}),
)
add("tiff/xmp", "in.tif", tagged((700, 1, len(XMP), XMP, True)), Right(keeps={"xmp": XMP}))
add("tiff/iptc", "in.tif", tagged((33723, 7, len(IPTC), IPTC, True)), Right(keeps={"iptc": IPTC}))
add("tiff/icc", "in.tif", tagged(iccprofile=icc()), Right(keeps={"icc": icc()}), layout="rgb")
add(
    "tiff/software-artist-copyright",
    "in.tif",
    tagged(
        (315, 2, 0, "An Artist", True), (33432, 2, 0, "(c) someone", True), (306, 2, 0, "2024:01:02 03:04:05", True)
    ),
    Right(keeps={"tag:315": "An Artist", "tag:33432": "(c) someone", "tag:306": "2024:01:02 03:04:05"}),
)
GEO = [
    (33550, 12, 3, (10.0, 10.0, 0.0), True),
    (33922, 12, 6, (0.0, 0.0, 0.0, 440720.0, 3751320.0, 0.0), True),
    (34735, 3, 8, (1, 1, 0, 1, 1024, 0, 1, 1), True),
    (34737, 2, 0, "WGS 84|", True),
    (42113, 2, 0, "-9999", True),
]
add(
    "tiff/geotiff",
    "in.tif",
    tagged(*GEO),
    Right(
        keeps={
            "tag:33550": (10.0, 10.0, 0.0),
            "tag:33922": (0.0, 0.0, 0.0, 440720.0, 3751320.0, 0.0),
            "tag:34735": (1, 1, 0, 1, 1024, 0, 1, 1),
            "tag:34737": lambda v: (v or "").startswith("WGS 84"),
            "tag:42113": "-9999",
        }
    ),
)


def exif_directory(path, picture):
    camera_fields = Directory(
        {
            33434: (RATIONAL, [(1, 250)]),
            33437: (RATIONAL, [(28, 10)]),
            34855: (SHORT, [1600]),
            36867: (ASCII, "2024:05:06 07:08:09"),
            42036: (ASCII, "50 mm"),
        }
    )
    gps = Directory({1: (ASCII, "N"), 2: (RATIONAL, [(48, 1), (8, 1), (123, 10)])})
    tags = image_tags(
        48,
        40,
        8,
        3,
        2,
        t271=(ASCII, "Maker"),
        t272=(ASCII, "Model 7"),
        t306=(ASCII, "2024:05:06 07:08:09"),
        t34665=(LONG, [camera_fields]),
        t34853=(LONG, [gps]),
    )
    path.write_bytes(tiff([Directory(tags, [u8(picture.image).tobytes()])]))


add("tiff/exif", "in.tif", exif_directory, Right(keeps=EXIF_KEPT), layout="rgb")
add("tiff/exif-to-jpeg", "in.tif", exif_directory, Right(to=".jpg", tolerance=0.05, keeps=EXIF_KEPT), layout="rgb")
add("tiff/exif-to-png", "in.tif", exif_directory, Right(to=".png", keeps=EXIF_KEPT), layout="rgb")
add(
    "tiff/xmp-icc-to-png",
    "in.tif",
    tagged((700, 1, len(XMP), XMP, True), iccprofile=icc()),
    Right(to=".png", keeps={"xmp": XMP, "icc": icc()}),
    layout="rgb",
)
add(
    "tiff/xmp-icc-iptc-to-jpeg",
    "in.tif",
    tagged((700, 1, len(XMP), XMP, True), (33723, 7, len(IPTC), IPTC, True), iccprofile=icc()),
    Right(to=".jpg", tolerance=0.05, keeps={"xmp": XMP, "icc": icc(), "iptc": IPTC}),
    layout="rgb",
)
add(
    "tiff/metadata-of-every-page",
    "in.tif",
    lambda p, c: [
        tifffile.imwrite(p, u8(page), append=True, metadata=None, description=f"page {n}")
        for n, page in enumerate(c.pages)
    ],
    Right(keeps={"pages of tags": lambda pages: [tags.get(270) for tags in pages] == ["page 0", "page 1", "page 2"]}),
    pages=3,
)

# ---- pyramids and thumbnails -------------------------------------------------------------------------------------


def pyramid(path, picture):
    with tifffile.TiffWriter(path) as file:
        file.write(u8(picture.image), subifds=2, metadata=None, photometric="rgb", tile=(16, 16))
        for step in (2, 4):
            file.write(
                u8(picture.image)[::step, ::step], subfiletype=1, metadata=None, photometric="rgb", tile=(16, 16)
            )


def thumbnail(path, picture, first=False):
    large = (u8(picture.image), 0)
    small = (u8(picture.image)[::4, ::4], 1)
    with tifffile.TiffWriter(path) as file:
        for image, kind in (small, large) if first else (large, small):
            file.write(image, subfiletype=kind, metadata=None, photometric="rgb")


add("tiff/pyramid-in-sub-directories", "in.tif", pyramid, Right(), Fails("pyramid|reduced|page|size"), layout="rgb")
add("tiff/thumbnail-after", "in.tif", thumbnail, Right(), Fails("page|size|thumbnail"), layout="rgb", checked=False)
add(
    "tiff/thumbnail-before",
    "in.tif",
    lambda p, c: thumbnail(p, c, True),
    Right(),
    Fails("page|size|thumbnail"),
    layout="rgb",
    checked=False,
)

# ---- raw pictures ------------------------------------------------------------------------------------------------

RAW = "raw|bayer|cfa|mosaic"
# Builds with LibRaw; the filter works on each colour of the mosaic, which has half of its pixels.
MOSAIC = Right(to=".dng", types="u16", tolerance=0.05)


def mosaic(path, picture, **more):
    tags = image_tags(48, 40, 16, 1, 32803, t33421=(SHORT, [2, 2]), t33422=(BYTE, [0, 1, 1, 2]), **more)
    path.write_bytes(tiff([Directory(tags, [u16(picture.image).tobytes()])]))


DNG = {
    "t50706": (BYTE, [1, 4, 0, 0]),
    "t50707": (BYTE, [1, 1, 0, 0]),
    "t271": (ASCII, "Maker"),
    "t50708": (ASCII, "Model"),
}


def camera(maker, **more):
    """A thumbnail in the first directory, the mosaic in one below it: what most cameras write."""

    def write(path, picture):
        raw = Directory(
            image_tags(48, 40, 16, 1, 32803, t33421=(SHORT, [2, 2]), t33422=(BYTE, [0, 1, 1, 2]), t254=(LONG, [0])),
            [u16(picture.image).tobytes()],
        )
        small = u8(clean("rgb", 1, 16, 12).image)
        tags = image_tags(16, 12, 8, 3, 2, t254=(LONG, [1]), t271=(ASCII, maker), t330=(LONG, [raw]), **more)
        path.write_bytes(tiff([Directory(tags, [small.tobytes()])]))

    return write


add("raw/cfa-tiff", "in.tif", mosaic, Fails(RAW))
add("raw/cfa-tiff-tiled-rgb-thumbnail", "in.tif", camera("Maker"), MOSAIC, Fails(RAW), checked=False)
add("raw/dng-mosaic", "in.dng", lambda p, c: mosaic(p, c, **DNG), MOSAIC, Fails(RAW), checked=False)
add("raw/dng-thumbnail", "in.dng", camera("Maker", t50706=(BYTE, [1, 4, 0, 0])), MOSAIC, Fails(RAW), checked=False)
add("raw/dng-named-tif", "in.tif", camera("Maker", t50706=(BYTE, [1, 4, 0, 0])), MOSAIC, Fails(RAW), checked=False)
add(
    "raw/dng-linear",
    "in.dng",
    lambda p, c: p.write_bytes(
        tiff([Directory(image_tags(48, 40, 16, 3, 34892, **DNG), [u16(clean("rgb").image).tobytes()])])
    ),
    Fails(RAW + "|linear"),
)
add("raw/nef", "in.nef", camera("NIKON CORPORATION"), MOSAIC, Fails(RAW), checked=False)
add("raw/arw", "in.arw", camera("SONY"), MOSAIC, Fails(RAW), checked=False)
add("raw/pef", "in.pef", camera("PENTAX"), MOSAIC, Fails(RAW), checked=False)
add(
    "raw/cr2",
    "in.cr2",
    lambda p, c: p.write_bytes(
        b"II*\0\x10\0\0\0CR\x02\0" + bytes(4) + tiff([Directory(image_tags(16, 12, 8, 3, 2), [bytes(576)])])[8:]
    ),
    Fails(RAW),
)
for name, head in (
    ("orf", b"IIRO\x08\0\0\0"),
    ("rw2", b"IIU\0\x18\0\0\0"),
    ("raf", b"FUJIFILMCCD-RAW 0201"),
    ("cr3", b"\0\0\0\x18ftypcrx \0\0\0\x01crx isom"),
    ("x3f", b"FOVb\0\0\2\0"),
    ("mrw", b"\0MRM\0\0\0\x20"),
):
    add(f"raw/{name}", f"in.{name}", lambda p, c, head=head: p.write_bytes(head + bytes(4000)), Fails(RAW))
