# SPDX-License-Identifier: BSL-1.0
"""What netCDF sees in an HDF5 file: groups with dimensions and variables, as h5netcdf has them."""

from __future__ import annotations

import collections
import functools
from typing import Any, NamedTuple

import numpy as np

from .hdf5_file import Dataset, Datatype, File, Group
from .hdf5_values import Empty, Reference

_HIDDEN = frozenset(
    "REFERENCE_LIST CLASS DIMENSION_LIST NAME _Netcdf4Dimid _Netcdf4Coordinates _nc3_strict _NCProperties".split()
)
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable."
_PREFIX = "_nc4_non_coord_"  # of a variable with the name of a dimension that it does not belong to


class Dimension(NamedTuple):
    size: int
    is_unlimited: bool = False
    number: Any = False  # netCDF's id
    is_phony: bool = False


def _scales_of(dataset: Dataset) -> list[list[str]]:
    """The names of the dimension scales of each dimension."""
    lists = dataset.attrs.get("DIMENSION_LIST")
    if lists is None or isinstance(lists, Empty):
        return [[] for _ in range(dataset.ndim)]
    # programs before HDF5's dimension scales wrote a reference in place of a list
    each = ([refs] if isinstance(refs, Reference) else refs for refs in lists)
    return [[ref.name.split("/")[-1] for ref in refs if ref.name is not None] for refs in each]


def _labels(dataset: Dataset) -> str:
    if not dataset.ndim:
        return "none"
    counts = {len(names) for names in _scales_of(dataset)}
    if counts == {0}:
        return "unlabeled"
    if 0 in counts:
        raise ValueError(
            f'zarrbits: some dimensions of the variable "{dataset.name}" have names, and some have none; use zarrbits.File'
        )
    return "labeled"


def attributes_of(obj: Any) -> dict[str, Any]:
    """Attributes in the form of netCDF4 and h5netcdf."""
    attrs: dict[str, Any] = {}
    for name in obj.attrs:
        if name in _HIDDEN:
            continue
        value: Any = obj.attrs[name]
        dtype = obj.attrs.dtype_of(name)
        is_fixed, is_text = (
            dtype.kind == "S",
            dtype.kind == "O" and bool(dtype.metadata) and dtype.metadata.get("vlen") in (str, bytes),
        )
        if isinstance(value, Empty):
            attrs[name] = b"" if is_fixed and dtype.itemsize == 1 else np.array([], dtype)
            continue
        if is_fixed and dtype.itemsize > 1:
            encoding = dtype.metadata["h5py_encoding"]
            if isinstance(value, bytes):
                value = value.decode(encoding, "surrogateescape")
            else:
                value = [b.decode(encoding, "surrogateescape") for b in value.flat]
        elif (is_fixed or is_text) and not np.isscalar(value):
            value = value.tolist()
        if not np.isscalar(value) and len(value) == 1:
            value = value[0]
        attrs[name] = value
    return attrs


