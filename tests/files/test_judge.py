"""The judge itself: a program that is right passes, and one with any single fault does not."""

import numpy as np
import pytest
import tifffile

import judge
import pictures
from rows import Fails, Right, Row
from rows_tiff import pages_written
from samples import XMP

XMP_TAG = [(700, 1, len(XMP), XMP, True)]


def copied(source, target, change=lambda pages: pages, **options):
    """What a program that filters nothing would write."""
    with tifffile.TiffFile(source) as file:
        pages = change([page.asarray() for page in file.pages])
    options.setdefault("extratags", XMP_TAG)
    with tifffile.TiffWriter(target) as file:
        for page in pages:
            file.write(np.ascontiguousarray(page), metadata=None, photometric="rgb", extrasamples=[2], **options)


def reply(code=0, err="", alpha=True, white=255):
    return judge.Run(code, err, {"status": "done", "alpha": alpha, "range": white})


def recoloured(pages, change):
    """The same alpha under other colours."""
    return [np.dstack([change(page[..., :3]), page[..., 3]]) for page in pages]


FAULTS = {
    "a page lost": lambda s, t: copied(s, t, lambda p: p[:2]),
    "pages exchanged": lambda s, t: copied(s, t, lambda p: [p[1], p[0], p[2]]),
    "a row lost": lambda s, t: copied(s, t, lambda p: [np.vstack([page[:1], page[:-1]]) for page in p]),
    "a row shorter": lambda s, t: copied(s, t, lambda p: [page[:-1] for page in p]),
    "colours exchanged": lambda s, t: copied(s, t, lambda p: recoloured(p, lambda c: c[..., ::-1])),
    "darker": lambda s, t: copied(s, t, lambda p: recoloured(p, lambda c: (c * 0.95).astype(np.uint8))),
    "mirrored": lambda s, t: copied(s, t, lambda p: [page[:, ::-1] for page in p]),
    "alpha one step off": lambda s, t: copied(
        s, t, lambda p: [page - np.uint8([0, 0, 0, 1]) * (page > 0) for page in p]
    ),
    "another type": lambda s, t: copied(s, t, lambda p: [page.astype(np.uint16) * 257 for page in p]),
    "XMP lost": lambda s, t: copied(s, t, extratags=[]),
    "a tag that turns": lambda s, t: copied(s, t, extratags=[*XMP_TAG, (274, 3, 1, 6, True)]),
    "a temporary left": lambda s, t: (copied(s, t), t.with_name(".out.tif.ungrain-1").touch()),
    "the input changed": lambda s, t: (copied(s, t), s.write_bytes(s.read_bytes() + b"x")),
    "nothing written": lambda s, t: None,
    "another white level": lambda s, t: copied(s, t) or reply(white=65535),
    "alpha not known": lambda s, t: copied(s, t) or reply(alpha=False),
    "a word on the standard error": lambda s, t: copied(s, t) or reply(err="warning\n"),
    "refused": lambda s, t: reply(1, f"ungrain: {s.name}: truncated\n"),
}


def verdict_on(behaviour, tmp_path, monkeypatch, *expect):
    def run_program(source, target, *_options):
        said = behaviour(source, target)
        return said if isinstance(said, judge.Run) else reply()

    monkeypatch.setattr(judge, "run_program", run_program)
    writer = pages_written(photometric="rgb", extrasamples=["unassalpha"], extratags=XMP_TAG)
    row = Row("row", "in.tif", writer, expect, layout="rgb+alpha", pages=3)
    return judge.judge(row, tmp_path)


SAME = Right(range=255, keeps={"xmp": XMP})


def test_what_is_right(tmp_path, monkeypatch):
    assert verdict_on(copied, tmp_path, monkeypatch, SAME).word == "right"


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong(fault, tmp_path, monkeypatch):
    verdict = verdict_on(FAULTS[fault], tmp_path, monkeypatch, SAME)
    assert verdict.word == "wrong", verdict
    assert "own file" not in verdict.why


def test_the_error_that_is_wanted(tmp_path, monkeypatch):
    assert verdict_on(FAULTS["refused"], tmp_path, monkeypatch, Fails("truncated")).word == "error"


@pytest.mark.parametrize(
    "said",
    [
        reply(),
        reply(1, "ungrain: in.tif: no\n"),
        reply(1, "ungrain: truncated\n"),
        reply(1, "ungrain: in.tif: truncated\nungrain: 1 failed\n"),
        reply(1, ""),
        reply(2, "ungrain: in.tif: truncated\n"),
        reply(1, "ungrain: in.tif: truncated VIPS-WARNING\n"),
    ],
)
def test_errors_that_are_not(said, tmp_path, monkeypatch):
    assert verdict_on(lambda s, t: said, tmp_path, monkeypatch, Fails("truncated")).word == "wrong"


def test_an_error_that_leaves_an_output(tmp_path, monkeypatch):
    def behaviour(source, target):
        copied(source, target)
        return reply(1, "ungrain: in.tif: truncated\n")

    assert verdict_on(behaviour, tmp_path, monkeypatch, Fails("truncated")).word == "wrong"


def test_orientations_are_those_of_exif():
    """What is stored for an orientation is turned upright by another library's rule."""
    import PIL.Image
    import PIL.ImageOps

    image = pictures.u8(pictures.clean("rgb").image)
    for orientation in range(1, 9):
        stored = PIL.Image.fromarray(pictures.stored_as(image, orientation))
        stored.getexif()[274] = orientation
        assert np.array_equal(np.asarray(PIL.ImageOps.exif_transpose(stored)), image), orientation
