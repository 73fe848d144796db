# SPDX-License-Identifier: BSL-1.0
"""HDF5 files, read in several threads past libhdf5's lock, in h5py's shape:

    with zarrbits.File("in.h5") as f:
        f["group/temperature"][0, ::2]     # as h5py.File("in.h5")["group/temperature"][0, ::2]
        f["group"].attrs["units"]

Every filter that `zarrbits convert` decodes is decoded here, with no plugin. Reading releases the GIL. Files, groups and datasets
can be pickled, and used after a fork: they open the file again."""

from __future__ import annotations

import base64
import json
import math
import os
import posixpath
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np

from .command import Error, certificates
from .hdf5_library import OpenDataset, OpenFile, address_of
from .hdf5_selection import Axis, axes_of, result_shape, runs_of, split_fields
from .hdf5_values import Empty, Reference, RegionReference, dtype_of, is_packed, text_of, unpack
from .remote import header_lines

Json = dict[str, Any]
Path = Union[str, "os.PathLike[str]"]
_STATISTICS = ("decoded_chunks", "cached_chunks", "empty_chunks", "plain_bytes", "libhdf5_values")


def _absolute(base: str, name: str) -> str:
    return name if name.startswith("/") else posixpath.join(base, name)


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


class File(Mapping[str, Any]):
    """An open file, as its root group.

    threads: that read and decode; None: one for each processor. chunk_cache: bytes of decoded chunks that are kept for boxes
    smaller than a chunk. lock: False also reads a file that another process has open for writing. external: further folders whose
    files may be read for it (external links), or "all". The others say how a URL is reached, as for convert().
    """

    def __init__(
        self,
        path: Path,
        mode: str = "r",
        *,
        threads: int | None = None,
        chunk_cache: int | None = None,
        remote_cache: int | None = None,
        lock: bool = True,
        external: Sequence[Path] = (),
        endpoint: str | None = None,
        profile: str | None = None,
        sign_request: bool = True,
        request_payer: bool = False,
        headers: Mapping[str, str] | Path | None = None,
        ca_file: Path | None = None,
        connections: int | None = None,
    ) -> None:
        if mode != "r":
            raise ValueError(f'zarrbits: mode is {mode!r}, but files are only read; use "r"')
        self.filename = os.fspath(path)
        if "://" in self.filename and not ca_file:
            ca_file = next(iter(certificates().values()), None)
        numbers = {"threads": threads, "chunk_cache": chunk_cache, "remote_cache": remote_cache, "connections": connections}
        texts = {"endpoint": endpoint, "profile": profile, "ca_file": ca_file}
        flags = {"no_sign_request": not sign_request, "request_payer": request_payer}
        lists = {"external": external, "header": header_lines(headers or {})}
        options = [(name, str(int(value))) for name, value in numbers.items() if value is not None]
        options += [(name, os.fspath(value)) for name, value in texts.items() if value]
        options += [(name, "1") for name, value in flags.items() if value]
        options += [(name, os.fspath(value)) for name, values in lists.items() for value in values]
        options += [] if lock else [("lock", "0")]
        for name, value in options:
            if "\n" in value:
                raise ValueError(f"zarrbits: {name} is {value!r}, but must be one line")
        self._options = "\n".join(f"{name} {value}" for name, value in options)
        self._mutex = threading.Lock()
        self._datasets: weakref.WeakSet[Dataset] = weakref.WeakSet()
        self._open: OpenFile | None = OpenFile(self.filename, self._options)
        self._root = Group(self, "/", self.describe("/"))

    # what this package itself uses
    def opened(self) -> OpenFile:
        """The open file of this process."""
        current = self._open
        if current is None:
            raise ValueError("zarrbits: the file is closed; open it again")
        if current.process != os.getpid():  # after a fork: a thread of the parent may hold its locks
            self._mutex = threading.Lock()
            current = self._open = OpenFile(self.filename, self._options)
        return current

    def describe(self, path: str) -> Json:
        try:
            return dict(json.loads(self.opened().describe(_encoded(path))))
        except Error as e:
            if e.code == "not_found":
                raise KeyError(str(e)) from None
            raise

    def track(self, dataset: Dataset) -> None:
        self._datasets.add(dataset)

    # h5py's
    def close(self) -> None:
        """Closes the file, and its datasets."""
        self._open = None
        for dataset in list(self._datasets):
            dataset.close()

    def __bool__(self) -> bool:
        return self._open is not None

    def __enter__(self) -> File:
        return self

    def __exit__(self, *reason: Any) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.filename, self._options)

    def __getitem__(self, name: str | Reference) -> Any:
        return self._root[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._root)

    def __len__(self) -> int:
        return len(self._root)

    def __contains__(self, name: object) -> bool:
        return name in self._root

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f'<zarrbits.File "{self.filename}"' + (" (mode r)>" if self else " (closed)>")

    @property
    def attrs(self) -> Attributes:
        return self._root.attrs

    @property
    def name(self) -> str:
        return "/"

    @property
    def file(self) -> File:
        return self

    @property
    def parent(self) -> Group:
        return self._root

    @property
    def mode(self) -> str:
        return "r"

    def visititems(self, function: Any) -> Any:
        return self._root.visititems(function)

    def visit(self, function: Any) -> Any:
        return self._root.visit(function)

    def statistics(self) -> dict[str, int]:
        """How values were read: chunks decoded here, chunks decoded before, chunks that were never written, bytes without
        filters, and values that libhdf5 read."""
        return dict(zip(_STATISTICS, self.opened().statistics()))


