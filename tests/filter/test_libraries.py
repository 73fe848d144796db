# SPDX-License-Identifier: BSL-1.0
"""Two libhdf5 in one process, both served by the one plugin.

The second one is a copy of the first under another name, loaded privately: its ids, its memory and its error stack are its own.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

PACKBITS = int(os.environ["ZARRBITS_PACKBITS_ID"])
hid, size = ctypes.c_int64, ctypes.c_size_t
U32 = ctypes.c_uint * 8


def serve(path, salt):
    h5 = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    for name in ("H5Pcreate", "H5Screate_simple", "H5Fcreate", "H5Dcreate2", "H5Tcopy"):
        getattr(h5, name).restype = hid
    assert h5.H5open() >= 0
    # ids of one library must mean nothing in the other: use up some
    kept = [h5.H5Tcopy(hid(hid.in_dll(h5, "H5T_STD_U16LE_g").value)) for _ in range(salt)]
    u16, u64 = (hid.in_dll(h5, n).value for n in ("H5T_STD_U16LE_g", "H5T_STD_U64LE_g"))
    dcpl = h5.H5Pcreate(hid(hid.in_dll(h5, "H5P_CLS_DATASET_CREATE_ID_g").value))
    n = (ctypes.c_uint64 * 1)(1000)
    assert h5.H5Pset_chunk(hid(dcpl), 1, n) >= 0
    assert h5.H5Pset_filter(hid(dcpl), PACKBITS, 1, size(1), (ctypes.c_uint * 1)(12)) >= 0
    space = h5.H5Screate_simple(1, n, None)
    folder = tempfile.mkdtemp()
    f = h5.H5Fcreate(os.path.join(folder, "x.h5").encode(), 2, hid(0), hid(0))
    result = []
    for name, t, ctype in ((b"a", u16, ctypes.c_uint16), (b"b", u64, ctypes.c_uint64)):
        d = h5.H5Dcreate2(hid(f), name, hid(t), hid(space), hid(0), hid(dcpl), hid(0))
        assert d >= 0, (path, name)
        written = (ctype * 1000)(*(i * 7 % 4096 for i in range(1000)))
        assert h5.H5Dwrite(hid(d), hid(t), hid(0), hid(0), hid(0), written) >= 0
        assert h5.H5Dflush(hid(d)) >= 0
        stored = ctypes.c_uint64()
        assert h5.H5Dget_chunk_storage_size(hid(d), (ctypes.c_uint64 * 1)(0), ctypes.byref(stored)) >= 0
        back = (ctype * 1000)()
        assert h5.H5Dclose(hid(d)) >= 0
        h5.H5Dopen2.restype = hid
        d = h5.H5Dopen2(hid(f), name, hid(0))
        assert h5.H5Dread(hid(d), hid(t), hid(0), hid(0), hid(0), back) >= 0 and list(back) == list(written)
        h5.H5Dclose(hid(d))
        result.append(stored.value)
    h5.H5Fclose(hid(f))
    shutil.rmtree(folder)
    return h5, kept, result


def test_a_program_may_unload_a_libhdf5_that_it_loaded(folder):
    """libhdf5 unloads its plugins in its own termination: what they then do must not unload the library."""
    program = f"""if 1:
        import _ctypes, ctypes, os, sys
        sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
        from test_libraries import serve
        for close in {{}}:
            library = serve({os.environ["ZARRBITS_LIBHDF5"]!r}, 0)[0]
            if close: assert library.H5close() >= 0
            _ctypes.dlclose(library._handle)
        print("done")
        """
    for close in ([False], [True], [False, False], [True, True, True]):
        r = subprocess.run(
            [sys.executable, "-c", program.replace("{}", repr(close))], capture_output=True, text=True, timeout=600
        )
        assert (r.returncode, r.stdout) == (0, "done\n"), (close, r)


def test_two_libraries_in_one_process(folder):
    library = os.environ["ZARRBITS_LIBHDF5"]
    copy = shutil.copy(os.path.realpath(library), os.path.join(folder, "libother_hdf5.so"))
    first, second, again = serve(library, 0), serve(copy, 500), serve(library, 3)
    places = {line.split()[-1] for line in open("/proc/self/maps") if "hdf5" in line and ".so" in line}
    plugins = {line.split()[-1] for line in open("/proc/self/maps") if "libzarrbits_packbits" in line}
    assert len(places) == 2 and len(plugins) == 1, (places, plugins)
    for served in (first, second, again):
        assert served[2] == [1500, 1500], served[2]
