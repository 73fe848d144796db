# SPDX-License-Identifier: BSL-1.0
"""The filters under HDF5's and netCDF's own programs."""

import os
import subprocess
import tempfile

import h5py
import numpy as np
import pytest

PACKBITS, BYTES = int(os.environ["ZARRBITS_PACKBITS_ID"]), int(os.environ["ZARRBITS_BYTES_ID"])
rng = np.random.default_rng(11)
folder = tempfile.TemporaryDirectory()


def place(name):
    return os.path.join(folder.name, name)


def run(*command, fails=False):
    r = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (r.returncode != 0) == fails, f"{' '.join(command)}: exit {r.returncode}\n{r.stdout[-2000:]}{r.stderr[-2000:]}"
    return r.stdout + r.stderr


def parameters(path, name):
    with h5py.File(path, "r") as f:
        dcpl = f[name].id.get_create_plist()
        return [dcpl.get_filter(i)[:3] for i in range(dcpl.get_nfilters())]


def first_chunk(path, name):
    with h5py.File(path, "r") as f:
        return f[name].id.read_direct_chunk((0,) * f[name].ndim)


def little(values):
    return np.packbits(values.ravel(), bitorder="little").tobytes()


def twelve(values):
    return np.packbits(
        np.unpackbits(values.astype("<u2").view("u1").reshape(-1, 2), axis=1, bitorder="little")[:, :12].ravel(),
        bitorder="little",
    ).tobytes()


mask = rng.integers(0, 2, (300, 200)).astype(bool)
raw = rng.integers(0, 4096, (300, 200)).astype("u2")
plain, packed, again, unpacked = (place(n) for n in ("plain.h5", "packed.h5", "again.h5", "unpacked.h5"))
with h5py.File(plain, "w", libver=("earliest", "v110")) as f:
    f["mask"], f["raw"], f["text"] = mask, raw, np.array([b"a", b"b"] * 50)


def same(path, names=("mask", "raw", "text")):
    with h5py.File(path, "r") as f, h5py.File(plain, "r") as g:
        for n in names:
            assert np.array_equal(f[n][()], g[n][()]), (path, n)


@pytest.fixture(scope="module", autouse=True)
def repacked():
    run(
        "h5repack",
        "-l",
        "mask:CHUNK=100x100",
        "-l",
        "raw:CHUNK=100x100",
        "-f",
        f"mask:UD={PACKBITS},1,0",
        "-f",
        f"raw:UD={PACKBITS},1,1,12",
        plain,
        packed,
    )
    run("h5repack", "-l", "mask:CHUNK=64x50", "-l", "raw:CHUNK=64x50", packed, again)


def test_h5repack_adds_reshapes_and_removes():
    """h5repack: add, change the chunk's shape (the settings stay, and are computed anew), remove."""
    same(packed)
    assert first_chunk(packed, "mask") == (0, little(mask[:100, :100]))
    assert first_chunk(packed, "raw") == (0, twelve(raw[:100, :100]))
    same(again)
    assert first_chunk(again, "mask") == (0, little(mask[:64, :50]))
    assert first_chunk(again, "raw") == (0, twelve(raw[:64, :50]))
    for name in ("mask", "raw"):
        (one,), (two,) = parameters(packed, name), parameters(again, name)
        assert one[:2] == two[:2] == (PACKBITS, 1) and len(one[2]) == len(two[2]) == 12 and one[2][:4] == two[2][:4], (one, two)
        assert one[2][8] == 10000 and two[2][8] == 3200, (one, two)
    run("h5repack", "-f", "NONE", again, unpacked)
    same(unpacked)
    assert parameters(unpacked, "mask") == [] and os.path.getsize(unpacked) > 1.3 * os.path.getsize(again)


def test_h5repack_of_all_datasets_at_once():
    """h5repack: all datasets at once; a dataset that cannot be packed keeps its settings, and -v says so."""
    everything = place("everything.h5")
    said = run("h5repack", "-v", "-l", "CHUNK=50", "-f", f"text:UD={PACKBITS},1,0", plain, everything)
    same(everything)
    assert parameters(everything, "text") == [] and "original settings" in said, said


