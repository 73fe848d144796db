# SPDX-License-Identifier: BSL-1.0
"""netCDF-3 files of netCDF4-python and scipy, in all three formats: their stores are to xarray and netCDF4-python what the files
are."""

import json

import numpy as np
import pytest

from harness import convert, run, verify

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
netCDF4 = pytest.importorskip("netCDF4")
scipy_io = pytest.importorskip("scipy.io")

pytestmark = pytest.mark.filterwarnings("ignore")
FORMATS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
TYPES = {"i1": -3, "S1": b"z", "i2": -300, "i4": 70_000, "f4": 1.5, "f8": 1e300}
TYPES5 = {**TYPES, "u1": 250, "u2": 65_000, "u4": 4_000_000_000, "i8": -(2**60), "u8": 2**63 + 1}


def write(path, kind, seed):
    rng = np.random.default_rng(seed)
    types = TYPES5 if kind == "NETCDF3_64BIT_DATA" else TYPES
    with netCDF4.Dataset(path, "w", format=kind) as f:
        f.createDimension("time", None)
        for k, n in enumerate(rng.integers(1, 6, 3)):
            f.createDimension(f"d{k}", int(n))
        f.setncatts({"title": "tïtle", "numbers": np.array([1, 2], "i4"), "one": np.float32(0.1), "empty": ""})
        time = f.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        records = int(rng.integers(0, 5))
        time[:] = np.arange(records)
        for k, (name, value) in enumerate(types.items()):
            dims = tuple(rng.choice(["d0", "d1", "d2"], int(rng.integers(0, 3)), replace=False))
            if rng.random() < 0.5:
                dims = ("time", *dims)
            fill = value if name != "S1" and rng.random() < 0.5 else None  # xarray's Zarr has no characters for missing values
            v = f.createVariable(f"v{k}", name, dims, fill_value=fill)
            v.set_auto_maskandscale(False)
            if name != "S1":
                v.setncatts({"valid_range": np.array([0, 1], name), "missing_value": np.array(value, name)})
                v.long_name = f"variable {k}"
            shape = [records if d == "time" else len(f.dimensions[d]) for d in dims]
            if not shape or np.prod(shape):
                letters = np.frombuffer(b"abcxyz", "S1")
                v[...] = rng.choice(letters, shape) if name == "S1" else rng.integers(0, 100, shape).astype(name)
    return path


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_a_store_is_to_xarray_what_the_file_is(tmp_path, kind, seed):
    source = write(tmp_path / "in.nc", kind, seed)
    compare(source, tmp_path / "out.zarr")


def compare(source, store, *options):
    convert(source, store, *options)
    assert verify(source, store)["exit_status"] == 0
    for decode in (False, True):
        with xr.open_dataset(source, engine="netcdf4", decode_cf=decode) as a, xr.open_zarr(store, decode_cf=decode) as b:
            xr.testing.assert_identical(a.load(), b.load())
            for name in a.variables:
                assert a[name].encoding.get("_FillValue") is None or not decode or name in b.variables
    group = zarr.open_group(store, mode="r")
    with netCDF4.Dataset(source) as f:
        f.set_auto_mask(False)
        f.set_auto_scale(False)
        for name, v in f.variables.items():
            v.set_auto_chartostring(False)
            np.testing.assert_array_equal(np.asarray(group[name][...]), np.asarray(v[...]))
            if v.dtype != "S1":
                assert group[name].dtype == v.dtype.newbyteorder("=")


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_scipy(tmp_path, version):
    with scipy_io.netcdf_file(tmp_path / "in.nc", "w", version=version) as f:
        f.createDimension("t", None)
        f.createDimension("x", 3)
        f.history = "by scipy"
        v = f.createVariable("v", "i2", ("t", "x"))
        v.units = "K"
        for k in range(4):
            v[k] = np.arange(3) * k
        b = f.createVariable("b", "b", ("t",))
        for k in range(4):
            b[k] = k
    compare(tmp_path / "in.nc", tmp_path / "out.zarr")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_and_its_netcdf4_copy_become_the_same_dataset(tmp_path, kind):
    source = write(tmp_path / "in.nc", kind, 7)
    with xr.open_dataset(source, decode_cf=False) as ds:
        ds.to_netcdf(tmp_path / "copy.nc", engine="netcdf4", format="NETCDF4")
    convert(source, tmp_path / "a.zarr")
    run("export", tmp_path / "a.zarr", tmp_path / "back.nc")
    for decode in (False, True):
        with xr.open_dataset(source, decode_cf=decode) as a, xr.open_dataset(tmp_path / "back.nc", decode_cf=decode) as b:
            xr.testing.assert_identical(a.load(), b.load())
    assert (
        json.loads(run("digest", "--json", source).stdout)["digest"]
        == json.loads(run("digest", "--json", tmp_path / "back.nc").stdout)["digest"]
    )
