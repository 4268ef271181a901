"""DICOM series that pydicom writes, read by the program; what it writes is read by nibabel: values, and where each voxel is."""
import numpy as np
import pytest

nibabel = pytest.importorskip("nibabel")
pydicom = pytest.importorskip("pydicom")
from pydicom.dataset import Dataset, FileMetaDataset  # noqa: E402
from pydicom.sequence import Sequence  # noqa: E402
from pydicom.uid import (CTImageStorage, DeflatedExplicitVRLittleEndian, EnhancedMRImageStorage,  # noqa: E402
                         ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian, JPEG2000Lossless,
                         RLELossless, generate_uid)

COPY = ("-m", "box", "--radius", "0", "-q")  # changes no voxel
SYNTAXES = [ExplicitVRLittleEndian, ImplicitVRLittleEndian, ExplicitVRBigEndian, DeflatedExplicitVRLittleEndian,
            RLELossless]
LEFT_TO_RIGHT = np.diag([-1, -1, 1])  # DICOM counts to the left and back, NIfTI to the right and front
WIDTH, HEIGHT, DEPTH = 7, 5, 6


def turned(angles):
    """Directions of rows, columns and slices: a rotation about x, y and z."""
    x, y, z = np.radians(angles)
    about_x = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
    about_y = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    about_z = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
    return about_x @ about_y @ about_z


def decimal(number):
    return f"{number:.10g}"[:16]


def empty(syntax, kind=CTImageStorage):
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = syntax
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = kind
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = generate_uid()
    made.PatientName = "Secret^Name"
    made.PatientID = "very-secret"
    made.SeriesInstanceUID = "1.2.3.4"
    made.SeriesNumber = 3
    made.SeriesDescription = "T1 axial"
    return made


def set_pixels(made, pixels, bits=None, high=None):
    made.Rows, made.Columns = pixels.shape[-2:] if made.get("SamplesPerPixel", 1) == 1 else pixels.shape[:2]
    made.SamplesPerPixel = made.get("SamplesPerPixel", 1)
    made.PhotometricInterpretation = made.get("PhotometricInterpretation", "MONOCHROME2")
    made.BitsAllocated = 8 * pixels.itemsize
    made.BitsStored = bits or made.BitsAllocated
    made.HighBit = made.BitsStored - 1 if high is None else high
    made.PixelRepresentation = int(pixels.dtype.kind == "i")
    if made.file_meta.TransferSyntaxUID == RLELossless:
        made.compress(RLELossless, pixels, generate_instance_uid=False)
        return
    order = ">" if made.file_meta.TransferSyntaxUID == ExplicitVRBigEndian else "<"
    content = pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
    made.PixelData = content + b"\0" * (len(content) % 2)
    made["PixelData"].VR = "OB" if pixels.itemsize == 1 else "OW"


def save(made, path):
    made.save_as(path, enforce_file_format=True)
    return path


def series(folder, volume, syntax=ExplicitVRLittleEndian, rotation=np.eye(3), first=(-30.5, 12.25, 40),
           spacing=(0.8, 0.6, 2.5), name="im", slopes=None, shear=0, **attributes):
    """`volume` (z, y, x) as files with shuffled names; returns the affine in DICOM's coordinates."""
    folder.mkdir(exist_ok=True)
    row, column, normal = rotation[:, 0], rotation[:, 1], rotation[:, 2]
    step = normal * spacing[2] + shear * column
    order = np.random.default_rng(1).permutation(len(volume))
    for z, pixels in enumerate(volume):
        made = empty(syntax)
        made.ImagePositionPatient = [decimal(v) for v in np.array(first) + z * step]
        made.ImageOrientationPatient = [decimal(v) for v in (*row, *column)]
        made.PixelSpacing = [decimal(spacing[1]), decimal(spacing[0])]  # of rows, of columns
        made.InstanceNumber = int(order[z])
        if slopes is not None:
            made.RescaleSlope, made.RescaleIntercept = (decimal(v) for v in slopes[z])
        for attribute, value in attributes.items():
            setattr(made, attribute, value)
        set_pixels(made, pixels)
        save(made, folder / f"{name}{order[z]:03}")
    affine = np.eye(4)
    affine[:3, 0], affine[:3, 1], affine[:3, 2], affine[:3, 3] = row * spacing[0], column * spacing[1], step, first
    return affine


