# SPDX-License-Identifier: BSL-1.0
"""Runs of rename that are cut off leave the old references or the new ones, and the next run is not in their way.

ZARRBITS_KILLS (default 10): of each form."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest

import kills
from harness import run
from test_rename import FORMS, source, stored

KILLS = int(os.environ.get("ZARRBITS_KILLS", "10"))
NO_EXCHANGE = """
#include <errno.h>
int renameat2(int a, const char* b, int c, const char* d, unsigned flags) { return errno = EINVAL, -1; }
"""


def references(folder, form):
    """(references of many parts, their bytes, and those of renamed ones)"""
    refs, after = folder / f"refs.{form}", folder / f"after/refs.{form}"
    after.parent.mkdir()
    run("convert", "-q", "--virtual", source(folder / "in.h5"), refs)
    if form == "parquet":
        for i in range(200):
            shutil.copytree(refs / "v", refs / f"v{i}")
    shutil.copytree(refs, after) if form == "parquet" else shutil.copy(refs, after)
    before = stored(refs)
    run("rename", "-q", after, folder, "https://host")
    return refs, before, stored(after)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_at_any_time(tmp_path, form, how):
    refs, before, after = references(tmp_path, form)
    dice, seen, seconds = random.Random(3), set(), 0.3 if form == "parquet" else 0.05
    for _ in range(KILLS):
        process = kills.begin("rename", refs, tmp_path, "https://host")
        time.sleep(dice.random() * seconds)
        if process.poll() is None:
            os.killpg(process.pid, how)
        kills.end(process)
        now = stored(refs)
        assert now in (before, after)
        seen.add(now == after)
        if how == signal.SIGTERM:
            assert sorted(os.listdir(tmp_path)) == ["after", "in.h5", refs.name]
        if now == after:
            run("rename", "-q", refs, "https://host", tmp_path)
            before = stored(refs)
    run("rename", "-q", refs, tmp_path, "https://host")
    assert stored(refs) == after and sorted(os.listdir(tmp_path)) == ["after", "in.h5", refs.name]


def test_without_an_exchange_of_folders(tmp_path):
    """Before each call that renames or removes a file: the next run has the references, the old or the new ones."""
    if kills.killed_before_call(1) is None:
        pytest.skip("no compiler, or no LD_PRELOAD")
    refs, before, after = references(tmp_path, "parquet")
    library = tmp_path / "after/no_exchange.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=NO_EXCHANGE, text=True, check=True)
    shutil.copytree(refs, tmp_path / "after/saved")
    missing = 0
    for call in range(1, 10):
        variables = kills.killed_before_call(call)
        variables["LD_PRELOAD"] += f":{library}"
        process = kills.begin("rename", refs, tmp_path, "https://host", **variables)
        status, said = kills.end(process)
        assert status < 0, said  # many more calls remove the old folder
        missing += not refs.exists()
        now = stored(refs) if refs.exists() else before
        assert now in (before, after), call
        said = run("rename", refs, tmp_path, "https://host", status=1 if now == after else 0)
        assert stored(refs) == after and sorted(os.listdir(tmp_path)) == ["after", "in.h5", refs.name], (call, said)
        shutil.rmtree(refs)
        shutil.copytree(tmp_path / "after/saved", refs)
    assert missing == 1  # between the two names
