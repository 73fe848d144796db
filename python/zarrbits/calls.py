# SPDX-License-Identifier: BSL-1.0
"""The verbs of the command as functions:

    report = zarrbits.convert("in.h5", "out.zarr", shard="64M", threads=4)
    report.lost                                     # what is not in the store, with the reason of each
    print(report)                                   # a table
    zarrbits.verify("in.h5", "out.zarr").equal      # True

Options have their names and meaning in the command (`zarrbits convert --help`), with "_" for "-":
compress="zstd:3", include=["/a", "/b"], consolidate=True; `lock=False` is --no-lock.
Defaults are what the command does without them. With `concat`, `concat_new` and `append`, the source may be a list.
Each function raises Error with the command's sentence, and where Python has a name for what went wrong, that is its class, too:
FileNotFoundError, FileExistsError, PermissionError, ValueError.
"""

from __future__ import annotations

import collections
import json
import os
import tempfile
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Literal, TypeVar, Union

from . import partitions as several
from .command import Option, Path, WrongOption, run
from .locations import Location, is_location, name_of
from .partitions import Client
from .progress import Wanted, shown
from .report import (
    Check,
    Diagnosis,
    Digest,
    Export,
    Inspection,
    LayoutCheck,
    Outcome,
    Plan,
    Repack,
    Report,
    Suggestions,
    Verification,
)
from .words import of_options

Paths = Union[Location, Sequence[Location]]
Many = Union[Path, Sequence[Path], None]
Headers = Union[Mapping[str, str], Path, None]  # {"Authorization": "Bearer TOKEN"}, or a file with one on each line
Shape = Union[str, Sequence[int], None]
Lengths = Mapping[str, int]  # along dimensions: {"time": 768, "lat": -1}
# or of datasets: {"t2m": {"time": 768}}, and with an HDF5 file as the target {"/v": (64, -1)}
Chunks = Union[str, Sequence[Union[int, str]], Mapping[str, Union[int, Lengths, Sequence[int]]], None]
Bits = Union[
    int, str, Sequence[Union[int, str]], Mapping[str, Union[int, str]], None
]  # 12, "auto", {"/movie/frames": 12, "/events/*": "2-11"}
Shapes = Union[str, Sequence[str], Mapping[str, Sequence[int]], None]  # of the chunks of datasets: {"/v": (64, 64)}
Filters = Union[str, Sequence[str], Mapping[str, str], None]  # of all datasets, or of some: {"/v": "zstd:3"}
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Lossy = TypeVar("_Lossy", Report, Export)


def _explained(verb: str, *without: str, others: Sequence[str] = ()) -> Callable[[_Function], _Function]:
    """Adds to a docstring what the command says of its options, and of those that only `others` have."""

    def add(function: _Function) -> _Function:
        if function.__doc__:  # not under python -OO
            function.__doc__ = function.__doc__.rstrip() + of_options(verb, frozenset(without), others)
            if "storage_options: " not in function.__doc__ and "storage_options" in function.__annotations__:
                function.__doc__ += "    storage_options: for sources and stores on servers, as convert() has it\n"
        return function

    return add


def _paths(source: Paths, *others: Location | None) -> list[Location]:
    # a group of h5py is a Mapping, whose names are not those of files
    one = is_location(source) or isinstance(source, Mapping) or not isinstance(source, Iterable)
    sources: Any = [source] if one else source
    return [*sources, *(o for o in others if o is not None)]


def _options(given: dict[str, Any], *others: str) -> dict[str, Option]:
    options = {name: value for name, value in given.items() if name not in others}
    if isinstance(options.get("bits"), Mapping):
        options["bits"] = [f"{pattern}={bits}" for pattern, bits in options["bits"].items()]
    if isinstance(options.get("chunk"), Mapping):
        options["chunk"] = _chunks(options["chunk"])
    return options


