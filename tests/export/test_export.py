# SPDX-License-Identifier: BSL-1.0
"""HDF5 to Zarr to HDF5: what h5py sees of the file that comes back."""

import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND, convert, refused, run, verify
from kills import slow_writes


def example(path):
    """One object of each kind that an HDF5 file can have."""
    record = np.dtype([("a", "i4"), ("b", ">f8"), ("s", "S3"), ("list", "f4", (2,))])
    with h5py.File(path, "w") as f:
        f["big"] = np.arange(12, dtype=">i4").reshape(3, 4)
        f.create_dataset(
            "grows", data=np.arange(1000.0).reshape(10, 100), chunks=(4, 30), maxshape=(None, 200), compression="gzip"
        )
        f.create_dataset("filled", (10,), "i2", chunks=(3,), fillvalue=-7)[3:5] = 1
        f["fixed"] = np.array([b"ab", b"c"], "S4")
        f["text"] = np.array(["x", "yö"], h5py.string_dtype())
        f["scalar"] = 3.5
        f["bool"] = np.array([True, False])
        f["complex"] = np.array([1 + 2j, np.nan])
        f["half"] = np.array([1.5, -0.0], "f2")
        f["record"] = np.array([(1, 2.5, b"abc", (3, 4))], record)
        f["table"] = np.array([(1, "aa"), (2, "")], np.dtype([("a", "i4"), ("s", h5py.string_dtype())]))
        ragged = f.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))
        ragged[0], ragged[2] = [1, 2, 3], [4]
        f["opaque"] = np.array([b"abc", b"de\0"], "V3")
        f["time"] = np.array(["2020-01-01"], "M8[us]").astype(h5py.opaque_dtype("M8[us]"))
        f["enum"] = np.array([1, 2]).astype(h5py.enum_dtype({"RED": 1, "GREEN": 2}, basetype="i2"))
        f["references"] = np.array([f["big"].ref, h5py.Reference()], h5py.ref_dtype)
        f["regions"] = np.array([f["big"].regionref[0:2, 1]], h5py.regionref_dtype)
        f["null"] = h5py.Empty("f4")
        f["names/a b"] = np.int8(1)
        f["names/%41"] = np.int8(2)
        f["type"] = np.dtype("f4")
        f["type"].attrs["unit"] = "m"
        f["names/soft"] = h5py.SoftLink("/big")
        f["names/outside"] = h5py.ExternalLink("other.h5", "/x")
        f["names/hard"] = f["big"]
        f["names"].attrs["one"] = 1
        f.attrs["reference"] = f["big"].ref
        f.attrs["yes"] = True
        f.attrs["empty"] = h5py.Empty("f8")
        f.attrs["list"] = [1, 2]
        f.attrs["words"] = np.array(["a", "bb"], h5py.string_dtype())
        f.attrs["nan"] = np.nan
        f.attrs["z"] = np.zeros((), record)
        f.attrs["a"] = 1.5
    return path


@pytest.fixture
def both(folder):
    """A file, and what comes back of it, through a store."""
    source, store, back = example(os.path.join(folder, "in.h5")), os.path.join(folder, "s.zarr"), os.path.join(folder, "back.h5")
    convert(source, store, "-q", status=3)  # the link to other.h5 leads nowhere
    assert run("export", store, back, "-q").stderr == ""
    with h5py.File(source) as a, h5py.File(back) as b:
        yield a, b


def test_everything_comes_back(both):
    a, b = both
    names = {"a": set(), "b": set()}
    a.visit(names["a"].add)
    b.visit(names["b"].add)
    assert names["a"] == names["b"] and len(names["a"]) == 22
    for name in names["a"] - {"names", "type", "null", "table", "ragged", "references", "regions"}:
        have, wanted = b[name], a[name]
        assert have.dtype == wanted.dtype and have.shape == wanted.shape and have.maxshape == wanted.maxshape, name
        assert have[()].tobytes() == wanted[()].tobytes() or name == "text", name
        if name != "text":  # h5py crashes
            assert np.asarray(have.fillvalue).tobytes() == np.asarray(wanted.fillvalue).tobytes(), name
    assert b["text"].asstr()[()].tolist() == ["x", "yö"]
    assert h5py.check_enum_dtype(b["enum"].dtype) == {"RED": 1, "GREEN": 2}
    assert h5py.check_opaque_dtype(b["time"].dtype) and b["big"].id.get_type().equal(h5py.h5t.STD_I32BE)


