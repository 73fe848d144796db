# SPDX-License-Identifier: BSL-1.0
"""Stores of references by `zarrbits.open_references` and `zarrbits.to_icechunk`:
what h5py reads in the sources, or a sentence that names what is wrong."""

import importlib.util
import json
import os
import pathlib
import shutil

import h5py
import numpy as np
import pytest
import zarr

import zarrbits
from conftest import run
from s3_servers import BUCKET, KEY, SECRET, client

needs_parquet = pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="there is no pandas")
pytest_plugins = ["s3_servers"]  # its fixtures

RNG = np.random.default_rng(11)
FRAMES = RNG.integers(0, 4096, (40, 30), dtype="u2")


def write(path):
    """Groups in groups, chunks that are referred to and such that are not, and every way to be stored."""
    with h5py.File(path, "w") as f:
        f.attrs["title"] = "référence"
        f["g/c/5"] = np.arange(7)  # the names of chunks have such words in them
        f.create_dataset("g/c/packed", data=FRAMES, chunks=(16, 32), maxshape=(None, None), **zarrbits.packbits(bits=12))
        f.create_dataset("deflated", data=FRAMES, chunks=(8, 30), compression="gzip", shuffle=True)
        f.create_dataset("checked", data=FRAMES, chunks=(8, 30), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("big", data=FRAMES.astype(">u2"), chunks=(7, 11))
        f.create_dataset("contiguous", data=FRAMES)
        f.create_dataset("text", data=["one", "zwei", "três"] * 300, dtype=h5py.string_dtype(), chunks=(300,))
        masked = f.create_dataset("masked", (16, 30), "u2", chunks=(8, 30), compression="gzip", shuffle=True)
        masked[:8] = FRAMES[:8]
        masked.id.write_direct_chunk((8, 0), FRAMES[8:16].tobytes(), 3)
        f.create_dataset("sparse", (100, 10), "f4", chunks=(10, 10), fillvalue=np.float32(-1))[25] = 3
        f["scalar"] = 5.5
        f.create_dataset("none", (0, 3), "i4", chunks=(4, 3), maxshape=(None, 3))
    return path


def check(group, path):
    names = []
    with h5py.File(path) as f:
        f.visititems(lambda name, d: names.append(name) if isinstance(d, h5py.Dataset) else None)
        assert len(names) == 11 and group.attrs["title"] == "référence"
        for name in names:
            want = f[name].asstr()[()] if name == "text" else f[name][()]
            got = np.asarray(group[name][...])
            assert got.shape == np.shape(want) and np.array_equal(got, want), name
            if name != "text":
                assert got.tobytes() == np.asarray(want).astype(got.dtype).tobytes(), name


def repository_of(path, credentials=None):
    """As a reader opens it, who authorizes all that its configuration names."""
    icechunk = pytest.importorskip("icechunk")
    storage = icechunk.local_filesystem_storage(str(path))
    prefixes = icechunk.Repository.open(storage).config.virtual_chunk_containers
    access = {p: credentials if p.startswith("s3:") else icechunk.Credentials.LocalFileSystemAccess() for p in prefixes}
    return icechunk.Repository.open(storage, authorize_virtual_chunk_access=icechunk.containers_credentials(access)), sorted(
        prefixes
    )


def group_of(path, credentials=None):
    return zarr.open_group(repository_of(path, credentials)[0].readonly_session("main").store, mode="r")


@pytest.fixture(params=["json", pytest.param("parquet", marks=needs_parquet)])
def refs(request, tmp_path):
    """The name of a store of references; none is there yet."""
    return tmp_path / f"refs é.{request.param}"


def remove(refs):
    shutil.rmtree(refs) if refs.is_dir() else refs.unlink()
    pathlib.Path(f"{refs}.data").unlink(missing_ok=True)


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    return write(tmp_path / "in/in.h5")


@pytest.mark.parametrize("inline", ["0", "1M"])
def test_it_reads_what_h5py_reads(source, refs, tmp_path, inline):
    run("convert", "-q", "--virtual", "--inline", inline, source, refs)
    store = zarrbits.open_references(refs)
    assert store.read_only and os.path.exists(f"{refs}.data") == (inline == "0")
    check(zarr.open_group(store, mode="r"), source)
    zarrbits.to_icechunk(refs, tmp_path / "repository")
    remove(refs)  # what is in no source is in the repository
    check(group_of(tmp_path / "repository"), source)


@pytest.mark.parametrize("form", ["zarr", "zip"])
def test_references_to_the_chunks_of_a_store(source, refs, tmp_path, form):
    """By our reader, which checks that nothing has changed, and by fsspec's."""
    store = tmp_path / f"in/store.{form}"
    run("convert", "-q", source, store)
    run("convert", "-q", "--virtual", store, refs)
    check(zarr.open_group(zarrbits.open_references(refs), mode="r"), source)
    if refs.suffix == ".json":
        fsspec = pytest.importorskip("fsspec")
        files = fsspec.filesystem("reference", fo=str(refs), remote_protocol="file", asynchronous=True)
        check(zarr.open_group(zarr.storage.FsspecStore(files, read_only=True), mode="r", zarr_format=3), source)


def test_listings_and_chunks_that_are_not_there(source, refs):
    run("convert", "-q", "--virtual", source, refs)
    group = zarr.open_group(zarrbits.open_references(refs), mode="r")
    assert sorted(group) == ["big", "checked", "contiguous", "deflated", "g", "masked", "none", "scalar", "sparse", "text"]
    assert (
        sorted(group["g"]) == ["c"] and sorted(group["g/c"]) == ["5", "packed"] and len(list(group.members(max_depth=None))) == 13
    )
    assert (
        group["sparse"].nchunks_initialized == 1
        and group["deflated"].nchunks_initialized == 5
        and group["none"].nchunks_initialized == 0
    )


def test_chunks_in_the_repository_are_references(source, tmp_path):
    run("convert", "-q", "--virtual", source, tmp_path / "refs.json")
    icechunk = pytest.importorskip("icechunk")
    zarrbits.to_icechunk(tmp_path / "refs.json", tmp_path / "repository", message="of today")
    repository, prefixes = repository_of(tmp_path / "repository")
    assert prefixes == [f"file://{tmp_path}/in/"]
    assert next(iter(repository.ancestry(branch="main"))).message == "of today"
    refs = json.loads((tmp_path / "refs.json").read_text())["refs"]
    referred = {v[0] for k, v in refs.items() if isinstance(v, list) and not v[0].endswith(".data")}
    assert set(repository.readonly_session("main").all_virtual_chunk_locations()) == referred
    # nothing is read that the reader has not authorized
    closed = icechunk.Repository.open(icechunk.local_filesystem_storage(str(tmp_path / "repository")))
    with pytest.raises(Exception, match="authorize|container"):
        zarr.open_group(closed.readonly_session("main").store, mode="r")["deflated"][:]


def test_names_with_every_sign(tmp_path, refs):
    folder = tmp_path / "a b%20#?{{x}}é"
    folder.mkdir()
    path = write(folder / "x::y{{z}}%41 #.h5")
    refs = folder / refs.name
    run("convert", "-q", "--virtual", path, refs)
    check(zarr.open_group(zarrbits.open_references(refs), mode="r"), path)
    zarrbits.to_icechunk(refs, tmp_path / "repository")
    assert repository_of(tmp_path / "repository")[1] == [f"file://{tmp_path}/"]
    check(group_of(tmp_path / "repository"), path)


def test_xarray_opens_joined_files(tmp_path, refs):
    xr = pytest.importorskip("xarray")
    paths = []
    for i, (first, count) in enumerate([(0, 8), (8, 5), (13, 7)]):
        folder = tmp_path / f"part{i}"
        folder.mkdir()
        paths.append(folder / "d.nc")
        xr.Dataset(
            {
                "v": (("t", "x"), FRAMES[first : first + count].astype("i4")),
                "s": (("t",), np.array([f"row {k}" for k in range(count)], object)),
            },
            coords={"t": np.arange(first, first + count), "x": np.arange(30.0)},
        ).to_netcdf(paths[-1], unlimited_dims=["t"], encoding={"v": {"zlib": True, "shuffle": True, "chunksizes": (4, 30)}})
    run("convert", "-q", "--virtual", "--concat", "t", *paths, refs)
    want = xr.open_mfdataset(
        paths, combine="nested", concat_dim="t", data_vars="minimal", coords="minimal", compat="equals"
    ).load()
    xr.testing.assert_identical(want, xr.open_zarr(zarrbits.open_references(refs), consolidated=False).load())
    zarrbits.to_icechunk(refs, tmp_path / "repository")
    repository, prefixes = repository_of(tmp_path / "repository")
    assert prefixes == [f"file://{tmp_path}/part{i}/" for i in range(2)]  # the last begins within a chunk, and is copied
    xr.testing.assert_identical(want, xr.open_zarr(repository.readonly_session("main").store, consolidated=False).load())


def test_icechunk_refuses_a_source_that_changed_later(source, tmp_path):
    run("convert", "-q", "--virtual", source, tmp_path / "refs.json")
    zarrbits.to_icechunk(tmp_path / "refs.json", tmp_path / "repository")
    later = os.stat(source).st_mtime + 2
    os.utime(source, (later, later))
    group = group_of(tmp_path / "repository")
    assert group["text"][1] == "zwei"  # which is in the repository
    with pytest.raises(Exception, match="has changed"):
        group["deflated"][:]


def test_a_branch_that_has_a_store(source, tmp_path):
    pytest.importorskip("icechunk")
    run("convert", "-q", "--virtual", source, tmp_path / "refs.json")
    first = zarrbits.to_icechunk(tmp_path / "refs.json", tmp_path / "repository")
    with pytest.raises(zarrbits.Error, match="overwrite=True"):
        zarrbits.to_icechunk(tmp_path / "refs.json", tmp_path / "repository")
    run("convert", "-q", "--virtual", "--overwrite", "--include", "/text", source, tmp_path / "refs.json")
    second = zarrbits.to_icechunk(tmp_path / "refs.json", tmp_path / "repository", overwrite=True)
    repository, _ = repository_of(tmp_path / "repository")
    assert sorted(zarr.open_group(repository.readonly_session("main").store, mode="r")) == ["text"] and first != second
    check(zarr.open_group(repository.readonly_session(snapshot_id=first).store, mode="r"), source)


def test_a_repository_without_a_container(source, tmp_path):
    icechunk = pytest.importorskip("icechunk")
    run("convert", "-q", "--virtual", source, tmp_path / "refs.json")
    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    with pytest.raises(zarrbits.Error, match="no virtual chunk container for .*in.h5"):
        zarrbits.to_icechunk(tmp_path / "refs.json", repository)
    assert len(list(repository.ancestry(branch="main"))) == 1  # nothing was committed


def truncate(path):
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) - 1)


