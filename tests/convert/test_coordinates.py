# SPDX-License-Identifier: BSL-1.0
"""`--include` names the coordinate variables that it leaves out, and `--with-coordinates` takes them."""

import json
import pathlib

import h5py
import numpy as np
import pytest

from harness import convert, run, same, verify


def make(path):
    with h5py.File(path, "w") as f:
        for group in (f, f.create_group("deep")):
            for name, n in (("time", 4), ("y", 3), ("x", 2)):
                group[name] = np.arange(n, dtype="f8")
                group[name].make_scale(name)
        f["time"].attrs["bounds"] = "time_bnds"
        f["time_bnds"] = np.zeros((4, 2))
        for name in ("lat", "lon"):
            f[name] = np.zeros((3, 2))
        f["crs"] = 0
        f["unused"] = np.arange(7)
        for name in ("t2m", "deep/wind"):
            d = f.create_dataset(name, data=np.zeros((4, 3, 2), "f4"))
            d.attrs["coordinates"] = "lat lon absent"
            d.attrs["grid_mapping"] = "crs: lat lon"
            for i, scale in enumerate(("time", "y", "x")):
                d.dims[i].attach_scale(d.parent[scale])
    return str(path)


@pytest.fixture(params=["hdf5", "zarr"])
def source(request, tmp_path):
    file = make(tmp_path / "in.h5")
    if request.param == "hdf5":
        return file
    convert(file, tmp_path / "in.zarr", "-q")
    return str(tmp_path / "in.zarr")


def arrays(store):
    nodes = {str(p.parent.relative_to(store)): json.loads(p.read_text()) for p in pathlib.Path(store).rglob("zarr.json")}
    return {path for path, node in nodes.items() if node["node_type"] == "array"}


OF_T2M = {"time", "y", "x", "time_bnds", "lat", "lon", "crs"}


def test_a_note_names_what_is_left_out(source, tmp_path):
    for said in (
        convert(source, tmp_path / "out.zarr", "--include", "/t2m").stderr,
        run("plan", source, "--include", "/t2m").stderr,
    ):
        (note,) = [line for line in said.splitlines() if "coordinate" in line]
        assert 'note: 7 coordinate variables of what --include selects are left out: "/crs", "/lat", "/lon", "/time", ' in note
        assert note.endswith("; --with-coordinates converts them, too")
    assert arrays(tmp_path / "out.zarr") == {"t2m"}
    assert "coordinate" not in convert(source, tmp_path / "quiet.zarr", "-q", "--include", "/t2m").stderr
    assert "coordinate" not in convert(source, tmp_path / "whole.zarr").stderr
    assert "coordinate" not in convert(source, tmp_path / "root.zarr", "--include", "/unused").stderr


def test_with_coordinates_takes_them(source, tmp_path):
    said = convert(source, tmp_path / "out.zarr", "--include", "/t2m", "--with-coordinates").stderr
    assert "7 coordinate variables of what --include selects are converted, too" in said
    assert arrays(tmp_path / "out.zarr") == {"t2m"} | OF_T2M
    # names in the group, else in those above
    convert(source, tmp_path / "deep.zarr", "--include", "/deep/wind", "--with-coordinates")
    assert arrays(tmp_path / "deep.zarr") == {"deep/wind", "deep/time", "deep/y", "deep/x", "lat", "lon", "crs"}
    # excluded ones stay out, and are not missed
    said = convert(source, tmp_path / "less.zarr", "--include", "/t2m", "--exclude", "/lat", "--exclude", "/time").stderr
    assert '"/lat"' not in said and '"/time"' not in said and '"/lon"' in said
    convert(source, tmp_path / "fewer.zarr", "--include", "/t2m", "--exclude", "/lat", "--with-coordinates")
    assert arrays(tmp_path / "fewer.zarr") == {"t2m"} | OF_T2M - {"lat"}


