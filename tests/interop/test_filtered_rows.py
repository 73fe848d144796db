# SPDX-License-Identifier: BSL-1.0
"""zarrbits.read() and write() of h5py datasets with the filters of hdf5plugin, beside h5py with hdf5plugin."""

import sys

import pytest

h5py = pytest.importorskip("h5py")
hdf5plugin = pytest.importorskip("hdf5plugin")
import numpy as np

from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
import zarrbits
from zarrbits import hdf5_library, hdf5_rows

try:
    hdf5_library.library()
except zarrbits.Error as e:
    pytest.skip(str(e), allow_module_level=True)
import filtered_rows

PIPELINES = {
    "zstd": (hdf5plugin.Zstd(), True),
    "lz4": (hdf5plugin.LZ4(), True),
    "bzip2": (hdf5plugin.BZip2(), True),
    **{f"blosc, {name}": (hdf5plugin.Blosc(cname=name), True) for name in ("lz4", "zstd", "blosclz", "zlib")},
    "blosc, bits": (hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.BITSHUFFLE), True),
    "bitshuffle": (hdf5plugin.Bitshuffle(cname="none"), True),
    "bitshuffle, lz4": (hdf5plugin.Bitshuffle(cname="lz4"), True),
    "bitshuffle, lz4 in blocks": (hdf5plugin.Bitshuffle(nelems=64, cname="lz4"), True),
    "bitshuffle, zstd": (hdf5plugin.Bitshuffle(cname="zstd"), True),
    "lzf": ({"compression": "lzf"}, True),
    "not ours": (hdf5plugin.Zfp(reversible=True), None),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_values_are_those_of_h5py(tmp_path, monkeypatch, name):
    monkeypatch.setattr(hdf5_rows, "_WORTH", 0)
    monkeypatch.setattr(hdf5_rows, "_WORTH_COMPRESSED", 0)
    options, is_encoded = PIPELINES[name]
    shuffle = {"shuffle": True} if name in ("zstd", "lz4") else {}
    with h5py.File(tmp_path / "x.h5", "w") as f:
        read, write = filtered_rows.compare(f, {**options, **shuffle})
    assert (read["chunks"] > 100) is (is_encoded is not None)
    assert (write["chunks"] > 30) is bool(is_encoded)


def test_large_chunks_are_encoded_and_decoded_here(tmp_path):
    values = np.random.default_rng(1).integers(0, 50, (8, 128, 256)).astype("<f4")
    with h5py.File(tmp_path / "x.h5", "w") as f:
        d = f.create_dataset("x", values.shape, values.dtype, chunks=(1, 128, 256), **hdf5plugin.Blosc())
        counts = {}
        zarrbits.write(d, values, counts=counts)
        np.testing.assert_array_equal(d[...], values)
        np.testing.assert_array_equal(zarrbits.read(d, counts=counts), values)
        assert counts == {"chunks": 16}
