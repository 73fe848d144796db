# SPDX-License-Identifier: BSL-1.0
"""What has to be the same for HTTPS, S3, Google and Azure: ranges, lengths, states and absence are those of the object, whatever
a server or a proxy says, and a process that was stopped writes nothing into what replaced it."""

import json
import pathlib

import h5py
import numpy as np
import pytest

import harness
from cloud_servers import KINDS, Cloud
from harness import contents
from promises import promise
from s3_conversion import environment
from stopped_runs import stopped_and_replaced

pytest_plugins = ["stopped_runs"]  # its fixture

STORES = [k for k in KINDS if k != "https"]
HTML = b"<html><body>Not Found</body></html>"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def source():
    """A file of 6 MiB in chunks that differ, and the store that it makes."""
    with h5py.File("in.h5", "w") as f:
        f.create_dataset("a", data=np.arange(3 << 19, dtype="i4"), chunks=(1 << 18,))
    harness.convert("-q", "in.h5", "whole.zarr")
    return pathlib.Path("in.h5").read_bytes()


def z(cloud, *arguments, status=0, **variables):
    env = environment(**{**cloud.variables, "ZARRBITS_S3_PATIENCE": "2", **variables})
    return harness.run(*arguments, *cloud.options, status=status, env=env)


def refused(cloud, *arguments, status=1, words=()):
    lines = z(cloud, *arguments, status=status).stderr.splitlines()
    assert len(lines) == 1 and all(word in lines[0] for word in words), lines
    assert not pathlib.Path("out.zarr/zarr.json").exists()


def is_beyond(r):
    """Asks for bytes that the first request did not bring."""
    return "Range" in r.headers and int(r.headers["Range"].removeprefix("bytes=").split("-")[0]) >= 1 << 20


def parts(answer):
    first, rest = answer.headers["Content-Range"].removeprefix("bytes ").split("-")
    last, total = rest.split("/")
    return int(first), int(last), int(total)


RANGES = {
    "another": lambda first, last, total: f"bytes {first + 16}-{last + 16}/{total}",
    "backwards": lambda first, last, total: f"bytes {last}-{first}/{total}",
    "shorter": lambda first, last, total: f"bytes {first}-{last - 1}/{total}",
    "beyond the end": lambda first, last, total: f"bytes {first}-{last}/{first}",
    "another length": lambda first, last, total: f"bytes {first}-{last}/{total + 1}",
    "no numbers": lambda first, last, total: "bytes here",
}


