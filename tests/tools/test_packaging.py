"""Recipes and workflows, as far as they can be read without the services that they are for."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SCRIPTS = ["tools/packages", "tools/check-packages", "tools/release-wheel", "tools/check-wheel", "tools/old-libc"]

# What a portfile calls, so that CMake reads it.
VCPKG = """cmake_minimum_required(VERSION 3.25)
set(CURRENT_PACKAGES_DIR ${CMAKE_CURRENT_BINARY_DIR}/packages)
set(FEATURES tools)
foreach(name from_github check_features cmake_configure cmake_install cmake_config_fixup fixup_pkgconfig copy_tools install_copyright)
  cmake_language(EVAL CODE "function(vcpkg_${name})\\nendfunction()")
endforeach()
include(%s)
"""


def yaml():
    """PyYAML of this Python or of the tests' environment."""
    try:
        import yaml as module
        return module
    except ImportError:
        for folder in sorted((ROOT / "build/venv/lib").glob("python3*/site-packages")):
            if (folder / "yaml").is_dir():
                sys.path.append(str(folder))
                import yaml as module
                return module
    pytest.skip("PyYAML is missing")


def checker():
    for place in (ROOT / "build/venv/bin/check-jsonschema", shutil.which("check-jsonschema")):
        if place and pathlib.Path(place).exists():
            return str(place)
    pytest.skip("check-jsonschema is missing")


class TestWorkflows:
    def test_are_workflows(self):
        """Against GitHub's schema, which check-jsonschema carries."""
        assert len(WORKFLOWS) == 5
        done = subprocess.run([checker(), "--builtin-schema", "vendor.github-workflows", *WORKFLOWS], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout

    def test_actionlint(self):
        if not shutil.which("actionlint"):
            pytest.skip("actionlint is missing")
        done = subprocess.run(["actionlint"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout

    def test_run_what_is_there(self):
        """make's targets, CMake's presets and the files of the repository."""
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
        presets = {preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
        called = 0
        for workflow in WORKFLOWS:
            for job in yaml().safe_load(workflow.read_text())["jobs"].values():
                commands = "\n".join(step.get("run", "") for step in job["steps"])
                for target in re.findall(r"(?:^|&& )make ([a-z-]+)", commands, re.M):
                    assert target in targets, workflow.name
                    called += 1
                for preset in re.findall(r"--preset ([a-z-]+)", commands):
                    assert preset in presets, workflow.name
                for file in re.findall(r"(?:^|\s)((?:tools|\.ci|packaging)/[\w./-]+)", commands):
                    assert (ROOT / file).exists(), file
        assert called > 5


class TestRecipes:
    def test_are_filled_in_for_a_release(self, subtests):
        loader = importlib.machinery.SourceFileLoader("recipes", str(ROOT / "tools/recipes"))
        recipes = importlib.util.module_from_spec(importlib.util.spec_from_loader("recipes", loader))
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        loader.exec_module(recipes)
        sys.dont_write_bytecode = before
        for name in recipes.RECIPES:
            text = recipes.filled((ROOT / "packaging" / name).read_text(), "somebody", b"archive")
            with subtests.test(name=name):
                for placeholder in ("OWNER", "0" * 64, "0.0.0"):
                    assert placeholder not in text
                if name.endswith(".json"):
                    assert json.loads(text)["version"] == recipes.version()

    def test_conda(self):
        recipe = yaml().safe_load((ROOT / "packaging/conda-forge/recipe.yaml").read_text())
        assert [output["package"]["name"] for output in recipe["outputs"]] == ["libungrain", "ungrain"]

    def test_name_options_that_there_are(self):
        known = set(re.findall(r"UNGRAIN_[A-Z]+", (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cmake/fetch.cmake").read_text()))
        files = [*(ROOT / "packaging").rglob("*"), *WORKFLOWS, ROOT / "pyproject.toml"]
        for file in files:
            if file.is_file() and file.suffix not in (".md", ".pyc"):
                for option in re.findall(r"UNGRAIN_[A-Z]+", file.read_text()):
                    assert option in known, file.name

    def test_portfile_is_cmake(self):
        if not shutil.which("cmake"):
            pytest.skip("cmake is missing")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "read.cmake")
            script.write_text(VCPKG % (ROOT / "packaging/vcpkg/portfile.cmake"))
            done = subprocess.run(["cmake", "-P", script], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr

    def test_formula_is_ruby(self):
        if not shutil.which("ruby"):
            pytest.skip("ruby is missing")
        done = subprocess.run(["ruby", "-c", ROOT / "packaging/homebrew/ungrain.rb"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def test_scripts_are_shell(self):
        for script in [*SCRIPTS, "packaging/debian/postinst", "packaging/debian/prerm"]:
            done = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
