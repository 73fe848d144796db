# SPDX-License-Identifier: BSL-1.0
"""Every netCDF, AnnData, NWB and NeXus file of the corpus, through its own software before and after:
what xarray, anndata, PyNWB and nexusformat see in the file, they see in the store (NeXus has no reader of Zarr of its own:
zarr-python there);
netCDF and AnnData are also written again from both, alike.

Files are found by what h5py sees in them, whatever their names. ALLOWED lists the differences, each with its reason;
an entry whose file is equal fails, so that the list stays true. ZARRBITS_CORPUS says where the files are;
of netCDF and NeXus every third is tried, or as ZARRBITS_CORPUS_EVERY says."""

import base64
import functools
import glob
import os
import subprocess

import numpy as np
import pytest

from conftest import COMMAND
from conventions import CORPUS, as_in_zarr, at_least
from test_conventions_anndata import same_annotated
from test_conventions_nwb import Fields

pytestmark = pytest.mark.filterwarnings("ignore")

EVERY = int(os.environ.get("ZARRBITS_CORPUS_EVERY", "3"))
LARGEST = 1 << 24  # elements that are read of an array
NEW_REFERENCES = (
    "references to scales in the form of HDF5 1.12, which libhdf5 1.10 cannot list: `convert` names them and ends with 3"
)
ALLOWED = {
    "NCAS-CMS+pyfive/tests/data/dim_scales.hdf5": "libnetcdf gives a variable without scales dimensions of its group that happen to be as long",  # noqa: E501
    "OPENDAP+bes/modules/hdf5_handler/data/comp_complex.h5": "a compound in a compound: Zarr's struct has its bytes, and the notes its type",  # noqa: E501
    "OPENDAP+bes/modules/fileout_netcdf/data/ref_tst_compounds.nc": "a compound as _FillValue: xarray's zarr engine has none; it is a note",  # noqa: E501
    **{
        f"brtnfld+hdf5/hl/test/testfiles/test_ds_{n}.h5": NEW_REFERENCES for n in ("le_new_ref", "be_new_ref", "be_new_ref-32bit")
    },
    "fsspec+kerchunk/tests/air_linked.nc": "libnetcdf calls a dimension by another of the links to its scale",
}
# files of netCDF before 4.4.1 without dimensions do not say what they are
UNMARKED = {"ref_tst_compounds3.nc", "ref_tst_enum_data_1.nc"}
# their own software gives no values, or ends
NOT_READ = {
    "OPENDAP+bes/modules/fileout_netcdf/data/dim_scale_null_space.h5": "a segmentation fault in the reader",
}


def is_netcdf(root):
    """Marks of netCDF, CF and HDF-EOS5, or a dimension scale; and netCDF's suffix, for files of before 4.4.1."""
    import h5py

    if root.filename.endswith((".nc", ".nc4")) or {"HDFEOS", "HDFEOS INFORMATION"} & set(root) or "_NCProperties" in root.attrs:
        return True
    if "Conventions" in root.attrs and any(word in str(root.attrs["Conventions"]) for word in ("CF-", "ACDD", "COARDS")):
        return True
    return bool(root.visititems(lambda _, o: True if isinstance(o, h5py.Dataset) and h5py.h5ds.is_scale(o.id) else None))


def kind_of(path):
    """The community of a file; None where it has none, is damaged, or no HDF5 (tests/convert has these)."""
    import h5py

    try:
        with h5py.File(path, "r") as root:
            tables = {k for k, v in root.items() if isinstance(v, h5py.Dataset)}
            if root.attrs.get("encoding-type") in ("anndata", b"anndata") or {"obs", "var"} <= tables or path.endswith(".h5ad"):
                return "anndata"
            if "nwb_version" in root.attrs:
                return "nwb"
            if "NX_class" in root.attrs or any("NX_class" in v.attrs for v in root.values() if isinstance(v, h5py.Group)):
                return "nexus"
            return "netcdf" if is_netcdf(root) else None
    except Exception:  # noqa: BLE001
        return None


@functools.cache
def files():
    found = {}
    for path in sorted(glob.glob(f"{CORPUS}/**/*", recursive=True)) if CORPUS else []:
        if os.path.isfile(path) and (kind := kind_of(path)):
            found.setdefault(kind, []).append(path)
    return found


def of(kind):
    """The files of a community, each marked by what is said of it above."""
    found = []
    for path in files().get(kind, [])[:: EVERY if kind in ("netcdf", "nexus") else 1]:
        name = os.path.relpath(path, CORPUS)
        marks = [pytest.mark.xfail(reason=ALLOWED[name], strict=True)] if name in ALLOWED else []
        marks += [pytest.mark.skip(NOT_READ[name])] if name in NOT_READ else []
        found.append(pytest.param(path, id=name, marks=marks))
    return found or [pytest.param(None, marks=pytest.mark.skip("ZARRBITS_CORPUS is not set"))]


def convert(source, store, *options):
    """3: something is lost, such as a file that a link leads to; the comparison says what."""
    done = subprocess.run([COMMAND, "convert", source, store, "--quiet", *options], capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 3), done.stderr
    return str(store)


