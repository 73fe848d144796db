# SPDX-License-Identifier: BSL-1.0
"""Daily netCDF files, or tiles of a map, to one store: CPU time (user + system, of the whole process and all its threads), the
ways taking turns."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile

# Programs for the Python that has the peers; sys.argv: the folder of files, then what to make.
MAKE = """
import sys, numpy as np, xarray as xr
noise, days = np.random.default_rng(1), int(sys.argv[2])
lat, lon = np.linspace(-90, 90, 181), np.arange(360.)
slow = np.cumsum(noise.normal(0, .2, (24, 181, 360)), axis=2)
for i in range(days):
    field = {n: (("time", "lat", "lon"), np.round(slow * (1 + .01 * i) + noise.normal(0, .02, slow.shape), 2).astype("f4")) for n in ("t2m", "u10")}
    time = np.datetime64("2000-01-01", "ns") + (np.arange(24) + 24 * i) * np.timedelta64(1, "h")
    how = {"zlib": True, "shuffle": True, "complevel": 4, "chunksizes": (24, 91, 180)}
    xr.Dataset(field, coords={"time": time, "lat": lat, "lon": lon}).to_netcdf(
        f"{sys.argv[1]}/d{i:04}.nc", unlimited_dims=["time"], encoding={"t2m": how, "u10": how, "time": {"units": "hours since 2000-01-01", "dtype": "i8"}})
"""  # noqa: E501
MAKE_TILES = """
import sys, h5py, numpy as np
noise, number, side = np.random.default_rng(1), int(sys.argv[2]), 64
across = max(int((number / 4) ** .5), 1)
for i in range(number):
    t, y, x = i // across ** 2, i // across % across, i % across
    with h5py.File(f"{sys.argv[1]}/{i:05}.nc", "w") as f:
        for name, first, n in ("time", 6 * t, 6), ("y", side * y, side), ("x", side * x, side):
            f[name] = np.arange(first, first + n, dtype="f8")
            f[name].make_scale(name)
        values = np.round(noise.normal(280, 5, (6, side, side)), 1).astype("f4")
        d = f.create_dataset("t2m", data=values, chunks=values.shape, compression="gzip", shuffle=True)
        for k, name in enumerate(("time", "y", "x")):
            d.dims[k].attach_scale(f[name])
"""
XARRAY_TILES = """
import glob, sys, xarray as xr
ds = xr.open_mfdataset(sorted(glob.glob(sys.argv[1] + "/*.nc")), data_vars="minimal", coords="minimal", compat="override", join="outer", decode_times=False)
for v in ds.variables.values():
    v.encoding = {}
ds.to_zarr(sys.argv[2], zarr_format=3, consolidated=False)
"""  # noqa: E501
XARRAY = """
import glob, sys, xarray as xr
ds = xr.open_mfdataset(sorted(glob.glob(sys.argv[1] + "/*.nc")), combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="override")
for v in ds.variables.values():
    v.encoding = {}
ds.to_zarr(sys.argv[2], zarr_format=3, consolidated=False)
"""  # noqa: E501
VIRTUALIZARR = """
import glob, os, sys, icechunk, xarray as xr
from obstore.store import LocalStore
from virtualizarr import open_virtual_dataset
from virtualizarr.parsers import HDFParser
try:
    from obspec_utils.registry import ObjectStoreRegistry
except ImportError:
    from virtualizarr.registry import ObjectStoreRegistry
