# SPDX-License-Identifier: BSL-1.0
"""Random damage to stores and files of many kinds. If `check` finds nothing, then either an independent reader (zlib and numpy,
or h5py) still reads the same, or the damage is one that nothing can tell: UNDETECTABLE says which.

ZARRBITS_CASES: how many of each kind; ZARRBITS_SEED: others."""

import collections
import json
import os
import shutil
import zipfile
import zlib

import h5py
import numpy as np
import pytest

from cases import SEED, dice_of, number_of_cases
from harness import convert, run
from random_files import materialise
from store import Store

PLUGINS = os.environ.get("ZARRBITS_PLUGINS")
PACKBITS = int(os.environ.get("ZARRBITS_PACKBITS_ID", "45429"))

# sort of object and kind of damage
UNDETECTABLE = {
    ("chunk", "swap"),  # a checksum is about the content of a chunk, not about its place
    ("chunk", "delete"),  # read as fill value: counted, and a problem with --no-missing
    ("chunk", "copy"),
    ("root", "edit"),  # consolidated metadata do not repeat those of the root
    ("root", "flip"),
    ("root", "delete"),  # of Zarr v2: attributes, or consolidated metadata
}


def write_source(path, **filters):
    rng = np.random.default_rng(1)
    with h5py.File(path, "w", libver=filters.pop("libver", "earliest")) as f:
        f.attrs["title"] = "a title"
        f.create_dataset("g/v", data=rng.integers(0, 1000, (40, 30), "i4"), chunks=(10, 10), **filters)
        f.create_dataset("t", data=np.arange(30.0), chunks=(8,), **filters)
        f["g"].attrs["units"] = "m"


STORES = {
    # options of convert, name of the target, whether chunks have a checksum
    "gzip": (["--compress", "gzip:5"], "out.zarr", True),
    "crc32c": (["--compress", "none", "--checksum", "crc32c"], "out.zarr", True),
    "plain": (["--compress", "none"], "out.zarr", False),
    "blosc": (["--compress", "blosc:zstd:5"], "out.zarr", False),
    "zstd": (["--compress", "zstd:3"], "out.zarr", False),
    "sharded": (["--compress", "gzip:5", "--shard", "20K"], "out.zarr", True),
    "v2": (["--virtual", "--zarr-format", "2"], "out.zarr", True),
    "zip": (["--compress", "none"], "out.zip", True),
    "references": (["--virtual"], "refs.json", True),
    "parquet": (["--virtual"], "refs.parquet", True),
}
FILES = {
    "deflate": {"compression": "gzip"},
    "fletcher32": {"fletcher32": True},
    "shuffle, deflate, latest format": {"compression": "gzip", "shuffle": True, "libver": "latest"},
    "packbits and fletcher32": {"packbits": True},
}


class Undamaged:
    """A store or a file of a kind, and what is in it."""

    def __init__(self, folder, kind):
        self.kind, self.folder, self.source = kind, folder, folder / "in.h5"
        if kind in FILES:
            self.name = self.source
            filters = dict(FILES[kind])
            if filters.pop("packbits", False):
                if not PLUGINS:
                    pytest.skip("no plugins")
                h5py.h5pl.prepend(PLUGINS.encode())
                with h5py.File(self.source, "w") as f:
                    f.create_dataset(
                        "g/v",
                        data=np.arange(1200, dtype="u2").reshape(40, 30),
                        chunks=(10, 10),
                        fletcher32=True,
                        compression=PACKBITS,
                        compression_opts=(11,),
                    )
            else:
                write_source(self.source, **filters)
            return
        options, name, self.has_checksums = STORES[kind]
        write_source(self.source, compression="gzip")
        self.name = folder / name
        convert("-q", "--consolidate", self.source, folder / "refs.json" if kind == "v2" else self.name, *options)
        if kind != "v2":
            return
        materialise(folder / "refs.json", self.name)
        (folder / "refs.json").unlink()

    def objects(self):
        """Files that may be damaged, by their sorts."""
        if self.name.is_file():
            return {"file": [self.name]}
        files = [p for p in sorted(self.name.rglob("*")) if p.is_file()]
        if self.kind == "parquet":
            return {"file": files}
        roots = {"zarr.json", ".zgroup", ".zattrs", ".zmetadata"}
        return {
            "root": [p for p in files if p.parent == self.name and p.name in roots],
            "metadata": [p for p in files if p.parent != self.name and (p.name in roots or p.name == ".zarray")],
            "chunk": [p for p in files if p.name not in roots | {".zarray"}],
        }

    def content(self):
        """What an independent reader finds; its exception if it cannot read it."""
        try:
            if self.kind in FILES:
                return read_file(self.name)
            if self.name.suffix == ".zip":
                with zipfile.ZipFile(self.name) as z:
                    z.extractall(self.folder / "extracted")
                return read_store(self.folder / "extracted")
            if self.kind == "v2":  # zlib, and with it every reader, ignores what follows a stream
                return {p: read_object_of_v2(self.name / p) for p in everything(self.name)}
            return read_store(self.name)
        except Exception as e:  # whatever a reader of damaged bytes throws
            return repr(e)


