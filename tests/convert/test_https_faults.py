# SPDX-License-Identifier: BSL-1.0
"""Bad servers of sources at http://: the store is the right one, or there is none and one sentence says why.
attack_https.py has servers that are bad at random."""

import contextlib
import gzip
import os
import pathlib
import shutil
import socket
import threading
import time

import pytest

from harness import same
from http_server import Answer, Server, redirect, reset
from https_conversion import NATIVE, PAGE, large, make, make_days, refused, scattered, z
from kills import has_units
from promises import promise

pytest_plugins = ["https_conversion"]  # its fixtures

CHUNKS = 6


@pytest.fixture
def url(server):
    """A file of 6 MiB, and the store that it makes, whole.zarr."""
    body = large("in.h5", CHUNKS)
    z("convert", "-q", "in.h5", "whole.zarr", *NATIVE)
    os.remove("in.h5")
    return server.put("in.h5", body)


@pytest.fixture
def small(server):
    """A file of less than a page."""
    body = make("in.h5", "texts")
    z("convert", "-q", "in.h5", "whole.zarr", *NATIVE)
    os.remove("in.h5")
    assert len(body) < PAGE
    return server.put("in.h5", body)


def right(url, *options, **variables):
    shutil.rmtree("out.zarr", ignore_errors=True)
    z("convert", "-q", url, "out.zarr", *NATIVE, *options, **variables)
    same("whole.zarr", "out.zarr")


def wrong(url, *words, options=(), **variables):
    return refused("convert", "-q", url, "none.zarr", *NATIVE, *options, words=("in.h5", *words), **variables)


def is_beyond(r):
    """Asks for bytes that the first request did not bring."""
    return r.range is not None and r.range[0] >= PAGE


def from_then_on(server, change, after=1):
    """A fault that changes all answers to requests for values, but the first ones."""
    seen = []

    def fault(r, go):
        if not is_beyond(r) or len(seen) < after:
            seen.extend([r] * is_beyond(r))
            return go()
        return change(r, go)

    server.fault = fault


def once_for_each_range(times, answer):
    """A fault: so many requests for each range fail."""
    seen, lock = {}, threading.Lock()

    def fault(r, go):
        with lock:
            seen[r.range] = n = seen.get(r.range, 0) + 1
        return answer(r, go) if n <= times else go()

    return fault


# What a server says of lengths and ranges


@promise("Every response of a source is")
def test_a_total_that_is_too_long(server, small):
    """The file would have more bytes than come."""

    def fault(r, go):
        answer = go()
        if "Content-Range" in answer.headers:
            answer.headers["Content-Range"] = answer.headers["Content-Range"].replace("/", "/9")
        return answer

    server.fault = fault
    wrong(small)


def test_a_total_that_is_too_short(server, url):
    def fault(r, go):
        answer = go()
        answer.headers["Content-Range"] = answer.headers["Content-Range"].split("/")[0] + f"/{PAGE + 5000}"
        return answer

    server.fault = fault
    wrong(url)


@pytest.mark.parametrize("total", ["*", "-1", "18446744073709551615", "99999999999999999999999", "x", ""])
def test_a_total_that_is_none(server, url, total):
    def fault(r, go):
        answer = go()
        answer.headers["Content-Range"] = answer.headers["Content-Range"].split("/")[0] + "/" + total
        return answer

    server.fault = fault
    wrong(url)


@pytest.mark.parametrize("what", ["none", "another", "garbage", "backwards"])
def test_ranges_that_were_not_asked_for(server, url, what):
    """206, and other bytes than those wanted; from the first request on, or later."""

    def change(r, go):
        answer = go()
        there = answer.headers.pop("Content-Range")
        if what == "another":
            first, last = (n + 10 for n in (r.range[0], r.range[0] + len(answer.body) - 1))
            answer.headers["Content-Range"] = f"bytes {first}-{last}/{there.split('/')[1]}"
        elif what == "garbage":
            answer.headers["Content-Range"] = "bytes \x1b[2J-/\x07"
        elif what == "backwards":
            answer.headers["Content-Range"] = f"bytes {r.range[0] + 10}-{r.range[0]}/{there.split('/')[1]}"
        return answer

    server.fault = change
    assert "\x1b" not in wrong(url)
    from_then_on(server, change)
    assert "\x1b" not in wrong(url)


