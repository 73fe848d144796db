# SPDX-License-Identifier: BSL-1.0
"""Stores of many attributes, and of groups in groups: the file has all of it, in a format in which libhdf5 finds an attribute
without a look at all others."""

import os

import h5py
import numpy as np
import pytest

from harness import run, verify
from test_export import array, group


def superblock(path):
    with open(path, "rb") as f:
        return f.read(9)[8]


@pytest.mark.parametrize("where", ["/", "/g", "/a"])
def test_many_attributes(folder, where):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    many = {f"attribute{i}": i for i in range(10_000)}
    group(store, many if where == "/" else {})
    group(store + "/g", many if where == "/g" else {})
    array(store + "/a", np.arange(3), (3,), attributes=many if where == "/a" else {})
    run("export", "-q", store, back)
    with h5py.File(back) as f:
        assert len(f[where].attrs) == len(many)
        assert all(f[where].attrs[f"attribute{i}"] == i for i in (0, 1, 255, 256, 9_999))
        assert f["a"][()].tolist() == [0, 1, 2]
    assert superblock(back) == 2  # of HDF5 1.8, in whose object headers attributes have an index


def test_few_attributes_are_in_the_oldest_format(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store, {f"attribute{i}": i for i in range(256)})
    run("export", "-q", store, back)
    assert superblock(back) == 0


@pytest.mark.parametrize("name", ["b.h5", "b.nc"])
def test_groups_in_groups(folder, name):
    """More than libhdf5 keeps open; wide, too, so that groups are visited in turn."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, name)
    group(store)
    paths = ["/".join(["g"] * depth) for depth in range(1, 101)] + [f"w{i}/x/y" for i in range(100)]
    for path in paths:
        for above in (path.rsplit("/", k)[0] for k in range(path.count("/") + 1)):
            if not os.path.exists(os.path.join(store, above)):
                group(os.path.join(store, above), {"path": above})
        array(os.path.join(store, path, "a"), np.array([len(path)]), (1,))
    run("export", "-q", store, back)
    with h5py.File(back) as f:
        for path in paths:
            assert f[path]["a"][()].tolist() == [len(path)]
            assert f[path].attrs["path"] in (path, path.encode())
    if name == "b.h5":
        verify(store, back)


def deflated_sizes(path, level=4):
    """Of the chunks of the dataset "a", and what h5py and libhdf5's zlib make of the same chunks at this level."""
    with h5py.File(path) as f, h5py.File(path + ".zlib", "w") as by_zlib:
        old = f["a"]
        assert old.compression == "gzip" and old.compression_opts == level and old.shuffle
        new = by_zlib.create_dataset(
            "a", data=old[()], chunks=old.chunks, compression="gzip", compression_opts=level, shuffle=True
        )
        by_zlib.flush()
        return old.id.get_storage_size(), new.id.get_storage_size()


@pytest.mark.parametrize("values", ["steps", "words"])
def test_chunks_are_no_larger_than_zlib_makes_them(folder, values):
    """Of noisy steps libdeflate's first level is as small as zlib's fourth. Of words it is not, and a higher one is used."""
    source, store, back = (os.path.join(folder, name) for name in ("s.h5", "s.zarr", "b.h5"))
    rng, count = np.random.default_rng(1), 32 * 65536
    if values == "steps":
        data = np.round(280 + 10 * np.sin(np.arange(count) / 40) + rng.normal(0, 0.05, count), 2).astype("f4")
    else:
        words = rng.integers(0, 64, (500, 12), dtype="u2")
        data = words[rng.zipf(1.3, count // 12 + 1) % 500].reshape(-1)[:count]
    with h5py.File(source, "w") as f:
        f.create_dataset("a", data=data, chunks=(65536,))
    run("convert", "-q", "--compress", "zstd:1", source, store)
    run("export", "-q", store, back)
    verify(store, back)
    stored, by_zlib = deflated_sizes(back)
    assert stored <= by_zlib
    run("export", "-q", "--overwrite", "--filter", "deflate:1", store, back)
    fastest, _ = deflated_sizes(back, 1)
    assert (stored == fastest) == (values == "steps")
