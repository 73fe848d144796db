# SPDX-License-Identifier: BSL-1.0
"""A hostile S3 server: from a request on that the seed chooses, it lies, cuts off, floods, or is silent.
Each run has to end within its time, either with 0 and the same store as on a good server,
or with another status and no store that looks whole. An append leaves the store as before, or as the next one completes it.

ZARRBITS_CASES: how many, by default one of each kind; ZARRBITS_SEED: others.

A server that stores other bytes of the right size and says the right ETag is not found out;
only reading everything again would."""

import collections
import concurrent.futures
import os
import random
import subprocess
import time

import h5py
import numpy as np

import s3_server
from harness import run
from hostile_answers import drip, flood, raw
from s3_server import BUCKET, KEY, SECRET, Answer, Server, Stored, error

COMMAND = os.environ["ZARRBITS_COMMAND"]
GROUP = b'{"zarr_format": 3, "node_type": "group"}'
OLD = {"zarr.json": GROUP, "old/zarr.json": GROUP, "old/c/0": b"old", "grp/d/c/3": b"older"}
LONGEST = 90  # seconds
JOINED = []  # the result of joined()
RIGHT = ("done", "refused", "untouched", "read")


XML_ERROR = '<Error xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Code>{}</Code><Message>\x1b[2J&#x202e;no</Message></Error>'


def wrong_list(kind, rng, server, r, go):
    answer = go()
    if r.kind != "list":
        return answer
    entries, token = server.listed(r)
    if kind == "foreign":
        entries += [
            (k, Stored(b"x"))
            for k in ("precious", "out.zarr/../precious", "/", "out.zarr/", "out.zarr//a", "out.zarr2/x", "out.zarr/.")
        ]
    elif kind == "extra":
        entries += [(f"out.zarr/x{rng.random()}", Stored(b"x"))]
    elif kind == "missing" and entries:
        entries.pop(rng.randrange(len(entries)))
    elif kind == "sizes" and entries:
        key, o = entries.pop(rng.randrange(len(entries)))
        entries.append((key, Stored(b"x" * (len(o.body) + 1)) if o else o))
    elif kind == "twice":
        entries += entries[:1]
    elif kind == "token":
        token = "again"
    elif kind == "tokens":
        token = f"token{rng.random()}"
    elif kind == "none":
        entries = []
    elif kind == "cut":
        return Answer(body=Server.list_xml(entries, "x").replace(b"<NextContinuationToken>x</NextContinuationToken>", b""))
    answer.body = Server.list_xml(entries, token)
    return answer


def lie(r, etag=None):
    return Answer(headers={"ETag": f'"{Stored(r.body).etag if etag is None else etag}"'})


