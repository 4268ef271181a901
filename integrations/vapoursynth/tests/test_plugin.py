"""The plug-in in the real VapourSynth: every format and function, any order of frames, and what goes wrong."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import threading
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest
import vapoursynth as vs

from clips import RAW_NAMES, clean_plane, clip_of, core, dtype_of, noisy_clip, plane_shapes, planes_of, program, same, samples_of, white_of

FLOATS = [vs.GRAYS, vs.GRAYH, vs.YUV420PH, vs.YUV444PH, vs.YUV420PS, vs.YUV422PS, vs.YUV444PS, vs.RGBS, vs.RGBH]
FORMATS = [*RAW_NAMES, vs.RGB30, vs.YUV420P12, vs.YUV420P14, vs.YUV440P8, vs.YUV410P8, *FLOATS]
METHODS = {"BM3D": "bm3d", "NLM": "nlm", "Bilateral": "bilateral", "NLMBilateral": "nlm-bilateral",
           "AdaptiveBilateral": "adaptive-bilateral", "Median": "median", "Gaussian": "gaussian", "Box": "box",
           "Ridge": "ridge"}
needs_program = pytest.mark.skipif("UNGRAIN" not in os.environ, reason="UNGRAIN does not name the program")


def name_of(id: int) -> str:
    return core.get_video_format(id).name


def function(name: str):
    return getattr(core.ungrain, name)


def error_of(planes: list[np.ndarray], id: int, frame: int) -> float:
    """Root mean squared error of luma or the first channel, on the 0-255 scale."""
    height, width = planes[0].shape
    values = planes[0].astype(np.float64) * 255 / white_of(core.get_video_format(id))
    return float(np.sqrt(np.mean((values - clean_plane((height, width), (1, 1), 0, frame, 0)) ** 2)))


# ---- functions and arguments


def test_every_method_is_a_function():
    assert set(METHODS) <= {f.name for f in core.ungrain.functions()}


@needs_program
def test_arguments_are_those_of_the_methods():
    for name, method in METHODS.items():
        told = json.loads(subprocess.run([os.environ["UNGRAIN"], "methods", method, "--json"], check=True, capture_output=True,
                                         text=True).stdout)
        params = {p["name"]: p for p in told["params"] if not p["takes"].startswith("an image")}
        signature = function(name).signature
        given = {part.split(":")[0] for part in signature.split(";") if part}
        for param in params:
            expected = "radius" if param == "radius_t" and "radius" not in params else param
            assert expected in given, (name, param)
        for common in ("clip", "device", "threads", "memory", "num_streams", "strength", "find_cuts"):
            assert common in given
        help = core.ungrain.Help(function=name)
        for param in params.values():
            assert param["help"] in help and param["takes"] in help, (name, param["name"])


def test_version_and_devices():
    told = core.ungrain.Version()
    assert re.fullmatch(r"\d+\.\d+\.\d+", told["version"])
    assert any(device.startswith("cpu: ") for device in told["devices"])


# ---- formats


@pytest.mark.parametrize("id", FORMATS, ids=name_of)
@pytest.mark.parametrize("name", METHODS)
def test_every_format(name: str, id: int):
    clip, frames = noisy_clip(id, frames=5)
    denoised = function(name)(clip, device="cpu")
    assert (denoised.format, denoised.width, denoised.height, denoised.num_frames, denoised.fps) == (
        clip.format, clip.width, clip.height, clip.num_frames, clip.fps)
    result = samples_of(denoised.get_frame(2))
    assert [p.dtype for p in result] == [p.dtype for p in frames[2]]
    assert error_of(result, id, 2) < 0.95 * error_of(frames[2], id, 2)


@needs_program
@pytest.mark.parametrize("id", RAW_NAMES, ids=name_of)
@pytest.mark.parametrize("name", ["BM3D", "NLM", "Bilateral", "Median"])
def test_equals_the_library(name: str, id: int, tmp_path: Path):
    clip, frames = noisy_clip(id, cut=6)
    sigma = {} if name == "Median" else {"sigma": 10}
    denoised = function(name)(clip, device="cpu", **sigma)
    options = [] if name == "Median" else ["--sigma", "10"]
    expected = program(frames, id, tmp_path, "--method", METHODS[name], "--device", "cpu", *options)
    for n, frame in enumerate(denoised.frames()):
        assert same(samples_of(frame), expected[n]), n


@pytest.mark.parametrize("id,integer", [(vs.GRAYS, vs.GRAY16), (vs.YUV420PS, vs.YUV420P16), (vs.YUV444PS, vs.YUV444P16)],
                         ids=["GRAYS", "YUV420PS", "YUV444PS"])
@pytest.mark.parametrize("name", ["BM3D", "NLM", "Bilateral"])
def test_floats_are_filtered_as_integers_are(name: str, id: int, integer: int):
    clip, frames = noisy_clip(integer, frames=5)
    chroma_from = np.float32(0.5) if core.get_video_format(id).color_family == vs.YUV else np.float32(0)
    floats = [[p.astype(np.float32) / np.float32(65535) - (chroma_from if i else np.float32(0)) for i, p in enumerate(f)]
              for f in frames]
    a = samples_of(function(name)(clip, sigma=10).get_frame(2))
    b = samples_of(function(name)(clip_of(floats, id, 96, 64), sigma=10).get_frame(2))
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        assert np.abs(x / 65535 - (y + (chroma_from if i else 0))).max() < 1e-4


@pytest.mark.parametrize("id", [vs.GRAY8, vs.YUV420P10, vs.RGB48, vs.YUV444P8], ids=name_of)
def test_what_changes_nothing_changes_no_bit(id: int):
    clip, frames = noisy_clip(id, frames=3)
    for denoised in (core.ungrain.Box(clip, radius=0), core.ungrain.BM3D(clip, sigma=0), core.ungrain.BM3D(clip, strength=0)):
        assert same(samples_of(denoised.get_frame(1)), frames[1])


def test_half_precision_keeps_its_samples():
    halves = np.arange(0x10000, dtype=np.uint16).view(np.float16)
    halves = np.where(np.isfinite(halves) & (np.abs(halves) <= 0.5), halves, np.float16(0)).reshape(256, 256)
    clip = clip_of([[np.zeros((512, 512), np.float16), halves, -halves]], vs.YUV420PH, 512, 512)
    result = samples_of(core.ungrain.Box(clip, radius=0).get_frame(0))
    for plane, sign in ((1, 1), (2, -1)):  # to the step of the samples around 0.5
        assert np.abs(result[plane].astype(np.float64) - sign * halves.astype(np.float64)).max() <= 2.0**-12


def test_properties_and_rate_are_kept():
    clip = core.std.SetFrameProps(noisy_clip(vs.YUV420P8, frames=3)[0], _Matrix=1, _Transfer=1, _ChromaLocation=0, mine="x")
    clip = core.std.AssumeFPS(clip, fpsnum=30000, fpsden=1001)
    denoised = core.ungrain.BM3D(clip, sigma=5)
    assert denoised.fps == clip.fps
    for name, value in clip.get_frame(1).props.items():
        assert denoised.get_frame(1).props[name] == value
    assert denoised.get_frame(1).props["UngrainDevice"] == "cpu"


# ---- the noise


@pytest.mark.parametrize("id", [vs.GRAY8, vs.YUV420P8, vs.YUV420P10, vs.YUV444PS, vs.RGB24], ids=name_of)
def test_noise_is_measured(id: int):
    clip, frames = noisy_clip(id, 192, 128, frames=5, sigma=12)
    frame = core.ungrain.BM3D(clip).get_frame(2)
    measured = frame.props["UngrainSigma"]
    measured = [measured] if isinstance(measured, float) else measured
    assert len(measured) == clip.format.num_planes
    assert measured[0] == pytest.approx(12, rel=0.15)
    assert error_of(samples_of(frame), id, 2) < 0.45 * error_of(frames[2], id, 2)


def test_measured_noise_is_that_of_the_clip_for_every_frame():
    clip, _ = noisy_clip(vs.YUV420P8, frames=20)
    denoised = core.ungrain.BM3D(clip, radius=1, profile="fast")
    first = [denoised.get_frame(n).props["UngrainSigma"] for n in (17, 3, 9)]
    assert first[0] == first[1] == first[2]
    again = core.ungrain.BM3D(clip, radius=1, profile="fast")
    assert again.get_frame(0).props["UngrainSigma"] == first[0]


def test_a_sigma_for_each_plane():
    clip, frames = noisy_clip(vs.YUV420P8, frames=3)
    result = samples_of(core.ungrain.BM3D(clip, sigma=[10, 0, 0], radius=1).get_frame(1))
    assert not np.array_equal(result[0], frames[1][0])
    assert np.array_equal(result[1], frames[1][1]) and np.array_equal(result[2], frames[1][2])


def test_sigma_means_the_same_in_every_format():
    results = {}
    for id in (vs.GRAY8, vs.GRAY10, vs.GRAY16, vs.GRAYS):
        clip, _ = noisy_clip(id, frames=3)
        results[id] = samples_of(core.ungrain.BM3D(clip, sigma=10).get_frame(1))[0] / white_of(clip.format) * 255
    for id, result in results.items():
        assert np.abs(result - results[vs.GRAYS]).mean() < (0.4 if id == vs.GRAY8 else 0.2), name_of(id)


@pytest.mark.parametrize("name,value", [("_ColorRange", 1), ("_Range", 0)])
def test_noise_of_limited_range_is_not_taken_for_cut(name: str, value: int):
    ramp = np.tile(np.arange(192) / 6 - 8, (128, 1))  # smooth and dark: much of the noise is cut off at 0
    dark = [[np.clip(np.rint(ramp + np.random.default_rng(n).normal(0, 10, ramp.shape)), 0, 255).astype(np.uint8)]
            for n in range(5)]
    full = core.ungrain.BM3D(clip_of(dark, vs.GRAY8, 192, 128), radius=0)
    limited = core.ungrain.BM3D(clip_of(dark, vs.GRAY8, 192, 128, [{name: value}] * 5), radius=0)
    assert not same(samples_of(full.get_frame(2)), samples_of(limited.get_frame(2)))
    other = core.ungrain.BM3D(clip_of(dark, vs.GRAY8, 192, 128, [{name: 1 - value}] * 5), radius=0)
    assert same(samples_of(full.get_frame(2)), samples_of(other.get_frame(2)))


# ---- scenes


def test_scene_properties_are_respected():
    whole, frames = noisy_clip(vs.GRAY8, frames=8)
    parts = [core.ungrain.BM3D(clip_of(part, vs.GRAY8, 96, 64), sigma=10) for part in (frames[:3], frames[3:])]
    expected = [samples_of(f) for part in parts for f in part.frames()]
    for properties in ([{"_SceneChangePrev": int(n == 3)} for n in range(8)],
                       [{"_SceneChangeNext": int(n == 2)} for n in range(8)]):
        told = core.ungrain.BM3D(clip_of(frames, vs.GRAY8, 96, 64, properties), sigma=10)
        for n in (3, 2, 7, 0, 4):
            assert same(samples_of(told.get_frame(n)), expected[n]), (properties[2], n)
    assert not same(samples_of(core.ungrain.BM3D(whole, sigma=10).get_frame(3)), expected[3])


def test_properties_overrule_cuts_that_would_be_found():
    found, frames = noisy_clip(vs.GRAY8, 160, 96, frames=8, cut=4)
    none = core.ungrain.BM3D(clip_of(frames, vs.GRAY8, 160, 96, [{"_SceneChangePrev": 0}] * 8), sigma=10)
    off = core.ungrain.BM3D(found, sigma=10, find_cuts=0)
    on = core.ungrain.BM3D(found, sigma=10)
    alone = core.ungrain.BM3D(clip_of(frames[4:], vs.GRAY8, 160, 96), sigma=10)
    assert same(samples_of(none.get_frame(4)), samples_of(off.get_frame(4)))
    assert same(samples_of(on.get_frame(4)), samples_of(alone.get_frame(0)))
    assert not same(samples_of(on.get_frame(4)), samples_of(off.get_frame(4)))


# ---- any order


@pytest.mark.parametrize("num_streams", [1, 2, 3])
@pytest.mark.parametrize("name", ["BM3D", "NLM", "Median", "Gaussian"])
def test_any_order_gives_the_same_bits(name: str, num_streams: int):
    clip, _ = noisy_clip(vs.YUV420P8, 64, 48, frames=40, cut=23)
    sigma = {} if name in ("Median", "Gaussian") else {"sigma": 8}
    expected = [samples_of(function(name)(clip, **sigma).get_frame(n)) for n in range(40)]  # each by itself
    denoised = function(name)(clip, num_streams=num_streams, **sigma)
    order = list(range(40))
    for n, frame in enumerate(denoised.frames(prefetch=8)):
        assert same(samples_of(frame), expected[n]), n
    random.Random(3).shuffle(order)
    futures = {n: denoised.get_frame_async(n) for n in order}
    wait(futures.values())
    for n in order:
        assert same(samples_of(futures[n].result()), expected[n]), n
    for n in range(39, -1, -7):
        assert same(samples_of(denoised.get_frame(n)), expected[n]), n


@pytest.mark.parametrize("gap", [2, 5, 6, 7, 8, 9])
def test_a_frame_that_was_asked_for_first_and_comes_later(gap: int):
    """A frame waits for its input while one `gap` frames later is made from where the stream stands."""
    clip, _ = noisy_clip(vs.YUV420P8, 64, 48, frames=40)
    near, far = 21, 21 + gap
    expected = {n: samples_of(core.ungrain.BM3D(clip, sigma=8).get_frame(n)) for n in (near, far)}
    is_held, go_on = threading.Event(), threading.Event()

    def hold(n: int, f: vs.VideoFrame) -> vs.VideoFrame:
        if is_held.is_set() or not hold.is_on:
            return f
        is_held.set()
        go_on.wait(timeout=20)
        return f

    hold.is_on = False
    threads = core.num_threads
    core.num_threads = 4
    # The later frame needs none of the part that is held, as far as the gap allows.
    start = core.std.ModifyFrame(clip[:17], clip[:17], hold)
    source = start + clip[17:]
    for node in (start, source):
        core.std.SetVideoCache(node, mode=0)
    denoised = core.ungrain.BM3D(source, sigma=8, num_streams=1)
    denoised.get_frame(near - 1)  # the stream stands here
    hold.is_on = True
    first = denoised.get_frame_async(near)
    assert is_held.wait(timeout=20)
    second = denoised.get_frame_async(far)
    try:
        second.result(timeout=2)
    except TimeoutError:
        pass  # it needs frames that are held
    go_on.set()
    assert same(samples_of(second.result()), expected[far])
    assert same(samples_of(first.result()), expected[near])
    core.num_threads = threads


def test_a_reference_clip_takes_the_place_of_the_first_step():
    clip, _ = noisy_clip(vs.YUV420P16, frames=7)
    basic = core.ungrain.BM3D(clip, sigma=10, steps=1, radius=1)
    final = core.ungrain.BM3D(clip, sigma=10, radius=1, ref=basic)
    truth = clip_of([planes_of(vs.YUV420P16, 96, 64, n, 0) for n in range(7)], vs.YUV420P16, 96, 64)
    oracle = core.ungrain.BM3D(clip, sigma=10, radius=1, ref=truth)
    errors = [error_of(samples_of(c.get_frame(3)), vs.YUV420P16, 3) for c in (clip, basic, final, oracle)]
    assert errors[0] > errors[1] > errors[2] > errors[3], errors
    expected = [samples_of(final.get_frame(n)) for n in (5, 0, 3)]
    again = core.ungrain.BM3D(clip, sigma=10, radius=1, ref=basic, num_streams=2)
    frames = [samples_of(f) for f in again.frames(prefetch=4)]
    assert same(frames[5], expected[0]) and same(frames[0], expected[1]) and same(frames[3], expected[2])


@pytest.mark.parametrize("change", [{"length": 6}, {"width": 64}, {"format": vs.YUV420P8}])
def test_a_reference_clip_must_fit(change: dict):
    clip = core.std.BlankClip(format=vs.YUV420P16, width=96, height=64, length=7)
    other = core.std.BlankClip(**{"format": vs.YUV420P16, "width": 96, "height": 64, "length": 7, **change})
    with pytest.raises(vs.Error, match="^BM3D: ref takes a clip of clip's format, size and number of frames$"):
        core.ungrain.BM3D(clip, sigma=10, ref=other)


def test_two_instances_and_a_chain():
    clip, _ = noisy_clip(vs.YUV420P8, frames=12)
    first = core.ungrain.NLM(clip, sigma=5)
    chain = core.ungrain.BM3D(first, sigma=5, radius=2)
    alone = [samples_of(first.get_frame(n)) for n in range(12)]
    for n, (a, b) in enumerate(zip(chain.frames(prefetch=6), first.frames(prefetch=6), strict=True)):
        assert same(samples_of(b), alone[n])
        assert a.format.id == vs.YUV420P8


def test_little_memory_gives_the_same_bits():
    clip, _ = noisy_clip(vs.YUV420P8, 256, 192, frames=7)
    expected = samples_of(core.ungrain.BM3D(clip, sigma=10).get_frame(3))
    assert same(samples_of(core.ungrain.BM3D(clip, sigma=10, memory=28).get_frame(3)), expected)
    with pytest.raises(vs.Error, match="^BM3D: an image of 256 x 192 needs at least .*, the limit is 8.0 MiB$"):
        core.ungrain.BM3D(clip, sigma=10, memory=8).get_frame(3)


def test_random_seeks_take_no_more_and_more_memory():
    before = core.max_cache_size
    core.max_cache_size = 16
    try:
        blank = core.std.BlankClip(format=vs.YUV420P8, width=64, height=48, length=2000, keep=True)
        planes = planes_of(vs.YUV420P8, 64, 48, 0)

        def fill(n: int, f: vs.VideoFrame) -> vs.VideoFrame:
            made = f.copy()
            for plane, samples in enumerate(planes):
                np.asarray(made[plane])[:] = np.roll(samples, n % 7, axis=1)
            return made

        denoised = core.ungrain.BM3D(core.std.ModifyFrame(blank, blank, fill), sigma=10, radius=1, profile="fast", memory=64)
        order = random.Random(5)
        used = []
        for count in range(2000):
            denoised.get_frame(order.randrange(2000))
            if count % 100 == 99:
                used.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize())
        assert max(used[10:]) < max(used[:10]) + (48 << 20)
    finally:
        core.max_cache_size = before


# ---- what goes wrong


@pytest.mark.parametrize("arguments,message", [
    ({"radius": 9}, "BM3D: radius takes a whole number from 0 to 8, got 9"),
    ({"sigma": [1, 2]}, None),
    ({"sigma": -1}, "BM3D: sigma takes a number from 0 up"),
    ({"profile": "slow"}, "BM3D: profile takes one of fast, normal, high"),
    ({"device": "gpu"}, None),
    ({"memory": 0}, "BM3D: memory takes a whole number from 1 to "),
    ({"num_streams": 65}, "BM3D: num_streams takes a whole number from 1 to 64, got 65"),
    ({"find_cuts": 2}, "BM3D: find_cuts takes a whole number from 0 to 1, got 2"),
    ({"strength": -1}, None),
    ({"preset": "none"}, None),
    ({"ref": True, "steps": 1, "sigma": 5}, "BM3D: ref is for the second step, steps is 1"),
])
def test_wrong_arguments_end_in_one_line(arguments: dict, message: str | None):
    clip, _ = noisy_clip(vs.YUV420P8, frames=2)
    if "ref" in arguments:
        arguments = {**arguments, "ref": clip}
    with pytest.raises(vs.Error) as raised:
        core.ungrain.BM3D(clip, **arguments)
    text = str(raised.value)
    assert text.startswith(message or "BM3D: ") and "\n" not in text
    assert "radius_t" not in text


def test_the_end_of_a_clip_is_not_used_for_its_start():
    clip, _ = noisy_clip(vs.GRAY8, frames=6)
    with pytest.raises(vs.Error, match="^NLM: border wrap cannot be used along a clip$"):
        core.ungrain.NLM(clip, sigma=5, border="wrap")
    core.ungrain.NLM(clip, sigma=5, border="wrap", radius=0).get_frame(0)


def test_clips_that_vary_are_refused():
    clip = core.std.BlankClip(format=vs.GRAY8, width=64, height=64, length=2)
    other = core.std.BlankClip(format=vs.GRAY8, width=32, height=64, length=2)
    with pytest.raises(vs.Error, match="^NLM: clips whose format or size varies are not supported$"):
        core.ungrain.NLM(core.std.Splice([clip, other], mismatch=True))
    with pytest.raises(vs.Error, match="^BM3D: integer samples of 32 bits are not supported"):
        core.ungrain.BM3D(core.std.BlankClip(format=vs.GRAY32, length=2))


def test_interlaced_frames_are_refused():
    clip = core.std.SetFieldBased(noisy_clip(vs.YUV420P8, frames=3)[0], 2)
    with pytest.raises(vs.Error, match="BM3D: frame 1 is interlaced"):
        core.ungrain.BM3D(clip, sigma=5).get_frame(1)


def test_an_error_of_the_source_reaches_the_script_and_what_follows_works():
    clip, frames = noisy_clip(vs.GRAY8, frames=12)

    def fail(n: int, f: vs.VideoFrame) -> vs.VideoFrame:
        if n == 9:
            raise RuntimeError("a damaged frame")
        return f

    broken = core.ungrain.BM3D(core.std.ModifyFrame(clip, clip, fail), sigma=10, radius=1)
    with pytest.raises(vs.Error, match="a damaged frame"):
        broken.get_frame(8)
    assert same(samples_of(broken.get_frame(2)), samples_of(core.ungrain.BM3D(clip, sigma=10, radius=1).get_frame(2)))


def test_no_gpu_is_said_at_once():
    if any(device.startswith("cuda") and "not usable" not in device for device in core.ungrain.Version()["devices"]):
        pytest.skip("there is a GPU")
    with pytest.raises(vs.Error, match="^BM3D: no device cuda: "):
        core.ungrain.BM3D(noisy_clip(vs.GRAY8, frames=2)[0], device="cuda")


def test_leaving_while_frames_are_under_way(tmp_path: Path):
    script = tmp_path / "leave.py"
    script.write_text("import vapoursynth as vs\n"
                      "clip = vs.core.std.BlankClip(format=vs.YUV420P8, width=640, height=360, length=60)\n"
                      "clip = vs.core.ungrain.BM3D(clip, sigma=10)\n"
                      "futures = [clip.get_frame_async(n) for n in range(0, 60, 3)]\n"
                      "futures[0].result()\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


CORES_IN_TURN = """
import gc
import vapoursynth as vs

