# SPDX-License-Identifier: BSL-1.0
"""Copies of Zarr v2: a reader with numcodecs alone finds the values that h5py finds."""

import json
import os
import shutil
import time
import zipfile

import h5py
import numpy as np
import pytest

import v2_store
from harness import contents, convert, execute, report, run, same, verify
from kills import begin, has_units, kill, slow_writes

RNG = np.random.default_rng(4)
VALUES = RNG.integers(0, 1000, (20, 30)).astype("i4")
STRUCT = np.array([(i, i / 4) for i in range(12)], [("a", "<i2"), ("b", "<f8")])
GRID = {"chunks": (8, 30)}


def v2(*arguments, **how):
    return convert("--zarr-format", "2", *arguments, **how)


def write_sources(f):
    f.attrs["title"] = "a title"
    f.create_dataset("g/shuffled", data=VALUES, compression="gzip", shuffle=True, **GRID)
    f.create_dataset("g/deflated", data=VALUES, compression="gzip", **GRID)
    f.create_dataset("summed", data=VALUES, compression="gzip", fletcher32=True, **GRID)
    f.create_dataset("big", data=VALUES.astype(">f4"), **GRID)
    f.create_dataset("lzf", data=VALUES.astype("u8"), compression="lzf", **GRID)
    f.create_dataset("whole", data=VALUES)
    f.create_dataset("truth", data=VALUES > 500, **GRID)
    f.create_dataset("half", data=VALUES.astype("f2"), **GRID)
    f.create_dataset("complex", data=VALUES.astype("c8"))
    f.create_dataset("struct", data=STRUCT, chunks=(5,))
    f.create_dataset("text", data=["one", "", "drei"] * 4, dtype=h5py.string_dtype(), chunks=(5,))
    f.create_dataset("fixed", data=np.array([b"ab", b"", b"xyz"] * 4))
    f["number"] = 2.5
    f["c"] = np.arange(5)
    f["c2/0"] = np.arange(5)
    f.create_dataset("none", (0, 3), "i4", chunks=(4, 3), maxshape=(None, 3))
    f.create_dataset("unwritten", (20, 30), "i4", fillvalue=7)
    gaps = f.create_dataset("gaps", (20, 30), "i4", compression="gzip", fillvalue=-3, **GRID)
    gaps[8:16] = 1
    f.create_dataset("zeros", (20, 30), "u1", **GRID)[:8] = 1
    missing = f.create_dataset("missing", (20, 30), "f4", fillvalue=np.float32(0.1), **GRID)
    missing[:8] = 1
    missing.attrs["_FillValue"] = np.float32(0.1)
    other = f.create_dataset("other", (20, 30), "f4", fillvalue=np.float32(2), **GRID)
    other[:8] = 1
    other.attrs["_FillValue"] = np.float32(-9)
    f.create_dataset("words", (9,), h5py.string_dtype(), chunks=(4,))[:4] = "a"
    f.create_dataset("records", (12,), STRUCT.dtype, chunks=(5,))[:5] = STRUCT[:5]


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w", libver=("earliest", "v110")) as f:
        write_sources(f)
    return tmp_path / "in.h5"


def require_equal(source, store):
    with h5py.File(source) as f:
        names = []
        f.visititems(lambda name, d: names.append(name) if isinstance(d, h5py.Dataset) else None)
        for name in names:
            dataset = f[name]
            is_text = h5py.check_string_dtype(dataset.dtype)
            want = dataset.asstr()[()] if is_text else dataset[()]
            got = v2_store.read(store, name)
            assert got.shape == np.shape(want), name
            assert np.array_equal(got, want), name
    return names


@pytest.mark.parametrize(
    "options",
    [[], ["--profile", "native"], ["--compress", "blosc:zstd"], ["--chunk", "7x11"], ["--consolidate"], ["--convention", "none"]],
    ids=" ".join,
)
def test_numcodecs_reads_what_h5py_reads(tmp_path, source, options):
    out = tmp_path / "out.zarr"
    v2(source, out, *options)
    assert len(require_equal(source, out)) == 23
    assert not any(name.endswith("zarr.json") or "/c/" in name for name in contents(out))
    assert v2_store.document(out, ".zattrs")["title"] == "a title"
    assert v2_store.document(out, ".zgroup") == v2_store.document(out, "g/.zgroup") == {"zarr_format": 2}
    verify(source, out)
    run("check", out)
    convert(source, tmp_path / "v3.zarr", *options)
    same_values = [run("digest", store).stdout.replace(str(store), "") for store in (out, tmp_path / "v3.zarr")]
    assert same_values[0] == same_values[1]


