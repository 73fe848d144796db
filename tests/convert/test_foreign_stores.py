# SPDX-License-Identifier: BSL-1.0
"""Stores as other programs write them, by hand from Zarr's specifications: what is in them is read, or named.
tests/interop/test_foreign_stores.py has stores that these programs wrote themselves."""

import base64
import json
import os
import pathlib
import struct

import h5py
import numpy as np
import pytest

from harness import convert, files, refused, run, verify

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def write(path, value):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def group(path, attributes="{}"):
    write(pathlib.Path(path, "zarr.json"), '{"zarr_format": 3, "node_type": "group", "attributes": ' + attributes + "}")


def array(path, values, chunk=None, attributes="{}", codecs=None, keys=None, fill=0, data_type=None, chunks=True, **more):
    """An array of one dimension, and its chunks."""
    chunk = chunk or len(values)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [len(values)],
        "data_type": data_type or values.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
        "chunk_key_encoding": keys or {"name": "default"},
        "fill_value": fill,
        "codecs": codecs or [LITTLE],
        **more,
    }
    write(pathlib.Path(path, "zarr.json"), json.dumps(document)[:-1] + ', "attributes": ' + attributes + "}")
    for i in range(0, len(values) if chunks else 0, chunk):
        write(pathlib.Path(path, f"c/{i // chunk}"), values[i : i + chunk].tobytes())


def v2_array(path, values, chunks=True, attributes=None, **more):
    document = {
        "zarr_format": 2,
        "shape": [len(values)],
        "chunks": [len(values)],
        "dtype": values.dtype.descr if values.dtype.names else values.dtype.str,
        "compressor": None,
        "filters": None,
        "fill_value": None,
        "order": "C",
        **more,
    }
    write(pathlib.Path(path, ".zarray"), document)
    if attributes is not None:
        write(pathlib.Path(path, ".zattrs"), attributes)
    if chunks:
        write(pathlib.Path(path, "0"), values.tobytes())


def node(store, path=""):
    return json.loads(pathlib.Path(store, path, "zarr.json").read_text(encoding="utf-8"))


def objects(*arguments, status=0):
    """What convert says of them: by path, and the name of an attribute."""
    report = json.loads(convert(*arguments, "--json", "-q", status=status).stdout)
    return {o["path"] + ("@" + o["attribute"] if "attribute" in o else ""): o for o in report["objects"]}


FOUR = np.arange(1, 5, dtype="<i4")


# --- what was wrong in silence


@pytest.mark.parametrize("separator", ["/", "."])
def test_keys_of_zarr_v2_in_references(tmp_path, separator):
    """Each form of keys that an array may have is that of its references, too."""
    values = np.arange(24, dtype="<i4").reshape(4, 6)
    write(tmp_path / "data.bin", values.tobytes())
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 6],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 6]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": separator}},
        "fill_value": -1,
        "codecs": [LITTLE],
        "attributes": {},
    }
    references = {
        "zarr.json": json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}),
        "g/zarr.json": json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}),
        "g/a/zarr.json": json.dumps(document),
        f"g/a/0{separator}0": [str(tmp_path / "data.bin"), 0, 48],
        f"g/a/1{separator}0": [str(tmp_path / "data.bin"), 48, 48],
    }
    write(tmp_path / "r.json", {"version": 1, "refs": references})
    convert(tmp_path / "r.json", tmp_path / "out.zarr", "-q", "--external", tmp_path)
    got = np.concatenate([np.fromfile(tmp_path / f"out.zarr/g/a/c/{i}/0", "<i4").reshape(2, 6) for i in range(2)])
    np.testing.assert_array_equal(got, values)