_copies: weakref.WeakValueDictionary[tuple[Any, ...], File] = weakref.WeakValueDictionary()


def _reopened(filename: str, options: str) -> File:
    """The file for a pickle; the variables of a data set share one."""
    key = (filename, options, os.getpid())
    file = _copies.get(key)
    if file:
        return file
    file = _copies[key] = File.__new__(File)
    file.filename, file._options = filename, options
    file._mutex, file._datasets = threading.Lock(), weakref.WeakSet()
    file._open = OpenFile(filename, options)
    file._root = Group(file, "/", file.describe("/"))
    return file


class _Object:
    def __init__(self, file: File, name: str, described: Json) -> None:
        self.file, self.name, self._described = file, name, described
        self._attributes: Attributes | None = None

    @property
    def attrs(self) -> Attributes:
        if self._attributes is None:
            self._attributes = Attributes(self.file, self.name)
        return self._attributes

    @property
    def description(self) -> Json:
        """The datatype, as docs/reference/hdf5-types.md has it."""
        return dict(self._described["type"])

    @property
    def parent(self) -> Group:
        return Group(self.file, posixpath.dirname(self.name), self.file.describe(posixpath.dirname(self.name)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Object)
            and self.file == other.file
            and self._described["address"] == other._described["address"]
            and type(self) is type(other)
        )

    def __hash__(self) -> int:
        return hash((self.file, self._described["address"]))

    def __bool__(self) -> bool:
        return bool(self.file)

    def __reduce__(self) -> tuple[Any, ...]:
        return _found, (self.file, self.name)


def _found(file: File, name: str) -> Any:
    return file[name]


class Datatype(_Object):
    """A named datatype."""

    @property
    def dtype(self) -> Any:
        return dtype_of(self._described["type"])


