# SPDX-License-Identifier: BSL-1.0
"""A hostile HTTP server of sources: from a request on that the seed chooses, it lies, cuts off, floods, or is silent.
Each run has to end within its time, either with 0 and what a good server leads to, or with another status and nothing left.

ZARRBITS_CASES: how many, by default two of each kind; ZARRBITS_SEED: others.

A server that sends other bytes of the right size, and the right ETag, is not noticed: nothing else is known of the file."""

import collections
import concurrent.futures
import os
import pathlib
import random
import subprocess
import time

from harness import COMMAND, contents
from hostile_answers import drip, flood, raw
from http_server import Answer, Server, redirect, reset
from https_conversion import NATIVE, PAGE, environment, kept_stores, large, make, make_days, scattered

LONGEST = 90  # seconds
RIGHT = ("done", "refused", "untouched", "read")
SECRET = "geheim"
WRONG_WORDS = ("crashed", "terminate", "bad_alloc", "std::", SECRET, "\x1b", "Sanitizer", "HDF5-DIAG")


def headed(go, **headers):
    """The right answer with other headers; None: without."""
    answer = go()
    for name, value in headers.items():
        name = name.replace("_", "-")
        answer.headers.pop(name, None)
        if value is not None:
            answer.headers[name] = value
    return answer


def sized(go, change):
    """The right answer with another body, whose length it says."""
    answer = go()
    answer.body = change(bytes(answer.body))
    return answer


def announced(go, by):
    answer = go()
    answer.headers |= {"Content-Length": str(max(0, len(answer.body) + by)), "Connection": "close"}
    return answer


