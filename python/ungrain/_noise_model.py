"""What is known of an image's noise: its deviation by level, by frequency and by channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class NoiseChannel:
    """One channel's noise: in coefficient [j, i] of the orthonormal 8 x 8 cosine transform of a patch whose mean is at
    one of ``levels``, it has the standard deviation ``deviations`` (there) times ``spectrum[j, i]``."""

    levels: np.ndarray  # ascending, pixel values
    deviations: np.ndarray  # at these levels; between them the variance is interpolated
    spectrum: np.ndarray  # 8 x 8; white noise: 1


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

    def scaled(self, strength: float) -> NoiseModel:
        """Every deviation times ``strength``."""
        return NoiseModel(tuple(NoiseChannel(c.levels, c.deviations * strength, c.spectrum) for c in self.channels))

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers, as JSON takes them."""
        return {"channels": [{"levels": np.asarray(c.levels, float).tolist(),
                              "deviations": np.asarray(c.deviations, float).tolist(),
                              "spectrum": np.asarray(c.spectrum, float).ravel().tolist()} for c in self.channels]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NoiseModel:
        return cls(tuple(NoiseChannel(np.asarray(c["levels"], float), np.asarray(c["deviations"], float),
                                      np.asarray(c["spectrum"], float).reshape(8, 8)) for c in values["channels"]))

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, NoiseModel) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class NoiseModelEstimate:
    """What was found: ``finding`` is "white" (one strength for all: ``sigma``), "by level" (photon noise) or "spectrum"
    (other deviations at other frequencies, as cameras and compressors leave)."""

    model: NoiseModel
    finding: str
    sigma: float  # as estimate_sigma() has it
    deviations: list[float]  # of each channel, root mean square over the image's pixels and all frequencies
    limited_by_colour: bool  # luminance was limited to a multiple of the colour differences' noise
    limited_by_iso: bool  # or by the ISO speed