folder = "file://" + os.path.abspath(sys.argv[1])
files = ["file://" + os.path.abspath(f) for f in sorted(glob.glob(sys.argv[1] + "/*.nc"))]
registry = ObjectStoreRegistry({"file://": LocalStore()})
one = [open_virtual_dataset(f, registry=registry, parser=HDFParser(), loadable_variables=["time", "lat", "lon"]) for f in files]
ds = xr.concat(one, dim="time", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override")
config = icechunk.RepositoryConfig.default()
config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(folder + "/", icechunk.local_filesystem_store(sys.argv[1])))
session = icechunk.Repository.create(icechunk.local_filesystem_storage(sys.argv[2]), config).writable_session("main")
ds.vz.to_icechunk(session.store)
session.commit("all")
"""
VIRTUALIZARR_TILES = VIRTUALIZARR.replace('["time", "lat", "lon"]', '["time", "y", "x"], decode_times=False').replace(
    'xr.concat(one, dim="time", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override")',
    'xr.combine_by_coords(one, data_vars="minimal", coords="minimal", compat="override", join="outer", combine_attrs="override")',
)
KERCHUNK = """
import glob, sys, json
from kerchunk.hdf import SingleHdf5ToZarr
from kerchunk.combine import MultiZarrToZarr
refs = [SingleHdf5ToZarr(f).translate() for f in sorted(glob.glob(sys.argv[1] + "/*.nc"))]
json.dump(MultiZarrToZarr(refs, concat_dims=["time"], identical_dims=["lat", "lon"]).translate(), open(sys.argv[2], "w"))
"""
TO_ICECHUNK = """
import subprocess, sys, zarrbits
subprocess.run(sys.argv[3:], check=True)
zarrbits.to_icechunk(sys.argv[2] + ".json", sys.argv[2])
"""
# A series at one point, which has a chunk in each file, and the map of one time, of four chunks;
# wall clock, after opening, taking turns.
SLICES = """
import json, statistics, sys, time, zarr, zarrbits
stores = {"kerchunk": zarr.storage.FsspecStore.from_url("reference://", storage_options={"fo": sys.argv[1], "remote_protocol": "file"}, read_only=True)}
stores |= {"zarrbits, " + path.rpartition(".")[2]: zarrbits.open_references(path) for path in sys.argv[2:]}
arrays, times = {name: zarr.open_group(store, mode="r")["t2m"] for name, store in stores.items()}, {}
slices = {"series": (slice(None), 90, 180), "map": (5, slice(None), slice(None))}
for _ in range(15):
    for what, at in slices.items():
        for name, array in arrays.items():
            begin = time.perf_counter()
            array[at]
            times.setdefault(what, {}).setdefault(name, []).append(time.perf_counter() - begin)
print(json.dumps({what: {name: statistics.median(t) for name, t in of.items()} for what, of in times.items()}))
"""  # noqa: E501


def cpu_of(command):
    """Seconds, or None where it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        print(f"failed: {' '.join(map(str, command))[-200:]}: {done.stderr.strip()[-300:]}")
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def remove(path):
    for one in path.parent.glob(path.name + "*"):
        shutil.rmtree(one) if one.is_dir() else one.unlink()


def measure(arguments, folder, days):
    sources, rows = folder / f"files{days}", {}
    sources.mkdir()
    subprocess.run([arguments.python, "-W", "ignore", "-c", MAKE, sources, str(days)], check=True)
    zarrbits = [arguments.command, "convert", "--quiet", "--concat", "time", f"{sources}/*.nc", "{out}"]
    python = [arguments.python, "-W", "ignore", "-c"]
    ways = {
        "zarrbits, native": zarrbits + ["--profile", "native"],
        "zarrbits, native, shards of 64M": zarrbits + ["--profile", "native", "--shard", "64M"],
        "zarrbits": zarrbits,
        "xarray, open_mfdataset to to_zarr": python + [XARRAY, sources, "{out}"],
        "zarrbits --virtual, JSON": zarrbits[:-1] + ["--virtual", "{out}.json"],
        "zarrbits --virtual, Parquet": zarrbits[:-1] + ["--virtual", "{out}.parquet"],
        "zarrbits --virtual, then to_icechunk": python
        + [TO_ICECHUNK, sources, "{out}", *zarrbits[:-1], "--virtual", "{out}.json"],
        "VirtualiZarr to icechunk, references alone": python + [VIRTUALIZARR, sources, "{out}"],
        "kerchunk, references alone": python + [KERCHUNK, sources, "{out}"],
        "cp -r of the native store": ["cp", "-r", folder / "native", "{out}"],
    }
    subprocess.run([str(c).replace("{out}", str(folder / "native")) for c in ways["zarrbits, native"]], check=True)
    rows = medians(ways, folder / "out", arguments.rounds)
    slices = read_slices(ways, folder / "slices", python)
    stored = sum(f.stat().st_size for f in sources.iterdir())
    shutil.rmtree(sources)
    shutil.rmtree(folder / "native")
    return stored, rows, slices