def test_fill_value_of_a_big_endian_struct(tmp_path):
    dtype = np.dtype([("a", ">i4"), ("c", ">c8"), ("s", "S3"), ("t", ">U2"), ("inner", [("x", ">f8"), ("y", "i1")])])
    fill = np.array((7, 1 + 2j, b"xyz", "ab", (2.5, -3)), dtype)
    write(tmp_path / "in/.zgroup", {"zarr_format": 2})
    v2_array(tmp_path / "in/a", np.zeros(3, dtype), chunks=False, fill_value=base64.b64encode(fill.tobytes()).decode())
    descr = [["a", ">i4"], ["c", ">c8"], ["s", "|S3"], ["t", ">U2"], ["inner", [["x", ">f8"], ["y", "|i1"]]]]
    meta = json.loads((tmp_path / "in/a/.zarray").read_text())
    write(tmp_path / "in/a/.zarray", {**meta, "dtype": descr})
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q")
    little = np.dtype([("a", "<i4"), ("c", "<c8"), ("s", "S3"), ("t", "<U2"), ("inner", [("x", "<f8"), ("y", "i1")])])
    assert base64.b64decode(node(tmp_path / "out.zarr", "a")["fill_value"]) == fill.astype(little).tobytes()


def dangling(path):
    os.symlink("nowhere", path)


def circular(path):
    os.symlink(os.path.basename(path), path)


@pytest.mark.parametrize("make", [dangling, circular, os.mkfifo])
@pytest.mark.parametrize("how", ["copy", "--chunk", "--shard", "zip", "export"])
def test_a_chunk_that_is_there_and_cannot_be_read(tmp_path, make, how):
    group(tmp_path / "in")
    array(tmp_path / "in/a", FOUR, 2)
    os.remove(tmp_path / "in/a/c/1")
    make(str(tmp_path / "in/a/c/1"))
    options = {"--chunk": ["--chunk", "3"], "--shard": ["--shard", "4"]}.get(how, [])
    target = tmp_path / {"zip": "out.zip", "export": "out.h5"}.get(how, "out.zarr")
    verb = "export" if how == "export" else "convert"
    assert "c/1" in refused(verb, tmp_path / "in", target, "-q", *options)
    assert "c/1" in run(verb, tmp_path / "in", target, "-q", "--keep-going", "--overwrite", *options, status=3).stderr


def test_a_folder_of_chunks_that_is_there_and_cannot_be_read(tmp_path):
    group(tmp_path / "in")
    array(tmp_path / "in/a", FOUR, 2)
    meta = node(tmp_path / "in/a")
    write(
        tmp_path / "in/a/zarr.json",
        {**meta, "shape": [4, 1], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 1]}}},
    )
    os.remove(tmp_path / "in/a/c/0"), os.remove(tmp_path / "in/a/c/1")
    os.symlink("nowhere", tmp_path / "in/a/c/1")
    assert "c/1" in refused("convert", tmp_path / "in", tmp_path / "out.zarr", "-q")
    os.symlink("nowhere", tmp_path / "in/README")  # is not of an array
    os.remove(tmp_path / "in/a/c/1")
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q")


SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}


def shuffled(data, size):
    return np.frombuffer(data, "u1").reshape(-1, size).T.tobytes()


def test_shuffle_goes_where_chunks_have_a_part_of_an_element(tmp_path):
    """numcodecs refuses to shuffle what is not a whole number of elements."""
    group(tmp_path / "in")
    values = np.arange(6, dtype="<i4")
    array(tmp_path / "in/a", values, 6, codecs=[LITTLE, SHUFFLE], chunks=False)
    write(tmp_path / "in/a/c/0", shuffled(values.tobytes(), 4))
    convert(tmp_path / "in", tmp_path / "b.zarr", "-q", "--codec", "packbits", "--bits", 7)
    assert [c["name"] for c in node(tmp_path / "b.zarr", "a")["codecs"]] == ["packbits"]
    convert(tmp_path / "in", tmp_path / "c.zarr", "-q", "--chunk", 2)
    assert [c["name"] for c in node(tmp_path / "c.zarr", "a")["codecs"]] == ["bytes", "numcodecs.shuffle"]
    for store in "bc":
        assert verify(tmp_path / "in", tmp_path / f"{store}.zarr")["exit_status"] == 0
    array(tmp_path / "in/b", np.arange(6, dtype="<i2"), 6, codecs=[LITTLE, SHUFFLE], chunks=False)
    write(tmp_path / "in/b/c/0", shuffled(np.arange(6, dtype="<i2").tobytes(), 4))
    convert(tmp_path / "in", tmp_path / "d.zarr", "-q", "--chunk", 3)
    assert [c["name"] for c in node(tmp_path / "d.zarr", "b")["codecs"]] == ["bytes"]
    assert verify(tmp_path / "in", tmp_path / "d.zarr")["exit_status"] == 0


def fletcher32(data):
    """numcodecs' checksum: Fletcher's, of big-endian words."""
    low = high = 0
    for (word,) in struct.iter_unpack(">H", data + b"\0" * (len(data) % 2)):
        low = (low + word) % 65535 or 65535 * bool(low + word)
        high = (high + low) % 65535 or 65535 * bool(high + low)
    return data + struct.pack("<I", high << 16 | low)


def test_export_of_two_shuffles(tmp_path):
    group(tmp_path / "in")
    values = np.arange(8, dtype="<i4")
    array(tmp_path / "in/a", values, 8, codecs=[LITTLE, SHUFFLE, SHUFFLE], chunks=False)
    write(tmp_path / "in/a/c/0", shuffled(shuffled(values.tobytes(), 4), 4))
    run("export", tmp_path / "in", tmp_path / "out.h5", "-q")
    with h5py.File(tmp_path / "out.h5") as f:
        np.testing.assert_array_equal(f["a"][...], values)


def test_numbers_that_fit_nowhere_stay_as_they_are(tmp_path):
    """Python reads them, so a copy has them, digit by digit; HDF5 has them as text."""
    large = "123456789012345678901234567890"
    text = f'{{"n": {large}, "list": [1, -{large}], "x": 1e400, "y": [9223372036854775807, 1e22], "nan": NaN}}'
    group(tmp_path / "in", text)
    array(tmp_path / "in/a", FOUR, attributes=text)
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q")
    assert verify(tmp_path / "in", tmp_path / "out.zarr")["exit_status"] == 0
    for path in ("", "a"):
        made = pathlib.Path(tmp_path, "out.zarr", path, "zarr.json").read_text()
        assert f'"n": {large}' in made and f"-{large}" in made and '"x": 1e400' in made
        assert str(json.loads(text)) == str(json.loads(made)["attributes"])
    broken = (tmp_path / "out.zarr/zarr.json").read_text().replace(large, large[:-1] + "1")
    (tmp_path / "out.zarr/zarr.json").write_text(broken)
    assert verify(tmp_path / "in", tmp_path / "out.zarr", status=1)["attributes"]["differs"] > 0
    run("export", tmp_path / "in", tmp_path / "out.h5", "-q")
    with h5py.File(tmp_path / "out.h5") as f:
        assert f.attrs["n"] == large and f.attrs["x"] == "1e400"
        assert json.loads(f.attrs["list"]) == [1, -int(large)] and json.loads(f.attrs["y"]) == [2**63 - 1, 1e22]
    assert large in run("inspect", "--attributes", "--json", tmp_path / "in").stdout


def test_a_large_integer_is_a_float(tmp_path):
    """Some writers have no digits behind the point."""
    group(tmp_path / "in")
    write(tmp_path / "in/a/zarr.json", "")
    array(tmp_path / "in/a", np.zeros(2, "<f8"), fill=7777, chunks=False)
    meta = (tmp_path / "in/a/zarr.json").read_text().replace("7777", "1" + "0" * 25)
    (tmp_path / "in/a/zarr.json").write_text(meta)
    run("export", tmp_path / "in", tmp_path / "out.h5", "-q")
    with h5py.File(tmp_path / "out.h5") as f:
        assert list(f["a"][...]) == [1e25, 1e25]


