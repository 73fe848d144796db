# SPDX-License-Identifier: BSL-1.0
"""Stores of references that are damaged, or hostile, opened by the Python package:
an Error that says so, never the fill value, a file that nobody allowed, a wait or gigabytes."""

import importlib.util
import json
import os
import resource
import shutil
import signal

import h5py
import numpy as np
import pytest
import zarr

import zarrbits
from cases import dice_of, number_of_cases
from conftest import COMMAND, run
from test_virtual_stores import FRAMES, check, needs_parquet, refs, source  # noqa: F401  (the last two are fixtures)


def rewrite(path, change):
    """A part of a store, by another writer."""
    import pandas

    engine = "pyarrow" if importlib.util.find_spec("pyarrow") else "fastparquet"
    change(pandas.read_parquet(path, engine=engine)).to_parquet(path, engine=engine, compression="zstd")


def without_values(frame):
    frame["path"] = None
    return frame


@needs_parquet
@pytest.mark.parametrize(
    "change, words",
    [
        (lambda part: part.write_bytes(part.read_bytes()[: part.stat().st_size // 2]), "not a whole Parquet file"),
        (lambda part: part.write_bytes(b""), "not a whole Parquet file"),
        (lambda part: part.unlink(), "No such file"),
        (lambda part: rewrite(part, lambda f: f.iloc[:3]), "only 3 rows"),
        (lambda part: rewrite(part, lambda f: f.drop(columns=["offset"])), "columns are missing"),
        (lambda part: rewrite(part, lambda f: f.drop(columns=["path"])), "columns are missing"),
        (lambda part: rewrite(part, without_values), "has 0 references, and had 5|columns are missing"),
        (lambda part: rewrite(part, lambda f: f.astype({"path": "string", "offset": "float64"})), "columns are missing"),
        (lambda part: (part.unlink(), os.mkfifo(part)), "not a regular file"),
        (lambda part: (part.unlink(), part.mkdir()), "refs.0.parq"),
    ],
)
def test_damaged_parts(source, tmp_path, change, words):
    """No chunk of a damaged file reads as the fill value."""
    refs = tmp_path / "refs.parquet"
    run("convert", "-q", "--virtual", source, refs)
    change(refs / "deflated/refs.0.parq")
    with pytest.raises(zarrbits.Error, match=f"deflated/refs.0.parq.*({words})"):
        zarr.open_group(zarrbits.open_references(refs), mode="r")["deflated"][...]
    with pytest.raises(zarrbits.Error, match=f"deflated/refs.0.parq.*({words})"):
        zarr.open_group(zarrbits.open_references(refs, check=False), mode="r")["deflated"][20:, :5]
    with pytest.raises(zarrbits.Error, match=f"deflated/refs.0.parq.*({words})"):
        zarrbits.to_icechunk(refs, tmp_path / "repository")
    assert not (tmp_path / "repository").exists()
    run("verify", source, refs, status=1)


@pytest.mark.parametrize("seed", range(3))
def test_mutated_parts(source, tmp_path, seed):
    """Any byte may be another: right values, other bytes of the source, or an Error;
    and never the fill value in place of a chunk."""
    refs = tmp_path / "refs.parquet"
    run("convert", "-q", "--virtual", source, refs)
    part = refs / "deflated/refs.0.parq"
    good, dice, ended = part.read_bytes(), np.random.default_rng(dice_of(seed).getrandbits(30)), {}
    for _ in range(number_of_cases(60)):
        bad = bytearray(good)
        for at in dice.integers(0, len(bad), dice.integers(1, 4)):
            bad[at] = dice.integers(0, 256)
        part.write_bytes(bad)
        try:
            got = zarr.open_group(zarrbits.open_references(refs), mode="r")["deflated"][...]
            assert not (got.reshape(5, -1) == 0).all(axis=1).any()
            how = "equal" if np.array_equal(got, FRAMES) else "other"
        except zarrbits.Error:
            how = "error"
        except Exception as e:  # a range of the source that is none of its chunks does not decode
            assert "fill" not in str(e)
            how = "undecodable"
        ended[how] = ended.get(how, 0) + 1
    print(ended)
    assert ended.get("error", 0) > 5


@needs_parquet
def test_rows_that_say_that_there_is_no_chunk(source, tmp_path):
    refs = tmp_path / "refs.parquet"
    run("convert", "-q", "--virtual", source, refs)
    document = json.loads((refs / ".zmetadata").read_text())
    assert document["zarrbits"]["parts"]["sparse"] == [[0, 1]] and "none" not in document["zarrbits"]["parts"]
    sparse = zarr.open_group(zarrbits.open_references(refs), mode="r")["sparse"]
    assert (sparse[20:30] == 3).sum() == 10 and (sparse[:20] == -1).all() and (sparse[30:] == -1).all()
    # a table of others says nothing of its files: all have to be there
    del document["zarrbits"]["parts"]
    (refs / ".zmetadata").write_text(json.dumps(document))
    assert (zarr.open_group(zarrbits.open_references(refs), mode="r")["sparse"][:20] == -1).all()
    (refs / "sparse/refs.0.parq").unlink()
    with pytest.raises(zarrbits.Error, match="sparse/refs.0.parq"):
        zarr.open_group(zarrbits.open_references(refs), mode="r")["sparse"][:20]


def test_contents_that_look_like_base64(tmp_path, refs):
    """fsspec decodes what begins so."""
    values = np.frombuffer(b"base64:QUJD", "u1")
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("x", data=values, chunks=(11,), shuffle=True, compression="gzip")
        f["x"].id.write_direct_chunk((0,), values.tobytes(), 3)
    run("convert", "-q", "--virtual", "--profile", "native", tmp_path / "in.h5", refs)
    assert bytes(zarr.open_group(zarrbits.open_references(refs), mode="r")["x"][:]) == values.tobytes()


class Within:
    """Ends the test where something waits for ever."""

    def __enter__(self):
        def over(*_):
            raise TimeoutError("it waits for ever")

        self.before = signal.signal(signal.SIGALRM, over)
        signal.alarm(20)

    def __exit__(self, *_):
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self.before)


def test_what_is_no_regular_file(source, refs, tmp_path):
    run("convert", "-q", "--virtual", source, refs)
    source.unlink()
    os.mkfifo(source)
    with Within():
        for check_all in (True, False):
            with pytest.raises((zarrbits.Error, RuntimeError), match="not a regular file|refs"):
                zarr.open_group(zarrbits.open_references(refs, check=check_all), mode="r")["deflated"][...]
        with pytest.raises(zarrbits.Error, match="not a regular file"):
            zarrbits.to_icechunk(refs, tmp_path / "repository")
        os.mkfifo(tmp_path / "fifo.json")
        with pytest.raises(zarrbits.Error, match="not a regular file"):
            zarrbits.open_references(tmp_path / "fifo.json")


@pytest.mark.parametrize("link", [False, True])
def test_only_files_that_may_be_read(source, refs, tmp_path, link):
    """The list of sources is what its maker wrote, too: a file of known size and time is not read for that."""
    secret = tmp_path / "secret"
    secret.mkdir()
    shutil.copy(source, secret / "in.h5")
    (tmp_path / "given").mkdir()
    target = tmp_path / "given" / refs.name
    if link:  # within the folder by its name alone
        (tmp_path / "given/in.h5").symlink_to(secret / "in.h5")
    run("convert", "-q", "--virtual", secret / "in.h5", target)
    if link:
        for path in [target] if target.is_file() else target.rglob("*"):
            if path.is_file() and path.suffix != ".parq":
                path.write_text(path.read_text().replace(f"file://{secret}/in.h5", f"file://{tmp_path}/given/in.h5"))
    for check_all in (True, False):
        with pytest.raises(zarrbits.Error, match='secret/in.h5", which is not in their folder or below.*external='):
            zarr.open_group(zarrbits.open_references(target, check=check_all), mode="r")["deflated"][...]
    with pytest.raises(zarrbits.Error, match="not in their folder or below"):
        zarrbits.to_icechunk(target, tmp_path / "repository")
    for external in (secret, [tmp_path / "given", str(secret)], "all"):
        if not link:
            check(zarr.open_group(zarrbits.open_references(target, external=external), mode="r"), secret / "in.h5")
    if not link:
        zarrbits.to_icechunk(target, tmp_path / "repository", external=secret)
    with pytest.raises(zarrbits.Error, match="which is not a folder"):
        zarrbits.open_references(target, external=secret / "nothing")


def peak_of(*arguments):
    """The most memory that the command took, and its exit status."""
    with open(os.devnull, "w") as nothing:
        pid = os.posix_spawn(
            COMMAND,
            [COMMAND, *map(str, arguments)],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1), (os.POSIX_SPAWN_DUP2, nothing.fileno(), 2)],
        )
    _, status, usage = os.wait4(pid, 0)
    return usage.ru_maxrss << 10, os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("bomb", ["texts", "rows", "parts"])
