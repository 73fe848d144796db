# SPDX-License-Identifier: BSL-1.0
"""zarrbits.File of URLs, on the small servers of tests/convert, beside h5py and the same file on the disk."""

import concurrent.futures
import multiprocessing
import os
import pathlib
import pickle
import sys

import h5py
import numpy as np
import pytest

import zarrbits
from hdf5_peer import compare_dataset
from zarrbits import hdf5_library

try:
    hdf5_library.library()
except zarrbits.Error as e:
    pytest.skip(str(e), allow_module_level=True)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "convert"))
import s3_server  # noqa: E402
from http_server import Answer, Server, certificate  # noqa: E402

LARGE = np.random.default_rng(1).integers(0, 1 << 30, (64, 256, 256), dtype="i4")  # 16 MiB that do not compress


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """Somebody without credentials of his own."""
    for name in [n for n in os.environ if n.startswith("AWS_") or "proxy" in n.lower()]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("ZARRBITS_S3_PATIENCE", "0.3")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("a/large", data=LARGE, chunks=(1, 256, 256), compression="gzip", shuffle=True)
        f["a/contiguous"] = LARGE[0]
        f.create_dataset("a/texts", data=["a", "", "äö"], dtype=h5py.string_dtype())
        f.create_dataset("a/empty", (50, 50), ">f4", chunks=(20, 20), fillvalue=np.nan, compression="gzip")
        f["a"].attrs["units"] = "K"
    return path


@pytest.fixture
def server():
    with Server() as s:
        yield s
        assert s.mistakes == []


def compare(path, url, **options):
    with h5py.File(path) as f, zarrbits.File(url, **options) as g:
        assert g["a"].attrs["units"] == "K" and list(g["a"]) == list(f["a"])
        for name in f["a"]:
            compare_dataset(f["a"][name], g["a"][name], np.random.default_rng(2), 5, name, 1 << 30)
        return g.statistics()


def test_values_are_those_of_the_file(path, server):
    counts = compare(path, server.put("a b/in.h5", path.read_bytes()))
    assert counts == compare(path, path)
    assert {r.name for r in server.requests} == {"a b/in.h5"}


def test_a_box_needs_a_part_of_the_file(path, server):
    with zarrbits.File(server.put("in.h5", path.read_bytes())) as g:
        dataset = g["a/large"]
        before = server.sent
        np.testing.assert_array_equal(dataset[3:5, ::7], LARGE[3:5, ::7])
        assert server.sent - before < LARGE.nbytes / 2
        requests = len(server.requests)
        np.testing.assert_array_equal(dataset[3:5, ::7], LARGE[3:5, ::7])
        assert len(server.requests) == requests


def test_https(path, tmp_path):
    files = certificate(tmp_path, "IP:127.0.0.1")
    if not files:
        pytest.skip("there is no openssl")
    with Server(certificate=files) as server:
        url = server.put("in.h5", path.read_bytes())
        compare(path, url, ca_file=files[0])
        with pytest.raises(zarrbits.Error, match="certificate"):
            zarrbits.File(url)


def test_headers(path):
    def fault(request, proceed):
        return proceed() if request.headers.get("Authorization") == "Bearer sesame" else Answer(401)

    with Server(fault=fault) as server:
        url = server.put("in.h5", path.read_bytes())
        with pytest.raises(zarrbits.Error) as refusal:
            zarrbits.File(url)
        assert refusal.value.code in ("permission_denied", "server_failed") and "sesame" not in str(refusal.value)
        compare(path, url, headers={"Authorization": "Bearer sesame"})
        file = path.with_name("headers.txt")
        file.write_text("X-Other: 1\r\n\nAuthorization: Bearer sesame\n", encoding="utf-8")
        for name in file, str(file):
            compare(path, url, headers=name)


def test_files_that_are_absent_or_change(path, server):
    url = server.put("in.h5", path.read_bytes())
    with pytest.raises(zarrbits.Error) as absent:
        zarrbits.File(url + "x")
    assert absent.value.code == "not_found" and isinstance(absent.value, FileNotFoundError)
    with zarrbits.File(url, remote_cache=1 << 20) as g:
        dataset = g["a/large"]
        with h5py.File(path, "r+") as f:
            f["a/large"][...] = LARGE + 1
        server.put("in.h5", path.read_bytes())
        with pytest.raises(zarrbits.Error) as changed:
            dataset[...]
        assert changed.value.code == "changed"


def read_corner(dataset):
    return int(dataset[5, 6, 7])


def test_pickles_and_processes(path, server):
    with zarrbits.File(server.put("in.h5", path.read_bytes())) as g:
        dataset = g["a/large"]
        expected = read_corner(dataset)
        assert read_corner(pickle.loads(pickle.dumps(dataset))) == expected == LARGE[5, 6, 7]
        for method in ("fork", "spawn"):
            with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
                assert list(pool.map(read_corner, [dataset] * 3)) == [expected] * 3


def test_s3(path, monkeypatch):
    with s3_server.Server() as server:
        server.objects["data/in.h5"] = s3_server.Stored(path.read_bytes())
        url = f"s3://{s3_server.BUCKET}/data/in.h5"
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.SECRET)
        assert compare(path, url, endpoint=server.url) == compare(path, path)
        assert server.wrong_signatures == []
        with pytest.raises(zarrbits.Error) as absent:
            zarrbits.File(url + "x", endpoint=server.url)
        assert absent.value.code == "not_found"
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(zarrbits.Error) as refusal:
            zarrbits.File(url, endpoint=server.url)
        assert "wrong" not in str(refusal.value) and s3_server.SECRET not in str(refusal.value)


def test_public_buckets(path):
    with s3_server.Server(public=True) as server:
        server.objects["in.h5"] = s3_server.Stored(path.read_bytes())
        compare(path, f"s3://{s3_server.BUCKET}/in.h5", endpoint=server.url, sign_request=False)
        assert not any("Authorization" in r.headers for r in server.requests)


def test_hostile_responses_end_in_errors(path):
    body = path.read_bytes()
    for fault in (
        lambda r, proceed: Answer(206, b"x" * 100, {"Content-Range": "bytes 0-99/100"}),
        lambda r, proceed: Answer(206, body[:100], {"Content-Range": f"bytes 0-99/{1 << 60}"}),
        lambda r, proceed: Answer(200, b"<html>"),
        lambda r, proceed: Answer(500),
    ):
        with Server(fault=fault) as server, pytest.raises(zarrbits.Error):
            zarrbits.File(server.put("in.h5", body))["a/large"][...]
