# SPDX-License-Identifier: BSL-1.0
"""`zarrbits check` beside reading and decoding alone, in one thread: CPU seconds of whole processes, interleaved, medians.

python3 bench/check.py build/release/bin/zarrbits build/release/bin/bench_decode [--rounds N] [--folder FOLDER]
"""

import argparse
import os
import statistics
import subprocess
import tempfile

import h5py
import numpy as np

from processes import measured


def make(path):
    """250 MB of a smooth field with noise of a few digits, in chunks of 1 MB."""
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", (1000, 250, 250), "f4", chunks=(4, 250, 250), compression="gzip", shuffle=True)
        field = np.add.outer(np.sin(np.arange(250) / 20), np.cos(np.arange(250) / 30))
        for i in range(0, 1000, 100):
            d[i : i + 100] = np.round(280 + 10 * field + rng.normal(0, 0.05, (100, 250, 250)), 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("decode")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder")
    a = parser.parse_args()
    ours, decode = os.path.abspath(a.command), os.path.abspath(a.decode)
    with tempfile.TemporaryDirectory(dir=a.folder) as folder, open(os.devnull, "w") as log:
        os.chdir(folder)
        make("deflate.h5")
        for codec in "gzip", "zstd":
            subprocess.run(
                [ours, "convert", "-q", "--profile", "recode", "--compress", codec, "deflate.h5", f"{codec}.zarr"], check=True
            )
        jobs = {"decode": lambda name: [decode, name], "check": lambda name: [ours, "check", "-q", "--threads", "1", name]}
        print("| | decode, CPU s | check, CPU s | check over decode |\n|---|---|---|---|")
        for name in "deflate.h5", "gzip.zarr", "zstd.zarr":
            seconds = {job: [] for job in jobs}
            for _ in range(a.rounds):
                for job, command in jobs.items():
                    seconds[job].append(measured(command(name), "none", log)[0])
            alone, whole = (statistics.median(seconds[job]) for job in jobs)
            print(f"| {name} | {alone:.2f} | {whole:.2f} | {whole / alone:.2f} |")


if __name__ == "__main__":
    main()
