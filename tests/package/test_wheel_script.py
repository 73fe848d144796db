# SPDX-License-Identifier: BSL-1.0
"""scripts/wheel says at once what is missing, to a user who is not root, and takes cargo from where rustup puts it."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(home, *command):
    environment = {"HOME": str(home), "PATH": str(home / "tools")}
    return subprocess.run(["/bin/bash", *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


def tools(home, *names):
    (home / "tools").mkdir()
    for name in names:
        path = next(p for p in (pathlib.Path("/usr/bin") / name, pathlib.Path("/bin") / name) if p.exists())
        (home / "tools" / name).symlink_to(path)


def test_all_that_is_missing_is_said_at_once(tmp_path):
    tools(tmp_path, "dirname", "mkdir", "df", "awk")
    done = run(tmp_path, "scripts/wheel", "--this-compiler")
    assert done.returncode == 1 and done.stdout == ""
    for words in (
        "scripts/wheel needs:",
        "Python of at least 3.9",
        "the program ar (Debian: apt-get install binutils)",
        "the program c++",
    ):
        assert words in done.stderr, done.stderr
    if not any(os.path.exists(p) for p in ("/usr/local/cargo/bin/cargo",)) and not list(
        pathlib.Path("/usr/lib").glob("rust-*/bin/cargo")
    ):
        assert "  cargo, which fetches" in done.stderr


def test_cargo_of_rustup_is_found_without_path(tmp_path):
    tools(tmp_path, "dirname")
    cargo = tmp_path / ".cargo/bin/cargo"
    cargo.parent.mkdir(parents=True)
    cargo.write_text("#!/bin/sh\n")
    cargo.chmod(0o755)
    done = run(tmp_path, "scripts/crate", "--cargo")
    assert (done.returncode, done.stdout) == (0, f"{cargo}\n"), done.stderr
