"""The verdict on each row, computed on all processors; and the table of them after the tests."""

import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from judge import judge  # noqa: E402
from verdict import Verdict  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--table", action="store_true", help="print every row, not only those that are wrong or poor")


def pytest_configure(config):
    config.table = {}
    warnings.simplefilter("ignore")  # libraries warn of what many rows are made for


def rows_of(session):
    parameters = [item.callspec.params for item in session.items if hasattr(item, "callspec")]
    return [given["row"] for given in parameters if "row" in given]


@pytest.fixture(scope="session")
def verdicts(request, tmp_path_factory):
    """Row by name to the future of its verdict. Threads suffice: nearly all of the time is the program's own."""
    root = tmp_path_factory.mktemp("files")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {row.name: pool.submit(judge, row, root) for row in rows_of(request.session) if not row.missing()}
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def note(request):
    """Puts a row into the table."""

    def put(row, verdict: Verdict):
        request.config.table[row.name] = verdict

    return put


def pytest_terminal_summary(terminalreporter, config):
    if not config.table:
        return
    for name, verdict in config.table.items():
        if config.getoption("--table") or verdict.word in ("wrong", "poor"):
            terminalreporter.write_line(f"{verdict.word:8}{name:44}{verdict.why[:200]}".rstrip())
    words = [verdict.word for verdict in config.table.values()]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("right", "error", "wrong", "poor", "skipped"))
    terminalreporter.write_line(f"{len(words)} files: {counts}")
