"""Stacks of microscopes against tifffile: volumes of OME-TIFF files and ImageJ's hyperstacks, in every order of pages."""
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

tifffile = pytest.importorskip("tifffile")

Z, C, T, Y, X = 5, 2, 2, 20, 24
ORDERS = ["TCZ", "CTZ", "TZC", "ZTC", "CZT", "ZCT"]  # of the array: the last axis of a page changes fastest
METHODS = [("bm4d", "--profile", "fast"), ("nlm3d", "--search", "5"), ("median",), ("bilateral",)]


def volumes(dtype="uint16"):
    """By (t, c): noise and content differ."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:Y, :X]
    made = {}
    for t in range(T):
        for c in range(C):
            level = 8000 + 3000 * c + 1500 * t
            clean = level + 4000 * ((x // 6 + y // (4 + c) + t) % 2)
            made[t, c] = np.clip(clean + rng.normal(0, 400 + 900 * c + 300 * t, (Z, Y, X)), 0, 65535).astype(dtype)
    return made


def stacked(by_volume, axes):
    """An array with such axes, Y and X behind them."""
    array = np.stack([np.stack([by_volume[t, c] for c in range(C)]) for t in range(T)])  # TCZYX
    return np.ascontiguousarray(array.transpose(["TCZ".index(axis) for axis in axes] + [3, 4]))


def unstacked(array, axes):
    array = array.transpose([axes.index(axis) for axis in "TCZ"] + [3, 4])
    return {(t, c): array[t, c] for t in range(T) for c in range(C)}


def write_ome(path, array, axes, **more):
    tifffile.imwrite(path, array, ome=True, metadata={
        "axes": axes, "PhysicalSizeX": 0.2, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.2, "PhysicalSizeYUnit": "µm",
        "PhysicalSizeZ": 800, "PhysicalSizeZUnit": "nm", "Channel": {"Name": ["DAPI", "GFP"]}}, **more)


def read(path):
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        return series.asarray(), series.axes, file.ome_metadata, file.imagej_metadata


def report(program, *arguments):
    return json.loads(program.run(*arguments, "--json"))


def each_by_itself(program, made, *options):
    """Each volume from a file of its own."""
    results = {}
    for key, volume in made.items():
        source = program.save("one", volume)
        program.run("volume", source, "-o", program.folder / "one-out.npy", "--spacing", "0.2,0.2,0.8", "-q", *options)
        results[key] = np.load(program.folder / "one-out.npy")
    return results


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method[0])
def test_every_order_of_pages(program, method):
    made = volumes()
    alone = each_by_itself(program, made, "-m", *method)
    assert any((alone[key] != made[key]).any() for key in made)
    for order in ORDERS:
        source, result = program.folder / "in.ome.tif", program.folder / "out.ome.tif"
        write_ome(source, stacked(made, order), order + "YX")
        done = report(program, "volume", source, "-o", result, "-m", *method)
        pages = C * T if method[0] in ("bm4d", "nlm3d") else C * T * Z
        assert (done["pages"], done.get("note")) == (pages, None)
        before, after = read(source), read(result)
        assert after[1] == before[1] == order + "YX"
        assert after[2] == before[2]  # the OME-XML
        for key, volume in unstacked(after[0], order).items():
            np.testing.assert_array_equal(volume, alone[key], f"{order} {key}")


@pytest.mark.parametrize("options", [{"bigtiff": True}, {"compression": "zlib"}, {"tile": (16, 16)}, {"byteorder": ">"}],
                         ids=lambda options: next(iter(options)))
def test_ways_to_store_pages(program, options):
    made = volumes()
    alone = each_by_itself(program, made, "-m", "nlm3d", "--search", "5")
    source, result = program.folder / "in.ome.tif", program.folder / "out.ome.tif"
    write_ome(source, stacked(made, "TZC"), "TZCYX", **options)
    program.run("volume", source, "-o", result, "-m", "nlm3d", "--search", "5", "-q")
    array, axes, xml, _ = read(result)
    assert (axes, xml) == ("TZCYX", read(source)[2])
    for key, volume in unstacked(array, "TZC").items():
        np.testing.assert_array_equal(volume, alone[key])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method[0])
def test_hyperstack(program, method):
    made = volumes()
    alone = each_by_itself(program, made, "-m", *method)
    source, result = program.folder / "in.tif", program.folder / "out.tif"
    tifffile.imwrite(source, stacked(made, "TZC"), imagej=True, resolution=(5, 5),
                     metadata={"axes": "TZCYX", "spacing": 0.8, "unit": "um", "mode": "composite"})
    program.run(source, "--volume", "-o", result, "-m", *method, "-q")
    before, after = read(source), read(result)
    assert after[1] == before[1] == "TZCYX"
    assert after[3] == before[3]
    for key, volume in unstacked(after[0], "TZC").items():
        np.testing.assert_array_equal(volume, alone[key], str(key))
    with tifffile.TiffFile(result) as file:
        assert file.pages[0].tags["XResolution"].value == (5, 1)


def test_sizes_of_voxels(program):
    made = volumes()
    write_ome(program.folder / "in.ome.tif", stacked(made, "TCZ"), "TCZYX")
    params = lambda *options: report(program, "volume", program.folder / "in.ome.tif", "-m", "nlm3d", "-o",
                                     program.folder / "out.tif", "--search", "3", *options)["params"]
    assert params()["aspect"] == "4"
    assert params("--spacing", "1,1,2")["aspect"] == "2"


def test_the_type_is_made_true(program):
    source, result = program.folder / "in.ome.tif", program.folder / "out.ome.tif"
    signed = {key: volume.astype("int16") for key, volume in volumes().items()}
    for data, depth, dtype, name in ((volumes(), "f32", "float32", "float"), (volumes(), "u8", "uint8", "uint8"),
                                     (signed, "", "float32", "float")):
        write_ome(source, stacked(data, "TZC"), "TZCYX")
        options = ("--depth", depth) if depth else ()
        program.run("volume", source, "-o", result, "-m", "box", "--radius", "1", "-q", *options)
        array, axes, xml, _ = read(result)
        assert (array.dtype, axes) == (dtype, "TZCYX")
        before, after = (ElementTree.fromstring(text) for text in (read(source)[2], xml))
        pixels = next(element for element in after.iter() if element.tag.endswith("Pixels"))
        assert pixels.get("Type") == name
        pixels.set("Type", next(element for element in before.iter() if element.tag.endswith("Pixels")).get("Type"))
        assert ElementTree.tostring(after) == ElementTree.tostring(before)


def test_rgb_pages(program):
    rng = np.random.default_rng(3)
    made = rng.normal(120, 20, (2, Z, Y, X, 3)).clip(0, 255).astype("uint8")
    source, result = program.folder / "in.ome.tif", program.folder / "out.ome.tif"
    tifffile.imwrite(source, made, ome=True, photometric="rgb", metadata={"axes": "TZYXS"})
    done = report(program, "volume", source, "-o", result, "-m", "nlm3d", "--search", "3")
    assert (done["pages"], done["depth"], done["channels"]) == (2, Z, 3)
    array, axes, xml, _ = read(result)
    assert (axes, xml) == ("TZYXS", read(source)[2])
    for t in range(2):
        one, out = program.save("one", made[t]), program.folder / "one-out.npy"
        program.run("volume", one, "-o", out, "-m", "nlm3d", "--search", "3", "-q")
        np.testing.assert_array_equal(array[t], np.load(out))


def test_other_formats_and_comparisons(program):
    """NPY arrays have the file's pages, NIfTI files volume after volume; both can be compared with the stack."""
    made = volumes()
    source = program.folder / "in.ome.tif"
    write_ome(source, stacked(made, "TZC"), "TZCYX")
    for name in ("copy.npy", "copy.nii", "copy.ome.tif"):
        program.run("volume", source, "-o", program.folder / name, "-m", "box", "--radius", "0", "--radius-z", "0", "-q")
        out = program.run("compare", source, program.folder / name, "--volume", "--json")
        found = [json.loads(line) for line in out.splitlines()]
        assert [each["max_abs"] for each in found] == [0] * (C * T), name
    np.testing.assert_array_equal(np.load(program.folder / "copy.npy"), stacked(made, "TZC").reshape(-1, Y, X))
    data = (program.folder / "copy.nii").read_bytes()
    assert np.frombuffer(data[40:50], "<i2").tolist() == [4, X, Y, Z, C * T]
    voxel = np.frombuffer(data[80:92], "<f4")
    assert voxel[2] / voxel[0] == pytest.approx(4)
    offset = int(np.frombuffer(data[108:112], "<f4")[0])
    np.testing.assert_array_equal(np.frombuffer(data[offset:], "<u2").reshape(T, C, Z, Y, X), stacked(made, "TCZ"))


def test_some_pages(program):
    source, result = program.folder / "in.ome.tif", program.folder / "out.tif"
    write_ome(source, stacked(volumes(), "TZC"), "TZCYX")
    done = report(program, "volume", source, "-o", result, "--pages", "1-6", "-m", "nlm3d", "--search", "3")
    assert (done["pages"], done["depth"]) == (1, 6)
    assert "--pages" in done["note"] and "OME-XML" in done["metadata_not_kept"]
    with tifffile.TiffFile(result) as file:
        assert len(file.pages) == 6 and file.ome_metadata is None


def test_a_stack_stays_images_unless_asked(program):
    source, result = program.folder / "in.ome.tif", program.folder / "out.ome.tif"
    write_ome(source, stacked(volumes(), "TZC"), "TZCYX")
    done = report(program, source, "-o", result, "-m", "median")
    assert done["pages"] == Z * C * T and "depth" not in done and "note" not in done
    array, axes, xml, _ = read(result)
    assert (axes, xml) == ("TZCYX", read(source)[2])
    assert len(program.run("compare", source, result, "--json").splitlines()) == Z * C * T
