"""Image denoising that keeps edges, on any array and on its own device.

    import ungrain

    clean = ungrain.denoise(image)                        # measures the noise, then BM3D
    clean = ungrain.nlm(image, sigma=12, search=21)       # one function a method
    ungrain.bilateral(image, radius=7, out=image)         # in place

Images are NumPy, CuPy or PyTorch arrays, or any that speak DLPack; results are of the same library, type and layout, and
GPU arrays stay on their GPU. Volumes of voxels go through ``denoise_volume``. `ungrain.compat.cv2` and
`ungrain.compat.skimage` have those libraries' functions.
"""

from . import _methods
from ._core import version as __version__
from ._denoise import Denoiser, Report, denoise
from ._errors import (BadPixels, Cancelled, CannotRead, DeviceError, Error, InvalidArgument, InvalidType, NoDevice,
                      OutOfMemory, Unsupported)
from ._measure import (Comparison, Device, RicianEstimate, add_noise, compare, devices, estimate_noise_model, estimate_rician,
                       estimate_sigma, fsim, psnr, ssim)
from ._methods import *  # noqa: F403
from ._noise_model import NoiseChannel, NoiseModel, NoiseModelEstimate
from ._video import denoise_video
from ._volume import denoise_volume

__all__ = ["BadPixels", "Cancelled", "CannotRead", "Comparison", "Denoiser", "Device", "DeviceError", "Error",
           "InvalidArgument", "InvalidType", "NoDevice", "NoiseChannel", "NoiseModel", "NoiseModelEstimate", "OutOfMemory", "Report",
           "RicianEstimate", "Unsupported", "__version__", "add_noise", "compare", "denoise", "denoise_video", "denoise_volume",
           "devices", "estimate_noise_model", "estimate_rician", "estimate_sigma", "fsim", "psnr", "ssim"]
__all__ += _methods.__all__
