# SPDX-License-Identifier: BSL-1.0
"""The libraries and symbols that the plugins need and export."""

import os
import subprocess

import pytest


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


FOLDER = os.environ["ZARRBITS_PLUGINS"]
NAMES = ["libzarrbits_bytes.so", "libzarrbits_packbits.so"]


def test_the_folder_holds_the_plugins_alone():
    names = sorted(os.listdir(FOLDER))
    assert names == NAMES, f"{FOLDER} holds {names}: HDF5 opens every library in it"


@pytest.mark.parametrize("name", NAMES)
def test_what_a_plugin_needs_and_shows(name):
    path = os.path.join(FOLDER, name)
    needed = {line.split("[")[1].rstrip("]") for line in run("readelf", "-d", path).splitlines() if "(NEEDED)" in line}
    assert needed <= {"libc.so.6", "libdl.so.2"} and "libc.so.6" in needed, f"{name} needs {needed}"
    dynamic = run("readelf", "-d", path)
    assert "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic, dynamic
    defined = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", path).splitlines()}
    entries = {"H5PLget_plugin_type", "H5PLget_plugin_info", "zarrbits_hdf5_last_error", "zarrbits_hdf5_version"} | (
        {"NCZ_get_codec_info"} if "packbits" in name else set()
    )
    assert defined == entries, f"{name} exports {defined}"
    undefined = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", path).splitlines()}
    foreign = {
        u
        for u in undefined
        if u.startswith(("H5", "_ZS", "_Zn", "_Zd", "__cxa_", "__gxx_", "nc_")) and u not in {"__cxa_finalize", "__cxa_atexit"}
    }
    assert not foreign, f"{name} leaves {foreign} undefined"
    print(name, "needs", sorted(needed), "and", len(undefined), "symbols; exports", sorted(defined))
