# SPDX-License-Identifier: BSL-1.0
"""The filters as an h5py user meets them.

Expected chunks come from a model of one line, or from numpy's packbits; the plugins are found by HDF5_PLUGIN_PATH alone.
"""

import ctypes
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import pytest

PACKBITS, BYTES = int(os.environ["ZARRBITS_PACKBITS_ID"]), int(os.environ["ZARRBITS_BYTES_ID"])
OPTIONAL, MANDATORY = h5py.h5z.FLAG_OPTIONAL, 0
FIRST, LAST, TRUNCATE, REPORT, ERROR, MSB = 1, 2, 4, 8, 12, 16
rng = np.random.default_rng(7)
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "t.h5")


@pytest.fixture
def file():
    with h5py.File(path, "w") as file:
        yield file


def last_error():
    plugin = ctypes.CDLL(os.path.join(os.environ["ZARRBITS_PLUGINS"], "libzarrbits_packbits.so"))
    plugin.zarrbits_hdf5_last_error.restype = ctypes.c_char_p
    return plugin.zarrbits_hdf5_last_error().decode()


def payload(values, bits, first=0):
    """The packbits text: one long little-endian number."""
    whole = sum(((int(v) >> first) & ((1 << bits) - 1)) << (i * bits) for i, v in enumerate(values))
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


