"""Functions that become non-local means of volumes."""

from __future__ import annotations

from .._errors import Unsupported
from .._volume import VOLUME_INFO


def needs_nlm3d(function: str) -> None:
    if "nlm3d" not in VOLUME_INFO:
        raise Unsupported(f"{function} of volumes needs the method nlm3d, which this build does not have")
