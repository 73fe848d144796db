# SPDX-License-Identifier: BSL-1.0
"""xarray.open_dataset(engine="zarrbits") beside engine="h5netcdf" and "netcdf4": identical data sets.

ZARRBITS_CORPUS: a folder of files, of which those of netCDF are compared; all of them with ZARRBITS_CASES above 10, else some."""

import concurrent.futures
import glob
import multiprocessing
import os
import pathlib
import pickle
import sys

import pytest

xarray = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
pytest.importorskip("h5netcdf")
h5py = pytest.importorskip("h5py")
import numpy as np

from conftest import ROOT

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/convert")]
import zarrbits
from zarrbits import hdf5_library

try:
    hdf5_library.library()
except zarrbits.Error as e:
    pytest.skip(str(e), allow_module_level=True)
from http_server import Answer, Server
from zarrbits_codecs.xarray_backend import ZarrbitsBackendEntrypoint as engine

DECODED, RAW = {}, {"decode_cf": False}


def netcdf_file(path):
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", None)
        f.createDimension("x", 30)
        f.createDimension("letters", 4)
        time = f.createVariable("time", "f8", ("time",))
        time.units = "hours since 2000-01-01"
        time[:] = np.arange(20)
        f.createVariable("x", "i2", ("x",))[:] = np.arange(30)
        t = f.createVariable("t", "i2", ("time", "x"), zlib=True, chunksizes=(7, 11), fill_value=-1, shuffle=True)
        t.scale_factor, t.add_offset, t.units = 0.1, 20.0, "K"
        t[:] = np.arange(600).reshape(20, 30)
        short = f.createVariable("short", "f4", ("time", "x"), fill_value=np.nan)
        short[:12] = 1
        f.createVariable("names", str, ("x",))[:] = np.array([f"n{i}" for i in range(30)], object)
        f.createVariable("codes", "S1", ("x", "letters"))[:] = np.full((30, 4), b"a")
        f.createVariable("scalar", "f8", ())[...] = 4.5
        kind = f.createEnumType("u1", "kind_t", {"a": 0, "b": 1})
        f.createVariable("kind", kind, ("x",))[:] = np.arange(30) % 2
        group = f.createGroup("deep").createGroup("down")
        group.createVariable("t", "f4", ("time", "x"))[:] = 3
        group.history, f.list, f.one, f.none = "ä", np.array([1, 2]), np.int16(3), ""
    return path


@pytest.fixture
def path(tmp_path):
    return netcdf_file(str(tmp_path / "in.nc"))


def loaded(path, name, **options):
    with xarray.open_datatree(path, engine=name, **options) as tree:
        return tree.load()


@pytest.mark.parametrize("options", [DECODED, RAW], ids=["decoded", "raw"])
def test_identical_with_other_engines(path, options):
    ours = loaded(path, engine, **options)
    assert "deep/down" in ours.groups[-1] and ours["t"].encoding["preferred_chunks"] == {"time": 7, "x": 11}
    for other in ("h5netcdf", "netcdf4"):
        xarray.testing.assert_identical(ours, loaded(path, other, **options))
    for group in ("/", "deep/down"):
        a, b = (xarray.open_dataset(path, engine=e, group=group, **options).load() for e in (engine, "h5netcdf"))
        xarray.testing.assert_identical(a, b)
        for name in a.variables:
            theirs, mine = b[name].encoding, a[name].encoding
            assert {k: v for k, v in theirs.items() if k not in mine or str(v) != str(mine[k])} == {}, name


def test_values_beyond_the_end_are_fill_values(path):
    ours, theirs = (xarray.open_dataset(path, engine=e)["short"] for e in (engine, "h5netcdf"))
    for key in (np.s_[:], np.s_[10:15], np.s_[15, 3], np.s_[[1, 13, 19], 5], np.s_[::3, ::-1], np.s_[-1], np.s_[12:]):
        xarray.testing.assert_identical(ours[key].load(), theirs[key].load())


def test_lazy_indexing_is_that_of_other_engines(path):
    ours, theirs = (xarray.open_dataset(path, engine=e) for e in (engine, "h5netcdf"))
    for key in (
        {"x": 3},
        {"x": slice(None, None, -2)},
        {"time": [5, 2, 2], "x": [1, 0, 29]},
        {"x": xarray.DataArray([4, 3], dims="p")},
    ):
        xarray.testing.assert_identical(ours.isel(key).load(), theirs.isel(key).load())


@pytest.mark.parametrize("phony_dims", ["sort", "access"])
def test_dimensions_without_names_are_those_of_h5netcdf(tmp_path, phony_dims):
    """They are numbered in another order if only one group is opened."""
    path = str(tmp_path / "phony.h5")
    with h5py.File(path, "w") as f:
        for group, shape in (("", (3, 4)), ("b", (5, 5)), ("a", (6, 3)), ("a/c", (6, 7)), ("d", (4, 5))):
            f[f"{group}/x"] = np.arange(np.prod(shape)).reshape(shape)
            f[f"{group}/y"] = np.arange(shape[0])
        for group, name in (("", "first"), ("b", "second"), ("b", "third")):  # named ones, which have numbers, too
            f[f"{group}/{name}"] = np.arange(9)
            f[f"{group}/{name}"].make_scale(name)
    options = {"phony_dims": phony_dims}
    xarray.testing.assert_identical(loaded(path, engine, **options), loaded(path, "h5netcdf", **options))
    dimensions = {}
    for group in ("/", "a", "a/c", "b", "d"):
        ours, theirs = (xarray.open_dataset(path, engine=e, group=group, **options) for e in (engine, "h5netcdf"))
        xarray.testing.assert_identical(ours.load(), theirs.load())
        xarray.testing.assert_identical(
            pickle.loads(pickle.dumps(xarray.open_dataset(path, engine=engine, group=group, **options))), theirs
        )
        dimensions[group] = ours["x"].dims
    assert (dimensions["d"] == ("phony_dim_2", "phony_dim_3")) is (phony_dims == "access")
    with pytest.raises(ValueError, match='phony_dims is .sorted.; use "sort" or "access"'):
        xarray.open_dataset(path, engine=engine, phony_dims="sorted")


