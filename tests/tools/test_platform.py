"""What only some systems have is included in src/platform alone."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.M)
FOLDERS = ("include", "src", "cli", "python/src")

# Headers of POSIX, Linux, macOS or Windows. Those of ISO C and C++ are everywhere.
OF_SOME_SYSTEMS = re.compile(
    r"""(sys|arpa|asm|linux|mach|mach-o|net|netinet|libkern|os|dispatch)/.+
    | (aio|dirent|dlfcn|execinfo|fcntl|fnmatch|ftw|glob|grp|iconv|ifaddrs|langinfo|libgen|link|malloc|netdb|poll|pthread|pwd|sched
      |semaphore|signal|spawn|strings|sysexits|syslog|termios|ucontext|unistd|utime|wordexp)\.h
    | (windows|winsock2|ws2tcpip|shellapi|shlobj|psapi|bcrypt|io|direct|process|conio|fileapi|handleapi)\.h""", re.X)

# file: the headers it may include, and why.
ALLOWED = {
    # The CUDA backend is built and tested on Linux alone. Its driver is looked for by libcuda.so.1, and memory in pages of
    # 2 MiB is Linux's.
    "src/cuda/discovery.cpp": {"dlfcn.h"},
    "src/cuda/memory.cpp": {"sys/mman.h"},
}


def _sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".in", ".cpp", ".cu", ".cuh"):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


class TestPlatform:
    def test_headers_of_some_systems_are_in_one_folder(self, subtests):
        for name, text in _sources():
            if name.startswith("src/platform/"):
                continue
            found = {header for header in INCLUDE.findall(text) if OF_SOME_SYSTEMS.fullmatch(header)}
            with subtests.test(file=name):
                assert not (found - ALLOWED.get(name, set())), "belongs into src/platform (docs/platforms.md)"

    def test_exceptions_are_needed(self):
        texts = dict(_sources())
        for name, headers in ALLOWED.items():
            assert headers <= set(INCLUDE.findall(texts[name])), name

    def test_systems_are_told_apart_in_one_folder(self, subtests):
        allowed = {"include/ungrain/export.h"}  # what a DLL exports is marked in the public headers
        for name, text in _sources():
            if name.startswith("src/platform/") or name in allowed:
                continue
            with subtests.test(file=name):
                assert not re.search(r"\b(_WIN32|__APPLE__|__linux__|__unix__|_MSC_VER)\b", text)

    def test_functions_have_both_branches(self, subtests):
        """Every function of a header is defined for POSIX and for Windows."""
        for header in ("console", "files", "processes"):
            text = re.sub(r"//.*", "", (ROOT / f"src/platform/{header}.h").read_text())
            names = set(re.findall(r"^[\w:<>*& ]+[ *&](\w+)\([^;{]*\)(?: noexcept)?;", text, re.M))
            assert len(names) > 4
            for system in ("posix", "windows"):
                code = (ROOT / f"src/platform/{header}_{system}.cpp").read_text()
                with subtests.test(header=header, system=system):
                    assert not {name for name in names if not re.search(rf"^[^ ].*\b{name}\(", code, re.M)}

    def test_headers_are_recognised(self):
        for header in ("unistd.h", "sys/stat.h", "windows.h", "mach/mach.h", "signal.h"):
            assert OF_SOME_SYSTEMS.fullmatch(header), header
        for header in ("csignal", "filesystem", "math.h", "stdint.h", "cuda_runtime.h"):
            assert not OF_SOME_SYSTEMS.fullmatch(header), header
