"""bench/video-quality: reading clips, PSNR, which rows are run, the tables. No program is run."""
import contextlib
import importlib.machinery
import importlib.util
import io
import math
import pathlib
import shutil

import pytest

np = pytest.importorskip("numpy", reason="NumPy is missing")

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("video_quality", str(ROOT / "bench/video-quality"))
quality = importlib.util.module_from_spec(importlib.util.spec_from_loader("video_quality", loader))
loader.exec_module(quality)


def picture(frames, width, height, seed=1):
    return np.random.RandomState(seed).randint(0, 256, (frames, height, width, 3)).astype(np.uint8)


class Folder:
    @pytest.fixture(autouse=True)
    def own_folder(self, tmp_path):
        self.folder = tmp_path

    def write(self, name, data):
        (self.folder / name).write_bytes(data)
        return self.folder / name

    def refused(self, name, data):
        with pytest.raises(SystemExit) as caught:
            quality.read_clip(self.write(name, data))
        return str(caught.value)


class TestClips(Folder):
    def test_raw_frames_tell_their_size_by_their_name(self):
        frames = picture(3, 7, 5)
        clip = quality.read_clip(self.write("the_park_7x5.rgb", frames.tobytes()))
        assert (clip.name, clip.size) == ("the_park", "7x5")
        np.testing.assert_array_equal(clip.frames, frames)
        assert len(quality.read_clip(self.folder / "the_park_7x5.rgb", 2).frames) == 2

    def test_wrong_raw_frames(self):
        assert "NAME_WIDTHxHEIGHT.rgb" in self.refused("park.rgb", bytes(30))
        assert "31 bytes are not frames of 5 x 2" in self.refused("park_5x2.rgb", bytes(31))
        assert "0 bytes" in self.refused("empty_5x2.rgb", b"")

    def test_a_name_twice(self):
        paths = [self.write(name, bytes(30)) for name in ("park_5x2.rgb", "park_2x5.rgb")]
        with pytest.raises(SystemExit, match="names of their own, got park, park"):
            quality.read_clips(paths, None)

    @pytest.mark.parametrize("space, chroma", [("444", 6), ("420jpeg", 2), ("422", 4)])
    def test_y4m_black_white_and_red(self, space, chroma):
        head = f"YUV4MPEG2 W3 H2 F25:1 Ip A1:1 C{space} XCOLORRANGE=LIMITED\n".encode()
        colours = ((16, 128, 128), (235, 128, 128), (81, 90, 240))
        body = b"".join(b"FRAME\n" + bytes([y] * 6 + [cb] * chroma + [cr] * chroma) for y, cb, cr in colours)
        frames = quality.read_clip(self.write("c.y4m", head + body)).frames
        assert frames.shape == (3, 2, 3, 3)
        for frame, rgb in zip(frames, ((0, 0, 0), (255, 255, 255), (254, 0, 0))):
            assert (frame == rgb).all(), frame

    def test_y4m_full_range_and_mono(self):
        full = b"YUV4MPEG2 W1 H1 XCOLORRANGE=FULL\nFRAME\n" + bytes([200, 128, 128])
        assert quality.read_clip(self.write("f.y4m", full)).frames.tolist() == [[[[200, 200, 200]]]]
        mono = b"YUV4MPEG2 W2 H1 Cmono\nFRAME Ip\n" + bytes([7, 9])
        assert quality.read_clip(self.write("m.y4m", mono)).frames.tolist() == [[[[7] * 3, [9] * 3]]]

    def test_wrong_y4m(self):
        assert "is no Y4M file" in self.refused("a.y4m", b"RIFF")
        assert "not 420p10" in self.refused("a.y4m", b"YUV4MPEG2 W2 H2 C420p10\n")
        assert "cut short in frame 0" in self.refused("a.y4m", b"YUV4MPEG2 W2 H2 C444\nFRAME\n123")
        assert "has no frames" in self.refused("a.y4m", b"YUV4MPEG2 W2 H2 C444\n")

    def test_pictures_of_a_pipe(self):
        frames = picture(2, 4, 3)
        frames[0, 0, 0] = 10  # a line's end as the first sample is no white space of the header
        stream = b"".join(b"P6\n4 3\n255\n" + frame.tobytes() for frame in frames)
        np.testing.assert_array_equal(np.stack(quality.frames_of_ppm(stream)), frames)

    @pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg is missing")
    def test_other_files_are_read_by_ffmpeg(self):
        path = self.write("c.ppm", b"P6\n4 3\n255\n" + picture(1, 4, 3).tobytes())
        np.testing.assert_array_equal(quality.read_clip(path).frames, picture(1, 4, 3))
        assert "ffmpeg: " in self.refused("c.mkv", b"nothing")


