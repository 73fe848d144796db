# SPDX-License-Identifier: BSL-1.0
"""`zarrbits verify` on attributes, dimension names, links, named types and notes: a store that is written by hand, from
docs/reference/types.md, and then changed in one place at a time."""

import base64
import hashlib
import json
import os
import shutil
import struct
import tempfile

import h5py
import numpy as np

from command import run
from stores_by_hand import LITTLE, array, edit, group, note, strings

USER_BLOCK = b"#!/bin/sh\n" + bytes(502)
NAN = np.array(0x7FF8000000000123, "u8").view("f8")[()]
ENUM = {"class": "enum", "base": "int8", "members": {"RED": 1, "BLUE": 2}}
LONG = "n" * 300


def base64_of(data):
    return base64.b64encode(data).decode()


def write_source(path):
    with h5py.File(path, "w", userblock_size=512) as f:
        g = f.create_group("g")
        d = f.create_dataset("d", (2, 3), "<f4", maxshape=(None, 3), chunks=(2, 3))
        f["x"] = np.arange(3)
        f["x"].make_scale("x")
        d.dims[0].label = "rows"
        d.dims[1].attach_scale(f["x"])
        f["plain"] = np.zeros(4, "i1")
        f["soft"] = h5py.SoftLink("/nowhere")
        f["external"] = h5py.ExternalLink("other.h5", "/a")
        f["g/again"] = d
        f["g/" + LONG] = np.int8(1)
        f["type"] = np.dtype(">i2")
        f["type"].attrs["of"] = "a type"
        f.create_dataset(
            "pairs", (1,), np.dtype([("e", h5py.enum_dtype({"RED": 1, "BLUE": 2}, "i1")), ("s", h5py.string_dtype())])
        )[0] = (1, "a")
        a = d.attrs
        a["count"] = np.int32(5)
        a["large"] = np.uint64(2**64 - 1)
        a["list"] = np.array([[1, 2], [3, 4]], ">i2")
        a["none"] = np.zeros((0, 2), "i2")
        a["real"] = 2.0
        a["nan"] = np.array([NAN, np.nan, np.inf, -0.0])
        a["text"] = "é"
        a["texts"] = np.array([b"a  ", b"\xff"], "S3")
        a["flag"] = np.bool_(True)
        a["opaque"] = np.void(b"\1\2")
        a["pair"] = np.array((1, 2.5), [("n", "i4"), ("x", "f8")])[()]
        a["complex"] = 1 + 2j
        a["ref"] = g.ref
        a["region"] = f["plain"].regionref[1:3]
        a["empty"] = h5py.Empty("f4")
        a.create("colour", 2, dtype=h5py.enum_dtype({"RED": 1, "BLUE": 2}, "i1"))
        sequence = np.empty(1, object)
        sequence[0] = np.array([1, 2, 3], "i4")
        a.create("sequence", sequence, (1,), h5py.vlen_dtype("i4"))
        a["_FillValue"] = np.array([9.5], "f4")
        a["zarrbits"] = "mine"
        wide = h5py.h5t.STD_I64LE.copy()
        wide.set_size(16)
        wide.set_precision(128)
        w = h5py.h5a.create(d.id, b"wide", wide, h5py.h5s.create(h5py.h5s.SCALAR))
        w.write(np.array(np.void((-(2**70)).to_bytes(16, "little", signed=True))), mtype=wide)
    with open(path, "r+b") as f:
        f.write(USER_BLOCK)


