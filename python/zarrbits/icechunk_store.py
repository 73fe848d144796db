# SPDX-License-Identifier: BSL-1.0
"""Stores of references as a commit of an Icechunk repository:

snapshot = zarrbits.to_icechunk("refs.json", "repository")

folders = icechunk.Repository.open(icechunk.local_filesystem_storage("repository")).config.virtual_chunk_containers
access = icechunk.containers_credentials({prefix: icechunk.Credentials.LocalFileSystemAccess() for prefix in folders})
repository = icechunk.Repository.open(icechunk.local_filesystem_storage("repository"), authorize_virtual_chunk_access=access)
group = zarr.open_group(repository.readonly_session("main").store, mode="r")
"""

from __future__ import annotations

import datetime
import email.utils
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .command import Error, Path
from .local_files import External
from .locations import AZURE
from .references import TIME, Options, References, Source, check_sources, items_of, protocol_of, read

if TYPE_CHECKING:
    from icechunk import Repository

_AT_ONCE = 1000  # objects that are waited for together
_KEYS = {"name": "default", "configuration": {"separator": "/"}}  # the only ones that Icechunk has


@dataclass
class _Array:
    """What an array has beside its metadata: chunks by their place in the grid."""

    keys: str
    separator: str
    rank: int
    stored: dict[tuple[int, ...], bytes] = field(default_factory=dict)
    referred: list[tuple[tuple[int, ...], list[Any]]] = field(default_factory=list)


def _array_of(path: str, metadata: dict[str, Any]) -> _Array:
    encoding = metadata.get("chunk_key_encoding")
    name = encoding.get("name") if isinstance(encoding, dict) else encoding
    more = encoding.get("configuration", {}) if isinstance(encoding, dict) else {}
    if name not in ("default", "v2") or not isinstance(metadata.get("shape"), list):
        raise Error(f'zarrbits: the array "{path}" has chunks under names that Icechunk does not have: {encoding!r}', 1)
    return _Array(str(name), str(more.get("separator", "/" if name == "default" else ".")), len(metadata["shape"]))


