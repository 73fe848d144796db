# SPDX-License-Identifier: BSL-1.0
"""The HDF5 plugins of this package, for every libhdf5 in the process and in its children. `import zarrbits` calls register()."""
from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from typing import Any, Iterator, List, Optional

PLUGIN_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plugins")
_VARIABLE = "HDF5_PLUGIN_PATH"
_before: Optional[List[Optional[str]]] = None  # what the variable was, in a list of one, while register() is in force


def _default_folders() -> List[str]:
    """Where libhdf5 and netCDF4 look when the variable is not set: it replaces these."""
    folders = ["/usr/local/hdf5/lib/plugin", f"/usr/lib/{os.uname().machine}-linux-gnu/hdf5/plugins", f"/usr/lib/{os.uname().machine}-linux-gnu/hdf5/serial/plugins"]
    try:
        netcdf = importlib.util.find_spec("netCDF4")  # looks, and imports nothing
    except ValueError:
        netcdf = None
    if netcdf and netcdf.submodule_search_locations:
        folders.append(os.path.join(netcdf.submodule_search_locations[0], "plugins"))
    return [f for f in folders if os.path.isdir(f)]


def _loaded_libraries() -> Iterator[Any]:
    """Each libhdf5 that is in this process: h5py, netCDF4 and PyTables may have one each."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
    except OSError:
        return
    for path in sorted(paths):
        name = os.path.basename(path)
        if name.startswith("libhdf5") and ".so" in name and "_hl" not in name and "_cpp" not in name:
            try:
                library = ctypes.CDLL(path, os.RTLD_LAZY | os.RTLD_NOLOAD)
                library.H5PLget.restype = ctypes.c_ssize_t
                library.H5PLget.argtypes = [ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t]
                yield library
            except (OSError, AttributeError):  # before 1.10.1 there is no H5PL
                continue


def _index_in(library: Any) -> Optional[int]:
    count = ctypes.c_uint()
    if library.H5PLsize(ctypes.byref(count)) < 0:
        return None
    for index in range(count.value):
        length = library.H5PLget(index, None, 0)
        if length >= 0:
            text = ctypes.create_string_buffer(length + 1)
            library.H5PLget(index, text, length + 1)
            if text.value == os.fsencode(PLUGIN_PATH):
                return index
    return None


def _h5py_lock() -> Any:
    """h5py lets one thread into libhdf5 at a time."""
    h5py = sys.modules.get("h5py")
    lock = getattr(getattr(h5py, "_objects", None), "phil", None)
    return lock if lock is not None else _NoLock()


class _NoLock:
    def __enter__(self) -> _NoLock:
        return self

    def __exit__(self, *reason: Any) -> None:
        return None


def register() -> bool:
    """Lets HDF5 find the plugins: HDF5_PLUGIN_PATH is completed, for what is loaded later and for child processes; a libhdf5 that is loaded already
    is told by its own function. True where this package has plugins. Calling it again does no more."""
    global _before
    if not os.path.isdir(PLUGIN_PATH):
        return False
    now = os.environ.get(_VARIABLE)
    folders = now.split(os.pathsep) if now else _default_folders()
    if PLUGIN_PATH not in folders:
        if _before is None:
            _before = [now]
        os.environ[_VARIABLE] = os.pathsep.join([PLUGIN_PATH, *folders])
    h5py = sys.modules.get("h5py")
    if h5py is not None and hasattr(h5py, "h5pl"):
        known = {h5py.h5pl.get(i) for i in range(h5py.h5pl.size())}
        if os.fsencode(PLUGIN_PATH) not in known:
            h5py.h5pl.prepend(os.fsencode(PLUGIN_PATH))
    with _h5py_lock():
        for library in _loaded_libraries():
            if _index_in(library) is None:
                library.H5PLprepend(os.fsencode(PLUGIN_PATH))
    return True


def unregister() -> None:
    """Undoes register(). A filter that a libhdf5 has loaded already stays in it."""
    global _before
    folders = [f for f in os.environ.get(_VARIABLE, "").split(os.pathsep) if f and f != PLUGIN_PATH]
    if _before is not None and _before[0] is None and folders == _default_folders():
        os.environ.pop(_VARIABLE, None)
    elif _VARIABLE in os.environ:
        os.environ[_VARIABLE] = os.pathsep.join(folders)
    _before = None
    with _h5py_lock():
        for library in _loaded_libraries():
            while (index := _index_in(library)) is not None:
                library.H5PLremove(index)
