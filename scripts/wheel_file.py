#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes the wheel zarrbits-plugins: scripts/wheel-plugins calls this, once for each platform.

scripts/wheel_file.py COMPILED PLATFORM FOLDER: what is in COMPILED, the Python package and the licences, as
FOLDER/zarrbits_plugins-VERSION-py3-none-PLATFORM.whl. The same content makes the same bytes: names are sorted, modes are fixed,
and the time is SOURCE_DATE_EPOCH.
"""

import base64
import hashlib
import os
import pathlib
import re
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPYRIGHT_OF_JSON = pathlib.Path("/usr/share/doc/nlohmann-json3-dev/copyright")


def files_of(compiled, platform):
    """What the wheel has, by name; RECORD comes last."""
    version = re.search(r'ZARRBITS_VERSION_STRING "([^"]+)"', (ROOT / "include/zarrbits/version.hpp").read_text())[1]
    init = (ROOT / "python/zarrbits_plugins/__init__.py").read_text()
    files = {
        "zarrbits_plugins/__init__.py": init.encode(),
        "zarrbits_plugins/plugins.py": (ROOT / "python/zarrbits_codecs/plugins.py").read_bytes(),
    }
    for path in sorted(p for p in compiled.rglob("*") if p.is_file()):
        files[f"zarrbits_plugins/{path.relative_to(compiled).as_posix()}"] = path.read_bytes()
    info = f"zarrbits_plugins-{version}.dist-info"
    licences = {"LICENSE": (ROOT / "LICENSE").read_bytes(), "nlohmann-json": COPYRIGHT_OF_JSON.read_bytes()}
    metadata = [
        "Metadata-Version: 2.4",
        "Name: zarrbits-plugins",
        f"Version: {version}",
        "Summary: The HDF5 filters packbits and bytes of zarrbits, and its codecs behind a C ABI: they need nothing but libc",
        "License-Expression: BSL-1.0 AND MIT",
        *(f"License-File: {name}" for name in sorted(licences)),
        "Requires-Python: >=3.9",
        "Description-Content-Type: text/plain",
    ]
    description = re.search(r'"""(.*?)"""', init, re.S)[1]
    files[f"{info}/METADATA"] = ("\n".join(metadata) + "\n\n" + description).encode()
    tags = "".join(f"Tag: py3-none-{p}\n" for p in platform.split("."))
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: zarrbits {version}\nRoot-Is-Purelib: false\n{tags}".encode()
    for name, text in licences.items():
        files[f"{info}/licenses/{name}"] = text
    rows = []
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(files[name])}\n")
    files[f"{info}/RECORD"] = ("".join(rows) + f"{info}/RECORD,,\n").encode()
    return version, files


def main(compiled, platform, folder):
    version, files = files_of(pathlib.Path(compiled), platform)
    # .zip files begin in 1980
    when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    path = pathlib.Path(folder) / f"zarrbits_plugins-{version}-py3-none-{platform}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name in sorted(files, key=lambda n: (".dist-info/" in n, n)):
            member = zipfile.ZipInfo(name, when)
            member.create_system = 3  # modes are those of Unix
            member.external_attr = (0o755 if name.endswith((".so", ".dylib", ".dll")) else 0o644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(member, files[name])
    print(f"{path} ({path.stat().st_size} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()})")


main(*sys.argv[1:])
