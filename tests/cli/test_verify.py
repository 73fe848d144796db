# SPDX-License-Identifier: BSL-1.0
"""`zarrbits verify` on stores that are written by hand, from the specification, and then damaged in one place at a time."""

import collections
import ctypes
import gzip
import json
import os
import random
import shutil
import struct
import tempfile

import h5py
import numpy as np

from command import is_one_sentence, run
from stores_by_hand import (
    BIG,
    BYTES,
    DATASETS,
    GZIP,
    LITTLE,
    STRUCTURED,
    STRUCTURED_FILL,
    array,
    edit,
    flip,
    group,
    note,
    read,
    strings,
    write,
    write_sequences,
    write_source,
    write_store,
)


def as_structured(store):
    edit(store, "g/compound", data_type=STRUCTURED, codecs=[BYTES], fill_value=STRUCTURED_FILL)


WITHOUT_HARD = {"loop": {"kind": "hard", "target": "/"}, "soft": {"kind": "soft", "target": "/g/int16"}}
# change of the store -> (path of the only finding, its outcome, index or None)
DAMAGE = {
    "a flipped bit": (lambda s: flip(s, "g/nan/c/0", 0), "/g/nan", "differs", [0]),
    "the sign of a zero": (lambda s: flip(s, "g/nan/c/0", 15, 0x80), "/g/nan", "differs", [1]),
    "a bit of a compressed chunk": (lambda s: flip(s, "g/int16/c/1/1", 12, 0x10), "/g/int16", "differs", None),
    "a checksum": (lambda s: flip(s, "g/big/1", 8), "/g/big", "differs", None),
    "a checked byte": (lambda s: flip(s, "g/big/1", 3), "/g/big", "differs", None),
    "a packed bit": (lambda s: flip(s, "g/mask/c/0", 2, 2), "/g/mask", "differs", [9]),
    "a count byte": (lambda s: flip(s, "g/mask/c/0", 0), "/g/mask", "differs", None),
    "12-bit data": (lambda s: flip(s, "g/camera/c/0", 4), "/g/camera", "differs", [2]),
    "the padding of 12-bit data is none of it": (lambda s: flip(s, "g/camera/c/0", 4, 0x80), None, None, None),
    "an imaginary part": (lambda s: flip(s, "g/complex/c/0", 31, 0x80), "/g/complex", "differs", [1]),
    "a scalar": (lambda s: flip(s, "g/scalar/c", 3), "/g/scalar", "differs", []),
    "a field": (lambda s: flip(s, "g/compound/c/0", 15 + 4), "/g/compound", "differs", [1]),
    "the older name of struct": (lambda s: as_structured(s), None, None, None),
    "a field of a struct by its older name": (
        lambda s: [as_structured(s), flip(s, "g/compound/c/0", 15 + 4)],
        "/g/compound",
        "differs",
        [1],
    ),
    "an array type's element": (lambda s: flip(s, "array_type/c/0/1", 4), "/array_type", "differs", [1, 2]),
    "past the edge is none of it": (lambda s: flip(s, "array_type/c/0/1", 8), None, None, None),
    "a letter": (lambda s: flip(s, "text/c/1", 9), "/text", "differs", [2]),
    "a letter that is not UTF-8": (lambda s: flip(s, "fixed/c/0", 19), "/fixed", "differs", [2]),
    "a sequence's value": (lambda s: flip(s, "sequences/values/c/1", 0), "/sequences", "differs", [1, 0]),
    "a sequence's offset": (lambda s: flip(s, "sequences/offsets/c/0", 8), "/sequences", "differs", None),
    "a member": (lambda s: flip(s, "mixed/a/c/0", 4), "/mixed", "differs", [1]),
    "a member lost": (lambda s: shutil.rmtree(s + "/mixed/s"), "/mixed", "missing", None),
    "a reference": (
        lambda s: array(
            s + "/references",
            [2],
            [2],
            "string",
            [{"name": "vlen-utf8"}],
            "",
            {"c/0": strings("/g/big", "")},
            hdf5_type={"class": "object_reference"},
        ),
        "/references",
        "differs",
        [0],
    ),
    "a chunk lost": (lambda s: os.remove(s + "/g/big/2"), "/g/big", "differs", [4]),
    "a short chunk": (lambda s: os.truncate(s + "/g/nan/c/0", 23), "/g/nan", "differs", None),
    "a long chunk": (lambda s: os.truncate(s + "/g/nan/c/0", 25), "/g/nan", "differs", None),
    "a fill value that nothing uses": (lambda s: edit(s, "g/scalar", fill_value=1.0), "/g/scalar", "differs", None),
    "a fill value that chunks use": (lambda s: edit(s, "filled", fill_value="NaN"), "/filled", "differs", None),
    "a fill value that is none": (lambda s: edit(s, "filled", fill_value=None), "/filled", "differs", None),
    "a shape": (lambda s: edit(s, "g/big", shape=[4]), "/g/big", "differs", None),
    "a sign": (lambda s: edit(s, "g/int16", data_type="uint16"), "/g/int16", "differs", None),
    "a size": (lambda s: edit(s, "g/nothing", data_type="int64"), "/g/nothing", "differs", None),
    "a boolean as int8": (
        lambda s: (
            edit(s, "g/mask", data_type="int8", fill_value=0, codecs=[BYTES]) or note(s, "g/mask", enum={"FALSE": 0, "TRUE": 1})
        ),
        "/g/mask",
        "differs",
        None,
    ),
    "a byte order": (lambda s: edit(s, "g/int16", codecs=[BIG, GZIP]), "/g/int16", "differs", [0, 0]),
    "metadata that is not JSON": (lambda s: os.truncate(s + "/text/zarr.json", 20), "/text", "differs", None),
    "a key that is given twice": (
        lambda s: write(
            s + "/enum/zarr.json", read(s + "/enum/zarr.json").replace(b'"fill_value": 0', b'"fill_value": 1, "fill_value": 0')
        ),
        "/enum",
        "differs",
        None,
    ),
    "an unknown key": (lambda s: edit(s, "text", more=1), "/text", "differs", None),
    "a dataset lost": (lambda s: shutil.rmtree(s + "/enum"), "/enum", "missing", None),
    "a dataset that is a group": (
        lambda s: shutil.rmtree(s + "/enum") or group(s + "/enum", enum={"RED": 1, "BLUE": 2}),
        "/enum",
        "differs",
        None,
    ),
    "a null dataspace with elements": (
        lambda s: (
            shutil.rmtree(s + "/null")
            or shutil.copytree(s + "/enum", s + "/null")
            and note(s, "null", enum=None, null_dataspace=True)
        ),
        "/null",
        "differs",
        None,
    ),
    "a name": (lambda s: os.rename(s + "/a%25b%5Cc", s + "/a%25b%2Fc"), "/a%b\\c", "missing", None),
    "a codec that this reader does not know": (
        lambda s: edit(s, "enum", codecs=[BYTES, {"name": "zfp", "configuration": {}}]),
        "/enum",
        "unchecked",
        None,
    ),
}