def write_again(path):
    """The same length, another time."""
    info = os.stat(path)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda source: source.rename(source.parent / "moved.h5"), "in.h5.*No such file"),
        (truncate, "in.h5.* bytes, and had"),
        (write_again, "in.h5.*has been written to"),
    ],
)
def test_a_source_that_is_not_what_it_was(source, refs, tmp_path, change, words):
    run("convert", "-q", "--virtual", source, refs)
    zarrbits.open_references(refs)
    change(source)
    with pytest.raises(zarrbits.Error, match=words):
        zarrbits.open_references(refs)
    with pytest.raises(zarrbits.Error, match=words):
        zarrbits.to_icechunk(refs, tmp_path / "repository")
    assert not (tmp_path / "repository").exists()
    assert zarr.open_group(zarrbits.open_references(refs, check=False), mode="r").attrs["title"] == "référence"


@pytest.mark.parametrize("change, words", [(os.unlink, "neither a source nor"), (truncate, "beyond the end of .*data")])
def test_the_file_beside_the_references(source, refs, tmp_path, change, words):
    """Of Parquet, which is not read at opening, it is looked at where it is needed."""
    run("convert", "-q", "--virtual", "--inline", 0, source, refs)
    change(f"{refs}.data")
    with pytest.raises(zarrbits.Error, match=words):
        zarrbits.to_icechunk(refs, tmp_path / "repository")
    with pytest.raises(zarrbits.Error, match=words):
        group = zarr.open_group(zarrbits.open_references(refs), mode="r")
        assert refs.suffix == ".parquet"
        for name in ("text", "checked", "masked", "contiguous", "deflated", "scalar", "g/c/5"):
            group[name][...]


