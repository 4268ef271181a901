"""Pages of the C++ and C API: Doxygen reads the public headers, its XML becomes one Markdown page for each header."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "include"

SETTINGS = """
INPUT = {headers}
RECURSIVE = YES
FILE_PATTERNS = *.h
STRIP_FROM_PATH = {headers}
FULL_PATH_NAMES = YES
INPUT_FILTER = "{python} {filter}"
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = NO
MARKDOWN_SUPPORT = YES
AUTOLINK_SUPPORT = NO
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
QUIET = YES
WARNINGS = NO
OUTPUT_DIRECTORY = {output}
"""


def available() -> bool:
    return shutil.which("doxygen") is not None


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("*", "\\*").replace("_", "\\_").replace("[", "\\[").replace("|", "\\|")


def _inline(node) -> str:
    """A paragraph of Doxygen's as Markdown."""
    parts = [_escaped(node.text or "")]
    for child in node:
        if child.tag in ("computeroutput", "verbatim"):
            parts.append("`" + "".join(child.itertext()) + "`")
        elif child.tag == "sp":
            parts.append(" ")
        elif child.tag == "linebreak":
            parts.append("<br>")
        elif child.tag in ("itemizedlist", "orderedlist", "programlisting", "simplesect", "parameterlist"):
            parts.append("")
        elif child.tag == "ulink":
            parts.append(f"<{child.get('url')}>")
        else:
            parts.append(_inline(child))
        parts.append(_escaped(child.tail or ""))
    return "".join(parts)


def _paragraph(paragraph) -> list[str]:
    """Text and code in the order in which they stand; Doxygen puts code into the paragraph before it."""
    found, rest = [], ElementTree.Element("para")
    rest.text = paragraph.text

    def close() -> None:
        nonlocal rest
        if text := _inline(rest).strip():
            found.append(text)
        rest = ElementTree.Element("para")

    for child in paragraph:
        if child.tag not in ("verbatim", "programlisting"):
            rest.append(child)
            continue
        close()
        rest.text = child.tail
        if child.tag == "verbatim":
            code = textwrap.dedent(child.text or "").strip("\n")
        else:
            lines = ["".join((" " if part.tag == "sp" else part.text or "") + (part.tail or "" if part is not line else "")
                             for part in line.iter()) for line in child.iter("codeline")]
            code = textwrap.dedent("\n".join(lines))
        found.append(f"```cpp\n{code}\n```")
    close()
    return found


def _blocks(description) -> list[str]:
    if description is None:
        return []
    return [block for paragraph in description.findall("para") for block in _paragraph(paragraph)]


def _described(member) -> str:
    return "\n\n".join(dict.fromkeys(_blocks(member.find("briefdescription")) + _blocks(member.find("detaileddescription"))))


def _one_line(member) -> str:
    return " ".join(_described(member).split())


def _text(node) -> str:
    """As it is written in the header: Doxygen puts spaces around what is between < and >."""
    return "" if node is None else re.sub(r"(?<=[\w:])< (.+?) ?>", r"<\1>", " ".join("".join(node.itertext()).split()))


def _declaration(member) -> str:
    template = member.find("templateparamlist")
    head = ""
    if template is not None:
        names = [" ".join(filter(None, [_text(each.find("type")), _text(each.find("declname"))])) for each in template]
        head = f"template <{', '.join(names)}>\n"
    what = _text(member.find("type"))
    static = "static " if member.get("static") == "yes" and "static" not in what else ""
    name = _text(member.find("name"))
    rest = _text(member.find("argsstring")) + (" " + _text(member.find("initializer")) if member.find("initializer") is not None else "")
    if member.get("kind") == "typedef":
        return f"using {name} = {what};"
    return f"{head}{static}{what + ' ' if what else ''}{name}{rest};"


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("\n", " ") + "`"


def _enum(member, level: str) -> list[str]:
    lines = [f"{level} enum {_text(member.find('name'))}", "", _described(member), "", "| value | |", "|---|---|"]
    for value in member.findall("enumvalue"):
        lines.append(f"| {_code(_text(value.find('name')))} | {_one_line(value)} |")
    return [*lines, ""]


def _functions(members, level: str) -> list[str]:
    lines = []
    for member in members:
        lines += [f"{level} {_text(member.find('name'))}", "", "```cpp", _declaration(member), "```", "", _described(member), ""]
    return lines


def _variables(members) -> list[str]:
    if not members:
        return []
    lines = ["| member | |", "|---|---|"]
    lines += [f"| {_code(_declaration(member))} | {_one_line(member)} |" for member in members]
    return [*lines, ""]


def _members(compound, file: str | None = None) -> list:
    found = [member for member in compound.iter("memberdef") if member.get("prot") != "private"]
    return [member for member in found if file is None or member.find("location").get("file", "").endswith(file)]


def _body(members, level: str) -> list[str]:
    def of(*kinds):
        return [member for member in members if member.get("kind") in kinds]

    lines = []
    for member in of("enum"):
        lines += _enum(member, level)
    lines += _variables(of("variable", "typedef", "define"))
    lines += _functions(of("function"), level)
    return lines


def _class(compound) -> list[str]:
    name = _text(compound.find("compoundname")).removeprefix("ungrain::")
    bases = [_text(base) for base in compound.findall("basecompoundref")]
    head = [f"## {compound.get('kind')} {name}", ""]
    if bases:
        head += ["Derived from " + ", ".join(_code(base) for base in bases) + ".", ""]
    members = [member for member in _members(compound)
               if _text(member.find("name")) not in ("operator==", "operator=") and not _text(member.find("name")).startswith("~")]
    return [*head, _described(compound), "", *_body(members, "###")]


def _header(file) -> str:
    """As it is included."""
    return file.find("location").get("file").rpartition("include/")[2]


def _page(file, compounds) -> str:
    name = _header(file)
    lines = [f"# {name}", "", _described(file), ""]
    for inner in file.findall("innerclass"):
        if (compound := compounds.get(inner.get("refid"))) is not None:
            lines += _class(compound)
    spaces = [compounds[inner.get("refid")] for inner in file.findall("innernamespace") if inner.get("refid") in compounds]
    members = _members(file)  # of C headers
    for space in spaces:
        members += _members(space, name)
    members = [member for member in members if not _text(member.find("name")).startswith(("UNGRAIN_H", "operator"))]
    if members:
        lines += ["## Functions and constants", "", *_body(members, "###")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def pages() -> dict[str, str]:
    """Header, from include/, and its page's Markdown."""
    with tempfile.TemporaryDirectory() as output:
        settings = SETTINGS.format(headers=HEADERS, python=sys.executable, filter=Path(__file__).with_name("comments.py"), output=output)
        subprocess.run(["doxygen", "-"], input=settings, text=True, check=True, capture_output=True, cwd=ROOT)
        compounds, files = {}, {}
        for path in sorted(Path(output, "xml").glob("*.xml")):
            for compound in ElementTree.parse(path).getroot().findall("compounddef"):
                compounds[compound.get("id")] = compound
                if compound.get("kind") == "file":
                    files[_header(compound)] = compound
        return {name: _page(compound, compounds) for name, compound in files.items()}
