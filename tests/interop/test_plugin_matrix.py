# SPDX-License-Identifier: BSL-1.0
"""One plugin file under many libhdf5: h5py's wheels bring 1.8.18, 1.12.0, 1.12.2, 1.14.2, 1.14.6 and 2.0.0,
netCDF4's brings 2.2.0, Debian has 1.10.8.

scripts/ci/interop makes the virtual environments and names their Pythons in ZARRBITS_MATRIX (those with h5py)
and ZARRBITS_NETCDF4. Libraries without a Python that could load their wheel, and those that scripts/ci/hdf5-versions built,
are in ZARRBITS_LIBHDF5.
"""

import glob
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import plugin_values
from conftest import DEBIAN_PYTHON, HERE, ROOT, packed_model

PACKBITS, BYTES = 45429, 45438
PLUGINS = os.environ["HDF5_PLUGIN_PATH"]
PYTHONS = os.environ.get("ZARRBITS_MATRIX", "").split()
NETCDF4 = os.environ.get("ZARRBITS_NETCDF4", "")
LIBRARIES = os.environ.get("ZARRBITS_LIBHDF5", "").split()
JUDGE = pathlib.Path(os.environ.get("ZARRBITS_JUDGE", ROOT.parent / "shared/judge")) / "judge_plugin.py"


def run(*command, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    r = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, env={**env, "PYTHONDONTWRITEBYTECODE": "1", **more}
    )
    assert r.returncode == 0, f"{command}: exit status {r.returncode}\n{r.stdout[-3000:]}{r.stderr[-3000:]}"
    return r.stdout


def wheel_library(python, package):
    found = glob.glob(str(pathlib.Path(python).parent.parent / f"lib/python3*/site-packages/{package}.libs/libhdf5-*.so*"))
    return found[0] if found else None


def debian_library():
    found = glob.glob("/usr/lib/*/libhdf5_serial.so.[0-9]*")
    return min(found, key=len) if found else None


def peers():
    """name -> the command that runs plugin_peer.py with it, up to the library's option."""
    found = {"Debian's h5py": ([DEBIAN_PYTHON], [])}
    for python in PYTHONS:
        found[pathlib.Path(python).parent.parent.name] = ([python], [])
    if NETCDF4 and wheel_library(NETCDF4, "netcdf4"):
        found["netCDF4's libhdf5"] = ([NETCDF4], ["--library", wheel_library(NETCDF4, "netcdf4")])
    for path in LIBRARIES:
        found[path] = ([DEBIAN_PYTHON], ["--library", path])
    return found


PEERS = peers()


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    return plugin_values.make(tmp_path_factory.mktemp("values"))


def peer(name, what, values, *files):
    python, option = PEERS[name]
    return json.loads(run(*python, HERE / "plugin_peer.py", what, values, *option, *files).splitlines()[-1])


@pytest.fixture(scope="module")
def files(values):
    """name of the writer -> (version of its HDF5, its file)"""
    return {
        name: (peer(name, "write", values, values / f"{i}.h5")["version"], values / f"{i}.h5") for i, name in enumerate(PEERS)
    }


def test_the_matrix_is_complete():
    # scripts/ci/interop has said what is missing; here it is a skip, not a silence
    if len(PEERS) < 8:
        pytest.skip(f"the matrix has only {sorted(PEERS)}")


def test_each_reads_what_each_wrote(values, files, capsys):
    table, versions = {}, [version for version, _ in files.values()]
    for name in PEERS:
        answer = peer(name, "read", values, *(path for _, path in files.values()))
        table[answer["version"]] = ["yes" if bad == [] else f"NO: {bad}" for bad in answer["bad"].values()]
    with capsys.disabled():
        print("\nreader \\ writer", *versions, sep="\t")
        for version, row in table.items():
            print(f"{version}\t", *row, sep="\t")
    assert len(set(versions)) >= len(PEERS) - len(LIBRARIES) and all(cell == "yes" for row in table.values() for cell in row)


