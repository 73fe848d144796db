# SPDX-License-Identifier: BSL-1.0
"""--append to a store in S3, on the small server of s3_server.py: the store becomes what the same append makes of a directory,
byte for byte, whatever happens on the way. tests/interop/test_s3.py has real servers; attack_s3.py a hostile one.

ZARRBITS_KILLS: how many runs are killed, 24 by default; 0: one at each request. ZARRBITS_SEED: others.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import threading

import h5py
import numpy as np
import pytest

import kills
from harness import contents
from s3_conversion import GROUP, TARGET, children, environment, run
from s3_server import Answer, Server, Stored, error, reset
from store import Store

KILLS, SEED = int(os.environ.get("ZARRBITS_KILLS", "24")), int(os.environ.get("ZARRBITS_SEED", "5"))
OWN = "out.zarr/.zarrbits-append/"
ROWS = np.arange(40 * 6, dtype="f4").reshape(40, 6)
WAYS = {
    "plain": ["--convention", "none"],
    "shards": ["--convention", "none", "--shard", "16,6"],
    "consolidated": ["--consolidate"],
}


def write(path, first, count, **how):
    with h5py.File(path, "w") as f:
        t = f.create_dataset("t", data=np.arange(first, first + count), chunks=(4,), maxshape=(None,))
        t.make_scale("t")
        rows = f.create_dataset("g/rows", data=ROWS[first : first + count], chunks=(4, 3), maxshape=(None, 6), **how)
        rows.dims[0].attach_scale(t)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Three files, and for each way the stores in a directory of one, two and all of them."""
    folder = tmp_path_factory.mktemp("append")
    files = [folder / f"p{i}.h5" for i in range(3)]
    for file, first, count in zip(files, (0, 10, 23), (10, 13, 17)):
        write(file, first, count)
    stores = {}
    for way, options in WAYS.items():
        assert run("convert", "-q", "--concat", "t", files[0], folder / "out.zarr", *options).returncode == 0
        stores[way] = [contents(folder / "out.zarr")]
        for file in files[1:]:
            assert run("convert", "-q", "--append", "t", file, folder / "out.zarr").returncode == 0
            stores[way].append(contents(folder / "out.zarr"))
        shutil.rmtree(folder / "out.zarr")
    return files, stores


def put(server, store):
    for key, body in store.items():
        server.objects["out.zarr/" + key] = Stored(body)


def append(server, *files, more=(), **variables):
    return run("convert", "-q", "--append", "t", *files, TARGET, "--endpoint", server.url, *more, **variables)


def make_older(server):
    """As if a while had passed: what a killed run left does not look like the work of a run that still writes."""
    for o in server.objects.values():
        o.modified -= 3600


