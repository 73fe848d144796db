# SPDX-License-Identifier: BSL-1.0
"""Processes that meet at the end of one store: two that finalize it, one that makes a share, one that resumes. And runs that are
killed there. Whatever the order, what is left is the whole store, or work that the same command completes.

cases.py has the variables that ask for more pairs of each kind."""

import os
import shutil
import time

import h5py
import numpy as np
import pytest

from cases import dice_of, number_of_cases
from harness import convert, run, same
from kills import begin, end, kill

CASES = number_of_cases(6)


@pytest.fixture(name="case", scope="module", params=["file", "store"])
def case_of(request, tmp_path_factory):
    """A source, the store that one process makes of it, and one of which only the metadata are missing."""
    folder = tmp_path_factory.mktemp(request.param)
    with h5py.File(folder / "in.h5", "w") as f:
        for k in range(12):
            f.create_dataset(f"g{k % 3}/d{k}", data=np.arange(2000).reshape(40, 50) + k, chunks=(2, 50), compression="gzip")
    source = folder / "in.h5"
    if request.param == "store":
        convert(folder / "in.h5", folder / "in.zarr", "-q")
        source = folder / "in.zarr"
    convert(source, folder / "whole.zarr", "-q")
    for share in range(20):
        convert(source, folder / "made.zarr", "-q", "--partition", f"{share}/20")
    return source, folder / "whole.zarr", folder / "made.zarr"


def meet(first, second, pause):
    """Two runs at once: their exit statuses and what they said."""
    a = begin(*first)
    time.sleep(pause)
    b = begin(*second)
    return end(a), end(b)


@pytest.mark.parametrize("number", range(CASES))
@pytest.mark.parametrize("other", ["finalize", "share", "resume"])
def test_whoever_comes_second_is_refused_or_finds_nothing_to_do(case, tmp_path, other, number):
    source, whole, made = case
    out = tmp_path / "out.zarr"
    shutil.copytree(made, out)
    chance = dice_of(other, number)
    finalize = ["finalize", source, out, "-q"]
    commands = {
        "finalize": finalize,
        "share": ["convert", source, out, "-q", "--partition", "3/20"],
        "resume": ["convert", source, out, "-q", "--resume"],
    }
    ways = [finalize, commands[other]]
    chance.shuffle(ways)
    results = meet(*ways, chance.random() ** 2 * 0.05)
    assert all(status in (0, 1) for status, _ in results), results
    # what was refused is repeated, as its user would; nothing that is whole may be lost
    if not (out / "zarr.json").exists():
        assert results[ways.index(finalize)][0] == 1, results
        run(*finalize)
    same(whole, out)
    for status, said in results:
        assert status == 0 or "wait" in said or "exists and is not an unfinished store" in said, results


@pytest.mark.parametrize("number", range(CASES))
def test_a_finalize_that_is_killed_is_completed_by_the_same_command(case, tmp_path, number):
    source, whole, made = case
    chance = dice_of(number)
    began = time.monotonic()
    out = tmp_path / "out.zarr"
    shutil.copytree(made, out)
    run("finalize", source, out, "-q")
    longest = time.monotonic() - began
    for _ in range(5):
        shutil.rmtree(out)
        shutil.copytree(made, out)
        process = begin("finalize", source, out, "-q")
        time.sleep(chance.random() * longest)
        kill(process)
        run("finalize", source, out, "-q")
        same(whole, out)


def test_what_remains_of_a_complete_store_goes_with_the_same_command(case, tmp_path):
    """Whoever is killed after the plan was removed leaves journals, a lock, or the folder alone."""
    source, whole, made = case
    out = tmp_path / "out.zarr"
    mark = out / ".zarrbits-unfinished"
    for keep in (len(os.listdir(made / mark.name)) - 1, 3, 1, 0):
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(whole, out)
        shutil.copytree(made / mark.name, mark)
        os.remove(mark / "plan")
        for name in sorted(os.listdir(mark))[keep:]:
            os.remove(mark / name)
        run("finalize", source, out, "-q")
        same(whole, out)
        assert not mark.exists()


def test_a_share_at_work_is_waited_for(case, tmp_path):
    import fcntl

    source, _, made = case
    out = tmp_path / "out.zarr"
    shutil.copytree(made, out)
    with open(out / ".zarrbits-unfinished/lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        said = run("finalize", source, out, "-q", status=1).stderr
        assert "a share that is not done yet, or another finalize" in said
        convert(source, out, "-q", "--partition", "1/20")
