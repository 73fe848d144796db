# SPDX-License-Identifier: BSL-1.0
"""Sources that cannot be read everywhere: values beyond the end of the file, calls that fail once,
a file that is truncated or written to meanwhile. A run ends with 1 and no store, or with the store that an undisturbed one makes;
never with zeros in it.

ZARRBITS_EVERY=1: each of the reading calls in turn fails; otherwise a sample of them.
"""

import os
import pathlib
import shutil
import struct
import subprocess
import sys

import h5py
import numpy as np
import pytest

from harness import contents, run

COMMAND, HERE = os.environ["ZARRBITS_COMMAND"], pathlib.Path(__file__).parent
EVERY = bool(os.environ.get("ZARRBITS_EVERY"))
SAMPLE = 12
VALUES = np.arange(1, 20001, dtype="<i4")


class TestFailingReads:
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path):
        self.folder = tmp_path
        self.source, self.store = self.folder / "in.h5", self.folder / "out.zarr"

    def convert(self, *options, environment=None, fresh=True):
        if fresh:
            shutil.rmtree(self.store, ignore_errors=True)
        return run(
            "convert",
            self.source,
            self.store,
            "-q",
            "--threads",
            "1",
            *options,
            status=None,
            env=os.environ | (environment or {}),
        )

    def write(self):
        with h5py.File(self.source, "w") as f:
            for i in range(4):
                g = f.create_group(f"group{i}")
                g.attrs["note"] = "x" * 100
                g["contiguous"] = VALUES.reshape(200, 100)
                g["turned"] = VALUES.astype("f8").reshape(20, 1000)
                g.create_dataset("deflate", data=VALUES, chunks=(7000,), compression="gzip")
                g.create_dataset("plain", data=VALUES, chunks=(7000,))
                g["strings"] = np.array([f"string {k}" for k in range(50)], dtype=h5py.string_dtype())
                g.create_dataset("squeezed", data=VALUES, chunks=(5000,), scaleoffset=0)
                g["pair"] = np.zeros(300, "i4,f8")

    def test_values_beyond_the_end_of_the_file(self):
        """Contiguous ones, and a chunk: the superblock says that the file is longer than it is, or the address is beyond both."""
        for chunks in None, (5000,):
            with h5py.File(self.source, "w") as f:
                d = f.create_dataset("x", data=VALUES, chunks=chunks)
                f.flush()
                address = d.id.get_chunk_info(2).byte_offset if chunks else d.id.get_offset()
            whole = self.source.read_bytes()
            size = len(whole)
            assert whole[40:48] == struct.pack("<Q", size)  # the end of the file, as the superblock has it
            for name, at in ("half", size - 10000), ("behind", size), ("far", 1 << 40):
                data = bytearray(whole)
                place = data.index(struct.pack("<Q", address), 96)
                data[place : place + 8] = struct.pack("<Q", at)
                for end in size, 1 << 41:
                    data[40:48] = struct.pack("<Q", end)
                    self.source.write_bytes(data)
                    for options in [], ["--profile", "recode"], ["--chunk", "3000,"], ["--shard", "1M"], ["--keep-going"]:
                        done = self.convert(*options)
                        assert done.returncode in (1, 3), done.stderr
                        if self.store.exists():  # what is there are values
                            for path in self.store.rglob("c/*"):
                                if path.is_file():
                                    assert b"\0" * 64 not in path.read_bytes()

    def disturbed(self, how, call, *options):
        return self.convert(
            *options,
            environment={
                "LD_PRELOAD": str(self.library),
                "FAILING_FILE": str(self.source),
                "FAILING_CALL": str(call),
                "FAILING_HOW": how,
            },
        )

    def preload(self):
        self.library = self.folder / "failing_reads.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, HERE / "failing_reads.c", "-ldl"], check=True)

    @pytest.mark.skipif(not (sys.platform == "linux" and shutil.which("cc")), reason="no compiler, or no LD_PRELOAD")
    @pytest.mark.parametrize("absolute", [False, True])
    @pytest.mark.parametrize("verb", ["convert", "plan"])
    def test_of_many_files_the_one_that_crashes_the_reader_is_named(self, verb, absolute):
        self.preload()
        names = [f"file{i}.h5" for i in range(40)]  # enough for several processes that read their metadata
        for i, name in enumerate(names):
            with h5py.File(self.folder / name, "w") as f:
                f.create_dataset("x", data=VALUES[:100] + 1000 * i, chunks=(10,), maxshape=(None,))
        if absolute:
            names = [str(self.folder / name) for name in names]
        for call in 1, 3:
            environment = os.environ | {
                "LD_PRELOAD": str(self.library),
                "FAILING_FILE": str(self.folder / "file2.h5"),
                "FAILING_CALL": str(call),
                "FAILING_HOW": "crash",
            }
            done = run(
                verb,
                "--concat",
                "/x:0",
                *names,
                *(["out.zarr"] if verb == "convert" else []),
                status=None,
                cwd=self.folder,
                env=environment,
            )
            assert done.returncode == 1 and "crashed" in done.stderr and f'of "{names[2]}"' in done.stderr, done.stderr
            assert (
                not any(f'"{name}"' in done.stderr for name in names if name != names[2])
                and not (self.folder / "out.zarr").exists()
            )

    def virtual(self):
        part = self.folder / "part.h5"
        with h5py.File(part, "w") as f:
            f.create_dataset("x", data=VALUES[:1000], chunks=(100,))
        with h5py.File(self.source, "w") as f:
            layout = h5py.VirtualLayout((1000,), "i4")
            layout[:] = h5py.VirtualSource("part.h5", "x", (1000,))
            f.create_virtual_dataset("x", layout, fillvalue=-1)
        return part

    @pytest.mark.skipif(not (sys.platform == "linux" and shutil.which("cc")), reason="no compiler, or no LD_PRELOAD")
    def test_a_source_of_a_virtual_dataset_that_cannot_be_opened(self):
        """libhdf5 takes it for missing, and fills with the fill value."""
        self.preload()
        part = self.virtual()
        assert self.convert().returncode == 0
        disturbed = {"LD_PRELOAD": str(self.library), "FAILING_FILE": str(part), "FAILING_HOW": "open"}
        done = run("verify", self.source, self.store, status=None, env=os.environ | disturbed)
        assert (
            done.returncode == 1 and "part.h5" in done.stdout + done.stderr and "Input/output error" in done.stdout + done.stderr
        ), done
        done = self.convert(environment=disturbed)
        assert (
            done.returncode == 1 and "part.h5" in done.stderr and "Input/output error" in done.stderr and not self.store.exists()
        ), done

    def test_a_source_of_a_virtual_dataset_that_is_no_hdf5_file(self):
        """Only one that is not there reads as the fill value."""
        part = self.virtual()
        whole = part.read_bytes()
        for content in whole[:100], b"", b"x" * 5000:
            part.write_bytes(content)
            done = self.convert("--json")
            assert done.returncode == 3 and not (self.store / "x").exists(), done
            assert "part.h5" in done.stdout and "cannot be opened" in done.stdout, done
        part.unlink()
        done = self.convert("--json")
        assert done.returncode == 3 and "lossy" in done.stdout and (self.store / "x").exists(), done

    @pytest.mark.skipif(not (sys.platform == "linux" and shutil.which("cc")), reason="no compiler, or no LD_PRELOAD")
    def test_each_call_fails_once(self):
        self.preload()
        self.write()
        ended = {}
        for options in [], ["--chunk", "3000,"], ["--shard", "1M"], ["--profile", "recode", "--keep-going"]:
            count = self.folder / "count"
            done = self.convert(
                *options,
                environment={"LD_PRELOAD": str(self.library), "FAILING_FILE": str(self.source), "FAILING_COUNT": str(count)},
            )
            assert done.returncode == 0, done.stderr
            good, calls = contents(self.store), int(count.read_text())
            assert calls > 20
            for how in "EIO", "short", "truncate":
                every = (
                    range(1, calls + 1)
                    if EVERY
                    else sorted({1 + i * (calls - 1) // (SAMPLE // 4) + (len(how) + i) % 3 for i in range(SAMPLE // 4)})
                )
                for call in every:
                    if how == "truncate":
                        whole = self.source.read_bytes()
                        times = self.source.stat()
                    done = self.disturbed(how, call, *options)
                    ended[how, done.returncode] = ended.get((how, done.returncode), 0) + 1
                    if done.returncode == 3 and "--keep-going" in options:  # the chunk that was lost is named
                        for key, data in contents(self.store).items():
                            if not key.endswith("zarr.json"):
                                assert data == good[key], key
                    elif done.returncode == 0:
                        assert contents(self.store) == good
                    else:
                        assert done.returncode == 1, done.stderr
                        assert len(done.stderr.splitlines()) == 1, done.stderr
                        assert (
                            self.store.exists() == ("run the same command again to continue" in done.stderr)
                            and not (self.store / "zarr.json").exists()
                        ), done.stderr
                        if self.store.exists() and how != "truncate":
                            ended["gone on after " + how, 0] = ended.get(("gone on after " + how, 0), 0) + 1
                            again = self.convert(*options, fresh=False)
                            assert (
                                again.returncode == 0
                                and contents(self.store) == good
                                or again.returncode == 3
                                and "--keep-going" in options
                            ), again.stderr
                    if how == "truncate":
                        self.source.write_bytes(whole)
                        os.utime(self.source, ns=(times.st_atime_ns, times.st_mtime_ns))
        print(", ".join(f"{how}: {n} ended with {status}" for (how, status), n in sorted(ended.items())), file=sys.stderr)
        assert any(status == 1 for _, status in ended) and any(how.startswith("gone on") for how, _ in ended)
