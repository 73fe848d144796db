# SPDX-License-Identifier: BSL-1.0
"""A year of monthly netCDF files with chunks of ten days, joined with --grid rectilinear: what zarr-python, xarray, zarrs and
Icechunk read is what xarray.open_mfdataset reads of the files. docs/guide/rectilinear.md."""

import json

import numpy as np
import pytest

import zarrbits
from conftest import run

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")


def version(module):
    return tuple(int(x) for x in module.__version__.split(".")[:2])


if version(zarr) < (3, 2) or version(xr) < (2026, 9):
    pytest.skip("zarr-python or xarray cannot read rectilinear chunk grids", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")
DAYS = np.arange("2021-01-01", "2022-01-01", dtype="datetime64[D]")
MONTHS = DAYS.astype("datetime64[M]").astype(int) % 12
WHOLE, ALL = 35, 43  # of ten days; and the last one of eight months
OPTIONS = ["--grid", "rectilinear", "--profile", "native"]


@pytest.fixture(autouse=True)
def rectilinear_chunks():
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The files, and what open_mfdataset reads of them."""
    folder, noise = tmp_path_factory.mktemp("archive"), np.random.default_rng(3)
    paths = []
    for month in range(12):
        days = DAYS[MONTHS == month]
        field = noise.normal(280, 10, (len(days), 18, 36)).astype("f4").round(1)
        ds = xr.Dataset(
            {
                "t2m": (("time", "lat", "lon"), field, {"units": "K"}),
                "wet": (("time", "lat"), field[:, :, 0] > 280),
                "station": (("time",), np.array([f"s{d}é" for d in days], object)),
                "mask": (("lat", "lon"), np.arange(18 * 36, dtype="i4").reshape(18, 36)),
            },
            coords={"time": days.astype("M8[ns]"), "lat": np.linspace(-85, 85, 18), "lon": np.linspace(0, 350, 36)},
        )
        encoding = {
            "t2m": {"zlib": True, "shuffle": True, "chunksizes": (10, 18, 36)},
            "wet": {"zlib": True, "chunksizes": (10, 7)},  # reaches over the edge along the other axis
            "time": {"units": "days since 2000-01-01", "dtype": "i8"},
        }
        paths.append(folder / f"{month + 1:02}.nc")
        ds.to_netcdf(paths[-1], encoding=encoding, unlimited_dims=["time"])
    want = xr.open_mfdataset(paths, combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="equals")
    return paths, want.load()


def edges():
    """The lengths of all chunks, by the calendar."""
    return [
        n for month in range(12) for n in np.diff([*range(0, int((MONTHS == month).sum()), 10), int((MONTHS == month).sum())])
    ]


def check(store, want, paths, name):
    got = xr.open_zarr(store, consolidated=False).load()
    xr.testing.assert_identical(want, got)
    group = zarr.open_group(store, mode="r")
    assert list(group["t2m"].read_chunk_sizes[0]) == edges() and len(edges()) == ALL
    assert group["t2m"].metadata.chunk_grid.to_dict()["name"] == "rectilinear"
    with xr.open_dataset(store, engine="zarr", consolidated=False, chunks={}) as lazy:
        assert lazy.t2m.chunks[0] == tuple(edges())
        for days in (slice(29, 33), slice(58, 60), slice(364, 365)):
            xr.testing.assert_equal(lazy.t2m[days].load(), want.t2m[days])
    result = json.loads(run("verify", "--json", "--concat", "time", *paths, name))
    assert result["elements"]["unchecked"] == 0 and result["datasets"]["differs"] == 0, result


@pytest.mark.parametrize("profile", ["portable", "native", "recode"])
def test_a_copy(archive, tmp_path, profile):
    paths, want = archive
    out = tmp_path / "out.zarr"
    report = run("convert", "--concat", "time", *paths, out, "--json", "--grid", "rectilinear", "--profile", profile)
    if profile == "native":
        chunks = next(o["chunks"] for o in json.loads(report)["objects"] if o["path"] == "/t2m")
        assert chunks == {"raw": WHOLE, "recoded": ALL - WHOLE}, chunks
    check(out, want, paths, out)
    # zarr-python writes the same metadata, run by run
    ours = json.loads((out / "t2m" / "zarr.json").read_text())["chunk_grid"]
    assert zarr.open_array(out / "t2m", mode="r").metadata.chunk_grid.to_dict()["configuration"]["chunk_shapes"] == tuple(
        ours["configuration"]["chunk_shapes"]
    )


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_references(archive, tmp_path, form):
    """The monthly archive refers to 35 of its 43 chunks, and copies only tails."""
    paths, want = archive
    out = tmp_path / f"out.{form}"
    report = json.loads(run("convert", "--concat", "time", *paths, out, "--virtual", "--json", "--grid", "rectilinear"))
    chunks = next(o["chunks"] for o in report["objects"] if o["path"] == "/t2m")
    assert chunks == {"raw": WHOLE, "recoded": ALL - WHOLE}, chunks
    plan = json.loads(run("plan", "--concat", "time", *paths, "--virtual", "--json"))
    grids = next(d["grids"] for d in plan["datasets"] if d["path"] == "/t2m")
    assert grids["regular"] == {"chunks": 37, "copied": 9} and grids["suggested"] == "rectilinear", grids
    assert grids["rectilinear"] == {"chunks": ALL, "copied": WHOLE}, grids
    if form == "json":
        refs = json.loads(out.read_text())["refs"]
        files = [v[0] for k, v in refs.items() if k.startswith("t2m/") and isinstance(v, list)]
        assert sum(f.endswith(".nc") for f in files) == WHOLE
    check(zarrbits.open_references(out, external=str(paths[0].parent)), want, paths, out)


def test_fsspec_reads_the_references(archive, tmp_path):
    """Without a package of ours: fsspec has the references, and its chunk numbers of Parquet files."""
    fsspec = pytest.importorskip("fsspec")
    paths, want = archive
    for form in ("json", "parquet"):
        out = tmp_path / f"out.{form}"
        run("convert", "--concat", "time", *paths, out, "--virtual", "--quiet", "--grid", "rectilinear", "--exclude", "station")
        more = {"lazy": True} if form == "parquet" else {}
        fs = fsspec.filesystem("reference", fo=str(out), remote_protocol="file", asynchronous=True, **more)
        store = zarr.storage.FsspecStore(fs, read_only=True, path="")
        got = xr.open_zarr(store, consolidated=False).load()
        xr.testing.assert_identical(want.drop_vars("station"), got)


def test_icechunk(archive, tmp_path):
    icechunk = pytest.importorskip("icechunk")
    paths, want = archive
    out = tmp_path / "out.json"
    run("convert", "--concat", "time", *paths, out, "--virtual", "--quiet", "--grid", "rectilinear")
    zarrbits.to_icechunk(out, tmp_path / "repository", external=str(paths[0].parent))
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repository"))
    prefixes = icechunk.Repository.open(storage).config.virtual_chunk_containers
    access = icechunk.containers_credentials({p: icechunk.Credentials.LocalFileSystemAccess() for p in prefixes})
    repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=access)
    store = repository.readonly_session("main").store
    xr.testing.assert_identical(want, xr.open_zarr(store, consolidated=False).load())


def test_zarrs(archive, zarrs, tmp_path):
    paths, want = archive
    out = tmp_path / "out.zarr"
    run("convert", "--concat", "time", *paths, out, "--quiet", "--grid", "rectilinear")
    for name in ("t2m", "wet"):
        assert zarrs.ask("read", path=str(out / name)) == want[name].values.tobytes(), zarrs.refused


@pytest.mark.parametrize("first", [1, 3])
def test_month_after_month(archive, tmp_path, first):
    """A store that grows has the chunks that it would have had at once."""
    paths, want = archive
    out, whole = tmp_path / "out.zarr", tmp_path / "whole.zarr"
    run("convert", "--concat", "time", *paths, whole, "--quiet", *OPTIONS)
    run("convert", "--concat", "time", *paths[:first], out, "--quiet", *OPTIONS)
    for i, path in enumerate(paths[first:]):
        run("convert", "--append", "time", path, out, "--quiet", *(OPTIONS[:2] if first == 1 and i == 0 else []))
    check(out, want, paths, out)
    for name in ("t2m", "wet"):
        one, other = (json.loads((s / name / "zarr.json").read_text())["chunk_grid"] for s in (out, whole))
        assert one == other


def test_a_store_of_zarr_python_grows(archive, tmp_path):
    """Its grid may reach over the edge; the chunk there is cut."""
    import h5py

    values = np.arange(40, dtype="i4").reshape(20, 2)
    a = zarr.create_array(tmp_path / "z" / "a", shape=(16, 2), chunks=([5, 5, 6], 2), dtype="i4", dimension_names=["t", "x"])
    zarr.create_group(tmp_path / "z", overwrite=False)
    a[...] = np.arange(32, dtype="i4").reshape(16, 2)
    a.resize((13, 2))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["t"] = np.arange(7)
        f["t"].make_scale("t")
        f["x"] = np.arange(2)
        f["x"].make_scale("x")
        d = f.create_dataset("a", data=values[13:], chunks=(5, 2), maxshape=(None, 2))
        d.dims[0].attach_scale(f["t"])
        d.dims[1].attach_scale(f["x"])
    run("convert", "--append", "t", tmp_path / "a.h5", tmp_path / "z", "--quiet", "--exclude", "t", "--exclude", "x")
    grown = zarr.open_array(tmp_path / "z" / "a", mode="r")
    assert (grown[...] == values).all() and grown.metadata.chunk_grid.to_dict()["configuration"]["chunk_shapes"] == (
        [[5, 2], 3, 5, 2],
        [2],
    )
