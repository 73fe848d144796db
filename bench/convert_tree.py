# SPDX-License-Identifier: BSL-1.0
"""What people write today to get a whole HDF5 file to Zarr, and to see afterwards whether that is right:
every group, attribute and dataset in turn.

convert_tree.py copy|compare IN.h5 OUT.zarr
"""

import sys
import warnings

import h5py
import numpy as np
import zarr

warnings.filterwarnings("ignore")
what, source, target = sys.argv[1:]


def plain(value):
    return value.item() if isinstance(value, np.generic) else value.tolist() if isinstance(value, np.ndarray) else value


def blocks(d):
    """Slices of whole chunks along the first dimension, and the values there."""
    text = h5py.check_string_dtype(d.dtype) is not None
    values = d.asstr() if text else d
    if d.chunks is None:
        yield ..., values[...]
        return
    for i in range(0, d.shape[0], d.chunks[0]):
        block = slice(i, i + d.chunks[0])
        yield block, values[block]


def copy(h, g):
    if h.attrs:
        g.attrs.update({k: plain(v) for k, v in h.attrs.items()})
    for name, o in h.items():
        if isinstance(o, h5py.Group):
            copy(o, g.create_group(name))
            continue
        a = g.create_array(
            name, shape=o.shape, chunks=o.chunks or "auto", dtype=str if h5py.check_string_dtype(o.dtype) else o.dtype
        )
        for block, values in blocks(o):
            a[block] = values
        if o.attrs:
            a.attrs.update({k: plain(v) for k, v in o.attrs.items()})


def compare(h, g):
    attributes = dict(g.attrs)
    for k, v in h.attrs.items():
        assert attributes[k] == plain(v), (h.name, k)
    for name, o in h.items():
        if isinstance(o, h5py.Group):
            compare(o, g[name])
            continue
        a = g[name]
        for block, values in blocks(o):
            assert np.array_equal(a[block], values), o.name
        for k, v in o.attrs.items():
            assert a.attrs[k] == plain(v), (o.name, k)


with h5py.File(source, "r") as f:
    if what == "copy":
        copy(f, zarr.open_group(target, mode="w"))
    else:
        compare(f, zarr.open_group(target, mode="r"))
