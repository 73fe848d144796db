# SPDX-License-Identifier: BSL-1.0
"""Shared by the tests of targets: commands that fail with one sentence, small sources, and listings of folders."""

import functools
import os

import h5py
import numpy as np

import harness

run = functools.partial(harness.run, status=None, timeout=600)


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
