# SPDX-License-Identifier: BSL-1.0
"""Stores of references, as `zarrbits convert --virtual` makes them, for zarr-python and xarray:

    zarrbits.convert("in.h5", "refs.json", virtual=True)
    group = zarr.open_group(zarrbits.open_references("refs.json"))
    dataset = xarray.open_zarr(zarrbits.open_references("refs.json"), consolidated=False)

Chunks are read from the files that they refer to, by fsspec; for those in S3 it needs s3fs, for those of HTTPS aiohttp.
Local files are read only if they are regular files in the folder of the references or below; external= allows more.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from .command import Error, Path
from .local_files import External, LocalFiles, NotRegular, list_of, open_regular
from .locations import AZURE
from .servers import Servers, is_web

if TYPE_CHECKING:
    from zarr.storage import FsspecStore

Options = Optional[Mapping[str, Any]]
PROTOCOLS = ("file", "s3", "gs", *AZURE, "https", "http")
_OF_S3 = ("anon", "key", "secret", "token", "profile", "endpoint_url", "config_kwargs", "requester_pays", "project")
_OF_AZURE = (
    "account_name",
    "account_key",
    "connection_string",
    "sas_token",
    "credential",
    "client_id",
    "client_secret",
    "tenant_id",
    "account_host",
)
TIME = "modified "  # begins what stands for the ETag of a server that has none
_NAMED = 5  # sources in one sentence
_MOST_ROWS = 1_000_000  # references in one Parquet file


@dataclass(frozen=True)
class Source:
    """A file that is referred to, and what it was then. modified: nanoseconds since 1970."""

    url: str
    size: int
    modified: int | None = None
    etag: str | None = None


@dataclass(frozen=True)
class Table:
    """The metadata of references in Parquet. parts: of each array the files that it has, by their numbers,
    and how many references are in each; None if nothing is said of that."""

    metadata: dict[str, Any]
    record_size: int
    parts: dict[str, dict[int, int]] | None


@dataclass(frozen=True)
class References:
    """What the file `path` says. keys: of JSON the text, or URL, offset and size, of each object of the store. table:
    of Parquet, whose rows are read later."""

    path: str
    keys: dict[str, Any] | None
    sources: dict[str, Source] | None
    files: LocalFiles
    servers: Servers
    table: Table | None = None

    def data_of(self, url: str) -> str | None:
        """The file beside it that has chunks which no source has, if that is what the URL names;
        each append to the store adds one with a number."""
        found = re.search(r"\.data(\.[0-9]+)?$", url)
        name = self.path + found[0] if found else ""
        try:
            return name if name and url.startswith("file://") and os.path.samefile(url[len("file://") :], name) else None
        except OSError:
            return None


def protocol_of(url: str) -> str:
    return url.partition("://")[0] if "://" in url else "file"


def without_v2(keys: dict[str, Any]) -> dict[str, Any]:
    """Where both are there, zarr-python would warn of each node that it has the metadata of two formats."""
    if "zarr.json" not in keys:
        return keys
    return {k: v for k, v in keys.items() if k.rpartition("/")[2] not in (".zgroup", ".zarray", ".zattrs", ".zmetadata")}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def absolute(path: str, url: str) -> str:
    """A name without a folder, or a relative one, is from the folder of the references."""
    return url if "://" in url or url.startswith("/") else f"file://{os.path.normpath(os.path.join(os.path.dirname(path), url))}"


def _source(path: str, given: Any) -> Source:
    if not (
        isinstance(given, dict)
        and isinstance(given.get("url"), str)
        and _whole(given.get("size"))
        and isinstance(given.get("etag", ""), str)
        and _whole(given.get("modified", 0))
    ):
        raise Error(f'zarrbits: "{path}" has a source without a URL and a size; make the references again', 1)
    return Source(absolute(path, given["url"]), given["size"], given.get("modified"), given.get("etag"))


def is_reference(value: Any) -> bool:
    if isinstance(value, str):
        return True
    return (
        isinstance(value, list)
        and len(value) == 3
        and isinstance(value[0], str)
        and protocol_of(value[0]) in PROTOCOLS
        and _whole(value[1])
        and _whole(value[2])
    )


def _table(path: str, document: dict[str, Any], metadata: dict[str, Any], ours: Any) -> Table:
    size = document.get("record_size")
    given = ours.get("parts") if isinstance(ours, dict) else None
    parts = given.items() if isinstance(given, dict) else []
    right = all(
        isinstance(p, list) and all(isinstance(n, list) and len(n) == 2 and all(map(_whole, n)) for n in p) for _, p in parts
    )
    if not (_whole(size) and 0 < int(size or 0) <= _MOST_ROWS and right and isinstance(given, (dict, type(None)))):
        raise Error(f'zarrbits: "{path}" has an invalid list of its files; make the references again', 1)
    return Table(
        metadata,
        int(size or 0),
        None if given is None else {array: {number: count for number, count in listed} for array, listed in parts},
    )


def read(path: Path, external: External = None) -> References:
    """The file, which may say anything: nothing of it is used before it was looked at."""
    name = os.path.abspath(os.fspath(path))
    is_table = os.path.isdir(name)
    files = LocalFiles(name, external)
    allowed = [os.fspath(e) for e in list_of(external)]
    servers = Servers(name, [e for e in allowed if is_web(e)], "all" in allowed)
    try:
        with open_regular(os.path.join(name, ".zmetadata") if is_table else name) as f:
            document = json.loads(f.read())
    except (ValueError, RecursionError, NotRegular) as e:
        raise Error(f'zarrbits: "{name}" has no references: {e}', 1) from e
    keys = document.get("metadata" if is_table else "refs") if isinstance(document, dict) else None
    if not isinstance(keys, dict):
        raise Error(f'zarrbits: "{name}" has no references; `zarrbits convert --virtual` makes such a file', 1)
    ours = document.get("zarrbits")
    given = ours.get("sources") if isinstance(ours, dict) else None
    sources = {s.url: s for s in (_source(name, g) for g in given)} if isinstance(given, list) else None
    if is_table:
        references = References(name, None, sources, files, servers, _table(name, document, keys, ours))
        for url in sources or {}:
            check_file(references, url)
        return references
    wrong = next((k for k, v in keys.items() if not is_reference(v)), None)
    if wrong is not None:
        raise Error(
            f'zarrbits: "{wrong}" of "{name}" is neither text nor [URL, offset, size] with a file://, s3://, gs://, az:// '
            "or https:// URL",
            1,
        )
    keys = {k: [absolute(name, v[0]), *v[1:]] if isinstance(v, list) else v for k, v in without_v2(keys).items()}
    references = References(name, keys, sources, files, servers)
    for url in {*_ends(keys), *(sources or {})}:
        check_file(references, url)
    return references


def check_file(references: References, url: str) -> None:
    """Raises Error for a file that may not be read; that one is missing is told where it is read."""
    if is_web(url):
        references.servers.check(url)
    if protocol_of(url) == "file":
        try:
            references.files.name_of(url)
        except OSError:
            pass


def _change_of(source: Source, size: int, modified: int | None, etag: str | None) -> str | None:
    if size != source.size:
        return f'"{source.url}" has {size} bytes, and had {source.size}'
    if source.etag is not None and not source.etag.startswith(TIME) and etag is not None:
        return None if etag.strip('"') == source.etag.strip('"') else f'"{source.url}" has been written again'
    if source.modified is not None and modified is not None and modified != source.modified:
        return f'"{source.url}" has been written to'
    return None


def _local_change(files: LocalFiles, source: Source) -> str | None:
    try:
        info = files.stat(source.url)
    except OSError as e:
        return f'"{source.url}": {e.strerror}'
    return _change_of(source, info.st_size, info.st_mtime_ns, None)


def _account_of(url: str) -> str | None:
    """ "account" in "abfs://container@account.dfs.core.windows.net/key"."""
    host = url.partition("://")[2].partition("/")[0].partition("@")[2]
    return host.partition(".")[0] or None


def _options_for(protocol: str, options: Options, references: References) -> dict[str, Any]:
    """What a file system of fsspec is told, of options that may be for several."""
    told, servers = dict(options or {}), references.servers
    if protocol in AZURE:
        urls = [u for u in (*(references.sources or ()), *_ends(references.keys or {})) if protocol_of(u) == protocol]
        accounts = {_account_of(u) for u in urls}
        if len(accounts) > 1:
            raise Error(f'zarrbits: "{references.path}" refers to files in several storage accounts; make it of one', 1)
        told = {k: v for k, v in told.items() if k in (*_OF_AZURE, "anon")}
        if (account := next(iter(accounts), None)) and "connection_string" not in told:
            if told.setdefault("account_name", account) != account:
                raise Error(f'zarrbits: "{references.path}" refers to the storage account "{account}", not account_name', 1)
        return told
    told = {k: v for k, v in told.items() if k not in _OF_AZURE}
    if protocol in ("s3", "gs"):
        told.pop("headers", None)
    if protocol == "gs":  # gcsfs has no client of botocore
        return {k: v for k, v in told.items() if k not in ("anon", "key", "secret", "profile", "client_kwargs", "config_kwargs")}
    if protocol == "s3":
        told.pop("project", None)
        return told
    client = {k: v for k, v in dict(told.pop("client_kwargs", None) or {}).items() if k not in ("endpoint_url", "region_name")}
    return servers.options_for({k: v for k, v in told.items() if k not in _OF_S3} | {"client_kwargs": client})


def _remote_changes(protocol: str, sources: list[Source], options: Options, references: References) -> list[str | None]:
    import fsspec

    files = fsspec.filesystem(protocol, **_options_for(protocol, options, references))

    async def look(source: Source, few: asyncio.Semaphore) -> str | None:
        async with few:
            try:
                info = await files._info(source.url, **({"refresh": True} if protocol == "s3" else {}))
            except OSError as e:
                reason = e.__cause__ if isinstance(e.__cause__, (Error, OSError)) else e
                return f'"{source.url}": {reason}'
            time, etag = info.get("LastModified"), info.get("ETag")
            if protocol in AZURE:
                time, etag = info.get("last_modified"), info.get("etag")
            if protocol == "gs":  # of Google's JSON; the ETag of the XML interface is the MD5, if there is one
                etag = base64.b64decode(info["md5Hash"]).hex() if info.get("md5Hash") else None
            return _change_of(source, info["size"], None if time is None else int(time.timestamp()) * 10**9, etag)

    async def look_at_all() -> list[str | None]:
        few = asyncio.Semaphore(32)
        return list(await asyncio.gather(*(look(s, few) for s in sources)))

    return list(fsspec.asyn.sync(files.loop, look_at_all))


def _ends(keys: Mapping[str, Any]) -> dict[str, int]:
    """How far into each file references lead."""
    ends: dict[str, int] = {}
    for value in keys.values():
        if isinstance(value, list):
            url, end = value[0], value[1] + value[2]
            if end > ends.get(url, 0):
                ends[url] = end
    return ends


def where_it_ends(references: References, url: str) -> int:
    """The size of a source, or of the file beside the references; an Error for any other."""
    source = (references.sources or {}).get(url)
    if source is not None:
        return source.size
    data = references.data_of(url)
    if data is None:
        raise Error(
            f'zarrbits: "{references.path}" refers to "{url}", which is neither a source '
            f'nor a file "{references.path}.data" that is there; '
            "keep references where they were made, with that file",
            1,
        )
    return os.path.getsize(data)


def require_receiver(references: References, options: Options) -> None:
    """Raises Error where options have secrets for a server that nobody named."""
    urls = [*(references.sources or {}), *_ends(references.keys or {})]
    references.servers.require_receiver(options or {}, [u for u in urls if is_web(u)])


def check_sources(references: References, options: Options) -> None:
    """Raises Error where a source is not what it was: whoever reads would get other bytes, and no error."""
    if references.sources is None:
        raise Error(
            f'zarrbits: "{references.path}" does not say what its sources were, so that changes cannot be detected; '
            "make it by `zarrbits convert --virtual`, or give check=False",
            1,
        )
    require_receiver(references, options)
    local = [s for s in references.sources.values() if protocol_of(s.url) == "file"]
    found = [_local_change(references.files, s) for s in local]
    for protocol in _protocols(references):
        there = [s for s in references.sources.values() if protocol_of(s.url) == protocol]
        found += _remote_changes(protocol, there, options, references)
    changes = [c for c in found if c is not None]
    if changes:
        more = f", and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
        raise Error(
            f'zarrbits: sources of "{references.path}" have changed: {"; ".join(changes[:_NAMED])}{more}; '
            "make the references again",
            1,
        )
    for url, end in _ends(references.keys or {}).items():
        if end > where_it_ends(references, url):
            raise Error(f'zarrbits: "{references.path}" refers to bytes beyond the end of "{url}"; make it again', 1)


def _protocols(references: References) -> set[str]:
    urls = (
        list(references.sources or ())
        if references.keys is None or references.sources is not None
        else list(_ends(references.keys))
    )
    return {protocol_of(u) for u in urls} - {"file"}


def items_of(references: References) -> Iterator[tuple[str, Any]]:
    """Each key with its content, bytes, or with [URL, offset, size]."""
    keys: Any = references.keys
    if keys is None:
        from .reference_table import ReferenceTable

        keys = ReferenceTable(references, checked=True)
    for key, value in keys.items():
        if isinstance(value, str):
            yield key, base64.b64decode(value[len("base64:") :]) if value.startswith("base64:") else value.encode()
        else:
            yield key, value


def open_references(path: Path, *, external: External = None, storage_options: Options = None, check: bool = True) -> FsspecStore:
    """A store of references as a store of zarr-python, which cannot be written to: JSON, or a folder of Parquet.

    external: a folder, or several, whose files the references may lead to, beside their own folder; or "all" for any.
    Whoever wrote the references names the files that are read.
    "https://host" in it, as external=["/data", "https://host"], is a server that may have a private address, and that gets
    the secrets in storage_options: headers, auth and cookies go to no other.

    storage_options: what fsspec is told, where sources are on servers, as {"anon": True},
    {"client_kwargs": {"endpoint_url": "..."}} or {"headers": {"Authorization": "..."}}.
    check: a source that is missing, or has another size or time than when the references were made, is an Error that names it.
    Without it, chunks of such a source read as whatever is at their place.
    """
    references = read(path, external)
    require_receiver(references, storage_options)
    if check:
        check_sources(references, storage_options)
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
    from fsspec.implementations.reference import ReferenceFileSystem
    from zarr.storage import FsspecStore

    from .allowed_files import AllowedFiles

    local = AsyncFileSystemWrapper(AllowedFiles(references.files, skip_instance_cache=True), asynchronous=True)
    systems: dict[str | None, Any] = {None: local, "file": local}
    for protocol in _protocols(references):
        systems[protocol] = {**_options_for(protocol, storage_options, references), "asynchronous": True}
    keys: Any = references.keys  # and not the whole file: there, braces in the name of a source would be a template
    if keys is None:
        from .reference_table import ReferenceTable

        keys = ReferenceTable(references, checked=check)
    files = ReferenceFileSystem(keys, fs=systems, asynchronous=True, skip_instance_cache=True)
    return FsspecStore(files, read_only=True)
