# SPDX-License-Identifier: BSL-1.0
"""Where each way of making chunks spends its time, by `perf` (Debian's linux-perf): a row for each.
Run it in an environment with h5py and hdf5plugin, as build/bench/zarr/bin/python is:

    convert_profile.py COMMAND [FOLDER]
"""

import collections
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import h5py
import hdf5plugin
import numpy as np

SIDE = 8192  # 8192 x 4096 float32: 134 MB
PARTS = {
    "kernel": "kernel",
    "libhdf5": "libhdf5",
    "codecs": "libdeflate|libblosc|libzstd|liblz4|libz[.]",
    "C library": "libc[.]|libstdc",
    "zarrbits": "zarrbits",
}


def values():
    rng = np.random.default_rng(1)
    n = SIDE * 4096
    return (np.sin(np.arange(n) / 5000).astype("f4") * 100 + rng.normal(0, 0.01, n).astype("f4")).reshape(SIDE, 4096)


def text():
    return np.array([f"word {i * 7919 % 100003} of many" for i in range(4_000_000)], object)


def rows():
    table = np.zeros(6_000_000, [("id", "i8"), ("x", "f8"), ("y", "f4"), ("k", "i2")])
    table["id"] = np.arange(len(table))
    return table


GZIP = {"compression": "gzip", "compression_opts": 4}
CHUNKS = {"chunks": (64, 1024)}
# name -> (what is stored, how, options of the command)
WAYS = {
    "chunks copied": (values, CHUNKS, []),
    "contiguous, copied": (values, {}, []),
    "zstd copied": (values, CHUNKS | dict(hdf5plugin.Zstd(clevel=3)), []),
    "blosc copied": (values, CHUNKS | dict(hdf5plugin.Blosc(cname="zstd", clevel=3)), []),
    "native: shuffle and deflate copied": (values, CHUNKS | GZIP | {"shuffle": True}, ["--profile", "native"]),
    "deflate rewrapped as gzip": (values, CHUNKS | GZIP, []),
    "shuffle and deflate decoded, to blosc": (values, CHUNKS | GZIP | {"shuffle": True}, []),
    "bitshuffle with LZ4 decoded, to blosc": (values, CHUNKS | dict(hdf5plugin.Bitshuffle(cname="lz4")), []),
    "read by libhdf5: other chunks": (values, CHUNKS, ["--chunk", "128,2048"]),
    "strings of variable length": (text, {"chunks": (65536,), "dtype": h5py.string_dtype()}, []),
    "compound, a column at a time": (rows, {"chunks": (65536,)}, []),
}


def measure(command, folder, name):
    make, how, options = WAYS[name]
    source, out, record = folder / "in.h5", folder / "out.zarr", folder / "perf.data"
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=make(), **how)
    convert = [command, "convert", "--quiet", "--overwrite", "--threads", "1", str(source), str(out), *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(convert, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        ["perf", "record", "-q", "-o", str(record), *convert], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    report = subprocess.run(
        ["perf", "report", "-i", str(record), "--stdio", "--sort", "dso"], capture_output=True, text=True, check=True
    ).stdout
    shares = collections.Counter()
    for percent, library in re.findall(r"^\s+([0-9.]+)%\s+(\S+)", report, re.M):
        part = next((p for p, pattern in PARTS.items() if re.search(pattern, library)), "rest")
        shares[part] += float(percent)
    with h5py.File(source) as f:
        gigabytes = f["x"].size * max(f["x"].dtype.itemsize, 16 if f["x"].dtype == object else 0) / 1e9
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"| {name} | {seconds:.3f} | {gigabytes / seconds:.2f} | " + " | ".join(f"{shares[p]:.0f}" for p in PARTS) + " |"


def main():
    command = str(pathlib.Path(sys.argv[1]).resolve())
    print("| way | CPU seconds | GB/s | " + " | ".join(f"{p}, %" for p in PARTS) + " |\n|---|---|---|" + "---|" * len(PARTS))
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        for name in WAYS:
            print(measure(command, pathlib.Path(folder), name), flush=True)


if __name__ == "__main__":
    main()