# name: fault(rng, server, request, go_on)
FAULTS = {
    "503": lambda g, s, r, go: error(503, "SlowDown"),
    "500 once done": lambda g, s, r, go: (go(), error(500, "InternalError"))[1],
    "403": lambda g, s, r, go: error(403, "AccessDenied", "\x1b]0;title\x07"),
    "400": lambda g, s, r, go: error(400, "BadRequest", "x" * 100000),
    "404": lambda g, s, r, go: error(404, "NoSuchKey"),
    "409": lambda g, s, r, go: error(409, "ConditionalRequestConflict"),
    "412": lambda g, s, r, go: error(412, "PreconditionFailed"),
    "501": lambda g, s, r, go: error(501, "NotImplemented"),
    "200 and an error": lambda g, s, r, go: Answer(
        body=XML_ERROR.format(g.choice(["InternalError", "AccessDenied", "NoSuchUpload"])).encode()
    ),
    "200 and nothing": lambda g, s, r, go: Answer(),
    "204": lambda g, s, r, go: Answer(204),
    "206": lambda g, s, r, go: Answer(206, b"x"),
    "100 for ever": lambda g, s, r, go: raw(b"", flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, 1000)),
    "html": lambda g, s, r, go: Answer(body=b"<html><body>Welcome<br></body>"),
    "garbage": lambda g, s, r, go: Answer(body=g.randbytes(g.randrange(5000))),
    "json": lambda g, s, r, go: Answer(body=b"[" * 100000),
    "deep xml": lambda g, s, r, go: Answer(body=b"<ListBucketResult>" + b"<a>" * 1_000_000),
    "wide xml": lambda g, s, r, go: Answer(body=b"<ListBucketResult>" + b"<a/>" * 300_000 + b"</ListBucketResult>"),
    "mutated": lambda g, s, r, go: mutated(g, go()),
    "no etag": lambda g, s, r, go: without(go(), "ETag"),
    "wrong etag": lambda g, s, r, go: lie(r, "0" * 32),
    "strange etag": lambda g, s, r, go: lie(r, g.choice(["&lt;", "</ETag>", "x" * 900, "W/", "", "-1"])),
    "lost": lambda g, s, r, go: lie(r) if r.method == "PUT" else Answer(204) if r.method == "DELETE" else go(),
    "part lost": lambda g, s, r, go: lie(r) if r.kind == "part" else go(),
    "shorter": lambda g, s, r, go: shorter(s, r, go),
    "cut off": lambda g, s, r, go: raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<ListBucketResult>"),
    "no answer": lambda g, s, r, go: raw(b""),
    "no http": lambda g, s, r, go: raw(b"SSH-2.0-OpenSSH\r\n"),
    "reset": lambda g, s, r, go: s3_server.reset,
    "reset once done": lambda g, s, r, go: (go(), s3_server.reset)[1],
    "silence": lambda g, s, r, go: raw(b"", lambda h: time.sleep(30)),
    "drip": lambda g, s, r, go: raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", lambda h: drip(h, b" ")),
    "endless": lambda g, s, r, go: raw(b"HTTP/1.1 200 OK\r\n\r\n", flood(b"<" * (1 << 20), 200)),
    "headers": lambda g, s, r, go: raw(b"HTTP/1.1 200 OK\r\n", flood(b"ETag: x\r\n" * 10000, 200)),
    "length": lambda g, s, r, go: raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx"),
    "negative length": lambda g, s, r, go: raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx"),
    "wrong length": lambda g, s, r, go: (
        Answer(200, b"", {"Content-Length": "123", "ETag": '"x"'}) if r.method == "HEAD" else go()
    ),
    "chunks": lambda g, s, r, go: raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n<"),
    "redirect": lambda g, s, r, go: Answer(g.choice([301, 302, 307, 308]), b"", {"Location": "http://127.0.0.1:1/elsewhere"}),
    "to a file": lambda g, s, r, go: Answer(302, b"", {"Location": "file:///etc/passwd"}),
    "authenticate": lambda g, s, r, go: Answer(401, b"", {"WWW-Authenticate": 'Basic realm="x"'}),
    "gzip": lambda g, s, r, go: Answer(200, b"\x1f\x8b\x08\x00" + b"\0" * 100, {"Content-Encoding": "gzip", "ETag": '"x"'}),
    "date": lambda g, s, r, go: without(go(), "", {"Date": "Thu, 99 Foo 99999 99:99:99 GMT"}),
    **{
        "list " + kind: (lambda kind: lambda g, s, r, go: wrong_list(kind, g, s, r, go))(kind)
        for kind in ("foreign", "extra", "missing", "sizes", "twice", "token", "tokens", "none", "cut")
    },
}


def without(answer, name, more=None):
    answer.headers.pop(name, None)
    answer.headers.update(more or {})
    return answer