def test_parquet_bombs(source, tmp_path, bomb):
    """Some kilobytes that say gigabytes: one text for each of many rows, rows without end, and many such files."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    refs = tmp_path / "refs.parquet"
    run("convert", "-q", "--virtual", source, refs)
    document = json.loads((refs / ".zmetadata").read_text())
    rows, parts, size = {"texts": (10000, 1, 1 << 20), "rows": (1_000_000, 1, 10), "parts": (1_000_000, 30, 10)}[bomb]
    document["record_size"] = max(rows, 10000)
    document["metadata"]["deflated/.zarray"]["shape"] = [rows * parts * 8, 30]
    document["metadata"]["deflated/zarr.json"]["shape"] = [rows * parts * 8, 30]
    del document["zarrbits"]["parts"]
    (refs / ".zmetadata").write_text(json.dumps(document))
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, "i4")), pa.array([bytes(size)]))
    for i in range(parts):
        parquet.write_table(
            pa.table({"raw": column}), refs / f"deflated/refs.{i}.parq", compression="zstd", write_statistics=False
        )
    assert sum(p.stat().st_size for p in refs.rglob("refs.*")) < 200_000
    for arguments in ("inspect", refs), ("verify", source, refs), ("convert", "-q", "--virtual", "--append", "t", source, refs):
        peak, status = peak_of(*arguments, *(["--memory", "256M"] if arguments[0] != "inspect" else []))
        assert status in (0, 1, 3) and peak < 1 << 30, (arguments, peak, status)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        zarr.open_group(zarrbits.open_references(refs, check=False), mode="r")["deflated"][:8]
    except Exception:
        pass  # refused, or contents that are not chunks
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB
