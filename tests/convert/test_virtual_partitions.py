# SPDX-License-Identifier: BSL-1.0
"""References that many processes make, share by share: the same files, byte for byte, as those of one process."""

import os
import pathlib
import random
import shutil
import time

import h5py
import pytest

import kills
from harness import refused, report, run
from test_concat import here, parts  # noqa: F401  (here: each test in a folder of its own)
from test_units import example

KILLS = int(os.environ.get("ZARRBITS_KILLS", "10"))
FORMS = ["refs.json", "refs.parquet"]
BESIDE = ".zarrbits-partitions"


def take_files(name):
    found = {}
    for path in sorted(pathlib.Path().glob(f"{name}*")):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                found[str(file)] = file.read_bytes()
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


def take(name):
    """The files of references, with those beside them, and what the report says; all of it is removed."""
    found = take_files(name)
    said = report("report.json")
    os.unlink("report.json")
    return found, said


def one_process(name, *source, status=(0, 3)):
    run("convert", "-q", "--virtual", *source, name, "--report", "report.json", status=status)
    return take(name)


def share(index, count, name, *source, **how):
    return run("convert", "--virtual", *source, name, "--partition", f"{index}/{count}", **how)


def finalize(name, *source, status=(0, 3)):
    run("finalize", "-q", *source, name, "--report", "report.json", status=status)
    assert not [n for n in os.listdir() if BESIDE in n or n.startswith(".")], os.listdir()
    return take(name)


@pytest.fixture
def source():
    example("in.h5")
    return ["in.h5"]