class TestVerify:
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

    def verify(self, source, store, *more):
        r = run("verify", "--json", source, store, *more)
        assert r.stderr == ""
        report = json.loads(r.stdout)
        assert report["exit_status"] == r.returncode
        return r.returncode, report

    def test_a_faithful_store_is_equal_in_every_dataset(self):
        status, report = self.verify(self.source, self.store)
        assert (status, report["findings"]) == (0, [])
        assert report["datasets"] == {"equal": DATASETS, "unchecked": 0, "unreadable": 0, "missing": 0, "differs": 0}
        assert (report["groups"]["equal"], report["elements"]["unchecked"]) == (2, 0)
        assert [report[kind]["equal"] for kind in ("attributes", "links", "named_types")] == [1, 3, 1]
        assert (report["only_in_store"], report["extras"]) == ([], [])
        r = run("verify", self.source, self.store)
        assert (r.returncode, r.stderr) == (0, "")
        assert f"datasets: {DATASETS} equal\n" in r.stdout.decode()

    def test_what_convert_writes_is_equal(self):
        for options in ([], ["--codec", "packbits"]):
            with tempfile.TemporaryDirectory() as folder:
                r = run("convert", "--quiet", *options, self.source, folder + "/c.zarr")
                assert r.returncode == 0, r.stderr
                status, report = self.verify(self.source, folder + "/c.zarr")
                assert (status, report["findings"]) == (0, [])
                assert report["datasets"]["equal"] == DATASETS
                # and verify looks: the same store with one bit changed
                chunk = folder + "/c.zarr/g/scalar/c"
                flip(folder + "/c.zarr", "g/scalar/c", os.path.getsize(chunk) - 1)
                assert self.verify(self.source, folder + "/c.zarr")[0] == 1

    def test_each_damage_is_found_where_it_is(self):
        for name, (damage, path, outcome, index) in DAMAGE.items():
            with tempfile.TemporaryDirectory() as folder:
                store = folder + "/s.zarr"
                shutil.copytree(self.store, store)
                damage(store)
                status, report = self.verify(self.source, store)
                found = [(f["path"], f["outcome"]) for f in report["findings"]]
                assert found == ([(path, outcome)] if path else [])
                assert status == {None: 0, "unchecked": 3}.get(outcome, 1)
                if index is not None:
                    assert report["findings"][0]["index"] == index
                if path:
                    assert report["findings"][0]["reason"]
                    text = run("verify", self.source, store).stdout.decode()
                    assert outcome + ": " in text

    def test_both_values_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            store = folder + "/s.zarr"
            shutil.copytree(self.store, store)
            flip(store, "g/camera/c/0", 0)
            flip(store, "g/compound/c/0", 15, 2)
            text = run("verify", self.source, store).stdout.decode()
            assert "differs: /g/camera differs at [0]: source 2748, store 2749\n" in text
            assert "differs: /g/compound differs at [1] in member n: source -1, store -3\n" in text

    def test_an_object_may_be_under_any_of_its_links(self):
        with tempfile.TemporaryDirectory() as folder:
            store = folder + "/s.zarr"
            shutil.copytree(self.store, store)
            shutil.move(store + "/g/int16", store + "/hard")
            note(store, "", links=WITHOUT_HARD)
            note(store, "g", links={"int16": {"kind": "hard", "target": "/hard"}})
            assert self.verify(self.source, store)[0] == 0
            shutil.copytree(store + "/hard", store + "/g/int16")  # a copy is compared as well
            flip(store, "g/int16/c/0/0", 12)
            assert self.verify(self.source, store)[0] == 1

    def test_what_only_the_store_has_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            store = folder + "/s.zarr"
            shutil.copytree(self.store, store)
            group(store + "/g/more")
            status, report = self.verify(self.source, store)
            assert (status, report["only_in_store"]) == (1, ["/g/more"])

    def changed(self, folder, damage):
        store = folder + "/s.zarr"
        shutil.copytree(self.store, store)
        damage(store)
        return store

    def outcomes(self, *arguments):
        status, report = self.verify(*arguments)
        return status, {f["path"]: f["outcome"] for f in report["findings"]}

    def test_what_the_store_says_of_itself_is_no_excuse(self):
        def excuse(store, **selection):
            shutil.rmtree(store + "/g")
            shutil.rmtree(store + "/text")
            note(store, "", selection=selection)

        with tempfile.TemporaryDirectory() as folder:
            store = self.changed(folder, lambda s: excuse(s, exclude=["/**"]))
            assert self.outcomes(self.source, store) == (
                3,
                {"/g": "unchecked", "/hard": "unchecked", "/text": "unchecked"},
            )  # a group stands for what is below
            assert "zarrbits.selection" in run("verify", self.source, store).stdout.decode()
            note(store, "", selection={"exclude": ["/g"]})
            assert self.outcomes(self.source, store) == (1, {"/g": "unchecked", "/hard": "unchecked", "/text": "missing"})
            # whoever asked for it says so
            more = ["--exclude", "/g", "--exclude", "hard"]
            assert self.outcomes(self.source, store, *more) == (1, {"/text": "missing"})
            assert self.outcomes(self.source, store, *more, "--exclude", "te?t") == (0, {})
            assert self.outcomes(self.source, store, "--include", "/enum", "--include", "nan") == (1, {"/g/nan": "missing"})
            assert self.outcomes(self.source, store, "--include", "/hard")[1] == {
                "/hard": "unchecked"
            }  # and not under its other name
            assert run("verify", self.source, store, "--include", "/none").returncode == 1
            assert run("verify", self.source, store, "--include", "[").returncode == 2

    def test_a_store_of_one_object_is_the_whole_of_it(self):
        with tempfile.TemporaryDirectory() as folder:
            store = folder + "/g.zarr"
            shutil.copytree(self.store + "/g", store)
            note(store, "", selection={"object": "/g"})
            assert self.outcomes(self.source, store) == (3, {"/": "unchecked"})
            assert self.outcomes(self.source + ":/g", store) == (0, {})
            assert self.outcomes(self.source + ":/hard", store)[0] == 1

    def test_what_a_reader_may_see_instead(self):
        def other(s):
            return shutil.copytree(s + "/enum", s + "/%65num") and flip(s, "%65num/c/0", 0)

        def metadata(s):
            out = {}
            for d, _, files in os.walk(s):
                if "zarr.json" in files and d != s:
                    with open(d + "/zarr.json") as f:
                        out[os.path.relpath(d, s)] = json.load(f)
            return out

        def inline(s, nodes):
            return edit(s, "", consolidated_metadata={"kind": "inline", "must_understand": False, "metadata": nodes})

        cases = {
            "a name that is only an escape": (other, (1, {})),  # without a note, it is another name
            "consolidated metadata": (lambda s: inline(s, metadata(s)), (0, {})),
            "consolidated metadata that say other": (
                lambda s: inline(s, metadata(s) | {"g/nan": metadata(s)["g/nan"] | {"fill_value": 1.0}}),
                (3, {"/": "unchecked"}),
            ),
            "consolidated metadata that say less": (
                lambda s: inline(s, {k: v for k, v in metadata(s).items() if k != "g/nan"}),
                (3, {"/": "unchecked"}),
            ),
            "consolidated metadata that say more": (
                lambda s: inline(s, metadata(s) | {"more": metadata(s)["g/nan"]}),
                (3, {"/": "unchecked"}),
            ),
            "consolidated metadata that are none": (lambda s: edit(s, "", consolidated_metadata=[]), None),
            "one more node": (lambda s: shutil.copytree(s + "/enum", s + "/another"), (1, {})),
            "one in the place of a link": (lambda s: shutil.copytree(s + "/enum", s + "/soft"), (1, {"/soft": "differs"})),
            "one more member": (lambda s: shutil.copytree(s + "/enum", s + "/mixed/more"), (1, {})),
            "one more of a sequence": (lambda s: shutil.copytree(s + "/enum", s + "/sequences/offsets_1"), (1, {})),
            "metadata of Zarr v2": (
                lambda s: shutil.copy(s + "/enum/zarr.json", s + "/enum/.zarray"),
                (3, {"/enum": "unchecked"}),
            ),
            "a group's of Zarr v2": (lambda s: shutil.copy(s + "/zarr.json", s + "/.zgroup"), (3, {"/": "unchecked"})),
            "a member's of Zarr v2": (
                lambda s: shutil.copy(s + "/zarr.json", s + "/sequences/values/.zarray"),
                (3, {"/sequences": "unchecked"}),
            ),
            "what is nothing": (lambda s: shutil.copytree(s + "/enum", s + "/null/data"), (1, {})),
        }
        for name, (damage, expected) in cases.items():
            with tempfile.TemporaryDirectory() as folder:
                found = self.outcomes(self.source, self.changed(folder, damage))
                assert found == expected if expected else found[0] != 0

    def test_nothing_odd_in_metadata_is_equal(self):
        """ZARRBITS_MUTATIONS and ZARRBITS_SEED: more of them, and others."""
        dice = random.Random(int(os.environ.get("ZARRBITS_SEED", "3")))
        statuses = collections.Counter()
        with tempfile.TemporaryDirectory() as folder:
            store = self.changed(folder, lambda s: None)
            nodes = sorted(d for d, _, files in os.walk(store) if "zarr.json" in files)
            for _ in range(int(os.environ.get("ZARRBITS_MUTATIONS", "40"))):
                path = dice.choice(nodes) + "/zarr.json"
                before = read(path)
                metadata = json.loads(before)
                key = dice.choice(sorted(metadata))
                old, metadata[key] = (
                    metadata[key],
                    dice.choice(
                        [None, 0, -1, 1.5, "x", [], {}, [0], True, 2**63, "NaN", [[]], {"name": "x"}, {"name": "gzip"}, [1, 2, 3]]
                    ),
                )
                write(path, json.dumps(metadata).encode())
                status = run("verify", self.source, store).returncode
                write(path, before)
                statuses[status] += 1
                # the fill value of what holds sequences is nobody's: all of it is stored
                harmless = key == "attributes" or old == metadata[key] or (key == "fill_value" and "/sequences/" in path)
                assert status in ((0, 1, 3) if harmless else (1, 3)), (path, key, metadata[key])
        print("metadata changed:", dict(statuses))

    def test_raw_bytes_are_not_turned_round(self):
        kind = np.dtype([("a", "<i2", (2,)), ("b", ">i2", (2,))])
        struct_type = {"name": "struct", "configuration": {"fields": [{"name": n, "data_type": "r32"} for n in "ab"]}}
        with tempfile.TemporaryDirectory() as folder:
            with h5py.File(folder + "/r.h5", "w") as f:
                f["d"] = np.array([((1, 2), (3, 4))], kind)
            group(folder + "/r.zarr")
            for a, b, status in (("<", ">", 0), ("<", "<", 0), (">", ">", 1)):  # as in the file, or in the machine's order
                array(
                    folder + "/r.zarr/d",
                    [1],
                    [1],
                    struct_type,
                    [BYTES],
                    {"a": [0] * 4, "b": [0] * 4},
                    {"c/0": struct.pack(a + "2h", 1, 2) + struct.pack(b + "2h", 3, 4)},
                    hdf5_type={
                        "class": "compound",
                        "fields": [
                            {"name": name, "type": {"class": "array", "shape": [2], "base": base}}
                            for name, base in (("a", "int16"), ("b", {"class": "int16", "endian": "big"}))
                        ],
                    },
                )
                assert self.verify(folder + "/r.h5", folder + "/r.zarr")[0] == status, (a, b)

    def test_sequences_of_all_kinds_and_long_names(self):
        inner = h5py.h5t.vlen_create(h5py.h5t.vlen_create(h5py.h5t.STD_I16LE))
        pairs = h5py.h5t.vlen_create(h5py.h5t.array_create(h5py.h5t.STD_I32BE, (2,)))
        long = "n" * 300, "n" * 299 + "m", "%" * 100
        with tempfile.TemporaryDirectory() as folder:
            source, store = folder + "/q.h5", folder + "/q.zarr"
            with h5py.File(source, "w") as f:
                for name in long:
                    f["g/" + name] = np.arange(3)
                f["wide"] = np.array([(1, "one")], np.dtype([("k" * 260, "<i4"), ("s", h5py.string_dtype())]))
                f.create_dataset("texts", (2,), h5py.vlen_dtype(h5py.string_dtype()))[0] = ["a", "bc"]
                d = h5py.Dataset(h5py.h5d.create(f.id, b"inner", inner, h5py.h5s.create_simple((3,))))
                d[0] = np.array([np.array([1, 2], "i2"), np.array([3], "i2")], object)
                letters = ctypes.create_string_buffer(b"word")
                rows = struct.pack("<iQ", 7, ctypes.addressof(letters)) + struct.pack("<iQ", 8, ctypes.addressof(letters))
                member = h5py.h5t.create(h5py.h5t.COMPOUND, 12)
                member.insert(b"n", 0, h5py.h5t.STD_I32LE)
                member.insert(b"s", 4, h5py.h5t.py_create(h5py.string_dtype(), logical=True))
                write_sequences(f, "pairs", pairs, [struct.pack(">4i", 1, 2, 3, 4), b"", struct.pack(">2i", 5, 6)], 8)
                write_sequences(f, "rows", h5py.h5t.vlen_create(member), [rows, rows[:12]], 12)
            r = run("convert", "--quiet", source, store)
            assert r.returncode == 0, r.stderr
            status, report = self.verify(source, store)
            assert (status, report["findings"], report["only_in_store"]) == (0, [], [])
            assert report["datasets"]["equal"] == len(long) + 5
            for key in (
                "inner/values/c/0",
                "inner/offsets_1/c/0",
                "inner/offsets/c/0",
                "pairs/values/c/0/0",
                "texts/values/c/0",
                "rows/values/s/c/0",
                "g/" + next(n for n in os.listdir(store + "/g") if "~" in n) + "/c/0",
            ):
                at = os.path.getsize(store + "/" + key) - 1
                flip(store, key, at)
                assert self.outcomes(source, store)[0] == 1, key
                flip(store, key, at)

    def test_undefined_elements_are_never_called_equal_nor_different(self):
        with tempfile.TemporaryDirectory() as folder:
            with h5py.File(folder + "/n.h5", "w") as f:
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plist.set_chunk((2,))
                plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
                d = h5py.h5d.create(f.id, b"d", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((6,)), plist)
                h5py.Dataset(d)[2:4] = [5, 6]
            group(folder + "/n.zarr")
            array(folder + "/n.zarr/d", [6], [2], "int32", [LITTLE], 0, {"c/1": struct.pack("<2i", 5, 6)})
            assert self.verify(folder + "/n.h5", folder + "/n.zarr")[0] == 0
            flip(folder + "/n.zarr", "d/c/1", 4)
            status, report = self.verify(folder + "/n.h5", folder + "/n.zarr")
            assert (status, report["findings"][0]["index"]) == (1, [3])

    def test_a_damaged_source_chunk_is_unreadable_and_the_rest_is_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            with h5py.File(folder + "/d.h5", "w") as f:
                d = f.create_dataset("d", (4,), "<i4", chunks=(2,), compression="gzip")
                d[...] = 1
                d.id.write_direct_chunk((0,), b"not a zlib stream")
            group(folder + "/d.zarr")
            array(folder + "/d.zarr/d", [4], [2], "int32", [LITTLE], 0, {"c/1": struct.pack("<2i", 1, 1)})
            status, report = self.verify(folder + "/d.h5", folder + "/d.zarr")
            assert (status, report["findings"][0]["outcome"]) == (1, "unreadable")
            assert report["elements"] == {"equal": 2, "unchecked": 2}
            flip(folder + "/d.zarr", "d/c/1", 0)
            assert self.verify(folder + "/d.h5", folder + "/d.zarr")[1]["findings"][0]["outcome"] == "differs"

    def test_a_huge_sparse_dataset_takes_no_time(self):
        with tempfile.TemporaryDirectory() as folder:
            shape = (1 << 20, 1 << 20)
            with h5py.File(folder + "/h.h5", "w") as f:
                d = f.create_dataset("d", shape, "<f4", chunks=(256, 256), fillvalue=2)
                d[1000000, 5] = 1
            group(folder + "/h.zarr")
            chunk = np.full((256, 256), 2, "<f4")
            array(folder + "/h.zarr/d", list(shape), [256, 256], "float32", [LITTLE], 2.0, {})
            status, report = self.verify(folder + "/h.h5", folder + "/h.zarr")
            assert (status, report["findings"][0]["index"]) == (1, [1000000, 5])
            chunk[1000000 % 256, 5] = 1
            array(
                folder + "/h.zarr/d",
                list(shape),
                [256, 256],
                "float32",
                [LITTLE],
                2.0,
                {f"c/{1000000 // 256}/0": chunk.tobytes()},
            )
            status, report = self.verify(folder + "/h.h5", folder + "/h.zarr")
            assert (status, report["elements"]["equal"]) == (0, 1 << 40)
            chunk[7, 7] = 3
            array(folder + "/h.zarr/d", list(shape), [256, 256], "float32", [LITTLE], 2.0, {"c/9/11": chunk.tobytes()})
            assert self.verify(folder + "/h.h5", folder + "/h.zarr")[1]["findings"][0]["index"][0] == 9 * 256 + 7

    def test_a_chunk_that_decompresses_without_end_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with h5py.File(folder + "/b.h5", "w") as f:
                f["d"] = np.zeros(10, "u1")
            group(folder + "/b.zarr")
            array(folder + "/b.zarr/d", [10], [10], "uint8", [BYTES, GZIP], 0, {"c/0": gzip.compress(bytes(50 << 20))})
            status, report = self.verify(folder + "/b.h5", folder + "/b.zarr")
            assert status == 1
            assert "more than it can hold" in report["findings"][0]["reason"]

    def test_what_cannot_be_opened_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/no.h5", "wb") as f:
                f.write(b"not HDF5")
            for source, store in (
                (folder + "/missing.h5", self.store),
                (folder + "/no.h5", self.store),
                (self.source, folder + "/missing.zarr"),
                (self.source, folder),
                (self.source, folder + "/no.h5"),
                (folder, self.store),
            ):
                r = run("verify", source, store)
                assert (r.returncode, r.stdout) == (1, b""), (source, store)
                assert is_one_sentence(r.stderr), r.stderr
