"""Pictures outside any test set, for what is tuned: scikit-image's own, halved by averaging 2 x 2 pixels and cut, and the
demo scene. And the program, run on arrays."""
import hashlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import skimage.data
from skimage import io

LUMINANCE = (0.299, 0.587, 0.114)
# Pictures, and where they are cut (top, left) once they are halved.
PICTURES = {"camera.png": (20, 60), "astronaut.png": (0, 70), "coffee.png": (40, 60), "chelsea.png": (20, 60),
            "motorcycle_left.png": (60, 120), "rocket.jpg": (40, 100), "brick.png": (0, 0), "coins.png": (10, 20),
            "ihc.png": (20, 40)}


def hash_of(pixels):
    return hashlib.sha256(f"{pixels.shape} {pixels.dtype} ".encode() + np.ascontiguousarray(pixels).tobytes()).hexdigest()


def forbidden_hashes(folder):
    kinds = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".pgm", ".ppm")
    files = [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.suffix.lower() in kinds]
    return {hash_of(io.imread(path)): path.name for path in files}


def halved(image):
    height, width = image.shape[0] // 2 * 2, image.shape[1] // 2 * 2
    even = image[:height, :width].astype(np.float64)
    return (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4


def psnr(truth, image):
    """The published tables': rounded and clipped to 8 bits, peak 255, no border left out."""
    return 10 * np.log10(255**2 / np.mean((truth - np.clip(np.round(image), 0, 255)) ** 2))


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = path, pathlib.Path(folder)

    def run(self, image, method, options):
        """The result and the program's report. Pixels from 0 to 255."""
        source, result = self.folder / "in.npy", self.folder / "out.npy"
        np.save(source, image.astype(np.float32))
        words = [word for key, value in options.items() for word in ("--" + key.replace("_", "-"), str(value))]
        done = subprocess.run([self.path, source, "-o", result, "--range", "255", "-m", method, "--json", *words],
                              check=True, capture_output=True, text=True)
        return np.load(result), json.loads(done.stdout)

    def denoise(self, image, method, options):
        """The result and the parameters that were used."""
        result, report = self.run(image, method, options)
        return result, report["params"]

    def scene(self):
        subprocess.run([self.path, "demo", "--size", "480x320", "-o", self.folder / "demo"], check=True,
                       capture_output=True)
        return io.imread(next((self.folder / "demo").glob("clean.*")))


def load(program, forbidden, side):
    """Gray and colour pictures from 0 to 255, `side` pixels square at most, and the lines that name them."""
    originals = {name: io.imread(pathlib.Path(skimage.data.__file__).parent / name) for name in PICTURES}
    originals["the demo scene, 480x320"] = program.scene()
    gray, colour, names = {}, {}, []
    for name, original in originals.items():
        found = hash_of(original)
        if found in forbidden:
            sys.exit(f"{name} is {forbidden[found]}: nothing may be tuned on a test image")
        names.append(f"- {name}: {found}")
        small = halved(original[..., :3] if original.ndim == 3 else original)
        top, left = PICTURES.get(name, (20, 60))
        cut = small[top:top + side, left:left + side]
        gray[name] = cut if cut.ndim == 2 else cut @ LUMINANCE
        if cut.ndim == 3:
            colour[name] = cut
    return gray, colour, names
