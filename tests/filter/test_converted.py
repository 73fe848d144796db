# SPDX-License-Identifier: BSL-1.0
"""Packed datasets of all integers and enumerations become the same values in Zarr, whether their chunks are copied or not."""

import os

import h5py
import numpy as np
import pytest

from harness import convert, run
from store import Store

PACKBITS = int(os.environ["ZARRBITS_PACKBITS_ID"])
os.environ["HDF5_PLUGIN_PATH"] = os.environ["ZARRBITS_PLUGINS"]
MEMBERS = {
    "negative": {"a": -5, "b": 0, "c": 7},
    "positive": {"a": 15, "b": 0, "c": 7, "d": 8},  # the highest bit that is kept is no sign
    "two": {"NO": 0, "YES": 1},
    "all bits": {"a": -128, "b": 127},
}


@pytest.mark.parametrize(
    "options", [[], ["--codec", "bytes"], ["--codec", "packbits", "--bits", "8"], ["--shard", "400"]], ids=" ".join
)
def test_values_are_the_same(folder, options):
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    wanted = {}
    with h5py.File(source, "w") as f:
        for base in ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4"):
            for name, members in MEMBERS.items():
                if base[-2] == "u" and min(members.values()) < 0:
                    continue
                values = np.resize(np.array(list(members.values()), base), 400)
                wanted[f"{name} {base}"] = values
                kind = h5py.enum_dtype(members, base)
                f.create_dataset(f"{name} {base}", data=values.astype(kind), chunks=(100,), compression=PACKBITS)
            low, high = (-8, 7) if base[-2] == "i" else (0, 15)
            values = np.resize(np.arange(low, high + 1).astype(base), 400)
            wanted[f"plain {base}"] = values
            f.create_dataset(f"plain {base}", data=values, chunks=(100,), compression=PACKBITS, compression_opts=(4,))
        packed = [n for n in f if f[n].id.get_storage_size() < 400 * f[n].dtype.itemsize]
        assert len(packed) > 20
    convert(source, target, "--quiet", *options)
    run("verify", source, target)
    if "bytes" in options:  # the only one that the reader of the tests decodes; verify has one of its own
        for name, values in wanted.items():
            assert Store(target).read(name).tolist() == values.tolist(), name
    back = os.path.join(folder, "back.h5")
    run("export", target, back, "--quiet")
    with h5py.File(back) as f:
        for name, values in wanted.items():
            assert f[name][()].tolist() == values.tolist(), name
