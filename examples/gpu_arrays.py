"""Arrays on a GPU: CuPy's and PyTorch's, worked on where they lie, on the stream that is current there.

Exits with status 77 and the reason where there is no GPU, or neither library.
"""

import sys

import numpy as np

import ungrain


def frames():
    y, x = np.mgrid[0:512, 0:512] / 512
    clean = (0.5 + 0.3 * np.sin(20 * x * y) + 0.2 * ((8 * x).astype(int) % 2)).astype(np.float32)
    return clean, [ungrain.add_noise(clean, 0.1, seed=seed) for seed in range(4)]


def with_cupy(cupy):
    clean, noisy = frames()
    denoiser = None
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for frame in noisy:
            image = cupy.asarray(frame)
            # Made once, on the first frame; each call only queues work on this stream.
            denoiser = denoiser or ungrain.Denoiser("nlm", like=image)
            denoiser(image, out=image)
        stream.synchronize()
        print(f"CuPy: {denoiser}, {ungrain.psnr(clean, noisy[-1]):.2f} dB -> {ungrain.psnr(clean, image):.2f} dB")


def with_torch(torch):
    clean, noisy = frames()
    batch = torch.from_numpy(np.stack(noisy))[:, None].cuda()  # N x C x H x W, as networks have it
    result = ungrain.bilateral(batch, axis=0, channel_axis=1, sigma=0.1)
    before, after = (ungrain.psnr(clean, each[-1, 0]) for each in (batch, result))
    print(f"PyTorch: {tuple(result.shape)} on {result.device}, {before:.2f} dB -> {after:.2f} dB")


def main():
    gpus = [device for device in ungrain.devices() if device.name.startswith("cuda")]
    if not any(device.usable for device in gpus):
        print(f"no GPU: {gpus[0].reason}")
        sys.exit(77)
    ran = 0
    for name, example in (("cupy", with_cupy), ("torch", with_torch)):
        try:
            library = __import__(name)
        except ImportError:
            print(f"{name} is not installed")
            continue
        example(library)
        ran += 1
    sys.exit(0 if ran else 77)


if __name__ == "__main__":
    main()
