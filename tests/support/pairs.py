# SPDX-License-Identifier: BSL-1.0
"""Every kind of source that `convert` reads and every kind of target that it writes, with the same values in all of them, and
readers of the targets that have nothing of zarrbits."""

import base64
import json
import pathlib
import shutil
import zipfile

import h5py
import numpy as np

import v2_store
from harness import convert, execute, same
from store import Store

STEPS = 24
SHAPE = (20, 30)
CHUNK = (4, 10, 30)


def values(steps=range(STEPS)):
    """What a source has of these steps of time, by the names of the variables."""
    steps = np.asarray(steps)
    grid = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)
    return {
        "time": steps.astype("f8"),
        "t2m": (steps[:, None, None] * 7919 + grid).astype("i4"),
        "count": (steps * 3 - 5).astype("i2"),
        "level": np.arange(5, dtype="f4") / 4,
    }


def attach_dimensions(dataset, *names):
    """Makes dimension scales of the datasets with these names, or new ones for dimensions that netCDF has no variable of."""
    f = dataset.file
    for axis, name in enumerate(names):
        if name not in f:
            scale = f.create_dataset(name, (dataset.shape[axis],), ">f4")
            scale.make_scale(f"This is a netCDF dimension but not a netCDF variable.{dataset.shape[axis]:10}")
        elif not h5py.h5ds.is_scale(f[name].id):
            f[name].make_scale(name)
        if name != dataset.name[1:]:
            dataset.dims[axis].attach_scale(f[name])


def write_hdf5(path, steps=range(STEPS)):
    """As netCDF-4 has it: time is a dimension scale, and the first dimension of two variables."""
    data = values(steps)
    with h5py.File(path, "w", track_order=True) as f:
        for name, array in data.items():
            chunks = {"time": (CHUNK[0],), "t2m": CHUNK, "count": (CHUNK[0],)}.get(name)
            filters = {"compression": "gzip", "shuffle": True} if name == "t2m" else {}
            maximum = (None, *array.shape[1:]) if chunks else None
            f.create_dataset(name, data=array, chunks=chunks, maxshape=maximum, **filters)
        f["time"].attrs["units"] = np.bytes_("hours since 2000-01-01")
        attach_dimensions(f["t2m"], "time", "y", "x")
        attach_dimensions(f["count"], "time")
        attach_dimensions(f["level"], "level")
        f["t2m"].attrs["units"] = np.bytes_("K")


def halves(folder, suffix):
    return [folder / f"{half}{suffix}" for half in ("first", "second")]


def hdf5_file(folder, write):
    write(folder / "in.h5")
    return [folder / "in.h5"]


def netcdf3_file(folder, write):
    write(folder / "in.h5")
    execute("nccopy", "-u", "-k", "classic", folder / "in.h5", folder / "in.nc")
    return [folder / "in.nc"]


def converted(target, *options):
    def make(folder, write):
        convert("-q", *hdf5_file(folder, write), folder / target, *options)
        return [folder / target]

    return make


def hdf5_halves(folder, write):
    for path, steps in zip(halves(folder, ".h5"), (range(STEPS // 2), range(STEPS // 2, STEPS))):
        write(path, steps)
    return halves(folder, ".h5")


def store_halves(folder, write):
    for file, store in zip(hdf5_halves(folder, write), halves(folder, ".zarr")):
        convert("-q", file, store)
    return halves(folder, ".zarr")


SOURCES = {
    "HDF5": hdf5_file,
    "netCDF-3": netcdf3_file,
    "Zarr": converted("in.zarr"),
    "shards": converted("in.zarr", "--shard", "12x20x30"),
    "Zarr v2": converted("in.zarr", "--zarr-format", "2"),
    "zip": converted("in.zip"),
    "references": converted("in.json", "--virtual"),
    "Parquet": converted("in.parquet", "--virtual"),
    "HDF5 files": hdf5_halves,
    "stores": store_halves,
}


def make_source(kind, folder, write=write_hdf5):
    """Writes a source into a folder: its names for the command. `write` makes an HDF5 file of some steps."""
    return SOURCES[kind](folder, write)


# their names, and the options
TARGETS = {
    "Zarr": ("out.zarr", []),
    "shards": ("out.zarr", ["--shard", "12x20x30"]),
    "other chunks": ("out.zarr", ["--chunk", "7x20x11"]),
    "Zarr v2": ("out.zarr", ["--zarr-format", "2"]),
    "zip": ("out.zip", []),
    "references": ("out.json", ["--virtual"]),
    "Parquet": ("out.parquet", ["--virtual"]),
    "HDF5": ("out.h5", []),
}
PAIRS = [(source, target) for source in SOURCES for target in TARGETS]


def joins(names):
    return ["--concat", "time"] if len(names) > 1 else []


def gathered(references, folder):
    """The objects of a JSON file of references, in a folder."""
    for key, entry in json.loads(references.read_text(encoding="utf-8"))["refs"].items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, str):
            inline = entry.removeprefix("base64:")
            path.write_bytes(base64.b64decode(inline) if inline != entry else entry.encode())
            continue
        url, begin, size = entry
        file = pathlib.Path(url.removeprefix("file://"))
        path.write_bytes((references.parent / file).read_bytes()[begin : begin + size])
    return folder


def read(path, scratch):
    """The values of a target, by the names of the arrays. `scratch`: a folder that is made for it. None of Parquet files."""
    if path.suffix == ".parquet":
        return None
    if path.suffix == ".h5":
        with h5py.File(path) as f:
            return {name: f[name][()] for name in f if name in values()}
    if path.suffix == ".zip":
        zipfile.ZipFile(path).extractall(scratch)
        path = scratch
    if path.suffix == ".json":
        path = gathered(path, scratch)
    if (path / "zarr.json").exists():
        return {name: Store(path).read(name) for name in values() if Store(path).has(name)}
    return {name: v2_store.read(path, name) for name in values() if (path / name / ".zarray").exists()}


def is_equal(path, expected):
    """Whether two targets have the same bytes."""
    if expected.is_file():
        return path.is_file() and path.read_bytes() == expected.read_bytes()
    try:
        same(expected, path)
    except AssertionError:
        return False
    return True


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
