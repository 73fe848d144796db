# SPDX-License-Identifier: BSL-1.0
"""Every profile and compression of the converter, read by zarr-python and compared with h5py, and by `zarrbits verify`."""
import json
import os
import subprocess
import warnings

import h5py
import numpy as np
import pytest
import zarr

COMMAND = os.environ.get("ZARRBITS_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="ZARRBITS_COMMAND names no command")
WAYS = [["--profile", "portable"], ["--profile", "native"], ["--profile", "recode"], *(["--compress", how] for how in (
    "none", "gzip", "zstd:3", "blosc:zstd:5", "blosc:lz4:5:bitshuffle", "blosc:lz4hc:9:noshuffle", "blosc:zlib"))]
SHAPES = [["--shard", "20k"], ["--shard", "100,100"], ["--profile", "native", "--shard", "40,90"], ["--chunk", "50,1000"],
          ["--chunk", "33,70", "--shard", "64k", "--compress", "zstd:3"], ["--chunk", "8,16", "--shard", "130,90"]]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("profiles") / "in.h5")
    x = (np.random.default_rng(0).normal(size=(130, 90)) * 1000).astype("i4")
    grid = {"chunks": (40, 30)}
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=x, compression=4, **grid)
        f.create_dataset("shuffle", data=x, compression=4, shuffle=True, **grid)
        f.create_dataset("big", data=x.astype(">f8"), compression=4, shuffle=True, fletcher32=True, **grid)
        f.create_dataset("odd", data=x.astype("i1"), fletcher32=True, chunks=(7, 3))
        f.create_dataset("plain", data=x, **grid)
        f["contiguous"] = x.astype("f4")
        f.create_dataset("bool", data=x > 0, compression=4, shuffle=True, **grid)
        f.create_dataset("complex", data=(x[:20] + 1j).astype("c16"), chunks=(10, 30), compression=4, shuffle=True)
        masked = f.create_dataset("masked", data=x, compression=4, shuffle=True, fletcher32=True, **grid)
        masked.id.write_direct_chunk((0, 0), x[:40, :30].tobytes(), filter_mask=7)
    return path


def converted(source, way, store):
    run = subprocess.run([COMMAND, "convert", source, store, "--quiet", "--json", *way], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert subprocess.run([COMMAND, "verify", source, store]).returncode == 0
    return json.loads(run.stdout)


@pytest.mark.parametrize("way", WAYS + SHAPES, ids=" ".join)
def test_values_are_equal(source, way, tmp_path):
    store = str(tmp_path / "out.zarr")
    report = converted(source, way, store)
    assert report["profile"] == (way[1] if way[0] == "--profile" else "portable" if way[0] == "--shard" else "recode")
    with h5py.File(source) as f, warnings.catch_warnings():
        warnings.simplefilter("ignore")     # zarr-python warns of every codec of numcodecs
        for name in f:
            assert np.array_equal(zarr.open_array(os.path.join(store, name), mode="r")[...], f[name][...]), name


@pytest.mark.parametrize("way", SHAPES, ids=" ".join)
def test_chunks_and_shards_have_the_shapes_that_were_asked_for(source, way, tmp_path):
    store = str(tmp_path / "out.zarr")
    converted(source, way, store)
    asked = dict(zip(way[::2], way[1::2]))
    sharded = 0
    with h5py.File(source) as f, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in f:
            array = zarr.open_array(os.path.join(store, name), mode="r")
            if "--chunk" in asked:
                assert array.chunks == tuple(min(int(n), m) for n, m in zip(asked["--chunk"].split(","), array.shape)), name
            elif f[name].chunks:
                assert array.chunks == f[name].chunks, name
            sharded += array.shards is not None
            if array.shards and "," in asked["--shard"]:
                wanted = [int(n) for n in asked["--shard"].split(",")]
                assert array.shards == tuple(-(-w // c) * c for w, c in zip(wanted, array.chunks)), name
            elif array.shards:
                assert np.prod(array.shards) * array.dtype.itemsize <= int(asked["--shard"][:-1]) * 1024, name
    assert sharded >= 6 if "--shard" in asked else sharded == 0


@pytest.mark.parametrize("way", [w for w in SHAPES if "native" not in w], ids=" ".join)
def test_tensorstore_reads_shards(source, way, tmp_path):
    tensorstore = pytest.importorskip("tensorstore")
    store = str(tmp_path / "out.zarr")
    converted(source, way, store)
    with h5py.File(source) as f:
        for name in f:
            spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": os.path.join(store, name) + "/"}}
            assert np.array_equal(tensorstore.open(spec, open=True).result().read().result(), f[name][...]), name
