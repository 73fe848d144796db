# SPDX-License-Identifier: BSL-1.0
"""Stores of all kinds that grow: enumerations, links in the store, metadata of groups, references that two processes want,
and what zarr-python writes."""

import fcntl
import json
import os
import resource
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest

import store
from harness import COMMAND, convert, run
from test_append import GZIP, append, begun, check, state
from test_concat import ROWS, here, opened, parts, verify, write  # noqa: F401  (here: each test in a folder of its own)

COLOURS = {"red": 1, "green": 2, "blue": 40}


def colours(name, values, members=COLOURS, base="i2", named=False):
    with h5py.File(name, "w") as f:
        kind = h5py.enum_dtype(members, base)
        if named:  # as netCDF has them
            f["colour_t"] = kind
            kind = f["colour_t"]
        d = f.create_dataset("c", (len(values),), kind, chunks=(4,), maxshape=(None,))
        d[...] = values
        late = f.create_dataset("late", (len(values),), h5py.enum_dtype(members, base), chunks=(2,), maxshape=(None,))
        late[-1:] = values[-1]
    return name


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("way", ["out.zarr", "out.json"])
def test_enumerations_go_on(way, named):
    files = [colours(f"e{i}.h5", v, named=named) for i, v in enumerate(([1, 2, 40], [2, 1, 40, 40, 1], [2]))]
    convert("--concat", "/*:0", files[0], way, "--quiet", *(["--virtual"] if way.endswith("json") else GZIP))
    for file in files[1:]:
        convert("--append", "/*:0", file, way, "--quiet")
    if way == "out.zarr":
        assert opened(way).read("c").tolist() == [1, 2, 40, 2, 1, 40, 40, 1, 2] and opened(way).read("late").tolist() == [
            0,
            0,
            40,
            0,
            0,
            0,
            0,
            1,
            2,
        ]
    run("verify", "--concat", "/*:0", *files, way)
    text = convert(
        "--append", "/*:0", colours("other.h5", [1], {"red": 1, "green": 3, "blue": 40}, named=named), way, status=1
    ).stderr
    assert "/c" in text and "different members" in text, text
    text = convert("--append", "/*:0", colours("wide.h5", [1], base="i4", named=named), way, status=1).stderr
    assert "data type" in text, text


def test_an_enumeration_is_compared_as_the_integers_under_it():
    """What is equal in all files: the store's numbers and the file's are of one type, or they are different."""
    like = [1, 2, 40]
    for i, (base, values) in enumerate((("i2", like), ("i2", like), ("u2", like), ("i4", like), ("i2", [1, 2, 2]))):
        with h5py.File(f"e{i}.h5", "w") as f:
            f.create_dataset("t", data=[float(i)], chunks=(1,), maxshape=(None,))
            f["fixed"] = np.array(values, h5py.enum_dtype(COLOURS, base))
    convert("--concat", "/t:0", "e0.h5", "out.zarr", "--quiet")
    convert("--append", "/t:0", "e1.h5", "out.zarr", "--quiet")
    run("verify", "--concat", "/t:0", "e0.h5", "e1.h5", "out.zarr")
    for name in ("e2.h5", "e3.h5", "e4.h5"):
        said = convert("--append", "/t:0", name, "out.zarr", "--quiet", status=1).stderr
        assert "/fixed" in said and "differ" in said, said
    run("verify", "--concat", "/t:0", "e0.h5", "e1.h5", "out.zarr")


@pytest.mark.parametrize("how", [[*GZIP], [*GZIP, "--shard", "16,6,10"], ["--profile", "native"]], ids=" ".join)
@pytest.mark.parametrize("link", ["chunk", "folder", "metadata", "group"])
def test_no_link_in_the_store_is_followed(how, link):
    """What lies outside the store never comes into it, whatever a link in the store says."""
    files = parts(10, 13)
    begun(files[:1], *how)
    last = "0/0/0" if "--shard" in how else "2/0/0"
    place = {
        "chunk": f"out.zarr/g/rows/c/{last}",
        "folder": "out.zarr/g/rows/c",
        "metadata": "out.zarr/g/rows/zarr.json",
        "group": "out.zarr/g",
    }[link]
    shutil.move(place, "outside")
    os.symlink(os.path.abspath("outside"), place)
    before = state()
    text = append(files[1], status=1)
    assert "symbolic link" in text and state() == before, text
    os.remove(place)
    shutil.move("outside", place)
    append(files[1])
    check(files, ROWS[:23], read=False)


