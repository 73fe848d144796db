# SPDX-License-Identifier: BSL-1.0
"""Secrets of sources at https:// and http:// stay where they are needed: queries of URLs, headers, logins.
And connections are those that were asked for: certificates, other hosts."""

import base64
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from harness import contents, same
from http_server import Answer, Server, certificate, redirect
from https_conversion import NATIVE, PAGE, environment, large, make, make_days, refused, z
from kills import begin, has_units, journals, kill

pytest_plugins = ["https_conversion"]  # its fixtures
from promises import promise
from s3_conversion import children

SECRET = "geheim"
SIGNED = f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20261101T000000Z&X-Amz-Signature={SECRET}{SECRET}"
QUERIES = {
    "AWS": SIGNED,
    "Google": f"X-Goog-Credential=a%40b.iam&X-Goog-Signature={SECRET}",
    "Azure": f"sv=2024-11-04&se=2026-12-01T00%3A00%3A00Z&sr=b&sp=r&sig={SECRET}%2Bx%3D",
    "CloudFront": f"Expires=1&Signature={SECRET}~x&Key-Pair-Id=K",
    "unknown": f"code={SECRET}&id=1",
}


@pytest.fixture
def certified(tmp_path):
    made = certificate(tmp_path, "DNS:localhost")
    if made is None:
        pytest.skip("THERE IS NO openssl, WHICH MAKES A CERTIFICATE: https was not looked at")
    return made


def is_told(*done, store="out.zarr"):
    """Whether a secret is anywhere that a run leaves: what it said, its store, its other files."""
    said = "".join(d if isinstance(d, str) else d.stdout + d.stderr for d in done)
    left = [p for p in pathlib.Path().rglob("*") if p.is_file() and p.suffix not in (".h5", ".pem") and "given" not in p.name]
    found = [str(p) for p in left if SECRET.encode() in p.read_bytes() or SECRET in p.name]
    return ([said] if SECRET in said else []) + found


def commands_of(process):
    """Command lines of a run and the processes that it started, as everyone on the machine sees them."""
    lines = b""
    for pid in (process.pid, *children(process.pid)):
        try:
            lines += pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except FileNotFoundError:
            pass
    return lines


# The query of a URL


@promise("Secrets in URLs are not printed")
@pytest.mark.parametrize("kind", QUERIES)
def test_a_query_is_in_no_output(server, kind):
    body = make("in.h5")
    z("convert", "-q", "in.h5", "local.zarr")
    plain = server.put("in.h5", body)
    url = f"{plain}?{QUERIES[kind]}"
    done = [z("convert", "--log-format", "json", "--report", "report.json", url, "out.zarr")]
    assert {r.query for r in server.requests} == {QUERIES[kind]}
    same("local.zarr", "out.zarr")
    report = json.loads(pathlib.Path("report.json").read_text())
    assert plain in json.dumps(report), report
    for words in (
        ["convert", url, "out2.zarr", "--json"],
        ["convert", url, "out3.zarr", "--shard", "1M"],
        ["plan", url],
        ["plan", "--json", url],
        ["inspect", url],
        ["inspect", "--json", url],
        ["inspect", url, "out.zarr"],
        ["suggest", "--json", url],
        ["doctor", "--json", url],
        ["verify", url, "out.zarr"],
        ["verify", "--json", url, "out.zarr"],
        ["convert", "--virtual", url, "refs.json", "--report", "report2.json"],
        ["convert", "--virtual", url, "refs.parquet"],
        ["verify", url, "refs.json"],
        ["inspect", "refs.json"],
        ["convert", url + ":/a", "part.zarr"],
    ):
        # a query that names the file cannot be in references
        refers, named = "--virtual" in words or "refs.json" in words, kind == "unknown"
        done.append(z(*words, status=(0, 1) if words[0] == "doctor" else 1 if refers and named else 0))
    assert is_told(*done) == []
    if kind == "unknown":
        return
    refs = json.loads(pathlib.Path("refs.json").read_text())
    assert {v[0].partition("?")[0] for v in refs["refs"].values() if isinstance(v, list)} >= {plain}


