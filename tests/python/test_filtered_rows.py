# SPDX-License-Identifier: BSL-1.0
"""zarrbits.write() and read() of h5py datasets with the filters that every h5py has, beside h5py itself."""

import threading

import h5py
import numpy as np
import pytest

import filtered_rows
import zarrbits
from zarrbits import hdf5_library, hdf5_rows

try:
    hdf5_library.library()
except zarrbits.Error as e:
    pytest.skip(str(e), allow_module_level=True)


@pytest.fixture(autouse=True)
def chunks_of_every_size(monkeypatch):
    """Or these small ones would all go through h5py."""
    monkeypatch.setattr(hdf5_rows, "_WORTH", 0)
    monkeypatch.setattr(hdf5_rows, "_WORTH_COMPRESSED", 0)


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        yield f


GZIP = {"compression": "gzip"}
PIPELINES = {
    "gzip": (GZIP, True),
    "shuffle, gzip, fletcher32": ({**GZIP, "shuffle": True, "fletcher32": True}, True),
    "fletcher32": ({"fletcher32": True}, True),
    "lzf": ({"compression": "lzf", "shuffle": True}, True),
    "scaleoffset": ({"scaleoffset": 0, "compression": "gzip"}, False),
}


@pytest.mark.parametrize("dtype", ["<i4", ">i4", "<f4", "<u2"])
@pytest.mark.parametrize("name", PIPELINES)
def test_values_are_those_of_h5py(file, name, dtype):
    options, is_encoded = PIPELINES[name]
    if name == "scaleoffset" and dtype == "<f4":
        options = {"scaleoffset": 3}
    read, write = filtered_rows.compare(file, options, dtype)
    assert read["chunks"] > 100 and read["chunks"] > read["h5py_values"] / 1000
    assert (write["chunks"] > 40) is is_encoded and (write["chunks"] == 0) is not is_encoded


def test_no_filter_is_h5pys(file):
    read, write = filtered_rows.compare(file, {})
    assert read["chunks"] == write["chunks"] == 0


TYPES = {
    "texts": np.array([b"a", b"bcd", b""] * 8, "S3"),
    "utf-8": np.array([b"a", "ä".encode(), b""] * 8, h5py.string_dtype("utf-8", 4)),
    "records": np.array([(1, 2.5, b"x")] * 24, [("a", "<i2"), ("b", ">f8"), ("c", "S3")]),
    "states": np.array([1, 2, 1] * 8, h5py.enum_dtype({"x": 1, "y": 2}, "i2")),
    "booleans": np.array([True, False, True] * 8),
    "complex": np.arange(24) * np.complex64(1 + 2j),
    "times": np.arange(24).astype("M8[s]").astype(h5py.opaque_dtype("M8[s]")),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_are_those_of_h5py(file, name):
    values = TYPES[name]
    theirs, ours = (file.create_dataset(n, values.shape, values.dtype, chunks=(5,), **GZIP) for n in ("theirs", "ours"))
    theirs[:13] = values[:13]
    zarrbits.write(ours, values[:13])
    for selection in (..., slice(3, 11), 2):
        for dataset in (theirs, ours):
            result, expected = zarrbits.read(dataset, selection), theirs[selection]
            assert np.asarray(result).tolist() == np.asarray(expected).tolist()
            assert type(result) is type(expected) and np.asarray(result).dtype == np.asarray(expected).dtype


def test_types_that_only_hdf5_converts(file):
    texts = file.create_dataset("texts", data=["a", "bc"] * 6, dtype=h5py.string_dtype(), chunks=(5,), **GZIP)
    counts = {}
    assert zarrbits.read(texts, counts=counts).tolist() == texts[...].tolist() and counts == {"h5py_values": 12}
    numbers = file.create_dataset("numbers", (12,), "<i2", chunks=(5,), **GZIP)
    zarrbits.write(numbers, np.arange(12) / 2, counts=counts)
    assert numbers[...].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5] and counts == {"h5py_values": 24}


def test_what_h5py_refuses_is_refused(file):
    """Numbers for an enumeration, and texts of another length or encoding are h5py's to judge."""
    for name, dtype, values in (
        ("states", h5py.enum_dtype({"x": 1, "y": 2}, "i2"), np.array([1, 2, 3], "i2")),
        ("utf-8", h5py.string_dtype("utf-8", 4), np.array([b"a", b"\xff", b""], "S4")),
        ("texts", "S4", np.array([b"a", b"b", b""], h5py.string_dtype("utf-8", 4))),
    ):
        outcomes = []
        for who, call in (("theirs", lambda d: d.__setitem__(..., values)), ("ours", lambda d: zarrbits.write(d, values))):
            d = file.create_dataset(f"{name} {who}", (3,), dtype, chunks=(3,), **GZIP)
            try:
                call(d)
                outcomes.append(d[...].tolist())
            except (TypeError, ValueError, OSError) as refusal:
                outcomes.append(str(refusal))
        assert outcomes[0] == outcomes[1], name


