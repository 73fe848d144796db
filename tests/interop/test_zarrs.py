# SPDX-License-Identifier: BSL-1.0
"""zarrs is the other implementation of packbits. It reads our arrays and we read its.

Where zarrs 0.23.14 is known to differ, the difference itself is asserted (tests named deviation_...): if one of them fails, zarrs
was fixed, and the warning in our documents can go.
"""

import json
import pathlib
import re
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from conftest import chunk_origins, code, packbits, packed_model, run, write_zarr_json

PACKED_SAFELY = [  # data type, configuration: all that zarrs reads back as the text says
    ("bool", {}),
    ("bool", {"padding_encoding": "first_byte"}),
    ("bool", {"padding_encoding": "last_byte"}),
    ("uint16", {"last_bit": 11}),
    ("uint16", {"last_bit": 9, "padding_encoding": "last_byte"}),
    ("uint8", {"first_bit": 2, "last_bit": 6}),
    ("int16", {"first_bit": 4, "last_bit": 15}),
    ("int16", {"last_bit": 11}),
    ("uint32", {"last_bit": 20, "padding_encoding": "first_byte"}),
    ("int64", {"last_bit": 58}),
    ("uint64", {"first_bit": 1, "last_bit": 62}),
]


def bounds(data_type, configuration):
    """(first_bit, kept bits, numpy type) of a test case."""
    dtype = np.dtype("?" if data_type == "bool" else data_type)
    first = configuration.get("first_bit", 0)
    last = configuration.get("last_bit", 0 if data_type == "bool" else 8 * dtype.itemsize - 1)
    return first, last - first + 1, dtype


def some_values(data_type, configuration, count, seed=1):
    """Values that fit, the least and the largest among them."""
    first, bits, dtype = bounds(data_type, configuration)
    rng = np.random.default_rng(seed)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)
    values = rng.integers(low, high, count, dtype=np.int64 if dtype.kind == "i" else np.uint64, endpoint=True).astype(object)
    values[0], values[-1] = low, high
    return np.array([int(v) << first for v in values], dtype=object).astype(dtype)


def ask_chunk(zarrs, what, data_type, codec, count, data, **more):
    return zarrs.ask(what, data_type=data_type, codec=codec, count=count, hex=data.hex(), **more)


@pytest.mark.parametrize("data_type, configuration", PACKED_SAFELY, ids=lambda x: x if isinstance(x, str) else json.dumps(x))
@pytest.mark.parametrize("count", [1, 7, 8, 45, 1000])
def test_same_bytes_and_same_values(zarrs, data_type, configuration, count):
    values = some_values(data_type, configuration, count).tobytes()
    codec = packbits(**configuration)
    ours = code("encode", data_type, codec, count, values)
    theirs = ask_chunk(zarrs, "encode", data_type, codec, count, values)
    assert theirs == ours, zarrs.refused
    assert code("decode", data_type, codec, count, theirs) == values
    assert ask_chunk(zarrs, "decode", data_type, codec, count, ours) == values, zarrs.refused


def test_zarrs_agrees_with_the_golden_vectors(zarrs, vectors):
    """Both encode alike, except for the count byte of whole-byte components: every golden encoding through zarrs."""
    agree = missing_count_byte = 0
    for v in vectors:
        if (
            "error" in v
            or v.get("stage")
            or v["codec"] != "packbits"
            or v["elements"] == 0
            or v.get("truncate")
            or v.get("nonzero_is_true")
        ):
            continue
        configuration = v["configuration"]
        if (
            "start_bit" in configuration
            or "end_bit" in configuration
            or configuration.get("padding_encoding") in ("start_byte", "end_byte")
        ):
            continue  # the older spelling, see below
        data_type = v["data_type"]
        if data_type.startswith("numpy."):
            data_type = {"name": data_type, "configuration": {"unit": "s", "scale_factor": 1}}
        codec = packbits(**configuration)
        got = zarrs.ask("encode", data_type=data_type, codec=codec, count=v["elements"], hex=v["decoded"])
        if got is not None and got.hex() == v["encoded"]:
            agree += 1
            continue
        padding = configuration.get("padding_encoding", "none")
        without = v["encoded"][2:] if padding == "first_byte" else v["encoded"][:-2]
        assert padding != "none" and got is not None and got.hex() == without, f"{v}: {zarrs.refused or got.hex()}"
        missing_count_byte += 1
    assert agree > 800
    assert missing_count_byte > 0, (
        "zarrs writes the count byte of whole-byte components now: take the warning out of the documents"
    )


def test_zarrs_reads_an_array_that_we_converted(zarrs, tmp_path):
    camera = some_values("uint16", {"last_bit": 11}, 60 * 40).reshape(60, 40)
    mask = some_values("bool", {}, 60 * 40, seed=2).reshape(60, 40)
    source = tmp_path / "in.h5"
    with h5py.File(source, "w", libver=("earliest", "v110")) as f:
        f.create_dataset("camera", data=camera, chunks=(32, 16), compression=45429, compression_opts=(12,))
        f.create_dataset("mask", data=mask, chunks=(32, 16), compression=45429)
    run("convert", "--quiet", "--codec", "packbits", source, tmp_path / "out.zarr")
    run("verify", source, tmp_path / "out.zarr")
    for name, values in (("camera", camera), ("mask", mask)):
        meta = json.loads((tmp_path / "out.zarr" / name / "zarr.json").read_text())
        assert [c["name"] for c in meta["codecs"]] == ["packbits"], "the stored chunks already are packbits"
        assert zarrs.ask("read", path=str(tmp_path / "out.zarr" / name)) == values.tobytes(), zarrs.refused