def values(shape, dtype, seed=0):
    low, high = (-1000, 3000) if np.dtype(dtype).kind == "i" else (0, min(4096, np.iinfo(dtype).max + 1))
    return np.random.default_rng(seed).integers(max(low, np.iinfo(dtype).min), min(high, np.iinfo(dtype).max), shape).astype(dtype)


def through(program, source, *options, name="out.nii.gz"):
    result = program.folder / name
    program.run("volume", source, "-o", result, *COPY, *options)
    return nibabel.load(result)


def check_affine(after, affine, sheared=False):
    expected = np.eye(4)
    expected[:3] = LEFT_TO_RIGHT @ affine[:3]
    np.testing.assert_allclose(after.affine, expected, atol=1e-4)
    assert after.header["sform_code"] == 1
    assert after.header["qform_code"] == (0 if sheared else 1)
    if not sheared:
        np.testing.assert_allclose(after.get_qform(), expected, atol=1e-4)
    np.testing.assert_allclose(after.header.get_zooms()[:3], np.linalg.norm(affine[:3, :3], axis=0), rtol=1e-5)
    assert after.header.get_xyzt_units()[0] == "mm"


def same_voxels(after, volume):
    np.testing.assert_array_equal(np.asarray(after.dataobj), volume.T)


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32"])
def test_syntaxes_and_types(program, syntax, dtype):
    if syntax == RLELossless and np.dtype(dtype).itemsize == 4:
        pytest.skip("pydicom compresses 8 and 16 bits")
    volume = values((DEPTH, HEIGHT, WIDTH), dtype)
    affine = series(program.folder / "s", volume, syntax)
    after = through(program, program.folder / "s")
    assert after.get_data_dtype() == (dtype if dtype in ("uint8", "uint16") else np.float32)
    same_voxels(after, volume.astype(after.get_data_dtype()))
    check_affine(after, affine)


@pytest.mark.parametrize("angles", [(0, 0, 0), (90, 0, 0), (0, 90, 0), (-90, 0, 90), (10, -20, 35), (170, 5, -100),
                                    (0, 0, 180), (0, 180, 0), (180, 0, 0), (120, 77, -44)])
def test_orientations(program, angles):
    volume = values((DEPTH, HEIGHT, WIDTH), "int16")
    affine = series(program.folder / "s", volume, rotation=turned(angles))
    check_affine(through(program, program.folder / "s"), affine)


def test_each_voxel_is_where_its_file_says(program):
    volume = values((DEPTH, HEIGHT, WIDTH), "int16")
    series(program.folder / "s", volume, rotation=turned((20, -10, 30)))
    after = through(program, program.folder / "s")
    for file in (program.folder / "s").iterdir():
        made = pydicom.dcmread(file)
        row, column = np.reshape(np.array(made.ImageOrientationPatient, float), (2, 3))
        for y, x in ((0, 0), (3, 6), (4, 1)):
            place = np.array(made.ImagePositionPatient, float) + row * x * made.PixelSpacing[1] + column * y * made.PixelSpacing[0]
            index = np.linalg.solve(after.affine, [*(LEFT_TO_RIGHT @ place), 1])[:3]
            np.testing.assert_allclose(index, np.round(index), atol=1e-3)
            i, j, k = np.round(index).astype(int)
            assert (i, j) == (x, y)
            assert after.dataobj[i, j, k] == made.pixel_array[y, x]


def test_slices_that_are_sheared(program):
    volume = values((DEPTH, HEIGHT, WIDTH), "uint16")
    affine = series(program.folder / "s", volume, rotation=turned((15, 0, 0)), shear=0.7)
    check_affine(through(program, program.folder / "s"), affine, sheared=True)


def test_hounsfield_units(program):
    volume = values((DEPTH, HEIGHT, WIDTH), "int16")
    series(program.folder / "s", volume, slopes=[(1, -1024)] * DEPTH)
    after = through(program, program.folder / "s")
    same_voxels(after, volume.astype(np.float32) - 1024)