@pytest.mark.parametrize("by", [-1, 1, 100_000])
def test_a_body_that_has_another_length_than_its_range(server, url, by):
    def change(r, go):
        answer = go()
        answer.body = bytes(answer.body)[:by] if by < 0 else bytes(answer.body) + bytes(by)
        return answer

    server.fault = change
    wrong(url)
    from_then_on(server, change)
    wrong(url)


def cut(r, go):
    """It ends before the length that it said."""
    answer = go()
    answer.headers |= {"Content-Length": str(len(answer.body)), "Connection": "close"}
    answer.body = bytes(answer.body)[: len(answer.body) // 2]
    return answer


def longer(r, go):
    answer = go()
    answer.headers["Content-Length"] = str(len(answer.body) + 5000)
    return answer


@pytest.mark.parametrize("change", [cut, longer])
def test_a_content_length_that_lies(server, url, change):
    server.fault = once_for_each_range(1, change)
    right(url)
    server.fault = change
    wrong(url)
    from_then_on(server, change)
    wrong(url)


def test_ranges_are_ignored(server, small):
    server.ranges = False
    right(small)
    z("verify", small, "out.zarr")
    url = server.put("large/in.h5", large("in.h5", 20))
    server.requests.clear()
    wrong(url, "download")
    assert server.sent < len(server.files["large/in.h5"].body), "all of it was fetched"


def test_ranges_are_ignored_later(server, url):
    def whole(r, go):
        return Answer(200, server.files["in.h5"].body, server.files["in.h5"].headers())

    from_then_on(server, whole)
    wrong(url, "download")


# Another file in the middle


def changes(server, name, **how):
    server.files[name].__dict__.update(how)


@pytest.mark.parametrize("what", ["etag", "weak etag", "modified", "length", "gone"])
def test_another_file_in_the_middle(server, url, what):
    whole = server.files["in.h5"].body
    how = {"etag": {}, "weak etag": {"etag": 'W/"one"', "modified": None}}.get(what, {"etag": "", "modified": None})
    server.put("in.h5", whole, **({**how, "modified": 1_600_000_000} if what == "modified" else how))

    def change(r, go):
        if what == "gone":
            server.files.pop("in.h5", None)
        else:
            other = {
                "etag": {"etag": '"another"'},
                "weak etag": {"etag": 'W/"another"'},
                "modified": {"modified": 1_600_000_001},
                "length": {"body": whole + b"x"},
            }[what]
            changes(server, "in.h5", **other)
        return go()

    from_then_on(server, change)
    if what in ("length", "gone"):  # nothing else shows a change, which a warning says first
        lines = z("convert", "-q", url, "none.zarr", *NATIVE, status=1).stderr.splitlines()
        assert len(lines) == 2 and "goes unnoticed" in lines[0] and not os.path.exists("none.zarr"), lines
        said = lines[1]
    else:
        said = wrong(url)
    assert what == "gone" or "changed while it was" in said, said


def test_another_file_for_a_server_that_ignores_conditions(server, url):
    def change(r, go):
        if r.range is not None and r.range[0] >= PAGE:
            del r.headers["If-Match"]
            changes(server, "in.h5", etag='"another"')
        return go()

    server.fault = change
    wrong(url, "changed while it was")


def test_another_file_once_all_is_read(server, url):
    """The last request asks whether it is still the same."""
    right(url, "--connections", 1, "--threads", 1)
    number = len(server.requests)
    for _ in range(5):  # the number of requests may differ on a busy machine
        server.requests.clear()
        changes(server, "in.h5", etag='"one"')

        def change(r, go):
            answer = go()
            if len(server.requests) == number - 1:
                changes(server, "in.h5", etag='"another"')
            return answer

        server.fault = change
        done = z("convert", "-q", url, "changed.zarr", *NATIVE, "--connections", 1, "--threads", 1, status=(0, 1))
        if len(server.requests) >= number and server.files["in.h5"].etag == '"another"':
            break
    assert done.returncode == 1 and "changed while it was" in done.stderr and not os.path.exists("changed.zarr"), done.stderr


@pytest.mark.parametrize("command", ["inspect", "suggest", "plan"])
def test_others_see_a_change_too(server, command):  # verify: test_verify_requests.py
    url = server.put("in.h5", scattered("in.h5"))

    def fault(r, go):
        answer = go()
        if is_beyond(r):
            changes(server, "in.h5", etag='"another"')
        return answer

    server.fault = fault
    done = z(command, url, status=1)
    assert "changed while it was" in done.stderr + done.stdout


def test_an_etag_that_is_another_each_time(server, url):
    numbers = iter(range(10**9))

    def fault(r, go):
        answer = go()
        answer.headers["ETag"] = f'"{next(numbers)}"'
        return answer

    server.fault = fault
    wrong(url, "changed while it was")


# Servers that are slow, busy or broken


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_passes_is_asked_again(server, url, status):
    server.fault = once_for_each_range(2, lambda r, go: Answer(status, b"later"))
    right(url)
    assert len([r for r in server.requests if r.status == status]) >= 4
    server.fault = lambda r, go: Answer(status, b"later")
    wrong(url, str(status), "attempts")


def test_connections_that_break(server, url):
    server.fault = once_for_each_range(2, lambda r, go: reset)
    right(url)
    server.fault = lambda r, go: reset
    wrong(url)
    server.fault = once_for_each_range(1, lambda r, go: lambda handler: None)  # an end without an answer
    right(url)


@pytest.mark.parametrize("value", ["1", "date"])
def test_it_says_when_to_come_again(server, url, value):
    waits, lock = {}, threading.Lock()

    def fault(r, go):
        with lock:
            waits.setdefault(r.range, []).append(time.monotonic())
            if len(waits[r.range]) > 1:
                return go()
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 2))
        return Answer(429, b"slowly", {"Retry-After": value if value == "1" else date})

    server.fault = fault
    right(url, ZARRBITS_S3_PATIENCE="3")
    assert all(len(times) > 1 for times in waits.values())
    assert min(times[1] - times[0] for times in waits.values()) > 0.9


