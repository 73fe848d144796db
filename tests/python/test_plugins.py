# SPDX-License-Identifier: BSL-1.0
"""`import zarrbits` from a package that has the plugins: HDF5 finds them in every order of imports.
Each case is a process of its own."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PACKAGES = pathlib.Path(__file__).resolve().parent.parent.parent / "python"
WRITE = """
import numpy as np, os
with h5py.File(os.environ["FILE"], "w") as f:
    f.create_dataset("x", data=np.arange(100, dtype="u2"), chunks=(100,), **zarrbits.packbits(bits=12))
    assert f["x"].id.get_storage_size() == 150
with h5py.File(os.environ["FILE"]) as f:
    assert f["x"][:].tolist() == list(range(100))
"""
# loaded filters are known although their folder is forgotten
LOADED = """
for i in reversed(range(h5py.h5pl.size())):
    h5py.h5pl.remove(i)
assert h5py.h5z.filter_avail(45429) and h5py.h5z.filter_avail(45438)
"""
# a libhdf5 that another package has brought, and that may be in use: a copy is another library
FOREIGN = """
import ctypes, h5py, shutil
files = {line.split()[-1] for line in open("/proc/self/maps") if "/libhdf5" in line and "_hl" not in line}
copy = shutil.copy(files.pop(), os.path.join(os.environ["FOLDER"], "libhdf5_copy.so"))
foreign = ctypes.CDLL(copy)
foreign.H5open()
assert foreign.H5Zfilter_avail(45429) == 0 and not h5py.h5z.filter_avail(45429)
"""
# a package with plugins for its own libhdf5
NETCDF4 = """
package = os.path.join(os.environ["FOLDER"], "netCDF4")
os.makedirs(package + "/plugins")
open(package + "/__init__.py", "w").write("import os\\nseen = os.environ.get('HDF5_PLUGIN_PATH')")
"""
CASES = {
    "nothing_is_called_in_a_library_that_is_loaded": FOREIGN + "import zarrbits\n"
    "assert h5py.h5z.filter_avail(45429) and foreign.H5Zfilter_avail(45429) == 0\n"
    "zarrbits.register()\nassert foreign.H5Zfilter_avail(45429) > 0 and foreign.H5Zfilter_avail(45438) > 0",
    "the_codecs_alone_prepare_nothing": "import sys, h5py\nbefore = list(sys.meta_path)\n"
    "import zarrbits_codecs.packing, zarrbits_codecs.plugins\n"
    "assert 'zarrbits' not in sys.modules and 'HDF5_PLUGIN_PATH' not in os.environ and sys.meta_path == before\n"
    "assert not h5py.h5z.filter_avail(45429)\nimport zarrbits\nassert h5py.h5z.filter_avail(45429)",
    "plugins_of_netcdf4_are_for_netcdf4": NETCDF4 + "import h5py, zarrbits\n"
    "assert 'netCDF4' not in os.environ['HDF5_PLUGIN_PATH']\n"
    "assert not [i for i in range(h5py.h5pl.size()) if b'netCDF4' in h5py.h5pl.get(i)]\n"
    "import netCDF4\nassert netCDF4.seen.split(':')[0] == zarrbits.PLUGIN_PATH\n"
    "assert netCDF4.seen.split(':')[-1] == package + '/plugins'\n"
    "zarrbits.unregister()\nassert 'HDF5_PLUGIN_PATH' not in os.environ",
    "a_variable_that_is_set_is_not_given_netcdf4s": NETCDF4 + "os.environ['HDF5_PLUGIN_PATH'] = '/some/folder'\n"
    "import zarrbits, netCDF4\nassert netCDF4.seen == zarrbits.PLUGIN_PATH + ':/some/folder'",
    "a_missing_folder_is_not_an_error": "os.environ['HDF5_PLUGIN_PATH'] = '/missing:/too'\nimport h5py, zarrbits" + WRITE,
    "before_h5py": "import zarrbits, h5py" + WRITE,
    "after_h5py": "import h5py, zarrbits" + WRITE,
    "after_h5py_that_was_used": "import h5py; h5py.h5z.filter_avail(45429); import zarrbits" + WRITE,
    "imports_nothing_else": "import sys, zarrbits\nassert not {'h5py', 'zarr', 'netCDF4', 'numpy', 'tables'} & set(sys.modules)",
    "twice_is_once": "import h5py, zarrbits; zarrbits.register(); zarrbits.register()\n"
    "assert [h5py.h5pl.get(i) for i in range(h5py.h5pl.size())].count(os.fsencode(zarrbits.PLUGIN_PATH)) == 1\n"
    "assert os.environ['HDF5_PLUGIN_PATH'].split(':').count(zarrbits.PLUGIN_PATH) == 1",
    "what_was_there_stays": "import zarrbits\nassert os.environ['HDF5_PLUGIN_PATH'] == zarrbits.PLUGIN_PATH + ':/some/folder'\n"
    "zarrbits.unregister()\nassert os.environ['HDF5_PLUGIN_PATH'] == '/some/folder'",
    "undone": "import zarrbits\nzarrbits.unregister()\nassert 'HDF5_PLUGIN_PATH' not in os.environ\nimport h5py\nassert not h5py.h5z.filter_avail(45429)\n"  # noqa: E501
    "zarrbits.register()\nassert h5py.h5z.filter_avail(45429)",
    "loaded_and_not_only_found": "import zarrbits, h5py\n" + LOADED,
    "loaded_into_what_was_there": "import h5py, zarrbits\n" + LOADED,
    "child_processes": "import zarrbits, subprocess, sys\n"
    "subprocess.run([sys.executable, '-c', 'import h5py; assert h5py.h5z.filter_avail(45429)'], check=True)",
}


@pytest.mark.parametrize("name", CASES)
def test_the_plugins_are_found(name, folder):
    for package in ("zarrbits", "zarrbits_codecs"):
        shutil.copytree(PACKAGES / package, os.path.join(folder, package))
    shutil.copytree(os.environ["ZARRBITS_PLUGINS"], os.path.join(folder, "zarrbits", "plugins"))
    environment = {k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"}
    environment.update(PYTHONPATH=folder, FOLDER=folder, FILE=os.path.join(folder, "x.h5"))
    if name == "what_was_there_stays":
        environment["HDF5_PLUGIN_PATH"] = "/some/folder"
    done = subprocess.run(
        [sys.executable, "-c", "import os\n" + CASES[name]], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