def _chunks(given: Mapping[str, Any]) -> list[str]:
    def lengths(of: Any) -> str:
        if not isinstance(of, Mapping):
            return "x".join(map(str, of))
        return ",".join(f"{dimension}:{length}" for dimension, length in of.items())

    def is_length(value: Any) -> bool:
        return isinstance(value, str) or not isinstance(value, (Mapping, Sequence))

    for_all = {name: value for name, value in given.items() if is_length(value)}
    some = [f"{pattern}={lengths(value)}" for pattern, value in given.items() if not is_length(value)]
    return ([lengths(for_all)] if for_all else []) + some


@_explained("convert", "in_place", "check", others=("export", "repack"))
def convert(
    source: Paths,
    store: Location,
    *,
    client: Client | None = None,
    partitions: int | None = None,
    progress: Wanted = True,
    concat: str | None = None,
    concat_new: str | None = None,
    places: Path | None = None,
    append: str | None = None,
    order: Literal["given", "name", "value"] | None = None,
    different: Literal["refuse", "first", "skip"] | None = None,
    allow_overlap: bool = False,
    report: Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    partition: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    scratch: Path | None = None,
    fsync: bool = False,
    consolidate: bool | None = None,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    include: Many = None,
    with_coordinates: bool = False,
    exclude: Many = None,
    external: Many = None,
    lock: bool = True,
    digest: bool = False,
    allow_lossy: bool = False,
    keep_going: bool = False,
    allow_expansion: bool = False,
    codec: Literal["bytes", "packbits"] | None = None,
    convention: Literal["none", "netcdf", "anndata", "nwb", "nexus", "matlab", "pytables"] | None = None,
    links: Literal["keep", "copy", "refuse"] | None = None,
    profile: Literal["portable", "native", "recode"] | None = None,
    compress: str | None = None,
    chunk: Chunks = None,
    write_empty_chunks: bool = False,
    shard: Shape = None,
    grid: Literal["regular", "rectilinear"] | None = None,
    checksum: Literal["crc32c"] | None = None,
    bits: Bits = None,
    virtual: bool = False,
    cf_aggregation: bool = False,
    inline: int | str | None = None,
    zarr_format: Literal[2, 3, "both"] | None = None,
    base: str | None = None,
    filter: Filters = None,
    filters: Literal["standard", "any"] | None = None,
    netcdf: bool | None = None,
    libver: Literal["compatible", "latest"] | None = None,
    page_size: int | str | None = None,
    layout: Literal["asis", "cloud", "cmip7"] | None = None,
    dry_run: bool = False,
    chunk_bytes: int | str | None = None,
) -> Report:
    """Converts an HDF5 file or a Zarr store. Raises Error where there is no store; what is not in the store is in the report's
    `lost`.

    progress: a function that is called with a Progress now and then, once the total is known, and may raise to stop; or True:
    a bar, where tqdm is installed and a terminal or notebook shows it.
    Ctrl-C ends the command, which leaves nothing that looks whole.
    Where there is nothing to do for `resume` or `append`, the report has no objects; nor has that of several HDF5 files as
    one, whose document has `files` and `notes`.

    A store whose name is that of an HDF5 file, such as OUT.h5 or OUT.nc, becomes one, with the options of export_store(), or,
    from an HDF5 file, those of repack(); the error names those that such a pair does not have. With `concat` or `concat_new`, it
    has the values of all files.

    bits: a number for all datasets, or a dict of patterns: bits={"/movie/frames": 12}.
    chunk: a shape, or a dict of dimensions and of patterns: chunk={"time": 24, "/t2m": {"time": 768, "lat": -1}}; for an HDF5
    file from another one, shapes by patterns: chunk={"/v": (64, -1)}.
    filter: of an HDF5 file, "zstd:3"; from another one also by patterns: filter={"/v": "zstd:3"}.

    client: a Client of dask.distributed, or an Executor of concurrent.futures (also of mpi4py or loky): its workers make
    the store in partitions, each by one thread unless `threads` says otherwise, and write its metadata at the end. They need the
    package and the same paths. A partition whose process is killed, or whose server fails, is tried again; if one fails for good,
    the others are finished, the error names its file, and the same call continues. Progress is told after each partition.
    partitions: how many a `client` makes (default: four for each worker).

    partition: "2/16" makes the chunks of the third of sixteen partitions, and no metadata, for other ways to start several
    processes; the report of a partition has no objects. When all partitions are done, finalize() completes the store.
    Without it, all is converted, also within a job of Slurm or MPI.

    storage_options: as fsspec's file systems take them, for a source or a store on a server: anon, key, secret, token, profile,
    endpoint_url, region_name, requester_pays, project, headers and verify (a file of certificates); at Azure account_name,
    account_key, sas_token, connection_string, account_host, client_id, client_secret and tenant_id. Nothing of it is in the
    process list.
    """
    options = _options(locals(), "source", "store", "client", "partitions", "progress")
    options.update(quiet=True)
    began = time.monotonic()
    if client is not None:
        if partition is not None:
            raise WrongOption("zarrbits: with `client`, all partitions are made; leave out `partition`, or `client`", 2)
        with shown(progress) as told:
            document, sentences = several.convert(client, _paths(source, store), options, partitions, told)
        for sentence in sentences:
            warnings.warn(sentence, stacklevel=2)
        return _report(source, store, document, time.monotonic() - began)
    if partitions is not None:
        raise WrongOption(
            "zarrbits: `partitions` needs a `client`, whose workers make them; set one, or leave out `partitions`", 2
        )
    is_whole = partition in (None, "0/1")
    with shown(progress) as told:
        document, _ = run("convert", _paths(source, store), options, (0, 3), told, json_wanted=is_whole)
    return _report(source, store, document, time.monotonic() - began)


