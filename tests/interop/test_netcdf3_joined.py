# SPDX-License-Identifier: BSL-1.0
"""netCDF-3 files in --concat and in zarrbits.File beside xarray: what open_mfdataset makes of them with engine="netcdf4" and
"scipy" is in the store; engine="zarrbits" opens the same data sets.

ZARRBITS_CASES: random files of each format, 10 by default. ZARRBITS_SEED: others."""

import itertools
import os
import pickle
import sys

import numpy as np
import pytest

from conftest import ROOT
from harness import convert, run
from test_netcdf3 import FORMATS, write

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")
pytest.importorskip("scipy")
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/convert")]
import zarrbits
from zarrbits import hdf5_library

pytestmark = pytest.mark.filterwarnings("ignore")
CASES, SEED = int(os.environ.get("ZARRBITS_CASES", "10")), int(os.environ.get("ZARRBITS_SEED", "58"))
ENGINES = {kind: ["netcdf4", "scipy"] if kind != "NETCDF3_64BIT_DATA" else ["netcdf4"] for kind in FORMATS}
NESTED = {"combine": "nested", "data_vars": "minimal", "coords": "minimal", "compat": "override"}
BY_COORDS = {"data_vars": "minimal", "coords": "minimal", "compat": "equals", "join": "outer", "combine_attrs": "override"}


@pytest.fixture
def engine():
    try:
        hdf5_library.library()
    except zarrbits.Error as e:
        pytest.skip(str(e))
    from zarrbits_codecs.xarray_backend import ZarrbitsBackendEntrypoint

    return ZarrbitsBackendEntrypoint


def whole(dice, time=12):
    types = ["i1", "i2", "i4", "f4", "f8"]
    sizes = {"time": time, "y": int(dice.integers(2, 6)), "x": int(dice.integers(2, 8))}
    dataset = xr.Dataset(coords={n: (n, np.cumsum(dice.integers(1, 4, s)).astype("f8")) for n, s in sizes.items()})
    dataset["time"] = ("time", np.datetime64("2001-01-31", "ns") + np.arange(time) * np.timedelta64(6, "h"))
    for i, t in enumerate(types):
        dims = [n for n in sizes if dice.random() < 0.7]
        values = dice.integers(-100, 100, [sizes[d] for d in dims]).astype(t)
        dataset[f"v{i}"] = (dims, values, {"units": "K", "numbers": np.array([1, 2], "i4")})
    dataset["masked"] = (("time", "x"), np.where(dice.random((time, sizes["x"])) < 0.2, np.nan, 1.5).astype("f4"))
    dataset["short"] = ("time", np.round(dice.random(time), 1), {})
    dataset["short"].encoding = {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1}
    return dataset.assign_attrs(title="tïtle", one=np.float32(0.1))


def save(dataset, path, kind, unlimited):
    encoding = {"time": {"units": "hours since 2001-01-01", "dtype": "f8"}}
    dataset.to_netcdf(path, engine="netcdf4", format=kind, unlimited_dims=unlimited, encoding=encoding)
    return str(path)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("unlimited", [["time"], []], ids=["records", "fixed"])
def test_series_as_open_mfdataset_has_them(tmp_path, kind, unlimited):
    dice = np.random.default_rng(SEED)
    for case in range(3):
        dataset = whole(dice)
        paths = [
            save(dataset.isel(time=slice(a, b)), tmp_path / f"{case}_{a:02}.nc", kind, unlimited)
            for a, b in itertools.pairwise([0, 4, 8, 11, 12] if case else [0, 6, 12])
        ]
        convert("-q", "--concat", "time", *paths, tmp_path / f"{case}.zarr")
        convert("-q", "--virtual", "--concat", "time", *paths, tmp_path / f"{case}.json")
        run("verify", "-q", "--concat", "time", *paths, tmp_path / f"{case}.json")
        for name in ENGINES[kind]:
            with xr.open_mfdataset(paths, concat_dim="time", engine=name, **NESTED) as expected:
                with xr.open_zarr(tmp_path / f"{case}.zarr") as copy:
                    xr.testing.assert_identical(copy.load(), expected.load())


@pytest.mark.parametrize("kind", FORMATS)
def test_tiles_as_combine_by_coords_has_them(tmp_path, kind):
    """Some of them netCDF-4."""
    dice = np.random.default_rng(SEED)
    dataset = whole(dice, 6)
    paths = []
    for i, (t, x) in enumerate(itertools.product([slice(0, 2), slice(2, 6)], [slice(0, 1), slice(1, None)])):
        part = dataset.isel(time=t, x=x)
        paths.append(save(part, tmp_path / f"{i}.nc", "NETCDF4" if i == 3 else kind, ["time"] if i % 2 else []))
    expected = xr.combine_by_coords([xr.open_dataset(p, engine="netcdf4") for p in paths], **BY_COORDS).load()
    convert("-q", "--concat", "time,x", *paths, tmp_path / "all.zarr")
    run("verify", "-q", "--concat", "time,x", *paths, tmp_path / "all.zarr")
    with xr.open_zarr(tmp_path / "all.zarr") as copy:
        xr.testing.assert_identical(copy.load(), expected)


@pytest.mark.parametrize("kind", FORMATS)
def test_engine_opens_the_same_datasets(tmp_path, kind, engine):
    for case in range(CASES):
        path = str(write(tmp_path / f"{case}.nc", kind, SEED + case))
        for decode in (False, True):
            ours = xr.open_dataset(path, engine=engine, decode_cf=decode)
            again = pickle.loads(pickle.dumps(ours))
            with xr.open_dataset(path, engine=engine, decode_cf=decode, chunks={}) as in_dask:
                in_dask = in_dask.load()
            for name in ENGINES[kind]:
                with xr.open_dataset(path, engine=name, decode_cf=decode) as theirs:
                    theirs.load()
                    for d in (ours, again, in_dask):
                        xr.testing.assert_identical(d.load(), theirs)
                    assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"]
                    for v in theirs.variables:
                        assert ours[v].dtype == theirs[v].dtype or ours[v].dtype.newbyteorder("=") == theirs[v].dtype
            ours.close()


@pytest.mark.parametrize("kind", FORMATS)
def test_engine_reads_parts(tmp_path, kind, engine):
    path = save(whole(np.random.default_rng(SEED), 40), tmp_path / "in.nc", kind, ["time"])
    ours, theirs = (xr.open_dataset(path, engine=e) for e in (engine, "netcdf4"))
    for key in ({"time": 3}, {"time": slice(1, 30, 7)}, {"x": slice(None, None, -1)}, {"time": [5, 2, 2], "x": [1, 0]}):
        xr.testing.assert_identical(ours.isel(key).load(), theirs.isel(key).load())


def test_engine_joins_them(tmp_path, engine):
    dataset = whole(np.random.default_rng(SEED))
    paths = [save(dataset.isel(time=slice(a, a + 4)), tmp_path / f"{a}.nc", FORMATS[0], ["time"]) for a in (0, 4, 8)]
    with xr.open_mfdataset(paths, concat_dim="time", engine=engine, **NESTED) as ours:
        with xr.open_mfdataset(paths, concat_dim="time", engine="scipy", **NESTED) as theirs:
            xr.testing.assert_identical(ours.load(), theirs.load())
