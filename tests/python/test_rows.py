# SPDX-License-Identifier: BSL-1.0
"""zarrbits.write() and read() beside h5py itself: the same chunks in the file, and the same arrays."""

import ctypes
import itertools
import os
import time

import h5py
import numpy as np
import pytest

os.environ["HDF5_PLUGIN_PATH"] = os.environ.get("ZARRBITS_PLUGINS", "")

import zarrbits  # noqa: E402
from zarrbits import hdf5_rows  # noqa: E402
from zarrbits_codecs import library  # noqa: E402

if not library.LIBRARY:
    pytest.skip("there is no compiled core", allow_module_level=True)
if not h5py.h5z.filter_avail(zarrbits.PACKBITS):
    pytest.skip("HDF5 does not find the plugins", allow_module_level=True)


@pytest.fixture(autouse=True)
def chunks_of_every_size(monkeypatch):
    """Or these small ones would all go through h5py."""
    monkeypatch.setattr(hdf5_rows, "_WORTH", 0)


SHAPES = [((12, 10, 16), (1, 10, 16)), ((13, 11, 9), (4, 4, 4)), ((12, 10, 16), (4, 10, 16)), ((1000,), (64,))]
FORMS = {
    "12 bits": ("<u2", zarrbits.packbits(bits=12)),
    "big endian": (">u2", zarrbits.packbits(bits=12, padding_encoding="last_byte")),
    "signed": ("<i4", zarrbits.packbits(bits=13, padding_encoding="first_byte")),
    "all bits, big endian": (">u2", zarrbits.packbits(bits=16)),
    "floats": ("<f4", zarrbits.packbits(bits=32)),
    "bool": ("?", zarrbits.packbits()),
    "then gzip": ("<u2", {**zarrbits.packbits(bits=12), "fletcher32": True}),
    "truncate": ("<u2", zarrbits.packbits(bits=12, out_of_range="truncate")),
    "bytes": ("<u2", zarrbits.byte_order("big")),
    "no filter": ("<u2", {}),
}
SELECTIONS = [
    ...,
    slice(None),
    slice(3, 9),
    slice(5, 5),
    4,
    -1,
    slice(None, None, 2),
    (slice(1, None), ...),
    (..., slice(2, 7)),
    (slice(2, 6), -3),
    [1, 4],
]


def chunks_of(dataset):
    """Each as it is stored, with its filter mask."""
    dataset.file.flush()
    found = {}
    for at in itertools.product(*(range(0, n, c) for n, c in zip(dataset.shape, dataset.chunks))):
        if dataset.id.get_chunk_info_by_coord(at).byte_offset is not None:
            found[at] = dataset.id.read_direct_chunk(at)
    return found


def some_values(dtype, shape):
    values = np.random.default_rng(1).integers(0, 2 if dtype == "?" else 4096, shape).astype(dtype)
    if dtype != "?":
        values[3] = 5000 if dtype != "<f4" else np.nan  # does not fit
    return values


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape, chunks", SHAPES)
@pytest.mark.parametrize("name", FORMS)
def test_the_same_as_h5py(tmp_path, name, shape, chunks, threads):
    dtype, filters = FORMS[name]
    values = some_values(dtype, shape)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        for number, (first, count) in enumerate([(0, shape[0]), (0, chunks[0]), (1, shape[0] - 1), (2, 3)]):
            theirs, ours = (
                f.create_dataset(f"{who}{number}", shape, dtype, chunks=chunks, fillvalue=dtype != "?" and 7, **filters)
                for who in ("theirs", "ours")
            )
            part = values[first : first + count]
            theirs[first : first + count] = part
            zarrbits.write(ours, part, first=first, threads=threads)
            assert chunks_of(ours) == chunks_of(theirs)
            for selection in SELECTIONS:
                if isinstance(selection, tuple) and len(selection) > len(shape):
                    continue
                wanted, got = theirs[selection], zarrbits.read(ours, selection, threads=threads)
                np.testing.assert_array_equal(got, wanted)
                assert np.asarray(got).dtype == np.asarray(wanted).dtype and np.shape(got) == np.shape(wanted)
                assert type(got) is type(wanted)