def _report_of_file(document: dict[str, Any]) -> Report:
    """That of an HDF5 file, which export or repack wrote."""
    if "exporter" in document:
        counts, names = document["counts"], ("store_bytes", "file_bytes")
        objects = document["objects"]
    else:
        counts, names = collections.Counter(d["outcome"] for d in document["datasets"]), ("source_bytes", "bytes")
        objects = [{"kind": "dataset", **d} for d in document["datasets"]]
    before, after = names
    sized = [{**o, "source_bytes": o.get(before), "store_bytes": o.get(after)} for o in objects]
    outcomes = _outcomes({"objects": sized}, lambda o: "lost_chunks" in o)
    source = document.get("source") or document["store"]
    return Report(source, document["target"], dict(counts), outcomes, document["seconds"], document)


def _report(source: Paths, store: Location, document: dict[str, Any], seconds: float) -> Report:
    if "exporter" in document or "repacker" in document:
        return _warn_of_left_out(_report_of_file(document))
    if "objects" not in document:  # a share, a store that has all of it already, or a file that names parts in others
        names = [name_of(one, lock=False) for one in _paths(source, store)]
        document = {"sources": document.get("files", [{"file": name} for name in names[:-1]]), **document}
        document["sources"] = [{"notes": [], **source} for source in document["sources"]]
        return Report(document["sources"][0]["file"], names[-1], {}, [], seconds, document)
    objects = _outcomes(document, lambda o: bool(o.get("lossy", False)))
    return _warn_of_left_out(Report(document["source"], document["store"], document["summary"], objects, seconds, document))


def _warn_of_left_out(report: _Lossy, stacklevel: int = 4) -> _Lossy:
    for file in report.lost:
        if file.kind == "file":  # all that it has is missing
            warnings.warn(f'zarrbits: "{file.path}" is left out: {file.reason}', stacklevel=stacklevel)
    return report


def _outcomes(document: dict[str, Any], is_lossy: Callable[[dict[str, Any]], bool]) -> list[Outcome]:
    return [
        Outcome(
            o["path"],
            o["kind"],
            o["outcome"],
            o.get("attribute"),
            o.get("reason"),
            is_lossy(o),
            o.get("source_bytes"),
            o.get("store_bytes"),
            o.get("selected", True),
            o.get("code"),
        )
        for o in document["objects"]
    ]


