# SPDX-License-Identifier: BSL-1.0
"""netCDF, as xarray sees it: in the file and in the store. conventions.py says how;
test_corpus_roundtrips.py has files of others."""

import shutil
import warnings

import numpy as np
import pytest

from conftest import run
from conventions import as_in_zarr, at_least, opened

pytest_plugins = ["conventions"]  # its fixtures
pytestmark = pytest.mark.filterwarnings("ignore")


def everyday(d, nc):
    d.createDimension("time", None)
    d.createDimension("lat", 4)
    d.createDimension("lon", 5)
    t = d.createVariable("time", "f8", ("time",))
    t.units, t.calendar = "days since 2000-01-01", "standard"
    t[:] = np.arange(3)
    d.createVariable("lat", "f4", ("lat",))[:] = np.arange(4)
    d.createVariable("lon", "f4", ("lon",))[:] = np.arange(5)
    v = d.createVariable("t2m", "i2", ("time", "lat", "lon"), zlib=True, fill_value=-32767, chunksizes=(1, 4, 5))
    v.scale_factor, v.add_offset, v.missing_value, v.units, v.coordinates = 0.01, 273.15, np.int16(-32767), "K", "height"
    v[:] = np.random.default_rng(0).random((3, 4, 5)) * 30 + 260
    d.createVariable("height", "f8", ())[:] = 2.0
    v = d.createVariable("p", "f4", ("time", "lat", "lon"), fill_value=np.float32(9.96921e36))
    v.valid_range = np.array([0, 1], "f4")
    v[:] = 1
    v[0, 0, 0] = np.ma.masked
    d.one, d.many = np.array([7], "i4"), np.array([1.5, 2.5])
    d.setncattr_string("text", "a string")
    d.setncattr("names", ["a", "b", "c"])


def units_as_strings(d, nc):
    d.createDimension("time", 3)
    d.createDimension("x", 2)
    t = d.createVariable("time", "i4", ("time",))
    t.setncattr_string("units", "hours since 1970-01-01")
    t[:] = [0, 1, 2]
    v = d.createVariable("v", "f4", ("time", "x"))
    v.setncattr_string("coordinates", "z")
    v[:] = 1
    d.createVariable("z", "f4", ("x",))[:] = [5, 6]


def named_like_another_dimension(d, nc):
    d.createDimension("x", 3)
    d.createDimension("y", 2)
    d.createVariable("x", "i4", ("y",))[:] = [4, 5]
    d.createVariable("w", "f4", ("x", "y"))[:] = np.arange(6).reshape(3, 2)


def characters(d, nc):
    d.createDimension("station", 3)
    d.createDimension("strlen", 8)
    v = d.createVariable("station", "S1", ("station", "strlen"))
    v._Encoding = "utf-8"
    v[:] = np.array(["abc", "de", "Zürich8"])
    v = d.createVariable("code", "S1", ("station", "strlen"))
    v.set_auto_chartostring(False)
    v[:] = nc.stringtochar(np.array([b"q", b"rs", b"tuv"], "S8"))
    d.createVariable("temp", "f4", ("station",))[:] = [1, 2, 3]
    d.createVariable("one", "S1", ("station",))[:] = np.array([b"a", b"b", b"c"], "S1")
    d.createVariable("scalar", "S1", ())[...] = b"k"
    d.createVariable("label", str, ("station",))[:] = np.array(["p", "q", "rst"], object)


def fewer_records(d, nc):
    d.createDimension("time", None)
    d.createDimension("x", 2)
    d.createVariable("a", "f4", ("time", "x"))[:5] = np.arange(10).reshape(5, 2)
    d.createVariable("b", "i4", ("time",), fill_value=-9)[:2] = [1, 2]
    d.createVariable("none", "f8", ("time", "x"))
    d.createVariable("packed", "i4", ("time", "x"), zlib=True, shuffle=True, chunksizes=(3, 2))[:2] = [[1, 2], [3, 4]]
    d.createVariable("text", str, ("time",))[0] = "hello"


def groups(d, nc):
    d.createDimension("x", 3)
    d.createDimension("unused", 7)
    d.createVariable("v", "f4", ("x",))[:] = [1, 2, 3]
    g = d.createGroup("g1")
    g.createDimension("y", 2)
    g.createDimension("nothing", 4)
    g.createVariable("w", "f8", ("x", "y"))[:] = 1
    g.createVariable("y", "i4", ("y",))[:] = [10, 20]
    g.title = "group"
    h = g.createGroup("h")
    h.createVariable("x", "f4", ("x",))[:] = [7, 8, 9]
    h.createVariable("u", "i4", ("y", "x"))[:] = 5


def a_dimension_twice(d, nc):
    d.createDimension("D4", 4)
    d.createVariable("b44", "i4", ("D4", "D4"))[:] = np.arange(16).reshape(4, 4)


def types(d, nc):
    d.createDimension("n", 3)
    for k in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
        v = d.createVariable(k, k, ("n",))
        v[:] = [1, 2, 3]
        v.one, v.two = np.array([1], k), np.array([1, 2], k)
    e = d.createEnumType(np.uint8, "cloud", {"clear": 0, "rain": 1, "missing": 255})
    d.createVariable("enum", e, ("n",), fill_value=255)[:] = [0, 1, 255]
    d.createVariable("nan", "f4", ("n",), fill_value=np.nan)[:] = [1, np.nan, 3]
    d.createVariable("u", "u1", ("n",), fill_value=255)[:] = [1, 2, 255]
    v = d.createVariable("unsigned", "i1", ("n",), fill_value=np.int8(-1))
    v._Unsigned = "true"
    v[:] = [1, 2, -1]
    v = d.createVariable("s", str, ("n",))
    v[0], v[2] = "a", "c"
    v = d.createVariable("empty", "i4", ("n",))
    v.nothing = ""
    v[:] = 1


