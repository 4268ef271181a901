"""HDF5 files on the command line, made by the program itself; tests/oracles/test_hdf5.py holds them against h5py."""
import json
import shutil
import subprocess
import unittest
from pathlib import Path

import support
from support import Workspace, picture, write_pnm
from test_nifti import nifti, samples_of

IDENTITY = ("--method", "bilateral", "--sigma-range", "0", "-q")  # gives every sample back
MODULE = Path(support.PROGRAM).resolve().parents[1] / "lib/ungrain/ungrain-hdf5.so"


class AnyBuild(Workspace):
    def test_formats(self) -> None:
        rows = {row["format"]: row for row in map(json.loads, self.done("formats", "--json").out_lines)}
        self.assertEqual(rows["HDF5"]["extensions"], [".h5", ".hdf5", ".hdf", ".nxs"])
        self.assertEqual(rows["HDF5"]["read"], MODULE.exists())
        self.assertEqual(rows["HDF5"]["written"], MODULE.exists())

    def test_a_name_alone_makes_no_hdf5_file(self) -> None:
        self.path("a.h5").write_text("a text")
        result = self.run_here("a.h5", "-o", "b.pgm")
        self.assertEqual((result.code, result.err), (1, "ungrain: a.h5: not an HDF5 file, though it is named like one\n"))


@unittest.skipUnless(MODULE.exists(), "the program was built without libhdf5")
class Hdf5(Workspace):
    def setUp(self) -> None:
        super().setUp()
        self.samples = bytes(i * 7 % 251 for i in range(12 * 9 * 3))
        self.path("a.nii").write_bytes(nifti(12, 9, 3, self.samples))

    def test_there_and_back(self) -> None:
        self.done("a.nii", "-o", "a.h5", *IDENTITY)
        self.done("volume", "a.h5", "-o", "b.h5", "--method", "box", "--radius", "0", "-q")
        self.done("b.h5", "-o", "b.nii", *IDENTITY)
        self.assertEqual(samples_of(self.path("b.nii")), self.samples)

    def test_result_beside_the_input(self) -> None:
        self.done("a.nii", "-o", "a.hdf5", *IDENTITY)
        self.done("a.hdf5", *IDENTITY)
        self.assertTrue(self.path("a.ungrain.hdf5").exists())

    def test_compare_takes_volumes(self) -> None:
        self.done("a.nii", "-o", "a.h5", *IDENTITY)
        self.assertIn("PSNR", self.done("compare", "a.nii", "a.h5").out)

    def test_streams(self) -> None:
        write_pnm(self.path("a.pgm"), picture(12, 9))
        with self.path("out.h5").open("wb") as out:
            self.done("a.pgm", "-o", "-", "--format", "h5", *IDENTITY, stdout=out)
        self.done("out.h5", "-o", "out.pgm", *IDENTITY)
        self.assertEqual(self.path("out.pgm").read_bytes()[-108:], bytes(picture(12, 9).samples))

    def test_a_missing_module_is_named(self) -> None:
        self.done("a.nii", "-o", "a.h5", *IDENTITY)
        self.path("bin").mkdir()
        alone = self.path("bin/ungrain")
        shutil.copy(support.PROGRAM, alone)
        source = self.path("a.h5")
        done = subprocess.run([alone, source, "-o", self.path("b.nii"), *IDENTITY], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith(f"ungrain: {source}: the module "), done.stderr)
        self.assertIn("ungrain-hdf5.so cannot be loaded: there is no such file", done.stderr)