@_explained("finalize")
def finalize(
    source: Paths,
    store: Location,
    *,
    concat: str | None = None,
    concat_new: str | None = None,
    places: Path | None = None,
    order: Literal["given", "name", "value"] | None = None,
    different: Literal["refuse", "first", "skip"] | None = None,
    allow_overlap: bool = False,
    report: Path | None = None,
    fsync: bool = False,
    consolidate: bool | None = None,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    external: Many = None,
    lock: bool = True,
    allow_lossy: bool = False,
    threads: int | None = None,
    memory: int | str | None = None,
    scratch: Path | None = None,
    include: Many = None,
    with_coordinates: bool = False,
    exclude: Many = None,
    keep_going: bool = False,
    allow_expansion: bool = False,
    codec: Literal["bytes", "packbits"] | None = None,
    convention: Literal["none", "netcdf", "anndata", "nwb", "nexus", "matlab", "pytables"] | None = None,
    links: Literal["keep", "copy", "refuse"] | None = None,
    profile: Literal["portable", "native", "recode"] | None = None,
    compress: str | None = None,
    chunk: Chunks = None,
    write_empty_chunks: bool = False,
    shard: Shape = None,
    grid: Literal["regular", "rectilinear"] | None = None,
    checksum: Literal["crc32c"] | None = None,
    bits: Bits = None,
    virtual: bool = False,
    inline: int | str | None = None,
    zarr_format: Literal[2, 3, "both"] | None = None,
    base: str | None = None,
) -> Report:
    """Completes a store of which convert(partition=...) made all partitions: writes its metadata.
    The report is that of the whole store; where it is complete already, the report has no objects.

    The store's plan has the options of the partitions. Those that are given again are compared with it."""
    began = time.monotonic()
    document, _ = run("finalize", _paths(source, store), dict(_options(locals(), "source", "store", "began"), quiet=True), (0, 3))
    return _report(source, store, document, time.monotonic() - began)


@_explained("plan")
def plan(
    source: Paths,
    store: Location | None = None,
    *,
    concat: str | None = None,
    concat_new: str | None = None,
    places: Path | None = None,
    append: str | None = None,
    order: Literal["given", "name", "value"] | None = None,
    different: Literal["refuse", "first", "skip"] | None = None,
    allow_overlap: bool = False,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    include: Many = None,
    with_coordinates: bool = False,
    exclude: Many = None,
    external: Many = None,
    lock: bool = True,
    allow_lossy: bool = False,
    keep_going: bool = False,
    allow_expansion: bool = False,
    codec: Literal["bytes", "packbits"] | None = None,
    convention: Literal["none", "netcdf", "anndata", "nwb", "nexus", "matlab", "pytables"] | None = None,
    links: Literal["keep", "copy", "refuse"] | None = None,
    profile: Literal["portable", "native", "recode"] | None = None,
    compress: str | None = None,
    chunk: Chunks = None,
    write_empty_chunks: bool = False,
    shard: Shape = None,
    grid: Literal["regular", "rectilinear"] | None = None,
    checksum: Literal["crc32c"] | None = None,
    bits: Bits = None,
    virtual: bool = False,
    inline: int | str | None = None,
    zarr_format: Literal[2, 3, "both"] | None = None,
    base: str | None = None,
    memory: int | str | None = None,
    time: bool = False,
    report: Path | None = None,
) -> Plan:
    """What convert() would do, from metadata and a sample of the values."""
    document, status = run("plan", _paths(source, store), _options(locals(), "source", "store"), (0, 3))
    return Plan(status == 0, document["datasets"], document)


