# SPDX-License-Identifier: BSL-1.0
"""Attributes and names as the communities' readers expect them, of files that real writers make."""

import h5py
import numpy as np
import pytest

from conftest import run
from conventions import at_least, opened

pytest_plugins = ["conventions"]  # its fixtures
pytestmark = pytest.mark.filterwarnings("ignore")


def readers():
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    return xr


def written_again(xr, source, store, folder):
    """What xarray reads of the store it also writes, as netCDF and as Zarr, and that is what it reads of the file."""
    with xr.open_dataset(source, engine="netcdf4") as a, xr.open_zarr(opened(store), consolidated=False) as b:
        xr.testing.assert_identical(a, b)
        b.to_netcdf(folder / "again.nc")
        b.to_zarr(folder / "again.zarr", consolidated=False)
        with (
            xr.open_dataset(folder / "again.nc", engine="netcdf4") as c,
            xr.open_zarr(folder / "again.zarr", consolidated=False) as d,
        ):
            xr.testing.assert_identical(a, c)
            xr.testing.assert_identical(a, d)


def texts(d, v):
    v.coordinates, v.comment, d.history = "", "", ""  # text of length 0 is a null dataspace in HDF5
    v.setncattr_string("string", "")
    v.nothing, v.one, v.names = np.zeros(0, "f4"), ["a"], ["a", "b"]


def numbers(d, v):
    d.resolution, v.valid_range = np.nan, np.array([0, np.inf], "f4")
    v.limits, v.missing_value, v.payload = np.array([-np.inf, np.nan]), np.float32(np.nan), np.array(0xFFC00001, "u4").view("f4")
    d.nan_as_text = "NaN"


@pytest.mark.parametrize("fill", [texts, numbers], ids=lambda f: f.__name__)
def test_netcdf_attributes(fill, convert, tmp_path):
    xr = readers()
    nc = pytest.importorskip("netCDF4")
    with nc.Dataset(tmp_path / "in.nc", "w") as d:
        d.createDimension("x", 3)
        v = d.createVariable("v", "f4", ("x",), fill_value=np.float32(np.nan))
        v[:] = [1, np.nan, 3]
        fill(d, v)
        d.createVariable("w", "i4", ("x",))[:] = [1, 2, 3]
    with h5py.File(tmp_path / "in.nc", "r+") as f:
        f["w"].attrs["missing_value"] = np.nan  # netCDF4 refuses to write it; xarray drops it, with a warning
    written_again(xr, tmp_path / "in.nc", convert(tmp_path / "in.nc"), tmp_path)


def test_text_that_is_not_utf8(convert, tmp_path):
    xr = readers()
    pytest.importorskip("netCDF4")
    xr.Dataset({"v": ("x", [1.0, 2.0])}).to_netcdf(tmp_path / "in.nc", engine="netcdf4")
    with h5py.File(tmp_path / "in.nc", "r+") as f:
        f["v"].attrs["units"] = np.bytes_(b"\xb5g m-3")
        f["v"].attrs["degrees"] = np.bytes_(b"\xb0C \xe2\x82(\xc3\xa9")
        f["v"].attrs["nul"] = np.array(b"a\0b", "S5")
        f["v"].attrs["fixed"] = np.array(b"abc", "S9")
        f["v"].attrs["fixed_list"] = np.array([b"\xb5", b"bc"], "S4")
        spaces = h5py.h5t.C_S1.copy()
        spaces.set_size(6)
        spaces.set_strpad(h5py.h5t.STR_SPACEPAD)
        h5py.h5a.create(f["v"].id, b"padded", spaces, h5py.h5s.create(h5py.h5s.SCALAR)).write(np.array(b"ab    "), spaces)
    written_again(xr, tmp_path / "in.nc", convert(tmp_path / "in.nc"), tmp_path)


def test_a_plain_file_that_xarray_reads(convert, tmp_path):
    """Our notes on extents, enumerations and types are not attributes."""
    xr = readers()
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("grows", data=np.arange(6.0).reshape(2, 3), maxshape=(None, 3)).attrs["units"] = "m"
        f["enum"] = np.array([1, 2], h5py.enum_dtype({"A": 1, "B": 2}, "i1"))
        f["named"] = np.dtype("i4")
        f["link"] = h5py.SoftLink("/nowhere")
    with xr.open_zarr(opened(convert(tmp_path / "in.h5")), consolidated=False) as ds:
        assert ds.attrs == {} and ds["enum"].attrs == {} and ds["grows"].attrs == {"units": "m"}
        ds.to_netcdf(tmp_path / "again.nc")
        with xr.open_dataset(tmp_path / "again.nc") as again:
            xr.testing.assert_identical(ds.load(), again.load())


NAMES = ["% mito", "50%", "q%", "a%20b", "a%2Fb", "%41", "__x", "cloud%"]


def test_names_of_netcdf(convert, tmp_path):
    xr = readers()
    nc = pytest.importorskip("netCDF4")
    with nc.Dataset(tmp_path / "in.nc", "w") as d:
        d.createDimension("x%", 2)
        for i, name in enumerate(NAMES):
            if name[0] not in " %5":
                d.createVariable(name, "i4", ("x%",))[:] = [i, i + 1]
        d.createGroup("50%").createVariable("a%", "i4", ())[...] = 5
        d.setncattr("p%", 1)
    written_again(xr, tmp_path / "in.nc", convert(tmp_path / "in.nc"), tmp_path)


def test_names_of_anndata(convert, tmp_path):
    anndata = at_least("anndata", (0, 13))
    import pandas as pd
    from anndata.tests.helpers import assert_equal

    a = anndata.AnnData(
        np.ones((3, 2), "f4"),
        obs=pd.DataFrame({n: [1.0, 2, 3] for n in NAMES}, index=list("abc")),
        uns={n: i for i, n in enumerate(NAMES)},
        obsm={"p%": np.ones((3, 2))},
        layers={"__l": np.zeros((3, 2))},
    )
    a.write_h5ad(tmp_path / "in.h5ad")
    assert_equal(a, anndata.read_zarr(opened(convert(tmp_path / "in.h5ad"))), exact=True)


def test_nan_and_names_of_nwb(tmp_path):
    at_least("hdmf-zarr", (0, 14))
    from datetime import datetime, timezone

    from hdmf_zarr import NWBZarrIO
    from pynwb import NWBHDF5IO, NWBFile, TimeSeries

    nwb = NWBFile(session_description="d", identifier="id1", session_start_time=datetime(2020, 1, 1, tzinfo=timezone.utc))
    nwb.add_acquisition(
        TimeSeries(
            name="t", data=np.arange(5), unit="V", timestamps=np.arange(5.0), resolution=np.nan, conversion=np.inf, offset=-np.inf
        )
    )
    nwb.add_trial_column(name="q%", description="quality")
    nwb.add_trial(start_time=0.0, stop_time=1.0, **{"q%": 5.0})
    with NWBHDF5IO(tmp_path / "in.nwb", "w") as io:
        io.write(nwb)
    run("convert", tmp_path / "in.nwb", tmp_path / "store.zarr", "--quiet", "--consolidate")
    run("verify", tmp_path / "in.nwb", tmp_path / "store.zarr")
    from test_conventions_nwb import same_session

    assert same_session(str(tmp_path / "in.nwb"), str(tmp_path / "store.zarr")) > 3
    with NWBZarrIO(str(tmp_path / "store.zarr"), "r") as io:
        read = io.read()
        t = read.acquisition["t"]
        assert np.isnan(t.resolution) and (t.conversion, t.offset) == (np.inf, -np.inf) and read.trials["q%"][:].tolist() == [5.0]
