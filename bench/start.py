# SPDX-License-Identifier: BSL-1.0
"""CPU time that a command takes for a file with ten numbers: what starting costs. Median of 40.

python3 bench/start.py build/release/bin/zarrbits
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy as np

command = os.path.abspath(sys.argv[1])


def cpu(*arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([command, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with h5py.File("in.h5", "w") as f:
        f["x"] = np.arange(10)
    ways = {
        "--version": ["--version"],
        "inspect": ["inspect", "in.h5"],
        "suggest": ["suggest", "in.h5"],
        "convert": ["convert", "--overwrite", "in.h5", "out.zarr"],
        "verify": ["verify", "in.h5", "out.zarr"],
    }
    print("| | CPU time |\n|---|---|")
    for name, arguments in ways.items():
        print(f"| `{name}` | {1000 * statistics.median(cpu(*arguments) for _ in range(40)):.1f} ms |")
