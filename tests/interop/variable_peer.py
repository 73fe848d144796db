# SPDX-License-Identifier: BSL-1.0
"""One libhdf5 that gives our filters what they do not pack: data of variable length, references; and complex numbers.
For test_plugin_matrix.py.

    variable_peer.py LIBHDF5 FILE

Creates datasets, writes them, opens the file again, extends and writes them, opens it again and reads. The last line is JSON:
what HDF5 refused to create, what came back wrong, and how many bytes the first chunk of each dataset takes.
"""

import ctypes
import json
import sys

from plugin_peer import BYTES, PACKBITS, Library, size

CHUNK, FIRST, ALL = 4, 4, 6  # elements
OPTIONAL, MANDATORY = 1, 0
FLETCHER32 = 3
DATASET_REGION = 1


class Sequence(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("values", ctypes.POINTER(ctypes.c_int32))]

    @classmethod
    def of(cls, numbers):
        return cls(len(numbers), ctypes.cast((ctypes.c_int32 * len(numbers))(*numbers), ctypes.POINTER(ctypes.c_int32)))

    def list(self):
        return self.values[: self.length]


class Record(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int32), ("sequence", Sequence)]


def numbers(i):
    return list(range(i, 2 * i + 1))


class Peer(Library):
    def __init__(self, path, file):
        super().__init__(path)
        self.path, self.references = file.encode(), []
        for name in (
            "H5Tcopy",
            "H5Tvlen_create",
            "H5Tcreate",
            "H5Tarray_create2",
            "H5Rget_region",
            "H5Screate",
            "H5Sget_select_npoints",
        ):
            getattr(self.h5, name).restype = self.hid
        self.h5.H5Sget_select_npoints.restype = ctypes.c_int64
        self.h5.H5Eset_auto2(self.hid(0), None, None)

    def id(self, value):
        return self.hid(self.check(value))

    def known(self, name):
        try:
            return self.hid.in_dll(self.h5, f"H5T_{name}_g")
        except ValueError:
            return None

    def cases(self):
        """name -> type, element in memory, what to write at i, what it is"""
        integer = self.known("STD_I32LE")
        words = self.id(self.h5.H5Tcopy(self.known("C_S1")))
        self.check(self.h5.H5Tset_size(words, size(-1)))
        sequence = self.id(self.h5.H5Tvlen_create(integer))
        record = self.id(self.h5.H5Tcreate(6, size(ctypes.sizeof(Record))))
        self.check(self.h5.H5Tinsert(record, b"number", size(0), integer))
        self.check(self.h5.H5Tinsert(record, b"sequence", size(Record.sequence.offset), sequence))
        pair = self.id(self.h5.H5Tarray_create2(sequence, 1, (ctypes.c_uint64 * 1)(2)))
        two, region, reference = Sequence * 2, ctypes.c_ubyte * 12, ctypes.c_ubyte * 64
        found = {
            "words": (words, ctypes.c_char_p, lambda i: b"word" * i, lambda x: x),
            "sequences": (sequence, Sequence, lambda i: Sequence.of(numbers(i)), Sequence.list),
            "records": (record, Record, lambda i: Record(i, Sequence.of(numbers(i))), lambda x: (x.number, x.sequence.list())),
            "pairs": (pair, two, lambda i: two(Sequence.of(numbers(i)), Sequence.of([i])), lambda x: [x[0].list(), x[1].list()]),
            "regions": (self.known("STD_REF_DSETREG"), region, self.region, self.points),
        }
        if self.known("STD_REF"):
            self.h5.H5Rget_obj_name.restype = ctypes.c_ssize_t
            found["references"] = (self.known("STD_REF"), reference, self.reference, self.target)
        if self.known("COMPLEX_IEEE_F32LE"):
            found["complex"] = (self.known("COMPLEX_IEEE_F32LE"), ctypes.c_float * 2, lambda i: (ctypes.c_float * 2)(i, -i), list)
        return found

    def region(self, i):
        space, made = self.space(8), (ctypes.c_ubyte * 12)()
        self.check(self.h5.H5Sselect_hyperslab(space, 0, (ctypes.c_uint64 * 1)(0), None, (ctypes.c_uint64 * 1)(i + 1), None))
        self.check(self.h5.H5Rcreate(made, self.file, b"target", DATASET_REGION, space))
        return made

    def points(self, made):
        return self.h5.H5Sget_select_npoints(self.id(self.h5.H5Rget_region(self.file, DATASET_REGION, made)))

    def reference(self, i):
        made = (ctypes.c_ubyte * 64)()
        self.check(self.h5.H5Rcreate_object(self.file, b"target" if i % 2 else b"/", self.hid(0), made))
        self.references.append(made)
        return made

    def target(self, made):
        name = ctypes.create_string_buffer(100)
        self.check(self.h5.H5Rget_obj_name(made, self.hid(0), name, size(100)))
        return name.value

    def space(self, n, most=None):
        return self.id(self.h5.H5Screate_simple(1, (ctypes.c_uint64 * 1)(n), most and (ctypes.c_uint64 * 1)(most)))

    def create(self, name, type_id, number, flag, values):
        dcpl = self.id(self.h5.H5Pcreate(self.hid.in_dll(self.h5, "H5P_CLS_DATASET_CREATE_ID_g")))
        self.check(self.h5.H5Pset_chunk(dcpl, 1, (ctypes.c_uint64 * 1)(CHUNK)))
        self.check(self.h5.H5Pset_filter(dcpl, number, flag, size(len(values)), (ctypes.c_uint * 3)(*values)))
        d = self.h5.H5Dcreate2(self.file, name, type_id, self.space(FIRST, 100), self.hid(0), dcpl, self.hid(0))
        return None if d < 0 else self.hid(d)

    def close(self):
        for made in self.references:  # they keep the file open
            self.check(self.h5.H5Rdestroy(made))
        self.references = []
        self.check(self.h5.H5Fclose(self.file))

    def open(self):
        self.file = self.id(self.h5.H5Fopen(self.path, 1, self.hid(0)))

    def run(self):
        self.file = self.id(self.h5.H5Fcreate(self.path, 2, self.hid(0), self.hid(0)))
        target = self.id(
            self.h5.H5Dcreate2(
                self.file, b"target", self.known("STD_I32LE"), self.space(8), self.hid(0), self.hid(0), self.hid(0)
            )
        )
        self.h5.H5Dclose(target)
        cases, refused, datasets, wrong, sizes = self.cases(), [], {}, [], {}
        for case in cases:
            # 20 bits of each float, from bit 12 on, hold small integers
            for number, values in ((PACKBITS, (20, 0, 12) if case == "complex" else (12,)), (BYTES, (1,)), (FLETCHER32, ())):
                for flag in (OPTIONAL, MANDATORY):
                    name = f"{case}, {number}, {'optional' if flag == OPTIONAL else 'mandatory'}"
                    d = self.create(name.encode(), cases[case][0], number, flag, values)
                    if d is None:
                        refused.append(name)
                        continue
                    datasets[name] = case
                    self.write(d, cases[case], FIRST)
        self.close()
        self.open()
        for name, case in datasets.items():
            d = self.id(self.h5.H5Dopen2(self.file, name.encode(), self.hid(0)))
            self.check(self.h5.H5Dset_extent(d, (ctypes.c_uint64 * 1)(ALL)))
            self.write(d, cases[case], ALL)
        self.close()
        self.open()
        for name, case in datasets.items():
            type_id, element, make, what = cases[case]
            d, into = self.id(self.h5.H5Dopen2(self.file, name.encode(), self.hid(0))), (element * ALL)()
            self.check(self.h5.H5Dread(d, type_id, self.hid(0), self.hid(0), self.hid(0), into))
            if [what(x) for x in into] != [what((element * 1)(make(i))[0]) for i in range(ALL)]:
                wrong.append(name)
            if case == "references":
                self.references += into
            stored = ctypes.c_uint64()
            if hasattr(self.h5, "H5Dget_chunk_storage_size"):  # not in 1.8
                self.check(self.h5.H5Dget_chunk_storage_size(d, (ctypes.c_uint64 * 1)(0), ctypes.byref(stored)))
            sizes[name] = stored.value
            self.h5.H5Dclose(d)
        self.close()
        return {"version": self.version, "refused": refused, "wrong": wrong, "first_chunk": sizes}

    def write(self, d, case, n):
        type_id, element, make, _ = case
        self.check(
            self.h5.H5Dwrite(d, type_id, self.hid(0), self.hid(0), self.hid(0), (element * n)(*[make(i) for i in range(n)]))
        )
        self.check(self.h5.H5Dclose(d))


print(json.dumps(Peer(*sys.argv[1:]).run()))
