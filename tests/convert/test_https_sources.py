# SPDX-License-Identifier: BSL-1.0
"""Sources at https:// and http://. What is made of them is what is made of the same files on a disk, with few requests.
test_https_faults.py has bad servers, test_https_secrets.py headers, logins, certificates and redirects."""

import json
import os
import pathlib
import shutil
import time

import h5py
import numpy as np
import pytest

from harness import contents, same
from https_conversion import (
    KINDS,
    NATIVE,
    PAGE,
    day,
    environment,
    in_pages,
    large,
    make,
    make_days,
    make_tiles,
    refused,
    same_but_for_sources,
    scattered,
    sources,
    z,
)
from kills import begin, has_units, kill
from promises import promise
from store import Store

pytest_plugins = ["https_conversion"]  # its fixtures


@pytest.fixture
def days():
    return make_days()


def upload(server, *names):
    return [server.put("data/" + name, pathlib.Path(name).read_bytes()) for name in names]


def join(*names, out="out.zarr", options=NATIVE, status=0):
    return z("convert", "-q", "--concat", "t", *names, out, *options, status=status)


def etag(note):
    """As a server sends it."""
    return '"' + note["etag"].strip('"') + '"'


# One source


@pytest.mark.parametrize("kind", KINDS)
def test_digest_of_a_file_on_a_server_is_that_of_a_local_one(server, kind):
    url = server.put("in.h5", make("in.h5", kind))
    remote, local = (json.loads(z("digest", "--json", "-q", name, status=None).stdout) for name in (url, "in.h5"))
    assert remote["arrays"] == local["arrays"] != [] and remote["digest"] == local["digest"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_local_file_makes(server, kind):
    url = server.put("in.h5", make("in.h5", kind))
    for n, options in enumerate(([], NATIVE, ["--compress", "gzip:1", "--checksum", "crc32c"])):
        status = z("convert", "-q", "in.h5", f"local{n}.zarr", *options, status=(0, 3)).returncode
        z("convert", "-q", url, f"out{n}.zarr", *options, status=status)
        same(f"local{n}.zarr", f"out{n}.zarr")
    z("verify", url, "out0.zarr", status=z("verify", "in.h5", "local0.zarr", status=(0, 3)).returncode)


@pytest.mark.parametrize(
    "options",
    [["--shard", "1M"], ["--codec", "packbits", "--bits", "auto"], ["--chunk", "7x9"], ["--threads", "1"], ["--memory", "16M"]],
    ids=" ".join,
)
def test_with_options(server, options):
    url = server.put("in.h5", make("in.h5"))
    z("convert", "-q", "in.h5", "local.zarr", *options)
    z("convert", "-q", url, "out.zarr", *options)
    if "--shard" in options:  # a local file's large chunks have the place that lets file systems share their blocks
        z("verify", "in.h5", "out.zarr")
    else:
        same("local.zarr", "out.zarr")
    z("convert", "-q", url, "out.zip", *options)
    z("verify", url, "out.zip")


def test_an_object_of_it(server):
    url = server.put("a b/in:1.h5", make("in.h5"))
    z("convert", "-q", "in.h5:/a", "local.zarr")
    z("convert", "-q", url + ":/a", "out.zarr")
    same("local.zarr", "out.zarr")
    z("verify", url + ":/a", "out.zarr")
    assert "/none" in refused("convert", "-q", url + ":/none", "none.zarr")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["plan", "inspect", "suggest", "doctor"])
def test_what_is_said_of_it_is_what_is_said_of_a_local_file(server, kind, command):
    url = server.put("in.h5", make("in.h5", kind))
    local = z(command, "--json", "in.h5", status=None)
    remote = z(command, "--json", url, status=local.returncode)

    def plain(text):
        said = json.loads(text.replace(url, "in.h5").replace(os.path.realpath("in.h5"), "in.h5"))
        return {k: v for k, v in said.items() if k not in ("modified", "seconds", "started", "etag")}

    said, expected = plain(remote.stdout), plain(local.stdout)
    if command == "plan":  # values of a server are not read for an estimate, nor to count the bytes of strings
        assert "estimated_bytes" not in said
        for there, here in zip(said["datasets"], expected["datasets"]):
            there.pop("estimated_bytes", None), here.pop("estimated_bytes", None)
            if kind == "texts":
                assert there.pop("store_bytes") >= here.pop("store_bytes")
        expected.pop("estimated_bytes", None)
    assert said == expected
    assert z(command, url, status=local.returncode).stdout


