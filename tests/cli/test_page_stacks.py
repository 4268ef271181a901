"""ungrain volume on stacks of microscopes: OME-TIFF files and ImageJ's hyperstacks."""
from __future__ import annotations

import json
import os
import signal

import pytest

from support import (Picture, Workspace, ends_by, needs_format, picture, read_tiff, start, temporaries, tiff_text,
                     wait_until, write_imagej, write_tiff, writes)

X, Y, Z, C, T = 26, 22, 6, 2, 2
METHOD = ("-m", "nlm3d", "--search", "3", "--sigma", "12", "-q")


def ome(order: str = "XYCZT", z: int = Z, c: int = C, t: int = T, more: str = "", inside: str = "<TiffData/>") -> str:
    return ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'
            f'<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="{order}" Type="uint8" SizeX="{X}" SizeY="{Y}" '
            f'SizeZ="{z}" SizeC="{c}" SizeT="{t}"{more}>{inside}</Pixels></Image></OME>')


def imagej(images: int = Z * C * T, more: str = f"channels={C}\nslices={Z}\nframes={T}\nhyperstack=true\n") -> str:
    return f"ImageJ=1.53t\nimages={images}\n{more}loop=false\n"


def page_of(order: str, z: int, c: int, t: int) -> int:
    page, step = 0, 1
    for axis in order[2:]:
        at, size = {"Z": (z, Z), "C": (c, C), "T": (t, T)}[axis]
        page, step = page + step * at, step * size
    return page