class Group(_Object, Mapping[str, Any]):
    """A group."""

    def __getitem__(self, name: str | Reference) -> Any:
        if isinstance(name, Reference):
            if not name:
                raise ValueError("Invalid HDF5 object reference")
            name = name.name or "/"
        if isinstance(name, bytes):
            name = name.decode("utf-8", "surrogateescape")
        if not isinstance(name, str):
            raise TypeError(f"Accessing a group is done with bytes or str, not {type(name)}")
        if "\0" in name:
            raise KeyError(name)
        path = posixpath.normpath(_absolute(self.name, name)) if name.strip("/.") else _absolute(self.name, name)
        path = "/" + path.strip("/")
        described = self.file.describe(path)
        kind = described["kind"]
        return (Group if kind == "group" else Dataset if kind == "dataset" else Datatype)(self.file, path, described)

    def __iter__(self) -> Iterator[str]:
        self.file.opened()
        return iter([text_of(member["name"]) for member in self._described["members"]])

    def __len__(self) -> int:
        return len(self._described["members"])

    def __contains__(self, name: object) -> bool:
        try:
            self[name]  # type: ignore[index]
        except (KeyError, TypeError, ValueError):
            return False
        return True

    __eq__ = _Object.__eq__
    __hash__ = _Object.__hash__

    def __repr__(self) -> str:
        return f'<zarrbits group "{self.name}" ({len(self)} members)>'

    def links(self) -> dict[str, str]:
        """How each member is linked: "hard", "soft" or "external"."""
        return {text_of(member["name"]): member["link"] for member in self._described["members"]}

    def visititems(self, function: Any) -> Any:
        """Calls function(name, object) with all objects below, each once, until it returns something else than None."""
        seen: set[int] = {self._described["address"]}
        pending = [(name, self, name) for name, link in reversed(self.links().items()) if link == "hard"]
        while pending:
            path, group, name = pending.pop()
            found = group[name]
            address = found._described["address"]
            if address in seen:
                continue
            seen.add(address)
            result = function(path, found)
            if result is not None:
                return result
            if isinstance(found, Group):
                pending += [(f"{path}/{k}", found, k) for k, link in reversed(found.links().items()) if link == "hard"]
        return None

    def visit(self, function: Any) -> Any:
        """As visititems(), with the names alone."""
        return self.visititems(lambda name, _: function(name))


