"""ungrain cluster --volume, and OME-Zarr images: the same bits as one call, their metadata and their pyramids."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import has, picture
from volumes import noisy_phantom

import ungrain

if not (has("dask") and has("distributed") and has("zarr")):
    pytest.skip("Dask (dask, distributed, zarr) is missing", allow_module_level=True)

import zarr  # noqa: E402

import ungrain.dask  # noqa: E402

from ungrain import _ome, cluster  # noqa: E402

QUICK = {"search": 3, "wiener_cube": 4, "profile": "fast"}  # a reach of 10 voxels
WORDS = ("--volume", "--search", 3, "--wiener-cube", 4, "--profile", "fast")
SIZE = {"depth": 21, "height": 34, "width": 29}
AXES = {"t": {"name": "t", "type": "time", "unit": "second"}, "c": {"name": "c", "type": "channel"},
        **{name: {"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"}}
OMERO = {"channels": [{"color": "00FF00", "label": "GFP"}], "rdefs": {"model": "color"}}


def smaller(pixels, factors):
    """Means by another way than the package's: window by window."""
    out = np.empty([-(-size // factor) for size, factor in zip(pixels.shape, factors)], pixels.dtype)
    for place in np.ndindex(*out.shape):
        mean = pixels[tuple(slice(i * f, (i + 1) * f) for i, f in zip(place, factors))].astype(float).mean()
        out[place] = np.floor(mean + 0.5) if pixels.dtype.kind in "ui" else mean
    return out


def multiscales(axes, paths, scales, **more):
    return [{"axes": [AXES[name] for name in axes], "name": "cells", **more, "datasets": [
        {"path": path, "coordinateTransformations": [{"type": "scale", "scale": scale}]} for path, scale in zip(paths, scales)]}]


def write_ome(path, pixels, axes, chunks, zarr_format=3, paths=("2", "10"), spacing=(2.5, 1.0, 1.0), factors=(1, 2, 2)):
    """A group with a level for each of `paths`, the largest first."""
    if zarr_format == 2:
        more = {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}}
    else:
        more = {"zarr_format": 3, "dimension_names": list(axes)}
    stacked = len(axes) - 3 if "z" in axes else len(axes) - 2
    steps = [1] * stacked + list(factors)[3 - (len(axes) - stacked):]
    scale = [1.0] * stacked + list(spacing)[3 - (len(axes) - stacked):]
    scales, level = [], pixels
    group = zarr.create_group(str(path), zarr_format=zarr_format)
    for name in paths:
        if name != paths[0]:
            level = smaller(level, steps)
            scale = [size * step for size, step in zip(scale, steps)]
        scales.append(scale)
        group.create_array(name, shape=level.shape, dtype=level.dtype, chunks=tuple(map(min, chunks, level.shape)),
                           **{key: value for key, value in more.items() if key != "zarr_format"})[...] = level
    ome = {"multiscales": multiscales(axes, paths, scales), "omero": OMERO}
    if zarr_format == 2:
        ome["multiscales"][0]["version"] = "0.4"
    group.attrs.put(ome if zarr_format == 2 else {"ome": {"version": "0.5", **ome}, "lab": "ours"})
    return group


def level(path, name):
    return zarr.open_array(f"{path}/{name}", mode="r")[...]


def files_of(path):
    """Those of chunks."""
    return sorted(p for p in pathlib.Path(path).rglob("*") if p.is_file() and p.name.isdecimal())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_volumes_of_a_series(run, tmp_path, zarr_format):
    series = np.stack([np.stack([noisy_phantom(0.05 * (1 + t + c), np.uint16, seed=2 * t + c, **SIZE) for c in range(2)])
                       for t in range(2)])
    source = write_ome("in.ome.zarr", series, "tczyx", (1, 1, 7, 16, 16), zarr_format)
    status, said = run("in.ome.zarr", "out.ome.zarr", *WORDS, "--block", 16)
    assert status == 0, said
    assert "1 smaller level of the pyramid" in said and "48 blocks" in said  # 4 volumes of 2 x 3 x 2
    found = level("out.ome.zarr", "2")
    for t, c in np.ndindex(2, 2):
        np.testing.assert_array_equal(found[t, c], ungrain.denoise_volume(series[t, c], spacing=(2.5, 1, 1), **QUICK))
    np.testing.assert_array_equal(level("out.ome.zarr", "10"), smaller(found, (1, 1, 1, 2, 2)))
    out = zarr.open_group("out.ome.zarr", mode="r")
    assert dict(out.attrs) == dict(source.attrs)
    assert out.metadata.zarr_format == zarr_format
    for name in ("2", "10"):
        assert out[name].metadata.zarr_format == zarr_format and out[name].chunks[:3] == (1, 1, 7)
        if zarr_format == 3:
            assert out[name].metadata.dimension_names == tuple("tczyx")
    assert len(out["2"].attrs["ungrain"]["parameters"]) == 4 and out["2"].attrs["ungrain"]["spacing"] == [2.5, 1, 1]
    assert out["2"].attrs["ungrain"]["parameters"][0]["aspect"] == 2.5


def test_a_given_spacing_counts_more_than_the_metadata(run, tmp_path):
    volume = noisy_phantom(**SIZE)
    write_ome("in.zarr", volume, "zyx", (8, 16, 16), paths=["full"])
    words = ("in.zarr", "out.zarr", *WORDS, "--sigma", 0.08 * 255, "--block", 24)
    assert run(*words, "--spacing", "1,1,2")[0] == 0
    np.testing.assert_array_equal(level("out.zarr", "full"), ungrain.denoise_volume(volume, sigma=0.08, spacing=(2, 1, 1), **QUICK))
    status, said = run(*words)
    assert status == 2 and "begun with spacing [2.0, 1.0, 1.0], now it is [2.5, 1.0, 1.0]" in said


@pytest.mark.parametrize("axes", ["tczyx", "zyx", "cyx", "yx"])
def test_images_of_a_series(run, tmp_path, axes):
    shape = {"tczyx": (2, 2, 3), "zyx": (3,), "cyx": (2,), "yx": ()}[axes]
    images = np.stack([picture(45, 38, dtype=np.uint8, seed=seed) for seed in range(int(np.prod(shape)))]).reshape(*shape, 45, 38)
    # Levels may be smaller along z, too, where slices are images.
    write_ome("in.zarr", images, axes, (1,) * len(shape) + (16, 16), factors=(2, 2, 2), paths=["a/b", "a/c", "1"])
    assert run("in.zarr", "out.zarr", "--method", "bilateral", "--radius", 2, "--block", 32)[0] == 0
    stack = tuple(range(len(shape)))
    expected = ungrain.bilateral(images, radius=2, **({"axis": stack} if stack else {}))
    np.testing.assert_array_equal(level("out.zarr", "a/b"), expected)
    factors = tuple(2 if name in "zyx" else 1 for name in axes)
    np.testing.assert_array_equal(level("out.zarr", "a/c"), smaller(expected, factors))
    np.testing.assert_array_equal(level("out.zarr", "1"), smaller(smaller(expected, factors), factors))
    assert run("in.zarr", "out.zarr", "--method", "bilateral", "--radius", 2, "--block", 32, "-q") == (0, "")


def test_options_count_more_than_the_axes(run, tmp_path):
    images = np.stack([np.moveaxis(picture(40, 36, 3, np.uint8, seed=seed), -1, 0) for seed in range(2)], axis=1)  # c, z, y, x
    write_ome("in.zarr", images, "czyx", (1, 1, 16, 16), paths=["0"])
    assert run("in.zarr", "out.zarr", "--method", "bilateral", "--channel-axis", 0)[0] == 0
    np.testing.assert_array_equal(level("out.zarr", "0"), ungrain.bilateral(images, axis=1, channel_axis=0))
    assert run("in.zarr", "other.zarr", "--method", "bilateral", "--axis", 0, "--channel-axis", 1)[0] == 0
    np.testing.assert_array_equal(level("other.zarr", "0"), ungrain.bilateral(images, axis=0, channel_axis=1))


def test_channels_of_a_volume(run, tmp_path):
    volume = np.moveaxis(noisy_phantom(channels=2, **SIZE), -1, 0)
    write_ome("in.zarr", volume, "czyx", (1, 8, 16, 16), spacing=(1, 1, 1))
    assert run("in.zarr", "out.zarr", *WORDS, "--sigma", f"{0.08 * 255},{0.05 * 255}", "--channel-axis", 0, "--block", 24)[0] == 0
    np.testing.assert_array_equal(level("out.zarr", "2"),
                                  ungrain.denoise_volume(volume, sigma=[0.08, 0.05], channel_axis=0, **QUICK))


@pytest.mark.parametrize("kind", ["3 axes", "stacked", "channels"])
def test_volumes_in_plain_arrays(run, tmp_path, kind):
    volume = noisy_phantom(dtype=np.uint8, channels=None if kind == "3 axes" else 2, **SIZE)
    zarr.create_array("in.zarr", shape=volume.shape, dtype="uint8", chunks=(8, 16, 16, 1)[:volume.ndim])[...] = volume
    more = {"3 axes": (), "stacked": ("--axis", 3), "channels": ("--channel-axis", -1)}[kind]
    assert run("in.zarr", "out.zarr", *WORDS, *more, "--block", 16, "--chunk", 8)[0] == 0
    if kind == "stacked":
        expected = np.stack([ungrain.denoise_volume(volume[..., c], **QUICK) for c in range(2)], axis=-1)
    else:
        expected = ungrain.denoise_volume(volume, channel_axis=-1 if kind == "channels" else None, **QUICK)
    out = zarr.open_array("out.zarr", mode="r")
    np.testing.assert_array_equal(out[...], expected)
    assert out.chunks[:3] == (8, 8, 8)


def test_nlm_is_that_of_volumes(run, tmp_path):
    volume = noisy_phantom(**SIZE)
    write_ome("in.zarr", volume, "zyx", (8, 16, 16))
    assert run("in.zarr", "out.zarr", "--volume", "--method", "nlm", "--search", 5, "--block", 16)[0] == 0
    np.testing.assert_array_equal(level("out.zarr", "2"), ungrain.denoise_volume(volume, "nlm3d", spacing=(2.5, 1, 1), search=5))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_taken_up_where_it_stopped(run, tmp_path, zarr_format):
    volume = noisy_phantom(dtype=np.uint16, **SIZE)
    write_ome("in.zarr", volume, "zyx", (8, 8, 8), zarr_format, paths=["0", "1", "2"])
    words = ("in.zarr", "out.zarr", *WORDS, "--block", 8)
    assert run(*words)[0] == 0
    whole = {str(file): file.read_bytes() for file in files_of("out.zarr")}
    attributes = dict(zarr.open_group("out.zarr", mode="r").attrs)
    for file in files_of("out.zarr/0")[-3:] + files_of("out.zarr/1")[1:]:
        file.unlink()
    shutil.rmtree("out.zarr/2")
    kept = {file: file.stat().st_mtime_ns for file in files_of("out.zarr")}
    status, said = run(*words)
    assert status == 0 and " blocks are there already" in said
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    assert {str(file): file.read_bytes() for file in files_of("out.zarr")} == whole
    assert dict(zarr.open_group("out.zarr", mode="r").attrs) == attributes
    status, said = run(*words[:-1], 64, "--chunk", 4)  # chunks stay as they are
    assert status == 0 and ": 0 blocks in" in said
    assert {str(file): file.read_bytes() for file in files_of("out.zarr")} == whole


def test_killed_and_taken_up(tmp_path):
    volume = noisy_phantom(dtype=np.uint16, depth=40, height=48, width=48)
    write_ome(tmp_path / "in.zarr", volume, "zyx", (8, 8, 8), paths=["0", "1"])
    command = [sys.executable, "-m", "ungrain.cluster", "in.zarr", "out.zarr", *map(str, WORDS), "--block", "8", "--workers", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not files_of(tmp_path / "out.zarr") and time.monotonic() < deadline:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    there = len(files_of(tmp_path / "out.zarr"))
    assert 0 < there < 180
    described = zarr.open_group(str(tmp_path / "out.zarr"), mode="r").attrs["ome"]["multiscales"][0]["datasets"]
    assert [each["path"] for each in described] == ["0"]  # no level that is not there
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "of 180 blocks are there already" in done.stderr
    expected = ungrain.denoise_volume(volume, spacing=(2.5, 1, 1), **QUICK)
    np.testing.assert_array_equal(level(tmp_path / "out.zarr", "0"), expected)
    np.testing.assert_array_equal(level(tmp_path / "out.zarr", "1"), smaller(expected, (1, 2, 2)))
    assert not list((tmp_path / "out.zarr").rglob("*.partial"))


def test_chunk_that_cannot_be_read_is_named(run, tmp_path):
    volume = noisy_phantom(dtype=np.uint8, **SIZE)
    write_ome("in.zarr", volume, "zyx", (7, 16, 16), paths=["0", "1"])
    broken = tmp_path / "in.zarr" / "0" / "c" / "2" / "2" / "1"
    good = broken.read_bytes()
    broken.write_bytes(b"this is no chunk")
    words = ("in.zarr", "out.zarr", *WORDS, "--sigma", 16, "--block", 7, "-q")
    status, said = run(*words)
    assert status == 1 and said.startswith("ungrain: chunk c/2/2/1 of in.zarr cannot be read: ") and said.count("\n") == 1
    assert not os.path.exists("out.zarr/1")  # only of a complete level are smaller ones made
    status, said = run("in.zarr", "other.zarr", *WORDS, "-q")  # while the noise is measured
    assert status == 1 and said.startswith("ungrain: chunk c/2/2/1 of in.zarr cannot be read: ")
    broken.write_bytes(good)
    assert run(*words) == (0, "")
    np.testing.assert_array_equal(level("out.zarr", "0"), ungrain.denoise_volume(volume, sigma=16, spacing=(2.5, 1, 1), **QUICK))


def test_missing_chunks_are_the_fill_value(run, tmp_path):
    volume = noisy_phantom(dtype=np.uint8, **SIZE)
    group = write_ome("in.zarr", volume, "zyx", (7, 16, 16), paths=["0"])
    (tmp_path / "in.zarr" / "0" / "c" / "2" / "2" / "1").unlink()
    assert run("in.zarr", "out.zarr", *WORDS, "--sigma", 16, "--block", 14)[0] == 0
    expected = ungrain.denoise_volume(group["0"][...], sigma=16, spacing=(2.5, 1, 1), **QUICK)
    np.testing.assert_array_equal(level("out.zarr", "0"), expected)


BOX = ("--method", "box", "--radius", 1, "--block", 16)


def test_an_image_is_replaced(run, tmp_path):
    images = np.stack([picture(40, 36, dtype=np.uint8, seed=seed) for seed in range(3)])
    write_ome("in.zarr", images, "zyx", (1, 16, 16))
    write_ome("out.zarr", images[:2], "zyx", (1, 20, 20), 2, paths=["0", "x/1"])
    status, said = run("in.zarr", "out.zarr", *BOX)
    assert status == 2 and "out.zarr is there and is no OME-Zarr image with a level 2" in said
    assert run("in.zarr", "out.zarr", *BOX, "--overwrite")[0] == 0
    np.testing.assert_array_equal(level("out.zarr", "2"), ungrain.box(images, radius=1, axis=0))
    assert sorted(os.listdir()) == ["in.zarr", "out.zarr"] and sorted(os.listdir("out.zarr")) == ["10", "2", "zarr.json"]
    status, said = run("in.zarr", "out.zarr", "--method", "box", "--radius", 2)
    assert status == 2 and "begun with --radius 1, now it is 2" in said
    shutil.rmtree("out.zarr/10/c/0")  # begun with other options, and not complete
    assert run("in.zarr", "out.zarr", "--method", "box", "--radius", 2, "--overwrite")[0] == 0
    np.testing.assert_array_equal(level("out.zarr", "10"), smaller(ungrain.box(images, radius=2, axis=0), (1, 2, 2)))
    shutil.rmtree("out.zarr/10/c/0")
    status, said = run("in.zarr", "out.zarr", "--method", "box", "--radius", 2, "--overwrite")
    assert status == 0 and "are there already" in said  # the same options: only what is missing


@pytest.mark.parametrize("name", ["labels/0/zarr.json", "notes.txt", "2/notes.txt", "2/c/0/9/9", "3/zarr.json"])
def test_what_is_no_part_of_an_image_is_kept(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    images = np.stack([picture(40, 36, dtype=np.uint8, seed=seed) for seed in range(3)])
    write_ome("in.zarr", images, "zyx", (1, 16, 16))
    write_ome("out.zarr", images, "zyx", (1, 16, 16))
    pathlib.Path("out.zarr", name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path("out.zarr", name).write_text("mine")
    before = {str(p): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert cluster.main(["in.zarr", "out.zarr", *map(str, BOX), "--workers", "1", "--overwrite"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ungrain: out.zarr holds ") and "--overwrite replaces only" in said and said.count("\n") == 1
    assert {str(p): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_levels_that_cannot_be_made_again(run, tmp_path):
    image = picture(45, 38, dtype=np.uint8)
    group = write_ome("in.zarr", image, "yx", (16, 16), paths=["0", "1", "2"])
    del group["2"]
    group.create_array("2", shape=(15, 13), dtype="uint8", chunks=(15, 13))  # of 23 x 19
    status, said = run("in.zarr", "out.zarr", *BOX)
    assert status == 0 and "in.zarr: the output is without 2: no level there" in said
    described = zarr.open_group("out.zarr", mode="r").attrs["ome"]["multiscales"][0]["datasets"]
    assert [each["path"] for each in described] == ["0", "1"] and not os.path.exists("out.zarr/2")


@pytest.mark.parametrize("change, told", [
    ({"axes": [AXES["y"], AXES["x"]], "datasets": [{"path": "0"}]}, "2 axes (y, x) for the array 0, which has 3"),
    ({"axes": [AXES["z"], AXES["y"], AXES["y"]]}, "its axes have no names, or two have the same"),
    ({"axes": [3, 4, 5]}, "its axes have no names"),
    ({"axes": "zyx"}, "its axes have no names"),
    ({"datasets": []}, "an image without datasets"),
    ({"datasets": [{"path": "../in.zarr/0"}]}, "its datasets have the paths '../in.zarr/0'"),
    ({"datasets": [{"path": "0"}, {"path": "0/c"}]}, "its datasets have the paths '0', '0/c'"),
    ({"datasets": [{"path": 7}]}, "its datasets have the paths 7"),
    ({"datasets": [{"path": "5"}]}, "there is no array 5"),
    ({"datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2]}]}]},
     "a scale of 2 numbers for 3 axes"),
    ({"datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": "1"}]}]}, "a scale that is no list"),
    ({"datasets": [{"path": "0", "coordinateTransformations": {}}]}, "coordinateTransformations is no list"),
    ({"datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [0, 1, 1]}]}]},
     "has voxels of 0, 1, 1; give --spacing"),
    ({"axes": [{**AXES["z"], "unit": "parsec"}, AXES["y"], AXES["x"]]},
     "has voxels in different units (parsec, micrometer, micrometer); give --spacing"),
    ({"axes": [AXES["t"], AXES["y"], AXES["x"]]}, "in.zarr holds no volumes: its axes are t, y, x"),
    (None, "multiscales is no list of images"),
])
def test_wrong_metadata_is_one_line(tmp_path, monkeypatch, capsys, change, told):
    monkeypatch.chdir(tmp_path)
    group = write_ome("in.zarr", noisy_phantom(**SIZE), "zyx", (8, 16, 16), paths=["0"])
    ome = dict(group.attrs["ome"])
    group.attrs["ome"] = {**ome, "multiscales": [{**ome["multiscales"][0], **change}] if change is not None else {}}
    status = cluster.main(["in.zarr", "out.zarr", *map(str, WORDS), "--workers", "1"])
    said = capsys.readouterr().err
    assert status in (1, 2) and said.startswith("ungrain: in.zarr ") and told in said and said.count("\n") == 1
    assert not os.path.exists("out.zarr")


@pytest.mark.parametrize("words, told", [
    ((), "an array of 4 axes, 0 of them stacked, is no volume"),
    (("--axis", "0", "--method", "median"), "median looks along the slices of a whole volume"),
    (("--axis", "0", "--method", "bm3d"), "bm3d is not for volumes"),
    (("--axis", "0", "--spacing", "1,1"), "--spacing: takes three numbers above 0"),
    (("--axis", "0", "--spacing", "1,1,inf"), "--spacing: takes three numbers above 0"),
])
def test_errors_are_one_line(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    zarr.create_array("in.zarr", shape=(2, 9, 9, 9), dtype="uint8", chunks=(1, 9, 9, 9))
    assert cluster.main(["in.zarr", "out.zarr", "--volume", *words, "--workers", "1"]) in (1, 2)
    said = capsys.readouterr().err
    assert told in said and said.startswith("ungrain: ") and said.count("\n") == 1
    assert cluster.main(["in.zarr", "out.zarr", "--spacing", "1,1,1"]) == 2
    assert capsys.readouterr().err == "ungrain: --spacing is for --volume\n"


def test_groups_without_an_image(tmp_path):
    zarr.create_group(tmp_path / "plate.zarr", attributes={"ome": {"version": "0.5", "plate": {}}})
    with pytest.raises(ungrain.CannotRead, match="plate.zarr is a Zarr group without an array; name an image in it"):
        ungrain.dask.read(str(tmp_path / "plate.zarr"))


def test_read_takes_the_largest_level(tmp_path):
    volume = noisy_phantom(**SIZE)
    write_ome(tmp_path / "in.zarr", volume, "zyx", (8, 16, 16))
    np.testing.assert_array_equal(ungrain.dask.read(str(tmp_path / "in.zarr")), volume)
    group = zarr.create_group(tmp_path / "plain.zarr")  # no metadata: by name, 2 before 10
    for name in ("10", "2"):
        group.create_array(name, shape=(int(name), 4), dtype="uint8")
    assert ungrain.dask.read(str(tmp_path / "plain.zarr")).shape == (2, 4)


def test_older_metadata():
    old = _ome.read_multiscale("a", {"multiscales": [{"datasets": [{"path": "0"}]}]})
    assert [axis.name for axis in _ome.check_axes(old, (1, 1, 5, 5, 5)).axes] == list("tczyx") and not old.axes
    named = _ome.read_multiscale("a", {"multiscales": [{"axes": ["c", "y", "x"], "datasets": [{"path": "0"}]}]})
    assert named.sides(2) == [1, 2] and named.sizes([1, 2]) == [1, 1]
    assert _ome.read_multiscale("a", {"ome": {"version": "0.5"}}) is None


def test_sizes_are_in_one_unit_and_of_both_scales():
    image = multiscales("zyx", ["0"], [[300, 0.2, 0.2]], coordinateTransformations=[{"type": "scale", "scale": [2, 1, 1]}])
    image[0]["axes"] = [{**AXES["z"], "unit": "nanometer"}, AXES["y"], AXES["x"]]
    found = _ome.read_multiscale("a", {"multiscales": image})
    np.testing.assert_allclose(found.sizes([0, 1, 2]), [600e-9, 0.2e-6, 0.2e-6])


@pytest.mark.parametrize("larger, shape, scales, factors", [
    ((100, 100), (50, 50), None, (2, 2)), ((101, 99), (50, 50), None, (2, 2)), ((7, 7), (7, 1), None, (1, 7)),
    ((3, 9), (1, 3), ((1, 1), (2, 3)), (2, 3)), ((3, 9), (1, 3), ((1, 1), (float("nan"), float("-inf"))), (3, 3)),
    ((10, 10), (7, 5), None, None), ((10, 10), (20, 10), None, None), ((10, 10), (5, 0), None, None), ((10, 10), (5,), None, None)])
def test_factors(larger, shape, scales, factors):
    assert _ome.shrinking(larger, shape, (0, 1), scales or (None, None)) == factors
    if factors and factors[0] > 1:
        assert _ome.shrinking(larger, shape, (1,), scales or (None, None)) is None


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
def test_means(dtype):
    pixels = (np.random.default_rng(0).uniform(-1, 1, (5, 7, 6)) * 100).astype(dtype)
    for factors in ((1, 2, 2), (2, 3, 1), (5, 7, 6), (1, 1, 1)):
        found = _ome.means(pixels, factors)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, smaller(pixels, factors), rtol=1e-6)
    assert _ome.means(np.full((2, 2), 255, "uint8"), (2, 2)) == 255


@pytest.mark.skipif(not has("ome_zarr"), reason="ome-zarr is missing")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_other_readers_take_the_output(run, tmp_path, zarr_format):
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader
    volume = noisy_phantom(dtype=np.uint16, **SIZE)
    write_ome("in.ome.zarr", volume[None, None], "tczyx", (1, 1, 8, 16, 16), zarr_format, paths=["0", "1"])
    assert run("in.ome.zarr", "out.ome.zarr", *WORDS, "--block", 24)[0] == 0
    node = next(iter(Reader(parse_url(str(tmp_path / "out.ome.zarr")))()))
    np.testing.assert_array_equal(node.data[0][0, 0], ungrain.denoise_volume(volume, spacing=(2.5, 1, 1), **QUICK))
    assert [each.shape for each in node.data] == [(1, 1, 21, 34, 29), (1, 1, 21, 17, 15)]
    assert node.metadata["coordinateTransformations"][1][0]["scale"] == [1, 1, 2.5, 2, 2]


@pytest.mark.parametrize("words, threads", [
    (("--workers", "6", "--block", "16"), 3), (("--workers", "6", "--block", "4"), 1), (("--workers", "6", "--threads", "2"), 2),
    (("--scheduler", "tcp://127.0.0.1:1"), 1)])
def test_few_blocks_take_several_threads(tmp_path, monkeypatch, words, threads):
    monkeypatch.chdir(tmp_path)
    zarr.create_array("in.zarr", shape=(16, 16, 32), dtype="uint8", chunks=(4, 4, 4))
    seen = []

    def stop(options):
        seen.append(options.threads)
        raise ungrain.Error("seen")
    monkeypatch.setattr(cluster, "_connect", stop)
    assert cluster.main(["in.zarr", "out.zarr", "--volume", *words]) == 1
    assert seen == [threads]


@pytest.mark.skipif("UNGRAIN" not in os.environ, reason="UNGRAIN does not name the program")
def test_the_program_hands_volumes_over(tmp_path):
    volume = noisy_phantom(dtype=np.uint16, **SIZE)
    write_ome(tmp_path / "in.ome.zarr", volume, "zyx", (8, 16, 16))
    environment = {**os.environ, "UNGRAIN_PYTHON": sys.executable}
    command = [os.environ["UNGRAIN"], "volume", "in.ome.zarr", *map(str, WORDS[1:]), "--threads", "2", "--memory", "200M"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 workers" in done.stderr
    expected = ungrain.denoise_volume(volume, spacing=(2.5, 1, 1), **QUICK)
    np.testing.assert_array_equal(level(tmp_path / "in.ungrain.ome.zarr", "2"), expected)
    assert json.loads((tmp_path / "in.ungrain.ome.zarr" / "zarr.json").read_text())["attributes"]["ome"]["omero"] == OMERO
