# SPDX-License-Identifier: BSL-1.0
"""Files in and out of `zarrbits encode` and `zarrbits decode`: counts from sizes, whole files or none."""

import os
import re
import resource
import signal
import stat
import subprocess
import time

import pytest

from command import COMMAND, is_one_sentence, packbits, run

BOOL = ["--data-type", "bool", "--codec"]
COUNTED = [*BOOL, packbits(padding_encoding="first_byte")]
CAMERA = ["--data-type", "uint16", "--codec", packbits(last_bit=11)]


class TestFiles:
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def write(self, name, data):
        with open(name, "wb") as f:
            f.write(data)
        return name

    def read(self, name):
        with open(name, "rb") as f:
            return f.read()

    def refused(self, r, status=1):
        assert r.returncode == status, r.stderr
        assert is_one_sentence(r.stderr), r.stderr
        return r.stderr

    # -- the number of elements

    def test_first_byte_takes_the_count_from_the_size_of_a_file(self):
        self.write("in", b"\1\0\1")
        assert run("encode", *COUNTED, "in").stdout == b"\5\5"
        with open("in", "rb") as f:
            assert run("encode", *COUNTED, stdin=f).stdout == b"\5\5"

    def test_a_file_that_was_read_in_part_counts_from_there(self):
        self.write("in", b"\0" * 8 + b"\1\0\1")
        with open("in", "rb") as f:
            f.seek(8)
            assert run("encode", *COUNTED, stdin=f).stdout == b"\5\5"

    def test_first_byte_from_a_pipe_needs_a_count(self):
        error = self.refused(run("encode", *COUNTED, data=b"\1\0\1"), 2)
        assert "--elements" in error
        assert run("encode", *COUNTED, "--elements", 3, data=b"\1\0\1").stdout == b"\5\5"
        # last_byte does not
        assert run("encode", *BOOL, packbits(padding_encoding="last_byte"), data=b"\1\0\1").stdout == b"\5\5"

    def test_a_size_that_is_no_whole_number_of_elements_is_refused_before_anything_is_written(self):
        self.write("in", b"12345")
        r = run("encode", *CAMERA, "in")
        assert "5 bytes" in self.refused(r)
        assert r.stdout == b""
        r = run("decode", "--data-type", "uint16", "--codec", packbits(), "in")
        assert "5 bytes" in self.refused(r)
        assert r.stdout == b""

    def test_decode_of_a_file_knows_the_count_where_it_follows(self):
        self.write("in", b"\xbc\x0a\xff")
        r = run("decode", *CAMERA, "in")
        assert (r.returncode, r.stdout, r.stderr) == (0, b"\xbc\x0a\xf0\x0f", "")

    def test_decode_without_a_count_says_what_may_be_padding(self):
        self.write("in", b"\5")
        for r in (run("decode", *BOOL, "packbits", "in"), run("decode", *BOOL, "packbits", data=b"\5")):
            assert (r.returncode, r.stdout) == (0, b"\1\0\1\0\0\0\0\0")
            assert "last 7 elements may be padding" in r.stderr
        r = run("decode", *BOOL, "packbits", "--elements", 3, "in")
        assert (r.returncode, r.stdout, r.stderr) == (0, b"\1\0\1", "")
        # a count byte tells
        r = run("decode", *BOOL, packbits(padding_encoding="last_byte"), data=b"\5\5")
        assert (r.returncode, r.stdout, r.stderr) == (0, b"\1\0\1", "")

    def test_files_without_a_size_are_read_to_their_end(self):
        # /proc says 0 bytes of a file that has some
        r = run("encode", "--data-type", "uint8", "--codec", "bytes", "/proc/self/cmdline")
        assert r.returncode == 0
        assert b"cmdline" in r.stdout

    # -- input

    def test_input_that_cannot_be_read_is_one_sentence_with_its_name(self):
        os.mkdir("folder")
        assert '"missing"' in self.refused(run("encode", *CAMERA, "missing"))
        assert "directory" in self.refused(run("encode", *CAMERA, "folder"))
        with open("folder/x", "wb"):
            pass
        fd = os.open("folder", os.O_RDONLY)
        assert "directory" in self.refused(run("encode", *CAMERA, stdin=fd))
        os.close(fd)
        r = subprocess.run(
            ["/bin/sh", "-c", '"$0" encode --data-type uint8 --codec bytes <&-', COMMAND], capture_output=True, text=True
        )
        assert (r.returncode, is_one_sentence(r.stderr)) == (1, True), r.stderr

    def test_a_dash_is_standard_input_and_output(self):
        r = run("encode", *CAMERA, "-o", "-", "-", data=b"\xbc\x0a\xff\x0f")
        assert (r.returncode, r.stdout) == (0, b"\xbc\xfa\xff")
        assert os.listdir(".") == []

    def test_an_empty_name_is_an_error_and_not_a_pipe(self):
        for command in ("encode", "decode"):
            for arguments in ([""], ["-o", ""], ["--output=", "in"]):
                r = run(command, *CAMERA, *arguments, data=b"\xbc\x0a\xff\x0f")
                assert (r.returncode, r.stdout) == (2, b""), arguments
                assert is_one_sentence(r.stderr) and re.search("is empty|empty value|no value", r.stderr), r.stderr
        assert os.listdir(".") == []

    # -- output

    def test_names_as_long_as_a_file_system_takes_are_written(self):
        for name in ("a" * 250, "b" * 255, "\u20ac" * 85):
            r = run("encode", *CAMERA, "-o", name, data=b"\xbc\x0a\xff\x0f")
            assert (r.returncode, r.stderr) == (0, "")
            assert (os.listdir("."), self.read(name)) == ([name], b"\xbc\xfa\xff")
            os.remove(name)
        assert "too long" in self.refused(run("encode", *CAMERA, "-o", "c" * 256, data=b""))
        assert os.listdir(".") == []

    def test_an_output_file_appears_whole(self):
        self.write("in", b"\xbc\x0a\xff\x0f")
        r = run("encode", *CAMERA, "-o", "out", "in")
        assert (r.returncode, r.stdout, r.stderr) == (0, b"", "")
        assert self.read("out") == b"\xbc\xfa\xff"
        assert sorted(os.listdir(".")) == ["in", "out"]
        r = run("decode", *CAMERA, "--output", "back", "out")
        assert (r.returncode, self.read("back")) == (0, b"\xbc\x0a\xff\x0f")

    def test_a_file_may_be_replaced_by_its_own_encoding(self):
        self.write("in", b"\1\0\1\0\0\0\0\0" * 100000)
        assert run("encode", *BOOL, "packbits", "-o", "in", "in").returncode == 0
        assert self.read("in") == b"\5" * 100000

    def test_after_an_error_the_old_file_stays_and_nothing_else(self):
        self.write("out", b"old")
        bad = b"\0\0" * 500000 + b"\xff\xff"  # the error comes after much was written
        for arguments, data in (
            ([*CAMERA, "-o", "out"], bad),
            ([*CAMERA, "-o", "new"], bad),
            ([*COUNTED, "-o", "new"], b"\1"),
            (["--data-type", "nonsense", "--codec", "bytes", "-o", "new"], b""),
        ):
            r = run("encode", *arguments, data=data)
            assert r.returncode in (1, 2)
            assert is_one_sentence(r.stderr), r.stderr
            assert os.listdir(".") == ["out"], arguments
            assert self.read("out") == b"old"

    def test_a_signal_leaves_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            p = subprocess.Popen([COMMAND, "encode", *CAMERA, "-o", "out"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            p.stdin.write(bytes(1 << 20))
            p.stdin.flush()
            for _ in range(500):
                if os.listdir("."):
                    break
                time.sleep(0.01)
            assert [n.startswith("out.") for n in os.listdir(".")] == [True]
            p.send_signal(number)
            _, error = p.communicate(timeout=600)
            assert (p.returncode, error) == (-number, b"")
            assert os.listdir(".") == []

    def test_an_output_that_cannot_be_created_is_one_sentence(self):
        os.mkdir("folder")
        assert "directory" in self.refused(run("encode", *CAMERA, "-o", "folder", data=b""))
        assert '"nowhere/out"' in self.refused(run("encode", *CAMERA, "-o", "nowhere/out", data=b""))
        assert os.listdir(".") == ["folder"]

    def test_a_file_that_may_not_grow_is_an_error_and_leaves_nothing(self):
        def limit():
            return resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        r = run("encode", *CAMERA, "-o", "out", data=bytes(4 << 20), preexec_fn=limit)
        self.refused(r)
        assert os.listdir(".") == []

    def test_devices_and_pipes_are_written_directly(self):
        assert run("encode", *CAMERA, "-o", "/dev/null", data=bytes(4)).returncode == 0
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
        assert "No space" in self.refused(run("encode", *CAMERA, "-o", "/dev/full", data=bytes(4)))
        os.mkfifo("pipe")
        reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
        assert run("encode", *CAMERA, "-o", "pipe", data=b"\xbc\x0a\xff\x0f").returncode == 0
        assert reader.communicate(timeout=600)[0] == b"\xbc\xfa\xff"

    def test_links_and_permissions_of_an_output_file_stay(self):
        self.write("target", b"old")
        os.chmod("target", 0o640)
        os.symlink("target", "out")
        assert run("encode", *CAMERA, "-o", "out", data=b"\xbc\x0a\xff\x0f").returncode == 0
        assert os.path.islink("out")
        assert (self.read("target"), stat.S_IMODE(os.stat("target").st_mode)) == (b"\xbc\xfa\xff", 0o640)
        before = os.umask(0o027)
        assert run("encode", *CAMERA, "-o", "new", data=b"").returncode == 0
        os.umask(before)
        assert stat.S_IMODE(os.stat("new").st_mode) == 0o640
