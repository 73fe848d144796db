# SPDX-License-Identifier: BSL-1.0
"""Files that are joined along a new dimension, as one netCDF file: xarray and netCDF4-python see what xarray joins."""

import numpy as np
import pytest

from harness import convert, run

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_new_dimension_in_a_netcdf_file(tmp_path):
    files = []
    for i in range(3):
        variables = {
            "t": (("y", "x"), np.arange(12.0).reshape(3, 4) + i, {"units": "K"}),
            "n": ("x", np.arange(4, dtype="i2") + i),
            "s": ((), 1.5 * i),
            "text": ("y", np.array(["a", "bb", f"c{i}"], object)),
        }
        data = xr.Dataset(variables, coords={"x": [1.0, 2, 3, 4], "y": [1, 2, 3]}, attrs={"title": "T"})
        files.append(tmp_path / f"r{i}.nc")
        data.to_netcdf(files[-1], encoding={"n": {"_FillValue": -9}})
    store, back = tmp_path / "runs.zarr", tmp_path / "runs.nc"
    convert("-q", "--concat-new", "run", *files, store)
    run("export", "-q", store, back)
    run("verify", store, back)
    with xr.open_mfdataset(files, combine="nested", concat_dim="run", data_vars="all") as wanted:
        for engine in ("netcdf4", "h5netcdf"):
            with xr.open_dataset(back, engine=engine) as have:
                xr.testing.assert_identical(wanted.load(), have.load())
    with netCDF4.Dataset(back) as f:
        assert {name: len(d) for name, d in f.dimensions.items()} == {"run": 3, "y": 3, "x": 4}
        assert f["t"].dimensions == ("run", "y", "x") and f["s"].dimensions == ("run",)
        assert f["n"][:].tolist() == [[i, i + 1, i + 2, i + 3] for i in range(3)]
