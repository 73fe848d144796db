# SPDX-License-Identifier: BSL-1.0
"""Each reason in a report has a code: one real source for each, and what carries codes from run to run."""

import json
import os
import pathlib
import re
import typing

import h5py
import numpy as np
import pytest

from harness import run
from zarrbits.report import ReasonCode

ROOT = pathlib.Path(__file__).parents[2]
UNKNOWN_FILTER = 40000


def entries(*arguments, status=(0, 3), key="objects"):
    """Those of a report that have a reason, by path and attribute."""
    report = json.loads(run(*arguments, "--json", status=status).stdout)
    reasons = [o for o in report[key] if "reason" in o or "code" in o]
    assert all(o["reason"] and o["code"] in typing.get_args(ReasonCode) for o in reasons), reasons
    return {o["path"] + ("@" + o["attribute"] if "attribute" in o else ""): o for o in reasons}


def codes(*arguments, **how):
    return {name: o["code"] for name, o in entries(*arguments, **how).items()}


def filtered(file, name, number=UNKNOWN_FILTER, payload=b"12345678"):
    """A dataset of one chunk, whose bytes are not what the filter makes."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((8,))
    if number == h5py.h5z.FILTER_DEFLATE:
        properties.set_deflate(1)
    else:
        properties.set_filter(number, h5py.h5z.FLAG_OPTIONAL, ())
    space = h5py.h5s.create_simple((8,))
    dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_U8LE, space, properties)
    dataset.write_direct_chunk((0,), payload)
    return file[name]


def virtual(file, name, source):
    layout = h5py.VirtualLayout((4,), "i4")
    layout[:] = h5py.VirtualSource(os.fspath(source), "x", (4,))
    file.create_virtual_dataset(name, layout)


def hdf5_source(folder):
    """Something for each code that a conversion of an HDF5 file can have."""
    for name in ("source", "elsewhere"):
        (folder / name).mkdir()
    with h5py.File(folder / "elsewhere" / "other.h5", "w") as f:
        f["x"] = np.arange(4, dtype="i4")
    (folder / "source" / "text.h5").write_text("not an HDF5 file")
    path = folder / "source" / "in.h5"
    with h5py.File(path, "w", userblock_size=4 << 20) as f:
        f["plain"] = np.arange(3)
        f["unselected"] = 1
        filtered(f, "plugin").attrs["units"] = "m"
        filtered(f, "lost", h5py.h5z.FILTER_DEFLATE)
        wide = h5py.h5t.STD_I64LE.copy()
        wide.set_size(200)
        wide.set_precision(1600)
        h5py.h5d.create(f.id, b"wide", wide, h5py.h5s.create_simple((2,)))
        f["aggregation"] = 0.0
        f["aggregation"].attrs["aggregated_dimensions"] = "x"
        f["aggregation"].attrs["aggregated_data"] = "location: l"
        virtual(f, "missing", "absent.h5")
        virtual(f, "refused", folder / "elsewhere" / "other.h5")
        virtual(f, "unreadable", "text.h5")
        f["link"] = h5py.ExternalLink("absent.h5", "/x")
        nowhere = np.array([path.stat().st_size + (1 << 30)], "<u8")
        reference = h5py.h5d.create(f.id, b"reference", h5py.h5t.STD_REF_OBJ, h5py.h5s.create_simple((1,)))
        reference.write(h5py.h5s.ALL, h5py.h5s.ALL, nowhere, h5py.h5t.STD_REF_OBJ)
        f["long"] = np.array([1 + np.finfo(np.longdouble).eps], dtype=np.longdouble)
        f["scale"] = np.arange(3)
        f["scale"].make_scale("s")
        kind = h5py.h5t.enum_create(h5py.h5t.STD_I8LE)
        kind.enum_insert(b"FALSE", 0)
        kind.enum_insert(b"TRUE", 1)
        boolean = h5py.h5d.create(f.id, b"boolean", kind, h5py.h5s.create_simple((2,)))
        boolean.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0, 2], "i1"), kind)
    return path


OF_HDF5 = {
    "/unselected": "not_selected",
    "/plugin": "missing_filter",
    "/plugin@units": "parent_skipped",
    "/lost": "lost_chunks",
    "/wide": "unsupported_type",
    "/aggregation": "unsupported_feature",
    "/missing": "missing_file",
    "/refused": "refused_file",
    "/unreadable": "unreadable",
    "/link": "link_not_followed",
    "/reference": "dangling_reference",
    "/long": "rounded",
    "/scale@CLASS": "bookkeeping",
    "/boolean": "changed_form",
    "/": "too_large",  # the user block
}
OPTIONS = ("--links", "copy", "--exclude", "/unselected", "--memory", "16M")


def test_codes_of_an_hdf5_file(tmp_path):
    found = codes("convert", hdf5_source(tmp_path), tmp_path / "out.zarr", *OPTIONS, "--keep-going")
    assert {name: found.get(name) for name in OF_HDF5} == OF_HDF5
    assert found.keys() - OF_HDF5.keys() <= {"/aggregation@" + a for a in ("aggregated_data", "aggregated_dimensions")} | {
        "/scale@NAME"
    }


def test_plan_has_the_codes_of_the_conversion(tmp_path):
    planned = codes("plan", hdf5_source(tmp_path), *OPTIONS, key="datasets")
    assert planned == {n: OF_HDF5[n] for n in ("/plugin", "/wide", "/aggregation", "/unreadable", "/link")}


def test_partitions_and_resumed_runs_keep_codes(tmp_path):
    source, whole = hdf5_source(tmp_path), tmp_path / "whole.zarr"
    expected = entries("convert", source, whole, *OPTIONS, "--keep-going")
    for partition in ("0/2", "1/2"):
        run("convert", source, tmp_path / "parts.zarr", *OPTIONS, "--keep-going", "--partition", partition, status=(0, 3))
    journals = [p for p in (tmp_path / "parts.zarr").rglob("*") if p.is_file() and b'"skipped"' in p.read_bytes()]
    assert any(b'"code":"missing_filter"' in p.read_bytes() for p in journals), journals
    assert entries("finalize", source, tmp_path / "parts.zarr", "--memory", "16M") == expected


@pytest.mark.parametrize("code", [b'"no_such_code"', b'"none"', b"7", b"null"])
def test_unit_with_an_unknown_code_is_made_again(tmp_path, code):
    source, store = hdf5_source(tmp_path), tmp_path / "parts.zarr"
    arguments = ("convert", source, store, *OPTIONS, "--keep-going", "--partition")
    for partition in ("0/2", "1/2"):
        run(*arguments, partition, status=(0, 3))
    changed = 0
    for path in store.rglob("*"):
        if path.is_file() and b'"code":"missing_filter"' in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b'"code":"missing_filter"', b'"code":' + code))
            changed += 1
    assert changed == 1
    run("finalize", source, store, status=1)
    for partition in ("0/2", "1/2"):
        run(*arguments, partition, status=(0, 3))
    assert codes("finalize", source, store)["/plugin"] == "missing_filter"


def array(folder, **changes):
    """An array of Zarr v3 with one chunk, by hand."""
    folder.mkdir(parents=True)
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
        **changes,
    }
    (folder / "zarr.json").write_text(json.dumps(metadata))
    (folder / "c").mkdir()
    (folder / "c" / "0").write_bytes(np.arange(4, dtype="<i4").tobytes())


def zarr_source(folder):
    folder.mkdir()
    (folder / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    array(folder / "plain")
    array(folder / "codec", codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "no_such_codec"}])
    array(folder / "damaged", shape=[-1])
    array(folder / "grid", chunk_grid={"name": "no_such_grid", "configuration": {"chunk_shape": [4]}})
    array(folder / "type", data_type="no_such_type")
    return folder


def test_codes_of_a_zarr_store(tmp_path):
    found = codes("convert", zarr_source(tmp_path / "in.zarr"), tmp_path / "out.zarr", "--chunk", "2", "--exclude", "/plain")
    assert found == {
        "/plain": "not_selected",
        "/codec": "unsupported_codec",
        "/damaged": "damaged",
        "/grid": "unsupported_feature",
        "/type": "unsupported_type",
    }


def test_codes_of_an_export(tmp_path):
    source = zarr_source(tmp_path / "in.zarr")
    array(source / "space ", attributes={"ragged": [[1], [2, 3]]})
    array(source / "attributes", attributes={"lists": [[1, 2], [3, 4]]})
    found = codes("export", source, tmp_path / "out.nc", "--exclude", "/plain")
    assert found == {
        "/space ": "invalid_name",
        "/attributes@lists": "changed_form",
        "/codec": "unsupported_codec",
        "/damaged": "damaged",
        "/grid": "unsupported_feature",
        "/type": "unsupported_type",
    }


def test_codes_of_zarr_v2(tmp_path):
    source = zarr_source(tmp_path / "in.zarr")
    lengths = {"kind": "inline", "chunk_shapes": [[1, 3]]}
    array(source / "rectilinear", chunk_grid={"name": "rectilinear", "configuration": lengths})
    for command, key in (("convert", "objects"), ("plan", "datasets")):
        target = [tmp_path / "out.zarr"] if command == "convert" else []
        found = codes(command, source, *target, "--zarr-format", "2", key=key)
        assert found["/rectilinear"] == "zarr_v3_only" and found["/type"] == "unsupported_type", found


def test_codes_of_digests_and_inspected_nodes(tmp_path):
    source = hdf5_source(tmp_path)
    found = codes("digest", source, "--exclude", "/lost", key="arrays")
    assert {n: found.get(n) for n in ("/plugin", "/wide", "/missing", "/refused", "/long", "/reference")} == {
        "/plugin": "missing_filter",
        "/wide": "unsupported_type",
        "/missing": "missing_file",
        "/refused": "refused_file",
        "/long": "rounded",
        "/reference": "dangling_reference",
    }
    for index in ("0/2", "1/2"):
        report = run("digest", source, "--exclude", "/lost", "--json", "--partition", index, status=(0, 3)).stdout
        (tmp_path / (index[0] + ".json")).write_text(report)
    assert codes("digest", "--add", tmp_path / "0.json", tmp_path / "1.json", key="arrays") == found
    store = zarr_source(tmp_path / "in.zarr")
    (store / "damaged" / "zarr.json").write_text('{"zarr_format": 3')
    tree = json.loads(run("inspect", "--json", store, status=(0, 3)).stdout)
    nodes = {n["path"]: n.get("code") for n in tree["trees"][0]["nodes"]}
    assert nodes["/damaged"] == "damaged" and nodes["/plain"] is None


def part(path, number):
    """One of several files of netCDF that are joined along "x"."""
    with h5py.File(path, "w") as f:
        f.attrs["_NCProperties"] = "version=2"
        f.create_dataset("x", data=4 * number + np.arange(4), chunks=(2,), maxshape=(None,))
        f["x"].make_scale("x")
        f.create_dataset("text", data=np.full((4, 3), b"a", "S1"), chunks=(2, 3), maxshape=(None, 3))
        f["text"].dims[0].attach_scale(f["x"])


def test_array_that_the_store_has_in_another_form(tmp_path):
    for i in range(2):
        part(tmp_path / f"{i}.h5", i)
    run("convert", "-q", "--convention", "none", tmp_path / "0.h5", tmp_path / "out.zarr")
    for path in (tmp_path / "out.zarr").rglob("zarr.json"):  # as of another program, which has no notes
        node = json.loads(path.read_text())
        for key in ("zarrbits", "_nc_zarrbits"):
            node["attributes"].pop(key, None)
            node.pop(key, None)
        node.pop("consolidated_metadata", None)
        path.write_text(json.dumps(node))
    planned = codes("plan", "--append", "x", tmp_path / "1.h5", tmp_path / "out.zarr", key="datasets")
    assert planned == {"/text": "not_joinable"}


def test_left_out_files_have_a_code(tmp_path):
    for i in range(2):
        part(tmp_path / f"{i}.h5", i)
    (tmp_path / "2.h5").write_bytes(b"not an HDF5 file")
    sources = [tmp_path / f"{i}.h5" for i in range(4)]
    report = json.loads(
        run("convert", "--concat", "x", *sources, tmp_path / "out.zarr", "--keep-going", "--json", status=3).stdout
    )
    assert [s.get("code") for s in report["sources"]] == [None, None, "damaged", "missing_file"]


def test_each_code_is_documented_typed_and_tested():
    header = (ROOT / "include/zarrbits/reason_code.hpp").read_text()
    declared = re.findall(r"^  (\w+), +//", header[header.index("enum class") :], re.M)
    assert declared[0] == "none" and len(declared) > 10
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/report.md").read_text().split("## Reasons")[1], re.M)
    assert list(typing.get_args(ReasonCode)) == declared[1:] == documented[: len(declared) - 1]
    for name in ("report", "export", "plan", "digest", "inspect"):
        schema = json.loads((ROOT / "docs" / "schema" / f"{name}.schema.json").read_text())
        assert schema["$defs"]["code"]["enum"] == declared[1:], name
    asserted = set(re.findall(r'"(\w+)"', pathlib.Path(__file__).read_text()))
    assert set(declared[1:]) <= asserted, set(declared[1:]) - asserted
