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
import shutil
import socket
import subprocess
import time
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
    """The variables by which its container is reached."""
    if "ZARRBITS_AZURITE" not in os.environ:
        pytest.skip("there is no Azurite")
    folder, port = tmp_path_factory.mktemp("azurite"), free_port()
    words = ["--silent", "--skipApiVersionCheck", "--blobPort", str(port), "--location", str(folder)]
    with started([*os.environ["ZARRBITS_AZURITE"].split(), *words], port, folder / "log"):
        url = f"http://127.0.0.1:{port}/{ACCOUNT}"
        connection = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url};"
        create_container(port)
        yield {"AZURE_STORAGE_CONNECTION_STRING": connection}


def create_container(port):
    """By the shared key, as https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key has it."""
    date = email.utils.formatdate(usegmt=True)
    path = f"/{ACCOUNT}/{CONTAINER}"
    text = "PUT\n\n\n\n\n\n\n\n\n\n\n\n" + f"x-ms-date:{date}\nx-ms-version:2020-10-02\n/{ACCOUNT}{path}\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": "2020-10-02", "Authorization": f"SharedKey {ACCOUNT}:{signature}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}?restype=container", method="PUT", headers=headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        assert answer.status == 201


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


def test_a_container_holds_what_a_directory_does(azure, source, tmp_path):
    z("convert", "-q", source, tmp_path / "out.zarr")
    target = f"az://{CONTAINER}/deep/er.zarr"
    z("convert", "-q", source, target, **azure)
    assert "equal" in z("verify", source, target, **azure).stdout
    z("convert", "-q", target, tmp_path / "back.zarr", **azure)
    assert files(tmp_path / "back.zarr") == files(tmp_path / "out.zarr")
    z("check", target, **azure)
    assert "--overwrite" in z("convert", "-q", source, target, status=1, **azure).stderr
    z("convert", "-q", "--overwrite", source, target, **azure)
    assert "equal" in z("verify", source, target, **azure).stdout


def test_a_store_in_a_container_grows(azure, days):
    target = f"az://{CONTAINER}/days.zarr"
    z("convert", "-q", "--concat", "t", days[0], target, **azure)
    z("convert", "-q", "--append", "t", *days[1:], target, **azure)
    assert "equal" in z("verify", "--concat", "t", *days, target, **azure).stdout


def test_files_in_a_container(azure, source, tmp_path):
    """With the library of Azure's own command line, which wrote them."""
    blob = pytest.importorskip("azure.storage.blob")
    service = blob.BlobServiceClient.from_connection_string(azure["AZURE_STORAGE_CONNECTION_STRING"])
    service.get_blob_client(CONTAINER, "in.h5").upload_blob(source.read_bytes())
    z("convert", "-q", f"az://{CONTAINER}/in.h5", tmp_path / "out.zarr", **azure)
    z("verify", source, tmp_path / "out.zarr")


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    """A folder whose files are objects, and the variables by which they are reached."""
    if "ZARRBITS_FAKE_GCS" not in os.environ:
        pytest.skip("there is no fake-gcs-server")
    folder, port = tmp_path_factory.mktemp("gcs"), free_port()
    (folder / CONTAINER).mkdir()
    url = f"http://127.0.0.1:{port}"
    words = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "filesystem"]
    words += ["-filesystem-root", str(folder), "-public-host", f"127.0.0.1:{port}", "-external-url", url]
    with started([os.environ["ZARRBITS_FAKE_GCS"], *words], port, folder / "log"):
        yield folder / CONTAINER, {"STORAGE_EMULATOR_HOST": url}


def test_files_at_google(google, source, tmp_path):
    folder, variables = google
    shutil.copy(source, folder / "in.h5")
    z("convert", "-q", f"gs://{CONTAINER}/in.h5", tmp_path / "out.zarr", **variables)
    z("verify", source, tmp_path / "out.zarr")
    z("verify", f"gs://{CONTAINER}/in.h5", tmp_path / "out.zarr", **variables)
    z("convert", "-q", "--virtual", f"gs://{CONTAINER}/in.h5", tmp_path / "refs.json", **variables)
    assert "equal" in z("verify", f"gs://{CONTAINER}/in.h5", tmp_path / "refs.json", **variables).stdout
