# SPDX-License-Identifier: BSL-1.0
"""Responses of S3 servers, and of proxies before them, that do not belong to the request: the store is the right one, or there
is none and one sentence says why. test_https_faults.py has the same for sources over HTTP."""

import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from harness import COMMAND, contents, same
from promises import promise
from s3_conversion import environment, run
from s3_server import BUCKET, Answer, Server, Stored, error
from stopped_runs import stopped_and_replaced

pytest_plugins = ["stopped_runs"]  # its fixture

SOURCE = f"s3://{BUCKET}/in.h5"
STORE = f"s3://{BUCKET}/in.zarr"
PAGE = 1 << 20
HTML = Answer(404, b"<html><body>Not Found</body></html>", {"Content-Type": "text/html"})


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server():
    """A file of 6 MiB in chunks that differ, the store that it makes, and that store in S3 without two of its chunks."""
    with h5py.File("in.h5", "w") as f:
        values = np.arange(3 << 19, dtype="i4")
        f.create_dataset("a", data=values, chunks=(1 << 18,))
    assert run("convert", "-q", "in.h5", "whole.zarr").returncode == 0
    with Server() as s, open("in.h5", "rb") as f:
        s.objects["in.h5"] = Stored(f.read(), modified=time.time() - 3600)
        for key, body in contents("whole.zarr").items():
            s.objects["in.zarr/" + key] = Stored(body)
        yield s
        assert s.wrong_signatures == []


def convert(server, *options, status=0):
    shutil.rmtree("out.zarr", ignore_errors=True)
    done = run("convert", SOURCE, "out.zarr", "--endpoint", server.url, *options, ZARRBITS_S3_PATIENCE="2")
    assert done.returncode == status, (done.returncode, done.stderr)
    return done.stderr


def is_beyond(r):
    """Asks for bytes of the source that the first request did not bring."""
    return r.key == "in.h5" and int(r.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0]) >= PAGE


def changed_range(change):
    def fault(r, go):
        answer = go()
        if is_beyond(r) and answer.status == 206:
            first, last = (int(n) for n in answer.headers["Content-Range"].split()[1].split("/")[0].split("-"))
            change(answer.headers, first, last, answer.headers["Content-Range"].split("/")[1])
        return answer

    return fault


def another(headers, first, last, total):
    headers["Content-Range"] = f"bytes {first + 16}-{last + 16}/{total}"


def backwards(headers, first, last, total):
    headers["Content-Range"] = f"bytes {last}-{first}/{total}"


def absent(headers, first, last, total):
    del headers["Content-Range"]


@pytest.mark.parametrize("change", [another, backwards, absent])
def test_ranges_that_were_not_requested(server, change):
    server.fault = changed_range(change)
    said = convert(server, status=1)
    assert "were wanted" in said and "in.h5" in said, said


def test_a_wrong_range_once_is_requested_again(server):
    seen = []

    def change(*what):
        if not seen:
            seen.append(another(*what))

    server.fault = changed_range(change)
    convert(server)
    same("whole.zarr", "out.zarr")


def test_a_wrong_range_of_a_chunk_of_a_store(server):
    def fault(r, go):
        answer = go()
        if r.key == "in.zarr/a/c/2" and answer.status == 206:
            first, last = (int(n) for n in answer.headers["Content-Range"].split()[1].split("/")[0].split("-"))
            another(answer.headers, first, last, answer.headers["Content-Range"].split("/")[1])
        return answer

    server.fault = fault
    done = run("export", STORE, "out.h5", "--endpoint", server.url)
    assert done.returncode == 1 and "were wanted" in done.stderr, done.stderr


def without(*names):
    """A server that does not send these headers, and replaces the source once the first bytes of it were read."""

    def make(server, replaces):
        replaced = []

        def fault(r, go):
            if replaces and is_beyond(r) and not replaced:
                body = server.objects["in.h5"].body
                replaced.append(Stored(body[:PAGE] + bytes(len(body) - PAGE)))
                server.objects["in.h5"] = replaced[0]
            answer = go()
            for name in names:
                answer.headers.pop(name, None)
            return answer

        return fault

    return make


