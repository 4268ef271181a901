"""The table of all rows, after the tests."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser):
    parser.addoption("--table", action="store_true", help="print every row, not only those that are wrong or poor")


def pytest_configure(config):
    config.verdicts = {}


@pytest.fixture
def verdicts(request):
    return request.config.verdicts


def pytest_terminal_summary(terminalreporter, config):
    verdicts = config.verdicts
    if not verdicts:
        return
    everything = config.getoption("--table")
    for name, verdict in verdicts.items():
        if everything or verdict.word in ("wrong", "poor"):
            terminalreporter.write_line(f"{verdict.word:8}{name:44}{verdict.why[:200]}".rstrip())
    words = [verdict.word for verdict in verdicts.values()]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("right", "error", "wrong", "poor", "skipped"))
    terminalreporter.write_line(f"{len(words)} files: {counts}")
