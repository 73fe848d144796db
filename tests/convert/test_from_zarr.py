# SPDX-License-Identifier: BSL-1.0
"""A Zarr store as the source: what is made of it is compared with the HDF5 file that the first store was made from, by `verify`,
which shares no code with what makes chunks; and chunk by chunk with the first store where they stay."""

import json
import os
import pathlib
import shutil
import time

import h5py
import numpy as np
import pytest

from harness import contents, convert, files, refused, run, same, verify
from kills import begin, kill, slow_writes


def make(path):
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as f:
        f.create_dataset(
            "cube", data=random.integers(0, 1000, (24, 30, 20), "i4"), chunks=(1, 30, 20), compression="gzip", shuffle=True
        )
        f.create_dataset("big", data=random.integers(-30000, 30000, (20, 7), "i2").astype(">i2"), chunks=(6, 4))
        f.create_dataset("camera", data=random.integers(0, 4096, (33, 40), "u2"), chunks=(10, 16))
        f.create_dataset("mask", data=random.integers(0, 2, 100, bool), chunks=(9,))
        sparse = f.create_dataset("sparse", (1000, 1000), "f8", chunks=(10, 10), fillvalue=-1.5)
        sparse[5:8, 990:] = 2
        sparse[500:520, 500:530] = 7
        f.create_dataset("empty", (0, 5), "f4", maxshape=(None, 5), chunks=(3, 5))
        f.create_dataset("g/names", data=[f"é{i}" for i in range(57)], dtype=h5py.string_dtype(), chunks=(10,))
        f.create_dataset("g/record", data=np.ones(20, [("a", "<f4"), ("b", "<i2")]), chunks=(7,))
        f["g/one"] = 3.5
        f["cube"].attrs["units"] = "m"
        f.attrs["title"] = "a"
    return str(path)


@pytest.fixture
def source(tmp_path):
    convert(make(tmp_path / "in.h5"), tmp_path / "a.zarr", "-q")
    return str(tmp_path / "in.h5"), str(tmp_path / "a.zarr")


def array(store, path):
    return json.loads(pathlib.Path(store, path, "zarr.json").read_text(encoding="utf-8"))


def chunk_shape(store, path):
    return array(store, path)["chunk_grid"]["configuration"]["chunk_shape"]


def report_of(*arguments):
    return json.loads(convert(*arguments, "--json", "-q").stdout)


def test_a_store_is_copied_as_it_is(source, tmp_path):
    document = report_of(source[1], tmp_path / "b.zarr")
    same(source[1], tmp_path / "b.zarr")
    arrays = {o["path"]: o for o in document["objects"] if o["kind"] == "dataset"}
    assert {o["outcome"] for o in arrays.values()} == {"raw"}
    assert arrays["/cube"]["chunks"]["raw"] == 24 and arrays["/sparse"]["chunks"]["raw"] == len(
        [name for name in files(source[1]) if name.startswith("sparse/c/")]
    )