@promise("Every response of a source is")
@pytest.mark.parametrize("replaces", [True, False])
def test_the_time_of_a_change_where_there_is_no_etag(server, replaces):
    server.fault = without("ETag")(server, replaces)
    said = convert(server, status=1 if replaces else 0)
    assert ("changed while it was read" in said) == replaces, said
    assert "goes unnoticed" not in said


def test_a_server_that_shows_no_change_is_warned_of(server):
    server.fault = without("ETag", "Last-Modified")(server, False)
    said = convert(server)
    assert said.count("goes unnoticed") == 1, said
    same("whole.zarr", "out.zarr")


def test_a_list_without_etags_is_checked_by_the_times(server):
    """Of a Zarr store in S3: the time in the list is that of the object."""

    def fault(r, go):
        answer = go()
        if r.kind == "list":
            answer.body = b"<ETag></ETag>".join(
                part.split(b"</ETag>")[-1] if i else part for i, part in enumerate(answer.body.split(b"<ETag>"))
            )
        answer.headers.pop("ETag", None)
        return answer

    server.fault = fault
    done = run("convert", STORE, "out.zarr", "--endpoint", server.url)
    assert done.returncode == 0, done.stderr
    same("whole.zarr", "out.zarr")

    def replaced(r, go):
        if r.key == "in.zarr/a/c/3" and r.kind == "get":
            there = server.objects[r.key]
            server.objects[r.key] = Stored(bytes(len(there.body)), modified=there.modified + 100)
        return fault(r, go)

    server.fault = replaced
    done = run("convert", STORE, "other.zarr", "--endpoint", server.url)
    assert done.returncode == 1 and "chang" in done.stderr, done.stderr


NOT_ABSENT = {
    "html": lambda: HTML,
    "no body": lambda: Answer(404),
    "bucket": lambda: error(404, "NoSuchBucket"),
    "another code": lambda: error(404, "NoSuchTenant"),
}


@promise("An object is absent only if")
@pytest.mark.parametrize("which", NOT_ABSENT)
@pytest.mark.parametrize("verb", ["export", "convert", "verify", "include"])
def test_a_404_that_is_not_of_the_object_is_no_absent_chunk(server, which, verb):
    """It comes from a proxy, or says something else: never the fill value."""
    server.fault = lambda r, go: NOT_ABSENT[which]() if r.key == "in.zarr/a/c/3" else go()
    words = {
        "export": ["export", STORE, "out.h5"],
        "convert": ["convert", STORE, "out.zarr"],
        "verify": ["verify", "in.h5", STORE],
        "include": ["export", STORE, "out.h5", "--include", "/a"],
    }[verb]
    done = run(*words, "--endpoint", server.url)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and ("404" in said or "no S3 bucket" in said), said


def test_an_absent_chunk_is_one_that_was_never_written(server):
    del server.objects["in.zarr/a/c/3"]
    done = run("export", STORE, "out.h5", "--endpoint", server.url)
    assert done.returncode == 0, done.stderr
    with h5py.File("out.h5") as f:
        assert not f["a"][3 << 18 : 4 << 18].any() and f["a"][(4 << 18)] == 4 << 18


@pytest.mark.parametrize("which", NOT_ABSENT)
def test_a_404_for_a_source(server, which):
    server.fault = lambda r, go: NOT_ABSENT[which]() if r.key == "in.h5" else go()
    said = convert(server, status=1)
    assert "no such object" not in said and ("404" in said or "no S3 bucket" in said), said


@pytest.mark.parametrize("which", NOT_ABSENT)
def test_a_404_for_a_target_is_no_empty_target(server, which):
    """What is there is not taken for an absent store, and nothing is written."""
    before = dict(server.objects)
    server.fault = lambda r, go: NOT_ABSENT[which]() if r.method in ("GET", "HEAD") and r.key else go()
    done = run("convert", "in.h5", STORE, "--endpoint", server.url, "--overwrite")
    assert done.returncode == 1, done.stderr
    assert server.objects == before