def low_level(file, tid, values, cd=(), flags=OPTIONAL, chunk=64, filter_id=PACKBITS, before=None, after=None):
    """A dataset of any HDF5 type; values are the bytes that lie in the file."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((chunk,))
    if before:
        before(dcpl)
    dcpl.set_filter(filter_id, flags, tuple(cd))
    if after:
        after(dcpl)
    d = h5py.h5d.create(file.id, b"x", tid, h5py.h5s.create_simple((len(values),)), dcpl)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=tid)
    file.flush()
    return d


def stored(d, origin=0):
    d = d.id if isinstance(d, h5py.Dataset) else d
    return d.read_direct_chunk((origin,))


def reread(file, tid, like, name="x"):
    """What another opening of the file sees."""
    file.flush()
    with h5py.File(path, "r") as again:
        back = np.empty_like(like)
        again[name].id.read(h5py.h5s.ALL, h5py.h5s.ALL, back, mtype=tid)
    return back


def packs(file, tid, values, wanted, cd=(), back=None):
    d = low_level(file, tid, values, cd, chunk=len(values))
    assert stored(d) == (0, wanted), (stored(d), wanted.hex())
    del d
    assert reread(file, tid, values).tobytes() == (values if back is None else back).tobytes()
    del file["x"]


def refuses(file, words, dtype="u2", filter_id=PACKBITS, chunks=(10,), **kw):
    try:
        file.create_dataset("refused", shape=(10,), dtype=dtype, chunks=chunks, compression=filter_id, **kw)
    except Exception as e:
        assert "zarrbits: " in str(e) and words in str(e), str(e)
        return
    raise AssertionError(f"not refused: {words}")


def copy_with(tid, precision, offset=0):
    """h5py cannot set the precision of bitfields: the last four bytes of an encoded type are its offset and its precision."""
    encoded = tid.encode()[:-4] + offset.to_bytes(2, "little") + precision.to_bytes(2, "little")
    t = h5py.h5t.decode(encoded)
    assert (
        (t.get_precision(), t.get_offset()) == (precision, offset)
        if isinstance(t, h5py.h5t.TypeIntegerID)
        else encoded == t.encode()
    )
    return t


def test_booleans(file):
    v = rng.integers(0, 2, (40, 30)).astype(bool)
    d = file.create_dataset("x", data=v, chunks=(16, 30), compression=PACKBITS)
    file.flush()
    mask, raw = d.id.read_direct_chunk((0, 0))
    assert mask == 0 and raw == np.packbits(v[:16].ravel(), bitorder="little").tobytes()
    assert np.array_equal(reread(file, h5py.h5t.py_create(v.dtype, logical=True), v), v)


def test_numcodecs_order_of_booleans(file):
    v = rng.integers(0, 2, 61).astype(bool)
    d = file.create_dataset("x", data=v, chunks=(61,), compression=PACKBITS, compression_opts=(1, FIRST | MSB))
    file.flush()
    assert stored(d) == (0, b"\x03" + np.packbits(v).tobytes())
    assert np.array_equal(reread(file, h5py.h5t.py_create(v.dtype, logical=True), v), v)


def test_enumerations(file):
    for members, base, bits in (
        ({"A": 0, "F": 5}, "u1", 3),
        ({"A": 0, "F": 5}, "i1", 3),
        ({"N": -2, "P": 1}, "<i4", 2),
        ({"P": 300}, ">u2", 9),
    ):
        v = np.array(list(members.values()) * 20, base)
        packs(file, h5py.h5t.py_create(h5py.enum_dtype(members, base), logical=True), v, payload(v, bits))
    v = np.array([0, 9, 5], "u1")
    packs(file, h5py.h5t.py_create(h5py.enum_dtype({"A": 0, "F": 5}, "u1"), logical=True), v, payload(v, 4), cd=(4,))


def test_bitfields(file):
    v = rng.integers(0, 8, 99).astype("u1")
    packs(file, copy_with(h5py.h5t.STD_B8LE, 3), v, payload(v, 3))
    w = rng.integers(0, 1 << 11, 99).astype(">u2")
    packs(file, copy_with(h5py.h5t.STD_B16BE, 11), w, payload(w, 11))
    packs(file, h5py.h5t.STD_B16BE, w, payload(w, 12), cd=(12,))


def test_integers_of_reduced_precision(file):
    for tid, dtype in (
        (h5py.h5t.STD_I16LE, "<u2"),
        (h5py.h5t.STD_I16BE, ">u2"),
        (h5py.h5t.STD_U16LE, "<u2"),
        (h5py.h5t.STD_U32BE, ">u4"),
    ):
        bits = 20 if dtype == ">u4" else 12
        for offset in (0, 3):
            v = (rng.integers(0, 1 << bits, 99).astype(dtype) << offset).astype(dtype)  # as HDF5 fills it: zeros outside
            v[0] = ((1 << bits) - 1) << offset
            packs(file, copy_with(tid, bits, offset), v, payload(v, bits, offset))
            packs(file, copy_with(tid, bits, offset), v, payload(v, bits, offset), cd=(bits, 0, offset))
    # -1 through HDF5's own conversion
    t = copy_with(h5py.h5t.STD_I16LE, 12)
    v = rng.integers(-2048, 2048, 64).astype("i8")
    d = low_level(file, t, (v & 0xFFF).astype("u2"))
    assert stored(d) == (0, payload(v, 12))
    wide = np.empty(64, "i8")
    d.read(h5py.h5s.ALL, h5py.h5s.ALL, wide)
    assert np.array_equal(wide, v)


def test_floats_of_4_and_6_bits(file):
    for bits, fields, bias in ((4, (3, 1, 2, 0, 1), 1), (6, (5, 3, 2, 0, 3), 1), (6, (5, 2, 3, 0, 2), 3)):
        t = h5py.h5t.IEEE_F32LE.copy()
        t.set_fields(*fields)
        t.set_precision(bits)
        t.set_size(1)
        t.set_ebias(bias)
        v = rng.integers(0, 1 << bits, 99).astype("u1")
        packs(file, t, v, payload(v, bits))


def test_integers_and_floats_with_bits(file):
    for dtype, bits, first in (("<u2", 12, 0), (">u2", 12, 0), ("<u4", 20, 5), (">u8", 33, 31), ("u1", 1, 7), ("<u2", 16, 0)):
        v = (rng.integers(0, 1 << bits, 77, dtype="u8") << np.uint64(first)).astype(dtype)
        for padding, wrap in ((0, b"%b"), (FIRST, bytes([-77 * bits % 8]) + b"%b"), (LAST, b"%b" + bytes([-77 * bits % 8]))):
            packs(
                file,
                h5py.h5t.py_create(np.dtype(dtype)),
                v,
                wrap.replace(b"%b", payload(v, bits, first)),
                cd=(bits, padding, first),
            )
    f = rng.normal(size=50).astype("f4").view("u4") & np.uint32(0xFFFF0000)
    packs(file, h5py.h5t.IEEE_F32LE, f, payload(f, 16, 16), cd=(16, 0, 16))


def test_complex_numbers_and_arrays(file):
    v = (rng.integers(-9, 9, 50) + 1j * rng.integers(-9, 9, 50)).astype("c8")
    parts = v.view("u4")
    packs(file, h5py.h5t.py_create(np.dtype("c8")), v, payload(parts, 20, 12), cd=(20, 0, 12))
    a = rng.integers(0, 4096, (10, 3)).astype("<u2")
    packs(file, h5py.h5t.array_create(h5py.h5t.STD_U16LE, (3,)), a, payload(a.ravel(), 12), cd=(12,))


def test_chunks_with_values_that_do_not_fit_stay_as_they_are(file):
    v = rng.integers(0, 4096, 256).astype("u2")
    v[70] = 4096
    for name, policy in (("quiet", 0), ("reported", REPORT)):
        d = file.create_dataset(name, data=v, chunks=(64,), compression=PACKBITS, compression_opts=(12, policy))
        file.flush()
        assert [stored(d, o)[0] for o in range(0, 256, 64)] == [0, 0, 0, 0]
        assert stored(d, 64)[1] == v[64:128].tobytes() and stored(d, 0)[1] == payload(v[:64], 12)
    file.close()
    with h5py.File(path, "r") as again:
        assert np.array_equal(again["quiet"][:], v) and np.array_equal(again["reported"][:], v)


def test_a_rewritten_chunk_is_what_was_written_last(file):
    # 12 bits of one 16-bit value take both bytes: HDF5 would leave the filter mask of a chunk that fits no longer
    refuses(file, "as many unpacked", chunks=(1,), compression_opts=(12,))
    refuses(file, "as many unpacked", chunks=(1,), compression_opts=(12, REPORT))
    refuses(file, "or no count byte", "u1", chunks=(8,), compression_opts=(7, FIRST))
    refuses(file, "as many unpacked", bool, chunks=(1,))
    refuses(file, "as many unpacked", fletcher32=True, chunks=(1,), compression_opts=(12,))
    d = file.create_dataset("d", (4,), "u2", chunks=(2,), compression=PACKBITS, compression_opts=(12,))
    for value in (5, 5000, 6):
        d[:] = value
        file.flush()
        assert (reread(file, h5py.h5t.NATIVE_UINT16, np.empty(4, "u2"), "d") == value).all()


def test_with_the_policy_error_a_misfit_is_one_and_nothing_changes(file):
    """In a process of its own, since libhdf5 ends it when a chunk in its cache cannot be written;
    without that cache it does not."""
    program = """if 1:
        import h5py, sys
        import numpy as np
        f = h5py.File(sys.argv[1], "w", rdcc_nbytes=int(sys.argv[3]))
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((64,)); dcpl.set_filter(int(sys.argv[2]), h5py.h5z.FLAG_OPTIONAL, (12, int(sys.argv[4]))); dcpl.set_deflate(4)
        d = h5py.Dataset(h5py.h5d.create(f.id, b"x", h5py.h5t.STD_U16LE, h5py.h5s.create_simple((128,)), dcpl))
        d[:] = 7
        f.flush()
        try:
            d[3] = 5000
            f.flush()
        except (OSError, RuntimeError) as e:
            print("error:", e)
        if sys.argv[3] != "0": d[3] = 7  # what is in the cache can be mended
        f.close()
        print("closed")
        """  # noqa: E501
    other = os.path.join(folder.name, "other.h5")
    for cache in ("0", "1000000"):
        run = subprocess.run(
            [sys.executable, "-c", program, other, str(PACKBITS), cache, str(ERROR)], capture_output=True, text=True
        )
        assert run.returncode == 0 and "error:" in run.stdout and "closed" in run.stdout, (cache, run)
        assert "element 3 of a chunk holds 0x1388" in run.stdout + run.stderr and "with option 12" in run.stderr, run
        with h5py.File(other, "r") as f:
            assert (f["x"][:] == 7).all(), cache
            assert f["x"].id.get_create_plist().get_filter(0)[1] == MANDATORY


def test_reports_and_warnings_are_lines_on_standard_error(file):
    program = """if 1:
        import h5py, sys
        import numpy as np
        with h5py.File(sys.argv[1], "w") as f:
            make = lambda name, dtype, *cd: f.create_dataset(name, (8,), dtype, chunks=(4,), compression=int(sys.argv[2]), compression_opts=cd)
            for name in ("a", "b"): make(name, "u2", 12, int(sys.argv[3]))[:] = [0, 0, 5000, 0] * 2
            f.flush()
            for name in "cde": make(name, "i1", 1)[:] = 1
        """  # noqa: E501
    for log, policy, reports, warnings in ((None, REPORT, 2, 1), (None, 0, 0, 1), ("0", REPORT, 0, 0), ("1", 0, 4, 3)):
        env = {k: v for k, v in os.environ.items() if k != "ZARRBITS_HDF5_LOG"}
        if log:
            env["ZARRBITS_HDF5_LOG"] = log
        run = subprocess.run(
            [sys.executable, "-c", program, os.path.join(folder.name, "log.h5"), str(PACKBITS), str(policy)],
            env=env,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run
        assert run.stderr.count("element 2 of a chunk holds 0x1388") == reports, (log, policy, run.stderr)
        assert (
            run.stderr.count("0x1388, which the 12 bits from bit 0 on cannot hold; the chunk is stored as it is; keep more bits")
            == reports
        ), run.stderr
        assert run.stderr.count("one bit of a signed integer holds 0 and -1") == warnings, run.stderr


def test_truncation_is_opt_in(file):
    v = rng.integers(0, 65536, 64).astype("u2")
    packs(file, h5py.h5t.STD_U16LE, v, payload(v, 12), cd=(12, TRUNCATE), back=v & 0xFFF)


def test_refusals_reach_the_user_as_sentences(file):
    refuses(file, "class string", "S5")
    refuses(file, "compound", [("a", "i4"), ("b", "f8")])
    refuses(file, "class reference", h5py.ref_dtype)
    refuses(file, "nothing to pack")
    refuses(file, "17 bits", compression_opts=(17,))
    refuses(file, "12 bits from bit 5", compression_opts=(12, 0, 5))
    refuses(file, "padding", compression_opts=(12, 3))
    refuses(file, "bits 0 to 4", compression_opts=(12, 1 << 5))
    refuses(file, "bits 0 to 4", compression_opts=(12, 1 << 20))
    refuses(file, "fourth value", compression_opts=(12, 0, 0, 1))
    refuses(file, "most significant", compression_opts=(12, MSB))
    refuses(file, "most significant", "u1", compression_opts=(1, MSB))
    refuses(file, "a boolean has 1", bool, compression_opts=(2,))
    refuses(file, "(shuffle) comes before", compression_opts=(12,), shuffle=True)
    refuses(file, "must be 0", filter_id=BYTES, compression_opts=(2,))
    refuses(file, "(shuffle) comes before", filter_id=BYTES, compression_opts=(0,), shuffle=True)
    refuses(file, "class string", "S5", filter_id=BYTES)
    assert not list(file)


def test_filters_after_ours(file):
    v = rng.integers(0, 4096, 640).astype("u2")
    d = file.create_dataset("x", data=v, chunks=(64,), compression=PACKBITS, compression_opts=(12,), fletcher32=True)
    file.flush()
    mask, raw = stored(d)
    assert mask == 0 and raw[:-4] == payload(v[:64], 12)
    del file["x"]
    low_level(file, h5py.h5t.STD_U16LE, v, (12,), after=lambda dcpl: dcpl.set_deflate(6))
    assert np.array_equal(reread(file, h5py.h5t.STD_U16LE, v), v)


def test_fletcher32_before_ours(file):
    """As netCDF sets it: the checksum is that of the values, and follows the packed ones."""
    v = rng.integers(0, 4096, 192).astype("u2")
    v[70] = 5000

    def check(dcpl):
        return dcpl.set_fletcher32()

    d = low_level(file, h5py.h5t.STD_U16LE, v, (12,), before=check)
    assert stored(d, 0)[1][:-4] == payload(v[:64], 12) and stored(d, 64)[1][:-4] == v[64:128].tobytes()
    assert np.array_equal(reread(file, h5py.h5t.STD_U16LE, v), v)
    wrong = bytearray(stored(d, 128)[1])
    wrong[5] ^= 1
    d.write_direct_chunk((128,), bytes(wrong))
    with pytest.raises(OSError):
        reread(file, h5py.h5t.STD_U16LE, v)
    del d, file["x"]
    low_level(file, h5py.h5t.STD_U16LE, v, (1,), filter_id=BYTES, before=check)
    assert np.array_equal(reread(file, h5py.h5t.STD_U16LE, v), v)
    del file["x"]
    for tid, cd in ((h5py.h5t.STD_U16LE, (12, TRUNCATE)), (copy_with(h5py.h5t.STD_I16LE, 12), ())):
        with pytest.raises(ValueError, match="put fletcher32 after it"):
            low_level(file, tid, v, cd, before=check)


def test_bytes_in_either_order(file):
    for dt in ("<u2", ">u2", "<i4", ">f4", "<f8", "<c16", ">c8", "u1", bool):
        for endian in (0, 1):
            v = rng.integers(0, 2, 125).astype(dt)
            d = file.create_dataset(f"{dt}{endian}", data=v, chunks=(125,), compression=BYTES, compression_opts=(endian,))
            file.flush()
            assert stored(d) == (0, v.astype(v.dtype.newbyteorder("<>"[endian])).tobytes()), (dt, endian)
    o = np.frombuffer(rng.bytes(60), "V3")
    d = file.create_dataset("opaque", data=o, chunks=(20,), compression=BYTES, compression_opts=(1,))
    file.flush()
    assert stored(d) == (0, o.tobytes())
    file.close()
    with h5py.File(path, "r") as again:
        assert again["opaque"][:].tobytes() == o.tobytes()
        assert all(again[n][:].shape == (125,) for n in again if n != "opaque")


def test_damaged_chunks_raise(file):
    d = file.create_dataset("x", (100,), "u2", chunks=(100,), compression=PACKBITS, compression_opts=(12, FIRST))
    for wrong in (b"", b"\0", b"\0" * 150, b"\0" * 152, b"\1" + b"\0" * 150, b"\xff" * 151, b"\0" * 60000):
        if not wrong:
            continue
        d.id.write_direct_chunk((0,), wrong)
        try:
            d[:]
        except OSError as e:
            # HDF5 1.14.5 to 2.1 throw away what filters put on the error stack; the last error of the thread is always there
            for text in [last_error()] if (1, 14, 5) <= h5py.version.hdf5_version_tuple < (2, 2) else [last_error(), str(e)]:
                assert "zarrbits: packbits: a chunk" in text and "damaged" in text, text
        else:
            raise AssertionError(f"read {len(wrong)} bytes")
    d.id.write_direct_chunk((0,), b"\0" + b"\xff" * 150)
    assert (d[:] == 0xFFF).all()


def test_a_log_line_says_which_chunks_stay_raw(file):
    program = (
        "import h5py, sys; f = h5py.File(sys.argv[1], 'w'); "
        f"f.create_dataset('x', data=[1, 5000], dtype='u2', chunks=(2,), compression={PACKBITS}, "
        "compression_opts=(12,)); f.close()"
    )
    for log, lines in (("1", 1), (None, 0)):
        env = {k: v for k, v in os.environ.items() if k != "ZARRBITS_HDF5_LOG"}
        if log:
            env["ZARRBITS_HDF5_LOG"] = log
        run = subprocess.run(
            [sys.executable, "-c", program, os.path.join(folder.name, "log.h5")], env=env, capture_output=True, text=True
        )
        assert run.returncode == 0 and run.stderr.count("zarrbits: packbits: element 1 of a chunk holds 0x1388") == lines, (
            run.stderr
        )