def test_values_of_variable_length_come_back(both):
    a, b = both
    assert b["table"].dtype == a["table"].dtype and h5py.check_string_dtype(b["table"].dtype["s"]).length is None
    assert [tuple(r) for r in b["table"][()]] == [(1, b"aa"), (2, b"")]
    assert [list(r) for r in b["ragged"][()]] == [[1, 2, 3], [], [4]] and b["ragged"].dtype == a["ragged"].dtype
    assert b[b["references"][0]] == b["big"] and not b["references"][1]
    region = b["regions"][0]
    assert b[region] == b["big"] and np.array_equal(b["big"][region], a["big"][a["regions"][0]])
    assert b["null"].shape is None and b["null"].dtype == "f4"


def test_links_and_types_come_back(both):
    b = both[1]
    group = b["names"]
    assert group.get("soft", getlink=True).path == "/big"
    outside = group.get("outside", getlink=True)
    assert (outside.filename, outside.path) == ("other.h5", "/x")
    assert group["hard"] == b["big"]
    assert b["type"].dtype == "f4" and b["type"].attrs["unit"] == "m"


def test_attributes_come_back(both):
    a, b = both
    assert set(a.attrs) == set(b.attrs) and b[b.attrs["reference"]] == b["big"] and b["names"].attrs["one"] == 1
    for name in ("yes", "list", "words", "nan", "z", "a"):
        assert np.array_equal(a.attrs[name], b.attrs[name]) or name == "nan", name
        assert np.asarray(a.attrs[name]).dtype == np.asarray(b.attrs[name]).dtype, name
    assert isinstance(b.attrs["empty"], h5py.Empty) and b.attrs["empty"].dtype == "f8" and np.isnan(b.attrs["nan"])


def test_verify_says_the_same(folder):
    source, store, back = example(os.path.join(folder, "in.h5")), os.path.join(folder, "s.zarr"), os.path.join(folder, "back.h5")
    convert(source, store, "-q", status=3)
    run("export", store, back, "-q")
    assert verify(back, store) == {**verify(source, store), "source": back}


def test_a_user_block_comes_back(folder):
    source, store, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", "back.h5"))
    with h5py.File(source, "w", userblock_size=1024) as f:
        f["x"] = 1
    with open(source, "r+b") as f:
        f.write(b"hello")
    convert(source, store, "-q")
    run("export", store, back, "-q")
    with open(back, "rb") as f:
        assert f.read(1024) == b"hello".ljust(1024, b"\0")
    with h5py.File(back) as f:
        assert f.userblock_size == 1024 and f["x"][()] == 1


def node(path, document):
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "zarr.json"), "w", encoding="utf-8") as f:
        json.dump({"zarr_format": 3, **document}, f)


def group(path, attributes=None):
    node(path, {"node_type": "group", "attributes": attributes or {}})