WAYS = {
    "shards": ["--shard", "16k"],
    "shards of a shape": ["--shard", "6x30x20"],
    "packbits": ["--codec", "packbits"],
    "bits that fit": ["--codec", "packbits", "--bits", "12"],
    "bits of one": ["--codec", "packbits", "--bits", "camera=12", "--bits", "big=16"],
    "another compressor": ["--compress", "zstd:3"],
    "none": ["--compress", "none"],
    "checksums": ["--checksum", "crc32c"],
    "recode": ["--profile", "recode"],
    "other chunks": ["--chunk", "5x11x20"],
    "columns": ["--chunk", "24x1x1", "--memory", "16M"],
    "other chunks in shards": ["--chunk", "7x9", "--shard", "21x27"],
    "strings in other chunks": ["--chunk", "4", "--threads", "2"],
    "one chunk": ["--chunk", "99999x99999"],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_value_stays(source, tmp_path, way):
    convert(source[1], tmp_path / "b.zarr", "-q", *WAYS[way])
    assert verify(source[0], tmp_path / "b.zarr")["exit_status"] == 0
    # and again, from shards and packed chunks, with what the first store had
    convert(tmp_path / "b.zarr", tmp_path / "c.zip", "-q", "--shard", "none", "--chunk", "1x30x20", "--codec", "bytes")
    assert verify(source[0], tmp_path / "c.zip")["exit_status"] == 0


def test_the_form_is_what_was_asked_for(source, tmp_path):
    convert(source[1], tmp_path / "b.zarr", "-q", "--chunk", "24x10x7", "--compress", "zstd:3", "--shard", "24x30x14")
    assert chunk_shape(tmp_path / "b.zarr", "cube") == [24, 30, 14]
    inner = array(tmp_path / "b.zarr", "cube")["codecs"][0]["configuration"]
    assert inner["chunk_shape"] == [24, 10, 7] and [c["name"] for c in inner["codecs"]] == ["bytes", "zstd"]
    assert chunk_shape(tmp_path / "b.zarr", "camera") == [10, 16]  # of another rank
    assert array(tmp_path / "b.zarr", "cube")["attributes"]["units"] == "m"
    convert(source[1], tmp_path / "p.zarr", "-q", "--codec", "packbits", "--bits", "12")
    assert array(tmp_path / "p.zarr", "camera")["codecs"][0]["configuration"]["last_bit"] == 11
    assert array(tmp_path / "p.zarr", "mask")["codecs"][0]["name"] == "packbits"
    assert array(tmp_path / "p.zarr", "big")["codecs"][0]["name"] == "bytes"  # its values take more
    convert(tmp_path / "b.zarr", tmp_path / "n.zarr", "-q", "--chunk", "5x5x5")
    assert chunk_shape(tmp_path / "n.zarr", "cube") == [25, 30, 15]  # shards stay, of whole chunks
    convert(tmp_path / "b.zarr", tmp_path / "o.zarr", "-q", "--shard", "none")
    assert chunk_shape(tmp_path / "o.zarr", "cube") == [24, 10, 7]


def test_chunks_are_copied_into_shards_and_out_of_them(source, tmp_path):
    document = report_of(source[1], tmp_path / "b.zarr", "--shard", "10x30x20")
    cube = next(o for o in document["objects"] if o["path"] == "/cube")
    assert cube["outcome"] == "raw" and cube["chunks"]["raw"] == 24
    assert [n for n in files(tmp_path / "b.zarr") if n.startswith("cube/c/")] == [f"cube/c/{i}/0/0" for i in range(3)]
    convert(tmp_path / "b.zarr", tmp_path / "c.zarr", "-q", "--shard", "none")
    for name, bytes_ in contents(source[1]).items():
        if name.startswith("cube/c"):
            assert pathlib.Path(tmp_path, "c.zarr", name).read_bytes() == bytes_
    convert(tmp_path / "b.zarr", tmp_path / "d.zarr", "-q", "--shard", "4x30x20")
    assert verify(source[0], tmp_path / "d.zarr")["exit_status"] == 0


def test_chunks_that_do_not_exist_are_not_made(source, tmp_path):
    convert(source[1], tmp_path / "b.zarr", "-q", "--chunk", "7x13")
    names = [n for n in files(tmp_path / "b.zarr") if n.startswith("sparse/c/")]
    rows, columns = {n.split("/")[2] for n in names}, {n.split("/")[3] for n in names}
    assert (
        rows == {"0", "1"} | {str(i) for i in range(500 // 7, 519 // 7 + 1)} and len(names) == 2 * 1 + len(rows - {"0", "1"}) * 3
    )
    assert columns == {"76"} | {str(i) for i in range(500 // 13, 529 // 13 + 1)}


def test_two_passes_decode_each_chunk_once(tmp_path):
    """16 MB of memory, and rows become columns: one pass would decode each row dozens of times."""
    with h5py.File(tmp_path / "in.h5", "w") as f:
        values = np.arange(3000 * 4000, dtype="i4").reshape(3000, 4000)
        f.create_dataset("rows", data=values, chunks=(1, 4000), fillvalue=9)
    convert(tmp_path / "in.h5", tmp_path / "a.zarr", "-q")
    shutil.rmtree(tmp_path / "a.zarr/rows/c/7")
    plan = json.loads(run("plan", tmp_path / "a.zarr", "--chunk", "3000x1", "--memory", "16M", "--json").stdout)
    assert plan["datasets"][0]["how"].startswith("3000 chunks decoded once, ")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    wide = ["--chunk", "3000x4", "--memory", "16M", "--scratch", scratch]
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr", "-q", *wide)
    assert not os.listdir(scratch)
    column = np.fromfile(tmp_path / "b.zarr/rows/c/0/999", "<i4").reshape(3000, 4)
    expected = values[:, 3996:].copy()
    expected[7] = 9
    np.testing.assert_array_equal(column, expected)
    for i in range(3):
        convert(tmp_path / "a.zarr", tmp_path / "s.zarr", "-q", "--partition", f"{i}/3", *wide)
    run("finalize", tmp_path / "a.zarr", tmp_path / "s.zarr", "-q")
    same(tmp_path / "b.zarr", tmp_path / "s.zarr")
    assert "scratch" in refused("convert", tmp_path / "a.zarr", tmp_path / "c.zarr", *wide[:-1], tmp_path / "no")


def test_shares_make_what_one_process_makes(source, tmp_path):
    options = ["--chunk", "5x11x20", "--shard", "10x22x20"]
    convert(source[1], tmp_path / "b.zarr", "-q", *options)
    convert(source[1], tmp_path / "s.zarr", "-q", "--partition", "0/2", *options)
    assert "of partition 1 of 2" in refused("finalize", source[1], tmp_path / "s.zarr")
    assert "different options" in refused("convert", source[1], tmp_path / "s.zarr", "--partition", "1/2", "--chunk", "5x11x21")
    convert(source[1], tmp_path / "s.zarr", "-q", "--partition", "1/2", *options)
    run("finalize", source[1], tmp_path / "s.zarr", "-q")
    same(tmp_path / "b.zarr", tmp_path / "s.zarr")


def test_what_was_cut_off_is_continued(source, tmp_path):
    options = ["--chunk", "1x3x2", "-q"]
    convert(source[1], tmp_path / "b.zarr", *options)
    process = begin("convert", source[1], tmp_path / "k.zarr", *options, **slow_writes())
    while process.poll() is None and not (tmp_path / "k.zarr/cube/c/3").exists():
        time.sleep(0.01)
    kill(process)
    assert not (tmp_path / "k.zarr/zarr.json").exists()
    convert(source[1], tmp_path / "k.zarr", *options)
    same(tmp_path / "b.zarr", tmp_path / "k.zarr")


@pytest.mark.parametrize("options", [(), ("--chunk", "5x11x20"), ("--chunk", "5x11x20", "--shard", "10x22x20")])
@pytest.mark.parametrize("array", ["cube", "g/one"])
def test_a_lost_chunk_is_noticed_beside_a_longer_one(source, tmp_path, options, array):
    convert(source[1], tmp_path / "b.zarr", "-q", *options)
    for i in range(2):
        convert(source[1], tmp_path / "s.zarr", "-q", "--partition", f"{i}/2", *options)
    chunks = sorted(p for p in (tmp_path / "s.zarr" / array).rglob("*") if p.is_file() and p.name != "zarr.json")
    size = chunks[0].stat().st_size
    chunks[0].unlink()
    if len(chunks) > 1:
        with open(chunks[-1], "ab") as f:
            f.write(bytes(size))
    assert "do not have the size" in refused("finalize", source[1], tmp_path / "s.zarr")
    done = convert(source[1], tmp_path / "s.zarr", "--resume", *options)
    assert "all of it is converted again" in done.stderr
    same(tmp_path / "b.zarr", tmp_path / "s.zarr")


def test_a_changed_source_is_not_continued(source, tmp_path):
    convert(source[1], tmp_path / "s.zarr", "-q", "--partition", "0/2")
    os.remove(pathlib.Path(source[1], "cube/c/4/0/0"))
    assert "before its source changed" in refused("convert", source[1], tmp_path / "s.zarr", "--partition", "1/2")


def test_selected_nodes(source, tmp_path):
    document = report_of(source[1], tmp_path / "b.zarr", "--include", "/g", "--exclude", "one")
    assert sorted(p.name for p in (tmp_path / "b.zarr/g").iterdir()) == ["names", "record", "zarr.json"]
    assert sorted(p.name for p in (tmp_path / "b.zarr").iterdir()) == ["g", "zarr.json"]
    assert [o["path"] for o in document["objects"] if not o.get("selected", True)]
    assert "matches no path" in refused("convert", source[1], tmp_path / "c.zarr", "--include", "absent")
    convert(source[1] + ":/g/names", tmp_path / "d.zarr", "-q", "--chunk", "20")
    assert array(tmp_path, "d.zarr")["node_type"] == "array"


def test_damaged_chunks(source, tmp_path):
    victim = pathlib.Path(source[1], "cube/c/3/0/0")
    victim.write_bytes(victim.read_bytes()[:-3])
    sentence = refused("convert", source[1], tmp_path / "b.zarr", "--chunk", "24x1x20")
    assert 'chunk 3/0/0 of "/cube"' in sentence and "--keep-going" in sentence
    done = convert(source[1], tmp_path / "b.zarr", "--chunk", "24x1x20", "--keep-going", "--json", "-q", status=3)
    cube = next(o for o in json.loads(done.stdout)["objects"] if o["path"] == "/cube")
    assert cube["lost_chunks"] == [[3, 0, 0]] and cube["chunks"]["lost"] == 1 and cube["lossy"]


def test_what_has_no_meaning_for_a_store_is_refused(source, tmp_path):
    for option in (["--convention", "netcdf"], ["--links", "keep"]):
        assert "Zarr store" in run("convert", source[1], tmp_path / "b.zarr", *option, status=2).stderr
    assert "or in it" in run("convert", source[1], source[1] + "/deeper.zarr", status=2).stderr
    assert "the arrays have" in refused("convert", source[1], tmp_path / "b.zarr", "--chunk", "1x2x3x4")
    assert not (tmp_path / "b.zarr").exists()
    (tmp_path / "folder").mkdir()
    assert "is not a Zarr v3 store" in refused("convert", tmp_path / "folder", tmp_path / "b.zarr")


def test_arrays_that_cannot_be_read_are_skipped(source, tmp_path):
    node = pathlib.Path(source[1], "camera/zarr.json")
    document = json.loads(node.read_text(encoding="utf-8"))
    document["codecs"].append({"name": "numcodecs.delta", "configuration": {}})
    node.write_text(json.dumps(document), encoding="utf-8")
    done = convert(source[1], tmp_path / "b.zarr", status=3)
    assert 'skipped dataset "/camera"' in done.stderr and "numcodecs.delta" in done.stderr
    assert not (tmp_path / "b.zarr/camera").exists() and (tmp_path / "b.zarr/cube/zarr.json").exists()


def test_zarr_v2_by_hand(tmp_path):
    """Metadata and chunks as the specification of Zarr v2 has them."""
    store = tmp_path / "v2.zarr"
    (store / "a").mkdir(parents=True)
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    (store / ".zattrs").write_text('{"title": "t"}')
    meta = {
        "zarr_format": 2,
        "shape": [3, 5],
        "chunks": [2, 5],
        "dtype": ">i2",
        "compressor": None,
        "fill_value": -1,
        "order": "F",
        "filters": None,
    }
    (store / "a/.zarray").write_text(json.dumps(meta))
    (store / "a/.zattrs").write_text('{"_ARRAY_DIMENSIONS": ["y", "x"], "units": "m"}')
    first = np.arange(10, dtype=">i2").reshape(2, 5)
    (store / "a/0.0").write_bytes(first.tobytes(order="F"))
    convert(store, tmp_path / "b.zarr", "-q", "--chunk", "3x2", "--compress", "none")
    made = array(tmp_path / "b.zarr", "a")
    assert made["dimension_names"] == ["y", "x"] and made["attributes"] == {"units": "m", "_FillValue": -1}
    whole = np.full((3, 6), -1, "i2")
    whole[:2, :5] = first
    names = [c["name"] for c in made["codecs"]]
    assert names == ["transpose", "bytes"] and made["codecs"][1]["configuration"] == {"endian": "big"}
    for i in range(3):
        got = np.fromfile(tmp_path / f"b.zarr/a/c/0/{i}", ">i2").reshape(2, 3).T
        np.testing.assert_array_equal(got, whole[:, 2 * i : 2 * i + 2])
    convert(store, tmp_path / "c.zarr", "-q")  # by metadata alone
    assert (tmp_path / "c.zarr/a/c/0/0").read_bytes() == (store / "a/0.0").read_bytes()
    run("export", store, tmp_path / "b.h5", "-q")
    with h5py.File(tmp_path / "b.h5") as f:
        np.testing.assert_array_equal(f["a"][...], whole[:, :5])
        assert f.attrs["title"] == "t"
