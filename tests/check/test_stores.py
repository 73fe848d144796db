# SPDX-License-Identifier: BSL-1.0
"""`zarrbits check` of stores: what each rule finds, and that a store without damage has no finding."""

import json
import os
import pathlib
import shutil
import struct
import zipfile

import h5py
import numpy as np
import pytest

from harness import convert, refused, run
from random_files import materialise
from store import crc32c


def check(name, *options, status=0, **how):
    """The report, with its exit status in it."""
    done = run("check", "--json", "-q", name, *options, status=status, **how)
    report = json.loads(done.stdout)
    assert report["exit_status"] == done.returncode and report["sound"] == (done.returncode == 0), report
    return report


def findings(report, rule=None):
    return [(f["severity"], f["rule"], f["path"], f.get("key", "")) for f in report["findings"] if rule in (None, f["rule"])]


def counts(report):
    return {a["path"]: (a["chunks"], a["checked"], a["missing"], a["damaged"]) for a in report["arrays"]}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "in.h5"
    with h5py.File(path, "w") as f:
        x = f.create_dataset("g/x", data=np.arange(8.0))
        x.make_scale("x")
        v = f.create_dataset("g/v", data=np.arange(80, dtype="i4").reshape(10, 8), chunks=(5, 4), compression="gzip")
        v.dims[1].attach_scale(x)
        f.create_dataset("sparse", (10, 8), "f4", chunks=(5, 4))[0, 0] = 1
        f["texts"] = np.array(["a", "bc", "ü"], dtype=h5py.string_dtype())
        f["scalar"] = 7
        f["g"].attrs["title"] = "a title"
        f["deep/er/z"] = np.zeros(3)
    return path


@pytest.fixture
def store(tmp_path, source):
    convert("-q", source, tmp_path / "s.zarr")
    return tmp_path / "s.zarr"


def edit(path, change):
    document = json.loads(pathlib.Path(path).read_text())
    change(document)
    pathlib.Path(path).write_text(json.dumps(document))


@pytest.mark.parametrize(
    "name, options",
    [
        ("s.zarr", []),
        ("s.zarr", ["--compress", "none", "--checksum", "crc32c"]),
        ("s.zarr", ["--shard", "10,8"]),
        ("s.zarr", ["--no-consolidate"]),
        ("s.zarr", ["--compress", "blosc:zstd:5"]),
        ("s.zip", []),
        ("s.zip", ["--shard", "64M"]),
        ("refs.json", ["--virtual"]),
        ("refs.parquet", ["--virtual"]),
        ("refs.json", ["--virtual", "--zarr-format", "2"]),
    ],
)
def test_a_converted_store_has_no_finding(tmp_path, source, name, options):
    shutil.copy(source, tmp_path / "in.h5")
    if options[:2] == ["--shard", "10,8"]:
        options = [*options, "--include", "/g/v", "--include", "/sparse"]
    convert("-q", tmp_path / "in.h5", tmp_path / name, *options)
    report = check(tmp_path / name)
    assert findings(report) == [] and report["notices"] == 0, report
    assert counts(report)["/g/v"] == (4, 4, 0, 0) and counts(report)["/sparse"] == (4, 1, 3, 0), report
    assert report["format"] == "Zarr v3"
    assert findings(check(tmp_path / name, "--metadata")) == []


def test_missing_chunks_are_counted_and_a_problem_only_on_request(store):
    os.remove(store / "g/v/c/1/0")
    assert counts(check(store))["/g/v"] == (4, 3, 1, 0)
    report = check(store, "--no-missing", status=3)
    assert findings(report) == [("problem", "missing", "/g/v", ""), ("problem", "missing", "/sparse", "")], report