def test_the_metadata(tmp_path, source):
    """By hand, from the texts of Zarr v2 and numcodecs."""
    out = tmp_path / "out.zarr"
    v2("--consolidate", source, out)
    plain = {"zarr_format": 2, "order": "C", "dimension_separator": ".", "filters": None, "compressor": None, "fill_value": None}
    grid = {"shape": [20, 30], "chunks": [8, 30]}
    for name, more in {
        "g/deflated": {**grid, "dtype": "<i4", "compressor": {"id": "zlib", "level": 4}},
        "summed": {**grid, "dtype": "<i4", "compressor": {"id": "zlib", "level": 4}},
        "big": {**grid, "dtype": ">f4"},
        "truth": {**grid, "dtype": "|b1"},
        "half": {**grid, "dtype": "<f2"},
        "zeros": {**grid, "dtype": "|u1"},
        "missing": {**grid, "dtype": "<f4", "fill_value": float(np.float32(0.1))},
        "other": {**grid, "dtype": "<f4", "fill_value": -9.0},
        "struct": {"shape": [12], "chunks": [5], "dtype": [["a", "<i2"], ["b", "<f8"]]},
        "number": {"shape": [], "chunks": [], "dtype": "<f8"},
        "text": {"shape": [12], "chunks": [5], "dtype": "|O", "filters": [{"id": "vlen-utf8"}]},
    }.items():
        assert v2_store.document(out, f"{name}/.zarray") == {**plain, **more}, name
        assert len(v2_store.document(out, f"{name}/.zattrs")["_ARRAY_DIMENSIONS"]) == len(more["shape"]), name
    assert "_FillValue" not in v2_store.document(out, "missing/.zattrs")
    consolidated = v2_store.document(out, ".zmetadata")
    assert consolidated["zarr_consolidated_format"] == 1
    assert consolidated["metadata"] == {
        key: json.loads(text) for key, text in contents(out).items() if ".z" in key and key != ".zmetadata"
    }
    assert len(consolidated["metadata"]) > 40


def test_only_chunks_that_a_fill_value_stands_for_are_missing(tmp_path, source):
    out = tmp_path / "out.zarr"
    v2(source, out)
    chunks = {name: sorted(os.path.basename(key) for key in contents(out) if key.startswith(f"{name}/") and "/.z" not in key)
              for name in ("gaps", "zeros", "missing", "other", "unwritten", "words")}  # fmt: skip
    rows = ["0.0", "1.0", "2.0"]
    assert chunks == {
        "gaps": rows,
        "zeros": rows,
        "missing": ["0.0"],
        "other": rows,
        "unwritten": ["0.0"],
        "words": ["0", "1", "2"],
    }


