# SPDX-License-Identifier: BSL-1.0
"""Bounds, climatologies and floating times of several netCDF files, compared with what xarray.open_mfdataset makes of the files.
docs/guide/many-files.md."""

import json

import netCDF4
import numpy as np
import pytest

from conftest import run
from test_concat import xr

pytestmark = pytest.mark.filterwarnings("ignore")
EPOCHS = ["days since 2000-01-01", "days since 2000-02-01", "hours since 1999-12-30 12:00"]


def files(folder, case):
    """Three files of five days each, every one in terms of its own."""
    paths = []
    for i, units in enumerate(EPOCHS):
        calendar = {"noleap": "noleap", "360_day": "360_day"}.get(case, "standard")
        dtype = "f4" if case == "float32" else "i8" if case == "integers" else "f8"
        path = folder / f"d{i}.nc"
        first = 60 + 5 * i
        with netCDF4.Dataset(path, "w") as f:
            f.createDimension("time", None)
            f.createDimension("nv", 2)
            group = f.createGroup("g") if case == "group" else f
            days = np.arange(first, first + 5)
            origin = netCDF4.num2date(0, EPOCHS[0], calendar)

            def numbers(values):
                dates = netCDF4.num2date(values, EPOCHS[0], calendar)
                return netCDF4.date2num(dates, units, calendar)

            assert origin.year == 2000
            time = group.createVariable("time", dtype, "time")
            time.units, time.calendar, time.bounds = units, calendar, "time_bnds"
            time[:] = numbers(days + (0 if case == "integers" else 0.25))
            bounds = group.createVariable("time_bnds", dtype, ("time", "nv"))
            bounds[:] = numbers(np.stack([days, days + 1], axis=1))
            if case == "own units":
                bounds.units = units
            if case == "one has none" and i == 1:
                bounds.units, bounds.calendar = units, calendar
            if case == "packed":
                bounds.scale_factor = 0.5
            field = group.createVariable("t2m", "f4", ("time",))
            field[:] = days
        paths.append(path)
    return paths


def joined(paths, **how):
    options = dict(combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="equals", join="outer")
    return xr.open_mfdataset(paths, **options, **how).load()


CASES = ["bounds", "own units", "one has none", "integers", "noleap", "360_day", "group", "float32"]


@pytest.mark.parametrize("way", ["concat", "append", "virtual"])
@pytest.mark.parametrize("case", CASES)
def test_bounds(case, way, tmp_path):
    paths = files(tmp_path, case)
    store = tmp_path / ("out.json" if way == "virtual" else "out.zarr")
    if way == "append":
        run("convert", "--concat", "time", paths[0], store, "--quiet")
        run("convert", "--append", "time", *paths[1:], store, "--quiet")
    else:
        run("convert", "--concat", "time", *paths, store, "--quiet", *(["--virtual"] if way == "virtual" else []))
    result = json.loads(run("verify", "--json", "--concat", "time", *paths, store))
    assert result["elements"]["unchecked"] == 0 and not result["findings"], result
    if way == "virtual":
        return  # test_references.py opens such stores; verify has compared the values
    group = "g" if case == "group" else None
    want = joined(paths, group=group, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True))
    got = xr.open_zarr(store, group=group, consolidated=False, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)).load()
    assert want.time_bnds.dtype == object and (want.time_bnds.values == got.time_bnds.values).all(), (
        want.time_bnds,
        got.time_bnds,
    )
    assert (want.time.values == got.time.values).all() and (want.t2m.values == got.t2m.values).all()


def test_a_new_dimension(tmp_path):
    """Each file is one step: the times' bounds are put in the first file's epoch as the times are."""
    paths = []
    for i, units in enumerate(EPOCHS[:2]):
        with netCDF4.Dataset(tmp_path / f"r{i}.nc", "w") as f:
            f.createDimension("nv", 2)
            f.createDimension("y", 3)
            time = f.createVariable("time", "f8", ())
            time.units, time.calendar, time.bounds = units, "standard", "time_bnds"
            time[...] = 1.5
            bounds = f.createVariable("time_bnds", "f8", ("nv",))
            bounds[:] = [1, 2]
            f.createVariable("v", "f4", ("y",))[:] = i
        paths.append(tmp_path / f"r{i}.nc")
    run("convert", "--concat-new", "run", *paths, tmp_path / "out.zarr", "--quiet")
    want = xr.open_mfdataset(
        paths, combine="nested", concat_dim="run", data_vars="all", coords="different", compat="equals", join="exact"
    ).load()
    got = xr.open_zarr(tmp_path / "out.zarr", consolidated=False).load()
    assert (want.time_bnds.values == got.time_bnds.values).all() and (want.time.values == got.time.values).all(), (want, got)
    result = json.loads(run("verify", "--json", "--concat-new", "run", *paths, tmp_path / "out.zarr"))
    assert result["elements"]["unchecked"] == 0 and not result["findings"], result


def test_bounds_are_unpacked_by_their_own_attributes(tmp_path):
    """Neither xarray nor the store lends them scale_factor, add_offset or _FillValue of the variable that names them."""
    paths = []
    for i, scale in enumerate([0.5, 0.25]):
        with netCDF4.Dataset(tmp_path / f"p{i}.nc", "w") as f:
            f.createDimension("time", None)
            f.createDimension("nv", 2)
            time = f.createVariable("time", "i4", "time")
            time.units, time.bounds = "m", "time_bnds"
            time.set_auto_scale(False)
            time.scale_factor = scale
            time[:] = [4 + 20 * i, 6 + 20 * i]
            f.createVariable("time_bnds", "i4", ("time", "nv"))[:] = [[0 + 4 * i, 1], [2 + 4 * i, 3]]
        paths.append(tmp_path / f"p{i}.nc")
    run("convert", "--concat", "time", *paths, tmp_path / "out.zarr", "--quiet", "--allow-overlap")
    want, got = joined(paths), xr.open_zarr(tmp_path / "out.zarr", consolidated=False).load()
    assert (want.time_bnds.values == got.time_bnds.values).all() and (want.time.values == got.time.values).all(), (want, got)
