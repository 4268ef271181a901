"""What a figure in docs/results/ must say about where it comes from."""
import datetime
import os
import pathlib
import re
import subprocess
import sys

from sources import ROOT, Sources

# Roots of pages (sources.py): what they need of src/core and src/cpu follows from their includes.
METHODS_CODE = ["src/methods/*.cpp"]
NOISE_CODE = ["src/noise/*.cpp"]  # where noise is added, measured or given
ENGINE_CODE = ["src/core/*.cpp"]  # where times or memory are measured
SCENE_CODE = ["src/scene/*.cpp"]


def method_code(name):
    return f"src/methods/{name}/*.cpp"


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor():
    info = pathlib.Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", info.read_text(), re.M) if info.exists() else None
    return found.group(1) if found else _output("uname", "-m")


def _running_tool():
    """As git names it."""
    tool = pathlib.Path(sys.argv[0]).resolve()
    return [tool.relative_to(ROOT).as_posix()] if tool.is_file() and tool.is_relative_to(ROOT) else []


def version():
    """Of the repository, today. Pages of results that are being written are no change."""
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", "--", ":!docs")
    dirty = " with changes" if changed else ""
    return {"date": datetime.date.today().isoformat(), "commit": _output("git", "rev-parse", "--short", "HEAD") + dirty}


def describe(roots):
    """The lines to put under a result that depends on these roots, and on the tool that runs."""
    return [
        f"- machine: {_processor()}, {os.cpu_count()} processors",
        f"- compiler: {_output('c++', '--version').splitlines()[0]}",
        *(f"- {key}: {value}" for key, value in version().items()),
        Sources().line(list(dict.fromkeys([*roots, *_running_tool()]))),
    ]
