"""A clip through denoise_video(): any iterable, in bounded memory, and what goes wrong."""

import gc
import itertools
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from conftest import picture

import ungrain


def clip(frames=6, channels=None, dtype=np.uint8, seed=0):
    """The same picture with other noise in each frame."""
    return np.stack([picture(channels=channels, dtype=dtype, seed=seed + i) for i in range(frames)])


def scenes(*lengths):
    """Pictures that have nothing in common."""
    rng = np.random.default_rng(1)
    frames = []
    for scene, length in enumerate(lengths):
        base = np.kron(rng.integers(40, 200, (6, 8)), np.ones((16, 16)))
        frames += [np.clip(base + rng.normal(0, 3 + 5 * scene, base.shape), 0, 255).astype(np.uint8) for _ in range(length)]
    return frames


@pytest.mark.parametrize("method", ["box", "median", "nlm"])
def test_frames_of_a_method_without_neighbours_are_denoised_alone(method):
    given = {} if method != "nlm" else {"search": 5, "patch": 3, "sigma": 10}
    if any(each["name"] == "radius_t" for each in ungrain.parameters(method)):
        given["radius_t"] = 0
    frames = clip()
    results = list(ungrain.denoise_video(frames, method, **given))
    assert len(results) == len(frames)
    for frame, result in zip(frames, results):
        np.testing.assert_array_equal(result, ungrain.denoise(frame, method, **given))


