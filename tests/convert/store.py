# SPDX-License-Identifier: BSL-1.0
"""Runs `zarrbits convert` and reads Zarr v3 stores with nothing but json, zlib, numpy and Blosc's library."""
import ctypes
import json
import math
import os
import struct
import subprocess
import zlib

import numpy as np

COMMAND = os.environ["ZARRBITS_COMMAND"]


def convert(*args, status=0, env=None):
    run = subprocess.run([COMMAND, "convert", *map(str, args)], capture_output=True, text=True, env=env)
    assert run.returncode == status, f"exit {run.returncode}, not {status}: {run.stderr}"
    assert "HDF5-DIAG" not in run.stderr, run.stderr
    return run


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
        shape, shard = m["shape"], m["chunk_grid"]["configuration"]["chunk_shape"]
        chunk, codecs = shard, {c["name"]: c.get("configuration", {}) for c in m["codecs"]}
        if sharding := codecs.get("sharding_indexed"):
            chunk, codecs = sharding["chunk_shape"], {c["name"]: c.get("configuration", {}) for c in sharding["codecs"]}
        text = "vlen-utf8" in codecs or "vlen-bytes" in codecs
        name = m["data_type"] if isinstance(m["data_type"], str) else m["data_type"]["name"]
        if text:
            dtype = np.dtype(object)
        elif name == "struct":
            dtype = struct_dtype(m["data_type"], codecs["bytes"].get("endian") == "big")
        else:
            dtype = np.dtype(name).newbyteorder(">" if codecs["bytes"].get("endian") == "big" else "<")
        out = np.empty(shape, dtype)
        for corner in np.ndindex(*[math.ceil(s / c) for s, c in zip(shape, chunk)]):
            per = [s // c for s, c in zip(shard, chunk)]
            path = os.path.join(self.path, node, "c", *(str(i // n) for i, n in zip(corner, per)))
            where = tuple(slice(i * c, min((i + 1) * c, s)) for i, c, s in zip(corner, chunk, shape))
            raw = self.chunk(path) if os.path.exists(path) else None
            if raw is not None and sharding:
                raw = chunk_of_shard(raw, [i % n for i, n in zip(corner, per)], per)
            if raw is None:
                out[where] = m["fill_value"]
                continue
            if "gzip" in codecs:
                raw = zlib.decompress(raw, 31)
            if "blosc" in codecs:
                raw = unblosc(raw)
            block = strings(raw, "vlen-utf8" in codecs) if text else np.frombuffer(raw, dtype)
            block = block.reshape(chunk)
            out[where] = block[tuple(slice(0, w.stop - w.start) for w in where)]
        return out


def chunk_of_shard(raw, at, per):
    """Nothing where the index, at the shard's end, has none."""
    index = struct.iter_unpack("<QQ", raw[-16 * math.prod(per) - 4:-4])
    offset, size = list(index)[np.ravel_multi_index(at, per)]
    return None if offset == 2**64 - 1 else raw[offset:offset + size]


def unblosc(raw):
    made = ctypes.create_string_buffer(int.from_bytes(raw[4:8], "little"))
    assert ctypes.CDLL("libblosc.so.1").blosc_decompress_ctx(raw, made, ctypes.c_size_t(len(made)), 1) == len(made)
    return made.raw


def strings(raw, utf8):
    n, at, out = int.from_bytes(raw[:4], "little"), 4, []
    for _ in range(n):
        size = int.from_bytes(raw[at:at + 4], "little")
        value = raw[at + 4:at + 4 + size]
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
