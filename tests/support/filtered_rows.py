# SPDX-License-Identifier: BSL-1.0
"""zarrbits.read() and write() of h5py datasets with any filters, beside h5py's own indexing."""

import collections

import numpy as np

import zarrbits

SHAPES = [((12, 10, 16), (1, 10, 16)), ((13, 11, 9), (4, 4, 4)), ((100,), (64,)), ((5, 7), (5, 7))]
SELECTIONS = [
    ...,
    slice(3, 9),
    slice(5, 5),
    4,
    -1,
    slice(None, None, 2),
    slice(1, None, 5),
    (..., slice(2, 7)),
    (slice(1, 6, 3), -3),
    (slice(None), slice(1, None, 6)),
    [1, 4],
]


def numbers(dtype, shape):
    """Some that filters can compress, and with no two rows alike."""
    return (np.arange(np.prod(shape)) * 7 % 1000).reshape(shape).astype(dtype)


def compare(file, options, dtype="<i4"):
    """Writes and reads datasets of each shape; returns what the calls counted, for reading and for writing."""
    counts = collections.Counter(), collections.Counter()
    for number, (shape, chunks) in enumerate(SHAPES):
        theirs, ours = (
            file.create_dataset(f"{who}{number}", shape, dtype, chunks=chunks, fillvalue=7, **options)
            for who in ("theirs", "ours")
        )
        values = numbers(dtype, shape)
        for selection in (slice(2, 5), ..., (slice(1, 4), ..., slice(0, 5)), slice(0, 4), 3, slice(None, None, 2)):
            if len(shape) == 1 and isinstance(selection, tuple):
                continue
            theirs[selection] = values[selection] + dtype_one(dtype, selection)
            zarrbits.write(ours, values[selection] + dtype_one(dtype, selection), selection, threads=3, counts=counts[1])
            np.testing.assert_array_equal(ours[...], theirs[...])
            for threads in (1, 3):
                np.testing.assert_array_equal(zarrbits.read(ours, threads=threads, counts=counts[0]), theirs[...])
        for selection in SELECTIONS:
            if isinstance(selection, tuple) and len(selection) > len(shape):
                continue
            expected, values_read = theirs[selection], zarrbits.read(ours, selection, threads=2)
            np.testing.assert_array_equal(values_read, expected)
            assert type(values_read) is type(expected) and np.asarray(values_read).dtype == np.asarray(expected).dtype
            out = np.zeros(np.shape(expected), "f8")
            assert zarrbits.read(ours, selection, out=out) is out
            np.testing.assert_array_equal(out, expected)
    return counts


def dtype_one(dtype, selection):
    """Another number for each selection, so that writing again shows."""
    return np.dtype(dtype).type(len(str(selection)))
