# SPDX-License-Identifier: BSL-1.0
"""zarrbits.File beside h5py (with hdf5plugin, if it is installed): ratios of times, medians of interleaved runs.

    bench/hdf5_reader.py [--size MIB] [--runs N] [--cpu] [FOLDER]

--cpu: processor time instead of elapsed time, for machines that do something else, too; two threads then show what threads cost.
 Values of both are compared first. ZARRBITS_READER_LIBRARY names the library."""

import argparse
import os
import statistics
import tempfile
import time

import h5py
import numpy as np

import zarrbits

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None


def datasets(size):
    """(name, values, options) of each dataset."""
    random = np.random.default_rng(1)
    rows = size // (4 * 512 * 512)
    smooth = np.cumsum(random.normal(0, 0.01, (rows, 512, 512)), axis=2).astype("f4").round(3)
    counts = random.poisson(20, (rows, 512, 512)).astype("u4")
    chunk = (1, 512, 512)
    yield "shuffle+deflate float32", smooth, {"chunks": chunk, "compression": "gzip", "compression_opts": 4, "shuffle": True}
    yield "deflate uint32", counts, {"chunks": chunk, "compression": "gzip", "compression_opts": 4}
    yield "lzf float32", smooth, {"chunks": chunk, "compression": "lzf", "shuffle": True}
    yield "fletcher32 float32", smooth, {"chunks": chunk, "fletcher32": True}
    yield "chunks without filters", smooth, {"chunks": chunk}
    yield "contiguous", smooth, {}
    if hdf5plugin:
        yield "zstd float32", smooth, {"chunks": chunk, "shuffle": True, **hdf5plugin.Zstd()}
        yield "blosc:lz4 float32", smooth, {"chunks": chunk, **hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE)}
        yield "bitshuffle-lz4 uint32", counts, {"chunks": chunk, **hdf5plugin.Bitshuffle(cname="lz4")}


def whole(dataset):
    dataset[...]


def boxes(dataset, count=1000, edge=8):
    random = np.random.default_rng(2)
    corners = [[int(random.integers(n - edge)) if n > edge else 0 for n in dataset.shape] for _ in range(count)]
    for corner in corners:
        dataset[tuple(slice(c, c + edge) for c in corner)]


def tiny(dataset, count=2000):
    for _ in range(count):
        dataset[...]


def times(readers, runs, clock):
    """The median time of each reader; they take turns."""
    taken = [[] for _ in readers]
    for _ in range(runs):
        for reader, list_ in zip(readers, taken):
            begin = clock()
            reader()
            list_.append(clock() - begin)
    return [statistics.median(list_) for list_ in taken]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--size", type=int, default=64, help="MiB of each dataset")
    parser.add_argument("--runs", type=int, default=9, help="of whole datasets")
    parser.add_argument("--cpu", action="store_true")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.cpu else time.perf_counter
    folder = arguments.folder or tempfile.mkdtemp()
    path = os.path.join(folder, "reader.h5")
    with h5py.File(path, "w") as f:
        for name, values, options in datasets(arguments.size << 20):
            f.create_dataset(name, data=values, **options)
        f["tiny"] = np.arange(10)
        f.create_dataset("tiny chunks", data=np.arange(10), chunks=(10,), compression="gzip")
    print("| | h5py, s | 1 thread | 2 threads | 2 to 1 |\n|---|---|---|---|---|")
    with h5py.File(path) as f, zarrbits.File(path, threads=1) as one, zarrbits.File(path, threads=2) as two:
        for name in f:
            what = [("", tiny)] if name.startswith("tiny") else [("", whole), (": 1,000 boxes", boxes)]
            assert f[name][...].tobytes() == one[name][...].tobytes() == two[name][...].tobytes(), name
            for label, read in what:
                if label and name not in ("shuffle+deflate float32", "contiguous", "chunks without filters"):
                    continue
                runs = max(1, arguments.runs // 9) if label else arguments.runs  # boxes are many reads by themselves
                theirs, first, second = times([lambda g=g: read(g[name]) for g in (f, one, two)], runs, clock)
                print(
                    f"| {name + label} | {theirs:.3f} | {theirs / first:.2f} | {theirs / second:.2f} | {first / second:.2f} |",
                    flush=True,
                )
    os.remove(path)


if __name__ == "__main__":
    main()
