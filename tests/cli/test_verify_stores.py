# SPDX-License-Identifier: BSL-1.0
"""`zarrbits verify` and `zarrbits inspect` on stores in one .zip file, and on shards:
written by Python's zipfile and by hand, and damaged."""

import copy
import gzip
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import zipfile
import zlib

import h5py
import numpy as np
import pytest

from command import COMMAND, is_one_sentence, run
from stores_by_hand import (
    BYTES,
    CRC32C,
    DATASETS,
    GZIP,
    LITTLE,
    array,
    crc32c,
    flip,
    group,
    strings,
    write_json,
    write_source,
    write_store,
)

GOLDEN = os.path.join(os.path.dirname(os.environ["ZARRBITS_GOLDEN"]), "shards.json")


def verify(source, store):
    r = run("verify", "--json", source, store)
    report = json.loads(r.stdout)
    assert report["exit_status"] == r.returncode, r.returncode
    return r.returncode, report


def files_of(folder):
    return {
        os.path.relpath(os.path.join(root, name), folder): os.path.join(root, name)
        for root, _, names in sorted(os.walk(folder))
        for name in sorted(names)
    }


def zip_store(folder, path, compression=zipfile.ZIP_STORED, comment=b"", only=None):
    with zipfile.ZipFile(path, "w") as z:
        for key, file in files_of(folder).items():
            with open(file, "rb") as f:
                z.writestr(key, f.read(), compression if only is None or key == only else zipfile.ZIP_STORED)
        z.comment = comment