def array(path, data, chunk, codecs=None, attributes=None, chunks=True, data_type=None, fill=0, **more):
    """An array of a stranger, in C order and without compression."""
    data = np.asarray(data)
    codecs = codecs or [{"name": "bytes", "configuration": {"endian": "little"}}]
    node(
        path,
        {
            "node_type": "array",
            "shape": list(data.shape),
            "data_type": data_type or str(data.dtype),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill,
            "codecs": codecs,
            "attributes": attributes or {},
            **more,
        },
    )
    if not chunks:
        return
    for at in np.ndindex(*(-(-n // c) for n, c in zip(data.shape, chunk))):
        part = data[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))]
        whole = np.zeros(chunk, data.dtype)
        whole[tuple(slice(0, n) for n in part.shape)] = part
        key = os.path.join(path, "c", *map(str, at))
        os.makedirs(os.path.dirname(key), exist_ok=True)
        with open(key, "wb") as f:
            f.write(whole.tobytes())


def test_attributes_that_hdf5_cannot_have_are_json(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store, {"dict": {"a": [1, None]}, "mixed": [1, "a"], "ragged": [[1], [2, 3]], "big": 2**64 - 1, "none": None, "": 1})
    done = run("export", store, back, "-q", "--json", status=3)
    objects = {o.get("attribute"): o for o in json.loads(done.stdout)["objects"]}
    assert objects[""]["outcome"] == "skipped" and "JSON text" in objects["dict"]["reason"]
    with h5py.File(back) as f:
        assert json.loads(f.attrs["dict"]) == {"a": [1, None]} and json.loads(f.attrs["ragged"]) == [[1], [2, 3]]
        assert f.attrs["big"] == 2**64 - 1 and f.attrs["big"].dtype == "u8" and isinstance(f.attrs["none"], h5py.Empty)


def test_dimensions_of_xarray_become_those_of_netcdf(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    group(store)
    array(store + "/x", np.arange(4.0), (4,), dimension_names=["x"])
    array(store + "/v", np.arange(12.0).reshape(3, 4), (3, 4), dimension_names=["y", "x"], attributes={"units": "m", "n": 1})
    array(store + "/y", np.int64(7), (), dimension_names=[])  # called like a dimension that it does not have
    run("export", store, back, "-q")
    with h5py.File(back) as f:
        assert sorted(f) == ["_nc4_non_coord_y", "v", "x", "y"]
        assert f["v"].dims[0][0].name == "/y" and f["v"].dims[1][0].name == "/x"
        assert f["y"].attrs["NAME"].startswith(b"This is a netCDF dimension but not a netCDF variable") and f["y"].shape == (3,)
        assert f["x"].attrs["CLASS"] == b"DIMENSION_SCALE" and f["_nc4_non_coord_y"][()] == 7
        assert f["v"].attrs["n"].shape == (1,) and f["v"].attrs["units"] == b"m"
    dump = subprocess.run(["ncdump", "-h", back], capture_output=True, text=True, check=False) if shutil_which("ncdump") else None
    assert dump is None or ("double v(y, x)" in dump.stdout and 'v:units = "m"' in dump.stdout), dump


def shutil_which(name):
    return any(os.access(os.path.join(p, name), os.X_OK) for p in os.environ["PATH"].split(os.pathsep))


def test_names_that_hdf5_cannot_have_are_reported(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store, {"zarrbits": {"names": {"a": "x/y", "b": {"base64": "YQBi"}}}})
    array(store + "/a", np.arange(3), (3,))
    array(store + "/b", np.arange(3), (3,))
    array(store + "/c", np.arange(3), (3,))
    said = run("export", store, back, "-q", status=3).stderr
    assert said.count("HDF5 cannot have this name") == 2
    with h5py.File(back) as f:
        assert list(f) == ["c"]


def test_a_huge_array_without_chunks_takes_nothing(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store)
    array(store + "/a", np.zeros(()), (), chunks=False)
    with open(store + "/a/zarr.json", encoding="utf-8") as f:
        document = json.load(f)
    document.update(shape=[1 << 50], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1000]}})
    node(store + "/a", document)
    run("export", store, back, "-q", timeout=600)
    with h5py.File(back) as f:
        assert f["a"].shape == (1 << 50,) and f["a"].id.get_num_chunks() == 0 and f["a"][1 << 49] == 0
    document["chunk_grid"]["configuration"]["chunk_shape"] = [1 << 40]
    node(store + "/a", document)
    assert "4 GiB, which HDF5 cannot have" in run("export", store, back, "-q", "--overwrite", status=3).stderr


