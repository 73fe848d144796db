# SPDX-License-Identifier: BSL-1.0
"""Every option makes the same store in one process, in shares that `finalize` completes, and in a run that is resumed: what the
later commands are not told is in the plan. From a file, from a store with numcodecs' codecs, and from two such stores that are
joined."""

import pathlib
import runpy

import h5py
import numpy as np
import pytest

from harness import convert, run, same, verify

OPTIONS = runpy.run_path(str(pathlib.Path(__file__).resolve().parents[2] / "python/zarrbits/options.py"))["OPTIONS"]["convert"]

EITHER = {
    "nothing": [],
    "profile portable": ["--profile", "portable"],
    "profile native": ["--profile", "native"],
    "profile recode": ["--profile", "recode"],
    "compress": ["--compress", "zstd:3"],
    "compress none": ["--compress", "none"],
    "chunk": ["--chunk", "5x11"],
    "chunk along a dimension": ["--chunk", "row:7", "--chunk", "camera=row:-1"],
    "empty chunks": ["--chunk", "5x11", "--write-empty-chunks"],
    "shard": ["--shard", "20x60"],
    "shard of bytes": ["--shard", "8k"],
    "checksum": ["--checksum", "crc32c"],
    "codec bytes": ["--codec", "bytes"],
    "codec packbits": ["--codec", "packbits"],
    "bits": ["--codec", "packbits", "--bits", "12"],
    "bits of one": ["--codec", "packbits", "--bits", "camera=12"],
    "include": ["--include", "camera"],
    "with_coordinates": ["--include", "camera", "--with-coordinates"],
    "exclude": ["--exclude", "camera"],
    "consolidate": ["--consolidate"],
    "no_consolidate": ["--no-consolidate"],
    "memory": ["--memory", "16M"],
    "keep_going": ["--keep-going"],
    "zarr_format": ["--zarr-format", "2"],
    "zarr_format and other chunks": ["--zarr-format", "2", "--chunk", "5x11", "--consolidate"],
    "allow_expansion": ["--allow-expansion"],
    "shards of packed and checked chunks": ["--shard", "20x60", "--codec", "packbits", "--checksum", "crc32c"],
    "other chunks, portable codecs": ["--chunk", "5x11", "--compress", "gzip:1", "--shard", "20x60"],
}
OF_A_STORE = {"shard none": ["--shard", "none"]}
OF_A_FILE = {
    "bits auto": ["--codec", "packbits", "--bits", "auto"],
    "convention": ["--convention", "none"],
    "links": ["--links", "copy"],
}
# what no later command can make otherwise: where it works and how fast, what it says, and what has tests of its own for shares
ELSEWHERE = {
    *(
        "concat",
        "concat_new",
        "places",
        "append",
        "order",
        "different",
        "allow_overlap",
        "grid",
        "virtual",
        "cf_aggregation",
        "inline",
        "digest",
        "base",
    ),
    *("overwrite", "resume", "partition", "threads", "scratch", "fsync", "external", "lock"),
    *("report", "json", "allow_lossy", "quiet", "log_format"),
    *(
        "endpoint",
        "sign_request",
        "request_payer",
        "aws_profile",
        "headers",
        "ca_file",
        "follow_private",
        "etag",
        "connections",
    ),
}


def make(path):
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as f:
        f.create_dataset("big", data=random.integers(0, 30000, (60, 70), "i4"), chunks=(10, 20), compression="gzip", shuffle=True)
        f.create_dataset("camera", data=random.integers(0, 4096, (33, 40), "u2"), chunks=(10, 16), shuffle=True)
        f.create_dataset("mask", data=random.integers(0, 2, (50, 30), bool), chunks=(9, 9), fletcher32=True)
        f.create_dataset("wave", data=np.linspace(0, 1, 500), chunks=(50,), compression="gzip")
        f["one"] = 3.5
        f["row"] = np.arange(33)
        f["row"].make_scale("row")
        f["camera"].dims[0].attach_scale(f["row"])
        f["again"] = h5py.SoftLink("/wave")
        f["wave"].attrs["units"] = "m"


@pytest.fixture(name="source", scope="module")
def source_of(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    make(folder / "in.h5")
    if request.param == "file":
        return request.param, [folder / "in.h5"]
    convert(folder / "in.h5", folder / "in.zarr", "-q", "--profile", "native", "--consolidate")
    assert b"numcodecs.shuffle" in (folder / "in.zarr/camera/zarr.json").read_bytes()
    if request.param == "store":
        return request.param, [folder / "in.zarr"]
    # the rows of the second one follow in `camera`, whose chunks of 10 rows end within the first
    with h5py.File(folder / "in.h5", "r+") as f:
        f["row"][...] += 33
        f["camera"][...] = f["camera"][...] // 2
    convert(folder / "in.h5", folder / "more.zarr", "-q", "--profile", "native", "--consolidate")
    return request.param, ["--concat", "row", folder / "in.zarr", folder / "more.zarr"]


def cases(kind):
    return {**EITHER, **(OF_A_FILE if kind == "file" else OF_A_STORE)}


def test_every_option_has_a_case():
    words = {word for way in (EITHER, OF_A_STORE, OF_A_FILE) for options in way.values() for word in options}
    tried = {word[2:].replace("-", "_") for word in words if word.startswith("--")}
    assert set(OPTIONS) <= tried | ELSEWHERE, set(OPTIONS) - tried - ELSEWHERE


@pytest.mark.parametrize(
    ("source", "way"), [(kind, way) for kind in ("file", "store", "stores") for way in cases(kind)], indirect=["source"]
)
def test_shares_and_resumed_runs_make_what_one_process_makes(source, tmp_path, way):
    kind, paths = source
    options = cases(kind)[way]
    convert(*paths, tmp_path / "one.zarr", "-q", *options)
    if kind != "store" and not {"--include", "--exclude"} & set(options):
        verify(*paths, tmp_path / "one.zarr", status=(0, 3))
    for share in range(2):
        convert(*paths, tmp_path / "shares.zarr", "-q", "--partition", f"{share}/2", *options)
    run("finalize", *paths, tmp_path / "shares.zarr", "-q")
    same(tmp_path / "one.zarr", tmp_path / "shares.zarr")
    for name, again in (("plain", []), ("told", options)):
        convert(*paths, tmp_path / f"{name}.zarr", "-q", "--partition", "0/2", *options)
        convert(*paths, tmp_path / f"{name}.zarr", "-q", "--resume", *again)
        same(tmp_path / "one.zarr", tmp_path / f"{name}.zarr")