def trees(xr, source, **options):
    """What xarray reads of a file, by each of its readers: they number dimensions without a name, and align compounds,
    differently."""
    read, why = [], []
    for engine, more in ("netcdf4", {}), ("h5netcdf", {"phony_dims": "access"}):
        try:
            with xr.open_datatree(source, engine=engine, **more, **options) as tree:
                read.append(tree.load())
        except Exception as e:  # noqa: BLE001
            why.append(f"{engine}: {e}")
    return read, why


def difference(xr, trees, b):
    """Nothing if the store is identical to one of them; else how it differs from the first."""
    said = []
    for a in trees:
        try:
            xr.testing.assert_identical(a, b)
            return ""
        except AssertionError as e:
            said.append(str(e))
    return said[0]


@pytest.mark.parametrize("source", of("netcdf"))
def test_netcdf(source, tmp_path):
    xr = at_least("xarray", (2025, 0))
    at_least("zarr", (3, 4))
    why, store = [], tmp_path / "store.zarr"
    for decode in True, False:
        read, refused = trees(xr, source, decode_cf=decode)
        if not read:
            why += refused
            continue
        if not store.exists():
            convert(source, store, *(["--convention", "netcdf"] if os.path.basename(source) in UNMARKED else []))
        with xr.open_datatree(store, engine="zarr", decode_cf=decode) as b:
            b = b.load()
        assert not (d := difference(xr, [a if decode else as_in_zarr(a) for a in read], b)), d
        try:
            read[0].to_netcdf(tmp_path / "of_file.nc")
        except Exception as e:  # noqa: BLE001
            why.append(f"not written again: {e}")
            continue
        b.to_netcdf(tmp_path / "of_store.nc")
        of_file, of_store = (trees(xr, tmp_path / f"of_{x}.nc", decode_cf=False)[0] for x in ("file", "store"))
        assert not (d := difference(xr, [as_in_zarr(of_file[0])], as_in_zarr(of_store[0]))), d
    print("\n".join(why))
    if not store.exists():
        pytest.skip("xarray reads it neither with netCDF4 nor with h5netcdf: " + " ".join("; ".join(why).split())[:200])


@pytest.mark.parametrize("source", of("anndata"))
def test_anndata(source, tmp_path):
    anndata = at_least("anndata", (0, 13))
    store = convert(source, tmp_path / "store.zarr")
    same_annotated(source, store)
    anndata.read_zarr(store).write_h5ad(tmp_path / "again.h5ad")
    same_annotated(tmp_path / "again.h5ad", store)


@pytest.mark.parametrize("source", of("nwb"))
def test_nwb(source, tmp_path):
    at_least("hdmf-zarr", (0, 14))
    import h5py
    from hdmf_zarr import NWBZarrIO
    from pynwb import NWBHDF5IO

    store = convert(source, tmp_path / "store.zarr")
    with h5py.File(source) as f:  # before NWB 2.1 objects have no id in the file, so that each reading gives them another
        fields = Fields(identified="object_id" in f.attrs)
    with NWBHDF5IO(source, "r", load_namespaces=True) as a, NWBZarrIO(store, "r", load_namespaces=True) as b:
        fields.compare(a.read(), b.read())
    assert not fields.different
    assert len(fields.seen) > 0


def text(value):
    """Without the spaces around it, which nexusformat takes away; like it, it takes what is not UTF-8 for Latin-1."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            value = value.decode("latin-1")
    return str(value).strip()


def plain(value):
    """A list of one is its element."""
    value = np.asarray(getattr(value, "nxvalue", value))
    if value.dtype.kind in "SOUT":
        value = np.array([text(x) for x in value.ravel()], dtype=object).reshape(value.shape)
    return value.reshape(()) if value.size == 1 else value


def same(a, b):
    a, b = plain(a), plain(b)
    if a.dtype.kind == "f" and b.dtype.kind in "fO":  # NaN is a word in attributes
        b = b.astype(a.dtype)
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def same_attribute(source, path, name, value, stored):
    """Allowed: text that is not UTF-8 is base64 in attributes of the store. nexusformat guesses its encoding:
    its bytes are compared."""
    if not isinstance(stored, dict) or set(stored) != {"base64"}:
        return same(value, stored)
    import h5py

    with h5py.File(source) as f:
        return bytes(f["/" + path].attrs[name]) == base64.b64decode(stored["base64"])


@pytest.mark.parametrize("source", of("nexus"))
def test_nexus(source, tmp_path):
    nx = pytest.importorskip("nexusformat.nexus")
    zarr = at_least("zarr", (3, 4))
    store = zarr.open_group(convert(source, tmp_path / "store.zarr"), mode="r")
    different, compared = [], 0
    with nx.nxload(source, "r") as root:
        for node in root.walk():
            path = node.nxpath.strip("/")
            if isinstance(node, nx.NXlink) and node.is_external() and not os.path.exists(node.nxfilename):
                continue  # what it leads to is not there
            if path and path not in store:
                different.append((path, "is not in the store"))
                continue
            there = store[path] if path else store
            for name, value in node.attrs.items():
                compared += 1
                if name not in there.attrs or not same_attribute(source, path, name, value, there.attrs[name]):
                    different.append((path, name, value, there.attrs.get(name)))
            if isinstance(node, nx.NXfield) and there.size <= LARGEST:
                compared += 1
                if not same(node.nxdata, there[...]):
                    different.append((path, plain(node.nxdata), plain(there[...])))
    assert not different
    assert compared
