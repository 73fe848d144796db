#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The wheel in fresh virtual environments, as its user has it: no variable set, nothing of the checkout.

tests/package/wheel.py zarrbits-*.whl [PYTHON [h5py==3.12 zarr==3.1 ...] [-- PYTHON ...]]

The wheel zarrbits-plugins, which it needs, lies beside it; plugin_wheels.py has that one's own tests.
Without a Python, as for the wheel of another machine, only what is in it is looked at.
"""

import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

VENV = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "venv")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wheel_program.py")


# the four at the top of the guide, and those on references, which go on from one another
GUIDE = os.path.join(os.path.dirname(PROGRAM), "..", "..", "docs", "guide")


def programs(page):
    """Those of a page, before its first heading of the second level."""
    with open(os.path.join(GUIDE, page), encoding="utf-8") as f:
        return re.findall(r"```python\n(.*?)```", f.read().split("\n## ")[0], re.S)


EXAMPLES, REFERENCES = programs("python.md"), programs("python-references.md")
assert len(EXAMPLES) == 4 and len(REFERENCES) == 2
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("ZARRBITS", "HDF5", "PYTHON", "AWS", "SSL_CERT", "NETRC"))}

sys.path.insert(0, os.path.join(os.path.dirname(PROGRAM), "..", "convert"))
import http_server
import s3_server
from s3_server import BUCKET, KEY, SECRET

GLIBC = r"lib(c|m|dl|pthread)\.so\.\d|ld-linux-[\w-]+\.so\.\d"
# of Debian, RHEL, SUSE, Alpine
PLACES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem")


def name_of(package):
    return re.match(r"[\w-]+", package)[0]


def environment(folder, python, wheel, packages):
    """None if the registry cannot be reached, which is not tested here."""
    done = subprocess.run([VENV, folder, python, "--only-binary", ":all:", "numpy", *packages], capture_output=True, text=True)
    if done.returncode:
        print(
            done.stdout.strip()[-300:],
            f"\nSKIPPED: the wheel beside {' '.join(packages)}: they could not be installed",
            flush=True,
        )
        return None
    places = ["--no-index", "--find-links", os.path.dirname(wheel)]
    subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *places, wheel], check=True)
    return f"{folder}/bin/python"


def check_libraries(wheel):
    """It needs nothing but an old enough glibc, exports no name of what is linked into it, and has the licences of that."""
    newest = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_", wheel).groups()))
    with tempfile.TemporaryDirectory(prefix="zarrbits-wheel-") as folder:
        with zipfile.ZipFile(wheel) as z:
            z.extractall(folder)
        binaries = [f"{folder}/zarrbits/bin/zarrbits", *glob.glob(f"{folder}/**/*.so", recursive=True)]
        assert [os.path.basename(b) for b in binaries] == ["zarrbits", "libzarrbits_reader.so"], binaries
        for binary in binaries:
            said = subprocess.run(["readelf", "-dVW", "--dyn-syms", binary], capture_output=True, text=True, check=True).stdout
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
            assert needed and all(re.fullmatch(GLIBC, n) for n in needed), (binary, needed)
            versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", said)}
            assert versions and max(versions) <= newest, (binary, max(versions))
            exported = re.findall(r" (?:GLOBAL|WEAK) +DEFAULT +\d+ (\S+)", said)
            foreign = [n for n in exported if not n.startswith(("H5", "NCZ_get_codec_info", "zarrbits_"))]
            assert not foreign, (binary, foreign)
        (metadata,) = glob.glob(f"{folder}/zarrbits-*.dist-info/METADATA")
        with open(metadata, encoding="utf-8") as f:
            said = f.read()
        version = re.search(r"^Version: (.*)$", said, re.M)[1]
        assert f"\nRequires-Dist: zarrbits-plugins=={version}\n" in said, said[:2000]
        licences = os.listdir(f"{folder}/zarrbits/licences")
        assert {"curl", "hdf5", "nghttp2", "openssl", "pugixml"} <= set(licences), licences


def check_remote(folder):
    """Sources by https and in S3, and stores in S3, with the certificates of each place where they may be."""
    wrapper = f"{folder}/venv/bin/zarrbits"
    (command,) = glob.glob(f"{folder}/venv/lib/python3*/site-packages/zarrbits/bin/zarrbits")
    number = iter(range(100))
    # whoever runs this may have certificates, keys and a configuration
    clean = {**CLEAN, "HOME": folder, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-central-1"}

    def converted(*start, source, store="", options=(), **variables):
        """Converts into a new store, and verifies it; "" or what was wrong."""
        store += f"{next(number)}.zarr"
        for verb in ("convert", "verify"):
            words = [*start, verb, source, store, *options]
            done = subprocess.run(words, cwd=folder, env=clean | variables, capture_output=True, text=True, timeout=600)
            if done.returncode:
                return done.stderr
        assert "OK:" in done.stdout, done.stdout
        return ""

    with open(f"{folder}/in.h5", "rb") as f:
        content = f.read()
    with s3_server.Server() as server:
        server.objects["in.h5"] = s3_server.Stored(content)
        options = ("--endpoint", server.url)
        assert converted(wrapper, source="in.h5", store=f"s3://{BUCKET}/", options=options) == ""
        assert any(key.endswith(".zarr/zarr.json") for key in server.objects)
        assert converted(wrapper, source=f"s3://{BUCKET}/in.h5", options=options) == ""
        assert server.wrong_signatures == []

    certificate, key = http_server.certificate(folder, "IP:127.0.0.1")
    other, _ = http_server.certificate(folder, "IP:127.0.0.1", name="other")
    with http_server.Server(certificate=(certificate, key), host="127.0.0.1") as server:
        source = server.put("in.h5", content)
        assert source.startswith("https://127.0.0.1:"), source
        assert "certificate" in converted(command, source=source)
        assert "certificate" in converted(command, source=source, SSL_CERT_FILE=other)
        # a folder with links that OpenSSL finds
        words = ["openssl", "x509", "-hash", "-noout", "-in", certificate]
        name = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        os.makedirs(f"{folder}/certificates")
        os.symlink(certificate, f"{folder}/certificates/{name}.0")
        places = ({"AWS_CA_BUNDLE": certificate}, {"SSL_CERT_FILE": certificate}, {"SSL_CERT_DIR": f"{folder}/certificates"})
        for variables in places:
            assert converted(command, source=source, **variables) == "", variables
        os.makedirs(f"{folder}/packages/certifi")
        with open(f"{folder}/packages/certifi/__init__.py", "w") as f:
            f.write(f"def where():\n    return {certificate!r}\n")
        with_certifi = {"PYTHONPATH": f"{folder}/packages"}
        assert converted(wrapper, source=source, **with_certifi) == ""
        assert "certificate" in converted(wrapper, source=source, SSL_CERT_FILE=other, **with_certifi)
        # in an /etc with nothing but certificates
        alone = ["unshare", "--mount", "--map-root-user", "sh", "-euc", 'mount -t tmpfs none /etc; "$@"', "sh"]
        if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True).returncode:
            print("SKIPPED: the certificates of Debian, RHEL, SUSE and Alpine: unshare is not there, or not allowed", flush=True)
            return
        assert "certificate" in converted(*alone, command, source=source)
        for place in PLACES:
            put = ["sh", "-euc", 'mkdir -p "$(dirname "$1")"; cp "$2" "$1"; shift 2; exec "$@"', "sh", place, certificate]
            assert converted(*alone, *put, command, source=source) == "", place


def check(wheel, python, packages):
    """The number of programs that succeeded."""
    with tempfile.TemporaryDirectory(prefix="zarrbits-wheel-") as folder:
        mine = environment(f"{folder}/venv", python, wheel, packages)
        if mine is None:
            return 0
        names = [name_of(p) for p in packages]
        orders = [("zarrbits",), ("h5py",)]
        orders += [o for n in ("netCDF4", "tables", "hdf5plugin") if n in names for o in ((n, "zarrbits"), ("zarrbits", n))]
        for imports in orders:
            subprocess.run([mine, "-W", "ignore", PROGRAM, *imports], cwd=folder, env=CLEAN, check=True)
            if imports == orders[-1]:
                check_remote(folder)
            subprocess.run(["rm", "-rf", f"{folder}/in.h5", f"{folder}/out.zarr"], check=True)
        done = len(orders) + 1
        examples = EXAMPLES * ("zarr" in names) + REFERENCES[:1] * ("fsspec" in names) + REFERENCES[1:] * ("icechunk" in names)
        for example in examples:
            # zarr-python 3.1 warns of codecs named numcodecs.*
            subprocess.run(
                [
                    mine,
                    "-W",
                    "error",
                    "-W",
                    "ignore::FutureWarning",
                    "-W",
                    "ignore::DeprecationWarning",
                    "-W",
                    "ignore:Numcodecs codecs are not",
                    "-c",
                    example,
                ],
                cwd=folder,
                env=CLEAN,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            done += 1
        return done


def main(wheel, *groups):
    check_libraries(wheel)
    print("what is in the wheel is right")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # most of it is waiting for the registry
        done = list(pool.map(lambda g: check(os.path.abspath(wheel), g[0], g[1:]), groups))
    print(f"{sum(done)} programs are right, in {len(groups)} environments")
    if not all(done):
        print(f"SKIPPED: {done.count(0)} environments")


groups = [[]]
for word in sys.argv[2:]:
    groups.append([]) if word == "--" else groups[-1].append(word)
main(sys.argv[1], *filter(None, groups))
