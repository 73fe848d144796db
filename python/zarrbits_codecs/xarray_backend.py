# SPDX-License-Identifier: BSL-1.0
"""xarray.open_dataset(path, engine="zarrbits"): netCDF-4, HDF5 and netCDF-3 files through zarrbits.File.

xarray loads this module when it lists its engines; everything else is imported when a file is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing
from xarray.core.utils import FrozenDict
from xarray.core.variable import Variable

_FILTERS = {307: "bzip2", 32004: "blosc", 32015: "zstd"}


class _Array(BackendArray):
    """A variable, which is read when its values are used."""

    def __init__(self, store: ZarrbitsStore, name: str) -> None:
        self.store, self.name = store, name
        self.shape = store.group.shape_of(name)
        self.dtype = store.group.variables[name].dtype

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        from zarrbits.netcdf_view import read_variable

        return read_variable(self.store.group, self.name, key, self.store.decode_vlen_strings)


class ZarrbitsStore(AbstractDataStore):
    """A group of an open file. It can be pickled; then it opens the file again."""

    def __init__(
        self, file: Any, group: str = "", decode_vlen_strings: bool = True, phony_dims: str = "access", view: Any = None
    ) -> None:
        from zarrbits.netcdf_view import NetcdfGroup

        self.file, self.path, self.decode_vlen_strings, self.phony_dims = file, group, decode_vlen_strings, phony_dims
        self.view = view or NetcdfGroup(file, phony_dims=phony_dims)
        self.group = self.view.descend(group)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.path, self.decode_vlen_strings, self.phony_dims)

    def _attributes(self, source: Any) -> dict[str, Any]:
        from zarrbits.netcdf_view import attributes_of

        attrs = attributes_of(source)
        for name, value in attrs.items():
            if name not in ("_FillValue", "missing_value") and isinstance(value, bytes):
                try:
                    attrs[name] = value.decode()
                except UnicodeDecodeError:
                    pass  # they stay bytes
        return attrs

    def open_store_variable(self, name: str) -> Variable:
        dataset, dimensions = self.group.variables[name], self.group.dimensions_of(name)
        data = indexing.LazilyIndexedArray(_Array(self, name))
        dtype = dataset.dtype
        metadata = dtype.metadata or {}
        encoding: dict[str, Any] = {"dtype": str if metadata.get("vlen") is str else dtype}
        named = self.group.named_type_of(name) if "enum" in metadata else None
        if named:
            encoding["dtype"] = np.dtype(dtype, metadata={"enum": metadata["enum"], "enum_name": named})
        chunks = dataset.chunks if dataset.shape else None
        encoding["contiguous"], encoding["chunksizes"] = not chunks, chunks
        if chunks:
            encoding["preferred_chunks"] = dict(zip(dimensions, chunks))
        numbers = [number for number, _, _ in dataset.filters]
        encoding |= {"zlib": dataset.compression == "gzip", "szip": False} | {n: False for n in _FILTERS.values()}
        encoding |= {"shuffle": dataset.shuffle, "fletcher32": dataset.fletcher32}
        encoding |= {name: True for number, name in _FILTERS.items() if number in numbers}
        if dataset.compression == "gzip":
            encoding["complevel"] = dataset.compression_opts
        elif dataset.compression is not None:
            encoding["compression"] = dataset.compression
        encoding["source"], encoding["original_shape"] = self.file.filename, data.shape
        return Variable(dimensions, data, self._attributes(dataset), encoding)

    def get_variables(self) -> Any:
        return FrozenDict((name, self.open_store_variable(name)) for name in self.group.variables)

    def get_attrs(self) -> Any:
        return FrozenDict(self._attributes(self.group.group))

    def get_dimensions(self) -> Any:
        return FrozenDict((name, d.size) for name, d in self.group.dimensions.items())

    def get_parent_dimensions(self) -> Any:
        return FrozenDict(self.group.parent_dimensions)

    def get_encoding(self) -> dict[str, Any]:
        return {"unlimited_dims": {name for name, d in self.group.dimensions.items() if d.is_unlimited}}

    def close(self, **kwargs: Any) -> None:
        self.file.close()


class ZarrbitsBackendEntrypoint(BackendEntrypoint):
    """Reads netCDF-4, HDF5 and netCDF-3 files, also at URLs, in several threads.

    file_options: those of zarrbits.File, such as {"threads": 2}. phony_dims: "sort" or "access", as for engine="h5netcdf"; None
    is "access", without a warning.
    """

    description = "Open netCDF and HDF5 files, decoded in several threads by zarrbits"
    url = "https://github.com/zarrbits/zarrbits"
    supports_groups = True
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "decode_vlen_strings",
        "phony_dims",
        "file_options",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return False  # only if it is asked for by its name

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        decode_vlen_strings: bool = True,
        phony_dims: str | None = None,
        file_options: Mapping[str, Any] | None = None,
    ) -> Any:
        from zarrbits.hdf5_file import File

        file = File(os.fspath(filename_or_obj), **(file_options or {}))
        try:
            return _decoded(
                ZarrbitsStore(file, group or "", decode_vlen_strings, phony_dims or "access"),
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
        except BaseException:
            file.close()
            raise

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        group: str | None = None,
        decode_vlen_strings: bool = True,
        phony_dims: str | None = None,
        file_options: Mapping[str, Any] | None = None,
        **decoding: Any,
    ) -> dict[str, Any]:
        from zarrbits.hdf5_file import File
        from zarrbits.netcdf_view import NetcdfGroup

        file = File(os.fspath(filename_or_obj), **(file_options or {}))
        try:
            phony = phony_dims or "access"
            view = NetcdfGroup(file, phony_dims=phony)
            groups: dict[str, Any] = {}
            pending = [("/", (group or "").strip("/"))]
            while pending:
                name, path = pending.pop(0)
                current = view.descend(path)  # not before its turn: the numbers of phony dimensions follow
                groups[name] = _decoded(ZarrbitsStore(file, path, decode_vlen_strings, phony, view), **decoding)
                pending[:0] = [(f"{name.rstrip('/')}/{child}", f"{path}/{child}".strip("/")) for child in current.group_names]
            return groups
        except BaseException:
            file.close()
            raise

    def open_datatree(self, filename_or_obj: Any, **kwargs: Any) -> Any:
        from xarray import DataTree

        groups = self.open_groups_as_dict(filename_or_obj, **kwargs)
        tree = DataTree.from_dict(groups)
        for path, dataset in groups.items():
            tree[path].set_close(dataset._close)
        return tree


def _decoded(store: ZarrbitsStore, **decoding: Any) -> Any:
    return StoreBackendEntrypoint().open_dataset(store, **decoding)