@pytest.mark.skipif(not writes(".tif"), reason=needs_format(".tif"))
class TestPageStacks(Workspace):
    @pytest.fixture(autouse=True)
    def prepared(self, workspace: None) -> None:
        self.volumes = {(c, t): [picture(X, Y, seed=1 + z + 10 * c + 100 * t) for z in range(Z)]
                        for c in range(C) for t in range(T)}

    def write(self, name: str, description: str, order: str = "XYCZT") -> None:
        pages: list[Picture] = [picture(1, 1)] * (Z * C * T)
        for (c, t), slices in self.volumes.items():
            for z, image in enumerate(slices):
                pages[page_of(order, z, c, t)] = image
        write_tiff(self.path(name), pages, description)

    def alone(self, *options: str) -> dict[tuple[int, int], list[Picture]]:
        """The result of each volume in a file of its own."""
        results = {}
        for key, slices in self.volumes.items():
            write_tiff(self.path("one.tif"), slices)
            self.done("volume", "one.tif", "-o", "one-out.tif", *options)
            results[key] = read_tiff(self.path("one-out.tif"))
        return results

    def assert_volumes(self, name: str, order: str, expected: dict[tuple[int, int], list[Picture]]) -> None:
        pages = read_tiff(self.path(name))
        assert len(pages) == Z * C * T
        for (c, t), slices in expected.items():
            for z, image in enumerate(slices):
                assert pages[page_of(order, z, c, t)] == image, (order, c, t, z)

    def report(self, *arguments: str) -> dict:
        return json.loads(self.done("volume", *arguments, *METHOD[:-1], "--json").out)

    def test_every_order(self) -> None:
        expected = self.alone(*METHOD)
        for order in ("XYZCT", "XYZTC", "XYCZT", "XYCTZ", "XYTZC", "XYTCZ"):
            self.write("a.ome.tif", ome(order), order)
            self.done("volume", "a.ome.tif", "-o", "b.ome.tif", *METHOD)
            self.assert_volumes("b.ome.tif", order, expected)
            assert tiff_text(self.path("b.ome.tif")) == ome(order)
        self.assert_tidy()

    def test_methods_along_slices(self) -> None:
        """Each volume has noise of its own."""
        for name, slices in self.volumes.items():
            for image in slices:
                if name[0] == 1:  # one channel with little noise
                    image.samples = [70 + (value - 70) // 4 for value in image.samples]
        for method in (("-m", "median", "-q"), ("-m", "bilateral", "-q"), ("-m", "gaussian", "--sigma", "1", "-q")):
            expected = self.alone(*method)
            self.write("a.tif", imagej())
            self.done("a.tif", "--volume", "-o", "b.tif", *method)
            self.assert_volumes("b.tif", "XYCZT", expected)
            assert tiff_text(self.path("b.tif")) == imagej()

    def test_one_directory_of_imagej(self) -> None:
        expected = self.alone(*METHOD)
        pages = [self.volumes[c, t][z] for t in range(T) for z in range(Z) for c in range(C)]
        write_imagej(self.path("a.tif"), pages, f"channels={C}\nslices={Z}\nframes={T}")
        self.done("volume", "a.tif", "-o", "b.tif", *METHOD)
        self.assert_volumes("b.tif", "XYCZT", expected)
        assert f"channels={C}\nslices={Z}\nframes={T}\n" in tiff_text(self.path("b.tif"))

    def test_slices_too_large_for_the_memory(self) -> None:
        self.volumes = {key: [picture(30, 170, seed=1 + z + 10 * sum(key)) for z in range(12)]
                        for key in ((0, 0), (1, 0))}
        pages = [self.volumes[c, 0][z] for z in range(12) for c in range(2)]
        write_tiff(self.path("a.tif"), pages, imagej(24, "channels=2\nslices=12\n"))
        arguments = ("a.tif", "-m", "nlm3d", "--search", "5", "--sigma", "8", "--threads", "1", "--json")
        whole = json.loads(self.done("volume", *arguments, "-o", "b.tif").out)
        parts = json.loads(self.done("volume", *arguments, "-o", "c.tif", "--memory", "900K").out)
        assert (whole["pages"], whole["depth"]) == (2, 12)
        assert parts["buffer_bytes"] < whole["buffer_bytes"]
        assert self.bytes_of("b.tif") == self.bytes_of("c.tif")

    def test_sizes_of_voxels(self) -> None:
        def physical(x: str, z: str) -> str:
            return f' PhysicalSizeX="{x}" PhysicalSizeY="{x}" PhysicalSizeZ="{z}" PhysicalSizeZUnit="nm"'

        self.write("a.tif", ome(more=physical("0.5", "1500")))
        assert self.report("a.tif", "-o", "b.tif")["params"]["aspect"] == "3"
        assert self.report("a.tif", "-o", "b.tif", "--spacing", "1,1,2")["params"]["aspect"] == "2"
        self.write("a.tif", ome(more=physical("0.5", "-1500")))
        assert self.report("a.tif", "-o", "b.tif")["params"]["aspect"] == "1"
        self.write("a.tif", ome(more=physical("1e-30", "600")))
        report = self.report("a.tif", "-o", "b.tif")
        assert (report["params"]["aspect"], report["pages"]) == ("1", C * T)
        assert "not plausible" in report["note"]
        self.write("a.tif", imagej(more=f"channels={C}\nslices={Z}\nframes={T}\nspacing=2.5\n"))
        assert self.report("a.tif", "-o", "b.tif")["params"]["aspect"] == "2.5"

    def test_slices_that_were_asked_for(self) -> None:
        """They win over the description."""
        self.write("a.tif", ome())
        report = self.report("a.tif", "-o", "b.tif", "--slices", "4")
        assert (report["pages"], report["depth"], "note" in report) == (Z * C * T // 4, 4, False)

    def test_descriptions_that_do_not_tell_the_pages(self) -> None:
        cases = {ome(z=Z + 1): "the file has 24 pages",
                 ome(z=1, c=24, t=1): "no slices",
                 ome().replace("</OME>", ""): "damaged",
                 ome().replace("</OME>", "<Image/></OME>"): "2 images",
                 ome(inside='<TiffData IFD="1" PlaneCount="23"/>'): "another order",
                 imagej(more="channels=5\nslices=5\n"): "the file has 24 pages",
                 imagej(more="channels=24\n"): "no slices",
                 '<OME><BinaryOnly MetadataFile="a"/></OME>': "in another file"}
        for description, why in cases.items():
            self.write("a.tif", description)
            report = self.report("a.tif", "-o", "b.tif")
            assert (report["pages"], report["depth"]) == (1, Z * C * T), description
            assert why in report["note"]
            assert "all pages are slices of one volume" in report["note"]
            assert "note" not in json.loads(self.done("a.tif", "-o", "b.tif", "-m", "box", "--json").out)
        self.write("a.tif", "a stack")
        assert "note" not in self.report("a.tif", "-o", "b.tif")

    def test_some_pages(self) -> None:
        self.write("a.tif", ome())
        report = self.report("a.tif", "-o", "b.tif", "--pages", "1-4")
        assert (report["pages"], report["depth"]) == (1, 4)
        assert "--pages" in report["note"]
        assert report["metadata_not_kept"] == "OME-XML"
        assert tiff_text(self.path("b.tif")) == ""
        report = self.report("a.tif", "-o", "b.tif", "--pages", "1-")
        assert (report["pages"], "note" in report) == (C * T, False)
        assert tiff_text(self.path("b.tif")) == ome()

    def test_the_description_is_made_true(self) -> None:
        planes = '<TiffData><UUID FileName="a.ome.tif">urn:uuid:1</UUID></TiffData>'
        self.write("a.ome.tif", ome(more=' SignificantBits="8"', inside=planes))
        self.done("volume", "a.ome.tif", *METHOD)
        expected = ome(more=' SignificantBits="8"', inside=planes.replace("a.ome.tif", "a.ungrain.ome.tif"))
        assert tiff_text(self.path("a.ungrain.ome.tif")) == expected
        self.done("volume", "a.ome.tif", "-o", "a.tif", "--depth", "u16", *METHOD)
        expected = ome(more=' SignificantBits="16"', inside=planes.replace("a.ome.tif", "a.tif"))
        assert tiff_text(self.path("a.tif")) == expected.replace("uint8", "uint16")

    def test_results_beside_stacks_are_no_inputs(self) -> None:
        self.path("in").mkdir()
        self.write("in/a.ome.tif", ome())
        self.done("volume", "in", *METHOD)
        self.done("volume", "in", *METHOD)
        assert sorted(path.name for path in self.path("in").iterdir()) == ["a.ome.tif", "a.ungrain.ome.tif"]

    def test_no_room_for_pages_that_wait(self) -> None:
        self.write("a.tif", ome())
        result = self.run_here("volume", "a.tif", "-o", "b.tif", *METHOD,
                               env={**os.environ, "TMPDIR": str(self.path("nowhere"))})
        assert result.code == 1
        assert "b.tif: there is no folder for temporary files" in result.err
        assert not self.path("b.tif").exists()
        self.assert_tidy()
        self.write("plain.tif", ome("XYZCT"), "XYZCT")  # nothing waits
        self.done("volume", "plain.tif", "-o", "b.tif", *METHOD, env={**os.environ, "TMPDIR": str(self.path("nowhere"))})

    def test_interrupted(self) -> None:
        self.path("temporary").mkdir()
        self.write("a.tif", ome())
        process = start("volume", "a.tif", "-o", "b.tif", "-m", "nlm3d", "--device", "reference", "--search", "11",
                        "--sigma", "12", folder=self.folder, env={**os.environ, "TMPDIR": str(self.path("temporary"))})
        wait_until(lambda: temporaries(self.folder), process)
        process.send_signal(signal.SIGINT)
        assert ends_by(process)[0] != 0
        assert not self.path("b.tif").exists()
        assert list(self.path("temporary").iterdir()) == []
        self.assert_tidy()

    def test_compared_as_volumes_where_asked(self) -> None:
        self.write("a.tif", ome())
        self.write("b.tif", ome("XYTZC"), "XYTZC")
        lines = lambda *arguments: [json.loads(line) for line in self.done("compare", *arguments, "--json").out.splitlines()]
        assert [line["max_abs"] for line in lines("a.tif", "b.tif", "--volume")] == [0] * (C * T)
        assert len(lines("a.tif", "b.tif")) == Z * C * T
        self.write("c.tif", "no word about its pages")
        assert [line["max_abs"] for line in lines("a.tif", "c.tif", "--volume")] == [0] * (C * T)
        assert [line["max_abs"] for line in lines("c.tif", "a.tif", "--volume")] == [0]
