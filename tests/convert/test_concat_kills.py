# SPDX-License-Identifier: BSL-1.0
"""Kills of a concatenation at random moments, while a reader looks at the store all the time:
an array that opens is whole and right, and the root opens last of all.
After each, --resume makes the same store as an undisturbed run, or --overwrite replaces what is there.

ZARRBITS_KILLS: how many; ZARRBITS_SEED: others.
"""

import collections
import filecmp
import os
import random
import shutil
import time
import zipfile

import numpy as np

from harness import convert, report, same
from kills import Reader, kill_after
from test_concat import ROWS, here, opened, parts  # noqa: F401  (here: each test in a folder of its own)

KILLS, SEED = int(os.environ.get("ZARRBITS_KILLS", "10")), int(os.environ.get("ZARRBITS_SEED", "5"))
MARK = ".zarrbits-unfinished"
PLAN = f"out.zarr/{MARK}/plan"  # of a run that can be gone on with
WANTED = {"t": np.arange(len(ROWS)), "g/rows": ROWS, "mask": np.arange(12).reshape(3, 4)}
LENGTHS = 7, 6, 9, 13, 2, 4, 19


def identity(made, node):
    """Tells the metadata of an array from that of another run; None where there is none."""
    try:
        s = os.stat(os.path.join(made.path, node, "zarr.json"))
    except FileNotFoundError:
        return None
    return s.st_ino, s.st_ctime_ns


def look(made, whole):
    """How many arrays there are, by their own metadata."""
    there = [node for node in WANTED if made.has(node)]
    if whole:
        assert len(there) == len(WANTED) and made.has("g"), there
        assert [s["count"] for s in made.notes()["sources"]] == list(LENGTHS)
    for node in there:
        document = identity(made, node)
        try:
            got = made.read(node)
            assert got.shape == WANTED[node].shape and (got == WANTED[node]).all(), node
        except (AssertionError, OSError):
            if document and identity(made, node) == document:
                raise
            return "replaced"  # by --overwrite, which takes the metadata first: who looks at it once more, is told
    return "whole" if whole else f"{len(there)} arrays"


def look_at_folder():
    made = opened("out.zarr")
    return look(made, made.has(""))


def look_at_zip():
    if not os.path.exists("out.zip"):
        return "nothing"
    with zipfile.ZipFile("out.zip") as members:
        members.extractall("seen")
    try:
        return look(opened("seen"), True)
    finally:
        shutil.rmtree("seen")


def command(files, target, *options):
    return ["--concat", "t", *files, target, "--quiet", "--compress", "gzip:1", *options]


def undisturbed(files, target, *options):
    """How long it takes."""
    started = time.monotonic()
    convert(*command(files, target, *options, "--report", "whole.json"))
    return time.monotonic() - started


def finished(out, said):
    assert report("out.json") == report("whole.json")
    assert not [n for n in os.listdir(".") + (os.listdir(out) if os.path.isdir(out) else []) if MARK in n], said


def kills(count, files, *options):
    """Kills of one way to convert into a folder."""
    dice, found = random.Random(SEED), collections.Counter()
    seconds = min(undisturbed(files, f"whole{i}.zarr", *options) for i in range(2))
    with Reader(look_at_folder) as reader:
        for _ in range(count):
            convert_it = command(files, "out.zarr", *options, "--report", "out.json")
            kill_after(dice.uniform(0, seconds / 2), "convert", *convert_it, begun=dice.choice([None, "out.zarr", PLAN]))
            root, mark = os.path.exists("out.zarr/zarr.json"), os.path.exists(f"out.zarr/{MARK}")
            begun = os.path.exists(PLAN)
            found["whole" if root else "unfinished" if begun else "nothing"] += 1
            if begun and not root:
                convert(
                    *convert_it, "--checksum", "crc32c", status=1
                )  # with other options, what is unfinished is neither gone on with nor replaced
            if root and not mark:
                same("whole0.zarr", "out.zarr")
            else:
                # of a store that is whole but for its mark, --overwrite takes what a reader may have open
                way = "--resume" if root else dice.choice(["--resume", "--overwrite", "goes on"])
                convert(*convert_it, *([way] if way.startswith("--") else []))
                same("whole0.zarr", "out.zarr")
                finished("out.zarr", way)
                found[way] += 1
            with reader.paused:
                shutil.rmtree("out.zarr")
                if os.path.exists("out.json"):
                    os.remove("out.json")
    print(f"{count} kills {options} (seed {SEED}): {dict(found)}; the reader saw {dict(reader.seen)}")
    assert count < 20 or found["unfinished"] >= count // 10, "the runs end before they can be killed"


def test_uneven_lengths():
    kills(-(-KILLS // 4), parts(*LENGTHS))


def test_ordered_by_value():
    files = parts(*LENGTHS)
    random.Random(SEED).shuffle(files)
    kills(-(-KILLS // 4), files, "--order", "value")


def test_shards():
    kills(-(-KILLS // 4), parts(*LENGTHS), "--shard", "16,6,10")


def test_zip():
    """The file is there when it is whole; what a killed run has left beside it, the next one takes away."""
    files, dice, found = parts(*LENGTHS), random.Random(SEED), collections.Counter()
    seconds = undisturbed(files, "whole.zip")
    with Reader(look_at_zip) as reader:
        for _ in range(-(-KILLS // 4)):
            kill_after(
                dice.uniform(0, seconds / 2),
                "convert",
                *command(files, "out.zip", "--report", "out.json"),
                begun=dice.choice([None, "out.zip" + MARK]),
            )
            if os.path.exists("out.zip"):
                found["whole"] += 1
            else:
                found["nothing"] += 1
                convert(*command(files, "out.zip", "--report", "out.json"))
                finished("out.zip", "again")
            assert filecmp.cmp("out.zip", "whole.zip", shallow=False)
            with reader.paused:
                for name in ("out.zip", "out.zip" + MARK, "out.json"):
                    if os.path.exists(name):
                        os.remove(name)
    print(f"kills of a .zip file: {dict(found)}; the reader saw {dict(reader.seen)}")
