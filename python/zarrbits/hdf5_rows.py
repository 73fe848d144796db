# SPDX-License-Identifier: BSL-1.0
"""Packed h5py datasets in several threads: libhdf5 runs one filter at a time, under its lock, whatever processors there are.

    zarrbits.write(f["camera"], frames)                         # what f["camera"][: len(frames)] = frames does
    zarrbits.write(f["camera"], frames, first=100)
    frames = zarrbits.read(f["camera"])                         # f["camera"][...]
    some = zarrbits.read(f["camera"], np.s_[100:200, :, 3])

Whole chunks with zarrbits' packbits as their only filter are encoded and decoded here; the calling thread hands them to h5py. All
else goes through h5py itself, with the same result, and so do chunks that are so small that handing them over takes longer than
packing them.
"""

from __future__ import annotations

import collections
import itertools
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np

from zarrbits_codecs import library
from zarrbits_codecs.plugins import PACKBITS

Array = Any
_STORED = 12  # the parameters of a dataset's filter: docs/reference/filters.md
_MAGIC = 0x5A504201
_CHECKSUM_OR_FILLED = 1 << 19 | 1 << 20
_PADDING = ("none", "first_byte", "last_byte")
_TRY = 64  # chunks that chunk_iter() visits in less time than it takes to find out that one is not there
_WORTH = 1 << 20  # bytes of a chunk, unpacked: handing a smaller one to a thread and to h5py takes longer than packing it


class _Chunks:
    """A dataset of which chunks can be made here: their codec, and where they are."""

    def __init__(self, dataset: Any, codec: Any, size: int) -> None:
        self.dataset, self.codec, self.size = dataset, codec, size
        self.shape, self.chunk = dataset.shape, dataset.chunks
        self.dtype = dataset.dtype
        self.native = dataset.dtype.newbyteorder("=")
        # a chunk over the edge may have no filter (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), which its length alone tells
        self.unclear = size == self.native.itemsize * int(np.prod(dataset.chunks)) and dataset.dtype != self.native

    def encoded(self, values: Array) -> Array:
        """As the filter stores it: unpacked where a value does not fit."""
        values = np.ascontiguousarray(values, self.native)
        payload = np.empty(self.size, np.uint8)
        if self.codec.encode(values, payload) == library.DONE:
            return payload
        return np.ascontiguousarray(values, self.dtype).reshape(-1).view(np.uint8)

    def decoded(self, stored: bytes, mask: int) -> Array | None:
        """None where libhdf5 should say what is wrong."""
        values = np.empty(self.chunk, self.native)
        if mask == 0 and len(stored) == self.size:
            return values if self.codec.decode(np.frombuffer(stored, np.uint8), values) == library.DONE else None
        return np.frombuffer(stored, self.dtype).reshape(self.chunk) if len(stored) == values.nbytes else None