@pytest.mark.parametrize(
    "data_type, note", [("int16", "uint16"), ("uint16", "int16"), ("int32", "float32"), ("float32", "uint32")]
)
def test_a_note_of_another_sign_or_class_is_not_believed(folder, data_type, note):
    """The bits of -5 are those of 65531."""
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store)
    array(store + "/a", np.array([-5, 7]).astype(data_type), (2,), attributes={"_nc_zarrbits": {"hdf5_type": note}})
    said = run("export", store, back, "-q", status=3).stderr
    assert "/a" in said and "does not fit" in said, said
    with h5py.File(back) as f:
        assert "a" not in f


def test_a_target_is_replaced_only_if_it_is_hdf5(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store, {"a": 1})
    with open(back, "w", encoding="utf-8") as f:
        f.write("mine")
    assert "--overwrite" in refused("export", store, back)
    assert "is not an HDF5 file" in refused("export", "--overwrite", store, back)
    os.remove(back)
    run("export", store, back, "-q")
    group(store, {"a": 2})
    run("export", store, back, "-q", "--overwrite")
    with h5py.File(back) as f:
        assert f.attrs["a"] == 2
    assert sorted(os.listdir(folder)) == ["b.h5", "s.zarr"]


def test_what_is_no_store_is_refused(folder):
    os.mkdir(os.path.join(folder, "none"))
    assert "zarr.json" in refused("export", os.path.join(folder, "none"), os.path.join(folder, "b.h5"))
    assert run("export", folder, "s3://bucket/b.h5", status=2).stderr.startswith("zarrbits: a file is written to a local disk")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_cut_off_leaves_no_file(folder, signal_number):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store)
    array(store + "/a", np.random.default_rng(1).normal(size=(2000, 500)), (1, 500))
    slow = {"name": "transpose", "configuration": {"order": [1, 0]}}  # every chunk is decoded and compressed
    with open(store + "/a/zarr.json", encoding="utf-8") as f:
        document = json.load(f)
    document["codecs"].insert(0, slow)
    node(store + "/a", document)
    child = subprocess.Popen([COMMAND, "export", "--threads", "1", "-q", store, back], env=os.environ | slow_writes())
    time.sleep(0.05)
    child.send_signal(signal_number)
    child.wait(timeout=600)
    if os.path.exists(back):  # it was done already, or the process that writes was
        verify(back, store)
    run("export", "-q", "--overwrite", store, back)  # takes what was left, or replaces a run that was faster
    assert sorted(os.listdir(folder)) == ["b.h5", "s.zarr"]
    with h5py.File(back) as f:
        assert f["a"].shape == (2000, 500)


@pytest.mark.parametrize("name, options", [("b.h5", []), ("b.nc", []), ("b.h5", ["--libver", "latest"])])
def test_the_time_changes_no_byte(folder, name, options):
    source, store, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", name))
    example(source)
    convert("-q", source, store, status=(0, 3))
    made = []
    for threads in 1, 3:
        run("export", store, back, "-q", "--overwrite", "--threads", threads, *options, status=(0, 3))
        with open(back, "rb") as f:
            made.append(f.read())
        time.sleep(1.1)  # HDF5 has seconds
    assert made[0] == made[1]


