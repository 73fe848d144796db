# SPDX-License-Identifier: BSL-1.0
"""zarrbits digest prints what an implementation by numpy and hashlib makes of the values."""

import json
import os
import pathlib
import random
import re
import threading

import h5py
import numpy as np
import pytest

from harness import convert, refused, run
from value_digests import P, array_digest, array_sums, tree_digest

SEED = int(os.environ.get("ZARRBITS_SEED", 57))


def digests(name, *options, status=0):
    """The digests of the arrays of a file or store, by their paths; "" is that of all together."""
    report = json.loads(run("digest", "--json", "-q", name, *options, status=status).stdout)
    assert report["exit_status"] == status
    return {a["path"]: a["digest"] for a in report["arrays"]} | {"": report["digest"]}


def numbers(dtype, *shape):
    raw = np.random.default_rng(SEED).integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "u1")])
TEXTS = np.array([["a", "", "yö"], ["\U0001f600", "b" * 100, "a"]], object)
# values to write, options of h5py, and the values that count
CASES = {
    **{f"{kind}{size}": (numbers(f"<{kind}{size}", 7, 11), {}, None) for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"f{size}": (numbers(f"<f{size}", 7, 11), {}, None) for size in (2, 4, 8)},
    **{f"big_{dtype[1:]}": (numbers(dtype, 5, 6), {"chunks": (2, 5)}, None) for dtype in (">i2", ">u4", ">f8")},
    "complex64": (numbers("<c8", 4, 3), {}, None),
    "complex128": (numbers("<c16", 4, 3), {"chunks": (3, 2)}, None),
    "bool": (np.array([[True, False, True]] * 3), {"chunks": (2, 2)}, None),
    "scalar": (np.float32(3.5), {}, None),
    "scalar_text": (np.array("text", object), {"dtype": h5py.string_dtype()}, None),
    "vector": (numbers("<u2", 1001), {"chunks": (37,), "compression": "gzip", "shuffle": True}, None),
    "long": (numbers("<u1", 70001), {"chunks": (6001,)}, None),
    "cube": (numbers("<i2", 5, 6, 7), {"chunks": (2, 3, 3), "compression": "lzf"}, None),
    "four": (numbers("<f4", 3, 4, 5, 6), {"chunks": (2, 3, 4, 5), "fletcher32": True}, None),
    "odd_rows": (numbers("<u1", 9, 13), {"chunks": (4, 5)}, None),
    "empty": (np.zeros((0, 3), "<f4"), {"chunks": (1, 3), "maxshape": (None, 3)}, None),
    "empty_rows": (np.zeros((3, 0), "<i8"), {}, None),
    "nan": (np.array([np.nan, -np.nan, np.inf, -0.0, 0.0], "<f8"), {}, None),
    "nan_payload": (np.array([0x7FC00001, 0x7F800001, 0xFFC00000], "<u4").view("<f4"), {}, None),
    "minus_zero": (np.array([-0.0], "<f4"), {}, None),
    "record": (numbers("V13", 6).view(RECORD).reshape(6), {"chunks": (4,)}, None),
    "text": (TEXTS, {"dtype": h5py.string_dtype(), "chunks": (1, 2)}, None),
    "fixed_text": (np.array([b"ab", b"abcde", b""]), {}, np.array(["ab", "abcde", ""], object)),
    "opaque": (np.array([b"abc", b"de\0"], "V3"), {}, np.frombuffer(b"abcde\0", "u1").reshape(2, 3)),
}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    path = tmp_path_factory.mktemp("digest") / "in.h5"
    with h5py.File(path, "w") as f:
        for name, (values, options, _) in CASES.items():
            f.create_dataset(name, data=values, **options)
    return path


@pytest.fixture(scope="module")
def expected():
    values = {"/" + name: written if counted is None else counted for name, (written, _, counted) in CASES.items()}
    each = {path: array_digest(v) for path, v in values.items()}
    return each | {"": tree_digest(each)}


def different(actual, wanted):
    return sorted(path for path in actual.keys() | wanted.keys() if actual.get(path) != wanted.get(path))


def test_digest_of_a_file_is_that_of_the_independent_implementation(example, expected):
    assert not different(digests(example), expected)


def test_vectors_of_the_reference_are_those_of_both_implementations(tmp_path):
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/reference/digest.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]*)\| (\w+) \| ([\dx]*) ?\| `(\w{64})` \|$", page, re.M)
    with h5py.File(tmp_path / "in.h5", "w") as f:
        for number, (words, data_type, shape, digest) in enumerate(rows):
            values = np.array(words.split(), object if data_type == "string" else "f8")
            values = (values if data_type == "string" else values.astype(data_type)).reshape(
                [int(n) for n in shape.split("x") if n]
            )
            assert array_digest(values) == digest
            f.create_dataset(str(number), data=values, dtype=h5py.string_dtype() if data_type == "string" else None)
    assert len(rows) > 8 and tree_digest({"/a": rows[0][3], "/b/c": rows[1][3]}) in page
    actual = digests(tmp_path / "in.h5")
    assert [actual[f"/{number}"] for number in range(len(rows))] == [digest for *_, digest in rows]


