# SPDX-License-Identifier: BSL-1.0
"""Chunks that decode to fewer or more bytes than they are to have, for each filter and each order of filters:
named, and nothing that was in memory is in the store. Whole chunks of the same filters give their values.

The heap is marked (glibc fills what malloc returns with one byte, and what is freed with another),
and the marks are looked for in the store.
"""

import bz2
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import zlib

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

from processes import SANITIZED, run

COMMAND = os.environ["ZARRBITS_COMMAND"]
N, ELEMENT = 10000, 4
PLAIN = N * ELEMENT
VALUES = (np.arange(N, dtype="<u4") * 2654435761 % 1000003).astype("<u4")
MARKS = [bytes([b]) * 24 for b in (0x6B, 0x6B ^ 0xFF)]

SHUFFLE, FLETCHER32, DEFLATE, SZIP, NBIT, SCALEOFFSET = 2, 3, 1, 4, 5, 6
LZO, BZIP2, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD = 305, 307, 32000, 32001, 32004, 32008, 32015


def lz4_literals(data):
    n = len(data)
    if n < 15:
        return bytes([n << 4]) + data
    return b"\xf0" + b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255]) + data


def transposed(data):
    bits = np.unpackbits(np.frombuffer(data, "u1").reshape(-1, ELEMENT), axis=1, bitorder="little")
    return np.packbits(bits.T, axis=1, bitorder="little").tobytes()


def lzo_literals(data):
    n = len(data)
    if n < 4 + 18:
        return bytes([17 + n]) + data + b"\x11\0\0"
    zeros, rest = divmod(n - 18 - 1, 255)
    return b"\0" + b"\0" * zeros + bytes([rest + 1]) + data + b"\x11\0\0"


def with_h5py(data, make):
    """The stored chunk of a dataset of one chunk that h5py writes."""
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(pathlib.Path(folder) / "x.h5", "w") as f:
            make(f, np.frombuffer(data, "<u4"))
            f.flush()
            return f["x"].id.read_direct_chunk((0,))[1]


def lzf(data):
    out = b""  # literals only, as a compressor would not write it
    for i in range(0, len(data), 32):
        piece = data[i : i + 32]
        out += bytes([len(piece) - 1]) + piece
    return out


def fletcher32(data):
    words = np.frombuffer(data + b"\0" * (len(data) % 2), ">u2").astype("u8")
    a = b = 0
    for w in words.tolist():
        a = (a + w) % 65535
        b = (b + a) % 65535
    a, b = a or (65535 if words.any() else 0), b or (65535 if words.any() else 0)
    return data + struct.pack("<I", b << 16 | a)


# for each filter: its values, and a function that encodes bytes
FILTERS = {
    "shuffle": (SHUFFLE, (ELEMENT,), lambda d: np.frombuffer(d, "u1").reshape(-1, ELEMENT).T.tobytes()),
    "fletcher32": (FLETCHER32, (), fletcher32),
    "deflate": (DEFLATE, (4,), lambda d: zlib.compress(d, 4)),
    "lzf": (LZF, (4, 261, PLAIN), lzf),
    "lz4": (LZ4, (), lambda d: struct.pack(">QII", len(d), len(d), len(d)) + d),
    "zstd": (
        ZSTD,
        (3,),
        lambda d: b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(d)) + struct.pack("<I", len(d) << 3 | 1)[:3] + d,
    ),
    "bzip2": (BZIP2, (9,), bz2.compress),
    "blosc": (
        BLOSC,
        (2, 2, ELEMENT, PLAIN, 5, 0, 0),
        lambda d: struct.pack("<BBBBIII", 2, 1, 2, 1, len(d), len(d), len(d) + 16) + d,
    ),
    "lzo": (LZO, (), lzo_literals),
    "bitshuffle": (BITSHUFFLE, (0, 3, ELEMENT, 0, 0), None),
    "bitshuffle+lz4": (
        BITSHUFFLE,
        (0, 3, ELEMENT, 0, 2),
        lambda d: struct.pack(">QII", len(d), len(d), len(lz4_literals(d))) + lz4_literals(transposed(d)),
    ),
}
COMPRESSIONS = [name for name in FILTERS if name not in ("shuffle", "fletcher32", "bitshuffle")]
ORDERS = [[c] for c in COMPRESSIONS]
ORDERS += [
    order
    for c in COMPRESSIONS
    for order in (["shuffle", c], [c, "fletcher32"], ["fletcher32", c], ["shuffle", c, "fletcher32"])
    if order != ["fletcher32", "bitshuffle+lz4"]
]  # a length that is not a multiple of the element's
ORDERS += [[c, "deflate"] for c in COMPRESSIONS] + [
    ["deflate", c] for c in COMPRESSIONS if c not in ("deflate", "bitshuffle+lz4")
]
ORDERS += [["shuffle"], ["fletcher32"], ["shuffle", "fletcher32"]]


