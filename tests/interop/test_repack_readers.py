# SPDX-License-Identifier: BSL-1.0
"""Files of others, repacked, through the software of their communities: xarray with both engines, netCDF-C's ncdump and nccopy,
NCO and CDO where they are installed, anndata, PyNWB. What they read in the file, they read in its new form.

ZARRBITS_CORPUS says where the files are; of each kind every third is tried, or as ZARRBITS_CORPUS_EVERY says, with the layouts
in turn."""

import os
import re
import shutil
import subprocess

import pytest

from harness import run
from test_conventions_anndata import annotated, equal_annotated
from test_corpus_roundtrips import CORPUS, EVERY, files

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set"),
]
LAYOUTS = ["cmip7", "cloud", "asis"]
# attributes whose order of creation the file does not keep are where they fit in the object's header
UNORDERED = {"dim_scale2_name.h5"}
NOT_READ = {"dim_scale_null_space.h5"}  # a segmentation fault in netCDF-C


def repacked(kind, tmp_path):
    """Pairs of a file and of its new form, but for those that repack refuses with a sentence."""
    for i, source in enumerate(files().get(kind, [])[::EVERY]):
        if os.path.basename(source) in NOT_READ:
            continue
        target = str(tmp_path / ("out" + os.path.splitext(source)[1]))
        done = run("repack", "-q", "--overwrite", "--layout", LAYOUTS[i % 3], source, target, status=(0, 1, 3))
        if done.returncode != 1:
            yield source, target
        else:
            assert done.stderr.startswith("zarrbits: ") and done.stderr.count("\n") == 1, (source, done.stderr)


def printed(*command):
    """What a program prints of a file, without the file's name; None if it cannot read it."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.partition("\n")[2] if done.returncode == 0 else None


def without_chunks(text):
    """ncks prints the shapes of chunks, which repack changes."""
    return text and re.sub(r", chunksize = \d+", "", text)


def test_netcdf(tmp_path):
    xr = pytest.importorskip("xarray")
    wrong, compared = [], {"ncdump": 0, "nccopy": 0, "ncks": 0, "cdo": 0, "h5netcdf": 0, "netcdf4": 0}

    def compare(program, source, wanted, have):
        if wanted is None:
            return
        compared[program] += 1
        if os.path.basename(source) in UNORDERED:
            wanted, have = sorted(wanted.splitlines()), sorted(have.splitlines())
        if wanted != have:
            wrong.append((source, program))

    for source, target in repacked("netcdf", tmp_path):
        copies = [str(tmp_path / f"copy{i}.nc") for i in range(2)]
        if shutil.which("ncdump"):
            text = printed("ncdump", source)
            compare("ncdump", source, text, printed("ncdump", target))
            if text is not None and printed("nccopy", source, copies[0]) is not None:
                printed("nccopy", target, copies[1])
                compare("nccopy", source, printed("ncdump", copies[0]), printed("ncdump", copies[1]))
        if shutil.which("ncks"):
            compare("ncks", source, *(without_chunks(printed("ncks", "--trd", name)) for name in (source, target)))
        if shutil.which("cdo") and printed("cdo", "-s", "sinfo", source) is not None:
            compare("cdo", source, printed("cdo", "-s", "diffn", source, source), printed("cdo", "-s", "diffn", source, target))
        for engine in ("h5netcdf", "netcdf4"):
            try:
                before = xr.open_dataset(source, engine=engine, decode_cf=False).load()
            except Exception:  # noqa: BLE001  what the engine cannot read
                continue
            with before, xr.open_dataset(target, engine=engine, decode_cf=False) as after:
                compared[engine] += 1
                try:
                    xr.testing.assert_identical(before, after)
                except AssertionError as e:
                    wrong.append((source, engine, str(e)[:300]))
    print(compared)
    assert not wrong, wrong
    assert compared["h5netcdf"] > 0 and compared["netcdf4"] > 0


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_anndata(tmp_path, layout, compression):
    anndata = pytest.importorskip("anndata")
    sources = [str(tmp_path / f"{kind}.h5ad") for kind in ("dense", "csr", "csc")]
    for source in sources:
        annotated(os.path.basename(source).removesuffix(".h5ad")).write_h5ad(source, compression=compression)
    for source in sources + files().get("anndata", []):
        run("repack", "-q", "--overwrite", "--layout", layout, source, tmp_path / "out.h5ad")
        equal_annotated(anndata.read_h5ad(source), anndata.read_h5ad(tmp_path / "out.h5ad"))
        run("verify", source, tmp_path / "out.h5ad")


def test_nwb(tmp_path):
    pynwb = pytest.importorskip("pynwb")
    from test_export_nwb import plain

    compared = 0

    def read(name):
        with pynwb.NWBHDF5IO(name, "r") as io:
            return plain(io.read(), {})

    for source, target in repacked("nwb", tmp_path):
        try:
            before = read(source)
            if read(source) != before:  # old files have no identifiers of objects, and get others each time
                continue
        except Exception:  # noqa: BLE001
            continue
        assert read(target) == before, source
        compared += 1
    assert compared > 0
