# SPDX-License-Identifier: BSL-1.0
"""h5py from the wheel brings its own libhdf5; the plugins that Debian's libhdf5 loads serve it too, by HDF5_PLUGIN_PATH alone."""

import sys

import h5py
import numpy as np
import pytest

from conftest import debian_python, packed_model

PACKBITS, BYTES = 45429, 45438
WRITE = """
import sys, h5py, numpy as np
with np.load(sys.argv[2]) as values, h5py.File(sys.argv[1], "w", libver=("earliest", "v110")) as f:
    f.create_dataset("mask", data=values["mask"], chunks=(64, 32), compression=45429)
    f.create_dataset("camera", data=values["camera"], chunks=(64, 32), compression=45429, compression_opts=(12,))
    f.create_dataset("big", data=values["big"], chunks=(64, 32), compression=45438, compression_opts=(1,))
"""
READ = """
import sys, h5py, numpy as np
with np.load(sys.argv[2]) as values, h5py.File(sys.argv[1], "r") as f:
    for name in values:
        assert np.array_equal(f[name][()], values[name]), name
"""


@pytest.fixture
def values(tmp_path):
    rng = np.random.default_rng(3)
    values = {
        "mask": rng.integers(0, 2, (100, 70)).astype(bool),
        "camera": rng.integers(0, 4096, (100, 70)).astype("u2"),
        "big": rng.normal(size=(100, 70)).astype(">f4"),
    }
    np.savez(tmp_path / "values.npz", **values)
    return values


def test_the_wheel_has_another_libhdf5():
    # if this fails nothing is wrong with zarrbits, but the tests below prove less than they say
    other = debian_python("import h5py; print(h5py.version.hdf5_version)").strip()
    assert h5py.version.hdf5_version != other, f"both are HDF5 {other}"


@pytest.mark.parametrize("writer, reader", [("wheel", "wheel"), ("wheel", "debian"), ("debian", "wheel")])
def test_what_one_libhdf5_packs_the_other_reads(tmp_path, values, writer, reader):
    path = tmp_path / "packed.h5"
    for who, script in ((writer, WRITE), (reader, READ)):
        if who == "debian":
            debian_python(script, path, tmp_path / "values.npz")
        else:
            argv, sys.argv = sys.argv, ["", str(path), str(tmp_path / "values.npz")]
            try:
                exec(script, {})
            finally:
                sys.argv = argv


def test_both_libraries_store_the_same_chunks(tmp_path, values):
    for who in ("wheel", "debian"):
        path = tmp_path / f"{who}.h5"
        if who == "debian":
            debian_python(WRITE, path, tmp_path / "values.npz")
        else:
            with h5py.File(path, "w") as f:
                f.create_dataset("mask", data=values["mask"], chunks=(64, 32), compression=PACKBITS)
                f.create_dataset("camera", data=values["camera"], chunks=(64, 32), compression=PACKBITS, compression_opts=(12,))
                f.create_dataset("big", data=values["big"], chunks=(64, 32), compression=BYTES, compression_opts=(1,))
    with h5py.File(tmp_path / "wheel.h5") as wheel, h5py.File(tmp_path / "debian.h5") as debian:
        for name, bits in (("mask", 1), ("camera", 12), ("big", None)):
            for origin in ((0, 0), (64, 64), (0, 32)):
                ours, theirs = (f[name].id.read_direct_chunk(origin) for f in (wheel, debian))
                assert ours == theirs and ours[0] == 0, (name, origin)
                if bits and origin == (0, 0):
                    assert ours[1] == packed_model(values[name][:64, :32].ravel(), bits)
                elif origin == (0, 0):
                    assert ours[1] == values[name][:64, :32].tobytes()


def test_the_refusal_is_a_sentence_in_h5py(tmp_path):
    with h5py.File(tmp_path / "refused.h5", "w") as f:
        with pytest.raises(Exception, match="zarrbits:.*bits"):
            f.create_dataset("plain", (10,), "u2", chunks=(10,), compression=PACKBITS)


def test_a_value_that_does_not_fit_is_kept(tmp_path):
    values = np.arange(1024, dtype="u2")
    values[300] = 4096
    with h5py.File(tmp_path / "wide.h5", "w") as f:
        f.create_dataset("d", data=values, chunks=(256,), compression=PACKBITS, compression_opts=(12,))
    with h5py.File(tmp_path / "wide.h5") as f:
        assert np.array_equal(f["d"][()], values)
        chunks = [f["d"].id.read_direct_chunk((o,)) for o in range(0, 1024, 256)]
        assert [(mask, len(data)) for mask, data in chunks] == [
            (0, 384),
            (0, 512),
            (0, 384),
            (0, 384),
        ]  # the length tells, no filter mask
