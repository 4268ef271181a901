"""A photograph: 8-bit colour, nothing known about its noise.

    python examples/photograph.py                      a picture that it draws itself
    python examples/photograph.py photo.jpg            yours (needs Pillow), written to photo.ungrain.jpg
    python examples/photograph.py photo.jpg out.png    or where you say
"""

import pathlib
import sys

import numpy as np

import ungrain


def drawn(height=320, width=480):
    """Sky, sun, hills and a fence."""
    y, x = np.mgrid[0:height, 0:width] / np.array([height, width])[:, None, None]
    image = np.stack([0.35 + 0.4 * y, 0.55 + 0.25 * y, 0.9 - 0.2 * y], axis=-1)
    image[(x - 0.75) ** 2 * 2.25 + (y - 0.25) ** 2 < 0.008] = (1.0, 0.9, 0.55)
    for level, colour in ((0.55, (0.45, 0.55, 0.35)), (0.68, (0.3, 0.45, 0.2)), (0.8, (0.2, 0.3, 0.12))):
        image[y > level + 0.06 * np.sin(7 * x + 20 * level)] = colour
    image[(y > 0.78) & (y < 0.95) & (np.sin(120 * x) > 0.6)] = (0.55, 0.4, 0.25)
    return np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)


def main():
    if len(sys.argv) > 1:
        from PIL import Image
        file = pathlib.Path(sys.argv[1])
        target = sys.argv[2] if len(sys.argv) > 2 else file.with_name(f"{file.stem}.ungrain{file.suffix}")
        Image.fromarray(ungrain.denoise(Image.open(file).convert("RGB"))).save(target)
        print(f"written to {target}")
        return
    clean = drawn()
    noisy = ungrain.add_noise(clean, 25, seed=1)
    print(f"noise: {ungrain.estimate_sigma(noisy):.1f} of 255, found in the picture alone (25 was added, then cut off)")

    result = ungrain.denoise(noisy)  # that is all
    print(f"PSNR {ungrain.psnr(clean, noisy):.2f} dB -> {ungrain.psnr(clean, result):.2f} dB with BM3D")

    # The others, by name; each follows the noise as well.
    for method in ("nlm", "bilateral", "median"):
        print(f"{method:>10}: {ungrain.psnr(clean, ungrain.denoise(noisy, method)):.2f} dB")
    assert ungrain.psnr(clean, result) > ungrain.psnr(clean, noisy) + 8


if __name__ == "__main__":
    main()
