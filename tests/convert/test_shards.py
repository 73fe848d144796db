#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Shards and chunk shapes of choice: a shard holds, byte for byte, the chunks that a store without shards has, in C order,
behind an index that is read here as its specification says; and a wrong request is one sentence."""

import itertools
import json
import math
import os
import struct

import h5py
import numpy as np
import pytest

from harness import convert, run
from store import Store

MISSING = 2**64 - 1


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def entries(shard, chunks):
    """The index: (offset, size) of each chunk, or None."""
    index = shard[-(16 * chunks + 4) :]
    assert struct.unpack("<I", index[-4:])[0] == crc32c(index[:-4])
    pairs = list(struct.iter_unpack("<QQ", index[:-4]))
    assert all((a == MISSING) == (b == MISSING) for a, b in pairs)
    return [None if a == MISSING else (a, b) for a, b in pairs]


class TestShards:
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path):
        self.folder = str(tmp_path)
        self.source = self.path("in.h5")

    def path(self, name):
        return os.path.join(self.folder, name)

    def data(self):
        noise = np.random.default_rng(5)
        steps = np.cumsum(noise.integers(-3, 4, (95, 70)), axis=0).astype("i4")
        with h5py.File(self.source, "w") as f:
            f.create_dataset("deflate", data=steps, chunks=(10, 16), compression="gzip")
            f.create_dataset("shuffled", data=steps, chunks=(10, 16), compression="gzip", shuffle=True)
            f.create_dataset("plain", data=steps, chunks=(10, 16))
            f.create_dataset("bool", data=steps > 0, chunks=(10, 16), compression="gzip")
            f["contiguous"] = np.tile(steps, (3, 2))
            f.create_dataset("sparse", (95, 70), "u2", chunks=(10, 16), fillvalue=7)[33, 50] = 1
            f.create_dataset("nothing", (95, 70), "u2", chunks=(10, 16))
            f.create_dataset("text", (95, 4), h5py.string_dtype(), chunks=(10, 2))[...] = [
                ["a" * (i % 7), "é", "", "x"] for i in range(95)
            ]
            f.create_dataset("line", data=steps[:, 0], chunks=(9,))
            f.create_dataset("pairs", (30, 20), np.dtype(("i2", (3,))), chunks=(4, 4))[...] = np.arange(1800).reshape(30, 20, 3)
            f["scalar"] = 1.5

    def both(self, *options):
        """The same conversion with shards and without."""
        plain, sharded = self.path("plain.zarr"), self.path("sharded.zarr")
        without = [o for i, o in enumerate(options) if o != "--shard" and (i == 0 or options[i - 1] != "--shard")]
        convert(self.source, plain, "-q", *without)
        convert(self.source, sharded, "-q", *options)
        return Store(plain), Store(sharded)

    def compare(self, plain, sharded, names):
        for name in names:
            a, b = plain.meta(name), sharded.meta(name)
            [codec] = b["codecs"]
            assert codec["name"] == "sharding_indexed"
            inner = codec["configuration"]
            chunk, shard = inner["chunk_shape"], b["chunk_grid"]["configuration"]["chunk_shape"]
            assert chunk == a["chunk_grid"]["configuration"]["chunk_shape"]
            assert inner["codecs"] == a["codecs"]
            assert [c["name"] for c in inner["index_codecs"]] == ["bytes", "crc32c"]
            assert {k: v for k, v in a.items() if k not in ("codecs", "chunk_grid")} == {
                k: v for k, v in b.items() if k not in ("codecs", "chunk_grid")
            }
            per = [s // c for s, c in zip(shard, chunk)]
            assert [p * c for p, c in zip(per, chunk)] == shard
            grid = [-(-n // s) for n, s in zip(a["shape"], shard)]
            found = 0
            for at in itertools.product(*map(range, grid)):
                key = "/".join([name, "c", *map(str, at)])
                there = os.path.exists(os.path.join(sharded.path, key))
                data = sharded.chunk(key) if there else b""
                index = entries(data, math.prod(per)) if there else [None] * math.prod(per)
                end = 0
                for number, inside in enumerate(itertools.product(*map(range, per))):
                    chunk_key = "/".join([name, "c", *(str(s * p + i) for s, p, i in zip(at, per, inside))])
                    if os.path.exists(os.path.join(plain.path, chunk_key)):
                        assert index[number] is not None, chunk_key
                        offset, size = index[number]
                        assert offset == end, "C order, without gaps"
                        end += size
                        assert data[offset : offset + size] == plain.chunk(chunk_key), chunk_key
                        found += 1
                    else:
                        assert index[number] is None, chunk_key
                if there:
                    assert end + 16 * math.prod(per) + 4 == len(data)
                    assert end > 0, "a shard without a chunk is not a file"
            chunks = sum("zarr.json" not in files for _, _, files in os.walk(os.path.join(plain.path, name)) for f in files)
            assert found == chunks, name

    def test_shards_hold_the_chunks_of_a_store_without(self):
        self.data()
        for options in (
            ["--shard", "30,40"],
            ["--shard", "6k"],
            ["--shard", "1000,1000"],
            ["--shard", "6k", "--codec", "packbits", "--bits", "24"],
            ["--shard", "30,40", "--compress", "zstd:3"],
        ):
            plain, sharded = self.both(*options, "--overwrite")
            names = ["deflate", "shuffled", "plain", "sparse", "bool"] + ([] if options[1] == "6k" else ["text"])
            if options[1] != "6k":
                names.append("pairs")
            self.compare(plain, sharded, names)
            assert "sharding_indexed" not in json.dumps(sharded.meta("scalar"))
            assert not os.path.exists(os.path.join(sharded.path, "nothing", "c"))
            run("verify", self.source, sharded.path)

    def test_bytes_are_an_upper_bound_and_shapes_are_filled_up(self):
        self.data()
        _, sharded = self.both("--shard", "6k")
        shard = sharded.meta("plain")["chunk_grid"]["configuration"]["chunk_shape"]
        assert shard == [10, 80]  # 5 chunks of 640 bytes are a row of them; two rows are more than 6144
        _, sharded = self.both("--shard", "25,17", "--overwrite")
        assert sharded.meta("plain")["chunk_grid"]["configuration"]["chunk_shape"] == [30, 32]
        assert sharded.meta("line")["chunk_grid"]["configuration"]["chunk_shape"] == [9]  # of another number of dimensions
        assert sharded.meta("line")["codecs"][0]["name"] == "bytes"
        _, sharded = self.both("--shard", "20,", "--overwrite")
        assert sharded.meta("line")["chunk_grid"]["configuration"]["chunk_shape"] == [27]
        assert sharded.meta("plain")["codecs"][0]["name"] == "bytes"

    def test_the_report_counts_chunks(self):
        self.data()
        report = json.loads(convert(self.source, self.path("out.zarr"), "-q", "--json", "--shard", "30,40").stdout)
        entry = {o["path"]: o for o in report["objects"] if o["kind"] == "dataset"}
        assert entry["/plain"]["outcome"] == "raw"
        assert entry["/plain"]["chunks"]["raw"] == 50
        assert entry["/sparse"]["chunks"]["absent"] == 49
        # the table at the end has the bytes of all objects
        said = convert(self.source, self.path("again.zarr"), "--shard", "30,40").stderr
        sizes = sum(
            os.path.getsize(os.path.join(folder, f))
            for folder, _, files in os.walk(self.path("again.zarr"))
            for f in files
            if f != "zarr.json"
        )
        assert f"{sizes / 2**10:.1f} KiB" in [line for line in said.splitlines() if line.startswith("all ")][0]

    def test_a_lost_chunk_is_missing_in_its_shard(self):
        self.data()
        with h5py.File(self.source, "r+") as f:
            f["deflate"].id.write_direct_chunk((10, 16), b"no zlib")
        done = convert(self.source, self.path("out.zarr"), "--shard", "30,40", status=1)
        assert 'chunk [1, 1] of dataset "/deflate" cannot be read' in done.stderr
        assert not os.path.exists(self.path("out.zarr") + "/zarr.json")
        plain, sharded = self.path("plain.zarr"), self.path("sharded.zarr")
        convert(self.source, plain, "-q", "--keep-going", status=3)
        report = json.loads(convert(self.source, sharded, "-q", "--keep-going", "--json", "--shard", "30,40", status=3).stdout)
        [entry] = [o for o in report["objects"] if o["path"] == "/deflate"]
        assert entry["lost_chunks"] == [[1, 1]]
        self.compare(Store(plain), Store(sharded), ["deflate"])

    def test_what_is_found_late_changes_all_shards(self):
        with h5py.File(self.source, "w") as f:
            values = np.full((200, 4), b"abc", "S6")
            values[150, 2] = b"\xff"  # no UTF-8
            f.create_dataset("latin", data=values, chunks=(5, 4))
        for threads in ("1", "3"):
            plain, sharded = self.both("--shard", "50,4", "--threads", threads, "--overwrite", "--allow-lossy")
            self.compare(plain, sharded, ["latin"])

    def test_chunks_of_another_shape(self):
        self.data()
        for shape in ("20,70", "7,11", "95,70", "1000,1"):
            out = self.path("out.zarr")
            convert(self.source, out, "-q", "--overwrite", "--chunk", shape)
            store = Store(out)
            wanted = [min(int(n), m) for n, m in zip(shape.split(","), (95, 70))]
            assert store.meta("plain")["chunk_grid"]["configuration"]["chunk_shape"] == wanted
            with h5py.File(self.source) as f:
                for name in ("plain", "deflate", "sparse", "nothing", "contiguous", "bool"):
                    assert np.array_equal(store.read(name), f[name][...]), name
            run("verify", self.source, out)
            assert not os.path.exists(os.path.join(out, "nothing", "c"))
            files = sum(len(files) for _, _, files in os.walk(os.path.join(out, "sparse", "c")))
            assert files == 1, "chunks that hold nothing but the fill value are left out"

    def test_the_shape_that_the_source_has_is_copied(self):
        self.data()
        report = json.loads(convert(self.source, self.path("out.zarr"), "-q", "--json", "--chunk", "10,16").stdout)
        outcomes = {o["path"]: o["outcome"] for o in report["objects"] if o["kind"] == "dataset"}
        assert outcomes["/plain"] == "raw"
        assert outcomes["/deflate"] == "recoded"  # what --chunk implies

    def test_what_cannot_be(self):
        self.data()
        out = self.path("out.zarr")
        for options, words in (
            (["--shard", "many"], "not a number"),
            (["--shard", "0"], "0 bytes"),
            (["--shard", "10,0"], "at least 1"),
            (["--shard", "10,-1"], "not a number"),
            (["--chunk", "64M"], "not a number"),
            (["--chunk", "1,x"], "not a number"),
            (["--chunk", "5,5", "--profile", "native"], "recode"),
            (["--shard", ","], "not a number"),
            (["--shard", "99999999999999999999M"], "too large"),
            (["--shard", ",".join("1" * 40)], "dimensions"),
        ):
            done = convert(self.source, out, *options, status=2)
            assert words in done.stderr, options
            assert done.stderr.count("\n") == 1, done.stderr
        done = convert(self.source, out, "--shard", "1000000000,1000000000", status=1)
        assert "smaller shape" in done.stderr
        assert not os.path.exists(out)
        convert(self.source, out, "-q", "--partition", "0/2", "--shard", "6k")
        done = convert(self.source, out, "-q", "--resume", "--shard", "7k", status=1)
        assert "different options" in done.stderr
