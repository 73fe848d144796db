# SPDX-License-Identifier: BSL-1.0
"""python/zarrbits_codecs/packing.py with Debian's numpy, on the golden vectors and on what they do not have:
large arrays, byte orders, shapes."""

import os

import numpy as np

from golden_vectors import packbits_vectors
from zarrbits_codecs import library, packing

VECTORS = packbits_vectors(os.environ["ZARRBITS_GOLDEN"])


def refusal(function, *arguments):
    try:
        function(*arguments)
    except ValueError as e:
        assert str(e).startswith("packbits: ") and len(str(e).splitlines()) == 1, e
        return str(e)
    raise AssertionError(f"accepted: {arguments}")


def test_golden_vectors():
    encoded = decoded = 0
    for v, dtype in VECTORS:
        if "error" in v:
            continue
        read = packing.read_configuration(v["configuration"])
        values, payload = (
            np.frombuffer(bytes.fromhex(v["decoded"]), np.dtype(dtype).newbyteorder("<")),
            bytes.fromhex(v["encoded"]),
        )
        if v.get("stage") != "decode":
            assert packing.pack(values, *read).tobytes() == payload, v
            assert packing.packed_size(dtype, v["elements"], *read) == len(payload), v
            encoded += 1
        if v.get("stage") != "encode":
            assert packing.unpack(payload, dtype, v["elements"], *read).tobytes() == values.tobytes(), v
            decoded += 1
    assert encoded > 1400 and decoded > 1400, (encoded, decoded)


def test_golden_refusals():
    seen = {"configure": 0, "encode": 0, "decode": 0}
    for v, dtype in VECTORS:
        if "error" not in v:
            continue
        seen[v["stage"]] += 1

        def everything():
            read = packing.read_configuration(v["configuration"])
            packing.kept_bits(dtype, *read[1:])
            assert v["stage"] != "configure", v
            if v["stage"] == "encode":
                packing.pack(np.frombuffer(bytes.fromhex(v["decoded"]), dtype), *read)
            else:
                packing.unpack(bytes.fromhex(v["encoded"]), dtype, v["elements"], *read)

        refusal(everything)
    assert seen["configure"] >= 10 and seen["encode"] >= 4 and seen["decode"] >= 7, seen


def model(values, first, bits):
    """One long little-endian integer."""
    whole = sum(((int(v) >> first) & ((1 << bits) - 1)) << (i * bits) for i, v in enumerate(values))
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


def test_every_width_of_every_integer():
    rng = np.random.default_rng(3)
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"):
        width = 8 * np.dtype(dtype).itemsize
        for bits in range(1, width + 1):
            first = int(rng.integers(0, width - bits + 1))
            low = -(1 << (bits - 1)) if dtype[0] == "i" else 0
            numbers = [(int.from_bytes(rng.bytes(8), "little") % (1 << bits) + low) << first for _ in range(27)]
            values = np.array(numbers, object).astype(dtype)
            payload = packing.pack(values, "none", first, first + bits - 1).tobytes()
            assert payload == model(values, first, bits), (dtype, first, bits)
            assert np.array_equal(packing.unpack(payload, dtype, 27, "none", first, first + bits - 1), values), (
                dtype,
                first,
                bits,
            )


def test_blocks_join():
    for count in (65535, 65536, 65537, 200001):
        values = (np.arange(count) * 7919 % 4096).astype("u2")
        payload = packing.pack(values, "last_byte", 0, 11)
        as_bits = np.unpackbits(values.view("u1").reshape(-1, 2), axis=1, bitorder="little")[:, :12]
        assert payload[:-1].tobytes() == np.packbits(as_bits.ravel(), bitorder="little").tobytes()
        assert np.array_equal(packing.unpack(payload, "u2", count, "last_byte", 0, 11), values)
        values[count - 1] = 4096
        assert f"element [{count - 1}] is 4096, which does not fit in bits 0 to 11 of uint16" in refusal(
            packing.pack, values, "none", 0, 11
        )


def test_order_and_shape_of_the_array_do_not_matter():
    values = np.arange(-60, 60, dtype="i4").reshape(4, 5, 6)
    payload = packing.pack(values, "none", 0, 7).tobytes()
    assert payload == values.astype("i1").tobytes()
    for same in (values.astype(">i4"), np.asfortranarray(values), np.ascontiguousarray(values[::-1])[::-1]):
        assert packing.pack(same, "none", 0, 7).tobytes() == payload
    assert packing.unpack(payload, ">i4", 120, "none", 0, 7).tobytes() == values.astype(">i4").tobytes()
    assert packing.pack(np.array(True)).tobytes() == b"\x01"
    assert "element [1, 2, 3] is 999" in refusal(packing.pack, np.where(values == values[1, 2, 3], 999, values), "none", 0, 7)
    assert "the value is 5000" in refusal(packing.pack, np.array(5000, "u2"), "none", 0, 11)