def create(f, name, order, type_id=None):
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_chunk((N,))
    for filter_name in order:
        number, values, _ = FILTERS[filter_name]
        properties.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
    return h5d.create(f.id, name.encode(), type_id or h5t.STD_U32LE, h5s.create_simple((N,)), properties)


def encoded(order, data):
    for filter_name in order:
        data = FILTERS[filter_name][2](data)
    return data


class TestShortChunks:
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path):
        self.source, self.store = tmp_path / "in.h5", tmp_path / "out.zarr"

    def convert(self, *options, status):
        done = subprocess.run(
            [COMMAND, "convert", self.source, self.store, "-q", "--overwrite", "--json", *options],
            capture_output=True,
            text=True,
            env=os.environ | {"MALLOC_PERTURB_": str(MARKS[0][0])},
        )
        assert done.returncode == status, done.stderr[-2000:]
        return {o["path"]: o for o in json.loads(done.stdout)["objects"]} if status != 1 else done.stderr

    def assert_no_marks(self):
        for path in self.store.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                for mark in MARKS:
                    assert mark not in data, path

    def assert_named(self, objects, names):
        for name in names:
            o = objects["/" + name]
            assert o["outcome"] == "skipped" or o.get("lost_chunks") == [[0]], o

    def damaged(self, lengths, orders=ORDERS):
        names = []
        with h5py.File(self.source, "w") as f:
            for order in orders:
                for length in lengths:
                    name = "_".join(order + [str(length)])
                    create(f, name, order).write_direct_chunk((0,), encoded(order, VALUES.tobytes()[:length].ljust(length, b"x")))
                    names.append(name)
        return names

    def test_whole_chunks_give_their_values(self):
        with h5py.File(self.source, "w") as f:
            for order in ORDERS:
                create(f, "_".join(order) or "plain", order).write_direct_chunk((0,), encoded(order, VALUES.tobytes()))
        self.convert("--profile", "recode", "--compress", "none", status=0)
        for order in ORDERS:
            assert (self.store / ("_".join(order) or "plain") / "c/0").read_bytes() == VALUES.tobytes(), order

    def test_another_length_is_named(self):
        names = self.damaged([32, PLAIN - 4, PLAIN + 4])
        for options in (
            [],
            ["--profile", "recode", "--compress", "none"],
            ["--profile", "recode", "--chunk", "3000,", "--compress", "none"],
        ):
            objects = self.convert("--keep-going", *options, status=3)
            if "--chunk" in options:  # each chunk of the source is wanted by several
                for name in names:
                    assert len(objects["/" + name].get("lost_chunks", [])) == 4, name
            else:
                self.assert_named(objects, names)
            self.assert_no_marks()

    def test_another_length_ends_the_run(self):
        for order in ["lzf"], ["shuffle", "deflate"]:
            self.damaged([32], [order])
            assert "--keep-going" in self.convert(status=1)
            assert not self.store.exists()

    def test_a_chunk_without_filters(self):
        """libhdf5 writes none of another length: the index says so afterwards."""
        with h5py.File(self.source, "w") as f:
            create(f, "x", []).write_direct_chunk((0,), VALUES.tobytes())
        data, key = self.source.read_bytes(), struct.pack("<IIQ", PLAIN, 0, 0)  # size, mask, place
        assert data.count(key) == 1
        for length in 32, PLAIN - 4, PLAIN + 4:
            self.source.write_bytes(data.replace(key, struct.pack("<IIQ", length, 0, 0)))
            for options in (
                [],
                ["--profile", "recode", "--compress", "none"],
                ["--profile", "recode", "--chunk", "3000,"],
                ["--shard", "64M"],
            ):
                objects = self.convert("--keep-going", *options, status=3)
                assert objects["/x"]["lost_chunks"] == [[i] for i in range(4 if "--chunk" in options else 1)]

    def test_values_that_lie_outside_of_their_chunks(self):
        """libhdf5 reads strings, sequences and references, and trusts what it finds in the chunk."""
        types = {
            "strings": h5t.py_create(h5py.string_dtype(), logical=True),
            "sequences": h5t.py_create(h5py.vlen_dtype("i4"), logical=True),
            "references": h5t.py_create(h5py.ref_dtype, logical=True),
        }
        names = []
        with h5py.File(self.source, "w") as f:
            for kind, type_id in types.items():
                for order in ["deflate"], ["lzf"], ["shuffle", "lz4"], ["zstd", "fletcher32"]:
                    names.append("_".join([kind] + order))
                    create(f, names[-1], order, type_id).write_direct_chunk((0,), encoded(order, b"\0" * 32))
        self.assert_named(self.convert("--keep-going", status=3), names)
        self.assert_no_marks()

    def test_bits_and_offsets(self):
        """scaleoffset, nbit and szip: whole; then cut; then with a header that promises more."""

        def nbit():
            t = h5t.STD_U32LE.copy()
            t.set_precision(20)
            t.set_offset(3)
            return t

        values = {
            "u": VALUES % 5000,
            "i": (VALUES % 5000).astype("<i4") - 2500,
            "big": (VALUES % 300).astype(">i2"),
            "byte": (VALUES % 9).astype("u1"),
            "long": VALUES.astype("<i8") << 20,
            "float": (VALUES % 1000 / 8).astype("<f4"),
            "double": (VALUES % 100000 / 64).astype(">f8"),
            "same": np.full(N, 77, "<u2"),
        }
        with h5py.File(self.source, "w") as f:
            for name, v in values.items():
                for fill in None, v[5]:
                    for chunk in N, 777:
                        f.create_dataset(
                            f"so_{name}_{fill is not None}_{chunk}",
                            data=v,
                            chunks=(chunk,),
                            scaleoffset=3 if v.dtype.kind == "f" else 0,
                            fillvalue=fill,
                        )
            f.create_dataset("so_bits", data=VALUES % 8, chunks=(N,), scaleoffset=3)
            f.create_dataset("so_full", data=VALUES, chunks=(N,), scaleoffset=32)
            for name, type_id, v in ("nbit", nbit(), VALUES), ("nbit_big", h5t.STD_I16BE.copy(), VALUES.astype(">i2") % 100):
                if name == "nbit_big":
                    type_id.set_precision(9)
                p = h5p.create(h5p.DATASET_CREATE)
                p.set_chunk((777,))
                p.set_filter(NBIT, h5py.h5z.FLAG_OPTIONAL, ())
                h5d.create(f.id, name.encode(), type_id, h5s.create_simple((N,)), p).write(
                    h5s.ALL, h5s.ALL, np.ascontiguousarray(v)
                )
            compound = h5t.create(h5t.COMPOUND, 24)
            compound.insert(b"a", 1, nbit())
            compound.insert(b"b", 5, h5t.array_create(h5t.STD_I16LE, (3,)))
            compound.insert(b"c", 12, h5t.IEEE_F64LE)
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_chunk((777,))
            p.set_filter(NBIT, h5py.h5z.FLAG_OPTIONAL, ())
            rows = np.zeros(
                N,
                np.dtype(
                    {"names": ["a", "b", "c"], "formats": ["<u4", ("<i2", 3), "<f8"], "offsets": [1, 5, 12], "itemsize": 24}
                ),
            )
            rows["a"], rows["b"], rows["c"] = VALUES % 1000, VALUES.reshape(-1, 1) % 99, VALUES / 3
            h5d.create(f.id, b"nbit_compound", compound, h5s.create_simple((N,)), p).write(
                h5s.ALL, h5s.ALL, rows, h5py.h5t.py_create(rows.dtype)
            )
            if h5py.h5z.filter_avail(SZIP):
                f.create_dataset("szip", data=VALUES, chunks=(777,), compression="szip")
                f.create_dataset("szip_whole", data=VALUES, chunks=(N,), compression="szip")
        self.convert("--profile", "recode", "--compress", "none", status=0)
        assert self.verify() == 0

        names = []
        with h5py.File(self.source, "r+") as f:
            for name in list(f):
                d = f[name]
                if "same" in name or d.chunks[0] != N or f"{name}_cut" in f:
                    continue
                _, stored = d.id.read_direct_chunk((0,))

                def promising(head):
                    return bytes(head) + stored[len(head) : len(stored) // 2]

                attacks = {"cut": stored[: len(stored) // 2], "short": stored[:24]}
                if name == "szip_whole":
                    attacks["less"] = struct.pack("<I", 32) + stored[4:]
                    attacks["more"] = struct.pack("<I", 1 << 31) + stored[4:]
                elif name not in ("so_full",):
                    attacks["wide"] = promising(struct.pack("<I", 8 * d.dtype.itemsize))
                    attacks["wider"] = promising(struct.pack("<I", 1 << 20))
                for attack, data in attacks.items():
                    names.append(f"{name}_{attack}")
                    h5d.create(
                        f.id, names[-1].encode(), d.id.get_type(), d.id.get_space(), d.id.get_create_plist()
                    ).write_direct_chunk((0,), data)
        objects = self.convert("--keep-going", "--profile", "recode", "--compress", "none", status=3)
        self.assert_named(objects, names)
        self.assert_no_marks()

    def test_chunks_that_become_far_larger(self):
        """4 KB of Zstandard for 128 MiB of zeros: refused where it is more than --memory allows;
        and such for a small chunk, at once."""
        size, piece = 128 << 20, 128 << 10

        def bomb(announced):
            blocks = b"".join(
                struct.pack("<I", piece << 3 | 2 | (i + 1 == size // piece))[:3] + b"\0" for i in range(size // piece)
            )
            return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", announced) + blocks

        with h5py.File(self.source, "w") as f:
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_chunk((size,))
            p.set_filter(SHUFFLE, h5py.h5z.FLAG_OPTIONAL, (1,))
            p.set_filter(ZSTD, h5py.h5z.FLAG_OPTIONAL, (3,))
            h5d.create(f.id, b"large", h5t.STD_U8LE, h5s.create_simple((size,)), p).write_direct_chunk((0,), bomb(size))
        done = run("convert", self.source, self.store, "-q", "--memory", "32M", "--profile", "recode")
        assert done.status == 1
        assert "--allow-expansion" in done.errors
        assert SANITIZED or done.peak < 64 << 20, done.peak
        assert self.convert("--keep-going", "--memory", "32M", status=3)["/large"]["lost_chunks"] == [[0]]
        self.convert("--memory", "32M", "--allow-expansion", status=0)
        self.convert("--memory", "512M", status=0)
        with h5py.File(self.source, "w") as f:
            for name, announced in ("honest", size), ("lying", PLAIN):
                create(f, name, ["zstd"]).write_direct_chunk((0,), bomb(announced))
                create(f, name + "_strings", ["zstd"], h5t.py_create(h5py.string_dtype(), logical=True)).write_direct_chunk(
                    (0,), bomb(announced)
                )
            create(f, "bzip2", ["bzip2"]).write_direct_chunk((0,), bz2.compress(bytes(size // 2)))
        done = run("convert", self.source, self.store, "-q", "--overwrite", "--keep-going", "--memory", "32M")
        assert done.status == 3, done.errors
        assert SANITIZED or done.peak < 64 << 20, done.peak

    def verify(self):
        return subprocess.run([COMMAND, "verify", self.source, self.store], capture_output=True).returncode