def test_references_to_scales_that_are_not_in_lists(tmp_path):
    """As old programs write them, before HDF5 had dimension scales: the other groups of the file can be opened."""
    path = str(tmp_path / "old.h5")
    with h5py.File(path, "w") as f:
        f["lat"], f["g/x"] = np.arange(3.0), np.arange(4.0)
        f["t"] = np.arange(3.0)
        f["t"].attrs.create("DIMENSION_LIST", np.array([f["lat"].ref], h5py.ref_dtype), dtype=h5py.ref_dtype)
    ours, theirs = (xarray.open_dataset(path, engine=e, phony_dims="sort", group="g").load() for e in (engine, "h5netcdf"))
    xarray.testing.assert_identical(ours, theirs)
    with pytest.raises(ValueError, match='"lat", which gives the variable "/t" a dimension, is not a dimension scale'):
        xarray.open_dataset(path, engine=engine)


def mean_of(dataset):
    return float(dataset["t"].mean())


def test_dask_pickles_and_processes(path):
    pytest.importorskip("dask")
    chunked = xarray.open_dataset(path, engine=engine, chunks={})
    assert chunked["t"].chunks == ((7, 7, 6), (11, 11, 8))
    expected = mean_of(xarray.open_dataset(path, engine="h5netcdf"))
    assert mean_of(chunked.compute()) == pytest.approx(expected)
    assert float(chunked["t"].mean().compute(scheduler="processes")) == pytest.approx(expected)
    lazy = xarray.open_dataset(path, engine=engine)
    assert mean_of(pickle.loads(pickle.dumps(lazy))) == pytest.approx(expected)
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(mean_of, [lazy] * 3)) == pytest.approx([expected] * 3)


def test_several_files(path, tmp_path):
    netcdf_file(str(tmp_path / "in2.nc"))
    files = [path, str(tmp_path / "in2.nc")]
    a, b = (xarray.open_mfdataset(files, engine=e, combine="nested", concat_dim="time").load() for e in (engine, "h5netcdf"))
    xarray.testing.assert_identical(a, b)


def test_urls(path):
    with Server() as server:
        url = server.put("in.nc", pathlib.Path(path).read_bytes())
        xarray.testing.assert_identical(loaded(url, engine), loaded(path, "h5netcdf"))
        lazy = xarray.open_dataset(url, engine=engine)
        assert mean_of(pickle.loads(pickle.dumps(lazy))) == mean_of(xarray.open_dataset(path, engine="h5netcdf"))
        server.fault = lambda request, proceed: proceed() if request.headers.get("X-Key") == "sesame" else Answer(401)
        options = {"file_options": {"headers": {"X-Key": "sesame"}}}
        xarray.testing.assert_identical(loaded(url, engine, **options), loaded(path, "h5netcdf"))
        with pytest.raises(zarrbits.Error):
            xarray.open_dataset(url, engine=engine)
        assert server.mistakes == []


def test_the_engine_is_found_by_its_name(path, tmp_path, monkeypatch):
    """As an installed package is."""
    folder = tmp_path / "zarrbits-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: zarrbits\nVersion: 0\n")
    section = (ROOT / "pyproject.toml").read_text().split('[project.entry-points."xarray.backends"]')[1].split("\n\n")[0]
    entry = section.strip().splitlines()[-1].replace('"', "")
    (folder / "entry_points.txt").write_text(f"[xarray.backends]\n{entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from xarray.backends import plugins

    plugins.list_engines.cache_clear()
    try:
        assert mean_of(xarray.open_dataset(path, engine="zarrbits")) == mean_of(xarray.open_dataset(path, engine=engine))
        assert xarray.open_dataset(path)["t"].shape == (20, 30)  # by another engine, as before
    finally:
        plugins.list_engines.cache_clear()


@pytest.mark.skipif("ZARRBITS_CORPUS" not in os.environ, reason="ZARRBITS_CORPUS is not set")
@pytest.mark.filterwarnings("ignore")
def test_netcdf_files_of_the_corpus_are_identical():
    paths = []
    for path in sorted(glob.glob(os.environ["ZARRBITS_CORPUS"] + "/**/*", recursive=True)):
        if os.path.isfile(path) and path.endswith((".nc", ".nc4")) and h5py.is_hdf5(path):
            paths.append(path)
    if int(os.environ.get("ZARRBITS_CASES", 10)) <= 10:
        paths = paths[::6]
    compared = 0
    for path in paths:
        for options in ({"decode_times": False, "mask_and_scale": False}, {"decode_times": False}):
            try:
                theirs = loaded(path, "h5netcdf", **options)
            except Exception:  # noqa: BLE001 - a file that h5netcdf does not read
                continue
            xarray.testing.assert_identical(loaded(path, engine, **options), theirs)
            compared += 1
    assert compared > len(paths)
