# SPDX-License-Identifier: BSL-1.0
"""`zarrbits verify` of two HDF5 files: a copy with other chunks and filters is equal, and each single change is named."""

import json
import os
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from harness import execute, refused, run, verify

ENUM = {"RED": 0, "GREEN": 1}
NESTED = np.dtype([("k", "<i2"), ("t", "S3"), ("a", "<f4", (2,))])
COMPOUND = np.dtype([("x", "<i4"), ("n", NESTED)])
ALIGNED = np.dtype([("small", "u1"), ("large", "<f8")], align=True)
VLEN_TEXT, VLEN_INT = h5py.string_dtype(), h5py.vlen_dtype("<i4")


def fixed_text(padding=h5py.h5t.STR_NULLPAD, character_set=h5py.h5t.CSET_ASCII):
    t = h5py.h5t.C_S1.copy()
    t.set_size(5)
    t.set_strpad(padding)
    t.set_cset(character_set)
    return t


def low_level(f, name, type_id, values, attribute_order=False):
    """A dataset of a type that h5py's own calls do not make."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if attribute_order:
        dcpl.set_attr_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
    d = h5py.h5d.create(f.id, name, type_id, h5py.h5s.create_simple(values.shape), dcpl=dcpl)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=type_id)
    return d


def opaque(tag):
    t = h5py.h5t.create(h5py.h5t.OPAQUE, 4)
    t.set_tag(tag)
    return t


def build(path, change="", chunks=(4, 3), **storage):
    """A file with everything that verify compares. `change`: the part that differs, where no later edit can do it."""

    def pick(name, usual, other):
        return other if change == name else usual

    with h5py.File(path, "w", userblock_size=512) as f:
        f.attrs["title"] = "é"
        f.attrs["n"] = np.int32(3)
        f.attrs["list"] = [1.0, 2.0, 3.0]
        f.attrs["texts"] = np.array(["a", "bc"], dtype=object)
        numbers = np.arange(70, dtype="<f8").reshape(10, 7)
        numbers[3, 4] = np.nan
        f.create_dataset("numbers", data=numbers, chunks=chunks, **storage)
        f.create_dataset(
            "ints",
            data=np.arange(20, dtype=pick("byte order", "<i4", ">i4")).reshape(4, 5),
            maxshape=(None, pick("maxshape", 5, 6)),
            fillvalue=pick("fill value", 7, 8),
            chunks=(2, 5),
        )
        f.create_dataset("shape", data=np.zeros(pick("shape", 3, 4)))
        f.create_dataset("nothing", dtype="f4", shape=pick("null", None, ()))
        padding = pick("string padding", h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD)
        character_set = pick("character set", h5py.h5t.CSET_ASCII, h5py.h5t.CSET_UTF8)
        low_level(f, b"text", fixed_text(padding, character_set), np.array([b"ab", b"abcde"], "S5"))
        ordered = low_level(f, b"ordered", h5py.h5t.STD_I8LE, np.zeros(2, "i1"), attribute_order=True)
        for name in pick("attribute order", "ab", "ba"):
            h5py.Dataset(ordered).attrs[name] = 1
        low_level(f, b"opaque", opaque(pick("opaque tag", b"tag", b"other")), np.arange(2, dtype="<i4").view("V4"))
        precise = h5py.h5t.STD_U16LE.copy()
        precise.set_precision(pick("precision", 12, 11))
        low_level(f, b"precise", precise, np.arange(4, dtype="<u2"))
        f.create_dataset("vtext", data=np.array(["one", "", "three"], dtype=object), dtype=VLEN_TEXT)
        sequences = f.create_dataset("sequences", (3,), dtype=VLEN_INT)
        sequences[0], sequences[2] = [1, 2, 3], [4]
        names = pick("enum name", ENUM, {"RED": 0, "BLUE": 1})
        names = pick("enum value", names, {"RED": 0, "GREEN": 2})
        f.create_dataset("enum", data=np.array([0, 1], "i1"), dtype=h5py.enum_dtype(names, basetype="i1"))
        compound = np.zeros(3, COMPOUND)
        compound["n"]["t"] = b"abc"
        f.create_dataset("compound", data=compound)
        member = np.dtype([(pick("member name", "r", "re"), "<f4"), ("i", "<f4")])
        f.create_dataset("members", data=np.zeros(2, member))
        f["type"] = np.dtype(pick("named type", "<i2", "<u2"))
        f["other_type"] = np.dtype("<i2")
        f["type"].attrs["of type"] = 1
        kinds = {"not a named type": np.dtype("<i2"), "another named type": f["other_type"]}
        f.create_dataset(
            "typed", data=np.zeros(2, "<i2"), dtype=kinds.get(change, f["type"] if change != "named type" else "<i2")
        )
        g = f.create_group("g", track_order=change != "link order not tracked")
        for name in pick("link order", "bac", "abc"):
            g[name] = 1
        g.create_group("empty")
        f["soft"] = h5py.SoftLink("/numbers")
        f["external"] = h5py.ExternalLink("other.h5", "/x")
        f["second"] = f["numbers"]
        f["g/again"] = f["g"]  # a group that contains itself
        f.create_dataset(
            "references", data=np.array([f["g"].ref, f["ints"].ref, h5py.Reference()], h5py.ref_dtype), dtype=h5py.ref_dtype
        )
        regions = f.create_dataset("regions", (2,), dtype=h5py.regionref_dtype)
        regions[0] = f["ints"].regionref[1:3, 2:4]
        regions[1] = f["numbers"].regionref[[1, 3], 0]
        f["x"] = np.arange(3.0)
        f["x"].make_scale("x")
        f["data"] = np.zeros(3)
        f["data"].dims[0].attach_scale(f["x"])
        f["scalar"] = 5
        layout = h5py.VirtualLayout((3,), "<f8")
        layout[...] = h5py.VirtualSource(".", "x", (3,))
        f.create_virtual_dataset("virtual", layout)
        h5py.h5o.set_comment(f["ints"].id, b"a comment")
    with open(path, "r+b") as f:
        f.write(bytes(range(256)) * 2)
    return path


def replace(f, name, value):
    del f[name]
    f[name] = value


def set_item(name, index, value):
    def edit(f):
        f[name][index] = value

    return edit


def set_attribute(name, key, value):
    def edit(f):
        f[name].attrs[key] = value

    return edit


def nan_payload(f):
    values = f["numbers"][()]
    values.view("u8")[3, 4] += np.uint64(1)
    f["numbers"][...] = values


def compound_member(f):
    values = f["compound"][()]
    values["n"]["a"][1, 1] = 2
    f["compound"][...] = values


def rewrite_user_block(path):
    with open(path, "r+b") as f:
        f.seek(100)
        f.write(b"!")


# name: (an edit of the copy, or None where build() makes the change; path of the finding, its kind, words of its reason)
CHANGES = {
    "a value": (set_item("numbers", (9, 6), -1), "/numbers", "dataset", "at [9, 6]: 69, in the second file -1"),
    "a NaN payload": (
        nan_payload,
        "/numbers",
        "dataset",
        "at [3, 4]: NaN (0x7ff8000000000000), in the second file NaN (0x7ff8000000000001)",
    ),
    "the sign of a zero": (set_item("numbers", (0, 0), -0.0), "/numbers", "dataset", "at [0, 0]: 0, in the second file -0"),
    "the scalar": (set_item("scalar", (), 6), "/scalar", "dataset", "at []: 5, in the second file 6"),
    "an attribute's value": (
        lambda f: f.attrs.modify("n", np.int32(4)),
        "/",
        "attribute",
        '"n" with another value: 3, in the second file 4',
    ),
    "an attribute's text": (
        set_attribute("/", "title", "e"),
        "/",
        "attribute",
        '"title" with another value: "é", in the second file "e"',
    ),
    "an attribute's list": (set_attribute("/", "list", [1.0, 2.5, 3.0]), "/", "attribute", "at [1]: 2, in the second file 2.5"),
    "an attribute's second text": (
        set_attribute("/", "texts", np.array(["a", "bd"], dtype=object)),
        "/",
        "attribute",
        'at [1]: "bc", in the second file "bd"',
    ),
    "an attribute's type": (set_attribute("/", "n", np.int64(3)), "/", "attribute", "it is int32, in the second file int64"),
    "an attribute's shape": (
        set_attribute("/", "n", np.array([3], "i4")),
        "/",
        "attribute",
        "of a single value, in the second file [1]",
    ),
    "no attribute": (lambda f: f.attrs.pop("n"), "/", "attribute", '"n", which is not in the second file'),
    "an attribute of a named type": (set_attribute("type", "of type", 2), "/type", "attribute", '"of type"'),
    "attribute order": (None, "/ordered", "dataset", "attributes that were created in another order"),
    "enum name": (None, "/enum", "dataset", 'its name "GREEN" is not in the second file'),
    "enum value": (None, "/enum", "dataset", 'its name "GREEN" has the value 0x01, in the second file 0x02'),
    "string padding": (None, "/text", "dataset", "its texts are null-padded, in the second file space-padded"),
    "character set": (None, "/text", "dataset", "its texts are ASCII, in the second file UTF-8"),
    "byte order": (None, "/ints", "dataset", "it is little-endian, in the second file big-endian"),
    "precision": (None, "/precise", "dataset", "12 significant bits, in the second file 11"),
    "opaque tag": (None, "/opaque", "dataset", 'its tag is "tag", in the second file "other"'),
    "member name": (None, "/members", "dataset", 'its member 0 is called "r", in the second file "re"'),
    "maxshape": (None, "/ints", "dataset", "maximum shape [unlimited, 5], in the second file [unlimited, 6]"),
    "fill value": (None, "/ints", "dataset", "another fill value: 7, in the second file 8"),
    "shape": (None, "/shape", "dataset", "the shape [3], in the second file [4]"),
    "null": (None, "/nothing", "dataset", "of no values, in the second file of a single value"),
    "named type": (None, "/type", "named type", "it is int16, in the second file uint16"),
    "not a named type": (None, "/typed", "dataset", "it is a named type only in the first file"),
    "another named type": (
        None,
        "/typed",
        "dataset",
        'it is the named type "/type", in the second file the named type "/other_type"',
    ),
    "link order": (None, "/g", "group", "links that were created in another order"),
    "link order not tracked": (None, "/g", "group", "links whose order of creation only the first file tracks"),
    "a hard link is a copy": (
        lambda f: replace(f, "second", f["numbers"][()]),
        "/",
        "link",
        'a hard link "second" to the object "/numbers", in the second file to an object of its own',
    ),
    "a soft link's target": (
        lambda f: replace(f, "soft", h5py.SoftLink("/ints")),
        "/",
        "link",
        'to "/numbers", in the second file "/ints"',
    ),
    "an external link's file": (
        lambda f: replace(f, "external", h5py.ExternalLink("another.h5", "/x")),
        "/",
        "link",
        'in "other.h5", in the second file "/x" in "another.h5"',
    ),
    "a soft link in place of a hard one": (
        lambda f: replace(f, "second", h5py.SoftLink("/numbers")),
        "/",
        "link",
        'a hard link "second", in the second file a soft link',
    ),
    "no soft link": (lambda f: f.pop("soft"), "/", "link", 'a soft link "soft", which is not in the second file'),
    "no second hard link": (
        lambda f: f.pop("second"),
        "/",
        "link",
        'a hard link "second" to the object "/numbers", which is not',
    ),
    "no object": (lambda f: f.pop("compound"), "/compound", "dataset", "is not in the second file"),
    "a dataset is a group": (
        lambda f: (f.pop("scalar"), f.create_group("scalar")),
        "/",
        "link",
        'a dataset "scalar", in the second file a group',
    ),
    "a reference": (
        lambda f: f["references"].__setitem__(0, f["x"].ref),
        "/references",
        "dataset",
        'at [0]: "/g", in the second file "/x"',
    ),
    "a null reference": (
        lambda f: f["references"].__setitem__(1, h5py.Reference()),
        "/references",
        "dataset",
        'at [1]: "/ints", in the second file null',
    ),
    "a region": (
        lambda f: f["regions"].__setitem__(0, f["ints"].regionref[1:3, 2:5]),
        "/regions",
        "dataset",
        '4 elements from [1, 2] to [2, 3], in the second file "/ints", 6 elements from [1, 2] to [2, 4]',
    ),
    "a region of another dataset": (
        lambda f: f["regions"].__setitem__(0, f["numbers"].regionref[1:3, 2:4]),
        "/regions",
        "dataset",
        '"/ints"',
    ),
    "a comment": (
        lambda f: h5py.h5o.set_comment(f["ints"].id, b"another"),
        "/ints",
        "dataset",
        'the comment "a comment", in the second file "another"',
    ),
    "a detached scale": (lambda f: f["data"].dims[0].detach_scale(f["x"]), "/data", "attribute", '"DIMENSION_LIST"'),
    "an element of a sequence": (
        set_item("sequences", 0, [1, 9, 3]),
        "/sequences",
        "dataset",
        "at [0] in [1]: 2, in the second file 9",
    ),
    "the length of a sequence": (
        set_item("sequences", 2, [4, 5]),
        "/sequences",
        "dataset",
        "a sequence of 1, in the second file one of 2",
    ),
    "a text": (set_item("vtext", 2, "threE"), "/vtext", "dataset", 'at [2]: "three", in the second file "threE"'),
    "a fixed text": (set_item("text", 0, b"abc"), "/text", "dataset", "at [0]"),
    "a member": (compound_member, "/compound", "dataset", "at [1] in n.a[1]: 0, in the second file 2"),
    "a virtual value": (set_item("x", 1, 7), "/virtual", "dataset", "at [1]: 1, in the second file 7"),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return build(str(tmp_path_factory.mktemp("hdf5_files") / "a.h5"))


def test_another_file_with_the_same_content_is_equal(original, folder):
    other = build(os.path.join(folder, "b.h5"), chunks=(10, 2), compression="gzip", shuffle=True)
    report = verify(original, other)
    assert report["exit_status"] == 0 and report["findings"] == [], report
    assert report["datasets"]["equal"] >= 20 and report["links"]["equal"] == 4 and report["attributes"]["equal"] >= 10, report
    done = run("verify", original, other)
    assert f'OK: "{other}" equals "{original}"' in done.stdout, done.stdout
    assert run("verify", "-q", original, other).stdout == ""
    assert verify(original, original)["exit_status"] == 0


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_found_and_named(original, folder, name):
    edit, path, kind, words = CHANGES[name]
    changed = os.path.join(folder, "b.h5")
    if edit:
        shutil.copy(original, changed)
        with h5py.File(changed, "r+") as f:
            edit(f)
    else:
        build(changed, name)
    report = verify(original, changed, status=1)
    found = [f for f in report["findings"] if f["path"] == path and f["kind"] == kind]
    assert any(words in f["reason"] for f in found), report["findings"]
    # nothing else is reported, but what follows from the change
    follows = {"/virtual", "/x", "/typed", "/data", "/g"}
    others = [f for f in report["findings"] if f["path"] not in follows | {path}]
    assert not others, others
    run("verify", "-q", changed, original, status=1)


def test_a_byte_of_the_user_block_is_found(original, folder):
    changed = shutil.copy(original, os.path.join(folder, "b.h5"))
    rewrite_user_block(changed)
    (finding,) = verify(original, changed, status=1)["findings"]
    assert finding["path"] == "/" and "first at byte 100" in finding["reason"], finding


def test_what_only_the_second_file_has(original, folder):
    changed = shutil.copy(original, os.path.join(folder, "b.h5"))
    with h5py.File(changed, "r+") as f:
        f["numbers"].attrs["new"] = 1
        f["additional"] = 1
        f["new soft"] = h5py.SoftLink("/x")
        f["new hard"] = f["ints"]
    report = verify(original, changed, status=1)
    assert report["only_in_store"] == ["/additional"] and report["findings"] == [], report
    assert sorted((e["store_path"], e["kind"], e["name"]) for e in report["extras"]) == [
        ("/", "link", "new hard"),
        ("/", "link", "new soft"),
        ("/numbers", "attribute", "new"),
    ]
    shown = run("verify", original, changed, status=1).stdout
    assert "differs: /additional is only in the second file" in shown and "FAILED: 4 differences" in shown, shown
    verify(original, changed, "--include", "/new hard", status=1)
    assert verify(original, changed, "--include", "/x")["exit_status"] == 0


@pytest.mark.skipif(not shutil.which("h5diff"), reason="there is no h5diff")
def test_h5diff_agrees_about_values(original, folder):
    changed = shutil.copy(original, os.path.join(folder, "b.h5"))
    datasets = [name for name in ("numbers", "compound", "vtext", "text", "scalar", "ints")]
    for name in datasets:
        execute("h5diff", "-q", original, changed, f"/{name}", status=0)
    with h5py.File(changed, "r+") as f:
        for name in ("a value", "a member", "a text", "a fixed text", "the scalar"):
            CHANGES[name][0](f)
    differing = {f["path"] for f in verify(original, changed, status=1)["findings"]}
    for name in datasets:
        execute("h5diff", "-q", original, changed, f"/{name}", status=1 if f"/{name}" in differing else 0)


def test_bytes_between_members_are_not_compared(folder):
    paths = [os.path.join(folder, n) for n in ("a.h5", "b.h5")]
    for path, filler in zip(paths, (0x00, 0xFF)):
        raw = np.full(3 * ALIGNED.itemsize, filler, "u1").view(ALIGNED)
        raw["small"], raw["large"] = 1, 2.0
        with h5py.File(path, "w") as f:
            t = h5py.h5t.py_create(ALIGNED)
            low_level(f, b"d", t, raw)
            precise = h5py.h5t.STD_U16LE.copy()
            precise.set_precision(12)
            low_level(f, b"precise", precise, np.array([filler << 12 & 0xFFFF | 5], "<u2"))
    assert open(paths[0], "rb").read() != open(paths[1], "rb").read()
    assert verify(*paths)["exit_status"] == 0


def undecodable(path, payload):
    with h5py.File(path, "w") as f:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((4,))
        dcpl.set_filter(399, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        d = h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((8,)), dcpl=dcpl)
        d.write_direct_chunk((0,), payload)
        d.write_direct_chunk((4,), b"abcd", filter_mask=0)
    return path


def test_chunks_that_no_filter_can_decode_are_compared_as_they_are_stored(folder):
    a = undecodable(os.path.join(folder, "a.h5"), b"some bytes")
    same = undecodable(os.path.join(folder, "b.h5"), b"some bytes")
    other = undecodable(os.path.join(folder, "c.h5"), b"same size!")
    assert verify(a, same)["exit_status"] == 0
    (finding,) = verify(a, other, status=1)["findings"]
    assert finding["outcome"] == "unreadable" and "cannot be compared" in finding["reason"], finding
    decoded = os.path.join(folder, "d.h5")
    with h5py.File(decoded, "w") as f:
        f["d"] = np.zeros(8, "<i4")
    (finding,) = verify(a, decoded, status=1)["findings"]
    assert finding["outcome"] == "unreadable", finding


def test_a_huge_extent_takes_no_time(folder):
    paths = [os.path.join(folder, n) for n in ("a.h5", "b.h5", "c.h5")]
    for path, chunk, value in zip(paths, (1000, 4096, 1000), (5, 5, 6)):
        with h5py.File(path, "w") as f:
            d = f.create_dataset("d", (1 << 44,), "<i4", chunks=(chunk,), fillvalue=1)
            d[(1 << 43) + 7] = value
            f.create_dataset("late", (1 << 44,), "<i4")
    assert verify(paths[0], paths[1])["elements"]["equal"] == 2 << 44
    (finding,) = verify(paths[0], paths[2], status=1)["findings"]
    assert finding["index"] == [(1 << 43) + 7], finding


def test_little_memory_is_enough_for_long_texts_and_for_other_chunks(folder):
    paths = [os.path.join(folder, n) for n in ("a.h5", "b.h5")]
    texts = np.array(["x" * 50_000 + str(i) for i in range(200)], dtype=object)
    for path, chunks in zip(paths, ((1000, 1), (32, 32))):
        with h5py.File(path, "w") as f:
            f.create_dataset("texts", data=texts, dtype=VLEN_TEXT, chunks=(200,))
            f.create_dataset("d", data=np.arange(640_000, dtype="<i4").reshape(1000, 640), chunks=chunks, compression="gzip")
    assert verify(*paths, "--memory", "2M")["exit_status"] == 0
    with h5py.File(paths[1], "r+") as f:
        f["d"][999, 639] = 0
        f["texts"][150] = "y"
    report = verify(*paths, "--memory", "2M", status=1)
    assert sorted((f["path"], f["index"]) for f in report["findings"]) == [("/d", [999, 639]), ("/texts", [150])], report


def test_selections_and_parts(original, folder):
    changed = build(os.path.join(folder, "b.h5"), "fill value")
    assert verify(original, changed, "--exclude", "/ints")["exit_status"] == 0
    assert verify(original, changed, "--include", "/ints", status=1)["datasets"]["differs"] == 1
    assert verify(original + ":/g", changed + ":/g")["exit_status"] == 0
    assert verify(original + ":/x", changed + ":/x")["exit_status"] == 0
    assert (
        "is a group, in the second file a dataset" in verify(original + ":/g", changed + ":/x", status=1)["findings"][0]["reason"]
    )
    assert "/none" in refused("verify", original, changed, "--include", "/none")


def test_another_folder_may_not_be_read(folder):
    inside, outside = os.path.join(folder, "inside"), os.path.join(folder, "raw")
    os.mkdir(inside)
    np.arange(4, dtype="<i4").tofile(outside)
    paths = [os.path.join(inside, n) for n in ("a.h5", "b.h5")]
    for path in paths:
        with h5py.File(path, "w") as f:
            f.create_dataset("d", (4,), "<i4", external=[(outside, 0, 16)])
    (finding,) = verify(*paths, status=1)["findings"]
    assert finding["outcome"] == "unreadable" and "--external" in finding["reason"], finding
    assert verify(*paths, "--external", folder)["exit_status"] == 0


def test_errors_are_sentences(original, folder):
    damaged = os.path.join(folder, "b.h5")
    with open(original, "rb") as f, open(damaged, "wb") as g:
        g.write(f.read()[: os.path.getsize(original) // 2])
    assert "b.h5" in refused("verify", original, damaged)
    assert "HDF5 file" in refused("verify", "--concat", "x", original, original, damaged, status=(1, 2))


def test_damaged_files_end_in_sentences(original, folder):
    """With a byte changed in each place in turn: no crash, no hang."""
    damaged = os.path.join(folder, "b.h5")
    with open(original, "rb") as f:
        content = f.read()
    rng = np.random.default_rng(int(os.environ.get("ZARRBITS_SEED", "5")))
    for _ in range(int(os.environ.get("ZARRBITS_MUTATIONS", "25"))):
        bytes_ = bytearray(content)
        for position in rng.integers(512, len(content), 8):
            bytes_[position] = rng.integers(0, 256)
        with open(damaged, "wb") as f:
            f.write(bytes_)
        for pair in ((original, damaged), (damaged, original)):
            done = run("verify", "-q", *pair, status=(0, 1, 3))
            assert all(line.startswith("zarrbits: ") for line in done.stderr.splitlines()), done.stderr


CORPUS = os.environ.get("ZARRBITS_CORPUS")


@pytest.mark.skipif(not CORPUS or not shutil.which("h5repack"), reason="ZARRBITS_CORPUS is not set, or there is no h5repack")
def test_real_files_equal_themselves_and_their_copies(folder):
    """For every twelfth file, or as ZARRBITS_CORPUS_EVERY says: its copy by h5repack can be compared."""
    every = int(os.environ.get("ZARRBITS_CORPUS_EVERY", "12"))
    files = sorted(os.path.join(root, name) for root, _, names in os.walk(CORPUS) for name in names)
    compared = 0
    for path in files[::every]:
        if not h5py.is_hdf5(path):
            continue
        same = run("verify", "--json", path, path, status=None, timeout=600)
        if same.returncode != 0:  # a part of it cannot be read
            findings = json.loads(same.stdout)["findings"] if same.stdout else [{"outcome": "unreadable"}]
            assert "unreadable" in {f["outcome"] for f in findings}, (path, findings)
            continue
        copy = os.path.join(folder, "copy.h5")
        if subprocess.run(["h5repack", "-f", "SHUF", "-f", "GZIP=1", path, copy], capture_output=True, timeout=600).returncode:
            continue
        run("verify", "-q", path, copy, status=(0, 1), timeout=600)
        os.remove(copy)
        compared += 1
    print(compared, "files compared")
    assert compared >= 10