def consolidated(group):
    """As zarr-python writes it into a group."""
    at = f"out.zarr/{group}"
    nodes = {}
    for folder, _, names in os.walk(at):
        if "zarr.json" in names and folder != at:
            nodes[os.path.relpath(folder, at)] = store.strict(open(f"{folder}/zarr.json").read())
    meta = store.strict(open(f"{at}/zarr.json").read())
    meta["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": nodes}
    with open(f"{at}/zarr.json", "w") as f:
        json.dump(meta, f)


def test_metadata_that_groups_have_of_what_is_below():
    files = parts(10, 13)
    for file in files:
        with h5py.File(file, "r+") as f:
            f.copy("g/rows", "g/deep/rows")
            f["g/deep/rows"].dims[0].attach_scale(f["t"])
            f["still/mask"] = [1, 2]
    begun(files[:1], *GZIP)
    for group in ("g/deep", "g", "still"):
        consolidated(group)
    before = state()
    append(files[1])
    made = opened("out.zarr")
    for group, inner in (("g", ["rows", "deep", "deep/rows"]), ("g/deep", ["rows"])):
        said = made.meta(group)["consolidated_metadata"]["metadata"]
        assert set(said) == set(inner) and all(said[i] == made.meta(f"{group}/{i}") for i in inner), said
    assert made.meta("g/deep/rows")["shape"] == [23, 6, 10] and state()["still/zarr.json"] == before["still/zarr.json"]
    assert verify(*files, "out.zarr")["elements"]["unchecked"] == 0


def hour(name, first, count=3):
    return write(name, first, count, chunk=3)


@pytest.mark.parametrize("out", ["refs.json", "refs.parquet", "out.zarr"])
def test_two_appends_at_once(out):
    """One of them waits outside: no file's rows are lost."""
    files = [hour(f"h{i}.h5", 3 * i) for i in range(7)]
    virtual = [] if out == "out.zarr" else ["--virtual"]
    convert("--concat", "t", files[0], out, "--quiet", *virtual)
    for a, b in zip(files[1::2], files[2::2]):
        both = [
            subprocess.Popen(
                [COMMAND, "convert", "--append", "t", *names, out, "--quiet", "--allow-overlap"],
                stderr=subprocess.PIPE,
                text=True,
            )
            for names in ([a], [b])
        ]
        told = [p.communicate()[1] for p in both]
        done = [p.returncode == 0 for p in both]
        assert any(done) and all(ok or "another" in text for ok, text in zip(done, told)), told
        convert("--append", "t", a, b, out, "--quiet", "--allow-overlap")
    done = run("inspect", "--json", out)
    assert {n["path"]: n["shape"] for n in json.loads(done.stdout)["trees"][0]["nodes"] if "shape" in n}["/t"] == [21]


