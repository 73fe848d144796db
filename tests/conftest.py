# SPDX-License-Identifier: BSL-1.0
"""Shared by all tests in Python. ctest runs each file by itself;
environment variables say where things are (tests/CMakeLists.txt)."""

import os
import pathlib
import shutil
import signal
import tempfile

import pytest

pytest.register_assert_rewrite(
    "conventions",
    "dandi_trees",
    "doctor",
    "file_differences",
    "filtered_rows",
    "golden_vectors",
    "harness",
    "https_conversion",
    "s3_conversion",
    "s3_servers",
    "kills",
    "pairs",
    "random_files",
    "screen",
    "stopped_runs",
    "store",
    "stores_by_hand",
    "targets",
    "value_digests",
)  # what they assert is shown with its values
ALL_SKIPPED = 77  # tests/CMakeLists.txt knows it, too

# A shell that starts the tests with `&` has them ignore SIGINT, and every program that they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asks the metadata service of a cloud for credentials, but those of convert_s3_credentials, which have one of their own.
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

# At the end of each process the sanitizer looks for leaks, for a third of the time of hundreds of short ones.
# The programs in C++ do that always,
# and these tests where ZARRBITS_LEAKS=1 asks for it (scripts/ci/all).
if "ZARRBITS_SANITIZED" in os.environ and os.environ.get("ZARRBITS_LEAKS", "0") == "0":
    os.environ["ASAN_OPTIONS"] = os.pathsep.join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))
elif "ZARRBITS_SANITIZED" in os.environ:  # libhdf5 1.10.8 loses some bytes where its reading of metadata fails
    suppressions = pathlib.Path(__file__).parent / "support" / "leaks.txt"
    os.environ["LSAN_OPTIONS"] = f"suppressions={suppressions}:print_suppressions=0"


@pytest.fixture
def tmp_path(tmp_path):
    """pytest's, removed after the test: some tests write gigabytes, and pytest would keep the folders of three runs."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture
def folder(tmp_path):
    """The temporary folder as text."""
    return str(tmp_path)


@pytest.fixture
def memory_folder(tmp_path):
    """A temporary folder, in memory if there is room, else on the disk:
    for thousands of small files, which take five times as long on a disk."""
    room = shutil.disk_usage("/dev/shm").free if os.access("/dev/shm", os.W_OK) else 0
    if room < 1 << 30:
        yield str(tmp_path)
    else:
        with tempfile.TemporaryDirectory(prefix="zarrbits-", dir="/dev/shm") as folder:
            yield folder


def pytest_sessionfinish(session, exitstatus):
    """A file whose tests were all skipped is skipped for ctest, too, and not passed.
    So is one that was skipped as it was read (importorskip): pytest then found no tests."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    ended_well = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if ended_well and reporter and reporter.stats.get("skipped") and not reporter.stats.get("passed"):
        session.exitstatus = ALL_SKIPPED