def test_values_that_are_not_in_the_file_yet(file):
    """h5py has them in its cache of chunks."""
    d = file.create_dataset("x", (12, 8), "<i4", chunks=(4, 8), **GZIP)
    for number in range(3):
        d[...] = number
        assert (zarrbits.read(d) == number).all()
        d[5, 5] = 77
        counts = {}
        zarrbits.write(d, np.full((4, 8), 50 + number, "<i4"), first=8, counts=counts)
        assert counts == {"chunks": 1}
        expected = np.full((12, 8), number)
        expected[5, 5], expected[8:] = 77, 50 + number
        np.testing.assert_array_equal(d[...], expected)
        np.testing.assert_array_equal(zarrbits.read(d), expected)
    name = file.filename
    file.close()
    with h5py.File(name) as f:
        np.testing.assert_array_equal(f["x"][...], expected)


def test_a_reader_of_a_file_that_grows_sees_whole_rows(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f:
        d = f.create_dataset("x", (4, 8), "<i4", maxshape=(None, 8), chunks=(4, 8), **GZIP)
        f.swmr_mode = True
        zarrbits.write(d, np.zeros((4, 8), "<i4"))
        d.flush()
        with h5py.File(tmp_path / "x.h5", swmr=True) as g:
            for number in range(1, 5):
                d.resize(4 * number + 4, 0)
                zarrbits.write(d, np.full((4, 8), number, "<i4"), first=4 * number)
                d.flush()
                g["x"].refresh()
                assert zarrbits.read(g["x"])[:, 0].tolist() == [n for n in range(number + 1) for _ in range(4)]


def test_edges_without_filters(file):
    import ctypes

    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((4, 4))
    properties.set_shuffle()  # a chunk is as long as without it
    dont_filter_partial_chunks = 2
    assert ctypes.CDLL(h5py.h5p.__file__).H5Pset_chunk_opts(ctypes.c_int64(properties.id), dont_filter_partial_chunks) >= 0
    d = h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((10, 10)), properties))
    values, counts = np.arange(100, dtype="<i4").reshape(10, 10), {}
    zarrbits.write(d, values, counts=counts)
    assert counts == {"chunks": 4, "h5py_values": 36}
    np.testing.assert_array_equal(d[...], values)
    np.testing.assert_array_equal(zarrbits.read(d, counts=counts), values)
    assert counts == {"chunks": 8, "h5py_values": 72}


def test_masks_and_damage(file):
    d = file.create_dataset("x", (12,), "<i4", chunks=(4,), **GZIP)
    d[...] = 1
    d.id.write_direct_chunk((4,), np.arange(4, dtype="<i4").tobytes(), filter_mask=1)
    assert zarrbits.read(d).tolist() == d[...].tolist() == [1] * 4 + [0, 1, 2, 3] + [1] * 4
    d.id.write_direct_chunk((8,), b"damaged")
    for selection in (..., slice(7, 9)):
        with pytest.raises(OSError):
            zarrbits.read(d, selection)
    assert zarrbits.read(d, slice(0, 8)).tolist() == [1] * 4 + [0, 1, 2, 3]


def test_filters_that_h5py_does_not_have(file):
    """LZ4 is decoded and encoded here."""
    lz4 = 32004
    if h5py.h5z.filter_avail(lz4):
        pytest.skip("this h5py has LZ4")
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((4, 8))
    properties.set_filter(lz4, h5py.h5z.FLAG_OPTIONAL, ())
    d = h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((16, 8)), properties))
    values = np.arange(96, dtype="<i4").reshape(12, 8)
    zarrbits.write(d, values)
    assert d.id.read_direct_chunk((0, 0))[0] == 0
    np.testing.assert_array_equal(zarrbits.read(d), np.vstack([values, np.zeros((4, 8), "i4")]))
    np.testing.assert_array_equal(zarrbits.read(d, slice(5, 6)), values[5:6])
    with pytest.raises(OSError):
        d[...]
    d.id.write_direct_chunk((0, 0), b"damaged")
    with pytest.raises(zarrbits.Error, match="LZ4|lz4|length|holds"):
        zarrbits.read(d)


def test_several_threads_and_datasets(file):
    datasets = [file.create_dataset(str(n), (40, 64), "<i4", chunks=(4, 64), **GZIP) for n in range(4)]
    wrong = []

    def work(d, n):
        for i in range(10):
            zarrbits.write(d, np.full((40, 64), 100 * n + i, "<i4"), threads=2)
            if not (zarrbits.read(d, threads=2) == 100 * n + i).all():
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(d, n)) for n, d in enumerate(datasets)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_arguments_that_do_not_fit(file):
    d = file.create_dataset("x", (12, 8), "<i4", chunks=(4, 8), **GZIP)
    with pytest.raises(ValueError, match=r"out has the shape \(12, 7\), and the selection \(12, 8\)"):
        zarrbits.read(d, out=np.zeros((12, 7)))
    with pytest.raises(ValueError, match=r"out has the shape \(2, 8\), and the selection \(2,\)"):
        zarrbits.read(d, (slice(0, 2), 1), out=np.zeros((2, 8)))
    with pytest.raises(ValueError, match="first is not for a selection"):
        zarrbits.write(d, np.zeros((2, 8), "<i4"), slice(0, 2), first=2)
    zarrbits.write(d, 5, (slice(0, 4), 1))  # h5py broadcasts
    assert d[:4, 1].tolist() == [5] * 4
    for selection in (12, (0, 0, 0), slice(None, None, -1)):
        with pytest.raises((IndexError, ValueError, TypeError)):
            zarrbits.read(d, selection)
