# SPDX-License-Identifier: BSL-1.0
"""convert, verify and export end with the same status when the same thing fails on the way to a server."""

import contextlib
import os
import pathlib
import re
import ssl

import h5py
import numpy as np
import pytest

import harness
from cloud_servers import KINDS, VARIABLES, Cloud
from http_server import Answer, Server, certificate
from s3_conversion import environment

MIB = 1 << 20
LATE = 16 * MIB  # no command's first request goes so far
FAILED = 1


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with h5py.File(folder / "in.h5", "w") as f:
        noise = np.random.default_rng(1).integers(0, 255, 2 * LATE, dtype="u1")
        f.create_dataset("a/x", data=noise, chunks=(2 * MIB,))
    harness.convert("-q", folder / "in.h5", folder / "whole.zarr")
    return folder


@pytest.fixture(autouse=True)
def here(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("in.h5", "whole.zarr"):
        pathlib.Path(name).symlink_to(made / name)


@contextlib.contextmanager
def absent(cloud, _):
    if cloud.kind == "https":
        del cloud.server.files["in.h5"]
    else:
        del cloud.server.objects["in.h5"]
    yield {}


def status(number):
    @contextlib.contextmanager
    def with_status(cloud, _):
        cloud.server.fault = lambda r, go: cloud.answer(number, b"<html>no</html>")
        yield {}

    return with_status


@contextlib.contextmanager
def proxy_login(cloud, _):
    with Server(lambda r, go: Answer(407, b"", {"Proxy-Authenticate": 'Basic realm="x"'})) as proxy:
        yield {"http_proxy": proxy.url}


@contextlib.contextmanager
def nobody(cloud, _):
    cloud.server.http.shutdown()
    cloud.server.http.server_close()
    yield {}


@contextlib.contextmanager
def unknown_certificate(cloud, folder):
    files = certificate(folder, "IP:127.0.0.1")
    if not files:
        pytest.skip("no openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    cloud.server.http.socket = context.wrap_socket(cloud.server.http.socket, server_side=True)
    cloud.server.url = cloud.server.url.replace("http:", "https:")
    yield {}


def later(change):
    """Once the first part was read, the file changes, or the server's answers do."""

    @contextlib.contextmanager
    def with_change(cloud, _):
        def fault(r, go):
            first = int(r.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
            return change(cloud, go) if first >= LATE else go()

        cloud.server.fault = fault
        yield {}

    return with_change


def other_content(cloud, go):
    with cloud.server.lock:
        if not hasattr(cloud, "other"):
            body = pathlib.Path("in.h5").read_bytes()
            cloud.other = cloud.put("in.h5", body[:-1] + bytes([body[-1] ^ 1]))
    return go()


def gone(cloud, go):
    (cloud.server.files if cloud.kind == "https" else cloud.server.objects).pop("in.h5", None)
    return go()


def without_etag(cloud, go):
    answer = go()
    answer.headers.pop("ETag", None)
    return answer


def compressed(cloud, go):
    answer = go()
    answer.headers["Content-Encoding"] = "gzip"
    return answer


def without_total(cloud, go):
    answer = go()
    answer.headers["Content-Range"] = answer.headers["Content-Range"].split("/")[0] + "/*"
    return answer


def another_range(cloud, go):
    answer = go()
    first, rest = answer.headers["Content-Range"].removeprefix("bytes ").split("-", 1)
    last, total = rest.split("/")
    answer.headers["Content-Range"] = f"bytes {int(first) - 1}-{int(last) - 1}/{total}"
    return answer


def without_ranges(cloud, go):
    headers = {k: v for k, v in go().headers.items() if k not in ("Content-Range", "Content-Length")}
    return cloud.answer(200, pathlib.Path("in.h5").read_bytes(), headers)


FAULTS = {
    "absent": (absent, "no such"),
    "401": (status(401), "401"),
    "403": (status(403), "403"),
    "500": (status(500), "500"),
    "proxy": (proxy_login, "407"),
    "nobody": (nobody, "cannot be reached"),
    "certificate": (unknown_certificate, "certificate"),
    "later: changed": (later(other_content), "changed while it was read"),
    "later: gone": (later(gone), "changed while it was read|no such"),
    "later: without ETag": (later(without_etag), "changed while it was read"),
    "later: compressed": (later(compressed), "compresses what it sends"),
    "later: without total": (later(without_total), "were wanted"),
    "later: another range": (later(another_range), "were wanted"),
    "later: without ranges": (later(without_ranges), "does not send parts of files"),
}


def result(kind, fault, folder, fill, *command):
    """The status of a command, and what it says; it leaves nothing that looks whole. "URL": of the file or the store."""
    with Cloud(kind) as cloud:
        url = fill(cloud)
        with FAULTS[fault][0](cloud, folder) as variables:
            if kind == "https":
                url = cloud.name(url)
            options = [] if kind == "https" else ["--endpoint", cloud.server.url]
            words = [url if word == "URL" else word for word in command]
            done = harness.run(*words, *options, status=None, env=environment(**cloud.variables, **variables))
    assert not any(pathlib.Path(name).exists() for name in ("out.zarr/zarr.json", "out.h5"))
    said = (done.stdout + done.stderr).replace(str(cloud.server.port), "PORT")
    return done.returncode, re.sub(r"after \d+ ms", "after N ms", said)


def file(cloud):
    cloud.put("in.h5", pathlib.Path("in.h5").read_bytes())
    return "in.h5" if cloud.kind == "https" else cloud.name("in.h5")


def store(cloud):
    for folder, _, names in os.walk("whole.zarr", followlinks=True):
        for name in names:
            path = os.path.join(folder, name)
            cloud.put(path, pathlib.Path(path).read_bytes())
    return "whole.zarr" if cloud.kind == "https" else cloud.name("whole.zarr")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_source(kind, fault, tmp_path):
    found = [
        result(kind, fault, tmp_path, file, *command)
        for command in (["convert", "-q", "URL", "out.zarr"], ["verify", "URL", "whole.zarr"])
    ]
    assert [status for status, _ in found] == [FAILED] * 2, found
    assert all(re.search(FAULTS[fault][1], text) for _, text in found), found
    if not fault.startswith("later"):  # verify counts what it could not compare
        assert found[0] == found[1]


@pytest.mark.parametrize("fault", ["401", "403", "500", "proxy", "nobody", "certificate"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_store(kind, fault, tmp_path):
    found = [
        result(kind, fault, tmp_path, store, *command)
        for command in (["convert", "-q", "URL", "out.zarr"], ["verify", "in.h5", "URL"], ["export", "-q", "URL", "out.h5"])
    ]
    assert [status for status, _ in found] == [FAILED] * 3, found
    assert all(re.search(FAULTS[fault][1], text) and len(text.splitlines()) == 1 for _, text in found), found


@pytest.mark.parametrize("kind, names", [("s3", "AWS_ACCESS_KEY_ID"), ("gs", "GS_ACCESS_KEY_ID"), ("az", "AZURE_STORAGE_KEY")])
def test_a_password_in_the_url_of_a_server(kind, names):
    """It is not repeated; the variables are those of the cloud."""
    variables = environment(**VARIABLES[kind])
    options = ["--endpoint", "https://user:secret@host.invalid"]
    said = harness.run("convert", f"{kind}://bucket/in.h5", "out.zarr", *options, status=None, env=variables)
    assert said.returncode == 2 and "secret" not in said.stderr, said
    assert names in said.stderr and said.stderr.count("ACCESS_KEY_ID") == (0 if kind == "az" else 1), said.stderr
