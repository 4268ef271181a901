"""The C API as a program without a compiler uses it: ctypes, against the results of the command line program.

UNGRAIN_LIBRARY is the shared library, UNGRAIN the program."""
import ctypes
import os
import pathlib
import random
import re
import subprocess
import tempfile

import pytest

import header

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("UNGRAIN_LIBRARY", "")
PROGRAM = os.environ.get("UNGRAIN", "")


def _struct(name):
    made = header.struct(name)
    return lambda **values: made(struct_size=ctypes.sizeof(made), **values)


ImageSpec, Image, Options, Report, Estimate, MethodInfo = (
    _struct("ungrain_" + name) for name in ("image_spec", "image", "options", "report", "noise_estimate", "method_info"))
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_double)
WIDTH, HEIGHT = 97, 61


def _noisy():
    draw = random.Random(1)
    return bytes(min(255, max(0, int(60 + 2 * (i // 3 % WIDTH) * 0.7 + draw.gauss(0, 20)))) for i in range(3 * WIDTH * HEIGHT))


@pytest.fixture(scope="module")
def library():
    loaded = ctypes.CDLL(LIBRARY)
    for name in ("ungrain_last_error", "ungrain_version", "ungrain_status_name", "ungrain_params_method"):
        getattr(loaded, name).restype = ctypes.c_char_p
    return loaded


@pytest.mark.skipif(not LIBRARY, reason="UNGRAIN_LIBRARY names no shared library")
class TestCtypes:
    @pytest.fixture(autouse=True)
    def c_api(self, library):
        self.c = library
        self.created = []  # params
        yield
        for params in self.created:
            self.c.ungrain_params_destroy(params)

    def ok(self, status):
        assert status == 0, self.c.ungrain_last_error()

    def params(self, method, **values):
        params = ctypes.c_void_p()
        self.ok(self.c.ungrain_params_create(method.encode(), ctypes.byref(params)))
        self.created.append(params)
        for name, value in values.items():
            self.ok(self.c.ungrain_params_set_text(params, name.encode(), str(value).encode()))
        return params

    def images(self, pixels):
        """Input, output and the output's samples."""
        self.spec = ImageSpec(width=WIDTH, height=HEIGHT, colour=1)
        self.input = ctypes.create_string_buffer(pixels, len(pixels))
        out = ctypes.create_string_buffer(len(pixels))
        address = ctypes.addressof(self.spec)
        return (Image(spec=address, data=ctypes.addressof(self.input)), Image(spec=address, data=ctypes.addressof(out)), out)

    def program(self, pixels, *options):
        with tempfile.TemporaryDirectory() as folder:
            noisy, clean = pathlib.Path(folder, "noisy.ppm"), pathlib.Path(folder, "clean.ppm")
            noisy.write_bytes(b"P6 %d %d 255\n" % (WIDTH, HEIGHT) + pixels)
            subprocess.run([PROGRAM, noisy, "-o", clean, "--device", "cpu", *options], check=True, capture_output=True)
            return clean.read_bytes()[-len(pixels):]

    @pytest.mark.skipif(not PROGRAM, reason="UNGRAIN names no program")
    @pytest.mark.parametrize("method, values", [
        ("bilateral", {"radius": 3, "sigma": 20}), ("nlm", {}), ("median", {"radius": 2}), ("bm3d", {"sigma": 25}),
    ])
    def test_the_bits_of_the_program(self, method, values):
        pixels = _noisy()
        source, target, out = self.images(pixels)
        options = Options(device=b"cpu")
        report = Report()
        self.ok(self.c.ungrain_denoise(self.params(method, **values), ctypes.byref(source), ctypes.byref(target),
                                       ctypes.byref(options), ctypes.byref(report)))
        assert report.device == b"cpu"
        given = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        assert out.raw == self.program(pixels, "--method", method, *given)
        assert self.input.raw == pixels

    def test_errors_are_lines(self):
        nothing = ctypes.c_void_p()
        assert self.c.ungrain_params_create(b"bilatteral", ctypes.byref(nothing)) == 1
        assert b"did you mean 'bilateral'" in self.c.ungrain_last_error()
        assert not nothing
        assert self.c.ungrain_params_set_text(self.params("box"), b"radius", b"-1") == 1
        assert re.search(r"^radius takes [^\n]*, got -1$", self.c.ungrain_last_error().decode())

    def test_methods_are_listed(self):
        count = ctypes.c_size_t()
        self.ok(self.c.ungrain_method_count(ctypes.byref(count)))
        names = set()
        for index in range(count.value):
            info = MethodInfo()
            self.ok(self.c.ungrain_method_at(ctypes.c_size_t(index), ctypes.byref(info)))
            names.add(info.name.decode())
        assert {"bilateral", "nlm", "bm3d", "ridge", "bm4d"} <= names

    def test_noise_is_estimated(self):
        source, _, _ = self.images(_noisy())
        estimate = Estimate()
        self.ok(self.c.ungrain_estimate_noise(ctypes.byref(source), ctypes.byref(estimate)))
        assert estimate.channel_count == 3
        assert estimate.sigma == pytest.approx(20, abs=3)

    def test_callbacks_stop_a_run(self):
        calls = []

        def progress(_user, fraction):
            calls.append(fraction)
            self.c.ungrain_set_error("enough".encode())
            return 7

        source, target, _ = self.images(_noisy())
        callback = PROGRESS(progress)
        options = Options(device=b"cpu", band_rows=8, progress=ctypes.cast(callback, ctypes.c_void_p).value)
        assert self.c.ungrain_denoise(self.params("box"), ctypes.byref(source), ctypes.byref(target),
                                      ctypes.byref(options), None) == 7
        assert self.c.ungrain_last_error() == b"enough"
        assert len(calls) == 1

    def test_version_is_the_headers(self):
        version = (ROOT / "CMakeLists.txt").read_text()
        assert self.c.ungrain_version().decode() == re.search(r"project\(ungrain VERSION ([\d.]+)", version)[1]
