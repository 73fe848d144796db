# SPDX-License-Identifier: BSL-1.0
"""Files with parts of several dimensions beside xarray: what combine_by_coords makes of them is in the copy, in the
references and in the file with virtual datasets (as netCDF4 and h5netcdf read it). Where xarray refuses, so does zarrbits.

ZARRBITS_CASES: layouts, 25 by default, and a fifth of them of members, places and variables. ZARRBITS_SEED: others.
"""

import glob
import itertools
import os
import pathlib
import re
import shlex

import numpy as np
import pytest
import xarray as xr
import zarr

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


def version(module):
    return tuple(int(n) for n in module.__version__.split(".")[:2])


@pytest.mark.filterwarnings("ignore")
def test_rectilinear_grids_of_uneven_tiles(tmp_path):
    """xarray and zarr-python read what combine_by_coords combines, with chunks that end where those of the files do."""
    if version(zarr) < (3, 2) or version(xr) < (2026, 9):
        pytest.skip("zarr-python or xarray cannot read rectilinear chunk grids")
    dice, rectilinear = np.random.default_rng(SEED), 0
    for case in range(CASES):
        folder = tmp_path / str(case)
        folder.mkdir()
        whole, cuts = layout(dice)
        paths = list(parts(whole, cuts, folder))
        if len(paths) < 2:
            continue
        dice.shuffle(paths)
        expected = xr.combine_by_coords([xr.open_dataset(p, engine="netcdf4") for p in paths], **HOW).load()
        how = ["--concat", ",".join(cuts), *paths]
        convert("-q", *how, folder / "all.zarr", "--grid", "rectilinear", "--profile", "native")
        with zarr.config.set({"array.rectilinear_chunks": True}):
            with xr.open_zarr(folder / "all.zarr", consolidated=False) as copy:
                xr.testing.assert_identical(copy.load(), expected)
            array = zarr.open_array(folder / "all.zarr" / "v", mode="r")
            if array.metadata.chunk_grid.to_dict()["name"] == "rectilinear":
                rectilinear += 1
                lengths = {n: [k for c in cuts[n] for k in np.diff([*range(0, c, min(3, c)), c])] for n in cuts}
                chunks = dict(zip(array.metadata.dimension_names, array.read_chunk_sizes))
                uneven = [n for n in cuts if list(chunks[n]) == lengths[n]]
                assert uneven, (chunks, lengths)
        run("verify", "-q", *how, folder / "all.zarr")
    assert rectilinear > CASES / 5


