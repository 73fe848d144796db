# SPDX-License-Identifier: BSL-1.0
"""Writes the seeds of the fuzzers: seeds.py FOLDER. Each has a folder in it; the form of its inputs is at the top of its source.
Those of the codecs and of stores are made of the golden vectors."""

import base64
import io
import json
import os
import struct
import sys
import zipfile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")


def write(fuzzer, name, data):
    folder = os.path.join(sys.argv[1], fuzzer)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


BYTES, REVERSE, OPTIONAL, REPAIR = 1, 2, 4, 8


def seed(name, flags, cd, chunk, spare=0):
    write("filter", name, bytes([flags, len(cd), spare & 255, spare >> 8]) + struct.pack(f"<{len(cd)}I", *cd) + chunk)


def parameters(bits, size, elements, options=0, first=0, components=1, type_bits=None, flags=0):
    packed = (elements * components * bits + 7) // 8 + (options & 3 != 0)
    return [
        bits,
        options,
        first,
        0,
        0x5A504201,
        size * components,
        components,
        size | (type_bits or 8 * size) << 8 | flags << 16,
        elements,
        0,
        packed,
        1 << 16,
    ], packed


BIG, SIGNED, BOOL = 1, 2, 4
cases = {
    "bool": (1, 1, 50, 0, 0, 1, 1, BOOL),
    "bool_numcodecs": (1, 1, 50, 17, 0, 1, 1, BOOL),
    "camera": (12, 2, 33, 0),
    "camera_big": (12, 2, 33, 2, 0, 1, None, BIG),
    "offset": (8, 2, 20, 1, 4),
    "signed": (5, 4, 17, 2, 0, 1, None, SIGNED),
    "i12": (12, 2, 21, 0, 0, 1, 12, SIGNED),
    "wide": (53, 8, 9, 1, 11),
    "complex": (20, 4, 8, 0, 12, 2),
    "whole": (8, 1, 24, 1),
    "cut": (3, 1, 40, 4),
    "report": (7, 1, 40, 8),
}
for name, case in cases.items():
    cd, packed = parameters(*case)
    decoded = cd[5] * cd[8]
    padding, count = cd[1] & 3, (-cd[8] * cd[6] * cd[0]) % 8
    body = bytes(packed - (padding != 0))
    chunk = {0: body, 1: bytes([count]) + body, 2: body + bytes([count])}[padding]
    seed(f"{name}_encode", OPTIONAL, cd, bytes(decoded))
    seed(f"{name}_decode", REVERSE, cd, chunk)
    seed(f"{name}_decode_in_place", REVERSE | REPAIR, cd, chunk, decoded)
    seed(f"{name}_encode_repaired", REPAIR, cd, bytes(range(decoded % 256)))
for size, big, memory in ((2, 1, 0), (4, 0, 1), (8, 1, 0), (3, 1, 0), (1, 0, 0)):
    for flags, name in ((BYTES, "encode"), (BYTES | REVERSE, "decode")):
        seed(f"bytes_{size}_{name}", flags, [big, 0x5A424501, size, memory, size * 12, 0, 1 << 16], bytes(range(size * 12)))
seed("empty", 0, [], b"")
seed("short_list", REVERSE, [12], bytes(24))

# codecs: one of each kind of type and configuration
vectors = json.load(open(os.path.join(GOLDEN, "codecs.json"), encoding="utf-8"))
stores = {}
seen = set()
for v in vectors:
    configuration = v.get("configuration", {})
    kind = (v["codec"], str(v["data_type"])[:12], *sorted(configuration))
    if kind in seen or not isinstance(configuration, dict):
        continue
    seen.add(kind)
    data_type = v["data_type"] if isinstance(v["data_type"], str) else json.dumps(v["data_type"])
    codec = {"name": v["codec"], "configuration": configuration}
    write("codec", f"{len(seen):03}", f"{data_type}\n{json.dumps(codec)}".encode())
    if len(seen) % 8 == 0 and v.get("encoded") is not None and v.get("elements"):
        stores[f"codec_{len(seen):03}"] = {
            "zarr.json": ([v["elements"]], [v["elements"]], v["data_type"], [codec], 0),
            "c/0": bytes.fromhex(v["encoded"]),
        }
write("codec", "name", b"uint8\nbytes")


# stores
def metadata(shape, chunk, data_type, codecs, fill, **more):
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": data_type,
            "fill_value": fill,
            "codecs": codecs,
            "attributes": {},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        }
        | more
    ).encode()


LITTLE, GZIP = {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}
GROUP = json.dumps(
    {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"zarrbits": {"selection": {"object": "/a", "include": ["*.raw"], "exclude": []}}},
    }
).encode()
for fuzzed in stores.values():
    fuzzed["zarr.json"] = metadata(*fuzzed["zarr.json"])
for of in ("shards", "rectilinear"):
    golden = json.load(open(os.path.join(GOLDEN, of + ".json"), encoding="utf-8"))
    for where, stored in golden["arrays"].items():
        stores[f"{of}_{where}"] = {"zarr.json": json.dumps(stored["zarr.json"]).encode()} | {
            k: bytes.fromhex(d) for k, d in stored["objects"].items()
        }
