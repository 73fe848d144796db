# SPDX-License-Identifier: BSL-1.0
"""How often `zarrbits verify` asks a server: once for each object of a store and each file of up to 16 MiB, and once for each
16 MiB of larger ones."""

import collections
import pathlib

import h5py
import numpy as np
import pytest

from s3_conversion import run
from s3_server import Server, Stored

NATIVE = ["--profile", "native"]
BLOCK = 16 << 20


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Server() as s:
        yield s
        assert s.wrong_signatures == []


def z(server, *arguments, status=0):
    done = run(*arguments, *(["--endpoint", server.url] if server else []))
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def upload(server, *names):
    for name in names:
        server.objects[name] = Stored(pathlib.Path(name).read_bytes())
    return [f"s3://bucket/{name}" for name in names]


def asked(server, *arguments, status=0):
    """The requests of one comparison."""
    before = len(server.requests)
    z(server, "verify", *arguments, status=status)
    return server.requests[before:]


def kinds(requests):
    return dict(collections.Counter(r.kind for r in requests))


def many_chunks(name):
    with h5py.File(name, "w") as f:
        for i in range(4):
            group = f.create_group(f"g{i}")
            group.attrs["number"] = i
            for j in range(3):
                how = {"chunks": (250,), "compression": "gzip", "shuffle": True}
                group.create_dataset(f"d{j}", data=np.arange(4000, dtype="f4"), **how)
    return name


def large(name, megabytes=40):
    """Noise in chunks of 256 KiB, and something small at the end."""
    with h5py.File(name, "w") as f:
        noise = np.random.default_rng(1).integers(0, 256, megabytes << 20, dtype="u1")
        f.create_dataset("noise", data=noise, chunks=(1 << 18,))
        f["small"] = np.arange(10)
    return name


def day(name, first):
    with h5py.File(name, "w") as f:
        f["t"] = np.arange(first, first + 8)
        f["t"].make_scale("t")
        values = np.random.default_rng(first).random((8, 64, 1024))
        rows = f.create_dataset(
            "rows", data=values, chunks=(8, 16, 256), maxshape=(None, 64, 1024), compression="gzip", shuffle=True
        )
        rows.dims[0].attach_scale(f["t"])
    return name


def test_a_store_of_many_chunks(server):
    many_chunks("in.h5")
    z(server, "convert", "-q", "in.h5", "s3://bucket/out.zarr")
    objects = len(server.content("out.zarr"))
    assert objects > 200
    assert kinds(asked(server, "in.h5", "s3://bucket/out.zarr")) == {"list": 1, "get": objects}


def test_a_store_of_large_shards(server):
    large("in.h5")
    z(server, "convert", "-q", "in.h5", "s3://bucket/out.zarr", "--shard", "32M")
    stored = server.content("out.zarr")
    assert max(map(len, stored.values())) > BLOCK and len(stored) < 10
    requests = asked(server, "in.h5", "s3://bucket/out.zarr")
    assert kinds(requests) == {"list": 1, "get": sum(1 + (len(body) - 1) // BLOCK for body in stored.values())}


def test_a_store_of_large_chunks(server):
    with h5py.File("in.h5", "w") as f:
        f.create_dataset("x", data=np.random.default_rng(1).integers(0, 256, 40 << 20, dtype="u1"), chunks=(40 << 20,))
    z(server, "convert", "-q", "in.h5", "s3://bucket/out.zarr")
    objects = len(server.content("out.zarr"))
    assert len(asked(server, "in.h5", "s3://bucket/out.zarr")) <= 1 + objects + 2


def test_a_difference_in_the_second_block_of_a_shard(server):
    large("in.h5")
    z(server, "convert", "-q", "in.h5", "s3://bucket/out.zarr", "--shard", "32M")
    key = max(server.objects, key=lambda k: len(server.objects[k].body))
    body = bytearray(server.objects[key].body)
    body[BLOCK + 100] ^= 1
    server.objects[key] = Stored(bytes(body))
    z(server, "verify", "in.h5", "s3://bucket/out.zarr", status=1)


def test_sources_that_are_joined(server):
    names = [day(f"d{i}.nc", 8 * i) for i in range(5)]
    remote = upload(server, *names)
    z(None, "convert", "-q", *NATIVE, "--concat", "t", *names, "out.zarr")
    requests = asked(server, "--concat", "t", *remote, "out.zarr")
    assert collections.Counter((r.kind, r.key) for r in requests) == {("get", name): 1 for name in names}


def test_references_read_each_file_once_more(server):
    names = [day(f"d{i}.nc", 8 * i) for i in range(5)]
    remote = upload(server, *names)
    z(server, "convert", "-q", "--virtual", "--concat", "t", *remote, "refs.json")
    requests = asked(server, "--concat", "t", *remote, "refs.json")
    assert collections.Counter((r.kind, r.key) for r in requests) == {("get", name): 2 for name in names}


def test_a_large_source(server):
    (remote,) = upload(server, large("in.h5"))
    z(None, "convert", "-q", "in.h5", "out.zarr")
    assert kinds(asked(server, remote, "out.zarr")) == {"get": 3}  # 40 MiB, and what is around them


def test_a_part_of_a_large_source_is_not_the_whole(server):
    (remote,) = upload(server, large("in.h5"))
    z(None, "convert", "-q", "in.h5", "out.zarr", "--include", "/small")
    requests = asked(server, remote, "out.zarr", "--include", "/small")
    ranges = [r.headers["Range"].removeprefix("bytes=").split("-") for r in requests]
    assert sum(int(last) - int(first) + 1 for first, last in ranges) <= 8 << 20, ranges


def test_a_source_that_changes_after_its_first_bytes(server):
    (remote,) = upload(server, large("in.h5"))
    z(None, "convert", "-q", "in.h5", "out.zarr")

    def fault(r, go):
        answer = go()
        if r.kind == "get":
            server.objects["in.h5"] = Stored(server.objects["in.h5"].body, etag="another")
        return answer

    server.fault = fault
    done = run("verify", remote, "out.zarr", "--endpoint", server.url)
    assert done.returncode == 1 and "changed while it was" in done.stdout + done.stderr, done
