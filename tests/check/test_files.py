# SPDX-License-Identifier: BSL-1.0
"""`zarrbits check` of HDF5 and netCDF-4 files."""

import json
import os
import struct

import h5py
import numpy as np
import pytest

from harness import run
from test_stores import check, counts, findings


@pytest.fixture
def path(tmp_path):
    return tmp_path / "in.h5"


def chunk_offset(path, name, number):
    with h5py.File(path) as f:
        info = f[name].id.get_chunk_info(number)
        return info.byte_offset, info.size


def overwrite(path, offset, data):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(data)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_file_without_damage_has_no_finding(path, libver):
    with h5py.File(path, "w", libver=libver) as f:
        f.create_dataset(
            "chunked", data=np.arange(80, dtype="i4").reshape(10, 8), chunks=(4, 3), compression="gzip", fletcher32=True
        )
        f.create_dataset("sparse", (10, 8), "f4", chunks=(5, 4), shuffle=True)[0, 0] = 1
        f["plain"] = np.arange(5.0)
        f["scalar"] = 7
        f["empty"] = h5py.Empty("f4")
        f.create_dataset("nothing", (0, 3), "i2", maxshape=(None, 3), chunks=(4, 3))
        f["texts"] = np.array(["a", "bc", "ü"], dtype=h5py.string_dtype())
        f.create_dataset("lists", (3,), h5py.vlen_dtype("i4"), chunks=(2,))[0] = [1, 2]
        f["record"] = np.zeros(3, [("a", "i4"), ("b", "S3"), ("c", "f8", (2,))])
        f["type"] = np.dtype("i4")
        f["g"] = h5py.SoftLink("/chunked")
        f["chunked"].attrs["text"] = "x"
        f["chunked"].attrs["list"] = ["a", "b"]
        x = f["plain"]
        x.make_scale("x")
        f["record"].attrs["reference"] = x.ref
    report = check(path)
    assert findings(report) == [] and report["format"] == "HDF5", report
    found = counts(report)
    assert found["/chunked"] == (9, 9, 0, 0) and found["/sparse"] == (4, 1, 3, 0), found
    assert found["/nothing"] == (0, 0, 0, 0) and found["/texts"] == (1, 1, 0, 0) and found["/lists"] == (2, 1, 1, 0), found
    metadata = check(path, "--metadata")
    assert findings(metadata) == [] and counts(metadata)["/chunked"][1] == 0


