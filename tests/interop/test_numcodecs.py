# SPDX-License-Identifier: BSL-1.0
"""numcodecs' PackBits and our numcodecs.packbits are the same format;
ours and `packbits` differ by the order of bits in each byte."""

import numcodecs
import numpy as np
import pytest

from conftest import code, packbits

THEIRS = numcodecs.PackBits()
OURS = "numcodecs.packbits"


@pytest.mark.parametrize("length", range(71))
def test_both_ways_at_every_length(length):
    rng = np.random.default_rng(length)
    for _ in range(3):
        values = rng.integers(0, 2, length).astype(bool)
        theirs = bytes(THEIRS.encode(values))
        assert code("encode", "bool", OURS, length, values.tobytes()) == theirs
        assert code("decode", "bool", OURS, length, theirs) == values.tobytes()
        ours = code("encode", "bool", OURS, length, values.tobytes())
        assert np.array_equal(THEIRS.decode(ours), values)


def test_bridge_to_packbits_reverses_the_bits_of_each_byte():
    values = np.random.default_rng(5).integers(0, 2, 61).astype(bool)
    theirs = bytes(THEIRS.encode(values))
    ours = code("encode", "bool", packbits(padding_encoding="first_byte"), 61, values.tobytes())
    reverse = bytes(int(f"{b:08b}"[::-1], 2) for b in range(256))
    assert ours[:1] == theirs[:1]
    assert ours[1:].translate(reverse) == theirs[1:]


def test_the_v3_name_in_zarr_python(tmp_path):
    """zarr-python knows the format as numcodecs.packbits; our command reads its chunks."""
    import zarr

    try:
        from zarr.codecs.numcodecs import PackBits
    except ImportError:
        from numcodecs.zarr3 import PackBits
    values = np.random.default_rng(6).integers(0, 2, 45).astype(bool)
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(45,), chunks=(45,), dtype="bool", filters=[PackBits()], compressors=None, zarr_format=3
    )
    array[:] = values
    payload = (tmp_path / "a.zarr/c/0").read_bytes()
    assert code("decode", "bool", OURS, 45, payload) == values.tobytes()
