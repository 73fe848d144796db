# SPDX-License-Identifier: BSL-1.0
"""`zarrbits inspect`: trees of files and stores, on a terminal of a given width and elsewhere."""

import json
import os
import re
import shutil
import unicodedata

import h5py
import numpy as np

from command import COMMAND, is_one_sentence, run
from screen import on_terminal


def example(folder):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("group/temperature", data=np.zeros((40, 30), "f4"), chunks=(20, 30), compression="gzip", shuffle=True)
        f["group/counts"] = np.arange(5, dtype=">i2")
        f.create_dataset("never", (10,), "u1", chunks=(5,))
        f["text"] = "hello"
        f["table"] = np.zeros(3, [("a", "i4"), ("b", "f8")])
        f["nothing"] = h5py.Empty("f4")
        f["soft"] = h5py.SoftLink("/group")
        f["group"].attrs["x"] = 1
    return source, os.path.join(folder, "out.zarr")


def lines(*arguments, status=0):
    r = run("inspect", *arguments)
    assert r.returncode == status, (r.returncode, r.stderr)
    return r.stdout.decode().splitlines()


def row(text, name):
    found = [re.split(r"\s{2,}", line.strip()) for line in text if line.strip().split("  ")[0] == name]
    assert len(found) == 1, (name, text)
    return found[0][1:]


def test_a_file(folder):
    source, _ = example(folder)
    text = lines(source)
    assert "HDF5" in text[0] and "6 arrays, 2 groups" in text[0]
    with h5py.File(source) as f:
        size = f["group/temperature"].id.get_storage_size()
    assert row(text, "temperature") == ["40x30", "float32", "20x30", "shuffle, deflate", f"{size} B", "2"]
    assert row(text, "counts") == ["5", "int16 big-endian", "contiguous", "10 B", "1"]
    assert row(text, "never") == ["10", "uint8", "5", "0 B", "0"]
    assert row(text, "text")[:2] == ["scalar", "string"]
    assert row(text, "table")[1] == "{a: int32, b: float64}"
    assert row(text, "nothing")[0] == "null"
    assert row(text, "soft") == ["soft link to /group"]
    assert [line.strip().split("  ")[0] for line in text[2:]] == [
        "/",
        "group",
        "counts",
        "temperature",
        "never",
        "nothing",
        "soft",
        "table",
        "text",
    ]
    part = lines(source + ":/group")
    assert [line.strip().split("  ")[0] for line in part[2:]] == ["/group", "counts", "temperature"]


def test_a_store_and_both(folder):
    source, store = example(folder)
    assert run("convert", source, store, "--quiet").returncode == 0
    text = lines(store)
    assert "Zarr v3" in text[0] and "6 arrays, 2 groups" in text[0]
    kept = row(text, "temperature")
    chunks = [os.path.join(store, "group/temperature/c", str(i), "0") for i in range(2)]
    assert kept[:3] == ["40x30", "float32", "20x30"] and kept[-1] == "2" and kept[-2] == f"{sum(map(os.path.getsize, chunks))} B"
    assert row(text, "counts")[:2] == ["5", "int16 big-endian"]
    files = sum(len(names) for _, _, names in os.walk(store))
    assert f"in {files} files" in text[0]
    shutil.rmtree(os.path.join(store, "table"))
    both = lines(source, store)
    assert row(both, "temperature")[3].startswith("shuffle, deflate → bytes")
    assert row(both, "table")[:2] == ["3 → -", "{a: int32, b: float64} → -"]
    assert row(both, "counts")[0:3] == ["5", "int16 big-endian", "contiguous → 5"]
    assert lines(source + ":/group", os.path.join(store, "group"))[2:]


def test_json(folder):
    source, store = example(folder)
    assert run("convert", source, store, "--quiet").returncode == 0
    j = json.loads("\n".join(lines("--json", source, store)))
    file, zarr = ({n["path"]: n for n in t["nodes"]} for t in j["trees"])
    assert file["/group/temperature"]["filters"][0] == {"id": 2, "name": "shuffle", "values": [4]}
    assert file["/group/temperature"]["shape"] == zarr["/group/temperature"]["shape"] == [40, 30]
    assert zarr["/group/counts"]["codecs"] == [{"name": "bytes", "configuration": {"endian": "big"}}]
    assert file["/soft"]["target"] == "/group" and file["/nothing"]["shape"] is None and file["/group"]["attributes"] == 1
    assert j["trees"][1]["bytes"] == sum(os.path.getsize(os.path.join(d, n)) for d, _, names in os.walk(store) for n in names)