@pytest.mark.parametrize("wish", ["100000", "-5", "1e300", "nan", "inf", "x" * 1000])
def test_it_says_nonsense_about_when_to_come_again(server, small, wish):
    server.fault = once_for_each_range(1, lambda r, go: Answer(503, b"", {"Retry-After": wish}))
    begin = time.monotonic()
    right(small)
    assert time.monotonic() - begin < 60


def test_a_server_that_asks_for_fewer_gets_fewer(server):
    """At most four at a time; others are refused."""
    server.delay = 0.02
    body = large("in.h5", 60)
    z("convert", "-q", "in.h5", "whole.zarr", *NATIVE)

    def fault(r, go):
        return Answer(503, b"SlowDown") if server.at_once > 4 else go()

    server.fault = fault
    right(server.put("in.h5", body), ZARRBITS_S3_PATIENCE="2")
    refusals = [r for r in server.requests if r.status == 503]
    assert len(refusals) < len(server.requests) / 2, (len(refusals), len(server.requests))


def test_a_server_that_stops(server, url):
    def stop(r, go):
        threading.Thread(target=server.stop_at_once).start()
        time.sleep(0.2)
        return go()

    from_then_on(server, stop)
    begin = time.monotonic()
    wrong(url)
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("where", ["in the headers", "in the body", "before"])
def test_silence(server, url, where):
    over = threading.Event()

    def silence(r, go):
        def write(handler):
            if where != "before":
                handler.wfile.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 100000\r\n")
            if where == "in the body":
                handler.wfile.write(b"\r\n" + bytes(50_000))
            over.wait(60)

        return write

    from_then_on(server, silence)
    begin = time.monotonic()
    try:
        wrong(url)
    finally:
        over.set()
    assert time.monotonic() - begin < 60


