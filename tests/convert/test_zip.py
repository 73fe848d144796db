# SPDX-License-Identifier: BSL-1.0
"""Stores in one .zip file, read by Python's zipfile: the members are the files of a directory.

ZARRBITS_LARGE=1 adds a file of more than 4 GiB, which takes a minute and the room."""

import os
import zipfile

import h5py
import numpy as np
import pytest

from harness import contents, run


class TestZip:
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path):
        self.folder = tmp_path
        self.source = self.folder / "in.h5"

    def converted(self, *options):
        target = self.folder / "out.zip"
        run("convert", "-q", self.source, target, *options)
        return zipfile.ZipFile(target)

    def small(self):
        with h5py.File(self.source, "w") as f:
            f.create_dataset("grp/d", data=np.arange(100, dtype="f4"), chunks=(10,), compression="gzip")
            f["ü"] = np.arange(3)
            f["text"] = np.array(["a", "b"], dtype=h5py.string_dtype())

    def test_members_are_what_a_directory_holds(self):
        self.small()
        with self.converted() as z:
            run("convert", "-q", self.source, self.folder / "out.zarr")
            files = contents(self.folder / "out.zarr")
            assert {n: z.read(n) for n in z.namelist()} == files
            assert z.namelist() == sorted(files)
            assert all(i.compress_type == zipfile.ZIP_STORED and i.date_time == (1980, 1, 1, 0, 0, 0) for i in z.infolist())
        assert sorted(p.name for p in self.folder.iterdir()) == ["in.h5", "out.zarr", "out.zip"]

    def test_the_same_bytes_each_time_and_replaced_only_when_asked(self):
        self.small()
        self.converted().close()
        first = (self.folder / "out.zip").read_bytes()
        done = run("convert", "-q", self.source, self.folder / "out.zip", status=1)
        assert "--overwrite" in done.stderr
        self.converted("--overwrite").close()
        assert (self.folder / "out.zip").read_bytes() == first

    def test_what_is_no_zip_is_not_replaced(self):
        self.small()
        (self.folder / "out.zip").write_text("precious")
        run("convert", "-q", self.source, self.folder / "out.zip", "--overwrite", status=1)
        assert (self.folder / "out.zip").read_text() == "precious"
        for name in ("precious", "zarr.json", "a/zarr.json"):  # an archive, but no store
            with zipfile.ZipFile(self.folder / "out.zip", "w") as z:
                z.writestr(name, "precious")
            before = (self.folder / "out.zip").read_bytes()
            run("convert", "-q", self.source, self.folder / "out.zip", "--overwrite", status=1)
            assert (self.folder / "out.zip").read_bytes() == before

    def test_a_failed_conversion_leaves_nothing(self):
        with h5py.File(self.source, "w") as f:
            d = f.create_dataset("d", (20,), "i4", chunks=(10,), compression="gzip")
            d.id.write_direct_chunk((10,), b"no zlib stream")
        run("convert", "-q", self.source, self.folder / "out.zip", status=1)
        assert [p.name for p in self.folder.iterdir()] == ["in.h5"]

    def test_what_a_killed_run_left_is_no_obstacle(self):
        self.small()
        (self.folder / "out.zip.zarrbits-unfinished").write_bytes(b"x" * 1000000)
        with self.converted() as z:
            assert z.testzip() is None
        assert not (self.folder / "out.zip.zarrbits-unfinished").exists()

    def test_more_than_65535_members(self):
        with h5py.File(self.source, "w") as f:
            f.create_dataset("d", data=np.arange(66000, dtype="u4"), chunks=(1,))
        with self.converted() as z:
            assert len(z.namelist()) == 66002
            assert [int.from_bytes(z.read(f"d/c/{i}"), "little") for i in (0, 1, 65534, 65535, 65999)] == [
                0,
                1,
                65534,
                65535,
                65999,
            ]

    @pytest.mark.skipif(not (os.environ.get("ZARRBITS_LARGE")), reason="ZARRBITS_LARGE is not set")
    def test_more_than_4_gib_and_65535_members(self):
        count, size = 70000, 1 << 16
        with h5py.File(self.source, "w") as f:
            d = f.create_dataset("d", (count * size,), "u1", chunks=(size,))
            for i in range(0, count, 1000):
                d[i * size : (i + 1000) * size] = np.repeat(np.arange(i, i + 1000).astype("u1"), size)
        with self.converted() as z:
            assert (self.folder / "out.zip").stat().st_size > 1 << 32
            assert len(z.namelist()) == count + 2
            assert z.getinfo("zarr.json").header_offset > 1 << 32
            for i in (0, 1, 65534, 65535, 65536, 69999):  # read() checks their CRC, too
                assert z.read(f"d/c/{i}") == bytes([i % 256]) * size
