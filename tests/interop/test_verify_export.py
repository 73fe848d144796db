# SPDX-License-Identifier: BSL-1.0
"""`verify` of files that `export` made of stores of others: equal, in either order, and each change of the file is noticed."""

import shutil

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")
from harness import run, verify  # noqa: E402
from test_export import ENCODINGS, dataset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ATTRIBUTES = {
    "text": "é",
    "empty": "",
    "n": 3,
    "large": 2**64 - 1,
    "real": 1.5,
    "mixed numbers": [1, 2.5],
    "yes": True,
    "flags": [True, False],
    "none": None,
    "texts": ["a", "bc"],
    "nothing": [],
    "table": [[1, 2], [3, 4]],
    "object": {"a": [1, None, {"b": "c"}]},
    "ragged": [[1], [2, 3]],
    "mixed": [1, "a"],
}


def arrays(store):
    """One array of each kind that zarr-python writes, and attributes of each kind of JSON."""
    root = zarr.create_group(store, zarr_format=3, attributes=ATTRIBUTES)
    rng = np.random.default_rng(5)
    numbers = {
        t: rng.integers(0, 100, (7, 5)).astype(t) for t in ("i1", "u1", "i2", ">i2", "u4", "i8", "f2", "f4", ">f8", "c8", "c16")
    }
    others = {
        "bool": np.array([True, False, True]),
        "S": np.array([b"ab", b"c", b""]),
        "U": np.array(["ab", "é", ""]),
        "T": np.array(["ab", "é", "long enough"], dtype=np.dtypes.StringDType()),
        "time": np.array(["2020-01-01", "NaT"], "M8[ns]"),
        "span": np.array([1, 2], "m8[s]"),
        "raw": np.array([b"abc", b"de\0"], "V3"),
        "record": np.array([(1, 2.5), (3, -1.0)], [("a", "<i4"), ("b", "<f8")]),
        "scalar": np.array(2.5),
        "no elements": np.zeros((0, 3)),
    }
    for name, data in {**numbers, **others}.items():
        array = root.create_array(name, shape=data.shape, dtype=data.dtype, chunks=tuple(max(1, min(4, n)) for n in data.shape))
        array[...] = data
    root.create_array("long chunk", shape=(3,), dtype="i4", chunks=(10,), compressors=zarr.codecs.GzipCodec())[:] = [1, 2, 3]
    root.create_array(
        "named", shape=(3, 2), dtype="i4", chunks=(3, 2), dimension_names=("x", None), fill_value=-9, attributes=ATTRIBUTES
    )
    root.create_group("g").create_array("sharded", shape=(8,), dtype="i4", chunks=(2,), shards=(4,))[:4] = 1


def of_xarray(encoding):
    return lambda store: dataset().to_zarr(store, zarr_format=3, encoding=ENCODINGS[encoding])


def of_a_tree(store):
    below = xr.Dataset({"q": ("w", np.arange(3.0))}, coords={"w": [1, 2, 3]})
    tree = {"/": dataset()[["t2"]], "/g": dataset()[["i"]].drop_vars(["time", "name"], errors="ignore"), "/g/h": below}
    xr.DataTree.from_dict(tree).to_zarr(store, consolidated=False)


def of_anndata(store):
    ad, pd, sparse = pytest.importorskip("anndata"), pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    obs = pd.DataFrame(
        {"c": pd.Categorical(["a", "b"] * 5), "n": pd.array([1, None] * 5, dtype="Int64"), "yes": [True, False] * 5},
        index=[f"c{i}" for i in range(10)],
    )
    a = ad.AnnData(sparse.random(10, 4, 0.3, format="csr", dtype="f4", random_state=0), obs=obs)
    a.uns.update(k={"v": 1, "t": "hello"}, strs=np.array(["a", "b"], dtype=object), flag=True, empty={})
    before, ad.settings.zarr_write_format = ad.settings.zarr_write_format, 3
    try:
        a.write_zarr(store)
    finally:
        ad.settings.zarr_write_format = before


STORES = {
    **{f"xarray, {name}": (of_xarray(name), "b.nc") for name in ENCODINGS},
    "a tree": (of_a_tree, "b.nc"),
    "xarray as HDF5": (of_xarray("plain"), "b.h5"),
    "zarr-python": (arrays, "b.h5"),
    "AnnData": (of_anndata, "b.h5ad"),
}


@pytest.mark.parametrize("name", STORES)
def test_an_export_equals_its_store(tmp_path, name):
    make, file = STORES[name]
    store, back = str(tmp_path / "s.zarr"), str(tmp_path / file)
    make(store)
    run("export", "-q", store, back)
    report = verify(back, store, status=None)
    assert (report["exit_status"], report["findings"], report["extras"], report["only_in_store"]) == (0, [], [], [])
    assert verify(store, back) == report
    assert run("verify", store, back).stdout.splitlines()[-1].startswith("OK")


def rename(f):
    f.move("v", "w")


def add_attribute(f):
    f["v"].attrs["more"] = 1


def remove_attribute(f):
    del f["v"].attrs["n"]


def other_type(f):
    f["v"].attrs.create("n", 3, dtype="i2")


def other_value(f):
    f["v"].attrs["real"] = 2.5


def other_element(f):
    f["v"][1, 1] = 7


def other_json(f):
    f["v"].attrs["object"] = '{"a": [1, null, {"b": "d"}]}'


def add_dataset(f):
    f["more"] = 1


def other_dimension(f):
    f["v"].dims[0].label = "z"


CHANGES = [
    rename,
    add_attribute,
    remove_attribute,
    other_type,
    other_value,
    other_element,
    other_json,
    add_dataset,
    other_dimension,
]


@pytest.fixture(name="pair", scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    store, back = str(folder / "s.zarr"), str(folder / "b.h5")
    root = zarr.create_group(store, zarr_format=3)
    root.create_array("v", shape=(3, 2), dtype="f4", chunks=(3, 2), dimension_names=("x", "y"), attributes=ATTRIBUTES)[...] = 1
    run("export", "-q", "--filters", "standard", store, back)
    return store, back


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_change_of_the_file_is_noticed(tmp_path, pair, change):
    back = str(tmp_path / "b.h5")
    shutil.copyfile(pair[1], back)
    with h5py.File(back, "a") as f:
        change(f)
    for order in (back, pair[0]), (pair[0], back):
        assert verify(*order, status=1)["exit_status"] == 1


def test_a_dimension_of_the_file_that_the_store_has_not_is_noticed(tmp_path):
    store, back = str(tmp_path / "s.zarr"), str(tmp_path / "b.nc")
    xr.Dataset({"v": (("y", "x"), np.zeros((2, 3)))}, coords={"x": [1, 2, 3]}).to_zarr(store, zarr_format=3)
    run("export", "-q", store, back)
    with h5py.File(back, "a") as f:
        f.copy("y", "z")
    assert [f["path"] for f in verify(back, store, status=1)["findings"]] == ["/z"]
