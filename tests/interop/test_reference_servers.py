# SPDX-License-Identifier: BSL-1.0
"""Servers that references lead to, in Python: none with a private address that was not named, and secrets only to the one that
they were given for."""

import json
import sys

import h5py
import numpy as np
import pytest
import zarr

import zarrbits
from conftest import ROOT, run
from zarrbits.servers import is_private

sys.path.insert(0, str(ROOT / "tests/convert"))

from http_server import Server, redirect  # noqa: E402
from promises import promise

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
VALUES = np.arange(400, dtype="i4")
SECRETS = [
    {"headers": {"X-Token": "secret"}},
    {"client_kwargs": {"headers": {"X-Token": "secret"}}},
    {"client_kwargs": {"cookies": {"token": "secret"}}},
]


@pytest.fixture
def servers():
    with Server() as one, Server() as other:
        yield one, other


@pytest.fixture(params=["json", "parquet"])
def refs(servers, tmp_path, request):
    """References to a file of each of two servers."""
    for i, server in enumerate(servers):
        with h5py.File(tmp_path / f"{i}.h5", "w") as f:
            f["t"] = np.arange(400) + 400 * i
            f["t"].make_scale("t")
            v = f.create_dataset("v", data=VALUES + i, chunks=(100,), maxshape=(None,), compression="gzip")
            v.dims[0].attach_scale(f["t"])
        server.put(f"{i}.h5", (tmp_path / f"{i}.h5").read_bytes())
    out = tmp_path / f"refs.{request.param}"
    run("convert", "-q", "--virtual", "--concat", "t", *(f"{s.url}/{i}.h5" for i, s in enumerate(servers)), out)
    for server in servers:
        server.requests.clear()
    return out


def read(refs, **options):
    return zarr.open_group(zarrbits.open_references(refs, **options), mode="r")["v"][...]


def told(server):
    return [r for r in server.requests if "secret" in str(r.headers)]


@promise("Python's `open_references` and `to_icechunk` read only")
@pytest.mark.parametrize("check", [True, False])
def test_a_private_address_is_read_only_if_it_is_named(servers, refs, check):
    for external in (None, servers[0].url, [refs.parent]):
        with pytest.raises(zarrbits.Error, match="private address"):
            read(refs, external=external, check=check)
    assert servers[1].requests == []
    for external in ("all", [s.url for s in servers], [refs.parent, *(s.url + "/" for s in servers)]):
        assert np.array_equal(read(refs, external=external, check=check), np.concatenate([VALUES, VALUES + 1]))


@promise("Python's `open_references` and `to_icechunk` read only")
def test_to_icechunk_reads_no_private_address(servers, refs, tmp_path):
    pytest.importorskip("icechunk")
    with pytest.raises(zarrbits.Error, match="private address"):
        zarrbits.to_icechunk(refs, tmp_path / "repository", external=servers[0].url)
    assert servers[0].requests == servers[1].requests == []
    zarrbits.to_icechunk(refs, tmp_path / "repository", external=[s.url for s in servers])


@promise("Secrets in `storage_options` go only to")
@pytest.mark.parametrize("secret", SECRETS, ids=str)
def test_secrets_go_to_the_server_that_was_named(servers, refs, secret):
    with pytest.raises(zarrbits.Error, match="not said for which server"):
        read(refs, external="all", storage_options=secret)
    assert servers[0].requests == servers[1].requests == []
    assert np.array_equal(
        read(refs, external=["all", servers[0].url], storage_options=secret), np.concatenate([VALUES, VALUES + 1])
    )
    assert len(told(servers[0])) == len(servers[0].requests) > 0
    assert told(servers[1]) == [] and servers[1].requests


@promise("Secrets in `storage_options` go only to")
@pytest.mark.parametrize("secret", SECRETS, ids=str)
def test_a_redirect_gets_no_secret(servers, refs, secret):
    one, other = servers
    other.files["moved.h5"] = one.files["0.h5"]
    one.fault = lambda r, go: redirect(f"{other.url}/moved.h5")
    options = {"external": [one.url, "all"], "storage_options": secret}
    assert np.array_equal(read(refs, **options), np.concatenate([VALUES, VALUES + 1]))
    assert told(one) and other.of("moved.h5") and told(other) == []
    # one that leads back has them again
    other.fault = lambda r, go: redirect(f"{one.url}/back.h5") if r.name == "moved.h5" else go()
    one.files["back.h5"] = one.files["0.h5"]
    one.fault = lambda r, go: go() if r.name == "back.h5" else redirect(f"{other.url}/moved.h5")
    assert np.array_equal(read(refs, **options)[:400], VALUES)
    assert len(told(one)) == len(one.requests)


def test_a_redirect_to_a_private_address_is_not_followed(servers, refs):
    one, other = servers
    other.files["moved.h5"] = one.files["0.h5"]
    only_first(refs, one)
    for host in ("127.0.0.1", "localhost", "0x7f.1", "[::1]"):
        one.fault = lambda r, go, host=host: redirect(f"http://{host}:{other.port}/moved.h5")
        with pytest.raises(zarrbits.Error, match="private address"):
            read(refs.parent / "first.json", external=one.url)
        assert other.requests == []
    one.fault = None
    assert np.array_equal(read(refs.parent / "first.json", external=one.url), VALUES)


def only_first(refs, server):
    """References to the first server alone."""
    run("convert", "-q", "--overwrite", "--virtual", refs.parent / "0.h5", refs.parent / "first.json")
    document = json.loads((refs.parent / "first.json").read_text().replace(f"file://{refs.parent}", server.url))
    for source in document["zarrbits"]["sources"]:
        source.pop("modified", None)
    (refs.parent / "first.json").write_text(json.dumps(document))


def test_addresses():
    for address in "127.0.0.1 10.0.0.1 169.254.169.254 192.168.1.1 0.0.0.0 100.64.0.1 ::1 :: fe80::1%eth0 fd00::1".split():
        assert is_private(address), address
    for address in ("::ffff:127.0.0.1", "::ffff:10.1.1.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "::127.0.0.1", "224.0.0.1"):
        assert is_private(address), address
    for address in ("8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"):
        assert not is_private(address), address
