"""Volumes that tests compute on the spot."""

import numpy as np


def phantom(depth=24, height=30, width=28):
    """A head of sorts, values from 0 to 1: ellipsoids within each other, and two kinds of tissue in folds."""
    w, v, u = (2 * (np.arange(size) + 0.5) / size - 1 for size in (depth, height, width))
    w, v, u = np.meshgrid(w, v, u, indexing="ij")
    r = np.sqrt(u**2 / 0.85 + v**2 / 0.95 + w**2 / 0.9)
    folds = np.sin(5 * u + np.sin(3 * w)) * np.sin(4 * v + np.sin(3 * u)) * np.cos(4 * w + v)
    tissue = np.where(folds > 0.1, 0.8, 0.55)
    return np.select([r >= 1, r >= 0.9, r >= 0.82], [0, 0.75, 0.15], tissue).astype(np.float32)


def noisy_phantom(sigma=0.08, dtype=np.float32, seed=0, channels=None, **size):
    """In values from black to white of the type; `channels` along a last axis."""
    clean = phantom(**size)
    if channels:
        clean = np.stack([clean * (1 - 0.2 * c) for c in range(channels)], -1)
    volume = clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return volume.astype(dtype)
    white = np.iinfo(dtype).max
    return np.rint(np.clip((0.1 + 0.8 * volume) * white, 0, white)).astype(dtype)


def decibels(a, b, white=1.0):
    return 10 * np.log10(white**2 / np.mean((np.asarray(a, float) - b) ** 2))
