# SPDX-License-Identifier: BSL-1.0
"""Any number of threads, shares, and interrupted runs make the same store and report, byte for byte; an unfinished array is never
taken for a whole array."""

import json
import os
import random
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest

import harness
import kills
from harness import COMMAND, Case, report, same

KILLS = int(os.environ.get("ZARRBITS_KILLS", "10"))
OPTIONS = []  # of all conversions of a test


@pytest.fixture(params=[[], ["--shard", "20k"]], ids=["files", "shards"])
def shards_too(request):
    """The test is run with shards once more."""
    OPTIONS[:] = request.param
    yield
    OPTIONS.clear()


@pytest.fixture
def folder(memory_folder):
    return memory_folder


def run(command, *args, **how):
    """Standard error."""
    return harness.run(command, *args, *(() if command == "finalize" else OPTIONS), **how).stderr


def begin(*args):
    return kills.begin("convert", *args, *OPTIONS)


def example(path, chunks=60):
    """All ways to convert a chunk, and some chunks that turn out to be wrong."""
    noise = np.random.default_rng(7)
    steps = np.cumsum(noise.integers(-3, 4, (chunks * 10, 64)), axis=0).astype("i4")
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=steps, chunks=(10, 64), compression="gzip")
        f.create_dataset("shuffled", data=steps[:600], chunks=(20, 30), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("plain", data=steps, chunks=(8, 64))
        f.create_dataset("contiguous", data=np.tile(steps, (1, 30)))
        f.create_dataset("small", data=np.arange(chunks * 10, dtype="i2"), chunks=(10,))
        f.create_dataset("g/bool", data=steps > 0, chunks=(25, 64), compression="gzip")
        odd = f.create_dataset("g/odd", (400,), "i1", chunks=(4,))
        f["g/text"] = np.array([f"é{i}" for i in range(500)], dtype=h5py.string_dtype())
        latin = f.create_dataset("g/latin", (300,), "S6", chunks=(10,))
        latin[:] = b"abc"
        latin[250] = b"\xff\xfe"
        rows = f.create_dataset("g/rows", (60,), h5py.vlen_dtype("i4"))
        for i in range(60):
            rows[i] = np.arange(i)
        mixed = np.dtype([("n", "i4"), ("s", h5py.string_dtype()), ("l", "S3")])
        f.create_dataset("g/mixed", data=np.array([(i, f"s{i}", b"\xff") for i in range(50)], mixed), chunks=(7,))
        f["g/refs"] = np.array([f["plain"].ref, f["g"].ref], h5py.ref_dtype)
        f["g/null"] = h5py.Empty("f8")
        f["g/empty"] = np.zeros((0, 3))
        f.create_dataset("g/sparse", (1000, 1000), "u2", chunks=(10, 10), fillvalue=7)[500, 500] = 1
        for i in range(30):
            f.create_dataset(f"many/d{i}", data=steps[i * 10 : i * 10 + 10], compression="lzf")
        odd.attrs["x"] = 1
        flag = h5py.h5t.enum_create(h5py.h5t.STD_I8LE)
        flag.enum_insert(b"FALSE", 0)
        flag.enum_insert(b"TRUE", 1)
        space = h5py.h5s.create_simple((200,))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        two = h5py.h5d.create(f.id, b"not_bool", flag, space, plist)
        values = np.zeros(200, "i1")
        values[150] = 2
        two.write(h5py.h5s.ALL, h5py.h5s.ALL, values, flag)


def case_of(folder, **how):
    return Case(folder, lambda path: example(path, **how), *OPTIONS)


def chunks_in(store):
    """The chunks are there under their keys; the metadata of arrays and of the root is not."""
    n = 0
    for folder, _, files in os.walk(store):
        assert "zarr.json" not in files, folder
        if ".zarrbits-unfinished" not in folder:
            n += sum(not f.startswith(".zarrbits-") for f in files)
    return n


@pytest.mark.usefixtures("shards_too")
def test_threads_change_no_byte(folder):
    case = case_of(folder, chunks=200)
    for threads in (2, 4):
        run("convert", case.source, case.out, "--threads", threads, "--memory", "20M", "--report", case.out_report)
        case.matches()
        shutil.rmtree(case.out)
    assert any(o.get("reason", "").startswith("booleans") for o in report(case.whole_report)["objects"])


def all_chunks(store):
    return sum("zarr.json" != f for _, _, files in os.walk(store) for f in files)


@pytest.mark.usefixtures("shards_too")
def test_killed_at_any_moment_then_resumed(folder):
    case = case_of(folder)
    total = all_chunks(case.whole)
    dice = random.Random(11)
    seen, between, attempts = [], 0, 0
    wanted = KILLS // 5 if OPTIONS else KILLS
    while len(seen) < wanted:
        attempts += 1
        assert attempts < 6 * wanted, "the runs end before they can be killed"
        p = begin(case.source, case.out, "--threads", "2", "--report", case.out_report)
        chunks = dice.randrange(total)  # after which it is killed
        while p.poll() is None and all_chunks(case.out) < chunks:
            time.sleep(0.001)
        kills.kill(p)
        if p.returncode == 0:  # it was faster
            case.matches()
            shutil.rmtree(case.out)
            continue
        there = os.path.exists(case.out)
        if there and os.listdir(case.out) and not os.path.exists(os.path.join(case.out, ".zarrbits-unfinished")):
            same(case.whole, case.out)  # it was whole; the process had not ended yet
            seen.append(total)
            shutil.rmtree(case.out)
            continue
        if there and os.path.exists(os.path.join(case.out, "zarr.json")):
            # the metadata were being written: all chunks are there
            assert all_chunks(case.out) >= total
            n = total
        elif there and any("zarr.json" in files for _, _, files in os.walk(case.out)):
            n = total
        else:
            n = chunks_in(case.out) if there else 0
        seen.append(n)
        between += 0 < n < total
        if there and len(seen) % 5 == 0 and n < total:
            run("convert", case.source, case.out, "--overwrite", "--report", case.out_report)
        else:
            run("convert", case.source, case.out, "--resume", "--report", case.out_report)
        case.matches()
        shutil.rmtree(case.out)
    print(f"chunks done of {total} at each kill:", *seen)
    # fewer kills may fall less evenly, and those of a run with shards, which is soon over, may all come before or after
    assert between >= wanted // (10 if OPTIONS else 4), (
        f"only {between} of {wanted} kills fell between the first chunk and the last"
    )


