"""tools/test-results: the summary of what CTest, pytest and GoogleTest wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools/test-results"


@pytest.fixture
def summary(tmp_path):
    """Runs the tool on CTest's cases and on the suites' files that a test wrote; the exit status and the lines."""
    def run(ctest: str, **suites: str) -> tuple[int, list[str]]:
        (tmp_path / "ctest.xml").write_text(f"<testsuite>{ctest}</testsuite>")
        for name, cases in suites.items():
            (tmp_path / f"{name}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
        done = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True)
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()
    return run


def case(name: str, status: str, output: str = "") -> str:
    return f'<testcase name="{name}" status="{status}"><system-out>{output}</system-out></testcase>'


def test_counts_single_tests_and_suites_without_any(summary):
    status, lines = summary(case("cli", "run") + case("consumer", "run"),
                            cli='<testcase classname="a" name="one"/><testcase classname="a" name="two"/>')
    assert status == 0
    assert lines[-1] == "3 passed, 0 failed, 0 skipped"


def test_names_what_failed(summary):
    status, lines = summary(case("cli", "fail"), cli='<testcase classname="a" name="one"><failure/></testcase><testcase classname="a" name="two"><error/></testcase>')
    assert status == 1
    assert "  cli: a.one" in lines and "  cli: a.two" in lines
    assert lines[-1] == "0 passed, 2 failed, 0 skipped"


@pytest.mark.parametrize("suites", [{}, {"cpp": '<testcase classname="a" name="one"/>'}], ids=["nothing written", "after the last test"])
def test_a_suite_that_crashed_has_failed(summary, suites):
    status, lines = summary(case("cpp", "fail", "Segmentation fault"), **suites)
    assert status == 1
    assert "  cpp" in lines
    assert lines[-1] == f"{len(suites)} passed, 1 failed, 0 skipped"


def test_reasons_of_skips_are_counted_over_the_parts_of_a_program(summary):
    skipped = '<testcase classname="Gpu" name="{}" status="run" result="skipped"><skipped message="gpu_test.cpp:3&#10;no GPU"/></testcase>'
    status, lines = summary(case("cpp-1", "run") + case("cpp-2", "run") + case("kernels", "notrun", "searched\nbuilt without CUDA"),
                            **{"cpp-1": skipped.format("one"), "cpp-2": skipped.format("two") + '<testcase classname="a" name="b" status="run"/>'})
    assert status == 0
    assert "  2 cpp: no GPU" in lines
    assert "  1 kernels: built without CUDA" in lines
    assert lines[-1] == "1 passed, 0 failed, 3 skipped"


def test_nothing_passed_is_a_failure(summary):
    status, lines = summary(case("cli", "notrun", "python3 is missing"))
    assert status == 1
    assert lines[-1] == "0 passed, 0 failed, 1 skipped"
