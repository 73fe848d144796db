# SPDX-License-Identifier: BSL-1.0
"""The files that bench/convert.py converts."""

import pathlib
import subprocess

import h5py
import numpy as np

HERE = pathlib.Path(__file__).parent
GZIP = {"compression": "gzip", "compression_opts": 4}
DATA = {
    "deflate": "240 MB of float32 in 960 chunks, shuffle and deflate 4",
    "deflate alone": "the same, deflate 4 without shuffle",
    "bitshuffle lz4": "134 MB of uint32, counts as of an X-ray detector, in 32 chunks, bitshuffle with LZ4",
    "small deflate": "65,536 chunks of 4 KiB of float32, shuffle and deflate 4",
    "uncompressed": "240 MB of float32 in 960 chunks",
    "small chunks": "262,144 chunks of 1 KiB of float32",
}
# whole files, which have more than one array
TREES = {
    "strings": "10 million strings of variable length, a third of them longer than 20 bytes, in chunks of 65,536",
    "table": "a compound table of 10 million rows and 5 columns, in chunks of 65,536 rows",
    "attributes": "100,000 attributes, 100 on each of 1,000 groups",
    "datasets": "100,000 contiguous datasets of 10 numbers, in 100 groups",
}


def make_counts(path, divisor, python):
    return (
        bool(python) and subprocess.run([python, str(HERE / "convert_counts.py"), str(path), str(32 // divisor)]).returncode == 0
    )


def make_array(name, path, divisor):
    """Measured values: a slow curve and noise in the lower bits."""
    rng = np.random.default_rng(1)
    rows = 7680 // divisor
    small = 512 // (2 if divisor > 1 else 1)  # a grid of 512 x 512 chunks
    shape, chunks, options = {
        "deflate": ((rows, 8192), (64, 1024), GZIP | {"shuffle": True}),
        "deflate alone": ((rows, 8192), (64, 1024), GZIP),
        "small deflate": ((small * 16, small * 16), (32, 32), GZIP | {"shuffle": True}),
        "uncompressed": ((rows, 8192), (64, 1024), {}),
        "small chunks": ((small * 16, small * 16), (16, 16), {}),
    }[name]
    n = shape[0] * shape[1]
    data = (np.sin(np.arange(n) / 5000).astype("f4") * 100 + rng.normal(0, 0.01, n).astype("f4")).reshape(shape)
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("x", shape=shape, dtype="f4", chunks=chunks, **options)
        for i in range(0, shape[0], 1024):
            d[i : i + 1024] = data[i : i + 1024]


def make_tree(name, path, divisor):
    n, chunk = 10_000_000 // divisor, 65536
    with h5py.File(path, "w") as f:
        if name == "strings":
            d = f.create_dataset("x", (n,), h5py.string_dtype(), chunks=(chunk,))
            words = np.array([f"word {i * 7919 % 100003}" + " of a longer text" * (i % 3 == 0) for i in range(chunk)], object)
            for i in range(0, n, chunk):
                d[i : i + chunk] = words[: min(chunk, n - i)]
        elif name == "table":
            rows = np.zeros(n, [("id", "i8"), ("x", "f8"), ("y", "f4"), ("k", "i2"), ("flag", "u1")])
            rows["id"] = np.arange(n)
            rows["x"] = rows["y"] = np.random.default_rng(1).normal(size=n)
            rows["k"] = rows["id"] % 99
            f.create_dataset("x", data=rows, chunks=(chunk,))
        elif name == "attributes":
            for i in range(1000 // divisor):
                g = f.create_group(f"g{i}")
                for k in range(100):
                    g.attrs[f"a{k}"] = k * 1.5 if k % 2 else f"text {k}"
        else:
            for i in range(100 // divisor):
                g = f.create_group(f"g{i}")
                for k in range(1000):
                    g.create_dataset(f"d{k}", data=np.arange(10, dtype="f4"))


def make_source(name, path, divisor, python):
    """False where it cannot be made."""
    if name == "bitshuffle lz4":
        return make_counts(path, divisor, python)
    if name in TREES:
        make_tree(name, path, divisor)
    else:
        make_array(name, path, divisor)
    return True
