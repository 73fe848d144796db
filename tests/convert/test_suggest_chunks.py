# SPDX-License-Identifier: BSL-1.0
"""zarrbits suggest --chunks: the line does in convert what it says, and the chunks are those that the access wants.

The corpus: every ninth file, or as ZARRBITS_CORPUS_EVERY says; ZARRBITS_CORPUS says where the files are."""

import json
import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest

from harness import COMMAND, convert, refused, run

MIB = 1 << 20
CORPUS = os.environ.get("ZARRBITS_CORPUS")


def suggested(source, *options):
    return json.loads(run("suggest", "--chunks", "--json", *options, source).stdout)


def arrays(document):
    return {d["path"]: d for d in document["datasets"]}


def made_grid(store, path):
    """(chunk, shard, element bytes) of an array that convert wrote."""
    meta = json.loads(pathlib.Path(store, path.lstrip("/"), "zarr.json").read_text())
    outer = meta["chunk_grid"]["configuration"]["chunk_shape"]
    size = np.dtype(meta["data_type"]).itemsize
    inner = [c["configuration"]["chunk_shape"] for c in meta["codecs"] if c["name"] == "sharding_indexed"]
    return (inner[0], outer, size) if inner else (outer, [], size)


def number_of_objects(store, path):
    return sum(len(names) for _, _, names in os.walk(pathlib.Path(store, path.lstrip("/"), "c")))


