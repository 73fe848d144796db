# SPDX-License-Identifier: BSL-1.0
"""netCDF-3 files on servers of HTTPS, S3, Google and Azure: what local files make, with few requests, and a server that is
hostile or whose file changes. netCDF-C (ncgen) writes the files."""

import json
import pathlib
import sys

import h5py
import numpy as np
import pytest

import harness
from harness import contents
from netcdf3_bytes import INT, Header
from netcdf3_files import ncgen, netcdf4_values
from store import Store

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "convert"))
from cloud_servers import KINDS, Cloud  # noqa: E402
from s3_conversion import environment  # noqa: E402

MIB = 1 << 20
CDL = """netcdf t { dimensions: time = UNLIMITED ; lat = 3 ; lon = 4 ;
variables: double time(time) ; time:units = "days since 2000-01-01" ; float temp(time, lat, lon) ; temp:_FillValue = -999.f ;
  short fixed(lat) ; fixed:scale_factor = 0.5 ; :title = "hello" ;
data: time = 1, 2 ; temp = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ; fixed = 1, 2, 3 ; }"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=KINDS)
def cloud(request):
    with Cloud(request.param) as c:
        yield c


def z(cloud, *arguments, status=0):
    return harness.run(*arguments, *cloud.options, status=status, env=environment(**cloud.variables))


def refused(cloud, *arguments, status=1):
    lines = z(cloud, *arguments, status=status).stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("zarrbits: "), lines
    return lines[0]


@pytest.fixture
def small(tmp_path):
    return ncgen(tmp_path / "in.nc", CDL, "classic")


def interleaved(path, records):
    """Rows of 128 KiB of four variables: those of one are far apart. Their values are all different."""
    h = Header(2)
    t, x = h.dimension("t", 0), h.dimension("x", 1 << 15)
    values = np.arange(4 * records << 15, dtype="i4").reshape(4, records, 1 << 15)
    for name, v in zip("abcd", values):
        h.variable(name, INT, [t, x], v)
    h.records = records
    path.write_bytes(h.bytes())
    return path


def downloaded(cloud):
    """The ranges of the file that were asked for, without those of one byte that ask for its state."""
    ranges = [r.headers["Range"].removeprefix("bytes=").split("-") for r in cloud.requests if "Range" in r.headers]
    return [(int(first), int(last) + 1) for first, last in ranges if first != last]


@pytest.mark.parametrize("options", [[], ["--include", "/temp"], ["--zarr-format", "2"], ["--profile", "native"]], ids=str)
def test_a_copy_is_that_of_a_local_file(cloud, small, options):
    url = cloud.put("in.nc", small.read_bytes())
    z(cloud, "convert", "-q", url, "remote.zarr", *options)
    harness.convert("-q", small, "local.zarr", *options)
    assert contents("remote.zarr") == contents("local.zarr")


@pytest.mark.parametrize("command", [["inspect"], ["digest"], ["check"], ["plan", "--json"]], ids=str)
def test_what_is_said_of_it_is_what_is_said_of_a_local_file(cloud, small, command):
    url = cloud.put("in.nc", small.read_bytes())
    remote, local = z(cloud, *command, url), harness.run(*command, small)
    assert (remote.stderr, remote.stdout.replace(url, str(small))) == (local.stderr, local.stdout)


def test_verify_has_a_parser_of_its_own(cloud, small):
    url = cloud.put("in.nc", small.read_bytes())
    harness.convert("-q", small, "out.zarr")
    assert "equal" in z(cloud, "verify", url, "out.zarr").stdout
    chunk = pathlib.Path("out.zarr/fixed/c/0")
    chunk.write_bytes(bytes([chunk.read_bytes()[0] ^ 1]) + chunk.read_bytes()[1:])
    assert "/fixed" in z(cloud, "verify", url, "out.zarr", status=1).stdout


def test_an_export_is_that_of_a_local_file(cloud, small):
    url = cloud.put("in.cdf", small.read_bytes())
    z(cloud, "export", "-q", url, "out.h5")
    harness.run("export", "-q", small, "local.h5")
    harness.run("verify", "out.h5", "local.h5")


def test_convert_to_an_hdf5_file_is_that_of_a_local_file(cloud, small):
    """convert asks what the source is, and hands it to export."""
    url = cloud.put("in.nc", small.read_bytes())
    z(cloud, "convert", "-q", url, "out.h5")
    assert len(cloud.requests) <= 4
    harness.convert("-q", small, "local.h5")
    harness.run("verify", "out.h5", "local.h5")
    netcdf4_file = netcdf4_values(small, pathlib.Path("in4.nc"))
    with h5py.File("out.h5") as f:
        assert all(np.array_equal(f[name][()], values) for name, values in netcdf4_file.items())


def test_what_only_repack_takes_is_refused_as_for_a_local_file(cloud, small):
    url = cloud.put("in.nc", small.read_bytes())
    remote = refused(cloud, "convert", "-q", url, "out.h5", "--layout", "cmip7", status=2)
    local = harness.run("convert", "-q", small, "out.h5", "--layout", "cmip7", status=2).stderr.splitlines()
    assert [remote.replace(url, str(small))] == local


def test_an_hdf5_file_is_repacked(cloud):
    with h5py.File("in.h5", "w") as f:
        f.create_dataset("x", data=np.arange(1000), chunks=(100,))
    url = cloud.put("in.h5", pathlib.Path("in.h5").read_bytes())
    z(cloud, "convert", "-q", url, "out.h5", "--chunk", "/x=50")
    with h5py.File("out.h5") as f:
        assert f["x"].chunks == (50,) and np.array_equal(f["x"][()], np.arange(1000))


def test_a_file_that_is_absent_does_not_become_an_hdf5_file(cloud):
    assert "no such" in refused(cloud, "convert", "-q", cloud.name("none.nc"), "out.h5")


def test_one_variable(cloud, small):
    url = cloud.put("in.nc", small.read_bytes())
    z(cloud, "convert", "-q", f"{url}:/fixed", "out.zarr")
    assert list(np.frombuffer(pathlib.Path("out.zarr/c/0").read_bytes(), ">i2")) == [1, 2, 3]
    assert "equal" in z(cloud, "verify", f"{url}:/fixed", "out.zarr").stdout


def test_references_lead_to_the_server(cloud):
    source = interleaved(pathlib.Path("in.nc"), 20)
    url = cloud.put("in.nc", source.read_bytes())
    z(cloud, "convert", "-q", "--virtual", url, "refs.json")
    assert sum(end - begin for begin, end in downloaded(cloud)) <= MIB  # the header
    refs = json.loads(pathlib.Path("refs.json").read_text())["refs"]
    values = netcdf4_values(source, pathlib.Path("in4.nc"))
    for name in "abcd":
        for record in (0, 7, 19):
            file, offset, size = refs[f"{name}/{record}.0"]
            assert file == url
            row = np.frombuffer(source.read_bytes()[offset : offset + size], ">i4")
            assert np.array_equal(row, values[name][record])
    assert "equal" in z(cloud, "verify", url, "refs.json").stdout


def test_few_requests(cloud, small):
    """The first page, which also says what the file is, and a last look at it."""
    url = cloud.put("in.nc", small.read_bytes())
    z(cloud, "convert", "-q", url, "out.zarr")
    assert len(cloud.requests) == 2
    cloud.requests.clear()
    z(cloud, "plan", url)
    assert len(cloud.requests) == 1


def test_no_byte_comes_twice(cloud):
    """Of a file that is larger than the cache: 48 MiB, of rows that are far apart."""
    source = interleaved(pathlib.Path("in.nc"), 96)
    url = cloud.put("in.nc", source.read_bytes())
    z(cloud, "convert", "-q", "--memory", "64MiB", url, "out.zarr")
    total = sum(end - begin for begin, end in downloaded(cloud))
    assert total < 1.4 * source.stat().st_size
    cloud.requests.clear()
    z(cloud, "convert", "-q", "--memory", "64MiB", "--include", "/b", url, "b.zarr")
    assert sum(end - begin for begin, end in downloaded(cloud)) < source.stat().st_size / 4 + 2 * MIB
    assert contents("b.zarr/b") == contents("out.zarr/b")
    cloud.requests.clear()
    z(cloud, "verify", "--memory", "64MiB", url, "out.zarr")
    assert sum(end - begin for begin, end in downloaded(cloud)) < 1.4 * source.stat().st_size


def test_a_small_file_comes_in_one_request(cloud):
    """Although its rows are far apart."""
    source = interleaved(pathlib.Path("in.nc"), 20)
    url = cloud.put("in.nc", source.read_bytes())
    z(cloud, "convert", "-q", url, "out.zarr")
    total = sum(end - begin for begin, end in downloaded(cloud))
    assert len(downloaded(cloud)) <= 3 and total == source.stat().st_size
    assert "equal" in harness.run("verify", source, "out.zarr").stdout


@pytest.mark.parametrize("after", [2, 5])
def test_a_file_that_changes_is_noticed(after):
    """In the middle, by a condition of each request; with the same length."""
    for kind in KINDS:
        body, seen = interleaved(pathlib.Path("in.nc"), 96).read_bytes(), []

        def change(r, go):
            seen.append(r)
            if len(seen) == after:
                c.put("in.nc", body[:-1] + b"\x7e")
            return go()

        with Cloud(kind, change) as c:
            url = c.put("in.nc", body)
            line = refused(c, "convert", "-q", "--memory", "64MiB", "--threads", "1", url, f"{kind}.zarr")
            assert "changed" in line and not pathlib.Path(f"{kind}.zarr/zarr.json").exists(), line


def test_a_file_that_changes_at_the_end_is_noticed(small):
    for kind in KINDS:
        body, seen = small.read_bytes(), []

        def change(r, go):
            seen.append(r)
            if len(seen) == 2:
                c.put("in.nc", body[:-1] + b"\x7e")
            return go()

        with Cloud(kind, change) as c:
            line = refused(c, "convert", "-q", c.put("in.nc", body), f"{kind}.zarr")
            assert "changed" in line and not pathlib.Path(f"{kind}.zarr/zarr.json").exists(), line


def test_partitions_of_a_file_that_changed(cloud, small):
    url = cloud.put("in.nc", small.read_bytes())
    z(cloud, "convert", "-q", url, "out.zarr", "--partition", "0/2")
    cloud.put("in.nc", small.read_bytes()[:-1] + b"\x7e")
    assert "changed" in refused(cloud, "convert", "-q", url, "out.zarr", "--partition", "1/2")


def test_a_server_without_a_validator_is_warned_of(small):
    def none(r, go):
        answer = go()
        for name in ("ETag", "Last-Modified"):
            answer.headers.pop(name, None)
        return answer

    with Cloud("https", none) as c:
        done = z(c, "convert", "-q", c.put("in.nc", small.read_bytes()), "out.zarr")
        assert done.stderr.count("goes unnoticed") == 1


@pytest.mark.parametrize("version", [1, 2, 5])
def test_a_header_that_never_ends(cloud, version):
    """The server says that the file has 2^60 bytes, and sends dimensions for as long as it is asked."""
    size = 1 << 60
    many = (1 << 31) - 2
    head = b"CDF" + bytes([version]) + bytes(8 if version == 5 else 4) + b"\0\0\0\x0a"
    head += many.to_bytes(8 if version == 5 else 4, "big")
    name = b"\0\0\0\x08" if version < 5 else b"\0\0\0\0\0\0\0\x08"
    one = name + b"abcdefgh" + (b"\0\0\0\1" if version < 5 else b"\0\0\0\0\0\0\0\1")

    def endless(r, go):
        if "Range" not in r.headers:
            return go()
        first, last = map(int, r.headers["Range"].removeprefix("bytes=").split("-"))
        body = (head + one * ((last + 1) // len(one) + 1))[first : last + 1]
        headers = {"Content-Range": f"bytes {first}-{last}/{size}", "ETag": '"x"'}
        return cloud.answer(206, body, headers)

    cloud.server.fault = endless
    url = cloud.put("in.nc", b"")
    line = refused(cloud, "convert", "-q", "--memory", "64MiB", url, "out.zarr")
    assert "memory" in line or "header" in line, line
    assert sum(end - begin for begin, end in downloaded(cloud)) < 64 * MIB
    harness.run("verify", url, "in.zarr", *cloud.options, status=1, env=environment(**cloud.variables))


def test_a_variable_of_2_to_the_59_bytes_needs_no_memory_and_no_time(cloud):
    h = Header(5)
    x = h.dimension("x", 1 << 59)
    h.variable("v", 1, [x])
    body = h.bytes()

    def sparse(r, go):
        if "Range" not in r.headers:
            return cloud.answer(200, b"", {"Content-Length": str(1 << 60), "ETag": '"x"'})
        first, last = map(int, r.headers["Range"].removeprefix("bytes=").split("-"))
        part = body[first : last + 1]
        headers = {"Content-Range": f"bytes {first}-{last}/{1 << 60}", "ETag": '"x"'}
        return cloud.answer(206, part + bytes(last + 1 - first - len(part)), headers)

    cloud.server.fault = sparse
    url = cloud.put("in.nc", b"")
    done = z(cloud, "convert", "-q", "--memory", "64MiB", url, "out.zarr", status=3)  # the variable is skipped
    assert "increase --memory" in done.stderr


def test_joined_files_are_those_of_a_disk(cloud, tmp_path):
    (tmp_path / "local").mkdir()
    names, paths = [], []
    for i in range(2):
        cdl = CDL.replace("data: time = 1, 2", f"data: time = {2 * i}, {2 * i + 1}")
        paths.append(ncgen(tmp_path / "local" / f"{i}.nc", cdl, "64-bit offset"))
        names.append(cloud.put(f"{i}.nc", paths[-1].read_bytes()))
    z(cloud, "convert", "-q", "--concat", "time", *names, "remote.zarr")
    harness.convert("-q", "--concat", "time", *paths, "local.zarr")
    z(cloud, "verify", "-q", "--concat", "time", *names, "remote.zarr")
    arrays = ("time", "temp", "fixed")
    ours, theirs = ({n: Store(tmp_path / s).read(n) for n in arrays} for s in ("remote.zarr", "local.zarr"))
    for name in arrays:
        np.testing.assert_array_equal(ours[name], theirs[name])
    np.testing.assert_array_equal(ours["time"], np.arange(4))
    harness.convert("-q", "--concat", "time", paths[0], "grown.zarr")
    z(cloud, "convert", "-q", "--append", "time", names[1], "grown.zarr")
    np.testing.assert_array_equal(Store(tmp_path / "grown.zarr").read("temp"), ours["temp"])