def edited(refs, change):
    document = json.loads(refs.read_text())
    change(document)
    refs.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "change, words, checked",
    [
        (lambda d: d.pop("refs"), "has no references", True),
        (lambda d: d["refs"].__setitem__("deflated/0.0", ["file:///x", 1]), "deflated/0.0", True),
        (lambda d: d["refs"].__setitem__("deflated/0.0", ["file:///x", -1, 5]), "deflated/0.0", True),
        (lambda d: d["refs"].__setitem__("deflated/0.0", ["ftp://example.org/x", 1, 5]), "deflated/0.0", True),
        (
            lambda d: d["refs"].__setitem__("deflated/0.0", ["file:///etc/hostname", 0, 5]),
            "hostname.* is not in their folder or below.*external=",
            True,
        ),
        (
            lambda d: d["refs"].__setitem__(
                "deflated/0.0", [f"file://{os.path.dirname(d['zarrbits']['sources'][0]['url'][7:])}/../other", 0, 5]
            ),
            "neither a source nor",
            False,
        ),
        (lambda d: d["refs"]["deflated/0.0"].__setitem__(1, 1 << 40), "beyond the end", False),
        (lambda d: d["zarrbits"]["sources"][0].__setitem__("size", "5"), "without a URL and a size", True),
        (lambda d: d.pop("zarrbits"), "does not say what its sources were", False),
    ],
)
def test_hostile_references(source, tmp_path, change, words, checked):
    refs = tmp_path / "refs.json"
    run("convert", "-q", "--virtual", source, refs)
    edited(refs, change)
    with pytest.raises(zarrbits.Error, match=words):
        zarrbits.open_references(refs)
    if checked:  # of its form, whatever the sources are
        with pytest.raises(zarrbits.Error, match=words):
            zarrbits.open_references(refs, check=False)