@promise("Secrets in URLs are not printed")
@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_query_is_in_no_error(server, status):
    url = f"{server.url}/in.h5?{SIGNED}"
    server.fault = lambda r, go: Answer(status, f"<Error>{SECRET}</Error>".encode(), {"X-Request": SECRET})
    said = [refused("convert", "-q", url, "out.zarr", words=("in.h5", str(status) if status != 404 else "no such file"))]
    said += [z("convert", "--log-format", "json", url, "out.zarr", "--report", "report.json", status=1)]
    for words in (["plan"], ["inspect"], ["suggest"], ["doctor"], ["inspect", "--json"]):
        said.append(z(*words, url, status=1))
    server.fault = lambda r, go: lambda handler: None
    said.append(z("plan", url, status=1))
    server.stop_at_once()
    said.append(z("plan", url, status=1))
    assert is_told(*said) == []


def test_a_query_is_in_no_wrong_usage(server):
    url = f"{server.url}/in.h5?{SIGNED}"
    said = [
        z(*words, status=(1, 2))
        for words in (
            ["convert", url],
            ["convert", url, "out.zarr", "--no-such-option"],
            ["convert", url, url + "&x", "out.zarr"],
            ["convert", "--concat", "t", f"{server.url}/*.h5?{SIGNED}", "out.zarr"],
            ["convert", url, f"{server.url}/out.zarr?{SIGNED}"],
            ["no-such-command", url, "out.zarr"],
            ["inspect", url, url, url],
            ["plan", url, "--chunk", "x"],
        )
    ]
    assert is_told(*said) == []


@promise("Secrets in URLs are not printed")
@promise("Credentials are never in stores, reports")
def test_a_name_and_a_password_in_a_url(server):
    """Used or refused: they are not told."""
    server.put("in.h5", make("in.h5"))
    url = f"http://someone:{SECRET}@127.0.0.1:{server.port}/in.h5"
    done = z("convert", "--log-format", "json", "--report", "report.json", url, "out.zarr", status=(0, 1, 2))
    asked = {r.headers.get("Authorization") for r in server.requests}
    assert asked <= {"Basic " + base64.b64encode(f"someone:{SECRET}".encode()).decode()}
    assert (done.returncode == 0) == bool(asked)
    assert is_told(done, z("convert", "-q", "--virtual", url, "refs.json", status=(0, 1, 2))) == []
    wrong = f"http://someone:{SECRET}@127.0.0.1:{server.port}/none.h5"
    assert is_told(z("plan", wrong, status=(1, 2))) == []
    for scheme in ("s3a", "S3", "gcs"):
        assert is_told(z("plan", f"{scheme}://someone:{SECRET}@bucket/in.h5", status=(1, 2))) == []


@pytest.mark.parametrize(
    "proxy",
    [
        "http://user:{0}@127.0.0.1:1",
        "http://user:{0}/more@127.0.0.1:1",
        "http://user:{0}@no-such-host.invalid:80",
        "nonsense://user:{0}@127.0.0.1:1",
        "socks9://{0}@127.0.0.1:1",
        "http://user:{0} blank@127.0.0.1:1",
        "user:{0}@127.0.0.1:1",
    ],
)
def test_the_password_of_a_proxy_is_not_told(server, proxy):
    done = z("convert", "http://192.0.2.1/in.h5", "out.zarr", status=1, http_proxy=proxy.format(SECRET))
    assert is_told(done) == [] and "192.0.2.1" in done.stderr, done.stderr


def test_a_password_with_a_slash_is_not_told(server):
    """It should be escaped; as it is, the host would be "someone"."""
    for url in (f"http://someone:{SECRET}/x@127.0.0.1:{server.port}/in.h5", f"http://someone:x/{SECRET}@127.0.0.1:1/in.h5?a=b"):
        done = [z(*words, status=(1, 2)) for words in (["convert", url, "out.zarr"], ["plan", url], ["inspect", url])]
        assert is_told(*done) == []