@pytest.mark.parametrize("channels", [None, 1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32", "float64", "int16"])
def test_type_and_shape_are_kept(library, dtype, channels):
    if library.name.startswith("torch") and dtype == "uint16":
        torch = pytest.importorskip("torch")
        if not hasattr(torch, "uint16"):
            pytest.skip("this PyTorch has no uint16")
    frames = [library.make(frame) for frame in clip(3, channels, dtype)]
    results = list(ungrain.denoise_video(frames, "box", radius_z=1))
    expected = ungrain.denoise(np.stack([library.read(frame) for frame in frames]), "box", radius_z=1, axis=0)
    for frame, result, wanted in zip(frames, results, expected):
        assert type(result) is type(frame) and result.dtype == frame.dtype and tuple(result.shape) == tuple(frame.shape)
        np.testing.assert_array_equal(library.read(result), wanted)


def test_neighbours_take_part():
    frames = clip()
    results = list(ungrain.denoise_video(iter(frames), "box", radius_z=2))
    np.testing.assert_array_equal(np.stack(results), ungrain.box(frames, radius_z=2, axis=0))


def test_frames_around_are_chosen_by_the_method():
    from ungrain import _video
    assert _video._frames_around("nlm", None, {}) == {"radius_t": 1}
    assert _video._frames_around("bm3d", None, {"sigma": 5}) == {"sigma": 5, "radius_t": 4}
    assert _video._frames_around("bm3d", None, {"profile": "fast"}) == {"profile": "fast", "radius_t": 2}
    assert _video._frames_around("bm3d", None, {"radius_t": 2}) == {"radius_t": 2}
    assert _video._frames_around("box", None, {}) == {}


def test_parts_and_other_layouts():
    frames = clip(4, 3).transpose(0, 3, 1, 2)[:, :, ::-1, 1:]
    results = list(ungrain.denoise_video(frames, "box", channel_axis=0))
    for frame, result in zip(frames, results):
        np.testing.assert_array_equal(result, ungrain.box(frame, channel_axis=0))


def test_scenes_are_denoised_apart():
    frames = scenes(5, 4)
    whole = list(ungrain.denoise_video(frames, "box", radius_z=1))
    apart = [*ungrain.denoise_video(frames[:5], "box", radius_z=1), *ungrain.denoise_video(frames[5:], "box", radius_z=1)]
    np.testing.assert_array_equal(np.stack(whole), np.stack(apart))
    together = list(ungrain.denoise_video(frames, "box", radius_z=1, find_cuts=False))
    assert not np.array_equal(np.stack(whole), np.stack(together))


def test_noise_is_measured():
    frames = scenes(4, 3)
    for frame, result in zip(frames, ungrain.denoise_video(frames, "bilateral")):
        assert ungrain.estimate_sigma(result) < ungrain.estimate_sigma(frame) / 2


def test_frames_are_read_when_there_is_room():
    read = 0

    def endless():
        nonlocal read
        for frame in itertools.cycle(clip(3)):
            read += 1
            yield frame

    results = ungrain.denoise_video(endless(), "bilateral", radius=1)
    for done in range(1, 60):
        next(results)
        assert read - done < 40
    results.close()
    at_the_end = read
    time.sleep(0.05)
    assert read == at_the_end


def test_closing_stops_the_work():
    before = threading.active_count()
    for _ in ungrain.denoise_video(clip(30), "nlm", search=5, patch=3, sigma=5):
        break
    gc.collect()
    assert threading.active_count() == before
    results = ungrain.denoise_video(itertools.cycle(clip(3)), "box")
    next(results)
    del results
    never_started = ungrain.denoise_video(clip(3), "box")
    never_started.close()


def test_results_and_frames_are_not_kept():
    gone = []

    class Frame(np.ndarray):
        pass

    def frames():
        for frame in clip(60):
            frame = frame.copy().view(Frame)
            gone.append(weakref.ref(frame))
            yield frame

    for _ in ungrain.denoise_video(frames(), "box"):
        assert sum(reference() is not None for reference in gone) < 20


def test_what_the_iterable_raises_comes_after_the_frames_before_it():
    def broken():
        yield from clip(5)
        raise OSError("the tape is torn")

    results = []
    with pytest.raises(OSError, match="the tape is torn"):
        for result in ungrain.denoise_video(broken(), "box", radius_z=1):
            results.append(result)
    assert len(results) == 5


def test_interrupts_come_at_once():
    def interrupted():
        yield from clip(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(ungrain.denoise_video(interrupted(), "box"))


def test_nothing_comes_of_nothing():
    assert list(ungrain.denoise_video([], "box")) == []


def test_frames_must_be_alike():
    frames = [picture(dtype=np.uint8), picture(dtype=np.uint16)]
    with pytest.raises(ungrain.InvalidArgument, match="frame 1 is uint16"):
        list(ungrain.denoise_video(frames, "box"))
    frames = [picture(20, 20), picture(20, 21)]
    with pytest.raises(ungrain.InvalidArgument, match="frame 1 is float32 of shape"):
        list(ungrain.denoise_video(frames, "box"))
    with pytest.raises(ungrain.InvalidArgument):
        list(ungrain.denoise_video(picture(), "box"))  # one frame, not a clip


@pytest.mark.parametrize("wrong", [{"method": "boxx"}, {"radius": -1}, {"radiuss": 1}, {"device": "gpu"}, {"nonfinite": "drop"},
                                   {"threads": "two"}, {"method": 3}, {"preset": "none"}])
def test_wrong_options_are_errors(wrong):
    with pytest.raises(ungrain.Error):
        list(ungrain.denoise_video(clip(2), **{"method": "box", **wrong}))


def test_frames_must_be_iterable():
    with pytest.raises(ungrain.InvalidType, match="frames takes arrays"):
        ungrain.denoise_video(3, "box")
    with pytest.raises(ungrain.InvalidType, match="a frame takes an array"):
        list(ungrain.denoise_video(["no frame"], "box"))


def test_a_wrong_white_level_is_warned_of_once():
    frames = [picture() * 4000 for _ in range(4)]
    with pytest.warns(UserWarning, match="say range="):
        list(ungrain.denoise_video(frames, "bilateral", radius=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(ungrain.denoise_video(frames, "bilateral", radius=1, range=4000))


def test_not_finite_pixels():
    frames = clip(3, dtype=np.float32)
    frames[1, 3, 4] = np.nan
    results = list(ungrain.denoise_video(frames, "box"))
    assert all(np.isfinite(result).all() for result in results)
    with pytest.raises(ungrain.BadPixels):
        list(ungrain.denoise_video(frames, "box", nonfinite="error"))


def test_several_clips_at_once():
    frames = clip(8)
    one = ungrain.denoise_video(frames, "box")
    two = ungrain.denoise_video(one, "median", radius_t=0)  # the results of one are the frames of the other
    expected = [ungrain.median(ungrain.box(frame)) for frame in frames]
    np.testing.assert_array_equal(np.stack(list(two)), np.stack(expected))
