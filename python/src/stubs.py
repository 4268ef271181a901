"""stubs.py FOLDER: writes FOLDER/ungrain/_methods.pyi, the signatures of the methods' functions, from the newly built module there."""

from __future__ import annotations

import inspect
import pathlib
import sys
import textwrap

sys.path.insert(0, sys.argv[1])  # not PYTHONPATH, through which pip names what the build needs
from ungrain import _denoise, _methods


def value(default: object) -> str:
    if isinstance(default, bool) or not isinstance(default, (str, int, float)):
        return repr(default)
    return f'"{default}"' if isinstance(default, str) else repr(default)


def function(info: dict) -> str:
    words = ["volume: Array" if _methods.is_for_volumes(info) else "image: Array", "*"]
    for each in info["params"]:
        default = _methods.default_of(each)
        optional = " | None" if default is None else ""
        words.append(f"{each['name']}: {_methods.annotation(each)}{optional} = {value(default)}")
    words += [f"{o.name}: {o.annotation} = {value(o.default)}" for o in _methods.options(info)]
    arguments = ",\n".join("    " + word for word in words)
    doc = textwrap.indent(f'"""{_methods.docstring(info)}"""', "    ")
    return f"def {_methods.function_name(info)}(\n{arguments},\n) -> Array:\n{doc}\n"


def main() -> None:
    names = sorted(_methods.__all__)
    lines = ["# Made from the library's descriptors when the package was built; do not edit.",
             "from collections.abc import Sequence",
             "from typing import Any, Literal",
             "",
             "from ._denoise import Array, Axis, Progress",
             "from ._noise_model import NoiseModel",
             "",
             f"__all__ = {names!r}",
             "",
             f"def methods() -> list[str]:\n    \"\"\"{inspect.getdoc(_methods.methods)}\"\"\"",
             "",
             f"def volume_methods() -> list[str]:\n    \"\"\"{inspect.getdoc(_methods.volume_methods)}\"\"\"",
             "",
             f"def parameters(method: str) -> list[dict[str, Any]]:\n    \"\"\"{inspect.getdoc(_methods.parameters)}\"\"\"",
             ""]
    lines += [function(info) for info in _methods.all_infos()]
    assert _denoise.Array  # what the stub imports is there
    pathlib.Path(sys.argv[1], "ungrain", "_methods.pyi").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