def check_store(document, store, every_chunk_is_written=False):
    for d in document["datasets"]:
        chunk, shard, size = made_grid(store, d["path"])
        counts = [-(-n // c) for n, c in zip(d["shape"], shard or chunk)]
        assert (d["chunk"], d["shard"]) == (chunk, shard), d
        assert d["chunk_bytes"] == np.prod(chunk, dtype=object) * size, d
        assert d["objects"] == np.prod(counts, dtype=object), d
        written = number_of_objects(store, d["path"])
        assert written == d["objects"] if every_chunk_is_written else written <= d["objects"], d


def climate(path, name="time", shape=(1000, 60, 120), chunks=(1, 60, 120), maxshape=None, **attributes):
    with h5py.File(path, "w") as f:
        values = np.random.default_rng(3).integers(1, 9, shape, dtype="i4")
        f.create_dataset("t2m", data=values, chunks=chunks, maxshape=maxshape, compression="gzip", compression_opts=1)
        for n, dimension in zip(shape, (name, "lat", "lon")):
            f[dimension] = np.arange(1, n + 1, dtype="f8")
            f[dimension].make_scale(dimension)
        f[name].attrs.update(attributes)
        for d, dimension in enumerate((name, "lat", "lon")):
            f["t2m"].dims[d].attach_scale(f[dimension])
    return path


def access_costs(d):
    counts = [-(-n // c) for n, c in zip(d["shape"], d["chunk"])]
    return counts[0], counts[1] * counts[2]


def test_each_access_reads_few_chunks(tmp_path):
    source = climate(tmp_path / "in.nc")
    costs = {}
    for access in ("time-series", "maps", "both"):
        document = suggested(source, "--for", access)
        t2m = arrays(document)["/t2m"]
        assert document["for"] == access and t2m["time_axis"] == 0 and MIB <= t2m["chunk_bytes"] <= 16 * MIB
        costs[access] = access_costs(t2m)
        store = tmp_path / f"{access}.zarr"
        convert(source, store, *document["convert"])
        check_store(document, store, every_chunk_is_written=True)
    assert costs["time-series"][0] == 1 and costs["maps"][1] == 1
    assert max(costs["both"]) <= 4 and suggested(source)["for"] == "both"
    # one line, which a shell takes
    line = next(s for s in run("suggest", "--chunks", source).stdout.splitlines() if s.startswith("zarrbits convert "))
    subprocess.run(
        line.replace("zarrbits", COMMAND, 1).replace("out.zarr", str(tmp_path / "pasted.zarr")), shell=True, check=True
    )
    check_store(suggested(source), tmp_path / "pasted.zarr", every_chunk_is_written=True)


def test_chunks_stay_that_fit(tmp_path):
    source = climate(tmp_path / "in.nc", chunks=(100, 60, 120))
    document = suggested(source, "--for", "maps")
    t2m = arrays(document)["/t2m"]
    assert t2m["option"] == "" and t2m["chunk"] == [100, 60, 120] and "fit" in t2m["reason"]
    # the same chunks are few for a map, and many for a series
    assert arrays(suggested(climate(tmp_path / "b.nc", shape=(6000, 60, 120), chunks=(50, 60, 120)), "--for", "time-series"))[
        "/t2m"
    ]["option"]


@pytest.mark.parametrize("attributes", [{"axis": "T"}, {"units": "days since 1970-01-01"}])
def test_time_is_known_by_its_attributes(tmp_path, attributes):
    assert arrays(suggested(climate(tmp_path / "a.nc", "step", **attributes)))["/t2m"]["time_axis"] == 0
    assert arrays(suggested(climate(tmp_path / "b.nc", "step")))["/t2m"]["time_axis"] is None


def test_time_is_the_only_unlimited_dimension_if_nothing_else_says_it(tmp_path):
    growing = suggested(climate(tmp_path / "a.nc", "step", maxshape=(None, 60, 120)), "--for", "time-series")
    assert arrays(growing)["/t2m"]["time_axis"] == 0 and access_costs(arrays(growing)["/t2m"])[0] == 1
    assert arrays(suggested(climate(tmp_path / "b.nc", "step", maxshape=(1000, 60, None))))["/t2m"]["time_axis"] == 2
    # a name or an attribute counts more, and of several unlimited dimensions none is known to be time
    assert arrays(suggested(climate(tmp_path / "c.nc", "time", maxshape=(1000, 60, None))))["/t2m"]["time_axis"] == 0
    assert arrays(suggested(climate(tmp_path / "d.nc", "step", maxshape=(None, 60, None))))["/t2m"]["time_axis"] is None


def test_lengths_divide_those_of_the_source(tmp_path):
    source = climate(tmp_path / "in.nc", shape=(1200, 90, 90), chunks=(12, 30, 30))
    for access in ("time-series", "maps", "both"):
        for n, length, old in zip((1200, 90, 90), arrays(suggested(source, "--for", access))["/t2m"]["chunk"], (12, 30, 30)):
            assert length == n or length % old == 0 or old % length == 0


def test_small_arrays_become_one_chunk(tmp_path):
    source = climate(tmp_path / "in.nc", shape=(10, 6, 12), chunks=(1, 6, 12))
    document = suggested(source)
    assert document["convert"] == ["--chunk", "/t2m=time:-1,lat:-1,lon:-1"]
    assert {d["chunks"] for d in document["datasets"]} == {1}
    convert(source, tmp_path / "out.zarr", *document["convert"])
    check_store(document, tmp_path / "out.zarr", every_chunk_is_written=True)


def test_what_cannot_be_said_by_names_stays(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("x", data=np.ones((100, 100)), chunks=(10, 10))
        f["text"], f["one"] = ["a", "b"], 5
    document = suggested(tmp_path / "in.h5")
    assert document["convert"] == [] and arrays(document)["/x"]["chunk"] == [10, 10]
    assert "--include /x --chunk 100x100" in arrays(document)["/x"]["reason"]
    assert [o["path"] for o in document["left_out"]] == ["/one", "/text"]
    convert(tmp_path / "in.h5", tmp_path / "out.zarr", "--include", "/x", "--chunk", "100x100")
    assert made_grid(tmp_path / "out.zarr", "/x")[0] == [100, 100]


def test_many_chunks_go_into_shards_and_a_store_is_a_source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("x", data=np.ones((1500, 1100), "f4"), chunks=(1, 1100))
        f.create_dataset("y", data=np.ones((1500, 1100), "f4"), chunks=(1, 1100))
    document = suggested(tmp_path / "in.h5")
    assert document["convert"] == ["--shard", "64M"]
    convert(tmp_path / "in.h5", tmp_path / "out.zarr", *document["convert"])
    check_store(document, tmp_path / "out.zarr", every_chunk_is_written=True)
    climate(tmp_path / "in.nc", units="days since 1970-01-01")
    convert(tmp_path / "in.nc", tmp_path / "a.zarr")
    document = suggested(tmp_path / "a.zarr", "--for", "time-series")
    assert arrays(document)["/t2m"]["option"]
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr", *document["convert"])
    check_store(document, tmp_path / "b.zarr", every_chunk_is_written=True)


def test_options_that_do_not_go_together(tmp_path):
    source = climate(tmp_path / "in.nc")
    assert "time-series, maps or both" in refused("suggest", "--chunks", "--for", "x", source, status=2)
    assert "empty" in refused("suggest", "--chunks", "--for", "", source, status=2)
    assert "add --chunks" in refused("suggest", "--for", "maps", source, status=2)
    assert "remove it" in refused("suggest", "--chunks", "--external", "all", source, status=2)


def corpus_files():
    every = int(os.environ.get("ZARRBITS_CORPUS_EVERY", "9"))
    files = sorted(p for p in pathlib.Path(CORPUS).rglob("*") if p.is_file() and p.stat().st_size < 30 * MIB) if CORPUS else []
    return [p for p in files[::every] if h5py.is_hdf5(p)]


@pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
def test_convert_and_plan_take_what_is_printed(tmp_path):
    compared = 0
    for i, source in enumerate(corpus_files()):
        printed = run("suggest", "--chunks", "--json", source, status=None)
        if printed.returncode == 1:  # damaged
            assert run("inspect", source, status=None).returncode == 1, source
            continue
        document, store = json.loads(printed.stdout), tmp_path / f"{i}.zarr"
        options = ("--allow-lossy", *document["convert"])
        run("plan", *options, source)
        if run("convert", "-q", *options, source, store, status=None).returncode == 0:
            check_store({"datasets": [d for d in document["datasets"] if pathlib.Path(store, d["path"][1:]).is_dir()]}, store)
            compared += 1
    assert compared > 0
