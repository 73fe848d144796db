# SPDX-License-Identifier: BSL-1.0
"""A file with one dataset of each kind, and a store of it that is written by hand,
from Zarr's specification and docs/reference/types.md."""

import base64
import ctypes
import gzip
import json
import os
import re
import struct

import h5py
import numpy as np

from store import crc32c

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
BYTES = {"name": "bytes"}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
CRC32C = {"name": "crc32c"}
PAYLOAD_NAN = np.array(0x7FF8000000000123, "u8").view("f8")[()]
COMPOUND = np.dtype([("n", "<i4"), ("x", "<f8"), ("s", "S3")])
STRUCT = {
    "name": "struct",
    "configuration": {
        "fields": [
            {"name": "n", "data_type": "int32"},
            {"name": "x", "data_type": "float64"},
            {"name": "s", "data_type": {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}},
        ]
    },
}
# as zarr-python 3.1 writes it: the older name, and the fill value as numpy's memory in base64
STRUCTURED = {
    "name": "structured",
    "configuration": {"fields": [[f["name"], f["data_type"]] for f in STRUCT["configuration"]["fields"]]},
}
STRUCTURED_FILL = base64.b64encode(bytes(COMPOUND.itemsize)).decode()


def fixed(length):
    """The note of text of a fixed length."""
    return {"class": "string", "length": length, "padding": "null"}


def strings(*texts):
    parts = [t.encode() if isinstance(t, str) else t for t in texts]
    return struct.pack("<I", len(parts)) + b"".join(struct.pack("<I", len(p)) + p for p in parts)


def write_json(folder, value):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "zarr.json"), "w") as f:
        json.dump(value, f)


def group(folder, attributes=None, **notes):
    """`notes`: the value of "zarrbits"."""
    write_json(
        folder,
        {"zarr_format": 3, "node_type": "group", "attributes": (attributes or {}) | ({"zarrbits": notes} if notes else {})},
    )


