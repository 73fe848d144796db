# SPDX-License-Identifier: BSL-1.0
"""The HDF5 plugins, for the libhdf5 of h5py, netCDF4 and PyTables, and for child processes.
`import zarrbits` calls prepare(), as does `import zarrbits_plugins`, whose wheel has a copy of this file; this file alone does
nothing.

HDF5 loads a plugin when a dataset is created or read, never when one that exists is written:
it stores the chunks without an optional filter then, in silence. So finding the plugins is not enough;
each libhdf5 is made to load them.

A libhdf5 that is not thread-safe must not be called while another thread is in it. h5py has a lock for that, which is taken here;
netCDF4 and PyTables have none for others. So theirs are called where no other thread can be in them: in the import that brings
them. One that was there before is only called by register(), when its user says so."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any


def compiled(name: str) -> str:
    """The path of a compiled file or folder: beside this file (zarrbits-plugins), in zarrbits, if that was built from source, or
    in zarrbits-plugins."""
    places = [os.path.dirname(os.path.abspath(__file__))]
    for package in ("zarrbits", "zarrbits_plugins"):
        try:
            spec = importlib.util.find_spec(package)  # looks, and imports nothing
        except ValueError:
            continue
        if spec and spec.submodule_search_locations:
            places += spec.submodule_search_locations
    paths = [os.path.join(place, name) for place in places]
    return next((path for path in paths if os.path.exists(path)), paths[0])


PLUGIN_PATH = compiled("plugins")
LIBRARY_PATH = compiled("libzarrbits.dll" if sys.platform == "win32" else "libzarrbits.so")  # zarrbits/zarrbits_c.h
PACKBITS, BYTES = 45429, 45438
_VARIABLE = "HDF5_PLUGIN_PATH"
_told: set[str] = set()  # the paths of those that have loaded the filters
_added: list[str] | None = None  # what else is in the variable, which was not set before


def _folders() -> list[str]:
    return [f for f in os.environ.get(_VARIABLE, "").split(os.pathsep) if f]


def _default_folders() -> list[str]:
    """Where libhdf5 looks when the variable is not set: it replaces these."""
    if sys.platform == "win32":
        folders = [os.path.join(os.environ.get("ALLUSERSPROFILE", ""), "hdf5", "lib", "plugin")]
    else:
        folders = [
            "/usr/local/hdf5/lib/plugin",
            f"/usr/lib/{os.uname().machine}-linux-gnu/hdf5/plugins",
            f"/usr/lib/{os.uname().machine}-linux-gnu/hdf5/serial/plugins",
        ]
    return [f for f in folders if os.path.isdir(f)]


def _complete_variable() -> None:
    """HDF5_PLUGIN_PATH has our folder, for each libhdf5 that reads it later."""
    global _added
    if not os.path.isdir(PLUGIN_PATH) or PLUGIN_PATH in _folders():
        return
    if not os.environ.get(_VARIABLE):
        _added = _default_folders()
    os.environ[_VARIABLE] = os.pathsep.join([PLUGIN_PATH, *(_folders() or _added or [])])


def _before_netcdf4(module: types.ModuleType) -> None:
    """netCDF4 has plugins of its own, and names them in the variable where it is not set. Where we have set it, they are added
    for it, and not before it is imported: h5py's HDF5 cannot use them, and hdf5plugin leaves out those that h5py finds."""
    global _added
    own = [os.path.join(place, "plugins") for place in module.__path__]
    if _added is not None and _folders() == [PLUGIN_PATH, *_added] and os.path.isdir(own[0]):
        _added = [*_added, own[0]]
        os.environ[_VARIABLE] = os.pathsep.join([PLUGIN_PATH, *_added])


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


def _load(path: str, library: Any) -> None:
    """This libhdf5 loads both filters, where it finds them."""
    if path not in _told:
        if os.path.isdir(PLUGIN_PATH) and _index_in(library) is None:
            library.H5PLprepend(os.fsencode(PLUGIN_PATH))
        if all([library.H5Zfilter_avail(number) > 0 for number in (PACKBITS, BYTES)]):
            _told.add(path)