ATTRIBUTES = {
    "count": 5,
    "large": 2**64 - 1,
    "list": [[1, 2], [3, 4]],
    "none": [],
    "real": 2.0,
    "nan": ["0x7ff8000000000123", "NaN", "Infinity", -0.0],
    "text": "é",
    "texts": ["a  ", {"base64": base64_of(b"\xff")}],
    "flag": True,
    "opaque": {"base64": base64_of(b"\1\2")},
    "pair": {"n": 1, "x": 2.5},
    "complex": [1.0, 2.0],
    "ref": "/g",
    "region": {"path": "/plain", "blocks": [[1, 2]]},
    "empty": None,
    "colour": 2,
    "sequence": [[1, 2, 3]],
    "zarrbits_": "mine",
    "_FillValue": base64_of(struct.pack("<d", 9.5)),
    "wide": str(-(2**70)),
}
TYPES = {
    "count": "int32",
    "large": "uint64",
    "list": {"class": "int16", "endian": "big"},
    "texts": {"class": "string", "length": 3, "padding": "null"},
    "pair": {"class": "compound", "fields": [{"name": "n", "type": "int32"}, {"name": "x", "type": "float64"}]},
    "_FillValue": "float32",
    "nan": "float64",
    "none": "int16",
    "opaque": {"class": "opaque", "length": 2, "tag": ""},
    "complex": "complex128",
    "ref": {"class": "object_reference"},
    "region": {"class": "region_reference"},
    "empty": "float32",
    "colour": ENUM,
    "sequence": {"class": "sequence", "base": "int32"},
    "wide": {"class": "opaque", "length": 16, "tag": "signed integer of 128 bits in 16 bytes"},
}
NOTES = {"attribute_types": TYPES, "attribute_values": {"_FillValue": [9.5]}, "maxshape": [None, 3]}
LINKS = {"soft": {"kind": "soft", "target": "/nowhere"}, "external": {"kind": "external", "file": "other.h5", "target": "/a"}}
PAIRS = {
    "class": "compound",
    "fields": [{"name": "e", "type": ENUM}, {"name": "s", "type": {"class": "string", "length": "variable"}}],
}


def write_store(s):
    hashed = "n" * 200 + "%~" + hashlib.sha256(LONG.encode()).hexdigest()[:32]
    big = {"class": "int16", "endian": "big"}
    group(s, links=LINKS, named_types={"type": big}, user_block={"base64": base64_of(USER_BLOCK)})
    group(s + "/g", links={"again": {"kind": "hard", "target": "/d"}}, names={hashed: LONG})
    array(s + "/g/" + hashed, [], [], "int8", [{"name": "bytes"}], 0, {"c": b"\1"})
    array(s + "/d", [2, 3], [2, 3], "float32", [LITTLE], 0.0, {})
    edit(s, "d", dimension_names=["rows", "x"], attributes=ATTRIBUTES | {"zarrbits": NOTES})
    array(s + "/x", [3], [3], "int64", [LITTLE], 0, {"c/0": struct.pack("<3q", 0, 1, 2)})
    edit(s, "x", dimension_names=["x"])
    array(s + "/plain", [4], [4], "int8", [{"name": "bytes"}], 0, {})
    edit(s, "plain", dimension_names=["phony_dim_0"])
    group(s + "/type", {"of": "a type"}, datatype=big)
    group(s + "/pairs", hdf5_type=PAIRS)
    array(s + "/pairs/e", [1], [1], "int8", [{"name": "bytes"}], 0, {"c/0": b"\1"}, enum=ENUM["members"])
    array(s + "/pairs/s", [1], [1], "string", [{"name": "vlen-utf8"}], "", {"c/0": strings("a")})


def attribute(**values):
    """Changes attributes of d."""
    return lambda s: edit(s, "d", attributes=ATTRIBUTES | {"zarrbits": NOTES} | values)


def without(name):
    return lambda s: edit(s, "d", attributes={k: v for k, v in ATTRIBUTES.items() if k != name} | {"zarrbits": NOTES})


def type_note(**types):
    return lambda s: note(s, "d", attribute_types={k: v for k, v in (TYPES | types).items() if v is not None})


def links(**changed):
    return lambda s: note(s, "", links={k: v for k, v in (LINKS | changed).items() if v})


