# SPDX-License-Identifier: BSL-1.0
"""Small files that would take gigabytes or hours: many values that refer to one piece of the file, objects with very many names,
nested groups."""

import json
import os
import struct
import subprocess

import h5py
import numpy as np

from processes import SANITIZED, run
from store import Store

MIB = 1 << 20


class Case:
    def __init__(self, folder):
        self.source, self.store, self.report = (os.path.join(folder, n) for n in ("in.h5", "out.zarr", "report.json"))

    def convert(self, *options, status=0, bound=None):
        taken = run("convert", "-q", "--overwrite", self.source, self.store, "--report", self.report, "--threads", 2, *options)
        assert taken.status == status, (taken.status, taken.errors)
        if bound and not SANITIZED:
            assert taken.peak <= bound * MIB, f"{taken.peak / MIB:.0f} MiB"
        with open(self.report, encoding="utf-8") as f:
            objects = json.load(f)["objects"]
        return taken, {(o["path"], o.get("attribute")): o for o in objects}


def aliased(source, length, rows, name="d"):
    """Makes all rows of a dataset, or of an attribute of the root, refer to the first, and gives it this number of elements."""
    with open(source, "r+b") as f:
        data = f.read()
        first = -1
        while True:  # (length, address of a heap, index), in one place, followed by other rows
            first = data.index(struct.pack("<I", length), first + 1)
            address, index = struct.unpack_from("<QI", data, first + 4)
            if 0 < address < len(data) and data[address : address + 4] == b"GCOL" and 0 < index < 65536:
                break
        f.seek(first)
        f.write(data[first : first + 16] * rows)


def test_an_attribute_whose_strings_are_one(folder):
    case = Case(folder)
    with h5py.File(case.source, "w") as f:
        f.attrs.create("a", ["x" * 1_200_000] + ["y"] * 2999, dtype=h5py.string_dtype())
        f.attrs["b"] = ["small", "ones"]
    aliased(case.source, 1_200_000, 3000)
    _, objects = case.convert(status=3, bound=512)
    assert objects["/", "a"]["outcome"] == "skipped" and "more than" in objects["/", "a"]["reason"]
    assert Store(case.store).attributes() == {"b": ["small", "ones"]}


def test_strings_in_compounds_and_arrays_of_attributes_are_counted(folder):
    case = Case(folder)
    text, numbers = h5py.string_dtype(), h5py.vlen_dtype("i4")
    value = np.array([(i, "a" * i, ["b", "c" * i]) for i in range(3)], [("i", "i2"), ("t", text), ("u", text, (2,))])
    lists = np.empty(3, object)
    lists[:] = [np.arange(i, dtype="i4") for i in range(3)]
    with h5py.File(case.source, "w") as f:
        f.attrs.create("a", value)
        f.attrs.create("lists", lists, dtype=numbers)
        f["pad"] = np.zeros(40 * MIB, "u1")  # a file of this size: the strings have to be counted
        f.attrs["text"], f.attrs["none"] = "scalar", h5py.Empty(text)
        references = np.empty(2, object)
        references[:] = [np.array([f.ref, f["pad"].ref], h5py.ref_dtype), np.array([], h5py.ref_dtype)]
        f.attrs.create("references", references, dtype=h5py.vlen_dtype(h5py.ref_dtype))
        f.create_dataset("strings", data=["one", "", "two"], dtype=text)
    case.convert("--memory", "64M")
    store = Store(case.store)
    have = store.attributes()
    assert (have["text"], have["none"], have["references"]) == ("scalar", None, [["/", "/pad"], []])
    assert store.read("strings").tolist() == ["one", "", "two"]
    assert have["a"] == [{"i": i, "t": "a" * i, "u": ["b", "c" * i]} for i in range(3)]
    assert have["lists"] == [list(range(i)) for i in range(3)]


def test_attributes_that_are_large(folder):
    case = Case(folder)
    with h5py.File(case.source, "w", libver="latest") as f:
        f.attrs.create("a", np.zeros(40 * MIB, "i1"))
        f.attrs.create("b", np.arange(100_000))
        h5py.h5a.create(f.id, b"lists", h5py.h5t.STD_I8LE, h5py.h5s.create_simple((10**9, 0)))
    _, objects = case.convert(status=3, bound=512)
    assert objects["/", "lists"]["outcome"] == "skipped" and "--memory" in objects["/", "lists"]["reason"]
    assert objects["/", "a"]["outcome"] == "skipped" and "--memory" in objects["/", "a"]["reason"]
    assert Store(case.store).attributes()["b"] == list(range(100_000))


