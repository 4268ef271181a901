"""A row: one file, and what the program must make of it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from pictures import Picture

Writer = Callable[[Path, Picture], None]


@dataclass(frozen=True)
class Right:
    """Exit status 0, and the output holds the same picture."""

    to: str = ""  # the output's extension; as the input's where empty
    types: str = "u8"  # of its samples; any of these
    white: float | None = None  # what 1 of the truth is there; the type's own where None
    low: float = 0  # what 0 of the truth is there
    range: float | None = None  # what --json says the input's white level is
    tolerance: float = 0.012  # largest error of a pixel, of the white level
    alpha_tolerance: float = 0  # of lossy formats
    layout: str = ""  # of the output, where it differs from the picture's
    alpha: bool | None = None  # what --json says
    keeps: dict = field(default_factory=dict)  # metadata, by the names of readers.py
    told: str = ""  # what --json says is not kept
    truth: Callable | None = None  # what the output shows in place of a page of the picture
    pages: int | None = None  # of the output, where they are not the picture's


@dataclass(frozen=True)
class Fails:
    """Exit status 1 (one of `codes`) and one line that names the file and matches `words`; no output."""

    words: str
    to: str = ""  # the output's extension that was asked for
    codes: tuple[int, ...] = (1,)


Expectation = Right | Fails


@dataclass(frozen=True)
class Row:
    name: str  # "tiff/tiles-planar-lzw-u16"
    file: str  # its name
    write: Writer
    expect: tuple[Expectation, ...]  # any of these
    layout: str = "gray"
    pages: int = 1
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # programs
    quality: bool = False  # the default command on the noisy picture as well
    checked: bool = True  # the file itself by readers.py, where the output has the same format

    def missing(self) -> list[str]:
        return [program for program in self.needs if shutil.which(program) is None]


ROWS: list[Row] = []


def add(name: str, file: str, write: Writer, *expect: Expectation, **more) -> None:
    if any(row.name == name for row in ROWS):
        raise ValueError(f"two rows are named {name}")
    ROWS.append(Row(name, file, write, expect, **more))
