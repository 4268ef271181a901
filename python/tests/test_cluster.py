"""ungrain cluster as its user runs it: from store to store, interrupted, resumed, and with unreadable chunks."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import has, picture

import ungrain

if not (has("dask") and has("distributed") and has("zarr")):
    pytest.skip("Dask (dask, distributed, zarr) is missing", allow_module_level=True)

import zarr  # noqa: E402

import ungrain.dask  # noqa: E402

from ungrain import cluster  # noqa: E402
from ungrain._parts import Axes  # noqa: E402

# In the background we and the programs that we start would ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def store(path, image, chunks):
    array = zarr.create_array(str(path), shape=image.shape, dtype=image.dtype, chunks=chunks)
    array[...] = image
    return array


def result(path):
    return zarr.open_array(str(path), mode="r")[...]


def chunk_files(path):
    return sorted(p for p in pathlib.Path(path, "c").rglob("*") if p.is_file())


def test_from_store_to_store(run, tmp_path):
    image = picture(200, 170, 3, np.uint8)
    store(tmp_path / "in.zarr", image, (50, 50, 3))
    status, said = run("in.zarr", "out.zarr", "--method", "bilateral", "--radius", 4, "--block", 100)
    assert status == 0, said
    assert "3 workers; dashboard: http" in said and "4 blocks" in said
    np.testing.assert_array_equal(result("out.zarr"), ungrain.bilateral(image, radius=4))
    out = zarr.open_array("out.zarr", mode="r")
    assert out.chunks == (50, 50, 3) and out.attrs["ungrain"]["parameters"][0]["sigma"] == ungrain.estimate_sigma(image)


def test_strengths_are_on_the_scale_of_the_program(run, tmp_path):
    image = picture(80, 70, dtype=np.uint16)
    store(tmp_path / "in.zarr", image, (40, 40))
    assert run("in.zarr", "out.zarr", "--method", "nlm", "--sigma=12", "--search", "9")[0] == 0
    np.testing.assert_array_equal(result("out.zarr"), ungrain.nlm(image, sigma=12 * 65535 / 255, search=9))


def test_two_steps_in_a_stack(run, tmp_path):
    frames = np.stack([picture(90, 80, dtype=np.uint8, seed=seed) for seed in range(3)])
    store(tmp_path / "in.zarr", frames, (1, 45, 45))
    assert run("in.zarr", "out.zarr", "--axis", 0, "--profile", "fast", "--search", 11, "--block", 45)[0] == 0
    expected = ungrain.bm3d(frames, axis=0, profile="fast", search=11)
    np.testing.assert_array_equal(result("out.zarr"), expected)
    assert "Infinity" not in pathlib.Path("out.zarr", "zarr.json").read_text()
    for file in chunk_files("out.zarr")[3:]:
        file.unlink()
    assert run("in.zarr", "out.zarr", "--axis", 0, "--profile", "fast", "--search", 11, "--block", 45)[0] == 0
    np.testing.assert_array_equal(result("out.zarr"), expected)  # resumed with the noise measured before


@pytest.mark.parametrize("kind", ["version 2", "sharded", "pyramid", "absent chunks"])
def test_kinds_of_zarr(run, tmp_path, kind):
    image = picture(90, 80, dtype=np.uint16)
    if kind == "pyramid":
        group = zarr.create_group("in.zarr")
        for level in range(2):
            array = group.create_array(str(level), shape=image[::1 + level, ::1 + level].shape, dtype="uint16", chunks=(32, 32))
            array[...] = image[::1 + level, ::1 + level]
    else:
        options = {"version 2": {"zarr_format": 2}, "sharded": {"shards": (64, 64)}, "absent chunks": {}}[kind]
        if kind == "absent chunks":
            image[:64] = 0  # Zarr does not write these chunks
        array = zarr.create_array("in.zarr", shape=image.shape, dtype="uint16", chunks=(32, 32), **options)
        array[...] = image
    assert run("in.zarr", "out.zarr", "--method", "box", "--radius", 1, "--block", 64)[0] == 0
    np.testing.assert_array_equal(result("out.zarr"), ungrain.box(image, radius=1))
    status, said = run("in.zarr", "out.zarr", "--method", "box", "--radius", 1, "--block", 64)
    assert status == 0 and ": 0 blocks in" in said  # black chunks exist too


@pytest.mark.skipif(not has("tifffile"), reason="tifffile is missing")
def test_tiff_stack(run, tmp_path):
    import tifffile
    frames = np.stack([picture(60, 50, dtype=np.uint16, seed=seed) for seed in range(3)])
    for number, frame in enumerate(frames):
        tifffile.imwrite(tmp_path / f"frame{number}.tif", frame)
    assert run("frame*.tif", "out.zarr", "--axis", 0, "--method", "median")[0] == 0
    np.testing.assert_array_equal(result("out.zarr"), ungrain.median(frames, axis=0))


def test_taken_up_where_it_stopped(run, tmp_path):
    image = picture(200, 200)
    store(tmp_path / "in.zarr", image, (50, 50))
    options = ("--method", "box", "--radius", 2, "--block", 50)
    assert run("in.zarr", "out.zarr", *options)[0] == 0
    whole = result("out.zarr")
    files = chunk_files("out.zarr")
    assert len(files) == 16
    for file in files[5:]:
        file.unlink()
    before = [file.stat().st_mtime_ns for file in files[:5]]
    (files[0].parent / "0.abc.partial").write_bytes(b"half")  # of a worker that was killed
    status, said = run("in.zarr", "out.zarr", *options)
    assert status == 0 and "5 of 16 blocks are there already" in said and "11 blocks in" in said
    assert [file.stat().st_mtime_ns for file in files[:5]] == before and chunk_files("out.zarr") == files
    np.testing.assert_array_equal(result("out.zarr"), whole)


def test_other_options_do_not_mix(run, tmp_path):
    store(tmp_path / "in.zarr", picture(60, 60), (30, 30))
    assert run("in.zarr", "out.zarr", "--method", "box", "--radius", 2)[0] == 0
    status, said = run("in.zarr", "out.zarr", "--method", "box", "--radius", 3)
    assert status == 2 and "begun with --radius 2, now it is 3" in said and said.count("\n") == 2
    assert run("in.zarr", "out.zarr", "--method", "box", "--radius", 3, "--overwrite")[0] == 0
    np.testing.assert_array_equal(result("out.zarr"), ungrain.box(picture(60, 60), radius=3))


def test_other_pixels_do_not_mix(run, tmp_path):
    array = store(tmp_path / "in.zarr", picture(90, 60), (30, 30))
    options = ("in.zarr", "out.zarr", "--method", "box")
    assert run(*options)[0] == 0
    assert run(*options)[0] == 0
    array[40, 5] += 1  # in the middle chunk
    status, said = run(*options)
    assert status == 2 and "in.zarr has other pixels than when out.zarr was begun" in said
    assert run(*options, "--overwrite")[0] == 0
    np.testing.assert_array_equal(result("out.zarr"), ungrain.box(array[...]))


BOX = ("--method", "box", "--radius", 1, "--block", 30)


def everything_in(folder):
    """Names and contents, also of hidden files."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(pathlib.Path(folder).rglob("*"))}


