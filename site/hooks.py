"""MkDocs' hooks: what the site has besides the pages in docs/.

README.md is the home page. Files elsewhere in the repository that a page links become pages, so that every link of the documents leads
somewhere here as it does in the repository. The reference is made from the public headers (Doxygen) and from the Python package.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import cpp_api  # noqa: E402
import python_api  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
# A link, or code between backticks, in which brackets are no links.
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)(\))|`[^`\n]*`")
LANGUAGES = {".py": "python", ".cpp": "cpp", ".h": "cpp", ".cu": "cpp", ".cuh": "cpp", ".json": "json", ".lua": "lua", ".xml": "xml",
             ".toml": "toml", ".yaml": "yaml", ".js": "javascript"}

# Path in the repository of each page that is not in docs/, by its name in the site.
origins: dict[str, str] = {}


def _site_name(path: str) -> str:
    """A file's or folder's name in the site, by its path in the repository."""
    if path == "README.md":
        return "index.md"
    if path.startswith("include/") and path.endswith(".h") and cpp_api.available():
        return "api/cpp/" + path.removeprefix("include/ungrain/").removesuffix(".h") + ".md"
    # MkDocs leaves out what begins with a dot, such as .github.
    inside = path.removeprefix("docs/") if path.startswith("docs/") else "repository/" + path.removeprefix(".")
    target = ROOT / path
    if target.is_dir():
        return inside.rstrip("/") + ("/README.md" if (target / "README.md").exists() else "/index.md")
    return inside if target.suffix == ".md" or path.startswith("docs/") else inside + ".md"


def _outside_code(text: str, change) -> str:
    """Applies `change` to what is not in a code block."""
    pieces = re.split(r"(^ *```.*?^ *```\s*?$)", text, flags=re.M | re.S)
    return "".join(piece if index % 2 else change(piece) for index, piece in enumerate(pieces))


def _links(text: str) -> list[str]:
    found = []
    _outside_code(text, lambda piece: found.extend(match[2] for match in LINK.finditer(piece) if match[2]) or piece)
    return found


def _repository_path(origin: str, link: str) -> str | None:
    """What a link of a page leads to, from the repository's root; None where it leads elsewhere."""
    path = link.partition("#")[0]
    if not path or re.match(r"[a-z]+:", link):
        return None
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    return joined if (ROOT / joined).exists() and not joined.startswith("..") else None


def _content(path: str) -> str:
    """The page that shows a file or a folder of the repository."""
    target = ROOT / path
    if target.is_dir():
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in target.iterdir() if not entry.name.startswith((".", "__")))
        listed = [name for name in names if not name.endswith(("/", ".json"))]
        return f"# {path}\n\n" + "".join(f"- [{_title(target / name)}]({name})\n" for name in listed)
    text = target.read_text(encoding="utf-8", errors="replace")
    if target.suffix == ".md":
        return text
    return f"# {path}\n\n````{LANGUAGES.get(target.suffix, 'text')}\n{text}\n````\n"


def _title(path: Path) -> str:
    if path.suffix == ".md" and (heading := re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M)):
        return heading[1]
    return path.name


def _indices(config, files: Files) -> None:
    """Lists of the pages of docs/results, docs/decisions and docs/integrations."""
    for folder, title in [("results", "Measured"), ("decisions", "Decisions"), ("integrations", "In other programs")]:
        name = f"{folder}/index.md"
        if files.get_file_from_path(name):
            continue
        pages = [path for path in sorted((ROOT / "docs" / folder).glob("*.md"))]
        text = f"# {title}\n\n" + "".join(f"- [{_title(path)}]({path.name})\n" for path in pages)
        files.append(File.generated(config, name, content=text))
        origins[name] = f"docs/{name}"


def _reference(config, files: Files) -> None:
    files.append(File.generated(config, "api/python.md", content=python_api.page()))
    if not cpp_api.available():
        files.append(File.generated(config, "api/cpp/index.md", content="# C++\n\nDoxygen was not there when this site was built.\n"))
        return
    pages = cpp_api.pages()
    for header, text in pages.items():
        files.append(File.generated(config, f"api/cpp/{header.removeprefix('ungrain/').removesuffix('.h')}.md", content=text))
    listed = sorted(name.removeprefix("ungrain/").removesuffix(".h") for name in pages)
    index = "# The headers\n\nBegin with [denoiser.h](denoiser.md).\n\n" + "".join(f"- [{name}.h]({name}.md)\n" for name in listed)
    files.append(File.generated(config, "api/cpp/index.md", content=index))


def on_files(files: Files, config) -> Files:
    origins.clear()
    # The study's own page has the name that results/study.md gets here, so MkDocs leaves it out.
    study = File.generated(config, "results/study.html", abs_src_path=str(ROOT / "docs/results/study.html"))
    study.dest_uri = "results/study-page.html"
    if named := files.get_file_from_path("results/study.html"):
        files.remove(named)
    files.append(study)
    _reference(config, files)
    _indices(config, files)
    waiting = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    waiting += [f"docs/{file.src_uri}" for file in files.documentation_pages() if (ROOT / "docs" / file.src_uri).exists()]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        name = _site_name(path)
        if not files.get_file_from_path(name):
            files.append(File.generated(config, name, content=_content(path)))
            origins[name] = path + "/" if (ROOT / path).is_dir() else path
        if not (path.endswith(".md") or (ROOT / path).is_dir()):
            continue
        # Links of a folder's list are not followed, of other folders' pages those to what is nearby.
        text = _content(path) if path.endswith(".md") else ""
        for link in _links(text):
            target = _repository_path(path, link)
            if target and target not in seen and not (target.startswith("docs/") and (ROOT / target).is_file()):
                seen.add(target)
                waiting.append(target)
    return files


def _for_python_markdown(text: str) -> str:
    """What stands under a numbered item is indented by three spaces on GitHub, by four here."""
    lines, numbered = [], False
    for line in text.split("\n"):
        if re.match(r"\d+\. ", line) or re.match(r"-  ", line):
            numbered = True
        elif line and not line.startswith(" "):
            numbered = False
        lines.append(" " + line if numbered and line.startswith("   ") and not line.startswith("    1") else line)
    return "\n".join(lines)


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    name = page.file.src_uri
    if name.startswith("api/"):
        return markdown
    origin = origins.get(name, f"docs/{name}")
    here = posixpath.dirname(name)

    def change(match: re.Match) -> str:
        path = match[2] and _repository_path(origin, match[2])
        if path is None:
            return match[0]
        target = _site_name(path)
        if not files.get_file_from_path(target):
            return match[1].removeprefix("!")[1:-2]  # the words without the link: a file of a folder's list
        anchor = match[2].partition("#")[2]
        link = posixpath.relpath(target, here or ".")
        return f"{match[1]}{link}{'#' + anchor if anchor else ''}{match[3]}"

    return _for_python_markdown(_outside_code(markdown, lambda piece: LINK.sub(change, piece)))


def on_config(config):
    package = os.environ.get("UNGRAIN_SITE_PACKAGE", "../python")
    python_api.package = (Path(__file__).parent / package).resolve()
    return config
