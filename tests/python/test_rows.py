# SPDX-License-Identifier: BSL-1.0
"""zarrbits.write() and read() beside h5py itself: the same chunks in the file, and the same arrays."""

import itertools
import os

import h5py
import numpy as np
import pytest

os.environ["HDF5_PLUGIN_PATH"] = os.environ.get("ZARRBITS_PLUGINS", "")

import zarrbits  # noqa: E402
from zarrbits import hdf5_rows, library  # noqa: E402

if not library.LIBRARY:
    pytest.skip("there is no compiled core", allow_module_level=True)
if not h5py.h5z.filter_avail(zarrbits.PACKBITS):
    pytest.skip("HDF5 does not find the plugins", allow_module_level=True)

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
        id = type("Id", (), {"get_create_plist": lambda self: Properties()})()

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