# change of the store -> (kind and path of the only finding, its outcome, a part of its sentence)
CHANGES = {
    "a number": (attribute(count=6), "attribute", "/d", "differs", 'a different attribute "count": source 5, store 6'),
    "a number as text": (attribute(count="5"), "attribute", "/d", "differs", 'source 5, store "5"'),
    "an integer as a float": (attribute(count=5.0), "attribute", "/d", "differs", "source 5, store 5.0"),
    "a float as an integer": (attribute(real=2), "attribute", "/d", "differs", "source 2.0, store 2"),
    "a scalar as a list": (attribute(count=[5]), "attribute", "/d", "differs", "store a list of 1"),
    "a large number": (attribute(large=2**64 - 2), "attribute", "/d", "differs", str(2**64 - 2)),
    "an element of a list": (attribute(list=[[1, 2], [3, 5]]), "attribute", "/d", "differs", "at [1][1]: source 4, store 5"),
    "a shorter list": (attribute(list=[[1, 2]]), "attribute", "/d", "differs", "source a list of 2, store a list of 1"),
    "an element too many": (attribute(none=[[1, 2]]), "attribute", "/d", "differs", "source a list of 0, store a list of 1"),
    "the payload of a NaN": (
        attribute(nan=["NaN", "NaN", "Infinity", -0.0]),
        "attribute",
        "/d",
        "differs",
        'at [0]: source NaN (0x7ff8000000000123), store "NaN"',
    ),
    "an infinity": (
        attribute(nan=["0x7ff8000000000123", "NaN", "-Infinity", -0.0]),
        "attribute",
        "/d",
        "differs",
        "at [2]: source inf",
    ),
    "the sign of a zero": (
        attribute(nan=["0x7ff8000000000123", "NaN", "Infinity", 0.0]),
        "attribute",
        "/d",
        "differs",
        "at [3]: source -0.0, store 0.0",
    ),
    "a text": (attribute(text="e"), "attribute", "/d", "differs", 'source "é", store "e"'),
    "bytes that are not UTF-8": (
        attribute(texts=["a  ", {"base64": base64_of(b"\xfe")}]),
        "attribute",
        "/d",
        "differs",
        'at [1]: source "\\xff"',
    ),
    "spaces at the end of a text": (
        attribute(texts=["a", {"base64": base64_of(b"\xff")}]),
        "attribute",
        "/d",
        "differs",
        'at [0]: source "a  ", store "a"',
    ),
    "text as base64": (attribute(text={"base64": base64_of("é".encode())}), "attribute", "/d", "differs", 'source "é"'),
    "a bool": (attribute(flag=False), "attribute", "/d", "differs", "source true, store false"),
    "a bool as a number": (attribute(flag=1), "attribute", "/d", "differs", "source true, store 1"),
    "opaque bytes": (attribute(opaque={"base64": base64_of(b"\1\3")}), "attribute", "/d", "differs", "source 0x0102"),
    "a member": (attribute(pair={"n": 1, "x": 2.25}), "attribute", "/d", "differs", "at x: source 2.5, store 2.25"),
    "a member's name": (attribute(pair={"n": 1, "y": 2.5}), "attribute", "/d", "differs", "at x: source 2.5, store nothing"),
    "a member too many": (attribute(pair={"n": 1, "x": 2.5, "y": 0}), "attribute", "/d", "differs", "an object with 3 keys"),
    "an imaginary part": (attribute(complex=[1.0, 3.0]), "attribute", "/d", "differs", "at i: source 2.0, store 3.0"),
    "a reference": (attribute(ref="/x"), "attribute", "/d", "differs", 'store "/x"'),
    "a reference to nothing": (attribute(ref=""), "attribute", "/d", "differs", 'store ""'),
    "a reference lost": (attribute(ref=None), "attribute", "/d", "differs", "store null"),
    "a region's corner": (
        attribute(region={"path": "/plain", "blocks": [[1, 3]]}),
        "attribute",
        "/d",
        "differs",
        'attribute "region"',
    ),
    "a region's dataset": (
        attribute(region={"path": "/x", "blocks": [[1, 2]]}),
        "attribute",
        "/d",
        "differs",
        'attribute "region"',
    ),
    "a value where there is none": (attribute(empty=0.0), "attribute", "/d", "differs", "source no value, store 0.0"),
    "an enumeration": (attribute(colour=1), "attribute", "/d", "differs", "source 2, store 1"),
    "a sequence": (attribute(sequence=[[1, 2]]), "attribute", "/d", "differs", "at [0]: source a list of 3, store a list of 2"),
    "an integer of 128 bits": (attribute(wide=str(2**70)), "attribute", "/d", "differs", f'source {-(2**70)}, store "{2**70}"'),
    "a fill value for xarray": (
        attribute(_FillValue=base64_of(struct.pack("<d", 9.0))),
        "attribute",
        "/d",
        "differs",
        'a different attribute "_FillValue"',
    ),
    "a fill value as it was": (
        lambda s: note(s, "d", attribute_values={"_FillValue": [9.0]}),
        "attribute",
        "/d",
        "differs",
        "source 9.5, store 9.0",
    ),
    "a fill value as it was, lost": (
        lambda s: note(s, "d", attribute_values=None),
        "attribute",
        "/d",
        "differs",
        'a different attribute "_FillValue"',
    ),
    "an attribute that was renamed": (
        attribute(zarrbits_="yours"),
        "attribute",
        "/d",
        "differs",
        'a different attribute "zarrbits": source "mine"',
    ),
    "an attribute lost": (without("text"), "attribute", "/d", "missing", 'no attribute "text" in the store'),
    "a type of an attribute": (
        type_note(opaque=TYPES["opaque"] | {"tag": "x"}),
        "attribute",
        "/d",
        "differs",
        'an attribute "opaque" of a different type: source',
    ),
    "a type of an attribute lost": (type_note(colour=None), "attribute", "/d", "differs", 'store "none that is given"'),
    "a type of an integer lost": (type_note(count=None), "attribute", "/d", "differs", 'source "int32", store "none'),
    "a length of texts lost": (type_note(texts=None), "attribute", "/d", "differs", '"length":3'),
    "a member's type lost": (
        type_note(pair=None),
        "attribute",
        "/d",
        "differs",
        'of a different type: source {"class":"compound"',
    ),
    "a name of an enumeration": (
        type_note(colour=ENUM | {"members": {"RED": 1, "GREEN": 2}}),
        "attribute",
        "/d",
        "differs",
        '"BLUE":2',
    ),
    "the attribute of a named type": (
        lambda s: edit(s, "type", attributes={"of": "b", "zarrbits": {"datatype": {"class": "int16", "endian": "big"}}}),
        "attribute",
        "/type",
        "differs",
        'source "a type", store "b"',
    ),
    "a scale's name": (
        lambda s: edit(s, "d", dimension_names=["rows", "y"]),
        "dimension names",
        "/d",
        "differs",
        'dimension 1: source "x", store "y"',
    ),
    "a label": (
        lambda s: edit(s, "d", dimension_names=["phony_dim_1", "x"]),
        "dimension names",
        "/d",
        "differs",
        'dimension 0: source "rows"',
    ),
    "the name of a scale itself": (
        lambda s: edit(s, "x", dimension_names=["y"]),
        "dimension names",
        "/x",
        "differs",
        'source "x", store "y"',
    ),
    "a name that the source has not": (
        lambda s: edit(s, "plain", dimension_names=["time"]),
        "dimension names",
        "/plain",
        "differs",
        'source none, store "time"',
    ),
    "two dimensions of one name": (
        lambda s: edit(s, "d", dimension_names=["x", "x"]),
        "dimension names",
        "/d",
        "differs",
        "the name of a different dimension",
    ),
    "names lost": (lambda s: edit(s, "d", dimension_names=None), "dimension names", "/d", "missing", "not in the store"),
    "names that are none": (
        lambda s: edit(s, "plain", dimension_names=[1]),
        "dimension names",
        "/plain",
        "differs",
        "has invalid dimension names",
    ),
    "names of a member": (
        lambda s: edit(s, "pairs/e", dimension_names=["a"]),
        "dimension names",
        "/pairs",
        "differs",
        'source none, store "a"',
    ),
    "a soft link's target": (links(soft={"kind": "soft", "target": "/d"}), "link", "/", "differs", '"target":"/nowhere"'),
    "a soft link lost": (links(soft=None), "link", "/", "missing", 'no link "soft" in the store'),
    "a soft link that is none": (links(soft="/nowhere"), "link", "/", "differs", 'a different link "soft"'),
    "an external link's file": (
        links(external={"kind": "external", "file": "more.h5", "target": "/a"}),
        "link",
        "/",
        "differs",
        '"file":"other.h5"',
    ),
    "a hard link's target": (
        lambda s: note(s, "g", links={"again": {"kind": "hard", "target": "/x"}}),
        "link",
        "/g",
        "differs",
        "source hard, to /d",
    ),
    "a hard link lost": (lambda s: note(s, "g", links=None), "link", "/g", "missing", 'no link "again" in the store'),
    "a named type": (lambda s: note(s, "", named_types={"type": "int16"}), "named type", "/", "differs", '"endian":"big"'),
    "a named type lost": (
        lambda s: note(s, "", named_types=None),
        "named type",
        "/",
        "missing",
        'no named type "type" in the store',
    ),
    "a named type's attributes lost": (
        lambda s: shutil.rmtree(s + "/type"),
        "named type",
        "/type",
        "missing",
        "has attributes, which are not in the store",
    ),
    "the type of a named type's node": (
        lambda s: note(s, "type", datatype="int16"),
        "note",
        "/type",
        "differs",
        "zarrbits.datatype",
    ),
    "a user block": (
        lambda s: note(s, "", user_block={"base64": base64_of(USER_BLOCK[:-1] + b"x")}),
        "note",
        "/",
        "differs",
        "zarrbits.user_block",
    ),
    "a user block lost": (lambda s: note(s, "", user_block=None), "note", "/", "missing", "zarrbits.user_block"),
    "a limit": (
        lambda s: note(s, "d", maxshape=[None, None]),
        "note",
        "/d",
        "differs",
        "zarrbits.maxshape: source [null,3], store [null,null]",
    ),
    "limits lost": (lambda s: note(s, "d", maxshape=None), "note", "/d", "missing", "zarrbits.maxshape"),
    "a type": (lambda s: note(s, "pairs", hdf5_type=PAIRS | {"fields": []}), "note", "/pairs", "differs", "zarrbits.hdf5_type"),
    "a value of a member's enumeration": (
        lambda s: note(s, "pairs/e", enum={"RED": 1, "BLUE": 3}),
        "note",
        "/pairs",
        "differs",
        '"BLUE":2',
    ),
    "a name that is not whole": (lambda s: note(s, "g", names=None), "note", "/g", "missing", "of a name that is not whole"),
    "a name that is another": (
        lambda s: note(s, "g", names={next(n for n in os.listdir(s + "/g") if "~" in n): LONG + "m"}),
        "note",
        "/g",
        "differs",
        "zarrbits.names",
    ),
}
CHANGES["a field that readers must understand"] = (
    lambda s: edit(s, "plain", more={"must_understand": True}),
    "dataset",
    "/plain",
    "differs",
    'the field "more" without "must_understand": false',
)
CHANGES["a field of a group"] = (lambda s: edit(s, "g", more=1), "group", "/g", "differs", 'the field "more"')
# what only the store has -> (its node, kind and name)
MORE = {
    "an attribute": (attribute(more=1), ("/d", "attribute", "more")),
    "an attribute of a member": (
        lambda s: edit(s, "pairs/e", attributes={"zarrbits": {"enum": ENUM["members"]}, "more": 1}),
        ("/pairs/e", "attribute", "more"),
    ),
    "a note": (lambda s: note(s, "g", more=1), ("/g", "note", "zarrbits.more")),
    "a note that nothing asks for": (lambda s: note(s, "plain", maxshape=[None]), ("/plain", "note", "zarrbits.maxshape")),
    "a link": (links(more={"kind": "soft", "target": "/d"}), ("/", "link", "more")),
    "a named type": (lambda s: note(s, "g", named_types={"more": "int8"}), ("/g", "named type", "more")),
    "a value of no attribute": (
        lambda s: note(s, "d", attribute_values={"_FillValue": [9.5], "more": 1}),
        ("/d", "note", "zarrbits.attribute_values.more"),
    ),
    "a type of no attribute": (type_note(more="int8"), ("/d", "note", "zarrbits.attribute_types.more")),
}