def test_threads_and_memory_do_not_matter(example, expected):
    assert not different(digests(example, "--threads", 1, "--memory", "16M"), expected)
    assert not different(digests(example, "--threads", 7), expected)


@pytest.mark.parametrize(
    "options", [[], ["--chunk", "2"], ["--shard", "64K"], ["--codec", "packbits"], ["--compress", "zstd:3"]], ids=" ".join
)
def test_digest_of_a_converted_store_is_that_of_its_source(example, expected, tmp_path, options):
    convert(example, tmp_path / "out.zarr", *options)
    assert not different(digests(tmp_path / "out.zarr"), expected)


def test_missing_chunks_are_fill_values(tmp_path):
    rng = np.random.default_rng(SEED)
    filled = {
        "f4": ((20, 30), (7, 8), np.float32(-2.5)),
        "i2": ((100,), (9,), np.int16(7)),
        "u1": ((5, 6, 7), (2, 2, 2), np.uint8(255)),
        "f8": ((9, 11), (2, 11), np.nan),
        "none": ((50, 3), (4, 2), np.int32(0)),
        "all": ((10, 10), (3, 3), np.float64(1e300)),
    }
    wanted = {}
    with h5py.File(tmp_path / "in.h5", "w") as f:
        for name, (shape, chunks, fill) in filled.items():
            dtype = name if name[1:].isdigit() else fill.dtype
            d = f.create_dataset(name, shape, dtype, chunks=chunks, fillvalue=fill)
            if name != "all":
                part = tuple(slice(n // 3, n // 2 + 1) for n in shape)
                d[part] = rng.integers(0, 100, d[part].shape)
            wanted["/" + name] = array_digest(d[...])
        record = f.create_dataset("record", (11,), RECORD, chunks=(2,), fillvalue=np.array((1, 2.5, 3), RECORD))
        record[3] = (4, 5, 6)
        wanted["/record"] = array_digest(record[...])
        text = f.create_dataset("text", (9,), h5py.string_dtype(), chunks=(2,), fillvalue="none")
        text[4] = "some"
        wanted["/text"] = array_digest(np.array([t.decode() for t in text[...]], object))
    wanted[""] = tree_digest(wanted)
    assert not different(digests(tmp_path / "in.h5"), wanted)
    for options in ([], ["--shard", "1K"], ["--chunk", "5x5", "--write-empty-chunks"]):
        convert(tmp_path / "in.h5", tmp_path / "out.zarr", "--overwrite", *options)
        assert not different(digests(tmp_path / "out.zarr"), wanted), options


def test_any_nan_is_one_value_and_never_equal_to_bits(tmp_path):
    bits = np.array([[0x7FC00000, 0x7F800001, 0xFFC01234, 0x3F800000]], "<u4")
    one = np.array([[0x7FC00000] * 3 + [0x3F800000]], "<u4").view("<f4")
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["f4"] = bits.view("<f4")
        f["big"] = bits.view("<f4").astype(">f4")
        f["f8"] = np.array([np.nan, -np.nan, 1.5])
        f["f2"] = np.array([0x7E01, 0xFC01], "<u2").view("<f2")
        f["i4"] = bits
    any_nan = digests(tmp_path / "in.h5", "--nan", "any")
    assert any_nan["/f4"] == array_digest(one, "float32 nan=any") == any_nan["/big"]
    assert any_nan["/f8"] == array_digest(np.array([np.nan, np.nan, 1.5]), "float64 nan=any")
    assert any_nan["/f2"] == array_digest(np.array([np.nan, np.nan], "<f2"), "float16 nan=any")
    exact = digests(tmp_path / "in.h5")
    assert exact["/i4"] == array_digest(bits) and not set(exact.values()) & set(any_nan.values())
    assert "--nan is bits or any" in refused("digest", "--nan", "no", tmp_path / "in.h5", status=2)


def test_any_change_changes_the_digest(tmp_path):
    """200 random arrays, each with one value changed, two exchanged, transposed, or of another shape, type or name."""
    pick = random.Random(SEED)
    wanted = {}
    cases = os.environ.get("ZARRBITS_CASES", "200")
    with h5py.File(tmp_path / "in.h5", "w") as f:
        for number in range(2000 if cases == "all" else int(cases)):
            shape = [pick.randint(1, 9) for _ in range(pick.randint(1, 4))]
            before = np.random.default_rng(number).integers(0, 100, shape).astype(pick.choice(["u1", "<i2", "<f4", "<f8"]))
            after = before.copy()
            change = pick.choice(["value", "bit", "exchange", "transpose", "shape", "type"])
            flat = after.reshape(-1)
            if change == "value":
                flat[pick.randrange(flat.size)] += 1
            elif change == "bit":
                flat.view("u1")[pick.randrange(flat.nbytes)] ^= 1 << pick.randrange(8)
            elif change == "exchange":
                i, j = pick.randrange(flat.size), pick.randrange(flat.size)
                flat[[i, j]] = flat[[j, i]]
            elif change == "transpose":
                after = np.ascontiguousarray(after.T)
            elif change == "shape":
                after = after.reshape(pick.choice([[-1], [1, *after.shape], [*after.shape, 1]]))
            else:
                after = (
                    after.view(f"u{after.itemsize}")
                    if after.dtype.kind == "f"
                    else after.view(f"f{after.itemsize}" if after.itemsize > 1 else "i1")
                )
            for name, values in (("before", before), ("after", after)):
                chunks = tuple(pick.randint(1, n) for n in values.shape)
                f.create_dataset(f"{number}/{name}", data=values, chunks=chunks)
                wanted[f"/{number}/{name}"] = values.shape, values.dtype, values.tobytes()
    digest = digests(tmp_path / "in.h5")
    for number in range(len(wanted) // 2):
        a, b = f"/{number}/before", f"/{number}/after"
        assert (digest[a] == digest[b]) == (wanted[a] == wanted[b]), number
    assert len({digest[path] for path in wanted}) == len(set(wanted.values()))


def test_names_count_in_the_digest_of_the_tree(tmp_path):
    for name, path in (("a", "x/y"), ("b", "x/z"), ("c", "xy")):
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            f[path] = np.arange(3)
    lines = run("digest", *(tmp_path / f"{name}.h5" for name in "abc")).stdout.splitlines()
    arrays, trees = lines[::2], lines[1::2]
    assert len({line.split()[0] for line in arrays}) == 1 and len({line.split()[0] for line in trees}) == 3
    assert arrays[0].split()[1:] == ["/x/y", "int64", "3"] and trees[2].split()[1] == str(tmp_path / "c.h5")


def test_appending_leaves_the_old_part_of_the_sum():
    """The sum of a longer array is that of the shorter one and of the new values: so it can be continued without the old ones."""
    whole = numbers("<f4", 12, 5)
    new = whole.copy()
    new[:7] = 0
    short = np.zeros_like(whole)
    short[:7] = whole[:7]
    assert array_sums(whole) == [(a + b) % P for a, b in zip(array_sums(short), array_sums(new))]
    assert array_sums(whole[:7]) == array_sums(short)


def test_what_has_no_digest_is_said(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["good"] = np.arange(3)
        layout = h5py.VirtualLayout((3,), "i4")
        layout[:] = h5py.VirtualSource(tmp_path / "missing.h5", "x", (3,))
        f.create_virtual_dataset("bad", layout)
    done = run("digest", tmp_path / "in.h5", status=3)
    assert len(done.stdout.splitlines()) == 1 and 'no digest of "/bad"' in done.stderr
    assert digests(tmp_path / "in.h5", status=3)[""] is None
    assert digests(tmp_path / "in.h5", "--exclude", "/bad")[""] == tree_digest({"/good": array_digest(np.arange(3))})
    assert "matches" in refused("digest", "--include", "/none", tmp_path / "in.h5")


def test_a_damaged_chunk_is_an_error(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=np.arange(1000), chunks=(100,), compression="gzip", fletcher32=True)
        place = f["v"].id.get_chunk_info(4)
    convert(tmp_path / "in.h5", tmp_path / "out.zarr", "--checksum", "crc32c")
    for path, offset in ((tmp_path / "in.h5", place.byte_offset + 20), (tmp_path / "out.zarr/v/c/4", 20)):
        damaged = bytearray(path.read_bytes())
        damaged[offset] ^= 1
        path.write_bytes(damaged)
    assert 'chunk [4] of dataset "/v"' in refused("digest", tmp_path / "in.h5")
    assert 'chunk [4] of array "/v"' in refused("digest", tmp_path / "out.zarr")


def test_a_store_that_changes_while_it_is_read_has_no_digest(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=np.arange(2_000_000), chunks=(5000,))
    convert(tmp_path / "in.h5", tmp_path / "out.zarr")
    chunks = [p for p in (tmp_path / "out.zarr/v/c").iterdir() if p.is_file()]
    over = threading.Event()

    def touch():
        number = 0
        while not over.is_set():
            for chunk in chunks:
                number += 1
                os.utime(chunk, ns=(number, number))

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        assert "was changed while it was read" in refused("digest", tmp_path / "out.zarr")
    finally:
        over.set()
        thread.join()
    assert digests(tmp_path / "out.zarr")["/v"] == array_digest(np.arange(2_000_000))


def test_a_key_that_no_reader_finds_does_not_count(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("v", data=np.arange(100), chunks=(10,))
    convert(tmp_path / "in.h5", tmp_path / "out.zarr")
    (tmp_path / "out.zarr/v/c/00").write_bytes((tmp_path / "out.zarr/v/c/0").read_bytes())
    assert digests(tmp_path / "out.zarr")["/v"] == array_digest(np.arange(100))
