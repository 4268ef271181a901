"""TIFF files byte by byte, for what no library writes: odd depths, broken links, raw pictures."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED, FLOAT, DOUBLE = 1, 2, 3, 4, 5, 7, 11, 12
_CODES = {BYTE: "B", SHORT: "H", LONG: "I", FLOAT: "f", DOUBLE: "d", 16: "Q"}


@dataclass
class Directory:
    """Tags by number: (type, value). A value is a list of numbers, bytes, a text, or directories (their offsets)."""

    tags: dict
    strips: list[bytes] = field(default_factory=list)
    tiled: bool = False
    strip_offsets: list[int] | None = None  # in place of the strips' own


def image_tags(width: int, height: int, bits=8, channels=1, photometric=1, **more) -> dict:
    tags = {
        256: (LONG, [width]),
        257: (LONG, [height]),
        258: (SHORT, [bits] * channels),
        259: (SHORT, [1]),
        262: (SHORT, [photometric]),
        277: (SHORT, [channels]),
        278: (LONG, [height]),
    }
    tags.update({int(code.lstrip("t")): value for code, value in more.items()})
    return tags


class _File:
    def __init__(self, order: str, big: bool):
        self.order, self.big = order, big
        self.data = bytearray(16 if big else 8)

    def pack(self, code: str, *values) -> bytes:
        return struct.pack(self.order + code, *values)

    @property
    def offset_code(self) -> str:
        return "Q" if self.big else "I"

    def append(self, content: bytes) -> int:
        if len(self.data) % 2:
            self.data += b"\0"
        self.data += content
        return len(self.data) - len(content)

    def encode(self, kind: int, value) -> tuple[int, bytes]:
        """How many values, and their bytes."""
        if isinstance(value, str):
            value = value.encode() + b"\0"
        if isinstance(value, bytes):
            return len(value), value
        if kind == RATIONAL:
            return len(value), b"".join(self.pack("II", *pair) for pair in value)
        return len(value), self.pack(f"{len(value)}{_CODES[kind]}", *value)

    def add(self, directory: Directory) -> tuple[int, int]:
        """Where the directory begins, and where its link to the next one stands."""
        tags = dict(directory.tags)
        if directory.strips:
            offsets = directory.strip_offsets or [self.append(strip) for strip in directory.strips]
            tags[324 if directory.tiled else 273] = (16 if self.big else LONG, offsets)
            tags[325 if directory.tiled else 279] = (LONG, [len(strip) for strip in directory.strips])
        entries = b""
        room = 8 if self.big else 4
        for code in sorted(tags):
            kind, value = tags[code]
            if isinstance(value, list) and value and isinstance(value[0], Directory):
                value = [self.add(sub)[0] for sub in value]
            count, content = self.encode(kind, value)
            if len(content) > room:
                content = self.pack(self.offset_code, self.append(content))
            entries += self.pack("HH" + self.offset_code, code, kind, count) + content.ljust(room, b"\0")
        start = self.append(self.pack("Q" if self.big else "H", len(tags)) + entries + bytes(room))
        return start, len(self.data) - room

    def link(self, place: int, target: int) -> None:
        content = self.pack(self.offset_code, target)
        self.data[place : place + len(content)] = content


def tiff(directories: list[Directory], order: str = "<", big: bool = False, last_link=0) -> bytes:
    """`last_link`: what the last directory's link says: a number, or the index of a directory as "cycle N"."""
    file = _File(order, big)
    mark = b"II" if order == "<" else b"MM"
    file.data[:4] = mark + file.pack("H", 43 if big else 42)
    place = 8 if big else 4
    if big:
        file.data[4:8] = file.pack("HH", 8, 0)
    starts = []
    for directory in directories:
        start, next_place = file.add(directory)
        file.link(place, start)
        starts.append(start)
        place = next_place
    if isinstance(last_link, str):
        last_link = starts[int(last_link.split()[1])]
    file.link(place, last_link)
    return bytes(file.data)
