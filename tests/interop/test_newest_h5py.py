# SPDX-License-Identifier: BSL-1.0
"""What h5py's wheel writes with libver="latest", through the wheel's command, which has libhdf5 2.2.0, read by zarr-python."""

import json
import os
import subprocess

import h5py
import numpy as np
import pytest
import zarr

from conftest import ROOT

BUNDLED = str(ROOT / "build/wheel/zarrbits")
pytestmark = pytest.mark.skipif(not os.path.exists(BUNDLED), reason=f"{BUNDLED} is not there; scripts/ci/wheel makes it")

COLOUR = h5py.enum_dtype({"RED": 0, "GREEN": 7, "BLUE": -2}, basetype=">i2")
MIXED = np.dtype([("a", "<i2"), ("flag", "?"), ("s", "S3"), ("z", "<c8")])
ARRAYS = {
    "bool": np.array([[True, False, True]] * 3),
    "complex": np.array([1 + 2j, complex(np.nan, -0.0)]),
    "complex_big_endian": np.array([1 + 2j, -3j], ">c8"),
    "compound": np.array([(1, True, b"xyz", 1 + 1j), (-1, False, b"", 2j)], MIXED),
    "scalar": np.array(3j),
    "numbers": np.arange(6.0).reshape(2, 3),
}
OWN = {"own_complex": ("COMPLEX_IEEE_F64LE", "<c16"), "own_complex_big_endian": ("COMPLEX_IEEE_F32BE", ">c8")}


def run(*arguments):
    done = subprocess.run([BUNDLED, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(path):
    with h5py.File(path, "w", libver="latest") as f:
        for name, values in ARRAYS.items():
            f[name] = values
        f.create_dataset("packed", data=ARRAYS["bool"], chunks=(2, 2), compression="gzip")
        f.create_dataset("enum", data=np.array([7, -2, 5], ">i2"), dtype=COLOUR)
        f["strings"] = np.array(["a", "größe"], h5py.string_dtype())
        f["references"] = np.array([f["bool"].ref, f["enum"].ref], h5py.ref_dtype)
        f["regions"] = np.array([f["bool"].regionref[0:2, 1]], h5py.regionref_dtype)
        for name, (type_name, dtype) in OWN.items():
            own = getattr(h5py.h5t, type_name)
            dataset = h5py.h5d.create(f.id, name.encode(), own, h5py.h5s.create_simple((2,)))
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1 + 2j, -0.5j], dtype), own)
        f.attrs["flag"] = True
        f["numbers"].attrs.update({"z": 1 + 2j, "target": f["bool"].ref})
        f["numbers"].attrs.create("colour", 7, dtype=COLOUR)


@pytest.mark.parametrize("options", [[], ["--profile", "native"], ["--shard", "1M"]], ids=["portable", "native", "sharded"])
def test_each_type_is_read_and_equal(tmp_path, options):
    source, store = tmp_path / "in.h5", tmp_path / "out.zarr"
    write(source)
    run("plan", source)
    run("convert", source, store, "--quiet", *options)
    run("verify", source, store)
    group = zarr.open_group(store, mode="r")
    for name, values in ARRAYS.items():
        back = group[name][()]
        assert back.dtype.newbyteorder("<") == values.dtype.newbyteorder("<") or name == "compound", name
        if name == "compound":  # a bool in a struct of Zarr is one of numpy's, too
            assert [tuple(row) for row in back.tolist()] == [tuple(row) for row in values.tolist()]
        else:
            assert np.array_equal(back, values, equal_nan=values.dtype.kind == "c"), name
    assert np.array_equal(group["packed"][:], ARRAYS["bool"]) and group["packed"].dtype == bool
    assert group["enum"][:].tolist() == [7, -2, 5] and group["enum"].metadata.extra_fields["zarrbits"]["enum"] == {
        "RED": 0,
        "GREEN": 7,
        "BLUE": -2,
    }
    assert group["strings"][:].tolist() == ["a", "größe"]
    assert group["references"][:].tolist() == ["/bool", "/enum"]
    assert json.loads(group["regions"][:].tolist()[0]) == {"path": "/bool", "blocks": [[0, 1, 1, 1]]}
    for name, (_, dtype) in OWN.items():
        assert np.array_equal(group[name][:], np.array([1 + 2j, -0.5j], dtype)) and group[name].dtype.kind == "c"
    numbers = dict(group["numbers"].attrs)
    assert group.attrs["flag"] is True and numbers["z"] == [1.0, 2.0] and numbers["target"] == "/bool" and numbers["colour"] == 7


def test_a_changed_complex_number_is_found(tmp_path):
    source, store = tmp_path / "in.h5", tmp_path / "out.zarr"
    write(source)
    run("convert", source, store, "--quiet")
    (chunk,) = (p for p in (store / "own_complex").rglob("*") if p.is_file() and p.name != "zarr.json")
    data = bytearray(chunk.read_bytes())
    data[20] ^= 1
    chunk.write_bytes(data)
    done = subprocess.run([BUNDLED, "verify", source, store], capture_output=True, text=True)
    assert done.returncode == 1 and "own_complex" in done.stdout + done.stderr