def test_attributes_that_only_python_reads(tmp_path):
    group(tmp_path / "in")
    array(
        tmp_path / "in/a",
        FOUR,
        attributes=r'{"twice": 1, "half": "\ud800!", "whole": "\ud83d\ude00", "in": {"\udc00": 1}, "twice": 2}',
    )
    found = objects(tmp_path / "in", tmp_path / "out.zarr", status=3)
    assert found["/a"]["outcome"] == "raw" and found["/a@twice"]["outcome"] == "mapped"
    assert found["/a@half"]["outcome"] == found["/a@in"]["outcome"] == "skipped"
    assert node(tmp_path / "out.zarr", "a")["attributes"] == {"whole": "\U0001f600", "twice": 2}
    said = run("export", tmp_path / "in", tmp_path / "out.h5", status=3).stderr
    assert "half" in said
    with h5py.File(tmp_path / "out.h5") as f:
        assert dict(f["a"].attrs) == {"whole": "\U0001f600", "twice": 2}
    write(tmp_path / "v2/.zgroup", {"zarr_format": 2})
    v2_array(tmp_path / "v2/a", FOUR, attributes=r'{"twice": 1, "half": "\ud800", "twice": 2}')
    found = objects(tmp_path / "v2", tmp_path / "w.zarr", status=3)
    assert found["/a@half"]["outcome"] == "skipped" and found["/a@twice"]["outcome"] == "mapped"
    assert node(tmp_path / "w.zarr", "a")["attributes"] == {"twice": 2}
    # a key that decides about the array is another matter
    meta = (tmp_path / "in/a/zarr.json").read_text().replace('"shape"', '"shape": [3], "shape"')
    (tmp_path / "in/a/zarr.json").write_text(meta)
    assert "given twice" in objects(tmp_path / "in", tmp_path / "x.zarr", status=3)["/a"]["reason"]


# --- nodes


@pytest.mark.parametrize("version", [2, 3])
def test_arrays_below_folders_without_metadata(tmp_path, version):
    store = tmp_path / "in"
    if version == 3:
        group(store)
        array(store / "foo/bar/baz", FOUR, 2)
        array(store / "top", FOUR, 2)
    else:
        write(store / ".zgroup", {"zarr_format": 2})
        v2_array(store / "foo/bar/baz", FOUR)
        v2_array(store / "top", FOUR)
    write(store / "notes/deep/text.txt", "not Zarr")
    assert "/foo/bar/baz" in run("plan", store, "--chunk", 3).stdout
    assert "/foo/bar/baz" in [n["path"] for n in json.loads(run("inspect", "--json", store).stdout)["trees"][0]["nodes"]]
    convert(store, tmp_path / "out.zarr", "-q")
    assert node(tmp_path / "out.zarr", "foo/bar/baz")["shape"] == [4]
    assert node(tmp_path / "out.zarr", "foo/bar")["node_type"] == "group" and not (tmp_path / "out.zarr/notes").exists()
    report = verify(store, tmp_path / "out.zarr")
    assert report["exit_status"] == 0 and report["datasets"]["equal"] == 2
    os.remove(tmp_path / "out.zarr/foo/bar/baz/zarr.json")
    assert verify(store, tmp_path / "out.zarr", status=(1, 3))["datasets"]["missing"] == 1
    run("export", store, tmp_path / "out.h5", "-q")
    with h5py.File(tmp_path / "out.h5") as f:
        np.testing.assert_array_equal(f["foo/bar/baz"][...], FOUR)
        assert "notes" not in f


