"""Functions with other libraries' names, arguments and units, so that a program changes one import.

`ungrain.compat.cv2` for OpenCV, `ungrain.compat.skimage` for scikit-image's `skimage.restoration`. Each says how near it
is to the original, as the tests measure it.
"""
