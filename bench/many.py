# SPDX-License-Identifier: BSL-1.0
"""Daily netCDF files to one store: CPU time (user + system, of the whole process and all its threads), the ways taking turns."""
import argparse
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

BEGIN, END = "<!-- scripts/bench-many: begin -->", "<!-- scripts/bench-many: end -->"
PAGE = pathlib.Path(__file__).parent.parent / "docs/performance.md"

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
"""
XARRAY = """
import glob, sys, xarray as xr
ds = xr.open_mfdataset(sorted(glob.glob(sys.argv[1] + "/*.nc")), combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="override")
for v in ds.variables.values():
    v.encoding = {}
ds.to_zarr(sys.argv[2], zarr_format=3, consolidated=False)
"""
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
KERCHUNK = """
import glob, sys, json
from kerchunk.hdf import SingleHdf5ToZarr
from kerchunk.combine import MultiZarrToZarr
refs = [SingleHdf5ToZarr(f).translate() for f in sorted(glob.glob(sys.argv[1] + "/*.nc"))]
json.dump(MultiZarrToZarr(refs, concat_dims=["time"], identical_dims=["lat", "lon"]).translate(), open(sys.argv[2], "w"))
"""


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
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)


def measure(arguments, folder, days):
    sources, rows = folder / f"files{days}", {}
    sources.mkdir()
    subprocess.run([arguments.python, "-W", "ignore", "-c", MAKE, sources, str(days)], check=True)
    zarrbits = [arguments.command, "convert", "--quiet", "--concat", "time", f"{sources}/*.nc", "{out}"]
    python = [arguments.python, "-W", "ignore", "-c"]
    ways = {"zarrbits, native": zarrbits + ["--profile", "native"],
            "zarrbits, native, shards of 64M": zarrbits + ["--profile", "native", "--shard", "64M"],
            "zarrbits": zarrbits,
            "xarray, open_mfdataset to to_zarr": python + [XARRAY, sources, "{out}"],
            "VirtualiZarr to icechunk, references alone": python + [VIRTUALIZARR, sources, "{out}"],
            "kerchunk, references alone": python + [KERCHUNK, sources, "{out}"],
            "cp -r of the native store": ["cp", "-r", folder / "native", "{out}"]}
    subprocess.run([str(c).replace("{out}", str(folder / "native")) for c in ways["zarrbits, native"]], check=True)
    out, seconds = folder / "out", {}
    for _ in range(arguments.rounds):
        for name, command in ways.items():
            remove(out)
            cpu = cpu_of([str(c).replace("{out}", str(out)) for c in command])
            if cpu is not None:
                seconds.setdefault(name, []).append(cpu)
    remove(out)
    stored = sum(f.stat().st_size for f in sources.iterdir())
    rows = {name: statistics.median(times) for name, times in seconds.items()}
    shutil.rmtree(sources)
    shutil.rmtree(folder / "native")
    return stored, rows


def table(days, stored, rows):
    base = rows.get("xarray, open_mfdataset to to_zarr")
    lines = [f"{days} files, {stored / 1e6:.0f} MB", "", "| | CPU s | times xarray |", "|---|---|---|"]
    for name, cpu in rows.items():
        lines.append(f"| {name} | {cpu:.2f} | {f'{base / cpu:.1f}' if base else ''} |")
    return lines + [""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--python", required=True, help="that has xarray, netCDF4, h5py, virtualizarr, icechunk and kerchunk")
    parser.add_argument("--days", type=int, nargs="+", default=[40, 400])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--no-page", action="store_true")
    arguments = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="zarrbits-many-") as folder:
        for days in arguments.days:
            stored, rows = measure(arguments, pathlib.Path(folder), days)
            lines += table(days, stored, rows)
    print("\n".join(lines))
    if arguments.no_page:
        return
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    if not rest:
        sys.exit(f"{PAGE} has no place for it")
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(lines) + END + rest.partition(END)[2])


main()
