"""Functions with other libraries' names, arguments and units, so that a program changes one import.

`ungrain.compat.cv2` for OpenCV, `ungrain.compat.skimage` for scikit-image's `skimage.restoration`, `ungrain.compat.bm3d` and
`ungrain.compat.bm4d` for the packages of those names, `ungrain.compat.dipy` for DIPY's non-local means. Each says how near
it is to the original, as far as that was measured.
"""
