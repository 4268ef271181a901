"""ungrain cluster: a Zarr array or a TIFF stack from one store to another on a Dask cluster, for people who don't write
Python. Every block is read, with the pixels around it, filtered and written by one task, so workers exchange nothing. A
block that is written is done: a run that is started again resumes where the last one stopped."""

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

from . import __version__, _core, _outputs
from ._denoise import _WHITE
from ._errors import CannotRead, Error
from ._parts import Axes, Work, check_each_by_itself, denoise_parts
from ._sources import Source, located, open_source

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
        for axis, reach in ((self.axes.y, max(r for r, _ in reaches)), (self.axes.x, max(c for _, c in reaches))):
            region[axis] = slice(max(0, block.start[axis] - reach), min(self.source.shape[axis], block.stop[axis] + reach))
        return tuple(region)


def make_block(block: Block, job: Job) -> dict[str, float]:
    """Reads, filters and writes a block; returns the times."""
    import zarr
    y, x = job.axes.y, job.axes.x
    begin = time.perf_counter()
    region = job.region_of(block)
    pixels = job.source[region]
    read = time.perf_counter()
    result = denoise_parts(job.works_of(block), job.axes, pixels, at=(region[y].start, region[x].start),
                           out_at=(block.start[y], block.start[x]),
                           out_shape=(block.stop[y] - block.start[y], block.stop[x] - block.start[x]))
    filtered = time.perf_counter()
    with zarr.config.set({"array.write_empty_chunks": True}):  # an existing chunk is a finished chunk
        zarr.open_array(job.out, mode="r+")[block.slices()] = result
    return {"pixels_in": pixels.size, "pixels_out": result.size, "read_s": read - begin, "filter_s": filtered - read,
            "write_s": time.perf_counter() - filtered}


def blocks_of(shape: Sequence[int], chunks: Sequence[int], axes: Axes, side: int) -> list[Block]:
    """Whole chunks, joined to about `side` rows and columns."""
    step = list(chunks)
    for axis in (axes.y, axes.x):
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


def description(work: Work, source: Source, axes: Axes, words: dict[str, str], preset: str | None) -> dict[str, Any]:
    """What the output depends on; a resumed run must have the same. Measured values come from there."""
    return {"version": __version__, "input": source.path, "method": work.method, "preset": preset, "options": words,
            "channels": work.channels, "range": work.range, "nonfinite": work.nonfinite, "device": work.device,
            "axis": list(axes.stack), "channel_axis": axes.channel}


def open_output(path: str, source: Source) -> Any:
    """The output that an earlier run left, or none."""
    import zarr
    if _outputs.is_empty(path):
        return None
    try:
        out = zarr.open_array(path, mode="r+")
    except Exception:  # its type depends on what exists there
        raise WrongUsage(f"{path} is there and is no Zarr array") from None
    if "ungrain" not in out.attrs:
        raise WrongUsage(f"{path} is there and was not written by ungrain cluster; --overwrite replaces it")
    if (out.shape, out.dtype) != (source.shape, source.dtype):
        raise WrongUsage(f"{path} is there with another shape or type than {source.name}; --overwrite replaces it")
    return out


def open_replacement(path: str, source: Source, now: dict[str, Any]) -> Any:
    """With --overwrite: the incomplete output of an earlier run with the same options and --overwrite; or none, and the
    existing array may be replaced."""
    if _outputs.is_empty(path):
        return None
    try:
        out = open_output(path, source)
        earlier = dict(out.attrs["ungrain"])
        check_same(path, earlier, now)
        check_same_pixels(path, earlier, source)
        if earlier.get("overwrite") and (_outputs.kept_aside(path) or not is_complete(out)):
            return out
    except WrongUsage:
        pass
    _outputs.check_replaceable(path)
    return None


def create_output(path: str, source: Source, chunks: Sequence[int], told: dict[str, Any]) -> Any:
    import zarr
    return zarr.create_array(path, shape=source.shape, dtype=source.dtype, chunks=tuple(chunks), overwrite=False,
                             attributes={**source.attributes, "ungrain": told})


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
    count = options.workers or max(1, (os.cpu_count() or 1) // max(1, options.threads))
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
    axes = Axes.of(source.ndim, options.axis, options.channel_axis)
    white = options.range or _WHITE.get(source.dtype.name, 1.0)
    given = {name: value for name, value in _core.read_words(options.method, options.preset, options.words, white).items()
             if value is not None}
    work = Work(options.method, given, axes.image_shape(source.shape), source.dtype.name, axes.image_channel_axis(),
                options.channels, options.range, None, options.device, options.nonfinite, options.threads, options.memory)
    chunks = list(source.chunks)
    if axes.channel is not None:
        chunks[axes.channel] = source.shape[axes.channel]
    for axis in (axes.y, axes.x):
        chunks[axis] = min(options.chunk or chunks[axis], options.block, source.shape[axis])
    told = description(work, source, axes, options.words, options.preset)
    if options.overwrite:
        out = open_replacement(options.output, source, told)
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
            works = _measured(source, axes, work)
            told["parameters"] = [_to_json(each.parameters) for each in works]
            told["seen"] = source.fingerprint()
            told["overwrite"] = options.overwrite
            if options.overwrite and not _outputs.is_empty(target):
                _outputs.move_aside(target)
            out = create_output(options.output, source, chunks, told)
        if _outputs.kept_aside(target) and not options.quiet:
            print(f"{options.output} replaces {_aside(target)}, to be removed when all blocks are done", file=sys.stderr)
        job = Job(source, target, axes, tuple(works))
        return _run_blocks(client, job, out, options)
    finally:
        client.close()
        if local is not None:
            local.close()


def _measured(source: Source, axes: Axes, work: Work) -> list[Work]:
    from . import dask as on_dask
    works = on_dask._resolved(on_dask.read(source.name), axes, work)
    check_each_by_itself(works[0], axes)
    return works


def _run_blocks(client: Any, job: Job, out: Any, options: SimpleNamespace) -> int:
    from distributed import as_completed
    every = blocks_of(job.source.shape, out.chunks, job.axes, options.block)
    there = written_chunks(out)
    left = [block for block in every if not is_written(block, out, there)]
    before, failures, begin = len(every) - len(left), [], time.monotonic()
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
              f"{_kept(job.out)}", file=sys.stderr)
        return FAILED
    _remove_partial_files(job.out)
    if out.attrs["ungrain"].get("overwrite"):
        for aside in _outputs.remove_aside(job.out):
            print(f"ungrain: {aside} is left: it holds more than a Zarr array", file=sys.stderr)
    if not options.quiet:
        _report(job, took, len(left), time.monotonic() - begin)
    return DONE


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