class Attributes(Mapping[str, Any]):
    """The attributes of an object, all read at once."""

    def __init__(self, file: File, path: str) -> None:
        self._path = path
        self._entries: dict[str, tuple[Json, bytes]] = {}
        packed = memoryview(file.opened().attributes(_encoded(path)))

        def take() -> bytes:
            nonlocal packed
            size = int.from_bytes(packed[:8], "little")
            part = bytes(packed[8 : 8 + size])
            packed = packed[8 + size :]
            return part

        while len(packed):
            header = json.loads(take())
            self._entries[text_of(header["name"])] = (header, take())

    def __getitem__(self, name: str) -> Any:
        header, packed = self._entries[name]
        if "error" in header:
            raise OSError(f'zarrbits: the attribute "{name}" of "{self._path}" cannot be read: {header["error"]}; use h5py')
        described = header["type"]
        if header["shape"] is None:
            return Empty(dtype_of(described))
        values = unpack(described, packed, tuple(header["shape"]))
        if described["kind"] == "text":
            texts = np.empty(values.shape, values.dtype)
            texts[...] = np.array([b.decode("utf-8", "surrogateescape") for b in values.flat] or None, "O").reshape(values.shape)
            values = texts
        return values[()] if values.ndim == 0 else values

    def dtype_of(self, name: str) -> Any:
        """The data type of an attribute, as it is stored."""
        return dtype_of(self._entries[name][0]["type"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f'<zarrbits attributes of "{self._path}" ({len(self)})>'


def _box_of(axes: Sequence[Axis]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return tuple(a.first for a in axes), tuple(a.size for a in axes), tuple(a.step for a in axes)


class Dataset(_Object):
    """A dataset: f["a/b"][selection] reads it."""

    def __init__(self, file: File, name: str, described: Json) -> None:
        super().__init__(file, name, described)
        self._type = described["type"]
        self._dtype: Any = None
        self._packed = is_packed(self._type)
        self._open: OpenDataset | None = None
        shape = described["shape"]
        self.shape: Any = None if shape is None else tuple(shape)
        self.maxshape: Any = None if shape is None else tuple(described["maxshape"])
        self.chunks: Any = None if described["chunks"] is None else tuple(described["chunks"])
        file.track(self)

    @property
    def dtype(self) -> Any:
        if self._dtype is None:
            dtype = dtype_of(self._type)
            self._dtype = dtype
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self.shape or ())

    @property
    def size(self) -> Any:
        return None if self.shape is None else math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return int(self.dtype.itemsize * (self.size or 0))

    @property
    def fillvalue(self) -> Any:
        if self._described["fill"] is None:
            return np.zeros((), self.dtype)[()] if not self._packed else b"" if self._type["kind"] == "text" else None
        return np.frombuffer(base64.b64decode(self._described["fill"]), self.dtype)[0]

    @property
    def filters(self) -> list[tuple[int, tuple[int, ...], str]]:
        """(id, parameters, name in the file) of each filter, in the order of writing."""
        return [(f["id"], tuple(f["values"]), text_of(f["name"])) for f in self._described["filters"]]

    def _filter(self, number: int) -> tuple[int, ...] | None:
        return next((values for id_, values, _ in self.filters if id_ == number), None)

    @property
    def compression(self) -> str | None:
        for number, name in ((1, "gzip"), (4, "szip"), (32000, "lzf")):
            if self._filter(number) is not None:
                return name
        return None

    @property
    def compression_opts(self) -> Any:
        values = self._filter(1)
        return values[0] if values else None

    @property
    def shuffle(self) -> bool:
        return self._filter(2) is not None

    @property
    def fletcher32(self) -> bool:
        return self._filter(3) is not None

    @property
    def scaleoffset(self) -> int | None:
        values = self._filter(6)
        return values[1] if values and len(values) > 1 else None

    def close(self) -> None:
        """Called by File.close()."""
        self._open = None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("Attempt to take len() of scalar dataset")
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f'<zarrbits dataset "{self.name}": shape {self.shape}, type "{self.dtype.str}">'

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        values = self[...]
        return values if dtype is None else values.astype(dtype)

    def _opened(self) -> OpenDataset:
        file = self.file.opened()
        current = self._open
        if current is None or current.process != os.getpid():
            current = self._open = OpenDataset(file, _encoded(self.name))
        return current

    def _read(self, axes: Sequence[Axis]) -> Any:
        """The values of a box, with all dimensions."""
        first, count, step = _box_of(axes)
        if self._packed:
            return unpack(self._type, self._opened().read_packed(first, count, step), count)
        values = np.empty(count, self.dtype)
        if values.size:
            self._opened().read(first, count, step, address_of(values), values.nbytes)
        return values

    def _read_list(self, axes: list[Axis], dimension: int) -> Any:
        indexes = axes[dimension].indexes
        base = self.dtype.base
        values = np.empty(tuple(a.size for a in axes) + self.dtype.shape, base)
        place: list[Any] = [slice(None)] * len(axes)
        for begin, axis, which in runs_of(indexes):
            part = self._read([*axes[:dimension], axis, *axes[dimension + 1 :]])
            place[dimension] = slice(begin, begin + len(which))
            values[tuple(place)] = np.take(part, which, axis=dimension)
        return values

    def _read_points(self, where: Sequence[Any]) -> Any:
        """The values at indexes, an array for each dimension."""
        if not len(where[0]):
            return np.empty((0, *self.dtype.shape), self.dtype.base)
        axes = [Axis(int(w.min()), int(w.max() - w.min()) + 1, 1) for w in where]
        return self._read(axes)[tuple(w - a.first for w, a in zip(where, axes))]

    def __getitem__(self, selection: Any) -> Any:
        if selection is Ellipsis and self.shape and not self._packed:
            values = np.empty(self.shape, self.dtype)
            if values.size:
                self._opened().read_whole(self.shape, address_of(values), values.nbytes)
            return values
        names, pieces = split_fields(selection if isinstance(selection, tuple) else (selection,))
        if names:
            return _fields(self[pieces], names)
        if self.shape is None:
            if pieces in ((), (Ellipsis,)):
                return Empty(self.dtype)
            raise ValueError("Empty datasets cannot be sliced")
        if len(pieces) == 1 and isinstance(pieces[0], RegionReference):
            return self._read_region(pieces[0])
        if (
            len(pieces) == 1
            and isinstance(pieces[0], np.ndarray)
            and pieces[0].dtype.kind == "b"
            and pieces[0].ndim == self.ndim > 1
        ):
            if pieces[0].shape != self.shape:
                raise TypeError("Boolean indexing array has incompatible shape")
            return self._read_points(pieces[0].nonzero())
        axes = axes_of(pieces, self.shape)
        dimension = next((d for d, a in enumerate(axes) if a.indexes is not None), None)
        values = self._read(axes) if dimension is None else self._read_list(axes, dimension)
        values = values.reshape(result_shape(axes) + self.dtype.shape)
        if values.ndim == 0 and Ellipsis not in pieces:
            return values[()]
        return values

    def _read_region(self, region: RegionReference) -> Any:
        points = region.selection.get("points")
        if points is not None:  # in their own order
            return self._read_points(list(np.array(points, np.int64).reshape(-1, self.ndim).T))
        mask = np.full(self.shape, region.selection.get("selection") == "all")
        rank = self.ndim
        for block in region.selection.get("blocks", []):
            mask[tuple(slice(block[d], block[rank + d] + 1) for d in range(rank))] = True
        return self._read_points(mask.nonzero())

    def read_direct(self, out: Any, source_sel: Any = (), dest_sel: Any = None) -> None:
        """Reads into an array that exists."""
        pieces = source_sel if isinstance(source_sel, tuple) else (source_sel,)
        target = out if dest_sel is None else out[dest_sel]
        axes = axes_of(pieces, self.shape)
        is_box = all(a.indexes is None for a in axes)
        fits = isinstance(target, np.ndarray) and target.shape == result_shape(axes) and target.flags.c_contiguous
        if is_box and fits and target.flags.writeable and target.dtype == self.dtype and not self._packed and target.size:
            self._opened().read(*_box_of(axes), address_of(target), target.nbytes)
        elif dest_sel is None:
            out[...] = np.asarray(self[source_sel]).reshape(out.shape)
        else:
            out[dest_sel] = self[source_sel]

    def astype(self, dtype: Any) -> _Converted:
        """A view whose values are converted when they are read."""
        return _Converted(self, lambda values: np.asarray(values).astype(dtype)[()], np.dtype(dtype))

    def asstr(self, encoding: str = "utf-8", errors: str = "strict") -> _Converted:
        """A view whose texts are str."""
        if self.dtype.kind not in "OS":
            raise TypeError("dset.asstr() can only be used on datasets with an HDF5 string datatype")

        def decoded(values: Any) -> Any:
            if isinstance(values, bytes):
                return values.decode(encoding, errors)
            texts = np.empty(values.shape, "O")
            for index, value in np.ndenumerate(values):
                texts[index] = value.decode(encoding, errors)
            return texts

        return _Converted(self, decoded, np.dtype("O"))

    def fields(self, names: str | Sequence[str]) -> _Converted:
        """A view of one member, or of some, of a compound."""
        wanted = [names] if isinstance(names, str) else list(names)
        return _Converted(self, lambda values: _fields(values, wanted, isinstance(names, str)), self.dtype)

    def iter_chunks(self) -> Iterator[tuple[slice, ...]]:
        """The slices of each chunk, in C order."""
        if not self.chunks:
            raise TypeError("Chunked dataset required")
        for index in np.ndindex(*(-(-n // c) for n, c in zip(self.shape, self.chunks))):
            yield tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, self.chunks, self.shape))


def _fields(values: Any, names: list[str], single: bool = True) -> Any:
    return values[names[0]] if single and len(names) == 1 else values[names]


class _Converted:
    def __init__(self, dataset: Dataset, convert: Any, dtype: Any) -> None:
        self._dataset, self._convert, self.dtype = dataset, convert, dtype

    def __getitem__(self, selection: Any) -> Any:
        return self._convert(self._dataset[selection])

    def __len__(self) -> int:
        return len(self._dataset)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        values = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype)