def test_a_damaged_chunk_is_named_and_the_others_are_read(store):
    for key in ("c/0/1", "c/1/1"):
        chunk = store / "g/v" / key
        chunk.write_bytes(chunk.read_bytes()[:-3])
    report = check(store, status=3)
    assert findings(report) == [("problem", "chunk", "/g/v", "c/0/1"), ("problem", "chunk", "/g/v", "c/1/1")], report
    assert counts(report)["/g/v"] == (4, 2, 0, 2) and report["problems"] == 2
    assert findings(check(store, "--metadata")) == []
    out = run("check", store, status=3).stdout
    assert "problem: /g/v/c/0/1: " in out and out.splitlines()[-1].startswith("FAILED: "), out


def test_only_the_first_three_damaged_chunks_are_printed(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("d", data=np.arange(300.0), chunks=(1,), compression="gzip")
    convert("-q", tmp_path / "in.h5", tmp_path / "s.zarr")
    for i in range(250):
        (tmp_path / "s.zarr/d/c" / str(i)).write_bytes(b"?")
    report = check(tmp_path / "s.zarr", status=3)
    assert counts(report)["/d"] == (300, 50, 0, 250) and report["problems"] == 250
    assert [f["key"] for f in report["findings"]] == [f"c/{i}" for i in range(100)]
    out = run("check", tmp_path / "s.zarr", "-q", status=3).stdout.splitlines()
    assert [line.split(":")[1] for line in out] == [" /d/c/0", " /d/c/1", " /d/c/2"], out


def test_keys_that_belong_to_nothing(store):
    for key in (
        "README",
        "g/v/c/7/0",
        "g/v/c/00/0",
        "g/v/notes.txt",
        "g/v/c/0/0.bak",
        "loose/a/b",
        "deep/er/z/c/0.bak",
        "g/v/a/b/c/d/e",
    ):
        (store / key).parent.mkdir(parents=True, exist_ok=True)
        (store / key).write_bytes(b"x")
    found = findings(check(store, status=3))
    assert sorted(found) == [
        ("problem", "grid", "/g/v", "c/7/0"),
        ("problem", "key", "/", "README"),
        ("problem", "key", "/", "loose/a/b"),
        ("problem", "key", "/deep/er/z", "c/0.bak"),
        ("problem", "key", "/g/v", "a/b/c/d"),
        ("problem", "key", "/g/v", "c/0/0.bak"),
        ("problem", "key", "/g/v", "c/00/0"),
        ("problem", "key", "/g/v", "notes.txt"),
    ], found


def test_a_node_without_metadata(tmp_path, source):
    convert("-q", "--no-consolidate", source, tmp_path / "s.zarr")
    os.remove(tmp_path / "s.zarr/deep/zarr.json")
    assert findings(check(tmp_path / "s.zarr", status=3)) == [("problem", "metadata", "/deep", "")]
    os.remove(tmp_path / "s.zarr/scalar/zarr.json")
    assert ("problem", "key", "/", "scalar/c") in findings(check(tmp_path / "s.zarr", status=3))


def test_metadata_that_cannot_be_parsed(store):
    (store / "g/v/zarr.json").write_text("{")
    (store / "deep/zarr.json").write_text('{"zarr_format": 3, "node_type": "grape"}')
    found = findings(check(store, status=3))
    assert ("problem", "metadata", "/g/v", "") in found and ("problem", "metadata", "/deep", "") in found
    assert ("problem", "consolidated", "/", "g/v") in found, found


def test_consolidated_metadata_that_differ(store):
    edit(store / "g/zarr.json", lambda d: d["attributes"].update(title="another"))
    assert findings(check(store, status=3)) == [("problem", "consolidated", "/", "g")]


def test_a_store_of_zarr_v2(tmp_path, source):
    convert("-q", "--virtual", "--zarr-format", "2", source, tmp_path / "refs.json")
    store = tmp_path / "s.zarr"
    materialise(tmp_path / "refs.json", store)
    report = check(store)
    assert findings(report) == [] and report["format"] == "Zarr v2" and counts(report)["/g/v"] == (4, 4, 0, 0), report
    edit(store / "g/.zattrs", lambda d: d.update(title="another"))
    (store / "g/v/1.1").write_bytes(b"?")
    (store / "g/v/9.9").write_bytes(b"?")
    assert findings(check(store, status=3)) == [
        ("problem", "consolidated", "/", "g"),
        ("problem", "grid", "/g/v", "9.9"),
        ("problem", "chunk", "/g/v", "1.1"),
    ]


def test_dimensions(tmp_path, source):
    convert("-q", "--no-consolidate", source, tmp_path / "s.zarr")
    metadata = tmp_path / "s.zarr/g/v/zarr.json"
    edit(metadata, lambda d: d.update(dimension_names=["x", "x"]))
    report = check(tmp_path / "s.zarr")
    assert findings(report, "dimensions") == 2 * [("notice", "dimensions", "/g/x", "")] or report["notices"] >= 2, report
    edit(metadata, lambda d: d.update(dimension_names=["x"]))
    assert findings(check(tmp_path / "s.zarr", status=3)) == [("problem", "dimensions", "/g/v", "")]
    edit(metadata, lambda d: d.update(dimension_names=["y", 5]))
    assert findings(check(tmp_path / "s.zarr", status=3)) == [("problem", "dimensions", "/g/v", "")]


def test_what_killed_runs_leave(store):
    (store / ".zarrbits-append").mkdir()
    (store / "g/v/c/.zarrbits-17.tmp").write_bytes(b"x")
    (store / ".zarrbits-18.tmp").write_bytes(b"x")
    assert sorted(findings(check(store, status=3))) == [
        ("problem", "leftover", "/", ".zarrbits-18.tmp"),
        ("problem", "leftover", "/", ".zarrbits-append"),
        ("problem", "leftover", "/g/v", "c/.zarrbits-17.tmp"),
    ]


@pytest.mark.parametrize("name", ["s.zip", "refs.json", "refs.parquet", "in.h5"])
def test_what_a_killed_run_leaves_beside_a_file_is_a_notice(tmp_path, source, name):
    shutil.copy(source, tmp_path / "in.h5")
    if name != "in.h5":
        convert("-q", tmp_path / "in.h5", tmp_path / name, *(["--virtual"] if name.startswith("refs") else []))
    (tmp_path / (name + ".zarrbits-unfinished")).write_bytes(b"")
    assert findings(check(tmp_path / name)) == [("notice", "leftover", "/", "")]


def test_an_unfinished_store(tmp_path, source):
    convert("-q", "--partition", "0/2", source, tmp_path / "s.zarr")
    assert findings(check(tmp_path / "s.zarr", status=3)) == [("problem", "leftover", "/", ".zarrbits-unfinished")]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"zarr_format": 3}'])