@pytest.mark.parametrize("filters", [{"compression": "gzip"}, {"fletcher32": True}, {"shuffle": True, "compression": "lzf"}])
def test_a_damaged_chunk_is_named_and_the_others_are_read(path, filters):
    with h5py.File(path, "w") as f:
        f.create_dataset("g/d", data=np.arange(4000, dtype="i4").reshape(100, 40), chunks=(50, 20), **filters)
    offset, size = chunk_offset(path, "g/d", 2)
    overwrite(path, offset + size // 2, b"\xff" * (size // 2))
    report = check(path, status=3)
    assert findings(report) == [("problem", "chunk", "/g/d", "1/0")] and counts(report)["/g/d"] == (4, 3, 0, 1), report
    assert "problem: /g/d chunk 1/0: " in run("check", path, status=3).stdout


def test_strings_that_lead_nowhere(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("texts", data=np.array([f"text {i}" for i in range(100)], dtype=h5py.string_dtype()), chunks=(10,))
    offset, _ = chunk_offset(path, "texts", 3)
    overwrite(path, offset, struct.pack("<IQI", 5, 2**40, 1))
    assert findings(check(path, status=3)) == [("problem", "chunk", "/texts", "3")]


def test_the_end_of_the_file(path):
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(1000.0)
    whole = path.read_bytes()
    path.write_bytes(whole + b"more")
    report = check(path)
    assert findings(report) == [("notice", "file", "/", "")] and report["findings"][0]["reason"].startswith("4 bytes after"), (
        report
    )
    path.write_bytes(whole[:-100])
    assert findings(check(path, status=3))[0][:3] == ("problem", "file", "/")
    path.write_bytes(b"x" * 1000)
    assert findings(check(path, status=3))[0][:3] == ("problem", "file", "/")


def test_links_that_lead_nowhere_are_notices(path):
    with h5py.File(path, "w") as f:
        f["soft"] = h5py.SoftLink("/absent")
        f["external"] = h5py.ExternalLink("absent.h5", "/x")
        f["valid"] = h5py.SoftLink("/")
    report = check(path)
    assert findings(report) == [("notice", "link", "/", "external"), ("notice", "link", "/", "soft")] and report["sound"], report


def test_a_filter_without_decoder_is_unchecked(path):
    with h5py.File(path, "w") as f:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk((10,))
        create.set_filter(60000, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((10,))
        d = h5py.h5d.create(f.id, b"d", h5py.h5t.NATIVE_INT8, space, create)
        d.write_direct_chunk((0,), b"0123456789", 0)
    report = check(path, status=3)
    assert findings(report) == [("unchecked", "chunk", "/d", "")] and report["problems"] == 0, report
    assert run("check", path, status=3).stdout.splitlines()[-1].startswith("INCOMPLETE: ")


@pytest.fixture
def netcdf(path):
    """A file with the attributes that netCDF-C writes."""
    with h5py.File(path, "w") as f:
        for i, name in enumerate("xy"):
            f[name] = np.arange(4.0 + i)
            f[name].make_scale(name)
            f[name].attrs["_Netcdf4Dimid"] = np.int32(i)
        v = f.create_dataset("v", data=np.zeros((4, 5)))
        v.dims[0].attach_scale(f["x"])
        v.dims[1].attach_scale(f["y"])
        v.attrs["_Netcdf4Coordinates"] = np.array([0, 1], "i4")
    assert findings(check(path)) == []
    return path


def test_dimension_ids_that_contradict(netcdf):
    def changed(name, attribute, value):
        with h5py.File(netcdf, "r+") as f:
            before = f[name].attrs[attribute]
            f[name].attrs.modify(attribute, value) if np.shape(before) == np.shape(value) else f[name].attrs.create(
                attribute, value
            )
        report = check(netcdf, status=3)
        with h5py.File(netcdf, "r+") as f:
            f[name].attrs.create(attribute, before)
        return findings(report)

    assert changed("v", "_Netcdf4Coordinates", np.array([0, 7], "i4")) == [("problem", "netcdf", "/v", "")]
    assert changed("v", "_Netcdf4Coordinates", np.array([0], "i4")) == [("problem", "netcdf", "/v", "")]
    assert changed("v", "_Netcdf4Coordinates", np.array([1, 0], "i4")) == 2 * [("problem", "netcdf", "/v", "")]
    assert ("problem", "netcdf", "/y", "") in changed("y", "_Netcdf4Dimid", np.int32(0))
    assert findings(check(netcdf)) == []


def test_scales_that_contradict(netcdf):
    with h5py.File(netcdf, "r+") as f:
        del f["x"].attrs["REFERENCE_LIST"]
    assert findings(check(netcdf)) == [("notice", "netcdf", "/v", "")]
    with h5py.File(netcdf, "r+") as f:
        del f["v"].attrs["DIMENSION_LIST"]
    assert findings(check(netcdf)) == [("notice", "netcdf", "/y", "")]


def test_a_scale_that_is_gone(netcdf):
    with h5py.File(netcdf, "r+") as f:
        del f["x"]
    found = findings(check(netcdf, status=3))
    assert ("problem", "netcdf", "/v", "") in found, found


def test_metadata_with_checksums(path):
    """Of a file in HDF5's newer format, a byte of any object's header is checked."""
    with h5py.File(path, "w", libver="latest") as f:
        f["d"] = np.arange(10.0)
        f["d"].attrs["title"] = np.bytes_("some text")
    offset = path.read_bytes().index(b"some text")
    overwrite(path, offset, b"S")
    report = check(path, status=3)
    assert report["problems"] > 0, report


def test_a_virtual_dataset_whose_source_is_absent(tmp_path, path):
    layout = h5py.VirtualLayout((10,), "f8")
    layout[:] = h5py.VirtualSource("absent.h5", "x", (10,))
    with h5py.File(path, "w") as f:
        f.create_virtual_dataset("v", layout)
    report = check(path)
    assert findings(report) == [("notice", "link", "/v", "")], report


def test_packbits(path, tmp_path):
    if "ZARRBITS_PLUGINS" not in os.environ:
        pytest.skip("no plugins")
    h5py.h5pl.prepend(os.environ["ZARRBITS_PLUGINS"].encode())
    packbits = int(os.environ.get("ZARRBITS_PACKBITS_ID", "45429"))
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(1000, dtype="u2"), chunks=(100,), compression=packbits, compression_opts=(10,))
    assert counts(check(path))["/d"] == (10, 10, 0, 0)
    assert json.loads(run("check", "--json", "-q", path).stdout)["arrays"][0]["bytes"] == 1250
