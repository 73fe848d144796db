# SPDX-License-Identifier: BSL-1.0
"""Files with parts of several dimensions beside xarray: what combine_by_coords makes of them is in the copy, in the
references and in the file with virtual datasets (as netCDF4 and h5netcdf read it). Where xarray refuses, so does zarrbits.

ZARRBITS_CASES: layouts, 25 by default. ZARRBITS_SEED: others.
"""

import itertools
import os

import numpy as np
import pytest
import xarray as xr

from harness import convert, refused, run

CASES, SEED = int(os.environ.get("ZARRBITS_CASES", "25")), int(os.environ.get("ZARRBITS_SEED", "1"))
HOW = {"data_vars": "minimal", "coords": "minimal", "compat": "equals", "join": "outer", "combine_attrs": "override"}


def layout(dice):
    """A dataset, and the lengths of its parts along some dimensions."""
    names = ["time", "y", "x"][: dice.integers(2, 4)]
    cuts, coordinates = {}, {}
    for name in names:
        length = int(dice.integers(2, 10))
        values = np.cumsum(dice.integers(1, 5, length)).astype(dice.choice(["f4", "f8", "i4", "i8"]))
        lengths = [len(p) for p in np.split(values, np.unique(dice.integers(1, length, dice.integers(0, 3)))) if len(p)]
        if dice.random() < 0.3 and max(lengths) > 1:
            values = values[::-1]
        coordinates[name], cuts[name] = values, lengths
    shape = [len(coordinates[n]) for n in names]
    data = {
        "v": (names, dice.random(shape, "f4"), {"units": "K", "long_name": "a field"}),
        "w": (names[::-1], dice.integers(-99, 99, shape[::-1]).astype("i2")),
        "area": (names[-2:], dice.random(shape[-2:])),
        "first": (names[:1], np.array([f"n{i}" for i in range(shape[0])], object)),
        "level": ((), 2.5),
    }
    whole = xr.Dataset(data, coordinates, {"title": "tiles"})
    for name in names:
        whole[name].attrs["axis"] = name.upper()
    return whole, cuts


def parts(whole, cuts, folder):
    edges = {name: np.concatenate([[0], np.cumsum(lengths)]) for name, lengths in cuts.items()}
    for place in itertools.product(*(range(len(c)) for c in cuts.values())):
        box = {n: slice(int(edges[n][i]), int(edges[n][i + 1])) for n, i in zip(cuts, place)}
        path = folder / ("p" + "".join(map(str, place)) + ".nc")
        part = whole.isel(box)
        encoding = {n: {"chunksizes": tuple(min(3, s) for s in part[n].shape), "zlib": True} for n in ("v", "w")}
        encoding |= {n: {"_FillValue": None} for n in (*whole.coords, "area", "level")}
        part.to_netcdf(path, engine="netcdf4", encoding=encoding)
        yield str(path)


def test_layouts_as_xarray_combines_them(tmp_path):
    dice = np.random.default_rng(SEED)
    for case in range(CASES):
        folder = tmp_path / str(case)
        folder.mkdir()
        whole, cuts = layout(dice)
        paths = list(parts(whole, cuts, folder))
        if len(paths) < 2:
            continue
        dice.shuffle(paths)
        datasets = [xr.open_dataset(p, engine="netcdf4") for p in paths]
        expected = xr.combine_by_coords(datasets, **HOW).load()
        for d in datasets:
            d.close()
        xr.testing.assert_equal(expected.sortby(list(cuts)), whole.sortby(list(cuts)))
        dimensions = ",".join(cuts)
        convert("-q", "--concat", dimensions, *paths, folder / "all.zarr")
        with xr.open_zarr(folder / "all.zarr") as copy:
            xr.testing.assert_identical(copy.load(), expected)
        convert("-q", "--virtual", "--concat", dimensions, *paths, folder / "all.nc")
        for engine in "netcdf4", "h5netcdf":
            with xr.open_dataset(folder / "all.nc", engine=engine) as virtual:
                xr.testing.assert_identical(virtual.load(), expected)
        convert("-q", "--virtual", "--concat", dimensions, *paths, folder / "all.json")
        run("verify", "-q", "--concat", dimensions, *paths, folder / "all.json")


def test_variables_in_files_of_their_own(tmp_path):
    """CMIP's layout: xr.merge puts them together."""
    whole, cuts = layout(np.random.default_rng(SEED))
    paths = []
    for name in "v", "w":
        (tmp_path / name).mkdir()
        dataset = whole[[name]]
        encoding = {name: {"chunksizes": tuple(min(3, s) for s in dataset[name].shape)}}
        encoding |= {n: {"_FillValue": None} for n in whole.coords}
        for i, (a, b) in enumerate(itertools.pairwise(np.concatenate([[0], np.cumsum(cuts["time"])]))):
            paths.append(str(tmp_path / name / f"{i}.nc"))
            dataset.isel(time=slice(int(a), int(b))).to_netcdf(paths[-1], engine="netcdf4", encoding=encoding)
    datasets = [xr.open_dataset(p, engine="netcdf4") for p in paths]
    expected = xr.combine_by_coords(datasets, **HOW).load()
    others = ",".join(whole.sizes)
    convert("-q", "--concat", others, *paths, tmp_path / "all.zarr")
    with xr.open_zarr(tmp_path / "all.zarr") as copy:
        xr.testing.assert_identical(copy.load(), expected)


@pytest.mark.parametrize("fault", ["overlap", "another direction"])
def test_what_xarray_refuses(tmp_path, fault):
    x = {"overlap": [1, 3, 4], "another direction": [9, 8]}[fault]
    paths = []
    for i, values in enumerate(([0, 1, 2], x)):
        for k, y in enumerate(([0, 1], [2, 3])):
            d = xr.Dataset({"v": (("y", "x"), np.zeros((2, len(values))))}, {"y": y, "x": values})
            paths.append(str(tmp_path / f"{i}{k}.nc"))
            d.to_netcdf(paths[-1])
    with pytest.raises(ValueError):
        xr.combine_by_coords([xr.open_dataset(p) for p in paths], **HOW | {"join": "exact"})
    assert "cannot be combined" in refused("convert", "--concat", "y,x", *paths, tmp_path / "no.zarr")
