# SPDX-License-Identifier: BSL-1.0
"""`zarrbits verify` prints the same for any number of threads, of stores that are equal, differ or are damaged; and decodes the
chunks of the source as libhdf5 does."""

import json
import shutil

import h5py
import numpy as np
import pytest

from harness import convert, run, verify

THREADS = [1, 2, 5]


def make_source(path):
    random = np.random.default_rng(1)
    numbers = random.integers(0, 500, (70, 90))
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=numbers.astype("<f4"), chunks=(16, 16), compression="gzip", shuffle=True)
        f.create_dataset("big", data=numbers.astype(">i4"), chunks=(16, 90), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("checked", data=numbers.astype("<u2"), chunks=(7, 8), fletcher32=True)
        f.create_dataset("plain", data=numbers.astype("<f8"), chunks=(16, 16))
        f.create_dataset("contiguous", data=numbers.astype("<i2"))
        f.create_dataset("flags", data=numbers > 250, chunks=(16, 16), compression="gzip")
        f.create_dataset("words", data=np.array([b"one", b"three"] * 50), chunks=(7,), compression="gzip")
        f.create_dataset("texts", data=[f"text {i}" for i in range(50)], dtype=h5py.string_dtype(), chunks=(9,))
        f.create_dataset("edges", data=numbers.astype("<i4"), chunks=(16, 16), compression="lzf")
        holes = f.create_dataset("holes", (64, 64), "<f4", chunks=(8, 8), compression="gzip", fillvalue=7)
        holes[8:24, 40:50] = 3
        masked = f.create_dataset("masked", (32,), "<i4", chunks=(8,), compression="gzip", shuffle=True)
        masked[:] = np.arange(32)
        masked.id.write_direct_chunk((8,), np.arange(8, 16, dtype="<i4").tobytes(), filter_mask=3)
    return path


def reports(*arguments, status):
    """What verify says with each number of threads, which must be the same."""
    texts = [run("verify", *arguments, "--threads", n, status=status).stdout for n in THREADS]
    assert texts[1:] == texts[:1] * 2
    documents = [verify(*arguments, "--threads", n, status=status) for n in THREADS]
    assert documents[1:] == documents[:1] * 2
    return documents[0]


def outcomes(report):
    return {f["path"]: (f["outcome"], f.get("index")) for f in report["findings"]}


def chunk_of(store, name, *index):
    node = json.loads((store / name / "zarr.json").read_text())
    separator = node["chunk_key_encoding"].get("configuration", {}).get("separator", "/")
    return store / name / ("c" + separator + separator.join(map(str, index)))


def change(path, offset=0):
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x55
    path.write_bytes(data)


@pytest.fixture
def source(tmp_path):
    return make_source(tmp_path / "in.h5")


@pytest.fixture
def store(source, tmp_path):
    convert("-q", source, tmp_path / "out.zarr")
    return tmp_path / "out.zarr"


@pytest.mark.parametrize("options", [[], ["--virtual"], ["--shard", "64k"], ["--chunk", "10x10"]])
def test_equal_stores(source, tmp_path, options):
    target = tmp_path / ("out.json" if options == ["--virtual"] else "out.zarr")
    convert("-q", source, target, *options, status=(0, 3))
    assert reports(source, target, status=(0, 3))["elements"]["equal"] > 30_000


def test_the_first_difference_of_each_array_is_reported(source, store):
    change(chunk_of(store, "plain", 3, 2), 40)
    change(chunk_of(store, "plain", 1, 4), 8)
    change(chunk_of(store, "plain", 1, 5))
    chunk_of(store, "deflate", 2, 2).unlink()
    chunk_of(store, "deflate", 4, 0).unlink()
    change(chunk_of(store, "holes", 1, 5), 20)
    change(chunk_of(store, "words", 3), 12)
    verdicts = outcomes(reports(source, store, status=1))
    assert verdicts["/plain"] == ("differs", [16, 65])
    assert verdicts["/deflate"] == ("differs", [32, 32])
    assert verdicts["/holes"][0] == "differs"


def test_damaged_chunks_of_the_store(source, store):
    for name, index in ("deflate", (1, 1)), ("plain", (2, 0)), ("texts", (3,)):
        path = chunk_of(store, name, *index)
        path.write_bytes(path.read_bytes()[:-9])
    change(chunk_of(store, "plain", 2, 1))
    report = reports(source, store, status=1)
    reasons = {f["path"]: f["reason"] for f in report["findings"]}
    assert "chunk [1, 1]: " in reasons["/deflate"] and "chunk [2, 0]: " in reasons["/plain"]
    assert outcomes(report)["/texts"][0] == "differs"


def test_damaged_chunks_of_the_source(source, store):
    with h5py.File(source) as f:
        places = [
            f[name].id.get_chunk_info_by_coord(first).byte_offset + 9
            for name, first in (("deflate", (16, 16)), ("deflate", (48, 0)), ("checked", (7, 8)), ("big", (16, 0)))
        ]
    data = bytearray(source.read_bytes())
    for place in places:
        data[place] ^= 0xFF
    source.write_bytes(data)
    report = reports(source, store, status=1)
    for name in "deflate", "checked", "big":
        assert outcomes(report)["/" + name][0] in ("unreadable", "differs"), name


def test_a_value_of_the_source_that_changed(source, store):
    """Found by our own decoders, and then read by libhdf5, which says the same."""
    with h5py.File(source, "a") as f:
        f["deflate"][50, 60] = -1
        f["big"][33, 3] = -1
        f["masked"][9] = -1
    verdicts = outcomes(reports(source, store, status=1))
    assert {name: verdicts[name] for name in ("/deflate", "/big", "/masked")} == {
        "/deflate": ("differs", [50, 60]),
        "/big": ("differs", [33, 3]),
        "/masked": ("differs", [9]),
    }


@pytest.mark.parametrize("options", [["--chunk", "10x10"], ["--shard", "64k"]])
def test_two_stores(store, tmp_path, options):
    copy = tmp_path / "copy.zarr"
    convert("-q", store, copy, *options, status=(0, 3))
    reports(store, copy, status=(0, 3))
    other = tmp_path / "other.zarr"
    shutil.copytree(store, other)
    change(chunk_of(other, "plain", 2, 1), 8)
    change(chunk_of(other, "plain", 3, 0), 8)
    chunk_of(other, "deflate", 1, 1).unlink()
    path = chunk_of(other, "big", 1, 0)
    path.write_bytes(path.read_bytes()[:-5])
    verdicts = outcomes(reports(other, copy, status=1))
    assert verdicts["/plain"] == ("differs", [32, 17])
    assert verdicts["/deflate"] == ("differs", [16, 16])
    assert verdicts["/big"][0] == "unreadable"


def test_joined_files(tmp_path):
    names = []
    for i in range(6):
        names.append(tmp_path / f"{i}.nc")
        with h5py.File(names[-1], "w") as f:
            time = f.create_dataset("time", data=np.arange(3.0) + 3 * i, maxshape=(None,), chunks=(4,))
            time.make_scale("time")
            values = np.arange(3 * 20.0).reshape(3, 20) + i
            d = f.create_dataset("v", data=values, maxshape=(None, 20), chunks=(1, 20), compression="gzip", shuffle=True)
            d.dims[0].attach_scale(time)
    store = tmp_path / "all.zarr"
    convert("-q", "--concat", "time", *names, store, "--compress", "none", status=(0, 3))
    reports("--concat", "time", *names, store, status=(0, 3))
    with h5py.File(names[4], "a") as f:
        f["v"][1, 7] = -5
        f["v"][2, 3] = -5
    verdicts = outcomes(reports("--concat", "time", *names, store, status=1))
    assert verdicts["/v"] == ("differs", [13, 7])


def test_usage(source, store):
    assert "--threads is 1 to 1024, not 0" in run("verify", source, store, "--threads", 0, status=2).stderr
