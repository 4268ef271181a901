"""Camera raw files: mosaics of the simulated camera as DNG, filtered and written as DNG or developed."""

from __future__ import annotations

import json
import math
import re
import struct
from functools import cache
from pathlib import Path

import pytest

from support import Picture, Workspace, needs_format, read_tiff, run, write_pnm, writes

BLACK, WHITE = 512, 16383  # of the simulated camera
NOISE_PROFILE = 51041
WIDTH, HEIGHT = 320, 240


@cache
def reads_raw() -> bool:
    rows = [json.loads(line) for line in run("formats", "--json").out_lines]
    return next(row for row in rows if row["format"] == "DNG")["read"]


def scene() -> Picture:
    """Slopes, discs and stripes, with a dark lower third."""
    samples: list[float] = []
    for y in range(HEIGHT):
        for x in range(WIDTH):
            level = 60 + 120 * x / WIDTH
            if math.hypot(x - 90, y - 70) < 45:
                level += 60
            if x > 200 and (x + y) // 12 % 2 == 0:
                level -= 30
            if y >= 2 * HEIGHT // 3:
                level = 45
            samples += [min(255, level * 1.1), level, level * 0.8]
    return Picture(WIDTH, HEIGHT, 3, [round(sample) for sample in samples])


def entries(data: bytes) -> dict[int, tuple[int, int, int, int]]:
    """By tag: where the entry is, type, count and value or offset."""
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    found = {}
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        tag, kind, values, value = struct.unpack_from("<HHII", data, entry)
        found[tag] = (entry, kind, values, value)
    return found


def mosaic(path: Path) -> list[float]:
    """Photosites of a DNG file as it is written here, black subtracted."""
    data = path.read_bytes()
    tags = entries(data)
    size = tags[256][3] * tags[257][3]
    return [value - BLACK for value in struct.unpack_from(f"<{size}H", data, tags[273][3])]


def plane(samples: list[float], number: int) -> list[float]:
    top, left = divmod(number, 2)
    return [value for y in range(top, HEIGHT, 2) for value in samples[y * WIDTH + left:(y + 1) * WIDTH:2]]


def psnr(truth: list[float], other: list[float], white: float = WHITE - BLACK) -> float:
    squares = sum((a - b) ** 2 for a, b in zip(truth, other)) / len(truth)
    return 10 * math.log10(white * white / squares)


def retag(path: Path, tag: int, new: int) -> None:
    data = bytearray(path.read_bytes())
    struct.pack_into("<H", data, entries(data)[tag][0], new)
    path.write_bytes(data)


