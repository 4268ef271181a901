"""PNG files byte by byte: every depth, colour type, interlacing, and animation."""

from __future__ import annotations

import struct
import zlib

import numpy as np

GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Adam7: first row, first column, step of rows, step of columns.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _rows(samples: np.ndarray, depth: int) -> bytes:
    """Each row with the filter byte 0 before it."""
    height = samples.shape[0]
    if depth == 16:
        body = samples.astype(">u2").reshape(height, -1).view(np.uint8)
    elif depth == 8:
        body = samples.astype(np.uint8).reshape(height, -1)
    else:
        digits = np.unpackbits(samples.astype(np.uint8).reshape(height, -1, 1), axis=2)[..., 8 - depth :]
        body = np.packbits(digits.reshape(height, -1), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in body)


def compressed(samples: np.ndarray, depth: int, interlaced: bool = False) -> bytes:
    if not interlaced:
        return zlib.compress(_rows(samples, depth))
    parts = [samples[y::dy, x::dx] for y, x, dy, dx in _PASSES]
    return zlib.compress(b"".join(_rows(part, depth) for part in parts if part.size))


def header(samples: np.ndarray, depth: int, colour: int, interlaced: bool = False) -> bytes:
    height, width = samples.shape[:2]
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def png(
    samples: np.ndarray, depth: int, colour: int, interlaced: bool = False, before: bytes = b"", after: bytes = b""
) -> bytes:
    """`before` and `after` are chunks around the pixels."""
    return (
        SIGNATURE
        + header(samples, depth, colour, interlaced)
        + before
        + chunk(b"IDAT", compressed(samples, depth, interlaced))
        + after
        + chunk(b"IEND", b"")
    )


def animated(frames: list[np.ndarray], colour: int) -> bytes:
    """One frame after another, each whole, 100 ms long."""
    height, width = frames[0].shape[:2]
    data = SIGNATURE + header(frames[0], 8, colour) + chunk(b"acTL", struct.pack(">II", len(frames), 0))
    number = 0
    for index, frame in enumerate(frames):
        data += chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, 1, 10, 0, 0))
        number += 1
        pixels = compressed(frame, 8)
        if index == 0:
            data += chunk(b"IDAT", pixels)
        else:
            data += chunk(b"fdAT", struct.pack(">I", number) + pixels)
            number += 1
    return data + chunk(b"IEND", b"")