@promise("Every response of a source is")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", RANGES)
def test_the_range_of_a_response_is_the_one_that_was_requested(source, kind, change):
    def fault(r, go):
        answer = go()
        if is_beyond(r) and answer.status == 206:
            answer.headers["Content-Range"] = RANGES[change](*parts(answer))
        return answer

    with Cloud(kind, fault) as c:
        refused(c, "convert", "-q", c.put("in.h5", source), "out.zarr", "--connections", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_range_once_is_requested_again(source, kind):
    wrong = []

    def fault(r, go):
        answer = go()
        if is_beyond(r) and answer.status == 206 and not wrong:
            wrong.append(r)
            answer.headers["Content-Range"] = RANGES["another"](*parts(answer))
        return answer

    with Cloud(kind, fault) as c:
        z(c, "convert", "-q", c.put("in.h5", source), "out.zarr")
        assert wrong and contents("out.zarr") == contents("whole.zarr")


@promise("Every response of a source is")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_etag", [True, False])
def test_a_source_that_is_replaced_by_one_of_the_same_length(source, kind, has_etag):
    """With neither an ETag nor a condition, by the time of its change."""
    changed = source[:-4] + b"abcd"
    beyond = []

    def fault(r, go):
        if is_beyond(r):
            beyond.append(r)
            if len(beyond) == 2:
                c.put("in.h5", changed, modified=1_800_000_000)
        for name in () if has_etag else ("If-Match", "x-goog-if-generation-match"):
            del r.headers[name]
        answer = go()
        for name in () if has_etag else ("ETag", "x-goog-generation"):
            answer.headers.pop(name, None)
        return answer

    with Cloud(kind, fault) as c:
        c.put("in.h5", source, modified=1_700_000_000)
        refused(c, "convert", "-q", c.name("in.h5"), "out.zarr", "--connections", 1, words=["changed"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_shows_no_change_is_warned_of(source, kind):
    def fault(r, go):
        answer = go()
        for name in ("ETag", "Last-Modified", "x-goog-generation"):
            answer.headers.pop(name, None)
        return answer

    with Cloud(kind, fault) as c:
        done = z(c, "convert", c.put("in.h5", source), "out.zarr")
        assert done.stderr.count("goes unnoticed") == 1


@promise("An object is absent only if")
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("verb", ["export", "convert", "verify", "check"])
def test_a_404_of_a_proxy_is_no_absent_chunk(source, kind, verb):
    """Only the server's own words say that a chunk was never written."""
    with Cloud(kind) as c:
        z(c, "convert", "-q", "in.h5", c.name("in.zarr"))
        c.server.fault = lambda r, go: c.answer(404, HTML) if "/c/" in r.key and r.method in ("GET", "HEAD") else go()
        words = {"export": ["in.zarr", "out.h5"], "convert": ["in.zarr", "out.zarr"], "check": ["in.zarr"]}
        names = ["in.h5", c.name("in.zarr")] if verb == "verify" else [c.name("in.zarr"), *words[verb][1:]]
        done = z(c, verb, *names, status=(1, 3))
        assert "404" in done.stderr + done.stdout
        assert not pathlib.Path("out.h5").exists() and not pathlib.Path("out.zarr/zarr.json").exists()


@promise("An object is absent only if")
@pytest.mark.parametrize("kind", STORES)
def test_a_404_of_a_proxy_is_no_free_target(source, kind):
    with Cloud(kind) as c:
        z(c, "convert", "-q", "in.h5", c.name("out.zarr"))
        before = {k: o.body for k, o in c.server.objects.items()}
        c.server.fault = lambda r, go: c.answer(404, HTML) if r.method in ("GET", "HEAD") and r.key else go()
        refused(c, "convert", "-q", "in.h5", c.name("out.zarr"), "--overwrite")
        assert {k: o.body for k, o in c.server.objects.items()} == before


@promise("`--resume` and `finalize` do not notice")
@promise("`verify` notices both")
@pytest.mark.parametrize("kind", STORES)
def test_a_server_that_stores_other_bytes_is_noticed_by_verify(source, kind):
    """And confirms those that were sent."""
    with Cloud(kind) as c:

        def other(r, go):
            answer = go()
            if r.method == "PUT" and r.key.endswith("a/c/1"):
                stored = c.server.objects[r.key]
                stored.body = stored.body[:-1] + bytes([stored.body[-1] ^ 1])
            return answer

        c.server.fault = other
        z(c, "convert", "-q", "in.h5", c.name("in.zarr"), "--profile", "native")
        assert "/a" in z(c, "verify", "in.h5", c.name("in.zarr"), status=1).stdout


@promise("In S3, a process that was")
@pytest.mark.parametrize("kind", ["gs", "az"])  # s3: test_s3_responses.py
def test_a_conversion_that_was_stopped_writes_nothing_into_what_replaced_it(many_chunks, kind):
    with Cloud(kind) as c:
        first = ["convert", "-q", "one.h5", c.name("out.zarr"), "--threads", "4"]
        second = ["convert", "-q", "two.h5", c.name("out.zarr"), "--overwrite"]
        status, said, done = stopped_and_replaced(c.server, first, second, **c.variables)
        assert done.returncode == 0, done.stderr
        assert c.server.content("out.zarr") == contents("two.zarr")
        assert status == 1 and "was taken over by another process" in said, (status, said)


@promise("In S3, a process that was")
@pytest.mark.parametrize("kind", ["gs", "az"])
@pytest.mark.parametrize("copies", [False, True])
def test_an_append_that_was_stopped_writes_nothing_into_what_another_one_appended(kind, copies):
    for i in range(2):
        with h5py.File(f"d{i}.h5", "w") as f:
            f["t"] = np.arange(20 * i, 20 * i + 20)
            f["t"].make_scale("t")
            v = f.create_dataset("v", data=np.arange(20 * i, 20 * i + 20) * 3, chunks=(1,), maxshape=(None,))
            v.dims[0].attach_scale(f["t"])
    with Cloud(kind) as c:
        target = c.name("out.zarr")
        z(c, "convert", "-q", "--concat", "t", "d0.h5", target, "--profile", "native")
        append = ["convert", "-q", "--append", "t", "d1.h5", target, "--threads", "1", "--connections", "1"]
        status, said, second = stopped_and_replaced(c.server, append, append, copies=copies, **c.variables)
        assert second.returncode == 0, second.stderr
        assert status == 1 and "was taken over by another process" in said, (status, said)
        z(c, "verify", "--concat", "t", "d0.h5", "d1.h5", target)


def test_mirrors_with_other_etags_are_read_with_no_etag(source):
    """And other times: a name that leads to several machines. Only lengths are compared, which the command says."""
    number = iter(range(10**6))

    def fault(r, go):
        answer, n = go(), next(number)
        answer.headers["ETag"], answer.headers["Last-Modified"] = f'"{n}"', f"Tue, 14 Nov 2023 22:{n % 60:02}:00 GMT"
        return answer

    with Cloud("https", fault) as c:
        url = c.put("in.h5", source)
        refused(c, "convert", "-q", url, "out.zarr", "--connections", 1, words=["changed"])
        done = z(c, "convert", "-q", "--no-etag", url, "out.zarr")
        assert "--no-etag" in done.stderr and done.stderr.count("goes unnoticed") == 1
        assert contents("out.zarr") == contents("whole.zarr")
        assert "equal" in z(c, "verify", "--no-etag", url, "out.zarr").stdout
        number_of_first = len(c.requests)
        z(c, "convert", "-q", "--no-etag", "--virtual", url, "refs.json")
        assert "equal" in z(c, "verify", "--no-etag", url, "refs.json").stdout and len(c.requests) > number_of_first
        c.server.fault = lambda r, go: (c.put("in.h5", source + b"x"), go())[1] if is_beyond(r) else go()
        assert "changed" in z(c, "convert", "-q", "--no-etag", url, "other.zarr", status=1).stderr.splitlines()[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_wait_says_what_it_waits_for(source, kind):
    begun = []

    def fault(r, go):
        if is_beyond(r) and len(begun) < 3:
            begun.append(r)
            return c.answer(503, b"", {"Retry-After": "2"})
        return go()

    with Cloud(kind, fault) as c:
        url = c.put("in.h5", source)
        options = {"ZARRBITS_S3_PATIENCE": "20", "ZARRBITS_PROGRESS_SECONDS": "0.05"}
        done = z(c, "convert", url, "out.zarr", "--connections", "1", **options)
        lines = [line for line in done.stderr.splitlines() if ", again in 2 s, attempt" in line]
        assert lines and all("503 from" in line and "127.0.0.1" in line and "of 10" in line for line in lines), done.stderr
        begun.clear()
        assert "again in" not in z(c, "convert", "-q", "--overwrite", url, "out.zarr", **options).stderr


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("name", ["x.zip", "x.json", "x.parquet"])
def test_what_is_one_file_is_not_written_to_a_bucket(source, kind, name):
    with Cloud(kind) as c:
        refused(c, "convert", "-q", "in.h5", c.name(name), status=2, words=["local disk", "upload"])
        assert not any(r.method == "PUT" for r in c.requests)


def test_references_that_another_program_saved_again(source):
    """In another order, and with other blanks."""
    for i in range(3):
        with h5py.File(f"d{i}.h5", "w") as f:
            f["t"] = np.arange(4 * i, 4 * i + 4)
            f["t"].make_scale("t")
            f.create_dataset("v", data=np.arange(4.0) + i, chunks=(4,), maxshape=(None,)).dims[0].attach_scale(f["t"])
    days = [f"d{i}.h5" for i in range(3)]
    harness.convert("-q", "--virtual", "--concat", "t", *days[:2], "refs.json")
    document = json.loads(pathlib.Path("refs.json").read_text())
    for how in ({"indent": 3, "sort_keys": True}, {"separators": (",", ":")}, {"indent": 1}):
        pathlib.Path("again.json").write_text(json.dumps(document, **how))
        harness.convert("-q", "--append", "t", days[2], "again.json")
        assert "equal" in harness.run("verify", "--concat", "t", *days, "again.json").stdout
    for other in (
        "{}",
        "[]",
        '{"version": 1, "refs": {"zarrbits": ["a", 1, 2]}}',
        '{"a": {"zarrbits": {}}}',
        '{"zarrbits": 3}',
        "{",
    ):
        pathlib.Path("other.json").write_text(other)
        assert "zarrbits made" in harness.refused("convert", "--virtual", "--overwrite", days[0], "other.json")
        assert pathlib.Path("other.json").read_text() == other