# A process that is stopped while another one takes the target over


@promise("In S3, a process that was")
@pytest.mark.parametrize("threads", ["1", "8"])
@pytest.mark.parametrize("conditions", ["kept", "ignored"])
def test_a_conversion_that_was_stopped_writes_nothing_into_what_replaced_it(many_chunks, threads, conditions):
    target = f"s3://{BUCKET}/out.zarr"
    with Server(conditions=conditions) as s:
        status, said, second = stopped_and_replaced(
            s,
            ["convert", "-q", "one.h5", target, "--threads", threads],
            ["convert", "-q", "two.h5", target, "--overwrite"],
        )
        assert second.returncode == 0, second.stderr
        assert s.content("out.zarr") == contents("two.zarr")
        assert status == 1 and "was taken over by another process" in said, (status, said)


def test_a_part_of_a_conversion_that_was_stopped(many_chunks):
    target = f"s3://{BUCKET}/out.zarr"
    with Server() as s:
        status, said, second = stopped_and_replaced(
            s,
            ["convert", "-q", "one.h5", target, "--threads", "1", "--partition", "1/2"],
            ["convert", "-q", "two.h5", target, "--overwrite"],
        )
        assert second.returncode == 0, second.stderr
        assert s.content("out.zarr") == contents("two.zarr")
        assert status == 1 and "was taken over by another process" in said, (status, said)


