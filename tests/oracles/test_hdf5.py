"""HDF5 files against h5py: what it writes is read, what the program writes it reads, and the rest of a file is kept."""
import json
import os
import resource
import subprocess

import numpy as np
import pytest

from conftest import PROGRAM

h5py = pytest.importorskip("h5py")

COPY = ("--method", "box", "--radius", "0", "-q")  # changes no pixel
STAY = ("uint8", "uint16", "float16", "float32")
TYPES = [*STAY, "int8", "int16", "uint32", "int32", "uint64", "int64", "float64"]
GZIP = {"chunks": (3, 4, 5), "compression": "gzip", "shuffle": True, "fletcher32": True}


def has_hdf5():
    out = subprocess.run([PROGRAM, "formats", "--json"], capture_output=True, text=True, check=True).stdout
    return any(row["format"] == "HDF5" and row["read"] for row in map(json.loads, out.splitlines()))


pytestmark = pytest.mark.skipif(not has_hdf5(), reason="the program was built without libhdf5")


def values(shape, dtype="uint16"):
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        return rng.normal(100, 30, shape).astype(dtype)
    least = 0 if np.dtype(dtype).kind == "u" else -100
    return rng.integers(least, 101, shape).astype(dtype)


def write(path, data, name="data", **storage):
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=data, **storage)
    return path


def through(program, source, *options, result="out.h5"):
    program.run(source, "-o", program.folder / result, *COPY, *options)
    return program.folder / result


