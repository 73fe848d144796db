# SPDX-License-Identifier: BSL-1.0
"""Reads Zarr v3 stores with nothing but json, zlib,
numpy and the libraries of Blosc and Zstandard."""

import base64
import ctypes
import json
import math
import os
import struct
import zlib

import numpy as np


def strict(text):
    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


class Store:
    def __init__(self, path):
        self.path = path

    def meta(self, node):
        with open(os.path.join(self.path, node, "zarr.json"), encoding="utf-8") as f:
            return strict(f.read())

    def attributes(self, node=""):
        return self.meta(node)["attributes"]

    def notes(self, node=""):
        """Our own, wherever they are: readers do not see them unless they were asked for with --convention none."""
        meta = self.meta(node)
        notes = meta.get("zarrbits", meta["attributes"].get("_nc_zarrbits", meta["attributes"].get("zarrbits", {})))
        return {k: v for k, v in notes.items() if k != "must_understand"}

    def has(self, node):
        return os.path.exists(os.path.join(self.path, node, "zarr.json"))

    def chunk(self, key):
        with open(os.path.join(self.path, key), "rb") as f:
            return f.read()

    def read(self, node):
        """The whole array; strings as objects, structs as bytes."""
        m = self.meta(node)
        assert m["node_type"] == "array", m
        shape, pipeline = m["shape"], m["codecs"]
        edges = chunk_edges(m)
        shard = chunk = [max(lengths, default=1) for lengths in edges]
        sharding = next((c["configuration"] for c in pipeline if c["name"] == "sharding_indexed"), None)
        if sharding:
            chunk, pipeline = sharding["chunk_shape"], sharding["codecs"]
            edges = [[c] * math.ceil(s / c) for s, c in zip(shape, chunk)]
        codecs = {c["name"]: c.get("configuration", {}) for c in pipeline}
        text = "vlen-utf8" in codecs or "vlen-bytes" in codecs
        name = m["data_type"] if isinstance(m["data_type"], str) else m["data_type"]["name"]
        if text:
            dtype = np.dtype(object)
        elif name == "struct":
            dtype = struct_dtype(m["data_type"], codecs["bytes"].get("endian") == "big")
        else:
            # times of numpy are read as their counts
            dtype = np.dtype("i8" if name in ("numpy.datetime64", "numpy.timedelta64") else name)
            dtype = dtype.newbyteorder(">" if codecs["bytes"].get("endian") == "big" else "<")
        out = np.empty(shape, dtype)
        for corner in np.ndindex(*map(len, edges)):
            per = [s // c for s, c in zip(shard, chunk)]
            place = [str(i // n) for i, n in zip(corner, per)]
            dots = m["chunk_key_encoding"]["name"] == "v2"  # as in references
            path = os.path.join(self.path, node, *([".".join(place) or "0"] if dots else ["c", *place]))
            begin = [sum(lengths[:i]) for i, lengths in zip(corner, edges)]
            extent = [lengths[i] for i, lengths in zip(corner, edges)]
            where = tuple(slice(b, min(b + n, s)) for b, n, s in zip(begin, extent, shape))
            raw = self.chunk(path) if os.path.exists(path) else None
            if raw is not None and sharding:
                raw = chunk_of_shard(raw, [i % n for i, n in zip(corner, per)], per)
            if raw is None:
                out[where] = (
                    filled(m["fill_value"], dtype)
                    if not text
                    else base64.b64decode(m["fill_value"])
                    if "vlen-bytes" in codecs
                    else m["fill_value"]
                )
                continue
            for codec in reversed(pipeline[1:]):
                raw = UNDO[codec["name"]](raw, codec.get("configuration", {}))
            block = strings(raw, "vlen-utf8" in codecs) if text else np.frombuffer(raw, dtype)
            block = block.reshape(extent)
            out[where] = block[tuple(slice(0, w.stop - w.start) for w in where)]
        return out


def chunk_edges(m):
    """The lengths of all chunks along each dimension, by either chunk grid."""
    grid = m["chunk_grid"]
    if grid["name"] == "regular":
        shapes = grid["configuration"]["chunk_shape"]
    else:
        assert grid["name"] == "rectilinear" and set(grid["configuration"]) == {"kind", "chunk_shapes"}, grid
        assert grid["configuration"]["kind"] == "inline", grid
        shapes = grid["configuration"]["chunk_shapes"]
    assert len(shapes) == len(m["shape"])
    edges = []
    for given, extent in zip(shapes, m["shape"]):
        if isinstance(given, int):
            edges.append([given] * math.ceil(extent / given))
        else:
            edges.append([n for each in given for n in ([each] if isinstance(each, int) else [each[0]] * each[1])])
            assert sum(edges[-1]) >= extent
    return edges


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def chunk_of_shard(raw, at, per):
    """Nothing where the index, at the shard's end, has none."""
    index = struct.iter_unpack("<QQ", raw[-16 * math.prod(per) - 4 : -4])
    offset, size = list(index)[np.ravel_multi_index(at, per)]
    return None if offset == 2**64 - 1 else raw[offset : offset + size]


def filled(value, dtype):
    """A fill value of zarr.json as a scalar of this type."""
    if dtype.names and not isinstance(value, str):
        return np.array(tuple(filled(value[n], dtype[n]) for n in dtype.names), dtype)
    if dtype.names or dtype.kind in "SV":
        return np.frombuffer(base64.b64decode(value) if isinstance(value, str) else bytes(value), dtype)[0]
    if dtype.kind == "c":
        parts = np.array(
            [filled(v, np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")) for v in value],
            f"{dtype.byteorder}f{dtype.itemsize // 2}",
        )
        return parts.view(dtype)[0]
    if isinstance(value, str) and value.startswith("0x"):
        return np.array(int(value, 16), f"{dtype.byteorder}u{dtype.itemsize}").view(dtype)
    return np.array(value, dtype)


def unblosc(raw):
    made = ctypes.create_string_buffer(int.from_bytes(raw[4:8], "little"))
    assert ctypes.CDLL("libblosc.so.1").blosc_decompress_ctx(raw, made, ctypes.c_size_t(len(made)), 1) == len(made)
    return made.raw


def unzstd(raw):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_getFrameContentSize.restype, library.ZSTD_decompress.restype = ctypes.c_ulonglong, ctypes.c_size_t
    made = ctypes.create_string_buffer(library.ZSTD_getFrameContentSize(raw, ctypes.c_size_t(len(raw))))
    assert library.ZSTD_decompress(made, ctypes.c_size_t(len(made)), raw, ctypes.c_size_t(len(raw))) == len(made)
    return made.raw


def unshuffle(raw, size):
    return np.frombuffer(raw, "u1").reshape(size, -1).T.tobytes()


UNDO = {
    "gzip": lambda raw, _: zlib.decompress(raw, 31),
    "blosc": lambda raw, _: unblosc(raw),
    "zstd": lambda raw, _: unzstd(raw),
    "crc32c": lambda raw, _: raw[:-4],
    "numcodecs.zlib": lambda raw, _: zlib.decompress(raw),
    "numcodecs.fletcher32": lambda raw, _: raw[:-4],
    "numcodecs.shuffle": lambda raw, how: unshuffle(raw, how["elementsize"]),
}


def strings(raw, utf8):
    n, at, out = int.from_bytes(raw[:4], "little"), 4, []
    for _ in range(n):
        size = int.from_bytes(raw[at : at + 4], "little")
        value = raw[at + 4 : at + 4 + size]
        out.append(value.decode() if utf8 else value)
        at += 4 + size
    assert at == len(raw)
    a = np.empty(n, object)
    a[:] = out
    return a


def struct_dtype(data_type, big):
    fields = []
    for f in data_type["configuration"]["fields"]:
        t = f["data_type"]
        if isinstance(t, str):
            fields.append((f["name"], np.dtype(t).newbyteorder(">" if big else "<")))
        elif t["name"] == "struct":
            fields.append((f["name"], struct_dtype(t, big)))
        else:
            kind = {"raw_bytes": "V", "null_terminated_bytes": "S"}[t["name"]]
            fields.append((f["name"], f"{kind}{t['configuration']['length_bytes']}"))
    return np.dtype(fields)
