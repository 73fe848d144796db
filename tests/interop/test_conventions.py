# SPDX-License-Identifier: BSL-1.0
"""Files of communities, through HDF5 and through the store: equal by what the community itself calls equal. docs/conventions.md has the
table. Each file is converted in four ways: portable, native, with shards, and as one .zip file."""
import glob
import importlib.metadata
import importlib.util
import os
import pathlib
import warnings

import numpy as np
import pytest

from conftest import run

CORPUS = os.environ.get("ZARRBITS_CORPUS")
WAYS = {"portable": [], "native": ["--profile", "native"], "shards": ["--shard", "64K"], "zip": []}

pytestmark = pytest.mark.filterwarnings("ignore")


def at_least(package, version):
    """The package; the test is skipped where there is none, or one of before this version (older Pythons get these)."""
    module = pytest.importorskip(package.replace("-", "_"))
    have = importlib.metadata.version(package)
    if tuple(int(x) for x in have.split(".")[:2]) < version:
        pytest.skip(f"{package} is {have}")
    return module


def corpus(*patterns):
    found = sorted(f for p in patterns for f in glob.glob(f"{CORPUS}/{p}", recursive=True)) if CORPUS else []
    return found or [pytest.param(None, marks=pytest.mark.skip("ZARRBITS_CORPUS is not set"))]


@pytest.fixture(params=WAYS)
def convert(request, tmp_path):
    def to_store(source, *options):
        store = tmp_path / ("store.zip" if request.param == "zip" else "store.zarr")
        run("convert", source, store, "--quiet", *WAYS[request.param], *options)
        return str(store)
    return to_store


def opened(store):
    """What xarray and anndata take: a folder's name; of a .zip file they want the store."""
    if not store.endswith(".zip"):
        return store
    import zarr
    return zarr.storage.ZipStore(store, mode="r")


# netCDF

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


MADE = [everyday, units_as_strings, named_like_another_dimension, characters, fewer_records, groups, a_dimension_twice, types,
        coordinates_of_two_dimensions, no_records]


def identical(xr, source, store):
    for decode in (True, False):
        with xr.open_datatree(source, engine="netcdf4", decode_cf=decode) as a:
            with xr.open_datatree(opened(store), engine="zarr", consolidated=False, decode_cf=decode) as b:
                xr.testing.assert_identical(a, b)


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
    with xr.open_datatree(opened(store), engine="zarr", consolidated=False) as b, xr.open_datatree(source, engine="netcdf4") as a:
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
    ds = xr.Dataset({"a": (("time", "x"), np.arange(6.).reshape(3, 2), {"units": "m"}), "s": ("x", ["ab", "cde"]),
                     "b": ("x", np.array([True, False])), "bytes": ("x", np.array([b"ab", b"c"], "S2")),
                     "delta": ("x", np.array([1, 2], "m8[h]").astype("m8[ns]"))},
                    coords={"time": np.array(["2001-01-01", "2001-01-02", "2001-01-05"], "M8[ns]"), "x": [1, 2],
                            "lat": (("x",), [1., 2.])}, attrs={"text": "bar", "number": 3, "list": [1, 2]})
    ds.to_netcdf(tmp_path / "in.nc", engine=engine)
    identical(xr, tmp_path / "in.nc", convert(tmp_path / "in.nc"))


# xarray opens these no more than the store: a time from the year 0, groups whose dimensions disagree, compounds as attributes; one has a
# dimension that netCDF itself cannot read; and netCDF calls a dimension by another of its links
NOT_OPENED = {"air_linked.nc", "coads_climatology.nc4", "coads_climatology_subset.nc", "simple_nc4.nc.h5", "ref_tst_compounds.nc", "swath_wrong_dim_rp.nc"}
# files of netCDF before 4.4.1 without dimensions do not say what they are
UNMARKED = {"ref_tst_compounds3.nc", "ref_tst_enum_data_1.nc"}


@pytest.mark.parametrize("source", corpus("**/*.nc*"), ids=lambda p: p and os.path.basename(p))
def test_xarray_sees_netcdf_files_of_others(source, tmp_path):
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    pytest.importorskip("netCDF4")
    if os.path.basename(source) in NOT_OPENED:
        pytest.skip("xarray does not open it with netCDF4, or reads no values")
    said = ["--convention", "netcdf"] if os.path.basename(source) in UNMARKED else []
    run("convert", source, tmp_path / "store.zarr", "--quiet", *said)
    identical(xr, source, str(tmp_path / "store.zarr"))