def without_length(go, part):
    """The end of the connection is that of the body, of which only a part comes."""
    answer = go()
    answer.headers["Content-Length"] = None
    answer.body = bytes(answer.body)[: len(answer.body) // part]
    return answer


def shifted(g, go):
    answer = go()
    where, _, total = answer.headers.get("Content-Range", "bytes 0-0/1").partition("/")
    first, last = (int(n) for n in where.removeprefix("bytes ").split("-")) if "-" in where else (0, 0)
    by = g.choice([-1, 1, PAGE, 1 << 62])
    answer.headers["Content-Range"] = g.choice(
        [f"bytes {first + by}-{last + by}/{total}", f"bytes {last}-{first}/{total}", f"bytes {first}-{last + by}/{total}"]
    )
    return answer


def totalled(go, total):
    answer = go()
    answer.headers["Content-Range"] = answer.headers.get("Content-Range", "bytes 0-0").split("/")[0] + "/" + total
    return answer


# name: fault(rng, server, request, go_on)
FAULTS = {
    "503": lambda g, s, r, go: Answer(503, b"busy"),
    "429": lambda g, s, r, go: Answer(429, b"busy", {"Retry-After": g.choice(["0", "1", "-1", "1e999", "x", "99999999999"])}),
    "500": lambda g, s, r, go: Answer(500, b"<html>" + b"x" * 100_000),
    "other status": lambda g, s, r, go: Answer(
        g.choice([199, 203, 205, 207, 299, 300, 304, 400, 402, 418, 499, 505, 599, 999]), b"x"
    ),
    "204": lambda g, s, r, go: Answer(204),
    "401": lambda g, s, r, go: Answer(
        401, b"", {"WWW-Authenticate": g.choice(['Basic realm="x"', "Negotiate", "Digest x", "\x07"])}
    ),
    "403": lambda g, s, r, go: Answer(403, b"\x1b]0;title\x07"),
    "404": lambda g, s, r, go: Answer(404, b""),
    "412": lambda g, s, r, go: Answer(412, b""),
    "416": lambda g, s, r, go: Answer(416, b"", {"Content-Range": g.choice(["bytes */0", "bytes */1", "bytes */x", "x"])}),
    "100 without end": lambda g, s, r, go: raw(b"", flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, 500)),
    "101": lambda g, s, r, go: raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n\0\0\0"),
    "html": lambda g, s, r, go: Answer(200, b"<html><body>Welcome<br></body>"),
    "whole": lambda g, s, r, go: Answer(200, s.files["in.h5"].body, s.files["in.h5"].headers()) if "in.h5" in s.files else go(),
    "nothing": lambda g, s, r, go: Answer(g.choice([200, 206]), b""),
    "shorter": lambda g, s, r, go: sized(go, lambda b: b[: g.randrange(len(b) + 1)]),
    "longer": lambda g, s, r, go: sized(go, lambda b: b + bytes(g.choice([1, 100, PAGE, 20 * PAGE]))),
    "announces more": lambda g, s, r, go: announced(go, g.choice([1, 1000, PAGE, 1 << 62])),
    "announces less": lambda g, s, r, go: announced(go, -g.choice([1, 1000])),
    "no length": lambda g, s, r, go: without_length(go, g.choice([1, 2, 1000])),
    "another range": lambda g, s, r, go: shifted(g, go),
    "no range": lambda g, s, r, go: headed(go, Content_Range=None),
    "range of nonsense": lambda g, s, r, go: headed(
        go, Content_Range=g.choice(["", "bytes", "x", "bytes -/", "bytes 1-2/\x1b", "9" * 90_000])
    ),
    "another total": lambda g, s, r, go: totalled(
        go, g.choice(["0", "1", "*", "-1", str(2**63), str(2**64 - 1), str(2**64), "x" * 900])
    ),
    "several parts": lambda g, s, r, go: headed(go, Content_Type="multipart/byteranges; boundary=x", Content_Range=None),
    "another etag": lambda g, s, r, go: headed(go, ETag=f'"{g.random()}"'),
    "no etag": lambda g, s, r, go: headed(go, ETag=None),
    "strange etag": lambda g, s, r, go: headed(
        go, ETag=g.choice(['"', '""', "W/", 'W/"x"', '"a" "b"', "x" * 9000, '"\x1b[2J"', '"é"', "*"])
    ),
    "another time": lambda g, s, r, go: headed(
        go, ETag=None, Last_Modified=g.choice(["Thu, 99 Foo 99999 99:99:99 GMT", "x", "", "\x07"])
    ),
    "gzip": lambda g, s, r, go: headed(go, Content_Encoding=g.choice(["gzip", "deflate", "br", "x" * 5000, "gzip, gzip"])),
    "chunks": lambda g, s, r, go: raw(
        b"HTTP/1.1 206 X\r\nTransfer-Encoding: chunked\r\n\r\n"
        + g.choice([b"ffffffffffffffff\r\n<", b"-1\r\n", b"0\r\n\r\n", b"5\r\nab"])
    ),
    "cut off": lambda g, s, r, go: raw(b"HTTP/1.1 206 X\r\nContent-Length: 100000\r\n\r\n" + bytes(g.randrange(5000))),
    "no answer": lambda g, s, r, go: raw(b""),
    "no http": lambda g, s, r, go: raw(
        g.choice([b"SSH-2.0-OpenSSH\r\n", b"\x16\x03\x01", g.randbytes(3000), b"HTTP/0.9\r\n\r\n", b"HTTP/2 200\r\n\r\n"])
    ),
    "reset": lambda g, s, r, go: reset,
    "silence": lambda g, s, r, go: raw(b"", lambda h: time.sleep(20)),
    "drip": lambda g, s, r, go: raw(b"HTTP/1.1 206 X\r\nContent-Length: 100000\r\n\r\n", drip),
    "endless": lambda g, s, r, go: raw(b"HTTP/1.1 %d X\r\n\r\n" % g.choice([200, 206, 500]), flood(b"<" * PAGE, 200)),
    "headers": lambda g, s, r, go: raw(b"HTTP/1.1 206 X\r\n", flood(b"ETag: x\r\n" * 10_000, 200)),
    "one long header": lambda g, s, r, go: raw(b"HTTP/1.1 206 X\r\nETag: ", flood(b"x" * PAGE, 50)),
    "length": lambda g, s, r, go: raw(
        b"HTTP/1.1 206 X\r\nContent-Length: %s\r\n\r\nx"
        % g.choice([b"-5", b"9223372036854775807", b"99999999999999999999", b"x", b"1, 2"])
    ),
    "cookies": lambda g, s, r, go: headed(
        go, Set_Cookie=g.choice(["a=" + "x" * 60_000, "=;;;", "\x1b=1", "a=b; Domain=.com", "x" * 5000])
    ),
    "redirect": lambda g, s, r, go: redirect(
        g.choice(TARGETS).format(url=s.url, port=s.port), g.choice([301, 302, 303, 307, 308])
    ),
    "redirect of nonsense": lambda g, s, r, go: redirect(
        g.choice(["", "\x1b", "//", "http:", "x" * 60_000, "http://\xff/", "?" * 9000])
    ),
    "redirect and then": lambda g, s, r, go: (
        redirect(f"/in.h5?sig={SECRET}") if not r.query else Answer(g.choice([401, 403, 410, 500]), b"")
    ),
    "hsts": lambda g, s, r, go: headed(
        go, Strict_Transport_Security="max-age=9999", Alt_Svc='h3=":1"; ma=9999', Connection="Upgrade"
    ),
}
TARGETS = (
    "{url}/in.h5",
    "{url}/other.h5",
    "{url}/none",
    "/in.h5",
    "//127.0.0.1:{port}/in.h5",
    "file:///etc/hostname",
    "http://localhost:{port}/in.h5",
    "http://127.0.0.1:1/in.h5",
    "https://127.0.0.1:{port}/in.h5",
    "http://someone:" + SECRET + "@127.0.0.1:{port}/in.h5",
    "ftp://127.0.0.1:{port}/in.h5",
)


