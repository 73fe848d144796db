# SPDX-License-Identifier: BSL-1.0
"""zarr-python with the codec of python/zarrbits_codecs, which it finds by itself: nothing here registers it.
scripts/ci/interop runs this under two zarr-pythons."""

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import zarr

from conftest import ROOT, code, packbits, run, write_zarr_json

sys.path.insert(0, str(ROOT / "tests/python"))
from golden_vectors import packbits_vectors

zarrbits = pytest.importorskip("zarrbits", reason="the package in python/ is not installed (scripts/ci/interop installs it)")
VECTORS = packbits_vectors(ROOT / "tests/golden/codecs.json")
UNITS = {"unit": "s", "scale_factor": 1}


def zarr_type(name):
    return {"name": name, "configuration": UNITS} if name.startswith("numpy.") else name


def zarr_name(name):
    return zarr_type({"complex_float32": "complex64", "complex_float64": "complex128"}.get(name, name))


def fill_value(name):
    return False if name == "bool" else [0.0, 0.0] if name.startswith("complex") else 0.0 if name.startswith("float") else 0


def memory_array(vector, chunks=None):
    """An array of one chunk, in memory, whose metadata is a golden vector's."""
    count = vector["elements"]
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [count],
        "data_type": zarr_name(vector["data_type"]),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [count]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value(vector["data_type"]),
        "attributes": {},
        "codecs": [{"name": "packbits", "configuration": vector["configuration"]}],
    }
    store = zarr.storage.MemoryStore({"zarr.json": zarr.core.buffer.cpu.Buffer.from_bytes(json.dumps(document).encode())})
    for key, value in (chunks or {}).items():
        store._store_dict[key] = zarr.core.buffer.cpu.Buffer.from_bytes(value)
    return store, zarr.open_array(store, mode="r+")


def stored(store, key):
    buffer = asyncio.run(store.get(key, zarr.core.buffer.default_buffer_prototype()))
    return None if buffer is None else buffer.to_bytes()


def test_which_zarr_python_this_is():
    print(f"zarr-python {zarr.__version__}, Python {sys.version_info[0]}.{sys.version_info[1]}")
    assert f'"{importlib.metadata.version("zarrbits")}"' in (ROOT / "include/zarrbits/version.hpp").read_text()


def test_golden_vectors_through_arrays():
    encoded = decoded = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # datetime64 and others are "not in the specification"
        for v, dtype in VECTORS:
            if "error" in v or v["elements"] == 0:
                continue  # a chunk without elements is never read; the package's own test has them
            values, payload = np.frombuffer(bytes.fromhex(v["decoded"]), dtype), bytes.fromhex(v["encoded"])
            if v.get("stage") != "encode":
                _, array = memory_array(v, {"c/0": payload})
                assert array[...].tobytes() == values.tobytes(), v
                decoded += 1
            if v.get("stage") != "decode":
                store, array = memory_array(v)
                with zarr.config.set({"array.write_empty_chunks": True}):
                    array = zarr.open_array(store, mode="r+")
                    array[...] = values
                assert stored(store, "c/0") == payload, v
                encoded += 1
    assert encoded > 1000 and decoded > 1000, (encoded, decoded)


def test_golden_refusals():
    refused = 0
    for v, dtype in VECTORS:
        if "error" not in v or v["elements"] == 0:
            continue
        with pytest.raises(Exception, match="packbits: ") as e:
            _, array = memory_array(v, {"c/0": bytes.fromhex(v["encoded"])} if v["stage"] == "decode" else None)
            assert v["stage"] != "configure", v
            if v["stage"] == "decode":
                array[...]
            else:
                array[...] = np.frombuffer(bytes.fromhex(v["decoded"]), dtype)
        assert len(str(e.value).splitlines()) == 1, v
        refused += 1
    assert refused >= 20


