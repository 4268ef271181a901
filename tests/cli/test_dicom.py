"""ungrain volume on DICOM: a folder of slices or a file, and what becomes of the names."""
from __future__ import annotations

import json
import os
import random
import struct
from pathlib import Path

import pytest

from support import Result, Workspace, run
from test_nifti import samples_of

WIDTH, HEIGHT, DEPTH = 20, 18, 12


def element(group: int, number: int, kind: bytes, value: bytes) -> bytes:
    value += b"\0" * (len(value) % 2)
    head = struct.pack("<HH2s", group, number, kind)
    return head + (struct.pack("<2xI", len(value)) if kind in (b"OB", b"OW") else struct.pack("<H", len(value))) + value


def dicom(z: int, samples: list[int], series: int = 1, text: str = "T1", syntax: str = "1.2.840.10008.1.2.1",
          units: bool = True) -> bytes:
    """Hounsfield units, or 16 bits without a sign."""
    word = lambda number, value: element(0x28, number, b"US", struct.pack("<H", value))
    return b"".join([
        bytes(128), b"DICM", element(2, 0x10, b"UI", syntax.encode()),
        element(8, 0x18, b"UI", f"1.2.{series}.{z}".encode()), element(8, 0x103e, b"LO", text.encode()),
        element(0x10, 0x10, b"PN", b"Secret^Name"),
        element(0x20, 0x0e, b"UI", f"1.2.{series}".encode()), element(0x20, 0x11, b"IS", str(series).encode()),
        element(0x20, 0x32, b"DS", f"-10\\20\\{2.5 * z}".encode()), element(0x20, 0x37, b"DS", b"1\\0\\0\\0\\1\\0"),
        word(2, 1), element(0x28, 4, b"CS", b"MONOCHROME2"), word(0x10, HEIGHT), word(0x11, WIDTH),
        element(0x28, 0x30, b"DS", b"0.5\\0.5"), word(0x100, 16), word(0x101, 16), word(0x102, 15), word(0x103, int(units)),
        element(0x28, 0x1052, b"DS", b"-1024" if units else b"0"), element(0x28, 0x1053, b"DS", b"1"),
        element(0x7fe0, 0x10, b"OW", struct.pack(f"<{len(samples)}h", *samples))])