class TestNoise:
    def test_is_neither_clipped_nor_rounded_and_always_the_same(self):
        clip = quality.Clip("flat", np.zeros((2, 64, 64, 3), np.uint8))
        frames = np.stack(list(quality.noisy_frames(clip, 20)))
        assert float(frames.std()) == pytest.approx(20, abs=0.5)
        assert float(frames.min()) < -40
        assert not np.array_equal(frames[0], frames[1])
        np.testing.assert_array_equal(frames, np.stack(list(quality.noisy_frames(clip, 20.0))))
        other = next(iter(quality.noisy_frames(quality.Clip("other", clip.frames), 20)))
        assert not np.array_equal(frames[0], other)


class TestPsnr:
    def test_known_error(self):
        truth = np.full((4, 4, 3), 100, np.uint8)
        assert quality.psnr(truth, np.full((4, 4, 3), 102.5, np.float32)) == pytest.approx(20 * math.log10(255 / 2.5), abs=5e-6)
        assert quality.psnr(truth, truth.astype(np.float32)) == math.inf

    def test_is_clipped_first(self):
        truth = np.array([[[0, 255, 10]]], np.uint8)
        far = quality.psnr(truth, np.array([[[-90, 300, 13]]], np.float32))
        assert far == pytest.approx(10 * math.log10(255**2 / 3), abs=5e-6)


class TestLumaPsnr(Folder):
    def test_of_the_frames_asked_for(self):
        def clip(name, *lumas):
            return self.write(name, b"YUV4MPEG2 W3 H3 C420jpeg\n" + b"".join(b"FRAME\n" + bytes([luma] * 9 + [7] * 8) for luma in lumas))

        truth, result = clip("a.y4m", 10, 20, 30), clip("b.y4m", 10, 25, 31)
        assert quality.luma_psnr(truth, result, (3, 3), [2]) == pytest.approx(20 * math.log10(255), abs=5e-6)
        assert (quality.luma_psnr(truth, result, (3, 3), [1, 2])
                == pytest.approx(20 * math.log10(255) - 10 * math.log10(5), abs=5e-6))


class TestTiles(Folder):
    def test_planes_are_repeated(self):
        small = b"FRAME\n" + bytes([1, 2, 3, 4, 5, 6, 7, 8, 90, 91, 200, 201])
        source = self.write("a.y4m", b"YUV4MPEG2 W4 H2 F25:1 C420jpeg\n" + 2 * small)
        quality.tile_y4m(source, self.folder / "b.y4m", (4, 2), 2)
        row, other = bytes([1, 2, 3, 4] * 2), bytes([5, 6, 7, 8] * 2)
        frame = b"FRAME\n" + row + other + row + other + bytes([90, 91] * 4) + bytes([200, 201] * 4)
        assert (self.folder / "b.y4m").read_bytes() == b"YUV4MPEG2 W8 H4 F25:1 C420jpeg\n" + 2 * frame


class TestRows:
    def test_the_default_of_bm3d_is_always_there(self):
        rows = quality.rows_of(["bm3d-fast", "nlm"], (0, 2), {"bm3d-fast": 4, "nlm": 1})
        assert rows == [("bm3d-fast", 0), ("bm3d-fast", 2), ("bm3d-fast", 4), ("nlm", 0), ("nlm", 2)]

    def test_few_sigmas_unless_told(self):
        assert quality.sigmas_of("bm3d-normal", None) == (10, 20, 30, 40, 50)
        assert quality.sigmas_of("nlm", None) == (20, 40)
        assert quality.sigmas_of("nlm", (5,)) == (5,)

    def test_options(self):
        assert quality.options_of("bm3d-high", 2, 20.0) == [
            "--method", "bm3d", "--profile", "high", "--radius-t", "2", "--sigma", "20"]
        assert quality.options_of("median", None, 20) == ["--method", "median"]

    def test_arguments(self, subtests):
        options = quality.parse_arguments(["ungrain", "a.y4m", "--sigma", "10,2.5", "b.rgb", "--methods", "nlm,bm3d", "--radius-t", "0,4"])
        assert (options.sigma, options.radius_t) == ((10, 2.5), (0, 4))
        assert [path.name for path in options.clips] == ["a.y4m", "b.rgb"]
        assert options.methods == ["nlm", "bm3d-fast", "bm3d-normal", "bm3d-high"]
        for wrong in ([], ["ungrain"], ["u", "c", "--methods", "box"], ["u", "c", "--sigma", "x"], ["u", "c", "--sigma=-1"],
                      ["u", "c", "--jobs", "0"]):
            with subtests.test(wrong=wrong), contextlib.redirect_stderr(io.StringIO()), pytest.raises(SystemExit) as caught:
                quality.parse_arguments(wrong)
            assert caught.value.code == 2


