"""The library's errors as Python exceptions; each is also the built-in one that fits."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Any error of the library. `code` is the C++ library's number for it, which never changes."""

    code = 9


class InvalidArgument(Error, ValueError):
    """An invalid parameter, option, size or layout; the message names it, what it takes and what was given."""

    code = 1


class InvalidType(Error, TypeError):
    """A value of an invalid type, or a parameter that the method does not have; the message names it."""

    code = 1


class Unsupported(Error, NotImplementedError):
    """A combination that is valid but that this build or method does not offer."""

    code = 2


class OutOfMemory(Error, MemoryError):
    """The work does not fit the memory it may use."""

    code = 3


class NoDevice(Error, RuntimeError):
    """The device asked for is not there."""

    code = 4


class DeviceError(Error, RuntimeError):
    """The device failed."""

    code = 5


class CannotRead(Error, OSError):
    """A file, or a chunk of one, that cannot be read; the message names it."""

    code = 6


class Cancelled(Error):
    """The progress callback returned False."""

    code = 7


class BadPixels(Error, ValueError):
    """NaN or infinity, where nonfinite="error" asked for an error."""

    code = 8


_CLASSES = {c.code: c for c in (InvalidArgument, Unsupported, OutOfMemory, NoDevice, DeviceError, CannotRead, Cancelled,
                                  BadPixels)}


def shown(value: Any) -> str:
    """A value as messages show it: in one line, and shortened if it is large."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def from_code(code: int, message: str) -> Error:
    return _CLASSES.get(code, Error)(message)