def test_the_chunks_are_the_same_whoever_writes(values, files):
    import h5py

    camera = np.frombuffer((values / "camera.bin").read_bytes(), "<u2").reshape(100, 70)
    chunks = {}
    for version, path in files.values():
        with h5py.File(path) as f:
            chunks[version] = [
                f[name].id.read_direct_chunk(origin)
                for name, origin in (
                    ("mask", (64, 64)),
                    ("camera", (0, 0)),
                    ("big", (896,)),
                    ("signed", (0,)),
                    ("one_raw_chunk", (256,)),
                    ("bytes", (0,)),
                )
            ]
    first = next(iter(chunks.values()))
    assert all(c == first for c in chunks.values())
    assert first[1] == (0, packed_model(camera[:64, :32].ravel(), 12)) and first[4] == (0, values_of_raw_chunk(values))


def values_of_raw_chunk(values):
    return (values / "one_raw_chunk.bin").read_bytes()[512:1024]


def test_errors_reach_the_user(values, tmp_path, capfd):
    import h5py

    damaged = tmp_path / "damaged.h5"
    with h5py.File(damaged, "w", libver=("earliest", "v110")) as f:
        d = f.create_dataset("d", (1000,), "u2", chunks=(1000,), compression=PACKBITS, compression_opts=(12,))
        d.id.write_direct_chunk((0,), b"x" * 100)
    for name, (python, option) in PEERS.items():
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        r = subprocess.run(
            [*python, str(HERE / "plugin_peer.py"), "errors", str(values), *option, str(damaged)],
            capture_output=True,
            text=True,
            env=env,
        )
        assert r.returncode == 0, (name, r.stderr)
        answer = json.loads(r.stdout.splitlines()[-1])
        assert any("17 bits from bit 0 on do not fit in a component of 16 bits" in text for text in answer["said"]["create"]), (
            answer
        )
        # some versions drop the sentence while reading: then, and only then, it is on standard error
        sentence = "a chunk has 100 bytes in the file instead of 1500"
        on_stack = any(sentence in text for text in answer["said"]["read"])
        assert on_stack != (sentence in r.stderr), (name, answer, r.stderr)


def all_libraries():
    libraries = [
        debian_library(),
        *(wheel_library(p, "h5py") for p in PYTHONS),
        NETCDF4 and wheel_library(NETCDF4, "netcdf4"),
        *LIBRARIES,
    ]
    return [p for p in libraries if p]


