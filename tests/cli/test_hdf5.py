"""HDF5 files on the command line, made by the program itself; tests/oracles/test_hdf5.py holds them against h5py."""
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import support
from support import Workspace, picture, write_pnm
from test_nifti import nifti, samples_of

IDENTITY = ("--method", "bilateral", "--sigma-range", "0", "-q")  # gives every sample back
MODULE = Path(support.PROGRAM).resolve().parents[1] / "lib/ungrain/ungrain-hdf5.so"


class TestAnyBuild(Workspace):
    def test_formats(self) -> None:
        rows = {row["format"]: row for row in map(json.loads, self.done("formats", "--json").out_lines)}
        assert rows["HDF5"]["extensions"] == [".h5", ".hdf5", ".hdf", ".nxs"]
        assert rows["HDF5"]["read"] == MODULE.exists()
        assert rows["HDF5"]["written"] == MODULE.exists()

    def test_a_name_alone_makes_no_hdf5_file(self) -> None:
        self.path("a.h5").write_text("a text")
        result = self.run_here("a.h5", "-o", "b.pgm")
        assert (result.code, result.err) == (1, "ungrain: a.h5: not an HDF5 file, though it is named like one\n")


@pytest.mark.skipif(not MODULE.exists(), reason="the program was built without libhdf5")
class TestHdf5(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.samples = bytes(i * 7 % 251 for i in range(12 * 9 * 3))
        self.path("a.nii").write_bytes(nifti(12, 9, 3, self.samples))

    def test_there_and_back(self) -> None:
        self.done("a.nii", "-o", "a.h5", *IDENTITY)
        self.done("volume", "a.h5", "-o", "b.h5", "--method", "box", "--radius", "0", "-q")
        self.done("b.h5", "-o", "b.nii", *IDENTITY)
        assert samples_of(self.path("b.nii")) == self.samples

    def test_result_beside_the_input(self) -> None:
        self.done("a.nii", "-o", "a.hdf5", *IDENTITY)
        self.done("a.hdf5", *IDENTITY)
        assert self.path("a.ungrain.hdf5").exists()

    def test_compare_takes_volumes(self) -> None:
        self.done("a.nii", "-o", "a.h5", *IDENTITY)
        assert "PSNR" in self.done("compare", "a.nii", "a.h5").out

    def test_streams(self) -> None:
        write_pnm(self.path("a.pgm"), picture(12, 9))
        with self.path("out.h5").open("wb") as out:
            self.done("a.pgm", "-o", "-", "--format", "h5", *IDENTITY, stdout=out)
        self.done("out.h5", "-o", "out.pgm", *IDENTITY)
        assert self.path("out.pgm").read_bytes()[-108:] == bytes(picture(12, 9).samples)

    def test_a_missing_module_is_named(self) -> None:
        self.done("a.nii", "-o", "a.h5", *IDENTITY)
        self.path("bin").mkdir()
        alone = self.path("bin/ungrain")
        shutil.copy(support.PROGRAM, alone)
        source = self.path("a.h5")
        done = subprocess.run([alone, source, "-o", self.path("b.nii"), *IDENTITY], capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith(f"ungrain: {source}: the module "), done.stderr
        assert "ungrain-hdf5.so cannot be loaded: there is no such file" in done.stderr
