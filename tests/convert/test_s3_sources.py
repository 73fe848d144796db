# SPDX-License-Identifier: BSL-1.0
"""Sources in S3: one and many. What is made of them is what is made of the same files on a disk.
tests/interop/test_s3_sources.py has real servers."""

import collections
import json
import os
import pathlib
import random
import shutil

import h5py
import numpy as np
import pytest

from harness import same
from https_conversion import kept_stores, make_tiles
from promises import promise
from s3_conversion import run
from s3_server import BUCKET, KEY, SECRET, Server, Stored, error, reset

NATIVE = ["--profile", "native"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server():
    with Server() as s:
        yield s
        assert s.wrong_signatures == []


def write(name, first, count, group="", **how):
    with h5py.File(name, "w") as f:
        root = f.require_group(group) if group else f
        root["t"] = np.arange(first, first + count, dtype="i8")
        root["t"].make_scale("t")
        rows = np.arange(first * 30, (first + count) * 30, dtype="i2").reshape(count, 3, 10)
        d = root.create_dataset(
            "g/rows", data=rows, chunks=(4, 3, 10), maxshape=(None, 3, 10), **{"compression": "gzip", "shuffle": True, **how}
        )
        d.dims[0].attach_scale(root["t"])
        root["mask"] = np.arange(12).reshape(3, 4)
    return name


def upload(server, *names, folder="data"):
    for name in names:
        server.objects[f"{folder}/{name}"] = Stored(pathlib.Path(name).read_bytes())
    return [f"s3://{BUCKET}/{folder}/{name}" for name in names]


@pytest.fixture
def days():
    """In natural order, and not in that of their letters; chunks of two of them begin on the grid of all."""
    return [write(f"d{i}.h5", first, n) for i, first, n in ((8, 0, 8), (9, 8, 10), (10, 18, 6))]


def z(server, *arguments, status=0, **variables):
    done = run(*arguments, *(["--endpoint", server.url] if server else []), **variables)
    if done.returncode == 1 and "built without support for reading from S3" in done.stderr:
        pytest.skip("THIS libhdf5 HAS NO S3 DRIVER: no source in S3 was read")
    assert status is None or done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def join(server, *names, out="out.zarr", options=NATIVE, status=0):
    return z(server, "convert", "-q", "--concat", "t", *names, out, *options, status=status)


def sources(out="out.zarr"):
    return json.loads(pathlib.Path(out, "zarr.json").read_text())["attributes"]["_nc_zarrbits"]["sources"]


def same_but_for_sources(a, b):
    """Byte by byte; of the notes on files the names and places are compared:
    those in S3 have an ETag in place of a time and a checksum."""
    notes = []
    for out in (a, b):
        path = pathlib.Path(out, "zarr.json")
        root = json.loads(path.read_text())
        listed = root["attributes"]["_nc_zarrbits"].pop("sources")
        notes.append([{k: n[k] for k in ("file", "first", "count", "size")} for n in listed])
        assert all(set(n) - {"file", "first", "count", "size"} in ({"etag"}, {"modified", "checksum"}) for n in listed), listed
        path.write_text(json.dumps(root))
    assert notes[0] == notes[1]
    same(a, b)


def test_one_source(server, days):
    z(None, "convert", "-q", days[0], "local.zarr")
    z(server, "convert", "-q", *upload(server, days[0]), "out.zarr")
    same("local.zarr", "out.zarr")
    z(server, "verify", *upload(server, days[0]), "out.zarr")


def test_digests_in_s3_are_those_on_a_disk(server, days):
    """Of a file, of a store with shards, and the sums of the store's objects."""

    def printed(server, *arguments):
        return [line.rsplit("  ", 1)[0] for line in z(server, "digest", *arguments).stdout.splitlines()]

    z(None, "convert", "-q", "--shard", "1K", days[0], "local.zarr")
    (file,) = upload(server, days[0])
    upload(server, *(p.as_posix() for p in pathlib.Path("local.zarr").rglob("*") if p.is_file()))
    store = f"s3://{BUCKET}/data/local.zarr"
    assert printed(server, file) == printed(None, days[0])
    assert printed(server, store) == printed(None, "local.zarr") and printed(server, "-q", store) == printed(None, "-q", days[0])
    assert printed(server, "--dandi", store) == printed(None, "--dandi", "local.zarr")
    z(server, "digest", "--manifest", "remote.txt", store)
    z(None, "digest", "--manifest", "local.txt", "local.zarr")
    assert pathlib.Path("remote.txt").read_text() == pathlib.Path("local.txt").read_text() > ""


def test_references_to_a_store(server, days):
    """No chunk is fetched for them; they have the state that the listing says, which readers compare."""
    z(None, "convert", "-q", "--compress", "none", days[0], "local.zarr")
    upload(server, *(p.as_posix() for p in pathlib.Path("local.zarr").rglob("*") if p.is_file()))
    store = f"s3://{BUCKET}/data/local.zarr"
    server.requests.clear()
    z(server, "convert", "-q", "--virtual", "--inline", "0", store, "refs.json")
    assert not [r for r in server.requests if "/c/" in r.key]
    references = json.loads(pathlib.Path("refs.json").read_text())
    chunk = pathlib.Path("local.zarr/g/rows/c/1/0/0").read_bytes()
    assert references["refs"]["g/rows/1.0.0"] == [f"{store}/g/rows/c/1/0/0", 0, len(chunk)]
    z(server, "verify", store, "refs.json")
    server.objects["data/local.zarr/g/rows/c/1/0/0"] = Stored(bytes(len(chunk)))  # another ETag, the same size
    done = z(server, "verify", store, "refs.json", status=1)
    assert "has changed since the references were made" in done.stdout + done.stderr


def test_parts_of_several_dimensions_are_what_local_files_make(server):
    names, _ = make_tiles()
    remote = upload(server, *names)
    how = ["--concat", "y,x", *NATIVE, "--grid", "rectilinear"]
    z(None, "convert", "-q", *how, *names, "local.zarr")
    z(server, "convert", "-q", *how, *remote, "out.zarr")
    same("local.zarr", "out.zarr")
    z(server, "convert", "-q", *how, "s3://bucket/data/p*.h5", "s3://bucket/all.zarr")
    z(server, "verify", "--concat", "y,x", *remote, "out.zarr")
    z(server, "verify", "--concat", "y,x", *remote, "s3://bucket/all.zarr")
    z(server, "plan", "--concat", "y,x", *remote)
    z(server, "convert", "-q", "--virtual", "--grid", "rectilinear", "--concat", "y,x", *remote, "refs.json")
    z(server, "verify", "--concat", "y,x", *remote, "refs.json")
    refs = json.loads(pathlib.Path("refs.json").read_text())["refs"]
    assert {v[0] for k, v in refs.items() if k.startswith("v/") and isinstance(v, list)} == set(remote)


@pytest.mark.parametrize(
    "options",
    [NATIVE, ["--compress", "gzip:1"], [*NATIVE, "--shard", "16,3,10"], ["--compress", "gzip:1", "--chunk", "7,3,10"]],
    ids=" ".join,
)
def test_joined_is_what_local_files_make(server, days, options):
    remote = upload(server, *days)
    join(None, *days, out="local.zarr", options=options)
    join(server, *remote, options=options)
    z(server, "verify", "--concat", "t", *remote, "out.zarr")
    assert [n["etag"] for n in sources()] == [server.objects["data/" + n].etag for n in days]
    z(server, "verify", "--concat", "t", *days[:2], days[2], "s3://bucket/data/d10.h5", "out.zarr", status=1)  # one too many
    same_but_for_sources("local.zarr", "out.zarr")


def test_pattern_list_and_mixed(server, days):
    remote = upload(server, *days)
    upload(server, days[0], folder="data/deeper")
    upload(server, days[0], folder="data2")
    server.objects["data/"] = Stored(b"")
    server.objects["data/d11.txt"] = Stored(b"x")
    pathlib.Path("list.txt").write_text("\n".join([remote[0], days[1], remote[2]]))
    join(None, *days, out="local.zarr")
    shutil.copytree("local.zarr", "copy.zarr")
    same_but_for_sources("local.zarr", "copy.zarr")
    for names in (
        ["s3://bucket/data/*.h5"],
        ["s3://bucket/data/d[0-9]*.h5"],
        ["s3://bucket/d*ta/d?.h5", remote[2]],
        ["@list.txt"],
        [days[0], *remote[1:]],
        [*remote[:2], days[2]],
    ):
        join(server, *names, options=[*NATIVE, "--overwrite"])
        z(server, "verify", "--concat", "t", *names, "out.zarr")
        assert [n["file"] for n in sources()] == days, names
        shutil.rmtree("copy.zarr")
        shutil.copytree("local.zarr", "copy.zarr")
        root = pathlib.Path("out.zarr/zarr.json")
        made = json.loads(root.read_text())
        del made["attributes"]["_nc_zarrbits"]["sources"]
        root.write_text(json.dumps(made))
        same("copy.zarr", "out.zarr")
    done = join(server, "s3://bucket/data/*.nc", out="none.zarr", status=2)
    assert "no file matches" in done.stderr and not os.path.exists("none.zarr")


def test_a_name_with_wildcards_is_itself(server, days):
    names = upload(server, shutil.copy(days[0], "d[8].h5"), days[0])
    join(server, names[0])
    assert [n["file"] for n in sources()] == ["d[8].h5"]


def test_an_object_of_each(server):
    names = [write(f"x{i}.h5", 5 * i, 5, group="in/it") for i in range(2)]
    join(None, *(n + ":/in/it" for n in names), out="local.zarr")
    join(server, *(n + ":/in/it" for n in upload(server, *names)))
    same_but_for_sources("local.zarr", "out.zarr")


def test_order_by_value_and_a_plan(server, days):
    remote = upload(server, *days)
    join(None, *days, out="local.zarr")
    join(server, *reversed(remote), options=[*NATIVE, "--order", "value"])
    plan = json.loads(z(server, "plan", "--json", "--concat", "t", *remote).stdout)
    assert [(s["file"], s["first"], s["count"]) for s in plan["sources"]] == [
        (n, f, c) for n, f, c in zip(remote, (0, 8, 18), (8, 10, 6))
    ]
    same_but_for_sources("local.zarr", "out.zarr")


def test_shares_and_resume(server, days):
    remote = upload(server, *days)
    join(None, *days, out="local.zarr")
    for i in range(2):
        join(server, *remote, options=[*NATIVE, "--partition", f"{i}/2"])
    z(server, "finalize", "-q", "--concat", "t", *remote, "out.zarr")
    join(server, *remote, out="resumed.zarr", options=[*NATIVE, "--partition", "1/2"])
    join(server, *remote, out="resumed.zarr", options=["--resume"])
    shutil.copytree("local.zarr", "copy.zarr")
    same_but_for_sources("local.zarr", "out.zarr")
    same_but_for_sources("copy.zarr", "resumed.zarr")


def test_shares_of_a_file_that_changed(server, days):
    remote = upload(server, *days)
    join(server, *remote, options=[*NATIVE, "--partition", "0/2"])
    write(days[1], 8, 10, compression_opts=1)
    upload(server, days[1])
    done = join(server, *remote, options=[*NATIVE, "--partition", "1/2"], status=1)
    assert "begun from different files" in done.stderr, done.stderr


def test_append(server, days):
    remote = upload(server, *days)
    join(None, days[0], out="local.zarr")
    z(None, "convert", "-q", "--append", "t", *days, "local.zarr")
    join(server, remote[0])
    done = z(server, "convert", "--json", "--append", "t", remote[0], days[1], remote[2], "out.zarr")
    assert [s["notes"] for s in json.loads(done.stdout)["sources"]] == [["it is already in the store"], [], []]
    done = z(server, "convert", "--json", "--append", "t", *remote[::2], "out.zarr")
    assert [s["notes"] for s in json.loads(done.stdout)["sources"]] == [["it is already in the store"]] * 2
    z(server, "verify", "--concat", "t", *remote, "out.zarr")
    before = pathlib.Path("out.zarr/zarr.json").read_bytes()
    write(days[0], 0, 8, compression_opts=1)  # the same values
    upload(server, days[0])
    done = z(server, "convert", "-q", "--append", "t", remote[0], "out.zarr", status=1)
    assert "a different size, time or content" in done.stderr and pathlib.Path("out.zarr/zarr.json").read_bytes() == before
    same_but_for_sources("local.zarr", "out.zarr")


@pytest.mark.parametrize("files", [1, 3])
def test_a_source_that_changes_meanwhile(server, days, files):
    """Its bytes stay, so that all of it can be read: S3 says that it is another object."""
    remote = upload(server, *days)[:files]
    last = days[files - 1]
    arguments = ["-q", *(["--concat", "t"] if files > 1 else []), *remote]
    z(server, "convert", *arguments, "out.zarr")
    asked = [r.key for r in server.requests]
    assert asked.count("data/" + last) >= 2, asked  # once when it is opened, once at the end

    def change(r, go):
        answer = go()
        if r.method == "GET" and r.key == "data/" + last and "Range" in r.headers:
            server.objects[r.key].etag = "another"
        return answer

    server.fault = change
    done = z(server, "convert", *arguments, "changed.zarr", status=1)
    assert "changed while it was" in done.stderr and last in done.stderr and not os.path.exists("changed.zarr"), done.stderr


def faulty(kind, go):
    """What a server makes of its answer to a request for a source."""
    answer = go()
    if kind in ("503", "403", "404"):
        return error(int(kind), {"503": "SlowDown", "403": "AccessDenied", "404": "NoSuchKey"}[kind])
    if kind == "reset":
        return reset
    if kind == "cut":  # it ends before what was announced
        answer.headers |= {"Content-Length": len(answer.body), "Connection": "close"}
        answer.body = answer.body[: len(answer.body) // 2]
    if kind == "short":  # and announces that
        answer.body = answer.body[: len(answer.body) // 2]
    if kind == "long":
        answer.body += bytes(1000)
    return answer


@pytest.mark.parametrize("way", ["concat", "append", "virtual"])
def test_faults_while_sources_are_read(server, days, way):
    """Once, or from then on: the store is the right one, or none; that of an append is as before, or the right one."""
    remote, dice = upload(server, *days), random.Random(int(os.environ.get("ZARRBITS_SEED", "5")))
    target = "refs.json" if way == "virtual" else "out.zarr"

    def go():
        if way == "append":
            return run("convert", "-q", "--append", "t", *remote[1:], target, "--endpoint", server.url)
        return run(
            "convert",
            "-q",
            "--concat",
            "t",
            *remote,
            target,
            *(["--virtual"] if way == "virtual" else NATIVE),
            "--endpoint",
            server.url,
        )

    def prepare():
        server.fault = None
        for path in ("out.zarr", "refs.json", "refs.json.data"):
            shutil.rmtree(path) if os.path.isdir(path) else pathlib.Path(path).unlink(missing_ok=True)
        if way == "append":
            join(server, remote[0])
        server.requests.clear()
        return contents()

    def contents():
        """Without the lock that a crash leaves in a store: libhdf5 writes an answer that is too long behind its buffer."""
        return {
            str(p): p.read_bytes()
            for p in pathlib.Path().rglob("*")
            if p.is_file() and p.parts[0].startswith(("out.zarr", "refs")) and p.name != "lock"
        }

    prepare()
    if "built without support for reading from S3" in (done := go()).stderr:
        pytest.skip("THIS libhdf5 HAS NO S3 DRIVER: no source in S3 was read")
    assert done.returncode == 0, done.stderr
    good, number, found = contents(), len(server.requests), collections.Counter()
    for _ in range(int(os.environ.get("ZARRBITS_CASES", "6"))):
        before, at, kind, once = (
            prepare(),
            dice.randint(1, number),
            dice.choice(["503", "403", "404", "reset", "cut", "short", "long"]),
            dice.random() < 0.5,
        )

        def fault(r, go_on):
            n = len(server.requests)
            return faulty(kind, go_on) if n == at or (n > at and not once) else go_on()

        server.fault = fault
        done, now = go(), contents()
        case = (way, kind, at, number, once, done.returncode, done.stderr)
        kept = bool(kept_stores(".", done.stderr))
        outcome = "right" if now == good else "as before" if kept or now == before else "other"
        assert outcome != "other" and (done.returncode == 0) == (outcome == "right"), (
            f"{case} {sorted(now.keys() ^ before.keys())}"
        )
        found[outcome] += 1
    print(f"{way}: {number} requests; {dict(found)}")


def test_every_joined_file_is_asked_for_at_the_end(server, days):
    """Also one that was read whole long before: it changes with the last bytes that are read of another."""
    remote = upload(server, *days)

    def is_read(r):
        return r.method == "GET" and r.headers.get("Range", "bytes=0-0") != "bytes=0-0"  # that asks for the state

    left, etag = 0, server.objects["data/d8.h5"].etag

    def change(r, go):
        nonlocal left
        left -= is_read(r)
        if left == 0 and r.key == "data/d10.h5":
            server.objects["data/d8.h5"].etag = "another"
        return go()

    for _ in range(10):
        server.fault, begun = None, len(server.requests)
        join(server, *remote)
        shutil.rmtree("out.zarr")
        left, server.fault = sum(map(is_read, server.requests[begun:])), change
        done = join(server, *remote, status=None)
        if server.objects["data/d8.h5"].etag != etag:
            break
        shutil.rmtree("out.zarr")  # on a busy machine, reads of several processes come in another order, or one comes twice
    assert (
        done.returncode == 1
        and "changed while it was" in done.stderr
        and "d8.h5" in done.stderr
        and not os.path.exists("out.zarr")
    ), done.stderr


def test_what_is_not_there(server, days):
    remote = upload(server, *days)
    none = "s3://bucket/data/none.h5"
    done = join(server, remote[0], none, status=1)
    assert none in done.stderr and "no such object" in done.stderr
    done = join(server, remote[0], none, remote[1], options=["--keep-going"], status=3)
    assert none in done.stderr and [n["file"] for n in sources()] == days[:2]


def write_large(name, first, columns=15000):
    """Chunks that do not compress, of 60,000 bytes, and one array without chunks."""
    with h5py.File(name, "w") as f:
        random = np.random.default_rng(first)
        f["t"] = np.arange(first, first + 4, dtype="i8")
        f["t"].make_scale("t")
        d = f.create_dataset(
            "rows",
            data=random.integers(0, 2**32, (4, columns), dtype="u4"),
            chunks=(1, columns),
            compression="gzip",
            maxshape=(None, columns),
        )
        d.dims[0].attach_scale(f["t"])
        f["plain"] = np.random.default_rng(1).random((3, 20000))
    return name


def references(server, *arguments):
    """{key: (URL, offset, size)} and the sources, of --virtual;
    all else is what the conversion says, and how many bytes were read for it."""
    before = len(server.requests)
    z(server, "convert", "-q", "--virtual", "--zarr-format", "3", *arguments, "refs.json", "--overwrite")
    read = sum(
        int(r.headers["Range"].split("-")[1]) - int(r.headers["Range"].removeprefix("bytes=").split("-")[0]) + 1
        for r in server.requests[before:]
        if r.method == "GET" and "Range" in r.headers
    )
    text = pathlib.Path("refs.json").read_text()
    made = json.loads(text)
    assert not any(word in text for word in (KEY, SECRET, server.url, str(server.port)))
    return {k: v for k, v in made["refs"].items() if isinstance(v, list)}, made["zarrbits"]["sources"], read


def test_references_to_one_source(server):
    (name,) = upload(server, write_large("in.h5", 0, 3_000_000))  # in chunks of 12 MB
    z(None, "convert", "-q", *NATIVE, "in.h5", "local.zarr")
    refs, listed, read = references(server, name)
    whole = server.objects["data/in.h5"]
    assert listed == [{"url": name, "size": len(whole.body), "etag": whole.etag}]
    chunks = {f"rows/c/{i}/0" for i in range(4)} | {k for k in refs if k.startswith("plain/c/")}
    assert set(refs) >= chunks and len(chunks) > 4
    for key, (url, offset, size) in refs.items():
        assert url == name and whole.body[offset : offset + size] == pathlib.Path("local.zarr", key).read_bytes(), key
    assert read < sum(size for _, _, size in refs.values()) / 10, read  # no chunk was fetched
    z(server, "verify", name, "refs.json")
    whole.etag = "another"
    assert "has changed since the references were made" in z(server, "verify", name, "refs.json", status=1).stdout


def test_references_to_many_sources(server):
    names = [write_large(f"in{i}.h5", 4 * i) for i in (9, 10)]
    remote = upload(server, *names)
    join(None, *names, out="local.zarr")
    refs, listed, read = references(server, "--concat", "t", "s3://bucket/data/*.h5")
    assert [s["url"] for s in listed] == remote and [s["etag"] for s in listed] == [
        server.objects[f"data/{n}"].etag for n in names
    ]
    assert {f"rows/c/{i}/0": refs[f"rows/c/{i}/0"][0] for i in range(8)} == {f"rows/c/{i}/0": remote[i // 4] for i in range(8)}
    for key, (url, offset, size) in refs.items():
        assert (
            server.objects[url.removeprefix("s3://bucket/")].body[offset : offset + size]
            == pathlib.Path("local.zarr", key).read_bytes()
        ), key
    z(server, "verify", "--concat", "t", *remote, "refs.json")
    # beside local ones
    refs, listed, _ = references(server, "--concat", "t", names[0], remote[1])
    assert (
        listed[0]["url"] == f"file://{os.path.realpath(names[0])}" and "modified" in listed[0] and listed[1]["url"] == remote[1]
    )
    z(server, "verify", "--concat", "t", names[0], remote[1], "refs.json")


@promise("`verify` and `--append` read only files")
def test_references_lead_to_no_other_object(server):
    names = upload(server, write_large("in.h5", 0), write_large("other.h5", 9))
    server.objects["other/in.h5"] = server.objects["data/other.h5"]
    names[1] = names[0].replace("/data/", "/other/")
    references(server, names[0])
    done = z(server, "verify", names[1], "refs.json", status=1)
    assert "neither a source nor in the folder of one" in done.stdout
    made = json.loads(pathlib.Path("refs.json").read_text())
    made["refs"]["rows/c/0/0"][1] = 1 << 40
    pathlib.Path("refs.json").write_text(json.dumps(made))
    assert "beyond the end" in z(server, "verify", names[0], "refs.json", status=1).stdout


def test_chunks_that_cannot_stay_are_brought(server):
    """A filter that was left out for one chunk, and edges that are stored without."""
    with h5py.File("in.h5", "w") as f:
        d = f.create_dataset("mask", (4, 100), "i4", chunks=(2, 100), compression="gzip")
        d[:] = np.arange(400).reshape(4, 100)
        d.id.write_direct_chunk((2, 0), np.arange(200, 400, dtype="i4").tobytes(), 1)
        d = f.create_dataset("edge", data=np.arange(10, dtype="i8"))
        f.create_dataset("text", data=["a", "bcd"])
    (name,) = upload(server, "in.h5")
    refs, _, _ = references(server, name)
    assert "mask/c/0/0" in refs and "mask/c/1/0" not in refs
    z(server, "verify", name, "refs.json")
