# SPDX-License-Identifier: BSL-1.0
"""`zarrbits verify` reads what `convert` reads: filters without a plugin, and types that need a form of their own."""

import ctypes
import json
import os
import resource
import struct
import subprocess
import tempfile

import h5py
import numpy as np

from command import COMMAND, run
from stores_by_hand import array, flip, group, library

ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"}


def bitfield(f, name, values, precision, offset, order):
    kind = {"<": h5py.h5t.STD_B16LE, ">": h5py.h5t.STD_B16BE}[order].copy()
    assert library().H5Tset_precision(ctypes.c_int64(kind.id), ctypes.c_size_t(precision)) >= 0
    assert library().H5Tset_offset(ctypes.c_int64(kind.id), ctypes.c_size_t(offset)) >= 0
    d = h5py.h5d.create(f.id, name, kind, h5py.h5s.create_simple((len(values),)))
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(values, order + "u2"), kind)


def write(f):
    f.create_dataset("lzf", data=np.arange(1000), chunks=(100,), compression="lzf")
    f.create_dataset("text", data=["one", "two"], dtype=h5py.string_dtype(), chunks=(2,), compression="lzf")
    f["long double"] = np.array([1.5, -2.25], np.longdouble)
    f.create_dataset("regions", (2,), h5py.regionref_dtype)[0] = f["lzf"].regionref[3:9]
    inner = np.dtype([("n", "<i2"), ("s", h5py.string_dtype())])
    d = f.create_dataset("array of compounds", (2,), np.dtype([("a", inner, (2,)), ("b", "<i4")]))
    d[0] = ([(1, "one"), (2, "two")], 3)
    d[1] = ([(4, "four"), (5, "five")], 6)
    bitfield(f, b"bits", [0x0FF0, 0x1230], 8, 4, "<")
    bitfield(f, b"big bits", [0x0FF0, 0x1230], 8, 4, ">")


CHUNKS = {
    "lzf": "lzf/c/3",
    "text": "text/c/0",
    "long double": "long double/c/0",
    "regions": "regions/c/0",
    "array of compounds": "array of compounds/a/s/c/0/0",
    "bits": "bits/c/0",
    "big bits": "big bits/c/0",
}


class TestSources:
    def test_what_convert_reads_is_compared_in_full(self):
        with tempfile.TemporaryDirectory() as folder:
            source, store = folder + "/s.h5", folder + "/s.zarr"
            with h5py.File(source, "w") as f:
                write(f)
            r = run("convert", "--quiet", source, store, env=ENVIRONMENT)
            assert r.returncode == 0, r.stderr
            r = run("verify", "--json", source, store, env=ENVIRONMENT)
            report = json.loads(r.stdout)
            assert (r.returncode, report["findings"], report["elements"]["unchecked"]) == (0, [], 0)
            assert report["datasets"]["equal"] == len(CHUNKS)
            for name, key in CHUNKS.items():
                at = os.path.getsize(f"{store}/{key}") - 1
                flip(store, key, at)
                r = run("verify", "--json", source, store, env=ENVIRONMENT)
                assert (r.returncode, [f["path"] for f in json.loads(r.stdout)["findings"]]) == (1, ["/" + name])
                flip(store, key, at)

    def test_strings_of_more_than_the_bound_are_not_read(self):
        """Any number of strings may refer to the same piece of the file."""
        count, text = 300, "x" * 4_000_000
        with tempfile.TemporaryDirectory() as folder:
            source, store = folder + "/b.h5", folder + "/b.zarr"
            with h5py.File(source, "w") as f:
                f.create_dataset("one", data=[text], dtype=h5py.string_dtype())
                f.create_dataset("many", (count,), h5py.string_dtype())[...] = ""
                f.attrs.create("many", ["1234567"] * count, dtype=h5py.string_dtype())
                one, many, size = f["one"].id.get_offset(), f["many"].id.get_offset(), f["one"].id.get_storage_size()
            with open(source, "r+b") as f:
                f.seek(one)
                reference = f.read(size)
                f.seek(0)
                whole = f.read()
                # those of the attribute: a length of 7, an address and an index for each
                length = struct.pack("<I", 7)
                attribute = next(i for i in range(len(whole)) if all(whole.startswith(length, i + 16 * k) for k in range(count)))
                for at in (many, attribute):
                    f.seek(at)
                    f.write(reference * count)
            group(store, {"many": [""] * count})
            array(store + "/many", [count], [count], "string", [{"name": "vlen-utf8"}], "", {})
            process = subprocess.Popen([COMMAND, "verify", "--json", source, store], stdout=subprocess.PIPE)
            report = json.loads(process.stdout.read())
            process.stdout.close()
            _, process.returncode, used = os.wait4(process.pid, 0)
            found = {(f["kind"], f["path"]): f for f in report["findings"]}
            assert "more than 512.0 MiB" in found["dataset", "/many"]["reason"]
            assert "take more than 256" in found["attribute", "/"]["reason"]
            if not os.environ.get("ZARRBITS_SANITIZED"):  # a sanitizer's own memory is not ours to bound
                assert used.ru_maxrss < 700 << 10  # KiB


def test_booleans_that_are_neither(folder):
    """h5py's boolean type with another value than 0 and 1: the store has integers, and they are compared."""
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        flag = h5py.h5t.enum_create(h5py.h5t.STD_I8LE)
        flag.enum_insert(b"FALSE", 0)
        flag.enum_insert(b"TRUE", 1)
        d = h5py.h5d.create(f.id, b"flags", flag, h5py.h5s.create_simple((4,)))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0, 1, 2, 1], "i1"), flag)
    assert run("convert", source, store, "-q").returncode == 0
    assert run("verify", source, store).returncode == 0
    chunk = os.path.join(store, "flags", "c", "0")
    with open(chunk, "r+b") as values:
        values.write(b"\1")
    r = run("verify", source, store)
    assert r.returncode == 1 and b"/flags" in r.stdout, r.stdout


def test_plain_file_with_a_name_of_netcdf(folder):
    """Nothing in the store says that it was not made by netCDF."""
    source, store = os.path.join(folder, "in.nc"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.attrs["title"] = "of variable length"
        f.create_dataset("x", data=np.arange(3.0)).attrs["units"] = np.bytes_("K")
    assert run("convert", source, store, "-q").returncode == 0
    r = run("verify", source, store)
    assert r.returncode == 0, r.stdout
    with h5py.File(source, "r+") as f:
        f.attrs["title"] = "of another text"
    assert run("verify", source, store).returncode == 1


def test_many_children_take_time_in_proportion(tmp_path):
    """Groups, and links to them: four times as many take four times as long, not sixteen times."""
    taken = []
    for count in 5000, 20000:
        source, store = tmp_path / f"{count}.h5", tmp_path / f"{count}.zarr"
        with h5py.File(source, "w") as f:
            for i in range(count):
                f.create_group(f"g{i}")
        assert run("convert", "-q", source, store).returncode == 0
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run("verify", source, store)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done
        taken.append(after.ru_utime - before.ru_utime)
    assert taken[1] < 8 * taken[0] + 0.5, taken
