# SPDX-License-Identifier: BSL-1.0
"""One conversion by the workers of an Executor of concurrent.futures, or of a Client of dask.distributed: each writes partitions
of the store, and one of them writes its metadata at the end. They need not communicate, so any executor will do."""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol, Union

from .command import Error, Exists, Option, WrongOption, execute, logger
from .locations import absolute, in_short, name_of, storage_options_of
from .options import OPTIONS

Tell = Callable[[dict[str, Any]], None]
_PER_WORKER = 4  # partitions: long and short ones even out, and progress is told after each
_ATTEMPTS = 3
# what may be otherwise the next time; "": the command was killed, or could not say
_PASSING = {"", "busy", "io_failed", "server_failed"}


class DaskClient(Protocol):
    """The member that is used of a Client of dask.distributed."""

    def get_executor(self, **options: Any) -> Any: ...


Client = Union[concurrent.futures.Executor, DaskClient]


def convert_partition(
    paths: Sequence[str], options: dict[str, Option], partition: str, delay: float
) -> tuple[dict[str, Any], list[str]]:
    """What a worker does: (the last state of the work, the warnings)."""
    time.sleep(delay)
    state: dict[str, Any] = {}
    _, _, warnings = execute("convert", paths, {**options, "partition": partition}, (0, 3), state.update, json_wanted=False)
    return state, warnings


def complete(paths: Sequence[str], options: dict[str, Option], delay: float) -> tuple[dict[str, Any], list[str]]:
    """What a worker does in the end: (the report, the warnings)."""
    time.sleep(delay)
    document, _, warnings = execute("finalize", paths, options, (0, 3))
    return document, warnings


