"""Reports once which arrays the other tests could not use, and why."""

import os

import pytest
from conftest import MAKERS, missing


@pytest.mark.parametrize("name", MAKERS)
def test_arrays_can_be_tried(name):
    reason = missing(name)
    if reason and name != "torch" and "cuda" in os.environ.get("UNGRAIN_REQUIRE", ""):
        pytest.fail(f"{name}: {reason}, and UNGRAIN_REQUIRE says that it must be there")
    if reason:
        pytest.skip(f"{name} arrays: {reason}")
    assert MAKERS[name]()
