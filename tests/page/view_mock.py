"""A stand-in for the server of `ungrain view`, for tests of its page: the addresses of cli/view/README.md over pictures that are computed.

    python3 tests/page/view_mock.py [PORT]

Pictures have bars, a gradient and letters; noise is a block of 256 x 256 values that repeats. What is "denoised" lacks the
noise, times --strength and a factor of what the file is taken for; so every pixel is known without a denoiser: value_of().
"""

from __future__ import annotations

import json
import operator
import random
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "cli/view/page"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
TILE = 256

LETTERS = ["#..#.#..#..###.###...##..#.#..#", "#..#.##.#.#....#..#.#..#.#.##.#", "#..#.#.##.#.##.###..####.#.#.##",
           "#..#.#..#.#..#.#.#..#..#.#.#..#", ".##..#..#..##..#..#.#..#.#.#..#"]


class Picture:
    def __init__(self, name: str, width: int, height: int, *, pages: int = 1, channels: int = 3, kind: str = "u8", fmt: str = "png",
                 volume: dict | None = None, noise: int = 24, slow: float = 0, coarse: bool = False, kinds: tuple[str, ...] = ("pages",),
                 rate: float | None = None) -> None:
        self.name, self.width, self.height, self.pages, self.channels = name, width, height, pages, channels
        self.kinds, self.rate = kinds, rate  # the first kind is what the file says of itself
        self.read: int | None = None  # frames of a clip that have been read; None: all
        self.opens_after = 0.0  # seconds
        self.kind, self.format, self.volume, self.slow, self.coarse = kind, fmt, volume, slow, coarse
        self.white = 255 if kind == "u8" else 65535
        self.scale = 1 if kind == "u8" else 12  # 16-bit pictures use a small part of their range
        self.low, self.high = (0, 255) if kind == "u8" else (0, 255 * self.scale)
        self.noise = noise * self.scale

    def clean(self, x: int, y: int, channel: int, page: int) -> int:
        """In the file's own units."""
        gradient = 40 + (x // 3 + 30 * channel) % 150
        band = (y // 48) % 4 * 12
        row, column = (y // 6) % 16 - 4, (x // 6 + 3 * page) % 48 - 4
        letter = 0 <= row < len(LETTERS) and 0 <= column < len(LETTERS[0]) and LETTERS[row][column] == "#"
        return self.scale * (230 - 20 * channel if letter else min(255, gradient + band))

    def kind_of(self, given: str | None) -> str:
        if given is not None and given not in self.kinds:
            raise BadRequest(f"{self.name}: it cannot be taken for {given}")
        return given or self.kinds[0]

    def info(self, number: int, given: str | None) -> dict:
        return {"file": number, "name": self.name, "as": self.kind_of(given), "kinds": list(self.kinds), "format": self.format,
                "width": self.width, "height": self.height, "pages": self.pages if self.read is None else self.read,
                "complete": self.read is None, "rate": self.rate if self.kind_of(given) == "clip" else None,
                "channels": self.channels, "colour": "rgb" if self.channels == 3 else "gray", "alpha": False, "type": self.kind, "white": self.white,
                "low": self.low, "high": self.high, "volume": self.volume if self.kind_of(given) == "volume" else None, "note": ""}


PICTURES = [
    Picture("portrait.png", 700, 500),
    Picture("cells in 16 bits.tif", 640, 480, channels=1, kind="u16", fmt="tiff"),
    Picture("head.nii.gz", 320, 320, pages=12, channels=1, fmt="nifti", volume={"depth": 12, "spacing": [1, 1, 2.5]},
            kinds=("volume", "pages")),
    Picture("100 megapixels.tif", 12000, 8400, fmt="tiff"),
    Picture("slow.png", 600, 400, slow=0.25, coarse=True),
]


def stacks() -> list[Picture]:
    """Files of several pages; new ones, for tests that change them."""
    return [
        Picture("three scans.nii.gz", 200, 160, pages=12, channels=1, fmt="nifti", volume={"depth": 4, "spacing": [1, 1, 2.5]}, kinds=("volume", "pages")),
        Picture("walk.mp4", 240, 180, pages=8, fmt="mp4", kinds=("clip", "pages"), rate=10),
        Picture("stack.tif", 240, 180, pages=6, fmt="tiff", volume={"depth": 6, "spacing": [1, 1, 1]}, kinds=("pages", "volume", "clip")),
        Picture("portrait.png", 300, 200),
    ]


def option(name: str, kind: str, text: str, default: str, low=None, high=None, *, odd=False, unit="", choices=(), auto=False) -> dict:
    return {"option": f"--{name}", "name": name.replace("-", "_"), "kind": kind, "help": text, "min": low, "max": high, "odd": odd, "unit": unit,
            "choices": list(choices), "default_text": default, "auto": auto}


BORDER = option("border", "choice", "what stands beyond the image's edge", "symmetric", choices=["symmetric", "mirror", "clamp"])
METHODS = [
    {"name": "median", "summary": "median of a square window; removes outliers such as salt and pepper, a baseline", "presets": [],
     "options": [option("radius", "integer", "half-width of the window", "1", 0, 64, unit="pixels"), BORDER]},
    {"name": "bilateral", "summary": "mean weighted by distance and by difference in value; keeps edges", "presets": [],
     "options": [option("radius", "integer", "half-width of the window", "5", 0, 128, unit="pixels"),
                 option("sigma-range", "real", "how different in value a pixel may be and still count; 0 returns the input",
                        "sigma (2 + sigma / 25)", 0, None, unit="pixel values", auto=True), BORDER]},
    {"name": "bm3d", "summary": "block matching and 3-D filtering: patches that look alike are denoised together",
     "presets": [{"name": "paper-002", "help": "the first step with Fourier transforms, groups of up to 16"}],
     "options": [option("profile", "choice", "time for quality", "normal", choices=["fast", "normal", "high"]),
                 option("sigma", "per_channel", "the noise's standard deviation; 0 returns the input", "auto (measured)", 0, None,
                        unit="pixel values", auto=True),
                 option("steps", "integer", "1: thresholding only; 2: Wiener filtering after it", "2", 1, 2),
                 option("transform", "choice", "within a patch", "by profile and sigma", choices=["dct", "bior1.5", "hadamard"], auto=True),
                 option("search", "integer", "side of the window that is searched", "by profile and sigma", 1, 127, odd=True, unit="pixels", auto=True),
                 option("lambda", "real", "coefficients up to lambda sigma are taken for noise", "by profile and sigma", 0, 100, auto=True)]},
]
COMMON = [
    option("strength", "real", "times the noise that is taken away: 0.7 leaves some, 1.3 takes more", "1", 0, 10),
    option("luminance", "real", "times --strength for luminance", "1", 0, 10),
    option("chroma", "real", "times --strength for the colour differences", "1", 0, 10),
    option("keep-grain", "real", "the share of what was taken away that is put back", "0", 0, 1),
    option("device", "choice", "what the work runs on", "auto", choices=["auto", "cpu"]),
    option("exact", "flag", "the same bits on every device", ""),
]
VOLUME_METHODS = [
    {"name": "bm4d", "summary": "block matching and 4-D filtering: cubes that look alike are denoised together", "presets": [],
     "options": [option("profile", "choice", "time for quality", "normal", choices=["fast", "normal"]),
                 option("cube", "integer", "side of a cube", "4", 2, 8, unit="voxels")]},
    {"name": "gaussian", "summary": "mean weighted by distance, a baseline", "presets": [],
     "options": [option("sigma-space", "real", "how far the weights reach", "1", 0, 20, unit="voxels")]},
]
CLIP_METHODS = [
    {"name": "vbm4d", "summary": "block matching along the paths of motion", "presets": [],
     "options": [option("frames", "integer", "frames before and after that are used", "4", 0, 16)]},
]
KINDS = {"pages": {"methods": METHODS, "common": COMMON, "default_method": "bm3d"},
         "volume": {"methods": VOLUME_METHODS, "common": [one for one in COMMON if one["option"] != "--chroma"], "default_method": "bm4d"},
         "clip": {"methods": CLIP_METHODS, "common": COMMON, "default_method": "vbm4d"}}
NAMES = {name: {one["option"] for one in kind["common"]} | {one["option"] for method in kind["methods"] for one in method["options"]}
         | {"--method", "--preset", "--noise-model"} for name, kind in KINDS.items()}
EFFECT = {"pages": 1, "volume": 0.75, "clip": 0.5}  # so that the screen tells what a file was taken for


def noise_block(spread: int) -> list[list[int]]:
    """Rows of red, green, blue, 0 for each pixel: what is added to it."""
    values = random.Random(7)
    return [[value for _ in range(TILE) for value in (*(values.randint(-spread, spread) for _ in range(3)), 0)] for _ in range(TILE)]


class BadRequest(Exception):
    pass


def strength_of(words: list[str], kind: str = "pages") -> float:
    """Also what checks the words."""
    names = iter(words)
    strength = 1.0
    for name in names:
        if name not in NAMES[kind]:
            raise BadRequest(f"unknown option {name}")
        if name == "--exact":
            continue
        value = next(names, None)
        if value is None:
            raise BadRequest(f"{name} needs a value")
        if name == "--sigma" and not value.replace(",", "").replace(".", "").isdigit():
            raise BadRequest("--sigma takes numbers")
        if name == "--strength":
            strength = float(value)
            if not 0 <= strength <= 10:
                raise BadRequest("--strength takes a number from 0 to 10")
    return min(strength, 1.5) * EFFECT[kind]


class Model:
    """Pixels, as RGBA on the screen."""

    def __init__(self) -> None:
        self.blocks: dict[tuple, list[list[int]]] = {}
        self.rows: dict[tuple, list[int]] = {}
        self.tiles: dict[tuple, tuple[int, int, bytes]] = {}
        self.thumbnails: dict[str, bytes] = {}

    def block(self, picture: Picture, left: float) -> list[list[int]]:
        """The noise, times `left`."""
        key = (picture.noise, picture.channels, round(left, 6))
        if key not in self.blocks:
            rows = noise_block(picture.noise)
            if picture.channels == 1:
                rows = [[value for i in range(0, len(row), 4) for value in (row[i], row[i], row[i], 0)] for row in rows]
            self.blocks[key] = rows if left == 1 else [[round(value * left) for value in row] for row in rows]
        return self.blocks[key]

    def row(self, picture: Picture, page: int, level: int, y: int, x0: int, width: int) -> list[int]:
        """The clean picture; rows repeat, so that few are computed."""
        y = (y << level) % 192
        key = (picture.name, page, level, y // 6 * 6, x0, width)
        if key not in self.rows:
            if len(self.rows) > 20000:
                self.rows.clear()
            gray = picture.channels == 1
            self.rows[key] = [value for x in range(x0, x0 + width) for value in
                              (*(picture.clean(x << level, y, 0 if gray else channel, page) for channel in range(3)), 1 << 20)]
        return self.rows[key]

    def tile(self, picture: Picture, *place) -> tuple[int, int, bytes]:
        key = (picture.name, picture.width, *place)
        if key not in self.tiles:
            if len(self.tiles) > 600:
                self.tiles.clear()
            self.tiles[key] = self.compute_tile(picture, *place)
        return self.tiles[key]

    def thumbnail(self, picture: Picture) -> bytes:
        if picture.name not in self.thumbnails:
            level = 0
            while max(picture.width, picture.height) >> level > TILE - 1:
                level += 1
            self.thumbnails[picture.name] = bmp_of(*self.tile(picture, 0, level, 0, 0, "noisy", 1, picture.low, picture.high, 1))
        return self.thumbnails[picture.name]

    def compute_tile(self, picture: Picture, page: int, level: int, x: int, y: int, kind: str, strength: float, low: float, high: float,
                     gain: float) -> tuple[int, int, bytes]:
        across, down = -((-picture.width) >> level), -((-picture.height) >> level)
        x0, y0 = x * TILE, y * TILE
        width, height = min(TILE, across - x0), min(TILE, down - y0)
        if width <= 0 or height <= 0:
            raise BadRequest("there is no such tile")
        share = 0.5 ** level
        noisy, left = self.block(picture, share), self.block(picture, share * (1 - strength))
        span = high - low
        shown: dict[int, int] = {}

        def show(value: int) -> int:
            if value not in shown:
                shown[value] = 255 if value > 1 << 19 else max(0, min(255, round((value - low) / span * 255)))
            return shown[value]

        rows = []
        for row in range(y0, y0 + height):
            clean = self.row(picture, page, level, row, x0, width)
            before, after = noisy[row % TILE], left[row % TILE]
            if kind in ("difference", "removed"):
                sign = 255 / span * gain * (1 if kind == "difference" else -1)
                values = [max(0, min(255, round(128 + sign * (b - a)))) for a, b in zip(before, after)][:4 * width]
                values[3::4] = [255] * width
                if kind == "removed":
                    values[1::4] = values[2::4] = values[0::4]
                rows.append(bytes(values))
            else:
                rows.append(bytes(map(show, map(operator.add, clean, before if kind == "noisy" else after))))
        return width, height, b"".join(rows)


MODEL = Model()


class Jobs:
    def __init__(self) -> None:
        self.jobs: list[dict] = []
        self.lock = threading.Lock()

    def add(self, kind: str, names: list[str]) -> int:
        with self.lock:
            job = {"job": len(self.jobs) + 1, "kind": kind, "state": "running", "done": 0, "failed": 0, "total": len(names), "fraction": 0.0,
                   "lines": [], "outputs": [], "names": names}
            self.jobs.append(job)
        threading.Thread(target=self.work, args=(job,), daemon=True).start()
        return job["job"]

    def work(self, job: dict) -> None:
        for name in job["names"][job["done"]:]:
            for _ in range(4):
                time.sleep(0.05)
                if job["state"] != "running":
                    return
                job["fraction"] = min(1, job["fraction"] + 0.25 / job["total"])
            job["done"] += 1
            if "slow" in name and job["kind"] == "batch":
                job["failed"] += 1
                job["lines"].append(f"{name}: made to fail")
            else:
                job["outputs"].append({"name": name, "download": f"/api/download?job={job['job']}&output={len(job['outputs'])}"})
        job["state"] = "done"

    def get(self, number: int) -> dict:
        found = [job for job in self.jobs if job["job"] == number]
        if not found:
            raise BadRequest("there is no such job")
        return found[0]

    def resume(self, number: int) -> None:
        job = self.get(number)
        if job["state"] == "cancelled":
            job["state"] = "running"
            threading.Thread(target=self.work, args=(job,), daemon=True).start()


class MockServer(ThreadingHTTPServer):
    daemon_threads = True
    # Tabs that were closed leave connections behind; that is no error here.
    def handle_error(self, request, client_address) -> None:
        pass

    def __init__(self, port: int = 0, pictures: list[Picture] | None = None) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.model, self.jobs = MODEL, Jobs()
        self.pictures = list(PICTURES if pictures is None else pictures)
        self.asked: list[tuple[str, dict]] = []
        self.posted: list[tuple[str, dict]] = []
        self.noise_models = 0
        self.turns: dict[str, int] = {}
        self.dropped = 0
        self.values_at: list[float] = []  # when values were asked for
        self.denoised: set[tuple] = set()  # pages of which there is a tile

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def value_of(self, file: int, page: int, kind: str, words: list[str], x: int, y: int, low: float | None = None, high: float | None = None,
                 gain: float = 4, taken_for: str | None = None) -> list[int]:
        """What the screen must show for a pixel at 100 %."""
        picture = self.pictures[file]
        strength = strength_of(words, picture.kind_of(taken_for))
        low, high = (picture.low if low is None else low), (picture.high if high is None else high)
        width, _, data = self.model.tile(picture, page, 0, x // TILE, y // TILE, kind, strength, low, high, gain)
        at = 4 * ((y % TILE) * width + x % TILE)
        return list(data[at:at + 4])


def place_of(query: dict) -> tuple:
    return tuple(query.get(name) for name in ("file", "as", "page", "words"))


def bmp_of(width: int, height: int, rgba: bytes) -> bytes:
    rows = []
    for y in range(height - 1, -1, -1):
        row = bytearray()
        for x in range(width):
            red, green, blue = rgba[4 * (y * width + x):4 * (y * width + x) + 3]
            row += bytes((blue, green, red))
        rows.append(bytes(row) + bytes(-len(row) % 4))
    body = b"".join(rows)
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + len(body), 0, 0, 54, 40, width, height, 1, 24, 0, len(body), 2835, 2835, 0, 0) + body


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: MockServer

    def log_message(self, *_) -> None:
        pass

    def answer(self, body: bytes | dict, kind: str = "application/json", status: int = 200, headers: dict | None = None) -> None:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), "Content-Security-Policy": POLICY, "Cache-Control": "no-store",
                            "X-Content-Type-Options": "nosniff", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.serve(b"")

    def do_POST(self) -> None:
        self.serve(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def serve(self, body: bytes) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.asked.append((url.path, query))
        try:
            if self.command == "GET" and not url.path.startswith("/api/"):
                return self.page(url.path)
            if self.command == "POST" and url.path != "/api/upload":
                posted = json.loads(body)
                self.server.posted.append((url.path, posted))
                return self.answer(getattr(self, "post" + url.path.removeprefix("/api").replace("/", "_"))(posted))
            return getattr(self, "get_" + url.path.removeprefix("/api/"))(query, body) if url.path == "/api/upload" else getattr(
                self, "get_" + url.path.removeprefix("/api/"))(query)
        except AttributeError as error:
            self.answer({"error": f"nothing is at {url.path}: {error}"}, status=404)
        except (BadRequest, KeyError, ValueError, IndexError) as error:
            self.answer({"error": str(error)}, status=400)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def page(self, path: str) -> None:
        file = PAGE / ("view.html" if path == "/" else path.removeprefix("/"))
        if "/" in path[1:] or not file.is_file():
            return self.answer({"error": f"nothing is at {path}"}, status=404)
        self.answer(file.read_bytes(), TYPES[file.suffix])

    def picture(self, query: dict) -> Picture:
        return self.server.pictures[int(query["file"])]

    def get_session(self, _: dict) -> None:
        self.answer({"version": "0.0.0", "writable": True, "folder": "/pictures", "devices": [{"name": "cpu", "description": "a processor"}],
                     "upload_limit": 1_000_000, "kinds": KINDS})

    def get_files(self, _: dict) -> None:
        self.answer({"files": [{"file": i, "name": one.name, "bytes": one.width * one.height} for i, one in enumerate(self.server.pictures)]})

    def get_info(self, query: dict) -> None:
        time.sleep(self.picture(query).opens_after)
        self.answer(self.picture(query).info(int(query["file"]), query.get("as")))

    def get_thumbnail(self, query: dict) -> None:
        self.answer(self.server.model.thumbnail(self.picture(query)), "image/bmp")

    def get_tile(self, query: dict) -> None:
        picture = self.picture(query)
        client, turn = query["client"], int(query["turn"])
        self.server.turns[client] = max(turn, self.server.turns.get(client, 0))
        strength = strength_of(json.loads(query["words"]), picture.kind_of(query.get("as")))
        if picture.read is not None and int(query["page"]) >= picture.read:
            raise BadRequest("there is no such page")
        coarse = picture.coarse and query["kind"] != "noisy" and query.get("exact") != "1"
        if picture.slow and query["kind"] != "noisy" and not coarse:
            time.sleep(picture.slow)
        if turn < self.server.turns[client]:
            self.server.dropped += 1
            return self.answer({"error": "overtaken by a newer turn"}, status=409)
        width, height, data = self.server.model.tile(
            picture, int(query["page"]), int(query["level"]), int(query["x"]), int(query["y"]), query["kind"],
            strength / 2 if coarse else strength, float(query["low"]), float(query["high"]), float(query["gain"]))
        if query["kind"] != "noisy" and not coarse:
            self.server.denoised.add(place_of(query))
        self.answer(data, "application/octet-stream", headers={"X-Width": str(width), "X-Height": str(height), "X-Exact": "0" if coarse else "1"})

    def get_histogram(self, query: dict) -> None:
        picture = self.picture(query)
        low, high = float(query["low"]), float(query["high"])
        channels = []
        for channel in range(picture.channels):
            counts = [0] * 256
            block = self.server.model.block(picture, 1)
            for i in range(6000):
                x = int(query["x0"]) + i * 7 % max(1, int(query["x1"]) - int(query["x0"]))
                y = int(query["y0"]) + i * 13 % max(1, int(query["y1"]) - int(query["y0"]))
                value = picture.clean(x, y, channel, int(query["page"])) + block[y % TILE][4 * (x % TILE) + channel]
                at = int((value - low) / (high - low) * 256)
                if 0 <= at < 256:
                    counts[at] += 1
            channels.append(counts)
        self.answer({"channels": channels})

    def get_value(self, query: dict) -> None:
        picture = self.picture(query)
        self.server.values_at.append(time.monotonic())
        x, y, page = int(query["x"]), int(query["y"]), int(query["page"])
        if not (0 <= x < picture.width and 0 <= y < picture.height):
            raise BadRequest("there is no such pixel")
        left = 1 - strength_of(json.loads(query["words"]), picture.kind_of(query.get("as")))

        def samples(share: float) -> list[int]:
            row = self.server.model.block(picture, share)[y % TILE]
            return [picture.clean(x, y, channel, page) + row[4 * (x % TILE) + channel] for channel in range(picture.channels)]

        self.answer({"noisy": samples(1), "clean": samples(left) if place_of(query) in self.server.denoised else None})

    def get_noise(self, query: dict) -> None:
        picture = self.picture(query)
        self.server.noise_models += 1
        where = "of the rectangle" if "x0" in query else "of the picture"
        sigma = picture.noise / 1.73
        curves = [[[level * picture.scale, sigma * (0.7 + level / 600) * (1 + 0.06 * channel)] for level in range(20, 240, 20)]
                  for channel in range(picture.channels)]
        self.answer({"text": f"noise {where}: deviation {sigma:.1f} on the scale of the file", "found": True, "curves": curves, "white": picture.white,
                     "model": self.server.noise_models})

    def get_jobs(self, _: dict) -> None:
        self.answer({"jobs": [{name: value for name, value in job.items() if name != "names"} for job in self.server.jobs.jobs]})

    def get_download(self, query: dict) -> None:
        output = self.server.jobs.get(int(query["job"]))["outputs"][int(query["output"])]
        self.answer(b"denoised", "application/octet-stream", headers={"Content-Disposition": f'attachment; filename="{output["name"]}"'})

    def get_upload(self, query: dict, body: bytes) -> None:
        if not body:
            raise BadRequest(f"{query['name']}: the file is empty")
        self.server.pictures.append(Picture(query["name"], 300, 200))
        self.answer({"file": len(self.server.pictures) - 1})

    def post_check(self, posted: dict) -> dict:
        picture = self.server.pictures[posted["file"]]
        words = posted["words"]
        kind = picture.kind_of(posted.get("as"))
        strength_of(words, kind)
        program = {"pages": ["ungrain"], "volume": ["ungrain", "volume"], "clip": ["ungrain", "video"]}[kind]
        pairs = [f"{words[i].removeprefix('--').replace('-', '_')}={words[i + 1]!r}" for i in range(0, len(words) - 1, 2)]
        return {"command": " ".join([*program, repr(picture.name) if " " in picture.name else picture.name, *words]),
                "python": f"import ungrain\n\nclean = ungrain.denoise({', '.join(['noisy', *pairs])})", "params": [["profile", "normal"], ["sigma", "13.9"]],
                "noise": "deviation 13.9, measured", "preset": json.dumps({"words": words}, indent=2) + "\n"}

    def post_preset(self, posted: dict) -> dict:
        try:
            words = json.loads(posted["text"])["words"]
        except (ValueError, KeyError, TypeError):
            raise BadRequest("this is no preset") from None
        strength_of(words, posted["as"])
        return {"words": words}

    def post_save(self, posted: dict) -> dict:
        picture = self.server.pictures[posted["file"]]
        strength_of(posted["words"], picture.kind_of(posted.get("as")))
        stem, dot, end = picture.name.rpartition(".")
        return {"job": self.server.jobs.add("save", [posted["name"] or f"{stem}.ungrain{dot}{end}"])}

    def post_batch(self, posted: dict) -> dict:
        for one in posted["files"]:
            picture = self.server.pictures[one["file"]]
            try:
                strength_of(one["words"], picture.kind_of(one.get("as")))
            except BadRequest as error:
                raise BadRequest(f"{picture.name}: {error}") from None
        return {"job": self.server.jobs.add("batch", [self.server.pictures[one["file"]].name for one in posted["files"]])}

    def post_jobs_cancel(self, posted: dict) -> dict:
        self.server.jobs.get(posted["job"])["state"] = "cancelled"
        return {"job": posted["job"]}

    def post_jobs_resume(self, posted: dict) -> dict:
        self.server.jobs.resume(posted["job"])
        return {"job": posted["job"]}


def main() -> None:
    with MockServer(int(sys.argv[1]) if len(sys.argv) > 1 else 0, [*PICTURES, *stacks()]) as server:
        print(server.address, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
