"""The code blocks of the repository's Markdown files."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What a comment before a block says of it: <!-- not run: why -->, or <!-- given: code that stands before it -->.
COMMENT = re.compile(r"<!-- (not run|given): (.*?) -->", re.S)
FENCE = re.compile(r"( *)```(\S*)\s*$")
LIST_ITEM = re.compile(r"(\d+\.|[-*]) ")


@dataclass(frozen=True)
class Block:
    page: str  # path from the repository's root
    line: int  # of its first line of code
    language: str  # "indented" of a block without a fence
    code: str
    not_run: str = ""
    given: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def _comment_before(lines: list[str], fence: int) -> dict[str, str]:
    """The comments that end right above the fence."""
    text = "\n".join(lines[:fence])
    said = {}
    while match := re.search(r"<!-- (?:(?!-->).)*? -->\s*\Z", text, re.S):
        if known := COMMENT.fullmatch(match[0].strip()):
            said[known[1]] = known[2]
        text = text[:match.start()]
    return said


def blocks_of(page: Path) -> list[Block]:
    lines = page.read_text(encoding="utf-8").split("\n")
    name = page.relative_to(ROOT).as_posix()
    found = []
    at, in_list = 0, False
    while at < len(lines):
        if fence := FENCE.match(lines[at]):
            first = at + 1
            end = next(k for k in range(first, len(lines)) if lines[k].strip() == "```")
            code = "\n".join(line[len(fence[1]):] for line in lines[first:end])
            said = _comment_before(lines, at)
            found.append(Block(name, first + 1, fence[2], code + "\n", said.get("not run", ""), said.get("given", "")))
            at = end + 1
            continue
        line = lines[at]
        if line and not line.startswith(" "):
            in_list = bool(LIST_ITEM.match(line))
        if line.startswith("    ") and not in_list and (at == 0 or not lines[at - 1].strip()):
            first = at
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            found.append(Block(name, first + 1, "indented", "".join(each[4:] + "\n" for each in lines[first:at])))
            continue
        at += 1
    return found


def pages() -> list[Path]:
    named = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True)
    if named.returncode:  # a source archive
        return sorted(path for path in ROOT.rglob("*.md") if "build" not in path.relative_to(ROOT).parts)
    return sorted({ROOT / name for name in named.stdout.split() if (ROOT / name).exists()})


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks_of(page)]
