"""NIfTI files against nibabel: what it writes is read, and what the program writes it reads, with the same header."""
import gzip

import numpy as np
import pytest

nibabel = pytest.importorskip("nibabel")

COPY = ("--method", "box", "--radius", "0", "-q")  # changes no pixel
SHAPES = [(7, 5), (7, 5, 4), (7, 5, 4, 3), (3, 2, 2, 1, 2)]
TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
STAY = ("uint8", "uint16", "float32")
AFFINE = np.array([[-1.5, 0.1, 0, 12], [0, 2.25, 0.3, -7], [0, -0.4, 3, 40], [0, 0, 0, 1]])


def values(shape, dtype):
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        return rng.normal(100, 30, shape).astype(dtype)
    least = 0 if np.dtype(dtype).kind == "u" else -100
    return rng.integers(least, 101, shape).astype(dtype)


def image(kind, data, order="<"):
    header = kind.header_class(endianness=order)
    header.set_data_dtype(data.dtype.newbyteorder(order))
    made = kind(data, AFFINE, header)
    made.header.set_xyzt_units("mm", "sec")
    made.header["descrip"] = b"made for a test"
    made.header["aux_file"] = b"none"
    made.header["cal_max"] = 90
    made.header["slice_duration"] = 0.125
    made.header["toffset"] = 1.5
    made.header.set_intent("t test", (10,), name="t")
    made.set_qform(np.diag([1.5, 2.25, 3, 1]), code=1)
    made.set_sform(AFFINE, code=4)
    if data.ndim > 3:
        made.header["pixdim"][4] = 2.5
    made.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"kept"))
    return made


def through(program, source, name, *options):
    result = program.folder / name
    program.run(source, "-o", result, *COPY, *options)
    return nibabel.load(result)


def same_header(before, after):
    follows_the_samples = {"datatype", "bitpix", "scl_slope", "scl_inter", "vox_offset", "cal_max", "cal_min",
                           "glmax", "glmin"}
    for field in before.header.keys():
        if field not in follows_the_samples:
            np.testing.assert_array_equal(after.header[field], before.header[field], field)
    np.testing.assert_array_equal(after.affine, before.affine)
    assert after.header.get_zooms() == before.header.get_zooms()
    assert after.header.get_xyzt_units() == before.header.get_xyzt_units()
    assert [(e.get_code(), e.get_content()) for e in after.header.extensions] == \
        [(e.get_code(), e.get_content()) for e in before.header.extensions]
    assert after.header["cal_max"] == 0
    assert after.header.endianness == "<"


@pytest.mark.parametrize("ending", ["nii", "nii.gz"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
@pytest.mark.parametrize("shape", SHAPES)
def test_header_and_data_are_kept(program, shape, kind, order, ending):
    data = values(shape, np.int16)
    source = program.folder / f"in.{ending}"
    nibabel.save(image(kind, data, order), source)
    before = nibabel.load(source)
    after = through(program, source, f"out.{ending}")
    assert isinstance(after, kind) and after.shape == shape
    assert after.get_data_dtype() == np.float32
    np.testing.assert_array_equal(np.asarray(after.dataobj), data)
    same_header(before, after)


@pytest.mark.parametrize("dtype", TYPES)
def test_types(program, dtype):
    data = values((6, 4, 3), dtype)
    source = program.folder / "in.nii.gz"
    nibabel.save(image(nibabel.Nifti1Image, data), source)
    after = through(program, source, "out.nii")
    assert after.get_data_dtype() == (dtype if dtype in STAY else np.float32)
    np.testing.assert_array_equal(np.asarray(after.dataobj), data.astype(after.get_data_dtype()))


@pytest.mark.parametrize("slope,intercept", [(0.5, -3), (1, 7), (0, 5), (np.nan, 0), (np.nan, np.nan), (np.inf, 0)])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_scaling(program, dtype, slope, intercept):
    made = image(nibabel.Nifti1Image, values((6, 4, 3), dtype))
    source = program.folder / "in.nii"
    nibabel.save(made, source)
    content = bytearray(source.read_bytes())
    content[112:120] = np.array([slope, intercept], "<f4").tobytes()
    source.write_bytes(content)
    expected = nibabel.load(source).get_fdata()
    np.testing.assert_array_equal(through(program, source, "out.nii").get_fdata(), expected.astype(np.float32))


@pytest.mark.parametrize("channels", [3, 4])
def test_colours(program, channels):
    colours = np.dtype([(name, "u1") for name in "RGBA"[:channels]])
    data = values((5, 4, 2, channels), "uint8").view(colours)[..., 0]
    source = program.folder / "in.nii"
    nibabel.save(nibabel.Nifti1Image(data, AFFINE), source)
    after = through(program, source, "out.nii.gz")
    assert after.shape == (5, 4, 2)
    np.testing.assert_array_equal(np.asarray(after.dataobj), data)


def test_pages_are_slices_and_rows_go_along_y(program):
    data = values((7, 5, 4, 3), np.uint16)
    source = program.folder / "in.nii.gz"
    nibabel.save(image(nibabel.Nifti1Image, data), source)
    program.run(source, "-o", program.folder / "out.npy", *COPY)
    stack = np.load(program.folder / "out.npy")  # (pages, rows, columns)
    np.testing.assert_array_equal(stack, data.reshape((7, 5, 12), order="F").transpose(2, 1, 0))


def test_stack_of_another_format(program):
    stack = values((4, 5, 7), np.uint8)
    after = through(program, program.save("in", stack), "out.nii.gz", "--axis", 0)
    assert after.shape == (7, 5, 4)
    np.testing.assert_array_equal(np.asarray(after.dataobj), stack.transpose(2, 1, 0))
    assert after.header["sform_code"] == after.header["qform_code"] == 0


def test_selected_slices_keep_distances(program):
    data = values((7, 5, 4, 3), np.float32)
    source = program.folder / "in.nii"
    nibabel.save(image(nibabel.Nifti1Image, data), source)
    after = through(program, source, "out.nii", "--pages", "2,5-6")
    assert after.shape == (7, 5, 3)
    assert after.header.get_zooms() == nibabel.load(source).header.get_zooms()[:3]
    assert after.header.get_xyzt_units()[0] == "mm"
    np.testing.assert_array_equal(np.asarray(after.dataobj),
                                  data.reshape((7, 5, 12), order="F")[..., [1, 4, 5]])


def test_long_axes_make_the_second_version(program):
    row = values((2, 40000), np.uint8)
    after = through(program, program.save("in", row), "out.nii")
    assert isinstance(after, nibabel.Nifti2Image) and after.shape == (40000, 2, 1)
    np.testing.assert_array_equal(np.asarray(after.dataobj)[..., 0], row.T)


def test_gzip_files_are_reproducible_and_complete(program):
    data = values((64, 64, 20), np.float32)
    source = program.folder / "in.nii"
    nibabel.save(image(nibabel.Nifti1Image, data), source)
    through(program, source, "one.nii.gz")
    through(program, source, "two.nii.gz")
    one, two = ((program.folder / f"{name}.nii.gz").read_bytes() for name in ("one", "two"))
    assert one == two
    through(program, source, "plain.nii")
    assert gzip.decompress(one) == (program.folder / "plain.nii").read_bytes()
