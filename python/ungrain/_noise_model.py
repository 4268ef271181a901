"""An image's noise: its deviation by level, by frequency and by channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _core
from ._errors import InvalidArgument


def _square(values: Any) -> np.ndarray:
    square = np.asarray(values, float)
    side = round(square.size ** 0.5)
    return square.reshape(side, side) if side * side == square.size else square


def _samples(values: Any) -> np.ndarray:
    samples = np.asarray(values, np.float32)
    if samples.ndim not in (2, 3):
        raise InvalidArgument(f"an array of 2 or 3 dimensions is needed, got {samples.ndim}")
    return np.ascontiguousarray(samples[..., None] if samples.ndim == 2 else samples)


@dataclass(frozen=True, eq=False)
class NoiseChannel:
    """One channel's noise: in coefficient [j, i] of the orthonormal 8 x 8 cosine transform of a patch whose mean is at
    one of ``levels``, it has the standard deviation ``deviations`` (there) times ``spectrum[j, i]``."""

    levels: np.ndarray  # ascending, pixel values
    deviations: np.ndarray  # at these levels; between them the variance is interpolated
    spectrum: np.ndarray  # 8 x 8; white noise: 1
    # Correlation of pixels' noise, -1 to 1, with (0, 0) in the middle of a square of an odd side; None: not known
    correlation: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """The noise of an image. For rgb the channels are luminance (r + g + b) / sqrt 3, then (r - b) / sqrt 2 and
    (r - 2 g + b) / sqrt 6, and the level is (r + g + b) / 3; for other images they are the image's own.

    ::

        model = ungrain.estimate_noise_model(image).model
        clean = ungrain.denoise(image, noise_model=model)
        json.dump(model.to_dict(), file)
    """

    channels: tuple[NoiseChannel, ...]

    @classmethod
    def by_level(cls, levels: Sequence[float], deviations: Sequence[float], channels: int = 1) -> NoiseModel:
        """White noise at each level, the same in all channels: 1 of a gray image, 3 of an rgb image."""
        curve = NoiseChannel(np.asarray(levels, float), np.asarray(deviations, float), np.ones((8, 8)))
        return cls((curve,) * channels)

    @classmethod
    def poisson_gaussian(cls, a: float, b: float, white: float, channels: int = 1) -> NoiseModel:
        """Variance a level + b, as a sensor delivers it before any processing; ``white`` in pixel values."""
        return cls.by_level([0, white], [np.sqrt(b), np.sqrt(a * white + b)], channels)

    @classmethod
    def from_psd(cls, psd: Any, channels: int = 1) -> NoiseModel:
        """Noise of a known power spectral density: frequency 0 first, as ``numpy.fft.fft2`` has it, of any size; its mean
        is the variance of a pixel, in squared pixel values. ``psd`` is [row, column], or [row, column, channel] with one
        for each of the image's ``channels`` (1 gray, 3 rgb), whose noise is independent.

        Of a picture of the noise alone: ``abs(np.fft.fft2(noise - noise.mean())) ** 2 / noise.size``, smoothed.
        """
        return cls.from_dict(_core.psd_model(_samples(psd), channels))

    @classmethod
    def from_kernel(cls, kernel: Any, sigma: float, channels: int = 1) -> NoiseModel:
        """White noise of deviation ``sigma`` that was convolved with ``kernel``, [row, column] or
        [row, column, channel]; a pixel then has the deviation sigma sqrt(sum(kernel**2))."""
        return cls.from_dict(_core.kernel_model(_samples(kernel), sigma, channels))

    def scaled(self, strength: float) -> NoiseModel:
        """Every deviation times ``strength``."""
        return NoiseModel(tuple(replace(c, deviations=c.deviations * strength) for c in self.channels))

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers, as JSON takes them."""
        def of_channel(c: NoiseChannel) -> dict[str, Any]:
            values = {"levels": c.levels, "deviations": c.deviations, "spectrum": c.spectrum}
            if c.correlation is not None:
                values["correlation"] = c.correlation
            return {name: np.asarray(value, float).ravel().tolist() for name, value in values.items()}

        return {"channels": [of_channel(c) for c in self.channels]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NoiseModel:
        return cls(tuple(NoiseChannel(np.asarray(c["levels"], float), np.asarray(c["deviations"], float),
                                      np.asarray(c["spectrum"], float).reshape(8, 8),
                                      _square(c["correlation"]) if "correlation" in c else None)
                         for c in values["channels"]))

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, NoiseModel) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class NoiseModelEstimate:
    """What was found: ``finding`` is "white" (one strength for all: ``sigma``), "by level" (photon noise) or "spectrum"
    (deviations differ by frequency, as cameras and compressors leave them)."""

    model: NoiseModel
    finding: str
    sigma: float  # as estimate_sigma() has it
    deviations: list[float]  # of each channel, root mean square over the image's pixels and all frequencies
    limited_by_colour: bool  # luminance was limited to a multiple of the colour differences' noise
    limited_by_iso: bool  # or by the ISO speed
