"""What the shared library exports: the C functions of ungrain.h, what the C++ headers declare, and nothing else.

UNGRAIN_LIBRARY is the shared library. `tools/abi` compares with the last release."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import header

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("UNGRAIN_LIBRARY", "")


def _exported(*options):
    run = subprocess.run(["nm", "-D", "--defined-only", *options, LIBRARY], check=True, capture_output=True, text=True)
    names = (re.match(r"\S* (\w) (.*)", line).groups() for line in run.stdout.splitlines())
    return {re.sub(r"@@?UNGRAIN_[\d.]+$", "", name) for kind, name in names if kind != "A"}


@pytest.mark.skipif(not LIBRARY, reason="UNGRAIN_LIBRARY names no shared library")
@pytest.mark.skipif(not shutil.which("nm"), reason="nm (binutils) is missing")
class TestExports:
    def test_c_functions_are_the_headers(self):
        declared = set(re.findall(r"^UNGRAIN_API .*?\b(ungrain_\w+)\(", (ROOT / "include/ungrain.h").read_text(), re.M))
        assert len(declared) > 50
        assert {name for name in _exported() if not name.startswith("_Z")} == declared

    def test_cpp_symbols_are_declared_in_public_headers(self, subtests):
        headers = " ".join(path.read_text() for path in (ROOT / "include/ungrain").rglob("*.h*"))
        headers = re.sub(r"//[^\n]*|\bfriend class [^;]*;", "", headers)  # friends are not public
        words = set(re.findall(r"\w+", headers))
        for name in sorted(_exported("-C")):
            if re.match(r"ungrain_\w+$", name):
                continue
            with subtests.test(symbol=name):
                found = re.match(r"(?:(?:typeinfo|typeinfo name|vtable) for |[\w: ]+ (?=ungrain::))?ungrain::([\w:~]+)", name)
                assert found, "not of the API"
                assert not ({part.lstrip("~") for part in found[1].split("::")} - words), "no public header declares it"
                assert "Impl" not in found[1].split("::")

    def test_the_name_has_the_abi_version(self):
        if not shutil.which("readelf"):
            pytest.skip("readelf (binutils) is missing")
        run = subprocess.run(["readelf", "-d", LIBRARY], check=True, capture_output=True, text=True)
        assert f"[libungrain.so.{header.abi_version()}]" in run.stdout


class TestLayout:
    def test_structs_only_grew_since_the_last_release_of_this_abi(self):
        recorded = ROOT / "abi" / header.abi_version() / "layout.txt"
        if not recorded.exists():
            pytest.skip("no release of this ABI is recorded")
        assert not (set(recorded.read_text().splitlines()) - set(header.layout()))
