# SPDX-License-Identifier: BSL-1.0
"""`import zarrbits` from a package that has the plugins: HDF5 finds them in every order of imports.
Each case is a process of its own."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "python/zarrbits"
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
CASES = {
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
    shutil.copytree(PACKAGE, os.path.join(folder, "zarrbits"))
    shutil.copytree(os.environ["ZARRBITS_PLUGINS"], os.path.join(folder, "zarrbits", "plugins"))
    environment = {k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"}
    environment.update(PYTHONPATH=folder, FILE=os.path.join(folder, "x.h5"))
    if name == "what_was_there_stays":
        environment["HDF5_PLUGIN_PATH"] = "/some/folder"
    done = subprocess.run(
        [sys.executable, "-c", "import os\n" + CASES[name]], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