def make_sources(folder):
    """{name: (the file, what its store has)}; the stores are in the folder, too."""
    made = {}
    for name, make_it in {
        "small": lambda path: make(path, "texts"),
        "chunks": lambda path: make(path, "many small chunks"),
        "large": lambda path: large(path, 6),
        "scattered": scattered,
    }.items():
        body, out = make_it(folder / "in.h5"), folder / f"{name}.zarr"
        execute("convert", "-q", folder / "in.h5", out, *NATIVE)
        made[name] = (body, contents(out))
    return made


def execute(*words, **how):
    return subprocess.run([COMMAND, *map(str, words)], env=environment(), check=True, capture_output=True, **how)


def one_case(folder, sources, fault_name, seed):
    """The outcome, or what is wrong."""
    rng = random.Random(f"{fault_name} {seed}")
    source = rng.choice(list(sources))
    body, good = sources[source]
    way = rng.choice(["convert", "convert", "convert", "virtual", "resume", "verify", "plan", "inspect", "suggest"])
    begins, lasts, only_later = rng.choice([0, 0, 0, 1, 1, 2, 4]), rng.choice([1, 2, 10**9]), rng.random() < 0.3
    state = collections.Counter()

    def fault(r, go):
        if only_later and (r.range is None or r.range[0] < PAGE):
            return go()
        with server.lock:
            n = state["asked"]
            state["asked"] += 1
        if not begins <= n < begins + lasts:
            return go()
        state["faults"] += 1
        return FAULTS[fault_name](rng, server, r, go)

    here = folder / f"case {seed}"
    here.mkdir()
    with Server(fault) as server:
        url = server.put("in.h5", body)
        server.put("other.h5", body, etag='"other"')
        store = folder / f"{source}.zarr"
        words = {
            "convert": ["convert", "-q", url, "out.zarr", *NATIVE],
            "resume": ["convert", "-q", url, "out.zarr", *NATIVE, "--resume"],
            "virtual": ["convert", "-q", "--virtual", url, "refs.json"],
            "verify": ["verify", url, store],
        }.get(way, [way, url])
        options = rng.choice([[], [], ["--follow-private"], ["--connections", "1"], ["--header", f"X-Token: {SECRET}"]])
        try:
            done = subprocess.run(
                [COMMAND, *map(str, words), *options], env=environment(), cwd=here, capture_output=True, timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            return f"{way} does not end within {LONGEST} s"
    said = (done.stdout if way in ("verify", "plan", "inspect") else b"") + done.stderr
    text, left = said.decode(errors="replace"), sorted(p.name for p in here.iterdir())
    case = f"{way} of {source}, from request {begins} for {lasts}, {options}: status {done.returncode}: {text[-1500:]}"
    if done.returncode not in ((0, 1, 3) if way in ("verify", "inspect", "plan") else (0, 1)):
        return case
    if any(word in text for word in WRONG_WORDS):
        return f"says what it must not: {case}"
    if way in ("convert", "resume") and done.returncode == 0:
        if contents(here / "out.zarr") != good:
            return f"another store: {case}"
        return "done" if state["faults"] else "untouched"
    if way == "resume":
        return f"looks whole: {case}" if (here / "out.zarr/zarr.json").exists() else "refused"
    if way == "virtual" and done.returncode == 0:
        # by a good server
        with Server() as second:
            second.put("in.h5", body)
            refs = (here / "refs.json").read_text().replace(server.url, second.url)
            (here / "refs.json").write_text(refs)
            again = subprocess.run(
                [COMMAND, "verify", second.url + "/in.h5", "refs.json"],
                env=environment(),
                cwd=here,
                capture_output=True,
                text=True,
            )
        # a server that said nothing of the file, or something else in each answer, left no ETag to compare with
        equal = again.returncode == 0 or "has changed since" in again.stdout + again.stderr
        return (
            ("done" if state["faults"] else "untouched")
            if equal
            else f"wrong references: {case}: {(again.stdout + again.stderr)[:500]}"
        )
    left = [name for name in left if here / name not in kept_stores(here, text)]
    if left:
        return f"left {left}: {case}"
    if done.returncode != 0 and way in ("convert", "virtual") and len(text.strip().splitlines()) > 2:
        return f"no sentence: {case}"
    if way == "verify" and done.returncode == 0 and state["faults"] == 0:
        return "untouched"
    return "refused" if way in ("convert", "virtual") else "read"


def test_a_hostile_server(memory_folder):
    cases, seed = int(os.environ.get("ZARRBITS_CASES", 2 * len(FAULTS))), int(os.environ.get("ZARRBITS_SEED", "1"))
    folder = pathlib.Path(memory_folder)
    sources = make_sources(folder)
    names = [list(FAULTS)[i % len(FAULTS)] for i in range(cases)]
    counts, wrong = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda n: one_case(folder, sources, n[1], f"{seed} {n[0]}"), enumerate(names))
        for (number, name), result in zip(enumerate(names), results):
            counts[result if result in RIGHT else "WRONG"] += 1
            if result not in RIGHT:
                wrong.append(f"{name}, case {number}: {result}")
    print(
        f"hostile HTTP server: seed {seed}, {cases} cases of {len(FAULTS)} kinds: {counts['done']} done with the right result in "
        f"spite of it, {counts['refused']} refused with none, {counts['untouched']} never asked what it would have lied about, "
        f"{counts['read']} of verify, plan, inspect and suggest, {counts['WRONG']} wrong"
    )
    assert not wrong, "\n".join(wrong)


