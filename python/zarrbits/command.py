# SPDX-License-Identifier: BSL-1.0
"""The command `zarrbits` from Python: each call runs it in a child process, so that no second libhdf5 is in this one.

    report = zarrbits.convert("in.h5", "out.zarr", shard="64M", threads=4)
    report.lost                                     # what is not in the store, with the reason of each
    zarrbits.verify("in.h5", "out.zarr").equal      # True

Options have their names in the command, with "_" for "-": compress="zstd:3", include=["/a", "/b"], consolidate=True.
"""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from html import escape
from typing import Any, Dict, List, Optional, Sequence, Union

Option = Union[str, int, float, bool, "os.PathLike[str]", Sequence[Union[str, int]], None]
Path = Union[str, "os.PathLike[str]"]


class Error(RuntimeError):
    """What the command said. `status`: its exit status, 1 for a failure, 2 for wrong options."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Outcome:
    """What became of one object, or of one attribute of it."""

    path: str
    kind: str
    outcome: str
    attribute: Optional[str] = None
    reason: Optional[str] = None
    lossy: bool = False


@dataclass(frozen=True)
class Report:
    """What convert() did. `document` is all of the command's report."""

    source: str
    store: str
    counts: Dict[str, int]
    objects: List[Outcome]
    document: Dict[str, Any] = field(repr=False)

    @property
    def lost(self) -> List[Outcome]:
        """What is not in the store, or cannot be rebuilt from it; not what include and exclude left out."""
        return [o for o in self.objects if o.lossy or (o.outcome == "skipped" and o.reason != "not selected")]

    def _repr_html_(self) -> str:
        return _table(("outcome", "objects"), list(self.counts.items())) + (
            _table(("lost", "kind", "reason"), [(o.path, o.kind, o.reason or "") for o in self.lost]) if self.lost else "")


@dataclass(frozen=True)
class Plan:
    """What convert() would do. `complete`: whether all of the source would be in the store."""

    complete: bool
    datasets: List[Dict[str, Any]]
    document: Dict[str, Any] = field(repr=False)

    def _repr_html_(self) -> str:
        return _table(("dataset", "outcome", "how"), [(d.get("path", ""), d.get("outcome", ""), d.get("how", d.get("reason", ""))) for d in self.datasets])


@dataclass(frozen=True)
class Verification:
    """How a store compares with its source. `equal`: nothing differs, is missing or cannot be read; `complete`: and nothing was left unchecked."""

    equal: bool
    complete: bool
    document: Dict[str, Any] = field(repr=False)

    def _repr_html_(self) -> str:
        rows = [(k, v.get("equal", 0), v.get("differs", 0), v.get("missing", 0)) for k, v in self.document.items() if isinstance(v, dict) and "equal" in v]
        return _table(("", "equal", "differs", "missing"), rows)


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"
    return "<table>" + line(head, "th") + "".join(line(r, "td") for r in rows) + "</table>"


def program() -> str:
    """The path of the command: that of this package, ZARRBITS_COMMAND, or the one on PATH."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "zarrbits")
    for candidate in (os.environ.get("ZARRBITS_COMMAND"), here if os.path.exists(here) else None, shutil.which("zarrbits")):
        if candidate:
            return candidate
    raise Error("zarrbits: this package was installed without the command; build it, and name it by ZARRBITS_COMMAND or PATH", 1)


def _arguments(options: Dict[str, Option]) -> List[str]:
    arguments: List[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, (list, tuple)) and name in ("chunk", "shard"):
            arguments += [flag, ",".join(map(str, value)) + ("," if len(value) == 1 else "")]
        else:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                arguments += [flag, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return arguments


def _run(verb: str, paths: Sequence[Path], options: Dict[str, Option], accepted: Sequence[int], show: bool = False) -> Any:
    command = [program(), verb, "--json", *_arguments(options), "--", *(os.fspath(p) for p in paths)]
    # what is to be shown goes to this process's standard error as it comes
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=None if show else subprocess.PIPE)
    try:
        out, said = child.communicate()
    except BaseException:  # Ctrl-C above all: the command leaves nothing that looks whole
        child.send_signal(signal.SIGINT)
        try:
            child.wait(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
    if child.returncode not in accepted or not out.strip():
        sentence = (said or b"").decode(errors="replace").strip()
        raise Error(sentence or f"zarrbits {verb}: exit status {child.returncode}", child.returncode)
    return json.loads(out), child.returncode


def convert(source: Path, store: Path, *, progress: bool = False, **options: Option) -> Report:
    """Converts an HDF5 file. `progress`: the command's own progress and warnings on standard error. Raises Error where there is no store."""
    if not progress:
        options.setdefault("quiet", True)
    document, _ = _run("convert", [source, store], options, (0, 3), show=progress)
    objects = [Outcome(o["path"], o["kind"], o["outcome"], o.get("attribute"), o.get("reason"), bool(o.get("lossy", False))) for o in document["objects"]]
    return Report(document["source"], document["store"], document["summary"], objects, document)


def plan(source: Path, store: Optional[Path] = None, **options: Option) -> Plan:
    """What convert() would do, from metadata alone."""
    document, status = _run("plan", [source] if store is None else [source, store], options, (0, 3))
    return Plan(status == 0, document["datasets"], document)


def verify(source: Path, store: Path, **options: Option) -> Verification:
    """Compares every value, attribute, name and link of a store with its source."""
    document, status = _run("verify", [source, store], options, (0, 1, 3))
    return Verification(status in (0, 3), status == 0, document)


def inspect(*files: Path, **options: Option) -> Dict[str, Any]:
    """What is in an HDF5 file or a store; of two, both."""
    document, _ = _run("inspect", files, options, (0, 3))
    return dict(document)


def suggest(file: Path, **options: Option) -> Dict[str, Any]:
    """How many bits the values of each dataset need."""
    document, _ = _run("suggest", [file], options, (0,))
    return dict(document)


def doctor(file: Optional[Path] = None, **options: Option) -> Dict[str, Any]:
    """Why a plugin is not found, and which chunks are stored unpacked."""
    document, _ = _run("doctor", [] if file is None else [file], options, (0, 1))
    return dict(document)


def main() -> None:
    """`python -m zarrbits`, and `zarrbits` on PATH: the command itself."""
    try:
        path = program()
    except Error as e:
        sys.exit(str(e))
    os.execv(path, [path, *sys.argv[1:]])