def arrays_of_others():
    """By name, what other programs write: only an array."""
    image = picture(40, 50, dtype=np.uint16)
    v2 = {"zarr_format": 2}
    for name, options in {"v3": {}, "v3 sharded": {"shards": (20, 20)}, "v2": v2,
                          "v2 nested": {**v2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
                          "v3 flat": {"chunk_key_encoding": {"name": "default", "separator": "."}},
                          "v3 with keys of v2": {"chunk_key_encoding": {"name": "v2", "separator": "."}}}.items():
        yield name, lambda path, options=options: zarr.create_array(
            path, shape=image.shape, dtype="uint16", chunks=(10, 10), attributes={"a": 1}, **options).__setitem__(..., image)
    yield "without an axis", lambda path: zarr.create_array(path, shape=(), dtype="uint16").__setitem__((), 7)
    yield "v2 without an axis", lambda path: zarr.create_array(path, shape=(), dtype="uint16", **v2).__setitem__((), 7)
    yield "without a chunk", lambda path: zarr.create_array(path, shape=(9, 9), dtype="uint16", chunks=(3, 3))


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in arrays_of_others()])
def test_an_array_of_any_writer_is_replaced(run, tmp_path, make):
    store(tmp_path / "in.zarr", picture(60, 60), (30, 30))
    make("out.zarr")
    status, said = run("in.zarr", "out.zarr", *BOX)
    assert status == 2 and "--overwrite replaces it" in said
    status, said = run("in.zarr", "out.zarr", *BOX, "--overwrite")
    assert status == 0, said
    np.testing.assert_array_equal(result("out.zarr"), ungrain.box(picture(60, 60), radius=1))
    assert sorted(os.listdir()) == ["in.zarr", "out.zarr"]


