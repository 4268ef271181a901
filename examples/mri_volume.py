"""A magnitude MRI volume, step by step: noise that is Rician, filtered as a solid and slice by slice; pictures beside each other."""

# %% A head of ellipsoids, and what a scanner makes of it
import struct
import zlib

import numpy as np

import ungrain

SHAPE = (40, 72, 64)  # z, y, x
z, y, x = (np.linspace(-1, 1, n).reshape([-1 if axis == i else 1 for i in range(3)]) for axis, n in enumerate(SHAPE))


def inside(cx, cy, cz, a, b, c):
    return ((x - cx) / a) ** 2 + ((y - cy) / b) ** 2 + ((z - cz) / c) ** 2 <= 1


clean = np.zeros(SHAPE, np.float32)
clean[inside(0, 0, 0, .9, .95, .9)] = 900  # scalp
clean[inside(0, 0, 0, .8, .86, .8)] = 500  # gray matter
folds = np.sin(7 * x + np.sin(4 * z)) * np.sin(6 * y + np.sin(5 * x)) + 0 * z > 0.2
clean[inside(0, 0, 0, .74, .8, .74) & folds] = 700  # white matter
clean[inside(-.2, .05, 0, .12, .3, .3) | inside(.2, .05, 0, .12, .3, .3)] = 200  # ventricles

sigma = 60.0
rng = np.random.default_rng(1)
scan = np.hypot(clean + rng.normal(0, sigma, SHAPE), rng.normal(0, sigma, SHAPE)).astype(np.float32)

# %% How much noise is there? Measured in the background and the object
found = ungrain.estimate_rician(scan)
print(f"sigma {found.sigma:.1f}, measured in the {found.source} ({sigma:g} was added)")

# %% The volume as a solid, with the noise of magnitudes; and slice by slice, as if it were Gaussian
solid = ungrain.denoise_volume(scan, "bm4d", rician=True, sigma=found.sigma, range=1000)
fast = ungrain.denoise_volume(scan, "nlm3d", rician=True, sigma=found.sigma, range=1000)
slices = ungrain.denoise(scan, "bm3d", sigma=found.sigma, range=1000, axis=0)

# %% What each is worth
object_, background = clean > 0, ~inside(0, 0, 0, 1, 1.05, 1)


def report(name, volume):
    error = np.sqrt(((volume - clean)[object_] ** 2).mean())
    print(f"{name:28} error in the object {error:5.1f}, mean of the background {volume[background].mean():5.1f}")
    return error


errors = [report(name, volume) for name, volume in
          (("scan", scan), ("bm3d, slice by slice", slices), ("nlm3d", fast), ("bm4d", solid))]
assert errors[3] < errors[1] < errors[0]
assert solid[background].mean() < 0.05 * sigma < scan[background].mean()


# %% The middle slice of each, side by side: mri_volume.png
def write_png(path, image):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    header = struct.pack(">2I5B", image.shape[1], image.shape[0], 8, 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


strip = np.hstack([volume[SHAPE[0] // 2] for volume in (clean, scan, slices, fast, solid)])
write_png("mri_volume.png", np.clip(strip / 1000 * 255, 0, 255).astype(np.uint8))
print("mri_volume.png: the truth, the scan, bm3d by slices, nlm3d, bm4d")