def test_drops(server, url):
    over = threading.Event()

    def drip(r, go):
        def write(handler):
            size = r.range[1] - r.range[0] + 1
            where = f"bytes {r.range[0]}-{r.range[1]}/{len(server.files['in.h5'].body)}"
            handler.wfile.write(
                f"HTTP/1.1 206 Partial Content\r\nContent-Length: {size}\r\nContent-Range: {where}\r\n\r\n".encode()
            )
            with contextlib.suppress(OSError):
                while not over.wait(0.2):
                    handler.wfile.write(b"x")

        return write

    from_then_on(server, drip)
    begin = time.monotonic()
    try:
        wrong(url)
    finally:
        over.set()
    assert time.monotonic() - begin < 90


def test_slow_and_steady_is_not_given_up(server, url):
    """Slower than the patience for all of it, and never silent."""
    server.rate = 2e6
    right(url, ZARRBITS_S3_PATIENCE="0.5")


@promise("No response, header, list or XML")
@pytest.mark.parametrize("when", ["first", "later"])
def test_headers_without_end(server, url, when):
    def flood(r, go):
        def write(handler):
            handler.wfile.write(b"HTTP/1.1 206 Partial Content\r\n")
            with contextlib.suppress(OSError):
                for _ in range(2000):
                    handler.wfile.write(b"x-y: z\r\n" * 10_000)

        return write

    if when == "first":
        server.fault = flood
    else:
        from_then_on(server, flood)
    wrong(url, "too long")


