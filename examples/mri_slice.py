"""A magnetic resonance slice: int16 magnitudes, a dark background, and a region that must not be blurred."""

import numpy as np

import ungrain

# Shepp and Logan's head: value, half axes, centre, angle in degrees.
ELLIPSES = [(1.0, .69, .92, 0, 0, 0), (-.8, .6624, .874, 0, -.0184, 0), (-.2, .11, .31, .22, 0, -18),
            (-.2, .16, .41, -.22, 0, 18), (.1, .21, .25, 0, .35, 0), (.1, .046, .046, 0, .1, 0),
            (.1, .046, .046, 0, -.1, 0), (.1, .046, .023, -.08, -.605, 0), (.1, .023, .023, 0, -.606, 0),
            (.1, .023, .046, .06, -.605, 0)]


def phantom(side=256, white=1200):
    y, x = np.mgrid[1:-1:side * 1j, -1:1:side * 1j]
    image = np.zeros((side, side))
    for value, a, b, cx, cy, degrees in ELLIPSES:
        cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        u, v = (x - cx) * cosine + (y - cy) * sine, (y - cy) * cosine - (x - cx) * sine
        image[(u / a) ** 2 + (v / b) ** 2 <= 1] += value
    return image * white


def main():
    clean, sigma = phantom(), 40.0
    rng = np.random.default_rng(3)
    # Noise in both parts of a complex signal, of which the magnitude is kept (Rician).
    magnitude = np.hypot(clean + rng.normal(0, sigma, clean.shape), rng.normal(0, sigma, clean.shape))
    scan = np.rint(magnitude).astype(np.int16)

    # The noise is known from the scanner, or from a part of the picture where there is nothing but noise.
    background = scan[:24, :24].astype(float)
    found = np.sqrt((background**2).mean() / 2)
    print(f"noise {found:.1f} from the background ({sigma:g} was added)")

    result = ungrain.denoise(scan, sigma=found, range=1200)  # int16 in, int16 out
    # A magnitude is never negative, so noise lifts the dark parts: the mean of one of A is about A + sigma² / 2A.
    unbiased = np.sqrt(np.maximum(result.astype(np.float32) ** 2 - found**2, 0))

    inside = clean > 0

    def error(image):
        return np.sqrt(((image - clean)[inside] ** 2).mean())
    print(f"root mean square error inside the head: {error(scan):.1f} -> {error(result):.1f}, "
          f"{error(unbiased):.1f} without the bias")
    assert result.dtype == np.int16 and error(unbiased) < error(result) < error(scan) / 1.5


if __name__ == "__main__":
    main()
