# SPDX-License-Identifier: BSL-1.0
"""packbits behind parallel HDF5, in collective writes of one to three ranks:
if HDF5 reports success, everyone reads the values back.

scripts/ci/cluster runs it. Debian's libhdf5-openmpi-dev is always tried;
ZARRBITS_PARALLEL_HDF5 has build folders of HDF5 with MPI, with colons between them. A hang is a time-out, and a fault.
"""

import glob
import os
import subprocess

os.environ["HDF5_PLUGIN_PATH"] = os.environ["ZARRBITS_PLUGINS"]  # libhdf5 reads it when it is loaded

import h5py
import numpy as np
import pytest

PACKBITS = os.environ["ZARRBITS_PACKBITS_ID"]
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "collective.c")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
SECONDS = 60


def builds():
    """(name, options of the compiler)"""
    for header in glob.glob("/usr/include/hdf5/openmpi") + glob.glob("/usr/include/hdf5/mpich"):
        library = glob.glob(f"/usr/lib/*/libhdf5_{os.path.basename(header)}.so")
        if library:
            yield f"Debian's {os.path.basename(header)}", ["-I" + header, library[0]]
    for place in filter(None, os.environ.get("ZARRBITS_PARALLEL_HDF5", "").split(":")):
        source = [
            line.split("=", 1)[1].strip()
            for line in open(os.path.join(place, "CMakeCache.txt"))
            if line.startswith("CMAKE_HOME_DIRECTORY:")
        ]
        library = os.path.realpath((glob.glob(place + "/bin/libhdf5.so") + glob.glob(place + "/bin/libhdf5_debug.so"))[0])
        headers = [
            os.path.join(source[0], "src"),
            os.path.join(source[0], "src", "H5FDsubfiling"),
            place,
            os.path.join(place, "src"),
        ]
        yield (
            os.path.basename(place.rstrip("/")),
            [*("-I" + h for h in headers), library, "-Wl,-rpath," + os.path.dirname(library)],
        )


def mpirun(ranks, *command):
    try:
        return subprocess.run([*MPIRUN, "-n", str(ranks), *command], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as e:
        raise AssertionError(f"{ranks} ranks: still running after {SECONDS} s: {' '.join(command)}") from e


def wanted():
    at, last = np.arange(60), 2
    values = at + last
    values[((at // 20 + last) % 2 == 0) & (at % 20 == 5)] = 5000
    return values


BUILDS = dict(builds())


@pytest.fixture(scope="module", params=BUILDS)
def program(request, tmp_path_factory):
    program = tmp_path_factory.mktemp("collective") / "collective"
    subprocess.run(["mpicc", "-std=c99", "-DH5_USE_110_API", PROGRAM, "-o", program, *BUILDS[request.param]], check=True)
    return str(program)


@pytest.mark.parametrize("flags", [0, 1])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_was_written_is_read_back(program, ranks, flags, folder):
    file = os.path.join(folder, "collective.h5")
    done = mpirun(ranks, program, file, PACKBITS, str(flags))
    assert done.returncode == 0 and "zarrbits" not in done.stderr, done.stdout + done.stderr
    with h5py.File(file, "r") as f:
        assert len(f) == 8
        for d in f:
            found = f[d][:]
            assert np.array_equal(found, wanted()), (d, found)
        masks = {f[d].id.read_direct_chunk((0,))[0] for d in f}
    assert masks == {0}
    print(f"{ranks} ranks, flags {flags}: 8 datasets right")