def test_verify_sees_what_differs(server):
    url = server.put("in.h5", make("in.h5"))
    z("convert", "-q", url, "out.zarr")
    chunk = pathlib.Path("out.zarr/noise/c/3/0")
    body = bytearray(chunk.read_bytes())
    body[100] ^= 1
    chunk.write_bytes(body)
    assert "noise" in z("verify", url, "out.zarr", status=1).stdout
    with h5py.File("in.h5", "r+") as f:
        f["a/y"][7] = -1
    z("convert", "-q", "in.h5", "other.zarr")
    assert "a/y" in z("verify", url, "other.zarr", status=1).stdout


def test_side_by_side(server):
    url = server.put("in.h5", make("in.h5"))
    z("convert", "-q", url, "out.zarr")
    assert "noise" in z("inspect", url, "out.zarr").stdout


def test_other_files_are_not_read(server):
    """Their names are those of files that are beside the source on the server, and in the current folder."""
    with h5py.File("other.h5", "w") as f:
        f["d"] = np.full(100, 0x5A, "u1")
    pathlib.Path("raw").write_bytes(b"Z" * 100)
    with h5py.File("in.h5", "w", libver="latest") as f:
        f["good"] = np.arange(5)
        f["link"] = h5py.ExternalLink("other.h5", "/d")
        f.create_dataset("external", (100,), "u1", external=[("raw", 0, 100)])
        layout = h5py.VirtualLayout((100,), "u1")
        layout[:] = h5py.VirtualSource("other.h5", "d", (100,))
        f.create_virtual_dataset("virtual", layout, fillvalue=1)
    url = upload(server, "in.h5", "other.h5", "raw")[0]
    z("convert", "-q", "in.h5", "local.zarr")  # reads them
    assert b"Z" * 100 in b"".join(contents("local.zarr").values())
    report = json.loads(z("convert", "-q", "--json", url, "out.zarr", status=3).stdout)
    assert b"Z" * 100 not in b"".join(contents("out.zarr").values())
    assert not report.get("other_files") and {r["file"].rpartition("/")[2] for r in report["refused_files"]} >= {"raw"}
    assert {r.name for r in server.requests} == {"data/in.h5"}
    z("verify", url, "out.zarr", status=(1, 3))
    z("suggest", "--all", url)
    assert {r.name for r in server.requests} == {"data/in.h5"}


# Requests


def twice(requests, name):
    """How many bytes of a file came more than once."""
    ranges = sorted((r.range[0], r.range[0] + r.sent) for r in requests if r.name == name and r.range and r.sent)
    total, union, end = 0, 0, 0
    for first, last in ranges:
        total += last - first
        union += max(0, last - max(first, end))
        end = max(end, last)
    return total - union


def test_a_plan_of_a_file_in_pages_takes_four_requests(server):
    url = server.put("in.h5", in_pages("in.h5"))
    z("plan", url)
    asked = [(r.method, r.range, r.sent) for r in server.requests]
    assert len(asked) <= 4, asked
    assert server.sent <= 3 * PAGE, asked


@pytest.mark.parametrize("make_it", [in_pages, scattered], ids=["in pages", "scattered"])
@pytest.mark.parametrize("command", ["plan", "inspect", "convert", "virtual"])
def test_no_byte_is_read_twice(server, make_it, command):
    body = make_it("in.h5")
    url = server.put("in.h5", body)
    words = {"convert": ["convert", "-q", url, "out.zarr"], "virtual": ["convert", "-q", "--virtual", url, "out.json"]}
    z(*words.get(command, [command, url]))
    asked = [(r.method, r.range, r.sent) for r in server.requests]
    assert server.sent <= len(body) + PAGE, (len(body), asked)
    assert twice(server.requests, "in.h5") <= 2 * PAGE, asked
    assert len(asked) <= len(body) // PAGE + 4 + (command == "convert") * 8, asked