@pytest.mark.parametrize("name", ["12 bits", "big endian", "signed", "all bits, big endian", "floats", "bool"])
def test_it_does_not_go_through_h5py(tmp_path, name):
    """Or the test above would compare h5py with itself."""
    dtype, filters = FORMS[name]
    with h5py.File(tmp_path / "x.h5", "w") as f:
        d = f.create_dataset("x", (8, 64), dtype, chunks=(2, 64), **filters)
        assert hdf5_rows._chunks(d) is not None
    with h5py.File(tmp_path / "y.h5", "w") as f:
        for other in ("then gzip", "truncate", "bytes", "no filter"):
            dtype, filters = FORMS[other]
            assert hdf5_rows._chunks(f.create_dataset(other, (8, 64), dtype, chunks=(2, 64), **filters)) is None


@pytest.mark.parametrize("index, value", [(0, 0), (0, 17), (0, 2**32 - 1), (1, 3), (2, 5), (2, 2**32 - 1)])
def test_damaged_parameters_are_the_plugins_to_refuse(index, value):
    """As they are in a file, where no plugin has looked at them yet."""

    class Properties:
        def get_nfilters(self):
            return 1

        def get_fill_time(self):
            return h5py.h5d.FILL_TIME_IFSET

        def get_filter(self, _):
            return zarrbits.PACKBITS, 1, tuple(cd), b""

    class Dataset:
        chunks, dtype, shape = (64,), np.dtype("<u2"), (64,)
        file = type("File", (), {"driver": "sec2"})
        id = type("Id", (), {"get_create_plist": lambda self: Properties(), "get_type": lambda self: h5py.h5t.STD_U16LE})()

    cd = [12, 0, 0, 0, 0x5A504201, 2, 1, 2 | 16 << 8, 64, 0, 96, 0]
    assert hdf5_rows._chunks(Dataset()) is not None
    cd[index] = value
    assert hdf5_rows._chunks(Dataset()) is None


