# SPDX-License-Identifier: BSL-1.0
"""What plan says of a dataset's bytes is never exceeded, and is exact for strings, references and sequences."""

import json
import os
import pathlib

import h5py
import numpy as np
import pytest

from harness import run

CORPUS = os.environ.get("ZARRBITS_CORPUS")


def sizes(source, target, *options):
    """By dataset: what plan says, and what convert wrote."""
    planned = json.loads(run("plan", source, "--json", "--allow-lossy", *options, status=0).stdout)
    done = run("convert", source, target, "--json", "-q", "--allow-lossy", "--overwrite", *options, status=None)
    if done.returncode != 0:
        return {}
    written = {
        o["path"]: o["store_bytes"] for o in json.loads(done.stdout)["objects"] if o["kind"] == "dataset" and "store_bytes" in o
    }
    return {
        d["path"]: (d["store_bytes"], written[d["path"]])
        for d in planned["datasets"]
        if d["path"] in written and d["outcome"] != "skipped"
    }


def test_what_has_no_size_in_metadata_is_counted(tmp_path):
    noise = np.random.default_rng(0).bytes(5000)
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("texts", data=[f"text {i}" * i for i in range(1000)], dtype=h5py.string_dtype())
        f.create_dataset("chunked", data=["ä" * 50] * 100, dtype=h5py.string_dtype(), chunks=(64,), compression="gzip")
        f.create_dataset("references", data=[f["texts"].ref] * 10, dtype=h5py.ref_dtype)
        rows = f.create_dataset("rows", (50,), h5py.vlen_dtype("i4"))
        for i in range(50):
            rows[i] = np.arange(i)
        f.create_dataset("members", data=np.array([("a", 1), ("bcd", 2)], [("t", h5py.string_dtype()), ("n", "i4")]))
        f.create_dataset("fixed", data=np.array([b"a"] * 10000, "S1"))
        f.create_dataset("padded", data=np.frombuffer(noise, "u1"), chunks=(4096,), compression="gzip")
        f.create_dataset("small", data=np.frombuffer(noise, "u1")[:64], chunks=(4,), compression="gzip", fletcher32=True)
        f.create_dataset("none", shape=(100,), dtype="f8", chunks=(10,))
    for i, options in enumerate(
        ([], ["--compress", "gzip:1"], ["--compress", "zstd:1"], ["--shard", "16K"], ["--checksum", "crc32c"])
    ):
        both = sizes(tmp_path / "in.h5", tmp_path / f"{i}.zarr", *options)
        assert len(both) == 9
        for path, (bound, written) in both.items():
            assert bound >= written, (options, path, bound, written)
            if path in ("/texts", "/chunked", "/references", "/rows", "/members"):
                assert bound == written > 0, (options, path)
        assert both["/none"][1] == 0


@pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
def test_the_corpus_never_exceeds_it(tmp_path):
    files = sorted(p for p in pathlib.Path(CORPUS).rglob("*") if p.is_file() and p.stat().st_size < 400_000)[::5]
    counted = 0
    for path in files:
        if run("plan", path, "--allow-lossy", status=None).returncode != 0:
            continue
        for name, (bound, written) in sizes(path, tmp_path / "out.zarr").items():
            assert bound >= written, (path, name)
            counted += 1
    assert counted > 200