def test_small_chunks_share_requests(server):
    body = make("in.h5", "many small chunks")
    url = server.put("in.h5", body)
    z("convert", "-q", url, "out.zarr", *NATIVE)
    assert len(contents("out.zarr")) > 800
    assert len(server.requests) <= 12, len(server.requests)
    assert server.sent <= len(body) + PAGE


def test_a_reference_needs_no_chunk(server):
    url = server.put("in.h5", large("in.h5"))
    z("convert", "-q", "--virtual", url, "out.json")
    assert server.sent <= 3 * PAGE


@pytest.mark.parametrize("options, most", [([], 16), (["--connections", 1], 1), (["--connections", 4], 4)], ids=str)
def test_connections(server, options, most):
    """So many requests at a time, and more than one where that is allowed."""
    server.delay = 0.05
    z("convert", "-q", server.put("in.h5", large("in.h5", chunks=40)), "out.zarr", *NATIVE, *options)
    assert (1 if most == 1 else 2) <= server.most_at_once <= most
    assert server.connections <= most + 4, "connections are not kept open"


def test_compression_is_not_asked_for(server):
    z("convert", "-q", server.put("in.h5", make("in.h5")), "out.zarr")
    assert {r.headers.get("Accept-Encoding", "identity") for r in server.requests} == {"identity"}


# Servers of all kinds


@pytest.mark.parametrize(
    "how",
    [{}, {"etag": "", "modified": None}, {"etag": ""}, {"modified": None}, {"etag": 'W/"weak"'}, {"etag": "unquoted"}],
    ids=str,
)
def test_whatever_a_server_says_of_a_file(server, how):
    body = large("in.h5", chunks=4)
    z("convert", "-q", "in.h5", "local.zarr", *NATIVE)
    url = server.put("in.h5", body, **how)
    z("convert", "-q", url, "out.zarr", *NATIVE)
    same("local.zarr", "out.zarr")
    z("verify", url, "out.zarr")
    strong = how.get("etag", server.files["in.h5"].etag)
    conditions = {r.headers.get("If-Match") or r.headers.get("If-Range") for r in server.requests} - {None}
    assert conditions <= {strong, server.files["in.h5"].headers().get("Last-Modified")}
    if not how:
        assert strong in conditions


@pytest.mark.parametrize("name", ["in.h5", "a b/é%2f+&='().h5", "in", "x;y=1/@v/in.h5"])
def test_names(server, name):
    url = server.put(name, make("in.h5", "types"))
    z("convert", "-q", "in.h5", "local.zarr", status=(0, 3))
    z("convert", "-q", url, "out.zarr", status=(0, 3))
    same("local.zarr", "out.zarr")


def test_a_name_that_is_not_encoded(server):
    server.put("a é/in.h5", make("in.h5"))
    z("convert", "-q", f"{server.url}/a é/in.h5", "out.zarr")
    z("verify", f"{server.url}/a%20%C3%A9/in.h5", "out.zarr")


# Many sources


@pytest.mark.parametrize("options", [NATIVE, ["--compress", "gzip:1"], [*NATIVE, "--shard", "16,3,10"]], ids=" ".join)
def test_joined_is_what_local_files_make(server, days, options):
    remote = upload(server, *days)
    join(*days, out="local.zarr", options=options)
    join(*remote, options=options)
    same_but_for_sources("local.zarr", "out.zarr")
    z("verify", "--concat", "t", *remote, "out.zarr")
    assert [etag(n) for n in sources()] == [server.files["data/" + n].etag for n in days]
    z("verify", "--concat", "t", *remote, remote[0], "out.zarr", status=1)


