# SPDX-License-Identifier: BSL-1.0
"""`zarrbits repack --layout cmip7` beside the check of CMIP7's archives, check_cmip7_packing: both say the same of random files
of netCDF4-python, h5netcdf and h5py, and the check passes what was repacked.
cases.py has the variables that ask for more cases."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

from cases import each_case
from harness import execute, run

h5py = pytest.importorskip("h5py")
netCDF4 = pytest.importorskip("netCDF4")
h5netcdf = pytest.importorskip("h5netcdf")
xr = pytest.importorskip("xarray")
CHECK = pathlib.Path(sys.executable).parent / "check_cmip7_packing"
if not CHECK.exists():
    pytest.skip("cmip7-repack is not installed", allow_module_level=True)

SHAPES = [(40, 18, 24), (400, 36, 48), (7, 300, 400), (1200, 10, 10)]


def random_plane(rng, shape):
    """The chunks of the data, and their filters."""
    steps, y, x = shape
    chunk = [(1, y, x), (min(16, steps), y, x), (1, max(1, y // 2), x), shape][rng.integers(4)]
    return chunk, [{}, {"compression": "gzip", "compression_opts": 4, "shuffle": True}][rng.integers(2)]


def by_netcdf4(path, rng, shape):
    steps, y, x = shape
    with netCDF4.Dataset(path, "w", format=["NETCDF4", "NETCDF4_CLASSIC"][rng.integers(2)]) as d:
        unlimited, scalar, bounds = rng.random() < 0.6, rng.random() < 0.1, rng.random() < 0.7
        for name, size in (("time", None if unlimited else steps), ("lat", y), ("lon", x), ("bnds", 2)):
            d.createDimension(name, size)
        how = {}
        if not scalar and rng.random() < 0.3:
            how = {"chunksizes": (min(steps, [1, 16, steps][rng.integers(3)]),)}
        elif not scalar and not unlimited and rng.random() < 0.3:
            how = {"contiguous": True}
        t = d.createVariable("time", "f8", () if scalar else ("time",), **how)
        if bounds:
            t.bounds = "time_bnds"
            b = d.createVariable("time_bnds", "f8", ("time", "bnds"))
        chunk, filters = random_plane(rng, shape)
        v = d.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=bool(filters), chunksizes=chunk)
        if rng.random() < 0.8:
            d.variable_id = "tas"
        if rng.random() < 0.2:
            d.history = "x" * 70000
        for i in range(steps):
            v[i] = rng.normal(280, 9, (y, x))
            if not scalar:
                t[i] = i
            if bounds:
                b[i] = (i, i + 1)


def by_h5py(path, rng, shape):
    steps, y, x = shape
    libver = [None, ("v110", "v110")][rng.integers(2)]
    with h5py.File(path, "w", libver=libver, track_order=bool(rng.integers(2))) as f:
        f.attrs["variable_id"] = ["tas", np.bytes_("tas"), "missing"][rng.integers(3)]
        kind = rng.integers(4)
        if kind:
            how = [{"chunks": (min(8, steps),)}, {}, {"chunks": (1,), "maxshape": (None,)}][kind - 1]
            t = f.create_dataset("time", data=np.arange(steps) * 1.0, **how)
            t.attrs["bounds"] = "time_bnds"
            if rng.random() < 0.7:
                f.create_dataset("time_bnds", data=np.zeros((steps, 2)), chunks=[None, (1, 2), (steps, 2)][rng.integers(3)])
        chunk, filters = random_plane(rng, shape)
        f.create_dataset(
            "tas", data=rng.normal(280, 9, shape).astype(["f4", ">f4", "f8"][rng.integers(3)]), chunks=chunk, **filters
        )
        f["g/names"] = ["a", "bb"] * 20


def by_h5netcdf(path, rng, shape):
    steps, y, x = shape
    with h5netcdf.File(path, "w") as f:
        f.dimensions = {"time": None if rng.integers(2) else steps, "lat": y, "lon": x, "bnds": 2}
        if f.dimensions["time"].isunlimited():
            f.resize_dimension("time", steps)
        if rng.random() < 0.8:
            f.attrs["variable_id"] = "tas"
        t = f.create_variable("time", ("time",), "f8", **({"chunks": (1,)} if rng.integers(2) else {}))
        t[:] = np.arange(steps)
        if rng.random() < 0.6:
            t.attrs["bounds"] = "time_bnds"
            f.create_variable("time_bnds", ("time", "bnds"), "f8")[:] = np.zeros((steps, 2))
        chunk, filters = random_plane(rng, shape)
        f.create_variable("tas", ("time", "lat", "lon"), "f4", chunks=chunk, **filters)[:] = rng.normal(280, 9, shape)


def passes(path):
    """The archives' verdict; None if its reader cannot open the file."""
    done = execute(sys.executable, CHECK, path, status=None)
    return {0: True, 1: False, 5: None}[done.returncode]


def compare(dice, folder):
    rng = np.random.default_rng(dice.getrandbits(32))
    source, target = (pathlib.Path(folder, name) for name in ("in.nc", "out.nc"))
    writer = (by_netcdf4, by_h5py, by_h5netcdf)[rng.integers(3)]
    writer(source, rng, SHAPES[rng.integers(len(SHAPES))])
    verdict = passes(source)
    checked = run("repack", "--check", "--json", "--layout", "cmip7", source, status=(0, 3))
    if verdict is not None:
        assert (checked.returncode == 0) == verdict, checked.stdout
    run("repack", "-q", "--layout", "cmip7", source, target)
    assert passes(target), json.loads(run("repack", "--check", "--json", "--layout", "cmip7", target, status=None).stdout)
    run("verify", source, target)
    if writer == by_h5py:
        return
    try:
        xr.open_dataset(source, engine="h5netcdf").close()
    except ValueError:  # it takes no scalar for a coordinate
        return
    with xr.open_dataset(source, engine="h5netcdf") as a, xr.open_dataset(target, engine="h5netcdf") as b:
        xr.testing.assert_identical(a, b)
    if shutil.which("ncdump"):
        dumps = [execute("ncdump", path).stdout.split("\n", 1)[1] for path in (source, target)]
        assert (dumps[0] == dumps[1]) is True


def test_the_archives_agree(folder):
    each_case(folder, 30, compare)