def test_slope_of_each_slice(program):
    volume = values((DEPTH, HEIGHT, WIDTH), "uint16")
    slopes = [(0.5 + z, 3 * z) for z in range(DEPTH)]
    series(program.folder / "s", volume, slopes=slopes)
    expected = np.stack([pixels * float(s) + i for pixels, (s, i) in zip(volume, slopes)]).astype(np.float32)
    same_voxels(through(program, program.folder / "s"), expected)


@pytest.mark.parametrize("dtype,bits,high", [("uint16", 12, 11), ("int16", 12, 11), ("uint16", 12, 15), ("int16", 10, 13)])
def test_bits(program, dtype, bits, high):
    """Those above and below the bits that count may be anything."""
    signed = np.dtype(dtype).kind == "i"
    expected = np.random.default_rng(2).integers(-(1 << bits - 1) if signed else 0, (1 << bits - 1) if signed else 1 << bits, (HEIGHT, WIDTH))
    others = np.random.default_rng(3).integers(0, 1 << 16, expected.shape)
    shift = high + 1 - bits
    mask = ((1 << bits) - 1) << shift
    stored = ((expected << shift) & mask | others & ~mask).astype("uint16")
    made = empty(ExplicitVRLittleEndian)
    set_pixels(made, stored, bits, high)
    made.PixelRepresentation = int(signed)
    source = save(made, program.folder / "one.dcm")
    after = through(program, source)
    np.testing.assert_array_equal(np.asarray(after.dataobj)[..., 0].T, expected)


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("planar", [0, 1])
def test_colours(program, syntax, planar):
    if syntax == RLELossless and planar == 0:
        pytest.skip("planes in any case")
    pixels = values((HEIGHT, WIDTH, 3), "uint8")
    made = empty(syntax)
    made.SamplesPerPixel, made.PhotometricInterpretation, made.PlanarConfiguration = 3, "RGB", planar
    stored = pixels if planar == 0 or syntax == RLELossless else pixels.transpose(2, 0, 1)
    made.Rows, made.Columns = HEIGHT, WIDTH
    set_pixels(made, stored if syntax == RLELossless else stored.reshape(HEIGHT, WIDTH, 3))
    program.run(save(made, program.folder / "one.dcm"), "-o", program.folder / "out.npy", "-m", "box", "--radius", "0", "-q")
    np.testing.assert_array_equal(np.load(program.folder / "out.npy"), pixels)


def test_eight_bits_as_big_endian_words(program):
    pixels = values((HEIGHT, WIDTH), "uint8")
    made = empty(ExplicitVRBigEndian)
    set_pixels(made, pixels)
    padded = np.frombuffer(made.PixelData, "u1").reshape(-1, 2)[:, ::-1]
    made.PixelData = padded.tobytes()
    made["PixelData"].VR = "OW"
    after = through(program, save(made, program.folder / "one.dcm"))
    np.testing.assert_array_equal(np.asarray(after.dataobj)[..., 0].T, pixels)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_frames_of_one_file(program, syntax):
    """In the order of their positions, not of the frames."""
    volume = values((DEPTH, HEIGHT, WIDTH), "uint16")
    order = np.random.default_rng(4).permutation(DEPTH)
    made = empty(syntax, EnhancedMRImageStorage)
    made.NumberOfFrames = DEPTH
    rotation = turned((80, 10, -5))
    shared, orientation, measures = Dataset(), Dataset(), Dataset()
    orientation.ImageOrientationPatient = [decimal(v) for v in (*rotation[:, 0], *rotation[:, 1])]
    measures.PixelSpacing, measures.SliceThickness = [0.75, 0.5], 9
    shared.PlaneOrientationSequence, shared.PixelMeasuresSequence = Sequence([orientation]), Sequence([measures])
    made.SharedFunctionalGroupsSequence = Sequence([shared])
    groups = []
    for z in order:
        group, position, transformation = Dataset(), Dataset(), Dataset()
        position.ImagePositionPatient = [decimal(v) for v in np.array([1, 2, 3]) + z * 4 * rotation[:, 2]]
        transformation.RescaleSlope, transformation.RescaleIntercept, transformation.RescaleType = 2, int(z), "US"
        group.PlanePositionSequence = Sequence([position])
        group.PixelValueTransformationSequence = Sequence([transformation])
        groups.append(group)
    made.PerFrameFunctionalGroupsSequence = Sequence(groups)
    set_pixels(made, volume[order])
    after = through(program, save(made, program.folder / "one.dcm"))
    same_voxels(after, (volume * 2.0 + np.arange(DEPTH)[:, None, None]).astype(np.float32))
    affine = np.eye(4)
    affine[:3] = np.column_stack([rotation * [0.5, 0.75, 4], [1, 2, 3]])
    check_affine(after, affine)


