# SPDX-License-Identifier: BSL-1.0
"""References to files at http://, read from there by fsspec and zarr-python: what h5py reads in the files."""

import json
import pathlib
import sys

import h5py
import numpy as np
import pytest
import zarr

import zarrbits
from conftest import ROOT, run

sys.path.insert(0, str(ROOT / "tests/convert"))

from http_server import Server  # noqa: E402

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
RNG = np.random.default_rng(38)
VALUES = RNG.integers(0, 4096, (40, 30)).astype("i2")


@pytest.fixture
def server():
    with Server() as s:
        yield s


def group_of(refs):
    options = {"fo": str(refs), "remote_protocol": "http", "remote_options": {"asynchronous": True}, "asynchronous": True}
    store = zarr.storage.FsspecStore.from_url("reference://", storage_options=options, read_only=True)
    return zarr.open_group(store, mode="r")


def test_one_file(server, tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.attrs["title"] = "référence"
        f.create_dataset("g/deflated", data=VALUES, chunks=(8, 30), compression="gzip", shuffle=True)
        f.create_dataset("big", data=VALUES.astype(">i2"), chunks=(7, 11))
        f["contiguous"] = VALUES
        f.create_dataset("sparse", (100, 10), "f4", chunks=(10, 10), fillvalue=np.float32(-1))[25] = 3
        f.create_dataset("text", data=["one", "zwei", "três"] * 300, dtype=h5py.string_dtype(), chunks=(300,))
    url = server.put("a b/in.h5", (tmp_path / "in.h5").read_bytes())
    refs = tmp_path / "refs.json"
    run("convert", "-q", "--virtual", "--inline", "1M", url, refs)
    made = len(server.requests)
    group = group_of(refs)
    assert group.attrs["title"] == "référence"
    with h5py.File(tmp_path / "in.h5") as f:
        for name in ("g/deflated", "big", "contiguous", "sparse"):
            assert group[name][...].tobytes() == f[name][...].astype(group[name].dtype).tobytes(), name
        assert group["text"][...].tolist() == f["text"].asstr()[...].tolist()
    asked = server.requests[made:]
    assert {r.name for r in asked} == {"a b/in.h5"} and all(r.range for r in asked)


def test_many_files(server, tmp_path):
    urls = []
    for i in range(3):
        with h5py.File(tmp_path / f"d{i}.h5", "w") as f:
            f["t"] = np.arange(10 * i, 10 * i + 10)
            f["t"].make_scale("t")
            how = {"chunks": (5, 30), "maxshape": (None, 30), "compression": "gzip", "shuffle": True}
            f.create_dataset("v", data=VALUES[10 * i : 10 * i + 10], **how).dims[0].attach_scale(f["t"])
        urls.append(server.put(f"d{i}.h5", (tmp_path / f"d{i}.h5").read_bytes()))
    refs = tmp_path / "refs.json"
    run("convert", "-q", "--virtual", "--concat", "t", *urls, refs)
    run("verify", "--concat", "t", *urls, refs)
    listed = json.loads(pathlib.Path(refs).read_text())["refs"]
    assert {v[0] for v in listed.values() if isinstance(v, list)} == set(urls)
    group = group_of(refs)
    assert np.array_equal(group["v"][...], VALUES[:30]) and np.array_equal(group["t"][...], np.arange(30))


def test_open_references_and_icechunk(server, tmp_path):
    """zarrbits' own way, which looks whether the file is still what it was; and a repository of Icechunk."""
    icechunk = pytest.importorskip("icechunk")
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=VALUES, chunks=(8, 30), compression="gzip", shuffle=True)
    url = server.put("data/in.h5", (tmp_path / "in.h5").read_bytes())
    refs = tmp_path / "refs.json"
    run("convert", "-q", "--virtual", url, refs)
    options = {"headers": {"X-Test": "1"}, "anon": True}  # the second is S3's
    where = {"storage_options": options, "external": server.url}
    group = zarr.open_group(zarrbits.open_references(refs, **where), mode="r")
    assert np.array_equal(group["v"][...], VALUES)
    assert server.requests[-1].headers["X-Test"] == "1"
    zarrbits.to_icechunk(refs, tmp_path / "repository", **where)
    containers = {server.url + "/": None}
    opened = icechunk.Repository.open(
        icechunk.local_filesystem_storage(str(tmp_path / "repository")), authorize_virtual_chunk_access=containers
    )
    read = zarr.open_group(opened.readonly_session("main").store, mode="r")
    assert np.array_equal(read["v"][...], VALUES)
    server.put("data/in.h5", (tmp_path / "in.h5").read_bytes(), etag='"another"')
    with pytest.raises(zarrbits.Error, match="has been written again"):
        zarrbits.open_references(refs, **where)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_local_files_that_readers_find_on_a_server(server, tmp_path, form):
    """--base: made from local files, read from where they were put; also what no source has, which is beside the references."""
    xr = pytest.importorskip("xarray")
    (tmp_path / "in").mkdir()
    with h5py.File(tmp_path / "in/a b.nc", "w") as f:
        f["t"] = np.arange(40)
        f["x"] = np.arange(30)
        v = f.create_dataset("v", data=VALUES, chunks=(8, 30), compression="gzip", shuffle=True)
        for i, name in enumerate("tx"):
            f[name].make_scale(name)
            v.dims[i].attach_scale(f[name])
        f.create_dataset("text", data=["one" * 500] * 40, dtype=h5py.string_dtype(), chunks=(20,)).dims[0].attach_scale(f["t"])
    refs, url = tmp_path / f"refs.{form}", server.url.rstrip("/") + "/archive"
    run("convert", "-q", "--virtual", "--base", url, tmp_path / "in/a b.nc", refs)
    run("verify", "--base", url, tmp_path / "in/a b.nc", refs)
    with open(f"{refs}.data", "rb") as f:
        server.put(f"archive/{refs.name}.data", f.read())
    server.put("archive/a b.nc", (tmp_path / "in/a b.nc").read_bytes())
    (tmp_path / "in/a b.nc").rename(tmp_path / "in.nc")
    (tmp_path / f"{refs.name}.data").unlink()
    want = xr.open_dataset(tmp_path / "in.nc", engine="h5netcdf").load()
    options = {"remote_protocol": "http", "remote_options": {"asynchronous": True}}
    for got in (
        xr.open_zarr(zarrbits.open_references(refs, external=server.url), consolidated=False),
        xr.open_dataset(str(refs), engine="kerchunk", storage_options=options),
    ):
        xr.testing.assert_identical(want, got.load())
    server.put("archive/a b.nc", b"x")
    with pytest.raises(zarrbits.Error, match="has 1 bytes, and had"):
        zarrbits.open_references(refs, external=server.url)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_names_relative_to_the_references(tmp_path, form, monkeypatch):
    xr = pytest.importorskip("xarray")
    (tmp_path / "a/in").mkdir(parents=True)
    with h5py.File(tmp_path / "a/in/a b.nc", "w") as f:
        f.create_dataset("v", data=VALUES, chunks=(8, 30), compression="gzip", shuffle=True)
    refs = f"refs.{form}"
    run("convert", "-q", "--virtual", "--base", ".", tmp_path / "a/in/a b.nc", tmp_path / "a" / refs)
    (tmp_path / "a").rename(tmp_path / "b")
    assert np.array_equal(zarr.open_group(zarrbits.open_references(tmp_path / "b" / refs), mode="r")["v"][...], VALUES)
    # fsspec takes them from the working directory
    monkeypatch.chdir(tmp_path / "b")
    options = {"remote_protocol": "file"}
    assert np.array_equal(xr.open_dataset(refs, engine="kerchunk", storage_options=options).v, VALUES)
    if form == "json":
        icechunk = pytest.importorskip("icechunk")
        zarrbits.to_icechunk(tmp_path / "b" / refs, tmp_path / "repository")
        storage = icechunk.local_filesystem_storage(str(tmp_path / "repository"))
        folders = icechunk.Repository.open(storage).config.virtual_chunk_containers
        access = icechunk.containers_credentials({k: icechunk.Credentials.LocalFileSystemAccess() for k in folders})
        session = icechunk.Repository.open(storage, authorize_virtual_chunk_access=access).readonly_session("main")
        assert np.array_equal(zarr.open_group(session.store, mode="r")["v"][...], VALUES)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_references_that_are_renamed(server, tmp_path, form):
    with h5py.File(tmp_path / "a b.h5", "w") as f:
        f.create_dataset("v", data=VALUES, chunks=(8, 30), compression="gzip", shuffle=True)
        f.create_dataset("text", data=["one" * 500] * 40, dtype=h5py.string_dtype())
    refs, url = tmp_path / f"refs.{form}", server.url.rstrip("/") + "/archive"
    run("convert", "-q", "--virtual", tmp_path / "a b.h5", refs)
    for old, new, words in (
        (f"file://{tmp_path}/a", url, "no reference of"),
        (f"file://{tmp_path}", "https://me:secret@host", "may be a secret"),
        (f"file://{tmp_path}", "https://host/?secret", "may be a secret"),
        (f"file://{tmp_path}", "adl://bucket", "is not a scheme"),
        (f"file://{tmp_path}", "ftp://host/a", "is not a scheme"),
        (f"file://{tmp_path}", "https://", "cannot be read by the name"),
        (f"file://{tmp_path}", "s3:", "cannot be read by the name"),
    ):
        with pytest.raises(zarrbits.Error, match=words):
            zarrbits.rename_references(refs, old, new)
    assert zarrbits.rename_references(refs, f"FILE://{tmp_path}", url.replace("http://", "HTTP://")) == 2
    run("verify", "--base", f"{tmp_path}={url}", tmp_path / "a b.h5", refs)
    assert not list(tmp_path.glob("*.zarrbits-unfinished*"))
    for name in ("a b.h5", f"refs.{form}.data"):
        server.put(f"archive/{name}", (tmp_path / name).read_bytes())
        (tmp_path / name).unlink()
    group = zarr.open_group(zarrbits.open_references(refs, external=server.url), mode="r")
    assert np.array_equal(group["v"][...], VALUES) and group["text"][7] == "one" * 500