def test_a_nan_keeps_its_payload():
    bits = np.array([0x7FC00001, 0xFFC00000, 0x7F800001, 0x80000000], "u4")
    for order in "<>":
        values = bits.astype(order + "u4").view(order + "f4")
        assert packing.pack(values).tobytes() == bits.tobytes()
        assert packing.unpack(bits.tobytes(), order + "f4", 4).tobytes() == values.tobytes()


def test_padding_bits_are_ignored():
    assert packing.unpack(b"\xff", "?", 3).tolist() == [True] * 3
    assert packing.unpack(b"\xff\x7f", "u2", 1, "none", 0, 11).tolist() == [0xFFF]


def test_which_of_both_this_is():
    assert (library.LIBRARY is None) == (os.environ["ZARRBITS_LIBRARY"] == "none"), os.environ["ZARRBITS_LIBRARY"]


def test_parts_of_a_chunk_from_their_bytes():
    rng = np.random.default_rng(5)
    for dtype, padding, first, last in (
        ("u2", "none", 0, 11),
        ("i4", "first_byte", 3, 9),
        ("?", "last_byte", None, None),
        (">u2", "none", 0, 9),
    ):
        values = (rng.integers(0, 2, 1000) if dtype == "?" else rng.integers(0, 64, 1000) << (first or 0)).astype(dtype)
        payload = packing.pack(values, padding, first, last)
        for at, count in ((0, 1), (1, 9), (333, 500), (999, 1)):
            part = packing.byte_range(dtype, 1000, at, count, padding, first, last)
            if library.LIBRARY is None:
                assert part is None
                continue
            piece = payload[part[0] : part[0] + part[1]].copy()
            back = packing.unpack_range(piece, dtype, 1000, at, count, padding, first, last)
            assert back.dtype == values.dtype and np.array_equal(back, values[at : at + count])
            assert part[1] <= count * 2 + 2
            refusal(packing.unpack_range, piece[:-1], dtype, 1000, at, count, padding, first, last)
        if library.LIBRARY is not None:
            refusal(packing.byte_range, dtype, 1000, 990, 11, padding, first, last)


def test_bytes_may_be_of_any_kind():
    """What can be written and what cannot, bytes and parts of them, numbers and times, nothing at all: an address each."""
    for dtype in ("u2", ">u2", "i4", "?", "f4", "c8", "M8[s]"):
        values = (np.arange(100) % (2 if dtype == "?" else 100)).astype(dtype)
        payload = packing.pack(values)
        plain = payload.tobytes()
        values.flags.writeable = False
        assert packing.pack(values).tobytes() == plain, dtype
        assert packing.pack(values[:0]).size == 0 and packing.unpack(b"", values.dtype, 0).size == 0
        for form in (payload, plain, bytearray(plain), np.frombuffer(plain, "u1"), np.frombuffer(b"xyz" + plain, "u1")[3:]):
            whole = packing.unpack(form, values.dtype, 100)
            assert whole.dtype == values.dtype and (whole == values).all(), (dtype, type(form))
            if at := packing.byte_range(values.dtype, 100, 13, 40):
                part = packing.unpack_range(form[at[0] : sum(at)], values.dtype, 100, 13, 40)
                assert part.dtype == values.dtype and (part == values[13:53]).all(), (dtype, type(form))


def test_bits_and_shapes():
    values = np.arange(24, dtype="u2").reshape(2, 3, 4)
    payload = packing.pack(values, bits=12)
    assert payload.tobytes() == packing.pack(values, last_bit=11).tobytes() and payload.size == 36
    assert np.array_equal(packing.unpack(payload, "u2", values.shape, bits=12), values)
    high = values << 4
    assert np.array_equal(packing.unpack(packing.pack(high, first_bit=4, bits=5), "u2", (24,), first_bit=4, bits=5), high.ravel())
    assert "use one of them" in refusal(lambda: packing.pack(values, last_bit=11, bits=12))
    for wrong in (0, -1, 17, 2.0, True):
        refusal(lambda: packing.pack(values, bits=wrong))


def test_numbers_only():
    for dtype in ("S3", "U3", "O", "V2", [("a", "i2")], "f16", "c32"):
        assert 'use "bytes"' in refusal(packing.kept_bits, np.dtype(dtype))
