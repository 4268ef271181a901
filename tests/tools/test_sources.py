"""tools/sources.py: which files a page of results depends on, and that only code makes it old."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from sources import Sources, tokens  # noqa: E402

FILES = {
    "src/methods/a/cpu.cpp": '#include "methods/a/a.h"\n#include "cpu/kernel.h"\nint a() { return kernel(); }\n',
    "src/methods/a/a.h": "int a();\n",
    "src/methods/a/cases.h": "int cases();\n",
    "src/methods/a/cuda.cu": '#include "methods/a/a.h"\n#include "cuda/load.cuh"\n#include "methods/a/tuning.h"\n',
    "src/methods/a/tuning.h": "constexpr int warps = 8;\n",
    "src/methods/b/cpu.cpp": '#include "methods/b/b.h"\nint b() { return 2; }\n',
    "src/methods/b/b.h": "int b();\n",
    "src/cpu/kernel.h": "int kernel();\nint other_kernel();\n",
    "src/cpu/kernel.cpp": '#include "cpu/kernel.h"\nint kernel() { return 1; }\n',
    "src/cpu/other.cpp": '#include "cpu/kernel.h"\n#include "cpu/unused.h"\nint other_kernel() { return 2; }\n',
    "src/cpu/unused.h": "int unused();\n",
    "src/cpu/user.cpp": '#include "cpu/unused.h"\n#include "cpu/kernel.h"\nint unused() { return kernel(); }\n',
    "src/cuda/load.cuh": "int load();\n",
    "src/io/file.h": "int file();\n",
    "bench/time.cpp": '#include "methods/a/a.h"\n#include "io/file.h"\n// #include "methods/b/b.h"\n',
    "tools/measure": '#!/usr/bin/env python3\n"""Measures."""\nprint("a")\n',
}


class TestRepository:
    @pytest.fixture(autouse=True)
    def repository(self, tmp_path):
        self.root = tmp_path
        for name, text in FILES.items():
            self.write(name, text)
        self.git("init", "-q")
        self.git("add", "-A")

    def git(self, *words):
        identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
        done = subprocess.run(["git", *identity, *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def files(self, *roots):
        return Sources(self.root).files(roots)

    def page(self, *roots, commit=""):
        return f"# Times\n\n- commit: {commit}\n{Sources(self.root).line(roots)}\n"

    def complaint(self, page):
        return Sources(self.root).complaint(page)

    def test_includes_and_implementations_are_followed(self):
        assert self.files("src/methods/a/*.cpp") == [
            "src/cpu/kernel.cpp", "src/cpu/kernel.h", "src/cpu/other.cpp", "src/cpu/unused.h", "src/cpu/user.cpp",
            "src/methods/a/a.h", "src/methods/a/cpu.cpp"]
        assert self.files("src/methods/b/*.cpp") == ["src/methods/b/b.h", "src/methods/b/cpu.cpp"]

    def test_a_header_of_core_may_be_implemented_by_a_backend(self):
        self.write("src/core/threads.h", "int threads();\n")
        self.write("src/cpu/threads.cpp", '#include "core/threads.h"\nint threads() { return 2; }\n')
        self.write("src/cpu/sums.cpp", '#include "core/threads.h"\nint sums() { return threads(); }\n')
        self.write("src/noise/noise.cpp", '#include "core/threads.h"\n')
        self.git("add", "-A")
        assert self.files("src/noise/*.cpp") == ["src/core/threads.h", "src/cpu/threads.cpp", "src/noise/noise.cpp"]

    def test_a_gpu_page_has_the_headers_of_its_kernels(self):
        assert self.files("src/methods/a/*.cu") == [
            "src/cuda/load.cuh", "src/methods/a/a.h", "src/methods/a/cuda.cu", "src/methods/a/tuning.h"]

    def test_folders_can_be_left_out(self):
        assert "src/io/file.h" in self.files("bench/time.cpp")
        without = self.files("bench/time.cpp", "without:src/io")
        assert "src/io/file.h" not in without
        assert "src/methods/a/a.h" in without
        assert "src/methods/b/b.h" not in without  # its include is a comment

    def test_prose_makes_no_page_old(self):
        page = self.page("src/methods/a/*.cpp", "tools/measure")
        assert self.complaint(page) is None
        self.write("src/cpu/kernel.cpp", '// Why.\n#include "cpu/kernel.h"\n\nint kernel() {\n  return /* one */ 1;\n}\n')
        self.write("tools/measure", '#!/usr/bin/env python3\n"""Measures times."""\n# Why.\nprint(\n    "a")\n')
        self.write("src/methods/a/README.md", "# a\n")
        self.write("src/methods/a/cases.h", "int more_cases();\n")
        self.write("src/methods/a/tuning.h", "constexpr int warps = 4;\n")
        self.write("src/methods/b/cpu.cpp", "int b() { return 3; }\n")
        self.git("add", "-A")
        assert self.complaint(page) is None

    def test_code_makes_a_page_old_and_is_named(self):
        self.git("commit", "-qm", "First")
        commit = self.git("rev-parse", "--short", "HEAD")
        page = self.page("src/methods/a/*.cpp", commit=commit)
        self.write("src/cpu/kernel.cpp", '#include "cpu/kernel.h"\nint kernel() { return 7; }\n')
        assert self.complaint(page) == "is older than its sources: src/cpu/kernel.cpp"
        unknown = page.replace(commit, "abcdef0")
        assert self.complaint(unknown) == "is older than its sources (src/methods/a/*.cpp)"

    def test_a_new_file_makes_a_page_old(self):
        page = self.page("src/methods/a/*.cpp")
        self.write("src/methods/a/fast.cpp", "int fast();\n")
        self.git("add", "-A")
        assert "older" in self.complaint(page)

    def test_lines_of_the_former_kind_are_old(self):
        assert "older" in self.complaint("- sources: src cli 0123456789abcdef\n")
        assert "does not say" in self.complaint("# Times\n")


class TestTokens:
    def same(self, name, first, second):
        assert tokens(name, first) == tokens(name, second)

    def differ(self, name, first, second):
        assert tokens(name, first) != tokens(name, second)

    def test_of_c(self):
        self.same("a.cpp", "int a = 1'000; // it's\n", "int a=1'000;")
        self.same("a.cu", "f(a,/* b,\n c */ d);", "f(a, d);")
        self.differ("a.cpp", 'f("a // b");', 'f("a // c");')
        self.differ("a.cpp", 'f(R"(a /* b */)");', 'f(R"(a)");')
        self.differ("a.h", "int ab;", "int a b;")
        self.differ("a.h", "x = '\"'; // a\ny = 1;", "x = '\"'; // a\ny = 2;")

    def test_of_python(self):
        self.same("a.py", 'def f():\n    """Why."""\n    return g(1,\n             2)  # so\n', "def f():\n\n    return g(1, 2)\n")
        self.same("tool", '#!/usr/bin/env python3\n"""Why."""\nx = 1\n', "#!/usr/bin/python\nx = 1\n")
        self.differ("a.py", "if a:\n    b\nc\n", "if a:\n    b\n    c\n")
        self.differ("a.py", 'x = "a # b"\n', 'x = "a # c"\n')
        self.differ("a.py", 'x = """a"""\n', 'x = """b"""\n')

    def test_of_anything_else(self):
        self.same("run", "#!/bin/bash\n# why\nls  -l\n", "#!/bin/bash\nls  -l\n")
        self.differ("run", "#!/bin/bash\nls\n", "#!/bin/bash\npwd\n")


class TestPages:
    """Every root that a page of this repository names leads to files."""

    def test_roots_lead_to_files(self):
        import machine

        sources = Sources()
        if not sources.known():
            pytest.skip("not a git repository")
        groups = [machine.METHODS_CODE, machine.NOISE_CODE, machine.ENGINE_CODE, machine.SCENE_CODE, [machine.method_code("bm3d")]]
        for roots in groups:
            assert sources.files(roots), roots
        for_bm3d = sources.files([machine.method_code("bm3d")])
        assert "src/cpu/workers.cpp" in for_bm3d
        assert "src/methods/nlm/cpu.cpp" not in for_bm3d
        assert not [name for name in for_bm3d if name.endswith((".cu", ".cuh")) or name.startswith("src/cuda/")]
        on_gpu = sources.files(["src/methods/*.cu", "src/cuda/*.cu", "src/groups/*.cu"])
        kernels = [name for name in sources.files(["src/*.cuh"]) if name.endswith(".cuh")]
        assert kernels
        assert set(kernels) <= set(on_gpu)