def _chunks(dataset: Any) -> _Chunks | None:
    """None where h5py has to do it."""
    if not dataset.chunks or not library.LIBRARY or dataset.file.driver == "mpio" or dataset.dtype.kind not in "biuf":
        return None
    if int(np.prod(dataset.chunks)) * dataset.dtype.itemsize < _WORTH:
        return None
    # the whole type: numpy has none for other floats of the same size, enumerations, or bits that are not used
    if not dataset.id.get_type().equal(h5py.h5t.py_create(np.dtype(dataset.dtype.str), logical=True)):
        return None
    properties = dataset.id.get_create_plist()
    if properties.get_nfilters() != 1 or properties.get_fill_time() == h5py.h5d.FILL_TIME_NEVER:
        return None
    number, _, cd, _ = properties.get_filter(0)
    if number != PACKBITS or len(cd) != _STORED or cd[4] != _MAGIC or cd[1] & ~3 or cd[7] & _CHECKSUM_OR_FILLED:
        return None  # other options, of which the core knows nothing
    size, type_bits, signed = cd[7] & 0xFF, cd[7] >> 8 & 0xFF, bool(cd[7] >> 17 & 1)
    dtype = dataset.dtype
    if cd[6] != 1 or size != dtype.itemsize or signed != (dtype.kind == "i") or (dtype.kind != "b" and type_bits != 8 * size):
        return None
    bits = cd[0]
    if cd[1] == len(_PADDING) or not 0 < bits <= type_bits or cd[2] > type_bits - bits:
        return None  # a damaged file: the plugin says so
    elements, padding = int(np.prod(dataset.chunks, dtype=np.uint64)), _PADDING[cd[1]]
    codec = library.codec(dtype.newbyteorder("="), padding, cd[2], bits)
    return _Chunks(dataset, codec, (elements * bits + 7) // 8 + (padding != "none")) if codec else None


def _in_order(pool: ThreadPoolExecutor, calls: Iterable[tuple[Any, Callable[[], Any]]], ahead: int) -> Iterator[tuple[Any, Any]]:
    """The results of calls in the order of the calls; at most `ahead` of them are waiting."""
    waiting: collections.deque[tuple[Any, Future[Any]]] = collections.deque()
    for what, call in calls:
        waiting.append((what, pool.submit(call)))
        if len(waiting) >= ahead:
            done, future = waiting.popleft()
            yield done, future.result()
    while waiting:
        done, future = waiting.popleft()
        yield done, future.result()


def _number_of(threads: int | None) -> int:
    if threads is None:
        return os.cpu_count() or 1
    if operator.index(threads) < 1:
        raise ValueError(f"zarrbits: threads is {threads!r}, but must be at least 1")
    return operator.index(threads)


def write(dataset: Any, array: Any, *, first: int = 0, threads: int | None = None) -> None:
    """Writes rows of an h5py dataset along its first dimension, beginning with row `first`. It does what
    dataset[first : first + len(array)] = array does, and the file is the same. The dataset must be as long already
    (dataset.resize). Fastest where `first` and the number of rows are multiples of the chunk's length.

    threads: that pack; None: one for each processor.
    """
    count, values = _number_of(threads), np.asarray(array)
    first = operator.index(first)
    if not dataset.shape or values.ndim != len(dataset.shape) or values.shape[1:] != dataset.shape[1:]:
        raise ValueError(f"zarrbits: the array has the shape {values.shape}, which is not that of rows of {dataset.shape}")
    end = first + len(values)
    if first < 0 or end > dataset.shape[0]:
        raise ValueError(f"zarrbits: rows {first} to {end} of {dataset.shape[0]}; resize the dataset first")
    made = _chunks(dataset)
    # a file that is only read is h5py's to refuse: libhdf5 takes whole chunks for it, and loses them
    if made is None or values.dtype.newbyteorder("=") != made.native or values.size == 0 or dataset.file.mode == "r":
        dataset[first:end] = values
        return
    begin = min(end, -(-first // made.chunk[0]) * made.chunk[0])
    stop = max(begin, end // made.chunk[0] * made.chunk[0])
    for a, b in ((first, begin), (stop, end)):  # chunks that other rows share, or that reach over the edge
        if a < b:
            dataset[a:b] = values[a - first : b - first]
    whole = tuple(n // c * c for n, c in zip(made.shape, made.chunk))

    def calls() -> Iterator[tuple[Any, Callable[[], Any]]]:
        starts = [range(begin, stop, made.chunk[0]), *(range(0, n, c) for n, c in zip(whole[1:], made.chunk[1:]))]
        for at in itertools.product(*starts):
            part = values[
                tuple(slice(a - (first if d == 0 else 0), a - (first if d == 0 else 0) + made.chunk[d]) for d, a in enumerate(at))
            ]
            yield at, lambda part=part: made.encoded(part)  # type: ignore[misc]

    with ThreadPoolExecutor(count) as pool:
        for at, stored in _in_order(pool, calls(), 2 * count):
            dataset.id.write_direct_chunk(at, stored)
    for d in range(1, len(whole)):  # what reaches over the edge of one of the other dimensions
        if begin < stop and whole[d] < made.shape[d]:
            box = (slice(None),) * (d - 1) + (slice(whole[d], None),)
            dataset[(slice(begin, stop), *box)] = values[(slice(begin - first, stop - first), *box)]


def _box(selection: Any, shape: tuple[int, ...]) -> tuple[list[range], list[int]] | None:
    """The indices of each dimension, and the dimensions that a number takes away; None for anything but numbers and slices
    of step 1."""
    selection = selection if isinstance(selection, tuple) else (selection,)
    if sum(1 for s in selection if s is Ellipsis) > 1:
        return None
    if any(s is Ellipsis for s in selection):
        at = next(i for i, s in enumerate(selection) if s is Ellipsis)
        selection = selection[:at] + (slice(None),) * (len(shape) - len(selection) + 1) + selection[at + 1 :]
    if len(selection) > len(shape):
        return None
    taken, dropped = [], []
    for d, length in enumerate(shape):
        s = selection[d] if d < len(selection) else slice(None)
        if isinstance(s, slice) and s.step in (None, 1):
            taken.append(range(length)[s])
        elif isinstance(s, (int, np.integer)) and not isinstance(s, (bool, np.bool_)) and -length <= s < length:
            taken.append(range(int(s) % length, int(s) % length + 1))
            dropped.append(d)
        else:
            return None
    return taken, dropped


def _stored(dataset: Any, wanted: list[range]) -> list[tuple[int, ...]] | None:
    """Where the chunks are that are in the file, of those that are wanted. None where it takes longer to find out than to try:
    libhdf5 goes through all chunks of the dataset for this, and for each call of get_chunk_info_by_coord()."""
    all_of_them = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks))
    if not hasattr(dataset.id, "chunk_iter") or _TRY * math.prod(map(len, wanted)) < all_of_them:
        return None
    found = []

    def visit(chunk: Any) -> None:
        if all(at in of for at, of in zip(chunk.chunk_offset, wanted)):
            found.append(chunk.chunk_offset)

    dataset.id.chunk_iter(visit)
    return sorted(found)


def read(dataset: Any, selection: Any = ..., *, threads: int | None = None) -> Array:
    """dataset[selection] of an h5py dataset: the same array. Numbers and slices without a step are read by several threads.

    threads: that unpack; None: one for each processor.
    """
    count = _number_of(threads)
    made = _chunks(dataset)
    box = _box(selection, dataset.shape) if made else None
    if made is None or box is None or any(len(t) == 0 for t in box[0]):
        return dataset[selection]
    taken, dropped = box
    wanted = [range(t.start // c * c, t.stop, c) for t, c in zip(taken, made.chunk)]
    if math.prod(map(len, wanted)) == 1:  # nothing to share
        return dataset[selection]
    stored_at = _stored(dataset, wanted)
    out = np.empty([len(t) for t in taken], made.dtype)
    if stored_at is not None and len(stored_at) < math.prod(map(len, wanted)):
        # h5py gives zeros where there is no fill value
        defined = dataset.id.get_create_plist().fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED
        out[...] = dataset.fillvalue if defined else 0

    def place(at: tuple[int, ...], stored: bytes | None, mask: int) -> Any:
        inside = [range(max(t.start, a), min(t.stop, a + c)) for t, a, c in zip(taken, at, made.chunk)]
        target = tuple(slice(i.start - t.start, i.stop - t.start) for i, t in zip(inside, taken))
        partial = any(a + c > n for a, c, n in zip(at, made.chunk, made.shape))
        values = None if stored is None or (partial and made.unclear) else made.decoded(stored, mask)
        if values is None:
            return target, tuple(slice(i.start, i.stop) for i in inside)
        out[target] = values[tuple(slice(i.start - a, i.stop - a) for i, a in zip(inside, at))]
        return None

    def calls() -> Iterator[tuple[Any, Callable[[], Any]]]:
        for at in itertools.product(*wanted) if stored_at is None else stored_at:
            try:
                mask, stored = dataset.id.read_direct_chunk(at)
            except (OSError, RuntimeError, ValueError):  # it is not in the file, or damaged
                mask, stored = 0, None
            yield at, lambda at=at, stored=stored, mask=mask: place(at, stored, mask)  # type: ignore[misc]

    with ThreadPoolExecutor(count) as pool:
        for _, left in _in_order(pool, calls(), 2 * count):
            if left is not None:  # only libhdf5 can read it, or say what is wrong
                out[left[0]] = dataset[left[1]]
    return out.reshape([n for d, n in enumerate(out.shape) if d not in dropped])[()] if dropped else out