class TestMetadata:
    @classmethod
    def setup_class(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.source = cls.folder.name + "/s.h5"
        cls.store = cls.folder.name + "/s.zarr"
        write_source(cls.source)
        write_store(cls.store)

    @classmethod
    def teardown_class(cls):
        cls.folder.cleanup()

    def verify(self, store):
        r = run("verify", "--json", self.source, store)
        assert r.stderr == (b"" if isinstance(r.stderr, bytes) else "")
        return r.returncode, json.loads(r.stdout)

    def changed(self, folder, change):
        shutil.copytree(self.store, folder + "/s.zarr")
        change(folder + "/s.zarr")
        return folder + "/s.zarr"

    def test_a_faithful_store_is_equal(self):
        status, report = self.verify(self.store)
        assert (status, report["findings"], report["extras"], report["only_in_store"]) == (0, [], [], [])
        assert [report[kind]["equal"] for kind in ("attributes", "dimension_names", "links", "named_types")] == [
            len(ATTRIBUTES) + 1,
            5,
            3,
            1,
        ]

    def test_what_convert_writes_is_equal(self):
        with tempfile.TemporaryDirectory() as folder:
            assert (
                run("convert", "--quiet", "--convention", "none", "--links", "keep", self.source, folder + "/c.zarr").returncode
                == 0
            )
            status, report = self.verify(folder + "/c.zarr")
            assert (status, report["findings"], report["extras"]) == (0, [], [])

    def test_each_change_is_told_in_its_own_sentence(self):
        for name, (change, kind, path, outcome, sentence) in CHANGES.items():
            with tempfile.TemporaryDirectory() as folder:
                status, report = self.verify(self.changed(folder, change))
                assert [(f["kind"], f["path"], f["outcome"]) for f in report["findings"]] == [(kind, path, outcome)]
                assert sentence in report["findings"][0]["reason"]
                assert (status, report["extras"]) == (1, [])
                assert report[kind.replace(" ", "_") if kind.endswith("names") else kind.replace(" ", "_") + "s"][outcome] == 1

    def test_what_the_store_alone_has_is_named(self):
        for name, (change, extra) in MORE.items():
            with tempfile.TemporaryDirectory() as folder:
                status, report = self.verify(self.changed(folder, change))
                status_of_extra = 3 if extra[1] == "note" else 1
                assert (status, report["findings"], [tuple(e.values()) for e in report["extras"]]) == (
                    status_of_extra,
                    [],
                    [extra],
                )

    def test_the_text_names_attributes_and_counts_them(self):
        with tempfile.TemporaryDirectory() as folder:
            store = self.changed(folder, attribute(count=6, more=1))
            text = run("verify", self.source, store).stdout.decode()
            assert 'differs: /d has a different attribute "count": source 5, store 6\n' in text
            assert 'differs: /d has, only in the store, the attribute "more"\n' in text
            assert f"attributes: {len(ATTRIBUTES)} equal, 1 differs" in text

    def test_consolidated_metadata_that_say_other_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            store = self.changed(folder, lambda s: None)
            nodes = {}
            for path, _, files in os.walk(store):
                if "zarr.json" in files and path != store:
                    with open(path + "/zarr.json") as f:
                        nodes[os.path.relpath(path, store)] = json.load(f)
            nodes["d"]["attributes"]["count"] = 6
            edit(store, "", consolidated_metadata={"kind": "inline", "must_understand": False, "metadata": nodes})
            status, report = self.verify(store)
            assert (status, [f["path"] for f in report["findings"]]) == (3, ["/"])


def test_notes_of_an_attribute_do_not_stand_for_it(folder):
    """Under the convention netcdf, notes keep what netCDF does not show, and the plain form of what it does."""
    source, store = folder + "/s.nc", folder + "/s.zarr"
    with h5py.File(source, "w") as f:
        f["x"] = np.arange(3)
        f["x"].make_scale("x")
        f["x"].attrs["pair"] = np.array((1, 2.5), [("n", "i4"), ("x", "f8")])[()]  # netCDF has no such attribute
        f["x"].attrs["number"] = 5  # a scalar, which netCDF has as a list
    assert run("convert", "-q", "--convention", "netcdf", source, store).returncode == 0
    assert run("verify", source, store).returncode == 0
    with open(store + "/x/zarr.json") as file:
        document = json.load(file)
    del document["attributes"]["number"]
    with open(store + "/x/zarr.json", "w") as file:
        json.dump(document, file)
    done = run("verify", source, store)
    assert done.returncode == 1 and b'missing: /x has no attribute "number" in the store' in done.stdout


def test_stores_of_another_format_are_not_equal(folder):
    source, store = folder + "/a.zarr", folder + "/b.zarr"
    group(source)
    array(source + "/a", [1], [1], "int8", [{"name": "bytes"}], 0, {})
    for change in ({"zarr_format": 4}, {"zarr_format": None}, {"more": {"a": 1}}):
        for at in ("", "a"):
            shutil.copytree(source, store)
            edit(store, at, **change)
            assert run("verify", source, store).returncode == 1, (change, at)
            shutil.rmtree(store)


def test_no_reader_sees_a_fill_value_of_opaque_bytes(folder):
    """convert makes them bytes of uint8, and notes the attribute."""
    source, store = os.path.join(folder, "opaque.h5"), os.path.join(folder, "opaque.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=np.zeros(2, "V3")).attrs["_FillValue"] = np.int32(1)
    assert run("convert", "-q", source, store).returncode == 0
    assert run("verify", source, store).returncode == 0
    edit(
        store,
        "x",
        zarrbits={"must_understand": False, "attribute_values": {"_FillValue": 2}, "attribute_types": {"_FillValue": "int32"}},
    )
    done = run("verify", source, store)
    assert done.returncode == 1 and b"source 1, store 2" in done.stdout
