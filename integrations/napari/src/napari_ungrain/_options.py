"""Controls for a method's parameters, made from the library's own descriptors: names, ranges, choices, defaults and help."""

from __future__ import annotations

import keyword
from typing import Any

import ungrain
from magicgui.widgets import ComboBox, LineEdit, SpinBox, Widget

AUTO = "auto"
# sigma has a control of its own for all methods; images and lists of numbers are for scripts.
_OTHERS = {"sigma"}
_SHOWN = {"integer", "real", "choice"}


def _help(parameter: dict[str, Any]) -> str:
    unit = f" ({parameter['unit']})" if parameter["unit"] else ""
    return f"{parameter['help']}{unit}; default: {parameter['default_text']}"


def _is_plain_integer(parameter: dict[str, Any]) -> bool:
    return parameter["kind"] == "integer" and not parameter["auto"] and not parameter["named"]


def control_for(parameter: dict[str, Any]) -> Widget:
    name, default, tooltip = parameter["name"], parameter["default"], _help(parameter)
    label = name.replace("_", " ")
    if parameter["kind"] == "choice":
        choices = ([AUTO] if parameter["auto"] else []) + parameter["choices"]
        return ComboBox(name=name, label=label, choices=choices, value=default if default in choices else choices[0], tooltip=tooltip)
    if _is_plain_integer(parameter):
        return SpinBox(name=name, label=label, min=int(parameter["min"]), max=int(parameter["max"]), value=int(default),
                       step=2 if parameter["odd"] else 1, tooltip=tooltip)
    return LineEdit(name=name, label=label, value=AUTO if default is None else str(default), tooltip=tooltip)


def _shown(method: str) -> list[dict[str, Any]]:
    return [each for each in ungrain.parameters(method) if each["kind"] in _SHOWN and each["name"] not in _OTHERS]


def controls_for(method: str) -> list[Widget]:
    return [control_for(parameter) for parameter in _shown(method)]


def number(text: str) -> float | int | str:
    """What was typed, as a number where it is one: words ("auto", "whole-image") are for the library to judge."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def given(method: str, controls: list[Widget]) -> dict[str, Any]:
    """The values that differ from the defaults, as ungrain.denoise takes them."""
    values = {}
    for parameter, control in zip(_shown(method), controls):
        value = number(control.value) if isinstance(control, LineEdit) else control.value
        if value != AUTO and value != parameter["default"]:
            name = parameter["name"]
            values[name + "_" if keyword.iskeyword(name) else name] = value
    return values
