# SPDX-License-Identifier: BSL-1.0
"""Random stores of zarr-python become files that all readers of netCDF open: netCDF4-python, xarray by both of its engines,
ncdump, and NCO where it is installed; what h5py reads are the values of the store. ZARRBITS_CASES and ZARRBITS_SEED ask for
more."""

import json
import os
import random
import shutil
import subprocess

import numpy as np
import pytest

zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
h5py = pytest.importorskip("h5py")
COMMAND = os.environ["ZARRBITS_COMMAND"]
pytestmark = pytest.mark.filterwarnings("ignore")
RECORD = np.dtype([("a", "<i2"), ("b", "<f8"), ("in", [("c", "u1"), ("d", "<f4")])])
TYPES = ["i1", "<u2", ">i4", "<u8", "<f2", ">f4", "<f8", "?", "<c8", ">c16", "S1", "S5", "<U3", "M8[s]", "M8[ns]", "m8[ms]", "V4"]
SHAPES = [(), (3,), (4,), (3, 4), (2, 3, 4), (0,), (2, 3, 4, 2), (2, 1, 3, 2, 2)]


def values_of(dice, dtype, shape):
    rng = np.random.default_rng(dice.getrandbits(30))
    if dtype == "string":
        words = np.array(["", "a", "é", "long text"], dtype=object)
        return words[rng.integers(0, 4, shape)] if shape else np.array("text", dtype=object)
    dtype = np.dtype(dtype)
    if dtype.kind in "SU":
        return np.asarray(rng.integers(0, 10**4, shape)).astype(dtype)
    if dtype.kind == "V":
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        return np.frombuffer(rng.integers(0, 2, size, dtype="u1").tobytes(), dtype).reshape(shape)
    return np.asarray(rng.integers(0, 100, shape)).astype(dtype)


