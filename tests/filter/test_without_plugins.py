# SPDX-License-Identifier: BSL-1.0
"""The command needs no plugin for files of our filters: what libhdf5 has to decode for it, our decoders do."""

import os
import subprocess

import h5py
import numpy as np
import pytest

from doctor import BYTES, PACKBITS, PLUGINS
from harness import COMMAND

DEFLATE, FLETCHER32 = (1, 0, (4,)), (3, 0, ())
INTEGERS = ["u1", "i1", "<u2", ">u2", "<i2", ">i4", "<u4", "<i8", ">u8"]
# options: 1 and 2 count the padding in the first or last byte, 4 cuts what does not fit
PARAMETERS = [(5,), (5, 1), (7, 2), (4, 0, 2), (6, 1, 1), (5, 4)]
PIPELINES = {
    "alone": lambda ours: [ours],
    "deflate": lambda ours: [ours, DEFLATE],
    "fletcher32 before": lambda ours: [FLETCHER32, ours],
    "before both": lambda ours: [FLETCHER32, ours, DEFLATE],
}


def create(f, name, values, pipeline, chunk):
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk)
    for f_id, flags, parameters in pipeline:
        dcpl.set_filter(f_id, flags, parameters)
    d = h5py.h5d.create(
        f.id, name.encode(), h5py.h5t.py_create(values.dtype, logical=True), h5py.h5s.create_simple(values.shape), dcpl
    )
    h5py.Dataset(d)[...] = values


def values_of(dtype, rng, bits):
    low, high = (-(1 << bits - 1), 1 << bits - 1) if np.dtype(dtype).kind == "i" else (0, 1 << bits)
    return rng.integers(low, high, (5, 30)).astype(dtype)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """All that the plugins make, written by the plugins."""
    folder, rng = tmp_path_factory.mktemp("packed"), np.random.default_rng(4)
    path = folder / "packed.h5"
    with h5py.File(path, "w") as f:
        for how, pipeline in PIPELINES.items():
            for dtype in INTEGERS:
                for p in PARAMETERS:
                    if p[1:] == (4,) and "before" in how:
                        continue  # refused: the checksum would be of other values
                    v = values_of(dtype, rng, p[0])
                    if p[2:]:
                        v = (v << p[2]).astype(dtype)
                    v[-1, -1] = 1  # often a value that does not fit in these bits
                    create(f, f"{how} {dtype} {p}".replace(" ", "_"), v, pipeline((PACKBITS, 0, p)), (2, 16))
            for p in [(1,), (1, 16), (1, 18)]:  # 16: the most significant bit first
                create(
                    f,
                    f"{how} ? {p}".replace(" ", "_"),
                    rng.integers(0, 2, (5, 30)).astype(bool),
                    pipeline((PACKBITS, 0, p)),
                    (2, 16),
                )
            for dtype, bits in (("<f4", 31), (">f8", 63), ("<c8", 31), (">c16", 63)):  # without the sign
                create(
                    f,
                    f"{how} {dtype}".replace(" ", "_"),
                    rng.integers(0, 2, (5, 30)).astype(dtype),
                    pipeline((PACKBITS, 0, (bits,))),
                    (2, 16),
                )
            for dtype in [*INTEGERS, "<f4", ">f8", ">c16"]:
                for big in (0, 1):
                    create(
                        f,
                        f"{how} bytes {dtype} {big}".replace(" ", "_"),
                        rng.integers(0, 99, (5, 30)).astype(dtype),
                        pipeline((BYTES, 0, (big,))),
                        (2, 16),
                    )
        layout = h5py.VirtualLayout((150,), "<i2")
        v = values_of("<i2", rng, 5).ravel()
        create(f, "one", v, [(PACKBITS, 0, (5,)), DEFLATE], (64,))
        layout[:] = h5py.VirtualSource(".", "one", (150,))
        f.create_virtual_dataset("virtual", layout)
        assert np.array_equal(f["virtual"], v)
    return path


def run(*arguments, plugins):
    env = {k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"}
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        env={**env, **({"HDF5_PLUGIN_PATH": PLUGINS} if plugins else {})},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout


def test_convert_and_verify(source, tmp_path):
    store = tmp_path / "out.zarr"
    assert run("convert", "-q", source, store, plugins=False)[0] == 0
    with_plugins = run("verify", source, store, plugins=True)
    assert with_plugins[0] == 0 and "datasets: 324 equal" in with_plugins[1], with_plugins
    assert run("verify", source, store, plugins=False) == with_plugins


def test_a_damaged_chunk_is_found(source, tmp_path):
    store = tmp_path / "out.zarr"
    run("convert", "-q", source, store, plugins=False)
    name = "alone_<u2_(5,_1)"
    with h5py.File(source, "r") as f:
        where = f[name].id.get_chunk_info(0)
    data = bytearray(source.read_bytes())
    data[where.byte_offset] = 9  # it counts the padding bits
    damaged = tmp_path / "damaged.h5"
    damaged.write_bytes(data)
    for plugins in (True, False):
        status, said = run("verify", damaged, store, plugins=plugins)
        assert status == 1 and name in said, said


def test_doctor_still_says_that_they_are_not_found(source):
    status, said = run("doctor", source, plugins=False)
    assert status == 1 and "packbits (filter 45429): NOT FOUND" in said and "bytes (filter 45438): NOT FOUND" in said, said
