# SPDX-License-Identifier: BSL-1.0
"""`plan` estimates the size of the store from samples, and the time from a second of work; it says if the store does not fit.

The corpus: every 40th file, or as ZARRBITS_CORPUS_EVERY says; ZARRBITS_CORPUS says where the files are."""

import json
import os
import pathlib
import shutil

import h5py
import numpy as np
import pytest

from harness import convert, execute, run

CORPUS = os.environ.get("ZARRBITS_CORPUS")


def planned(source, *options, **how):
    return json.loads(run("plan", "--json", source, *options, **how).stdout)


def size_of(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file())


def make(path, sparse=True):
    noise = np.random.default_rng(7)
    steps = np.cumsum(noise.integers(-3, 4, (2000, 500)), axis=0).astype("i4")
    with h5py.File(path, "w") as f:
        f.attrs["history"] = "x" * 3000
        f.create_dataset("shuffled", data=steps, chunks=(50, 500), compression="gzip", shuffle=True)
        f.create_dataset("lzf", data=steps[:1000], chunks=(20, 100), compression="lzf")
        if sparse:
            d = f.create_dataset("sparse", (4000, 4000), "f4", chunks=(40, 40), compression="lzf")
            d[80:120, 80:160] = noise.random((40, 80))
        f["plain"] = steps[:300]
        f["g/text"] = np.array([f"number {i}" for i in range(3000)], dtype=h5py.string_dtype())
        f["g/pairs"] = np.zeros(5000, dtype=[("a", "f8"), ("b", "i4")])
    return str(path)


@pytest.mark.parametrize(
    "options",
    [[], ["--compress", "zstd:3"], ["--shard", "1M"], ["--chunk", "100x100", "--compress", "gzip:1"], ["--checksum", "crc32c"]],
)
def test_the_estimate_is_near_the_size(options, tmp_path):
    source, store = make(tmp_path / "in.h5", sparse="--chunk" not in options), tmp_path / "out.zarr"
    plan = planned(source, *options)
    convert(source, store, "-q", *options)
    assert 0.75 <= plan["estimated_bytes"] / size_of(store) <= 1.25
    assert plan["estimated_bytes"] > sum(d["estimated_bytes"] for d in plan["datasets"]) + 3000  # metadata count
    for d in plan["datasets"]:
        assert d["estimated_bytes"] <= d["store_bytes"], d
        written = size_of(store / d["path"].lstrip("/")) - (store / d["path"].lstrip("/") / "zarr.json").stat().st_size
        if written > 10_000:
            assert 0.75 <= d["estimated_bytes"] / written <= 1.25, d


def test_there_is_no_estimate_without_a_sample(tmp_path):
    source = make(tmp_path / "in.h5")
    sparse = {d["path"]: d for d in planned(source, "--chunk", "100x100")["datasets"]}["/sparse"]
    assert "estimated_bytes" not in sparse and sparse["store_bytes"] > 0
    assert "estimated_bytes" not in planned(source, "--virtual")
    assert "about" in run("plan", source).stdout.splitlines()[0]


def test_time_is_estimated_on_demand(tmp_path):
    source = make(tmp_path / "in.h5")
    assert "seconds" not in planned(source)
    assert planned(source, "--time")["seconds"] > 0
    assert "about " in run("plan", "--time", source).stdout.splitlines()[-1]
    convert(source, tmp_path / "in.zarr", "-q")
    done = run("plan", "--time", tmp_path / "in.zarr")
    assert "--time has no result" in done.stderr


def test_free_space_is_that_of_the_target(tmp_path):
    source = make(tmp_path / "in.h5")
    assert "free_bytes" not in planned(source)
    free = planned(source, tmp_path / "not/yet/there/out.zarr")["free_bytes"]
    assert abs(free - shutil.disk_usage(tmp_path).free) < 1 << 30
    assert not (tmp_path / "not").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_note_says_that_the_store_does_not_fit(tmp_path):
    source = make(tmp_path / "in.h5")
    place = tmp_path / "small"
    place.mkdir()
    if execute("mount", "-t", "tmpfs", "-o", "size=64k", "none", place, status=None).returncode != 0:
        pytest.skip("no file system can be mounted")
    try:
        done = run("plan", source, place / "out.zarr")
        assert "note: the store needs about " in done.stderr and "free; use another place" in done.stderr, done.stderr
        assert done.stderr.count("note:") == 1
        assert "note:" not in run("plan", source, tmp_path / "out.zarr").stderr
    finally:
        execute("umount", place)


@pytest.mark.parametrize(
    "options", [[], ["--compress", "gzip:1"], ["--chunk", "100x100", "--compress", "zstd:3"], ["--shard", "1M"]]
)
def test_the_estimate_of_a_zarr_store(options, tmp_path):
    convert(make(tmp_path / "in.h5", sparse=False), tmp_path / "in.zarr", "-q")
    plan = planned(tmp_path / "in.zarr", *options)
    convert(tmp_path / "in.zarr", tmp_path / "out.zarr", "-q", *options)
    assert 0.75 <= plan["estimated_bytes"] / size_of(tmp_path / "out.zarr") <= 1.25


@pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
@pytest.mark.parametrize("options", [[], ["--compress", "zstd:3"]])
def test_the_estimate_is_near_the_size_for_most_files(options, tmp_path):
    files = sorted(p for p in pathlib.Path(CORPUS).rglob("*") if p.is_file() and h5py.is_hdf5(p))
    near = count = 0
    for source in files[:: int(os.environ.get("ZARRBITS_CORPUS_EVERY", "40"))]:
        store = tmp_path / "out.zarr"
        done = run("convert", source, store, "-q", "--keep-going", "--overwrite", *options, status=None)
        if done.returncode not in (0, 3):
            continue
        estimate = planned(source, "--keep-going", *options, status=(0, 3)).get("estimated_bytes", 0)
        count += 1
        near += 0.75 <= estimate / size_of(store) <= 1.25
    assert count > 0 and near >= 0.75 * count, f"{near} of {count}"