def measured():
    """Two clips at sigma 10 and 20; nlm only at 20."""
    def row(clip, sigma, method, radius, value, scenes=1):
        return {"clip": clip, "sigma": sigma, "method": method, "radius_t": radius, "psnr": value, "scenes": scenes, "device": "cuda"}

    rows = []
    for clip, more in (("park", 0), ("car", 1)):
        for sigma in (10, 20):
            rows += [row(clip, sigma, "noisy", 0, 20 + more), row(clip, sigma, "bm3d-normal", 0, 30 + more),
                     row(clip, sigma, "bm3d-normal", 4, 33.123 + more, scenes=1 + more)]
        rows.append(row(clip, 20, "nlm", 1, 28 + more))
    return {"clips": {name: {"size": "480x270", "frames": 17, "sha256": "0" * 64} for name in ("park", "car")},
            "defaults": {"bm3d-normal": 4, "nlm": 1}, "rows": [["bm3d-normal", 0], ["bm3d-normal", 4], ["nlm", 1]], "quality": rows,
            "speed": [{"method": "nlm", "radius_t": 1, "device": "cuda", "frames": 48, "seconds": 0.5, "filter_ms": 96,
                       "stages_ms": 48, "psnr": 38, "right": True}],
            "on_gpu": True, "where": ["- GPU: made up", "- date: 2020-01-01", "- commit: 1234567"]}


class TestPage:
    def test_means_over_the_clips(self):
        assert quality.quality_table(measured()) == [
            "| sigma | 10 | 20 |", "|---|--:|--:|", "| noisy | 20.50 | 20.50 |", "| bm3d normal, radius-t 0 | 30.50 | 30.50 |",
            "| bm3d normal, radius-t 4 (default) | 33.62 | 33.62 |", "| nlm, radius-t 1 (default) |  | 28.50 |"]

    def test_clips_by_themselves(self):
        assert quality.clip_table(measured())[2:] == [
            "| park | 480 x 270 | 17 | 30.00 / 33.12 | 30.00 / 33.12 |", "| car | 480 x 270 | 17 | 31.00 / 34.12 | 31.00 / 34.12 |"]
        without = measured() | {"quality": [row for row in measured()["quality"] if row["radius_t"] != 0]}
        assert quality.clip_table(without) == []

    def test_speed(self):
        assert quality.speed_table(measured())[-1] == "| nlm, radius-t 1 (default) | cuda | 96.0 | 2.00 | 1.00 | 38.00 |"

    def test_a_wrong_result_has_no_time(self):
        found = measured()
        found["speed"][0]["right"] = False
        assert quality.speed_table(found)[-1] == "| nlm, radius-t 1 (default) | cuda | WRONG |  |  | 38.00 |"

    def test_the_page_says_where_it_comes_from(self):
        text = quality.page(measured())
        assert "A cut was found in some runs on: car." in text
        assert "- GPU: made up\n- date: 2020-01-01\n- commit: 1234567\n- sources: src/methods/bm3d/*.cpp" in text
        assert "src/methods/nlm/*.cu" in text

    def test_a_commit_that_was_not_known_is_that_of_the_page(self):
        text = quality.page(measured() | {"where": ["- date: 2020-01-01", "- commit: unknown with changes"]})
        assert text.count("- commit: ") == 1
        assert "- date: 2020-01-01\n" in text

    def test_its_sources_exist(self, subtests):
        sources = quality.describe.__globals__["Sources"]()
        if not sources.known():
            pytest.skip("no git repository")
        for root in quality.roots(quality.METHODS, True):
            with subtests.test(root=root):
                assert sources.files([root])
