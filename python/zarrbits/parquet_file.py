# SPDX-License-Identifier: BSL-1.0
"""Parquet files of few columns, as references are stored in:
numbers of 64 bits and texts, not nested, not compressed or by Zstandard, in pages of version 1.
Whatever a file says, it takes no more memory than its bound, and what is damaged is a Damaged. https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

from typing import Any

import numpy as np

_INT64, _BYTE_ARRAY = 2, 6
_REQUIRED, _OPTIONAL = 0, 1
_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY = 0, 2, 8
_UNCOMPRESSED, _ZSTD = 0, 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_MOST_FOOTER, _MOST_DECODED = 1 << 20, 1 << 30
_MOST_TIMES, _ALWAYS_ALLOWED = 1000, 16 << 20  # a file may become this many times larger, or as large as this
_ZSTD_BLOCK = 128 << 10  # no block becomes larger


class Damaged(ValueError):
    """The file is damaged, or has what this reader does not know; a reason, and no sentence."""


class _Bytes:
    """Takes from the front."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise Damaged("it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def little(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.little(1)
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise Damaged("a number has more than 64 bits")

    def _zigzag(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Thrift's compact protocol: fields by their numbers; a list is a list."""
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self.little(1)
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15, depth, True)

    def _value(self, kind: int, depth: int, is_field: bool) -> Any:
        if depth > 16:
            raise Damaged("its metadata is too deep")
        if kind in (1, 2):  # a field's kind is its value, in a list it is a byte
            return kind == 1 if is_field else self.little(1) == 1
        if kind == 3:
            return self.little(1)
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self.take(8)
        if kind == 8:
            return self.take(self.varint())
        if kind in (9, 10):
            head = self.little(1)
            count = self.varint() if head >> 4 == 15 else head >> 4
            if count > len(self.data) - self.at:  # an element takes a byte at least
                raise Damaged("it ends too early")
            return [self._value(head & 15, depth + 1, False) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        raise Damaged(f"metadata of the kind {kind} is not known")


def _count(fields: Any, number: int, most: int) -> int:
    value = fields.get(number) if isinstance(fields, dict) else None
    if type(value) is not int or not 0 <= value <= most:
        raise Damaged("a count or an offset is missing, or too large")
    return value


def _inside(fields: Any, number: int, kind: type) -> Any:
    value = fields.get(number) if isinstance(fields, dict) else None
    if not isinstance(value, kind):
        raise Damaged("its metadata is not whole")
    return value


def _unzstd(frame: bytes, size: int) -> bytes:
    from numcodecs.zstd import Zstd

    head = _Bytes(frame)
    if head.take(4) != b"\x28\xb5\x2f\xfd":
        raise Damaged("a page is not a Zstandard frame")
    flags = head.little(1)
    single = flags >> 5 & 1
    head.take((1 - single) + (0, 1, 2, 4)[flags & 3])
    length = (single, 2, 4, 8)[flags >> 6]
    announced = head.little(length) + (256 if length == 2 else 0) if length else None
    if announced is None:  # by cramjam, which fastparquet uses: how large it may become is told by its blocks
        announced, last = 0, False
        while not last:
            block = head.little(3)
            last, kind, stored = bool(block & 1), block >> 1 & 3, block >> 3
            head.take(1 if kind == 1 else stored)
            announced += stored if kind < 2 else _ZSTD_BLOCK
        if announced > size + _ZSTD_BLOCK:
            raise Damaged("a page is larger than it says")
    elif announced != size:
        raise Damaged("a page does not have the size that it declares")
    try:
        plain = bytes(Zstd().decode(frame))
    except (RuntimeError, ValueError) as e:
        raise Damaged(f"a page cannot be decompressed: {e}") from e
    if len(plain) != size:
        raise Damaged("a page does not have the size that it declares")
    return plain


def _runs(source: _Bytes, width: int, count: int) -> Any:
    """Numbers in runs of one number, or packed in groups of eight."""
    if width > 32:
        raise Damaged(f"numbers of {width} bits")
    parts, have = [np.empty(0, np.int64)], 0
    while have < count:
        head = source.varint()
        number = head >> 1
        if number == 0:
            raise Damaged("an empty run")
        if head & 1:
            wanted = min(8 * number, count - have)
            packed = np.frombuffer(source.take(number * width), np.uint8)[: (wanted * width + 7) // 8]
            bits = np.unpackbits(packed, bitorder="little")[: wanted * width]
            part = bits.reshape(wanted, width).astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))
        else:
            part = np.full(min(number, count - have), source.little((width + 7) // 8), np.int64)
        parts.append(part)
        have += len(part)
    return np.concatenate(parts)


def _texts(source: _Bytes, count: int) -> list[bytes]:
    return [source.take(source.little(4)) for _ in range(count)]


class ParquetFile:
    """rows, and columns: lists of numbers, or of bytes or None, by their names."""

    def __init__(self, data: bytes, most_rows: int) -> None:
        if len(data) < 12 or data[:4] != b"PAR1" or data[-4:] != b"PAR1":
            raise Damaged("it is not a whole Parquet file")
        size = int.from_bytes(data[-8:-4], "little")
        if size > min(len(data) - 12, _MOST_FOOTER):
            raise Damaged("its footer is too large")
        self._data, self._decoded = data, 0
        footer = _Bytes(data[len(data) - 8 - size : -8]).struct()
        self.rows = _count(footer, 3, most_rows)
        leaves = [e for e in _inside(footer, 2, list) if isinstance(e, dict) and 5 not in e]  # the root has children
        groups = [_inside(g, 1, list) for g in _inside(footer, 4, list)]
        if len(leaves) + 1 != len(footer[2]) or any(len(g) != len(leaves) for g in groups):
            raise Damaged("its columns are nested, or missing")
        self.columns: dict[str, list[Any]] = {}
        for i, leaf in enumerate(leaves):
            name = _inside(leaf, 4, bytes).decode("utf-8", "replace")
            if leaf.get(1) not in (_INT64, _BYTE_ARRAY) or leaf.get(3, _OPTIONAL) not in (_REQUIRED, _OPTIONAL):
                continue  # none that references have
            self.columns[name] = self._column([_inside(g[i], 3, dict) for g in groups], leaf[1], leaf.get(3) == _OPTIONAL)

    def _page(self, source: _Bytes, compression: Any) -> tuple[dict[int, Any], _Bytes]:
        header = source.struct()
        size = _count(header, 2, _MOST_DECODED)
        stored = source.take(_count(header, 3, len(self._data)))
        self._decoded += size
        if self._decoded > min(_MOST_DECODED, max(_ALWAYS_ALLOWED, _MOST_TIMES * len(self._data))):
            raise Damaged("its pages are too large")
        if compression == _UNCOMPRESSED and len(stored) == size:
            return header, _Bytes(stored)
        if compression != _ZSTD:
            raise Damaged(f"a page of compression {compression} is not known, or has another size than it says")
        return header, _Bytes(_unzstd(stored, size))

    def _column(self, chunks: list[dict[int, Any]], kind: int, optional: bool) -> list[Any]:
        values: list[Any] = []
        for chunk in chunks:
            end = len(values) + _count(chunk, 5, self.rows - len(values))
            first = _count(chunk, 9, len(self._data))
            if chunk.get(11, 0):
                first = min(first, _count(chunk, 11, len(self._data)))
            source, known = _Bytes(self._data, first), None
            while len(values) < end:
                header, page = self._page(source, chunk.get(4))
                if header.get(1) == _DICTIONARY_PAGE:
                    count = _count(_inside(header, 7, dict), 1, len(page.data))
                    known = _texts(page, count) if kind == _BYTE_ARRAY else np.frombuffer(page.take(8 * count), "<i8").tolist()
                elif header.get(1) == _DATA_PAGE:
                    values += self._values(page, _inside(header, 5, dict), kind, optional, known, end - len(values))
                else:
                    raise Damaged("a page is of a kind that is not known")
        if len(values) != self.rows:
            raise Damaged("a column has a different number of rows than the file")
        return values

    @staticmethod
    def _values(page: _Bytes, header: dict[int, Any], kind: int, optional: bool, known: Any, most: int) -> list[Any]:
        count = _count(header, 1, most)
        if count == 0:
            raise Damaged("a page is empty")
        there = np.ones(count, bool)
        if optional:
            there = _runs(_Bytes(page.take(page.little(4))), 1, count) == 1
        number, encoding = int(there.sum()), header.get(2)
        found: list[Any]
        if encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
            indices = _runs(page, page.little(1), number) if number else []
            if known is None or any(i >= len(known) for i in indices):
                raise Damaged("an index points beyond the end of a dictionary")
            found = [known[i] for i in indices]
        elif encoding == _PLAIN:
            found = _texts(page, number) if kind == _BYTE_ARRAY else np.frombuffer(page.take(8 * number), "<i8").tolist()
        else:
            raise Damaged(f"encoding {encoding} is not known")
        if number == count:
            return found
        values: list[Any] = [None] * count
        for at, value in zip(np.flatnonzero(there), found):
            values[at] = value
        return values
