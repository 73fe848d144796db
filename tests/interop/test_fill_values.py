# SPDX-License-Identifier: BSL-1.0
"""Every kind of _FillValue at every type of array: xarray opens the store, sees the value if it can take it,
and writes what it can write. The table is of HDF5 files as others write them; netCDF itself refuses most of these kinds."""

import math

import h5py
import numpy as np
import pytest

from conftest import run
from conventions import at_least

pytestmark = pytest.mark.filterwarnings("ignore")
ENUM = h5py.enum_dtype({"A": 1, "B": 7}, "i1")
PAIR = np.dtype([("a", "i4"), ("b", "f8")])
ARRAYS = {
    name: np.zeros(2, name)
    for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i2", "f2", "f4", "f8", ">f4", "c8", "c16", "S1", "S5", "V3")
}
ARRAYS |= {
    "bool": np.array([True, False]),
    "enum": np.array([1, 7], ENUM),
    "text": np.array(["a", "b"], h5py.string_dtype()),
    "pair": np.zeros(2, PAIR),
    "time": np.array([1, 2], "M8[us]").astype(h5py.opaque_dtype("M8[us]")),
}
PAYLOAD = np.array(0xFFC00001, "u4").view("f4")
KINDS = {
    "int": np.int32(7),
    "zero": np.int64(0),
    "one": np.uint8(1),
    "negative": np.int16(-7),
    "large": np.int64(2**40),
    "largest": np.uint64(2**64 - 1),
    "whole": np.float64(9.0),
    "fraction": np.float32(0.1),
    "big": np.float64(1e300),
    "nan": np.float64("nan"),
    "nan32": np.float32("nan"),
    "payload": PAYLOAD,
    "infinity": np.float64("inf"),
    "-infinity": np.float32("-inf"),
    "minus zero": np.float64(-0.0),
    "bool": np.bool_(True),
    "no": np.bool_(False),
    "complex": np.complex64(1 + 2j),
    "complex nan": np.complex128(
        complex("nan"),
    ),
    "enum": np.array(7, ENUM),
    "text": "x",
    "digits": "7",
    "empty text": "",
    "bytes": np.bytes_(b"\xff"),
    "opaque": np.void(b"abc"),
    "pair": np.array((1, 2.5), PAIR),
    "one in a list": np.array([5], "i4"),
    "one float in a list": np.array([5], "f4"),
    "two": np.array([1, 2], "i2"),
    "two floats": np.array([1, 2], "f4"),
    "texts": np.array(["a", "b"], h5py.string_dtype()),
    "2-d": np.array([[5]], "i4"),
    "none": h5py.Empty("f4"),
    "no text": h5py.Empty("S1"),
    "empty": np.zeros(0, "f8"),
}


def wanted(array, fill):
    """What xarray can take of it, by what the value means: null where it would be another value, or nothing at all."""
    if (
        isinstance(fill, (str, bytes, h5py.Empty))
        or np.asarray(fill).dtype.kind not in "biufc"
        or np.size(fill) != 1
        or np.ndim(fill) > 1
    ):
        return None
    value = np.ravel(fill)[0]
    kind = array.dtype.kind
    if kind == "c":
        return complex(value)
    if np.iscomplexobj(value):
        return None
    if kind == "f":
        return float(value)
    whole = math.isfinite(value) and float(value).is_integer()
    if kind == "b":
        return bool(value) if value in (0, 1) else None
    if kind not in "iu" or not whole:
        return None
    limits = np.iinfo(array.dtype)
    return int(value) if limits.min <= int(value) <= limits.max else None


def same(a, b):
    return type(a) is type(b) and (a == b or (a != a and b != b and str(a) == str(b)))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    name = tmp_path_factory.mktemp("fill") / "in.h5"
    with h5py.File(name, "w") as f:
        for a, array in ARRAYS.items():
            for k, fill in KINDS.items():
                d = f.create_dataset(f"{a} {k}", data=array, dtype=ENUM if a == "enum" else None)
                if k == "enum":
                    d.attrs.create("_FillValue", fill, dtype=ENUM)
                else:
                    d.attrs["_FillValue"] = fill
        sequence = f.create_dataset("sequence", (2,), h5py.vlen_dtype("i4"))
        sequence.attrs["_FillValue"] = np.int32(5)
    return name


@pytest.mark.parametrize(
    "options", [[], ["--convention", "netcdf"], ["--convention", "none"]], ids=lambda o: "".join(o) or "not said"
)
def test_each_kind_at_each_type(options, source, tmp_path):
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    store = tmp_path / "out.zarr"
    run("convert", source, store, "--quiet", *options)
    for decode in (False, True):
        with xr.open_zarr(store, consolidated=False, decode_cf=decode, decode_times=False) as ds:
            assert len(ds.variables) == len(ARRAYS) * len(KINDS)
    with xr.open_zarr(store, consolidated=False, decode_cf=False) as ds:
        for a, array in ARRAYS.items():
            for k, fill in KINDS.items():
                attributes, value = ds[f"{a} {k}"].attrs, wanted(array, fill)
                if value is None:
                    assert "_FillValue" not in attributes, (a, k, attributes)
                else:
                    assert same(attributes["_FillValue"], value), (a, k, attributes["_FillValue"], value)
                if options[-1:] != ["none"]:
                    assert set(attributes) <= {"_FillValue"}, (a, k, attributes)
    run("verify", source, store)
    if options[-1:] == ["none"]:  # our notes are attributes there, which netCDF cannot have
        return
    with xr.open_zarr(store, consolidated=False, decode_times=False) as ds:
        writable = ds[
            [
                v
                for v in ds.variables
                if ds[v].dtype.kind in "iuf" and ds[v].dtype.itemsize * (ds[v].dtype.kind == "f") != 2 and ds[v].ndim == 1
            ]
        ]
        writable.rename({v: v.replace(">", "big ") for v in writable.variables}).to_netcdf(
            tmp_path / "again.nc", engine="netcdf4"
        )
        ds.drop_vars([v for v in ds.variables if v.split()[0] in ("V3", "pair", "time")]).to_zarr(
            tmp_path / "again.zarr", consolidated=False
        )