def _load_in_h5py() -> None:
    """The same for h5py's own, under its lock."""
    h5py = importlib.import_module("h5py")  # waits for a thread that is importing it
    # h5py before 2.10 has no H5PL
    table = getattr(h5py, "h5pl", None)
    with _h5py_lock():
        if table and os.path.isdir(PLUGIN_PATH):
            folder = os.fsencode(PLUGIN_PATH)
            if folder not in [table.get(index) for index in range(table.size())]:
                table.prepend(folder)
        for number in (PACKBITS, BYTES):
            h5py.h5z.filter_avail(number)


def _address(library: Any) -> int | None:
    return ctypes.cast(library.H5PLget, ctypes.c_void_p).value


def _load_in_new(package: str, before: set[str]) -> None:
    """The libhdf5 to which the extension modules of a package are linked loads the filters, if the package has brought it.
    Another thread may have brought one meanwhile, and be in it."""
    own = set()
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.startswith(package + ".") and path and path.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            try:
                own.add(_address(ctypes.CDLL(path)))  # it is loaded, and finds what it is linked to
            except (OSError, AttributeError):  # not linked to libhdf5; on Windows no library finds what is in another one
                continue
    for path, library in _loaded_libraries():
        if path not in before and _address(library) in own:
            _load(path, library)


class _Later:
    """Has the filters loaded after a module was imported that brings a libhdf5. It finds nothing itself. It has no base class:
    importing importlib.abc takes half of the time of `import zarrbits`."""

    def __init__(self) -> None:
        self._asking = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in ("h5py", "netCDF4", "tables") or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            spec = importlib.util.find_spec(name)  # asks all other finders
        finally:
            self._asking.now = False
        loader: Any = spec.loader if spec is not None else None  # Any: its exec_module is replaced
        if hasattr(loader, "exec_module"):
            run = loader.exec_module

            def then_load(module: types.ModuleType) -> None:
                before = _loaded_files()
                if name == "netCDF4":
                    _before_netcdf4(module)
                run(module)
                if name == "h5py":
                    _load_in_h5py()
                else:
                    _load_in_new(name, before)

            loader.exec_module = then_load  # of this loader alone
        return spec


_later = _Later()


def prepare() -> None:
    """What an import may do. HDF5_PLUGIN_PATH is completed, for each libhdf5 that comes later, and for child processes; h5py's
    loads the filters, now or when h5py is imported, and those of netCDF4 and PyTables when they are imported."""
    _complete_variable()
    if _later not in sys.meta_path:
        sys.meta_path.insert(0, _later)
    if "h5py" in sys.modules:
        _load_in_h5py()


def register() -> bool:
    """Has every libhdf5 that is in the process load the filters: also those that netCDF4, PyTables and other packages brought
    before `import zarrbits`, which calls none of these. Call it while no other thread is in them: they have no lock for it.
    True where this package has plugins; where it has none, HDF5_PLUGIN_PATH says where they are."""
    prepare()
    with _h5py_lock():
        for path, library in _loaded_libraries():
            _load(path, library)
    return os.path.isdir(PLUGIN_PATH)


def unregister() -> None:
    """Undoes `import zarrbits` and register(), in every libhdf5, as register() does. A filter that one has loaded already stays
    in it."""
    global _added
    if _later in sys.meta_path:
        sys.meta_path.remove(_later)
    folders = [f for f in _folders() if f != PLUGIN_PATH]
    if _added is not None and folders == _added:
        os.environ.pop(_VARIABLE, None)
    elif _VARIABLE in os.environ:
        os.environ[_VARIABLE] = os.pathsep.join(folders)
    _added = None
    _told.clear()
    with _h5py_lock():
        for _, library in _loaded_libraries():
            while (index := _index_in(library)) is not None:
                library.H5PLremove(index)