@pytest.mark.parametrize(
    "codec",
    [
        "packbits",
        {"name": "packbits", "configuration": {"last_bit": 11.0}},
        {"name": "packbits", "configuration": [1]},
        {"name": "packbits", "extra": 1},
    ],
    ids=str,
)
def test_what_is_no_codec_is_refused(tmp_path, codec):
    write_zarr_json(tmp_path / "a", "uint16", [4], [4], codec)
    with pytest.raises((TypeError, ValueError)):
        zarr.open_array(tmp_path / "a", mode="r")


def test_strings_and_structs_are_refused_when_the_array_is_made(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, dtype in enumerate(("S4", "U4", np.dtype([("a", "<i2")]))):
            with pytest.raises(ValueError, match='packbits: data type .* use "bytes"'):
                zarr.create_array(tmp_path / str(i), shape=(4,), dtype=dtype, serializer=zarrbits.PackbitsCodec())
    with pytest.raises(ValueError, match="uint16 has bits 0 to 15"):
        zarr.create_array(tmp_path / "wide", shape=(4,), dtype="uint16", serializer=zarrbits.PackbitsCodec(last_bit=16))


def camera(shape=(70, 45)):
    return np.random.default_rng(3).integers(0, 4096, shape, dtype="u2")


@pytest.mark.parametrize(
    "form",
    [{"chunks": (32, 16)}, {"chunks": (16, 8), "shards": (32, 32)}, {"chunks": (32, 16), "config": {"order": "F"}}],
    ids=["chunks", "shards", "F"],
)
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_arrays_of_several_chunks(tmp_path, form, compressors):
    values = camera()
    array = zarr.create_array(
        tmp_path / "a",
        shape=values.shape,
        dtype="uint16",
        serializer=zarrbits.PackbitsCodec(last_bit=11),
        compressors=compressors,
        **form,
    )
    array[...] = values
    again = zarr.open_array(tmp_path / "a", mode="r+")
    assert np.array_equal(again[...], values) and np.array_equal(again[5:40:3, 7:31], values[5:40:3, 7:31])
    again[3:5, 10:40] = 7  # chunks are read, changed, written
    values[3:5, 10:40] = 7
    assert np.array_equal(zarr.open_array(tmp_path / "a", mode="r")[...], values)
    with pytest.raises(ValueError, match="4096, which does not fit in bits 0 to 11 of uint16"):
        again[0, 0] = 4096
    assert again[0, 0] == values[0, 0]


def test_chunks_that_are_not_there_read_as_the_fill_value(tmp_path):
    array = zarr.create_array(
        tmp_path / "a", shape=(40,), chunks=(8,), dtype="int16", fill_value=-5, serializer=zarrbits.PackbitsCodec(last_bit=9)
    )
    array[8:16] = np.arange(8)
    assert zarr.open_array(tmp_path / "a", mode="r")[...].tolist() == [-5] * 8 + list(range(8)) + [-5] * 24


def test_metadata_has_the_published_spelling_and_no_defaults():
    for given, written in (
        ({}, {"name": "packbits"}),
        ({"first_bit": 0, "padding_encoding": "none", "last_bit": None}, {"name": "packbits"}),
        (
            {"start_bit": 2, "end_bit": 9, "padding_encoding": "end_byte"},
            {"name": "packbits", "configuration": {"padding_encoding": "last_byte", "first_bit": 2, "last_bit": 9}},
        ),
    ):
        codec = zarrbits.PackbitsCodec.from_dict({"name": "packbits", "configuration": given})
        assert codec.to_dict() == written and zarrbits.PackbitsCodec.from_dict(written) == codec


def test_our_command_and_zarr_python_write_the_same_chunks(tmp_path):
    values = camera((32, 16))
    zarr.create_array(
        tmp_path / "a", data=values, chunks=values.shape, serializer=zarrbits.PackbitsCodec(last_bit=11), compressors=None
    )
    assert (tmp_path / "a/c/0/0").read_bytes() == code("encode", "uint16", packbits(last_bit=11), values.size, values.tobytes())


def test_zarr_python_reads_what_we_converted(tmp_path):
    h5py = pytest.importorskip("h5py")
    frames, mask = camera(), camera() > 2000
    signed = camera().astype("i4") - 2048
    with h5py.File(tmp_path / "in.h5", "w", libver=("earliest", "v110")) as f:
        f.create_dataset("frames", data=frames, chunks=(32, 16), compression="gzip")
        f.create_dataset("mask", data=mask, chunks=(32, 16))
        f.create_dataset("filtered", data=signed, chunks=(32, 16), compression=45429, compression_opts=(12,))
    run("convert", "--quiet", "--codec", "packbits", tmp_path / "in.h5", tmp_path / "out.zarr")
    group = zarr.open_group(tmp_path / "out.zarr", mode="r")
    for name, values in (("frames", frames), ("mask", mask), ("filtered", signed)):
        assert group[name].dtype == values.dtype and np.array_equal(group[name][...], values), name
    for name in ("mask", "filtered"):
        assert [c["name"] for c in json.loads((tmp_path / "out.zarr" / name / "zarr.json").read_text())["codecs"]][
            0
        ] == "packbits", name


@pytest.mark.parametrize(
    "data_type, configuration",
    [
        ("bool", {}),
        ("bool", {"padding_encoding": "first_byte"}),
        ("uint16", {"last_bit": 11}),
        ("int16", {"last_bit": 11}),
        ("uint8", {"first_bit": 2, "last_bit": 6}),
        ("int64", {"last_bit": 58}),
        ("float32", {}),
        ("complex64", {}),
        ("float64", {"first_bit": 12}),
    ],
    ids=str,
)
def test_zarrs_and_zarr_python_read_each_other(tmp_path, zarrs, data_type, configuration):
    """Vectors that zarrs is known to read right; test_zarrs.py has the others.
    Edge chunks are read in part, which is wrong for first_bit above 0."""
    first = configuration.get("first_bit", 0)
    shape, chunk = (64, 32) if first else (50, 30), (32, 16)
    values = np.random.default_rng(4).integers(0, 2 if data_type == "bool" else 16, shape).astype(data_type)
    if values.dtype.kind == "u" and first:
        values <<= first
    if values.dtype.kind == "i":
        values -= 8
    codec = zarrbits.PackbitsCodec.from_dict(packbits(**configuration))
    zarr.create_array(tmp_path / "ours", data=values, chunks=chunk, serializer=codec, compressors=None)
    assert zarrs.ask("read", path=str(tmp_path / "ours")) == values.tobytes(), zarrs.refused
    write_zarr_json(tmp_path / "theirs", data_type, shape, chunk, packbits(**configuration), fill_value(data_type))
    assert zarrs.ask("write", path=str(tmp_path / "theirs"), hex=values.tobytes().hex()) is not None, zarrs.refused
    assert zarr.open_array(tmp_path / "theirs", mode="r")[...].tobytes() == values.tobytes()


def test_a_store_with_packbits_is_judged_like_any_other(tmp_path):
    """A reader in another process that imports zarr alone."""
    values = camera()
    zarr.create_array(
        tmp_path / "a", data=values, chunks=(16, 8), shards=(32, 32), serializer=zarrbits.PackbitsCodec(last_bit=11)
    )
    script = (
        "import sys, zarr; a = zarr.open_array(sys.argv[1], mode='r')[...]; assert 'h5py' not in sys.modules; "
        "print(int(a.astype('u8').sum()))"
    )
    out = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], capture_output=True, text=True, timeout=600)
    assert out.returncode == 0 and int(out.stdout) == int(values.astype("u8").sum()), out.stderr