def foreign_places():
    def beside(name):
        def make(path):
            store(path, picture(40, 50), (10, 10))
            pathlib.Path(path, name).parent.mkdir(exist_ok=True, parents=True)
            pathlib.Path(path, name).write_text("mine")
        return make

    def link_inside(path):
        store(path, picture(40, 50), (10, 10))
        pathlib.Path("elsewhere").mkdir()
        os.symlink("../elsewhere", path + "/c/9")

    def link(path):
        store("real.zarr", picture(40, 50), (10, 10))
        os.symlink("real.zarr", path)

    def group(path):
        zarr.create_group(path).create_array("0", shape=(9, 9), dtype="u1", chunks=(3, 3))

    def empty_folder_inside(path):
        store(path, picture(40, 50), (10, 10))
        pathlib.Path(path, "notes").mkdir()

    def broken(path):
        pathlib.Path(path, "c", "0").mkdir(parents=True)
        pathlib.Path(path, "zarr.json").write_text("{")

    yield "a folder", lambda path: (os.mkdir(path), pathlib.Path(path, "thesis.tex").write_text("mine"))
    yield "a file", lambda path: pathlib.Path(path).write_text("mine")
    yield "a link", link
    yield "a dangling link", lambda path: os.symlink("nowhere", path)
    yield "a group", group
    yield "a link inside", link_inside
    yield "an empty folder inside", empty_folder_inside
    yield "metadata that is broken", broken
    for name in ("notes.txt", ".hidden", "c/notes.txt", "c/0/notes.txt", "c/4/0", "c/0/0.txt", "0.0", "0/0", ".zarray",
                 "thesis/c", "notes.partial"):
        yield f"{name} beside the chunks", beside(name)


