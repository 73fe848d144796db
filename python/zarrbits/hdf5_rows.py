# SPDX-License-Identifier: BSL-1.0
"""h5py datasets in several threads: libhdf5 runs one filter at a time, under its lock, whatever processors there are.

    zarrbits.write(f["camera"], frames)                         # what f["camera"][: len(frames)] = frames does
    zarrbits.write(f["camera"], frames, first=100)
    zarrbits.write(f["camera"], part, np.s_[100:200, :, 3])     # what f["camera"][100:200, :, 3] = part does
    frames = zarrbits.read(f["camera"])                         # f["camera"][...]
    some = zarrbits.read(f["camera"], np.s_[100:200, ::2, 3])

Whole chunks are encoded and decoded here: those whose only filter is zarrbits' packbits, and those of all filters that the
library of zarrbits.File has decoders or encoders for. The calling thread hands them to h5py, which also knows those that are not
in the file yet. All else goes through h5py itself, with the same result, and so do chunks that are so small that handing them
over takes longer than decoding them.
"""

from __future__ import annotations

import collections
import itertools
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np

from zarrbits_codecs import library
from zarrbits_codecs.plugins import PACKBITS

from .command import Error
from .hdf5_library import Pipeline
from .hdf5_selection import axes_of

Array = Any
Counts = MutableMapping[str, int]
_STORED = 12  # the parameters of a dataset's filter: docs/reference/filters.md
_MAGIC = 0x5A504201
_CHECKSUM_OR_FILLED = 1 << 19 | 1 << 20
_PADDING = ("none", "first_byte", "last_byte")
_NO_COMPRESSION = (2, 3, PACKBITS)  # shuffle, fletcher32
_NO_CHUNK = (OSError, RuntimeError, ValueError, MemoryError)  # of read_direct_chunk(): it is not in the file, or damaged
_UNKNOWN_MASK = 2**32 - 1  # HDF5 1.10 gives it for the only chunk of a dataset that is not in the file yet
_TRY = 64  # chunks that chunk_iter() visits in less time than it takes to find out that one is not there
# bytes of a chunk, decoded: handing a smaller one to a thread and to h5py takes longer than libhdf5 takes for it
_WORTH = 1 << 20
_WORTH_COMPRESSED = 1 << 16


