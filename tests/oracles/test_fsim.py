"""FSIM and FSIMc against their definition written in NumPy, and against the values that piq gives.

The definition is that of Zhang, Zhang, Mou, Zhang (2011) over Kovesi's phase congruency."""
import numpy as np
import pytest
from conftest import picture

SCALES, ORIENTATIONS = 4, 4


def grid(length):
    """The frequencies of one axis in the order of numpy.fft; those of odd lengths reach both ends, 1/2 included."""
    centred = np.arange(length) - length // 2
    return np.fft.ifftshift(centred / (length if length % 2 == 0 else length - 1))


def filters(shape):
    """By orientation and scale."""
    x, y = np.meshgrid(grid(shape[1]), grid(shape[0]))
    radius = np.hypot(x, y)
    radius[0, 0] = 1
    low_pass = 1 / (1 + (radius / 0.45) ** 30)
    radial = []
    for scale in range(SCALES):
        gabor = np.exp(-np.log(radius * 6 * 2**scale) ** 2 / (2 * np.log(0.55) ** 2)) * low_pass
        gabor[0, 0] = 0
        radial.append(gabor)
    theta = np.arctan2(-y, x)
    spread = np.pi / ORIENTATIONS / 1.2
    for orientation in range(ORIENTATIONS):
        away = np.angle(np.exp(1j * (theta - orientation * np.pi / ORIENTATIONS)))
        yield [gabor * np.exp(-away**2 / (2 * spread**2)) for gabor in radial]


def phase_congruency(image):
    spectrum = np.fft.fft2(image)
    energies, amplitudes = 0, 0
    for bank in filters(image.shape):
        responses = np.array([np.fft.ifft2(spectrum * one) for one in bank])
        total = responses.sum(0)
        mean = total / (np.abs(total) + 1e-4)
        along = responses.real * mean.real + responses.imag * mean.imag
        across = responses.real * mean.imag - responses.imag * mean.real
        energy = (along - np.abs(across)).sum(0)
        # What noise of the strength that the smallest scale's median tells would give.
        kernels = np.array([np.fft.ifft2(one).real * np.sqrt(image.size) for one in bank])
        noise = np.median(np.abs(responses[0]) ** 2) / np.log(2) / (bank[0] ** 2).sum()
        squares = (kernels**2).sum()
        products = sum((kernels[i] * kernels[j]).sum() for i in range(SCALES) for j in range(i + 1, SCALES))
        tau = np.sqrt((2 * noise * squares + 4 * noise * products) / 2)
        threshold = (tau * np.sqrt(np.pi / 2) + 2 * np.sqrt((2 - np.pi / 2) * tau**2)) / 1.7
        energies = energies + np.maximum(energy - threshold, 0)
        amplitudes = amplitudes + np.abs(responses).sum(0)
    return energies / amplitudes


def shifted_sum(image, weights, first):
    """Sum over i, j of weights[i, j] * image[y + first + i, x + first + j], 0 outside."""
    size = weights.shape[0]
    padded = np.pad(image, ((-first, size + first), (-first, size + first)))
    return sum(weights[i, j] * padded[i:i + image.shape[0], j:j + image.shape[1]]
               for i in range(size) for j in range(size))


