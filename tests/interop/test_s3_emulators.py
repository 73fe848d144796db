# SPDX-License-Identifier: BSL-1.0
"""az:// on Azurite, and sources at gs:// on fake-gcs-server: other programs' words for objects, blocks, lists and conditions.
ZARRBITS_AZURITE and ZARRBITS_FAKE_GCS are their commands; scripts/ci/interop sets them.

fake-gcs-server checks no signatures, and has of the XML interface only what reading takes: no conditions of writes (all of that
is in tests/convert/test_gs.py)."""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import os
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import h5py
import numpy as np
import pytest

from s3_servers import COMMAND, files, free_port

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # Azurite's own
ACCOUNT, CONTAINER = "devstoreaccount1", "bucket"
CLOUDS = ("AWS_", "GOOGLE_", "GS_", "GCE_", "STORAGE_EMULATOR_", "AZURE_")


def z(*arguments, status=0, **variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(CLOUDS) and "proxy" not in k.lower()}
    words = [COMMAND, *map(str, arguments)]
    done = subprocess.run(words, env={**clean, **variables}, capture_output=True, text=True, timeout=600)
    assert done.returncode == status, (words, done.stdout[-1000:], done.stderr)
    return done


@contextlib.contextmanager
def started(command, port, log):
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, log.read_text()[-2000:]
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def azure(tmp_path_factory):
    """Its port, and the variables by which its container is reached."""
    if "ZARRBITS_AZURITE" not in os.environ:
        pytest.skip("there is no Azurite")
    folder, port = tmp_path_factory.mktemp("azurite"), free_port()
    words = ["--silent", "--skipApiVersionCheck", "--blobPort", str(port), "--location", str(folder)]
    with started([*os.environ["ZARRBITS_AZURITE"].split(), *words], port, folder / "log"):
        url = f"http://127.0.0.1:{port}/{ACCOUNT}"
        connection = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url};"
        put_in_azure(port, CONTAINER, query="restype=container")
        yield port, {"AZURE_STORAGE_CONNECTION_STRING": connection}


def send(method, url, body=b"", headers=None):
    request = urllib.request.Request(url, data=body or None, method=method, headers=headers or {})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        assert answer.status in (200, 201)


def put_in_azure(port, path, body=b"", query="", **more):
    """By the shared key, as https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key has it."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2020-10-02", **more}
    kind = "application/octet-stream" if body else ""
    lines = ["PUT", "", "", str(len(body)) if body else "", "", kind, "", "", "", "", "", ""]
    lines += sorted(f"{name}:{value}" for name, value in headers.items())
    lines += [f"/{ACCOUNT}/{ACCOUNT}/{path}", *(query.replace("=", ":"),) * bool(query)]
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", **({"Content-Type": kind} if kind else {})}
    send("PUT", f"http://127.0.0.1:{port}/{ACCOUNT}/{path}" + ("?" + query if query else ""), body, headers)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("w é+&=~*'()% y", data=np.arange(64, dtype="i4"), chunks=(16,), compression="gzip")
        large = np.random.default_rng(1).integers(0, 255, 17 << 20, dtype="u1")
        f.create_dataset("large", data=large, chunks=(17 << 20,))
        f.create_dataset("g/many", data=np.arange(1100), chunks=(1,))
        f.attrs["title"] = "x"
    return path


@pytest.fixture
def days(tmp_path):
    paths = [tmp_path / f"day{i}.h5" for i in range(3)]
    for i, day in enumerate(paths):
        with h5py.File(day, "w") as f:
            t = f.create_dataset("t", data=np.arange(4) + 4 * i, maxshape=(None,), chunks=(4,))
            t.make_scale("t")
            f.create_dataset("v", data=np.arange(4.0) + i, maxshape=(None,), chunks=(4,)).dims[0].attach_scale(t)
    return paths


def test_a_container_holds_what_a_directory_does(azure, source, days, tmp_path):
    _, variables = azure
    z("convert", "-q", source, tmp_path / "out.zarr")
    target = f"az://{CONTAINER}/deep/er.zarr"
    z("convert", "-q", source, target, **variables)
    assert "equal" in z("verify", source, target, **variables).stdout
    z("convert", "-q", target, tmp_path / "back.zarr", **variables)
    assert files(tmp_path / "back.zarr") == files(tmp_path / "out.zarr")
    z("check", target, **variables)
    assert "--overwrite" in z("convert", "-q", source, target, status=1, **variables).stderr
    z("convert", "-q", "--overwrite", days[0], target, **variables)
    assert "equal" in z("verify", days[0], target, **variables).stdout


def test_a_store_in_a_container_grows(azure, days):
    _, variables = azure
    target = f"az://{CONTAINER}/days.zarr"
    z("convert", "-q", "--concat", "t", days[0], target, **variables)
    z("convert", "-q", "--append", "t", *days[1:], target, **variables)
    assert "equal" in z("verify", "--concat", "t", *days, target, **variables).stdout


def test_files_in_a_container(azure, source, tmp_path):
    port, variables = azure
    put_in_azure(port, f"{CONTAINER}/in.h5", source.read_bytes(), **{"x-ms-blob-type": "BlockBlob"})
    name = f"az://{CONTAINER}/in.h5"
    z("convert", "-q", name, tmp_path / "out.zarr", **variables)
    z("verify", source, tmp_path / "out.zarr")
    z("convert", "-q", "--virtual", name, tmp_path / "refs.json", **variables)
    assert "equal" in z("verify", name, tmp_path / "refs.json", **variables).stdout


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    """Its URL."""
    if "ZARRBITS_FAKE_GCS" not in os.environ:
        pytest.skip("there is no fake-gcs-server")
    port, folder = free_port(), tmp_path_factory.mktemp("gcs")
    url = f"http://127.0.0.1:{port}"
    words = [
        "-scheme",
        "http",
        "-host",
        "127.0.0.1",
        "-port",
        str(port),
        "-backend",
        "memory",
        "-public-host",
        f"127.0.0.1:{port}",
    ]
    with started([os.environ["ZARRBITS_FAKE_GCS"], *words], port, folder / "log"):
        send("POST", f"{url}/storage/v1/b", b'{"name": "bucket"}', {"Content-Type": "application/json"})
        yield url


def test_files_at_google(google, source, days, tmp_path):
    variables = {"STORAGE_EMULATOR_HOST": google}
    for name, path in (("in.h5", source), *((f"days/{i}.h5", day) for i, day in enumerate(days))):
        where = f"{google}/upload/storage/v1/b/{CONTAINER}/o?uploadType=media&name={urllib.parse.quote(name, safe='')}"
        send("POST", where, path.read_bytes(), {"Content-Type": "application/octet-stream"})
    name = f"gs://{CONTAINER}/in.h5"
    z("convert", "-q", name, tmp_path / "out.zarr", **variables)
    z("verify", source, tmp_path / "out.zarr")
    z("verify", name, tmp_path / "out.zarr", **variables)
    z("convert", "-q", "--virtual", name, tmp_path / "refs.json", **variables)
    assert "equal" in z("verify", name, tmp_path / "refs.json", **variables).stdout
    z("convert", "-q", "--concat", "t", f"gs://{CONTAINER}/days/*.h5", tmp_path / "days.zarr", **variables)
    z("verify", "--concat", "t", *days, tmp_path / "days.zarr")