def mutated(rng, answer):
    body = bytearray(answer.body)
    for _ in range(rng.randrange(1, 6)):
        if body:
            at = rng.randrange(len(body))
            body[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
    answer.body = bytes(body)
    return answer


def shorter(server, r, go):
    if r.kind == "complete":
        server.uploads.get(r.query["uploadId"], {}).pop(2, None)
    return go()


def make_sources(folder):
    sources = {}
    with h5py.File(folder / "small.h5", "w") as f:
        f.create_dataset("grp/d", data=np.arange(24, dtype="f4"), chunks=(2,))
        f.create_dataset("z", data=np.arange(64, dtype="i4"), chunks=(16,), compression="gzip")
        f["text"] = np.array(["a", "ü"], dtype=h5py.string_dtype())
    with h5py.File(folder / "large.h5", "w") as f:
        f.create_dataset("big", data=np.resize(np.arange(251, dtype="u1"), 17 << 20), chunks=(17 << 20,))
    for name in ("small", "large"):
        path = folder / f"{name}.h5"
        run("convert", "-q", path, folder / name)
        sources[path] = {str(p.relative_to(folder / name)): p.read_bytes() for p in (folder / name).rglob("*") if p.is_file()}
    return sources


def one_case(sources, name, seed):
    """(the outcome, or what is wrong)"""
    rng = random.Random(f"{name} {seed}")
    if (other := rng.random()) < 0.35:
        return one_reading(sources, name, seed) if other < 0.2 else one_append(name, seed, rng.random() < 0.5)
    small, large = sources
    parts = name in ("part lost", "shorter") or rng.random() < 0.15
    source = large if parts else small
    options = rng.choice([[], [], ["--overwrite"], ["--resume"], ["--shard", "64"]] if not parts else [[], ["--overwrite"]])
    kinds = rng.choice(
        [("list", "put", "get", "head", "delete", "initiate", "part", "complete", "abort")] * 2
        + [(k,) for k in ("list", "put", "get", "delete", "head")]
        + [("part",), ("complete",), ("initiate",)] * parts
    )
    begins, lasts = rng.randrange({9: 30, 1: 1}[len(kinds)] if kinds[0] != "put" else 12), rng.choice([1, 2, 10**9, 10**9])
    state = collections.Counter()

    def fault(r, go):
        if r.kind not in kinds:
            return go()
        with server.lock:
            n = state["asked"]
            state["asked"] += 1
        if not begins <= n < begins + lasts:
            return go()
        state["faults"] += 1
        return FAULTS[name](rng, server, r, go)

    good = sources[source]
    if "--shard" in options:
        with Server() as server:
            subprocess.run(command(server, source, ["--shard", "64"]), env=environment(), check=True)
            good = server.content("out.zarr")
    with Server(fault, page=rng.choice([1000, 1000, 2])) as server:
        server.objects["precious"] = server.objects["out.zarr2/x"] = Stored(b"precious")
        if "--overwrite" in options:
            for key, body in OLD.items():
                server.objects["out.zarr/" + key] = Stored(body, modified=time.time() - 3600)
        try:
            done = subprocess.run(command(server, source, options), env=environment(), capture_output=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return f"does not end within {LONGEST} s"
        there = server.content("out.zarr", unfinished=False)
        text = done.stderr.decode(errors="replace")
        if {server.objects.get("precious"), server.objects.get("out.zarr2/x")} == {None}:
            return "removed what was not its own"
        if done.returncode not in (0, 1):
            return f"status {done.returncode}: {text}"
        if any(word in text for word in ("crashed", "terminate", SECRET, "\x1b", "Sanitizer")):
            return f"says {text!r}"
        if done.returncode == 0:
            return (
                ("done" if state["faults"] else "untouched")
                if there == good
                else f"status 0, and another store: {sorted(set(there.items()) ^ set(good.items()))[:3]}"
            )
        if "zarr.json" in there and there not in (good, OLD):
            return f"status 1, and something that looks whole: {sorted(there)[:8]}: {text}"
        if len(text.strip().splitlines()) > 2:
            return f"no sentence: {text}"
        return "refused"  # an answer was bad, or the target not as it has to be


def joined(folder):
    """Two files that one store has, with shards or without, and what it is before and after the second."""
    files, states = [folder / "a.h5", folder / "b.h5"], {}
    for file, first, count in zip(files, (0, 5), (5, 9)):
        with h5py.File(file, "w") as f:
            f.create_dataset("g/d", data=np.arange(first, first + count), chunks=(2,), maxshape=(None,))
            f.create_dataset("z", data=np.arange(first, first + count) * 2, chunks=(4,), maxshape=(None,))
    for shards in (False, True):
        out, states[shards] = folder / f"joined{shards}", []
        for how, file in zip(("--concat", "--append"), files):
            run("convert", "-q", how, "/**:0", file, out, *(["--shard", "8"] if shards and how == "--concat" else []))
            states[shards].append({str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()})
    return files, states


def one_append(name, seed, shards):
    """An append to a good store: it ends with 0 and the right store; or the metadata is as before, or on its way to the new one
    in the order that readers rely on, and the next append on a good server completes the store."""
    rng = random.Random(f"append {name} {seed}")
    files, states = JOINED
    old, new = states[shards]
    kinds = rng.choice([("list", "put", "get", "head", "delete")] * 2 + [(k,) for k in ("list", "put", "get", "delete", "head")])
    begins, lasts, asked = rng.randrange(100 if len(kinds) > 1 else 25), rng.choice([1, 2, 10**9, 10**9]), []

    def fault(r, go):
        if r.kind not in kinds:
            return go()
        with server.lock:
            asked.append(r)
            n = len(asked) - 1
        return FAULTS[name](rng, server, r, go) if begins <= n < begins + lasts else go()

    def append():
        how = ["convert", "-q", "--append", "/**:0", str(files[1]), f"s3://{BUCKET}/out.zarr", "--endpoint", server.url]
        return subprocess.run(
            [COMMAND, *how], env=environment(), capture_output=True, timeout=LONGEST, text=True, errors="replace"
        )

    with Server(fault, page=rng.choice([1000, 1000, 2])) as server:
        server.objects["precious"] = server.objects["out.zarr2/x"] = Stored(b"precious")
        for key, body in old.items():
            server.objects["out.zarr/" + key] = Stored(body, modified=time.time() - 3600)
        try:
            done = append()
        except subprocess.TimeoutExpired:
            return f"an append does not end within {LONGEST} s"
        there = {k: v for k, v in server.content("out.zarr").items() if not k.startswith(".zarrbits-")}
        if None in (server.objects.get("precious"), server.objects.get("out.zarr2/x")):
            return "an append removed what was not its own"
        if done.returncode not in (0, 1) or any(
            word in done.stderr for word in ("crashed", "terminate", SECRET, "\x1b", "Sanitizer")
        ):
            return f"an append: status {done.returncode}: {done.stderr}"
        if done.returncode == 0 and there != new:
            return f"an append: status 0, and another store: {sorted(set(there.items()) ^ set(new.items()))[:3]}"
        switched = [k for k in ("g/d/zarr.json", "z/zarr.json", "zarr.json") if there.get(k) == new[k]]
        if any(there.get(k) not in (old[k], new[k]) for k in ("g/d/zarr.json", "z/zarr.json", "zarr.json")) or (
            switched and any(there.get(k) != v for k, v in new.items() if not k.endswith("zarr.json"))
        ):
            return f"an append: status {done.returncode}, and a store that cannot be read: {done.stderr}"
        server.fault = None
        for o in server.objects.values():
            o.modified -= 3600
        again = append()
        now = server.content("out.zarr")
        if again.returncode != 0 or now != new:
            return f"an append after a failed one: {again.stderr}{sorted(set(now) ^ set(new))[:5]}; it was: {done.stderr}"
        return "refused" if done.returncode else "done" if len(asked) > begins else "untouched"


def one_reading(sources, name, seed):
    """verify and inspect of a good store on the same server: they may end with any status, and any error is a sentence."""
    rng = random.Random(f"reading {name} {seed}")
    kinds, begins, lasts, asked = (
        rng.choice([("get", "head", "list"), ("get",), ("head",), ("list",)]),
        rng.randrange(4),
        rng.choice([1, 10**9]),
        [],
    )

    def fault(r, go):
        if r.kind in kinds:
            asked.append(r)
        return FAULTS[name](rng, server, r, go) if r.kind in kinds and begins < len(asked) <= begins + lasts else go()

    small = next(iter(sources))
    with Server(fault) as server:
        for key, body in sources[small].items():
            server.objects["out.zarr/" + key] = Stored(body)
        reading = rng.choice([["verify", str(small)], ["inspect"]])
        try:
            done = subprocess.run(
                [COMMAND, *reading, f"s3://{BUCKET}/out.zarr", "--endpoint", server.url],
                env=environment(),
                capture_output=True,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return f"{reading[0]} does not end within {LONGEST} s"
        text = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode not in (0, 1, 3) or any(
            word in text for word in ("crashed", "terminate", "alloc", "std::", SECRET, "\x1b", "Sanitizer")
        ):
            return f"{reading[0]}: status {done.returncode}: {text}"
        return "read"


def command(server, source, options):
    return [COMMAND, "convert", "-q", str(source), f"s3://{BUCKET}/out.zarr", "--endpoint", server.url, *options]


def environment():
    clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and "proxy" not in k.lower()}
    return clean | {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "HOME": "/nonexistent",
        "ZARRBITS_S3_PATIENCE": "0.3",
    }


def test_a_hostile_server(tmp_path):
    cases, seed = int(os.environ.get("ZARRBITS_CASES", len(FAULTS))), int(os.environ.get("ZARRBITS_SEED", "1"))
    sources = make_sources(tmp_path)
    JOINED[:] = joined(tmp_path)
    names = [list(FAULTS)[i % len(FAULTS)] for i in range(cases)]
    counts, wrong = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for (name, number), result in zip(
            enumerate(names), pool.map(lambda n: one_case(sources, n[1], f"{seed} {n[0]}"), enumerate(names))
        ):
            name, number = number, name
            counts[result if result in RIGHT else "WRONG"] += 1
            if result not in RIGHT:
                wrong.append(f"{name}, case {number}: {result}")
    print(
        f"hostile S3 server: seed {seed}, {cases} cases of {len(FAULTS)} kinds: {counts['done']} done with the "
        f"right store in spite of it, {counts['refused']} refused with none, {counts['untouched']} never asked what it would have lied about, {counts['read']} of verify and inspect, {counts['WRONG']} wrong"  # noqa: E501
    )
    assert not wrong, "\n".join(wrong)
