"""What compat.bm3d and compat.bm4d have in common: profiles, stages and arguments that have no counterpart here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._errors import InvalidArgument, InvalidType, Unsupported, shown
from ._arguments import real

# The parameter of ours that one of theirs becomes, and its value: an attribute of a profile.
Converters = Mapping[str, tuple[str, Callable[[str, Any], Any]]]


def check_block_matches(blockmatches: Any) -> None:
    try:
        first, second = blockmatches
    except (TypeError, ValueError):
        raise InvalidArgument(f"blockmatches takes a value for each of both steps, got {shown(blockmatches)}") from None
    if first is not False or second is not False:
        raise Unsupported("blockmatches takes (False, False): the matches of a call are not kept here")


def steps_of(stage_arg: Any) -> int:
    """The stages by their names: those of the original package have the same."""
    name = getattr(stage_arg, "name", None)
    if name == "ALL_STAGES":
        return 2
    if name == "HARD_THRESHOLDING":
        return 1
    if name == "WIENER_FILTERING":
        raise InvalidArgument("stage_arg takes an estimate of the clean image instead of WIENER_FILTERING")
    raise InvalidType(f"stage_arg takes ALL_STAGES, HARD_THRESHOLDING or an array, got {shown(stage_arg)}")


def is_deviation(sigma_psd: Any) -> bool:
    """One standard deviation, or a list of them; else a power spectral density."""
    return np.squeeze(np.asarray(sigma_psd)).ndim <= 1


def parameters_of(profile: Any, strings: Mapping[str, Mapping[str, Any]], classes: Mapping[str, str],
                  converters: Converters) -> dict[str, Any]:
    """A profile's parameters here. Of an object those that were changed are taken over: defaults are those of its class,
    which stands for one of ours."""
    if isinstance(profile, str):
        if profile not in strings:
            raise Unsupported(f"profile takes one of {', '.join(strings)} or an object, got {shown(profile)}")
        return dict(strings[profile])
    name = classes.get(type(profile).__name__)
    if name is None:
        known = ", ".join(classes)
        raise Unsupported(f"profile takes an object of {known}, or one of {', '.join(strings)}; got {shown(profile)}")
    parameters = dict(strings[name])
    for attribute, value in vars(profile).items():
        if attribute == "print_info" or _same(value, getattr(type(profile), attribute, None)):
            continue
        if attribute not in converters:
            raise Unsupported(f"profile.{attribute} has no counterpart here; it was changed to {shown(value)}")
        ours, convert = converters[attribute]
        parameters[ours] = convert(attribute, value)
        # Here the second step would follow the first; there it keeps the profile's number.
        second = attribute.replace("_ht", "_wiener")
        if second != attribute and second in converters:
            ours, convert = converters[second]
            parameters[ours] = convert(second, getattr(profile, second))
    return parameters


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def threads(attribute: str, value: Any) -> int:
    return int(real(attribute, value, 0))


def number(attribute: str, value: Any) -> Any:
    return "auto" if value is None else real(attribute, value, 0)


def deviations(sigma_psd: Any, count: int) -> list[float]:
    values = [real("sigma_psd", each, 0) for each in np.ravel(sigma_psd)]
    if len(values) not in (1, count) or any(math.isinf(each) for each in values):
        raise InvalidArgument(f"sigma_psd takes a standard deviation, or one for each of {count} channels, "
                              f"got {shown(sigma_psd)}")
    return values * count if len(values) == 1 else values