@pytest.mark.usefixtures("shards_too")
def test_kill_of_the_parent_alone(folder):
    case = case_of(folder, chunks=200)
    p = begin(case.source, case.out)
    while not os.path.exists(os.path.join(case.out, "deflate")):
        time.sleep(0.001)
    p.kill()
    kills.end(p)  # the child hears of it, and ends
    run("convert", case.source, case.out, "--resume", "--report", case.out_report)
    case.matches()


@pytest.mark.usefixtures("shards_too")
def test_what_is_resumed_must_be_the_same(folder):
    case = case_of(folder)
    run("convert", case.source, case.out, "--partition", "0/2")
    assert "different options" in run("convert", case.source, case.out, "--resume", "--checksum", "crc32c", status=1)
    other = os.path.join(folder, "other.h5")
    shutil.copy(case.source, other)
    assert "a different source" in run("convert", other, case.out, "--resume", status=1)
    os.utime(case.source, (1, 1))
    assert "source changed" in run("convert", case.source, case.out, "--resume", status=1)
    run("convert", case.source, case.out, "--overwrite", "--report", case.out_report)
    case.matches()


@pytest.mark.usefixtures("shards_too")
def test_shares_in_any_order_one_of_them_killed(folder):
    case = case_of(folder)
    shares = 2 if OPTIONS else 4  # there are fewer units, and each share is to have some
    order = list(range(shares))
    random.Random(3).shuffle(order)
    for n, share in enumerate(order):
        args = [case.source, case.out, "--partition", f"{share}/{shares}"]
        if n == 0:
            p = begin(*args)
            while p.poll() is None and not all_chunks(case.out):
                time.sleep(0.001)
            kills.kill(p)
        if n == shares - 1:
            said = run("finalize", case.source, case.out, status=1)
            assert f"of partition {share} of {shares}" in said and "missing" in said, said
        run("convert", *args)
        chunks_in(case.out)
    run("finalize", case.source, case.out, "--report", case.out_report)
    case.matches()


