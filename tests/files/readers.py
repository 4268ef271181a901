"""Reads what the program wrote, with nothing of the program's own code and none of its libraries' bindings.

Metadata have one name whatever the format: "exif:Make" (a tag of EXIF by its name), "gps:GPSLatitudeRef", "xmp",
"iptc", "icc" (bytes), "resolution" (dots an inch, across and down), "text:Title" (of PNG), "description" (of TIFF),
"tag:33550" (of TIFF, by number), "card:OBJECT" (of FITS).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

import imagecodecs
import numpy as np
import PIL.ExifTags
import PIL.Image
import PIL.ImageSequence
import tifffile


@dataclass
class Found:
    pages: list[np.ndarray]
    orientation: int | None = None
    meta: dict = field(default_factory=dict)
    photometric: str = ""


def read(path: Path) -> Found:
    return _READERS[path.suffix.lower()](path)


def knows(extension: str) -> bool:
    return extension.lower() in _READERS


# ---- metadata ----------------------------------------------------------------------------------------------------


def _exif_value(value):
    if isinstance(value, tuple):
        return tuple(_exif_value(v) for v in value)
    if isinstance(value, (int, str, bytes)):
        return value
    return round(float(value), 6)


def exif_meta(exif: PIL.Image.Exif) -> dict:
    meta = {}
    for tag, value in exif.items():
        meta[f"exif:{PIL.ExifTags.TAGS.get(tag, tag)}"] = _exif_value(value)
    for tag, value in exif.get_ifd(PIL.ExifTags.IFD.Exif).items():
        meta[f"exif:{PIL.ExifTags.TAGS.get(tag, tag)}"] = _exif_value(value)
    for tag, value in exif.get_ifd(PIL.ExifTags.IFD.GPSInfo).items():
        meta[f"gps:{PIL.ExifTags.GPSTAGS.get(tag, tag)}"] = _exif_value(value)
    return meta


def exif_of_bytes(block: bytes) -> dict:
    exif = PIL.Image.Exif()
    exif.load(block)
    return exif_meta(exif)


def _pillow_meta(image: PIL.Image.Image) -> dict:
    meta = exif_meta(image.getexif())
    info = image.info
    if info.get("icc_profile"):
        meta["icc"] = info["icc_profile"]
    if info.get("dpi"):
        meta["resolution"] = tuple(round(float(v), 2) for v in info["dpi"])
    tags = image.getexif()
    if "jfif" not in info and 282 in tags and 283 in tags:  # Pillow takes the first for both
        inches = 2.54 if tags.get(296) == 3 else 1
        meta["resolution"] = tuple(round(float(tags[tag]) * inches, 2) for tag in (282, 283))
    if info.get("xmp"):  # PNG's in an iTXt chunk, as its standard says
        meta["xmp"] = info["xmp"]
    return meta


# ---- formats -----------------------------------------------------------------------------------------------------


def _pnm(path: Path) -> Found:
    data = path.read_bytes()
    if data[:2] == b"P7":
        header, _, body = data.partition(b"ENDHDR\n")
        words = dict(line.split(None, 1) for line in header.decode().splitlines()[1:] if line and line[0] != "#")
        width, height, channels, most = (int(words[k]) for k in ("WIDTH", "HEIGHT", "DEPTH", "MAXVAL"))
        kind = words.get("TUPLTYPE", "")
    else:
        match = re.match(rb"P([56])\s+(\d+)\s+(\d+)\s+(\d+)\s", data)
        channels = 3 if match[1] == b"6" else 1
        width, height, most = int(match[2]), int(match[3]), int(match[4])
        body, kind = data[match.end() :], ""
    samples = np.frombuffer(body, ">u2" if most > 255 else "u1")
    image = samples.reshape(height, width, channels).astype(np.uint16 if most > 255 else np.uint8)
    return Found([image[..., 0] if channels == 1 else image], meta={"maxval": most, "tuple": kind})


def _pfm(path: Path) -> Found:
    match = re.match(rb"P([fF])\s+(\d+)\s+(\d+)\s+(-?[0-9.]+)\s", data := path.read_bytes())
    shape = (int(match[3]), int(match[2])) + ((3,) if match[1] == b"F" else ())
    image = np.frombuffer(data[match.end() :], "<f4" if float(match[4]) < 0 else ">f4").reshape(shape)
    return Found([image[::-1].astype(np.float32)])


def _npy(path: Path) -> Found:
    array = np.load(path)
    # (pages, height, width) and (height, width, channels) are told apart by their size alone.
    if array.ndim == 4 or (array.ndim == 3 and array.shape[-1] > 8):
        return Found(list(array))
    return Found([array])


def _jpeg(path: Path) -> Found:
    with PIL.Image.open(path) as image:
        meta = _pillow_meta(image)
        pixels = np.asarray(image)
        if image.mode == "CMYK" and image.info.get("adobe") is None:
            pixels = 255 - pixels  # Pillow turns what the Adobe marker does not say is turned
        for number, payload in getattr(image, "applist", []):
            if number == "APP13" and payload.startswith(b"Photoshop 3.0\0"):
                meta["iptc"] = _iptc_of_photoshop(payload[14:])
        if image.info.get("comment"):
            meta["comment"] = image.info["comment"]
        return Found([pixels], image.getexif().get(274), meta, image.mode)


def _iptc_of_photoshop(resources: bytes) -> bytes:
    position = 0
    while resources[position : position + 4] == b"8BIM":
        (kind,) = struct.unpack_from(">H", resources, position + 4)
        name = resources[position + 6]
        position += 6 + (name + 2) // 2 * 2
        (size,) = struct.unpack_from(">I", resources, position)
        if kind == 0x0404:
            return resources[position + 4 : position + 4 + size]
        position += 4 + (size + 1) // 2 * 2
    return b""


def _png(path: Path) -> Found:
    data = path.read_bytes()
    with PIL.Image.open(path) as image:
        image.load()
        meta = _pillow_meta(image)
        for key, value in image.text.items():
            meta[f"text:{key}"] = str(value)
        if "gamma" in image.info:
            meta["gamma"] = round(image.info["gamma"], 5)
        frames = getattr(image, "n_frames", 1)
        orientation = image.getexif().get(274)
        if frames > 1:
            return Found([np.asarray(f.convert("RGB")) for f in PIL.ImageSequence.Iterator(image)], orientation, meta)
    return Found([imagecodecs.png_decode(data)], orientation, meta)


_TIFF_NAMES = {700: "xmp", 33723: "iptc", 34675: "icc"}


def _tiff_page_pixels(page) -> np.ndarray:
    pixels = page.asarray()
    if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
        pixels = np.iinfo(pixels.dtype).max - pixels
    if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE and pixels.ndim == 3:
        pixels = np.moveaxis(pixels, 0, -1)
    return pixels


def _lab(page: np.ndarray) -> np.ndarray:
    """L, a and b from 0 to 1, whatever the file holds them as."""
    if page.dtype.kind == "f":
        return ((page + [0, 127, 127]) / [100, 254, 254]).astype(np.float32)
    most = np.iinfo(page.dtype).max
    signed = page.view(np.dtype(f"i{page.dtype.itemsize}")).astype(np.float32)
    return np.dstack([page[..., 0] / most, signed[..., 1:] / (most - 1) + 0.5]).astype(np.float32)


def _resolution(tags) -> tuple | None:
    """Dots an inch."""
    if 282 not in tags or 283 not in tags or 296 not in tags:
        return None
    unit = {2: 1, 3: 2.54}.get(int(tags[296].value))
    return unit and tuple(round(tags[code].value[0] / tags[code].value[1] * unit, 2) for code in (282, 283))


def _tiff(path: Path) -> Found:
    with tifffile.TiffFile(path) as tiff:
        first = tiff.pages[0]
        images = (tiff.imagej_metadata or {}).get("images", 1)
        pages = [_tiff_page_pixels(page) for page in tiff.pages]
        if len(pages) == 1 and images > 1:  # ImageJ's way: one directory, the planes one after another
            planes = tiff.asarray()
            pages = list(planes.reshape(images, *first.shape)) if planes.size == images * pages[0].size else pages
        meta = {f"tag:{tag.code}": tag.value for tag in first.tags}
        for code, name in _TIFF_NAMES.items():
            tag = first.tags.get(code)
            if tag is not None:
                tiff.filehandle.seek(tag.valueoffset)
                meta[name] = tiff.filehandle.read(tag.valuebytecount)
        if _resolution(first.tags):
            meta["resolution"] = _resolution(first.tags)
        if first.description:
            meta["description"] = first.description
        if tiff.imagej_metadata:
            meta.update({f"imagej:{k}": v for k, v in tiff.imagej_metadata.items()})
        meta["pages of tags"] = [{tag.code: tag.value for tag in page.tags} for page in tiff.pages]
        orientation = first.tags.get(274)
        photometric = first.photometric.name
        extra = [int(v) for v in first.extrasamples]
        meta["extra"] = extra
        if photometric in ("CIELAB", "ICCLAB"):
            meta["lab"] = True
            pages = [_lab(page) for page in pages]
    if not tiff.is_bigtiff:  # an EXIF block is a TIFF file
        meta = {**exif_of_bytes(path.read_bytes()), **meta}
    return Found(pages, None if orientation is None else int(orientation.value), meta, photometric)


def _without_opaque(frame: np.ndarray, file_format: str) -> np.ndarray:
    """GIF has one colour that is transparent, whether a pixel has it or not."""
    opaque = file_format == "GIF" and frame.shape[-1] == 4 and frame[..., 3].min() == 255
    return frame[..., :3] if opaque else frame


def _frames(path: Path) -> Found:
    with PIL.Image.open(path) as image:
        meta = _pillow_meta(image)
        orientation = image.getexif().get(274)
        frames, delays = [], []
        for frame in PIL.ImageSequence.Iterator(image):
            frame.load()
            delays.append(frame.info.get("duration"))
            mode = {"P": "RGBA" if "transparency" in frame.info else "RGB"}.get(frame.mode, frame.mode)
            frames.append(_without_opaque(np.asarray(frame.convert(mode)), image.format))
        meta["delays"] = delays
        meta["loop"] = image.info.get("loop")
        return Found(frames, orientation, meta)


def _heif(path: Path) -> Found:
    import pillow_heif

    heif = pillow_heif.open_heif(path, convert_hdr_to_8bit=False)
    pages = [np.asarray(image) for image in heif]
    info = heif.info
    meta = exif_of_bytes(info["exif"]) if info.get("exif") else {}
    orientation = meta.get("exif:Orientation", info.get("original_orientation"))
    if info.get("xmp"):
        meta["xmp"] = info["xmp"]
    if info.get("icc_profile"):
        meta["icc"] = info["icc_profile"]
    meta["bits"] = info.get("bit_depth")
    return Found(pages, orientation, meta)


def _avif(path: Path) -> Found:
    data = path.read_bytes()
    pixels = imagecodecs.avif_decode(data)
    flags = data[data.index(b"av1C") + 6]  # of the codec's configuration
    if flags & 0x40:  # 10 or 12 bits, as 16
        pixels = np.round(pixels * (65535 / (4095 if flags & 0x20 else 1023))).astype(np.uint16)
    pages = list(pixels) if pixels.ndim == 4 else [pixels]
    with PIL.Image.open(path) as image:
        meta = _pillow_meta(image)
        orientation = image.getexif().get(274)  # of irot and imir, which imagecodecs does not follow
    return Found(pages, orientation, meta)


def boxes(data: bytes):
    """The boxes of a JPEG XL or JPEG 2000 container: (type, content)."""
    position = 0
    while position + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, position)
        start = position + 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, start)
            start += 8
        end = len(data) if size == 0 else position + size
        yield kind, data[start:end]
        position = end


def _jxl(path: Path) -> Found:
    data = path.read_bytes()
    pixels = imagecodecs.jpegxl_decode(data)
    meta, orientation = {}, None
    if data[:2] != b"\xff\x0a":
        for kind, content in boxes(data):
            if kind == b"brob":
                kind, content = content[:4], imagecodecs.brotli_decode(content[4:])
            if kind == b"Exif":
                (offset,) = struct.unpack_from(">I", content)
                meta.update(exif_of_bytes(content[4 + offset :]))
                orientation = meta.get("exif:Orientation")
            if kind == b"xml ":
                meta["xmp"] = content
    return Found(list(pixels) if pixels.ndim == 4 else [pixels], orientation, meta)


def _jp2(path: Path) -> Found:
    return Found([imagecodecs.jpeg2k_decode(path.read_bytes())])


def _fits(path: Path) -> Found:
    import astropy.io.fits

    with astropy.io.fits.open(path) as hdus:
        data = np.asarray(hdus[0].data)
        meta = {f"card:{k}": v for k, v in hdus[0].header.items() if k}
        data = data.astype(data.dtype.newbyteorder("="))
    return Found(list(data) if data.ndim == 3 else [data], None, meta)


def _hdr(path: Path) -> Found:
    return Found([imagecodecs.rgbe_decode(path.read_bytes())])


def _exr(path: Path) -> Found:
    import OpenEXR

    with OpenEXR.File(str(path), separate_channels=True) as file:
        channels = file.channels()
        names = [n for n in ("Y", "R", "G", "B", "A") if n in channels]
        planes = [channels[n].pixels for n in names]
    return Found([planes[0] if len(planes) == 1 else np.stack(planes, axis=-1)])


def _bmp(path: Path) -> Found:
    with PIL.Image.open(path) as image:
        return Found([np.asarray(image)], None, {})


_READERS = {
    ".pgm": _pnm,
    ".ppm": _pnm,
    ".pnm": _pnm,
    ".pam": _pnm,
    ".pfm": _pfm,
    ".npy": _npy,
    ".jpg": _jpeg,
    ".jpeg": _jpeg,
    ".png": _png,
    ".tif": _tiff,
    ".tiff": _tiff,
    ".dng": _tiff,
    ".gif": _frames,
    ".webp": _frames,
    ".heic": _heif,
    ".avif": _avif,
    ".jxl": _jxl,
    ".jp2": _jp2,
    ".j2k": _jp2,
    ".fits": _fits,
    ".hdr": _hdr,
    ".exr": _exr,
    ".bmp": _bmp,
}