@pytest.mark.parametrize("number, value", [(PACKBITS, 12), (BYTES, 1)])
@pytest.mark.parametrize("flag", [1, 0], ids=["optional", "mandatory"])
def test_h5repack_without_names_on_whatever_a_file_has(number, value, flag):
    """h5repack: without names, also variable length, references and compounds; the values stay, and can be written afterwards."""
    mixed, repacked = place("mixed.h5"), place(f"repacked{number}{flag}.h5")
    record = np.dtype([("number", "i4"), ("word", h5py.string_dtype())])
    words = ["a", "bc", "", "d" * 100]
    with h5py.File(mixed, "w") as f:
        f["scalar"] = 1
        f.create_dataset("numbers", data=np.arange(256, dtype="u2"), chunks=(64,), maxshape=(None,))
        f.create_dataset("words", data=words, dtype=h5py.string_dtype(), chunks=(2,), maxshape=(None,))
        f.create_dataset("lists", (2,), h5py.vlen_dtype("i4"), chunks=(2,), maxshape=(None,))[:] = np.array(
            [np.arange(3), np.arange(1)], object
        )
        f.create_dataset("records", data=np.array([(1, "x"), (2, "yy")], record), chunks=(1,), maxshape=(None,))
        f.create_dataset("table", data=np.zeros(64, [("a", "i4"), ("b", "f8")]), chunks=(32,))
        f.create_dataset("text", data=np.array([b"abc"] * 64), chunks=(32,))
        f.create_dataset("objects", data=np.array([f["numbers"].ref] * 4, h5py.ref_dtype), chunks=(2,))
        f.create_dataset("regions", (2,), h5py.regionref_dtype, chunks=(2,))[:] = [f["numbers"].regionref[2:5]] * 2
    run("h5repack", "-f", f"UD={number},{flag},1,{value}", mixed, repacked)
    run("h5diff", mixed, repacked)
    with h5py.File(repacked, "r") as f:
        filtered = {name for name in f if parameters(repacked, name)}
    # HDF5 itself refuses mandatory filters for variable length until 2.0; the filters refuse objects, compounds and fixed texts
    assert filtered == {"numbers", "records", *(("words", "lists") if flag else ())}
    with h5py.File(repacked, "r+") as f:
        f["words"].resize((6,))
        f["words"][4:] = ["new", "newer"]
        f["records"][1] = (3, "zzz")
    with h5py.File(repacked, "r") as f:
        assert (
            list(f["words"].asstr()[:]) == words + ["new", "newer"]
            and f["records"][1]["word"] == b"zzz"
            and f["lists"][0].tolist() == [0, 1, 2]
        )


def test_h5repack_of_bytes():
    """h5repack: bytes, big endian in the chunks."""
    big = place("big.h5")
    run("h5repack", "-l", "raw:CHUNK=100x100", "-f", f"raw:UD={BYTES},1,1,1", plain, big)
    same(big)
    assert first_chunk(big, "raw") == (0, raw[:100, :100].astype(">u2").tobytes())


def test_h5dump_and_h5diff():
    """h5dump shows the filter and reads the data."""
    shown = run("h5dump", "-pH", packed)
    assert f"FILTER_ID {PACKBITS}" in shown and "packbits" in shown, shown
    run("h5diff", plain, packed)
    run("h5diff", plain, again)
    assert "0xABC" not in run("h5ls", "-v", packed)


def test_a_reader_without_the_plugin_is_told_its_name():
    """A reader without the plugin is told the filter's name."""
    r = subprocess.run(
        ["h5dump", "--enable-error-stack", "-d", "raw", packed],
        capture_output=True,
        text=True,
        env={**os.environ, "HDF5_PLUGIN_PATH": folder.name},
    )
    assert "zarrbits-packbits" in r.stderr, r.stderr[-800:]


def test_netcdf_copies_the_settings():
    """netCDF-4: written with the filter from CDL, copied with nccopy; the settings of the copy are those of the original."""
    cdl, one, two, three = place("x.cdl"), place("one.nc"), place("two.nc"), place("three.nc")
    values = ", ".join(str(v) for v in raw[:30, :20].ravel())
    with open(cdl, "w") as f:
        f.write(
            "netcdf x { dimensions: y = 30 ; x = 20 ; variables: ushort v(y, x) ; "
            f'v:_Filter = "{PACKBITS},12" ; v:_ChunkSizes = 10, 20 ; data: v = {values} ; }}'
        )
    run("ncgen", "-4", "-o", one, cdl)
    run("nccopy", one, two)
    run("nccopy", "-M", "0", "-c", "v:5,20", one, three)
    for path, rows in ((one, 10), (two, 30), (three, 5)):  # nccopy makes one chunk of a small variable
        assert first_chunk(path, "v") == (0, twelve(raw[:rows, :20])), path
        with h5py.File(path, "r") as f:
            assert np.array_equal(f["v"][()], raw[:30, :20])
        assert parameters(path, "v")[0][2][:4] == (12, 0, 0, 0) and len(parameters(path, "v")[0][2]) == 12, parameters(path, "v")
    added = place("added.nc")
    run("nccopy", "-F", "v,none", one, place("none.nc"))
    run("nccopy", "-F", f"v,{PACKBITS},12", place("none.nc"), added)
    with h5py.File(added, "r") as f:
        rows, columns = f["v"].chunks
    assert parameters(place("none.nc"), "v") == [] and first_chunk(added, "v") == (0, twelve(raw[:rows, :columns]))
    assert f"{PACKBITS},12," in run("ncdump", "-hs", added)