def test_values_of_another_type_are_converted_by_hdf5(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        d = f.create_dataset("x", (8, 64), "<u2", chunks=(2, 64), **zarrbits.packbits(bits=12))
        zarrbits.write(d, np.full((8, 64), 3.0))
        assert (d[...] == 3).all()
        zarrbits.write(d, np.full((8, 64), 4, ">u2"))
        assert (d[...] == 4).all()


def test_what_is_wrong_is_said(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        d = f.create_dataset("x", (8, 64), "<u2", chunks=(2, 64), **zarrbits.packbits(bits=12))
        with pytest.raises(ValueError, match="rows 7 to 9 of 8"):
            zarrbits.write(d, np.zeros((2, 64), "u2"), first=7)
        with pytest.raises(ValueError, match=r"\(2, 63\)"):
            zarrbits.write(d, np.zeros((2, 63), "u2"))
        with pytest.raises(ValueError, match="threads"):
            zarrbits.read(d, threads=0)
        d[...] = 1
        d.id.write_direct_chunk((4, 0), b"damaged")
        for selection in (..., slice(4, 6)):
            with pytest.raises(OSError):
                zarrbits.read(d, selection)
        np.testing.assert_array_equal(zarrbits.read(d, slice(0, 4)), np.ones((4, 64), "u2"))


def of(tid, change, *arguments):
    tid = tid.copy()
    getattr(tid, change)(*arguments)
    return tid


def enumeration(base, **members):
    tid = h5py.h5t.enum_create(base)
    for name, value in members.items():
        tid.enum_insert(name.encode(), value)
    return tid


def low_precision(tid, bits, offset=0):
    tid = of(tid, "set_precision", bits)
    tid.set_offset(offset)
    return tid


T = h5py.h5t
TYPES = {
    **{
        f"{name}{order}": (getattr(T, f"{prefix}{name}{order}"), 8 * size)
        for prefix, name, size in [
            *(("STD_", f"{kind}{8 * n}", n) for kind in "IU" for n in (1, 2, 4, 8)),
            ("IEEE_", "F32", 4),
            ("IEEE_", "F64", 8),
        ]
        for order in ("LE", "BE")
    },
    "float16": (T.py_create(np.dtype("<f2")), 16),
    "bool": (T.py_create(np.dtype("?"), logical=True), 1),
    "sign at the low end": (of(T.IEEE_F32LE, "set_fields", 0, 1, 8, 9, 23), 32),
    "another bias": (of(T.IEEE_F32LE, "set_ebias", 100), 32),
    "exponent of 11 bits": (of(T.IEEE_F32LE, "set_fields", 31, 20, 11, 0, 20), 32),
    "no implied bit": (of(T.IEEE_F32LE, "set_norm", T.NORM_NONE), 32),
    "12 bits": (low_precision(T.STD_U16LE, 12), 0),
    "12 bits with a sign": (low_precision(T.STD_I16BE, 12), 0),
    "12 bits from bit 4 on": (low_precision(T.STD_I16LE, 12, 4), 0),
    "bitfield": (T.STD_B16LE, 12),
    "states": (enumeration(T.STD_I16LE, ok=0, bad=3), 2),
    "states of all bits": (enumeration(T.STD_U16LE, ok=0, bad=3), 16),
    "another bool": (enumeration(T.STD_I8LE, no=0, yes=1), 0),
}


def of_type(file, name, tid, bits, chunk=(2, 16), shape=(8, 16)):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk(chunk)
    properties.set_filter(zarrbits.PACKBITS, h5py.h5z.FLAG_MANDATORY, (bits,))
    return h5py.Dataset(h5py.h5d.create(file.id, name.encode(), tid, h5py.h5s.create_simple(shape), properties))


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_compared_as_a_whole(tmp_path, name):
    """What numpy takes for the same type may not be the same for HDF5, which judges here."""
    tid, bits = TYPES[name]
    with h5py.File(tmp_path / "x.h5", "w") as f:
        try:
            theirs, ours = (of_type(f, who, tid, bits) for who in ("theirs", "ours"))
        except ValueError as refused:
            pytest.skip(f"the plugin or HDF5 does not take it: {refused}")
        try:
            dtype = theirs.dtype
        except TypeError as refused:
            pytest.skip(f"h5py has no such type: {refused}")
        for source in dict.fromkeys(
            [dtype, np.dtype("?"), *map(np.dtype, ("i1", "u1", "i2", "u2", ">i2", "i4", "u4", "f4", "f8"))]
        ):
            values = (np.arange(128).reshape(8, 16) % 2).astype(source)
            if source.kind in "if":
                values[::3] *= source.type(-1)
            if source.kind == "f":
                values[1] = 2.5
            results = []
            for dataset, call in ((theirs, dataset_of_h5py), (ours, zarrbits.write)):
                try:
                    call(dataset, values)
                    results.append("written")
                except (TypeError, OSError) as refused:
                    results.append(str(refused))
            assert results[0] == results[1]
            assert chunks_of(ours) == chunks_of(theirs), source
            np.testing.assert_array_equal(zarrbits.read(ours), theirs[...])
            assert zarrbits.read(ours).dtype == theirs[...].dtype


def dataset_of_h5py(dataset, values):
    dataset[: len(values)] = values


def test_numpys_types_are_done_here(tmp_path):
    """Or the test above would compare h5py with itself."""
    with h5py.File(tmp_path / "x.h5", "w") as f:
        left = [name for name, (tid, bits) in TYPES.items() if hdf5_rows._chunks(of_type(f, name, tid, bits)) is None]
    first = list(TYPES).index("sign at the low end")
    assert left == ["I8BE", "U8BE", *list(TYPES)[first:]]  # one byte has no order


def test_a_file_that_is_only_read_is_not_written(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("x", (8, 64), "<u2", chunks=(2, 64), **zarrbits.packbits(bits=12))
    with h5py.File(tmp_path / "x.h5") as f:
        with pytest.raises((OSError, ValueError)):
            zarrbits.write(f["x"], np.ones((8, 64), "u2"))
        assert (f["x"][...] == 0).all() and (zarrbits.read(f["x"]) == 0).all()


@pytest.mark.parametrize("rows", [8, 5])
def test_a_fill_value_that_is_undefined(tmp_path, rows):
    """Satellites' files have them; with all chunks written, and without."""
    with h5py.File(tmp_path / "x.h5", "w") as f:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((2, 64))
        properties.set_filter(zarrbits.PACKBITS, h5py.h5z.FLAG_MANDATORY, (12,))
        undefined = ctypes.CDLL(h5py.h5p.__file__).H5Pset_fill_value  # h5py cannot say it
        assert undefined(ctypes.c_int64(properties.id), ctypes.c_int64(h5py.h5t.STD_U16LE.id), None) >= 0
        space = h5py.h5s.create_simple((8, 64))
        d = h5py.Dataset(h5py.h5d.create(f.id, b"x", h5py.h5t.STD_U16LE, space, properties))
        with pytest.raises(RuntimeError):
            assert d.fillvalue
        zarrbits.write(d, np.full((rows, 64), 3, "u2"))
        np.testing.assert_array_equal(zarrbits.read(d)[:rows], np.full((rows, 64), 3, "u2"))
        np.testing.assert_array_equal(zarrbits.read(d, slice(0, 5)), d[:5])


def test_chunks_over_the_edge_without_a_filter(tmp_path):
    """Of all bits and the other byte order, such a chunk is as long as a packed one."""
    with h5py.File(tmp_path / "x.h5", "w") as f:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 4))
        properties.set_filter(zarrbits.PACKBITS, h5py.h5z.FLAG_MANDATORY, (16,))
        assert ctypes.CDLL(h5py.h5p.__file__).H5Pset_chunk_opts(ctypes.c_int64(properties.id), 2) >= 0
        space = h5py.h5s.create_simple((10, 10))
        d = h5py.Dataset(h5py.h5d.create(f.id, b"x", h5py.h5t.STD_U16BE, space, properties))
        values = np.arange(100, dtype="u2").reshape(10, 10)
        zarrbits.write(d, values)
        np.testing.assert_array_equal(d[...], values)
        np.testing.assert_array_equal(zarrbits.read(d), values)


def test_the_time_is_linear_in_the_chunks(tmp_path):
    """Of all of them, and of a few among many."""
    seconds = {}
    with h5py.File(tmp_path / "x.h5", "w") as f:
        for n in (2000, 16000):
            d = f.create_dataset(str(n), (n, 8), "<u2", chunks=(1, 8), **zarrbits.packbits(bits=12))
            d[...] = 1
            for what, selection in (("all", ...), ("some", slice(n - 100, n))):
                begin = time.process_time()
                zarrbits.read(d, selection, threads=1)
                seconds[what, n] = time.process_time() - begin
    assert seconds["all", 16000] < 20 * seconds["all", 2000] + 0.1, seconds  # 64 where each chunk asks for all
    assert seconds["some", 16000] < 4 * seconds["some", 2000] + 0.1, seconds


def test_small_chunks_are_left_to_h5py(tmp_path, monkeypatch):
    """Threads cannot make up for the time that a chunk takes to reach them."""
    monkeypatch.undo()
    with h5py.File(tmp_path / "x.h5", "w") as f:
        small, large = (
            f.create_dataset(str(n), (8, n, n), "<u2", chunks=(1, n, n), **zarrbits.packbits(bits=12)) for n in (512, 1024)
        )
        assert hdf5_rows._chunks(small) is None and hdf5_rows._chunks(large) is not None
