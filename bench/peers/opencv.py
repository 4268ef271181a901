"""OpenCV's filters, with our windows, strengths and borders wherever it has them."""
import cv2

from . import Peer

WHITE = {"u8": 255, "u16": 65535, "f32": 1}
BORDER = {"symmetric": cv2.BORDER_REFLECT, "mirror": cv2.BORDER_REFLECT_101, "clamp": cv2.BORDER_REPLICATE}


class OpenCv:
    version = cv2.__version__

    def __init__(self, threads):
        cv2.setNumThreads(threads)

    def peers_of(self, case):
        make = {"bilateral": self._bilateral, "nlm": self._nlm, "median": self._median, "gaussian": self._gaussian,
                "box": self._box, "bm3d": self._bm3d}.get(case["method"])
        return [Peer("OpenCV", *found) for found in (make(case, case["params"]) if make else ())]

    # 8 bits and float; 16 bits have no choice but float. Of colours it adds the absolute differences where we take the
    # root of the mean square: of noise that is 3 sqrt(2 / pi) = 2.4 times as much.
    @staticmethod
    def _bilateral(case, params):
        if params["quality"] != "exact" or params["window"] != "disc":
            return
        kind = "u8" if case["type"] == "u8" else "f32"
        diameter, space = 2 * int(params["radius"]) + 1, float(params["sigma_space"])
        colour = float(params["sigma_range"]) * WHITE[kind] * (2.4 if case["colour"] == "rgb" else 1)
        border = BORDER[params["border"]]
        yield ("bilateralFilter", kind, False,
               lambda image, out: cv2.bilateralFilter(image, diameter, colour, space, out, border),
               f"{diameter}, {colour:.4g}, {space:g}")

    # 8 bits only (16 with another distance): all of ours meet it. It rounds the patches' distances to fewer bits.
    @staticmethod
    def _nlm(case, params):
        strength = float(params["h"]) * WHITE["u8"]
        patch, search = int(params["patch"]), int(params["search"])
        yield ("fastNlMeansDenoising", "u8", False,
               lambda image, out: cv2.fastNlMeansDenoising(image, out, strength, patch, search),
               f"{strength:.4g}, {patch}, {search}")

    # Packages have no bm3d (it is in a module of patented methods): its non-local means, strength and windows as most
    # use it.
    @staticmethod
    def _bm3d(case, params):
        yield ("fastNlMeansDenoising", "u8", False,
               lambda image, out: cv2.fastNlMeansDenoising(image, out, 25, 7, 21), "25, 7, 21")

    @staticmethod
    def _median(case, params):
        side = 2 * int(params["radius"]) + 1
        if case["type"] == "u8" or side <= 5:
            yield ("medianBlur", case["type"], False, lambda image, out: cv2.medianBlur(image, side, out), f"{side}")

    @staticmethod
    def _gaussian(case, params):
        sigma, side, border = float(params["sigma"]), 2 * int(params["radius"]) + 1, BORDER[params["border"]]
        yield ("GaussianBlur", case["type"], False,
               lambda image, out: cv2.GaussianBlur(image, (side, side), sigma, out, sigma, border),
               f"{side}, {sigma:g}")

    @staticmethod
    def _box(case, params):
        side, border = 2 * int(params["radius"]) + 1, BORDER[params["border"]]
        yield ("blur", case["type"], False,
               lambda image, out: cv2.blur(image, (side, side), out, (-1, -1), border), f"{side}")