@promise("No response, header, list or XML")
def test_a_body_without_end(server, url):
    def flood(r, go):
        def write(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(500):
                    handler.wfile.write(bytes(PAGE))

        return write

    server.fault = flood
    wrong(url, "download")
    from_then_on(server, flood)
    wrong(url)


@pytest.mark.parametrize("kind", ["gzip", "br", "x\x1b[2J"])
def test_what_is_compressed_on_the_way(server, url, kind):
    """Ranges would be those of what was compressed."""

    def change(r, go):
        answer = go()
        answer.headers["Content-Encoding"] = kind
        if kind == "gzip":
            answer.body = gzip.compress(answer.body)
            answer.headers["Content-Length"] = str(len(answer.body))
        return answer

    server.fault = change
    # random bytes get longer: the body may be too long before anyone looks at its encoding
    assert "\x1b" not in wrong(url, "download")
    from_then_on(server, change)
    assert "\x1b" not in wrong(url, "download")


@pytest.mark.parametrize("coding", ["identity", "aws-chunked", "utf-8", "UTF-8, aws-chunked", ""])
def test_what_is_no_compression(server, url, coding):
    def change(r, go):
        answer = go()
        answer.headers["Content-Encoding"] = coding
        return answer

    server.fault = change
    right(url)


# Answers that are no file


@pytest.mark.parametrize(
    "status, word",
    [(400, "400"), (401, "header"), (403, "header"), (404, "no such file"), (410, "no such file"), (451, "451"), (501, "501")],
)
def test_statuses(server, url, status, word):
    server.fault = lambda r, go: Answer(status, b"<html>\x1b]0;title\x07</html>")
    assert "\x1b" not in wrong(url, word)
    assert len(server.requests) <= 2, "it does not pass, and is not repeated"
    from_then_on(server, lambda r, go: Answer(status, b"no"))
    wrong(url)


@pytest.mark.parametrize("command", ["plan", "inspect", "suggest", "doctor", "verify", "virtual"])
def test_every_command_ends_with_a_sentence(server, command):
    none, words = server.url + "/in.h5", {"verify": ["verify"], "virtual": ["convert", "-q", "--virtual"]}.get(command, [command])
    target = {"verify": ["whole.zarr"], "virtual": ["out.json"]}.get(command, [])
    make("local.h5", "types")
    z("convert", "-q", "local.h5", "whole.zarr")
    done = z(*words, none, *target, status=1)
    assert "no such file" in done.stderr + done.stdout and none in done.stderr + done.stdout


@pytest.mark.parametrize(
    "body", [b"", b"x", b"<html>Please log in</html>" * 1000, bytes(3 * PAGE)], ids=["empty", "x", "html", "zeros"]
)
def test_what_is_not_an_hdf5_file(server, body):
    wrong(server.put("in.h5", body))


def test_a_file_that_is_cut_off(server):
    body = large("in.h5", 3)
    os.remove("in.h5")
    for size in (100, PAGE - 5, PAGE, len(body) // 2):
        wrong(server.put("in.h5", body[:size]))


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx", b"HTTP/9.9 xyz\r\n\r\n", b"\0" * 5000],
    ids=repr,
)
def test_what_is_not_http(server, url, answer):
    server.fault = lambda r, go: lambda handler: handler.wfile.write(answer)
    wrong(url)


def test_nobody_listens(server):
    url = server.put("in.h5", b"x")
    server.stop_at_once()
    wrong(url, "cannot be reached")


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("form", ["absolute", "path", "relative"])
def test_redirects_are_followed(server, url, status, form):
    to = {"absolute": url, "path": "/in.h5", "relative": "../in.h5"}[form]
    server.fault = lambda r, go: redirect(to, status) if r.name == "to/it.h5" else go()
    right(server.url + "/to/it.h5")
    assert len(server.of("to/it.h5")) <= 2, "where it leads to is remembered"


def test_redirects_that_do_not_end(server, url):
    def fault(r, go):
        if not r.name.startswith("loop/"):
            return go()
        left = int(r.name.split("/")[1])
        return redirect(f"/loop/{left - 1}/in.h5" if left != 1 else "/in.h5")

    server.fault = fault
    right(server.url + "/loop/9/in.h5")
    for begin in (0, 50):
        server.requests.clear()
        wrong(f"{server.url}/loop/{begin}/in.h5", "redirect")
        assert len(server.requests) <= 12
    server.fault = lambda r, go: redirect("/in.h5")  # to itself
    wrong(url, "redirect")


@pytest.mark.parametrize(
    "to",
    [
        "file:///etc/hostname",
        "ftp://127.0.0.1/in.h5",
        "gopher://127.0.0.1:70/_x",
        "data:,x",
        "dict://127.0.0.1/x",
        "s3://bucket/in.h5",
    ],
)
@pytest.mark.parametrize("options", [(), ("--follow-private",)], ids=str)
def test_redirects_to_what_is_not_http(server, url, to, options):
    server.fault = lambda r, go: redirect(to)
    wrong(url, "redirect", options=options)


@pytest.mark.parametrize(
    "to", ["", "http://", "http:///x", "://", "http://[::1", "http://127.0.0.1:99999/x", "\x1b[2J", "http://a b/"]
)
def test_redirects_to_nonsense(server, url, to):
    server.fault = lambda r, go: redirect(to) if r.name == "in.h5" else Answer(404, b"")
    assert "\x1b" not in wrong(url)


@promise("A redirect leads neither to a")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0x7f.1", "2130706433", "0"])
def test_redirects_to_this_machine_are_not_followed(server, url, host):
    """Whatever the name of it is. None of these leaves this machine."""
    with Server() as inside:
        inside.files = server.files
        server.fault = lambda r, go: redirect(f"http://{host}:{inside.port}/in.h5")
        wrong(url, *(["--follow-private"] if host != "[::1]" else []))
        assert inside.requests == []
        if host in ("127.0.0.1", "localhost"):
            right(url, "--follow-private")
            z("verify", "--follow-private", url, "out.zarr")
            assert inside.requests


def test_a_redirect_to_this_machine_later(server, url):
    with Server() as inside:
        inside.files = server.files
        from_then_on(server, lambda r, go: redirect(f"{inside.url}/in.h5"))
        wrong(url, "--follow-private")
        assert inside.requests == []


@promise("A redirect leads neither to a")
@promise("A proxy looks names up itself")
@pytest.mark.parametrize("host", ["10.1.2.3", "169.254.169.254", "0x0a.1", "[fd00::1]", "localhost", "a.localhost"])
def test_a_redirect_to_a_private_address_does_not_pass_a_proxy(server, url, host):
    """The proxy would connect to it."""
    with Server() as proxy:
        server.fault = lambda r, go: redirect(f"http://{host}:{server.port}/in.h5") if is_beyond(r) else go()
        wrong(url, "private address", http_proxy=proxy.url, no_proxy="127.0.0.1")
        assert proxy.requests == []


@promise("A proxy looks names up itself")
def test_a_proxy_looks_up_names_itself(server, url):
    """This machine knows no address of the name, and the proxy does."""

    def forward(r, go):
        r.name = r.name.removeprefix("http://archive.invalid/")
        return go()

    with Server(forward) as proxy:
        proxy.files = server.files
        server.fault = lambda r, go: redirect("http://archive.invalid/in.h5")
        right(url, http_proxy=proxy.url, no_proxy="127.0.0.1")
        assert {r.headers["Host"] for r in proxy.requests} == {"archive.invalid"}


def test_a_proxy_that_requires_a_login_is_asked_once(server, url):
    with Server(lambda r, go: Answer(407, b"", {"Proxy-Authenticate": 'Basic realm="x"'})) as proxy:
        done = z("convert", "http://192.0.2.1/in.h5", "out.zarr", status=1, http_proxy=proxy.url)
        assert "407" in done.stderr and "proxy" in done.stderr, done.stderr
        assert len(proxy.requests) == 1


@promise("A redirect leads neither to a")
@pytest.mark.parametrize("exceptions", ["{host}", ".invalid, {host}", "*", "{HOST}", "example.org {host}"])
def test_a_redirect_past_the_proxy_is_checked(server, url, exceptions):
    """NO_PROXY has the name, so that the request goes directly to what the name leads to: this machine."""
    host = socket.gethostname()
    try:
        if not socket.gethostbyname(host).startswith("127."):
            pytest.skip("THE NAME OF THIS MACHINE HAS ANOTHER ADDRESS THAN 127.*: NO_PROXY was not looked at")
    except OSError:
        pytest.skip("THE NAME OF THIS MACHINE HAS NO ADDRESS: NO_PROXY was not looked at")
    with Server() as proxy, Server() as inside:
        inside.files = server.files
        server.fault = lambda r, go: redirect(f"http://{host}:{inside.port}/in.h5")
        names = exceptions.format(host=host, HOST=host.upper())
        wrong(url, "private address", http_proxy=proxy.url, NO_PROXY=f"127.0.0.1,{names}")
        assert proxy.requests == inside.requests == []


def lends(server, requests, status=403):
    """A server that redirects to URLs which are good for so many requests. Returns how many it gave."""
    given, used, lock = [0], {}, threading.Lock()

    def fault(r, go):
        with lock:
            if r.name == "lent/in.h5":
                used[r.query] = used.get(r.query, 0) + 1
                if used[r.query] > requests:
                    return Answer(status, b"Request has expired")
                r.name = "in.h5"
                return go()
            given[0] += 1
            return redirect(f"/lent/in.h5?X-Amz-Signature={given[0]}")

    server.fault = fault
    return given


@pytest.mark.parametrize("status", [401, 403, 410])
def test_a_signed_url_that_ends_in_the_middle(server, url, status):
    given = lends(server, 2, status)
    right(url, "--connections", 1)
    assert 2 <= given[0] <= 1 + len(server.requests) / 2
    given = lends(server, 3, status)
    right(url)
    given = lends(server, 0, status)
    assert "X-Amz-Signature" not in wrong(url)


def test_what_a_redirect_leads_to_changes(server, url):
    """The same name, and another file behind it: a dataset was replaced in the middle."""
    other = bytearray(server.files["in.h5"].body)
    other[-1] ^= 1
    server.put("b/in.h5", bytes(other))
    server.files["a/in.h5"] = server.files["in.h5"]
    asked = []

    def fault(r, go):
        if r.name == "in.h5":
            asked.append(r)
            return redirect("/a/in.h5" if len(asked) == 1 else "/b/in.h5")
        if r.name == "a/in.h5" and is_beyond(r):
            return Answer(403, b"expired")
        return go()

    server.fault = fault
    wrong(url, "changed while it was")


# Many sources


def test_one_of_many_fails(server):
    names = make_days()
    remote = [server.put("data/" + name, pathlib.Path(name).read_bytes()) for name in names]
    server.fault = lambda r, go: Answer(403, b"no") if r.name.endswith(names[1]) else go()
    said = refused("convert", "-q", "--concat", "t", *remote, "out.zarr", *NATIVE)
    assert names[1] in said
    server.fault = once_for_each_range(2, lambda r, go: Answer(503, b""))
    z("convert", "-q", "--concat", "t", *remote, "out.zarr", *NATIVE)
    z("verify", "--concat", "t", *remote, "out.zarr")
    before = sorted(os.listdir("out.zarr"))
    server.fault = lambda r, go: reset
    z("convert", "-q", "--append", "t", *remote, "out.zarr", status=1)
    assert sorted(os.listdir("out.zarr")) == before
    server.fault = None
    z("verify", "--concat", "t", *remote, "out.zarr")


def test_resumed_after_a_fault(server):
    """With --resume, a run that fails keeps what is done."""
    url = server.put("in.h5", large("in.h5", 18))
    z("convert", "-q", "in.h5", "whole.zarr", *NATIVE)
    server.fault = lambda r, go: Answer(403, b"") if is_beyond(r) and r.range[0] > 9 * PAGE else go()
    done = z("convert", "-q", url, "out.zarr", *NATIVE, "--resume", "--connections", 1, status=1)
    assert "403" in done.stderr and has_units("out.zarr") and not os.path.exists("out.zarr/zarr.json")
    server.fault = None
    server.requests.clear()
    z("convert", "-q", url, "out.zarr", "--resume")
    same("whole.zarr", "out.zarr")
    assert server.sent < len(server.files["in.h5"].body), "what was done is done again"


# Wrong usage


@pytest.mark.parametrize(
    "options",
    [
        ["--header", "no colon"],
        ["--header", ": no name"],
        ["--header", "two words: geheim"],
        ["--header", "@none.txt"],
        ["--header", "A: geheim\r\nB: 2"],
        ["--connections", "0"],
        ["--connections", "-1"],
        ["--connections", "many"],
        ["--ca-file"],
    ],
    ids=repr,
)
def test_options_that_are_wrong(server, small, options):
    assert "geheim" not in refused("convert", "-q", small, "out.zarr", *options, status=2)
    assert server.requests == []


def test_names_that_are_wrong(server):
    make("in.h5", "types")
    assert "https" in refused("convert", "-q", "in.h5", "https://127.0.0.1:1/out.zarr", status=(1, 2)).lower()
    for name in ("http://", "https:///in.h5", "http://:80/in.h5", "http://[::1/in.h5", "http://127.0.0.1:x/in.h5"):
        refused("convert", "-q", name, "out.zarr", status=(1, 2))
    refused("convert", "-q", "ftp://127.0.0.1/in.h5", "out.zarr", status=(1, 2))