@pytest.mark.parametrize("path", ["out.zarr", "out.zarr/"])
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in foreign_places()])
def test_anything_but_an_array_is_kept(tmp_path, monkeypatch, capsys, make, path):
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "in.zarr", picture(60, 60), (30, 30))
    make("out.zarr")
    before = everything_in(tmp_path)
    assert cluster.main(["in.zarr", path, "--method", "box", "--workers", "1", "--overwrite"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ungrain: out.zarr") and said.count("\n") == 1 and "--overwrite replaces only" in said
    assert everything_in(tmp_path) == before


def test_the_input_by_another_name_is_not_replaced(tmp_path, monkeypatch, capsys):
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "link")
    store(tmp_path / "real" / "in.zarr", picture(60, 60), (30, 30))
    monkeypatch.chdir(tmp_path)
    before = everything_in(tmp_path)
    for output in ("link/in.zarr", f"file://{tmp_path}/real/in.zarr", f"file://{tmp_path}/link/in.zarr/"):
        assert cluster.main(["real/in.zarr", output, "--method", "box", "--workers", "1", "--overwrite"]) == 2
        assert "is the input" in capsys.readouterr().err
    assert everything_in(tmp_path) == before


def test_in_a_store_without_folders_nothing_is_deleted(tmp_path):
    import fsspec
    source = cluster.open_source(str(store(tmp_path / "in.zarr", picture(60, 60), (30, 30)).store.root))
    assert cluster.open_output("memory://tests/out.zarr", source) is None
    fsspec.filesystem("memory").pipe("/tests/out.zarr/thesis.tex", b"mine")
    with pytest.raises(cluster.WrongUsage, match="is no Zarr array"):
        cluster.open_output("memory://tests/out.zarr", source)
    with pytest.raises(cluster._outputs.NotReplaced, match="delete it, or name another output"):
        cluster.open_replacement("memory://tests/out.zarr", source, [], {})
    assert fsspec.filesystem("memory").cat("/tests/out.zarr/thesis.tex") == b"mine"


def test_what_is_replaced_is_kept_until_the_new_one_is_complete(run, tmp_path):
    image = picture(90, 90, dtype=np.uint8)
    store(tmp_path / "in.zarr", image, (30, 30))
    old = picture(40, 50)
    store(tmp_path / "out.zarr", old, (10, 10))
    broken = tmp_path / "in.zarr" / "c" / "2" / "2"
    good = broken.read_bytes()
    broken.write_bytes(b"this is no chunk")
    status, said = run("in.zarr", "out.zarr", "--method", "box", "--sigma", 3, "--overwrite")  # not even begun
    assert status == 2 and "replaced" not in said
    np.testing.assert_array_equal(result("out.zarr"), old)
    status, said = run("in.zarr", "out.zarr", *BOX, "--overwrite")
    aside = tmp_path / ".out.zarr.replaced-1"
    assert status == 1 and f"takes it up; what was in its place is kept as {aside}\n" in said
    assert f"out.zarr replaces {aside}, to be removed when all blocks are done\n" in said
    np.testing.assert_array_equal(result(aside), old)
    there = {file: file.stat().st_mtime_ns for file in chunk_files("out.zarr")}
    assert 0 < len(there) < 9
    status, said = run("in.zarr", "out.zarr", *BOX, "--overwrite")  # fails again: nothing more is moved
    assert status == 1 and f"kept as {aside}\n" in said
    np.testing.assert_array_equal(result(aside), old)
    broken.write_bytes(good)
    status, said = run("in.zarr", "out.zarr", *BOX, "--overwrite")  # the same command resumes it
    assert status == 0 and f"{len(there)} of 9 blocks are there already" in said
    assert {file: file.stat().st_mtime_ns for file in there} == there
    np.testing.assert_array_equal(result("out.zarr"), ungrain.box(image, radius=1))
    assert sorted(os.listdir()) == ["in.zarr", "out.zarr"]
    status, said = run("in.zarr", "out.zarr", *BOX, "--overwrite")  # complete: starts again
    assert status == 0 and "already" not in said and "9 blocks in" in said


@pytest.mark.parametrize("overwrite", [True, False])
def test_taken_up_with_other_options_or_without_overwrite(run, tmp_path, overwrite):
    image = picture(90, 90, dtype=np.uint8)
    store(tmp_path / "in.zarr", image, (30, 30))
    store(tmp_path / "out.zarr", picture(40, 50), (10, 10))
    broken = tmp_path / "in.zarr" / "c" / "2" / "2"
    good = broken.read_bytes()
    broken.write_bytes(b"this is no chunk")
    assert run("in.zarr", "out.zarr", *BOX, "--overwrite")[0] == 1
    broken.write_bytes(good)
    if overwrite:  # another radius: the unfinished output moves aside, too
        status, said = run("in.zarr", "out.zarr", "--method", "box", "--radius", 2, "--overwrite")
        assert ".out.zarr.replaced-1 and " in said and ".out.zarr.replaced-2, to be removed" in said
    else:
        status, said = run("in.zarr", "out.zarr", *BOX)
    assert status == 0
    np.testing.assert_array_equal(result("out.zarr"), ungrain.box(image, radius=2 if overwrite else 1))
    assert sorted(os.listdir()) == ["in.zarr", "out.zarr"]


def test_what_was_put_beside_the_replaced_array_is_left(run, tmp_path):
    store(tmp_path / "in.zarr", picture(60, 60), (30, 30))
    store(tmp_path / ".out.zarr.replaced-1", picture(40, 50), (10, 10))
    store(tmp_path / ".out.zarr.replaced-2", picture(40, 50), (10, 10))
    (tmp_path / ".out.zarr.replaced-1" / "notes.txt").write_text("mine")
    store(tmp_path / ".other.zarr.replaced-1", picture(40, 50), (10, 10))
    assert run("in.zarr", "out.zarr", *BOX)[0] == 0  # which replaced nothing
    assert os.path.exists(".out.zarr.replaced-2")
    status, said = run("in.zarr", "out.zarr", *BOX, "--overwrite")
    assert status == 0 and f"{tmp_path}/.out.zarr.replaced-1 is left: it holds more than a Zarr array" in said
    assert "4 blocks in" in said
    assert sorted(os.listdir()) == [".other.zarr.replaced-1", ".out.zarr.replaced-1", "in.zarr", "out.zarr"]
    assert len(chunk_files(".out.zarr.replaced-1")) == 20


def test_chunk_that_cannot_be_read_is_named_and_the_others_are_kept(run, tmp_path):
    image = picture(200, 200, dtype=np.uint8)
    store(tmp_path / "in.zarr", image, (50, 50))
    broken = tmp_path / "in.zarr" / "c" / "2" / "1"
    good = broken.read_bytes()
    broken.write_bytes(b"this is no chunk")
    options = ("in.zarr", "out.zarr", "--method", "bilateral", "--sigma", 10, "--radius", 2, "--block", 50, "-q")
    status, said = run(*options)
    assert status == 1
    assert said.startswith("ungrain: chunk c/2/1 of in.zarr cannot be read: ") and said.count("\n") == 1
    assert "7 of 16 blocks are done and kept" in said  # nine need a part of it
    broken.write_bytes(good)
    assert run(*options) == (0, "")
    np.testing.assert_array_equal(result("out.zarr"), ungrain.bilateral(image, sigma=10, radius=2))
    broken.write_bytes(b"this is no chunk")
    status, said = run("in.zarr", "other.zarr", "--method", "bilateral", "-q")  # while the noise is measured
    assert status == 1 and said.startswith("ungrain: chunk c/2/1 of in.zarr cannot be read: ")


def test_unreadable_chunk_of_a_dask_array(scheduler, tmp_path):
    store(tmp_path / "in.zarr", picture(100, 100), (50, 50))
    (tmp_path / "in.zarr" / "c" / "0" / "1").write_bytes(b"this is no chunk")
    clean = ungrain.dask.denoise(ungrain.dask.read(str(tmp_path / "in.zarr"), chunks=50), "box")
    with pytest.raises(ungrain.CannotRead, match="chunk c/0/1 of .*in.zarr cannot be read: "):
        scheduler.compute(clean).result()


def test_a_worker_killed_in_the_middle(scheduler, tmp_path):
    image = picture(480, 480)
    store(tmp_path / "in.zarr", image, (60, 60))
    process = subprocess.Popen([sys.executable, "-m", "ungrain.cluster", "in.zarr", "out.zarr", "--scheduler",
                                scheduler.scheduler.address, "--method", "nlm", "--sigma", "12", "--search", "41",
                                "--block", "60"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    workers = scheduler.run(os.getpid)
    deadline = time.monotonic() + 60
    while not chunk_files(tmp_path / "out.zarr") and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(next(iter(workers.values())), 9)
    there = len(chunk_files(tmp_path / "out.zarr"))
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said
    assert there < 64
    np.testing.assert_array_equal(result(tmp_path / "out.zarr"), ungrain.nlm(image, sigma=12 / 255, search=41))
    scheduler.wait_for_workers(3, timeout=30)


def test_a_worker_killed_before_its_result_was_seen(run, scheduler, tmp_path, monkeypatch):
    import distributed
    killed = []

    class Losing(distributed.as_completed):
        def __next__(self):
            future = super().__next__()
            if not killed:
                killed.extend(future.client.who_has([future])[future.key])
                os.kill(future.client.run(os.getpid)[killed[0]], signal.SIGKILL)
                deadline = time.monotonic() + 30
                while future.status == "finished" and time.monotonic() < deadline:
                    time.sleep(0.002)
            return future
    monkeypatch.setattr(distributed, "as_completed", Losing)
    image = picture(90, 90)
    store(tmp_path / "in.zarr", image, (30, 30))
    status, said = run("in.zarr", "out.zarr", "--method", "box", "--block", "30")
    assert status == 0, said
    assert killed and "9 blocks" in said
    np.testing.assert_array_equal(result(tmp_path / "out.zarr"), ungrain.box(image))
    scheduler.wait_for_workers(3, timeout=30)


def test_workers_of_this_machine(tmp_path):
    image = picture(60, 60, dtype=np.uint8)
    store(tmp_path / "in.zarr", image, (30, 30))
    done = subprocess.run([sys.executable, "-m", "ungrain.cluster", "in.zarr", "out.zarr", "--workers", "2", "--method",
                           "box", "--worker-memory", "1G"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(result(tmp_path / "out.zarr"), ungrain.box(image))


def processes_of(pid):
    """The process and those that it started."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += processes_of(int(child))
    return found


def listening_addresses(pid):
    """(address, port) of every TCP socket on which the processes listen."""
    inodes = set()
    for each in processes_of(pid):
        for link in pathlib.Path(f"/proc/{each}/fd").iterdir():
            try:
                inodes.add(os.readlink(link))
            except FileNotFoundError:  # closed since
                pass
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text().splitlines()[1:] if os.path.exists(table) else []:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, port = fields[1].split(":")
                found.append((address, int(port, 16)))
    return found


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="the system does not list its sockets")
@pytest.mark.parametrize("words, everywhere", [([], False), (["--dashboard", "0"], False), (["--dashboard", "0.0.0.0:0"], True)])
def test_only_this_machine_is_listened_to(tmp_path, monkeypatch, words, everywhere):
    monkeypatch.chdir(tmp_path)
    options = SimpleNamespace(**json.loads(cluster.read_options(["in.zarr", "out.zarr", "--workers", "1", *words])))
    client, local = cluster._connect(options)
    try:
        found = listening_addresses(os.getpid())
        port = int(client.dashboard_link.split(":")[2].partition("/")[0])
        port_of_scheduler = int(client.scheduler.address.rpartition(":")[2])
    finally:
        client.close()
        local.close()
    loopback = "0100007F"  # 127.0.0.1
    assert (loopback, port_of_scheduler) in found
    assert {each for each in found if each[0] != loopback} == ({("00000000", port)} if everywhere else set())


@pytest.fixture
def certificates(tmp_path):
    """A folder with Dask's configuration for TLS, as docs/cluster.md makes it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing")
    text = (pathlib.Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    commands = [line for line in text.splitlines() if line.startswith("openssl ")]
    assert len(commands) == 3
    for command in commands:
        subprocess.run(shlex.split(command), cwd=tmp_path, check=True, capture_output=True)
    configuration = text.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "tls.yaml").write_text(configuration.replace("/path/to", str(tmp_path)))
    return tmp_path / "config"


def test_tls(certificates, tmp_path):
    store(tmp_path / "in.zarr", picture(60, 60), (30, 30))
    without = {name: value for name, value in os.environ.items() if name != "DASK_CONFIG"}
    environment = {**without, "DASK_CONFIG": str(certificates)}
    scheduler = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--protocol", "tls", "--host",
                                  "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0", "--scheduler-file",
                                  "scheduler.json"], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    worker = None
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "scheduler.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads((tmp_path / "scheduler.json").read_text())["address"]
        assert address.startswith("tls://127.0.0.1:")
        worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"],
                                  cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)

        def run_cluster(address, environment):
            return subprocess.run([sys.executable, "-m", "ungrain.cluster", "in.zarr", "out.zarr", "--method", "box", "--scheduler",
                                   address], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        done = run_cluster(address, environment)
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(result(tmp_path / "out.zarr"), ungrain.box(picture(60, 60)))
        done = run_cluster(address, without)
        assert done.returncode == 2 and "needs certificates" in done.stderr and done.stderr.count("\n") == 1
        done = run_cluster(address.replace("tls", "tcp"), without)
        assert done.returncode == 1 and done.stderr.startswith("ungrain: no scheduler answers at tcp://")
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.terminate()
                process.wait(timeout=60)


@pytest.mark.skipif("UNGRAIN" not in os.environ, reason="UNGRAIN does not name the program")
def test_the_program_hands_over(tmp_path):
    image = picture(60, 60, dtype=np.uint8)
    store(tmp_path / "in.zarr", image, (30, 30))
    environment = {**os.environ, "UNGRAIN_PYTHON": sys.executable}
    command = [os.environ["UNGRAIN"], "cluster", "in.zarr", "out.zarr", "--workers", "1", "--method", "box", "--radius", "2"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(result(tmp_path / "out.zarr"), ungrain.box(image, radius=2))
    done = subprocess.run([*command, "--xyzzy", "1"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2 and done.stderr.startswith("ungrain: no option --xyzzy")


def test_interrupted(tmp_path):
    """Ctrl-C, also after the program, which blocks signals, has become Python."""
    store(tmp_path / "in.zarr", picture(800, 800), (100, 100))
    store(tmp_path / "out.zarr", picture(40, 50), (40, 50))
    words = ["in.zarr", "out.zarr", "--workers", "1", "--method", "nlm", "--sigma", "12", "--search", "61", "--block", "100",
             "--overwrite"]
    aside = tmp_path / ".out.zarr.replaced-1"
    command = [os.environ["UNGRAIN"], "cluster"] if "UNGRAIN" in os.environ else [sys.executable, "-m", "ungrain.cluster"]
    process = subprocess.Popen([*command, *words], cwd=tmp_path, env={**os.environ, "UNGRAIN_PYTHON": sys.executable},
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (aside.exists() and chunk_files(tmp_path / "out.zarr")) and process.poll() is None \
            and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert f"interrupted; finished blocks are kept, the same command takes it up; what was in its place is kept as {aside}" in said
    assert 0 < len(chunk_files(tmp_path / "out.zarr")) < 64
    np.testing.assert_array_equal(result(aside), picture(40, 50))


@pytest.mark.parametrize("words, status, told", [
    (["in.zarr"], 2, "required: output"),
    (["in.zarr", "out.zarr", "--xyzzy", "3"], 2, "no option --xyzzy"),
    (["in.zarr", "out.zarr", "--radius"], 2, "--radius needs a value"),
    (["in.zarr", "out.zarr", "--radius", "-4"], 2, "radius takes"),
    (["in.zarr", "out.zarr", "--method", "bilatteral"], 2, "bilateral"),
    (["in.zarr", "out.zarr", "--block", "0"], 2, "--block: takes a whole number from 1 up, got '0'"),
    (["in.zarr", "out.zarr", "--chunk", "-2"], 2, "--chunk: "),
    (["in.zarr", "out.zarr", "--threads", "x"], 2, "--threads: takes a whole number from 0 up, got 'x'"),
    (["in.zarr", "out.zarr", "--range", "-2"], 2, "--range: "),
    (["in.zarr", "out.zarr", "--axis", "x"], 2, "--axis: takes whole numbers"),
    (["in.zarr", "out.zarr", "--dashboard", "localhost"], 2, "--dashboard: takes an address such as 127.0.0.1:8787"),
    (["none.zarr", "out.zarr"], 1, "none.zarr cannot be opened"),
    (["empty.zarr", "out.zarr"], 2, "empty.zarr has no pixels: its shape is (0, 9)"),
    (["in.zarr", "folder"], 2, "folder is there and is no Zarr array"),
    (["in.zarr", "in.zarr", "--overwrite"], 2, "in.zarr is the input"),
    (["in.zarr", "."], 2, "one is inside the other"),
    (["in.zarr", "other.zarr"], 2, "was not written by ungrain cluster"),
])
def test_errors_are_one_line(words, status, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "in.zarr", picture(20, 20), (10, 10))
    store(tmp_path / "other.zarr", picture(20, 20), (10, 10))
    zarr.create_array(tmp_path / "empty.zarr", shape=(0, 9), dtype="uint8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    if "--method" not in words:
        words = [*words, "--method", "box"]
    assert cluster.main([*words, "--workers", "1"]) == status
    said = capsys.readouterr().err
    assert told in said and said.startswith("ungrain: ") and said.count("\n") == 1
    assert not (tmp_path / "out.zarr").exists()


def test_no_scheduler(tmp_path, monkeypatch, capsys):
    import dask
    store(tmp_path / "in.zarr", picture(20, 20), (10, 10))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1)
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert cluster.main(["in.zarr", "out.zarr", "--scheduler", "tcp://127.0.0.1:9"]) == 1
    assert "no scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err
    assert cluster.main(["in.zarr", "out.zarr", "--scheduler", "tcp://127.0.0.1:9", "--dashboard", "8787"]) == 2
    assert capsys.readouterr().err == "ungrain: --dashboard is for --workers; a scheduler has its own\n"


def test_blocks_are_whole_chunks():
    blocks = cluster.blocks_of((3, 1000, 700), (1, 128, 256), Axes.of(3, 0, -1), 300)
    assert len(blocks) == 3 * 4 * 3
    assert blocks[0].stop == (1, 256, 256) and blocks[-1].start == (2, 768, 512) and blocks[-1].stop == (3, 1000, 700)
