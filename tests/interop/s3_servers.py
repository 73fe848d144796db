# SPDX-License-Identifier: BSL-1.0
"""Real S3 servers at the loopback address, and what is in them.
ZARRBITS_S3_SERVERS has their commands, "versitygw=PATH moto=PATH"; scripts/ci/interop sets it."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

import h5py
import numpy as np
import pytest

boto3 = pytest.importorskip("boto3")

COMMAND = os.environ["ZARRBITS_COMMAND"]
SERVERS = dict(s.split("=", 1) for s in os.environ.get("ZARRBITS_S3_SERVERS", "").split())
KEY, SECRET = "zarrbits-test", "a/secret+with=signs"
BUCKET = "bucket"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and "proxy" not in k.lower()}
    clean["AWS_EC2_METADATA_DISABLED"] = "true"
    return clean | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"} | more


@pytest.fixture(scope="module", params=["versitygw", "moto"])
def server(request, tmp_path_factory):
    name = request.param
    if name not in SERVERS:
        pytest.skip(f"there is no {name}")
    port, folder = free_port(), tmp_path_factory.mktemp(name)
    if name == "versitygw":
        command = [
            SERVERS[name],
            "--access",
            KEY,
            "--secret",
            SECRET,
            "--region",
            "us-east-1",
            "--port",
            f"127.0.0.1:{port}",
            "posix",
            str(folder),
        ]
    else:
        command = [SERVERS[name], "-H", "127.0.0.1", "-p", str(port)]
    with open(folder.parent / f"{name}.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, f"{name} ended: {(folder.parent / f'{name}.log').read_text()[-2000:]}"
            time.sleep(0.1)
        endpoint = f"http://127.0.0.1:{port}"
        client(endpoint).create_bucket(Bucket=BUCKET)
        yield name, endpoint
    finally:
        process.terminate()
        process.wait()


def client(endpoint):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
        config=boto3.session.Config(s3={"addressing_style": "path"}, proxies={}),
    )


def content(endpoint, prefix):
    s3 = client(endpoint)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix + "/")
    keys = [o["Key"] for p in pages for o in p.get("Contents", [])]
    return {k[len(prefix) + 1 :]: s3.get_object(Bucket=BUCKET, Key=k)["Body"].read() for k in keys}


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in pathlib.Path(folder).rglob("*") if p.is_file()}


def convert(*arguments, **variables):
    return subprocess.run(
        [COMMAND, "convert", "-q", *map(str, arguments)],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Names that need percent-encoding, 1,100 chunks (more than one page of a list), and one chunk of several parts."""
    folder = tmp_path_factory.mktemp("source")
    path = folder / "in.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("grp/d", data=np.arange(1100, dtype="f4"), chunks=(1,))
        f.create_dataset("w é+&=~*'()% y", data=np.arange(64, dtype="i4"), chunks=(16,))
        f.create_dataset("big", data=np.random.default_rng(1).integers(0, 255, 70 << 20, dtype="u1"), chunks=(70 << 20,))
        f["text"] = np.array(["a", "ü"], dtype=h5py.string_dtype())
        f["grp"].attrs["x"] = 1.5
    done = convert(path, folder / "out.zarr")
    assert done.returncode == 0, done.stderr
    return path, files(folder / "out.zarr")
