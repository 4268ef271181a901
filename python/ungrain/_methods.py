"""One function a method, made from the library's own descriptors: names, defaults, ranges and help are written there.

`_methods.pyi`, which type checkers read, is made from the same when the package is built (src/stubs.py).
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, cast

from . import _core
from ._denoise import denoise
from ._errors import InvalidType, shown
from ._volume import VOLUME_INFO, denoise_volume, volume_methods

_INFO = {info["name"]: info for info in _core.methods()}


def _options_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY and p.name != "sigma"]


# denoise()'s own options, which every method's function also takes, and denoise_volume()'s.
OPTIONS = _options_of(denoise)
VOLUME_OPTIONS = _options_of(denoise_volume)


def is_for_volumes(info: dict[str, Any]) -> bool:
    return info["name"] in VOLUME_INFO


def options(info: dict[str, Any]) -> list[inspect.Parameter]:
    own = {each["name"] for each in info["params"]}
    return [option for option in (VOLUME_OPTIONS if is_for_volumes(info) else OPTIONS) if option.name not in own]


def all_infos() -> list[dict[str, Any]]:
    return [*_INFO.values(), *VOLUME_INFO.values()]


def methods() -> list[str]:
    """The names of all methods for images; ``volume_methods`` has those for volumes."""
    return list(_INFO)


def parameters(method: str) -> list[dict[str, Any]]:
    """A method's parameters as its descriptors have them: name, help, kind, unit, min, max, choices, default."""
    if not isinstance(method, str):
        raise InvalidType(f"method takes a string, got {shown(method)}")
    info = _INFO.get(method) or VOLUME_INFO.get(method)
    if info is None:
        _core.needs_image(method, None, {})  # raises, with the nearest name
    return [dict(each) for each in cast(dict[str, Any], info)["params"]]


def default_of(info: dict[str, Any]) -> Any:
    return "auto" if info["auto"] and info["default"] is None else info["default"]


def takes(info: dict[str, Any]) -> str:
    """"int from 0 to 128", "one of square, disc"."""
    number = {"real": "float", "integer": "odd int" if info["odd"] else "int", "per_channel": "float"}
    if info["kind"] == "choice":
        text = "{" + ", ".join(f'"{word}"' for word in info["choices"]) + "}"
    elif info["kind"] == "image":
        text = "array, optional"
    elif info["max"] == float("inf"):
        text = f"{number[info['kind']]} from {info['min']:g} up"
    else:
        text = f"{number[info['kind']]} from {info['min']:g} to {info['max']:g}"
    if info["kind"] == "per_channel":
        text += ", or one for each colour channel"
    if info["named"]:
        text += f', or "{info["named"]}"'
    return text + (', or "auto"' if info["auto"] else "")


def annotation(info: dict[str, Any]) -> str:
    """The type as a stub writes it."""
    words = list(info["choices"]) + ([info["named"]] if info["named"] else []) + (["auto"] if info["auto"] else [])
    types = {"real": ["float"], "integer": ["int"], "choice": [], "per_channel": ["float", "Sequence[float]"],
             "image": ["Any"]}[info["kind"]]
    if info["kind"] == "choice" and set(info["choices"]) >= {"on", "off"}:
        types = ["bool"]
    if words:
        types = [*types, "Literal[" + ", ".join(f'"{word}"' for word in words) + "]"]
    return " | ".join(types)


def docstring(info: dict[str, Any]) -> str:
    argument, function = ("volume", "denoise_volume") if is_for_volumes(info) else ("image", "denoise")
    lines = [info["summary"][0].upper() + info["summary"][1:] + ".", "", "Parameters", "----------", f"{argument} : array",
             f"    As for ``ungrain.{function}``."]
    for each in info["params"]:
        unit = f" ({each['unit']})" if each["unit"] else ""
        lines.append(f"{each['name']} : {takes(each)}")
        lines += textwrap.wrap(f"{each['help']}{unit}; default: {each['default_text']}", 100, initial_indent="    ",
                               subsequent_indent="    ", break_on_hyphens=False)
    lines += textwrap.wrap(", ".join(option.name for option in options(info)), 100)
    lines.append(f"    As for ``ungrain.{function}``.")
    for name, help_ in info["presets"]:
        lines += ["", f'preset="{name}": {help_}.']
    lines += ["", f"Runs on: {', '.join(info['backends'])}."]
    return "\n".join(lines) + "\n"


def signature(info: dict[str, Any]) -> inspect.Signature:
    image = inspect.Parameter("volume" if is_for_volumes(info) else "image", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = [inspect.Parameter(each["name"], inspect.Parameter.KEYWORD_ONLY, default=default_of(each))
           for each in info["params"]]
    return inspect.Signature([image, *own, *[option.replace(annotation=inspect.Parameter.empty) for option in options(info)]])


def function_name(info: dict[str, Any]) -> str:
    return info["name"].replace("-", "_")


def _make(info: dict[str, Any]) -> Callable[..., Any]:
    method = info["name"]

    # Values that were not given are left to the library: the defaults in the signature must not override a preset.
    def of_image(image: Any, **given: Any) -> Any:
        return denoise(image, method, **given)

    def of_volume(volume: Any, **given: Any) -> Any:
        return denoise_volume(volume, method, **given)

    function: Callable[..., Any] = of_volume if is_for_volumes(info) else of_image
    function.__name__ = function.__qualname__ = function_name(info)
    function.__doc__ = docstring(info)
    function.__signature__ = signature(info)  # type: ignore[attr-defined]
    function.__module__ = "ungrain"
    return function


__all__ = ["methods", "parameters", "volume_methods"]
for _info in all_infos():
    globals()[function_name(_info)] = _make(_info)
    __all__.append(function_name(_info))