class TestDicom(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        draw = random.Random(1)
        self.slices = [[round(1000 + 20 * x + draw.gauss(0, 40)) for y in range(HEIGHT) for x in range(WIDTH)]
                       for z in range(DEPTH)]
        self.make("ct")

    def make(self, folder: str, **options) -> None:
        self.path(folder).mkdir(exist_ok=True)
        for z, samples in enumerate(self.slices):
            name = f"IM{options.get('series', 1)}{(5 * z) % DEPTH:04}"
            (self.path(folder) / name).write_bytes(dicom(z, samples, **options))

    def copy(self, *arguments: str | Path) -> dict:
        """A run that changes no voxel."""
        return json.loads(self.done("volume", *arguments, "-m", "box", "--radius", "0", "--json").out)

    def failed(self, *arguments: str | Path) -> Result:
        """A run that must fail with one line."""
        result = self.run_here(*arguments)
        assert result.code != 0, result
        assert len(result.err_lines) == 1, result
        return result

    def floats(self, name: str) -> list[float]:
        data = samples_of(self.path(name))
        return list(struct.unpack(f"<{len(data) // 4}f", data))

    def expected(self) -> list[float]:
        return [sample - 1024 for samples in self.slices for sample in samples]

    def test_a_folder_is_one_volume(self) -> None:
        report = self.copy("ct", "-o", "out.nii")
        assert (report["format"], report["input"], report["type"]) == ("DICOM", "ct", "f32")
        assert report["note"] == "i16 samples converted to f32, slope 1 and intercept -1024 applied"
        assert report["metadata_not_kept"] == "DICOM attributes"
        data = self.bytes_of("out.nii")
        assert self.floats("out.nii") == self.expected()
        assert struct.unpack_from("<4h", data, 40) == (3, WIDTH, HEIGHT, DEPTH)
        assert struct.unpack_from("<2h", data, 252) == (1, 1)
        assert struct.unpack_from("<12f", data, 280) == (-0.5, 0, 0, 10, 0, -0.5, 0, -20, 0, 0, 2.5, 0)
        assert b"Secret" not in data

    def test_it_is_filtered_as_a_solid(self) -> None:
        report = json.loads(self.done("volume", "ct", "-o", "out.nii.gz", "--json").out)
        assert (report["method"], report["depth"], report["pages"]) == ("bm4d", DEPTH, 1)
        assert report["params"]["search_z"] == "3"  # slices are five times as far apart as pixels

    def test_names_of_results(self) -> None:
        for argument in ("ct", "ct/"):
            assert self.copy(argument)["output"] == "ct.ungrain.nii.gz"
        report = json.loads(run("volume", ".", "-m", "box", "--json", folder=self.path("ct")).out)
        assert report["output"].endswith("/ct.ungrain.nii.gz")
        assert self.copy("ct", "-o", "results/")["output"] == "results/ct.nii.gz"
        self.path("1.2.840").mkdir()
        os.rename(self.path("ct/IM10000"), self.path("1.2.840/1.2.3.4"))
        assert self.copy("1.2.840")["output"] == "1.2.840.ungrain.nii.gz"
        assert self.copy("1.2.840/1.2.3.4")["output"] == "1.2.840/1.2.3.4.ungrain.nii.gz"
        os.rename(self.path("ct/IM10001"), self.path("a.dcm"))
        assert self.copy("a.dcm")["output"] == "a.ungrain.nii.gz"
        assert json.loads(self.done("a.dcm", "-m", "box", "--json").out)["output"] == "a.ungrain.nii.gz"

    def test_other_outputs(self) -> None:
        self.copy("ct", "-o", "out.npy")
        data = self.bytes_of("out.npy")
        count = WIDTH * HEIGHT * DEPTH
        assert list(struct.unpack(f"<{count}f", data[-4 * count:])) == self.expected()
        refused = self.failed("volume", "ct", "-o", "out.dcm")
        assert "out.dcm: .dcm files cannot be written; this build writes .pgm" in refused.err

    def test_a_file_without_noise_is_not_copied_as_dicom(self) -> None:
        self.path("a.dcm").write_bytes(dicom(0, [500] * (WIDTH * HEIGHT), units=False))
        assert "b.dcm: .dcm files cannot be written" in self.failed("a.dcm", "-o", "b.dcm").err

    def test_several_series(self) -> None:
        self.make("ct", series=7, text="bone")
        refused = self.failed("volume", "ct")
        assert refused.err_lines == [f"ungrain: ct: holds 2 series: 1 (T1, {DEPTH} images), 7 (bone, {DEPTH} images); "
                                     "--series 1 chooses the first of them"]
        for series in ("7", "1.2.7"):
            assert self.copy("ct", "--series", series, "-o", "out.nii")["status"] == "done"
        assert self.floats("out.nii") == self.expected()
        self.done("compare", "ct", "out.nii", "--series", "7")

    def test_slices_spacing_pages(self) -> None:
        assert self.done("volume", "ct", "--slices", "6", "-o", "out.nii", "--sigma", "9", "-q", "-m", "nlm3d").code == 0
        report = json.loads(self.done("volume", "ct", "--spacing", "1,1,1", "--sigma", "9", "--json").out)
        assert report["params"]["search_z"] == report["params"]["search"]
        self.copy("ct", "--pages", "3-5", "-o", "out.nii")
        assert self.floats("out.nii") == [sample - 1024 for samples in self.slices[2:5] for sample in samples]
        assert "do not make volumes of 5" in self.failed("volume", "ct", "--slices", "5").err

    def test_memory_changes_no_bit(self) -> None:
        self.done("volume", "ct", "-o", "a.nii", "--sigma", "9", "-q")
        self.done("volume", "ct", "-o", "b.nii", "--sigma", "9", "-q", "--memory", "1M", "--threads", "1")
        assert self.bytes_of("a.nii") == self.bytes_of("b.nii")

    def test_resume_sees_changes_of_the_files(self) -> None:
        again = lambda: self.copy("ct", "-o", "out.nii", "--resume")["status"]
        assert [again(), again()] == ["done", "skipped"]
        file = self.path("ct/IM10003")
        os.utime(file, (1, 1))
        assert [again(), again()] == ["done", "skipped"]

    def test_damaged_files_are_named(self) -> None:
        file = self.path("ct/IM10003")
        file.write_bytes(file.read_bytes()[:-10])
        refused = self.failed("volume", "ct")
        assert refused.err_lines == ["ungrain: ct/IM10003: truncated: it ends in the element (7fe0,0010)"]
        assert not self.path("ct.ungrain.nii.gz").exists()
        file.write_bytes(dicom(3, self.slices[3], syntax="1.2.840.10008.1.2.4.70"))
        assert "ct/IM10003: its pixels are lossless JPEG" in self.failed("volume", "ct").err

    def test_a_folder_without_dicom_is_a_folder_of_volumes(self) -> None:
        self.copy("ct", "-o", "more/")
        self.copy("more")
        assert self.path("more/ct.ungrain.nii.gz").exists()
        assert "no images in this folder, but DICOM slices: ungrain volume filters them" in self.failed("ct").err

    def test_permissions(self) -> None:
        """Nobody who may not read one of the slices can read the result."""
        os.chmod(self.path("ct/IM10003"), 0o600)
        self.copy("ct", "-o", "out.nii")
        assert os.stat(self.path("out.nii")).st_mode & 0o777 == 0o600

    def test_formats(self) -> None:
        rows = [json.loads(line) for line in self.done("formats", "--json").out_lines]
        row = next(row for row in rows if row["format"] == "DICOM")
        assert (row["read"], row["written"]) == (True, False)
