"""The pictures that the files hold: what they show without noise, and the same with noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 48, 40  # not square, so that a turned picture is seen

COLOURS = {
    "gray": 1,
    "gray+alpha": 1,
    "rgb": 3,
    "rgb+alpha": 3,
    "cmyk": 4,
    "2 channels": 2,
    "4 channels": 4,
    "5 channels": 5,
}
TYPES = {
    "u8": np.uint8,
    "u16": np.uint16,
    "f16": np.float16,
    "f32": np.float32,
    "i8": np.int8,
    "i16": np.int16,
    "u32": np.uint32,
    "i32": np.int32,
    "u64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
}


def type_name(dtype) -> str:
    return {np.dtype(t): name for name, t in TYPES.items()}.get(np.dtype(dtype).newbyteorder("="), str(dtype))


def white_of(dtype) -> float:
    """What 1 becomes in a type, unless a file says otherwise."""
    dtype = np.dtype(dtype)
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


def has_alpha(layout: str) -> bool:
    return layout.endswith("+alpha")


def channels_of(layout: str) -> int:
    return COLOURS[layout] + has_alpha(layout)


def _plane(width: int, height: int, channel: int, page: int) -> np.ndarray:
    """Soft shapes that no turn, mirroring or exchange of pages or channels leaves as they are, from 0.1 to 0.9."""
    y, x = np.mgrid[0:height, 0:width]
    x, y = (x + 0.5) / width, (y + 0.5) / height
    disc = 1 / (1 + np.exp(30 * (np.hypot(x - 0.3, 0.8 * (y - 0.25)) - 0.18)))
    value = 0.15 + 0.25 * x + 0.15 * y + 0.25 * disc
    return np.clip(value + 0.06 * np.sin(5 * x + 2 * channel) + 0.04 * channel / 2 + 0.035 * ((page * 3) % 5), 0.1, 0.9)


def _alpha(width: int, height: int) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    return np.clip(0.5 + 0.6 * x / width - 0.2 * y / height, 0, 1)


def _page(layout: str, page: int, width: int, height: int) -> np.ndarray:
    planes = [_plane(width, height, c, page) for c in range(COLOURS[layout])]
    if has_alpha(layout):
        planes.append(_alpha(width, height))
    return planes[0] if len(planes) == 1 else np.stack(planes, axis=-1)


@dataclass
class Picture:
    """Pages of (height, width) or (height, width, channels), 0 black and 1 white, upright."""

    layout: str
    pages: list[np.ndarray]

    @property
    def image(self) -> np.ndarray:
        return self.pages[0]

    @property
    def stack(self) -> np.ndarray:
        return np.stack(self.pages)


def clean(layout: str = "gray", pages: int = 1, width: int = WIDTH, height: int = HEIGHT) -> Picture:
    return Picture(layout, [_page(layout, page, width, height) for page in range(pages)])


def noisy(layout: str = "gray", pages: int = 1, sigma: float = 20 / 255) -> Picture:
    """The clean picture with Gaussian noise on all but alpha."""
    picture = clean(layout, pages)
    rng = np.random.default_rng(7)
    for page in picture.pages:
        colours = page.reshape(*page.shape[:2], -1)[..., : COLOURS[layout]]
        colours += sigma * rng.standard_normal(colours.shape)
        np.clip(colours, 0, 1, out=colours)
    return picture


def scaled(image: np.ndarray, dtype, white: float | None = None, low: float = 0) -> np.ndarray:
    """0 to 1 as low to white of a type."""
    dtype = np.dtype(dtype)
    white = white_of(dtype) if white is None else white
    values = low + image * (white - low)
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    # The largest 64-bit integers are no doubles.
    return np.clip(
        np.round(values), limits.min, np.nextafter(float(limits.max), 0) if dtype.itemsize == 8 else limits.max
    ).astype(dtype)


def u8(image: np.ndarray) -> np.ndarray:
    return scaled(image, np.uint8)


def u16(image: np.ndarray) -> np.ndarray:
    return scaled(image, np.uint16)


def f32(image: np.ndarray) -> np.ndarray:
    return scaled(image, np.float32)


def psnr(truth: np.ndarray, image: np.ndarray) -> float:
    error = np.mean((truth - image) ** 2)
    return float("inf") if error == 0 else float(-10 * np.log10(error))


# What turns a picture, stored as an EXIF orientation says, upright; and upright into what is stored.
_UPRIGHT = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: np.swapaxes(a, 0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.swapaxes(a[::-1, ::-1], 0, 1),
    8: lambda a: np.rot90(a, 1),
}


def upright(stored: np.ndarray, orientation: int) -> np.ndarray:
    return np.ascontiguousarray(_UPRIGHT[orientation](stored))


def stored_as(image: np.ndarray, orientation: int) -> np.ndarray:
    """What a file with this orientation stores, so that it shows `image`."""
    return upright(image, {6: 8, 8: 6}.get(orientation, orientation))