def test_xarray_sees_a_variable_for_each_link(convert, tmp_path):
    """Hard and soft ones, also into other files."""
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    pytest.importorskip("netCDF4")
    import h5py
    ds = xr.Dataset({"v": (("y", "x"), np.arange(6.0).reshape(2, 3), {"units": "m"}), "w": ("x", [1, 2, 3])}, coords={"x": [1, 2, 3]})
    ds.to_netcdf(tmp_path / "in.nc", engine="netcdf4")
    ds.to_netcdf(tmp_path / "other.nc", engine="netcdf4")
    with h5py.File(tmp_path / "in.nc", "r+") as f:
        f["hard"] = f["v"]
        f["soft"] = h5py.SoftLink("/w")
        f["external"] = h5py.ExternalLink("other.nc", "/w")
    with xr.open_zarr(opened(convert(tmp_path / "in.nc")), consolidated=False) as store, h5py.File(tmp_path / "in.nc") as f:
        with xr.open_dataset(tmp_path / "in.nc", engine="netcdf4") as source:
            for name in "v", "w", "hard", "soft":
                xr.testing.assert_identical(source[name].variable, store[name].variable)
        np.testing.assert_array_equal(store["external"].values, f["external"][...])


# AnnData

def annotated(kind):
    import anndata
    import pandas as pd
    import scipy.sparse as sp
    rng, n, m = np.random.default_rng(0), 20, 7
    obs = pd.DataFrame({"category": pd.Categorical(rng.choice(["a", "b"], n)), "integer": pd.array([1, None] * 10, dtype="Int64"),
                        "boolean": pd.array([True, None] * 10, dtype="boolean"), "f": rng.random(n), "s": [f"x{i}" for i in range(n)],
                        "b": rng.random(n) > .5}, index=[f"c{i}" for i in range(n)])
    var = pd.DataFrame({"g": np.arange(m)}, index=[f"g{i}" for i in range(m)])
    record = np.array([("g1", 1.5, 3), ("gene2ü", 2.5, 4)], dtype=[("name", "U8"), ("v", "f4"), ("i", "i8")])
    x = {"dense": lambda: rng.random((n, m)).astype("f4"), "csr": lambda: sp.random(n, m, .3, "csr"),
         "csc": lambda: sp.random(n, m, .3, "csc")}[kind]()
    a = anndata.AnnData(x, obs=obs, var=var, layers={"l": sp.csr_matrix(np.eye(n, m))},
                        obsm={"p": rng.random((n, 2)), "frame": pd.DataFrame({"q": np.arange(n)}, index=obs.index)},
                        uns={"nested": {"a": 1, "b": "text", "c": np.array(["u", "vv"])}, "record": record, "n": np.float32(3),
                             "empty": {}})
    a.raw = a
    return a


