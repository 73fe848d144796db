# SPDX-License-Identifier: BSL-1.0
"""scripts/ci/versions, on a copy of the files that it looks at."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = "scripts/ci/versions"


@pytest.fixture
def copy(tmp_path):
    names = re.findall(r'^    \("([^"]+)", ', (ROOT / SCRIPT).read_text(), re.MULTILINE)
    assert len(names) > 10
    debian = [str(path.relative_to(ROOT)) for path in (ROOT / "packaging/debian").glob("*.install")]
    for name in {SCRIPT, "include/zarrbits/version.hpp", "CHANGELOG.md", *names, *debian}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def versions(copy, *words):
    done = subprocess.run([sys.executable, copy / SCRIPT, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_place_that_shows_another_version_is_found(copy):
    assert versions(copy)[0] == 0
    recipe = copy / "packaging/conda/recipe.yaml"
    recipe.write_text(re.sub(r'version: "[\d.]+"', 'version: "7.8.9"', recipe.read_text()))
    status, said = versions(copy)
    assert status == 1 and re.search(r'packaging/conda/recipe.yaml:\d+ has "7.8.9"', said), said
    recipe.write_text(recipe.read_text().replace("version:", "release:"))
    assert "nothing matches" in versions(copy)[1]


def test_a_new_version_is_written_everywhere(copy):
    assert versions(copy, "--set", "3.14.15") == (0, "")
    assert versions(copy)[0] == 0
    header = (copy / "include/zarrbits/version.hpp").read_text()
    assert "MAJOR 3\n" in header and "MINOR 14\n" in header and "PATCH 15\n" in header and header.count('"3.14.15"') == 2
    assert (copy / "packaging/debian/libzarrbits-core3.14.install").exists()
    assert "find_package(zarrbits 3.14 REQUIRED" in (copy / "README.md").read_text()


def test_what_is_released_has_a_section_and_nothing_is_unreleased(copy):
    versions(copy, "--set", "3.14.15")
    changes = copy / "CHANGELOG.md"

    def said_of(text):
        changes.write_text(text)
        return versions(copy, "--release", "3.14.15")

    section = "## [3.14.15] - 2030-01-02\n\n### Added\n- one thing\n"
    assert said_of(f"# Changelog\n\n## [Unreleased]\n\n{section}") == (0, "")
    assert said_of(f"# Changelog\n\n{section}") == (0, "")
    for text, reason in (
        (f"## [Unreleased]\n\n- more\n\n{section}", "something under Unreleased"),
        ("## [Unreleased]\n\n## [3.14.14] - 2030-01-02\n\n- one thing\n", "no section"),
        ("## [3.14.15]\n\n- one thing\n", "no section"),
        ("## [3.14.15] - 2030-01-02\n\n", "no section"),
        (f"## [3.14.16] - 2030-01-03\n\n- new\n\n{section}", "newest section"),
    ):
        status, said = said_of(text)
        assert status == 1 and reason in said, (text, said)
    changes.write_text(section)
    assert "3.14.15, and 3.14.16 is to be released" in versions(copy, "--release", "3.14.16")[1]
