"""Which files a page of docs/results depends on, and a hash of their code.

A page names roots: files as git names them (`src/methods/nlm/*.cpp`; * matches / too). It depends on the roots and on what they need:

- files that they include (`#include "…"`), and files that those include;
- for each of these headers the sources that implement it: those that include it before any other file and are in its folder, or in
  another folder of src/ under its name (core/workers.h is implemented by cpu/workers.cpp). A method's own
  header (src/methods/NAME/NAME.h) brings none, because it declares all backends: the roots say which of them.

`without:src/io` leaves that folder out, except its roots. What runs on a GPU belongs to a page only if a root is a .cu file; test cases of
methods (src/methods/*/cases.h) never do. The hash is of the files' tokens, without
comments, docstrings and white space: a page is out of date when code changed, not when prose did."""
import hashlib
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE_FOLDERS = ("src", "include", "")  # as CMake gives them to the compiler
WITHOUT = "without:"
C_LIKE = {".h", ".cpp", ".cu", ".cuh"}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.M)
_C_COMMENT = r"//(?:\\\n|[^\n])*|/\*.*?\*/"
_C_TOKEN = re.compile(rf'(?P<comment>{_C_COMMENT})|R"(?P<raw>[^()\\\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|'
                      r"\d(?:'?[\w.])*|'(?:\\.|[^'\\\n])*'|\w+|[^\w\s]", re.S)
_PYTHON_TOKEN = re.compile(r'(?P<comment>#[^\n]*)|(?P<line>\\\n|\n[ \t]*)|'
                           r'(?P<string>(?:\b[rbfuRBFU]{1,2})?(?:"""(?:\\.|.)*?"""|' r"'''(?:\\.|.)*?'''|"
                           r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'))|\w+|[^\w\s]", re.S)


def _c_tokens(text):
    return [match.group() for match in _C_TOKEN.finditer(text) if match["comment"] is None]


def _python_tokens(text):
    """Lines of one string alone are docstrings. A line's indentation counts, line breaks within brackets do not."""
    lines, depth = [["\n"]], 0
    strings = set()
    for match in _PYTHON_TOKEN.finditer(text):
        token = match.group()
        if match["comment"] is not None or token == "\\\n":
            continue
        if match["line"] is not None:
            if depth == 0:
                lines.append([token])
            continue
        depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
        if match["string"] is not None and len(lines[-1]) == 1:
            strings.add(len(lines) - 1)
        lines[-1].append(token)
    return [token for number, line in enumerate(lines)
            if len(line) > 1 and not (len(line) == 2 and number in strings) for token in line]


def tokens(name, text):
    """What counts of a file: its code."""
    path = pathlib.PurePosixPath(name)
    if path.suffix in C_LIKE:
        return _c_tokens(text)
    if path.suffix == ".py" or re.match(r"#!.*python", text):
        return _python_tokens(text)
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


class Sources:
    """The tracked files of a repository and who includes whom."""

    def __init__(self, root=ROOT):
        self._root = pathlib.Path(root)
        self._tracked = set(self._git())
        self._included = {name: self._includes(name) for name in self._tracked if self._suffix(name) in C_LIKE}

    def _git(self, *patterns):
        try:
            done = subprocess.run(["git", "ls-files", "--", *patterns], cwd=self._root, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return []  # no git, or a source archive
        return done.stdout.splitlines()

    def known(self):
        """Whether there is a repository that tells its files."""
        return bool(self._tracked)

    @staticmethod
    def _suffix(name):
        return pathlib.PurePosixPath(name).suffix

    def read(self, name):
        path = self._root / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def _includes(self, name):
        text = re.sub(rf'({_C_COMMENT})|"[^"\n]*"', lambda match: " " if match[1] else match[0], self.read(name), flags=re.S)
        folder = pathlib.PurePosixPath(name).parent
        found = []
        for written in _INCLUDE.findall(text):
            places = (pathlib.PurePosixPath(place, written).as_posix() for place in (folder, *INCLUDE_FOLDERS))
            found += [place for place in places if place in self._tracked][:1]
        return found

    def _implementations(self, header):
        path = pathlib.PurePosixPath(header)
        if re.fullmatch(r"src/methods/(\w+)/\1\.h", header):
            return []

        def implements(source):
            same_name = source.stem == path.stem and header.startswith("src/") and source.is_relative_to("src")
            return source.suffix in (".cpp", ".cu") and (source.parent == path.parent or same_name)

        return [name for name, included in self._included.items()
                if included[:1] == [header] and implements(pathlib.PurePosixPath(name))]

    def files(self, roots):
        """All files that a page with these roots depends on, sorted."""
        patterns = [root for root in roots if not root.startswith(WITHOUT)]
        left_out = tuple(root.removeprefix(WITHOUT) + "/" for root in roots if root.startswith(WITHOUT))
        waiting = [name for name in self._git(*patterns) if self._suffix(name) != ".md"] if patterns else []
        of_roots = set(waiting)
        on_gpu = any(self._suffix(name) in (".cu", ".cuh") for name in waiting)
        found = set()
        while waiting:
            name = waiting.pop()
            for_gpu = name.startswith("src/cuda/") or self._suffix(name) in (".cu", ".cuh")
            if name in found or (for_gpu and not on_gpu) or re.fullmatch(r"src/methods/\w+/cases\.h", name):
                continue
            if name.startswith(left_out) and name not in of_roots:
                continue
            found.add(name)
            waiting += self._included.get(name, [])
            if self._suffix(name) in (".h", ".cuh"):
                waiting += self._implementations(name)
        return sorted(found)

    def code_hash(self, roots):
        digest = hashlib.sha256()
        for name in self.files(roots):
            digest.update("\n".join([name, *tokens(name, self.read(name)), ""]).encode() + b"\0")
        return digest.hexdigest()[:16]

    def line(self, roots):
        """What a page says of its sources."""
        return f"- sources: {' '.join(roots)} code:{self.code_hash(roots)}"

    def _at(self, commit, name):
        done = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=self._root, capture_output=True)
        return done.stdout.decode(errors="replace")

    def changed_since(self, commit, roots):
        """Files whose code is another than at that commit; none where the commit is unknown."""
        known = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=self._root, capture_output=True)
        if known.returncode:
            return []
        return [name for name in self.files(roots) if tokens(name, self._at(commit, name)) != tokens(name, self.read(name))]

    def complaint(self, page):
        """Why a page is out of date; None: it is not."""
        found = re.search(r"^- sources: (.+) (code:)?([0-9a-f]{16})$", page, re.M)
        if not found:
            return "does not say which sources it speaks of"
        roots = found[1].split()
        if not found[2]:
            return f"is older than its sources, by a hash of whole files, comments included ({' '.join(roots)})"
        if self.code_hash(roots) == found[3]:
            return None
        commit = re.search(r"^- commit: ([0-9a-f]{7,40})\b", page, re.M)
        changed = self.changed_since(commit[1], roots) if commit else []
        if not changed:
            return f"is older than its sources ({' '.join(roots)})"
        rest = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
        return f"is older than its sources: {', '.join(changed[:4])}{rest}"