@pytest.mark.parametrize("library", all_libraries(), ids=lambda p: pathlib.Path(p).name)
def test_what_is_not_packed_passes_through(library, tmp_path):
    """Variable length and references, optional and mandatory, before and after reopening; said once by each plugin.
    Complex numbers are packed."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    r = subprocess.run(
        [DEBIAN_PYTHON, str(HERE / "variable_peer.py"), library, str(tmp_path / "x.h5")],
        capture_output=True,
        text=True,
        timeout=600,
        env=env,
    )
    assert r.returncode == 0, r.stderr
    answer = json.loads(r.stdout)
    # up to 2.0, HDF5 itself refuses mandatory filters for data of variable length
    like_fletcher32 = {", ".join([case, "3", flag]) for case, _, flag in (name.split(", ") for name in answer["refused"])}
    assert like_fletcher32 <= set(answer["refused"]) and all("mandatory" in name for name in answer["refused"]), answer
    assert answer["wrong"] == [] and len(answer["first_chunk"]) >= 5 * 3 * 2 - 6, answer
    for name, stored in answer["first_chunk"].items():
        case, number, _ = name.split(", ")
        unpacked = answer["first_chunk"][f"{case}, 3, optional"] - 4
        if stored and number != "3":  # HDF5 1.8 does not say
            assert stored == (4 * 2 * 20 // 8 if (case, number) == ("complex", str(PACKBITS)) else unpacked), (name, answer)
    said = r.stderr.splitlines()
    assert len(said) == 2 and all("leaves a dataset's chunks as they are" in line for line in said), r.stderr


def test_all_of_them_in_one_process(values, capsys):
    libraries = all_libraries()
    if len(libraries) < 3:
        pytest.skip(f"three libhdf5 are wanted, and there are {libraries}")
    answer = json.loads(run(sys.executable, HERE / "plugin_peer.py", "together", values, *libraries))
    with capsys.disabled():
        print(
            f"\nin process {answer['pid']}, served by {len(answer['plugins'])} plugin files: HDF5 {', '.join(answer['versions'])}"
        )
    assert (
        answer["bad"] == [] and len(answer["versions"]) == len(libraries) == answer["libraries"] and len(answer["plugins"]) == 2
    ), answer


@pytest.mark.parametrize("python", PYTHONS, ids=lambda p: pathlib.Path(p).parent.parent.name)
def test_the_filters_under_this_h5py(python):
    for name in ("test_h5py.py", "test_pass_through.py", "test_rewrites.py"):
        run(
            python,
            "-m",
            "pytest",
            "-q",
            ROOT / "tests/filter" / name,
            ZARRBITS_PLUGINS=PLUGINS,
            ZARRBITS_PACKBITS_ID=str(PACKBITS),
            ZARRBITS_BYTES_ID=str(BYTES),
        )


@pytest.mark.parametrize("python", PYTHONS, ids=lambda p: pathlib.Path(p).parent.parent.name)
def test_the_judge_under_this_h5py(python):
    if not JUDGE.exists():
        pytest.skip(f"no {JUDGE}")
    answer = json.loads(
        run(DEBIAN_PYTHON, ROOT / "scripts/ci/plugin-judge", python, JUDGE, PLUGINS, "--other", DEBIAN_PYTHON).splitlines()[-2]
    )
    assert answer["crashed"] == 0 and json.loads(answer["other"])["bad"] == []


NCZARR = """
import ctypes, glob, json, os, sys, netCDF4, numpy as np
library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(netCDF4.__file__), "..", "netcdf4.libs", "libnetcdf-*"))[0])
def define(dataset, variable, *values):
    return library.nc_def_var_filter(dataset._grpid, variable._varid, 45429, ctypes.c_size_t(len(values)), (ctypes.c_uint * 3)(*values))
mask = np.load(sys.argv[1])
zarr = "file://" + sys.argv[2] + "#mode=zarr,file"
with netCDF4.Dataset(zarr, "w") as d:
    d.createDimension("y", mask.shape[0]); d.createDimension("x", mask.shape[1])
    v = d.createVariable("mask", "u1", ("y", "x"), chunksizes=(16, 10), fill_value=0)
    assert define(d, v) == 0
    v[:] = mask
refused = False
try:
    with netCDF4.Dataset(zarr.replace("m.zarr", "n.zarr"), "w") as d:   # twelve bits are nothing that Zarr version 2 could hold
        d.createDimension("y", 5)
        refused = define(d, d.createVariable("numbers", "i4", ("y",)), 12) != 0
except RuntimeError as e:
    refused = "Filter error" in str(e)
with netCDF4.Dataset(zarr) as d:
    d.set_auto_mask(False)
    back = np.array_equal(d["mask"][:], mask)
with netCDF4.Dataset(sys.argv[3], "w") as d:    # the same plugin file, the HDF5 way
    d.createDimension("y", mask.shape[0]); d.createDimension("x", mask.shape[1])
    v = d.createVariable("mask", "u1", ("y", "x"), chunksizes=(16, 10), fill_value=0)
    assert define(d, v, 1) == 0
    v[:] = mask
with netCDF4.Dataset(sys.argv[3]) as d:
    d.set_auto_mask(False)
    back = back and np.array_equal(d["mask"][:], mask)