def test_braces_lists_and_mixed(server, days):
    remote = upload(server, *days)
    pathlib.Path("list.txt").write_text("\n".join([remote[0], days[1], remote[2]]))
    join(*days, out="local.zarr")
    for names in (
        [server.url + "/data/d{8,9,10}.h5"],
        [server.url + "/data/{d8,d9}.h5", remote[2]],
        ["@list.txt"],
        [days[0], *remote[1:]],
    ):
        join(*names, options=[*NATIVE, "--overwrite"])
        same_but_for_sources("local.zarr", "out.zarr")
        z("verify", "--concat", "t", *names, "out.zarr")


def test_plain_http_has_no_listing(server, days):
    upload(server, *days)
    said = refused("convert", "-q", "--concat", "t", server.url + "/data/*.h5", "out.zarr", *NATIVE, status=(1, 2))
    assert "list" in said and "@" in said, said


def test_order_by_value_and_a_plan(server, days):
    remote = upload(server, *days)
    join(*days, out="local.zarr")
    join(*reversed(remote), options=[*NATIVE, "--order", "value"])
    same_but_for_sources("local.zarr", "out.zarr")
    plan = json.loads(z("plan", "--json", "--concat", "t", *remote).stdout)
    assert [(s["file"], s["first"], s["count"]) for s in plan["sources"]] == [
        (n, f, c) for n, f, c in zip(remote, (0, 8, 18), (8, 10, 6))
    ]


@pytest.mark.parametrize("options", [[], [*NATIVE, "--grid", "rectilinear"], [*NATIVE, "--shard", "4,4"]], ids=" ".join)
def test_parts_of_several_dimensions_are_what_local_files_make(server, options):
    names, values = make_tiles()
    remote = upload(server, *names)
    how = ["--concat", "y,x", *options]
    z("convert", "-q", *how, *names, "local.zarr")
    for i, sources_of in enumerate((remote, [names[0], *remote[1:]], [server.url + "/data/p{0,1,2,3}.h5"])):
        z("convert", "-q", *how, *sources_of, f"out{i}.zarr")
        same("local.zarr", f"out{i}.zarr")
        z("verify", "--concat", "y,x", *sources_of, f"out{i}.zarr")
    np.testing.assert_array_equal(Store(os.path.abspath("out0.zarr")).read("v"), values)
    with h5py.File("p3.h5", "r+") as f:
        f["v"][3, 3] += 1
    upload(server, "p3.h5")
    assert "/v" in z("verify", "--concat", "y,x", *remote, "out0.zarr", status=1).stdout
    plan, local = (json.loads(z("plan", "--json", *how, *n).stdout) for n in (remote, names))
    assert [d["path"] for d in plan["datasets"]] == [d["path"] for d in local["datasets"]]
    assert [d.get("grids") for d in plan["datasets"]] == [d.get("grids") for d in local["datasets"]]


def test_references_to_parts_of_several_dimensions(server):
    names, values = make_tiles()
    remote = upload(server, *names)
    z("convert", "-q", "--concat", "y,x", *remote, "all.nc")
    z("convert", "-q", "--concat", "y,x", *names, "local.nc")
    assert pathlib.Path("all.nc").read_bytes() == pathlib.Path("local.nc").read_bytes()
    z("verify", "--concat", "y,x", *remote, "all.nc")
    z("convert", "-q", "--virtual", "--concat", "y,x", *remote, "refs.json", "--zarr-format", "3", "--grid", "rectilinear")
    refs = json.loads(pathlib.Path("refs.json").read_text())["refs"]
    chunks = [v for k, v in refs.items() if k.startswith("v/c/") and isinstance(v, list) and v[0] in remote]
    assert len(chunks) == 5 * 4 and {v[0] for v in chunks} == set(remote)
    z("verify", "--concat", "y,x", *remote, "refs.json")
    place = refs["v/c/4/3"]  # the second row of chunks of p3
    body = server.files["data/p3.h5"].body
    with h5py.File("p3.h5") as f:
        assert body[place[1] : place[1] + place[2]] == f["v"].id.read_direct_chunk((2, 0))[1]
    z("convert", "-q", "--virtual", "--cf-aggregation", "--concat", "y,x", *remote, "cfa.nc")
    with h5py.File("cfa.nc") as f:
        assert [u.decode() for u in f["fragment_uris"][...].ravel()] == remote


