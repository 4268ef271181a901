"""Replaces an array by an output without losing anything: the old array is moved aside until the new one is
complete."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

_METADATA = {2: (".zarray", ".zattrs"), 3: ("zarr.json",)}
_CHUNK_FOLDER = re.compile(r"c|\d+")
_UNFINISHED = re.compile(r"(zarr|\.zarray|\.zattrs|c|[c\d.]*\d)\.[0-9a-f]+\.partial")  # a file that Zarr was writing


class NotReplaced(Exception):
    """One line that says what exists there and is kept."""


def is_remote(path: str) -> bool:
    return "://" in path


def is_empty(path: str) -> bool:
    """Whether a new array would overwrite nothing there."""
    if is_remote(path):
        from zarr.core.sync import sync
        from zarr.storage import StorePath
        from zarr.storage._common import make_store_path
        place: StorePath = sync(make_store_path(path))
        return bool(sync(place.store.is_empty(place.path)))
    path = os.path.abspath(path)  # a slash at the end would hide a file or a link
    return not os.path.lexists(path) or (os.path.isdir(path) and not os.listdir(path))


def check_replaceable(path: str) -> None:
    """Refuses everything but a folder that holds one Zarr array and nothing else."""
    import zarr
    if is_remote(path):
        raise NotReplaced(f"{path} is there; --overwrite replaces arrays in folders of this machine only: "
                          "delete it, or name another output")
    if os.path.islink(os.path.abspath(path)):
        raise NotReplaced(f"{path} is a symbolic link; --overwrite replaces only a Zarr array itself")
    try:
        array = zarr.open_array(path, mode="r")
    except Exception:  # its type depends on what exists there
        raise NotReplaced(f"{path} is there and is no Zarr array; --overwrite replaces only a Zarr array") from None
    foreign = next(_foreign_entries(path, array), None)
    if foreign is not None:
        raise NotReplaced(f"{path} holds {foreign}, which is no part of the Zarr array; --overwrite replaces only an array")


def _foreign_entries(path: str, array: Any, inside: str = "") -> Iterator[str]:
    with os.scandir(os.path.join(path, inside)) as entries:
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False):
                if _CHUNK_FOLDER.fullmatch(entry.name):
                    yield from _foreign_entries(path, array, name)
                else:
                    yield name
            elif not (entry.is_file(follow_symlinks=False) and _is_part(name, array)):
                yield name


def _is_part(name: str, array: Any) -> bool:
    if name in _METADATA[array.metadata.zarr_format] or _UNFINISHED.fullmatch(os.path.basename(name)):
        return True
    place = tuple(map(int, re.findall(r"\d+", name)))
    if not array.shape:  # its one chunk is written as 0, or without a number
        return name == array.metadata.encode_chunk_key(())
    counts = [-(-size // chunk) for size, chunk in zip(array.shape, array.shards or array.chunks)]
    return (len(place) == len(counts) and all(index < count for index, count in zip(place, counts))
            and name == array.metadata.encode_chunk_key(place))


def _aside_name(path: str, number: int) -> str:
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(folder, f".{name}.replaced-{number}")


def kept_aside(path: str) -> list[str]:
    """The arrays that an output has replaced and that still exist, the oldest first."""
    if is_remote(path):
        return []
    folder, name = os.path.split(os.path.abspath(path))
    pattern = re.compile(re.escape(f".{name}.replaced-") + r"([1-9]\d*)")
    found = [match for each in (os.listdir(folder) if os.path.isdir(folder) else []) if (match := pattern.fullmatch(each))]
    return [os.path.join(folder, match[0]) for match in sorted(found, key=lambda match: int(match[1]))]


def move_aside(path: str) -> None:
    last = kept_aside(path)[-1:]
    number = int(last[0].rpartition("-")[2]) + 1 if last else 1
    os.rename(path, _aside_name(path, number))


def remove_aside(path: str) -> list[str]:
    """Called when the new array is complete. Returns what is left: arrays whose folders hold other files too."""
    left = []
    for aside in kept_aside(path):
        try:
            check_replaceable(aside)
        except NotReplaced:
            left.append(aside)
            continue
        # Metadata goes last: after an interrupted removal the next run still recognises an array.
        for name in sorted(os.listdir(aside), key=lambda name: name in (*_METADATA[2], *_METADATA[3])):
            inside = os.path.join(aside, name)
            if os.path.isdir(inside):
                shutil.rmtree(inside)
            else:
                os.unlink(inside)
        os.rmdir(aside)
    return left