def test_variables_in_files_of_their_own(tmp_path):
    """CMIP's layout: combine_by_coords puts the times of a variable together, and merges the variables."""
    dice = np.random.default_rng(SEED)
    for case in range(max(CASES // 5, 2)):
        whole, cuts = layout(dice)
        names = ["v", "w", "area"][: dice.integers(2, 4)]
        paths, of_variables = [], []
        for name in names:
            folder = tmp_path / str(case) / name
            folder.mkdir(parents=True)
            dataset = whole[[name]]
            edges = np.concatenate([[0], np.cumsum(cuts["time"])]) if "time" in dataset.sizes else [0, 0]
            files = []
            for i, (a, b) in enumerate(itertools.pairwise(edges)):
                files.append(str(folder / f"{i}.nc"))
                part = dataset.isel(time=slice(int(a), int(b))) if "time" in dataset.sizes else dataset
                encoding = {name: {"chunksizes": tuple(min(3, s) for s in part[name].shape)}}
                encoding[name] |= {"_FillValue": None} if name == "area" else {}
                encoding |= {n: {"_FillValue": None} for n in part.coords}
                part.to_netcdf(files[-1], engine="netcdf4", encoding=encoding)
            of_variables.append(xr.combine_by_coords([xr.open_dataset(p, engine="netcdf4") for p in files], **HOW).load())
            paths += files
        dice.shuffle(paths)
        expected = xr.merge(of_variables, compat="identical", join="exact", combine_attrs="override")
        others = ",".join(whole.sizes)
        convert("-q", "--concat", others, *paths, tmp_path / str(case) / "all.zarr")
        with xr.open_zarr(tmp_path / str(case) / "all.zarr") as copy:
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


def ensemble(folder, dice, cut_time):
    """A folder for each member, which has a part of time in each file; what xarray makes of it."""
    whole, cuts = layout(dice)
    whole = whole.drop_vars("w")  # its dimensions begin with another one
    paths, of_members = [], []
    for i, name in enumerate(["r1", "r2", "r10"]):
        (folder / name).mkdir()
        member = whole.assign(v=whole["v"] + i, level=float(i))
        edges = np.concatenate([[0], np.cumsum(cuts["time"])]) if cut_time else [0, whole.sizes["time"]]
        files = []
        for k, (a, b) in enumerate(itertools.pairwise(edges)):
            files.append(str(folder / name / f"{k}.nc"))
            encoding = {n: {"_FillValue": None} for n in (*whole.coords, "area", "level")}
            member.isel(time=slice(int(a), int(b))).to_netcdf(files[-1], engine="netcdf4", encoding=encoding)
        of_members.append(xr.combine_by_coords([xr.open_dataset(f, engine="netcdf4") for f in files], **HOW).load())
        paths += files
    expected = xr.concat(of_members, "member", data_vars="all", coords="different", compat="equals", combine_attrs="override")
    return paths, whole, expected


@pytest.mark.parametrize("cut_time", [True, False])
def test_members_as_xarray_concatenates_them(tmp_path, cut_time):
    dice = np.random.default_rng(SEED)
    for case in range(max(CASES // 5, 2)):
        folder = tmp_path / str(case)
        folder.mkdir()
        paths, _, expected = ensemble(folder, dice, cut_time)
        how = ["--concat-new", "member", "--concat", "time"]
        convert("-q", *how, *paths, folder / "all.zarr")
        with xr.open_zarr(folder / "all.zarr") as copy:
            xr.testing.assert_identical(copy.load(), expected)
        convert("-q", "--virtual", *how, *paths, folder / "all.nc")
        for engine in "netcdf4", "h5netcdf":
            with xr.open_dataset(folder / "all.nc", engine=engine) as virtual:
                xr.testing.assert_identical(virtual.load(), expected)
        convert("-q", "--virtual", *how, *paths, folder / "all.json")
        run("verify", "-q", *how, *paths, folder / "all.json")


@pytest.mark.parametrize("order", ["name", "given"])
def test_nested_order_as_combine_nested_has_it(tmp_path, order):
    """Folders along a new dimension, their files along time, whatever the values of time are."""
    dice = np.random.default_rng(SEED)
    for case in range(max(CASES // 5, 2)):
        members, lengths = int(dice.integers(1, 4)), dice.integers(1, 5, dice.integers(2, 5))
        times = [dice.integers(0, 99, n).astype("f8") for n in lengths]
        grid, paths = [], []
        for i in range(members):
            folder = tmp_path / str(case) / f"r{i + 8}"
            folder.mkdir(parents=True)
            grid.append([])
            for k, time in enumerate(times):
                values = dice.random((len(time), 3))
                dataset = xr.Dataset({"v": (("time", "x"), values, {"units": "m"})}, {"time": time, "x": np.arange(3.0)})
                paths.append(str(folder / f"t{k + 9}.nc"))
                dataset.to_netcdf(paths[-1], encoding={n: {"_FillValue": None} for n in ("v", "time", "x")})
                grid[-1].append(xr.open_dataset(paths[-1], engine="netcdf4"))
        expected = xr.combine_nested(grid, ["member", "time"], data_vars="all", coords="minimal", compat="equals").load()
        if order == "name":
            dice.shuffle(paths)
        how = ["--concat-new", "member", "--concat", "time", "--order", order]
        convert("-q", *how, *paths, tmp_path / str(case) / "all.zarr")
        with xr.open_zarr(tmp_path / str(case) / "all.zarr") as copy:
            xr.testing.assert_equal(copy.load(), expected)


def test_places_as_combine_nested_has_them(tmp_path):
    """Without coordinates of y and x."""
    dice = np.random.default_rng(SEED)
    for case in range(max(CASES // 5, 2)):
        folder = tmp_path / str(case)
        folder.mkdir()
        runs, rows, columns = (int(n) for n in dice.integers(1, 4, 3))
        heights, widths = dice.integers(1, 5, rows), dice.integers(1, 5, columns)
        grid, lines = [[[] for _ in range(rows)] for _ in range(runs)], ["file,run,y,x"]
        for i, y, x in itertools.product(range(runs), range(rows), range(columns)):
            values = dice.random((heights[y], widths[x]))
            dataset = xr.Dataset({"v": (("y", "x"), values, {"units": "m"})}, attrs={"title": "tiles"})
            path = folder / f"{dice.integers(1 << 40)}.nc"
            dataset.to_netcdf(path, encoding={"v": {"_FillValue": None}})
            lines.append(f"{path.name},{i},{y},{x}")
            grid[i][y].append(xr.open_dataset(path, engine="netcdf4"))
        paths = sorted(folder.glob("*.nc"))
        if len(paths) < 2:
            continue
        expected = xr.combine_nested(grid, ["run", "y", "x"], data_vars="all", compat="equals", combine_attrs="override").load()
        (folder / "places.csv").write_text("\n".join(lines), encoding="utf-8")
        how = ["--concat-new", "run", "--concat", "y,x", "--places", folder / "places.csv"]
        convert("-q", *how, *paths, folder / "all.zarr")
        with xr.open_zarr(folder / "all.zarr") as copy:
            xr.testing.assert_identical(copy.load(), expected)
        convert("-q", "--virtual", *how, *paths, folder / "all.h5")
        for engine in "netcdf4", "h5netcdf":
            with xr.open_dataset(folder / "all.h5", engine=engine) as virtual:
                xr.testing.assert_identical(virtual.load(), expected)


@pytest.mark.parametrize("unit", ["hours", "days", "seconds"])
def test_epochs_of_their_own(tmp_path, unit):
    """Each file counts time from its own first day, as many models write it."""
    time = np.datetime64("2001-02-27", "ns") + np.arange(40) * np.timedelta64(6, "h")
    values = np.random.default_rng(SEED).random((40, 6))
    whole = xr.Dataset({"v": (("time", "x"), values)}, {"time": time, "x": np.arange(6.0)})
    whole["time_bnds"] = (("time", "bnds"), np.stack([time, time + np.timedelta64(6, "h")], 1))
    whole["time"].attrs["bounds"] = "time_bnds"
    paths = []
    for a, b in itertools.pairwise([0, 8, 12, 24, 40]):
        for x in (slice(0, 2), slice(2, 6)):
            epoch = np.datetime_as_string(time[a], "s").replace("T", " ")
            encoding = {n: {"_FillValue": None} for n in ("v", "x")}
            encoding["time"] = {"units": f"{unit} since {epoch}", "dtype": "f8" if unit == "days" else "i8", "_FillValue": None}
            encoding["time_bnds"] = {"_FillValue": None}
            paths.append(str(tmp_path / f"{a}_{x.start}.nc"))
            whole.isel(time=slice(a, b), x=x).to_netcdf(paths[-1], engine="netcdf4", encoding=encoding)
    expected = xr.combine_by_coords([xr.open_dataset(p, engine="netcdf4") for p in paths], **HOW).load()
    xr.testing.assert_equal(expected, whole)
    convert("-q", "--concat", "time,x", *paths, tmp_path / "all.zarr")
    with xr.open_zarr(tmp_path / "all.zarr") as copy:
        xr.testing.assert_identical(copy.load(), expected)
    convert("-q", "--virtual", "--concat", "time,x", *paths, tmp_path / "all.nc")
    with xr.open_dataset(tmp_path / "all.nc", engine="netcdf4") as virtual:
        xr.testing.assert_identical(virtual.load(), expected)
    convert("-q", "--virtual", "--concat", "time,x", *paths, tmp_path / "all.json")
    run("verify", "-q", "--concat", "time,x", *paths, tmp_path / "all.json")


def test_appended_parts_of_several_dimensions(tmp_path):
    """What is appended along one of them is what xarray combines at once."""
    dice = np.random.default_rng(SEED)
    appended = 0
    for case in range(CASES):
        folder = tmp_path / str(case)
        folder.mkdir()
        whole, cuts = layout(dice)
        grows = str(dice.choice(list(cuts)))
        if len(cuts[grows]) < 2:
            continue
        axis, last = list(cuts).index(grows), len(cuts[grows]) - 1
        paths = list(parts(whole, cuts, folder))
        new = [p for p in paths if int(pathlib.Path(p).stem[1 + axis]) == last]
        old = [p for p in paths if p not in new]
        expected = xr.combine_by_coords([xr.open_dataset(p, engine="netcdf4") for p in paths], **HOW).load()
        names = ",".join(dice.permutation(list(cuts)))
        convert("-q", "--concat", names, *dice.permutation(old), folder / "all.zarr")
        convert("-q", "--append", names, *dice.permutation(new), folder / "all.zarr")
        with xr.open_zarr(folder / "all.zarr") as copy:
            xr.testing.assert_identical(copy.load(), expected)
        run("verify", "-q", "--concat", names, *paths, folder / "all.zarr")
        appended += 1
    assert appended > CASES / 3


def test_the_four_layouts_of_the_guide(tmp_path):
    """The commands below "The four layouts" in docs/guide/many-files.md, beside what their table says of open_mfdataset."""
    whole, cuts = layout(np.random.default_rng(SEED + 1))
    guide = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/many-files.md"
    rows = re.findall(r"^\|.*?\| `zarrbits (convert .*?)` \| `(.*?)` \|$", guide.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 4
    encoding = {n: {"_FillValue": None} for n in whole.variables if n != "first"}
    for folder in "data", "tiles", "r1", "r2", "vars":
        (tmp_path / folder).mkdir()
    edges = np.concatenate([[0], np.cumsum(cuts["time"])])
    for k, (a, b) in enumerate(itertools.pairwise(edges)):
        part = whole.isel(time=slice(int(a), int(b)))
        part.to_netcdf(tmp_path / "data" / f"{k}.nc", encoding=encoding)
        for i, member in enumerate(("r1", "r2")):
            part.assign(v=part["v"] + i).to_netcdf(tmp_path / member / f"t{k}.nc", encoding=encoding)
        for name in "v", "w":
            part[[name]].to_netcdf(tmp_path / "vars" / f"{name}{k}.nc", encoding={n: {"_FillValue": None} for n in whole.coords})
    list(parts(whole, {n: cuts.get(n, [whole.sizes[n]]) for n in whole.sizes}, tmp_path / "tiles"))
    for command, call in rows:
        arguments = shlex.split(command.replace("y,x", ",".join(n for n in whole.sizes if n != "time")))
        run(*arguments, cwd=tmp_path)
        files = sorted(glob.glob(str(tmp_path / arguments[-2])))
        names = {"files": files, "runs": [files[: len(files) // 2], files[len(files) // 2 :]]}
        opened = eval(call, {**names, "open_mfdataset": xr.open_mfdataset, "concat": xr.concat})  # pylint: disable=eval-used
        with opened as expected, xr.open_zarr(tmp_path / arguments[-1]) as copy:
            xr.testing.assert_equal(copy.load(), expected.load())