BROKEN = {
    "fill value": lambda store: array(store / "bad", FOUR, fill=[0]),
    "data type": lambda store: array(store / "bad", FOUR, data_type="|O"),
    "metadata": lambda store: write(store / "bad/zarr.json", "{"),
    "no shape": lambda store: write(store / "bad/zarr.json", '{"zarr_format": 3, "node_type": "array"}'),
    "no kind": lambda store: write(store / "bad/zarr.json", "{}"),
    "codec": lambda store: array(store / "bad", FOUR, codecs=[LITTLE, {"name": "numcodecs.pcodec", "configuration": {}}]),
}
BROKEN_V2 = {
    "json2": lambda store: v2_array(store / "bad", FOUR, dtype="|O", filters=[{"id": "json2"}], fill_value=""),
    "mixed": lambda store: v2_array(store / "bad", FOUR, dtype=[["a", ">i2"], ["b", "<i2"]]),
    "fill": lambda store: v2_array(store / "bad", FOUR, fill_value=[1, 2, 3]),
    "attributes": lambda store: v2_array(store / "bad", FOUR, attributes="{"),
    "zarray": lambda store: write(store / "bad/.zarray", "[]"),
}


@pytest.mark.parametrize("what", [*BROKEN, *BROKEN_V2])
def test_an_array_that_cannot_be_read_is_left_out_and_named(tmp_path, what):
    store = tmp_path / "in"
    if what in BROKEN:
        group(store)
        array(store / "good", FOUR)
        BROKEN[what](store)
    else:
        write(store / ".zgroup", {"zarr_format": 2})
        v2_array(store / "good", FOUR)
        BROKEN_V2[what](store)
    assert objects(store, tmp_path / "a.zarr", status=3)["/bad"]["outcome"] == "skipped"
    assert node(tmp_path / "a.zarr", "good")["shape"] == [4] and not (tmp_path / "a.zarr/bad").exists()
    assert "/bad" in run("plan", store, status=3).stdout
    assert "bad" in run("inspect", store, status=(0, 3)).stdout
    assert "/bad" in run("export", store, tmp_path / "a.h5", status=3).stderr
    with h5py.File(tmp_path / "a.h5") as f:
        assert list(f) == ["good"]
    convert(store, tmp_path / "b.zarr", "-q", "--exclude", "/bad")
    assert verify(store, tmp_path / "b.zarr", "--exclude", "/bad")["exit_status"] == 0
    verify(store, tmp_path / "b.zarr", status=(1, 3))


def test_messages_name_the_place_and_the_reason(tmp_path):
    write(tmp_path / "in/.zgroup", {"zarr_format": 2})
    v2_array(tmp_path / "in/a", FOUR, attributes='{"x": }')
    reason = objects(tmp_path / "in", tmp_path / "a.zarr", status=3)["/a"]["reason"]
    assert "a/.zattrs" in reason and "is not valid JSON" in reason
    v2_array(tmp_path / "in/a", FOUR, attributes="{}", dtype="|O")
    reason = objects(tmp_path / "in", tmp_path / "b.zarr", status=3)["/a"]["reason"]
    assert "|O of Zarr v2" in reason and "use a Zarr name" not in reason


def test_a_group_of_a_store(tmp_path):
    group(tmp_path / "in")
    group(tmp_path / "in/g")
    array(tmp_path / "in/g/a", FOUR)
    array(tmp_path / "in/b", FOUR)
    shown = json.loads(run("inspect", "--json", f"{tmp_path}/in:/g").stdout)
    assert "/g/a" in json.dumps(shown) and "/b" not in json.dumps(shown)
    assert "has no" in refused("inspect", f"{tmp_path}/in:/nothing")


# --- _FillValue


@pytest.mark.parametrize(
    ("dtype", "fill", "attribute", "expected"),
    [
        ("<f4", None, -9, base64.b64encode(struct.pack("<d", -9)).decode()),
        ("<f8", None, "NaN", base64.b64encode(struct.pack("<d", np.nan)).decode()),
        ("<f4", None, [-9.5], base64.b64encode(struct.pack("<d", -9.5)).decode()),
        ("<i2", None, -9.0, -9),
        ("|b1", None, 1, True),
        ("<i2", 5, None, 5),
        ("<f4", 5, None, base64.b64encode(struct.pack("<d", 5)).decode()),
    ],
)
def test_fill_values_as_xarray_takes_them(tmp_path, dtype, fill, attribute, expected):
    write(tmp_path / "in/.zgroup", {"zarr_format": 2})
    attributes = {"_ARRAY_DIMENSIONS": ["x"]} | ({} if attribute is None else {"_FillValue": attribute})
    v2_array(tmp_path / "in/a", np.zeros(3, dtype), fill_value=fill, attributes=attributes)
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q")
    assert node(tmp_path / "out.zarr", "a")["attributes"] == {"_FillValue": expected}
    assert verify(tmp_path / "in", tmp_path / "out.zarr")["exit_status"] == 0


