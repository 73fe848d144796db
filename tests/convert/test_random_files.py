# SPDX-License-Identifier: BSL-1.0
"""Random HDF5 files and random options: all types, ranks, layouts, filters and fill values, attributes, links and odd names.
The store has what h5py reads, and `verify` agrees. And chunks that were never written.
cases.py has the variables that ask for more cases.
"""

import json
import zipfile

import h5py

from cases import each_case
from random_files import NAMES, Dataset, add_attributes, command, differences, materialise, options, read_again
from store import Store


def key_of(report):
    """Where an object is in the store."""
    return {o["path"]: o.get("zarr_path", o["path"]) for o in report["objects"] if o["kind"] in ("dataset", "group")}


def printed(name):
    """As reports and notes have a name: bytes that are not UTF-8 are %XX."""
    text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    return "".join(f"%{ord(c) - 0xDC00:02X}" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in text)


def add_links(f, groups, dice):
    """Links that the store keeps as notes; whether one of them leads to nothing in another file."""
    lost, kept = False, {}
    for i in range(dice.choice([0, 0, 1, 3])):
        group = dice.choice(groups)
        kind = dice.choice(["soft", "dangling", "external", "loop"])
        name = f"link{i}"
        if kind == "external":
            group[name] = h5py.ExternalLink("nowhere.h5", "/x")
            kept[group.name, name] = {"kind": "external", "file": "nowhere.h5", "target": "/x"}
        else:
            target = {"soft": "/", "dangling": "/nothing here", "loop": "/" + name}[kind]
            group[name] = h5py.SoftLink(target)
            kept[group.name, name] = {"kind": "soft", "target": target}
        lost = lost or kind == "external"
    return kept, lost


def check_file(dice, folder):
    made, attributes = {}, {}
    with h5py.File(
        f"{folder}/in.h5", "w", libver=dice.choice(["earliest", "v108", "latest"]), userblock_size=dice.choice([0, 0, 0, 512])
    ) as f:
        groups = [f["/"]]
        names = iter(dice.sample(NAMES, 12))
        for _ in range(dice.randint(0, 2)):
            groups.append(dice.choice(groups).create_group(next(names)))
        for _ in range(dice.randint(1, 6)):
            group, name = dice.choice(groups), next(names)
            raw = name if isinstance(name, bytes) else name.encode()
            parent = groups[[g.id for g in groups].index(group.id)]
            made[parent.name, raw] = Dataset(group, raw, dice)
        for (parent, raw), d in made.items():
            attributes[parent, raw] = add_attributes(d.object, dice)
        for group in groups:
            attributes[group.name, b""] = add_attributes(group, dice)
        notes, lost = add_links(f, groups, dice)
    read_again(f"{folder}/in.h5", made)
    attributes = {k: v for k, v in attributes.items() if k in made or not k[1]}
    chosen = options(dice, made.values())
    target = dice.choice(["out.zarr", "out.zarr", "out.zip", "refs.json"])
    if target == "refs.json":
        chosen = dice.choice([["--virtual"], ["--virtual", "--inline", "0"]])
    kept = dice.choice([["--links", "keep"], ["--convention", "none"], []])  # without either, links into other files are copied
    done = command(folder, "convert", "-q", *kept, *chosen, "in.h5", target, "--json", status=3 if lost and not kept else 0)
    report = json.loads(done.stdout)
    if target == "out.zip":
        with zipfile.ZipFile(f"{folder}/out.zip") as members:
            members.extractall(f"{folder}/out.zarr")
    store = materialise(f"{folder}/refs.json", f"{folder}/refs.zarr") if target == "refs.json" else Store(f"{folder}/out.zarr")
    keys = key_of(report)

    def key(parent, raw):
        path = "/" + "/".join(p for p in (printed(parent).strip("/"), printed(raw)) if p)
        return keys[path].strip("/")

    for (parent, raw), d in made.items():
        wrong = differences(store, key(parent, raw), d)
        assert not wrong, (d, chosen, target, parent, raw, wrong)
    for (parent, raw), want in attributes.items():
        got = {k: v for k, v in store.attributes(key(parent, raw)).items() if k not in ("zarrbits", "_nc_zarrbits")}
        assert got == want, (parent, raw, got, want)
    for (parent, name), want in notes.items():
        got = store.notes(key(parent, b""))["links"][name]
        assert {k: got[k] for k in want} == want, (parent, name, got)
    verify(folder, target, made.values())


def verify(folder, target, datasets):
    """A fill value of several numbers, as array types and opaque ones may have it, has no place in Zarr;
    verify says that it was not compared. And elements that were never written, with FILL_TIME_NEVER, have no value:
    verify may call them different, as SECURITY.md says."""
    undefined = sum(not d.defined for d in datasets)
    unchecked = any(d.kind in ("array", "opaque") and d.fill for d in datasets)
    done = command(folder, "verify", "in.h5", target, status=(0, *[3] * unchecked, *[1] * (undefined > 0)))
    assert done.stdout.count("differs: ") <= undefined, done.stdout


def check_unwritten(dice, folder):
    made = {}
    with h5py.File(f"{folder}/in.h5", "w", libver=dice.choice(["earliest", "latest"])) as f:
        for i in range(16):
            made["/", f"d{i}"] = Dataset(f, f"d{i}", dice, ranks=(1, 2, 2, 3), plain=0.2)
    read_again(f"{folder}/in.h5", made)
    for chosen in dice.sample(
        [[], ["--profile", "native"], ["--compress", "none"], ["--shard", "64M"], ["--chunk", "4,5"], ["--virtual"]], 2
    ):
        target = "refs.json" if "--virtual" in chosen else "out.zarr"
        command(folder, "convert", "-q", "--overwrite", *chosen, "in.h5", target)
        store = (
            materialise(f"{folder}/refs.json", f"{folder}/refs.zarr") if target == "refs.json" else Store(f"{folder}/{target}")
        )
        for (_, name), d in made.items():
            wrong = differences(store, name, d)
            assert not wrong, (d, chosen, wrong)
        verify(folder, target, made.values())


def test_random_files(folder):
    each_case(folder, 15, check_file)


def test_chunks_that_were_never_written(folder):
    each_case(folder, 4, check_unwritten)
