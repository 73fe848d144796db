# SPDX-License-Identifier: BSL-1.0
"""The HDF5 plugins, in every libhdf5 that is or gets loaded in the process, and for its children.
`import zarrbits` calls register(), as does `import zarrbits_plugins`, whose wheel has a copy of this file.

HDF5 loads a plugin when a dataset is created or read, never when one that exists is written:
it stores the chunks without an optional filter then, in silence. So finding the plugins is not enough;
each libhdf5 is made to load them."""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any


def compiled(name: str) -> str:
    """The path of a compiled file or folder: beside this file, if the package was built from source, or in zarrbits-plugins."""
    places = [os.path.dirname(os.path.abspath(__file__))]
    try:
        other = importlib.util.find_spec("zarrbits_plugins")  # looks, and imports nothing
    except ValueError:
        other = None
    if other and other.submodule_search_locations:
        places += other.submodule_search_locations
    paths = [os.path.join(place, name) for place in places]
    return next((path for path in paths if os.path.exists(path)), paths[0])


PLUGIN_PATH = compiled("plugins")
LIBRARY_PATH = compiled("libzarrbits.dll" if sys.platform == "win32" else "libzarrbits.so")  # zarrbits/zarrbits_c.h
PACKBITS, BYTES = 45429, 45438
_VARIABLE = "HDF5_PLUGIN_PATH"
_BRING_HDF5 = ("h5py", "netCDF4", "tables")  # each with a libhdf5 of its own
_told: set[str] = set()  # the paths of those that have loaded the filters
_before: list[str | None] | None = None  # what the variable was, in a list of one, while register() is in force


def _default_folders() -> list[str]:
    """Where libhdf5 and netCDF4 look when the variable is not set: it replaces these."""
    if sys.platform == "win32":
        folders = [os.path.join(os.environ.get("ALLUSERSPROFILE", ""), "hdf5", "lib", "plugin")]
    else:
        folders = [
            "/usr/local/hdf5/lib/plugin",
            f"/usr/lib/{os.uname().machine}-linux-gnu/hdf5/plugins",
            f"/usr/lib/{os.uname().machine}-linux-gnu/hdf5/serial/plugins",
        ]
    try:
        netcdf = importlib.util.find_spec("netCDF4")  # looks, and imports nothing
    except ValueError:
        netcdf = None
    if netcdf and netcdf.submodule_search_locations:
        folders.append(os.path.join(netcdf.submodule_search_locations[0], "plugins"))
    return [f for f in folders if os.path.isdir(f)]


def _loaded_files() -> set[str]:
    """The paths of what is mapped into this process, shared libraries among it."""
    if sys.platform == "win32":
        kernel, modules = ctypes.WinDLL("kernel32"), (ctypes.c_void_p * 4096)()
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        kernel.K32EnumProcessModules.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p]
        kernel.GetModuleFileNameW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_ulong]
        size, path = ctypes.c_ulong(), ctypes.create_unicode_buffer(32768)
        if not kernel.K32EnumProcessModules(kernel.GetCurrentProcess(), modules, ctypes.sizeof(modules), ctypes.byref(size)):
            return set()
        count = min(size.value, ctypes.sizeof(modules)) // ctypes.sizeof(ctypes.c_void_p)
        return {path.value for module in modules[:count] if kernel.GetModuleFileNameW(module, path, len(path))}
    if sys.platform == "darwin":
        loader = ctypes.CDLL(None)
        loader._dyld_get_image_name.restype = ctypes.c_char_p
        names = [loader._dyld_get_image_name(ctypes.c_uint32(i)) for i in range(loader._dyld_image_count())]
        return {os.fsdecode(name) for name in names if name}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            return {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
    except OSError:
        return set()


def _loaded_libraries() -> Iterator[tuple[str, Any]]:
    """Each libhdf5 that is in this process: h5py, netCDF4 and PyTables may have one each."""
    for path in sorted(_loaded_files()):
        name = os.path.basename(path)
        is_library = name.startswith(("libhdf5", "hdf5")) and any(end in name for end in (".so", ".dylib", ".dll"))
        if is_library and "_hl" not in name and "_cpp" not in name:
            try:
                if sys.platform == "win32":
                    library = ctypes.CDLL(path)  # what is loaded is not loaded twice
                else:
                    library = ctypes.CDLL(path, os.RTLD_LAZY | os.RTLD_NOLOAD)
                library.H5PLget.restype = ctypes.c_ssize_t
                library.H5PLget.argtypes = [ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t]
                yield path, library
            except (OSError, AttributeError):  # before 1.10.1 there is no H5PL
                continue


def _index_in(library: Any) -> int | None:
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


def _load() -> None:
    """Every libhdf5 that is in the process loads both filters, where it finds them."""
    with _h5py_lock():
        for path, library in _loaded_libraries():
            if path in _told:  # another thread may be in it
                continue
            if os.path.isdir(PLUGIN_PATH) and _index_in(library) is None:
                library.H5PLprepend(os.fsencode(PLUGIN_PATH))
            if all([library.H5Zfilter_avail(number) > 0 for number in (PACKBITS, BYTES)]):
                _told.add(path)


class _Later(importlib.abc.MetaPathFinder):
    """Calls _load() after a module was imported that brings a libhdf5. It finds nothing itself."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _BRING_HDF5 or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)  # asks all other finders
        finally:
            self._asking = False
        loader: Any = spec.loader if spec is not None else None  # Any: its exec_module is replaced
        if hasattr(loader, "exec_module"):
            run = loader.exec_module

            def then_load(module: types.ModuleType) -> None:
                run(module)
                _load()

            loader.exec_module = then_load  # of this loader alone
        return spec


_later = _Later()


def register() -> bool:
    """Has every libhdf5 load the filters: those that are in this process now, and those that come with h5py,
    netCDF4 and PyTables later. HDF5_PLUGIN_PATH is completed, for others that come later, and for child processes.
    True where this package has plugins;
    where it has none, HDF5_PLUGIN_PATH says where they are. Call it again after something else has loaded a libhdf5."""
    global _before
    if os.path.isdir(PLUGIN_PATH):
        now = os.environ.get(_VARIABLE)
        folders = now.split(os.pathsep) if now else _default_folders()
        if PLUGIN_PATH not in folders:
            if _before is None:
                _before = [now]
            os.environ[_VARIABLE] = os.pathsep.join([PLUGIN_PATH, *folders])
    if _later not in sys.meta_path:
        sys.meta_path.insert(0, _later)
    _load()
    return os.path.isdir(PLUGIN_PATH)


def unregister() -> None:
    """Undoes register(). A filter that a libhdf5 has loaded already stays in it."""
    global _before
    if _later in sys.meta_path:
        sys.meta_path.remove(_later)
    folders = [f for f in os.environ.get(_VARIABLE, "").split(os.pathsep) if f and f != PLUGIN_PATH]
    if _before is not None and _before[0] is None and folders == _default_folders():
        os.environ.pop(_VARIABLE, None)
    elif _VARIABLE in os.environ:
        os.environ[_VARIABLE] = os.pathsep.join(folders)
    _before = None
    _told.clear()
    with _h5py_lock():
        for _, library in _loaded_libraries():
            while (index := _index_in(library)) is not None:
                library.H5PLremove(index)
