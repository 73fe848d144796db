# SPDX-License-Identifier: BSL-1.0
"""One libhdf5 that writes and reads files with the filters, for test_plugin_matrix.py. Runs under Pythons of many ages.

    plugin_peer.py write VALUES FILE             with this Python's h5py
    plugin_peer.py read VALUES FILE...
    plugin_peer.py errors VALUES DAMAGED         what is said of impossible parameters, and of a file with a damaged chunk
    plugin_peer.py write|read|errors VALUES --library LIBHDF5 FILE...      with the library itself, by ctypes
    plugin_peer.py together VALUES LIBHDF5...    all of them in one process, each writes a file that each reads

VALUES is a folder that plugin_values.py made. The last line is JSON.
"""

import ctypes
import glob
import json
import os
import sys
import tempfile

PACKBITS, BYTES = 45429, 45438
size = ctypes.c_size_t


def wanted(folder):
    with open(os.path.join(folder, "values.json")) as f:
        cases = json.load(f)
    for case in cases:
        with open(os.path.join(folder, case["name"] + ".bin"), "rb") as f:
            case["bytes"] = f.read()
    return cases


class H5py:
    def __init__(self):
        import h5py

        self.h5py, self.version = h5py, h5py.version.hdf5_version

    def write(self, cases, path):
        import numpy as np

        with self.h5py.File(path, "w", libver=("earliest", "v110")) as f:
            for c in cases:
                values = np.frombuffer(c["bytes"], c["dtype"]).reshape(c["shape"])
                f.create_dataset(
                    c["name"],
                    data=values,
                    chunks=tuple(c["chunk"]),
                    compression=c["filter"],
                    compression_opts=tuple(c["values"]) or None,
                )

    def read(self, cases, path):
        with self.h5py.File(path, "r") as f:
            return [c["name"] for c in cases if f[c["name"]][()].tobytes() != c["bytes"]]

    def errors(self, damaged):
        said = {}
        with self.h5py.File("errors", "w", driver="core", backing_store=False) as f:
            try:
                f.create_dataset("d", (4,), "u2", chunks=(4,), compression=PACKBITS, compression_opts=(17,))
            except Exception as e:  # ValueError or RuntimeError, as h5py pleases
                said["create"] = [str(e)]
        with self.h5py.File(damaged, "r") as f:
            try:
                f["d"][()]
            except OSError as e:
                said["read"] = [str(e)]
        return said


