# SPDX-License-Identifier: BSL-1.0
"""Conversions into and from S3, on real servers at the loopback address: versitygw, which checks every signature, and moto. What is in the bucket
afterwards is byte for byte what a directory holds. ZARRBITS_S3_SERVERS has their commands, "versitygw=PATH moto=PATH"; scripts/ci/interop
sets it."""
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import random
import signal
import socket
import socketserver
import subprocess
import threading
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
    return clean | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"} | more


@pytest.fixture(scope="module", params=["versitygw", "moto"])
def server(request, tmp_path_factory):
    name = request.param
    if name not in SERVERS:
        pytest.skip(f"there is no {name}")
    port, folder = free_port(), tmp_path_factory.mktemp(name)
    if name == "versitygw":
        command = [SERVERS[name], "--access", KEY, "--secret", SECRET, "--region", "us-east-1", "--port", f"127.0.0.1:{port}", "posix", str(folder)]
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
    return boto3.client("s3", endpoint_url=endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1",
                        config=boto3.session.Config(s3={"addressing_style": "path"}, proxies={}))


def content(endpoint, prefix):
    s3 = client(endpoint)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix + "/")
    keys = [o["Key"] for p in pages for o in p.get("Contents", [])]
    return {k[len(prefix) + 1:]: s3.get_object(Bucket=BUCKET, Key=k)["Body"].read() for k in keys}


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in pathlib.Path(folder).rglob("*") if p.is_file()}


def convert(*arguments, **variables):
    return subprocess.run([COMMAND, "convert", "-q", *map(str, arguments)], env=environment(**variables), capture_output=True, text=True, timeout=600)


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


def test_a_bucket_holds_what_a_directory_does(server, source):
    _, endpoint = server
    path, expected = source
    done = convert(path, f"s3://{BUCKET}/deep/er.zarr", "--endpoint", endpoint)
    assert done.returncode == 0, done.stderr
    assert content(endpoint, "deep/er.zarr") == expected


def command(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], env=environment(), capture_output=True, text=True, timeout=600)


def test_verify_and_inspect_read_a_bucket(server, source, tmp_path):
    _, endpoint = server
    small, target = tmp_path / "small.h5", f"s3://{BUCKET}/read/it.zarr"
    with h5py.File(source[0]) as f, h5py.File(small, "w") as out:
        for name in ("w é+&=~*'()% y", "big", "text"):
            f.copy(name, out)
        out.create_dataset("g/d", data=np.arange(60, dtype="f4").reshape(6, 10), chunks=(2, 5), compression="gzip")
    assert convert(small, target, "--endpoint", endpoint).returncode == 0
    done = command("verify", small, target, "--endpoint", endpoint)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "datasets: 4 equal" in done.stdout
    # what inspect says of the bucket is what it says of a directory
    assert convert(small, tmp_path / "out.zarr").returncode == 0
    trees = [json.loads(command("inspect", "--json", store, *options).stdout)["trees"][0]
             for store, options in ((target, ["--endpoint", endpoint]), (tmp_path / "out.zarr", []))]
    assert trees[0]["nodes"] == trees[1]["nodes"] and trees[0]["files"] == trees[1]["files"] and trees[0]["bytes"] == trees[1]["bytes"]
    # and it is looked at: one bit of one chunk
    s3 = client(endpoint)
    chunk = bytearray(s3.get_object(Bucket=BUCKET, Key="read/it.zarr/big/c/0")["Body"].read())
    chunk[12345] ^= 1
    s3.put_object(Bucket=BUCKET, Key="read/it.zarr/big/c/0", Body=bytes(chunk))
    done = command("verify", small, target, "--endpoint", endpoint)
    assert done.returncode == 1 and "differs: /big differs at" in done.stdout
    missing = command("verify", small, f"s3://{BUCKET}/nothing/there", "--endpoint", endpoint)
    assert (missing.returncode, missing.stdout) == (1, "") and "no Zarr v3 store" in missing.stderr and len(missing.stderr.splitlines()) == 1