def test_verify_expects_them_with_the_same_option(source, tmp_path):
    selection = ["--include", "/t2m", "--with-coordinates"]
    store = tmp_path / "out.zarr"
    convert(source, store, "-q", *selection)
    assert verify(source, store, *selection)["datasets"]["equal"] == 1 + len(OF_T2M)
    less = tmp_path / "less.zarr"
    convert(source, less, "-q", "--include", "/t2m")
    report = verify(source, less, *selection, status=1)
    missing = {f["path"].lstrip("/") for f in report["findings"] if f["kind"] == "dataset" and f["outcome"] == "missing"}
    assert missing == OF_T2M
    # without the option, they are neither required nor ignored
    verify(source, less, "--include", "/t2m")
    verify(source, store, "--include", "/t2m")
    # what is excluded need not be there
    convert(source, tmp_path / "fewer.zarr", "-q", *selection, "--exclude", "/lat")
    verify(source, tmp_path / "fewer.zarr", *selection, "--exclude", "/lat")
    verify(source, tmp_path / "fewer.zarr", *selection, status=1)


def test_verify_expects_the_coordinates_of_joined_files(tmp_path):
    files = []
    for day in range(2):
        files.append(str(tmp_path / f"{day}.h5"))
        with h5py.File(files[-1], "w") as f:
            f.create_dataset("time", data=[float(day)], chunks=(1,), maxshape=(None,)).make_scale("time")
            f["t2m"] = np.zeros((1, 3))
            f["t2m"].dims[0].attach_scale(f["time"])
            f["height"] = 2.0
            # only of the second file: convert takes what the first one names
            f["orography"] = np.zeros(3)
            f["t2m"].attrs["coordinates"] = "height orography" if day else "height"
    selection = ["--include", "/t2m", "--with-coordinates"]
    convert("--concat", "time", *files, tmp_path / "out.zarr", "-q", *selection)
    assert arrays(tmp_path / "out.zarr") == {"t2m", "time", "height"}
    verify("--concat", "time", *files, tmp_path / "out.zarr", *selection)


def test_netcdf_dimensions_without_a_variable_are_no_coordinates(tmp_path):
    with h5py.File(tmp_path / "in.nc", "w") as f:
        f.attrs["_NCProperties"] = "version=2,netcdf=4.9.0,hdf5=1.12.2"
        for i, name in enumerate(("time", "station")):
            f[name] = np.arange(3.0)
            f[name].make_scale("time" if name == "time" else f"This is a netCDF dimension but not a netCDF variable.{3:10d}")
            f[name].attrs["_Netcdf4Dimid"] = np.int32(i)
        f["t2m"] = np.zeros((3, 3))
        for i, name in enumerate(("time", "station")):
            f["t2m"].dims[i].attach_scale(f[name])
    selection = ["--include", "/t2m", "--with-coordinates"]
    convert(tmp_path / "in.nc", tmp_path / "out.zarr", "-q", *selection)
    assert arrays(tmp_path / "out.zarr") == {"t2m", "time"}
    verify(tmp_path / "in.nc", tmp_path / "out.zarr", *selection)


def test_partitions_take_the_same_ones(source, tmp_path):
    convert(source, tmp_path / "one.zarr", "-q", "--include", "/t2m", "--with-coordinates")
    for i in range(2):
        convert(source, tmp_path / "many.zarr", "-q", "--include", "/t2m", "--with-coordinates", "--partition", f"{i}/2")
    run("finalize", source, tmp_path / "many.zarr", "-q")
    same(tmp_path / "one.zarr", tmp_path / "many.zarr")


@pytest.mark.parametrize("selection", [["--include", "/t2m", "--with-coordinates"], []])
def test_a_coordinate_of_appended_files_is_compared_with_the_store(selection, tmp_path):
    files = []
    for day in range(2):
        files.append(str(tmp_path / f"{day}.h5"))
        with h5py.File(files[-1], "w") as f:
            f.create_dataset("time", data=[float(day)], chunks=(1,), maxshape=(None,)).make_scale("time")
            f["lat"] = np.arange(3.0) + day
            f["lat"].make_scale("lat")
            t2m = f.create_dataset("t2m", data=np.zeros((1, 3)), chunks=(1, 3), maxshape=(None, 3))
            for i, scale in enumerate(("time", "lat")):
                t2m.dims[i].attach_scale(f[scale])
    store = tmp_path / "out.zarr"
    convert("--concat", "time", files[0], store, "-q", "--include", "/t2m", "--with-coordinates")
    said = convert("--append", "time", files[1], store, "-q", *selection, status=1).stderr
    assert '"/lat"' in said and "not joined" in said, said
