# SPDX-License-Identifier: BSL-1.0
"""Zarr stores as sources that anybody may have made: metadata with absurd numbers, chunks cut off, indices of shards that point
anywhere. The command ends with a sentence or with a store, never by a signal, soon, and writes nothing outside.
ZARRBITS_MUTATIONS: how many random ones; ZARRBITS_SEED: others."""

import json
import os
import pathlib
import random
import shutil
import zipfile

import h5py
import numpy as np

from harness import convert, files, run

MUTATIONS = int(os.environ.get("ZARRBITS_MUTATIONS", "60"))
SEED = os.environ.get("ZARRBITS_SEED", "1")
ABSURD = [0, 1, -1, 2**31, 2**32 + 1, 2**62, 2**63, 2**64 - 1, 2**64, 1e300, None, "x", [], {}, True, 3]


def example(folder):
    with h5py.File(folder / "in.h5", "w") as f:
        f.create_dataset("a", data=np.arange(600, dtype="i4").reshape(20, 30), chunks=(5, 10), compression="gzip", shuffle=True)
        f.create_dataset("g/words", data=["x", "yy"] * 20, dtype=h5py.string_dtype(), chunks=(7,))
        f.create_dataset("g/rec", data=np.zeros(9, [("a", "f4"), ("b", "i2")]), chunks=(4,))
    convert(folder / "in.h5", folder / "plain.zarr", "-q")
    convert(folder / "in.h5", folder / "shards.zarr", "-q", "--shard", "1k")


def places(document, path=()):
    """Every value in a document."""
    yield path
    if isinstance(document, (dict, list)):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from places(document[key], (*path, key))


def mutate(dice, store):
    victim = pathlib.Path(store, dice.choice(files(store)))
    content = victim.read_bytes()
    if victim.name == "zarr.json":
        document = json.loads(content)
        for _ in range(dice.choice([1, 1, 2])):
            path = dice.choice([p for p in places(document) if p and p[0] not in ("zarr_format", "node_type")])
            at = document
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = dice.choice(ABSURD)
        victim.write_text(json.dumps(document), encoding="utf-8")
    elif dice.random() < 0.5:
        victim.write_bytes(content[: dice.randrange(len(content) + 1)])
    else:
        changed = bytearray(content)
        for _ in range(dice.choice([1, 8])):
            changed[dice.randrange(len(changed))] = dice.choice([0, 255, dice.randrange(256)])
        victim.write_bytes(changed)


def test_mutated_stores(tmp_path):
    example(tmp_path)
    options = [[], ["--chunk", "7x11"], ["--chunk", "3"], ["--shard", "2k"], ["--shard", "none"], ["--compress", "zstd:1"]]
    ended = {0: 0, 1: 0, 2: 0, 3: 0}
    for i in range(MUTATIONS):
        dice = random.Random(f"{SEED} {i}")
        shutil.rmtree(tmp_path / "s.zarr", ignore_errors=True)
        shutil.copytree(tmp_path / dice.choice(["plain.zarr", "shards.zarr"]), tmp_path / "s.zarr")
        mutate(dice, tmp_path / "s.zarr")
        for command in (
            ["convert", "-q", "--overwrite", *dice.choice(options), "--memory", "64M", tmp_path / "s.zarr", tmp_path / "b.zarr"],
            ["plan", *dice.choice(options), tmp_path / "s.zarr"],
            ["verify", tmp_path / "plain.zarr", tmp_path / "s.zarr"],
            ["export", "-q", "--overwrite", "--memory", "64M", tmp_path / "s.zarr", tmp_path / "b.h5"],
            ["check", "-q", "--memory", "64M", tmp_path / "s.zarr"],
        ):
            done = run(*command, status=(0, 1, 2, 3), timeout=600)
            assert done.returncode in (0, 3) or command[0] == "verify" or done.stderr.startswith("zarrbits: "), (
                SEED,
                i,
                done.stderr,
            )
            assert "unexpected" not in done.stderr and "std::" not in done.stderr, (SEED, i, done.stderr)
            ended[done.returncode] += 1
    print(ended)
    assert ended[0] > 0 and ended[1] > 0


def test_names_that_lead_elsewhere(tmp_path):
    group = json.dumps({"zarr_format": 3, "node_type": "group"})
    for name in ("../outside", ".zarrbits-unfinished", "a/../../outside", "./b"):
        with zipfile.ZipFile(tmp_path / "s.zip", "w") as z:
            z.writestr("zarr.json", group)
            z.writestr(name + "/zarr.json", group)
        run("convert", "-q", tmp_path / "s.zip", tmp_path / "out" / "b.zarr", status=(0, 1, 3))
        (tmp_path / "out").mkdir(exist_ok=True)
        run("convert", "-q", "--overwrite", tmp_path / "s.zip", tmp_path / "out" / "b.zarr", status=(0, 1, 3))
        assert sorted(os.listdir(tmp_path)) == ["out", "s.zip"] and set(os.listdir(tmp_path / "out")) <= {"b.zarr"}, name


def test_links_that_never_end(tmp_path):
    store = tmp_path / "s.zarr"
    store.mkdir()
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    os.symlink(".", store / "again")
    run("convert", "-q", store, tmp_path / "b.zarr", status=(0, 1), timeout=600)  # the system follows 40 links
    assert len(files(tmp_path)) < 100
    run("check", store, status=(0, 3), timeout=600)


def test_few_bytes_do_not_become_many(tmp_path):
    """An array that claims 2^62 elements and has one chunk; and one whose shards have 2^40 chunks."""
    store = tmp_path / "s.zarr"
    (store / "a/c").mkdir(parents=True)
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    meta = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [2**62],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}],
    }
    (store / "a/zarr.json").write_text(json.dumps(meta))
    (store / "a/c/5").write_bytes(b"12345678")
    convert(store, tmp_path / "b.zarr", "-q", "--chunk", "3", timeout=600)
    assert files(tmp_path / "b.zarr/a/c") == ["13", "14", "15"]
    assert (tmp_path / "b.zarr/a/c/13").read_bytes() == b"\0" + b"12"
    index = [{"name": "bytes", "configuration": {"endian": "little"}}]
    shard = {"chunk_shape": [1], "codecs": [{"name": "bytes"}], "index_codecs": index}
    meta["chunk_grid"]["configuration"]["chunk_shape"] = [2**40]
    meta["codecs"] = [{"name": "sharding_indexed", "configuration": shard}]
    (store / "a/zarr.json").write_text(json.dumps(meta))
    done = run("convert", "-q", store, tmp_path / "c.zarr", "--compress", "zstd", status=3, timeout=600)
    assert "an index of a shard that takes 16.0 TiB" in done.stderr