def test_one_of_many_sources_is_hostile(memory_folder, monkeypatch):
    """Joined or appended: what comes of it is right, or is what was there before."""
    monkeypatch.chdir(memory_folder)
    seed, names = int(os.environ.get("ZARRBITS_SEED", "1")), make_days()
    cases = int(os.environ.get("ZARRBITS_CASES", 2 * len(FAULTS))) // 4
    bodies = [pathlib.Path(name).read_bytes() for name in names]
    counts, wrong = collections.Counter(), []

    def one(number):
        rng = random.Random(f"many {seed} {number}")
        kind, begins, lasts = rng.choice(list(FAULTS)), rng.randrange(4), rng.choice([1, 10**9])
        asked, here = [], pathlib.Path(memory_folder, f"many {number}")
        here.mkdir()

        def fault(r, go):
            if not broken or r.name != names[1]:
                return go()
            asked.append(r)
            return FAULTS[kind](rng, server, r, go) if begins < len(asked) <= begins + lasts else go()

        broken = False
        with Server(fault) as server:
            urls = [server.put(name, body) for name, body in zip(names, bodies)]
            verify = [COMMAND, "verify", "--concat", "t", *urls, "out.zarr"]
            append = rng.random() < 0.5
            if append:
                execute("convert", "-q", "--concat", "t", urls[0], "out.zarr", *NATIVE, cwd=here)
            before = contents(here / "out.zarr") if append else {}
            words = ["--append", "t", *urls[1:], "out.zarr"] if append else ["--concat", "t", *urls, "out.zarr", *NATIVE]
            broken = True
            try:
                done = subprocess.run(
                    [COMMAND, "convert", "-q", *words],
                    env=environment(),
                    cwd=here,
                    capture_output=True,
                    text=True,
                    timeout=LONGEST,
                )
            except subprocess.TimeoutExpired:
                return f"{kind}: does not end within {LONGEST} s"
            broken = False
            case = f"{kind}, {'append' if append else 'concat'}, from {begins} for {lasts}: {done.returncode}: {done.stderr}"
            if done.returncode not in (0, 1) or any(word in done.stderr for word in WRONG_WORDS):
                return case
            if done.returncode == 1:
                now = contents(here / "out.zarr") if (here / "out.zarr").exists() else {}
                now.pop("lock", None), before.pop("lock", None)
                kept = not append and kept_stores(here, done.stderr)
                return "refused" if kept or now == before else f"another store: {case}: {sorted(now.keys() ^ before.keys())}"
            again = subprocess.run(verify, env=environment(), cwd=here, capture_output=True, text=True)
            # its ETag may be the one that the bad server said
            if again.returncode != 0:
                return f"not equal: {case}: {(again.stdout + again.stderr)[:500]}"
            return "done"

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for result in pool.map(one, range(cases)):
            counts[result if result in RIGHT else "WRONG"] += 1
            wrong += [result] * (result not in RIGHT)
    print(f"hostile HTTP server, one of three sources: {cases} cases: {dict(counts)}")
    assert not wrong, "\n".join(wrong)
