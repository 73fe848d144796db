# SPDX-License-Identifier: BSL-1.0
"""Files of aggregation variables (convert --virtual --cf-aggregation) as cfdm reads them, beside what xarray's combine_by_coords
makes of the same parts.

ZARRBITS_CASES: three times the layouts, 25 by default. ZARRBITS_SEED: others. ZARRBITS_CFDM: a Python that has cfdm, which
scripts/ci/interop makes.
"""

import itertools
import os
import pickle
import subprocess

import netCDF4
import numpy as np
import pytest
import xarray as xr

from conftest import HERE, ROOT
from harness import convert
from test_combined_files import CASES, HOW, SEED, ensemble, layout, parts

CFDM = os.environ.get("ZARRBITS_CFDM", str(ROOT / "build/interop/cfdm/bin/python"))
AS_STORED = {"engine": "netcdf4", "decode_times": False}

pytestmark = pytest.mark.skipif(not os.path.exists(CFDM), reason="cfdm is not there (ZARRBITS_CFDM)")


def cfdm_python(*arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run([CFDM, HERE / "cfdm_reader.py", *arguments], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def read_all(folder, paths):
    """What cfdm reads in each file."""
    cfdm_python(folder / "read.pickle", *paths)
    with open(folder / "read.pickle", "rb") as f:
        return pickle.load(f)


def aggregate(paths, target, *options):
    convert("-q", "--virtual", "--cf-aggregation", *options, *paths, target)


def check(fields, expected):
    """`expected`: a dataset of xarray, with times as numbers."""
    assert set(fields) == set(expected.data_vars)
    for name, v in expected.data_vars.items():
        field = fields[name]
        np.testing.assert_array_equal(field["values"], v.values)
        is_text = v.dtype.kind in "OUT"
        assert is_text or field["values"].dtype == v.dtype, (name, field["values"].dtype, v.dtype)
        assert field["dimensions"] == list(v.dims)
        ours = {k: p for k, p in field["properties"].items() if k not in ("_FillValue", "Conventions", *expected.attrs)}
        assert ours == v.attrs, name
        assert set(field["coordinates"]) == set(v.dims) & set(expected.coords)
        for c, (values, properties, _) in field["coordinates"].items():
            np.testing.assert_array_equal(values, expected[c].values)
            assert values.dtype == expected[c].dtype
            assert {k: p for k, p in properties.items() if k != "_FillValue"} == expected[c].attrs


def combined(paths):
    return xr.combine_by_coords([xr.open_dataset(p, **AS_STORED) for p in paths], **HOW).load()


def test_layouts(tmp_path):
    """Parts of one to three dimensions, of uneven lengths; values of all types, also packed ones."""
    dice = np.random.default_rng(SEED)
    targets, expected, cut = [], [], []
    for case in range(max(CASES // 3, 4)):
        whole, cuts = layout(dice)
        folder = tmp_path / str(case)
        folder.mkdir()
        packed = np.where(dice.random(whole["v"].shape) < 0.2, np.nan, dice.integers(0, 99, whole["v"].shape) * 0.5)
        whole["packed"] = (whole["v"].dims, packed, {"long_name": "packed"})
        whole["packed"].encoding = {"dtype": "i2", "scale_factor": 0.5, "add_offset": 3.0, "_FillValue": -99}
        for i, kind in enumerate(("i1", "u1", "i4", "u4", "i8", "u8")):
            whole[kind] = (whole["v"].dims, dice.integers(0, 99, whole["v"].shape).astype(kind), {"number": i})
        for name in whole.data_vars:
            whole[name].attrs["long_name"] = name
        cuts = {n: cuts[n] for n in list(cuts)[: 1 + case % len(cuts)]}
        paths = list(parts(whole, cuts, folder))
        targets.append(folder / "all.nc")
        aggregate(paths, targets[-1], "--concat", ",".join(cuts))
        expected.append(combined(paths))
        cut.append([len(cuts.get(n, [0])) for n in whole["v"].dims])
    for fields, dataset, fragments in zip(read_all(tmp_path, targets), expected, cut):
        check(fields, dataset)
        assert fields["v"]["fragments"] == fragments  # and not the values themselves
    assert sum(n > 1 for fragments in cut for n in fragments) > 2


def test_parts_that_are_missing(tmp_path):
    dice = np.random.default_rng(SEED)
    whole, cuts = layout(dice)
    while max(map(len, cuts.values())) < 2 or sum(len(c) > 1 for c in cuts.values()) < 2:
        whole, cuts = layout(dice)
    whole = whole.drop_vars("first").assign(w=whole["v"] * 2)  # integers have no missing values in xarray
    paths = list(parts(whole, cuts, tmp_path))
    del paths[1]
    aggregate(paths, tmp_path / "all.nc", "--concat", ",".join(cuts))
    (fields,) = read_all(tmp_path, [tmp_path / "all.nc"])
    expected = combined(paths)
    assert np.isnan(expected["v"]).any()
    check(fields, expected)


@pytest.mark.parametrize("cut_time", [True, False])
def test_members(tmp_path, cut_time):
    """The parts lack the new dimension, as the conventions allow."""
    paths, whole, expected = ensemble(tmp_path, np.random.default_rng(SEED), cut_time)
    aggregate(paths, tmp_path / "all.nc", "--concat-new", "member", "--concat", "time")
    (fields,) = read_all(tmp_path, [tmp_path / "all.nc"])
    check(fields, expected)
    assert fields["v"]["fragments"][0] == 3 and set(fields) == set(whole.data_vars)


def test_times_and_bounds(tmp_path):
    """Each file counts time from its own first day."""
    time = np.datetime64("2001-02-27", "ns") + np.arange(12) * np.timedelta64(6, "h")
    whole = xr.Dataset({"v": (("time", "x"), np.random.default_rng(SEED).random((12, 4)))}, {"time": time, "x": np.arange(4.0)})
    whole["time_bnds"] = (("time", "bnds"), np.stack([time, time + np.timedelta64(6, "h")], 1))
    whole["time"].attrs.update(bounds="time_bnds", standard_name="time")
    whole["v"].attrs.update(units="K", standard_name="air_temperature", cell_methods="time: mean")
    paths = []
    for a, b in itertools.pairwise([0, 4, 12]):
        epoch = np.datetime_as_string(time[a], "s").replace("T", " ")
        encoding = {n: {"_FillValue": None} for n in ("v", "x", "time_bnds")}
        encoding["time"] = {"units": f"hours since {epoch}", "dtype": "i8", "calendar": "standard", "_FillValue": None}
        paths.append(str(tmp_path / f"{a}.nc"))
        whole.isel(time=slice(a, b)).to_netcdf(paths[-1], engine="netcdf4", encoding=encoding)
    aggregate(paths, tmp_path / "all.nc", "--concat", "time")
    (fields,) = read_all(tmp_path, [tmp_path / "all.nc"])
    assert list(fields) == ["v"]
    np.testing.assert_array_equal(fields["v"]["values"], whole["v"])
    values, properties, bounds = fields["v"]["coordinates"]["time"]
    hours = (whole["time"].values - time[0]) / np.timedelta64(1, "h")
    np.testing.assert_array_equal(values, hours)
    np.testing.assert_array_equal(bounds, np.stack([hours, hours + 6], 1))
    assert properties["units"] == "hours since 2001-02-27"


def test_groups(tmp_path):
    paths, values = [], np.random.default_rng(SEED).random((5, 3))
    for k, (a, b) in enumerate([(0, 2), (2, 5)]):
        paths.append(str(tmp_path / f"{k}.nc"))
        with netCDF4.Dataset(paths[-1], "w") as f:
            f.createDimension("time", b - a)
            f.createDimension("x", 3)
            f.createVariable("time", "f8", ("time",))[:] = np.arange(a, b)
            v = f.createGroup("model").createGroup("run").createVariable("v", "f8", ("time", "x"))
            v[:] = values[a:b]
    aggregate(paths, tmp_path / "all.nc", "--concat", "time")
    (fields,) = read_all(tmp_path, [tmp_path / "all.nc"])
    (field,) = fields.values()
    np.testing.assert_array_equal(field["values"], values)
    np.testing.assert_array_equal(field["coordinates"]["time"][0], np.arange(5.0))
    assert field["fragments"] == [2, 1]


def test_netcdf3_parts(tmp_path):
    whole, cuts = layout(np.random.default_rng(SEED))
    whole = whole.drop_vars("first").assign_coords({n: whole[n].astype("f8") for n in whole.coords})
    paths = list(parts(whole, cuts, tmp_path))
    for path in paths:
        with xr.open_dataset(path, engine="netcdf4") as part:
            part.load()
        for name in part.variables:
            part[name].encoding = {"_FillValue": None} if name in part.coords else {}
        part.to_netcdf(path, format="NETCDF3_64BIT", engine="netcdf4")
    aggregate(paths, tmp_path / "all.nc", "--concat", ",".join(cuts))
    (fields,) = read_all(tmp_path, [tmp_path / "all.nc"])
    check(fields, combined(paths))


def test_aggregation_variables_of_cfdm_are_known(tmp_path):
    """Those that cfdm writes are skipped, and named."""
    whole = xr.Dataset({"v": (("time", "x"), np.ones((2, 3)))}, {"time": [0.0, 1], "x": [0.0, 1, 2]})
    whole.to_netcdf(tmp_path / "in.nc", engine="netcdf4")
    cfdm_python("--write", tmp_path / "all.nc", tmp_path / "in.nc")
    done = convert("-q", tmp_path / "all.nc", tmp_path / "out.zarr", status=3)
    assert 'skipped dataset "/v": it is a CF aggregation variable' in done.stderr