@pytest.mark.parametrize("out", ["refs.json", "refs.parquet"])
def test_references_that_another_appends_to(out):
    files = [hour(f"h{i}.h5", 3 * i) for i in range(2)]
    convert("--virtual", "--concat", "t", files[0], out, "--quiet")
    lock = os.open(out, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert "another process" in convert("--append", "t", files[1], out, status=1).stderr
    os.close(lock)
    os.rename(out, "place" + os.path.splitext(out)[1])
    os.symlink("place" + os.path.splitext(out)[1], out)  # the lock is that of the file behind it
    lock = os.open("place" + os.path.splitext(out)[1], os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert "another process" in convert("--append", "t", files[1], out, status=1).stderr
    os.close(lock)


def test_a_failed_append_leaves_no_data_beside():
    """The references do not fit on the disk, and the data beside them do."""
    for i in range(2):
        with h5py.File(f"d{i}.h5", "w") as f:
            f.attrs["note"] = "x" * 40000
            f.create_dataset("d", data=np.sort(np.random.default_rng(i).random(3000)) + i, chunks=(2000,), maxshape=(None,))
    convert("--virtual", "--concat", "/d:0", "d0.h5", "out.json", "--quiet")
    before = {n: open(n, "rb").read() for n in os.listdir() if os.path.isfile(n)}

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (36000, 36000))

    done = subprocess.run(
        [COMMAND, "convert", "--append", "/d:0", "d1.h5", "out.json", "--quiet"],
        capture_output=True,
        text=True,
        preexec_fn=little_room,
        restore_signals=False,
    )
    assert done.returncode == 1 and "cannot write" in done.stderr, done.stderr
    assert {n: open(n, "rb").read() for n in os.listdir() if os.path.isfile(n)} == before
    convert("--append", "/d:0", "d1.h5", "out.json", "--quiet")
    assert any(n.startswith("out.json.data") for n in os.listdir()), os.listdir()


def test_large_chunks_of_the_store_are_told():
    with h5py.File("l0.h5", "w") as f:
        f["x"] = np.arange(1000, dtype="f8")
    with h5py.File("l1.h5", "w") as f:
        f["x"] = np.arange(1000, 2000, dtype="f8")
    convert("--concat", "/x:0", "l0.h5", "out.zarr", "--quiet", *GZIP, "--chunk", "3000000,")
    done = convert("--append", "/x:0", "l1.h5", "out.zarr", "--memory", "16M")
    assert "in the store has chunks of" in done.stderr and "make the store again" in done.stderr, done.stderr
    assert (opened("out.zarr").read("x") == np.arange(2000)).all()


def with_words(text):
    """As Python's json writes what is not finite."""
    node = json.loads(text)
    node.pop("consolidated_metadata", None)
    node["attributes"].update(
        nan=float("nan"), range=[float("-inf"), float("inf")], word="NaN", more={"a,NaN": [1, float("nan")]}
    )
    return json.dumps(node, indent=2)


@pytest.mark.parametrize("out", ["out.zarr", "refs.json", "refs.parquet"])
def test_nodes_with_words_of_python(out):
    """zarr-python writes NaN, Infinity and -Infinity, which JSON does not have: they are read, and stay as they are."""
    files = parts(10, 13)
    convert("--concat", "t", files[0], "out.zarr", "--quiet", *GZIP)
    for node in ("", "g/", "g/rows/"):
        path = f"out.zarr/{node}zarr.json"
        with open(path) as f:
            text = with_words(f.read())
        with open(path, "w") as f:
            f.write(text)
    consolidated_with_words()
    if out != "out.zarr":
        references(out)
    done = run("inspect", "--json", out, status=None)
    nodes = {n["path"]: n for n in store.strict(done.stdout)["trees"][0]["nodes"]}
    assert done.returncode == 0 and nodes["/g/rows"]["shape"] == [10, 6, 10] and nodes["/g/rows"]["attributes"] >= 4, (
        done.stdout + done.stderr
    )
    result = run("verify", "--json", "--concat", "t", files[0], out, status=None)
    assert "JSON" not in result.stdout and json.loads(result.stdout)["elements"]["unchecked"] == 0, result.stdout
    assert json.loads(result.stdout)["findings"] == [], result.stdout  # no copy of metadata is another
    done = run("plan", "--append", "t", files[1], out)
    convert("--append", "t", files[1], out, "--quiet")
    got = node_of(out, "g/rows")
    assert (
        got["shape"] == [23, 6, 10] and np.isnan(got["attributes"]["nan"]) and got["attributes"]["range"] == [-np.inf, np.inf]
    ), got
    assert got["attributes"]["word"] == "NaN" and np.isnan(got["attributes"]["more"]["a,NaN"][1])
    if out == "out.zarr":
        root = json.loads(open("out.zarr/zarr.json").read())
        assert root["consolidated_metadata"]["metadata"]["g/rows"]["shape"] == [23, 6, 10] and "NaN," in json.dumps(root)


def consolidated_with_words():
    nodes = {}
    for folder, _, names in os.walk("out.zarr"):
        if "zarr.json" in names and folder != "out.zarr":
            nodes[os.path.relpath(folder, "out.zarr")] = json.loads(open(f"{folder}/zarr.json").read())
    root = json.loads(open("out.zarr/zarr.json").read())
    root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": nodes}
    with open("out.zarr/zarr.json", "w") as f:
        json.dump(root, f)


def references(out):
    """References to the first file, with the nodes of out.zarr."""
    convert("--virtual", "--zarr-format", "3", "--concat", "t", "p0.h5", out, "--quiet")
    if out == "refs.json":
        with open(out) as f:
            all = json.load(f)
        for key in [k for k in all["refs"] if k.endswith("zarr.json")]:
            all["refs"][key] = with_words(all["refs"][key])
        text = json.dumps(all)
        begin = open(out).read().split('"sources"')[0]
        with open(out, "w") as f:
            f.write(begin + text[text.index('"sources"') :])
    else:
        with open(f"{out}/.zmetadata") as f:
            begin, text = f.read().split('"sources"', 1)
        all = json.loads(begin + '"sources"' + text)
        for key in [k for k in all["metadata"] if k.endswith("zarr.json")]:
            all["metadata"][key] = json.loads(with_words(json.dumps(all["metadata"][key])))
        text = json.dumps(all)
        with open(f"{out}/.zmetadata", "w") as f:
            f.write(begin + text[text.index('"sources"') :])


def node_of(out, node):
    if out == "out.zarr":
        return json.loads(open(f"{out}/{node}/zarr.json").read())
    if out == "refs.json":
        return json.loads(json.load(open(out))["refs"][f"{node}/zarr.json"])
    return json.load(open(f"{out}/.zmetadata"))["metadata"][f"{node}/zarr.json"]


@pytest.mark.parametrize(
    "text", ['{"a": NaNa}', '{"a": 1NaN}', "{NaN: 1}", '{"a": +Infinity}', '{"a": nan}', '{"a": [NaN NaN]}', '{"a": - Infinity}']
)
def test_other_words_are_no_json(text):
    files = parts(10)
    begun(files, *GZIP)
    with open("out.zarr/g/zarr.json") as f:
        node = f.read()
    with open("out.zarr/g/zarr.json", "w") as f:
        f.write(node.replace('"attributes": {}', f'"attributes": {text}'))
    assert text in open("out.zarr/g/zarr.json").read()
    done = run("verify", "--json", "--concat", "t", *files, "out.zarr", status=None)
    assert "not valid JSON" in done.stdout, done.stdout


def test_resume_waits_for_a_child_whose_parent_was_killed():
    """The child of a run that was killed needs a moment to end, here a second: the next run waits for it."""
    with open("shim.c", "w") as f:
        f.write("int prctl(int what, ...) { return 0; }\n")  # so that it does not end by itself
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "shim.so", "shim.c"], check=True)
    with h5py.File("in.h5", "w") as f:
        f.create_dataset(
            "x",
            data=np.random.default_rng(1).integers(0, 9, (500, 500)),
            chunks=(100, 100),
            compression="gzip",
            compression_opts=1,
        )
    first = subprocess.Popen(
        [COMMAND, "convert", "in.h5", "out.zarr", "--quiet", "--threads", "1", "--compress", "zstd:19"],
        env={**os.environ, "LD_PRELOAD": os.path.abspath("shim.so")},
    )
    while not os.path.exists("out.zarr/.zarrbits-unfinished/plan"):
        time.sleep(0.005)
    child = int(open(f"/proc/{first.pid}/task/{first.pid}/children").read().split()[0])
    os.kill(child, 19)
    first.kill()
    first.wait()
    begin = time.monotonic()
    again = subprocess.Popen(
        [COMMAND, "convert", "in.h5", "out.zarr", "--quiet", "--resume", "--compress", "zstd:19"],
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1)
    assert again.poll() is None, again.communicate()
    os.kill(child, 9)
    assert again.communicate()[1] == "" and again.returncode == 0 and time.monotonic() - begin > 1
    run("verify", "in.h5", "out.zarr")


