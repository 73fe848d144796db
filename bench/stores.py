# SPDX-License-Identifier: BSL-1.0
"""Zarr to Zarr and Zarr to HDF5 beside their peers: `zarrbits convert` and `export`; loops of zarr-python and h5py,
zarrs_reencode, rechunker, xarray's to_netcdf, and `cp`. CPU and elapsed seconds of whole processes, interleaved, medians; every
result is compared with the source.

python3 bench/stores.py build/release/bin/zarrbits PYTHON_WITH_ZARR [--rounds N] [--folder FOLDER] [--reencode zarrs_reencode]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from processes import measured

MAKE = """
import numpy as np, sys, zarr
from zarr.codecs import BloscCodec
root = zarr.create_group("rows.zarr")
rng = np.random.default_rng(1)
blosc = BloscCodec(cname="zstd", clevel=1)
a = root.create_array(
    "t2", shape=(256, 512, 512), chunks=(1, 512, 512), dtype="f4", compressors=blosc, dimension_names=("time", "y", "x"))
field = np.add.outer(np.sin(np.arange(512) / 40), np.cos(np.arange(512) / 60)).astype("f4")
for i in range(256):
    a[i] = np.round(280 + 10 * field + i / 50 + rng.normal(0, 0.05, field.shape), 2)
"""
# A loop that takes whole chunks of the target, as many as fit in the memory.
LOOP = """
import sys, zarr
from zarr.codecs import BloscCodec
_, out, chunks, shards = sys.argv
chunks, shards = eval(chunks), eval(shards)
old = zarr.open_group("rows.zarr", mode="r")["t2"]
new = zarr.create_group(out).create_array(
    "t2", shape=old.shape, chunks=chunks, shards=shards, dtype=old.dtype, compressors=BloscCodec(cname="zstd", clevel=1))
unit = shards or chunks
step = [max(u, (256 // u) * u) if i == 0 else (u if shards else max(u, 128 // u * u)) for i, u in enumerate(unit)]
for i in range(0, old.shape[0], step[0]):
    for j in range(0, old.shape[1], step[1]):
        for k in range(0, old.shape[2], step[2]):
            part = (slice(i, i + step[0]), slice(j, j + step[1]), slice(k, k + step[2]))
            new[part] = old[part]
"""
EXPORT_LOOP = """
import h5py, sys, zarr
old = zarr.open_group("rows.zarr", mode="r")["t2"]
with h5py.File(sys.argv[1], "w") as f:
    new = f.create_dataset("t2", old.shape, old.dtype, chunks=old.chunks, compression="gzip", shuffle=True)
    for i in range(old.shape[0]):
        new[i] = old[i]
"""
XARRAY = """
import sys, xarray
how = {"zlib": True, "shuffle": True, "complevel": 4, "chunksizes": (1, 512, 512)}
xarray.open_zarr("rows.zarr", consolidated=False).to_netcdf(sys.argv[1], engine=sys.argv[2], encoding={"t2": how})
"""
RECHUNKER = """
import sys, zarr
from rechunker import rechunk
old = zarr.open_group("rows.zarr", mode="r")["t2"]
rechunk(old, eval(sys.argv[2]), "512MB", sys.argv[1], temp_store="scratch.zarr").execute()
"""
CHECK = """
import numpy as np, sys, zarr
old = zarr.open_group("rows.zarr", mode="r")["t2"]
if sys.argv[1].endswith(".zarr"):
    new = zarr.open_group(sys.argv[1], mode="r")["t2"]
else:
    import h5py, hdf5plugin
    new = h5py.File(sys.argv[1])["t2"]
for i in range(0, 256, 32):
    np.testing.assert_array_equal(old[i : i + 32], new[i : i + 32])
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder")
    parser.add_argument("--reencode")
    a = parser.parse_args()
    ours, python = os.path.abspath(a.command), os.path.abspath(a.python)

    def loop(text, *arguments):
        return [python, "-c", text, *map(str, arguments)]

    jobs = {
        "copied, as it is": {
            "zarrbits": [ours, "convert", "-q", "rows.zarr", "T.zarr"],
            "cp -r": ["cp", "-r", "rows.zarr", "T.zarr"],
        },
        "into shards of 32 chunks": {
            "zarrbits": [ours, "convert", "-q", "rows.zarr", "T.zarr", "--shard", "32x512x512"],
            "zarr-python": loop(LOOP, "T.zarr", "(1, 512, 512)", "(32, 512, 512)"),
            "zarrs_reencode": [a.reencode, "rows.zarr/t2", "T.zarr/t2", "--shard-shape", "32,512,512"] if a.reencode else None,
        },
        "rows to columns, 512 MB": {
            "zarrbits": [ours, "convert", "-q", "rows.zarr", "T.zarr", "--chunk", "256x32x32"],
            "zarr-python": loop(LOOP, "T.zarr", "(256, 32, 32)", "None"),
            "rechunker": loop(RECHUNKER, "T.zarr", "(256, 32, 32)"),
            "zarrs_reencode": [a.reencode, "rows.zarr/t2", "T.zarr/t2", "--chunk-shape", "256,32,32"] if a.reencode else None,
        },
        "rows to columns, 32 MB, two passes": {
            "zarrbits": [ours, "convert", "-q", "rows.zarr", "T.zarr", "--chunk", "256x32x32", "--memory", "32M"],
        },
        "export, chunks copied": {
            "zarrbits": [ours, "export", "-q", "rows.zarr", "T.h5", "--filters", "any"],
            "cp -r": ["cp", "-r", "rows.zarr", "T.zarr"],
        },
        "export, shuffle and deflate 4": {
            "zarrbits": [ours, "export", "-q", "rows.zarr", "T.h5"],
            "zarr-python, h5py": loop(EXPORT_LOOP, "T.h5"),
            "xarray, netcdf4": loop(XARRAY, "T.h5", "netcdf4"),
            "xarray, h5netcdf": loop(XARRAY, "T.h5", "h5netcdf"),
        },
    }
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        os.chdir(folder)
        subprocess.run(loop(MAKE), check=True)
        with open("log", "w", encoding="utf-8") as log:
            print("| | | CPU s | elapsed s | over zarrbits' CPU |\n|---|---|---|---|---|")
            for name, ways in jobs.items():
                times = {way: [] for way, command in ways.items() if command}
                for _ in range(a.rounds):
                    for way in list(times):
                        target = next(word for word in ways[way] if word.startswith("T.")).split("/")[0]
                        once = measured(ways[way], target, log)
                        if once is None:
                            print(f"{name}: {way} failed:", open("log", encoding="utf-8").read()[-500:], file=sys.stderr)
                            del times[way]
                            continue
                        if not times[way] and "/t2" not in " ".join(ways[way]):
                            subprocess.run(loop(CHECK, target), check=True)
                        times[way].append(once)
                base = statistics.median(cpu for cpu, _ in times["zarrbits"])
                for way, runs in times.items():
                    cpu, elapsed = (statistics.median(x) for x in zip(*runs, strict=True))
                    print(f"| {name} | {way} | {cpu:.2f} | {elapsed:.2f} | {cpu / base:.2f} |", flush=True)


main()