def test_a_group_of_zarr_v2_that_does_not_say_so(tmp_path, source, text):
    convert("-q", "--virtual", "--zarr-format", "2", source, tmp_path / "refs.json")
    materialise(tmp_path / "refs.json", tmp_path / "s.zarr")
    (tmp_path / "s.zarr/g/.zgroup").write_text(text)
    assert ("problem", "metadata", "/g", "") in findings(check(tmp_path / "s.zarr", status=3))


def test_an_order_that_zarr_v2_does_not_have(tmp_path, source):
    convert("-q", "--virtual", "--zarr-format", "2", source, tmp_path / "refs.json")
    materialise(tmp_path / "refs.json", tmp_path / "s.zarr")
    edit(tmp_path / "s.zarr/g/x/.zarray", lambda d: d.update(order={}))
    assert ("problem", "metadata", "/g/x", "") in findings(check(tmp_path / "s.zarr", status=3))


def test_a_member_of_two_names(tmp_path, source):
    """Python's zipfile does not read it, and neither does zarr-python."""
    convert("-q", source, tmp_path / "s.zip")
    data = (tmp_path / "s.zip").read_bytes()
    (tmp_path / "s.zip").write_bytes(data.replace(b"g/v/c/1/1", b"g/v/c/1/2", 1))
    report = check(tmp_path / "s.zip", status=3)
    assert findings(report) == [("problem", "chunk", "/g/v", "c/1/1")], report
    with zipfile.ZipFile(tmp_path / "s.zip") as z, pytest.raises(zipfile.BadZipFile):
        z.read("g/v/c/1/1")


