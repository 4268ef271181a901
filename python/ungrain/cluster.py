"""ungrain cluster: a Zarr array, an OME-Zarr image or a TIFF stack from one store to another on a Dask cluster, for people
who don't write Python. Every block is read, with the pixels around it, filtered and written by one task, so workers
exchange nothing. A block that is written is done: a run that is started again resumes where the last one stopped."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import __version__, _core, _ome, _outputs
from ._denoise import _WHITE
from ._errors import CannotRead, Error
from ._parts import Axes, ImageWork, Work, check_each_by_itself, denoise_parts
from ._sources import Source, located, open_source
from ._volume_parts import VolumeWork, method_in_parts

DONE, FAILED, USAGE = 0, 1, 2
_MOST_FAILURES = 10  # different ones, before the run gives up
_CONNECT_SECONDS = 10
_LOOPBACK = "127.0.0.1"
_NEEDS = "ungrain cluster needs Dask and Zarr: pip install dask distributed zarr"


class WrongUsage(Exception):
    """One line that says what is wrong."""


@dataclass(frozen=True)
class Block:
    """A part of the output, whole chunks of it."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(a, b) for a, b in zip(self.start, self.stop))

    def __str__(self) -> str:
        return "[" + ", ".join(f"{a}:{b}" for a, b in zip(self.start, self.stop)) + "]"


@dataclass(frozen=True)
class Job:
    """All that a worker needs to compute any block."""

    source: Source
    out: str
    axes: Axes
    works: tuple[Work, ...]  # one for all, or one for each image of the stack

    def works_of(self, block: Block) -> Sequence[Work]:
        if len(self.works) == 1:
            return self.works
        every = np.arange(len(self.works)).reshape(self.axes.stack_shape(self.source.shape))
        inside = every[tuple(slice(block.start[a], block.stop[a]) for a in self.axes.stack)]
        return [self.works[number] for number in inside.ravel()]

    def region_of(self, block: Block) -> tuple[slice, ...]:
        """The region of the input that the block needs."""
        reaches = [work.reach() for work in {work.key(): work for work in self.works_of(block)}.values()]
        region = list(block.slices())
        for axis, reach in zip(self.axes.sides, map(max, zip(*reaches))):
            region[axis] = slice(max(0, block.start[axis] - reach), min(self.source.shape[axis], block.stop[axis] + reach))
        return tuple(region)

    def read(self, block: Block) -> Any:
        return self.source[self.region_of(block)]

    def made(self, block: Block, pixels: Any) -> Any:
        region, sides = self.region_of(block), self.axes.sides
        return denoise_parts(self.works_of(block), self.axes, pixels, at=[region[axis].start for axis in sides],
                             out_at=[block.start[axis] for axis in sides],
                             out_shape=[block.stop[axis] - block.start[axis] for axis in sides])


@dataclass(frozen=True)
class LevelJob:
    """The same of a smaller level of a pyramid, whose pixels are means of the level before."""

    source: str
    out: str
    factors: tuple[int, ...]

    def read(self, block: Block) -> Any:
        import zarr
        return zarr.open_array(self.source, mode="r")[tuple(
            slice(a * factor, b * factor) for a, b, factor in zip(block.start, block.stop, self.factors))]

    def made(self, block: Block, pixels: Any) -> Any:
        shape = tuple(slice(b - a) for a, b in zip(block.start, block.stop))
        return _ome.means(pixels, self.factors)[shape]  # of an odd number of pixels the last may have no window


def make_block(block: Block, job: Job | LevelJob) -> dict[str, float]:
    """Reads, filters and writes a block; returns the times."""
    import zarr
    begin = time.perf_counter()
    pixels = job.read(block)
    read = time.perf_counter()
    result = job.made(block, pixels)
    filtered = time.perf_counter()
    with zarr.config.set({"array.write_empty_chunks": True}):  # an existing chunk is a finished chunk
        zarr.open_array(job.out, mode="r+")[block.slices()] = result
    return {"pixels_in": pixels.size, "pixels_out": result.size, "read_s": read - begin, "filter_s": filtered - read,
            "write_s": time.perf_counter() - filtered}


