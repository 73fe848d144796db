# SPDX-License-Identifier: BSL-1.0
"""Writes Parquet files of few columns, as references are stored in, in the form that `zarrbits convert --virtual` gives them:
numbers of 64 bits, and texts that may be missing; one row group, compressed by Zstandard. parquet_file.py reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Optional

_INT64, _BYTE_ARRAY = 2, 6
_REQUIRED, _OPTIONAL = 0, 1
_UTF8 = 0
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_ZSTD = 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_MOST = (1 << 31) - 1  # bytes of a page

Texts = Sequence[Optional[bytes]]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _zigzag(number: int) -> bytes:
    return _varint(number * 2 if number >= 0 else -number * 2 - 1)


def _sized(text: bytes) -> bytes:
    """In a page."""
    return len(text).to_bytes(4, "little") + text


class _Struct:
    """Thrift's compact protocol: fields in the order of their numbers."""

    def __init__(self) -> None:
        self._data, self._last = bytearray(), 0

    def _field(self, number: int, kind: int, content: bytes) -> _Struct:
        self._data.append((number - self._last) << 4 | kind)
        self._data += content
        self._last = number
        return self

    def i32(self, number: int, value: int) -> _Struct:
        return self._field(number, _I32, _zigzag(value))

    def i64(self, number: int, value: int) -> _Struct:
        return self._field(number, _I64, _zigzag(value))

    def text(self, number: int, value: bytes) -> _Struct:
        return self._field(number, _BINARY, _varint(len(value)) + value)

    def struct(self, number: int, value: _Struct) -> _Struct:
        return self._field(number, _STRUCT, value.done())

    def list(self, number: int, kind: int, values: Sequence[bytes]) -> _Struct:
        count = len(values)
        head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + _varint(count)
        return self._field(number, _LIST, head + b"".join(values))

    def done(self) -> bytes:
        return bytes(self._data) + b"\0"


def _runs(numbers: Sequence[int], width: int) -> bytes:
    """As runs of one number each: neighbours are mostly equal."""
    size = (width + 7) // 8
    return b"".join(_varint(len(list(run)) << 1) + number.to_bytes(size, "little") for number, run in groupby(numbers))


@dataclass
class _Column:
    name: str
    is_text: bool
    encodings: list[int] = field(default_factory=lambda: [_PLAIN])
    is_utf8: bool = False
    missing: int = 0
    first: int = 0
    dictionary: int = 0
    plain_size: int = 0
    size: int = 0


class ParquetWriter:
    """A value of each column for each row; then the bytes of the file."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._data = bytearray(b"PAR1")
        self._columns: list[_Column] = []

    def _page(self, column: _Column, kind: int, encoding: int, values: int, content: bytes) -> None:
        from numcodecs.zstd import Zstd

        if len(content) > _MOST:
            raise ValueError("a column has more than 2 GiB")
        stored = bytes(Zstd(level=3).encode(content))
        inner = _Struct().i32(1, values).i32(2, encoding)
        if kind == _DATA_PAGE:
            inner.i32(3, _RLE).i32(4, _RLE)
        header = _Struct().i32(1, kind).i32(2, len(content)).i32(3, len(stored))
        head = header.struct(7 if kind == _DICTIONARY_PAGE else 5, inner).done()
        if kind == _DICTIONARY_PAGE:
            column.dictionary = len(self._data)
        else:
            column.first = len(self._data)
        column.plain_size += len(head) + len(content)
        column.size += len(head) + len(stored)
        self._data += head + stored

    def numbers(self, name: str, values: Sequence[int]) -> None:
        column = _Column(name, False)
        content = b"".join(v.to_bytes(8, "little", signed=True) for v in values)
        self._page(column, _DATA_PAGE, _PLAIN, self._rows, content)
        self._columns.append(column)

    def _texts(self, column: _Column, values: Texts) -> bytes:
        there = [int(v is not None) for v in values]
        column.missing = self._rows - sum(there)
        column.encodings.append(_RLE)
        self._columns.append(column)
        return _sized(_runs(there, 1))

    def texts(self, name: str, values: Texts) -> None:
        """UTF-8 that occurs again and again: in a dictionary."""
        column = _Column(name, True, is_utf8=True)
        levels = self._texts(column, values)
        known: dict[bytes, int] = {}
        numbers = [known.setdefault(v, len(known)) for v in values if v is not None]
        column.encodings.append(_RLE_DICTIONARY)
        self._page(column, _DICTIONARY_PAGE, _PLAIN, len(known), b"".join(map(_sized, known)))
        width = max(1, len(known).bit_length())
        self._page(column, _DATA_PAGE, _RLE_DICTIONARY, self._rows, levels + bytes([width]) + _runs(numbers, width))

    def contents(self, name: str, values: Texts) -> None:
        """Any bytes."""
        column = _Column(name, True)
        levels = self._texts(column, values)
        plain = b"".join(_sized(v) for v in values if v is not None)
        self._page(column, _DATA_PAGE, _PLAIN, self._rows, levels + plain)

    def _schema(self, column: _Column) -> bytes:
        leaf = _Struct().i32(1, _BYTE_ARRAY if column.is_text else _INT64).i32(3, _OPTIONAL if column.is_text else _REQUIRED)
        leaf.text(4, column.name.encode())
        return (leaf.i32(6, _UTF8) if column.is_utf8 else leaf).done()

    def _chunk(self, column: _Column) -> bytes:
        meta = _Struct().i32(1, _BYTE_ARRAY if column.is_text else _INT64)
        meta.list(2, _I32, [_zigzag(e) for e in column.encodings])
        name = column.name.encode()
        meta.list(3, _BINARY, [_varint(len(name)) + name]).i32(4, _ZSTD).i64(5, self._rows)
        meta.i64(6, column.plain_size).i64(7, column.size).i64(9, column.first)
        if column.dictionary:
            meta.i64(11, column.dictionary)
        # without the number of those that are missing, fastparquet converts numbers to floats
        meta.struct(12, _Struct().i64(3, column.missing))
        return _Struct().i64(2, column.dictionary or column.first).struct(3, meta).done()

    def done(self) -> bytes:
        root = _Struct().text(4, b"schema").i32(5, len(self._columns)).done()
        group = _Struct().list(1, _STRUCT, [self._chunk(c) for c in self._columns])
        group.i64(2, sum(c.plain_size for c in self._columns)).i64(3, self._rows)
        footer = _Struct().i32(1, 1).list(2, _STRUCT, [root, *map(self._schema, self._columns)])
        end = footer.i64(3, self._rows).list(4, _STRUCT, [group.done()]).text(6, b"zarrbits").done()
        return bytes(self._data) + end + len(end).to_bytes(4, "little") + b"PAR1"