def downsampled(image):
    factor = max(1, int(np.floor(min(image.shape) / 256 + 0.5)))
    mean = shifted_sum(image, np.full((factor, factor), 1 / factor**2), -((factor - 1) // 2))
    return mean[::factor, ::factor]


def gradient(image):
    across = np.array([[-3, 0, 3], [-10, 0, 10], [-3, 0, 3]]) / 16
    return np.hypot(shifted_sum(image, across, -1), shifted_sum(image, across.T, -1))


def similarity(a, b, constant):
    return (2 * a * b + constant) / (a**2 + b**2 + constant)


def fsim(truth, image):
    """FSIM and, of colour, FSIMc; of numbers from 0 to 255."""
    planes = [truth, image]
    if truth.ndim == 3:
        yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
        planes = [p @ yiq.T for p in planes]
        (y1, i1, q1), (y2, i2, q2) = [[downsampled(p[..., c]) for c in range(3)] for p in planes]
    else:
        y1, y2 = map(downsampled, planes)
    pc1, pc2 = phase_congruency(y1), phase_congruency(y2)
    weight = np.maximum(pc1, pc2)
    local = similarity(pc1, pc2, 0.85) * similarity(gradient(y1), gradient(y2), 160) * weight
    if truth.ndim == 2:
        return local.sum() / weight.sum(), None
    chroma = (similarity(i1, i2, 200) * similarity(q1, q2, 200)).astype(complex) ** 0.03
    return local.sum() / weight.sum(), (local * chroma.real).sum() / weight.sum()


CASES = [(np.uint8, 255), (np.uint16, 4095), (np.float32, 1.0)]


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("dtype,white", CASES)
@pytest.mark.parametrize("shape", [(16, 16), (17, 40), (64, 97), (121, 83), (383, 384)])
def test_fsim_is_its_definition(program, shape, dtype, white, channels):
    check(program, shape, dtype, white, channels)


# Factors 2 and 3, with and without a rest; 640 / 256 lies halfway between 2 and 3.
@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("shape", [(384, 385), (513, 427), (640, 642), (700, 653), (900, 1030)])
def test_downsampled_fsim_is_its_definition(program, shape, channels):
    check(program, shape, np.uint8, 255, channels)


def check(program, shape, dtype, white, channels):
    truth = picture(*shape, channels, seed=1, dtype=dtype, white=white)
    image = picture(*shape, channels, seed=2, dtype=dtype, white=white)
    ours = program.compare(truth, image, "--range", white)
    expected = fsim(truth.astype(np.float64) * 255 / white, image.astype(np.float64) * 255 / white)
    assert 0 < expected[0] < 1
    assert ours["fsim"] == pytest.approx(expected[0], abs=1e-10)
    assert ours["fsimc"] == (pytest.approx(expected[1], abs=1e-10) if channels else None)


def test_opposite_colours_take_the_real_part(program):
    truth = picture(48, 64, 3, seed=1, dtype=np.uint8, white=255)
    truth[..., 0] //= 4  # blue and green against red: chroma of opposite signs, a negative similarity
    image = truth[..., ::-1].copy()
    expected = fsim(truth.astype(np.float64), image.astype(np.float64))
    ours = program.compare(truth, image)
    assert ours["fsim"] == pytest.approx(expected[0], abs=1e-10)
    assert ours["fsimc"] == pytest.approx(expected[1], abs=1e-10)


def whole_numbers(height, width, channels, noisy):
    """Hyperbolas and a chessboard, with and without an error from -20 to 20; the same everywhere."""
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels or 1):
        plane = (x * y // 7 + (x // 16 + y // 16) % 2 * 90 + 40 * c) % 256
        error = (x * 37 + y * 101 + c * 59 + x * y) % 41 - 20
        planes.append(np.clip(plane + error, 0, 255) if noisy else plane)
    return np.stack(planes, axis=-1).astype(np.uint8) if channels else planes[0].astype(np.uint8)


# piq 0.8.0 in float64. It differs in four things: epsilon is 2e-16 and the frequencies' axes are
# exchanged (5e-6 in even sizes, where the edge of the spectrum has one side only; 1e-7 in odd ones), the median takes
# the lower of the middle two, YIQ has a digit more (4e-6 in FSIMc), and downsampling drops the rest of a division, so
# that only sizes without one are here. With its epsilon set to 1e-4 it agrees within 3e-16 in odd gray sizes.
PIQ = [
    ((101, 83), 0.9330295080, 0.9734670410, 0.9651880568),
    ((255, 257), 0.9741636460, 0.9891476571, 0.9815238620),
    ((383, 381), 0.9806319392, 0.9909402680, 0.9833080669),
    ((100, 84), 0.9336332053, 0.9735542145, 0.9652623989),
    ((256, 256), 0.9742109135, 0.9891666774, 0.9815474828),
    ((512, 512), 0.9922020844, 0.9973780027, 0.9950540000),
    ((514, 430), 0.9928017349, 0.9974048863, 0.9950977288),
]


@pytest.mark.parametrize("shape,gray,luminance,colour", PIQ)
def test_fsim_is_piqs(program, shape, gray, luminance, colour):
    tolerance = 1e-7 if shape[0] % 2 and shape[1] % 2 else 5e-6
    ours = program.compare(whole_numbers(*shape, None, False), whole_numbers(*shape, None, True))
    assert ours["fsim"] == pytest.approx(gray, abs=tolerance)
    ours = program.compare(whole_numbers(*shape, 3, False), whole_numbers(*shape, 3, True))
    assert ours["fsim"] == pytest.approx(luminance, abs=tolerance)
    assert ours["fsimc"] == pytest.approx(colour, abs=5e-6)


def test_identical_images(program):
    for image in (picture(40, 50), picture(401, 400, 3)):
        ours = program.compare(image, image)
        assert ours["fsim"] == 1 and ours["fsimc"] == (1 if image.ndim == 3 else None)


def test_small_images_have_no_fsim(program):
    ours = program.compare(picture(15, 40, 3), picture(15, 40, 3, seed=3))
    assert ours["fsim"] is None and ours["fsimc"] is None