OPTIONS = [
    [],
    ["--inline", "0"],
    ["--zarr-format", "2"],
    ["--zarr-format", "3", "--inline", "1M"],
    ["--base", "https://host/data"],
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("form", FORMS)
def test_shares_make_what_one_process_makes(form, options, source):
    """Text that turns out not to be UTF-8 is made again: what was written of it before is in the file of data, too."""
    whole, said = one_process(form, *options, *source)
    assert any(name.startswith(f"{form}.data") for name in whole) == ("1M" not in options)
    for index in 2, 0, 3, 1:
        share(index, 4, form, *options, *source)
        assert not os.path.exists(form)
    assert finalize(form, *source) == (whole, said)


@pytest.mark.parametrize("options", [[], ["--grid", "rectilinear"]], ids=["regular", "rectilinear"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", ["--concat", "--concat-new"])
def test_shares_of_joined_files(form, options, verb):
    join = [verb, "t", *parts(10, 13, 1, 5, 11, 20)] if verb == "--concat" else [verb, "new", *parts(9, 9, 9, 9)]
    options = [*options, *([] if verb == "--concat" else ["--exclude", "/t"])]
    whole, said = one_process(form, *join, *options)
    for index in 1, 0, 2:
        share(index, 3, form, *join, *options)
    assert finalize(form, *join) == (whole, said)


def test_two_names_of_one_file():
    """References call it by the first, whichever share meets it."""
    names = parts(10, 10)
    os.link(names[0], "p9.h5")
    with h5py.File("outer.h5", "w") as f:
        for name, target in ("a", names[0]), ("b", "p9.h5"), ("c", names[1]):
            layout = h5py.VirtualLayout((10, 6, 10), "i2")
            layout[...] = h5py.VirtualSource(target, "g/rows", (10, 6, 10))
            f.create_virtual_dataset(name, layout)
    whole, _ = one_process("refs.json", "outer.h5")
    assert b"p0.h5" in whole["refs.json"] and b"p9.h5" not in whole["refs.json"]
    for index in 2, 1, 0:
        share(index, 3, "refs.json", "outer.h5")
    assert finalize("refs.json", "outer.h5")[0] == whole


def test_a_missing_share_is_named(source):
    whole = one_process("refs.json", *source)
    for index in 0, 2:
        share(index, 3, "refs.json", *source)
    said = refused("finalize", *source, "refs.json")
    assert "are missing" in said and "of partition 1 of 3" in said, said
    done = run("inspect", "refs.json", status=3).stdout
    assert "partition 1 of 3 missing" in done, done
    # another single process does not take it for a free name
    said = refused("convert", "--virtual", *source, "refs.json")
    assert "begun in partitions" in said and "finalize" in said, said
    share(1, 3, "refs.json", *source)
    assert finalize("refs.json", *source) == whole
    # nothing is left to be completed, and nothing to share
    assert "no unfinished store" in refused("finalize", *source, "refs.json")


def test_the_rest_is_made_by_one_process(source):
    whole = one_process("refs.json", *source)
    share(1, 3, "refs.json", *source)
    run("convert", "-q", "--virtual", "--resume", *source, "refs.json", "--report", "report.json", status=(0, 3))
    assert take("refs.json") == whole


def test_start_over(source):
    whole = one_process("refs.json", *source)
    share(1, 3, "refs.json", "--inline", "7", *source)
    run("convert", "-q", "--virtual", "--overwrite", *source, "refs.json", "--report", "report.json", status=(0, 3))
    assert not os.path.exists(f"refs.json{BESIDE}")
    assert take("refs.json") == whole


def test_shares_that_overlap(source):
    """The same share twice, and shares of another number of them."""
    whole = one_process("refs.json", *source)
    for index, count in (0, 2), (0, 2), (1, 5), (2, 3), (4, 5), (1, 2):
        share(index, count, "refs.json", *source)
    assert finalize("refs.json", *source) == whole


def test_what_does_not_fit_is_refused(source):
    share(0, 2, "refs.json", *source)
    said = refused("convert", "--virtual", "--inline", "3", *source, "refs.json", "--partition", "1/2")
    assert "different options: --virtual" in said, said
    said = refused("convert", "--virtual", "--base", ".", *source, "refs.json", "--partition", "1/2")
    assert "--base" in said, said
    said = run("convert", *source, "other.json", "--partition", "1/2", status=2).stderr
    assert "--virtual" in said and not os.path.exists(f"other.json{BESIDE}"), said
    said = run("convert", *source, "out.zip", "--partition", "1/2", status=2).stderr
    assert ".zip" in said, said
    said = refused("finalize", *source, "none.json")
    assert "no unfinished store" in said, said
    share(1, 2, "refs.json", *source)
    with h5py.File("in.h5", "a") as f:
        f["later"] = 1
    said = refused("finalize", *source, "refs.json")
    assert "changed" in said, said
    run("convert", "-q", "--virtual", "--overwrite", *source, "refs.json", status=(0, 3))
    said = refused("convert", "--virtual", *source, "refs.json", "--partition", "0/2")
    assert "is not an unfinished store" in said and not os.path.exists(f"refs.json{BESIDE}"), said


def logs():
    return sorted(pathlib.Path(f"refs.json{BESIDE}/.zarrbits-unfinished").glob("references-*"))


def test_damaged_and_hostile_shares(source):
    """Whatever somebody makes of a log: no reference differs, and what is missing is named, and can be made."""
    whole = one_process("refs.json", "--inline", "100", *source)
    for index in range(3):
        share(index, 3, "refs.json", "--inline", "100", *source)
    shutil.copytree(f"refs.json{BESIDE}", "saved")
    dice, refusals = random.Random(4), 0
    for case in range(30):
        log = dice.choice(logs())
        data = bytearray(log.read_bytes())
        if case == 0:
            log.unlink()
        elif case == 1:
            log.write_bytes(b"")
        elif case == 2:
            log.unlink()
            log.symlink_to("/etc/passwd")
        elif case == 3:
            log.unlink()
            os.mkfifo(log)
        elif case == 4:
            os.truncate(log, 1 << 40)
        elif case % 3 == 0:
            log.write_bytes(data[: dice.randrange(len(data))])
        elif case % 3 == 1:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            log.write_bytes(data)
        else:
            at = dice.randrange(len(data))
            log.write_bytes(data[:at] + dice.randbytes(9) + data[at + 8 :])
        done = run("finalize", "-q", *source, "refs.json", "--report", "report.json", status=(0, 1, 3))
        if done.returncode == 1:
            refusals += 1
            assert "missing" in done.stderr and "--resume" in done.stderr and not os.path.exists("refs.json"), done.stderr
            run("convert", "-q", "--resume", *source, "refs.json", "--report", "report.json", status=(0, 3))
        assert take("refs.json") == whole, case
        shutil.copytree("saved", f"refs.json{BESIDE}", symlinks=True)
    assert refusals > 15


def test_shares_that_are_killed(source):
    whole = one_process("refs.json", "--inline", "0", *source)
    dice, cut_off = random.Random(8), 0
    for case in range(KILLS):
        for index in dice.sample(range(3), 3):
            for _ in range(dice.randrange(3)):
                process = kills.begin("convert", "--virtual", "--inline", "0", *source, "refs.json", "--partition", f"{index}/3")
                time.sleep(dice.random() * 0.05)
                kills.kill(process)
                cut_off += process.returncode != 0
            share(index, 3, "refs.json", "--inline", "0", *source)
        while True:
            process = kills.begin("finalize", "-q", *source, "refs.json", "--report", "report.json")
            time.sleep(dice.random() * 0.1)
            kills.kill(process)
            if process.returncode in (0, 3) or os.path.exists("refs.json"):
                break
            if os.path.exists("refs.json.data"):  # between the two names: what is not complete does not get in the way
                os.unlink("refs.json.data")
        run("convert", "-q", "--virtual", "--resume", *source, "refs.json", status=(0, 3))  # it is complete, and is tidied
        assert not os.path.exists(f"refs.json{BESIDE}")
        assert take_files("refs.json") == whole[0], case
    assert cut_off


def test_finalize_that_is_killed_at_each_step(source):
    """Before each call that renames or removes a file: the next run completes the references, and leaves nothing beside them."""
    if kills.killed_before_call(1) is None:
        pytest.skip("no compiler, or no LD_PRELOAD")
    whole, _ = one_process("refs.json", "--inline", "0", *source)
    for index in range(3):
        share(index, 3, "refs.json", "--inline", "0", *source)
    shutil.copytree(f"refs.json{BESIDE}", "saved")
    for call in range(1, 1000):
        process = kills.begin("finalize", "-q", *source, "refs.json", **kills.killed_before_call(call))
        status, said = kills.end(process)
        if status >= 0:
            break
        if os.path.exists("refs.json.data") and not os.path.exists("refs.json"):  # between the two names
            os.unlink("refs.json.data")
        run("convert", "-q", "--virtual", "--resume", *source, "refs.json", status=(0, 3))
        assert not os.path.exists(f"refs.json{BESIDE}"), call
        assert take_files("refs.json") == whole, call
        shutil.copytree("saved", f"refs.json{BESIDE}")
    assert status in (0, 3) and call > 5, said


def test_what_a_share_says(source):
    said = share(0, 2, "refs.json", "--inline", "0", *source, **{"status": 0}).stderr
    assert "references, and" in said and "that no source has" in said and "zarrbits finalize" in said, said