def zip64(members, path, **wrong):
    """Every size and offset in the zip64 fields, as files of more than 4 GiB have them. `wrong`:
    values that are not the right ones."""
    full = 0xFFFFFFFF
    with open(path, "wb") as f:
        entries = b""
        for name, data in members.items():
            at, crc, key = f.tell(), zlib.crc32(data), name.encode()
            extra = struct.pack("<HHQQ", 1, 16, len(data), len(data))
            f.write(
                struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 33, crc, full, full, len(key), len(extra)) + key + extra + data
            )
            extra = struct.pack(
                "<HHQQQ", 1, 24, wrong.get("size", len(data)), wrong.get("size", len(data)), wrong.get("header", at)
            )[: wrong.get("extra", 28)]
            entries += (
                struct.pack(
                    "<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 0, 0, 33, crc, full, full, len(key), len(extra), 0, 0, 0, 0, full
                )
                + key
                + extra
            )
        start = f.tell()
        f.write(entries)
        end = f.tell()
        count = wrong.get("count", len(members))
        f.write(
            struct.pack(
                "<4sQHHIIQQQQ",
                b"PK\6\6",
                44,
                45,
                45,
                0,
                0,
                count,
                count,
                wrong.get("list_size", len(entries)),
                wrong.get("list", start),
            )
        )
        f.write(struct.pack("<4sIQI", b"PK\6\7", wrong.get("disk", 0), wrong.get("end", end), 1))
        f.write(struct.pack("<4s4HIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, full, full, 0))


class TestZip:
    @classmethod
    def setup_class(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        cls.source, cls.store, cls.zip = (cls.folder + "/" + name for name in ("s.h5", "s.zarr", "s.zip"))
        write_source(cls.source)
        write_store(cls.store)
        zip_store(cls.store, cls.zip, comment=b"a comment of some length")

    @classmethod
    def teardown_class(cls):
        cls.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_all_is_compared_as_in_a_directory(self):
        status, report = verify(self.source, self.zip)
        assert (status, report["findings"], report["datasets"]["equal"]) == (0, [], DATASETS)
        assert report["elements"] == verify(self.source, self.store)[1]["elements"]

    def test_inspect_tells_the_same_of_both(self):
        trees = [json.loads(run("inspect", "--json", store).stdout)["trees"][0] for store in (self.store, self.zip)]
        assert trees[0]["nodes"] == trees[1]["nodes"]
        assert (trees[0]["bytes"], trees[0]["files"]) == (trees[1]["bytes"], trees[1]["files"])
        assert len(trees[0]["nodes"]) > DATASETS

    def test_what_convert_writes_is_equal(self):
        target = self.path("c.zip")
        assert run("convert", "--quiet", self.source, target).returncode == 0
        status, report = verify(self.source, target)
        assert (status, report["findings"], report["datasets"]["equal"]) == (0, [], DATASETS)
        tree = json.loads(run("inspect", "--json", target).stdout)["trees"][0]
        assert tree["nodes"][0] == {"path": "/", "kind": "group"} | tree["nodes"][0]

    def test_a_changed_byte_is_found_where_it_is(self):
        target = self.path("f.zip")
        shutil.copy(self.zip, target)
        with zipfile.ZipFile(target) as z:
            where = z.getinfo("g/nan/c/0")
        flip(self.folder, "f.zip", where.header_offset + 30 + len(where.filename))
        status, report = verify(self.source, target)
        assert (status, [f["path"] for f in report["findings"]]) == (1, ["/g/nan"])
        assert "checksum of the member g/nan/c/0" in report["findings"][0]["reason"]

    def test_deflated_members_are_read(self):
        target = self.path("deflated.zip")
        zip_store(self.store, target, zipfile.ZIP_DEFLATED)
        status, report = verify(self.source, target)
        assert (status, report["findings"]) == (0, [])
        out = self.path("deflated.zarr")
        assert run("convert", "-q", target, out).returncode == 0
        assert verify(self.source, out)[0] == 0

    def test_a_deflated_member_that_is_damaged(self):
        target = self.path("damaged.zip")
        zip_store(self.store, target, zipfile.ZIP_DEFLATED, only="g/nan/c/0")
        with zipfile.ZipFile(target) as z:
            member = z.getinfo("g/nan/c/0")
        for at in range(4):
            shutil.copy(target, self.path("f.zip"))
            flip(self.folder, "f.zip", member.header_offset + 30 + len(member.filename) + at)
            status, report = verify(self.source, self.path("f.zip"))
            assert status == 1 and [f["path"] for f in report["findings"]] == ["/g/nan"], at

    def test_a_deflated_member_that_claims_to_be_large(self):
        """Its size is in the central directory, and no stream of these bytes can have it."""
        target = self.path("false.zip")
        zip_store(self.store, target, zipfile.ZIP_DEFLATED, only="g/nan/c/0")
        content = bytearray(open(target, "rb").read())
        at = content.rfind(b"g/nan/c/0") - 46
        content[at + 24 : at + 28] = struct.pack("<I", 1 << 29)
        with open(target, "wb") as f:
            f.write(content)
        status, report = verify(self.source, target)
        assert status == 1 and "false size" in report["findings"][0]["reason"], report["findings"]

    def test_members_with_another_compression_are_told_and_not_compared(self):
        target = self.path("d.zip")
        zip_store(self.store, target, zipfile.ZIP_BZIP2, only="g/nan/c/0")
        status, report = verify(self.source, target)
        assert (status, [(f["path"], f["outcome"]) for f in report["findings"]]) == (3, [("/g/nan", "unchecked")])
        assert "compressed" in report["findings"][0]["reason"]
        zip_store(self.store, target, zipfile.ZIP_BZIP2)
        for command in (["verify", self.source, target], ["inspect", target]):
            r = run(*command)
            assert (r.returncode, r.stdout) == (1, b""), command
            assert is_one_sentence(r.stderr) and "compressed" in r.stderr, r.stderr

    def test_the_last_of_two_members_with_one_name_counts(self):
        target = self.path("t.zip")
        shutil.copy(self.zip, target)
        with zipfile.ZipFile(target, "a") as z:
            with pytest.warns(UserWarning):  # the same name again
                z.writestr("g/scalar/c", struct.pack("<f", 3))
        assert verify(self.source, target)[1]["findings"][0]["store_value"] == "3"

    def test_sizes_and_offsets_of_zip64(self):
        with zipfile.ZipFile(self.zip) as z:
            members = {name: z.read(name) for name in z.namelist()}
        target = self.path("64.zip")
        zip64(members, target)
        assert verify(self.source, target)[1]["datasets"]["equal"] == DATASETS
        for wrong in (
            {"size": 1 << 40},
            {"size": 2**64 - 1},
            {"header": 1 << 40},
            {"header": 2**64 - 1},
            {"extra": 12},
            {"extra": 0},
            {"count": 1 << 60},
            {"count": 10**6},
            {"list_size": 1 << 62},
            {"list": 2**64 - 8},
            {"list": 0, "list_size": 2**64 - 1},
            {"end": 2**64 - 60},
            {"disk": 2},
        ):
            zip64(members, target, **wrong)
            r = run("verify", self.source, target)
            assert (r.returncode, r.stdout) == (1, b""), wrong
            assert is_one_sentence(r.stderr), r.stderr

    def test_what_was_cut_off_is_one_sentence(self):
        with open(self.zip, "rb") as f:
            whole = f.read()
        for size in [*range(0, 60, 7), *range(60, len(whole), len(whole) // 25), len(whole) - 1]:
            with open(self.path("cut.zip"), "wb") as f:
                f.write(whole[:size])
            r = run("verify", self.source, self.path("cut.zip"))
            assert (r.returncode, r.stdout) == (1, b""), size
            assert is_one_sentence(r.stderr), r.stderr

    def test_no_changed_byte_of_the_list_is_a_crash(self):
        with open(self.zip, "rb") as f:
            whole = f.read()
        start = whole.index(b"PK\1\2")
        dice = random.Random(5)
        statuses = set()
        for _ in range(150):
            changed = bytearray(whole)
            for _ in range(dice.randrange(1, 4)):
                changed[dice.randrange(start, len(whole))] = dice.choice((0, 255, dice.randrange(256)))
            with open(self.path("bad.zip"), "wb") as f:
                f.write(changed)
            statuses.add(run("verify", self.source, self.path("bad.zip")).returncode)
            statuses.add(run("inspect", self.path("bad.zip")).returncode)
        assert statuses <= {0, 1, 3}
        assert 1 in statuses


def sharding(chunk, codecs=None, index=None, where="end"):
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": chunk,
            "codecs": codecs or [LITTLE],
            "index_codecs": index or [LITTLE, CRC32C],
            "index_location": where,
        },
    }


NONE = 2**64 - 1


class TestShards:
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path):
        self.folder = str(tmp_path)
        self.source, self.store = self.folder + "/s.h5", self.folder + "/s.zarr"
        group(self.store)

    def golden(self):
        with open(GOLDEN) as f:
            golden = json.load(f)
        with h5py.File(self.source, "w") as f:
            for name, stored in golden["arrays"].items():
                d = f.create_dataset(name, data=np.array(golden["values"], "<i2"), chunks=(2, 2), fillvalue=-5)
                assert d.shape == (6, 8)
                write_json(f"{self.store}/{name}", stored["zarr.json"])
                for key, data in stored["objects"].items():
                    os.makedirs(os.path.dirname(f"{self.store}/{name}/{key}"), exist_ok=True)
                    with open(f"{self.store}/{name}/{key}", "wb") as out:
                        out.write(bytes.fromhex(data))
        return golden

    def only_finding(self):
        status, report = verify(self.source, self.store)
        assert len(report["findings"]) == 1, report
        return status, report["findings"][0]

    def test_golden_shards_with_the_index_at_either_end(self):
        self.golden()
        status, report = verify(self.source, self.store)
        assert (status, report["findings"], report["datasets"]["equal"], report["elements"]) == (
            0,
            [],
            2,
            {"equal": 96, "unchecked": 0},
        )

    def test_each_damage_of_a_shard_is_found(self):
        golden = self.golden()
        for where in ("end", "start"):
            original = bytes.fromhex(golden["arrays"][where]["objects"]["c/0/0"])
            start = len(original) - 68 if where == "end" else 0  # 4 chunks of 16 bytes, and the checksum
            index = struct.unpack("<8Q", original[start : start + 64])
            assert index[2:4] == (NONE, NONE)  # the missing one

            def with_index(changes):
                changed = list(index)
                for k, v in changes.items():
                    changed[k] = v
                packed = struct.pack("<8Q", *changed)
                return original[:start] + packed + crc32c(packed) + original[start + 68 :]

            def with_flipped(at):
                return original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :]

            cases = {
                "the index": (with_flipped(start), "crc32c checksum"),
                "the checksum of the index": (with_flipped(start + 64), "crc32c checksum"),
                "an offset behind the end": (with_index({0: len(original)}), "outside its shard"),
                "an offset that overflows": (with_index({0: NONE - 1}), "outside its shard"),
                "a length that overflows": (with_index({1: NONE - 1}), "outside its shard"),
                "half of a missing chunk": (with_index({0: NONE}), "outside its shard"),
                "a length that is one too short": (with_index({1: index[1] - 1}), "checksum"),
                "two chunks exchanged": (with_index({4: index[6], 5: index[7], 6: index[4], 7: index[5]}), "differs at [2, 0]"),
                "a chunk lost": (with_index({6: NONE, 7: NONE}), "differs at [2, 2]: source 19, store -5"),
                "a chunk that was missing": (with_index({2: index[0], 3: index[1]}), "differs at [0, 2]: source -5, store 1"),
                "a chunk's byte": (with_flipped(index[0]), "chunk [0, 0]: the crc32c checksum"),
                "the end": (original[:-1], "c"),
                "all but the index": (original[:67], "shorter than its index"),
                "everything": (b"", "shorter than its index"),
            }
            for name, (data, sentence) in cases.items():
                with open(f"{self.store}/{where}/c/0/0", "wb") as f:
                    f.write(data)
                status, finding = self.only_finding()
                assert (status, finding["path"], finding["outcome"]) == (1, "/" + where, "differs")
                assert sentence in finding["reason"]
            with open(f"{self.store}/{where}/c/0/0", "wb") as f:
                f.write(original)

    def test_what_is_not_supported_says_so(self):
        golden = self.golden()
        wanted = golden["arrays"]["end"]["zarr.json"]
        nested = sharding([2, 2], [sharding([1, 1])])
        for codecs, sentence in (
            ([nested], "shards inside shards"),
            ([sharding([2, 2], index=[sharding([1, 1, 1])])], "shards inside shards"),
            ([sharding([2, 2], index=[LITTLE, GZIP])], "an index of shards that is compressed"),
            ([{"name": "transpose", "configuration": {"order": [1, 0]}}, sharding([2, 2])], "a transpose of whole shards"),
        ):
            metadata = copy.deepcopy(wanted)
            metadata["codecs"] = codecs
            write_json(self.store + "/end", metadata)
            status, finding = self.only_finding()
            assert (status, finding["outcome"]) == (3, "unchecked")
            assert sentence in finding["reason"]
        for codecs, sentence in (
            ([sharding([3, 2])], "do not divide"),
            ([sharding([2])], "number of dimensions"),
            ([sharding([0, 2])], "do not divide"),
            ([sharding([2, 2], where="middle")], "neither start nor end"),
            ([sharding([2, 2], codecs=[CRC32C])], "before the array to bytes"),
        ):
            metadata["codecs"] = codecs
            write_json(self.store + "/end", metadata)
            status, finding = self.only_finding()
            assert (status, finding["outcome"]) == (1, "differs")
            assert sentence in finding["reason"]

    def test_other_forms_of_shards(self):
        x = np.arange(8, dtype="<i4")
        halves = [x[:4].tobytes(), x[4:].tobytes()]
        index = struct.pack("<4Q", 16, 16, 0, 16)
        big = struct.pack(">4Q", 16, 16, 0, 16)
        body = halves[1] + halves[0]
        gzipped = gzip.compress
        BIG = {"name": "bytes", "configuration": {"endian": "big"}}
        shards = {
            "no_checksum": ([sharding([4], index=[LITTLE])], body + index),
            "big_index": ([sharding([4], index=[BIG, CRC32C])], body + big + crc32c(big)),
            "then_gzip": ([sharding([4]), GZIP], gzipped(body + index + crc32c(index))),
            "gap": ([sharding([4])], body + b"gap" + index + crc32c(index)),
        }
        letters = strings("a", "b"), strings("c", "")
        places = struct.pack("<4Q", 0, len(letters[0]), len(letters[0]), len(letters[1]))
        with h5py.File(self.source, "w") as f:
            for name, (codecs, data) in shards.items():
                f.create_dataset(name, data=x, chunks=(4,))
                array(f"{self.store}/{name}", [8], [8], "int32", codecs, 0, {"c/0": data})
            f.create_dataset("text", data=["a", "b", "c"], dtype=h5py.string_dtype(), chunks=(2,), maxshape=(None,))
            array(
                f"{self.store}/text",
                [3],
                [4],
                "string",
                [sharding([2], [{"name": "vlen-utf8"}])],
                "",
                {"c/0": b"".join(letters) + places + crc32c(places)},
                maxshape=[None],
            )
            f["scalar"] = np.int8(7)
            place = struct.pack("<2Q", 0, 1)
            array(f"{self.store}/scalar", [], [], "int8", [sharding([], [BYTES])], 0, {"c": b"\7" + place + crc32c(place)})
        status, report = verify(self.source, self.store)
        assert (status, report["findings"], report["datasets"]["equal"]) == (0, [], len(shards) + 2)

    def test_a_shard_larger_than_the_memory_is_read_in_pieces(self):
        row, rows, far = 1 << 20, 4096, 3 << 30
        with h5py.File(self.source, "w") as f:
            d = f.create_dataset("d", (rows, row), "u1", chunks=(1, row))
            d[0], d[4095] = 1, 2
        index = np.full((rows, 2), NONE, "<u8")
        index[0], index[4095] = (0, row), (far, row)
        array(self.store + "/d", [rows, row], [rows, row], "uint8", [sharding([1, row], [BYTES])], 0, {})
        os.makedirs(self.store + "/d/c/0")
        with open(self.store + "/d/c/0/0", "wb") as f:  # a file with a hole
            f.write(b"\1" * row)
            f.seek(far)
            f.write(b"\2" * row + index.tobytes() + crc32c(index.tobytes()))
        status, report = verify(self.source, self.store)
        assert (status, report["findings"], report["elements"]) == (0, [], {"equal": rows * row, "unchecked": 0})
        process = subprocess.Popen([COMMAND, "verify", self.source, self.store], stdout=subprocess.DEVNULL)
        _, process.returncode, used = os.wait4(process.pid, 0)
        assert used.ru_maxrss < 600 << 10  # KiB
        flip(self.store, "d/c/0/0", far + 5)
        assert self.only_finding()[1]["index"] == [4095, 5]

    def test_a_huge_sparse_array_of_shards_takes_no_time(self):
        shape = (1 << 20, 1 << 20)
        with h5py.File(self.source, "w") as f:
            f.create_dataset("d", shape, "<i2", chunks=(64, 64))[700, 5] = 9
        chunk = np.zeros((64, 64), "<i2")
        chunk[700 % 64, 5] = 9
        index = np.full((4, 4, 2), NONE, "<u8")
        index[700 // 64 % 4, 0] = (0, chunk.nbytes)
        data = chunk.tobytes() + index.tobytes() + crc32c(index.tobytes())
        array(self.store + "/d", list(shape), [256, 256], "int16", [sharding([64, 64])], 0, {"c/2/0": data})
        status, report = verify(self.source, self.store)
        assert (status, report["elements"]["equal"]) == (0, 1 << 40)
        os.rename(self.store + "/d/c/2", self.store + "/d/c/3")
        assert self.only_finding()[1]["outcome"] == "differs"