def sequences(source, lengths):
    with h5py.File(source, "w") as f:
        rows = np.empty(len(lengths), object)
        rows[:] = [np.full(n, i % 251, "u1") for i, n in enumerate(lengths)]
        f.create_dataset("d", data=rows, dtype=h5py.vlen_dtype("u1"))


def test_sequences_that_are_one(folder):
    case = Case(folder)
    sequences(case.source, [80_000] + [1] * 2999)
    aliased(case.source, 80_000, 3000)
    _, objects = case.convert("--memory", "64M", status=3, bound=96)
    assert objects["/d", None]["outcome"] == "skipped" and "1,000 times" in objects["/d", None]["reason"]
    _, objects = case.convert("--memory", "64M", "--allow-expansion", bound=96)
    assert Store(case.store).meta("d/values")["shape"] == [240_000_000]


def test_sequences_are_read_as_memory_allows(folder):
    case = Case(folder)
    lengths = [3 * MIB + i for i in range(12)]
    sequences(case.source, lengths)
    case.convert("--memory", "32M", bound=112)
    store = Store(case.store)
    assert store.read("d/offsets").tolist() == [0, *np.cumsum(lengths).tolist()]
    assert np.array_equal(store.read("d/values"), np.repeat(np.arange(12, dtype="u1"), lengths))
    sequences(case.source, [1, 9 * MIB])
    _, objects = case.convert("--memory", "32M", status=3, bound=112)
    assert "[1]" in objects["/d", None]["reason"] and "--memory" in objects["/d", None]["reason"]


def test_strings_that_are_one(folder):
    case = Case(folder)
    with h5py.File(case.source, "w") as f:
        f.create_dataset("d", data=["x" * 700_000] + ["y"] * 999, dtype=h5py.string_dtype())
    aliased(case.source, 700_000, 1000)
    _, objects = case.convert("--memory", "64M", status=3, bound=96)
    assert objects["/d", None]["outcome"] == "skipped" and "--memory" in objects["/d", None]["reason"]


def links(source, n):
    with h5py.File(source, "w", libver="latest") as f:
        for i in range(n):
            f.id.links.create_soft(b"l%d" % i, b"/nowhere")


def attributes(source, n):
    with h5py.File(source, "w", libver="latest") as f:
        scalar = h5py.h5s.create(h5py.h5s.SCALAR)
        for i in range(n):
            h5py.h5a.create(f.id, b"a%d" % i, h5py.h5t.STD_I8LE, scalar)


def test_time_grows_with_the_number_of_names(folder):
    case = Case(folder)
    for make, n in ((links, 4_000), (attributes, 4_000)):
        cpu = []
        for count in (n, 4 * n):
            make(case.source, count)
            case.convert()
            taken, objects = case.convert()  # replaces the store, and looks into it before
            assert len(objects) == count + 1
            cpu.append(taken.cpu)
        print(make.__name__, cpu)
        assert SANITIZED or cpu[1] < 7 * cpu[0] + 0.5, (make, cpu)


def test_groups_in_groups(folder):
    case = Case(folder)
    with h5py.File(case.source, "w") as f:
        g = f
        for _ in range(2500):
            g = g.create_group("g")
        f["d"] = 1
    long = os.path.join(folder, *["s" * 200] * 3)  # which leaves less for what is in it
    os.makedirs(long)
    case.store = os.path.join(long, "out.zarr")
    try:
        _, objects = case.convert(status=3)
        value = Store(case.store).read("d")
    finally:
        subprocess.run(["rm", "-rf", case.store], check=True)  # Python recurses
    left_out = [o for o in objects.values() if o["outcome"] == "skipped"]
    assert len(left_out) == 1 and "longer" in left_out[0]["reason"] and value == 1, left_out


def test_virtual_datasets_of_nothing(folder):
    case = Case(folder)
    size = 1 << 50  # a million times what could be walked in a second
    with h5py.File(case.source, "w") as f:
        f["some"] = np.arange(10, dtype="u1")
        for name, source in (("missing", "no.h5"), ("mapped", ".")):
            layout = h5py.VirtualLayout((size,), "u1")
            layout[size - 10 :] = h5py.VirtualSource(source, "some", (10,))
            f.create_virtual_dataset(name, layout)
        f.create_virtual_dataset("empty", h5py.VirtualLayout((size,), "u1"))
    taken, objects = case.convert(status=3)
    assert taken.cpu < 10
    chunk = Store(case.store).meta("mapped")["chunk_grid"]["configuration"]["chunk_shape"][0]
    assert os.listdir(os.path.join(case.store, "mapped", "c")) == [str((size - 1) // chunk)]
    assert (
        objects["/missing", None]["lossy"]
        and not objects["/mapped", None].get("lossy")
        and not objects["/empty", None].get("lossy")
    )
