# SPDX-License-Identifier: BSL-1.0
"""netCDF files joined to one store, compared with xarray.open_mfdataset of the files by xarray's own assert_identical.
docs/guide/many-files.md."""

import json
import random
import time

import numpy as np
import pytest

import kills
from conftest import run

xr = pytest.importorskip("xarray")
if tuple(int(x) for x in xr.__version__.split(".")[:2]) < (2025, 9):
    pytest.skip("an older xarray", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")
WAYS = {"portable": [], "native": ["--profile", "native"], "shards": ["--profile", "native", "--shard", "1M"], "zip": []}


def files(folder, lengths, encode=lambda i: {}, change=lambda i, ds: ds, engine="netcdf4", name="d{:03}.nc"):
    """A file for each length: hourly fields, packed as `encode` says, with a mask, texts and a group of its own."""
    noise, made, begin = np.random.default_rng(1), [], 0
    for i, length in enumerate(lengths):
        hours = np.arange(begin, begin + length)
        begin += length
        field = noise.normal(280, 10, (length, 18, 36)).astype("f4")
        field[:, 3, 4] = np.nan
        ds = xr.Dataset(
            {
                "t2m": (("time", "lat", "lon"), field, {"units": "K"}),
                "wet": (("time", "lat"), field[:, :, 0] > 280),
                "station": (("time",), np.array([f"s{h}é" for h in hours], object)),
                "mask": (("lat", "lon"), np.arange(18 * 36, dtype="i4").reshape(18, 36)),
            },
            coords={
                "time": np.datetime64("2000-01-01", "ns") + hours * np.timedelta64(1, "h"),
                "lat": np.linspace(-85, 85, 18),
                "lon": np.linspace(0, 350, 36),
            },
        )
        encoding = {
            "t2m": {"zlib": True, "shuffle": True, "chunksizes": (min(8, length), 9, 36)},
            "time": {"units": "hours since 2000-01-01", "dtype": "i8"},
        }
        for variable, more in encode(i).items():
            encoding[variable] = encoding.get(variable, {}) | more
        ds = change(i, ds)
        encoding = {v: e for v, e in encoding.items() if v in ds.variables}
        path = folder / name.format(i)
        ds.to_netcdf(path, encoding=encoding, unlimited_dims=["time"], engine=engine)
        made.append(path)
    return made


def packed(*parameters):
    keys = ("scale_factor", "add_offset", "_FillValue")
    return lambda i: {"t2m": {"dtype": "i2", **dict(zip(keys, parameters[i % len(parameters)]))}}


CASES = {
    "even": dict(lengths=[24, 24, 24]),
    "uneven": dict(lengths=[24, 20, 7, 24]),
    "a record a file": dict(lengths=[1] * 5),
    "h5netcdf": dict(lengths=[24, 24], engine="h5netcdf"),
    "packing that differs": dict(lengths=[24, 24, 24], encode=packed((0.01, 280.0, -32768), (0.02, 281.0, -32768))),
    "packing in float32 that differs": dict(
        lengths=[8, 8], encode=packed((np.float32(0.01), np.float32(280), -32768), (np.float32(0.02), np.float32(281), -32768))
    ),
    "packing that is shifted": dict(lengths=[24, 24, 24], encode=packed((0.5, 280.0, -32768), (0.5, 285.0, -32767))),
    "packing that is shifted, and floats": dict(
        lengths=[8, 8, 8],
        encode=lambda i: {
            "t2m": [
                {"dtype": "i2", "scale_factor": 0.5, "add_offset": 280.0, "_FillValue": -32768},
                {"dtype": "i2", "scale_factor": 0.5, "add_offset": 285.0, "_FillValue": -32768},
                {"dtype": "f4", "scale_factor": 0.5, "add_offset": 280.0, "_FillValue": -32768},
            ][i]
        },
    ),
    "fill values that differ": dict(lengths=[24, 24], encode=lambda i: {"t2m": {"_FillValue": -999.0 - i}}),
    "epochs that differ": dict(
        lengths=[24, 24, 24],
        encode=lambda i: {
            "time": {"units": ["hours since 2000-01-01", "hours since 2000-01-02", "minutes since 1999-12-31 12:00"][i]}
        },
    ),
    "calendars that agree": dict(
        lengths=[24, 24], encode=lambda i: {"time": {"calendar": ["standard", "proleptic_gregorian"][i]}}
    ),
    "types that differ": dict(
        lengths=[24, 24],
        encode=lambda i: {"mask": {}, "t2m": {"dtype": ["f4", "f8"][i], "_FillValue": None if i > 1 else np.nan}},
    ),
    "chunks that differ": dict(
        lengths=[24, 24, 24], encode=lambda i: {"t2m": {"chunksizes": [(8, 9, 36), (12, 9, 36), (8, 9, 36)][i]}}
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_identical(case, way, tmp_path):
    paths = files(tmp_path, **CASES[case])
    store = tmp_path / ("out.zip" if way == "zip" else "out.zarr")
    run("convert", "--concat", "time", *paths, store, "--quiet", *WAYS[way])
    import zarr

    want = xr.open_mfdataset(
        paths, combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="equals", join="outer"
    ).load()
    got = xr.open_zarr(zarr.storage.ZipStore(store, mode="r") if way == "zip" else store).load()
    xr.testing.assert_identical(want, got)
    result = json.loads(run("verify", "--json", "--concat", "time", *paths, store))
    assert result["elements"]["unchecked"] == 0 and result["attributes"]["differs"] == 0, result


def test_a_variable_is_missing(tmp_path):
    """If a file lacks a variable, xarray has NaN; the store has its fill value, which is NaN here, and a note."""
    paths = files(
        tmp_path,
        [8, 8, 8],
        change=lambda i, ds: ds.drop_vars("t2m") if i == 1 else ds,
        encode=lambda i: {} if i == 1 else {"t2m": {"_FillValue": np.nan}},
    )
    report = json.loads(run("convert", "--concat", "time", *paths, tmp_path / "out.zarr", "--quiet", "--json"))
    assert [len(s["notes"]) for s in report["sources"]] == [0, 1, 0]
    want = xr.open_mfdataset(
        paths, combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="equals", join="outer"
    ).load()
    got = xr.open_zarr(tmp_path / "out.zarr", consolidated=False).load()
    xr.testing.assert_equal(want, got)


def test_times_of_another_calendar_are_refused(tmp_path):
    paths = files(tmp_path, [8, 8], encode=lambda i: {"time": {"calendar": ["standard", "julian"][i]}})
    run("convert", "--concat", "time", *paths, tmp_path / "out.zarr", "--quiet", status=1)


def test_names_in_the_order_of_their_numbers(tmp_path):
    paths = files(tmp_path, [2] * 11, name="d{}.nc")
    run("convert", "--concat", "time", str(tmp_path / "d*.nc"), tmp_path / "out.zarr", "--quiet")
    want = xr.open_mfdataset(
        paths, combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="equals", join="outer"
    ).load()
    xr.testing.assert_identical(want, xr.open_zarr(tmp_path / "out.zarr", consolidated=False).load())


def test_killed_at_any_moment(tmp_path):
    """A killed run is resumed and makes the same store; before that no reader finds a store."""
    paths = files(tmp_path, [24, 20, 24, 7])
    run("convert", "--concat", "time", *paths, tmp_path / "whole.zarr", "--quiet")
    want = xr.open_zarr(tmp_path / "whole.zarr", consolidated=False).load()
    store = tmp_path / "out.zarr"
    for _ in range(20):
        process = kills.begin("convert", "--concat", "time", *paths, store, "--resume", "--quiet")
        time.sleep(random.uniform(0, 0.15))
        kills.kill(process)
        if not (store / "zarr.json").exists():
            with pytest.raises(Exception):  # noqa: B017  (any: its classes depend on the version)
                xr.open_zarr(store, consolidated=False)
    run("convert", "--concat", "time", *paths, store, "--quiet", "--resume")
    xr.testing.assert_identical(want, xr.open_zarr(store, consolidated=False).load())


@pytest.mark.parametrize(
    "how", [[], ["--profile", "native"], ["--compress", "zstd", "--shard", "1M"], ["--chunk", "2,6,8"]], ids=" ".join
)
def test_a_new_dimension(how, tmp_path):
    """As xarray has files without the dimension: data variables get it, coordinates that are equal do not."""
    noise, paths = np.random.default_rng(2), [tmp_path / f"r{i}.nc" for i in range(4)]
    for i, path in enumerate(paths):
        ds = xr.Dataset(
            {
                "v": (("lat", "lon"), noise.normal(size=(6, 8)).astype("f4"), {"units": "K"}),
                "n": ((), np.int32(i)),
                "s": (("lat",), np.array([f"{i}{k}é" for k in range(6)], object)),
            },
            coords={"lat": np.arange(6.0), "lon": np.arange(8.0)},
        )
        ds.to_netcdf(path, encoding={"v": {"zlib": True, "shuffle": True, "chunksizes": (3, 8)}})
    run("convert", "--concat-new", "run", *paths, tmp_path / "out.zarr", "--quiet", *how)
    want = xr.open_mfdataset(
        paths, combine="nested", concat_dim="run", data_vars="all", coords="different", compat="equals", join="exact"
    ).load()
    xr.testing.assert_identical(want, xr.open_zarr(tmp_path / "out.zarr", consolidated=False).load())
    result = json.loads(run("verify", "--json", "--concat-new", "run", *paths, tmp_path / "out.zarr"))
    assert result["elements"]["unchecked"] == 0 and result["dimension_names"]["differs"] == 0, result
