"""The filter of CONTRIBUTING.md for tests on a GPU: every test that needs one is matched by it."""
import fnmatch
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST = re.compile(r"^(TEST|TEST_F|TEST_P)\((\w+), (\w+)\)")
NEEDS_GPU = "UNGRAIN_NEEDS_GPU();"


def _filter():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.findall(r"UNGRAIN_REQUIRE=cuda ungrain-tests --gtest_filter='([^']+)'", text)
    assert len(found) == 1, f"CONTRIBUTING.md has {len(found)} filters for tests on a GPU, expected one"
    return found[0].split(":")


def names_that_need_a_gpu(source):
    """Names of tests that need a GPU in every case. Those that need one only for some parameters are left out: the names
    of these cases carry the device, "cuda"."""
    name = ""
    for line in source.splitlines():
        if begins := TEST.match(line):
            name = f"{begins[2]}.{begins[3]}"
        if line.strip() == NEEDS_GPU:
            yield name


class TestGpuFilter:
    def test_it_matches_every_test_that_needs_a_gpu(self):
        patterns = _filter()
        needing = [(path.name, name) for path in sorted((ROOT / "tests").glob("*.cpp"))
                   for name in names_that_need_a_gpu(path.read_text())]
        assert len(needing) > 40
        missed = [f"{file}: {name}" for file, name in needing
                  if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
        assert missed == [], "not matched by the filter in CONTRIBUTING.md: rename the test, or widen the filter"

    def test_other_tests_need_a_gpu_for_its_cases_alone(self):
        for path in sorted((ROOT / "tests").glob("*.cpp")):
            for line in path.read_text().splitlines():
                if NEEDS_GPU in line and line.strip() != NEEDS_GPU:
                    assert re.search(r"device\.kind == Device::Kind::cuda\) UNGRAIN_NEEDS_GPU", line), path.name
