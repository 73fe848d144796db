# SPDX-License-Identifier: BSL-1.0
"""What many small files take: milliseconds of CPU (user + system, with all child processes) for each file of ours,
beside opening and closing it by h5py.

python3 bench/many_small.py --command build/release/bin/zarrbits --files 1000
"""

import argparse
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

OPEN = (
    "import glob, sys, h5py\nfor f in sorted(glob.glob(sys.argv[1] + '/*.nc')): h5py.h5f.open(f.encode(), "
    "h5py.h5f.ACC_RDONLY).close()"
)


def make(folder, files):
    """As netCDF's: two variables of 4 x 40 x 80, in 4 chunks each, with their scales."""
    noise = np.random.default_rng(1)
    for i in range(files):
        with h5py.File(folder / f"d{i:05}.nc", "w") as f:
            f.attrs["Conventions"] = "CF-1.8"
            f.attrs["history"] = f"made {i}"
            f.attrs["_NCProperties"] = "version=2,netcdf=4.9.0,hdf5=1.10.8"
            t = f.create_dataset("time", data=np.arange(4 * i, 4 * i + 4, dtype="i8"), chunks=(4,), maxshape=(None,))
            t.make_scale("time")
            t.attrs["units"] = "hours since 2000-01-01"
            for name, values in (("lat", np.linspace(-90, 90, 40)), ("lon", np.arange(80.0))):
                f[name] = values
                f[name].make_scale(name)
            for name in ("t2m", "u10"):
                d = f.create_dataset(
                    name,
                    data=noise.integers(0, 1000, (4, 40, 80)).astype("f4"),
                    chunks=(4, 20, 40),
                    maxshape=(None, 40, 80),
                    compression="gzip",
                    shuffle=True,
                )
                d.attrs["units"] = "K"
                for k, scale in enumerate(("time", "lat", "lon")):
                    d.dims[k].attach_scale(f[scale])


def cpu_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zarrbits-many-", dir="/dev/shm") as name:
        folder = pathlib.Path(name) / "files"
        empty = pathlib.Path(name) / "empty"
        folder.mkdir()
        empty.mkdir()
        make(folder, arguments.files)
        begin, files = [arguments.command, "convert", "--quiet"], ["--concat", "time", f"{folder}/*.nc"]
        ways = {
            "h5py, start": [sys.executable, "-c", OPEN, empty],
            "h5py, start, open and close": [sys.executable, "-c", OPEN, folder],
            "plan": [arguments.command, "plan", *files],
            "convert --virtual": [*begin, *files, "--virtual", f"{name}/out.json"],
            "convert --profile native": [*begin, "--profile", "native", *files, f"{name}/out.zarr"],
        }
        least = {}
        for _ in range(arguments.rounds):
            for way, command in ways.items():
                cpu = cpu_of(command)
                least[way] = min(cpu, least.get(way, cpu))
                shutil.rmtree(f"{name}/out.zarr", ignore_errors=True)
                pathlib.Path(f"{name}/out.json").unlink(missing_ok=True)
        least["h5py, open and close"] = least.pop("h5py, start, open and close") - least.pop("h5py, start")
        for way, cpu in sorted(least.items(), key=lambda each: each[1]):
            print(f"{way}: {1000 * cpu / arguments.files:.2f} ms a file")


main()