@dataclass
class _Work:
    """The partitions of one conversion, while they are made."""

    executor: concurrent.futures.Executor
    paths: Sequence[str]
    options: dict[str, Option]
    count: int
    pending: dict[concurrent.futures.Future[Any], int] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    failed: dict[int, BaseException] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def submit(self, index: int) -> None:
        attempt = self.attempts[index] = self.attempts.get(index, 0) + 1
        partition, delay = f"{index}/{self.count}", float(attempt - 1)
        try:
            future = self.executor.submit(convert_partition, self.paths, self.options, partition, delay)
        except RuntimeError as e:  # of an executor that was shut down, or whose workers died
            self.failed[index] = e
        else:
            self.pending[future] = index

    def run(self, tell: Tell | None) -> None:
        done = objects = ended_partitions = 0
        for index in range(self.count):
            self.submit(index)
        while self.pending:
            ended, _ = concurrent.futures.wait(self.pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ended:
                index = self.pending.pop(future)
                error = _error_of(future)
                if error is not None:
                    self._lose(index, error)
                    continue
                state, warnings = future.result()
                self.warnings += warnings
                logger.info("partition %d/%d of %s is done", index, self.count, in_short(self.paths[:-1]))
                done += state.get("total", 0)
                ended_partitions += 1
                total = done * self.count // ended_partitions  # partitions are of about equal work
                objects = max(objects, state.get("objects", 0))
                if tell and total:
                    # a dataset has chunks in several partitions, and counts with each
                    tell(
                        {
                            "done": done,
                            "total": total,
                            "objects_done": objects * done // total,
                            "objects": objects,
                            "path": state.get("path", "/"),
                        }
                    )

    def cancel(self) -> None:
        for future in self.pending:
            future.cancel()

    def _lose(self, index: int, error: BaseException) -> None:
        if isinstance(error, Error) and error.status != 2 and error.code in _PASSING and self.attempts[index] < _ATTEMPTS:
            logger.warning("partition %d/%d is tried again: %s", index, self.count, error)
            self.submit(index)
            return
        self.failed[index] = error
        if isinstance(error, (WrongOption, Exists)):  # no other partition can do it either
            self.cancel()

    def error(self) -> Error:
        """What is raised for those that failed. Those that were cancelled for it are not what went wrong."""
        own = {i: e for i, e in self.failed.items() if not isinstance(e, concurrent.futures.CancelledError)} or self.failed
        index = min(own)
        cause = own[index]
        reason = str(cause).removeprefix("zarrbits: ") or type(cause).__name__
        if isinstance(cause, (WrongOption, Exists)):
            return _like(cause, f"zarrbits: {reason}")
        file = cause.file if isinstance(cause, Error) else ""
        named = f'"{file}"' if file else in_short(self.paths[:-1])
        others = ", ".join(map(str, sorted(set(own) - {index})))
        if isinstance(cause, concurrent.futures.BrokenExecutor):
            reason = f"a worker died, and with it the executor ({reason}); use another one"
        sentence = f"zarrbits: partition {index}/{self.count} of {named} failed: {reason}"
        sentence += f"; so did {others}" if others else ""
        error = _like(cause, sentence + "; finished work is kept, and the same call continues")
        error.__cause__ = cause
        return error


def convert(
    client: Client,
    locations: Sequence[Any],
    options: dict[str, Option],
    count: int | None,
    tell: Tell | None,
) -> tuple[dict[str, Any], list[str]]:
    """(the report, the warnings). The last of `locations` is the store."""
    if options.get("overwrite"):
        raise WrongOption(
            "zarrbits: with `client`, no store is replaced, since no process knows of the others; remove it first, or choose "
            "another name",
            2,
        )
    if count is not None and count < 1:
        raise WrongOption(f"zarrbits: `partitions` is {count}, but must be at least 1", 2)
    paths = [absolute(name_of(location, bool(options["lock"]))) for location in locations]
    options = _for_workers(options, storage_options_of(list(locations)))
    report = options.pop("report", None)
    finalizing = {
        name: value for name, value in options.items() if name in OPTIONS["finalize"] or name in ("quiet", "storage_options")
    }
    finalizing["report"] = report
    executor = _executor_of(client)
    work = _Work(executor, paths, {"threads": 1, **options}, count or _PER_WORKER * _workers_of(client))
    try:
        work.run(tell)
    except BaseException:  # Ctrl-C, or `progress` raised
        work.cancel()
        raise
    if work.failed:
        raise work.error()
    for attempt in range(_ATTEMPTS):
        future = executor.submit(complete, paths, finalizing, float(attempt))
        failure = _error_of(future)
        if failure is None:
            break
        if not isinstance(failure, Error) or failure.code not in _PASSING or attempt == _ATTEMPTS - 1:
            raise failure
    document, warnings = future.result()
    return document, list(dict.fromkeys([*work.warnings, *warnings]))


def _for_workers(options: dict[str, Option], storage_options: Any) -> dict[str, Option]:
    """Names of files are made absolute, since workers may be in other folders."""
    known: dict[str, Option] = {name: value for name, value in options.items() if value is not None}
    for name in ("ca_file", "scratch", "report", "headers", "places"):
        value = known.get(name)
        if isinstance(value, (str, os.PathLike)):  # headers may be a mapping
            known[name] = os.path.abspath(os.fsdecode(value))
    if "external" in known:
        given = known["external"]
        many = given if isinstance(given, (list, tuple)) else [given]
        known["external"] = [one if one == "all" else os.path.abspath(os.fsdecode(one)) for one in many]  # type: ignore[arg-type]
    if storage_options is not None:
        known.setdefault("storage_options", storage_options)
    return known


def _executor_of(client: Any) -> concurrent.futures.Executor:
    if isinstance(client, concurrent.futures.Executor):
        return client
    if callable(getattr(client, "get_executor", None)):
        # pure: a call with the same arguments would not run again
        executor: concurrent.futures.Executor = client.get_executor(pure=False)
        return executor
    raise TypeError(
        f"zarrbits: `client` is an Executor of concurrent.futures or a Client of dask.distributed, not {type(client).__name__}"
    )


def _workers_of(client: Any) -> int:
    """How many partitions run at a time."""
    if callable(getattr(client, "ncores", None)):
        return sum(client.ncores().values()) or 4  # a cluster that grows has none yet
    for name in ("_max_workers", "num_workers"):  # concurrent.futures has no name for it that is public; mpi4py has
        number = getattr(client, name, None)
        if isinstance(number, int) and number > 0:
            return number
    return os.cpu_count() or 1


def _error_of(future: concurrent.futures.Future[Any]) -> BaseException | None:
    """Waits for it."""
    try:
        return future.exception()
    except concurrent.futures.CancelledError as e:
        return e


def _like(error: BaseException, sentence: str) -> Error:
    """An error of the same kind with another sentence."""
    if isinstance(error, Error):
        return type(error)(sentence, error.status, error.code, error.file, error.object)
    return Error(sentence, 1)
