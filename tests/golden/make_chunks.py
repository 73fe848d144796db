#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes chunks.json: chunks that other implementations encoded, for the decoders of zarrbits. Run it by hand:

    python3 -m venv v && v/bin/pip install h5py hdf5plugin numcodecs
    v/bin/python tests/golden/make_chunks.py > tests/golden/chunks.json

"hdf5" has chunks of HDF5 files: the filters as the file has them, what wrote them, the stored chunk, and the values as the
libhdf5 of that writer reads them. "zarr" has chunks by numcodecs, with the codecs as zarr.json has them. Values are
little-endian.
"""

import base64
import json
import tempfile

import h5py
import hdf5plugin
import numcodecs
import numpy as np

DICE = np.random.default_rng(20261125)
TYPES = ("u1", "i2", "u4", "f4", "i8", "f8")


def values_of(dtype, count=96):
    """Numbers that compress, and some that do not."""
    steps = np.arange(count) // 5 * 3
    steps[::7] = DICE.integers(0, 100, len(steps[::7]))
    return steps.astype("<" + dtype)


def text(data):
    return base64.b64encode(bytes(data)).decode()


def hdf5_chunk(values, made_by, **how):
    with tempfile.NamedTemporaryFile(suffix=".h5") as file:
        with h5py.File(file.name, "w") as f:
            f.create_dataset("x", data=values, chunks=values.shape, **how)
        with h5py.File(file.name) as f:
            properties = f["x"].id.get_create_plist()
            filters = []
            for i in range(properties.get_nfilters()):
                number, _, parameters, name = properties.get_filter(i)
                filters.append({"id": number, "name": name.decode(), "values": [int(v) for v in parameters]})
            mask, stored = f["x"].id.read_direct_chunk((0,))
            if mask:  # the filter left this chunk as it was
                return None
            return {
                "made_by": made_by,
                "type": values.dtype.str,
                "filters": filters,
                "chunk": text(stored),
                "values": text(f["x"][:].tobytes()),
            }


def hdf5_chunks():
    by_h5py, by_plugin = f"h5py {h5py.version.version}, HDF5 {h5py.version.hdf5_version}", f"hdf5plugin {hdf5plugin.version}"
    for dtype in TYPES:
        values = values_of(dtype)
        for how in (
            {"compression": "gzip"},
            {"compression": "gzip", "shuffle": True},
            {"shuffle": True},
            {"fletcher32": True},
            {"compression": "lzf"},
            {"compression": "lzf", "shuffle": True, "fletcher32": True},
        ):
            yield hdf5_chunk(values, by_h5py, **how)
        if dtype != "f8":  # libhdf5 itself packs no long floats of these
            yield hdf5_chunk(values, by_h5py, scaleoffset=2 if dtype == "f4" else 0)
        for how in (
            hdf5plugin.LZ4(),
            hdf5plugin.Zstd(),
            hdf5plugin.BZip2(),
            hdf5plugin.Bitshuffle(cname="none"),
            hdf5plugin.Bitshuffle(cname="lz4"),
            hdf5plugin.Bitshuffle(cname="zstd"),
        ):
            yield hdf5_chunk(values, by_plugin, **how)
        for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd") if dtype in ("i2", "f4", "i8") else ():
            for shuffle in (0, 1, 2):
                yield hdf5_chunk(values, by_plugin, **hdf5plugin.Blosc(cname=name, clevel=5, shuffle=shuffle))


def zarr_chunks():
    made_by = f"numcodecs {numcodecs.__version__}"
    for dtype in TYPES:
        values = values_of(dtype)
        size = values.dtype.itemsize
        codecs = [
            ("gzip", {"level": 5}, numcodecs.GZip(5)),
            ("zstd", {"level": 3, "checksum": True}, numcodecs.Zstd(3, checksum=True)),
            ("numcodecs.zlib", {"level": 5}, numcodecs.Zlib(5)),
            ("numcodecs.bz2", {"level": 5}, numcodecs.BZ2(5)),
            ("numcodecs.lz4", {"acceleration": 1}, numcodecs.LZ4(1)),
            ("numcodecs.shuffle", {"elementsize": size}, numcodecs.Shuffle(size)),
            ("numcodecs.fletcher32", {}, numcodecs.Fletcher32()),
        ]
        for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd") if dtype in ("i2", "f4", "i8") else ():
            for number, shuffle in enumerate(("noshuffle", "shuffle", "bitshuffle")):
                codecs.append(
                    (
                        "blosc",
                        {"cname": name, "clevel": 5, "shuffle": shuffle, "typesize": size, "blocksize": 0},
                        numcodecs.Blosc(name, 5, number),
                    )
                )
        for name, configuration, codec in codecs:
            yield {
                "made_by": made_by,
                "type": values.dtype.name,
                "codecs": [{"name": name, "configuration": configuration}],
                "chunk": text(codec.encode(values)),
                "values": text(values.tobytes()),
            }


def lines(name, entries):
    return f' "{name}": [\n' + ",\n".join("  " + json.dumps(e) for e in entries if e) + "\n ]"


print("{\n" + ",\n".join([lines("hdf5", hdf5_chunks()), lines("zarr", zarr_chunks())]) + "\n}")
