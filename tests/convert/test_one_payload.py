# SPDX-License-Identifier: BSL-1.0
"""The same 12-bit data gives the same bytes through a stream, in an HDF5 chunk and in a Zarr chunk."""

import json
import os
import subprocess
import zlib

import h5py
import numpy as np

from harness import COMMAND, convert, run
from store import Store

ID, PLUGINS = int(os.environ["ZARRBITS_PACKBITS_ID"]), os.environ["HDF5_PLUGIN_PATH"]


def golden():
    with open(os.environ["ZARRBITS_GOLDEN"], encoding="utf-8") as f:
        for v in json.load(f):
            if (
                v["codec"] == "packbits"
                and v["data_type"] == "uint16"
                and v["configuration"] == {"last_bit": 11}
                and v["elements"] == 34
                and "error" not in v
            ):
                return bytes.fromhex(v["decoded"]), bytes.fromhex(v["encoded"])
    raise AssertionError("no such golden vector")


def test_stream_hdf5_chunk_and_zarr_chunk_are_the_same_bytes(folder):
    decoded, encoded = golden()
    values = np.frombuffer(decoded, "<u2")
    stream = subprocess.run(
        [COMMAND, "encode", "--data-type", "uint16", "--codec", '{"name": "packbits", "configuration": {"last_bit": 11}}'],
        input=decoded,
        capture_output=True,
        check=True,
    ).stdout
    assert stream == encoded
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        d = f.create_dataset("camera", data=values, chunks=(34,), compression=ID, compression_opts=(12,))
        mask, chunk = d.id.read_direct_chunk((0,))
        assert mask == 0 and chunk == encoded
        f["plain"] = values
    packed, plain = (Store(os.path.join(folder, n)) for n in ("packed.zarr", "plain.zarr"))
    convert(source, packed.path, "--codec", "packbits", "--bits", "12", "--report", os.path.join(folder, "r.json"), "--quiet")
    assert packed.chunk("camera/c/0") == encoded and packed.chunk("plain/c/0") == encoded
    with open(os.path.join(folder, "r.json"), encoding="utf-8") as f:
        outcomes = {o["path"]: o["outcome"] for o in json.load(f)["objects"]}
    assert outcomes["/camera"] == "raw" and outcomes["/plain"] == "recoded"
    convert(source, plain.path, "--quiet")  # packed chunks stay packed, nothing else is packed
    assert plain.chunk("camera/c/0") == encoded and plain.chunk("plain/c/0") == decoded
    convert(source, plain.path, "--quiet", "--overwrite", "--codec", "bytes")
    assert plain.chunk("camera/c/0") == decoded


def test_the_plugin_is_not_needed_to_convert_what_it_wrote(folder):
    decoded, _ = golden()
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("camera", data=np.frombuffer(decoded, "<u2"), chunks=(34,), compression=ID, compression_opts=(12,))
        f.create_dataset("mask", data=np.arange(77).reshape(7, 11) % 3 == 0, chunks=(3, 4), compression=ID)
    os.environ["HDF5_PLUGIN_PATH"] = folder
    store = Store(os.path.join(folder, "out.zarr"))
    convert(source, store.path, "--quiet", "--codec", "bytes")
    assert store.chunk("camera/c/0") == decoded
    assert np.array_equal(store.read("mask"), np.arange(77).reshape(7, 11) % 3 == 0)


def test_a_raw_chunk_under_a_mask_that_does_not_say_so_is_read_right(folder):
    """Length alone tells."""
    source, values = os.path.join(folder, "in.h5"), np.arange(128, dtype="<u2")
    values[70] = 5000
    after = {"alone": lambda p: None, "checked": lambda p: p.set_fletcher32(), "deflated": lambda p: p.set_deflate(1)}
    with h5py.File(source, "w") as f:
        for name, add in after.items():
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_chunk((64,))
            dcpl.set_filter(ID, h5py.h5z.FLAG_OPTIONAL, (12,))
            add(dcpl)
            d = h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_U16LE, h5py.h5s.create_simple((128,)), dcpl)
            h5py.Dataset(d)[:64] = values[:64]
            raw = values[64:].tobytes()
            d.write_direct_chunk(
                (64,), {"alone": raw, "checked": raw + fletcher32(raw), "deflated": zlib.compress(raw)}[name], filter_mask=0
            )
    with h5py.File(source, "r") as f:
        for name in after:
            assert np.array_equal(f[name][:], values), name
    for plugins in (PLUGINS, folder):
        os.environ["HDF5_PLUGIN_PATH"] = plugins
        for options in ([], ["--codec", "bytes"]):
            store = Store(os.path.join(folder, "out.zarr"))
            convert(source, store.path, "--quiet", "--overwrite", *options)
            for name in after:
                assert np.array_equal(store.read(name), values), (name, options)
        if plugins != folder:
            run("verify", source, store.path)


def test_packed_and_unpacked_chunks_in_every_pipeline(folder):
    """As the plugin writes them, each chunk now packed, now not; with and without it, the values come out right."""
    source, values = os.path.join(folder, "in.h5"), np.arange(300, dtype=">u2")
    values[[70, 200]] = 5000, 60000
    check, deflate, lzf = (lambda p: p.set_fletcher32()), (lambda p: p.set_deflate(1)), (lambda p: p.set_filter(32000, 1))

    def ours(p):
        return p.set_filter(ID, 0, (12, 2))

    def order(p):
        return p.set_filter(int(os.environ["ZARRBITS_BYTES_ID"]), 1, (0,))

    pipelines = {
        "alone": [ours],
        "checked": [ours, check],
        "before": [check, ours],
        "before_deflated": [check, ours, deflate],
        "deflated": [ours, deflate],
        "filled": [ours, lzf],
        "before_filled": [check, ours, lzf],
        "filled_checked": [ours, lzf, check],
        "order": [check, order],
        "both": [ours, check, deflate],
    }
    with h5py.File(source, "w") as f:
        for name, steps in pipelines.items():
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_chunk((64,))
            dcpl.set_fill_value(np.array(65535, ">u2"))
            for step in steps:
                step(dcpl)
            h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_U16BE, h5py.h5s.create_simple((300,)), dcpl))[:] = (
                values
            )
    for plugins in (PLUGINS, folder):
        os.environ["HDF5_PLUGIN_PATH"] = plugins
        for options in ([], ["--codec", "bytes"]):
            store = Store(os.path.join(folder, "out.zarr"))
            convert(source, store.path, "--quiet", "--overwrite", "--report", os.path.join(folder, "r.json"), *options)
            for name in pipelines:
                assert np.array_equal(store.read(name), values), (name, options)
            if not options:
                with open(os.path.join(folder, "r.json"), encoding="utf-8") as f:
                    reasons = {o["path"]: o.get("reason", "") for o in json.load(f)["objects"]}
                assert (
                    "left chunk [1] unpacked; index [70]" in reasons["/alone"]
                    or "left chunk [3] unpacked; index [200]" in reasons["/alone"]
                ), reasons
        if plugins != folder:  # libhdf5 reads it here, which has no lzf
            without = ["--exclude", "*filled*"]
            convert(source, store.path, "--quiet", "--overwrite", *without)
            run("verify", source, store.path, *without)


def fletcher32(data):
    """HDF5's, of an even number of bytes."""
    a = b = 0
    for i in range(0, len(data), 2):
        a = (a + (data[i] << 8 | data[i + 1])) % 65535
        b = (b + a) % 65535
    return (b << 16 | a).to_bytes(4, "little")
