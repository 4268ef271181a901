"""Which folder may include which: the drawing of docs/architecture.md."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include ["<]([a-z_]+)/', re.M)

MAY_INCLUDE = {
    "platform": set(),
    "core": {"device", "noise", "platform"},
    "device": {"core"},
    "cpu": {"core", "device", "platform"},
    "cuda": {"core", "device"},
    "methods": {"core", "noise", "cpu", "cuda", "groups", "motion", "platform"},
    "groups": {"core", "cpu", "cuda"},
    "motion": {"core", "cuda"},
    "noise": {"core", "device"},
    "metrics": {"core"},
    "video": {"core"},
    "c": set(),
    "scene": set(),
    "io": {"platform"},
    "page": {"io"},
    "cli": {"io", "page", "platform", "scene"},
    "python": set(),
}
# The one list of backends and the noise estimate's kernels.
BESIDES = {"src/device/backends.cpp": {"cpu", "cuda"}, "src/cuda/noise_pass.h": {"noise"}, "src/cuda/noise_pass.cu": {"noise"}}
# The part of src/platform that belongs to the library; the rest belongs to src/io (CMakeLists.txt).
OF_THE_LIBRARY = "platform/machine.h"
# Arithmetic without any symbols: a constant that both kinds of kernel share, and functions with the same bits everywhere.
SHARED = {"cpu/exp.h", "core/portable_math.h"}


def _sources(folder):
    base = ROOT / {"cli": "cli", "python": "python/src"}.get(folder, f"src/{folder}")
    return sorted(path for path in base.rglob("*") if path.suffix in (".h", ".cpp", ".cu", ".cuh"))


class TestFloors:
    def test_every_folder_is_in_the_table(self):
        folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
        assert folders | {"cli", "python"} == set(MAY_INCLUDE)

    def test_folders_include_what_is_below_them(self, subtests):
        for folder, allowed in MAY_INCLUDE.items():
            for path in _sources(folder):
                name = path.relative_to(ROOT).as_posix()
                text = path.read_text()
                for header in SHARED:
                    text = text.replace(f'"{header}"', "")
                above = set(INCLUDE.findall(text)) & set(MAY_INCLUDE)
                above -= allowed | {folder} | BESIDES.get(name, set())
                with subtests.test(file=name):
                    assert not above, "docs/architecture.md says what may be included"

    def test_what_is_linked_to_the_library_uses_public_headers_alone(self):
        """The program, its own libraries and the C API: a shared library hides the rest."""
        inside = set(MAY_INCLUDE) - {"cli", "python", "c", "io", "page", "platform", "scene"}
        for folder in ("cli", "python", "c", "io", "page", "scene"):
            assert not (MAY_INCLUDE[folder] & inside), folder
        assert "../src" not in (ROOT / "python/CMakeLists.txt").read_text()

    def test_the_library_and_the_program_share_nothing_of_the_platform(self, subtests):
        """Each has its part of src/platform: a shared library would hide what the program asks for."""
        for folder in MAY_INCLUDE:
            for path in _sources(folder):
                headers = set(re.findall(r'^#include "(platform/\w+\.h)"', path.read_text(), re.M))
                with subtests.test(file=path.relative_to(ROOT).as_posix()):
                    if folder in ("io", "cli"):
                        assert OF_THE_LIBRARY not in headers
                    elif folder != "platform":
                        assert headers <= {OF_THE_LIBRARY}

    def test_public_headers_are_exported(self, subtests):
        """What a shared library exports is declared between these marks (ungrain/export.h)."""
        without_functions = {"export.h", "half.h", "ungrain.h"}  # of the library
        for path in sorted((ROOT / "include/ungrain").glob("*.h")):
            if path.name not in without_functions:
                with subtests.test(file=path.name):
                    assert re.search(r"\nUNGRAIN_API_BEGIN\nnamespace ungrain \{\n(?s:.*)\n\}  // namespace ungrain\nUNGRAIN_API_END\n$",
                                     path.read_text())

    def test_integrations_include_the_api_alone(self, subtests):
        for path in sorted((ROOT / "integrations").glob("*/src/*.[ch]*")):  # C++ or C
            with subtests.test(file=path.relative_to(ROOT).as_posix()):
                assert set(INCLUDE.findall(path.read_text())) <= {"ungrain"}

    def test_methods_include_no_other_method(self, subtests):
        for path in _sources("methods"):
            with subtests.test(file=path.relative_to(ROOT).as_posix()):
                included = set(re.findall(r'^#include "methods/(\w+)/', path.read_text(), re.M))
                assert included <= {path.parent.name}
