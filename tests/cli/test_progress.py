# SPDX-License-Identifier: BSL-1.0
"""The output while a conversion runs and at its end: on terminals of two widths, and without a terminal."""

import json
import os
import re
import shutil
import tempfile
import time

import h5py
import numpy as np

from command import COMMAND, run
from kills import begin, has_units, kill, slow_writes
from screen import on_terminal

SIDE = 600 if os.environ.get("ZARRBITS_SANITIZED") else 1000  # of the arrays; with sanitizers all takes longer


def example(folder):
    source = os.path.join(folder, "in.h5")
    values = np.random.default_rng(0).integers(0, 1000, (SIDE, SIDE), dtype="i4")
    with h5py.File(source, "w") as f:
        for i in range(6):
            f.create_dataset(
                f"group/a long name of a dataset {i}", data=values, chunks=(100, 100), compression="gzip", shuffle=True
            )
        f["raw"] = values
        f["rounded"] = np.array([1], np.longdouble) / 3
    return source, os.path.join(folder, "out.zarr")


def drawn(text):
    """The states of the line that is drawn again in place, and what stays on the screen."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return [p.replace("\x1b[K", "") for p in re.findall(r"\r(\[[^\r\n]*)", plain)], re.sub(r"\r[^\n]*\x1b\[K", "", plain)


def test_a_terminal_shows_progress_in_one_line(folder):
    source, target = example(folder)
    for columns in (80, 120):
        # COLUMNS is for tables: a line that is wider than the window cannot be drawn again in place
        text, status = on_terminal([COMMAND, "convert", source, target, "--overwrite"], columns, COLUMNS="300", **slow_writes())
        states, rest = drawn(text)
        assert status == 3 and len(states) > 1
        assert max(map(len, states)) < columns
        assert all(re.match(r"\[[#.]+\] +\d+ %", s) for s in states), states
        assert any("MiB of" in s for s in states) and any("/a" in s or "/raw" in s for s in states), states
        shares = [int(re.search(r"(\d+) %", s)[1]) for s in states]
        assert shares == sorted(shares)
        assert "\r" not in rest.replace("\r\n", "\n") and "[#" not in rest  # the line is gone at the end
        assert "recoded" in rest and "ratio" in rest and "of them lossy" in rest
        assert "\x1b[33m" in text  # lossy objects stand out
    assert "\x1b[3" not in on_terminal([COMMAND, "convert", source, target, "--overwrite"], 80, NO_COLOR="1")[0]
    assert drawn(on_terminal([COMMAND, "convert", source, target, "--overwrite", "--quiet"], 80)[0])[0] == []


def test_the_table_of_plan_fits_the_terminal(folder):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("a/" + 60 * "long" + "/end", data=np.zeros((40, 50)), chunks=(7, 7), compression="gzip")
    text, status = on_terminal([COMMAND, "plan", source], 80, NO_COLOR="1")
    lines = text.replace("\r", "").splitlines()
    rows = [line for line in lines if "rewrapped" in line or line.startswith("dataset")]
    assert status == 0 and len(rows) == 2 and max(map(len, rows)) <= 80 and "end" in rows[1] and "…" in rows[1], text
    piped = run("plan", source).stdout.decode()
    assert "/a/" + 60 * "long" + "/end" in piped and "…" not in piped


def test_elsewhere_a_line_now_and_then(folder):
    source, target = example(folder)
    r = run("convert", source, target, "--overwrite", env={**os.environ, **slow_writes(), "ZARRBITS_PROGRESS_SECONDS": "0.05"})
    lines = [line for line in r.stderr.splitlines() if " %, " in line]
    assert len(lines) > 1 and "\r" not in r.stderr and "\x1b" not in r.stderr
    assert all(
        re.fullmatch(r'zarrbits: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \d+ %, \d+ of 10 objects, .+ of .+B.*, at "/.*"', line)
        for line in lines
    ), lines[:3]
    for off in ({"ZARRBITS_PROGRESS_SECONDS": "0"}, {}):  # none, or none that early
        assert " %" not in run("convert", source, target, "--overwrite", env={**os.environ, **off}).stderr


def test_programs_get_lines_of_json(folder):
    source, target = example(folder)
    for options in ([], ["--quiet"]):
        with open(os.path.join(folder, "lines"), "w+b") as lines:
            number = lines.fileno()
            r = run(
                "convert",
                source,
                target,
                "--overwrite",
                *options,
                env={**os.environ, "ZARRBITS_PROGRESS_FD": str(number)},
                pass_fds=[number],
            )
            lines.seek(0)
            states = [json.loads(line) for line in lines]
        assert r.returncode == 3 and " %" not in r.stderr, r.stderr
        assert all(list(s) == ["done", "total", "objects_done", "objects", "path"] for s in states)
        last = states[-1]
        assert last["done"] == last["total"] > 12 * SIDE**2 and last["objects_done"] == last["objects"] == 10, last
        assert [s["done"] for s in states] == sorted(s["done"] for s in states)
    for wrong in ("", "2", "x", "-1", "999", "3 ", "99999999999999999999"):  # none that is open, or not ours
        r = run("convert", source, target, "--overwrite", env={**os.environ, "ZARRBITS_PROGRESS_FD": wrong})
        assert r.returncode == 3 and "objects_done" not in r.stderr, (wrong, r.stderr)


def test_verify_counts_objects_and_bytes(folder):
    source, target = example(folder)
    assert run("convert", source, target, "--quiet").returncode == 3
    rechunked = os.path.join(folder, "rechunked.zarr")
    assert run("convert", target, rechunked, "--quiet", "--chunk", "50x50").returncode == 0
    array_bytes = 7 * 4 * SIDE**2
    rounded = {source: np.dtype(np.longdouble).itemsize, target: np.dtype(float).itemsize}
    for names in ((source, target), (target, rechunked)):
        with open(os.path.join(folder, "lines"), "w+b") as lines:
            number = lines.fileno()
            environment = {**os.environ, "ZARRBITS_PROGRESS_FD": str(number)}
            r = run("verify", "--quiet", *names, env=environment, pass_fds=[number])
            lines.seek(0)
            states = [json.loads(line) for line in lines]
        done = [s["done"] for s in states]
        assert done == sorted(done) and states[-1]["done"] == states[-1]["total"]
        assert states[-1]["total"] == array_bytes + rounded[names[0]]
        assert (states[-1]["objects_done"], states[-1]["objects"]) == (10, 10)
        assert r.stdout == b"" or b"/rounded" in r.stdout  # --quiet


def test_the_summary_adds_up(folder):
    source, target = example(folder)
    r = run("convert", source, target, "--exclude", "*3")
    rows = {line.split("  ")[0]: line.split() for line in r.stderr.splitlines()}
    assert rows["raw"][1] == "1" and rows["recoded"][1] == "6" and rows["mapped"][1] == "2" and rows["all"][1] == "9", r.stderr
    assert rows["not selected"][2] == "1" and rows["of them lossy"][3] == "1"
    files = sum(len(names) for _, _, names in os.walk(target))
    assert f"in {files} files" in r.stderr and re.search(r"\d s, [\d.]+ .?i?B/s", r.stderr)


def states_of(*arguments, status=0, **variables):
    """The lines of JSON that a run sends, and what it prints."""
    with tempfile.TemporaryFile("w+b") as lines:
        number = lines.fileno()
        environment = {**os.environ, **variables, "ZARRBITS_PROGRESS_FD": str(number)}
        r = run(*arguments, env=environment, pass_fds=[number])
        assert r.returncode == status, r.stderr
        lines.seek(0)
        return [json.loads(line) for line in lines], r.stderr


def test_a_resumed_run_begins_where_it_was_cut_off(folder):
    source, target = example(folder)
    zarr = os.path.join(folder, "in.zarr")
    assert run("convert", source, zarr, "--quiet").returncode == 3
    for name, options, status in ((source, ["--compress", "zstd:1"], 3), (zarr, ["--chunk", "50x50"], 0)):
        process = begin("convert", "--quiet", "--threads", "1", *options, name, target, **slow_writes())
        while process.poll() is None and not has_units(target):
            time.sleep(0.01)
        kill(process)
        states, said = states_of("convert", name, target, "--threads", "1", *options, status=status)
        units = int(re.search(r"(\d+) units? (?:is|are) already made", said)[1])
        resumed = next(s["done"] for s in states if s["done"] > 0)
        assert states[-1]["done"] == states[-1]["total"] > 0
        # of the seven arrays, each of one unit, the smallest has a ninth of the bytes
        assert units >= 1 and resumed >= states[-1]["total"] // 9, (units, states)
        shutil.rmtree(target)


def test_the_progress_of_partitions_is_their_own(folder):
    source, target = example(folder)
    totals = []
    for k in range(3):
        states, _ = states_of("convert", source, target, "--partition", f"{k}/3")
        assert states[-1]["done"] == states[-1]["total"] > 0
        totals.append(states[-1]["total"])
    whole, _ = states_of("convert", source, os.path.join(folder, "whole.zarr"), status=3)
    assert abs(sum(totals) - whole[-1]["total"]) < 100 and max(totals) < 0.6 * sum(totals)