class NetcdfGroup:
    """A group. Names of dimensions are also those of the groups above it.

    phony_dims: dimensions without names are numbered in the order of the groups in the file ("sort"), or in that in which groups
    are opened ("access"), as by h5netcdf.
    """

    def __init__(self, group: Group | File, parent: NetcdfGroup | None = None, phony_dims: str = "access") -> None:
        if phony_dims not in ("sort", "access"):
            raise ValueError(f'zarrbits: phony_dims is {phony_dims!r}; use "sort" or "access"')
        self.group, self.parent = group, parent
        self.root: NetcdfGroup = parent.root if parent else self
        if parent is None:
            self.phony_count = self.named_count = 0
            self.sorts_phony_dims = phony_dims == "sort"
        self.dimensions: dict[str, Dimension] = {}
        self.group_names: list[str] = []
        self.variables: dict[str, Dataset] = {}
        self._types: list[tuple[str, Any]] = []  # named datatypes
        self._groups: dict[str, NetcdfGroup] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        unnamed: collections.Counter[int] = collections.Counter()
        for name in group:
            member = group[name]
            if isinstance(member, Group):
                self.group_names.append(name)
            elif isinstance(member, Datatype):
                self._types.append((name, member.description))
            else:
                if member.attrs.get("CLASS") == b"DIMENSION_SCALE":
                    self.dimensions[name] = self._dimension(member)
                elif _labels(member) == "unlabeled":
                    unnamed |= collections.Counter(member.shape)
                note = member.attrs.get("NAME", b"")
                if _NO_VARIABLE not in (note.encode() if isinstance(note, str) else note):
                    self.variables[name.replace(_PREFIX, "")] = member
        named = collections.Counter(None if d.is_unlimited else d.size for d in self.dimensions.values())
        self.root.named_count += len(self.dimensions)
        for size, count in unnamed.items():
            for _ in range(named[size], count):
                # netCDF-C's numbers, and so those of "sort", are of all dimensions
                number = self.root.phony_count + (self.root.named_count if self.root.sorts_phony_dims else 0)
                self.dimensions[f"phony_dim_{number}"] = Dimension(size, is_phony=True)
                self.root.phony_count += 1
        if parent is None and phony_dims == "sort":
            self._open_all_groups()

    def _open_all_groups(self) -> None:
        for name in self.group_names:
            self.child(name)._open_all_groups()

    def _dimension(self, scale: Dataset) -> Dimension:
        size, is_unlimited = len(scale), scale.maxshape == (None,)
        if is_unlimited:  # variables may be longer
            references = scale.attrs.get("REFERENCE_LIST", ())
            for reference, axis in () if isinstance(references, Empty) else references:
                if reference:
                    size = max(size, scale.file[reference].shape[axis])
        return Dimension(size, is_unlimited, scale.attrs.get("_Netcdf4Dimid", -1))

    def child(self, name: str) -> NetcdfGroup:
        if name not in self._groups:
            self._groups[name] = NetcdfGroup(self.group[name], self)
        return self._groups[name]

    def descend(self, path: str) -> NetcdfGroup:
        found = self
        for name in path.strip("/").split("/") if path.strip("/") else ():
            if name not in found.group_names:
                raise OSError(
                    f'zarrbits: there is no group "{path}" in "{self.group.file.filename}"; use one of zarrbits.File(...)'
                )
            found = found.child(name)
        return found

    @property
    def all_dimensions(self) -> dict[str, Dimension]:
        above = self.parent.all_dimensions if self.parent else {}
        return {**above, **self.dimensions}

    @property
    def parent_dimensions(self) -> dict[str, int]:
        return {name: d.size for name, d in self.parent.all_dimensions.items()} if self.parent else {}

    def dimensions_of(self, variable: str) -> tuple[str, ...]:
        """The names of a variable's dimensions."""
        if variable not in self._names:
            names = self._dimensions_of(self.variables[variable])
            if unknown := sorted(set(names) - self.all_dimensions.keys()):
                raise ValueError(
                    f'zarrbits: "{unknown[0]}", which gives the variable "{self.variables[variable].name}" a dimension, '
                    "is not a dimension scale of its group or one above; use zarrbits.File"
                )
            self._names[variable] = names
        return self._names[variable]

    def _dimensions_of(self, dataset: Dataset) -> tuple[str, ...]:
        attrs, known = dataset.attrs, self.all_dimensions
        if "_Netcdf4Coordinates" in attrs and attrs.get("CLASS") == b"DIMENSION_SCALE":
            by_number = {d.number: name for name, d in known.items()}
            return tuple(by_number[number] for number in attrs["_Netcdf4Coordinates"])
        if "DIMENSION_LIST" in attrs and _labels(dataset) == "labeled":
            return tuple(names[-1] for names in _scales_of(dataset))
        own = dataset.name.split("/")[-1]
        if own in known:
            return (own,)
        names: list[str] = []
        used: collections.Counter[int] = collections.Counter()
        for size, scales in zip(dataset.shape, _scales_of(dataset)):
            if scales:
                names.append(scales[0])
                continue
            fitting = [name for name, d in self.dimensions.items() if d.size == size]
            names.append(fitting[used[size]])
            used[size] += 1
        return tuple(names)

    def shape_of(self, variable: str) -> tuple[int, ...]:
        known = self.all_dimensions
        return tuple(known[name].size for name in self.dimensions_of(variable))

    def named_type_of(self, variable: str) -> str | None:
        """The name of the datatype that a variable shares with a named one."""
        wanted = self.variables[variable].description
        found: NetcdfGroup | None = self
        while found:
            for name, description in found._types:
                if description == wanted:
                    return name
            found = found.parent
        return None


@functools.lru_cache(maxsize=1024)
def _record_of_texts(dtype: Any) -> Any:
    fields = dtype.fields
    return np.dtype(
        {
            "names": list(dtype.names),
            "formats": [
                np.dtype(f"S{fields[n][0].shape[0]}") if fields[n][0].base == "S1" and fields[n][0].shape else fields[n][0]
                for n in dtype.names
            ],
            "offsets": [fields[n][1] for n in dtype.names],
            "itemsize": dtype.itemsize,
        }
    )


def read_variable(group: NetcdfGroup, name: str, key: tuple[Any, ...], texts: bool = True) -> Any:
    """The values of a variable. Beyond the end of a dataset that is shorter than its dimension are fill values."""
    dataset = group.variables[name]
    dtype = dataset.dtype
    if dtype.kind == "O" and texts and (dtype.metadata or {}).get("vlen") in (str, bytes):
        return dataset.asstr()[key]
    shape = group.shape_of(name)
    if dtype.kind in "fiu" and any(have < want for have, want in zip(dataset.shape, shape)):
        return _padded(dataset, key, shape)
    values = dataset[key]
    if dtype.names and dtype.kind == "V" and group.named_type_of(name) and not dtype.hasobject:
        values = values.view(_record_of_texts(dtype))
    return values


def _padded(dataset: Dataset, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    inside: list[Any] = []  # the part of the key within the dataset, and where it is in the result
    target: list[Any] = []
    counts: list[int] = []
    for piece, have, want in zip(key, dataset.shape, shape):
        if isinstance(piece, slice):
            first, stop, step = piece.indices(want)
            count = max(0, -(-(stop - first) // step))
            within = max(0, -(-(min(stop, have) - first) // step))
            inside.append(slice(first, min(stop, have), step) if within else slice(0, 0))
            target.append(slice(0, within))
            counts.append(count)
        elif isinstance(piece, np.ndarray) and piece.ndim:
            indexes = np.where(piece < 0, piece + want, piece)
            inside.append(indexes[indexes < have])
            target.append(indexes < have)
            counts.append(len(indexes))
        else:
            index = int(piece) % want
            if index >= have:
                inside = []
                break
            inside.append(index)
    else:
        values = np.full(counts, dataset.fillvalue, dataset.dtype)
        values[tuple(target)] = dataset[tuple(inside)]
        return values[()] if not counts else values
    counts = [
        len(range(*p.indices(n))) if isinstance(p, slice) else len(p)
        for p, n in zip(key, shape)
        if isinstance(p, slice) or np.ndim(p)
    ]
    return np.full(counts, dataset.fillvalue, dataset.dtype)[()]