class Policy(vs.EnvironmentPolicy):
    current = None
    def on_policy_registered(self, api): self.api = api
    def on_policy_cleared(self): pass
    def get_current_environment(self): return self.current
    def set_environment(self, environment):
        before, self.current = self.current, environment
        return before

policy = Policy()
vs.register_policy(policy)
for turn in range(4):
    environment = policy.api.create_environment()
    policy.set_environment(environment)
    clip = vs.core.std.BlankClip(format=vs.YUV420P8, width=320, height=240, length=40)
    clip = vs.core.ungrain.BM3D(clip, sigma=10, radius=1)
    futures = [clip.get_frame_async(n) for n in range(0, 40, 5)]
    futures[0].result().close()
    del clip, futures
    gc.collect()
    policy.api.destroy_environment(environment)
    policy.set_environment(None)
print("all ended")
"""


def test_cores_come_and_go(tmp_path: Path):
    script = tmp_path / "cores.py"
    script.write_text(CORES_IN_TURN)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "all ended" in done.stdout, done.stderr


# ---- vspipe


@pytest.mark.skipif("UNGRAIN_VSPIPE" not in os.environ, reason="UNGRAIN_VSPIPE does not name vspipe")
@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is missing")
@needs_program
def test_vspipe_into_ffmpeg(tmp_path: Path):
    subprocess.run([os.environ["UNGRAIN"], "demo", "--frames", "12", "-o", "clip", "--size", "160x96"], cwd=tmp_path, check=True,
                   capture_output=True)
    subprocess.run(["ffmpeg", "-v", "error", "-i", "clip/noisy.y4m", "-f", "rawvideo", "noisy.raw"], cwd=tmp_path, check=True)
    (tmp_path / "script.vpy").write_text(
        "import numpy as np\nimport vapoursynth as vs\nfrom clips import clip_of\n"
        "raw = np.fromfile('noisy.raw', np.uint8).reshape(12, -1)\n"
        "frames = [[f[:15360].reshape(96, 160), f[15360:19200].reshape(48, 80), f[19200:].reshape(48, 80)] for f in raw]\n"
        "vs.core.ungrain.BM3D(clip_of(frames, vs.YUV420P8, 160, 96), sigma=20).set_output()\n")
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    pipe = subprocess.Popen([*shlex.split(os.environ["UNGRAIN_VSPIPE"]), "-c", "y4m", "script.vpy", "-"], cwd=tmp_path,
                            env=environment, stdout=subprocess.PIPE)
    subprocess.run(["ffmpeg", "-v", "error", "-i", "-", "-c:v", "ffv1", "out.mkv"], cwd=tmp_path, stdin=pipe.stdout, check=True)
    assert pipe.wait() == 0
    subprocess.run([os.environ["UNGRAIN"], "video", "clip/noisy.y4m", "-o", "expected.y4m", "--sigma", "20"], cwd=tmp_path, check=True,
                   capture_output=True)
    for name in ("out.mkv", "expected.y4m"):
        subprocess.run(["ffmpeg", "-v", "error", "-i", name, "-f", "rawvideo", "-pix_fmt", "yuv420p", name + ".raw"], cwd=tmp_path,
                       check=True)
    assert (tmp_path / "out.mkv.raw").read_bytes() == (tmp_path / "expected.y4m.raw").read_bytes()
