# SPDX-License-Identifier: BSL-1.0
"""Every profile and compression of the converter, read by zarr-python and compared with h5py, and by `zarrbits verify`."""

import json
import os
import subprocess
import warnings

import h5py
import hdf5plugin
import numpy as np
import pytest
import zarr

COMMAND = os.environ.get("ZARRBITS_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="ZARRBITS_COMMAND names no command")
WAYS = [
    ["--profile", "portable"],
    ["--profile", "native"],
    ["--profile", "recode"],
    *(
        ["--compress", how]
        for how in ("none", "gzip", "zstd:3", "blosc:zstd:5", "blosc:lz4:5:bitshuffle", "blosc:lz4hc:9:noshuffle", "blosc:zlib")
    ),
]
SHAPES = [
    ["--shard", "20k"],
    ["--shard", "100,100"],
    ["--profile", "native", "--shard", "40,90"],
    ["--chunk", "50,1000"],
    ["--chunk", "33,70", "--shard", "64k", "--compress", "zstd:3"],
    ["--chunk", "8,16", "--shard", "130,90"],
    ["--shard", "64k", "--checksum", "crc32c"],
]
WAYS += [[*way, "--checksum", "crc32c"] for way in WAYS[:5]]
# H5Dread of `zarrbits verify` needs the plugins; the converter does not
PLUGINS = os.environ | {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH}


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
        f.create_dataset("bzip2", data=x, **grid, **hdf5plugin.BZip2(blocksize=7))
        f.create_dataset("bzip2_shuffle", data=x, shuffle=True, **grid, **hdf5plugin.BZip2())
        f.create_dataset("lz4", data=x, **grid, **hdf5plugin.LZ4())
        f.create_dataset("lz4_shuffle", data=x, shuffle=True, **grid, **hdf5plugin.LZ4())
        f.create_dataset("lz4_blocks", data=x, **grid, **hdf5plugin.LZ4(nbytes=1000))
        f.create_dataset(
            "lz4_stored", data=np.random.default_rng(1).integers(0, 256, (40, 100), "u1"), chunks=(10, 100), **hdf5plugin.LZ4()
        )
        for name, options in (("masked_bzip2", hdf5plugin.BZip2()), ("masked_lz4", hdf5plugin.LZ4())):
            d = f.create_dataset(name, data=x, shuffle=True, **grid, **options)
            d.id.write_direct_chunk((0, 0), x[:40, :30].tobytes(), filter_mask=3)
        masked = f.create_dataset("masked", data=x, compression=4, shuffle=True, fletcher32=True, **grid)
        masked.id.write_direct_chunk((0, 0), x[:40, :30].tobytes(), filter_mask=7)
    return path


def converted(source, way, store):
    run = subprocess.run([COMMAND, "convert", source, store, "--quiet", "--json", *way], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert subprocess.run([COMMAND, "verify", source, store], env=PLUGINS).returncode == 0
    return json.loads(run.stdout)


@pytest.mark.parametrize("way", WAYS + SHAPES, ids=" ".join)
def test_values_are_equal(source, way, tmp_path):
    store = str(tmp_path / "out.zarr")
    report = converted(source, way, store)
    assert report["profile"] == (way[1] if way[0] == "--profile" else "portable" if way[0] == "--shard" else "recode")
    with h5py.File(source) as f, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns of every codec of numcodecs
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


def codecs_and_outcomes(source, store, *options):
    run = subprocess.run([COMMAND, "convert", source, store, "--quiet", "--json", *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    outcomes = {
        o["path"]: o.get("chunks", {}) | {"outcome": o["outcome"]}
        for o in json.loads(run.stdout)["objects"]
        if o["kind"] == "dataset"
    }

    def names(name):
        with open(os.path.join(store, name, "zarr.json")) as f:
            return [c["name"].removeprefix("numcodecs.") for c in json.load(f)["codecs"]]

    return outcomes, names


def test_what_native_copies_is_copied(source, tmp_path):
    outcomes, names = codecs_and_outcomes(source, tmp_path / "out.zarr", "--profile", "native")
    assert names("bzip2_shuffle") == ["bytes", "shuffle", "bz2"] and names("lz4_shuffle") == ["bytes", "shuffle", "lz4"]
    for name, raw, rewrapped, recoded in (
        ("bzip2", 12, 0, 0),
        ("bzip2_shuffle", 12, 0, 0),
        ("lz4", 0, 12, 0),
        ("lz4_shuffle", 0, 12, 0),
        ("lz4_blocks", 0, 0, 12),
        ("lz4_stored", 0, 0, 4),
        ("masked_bzip2", 11, 0, 1),
        ("masked_lz4", 0, 11, 1),
    ):
        found = outcomes["/" + name]
        assert (found.get("raw", 0), found.get("rewrapped", 0), found.get("recoded", 0)) == (raw, rewrapped, recoded), name
    with h5py.File(source) as f:
        assert (tmp_path / "out.zarr/bzip2/c/1/1").read_bytes() == f["bzip2"].id.read_direct_chunk((40, 30))[1]


def test_every_array_ends_with_its_checksum(source, tmp_path):
    store = tmp_path / "out.zarr"
    with h5py.File(tmp_path / "in.h5", "w") as f:
        with h5py.File(source) as g:
            for name in g:
                g.copy(name, f)
        f["text"] = np.array(["a", "ü"], dtype=h5py.string_dtype())
        v = f.create_dataset("sequences", (2,), h5py.vlen_dtype("<i4"))
        v[0], v[1] = [1, 2, 3], [4]
        f["null"] = h5py.Empty("f4")
    outcomes, names = codecs_and_outcomes(tmp_path / "in.h5", store, "--profile", "native", "--checksum", "crc32c")
    arrays = [p for p in store.rglob("zarr.json") if json.loads(p.read_text())["node_type"] == "array"]
    assert len(arrays) >= 20 and all(names(p.parent)[-1] == "crc32c" for p in arrays)
    assert names("big") == ["bytes", "shuffle", "zlib", "crc32c"]  # in place of fletcher32, which was checked
    assert outcomes["/big"]["outcome"] == "rewrapped" and outcomes["/contiguous"]["outcome"] == "rewrapped"
    # a changed byte of any chunk is refused by zarr-python and told by verify
    chunk = store / "contiguous/c/0/0"
    data = bytearray(chunk.read_bytes())
    data[100] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(ValueError, match="[Cc]hecksum"):
        zarr.open_array(store / "contiguous", mode="r")[...]
    verified = subprocess.run([COMMAND, "verify", tmp_path / "in.h5", store], env=PLUGINS, capture_output=True, text=True)
    assert (
        verified.returncode == 1
        and "/contiguous cannot be read from the store: chunk [0, 0]: the crc32c checksum" in verified.stdout
    )
