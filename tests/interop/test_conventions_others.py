# SPDX-License-Identifier: BSL-1.0
"""PyTables, MATLAB and NeXus."""

import numpy as np
import pytest

from conftest import run
from conventions import at_least, opened

pytest_plugins = ["conventions"]  # its fixtures
pytestmark = pytest.mark.filterwarnings("ignore")


# PyTables, MATLAB, NeXus: no reader of Zarr of their own; what their readers of HDF5 give is what zarr-python gives of the store


def zarr_group(store):
    zarr = at_least("zarr", (3, 4))
    return zarr.open_group(opened(store), mode="r")


def test_pytables_nodes(convert, tmp_path):
    tables = pytest.importorskip("tables")
    rng = np.random.default_rng(0)

    class Row(tables.IsDescription):
        number, real = tables.Int32Col(), tables.Float64Col()
        pair = tables.ComplexCol(itemsize=16)

    with tables.open_file(tmp_path / "other.h5", "w") as f:
        f.create_array("/", "there", np.arange(5))
    with tables.open_file(tmp_path / "in.h5", "w") as f:
        g = f.create_group("/", "group", "a title")
        f.create_array(g, "array", rng.random((3, 4)))
        f.create_carray(
            g, "chunked", obj=rng.integers(0, 9, (30, 40)), filters=tables.Filters(5, "zlib", shuffle=True, fletcher32=True)
        )
        f.create_carray(g, "blosc", obj=rng.random((30, 40)), filters=tables.Filters(5, "blosc"))
        f.create_carray(g, "complex", obj=rng.random(30) + 1j)
        f.create_earray(g, "grows", obj=np.arange(7, dtype="u2")).append(np.arange(3, dtype="u2"))
        t = f.create_table(g, "table", Row)
        t.append([(i, i * 1j, i / 2) for i in range(10)])  # columns by name
        f.create_hard_link("/", "hard", "/group/array")
        f.create_soft_link("/", "soft", "/group/chunked")
        f.create_soft_link("/", "whole", "/group")
        f.create_external_link("/", "external", "other.h5:/there")
    store = convert(tmp_path / "in.h5")
    root = zarr_group(store)
    with tables.open_file(tmp_path / "in.h5") as f:
        for leaf in f.walk_nodes("/", "Leaf"):
            if leaf._v_pathname == "/group/table":
                continue
            np.testing.assert_array_equal(root[leaf._v_pathname[1:]][...], leaf.read())
        for name in "hard", "soft", "external":
            node = f.get_node("/" + name)
            np.testing.assert_array_equal(root[name][...], (node if name == "hard" else node()).read())
        np.testing.assert_array_equal(root["whole/blosc"][...], f.root.group.blosc.read())
        rows = root["group/table"][...]
        for column in "number", "real", "pair":
            np.testing.assert_array_equal(rows[column], f.root.group.table.col(column))
    if not store.endswith(".zip"):
        run("verify", tmp_path / "in.h5", store)


def test_times_of_pytables(tmp_path):
    """They stay int64; docs/reference/conventions.md says how PyTables makes seconds of them."""
    tables = pytest.importorskip("tables")
    with tables.open_file(tmp_path / "in.h5", "w") as f:
        seconds = f.create_carray("/", "t", tables.Time64Atom(), (5,))
        seconds[:] = [1.25, -1.25, 1700000000.123456, -0.5, -1e9 - 0.999999]
        wanted = seconds[:]
    run("convert", tmp_path / "in.h5", tmp_path / "store.zarr", "--quiet")
    v = zarr_group(str(tmp_path / "store.zarr"))["t"][...]
    assert v.dtype == "int64"
    np.testing.assert_array_equal((v >> 32) + v.astype("int32") * 1e-6, wanted)


