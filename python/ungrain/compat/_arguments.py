"""Arguments under the other libraries' names, checked before they become a method's parameters."""

from __future__ import annotations

import math
import operator
from typing import Any

from .._errors import InvalidArgument, InvalidType, shown


def whole(name: str, value: Any, least: int | None, most: int | None) -> int:
    try:
        number = operator.index(value)
    except (TypeError, ValueError):
        raise InvalidType(f"{name} takes a whole number, got {shown(value)}") from None
    if (least is not None and number < least) or (most is not None and number > most):
        limits = (f" from {least}" if least is not None else "") + (f" up to {most}" if most is not None else " up")
        raise InvalidArgument(f"{name} takes a whole number{limits}, got {shown(value)}")
    return number


def real(name: str, value: Any, least: float = -math.inf) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidType(f"{name} takes a number, got {shown(value)}") from None
    if not number >= least:  # also NaN
        raise InvalidArgument(f"{name} takes a number{'' if math.isinf(least) else f' from {least:g} up'}, got {shown(value)}")
    return number
