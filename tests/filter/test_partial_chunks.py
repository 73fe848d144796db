# SPDX-License-Identifier: BSL-1.0
"""Chunks over the edge of datasets that leave such chunks unfiltered (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS):
doctor FILE names them, convert and verify get them right."""

import ctypes
import json

import h5py
import numpy as np
import pytest

from doctor import BYTES, PACKBITS, run

SHAPE, CHUNK, TOO_MANY_BITS = 100, 64, 5000
PACKED, RAW = CHUNK * 12 // 8, 2 * CHUNK
WHY = "it reaches over the edge, and the dataset leaves such chunks unfiltered (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS)"


def libhdf5():
    """The one that h5py loaded, which does not wrap H5Pset_chunk_opts() in 3.7."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = {line.split()[-1] for line in maps if "/libhdf5" in line and "_hl" not in line}
    assert len(loaded) == 1, loaded
    return ctypes.CDLL(loaded.pop())


def create(f, name, values, filters):
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((CHUNK,))
    dont_filter_partial_chunks = 2
    assert libhdf5().H5Pset_chunk_opts(ctypes.c_int64(dcpl.id), ctypes.c_uint(dont_filter_partial_chunks)) >= 0
    filters(dcpl)
    d = h5py.Dataset(
        h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_U16LE, h5py.h5s.create_simple((SHAPE,), (h5py.h5s.UNLIMITED,)), dcpl)
    )
    d[:] = values
    return d


def packbits(p):
    p.set_filter(PACKBITS, h5py.h5z.FLAG_OPTIONAL, (12,))


PIPELINES = {
    "alone": packbits,
    "checked": lambda p: (packbits(p), p.set_fletcher32()),
    "checked_before": lambda p: (p.set_fletcher32(), packbits(p)),
    "deflated": lambda p: (packbits(p), p.set_deflate(1)),
    "big": lambda p: p.set_filter(BYTES, h5py.h5z.FLAG_OPTIONAL, (1,)),
}


@pytest.fixture(params=["earliest", "latest"])
def file(tmp_path, request):
    with h5py.File(tmp_path / "in.h5", "w", libver=request.param) as f:
        for name, filters in PIPELINES.items():
            d = create(f, name, np.arange(SHAPE), filters)
            assert d.id.get_chunk_info(1).size == RAW, name
        misfit = np.arange(SHAPE)
        misfit[70] = TOO_MANY_BITS
        create(f, "misfit", misfit, packbits)
        misfit[3] = TOO_MANY_BITS
        create(f, "both", misfit, packbits)
    return tmp_path / "in.h5"


def test_doctor_names_them(file):
    found = {d["path"][1:]: d for d in json.loads(run("doctor", file, "--json"))["file"]["filtered"]}
    for name in ("alone", "checked", "checked_before", "deflated", "misfit"):
        d = found[name]
        assert (d["chunks"], d["raw_chunks"], d["problem"]) == (2, 1, ""), d
        assert d["raw"] == [{"origin": [CHUNK], "why": WHY}], d
    assert (found["alone"]["stored_bytes"], found["alone"]["would_hold_all"]) == (PACKED + RAW, "")
    assert found["misfit"]["would_hold_all"] == "13 bits (0 to 12)"  # of interest to who stores it anew
    assert [r["why"] for r in found["both"]["raw"]] == ["element (3) is 0x1388, which bits 0 to 11 cannot hold", WHY]
    assert (found["big"]["raw_chunks"], found["big"]["problem"]) == (0, ""), found["big"]


def test_inspect_counts_them_where_sizes_tell(file):
    found = {
        n["path"][1:]: n.get("unpacked_chunks")
        for n in json.loads(run("inspect", file, "--json"))["trees"][0]["nodes"]
        if n["kind"] == "array"
    }
    assert found == {"alone": 1, "checked": None, "checked_before": None, "deflated": None, "big": None, "misfit": 1, "both": 2}


def unpack(chunk):
    bits = np.unpackbits(np.frombuffer(chunk, "u1"), bitorder="little").reshape(CHUNK, 12)
    return bits @ (1 << np.arange(12))


def test_convert_and_verify_get_the_values_right(file):
    store = file.parent / "out.zarr"
    run("convert", "-q", file, store)
    run("verify", file, store)
    for name in ("alone", "misfit", "big"):
        codecs = json.loads((store / name / "zarr.json").read_text())["codecs"]
        chunks = [(store / name / "c" / str(i)).read_bytes() for i in range(2)]
        if name == "alone":  # the chunk over the edge fits, so it is packed now
            assert codecs == [{"name": "packbits", "configuration": {"last_bit": 11}}]
            values = np.concatenate([unpack(c) for c in chunks])
        else:  # a value does not fit; another codec cannot hold the dataset's chunks
            assert codecs == [{"name": "bytes", "configuration": {"endian": "big" if name == "big" else "little"}}], (
                name,
                codecs,
            )
            values = np.concatenate(
                [
                    np.frombuffer(c, codecs[0]["configuration"]["endian"][0].replace("l", "<").replace("b", ">") + "u2")
                    for c in chunks
                ]
            )
        wanted = np.arange(SHAPE)
        if name == "misfit":
            wanted[70] = TOO_MANY_BITS
        assert (values[:SHAPE] == wanted).all(), name
