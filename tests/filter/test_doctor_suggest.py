# SPDX-License-Identifier: BSL-1.0
"""Common behaviour of zarrbits doctor and suggest: on a terminal, with wrong and with damaged files."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

import numpy as np
import pytest

from doctor import run, write_packed
from harness import COMMAND


@pytest.fixture
def here(tmp_path):
    return tmp_path


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "packed.h5"
    write_packed(path)
    return path


def test_a_terminal_sees_progress_and_nothing_of_it_stays(packed):
    for command in ("doctor", "suggest"):
        ours, theirs = pty.openpty()
        with subprocess.Popen([COMMAND, command, str(packed)], stdout=subprocess.DEVNULL, stderr=theirs) as p:
            os.close(theirs)
            seen = b""
            try:
                while piece := os.read(ours, 65536):
                    seen += piece
            except OSError:  # the other end is closed
                pass
        os.close(ours)
        assert p.returncode == 0 and b" %  " in seen and b"packed.h5" in seen and seen.endswith(b"\r\x1b[K"), (p.returncode, seen)


def on_a_terminal(columns, *arguments):
    """What it shows there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen([COMMAND, *map(str, arguments)], stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


def test_on_a_terminal_lines_are_broken_between_words_and_nothing_else_changes(packed):
    for arguments in (["doctor", packed], ["suggest", "--all", packed]):
        piped = run(*arguments)
        assert "\x1b" not in piped
        for columns in (40, 80):
            shown = on_a_terminal(columns, *arguments)
            assert shown.split() == piped.split() and len(shown.splitlines()) > len(piped.splitlines()), (columns, shown)
            for line in shown.splitlines():
                copied = line.startswith(("  h5repack ", "  export ", "  zarrbits convert "))
                assert len(line) <= columns or copied or " " not in line.strip(), (columns, line)
            # lines that people copy are whole
            assert [line for line in shown.splitlines() if line.startswith("  h5repack ")] == [
                line for line in piped.splitlines() if line.startswith("  h5repack ")
            ]
        assert on_a_terminal(1000, *arguments) == piped


def test_wrong_use_and_wrong_files(here):
    assert "FILE" in run("suggest", status=2)
    for command in ("doctor", "suggest"):
        for wrong in ("/nonexistent.h5", here, os.path.abspath(__file__)):
            r = subprocess.run([COMMAND, command, str(wrong)], capture_output=True, text=True)
            assert r.returncode == 1 and r.stderr.startswith("zarrbits: ") and r.stderr.count("\n") == 1, r


def test_damaged_files_never_end_without_a_word(here, packed):
    whole = packed.read_bytes() if packed.exists() else b""
    rng = np.random.default_rng(9)
    for k in range(40):
        damaged = bytearray(whole)
        for _ in range(1 + k % 8):
            damaged[rng.integers(8, len(damaged))] = rng.integers(0, 256)
        (here / "damaged.h5").write_bytes(damaged)
        for command in ("doctor", "suggest"):
            r = subprocess.run(
                [COMMAND, command, str(here / "damaged.h5")], capture_output=True, text=True, errors="replace", timeout=600
            )
            assert r.returncode in (0, 1) and r.stdout + r.stderr, (command, k, r)
