# SPDX-License-Identifier: BSL-1.0
"""Zarr stores that xarray wrote, joined along time: `xarray.concat` of them is in the copy, behind the
references, and in a file for netCDF.

ZARRBITS_CASES: layouts, 15 by default. ZARRBITS_SEED: others.
"""

import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from harness import convert, verify

CASES, SEED = int(os.environ.get("ZARRBITS_CASES", "15")), int(os.environ.get("ZARRBITS_SEED", "1"))
HOW = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override", "combine_attrs": "override"}


@pytest.fixture(autouse=True)
def rectilinear_grids():
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield


def part(dice, begin, count, whole):
    """A step of the series, with whatever encoding xarray or a user chose for it."""
    times = pd.date_range(begin, periods=count, freq=whole["frequency"])
    shape = (count, 5, 7)
    data = {
        "heat": (("time", "y", "x"), dice.normal(size=shape).astype("f4"), {"units": "K"}),
        "rain": (("y", "time"), np.round(dice.random((5, count)), 2)),
        "count": (("time",), dice.integers(-9, 9, count).astype("i4")),
        "name": (("time",), np.array([f"step {t:%j %H}" for t in times], object)),
        "area": (("y", "x"), np.arange(35.0).reshape(5, 7)),
        "scalar": ((), 7),
    }
    result = xr.Dataset(data, {"time": times, "y": np.arange(5.0), "x": np.arange(7)}, {"title": "a series", "made": str(begin)})
    result["heat"][0, 0, 0] = np.nan
    return result, times[-1] + (times.freq or pd.Timedelta(1, "D"))


def encoding(whole, dataset):
    count = dataset.sizes["time"]
    chunk = min(whole["chunk"], count) if whole["cut"] else whole["chunk"]
    result = {"heat": {"chunks": (chunk, 5, 4)}, "rain": {"chunks": (5, chunk)}, "count": {"chunks": (chunk,)}}
    if whole["shards"]:
        result["heat"]["shards"] = (chunk * 2, 5, 8)
    if whole["packed"]:
        result["rain"] |= {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -99}
    if whole["units"]:
        result["time"] = {"units": whole["units"], "dtype": whole["times"]}
    return result


def layouts():
    dice = np.random.default_rng(SEED)
    for case in range(CASES):
        yield (
            case,
            dice,
            {
                "frequency": dice.choice(["D", "6h", "h"]),
                "chunk": int(dice.integers(1, 9)),
                "cut": bool(dice.random() < 0.5),
                "format": int(dice.choice([2, 3, 3])),
                "shards": False,
                "packed": bool(dice.random() < 0.3),
                "units": dice.choice(["", "", "hours since 1970-01-01", "seconds since 2001-02-03"]),
                "times": dice.choice(["i8", "f8"]),
                "counts": [int(n) for n in dice.integers(2, 30, dice.integers(2, 5))],
            },
        )


def test_layouts_as_xarray_joins_them(tmp_path):
    for case, dice, whole in layouts():
        whole["shards"] = whole["format"] == 3 and bool(dice.random() < 0.4)
        begin, names = pd.Timestamp("2001-01-01"), []
        for k, count in enumerate(whole["counts"]):
            dataset, begin = part(dice, begin, count, whole)
            names.append(tmp_path / f"{case}-{k}.zarr")
            dataset.to_zarr(
                names[-1], zarr_format=whole["format"], encoding=encoding(whole, dataset), consolidated=whole["format"] == 2
            )
        expected = xr.concat([xr.open_zarr(n) for n in names], "time", **HOW).load()
        ways = {"plain": [], "chunks": ["--chunk", "time:6"], "gzip": ["--compress", "gzip:1"], "shards": ["--shard", "32k"]}
        ways["rectilinear"] = ["--grid", "rectilinear"]
        for way, options in ways.items():
            store = tmp_path / f"{case}-{way}.zarr"
            convert("-q", "--concat", "time", *names, store, *options)
            with xr.open_zarr(store) as copy:
                xr.testing.assert_identical(copy.load(), expected)
            verify("--concat", "time", *names, store)
        for suffix in ("nc", "h5"):
            file = tmp_path / f"{case}.{suffix}"
            convert("-q", "--concat", "time", *names, file)
            for engine in ("netcdf4", "h5netcdf"):
                with xr.open_dataset(file, engine=engine) as copy:
                    xr.testing.assert_identical(copy.load(), expected)
        references = tmp_path / f"{case}.json"
        convert("-q", "--concat", "time", *names, "--virtual", references)
        verify("--concat", "time", *names, references)
        convert("-q", references, tmp_path / f"{case}-again.zarr")
        with xr.open_zarr(tmp_path / f"{case}-again.zarr") as copy:
            xr.testing.assert_identical(copy.load(), expected)