def test_shares_that_a_launcher_tells(folder):
    case = case_of(folder)
    alone = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMI_", "PALS_"))}
    for task in (5, 7):
        for rank in (0, 1):
            said = run(
                "convert",
                case.source,
                case.out,
                "--partition",
                "slurm",
                env={
                    **alone,
                    "SLURM_ARRAY_TASK_ID": str(task),
                    "SLURM_ARRAY_TASK_MIN": "5",
                    "SLURM_ARRAY_TASK_STEP": "2",
                    "SLURM_ARRAY_TASK_COUNT": "2",
                    "SLURM_JOB_ID": "1",
                    "PMI_RANK": str(rank),
                    "PMI_SIZE": "2",
                },
            )
            assert f"share {task - 5 + rank} of 4 (the Slurm array and PMI)" in said, said
    run("finalize", case.source, case.out, "--report", case.out_report)
    case.matches()
    shutil.rmtree(case.out)
    run("convert", case.source, case.out, env={**alone, "SLURM_PROCID": "0", "SLURM_NTASKS": "4"})  # a batch script itself
    same(case.whole, case.out)
    shutil.rmtree(case.out)
    for name in ("OMPI_COMM_WORLD", "SLURM"):
        rank, size = {"SLURM": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")}.get(name, (name + "_RANK", name + "_SIZE"))
        assert "share 1 of 3" in run("convert", case.source, case.out, "--partition", "mpi", env={**alone, rank: "1", size: "3"})
        shutil.rmtree(case.out)


def test_what_stands_in_the_way_is_one_sentence(folder):
    case = case_of(folder)

    def sentence(*args, status=1, **how):
        said = run("convert", *args, status=status, **how)
        assert said.count("\n") == 1 and said.startswith("zarrbits: "), said
        return said

    # the report is tried before anything is written
    assert "--report" in sentence(case.source, case.out, "--report", os.path.join(folder, "none", "r.json"))
    assert "--report" in sentence(case.source, case.out, "--report", folder)
    assert not os.path.exists(case.out)
    assert "exists" in sentence(case.source, case.whole)
    limited = ["bash", "-c", f'ulimit -f 40; exec "{COMMAND}" convert "{case.source}" "{case.out}" --quiet']
    full = subprocess.run(limited, capture_output=True, text=True)
    assert full.returncode == 1 and full.stderr.count("\n") == 1 and "cannot write" in full.stderr, full.stderr
    assert not os.path.exists(os.path.join(case.out, "zarr.json"))  # what is done may stay
    shutil.rmtree(case.out, ignore_errors=True)
    assert "No such file" in sentence(os.path.join(folder, "gone.h5"), case.out)
    readonly = os.path.join(folder, "readonly")
    os.mkdir(readonly, 0o555)
    if os.geteuid() != 0:
        assert "cannot create" in sentence(case.source, os.path.join(readonly, "out.zarr"))
    # the end of the source is gone
    with open(case.source, "r+b") as f:
        f.truncate(os.path.getsize(case.source) * 2 // 3)
    sentence(case.source, case.out)
    assert not os.path.exists(os.path.join(case.out, "zarr.json"))


def test_options_come_from_the_plan(folder):
    """A run that resumes a store need not repeat the options; one that differs is named."""
    everything = [
        "--profile",
        "recode",
        "--compress",
        "blosc:lz4:3:bitshuffle",
        "--chunk",
        "50,50",
        "--shard",
        "100,100",
        "--checksum",
        "crc32c",
        "--codec",
        "packbits",
        "--bits",
        "40",
        "--bits",
        "small=15",
        "--exclude",
        "/many",
        "--keep-going",
        "--allow-expansion",
        "--consolidate",
    ]
    for options in everything, ["--include", "/g", "--shard", "64k"], ["--compress", "zstd:7"], ["--profile", "native"]:
        case = Case(folder, example, *options)
        harness.run("convert", case.source, case.out, "--partition", "0/2", *options)
        harness.run("convert", case.source, case.out, "--partition", "1/2")
        harness.run("finalize", case.source, case.out, "--report", case.out_report)
        case.matches()
        case.clear()
        harness.run("convert", case.source, case.out, "--partition", "0/2", *options)
        said = harness.run(
            "convert",
            case.source,
            case.out,
            "--resume",
            "--shard",
            "77k",
            "--checksum",
            "crc32c",
            *["--include", "/small"],
            status=1,
        ).stderr
        assert "different options" in said and "--shard" in said and "--include" in said, said
        assert ("--checksum" in said.split("it was begun by")[0]) == (
            "crc32c" not in options
        ) and "--keep-going" not in said.split("it was begun by")[0], said
        harness.run("convert", case.source, case.out, "--resume", "--report", case.out_report)
        case.matches()
        shutil.rmtree(case.whole)
        case.clear()
        os.remove(case.source)


def test_a_plan_that_is_not_ours_to_believe(folder):
    case = case_of(folder)
    run("convert", case.source, case.out, "--partition", "0/2")
    path = os.path.join(case.out, ".zarrbits-unfinished", "plan")
    with open(path, encoding="utf-8") as f:
        plan = json.load(f)
    for key, value in (
        ("codec", 99),
        ("codec", -1),
        ("shard", {}),
        ("shard", {"bytes": "x", "shape": []}),
        ("include", [1]),
        ("keep_going", 1),
        ("compress", {"kind": 1}),
        ("bits", 1 << 40),
        ("bits", {"all": None, "of": [{"pattern": 5, "first": 0, "last": 3}]}),
        ("chunk", 5),
    ):
        changed = json.loads(json.dumps(plan))
        changed["options"][key] = value
        with open(path, "w", encoding="utf-8") as f:
            json.dump(changed, f)
        assert "cannot be read" in run("convert", case.source, case.out, "--resume", status=1), key
    with open(path, "w", encoding="utf-8") as f:
        json.dump({**plan, "external": True}, f)
    assert "--external" in run("convert", case.source, case.out, "--resume", status=1)


def test_a_store_that_is_whole_is_not_resumed(folder):
    """It is compared with the source: one that was begun again has nothing to do."""

    def plain(path):
        with h5py.File(path, "w") as f:
            f.create_dataset("g/deflate", data=np.arange(5000, dtype="i4"), chunks=(100,), compression="gzip")
            f["contiguous"] = np.zeros((50, 50))

    case = Case(folder, plain, *OPTIONS)
    for store in case.whole, os.path.join(folder, "whole.zip"):
        if store.endswith(".zip"):
            run("convert", case.source, store)
        before = {name: os.stat(os.path.join(at, name)).st_mtime_ns for at, _, names in os.walk(case.whole) for name in names}
        said = run("convert", case.source, store, "--resume")
        assert "complete and was made from this source" in said and len(said.splitlines()) == 1, said
        assert run("convert", case.source, store, "--resume", "-q") == ""
        assert before == {
            name: os.stat(os.path.join(at, name)).st_mtime_ns for at, _, names in os.walk(case.whole) for name in names
        }
        other = os.path.join(folder, "other.h5")
        shutil.copy(case.source, other)
        with h5py.File(other, "r+") as f:
            f["contiguous"][5, 5] += 1
        said = run("convert", other, store, "--resume", status=1)
        assert "not made from this source" in said and "contiguous" in said, said
    # a store that is begun is not whole
    run("convert", case.source, case.out, "--partition", "0/2")
    run("convert", case.source, case.out, "--resume", "--report", case.out_report)
    case.matches()


def test_shares_and_options_that_make_no_sense(folder):
    for bad in ("1", "4/4", "0/0", "-1/4", "a/b"):
        run("convert", "x.h5", "y.zarr", "--partition", bad, status=2)
    run("convert", "x.h5", "y.zarr", "--partition", "0/4", "--overwrite", status=2)
    run("convert", "x.h5", "y.zarr", "--resume", "--overwrite", status=2)
    run("convert", "x.h5", "y.zarr", "--threads", "0", status=2)
    run("convert", "x.h5", "y.zarr", "--memory", "many", status=2)