def test_an_existing_store_is_replaced_only_when_asked(server, source, tmp_path):
    _, endpoint = server
    path, expected = source
    small = tmp_path / "small.h5"
    with h5py.File(small, "w") as f:
        f["old"] = np.arange(10)
    target = f"s3://{BUCKET}/replaced.zarr"
    # this time the server is told by the environment
    assert convert(small, target, AWS_ENDPOINT_URL=endpoint).returncode == 0
    refused = convert(path, target, "--endpoint", endpoint)
    assert refused.returncode == 1 and "exists" in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert "old/zarr.json" in content(endpoint, "replaced.zarr")
    assert convert(path, target, "--endpoint", endpoint, "--overwrite").returncode == 0
    assert content(endpoint, "replaced.zarr") == expected


def test_what_is_no_store_is_not_removed(server, source):
    _, endpoint = server
    client(endpoint).put_object(Bucket=BUCKET, Key="precious/data", Body=b"x")
    done = convert(source[0], f"s3://{BUCKET}/precious", "--endpoint", endpoint, "--overwrite")
    assert done.returncode == 1 and "no Zarr v3 store" in done.stderr
    assert content(endpoint, "precious") == {"data": b"x"}


def test_a_failed_conversion_leaves_nothing(server, tmp_path):
    _, endpoint = server
    damaged = tmp_path / "damaged.h5"
    with h5py.File(damaged, "w") as f:
        d = f.create_dataset("d", (20,), "i4", chunks=(10,), compression="gzip")
        d[:10] = 1
        d.id.write_direct_chunk((10,), b"no zlib stream")
    done = convert(damaged, f"s3://{BUCKET}/damaged.zarr", "--endpoint", endpoint)
    assert done.returncode == 1 and "--keep-going" in done.stderr
    assert content(endpoint, "damaged.zarr") == {}


def test_a_wrong_secret_is_a_sentence_with_403(server, source):
    name, endpoint = server
    if name == "moto":
        pytest.skip("moto checks no signatures")
    done = convert(source[0], f"s3://{BUCKET}/forbidden.zarr", "--endpoint", endpoint, AWS_SECRET_ACCESS_KEY="wrong")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "403" in done.stderr and "SignatureDoesNotMatch" in done.stderr


def test_a_bucket_that_is_not_there_is_a_sentence(server, source):
    _, endpoint = server
    done = convert(source[0], "s3://no-such-bucket/x.zarr", "--endpoint", endpoint)
    assert done.returncode == 1 and "no-such-bucket" in done.stderr and len(done.stderr.splitlines()) == 1


def test_profiles_say_who_we_are_and_where(server, source, tmp_path):
    _, endpoint = server
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = other\naws_secret_access_key = wrong\n\n[lab]\n"
        f"aws_access_key_id={KEY}\n# a comment\naws_secret_access_key = {SECRET}\n")
    (tmp_path / "config").write_text(f"[profile lab]\nregion = us-east-1\ns3 =\n  endpoint_url = http://127.0.0.1:1\nendpoint_url = {endpoint}\n")
    done = convert(source[0], f"s3://{BUCKET}/profile.zarr", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", AWS_REGION="", AWS_PROFILE="lab",
                   AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"), AWS_CONFIG_FILE=str(tmp_path / "config"))
    assert done.returncode == 0, done.stderr
    assert content(endpoint, "profile.zarr") == source[1]


@contextlib.contextmanager
def proxy_that_drops(endpoint, one_in=10):
    """Every tenth request is answered with 503, or its connection closed: before the server hears of it, or after it has done it."""
    counter, lock, kinds = [0, 0], threading.Lock(), random.Random(1)

    class handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with lock:
                counter[0] += 1
                kind = kinds.choice(["503", "close", "close afterwards"]) if counter[0] % one_in == 0 else ""
                counter[1] += kind != ""
            if kind == "503":
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if kind == "close":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            upstream = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=60)
            # the host is signed: the server must see the one that was asked for
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    upstream.putheader(name, value)
            upstream.endheaders(body or None)
            answer = upstream.getresponse()
            data = answer.read()
            upstream.close()
            if kind:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

        def log_message(self, *_):
            pass

    class threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
        daemon_threads = True

    proxy = threaded(("127.0.0.1", 0), handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}", counter
    finally:
        proxy.shutdown()


