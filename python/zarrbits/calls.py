# SPDX-License-Identifier: BSL-1.0
"""The verbs of the command as functions:

    report = zarrbits.convert("in.h5", "out.zarr", shard="64M", threads=4)
    report.lost                                     # what is not in the store, with the reason of each
    zarrbits.verify("in.h5", "out.zarr").equal      # True

Options have their names and meaning in the command (`zarrbits convert --help`), with "_" for "-": compress="zstd:3", include=["/a", "/b"], consolidate=True;
None and False are what the command does without them. With `concat`, `concat_new` and `append`, the source may be a list. Each function raises Error with the command's sentence.
"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Literal, Optional, Sequence, Union

from .command import Option, Path, run
from .progress import Wanted, shown
from .report import Outcome, Plan, Report, Verification

Paths = Union[Path, Sequence[Path]]
Many = Union[Path, Sequence[Path], None]
Shape = Union[str, Sequence[int], None]


def _paths(source: Paths, *others: Optional[Path]) -> List[Path]:
    sources: Sequence[Path] = [source] if isinstance(source, (str, os.PathLike)) else source
    return [*sources, *(o for o in others if o is not None)]


def _options(given: Dict[str, Any], *others: str) -> Dict[str, Option]:
    return {name: value for name, value in given.items() if name not in others}


def convert(source: Paths, store: Path, *, progress: Wanted = True,
        concat: Optional[str] = None, concat_new: Optional[str] = None, append: Optional[str] = None,
        order: Optional[Literal["given", "name", "value"]] = None,
        different: Optional[Literal["refuse", "first", "skip"]] = None, allow_overlap: bool = False,
        report: Optional[Path] = None, overwrite: bool = False, resume: bool = False, threads: Optional[int] = None,
        memory: Union[int, str, None] = None, fsync: bool = False, consolidate: bool = False,
        endpoint: Optional[str] = None, include: Many = None, exclude: Many = None, external: Many = None, no_lock: bool = False,
        allow_lossy: bool = False, keep_going: bool = False, allow_expansion: bool = False, codec: Optional[Literal["bytes", "packbits"]] = None,
        convention: Optional[Literal["none", "netcdf", "anndata", "nwb", "nexus", "matlab", "pytables"]] = None,
        links: Optional[Literal["keep", "copy", "refuse"]] = None, profile: Optional[Literal["portable", "native", "recode"]] = None,
        compress: Optional[str] = None, chunk: Shape = None, shard: Shape = None, checksum: Optional[Literal["crc32c"]] = None,
        bits: Union[int, str, Sequence[Union[int, str]], None] = None, virtual: bool = False, inline: Union[int, str, None] = None) -> Report:
    """Converts an HDF5 file. Raises Error where there is no store; what is not in the store is in the report's `lost`.

    progress: a function that is called with a Progress now and then, and may raise to stop; or True: a bar, where tqdm is installed and a terminal or
    notebook shows it. Ctrl-C ends the command, which leaves nothing that looks whole. Where there is nothing to do for `resume` or `append`, the report has
    no objects. A share of a store is not for one process: `zarrbits convert --partition`.
    """
    options = _options(locals(), "source", "store", "progress")
    # within a job of Slurm or MPI as well: all of it
    options.update(quiet=True, partition="0/1")
    with shown(progress) as told:
        document, _ = run("convert", _paths(source, store), options, (0, 3), told)
    if not document:  # the store has all of it already
        return Report(str(_paths(source)[0]), str(store), {}, [], {})
    objects = [Outcome(o["path"], o["kind"], o["outcome"], o.get("attribute"), o.get("reason"), bool(o.get("lossy", False))) for o in document["objects"]]
    return Report(document["source"], document["store"], document["summary"], objects, document)


def plan(source: Paths, store: Optional[Path] = None, *,
        concat: Optional[str] = None, concat_new: Optional[str] = None, append: Optional[str] = None,
        order: Optional[Literal["given", "name", "value"]] = None,
        different: Optional[Literal["refuse", "first", "skip"]] = None, allow_overlap: bool = False,
        endpoint: Optional[str] = None, include: Many = None, exclude: Many = None, external: Many = None, no_lock: bool = False,
        allow_lossy: bool = False, keep_going: bool = False, allow_expansion: bool = False, codec: Optional[Literal["bytes", "packbits"]] = None,
        convention: Optional[Literal["none", "netcdf", "anndata", "nwb", "nexus", "matlab", "pytables"]] = None,
        links: Optional[Literal["keep", "copy", "refuse"]] = None, profile: Optional[Literal["portable", "native", "recode"]] = None,
        compress: Optional[str] = None, chunk: Shape = None, shard: Shape = None, checksum: Optional[Literal["crc32c"]] = None,
        bits: Union[int, str, Sequence[Union[int, str]], None] = None, virtual: bool = False, inline: Union[int, str, None] = None) -> Plan:
    """What convert() would do, from metadata alone."""
    document, status = run("plan", _paths(source, store), _options(locals(), "source", "store"), (0, 3))
    return Plan(status == 0, document["datasets"], document)


def verify(source: Paths, store: Path, *,
        concat: Optional[str] = None, concat_new: Optional[str] = None, order: Optional[Literal["given", "name", "value"]] = None,
        different: Optional[Literal["refuse", "first", "skip"]] = None, allow_overlap: bool = False,
        include: Many = None, exclude: Many = None, endpoint: Optional[str] = None, external: Many = None, no_lock: bool = False,
        links: Optional[Literal["keep", "copy"]] = None, memory: Union[int, str, None] = None) -> Verification:
    """Compares every value, attribute, name and link of a store with its source."""
    document, status = run("verify", _paths(source, store), _options(locals(), "source", "store"), (0, 1, 3))
    return Verification(status in (0, 3), status == 0, document)


def inspect(*files: Path, endpoint: Optional[str] = None, no_lock: bool = False, memory: Union[int, str, None] = None) -> Dict[str, Any]:
    """What is in an HDF5 file or a store; of two, both."""
    return run("inspect", files, _options(locals(), "files"), (0, 3))[0]


def suggest(file: Path, *, all: bool = False, external: Many = None, no_lock: bool = False) -> Dict[str, Any]:
    """How many bits the values of each dataset need."""
    return run("suggest", [file], _options(locals(), "file"), (0,))[0]


def doctor(file: Optional[Path] = None, *, no_lock: bool = False) -> Dict[str, Any]:
    """Why a plugin is not found, and which chunks are stored unpacked."""
    return run("doctor", [] if file is None else [file], _options(locals(), "file"), (0, 1))[0]