def test_faults_of_parts_of_several_dimensions(server):
    names, _ = make_tiles()
    remote = upload(server, *names)
    none = server.url + "/data/none.h5"
    assert none in refused("convert", "-q", "--concat", "y,x", *remote, none, "out.zarr")
    told = refused("convert", "-q", "--virtual", "--concat", "y,x", *remote, "all.nc", status=2)
    assert "virtual dataset names local files" in told
    z("convert", "-q", "--partition", "0/2", "--concat", "y,x", *remote, "out.zarr")
    with h5py.File("p2.h5", "r+") as f:
        f["v"][0] = 5
    upload(server, "p2.h5")
    z("convert", "-q", "--partition", "1/2", "--concat", "y,x", *remote, "out.zarr", status=1)
    pathlib.Path("places.csv").write_text("file,y,x\n" + "".join(f"{n},{i // 2},{i % 2}\n" for i, n in enumerate(remote)))
    z("convert", "-q", "--concat", "y,x", "--places", "places.csv", *remote, "placed.zarr")
    z("verify", "-q", "--concat", "y,x", *remote, "placed.zarr")


def test_a_local_file_requests_nothing_by_itself(server):
    """Its virtual dataset names a file on a server, which the command does not."""
    url = upload(server, make_tiles()[0][0])[0]
    layout = h5py.VirtualLayout((6, 5), "f8")
    layout[...] = h5py.VirtualSource(url, "v", (6, 5))
    with h5py.File("hostile.h5", "w") as f:
        f.create_virtual_dataset("all", layout, fillvalue=-1)
    before = len(server.requests)
    z("convert", "-q", "hostile.h5", "out.zarr", status=(0, 3))
    z("convert", "-q", "--external", "all", "hostile.h5", "out2.zarr", status=(0, 3))
    assert len(server.requests) == before
    z("convert", "-q", "--external", url, "hostile.h5", "out3.zarr")
    assert (Store(os.path.abspath("out3.zarr")).read("all") >= 0).all() and len(server.requests) > before


def test_a_file_that_is_not_there(server, days):
    remote = upload(server, *days)
    none = server.url + "/data/none.h5"
    assert none in refused("convert", "-q", "--concat", "t", remote[0], none, "out.zarr", *NATIVE)
    done = join(remote[0], none, remote[1], options=[*NATIVE, "--keep-going"], status=3)
    assert none in done.stderr and [n["file"] for n in sources()] == days[:2]


def test_append(server, days):
    remote = upload(server, *days)
    join(days[0], out="local.zarr")
    z("convert", "-q", "--append", "t", *days, "local.zarr")
    join(remote[0])
    done = z("convert", "--json", "--append", "t", remote[0], days[1], remote[2], "out.zarr")
    assert [s["notes"] for s in json.loads(done.stdout)["sources"]] == [["it is already in the store"], [], []]
    done = z("convert", "--json", "--append", "t", *remote[::2], "out.zarr")
    assert [s["notes"] for s in json.loads(done.stdout)["sources"]] == [["it is already in the store"]] * 2
    z("verify", "--concat", "t", *remote, "out.zarr")
    z("verify", "--concat", "t", remote[2], "out.zarr", "--part")
    same_but_for_sources("local.zarr", "out.zarr")
    before = contents("out.zarr")
    with h5py.File(days[0], "r+") as f:
        f.attrs["more"] = "x" * 100
    upload(server, days[0])
    done = z("convert", "-q", "--append", "t", remote[0], "out.zarr", status=1)
    assert "a different size, time or content" in done.stderr and contents("out.zarr") == before