def test_a_server_that_drops_every_tenth_request_gets_everything_in_the_end(server, source):
    _, endpoint = server
    path, expected = source
    with proxy_that_drops(endpoint) as (proxy, counter):
        done = convert(path, f"s3://{BUCKET}/dropped.zarr", "--endpoint", proxy)
    assert done.returncode == 0, done.stderr
    assert counter[1] > 100
    assert content(endpoint, "dropped.zarr") == expected


def test_a_server_that_is_not_there_is_a_sentence(source):
    done = convert(source[0], f"s3://{BUCKET}/x.zarr", "--endpoint", f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 1 and "cannot be reached" in done.stderr and len(done.stderr.splitlines()) == 1


def test_no_credentials_are_a_sentence(source, tmp_path):
    done = convert(source[0], f"s3://{BUCKET}/x.zarr", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME=str(tmp_path))
    assert done.returncode == 1 and "AWS_ACCESS_KEY_ID" in done.stderr and len(done.stderr.splitlines()) == 1


def test_any_number_of_threads(server, source):
    _, endpoint = server
    path, expected = source
    done = convert(path, f"s3://{BUCKET}/threads.zarr", "--endpoint", endpoint, "--threads", 2)
    assert done.returncode == 0, done.stderr
    assert content(endpoint, "threads.zarr") == expected


def test_shards(server, source, tmp_path):
    """Also such as go in parts."""
    _, endpoint = server
    path, _ = source
    options = ["--shard", "128M", "--threads", 2]
    assert convert(path, tmp_path / "out.zarr", *options).returncode == 0
    done = convert(path, f"s3://{BUCKET}/shards.zarr", "--endpoint", endpoint, *options)
    assert done.returncode == 0, done.stderr
    assert content(endpoint, "shards.zarr") == files(tmp_path / "out.zarr")


def test_a_killed_run_is_gone_on_with(server, source):
    _, endpoint = server
    path, expected = source
    command = [COMMAND, "convert", "-q", str(path), f"s3://{BUCKET}/killed.zarr", "--endpoint", endpoint, "--resume", "--threads", "2"]
    kills = 0
    for delay in (0.3, 0.6, 1.2):
        process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # it and the child that converts
            process.wait()
            kills += 1
            there = content(endpoint, "killed.zarr")
            assert "zarr.json" not in there or there == expected
    assert kills > 0
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 or "no unfinished store" in done.stderr, done.stderr  # it may have been whole before the last kill
    assert content(endpoint, "killed.zarr") == expected


def test_shares_and_finalize(server, source):
    _, endpoint = server
    path, expected = source
    target = f"s3://{BUCKET}/shares.zarr"
    for share in (1, 0, 2):
        done = convert(path, target, "--endpoint", endpoint, "--partition", f"{share}/3")
        assert done.returncode == 0, done.stderr
    assert "zarr.json" not in content(endpoint, "shares.zarr")
    done = subprocess.run([COMMAND, "finalize", "-q", str(path), target, "--endpoint", endpoint], env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert content(endpoint, "shares.zarr") == expected


@pytest.fixture(scope="module")
def remote_source(server, tmp_path_factory):
    """A file in the bucket, and what is made of it where it is a local one."""
    _, endpoint = server
    folder = tmp_path_factory.mktemp("remote")
    with h5py.File(folder / "in.h5", "w") as f:
        f.create_dataset("grp/d", data=np.arange(100, dtype="f4"), chunks=(10,))
        f.create_dataset("deflate", data=np.arange(1000), chunks=(100,), compression="gzip")
        f["contiguous"] = np.arange(1000)
        f["text"] = np.array(["a", "ü"], dtype=h5py.string_dtype())
        f["grp"].attrs["x"] = 1.5
    assert convert(folder / "in.h5", folder / "out.zarr").returncode == 0
    client(endpoint).upload_file(str(folder / "in.h5"), BUCKET, "folder é/in.h5")
    return f"s3://{BUCKET}/folder é/in.h5", files(folder / "out.zarr")


def test_a_source_in_s3(server, remote_source, tmp_path):
    _, endpoint = server
    path, expected = remote_source
    done = convert(path, tmp_path / "out.zarr", "--endpoint", endpoint)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out.zarr") == expected
    done = convert(path + ":/grp/d", tmp_path / "d.zarr", AWS_ENDPOINT_URL=endpoint)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "d.zarr/c/7").read_bytes() == np.arange(70, 80, dtype="f4").tobytes()


def test_a_source_in_s3_reads_no_other_file(server, tmp_path):
    _, endpoint = server
    raw = tmp_path / "raw"
    raw.write_bytes(b"SECRET--")
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["d"] = np.frombuffer(b"SECRET--", "u1")
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("external", (8,), "u1", external=[(str(raw), 0, 8)])
        for i, name in enumerate((str(tmp_path / "other.h5"), "other.h5", f"{endpoint}/{BUCKET}/other.h5")):
            layout = h5py.VirtualLayout((8,), "u1")
            layout[:] = h5py.VirtualSource(name, "d", (8,))
            f.create_virtual_dataset(f"virtual{i}", layout)
    for name in ("in.h5", "other.h5"):
        client(endpoint).upload_file(str(tmp_path / name), BUCKET, name)
    done = convert(f"s3://{BUCKET}/in.h5", tmp_path / "out.zarr", "--endpoint", endpoint)
    assert done.returncode == 3 and str(raw) in done.stderr and "--external" in done.stderr, done.stderr
    assert not any(b"SECRET" in data for data in files(tmp_path / "out.zarr").values())
    done = convert(f"s3://{BUCKET}/in.h5", tmp_path / "out.zarr", "--overwrite", "--endpoint", endpoint, "--external", str(tmp_path))
    assert (tmp_path / "out.zarr/external/c/0").read_bytes() == b"SECRET--" == (tmp_path / "out.zarr/virtual0/c/0").read_bytes(), done.stderr
    assert done.returncode == 3 and "virtual2" in done.stderr


def test_a_source_in_s3_that_changed_is_not_gone_on_with(server, tmp_path):
    _, endpoint = server
    for value in (1, 2):
        with h5py.File(tmp_path / "in.h5", "w") as f:
            f.create_dataset("d", data=np.full(100, value), chunks=(10,))
        client(endpoint).upload_file(str(tmp_path / "in.h5"), BUCKET, "changes.h5")
        done = convert(f"s3://{BUCKET}/changes.h5", tmp_path / "out.zarr", "--endpoint", endpoint, "--partition", f"{value - 1}/2")
        assert done.returncode == value - 1, done.stderr
    assert "before its source changed" in done.stderr


def test_a_source_in_s3_that_cannot_be_had_is_a_sentence(server, remote_source, tmp_path):
    name, endpoint = server
    remote, _ = remote_source
    wrong = [({}, remote + "x", "no such object"), ({"AWS_SESSION_TOKEN": "t"}, remote, "session token"), ({}, f"s3://{BUCKET}", "names a bucket")]
    if name != "moto":  # which checks no signatures
        wrong.append(({"AWS_SECRET_ACCESS_KEY": "wrong"}, remote, "403"))
    for variables, path, words in wrong:
        done = convert(path, tmp_path / "out.zarr", "--endpoint", endpoint, **variables)
        assert done.returncode == 1 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert not (tmp_path / "out.zarr").exists()
