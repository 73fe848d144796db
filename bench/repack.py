# SPDX-License-Identifier: BSL-1.0
"""`zarrbits repack` beside cmip7repack, h5repack, nccopy and cp: CPU and elapsed seconds of whole processes, interleaved,
medians, and the sizes of what they wrote; every copy has the values of its source.

python3 bench/repack.py build/release/bin/zarrbits PYTHON_WITH_CMIP7_REPACK [--rounds N] [--folder FOLDER] [--only JOB]...

PYTHON_WITH_CMIP7_REPACK: one of an environment with the packages cmip7-repack, pyfive, h5py and netCDF4. h5repack and nccopy are
those in PATH.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from processes import measured

# A variable of a model: a smooth field that drifts, with noise of a few digits, in chunks of one time step.
MAKE = """
import netCDF4, numpy as np
rng = np.random.default_rng(1)
time, lat, lon = 1800, 144, 192
with netCDF4.Dataset("steps.nc", "w") as f:
    f.variable_id = "tas"
    for name, length in ("time", None), ("lat", lat), ("lon", lon), ("bnds", 2):
        f.createDimension(name, length)
    t = f.createVariable("time", "f8", ("time",), chunksizes=(1,))
    t.units, t.bounds = "days since 1850-01-01", "time_bnds"
    b = f.createVariable("time_bnds", "f8", ("time", "bnds"), chunksizes=(1, 2))
    f.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-90, 90, lat)
    f.createVariable("lon", "f8", ("lon",))[:] = np.arange(lon) * 360 / lon
    v = f.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, complevel=4, shuffle=True, chunksizes=(1, lat, lon))
    v.units = "K"
    field = np.add.outer(np.sin(np.arange(lat) / 20), np.cos(np.arange(lon) / 30))
    for i in range(time):
        v[i] = np.float32(280 + 10 * field + i / 50) + rng.normal(0, 0.05, field.shape).astype("f4")
    t[:] = np.arange(time)
    b[:] = np.stack([np.arange(time), np.arange(time) + 1], axis=1)
"""
MAKE_COLUMNS = """
import h5py, numpy as np
rng = np.random.default_rng(2)
with h5py.File("columns.h5", "w") as f:
    d = f.create_dataset("v", (2000, 20000), "f4", chunks=(2000, 1), compression="gzip", compression_opts=4, shuffle=True)
    for i in range(0, 20000, 2000):
        field = np.add.outer(np.sin(np.arange(2000) / 40), np.cos(np.arange(i, i + 2000) / 60))
        d[:, i : i + 2000] = field + rng.normal(0, 0.01, field.shape)
"""
CHECK = """
import h5py, numpy as np, sys
with h5py.File(sys.argv[1]) as old, h5py.File(sys.argv[2]) as new:
    name = "tas" if "tas" in old else "v"
    for i in range(0, old[name].shape[0], 100):
        np.testing.assert_array_equal(old[name][i : i + 100], new[name][i : i + 100])
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder")
    parser.add_argument("--only", action="append")
    a = parser.parse_args()
    ours, python = os.path.abspath(a.command), os.path.abspath(a.python)
    peer = os.path.join(os.path.dirname(python), "cmip7repack")
    rewritten = ["-f", "/tas:SHUF", "-f", "/tas:GZIP=4"]
    jobs = {
        "cmip7": {
            "zarrbits": [ours, "repack", "-q", "steps.nc", "T.nc", "--layout", "cmip7"],
            "zarrbits, one thread": [ours, "repack", "-q", "steps.nc", "T.nc", "--layout", "cmip7", "--threads", "1"],
            "cmip7repack": [peer, "steps.nc"],
            "h5repack": ["h5repack", *rewritten, "-l", "/tas:CHUNK=37x144x192", "steps.nc", "T.nc"],
            "nccopy": ["nccopy", "-c", "time/37,lat/144,lon/192", "-d", "4", "-s", "steps.nc", "T.nc"],
        },
        "asis": {
            "zarrbits": [ours, "repack", "-q", "steps.nc", "T.nc", "--layout", "asis"],
            "cp": ["cp", "steps.nc", "T.nc"],
        },
        "columns": {
            "zarrbits": [ours, "repack", "-q", "columns.h5", "T.h5", "--chunk", "/v=64x64"],
            "h5repack": ["h5repack", "-l", "/v:CHUNK=64x64", "columns.h5", "T.h5"],
        },
    }
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        os.chdir(folder)
        subprocess.run([python, "-c", MAKE], check=True)
        subprocess.run([python, "-c", MAKE_COLUMNS], check=True)
        with open("log", "w", encoding="utf-8") as log:
            print("| | | CPU s | elapsed s | over zarrbits' CPU | elapsed | size, MB |\n|---|---|---|---|---|---|---|")
            for name, ways in jobs.items():
                if a.only and name not in a.only:
                    continue
                source = "columns.h5" if name == "columns" else "steps.nc"
                times, sizes = {way: [] for way in ways}, {}
                for _ in range(a.rounds):
                    for way in list(times):
                        # cmip7repack names the copy itself
                        target = "steps.nc_cmip7repack" if way == "cmip7repack" else "T" + source[-3:]
                        once = measured(ways[way], target, log)
                        if once is None:
                            print(f"{name}: {way} failed:", open("log", encoding="utf-8").read()[-500:], file=sys.stderr)
                            del times[way]
                            continue
                        if way not in sizes:
                            subprocess.run([python, "-c", CHECK, source, target], check=True)
                            sizes[way] = os.path.getsize(target) / 1e6
                        times[way].append(once)
                middle = {way: [statistics.median(column) for column in zip(*t)] for way, t in times.items() if t}
                for way, (cpu, elapsed) in middle.items():
                    ratios = (cpu / middle["zarrbits"][0], elapsed / middle["zarrbits"][1])
                    print(
                        f"| {name} | {way} | {cpu:.2f} | {elapsed:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {sizes[way]:.1f} |"
                    )


if __name__ == "__main__":
    main()