@pytest.mark.parametrize("data_type, configuration", PACKED_SAFELY, ids=lambda x: x if isinstance(x, str) else json.dumps(x))
def test_we_read_an_array_that_zarrs_wrote(zarrs, tmp_path, data_type, configuration):
    """Edge chunks, too: zarrs fills them up to the full size."""
    shape, chunk = (50, 30), (32, 16)
    values = some_values(data_type, configuration, shape[0] * shape[1]).reshape(shape)
    codec = packbits(**configuration)
    folder = tmp_path / "theirs.zarr"
    write_zarr_json(folder, data_type, shape, chunk, codec, False if data_type == "bool" else 0)
    assert zarrs.ask("write", path=str(folder), hex=values.tobytes().hex()) is not None, zarrs.refused
    for origin in chunk_origins(shape, chunk):
        full = np.zeros(chunk, values.dtype)
        part = values[tuple(slice(o, o + c) for o, c in zip(origin, chunk))]
        full[tuple(slice(0, n) for n in part.shape)] = part
        payload = folder.joinpath("c", *(str(o // c) for o, c in zip(origin, chunk))).read_bytes()
        assert code("decode", data_type, codec, full.size, payload) == full.tobytes()
        assert code("encode", data_type, codec, full.size, full.tobytes()) == payload


def test_deviation_full_decode_stops_the_sign_at_the_byte(zarrs):
    codec = packbits(last_bit=11)
    packed = bytes.fromhex("ff0f80")  # -1, -2048
    assert code("decode", "int32", codec, 2, packed) == np.array([-1, -2048], "<i4").tobytes()
    assert ask_chunk(zarrs, "decode", "int32", codec, 2, packed) == bytes.fromhex("ffff000000f80000")


def test_deviation_partial_decode_ignores_first_bit(zarrs):
    codec = packbits(first_bit=2, last_bit=13)
    packed = packed_model([-4, 4, -4], 12, first_bit=2)
    whole = ask_chunk(zarrs, "decode", "int16", codec, 3, packed)
    assert whole == np.array([-4, 4, -4], "<i2").tobytes() == code("decode", "int16", codec, 3, packed)
    assert ask_chunk(zarrs, "slice", "int16", codec, 3, packed, first=1, last=2) == np.array([1], "<i2").tobytes()  # it is 4


def test_deviation_partial_decode_stops_the_sign_of_int4_at_4_bits(zarrs):
    packed = bytes([0x0E])
    assert ask_chunk(zarrs, "decode", "int4", packbits(), 1, packed) == b"\xfe" == code("decode", "int4", packbits(), 1, packed)
    assert ask_chunk(zarrs, "slice", "int4", packbits(), 1, packed, first=0, last=1) == b"\x0e"


def test_deviation_no_count_byte_for_whole_byte_components(zarrs):
    codec = packbits(padding_encoding="first_byte")
    assert code("encode", "uint8", codec, 2, b"\x01\x02") == b"\x00\x01\x02"
    assert ask_chunk(zarrs, "encode", "uint8", codec, 2, b"\x01\x02") == b"\x01\x02"
    assert ask_chunk(zarrs, "decode", "uint8", codec, 2, b"\x00\x01\x02") is None and "size" in zarrs.refused


def test_deviation_values_that_do_not_fit_are_cut_without_a_word(zarrs):
    codec, value = packbits(last_bit=11), (4096 + 5).to_bytes(2, "little")
    run("encode", "--data-type", "uint16", "--codec", json.dumps(codec), data=value, status=1)
    assert ask_chunk(zarrs, "encode", "uint16", codec, 1, value) == b"\x05\x00"


def test_deviation_a_bool_of_2_packs_as_0(zarrs):
    run("encode", "--data-type", "bool", "--codec", "packbits", data=b"\x01\x02", status=1)
    assert ask_chunk(zarrs, "encode", "bool", packbits(), 2, b"\x01\x02") == b"\x01"


def test_deviation_the_older_spelling_is_refused(zarrs):
    codec = packbits(padding_encoding="start_byte")
    assert code("encode", "bool", codec, 3, b"\x01\x00\x01") == b"\x05\x05"
    assert ask_chunk(zarrs, "encode", "bool", codec, 3, b"\x01\x00\x01") is None


def test_deviation_in_the_documents(zarrs, tmp_path):
    """The smallest case in docs/reference/codecs.md, made by its lines: we read -1, zarrs and zarrista 65535."""
    page = (pathlib.Path(__file__).parent.parent.parent / "docs/reference/codecs.md").read_text(encoding="utf-8")
    [lines] = [block for block in re.findall(r"```sh\n(.*?)```", page, re.S) if "minus_one.zarr" in block]
    subprocess.run(["sh", "-ec", lines], cwd=tmp_path, check=True)
    store = tmp_path / "minus_one.zarr"
    with h5py.File(tmp_path / "minus_one.h5", "w") as f:
        f["x"] = np.array([-1], "i4")
    shutil.copytree(store, tmp_path / "group/x")
    (tmp_path / "group/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    run("verify", tmp_path / "minus_one.h5", tmp_path / "group")

    wrong = (
        "fixed: take the case out of docs/reference/codecs.md, and the warnings out of README.md and docs/reference/readers.md"
    )
    assert zarrs.ask("read", path=str(store)) == np.array([65535], "i4").tobytes(), zarrs.refused or wrong
    zarrista = pytest.importorskip("zarrista")
    array = zarrista.Array.open(zarrista.store.FilesystemStore(str(store)), "/")
    assert np.asarray(array[:]).tolist() == [65535], wrong
