# SPDX-License-Identifier: BSL-1.0
"""storage_options of the functions in Python: what fsspec is told reaches the server, and no other process sees a secret."""

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import sys
import threading
import time

import h5py
import numpy as np
import pytest

import zarrbits
from zarrbits.references import _options_for, read
from zarrbits.remote import of_storage_options

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "convert"))
from aws_servers import Keys, SignedServer  # noqa: E402
from azure_server import ACCOUNT, KEY, AzureServer  # noqa: E402
from http_server import Server  # noqa: E402
from s3_server import Stored  # noqa: E402

VALUES = np.arange(6000, dtype="i4").reshape(60, 100)
SECRET = "sesame-0123456789"


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """Somebody without credentials of his own."""
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=VALUES, chunks=(10, 100), compression="gzip")
    return (tmp_path / "in.h5").read_bytes()


def right(store):
    with h5py.File("in.h5") as f:
        assert zarrbits.verify("in.h5", store).equal and f["v"][0, 5] == 5


def test_what_adlfs_is_told(source, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=another;AccountKey=AAAA")  # options win
    signature = "sv=2022-11-02&sig=geheim"
    with AzureServer(signatures=[signature]) as s:
        s.objects["in.h5"] = Stored(source)
        server = {"client_kwargs": {"endpoint_url": s.url}}
        connection = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={s.url}"
        for options in (
            {"account_name": ACCOUNT, "account_key": KEY, **server},
            {"account_name": ACCOUNT, "sas_token": signature, **server},
            {"connection_string": connection},
        ):
            assert not zarrbits.convert("abfs://bucket/in.h5", "out.zarr", storage_options=options, overwrite=True).lost
            right("out.zarr")
            assert zarrbits.convert("in.h5", "az://bucket/out.zarr", storage_options=options, overwrite=True).objects
            assert zarrbits.verify("in.h5", "az://bucket/out.zarr", storage_options=options).equal
        assert s.wrong_signatures == []
    given, secrets = of_storage_options(
        {"account_name": "a", "account_host": "h:1", "client_id": "i", "client_secret": "s"}, "az"
    )
    assert given == {"endpoint": "https://h:1"} and secrets["AZURE_CLIENT_SECRET"] == "s" and secrets["AZURE_STORAGE_KEY"] == ""
    assert of_storage_options({"anon": True}, "az") == ({"sign_request": False}, {})
    with pytest.raises(ValueError, match="account_key"):
        of_storage_options({"account_key": "x"})  # of S3


def test_what_adlfs_is_told_of_references(tmp_path):
    """Its own options and the account of the names; other file systems get no secret of it."""

    def references(*urls):
        keys = {f"v/c/{i}": [url, 0, 1] for i, url in enumerate(urls)}
        (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": {"zarr.json": "{}", **keys}}))
        return read(tmp_path / "refs.json")

    one, other = "abfs://c@one.dfs.core.windows.net/in.h5", "abfs://c@two.dfs.core.windows.net/in.h5"
    given = {"account_key": KEY, "key": "of S3", "client_kwargs": {"endpoint_url": "http://s3"}}
    assert _options_for("abfs", given, references(one, one + "2")) == {"account_key": KEY, "account_name": "one"}
    assert _options_for("az", {"connection_string": "x"}, references("az://c/in.h5")) == {"connection_string": "x"}
    assert "account_key" not in _options_for("s3", given, references("s3://b/in.h5"))
    assert "account_key" not in _options_for("https", given, references("https://example.org/in.h5"))
    with pytest.raises(zarrbits.Error, match="several storage accounts"):
        _options_for("abfs", given, references(one, other))
    with pytest.raises(zarrbits.Error, match='storage account "one", not account_name'):
        _options_for("abfs", {**given, "account_name": "two"}, references(one))


def test_keys_and_a_token(source):
    keys = Keys("python")
    with SignedServer(keys) as s:
        s.objects["in.h5"] = Stored(source)
        options = {"key": keys.access, "secret": keys.secret, "token": keys.token, "client_kwargs": {"endpoint_url": s.url}}
        report = zarrbits.convert("s3://bucket/in.h5", "out.zarr", storage_options=options)
        assert not report.lost and zarrbits.verify("s3://bucket/in.h5", "out.zarr", storage_options=options).equal
        right("out.zarr")
        assert s.wrong_signatures == [] and all("x-amz-security-token" in r.headers for r in s.requests)
        assert zarrbits.plan("s3://bucket/in.h5", storage_options=options).datasets
        assert zarrbits.inspect("s3://bucket/in.h5", storage_options=options).trees
        with pytest.raises(PermissionError):
            zarrbits.convert("s3://bucket/in.h5", "none.zarr", endpoint=s.url)


def test_anonymous(source):
    with SignedServer() as s:
        s.objects["in.h5"] = Stored(source)
        zarrbits.convert("s3://bucket/in.h5", "out.zarr", storage_options={"anon": True, "endpoint_url": s.url})
        right("out.zarr")
        assert s.requests and not any("authorization" in {n.lower() for n in r.headers} for r in s.requests)


def test_headers_and_a_query_are_in_no_list_of_processes(source):
    seen = []

    def look():
        """Everything that other processes may see of the command."""
        while not over.is_set():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "zarrbits":
                        seen.append(b"".join(pathlib.Path(f"/proc/{pid}/{n}").read_bytes() for n in ("cmdline", "environ")))
                except OSError:
                    pass
            time.sleep(0.01)

    with Server(delay=0.1) as s:
        url = s.put("in.h5", source)
        over = threading.Event()
        looker = threading.Thread(target=look)
        looker.start()
        try:
            secret = url + f"?sig={SECRET}"
            zarrbits.convert(secret, "out.zarr", storage_options={"headers": {"Authorization": f"Bearer {SECRET}"}})
            zarrbits.convert(secret, "again.zarr", headers={"X-Token": SECRET})
            pathlib.Path("headers.txt").write_text(f"X-Key: {SECRET}\n", encoding="utf-8")
            spawn = multiprocessing.get_context("spawn")
            with concurrent.futures.ProcessPoolExecutor(1, spawn, initializer=os.chdir, initargs=("/",)) as client:
                options = {"headers": "headers.txt", "client": client, "partitions": 1}
                zarrbits.convert(secret, os.path.abspath("parts.zarr"), **options)
        finally:
            over.set()
            looker.join()
        right("out.zarr")
        right("again.zarr")
        right("parts.zarr")
        assert all(r.query == f"sig={SECRET}" for r in s.requests)
        assert s.requests[0].headers["Authorization"] == f"Bearer {SECRET}" and s.requests[-1].headers["X-Key"] == SECRET
        assert SECRET in [r.headers.get("X-Token") for r in s.requests]
    assert seen and not any(SECRET.encode() in what for what in seen)


def test_headers_that_are_wrong():
    for headers, kind, words in (
        ({"X-Token": f"a\n{SECRET}"}, ValueError, "the header 'X-Token' is not one line; remove"),
        ([f"X-Token: {SECRET}"], TypeError, "`headers` is a mapping of names to values, or the name of a file, not list"),
        (f"X-Token: {SECRET}", FileNotFoundError, "cannot read the file of `headers` .*: No such file or directory; set"),
        (f"X-Token: {SECRET * 20}", OSError, "cannot read the file of `headers` .*: File name too long; set"),
    ):
        for call in zarrbits.inspect, zarrbits.File:
            with pytest.raises(kind, match=words) as refusal:
                call("https://127.0.0.1:1/in.h5", headers=headers)
            assert SECRET not in str(refusal.value)
            if isinstance(refusal.value, OSError):  # nor in what a traceback shows
                assert refusal.value.__cause__ is None and refusal.value.__suppress_context__
    with pytest.raises(ValueError, match="the header 'a' is not one line"):
        zarrbits.inspect("https://127.0.0.1:1/in.h5", storage_options={"headers": {"a": "b\nc: d"}})


@pytest.mark.parametrize(
    "options, words",
    [
        ({"key": "a"}, "only one of"),
        ({"verify": False}, "always verifies"),
        ({"client_kwargs": {"verify": False}}, "always verifies"),
        ({"anonymous": True}, "'anonymous'"),
        ({"client_kwargs": {"proxies": {}}}, "client_kwargs.proxies"),
    ],
)
def test_options_that_are_wrong(options, words):
    with pytest.raises(ValueError, match=words):
        zarrbits.convert("s3://bucket/in.h5", "none.zarr", storage_options=options)
    assert not os.path.exists("none.zarr")


def test_what_options_become():
    options, secrets = of_storage_options(
        {"key": "k", "secret": "s", "profile": "p", "client_kwargs": {"region_name": "r", "verify": "ca.pem"}, "use_ssl": True}
    )
    assert options == {"aws_profile": "p", "ca_file": "ca.pem"}
    assert secrets == {
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "",
        "AWS_PROFILE": "",
        "AWS_REGION": "r",
    }


def test_what_options_of_gcsfs_become(tmp_path):
    file = tmp_path / "credentials.json"
    file.write_text("{}")
    for given, options, secrets in (
        ({"token": "anon"}, {"sign_request": False}, {}),
        ({"token": "google_default", "access": "read_only"}, {}, {}),
        ({"token": str(file)}, {}, {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}),
        ({"token": "ya29.x"}, {}, {"GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.x"}),
        ({"requester_pays": True, "project": "mine"}, {"request_payer": True}, {"GOOGLE_CLOUD_PROJECT": "mine"}),
        ({"endpoint_url": "http://localhost:1"}, {"endpoint": "http://localhost:1"}, {}),
    ):
        assert of_storage_options(given, cloud="gs") == (options, secrets)
    for token in ({"type": "service_account"}, "browser"):
        with pytest.raises(ValueError, match="token that zarrbits does not know"):
            of_storage_options({"token": token}, cloud="gs")