class Library:
    """A libhdf5 of 1.8 or later."""

    def __init__(self, path):
        # a wheel's library finds those beside it where the wheel's own modules loaded them before
        folder = os.path.dirname(path)
        beside = (
            [n for n in glob.glob(os.path.join(folder, "*.so*")) if not os.path.basename(n).startswith(("libhdf5", "libnetcdf"))]
            if folder.endswith(".libs")
            else []
        )
        for _ in range(4):
            for n in beside:
                try:
                    ctypes.CDLL(n)
                except OSError:  # needs one that comes later
                    pass
        self.h5 = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self.check(self.h5.H5open())
        numbers = [ctypes.c_uint() for _ in range(3)]
        self.check(self.h5.H5get_libversion(*map(ctypes.byref, numbers)))
        self.version = ".".join(str(n.value) for n in numbers)
        # in such a build every block has a header, which begins so; what the library says of itself is not always true
        self.h5.H5allocate_memory.restype = ctypes.c_void_p
        block = self.h5.H5allocate_memory(size(8), 0)
        if b"H5MM" in ctypes.string_at(block - 64, 64):
            self.version += " with memory checks"
        self.h5.H5free_memory(ctypes.c_void_p(block))
        # hid_t had 32 bits in 1.8
        self.hid = ctypes.c_int64 if [n.value for n in numbers] >= [1, 10, 0] else ctypes.c_int32
        for name in (
            "H5Fcreate",
            "H5Fopen",
            "H5Dcreate2",
            "H5Dopen2",
            "H5Dget_type",
            "H5Dget_space",
            "H5Screate_simple",
            "H5Pcreate",
            "H5Tenum_create",
        ):
            getattr(self.h5, name).restype = self.hid

    def check(self, status):
        if status < 0:
            raise RuntimeError(f"HDF5 {getattr(self, 'version', '?')} refused")
        return status

    def type_of(self, dtype):
        if dtype == "?":
            t = self.check(self.h5.H5Tenum_create(self.hid(self.hid.in_dll(self.h5, "H5T_STD_I8LE_g").value)))
            for i, name in enumerate((b"FALSE", b"TRUE")):
                self.check(self.h5.H5Tenum_insert(self.hid(t), name, ctypes.byref(ctypes.c_int8(i))))
            return t
        kind = {"u": "STD_U", "i": "STD_I", "f": "IEEE_F"}[dtype[1]]
        return self.hid.in_dll(self.h5, f"H5T_{kind}{8 * int(dtype[2:])}{'BE' if dtype[0] == '>' else 'LE'}_g").value

    def write(self, cases, path):
        f = self.check(self.h5.H5Fcreate(path.encode(), 2, self.hid(0), self.hid(0)))
        for c in cases:
            rank = len(c["shape"])
            dims = ctypes.c_uint64 * rank
            dcpl = self.check(self.h5.H5Pcreate(self.hid(self.hid.in_dll(self.h5, "H5P_CLS_DATASET_CREATE_ID_g").value)))
            self.check(self.h5.H5Pset_chunk(self.hid(dcpl), rank, dims(*c["chunk"])))
            n = len(c["values"])
            self.check(self.h5.H5Pset_filter(self.hid(dcpl), c["filter"], 1, size(n), (ctypes.c_uint * max(n, 1))(*c["values"])))
            space, t = self.check(self.h5.H5Screate_simple(rank, dims(*c["shape"]), None)), self.type_of(c["dtype"])
            d = self.check(
                self.h5.H5Dcreate2(
                    self.hid(f), c["name"].encode(), self.hid(t), self.hid(space), self.hid(0), self.hid(dcpl), self.hid(0)
                )
            )
            self.check(self.h5.H5Dwrite(self.hid(d), self.hid(t), self.hid(0), self.hid(0), self.hid(0), c["bytes"]))
            self.check(self.h5.H5Dclose(self.hid(d)))
        self.check(self.h5.H5Fclose(self.hid(f)))

    def read(self, cases, path):
        f, bad = self.check(self.h5.H5Fopen(path.encode(), 0, self.hid(0))), []
        for c in cases:
            d = self.check(self.h5.H5Dopen2(self.hid(f), c["name"].encode(), self.hid(0)))
            t = self.check(self.h5.H5Dget_type(self.hid(d)))
            into = ctypes.create_string_buffer(len(c["bytes"]))
            if (
                self.h5.H5Dread(self.hid(d), self.hid(t), self.hid(0), self.hid(0), self.hid(0), into) < 0
                or into.raw != c["bytes"]
            ):
                bad.append(c["name"])
            self.h5.H5Dclose(self.hid(d))
        self.check(self.h5.H5Fclose(self.hid(f)))
        return bad

    def error_stack(self):
        class Entry(ctypes.Structure):
            _fields_ = [
                ("cls", self.hid),
                ("major", self.hid),
                ("minor", self.hid),
                ("line", ctypes.c_uint),
                ("function", ctypes.c_char_p),
                ("file", ctypes.c_char_p),
                ("text", ctypes.c_char_p),
            ]

        said = []
        visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.POINTER(Entry), ctypes.c_void_p)
        keep = visit(lambda n, entry, data: said.append((entry.contents.text or b"").decode()) or 0)
        self.h5.H5Ewalk2(self.hid(0), 0, keep, None)
        return said

    def errors(self, damaged):
        said = {}
        self.h5.H5Eset_auto2(self.hid(0), None, None)
        access = self.check(self.h5.H5Pcreate(self.hid(self.hid.in_dll(self.h5, "H5P_CLS_FILE_ACCESS_ID_g").value)))
        self.check(self.h5.H5Pset_fapl_core(self.hid(access), size(1 << 16), 0))
        f = self.check(self.h5.H5Fcreate(b"errors", 2, self.hid(0), self.hid(access)))
        one = (ctypes.c_uint64 * 1)(4)
        dcpl = self.check(self.h5.H5Pcreate(self.hid(self.hid.in_dll(self.h5, "H5P_CLS_DATASET_CREATE_ID_g").value)))
        self.check(self.h5.H5Pset_chunk(self.hid(dcpl), 1, one))
        self.check(self.h5.H5Pset_filter(self.hid(dcpl), PACKBITS, 1, size(1), (ctypes.c_uint * 1)(17)))
        space = self.check(self.h5.H5Screate_simple(1, one, None))
        if (
            self.h5.H5Dcreate2(
                self.hid(f), b"d", self.hid(self.type_of("<u2")), self.hid(space), self.hid(0), self.hid(dcpl), self.hid(0)
            )
            < 0
        ):
            said["create"] = self.error_stack()
        self.check(self.h5.H5Fclose(self.hid(f)))
        f = self.check(self.h5.H5Fopen(damaged.encode(), 0, self.hid(0)))
        d = self.check(self.h5.H5Dopen2(self.hid(f), b"d", self.hid(0)))
        into = ctypes.create_string_buffer(1 << 16)
        if (
            self.h5.H5Dread(
                self.hid(d), self.hid(self.check(self.h5.H5Dget_type(self.hid(d)))), self.hid(0), self.hid(0), self.hid(0), into
            )
            < 0
        ):
            said["read"] = self.error_stack()
        return said


def main():
    what, cases, rest = sys.argv[1], wanted(sys.argv[2]), sys.argv[3:]
    if what == "together":
        libraries = [Library(p) for p in rest]
        with tempfile.TemporaryDirectory() as folder:
            bad = []
            for writer in libraries:
                path = os.path.join(folder, writer.version + ".h5")
                writer.write(cases, path)
                bad += [
                    [writer.version, reader.version, names]
                    for reader in libraries
                    for names in [reader.read(cases, path)]
                    if names
                ]
        maps = [line.split()[-1] for line in open("/proc/self/maps")]
        print(
            json.dumps(
                {
                    "pid": os.getpid(),
                    "versions": [line.version for line in libraries],
                    "bad": bad,
                    "plugins": sorted({m for m in maps if "libzarrbits_" in m}),
                    "libraries": len({m for m in maps if os.path.basename(m).startswith("libhdf5")}),
                }
            )
        )
        sys.exit(1 if bad else 0)
    if rest[0] == "--library":
        peer, rest = Library(rest[1]), rest[2:]
    else:
        peer = H5py()
    if what == "errors":
        print(json.dumps({"version": peer.version, "said": peer.errors(rest[0])}))
        return
    if what == "write":
        peer.write(cases, rest[0])
        print(json.dumps({"version": peer.version}))
    else:
        print(json.dumps({"version": peer.version, "bad": {path: peer.read(cases, path) for path in rest}}))


if __name__ == "__main__":
    main()
