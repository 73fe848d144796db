# SPDX-License-Identifier: BSL-1.0
"""Random files joined by --concat, and the same files appended in random splits:
the store has what numpy joins of what h5py reads, and `verify` agrees.
cases.py has the variables.
"""

import h5py
import numpy as np
from h5py import h5d, h5p, h5s

from cases import each_case
from random_files import TYPES, command, differences, fill_with, materialise
from store import Store

KINDS = [k for k in TYPES if k != "sequence"]  # they cannot be joined
# what docs/guide/append.md says of appends: these only where the last chunk is full, these never
FULL_CHUNKS, NEVER = {"<f2", "complex", "big complex", "times", "pair", "deep", "gaps", "latin"}, {"bits", "opaque", "array"}
SIMPLE = [k for k in KINDS if k not in FULL_CHUNKS | NEVER]
REFUSED = {
    "chunks of this data type cannot be completed": FULL_CHUNKS,
    "their datatypes differ": NEVER,
    'its data type is "variable_length_bytes"': {"latin"},
    'its data type is "string"': {"latin"},
    "its list of codecs is": set(KINDS),
}


class Variable:
    """A dataset of all files: the same type and shape but for its axis, with other chunks and filters in some files."""

    def __init__(self, name, dice):
        self.name, self.kind, self.defined = name, dice.choice(KINDS if dice.random() < 0.3 else SIMPLE), True
        self.inner = tuple(dice.randint(1, 6) for _ in range(dice.randint(0, 2)))
        self.chunk = (dice.randint(1, 8), *(dice.randint(1, n) for n in self.inner))
        self.filters, self.fill = self.some_filters(dice), dice.random() < 0.4
        self.seed, self.changes = dice.getrandbits(32), dice.random() < 0.3
        self.parts = []

    def some_filters(self, dice):
        names = ["shuffle", "gzip", "fletcher32"] if TYPES[self.kind].has_size else ["gzip"]
        return dice.sample(names, dice.randint(0, len(names)))

    def write(self, f, rows, dice, scale):
        kind, shape = TYPES[self.kind], (rows, *self.inner)
        create = h5p.create(h5p.DATASET_CREATE)
        chunk, filters = self.chunk, self.filters
        if self.changes and dice.random() < 0.5:
            chunk, filters = dice.choice([None, (dice.randint(1, 8), *self.inner)]), self.some_filters(dice)
        if chunk:
            create.set_chunk(chunk)
            for name in filters:
                {"shuffle": create.set_shuffle, "gzip": lambda: create.set_deflate(4), "fletcher32": create.set_fletcher32}[
                    name
                ]()
        if self.fill and self.kind not in ("text", "12 bits", "bits"):
            fill = np.random.default_rng(self.seed)
            fill_with(create, kind.h5, np.ascontiguousarray(kind.make(fill, ()), None if self.kind == "array" else kind.dtype))
        limits = (h5s.UNLIMITED, *self.inner) if chunk else shape
        d = h5py.Dataset(h5d.create(f.id, self.name.encode(), kind.h5, h5s.create_simple(shape, limits), create))
        written = slice(*sorted(dice.sample(range(rows + 1), 2))) if dice.random() < 0.3 else slice(0, rows)
        d[written] = kind.make(np.random.default_rng(dice.getrandbits(32)), (written.stop - written.start, *self.inner))
        if scale:
            d.dims[0].attach_scale(scale)


def write(folder, dice):
    """The files, their variables with all values, and the name of what is joined."""
    scale = dice.random() < 0.5
    variables = [Variable(f"v{i}", dice) for i in range(dice.randint(1, 4))]
    shared = np.arange(12).reshape(3, 4) if scale else None
    names, first = [], 0
    for i in range(dice.randint(2, 6)):
        rows = dice.randint(1, 12)
        names.append(f"part{i}.h5")
        with h5py.File(f"{folder}/{names[-1]}", "w", libver=dice.choice(["earliest", "latest"])) as f:
            if scale:
                f["t"] = np.arange(first, first + rows, dtype="i8")
                f["t"].make_scale("t")
                f["shared"] = shared
            for v in variables:
                v.write(f, rows, dice, f["t"] if scale else None)
        with h5py.File(f"{folder}/{names[-1]}") as f:
            for v in variables:
                v.parts.append(f[v.name][()])
        first += rows
    for v in variables:
        v.values = np.concatenate(v.parts)
    return names, variables, "t" if scale else "/**:0"


def assert_joined(folder, target, variables, why):
    store = (
        materialise(f"{folder}/{target}", f"{folder}/{target}.files") if target.endswith(".json") else Store(f"{folder}/{target}")
    )
    for v in variables:
        wrong = differences(store, v.name, v)
        assert not wrong, (why, v.name, v.kind, wrong)


def verify(folder, how, names, target, variables):
    status = (0, 3) if any(v.fill and v.kind in ("array", "opaque") for v in variables) else 0  # as in test_random_files.py
    command(folder, "verify", "--concat", how, *names, target, status=status)


def check(dice, folder):
    names, variables, how = write(folder, dice)
    ranks = {1 + len(v.inner) for v in variables}
    way = dice.choice(
        [
            [],
            ["--profile", "native"],
            ["--compress", "none"],
            ["--compress", "gzip:1", "--checksum", "crc32c"],
            ["--shard", "64M"],
            ["--shard", "1K"],
            ["--chunk", {1: "5,", 2: "5,3", 3: "5,3,2"}[dice.choice(sorted(ranks))]],
            ["--virtual"],
            ["--consolidate"],
        ]
    )
    ending = "json" if way == ["--virtual"] else "zarr"
    overlap = [] if how == "t" else ["--allow-overlap"]  # values of rank 1 need not rise
    may_cut = "--shard" not in way
    if may_cut and dice.random() < 0.5:
        way = [*way, "--grid", "rectilinear"]
    command(folder, "convert", "-q", "--concat", how, *names, f"whole.{ending}", *way, *overlap)
    assert_joined(folder, f"whole.{ending}", variables, way)
    verify(folder, how, names, f"whole.{ending}", variables)
    done = dice.randint(1, len(names) - 1)
    command(folder, "convert", "-q", "--concat", how, *names[:done], f"grown.{ending}", *way, *overlap)
    while done < len(names):
        more, asked = dice.randint(1, len(names) - done), may_cut and dice.random() < 0.3
        options = [*overlap, *(["--grid", "rectilinear"] if asked else [])]
        grown = command(
            folder, "convert", "-q", "--append", how, *names[done : done + more], f"grown.{ending}", *options, status=(0, 1)
        )
        if grown.returncode == 1:
            assert any(words in grown.stderr and any(v.kind in kinds for v in variables) for words, kinds in REFUSED.items()), (
                grown.stderr
            )
            break
        done += more
    for v in variables:
        v.values = np.concatenate(v.parts[:done])
    assert_joined(folder, f"grown.{ending}", variables, ("appended", way))
    verify(folder, how, names[:done], f"grown.{ending}", variables)


def test_random_concatenations_and_appends(folder):
    each_case(folder, 6, check)
