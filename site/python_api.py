"""The page of the Python package's reference: what mkdocstrings is to read, in the order in which a reader wants it."""

from __future__ import annotations

import ast
from pathlib import Path

package: Path | None = None  # the folder that has ungrain/

FIRST = ["denoise", "denoise_video", "denoise_volume", "Denoiser", "Report"]
MEASURING = ["estimate_sigma", "estimate_noise_model", "estimate_rician", "add_noise", "psnr", "ssim", "fsim", "compare", "devices",
             "Comparison", "Device", "NoiseModel", "NoiseChannel", "NoiseModelEstimate", "RicianEstimate"]
MODULES = ["ungrain.dask", "ungrain.compat.cv2", "ungrain.compat.skimage", "ungrain.compat.bm3d", "ungrain.compat.bm4d",
           "ungrain.compat.dipy"]


def _names(path: Path) -> list[str]:
    """__all__ of a file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []


def _entries(names: list[str], module: str = "ungrain") -> list[str]:
    return [line for name in names for line in (f"::: {module}.{name}", "")]


def page() -> str:
    stubs = package / "ungrain/_methods.pyi"
    methods = _names(stubs) if stubs.exists() else []
    named = _names(package / "ungrain/__init__.py")
    errors = [name for name in named if name not in FIRST + MEASURING and name != "__version__"]
    lines = ["# The Python package", "", "[From Python](../python.md) says what is for what.", "", "## Denoising", "", *_entries(FIRST)]
    if methods:
        lines += ["## Methods", "", "Made from the same table as the command line's options.", "", *_entries(methods, "ungrain._methods")]  # made when the package is built: the stubs know them
    lines += ["## Measuring", "", *_entries(MEASURING), "## Errors", "", *_entries(errors), "## Modules", ""]
    for module in MODULES:
        lines += [f"::: {module}", ""]
    return "\n".join(lines)