def shard_with(tmp_path, change):
    """A store of one shard of four chunks; `change` gets its bytes without the index, and the index as a list of numbers."""
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("d", data=np.arange(8, dtype="i4"), chunks=(2,))
    convert("-q", "--shard", "8,", "--compress", "none", tmp_path / "in.h5", tmp_path / "s.zarr")
    path = tmp_path / "s.zarr/d/c/0"
    raw = path.read_bytes()
    index = list(struct.unpack("<8Q", raw[-68:-4]))
    data = change(bytearray(raw[:-68]), index)
    packed = struct.pack("<8Q", *index)
    path.write_bytes(bytes(data) + packed + crc32c(packed))
    return tmp_path / "s.zarr"


def test_the_index_of_a_shard(tmp_path):
    def overlap(data, index):
        index[2] = index[0] + 4
        return data

    report = check(shard_with(tmp_path, overlap), status=3)
    assert [f["reason"].startswith("its index says that bytes") for f in report["findings"]] == [True], report

    shutil.rmtree(tmp_path / "s.zarr")

    def outside(data, index):
        index[6] = 10_000
        return data

    report = check(shard_with(tmp_path, outside), status=3)
    assert counts(report)["/d"] == (4, 3, 0, 1) and "chunk 3 of the array" in report["findings"][0]["reason"], report

    shutil.rmtree(tmp_path / "s.zarr")

    def absent(data, index):
        index[4] = index[5] = 2**64 - 1
        return data

    assert counts(check(shard_with(tmp_path, absent)))["/d"] == (4, 3, 1, 0)
    shard = tmp_path / "s.zarr/d/c/0"
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    report = check(tmp_path / "s.zarr", status=3)
    assert counts(report)["/d"] == (4, 0, 0, 4) and len(report["findings"]) == 1, report


def test_the_source_of_references(tmp_path, source):
    shutil.copy(source, tmp_path / "in.h5")
    convert("-q", "--virtual", tmp_path / "in.h5", tmp_path / "refs.json")
    assert check(tmp_path / "refs.json")["problems"] == 0
    with open(tmp_path / "in.h5", "ab") as f:
        f.write(b"\0")
    report = check(tmp_path / "refs.json", status=3)
    assert "has changed since the references were made" in report["findings"][0]["reason"], report
    os.remove(tmp_path / "in.h5")
    report = check(tmp_path / "refs.json", status=3)
    assert all("cannot be opened" in f["reason"] for f in report["findings"]), report
    assert findings(check(tmp_path / "refs.json", "--metadata")) == []


def test_references_that_may_not_be_followed_are_unchecked(tmp_path, source):
    """Anybody may have made them, and they may lead to any file."""
    convert("-q", "--virtual", source, tmp_path / "refs.json")
    report = check(tmp_path / "refs.json", status=3)
    assert {f[:2] for f in findings(report)} == {("unchecked", "chunk")} and report["problems"] == 0, report
    assert "--external" in run("check", tmp_path / "refs.json", status=3).stdout
    assert findings(check(tmp_path / "refs.json", "--external", source.parent)) == []


