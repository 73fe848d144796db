# SPDX-License-Identifier: BSL-1.0
"""zarrista, which is zarrs for Python: what it reads of packbits, and what docs/reference/readers.md says it misreads."""

import numpy as np
import pytest
import zarr

import zarrbits

zarrista = pytest.importorskip("zarrista")
VALUES = np.array([-1, -50, 5, 127, -128, 0], "i2")


def read(folder, values, **how):
    zarr.create_array(folder / "a.zarr", data=values, chunks=(4,), serializer=zarrbits.PackbitsCodec(**how), compressors=None)
    array = zarrista.Array.open(zarrista.store.FilesystemStore(str(folder / "a.zarr")), "/")
    return np.asarray(array[...])


@pytest.mark.parametrize("values, how", [(VALUES > 0, {}), (VALUES, {"last_bit": 11}), (VALUES.astype("u2"), {"last_bit": 15})])
def test_it_reads_packbits(tmp_path, values, how):
    assert np.array_equal(read(tmp_path, values, **how), values)


def test_the_sign_ends_at_the_byte(tmp_path):
    """Of the chunk that is read whole."""
    got = read(tmp_path, VALUES, last_bit=7)[:4]
    assert got.tolist() == [255, 206, 5, 127], "right by now? docs/reference/readers.md can say so"
