# SPDX-License-Identifier: BSL-1.0
"""References in a folder of Parquet files, of which those that are needed are read. fsspec's own reader is beneath, which neither lists groups within groups
rightly nor looks at what the files say."""
from __future__ import annotations

import functools
import importlib.util
import json
import math
import os
import re
from typing import Any, Dict, Iterator, List, Tuple, Union

import numpy as np
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.reference import LazyReferenceMapper

from .command import Error
from .references import References, is_reference, where_it_ends


def _engine() -> str:
    """The package by which pandas reads Parquet."""
    engine = next((e for e in ("pyarrow", "fastparquet") if importlib.util.find_spec(e)), None)
    if engine is None or importlib.util.find_spec("pandas") is None:
        raise Error("zarrbits: references in Parquet are read by pandas, and pyarrow or fastparquet; install these, or make references in JSON", 1)
    return engine


class ReferenceTable(LazyReferenceMapper):  # type: ignore[misc]  # fsspec has no types
    """What a key is: bytes, or [URL, offset, size]. checked: whether each reference has to be within a source."""

    def __init__(self, references: References, checked: bool) -> None:
        super().__init__(references.path, fs=LocalFileSystem(), engine=_engine())
        # a pattern of str.format(): braces in the folder's name would be a place in it, and each file of rows one that is not there
        self.url = references.path.replace("{", "{{").replace("}", "}}") + "/{field}/refs.{record}.parq"
        self._references = references
        self._end_of = functools.lru_cache(maxsize=None)(functools.partial(where_it_ends, references)) if checked else None
        for key, value in self.zmetadata.items():
            if key.endswith("/.zarray"):
                self._check_grid(key, value)

    def _check_grid(self, key: str, value: Any) -> None:
        """fsspec divides by these."""
        numbers = [value.get(n) if isinstance(value, dict) else None for n in ("shape", "chunks")]
        right = all(isinstance(n, list) and all(type(i) is int and i >= 0 for i in n) for n in numbers)
        if not right or len(numbers[0] or ()) != len(numbers[1] or ()) or 0 in (numbers[1] or ()):
            raise Error(f"zarrbits: \"{key}\" of \"{self._references.path}\" is no shape and no chunks; make it again", 1)

    def _value(self, key: str, columns: Dict[str, Any], row: int) -> Union[bytes, List[Any], None]:
        raw = columns["raw"][row] if "raw" in columns else None
        if isinstance(raw, bytes):
            return raw
        url = columns["path"][row] if "path" in columns else None
        if not isinstance(url, str):
            return None  # there is no such chunk
        offset, size = int(columns["offset"][row]), int(columns["size"][row])
        value = [url, offset, size]
        if not is_reference(value):
            raise Error(f"zarrbits: \"{key}\" of \"{self._references.path}\" is no [URL, offset, size] with a URL file://... or s3://...", 1)
        if self._end_of is not None and offset + size > self._end_of(url):
            raise Error(f"zarrbits: \"{key}\" of \"{self._references.path}\" is behind the end of \"{url}\"; make it again", 1)
        return value

    def _load_one_key(self, key: str) -> Any:
        if key in self.zmetadata:
            return json.dumps(self.zmetadata[key]).encode()
        field = key.rpartition("/")[0]
        if f"{field}/.zarray" not in self.zmetadata:
            raise KeyError(key)
        try:
            record, row, _ = self._key_to_record(key)
            columns = self.open_refs(field, record)
        except (ValueError, FileNotFoundError) as e:  # no such chunk, or none in that file
            raise KeyError(key) from e
        value = self._value(key, columns, row) if columns is not None and all(0 <= row < len(c) for c in columns.values()) else None
        if value is None:
            raise KeyError(key)
        return value

    def _chunks_of(self, field: str) -> Iterator[Tuple[str, Any]]:
        """Those that are there, of the files that are there."""
        grid = self._get_chunk_sizes(field)
        try:
            names = os.listdir(os.path.join(self._references.path, field))
        except FileNotFoundError:
            return
        for record in sorted(int(m[1]) for m in (re.fullmatch(r"refs\.([0-9]{1,15})\.parq", n) for n in names) if m):
            columns = self.open_refs(field, record)
            first, rows = record * self.record_size, min((len(c) for c in columns.values()), default=0)
            rows = min(rows, self.record_size, math.prod(grid) - first)
            places = np.transpose(np.unravel_index(np.arange(first, first + max(rows, 0)), grid)).tolist() if rows > 0 else []
            for row, place in enumerate(places):
                key = f"{field}/{'.'.join(map(str, place))}"
                value = self._value(key, columns, row)
                if value is not None:
                    yield key, value

    def items(self) -> Any:
        for key, value in self.zmetadata.items():
            if key.endswith("/.zarray"):
                yield from self._chunks_of(key[:-len("/.zarray")])
            else:
                yield key, json.dumps(value).encode()

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def ls(self, path: str = "", detail: bool = True) -> List[Any]:
        prefix = path.strip("/") + "/" if path.strip("/") else ""
        found: Dict[str, Dict[str, Any]] = {}
        for key in (k for k in self.zmetadata if k.startswith(prefix) and not k.endswith("/.zarray")):
            name, below, _ = key[len(prefix):].partition("/")
            found[prefix + name] = {"name": prefix + name, "type": "directory" if below else "file", "size": 0 if below else len(json.dumps(self.zmetadata[key]))}
        if prefix + ".zarray" in self.zmetadata:
            for key, value in self._chunks_of(prefix[:-1]):
                found[key] = {"name": key, "type": "file", "size": len(value) if isinstance(value, bytes) else value[2]}
        if not found:
            raise KeyError(path)
        return [found[name] if detail else name for name in sorted(found)]