def coordinates_of_two_dimensions(d, nc):
    for name, n in (("y", 2), ("x", 3), ("t", None)):
        d.createDimension(name, n)
    d.createVariable("y", "f4", ("y", "x"))[:] = 1
    d.createVariable("t", "f4", ("t", "y"))[:4] = 2
    d.createVariable("v", "f4", ("t", "y", "x"))[:4] = 3


def no_records(d, nc):
    d.createDimension("time", None)
    d.createDimension("x", 2)
    d.createVariable("time", "f8", ("time",)).units = "days since 2000-01-01"
    d.createVariable("a", "f4", ("time", "x")).units = "m"
    d.createVariable("scalar", "i4", ())


MADE = [
    everyday,
    units_as_strings,
    named_like_another_dimension,
    characters,
    fewer_records,
    groups,
    a_dimension_twice,
    types,
    coordinates_of_two_dimensions,
    no_records,
]


def identical(xr, source, store):
    for decode in (True, False):
        with xr.open_datatree(source, engine="netcdf4", decode_cf=decode) as a:
            with xr.open_datatree(opened(store), engine="zarr", decode_cf=decode) as b:
                xr.testing.assert_identical(a if decode else as_in_zarr(a), b)


@pytest.mark.parametrize("make", MADE, ids=lambda f: f.__name__)
def test_xarray_sees_the_netcdf_file(make, convert, tmp_path):
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    nc = pytest.importorskip("netCDF4")
    source = tmp_path / "in.nc"
    with nc.Dataset(source, "w") as d:
        make(d, nc)
    store = convert(source)
    identical(xr, source, store)
    # and writes it again, to either format
    with xr.open_datatree(opened(store), engine="zarr") as b, xr.open_datatree(source, engine="netcdf4") as a:
        b.to_netcdf(tmp_path / "again.nc")
        b.to_zarr(tmp_path / "again.zarr", consolidated=False)
        with xr.open_datatree(tmp_path / "again.nc", engine="netcdf4") as c:
            xr.testing.assert_identical(a, c)
        with xr.open_datatree(tmp_path / "again.zarr", engine="zarr", consolidated=False) as c:
            xr.testing.assert_identical(a, c)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray_sees_what_it_wrote(engine, convert, tmp_path):
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    pytest.importorskip(engine.replace("netcdf4", "netCDF4"))
    ds = xr.Dataset(
        {
            "a": (("time", "x"), np.arange(6.0).reshape(3, 2), {"units": "m"}),
            "s": ("x", ["ab", "cde"]),
            "b": ("x", np.array([True, False])),
            "bytes": ("x", np.array([b"ab", b"c"], "S2")),
            "delta": ("x", np.array([1, 2], "m8[h]").astype("m8[ns]")),
        },
        coords={"time": np.array(["2001-01-01", "2001-01-02", "2001-01-05"], "M8[ns]"), "x": [1, 2], "lat": (("x",), [1.0, 2.0])},
        attrs={"text": "bar", "number": 3, "list": [1, 2]},
    )
    ds.to_netcdf(tmp_path / "in.nc", engine=engine)
    identical(xr, tmp_path / "in.nc", convert(tmp_path / "in.nc"))


def test_xarray_sees_a_variable_for_each_link(convert, tmp_path):
    """Hard and soft ones, also into other files."""
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    pytest.importorskip("netCDF4")
    import h5py

    ds = xr.Dataset(
        {"v": (("y", "x"), np.arange(6.0).reshape(2, 3), {"units": "m"}), "w": ("x", [1, 2, 3])}, coords={"x": [1, 2, 3]}
    )
    ds.to_netcdf(tmp_path / "in.nc", engine="netcdf4")
    ds.to_netcdf(tmp_path / "other.nc", engine="netcdf4")
    with h5py.File(tmp_path / "in.nc", "r+") as f:
        f["hard"] = f["v"]
        f["soft"] = h5py.SoftLink("/w")
        f["external"] = h5py.ExternalLink("other.nc", "/w")
    with xr.open_zarr(opened(convert(tmp_path / "in.nc"))) as store, h5py.File(tmp_path / "in.nc") as f:
        with xr.open_dataset(tmp_path / "in.nc", engine="netcdf4") as source:
            for name in "v", "w", "hard", "soft":
                xr.testing.assert_identical(source[name].variable, store[name].variable)
        np.testing.assert_array_equal(store["external"].values, f["external"][...])


def test_xarray_opens_without_a_warning(tmp_path):
    """It looks for consolidated metadata first, and warns where there are none."""
    xr = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    xr.Dataset({"t": (("time", "x"), np.ones((10, 5), "f4"))}, coords={"time": np.arange(10.0)}).to_netcdf(
        tmp_path / "in.nc", engine="netcdf4"
    )
    for options, wanted in ((), 0), (("--no-consolidate",), 1), (("--convention", "none", "--consolidate"), 0):
        shutil.rmtree(tmp_path / "out.zarr", ignore_errors=True)
        run("convert", "-q", tmp_path / "in.nc", tmp_path / "out.zarr", *options)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            xr.open_zarr(tmp_path / "out.zarr").close()
        assert sum("consolidated" in str(w.message) for w in said) == wanted, (options, [str(w.message) for w in said])
