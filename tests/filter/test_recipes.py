# SPDX-License-Identifier: BSL-1.0
"""Runs the recipes of docs/guide/hdf5.md that have a name."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
env = {
    **os.environ,
    "HDF5_PLUGIN_PATH": os.environ["ZARRBITS_PLUGINS"],
    "PYTHONPATH": str(ROOT / "python"),
    "PYTHONDONTWRITEBYTECODE": "1",
}
recipes = re.findall(r"<!-- recipe: (\S+) -->\n```\w+\n(.*?)```", (ROOT / "docs/guide/hdf5.md").read_text(), re.S)

CHECK = """
import h5py
wanted = {"helper.h5": ["mask", "camera", "x"], "h5py.h5": ["mask", "camera", "x"], "out.h5": ["mask", "camera"], "again.h5": ["mask", "camera"], "copied.h5": ["camera"],
          "program.h5": ["camera"], "one.nc": ["camera"], "three.nc": ["camera"]}
for name, datasets in wanted.items():
    with h5py.File(name) as f:
        for d in datasets:
            dcpl = f[d].id.get_create_plist()
            assert dcpl.get_nfilters() > 0 and dcpl.get_filter(0)[0] in (45429, 45438), (name, d)
            mask, chunk = f[d].id.read_direct_chunk((0,) * f[d].ndim)
            assert mask == 0, (name, d)
            f[d][...]
for name in ("plain.h5", "two.nc"):
    with h5py.File(name) as f:
        assert f["camera"].id.get_create_plist().get_nfilters() == 0, name
"""  # noqa: E501


@pytest.mark.skipif(
    (os.environ["ZARRBITS_PACKBITS_ID"], os.environ["ZARRBITS_BYTES_ID"]) != ("45429", "45438"),
    reason="the recipes have the usual filter ids, and the plugins have others",
)
def test_each_recipe_runs(folder):
    assert [name for name, _ in recipes] == ["helper.py", "plain.py", "h5repack.sh", "program.c", "netcdf.sh"], recipes

    def run(*command):
        r = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
        assert r.returncode == 0, f"{command}: exit {r.returncode}\n{r.stdout}{r.stderr}"

    for name, text in recipes:
        place = pathlib.Path(folder, name)
        place.write_text(text)
        if name.endswith(".py"):
            run(sys.executable, name)
        elif name.endswith(".sh"):
            run("bash", "-euo", "pipefail", name)
        else:
            flags = subprocess.run(
                ["sh", "-c", "pkg-config --cflags --libs hdf5-serial || pkg-config --cflags --libs hdf5"],
                capture_output=True,
                text=True,
            ).stdout.split()
            run("cc", "-Wall", "-Werror", f"-I{ROOT}/include", "-o", "program", name, *flags)
            run("./program")
    run(sys.executable, "-c", CHECK)
