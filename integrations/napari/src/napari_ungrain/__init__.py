"""ungrain in napari. The widget is in the menu Plugins; `denoise_array` does the same from a script."""

from ._arrays import KINDS, denoise_array

__all__ = ["KINDS", "denoise_array"]