texts = struct.pack("<I", 2) + struct.pack("<I", 1) + b"a" + struct.pack("<I", 2) + b"bc"
stores["strings"] = {"zarr.json": metadata([2], [2], "string", [{"name": "vlen-utf8"}], ""), "c/0": texts}
stores["transposed"] = {
    "zarr.json": metadata([2, 3], [2, 3], "int16", [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE], -1),
    "c/0/0": bytes(range(12)),
}
stores["tree"] = {
    "zarr.json": GROUP,
    "g%2F/zarr.json": GROUP,
    "g%2F/a/zarr.json": metadata([4], [2], "float64", [LITTLE], "NaN"),
    "g%2F/a/c/0": bytes(16),
}
stores["struct"] = {
    "zarr.json": metadata(
        [1],
        [1],
        {
            "name": "struct",
            "configuration": {"fields": [{"name": "n", "data_type": "int32"}, {"name": "x", "data_type": "float64"}]},
        },
        [LITTLE],
        {"n": 1, "x": 2.5},
    ),
    "c/0": bytes(12),
}
names = [
    ("gzip", {"level": 1}),
    ("zstd", {"level": 1, "checksum": False}),
    ("crc32c", {}),
    ("numcodecs.zlib", {"level": 1}),
    ("numcodecs.bz2", {"level": 1}),
    ("numcodecs.lz4", {"acceleration": 1}),
    ("numcodecs.shuffle", {"elementsize": 4}),
    ("numcodecs.fletcher32", {}),
    ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}),
]
for name, configuration in names:  # the chunk is none, but the fuzzer knows the name
    stores["after_" + name] = {
        "zarr.json": metadata([4], [4], "int32", [LITTLE, {"name": name, "configuration": configuration}], 0),
        "c/0": bytes(20),
    }
stores["v2_keys"] = {
    "zarr.json": metadata(
        [4], [2], "uint8", [{"name": "bytes"}], 0, chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}}
    ),
    "1": b"ab",
}
for name, objects in stores.items():
    write("store", name, b"".join(struct.pack("<BH", len(key), len(data)) + key.encode() + data for key, data in objects.items()))
    if name in ("tree", "shards_end", "strings"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as z:
            for key, data in objects.items():
                z.writestr(zipfile.ZipInfo(key), data)
            z.comment = b"comment" if name == "tree" else b""
        write("store", name + "_zip", packed.getvalue())
        refs = {
            key: data.decode() if key.endswith("zarr.json") else "base64:" + base64.b64encode(data).decode()
            for key, data in objects.items()
        }
        write(
            "store",
            name + "_references",
            json.dumps(
                {
                    "version": 1,
                    "zarrbits": {"sources": [{"url": "file:///a", "size": 9, "modified": 1}]},
                    "refs": {**refs, "x/c/0": ["file:///a", 0, 9]},
                }
            ).encode(),
        )
with open(os.path.join(GOLDEN, "references.parquet"), "rb") as f:
    write("store", "parquet", f.read())
sys.path.append(os.path.join(os.path.dirname(GOLDEN), "support"))
from netcdf3_bytes import Header  # noqa: E402

for version in (1, 2, 5):
    h = Header(version, 2)
    h.attributes = [("title", 2, b"text"), ("list", 4, [1, 2])]
    t, x = h.dimension("t", 0), h.dimension("x", 3)
    h.variable("f", 4, [x], b"abcdefghijkl", [("_FillValue", 4, [7])])
    h.variable("v", 3, [t, x], [b"abcdef", b"ghijkl"])
    h.variable("c", 2, [t], [b"a", b"b"])
    write("store", f"netcdf3_{version}", h.bytes())

# command lines, an argument in each line
lines = [
    "in.h5 out.zarr",
    "in.h5:/a/b out.zip --overwrite --consolidate --fsync -q",
    "in.h5 s3://bucket/prefix --endpoint http://127.0.0.1:9000",
    "in.h5 out.zarr --compress blosc:lz4:5:bitshuffle",
    "in.h5 out.zarr --compress=zstd:3 --checksum crc32c",
    "in.h5 out.zarr --codec packbits --bits 12 --threads 4 --memory 512MiB",
    "in.h5 out.zarr --partition 3/8 --resume",
    "in.h5 out.zarr --include *.raw --include /g[0-9!x]/**/t? --exclude /a\\*b",
    "in.h5 out.zarr --profile native --keep-going --allow-lossy --json",
    "--help",
    "in.h5 out.zarr --chunk 100,200 --shard 64M",
    "in.h5 out.zarr --shard 1000,2000 --chunk 100,",
]
for k, line in enumerate(lines):
    for kind in "cpf":
        write("arguments", f"{kind}_{k:02}", (kind + "\n".join(line.split())).encode())
profile = (
    "[default]\naws_access_key_id = AKIA\naws_secret_access_key = a/b+c=\n# comment\nregion=eu-west-1\ns3 =\n  max = "
    "3\n[profile other]\nendpoint_url = http://localhost:1/\n"
)
for k, target in enumerate(("bucket/prefix", "bucket", "a.b.c/deep/er/", "", "b//x")):
    write("arguments", f"s_{k}", f"s{target}\n{profile}".encode())