def test_the_helper_for_h5py_needs_no_zarr():
    script = (
        "import sys, zarrbits; zarrbits.packbits; assert 'zarr' not in sys.modules and 'h5py' not in sys.modules and "
        "'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)


class CountingStore(zarr.storage.MemoryStore):
    """Counts the bytes of chunks that are read."""

    read = 0

    def counted(self, key, buffer):
        if buffer is not None and not key.endswith("zarr.json"):
            self.read += len(buffer)
        return buffer

    async def get(self, key, prototype=None, byte_range=None):
        return self.counted(key, await super().get(key, prototype, byte_range))

    if hasattr(zarr.storage.MemoryStore, "get_sync"):

        def get_sync(self, key, *, prototype=None, byte_range=None):
            return self.counted(key, super().get_sync(key, prototype=prototype, byte_range=byte_range))


PIPELINES = ["zarr.core.codec_pipeline.BatchedCodecPipeline"]
if hasattr(zarr.core.codec_pipeline, "FusedCodecPipeline"):
    PIPELINES.append("zarr.core.codec_pipeline.FusedCodecPipeline")
SELECTIONS = [
    np.s_[3],
    np.s_[3:5],
    np.s_[2:9:3, 1],
    np.s_[:, 4, 2:7],
    np.s_[7, 8, 9],
    np.s_[-1, -3:],
    np.s_[...],
    np.s_[4:4],
    np.s_[10:13, ::5, 3],
]


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(
    "codec", [{"last_bit": 11}, {"last_bit": 11, "padding_encoding": "first_byte"}], ids=["plain", "count_byte"]
)
@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
def test_parts_of_chunks_are_read_and_equal(pipeline, codec, sharded):
    values = np.random.default_rng(8).integers(0, 4096, (13, 11, 10)).astype("u2")
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        layout = {"chunks": (7, 11, 5), "shards": (14, 11, 10)} if sharded else {"chunks": (13, 11, 10)}
        array = zarr.create_array(
            CountingStore(), data=values, compressors=None, serializer=zarrbits.PackbitsCodec(**codec), **layout
        )
        for selection in SELECTIONS:
            assert np.array_equal(array[selection], values[selection]), selection
        rows, columns = np.array([12, 0, 5]), np.array([1, 9])
        assert np.array_equal(array.oindex[rows, :, columns], values[np.ix_(rows, range(11), columns)])
        assert np.array_equal(array.vindex[rows, rows % 4, rows % 3], values[rows, rows % 4, rows % 3])
        mask = values > 4000
        assert np.array_equal(array.vindex[mask], values[mask])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_slice_reads_the_bytes_of_its_rows(pipeline):
    if os.environ.get("ZARRBITS_LIBRARY") == "none":
        pytest.skip("numpy decodes whole chunks")
    values = np.random.default_rng(8).integers(0, 4096, (100, 64)).astype("u2")
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        store = CountingStore()
        array = zarr.create_array(
            store, data=values, chunks=values.shape, compressors=None, serializer=zarrbits.PackbitsCodec(last_bit=11)
        )
        store.read = 0
        assert np.array_equal(array[40:42], values[40:42]) and store.read == 2 * 64 * 12 // 8
        assert array[50, 3] == values[50, 3] and store.read <= 2 * 64 * 12 // 8 + 3
        store.read = 0
        assert np.array_equal(array[:], values) and store.read == 100 * 64 * 12 // 8


def test_a_chunk_that_ends_too_early_is_an_error_in_slices_too():
    values = np.arange(100, dtype="u2")
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(store, data=values, chunks=(100,), compressors=None, serializer=zarrbits.PackbitsCodec(last_bit=11))
    store._store_dict["c/0"] = store._store_dict["c/0"][:100]
    if os.environ.get("ZARRBITS_LIBRARY") != "none":
        assert array[:60].tolist() == list(range(60))
    for selection in (np.s_[60:80], np.s_[90], np.s_[:]):
        with pytest.raises(ValueError, match="packbits"):
            array[selection]