def test_sources_are_asked_again_at_the_end(server, days):
    """All of them, after the last values were read of any."""
    remote = upload(server, *days)
    join(*remote)
    last = max(i for i, r in enumerate(server.requests) if r.sent > 4096)
    assert {r.name for r in server.requests[last + 1 :]} >= {"data/" + n for n in days}


# References


def references(*arguments):
    z("convert", "-q", "--virtual", "--zarr-format", "3", *arguments, "refs.json", "--overwrite")
    made = json.loads(pathlib.Path("refs.json").read_text())
    return {k: v for k, v in made["refs"].items() if isinstance(v, list)}, made["zarrbits"]["sources"]


def test_references_to_one_source(server):
    body = make("in.h5")
    url = server.put("in.h5", body)
    z("convert", "-q", *NATIVE, "in.h5", "local.zarr")
    refs, listed = references(url)
    assert [(s["url"], s["size"], etag(s)) for s in listed] == [(url, len(body), server.files["in.h5"].etag)]
    there = {key: (offset, size) for key, (at, offset, size) in refs.items() if at == url}
    assert set(there) >= {f"noise/c/{i}/0" for i in range(8)} and "masked/c/1/0" not in there
    for key, (offset, size) in there.items():
        assert body[offset : offset + size] == pathlib.Path("local.zarr", key).read_bytes(), key
    z("verify", url, "refs.json")
    z("convert", "-q", "--virtual", url, "refs.parquet")
    z("verify", url, "refs.parquet")
    assert "noise" in z("inspect", "refs.json").stdout
    server.files["in.h5"].etag = '"another"'
    assert "has changed since the references were made" in z("verify", url, "refs.json", status=1).stdout


def even_days():
    """Each begins with a chunk, so that all chunks stay where they are."""
    return [day(f"e{i}.h5", 8 * n, 8) for n, i in enumerate((8, 9, 10))]


def test_references_to_many_sources(server):
    days = even_days()
    remote = upload(server, *days)
    join(*days, out="local.zarr")
    refs, listed = references("--concat", "t", *remote)
    assert [s["url"] for s in listed] == remote
    for key, (url, offset, size) in refs.items():
        if url in remote:
            body = server.files[url.removeprefix(server.url + "/")].body
            assert body[offset : offset + size] == pathlib.Path("local.zarr", key).read_bytes(), key
    assert {url for url, _, _ in refs.values()} >= set(remote)
    z("verify", "--concat", "t", *remote, "refs.json")
    refs, listed = references("--concat", "t", days[0], *remote[1:])  # beside a local one
    assert [s["url"] for s in listed] == [f"file://{os.path.realpath(days[0])}", *remote[1:]]
    z("verify", "--concat", "t", days[0], *remote[1:], "refs.json")


@promise("`verify` and `--append` read only files")
def test_references_lead_to_no_other_file(server):
    one, other = server.put("data/in.h5", make("in.h5")), server.put("other/in.h5", make("other.h5"))
    references(one)
    assert "neither a source" in z("verify", other, "refs.json", status=1).stdout
    made = json.loads(pathlib.Path("refs.json").read_text())
    for wrong, words in (
        ([other, 0, 10], "neither a source"),
        ([server.url + "/data/../other/in.h5", 0, 10], "neither a source"),
        ([server.url + "/data/%2e%2e/other/in.h5", 0, 10], "neither a source"),
        ([one, 1 << 40, 10], "beyond the end"),
    ):
        made["refs"]["noise/c/0/0"] = wrong
        pathlib.Path("refs.json").write_text(json.dumps(made))
        server.requests.clear()
        assert words in z("verify", one, "refs.json", status=1).stdout
        assert {r.name for r in server.requests} <= {"data/in.h5"}