def blocks_of(shape: Sequence[int], chunks: Sequence[int], axes: Axes, side: int) -> list[Block]:
    """Whole chunks, joined to about `side` pixels along each side."""
    step = list(chunks)
    for axis in axes.sides:
        step[axis] = max(1, side // chunks[axis]) * chunks[axis]
    counts = [-(-size // each) for size, each in zip(shape, step)]
    return [Block(tuple(i * s for i, s in zip(place, step)),
                  tuple(min((i + 1) * s, size) for i, s, size in zip(place, step, shape)))
            for place in np.ndindex(*counts)]


def written_chunks(out: Any) -> set[str]:
    """The keys of the existing chunks, in the array's own spelling."""
    from zarr.core.sync import sync

    async def listed() -> set[str]:
        prefix = f"{out.store_path.path}/" if out.store_path.path else ""
        return {key[len(prefix):] async for key in out.store.list_prefix(prefix)}
    return sync(listed())


def is_written(block: Block, out: Any, there: set[str]) -> bool:
    spans = [range(a // chunk, -(-b // chunk)) for a, b, chunk in zip(block.start, block.stop, out.chunks)]
    return all(out.metadata.encode_chunk_key(tuple(span[i] for span, i in zip(spans, place))) in there
               for place in np.ndindex(*map(len, spans)))


def is_complete(out: Any) -> bool:
    return is_written(Block((0,) * out.ndim, tuple(out.shape)), out, written_chunks(out))


@dataclass(frozen=True)
class Level:
    """A smaller level of an OME-Zarr output."""

    path: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    factors: tuple[int, ...]  # pixels of the level before, for each pixel

    def open(self, output: str, dtype: Any) -> Any:
        """None where it is not there yet."""
        import zarr
        try:
            level = zarr.open_array(f"{output}/{self.path}", mode="r+")
        except Exception:  # its type depends on what exists there
            return None
        if (level.shape, level.dtype) != (self.shape, dtype):
            raise WrongUsage(f"{output}/{self.path} is there with another shape or type; --overwrite begins anew")
        return level


def levels_of(source: Source, axes: Axes, options: SimpleNamespace) -> list[Level]:
    """The smaller levels of the input that can be made again: each axis is that of the level before, divided by a whole
    number."""
    levels: list[Level] = []
    if source.ome is None:
        return levels
    larger = source.shape
    may_shrink = [number for number, axis in enumerate(source.ome.axes) if axis.kind == "space"] or axes.sides
    for before, described, array in zip(source.ome.levels, source.ome.levels[1:], source.smaller_levels()):
        factors = _ome.shrinking(larger, array.shape, may_shrink, (before.scale, described.scale))
        if factors is None:
            break
        chunks = list(array.shards or array.chunks)
        levels.append(Level(described.path, tuple(array.shape), _chunks_of(array.shape, chunks, axes, options), factors))
        larger = array.shape
    return levels


def _chunks_of(shape: Sequence[int], chunks: list[int], axes: Axes, options: SimpleNamespace) -> tuple[int, ...]:
    if axes.channel is not None:
        chunks[axes.channel] = shape[axes.channel]
    for axis in axes.sides:
        chunks[axis] = min(options.chunk or chunks[axis], options.block, shape[axis])
    return tuple(chunks)


def axes_of(source: Source, options: SimpleNamespace) -> Axes:
    """As the options say, or as the metadata of an OME-Zarr image says: whatever is no side of an image or a volume, and
    not named as its channels, is stacked."""
    sides = 3 if options.volume else 2
    stack = options.axis
    if stack is None and source.ome is not None and source.ome.axes:
        own = source.ome.sides(sides)
        channel = None if options.channel_axis is None else options.channel_axis % source.ndim
        stack = [axis for axis in range(source.ndim) if axis not in own and axis != channel]
    return Axes.of(source.ndim, stack, options.channel_axis, sides)


def work_of(source: Source, axes: Axes, options: SimpleNamespace) -> Work:
    white = options.range or _WHITE.get(source.dtype.name, 1.0)
    given = {name: value for name, value in _core.read_words(options.method, options.preset, options.words, white).items()
             if value is not None}
    kind: type[Work] = ImageWork
    more: dict[str, Any] = {}
    method = options.method
    if options.volume:
        kind, method = VolumeWork, method_in_parts(method)
        if "aspect" not in options.words:
            del given["aspect"]  # follows the spacing
        if options.spacing is not None:
            more["spacing"] = tuple(map(float, reversed(options.spacing)))
        elif source.ome is not None:
            more["spacing"] = tuple(source.ome.sizes(axes.sides))
    return kind(method, given, axes.image_shape(source.shape), source.dtype.name, axes.image_channel_axis(), options.channels,
                options.range, None, options.device, options.nonfinite, options.threads, options.memory, **more)


def description(work: Work, source: Source, axes: Axes, words: dict[str, str], preset: str | None) -> dict[str, Any]:
    """What the output depends on; a resumed run must have the same. Measured values come from there."""
    return {"version": __version__, "input": source.path, "method": work.method, "preset": preset, "options": words,
            "channels": work.channels, "range": work.range, "nonfinite": work.nonfinite, "device": work.device,
            "axis": list(axes.stack), "channel_axis": axes.channel,
            "spacing": list(work.spacing) if isinstance(work, VolumeWork) else None}


def open_output(path: str, source: Source) -> Any:
    """The output that an earlier run left, or none."""
    import zarr
    if _outputs.is_empty(path):
        return None
    try:
        out = zarr.open_array(path + source.inside, mode="r+")
    except Exception:  # its type depends on what exists there
        kind = f"OME-Zarr image with a level {source.inside[1:]}" if source.inside else "Zarr array"
        raise WrongUsage(f"{path} is there and is no {kind}") from None
    if "ungrain" not in out.attrs:
        raise WrongUsage(f"{path} is there and was not written by ungrain cluster; --overwrite replaces it")
    if (out.shape, out.dtype) != (source.shape, source.dtype):
        raise WrongUsage(f"{path} is there with another shape or type than {source.name}; --overwrite replaces it")
    return out


def open_replacement(path: str, source: Source, levels: Sequence[Level], now: dict[str, Any]) -> Any:
    """With --overwrite: the incomplete output of an earlier run with the same options and --overwrite; or none, and the
    existing array may be replaced."""
    if _outputs.is_empty(path):
        return None
    try:
        out = open_output(path, source)
        earlier = dict(out.attrs["ungrain"])
        check_same(path, earlier, now)
        check_same_pixels(path, earlier, source)
        arrays = [out, *(level.open(path, out.dtype) for level in levels)]
        complete = all(array is not None and is_complete(array) for array in arrays)
        if earlier.get("overwrite") and (_outputs.kept_aside(path) or not complete):
            return out
    except WrongUsage:
        pass
    _outputs.check_replaceable(path)
    return None


def create_array(place: str, source: Source, shape: Sequence[int], chunks: Sequence[int], attributes: dict[str, Any]) -> Any:
    """A level of an OME-Zarr image is of the input's version of Zarr, which the version of its metadata asks for."""
    import zarr
    more: dict[str, Any] = {}
    if source.ome is not None and source.zarr_format == 2:
        more = {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}}
    elif source.ome is not None:
        more = {"dimension_names": source.dimension_names}
    return zarr.create_array(place, shape=tuple(shape), dtype=source.dtype, chunks=tuple(chunks), overwrite=False,
                             attributes=attributes, **more)


def describe_levels(path: str, source: Source, count: int) -> None:
    """Writes the metadata of an OME-Zarr output that has so many levels, unless it tells of as many already."""
    import zarr
    if source.ome is None:
        return
    group = zarr.open_group(path, mode="a", zarr_format=2 if source.zarr_format == 2 else 3)
    before = _ome.read_multiscale(path, dict(group.attrs))
    if before is None or len(before.levels) < count:
        group.attrs.put(source.ome.attributes_with(count))


def create_output(path: str, source: Source, chunks: Sequence[int], told: dict[str, Any]) -> Any:
    describe_levels(path, source, 1)
    return create_array(path + source.inside, source, source.shape, chunks, {**source.attributes, "ungrain": told})


def _to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity."""
    return {name: "inf" if value == float("inf") else value for name, value in parameters.items()}


def _from_json(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: float("inf") if value == "inf" else value for name, value in parameters.items()}


def check_same(path: str, earlier: dict[str, Any], now: dict[str, Any]) -> None:
    for name, value in now.items():
        before = earlier.get(name)
        if before == value:
            continue
        if name == "options":
            before = before or {}
            name = next(key for key in {**value, **before} if before.get(key) != value.get(key))
            before, value = before.get(name, "left out"), value.get(name, "left out")
            name = "--" + name.replace("_", "-")
        raise WrongUsage(f"{path} was begun with {name} {before}, now it is {value}; the same options take it up, "
                         "--overwrite begins anew")


def check_same_pixels(path: str, earlier: dict[str, Any], source: Source) -> None:
    """Chunks that could not be read then, or cannot be read now, are not compared."""
    now = source.fingerprint()
    if any(now.get(chunk, seen) != seen for chunk, seen in earlier.get("seen", {}).items()):
        raise WrongUsage(f"{source.name} has other pixels than when {path} was begun; --overwrite begins anew")


def read_options(words: Sequence[str]) -> str:
    """The options as JSON, as the program passes them."""
    return os.fsdecode(_core.cluster_options([os.fsencode(word) for word in words]))


def _local_workers(options: SimpleNamespace) -> int:
    return int(options.workers or max(1, (os.cpu_count() or 1) // max(1, options.threads)))


def _connect(options: SimpleNamespace) -> Any:
    import distributed
    logging.getLogger("distributed").setLevel(logging.ERROR)
    if options.scheduler:
        try:
            return distributed.Client(options.scheduler, timeout=_CONNECT_SECONDS), None
        except OSError as error:
            raise Error(f"no scheduler answers at {options.scheduler}: {error}") from None
        except TypeError:
            if not options.scheduler.startswith("tls://"):
                raise
            raise WrongUsage(f"{options.scheduler} needs certificates, which Dask's configuration names under "
                             "distributed.comm.tls (docs/cluster.md)") from None
    count = _local_workers(options)
    # Anyone who can connect to the scheduler can run code as the workers: it listens on this machine alone.
    local = distributed.LocalCluster(n_workers=count, threads_per_worker=1, host=_LOOPBACK,
                                     dashboard_address=options.dashboard or f"{_LOOPBACK}:0",
                                     memory_limit=options.worker_memory or "auto", silence_logs=logging.CRITICAL)
    return distributed.Client(local), local


class Progress:
    """On a terminal, a line that is rewritten; elsewhere only the last line."""

    def __init__(self, total: int, before: int, quiet: bool) -> None:
        self._total, self._before, self._shown = total, before, not quiet and sys.stderr.isatty()
        self._begin = time.monotonic()

    def tell(self, done: int) -> None:
        if self._shown:
            seconds = time.monotonic() - self._begin
            left = seconds / max(1, done) * (self._total - self._before - done)
            print(f"\r{self._before + done} of {self._total} blocks, {left:.0f} s left ", end="", file=sys.stderr,
                  flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)


def run(options: SimpleNamespace) -> int:
    source = open_source(options.input)
    target = located(options.output)
    from_, to = (place if _outputs.is_remote(place) else os.path.realpath(place) for place in (source.path, target))
    if f"{to}/".startswith(f"{from_}/") or f"{from_}/".startswith(f"{to}/"):
        raise WrongUsage(f"{options.output} is the input, or one is inside the other: the output needs a place of its own")
    if 0 in source.shape:
        raise WrongUsage(f"{source.name} has no pixels: its shape is {source.shape}")
    axes = axes_of(source, options)
    chunks = _chunks_of(source.shape, list(source.chunks), axes, options)
    if not options.scheduler and options.threads == 1:  # workers that get no block would leave their processors idle
        blocks = len(blocks_of(source.shape, chunks, axes, options.block))
        options.threads = max(1, _local_workers(options) // max(1, blocks))
    work = work_of(source, axes, options)
    levels = levels_of(source, axes, options)
    told = description(work, source, axes, options.words, options.preset)
    if options.overwrite:
        out = open_replacement(options.output, source, levels, told)
    else:
        out = open_output(options.output, source)
    client, local = _connect(options)
    try:
        if not options.quiet:
            workers = len(client.nthreads())
            print(f"{workers or 'no'} workers{'' if workers else ' yet'}; dashboard: {client.dashboard_link}", file=sys.stderr)
        if out is not None:
            earlier = dict(out.attrs["ungrain"])
            check_same(options.output, earlier, told)
            check_same_pixels(options.output, earlier, source)
            works = [replace(work, parameters=_from_json(each), resolved=True) for each in earlier["parameters"]]
        else:
            works = _measured(source, axes, work, options.block)
            told["parameters"] = [_to_json(each.parameters) for each in works]
            told["seen"] = source.fingerprint()
            told["overwrite"] = options.overwrite
            if options.overwrite and not _outputs.is_empty(target):
                _outputs.move_aside(target)
            out = create_output(options.output, source, chunks, told)
        if _outputs.kept_aside(target) and not options.quiet:
            print(f"{options.output} replaces {_aside(target)}, to be removed when all blocks are done", file=sys.stderr)
        _tell_of_levels(source, levels, options)
        job = Job(source, target + source.inside, axes, tuple(works))
        return _run_all(client, job, out, target, levels, options)
    finally:
        client.close()
        if local is not None:
            local.close()


def _measured(source: Source, axes: Axes, work: Work, side: int) -> list[Work]:
    from . import dask as on_dask
    if isinstance(work, VolumeWork):
        blocks = blocks_of(source.shape, source.chunks, axes, side)
        array = on_dask.lazily(source, tuple(blocks[0].stop) if blocks else source.chunks)
    else:
        array = on_dask.read(source.name)
    works = on_dask._resolved(array, axes, work)
    check_each_by_itself(works[0], axes)
    return works


def _tell_of_levels(source: Source, levels: Sequence[Level], options: SimpleNamespace) -> None:
    left_out = source.ome.levels[1 + len(levels):] if source.ome is not None else ()
    if left_out and not options.quiet:
        names = ", ".join(level.path for level in left_out)
        print(f"{source.name}: the output is without {names}: no level there, or not a whole number of times smaller",
              file=sys.stderr)


def _run_all(client: Any, job: Job, out: Any, target: str, levels: Sequence[Level], options: SimpleNamespace) -> int:
    """The blocks of the output, then those of its smaller levels, each from the one before."""
    begin = time.monotonic()
    status, took, made = _run_blocks(client, job, out, job.axes, options.block, target, options)
    seconds, place = time.monotonic() - begin, job.out
    for number, level in enumerate(levels):
        if status != DONE:
            break
        describe_levels(target, job.source, number + 2)
        array = level.open(target, out.dtype)
        if array is None:
            array = create_array(f"{target}/{level.path}", job.source, level.shape, level.chunks, {})
        of_level = LevelJob(place, f"{target}/{level.path}", level.factors)
        side = max(1, options.block // max(level.factors))  # reads about a block of the level before
        status, _, _ = _run_blocks(client, of_level, array, job.axes, side, target, options)
        place = of_level.out
    if status != DONE:
        return status
    _remove_partial_files(target)
    if out.attrs["ungrain"].get("overwrite"):
        for aside in _outputs.remove_aside(target):
            print(f"ungrain: {aside} is left: it holds more than a Zarr array", file=sys.stderr)
    if not options.quiet:
        _report(job, took, made, seconds)
        if levels:
            print(f"{len(levels)} smaller level{'s' if len(levels) > 1 else ''} of the pyramid")
    return DONE


def _run_blocks(client: Any, job: Job | LevelJob, out: Any, axes: Axes, side: int, target: str,
                options: SimpleNamespace) -> tuple[int, dict[str, float], int]:
    """The exit status, the workers' times, and the number of blocks made."""
    from distributed import as_completed
    every = blocks_of(out.shape, out.chunks, axes, side)
    there = written_chunks(out)
    left = [block for block in every if not is_written(block, out, there)]
    before, failures = len(every) - len(left), []
    if before and not options.quiet:
        print(f"{before} of {len(every)} blocks are there already", file=sys.stderr)
    progress = Progress(len(every), before, options.quiet)
    # The job is sent with the tasks: data on the workers would be lost with a worker that dies.
    futures = client.map(make_block, left, job=job, pure=False, key="ungrain-block")
    block_of = dict(zip(futures, left))
    took: dict[str, float] = {}
    count = 0
    completed = as_completed(futures)
    for future in completed:
        status = future.status
        if status in ("error", "cancelled"):
            failures.append(_told_of(future, block_of[future]))
        elif status == "finished":
            for name, value in future.result().items():
                took[name] = took.get(name, 0) + value
        else:  # its worker died with the result: another worker computes the block again
            completed.add(future)
            continue
        count += 1
        future.release()
        progress.tell(count)
        if len(set(failures)) >= _MOST_FAILURES:
            client.cancel(futures)
            break
    progress.end()
    if failures:
        unique = list(dict.fromkeys(failures))
        more = f" (and {len(unique) - 1} more such errors)" if len(unique) > 1 else ""
        there = written_chunks(out)
        done = sum(is_written(block, out, there) for block in every)
        print(f"ungrain: {unique[0]}{more}; {done} of {len(every)} blocks are done and kept, the same command takes it up"
              f"{_kept(target)}", file=sys.stderr)
        return FAILED, took, count
    return DONE, took, len(left)


def _aside(path: str) -> str:
    return " and ".join(_outputs.kept_aside(path))


def _kept(path: str) -> str:
    """The end of a message about a run that did not complete its output."""
    return f"; what was in its place is kept as {_aside(path)}" if path and _outputs.kept_aside(path) else ""


def _told_of(future: Any, block: Block) -> str:
    error = future.exception()
    text = " ".join(str(error).split())
    return text if isinstance(error, CannotRead) else f"block {block} failed: {text} ({type(error).__name__})"


def _report(job: Job, took: dict[str, float], blocks: int, seconds: float) -> None:
    work = job.works[0]
    level = work.parameters.get("sigma")
    strength = f", sigma {level}" if level is not None and len(job.works) == 1 else ""
    print(f"{work.method}{strength}: {blocks} blocks in {seconds:.1f} s")
    if blocks:
        more = took["pixels_in"] / took["pixels_out"] - 1
        print(f"{took['pixels_out'] / seconds / 1e6:.1f} million samples a second, {100 * more:.2f} % more read than "
              f"written; the workers' time: reading {took['read_s']:.1f} s, filtering {took['filter_s']:.1f} s, "
              f"writing {took['write_s']:.1f} s")


def _remove_partial_files(path: str) -> None:
    """Removes what a killed worker left of a chunk, beside the complete one that another wrote."""
    for folder, _, names in os.walk(path):
        for name in names:
            if name.endswith(".partial"):
                os.unlink(os.path.join(folder, name))


def main(arguments: Sequence[str] | None = None, options: str = "") -> int:
    """Takes words as the user of ungrain-cluster types them, or options that the program has read."""
    output = ""
    try:
        chosen = SimpleNamespace(**json.loads(options or read_options(sys.argv[1:] if arguments is None else arguments)))
        if hasattr(chosen, "help"):
            print(chosen.help, end="")
            return DONE
        chosen.output = chosen.output.removeprefix("file://")
        try:
            import dask  # noqa: F401
            import distributed  # noqa: F401
            import zarr  # noqa: F401
        except ImportError as error:
            raise Error(f"{_NEEDS} ({error.name} is missing)") from None
        output = located(chosen.output)
        return run(chosen)
    except (WrongUsage, _outputs.NotReplaced, ValueError, TypeError) as error:
        print(f"ungrain: {error}", file=sys.stderr)
        return USAGE
    except (Error, OSError, ImportError) as error:
        print(f"ungrain: {error}{_kept(output)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"ungrain: interrupted; finished blocks are kept, the same command takes it up{_kept(output)}", file=sys.stderr)
        return 130
    except Exception:
        print(f"ungrain: an error that was not foreseen{_kept(output)}", file=sys.stderr)
        raise


if __name__ == "__main__":
    sys.exit(main())
