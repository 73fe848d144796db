# SPDX-License-Identifier: BSL-1.0
"""What `import zarrbits` and the codec's entry point do to other libraries with a libhdf5, from a package that has the plugins.
Each case is a process of its own.

ZARRBITS_CASES: how many orders of imports, and runs of two threads, 12 by default; 120 are all orders."""

import itertools
import json
import os
import random
import shutil
import subprocess
import sys

import pytest
import tomllib

from conftest import ROOT

for needed in ("h5py", "netCDF4", "hdf5plugin", "zarr"):
    pytest.importorskip(needed)
CASES, SEED = int(os.environ.get("ZARRBITS_CASES", "12")), int(os.environ.get("ZARRBITS_SEED", "49"))
PACKED = """
import h5py, numpy as np, os, zarr, zarrbits
x = np.arange(64 * 64, dtype="u2").reshape(64, 64) % 4096
with h5py.File("packed.h5", "w") as f:
    f.create_dataset("x", data=x, chunks=(8, 64), **zarrbits.packbits(bits=12))
with h5py.File("texts.nc", "w") as f:
    f.create_dataset("x", data=x, chunks=(8, 64), compression="gzip", shuffle=True)
    f.create_dataset("texts", data=["a", "bc", ""], dtype=h5py.string_dtype())
    f.attrs["units"] = "K"
    f["texts"].attrs["names"] = ["d", "e"]
zarr.create_array("packed.zarr", data=x, chunks=(8, 64), compressors=None, serializer=zarrbits.PackbitsCodec(last_bit=11))
"""
# what works after these imports, as JSON
WORKS = """
import importlib, json, numpy as np, os, shutil, sys
for name in sys.argv[1].split(","):
    globals()[name] = importlib.import_module(name)
x, works = np.arange(64 * 64, dtype="u2").reshape(64, 64) % 4096, {}
def attempt(f):
    try:
        works[f.__name__] = f() is None
    except Exception as e:
        works[f.__name__] = str(e)
@attempt
def zarr_reads():
    assert "zarr" not in globals() or (zarr.open_array("packed.zarr", mode="r")[:3] == x[:3]).all()
@attempt
def h5py_appends():
    if "zarrbits" in globals():
        name = shutil.copy("packed.h5", f"{os.getpid()}.h5")
        with h5py.File(name, "r+") as f:
            f["x"].write_direct(x)
            f.flush()
            assert f["x"].id.get_storage_size() == 64 * 64 * 3 // 2
@attempt
def blosc():
    if "hdf5plugin" in globals():
        with h5py.File(f"{os.getpid()}.h5", "w") as f:
            f.create_dataset("x", data=x, chunks=(8, 64), **hdf5plugin.Blosc())
def in_netcdf4(how):
    with netCDF4.Dataset(f"{os.getpid()}.nc", "w") as f:
        f.createDimension("a", 64)
        f.createVariable("x", "u2", ("a", "a"), chunksizes=(8, 64), compression=how)[...] = x
@attempt
def netcdf4s_own():
    if "netCDF4" in globals():
        in_netcdf4("zstd")
        in_netcdf4("blosc_lz4")
@attempt
def netcdf4_reads():
    if "netCDF4" in globals() and "zarrbits" in globals():
        if sys.argv[1].index("netCDF4") < sys.argv[1].index("zarrbits"):
            zarrbits.register()
        with netCDF4.Dataset("packed.h5") as f:
            f.set_auto_mask(False)
            assert (f["x"][...] == x).all()
@attempt
def zarrbits_file():
    # before and after the others read, which it may share a libhdf5 with
    def by_zarrbits():
        with zarrbits.File("texts.nc") as f:
            assert (f["x"][...] == x).all() and f["texts"][...].tolist() == [b"a", b"bc", b""]
            assert f.attrs["units"] == "K" and f["texts"].attrs["names"].tolist() == ["d", "e"]
            assert f.statistics()["decoded_chunks"] == 8
    def by_others():
        if "h5py" in globals():
            with h5py.File("texts.nc") as f:
                assert (f["x"][...] == x).all() and f["texts"][...].tolist() == [b"a", b"bc", b""]
                assert f.attrs["units"] == "K" and f["texts"].attrs["names"].tolist() == ["d", "e"]
                assert "zarrbits" not in globals() or (zarrbits.read(f["x"]) == x).all()
        if "netCDF4" in globals():
            with netCDF4.Dataset("texts.nc") as f:
                f.set_auto_mask(False)
                assert (f["x"][...] == x).all() and f["texts"][...].tolist() == ["a", "bc", ""]
                assert f.units == "K" and f["texts"].names == ["d", "e"]
    turns = [by_others, by_zarrbits] if "zarrbits" in globals() else [by_others]
    if "zarrbits" in globals() and sys.argv[1].split(",").index("zarrbits") % 2:
        turns.reverse()
    for turn in 2 * turns:
        turn()
print(json.dumps(works), flush=True)
os._exit(0)  # libraries that were broken crash at the end
"""
THREADS = """
import netCDF4, numpy as np, os, sys, threading, zarr
x, stop, failed = np.arange(64 * 64, dtype="u2").reshape(64, 64) % 4096, threading.Event(), []
def write():
    with netCDF4.Dataset("plain.nc", "w") as f:
        f.createDimension("a", 64)
        f.createVariable("x", "u2", ("a", "a"), zlib=True, chunksizes=(4, 64))[...] = x
def read():
    with netCDF4.Dataset("plain.nc") as f:
        f.set_auto_mask(False)
        assert (f["x"][...] == x).all()
def work(call):
    try:
        while not stop.is_set():
            call()
    except BaseException as e:
        failed.append(repr(e))
write()
thread = threading.Thread(target=work, args=({"read": read, "write": write}[sys.argv[1]],))
thread.start()
assert (zarr.open_array("packed.zarr", mode="r")[:3] == x[:3]).all()
stop.wait(0.2)
stop.set()
thread.join()
assert "zarrbits" not in sys.modules and "site/zarrbits" not in os.environ["HDF5_PLUGIN_PATH"]
print(failed)
sys.exit(bool(failed))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a script with a package as `pip install .` makes it."""
    folder = tmp_path_factory.mktemp("imports")
    site = folder / "site"
    for name in ("zarrbits", "zarrbits_codecs"):
        shutil.copytree(ROOT / "python" / name, site / name)
    shutil.copytree(os.environ.get("ZARRBITS_PLUGINS", ROOT / "build/release/plugins"), site / "zarrbits/plugins")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = site / "zarrbits-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zarrbits\nVersion: 0\n")
    lines = [f"[{group}]\n" + "".join(f"{name} = {what}\n" for name, what in names.items()) for group, names in project.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HDF5_", "PYTHON"))}
    environment["PYTHONPATH"] = str(site)

    def call(script, *arguments, **more):
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(
            command, env={**environment, **more}, cwd=folder, capture_output=True, text=True, timeout=600, check=False
        )

    done = call(PACKED)
    assert done.returncode == 0, done.stderr
    return call


def works(run, modules, **more):
    done = run(WORKS, ",".join(modules), **more)
    assert done.returncode == 0, (modules, done.stderr)
    return json.loads(done.stdout)


def test_every_order_of_imports_works_as_it_does_without_zarrbits(run):
    orders = list(itertools.permutations(["h5py", "netCDF4", "zarrbits", "hdf5plugin", "zarr"]))
    random.Random(SEED).shuffle(orders)
    alone = {}
    for order in orders[:CASES]:
        others = tuple(name for name in order if name not in ("zarrbits", "zarr"))
        if others not in alone:  # netCDF4 itself breaks hdf5plugin where it comes first
            alone[others] = works(run, others)["blosc"] is True
        found = works(run, order)
        wrong = {name: why for name, why in found.items() if why is not True and not (name == "blosc" and not alone[others])}
        assert not wrong, order


def test_hdf5plugin_works_where_netcdf4_is_only_installed(run):
    assert works(run, ["h5py", "zarrbits", "hdf5plugin"])["blosc"] is True
    script = "import subprocess, sys, zarrbits; subprocess.run([sys.executable, '-c', *sys.argv[1:]], check=True)"
    child = run(script, WORKS, "h5py,hdf5plugin")
    assert json.loads(child.stdout)["blosc"] is True, child.stderr


@pytest.mark.parametrize("what", ["read", "write"])
def test_a_packed_array_is_opened_while_netcdf4_is_at_work(run, what):
    for _ in range(CASES):
        done = run(THREADS, what)
        assert done.returncode == 0, done.stderr + done.stdout