print(json.dumps({"netcdf": netCDF4.__netcdf4libversion__, "hdf5": netCDF4.__hdf5libversion__, "back": back, "refused": refused}))
"""  # noqa: E501


def test_netcdf_writes_zarr_and_hdf5_with_the_one_plugin(tmp_path):
    if not NETCDF4:
        pytest.skip("ZARRBITS_NETCDF4 is not set")
    import h5py
    import numcodecs

    mask = np.random.default_rng(8).integers(0, 2, (32, 30)).astype("u1")
    np.save(tmp_path / "mask.npy", mask)
    answer = json.loads(
        run(NETCDF4, "-c", NCZARR, tmp_path / "mask.npy", tmp_path / "m.zarr", tmp_path / "m.nc").splitlines()[-1]
    )
    assert answer["back"] and answer["refused"], answer
    metadata = json.loads((tmp_path / "m.zarr/mask/.zarray").read_text())
    assert metadata["compressor"] == {"id": "packbits"} and metadata["chunks"] == [16, 10]
    # numcodecs reads and writes the same chunk
    chunk = (tmp_path / "m.zarr/mask/1.2").read_bytes()
    expected = np.ascontiguousarray(mask[16:32, 20:30])
    assert chunk == bytes(numcodecs.PackBits().encode(expected.astype(bool)))
    assert np.array_equal(np.frombuffer(numcodecs.PackBits().decode(chunk), bool).reshape(16, 10), expected.astype(bool))
    with h5py.File(tmp_path / "m.nc") as f:
        assert f["mask"].id.read_direct_chunk((16, 20)) == (0, packed_model(expected.ravel(), 1))


DEFAULT_FILL = """
import ctypes, glob, os, sys, netCDF4, numpy as np
library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(netCDF4.__file__), "..", "netcdf4.libs", "libnetcdf-*"))[0])
def define(dataset, variable, number, *values):
    assert library.nc_def_var_filter(dataset._grpid, variable._varid, number, ctypes.c_size_t(len(values)), (ctypes.c_uint * 3)(*values)) == 0
values = np.arange(50, dtype="u2").reshape(5, 10)
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createDimension("y", None); d.createDimension("x", 10)
    for name, more, deflate in (("plain", {}, False), ("deflated", {}, True), ("checked", {"fletcher32": True}, False), ("both", {"fletcher32": True}, True)):
        v = d.createVariable(name, "u2", ("y", "x"), chunksizes=(2, 4), **more)   # its fill value is 65535, which 12 bits do not hold
        define(d, v, 45429, 12)
        if deflate: define(d, v, 1, 4)
        v[:5] = values
        v[7, 3] = 4095
with netCDF4.Dataset(sys.argv[1], "a") as d:
    for name in d.variables:
        d[name][8, :] = 60000
        d[name][0, 0] = 7
with netCDF4.Dataset(sys.argv[1]) as d:
    d.set_auto_mask(False)
    wanted = np.full((9, 10), 65535, "u2")
    wanted[:5], wanted[7, 3], wanted[8], wanted[0, 0] = values, 4095, 60000, 7
    assert all(np.array_equal(d[name][:], wanted) for name in ("plain", "deflated", "checked", "both"))
print("equal")
"""  # noqa: E501


def test_netcdf_writes_chunks_with_its_default_fill_values(tmp_path):
    if not NETCDF4:
        pytest.skip("ZARRBITS_NETCDF4 is not set")
    import h5py

    assert run(NETCDF4, "-c", DEFAULT_FILL, tmp_path / "x.nc") == "equal\n"
    with h5py.File(tmp_path / "x.nc") as f:
        sizes = [f["plain"].id.get_chunk_info(i).size for i in range(f["plain"].id.get_num_chunks())]
        masks = {
            f[name].id.get_chunk_info(i).filter_mask for name in ("plain", "both") for i in range(f[name].id.get_num_chunks())
        }
        pipeline = [f["both"].id.get_create_plist().get_filter(i)[0] for i in range(3)]
    assert set(sizes) == {12, 16} and masks == {0} and pipeline == [3, 45429, 1], (sizes, masks, pipeline)


def test_sixty_mutations_beside_the_peers(capsys):
    if not NETCDF4:
        pytest.skip("ZARRBITS_NETCDF4 is not set: its Python has the peers")
    table = run(NETCDF4, HERE / "mutations.py")
    with capsys.disabled():
        print("\n" + "\n".join(line for line in table.splitlines() if line.startswith(("|", "h5py"))))
    assert "| packbits, 12 bits | 29 | 0 | 1 | 0 | 0 | 0 | 0 | 30 |" in table  # the one is as long as a raw chunk
