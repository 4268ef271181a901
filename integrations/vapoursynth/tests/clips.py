"""Clips with known content, and the program's result on the same frames."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import vapoursynth as vs

core = vs.core

# What ffmpeg and `ungrain video` call VapourSynth's formats, as raw frames.
RAW_NAMES = {
    vs.GRAY8: "gray", vs.GRAY10: "gray10le", vs.GRAY16: "gray16le",
    vs.YUV420P8: "yuv420p", vs.YUV420P10: "yuv420p10le", vs.YUV420P16: "yuv420p16le",
    vs.YUV422P8: "yuv422p", vs.YUV422P10: "yuv422p10le", vs.YUV422P16: "yuv422p16le",
    vs.YUV444P8: "yuv444p", vs.YUV444P12: "yuv444p12le", vs.YUV444P16: "yuv444p16le",
    vs.YUV411P8: "yuv411p",
    vs.RGB24: "rgb24", vs.RGB48: "rgb48le", vs.RGBS: "rgbf32le",
}


def plane_shapes(format: vs.VideoFormat, width: int, height: int) -> list[tuple[int, int]]:
    shapes = [(height, width)]
    for _ in range(format.num_planes - 1):
        shapes.append((height >> format.subsampling_h, width >> format.subsampling_w))
    return shapes


def dtype_of(format: vs.VideoFormat) -> np.dtype:
    if format.sample_type == vs.FLOAT:
        return np.dtype(np.float16 if format.bytes_per_sample == 2 else np.float32)
    return np.dtype(np.uint8 if format.bytes_per_sample == 1 else np.uint16)


def white_of(format: vs.VideoFormat) -> float:
    return 1.0 if format.sample_type == vs.FLOAT else float((1 << format.bits_per_sample) - 1)


def clean_plane(shape: tuple[int, int], scale: tuple[int, int], plane: int, frame: int, scene: int) -> np.ndarray:
    """Moving waves and bars, from 0 to 255."""
    y, x = np.mgrid[:shape[0], :shape[1]].astype(np.float64)
    y, x = y * scale[0], x * scale[1]
    if scene % 2:
        x, y = y * 1.7 + 31, x * 0.6
    waves = 120 + 50 * np.sin((x + 2 * frame) / 9 + plane) + 30 * np.cos(y / 7)
    return waves + 25 * (((x + 2 * frame) // 16 + y // 16 + plane) % 2)


def planes_of(id: int, width: int, height: int, frame: int, sigma: float = 10, scene: int = 0) -> list[np.ndarray]:
    """A noisy frame; sigma on the 0-255 scale."""
    format = core.get_video_format(id)
    planes = []
    for plane, shape in enumerate(plane_shapes(format, width, height)):
        scale = (height // shape[0], width // shape[1])
        noise = np.random.default_rng([frame, plane, 7]).normal(0, sigma, shape)
        values = (clean_plane(shape, scale, plane, frame, scene) + noise) * (white_of(format) / 255)
        if format.sample_type == vs.INTEGER:
            values = np.clip(np.rint(values), 0, white_of(format))
        elif format.color_family == vs.YUV and plane > 0:
            values -= 0.5
        planes.append(values.astype(dtype_of(format)))
    return planes


def clip_of(frames: list[list[np.ndarray]], id: int, width: int, height: int, properties=None) -> vs.VideoNode:
    """`properties` has a dict for each frame."""
    blank = core.std.BlankClip(format=id, width=width, height=height, length=len(frames), keep=True)

    def fill(n: int, f: vs.VideoFrame) -> vs.VideoFrame:
        made = f.copy()
        for plane, samples in enumerate(frames[n]):
            np.asarray(made[plane])[:] = samples
        for name, value in (properties[n] if properties else {}).items():
            made.props[name] = value
        return made

    return core.std.ModifyFrame(blank, blank, fill)


def noisy_clip(id: int, width: int = 96, height: int = 64, frames: int = 9, sigma: float = 10, cut: int | None = None,
               properties=None) -> tuple[vs.VideoNode, list[list[np.ndarray]]]:
    made = [planes_of(id, width, height, n, sigma, 0 if cut is None or n < cut else 1) for n in range(frames)]
    return clip_of(made, id, width, height, properties), made


def samples_of(frame: vs.VideoFrame) -> list[np.ndarray]:
    return [np.asarray(frame[plane]).copy() for plane in range(frame.format.num_planes)]


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def program(frames: list[list[np.ndarray]], id: int, folder: Path, *options: str) -> list[list[np.ndarray]]:
    """What `ungrain video` makes of the frames."""
    format = core.get_video_format(id)
    height, width = frames[0][0].shape
    rgb = format.color_family == vs.RGB
    raw = b"".join(np.stack(f, axis=-1).tobytes() if rgb else b"".join(p.tobytes() for p in f) for f in frames)
    (folder / "in.raw").write_bytes(raw)
    subprocess.run([os.environ["UNGRAIN"], "video", "in.raw", "-o", "out.raw", "--size", f"{width}x{height}", "--format",
                    RAW_NAMES[id], *options], cwd=folder, check=True, capture_output=True, text=True)
    samples = np.fromfile(folder / "out.raw", dtype_of(format))
    results, at = [], 0
    for _ in frames:
        if rgb:
            image = samples[at:at + 3 * width * height].reshape(height, width, 3)
            results.append([image[..., c] for c in range(3)])
            at += 3 * width * height
            continue
        planes = []
        for shape in plane_shapes(format, width, height):
            planes.append(samples[at:at + shape[0] * shape[1]].reshape(shape))
            at += shape[0] * shape[1]
        results.append(planes)
    return results