def test_a_conversion_that_was_stopped_and_not_replaced_goes_on(many_chunks):
    target = f"s3://{BUCKET}/out.zarr"
    with Server() as s:
        seen = []

        def slow(r, go):
            if r.kind == "put" and "/c/" in r.key:
                seen.append(r.key)
                time.sleep(0.05)
            return go()

        s.fault = slow
        process = subprocess.Popen(
            [COMMAND, "convert", "-q", "one.h5", target, "--threads", "1", "--endpoint", s.url],
            env=environment(ZARRBITS_S3_PATIENCE="1"),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while len(seen) < 5 and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait(60) == 0, process.stderr.read()
        assert s.content("out.zarr") == contents("one.zarr")


# What a run that was killed leaves


@pytest.mark.parametrize("options", [["--overwrite"], ["--resume"]], ids=str)
def test_multipart_uploads_of_a_killed_run_are_aborted(options):
    """Of its own target alone. The server keeps, and charges for, the parts of an upload that nobody ends."""
    with h5py.File("large.h5", "w") as f:
        f.create_dataset("a", data=np.zeros(34 << 20, dtype="u1"), chunks=(17 << 20,))
        f["b"] = 1
    assert run("convert", "-q", "large.h5", "whole.zarr").returncode == 0
    target, parts = f"s3://{BUCKET}/out.zarr", []

    def fault(r, go):
        answer = go()
        if r.kind == "part" and not parts:
            parts.append(r.key)
            os.killpg(process.pid, signal.SIGKILL)
        return answer

    with Server(fault) as s:
        others = {"other": "out.zarr2/a/c/0", "same": "out", "strange": "out.zarr//a"}
        for name, key in others.items():
            s.uploads[name], s.upload_keys[name] = {1: b"x"}, key
        for i in range(5):  # of runs before
            s.uploads[f"old{i}"], s.upload_keys[f"old{i}"] = {1: b"x"}, f"out.zarr/a/c/{i}"
        process = subprocess.Popen(
            [COMMAND, "convert", "-q", "large.h5", target, "--endpoint", s.url],
            env=environment(ZARRBITS_S3_PATIENCE="1"),
            start_new_session=True,
        )
        process.wait(60)
        assert parts and len(s.uploads) > 8
        time.sleep(2.5)  # until its lock is old
        done = run("convert", "-q", "large.h5", target, *options, "--endpoint", s.url, ZARRBITS_S3_PATIENCE="1")
        assert done.returncode == 0, done.stderr
        assert s.uploads.keys() == others.keys()
        assert s.content("out.zarr") == contents("whole.zarr")


def test_a_server_that_lists_no_uploads():
    with h5py.File("in.h5", "w") as f:
        f["a"] = np.arange(100)
    assert run("convert", "-q", "in.h5", "whole.zarr").returncode == 0
    for answer in (error(501, "NotImplemented"), error(403, "AccessDenied"), Answer(200, b"<html/>")):
        with Server(lambda r, go, answer=answer: answer if r.kind == "list_uploads" else go()) as s:
            for options in ([], ["--overwrite"]):
                done = run("convert", "-q", "in.h5", f"s3://{BUCKET}/out.zarr", *options, "--endpoint", s.url)
                assert done.returncode == 0, done.stderr
            assert s.content("out.zarr") == contents("whole.zarr")


@promise("No response, header, list or XML")
def test_a_list_without_end_takes_no_more_memory_than_allowed():
    """Other keys in each page, each with another token, in order: only their number shows that it does not end."""
    count = iter(range(10**9))

    def fault(r, go):
        if r.kind != "list":
            return go()
        page = next(count)
        rows = "".join(f"<Contents><Key>in.zarr/{page:08}{i:04}{'x' * 1000}</Key><Size>1</Size></Contents>" for i in range(1000))
        body = f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>{page}</NextContinuationToken>{rows}</ListBucketResult>"  # noqa: E501
        return Answer(body=body.encode())

    with Server(fault) as s:
        s.objects["in.zarr/zarr.json"] = Stored(b'{"zarr_format": 3, "node_type": "group"}')
        for words in (["convert", STORE, "out.zarr"], ["inspect", STORE]):
            done = run(*words, "--memory", "64M", "--endpoint", s.url)
            assert done.returncode == 1 and "objects" in done.stderr and "memory" in done.stderr, done.stderr
            assert next(count) < 1000


def test_a_list_of_pages_with_an_object_each_ends():
    count = iter(range(10**9))

    def fault(r, go):
        if r.kind != "list":
            return go()
        page = next(count)
        return Answer(body=Server.list_xml([(f"in.zarr/{page:08}/zarr.json", Stored(b""))], f"token{page}"))

    with Server(fault) as s:
        done = run("convert", STORE, "out.zarr", "--endpoint", s.url)
        assert done.returncode == 1 and "does not end" in done.stderr, done.stderr
        assert next(count) < 20_000


@pytest.mark.parametrize("kind", ["put", "copy"])
def test_an_append_that_was_stopped_writes_nothing_into_what_another_one_appended(kind):
    """While it makes the new chunks, or while the server copies them to their places."""
    for i in range(3):
        with h5py.File(f"d{i}.h5", "w") as f:
            f["t"] = np.arange(20 * i, 20 * i + 20)
            f["t"].make_scale("t")
            v = f.create_dataset("v", data=np.arange(20 * i, 20 * i + 20) * 3, chunks=(1,), maxshape=(None,))
            v.dims[0].attach_scale(f["t"])
    target, options = f"s3://{BUCKET}/out.zarr", ["--profile", "native"]
    assert run("convert", "-q", "--concat", "t", "d0.h5", "d1.h5", "whole.zarr", *options).returncode == 0
    with Server() as s:
        done = run("convert", "-q", "--concat", "t", "d0.h5", target, *options, "--endpoint", s.url)
        assert done.returncode == 0, done.stderr
        append = ["convert", "-q", "--append", "t", "d1.h5", target, "--threads", "1", "--connections", "1"]
        status, said, second = stopped_and_replaced(s, append, append, copies=kind == "copy")
        assert second.returncode == 0, second.stderr
        assert status == 1 and "was taken over by another process" in said, (status, said)
        got = {k: b for k, b in s.content("out.zarr").items() if k.startswith("v/c/")}
        assert got == {k: b for k, b in contents("whole.zarr").items() if k.startswith("v/c/")}
        assert run("verify", "--concat", "t", "d0.h5", "d1.h5", target, "--endpoint", s.url).returncode == 0
