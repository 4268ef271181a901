"""Every code block of the documents does what it says.

Command lines run in a folder of small files, Python blocks run, C++ and C blocks are compiled, JSON, XML and TOML are parsed. What cannot
run here is marked in the page, <!-- not run: why -->, or is in the tables below, with the reason.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.request
import xml.etree.ElementTree
from collections import defaultdict
from pathlib import Path

import pytest
import samples
from blocks import ROOT, Block, all_blocks, blocks_of

BLOCKS = all_blocks()
SHELL = ("sh", "indented")
PARSED = {"json": json.loads, "toml": tomllib.loads, "xml": xml.etree.ElementTree.fromstring}
# Output, and what other tests read.
SHOWN = {"text", "yaml", "cmake", "lua", "diff", "ijm"}
LANGUAGES = {*SHELL, *PARSED, *SHOWN, "python", "cpp", "c"}

# Addresses and sizes that the documents use as examples, and what stands for them here.
STAND_INS = {
    "--scheduler tcp://host:8786": "--workers 1",
    "--workers 4": "--workers 1",
    'Client("tcp://host:8786")': "Client(processes=False, dashboard_address=None)",
    "demo --frames 50": f"demo --frames 4 --size {samples.WIDTH}x{samples.HEIGHT}",
    "--size 1920x1080": f"--size {samples.WIDTH}x{samples.HEIGHT}",
    "--dataset /entry/data/data": "--dataset /data",
    "--listen 0.0.0.0": "--listen 127.0.0.1:0",
    "rsa:3072": "rsa:2048",
    "ffmpeg -i": "ffmpeg -v error -y -i",
    'device="cuda"': 'device="cpu"',
}
# Programs that are not run: the words that a line begins with, and why.
NOT_RUN = {
    "ungrain-study": "measures for minutes; tests/cli/test_study.py runs it",
    "cmake": "compiles; tools/build and tools/wheel do the same",
    "ctest": "runs the tests themselves",
    "PYTHONPATH=build/python/python": "runs the Python tests themselves",
    "dask": "serves until it is stopped; python/tests/test_cluster.py does it",
    "vspipe": "integrations/vapoursynth/tests run it",
    "vapoursynth": "writes into the user's configuration",
    "python3 -m venv": "makes an environment; tools/venv does the same",
    "python -m build": "compiles; tools/wheel does the same",
    "export": "sets up the reader's shell",
    "napari": "opens a window; integrations/napari/tests run it without one",
    "gimp": "opens a window",
    "docker": "needs a service of the machine",
    "git": "needs a network",
    "cd": "goes into a folder of the reader's",
    "ssh": "needs another machine",
    "gdcmconv": "a program that the repository does not need",
    "dcmdjpeg": "a program that the repository does not need",
}


ALREADY_RUN: set[str] = set()


def program_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    (folder / "ungrain").symlink_to(Path(samples.PROGRAM).resolve())
    for name in ["python", "python3"]:
        # Through a file, so that the interpreter still knows its environment.
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    path = f"{program_folder(tmp_path_factory)}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "UNGRAIN_PYTHON": sys.executable, "UNGRAIN_SOURCE": str(ROOT), "LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="session")
def sample_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    samples.make(folder)
    return folder


def with_stand_ins(code: str) -> str:
    for written, instead in STAND_INS.items():
        code = code.replace(written, instead)
    return code


def lines_of(block: Block) -> list[str]:
    joined = block.code.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def assert_can_be_made(line: str) -> bool:
    """Lines that build or install something are looked at instead of run: what they name is there. False: another kind of line."""
    words = shlex.split(line, comments=True)
    if words[0] == "sudo":
        words = words[1:]
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        rules = (ROOT / "Makefile").read_text()
        for target in targets:
            assert re.search(rf"^{target}:", rules, re.M), f"the Makefile has no {target}"
        return True
    if re.match(r"(tools|bench)/", words[0]) or words[0] in ("tests/consumer/run", ".ci/run"):
        assert os.access(ROOT / words[0], os.X_OK), f"{words[0]} is no program"
        return True
    if words[0] in ("python", "python3") and words[1].startswith("examples/"):
        assert (ROOT / words[1]).exists()  # python/tests/test_examples.py runs them
        return True
    if words[:3] == ["build/venv/bin/python", "-m", "pytest"] or (words[0] == "node" and words[1].endswith(".mjs")):
        assert all((ROOT / word).exists() for word in words[1:] if "/" in word)
        return True
    if words[0] in ("c++", "g++") and "examples/" in line:
        named = re.search(r"examples/\w+\.cpp", line)[0]
        assert f"../../{named}" in (ROOT / "tests/consumer/CMakeLists.txt").read_text()  # which builds and runs them
        return True
    if words[0] == "apt-get":
        return True
    if words[0] == "pip":
        for word in words[1:]:
            if word == "." or word.startswith(("./", ".[")):
                assert (ROOT / word.partition("[")[0] / "pyproject.toml").exists(), f"{word} is no Python project"
        return True
    return False


def not_run(line: str) -> str:
    return next((why for start, why in NOT_RUN.items() if line.startswith(start + " ")), "")


def missing(line: str, folder: Path) -> str:
    """What this machine or this build lacks for a line."""
    if "ffmpeg" in line or ".mkv" in line:
        if not (folder / "in.mkv").exists():
            return "ffmpeg is missing"
    for word in re.findall(r"[\w/%*.-]+\.(?:CR2|dng|h5|jpg|heic|jxl)\b", line):
        extension = Path(word).suffix.lower()
        if not samples.reads(extension):
            return f"the program was built without {extension}"
    if "zarr" in line and not (folder / "in.zarr").exists():
        return "zarr is missing"
    if ("cluster" in line or "zarr" in line) and not line.startswith("openssl") and not importlib.util.find_spec("distributed"):
        return "Dask is missing"
    if line.startswith("openssl") and not shutil.which("openssl"):
        return "openssl is missing"
    return ""


def run_view(line: str, folder: Path, environment) -> None:
    """A server: it says its address, answers, and ends by Ctrl-C."""
    command = shlex.split(with_stand_ins(line), comments=True)
    server = subprocess.Popen([*command, "--no-browser"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    try:
        said = server.stdout.readline()
        address = re.search(r"http://\S+", said)
        assert address, said + server.stdout.read()
        with urllib.request.urlopen(address[0], timeout=20) as page:
            assert b"<html" in page.read()
        server.send_signal(signal.SIGINT)
        assert server.wait(20) in (0, 130, -signal.SIGINT)
    finally:
        server.kill()
        server.wait()


def run_line(line: str, folder: Path, environment) -> None:
    # The same line in another page need not run again.
    command = with_stand_ins(line).partition(" #")[0].strip()
    if command in ALREADY_RUN:
        return
    if line.startswith("ungrain view"):
        run_view(line, folder, environment)
        ALREADY_RUN.add(command)
        return
    begin = time.monotonic()
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", with_stand_ins(line)], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    for name in re.findall(r"#.*\bwrites ([\w./-]+\.\w+)", line):
        assert (folder / name).exists(), f"{line}\nwrote no {name}"
    ALREADY_RUN.add(command)
    print(f"{time.monotonic() - begin:5.1f} s  {line}")


def test_every_block_has_a_language():
    wrong = [f"{block}: {block.language or 'no language'}" for block in BLOCKS if block.language not in LANGUAGES]
    assert not wrong, "say what they are (text: output): " + ", ".join(wrong)


def test_there_are_blocks():
    assert len(BLOCKS) > 40 and {"sh", "python", "cpp"} <= {block.language for block in BLOCKS}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in SHELL], ids=str)
def test_command_lines_run(block, sample_files, environment, tmp_path):
    if block.not_run:
        pytest.skip(block.not_run)
    folder = tmp_path / "here"
    left_out = []
    shutil.copytree(sample_files, folder)
    if block.given:
        run_line(block.given, folder, environment)
    for line in lines_of(block):
        if assert_can_be_made(line):
            continue
        if why := not_run(line) or missing(line, folder):
            left_out.append(f"{line.partition('#')[0].strip()}: {why}")
            continue
        run_line(line, folder, environment)
        # A line may write what the next one takes for a sample; what it makes besides is kept.
        shutil.copytree(sample_files, folder, dirs_exist_ok=True)
    print(f"{block}: not run: {'; '.join(left_out) or 'nothing'}")


# The blocks of a page one after the other in one interpreter, with the names that they take for granted.
PYTHON_GIVEN = """
import numpy as np
import ungrain
image = np.random.default_rng(0).integers(0, 255, (48, 64), dtype=np.uint8)
frames = np.stack([image] * 3)
volume = np.random.default_rng(0).normal(100, 12, (12, 40, 40)).astype(np.float32)
magnitudes = np.sqrt((np.random.default_rng(0).normal(0, 12, (16, 12, 40, 40)) ** 2).sum(0))
"""
VAPOURSYNTH_GIVEN = """
import vapoursynth as vs
core = vs.core
clip = core.std.BlankClip(format=vs.YUV420P8, width=64, height=48, length=3)
"""


def of_pages(language: str) -> dict[str, list[Block]]:
    found = defaultdict(list)
    for block in BLOCKS:
        if block.language == language:
            found[block.page].append(block)
    return found


def is_vapoursynth(block: Block) -> bool:
    return "vapoursynth" in block.code or "core.ungrain" in block.code


def run_python(python: str, given: str, blocks: list[Block], folder: Path, environment) -> None:
    script = [f"exec(compile({given!r}, 'given', 'exec'))"]
    for block in blocks:
        if block.given:
            script.append(f"exec(compile({block.given!r}, 'given of {block}', 'exec'))")
        code = "\n" * (block.line - 1) + with_stand_ins(block.code)
        script.append(f"exec(compile({code!r}, {block.page!r}, 'exec'))")
    done = subprocess.run([*shlex.split(python), "-c", "\n".join(script)], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]


PYTHON_PAGES = of_pages("python")


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_runs(page, sample_files, environment, tmp_path):
    shutil.copytree(sample_files, tmp_path / "here")
    blocks = [block for block in PYTHON_PAGES[page] if not block.not_run and not is_vapoursynth(block)]
    if any("dask" in block.code for block in blocks):
        pytest.importorskip("distributed", reason="Dask is missing")
    if blocks:
        run_python(sys.executable, PYTHON_GIVEN, blocks, tmp_path / "here", environment)
    if reasons := [f"{block}: {block.not_run}" for block in PYTHON_PAGES[page] if block.not_run]:
        pytest.skip("; ".join(reasons))


@pytest.mark.parametrize("page", [page for page, blocks in PYTHON_PAGES.items() if any(map(is_vapoursynth, blocks))])
def test_vapoursynth_scripts_run(page, sample_files, environment, tmp_path):
    python = os.environ.get("UNGRAIN_VAPOURSYNTH_PYTHON")
    if not python:
        pytest.skip("no VapourSynth (UNGRAIN_VAPOURSYNTH_PYTHON names a Python that has it)")
    # A source of video files is another plug-in.
    blocks = [block for block in PYTHON_PAGES[page] if is_vapoursynth(block) and "core.bs." not in block.code]
    run_python(python, VAPOURSYNTH_GIVEN, blocks, sample_files, environment)


def compiles(compiler: list[str], source: Path) -> None:
    generated = Path(samples.PROGRAM).resolve().parents[1] / "include"  # the list of methods
    done = subprocess.run([*compiler, "-fsyntax-only", f"-I{ROOT / 'include'}", f"-I{generated}", source], capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, done.stderr[:4000]


def test_cpp_compiles(tmp_path):
    """All in one file, each in a namespace of its own. What is quoted from examples/ is built and run by tests/consumer."""
    if not shutil.which("c++"):
        pytest.skip("c++ is missing")
    built = "".join(path.read_text() for path in sorted((ROOT / "examples").glob("*.cpp")))
    includes, bodies = ["#include <cstdint>", "#include <vector>", "#include <ungrain/ungrain.h>"], []
    for number, block in enumerate(block for block in BLOCKS if block.language == "cpp" and block.page != "CONTRIBUTING.md"):
        if block.not_run or block.code in built:
            continue
        code = block.code.splitlines()
        includes += [line for line in code if line.startswith("#include")]
        code = ["" if line.startswith("#include") else line for line in code]
        named = f'#line {block.line} "{block.page}"\n'
        if "int main(" in block.code:
            body = named + "\n".join(code)
        else:
            body = f'#line 1 "given of {block}"\nvoid block() {{\n{block.given}\n{named}' + "\n".join(code) + "\n}"
        bodies.append(f"namespace block_{number} {{\n{body}\n}}\n")
    assert bodies
    source = tmp_path / "blocks.cpp"
    source.write_text("\n".join([*includes, *bodies]))
    compiles(["c++", "-std=c++20"], source)


def test_c_compiles(tmp_path):
    """What is quoted from examples/ is built and run by tests/consumer."""
    built = "".join(path.read_text() for path in sorted((ROOT / "examples").glob("*.c")))
    for number, block in enumerate(block for block in BLOCKS if block.language == "c" and not block.not_run and block.code not in built):
        body = block.code
        if "int main(" not in body:
            includes = [line for line in body.splitlines() if line.startswith("#include")]
            rest = [line for line in body.splitlines() if not line.startswith("#include")]
            body = "\n".join([*includes, "void block(void) {", block.given, *rest, "}"])
        source = tmp_path / f"block_{number}.c"
        source.write_text(f'#line {block.line} "{block.page}"\n{body}\n')
        compiles(["cc", "-std=c99"], source)


def test_the_method_of_contributing_compiles(tmp_path):
    """The files of the two methods that CONTRIBUTING.md adds, as it gives them."""
    if not shutil.which("c++"):
        pytest.skip("c++ is missing")
    blocks = [block for block in blocks_of(ROOT / "CONTRIBUTING.md") if block.language == "cpp"]
    names = ["ungrain/methods/midrange.h", "methods/midrange/midrange.h", "methods/midrange/method.cpp", "methods/midrange/reference.cpp",
             "", "methods/midrange/cases.h", "methods/temporal_mean/reference.cpp", "methods/temporal_mean/cpu.cpp"]
    assert len(blocks) == len(names)
    registry = (ROOT / "src/core/registry.cpp").read_text()
    assert re.search(blocks[names.index("")].code.strip().replace("midrange", r"\w+").replace("(", r"\(").replace(")", r"\)")[:-1].rstrip(),
                     registry), "the registry's lines look otherwise"
    for block, name in zip(blocks, names):
        if not name:
            continue
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#line {block.line} "CONTRIBUTING.md"\n{block.code}')
        if name.endswith(".h"):  # the second method's headers are the first one's under its name
            other = tmp_path / name.replace("midrange", "temporal_mean")
            other.parent.mkdir(parents=True, exist_ok=True)
            other.write_text(block.code.replace('"midrange"', '"temporal-mean"').replace("midrange", "temporal_mean")
                             .replace("Midrange", "TemporalMean"))
    source = tmp_path / "all.cpp"
    source.write_text("".join(f'#include "{name}"\n' for name in names if name))
    compiles(["c++", "-std=c++20", f"-I{tmp_path}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'tests'}"], source)


def test_data_can_be_parsed():
    for block in BLOCKS:
        if block.language in PARSED and not block.not_run:
            try:
                PARSED[block.language](block.code)
            except (ValueError, SyntaxError) as error:
                pytest.fail(f"{block}: {error}")