def write_rows(folder, **columns):
    import pandas

    engine = "pyarrow" if importlib.util.find_spec("pyarrow") else "fastparquet"
    pandas.DataFrame(columns).to_parquet(folder / "deflated/refs.0.parq", engine=engine, compression="zstd")


@needs_parquet
@pytest.mark.parametrize(
    "columns, words, checked",
    [
        (
            dict(path=["file:///etc/hostname"] * 5, offset=[0] * 5, size=[5] * 5),
            "hostname.* is not in their folder or below",
            True,
        ),
        (dict(path=["file:///nothing"] * 5, offset=[0] * 5, size=[5] * 5), "neither a source nor", False),
        (dict(path=["ftp://example.org/x"] * 5, offset=[0] * 5, size=[5] * 5), "file://, s3://, gs://, az:// or https://", True),
        (dict(path=["file:///x"] * 5, offset=[-9] * 5, size=[5] * 5), "file://, s3://, gs://, az:// or https://", True),
        (dict(path=["SOURCE"] * 5, offset=[1 << 40] * 5, size=[5] * 5), "beyond the end", False),
    ],
)
def test_hostile_rows(source, tmp_path, columns, words, checked):
    refs = tmp_path / "refs.parquet"
    run("convert", "-q", "--virtual", source, refs)
    write_rows(refs, **columns | {"path": [p.replace("SOURCE", f"file://{source}") for p in columns["path"]]})
    for check_all in (True, False) if checked else (True,):
        with pytest.raises(zarrbits.Error, match=words):
            zarr.open_group(zarrbits.open_references(refs, check=check_all), mode="r")["deflated"][...]
    with pytest.raises(zarrbits.Error, match=words):
        zarrbits.to_icechunk(refs, tmp_path / "repository")


@needs_parquet
@pytest.mark.parametrize(
    "grid",
    [
        {"shape": [40, 30], "chunks": [0, 30]},
        {"shape": [40, 30], "chunks": [8]},
        {"shape": [40, -30], "chunks": [8, 30]},
        {"shape": "x"},
        [],
    ],
)
def test_hostile_grids(source, tmp_path, grid):
    run("convert", "-q", "--virtual", source, tmp_path / "refs.parquet")
    document = json.loads((tmp_path / "refs.parquet/.zmetadata").read_text())
    document["metadata"]["deflated/.zarray"] = grid
    (tmp_path / "refs.parquet/.zmetadata").write_text(json.dumps(document))
    with pytest.raises(zarrbits.Error, match="no shape or no chunks"):
        zarrbits.open_references(tmp_path / "refs.parquet")