def test_pages_and_the_latest_format(folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    group(store)
    array(store + "/a", np.arange(1000.0), (10,))
    run("export", store, back, "-q", "--page-size", "64k", "--libver", "latest")
    with h5py.File(back) as f:
        strategy = f.id.get_create_plist()
        assert strategy.get_file_space_strategy()[0] == h5py.h5f.FSPACE_STRATEGY_PAGE
        assert strategy.get_file_space_page_size() == 65536 and np.array_equal(f["a"][()], np.arange(1000.0))
    assert os.path.getsize(back) % 65536 == 0
    assert "page" in run("export", store, back, "--overwrite", "--page-size", "100", status=2).stderr


def of_others(store):
    """A store without notes: what the file has beside it follows from it."""
    group(store, {"none": None, "flags": [True, False], "object": {"a": [1, None]}, "large": 2**64 - 1, "mixed": [1, 2.5]})
    array(store + "/x", np.arange(4.0), (4,), dimension_names=["x"], attributes={"units": "m", "n": 1, "empty": ""})
    array(store + "/v", np.arange(12.0).reshape(3, 4), (3, 4), dimension_names=["y", "x"])
    array(store + "/y", np.int64(7), (), dimension_names=[])  # called like a dimension that it does not have
    array(store + "/yes", np.array([True, False, True]), (2,), dimension_names=["y"], data_type="bool", fill=False)
    array(store + "/long", np.arange(3), (5,), dimension_names=["y"])
    terminated = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}
    array(store + "/text", np.array([b"ab", b"c"], "S3"), (2,), dimension_names=["t"], data_type=terminated, fill="AAAA")
    array(store + "/bare", np.arange(6).reshape(3, 2), (3, 2))
    # hdmf-zarr has the names in xarray's attribute of Zarr v2
    array(store + "/xarray", np.arange(4), (4,), attributes={"_ARRAY_DIMENSIONS": ["x"]})


@pytest.mark.parametrize("name", ["b.nc", "b.h5"])
def test_verify_knows_what_an_export_has(folder, name):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, name)
    of_others(store)
    run("export", "-q", store, back)
    for order in (back, store), (store, back):
        report = verify(*order)
        assert (report["findings"], report["extras"], report["only_in_store"]) == ([], [], [])
    changes = {
        "v": lambda f: f.move("v", "w"),
        "an attribute": lambda f: f["x"].attrs.modify("n", np.array([2])),
        "an attribute's type": lambda f: f["x"].attrs.create("n", np.array([1], "i2")),
        "JSON": lambda f: f.attrs.modify("object", '{"a": [1, 2]}'),
        "one attribute less": lambda f: f["x"].attrs.__delitem__("units"),
        "a dimension more": lambda f: f.copy("bare", "z"),
        "an element": lambda f: f["v"].__setitem__((0, 0), 9),
        "a boolean": lambda f: f["yes"].__setitem__(0, 0),
    }
    for change in changes.values():
        copy = os.path.join(folder, "copy.h5")
        shutil.copyfile(back, copy)
        with h5py.File(copy, "a") as f:
            change(f)
        assert verify(copy, store, status=1)["exit_status"] == verify(store, copy, status=1)["exit_status"] == 1


@pytest.mark.parametrize("convention", ["netcdf", "none"])
def test_patterns_match_links(folder, convention):
    """What a link leads to is in its place if the file has nothing else of it."""
    source, store, back = (os.path.join(folder, name) for name in ("in.h5", "s.zarr", "b.h5"))
    with h5py.File(source, "w") as f:
        f["g/v"] = np.arange(3)
        f["g/v"].make_scale("v")
        f["g/soft"], f["g/z"] = h5py.SoftLink("/g/v"), f["g/v"]
    convert("-q", "--convention", convention, source, store)
    for chosen, copied in ((["/g/soft"], True), (["/g/soft", "/g/v"], False), (["/g/z"], True)):
        run("export", "-q", "--overwrite", *(word for path in chosen for word in ("--include", path)), store, back)
        with h5py.File(back) as f:
            assert {path.removeprefix("/g/") for path in chosen} <= set(f["g"])  # "v" may be a dimension alone
            assert f[chosen[0]][:].tolist() == [0, 1, 2]
            assert isinstance(f["g"].get("soft", getlink=True), h5py.SoftLink) == (not copied)
    for path in ("/g/soft", "/g/z"):  # of a store that has no more
        convert("-q", "--overwrite", "--convention", convention, "--include", path, source, store, status=(0, 3))
        run("export", "-q", "--overwrite", store, back, status=(0, 3))
        with h5py.File(back) as f:
            assert convention == "none" or f[path][:].tolist() == [0, 1, 2]
    assert "matches no path" in refused("export", "--overwrite", "--include", "/g/none", store, back)
