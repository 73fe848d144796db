# SPDX-License-Identifier: BSL-1.0
"""No way of writing through an encoder hangs, or succeeds, where the file cannot take the bytes. full_device.cpp has the ways."""

import os
import resource
import shutil
import signal
import subprocess
import zlib

import numpy as np
import pytest

PROGRAM = os.environ["ZARRBITS_FULL_DEVICE"]
WAYS = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.split()
COUNTS = (100, 10_000, 300_000, 3_000_000)  # of values: within a buffer, within two, more
ROOM = 64


def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # else the process is killed, which is no silence either


def run(way, path, count, before=(), **more):
    try:
        return subprocess.run([*before, PROGRAM, way, path, str(count)], capture_output=True, text=True, timeout=600, **more)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{way} hangs on {path} with {count} values")


def check_refused(done):
    assert done.returncode == 3 and done.stderr == "", (done.returncode, done.stdout, done.stderr)
    assert len(done.stdout) > 10


def test_ways_are_known():
    assert {
        "file_sink",
        "ofstream",
        "descriptor",
        "checked_file_sink",
        "checked_ofstream",
        "checked_descriptor",
        "compressed",
    } <= set(WAYS)


def packed(count):
    values = (np.arange(count, dtype="u8") * 2654435761 >> 20 & 0xFFF).astype("<u2")
    bits = np.unpackbits(values.view("u1").reshape(-1, 2), axis=1, bitorder="little")[:, :12]
    return np.packbits(bits, bitorder="little").tobytes()


@pytest.mark.parametrize("way", WAYS)
def test_a_file_with_room_gets_every_byte(way, tmp_path):
    for count in COUNTS:
        done = run(way, str(tmp_path / "x"), count)
        assert done.returncode == 0, done.stdout
        written = (tmp_path / "x").read_bytes()
        assert (zlib.decompress(written) if way == "compressed" else written) == packed(count)


@pytest.mark.parametrize("way", WAYS)
def test_no_folder(way, tmp_path):
    for count in COUNTS:
        check_refused(run(way, str(tmp_path / "nosuch" / "x"), count))


@pytest.mark.parametrize("way", WAYS)
def test_a_full_device(way):
    for count in COUNTS:
        check_refused(run(way, "/dev/full", count))


def test_the_systems_reason_is_kept():
    for count in COUNTS:
        assert "No space left on device" in run("checked_descriptor", "/dev/full", count).stdout


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_may_not_grow(way, tmp_path):
    for count in COUNTS:
        check_refused(run(way, str(tmp_path / "x"), count, preexec_fn=limited))


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk(way, tmp_path):
    script = 'mount -t tmpfs -o size=4096 none "$0" && head -c 4096 /dev/zero > "$0/full" && exec "$@"'
    within = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a small disk (unshare --map-root-user --mount)")
    for count in COUNTS:
        check_refused(run(way, str(tmp_path / "x"), count, within))
