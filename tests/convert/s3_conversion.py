# SPDX-License-Identifier: BSL-1.0
"""Conversions into the small server of s3_server.py, and what they have to leave there."""

import glob
import os
import pathlib
import shutil
import tempfile

import h5py
import numpy as np

import harness
from harness import PATIENCE, contents
from s3_server import BUCKET, KEY, SECRET

TARGET = f"s3://{BUCKET}/out.zarr"
MARK = "out.zarr/.zarrbits-unfinished/"
GROUP = b'{"zarr_format": 3, "node_type": "group"}'


def environment(**more):
    clouds = ("AWS_", "GOOGLE_", "GS_", "GCE_", "CLOUDSDK_", "STORAGE_EMULATOR_", "AZURE_", "AZURITE_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(clouds) and "proxy" not in k.lower()}
    return (
        clean
        | {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}
        | {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:1"}
        | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "HOME": "/nonexistent", "ZARRBITS_S3_PATIENCE": PATIENCE}
        | more
    )


def run(*arguments, **variables):
    return harness.run(*arguments, status=None, env=environment(**variables), timeout=600)


def children(pid):
    return [int(c) for task in glob.glob(f"/proc/{pid}/task/*/children") for c in pathlib.Path(task).read_text().split()]


class S3:
    """A source, a large one and another one, and their stores in a directory, to compare with."""

    @classmethod
    def teardown_class(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def setup_class(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.source, cls.large, cls.other = (cls.folder / n for n in ("in.h5", "large.h5", "other.h5"))
        for path, value in ((cls.source, 1), (cls.other, 2)):
            with h5py.File(path, "w") as f:
                f.create_dataset("grp/d", data=np.arange(40, dtype="f4") * value, chunks=(2,))
                f.create_dataset("w é+&=~*'()% y", data=np.arange(64, dtype="i4"), chunks=(16,), compression="gzip")
                f["grp"].attrs["x"] = value
        with h5py.File(cls.large, "w") as f:  # goes in two parts
            f.create_dataset("big", data=np.random.default_rng(1).integers(0, 255, 17 << 20, dtype="u1"), chunks=(17 << 20,))
        cls.good = {}
        for path in (cls.source, cls.large, cls.other):
            assert run("convert", "-q", path, cls.folder / "out.zarr").returncode == 0
            cls.good[path] = contents(cls.folder / "out.zarr")
            shutil.rmtree(cls.folder / "out.zarr")

    def convert(self, server, *options, source=None, target=TARGET, **variables):
        return run("convert", "-q", source or self.source, target, "--endpoint", server.url, *options, **variables)

    def sentence(self, done, *words, status=1):
        assert done.returncode == status, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        for word in words:
            assert word in done.stderr

    def whole(self, server, source=None):
        assert server.wrong_signatures == []
        assert server.content("out.zarr") == self.good[source or self.source]