def test_a_sample_has_a_part_of_each_array_and_is_the_same_for_the_same_seed(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("many", data=np.arange(1000), chunks=(1,))
        f.create_dataset("few", data=np.arange(3), chunks=(1,))
    convert("-q", tmp_path / "in.h5", tmp_path / "s.zarr")
    for name in ("s.zarr", "in.h5"):
        report = check(tmp_path / name, "--sample", "1%")
        assert [(a["path"], a["checked"], a["missing"]) for a in report["arrays"]] == [("/few", 1, 0), ("/many", 10, 0)], report
    for i in range(500):
        (tmp_path / "s.zarr/many/c" / str(i)).write_bytes(b"?")
    seeds = [
        [f["key"] for f in check(tmp_path / "s.zarr", "--sample", "0.02", "--seed", s, status=3)["findings"]] for s in (7, 7, 8)
    ]
    assert seeds[0] == seeds[1] != seeds[2] and 1 < len(seeds[0]) < 20, seeds


def test_a_part_of_a_store(store):
    report = check(f"{store}:/g")
    assert sorted(counts(report)) == ["/g/v", "/g/x"], report


def test_wrong_usage(tmp_path, store):
    assert "--sample is more than 0%" in refused("check", store, "--sample", "0%", status=2)
    assert "--seed requires --sample" in refused("check", store, "--seed", "1", status=2)
    assert "--metadata reads no chunks" in refused("check", store, "--metadata", "--sample", "1%", status=2)
    assert "No such file" in refused("check", tmp_path / "absent.zarr")


def test_several_names(tmp_path, store, source):
    (store / "README").write_bytes(b"x")
    reports = json.loads(run("check", "--json", "-q", source, store, status=3).stdout)
    assert [r["exit_status"] for r in reports] == [0, 3] and [r["format"] for r in reports] == ["HDF5", "Zarr v3"]
    done = run("check", "-q", tmp_path / "absent", source, status=1)
    assert "absent" in done.stderr


def test_threads_and_memory_find_the_same(store):
    (store / "g/v/c/0/1").write_bytes(b"?")
    reports = [check(store, "--threads", n, "--memory", m, status=3) for n, m in ((1, "16M"), (8, "1G"))]
    for report in reports:
        del report["seconds"]
    assert reports[0] == reports[1]


def test_partitions_read_each_chunk_once(source, tmp_path):
    for options in ([], ["--shard", "1K"]):
        convert("-q", source, tmp_path / "s.zarr", "--overwrite", *options)
        (tmp_path / "s.zarr/stray").write_text("")
        for name in (tmp_path / "s.zarr", source):
            status = 3 if name != source else 0
            whole = check(name, status=status)
            parts = [check(name, "--partition", f"{i}/3", status=status if i == 0 else 0) for i in range(3)]
            assert [p["partition"] for p in parts] == [{"index": i, "count": 3} for i in range(3)] and "partition" not in whole
            assert findings(parts[0]) == findings(whole) and not parts[1]["findings"] and parts[2]["problems"] == 0
            for path, (chunks, checked, missing, _) in counts(whole).items():
                own = [counts(p)[path] for p in parts]
                assert {n for n, *_ in own} == {chunks} and sum(n for _, n, _, _ in own) == checked
                assert sum(n for _, _, n, _ in own) == missing
            assert sum(sum(n for _, n, _, _ in counts(p).values()) > 0 for p in parts) > 1


def test_a_damaged_chunk_is_found_by_the_partition_that_reads_it(store):
    chunks = sorted((store / "g/v/c").rglob("*"))
    damaged = [c for c in chunks if c.is_file()]
    for chunk in damaged:
        chunk.write_bytes(b"oops")
    parts = [check(store, "--partition", f"{i}/3", status=None) for i in range(3)]
    keys = [key for p in parts for *_, key in findings(p, "chunk")]
    assert sorted(keys) == sorted(str(c.relative_to(store / "g/v")) for c in damaged)
    assert {p["exit_status"] for p in parts} == {0, 3}
    assert "partition 1/3" in run("check", "--partition", "1/3", store, status=None).stdout
    assert "`" not in refused("check", "--partition", "0/2", "--metadata", store, status=(1, 2))