def make(dice, path):
    """A store, and its arrays by name: values, and whether they are given to netCDF's readers as they are."""
    version = dice.choice([2, 3])
    root, arrays = zarr.create_group(path, zarr_format=version), {}
    for i in range(dice.randint(1, 5)):
        dtype, shape = dice.choice([*TYPES, RECORD, "string"]), dice.choice(SHAPES)
        if version == 2 and dtype == "string":
            dtype = "<U3"
        names = [dice.choice([f"n{n}", f"n{n}", "x", None]) for n in shape]
        names = [name if name not in names[:d] else f"{name}_{d}" for d, name in enumerate(names)]  # xarray has each once
        more = {"dimension_names": names} if version == 3 else {}
        if dice.random() < 0.3:
            more["chunks"] = tuple(max(1, (n + 1) // 2) for n in shape)
        if dice.random() < 0.3:
            kind = "U" if dtype == "string" else np.dtype(dtype).kind
            if kind != "V":
                more["fill_value"] = {"S": b"f", "U": "f"}.get(kind, 1)
        name = dice.choice([f"v{i}", f"v{i}", *filter(None, names[:1])])  # some are coordinates
        if name in arrays:
            continue
        array = root.create_array(name, shape=shape, dtype=str if dtype == "string" else dtype, **more)
        if dice.random() < 0.8:
            array[...] = values_of(dice, dtype, shape)
        elif shape and shape[0] > 1:
            array[:1] = values_of(dice, dtype, (1, *shape[1:]))
        if version == 2 and dice.random() < 0.5:
            array.attrs["_ARRAY_DIMENSIONS"] = [f"n{n}" if n not in shape[:d] else f"n{n}_{d}" for d, n in enumerate(shape)]
        array.attrs.update(dice.choice([{}, {"units": "m"}, {"n": 1, "list": [1, 2], "text": "é", "NAME": "mine"}]))
        arrays[name] = np.asarray(array[...], None if dtype == "string" else array.dtype)
    return arrays


def export(store, back):
    done = subprocess.run(
        [COMMAND, "export", "-q", "--json", "--overwrite", store, back], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    return {o["path"]: o for o in json.loads(done.stdout)["objects"] if o["kind"] == "dataset"}


def plain(values):
    """Values as netCDF's readers may have them."""
    values = np.asarray(values)
    if values.dtype.kind in "Mm":
        return values.astype("i8")
    if values.dtype.kind in "SUO":
        texts = [v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in values.reshape(-1).tolist()]
        return np.array(texts, dtype=object).reshape(values.shape)
    return values


def check_netcdf(wanted, have, name):
    wanted = np.asarray(wanted)
    have = np.asarray(have)
    if wanted.dtype.kind == "S" and have.dtype == "S1" and have.ndim == wanted.ndim + (wanted.dtype.itemsize > 1):
        have = np.ascontiguousarray(have).view(wanted.dtype).reshape(wanted.shape) if have.size else wanted
    if wanted.dtype.kind == "V" and wanted.dtype.names:
        assert have.dtype.names == wanted.dtype.names, name
        for field in wanted.dtype.names:
            check_netcdf(wanted[field], have[field], name)
        return
    wanted, have = plain(wanted), plain(have)
    assert have.shape == wanted.shape, (name, have.shape, wanted.shape)
    if wanted.dtype.kind == "c" and have.dtype.names:
        have = have["r"] + 1j * have["i"]
    assert np.array_equal(wanted, have, equal_nan=wanted.dtype.kind in "fc") or (wanted == have).all(), (name, wanted, have)


def cases(tmp_path):
    seed = int(os.environ.get("ZARRBITS_SEED", 1))
    for i in range(int(os.environ.get("ZARRBITS_CASES", 30))):
        dice = random.Random(f"{seed}/{i}")
        store = str(tmp_path / f"{i}.zarr")
        yield i, store, make(dice, store)


def test_random_stores_are_netcdf_files(tmp_path):
    for i, store, arrays in cases(tmp_path):
        back = str(tmp_path / f"{i}.nc")
        exported = export(store, back).items()
        written = {path[1:].removeprefix("_nc4_non_coord_") for path, o in exported if o["outcome"] != "skipped"}
        subprocess.run(["ncdump", back], stdout=subprocess.DEVNULL, check=True)
        # NCO has no compounds and opaque types
        if shutil.which("ncks") and not any(v.dtype.kind in "Vc" for v in arrays.values()):
            subprocess.run(["ncks", back], stdout=subprocess.DEVNULL, check=True)
        with netCDF4.Dataset(back) as f:
            f.set_auto_maskandscale(False)
            f.set_auto_chartostring(False)
            shown = {name.removeprefix("_nc4_non_coord_"): v for name, v in f.variables.items()}
            unshown = {
                name for name, v in arrays.items() if v.dtype.kind == "V" and not v.dtype.names
            }  # netCDF4-python has no opaque
            assert set(shown) - unshown == written - unshown, (i, shown.keys())
            for name, variable in shown.items():
                if name not in unshown:
                    check_netcdf(arrays[name], variable[...], (i, name, arrays[name].dtype))
        # h5netcdf 1.8 does not open a file with an opaque type, as netCDF-C makes it
        for engine in ("netcdf4",) if unshown & written else ("netcdf4", "h5netcdf"):
            with xr.open_dataset(back, engine=engine, decode_cf=False) as d:
                d.load()


def test_random_stores_are_hdf5_files(tmp_path):
    for i, store, arrays in cases(tmp_path):
        back = str(tmp_path / f"{i}.h5")
        export(store, back)
        subprocess.run(["h5dump", back], stdout=subprocess.DEVNULL, check=True)
        with h5py.File(back) as f:
            for name, wanted in arrays.items():
                if name not in f:
                    name = "_nc4_non_coord_" + name
                dataset = f[name]
                have = (
                    dataset[...]
                    if h5py.check_string_dtype(dataset.dtype) is None or wanted.dtype.kind == "S"
                    else dataset.asstr()[...]
                )
                if wanted.dtype.kind in "Mm" or (wanted.dtype.kind == "V" and not wanted.dtype.names):
                    assert have.tobytes() == wanted.tobytes(), (i, name)
                else:
                    check_netcdf(wanted, have, (i, name, wanted.dtype))