def same_annotated(source, store):
    import anndata
    from anndata.tests.helpers import assert_equal
    a, b = anndata.read_h5ad(source), anndata.read_zarr(opened(store))
    for x in (a, b):  # by this equality a NaN is not equal to itself
        for part in (x.varm, x.obsm):
            for key in [k for k, v in part.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f" and np.isnan(v).any()]:
                part[key] = np.where(np.isnan(part[key]), -12345.678, part[key])
    assert_equal(a, b, exact=True)


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_anndata_sees_the_h5ad(kind, compression, convert, tmp_path):
    at_least("anndata", (0, 13))
    annotated(kind).write_h5ad(tmp_path / "in.h5ad", compression=compression)
    same_annotated(tmp_path / "in.h5ad", convert(tmp_path / "in.h5ad"))


def test_anndata_sees_what_scanpy_ships(tmp_path):
    at_least("anndata", (0, 13))
    found = importlib.util.find_spec("scanpy")
    if not found:
        pytest.skip("no scanpy")
    source = pathlib.Path(found.origin).parent / "datasets/10x_pbmc68k_reduced.h5ad"
    run("convert", source, tmp_path / "store.zarr", "--quiet")
    same_annotated(source, str(tmp_path / "store.zarr"))


@pytest.mark.parametrize("strings", ["variable", "fixed"])
def test_anndata_sees_files_of_before_0_7(strings, tmp_path):
    at_least("anndata", (0, 13))
    import h5py
    text = h5py.string_dtype() if strings == "variable" else "S4"
    with h5py.File(tmp_path / "in.h5ad", "w") as f:
        f["X"] = np.arange(6, dtype="f4").reshape(3, 2)
        f.create_dataset("obs", data=np.array([("c1", 1), ("c2", 2), ("c3", 3)], dtype=[("index", text), ("n", "i4")]))
        f.create_dataset("var", data=np.array([("g1", 1.5), ("g2", 2.5)], dtype=[("index", text), ("w", "f8")]))
    run("convert", tmp_path / "in.h5ad", tmp_path / "store.zarr", "--quiet")
    same_annotated(tmp_path / "in.h5ad", str(tmp_path / "store.zarr"))


@pytest.mark.parametrize("source", corpus("**/*.h5ad"), ids=lambda p: p and os.path.basename(p))
def test_anndata_sees_h5ad_of_others(source, tmp_path):
    at_least("anndata", (0, 13))
    run("convert", source, tmp_path / "store.zarr", "--quiet")
    same_annotated(source, str(tmp_path / "store.zarr"))


# NWB

def session(path):
    from datetime import datetime, timezone

    from pynwb import NWBHDF5IO, NWBFile, TimeSeries
    from pynwb.behavior import Position, SpatialSeries
    from pynwb.ecephys import ElectricalSeries
    from pynwb.file import Subject
    nwb = NWBFile(session_description="d", identifier="id1", session_start_time=datetime(2020, 1, 1, tzinfo=timezone.utc),
                  experimenter=["A", "B"], lab="lab", keywords=["k1", "k2"])
    nwb.subject = Subject(subject_id="001", age="P90D", species="Mus musculus", sex="M")
    device = nwb.create_device(name="array", description="probe")
    nwb.add_electrode_column(name="label", description="l")
    for i in range(2):
        group = nwb.create_electrode_group(name=f"s{i}", description="e", device=device, location="b")
        for j in range(3):
            nwb.add_electrode(group=group, label=f"s{i}e{j}", location="b")
    region = nwb.create_electrode_table_region(region=list(range(6)), description="all")
    raw = ElectricalSeries(name="raw", data=np.random.default_rng(0).random((50, 6)), electrodes=region, starting_time=0., rate=20000.)
    nwb.add_acquisition(raw)
    nwb.add_unit_column(name="quality", description="q")
    for k in range(4):
        nwb.add_unit(spike_times=np.arange(k + 1) * .1, quality="good")
    place = SpatialSeries(name="place", data=np.zeros((10, 2)), timestamps=np.arange(10) / 10., reference_frame="z")
    nwb.create_processing_module(name="behavior", description="b").add(Position(spatial_series=place))
    nwb.add_trial_column(name="correct", description="c")
    nwb.add_trial(start_time=1., stop_time=2., correct=True)
    nwb.add_trial(start_time=3., stop_time=4., correct=False)
    linked = TimeSeries(name="linked", data=raw, timestamps=np.arange(50.), unit="V")
    shared = TimeSeries(name="shared", data=np.arange(50), timestamps=linked, unit="V")
    nwb.add_acquisition(linked)
    nwb.add_acquisition(shared)
    nwb.add_epoch(1., 3., ["a"], [shared])
    with NWBHDF5IO(path, "w") as io:
        io.write(nwb)


class Fields:
    """Two containers, field by field, with all that they lead to."""

    def __init__(self):
        self.seen, self.different = set(), []

    def compare(self, a, b, path=""):
        from hdmf.common import DynamicTable
        from hdmf.container import AbstractContainer, Data
        if isinstance(a, AbstractContainer) or isinstance(b, AbstractContainer):
            if type(a) is not type(b) or a.name != b.name or a.object_id != b.object_id:
                return self.different.append((path, repr(a)[:80], repr(b)[:80]))
            if id(a) in self.seen:
                return None
            self.seen.add(id(a))
            if isinstance(a, Data):
                self.compare(a.data, b.data, path + ".data")
            for key in sorted(set(a.fields) | set(b.fields)):
                self.compare(a.fields.get(key), b.fields.get(key), f"{path}.{key}")
            if isinstance(a, DynamicTable):
                for column in a.colnames:
                    self.compare(a[column], b[column], f"{path}[{column}]")
            return None
        if hasattr(a, "items") and not hasattr(a, "shape"):
            a, b = dict(a), dict(b)
            if set(a) != set(b):
                return self.different.append((path, sorted(a), sorted(b)))
            return [self.compare(a[k], b[k], f"{path}/{k}") for k in a]
        a, b = (x[()] if getattr(x, "shape", None) == () else x[:] if hasattr(x, "shape") else x for x in (a, b))
        record = isinstance(a, np.ndarray) and a.dtype.names is not None
        if isinstance(a, (list, tuple)) or record or (isinstance(a, np.ndarray) and a.dtype == object):
            if len(a) != len(b):
                return self.different.append((path, len(a), len(b)))
            return [self.compare(tuple(x) if record else x, tuple(y) if record else y, f"{path}[{i}]")
                    for i, (x, y) in enumerate(zip(a, b))]
        a, b = np.asarray(a), np.asarray(b)
        if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"):
            self.different.append((path, repr(a)[:80], repr(b)[:80]))
        return None


def same_session(source, store):
    from hdmf_zarr import NWBZarrIO
    from pynwb import NWBHDF5IO
    with NWBHDF5IO(source, "r", load_namespaces=True) as a, NWBZarrIO(store, "r", load_namespaces=True) as b:
        fields = Fields()
        fields.compare(a.read(), b.read())
        assert not fields.different
        return len(fields.seen)


@pytest.mark.parametrize("way", ["portable", "native", "shards"])  # hdmf-zarr opens no .zip files
def test_nwb_sees_the_session(way, tmp_path):
    at_least("hdmf-zarr", (0, 14))
    session(tmp_path / "in.nwb")
    run("convert", tmp_path / "in.nwb", tmp_path / "store.zarr", "--quiet", *WAYS[way])
    assert same_session(str(tmp_path / "in.nwb"), str(tmp_path / "store.zarr")) > 30


# before NWB 2.1 objects have no id in the file, so that each reading gives them another
@pytest.mark.parametrize("source", corpus("**/2.*.nwb", "**/1.[1-9]*.nwb", "**/sub_*.nwb"), ids=lambda p: p and os.path.basename(p))
def test_nwb_sees_files_of_others(source, tmp_path):
    at_least("hdmf-zarr", (0, 14))
    run("convert", source, tmp_path / "store.zarr", "--quiet")
    same_session(source, str(tmp_path / "store.zarr"))


# PyTables, MATLAB, NeXus: no reader of Zarr of their own; what their readers of HDF5 give is what zarr-python gives of the store

def zarr_group(store):
    zarr = at_least("zarr", (3, 4))
    return zarr.open_group(opened(store), mode="r")


def test_pytables_nodes(convert, tmp_path):
    tables = pytest.importorskip("tables")
    rng = np.random.default_rng(0)

    class Row(tables.IsDescription):
        number, real = tables.Int32Col(), tables.Float64Col()
        pair = tables.ComplexCol(itemsize=16)

    with tables.open_file(tmp_path / "other.h5", "w") as f:
        f.create_array("/", "there", np.arange(5))
    with tables.open_file(tmp_path / "in.h5", "w") as f:
        g = f.create_group("/", "group", "a title")
        f.create_array(g, "array", rng.random((3, 4)))
        f.create_carray(g, "chunked", obj=rng.integers(0, 9, (30, 40)), filters=tables.Filters(5, "zlib", shuffle=True, fletcher32=True))
        f.create_carray(g, "blosc", obj=rng.random((30, 40)), filters=tables.Filters(5, "blosc"))
        f.create_carray(g, "complex", obj=rng.random(30) + 1j)
        f.create_earray(g, "grows", obj=np.arange(7, dtype="u2")).append(np.arange(3, dtype="u2"))
        t = f.create_table(g, "table", Row)
        t.append([(i, i * 1j, i / 2) for i in range(10)])  # columns by name
        f.create_hard_link("/", "hard", "/group/array")
        f.create_soft_link("/", "soft", "/group/chunked")
        f.create_soft_link("/", "whole", "/group")
        f.create_external_link("/", "external", "other.h5:/there")
    store = convert(tmp_path / "in.h5")
    root = zarr_group(store)
    with tables.open_file(tmp_path / "in.h5") as f:
        for leaf in f.walk_nodes("/", "Leaf"):
            if leaf._v_pathname == "/group/table":
                continue
            np.testing.assert_array_equal(root[leaf._v_pathname[1:]][...], leaf.read())
        for name in "hard", "soft", "external":
            node = f.get_node("/" + name)
            np.testing.assert_array_equal(root[name][...], (node if name == "hard" else node()).read())
        np.testing.assert_array_equal(root["whole/blosc"][...], f.root.group.blosc.read())
        rows = root["group/table"][...]
        for column in "number", "real", "pair":
            np.testing.assert_array_equal(rows[column], f.root.group.table.col(column))
    if not store.endswith(".zip"):
        run("verify", tmp_path / "in.h5", store)


def test_matlab_variables(convert, tmp_path):
    mat73 = pytest.importorskip("mat73")
    import h5py
    rng = np.random.default_rng(0)
    values = {"z": rng.random((3, 4)) + 1j * rng.random((3, 4)), "x": rng.random((2, 5))}
    with h5py.File(tmp_path / "in.mat", "w", userblock_size=512) as f:  # as MATLAB writes it: the extent is reversed
        for name, v in values.items():
            stored = v.T
            if v.dtype.kind == "c":
                stored = np.empty(v.T.shape, [("real", "<f8"), ("imag", "<f8")])
                stored["real"], stored["imag"] = v.T.real, v.T.imag
            f.create_dataset(name, data=stored, chunks=stored.shape, compression="gzip", compression_opts=3).attrs["MATLAB_class"] = np.bytes_("double")
    with open(tmp_path / "in.mat", "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Nov 23 2026 HDF5 schema 1.00 .".ljust(124) + b"\0\2IM")
    root, read = zarr_group(convert(tmp_path / "in.mat")), mat73.loadmat(str(tmp_path / "in.mat"))
    for name, v in values.items():
        np.testing.assert_array_equal(read[name], v)
        np.testing.assert_array_equal(root[name][...].T, read[name])
        assert root[name].dtype == v.dtype


def test_nexus_signals_and_axes(convert, tmp_path):
    nx = pytest.importorskip("nexusformat.nexus")
    counts = np.random.default_rng(0).integers(0, 100, (20, 30)).astype("u4")
    detector = nx.NXroot(nx.NXentry(nx.NXdata(nx.NXfield(counts, name="counts"), nx.NXfield(np.arange(20.0), name="y"))))
    detector.save(str(tmp_path / "detector.nxs"), "w")
    root = nx.NXroot(nx.NXentry(nx.NXinstrument(nx.NXdetector(data=counts + 1, x=np.arange(30.0)))))
    root.save(str(tmp_path / "in.nxs"), "w")
    with nx.nxload(str(tmp_path / "in.nxs"), "rw") as root:
        root["entry/data"] = nx.NXdata()
        root["entry/data/signal"] = nx.NXlink(root["entry/instrument/detector/data"])
        root["entry/data/x"] = nx.NXlink(root["entry/instrument/detector/x"])
        root["entry/data/counts"] = nx.NXlink("/entry/data/counts", str(tmp_path / "detector.nxs"), abspath=False)
    store = zarr_group(convert(tmp_path / "in.nxs"))
    with nx.nxload(str(tmp_path / "in.nxs"), "r") as root:
        for name in "signal", "x", "counts":
            np.testing.assert_array_equal(store[f"entry/data/{name}"][...], root[f"entry/data/{name}"].nxdata)


def test_a_detectors_master_file(convert, tmp_path):
    """As EIGER's: nothing but links into other files, and a virtual dataset."""
    import h5py
    frames = np.zeros((10, 64, 64), "u4")
    frames[:, 5, 7] = np.arange(10)
    layout = h5py.VirtualLayout((20, 64, 64), "u4")
    with h5py.File(tmp_path / "x_master.h5", "w") as f:
        data = f.create_group("entry/data")
        data.attrs["NX_class"] = "NXdata"
        for i in range(2):
            with h5py.File(tmp_path / f"x_data_{i}.h5", "w") as d:
                d.create_dataset("entry/data/data", data=frames + i, chunks=(1, 64, 64), compression="gzip", shuffle=True)
            data[f"data_{i}"] = h5py.ExternalLink(f"x_data_{i}.h5", "/entry/data/data")
            layout[10 * i:10 * i + 10] = h5py.VirtualSource(f"x_data_{i}.h5", "/entry/data/data", frames.shape)
        data.create_virtual_dataset("all", layout)
    store = zarr_group(convert(tmp_path / "x_master.h5"))
    with h5py.File(tmp_path / "x_master.h5") as f:
        for name in "data_0", "data_1", "all":
            np.testing.assert_array_equal(store[f"entry/data/{name}"][...], f[f"entry/data/{name}"][...])
