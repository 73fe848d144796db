# SPDX-License-Identifier: BSL-1.0
"""netCDF-3 files by ncgen of CDL. netCDF-C's nccopy makes netCDF-4 of them, which h5py reads: what they have."""

import h5py

from harness import execute

KINDS = ["classic", "64-bit offset", "64-bit data"]


def ncgen(path, cdl, kind):
    path.with_suffix(".cdl").write_text(cdl, encoding="utf-8")
    execute("ncgen", "-k", kind, "-o", path, path.with_suffix(".cdl"))
    return path


def netcdf4_values(source, path):
    """What netCDF-C reads, by the names of the variables."""
    execute("nccopy", "-k", "nc4", source, path)
    with h5py.File(path) as f:
        names = [n for n in f if b"This is a netCDF dimension but not" not in f[n].attrs.get("NAME", b"")]
        return {n.removeprefix("_nc4_non_coord_"): f[n][()] for n in names}
