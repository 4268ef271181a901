"""The installed package: it imports anywhere, contains its dependencies, and its stubs match its functions."""

import ast
import inspect
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest
from conftest import has

import ungrain

PACKAGE = pathlib.Path(ungrain.__file__).parent


def test_imports_without_gpu_or_driver():
    """In an interpreter that sees no GPU and loads nothing of the user's."""
    code = ("import os; os.environ['CUDA_VISIBLE_DEVICES'] = ''; import ungrain, numpy as np; "
            "print(ungrain.box(np.zeros((4, 4), 'f4')).shape, [d.name for d in ungrain.devices()][0])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(4, 4) cpu\n", done.stderr


@pytest.mark.parametrize("module, code", [("dask", "import ungrain.dask"),
                                          ("zarr", "import sys, ungrain.cluster; "
                                           "sys.exit(ungrain.cluster.main(['in.zarr', 'out.zarr']))")])
def test_missing_packages_are_named(module, code):
    """And never another project that happens to have our name."""
    code = f"import sys; sys.modules['{module}'] = None; {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install dask distributed zarr" in done.stderr.splitlines()[-1]


def test_nobody_is_sent_to_a_project_that_is_not_ours():
    root = pathlib.Path(__file__).parents[2]
    files = [file for folder in ("cli", "docs", "examples", "python", "src") for file in (root / folder).rglob("*")
             if file.suffix in (".md", ".py", ".cpp", ".h", ".cu") and file != pathlib.Path(__file__)]
    assert len(files) > 50
    assert [str(file) for file in files if "pip install ungrain" in file.read_text()] == []


def test_import_loads_no_other_array_library():
    code = "import sys, ungrain; print([m for m in ('cupy', 'torch', 'cv2', 'skimage', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_module_needs_only_what_is_everywhere_or_beside_it():
    libs = PACKAGE / "libs"
    if not libs.is_dir():
        pytest.skip("built in place, not from a wheel")
    module = next(PACKAGE.glob("_core*.so"))
    done = subprocess.run(["ldd", str(module)], capture_output=True, text=True, check=True)
    everywhere = ("linux-vdso", "libstdc++", "libm.", "libgcc_s", "libc.", "ld-linux", "libpthread", "libdl", "librt",
                  "/lib/ld-", "/lib64/ld-")
    for line in done.stdout.splitlines():
        name, _, where = line.strip().partition(" => ")
        if not name.startswith(everywhere):
            assert pathlib.Path(where.split()[0]).parent.resolve() == libs.resolve(), line


def test_stubs_are_the_signatures():
    stubs = PACKAGE / "_methods.pyi"
    tree = ast.parse(stubs.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for method in {*ungrain.methods(), *ungrain.volume_methods()}:
        name = method.replace("-", "_")
        arguments = functions[name].args
        shown = inspect.signature(getattr(ungrain, name)).parameters
        assert [a.arg for a in arguments.args + arguments.kwonlyargs] == list(shown)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
            assert ast.literal_eval(default) == shown[argument.arg].default
        assert inspect.cleandoc(ast.get_docstring(functions[name])) == inspect.cleandoc(getattr(ungrain, name).__doc__)
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_core.pyi").exists()


USE = """
import numpy as np
import ungrain

image = np.zeros((4, 4), np.uint8)
result = ungrain.bilateral(image, radius=3, window="disc")
result.astype(float)
denoiser = ungrain.Denoiser("nlm", like=image)
number: float = denoiser.report.ms
ungrain.nlm(image, search="whole-image", axis=0, out=image, progress=print)
volume = np.zeros((8, 8, 8), np.float32)
ungrain.bm4d(volume, sigma=0.1, spacing=(3, 1, 1), rician=True).astype(float)
ungrain.denoise_volume(volume, "median", out=volume)
level: float = ungrain.estimate_rician(volume).sigma
"""


@pytest.mark.skipif(not has("mypy"), reason="mypy is missing")
def test_type_checkers_understand_it(tmp_path):
    if "site-packages" not in PACKAGE.parts:
        pytest.skip("built in place, not from a wheel")

    def check(code):
        file = tmp_path / "use.py"
        file.write_text(code)
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)],
                              capture_output=True, text=True, cwd=tmp_path, check=False).stdout
    assert "Success" in check(USE)
    complaint = check(USE + 'ungrain.bilateral(image, window="round")\nungrain.nlm(image, radius=3)\n')
    assert "Found 2 errors" in complaint, complaint


def test_source_archive_is_complete():
    """The tests' wheel uses the library that is built already; a user's wheel is compiled from these files."""
    if "UNGRAIN_SDIST" not in os.environ:
        pytest.skip("not built from an archive")
    root = pathlib.Path(__file__).resolve().parents[2]
    with tarfile.open(os.environ["UNGRAIN_SDIST"]) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("src", "include", "cmake", "python"):
        for file in (root / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert str(file.relative_to(root)) in held
    assert {"CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "PKG-INFO"} <= held
    assert not any(name.startswith(("build/", "docs/", "study/")) for name in held)


def test_version():
    assert ungrain.__version__.count(".") == 2