def test_shards_are_told(folder):
    with open(os.path.join(folder, "zarr.json"), "w") as f:
        json.dump(
            {
                "zarr_format": 3,
                "node_type": "array",
                "shape": [100],
                "data_type": "int8",
                "fill_value": 0,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [50]}},
                "chunk_key_encoding": {"name": "default"},
                "codecs": [
                    {
                        "name": "sharding_indexed",
                        "configuration": {
                            "chunk_shape": [10],
                            "codecs": [
                                {"name": "bytes"},
                                {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "bitshuffle"}},
                            ],
                        },
                    }
                ],
            },
            f,
        )
    assert row(lines(folder), "/")[2:4] == ["10 in 50", "shards of (bytes, blosc zstd 5 bitshuffle)"]


def test_lines_fit_the_terminal(folder):
    source, store = example(folder)
    with h5py.File(source, "a") as f:
        f["a rather long name of a group/" + "and the name of a dataset, which is longer than any terminal " * 3] = 1
        f["数据"] = np.zeros(3)
    assert run("convert", source, store, "--quiet").returncode == 0
    for columns in (80, 120):
        for arguments in ([source], [store], [source, store]):
            text = on_terminal([COMMAND, "inspect", *arguments], columns)[0]
            body = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
            wide = {c: sum(2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in c) for c in body[len(arguments) :]}
            assert max(wide.values()) <= columns and "…" in text, (columns, wide)
            assert "\x1b[" in text
    assert "\x1b[" not in on_terminal([COMMAND, "inspect", source], 80, NO_COLOR="1")[0]
    assert "\x1b[" not in on_terminal([COMMAND, "inspect", source], 80, TERM="dumb")[0]


def test_columns_sets_the_width(folder):
    source = os.path.join(folder, "in.h5")
    with h5py.File(source, "w") as f:
        f["the name of a dataset, which is longer than any terminal " * 5] = 1
    for columns in (60, 90):
        in_pipe = run("inspect", source, env={**os.environ, "COLUMNS": str(columns)}).stdout.decode()
        on_screen = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal([COMMAND, "inspect", source], 80, COLUMNS=str(columns))[0])
        for text in (in_pipe, on_screen):
            assert "…" in text and max(map(len, text.splitlines()[1:])) == columns
    for columns in ("", "0", "wide", "80x"):
        assert "…" not in run("inspect", source, env={**os.environ, "COLUMNS": columns}).stdout.decode()


def test_what_is_damaged_is_named(folder):
    source, store = example(folder)
    assert run("convert", source, store, "--quiet").returncode == 0
    bad = {
        "group/counts": "{",
        "group/temperature": "[" * 100000,
        "text": '{"zarr_format": 3, "node_type": "array"}',
        "table": '{"zarr_format": 2}',
        "never": json.dumps(
            {
                "zarr_format": 3,
                "node_type": "array",
                "shape": [-1, "x"],
                "data_type": {"name": 5},
                "chunk_grid": 7,
                "codecs": {"a": "\x1b[31m"},
            }
        ),
    }
    for name, text in bad.items():
        with open(os.path.join(store, name, "zarr.json"), "w") as f:
            f.write(text)
    os.symlink(store, os.path.join(store, "loop"))
    os.mkdir(os.path.join(store, "a\x1b[31mb"))
    with open(os.path.join(store, "a\x1b[31mb", "zarr.json"), "w") as f:
        f.write('{"zarr_format": 3, "node_type": "group"}')
    text = lines(store, status=3)
    assert not any("\x1b" in line for line in text)
    for name in ("counts", "temperature", "text", "table"):
        assert "zarr.json" in row(text, name)[0]
    for arguments in (["no such"], [folder + "/"], [__file__], [source + ":/no"]):
        r = run("inspect", *arguments)
        assert r.returncode == 1 and is_one_sentence(r.stderr), r.stderr