def test_what_is_no_json(tmp_path):
    (tmp_path / "refs.json").write_text("[" * 100000)
    with pytest.raises(zarrbits.Error, match="has no references"):
        zarrbits.open_references(tmp_path / "refs.json")


def in_bucket(refs, endpoint, source, etag):
    """The source of some of the references, in S3."""
    s3 = client(endpoint)
    shutil.copy(source, source.parent / "local.h5")
    s3.upload_file(str(source), BUCKET, "deep/in é.h5")
    head, url = s3.head_object(Bucket=BUCKET, Key="deep/in é.h5"), f"s3://{BUCKET}/deep/in é.h5"

    def change(document):
        was = document["zarrbits"]["sources"][0]
        document["zarrbits"]["sources"].append(
            {
                "url": url,
                "size": was["size"],
                **({"etag": head["ETag"]} if etag else {"modified": int(head["LastModified"].timestamp()) * 10**9}),
            }
        )
        for key, value in document["refs"].items():
            if isinstance(value, list) and value[0] == was["url"] and not key.startswith("contiguous"):
                value[0] = url

    edited(refs, change)
    return s3, {"key": KEY, "secret": SECRET, "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"}}


@pytest.mark.parametrize("etag", [True, False], ids=["etag", "time"])
def test_references_to_files_and_s3(server, source, tmp_path, etag):
    pytest.importorskip("s3fs")
    if not etag and server[0] == "versitygw":
        pytest.skip("Icechunk sees a later time of its objects than HEAD tells; what zarrbits makes has the ETag")
    refs = tmp_path / "refs.json"
    run("convert", "-q", "--virtual", source, refs)
    s3, options = in_bucket(refs, server[1], source, etag)
    check(zarr.open_group(zarrbits.open_references(refs, storage_options=options), mode="r"), source)
    icechunk = pytest.importorskip("icechunk")
    zarrbits.to_icechunk(refs, tmp_path / "repository", storage_options=options)
    check(group_of(tmp_path / "repository", icechunk.s3_credentials(access_key_id=KEY, secret_access_key=SECRET)), source)
    s3.put_object(Bucket=BUCKET, Key="deep/in é.h5", Body=b"x")
    with pytest.raises(zarrbits.Error, match="in é.h5.* has 1 bytes, and had"):
        zarrbits.open_references(refs, storage_options=options)
    s3.delete_object(Bucket=BUCKET, Key="deep/in é.h5")
    with pytest.raises(zarrbits.Error, match="in é.h5"):
        zarrbits.open_references(refs, storage_options=options)


def test_the_names_of_chunks():
    """Also those of Zarr v2, which stores of references in Parquet have, and hostile ones."""
    from zarrbits.icechunk_store import _array_of, _place_of

    def array(rank, **encoding):
        return _array_of("x", {"shape": [1] * rank, "chunk_key_encoding": encoding})

    arrays = {
        "g/c/5": array(2, name="default"),
        "v2": array(2, name="v2"),
        "dots": array(2, name="default", configuration={"separator": "."}),
        "one": array(0, name="default"),
        "one2": array(0, name="v2"),
        "v2/deep": array(1, name="v2", configuration={"separator": "/"}),
    }
    for key, place in {
        "g/c/5/c/0/12": (0, 12),
        "v2/3.4": (3, 4),
        "dots/c.3.4": (3, 4),
        "one/c": (),
        "one2/0": (),
        "v2/deep/7": (7,),
    }.items():
        assert _place_of(key, arrays)[1] == place, key
    for key in ("g/c/5/0/12", "g/c/5/c/0", "g/c/5/c/0/1/2", "v2/c/0/1", "v2/3.-4", "v2/3.x", "v2/٣.4", "x/c/0", "c/0", "v2", ""):
        with pytest.raises(zarrbits.Error, match="is not a chunk"):
            _place_of(key, arrays)
    with pytest.raises(zarrbits.Error, match="does not have"):
        array(1, name="fanout")
