# SPDX-License-Identifier: BSL-1.0
"""References that call their sources by other names than when they were made:

zarrbits.rename_references("refs.json", "file:///data", "https://host/archive")
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from .command import Error, Path
from .local_files import open_regular
from .parquet_file import Damaged, ParquetFile
from .parquet_writer import ParquetWriter
from .references import PROTOCOLS, References, read

_METADATA = ".zmetadata"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def _normalised(name: str) -> str:
    """Without a slash at the end, and with the scheme as readers compare it."""
    scheme, colon, below = name.partition("://")
    return (scheme.lower() + colon + below if colon and re.fullmatch("[A-Za-z][A-Za-z0-9+.-]*", scheme) else name).rstrip("/")


class _Names:
    """What begins with `old` begins with `new` instead. done: the new name of each that was met."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new
        self.done: dict[str, str] = {}

    def renamed(self, url: str) -> str | None:
        below = url[len(self._old) :]
        if not url.startswith(self._old) or below[:1] not in ("", "/"):
            return None
        told = self._new
        told += quote(below, safe="/-._~!$&'()*+,;=:@") if self._new.startswith(("https://", "http://")) else below
        self.done[url] = told
        return told


def _rename_keys(refs: dict[str, Any], names: _Names) -> None:
    for key, value in refs.items():
        told = names.renamed(value[0]) if isinstance(value, list) else None
        if told is not None:
            refs[key] = [told, *value[1:]]


def _rename_rows(data: bytes, most_rows: int, names: _Names) -> bytes:
    """Of a Parquet file; the same bytes if it has no such name."""
    file = ParquetFile(data, most_rows)
    paths = file.columns.get("path")
    if paths is None:
        return data
    if not {"offset", "size"} <= file.columns.keys():
        raise Damaged("columns are missing")
    try:
        told = {p: names.renamed(p.decode()) for p in set(paths) if p is not None}
    except (UnicodeDecodeError, AttributeError) as e:
        raise Damaged("a path is not text") from e
    if not any(t is not None for t in told.values()):
        return data
    known = {was: was if now is None else now.encode() for was, now in told.items()}
    out = ParquetWriter(file.rows)
    out.texts("path", [None if p is None else known[p] for p in paths])
    for name in ("offset", "size"):
        out.numbers(name, [n or 0 for n in file.columns[name]])
    if "raw" in file.columns:
        out.contents("raw", file.columns["raw"])
    return out.done()


def _rename_sources(document: dict[str, Any], names: _Names, references: References) -> None:
    """The list of sources; of what has a new name only the size is known. Call when all references are renamed."""
    sources = document.get("zarrbits", {}).get("sources", [])
    for source in sources:
        if (told := names.renamed(source["url"])) is not None:
            source.pop("modified", None)
            source.pop("etag", None)
            source["url"] = told
    known = {s["url"] for s in sources}
    for was, told in names.done.items():
        beside = references.data_of(was)
        if beside is not None and told not in known:
            sources.append({"url": told, "size": os.path.getsize(beside)})


def _write(name: str, document: dict[str, Any]) -> None:
    with open(name, "x", encoding="utf-8") as f:
        json.dump(document, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def _remove(name: str) -> None:
    """A file or a folder, if there is one."""
    if os.path.isdir(name) and not os.path.islink(name):
        shutil.rmtree(name)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.remove(name)


@contextlib.contextmanager
def _temporary(name: str) -> Iterator[str]:
    """A name beside it, where nothing is; nothing stays there."""
    temporary = f"{name}.renamed"
    _remove(temporary)  # of a run that was killed
    try:
        yield temporary
    finally:  # a full disk
        with contextlib.suppress(OSError):
            _remove(temporary)


def _exchange(one: str, other: str) -> None:
    """Two folders, in one step if the file system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None and rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return
    between = f"{one}-old"
    _remove(between)
    os.rename(other, between)
    try:
        os.rename(one, other)
    except BaseException:
        os.rename(between, other)
        raise
    os.rename(between, one)


def _rename_table(references: References, names: _Names, temporary: str) -> dict[str, Any]:
    """The folder once more, with other names in the rows."""
    table = references.table
    assert table is not None
    os.mkdir(temporary)
    for folder, _, files in os.walk(references.path):
        there = os.path.join(temporary, os.path.relpath(folder, references.path))
        os.makedirs(there, exist_ok=True)
        for file in files:
            where = os.path.join(folder, file)
            if where == os.path.join(references.path, _METADATA):
                continue
            with open_regular(where) as f:
                data = f.read()
            if file.endswith(".parq"):
                try:
                    data = _rename_rows(data, table.record_size, names)
                except Damaged as e:
                    raise Error(f'zarrbits: "{where}" cannot be read: {e}; make the references again', 1) from e
            with open(os.path.join(there, file), "xb") as f:
                f.write(data)
    with open_regular(os.path.join(references.path, _METADATA)) as f:
        document: dict[str, Any] = json.loads(f.read())
    return document


def rename_references(path: Path, old: str, new: str) -> int:
    """Of references, in JSON or in a folder of Parquet, names that are `old` or below it begin with `new` instead.
    Returns how many files that were.

    Such files are known by their size only, as with convert(base=...): copies have times and ETags of their own.
    verify(base="FOLDER=URL") finds the local files again. The references are replaced in one step.
    Error where no name is like that, and for a URL with a user or a query, which everybody would see.
    """
    name, old, new = os.path.abspath(os.fspath(path)), _normalised(old), _normalised(new)
    if not old or not new or "?" in new or "#" in new or "@" in new.partition("://")[2].partition("/")[0]:
        raise Error("zarrbits: the new name is empty, or has a user or a query, which may be a secret; leave these out", 1)
    scheme = re.match("([A-Za-z][A-Za-z0-9+.-]*):/*", new)
    if scheme and (scheme[1] not in PROTOCOLS or "://" not in new):
        raise Error(
            f'zarrbits: references cannot be read by the name "{new}"; use one that begins with file:///, s3://BUCKET, '
            "gs://BUCKET, az://CONTAINER, https://HOST or http://HOST",
            1,
        )
    references = read(name, "all")  # which also checks the form
    names = _Names(old, new)
    with _temporary(name) as temporary:
        if references.table is not None:
            document = _rename_table(references, names, temporary)
        else:
            with open(name, encoding="utf-8") as f:
                document = json.load(f)
            _rename_keys(document["refs"], names)
        if not names.done:
            raise Error(f'zarrbits: no reference of "{name}" is to "{old}" or below; use what its names begin with', 1)
        _rename_sources(document, names, references)
        if references.table is None:
            _write(temporary, document)
            os.replace(temporary, name)
        else:
            _write(os.path.join(temporary, _METADATA), document)
            _exchange(temporary, name)
    return len(names.done)