def test_a_url_that_is_signed_in_an_unknown_way_is_not_appended_twice(server, days):
    """The ETag and the length are those of the file that is in the store."""
    first, second, _ = upload(server, *days)
    join(f"{first}?ticket=1&file=a")
    done = z("convert", "--json", "--append", "t", f"{first}?ticket=2&file=a", f"{second}?ticket=2", "out.zarr")
    assert [x["notes"] for x in json.loads(done.stdout)["sources"]] == [["it is already in the store"], []]
    # without an ETag, nothing shows that it is the same file: its coordinates are there twice
    server.files["data/" + days[0]].etag = ""
    z("convert", "-q", "--append", "t", f"{first}?ticket=3&file=a", "out.zarr", status=1)


def test_references_that_are_appended_to(server):
    remote = upload(server, *even_days())
    references("--concat", "t", remote[0])
    z("convert", "-q", "--virtual", "--append", "t", *remote[1:], "refs.json")
    z("verify", "--concat", "t", *remote, "refs.json")
    assert [s["url"] for s in json.loads(pathlib.Path("refs.json").read_text())["zarrbits"]["sources"]] == remote


# Runs that were cut off


def cut_off(url, *options):
    """A conversion of large(), killed once some chunks are done."""
    run = begin("convert", "-q", url, "out.zarr", *NATIVE, *options, env=environment(ZARRBITS_S3_PATIENCE="60"))
    until = time.monotonic() + 60
    while run.poll() is None and not has_units("out.zarr") and time.monotonic() < until:
        time.sleep(0.01)
    said = kill(run)
    assert run.returncode < 0 and has_units("out.zarr"), said


def test_resume(server):
    body = large("in.h5")
    url = server.put("in.h5", body)
    z("convert", "-q", "in.h5", "local.zarr", *NATIVE)
    server.rate = 6e6
    cut_off(url, "--connections", 2)
    server.rate = None
    shutil.copytree("out.zarr", "again.zarr")
    server.requests.clear()
    z("convert", "-q", url, "out.zarr", "--resume")
    same("local.zarr", "out.zarr")
    assert server.sent < len(body), "what was done is done again"
    z("convert", "-q", url, "again.zarr", *NATIVE)  # the same command again
    same("local.zarr", "again.zarr")


def test_a_source_that_changed_is_not_resumed(server):
    url = server.put("in.h5", large("in.h5"))
    server.rate = 6e6
    cut_off(url)
    server.rate = None
    server.files["in.h5"].etag = '"another"'
    done = z("convert", "-q", url, "out.zarr", "--resume", status=1)
    assert "source changed" in done.stderr and not os.path.exists("out.zarr/zarr.json"), done.stderr


def test_shares(server, days):
    remote = upload(server, *days)
    join(*days, out="local.zarr")
    for i in range(2):
        join(*remote, options=[*NATIVE, "--partition", f"{i}/2"])
    z("finalize", "-q", "--concat", "t", *remote, "out.zarr")
    same_but_for_sources("local.zarr", "out.zarr")


def test_shares_of_a_file_that_changed(server, days):
    remote = upload(server, *days)
    join(*remote, options=[*NATIVE, "--partition", "0/2"])
    with h5py.File(days[1], "r+") as f:
        f.attrs["more"] = 1
    upload(server, days[1])
    assert "begun from different files" in join(*remote, options=[*NATIVE, "--partition", "1/2"], status=1).stderr


@pytest.mark.parametrize("form", ["refs.json", "refs.parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_references_in_partitions(server, kind, form):
    """As one process makes them, whose downloads run ahead of its work."""
    url = server.put("in.h5", make("in.h5", kind))
    options = ["--virtual", "--inline", "50", url, form]
    status = z("convert", "-q", *options, status=(0, 3)).returncode
    pathlib.Path("one").mkdir()
    for path in pathlib.Path().glob("refs.*"):
        path.rename(pathlib.Path("one") / path.name)
    for index in 1, 0, 2:
        z("convert", "-q", *options, "--partition", f"{index}/3")
    z("finalize", "-q", url, form, status=status)
    pathlib.Path("all").mkdir()
    for path in pathlib.Path().glob("refs.*"):
        path.rename(pathlib.Path("all") / path.name)
    same("one", "all")
