"""ungrain view as a program: what its server shows, saves and refuses. The page itself is tested in tests/page."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import PROGRAM, Workspace, picture, read_pnm, read_tiff, run, start, volume, write_nifti, write_pnm, write_tiff
from test_raw import reads_raw

TILE = 256
WIDTH, HEIGHT = 300, 280


def available() -> str:
    done = subprocess.run([PROGRAM, "view", "--listen", "nowhere.invalid:1", "--no-browser"], capture_output=True, timeout=20)
    return "this build has no view" if b"this build has no view" in done.stderr else ""


WHY_NOT = available()
# One picture does not repay a GPU's start, a page in the browser does: the bits are compared on one device.
os.environ["CUDA_VISIBLE_DEVICES"] = ""


class Server:
    def __init__(self, *arguments, folder: Path, environment=None) -> None:
        self.process = start("view", *arguments, "--no-browser", folder=folder, env=environment)
        self.address = self.process.stdout.readline().decode().strip()
        parts = urllib.parse.urlsplit(self.address)
        self.host, self.port = parts.hostname, parts.port
        self.token = urllib.parse.parse_qs(parts.query).get("token", [""])[0]

    def ask(self, path: str, body=None, headers=None, method=None) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = {} if body is None or isinstance(body, bytes) else {"Content-Type": "application/json"}
        connection.request(method or ("GET" if body is None else "POST"), path, sent, {**kind, **(headers or {})})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, data

    def get(self, path: str, body=None) -> dict:
        status, _, data = self.ask(path, body)
        if status != 200:
            raise AssertionError(f"{path}: {status} {data[:200]!r}")
        return json.loads(data)

    def error(self, path: str, body=None, **more) -> tuple[int, str]:
        status, _, data = self.ask(path, body, **more)
        return status, json.loads(data)["error"]

    def tile(self, file=1, level=0, x=0, y=0, kind="clean", words=(), turn=1, client="test", **more) -> tuple[bytes, dict[str, str]]:
        query = urllib.parse.urlencode({"file": file, "level": level, "x": x, "y": y, "kind": kind, "turn": turn,
                                        "client": client, "words": json.dumps(list(words)), **more})
        status, headers, data = self.ask(f"/api/tile?{query}")
        if status != 200:
            raise AssertionError(f"{status} {data[:200]!r}")
        return data, headers

    def job(self, number: int) -> dict:
        for _ in range(600):
            job = next(each for each in self.get("/api/jobs")["jobs"] if each["job"] == number)
            if job["state"] != "running":
                return job
            time.sleep(0.05)
        raise AssertionError(f"job {number} does not end")

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=30)
        return self.process.returncode


def shown(image, x: int, y: int) -> bytes:
    """The bytes of a tile of an 8-bit picture."""
    result = bytearray()
    for row in range(y * TILE, min(image.height, (y + 1) * TILE)):
        for column in range(x * TILE, min(image.width, (x + 1) * TILE)):
            at = (row * image.width + column) * image.channels
            pixel = image.samples[at:at + image.channels]
            result += bytes(pixel if image.channels == 3 else [pixel[0]] * 3) + b"\xff"
    return bytes(result)


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
class ViewTest(Workspace):
    @pytest.fixture(autouse=True)
    def own_servers(self, workspace: None) -> Iterator[None]:
        self.servers: list[Server] = []
        self.shown = self.folder / "shown"
        self.shown.mkdir()
        yield
        for server in self.servers:
            if server.process.poll() is None:
                server.process.kill()
                server.process.communicate()

    def serve(self, *arguments, **more) -> Server:
        self.servers.append(Server(*(arguments or ["shown"]), folder=self.folder, **more))
        return self.servers[-1]

    def photo(self, name="a.ppm", channels=3, width=WIDTH, height=HEIGHT) -> Path:
        return write_pnm(self.shown / name, picture(width, height, channels))


class TestPictures(ViewTest):
    def test_tiles_are_the_pixels_that_the_program_writes(self):
        self.photo()
        self.photo("b.pgm", 1)
        server = self.serve()
        for file, name in ((1, "a.ppm"), (2, "b.pgm")):
            for words in ([], ["--method", "bilateral", "--radius", "3"], ["--method=median"], ["--strength", "0.5"],
                          ["--method", "gaussian", "--sigma", "2", "--keep-grain", "0.3"]):
                out = self.folder / f"out{Path(name).suffix}"
                assert run(self.shown / name, "-o", out, *words).code == 0
                saved = read_pnm(out)
                for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)):
                    data, headers = server.tile(file, x=x, y=y, words=words, exact=1)
                    assert headers["x-exact"] == "1"
                    assert data == shown(saved, x, y), (name, words, x, y)
            data, _ = server.tile(file, kind="noisy")
            assert data == shown(read_pnm(self.shown / name), 0, 0)

    def test_a_level_is_made_of_means(self):
        path = self.photo("b.pgm", 1, width=512, height=300)
        data, headers = self.serve().tile(level=1, kind="noisy")
        assert (headers["x-width"], headers["x-height"]) == ("256", "150")
        image = read_pnm(path)
        four = [image.samples[i] for i in (0, 1, 512, 513)]
        assert abs(data[0] - sum(four) / 4) <= 0.5

    def test_an_exact_level_is_made_of_what_is_written(self):
        path = self.photo("b.pgm", 1, width=600, height=520)
        assert run(path, "-o", self.folder / "out.pgm", "--method", "median").code == 0
        saved = read_pnm(self.folder / "out.pgm")
        data, headers = self.serve().tile(level=1, words=["--method", "median"], exact=1, x=1, y=1)
        assert (headers["x-width"], headers["x-height"], headers["x-exact"]) == ("44", "4", "1")
        for x, y in ((0, 0), (43, 3), (20, 2)):
            at = 2 * (y + 256) * 600 + 2 * (x + 256)
            mean = sum(saved.samples[i] for i in (at, at + 1, at + 600, at + 601)) / 4
            assert abs(data[4 * (44 * y + x)] - mean) <= 0.5

    def test_sixteen_bits_have_a_window(self):
        image = picture(300, 200)
        image.samples = [value * 16 for value in image.samples]
        image.white = 65535
        write_pnm(self.shown / "c.pgm", image)
        server = self.serve()
        info = server.get("/api/info?file=1")
        assert info["type"] == "u16"
        assert info["high"] < 5000
        data, _ = server.tile(kind="noisy", low=0, high=4080)
        assert abs(data[0] - image.samples[0] / 16) <= 1

    def test_difference_and_removed_have_gray_where_nothing_changes(self):
        self.photo("b.pgm", 1)
        server = self.serve()
        words = ["--method", "box", "--radius", "0"]
        for kind in ("difference", "removed"):
            data, _ = server.tile(kind=kind, words=words)
            assert set(data) == {128, 255}

    @pytest.mark.skipif(not reads_raw(), reason="this build has no LibRaw")
    def test_camera_raw_files_are_shown_as_they_are_developed(self):
        assert run("noise", "--camera", self.photo(), "-o", self.shown / "b.dng").code == 0
        server = self.serve()
        for words in ([], ["--method", "bilateral", "--sigma", "20"]):
            out = self.folder / "out.ppm"
            assert run(self.shown / "b.dng", "-o", out, "--depth", "u8", *words).code == 0
            saved = read_pnm(out)
            for x, y in ((0, 0), (1, 1)):
                data, headers = server.tile(2, x=x, y=y, words=words, exact=1)
                assert (data, headers["x-exact"]) == (shown(saved, x, y), "1"), (words, x, y)
        assert server.get("/api/noise?file=2")["model"] is None
        job = server.job(server.get("/api/save", {"file": 2, "words": [], "name": None})["job"])
        assert (job["state"], (self.shown / "b.ungrain.dng").exists()) == ("done", True), job

    def test_noise_of_a_rectangle(self):
        self.photo("b.pgm", 1)
        server = self.serve()
        found = server.get("/api/noise?file=1&x0=0&y0=0&x1=128&y1=128")
        assert found["found"]
        words = ["--noise-model", f"@{found['model']}"]
        assert server.tile(words=words)[0] != server.tile(kind="noisy")[0]
        assert "measured in 32 x 32" in server.error("/api/noise?file=1&x0=0&y0=0&x1=4&y1=4")[1]
        assert "no such noise" in server.error("/api/check", {"file": 1, "words": ["--noise-model", "@9"]})[1]

    def test_a_histogram_counts_every_pixel(self):
        self.photo("b.pgm", 1)
        server = self.serve()
        (counts,) = server.get("/api/histogram?file=1")["channels"]
        assert sum(counts) == WIDTH * HEIGHT
        (counts,) = server.get("/api/histogram?file=1&x0=10&y0=20&x1=30&y1=50")["channels"]
        assert sum(counts) == 20 * 30

    def test_wrong_settings_are_named(self):
        self.photo()
        server = self.serve()
        for words, said in ((["--radius", "500", "--method", "bilateral"], "--radius"), (["--method", "bilatral"], "bilateral"),
                            (["--strength"], "takes a value"), (["photo.png"], "options alone"),
                            (["--method", "bm3d", "--radius", "3"], "--radius")):
            status, error = server.error("/api/check", {"file": 1, "words": words})
            assert status == 400
            assert said in error

    def test_an_older_turn_is_dropped(self):
        self.photo()
        server = self.serve()
        server.tile(turn=5, words=["--method", "box"])
        status, _ = server.error("/api/tile?file=1&x=0&y=0&kind=clean&client=test&turn=4&words=%5B%22--method%22%2C%22median%22%5D")
        assert status == 409
        server.tile(turn=4, client="another window", words=["--method", "median"])


def gray_clip(frames: list) -> bytes:
    """Y4M of luma alone."""
    data = f"YUV4MPEG2 W{frames[0].width} H{frames[0].height} F25:1 Ip A1:1 Cmono\n".encode()
    return data + b"".join(b"FRAME\n" + bytes(frame.samples) for frame in frames)


def frames_of(data: bytes) -> list[bytes]:
    _, *frames = data.split(b"FRAME\n")
    return frames


class TestStacks(ViewTest):
    """Volumes and clips."""

    def pages(self, count: int, width=WIDTH, height=40) -> list:
        return [picture(width, height, seed=page + 1) for page in range(count)]

    def wait_for(self, ask):
        """What the server has not read yet is asked for again."""
        for _ in range(200):
            try:
                return ask()
            except AssertionError as error:
                if "409" not in str(error):
                    raise
                time.sleep(0.05)
        raise AssertionError("409 for ten seconds")

    def check_pages(self, server, saved: list, words, take_for: str, tiles=((0, 0), (1, 0))) -> None:
        for page in (0, len(saved) - 1, len(saved) // 2, len(saved) // 2 + 1):
            for x, y in tiles:
                data, headers = self.wait_for(
                    lambda: server.tile(x=x, y=y, words=words, exact=1, page=page, low=0, high=255, **{"as": take_for}))
                assert headers["x-exact"] == "1"
                assert data == shown(saved[page], x, y), (take_for, words, page, x)

    def test_slices_are_those_of_a_volume(self):
        path = write_tiff(self.shown / "stack.tif", self.pages(9))
        server = self.serve()
        info = server.get("/api/info?file=1")
        assert (info["as"], info["kinds"], info["pages"]) == ("pages", ["pages", "volume"], 9)
        assert server.get("/api/info?file=1&as=volume")["volume"]["depth"] == 9
        for words in ([], ["--method", "nlm3d", "--sigma", "12"], ["--method", "median"], ["--method", "bilateral", "--spacing", "1,1,2"]):
            out = self.folder / "out.tif"
            assert run("volume", path, "-o", out, *words).code == 0
            self.check_pages(server, read_tiff(out), words, "volume")
        check = server.get("/api/check", {"file": 1, "as": "volume", "words": ["--method", "nlm3d"]})
        assert "ungrain volume stack.tif" in check["command"]
        assert "ungrain.denoise_volume(volume" in check["python"]

    def test_a_file_that_says_it_is_a_volume(self):
        write_nifti(self.shown / "head.nii", (32, 24, 6, 2), [*volume(32, 24, 6), *volume(32, 24, 6, 2)], (1, 1, 2), "u1")
        server = self.serve()
        info = server.get("/api/info?file=1")
        assert (info["as"], info["kinds"], info["pages"]) == ("volume", ["volume", "pages"], 12)
        assert info["volume"] == {"depth": 6, "spacing": [1, 1, 2]}
        noisy, _ = server.tile(kind="noisy", page=7, low=0, high=255)
        expected = volume(32, 24, 6, 2)[32 * 24:2 * 32 * 24]
        assert noisy[::4] == bytes(expected)

    def test_pages_that_are_filtered_along_the_file(self):
        path = write_tiff(self.shown / "stack.tif", self.pages(5))
        server = self.serve()
        for words in (["--method", "bilateral", "--sigma", "15", "--radius-t", "1"], ["--method", "bilateral", "--sigma", "15"]):
            out = self.folder / "out.tif"
            assert run(path, "-o", out, *words).code == 0
            self.check_pages(server, read_tiff(out), words, "pages")

    def test_frames_are_those_of_a_clip_with_a_cut(self):
        dark = [picture(WIDTH, 64, seed=seed) for seed in range(6)]
        bright = []
        for seed in range(6, 12):
            frame = picture(WIDTH, 64, seed=seed)
            frame.samples = [255 - sample for sample in reversed(frame.samples)]
            bright.append(frame)
        (self.shown / "clip.y4m").write_bytes(gray_clip(dark + bright))
        server = self.serve()
        self.wait_for(lambda: server.tile(kind="noisy", page=11))
        info = server.get("/api/info?file=1")
        assert (info["as"], info["kinds"], info["rate"], info["format"]) == ("clip", ["clip"], 25, "Y4M")
        for words in ([], ["--method", "bilateral", "--radius-t", "2"]):
            out = self.folder / "out.y4m"
            done = run("video", self.shown / "clip.y4m", "-o", out, *words)
            assert done.code == 0, done.err
            assert "2 scenes" in done.out
            frames = [type(dark[0])(WIDTH, 64, 1, list(frame)) for frame in frames_of(out.read_bytes())]
            self.check_pages(server, frames, words, "clip")
        assert server.get("/api/info?file=1")["complete"]
        assert "ungrain video clip.y4m" in server.get("/api/check", {"file": 1, "words": []})["command"]

    def test_luma_and_chroma_become_colours(self):
        width, height = 32, 16
        luma, cb, cr = 150, 90, 200
        frame = bytes([luma]) * (width * height) + bytes([cb]) * (width * height // 4) + bytes([cr]) * (width * height // 4)
        (self.shown / "clip.y4m").write_bytes(f"YUV4MPEG2 W{width} H{height} F25:1 Ip C420jpeg\n".encode() + b"FRAME\n" + frame)
        server = self.serve()
        data, _ = self.wait_for(lambda: server.tile(kind="noisy"))
        bright = (luma - 16) * 255 / 219
        blue, red = (cb - 128) * 255 / 224, (cr - 128) * 255 / 224
        expected = [bright + 1.402 * red, bright - 0.344136 * blue - 0.714136 * red, bright + 1.772 * blue]
        for found, wanted in zip(data[:3], expected):
            assert found == pytest.approx(min(255, max(0, wanted)), abs=0.51)
        assert server.get("/api/value?file=1&x=3&y=3")["noisy"] == list(data[:3])

    def test_a_clip_and_a_volume_are_saved_as_their_commands_save_them(self):
        (self.shown / "clip.y4m").write_bytes(gray_clip(self.pages(4)))
        write_tiff(self.shown / "stack.tif", self.pages(6))
        server = self.serve()
        self.wait_for(lambda: server.tile(kind="noisy", page=3))
        words = ["--method", "bilateral", "--sigma", "15"]
        for body, command, name in (({"file": 1}, "video", "clip.ungrain.y4m"), ({"file": 2, "as": "volume"}, "volume", "stack.ungrain.tif")):
            job = server.job(server.get("/api/save", {**body, "words": words, "name": None})["job"])
            assert job["state"] == "done", job
            out = self.folder / name
            assert run(command, self.shown / name.replace(".ungrain", ""), "-o", out, *words).code == 0
            assert (self.shown / name).read_bytes() == out.read_bytes()
        batch = server.job(server.get("/api/batch", {"files": [{"file": 1, "words": words}, {"file": 2, "as": "volume", "words": words}],
                                                     "folder": "all"})["job"])
        assert batch["state"] == "done", batch
        assert sorted(path.name for path in (self.shown / "all").iterdir()) == ["clip.y4m", "stack.tif"]

    def test_a_cut_off_clip(self):
        data = gray_clip(self.pages(4))
        (self.shown / "clip.y4m").write_bytes(data[:-100])
        (self.shown / "other.y4m").write_bytes(b"no clip")
        server = self.serve()
        self.wait_for(lambda: server.tile(kind="noisy", page=2))
        for _ in range(100):
            info = server.get("/api/info?file=1")
            if info["complete"]:
                break
            time.sleep(0.05)
        assert info["pages"] == 3
        assert "clip.y4m" in info["note"]
        status, why = server.error("/api/tile?file=1&x=0&y=0&page=3")
        assert status == 404, why
        status, why = server.error("/api/info?file=2")
        assert status == 404
        assert why.startswith("other.y4m: "), why
        assert str(self.folder) not in why

    def test_what_a_file_is_not(self):
        self.photo()
        server = self.serve()
        for asked in ("volume", "clip", "film"):
            assert server.error(f"/api/info?file=1&as={asked}")[0] == 400

    def test_values_and_presets(self):
        path = self.photo()
        server = self.serve()
        words = ["--method", "bilateral", "--sigma", "15"]
        where = f"/api/value?file=1&x=260&y=5&words={urllib.parse.quote(json.dumps(words))}"
        image = read_pnm(path)
        at = (5 * WIDTH + 260) * 3
        assert server.get(where) == {"noisy": image.samples[at:at + 3], "clean": None}
        data, _ = server.tile(x=1, words=words, exact=1)
        pixel = (5 * (WIDTH - TILE) + 4) * 4
        assert server.get(where)["clean"] == list(data[pixel:pixel + 3])
        assert server.error("/api/value?file=1&x=300&y=5")[0] == 400
        text = server.get("/api/check", {"file": 1, "words": words})["preset"]
        assert sorted(server.get("/api/preset", {"as": "pages", "text": text})["words"]) == sorted(words)
        for bad in ('{"ungrain_preset": 1, "options": {"output": "/etc/x"}}', '{"ungrain_preset": 1, "options": {"noise-model": "/etc/passwd", "a": 1}}',
                    "{}", "no", '{"ungrain_preset": 1, "options": {"volume": true}}'):
            assert server.error("/api/preset", {"as": "pages", "text": bad})[0] == 400, bad


class TestKeeping(ViewTest):
    def test_a_saved_file_is_that_of_the_command_line(self):
        self.photo()
        server = self.serve()
        words = ["--method", "bilateral", "--radius", "4", "--strength", "0.8"]
        said = server.get("/api/check", {"file": 1, "words": words})
        assert said["command"] == "ungrain a.ppm --method bilateral --radius 4 --strength 0.8"
        assert 'ungrain.denoise(image, "bilateral", radius=4, strength=0.8)' in said["python"]
        job = server.job(server.get("/api/save", {"file": 1, "words": words})["job"])
        assert job["state"] == "done", job
        saved = (self.shown / "a.ungrain.ppm").read_bytes()
        assert server.ask(job["outputs"][0]["download"])[2] == saved
        assert run(*said["command"].split()[1:], "-o", "again.ppm", folder=self.shown).code == 0
        assert (self.shown / "again.ppm").read_bytes() == saved
        (self.folder / "my.json").write_text(said["preset"])
        assert run("a.ppm", "--preset-file", "../my.json", "-o", "preset.ppm", folder=self.shown).code == 0
        assert (self.shown / "preset.ppm").read_bytes() == saved

    def test_names_of_saved_files(self):
        self.photo()
        server = self.serve()
        job = server.job(server.get("/api/save", {"file": 1, "words": ["--method", "box"], "name": "x.pgm"})["job"])
        assert job["state"] == "failed"  # colours do not fit
        for name in ("../x.ppm", "/tmp/x.ppm", "a/b.ppm", ".hidden.ppm", "x\n.ppm", "..", "a\\b.ppm", ""):
            if name:
                status, error = server.error("/api/save", {"file": 1, "words": [], "name": name})
                assert "is no name for a file here" in error, name
        assert "do not replace them" in server.error("/api/save", {"file": 1, "words": [], "name": "a.ppm"})[1]
        assert "xyz" in server.error("/api/save", {"file": 1, "words": [], "name": "a.xyz"})[1]
        assert sorted(path.name for path in self.shown.iterdir()) == ["a.ppm"]

    def test_results_in_a_folder(self):
        self.photo()
        (self.folder / "results").mkdir()
        server = self.serve("shown", "-o", "results")
        server.job(server.get("/api/save", {"file": 1, "words": ["--method", "box"]})["job"])
        assert (self.folder / "results/a.ppm").exists()
        assert [path.name for path in self.shown.iterdir()] == ["a.ppm"]

    def test_a_batch(self):
        for name in ("a.ppm", "b.ppm", "c.ppm"):
            self.photo(name)
        (self.shown / "b.ppm").write_bytes((self.shown / "b.ppm").read_bytes()[:500])
        server = self.serve()
        files = [{"file": i, "words": ["--method", "box", "--radius", str(i)]} for i in (1, 2, 3)]
        number = server.get("/api/batch", {"files": files, "folder": "clean"})["job"]
        job = server.job(number)
        assert (job["state"], job["done"], job["failed"], job["total"]) == ("failed", 2, 1, 3)
        assert any("b.ppm" in line and "truncated" in line for line in job["lines"]), job["lines"]
        for i, name in ((1, "a.ppm"), (3, "c.ppm")):
            run(self.shown / name, "-o", self.folder / "x.ppm", "--method", "box", "--radius", str(i))
            assert (self.shown / "clean" / name).read_bytes() == (self.folder / "x.ppm").read_bytes()
        self.photo("b.ppm")
        server.get("/api/jobs/resume", {"job": number})
        assert server.job(number)["state"] == "done"
        assert len(list((self.shown / "clean").iterdir())) == 3

    def test_cancelling_leaves_nothing_half_written(self):
        for name in ("a.ppm", "b.ppm"):
            self.photo(name)
        server = self.serve()
        files = [{"file": i, "words": ["--method", "nlm", "--search", "35", "--device", "reference"]} for i in (1, 2)]
        number = server.get("/api/batch", {"files": files, "folder": "clean"})["job"]
        time.sleep(0.3)
        server.get("/api/jobs/cancel", {"job": number})
        assert server.job(number)["state"] == "cancelled"
        assert list((self.shown / "clean").iterdir()) == []


class TestSafety(ViewTest):
    def test_other_machines_and_pages_are_refused(self):
        self.photo()
        server = self.serve()
        for headers in ({"Host": "evil.example"}, {"Host": "evil.example:80"}, {"Host": ""}, {"Origin": "http://evil.example"},
                        {"Origin": "null"}, {"Origin": f"https://127.0.0.1:{server.port}"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Sec-Fetch-Site": "same-site"}):
            status, error = server.error("/api/files", headers=headers)
            assert status == 403, headers
        for headers in ({}, {"Host": f"localhost:{server.port}"}, {"Origin": f"http://127.0.0.1:{server.port}"},
                        {"Sec-Fetch-Site": "same-origin"}):
            assert server.ask("/api/files", headers=headers)[0] == 200, headers
        status, error = server.error("/api/save", json.dumps({"file": 1, "words": []}).encode(), headers={"Content-Type": "text/plain"})
        assert status == 403

    def test_a_token(self):
        self.photo()
        server = self.serve("shown", "--token")
        assert len(server.token) == 32
        for path in ("/", "/api/files", f"/api/files?token={server.token}", "/?token=", "/?token=" + "0" * 32,
                     f"/?token={server.token[:-1]}", f"/?token={server.token}0"):
            assert server.ask(path)[0] == 403, path
        status, headers, _ = server.ask(f"/?token={server.token}")
        assert (status, headers["location"]) == (303, "/")
        for part in ("HttpOnly", "SameSite=Strict"):
            assert part in headers["set-cookie"]
        cookie = headers["set-cookie"].split(";")[0]
        assert server.ask("/api/files", headers={"Cookie": f"other=1; {cookie}"})[0] == 200
        assert server.ask("/api/files", headers={"Cookie": cookie + "0"})[0] == 403

    def test_an_address_on_the_network_has_a_token(self):
        self.photo()
        server = self.serve("shown", "--listen", "0.0.0.0")
        server.host = "127.0.0.1"
        assert len(server.token) == 32
        assert server.ask("/api/files")[0] == 403

    def test_only_named_files_are_seen(self):
        self.photo()
        write_pnm(self.folder / "secret.ppm", picture(40, 40, 3))
        (self.shown / "link.ppm").symlink_to(self.folder / "secret.ppm")
        (self.shown / "inner.ppm").symlink_to(self.shown / "a.ppm")
        (self.shown / "up").symlink_to(self.folder)
        server = self.serve()
        names = [each["name"] for each in server.get("/api/files")["files"]]
        assert names == ["a.ppm", "inner.ppm"]
        for path in ("/../secret.ppm", "/%2e%2e/secret.ppm", "/shown/a.ppm", "//etc/passwd", "/api/../../secret.ppm", "/api/info?file=../secret.ppm",
                     "/api/info?file=3", "/api/info?file=-1", "/api/info?file=0", "/api/info?file=99999999999", "/api/download?job=1&output=0",
                     "/api/tile?file=1&x=0&y=0&page=7", "/api/tile?file=1&x=-1&y=0", "/api/tile?file=1&x=0&y=0&level=99"):
            status, _, data = server.ask(path)
            assert status in (400, 404), path
            assert b"P6" not in data
        for words in (["--psd", "/etc/passwd"], ["--noise-kernel", "x.pfm"], ["--sigma-map", "/etc/passwd"], ["--output", "x.ppm"],
                      ["--noise-model", "/etc/passwd"], ["--preset-file", "/etc/passwd"], ["--help", "x"], ["-o", "x"], ["--json", "x"]):
            status, error = server.error("/api/check", {"file": 1, "words": words})
            assert status == 400, words
        (self.shown / "a.ppm").unlink()
        (self.shown / "a.ppm").symlink_to(self.folder / "secret.ppm")
        assert "no longer there" in server.error("/api/info?file=1")[1]

    def test_uploads(self):
        self.photo()
        body = (self.shown / "a.ppm").read_bytes()
        server = self.serve("shown", "--upload-limit", "1M")
        status, _, data = server.ask("/api/upload?name=new.ppm", body)
        assert status == 200, data
        number = json.loads(data)["file"]
        assert server.tile(number, kind="noisy")[0] == server.tile(1, kind="noisy")[0]
        for name, said in (("../x.ppm", "no name"), ("x.exe", "reads no files"), ("", "no name")):
            assert said in server.error(f"/api/upload?name={urllib.parse.quote(name)}", body)[1]
        status, error = server.error("/api/upload?name=large.ppm", b"P6" + bytes(2 << 20))
        assert "uploads take 1 MiB at most" in error
        assert server.get("/api/files")["files"][0]["name"] == "a.ppm"
        closed = self.serve("shown", "--upload-limit", "0")
        assert "uploads take 0 MiB" in closed.error("/api/upload?name=new.ppm", body)[1]
        assert server.end() == 0

    def test_a_damaged_picture_does_not_end_the_server(self):
        self.photo()
        for i in range(20):
            (self.shown / f"damaged{i:02}.pfm").write_bytes(b"PF\n%d %d\n-1\n" % (10 ** (i % 7), 3) + bytes(i))
        (self.shown / "empty.npy").write_bytes(b"")
        server = self.serve()
        for each in server.get("/api/files")["files"][1:]:
            status, error = server.error(f"/api/info?file={each['file']}")
            assert status in (404, 422, 507)
            assert each["name"] in error
        assert server.ask("/api/info?file=1")[0] == 200

    def test_a_thousand_malformed_requests(self):
        self.photo()
        server = self.serve()
        draw = random.Random(7)
        good = (f"GET /api/tile?file=1&x=0&y=0&kind=clean&words=[] HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                "Content-Length: 10\r\n\r\n").encode()
        for i in range(1000):
            kind = i % 4
            if kind == 0:
                request = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 300)))
            elif kind == 1:
                request = bytearray(good)
                for _ in range(draw.randrange(1, 8)):
                    request[draw.randrange(len(request))] = draw.randrange(256)
            elif kind == 2:
                request = good[:draw.randrange(1, len(good))]
            else:
                path = "/api/" + draw.choice(["tile", "info", "noise", "histogram", "check", "save", "batch", "jobs/cancel", "upload"])
                value = urllib.parse.quote(draw.choice(["-1", "1e999", "nan", "[]", "{}", "\0", "9" * 40, "../" * 30, "%00", "null"]))
                body = draw.choice([b"", b"{}", b"[", b'{"file": "x"}', b'{"files": [1]}', b"[" * 5000, b'{"file": 1, "words": [[]]}', b'{"job": -1}'])
                method = draw.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS"])
                request = (f"{method} {path}?file={value}&x={value}&y={value}&level={value}&words={value}&name={value} HTTP/1.1\r\n"
                           f"Host: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                           "Connection: close\r\n\r\n").encode() + body
            with socket.create_connection((server.host, server.port), timeout=30) as connection:
                connection.sendall(bytes(request))
                if kind != 3:
                    connection.shutdown(socket.SHUT_WR)
                    continue
                answer = connection.recv(64)
                assert answer.startswith(b"HTTP/1.1 "), request[:300]
                assert answer[9:12] != b"500", request[:300]
        assert server.process.poll() is None
        assert server.ask("/api/files")[0] == 200
        assert sorted(path.name for path in self.shown.iterdir()) == ["a.ppm"]

    def test_fifty_clients_and_silent_ones(self):
        self.photo()
        server = self.serve()
        expected = server.tile(words=["--method", "median"])[0]
        silent = [socket.create_connection((server.host, server.port)) for _ in range(20)]
        failures = []

        def client(number: int) -> None:
            try:
                for turn in range(3):
                    words = ["--method", "median"] if number % 2 else ["--method", "box", "--radius", str(number % 5)]
                    data, _ = server.tile(words=words, client=str(number), turn=turn)
                    if number % 2 and data != expected:
                        failures.append(f"client {number} has other pixels")
            except Exception as error:  # told below
                failures.append(f"client {number}: {error}")
        threads = [threading.Thread(target=client, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        for connection in silent:
            connection.close()
        assert server.process.poll() is None

    def test_interrupted_at_once(self):
        self.photo()
        for _ in range(5):
            assert self.serve().end() in (0, -signal.SIGINT)

    def test_the_end(self):
        self.photo()
        server = self.serve()
        server.tile(words=["--method", "box"])
        server.get("/api/noise?file=1")
        assert server.end() == 0
        assert [path.name for path in self.shown.iterdir()] == ["a.ppm"]

    def test_what_cannot_be_served(self):
        self.photo()
        for arguments, said in ((["nothing.ppm"], "nothing.ppm"), (["shown", "--listen", "99999"], "--listen"), (["shown", "-o", "shown/a.ppm"], "no folder"),
                                (["shown", "--listen", "203.0.113.7"], "nothing can listen")):
            result = run("view", *arguments, "--no-browser", folder=self.folder)
            assert result.code != 0
            assert len(result.err_lines) == 1, result.err
            assert said in result.err
        server = self.serve()
        result = run("view", "shown", "--no-browser", "--listen", str(server.port), folder=self.folder)
        assert "nothing can listen" in result.err

    def test_the_page_fetches_nothing_from_elsewhere(self):
        self.photo()
        server = self.serve()
        for path in ("/", "/view.css", "/view.js", "/stage.js", "/settings.js", "/common.js"):
            status, headers, data = server.ask(path)
            assert status == 200
            assert "default-src 'none'" in headers["content-security-policy"]
            assert not re.search(r"https?://", data.decode().replace("http://www.w3.org/2000/svg", ""))
