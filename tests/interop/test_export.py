# SPDX-License-Identifier: BSL-1.0
"""Stores of others become files that their own readers find identical: xarray through netCDF4 and h5netcdf, and anndata."""

import os
import subprocess

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")
COMMAND = os.environ["ZARRBITS_COMMAND"]
pytestmark = pytest.mark.filterwarnings("ignore")


def export(store, back, *options):
    done = subprocess.run([COMMAND, "export", "-q", *options, store, back], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def dataset():
    rng = np.random.default_rng(1)
    time = np.arange("2000-01-01", "2000-01-11", dtype="M8[D]").astype("M8[ns]")
    return xr.Dataset(
        {
            "t2": (
                ("time", "y", "x"),
                rng.random((10, 4, 5)).astype("f4"),
                {"units": "K", "valid_min": 1.5, "n": 3, "list": [1, 2], "flag": np.int8(3)},
            ),
            "i": (("y", "x"), np.arange(20, dtype="i2").reshape(4, 5)),
            "text": ("x", np.array(["a", "bb", "ccc", "", "é"], dtype=object)),
            "fixed": ("x", np.array(["a", "bb", "ccc", "", "é"])),
            "yes": ("x", np.array([True, False, True, True, False])),
            "scalar": ((), 5.0),
            "bare": ("z", np.arange(3.0)),
            "span": ("x", np.arange(5).astype("m8[D]").astype("m8[ns]")),
        },
        coords={"time": time, "x": np.arange(5.0), "y": np.arange(4), "lat2": (("y", "x"), rng.random((4, 5))), "name": "hello"},
        attrs={"title": "T", "nums": [1.5, 2.5], "k": 7, "strs": ["a", "b"]},
    )


ENCODINGS = {
    "plain": {},
    "fill": {
        "t2": {"_FillValue": -9999.0, "chunks": (3, 2, 5)},
        "i": {"_FillValue": -1},
        "time": {"units": "days since 2000-01-01"},
    },
    "packed, in shards": {
        "t2": {
            "dtype": "i2",
            "scale_factor": 0.001,
            "add_offset": 0.5,
            "_FillValue": -32768,
            "shards": (10, 4, 10),
            "chunks": (5, 2, 5),
        }
    },
}


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_stores_of_xarray(tmp_path, encoding, engine):
    pytest.importorskip(engine.replace("netcdf4", "netCDF4"))
    store, back = str(tmp_path / "s.zarr"), str(tmp_path / "b.nc")
    dataset().to_zarr(store, zarr_format=3, encoding=ENCODINGS[encoding])
    export(store, back)
    for decode in (True, False):
        with (
            xr.open_zarr(store, decode_cf=decode, chunks=None) as wanted,
            xr.open_dataset(back, engine=engine, decode_cf=decode) as have,
        ):
            xr.testing.assert_identical(have.load(), wanted.load())


def test_a_tree_of_xarray(tmp_path):
    store, back = str(tmp_path / "s.zarr"), str(tmp_path / "b.nc")
    whole = dataset()
    below = xr.Dataset({"q": ("w", np.arange(3.0))}, coords={"w": [1, 2, 3]})
    tree = {"/": whole[["t2"]], "/g": whole[["i"]].drop_vars(["time", "name"], errors="ignore"), "/g/h": below}
    xr.DataTree.from_dict(tree).to_zarr(store, consolidated=False)
    export(store, back)
    with (
        xr.open_datatree(store, engine="zarr", consolidated=False) as wanted,
        xr.open_datatree(back, engine="netcdf4") as have,
    ):
        xr.testing.assert_identical(have.load(), wanted.load())


def test_stores_of_anndata(tmp_path):
    ad = pytest.importorskip("anndata")
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    from anndata.tests.helpers import assert_equal

    rng = np.random.default_rng(0)
    obs = pd.DataFrame(
        {
            "category": pd.Categorical(["a", "b"] * 10),
            "n": np.arange(20),
            "text": [f"s{i}" for i in range(20)],
            "integer": pd.array([1, None] * 10, dtype="Int64"),
            "boolean": pd.array([True, None] * 10, dtype="boolean"),
        },
        index=[f"c{i}" for i in range(20)],
    )
    a = ad.AnnData(sparse.random(20, 10, 0.3, format="csr", dtype="f4", random_state=0), obs=obs)
    a.layers["dense"], a.obsm["pca"] = rng.random((20, 10)), rng.random((20, 3))
    a.obsm["frame"] = pd.DataFrame({"x": np.arange(20.0)}, index=a.obs_names)
    a.uns.update(k={"v": 1, "t": "hello", "deep": {"x": 2.5}}, strs=np.array(["a", "b"], dtype=object), flag=True, empty={})
    a.uns["record"] = np.array([(1, 2.5), (2, 3.5)], dtype=[("a", "i4"), ("b", "f8")])
    a.raw = a.copy()
    store, back = str(tmp_path / "s.zarr"), str(tmp_path / "b.h5ad")
    before, ad.settings.zarr_write_format = ad.settings.zarr_write_format, 3
    try:
        a.write_zarr(store)
    finally:
        ad.settings.zarr_write_format = before
    export(store, back)
    assert_equal(ad.read_h5ad(back), ad.read_zarr(store), exact=True)


def test_codecs_of_zarr_python_through_hdf5_plugins(tmp_path):
    """Copied chunks are what the plugins of others decode."""
    zarr, h5py = pytest.importorskip("zarr"), pytest.importorskip("h5py")
    pytest.importorskip("hdf5plugin")
    store, back = str(tmp_path / "s.zarr"), str(tmp_path / "b.h5")
    data = np.random.default_rng(3).integers(0, 50, (60, 70)).astype("i4")
    codecs = {
        "gzip": zarr.codecs.GzipCodec(),
        "zstd": zarr.codecs.ZstdCodec(level=3),
        "blosc": zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle"),
        "none": None,
    }
    root = zarr.create_group(store, zarr_format=3)
    for name, codec in codecs.items():
        for shards in (None, (32, 32)):
            array = root.create_array(
                f"{name}{shards is not None}",
                shape=data.shape,
                dtype=data.dtype,
                chunks=(16, 16),
                shards=shards,
                compressors=codec,
            )
            array[:] = data
    export(store, back, "--filters", "any")
    with h5py.File(back) as f:
        for name in root:
            assert np.array_equal(f[name][()], data) and f[name].chunks == (16, 16), name