class TestMosaic(Workspace):
    """What needs no LibRaw: the simulated camera writes DNG files."""

    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        write_pnm(self.path("scene.ppm"), scene())

    def test_the_simulated_camera_writes_its_mosaic(self) -> None:
        self.done("noise", "scene.ppm", "-o", "a.dng", "--camera", "--iso", "6400")
        self.done("noise", "scene.ppm", "-o", "clean.dng", "--camera", "--noiseless")
        data = self.bytes_of("a.dng")
        tags = entries(data)
        assert (tags[256][3], tags[257][3], tags[258][3], tags[262][3]) == (WIDTH, HEIGHT, 16, 32803)
        assert tags[50717][3] == WHITE
        assert struct.unpack_from("<8I", data, tags[50714][3])[::2] == (BLACK * 100,) * 4
        assert NOISE_PROFILE not in entries(self.bytes_of("clean.dng"))

        # The profile is the truth.
        profile = struct.unpack_from("<6d", data, tags[NOISE_PROFILE][3])
        noisy, clean = mosaic(self.path("a.dng")), mosaic(self.path("clean.dng"))
        dark = range(WIDTH * (2 * HEIGHT // 3 + 2), WIDTH * HEIGHT)
        level = sum(clean[i] for i in dark) / len(dark) / (WHITE - BLACK)
        variance = sum((noisy[i] - clean[i]) ** 2 for i in dark) / len(dark) / (WHITE - BLACK) ** 2
        assert variance / (profile[0] * level + profile[1]) == pytest.approx(1, abs=0.05)

    def test_the_same_seed_gives_the_same_file(self) -> None:
        for name, seed in (("a.dng", "5"), ("b.dng", "5"), ("c.dng", "6")):
            self.done("noise", "scene.ppm", "-o", name, "--camera", "--seed", seed, "-q")
        assert self.bytes_of("a.dng") == self.bytes_of("b.dng")
        assert self.bytes_of("a.dng") != self.bytes_of("c.dng")

    def test_other_pictures_do_not_become_raw_files(self) -> None:
        for arguments in (("scene.ppm", "-o", "a.dng"), ("noise", "scene.ppm", "--gaussian", "5", "-o", "a.dng")):
            result = self.run_here(*arguments)
            assert (result.code, result.err_lines) == (
                1, ["ungrain: a.dng: a DNG file is made from a camera raw file, and this is none; write .tif"])
        assert not self.path("a.dng").exists()

    def test_listed(self) -> None:
        rows = {row["format"]: row for row in map(json.loads, self.done("formats", "--json").out_lines)}
        assert (rows["DNG"]["written"], rows["DNG"]["types"]) == (True, ["u16"])
        assert (rows["camera raw"]["read"], rows["camera raw"]["written"]) == (rows["DNG"]["read"], False)
        assert {".cr2", ".nef", ".arw"} <= set(rows["camera raw"]["extensions"])

    @pytest.mark.skipif(reads_raw(), reason="this build has LibRaw")
    def test_without_LibRaw(self) -> None:
        self.done("noise", "scene.ppm", "-o", "a.dng", "--camera")
        result = self.run_here("a.dng", "-o", "b.dng")
        assert result.code == 1
        assert len(result.err_lines) == 1, result
        assert re.search(r"^ungrain: a\.dng: a DNG file \(camera raw\): this build lacks LibRaw", result.err_lines[0])


@pytest.mark.skipif(not reads_raw(), reason="this build has no LibRaw")
class TestRaw(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        write_pnm(self.path("scene.ppm"), scene())
        self.done("noise", "scene.ppm", "-o", "clean.dng", "--camera", "--noiseless", "-q")
        self.done("noise", "scene.ppm", "-o", "a.dng", "--camera", "--iso", "6400", "-q")

    def gains(self, name: str) -> list[float]:
        """PSNR above that of a.dng, plane by plane."""
        truth, noisy, result = (mosaic(self.path(each)) for each in ("clean.dng", "a.dng", name))
        return [psnr(plane(truth, n), plane(result, n)) - psnr(plane(truth, n), plane(noisy, n)) for n in range(4)]

    def fails(self, *arguments: str, words: str) -> None:
        result = self.run_here(*arguments)
        assert result.code == 1, result
        assert len(result.err_lines) == 1, result
        assert re.search(words, result.err_lines[0])
        self.assert_tidy()

    def test_denoised(self) -> None:
        (line,) = self.done("a.dng", "--json").out_lines
        told = json.loads(line)
        assert re.search("as the file says", told["note"])
        assert (told["format"], told["width"], told["height"]) == ("DNG", WIDTH // 2, HEIGHT // 2)
        for gain in self.gains("a.ungrain.dng"):
            assert gain > 5
        before, after = entries(self.bytes_of("a.dng")), entries(self.bytes_of("a.ungrain.dng"))
        assert set(before) - set(after) == {NOISE_PROFILE}  # the noise is another
        data = self.bytes_of("a.ungrain.dng")
        assert struct.unpack_from("<8I", data, after[50714][3])[::2] == (BLACK * 100,) * 4

    def test_dark_areas_keep_their_mean(self) -> None:
        self.done("a.dng", "-o", "b.dng", "-q")
        noisy, result = mosaic(self.path("a.dng")), mosaic(self.path("b.dng"))
        dark = range(WIDTH * (2 * HEIGHT // 3 + 16), WIDTH * HEIGHT)
        before, after = (sum(samples[i] for i in dark) / len(dark) for samples in (noisy, result))
        assert before < 0.05 * (WHITE - BLACK)
        assert after / before == pytest.approx(1, abs=0.01)

    def test_noise_is_measured_without_a_profile(self) -> None:
        retag(self.path("a.dng"), NOISE_PROFILE, 51099)
        told = json.loads(self.done("a.dng", "-o", "b.dng", "--json").out_lines[0])
        assert re.search("measured", told["note"])
        for gain in self.gains("b.dng"):
            assert gain > 5

    def test_channels_share_their_groups(self) -> None:
        self.done("a.dng", "-o", "b.dng", "-q")
        self.done("a.dng", "-o", "c.dng", "-q", "--colour", "per-channel")
        assert sum(self.gains("b.dng")) > sum(self.gains("c.dng"))

    def test_other_methods_and_given_strengths(self) -> None:
        self.done("a.dng", "-o", "b.dng", "-q", "--method", "bilateral")
        assert min(self.gains("b.dng")) > 2
        self.done("a.dng", "-o", "c.dng", "-q", "--sigma", "5")
        assert min(self.gains("c.dng")) > 2
        self.done("a.dng", "-o", "d.dng", "-q", "--sigma", "0")
        assert mosaic(self.path("d.dng")) == mosaic(self.path("a.dng"))

    @pytest.mark.skipif(not writes(".tif"), reason=needs_format(".tif"))
    def test_developed(self) -> None:
        for name in ("clean", "a"):
            self.done(f"{name}.dng", "-o", f"{name}-as-it-is.tif", "--sigma", "0", "-q")
        self.done("a.dng", "-o", "b.tif", "-q")
        (truth,), (noisy,), (result,) = (read_tiff(self.path(name))
                                         for name in ("clean-as-it-is.tif", "a-as-it-is.tif", "b.tif"))
        assert (result.width, result.height, result.channels, result.white) == (WIDTH, HEIGHT, 3, 65535)
        gain = psnr(truth.samples, result.samples, 65535) - psnr(truth.samples, noisy.samples, 65535)
        assert gain > 5
        self.done("a.dng", "-o", "b.ppm", "--depth", "u8", "-q")

    def test_outputs_that_cannot_be(self) -> None:
        self.fails("a.dng", "-o", "b.pfm", words=r"b\.pfm: a photograph is developed in u8 or u16 .*write \.dng or \.tif")
        self.fails("a.dng", "-o", "b.dng", "--depth", "f32", words=r"b\.dng: DNG files hold u16")
        self.fails("a.dng", "-o", "b.dng", "--range", "255", words=r"a\.dng: .*--range is not for it")

    def test_other_cameras_files_become_dng(self) -> None:
        self.path("a.dng").rename(self.path("a.CR2"))
        self.done("a.CR2", "-q")
        assert self.path("a.ungrain.dng").exists()

    def test_streams(self) -> None:
        self.done("a.dng", "-o", "b.dng", "-q")
        with self.path("a.dng").open("rb") as source, self.path("c.dng").open("wb") as target:
            assert self.run_here("-", "-o", "-", "-q", stdin=source, stdout=target).code == 0
        assert self.bytes_of("b.dng") == self.bytes_of("c.dng")

    def test_truncated(self, subtests: pytest.Subtests) -> None:
        whole = self.bytes_of("a.dng")
        for size in (100, len(whole) // 2, len(whole) - 300):
            with subtests.test(size=size):
                self.path("b.dng").write_bytes(whole[:size])
                self.fails("b.dng", "-o", "c.dng", words=r"b\.dng: .*(damaged|truncated)")
        # More rows than the file has.
        data = bytearray(whole)
        for tag, value in ((257, 4 * HEIGHT), (278, 4 * HEIGHT), (279, 8 * WIDTH * HEIGHT)):
            struct.pack_into("<I", data, entries(data)[tag][0] + 8, value)
        self.path("b.dng").write_bytes(data)
        self.fails("b.dng", "-o", "c.dng", words=r"b\.dng: .*(damaged|truncated)")

    def test_damaged_profiles_are_not_used(self) -> None:
        whole = self.bytes_of("a.dng")
        nan = bytearray(whole)
        struct.pack_into("<d", nan, entries(nan)[NOISE_PROFILE][3], math.nan)
        for data in (nan, whole[:-30]):
            self.path("a.dng").write_bytes(data)
            told = json.loads(self.done("a.dng", "-o", "b.dng", "--json").out_lines[0])
            assert re.search("its noise profile is damaged and not used; .*measured", told["note"])

    def test_files_that_are_no_tiff_keep_what_LibRaw_knows(self) -> None:
        """An Olympus file is a TIFF file but for its mark."""
        data = bytearray(self.bytes_of("a.dng"))
        data[2:4] = b"RO"
        self.path("a.orf").write_bytes(data)
        self.done("a.orf", "-q")
        assert self.path("a.ungrain.dng").exists()
        if needs_format(".tif"):
            return
        self.done("a.orf", "-o", "a.tif", "-q")
        written = self.bytes_of("a.tif")
        tags = entries(written)
        assert written[tags[271][3]:][:8] == b"ungrain\0"
        (count,) = struct.unpack_from("<H", written, tags[34665][3])
        inner = dict(struct.unpack_from("<HxxxxxxI", written, tags[34665][3] + 2 + 12 * i) for i in range(count))
        assert inner[34855] == 6400

    def test_compared_and_measured(self) -> None:
        assert "a.dng" in self.done("compare", "clean.dng", "a.dng").out_lines[-1]
        self.done("estimate", "a.dng")
