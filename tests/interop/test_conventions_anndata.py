# SPDX-License-Identifier: BSL-1.0
"""AnnData's files: equal by its own assert_equal. test_corpus_roundtrips.py has files of others."""

import importlib.metadata
import importlib.util
import pathlib

import numpy as np
import pytest

from conftest import run
from conventions import at_least, opened

pytest_plugins = ["conventions"]  # its fixtures
pytestmark = pytest.mark.filterwarnings("ignore")


def annotated(kind):
    import anndata
    import pandas as pd
    import scipy.sparse as sp

    rng, n, m = np.random.default_rng(0), 20, 7
    obs = pd.DataFrame(
        {
            "category": pd.Categorical(rng.choice(["a", "b"], n)),
            "integer": pd.array([1, None] * 10, dtype="Int64"),
            "boolean": pd.array([True, None] * 10, dtype="boolean"),
            "f": rng.random(n),
            "s": [f"x{i}" for i in range(n)],
            "b": rng.random(n) > 0.5,
        },
        index=[f"c{i}" for i in range(n)],
    )
    var = pd.DataFrame({"g": np.arange(m)}, index=[f"g{i}" for i in range(m)])
    record = np.array([("g1", 1.5, 3), ("gene2ü", 2.5, 4)], dtype=[("name", "U8"), ("v", "f4"), ("i", "i8")])
    x = {
        "dense": lambda: rng.random((n, m)).astype("f4"),
        "csr": lambda: sp.random(n, m, 0.3, "csr"),
        "csc": lambda: sp.random(n, m, 0.3, "csc"),
    }[kind]()
    a = anndata.AnnData(
        x,
        obs=obs,
        var=var,
        layers={"l": sp.csr_matrix(np.eye(n, m))},
        obsm={"p": rng.random((n, 2)), "frame": pd.DataFrame({"q": np.arange(n)}, index=obs.index)},
        uns={"nested": {"a": 1, "b": "text", "c": np.array(["u", "vv"])}, "record": record, "n": np.float32(3), "empty": {}},
    )
    a.raw = a
    return a


def equal_annotated(a, b):
    from anndata.tests.helpers import assert_equal

    for x in (a, b):  # by this equality a NaN is not equal to itself
        for part in (x.varm, x.obsm):
            for key in [k for k, v in part.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f" and np.isnan(v).any()]:
                part[key] = np.where(np.isnan(part[key]), -12345.678, part[key])
    assert_equal(a, b, exact=True)


def same_annotated(source, store):
    import anndata

    equal_annotated(anndata.read_h5ad(source), anndata.read_zarr(opened(store)))


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_anndata_sees_the_h5ad(kind, compression, convert, tmp_path):
    at_least("anndata", (0, 13))
    annotated(kind).write_h5ad(tmp_path / "in.h5ad", compression=compression)
    same_annotated(tmp_path / "in.h5ad", convert(tmp_path / "in.h5ad"))


def test_anndata_sees_what_scanpy_ships(tmp_path):
    at_least("anndata", (0, 13))
    found = importlib.util.find_spec("scanpy")
    if not found:
        pytest.skip("no scanpy")
    source = pathlib.Path(found.origin).parent / "datasets/10x_pbmc68k_reduced.h5ad"
    run("convert", source, tmp_path / "store.zarr", "--quiet")
    same_annotated(source, str(tmp_path / "store.zarr"))


@pytest.mark.parametrize("strings", ["variable", "fixed"])
def test_anndata_sees_files_of_before_0_7(strings, tmp_path):
    at_least("anndata", (0, 13))
    import h5py

    text = h5py.string_dtype() if strings == "variable" else "S4"
    with h5py.File(tmp_path / "in.h5ad", "w") as f:
        f["X"] = np.arange(6, dtype="f4").reshape(3, 2)
        f.create_dataset("obs", data=np.array([("c1", 1), ("c2", 2), ("c3", 3)], dtype=[("index", text), ("n", "i4")]))
        f.create_dataset("var", data=np.array([("g1", 1.5), ("g2", 2.5)], dtype=[("index", text), ("w", "f8")]))
    run("convert", tmp_path / "in.h5ad", tmp_path / "store.zarr", "--quiet")
    same_annotated(tmp_path / "in.h5ad", str(tmp_path / "store.zarr"))
