# SPDX-License-Identifier: BSL-1.0
"""Files with what makes references hard, and other makers of references; test_virtual_peers.py says what becomes of each."""

import ctypes
import glob
import json
import os

import h5py
import hdf5plugin
import netCDF4
import numpy as np

VALUES = np.random.default_rng(5).integers(-1000, 1000, (20, 30)).astype("i2")


def dataset(path, values=VALUES, **how):
    """One variable `v` over scales y and x, as netCDF has it."""
    with h5py.File(path, "w", libver=("earliest", "v110")) as f:
        f["y"], f["x"] = np.arange(values.shape[0]), np.arange(values.shape[1])
        d = f.create_dataset("v", data=values, **how)
        for i, name in enumerate("yx"):
            f[name].make_scale(name)
            d.dims[i].attach_scale(f[name])
    return path


def filter_mask(path):
    with h5py.File(dataset(path, chunks=(10, 30), compression="gzip", shuffle=True), "r+") as f:
        f["v"].id.write_direct_chunk((10, 0), VALUES[10:].tobytes(), 3)  # stored without its two filters


def edge_chunks(path):
    """H5Pset_chunk_opts, which h5py has no name for: partial chunks at the edge are stored without filters."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        own = next(line.split()[-1] for line in maps if "h5py" in line and "libhdf5-" in line)
    set_chunk_opts = ctypes.CDLL(own, os.RTLD_NOLOAD | os.RTLD_LAZY).H5Pset_chunk_opts
    set_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    dataset(path)
    with h5py.File(path, "r+", libver=("v110", "v110")) as f:
        del f["v"]
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk((8, 30))
        create.set_shuffle()
        create.set_deflate(4)
        assert set_chunk_opts(create.id, 2) == 0
        d = h5py.Dataset(h5py.h5d.create(f.id, b"v", h5py.h5t.NATIVE_INT16, h5py.h5s.create_simple(VALUES.shape), create))
        d[...] = VALUES
        assert [d.id.get_chunk_info(i).size == 8 * 30 * 2 for i in range(3)] == [False, False, True]
        for i, name in enumerate("yx"):
            d.dims[i].attach_scale(f[name])


def empty_chunks(path):
    with h5py.File(dataset(path), "r+") as f:
        del f["v"]
        d = f.create_dataset("v", VALUES.shape, "i2", chunks=(5, 30), fillvalue=-7, compression="gzip")
        d[5:10] = VALUES[5:10]
        for i, name in enumerate("yx"):
            d.dims[i].attach_scale(f[name])


ONE = {
    "plain": lambda path: dataset(path, chunks=(5, 30), compression="gzip", shuffle=True),
    "filter mask": filter_mask,
    "unfiltered edge chunks": edge_chunks,
    "LZ4": lambda path: dataset(path, chunks=(5, 30), **hdf5plugin.LZ4()),
    "bitshuffle": lambda path: dataset(path, chunks=(5, 30), **hdf5plugin.Bitshuffle()),
    "scale-offset": lambda path: dataset(path, chunks=(5, 30), scaleoffset=0),
    "strings": lambda path: dataset(
        path, np.array([[f"{y} é {x}" for x in range(4)] for y in range(3)], dtype=h5py.string_dtype()), chunks=(2, 4)
    ),
    "big-endian": lambda path: dataset(path, VALUES.astype(">i2"), chunks=(5, 30), compression="gzip"),
    "empty chunks": empty_chunks,
}


def days(folder, lengths=(6, 6, 6), packing=((1, 0),), fill=(-32768,)):
    """Files along time, as netCDF4 writes them, each with its own packing and fill value. The second time is a missing one."""
    begin = 0
    for i, length in enumerate(lengths):
        with netCDF4.Dataset(f"{folder}/d{i}.nc", "w") as f:
            for name, size in (("time", None), ("x", 30)):
                f.createDimension(name, size)
            f.createVariable("x", "i4", ("x",))[:] = np.arange(30)
            t = f.createVariable("time", "i4", ("time",), chunksizes=(3,))
            t.units, t[:] = "hours since 2000-01-01", np.arange(begin, begin + length)
            v = f.createVariable(
                "v", "i2", ("time", "x"), zlib=True, shuffle=True, chunksizes=(3, 30), fill_value=fill[i % len(fill)]
            )
            v.scale_factor, v.add_offset = map(float, packing[i % len(packing)])
            v.set_auto_maskandscale(False)
            v[:] = np.resize(VALUES[begin : begin + length], (length, 30))
            v[1] = fill[i % len(fill)]
            begin += length


MANY = {
    "files along time": lambda folder: days(folder),
    "packing that differs": lambda folder: days(folder, packing=((0.5, 10), (0.25, 20), (0.5, 10))),
    "uneven lengths": lambda folder: days(folder, lengths=(6, 4, 5)),
    "fill values that differ": lambda folder: days(folder, fill=(-32768, -32767)),
}


def paths_in(folder):
    return sorted(glob.glob(f"{folder}/*.nc"))


def kerchunk(paths, out):
    """References of kerchunk, as a store of zarr-python."""
    import zarr
    from kerchunk.combine import MultiZarrToZarr
    from kerchunk.hdf import SingleHdf5ToZarr

    refs = [SingleHdf5ToZarr(str(p), inline_threshold=0).translate() for p in paths]
    refs = refs[0] if len(refs) == 1 else MultiZarrToZarr(refs, concat_dims=["time"], identical_dims=["x"]).translate()
    name = f"{out}/kerchunk.json"
    with open(name, "w", encoding="utf-8") as f:
        json.dump(refs, f)
    return zarr.storage.FsspecStore.from_url(
        "reference://", storage_options={"fo": name, "remote_protocol": "file"}, read_only=True
    )


def virtualizarr(paths, out):
    """References of VirtualiZarr in an Icechunk repository in memory, as a store of zarr-python."""
    import icechunk
    import xarray as xr
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    loaded = [] if len(paths) == 1 else ["time", "x"]
    each = [
        open_virtual_dataset(f"file://{p}", registry=registry, parser=HDFParser(), loadable_variables=loaded, decode_times=False)
        for p in paths
    ]
    ds = (
        each[0]
        if len(each) == 1
        else xr.concat(each, dim="time", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override")
    )
    prefix = f"file://{os.path.dirname(paths[0])}/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(prefix[len("file://") :]))
    )
    access = icechunk.containers_credentials({prefix: icechunk.Credentials.LocalFileSystemAccess()})
    session = icechunk.Repository.create(
        icechunk.in_memory_storage(), config, authorize_virtual_chunk_access=access
    ).writable_session("main")
    ds.vz.to_icechunk(session.store)
    return session.store


PEERS = {"kerchunk": kerchunk, "virtualizarr": virtualizarr}
