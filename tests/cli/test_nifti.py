"""NIfTI files from and to the command line; the readers and writers here are other code than the program's."""
import gzip
import json
import struct
from pathlib import Path

import pytest

from support import Workspace, picture, write_pnm

IDENTITY = ("--method", "bilateral", "--sigma-range", "0", "-q")  # gives every sample back


def nifti(width: int, height: int, depth: int, samples: bytes) -> bytes:
    header = struct.pack("<i36x8h", 348, 3, width, height, depth, 1, 1, 1, 1) + bytes(14)
    header += struct.pack("<3h8f3f", 2, 8, 0, 1, 0.5, 0.5, 2, 1, 1, 1, 1, 352, 0, 0)
    return header.ljust(344, b"\0") + b"n+1\0" + bytes(4) + samples


def samples_of(path: Path) -> bytes:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.name.endswith(".gz") else data)[352:]


class TestNifti(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.samples = bytes(i * 7 % 251 for i in range(12 * 9 * 3))
        self.content = nifti(12, 9, 3, self.samples)
        self.path("a.nii").write_bytes(self.content)
        self.path("b.nii.gz").write_bytes(gzip.compress(self.content))

    def test_result_beside_the_input(self) -> None:
        for name, result in (("a.nii", "a.ungrain.nii"), ("b.nii.gz", "b.ungrain.nii.gz")):
            self.done(name, *IDENTITY)
            assert samples_of(self.path(result)) == self.samples

    def test_folders(self) -> None:
        self.path("in").mkdir()
        self.path("in/a.b.nii.gz").write_bytes(gzip.compress(self.content))
        self.path("in/a.b.ungrain.nii.gz").write_bytes(b"an earlier result, which is no input")
        self.path("in/other.gz").write_bytes(b"not an image by its name")
        self.done("in", "-o", "out/", *IDENTITY)
        assert [path.name for path in self.path("out").glob("[!.]*")] == ["a.b.nii.gz"]
        assert samples_of(self.path("out/a.b.nii.gz")) == self.samples

    def test_several_inputs_need_a_folder(self) -> None:
        result = self.run_here("a.nii", "b.nii.gz", "-o", "all.nii.gz")
        assert result.code == 2
        assert "this is a file's name" in result.err

    def test_a_copy_is_compressed_as_its_name_says(self) -> None:
        """Where no noise is found a file of one page is copied, but not to a name of another compression."""
        flat = nifti(12, 9, 1, bytes([77]) * 108)
        self.path("flat.nii").write_bytes(flat)
        self.done("flat.nii", "-o", "flat.nii.gz")
        assert samples_of(self.path("flat.nii.gz")) == flat[352:]
        self.done("flat.nii.gz", "-o", "back.nii")
        assert samples_of(self.path("back.nii")) == flat[352:]

    def test_standard_output(self) -> None:
        write_pnm(self.path("a.pgm"), picture(12, 9))
        with self.path("out.nii.gz").open("wb") as out:
            self.done("a.pgm", "-o", "-", "--format", "nii.gz", *IDENTITY, stdout=out)
        assert samples_of(self.path("out.nii.gz")) == bytes(picture(12, 9).samples)

    def test_the_lost_header_is_reported(self) -> None:
        assert "NIfTI header" in self.done("a.nii", "-o", "a.npy", "--method", "box", "--radius", "0").out

    def test_other_gzip_files(self) -> None:
        self.path("c.nii.gz").write_bytes(gzip.compress(b"a text"))
        result = self.run_here("c.nii.gz", "-o", "d.nii.gz")
        assert (result.code, result.err) == (
            1, "ungrain: c.nii.gz: a gzip file that contains no NIfTI image: decompress it first\n")

    def test_formats(self) -> None:
        rows = {row["format"]: row for row in map(json.loads, self.done("formats", "--json").out_lines)}
        assert rows["NIfTI"] == {"format": "NIfTI", "extensions": [".nii", ".nii.gz"], "read": True,
                                 "written": True, "types": ["u8", "u16", "f32"],
                                 "channels": ["gray", "rgb", "rgb with alpha"], "several_pages": True,
                                 "metadata": ["NIfTI header"]}