def medians(ways, out, rounds):
    seconds = {}
    for _ in range(rounds):
        for name, command in ways.items():
            remove(out)
            cpu = cpu_of([str(c).replace("{out}", str(out)) for c in command])
            if cpu is not None:
                seconds.setdefault(name, []).append(cpu)
    remove(out)
    return {name: statistics.median(times) for name, times in seconds.items()}


def measure_tiles(arguments, folder, number):
    sources = folder / f"tiles{number}"
    sources.mkdir()
    python = [arguments.python, "-W", "ignore", "-c"]
    subprocess.run([*python, MAKE_TILES, sources, str(number)], check=True)
    zarrbits = [arguments.command, "convert", "--quiet", "--concat", "time,y,x", f"{sources}/*.nc", "{out}"]
    ways = {
        "zarrbits, native": zarrbits + ["--profile", "native"],
        "zarrbits": zarrbits,
        "xarray, open_mfdataset to to_zarr": python + [XARRAY_TILES, sources, "{out}"],
        "zarrbits --virtual, JSON": zarrbits[:-1] + ["--virtual", "{out}.json"],
        "VirtualiZarr to icechunk, references alone": python + [VIRTUALIZARR_TILES, sources, "{out}"],
    }
    rows = medians(ways, folder / "out", arguments.rounds)
    stored = sum(f.stat().st_size for f in sources.iterdir())
    shutil.rmtree(sources)
    return stored, rows, {}


def read_slices(ways, out, python):
    """Seconds of each slice, by each kind of references; of those that could be made."""
    made = {
        "kerchunk, references alone": ".kerchunk",
        "zarrbits --virtual, JSON": ".json",
        "zarrbits --virtual, Parquet": ".parquet",
    }
    paths = []
    for way, suffix in made.items():
        name = out.with_suffix(suffix)
        if cpu_of([str(c).replace("{out}", str(name if suffix == ".kerchunk" else out)) for c in ways[way]]) is not None:
            paths.append(name)
    read = subprocess.run([*python, SLICES, *paths], capture_output=True, text=True)
    if read.returncode != 0:
        print(f"slices could not be read: {read.stderr.strip()[-300:]}")
        return {}
    return json.loads(read.stdout)


def table(what, stored, rows, slices):
    base = rows.get("xarray, open_mfdataset to to_zarr")
    lines = [f"{what}, {stored / 1e6:.0f} MB", "", "| | CPU s | times xarray |", "|---|---|---|"]
    for name, cpu in rows.items():
        lines.append(f"| {name} | {cpu:.2f} | {f'{base / cpu:.1f}' if base else ''} |")
    for i, (part, times) in enumerate(slices.items()):
        if i == 0:
            lines += ["", f"| read through references, ms | {' | '.join(times)} |", "|---|" + "---|" * len(times)]
        lines.append(f"| {part} | {' | '.join(f'{t * 1e3:.1f}' for t in times.values())} |")
    return lines + [""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--python", required=True, help="that has xarray, netCDF4, h5py, virtualizarr, icechunk and kerchunk")
    parser.add_argument("--days", type=int, nargs="*", default=[40, 400])
    parser.add_argument("--tiles", type=int, nargs="*", default=[2500])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).resolve().parent.parent / "python")  # our package, as it is here
    lines = []
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="zarrbits-many-") as folder:
        for days in arguments.days:
            stored, rows, slices = measure(arguments, pathlib.Path(folder), days)
            lines += table(f"{days} daily files", stored, rows, slices)
        for number in arguments.tiles:
            lines += table(f"{number} tiles", *measure_tiles(arguments, pathlib.Path(folder), number))
    print("\n".join(lines))


main()