def sentence(done, *words):
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def read(store, folder, metadata=None, consolidated=False):
    """(t, rows) of these objects; with the metadata of another state of the store."""
    shutil.rmtree(folder, ignore_errors=True)
    nodes = dict(metadata if metadata is not None else {k: v for k, v in store.items() if k.endswith("zarr.json")})
    if consolidated:
        nodes |= {
            f"{path}/zarr.json": json.dumps(node).encode()
            for path, node in json.loads(nodes["zarr.json"])["consolidated_metadata"]["metadata"].items()
        }
    for key, body in {**store, **nodes}.items():
        path = pathlib.Path(folder, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    made = Store(folder)
    return made.read("t"), made.read("g/rows")


def without_own(content):
    return {k: v for k, v in content.items() if not k.startswith(".zarrbits-")}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_directory_becomes(world, way):
    files, stores = world
    with Server(page=7) as s:
        put(s, stores[way][0])
        for i in (1, 2):
            done = append(s, *files[: i + 1], more=["--json"])
            assert (done.returncode, done.stderr) == (0, "")
            assert s.content("out.zarr") == stores[way][i]
            report = json.loads(done.stdout)
            assert [x["notes"] for x in report["sources"]] == [["it is already in the store"]] * i + [[]]
        assert append(s, *files).returncode == 0  # all are in it
        assert s.content("out.zarr") == stores[way][2]
        done = run("verify", "--concat", "t", *files, TARGET, "--endpoint", s.url)
        assert done.returncode == 0, done.stdout + done.stderr
        assert s.wrong_signatures == []


def test_parts_of_two_dimensions(tmp_path):
    """The dimension that grows is found in the store's coordinates, which are in S3."""
    tiles = {}
    for t, x in np.ndindex(2, 2):
        tiles[t, x] = tmp_path / f"{t}{x}.nc"
        with h5py.File(tiles[t, x], "w") as f:
            f["t"], f["x"] = np.arange(3) + 3 * t, np.arange(2) + 2 * x
            f["v"] = np.add.outer(10 * f["t"][...], f["x"][...])
            for i, name in enumerate("tx"):
                f[name].make_scale(name)
                f["v"].dims[i].attach_scale(f[name])
    first, later = [tiles[0, 0], tiles[0, 1]], [tiles[1, 0], tiles[1, 1]]
    assert run("convert", "-q", "--concat", "t,x", *first, tmp_path / "out.zarr").returncode == 0
    with Server(page=7) as s:
        put(s, contents(tmp_path / "out.zarr"))
        for target, options in ((tmp_path / "out.zarr", []), (TARGET, ["--endpoint", s.url])):
            done = run("convert", "-q", "--append", "t,x", *later, target, *options)
            assert (done.returncode, done.stderr) == (0, "")
        assert s.content("out.zarr") == contents(tmp_path / "out.zarr")
    np.testing.assert_array_equal(Store(str(tmp_path / "out.zarr")).read("v"), np.add.outer(10 * np.arange(6), np.arange(4)))


def test_a_plan_only_reads(world):
    files, stores = world
    with Server() as s:
        put(s, stores["plain"][0])
        done = run("plan", "--append", "t", *files[:2], TARGET, "--endpoint", s.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert "already in the store" in done.stdout
        assert "/g/rows" in done.stdout
        assert {r.kind for r in s.requests} <= {"get", "head", "list"}
        assert s.content("out.zarr") == stores["plain"][0]


@pytest.mark.parametrize("way", WAYS)
def test_a_reader_sees_the_old_store_or_the_new_one(world, way, tmp_path):
    """The store after each request, read with its own metadata and with that of a reader who opened it before."""
    files, stores = world
    states = []

    def watch(r, go):
        with s.lock:
            answer = go()
            now = without_own(s.content("out.zarr"))
            if not states or states[-1] != now:
                states.append(now)
        return answer

    with Server(watch) as s:
        put(s, stores[way][0])
        assert append(s, files[1]).returncode == 0
        old = {k: v for k, v in stores[way][0].items() if k.endswith("zarr.json")}
        assert len(states) > 5
        seen = set()
        for state in states:
            t, rows = read(state, tmp_path / "now")
            assert len(rows) >= len(t)
            assert (rows[: len(t)] == ROWS[t]).all()
            before = read(state, tmp_path / "now", old)
            assert before[0].tolist() == list(range(10))
            assert (before[1] == ROWS[:10]).all()
            if way == "consolidated":
                t, rows = read(state, tmp_path / "now", consolidated=True)
                assert len(t) == len(rows)
                assert (rows == ROWS[t]).all()
                seen.add(len(t))
        assert way != "consolidated" or seen == {10, 23}
        assert states[-1] == stores[way][1]


def killed_at(server, number, done_first, files):
    """Kills an append with its request of this number, which the server has obeyed or not. False: there were fewer requests."""
    asked, killed, process = [], threading.Event(), None

    def fault(r, go):
        with server.lock:
            asked.append(r)
            here = len(asked) == number
        if killed.is_set():
            return reset
        if not here:
            return go()
        killed.set()
        if done_first:
            go()
        os.killpg(process.pid, signal.SIGKILL)
        return reset

    server.fault = lambda r, go: reset  # until the process is known
    with server.lock:
        process = kills.begin(
            "convert", "-q", "--append", "t", *files, TARGET, "--endpoint", server.url, "--threads", "1", env=environment()
        )
        server.fault = fault
    kills.end(process)
    server.fault = None
    return killed.is_set()


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_any_request(world, way, tmp_path):
    files, stores = world
    dice = random.Random(f"{SEED} {way}")
    with Server() as s:
        put(s, stores[way][0])
        assert append(s, files[1], more=["--threads", "1"]).returncode == 0
        all_of_them = len(s.requests)
        cases = [(n, done) for n in range(1, all_of_them + 1) for done in (False, True)]
        outcomes = {}
        for n, done in dice.sample(cases, -(-KILLS // len(WAYS))) if KILLS else cases:
            s.objects.clear()
            put(s, stores[way][0])
            if not killed_at(s, n, done, files[:2]):
                continue  # some requests depend on time
            case = f"request {n} of {all_of_them}, {done}"
            now = without_own(s.content("out.zarr"))
            t, rows = read(now, tmp_path / "now", consolidated=way == "consolidated")
            assert len(t) in (10, 23), case
            assert (rows[: len(t)] == ROWS[t]).all(), case
            outcome = "new" if now == stores[way][1] else "old" if now == stores[way][0] else "between"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            make_older(s)
            again = append(s, *files[:2])
            assert (again.returncode, again.stderr) == (0, ""), case
            assert s.content("out.zarr") == stores[way][1], case
    print(f"{way}: kills of an append of {all_of_them} requests, seed {SEED}: {outcomes}")


def test_killed_and_then_another_file(world, tmp_path):
    """What a killed run made of other files is of no use, and none of it stays."""
    files, stores = world
    write(tmp_path / "other.h5", 10, 3)
    for way, options in WAYS.items():
        local = tmp_path / f"{way}.zarr"
        assert run("convert", "-q", "--concat", "t", files[0], local, *options).returncode == 0
        assert run("convert", "-q", "--append", "t", tmp_path / "other.h5", local).returncode == 0
        with Server() as s:
            put(s, stores[way][0])
            assert killed_at(s, 50, True, files[:2])
            assert any(k.startswith(OWN + "store/") for k in s.objects)
            make_older(s)
            done = append(s, tmp_path / "other.h5")
            assert (done.returncode, done.stderr) == (0, "")
            assert s.content("out.zarr") == contents(local)


def test_a_run_that_was_just_killed_looks_alive_for_a_while(world):
    files, stores = world
    with Server() as s:
        put(s, stores["plain"][0])
        assert killed_at(s, 50, True, files[:2])
        left = s.content("out.zarr")
        sentence(append(s, files[1]), "another process was appending", "try again in")
        assert s.content("out.zarr") == left


@pytest.mark.parametrize("when", ["upload", "copy"])
def test_an_interrupted_run_is_gone_on_with_at_once(world, when):
    """A signal to the command, or one that kills its process of the conversion alone: the other one removes the lock."""
    files, stores = world
    for how in (signal.SIGTERM, signal.SIGKILL):
        waiting, go_on = threading.Event(), threading.Event()

        def slow(r, go):
            copy = "x-amz-copy-source" in r.headers
            if r.kind == "put" and r.key.endswith("g/rows/c/3/1") and copy == (when == "copy") and not waiting.is_set():
                waiting.set()
                go_on.wait(30)
                return reset
            return go()

        with Server(slow) as s:
            put(s, stores["plain"][0])
            process = kills.begin("convert", "-q", "--append", "t", *files[:2], TARGET, "--endpoint", s.url, env=environment())
            assert waiting.wait(30)
            os.kill(process.pid if how == signal.SIGTERM else children(process.pid)[0], how)
            go_on.set()
            assert kills.end(process)[0] != 0
            assert OWN + "begun" not in s.objects
            if how == signal.SIGKILL:  # after the other signal, it may have had the time to remove them
                assert any(k.startswith(OWN + "store/") for k in s.objects)
            done = append(s, *files[:2])
            assert (done.returncode, done.stderr) == (0, "")
            assert s.content("out.zarr") == stores["plain"][1]


def test_one_of_two_appends_says_no(world):
    files, stores = world
    waiting, go_on = threading.Event(), threading.Event()

    def slow(r, go):
        if r.kind == "put" and r.key.startswith(OWN + "store/g/rows/c/"):
            waiting.set()
            go_on.wait(30)
        return go()

    with Server(slow) as s:
        put(s, stores["plain"][0])
        first = kills.begin("convert", "-q", "--append", "t", files[1], TARGET, "--endpoint", s.url, env=environment())
        assert waiting.wait(30)
        sentence(append(s, files[2]), "another process")
        go_on.set()
        assert kills.end(first) == (0, "")
        assert s.content("out.zarr") == stores["plain"][1]


@pytest.mark.parametrize("conditions", ["ignored", "rejected", "only new"])
def test_a_server_without_conditional_writes_is_refused(world, conditions):
    files, stores = world
    with Server(conditions=conditions) as s:
        put(s, stores["plain"][0])
        sentence(append(s, files[1]), "does not support conditional writes", "--concat")
        assert s.content("out.zarr") == stores["plain"][0]


def test_what_is_refused_changes_nothing(world, tmp_path):
    files, stores = world
    write(tmp_path / "again.h5", 5, 3)
    with Server() as s:
        sentence(append(s, files[1]), "there is no such store")
        assert s.objects == {}
        put(s, stores["plain"][0])
        sentence(append(s, tmp_path / "again.h5"), "does not continue", TARGET)
        sentence(append(s, tmp_path / "none.h5"), "none.h5")
        assert run("convert", "-q", "--append", "t", files[1], TARGET, "--overwrite", "--endpoint", s.url).returncode == 2
        assert s.content("out.zarr") == stores["plain"][0]
        s.objects["out.zarr/zarr.json"] = Stored(GROUP[:-1])
        sentence(append(s, files[1]), "zarr.json")
        assert set(s.content("out.zarr")) == set(stores["plain"][0])


def change(server, key):
    node = json.loads(server.objects["out.zarr/" + key].body)
    node["attributes"]["more"] = 1
    server.objects["out.zarr/" + key] = Stored(json.dumps(node).encode())


def test_another_program_that_changes_the_store_is_noticed(world):
    files, stores = world
    for key in ("zarr.json", "g/rows/zarr.json", "t/zarr.json"):

        def meanwhile(r, go):
            if r.kind == "put" and r.key.startswith(OWN + "store/g/rows/c/") and not changed:
                changed.append(change(s, key))
            return go()

        changed = []
        with Server(meanwhile) as s:
            put(s, stores["plain"][0])
            sentence(append(s, files[1]), "another program changed", key, "run the same command again")
            assert changed
            now = s.content("out.zarr")
            assert json.loads(now.pop(key))["attributes"]["more"] == 1
            assert now == {k: v for k, v in stores["plain"][0].items() if k != key}
            assert append(s, files[1]).returncode == 0
            now, want = s.content("out.zarr"), stores["plain"][1]
            node = json.loads(now.pop(key))
            assert node["attributes"].pop("more") == 1
            assert node == json.loads(want[key])
            assert now == {k: v for k, v in want.items() if k != key}


def test_a_change_at_the_last_moment_is_not_overwritten(world):
    """Between the look at a zarr.json and the write that replaces it: the condition of the write fails."""
    files, stores = world
    for key in ("g/rows/zarr.json", "zarr.json"):

        def meanwhile(r, go):
            if r.kind == "put" and r.key == "out.zarr/" + key:
                change(s, key)
            return go()

        with Server(meanwhile) as s:
            put(s, stores["plain"][0])
            sentence(append(s, files[1]), "cannot be resumed", key, "changed by another program", ".zarrbits-append")
            s.fault = None
            assert json.loads(s.content("out.zarr")[key])["attributes"]["more"] == 1
            sentence(append(s, files[1]), "cannot be resumed")
            for k in [k for k in s.objects if k.startswith(OWN)]:
                del s.objects[k]
            if key != "zarr.json":  # else arrays have grown whose files the root does not name
                assert append(s, files[1]).returncode == 0
                assert json.loads(s.content("out.zarr")[key])["attributes"]["more"] == 1


@pytest.mark.parametrize("fault", ["409", "lost answer", "503", "copy lost", "copy with an error"])
def test_what_passes_is_repeated(world, fault):
    files, stores = world
    done = set()

    def once(r, go):
        copy = r.kind == "put" and "x-amz-copy-source" in r.headers
        switch = r.kind == "put" and "If-Match" in r.headers and r.key.endswith("zarr.json")
        if r.key in done or not (copy if "copy" in fault else switch):
            return go()
        done.add(r.key)
        if fault == "409":
            return error(409, "ConditionalRequestConflict")
        if fault == "503":
            return error(503, "SlowDown")
        if fault == "copy with an error":
            return Answer(body=b"<Error><Code>InternalError</Code></Error>")
        go()
        return reset

    with Server(once) as s:
        put(s, stores["plain"][0])
        finished = append(s, files[1])
        assert (finished.returncode, finished.stderr) == (0, "")
        assert len(done) == (3 if "copy" not in fault else 12)
        assert s.content("out.zarr") == stores["plain"][1]


def test_credentials_that_end_on_the_way(world):
    """During the move: the next run goes on with it, after a while, because this one could not even remove its lock."""
    files, stores = world
    ended = []

    def fault(r, go):
        if ended or (r.kind == "put" and r.key == "out.zarr/t/zarr.json"):
            ended.append(r)
            return error(403, "ExpiredToken", "The provided token has expired.")
        return go()

    with Server(fault) as s:
        put(s, stores["plain"][0])
        sentence(append(s, files[1]), "credentials have ended", "continues where this one stopped")
        assert s.content("out.zarr")["g/rows/zarr.json"] == stores["plain"][1]["g/rows/zarr.json"]
        assert s.content("out.zarr")["t/zarr.json"] == stores["plain"][0]["t/zarr.json"]
        s.fault = None
        make_older(s)
        assert append(s, files[1]).returncode == 0
        assert s.content("out.zarr") == stores["plain"][1]


def test_a_server_that_fails_for_a_while_during_the_move(world):
    files, stores = world
    for key in ("out.zarr/g/rows/c/3/0", "out.zarr/g/rows/zarr.json", "out.zarr/zarr.json", OWN + "metadata"):

        def fault(r, go):
            return error(403, "AccessDenied") if r.key == key and r.kind in ("put", "delete") and "metadata" in there() else go()

        def there():
            return {k.removeprefix(OWN) for k in s.objects if k.startswith(OWN)}

        with Server(fault) as s:
            put(s, stores["plain"][0])
            sentence(append(s, files[1]), "AccessDenied", "next run continues")
            assert "begun" not in there(), "the lock stays only if it cannot be removed"
            s.fault = None
            assert append(s, files[1]).returncode == 0  # at once
            assert s.content("out.zarr") == stores["plain"][1]


@pytest.mark.parametrize("since", ["store/zarr.json", "metadata"])
def test_a_list_that_lacks_a_chunk_is_noticed(world, since):
    files, stores = world

    def shorter(r, go):
        answer = go()
        if r.kind == "list" and OWN + since in s.objects:
            entries, token = s.listed(r)
            answer.body = Server.list_xml([e for e in entries if not e[0].endswith("g/rows/c/3/0")], token)
        return answer

    with Server(shorter) as s:
        put(s, stores["plain"][0])
        sentence(append(s, files[1]), "lists other new chunks", "run the same command again")
        assert OWN + "metadata" not in s.objects
        assert without_own(s.content("out.zarr")) == stores["plain"][0]
        s.fault = None
        assert append(s, files[1]).returncode == 0
        assert s.content("out.zarr") == stores["plain"][1]


def test_chunks_that_no_file_has(tmp_path):
    """They read as the fill value: objects of an array that was longer once do not become chunks again."""

    def make(name, n, rows):
        with h5py.File(tmp_path / name, "w") as f:
            d = f.create_dataset("d", (n, 4), "i4", chunks=(2, 4), maxshape=(None, 4), fillvalue=7)
            for r in rows:
                d[r] = r

    make("a.h5", 3, [0])
    make("b.h5", 8, [7])
    local = tmp_path / "out.zarr"
    assert run("convert", "-q", "--concat", "/d:0", tmp_path / "a.h5", local).returncode == 0
    for k in (3, 4, 5, 9):
        (local / f"d/c/{k}").mkdir()
        shutil.copy(local / "d/c/0/0", local / f"d/c/{k}/0")
    with Server(page=2) as s:
        put(s, contents(local))
        assert run("convert", "-q", "--append", "/d:0", tmp_path / "b.h5", local).returncode == 0
        done = run("convert", "-q", "--append", "/d:0", tmp_path / "b.h5", TARGET, "--endpoint", s.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert s.content("out.zarr") == contents(local)
        assert "d/c/9/0" in s.content("out.zarr")
        assert "d/c/3/0" not in s.content("out.zarr")


def test_a_large_chunk_is_copied_in_parts(tmp_path):
    size = 65 << 20
    for i in range(2):
        with h5py.File(tmp_path / f"{i}.h5", "w") as f:
            f.create_dataset(
                "d", data=np.resize(np.arange(251 + i, dtype="u1"), (1, size)), chunks=(1, size), maxshape=(None, size)
            )
    local = tmp_path / "out.zarr"
    assert run("convert", "-q", "--concat", "/d:0", tmp_path / "0.h5", local).returncode == 0
    with Server() as s:
        put(s, contents(local))
        assert run("convert", "-q", "--append", "/d:0", tmp_path / "1.h5", local).returncode == 0
        done = run("convert", "-q", "--append", "/d:0", tmp_path / "1.h5", TARGET, "--endpoint", s.url)
        assert (done.returncode, done.stderr) == (0, "")
        copies = [r for r in s.requests if "x-amz-copy-source" in r.headers]
        assert [(r.kind, r.headers["x-amz-copy-source-range"]) for r in copies] == [
            ("part", f"bytes=0-{(64 << 20) - 1}"),
            ("part", f"bytes={64 << 20}-{size - 1}"),
        ]
        assert s.content("out.zarr") == contents(local)
        assert s.wrong_signatures == []


def test_names_that_need_encoding(tmp_path):
    for i in range(2):
        with h5py.File(tmp_path / f"{i}.h5", "w") as f:
            f.create_dataset("w é+&=~*'()% y", data=np.arange(5) + 5 * i, chunks=(2,), maxshape=(None,))
    local = tmp_path / "out.zarr"
    assert run("convert", "-q", "--concat", "/*:0", tmp_path / "0.h5", local).returncode == 0
    with Server() as s:
        put(s, contents(local))
        assert run("convert", "-q", "--append", "/*:0", tmp_path / "1.h5", local).returncode == 0
        done = run("convert", "-q", "--append", "/*:0", tmp_path / "1.h5", TARGET, "--endpoint", s.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert s.content("out.zarr") == contents(local)
        assert s.wrong_signatures == []


def test_a_store_that_is_the_whole_bucket(world):
    files, stores = world
    for target in ("s3://bucket", "s3://bucket/"):
        with Server() as s:
            for key, body in stores["shards"][0].items():
                s.objects[key] = Stored(body)
            done = run("convert", "-q", "--append", "t", files[1], target, "--endpoint", s.url)
            assert (done.returncode, done.stderr) == (0, "")
            assert {k: o.body for k, o in s.objects.items()} == stores["shards"][1]


def test_a_damaged_list_is_not_believed(world):
    files, stores = world
    with Server() as s:
        for text, words in (
            (b"{", "its list of metadata cannot be read"),
            (b'[{"key": "zarr.json", "before": "00", "after": "11"}]\n{}', "changed by another program"),
            (b'[{"key": "../../zarr.json", "before": "00", "after": "11"}]\n{}', "not a valid key in a store"),
        ):
            s.objects.clear()
            put(s, stores["plain"][0])
            s.objects[OWN + "metadata"] = Stored(text)
            sentence(append(s, files[1]), words)
            assert without_own(s.content("out.zarr")) == stores["plain"][0]


def test_references_are_not_made_in_s3(world):
    files, _ = world
    with Server() as s:
        for name in ("refs.json", "refs.parquet"):
            done = run("convert", "-q", "--virtual", files[0], f"s3://bucket/{name}", "--endpoint", s.url)
            sentence_of = done.stderr
            assert done.returncode == 2 and "local" in sentence_of, sentence_of
            done = run("convert", "-q", "--virtual", "--append", "t", files[0], f"s3://bucket/{name}", "--endpoint", s.url)
            assert done.returncode in (1, 2), done.stderr
        assert s.objects == {}
        # nor a folder of such a name
        done = run("convert", "-q", "--concat", "t", files[0], "s3://bucket/x.json", "--endpoint", s.url)
        assert done.returncode == 2 and "use a name such as OUT.zarr" in done.stderr, done.stderr
        assert s.objects == {}