def test_fill_values_that_xarray_does_not_take(tmp_path):
    group(tmp_path / "in")
    array(tmp_path / "in/a", FOUR, attributes='{"_FillValue": "nothing", "units": "m"}')
    array(tmp_path / "in/b", np.zeros(2, "<f4"), attributes='{"_FillValue": -9}')  # of Zarr v3, and not in its form
    found = objects(tmp_path / "in", tmp_path / "out.zarr")
    assert found["/a@_FillValue"]["outcome"] == "mapped"
    made = node(tmp_path / "out.zarr", "a")["attributes"]
    assert "_FillValue" not in made and made["units"] == "m"
    assert node(tmp_path / "out.zarr", "b")["attributes"]["_FillValue"] == base64.b64encode(struct.pack("<d", -9)).decode()
    assert verify(tmp_path / "in", tmp_path / "out.zarr")["exit_status"] == 0
    run("export", tmp_path / "in", tmp_path / "out.h5", "-q")
    with h5py.File(tmp_path / "out.h5") as f:
        assert f["b"].attrs["_FillValue"] == -9 and f["a"].attrs["_FillValue"] == "nothing"


def test_two_fill_values_are_said(tmp_path):
    write(tmp_path / "in/.zgroup", {"zarr_format": 2})
    dimensions = {"_ARRAY_DIMENSIONS": ["x"]}
    v2_array(tmp_path / "in/a", FOUR, fill_value=0, attributes={**dimensions, "_FillValue": -9})
    v2_array(
        tmp_path / "in/b", np.zeros(2, "<f4"), fill_value=1e20, attributes={**dimensions, "_FillValue": 1.0000000200408773e20}
    )
    found = objects(tmp_path / "in", tmp_path / "out.zarr")
    assert "-9" in found["/a@_FillValue"]["reason"] and "/b@_FillValue" not in found
    assert node(tmp_path / "out.zarr", "a")["attributes"] == {"_FillValue": -9}


def test_numbers_that_netcdf_writes_as_texts(tmp_path):
    write(tmp_path / "in/.zgroup", {"zarr_format": 2})
    types = {"_NCZARR_ATTR": {"types": {"valid_max": "<f4", "range": "<f8", "title": "<U1"}}}
    attributes = {"valid_max": "Infinity", "range": ["-Infinity", 3], "title": "Infinity", **types}
    v2_array(tmp_path / "in/a", FOUR, attributes=attributes)
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q")
    made = node(tmp_path / "out.zarr", "a")["attributes"]
    assert made["valid_max"] == np.inf and made["range"] == [-np.inf, 3] and made["title"] == "Infinity"


# --- dimensions, references


def test_dimensions_of_xarray_in_zarr_v3(tmp_path):
    group(tmp_path / "in")
    array(tmp_path / "in/x", FOUR, attributes='{"_ARRAY_DIMENSIONS": ["x"]}')
    array(tmp_path / "in/a", FOUR, attributes='{"_ARRAY_DIMENSIONS": ["x"]}')
    run("export", tmp_path / "in", tmp_path / "out.nc", "-q")
    with h5py.File(tmp_path / "out.nc") as f:
        assert f["a"].dims[0][0] == f["x"] and "_ARRAY_DIMENSIONS" not in f["a"].attrs


