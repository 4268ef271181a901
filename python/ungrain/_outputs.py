"""Replaces an array by an output without losing anything: the old array is moved aside until the new one is
complete."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from ._ome import read_multiscale

_METADATA = {2: (".zarray", ".zattrs"), 3: ("zarr.json",)}
_GROUP_METADATA = (".zgroup", ".zattrs", ".zmetadata", "zarr.json")
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
    """Refuses everything but a folder that holds one Zarr array, or the levels of one OME-Zarr image, and nothing else."""
    import zarr
    if is_remote(path):
        raise NotReplaced(f"{path} is there; --overwrite replaces arrays in folders of this machine only: "
                          "delete it, or name another output")
    if os.path.islink(os.path.abspath(path)):
        raise NotReplaced(f"{path} is a symbolic link; --overwrite replaces only a Zarr array itself")
    try:
        found: Any = zarr.open(path, mode="r")
        image = read_multiscale(path, dict(found.attrs)) if isinstance(found, zarr.Group) else None
    except Exception:  # its type depends on what exists there
        found = image = None
    if isinstance(found, zarr.Array):
        foreign = next(_foreign_entries(path, found), None)
    elif image is not None:
        foreign = next(_foreign_in_group(path, found, {level.path for level in image.levels}), None)
    else:
        raise NotReplaced(f"{path} is there and is no Zarr array; --overwrite replaces only a Zarr array or an OME-Zarr image")
    if foreign is not None:
        kind = "Zarr array" if image is None else "OME-Zarr image"
        raise NotReplaced(f"{path} holds {foreign}, which is no part of the {kind}; --overwrite replaces only an array or image")


def _foreign_in_group(path: str, group: Any, levels: set[str], inside: str = "") -> Iterator[str]:
    """What belongs neither to a group nor to an array of `levels`, which are paths in the group."""
    with os.scandir(os.path.join(path, inside)) as entries:
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and name in levels:
                yield from _foreign_in_level(path, group, name)
            elif is_folder and any(level.startswith(f"{name}/") for level in levels):
                yield from _foreign_in_group(path, group, levels, name)
            elif is_folder or not entry.is_file(follow_symlinks=False) or not _is_group_metadata(entry.name):
                yield name


def _is_group_metadata(name: str) -> bool:
    return name in _GROUP_METADATA or re.fullmatch(r"(zarr|\.zgroup|\.zattrs)\.[0-9a-f]+\.partial", name) is not None


def _foreign_in_level(path: str, group: Any, name: str) -> Iterator[str]:
    import zarr
    folder = os.path.join(path, name)
    if not os.listdir(folder):  # of a removal that was interrupted
        return
    try:
        array = group[name]
    except Exception:
        array = None
    if not isinstance(array, zarr.Array):
        yield name
        return
    for each in _foreign_entries(folder, array):
        yield f"{name}/{each}"


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
        _remove(aside)
    return left


def _remove(folder: str) -> None:
    """Metadata goes last: after an interrupted removal the next run still recognises what is left."""
    for name in sorted(os.listdir(folder), key=lambda name: name in (*_METADATA[2], *_GROUP_METADATA)):
        inside = os.path.join(folder, name)
        if os.path.isdir(inside):
            _remove(inside)
        else:
            os.unlink(inside)
    os.rmdir(folder)
