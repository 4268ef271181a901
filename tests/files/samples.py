"""Metadata that the files carry."""

from __future__ import annotations

import struct
from functools import cache

import PIL.ExifTags
import PIL.Image
import PIL.ImageCms
from PIL.TiffImagePlugin import IFDRational

XMP = (
    '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Grüße</dc:title></rdf:Description></rdf:RDF>'
    '</x:xmpmeta><?xpacket end="w"?>'
).encode()


def iptc_record(dataset: int, value: bytes) -> bytes:
    return struct.pack(">BBBH", 0x1C, 2, dataset, len(value)) + value


# An odd number of bytes: what pads it is seen.
IPTC = (
    b"\x1c\x01\x5a\x00\x03\x1b%G"
    + iptc_record(5, "Straße".encode())
    + iptc_record(120, b"A caption")
    + iptc_record(25, b"noise")
)
PHOTOSHOP = b"8BIM\x04\x04\x00\x00" + struct.pack(">I", len(IPTC)) + IPTC + bytes(len(IPTC) % 2)

EXIF_TEXTS = {"Make": "Maker", "Model": "Model 7", "Software": "a program", "DateTime": "2024:05:06 07:08:09"}


def exif(orientation: int | None = None, odd: bool = False, thumbnail: bool = False) -> PIL.Image.Exif:
    block = PIL.Image.Exif()
    for name, text in EXIF_TEXTS.items():
        block[PIL.ExifTags.Base[name]] = text
    if orientation is not None:
        block[274] = orientation
    fields = block.get_ifd(PIL.ExifTags.IFD.Exif)
    fields[PIL.ExifTags.Base.ExposureTime] = IFDRational(1, 250)
    fields[PIL.ExifTags.Base.FNumber] = IFDRational(28, 10)
    fields[PIL.ExifTags.Base.ISOSpeedRatings] = 1600
    fields[PIL.ExifTags.Base.DateTimeOriginal] = "2024:05:06 07:08:09"
    fields[PIL.ExifTags.Base.LensModel] = "50 mm"
    gps = block.get_ifd(PIL.ExifTags.IFD.GPSInfo)
    gps[1], gps[2] = "N", (IFDRational(48), IFDRational(8), IFDRational(123, 10))
    if odd:
        block[PIL.ExifTags.Base.Artist] = "Jürgen Müller".encode()
        block[PIL.ExifTags.Base.ImageDescription] = "ein schönes Bild".encode()
        fields[PIL.ExifTags.Base.UserComment] = b"UNICODE\0" + "Größe".encode("utf-16-le")
        fields[PIL.ExifTags.Base.MakerNote] = b"Maker\0" + bytes(range(64))
    return block


EXIF_KEPT = {
    **{f"exif:{k}": v for k, v in EXIF_TEXTS.items() if k != "Software"},
    "exif:ExposureTime": 0.004,
    "exif:FNumber": 2.8,
    "exif:ISOSpeedRatings": 1600,
    "exif:DateTimeOriginal": "2024:05:06 07:08:09",
    "exif:LensModel": "50 mm",
    "gps:GPSLatitudeRef": "N",
    "gps:GPSLatitude": (48.0, 8.0, 12.3),
}


def same_text(text: str):
    """Pillow shows the UTF-8 of a tag as bytes or in Latin-1."""
    forms = {text, text.encode(), text.encode().decode("latin-1")}
    return lambda found: found in forms


EXIF_ODD_KEPT = {
    "exif:Artist": same_text("Jürgen Müller"),
    "exif:ImageDescription": same_text("ein schönes Bild"),
    "exif:UserComment": b"UNICODE\0" + "Größe".encode("utf-16-le"),
    "exif:MakerNote": b"Maker\0" + bytes(range(64)),
}


@cache
def icc() -> bytes:
    return PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