def test_frames_without_positions(program):
    volume = values((DEPTH, HEIGHT, WIDTH), "uint8")
    made = empty(ExplicitVRLittleEndian)
    made.NumberOfFrames, made.PixelSpacing, made.SpacingBetweenSlices = DEPTH, [0.5, 0.25], 3
    set_pixels(made, volume)
    after = through(program, save(made, program.folder / "one.dcm"))
    same_voxels(after, volume)
    assert after.header.get_zooms() == (0.25, 0.5, 3)
    assert after.header["sform_code"] == after.header["qform_code"] == 0


def test_series_in_time(program):
    volumes = values((3, DEPTH, HEIGHT, WIDTH), "uint16")
    for time, volume in enumerate(volumes):
        affine = series(program.folder / "s", volume, name=f"t{(time * 2) % 3}-", TemporalPositionIdentifier=time + 1,
                        RepetitionTime="2500")
    after = through(program, program.folder / "s")
    assert after.shape == (WIDTH, HEIGHT, DEPTH, 3)
    same_voxels(after, volumes)
    check_affine(after, affine)
    assert after.header.get_zooms()[3] == 2.5 and after.header.get_xyzt_units() == ("mm", "sec")


def test_echoes_are_volumes(program):
    volumes = values((2, DEPTH, HEIGHT, WIDTH), "uint16")
    for echo, volume in enumerate(volumes):
        series(program.folder / "s", volume, name=f"e{1 - echo}-", EchoNumbers=echo + 1)
    after = through(program, program.folder / "s")
    same_voxels(after, volumes)


def test_nothing_of_the_patient(program):
    series(program.folder / "s", values((DEPTH, HEIGHT, WIDTH), "uint16"))
    through(program, program.folder / "s", name="out.nii")
    content = (program.folder / "out.nii").read_bytes()
    assert b"ecret" not in content and b"T1 axial" not in content


def test_compressed_pixels_are_named(program):
    made = empty(JPEG2000Lossless)
    set_pixels(made, values((HEIGHT, WIDTH), "uint16"))
    made.PixelData = pydicom.encaps.encapsulate([b"\xff\x4f\xff\x51"])
    made["PixelData"].VR = "OB"
    source = save(made, program.folder / "one.dcm")
    with pytest.raises(AssertionError, match="lossless JPEG 2000.*gdcmconv --raw"):
        program.run("volume", source, "-o", program.folder / "out.nii")


def test_private_and_nested_sequences(program):
    volume = values((1, HEIGHT, WIDTH), "uint16")
    for syntax in SYNTAXES[:4]:
        made = empty(syntax)
        inner, outer = Dataset(), Dataset()
        inner.Rows, inner.Columns, inner.PixelData = 99, 98, b"xyz\0"
        inner["PixelData"].VR = "OW"
        outer.IconImageSequence = Sequence([inner, inner])
        made.ReferencedImageSequence = Sequence([outer])
        made.ReferencedImageSequence.is_undefined_length = True
        made["ReferencedImageSequence"].is_undefined_length = True
        outer.is_undefined_length_sequence_item = True
        block = made.private_block(0x0011, "Test", create=True)
        block.add_new(1, "UN", b"\1\2\3\4")
        set_pixels(made, volume[0])
        after = through(program, save(made, program.folder / "one.dcm"))
        same_voxels(after, volume)