def everything(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def read_object_of_v2(path):
    data = path.read_bytes()
    return json.loads(data) if path.name.startswith(".z") else zlib.decompress(data)


def read_store(folder):
    store, found = Store(folder), {}
    for path in everything(folder):
        if path.endswith("zarr.json"):
            node = os.path.dirname(path)
            meta = store.meta(node)
            found[node] = (json.dumps(meta, sort_keys=True), store.read(node).tobytes() if meta["node_type"] == "array" else b"")
    return found


def read_file(path):
    found = {}
    with h5py.File(path) as f:
        found["/"] = {k: np.asarray(v).tobytes() for k, v in f.attrs.items()}
        f.visititems(
            lambda name, o: found.update(
                {
                    name: (
                        o[()].tobytes() if isinstance(o, h5py.Dataset) else b"",
                        {k: np.asarray(v).tobytes() for k, v in o.attrs.items()},
                    )
                }
            )
        )
    return found


def edited(text, dice):
    """JSON with another value somewhere."""
    document = json.loads(text)
    places = []

    def visit(j):
        for key in j if isinstance(j, dict) else range(len(j)):
            places.append((j, key))
            if isinstance(j[key], (dict, list)):
                visit(j[key])

    visit(document)
    parent, key = dice.choice(places)
    if isinstance(parent, dict) and dice.random() < 0.3:
        del parent[key]
    elif isinstance(parent[key], int) and not isinstance(parent[key], bool):
        parent[key] += dice.choice([-1, 1, 1000])
    else:
        parent[key] = dice.choice(["other", 17, None, [], {}])
    return json.dumps(document)


def damage(undamaged, dice):
    """Damages one object; returns its sort and the kind of damage."""
    objects = undamaged.objects()
    sort = dice.choice([s for s in objects if objects[s]])
    path = dice.choice(objects[sort])
    data = path.read_bytes()
    kinds = ["flip", "cut", "grow", "zero", "delete", "rename", "foreign"]
    if sort == "chunk":
        kinds += ["swap", "copy"]
    if path.name in ("zarr.json", ".zarray", ".zgroup", ".zmetadata", ".zattrs", "refs.json"):
        kinds += 2 * ["edit"]
    kind = dice.choice(kinds)
    if kind == "flip":
        at = dice.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
    elif kind == "cut":
        path.write_bytes(data[: dice.randrange(len(data))])
    elif kind == "grow":
        path.write_bytes(data + dice.randbytes(dice.randrange(1, 20)))
    elif kind == "zero":
        at = dice.randrange(len(data))
        path.write_bytes(data[:at] + bytes(min(16, len(data) - at)) + data[at + 16 :])
    elif kind == "delete":
        path.unlink()
    elif kind == "rename":
        path.rename(path.with_name(path.name + "x"))
    elif kind == "foreign":
        path.with_name("foreign").write_bytes(b"x")
    elif kind == "edit":
        path.write_text(edited(data, dice))
    else:
        other = dice.choice([p for p in objects[sort] if p.parent.parent == path.parent.parent])
        if kind == "swap":
            path.write_bytes(other.read_bytes())
        other.write_bytes(data)
    return sort, kind, str(path.relative_to(undamaged.folder))


def is_undetectable(undamaged, sort, kind):
    if (sort, kind) in UNDETECTABLE:
        return True
    return not undamaged.has_checksums and sort == "chunk" and kind in ("flip", "zero")


@pytest.mark.parametrize("kind", [k for k in STORES if k not in ("references", "parquet")])
def test_damage_of_stores(tmp_path, kind):
    outcomes = collections.Counter()
    whole = tmp_path / "whole"
    whole.mkdir()
    Undamaged(whole, kind)
    for i in range(number_of_cases(12)):
        dice = dice_of(kind, i)
        here = tmp_path / f"case{i}"
        shutil.copytree(whole, here)
        case = Undamaged.__new__(Undamaged)
        case.kind, case.folder, case.source, case.has_checksums = kind, here, here / "in.h5", STORES[kind][2]
        case.name = here / STORES[kind][1]
        before = case.content()
        shutil.rmtree(here / "extracted", ignore_errors=True)
        sort, what, path = damage(case, dice)
        done = run("check", "--json", "-q", case.name, status=(0, 1, 3))
        if done.returncode == 0:
            report = json.loads(done.stdout)
            harmless = case.content() == before and what != "foreign"
            # beside a single file there may be anything
            told = harmless or is_undetectable(case, sort, what) or (sort == "file" and what == "foreign")
            assert told, f"seed {SEED}, case {i}: nothing is found after {what} of {path}: {report}"
            if (sort, what) == ("chunk", "delete"):
                assert sum(a["missing"] for a in report["arrays"]) > 0, report
        outcomes[what, "found" if done.returncode else "not found"] += 1
        shutil.rmtree(here)
    print(kind, dict(outcomes))


def stored_ranges(path):
    """Where the chunks of a file are."""
    ranges = []

    def visit(_, o):
        if isinstance(o, h5py.Dataset):
            for i in range(o.id.get_num_chunks()):
                info = o.id.get_chunk_info(i)
                ranges.append((info.byte_offset, info.size))

    with h5py.File(path) as f:
        f.visititems(visit)
    return ranges


@pytest.mark.parametrize("kind", FILES)
def test_damage_of_files(tmp_path, kind):
    """A byte in a chunk is found; one elsewhere is, in the newer format, or h5py reads the same. Nothing crashes."""
    case = Undamaged(tmp_path, kind)
    data, before, ranges = case.name.read_bytes(), case.content(), stored_ranges(case.name)
    has_checksums = "latest" in FILES[kind].get("libver", "")
    outcomes = collections.Counter()
    for i in range(number_of_cases(12)):
        dice = dice_of(kind, i)
        what = dice.choice(["chunk", "chunk", "elsewhere", "cut", "grow"])
        if what == "cut":
            damaged = data[: dice.randrange(len(data))]
        elif what == "grow":
            damaged = data + dice.randbytes(dice.randrange(1, 50))
        else:
            offset, size = dice.choice(ranges)
            at = offset + dice.randrange(size) if what == "chunk" else dice.randrange(len(data))
            if any(o <= at < o + n for o, n in ranges):
                what = "chunk"
            damaged = data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
        case.name.write_bytes(damaged)
        done = run("check", "--json", "-q", case.name, status=(0, 1, 3))
        if done.returncode == 0:
            told = what == "elsewhere" and (not has_checksums or case.content() == before)
            told = told or (what == "chunk" and case.content() == before)
            told = told or (what == "grow" and json.loads(done.stdout)["notices"] == 1)
            assert told, f"seed {SEED}, case {i}: nothing is found after damage: {what}"
        outcomes[what, "found" if done.returncode else "not found"] += 1
    print(kind, dict(outcomes))


@pytest.mark.parametrize("kind", ["references", "parquet"])
def test_damage_of_references(tmp_path, kind):
    """Of the references themselves, and of the source."""
    outcomes = collections.Counter()
    case = Undamaged(tmp_path, kind)
    source = case.source.read_bytes()
    times = case.source.stat()
    objects = [p for p in sorted(case.name.rglob("*")) if p.is_file()] if case.name.is_dir() else [case.name]
    originals = {p: p.read_bytes() for p in objects}
    ranges = stored_ranges(case.source)
    for i in range(number_of_cases(12)):
        dice = dice_of(kind, i)
        what = dice.choice(["source flip", "source cut", "source grow", "source delete", "references cut", "references flip"])
        path = dice.choice(objects)
        if what == "source flip":  # a byte of a chunk, with the time of before: the gzip stream tells
            offset, size = dice.choice(ranges)
            at = offset + size - 1 - dice.randrange(4)  # its checksum
            case.source.write_bytes(source[:at] + bytes([source[at] ^ 1 << dice.randrange(8)]) + source[at + 1 :])
            os.utime(case.source, ns=(times.st_atime_ns, times.st_mtime_ns))
        elif what == "source cut":
            case.source.write_bytes(source[: dice.randrange(len(source))])
        elif what == "source grow":
            case.source.write_bytes(source + b"x")
        elif what == "source delete":
            case.source.unlink()
        elif what == "references cut":
            path.write_bytes(originals[path][: dice.randrange(len(originals[path]))])
        else:
            data = originals[path]
            at = dice.randrange(len(data))
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        done = run("check", "--json", "-q", case.name, status=(0, 1, 3))
        # references have no checksum: a byte of a number or of an attribute is another one
        assert done.returncode or what == "references flip", f"seed {SEED}, case {i}: nothing is found after {what} of {path}"
        outcomes[what, "found" if done.returncode else "not found"] += 1
        case.source.write_bytes(source)
        os.utime(case.source, ns=(times.st_atime_ns, times.st_mtime_ns))
        for p, data in originals.items():
            p.write_bytes(data)
    print(kind, dict(outcomes))