def v2_references(folder):
    write(folder / "data.bin", b"??" + FOUR.tobytes())
    write(folder / "whole.bin", FOUR.tobytes())
    zarray = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i4", "compressor": None, "filters": None, "order": "C"}
    return {
        ".zgroup": {"zarr_format": 2},
        "a/.zarray": {**zarray, "fill_value": 0},
        "a/.zattrs": {"_ARRAY_DIMENSIONS": ["x"], "n": [1, {"m": None}, 2.5]},
        "b/.zarray": {**zarray, "fill_value": 0},
    }


@pytest.mark.parametrize("form", ["version 0", "version 1", "templates", "texts"])
def test_references_with_metadata_of_zarr_v2(tmp_path, form):
    references = v2_references(tmp_path)
    url = "{{u}}/data.bin" if form == "templates" else f"{tmp_path}/data.bin"
    references |= {"a/0": [url, 2, 16], "b/0": [url.replace("/data.bin", "/whole.bin")]}
    if form == "texts":
        references = {k: json.dumps(v) if k.split("/")[-1].startswith(".z") else v for k, v in references.items()}
    document = references if form == "version 0" else {"version": 1, "refs": references}
    if form == "templates":
        document["templates"] = {"u": f"file://{tmp_path}", "other": "x"}
    write(tmp_path / "r.json", document)
    convert(tmp_path / "r.json", tmp_path / "out.zarr", "-q", "--external", "all")
    assert (tmp_path / "out.zarr/a/c/0").read_bytes() == (tmp_path / "out.zarr/b/c/0").read_bytes() == FOUR.tobytes()
    made = node(tmp_path / "out.zarr", "a")
    assert made["dimension_names"] == ["x"] and made["attributes"]["n"] == [1, {"m": None}, 2.5]
    assert "int32" in run("inspect", tmp_path / "r.json").stdout
    run("export", tmp_path / "r.json", tmp_path / "out.h5", "-q", "--external", tmp_path)
    with h5py.File(tmp_path / "out.h5") as f:
        np.testing.assert_array_equal(f["a"][...], FOUR)


def test_references_that_are_refused(tmp_path):
    references = v2_references(tmp_path)
    write(
        tmp_path / "r.json", {"version": 1, "refs": references, "gen": [{"key": "a/{{i}}", "url": "x", "dimensions": {"i": [0]}}]}
    )
    assert '"gen"' in refused("convert", tmp_path / "r.json", tmp_path / "out.zarr")
    references["a/0"] = ["{{f(c=1)}}", 0, 4]
    write(tmp_path / "r.json", {"version": 1, "templates": {"f": "{{c}}"}, "refs": references})
    assert "template" in refused("convert", tmp_path / "r.json", tmp_path / "out.zarr")


# --- chunks of the fill value


@pytest.mark.parametrize("kind", ["numbers", "shards"])
def test_chunks_with_only_the_fill_value_are_left_out(tmp_path, kind):
    group(tmp_path / "in")
    values = np.full(100, 5, "<f8")
    values[42] = -0.0
    array(tmp_path / "in/a", values, 100, fill=5)
    zeros = np.zeros(20, "<f8")
    zeros[3] = -0.0
    array(tmp_path / "in/z", zeros, 20, fill=0.0)
    shard = ["--shard", "80"] if kind == "shards" else []
    convert(tmp_path / "in", tmp_path / "out.zarr", "-q", "--chunk", 5, *shard)
    names = [n for n in files(tmp_path / "out.zarr") if "/c/" in n]
    assert names == (["a/c/4", "z/c/0"] if shard else ["a/c/8", "z/c/0"])
    assert verify(tmp_path / "in", tmp_path / "out.zarr")["exit_status"] == 0
    convert(tmp_path / "in", tmp_path / "all.zarr", "-q", "--chunk", 5, "--write-empty-chunks", *shard)
    assert len([n for n in files(tmp_path / "all.zarr") if "/c/" in n]) == (12 if shard else 24)
    assert verify(tmp_path / "in", tmp_path / "all.zarr")["exit_status"] == 0
