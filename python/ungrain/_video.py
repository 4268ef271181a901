"""denoise_video(): frames in, frames of the same library, type and layout out, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _core
from ._arrays import CONVERTED, NumPyArrays, adopt, channels_of, white_level
from ._denoise import Array, _check_white, _with_noise, _with_sigma, check_options, true_or_false
from ._errors import InvalidArgument, InvalidType, shown
from ._noise_model import NoiseModel


def _frames_around(method: str, preset: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """With the number of frames before and after that take part, where it is left open."""
    if "radius_t" in given or preset is not None:
        return given
    frames = _core.clip_radius_t(method, preset, given)
    return {**given, "radius_t": frames} if frames > 0 else given


class _Clip:
    """A run, and what its results will look like."""

    def __init__(self, method: str, preset: str | None, given: dict[str, Any], channel_axis: int, channels: str,
                 range: float | None, device: str, threads: int, memory: int, nonfinite: str, find_cuts: bool) -> None:
        self._make = (method, preset, given)
        self._layout = (channel_axis, channels)
        self._range = range
        self._run: tuple[Any, ...] = (device, threads, memory, nonfinite, find_cuts)
        self._core: _core.Clip | None = None
        self._first: tuple[tuple[int, ...], str] | None = None
        # Frames whose results are to come: library, frame, and the type that its samples are worked on in.
        self._under_way: deque[tuple[Any, Any, np.dtype[Any]]] = deque()
        self._count = 0

    def _start(self, frame: Any, shape: tuple[int, ...], dtype: str) -> None:
        channel_axis, channels = self._layout
        channels = channels_of(frame, channels)
        self._layout = (channel_axis, channels)
        self._first = (shape, dtype)
        self._core = _core.Clip(*self._make, list(shape), CONVERTED.get(dtype, (dtype,))[0], channel_axis, channels,
                                white_level(dtype, self._range), *self._run)

    def _running(self) -> _core.Clip:
        assert self._core is not None  # a frame was given
        return self._core

    def give(self, frame: Any) -> None:
        library, image = adopt(frame, "a frame")
        work = NumPyArrays.readable(library.to_host(library.readable(image, "a frame")), "a frame")
        shape, dtype = tuple(image.shape), library.dtype_name(image)
        if self._first is None:
            self._start(frame, shape, dtype)
        elif (shape, dtype) != self._first:
            raise InvalidArgument(f"frame {self._count} is {dtype} of shape {shape}, the first one {self._first[1]} of shape "
                                  f"{self._first[0]}")
        self._running().give(work, *self._layout)
        self._under_way.append((library, image, work.dtype))
        self._count += 1

    def take(self) -> Any:
        library, like, dtype = self._under_way.popleft()
        result = library.empty_like(like)
        if library is NumPyArrays and library.usable(result):
            self._running().take(result, *self._layout)
            return result
        work = np.empty(tuple(like.shape), dtype)
        self._running().take(work, *self._layout)
        library.store(library.from_host(work, like), result)
        return result

    def wait(self, gives: bool) -> str:
        """"result", "room" or "end"."""
        if self._core is None:
            return "room" if gives else "end"
        return self._core.wait(gives)

    def finish(self) -> None:
        if self._core is not None:
            self._core.finish()

    def stop(self) -> None:
        if self._core is not None:
            self._core.stop()

    def check_white(self) -> bool:
        """Whether the noise is known already."""
        level = -1.0 if self._core is None else self._core.noise_level()
        if level >= 0 and self._first is not None:
            _check_white(level, self._first[1], self._range)
        return level >= 0


def _results(frames: Iterator[Any], clip: _Clip) -> Iterator[Any]:
    raised: Exception | None = None
    gives, told = True, False
    try:
        while (event := clip.wait(gives)) != "end":
            if event == "result":
                result = clip.take()
                told = told or clip.check_white()
                yield result
                del result  # so that it is the caller's alone
                continue
            try:
                frame = next(frames)
            except StopIteration:
                gives = False
            except Exception as error:  # comes after the frames before it
                raised, gives = error, False
            else:
                clip.give(frame)
                del frame
            if not gives:
                clip.finish()
        if not told:
            clip.check_white()
        if raised is not None:
            raise raised
    finally:
        clip.stop()


def denoise_video(frames: Iterable[Array], method: str = "bm3d", *, sigma: float | Sequence[float] | str = "auto",
                  device: str = "auto", preset: str | None = None, channel_axis: int = -1, channels: str = "auto",
                  range: float | None = None, nonfinite: str = "fill", threads: int = 0, memory: int = 0,
                  noise_model: NoiseModel | None = None, strength: float = 1, luminance: float = 1, chroma: float = 1,
                  keep_grain: float = 0, clipping: str = "auto", find_cuts: bool = True,
                  **parameters: Any) -> Iterator[Array]:
    """Denoise a clip, frame by frame in bounded memory.

    ::

        for clean in ungrain.denoise_video(frames, "nlm"):
            show(clean)

    Frames are read from ``frames`` in the caller's thread when there is room for them, and denoised in another thread
    meanwhile. Cuts are found, and each scene is denoised by itself: where ``sigma`` is "auto", with the noise that is
    measured on every second of its first 16 frames.

    Parameters
    ----------
    frames : iterable of arrays, or an array
        Frames of one shape and type, as ``ungrain.denoise`` takes images: from a list, a generator, a reader of
        files. Of an array, the first axis is time: time x height x width, or time x height x width x channels. Arrays
        on a GPU are copied to the host and the results back.
    method : str
        One of ``ungrain.methods()``.
    channel_axis : int
        Where a frame's channels are, if it has three axes.
    find_cuts : bool
        False: the whole clip is one scene.
    sigma, device, preset, channels, range, nonfinite, threads, memory, noise_model, strength, luminance, chroma, keep_grain, clipping
        As for ``ungrain.denoise``.
    **parameters
        The method's own. ``radius_t``, the frames before and after that take part, is 1 unless given, for bm3d 2, 4 or 6 by its profile;
        methods without it filter each frame by itself, as does a preset that does not set it.

    Returns
    -------
    iterator of arrays
        One for each frame, in order, of the same library, shape and type. Closing it (``close()``, or leaving the loop)
        stops the work. What ``frames`` raises is raised after the results of the frames before it.
    """
    try:
        iterator = iter(frames)
    except TypeError:
        raise InvalidType(f"frames takes arrays in any iterable, or an array of them, got {shown(frames)}") from None
    given = _with_noise(_with_sigma(sigma, parameters), noise_model, strength, luminance, chroma, keep_grain, clipping)
    try:
        _core.needs_image(method, preset, given)  # raises where they are not the method's
        given = _frames_around(method, preset, given)
    except TypeError:
        check_options(method=method, preset=preset)
        raise
    check_options(device=device, channel_axis=channel_axis, channels=channels, nonfinite=nonfinite, threads=threads,
                  memory=memory)
    clip = _Clip(method, preset, given, channel_axis, channels, range, device, threads, memory, nonfinite,
                 true_or_false("find_cuts", find_cuts))
    return _results(iterator, clip)
