"""scikit-image's non-local means, which runs on one thread."""
import skimage
from skimage import restoration

from . import Peer

LARGEST = 4_000_000  # samples; at half a Mpixel/s more would take all the time there is


class ScikitImage:
    version = skimage.__version__

    def __init__(self, threads):
        del threads  # it has none

    def peers_of(self, case):
        samples = case["width"] * case["height"] * (3 if case["colour"] == "rgb" else 1)
        if case["method"] != "nlm" or case["type"] != "f32" or samples > LARGEST:
            return []
        params = case["params"]
        patch, distance, h = int(params["patch"]), int(params["search"]) // 2, float(params["h"])
        axis = -1 if case["colour"] == "rgb" else None

        # Its fast mode: flat patches and shared sums, as ours.
        def call(image, out):
            del out
            return restoration.denoise_nl_means(image, patch, distance, h, fast_mode=True, channel_axis=axis)

        return [Peer("scikit-image", "denoise_nl_means", "f32", True, call, f"{patch}, {distance}, {h:.4g}, fast")]