def _spell_out(metadata: dict[str, Any]) -> None:
    """Icechunk 2.3 reads no number in place of a list in a rectilinear chunk grid: as many chunks as the dimension needs."""
    grid = metadata.get("chunk_grid")
    configuration = grid.get("configuration") if isinstance(grid, dict) and grid.get("name") == "rectilinear" else None
    shapes = configuration.get("chunk_shapes") if isinstance(configuration, dict) else None
    if not isinstance(shapes, list):
        return
    for i, (lengths, extent) in enumerate(zip(shapes, metadata["shape"])):
        if isinstance(lengths, int) and lengths > 0 and isinstance(extent, int):
            shapes[i] = [[lengths, max(1, -(-extent // lengths))]]


def _place_of(key: str, arrays: dict[str, _Array]) -> tuple[_Array, tuple[int, ...]]:
    """The array that has a chunk, and where in its grid: "a/b/c/0/1", "a/b/c",
    "a/b/c.0.1" and "a/b/0.1" are of the array "a/b"."""
    end = len(key)
    while end > 0:  # from the end: what is behind the array's name are numbers, and a "c" before them
        end = max(key.rfind("/", 0, end), 0)
        array, rest = arrays.get(key[:end]), key[end:].lstrip("/")
        if array is not None:
            words = rest.split(array.separator)
            words = words[1:] if array.keys == "default" and words[0] == "c" else words if array.keys == "v2" else ["?"]
            words = [] if array.keys == "v2" and array.rank == 0 and words == ["0"] else words
            if len(words) == array.rank and all(w.isdecimal() and w.isascii() for w in words):
                return array, tuple(map(int, words))
            break
    raise Error(f'zarrbits: "{key}" is not a chunk of an array of this store', 1)


def _nodes_and_chunks(references: References) -> tuple[dict[str, bytes], dict[str, _Array]]:
    """The metadata of each node, and the arrays by their paths."""
    nodes: dict[str, bytes] = {}
    arrays: dict[str, _Array] = {}
    chunks: list[tuple[str, Any]] = []
    for key, value in items_of(references):
        if key.rpartition("/")[2] == ".zgroup":  # read() leaves it out where Zarr v3's metadata are there
            raise Error(
                f'zarrbits: "{references.path}" has only the metadata of Zarr v2, and Icechunk has only v3; '
                'make the references again, with zarr_format="both" or "3"',
                1,
            )
        if key != "zarr.json" and not key.endswith("/zarr.json"):
            chunks.append((key, value))
            continue
        path = key[: -len("zarr.json")].rstrip("/")
        try:
            metadata = json.loads(value)
            is_array = metadata["node_type"] == "array"
        except (TypeError, ValueError, KeyError, RecursionError) as e:
            raise Error(f'zarrbits: "{key}" of "{references.path}" is not metadata of Zarr v3', 1) from e
        if is_array:
            arrays[path] = _array_of(path, metadata)
            metadata["chunk_key_encoding"] = _KEYS
            _spell_out(metadata)
        metadata.pop("consolidated_metadata", None)  # of that Icechunk has no need
        nodes[key] = json.dumps(metadata, ensure_ascii=False).encode()
    for key, value in chunks:
        array, place = _place_of(key, arrays)
        if isinstance(value, list):
            array.referred.append((place, value))
        else:
            array.stored[place] = value
    return nodes, arrays


def _location(url: str) -> str:
    """References have names as they are, Icechunk URLs."""
    protocol, _, rest = url.partition("://")
    return f"{protocol}://{quote(rest, safe='/:?&=~%' if protocol in ('https', 'http') else '/')}"


def _prefixes(sources: set[str]) -> set[str]:
    """Beginnings of locations that take all sources, none of which begins with another: their folders, and buckets.
    Icechunk 2.3 finds no container whose prefix has characters that a URL escapes, so that the folder above is taken."""
    prefixes = set()
    if other := next((url for url in sorted(sources) if protocol_of(url) in ("gs", *AZURE)), None):
        raise Error(f'zarrbits: references to "{other}" cannot go into a repository; open them with open_references()', 1)
    for url in sources:
        folder = url.rpartition("/")[0]
        if protocol_of(url) in ("s3", "https", "http"):  # the bucket, the server
            folder = "/".join(url.split("/")[:3])
        while _location(folder) != folder:
            folder = folder.rpartition("/")[0]
        prefixes.add("file:///" if folder.rstrip("/") == "file:" else folder + "/")
    return {p for p in prefixes if not any(p != q and p.startswith(q) for q in prefixes)}


def _create(path: str, sources: set[str], options: Options) -> Repository:
    import icechunk

    storage = icechunk.local_filesystem_storage(path)
    if icechunk.Repository.exists(storage):
        return icechunk.Repository.open(storage)
    config = icechunk.RepositoryConfig.default()
    server = dict((options or {}).get("client_kwargs", {}))
    endpoint = (options or {}).get("endpoint_url", server.get("endpoint_url"))
    for prefix in sorted(_prefixes(sources)):
        if protocol_of(prefix) == "s3":
            store: Any = icechunk.s3_store(
                region=server.get("region_name"),
                endpoint_url=endpoint,
                anonymous=bool((options or {}).get("anon", False)),
                allow_http=str(endpoint).startswith("http://"),
                s3_compatible=endpoint is not None,
                force_path_style=endpoint is not None,
            )
        elif protocol_of(prefix) in ("https", "http"):
            store = icechunk.http_store()
        else:
            store = icechunk.local_filesystem_store(prefix[len("file://") :])
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
    return icechunk.Repository.create(storage, config)


def _etag(source: Source) -> str | None:
    """Icechunk 2.3 asks servers of HTTP for an ETag without its quotes, which none of them has."""
    return source.etag if protocol_of(source.url) == "s3" else None


def _time(source: Source) -> datetime.datetime | None:
    """The next whole second: Icechunk refuses a file that is newer, and has whole seconds."""
    if source.etag is not None and source.etag.startswith(TIME):
        return email.utils.parsedate_to_datetime(source.etag[len(TIME) :])
    if source.etag is not None or source.modified is None:
        return None
    return datetime.datetime.fromtimestamp(-(-source.modified // 10**9), datetime.timezone.utc)


def _read(references: References, url: str, offset: int, size: int) -> bytes:
    """A chunk that no source has, of the file beside the references."""
    name = references.data_of(url)
    if name is None:
        raise Error(f'zarrbits: "{references.path}" refers to "{url}", which is neither a source nor beside it', 1)
    with references.files.open(name) as f:
        f.seek(offset)
        content = f.read(size)
    if len(content) != size:
        raise Error(f'zarrbits: "{name}" is shorter than what "{references.path}" refers to; make it again', 1)
    return content


def _write(store: Any, references: References, nodes: dict[str, bytes], arrays: dict[str, _Array]) -> None:
    import asyncio

    import icechunk
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.sync import sync

    make = default_buffer_prototype().buffer.from_bytes
    sources = references.sources or {}
    checksums = {url: (_location(url), _etag(s), _time(s)) for url, s in sources.items()}

    def copied() -> Iterator[tuple[str, bytes]]:
        yield from sorted(nodes.items(), key=lambda n: n[0].count("/"))  # groups before what is in them
        for path, array in arrays.items():
            prefix = f"{path}/c" if path else "c"
            for place, content in array.stored.items():
                yield "/".join([prefix, *map(str, place)]), content
            for place, (url, offset, size) in array.referred:
                if url not in sources:
                    yield "/".join([prefix, *map(str, place)]), _read(references, url, offset, size)

    async def put(some: list[tuple[str, bytes]]) -> None:
        await asyncio.gather(*(store.set(key, make(content)) for key, content in some))

    some: list[tuple[str, bytes]] = []
    for key, content in copied():
        if not key.endswith("zarr.json") and not content:
            raise Error(f'zarrbits: the chunk "{key}" has no bytes, which Icechunk does not store', 1)
        some.append((key, content))
        if len(some) == _AT_ONCE or key.endswith("zarr.json"):  # those above a node are there first
            sync(put(some))
            some = []
    sync(put(some))
    for path, array in arrays.items():
        chunks = [(place, *checksums[url], offset, size) for place, (url, offset, size) in array.referred if url in sources]
        empty = next((c[0] for c in chunks if c[-1] == 0), None)
        if empty is not None:
            raise Error(f'zarrbits: the chunk {empty} of "{path}" has no bytes, which Icechunk does not store', 1)
        specs = [
            icechunk.VirtualChunkSpec(list(place), where, offset, size, etag, time)
            for place, where, etag, time, offset, size in chunks
        ]
        refused = store.set_virtual_refs("/" + path, specs) if specs else None
        if refused:
            where = next(c[1] for c in chunks if list(c[0]) == list(refused[0]))
            raise Error(
                f'zarrbits: the repository has no virtual chunk container for "{where}"; add one for its folder or bucket', 1
            )


def to_icechunk(
    references: Path,
    repository: Path | Repository,
    *,
    branch: str = "main",
    message: str = "references by zarrbits",
    overwrite: bool = False,
    storage_options: Options = None,
    external: External = None,
) -> str:
    """Writes a store of references as one commit of an Icechunk repository, and returns the id of the snapshot.

    Chunks in the sources become virtual chunks with the source's ETag or time: Icechunk refuses to read one that is newer.
    What no source has is copied.
    repository: an icechunk.Repository with virtual chunk containers for the folders or buckets of the sources, or a path:
    a local repository, which is made, with these containers, where none is there.
    Whoever reads has to authorize the containers (authorize_virtual_chunk_access).
    overwrite: replaces what the branch has; earlier snapshots keep it. Without it, a branch that is not empty is an Error.
    storage_options: as of open_references(); the endpoint, region and "anon" in it are those of the containers.
    external: as of open_references(): folders of sources that are not below the folder of the references.
    """
    table = read(references, external)
    check_sources(table, storage_options)
    nodes, arrays = _nodes_and_chunks(table)
    from zarr.core.sync import sync

    if isinstance(repository, (str, os.PathLike)):
        repository = _create(os.fspath(repository), set(table.sources or ()), storage_options)
    session = repository.writable_session(branch)
    if not sync(session.store.is_empty("")):
        if not overwrite:
            raise Error(
                f'zarrbits: the branch "{branch}" already has a store; replace it with overwrite=True, '
                "which keeps earlier snapshots",
                1,
            )
        sync(session.store.clear())
    _write(session.store, table, nodes, arrays)
    return str(session.commit(message))
