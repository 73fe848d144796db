# SPDX-License-Identifier: BSL-1.0
"""Copies of Zarr v2, as zarr-python, xarray and GDAL read them: as they read the source, or the copy of Zarr v3."""

import subprocess
import sys

import numpy as np
import pytest

from conftest import HERE, run

h5py = pytest.importorskip("h5py")
netcdf4 = pytest.importorskip("netCDF4")
zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
pytestmark = pytest.mark.filterwarnings("ignore")
VALUES = np.random.default_rng(2).integers(0, 1000, (20, 30)).astype("i4")


def make_netcdf(path):
    with netcdf4.Dataset(path, "w") as f:
        f.title = "all kinds of missing values"
        f.createDimension("t", None)
        f.createDimension("x", 10)
        f.createVariable("t", "f8", ("t",))[:] = np.arange(7)
        f["t"].units = "days since 2000-01-01"
        f.createVariable("x", "i4", ("x",))[:] = np.arange(10)
        packed = f.createVariable("packed", "i2", ("t", "x"), zlib=True, fill_value=-99, chunksizes=(2, 10))
        packed[:] = np.arange(70).reshape(7, 10)
        packed[3, 4] = np.ma.masked
        packed.scale_factor, packed.add_offset = 0.5, 3.0
        f.createVariable("unmarked", "f4", ("t", "x"), zlib=True, chunksizes=(2, 10))[:2] = (
            1  # shorter than t, without _FillValue
        )
        f.createVariable("zeros", "i4", ("t",), chunksizes=(2,))[:2] = 0
        f.createVariable("marked", "f4", ("t", "x"), fill_value=7.0, chunksizes=(2, 10))[:1] = 1
        f.createVariable("nan", "f4", ("t", "x"), fill_value=np.nan)[2] = 3
        f.createVariable("text", str, ("x",))[:] = np.array([str(i) for i in range(10)], object)
        f.createVariable("scalar", "f8", ())[...] = 3
        f.createVariable("never", "i2", ("x",))
        f.createVariable("summed", "f4", ("t", "x"), zlib=True, shuffle=True, fletcher32=True)[:] = 0.25


@pytest.mark.parametrize("options", [[], ["--profile", "native"], ["--chunk", "x:4"], ["--no-consolidate"]], ids=" ".join)
@pytest.mark.parametrize("decoded", [True, False])
def test_xarray_finds_them_identical(tmp_path, options, decoded):
    make_netcdf(tmp_path / "in.nc")
    run("convert", "-q", "--zarr-format", "2", *options, tmp_path / "in.nc", tmp_path / "v2.zarr")
    run("convert", "-q", *options, tmp_path / "in.nc", tmp_path / "v3.zarr")
    run("convert", "-q", "--zarr-format", "2", *options, tmp_path / "v3.zarr", tmp_path / "again.zarr")
    run("verify", "-q", tmp_path / "in.nc", tmp_path / "v2.zarr")
    run("verify", "-q", tmp_path / "v3.zarr", tmp_path / "again.zarr")
    consolidated = "--no-consolidate" not in options
    how = {"chunks": None, "mask_and_scale": decoded, "consolidated": consolidated}
    want = xr.open_dataset(tmp_path / "in.nc", engine="netcdf4", mask_and_scale=decoded).load()
    for name in "v2.zarr", "again.zarr":
        got = xr.open_zarr(tmp_path / name, zarr_format=2, **how).load()
        xr.testing.assert_identical(got, want)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "v3.zarr", **how).load(), want)


def make_hdf5(path):
    struct = np.array([(i, i / 4) for i in range(12)], [("a", "<i2"), ("b", "<f8")])
    with h5py.File(path, "w") as f:
        for name in ("i1", "u2", ">i4", "u8", "f2", ">f8", "c8"):
            f.create_dataset(name.strip(">"), data=VALUES.astype(name), chunks=(8, 30), compression="gzip", shuffle=True)
        f.create_dataset("truth", data=VALUES > 500, chunks=(8, 30))
        f.create_dataset("struct", data=struct, chunks=(5,))
        f.create_dataset("text", data=["one", "", "drei"] * 4, dtype=h5py.string_dtype(), chunks=(5,))
        f.create_dataset("gaps", (20, 30), "i4", compression="gzip", fillvalue=-3, chunks=(8, 30))[8:16] = 1
        f["g/number"] = 2.5


@pytest.mark.parametrize("profile", ["portable", "native"])
def test_zarr_python_reads_every_type(tmp_path, profile):
    make_hdf5(tmp_path / "in.h5")
    run("convert", "-q", "--zarr-format", "2", "--profile", profile, tmp_path / "in.h5", tmp_path / "v2.zarr")
    root = zarr.open_group(tmp_path / "v2.zarr", mode="r", zarr_format=2)
    with h5py.File(tmp_path / "in.h5") as f:
        for name in list(f)[:-1] + ["g/number"]:
            if not isinstance(f[name], h5py.Dataset):
                continue
            want = f[name].asstr()[()] if name == "text" else f[name][()]
            np.testing.assert_array_equal(root[name][...], want, err_msg=name)


def test_gdal_reads_them(tmp_path):
    pytest.importorskip("rasterio")
    make_hdf5(tmp_path / "in.h5")
    run("convert", "-q", "--zarr-format", "2", tmp_path / "in.h5", tmp_path / "v2.zarr")
    for name, dtype in (("u2", "uint16"), ("f8", "float64"), ("gaps", "int32")):
        reader = [sys.executable, HERE / "gdal_reader.py", f'ZARR:"{tmp_path}/v2.zarr"', name, dtype]
        done = subprocess.run(list(map(str, reader)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        shape, values = done.stdout.splitlines()
        with h5py.File(tmp_path / "in.h5") as f:
            assert shape == "20 30" and bytes.fromhex(values) == f[name][()].astype(dtype).tobytes(), name
