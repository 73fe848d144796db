# SPDX-License-Identifier: BSL-1.0
"""Stores in one .zip file, read by Python's zipfile: the members are what a directory holds.

ZARRBITS_LARGE=1 adds a file of more than 4 GiB, which takes a minute and the room."""
import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

import h5py
import numpy as np

COMMAND = os.environ["ZARRBITS_COMMAND"]


def convert(*arguments):
    return subprocess.run([COMMAND, "convert", "-q", *map(str, arguments)], capture_output=True, text=True)


class Zip(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.source = self.folder / "in.h5"

    def converted(self, *options):
        target = self.folder / "out.zip"
        done = convert(self.source, target, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return zipfile.ZipFile(target)

    def small(self):
        with h5py.File(self.source, "w") as f:
            f.create_dataset("grp/d", data=np.arange(100, dtype="f4"), chunks=(10,), compression="gzip")
            f["ü"] = np.arange(3)
            f["text"] = np.array(["a", "b"], dtype=h5py.string_dtype())

    def test_members_are_what_a_directory_holds(self):
        self.small()
        with self.converted() as z:
            self.assertEqual(convert(self.source, self.folder / "out.zarr").returncode, 0)
            files = {str(p.relative_to(self.folder / "out.zarr")): p.read_bytes() for p in (self.folder / "out.zarr").rglob("*") if p.is_file()}
            self.assertEqual({n: z.read(n) for n in z.namelist()}, files)
            self.assertEqual(z.namelist(), sorted(files))
            self.assertTrue(all(i.compress_type == zipfile.ZIP_STORED and i.date_time == (1980, 1, 1, 0, 0, 0) for i in z.infolist()))
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["in.h5", "out.zarr", "out.zip"])

    def test_the_same_bytes_each_time_and_replaced_only_when_asked(self):
        self.small()
        self.converted().close()
        first = (self.folder / "out.zip").read_bytes()
        done = convert(self.source, self.folder / "out.zip")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--overwrite", done.stderr)
        self.converted("--overwrite").close()
        self.assertEqual((self.folder / "out.zip").read_bytes(), first)

    def test_what_is_no_zip_is_not_replaced(self):
        self.small()
        (self.folder / "out.zip").write_text("precious")
        self.assertEqual(convert(self.source, self.folder / "out.zip", "--overwrite").returncode, 1)
        self.assertEqual((self.folder / "out.zip").read_text(), "precious")
        for name in ("precious", "zarr.json", "a/zarr.json"):  # an archive, but no store
            with zipfile.ZipFile(self.folder / "out.zip", "w") as z:
                z.writestr(name, "precious")
            before = (self.folder / "out.zip").read_bytes()
            self.assertEqual(convert(self.source, self.folder / "out.zip", "--overwrite").returncode, 1)
            self.assertEqual((self.folder / "out.zip").read_bytes(), before)

    def test_a_failed_conversion_leaves_nothing(self):
        with h5py.File(self.source, "w") as f:
            d = f.create_dataset("d", (20,), "i4", chunks=(10,), compression="gzip")
            d.id.write_direct_chunk((10,), b"no zlib stream")
        self.assertEqual(convert(self.source, self.folder / "out.zip").returncode, 1)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["in.h5"])

    def test_what_a_killed_run_left_is_no_obstacle(self):
        self.small()
        (self.folder / "out.zip.zarrbits-unfinished").write_bytes(b"x" * 1000000)
        with self.converted() as z:
            self.assertIsNone(z.testzip())
        self.assertFalse((self.folder / "out.zip.zarrbits-unfinished").exists())

    def test_more_than_65535_members(self):
        with h5py.File(self.source, "w") as f:
            f.create_dataset("d", data=np.arange(66000, dtype="u4"), chunks=(1,))
        with self.converted() as z:
            self.assertEqual(len(z.namelist()), 66002)
            self.assertEqual([int.from_bytes(z.read(f"d/c/{i}"), "little") for i in (0, 1, 65534, 65535, 65999)], [0, 1, 65534, 65535, 65999])

    @unittest.skipUnless(os.environ.get("ZARRBITS_LARGE"), "ZARRBITS_LARGE is not set")
    def test_more_than_4_gib_and_65535_members(self):
        count, size = 70000, 1 << 16
        with h5py.File(self.source, "w") as f:
            d = f.create_dataset("d", (count * size,), "u1", chunks=(size,))
            for i in range(0, count, 1000):
                d[i * size:(i + 1000) * size] = np.repeat(np.arange(i, i + 1000).astype("u1"), size)
        with self.converted() as z:
            self.assertGreater((self.folder / "out.zip").stat().st_size, 1 << 32)
            self.assertEqual(len(z.namelist()), count + 2)
            self.assertGreater(z.getinfo("zarr.json").header_offset, 1 << 32)
            for i in (0, 1, 65534, 65535, 65536, 69999):  # read() checks their CRC, too
                self.assertEqual(z.read(f"d/c/{i}"), bytes([i % 256]) * size)


if __name__ == "__main__":
    unittest.main(verbosity=2)
