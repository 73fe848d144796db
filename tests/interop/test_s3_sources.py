# SPDX-License-Identifier: BSL-1.0
"""Sources in S3, on the servers of s3_servers.py."""

import json

import h5py
import numpy as np
import pytest

from s3_servers import BUCKET, KEY, SECRET, client, convert, files

pytest_plugins = ["s3_servers"]  # its fixtures


@pytest.fixture(scope="module")
def remote_source(server, tmp_path_factory):
    """A file in the bucket, and what is made of it where it is a local one."""
    _, endpoint = server
    folder = tmp_path_factory.mktemp("remote")
    with h5py.File(folder / "in.h5", "w") as f:
        f.create_dataset("grp/d", data=np.arange(100, dtype="f4"), chunks=(10,))
        f.create_dataset("deflate", data=np.arange(1000), chunks=(100,), compression="gzip")
        f["contiguous"] = np.arange(1000)
        f["text"] = np.array(["a", "ü"], dtype=h5py.string_dtype())
        f["grp"].attrs["x"] = 1.5
    assert convert(folder / "in.h5", folder / "out.zarr").returncode == 0
    client(endpoint).upload_file(str(folder / "in.h5"), BUCKET, "folder é/in.h5")
    return f"s3://{BUCKET}/folder é/in.h5", files(folder / "out.zarr")


def test_a_source_in_s3(server, remote_source, tmp_path):
    _, endpoint = server
    path, expected = remote_source
    done = convert(path, tmp_path / "out.zarr", "--endpoint", endpoint)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out.zarr") == expected
    done = convert(path + ":/grp/d", tmp_path / "d.zarr", AWS_ENDPOINT_URL=endpoint)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "d.zarr/c/7").read_bytes() == np.arange(70, 80, dtype="f4").tobytes()


def test_a_source_in_s3_reads_no_other_file(server, tmp_path):
    _, endpoint = server
    raw = tmp_path / "raw"
    raw.write_bytes(b"SECRET--")
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["d"] = np.frombuffer(b"SECRET--", "u1")
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("external", (8,), "u1", external=[(str(raw), 0, 8)])
        for i, name in enumerate((str(tmp_path / "other.h5"), "other.h5", f"{endpoint}/{BUCKET}/other.h5")):
            layout = h5py.VirtualLayout((8,), "u1")
            layout[:] = h5py.VirtualSource(name, "d", (8,))
            f.create_virtual_dataset(f"virtual{i}", layout)
    for name in ("in.h5", "other.h5"):
        client(endpoint).upload_file(str(tmp_path / name), BUCKET, name)
    done = convert(f"s3://{BUCKET}/in.h5", tmp_path / "out.zarr", "--endpoint", endpoint)
    assert done.returncode == 3 and str(raw) in done.stderr and "--external" in done.stderr, done.stderr
    assert not any(b"SECRET" in data for data in files(tmp_path / "out.zarr").values())
    done = convert(
        f"s3://{BUCKET}/in.h5", tmp_path / "out.zarr", "--overwrite", "--endpoint", endpoint, "--external", str(tmp_path)
    )
    assert (
        (tmp_path / "out.zarr/external/c/0").read_bytes() == b"SECRET--" == (tmp_path / "out.zarr/virtual0/c/0").read_bytes()
    ), done.stderr
    assert done.returncode == 3 and "virtual2" in done.stderr


def test_a_source_in_s3_that_changed_is_not_gone_on_with(server, tmp_path):
    _, endpoint = server
    for value in (1, 2):
        with h5py.File(tmp_path / "in.h5", "w") as f:
            f.create_dataset("d", data=np.full(100, value), chunks=(10,))
        client(endpoint).upload_file(str(tmp_path / "in.h5"), BUCKET, "changes.h5")
        done = convert(
            f"s3://{BUCKET}/changes.h5", tmp_path / "out.zarr", "--endpoint", endpoint, "--partition", f"{value - 1}/2"
        )
        assert done.returncode == value - 1, done.stderr
    assert "before its source changed" in done.stderr


def test_a_source_in_s3_that_cannot_be_had_is_a_sentence(server, remote_source, tmp_path):
    name, endpoint = server
    remote, _ = remote_source
    wrong = [
        ({}, remote + "x", "no such object", 1),
        ({}, f"s3://{BUCKET}", "names a bucket", 2),
    ]
    if name != "moto":  # which checks no signatures
        wrong.append(({"AWS_SECRET_ACCESS_KEY": "wrong"}, remote, "403", 1))
        wrong.append(({"AWS_SESSION_TOKEN": "t"}, remote, "InvalidToken", 1))
    for variables, path, words, status in wrong:
        done = convert(path, tmp_path / "out.zarr", "--endpoint", endpoint, **variables)
        assert done.returncode == status and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert not (tmp_path / "out.zarr").exists()


def test_references_to_sources_in_s3(server, tmp_path):
    """As zarr-python reads them through fsspec and s3fs: the chunks come from the bucket."""
    pytest.importorskip("s3fs")
    import fsspec
    import zarr

    _, endpoint = server
    values = np.random.default_rng(2).integers(0, 1000, (8, 30), dtype="i4")
    names = []
    for i in range(2):
        with h5py.File(tmp_path / f"r{i}.h5", "w") as f:
            f["t"] = np.arange(4 * i, 4 * i + 4)
            f["t"].make_scale("t")
            d = f.create_dataset("rows", data=values[4 * i : 4 * i + 4], chunks=(2, 30), compression="gzip", maxshape=(None, 30))
            d.dims[0].attach_scale(f["t"])
        client(endpoint).upload_file(str(tmp_path / f"r{i}.h5"), BUCKET, f"refs/r{i}.h5")
        names.append(f"s3://{BUCKET}/refs/r{i}.h5")
    done = convert("--virtual", "--concat", "t", f"s3://{BUCKET}/refs/*.h5", tmp_path / "refs.json", "--endpoint", endpoint)
    assert done.returncode == 0, done.stderr
    listed = json.loads((tmp_path / "refs.json").read_text())["refs"]
    assert [listed[f"rows/{i}.0"][0] for i in range(4)] == [names[0], names[0], names[1], names[1]]
    options = {
        "key": KEY,
        "secret": SECRET,
        "endpoint_url": endpoint,
        "client_kwargs": {"region_name": "us-east-1"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
        "asynchronous": True,
    }
    files = fsspec.filesystem(
        "reference", fo=str(tmp_path / "refs.json"), remote_protocol="s3", remote_options=options, asynchronous=True
    )
    group = zarr.open_group(zarr.storage.FsspecStore(files, read_only=True), mode="r")
    assert np.array_equal(group["rows"][:], values) and np.array_equal(group["t"][:], np.arange(8))