def test_matlab_variables(convert, tmp_path):
    mat73 = pytest.importorskip("mat73")
    import h5py

    rng = np.random.default_rng(0)
    values = {"z": rng.random((3, 4)) + 1j * rng.random((3, 4)), "x": rng.random((2, 5))}
    with h5py.File(tmp_path / "in.mat", "w", userblock_size=512) as f:  # as MATLAB writes it: the extent is reversed
        for name, v in values.items():
            stored = v.T
            if v.dtype.kind == "c":
                stored = np.empty(v.T.shape, [("real", "<f8"), ("imag", "<f8")])
                stored["real"], stored["imag"] = v.T.real, v.T.imag
            f.create_dataset(name, data=stored, chunks=stored.shape, compression="gzip", compression_opts=3).attrs[
                "MATLAB_class"
            ] = np.bytes_("double")
    with open(tmp_path / "in.mat", "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Nov 23 2026 HDF5 schema 1.00 .".ljust(124) + b"\0\2IM")
    root, read = zarr_group(convert(tmp_path / "in.mat")), mat73.loadmat(str(tmp_path / "in.mat"))
    for name, v in values.items():
        np.testing.assert_array_equal(read[name], v)
        np.testing.assert_array_equal(root[name][...].T, read[name])
        assert root[name].dtype == v.dtype


def test_nexus_signals_and_axes(convert, tmp_path):
    nx = pytest.importorskip("nexusformat.nexus")
    counts = np.random.default_rng(0).integers(0, 100, (20, 30)).astype("u4")
    detector = nx.NXroot(nx.NXentry(nx.NXdata(nx.NXfield(counts, name="counts"), nx.NXfield(np.arange(20.0), name="y"))))
    detector.save(str(tmp_path / "detector.nxs"), "w")
    root = nx.NXroot(nx.NXentry(nx.NXinstrument(nx.NXdetector(data=counts + 1, x=np.arange(30.0)))))
    root.save(str(tmp_path / "in.nxs"), "w")
    with nx.nxload(str(tmp_path / "in.nxs"), "rw") as root:
        root["entry/data"] = nx.NXdata()
        root["entry/data/signal"] = nx.NXlink(root["entry/instrument/detector/data"])
        root["entry/data/x"] = nx.NXlink(root["entry/instrument/detector/x"])
        root["entry/data/counts"] = nx.NXlink("/entry/data/counts", str(tmp_path / "detector.nxs"), abspath=False)
    store = zarr_group(convert(tmp_path / "in.nxs"))
    with nx.nxload(str(tmp_path / "in.nxs"), "r") as root:
        for name in "signal", "x", "counts":
            np.testing.assert_array_equal(store[f"entry/data/{name}"][...], root[f"entry/data/{name}"].nxdata)


def test_a_detectors_master_file(convert, tmp_path):
    """As EIGER's: nothing but links into other files, and a virtual dataset."""
    import h5py

    frames = np.zeros((10, 64, 64), "u4")
    frames[:, 5, 7] = np.arange(10)
    layout = h5py.VirtualLayout((20, 64, 64), "u4")
    with h5py.File(tmp_path / "x_master.h5", "w") as f:
        data = f.create_group("entry/data")
        data.attrs["NX_class"] = "NXdata"
        for i in range(2):
            with h5py.File(tmp_path / f"x_data_{i}.h5", "w") as d:
                d.create_dataset("entry/data/data", data=frames + i, chunks=(1, 64, 64), compression="gzip", shuffle=True)
            data[f"data_{i}"] = h5py.ExternalLink(f"x_data_{i}.h5", "/entry/data/data")
            layout[10 * i : 10 * i + 10] = h5py.VirtualSource(f"x_data_{i}.h5", "/entry/data/data", frames.shape)
        data.create_virtual_dataset("all", layout)
    store = zarr_group(convert(tmp_path / "x_master.h5"))
    with h5py.File(tmp_path / "x_master.h5") as f:
        for name in "data_0", "data_1", "all":
            np.testing.assert_array_equal(store[f"entry/data/{name}"][...], f[f"entry/data/{name}"][...])
