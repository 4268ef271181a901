"""The test images that bm3d is measured on: their noise, and what the literature has for them."""
import numpy as np
from skimage import io

TABULATED = (15, 25, 50)  # sigmas of the literature's tables
DRAWS = 3
# BM3D of its authors on six of Set12, as the literature has it.
PUBLISHED = {"01": (31.91, 29.45, 26.13), "03": (32.69, 30.16, 26.68), "05": (31.85, 29.25, 25.82), "07": (31.37, 28.93, 25.90),
             "09": (33.10, 30.71, 27.22), "11": (31.92, 29.61, 26.81)}
PUBLISHED_COLOUR = (34.28, 31.68, 28.46)  # CBM3D, mean over all 24 of Kodak's


def images_of(folder):
    return {path.stem: io.imread(path).astype(np.float64) for path in sorted(folder.glob("*.png"))}


def noisy_versions(images, sigmas, draws):
    return {(name, sigma, draw): image + np.random.default_rng([sigma, draw, index]).normal(0, sigma, image.shape)
            for index, (name, image) in enumerate(images.items()) for sigma in sigmas for draw in range(draws)}
