# SPDX-License-Identifier: BSL-1.0
"""Shared by the tests of targets: commands that fail with one sentence, small sources, and listings of folders."""

import os
import subprocess

import h5py
import numpy as np

from store import COMMAND


def run(*arguments, status=None, **how):
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=60,
        **how,
    )
    assert status is None or done.returncode == status, f"{arguments}: exit {done.returncode}, not {status}: {done.stderr}"
    return done


def refused(*arguments):
    """The one sentence of a command that fails."""
    lines = run(*arguments, status=1).stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("zarrbits: "), lines
    return lines[0]


def small(path, value=0, chunks=30):
    with h5py.File(path, "w") as f:
        f.create_dataset("a/d", data=np.arange(chunks * 10, dtype="i4") + value, chunks=(10,))
        f["s"] = np.array(["x", "y"], dtype=h5py.string_dtype())
        rows = f.create_dataset("rows", (3,), h5py.vlen_dtype("i4"))
        rows[1] = [1, 2, 3]
    return path


def write(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def everything(folder):
    return sorted(
        os.path.relpath(os.path.join(where, name), folder)
        for where, folders, files in os.walk(folder)
        for name in folders + files
    )
