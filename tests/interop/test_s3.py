# SPDX-License-Identifier: BSL-1.0
"""Conversions into and from S3, on real servers at the loopback address: versitygw, which checks every signature, and moto.
What is in the bucket afterwards is byte for byte what a directory holds.
s3_servers.py starts them, test_s3_sources.py has sources there."""

import contextlib
import http.client
import http.server
import json
import os
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

from s3_servers import BUCKET, COMMAND, KEY, SECRET, client, content, convert, environment, files, free_port

pytest_plugins = ["s3_servers"]  # its fixtures


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
    # inspect shows the same for the bucket as for a directory
    assert convert(small, tmp_path / "out.zarr").returncode == 0
    trees = [
        json.loads(command("inspect", "--json", store, *options).stdout)["trees"][0]
        for store, options in ((target, ["--endpoint", endpoint]), (tmp_path / "out.zarr", []))
    ]
    assert (
        trees[0]["nodes"] == trees[1]["nodes"]
        and trees[0]["files"] == trees[1]["files"]
        and trees[0]["bytes"] == trees[1]["bytes"]
    )
    # and it is looked at: one bit of one chunk
    s3 = client(endpoint)
    chunk = bytearray(s3.get_object(Bucket=BUCKET, Key="read/it.zarr/big/c/0")["Body"].read())
    chunk[12345] ^= 1
    s3.put_object(Bucket=BUCKET, Key="read/it.zarr/big/c/0", Body=bytes(chunk))
    done = command("verify", small, target, "--endpoint", endpoint)
    assert done.returncode == 1 and "differs: /big differs at" in done.stdout
    missing = command("verify", small, f"s3://{BUCKET}/nothing/there", "--endpoint", endpoint)
    assert (
        (missing.returncode, missing.stdout) == (1, "")
        and "not a Zarr v3 store" in missing.stderr
        and len(missing.stderr.splitlines()) == 1
    )


@pytest.mark.parametrize("options", [["--consolidate"], ["--shard", "16,6"]], ids=" ".join)
def test_a_store_grows_as_in_a_directory(server, options, tmp_path):
    _, endpoint = server
    name = "grown" + "-".join(options).replace(",", "-")
    paths = [tmp_path / f"{i}.h5" for i in range(3)]
    for path, first, count in zip(paths, (0, 10, 23), (10, 13, 17)):
        with h5py.File(path, "w") as f:
            t = f.create_dataset("t", data=np.arange(first, first + count), chunks=(4,), maxshape=(None,))
            t.make_scale("t")
            rows = f.create_dataset(
                "w é+&=~*'() y/d", data=np.ones((count, 6)) * t[:][:, None], chunks=(4, 3), maxshape=(None, 6)
            )
            rows.dims[0].attach_scale(t)
    local, target = tmp_path / "out.zarr", f"s3://{BUCKET}/{name}"
    for how, path in zip(("--concat", "--append", "--append"), paths):
        for store, more in ((local, []), (target, ["--endpoint", endpoint])):
            done = convert(how, "t", path, store, *more, *(options if how == "--concat" else []))
            assert (done.returncode, done.stderr) == (0, "")
        assert content(endpoint, name) == files(local)
    done = command("verify", "--concat", "t", *paths, target, "--endpoint", endpoint)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_existing_store_is_replaced_only_when_asked(server, source, tmp_path):
    _, endpoint = server
    path, expected = source
    small = tmp_path / "small.h5"
    with h5py.File(small, "w") as f:
        f["old"] = np.arange(10)
    target = f"s3://{BUCKET}/replaced.zarr"
    # this time the environment names the server
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
    assert done.returncode == 1 and "not a Zarr store" in done.stderr
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
        f"aws_access_key_id={KEY}\n# a comment\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / "config").write_text(
        f"[profile lab]\nregion = us-east-1\ns3 =\n  endpoint_url = http://127.0.0.1:1\nendpoint_url = {endpoint}\n"
    )
    done = convert(
        source[0],
        f"s3://{BUCKET}/profile.zarr",
        AWS_ACCESS_KEY_ID="",
        AWS_SECRET_ACCESS_KEY="",
        AWS_REGION="",
        AWS_PROFILE="lab",
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"),
        AWS_CONFIG_FILE=str(tmp_path / "config"),
    )
    assert done.returncode == 0, done.stderr
    assert content(endpoint, "profile.zarr") == source[1]


@contextlib.contextmanager
def proxy_that_drops(endpoint, one_in=10):
    """Every tenth request is answered with 503, or its connection closed:
    before the server hears of it, or after it has done it."""
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
            upstream = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=600)
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
            self.send_header(
                "Content-Length", answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(data))
            )
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
    command = [
        COMMAND,
        "convert",
        "-q",
        str(path),
        f"s3://{BUCKET}/killed.zarr",
        "--endpoint",
        endpoint,
        "--resume",
        "--threads",
        "2",
    ]
    # a killed run counts as alive for this long: nothing else distinguishes it from one that is stopped
    patient = environment() | {"ZARRBITS_S3_PATIENCE": "3"}
    kills = 0
    for delay in (0.3, 0.6, 1.2):
        process = subprocess.Popen(command, env=patient, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # it and the child that converts
            process.wait()
            kills += 1
            time.sleep(5)
            there = content(endpoint, "killed.zarr")
            assert "zarr.json" not in there or there == expected
    assert kills > 0
    done = subprocess.run(command, env=patient, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 or "unfinished store" in done.stderr, done.stderr  # it may have been whole before the last kill
    assert content(endpoint, "killed.zarr") == expected


def test_shares_and_finalize(server, source):
    _, endpoint = server
    path, expected = source
    target = f"s3://{BUCKET}/shares.zarr"
    for share in (1, 0, 2):
        done = convert(path, target, "--endpoint", endpoint, "--partition", f"{share}/3")
        assert done.returncode == 0, done.stderr
    assert "zarr.json" not in content(endpoint, "shares.zarr")
    done = subprocess.run(
        [COMMAND, "finalize", "-q", str(path), target, "--endpoint", endpoint],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert content(endpoint, "shares.zarr") == expected