class _Chunks:
    """A dataset of which chunks can be made here."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.shape, self.chunk = dataset.shape, dataset.chunks
        self.dtype = dataset.dtype
        self.native = self.dtype.newbyteorder("=")
        self.size = math.prod(dataset.chunks) * self.dtype.itemsize
        self.is_required = False  # h5py does not have one of the filters

    def is_unclear(self, at: Sequence[int], stored: bytes) -> bool:
        """Whether a chunk may have no filter: one over the edge (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), which its length alone
        tells."""
        return len(stored) == self.size and any(a + c > n for a, c, n in zip(at, self.chunk, self.shape))

    def encode(self, values: Array) -> Any:
        """As the filters store it. None if h5py has to write it."""
        raise NotImplementedError

    def decode(self, stored: bytes, mask: int, values: Array) -> bool:
        """Into an array of the whole chunk. False if libhdf5 has to decode it, or to explain the error."""
        raise NotImplementedError

    def fill_value(self) -> Any:
        # h5py gives zeros where there is no fill value
        defined = self.dataset.id.get_create_plist().fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED
        return self.dataset.fillvalue if defined else np.zeros((), self.dtype)


class _PackedChunks(_Chunks):
    """Those of packbits alone."""

    def __init__(self, dataset: Any, codec: Any, packed_size: int) -> None:
        super().__init__(dataset)
        self.codec, self.packed_size = codec, packed_size

    def encode(self, values: Array) -> Any:
        values = np.ascontiguousarray(values, self.native)
        payload = np.empty(self.packed_size, np.uint8)
        result, _ = self.codec.encode(values, payload)
        if result == library.OK:
            return payload
        return np.ascontiguousarray(values, self.dtype).reshape(-1).view(np.uint8)  # a value does not fit

    def decode(self, stored: bytes, mask: int, values: Array) -> bool:
        if mask == 0 and len(stored) == self.packed_size:
            native = values if values.dtype == self.native else np.empty(self.chunk, self.native)
            if self.codec.decode(np.frombuffer(stored, np.uint8), native) != library.OK:
                return False
            if native is not values:
                values[...] = native
            return True
        if len(stored) != self.size:
            return False
        values[...] = np.frombuffer(stored, self.dtype).reshape(self.chunk)
        return True


class _FilteredChunks(_Chunks):
    """Those of any other filters."""

    def __init__(self, dataset: Any, pipeline: Pipeline, is_required: bool) -> None:
        super().__init__(dataset)
        self.pipeline, self.is_required = pipeline, is_required

    def encode(self, values: Array) -> Any:
        values = np.ascontiguousarray(values, self.dtype)
        try:
            return self.pipeline.encode(values.ctypes.data, values.nbytes)
        except Error:
            return None

    def decode(self, stored: bytes, mask: int, values: Array) -> bool:
        try:
            self.pipeline.decode(stored, mask, values.ctypes.data, values.nbytes)
        except Error:
            if self.is_required:  # h5py would only say that it has no such filter
                raise
            return False
        return True


def _packed_chunks(dataset: Any, values: Sequence[int]) -> _Chunks | None:
    """None where h5py has to do it."""
    if not library.LIBRARY or dataset.dtype.kind not in "biuf" or len(values) != _STORED:
        return None
    if values[4] != _MAGIC or values[1] & ~3 or values[7] & _CHECKSUM_OR_FILLED:
        return None  # other options, of which the core knows nothing
    size, type_bits, signed = values[7] & 0xFF, values[7] >> 8 & 0xFF, bool(values[7] >> 17 & 1)
    dtype = dataset.dtype
    if values[6] != 1 or size != dtype.itemsize or signed != (dtype.kind == "i") or (dtype.kind != "b" and type_bits != 8 * size):
        return None
    bits = values[0]
    if values[1] == len(_PADDING) or not 0 < bits <= type_bits or values[2] > type_bits - bits:
        return None  # a damaged file: the plugin says so
    elements, padding = math.prod(dataset.chunks), _PADDING[values[1]]
    codec = library.codec(dtype.newbyteorder("="), padding, values[2], bits)
    return _PackedChunks(dataset, codec, (elements * bits + 7) // 8 + (padding != "none")) if codec else None


def _filtered_chunks(dataset: Any, filters: Sequence[tuple[int, Sequence[int]]], to_write: bool) -> _Chunks | None:
    """None where h5py has to do it."""
    pipeline = Pipeline(filters)
    try:
        if not (pipeline.can_encode() if to_write else pipeline.can_decode()):
            return None
    except Error:  # there is no such library
        return None
    return _FilteredChunks(dataset, pipeline, not all(h5py.h5z.filter_avail(number) for number, _ in filters))


def _chunks(dataset: Any, to_write: bool = False) -> _Chunks | None:
    """None where h5py has to do it."""
    if not dataset.chunks or dataset.file.driver == "mpio":
        return None
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    filters = [(number, values) for number, _, values, _ in filters]
    if not filters or properties.get_fill_time() == h5py.h5d.FILL_TIME_NEVER:
        return None
    dtype = dataset.dtype
    # names of an enumeration are converted, and strings: h5py's to write
    if dtype.hasobject or dtype.subdtype or (to_write and (dtype.kind not in "biufc" or dtype.metadata)):
        return None
    is_packed = filters[0][0] == PACKBITS
    # the whole type: numpy has none for other floats of the same size, or bits that are not used, and the core no enumerations
    try:
        whole = h5py.h5t.py_create(np.dtype(dtype.str) if is_packed else dtype, logical=True)
    except TypeError:
        return None
    if not dataset.id.get_type().equal(whole):
        return None
    if is_packed:
        made = _packed_chunks(dataset, filters[0][1]) if len(filters) == 1 else None
    else:
        made = _filtered_chunks(dataset, filters, to_write)
    worth = _WORTH if all(number in _NO_COMPRESSION for number, _ in filters) else _WORTH_COMPRESSED
    return made if made and (made.is_required or made.size >= worth) else None


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


def _count(counts: Counts | None, name: str, number: int) -> None:
    if counts is not None:
        counts[name] = counts.get(name, 0) + number


def _box(selection: Any, shape: tuple[int, ...]) -> tuple[list[range], list[int]] | None:
    """The indices of each dimension, and the dimensions that a number takes away; None for anything but numbers and slices."""
    try:
        axes = axes_of(selection if isinstance(selection, tuple) else (selection,), shape)
    except (TypeError, ValueError, IndexError):  # h5py explains it
        return None
    if any(axis.indexes is not None for axis in axes):
        return None
    taken = [range(axis.first, axis.first + axis.size * axis.step, axis.step) for axis in axes]
    return taken, [d for d, axis in enumerate(axes) if axis.is_number]


def _length(box: Iterable[range]) -> int:
    return math.prod(map(len, box))


def _slices(box: Iterable[range], begin: Sequence[int] | None = None) -> tuple[slice, ...]:
    """Of ranges that are not empty, counted from `begin`."""
    ranges = list(box)
    return tuple(slice(r[0] - b, r[-1] - b + 1, r.step) for r, b in zip(ranges, begin or [0] * len(ranges)))


def _inside(taken: range, at: int, length: int) -> range:
    """The part of a range that lies in a chunk."""
    first = max(0, -(-(at - taken.start) // taken.step))
    return taken[first : max(first, -(-(at + length - taken.start) // taken.step))]


def _starts(taken: range, length: int) -> list[int]:
    """Where the chunks begin that a range needs."""
    if taken.step >= length:
        return list(dict.fromkeys(i // length * length for i in taken))
    return list(range(taken[0] // length * length, taken[-1] + 1, length))


def _around(outer: Sequence[range], inner: Sequence[range]) -> Iterator[list[range]]:
    """Boxes that are `outer` without `inner`."""
    box = list(outer)
    for d, (o, i) in enumerate(zip(outer, inner)):
        for part in (range(o.start, i.start), range(i.stop, o.stop)):
            if len(part):
                yield [*box[:d], part, *box[d + 1 :]]
        box[d] = i


def write(
    dataset: Any,
    array: Any,
    selection: Any = None,
    *,
    first: int = 0,
    threads: int | None = None,
    counts: Counts | None = None,
) -> None:
    """dataset[selection] = array of an h5py dataset; without a selection, of rows along its first dimension, beginning with row
    `first`, as dataset[first : first + len(array)] = array. The file has the same values, and the same bytes with packbits; other
    filters may compress a bit differently. The dataset must be as long already (dataset.resize). Fastest where the selection
    begins and ends with whole chunks.

    threads: that encode; None: one for each processor. counts: a dictionary whose "chunks" grows by the chunks that were encoded
    here, and "h5py_values" by the values that went through h5py.
    """
    count, values = _number_of(threads), np.asarray(array)
    if selection is None:
        first = operator.index(first)
        if not dataset.shape or values.ndim != len(dataset.shape) or values.shape[1:] != dataset.shape[1:]:
            raise ValueError(f"zarrbits: the array has the shape {values.shape}, which is not that of rows of {dataset.shape}")
        end = first + len(values)
        if first < 0 or end > dataset.shape[0]:
            raise ValueError(f"zarrbits: rows {first} to {end} of {dataset.shape[0]}; resize the dataset first")
        selection = slice(first, end)
    elif first:
        raise ValueError("zarrbits: first is not for a selection; remove one of them")
    made = _chunks(dataset, to_write=True)
    box = _box(selection, dataset.shape) if made else None
    is_box = box is not None and all(t.step == 1 for t in box[0])
    # a file that is only read is h5py's to refuse: libhdf5 takes whole chunks for it, and loses them
    if (
        made is None
        or box is None
        or not is_box
        or values.shape != tuple(len(t) for d, t in enumerate(box[0]) if d not in box[1])
        or values.dtype.newbyteorder("=") != made.native
        or values.dtype.metadata
        or values.size == 0
        or dataset.file.mode == "r"
    ):
        dataset[selection] = values
        _count(counts, "h5py_values", values.size)
        return
    taken, dropped = box
    values = np.expand_dims(values, tuple(dropped))
    begin = [t.start for t in taken]

    def through_h5py(part: Sequence[range]) -> None:
        dataset[_slices(part)] = values[_slices(part, begin)]
        _count(counts, "h5py_values", _length(part))

    whole = []  # chunks of which all is written
    for t, c, n in zip(taken, made.chunk, made.shape):
        start = min(t.stop, -(-t.start // c) * c)
        whole.append(range(start, t.stop if t.stop == n else max(start, t.stop // c * c)))
    if not _length(whole):
        through_h5py(taken)
        return
    for part in _around(taken, whole):
        through_h5py(part)
    all_edges_by_h5py: bool | None = None  # until one is in the file
    fill = made.fill_value()

    def of_chunk(at: Sequence[int]) -> list[range]:
        return [range(a, min(a + c, n)) for a, c, n in zip(at, made.chunk, made.shape)]

    def encoded(at: tuple[int, ...]) -> Any:
        part = values[_slices(of_chunk(at), begin)]
        if part.shape != made.chunk:
            padded = np.full(made.chunk, fill, made.dtype)
            padded[tuple(slice(n) for n in part.shape)] = part
            part = padded
        return made.encode(part)

    def calls() -> Iterator[tuple[Any, Callable[[], Any]]]:
        nonlocal all_edges_by_h5py
        for at in itertools.product(*(range(w.start, w.stop, c) for w, c in zip(whole, made.chunk))):
            if any(a + c > n for a, c, n in zip(at, made.chunk, made.shape)):
                if all_edges_by_h5py is not False:
                    through_h5py(of_chunk(at))
                    if all_edges_by_h5py is None:
                        mask, stored = dataset.id.read_direct_chunk(at)
                        all_edges_by_h5py = mask != 0 or made.is_unclear(at, stored)
                    continue
            yield at, lambda at=at: encoded(at)  # type: ignore[misc]

    replaces = _may_have_chunks(dataset, math.prod(-(-len(w) // c) for w, c in zip(whole, made.chunk)))
    with ThreadPoolExecutor(count) as pool:
        for at, stored in _in_order(pool, calls(), 2 * count):
            if stored is None:
                through_h5py(of_chunk(at))
            else:
                if replaces:
                    _drop_mask(dataset, at, len(stored))
                dataset.id.write_direct_chunk(at, stored)
                _count(counts, "chunks", 1)


def _may_have_chunks(dataset: Any, wanted: int) -> bool:
    """False if no chunk of the dataset is in the file, where it is worth it to find out: libhdf5 goes through all chunks."""
    all_of_them = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks))
    return _TRY * wanted < all_of_them or bool(dataset.id.get_storage_size() > 0)


def _drop_mask(dataset: Any, at: tuple[int, ...], size: int) -> None:
    """Of the chunk that is to be replaced by one of this size: libhdf5 keeps the filter mask of one of the same size, so that
    readers would undo other filters than those of the new one. One of another size in between takes no place of its own."""
    try:
        mask, stored = dataset.id.read_direct_chunk(at)
    except _NO_CHUNK:
        return
    if mask != 0 and len(stored) == size:
        dataset.id.write_direct_chunk(at, b"\0" if size != 1 else b"\0\0")


def _stored(dataset: Any, wanted: list[list[int]]) -> list[tuple[int, ...]] | None:
    """Where the chunks are that are in the file, of those that are wanted. None where it takes longer to find out than to try:
    libhdf5 goes through all chunks of the dataset for this, and for each call of get_chunk_info_by_coord()."""
    all_of_them = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks))
    if not hasattr(dataset.id, "chunk_iter") or _TRY * math.prod(map(len, wanted)) < all_of_them:
        return None
    found = []
    starts = [set(w) for w in wanted]

    def visit(chunk: Any) -> None:
        if all(at in of for at, of in zip(chunk.chunk_offset, starts)):
            found.append(chunk.chunk_offset)

    dataset.id.chunk_iter(visit)
    return sorted(found)


def read(
    dataset: Any, selection: Any = ..., *, out: Array | None = None, threads: int | None = None, counts: Counts | None = None
) -> Array:
    """dataset[selection] of an h5py dataset: the same array. Numbers and slices are read by several threads.

    out: an array of the selection's shape that gets the values, and is returned. threads: that decode; None: one for each
    processor. counts: a dictionary whose "chunks" grows by the chunks that were decoded here, and "h5py_values" by the values
    that h5py read.
    """
    count = _number_of(threads)
    made = _chunks(dataset)
    box = _box(selection, dataset.shape) if made else None
    wanted = [_starts(t, c) for t, c in zip(box[0], made.chunk)] if made and box and _length(box[0]) else []
    # nothing to share
    if made is None or box is None or not wanted or (math.prod(map(len, wanted)) == 1 and not made.is_required):
        values = dataset[selection]
        _count(counts, "h5py_values", np.size(values))
        if out is None:
            return values
        _require_shape(out, np.shape(values))
        out[...] = values
        return out
    taken, dropped = box
    shape = tuple(len(t) for d, t in enumerate(taken) if d not in dropped)
    if out is not None:
        _require_shape(out, shape)
    target = np.empty(shape, made.dtype) if out is None or out.dtype != made.dtype else out
    _read_chunks(made, taken, wanted, np.expand_dims(target, tuple(dropped)), count, counts)
    if out is None:
        return target[()] if dropped else target
    if target is not out:
        out[...] = target
    return out


def _require_shape(out: Array, shape: tuple[int, ...]) -> None:
    if out.shape != shape:
        raise ValueError(f"zarrbits: out has the shape {out.shape}, and the selection {shape}; use an array of that shape")


def _read_chunks(
    made: _Chunks, taken: list[range], wanted: list[list[int]], out: Array, threads: int, counts: Counts | None
) -> None:
    dataset = made.dataset
    stored_at = _stored(dataset, wanted)
    if stored_at is not None and len(stored_at) < math.prod(map(len, wanted)):
        out[...] = made.fill_value()

    def place(at: tuple[int, ...], stored: bytes | None, mask: int) -> Any:
        inside = [_inside(t, a, c) for t, a, c in zip(taken, at, made.chunk)]
        target = out[tuple(slice((i[0] - t.start) // t.step, (i[0] - t.start) // t.step + len(i)) for i, t in zip(inside, taken))]
        if stored is not None and not made.is_unclear(at, stored):
            is_direct = target.shape == made.chunk and target.flags.c_contiguous
            values = target if is_direct else np.empty(made.chunk, made.dtype)
            if made.decode(stored, mask, values):
                if not is_direct:
                    target[...] = values[_slices(inside, at)]
                return None
        return target, inside

    def calls() -> Iterator[tuple[Any, Callable[[], Any]]]:
        for at in itertools.product(*wanted) if stored_at is None else stored_at:
            try:
                mask, stored = dataset.id.read_direct_chunk(at)
            except _NO_CHUNK:
                mask, stored = 0, None
            if mask == _UNKNOWN_MASK:
                stored = None
            yield at, lambda at=at, stored=stored, mask=mask: place(at, stored, mask)  # type: ignore[misc]

    with ThreadPoolExecutor(threads) as pool:
        for _, left in _in_order(pool, calls(), 2 * threads):
            if left is None:
                _count(counts, "chunks", 1)
            else:  # only libhdf5 can read it, or explain the error
                target, inside = left
                target[...] = dataset[_slices(inside)]
                _count(counts, "h5py_values", _length(inside))
