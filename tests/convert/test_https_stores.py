# SPDX-License-Identifier: BSL-1.0
"""Zarr stores at https:// and http:// are read as the same stores on a disk."""

import json
import pathlib

import h5py
import numpy as np
import pytest

from harness import contents
from http_server import Answer
from https_conversion import refused, z

pytest_plugins = ["https_conversion"]  # its fixtures

FORMS = {
    "v3": ["--consolidate"],
    "shards": ["--consolidate", "--shard", "4K"],
    "array": [],
}


def upload(server, store, name="data/out.zarr"):
    for path in pathlib.Path(store).rglob("*"):
        if path.is_file():
            server.put(f"{name}/{path.relative_to(store)}", path.read_bytes())
    return f"{server.url}/{name}"


def make(form="v3"):
    with h5py.File("in.h5", "w") as f:
        f.attrs["title"] = "a"
        f.create_dataset("g/v", data=np.arange(1000, dtype="i4").reshape(50, 20), chunks=(20, 5), compression="gzip")
        f.create_dataset("sparse", (40,), "f8", chunks=(10,), fillvalue=1.5)[12:14] = 2
        f["text a"] = np.array(["x", "yö"], h5py.string_dtype())
        f["scalar"] = 7
    z("convert", "-q", *FORMS[form], "in.h5:/g/v" if form == "array" else "in.h5", "local.zarr")


def v2(name="local.zarr"):
    """Written by hand, with consolidated metadata."""
    folder = pathlib.Path(name, "g/v")
    folder.mkdir(parents=True)
    values = np.arange(30, dtype="<i2").reshape(5, 6)
    array = {"zarr_format": 2, "shape": [5, 6], "chunks": [5, 3], "dtype": "<i2", "order": "C", "fill_value": 0}
    documents = {
        ".zgroup": {"zarr_format": 2},
        "g/.zgroup": {"zarr_format": 2},
        "g/v/.zarray": {**array, "compressor": None, "filters": None},
        "g/v/.zattrs": {"units": "K"},
    }
    documents[".zmetadata"] = {"zarr_consolidated_format": 1, "metadata": dict(documents)}
    for key, document in documents.items():
        pathlib.Path(name, key).write_text(json.dumps(document))
    for i in range(2):
        (folder / f"0.{i}").write_bytes(values[:, 3 * i : 3 * i + 3].tobytes())


def report(verb, name, *options, status=0):
    done = z(verb, "-q", "--json", *options, name, status=status)
    return json.loads(done.stdout)


@pytest.mark.parametrize("form", [*FORMS, "v2"])
def test_a_store_on_a_server_is_that_on_a_disk(server, form):
    v2() if form == "v2" else make(form)
    url = upload(server, "local.zarr")
    remote, local = (report("digest", name, "--attributes") for name in (url, "local.zarr"))
    assert [remote[key] for key in ("digest", "arrays", "attributes")] == [
        local[key] for key in ("digest", "arrays", "attributes")
    ]
    remote, local = (report("check", name) for name in (url, "local.zarr"))
    assert [remote[key] for key in ("arrays", "format", "groups", "findings")] == [
        local[key] for key in ("arrays", "format", "groups", "findings")
    ]
    for name, source in (("a.zarr", url), ("b.zarr", "local.zarr")):
        z("convert", "-q", source, name)
    assert contents("a.zarr") == contents("b.zarr")
    z("export", "-q", url, "out.h5")
    z("export", "-q", "local.zarr", "local.h5")
    assert report("digest", "out.h5")["digest"] == report("digest", "local.h5")["digest"]
    z("verify", "-q", url, "a.zarr")
    assert z("inspect", url).stdout.splitlines()[1:] == z("inspect", "local.zarr").stdout.splitlines()[1:]


def test_a_node_of_a_store_on_a_server(server):
    make()
    url = upload(server, "local.zarr")
    assert report("digest", f"{url}:/g")["digest"] == report("digest", "local.zarr:/g")["digest"]
    assert report("check", f"{url}/:/g")["arrays"] == report("check", "local.zarr:/g")["arrays"]


def test_each_chunk_is_asked_for_twice_and_a_missing_one_once(server):
    make()
    url = upload(server, "local.zarr")
    assert report("check", url)["sound"]
    chunks = [r.name for r in server.requests if "/c" in r.name]
    assert {chunks.count(f"data/out.zarr/sparse/c/{i}") for i in (0, 2, 3)} == {1}
    assert {chunks.count(name) for name in server.files if "/c" in name} == {2}
    assert not [r for r in server.requests if r.name.endswith("zarr.json") and r.name != "data/out.zarr/zarr.json"]


def test_a_damaged_chunk_is_found(server):
    make()
    url = upload(server, "local.zarr")
    server.put("data/out.zarr/g/v/c/1/2", b"oops")
    (finding,) = report("check", url, status=3)["findings"]
    assert (finding["rule"], finding["path"], finding["key"]) == ("chunk", "/g/v", "c/1/2")
    del server.files["data/out.zarr/g/v/c/1/2"]  # a server that says 404 says that it was never written
    assert [a["missing"] for a in report("check", url)["arrays"] if a["path"] == "/g/v"] == [1]


@pytest.mark.parametrize("code", [403, 500])
def test_a_chunk_that_the_server_refuses_is_not_missing(server, code):
    make()
    url = upload(server, "local.zarr")
    server.fault = lambda r, go_on: Answer(code, b"no") if r.name.endswith("g/v/c/1/2") else go_on()
    for verb in "digest", "check":
        assert str(code) in refused(verb, url)
    assert str(code) in refused("convert", url, "out.zarr")


def test_what_is_not_consolidated_cannot_be_read(server):
    make("array")
    z("convert", "-q", "in.h5", "plain.zarr")
    url = upload(server, "plain.zarr")
    assert "are not consolidated" in refused("digest", url)
    assert "neither a zarr.json nor a .zmetadata" in refused("digest", f"{server.url}/none.zarr")
    assert "other addresses" in refused("export", f"{url}?signature=abc", "out.h5")


def test_hostile_metadata(server):
    make()
    url = upload(server, "local.zarr")
    root = json.loads(pathlib.Path("local.zarr/zarr.json").read_text())

    def with_nodes(change):
        document = json.loads(json.dumps(root))
        change(document["consolidated_metadata"]["metadata"])
        server.put("data/out.zarr/zarr.json", json.dumps(document).encode())

    for path in ("../x", "a//b", "a/", "/a", "a/./b", "x\0y"):
        with_nodes(lambda nodes, path=path: nodes.update({path: root}))
        assert "invalid path" in refused("digest", url), path
    with_nodes(lambda nodes: nodes["g/v"].update(shape=[2**62, 20]))
    assert "takes more memory than is allowed" in refused("digest", url)
    for body in (b"", b"[]", b"{", b"[" * 100000, json.dumps({**root, "consolidated_metadata": {"metadata": []}}).encode()):
        server.put("data/out.zarr/zarr.json", body)
        refused("digest", url)