def failure(program, source, *options):
    done = subprocess.run([PROGRAM, str(source), "-o", str(program.folder / "failed.h5"), *COPY, *map(str, options)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(f"ungrain: {source}: "), done.stderr
    assert not list(program.folder.glob("*failed*"))
    return lines[0]


def data_of(path, name="data"):
    with h5py.File(path) as file:
        return file[name][()]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("storage", [{}, GZIP, {"chunks": (1, 16, 11)}, {"chunks": (6, 16, 11), "compression": "gzip"}])
def test_types(program, dtype, order, storage):
    data = values((6, 16, 11), dtype)
    source = write(program.folder / "in.h5", data.astype(np.dtype(dtype).newbyteorder(order)), **storage)
    result = data_of(through(program, source))
    assert result.dtype.newbyteorder("=") == (dtype if dtype in STAY else "float32")
    np.testing.assert_array_equal(result, data.astype(result.dtype))


@pytest.mark.parametrize("shape", [(7, 5), (4, 7, 5), (3, 4, 7, 5), (2, 3, 2, 7, 5), (1, 7, 5)])
@pytest.mark.parametrize("chunks", [None, True, "odd"])
def test_shapes(program, shape, chunks):
    data = values(shape)
    if chunks == "odd":
        chunks = tuple(max(1, n * 2 // 3) for n in shape)
    source = write(program.folder / "in.h5", data, chunks=chunks)
    np.testing.assert_array_equal(data_of(through(program, source)), data)
    np.testing.assert_array_equal(np.load(through(program, source, result="out.npy")), data.reshape(-1, 7, 5) if data.ndim > 3 else data)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("storage", [{}, {"chunks": (2, 3, 4), "compression": "gzip"}])
def test_axis(program, axis, storage):
    data = values((5, 6, 7))
    source = write(program.folder / "in.h5", data, **storage)
    result = program.folder / "out.h5"
    program.run(source, "-o", result, "--axis", axis, "-q", "--method", "gaussian", "--sigma", 1, "--sigma-z", 0, "--depth", "f32")
    expected = program.folder / "out.npy"
    program.run(program.save("in", data), "-o", expected, "--axis", axis, "-q", "--method", "gaussian", "--sigma", 1, "--sigma-z", 0,
                "--depth", "f32")
    np.testing.assert_array_equal(data_of(result), np.load(expected))


@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64"])
@pytest.mark.parametrize("storage", [{}, GZIP])
def test_volume_as_npy(program, dtype, storage):
    """Filtered as a solid, in slabs of a small memory too: the bits that an NPY array has."""
    data = values((12, 40, 30), dtype)
    source = write(program.folder / "in.h5", data, **storage)
    words = ("--sigma", 20, "-q", "--method", "nlm3d", "--depth", "f32", "--range", 255)
    program.run("volume", program.save("in", data), "-o", program.folder / "out.npy", *words)
    for memory in ("1G", "8M"):
        program.run("volume", source, "-o", program.folder / "out.h5", *words, "--memory", memory)
        np.testing.assert_array_equal(data_of(program.folder / "out.h5"), np.load(program.folder / "out.npy"))


def make_rich(path, dtype):
    data = values((6, 8, 9), dtype)
    with h5py.File(path, "w", userblock_size=512) as file:
        entry = file.create_group("entry")
        entry.attrs["title"] = "a scan"
        scan = entry.create_dataset("data/scan", data=data, chunks=(2, 4, 9), maxshape=(None, 8, 9), compression="gzip",
                                    compression_opts=7, shuffle=True, fillvalue=3)
        scan.attrs["element_size_um"] = [3.0, 0.5, 0.5]
        scan.attrs["words"] = ["one", "two"]
        scan.attrs["text"] = "kept"
        scan.attrs["empty"] = h5py.Empty("f4")
        scan.attrs["elsewhere"] = entry.ref
        entry["mask"] = np.arange(10)
        entry["same"] = scan
        entry["soft"] = h5py.SoftLink("/entry/data/scan")
        entry["outside"] = h5py.ExternalLink("other.h5", "/x")
        entry["names"] = ["a", "bc"]
        entry["points_to"] = np.array([scan.ref], dtype=h5py.ref_dtype)
    with path.open("r+b") as raw:
        raw.write(b"a block of the user's")
    return data


@pytest.mark.parametrize("dtype", ["uint16", ">u2", "int16", "float64"])
def test_the_rest_is_kept(program, dtype):
    source = program.folder / "in.h5"
    data = make_rich(source, dtype)
    result = through(program, source)
    assert result.read_bytes().startswith(b"a block of the user's")
    with h5py.File(result) as file:
        scan = file["entry/data/scan"]
        np.testing.assert_array_equal(scan[()], data.astype(scan.dtype))
        assert (scan.chunks, scan.maxshape, scan.compression, scan.compression_opts, scan.shuffle, scan.fillvalue) == \
            ((2, 4, 9), (None, 8, 9), "gzip", 7, True, 3)
        assert scan.dtype == (dtype if "u" in dtype else "<f4")
        assert list(scan.attrs["element_size_um"]) == [3, 0.5, 0.5]
        assert list(scan.attrs["words"]) == ["one", "two"]
        assert scan.attrs["text"] == "kept"
        assert isinstance(scan.attrs["empty"], h5py.Empty)
        assert file[scan.attrs["elsewhere"]] == file["entry"]
        assert file["entry"].attrs["title"] == "a scan"
        assert list(file["entry/mask"]) == list(range(10))
        assert file["entry/same"] == scan and file["entry/soft"] == scan
        assert file["entry"].get("outside", getlink=True).filename == "other.h5"
        assert list(file["entry/names"].asstr()) == ["a", "bc"]
        if "u" in dtype:  # a dataset of another type takes the place of the former
            assert file[file["entry/points_to"][0]] == scan


def test_over_the_input(program):
    source = program.folder / "in.h5"
    data = make_rich(source, "int32")
    through(program, source, result="in.h5")
    np.testing.assert_array_equal(data_of(source, "entry/data/scan"), data.astype("float32"))


def test_size_of_the_result(program):
    """Chunks of another size leave no room that matters, whether written in place or anew."""
    for dtype in ("uint16", "int16"):
        data = values((64, 64, 64), dtype)
        source = write(program.folder / "in.h5", data, chunks=(8, 32, 32), compression="gzip")
        program.run(source, "-o", program.folder / "out.h5", "--method", "box", "--radius", 2, "-q")
        best = write(program.folder / "best.h5", data_of(program.folder / "out.h5"), chunks=(8, 32, 32), compression="gzip")
        most = max(source.stat().st_size, best.stat().st_size) * 1.3
        assert (program.folder / "out.h5").stat().st_size < most


@pytest.mark.parametrize("options, compression", [((), None), (("--compression", "deflate"), "gzip"), (("--compression", "none"), None)])
def test_compression(program, options, compression):
    data = values((6, 8, 9))
    for source in (write(program.folder / "in.h5", data), program.save("in", data)):
        result = through(program, source, *options, *(("--axis", 0) if source.suffix == ".npy" else ()))
        with h5py.File(result) as file:
            assert file["data"].compression == compression
            np.testing.assert_array_equal(file["data"][()], data)
    source = write(program.folder / "packed.h5", data, compression="gzip")
    with h5py.File(through(program, source, "--compression", "none")) as file:
        assert file["data"].chunks is None
        np.testing.assert_array_equal(file["data"][()], data)
    assert "none or deflate" in failure_of_output(program, source, "--compression", "lzw")


def failure_of_output(program, source, *options):
    done = subprocess.run([PROGRAM, str(source), "-o", str(program.folder / "failed.h5"), *COPY, *options],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_pages(program):
    data = values((6, 8, 9))
    source = program.folder / "in.h5"
    with h5py.File(source, "w") as file:
        file["a/b"] = data
        file["note"] = "other"
    with h5py.File(through(program, source, "--pages", "2-4")) as file:
        np.testing.assert_array_equal(file["a/b"][()], data[1:4])
        assert "note" not in file
    out = program.run(source, "-o", program.folder / "out.h5", *COPY[:-1], "--pages", "2-4")
    assert "HDF5 attributes and other datasets" in out


def test_series_from_another_format(program):
    nibabel = pytest.importorskip("nibabel")
    data = values((9, 8, 4, 3), "uint8")
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), program.folder / "in.nii")
    np.testing.assert_array_equal(data_of(through(program, program.folder / "in.nii")), data.T)


def test_colour(program):
    data = values((8, 9, 3), "uint8")
    source = program.folder / "in.h5"
    with h5py.File(source, "w") as file:
        picture = file.create_dataset("picture", data=data)
        picture.attrs["CLASS"] = np.bytes_("IMAGE")
        picture.attrs["INTERLACE_MODE"] = np.bytes_("INTERLACE_PIXEL")
    np.testing.assert_array_equal(np.load(through(program, source, result="out.npy")), data)
    np.testing.assert_array_equal(data_of(through(program, source), "picture"), data)
    again = through(program, program.folder / "out.npy")
    np.testing.assert_array_equal(np.load(through(program, again, result="again.npy")), data)


def test_choice_of_the_dataset(program):
    source = program.folder / "in.h5"
    first, second = values((2, 5, 6)), values((7, 8))
    with h5py.File(source, "w") as file:
        file["a/first"] = first
        file["second"] = second
        file["vector"] = np.arange(3)
        file["texts"] = ["a"]
    message = failure(program, source)
    assert message.endswith("holds several arrays: /a/first (2, 5, 6), /second (7, 8); --dataset names one")
    np.testing.assert_array_equal(data_of(through(program, source, "--dataset", "/second"), "second"), second)
    np.testing.assert_array_equal(data_of(through(program, source, "--dataset", "a/first"), "a/first"), first)
    assert "has no dataset /b" in failure(program, source, "--dataset", "b")
    assert "has no dataset /a" in failure(program, source, "--dataset", "/a")
    assert "is no image" in failure(program, source, "--dataset", "vector")
    with h5py.File(source, "r+") as file:
        file.attrs["default"] = "a"
        file["a"].attrs["signal"] = "first"
    np.testing.assert_array_equal(np.load(through(program, source, result="out.npy")), first)


def spacing(program, source):
    page = program.folder / "page.html"
    program.run("compare", source, source, "--html", page)
    return page.read_text()


def test_sizes_of_voxels(program):
    data = values((4, 6, 5))
    source = write(program.folder / "in.h5", data)
    assert "voxels of 1 x 1 x 1" in spacing(program, source)
    with h5py.File(source, "r+") as file:
        file["data"].attrs["element_size_um"] = [3.0, 0.5, 0.25]
    assert "voxels of 0.25 x 0.5 x 3" in spacing(program, source)
    with h5py.File(source, "w") as file:
        entry = file.create_group("entry")
        file.attrs["default"], entry.attrs["signal"], entry.attrs["axes"] = "entry", "data", ["z", "y", "x"]
        entry["data"] = data
        entry["z"], entry["y"], entry["x"] = np.arange(4) * 2.0, np.arange(7) * 0.5 - 1, np.arange(5) * -0.25
    assert "voxels of 0.25 x 0.5 x 2" in spacing(program, source)


def test_other_files_are_not_read(program):
    data = values((4, 6, 5))
    write(program.folder / "other.h5", data)
    source = program.folder / "in.h5"
    with h5py.File(source, "w") as file:
        file["link"] = h5py.ExternalLink("other.h5", "/data")
    assert "/link is a link to another file" in failure(program, source)
    assert "has no dataset /link" in failure(program, source, "--dataset", "/link")
    layout = h5py.VirtualLayout((4, 6, 5), "uint16")
    layout[:] = h5py.VirtualSource("other.h5", "data", (4, 6, 5))
    with h5py.File(source, "w") as file:
        file.create_virtual_dataset("data", layout)
    assert "/data are in another file (other.h5)" in failure(program, source)
    with h5py.File(source, "w") as file:
        file.create_dataset("data", shape=(4, 6, 5), dtype="uint16", external=[("samples.raw", 0, h5py.h5f.UNLIMITED)])
    assert "/data are in another file (samples.raw)" in failure(program, source)


def test_virtual_dataset_of_the_same_file(program):
    data = values((4, 6, 5))
    source = program.folder / "in.h5"
    with h5py.File(source, "w") as file:
        layout = h5py.VirtualLayout((4, 6, 5), "uint16")
        for z in range(4):
            file[f"parts/{z}"] = data[z]
            layout[z] = h5py.VirtualSource(".", f"parts/{z}", (6, 5))
        file.create_virtual_dataset("whole", layout)
    with h5py.File(through(program, source, "--dataset", "whole")) as file:
        np.testing.assert_array_equal(file["whole"][()], data)
        assert not file["whole"].is_virtual


def test_a_filter_that_is_missing(program):
    plugin = pytest.importorskip("hdf5plugin")
    source = write(program.folder / "in.h5", values((4, 6, 5)), **plugin.Blosc())
    message = failure(program, source)
    assert "/data is compressed by filter number 32001 (blosc)" in message and "HDF5_PLUGIN_PATH" in message


def test_a_filter_number_that_is_missing(program):
    """Without the filter's own package: its number is put into a file of gzip."""
    source = write(program.folder / "in.h5", values((4, 6, 5)), compression="gzip")
    content = source.read_bytes()
    at = content.index(b"deflate") - 8
    assert content[at:at + 2] == b"\x01\x00"
    source.write_bytes(content[:at] + (32001).to_bytes(2, "little") + content[at + 2:])
    assert "filter number 32001" in failure(program, source)


@pytest.mark.parametrize("dtype, word", [("complex64", "complex numbers"), ("S4", "texts"), ("bool", "names of an enumeration"),
                                         ([("a", "u1"), ("b", "u1")], "records")])
def test_what_is_no_number(program, dtype, word):
    source = write(program.folder / "in.h5", np.zeros((4, 5), dtype))
    assert word in failure(program, source, "--dataset", "data")
    assert "holds no array of numbers" in failure(program, source)


def test_damaged_files(program):
    source = write(program.folder / "in.h5", values((16, 32, 32)), chunks=(4, 16, 16), compression="gzip")
    content = source.read_bytes()
    for size in (8, 100, 600, 2000, len(content) // 2, len(content) - 1):
        (program.folder / "cut.h5").write_bytes(content[:size])
        assert "truncated or damaged" in failure(program, program.folder / "cut.h5")
    (program.folder / "text.h5").write_text("no such file\n" * 100)
    assert "not an HDF5 file" in failure(program, program.folder / "text.h5")
    with h5py.File(source, "r+") as file:
        offset = file["data"].id.get_chunk_info(5).byte_offset
    source.write_bytes(content[:offset] + bytes(64) + content[offset + 64:])
    assert "/data cannot be read" in failure(program, source)
    with h5py.File(source, "w") as file:
        file.create_dataset("data", shape=(100000, 100000, 1000), dtype="u2", chunks=(1, 100, 100))
    assert "cannot be in a file of" in failure(program, source)
    with h5py.File(source, "w") as file:
        file.create_dataset("data", shape=(10, 10), dtype="u2")
    assert "none were written" in failure(program, source)


def test_what_floats_cannot_hold(program):
    data = values((3, 4, 5), "float64")
    data[1, 2, 3] = 1e300
    assert "row 2 has the value 1e+300" in failure(program, write(program.folder / "in.h5", data))


def test_disk_full(program):
    source = write(program.folder / "in.npy.h5", values((16, 128, 128), "float32"))
    npy = program.save("in", data_of(source))
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    for name in (source, npy):
        done = subprocess.run([PROGRAM, str(name), "-o", str(program.folder / "full.h5"), "--axis", "0", *COPY], capture_output=True,
                              text=True, check=False, preexec_fn=limit, env={**os.environ})
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (done.returncode, done.stderr)
        assert "full.h5: cannot be written: File too large" in done.stderr
        assert not list(program.folder.glob("*full*"))


def test_memory(program):
    """A volume of 192 MiB in chunks of 64 slices, of which a layer has 64 MiB, within 96 MiB."""
    shape = (192, 512, 512)
    source = program.folder / "in.h5"
    with h5py.File(source, "w") as file:
        data = file.create_dataset("data", shape=shape, dtype="f4", chunks=(64, 64, 64), compression="gzip", compression_opts=1)
        for z in range(0, shape[0], 64):
            block = np.arange(64 * 512 * 512, dtype="f4").reshape(64, 512, 512) % (977 + z)
            data[z:z + 64] = block
    result = program.folder / "out.h5"
    out = subprocess.run(["/usr/bin/env", "python3", "-c", "import resource, subprocess, sys\n"
                          "code = subprocess.run(sys.argv[1:]).returncode\n"
                          "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                          PROGRAM, "volume", str(source), "-o", str(result), "--method", "box", "--radius", "0", "-q", "--memory", "96M"],
                         capture_output=True, text=True, check=True).stdout.split()
    assert out[0] == "0"
    assert int(out[1]) < (96 + 64) * 1024  # KiB; the program itself takes some
    with h5py.File(source) as before, h5py.File(result) as after:
        assert after["data"].chunks == (64, 64, 64)
        for z in range(0, shape[0], 64):
            np.testing.assert_array_equal(before["data"][z:z + 64], after["data"][z:z + 64])
