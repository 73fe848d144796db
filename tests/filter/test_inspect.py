# SPDX-License-Identifier: BSL-1.0
"""zarrbits inspect says how many chunks packbits left unpacked, as doctor FILE does, where their sizes tell;
otherwise it says nothing."""

import json

import h5py
import numpy as np
import pytest

from doctor import BYTES, PACKBITS, run


def create(f, name, values, filters, chunk=64, maxshape=None, dtype="u2"):
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((chunk,))
    filters(dcpl)
    space = h5py.h5s.create_simple((len(values),), maxshape)
    d = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype), logical=True), space, dcpl))
    d[:] = values
    return d


def packbits(*parameters):
    return lambda p: p.set_filter(PACKBITS, h5py.h5z.FLAG_OPTIONAL, parameters)


def after(first, *then):
    return lambda p: (first(p), *(t(p) for t in then))


def fletcher32(p):
    p.set_fletcher32()


def deflate(p):
    p.set_deflate(1)


def nodes(file, **more):
    return {n["path"]: n for n in json.loads(run("inspect", "--json", file, **more))["trees"][0]["nodes"]}


@pytest.mark.parametrize("format_version", ["earliest", "latest"])
def test_inspect_says_what_doctor_says_without_reading(tmp_path, format_version):
    path, values = tmp_path / "in.h5", np.arange(640)
    misfit = values.copy()
    misfit[[70, 400, 401]] = 5000
    twelve = packbits(12)
    with h5py.File(path, "w", libver=format_version) as f:
        for name, v in (("fits", values), ("misfit", misfit)):
            create(f, name, v, twelve)
            create(f, name + "_counted", v, packbits(12, 2))
            create(f, name + "_checked", v, after(twelve, fletcher32))
            create(f, name + "_checked_twice", v, after(fletcher32, twelve))
            create(f, name + "_grows", v, twelve, maxshape=(h5py.h5s.UNLIMITED,))
            create(f, name + "_deflated", v, after(twelve, deflate))
        create(f, "mask", np.arange(640) % 2 == 0, packbits(), dtype=bool)
        create(f, "all_bits", values, packbits(16))
        create(f, "order", values, lambda p: p.set_filter(BYTES, h5py.h5z.FLAG_OPTIONAL, (1,)))
        create(f, "plain", values, deflate)
        f.create_dataset("empty", (0,), "u2", maxshape=(None,), chunks=(64,), compression=PACKBITS, compression_opts=(12,))
        f.create_dataset("one", data=np.full(64, 5000, "u2"), chunks=(64,), compression=PACKBITS, compression_opts=(12,))
    found = {name: n["unpacked_chunks"] for name, n in nodes(path).items() if "unpacked_chunks" in n}
    expected = {"/mask": 0, "/empty": 0, "/one": 1}
    for more in ("", "_counted", "_checked", "_checked_twice", "_grows"):
        expected.update({"/fits" + more: 0, "/misfit" + more: 2})
    assert found == expected
    doctor = {d["path"]: d["raw_chunks"] for d in json.loads(run("doctor", path, "--json"))["file"]["filtered"]}
    assert {name: doctor[name] for name in found} == found and doctor["/misfit_deflated"] == 2
    # nothing of it needs the plugins
    assert nodes(path, path=tmp_path)["/misfit"]["unpacked_chunks"] == 2
    lines = {line.split()[0]: line for line in run("inspect", path).splitlines() if line.strip()}
    assert "packbits (2 chunks unpacked)" in lines["misfit"] and "packbits (1 chunk unpacked)" in lines["one"]
    assert "unpacked" not in lines["fits"] + lines["misfit_deflated"] + lines["plain"]


def test_sizes_that_are_neither_say_nothing(tmp_path):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as f:
        d = create(f, "damaged", np.arange(640), packbits(12))
        d.id.write_direct_chunk((0,), bytes(100))
        cut = create(f, "short", np.arange(640), packbits(12))
        cut.id.write_direct_chunk((0,), bytes(95))
    assert "unpacked_chunks" not in nodes(path)["/damaged"] and "unpacked_chunks" not in nodes(path)["/short"]
