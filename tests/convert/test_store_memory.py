# SPDX-License-Identifier: BSL-1.0
"""Zarr stores whose metadata or chunks take much memory: the process stays within --memory, or it refuses or warns before
it takes more, with the number. Each case has the peak of the process."""

import json
import os
import pathlib

import h5py
import numpy as np
import pytest

from processes import run
from test_foreign_stores import array, group

MIB = 1 << 20
BASE = 40 * MIB  # of a process that does nothing, with room for the heap


def each_verb(source, folder):
    out = pathlib.Path(folder)
    yield "convert", run("convert", "-q", "--overwrite", "--memory", "64M", source, out / "out.zarr")
    yield "plan", run("plan", "--memory", "64M", source, output=True)
    yield "export", run("export", "-q", "--overwrite", "--memory", "64M", source, out / "out.h5")
    yield "verify", run("verify", "--memory", "64M", source, source, output=True)
    yield "inspect", run("inspect", "--memory", "64M", source, output=True)


LISTS = '{"a": [' + ",".join(["[]"] * 2_000_000) + "]}"
MEMBERS = json.dumps({f"attribute{i}": i for i in range(400_000)})


@pytest.mark.parametrize("attributes", [LISTS, MEMBERS], ids=["lists", "members"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_metadata_that_would_take_more(tmp_path, attributes, zarr_format):
    source = tmp_path / "in.zarr"
    if zarr_format == 3:
        group(source, attributes)
    else:
        source.mkdir()
        (source / ".zgroup").write_text('{"zarr_format": 2}')
        (source / ".zattrs").write_text(attributes)
    for verb, done in each_verb(source, tmp_path):
        assert done.status in ((1, 3) if verb in ("inspect", "verify") else (1,)), (verb, done.status, done.errors)
        if verb != "inspect":
            assert "takes some" in done.errors and "--memory" in done.errors, (verb, done.errors)
        assert done.peak < 64 * MIB + BASE, (verb, done.peak // MIB)
    assert run("convert", "-q", source, tmp_path / "enough.zarr", "--memory", "2G").status == 0


def test_a_node_that_would_take_more_leaves_the_others(tmp_path):
    source = tmp_path / "in.zarr"
    group(source)
    group(source / "large", LISTS)
    array(source / "small", np.arange(4, dtype="i4"))
    for verb in ("convert", "export"):
        target = tmp_path / ("out.zarr" if verb == "convert" else "out.h5")
        done = run(verb, "-q", source, target, "--memory", "64M")
        assert done.status == 3 and "large" in done.errors and "takes some" in done.errors, done.errors
        assert "small" not in done.errors


def shard(folder, chunks):
    """One shard with an index of 16 bytes for each chunk, of which one exists."""
    index = [{"name": "bytes", "configuration": {"endian": "little"}}]
    codec = {"chunk_shape": [1], "codecs": [{"name": "bytes"}], "index_codecs": index}
    group(folder)
    array(
        folder / "a",
        np.zeros(chunks, "u1"),
        codecs=[{"name": "sharding_indexed", "configuration": codec}],
        chunks=False,
    )
    (folder / "a/c").mkdir()
    with open(folder / "a/c/0", "wb") as f:
        f.write(b"\1" + np.array([0, 1], "<u8").tobytes() + b"\xff" * (16 * (chunks - 1)))


def test_an_index_of_a_shard_that_would_take_more(tmp_path):
    source = tmp_path / "in.zarr"
    shard(source, 10 * MIB)  # 160 MiB
    array(source / "small", np.arange(4, dtype="i4"))
    for verb, done in each_verb(source, tmp_path):
        assert done.peak < 64 * MIB + BASE, (verb, done.peak // MIB)
        if verb == "inspect":
            continue
        assert done.status == 3 and "160.0 MiB" in done.errors and "/a" in done.errors, (verb, done.status, done.errors)


def large(folder, mib):
    """Two chunks of these MiB, of which one exists."""
    group(folder)
    array(folder / "a", np.zeros(2, "u1"), chunks=False, shape=[2 * mib * MIB])
    meta = json.loads((folder / "a/zarr.json").read_text())
    meta["chunk_grid"]["configuration"]["chunk_shape"] = [mib * MIB]
    (folder / "a/zarr.json").write_text(json.dumps(meta))
    (folder / "a/c").mkdir()
    with open(folder / "a/c/0", "wb") as f:
        f.truncate(mib * MIB)
    array(folder / "small", np.arange(4, dtype="i4"))


@pytest.mark.parametrize("verb", ["compress", "chunk", "export", "verify"])
def test_chunks_that_take_more_are_told_before(tmp_path, verb):
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    large(source, 100)
    command = {
        "compress": ["convert", "-q", source, out, "--compress", "zstd:1"],
        "chunk": ["convert", "-q", source, out, "--chunk", "1000000"],
        "export": ["export", "-q", source, tmp_path / "out.h5"],
        "verify": ["verify", source, source],
    }[verb]
    done = run(*command, "--memory", "64M")
    if command[0] == "convert":
        planned = run("plan", source, *command[4:], "--memory", "64M")
        assert [line for line in planned.errors.splitlines() if "warning" in line] == done.errors.splitlines()
    assert done.status == 0, done.errors
    warnings = [line for line in done.errors.splitlines() if "warning" in line]
    assert len(warnings) == 1 and "/a" in warnings[0] and "chunks of 100.0 MiB" in warnings[0], done.errors
    need = float(warnings[0].split("may take ")[1].split(" MiB")[0]) * MIB
    assert done.peak <= need + BASE, (done.peak // MIB, need // MIB)
    assert "warning" not in run(*command, "--memory", "512M", "--overwrite" if verb != "verify" else "--json").errors


def test_copies_need_no_memory(tmp_path):
    source = tmp_path / "in.zarr"
    large(source, 200)
    done = run("convert", "-q", source, tmp_path / "out.zarr", "--memory", "64M")
    assert (done.status, done.errors) == (0, "") and done.peak <= 64 * MIB


@pytest.mark.parametrize("option", [["--compress", "zstd:1"], ["--chunk", "1000"]])
@pytest.mark.parametrize("going", [[], ["--keep-going"]])
def test_a_chunk_of_more_than_1_gib_is_named_and_leaves_the_others(tmp_path, option, going):
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    large(source, 1025)
    planned = run("plan", source, *option, output=True)
    assert planned.status == 3 and "skipped" in planned.errors, planned.errors
    done = run("convert", "-q", source, out, *option, *going)
    assert done.status == 3 and '"/a"' in done.errors and "1 GiB" in done.errors, done.errors
    assert (out / "small/c/0").exists() and not (out / "a").exists()


def test_many_nodes_are_told_before(tmp_path):
    source = tmp_path / "in.zarr"
    group(source)
    for i in range(2500):
        array(source / f"a{i}", np.arange(1, dtype="u1"), chunks=False)
    for command in (["convert", "-q", source, tmp_path / "out.zarr"], ["verify", source, source], ["plan", source]):
        done = run(*command, "--memory", "16M")
        assert done.status == 0 and "2501 nodes" in done.errors and "19.5 MiB" in done.errors, done.errors
        assert run(*command, *(["--overwrite"] if command[0] == "convert" else []), "--memory", "64M").errors == ""
    assert os.path.exists(tmp_path / "out.zarr/a0/zarr.json")


def test_a_store_that_grows(tmp_path):
    """Its metadata are read as a whole: too large ones are refused, and many are told before."""
    for name, rows in ("a.h5", 10), ("b.h5", 20):
        with h5py.File(tmp_path / name, "w") as f:
            f["x"] = np.arange(rows, rows + 10)
    store = tmp_path / "out.zarr"
    assert run("convert", "-q", "--concat", "/x:0", tmp_path / "a.h5", store).status == 0
    for i in range(2500):
        group(store / f"g{i}")
    grow = ["convert", "-q", "--append", "/x:0", tmp_path / "b.h5", store]
    done = run(*grow, "--memory", "16M")
    assert done.status == 0 and "2502 nodes" in done.errors, done.errors
    group(store / "large", LISTS)
    done = run(*grow, "--memory", "64M")
    assert done.status == 1 and "large" in done.errors and "takes some" in done.errors, done.errors
    assert done.peak < 64 * MIB + BASE, done.peak // MIB
