# SPDX-License-Identifier: BSL-1.0
"""References in a folder of Parquet files, of which those that are needed are read.
fsspec's mapper is beneath for its place in fsspec only: it lists no groups within groups,
and takes what it cannot read for chunks that are not there.
Here only a row that says so is a chunk that is not there."""

from __future__ import annotations

import base64
import functools
import json
import math
import os
import re
from collections.abc import Iterator
from typing import Any, Union

from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.reference import LazyReferenceMapper

from .command import Error
from .local_files import open_regular
from .parquet_file import Damaged, ParquetFile
from .references import References, absolute, check_file, is_reference, where_it_ends, without_v2

Value = Union[bytes, list[Any], None]
_ROWS_AT_HAND = 1_280_000


class ReferenceTable(LazyReferenceMapper):  # type: ignore[misc]  # fsspec has no types
    """What a key is: bytes, or [URL, offset, size]. checked: whether each reference has to be within a source."""

    def __init__(self, references: References, checked: bool) -> None:
        super().__init__(references.path, fs=LocalFileSystem())
        table = references.table
        assert table is not None
        self._items: dict[str, Any] = {}
        self.zmetadata, self.record_size, self._parts = table.metadata, table.record_size, table.parts
        self._references = references
        self._end_of = functools.lru_cache(maxsize=None)(functools.partial(where_it_ends, references)) if checked else None
        self._may_be_read = functools.lru_cache(maxsize=None)(functools.partial(check_file, references))
        self._grids = {
            key[: -len("/.zarray")]: self._grid(key, value) for key, value in self.zmetadata.items() if key.endswith("/.zarray")
        }
        # metadata of Zarr v3 and the grids, which fsspec's mapper needs; or metadata of Zarr v2, and nothing else
        self._nodes = without_v2(self.zmetadata)
        self._rows = functools.lru_cache(maxsize=max(1, _ROWS_AT_HAND // self.record_size))(self._read_rows)

    def _error(self, what: str, why: str) -> Error:
        return Error(f'zarrbits: "{what}" of "{self._references.path}" {why}', 1)

    def _grid(self, key: str, value: Any) -> list[int]:
        """How many chunks there are along each dimension."""
        field = key[: -len("/.zarray")]
        if os.path.isabs(field) or os.path.normpath(field) != field or field.split("/")[0] in ("", ".."):
            raise self._error(key, "points outside of it; make it again")
        shape, chunks = (value.get(n) if isinstance(value, dict) else None for n in ("shape", "chunks"))
        right = all(isinstance(n, list) and all(type(i) is int and i >= 0 for i in n) for n in (shape, chunks))
        if not right or len(shape or ()) != len(chunks or ()) or 0 in (chunks or ()):
            raise self._error(key, "has no shape or no chunks; make it again")
        return [-(-s // c) for s, c in zip(shape or (), chunks or ())]

    def _read_rows(self, field: str, record: int) -> list[Value]:
        """All references of one file."""
        name = f"{field}/refs.{record}.parq"
        try:
            with open_regular(os.path.join(self._references.path, name)) as f:
                columns = ParquetFile(f.read(), self.record_size)
            rows = self._values(columns)
            if columns.rows < min(self.record_size, math.prod(self._grids[field]) - record * self.record_size):
                raise Damaged(f"it has only {columns.rows} rows")
            have = sum(r is not None for r in rows)
            if self._parts is not None and have != self._parts[field][record]:
                raise Damaged(f"it has {have} references, and had {self._parts[field][record]}")
        except (OSError, Damaged) as e:
            reason = e.strerror or str(e) if isinstance(e, OSError) else str(e)
            raise self._error(
                name,
                f"cannot be read: {reason}; if the references were replaced meanwhile, open them again, or else make them again",
            ) from e
        return rows

    @staticmethod
    def _values(table: ParquetFile) -> list[Value]:
        columns = table.columns
        if not columns.keys() & {"path", "raw"} or ("path" in columns and not {"offset", "size"} <= columns.keys()):
            raise Damaged("columns are missing")
        nothing = [None] * table.rows
        paths, raws, offsets, sizes = (columns.get(n, nothing) for n in ("path", "raw", "offset", "size"))
        rows: list[Value] = []
        try:
            for path, raw, offset, size in zip(paths, raws, offsets, sizes):
                rows.append(raw if raw is not None else None if path is None else [path.decode(), offset, size])
        except (UnicodeDecodeError, AttributeError) as e:
            raise Damaged("a path is not text") from e
        return rows

    def _value(self, key: str, value: Value) -> Value:
        if not isinstance(value, list):
            if isinstance(value, (bytes, type(None))):
                return value
            raise self._error(key, "is not text; make it again")
        if not is_reference(value):
            raise self._error(key, "is not [URL, offset, size] with a file://, s3://, gs://, az:// or https:// URL")
        url, offset, size = value = [absolute(self._references.path, value[0]), *value[1:]]
        self._may_be_read(url)
        if self._end_of is not None and offset + size > self._end_of(url):
            raise self._error(key, f'is beyond the end of "{url}"; make it again')
        return value

    def _load_one_key(self, key: str) -> Any:
        if key in self._nodes:
            return json.dumps(self._nodes[key]).encode()
        field, _, place = key.rpartition("/")
        grid = self._grids.get(field)
        if grid is None or not re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,20})*", place):
            raise KeyError(key)
        indices = [int(n) for n in place.split(".")]
        extents = grid or [1]
        if len(indices) != len(extents) or any(i >= n for i, n in zip(indices, extents)):
            raise KeyError(key)
        number = functools.reduce(lambda all_before, pair: all_before * pair[1] + pair[0], zip(indices, extents), 0)
        record, row = divmod(number, self.record_size)
        if self._parts is not None and record not in self._parts.get(field, {}):
            raise KeyError(key)  # none of the chunks in that file is there
        value = self._value(key, self._rows(field, record)[row])
        if value is None:
            raise KeyError(key)
        if isinstance(value, bytes) and value.startswith(b"base64:"):  # which fsspec would decode
            return b"base64:" + base64.b64encode(value)
        return value

    def _chunks_of(self, field: str) -> Iterator[tuple[str, Any]]:
        """Those that are there."""
        grid = self._grids[field]
        total = math.prod(grid)
        records = range(-(-total // self.record_size)) if self._parts is None else sorted(self._parts.get(field, {}))
        for record in records:
            first = record * self.record_size
            for number, value in enumerate(self._rows(field, record)[: max(0, total - first)], first):
                if value is None:
                    continue
                place = []
                for extent in reversed(grid or [1]):
                    number, at = divmod(number, extent)
                    place.append(str(at))
                key = f"{field}/{'.'.join(reversed(place))}"
                yield key, self._value(key, value)

    def items(self) -> Any:
        for key, value in self.zmetadata.items():
            if key in self._nodes:
                yield key, json.dumps(value).encode()
            if key.endswith("/.zarray"):
                yield from self._chunks_of(key[: -len("/.zarray")])

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def ls(self, path: str = "", detail: bool = True) -> list[Any]:
        prefix = path.strip("/") + "/" if path.strip("/") else ""
        found: dict[str, dict[str, Any]] = {}
        for key in (k for k in self._nodes if k.startswith(prefix)):
            name, below, _ = key[len(prefix) :].partition("/")
            found[prefix + name] = {
                "name": prefix + name,
                "type": "directory" if below else "file",
                "size": 0 if below else len(json.dumps(self._nodes[key])),
            }
        if prefix + ".zarray" in self.zmetadata:
            for key, value in self._chunks_of(prefix[:-1]):
                found[key] = {"name": key, "type": "file", "size": len(value) if isinstance(value, bytes) else value[2]}
        if not found:
            raise KeyError(path)
        return [found[name] if detail else name for name in sorted(found)]
