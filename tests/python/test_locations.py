# SPDX-License-Identifier: BSL-1.0
"""Sources and stores that the calls take or refuse, and empty options."""

import os
import pathlib
import types

import h5py
import numpy as np
import pytest

import zarrbits
from zarrbits.locations import absolute, in_short, name_of, storage_options_of
from zarrbits.remote import Secrets


def made(folder, name="in.h5"):
    path = os.path.join(folder, name)
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(10)
    return path


def upath(protocol, path, text, **storage_options):
    """What UPath objects of universal_pathlib have; those of servers are not os.PathLike in all of its versions."""

    class UPath(types.SimpleNamespace):
        def __str__(self):
            return text

    return UPath(protocol=protocol, path=path, storage_options=storage_options)


def test_urls_of_files_and_schemes_in_capitals(folder):
    source = made(folder, "a b#1.h5")
    url = pathlib.Path(source).as_uri()
    assert url.startswith("file:///") and "%20" in url and "%23" in url
    assert zarrbits.convert(url, f"file://localhost{folder}/out.zarr").objects
    assert zarrbits.verify(source, os.path.join(folder, "out.zarr")).equal
    assert name_of("FILE:///a/b") == "/a/b" and name_of("S3://bucket/Key") == "s3://bucket/Key"
    assert name_of("HTTPS://host/A?b=c") == "https://host/A?b=c" and name_of("s3a://b/k") == "s3://b/k"
    assert name_of("gs://b/k") == name_of("gcs://b/k") == "gs://b/k"
    assert name_of("az://c/k") == name_of("azure://c/k") == "az://c/k"
    assert name_of("ABFSS://c@a.dfs.core.windows.net/k") == "abfss://c@a.dfs.core.windows.net/k"
    with pytest.raises(ValueError, match='is a file of the machine "elsewhere"'):
        name_of("file://elsewhere/a.h5")


@pytest.mark.parametrize("call", [zarrbits.convert, zarrbits.verify, zarrbits.finalize, zarrbits.export_store])
def test_schemes_that_are_not_reached_are_said(call, folder):
    source = made(folder)
    for name, said in (
        ("adl://container/x", "https:// URL"),
        (
            "ftp://host/x",
            '"ftp://" is not a scheme that zarrbits knows; use a path, s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY or '
            "an https:// URL",
        ),
        ("memory://x", "memory"),
    ):
        for arguments in ((name, os.path.join(folder, "o")), (source, name)):
            with pytest.raises(ValueError, match=said):
                call(*arguments)


def test_a_file_of_that_name_is_one(folder, monkeypatch):
    monkeypatch.chdir(folder)
    os.mkdir("adl:")
    os.rename(made(folder), "adl:/in.h5")
    assert zarrbits.plan("adl://in.h5").complete


def test_an_open_file_of_h5py(folder, monkeypatch):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    with h5py.File(source) as f:
        assert zarrbits.convert(f, store).objects and zarrbits.verify(f, store).equal and zarrbits.inspect(f, store).trees
        assert zarrbits.suggest(f).datasets and zarrbits.plan([f], None).complete and zarrbits.doctor(f).document["file"]
        with pytest.raises(TypeError, match="not Group"):
            zarrbits.plan(f["/"])
        with pytest.raises(TypeError, match="not Dataset"):
            zarrbits.plan([f["x"]])
    with pytest.raises(ValueError, match="h5py.File is closed"):
        zarrbits.plan(f)
    with h5py.File(source, "r+") as f:
        f["y"] = np.arange(100)  # which is not in the file yet
        with pytest.raises(ValueError, match="is open for writing in this process; close it first, or set lock=False"):
            zarrbits.plan(f)
        assert [d["path"] for d in zarrbits.plan(f, lock=False).datasets] == ["/x", "/y"]
        report = zarrbits.convert(f, os.path.join(folder, "open.zarr"), lock=False, partition="0/1")
        assert report.sources == [source]
    with h5py.File("memory", "w", driver="core", backing_store=False) as f:
        with pytest.raises(ValueError, match="'memory' is not a file on a disk"):
            zarrbits.plan(f)


def test_paths_of_universal_pathlib(folder):
    source = made(folder)
    assert zarrbits.plan(upath("", source, source)).complete and zarrbits.plan(upath("file", source, f"file://{source}")).complete
    here, other = upath("s3", "b/in.h5", "s3://b/in.h5", anon=True), upath("s3", "b/o", "s3://b/o", key="k", secret="s")
    assert name_of(here) == "s3://b/in.h5" and storage_options_of([here, source]) == {"anon": True}
    options = {}
    assert Secrets(options, [here, source]).paths == ["s3://b/in.h5", source] and options["sign_request"] is False
    options = {"storage_options": {"profile": "mine"}}  # options of the call win
    Secrets(options, [here])
    assert options == {"aws_profile": "mine"}
    options = {"sign_request": True, "request_payer": False, "endpoint": "https://mine"}  # the first two are defaults
    Secrets(options, [upath("s3", "b/k", "s3://b/k", anon=True, requester_pays=True, endpoint_url="https://other")])
    assert options == {"sign_request": False, "request_payer": True, "endpoint": "https://mine"}
    with pytest.raises(ValueError, match="different storage_options"):
        zarrbits.convert(here, other)
    with pytest.raises(ValueError, match="adl"):
        zarrbits.convert(upath("adl", "b/in.h5", "adl://b/in.h5"), "out.zarr")


def test_other_objects_are_not_taken_for_lists_of_names(folder):
    for wrong in 5, None, {"a": 1}, 2.5:
        with pytest.raises(TypeError, match="is a name, a path, a UPath or an h5py.File, not "):
            zarrbits.convert(wrong, os.path.join(folder, "out.zarr"))
    assert zarrbits.plan(path for path in [made(folder)]).complete  # a generator is one


def test_names_for_workers_in_other_folders(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert absolute("a/b.h5") == f"{folder}/a/b.h5" and absolute("@list.txt") == f"@{folder}/list.txt"
    assert absolute("*.nc") == f"{folder}/*.nc" and absolute("s3://b/k") == "s3://b/k" and absolute("/a") == "/a"


def test_sentences_have_no_secrets_of_urls():
    assert in_short(["https://me:pass@host/a.nc?sig=SECRET", "b"]) == '"https://host/a.nc" and 1 more'
    assert in_short(["/data/what?.nc"]) == '"/data/what?.nc"' and in_short([]) == "nothing"


def test_empty_options_are_errors_and_do_not_mean_everything(folder):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    texts = ("partition", "codec", "profile", "compress", "chunk", "shard", "concat", "memory", "convention", "report", "bits")
    for name in (*texts, "include", "exclude", "headers", "base", "endpoint", "links", "external"):
        with pytest.raises(ValueError, match=f"`{name}` is empty; set a value, or None to do without"):
            zarrbits.convert(source, store, **{name: ""})
    for name in "include", "chunk", "shard":
        with pytest.raises(ValueError, match=f"`{name}` is empty"):
            zarrbits.convert(source, store, **{name: []})
    with pytest.raises(ValueError, match="`include` is empty"):
        zarrbits.verify(source, store, include=["/x", ""])
    assert not os.path.exists(store)
    # nothing to leave out, and no dataset that is worth it, are answers
    assert zarrbits.convert(source, store, exclude=[], bits={}).objects
