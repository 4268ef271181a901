"""What a figure in docs/results/ must say about where it comes from."""
import datetime
import hashlib
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What the program does on a processor is made of these.
GPU_HEADERS = [f":!src/methods/bilateral/{name}.h" for name in ("streamed", "symmetric", "tuning")]
PROGRAM = ["src", "cli", ":!src/cuda", ":!*.cu", ":!*.cuh", *GPU_HEADERS, ":!src/methods/*/cases.h"]


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor():
    info = pathlib.Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", info.read_text(), re.M) if info.exists() else None
    return found.group(1) if found else _output("uname", "-m")


def sources_hash(folders):
    """Of every tracked file below the folders (as git names files) but their READMEs: a result is out of date when it no
    longer matches."""
    digest = hashlib.sha256()
    for name in sorted(_output("git", "ls-files", *folders).split("\n")):
        if (ROOT / name).is_file() and not name.endswith(".md"):
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    return digest.hexdigest()[:16]


def version():
    """Of the repository, today. Pages of results that are being written are no change."""
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", "--", ":!docs")
    dirty = " with changes" if changed else ""
    return {"date": datetime.date.today().isoformat(), "commit": _output("git", "rev-parse", "--short", "HEAD") + dirty}


def describe(folders):
    """The lines to put under a result, for sources in these folders."""
    return [
        f"- machine: {_processor()}, {os.cpu_count()} processors",
        f"- compiler: {_output('c++', '--version').splitlines()[0]}",
        *(f"- {key}: {value}" for key, value in version().items()),
        f"- sources: {' '.join(folders)} {sources_hash(folders)}",
    ]