def test_a_lock_that_is_released_while_its_holder_is_looked_up_is_free():
    """The lock was held when it was tried, and no longer when its holder is looked up in /proc/locks."""
    with open("shim.c", "w") as f:
        f.write("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static FILE* opened(const char* kind, const char* name, const char* mode) {
  if (!strcmp(name, "/proc/locks")) {
    kill(atoi(getenv("HOLDER")), SIGKILL);
    usleep(300000);
  }
  return ((FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, kind))(name, mode);
}
FILE* fopen(const char* name, const char* mode) { return opened("fopen", name, mode); }
FILE* fopen64(const char* name, const char* mode) { return opened("fopen64", name, mode); }
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "shim.so", "shim.c", "-ldl"], check=True)
    with h5py.File("in.h5", "w") as f:
        values = np.random.default_rng(1).integers(0, 9, (500, 500))
        f.create_dataset("x", data=values, chunks=(100, 100), compression="gzip", compression_opts=1)
    first = subprocess.Popen([COMMAND, "convert", "in.h5", "out.zarr", "--quiet", "--threads", "1", "--compress", "zstd:19"])
    while not os.path.exists("out.zarr/.zarrbits-unfinished/plan"):
        time.sleep(0.005)
    first.kill()
    first.wait()
    with open("out.zarr/.zarrbits-unfinished/lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        holder = subprocess.Popen(["sleep", "99"], stdin=lock)
    shim = {"HOLDER": str(holder.pid), "LD_PRELOAD": os.path.abspath("shim.so")}
    again = subprocess.run(
        [COMMAND, "convert", "in.h5", "out.zarr", "--quiet", "--resume", "--compress", "zstd:19"], env={**os.environ, **shim}
    )
    assert again.returncode == 0 and holder.wait() == -9
    run("verify", "in.h5", "out.zarr")


def test_resume_does_not_wait_for_a_run_that_goes_on():
    with h5py.File("in.h5", "w") as f:
        f.create_dataset(
            "x",
            data=np.random.default_rng(1).integers(0, 9, (500, 500)),
            chunks=(100, 100),
            compression="gzip",
            compression_opts=1,
        )
    first = subprocess.Popen([COMMAND, "convert", "in.h5", "out.zarr", "--quiet", "--threads", "1", "--compress", "zstd:19"])
    while not os.path.exists("out.zarr/.zarrbits-unfinished/plan"):
        time.sleep(0.005)
    child = int(open(f"/proc/{first.pid}/task/{first.pid}/children").read().split()[0])
    os.kill(child, 19)
    begin = time.monotonic()
    text = convert("in.h5", "out.zarr", "--quiet", "--resume", "--compress", "zstd:19", status=1).stderr
    assert "another conversion" in text and time.monotonic() - begin < 60, text
    os.kill(child, 18)
    assert first.wait() == 0


RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")], align=True)


def constants(name, first, **other):
    """What files of a series have beside their values: the grid mapping of CF, characters, a record."""
    values = {
        "crs": np.array(b"x", "S1"),
        "letters": np.array([b"a", b"", b"c", b"d"], "S1"),
        "words": np.array([b"abc", b"de"], "S5"),
        "record": np.array((1, 2.5, b"abc"), RECORD),
        "records": np.array([(1, 2.5, b"a"), (3, -1, b"b")], RECORD),
        "wide": np.array([1, -2], ">i8"),
        **other,
    }
    with h5py.File(name, "w") as f:
        f.create_dataset("t", data=np.arange(first, first + 3.0), chunks=(3,), maxshape=(None,))
        for path, value in values.items():
            f[path] = value
        f["crs"].attrs["grid_mapping_name"] = "latitude_longitude"
    return name


@pytest.mark.parametrize("way", ["out.zarr", "out.json"])
def test_constants_of_all_types_are_compared(way):
    files = [constants(f"c{i}.h5", 3 * i) for i in range(3)]
    convert("--concat", "/t:0", files[0], way, "--quiet", *(["--virtual"] if way.endswith("json") else []))
    for file in files[1:]:
        convert("--append", "/t:0", file, way, "--quiet")
    run("verify", "--concat", "/t:0", *files, way)
    for path, value in {
        "crs": np.array(b"y", "S1"),
        "letters": np.array([b"a", b"b", b"c", b"d"], "S1"),
        "words": np.array([b"abc", b"df"], "S5"),
        "record": np.array((1, 2.5, b"abd"), RECORD),
        "records": np.array([(1, 2.5, b"a"), (3, -2, b"b")], RECORD),
        "wide": np.array([1, -3], ">i8"),
    }.items():
        said = convert("--append", "/t:0", constants("o.h5", 9, **{path: value}), way, status=1).stderr
        assert f'"/{path}"' in said and "their values differ" in said, said
    # of another layout
    other = np.dtype([("a", "<i4"), ("x", "<f8"), ("c", "S3")])
    said = convert("--append", "/t:0", constants("o.h5", 9, record=np.array((1, 2.5, b"abc"), other)), way, status=1).stderr
    assert "their datatypes differ" in said, said


TABLE = np.dtype([("a", "<i2"), ("b", ">f8"), ("s", "S3")])
LISTS = np.dtype(("<i4", (2, 3)))
CONSTANTS = {  # in all files: a value, and another one
    "opaque": (np.array([b"abc", b"\0\1\2"], "V3"), np.array([b"abc", b"\0\1\3"], "V3")),
    "opaque scalar": (np.void(b"abc"), np.void(b"abd")),
    "times": (np.array(["2020", "NaT"], "M8[us]"), np.array(["2020", "2021"], "M8[us]")),
    "spans": (np.array([1, 2], "m8[s]"), np.array([1, 2], "m8[ms]")),
    "lists": (np.arange(12, dtype="<i4").reshape(2, 2, 3), np.zeros((2, 2, 3), "<i4")),
    "float16": (np.array([1.5, np.nan], "<f2"), np.array([1.5, 1], "<f2")),
    "big": (np.arange(3, dtype=">i4"), np.arange(1, 4, dtype=">i4")),
    "complex": (np.array([1 + 2j]), np.array([1 - 2j])),
    "big complex": (np.array([1 + 2j], ">c8"), np.array([2 + 1j], ">c8")),
    "null": (h5py.Empty("f4"), np.float32(1)),
    "bool": (np.array([True, False]), np.array([True, True])),
    "table": (np.array([(1, 2.5, b"ab")], TABLE), np.array([(1, 2.5, b"a")], TABLE)),
    "characters": (np.array([b"a", b""], "S1"), np.array([b"a", b"b"], "S1")),
    "text": (np.array(["a", "größe"], object), np.array(["a", "große"], object)),
}


def with_constant(name, n, value, as_lists=False):
    with h5py.File(name, "w") as f:
        f.create_dataset("t", data=[float(n)], chunks=(1,), maxshape=(None,))
        if isinstance(value, np.ndarray) and value.dtype.kind in "Mm":
            value = value.astype(h5py.opaque_dtype(value.dtype))
        if as_lists:
            f.create_dataset("fixed", value.shape[:1], LISTS)[...] = value
        else:
            f["fixed"] = value
    return name


@pytest.mark.parametrize("kind", CONSTANTS)
def test_a_constant_of_any_type_is_compared(kind):
    same, other = CONSTANTS[kind]
    lists = kind == "lists"
    first, second, third = (with_constant(f"c{i}.h5", i, v, lists) for i, v in enumerate((same, same, other)))
    convert("--concat", "/t:0", first, "out.zarr", "--quiet")
    convert("--append", "/t:0", second, "out.zarr", "--quiet")
    before = state()
    said = convert("--append", "/t:0", third, "out.zarr", "--quiet", status=1).stderr
    assert "/fixed" in said and "differ" in said and state() == before, said
    run("verify", "--concat", "/t:0", first, second, "out.zarr")


def test_a_key_encoding_with_a_name_alone():
    """Zarr allows a text where an extension has no configuration."""
    file = colours("e.h5", [1, 2, 40, 1])
    convert("--concat", "/*:0", file, "out.zarr", "--quiet")
    with open("out.zarr/c/zarr.json") as f:
        node = json.load(f)
    node["chunk_key_encoding"] = "default"
    with open("out.zarr/c/zarr.json", "w") as f:
        json.dump(node, f)
    more = colours("more.h5", [2, 40])
    convert("--append", "/*:0", more, "out.zarr", "--quiet")
    run("verify", "--concat", "/*:0", file, more, "out.zarr")


def test_an_array_that_grows_shares_no_dimension_with_one_that_does_not():
    """Files without scales: arrays of one length have one name for it, which stands for none."""
    for i in range(3):
        with h5py.File(f"n{i}.h5", "w") as f:
            f.create_dataset("a", data=np.full((3, 4), i), maxshape=(None, 4), chunks=(3, 4))
            f.create_dataset("b", data=np.arange(3) + 3 * i, maxshape=(None,), chunks=(3,))
            f["fixed"] = np.arange(3)
            f["deep/fixed"] = np.arange(3)
    convert("n0.h5", "out.zarr", "--quiet")
    for i in (1, 2):
        convert("--append", "/[ab]:0", f"n{i}.h5", "out.zarr", "--quiet")
        made = opened("out.zarr")
        lengths = {}
        for name in ("a", "b", "fixed", "deep/fixed"):
            meta = made.meta(name)
            for dimension, length in zip(meta["dimension_names"], meta["shape"]):
                assert lengths.setdefault(dimension, length) == length, (name, dimension)
        assert made.meta("a")["dimension_names"][0] == made.meta("b")["dimension_names"][0]
    run("verify", "--concat", "/[ab]:0", "n0.h5", "n1.h5", "n2.h5", "out.zarr")


@pytest.mark.parametrize("name", [".zgroup", ".zarray"])
def test_a_store_of_zarr_v2_is_refused_with_what_to_do(name):
    os.mkdir("out.zarr")
    with open("out.zarr/" + name, "w") as f:
        f.write('{"zarr_format": 2}')
    before = state()
    said = append(hour("h.h5", 0), status=1)
    assert "Zarr v2" in said and "convert it to a new store" in said and state() == before, said