def test_gaps_that_are_far_larger_than_the_file_are_not_written(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("huge", (1 << 20, 1 << 20), "f8", chunks=(1024, 1024))
        f["small"] = np.arange(3)
    done = v2("--report", tmp_path / "r.json", tmp_path / "in.h5", tmp_path / "out.zarr", status=3)
    reasons = {o["path"]: o.get("reason", "") for o in report(tmp_path / "r.json")["objects"] if o["outcome"] == "skipped"}
    assert list(reasons) == ["/huge"] and "--allow-expansion" in reasons["/huge"] and "huge" in done.stderr + done.stdout
    assert sorted(os.listdir(tmp_path / "out.zarr")) == [".zattrs", ".zgroup", "small"]
    said = run("plan", "--zarr-format", "2", tmp_path / "in.h5", status=3).stdout
    assert "huge" in said and "--zarr-format" in said


@pytest.mark.parametrize(
    "options, word",
    [
        (["--shard", "64k"], "shards"),
        (["--checksum", "crc32c"], "crc32c"),
        (["--codec", "packbits"], "packbits"),
    ],
    ids=["shard", "checksum", "packbits"],
)
def test_options_that_zarr_v2_does_not_have_are_refused(tmp_path, source, options, word):
    out = tmp_path / "out.zarr"
    said = run("convert", "--zarr-format", "2", *options, source, out, status=2).stderr
    assert word in said and "set --zarr-format to 3" in said and not out.exists()


def test_a_copy_has_one_format(tmp_path, source):
    said = run("convert", "--zarr-format", "both", source, tmp_path / "out.zarr", status=2).stderr
    assert "--virtual" in said and "2 or 3" in said


def test_a_zip_file_has_the_same_objects(tmp_path, source):
    v2(source, tmp_path / "out.zarr")
    v2(source, tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            name: data for name, data in contents(tmp_path / "out.zarr").items()
        }
    verify(source, tmp_path / "out.zip")
    assert "exists" in v2(source, tmp_path / "out.zip", status=1).stderr
    v2("--overwrite", source, tmp_path / "out.zip")


def test_overwrite_replaces_stores_of_both_formats(tmp_path, source):
    out, v3 = tmp_path / "out.zarr", tmp_path / "v3.zarr"
    v2("--consolidate", source, out)
    first = contents(out)
    assert "complete store" in convert(source, out, status=1).stderr
    convert("--overwrite", source, out)
    convert(source, v3)
    same(out, v3)
    v2("--overwrite", "--consolidate", source, out)
    assert contents(out) == first


def test_shares_and_resumed_runs_make_the_same_store(tmp_path, source):
    whole, shares = tmp_path / "whole.zarr", tmp_path / "shares.zarr"
    v2("--consolidate", source, whole)
    for i in range(3):
        v2("--consolidate", "--partition", f"{i}/3", source, shares)
    assert not any(name.endswith((".zgroup", ".zarray", "zarr.json")) for name in contents(shares))
    run("finalize", source, shares)
    same(whole, shares)


def test_a_run_that_was_killed_is_resumed(tmp_path, source):
    whole, killed = tmp_path / "whole.zarr", tmp_path / "killed.zarr"
    v2("--consolidate", source, whole)
    process = begin("convert", "-q", "--zarr-format", "2", "--consolidate", source, killed, **slow_writes())
    while process.poll() is None and not has_units(killed):
        time.sleep(0.001)
    kill(process)
    assert (killed / ".zarrbits-unfinished").exists(), "the run was not cut off"
    assert not any(key.endswith((".zgroup", "zarr.json")) for key in contents(killed))
    convert(source, killed, status=1)  # it was begun with other options
    run("convert", "--resume", "--zarr-format", "2", "--consolidate", source, killed)
    same(whole, killed)


def test_append_refuses_a_store_of_zarr_v2(tmp_path):
    for i in range(2):
        with h5py.File(tmp_path / f"{i}.nc", "w") as f:
            t = f.create_dataset("t", data=np.arange(3) + 3 * i, maxshape=(None,), chunks=(3,))
            t.make_scale("t")
            v = f.create_dataset("v", data=VALUES[:3], maxshape=(None, 30), chunks=(3, 30))
            v.dims[0].attach_scale(t)
    names = [tmp_path / "0.nc", tmp_path / "1.nc"]
    out = tmp_path / "out.zarr"
    v2("--concat", "t", *names, out)
    assert np.array_equal(v2_store.read(out, "t"), np.arange(6))
    assert np.array_equal(v2_store.read(out, "v"), np.concatenate([VALUES[:3]] * 2))
    verify("--concat", "t", *names, out)
    before = contents(out)
    assert "Zarr v2" in run("convert", "--append", "t", names[1], out, status=1).stderr
    assert contents(out) == before


def test_stores_become_stores_of_zarr_v2(tmp_path, source):
    """Of v3, with and without shards and packed values, and of v2 itself."""
    convert(source, tmp_path / "v3.zarr")
    convert("--shard", "16x60", "--codec", "packbits", "--checksum", "crc32c", source, tmp_path / "shards.zarr")
    v2(source, tmp_path / "v2.zarr")
    for name in "v3.zarr", "shards.zarr", "v2.zarr":
        for number, options in enumerate([[], ["--chunk", "5x11"]]):
            out = tmp_path / f"{number}-{name}"
            v2(tmp_path / name, out, *options)
            require_equal(source, out)
            verify(tmp_path / name, out)
            run("check", out)
    same(tmp_path / "v2.zarr", tmp_path / "0-v2.zarr")


def test_back_to_hdf5(tmp_path, source):
    v2(source, tmp_path / "v2.zarr")
    run("export", tmp_path / "v2.zarr", tmp_path / "back.h5", "-q")
    with h5py.File(source) as f, h5py.File(tmp_path / "back.h5") as g:
        for name in "g/shuffled", "big", "gaps", "missing", "struct", "text":
            assert np.array_equal(f[name][()], g[name][()]), name


@pytest.mark.skipif(not shutil.which("ncdump"), reason="ncdump is missing")
def test_netcdf_c_reads_a_store_without_compression(tmp_path):
    """That of Debian has no decoders for others."""
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=VALUES, compression="gzip", **GRID)
        f["v"].attrs["units"] = "m"
    v2("--compress", "none", tmp_path / "in.h5", tmp_path / "out.zarr")
    dumped = execute("ncdump", f"file://{tmp_path}/out.zarr#mode=zarr,file").stdout
    assert 'v:units = "m"' in dumped
    numbers = dumped[dumped.index(" v =") + 4 :].split(";")[0].replace(",", " ").split()
    assert list(map(int, numbers)) == VALUES.flatten().tolist()


def test_types_that_zarr_v2_does_not_have_are_skipped(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["x"] = np.arange(3)
        f["b"] = np.arange(3, dtype="i1")
    convert(tmp_path / "in.h5", tmp_path / "v3.zarr")
    path = tmp_path / "v3.zarr/b/zarr.json"
    node = json.loads(path.read_text())
    assert node["data_type"] == "int8"
    path.write_text(json.dumps({**node, "data_type": "int4"}))
    v2("--report", tmp_path / "r.json", tmp_path / "v3.zarr", tmp_path / "out.zarr", status=3)
    skipped = {o["path"]: o["reason"] for o in report(tmp_path / "r.json")["objects"] if o["outcome"] == "skipped"}
    assert list(skipped) == ["/b"] and "no data type int4" in skipped["/b"] and "set --zarr-format to 3" in skipped["/b"]
    assert sorted(os.listdir(tmp_path / "out.zarr")) == [".zattrs", ".zgroup", "x"]
