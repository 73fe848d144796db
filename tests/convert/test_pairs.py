# SPDX-License-Identifier: BSL-1.0
"""Every source to every target: the values, kills, writes that fail, damaged chunks, sources that change, and memory.

ZARRBITS_KILLS, ZARRBITS_CASES: for all pairs; 20 are one kill, or one failing write, of each. ZARRBITS_SEED: others."""

import errno
import os
import pathlib
import random
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest

import processes
from harness import contents, run
from kills import begin, end, kill, slow_writes
from pairs import CHUNK, PAIRS, SOURCES, STEPS, TARGETS, attach_dimensions, is_equal, joins, make_source, read, remove, values

KILLS, CASES = (max(1, int(os.environ.get(f"ZARRBITS_{name}", "1")) // 20) for name in ("KILLS", "CASES"))
SEED = int(os.environ.get("ZARRBITS_SEED", "52"))
each_pair = pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{s} to {t}" for s, t in PAIRS])


@pytest.fixture(name="sources", scope="module")
def all_sources(tmp_path_factory):
    """The names of each source for the command."""
    return {kind: make_source(kind, tmp_path_factory.mktemp("source")) for kind in SOURCES}


@pytest.fixture(name="wholes", scope="module")
def all_targets(sources, tmp_path_factory):
    """The target of an undisturbed run of each pair."""
    result = {}
    for source, target in PAIRS:
        name, options = TARGETS[target]
        path = tmp_path_factory.mktemp("whole") / name
        done = run("convert", "-q", *joins(sources[source]), *options, *sources[source], path, status=None)
        result[source, target] = path, done
    return result


@each_pair
def test_values(source, target, sources, wholes, tmp_path):
    path, done = wholes[source, target]
    assert done.returncode == 0, done.stderr
    found = read(path, tmp_path / "gathered")
    if found is not None:
        assert set(found) == set(values())
        for name, expected in values().items():
            np.testing.assert_array_equal(found[name], expected)
    if (source, target) != ("stores", "HDF5"):  # which verify does not compare
        run("verify", *joins(sources[source]), *sources[source], path)


def command(source, target, sources, folder):
    """The words of a pair's conversion into this folder, and the target."""
    name, options = TARGETS[target]
    path = folder / name
    return ["convert", "-q", "--threads", "2", *joins(sources[source]), *options, *sources[source], path], path


def undisturbed(words, path, **variables):
    """Runs a conversion, and moves what it makes away, as its names are part of references: the folder with it, and the time."""
    begun = time.monotonic()
    run(*words, **variables)
    seconds = time.monotonic() - begun
    expected = path.parent.with_name("expected")
    path.parent.rename(expected)
    path.parent.mkdir()
    return expected, seconds


def is_unfinished(path):
    """Whether it is nothing that a reader takes for a store or a file."""
    if not path.exists():
        return True
    return path.is_dir() and not any((path / name).exists() for name in ("zarr.json", ".zgroup", ".zmetadata"))


@pytest.mark.skipif(processes.SANITIZED, reason="no run is slowed down")
@each_pair
def test_a_killed_run_leaves_nothing_that_looks_complete(source, target, sources, tmp_path):
    dice = random.Random(f"{SEED} {source} {target}")
    folder = tmp_path / "made"
    folder.mkdir()
    words, path = command(source, target, sources, folder)
    expected, seconds = undisturbed(words, path, **slow_writes())
    for _ in range(KILLS):
        process = begin(*words, **slow_writes())
        time.sleep(dice.uniform(0, seconds))
        kill(process)
        if is_unfinished(path):
            run(*words)
        # one that was killed as it ended may leave a mark
        made = {key: data for key, data in contents(folder).items() if ".zarrbits-unfinished" not in key}
        assert made == contents(expected), sorted(folder.rglob("*"))
        remove(folder)
        folder.mkdir()


@each_pair
def test_partitions_make_what_one_process_makes(source, target, sources, tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    words, path = command(source, target, sources, folder)
    if target in ("zip", "HDF5"):
        sentence = run(*words, "--partition", "0/2", status=(1, 2)).stderr
        assert "partition" in sentence or "one process writes at once" in sentence, sentence
        assert not any(folder.iterdir())
        return
    expected = undisturbed(words, path)[0]
    for number in (1, 0):
        run(*words, "--partition", f"{number}/2")
        assert is_unfinished(path)
    # the plan in the store has the other options
    finalize = [*joins(sources[source]), *(["--virtual"] if "--virtual" in words else []), *sources[source], path]
    run("finalize", "-q", *finalize)
    assert is_equal(folder, expected)


@pytest.fixture(name="shim", scope="module")
def failing_calls(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "fail.so"
    code = pathlib.Path(__file__).resolve().parents[1] / "attack/fail_calls.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, code, "-ldl"], check=True)
    return library


@pytest.mark.skipif(processes.SANITIZED, reason="sanitizers have to be loaded first")
@each_pair
def test_a_call_that_fails_costs_no_value(source, target, sources, shim, tmp_path):
    dice = random.Random(f"{SEED} {source} {target}")
    watched, log = tmp_path / "watched", tmp_path / "log"
    words, path = command(source, target, sources, watched)
    shimmed = {"LD_PRELOAD": str(shim), "FAIL_UNDER": str(watched)}
    watched.mkdir()
    log.touch()
    expected = undisturbed(words, path, FAIL_LOG=str(log), FAIL_NTH="0", **shimmed)[0]
    calls = log.stat().st_size
    assert calls > 2
    for _ in range(CASES):
        number, error = dice.randint(1, calls), dice.choice([errno.ENOSPC, errno.EIO, errno.EACCES])
        done = run(*words, status=(0, 1), FAIL_NTH=str(number), FAIL_ERRNO=str(error), **shimmed)
        case = f"call {number} of {calls}, {errno.errorcode[error]}: exit {done.returncode}: {done.stderr}"
        if done.returncode == 1:
            assert sum("warning" not in line for line in done.stderr.splitlines()) == 1, case
            assert is_unfinished(path), case
            run(*words)
        assert is_equal(watched, expected), case
        remove(watched)
        watched.mkdir()


def damage(kind, names, folder):
    """The names of a copy of the source with a chunk of "t2m" that its codecs do not make. None if it has no such chunk."""
    copies = []
    for path in names:
        copy = folder / path.name
        shutil.copytree(path, copy) if path.is_dir() else shutil.copy(path, copy)
        copies.append(copy)
    last = copies[-1]
    if kind in ("HDF5", "HDF5 files"):
        with h5py.File(last) as f:
            chunk = f["t2m"].id.get_chunk_info(3)
        overwrite(last, chunk.byte_offset, chunk.size)
    elif kind in ("Zarr", "stores"):
        path = last / "t2m/c/1/1/0"
        overwrite(path, 0, path.stat().st_size)
    elif kind == "Zarr v2":
        path = last / "t2m/1.1.0"
        overwrite(path, 0, path.stat().st_size)
    elif kind == "zip":
        data = last.read_bytes()
        name = b"t2m/c/1/1/0"
        begin_of_data = data.index(name) + len(name)
        overwrite(last, begin_of_data + 40, 200)
    else:
        return None
    return copies


def overwrite(path, offset, size):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(b"\xa5" * size)


@each_pair
def test_a_damaged_chunk_is_noticed(source, target, sources, tmp_path):
    (tmp_path / "damaged").mkdir()
    names = damage(source, sources[source], tmp_path / "damaged")
    if names is None:
        return
    words, path = command(source, target, {source: names}, tmp_path)
    done = run(*words, status=(0, 1))
    if done.returncode == 1:
        assert "t2m" in done.stderr.splitlines()[-1] and "--keep-going" in done.stderr, done.stderr
        assert is_unfinished(path)
    elif source in ("HDF5", "HDF5 files") and target == "HDF5":
        return  # the stored bytes of the source: verify compares these, and finds them equal
    else:  # copied or referred to as it is stored
        assert run("verify", *joins(names), *names, path, status=None).returncode == 1
    remove(path)
    if run(*words, "--keep-going", status=(0, 3)).returncode == 3 and target != "Zarr v2":
        found = read(path, tmp_path / "gathered")
        lost = found["t2m"] != values()["t2m"]
        where = np.argwhere(lost)
        # no more than what the damaged chunk had
        assert len(where) and (where.max(axis=0) - where.min(axis=0) < CHUNK).all()
        np.testing.assert_array_equal(found["count"], values()["count"])


def change(kind, names):
    """Another program changes bytes of the last values in a source, in place; the size stays."""
    path = names[0].parent / "in.h5" if kind in ("references", "Parquet") else names[-1]
    if path.suffix == ".h5":
        with h5py.File(path) as f:
            chunk = f["t2m"].id.get_chunk_info(f["t2m"].id.get_num_chunks() - 1)
        return overwrite(path, chunk.byte_offset + 30, 4)
    if path.suffix == ".zip":
        return overwrite(path, path.read_bytes().rindex(b"t2m/c/5/1/0", 0, -3000) + 60, 4)
    if path.is_dir():
        path = max(p for p in (path / "t2m").rglob("*") if p.is_file() and p.name[0].isdigit())
    overwrite(path, path.stat().st_size // 2 if kind != "netCDF-3" else path.stat().st_size - 9, 4)


@each_pair
def test_a_source_that_changes_is_noticed(source, target, tmp_path):
    """The target has the values of before the change, or there is none."""
    folder = tmp_path / "in"
    folder.mkdir()
    names = make_source(source, folder)
    words, path = command(source, target, {source: names}, tmp_path)
    process = begin(*words[:3], "1", *words[4:], **slow_writes())
    while process.poll() is None and not any(p.name.startswith("out") for p in tmp_path.iterdir()):
        pass
    change(source, names)
    status, said = end(process)
    if status:
        assert status == 1 and (
            "chang" in said.splitlines()[-1] or "damaged" in said or "checksum" in said or "cannot be read" in said
        ), said
        assert is_unfinished(path)
    elif target not in ("references", "Parquet"):  # which note the state of the source for their readers
        before = read(path, tmp_path / "gathered")["t2m"] == values()["t2m"]
        # else it was changed before the run had listed the chunks
        assert before.all() or run("verify", *joins(names), *names, path, status=None).returncode == 0


STEP_BYTES = 3 << 20


def write_large(path, steps=range(STEPS)):
    """72 MiB that take little room, with one chunk for each step."""
    shape = (len(steps), 1024, STEP_BYTES // 4096)
    with h5py.File(path, "w", track_order=True) as f:
        f.create_dataset("time", data=np.array(steps, "f8"), maxshape=(None,), chunks=(4,))
        d = f.create_dataset("t2m", shape, "i4", maxshape=(None, *shape[1:]), chunks=(1, *shape[1:]), compression="gzip")
        attach_dimensions(d, "time", "y", "x")
        for number, step in enumerate(steps):
            d[number] = step


@pytest.fixture(name="large", scope="module")
def large_sources(tmp_path_factory):
    return {kind: make_source(kind, tmp_path_factory.mktemp("large"), write_large) for kind in SOURCES}


LARGE_OPTIONS = {"shards": ["--shard", "12M"], "other chunks": ["--chunk", "7x512x96"]}


@pytest.mark.skipif(processes.SANITIZED, reason="sanitizers take memory")
@each_pair
def test_memory_is_bounded(source, target, large, tmp_path):
    name, options = TARGETS[target]
    names = large[source]
    words = [*joins(names), *LARGE_OPTIONS.get(target, options), *names, tmp_path / name]
    taken = processes.run("convert", "-q", "--threads", "2", "--memory", "48M", *words)
    assert taken.status == 0, taken.errors
    assert taken.peak <= 48 << 20, (taken.peak >> 20, taken.errors)