@_explained("export")
def export_store(
    store: Paths,
    file: Path,
    *,
    progress: Wanted = True,
    concat: str | None = None,
    order: Literal["given", "name", "value"] | None = None,
    different: Literal["refuse", "first", "skip"] | None = None,
    allow_overlap: bool = False,
    report: Path | None = None,
    overwrite: bool = False,
    include: Many = None,
    exclude: Many = None,
    filter: str | None = None,
    filters: Literal["standard", "any"] | None = None,
    netcdf: bool | None = None,
    libver: Literal["compatible", "latest"] | None = None,
    page_size: int | str | None = None,
    external: Many = None,
    threads: int | None = None,
    memory: int | str | None = None,
    fsync: bool = False,
    keep_going: bool = False,
    digest: bool = False,
    allow_lossy: bool = False,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Export:
    """Writes a store into an HDF5 or netCDF-4 file: the way back from convert(). Raises Error where there is no file;
    what HDF5 cannot have is in the report's `lost`. With `concat`, a list of stores becomes one file."""
    options = _options(locals(), "store", "file", "progress")
    options["quiet"] = True
    with shown(progress) as told:
        document, _ = run("export", _paths(store, file), options, (0, 3), told)
    objects = _outcomes(document, lambda o: "lost_chunks" in o)
    return _warn_of_left_out(
        Export(document["store"], os.fsdecode(file), document["counts"], objects, document["seconds"], document), 3
    )


@_explained("repack", "check", "in_place", "partition", "chunk", "filter")
def repack(
    source: Location,
    target: Path | None = None,
    *,
    progress: Wanted = True,
    report: Path | None = None,
    dry_run: bool = False,
    layout: Literal["asis", "cloud", "cmip7"] | None = None,
    chunk: Shapes = None,
    filter: Filters = None,
    chunk_bytes: int | str | None = None,
    page_size: int | str | None = None,
    libver: Literal["compatible", "latest"] | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    memory: int | str | None = None,
    scratch: Path | None = None,
    fsync: bool = False,
    digest: bool = False,
    lock: bool = True,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Repack:
    """Changes the layout, chunks or filters of an HDF5 or netCDF-4 file. Without a target, a file that does not follow the
    rules of the layout is replaced when its new form is complete. With dry_run nothing is written: sizes and seconds are about
    those.

    chunk: shapes of chunks by patterns, in which -1 is the whole dimension: chunk={"/v": (64, -1)}.
    filter: for all datasets, or by patterns: filter={"/v": "zstd:3"}."""
    if isinstance(chunk, Mapping):
        chunk = [f"{pattern}={'x'.join(map(str, shape))}" for pattern, shape in chunk.items()]
    if isinstance(filter, Mapping):
        filter = [f"{pattern}={value}" for pattern, value in filter.items()]
    options = _options(locals(), "source", "target", "progress")
    options["quiet"] = True
    if target is None:
        options["in_place"] = True
    with shown(progress) as told:
        document, _ = run("repack", [source] if target is None else [source, target], options, (0, 3), told)
    return Repack(name_of(source), document["unchanged"], document["datasets"], document["seconds"], document)


@_explained("rename")
def rename_references(path: Path, old: str, new: str, *, fsync: bool = False, memory: int | str | None = None) -> int:
    """Renames the sources of references, in JSON or in a folder of Parquet: names that are `old` or below it begin with `new`
    instead. Returns how many files that were.

    old, new: "/data" (the same as "file:///data"), "s3://bucket/prefix" or "https://host/path", or a path from the folder of the
    references. Below an https:// URL, names are percent-encoded.

    Such files are known by their size only, as with convert(base=...): copies have times and ETags of their own.
    verify(base="FOLDER=URL") finds the local files again. The references are replaced in one step.
    Raises Error if no name is like that, and for a URL with a user or a query, which everybody would see."""
    try:
        names = [name_of(name) for name in (path, old, new)]
    except ValueError as e:
        raise WrongOption(str(e), 2) from e
    return int(run("rename", names, {"fsync": fsync, "memory": memory}, (0,))[0]["files"])


@_explained(
    "repack",
    "check",
    "in_place",
    "dry_run",
    "partition",
    "chunk",
    "filter",
    "chunk_bytes",
    "page_size",
    "libver",
    "overwrite",
    "threads",
    "memory",
    "scratch",
    "fsync",
    "digest",
    "report",
)
def check_layout(
    source: Location,
    *,
    layout: Literal["asis", "cloud", "cmip7"] | None = None,
    lock: bool = True,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LayoutCheck:
    """Which rules of a layout an HDF5 file follows."""
    document, status = run("repack", [source], {**_options(locals(), "source"), "check": True}, (0, 3))
    return LayoutCheck(name_of(source), status == 0, document["findings"], document)


@_explained("digest", "add", "manifest", "dandi")
def digest(
    source: Location,
    *,
    progress: Wanted = True,
    include: Many = None,
    exclude: Many = None,
    attributes: bool = False,
    nan: Literal["bits", "any"] | None = None,
    partition: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    allow_expansion: bool = False,
    external: Many = None,
    lock: bool = True,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Digest:
    """Digests of the values of an HDF5 file or a Zarr store: equal for equal values, whatever the format, chunks and codecs."""
    options = _options(locals(), "source", "progress")
    with shown(progress) as told:
        document, _ = run("digest", [source], options, (0, 3), told)
    return Digest(name_of(source), document["digest"], document["arrays"], document)


def add_digests(parts: Iterable[Digest]) -> Digest:
    """The digests of a source that digest(partition=...) has read in parts, of all of these, in any order."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, part in enumerate(parts):
            files.append(os.path.join(folder, f"{i}.json"))
            with open(files[-1], "w", encoding="utf-8") as file:
                json.dump(part.document, file)
        document, _ = run("digest", files, {"add": True}, (0, 3))
    return Digest(document["source"], document["digest"], document["arrays"], document)


@_explained("verify")
def verify(
    source: Paths,
    store: Location,
    *,
    concat: str | None = None,
    concat_new: str | None = None,
    places: Path | None = None,
    order: Literal["given", "name", "value"] | None = None,
    different: Literal["refuse", "first", "skip"] | None = None,
    allow_overlap: bool = False,
    include: Many = None,
    with_coordinates: bool = False,
    exclude: Many = None,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    external: Many = None,
    lock: bool = True,
    links: Literal["keep", "copy"] | None = None,
    part: bool = False,
    base: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    report: Path | None = None,
) -> Verification:
    """Compares every value, attribute, name and link of a store with its source."""
    document, status = run("verify", _paths(source, store), _options(locals(), "source", "store"), (0, 1, 3))
    return Verification(status in (0, 3), status == 0, document)


@_explained("check")
def check(
    name: Location,
    *,
    progress: Wanted = True,
    metadata: bool = False,
    sample: str | None = None,
    seed: int | None = None,
    allow_missing: bool = True,
    partition: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    external: Many = None,
    lock: bool = True,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Check:
    """Whether a store, an HDF5 or a netCDF-4 file is all right: every chunk, all metadata; with nothing to compare it with."""
    options = _options(locals(), "name", "progress")
    options["quiet"] = True
    with shown(progress) as told:
        document, status = run("check", [name], options, (0, 3), told)
    return Check(name_of(name), status == 0, document["arrays"], document["findings"], document["seconds"], document)


@_explained("inspect")
def inspect(
    *files: Location,
    attributes: bool = False,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    lock: bool = True,
    memory: int | str | None = None,
) -> Inspection:
    """What is in an HDF5 file or a store; of two, both."""
    document = run("inspect", files, _options(locals(), "files"), (0, 3))[0]
    return Inspection(document["trees"], document)


@_explained("suggest")
def suggest(
    file: Location,
    *,
    chunks: bool = False,
    access: str | None = None,
    all: bool = False,
    external: Many = None,
    lock: bool = True,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Suggestions:
    """How many bits the values of each dataset need, or which chunks they should have for an `access`."""
    document = run("suggest", [file], _options(locals(), "file"), (0, 3))[0]
    return Suggestions(document["datasets"], document)


@_explained("doctor")
def doctor(
    file: Location | None = None,
    *,
    lock: bool = True,
    endpoint: str | None = None,
    sign_request: bool = True,
    request_payer: bool = False,
    aws_profile: str | None = None,
    headers: Headers = None,
    ca_file: Path | None = None,
    follow_private: bool = False,
    etag: bool = True,
    connections: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Why a plugin is not found, and which chunks are stored unpacked."""
    document, status = run("doctor", [] if file is None else [file], _options(locals(), "file"), (0, 1))
    return Diagnosis(status == 0, document)
