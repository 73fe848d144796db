# SPDX-License-Identifier: BSL-1.0
"""zarrbits.convert() and the other calls: what they return for the command's report, and its sentences as errors."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import warnings
from inspect import signature

import h5py
import numpy as np
import pytest

import zarrbits
from kills import slow_writes
from zarrbits.command import arguments
from zarrbits.words import in_python


def made(folder):
    path = os.path.join(folder, "in.h5")
    with h5py.File(path, "w") as f:
        f["camera"] = np.arange(64, dtype="u2").reshape(8, 8)
        f.create_dataset("chunked", data=np.arange(64, dtype="u2"), chunks=(8,))
        f["link"] = h5py.SoftLink("/camera")
    return path


def refused(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except zarrbits.Error as e:
        return e
    raise AssertionError("accepted")


def test_the_script_of_pip_is_not_taken_for_the_command(folder, monkeypatch):
    """In an environment with the package alone, it is the first `zarrbits` on PATH."""
    script = pathlib.Path(folder, "zarrbits")
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom zarrbits.command import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    script.chmod(0o755)
    command = os.environ["ZARRBITS_COMMAND"]
    monkeypatch.delenv("ZARRBITS_COMMAND")
    for later, status in ((os.path.dirname(command), 0), (folder, 1)):
        environment = os.environ | {
            "PATH": f"{folder}{os.pathsep}{later}",
            "PYTHONPATH": str(pathlib.Path(zarrbits.__file__).parents[1]),
        }
        done = subprocess.run([script, "--version"], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done
        assert done.stdout.startswith("zarrbits ") if status == 0 else "was installed without the command" in done.stderr, done


def test_convert_plan_and_verify(folder):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    plan = zarrbits.plan(source)
    assert (
        plan.complete and sorted(d["path"] for d in plan.datasets) == ["/camera", "/chunked"] and "/camera" in plan._repr_html_()
    )
    assert [line.split()[:7] for line in str(plan).splitlines() if line.startswith("/chunked")] == [
        ["/chunked", "raw", "9", "128", "B", "128", "B"]
    ]
    assert not os.path.exists(store)
    report = zarrbits.convert(source, store, shard=(64,), threads=1, consolidate=True, include=["/camera", "/chunked"])
    assert report.store == store and not report.lost and report.document["exit_status"] == 0 and sum(report.counts.values()) >= 3
    assert {o.path for o in report.objects if o.kind == "dataset"} == {"/camera", "/chunked"}
    shown = {words[0]: words[1:] for words in map(str.split, str(report).splitlines())}
    # a shard of 8 chunks has an index of 8 * 16 + 4 bytes
    assert shown["/chunked"][1:] == ["128", "B", "260", "B", "2.03"] and shown["all"] == ["256", "B", "388", "B", "1.52"], str(
        report
    )
    assert (
        f"{source} to {store} in {report.seconds:.2f} s" in str(report)
        and 0 < report.seconds < 60
        and "<td>/camera</td>" in report._repr_html_()
    )
    checked = zarrbits.verify(source, store)
    assert (
        checked.equal
        and checked.document["datasets"]["equal"] == 2
        and "datasets" in checked._repr_html_()
        and "FAILED" not in str(checked)
    )
    (chunk,) = [os.path.join(d, n) for d, _, names in os.walk(os.path.join(store, "camera")) for n in names if n != "zarr.json"][
        :1
    ]
    with open(chunk, "r+b") as f:
        f.write(b"\xff\xff")
    checked = zarrbits.verify(source, store)
    assert not checked.equal and "/camera" in [f["path"] for f in checked.findings]
    for shown in (str(checked), checked._repr_html_()):
        assert "FAILED" in shown and "/camera" in shown and "65535" in shown and "differs" in shown, shown


def test_two_files_are_compared(folder):
    source, other = made(folder), os.path.join(folder, "other.h5")
    with h5py.File(source) as f, h5py.File(other, "w") as g:
        g.create_dataset("camera", data=f["camera"][()], chunks=(2, 8), compression="gzip")
        g.create_dataset("chunked", data=f["chunked"][()], maxshape=(64,))
        g["link"] = h5py.SoftLink("/camera")
    assert zarrbits.verify(source, other).equal
    with h5py.File(other, "r+") as f:
        f["camera"][1, 2] = 0
    checked = zarrbits.verify(source, other)
    (found,) = checked.findings
    assert not checked.equal and found["path"] == "/camera" and found["index"] == [1, 2], found
    assert (found["source_value"], found["store_value"]) == ("10", "0")
    assert zarrbits.verify(source, other, exclude="camera").equal


def test_a_store_becomes_a_file_again(folder):
    source, store, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", "back.h5"))
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=np.arange(100), chunks=(10,), compression="gzip")
    zarrbits.convert(source, store)
    made = zarrbits.export_store(store, back, filters="standard")
    assert made.counts["rewrapped"] == 1 and not made.lost and "/x" in str(made) and "deflate" in str(made)
    with h5py.File(back) as f:
        assert np.array_equal(f["x"][()], np.arange(100))
    with pytest.raises(FileExistsError, match="`overwrite=True`"):
        zarrbits.export_store(store, back)


def test_convert_writes_hdf5_files(folder):
    """As the command does: byte for byte, with the options that the pair has, and its sentence for others."""
    source, store, made_by, back = (os.path.join(folder, n) for n in ("in.h5", "s.zarr", "command.nc", "python.nc"))
    values = np.arange(4096).reshape(64, 64)
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=values, chunks=(8, 8), compression="gzip")
    zarrbits.convert(source, store)
    for start, flags, options in (
        (store, ["--filters", "any", "--page-size", "4096"], {"filters": "any", "page_size": 4096}),
        (store, ["--include", "x", "--libver", "latest"], {"include": "x", "libver": "latest"}),
        (source, ["--chunk", "/x=16x-1", "--filter", "/x=none"], {"chunk": {"/x": (16, -1)}, "filter": {"/x": "none"}}),
        (source, ["--layout", "cmip7"], {"layout": "cmip7"}),
    ):
        command = [os.environ["ZARRBITS_COMMAND"], "convert", "-q", "--json", "--overwrite", *flags, start, made_by]
        said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        seen = []  # a short run may report no progress
        report = zarrbits.convert(start, back, overwrite=True, progress=seen.append, **options)
        assert pathlib.Path(made_by).read_bytes() == pathlib.Path(back).read_bytes(), options
        assert report.document == {**said, "target": back, "seconds": report.seconds} and report.seconds > 0
        assert (report.source, report.store, report.sources, report.lost) == (start, back, [start], [])
        (x,) = [o for o in report.objects if o.kind == "dataset"]
        assert x.path == "/x" and report.counts[x.outcome] == 1 and x.source_bytes and x.store_bytes
        assert "/x" in str(report) and "<td>/x</td>" in report._repr_html_()
        with h5py.File(back) as f:
            assert np.array_equal(f["x"][()], values)
    with pytest.raises(FileExistsError, match="`overwrite=True`"):
        zarrbits.convert(store, back)
    new, other = os.path.join(folder, "new.h5"), os.path.join(folder, "new.zarr")
    assert zarrbits.convert(source, new, dry_run=True).document["unchanged"] is False
    with concurrent.futures.ThreadPoolExecutor(2) as client:
        for start, target, options, sentence in (
            (store, new, {"layout": "cmip7"}, '"zarrbits export" writes, and that does not have `layout`;'),
            (store, new, {"shard": "1M", "filters": "any"}, "that does not have `shard`;"),
            (
                source,
                new,
                {"resume": True, "filters": "any"},
                '"zarrbits repack" writes, and that does not have `resume=True`, `filters`;',
            ),
            (source, other, {"filters": "any"}, "`filters` is for a target OUT.h5 that gets the values of the source"),
            (source, other, {"chunk": {"/x": (8, 8)}}, '"8x8" is not DIMENSION:LENGTH'),
            (source, new, {"partition": "0/2"}, "which one process writes at once"),
            (store, new, {"client": client}, "which one process writes at once"),
        ):
            with pytest.raises(ValueError) as caught:
                zarrbits.convert(start, target, **options)
            assert sentence in str(caught.value)
    assert not os.path.exists(new) and not os.path.exists(other)


def test_inspect_suggest_and_doctor(folder):
    source = made(folder)
    seen = zarrbits.inspect(source)
    assert {n["path"] for n in seen.trees[0]["nodes"]} >= {"/camera", "/chunked"} and seen.document["version"] == 1
    assert ["/camera", "array", "8x8", "uint16"] in [
        line.split()[:4] for line in str(seen).splitlines()
    ] and "<td>8x8</td>" in seen._repr_html_()
    found = zarrbits.suggest(source)
    assert {d["path"]: (d["first_bit"], d["last_bit"]) for d in found.datasets} == {"/chunked": (0, 5), "/camera": (0, 5)}
    assert found.bits == {"/chunked": 6, "/camera": 6} and ["/camera", "uint16", "0", "to", "5"] in [
        line.split()[:5] for line in str(found).splitlines()
    ]
    chunks = zarrbits.suggest(source, chunks=True, access="maps")
    assert chunks.document["for"] == "maps" and {d["path"] for d in chunks.datasets} == {"/chunked", "/camera"}
    assert chunks.bits == {} and "/camera" in str(chunks) and "<table>" in chunks._repr_html_()
    zarrbits.convert(source, os.path.join(folder, "chunks.zarr"), **chunks.options)
    health = zarrbits.doctor(source)
    assert health.healthy == (health.document["exit_status"] == 0) and source in str(health) and "<table>" in health._repr_html_()


def test_bits_of_datasets_by_name(folder):
    source, store = made(folder), os.path.join(folder, "out.zarr")
    with h5py.File(source, "a") as f:
        f["frame_counter"] = np.array([70000], "u4")
    zarrbits.convert(source, store, codec="packbits", bits={"/camera": 6, "/chunked": 7, "/frame_counter": 17})
    last = {
        n["path"]: n["codecs"][0]["configuration"]["last_bit"]
        for n in zarrbits.inspect(store).trees[0]["nodes"]
        if n["kind"] == "array"
    }
    assert last == {"/camera": 5, "/chunked": 6, "/frame_counter": 16}
    assert zarrbits.verify(source, store).equal


def test_shares_and_their_end(folder):
    source, store = large(folder), os.path.join(folder, "shares.zarr")
    for share in range(3):
        done = zarrbits.convert(source, store, partition=f"{share}/3", compress="zstd:1")
        assert done.objects == [] and done.store == store and not os.path.exists(os.path.join(store, "zarr.json"))
    report = zarrbits.finalize(source, store)
    assert [o.path for o in report.objects if o.kind == "dataset"] == ["/x"] and zarrbits.verify(source, store).equal


def test_the_commands_sentences_are_errors(folder):
    source = made(folder)
    missing = refused(zarrbits.convert, os.path.join(folder, "none.h5"), os.path.join(folder, "x.zarr"))
    assert "No such file" in str(missing) and missing.status == 1 and isinstance(missing, FileNotFoundError)
    assert missing.code == "not_found" and missing.file == os.path.join(folder, "none.h5") and missing.object == ""
    wrong = refused(zarrbits.convert, source, os.path.join(folder, "x.zarr"), threads=0)
    assert (
        wrong.status == 2 and isinstance(wrong, ValueError) and "`threads` is 1 to 1024" in str(wrong) and "--" not in str(wrong)
    )
    assert isinstance(refused(zarrbits.plan, source, compress="no such"), ValueError)
    store = os.path.join(folder, "a--overwrite.zarr")
    zarrbits.convert(source, store)
    there = refused(zarrbits.convert, source, store, codec="packbits")
    assert (
        isinstance(there, FileExistsError) and f'"{store}"' in str(there) and "overwrite=True" in str(there).replace(store, "")
    ), there
    assert there.code == "already_exists" and there.file == store
    with h5py.File(source, "r+") as f:  # a chunk that deflate cannot have made
        f.create_dataset("packed", data=np.arange(64), chunks=(8,), compression="gzip")
    with h5py.File(source) as f:
        chunk = f["packed"].id.get_chunk_info(0)
    with open(source, "r+b") as f:
        f.seek(chunk.byte_offset)
        f.write(b"\xff" * chunk.size)
    damaged = refused(zarrbits.convert, source, os.path.join(folder, "damaged.zarr"), profile="recode")
    assert (damaged.code, damaged.file, damaged.object) == ("damaged_source", source, "/packed"), damaged
    root = os.path.join(store, "zarr.json")  # the source may be a store
    for content in b"{", b"[]":
        with open(root, "wb") as f:
            f.write(content)
        for call, name in (zarrbits.convert, "damaged.zarr"), (zarrbits.export_store, "damaged.h5"):
            damaged = refused(call, store, os.path.join(folder, name))
            assert damaged.code == "damaged_source", damaged
    try:
        zarrbits.plan(source, no_such_option=3)
    except TypeError as e:
        assert "no_such_option" in str(e)
    else:
        raise AssertionError("accepted")
    # a name that begins like an option is a name
    assert "cannot open" in str(refused(zarrbits.convert, "--version", os.path.join(folder, "y.zarr")))
    none = refused(zarrbits.verify, source, os.path.join(folder, "none.zarr"))
    assert none.status == 1 and (none.code, none.file) == ("not_found", os.path.join(folder, "none.zarr")), none


def test_lost_objects_are_listed(folder):
    source = os.path.join(folder, "lossy.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("whole", data=np.arange(3))
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4,))
        properties.set_filter(40000, h5py.h5z.FLAG_OPTIONAL)
        h5py.h5d.create(f.id, b"unknown", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((4,)), properties).write_direct_chunk(
            (0,), b"1234"
        )
    report = zarrbits.convert(source, os.path.join(folder, "lossy.zarr"))
    assert [(o.path, o.outcome) for o in report.lost] == [("/unknown", "skipped")] and "40000" in report.lost[0].reason
    assert report.document["exit_status"] == 3 and "/unknown" in report._repr_html_() and not zarrbits.plan(source).complete


def test_python_m_zarrbits_is_the_command(folder):
    said = subprocess.run([sys.executable, "-m", "zarrbits", "--version"], capture_output=True, text=True, timeout=600)
    assert said.returncode == 0 and said.stdout == f"zarrbits {zarrbits.__version__}\n", said
    assert (
        subprocess.run([sys.executable, "-m", "zarrbits", "plan", "/none.h5"], capture_output=True, timeout=600).returncode == 1
    )


def test_an_interrupt_ends_the_command_and_leaves_no_store(folder):
    source, store = large(folder), os.path.join(folder, "large.zarr")
    script = "import sys, zarrbits; zarrbits.convert(sys.argv[1], sys.argv[2], compress='blosc:zstd:9', threads=1)"
    child = subprocess.Popen([sys.executable, "-c", script, source, store], stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 60
    while not os.path.exists(store) and child.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)  # to Python alone
    error = child.communicate(timeout=600)[1]
    assert child.returncode != 0 and b"KeyboardInterrupt" in error, (child.returncode, error)
    assert not os.path.exists(os.path.join(store, "zarr.json"))


VERBS = ("convert", "finalize", "plan", "export_store", "repack", "digest", "verify", "check", "inspect", "suggest", "doctor")


def test_no_option_of_the_command_is_forgotten(folder):
    """Flags of --help on one side, parameters on the other."""
    # help and json are not options here; progress replaces quiet, and a share of a store is for one process of several
    without = {"help", "json", "quiet", "log_format"}
    for name in VERBS:
        verb = name.removesuffix("_store")
        said = subprocess.run([os.environ["ZARRBITS_COMMAND"], verb, "--help"], capture_output=True, text=True, check=True).stdout
        others = {"for": "access", "header": "headers", "no-missing": "allow_missing"}
        flags = {
            others.get(f, f.removeprefix("no-")).replace("-", "_") for f in re.findall(r"^  (?:-\w,)?--([\w-]+)", said, re.M)
        } - without
        parameters = {p.name for p in signature(getattr(zarrbits, name)).parameters.values() if p.kind == p.KEYWORD_ONLY} - {
            "client",
            "partitions",
            "progress",
            "storage_options",  # become options and secrets
        }
        if name == "convert":  # of HDF5 files as targets
            flags |= set().union(*(zarrbits.options.OPTIONS[other] for other in ("export", "repack"))) - {"in_place", "check"}
        if name == "digest":  # of objects, not of values; and add_digests()
            flags -= {"manifest", "dandi", "add"}
        if name == "repack":  # target=None, and check_layout()
            flags -= {"in_place", "check", "partition"}
        assert flags == parameters and len(flags) >= 1, (name, flags ^ parameters)


def test_options_of_the_same_name_have_the_same_type():
    """They stand in the signature of each call, where editors that do not run Python find them."""
    first = {}
    for name in VERBS:
        for p in signature(getattr(zarrbits, name)).parameters.values():
            if p.kind != p.KEYWORD_ONLY or (name, p.name) == ("verify", "links"):  # verify refuses none
                continue
            if (name in ("convert", "repack") and p.name == "filter") or (
                name == "repack" and p.name == "chunk"
            ):  # of some datasets
                continue
            before = first.setdefault(p.name, (name, p.annotation, p.default))
            assert before[1:] == (p.annotation, p.default), (name, p.name, before)
    assert len(first) > 40


def test_docstrings_say_what_help_says():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    subprocess.run([sys.executable, root / "docs/man/docstrings.py", "--check"], check=True)
    said = zarrbits.convert.__doc__
    assert "    overwrite: Replace an existing Zarr store" in said and "`virtual=True`" in said and "--" not in said
    assert "    lock: False: Open the HDF5 file without a lock" in said and "    consolidate: Also " in said
    for name in VERBS:
        call = getattr(zarrbits, name)
        for option in (p.name for p in signature(call).parameters.values() if p.kind == p.KEYWORD_ONLY and p.name != "progress"):
            assert f"    {option}: " in call.__doc__, (name, option)


def test_keywords_and_flags():
    for keyword, flag, value in (
        ("lock", "--no-lock", False),
        ("etag", "--no-etag", False),
        ("sign_request", "--no-sign-request", False),
        ("allow_missing", "--no-missing", False),
        ("consolidate", "--consolidate", True),
        ("consolidate", "--no-consolidate", False),
        ("netcdf", "--netcdf", True),
        ("netcdf", "--no-netcdf", False),
        ("overwrite", "--overwrite", True),
    ):
        assert arguments({keyword: value}) == [flag]
        assert in_python(f'use {flag}, not "{flag}"') == f'use `{keyword}={value}`, not "{flag}"'
    for keyword, flag in ("access", "--for"), ("headers", "--header"), ("zarr_format", "--zarr-format"):
        assert arguments({keyword: "x"}) == [f"{flag}=x"] and in_python(f"{flag} is missing") == f"`{keyword}` is missing"
    assert arguments({"lock": True, "overwrite": False, "consolidate": None}) == []
    with pytest.raises(ValueError, match="`lock` is 'no'; set True or False"):
        arguments({"lock": "no"})
    assert in_python("with `no_etag`, --no-such and `threads`") == "with `etag=False`, --no-such and `threads`"
    for name in "no_lock", "no_etag", "no_consolidate", "header":
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            zarrbits.convert("in.h5", "out.zarr", **{name: None})


def test_each_option_arrives(folder):
    """With a command that prints its arguments."""
    echo, report = os.path.join(folder, "echo"), {"source": "", "store": "", "summary": {}, "objects": []}
    with open(echo, "w", encoding="utf-8") as f:
        f.write(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(dict({report!r}, arguments=sys.argv[1:])))\n")
    os.chmod(echo, 0o755)
    before, os.environ["ZARRBITS_COMMAND"] = os.environ["ZARRBITS_COMMAND"], echo
    try:
        given = zarrbits.convert(
            ["a.h5", "b.h5"],
            pathlib.Path("c.zarr"),
            concat="time",
            shard=(64,),
            chunk=[1, 2],
            include="/x",
            exclude=["/y", "/z"],
            bits={"/a": 12, "m": 1},
            threads=2,
            memory="1G",
            allow_overlap=True,
            lock=False,
            etag=True,
            consolidate=False,
            report=pathlib.Path("r.json"),
        ).document["arguments"]
    finally:
        os.environ["ZARRBITS_COMMAND"] = before
    assert given[:2] == ["convert", "--json"] and given[-4:] == ["--", "a.h5", "b.h5", "c.zarr"]
    assert set(given[2:-4]) == {
        "--concat=time",
        "--allow-overlap",
        "--no-lock",
        "--no-consolidate",
        "--report=r.json",
        "--threads=2",
        "--memory=1G",
        "--include=/x",
        "--exclude=/y",
        "--exclude=/z",
        "--chunk=1,2",
        "--shard=64,",
        "--bits=/a=12",
        "--bits=m=1",
        "--quiet",
    }


def test_chunks_by_dimension(folder):
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f["time"] = np.arange(48.0)
        f["time"].make_scale("time")
        for name in ("a", "b"):
            f.create_dataset(name, data=np.zeros((48, 6)), chunks=(1, 3)).dims[0].attach_scale(f["time"])
    for given in ({"time": 24, "/a": {"time": -1}}, ["time:24", "/a=time:-1"]):
        shapes = {d["path"]: d["chunk_shape"] for d in zarrbits.plan(source, chunk=given).datasets}
        assert shapes == {"/a": [48, 3], "/b": [24, 3], "/time": [24]}
        zarrbits.convert(source, store, chunk=given, include="/a", with_coordinates=True, overwrite=True)
        assert sorted(n for n in os.listdir(store) if not n.endswith(".json")) == ["a", "time"]


def large(folder):
    source = os.path.join(folder, "large.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=np.random.default_rng(1).integers(0, 255, 48 << 20, dtype="u1"), chunks=(1 << 16,))
    return source


def test_progress_for_a_function(folder, monkeypatch):
    source, states = large(folder), []
    for name, value in slow_writes().items():  # no machine is so fast that nothing is told in between
        monkeypatch.setenv(name, value)
    zarrbits.convert(source, os.path.join(folder, "a.zarr"), compress="gzip:1", progress=states.append)
    assert states[-1] == zarrbits.Progress(48 << 20, 48 << 20, 2, 2, "/x") and len(states) > 2
    assert [s.done for s in states] == sorted(s.done for s in states)
    assert {s.total for s in states} == {48 << 20}  # and never 0, by which nobody divides


def test_a_function_that_raises_ends_the_command(folder):
    source, store = large(folder), os.path.join(folder, "a.zarr")

    class Enough(BaseException):
        pass

    def stop(state):
        if state.done > 1 << 20:
            raise Enough

    try:
        zarrbits.convert(source, store, compress="blosc:zstd:9", threads=1, progress=stop)
    except Enough:
        assert not os.path.exists(os.path.join(store, "zarr.json"))  # chunks may be there: the same call goes on
        zarrbits.convert(source, store, compress="blosc:zstd:9", threads=1)
        assert zarrbits.verify(source, store).equal
    else:
        raise AssertionError("it went on")


def test_a_bar_of_tqdm(folder):
    """With a stand-in that notes its calls; nobody looks at the real one here."""
    os.makedirs(os.path.join(folder, "tqdm"))
    with open(os.path.join(folder, "tqdm", "auto.py"), "w", encoding="utf-8") as f:
        f.write(
            "import os\nclass tqdm:\n    n, total = 0, None\n    def __init__(self, **options): print('bar', "
            "sorted(options))\n    def __enter__(self): return self\n"
            "    def __exit__(self, *e): print('end', self.n == self.total)\n    def update(self, more): self.n += "
            "more\n    def set_postfix_str(self, s, refresh): pass\n"
        )
    script = (
        "import sys, zarrbits; sys.stderr.isatty = lambda: sys.argv[3] == 'seen'; zarrbits.convert(*sys.argv[1:3], "
        "overwrite=True, progress=sys.argv[4] == 'True')"
    )
    source, store = made(folder), os.path.join(folder, "a.zarr")
    environment = dict(os.environ, PYTHONPATH=folder + os.pathsep + os.environ["PYTHONPATH"])
    for seen, progress, lines in (
        ("seen", "True", ["bar ['leave', 'unit', 'unit_scale']", "end True"]),
        ("not", "True", []),
        ("seen", "False", []),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, source, store, seen, progress],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0 and done.stdout.splitlines() == lines and not done.stderr, (seen, progress, done)


def test_all_of_it_within_a_job(folder):
    os.environ.update(
        SLURM_PROCID="1",
        SLURM_NTASKS="4",
        SLURM_ARRAY_TASK_ID="1",
        SLURM_ARRAY_TASK_COUNT="4",
        SLURM_ARRAY_TASK_MIN="0",
        SLURM_STEP_ID="0",
        SLURM_JOB_ID="7",
    )
    try:
        assert not zarrbits.convert(made(folder), os.path.join(folder, "a.zarr")).lost
    finally:
        for name in [n for n in os.environ if n.startswith("SLURM_")]:
            del os.environ[name]


def test_a_whole_store_is_resumed_without_a_report(folder):
    source, store = made(folder), os.path.join(folder, "a.zarr")
    assert zarrbits.convert(source, store).objects
    assert zarrbits.convert(source, store, resume=True).objects == []


def test_many_files(folder):
    paths, store = [os.path.join(folder, f"{i}.h5") for i in range(3)], os.path.join(folder, "all.zarr")
    for i, path in enumerate(paths):
        with h5py.File(path, "w") as f:
            f.create_dataset("x", data=np.arange(4) + 4 * i, chunks=(2,), maxshape=(None,))
    assert not zarrbits.convert(paths[:2], store, concat="x:0").lost
    assert zarrbits.verify(paths[:2], store, concat="x:0").equal
    assert zarrbits.convert([paths[2]], store, append="x:0").objects
    assert zarrbits.verify(paths, store, concat="x:0").equal and not zarrbits.verify(paths[:2], store, concat="x:0").equal
    zarrbits.convert([paths[2]], store, append="x:0")
    assert zarrbits.verify(paths, store, concat="x:0").equal


def days(folder, count):
    """Files of a day each, of which the second is damaged."""
    paths = [os.path.join(folder, f"{i}.h5") for i in range(count)]
    for i, path in enumerate(paths):
        with h5py.File(path, "w") as f:
            f.create_dataset("x", data=np.arange(4) + 4 * i, chunks=(2,), maxshape=(None,))
    with open(paths[1], "r+b") as f:
        f.truncate(100)
    return paths


def test_files_that_are_left_out_are_lost(folder):
    paths, store = days(folder, 3), os.path.join(folder, "all.zarr")
    plan = zarrbits.plan(paths, concat="x:0", keep_going=True)
    assert not plan.complete and "INCOMPLETE" in str(plan)
    said = subprocess.run(
        [os.environ["ZARRBITS_COMMAND"], "plan", "--concat", "x:0", "--keep-going", *paths, store], capture_output=True, text=True
    )
    assert said.returncode == 3 and f'left out "{paths[1]}"' in said.stdout, said
    with pytest.warns(UserWarning, match="is left out"):
        report = zarrbits.convert(paths, store, concat="x:0", keep_going=True)
    assert [(o.path, o.kind, o.outcome) for o in report.lost] == [(paths[1], "file", "skipped")] and report.lost[0].reason
    assert paths[1] in str(report)
    grown = os.path.join(folder, "grown.zarr")
    zarrbits.convert(paths[:1], grown, concat="x:0")
    with pytest.warns(UserWarning, match="is left out"):
        report = zarrbits.convert([paths[2], paths[1]], grown, append="x:0", keep_going=True)
    assert [o.path for o in report.lost] == [paths[1]]


def test_shares_of_many_files_are_completed(folder):
    paths, store = days(folder, 4), os.path.join(folder, "all.zarr")
    del paths[1]
    for share in range(2):
        zarrbits.convert(paths, store, concat="x:0", partition=f"{share}/2", compress="zstd:3")
    assert "different options" in str(refused(zarrbits.finalize, paths, store, concat="x:0", compress="zstd:4"))
    report = zarrbits.finalize(paths, store, concat="x:0", order="given", compress="zstd:3", consolidate=False)
    assert not report.lost and zarrbits.verify(paths, store, concat="x:0").equal


def test_what_include_leaves_out_of_a_store_is_not_lost(folder):
    zarrbits.convert(made(folder), os.path.join(folder, "a.zarr"))
    report = zarrbits.convert(os.path.join(folder, "a.zarr"), os.path.join(folder, "b.zarr"), include="camera")
    assert not report.lost and report.document["exit_status"] == 0


def test_warnings_are_pythons(folder):
    source = os.path.join(folder, "wide.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset(
            "x", data=np.zeros(40 << 20, "u1"), chunks=(40 << 20,), compression="gzip", compression_opts=1, shuffle=True
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zarrbits.convert(source, os.path.join(folder, "a.zarr"), memory="32M", compress="zstd:1", allow_expansion=True)
    assert any("memory" in str(w.message) and w.filename == __file__ for w in caught), [str(w.message) for w in caught]


def test_check(folder):
    source, store = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    with h5py.File(source, "w") as f:
        f.create_dataset("v", data=np.arange(100), chunks=(10,), compression="gzip")
    zarrbits.convert(source, store, progress=False)
    assert zarrbits.check(source).sound and zarrbits.check(pathlib.Path(store), sample="10%", seed=3).arrays[0]["checked"] == 1
    pathlib.Path(store, "v/c/3").write_bytes(b"?")
    report = zarrbits.check(store, progress=False)
    assert not report.sound and [f["key"] for f in report.findings] == ["c/3"] and report.arrays[0]["damaged"] == 1
    assert zarrbits.check(store, metadata=True).sound and "NOT SOUND, 1 problems" in repr(report), repr(report)


def test_repack_and_check_layout(folder):
    source, target = (os.path.join(folder, n) for n in ("in.nc", "out.nc"))
    with h5py.File(source, "w") as f:
        f.create_dataset("time", data=np.arange(9.0), chunks=(1,))
        f.create_dataset("v", data=np.arange(600.0).reshape(20, 30), chunks=(1, 30), compression="gzip")
    before = zarrbits.check_layout(source, layout="cmip7")
    assert not before.conforms and {f["rule"] for f in before.findings if not f["met"]} >= {"time_chunks"}
    made = zarrbits.repack(source, target, layout="cmip7", chunk={"/v": (7, -1)}, filter={"/v": "deflate:9"})
    assert {d["path"]: d["chunk"] for d in made.datasets} == {"/time": [9], "/v": [7, 30]} and "/v" in str(made)
    assert zarrbits.check_layout(target, layout="cmip7").conforms
    assert not zarrbits.repack(source, layout="cmip7").unchanged and zarrbits.repack(source, layout="cmip7").unchanged
    with h5py.File(source) as a, h5py.File(target) as b:
        assert (a["v"][...] == b["v"][...]).all() and b["v"].chunks == (7, 30) and b["v"].compression_opts == 9
    with pytest.raises(zarrbits.Error, match="has 2 dimensions"):
        zarrbits.repack(source, target, chunk="/v=7", overwrite=True)


def test_digest_is_that_of_the_converted_store(folder):
    source, target = (os.path.join(folder, n) for n in ("in.h5", "out.zarr"))
    with h5py.File(source, "w") as f:
        f["a/b"] = np.arange(20.0)
        f["nan"] = np.array([np.nan, -np.nan])
    zarrbits.convert(source, target, shard="64K", progress=False)
    first, second = zarrbits.digest(source), zarrbits.digest(target, threads=2, progress=False)
    assert first.digest == second.digest and len(first.digest) == 64 and first["/a/b"] == second["/a/b"] in str(first)
    assert zarrbits.digest(source, nan="any")["/nan"] != first["/nan"]
    assert [a["path"] for a in zarrbits.digest(source, exclude="/nan").arrays] == ["/a/b"]
    with pytest.raises(KeyError):
        first["/none"]
    with pytest.raises(FileNotFoundError):
        zarrbits.digest(os.path.join(folder, "missing.h5"))


def test_digests_and_checks_of_partitions(folder):
    source, target = (os.path.join(folder, n) for n in ("in.h5", "out.zarr"))
    with h5py.File(source, "w") as f:
        f.create_dataset("v", data=np.arange(2000.0).reshape(40, 50), chunks=(5, 50))
    zarrbits.convert(source, target, progress=False)
    for name in source, target:
        parts = [zarrbits.digest(name, partition=f"{i}/3", progress=False) for i in (2, 0, 1)]
        assert all(part.digest is None and not any(a["digest"] for a in part.arrays) for part in parts)
        whole = zarrbits.add_digests(parts)
        assert (whole.digest, whole["/v"]) == (zarrbits.digest(name).digest, zarrbits.digest(name)["/v"])
        with pytest.raises(zarrbits.Error, match="of partition 1/3 is missing"):
            zarrbits.add_digests(parts[:2])
        checks = [zarrbits.check(name, partition=f"{i}/3", progress=False) for i in range(3)]
        assert all(c.sound and c.arrays[0]["checked"] < 8 for c in checks) and sum(c.arrays[0]["checked"] for c in checks) == 8


def test_files_with_places(tmp_path):
    paths = [tmp_path / f"{y}{x}.h5" for y in range(2) for x in range(2)]
    for path in paths:
        with h5py.File(path, "w") as f:
            f["v"] = np.full((2, 3), int(path.stem))
            for i, name in enumerate(("y", "x")):
                f[name] = np.zeros(f["v"].shape[i])
                f[name].make_scale(name)
                f["v"].dims[i].attach_scale(f[name])
    (tmp_path / "places.csv").write_text(
        "file,y,x\n" + "".join(f"{p.name},{p.stem[0]},{p.stem[1]}\n" for p in paths), encoding="utf-8"
    )
    how = {"concat": "y,x", "places": tmp_path / "places.csv"}
    assert not zarrbits.convert(paths, tmp_path / "all.zarr", **how).lost
    assert zarrbits.verify(paths, tmp_path / "all.zarr", **how).equal
    assert {d["path"] for d in zarrbits.plan(paths, **how).datasets} == {"/v", "/y", "/x"}
