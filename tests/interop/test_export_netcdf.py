# SPDX-License-Identifier: BSL-1.0
"""Random stores of zarr-python become files that all readers of netCDF open: netCDF4-python, xarray by both of its engines, and
ncdump, and by NCO where it is installed; what they and h5py read are the values of the store. cases.py has the variables that ask
for more cases."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from cases import each_case
from harness import run

zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
h5py = pytest.importorskip("h5py")
pytest.importorskip("numcodecs")

from random_stores import make_store  # noqa: E402  (it needs zarr-python)

pytestmark = pytest.mark.filterwarnings("ignore")


def export(store, back):
    """What became of its arrays, by their paths in the store. What `verify` finds is what the report says."""
    document = json.loads(run("export", "-q", "--json", "--overwrite", store, back, status=(0, 3)).stdout)
    told = {o.get("zarr_path", o["path"]) for o in document["objects"] if o.get("lossy") or o["outcome"] == "skipped"}
    verified = json.loads(run("verify", "--json", store, back, status=(0, 1, 3)).stdout)
    silent = [f for f in verified["findings"] if f["outcome"] != "unchecked" and f["path"] not in told]
    assert not silent, (silent, told)
    return {own_name(o.get("zarr_path", o["path"]))[1:]: o for o in document["objects"] if o["kind"] == "dataset"}


def plain(values):
    """Values as netCDF's readers may have them."""
    values = np.asarray(values)
    if values.dtype.kind in "Mm":
        return values.astype("i8")
    if values.dtype.kind in "SUO":
        texts = [v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in values.reshape(-1).tolist()]
        return np.array(texts, dtype=object).reshape(values.shape)
    return values


def check_values(wanted, have, name):
    wanted = np.asarray(wanted)
    have = np.asarray(have)
    if wanted.dtype.kind == "S" and have.dtype == "S1" and have.ndim == wanted.ndim + (wanted.dtype.itemsize > 1):
        have = np.ascontiguousarray(have).view(wanted.dtype).reshape(wanted.shape) if have.size else wanted
    if wanted.dtype.names:
        assert have.dtype.names == wanted.dtype.names, name
        for field in wanted.dtype.names:
            check_values(wanted[field], have[field], name)
        return
    wanted, have = plain(wanted), plain(have)
    assert have.shape == wanted.shape, (name, have.shape, wanted.shape)
    if wanted.dtype.kind == "c" and have.dtype.names:
        have = have["r"] + 1j * have["i"]
    assert np.array_equal(wanted, have, equal_nan=wanted.dtype.kind in "fc"), (name, wanted, have)


def own_name(name):
    """netCDF's programs show a variable that is called like a dimension that it does not have by its own name."""
    return name.replace("_nc4_non_coord_", "")


def groups_in(group):
    yield group
    for inner in group.groups.values():
        yield from groups_in(inner)


def check_netcdf_file(dice, folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    arrays = make_store(dice, store)
    written = {path for path, o in export(store, back).items() if o["outcome"] != "skipped"}
    subprocess.run(["ncdump", back], stdout=subprocess.DEVNULL, check=True)
    # NCO has no compounds and opaque types, and crashes on texts that were never written, netCDF's NIL
    if shutil.which("ncks") and not any(arrays[name].dtype.kind in "VcOTU" for name in written):
        subprocess.run(["ncks", back], stdout=subprocess.DEVNULL, check=True)
    # netCDF4-python has no opaque types, and h5netcdf 1.8 does not open a file with one, as netCDF-C makes it
    unshown = {name for name in written if arrays[name].dtype.kind == "V" and not arrays[name].dtype.names}
    with netCDF4.Dataset(back) as f:
        f.set_auto_maskandscale(False)
        f.set_auto_chartostring(False)
        groups = [g.path for g in groups_in(f)]
        shown = {own_name(f"{g.path}/{name}".lstrip("/")): v for g in groups_in(f) for name, v in g.variables.items()}
        assert set(shown) - unshown == written - unshown, shown.keys()
        for name, variable in shown.items():
            if name not in unshown:
                check_values(arrays[name], variable[...], (name, arrays[name].dtype))
    for engine in ("netcdf4",) if unshown else ("netcdf4", "h5netcdf"):
        for group in groups:  # a tree of xarray may not have dimensions of different lengths and one name, as netCDF has them
            with xr.open_dataset(back, group=group, engine=engine, decode_cf=False) as dataset:
                for name, variable in dataset.variables.items():
                    name = own_name(f"{group}/{name}".lstrip("/"))
                    if name in arrays and name not in unshown:
                        check_values(arrays[name], variable.values, (engine, name, arrays[name].dtype))


def check_hdf5_file(dice, folder):
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.h5")
    arrays = make_store(dice, store)
    told = export(store, back)
    assert all(told[name]["outcome"] != "skipped" for name in arrays), told
    subprocess.run(["h5dump", back], stdout=subprocess.DEVNULL, check=True)
    with h5py.File(back) as f:
        for name, wanted in arrays.items():
            dataset = f[told[name]["path"]]
            text = h5py.check_string_dtype(dataset.dtype) is not None and wanted.dtype.kind != "S"
            have = dataset.asstr()[...] if text else dataset[...]
            if wanted.dtype.kind in "Mm" or (wanted.dtype.kind == "V" and not wanted.dtype.names):
                assert have.tobytes() == wanted.tobytes(), name
            else:
                check_values(wanted, have, (name, wanted.dtype))


def test_random_stores_are_netcdf_files(tmp_path):
    each_case(str(tmp_path), 30, check_netcdf_file)


def test_random_stores_are_hdf5_files(tmp_path):
    each_case(str(tmp_path), 30, check_hdf5_file)