def array(folder, shape, chunk, data_type, codecs, fill, chunks, keys=None, **notes):
    """`chunks`: key -> bytes."""
    write_json(
        folder,
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": data_type,
            "fill_value": fill,
            "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "attributes": {"zarrbits": notes} if notes else {},
            "chunk_key_encoding": keys or {"name": "default", "configuration": {"separator": "/"}},
        },
    )
    for key, data in chunks.items():
        path = os.path.join(folder, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


def edit(store, node, **changes):
    path = os.path.join(store, node, "zarr.json")
    with open(path) as f:
        metadata = json.load(f)
    metadata.update(changes)
    with open(path, "w") as f:
        json.dump(metadata, f)


def note(store, node, **notes):
    """Changes notes under "zarrbits"; None takes one away."""
    with open(os.path.join(store, node, "zarr.json")) as f:
        attributes = json.load(f)["attributes"]
    own = {k: v for k, v in (attributes.pop("zarrbits", {}) | notes).items() if v is not None}
    edit(store, node, attributes=attributes | ({"zarrbits": own} if own else {}))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def flip(store, key, at, mask=1):
    with open(os.path.join(store, key), "r+b") as f:
        f.seek(at)
        b = f.read(1)[0]
        f.seek(at)
        f.write(bytes([b ^ mask]))


def library():
    """libhdf5 itself, for what h5py cannot write."""
    with open("/proc/self/maps") as f:
        return ctypes.CDLL(next(line.split()[-1] for line in f if re.search(r"/libhdf5[^/]*\.so", line) and "_hl" not in line))


def write_sequences(file, name, kind, values, size):
    """`values` are the bytes of the sequences, elements have `size`."""
    write = library().H5Dwrite
    write.argtypes = [ctypes.c_int64] * 5 + [ctypes.c_char_p]
    held = [ctypes.create_string_buffer(v) for v in values]
    rows = b"".join(struct.pack("<QQ", len(v) // size, ctypes.addressof(h)) for v, h in zip(values, held))
    dataset = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((len(values),)))
    assert write(dataset.id, kind.id, 0, 0, 0, rows) >= 0


def write_source(path):
    with h5py.File(path, "w") as f:
        f.attrs["title"] = "an attribute"
        g = f.create_group("g")
        g.create_dataset("int16", data=np.arange(-7, 8, dtype="<i2").reshape(3, 5), chunks=(2, 2))
        g.create_dataset("big", data=np.arange(5, dtype=">i4"), chunks=(2,))
        g.create_dataset("nan", data=np.array([PAYLOAD_NAN, -0.0, 1.5]))
        g.create_dataset("mask", data=np.array([1, 0, 1, 1, 0, 0, 0, 0, 1, 1], "?"))
        g.create_dataset("camera", data=np.array([0xABC, 0xFFF, 1], "<u2"))
        g.create_dataset("scalar", data=np.float32(2.5))
        g.create_dataset("nothing", data=np.zeros((0, 3), "i4"))
        g.create_dataset("complex", data=np.array([1 + 2j, -3 - 0j]))
        g.create_dataset("compound", data=np.array([(1, 2.5, b"ab"), (-1, 4, b"")], COMPOUND))
        f.create_dataset("filled", (6,), "f8", chunks=(2,), fillvalue=PAYLOAD_NAN)[0:2] = [1, 2]
        f.create_dataset("text", data=["é", "", "abc"], dtype=h5py.string_dtype())
        f.create_dataset("fixed", data=np.array([b"abc", b"", b"\xffz"], "S4"))
        f.create_dataset("enum", data=np.array([1, 2], "i1"), dtype=h5py.enum_dtype({"RED": 1, "BLUE": 2}, basetype="i1"))
        f.create_dataset("array_type", (2,), np.dtype(("<i4", (3,))))[...] = np.arange(6).reshape(2, 3)
        f.create_dataset("null", data=h5py.Empty("i4"))
        v = f.create_dataset("sequences", (2,), h5py.vlen_dtype("<i4"))
        v[0], v[1] = [1, 2, 3], [4]
        mixed = f.create_dataset("mixed", (2,), np.dtype([("a", "<i4"), ("s", h5py.string_dtype())]))
        mixed[...] = np.array([(1, "one"), (2, "two")], mixed.dtype)
        r = f.create_dataset("references", (2,), h5py.ref_dtype)
        r[0] = f["g/int16"].ref
        f.create_dataset("a%b\\c", data=np.array([7], "u1"))
        f["hard"] = f["g/int16"]
        f["soft"] = h5py.SoftLink("/g/int16")
        f["loop"] = f["/"]
        f["type"] = np.dtype("i8")


def write_store(s):
    group(
        s,
        {"title": "an attribute"},
        named_types={"type": "int64"},
        links={
            "hard": {"kind": "hard", "target": "/g/int16"},
            "loop": {"kind": "hard", "target": "/"},
            "soft": {"kind": "soft", "target": "/g/int16"},
        },
    )
    group(s + "/g")
    whole = np.zeros((4, 6), "<i2")
    whole[:3, :5] = np.arange(-7, 8).reshape(3, 5)
    array(
        s + "/g/int16",
        [3, 5],
        [2, 2],
        "int16",
        [LITTLE, GZIP],
        0,
        {f"c/{i}/{j}": gzip.compress(whole[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].tobytes()) for i in range(2) for j in range(3)},
    )
    array(
        s + "/g/big",
        [5],
        [2],
        "int32",
        [BIG, CRC32C],
        0,
        {
            f"{i}": d + crc32c(d)
            for i, d in enumerate([struct.pack(">2i", 0, 1), struct.pack(">2i", 2, 3), struct.pack(">2i", 4, 0)])
        },
        keys={"name": "v2", "configuration": {"separator": "."}},
    )
    array(s + "/g/nan", [3], [3], "float64", [LITTLE], 0.0, {"c/0": np.array([PAYLOAD_NAN, -0.0, 1.5]).tobytes()})
    array(
        s + "/g/mask",
        [10],
        [10],
        "bool",
        [{"name": "packbits", "configuration": {"padding_encoding": "first_byte"}}],
        False,
        {"c/0": bytes([6, 0b00001101, 0b00000011])},
    )
    array(
        s + "/g/camera",
        [3],
        [3],
        "uint16",
        [{"name": "packbits", "configuration": {"last_bit": 11}}],
        0,
        {"c/0": b"\xbc\xfa\xff\x01\x00"},
    )
    array(s + "/g/scalar", [], [], "float32", [LITTLE], 0.0, {"c": struct.pack("<f", 2.5)})
    array(s + "/g/nothing", [0, 3], [1, 3], "int32", [LITTLE], 0, {})
    array(s + "/g/complex", [2], [2], "complex128", [LITTLE], [0.0, 0.0], {"c/0": np.array([1 + 2j, -3 - 0j]).tobytes()})
    array(
        s + "/g/compound",
        [2],
        [2],
        STRUCT,
        [LITTLE],
        {"n": 0, "x": 0.0, "s": ""},
        {"c/0": np.array([(1, 2.5, b"ab"), (-1, 4, b"")], COMPOUND).tobytes()},
        hdf5_type={
            "class": "compound",
            "fields": [{"name": "n", "type": "int32"}, {"name": "x", "type": "float64"}, {"name": "s", "type": fixed(3)}],
        },
    )
    array(s + "/filled", [6], [2], "float64", [LITTLE], "0x7ff8000000000123", {"c/0": struct.pack("<2d", 1, 2)})
    array(s + "/text", [3], [2], "string", [{"name": "vlen-utf8"}], "", {"c/0": strings("é", ""), "c/1": strings("abc", "")})
    array(
        s + "/fixed",
        [3],
        [3],
        "variable_length_bytes",
        [{"name": "vlen-bytes"}],
        "",
        {"c/0": strings("abc", "", b"\xffz")},
        hdf5_type=fixed(4),
    )
    array(s + "/enum", [2], [2], "int8", [BYTES], 0, {"c/0": b"\1\2"}, enum={"RED": 1, "BLUE": 2})
    array(
        s + "/array_type",
        [2, 3],
        [2, 2],
        "int32",
        [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE],
        0,
        {"c/0/0": struct.pack("<4i", 0, 3, 1, 4), "c/0/1": struct.pack("<4i", 2, 5, 0, 0)},
        array_type=[3],
    )
    group(s + "/null", null_dataspace=True)
    group(s + "/sequences", hdf5_type={"class": "sequence", "base": "int32"}, shape=[2])
    array(
        s + "/sequences/values",
        [4],
        [3],
        "int32",
        [LITTLE],
        0,
        {"c/0": struct.pack("<3i", 1, 2, 3), "c/1": struct.pack("<3i", 4, 0, 0)},
    )
    array(
        s + "/sequences/offsets",
        [3],
        [2],
        "int64",
        [LITTLE],
        0,
        {"c/0": struct.pack("<2q", 0, 3), "c/1": struct.pack("<2q", 4, 0)},
    )
    group(
        s + "/mixed",
        hdf5_type={
            "class": "compound",
            "fields": [{"name": "a", "type": "int32"}, {"name": "s", "type": {"class": "string", "length": "variable"}}],
        },
    )
    array(s + "/mixed/a", [2], [2], "int32", [LITTLE], 0, {"c/0": struct.pack("<2i", 1, 2)})
    array(s + "/mixed/s", [2], [2], "string", [{"name": "vlen-utf8"}], "", {"c/0": strings("one", "two")})
    array(
        s + "/references",
        [2],
        [2],
        "string",
        [{"name": "vlen-utf8"}],
        "",
        {"c/0": strings("/g/int16", "")},
        hdf5_type={"class": "object_reference"},
    )
    array(s + "/a%25b%5Cc", [1], [1], "uint8", [BYTES], 0, {"c/0": b"\7"})


DATASETS = 19
