# SPDX-License-Identifier: BSL-1.0
"""Random parts of real netCDF files, to Zarr and back: netCDF4-python sees each variable as in the file that it is from.
ZARRBITS_CORPUS says where the files are; cases.py has the variables that ask for more cases."""

import os
import pathlib

import numpy as np
import pytest

from cases import each_case
from harness import run

netCDF4 = pytest.importorskip("netCDF4")
pytestmark = pytest.mark.filterwarnings("ignore")
CORPUS = os.environ.get("ZARRBITS_CORPUS")
FILES = [
    "ugrid_test_05.nc",
    "atomicTypes.nc",
    "range_test.nc",
    "issue23_A.nc",
    "nc4_strings.nc",
    "feb.nc4",
    "coads_climatology_subset.nc",
    "air.nc",
    "nc4_unlimited_1_big_comp.nc",
    "nc4_group_atomic_fonc.nc4",
    "noy_AERmonZ_UKESM1-0-LL_piControl_r1i1p1f2_gnz_200001-200012.nc",
]


def variables(group):
    for v in group.variables.values():
        yield f"{group.path.rstrip('/')}/{v.name}", v
    for inner in group.groups.values():
        yield from variables(inner)


def seen(v):
    """What netCDF4-python shows of a variable."""
    v.set_auto_maskandscale(False)
    v.set_auto_chartostring(False)
    values = np.asarray(v[...])
    plain = values.tolist() if values.dtype.kind in "OSU" else values.tobytes()
    attributes = {name: v.getncattr(name) for name in v.ncattrs()}
    return (
        str(v.dtype),
        [(d.name, len(d), d.isunlimited()) for d in v.get_dims()],
        plain,
        {name: (np.asarray(a).dtype.str, np.asarray(a).tolist()) for name, a in attributes.items()},
    )


def differing(a, b):
    names = ("type", "dimensions", "values", "attributes")
    return [f"{name}: {x!s:.300} {y!s:.300}" for name, x, y in zip(names, a, b) if repr(x) != repr(y)]


def check_part(dice, folder):
    name = dice.choice(FILES)
    source = str(next(p for p in sorted(pathlib.Path(CORPUS).rglob(name))))
    store, back = os.path.join(folder, "s.zarr"), os.path.join(folder, "b.nc")
    with netCDF4.Dataset(source) as f:
        f.set_auto_mask(False)
        all_of = [path for path, _ in variables(f)]
    part = dice.sample(all_of, dice.randint(1, len(all_of)))
    chosen = [word for path in part for word in ("--include", path)]
    way = dice.choice(["convert", "export"])  # which of them chooses
    run("convert", "-q", *(chosen if way == "convert" else []), source, store, status=(0, 3))
    told = run("export", "-q", *(chosen if way == "export" else []), store, back, status=(0, 3))
    with netCDF4.Dataset(source) as a, netCDF4.Dataset(back) as b:
        wanted, have = dict(variables(a)), dict(variables(b))
        assert set(have) == set(part), (source, part, told.stderr)
        for path in part:
            different = differing(seen(wanted[path]), seen(have[path]))
            assert not different, (source, way, part, path, different, told.stderr)


@pytest.mark.skipif(not CORPUS, reason="ZARRBITS_CORPUS is not set")
def test_random_parts_of_netcdf_files(tmp_path):
    each_case(str(tmp_path), 25, check_part)
