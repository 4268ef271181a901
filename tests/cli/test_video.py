"""ungrain video: clips of every format through files, pipes and ffmpeg, and what happens to damaged ones."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from support import (LONGEST, PROGRAM, SOON, Workspace, ends_by, picture, run, start, temporaries, wait_until, write_png,
                     write_pnm)
from test_signals import watches

# Changes nothing: the results must have the input's bits.
KEEP = ("--method", "box", "--radius", "0")
# About half a second a frame, so that it can be interrupted.
SLOW = ("--method", "bilateral", "--device", "reference", "--radius", "12", "--sigma", "10")
FFMPEG = shutil.which("ffmpeg") is not None and shutil.which("ffprobe") is not None

signal.signal(signal.SIGINT, signal.default_int_handler)


def chroma_of(space: str) -> tuple[int, int] | None:
    if space.startswith("mono"):
        return None
    return {"420": (2, 2), "422": (2, 1), "411": (4, 1), "444": (1, 1)}[space[:3]]


def bits_of(space: str) -> int:
    found = re.search(r"(?:p|mono)(\d+)$", space)
    return int(found[1]) if found else 8


def frame_bytes(width: int, height: int, space: str, seed: int) -> bytes:
    """Noise over the whole range of the samples."""
    count = width * height
    chroma = chroma_of(space)
    if chroma:
        count += 2 * (-(-width // chroma[0])) * (-(-height // chroma[1]))
    if space.endswith("alpha"):
        count += width * height
    source = random.Random(seed)
    bits = bits_of(space)
    if bits == 8:
        return source.randbytes(count)
    return b"".join(source.randrange(1 << bits).to_bytes(2, "little") for _ in range(count))


def clip(width: int = 23, height: int = 17, space: str = "420jpeg", frames: int = 3, words: str = "F25:1 Ip A1:1",
         lines: tuple[str, ...] = ()) -> bytes:
    data = f"YUV4MPEG2 W{width} H{height} {words} C{space}\n".encode()
    for number in range(frames):
        line = lines[number] if number < len(lines) else ""
        data += f"FRAME{line}\n".encode() + frame_bytes(width, height, space, number)
    return data


class Video(Workspace):
    def video(self, *arguments: str | Path, **options):
        return self.run_here("video", *arguments, **options)

    def kept(self, *arguments: str | Path, **options) -> dict:
        """A run that must succeed and change nothing; its report."""
        result = self.done("video", *arguments, *KEEP, "--json", **options)
        return json.loads(result.out)

    def refused(self, *arguments: str | Path, code: int = 1, **options) -> str:
        """The one line with which a run fails."""
        result = self.video(*arguments, **options)
        assert result.code == code, result
        assert len(result.err_lines) == 1, result.err
        assert result.err.startswith("ungrain: "), result.err
        self.assert_tidy()
        return result.err

    def fails(self, data: bytes, *arguments: str, name: str = "in.y4m") -> str:
        self.path(name).write_bytes(data)
        return self.refused(name, "-o", "out.y4m", *(arguments or KEEP))


class TestY4m(Video):
    def test_every_colour_space_keeps_its_bits(self, subtests: pytest.Subtests) -> None:
        spaces = ["mono", "420jpeg", "420mpeg2", "420paldv", "420", "411", "422", "444", "444alpha"]
        spaces += [f"mono{bits}" for bits in (9, 10, 12, 16)]
        spaces += [f"{family}p{bits}" for family in ("420", "422", "444") for bits in (9, 10, 12, 14, 16)]
        for space in spaces:
            for width, height in ((23, 17), (16, 8), (1, 1)):
                with subtests.test(space=space, width=width, height=height):
                    data = clip(width, height, space)
                    self.path("in.y4m").write_bytes(data)
                    report = self.kept("in.y4m", "-o", "out.y4m")
                    assert self.bytes_of("out.y4m") == data
                    assert report["frames"] == 3
                    assert report["range"] == (1 << bits_of(space)) - 1

    def test_header_and_frame_words_are_kept(self) -> None:
        words = "F30000:1001 Ip A128:117 XYSCSS=420MPEG2 XCOLORRANGE=FULL Xmine=1"
        data = clip(words=words, lines=("", " Xfirst=2", " Ippp Xother"))
        self.path("in.y4m").write_bytes(data)
        report = self.kept("in.y4m", "-o", "out.y4m")
        assert self.bytes_of("out.y4m") == data
        assert report["rate"] == "30000/1001"

    def test_without_a_colour_space_it_is_420(self) -> None:
        data = clip().replace(b" C420jpeg", b"")
        self.path("in.y4m").write_bytes(data)
        self.kept("in.y4m", "-o", "out.y4m")
        assert self.bytes_of("out.y4m") == data

    def test_default_name(self) -> None:
        self.path("in.y4m").write_bytes(clip())
        self.kept("in.y4m")
        assert self.bytes_of("in.ungrain.y4m") == clip()

    def test_in_place(self) -> None:
        self.path("in.y4m").write_bytes(clip())
        self.kept("in.y4m", "-o", "in.y4m")
        assert self.bytes_of("in.y4m") == clip()

    def test_content_tells_the_format(self) -> None:
        self.path("clip.bin").write_bytes(clip())
        self.kept("clip.bin", "-o", "out.y4m")
        assert self.bytes_of("out.y4m") == clip()

    def test_start_and_frames(self) -> None:
        data = clip(frames=9)
        header, rest = data[:data.index(b"\n") + 1], data[data.index(b"\n") + 1:]
        size = len(rest) // 9
        self.path("in.y4m").write_bytes(data)
        for first, count, options in ((2, 4, ("--start", "2", "--frames", "4")), (7, 2, ("--start", "7")),
                                      (0, 1, ("--frames", "1")), (6, 3, ("--start", "6", "--frames", "99"))):
            report = self.kept("in.y4m", "-o", "out.y4m", *options)
            assert self.bytes_of("out.y4m") == header + rest[first * size:(first + count) * size]
            assert report["frames"] == count
        message = self.refused("in.y4m", "-o", "none.y4m", "--start", "9", *KEEP)
        assert message == "ungrain: in.y4m: has no frame 9 (--start)\n"
        assert not self.path("none.y4m").exists()

    def test_streams_one_behind_the_other(self) -> None:
        one = clip()
        self.path("in.y4m").write_bytes(one + one)
        self.kept("in.y4m", "-o", "out.y4m")
        assert self.bytes_of("out.y4m") == one + one[one.index(b"\n") + 1:]

    def test_noise_is_taken_away(self) -> None:
        source = random.Random(5)
        data = b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n"
        for _ in range(6):
            noisy = bytes(max(0, min(255, round(source.gauss(120, 10)))) for _ in range(64 * 48 * 3 // 2))
            data += b"FRAME\n" + noisy
        self.path("in.y4m").write_bytes(data)
        report = json.loads(self.done("video", "in.y4m", "-o", "out.y4m", "--json", "--method", "nlm").out)
        assert report["frames"] == 6
        assert [(scene["first"], scene["frames"]) for scene in report["scenes"]] == [(0, 6)]
        for sigma in report["scenes"][0]["sigma"]:
            assert sigma == pytest.approx(10, abs=2)
        body = self.bytes_of("out.y4m")[-64 * 48 * 3 // 2:]
        deviation = (sum((v - 120) ** 2 for v in body) / len(body)) ** 0.5
        assert deviation < 5

    def test_help_tells_how_many_frames_take_part(self) -> None:
        assert re.search(r"--radius-t .*from 0 to 8; default 4 \(fast 2, high 6\)\)", run("video", "--help").out)
        assert re.search(r"--radius-t .*from 0 to 16; default 1\)", run("video", "--method", "nlm", "--help").out)
        assert re.search(r"--radius-t .*from 0 to 8; default 0\)", run("denoise", "--help").out)

    def test_damaged(self) -> None:
        whole = clip()
        size = len(frame_bytes(23, 17, "420", 0))
        assert "in.y4m: there is nothing in it" in self.fails(b"")
        assert "is cut short in the Y4M header" in self.fails(b"YUV4MPEG2 W16")
        assert "tells no width or no height" in self.fails(b"YUV4MPEG2 W16 F25:1\n")
        assert "'W0' in the Y4M header" in self.fails(whole.replace(b"W23", b"W0"))
        assert "'W-4' in the Y4M header" in self.fails(whole.replace(b"W23", b"W-4"))
        assert "'H99999999999'" in self.fails(whole.replace(b"H17", b"H99999999999"))
        assert "is cut short: frame 0" in self.fails(whole.replace(b"W23", b"W65536"))
        assert "'Fx' in the Y4M header is no ratio" in self.fails(whole.replace(b"F25:1", b"Fx"))
        assert "colour space '419' is not supported" in self.fails(whole.replace(b"C420jpeg", b"C419"))
        assert "colour space '420p17' is not" in self.fails(whole.replace(b"C420jpeg", b"C420p17"))
        assert "more than 4096 characters" in self.fails(b"YUV4MPEG2 " + b"X" * 9000 + b"\n")
        assert "begins with 'YUV4MPEG2W23" in self.fails(whole.replace(b"YUV4MPEG2 ", b"YUV4MPEG2"))
        assert not self.path("out.y4m").exists()
        message = self.fails(whole[:-5])
        assert message == (f"ungrain: in.y4m: is cut short: frame 2 has {size - 5} of {size} bytes; 2 frames are in "
                           "out.y4m\n")
        assert self.bytes_of("out.y4m") == clip(frames=2)
        damaged = clip(frames=1) + b"GRAME\n" + frame_bytes(23, 17, "420", 1)
        assert "frame 1 does not begin with FRAME but with 'GRAME'" in self.fails(damaged)
        assert "the size changes from 23x17 to 24x17 at frame 3; 3 frames are in" in self.fails(whole + clip(24))
        assert "the colour space changes at frame 3" in self.fails(whole + clip(space="422"))

    def test_interlaced(self) -> None:
        for kind in "tbm":
            message = self.fails(clip(words=f"F25:1 I{kind}"))
            assert "ffmpeg -vf bwdif" in message
        assert "frame 1 is interlaced" in self.fails(clip(lines=("", " Itip")))
        self.path("in.y4m").write_bytes(clip(words="F25:1 I?"))
        self.kept("in.y4m", "-o", "out.y4m")

    def test_what_does_not_fit(self) -> None:
        self.path("in.y4m").write_bytes(clip())
        assert "image files hold no YCbCr frames" in self.refused("in.y4m", "-o", "f%d.png", *KEEP)
        assert "there is no such file" in self.refused("none.y4m", "-o", "out.y4m", *KEEP)
        assert "--frames takes" in self.refused("in.y4m", "-o", "out.y4m", "--frames", "0", code=2)
        assert "name a clip" in self.refused(code=2)
        assert "--encoder is for video files" in self.refused("in.y4m", "-o", "o.y4m", "--encoder", "x", code=2)
        assert "--rate: in.y4m tells its own rate" in self.refused("in.y4m", "-o", "o.y4m", "--rate", "5", code=2)
        assert "no-such-folder" in self.refused("in.y4m", "-o", "no-such-folder/out.y4m", *KEEP)


class TestPipes(Video):
    def pipe(self, data: bytes, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([PROGRAM, "video", "-", "-o", "-", *arguments], input=data, capture_output=True, timeout=20,
                              cwd=self.folder)

    def test_y4m(self) -> None:
        for space in ("420jpeg", "mono", "444p12"):
            data = clip(61, 47, space, frames=7)
            done = self.pipe(data, *KEEP)
            assert (done.returncode, done.stdout) == (0, data)
            assert len(done.stderr.splitlines()) == 1  # the report

    def test_raw(self) -> None:
        data = frame_bytes(24, 10, "420p10", 1) + frame_bytes(24, 10, "420p10", 2)
        done = self.pipe(data, *KEEP, "--size", "24x10", "--format", "yuv420p10le", "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")

    def test_named_pipes(self) -> None:
        os.mkfifo(self.path("in"))
        os.mkfifo(self.path("out"))
        data = clip(frames=5)
        process = start("video", "in", "-o", "out", *KEEP, folder=self.folder)
        writer = subprocess.Popen(["sh", "-c", "cat > in"], stdin=subprocess.PIPE, cwd=self.folder)
        reader = subprocess.Popen(["cat", "out"], stdout=subprocess.PIPE, cwd=self.folder)
        writer.communicate(data, timeout=20)
        assert reader.communicate(timeout=20)[0] == data
        assert ends_by(process)[0] == 0

    def test_frames_flow_while_the_input_waits(self) -> None:
        """A live source: results come while it still delivers."""
        process = subprocess.Popen([PROGRAM, "video", "-", "-o", "-", "-q", "--no-cuts", *KEEP], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
        data = clip(frames=40)
        process.stdin.write(data[:-2000])
        process.stdin.flush()
        # Not through the file object: what it reads ahead would be lost to communicate().
        first = b""
        while len(first) < len(clip(frames=10)):
            first += os.read(process.stdout.fileno(), len(clip(frames=10)) - len(first))
        assert first == clip(frames=10)
        rest, errors = process.communicate(data[-2000:], timeout=20)
        assert (first + rest, errors) == (data, b"")

    def test_truncated(self) -> None:
        done = self.pipe(clip()[:-1], *KEEP, "-q")
        assert done.returncode == 1
        assert done.stdout == clip(frames=2)
        assert b"standard input: is cut short: frame 2" in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_nothing(self) -> None:
        done = self.pipe(b"", *KEEP)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr == b"ungrain: standard input: there is nothing in it\n"

    def test_broken_pipe(self) -> None:
        self.path("in.y4m").write_bytes(clip(160, 120, frames=60))
        process = start("video", "in.y4m", "-o", "-", *KEEP, "-q", folder=self.folder)
        process.stdout.read(100)
        process.stdout.close()
        errors = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(timeout=20) == 1
        assert errors.count("\n") == 1, errors
        assert "standard output: cannot be written: Broken pipe" in errors


@pytest.mark.measured
class TestInterrupted(Video):
    def check(self, number: int) -> None:
        self.path("in.y4m").write_bytes(clip(96, 72, frames=60))
        process = start("video", "in.y4m", "-o", "out.y4m", *SLOW, folder=self.folder)
        header = len(clip(96, 72, frames=0))
        size = len(clip(96, 72, frames=1)) - header

        def two_frames() -> bool:
            made = temporaries(self.folder)
            return any(os.path.getsize(path) >= header + 2 * size for path in made if os.path.exists(path))

        wait_until(two_frames, process)
        process.send_signal(number)
        sent = time.monotonic()
        code, _, errors = ends_by(process)
        assert time.monotonic() - sent < SOON
        assert code == 1, errors
        match = re.fullmatch(r"ungrain: interrupted: (\d+) frames done, out.y4m holds them\n", errors)
        assert match is not None, errors
        assert len(self.bytes_of("out.y4m")) == header + int(match[1]) * size
        self.assert_tidy()
        self.kept("out.y4m", "-o", "again.y4m")

    def test_interrupt(self) -> None:
        self.check(signal.SIGINT)

    def test_terminate(self) -> None:
        self.check(signal.SIGTERM)

    def test_while_the_input_waits(self) -> None:
        process = subprocess.Popen([PROGRAM, "video", "-", "-o", "out.y4m", *KEEP], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
        process.stdin.write(clip()[:-7])
        process.stdin.flush()
        wait_until(lambda: watches(process), process)
        time.sleep(0.5)  # it reads what there is, and waits
        process.send_signal(signal.SIGINT)
        process.wait(timeout=LONGEST)
        assert process.returncode == 1
        assert b"interrupted" in process.stderr.read()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        self.assert_tidy()


class TestRaw(Video):
    def test_every_format_keeps_its_bits(self, subtests: pytest.Subtests) -> None:
        names = {"gray": "mono", "gray10le": "mono10", "gray16le": "mono16", "yuv420p": "420", "yuv422p": "422",
                 "yuv444p": "444", "yuv411p": "411"}
        names |= {f"yuv{family}p{bits}le": f"{family}p{bits}" for family in (420, 422, 444) for bits in (10, 12, 14, 16)}
        for name, space in names.items():
            with subtests.test(format=name):
                data = frame_bytes(21, 13, space, 1) + frame_bytes(21, 13, space, 2)
                self.path("in.yuv").write_bytes(data)
                self.kept("in.yuv", "-o", "out.raw", "--size", "21x13", "--format", name)
                assert self.bytes_of("out.raw") == data
                self.kept("in.yuv", "-o", "out.y4m", "--size", "21x13", "--format", name, "--rate", "30000/1001")
                header, _, body = self.bytes_of("out.y4m").partition(b"\n")
                assert b" F30000:1001 " in header
                assert body == b"FRAME\n" + data[:len(data) // 2] + b"FRAME\n" + data[len(data) // 2:]

    def test_rgb(self) -> None:
        for name, bytes_a_pixel in (("rgb24", 3), ("rgb48le", 6)):
            data = random.Random(1).randbytes(3 * 20 * 10 * bytes_a_pixel)
            self.path("in.rgb").write_bytes(data)
            report = self.kept("in.rgb", "-o", "out.rgb", "--size", "20x10", "--format", name)
            assert self.bytes_of("out.rgb") == data
            assert (report["frames"], report["colour"]) == (3, "rgb")
            message = self.refused("in.rgb", "-o", "out.y4m", "--size", "20x10", "--format", name, *KEEP)
            assert "Y4M holds gray and YCbCr frames" in message

    def test_float(self) -> None:
        """Noise that was not cut off goes below black and above white."""
        source = random.Random(1)
        samples = [-0.25, 1.5, 0.0, 1.0, *(source.gauss(0.5, 0.5) for _ in range(2 * 20 * 10 * 3 - 4))]
        data = struct.pack(f"<{len(samples)}f", *samples)
        self.path("in.rgb").write_bytes(data)
        raw = ("--size", "20x10", "--format", "rgbf32le")
        report = self.kept("in.rgb", "-o", "out.raw", *raw)
        assert self.bytes_of("out.raw") == data
        assert (report["frames"], report["colour"], report["type"], report["range"]) == (2, "rgb", "f32", 1)
        assert "20x10 f32 rgb" in self.done("video", "in.rgb", "-o", "out.raw", *raw, *KEEP).out
        assert "not f32 rgb" in self.refused("in.rgb", "-o", "out.y4m", *raw, *KEEP)
        if FFMPEG:
            message = self.refused("in.rgb", "-o", "out.mkv", *raw, *KEEP)
            assert "frames of f32 samples cannot be handed to ffmpeg: name a .raw file" in message

    def test_usage(self) -> None:
        self.path("in.yuv").write_bytes(bytes(100))
        out = ("-o", "out.yuv")
        assert "raw frames need --size WxH and --format NAME" in self.refused("in.yuv", *out, code=2)
        assert "--format needs --size" in self.refused("in.yuv", *out, "--format", "gray", code=2)
        assert "--size needs --format" in self.refused("in.yuv", *out, "--size", "3x3", code=2)
        message = self.refused("in.yuv", *out, "--size", "3x3", "--format", "nv12", code=2)
        assert "--format takes one of gray, " in message
        message = self.refused("in.yuv", *out, "--size", "30x30", "--format", "gray", *KEEP)
        assert "in.yuv: has 100 bytes, a frame of 30 x 30 in gray has 900" in message
        message = self.refused("in.yuv", *out, "--size", "10x6", "--format", "gray", *KEEP)
        assert "is cut short, or --size or --format is not right: frame 1 has 40 of 60 bytes" in message


class TestFrameFiles(Video):
    def write(self, numbers, channels: int = 3, name: str = "in/f{:05}.ppm") -> None:
        self.path("in").mkdir(exist_ok=True)
        self.path("out").mkdir(exist_ok=True)
        for number in numbers:
            write_pnm(self.path(name.format(number)), picture(24, 18, channels, seed=number + 1))

    def test_keeps_frames_and_numbers(self) -> None:
        for numbers in (range(5), range(1, 4), range(98765, 98768)):
            self.write(numbers)
            report = self.kept("in/f%05d.ppm", "-o", "out/g%d.ppm")
            assert report["frames"] == len(numbers)
            for number in numbers:
                assert self.bytes_of(f"in/f{number:05}.ppm") == self.bytes_of(f"out/g{number}.ppm")
            for path in [*self.path("in").iterdir(), *self.path("out").iterdir()]:
                path.unlink()

    def test_start_keeps_numbers(self) -> None:
        self.write(range(1, 7))
        self.kept("in/f%05d.ppm", "-o", "out/f%05d.ppm", "--start", "2", "--frames", "3")
        assert sorted(path.name for path in self.path("out").iterdir()) == ["f00003.ppm", "f00004.ppm", "f00005.ppm"]
        assert self.bytes_of("in/f00003.ppm") == self.bytes_of("out/f00003.ppm")

    def test_gap(self) -> None:
        self.write([1, 2, 4])
        message = self.refused("in/f%05d.ppm", "-o", "out/f%05d.ppm", *KEEP)
        assert message == "ungrain: in/f00003.ppm: is missing, f00004.ppm is there; 2 frames are in out/f%05d.ppm\n"
        assert len(list(self.path("out").iterdir())) == 2

    def test_other_sizes(self) -> None:
        self.write([1, 2])
        write_pnm(self.path("in/f00003.ppm"), picture(25, 18, 3))
        message = self.refused("in/f%05d.ppm", "-o", "out/f%05d.ppm", *KEEP)
        assert "in/f00003.ppm: has 25x18 pixels, the frames before it 24x18; 2 frames are in" in message
        write_pnm(self.path("in/f00003.ppm"), picture(24, 18))
        assert "has other channels" in self.refused("in/f%05d.ppm", "-o", "out/f%05d.ppm", *KEEP)

    def test_gray_to_y4m_and_back(self) -> None:
        self.write(range(3), 1, "in/f{}.pgm")
        self.kept("in/f%d.pgm", "-o", "clip.y4m")
        assert self.bytes_of("clip.y4m").startswith(b"YUV4MPEG2 W24 H18 F25:1 Ip A0:0 Cmono\n")
        self.kept("clip.y4m", "-o", "out/f%03d.pgm")
        for number in range(3):
            assert self.bytes_of(f"in/f{number}.pgm") == self.bytes_of(f"out/f{number + 1:03}.pgm")

    def test_png(self) -> None:
        self.path("out").mkdir()
        for number in range(3):
            write_png(self.path(f"f{number}.png"), picture(24, 18, 3, seed=number + 1))
        result = self.video("f%d.png", "-o", "out/f%d.png", *KEEP)
        if "libvips" in result.err:
            pytest.skip("a build without libvips")
        assert (result.code, result.err) == (0, "")
        for number in range(3):
            compared = self.done("compare", f"f{number}.png", f"out/f{number}.png", "--json")
            assert '"mse":0.0' in compared.out.replace(" ", "")

    def test_usage(self) -> None:
        assert "none%d.ppm: no such files" in self.refused("none%d.ppm", "-o", "out%d.ppm", *KEEP)
        assert "two places for a number" in self.refused("a%d-%d.ppm", "-o", "out%d.ppm", *KEEP)
        assert "not in a folder's" in self.refused("a%d/b.ppm", "-o", "out%d.ppm", *KEEP)
        self.write([1])
        assert "name the output" in self.refused("in/f%05d.ppm", code=2)
        assert "Y4M holds gray and YCbCr" in self.refused("in/f%05d.ppm", "-o", "out.y4m", *KEEP)


class TestDemo(Video):
    """The computed clip: exact truth, known noise, a cut in the middle."""

    def frames(self, name: str, size: int) -> list[bytes]:
        body = self.bytes_of(name).partition(b"\n")[2]
        assert len(body) % (size + 6) == 0
        return [body[at + 6:at + 6 + size] for at in range(0, len(body), size + 6)]

    @staticmethod
    def psnr(clean: list[bytes], other: list[bytes], samples: int) -> float:
        squares = sum((a - b) ** 2 for one, two in zip(clean, other) for a, b in zip(one[:samples], two[:samples]))
        return 10 * math.log10(255 ** 2 / (squares / samples / len(clean)))

    def test_clip(self) -> None:
        options = ("demo", "--frames", "12", "--size", "96x64", "--gaussian", "15")
        self.done(*options, "-o", "a")
        self.done(*options, "-o", "b")
        for name in ("clean.y4m", "noisy.y4m"):
            assert self.bytes_of(f"a/{name}") == self.bytes_of(f"b/{name}")
        self.done(*options, "-o", "b", "--seed", "2")
        assert self.bytes_of("a/clean.y4m") == self.bytes_of("b/clean.y4m")
        assert self.bytes_of("a/noisy.y4m") != self.bytes_of("b/noisy.y4m")
        assert self.bytes_of("a/clean.y4m").startswith(
            b"YUV4MPEG2 W96 H64 F25:1 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\nFRAME\n")
        clean, noisy = (self.frames(f"a/{name}.y4m", 96 * 64 * 3 // 2) for name in ("clean", "noisy"))
        assert (len(clean), len(noisy)) == (12, 12)
        assert noisy[0][:50] != noisy[1][:50]

        report = json.loads(self.done("video", "a/noisy.y4m", "-o", "out.y4m", "--method", "nlm", "--json").out)
        assert [scene["first"] for scene in report["scenes"]] == [0, 6]
        result = self.frames("out.y4m", 96 * 64 * 3 // 2)
        assert self.psnr(clean, result, 96 * 64) > self.psnr(clean, noisy, 96 * 64) + 2

        report = json.loads(self.done("video", "a/noisy.y4m", "-o", "one.y4m", "--method", "nlm", "--json", "--no-cuts").out)
        assert [scene["first"] for scene in report["scenes"]] == [0]

    def test_image_files(self) -> None:
        self.done("demo", "--frames", "3", "--size", "40x30", "-o", "d", "--format", "ppm")
        assert sorted(path.name for path in self.path("d/noisy").iterdir()) == ["f00001.ppm", "f00002.ppm", "f00003.ppm"]
        assert len(list(self.path("d/clean").iterdir())) == 3
        self.kept("d/noisy/f%05d.ppm", "-o", "d/out%d.ppm")
        self.done("demo", "--frames", "2", "--size", "40x30", "-o", "g", "--gray")
        assert self.bytes_of("g/clean.y4m").startswith(b"YUV4MPEG2 W40 H30 F25:1 Ip A1:1 Cmono\n")

    def test_usage(self) -> None:
        assert "--format is for a clip" in self.run_here("demo", "--format", "ppm").err
        assert self.run_here("demo", "--frames", "0").code == 2


@pytest.mark.skipif(not FFMPEG, reason="ffmpeg is not installed")
class TestFfmpeg(Video):
    def ffmpeg(self, *words: str) -> None:
        done = subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *words], cwd=self.folder, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def make(self, name: str, *encoder: str, pictures: str = "testsrc2=s=128x96:r=25:d=2", sound: bool = True) -> None:
        inputs = ["-f", "lavfi", "-i", pictures] + (["-f", "lavfi", "-i", "sine=d=2"] if sound else [])
        self.ffmpeg(*inputs, *(encoder or ("-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac")), name)

    def probe(self, name: str, entries: str, *more: str) -> list[str]:
        done = subprocess.run(["ffprobe", "-v", "error", *more, "-show_entries", entries, "-of", "csv", name],
                              cwd=self.folder, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    def times(self, name: str, stream: str = "v:0") -> list[str]:
        """Of the frames as they are shown, in ticks and seconds."""
        return self.probe(name, "frame=pts_time", "-select_streams", stream)

    def sound(self, name: str) -> str:
        done = subprocess.run(["ffmpeg", "-v", "error", "-i", name, "-map", "0:a", "-c", "copy", "-f", "md5", "-"],
                              cwd=self.folder, capture_output=True, text=True, timeout=60)
        return done.stdout

    def pixels(self, name: str) -> str:
        done = subprocess.run(["ffmpeg", "-v", "error", "-i", name, "-map", "0:v:0", "-fps_mode", "passthrough", "-f",
                               "framemd5", "-"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        return "".join(line.split(",")[-1] for line in done.stdout.splitlines() if not line.startswith("#"))

    LOSSLESS = ("--encoder", "-c:v libx264 -preset ultrafast -qp 0")

    @pytest.mark.parametrize("name", ["in.mkv", "in.mp4", "in.mov", "in.ts"])
    def test_h264_with_sound(self, name: str) -> None:
        """Frame count, timestamps, pixels and sound are the input's."""
        self.make(name)
        out = "out" + Path(name).suffix
        report = self.kept(name, "-o", out, *self.LOSSLESS)
        assert report["frames"] == 50
        assert self.times(name) == self.times(out)
        assert self.pixels(name) == self.pixels(out)
        assert self.sound(name) == self.sound(out)
        assert self.times(name, "a:0") == self.times(out, "a:0")

    def test_default_encoder(self) -> None:
        self.make("in.mkv")
        self.kept("in.mkv")
        assert self.times("in.mkv") == self.times("in.ungrain.mkv")
        assert self.probe("in.ungrain.mkv", "stream=codec_name,pix_fmt") == ["stream,h264,yuv420p", "stream,aac"]

    def test_variable_frame_rate(self) -> None:
        for name in ("in.mkv", "in.mp4"):
            self.make(name, "-vf", "select='not(mod(n,3))+gt(n,30)',setpts='PTS+floor(N/7)*0.013/TB'", "-fps_mode",
                      "passthrough", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac")
            times = self.times(name)
            steps = {round(float(b.split(",")[1]) - float(a.split(",")[1]), 3) for a, b in zip(times, times[1:])}
            assert len(steps) > 2, "the rate is meant to vary"
            out = "out" + Path(name).suffix
            self.kept(name, "-o", out, *self.LOSSLESS)
            assert self.times(out) == times
            assert self.sound(name) == self.sound(out)

    def test_colour_tags_and_depth(self) -> None:
        tags = "stream=pix_fmt,color_range,color_space,color_transfer,color_primaries,chroma_location,sample_aspect_ratio"
        self.make("in.mkv", "-vf", "setsar=8/9", "-pix_fmt", "yuv420p10le", "-c:v", "libx264", "-preset", "ultrafast",
                  "-color_range", "tv", "-colorspace", "bt2020nc", "-color_trc", "smpte2084", "-color_primaries", "bt2020",
                  "-chroma_sample_location", "topleft", sound=False)
        report = self.kept("in.mkv", "-o", "out.mkv", *self.LOSSLESS)
        assert report["range"] == 1023
        assert self.probe("in.mkv", tags) == self.probe("out.mkv", tags)
        assert self.pixels("in.mkv") == self.pixels("out.mkv")

    def test_full_range(self) -> None:
        self.make("in.mkv", "-vf", "scale=out_range=full", "-pix_fmt", "yuvj420p", "-c:v", "libx264", "-qp", "0", sound=False)
        self.kept("in.mkv", "-o", "out.mkv", *self.LOSSLESS)
        assert self.pixels("in.mkv") == self.pixels("out.mkv")
        assert self.probe("out.mkv", "stream=pix_fmt,color_range") == ["stream,yuvj420p,pc"]
        self.kept("in.mkv", "-o", "out.y4m")
        assert b"XCOLORRANGE=FULL" in self.bytes_of("out.y4m").partition(b"\n")[0]
        self.kept("out.y4m", "-o", "again.mkv", *self.LOSSLESS)
        assert self.pixels("in.mkv") == self.pixels("again.mkv")
        assert self.probe("again.mkv", "stream=pix_fmt,color_range") == ["stream,yuvj420p,pc"]

    def test_rgb_and_alpha_are_told(self) -> None:
        self.make("in.mkv", "-pix_fmt", "bgra", "-c:v", "ffv1", sound=False)
        report = self.kept("in.mkv", "-o", "out.mkv")
        assert report["note"] == "bgra is read as yuv444p; alpha is not kept"

    def test_lossless_where_h264_has_too_few_bits(self) -> None:
        for samples in ("yuv422p12le", "gray16le", "yuv444p16le"):
            self.make("in.mkv", "-pix_fmt", samples, "-c:v", "ffv1", sound=False)
            self.kept("in.mkv", "-o", "out.mkv")
            assert self.pixels("in.mkv") == self.pixels("out.mkv"), samples
            assert self.probe("out.mkv", "stream=codec_name,pix_fmt") == [f"stream,ffv1,{samples}"]

    def test_subtitles_chapters_and_titles(self) -> None:
        self.path("words.srt").write_text("1\n00:00:00,100 --> 00:00:01,000\nhello\n")
        self.path("about.txt").write_text(";FFMETADATA1\ntitle=A clip\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=900\n"
                                          "title=One\n")
        self.make("plain.mkv")
        self.ffmpeg("-i", "plain.mkv", "-i", "words.srt", "-i", "about.txt", "-map", "0", "-map", "1", "-map_metadata", "2",
                    "-metadata:s:v:0", "language=fin", "-c", "copy", "in.mkv")
        self.kept("in.mkv", "-o", "out.mkv", *self.LOSSLESS)
        for entries in ("stream=codec_type", "chapter=start_time,end_time", "format_tags=title",
                        "stream_tags=language"):
            assert self.probe("in.mkv", entries) == self.probe("out.mkv", entries), entries

    def test_part_of_a_clip(self) -> None:
        self.make("in.mkv")
        self.kept("in.mkv", "-o", "out.mkv", "--start", "10", "--frames", "20", *self.LOSSLESS)
        times = [float(line.split(",")[1]) for line in self.times("out.mkv")]
        assert len(times) == 20
        assert times[-1] - times[0] == pytest.approx(19 / 25, abs=0.002)
        assert float(self.times("out.mkv", "a:0")[-1].split(",")[1]) < 1.5

    def test_to_and_from_y4m(self) -> None:
        self.make("in.mkv")
        self.kept("in.mkv", "-o", "out.y4m")
        self.kept("out.y4m", "-o", "out.mkv", *self.LOSSLESS)
        assert self.pixels("in.mkv") == self.pixels("out.mkv")
        assert len(self.times("out.mkv")) == 50

    def test_frame_files_to_video(self) -> None:
        for number in range(5):
            write_pnm(self.path(f"f{number}.ppm"), picture(32, 24, 3, seed=number + 1))
        self.kept("f%d.ppm", "-o", "out.mkv", "--rate", "10", "--encoder", "-c:v ffv1 -pix_fmt gbrp")
        assert [float(line.split(",")[1]) for line in self.times("out.mkv")] == [0, 0.1, 0.2, 0.3, 0.4]

    def test_cover_picture_is_not_the_video(self) -> None:
        write_png(self.path("cover.png"), picture(40, 30, 3))
        self.make("plain.mp4")
        self.ffmpeg("-i", "plain.mp4", "-i", "cover.png", "-map", "1", "-map", "0", "-c", "copy", "-disposition:v:0",
                    "attached_pic", "in.mp4")
        report = self.kept("in.mp4", "-o", "out.mp4", *self.LOSSLESS)
        assert (report["width"], report["frames"]) == (128, 50)
        kinds = sorted(self.probe("in.mp4", "stream=codec_name"))
        assert sorted(self.probe("out.mp4", "stream=codec_name")) == kinds

    def test_interlaced(self) -> None:
        self.make("in.mkv", "-vf", "interlace", "-c:v", "libx264", "-preset", "ultrafast", "-flags", "+ilme+ildct", sound=False)
        assert "in.mkv: the frames are interlaced" in self.refused("in.mkv", "-o", "out.mkv", *KEEP)

    def test_what_is_no_video(self) -> None:
        self.path("in.mkv").write_bytes(b"no video at all")
        assert "in.mkv: ffprobe: " in self.refused("in.mkv", "-o", "out.mkv", *KEEP)
        self.ffmpeg("-f", "lavfi", "-i", "sine=d=0.2", "sound.mka")
        assert "sound.mka: has no video in it" in self.refused("sound.mka", "-o", "out.mkv", *KEEP)
        assert "is a folder" in self.refused(".", "-o", "out.mkv", *KEEP)
        self.make("clip.mkv", sound=False)
        message = self.refused("clip.mkv", "-o", "out.mkv", *KEEP, "--encoder", "-c:v no-such-encoder")
        assert "out.mkv: ffmpeg: Unknown encoder 'no-such-encoder'" in message
        assert not self.path("out.mkv").exists()
        assert "ffmpeg: " in self.refused("clip.mkv", "-o", "out.unknown", *KEEP, "--encoder", "-c:v ffv1")

    def test_cut_short(self) -> None:
        """ffmpeg takes what there is; what it says of it is passed on."""
        self.make("in.mkv")
        self.path("short.mkv").write_bytes(self.bytes_of("in.mkv")[:20000])
        result = self.video("short.mkv", "-o", "out.mkv", *KEEP)
        assert result.code == 0
        assert len(result.err_lines) == 1
        assert "short.mkv: ffmpeg: " in result.err
        times = self.times("out.mkv")
        assert len(times) > 1
        assert times == self.times("in.mkv")[:len(times)]
        self.assert_tidy()

    def test_odd_names(self) -> None:
        self.make("plain.mkv")
        for name in ("-dash.mkv", "a:b.mkv", "with space.mkv", "50%.mkv"):
            shutil.copy(self.path("plain.mkv"), self.path(name))
            self.kept(f"./{name}", "-o", f"./out {name}", *self.LOSSLESS)
            assert self.times(f"./{name}") == self.times(f"./out {name}")

    def test_ctrl_c_leaves_a_file_that_plays(self) -> None:
        """The whole process group gets the signal, as from a terminal."""
        self.make("in.mkv", pictures="testsrc2=s=96x72:r=25:d=4")
        process = start("video", "in.mkv", "-o", "out.mkv", *SLOW, folder=self.folder, start_new_session=True)
        wait_until(lambda: temporaries(self.folder), process)
        time.sleep(3)
        os.killpg(process.pid, signal.SIGINT)
        code, _, errors = ends_by(process)
        assert code == 1
        match = re.fullmatch(r"ungrain: interrupted: (\d+) frames done, out.mkv holds them\n", errors)
        assert match is not None, errors
        assert self.times("out.mkv") == self.times("in.mkv")[:int(match[1])]
        self.assert_tidy()

    def test_without_ffmpeg(self) -> None:
        self.make("in.mkv", sound=False)
        self.path("bin").mkdir()
        environment = {**os.environ, "PATH": str(self.path("bin"))}
        message = self.refused("in.mkv", "-o", "out.mkv", *KEEP, env=environment)
        assert "in.mkv: reading and writing such files needs the program ffmpeg, which is not on PATH" in message
        self.path("in.y4m").write_bytes(clip())
        message = self.refused("in.y4m", "-o", "out.mkv", *KEEP, env=environment)
        assert "out.mkv: reading and writing such files needs" in message
        assert run("video", "in.y4m", "-o", "out.y4m", *KEEP, folder=self.folder, env=environment).code == 0