@promise("Keys, tokens, headers or passwords over")
def test_secrets_over_plain_http_to_another_machine_are_warned_of(server, tmp_path):
    """No request leaves this machine: a proxy takes them."""
    netrc = tmp_path / "given.netrc"
    netrc.write_text(f"machine 192.0.2.1 login me password {SECRET}\n")
    given = {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
    url = "http://192.0.2.1/in.h5"
    for words, variables, warned in (
        ([url], {}, False),
        ([url, "--header", f"X-Token: {SECRET}"], {}, True),
        ([url], {"ZARRBITS_HEADERS": f"X-Token: {SECRET}"}, True),
        ([url], {"NETRC": str(netrc)}, True),
        (["http://192.0.2.2/in.h5"], {"NETRC": str(netrc)}, False),
        ([f"{url}?token={SECRET}"], {}, True),
        ([url.replace("//", f"//me:{SECRET}@")], {}, True),
        ([url.replace("http:", "https:"), "--header", f"X-Token: {SECRET}"], {}, False),
        (["http://127.0.0.1:1/in.h5", "--header", f"X-Token: {SECRET}"], {}, False),
    ):
        done = z("convert", *words, "out.zarr", status=1, **given, **variables)
        assert ("plain http to another machine" in done.stderr) == warned, (words, done.stderr)
        assert is_told(done) == []


def test_files_that_differ_in_the_query_are_told_apart(server):
    """Also where the query looks like a secret; a signature is another one each time and tells nothing apart."""
    queries = [f"id={i}&code={SECRET}{i}" for i in range(3)]
    for query, name in zip(queries, make_days()):
        server.put(query, pathlib.Path(name).read_bytes())

    def fault(r, go):
        r.name = r.query.partition("&X-Amz")[0]
        return go()

    server.fault = fault
    urls = [f"{server.url}/get?{query}" for query in queries]
    done = [z("convert", "--concat", "t", *urls, "out.zarr", *NATIVE)]
    listed = json.loads(pathlib.Path("out.zarr/zarr.json").read_text())["attributes"]["_nc_zarrbits"]["sources"]
    assert len({n["file"] for n in listed}) == 3
    signed = [f"{url}&{SIGNED}{i}" for i, url in enumerate(urls)]
    done.append(z("verify", "--concat", "t", *signed, "out.zarr"))
    done.append(z("convert", "--json", "--append", "t", *signed, "out.zarr"))
    assert [s["notes"] for s in json.loads(done[-1].stdout)["sources"]] == [["it is already in the store"]] * 3
    assert is_told(*done) == []


@pytest.mark.parametrize("way", ["one", "joined", "partition", "append", "folder"])
def test_references_to_a_file_that_a_query_names(server, way):
    """No server has a file by the name that the references would have."""
    names = make_days()
    for name in names:
        server.put(name, pathlib.Path(name).read_bytes())

    def fault(r, go):
        r.name = r.query.partition("=")[2] or r.name
        return go()

    server.fault = fault
    urls = [f"{server.url}/get?persistentId={name}" for name in names]
    out, words = "refs.parquet" if way == "folder" else "refs.json", ("query", f"{server.url}/get")
    if way == "append":
        z("convert", "-q", "--virtual", "--concat", "t", f"{server.url}/{names[0]}", out, *NATIVE)
        refused("convert", "-q", "--append", "t", urls[1], out, words=words)
    elif way in ("one", "folder"):
        refused("convert", "-q", "--virtual", urls[0], out, words=words)
    else:
        options = ["--partition", "0/1"] if way == "partition" else []
        done = z("convert", "-q", "--virtual", "--concat", "t", *urls, out, *options, status=1)
        assert all(word in done.stderr for word in words) and not os.path.isfile(out), done.stderr
    # what redirects there has a name of its own
    server.fault = lambda r, go: redirect(f"{server.url}/{names[0]}?sig=1&se=2") if r.name == "doi" else go()
    z("convert", "-q", "--virtual", f"{server.url}/doi", "other.json")
    z("verify", f"{server.url}/doi", "other.json")


def test_lists_and_braces_of_urls_with_a_query(server):
    names = make_days()
    for name in names:
        server.put("data/" + name, pathlib.Path(name).read_bytes())
    z("convert", "-q", "--concat", "t", *names, "local.zarr", *NATIVE)
    pathlib.Path("given.txt").write_text("".join(f"{server.url}/data/{n}?{SIGNED}\n" for n in names))
    done = []
    for names in ([f"{server.url}/data/d{{8,9,10}}.h5?{SIGNED}"], ["@given.txt"]):
        done.append(z("convert", "--concat", "t", *names, "out.zarr", *NATIVE, "--overwrite", "--report", "report.json"))
        done.append(z("verify", "--concat", "t", *names, "out.zarr"))
        done.append(z("plan", "--json", "--concat", "t", *names))
    assert {r.query for r in server.requests} == {SIGNED}
    assert is_told(*done) == []


def run_slowly(server, *words, **variables):
    """A conversion that is looked at while it runs, and killed once it has made some chunks."""
    server.rate = 6e6
    process = begin("convert", *words, "out.zarr", *NATIVE, env=environment(ZARRBITS_S3_PATIENCE="60", **variables))
    until, lines = time.monotonic() + 60, set()
    while process.poll() is None and not has_units("out.zarr") and time.monotonic() < until:
        if server.requests:  # it has read its command line
            lines.add(commands_of(process))
        time.sleep(0.01)
    lines.add(commands_of(process))
    said = kill(process)
    server.rate = None
    assert process.returncode < 0 and has_units("out.zarr"), said
    assert any(b"convert" in line for line in lines), "no command line was read"
    return said, lines


@pytest.mark.parametrize("how", ["query", "capitals", "header", "header in the middle", "user"])
def test_the_process_list_and_an_unfinished_store(server, how):
    url = server.put("in.h5", large("in.h5"))
    words = {
        "query": [f"{url}?{SIGNED}"],
        "capitals": [f"{url.replace('http', 'HTTP')}?{SIGNED}"],
        "header": ["--header", f"Authorization: Bearer {SECRET}", url],
        "header in the middle": [url, f"--header=X-Token: {SECRET}"],
        "user": [url.replace("//", f"//someone:{SECRET}@")],
    }[how]
    said, lines = run_slowly(server, *words)
    assert not any(SECRET.encode() in line for line in lines)
    assert journals("out.zarr") and is_told(said) == []
    # with another signature it is the same source
    done = z("convert", *[w.replace(SECRET, "another") for w in words], "out.zarr", "--resume")
    z("verify", url, "out.zarr")
    assert is_told(done) == []


def test_shares_of_signed_urls(server):
    plain = server.put("in.h5", make("in.h5"))
    z("convert", "-q", "in.h5", "local.zarr")
    done = [z("convert", f"{plain}?{SIGNED}{i}", "out.zarr", "--partition", f"{i}/2") for i in range(2)]
    assert is_told(*done) == []
    done.append(z("finalize", f"{plain}?{SIGNED}x", "out.zarr"))
    same("local.zarr", "out.zarr")
    assert is_told(*done) == []


def test_what_a_redirect_leads_to_is_not_told(server):
    server.put("in.h5", make("in.h5"))
    server.fault = lambda r, go: redirect(f"/in.h5?{SIGNED}") if r.name == "public.h5" else go()
    done = [z("convert", "--report", "report.json", server.url + "/public.h5", "out.zarr")]
    done.append(z("convert", "--virtual", server.url + "/public.h5", "refs.json"))
    assert f"{server.url}/public.h5" in pathlib.Path("refs.json").read_text()
    for answer in (Answer(403, b""), Answer(404, b""), Answer(500, b""), redirect("ftp://x/" + SECRET), lambda handler: None):
        server.fault = lambda r, go: redirect(f"/in.h5?{SIGNED}") if r.name == "public.h5" else answer
        done.append(z("plan", server.url + "/public.h5", status=1))
    server.fault = lambda r, go: redirect(f"/public.h5?{SIGNED}")
    done.append(z("plan", server.url + "/public.h5", status=1))
    server.fault = lambda r, go: redirect(f"http://localhost:1/in.h5?{SIGNED}")
    done.append(z("plan", server.url + "/public.h5", status=1))
    assert is_told(*[d for d in done if "ftp://" not in d.stderr]) == []


# Headers


def needs(word):
    return lambda r, go: go() if r.headers.get("Authorization") == word else Answer(401, b"who?")


@pytest.mark.parametrize("way", ["option", "file", "variable", "two"])
def test_headers(server, way):
    url = server.put("in.h5", make("in.h5"))
    z("convert", "-q", "in.h5", "local.zarr")
    line = f"Authorization: Bearer {SECRET}"
    pathlib.Path("given").write_text(f"{line}\r\nX-Other: 1\n\n")
    options, variables = {
        "option": (["--header", line], {}),
        "file": (["--header", "@given"], {}),
        "variable": ([], {"ZARRBITS_HEADERS": f"X-Other: 1\n{line}\n"}),
        "two": (["--header", "X-Other: 1", "--header", line], {}),
    }[way]
    server.fault = needs(f"Bearer {SECRET}")
    refused("convert", "-q", url, "none.zarr", words=("401", "header", "netrc"))
    server.requests.clear()
    done = [z("convert", "--report", "report.json", url, "out.zarr", *options, **variables)]
    same("local.zarr", "out.zarr")
    assert way == "option" or {r.headers.get("X-Other") for r in server.requests} == {"1"}
    for words in (
        ["verify", url, "out.zarr"],
        ["plan", "--json", url],
        ["inspect", url],
        ["suggest", url],
        ["doctor", url],
        ["convert", "--virtual", url, "refs.json"],
        ["verify", url, "refs.json"],
    ):
        done.append(z(*words, *options, **variables, status=(0, 1) if words[0] == "doctor" else 0))
    assert is_told(*done) == []


@promise("They go only to the server")
@pytest.mark.parametrize("other", ["localhost", "127.0.0.1"], ids=["another name", "another port"])
@pytest.mark.parametrize("way", ["header", "variable", "user"])
def test_another_host_gets_no_header(server, other, way):
    line = f"Authorization: Bearer {SECRET}"
    options = ["--header", line, "--header", f"Cookie: {SECRET}"] if way == "header" else []
    variables = {"ZARRBITS_HEADERS": f"{line}\nCookie: {SECRET}"} if way == "variable" else {}
    with Server(host=other) as second:
        to = second.put("in.h5", make("in.h5"))
        server.fault = lambda r, go: redirect(to)
        url = server.url + "/public.h5"
        if way == "user":
            url = url.replace("//", f"//someone:{SECRET}@")
        z("convert", "-q", "--follow-private", url, "out.zarr", *options, **variables)
        assert any(r.headers.get("Authorization") for r in server.requests)
        assert second.requests
        told = [
            n for r in second.requests for n, v in r.headers.items() if SECRET in v or n in ("Authorization", "Cookie", "Referer")
        ]
        assert told == []


def test_headers_come_back_with_the_host(server):
    """Sent elsewhere without them, and back with them."""
    with Server(host="localhost") as second:
        url = server.put("in.h5", make("in.h5"))
        server.fault = lambda r, go: redirect(f"{second.url}/there") if r.name == "first" else needs(f"Bearer {SECRET}")(r, go)
        second.fault = lambda r, go: redirect(url)
        z("convert", "-q", "--follow-private", server.url + "/first", "out.zarr", "--header", f"Authorization: Bearer {SECRET}")
        assert not any(r.headers.get("Authorization") for r in second.requests)


# Logins


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@promise("They go only to the server")
@pytest.mark.parametrize("way", ["HOME", "NETRC"])
def test_netrc(server, way):
    url = server.put("in.h5", make("in.h5"))
    os.mkdir("given")
    path = pathlib.Path("given/.netrc" if way == "HOME" else "given/logins")
    path.write_text(f"machine elsewhere.example login x password y\nmachine 127.0.0.1 login me password {SECRET}\n")
    path.chmod(0o600)
    variables = {"HOME": os.path.realpath("given")} if way == "HOME" else {"NETRC": os.path.realpath(path)}
    server.fault = needs(basic("me", SECRET))
    refused("convert", "-q", url, "none.zarr", words=("401", "netrc"))
    done = [z("convert", url, "out.zarr", **variables), z("verify", url, "out.zarr", **variables)]
    assert not any(SECRET in d.stdout + d.stderr for d in done)
    assert not any(SECRET.encode() in body for body in contents("out.zarr").values())
    # the password of one host is not for another
    with Server(host="localhost") as second:
        to = second.put("in.h5", server.files["in.h5"].body)
        server.fault = lambda r, go: redirect(to)
        z("convert", "-q", "--follow-private", url, "other.zarr", **variables)
        assert second.requests and not any(r.headers.get("Authorization") for r in second.requests)


def test_a_login_that_another_server_does(server):
    """As Earthdata's: the data's server redirects to one that knows you by ~/.netrc, and that one back; then a cookie counts."""
    url = server.put("data/in.h5", large("in.h5", 4))
    path = pathlib.Path("given.netrc")
    path.write_text(f"machine localhost login me password {SECRET}\n")
    path.chmod(0o600)
    with Server(host="localhost") as logins:

        def data(r, go):
            if "session=good" in r.headers.get("Cookie", ""):
                return go()
            if r.name == "login":
                assert r.query == "code=ticket"
                return Answer(302, b"", {"Location": url, "Set-Cookie": "session=good; Path=/"})
            return redirect(f"{logins.url}/oauth?back={r.name}")

        def login(r, go):
            if r.headers.get("Authorization") != basic("me", SECRET):
                return Answer(401, b"", {"WWW-Authenticate": 'Basic realm="logins"'})
            return redirect(f"{server.url}/login?code=ticket")

        server.fault, logins.fault = data, login
        done = z("convert", "-q", "--follow-private", url, "out.zarr", *NATIVE, NETRC=os.path.realpath(path))
        z("convert", "-q", "in.h5", "local.zarr", *NATIVE)
        same("local.zarr", "out.zarr")
        assert len(logins.requests) <= 4, "one login is enough"
        assert not any(r.headers.get("Authorization") for r in server.requests)
        assert not any("session" in r.headers.get("Cookie", "") for r in logins.requests)
        assert is_told(done) == []
        z("plan", "--follow-private", url, status=1)


# Certificates


def test_a_certificate_that_nobody_knows(certified):
    with Server(certificate=certified, host="localhost") as s:
        url = s.put("in.h5", make("in.h5"))
        z("convert", "-q", "in.h5", "local.zarr")
        refused("convert", "-q", url, "out.zarr", words=("certificate", "--ca-file"))
        for words in (["plan", url], ["inspect", url], ["suggest", url], ["doctor", url], ["verify", url, "local.zarr"]):
            done = z(*words, status=1)
            assert "--ca-file" in done.stderr + done.stdout
        assert s.requests == []
        for n, (options, variables) in enumerate(
            ((["--ca-file", certified[0]], {}), ([], {"SSL_CERT_FILE": certified[0]}), ([], {"AWS_CA_BUNDLE": certified[0]}))
        ):
            z("convert", "-q", url, f"out{n}.zarr", *options, **variables)
            same("local.zarr", f"out{n}.zarr")
            z("verify", url, f"out{n}.zarr", *options, **variables)
        z("convert", "-q", "--virtual", url, "refs.json", "--ca-file", certified[0])
        z("verify", url, "refs.json", "--ca-file", certified[0])


def test_a_certificate_of_another_host(tmp_path, certified):
    with Server(certificate=certificate(tmp_path, "DNS:elsewhere.example", name="other"), host="localhost") as s:
        url = s.put("in.h5", make("in.h5"))
        refused("convert", "-q", url, "out.zarr", "--ca-file", str(tmp_path / "other-certificate.pem"), words=("certificate",))
        refused("convert", "-q", url, "out.zarr", "--ca-file", certified[0], words=("certificate",))
        assert s.requests == []
    with Server(certificate=certified) as s:  # by its address, which the certificate does not have
        refused("convert", "-q", s.put("in.h5", b"x"), "out.zarr", "--ca-file", certified[0], words=("certificate",))
        assert s.requests == []


def test_each_fault_of_a_certificate_has_its_remedy(tmp_path, certified):
    """Time, name and authority."""
    request, key, expired = (tmp_path / n for n in ("old.csr", "old-key.pem", "old.pem"))
    words = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run(
        [*words, "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", request], check=True, capture_output=True
    )
    words = [
        "openssl",
        "x509",
        "-req",
        "-in",
        request,
        "-signkey",
        key,
        "-days",
        "-1",
        "-copy_extensions",
        "copy",
        "-out",
        expired,
    ]
    subprocess.run(words, check=True, capture_output=True)
    other = certificate(tmp_path, "DNS:elsewhere.example", name="other")
    cases = {
        "time": ((str(expired), str(key)), str(expired), ["expired", "clock"]),
        "name": (other, other[0], ["name that the server's certificate has"]),
        "authority": (other, certified[0], ["--ca-file"]),
    }
    for pair, trusted, remedy in cases.values():
        with Server(certificate=pair, host="localhost") as s:
            refused("convert", "-q", s.put("in.h5", b"x"), "out.zarr", "--ca-file", trusted, words=remedy)
            name = ["s3://bucket/in.h5", "out.zarr", "--endpoint", s.url, "--no-sign-request"]
            refused("convert", "-q", *name, "--ca-file", trusted, words=remedy)
            assert s.requests == []


@pytest.mark.parametrize("what", ["none", "not one", "a folder"])
def test_a_file_of_certificates_that_is_none(certified, what):
    pathlib.Path("not one").write_text("hello")
    os.mkdir("a folder")
    with Server(certificate=certified, host="localhost") as s:
        url = s.put("in.h5", b"x")
        refused("convert", "-q", url, "out.zarr", "--ca-file", what, words=("--ca-file",), status=(1, 2))
        assert s.requests == []


@promise("A redirect leads neither to a")
def test_from_https_to_http_is_not_followed(server, certified):
    """Whatever is allowed otherwise."""
    to = server.put("in.h5", make("in.h5"))
    with Server(certificate=certified, host="localhost") as s:
        s.fault = lambda r, go: redirect(to)
        for options in ([], ["--follow-private"]):
            refused("convert", "-q", s.url + "/x.h5", "out.zarr", "--ca-file", certified[0], *options, words=("https",))
        assert server.requests == []
        s.put("in.h5", server.files["in.h5"].body)
        s.fault = lambda r, go: redirect("/in.h5") if r.name == "x.h5" else go()
        z("convert", "-q", s.url + "/x.h5", "out.zarr", "--ca-file", certified[0])
        server.fault = lambda r, go: redirect(s.url + "/in.h5")  # the other direction is fine
        z("convert", "-q", to, "out2.zarr", "--ca-file", certified[0], "--follow-private")
        same("out.zarr", "out2.zarr")


def test_http_is_not_https(server):
    url = server.put("in.h5", make("in.h5")).replace("http:", "https:")
    refused("convert", "-q", url, "out.zarr", words=("cannot be reached",))


def test_secrets_over_plain_http_to_this_machine_need_no_warning(server):
    url = server.put("in.h5", make("in.h5"))
    assert z("convert", "-q", url, "out.zarr", "--header", "Authorization: Bearer x").stderr == ""


def test_many_connections_with_tls(certified):
    body = large("in.h5", 20)
    z("convert", "-q", "in.h5", "local.zarr", *NATIVE)
    with Server(certificate=certified, host="localhost", delay=0.02) as s:
        url = s.put("in.h5", body)
        z("convert", "-q", url, "out.zarr", *NATIVE, "--ca-file", certified[0])
        same("local.zarr", "out.zarr")
        assert s.connections <= 20 and s.sent <= len(body) + PAGE
    assert not re.search(rb"-----BEGIN", b"".join(contents("out.zarr").values()))
