# SPDX-License-Identifier: BSL-1.0
"""zarrbits doctor, with every fault that it can report planted."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import h5py
import pytest

from doctor import BYTES, PACKBITS, PLUGINS, run, write_packed
from harness import COMMAND


@pytest.fixture
def here(tmp_path):
    return tmp_path


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "packed.h5"
    write_packed(path)
    return path


def doctor(*folders, status=1, **more):
    return json.loads(run("doctor", "--json", path=":".join(map(str, folders)), status=status, **more))["plugins"]


def what(report, name):
    (file,) = [f for folder in report["folders"] for f in folder["files"] if f["name"] == name]
    return file


def ours(here, name):
    """A folder with both plugins."""
    folder = here / name
    folder.mkdir()
    for n in ("libzarrbits_packbits.so", "libzarrbits_bytes.so"):
        shutil.copy(os.path.join(PLUGINS, n), folder)
    return folder


def hdf5_finds(path):
    """What Debian's HDF5 says."""
    r = subprocess.run(
        [sys.executable, "-c", f"import h5py; print(h5py.h5z.filter_avail({PACKBITS}))"],
        env={**os.environ, "HDF5_PLUGIN_PATH": str(path)},
        capture_output=True,
        text=True,
    )
    return r.stdout.strip() == "True"


def follows(line):
    """HDF5 and doctor agree that the export line helps."""
    value = subprocess.run(["bash", "-c", line + '; printf %s "$HDF5_PLUGIN_PATH"'], capture_output=True, text=True).stdout
    assert hdf5_finds(value), line
    again = json.loads(
        subprocess.run(
            [COMMAND, "doctor", "--json"], env={**os.environ, "HDF5_PLUGIN_PATH": value}, capture_output=True, text=True
        ).stdout
    )["plugins"]
    assert again["filters"]["packbits"]["found_up_to_1_14"] and again["export"] == "", again


def test_a_healthy_folder_has_no_faults():
    report = doctor(PLUGINS, status=0)
    assert report["faults"] == 0 and report["export"] == "" and hdf5_finds(PLUGINS)
    assert report["filters"]["packbits"] == {
        "id": PACKBITS,
        "found_up_to_1_14": f"{PLUGINS}/libzarrbits_packbits.so",
        "found_from_2_0": f"{PLUGINS}/libzarrbits_packbits.so",
    }
    assert what(report, "libzarrbits_packbits.so")["netcdf_codec"] and not what(report, "libzarrbits_bytes.so")["netcdf_codec"]
    assert "FAULT" not in run("doctor")


def sign(path):
    """What h5sign of HDF5 2.2 appends (H5PLsig.h): a signature, its kind and length, a mark, a version."""
    with open(path, "ab") as f:
        f.write(bytes(512) + b"\x03" + (512).to_bytes(4, "little") + b"\x89HPS\r\n\x1a\n" + b"\x01")


def test_signatures_are_missed_where_there_is_a_keystore(here):
    keys, folder = here / "keys", ours(here, "plugins")
    report = doctor(folder, status=0)
    assert "keystore" not in report and not what(report, "libzarrbits_bytes.so")["signed"]

    report = doctor(folder, HDF5_PLUGIN_KEYSTORE=str(keys))
    assert report["keystore"]["fault"] and "No such file or directory" in report["keystore"]["says"]
    keys.mkdir()
    (keys / "link.pem").symlink_to(here)
    (keys / "README").write_text("")
    report = doctor(folder, HDF5_PLUGIN_KEYSTORE=str(keys))
    assert report["keystore"]["fault"] and "no public key" in report["keystore"]["says"] and report["faults"] == 3
    assert f"h5sign -p {folder}/libzarrbits_packbits.so -k" in what(report, "libzarrbits_packbits.so")["says"]

    (keys / "site.pem").write_text("")
    sign(folder / "libzarrbits_packbits.so")
    report = doctor(folder, HDF5_PLUGIN_KEYSTORE=str(keys))
    assert report["keystore"]["keys"] == 1 and report["faults"] == 1
    assert what(report, "libzarrbits_packbits.so")["signed"] and "NOT SIGNED" in what(report, "libzarrbits_bytes.so")["says"]
    sign(folder / "libzarrbits_bytes.so")
    assert doctor(folder, status=0, HDF5_PLUGIN_KEYSTORE=str(keys))["faults"] == 0
    assert hdf5_finds(folder)  # a signature does no harm to an HDF5 that wants none
    assert f"HDF5_PLUGIN_KEYSTORE is {keys}" in run("doctor", path=folder, HDF5_PLUGIN_KEYSTORE=str(keys))


def test_a_missing_folder_in_front_stops_hdf5_up_to_1_14(here):
    missing = here / "missing"
    report = doctor(missing, PLUGINS)
    assert (
        report["folders"][0]["fault"]
        and report["folders"][0]["ends_search_up_to_1_14"]
        and "does not exist" in report["folders"][0]["says"]
    )
    assert report["filters"]["packbits"]["found_up_to_1_14"] == "" and report["filters"]["packbits"]["found_from_2_0"]
    if h5py.version.hdf5_version_tuple < (1, 15):
        assert not hdf5_finds(f"{missing}:{PLUGINS}")
    follows(report["export"])
    # behind, it does no harm
    report = doctor(PLUGINS, missing, status=0)
    assert report["faults"] == 0 and hdf5_finds(f"{PLUGINS}:{missing}")


def test_a_dangling_link_ends_the_search(here):
    folder = here / "dangling"
    folder.mkdir()
    (folder / "libgone.so").symlink_to("/nonexistent/libgone.so")
    report = doctor(folder, PLUGINS)
    assert what(report, "libgone.so")["ends_search"] and "a dangling link" in what(report, "libgone.so")["says"]
    assert report["filters"]["packbits"]["found_up_to_1_14"] == "" and report["filters"]["packbits"]["found_from_2_0"]
    if h5py.version.hdf5_version_tuple < (1, 15):
        assert not hdf5_finds(f"{folder}:{PLUGINS}")
    follows(report["export"])


def test_another_architecture_and_junk_are_skipped(here):
    folder = ours(here, "architecture")
    library = bytearray((folder / "libzarrbits_packbits.so").read_bytes())
    library[18] = 183 if library[18] != 183 else 62
    (folder / "libother_machine.so").write_bytes(library)
    library[4] = 1
    (folder / "libnarrow.so").write_bytes(library)
    (folder / "libjunk.so").write_text("no library")
    (folder / "libempty.so").touch()
    (folder / "notlib.so").touch()
    report = doctor(folder)
    assert (
        "wrong architecture" in what(report, "libother_machine.so")["says"] and "32 bits" in what(report, "libnarrow.so")["says"]
    )
    assert (
        "not a shared library" in what(report, "libjunk.so")["says"]
        and "not a shared library" in what(report, "libempty.so")["says"]
    )
    assert not what(report, "notlib.so")["opened"]
    assert report["faults"] == 4 and report["filters"]["packbits"]["found_up_to_1_14"] and hdf5_finds(folder)


def compile_plugin(folder, name, code, *flags):
    (folder / "x.c").write_text(code)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / name), str(folder / "x.c"), *flags], check=True)
    (folder / "x.c").unlink()


PLUGIN = """
struct { int version, id; unsigned e, d; const char* name; void *a, *b, *c; } info = { %d, %d, 1, 1, "%s", 0, 0, 0 };
int H5PLget_plugin_type(void) { return %d; }
const void* H5PLget_plugin_info(void) { return &info; }
"""


def test_a_class_version_that_netcdf_refuses(here):
    folder = ours(here, "version")
    compile_plugin(folder, "libnewer.so", PLUGIN % (2, 300, "newer", 0))
    report = doctor(folder)
    says = what(report, "libnewer.so")
    assert (
        says["class_version"] == 2
        and says["fault"]
        and "netCDF" in says["says"]
        and "every other plugin of this folder" in says["says"]
    ), says
    assert report["faults"] == 1


def test_what_cannot_be_loaded_or_crashes_or_is_no_filter(here):
    folder = ours(here, "loading")
    compile_plugin(
        folder,
        "libundefined.so",
        "extern int nowhere_defined; int f(void) { return nowhere_defined; }" + PLUGIN % (1, 300, "u", 0),
    )
    compile_plugin(
        folder,
        "libcrash.so",
        "__attribute__((constructor)) static void c(void) { *(volatile int*)0 = 1; }" + PLUGIN % (1, 300, "c", 0),
    )
    compile_plugin(
        folder,
        "libloud.so",
        '#include <stdio.h>\n__attribute__((constructor)) static void c(void) { puts("{loud"); fflush(stdout); }'
        + PLUGIN % (1, 301, "loud", 0),
    )
    compile_plugin(folder, "libvol.so", PLUGIN % (1, 300, "v", 1))
    compile_plugin(folder, "libplain.so", "int x;")
    report = doctor(folder)
    assert (
        "nowhere_defined" in what(report, "libundefined.so")["says"]
        and "ended the process" in what(report, "libcrash.so")["says"]
    )
    assert (
        what(report, "libloud.so")["filter"] == 301
        and "not a filter" in what(report, "libvol.so")["says"]
        and "not an HDF5 plugin" in what(report, "libplain.so")["says"]
    )
    assert report["faults"] == 2, report


def test_plugins_switched_off_and_not_there():
    assert doctor(PLUGINS, HDF5_PLUGIN_PRELOAD="::")["disabled"]
    report = json.loads(run("doctor", "--json", path=None, status=1))["plugins"]
    assert not report["from_environment"] and report["filters"]["packbits"]["found_from_2_0"] == ""
    follows(report["export"])
    assert "NOT FOUND" in run("doctor", path=None, status=1)


def test_a_hostile_name_stays_one_line(here):
    folder = ours(here, "a\n\x1b[31m'; rm")
    report = run("doctor", path=str(folder))
    assert "\x1b" not in report and "\\x1b" in report
    missing = here / "missing"
    follows(doctor(missing, folder)["export"])


def test_what_the_filters_did_in_a_file(here, packed):
    report = json.loads(run("doctor", packed, "--json"))["file"]
    assert report["datasets"] == 7 and report["unreadable"] == []
    found = {d["path"]: d for d in report["filtered"]}
    assert set(found) == {"/camera", "/checked", "/mask", "/edge", "/big", "/mandatory"}
    camera = found["/camera"]
    assert (camera["chunks"], camera["raw_chunks"], camera["decoded_bytes"], camera["stored_bytes"]) == (4, 1, 512, 3 * 96 + 128)
    assert camera["parameters"] == "bits 0 to 11 of each 16-bit value" and not camera["mandatory"]
    assert camera["raw"] == [{"origin": [1, 0], "why": "element (1, 7) is 0x1000, which bits 0 to 11 cannot hold"}], camera["raw"]
    assert found["/checked"]["raw"] == camera["raw"] and found["/checked"]["after"] == ["fletcher32"]
    assert (
        "1 bit of each boolean" in found["/mask"]["parameters"]
        and found["/mask"]["raw_chunks"] == 0
        and found["/mask"]["stored_bytes"] == 14
    )
    assert found["/edge"]["raw_chunks"] == 1 and "over the edge, where the fill value is 0x9" in found["/edge"]["raw"][0]["why"]
    assert found["/big"]["parameters"] == "big endian chunks" and found["/mandatory"]["mandatory"]
    text = run("doctor", packed)
    assert "96 saved" in text and "mandatory" in text and "element (1, 7) is 0x1000" in text, text
    # the same where the plugins are not found: nothing of it needs them but the faults
    report = json.loads(run("doctor", packed, "--json", path=here, status=1))["file"]
    assert [d for d in report["filtered"] if d["path"] == "/camera"][0]["raw"] == camera["raw"]


def make(path, script, plugins=PLUGINS):
    """A file, by a process that has these plugins. `create` makes a dataset of 12 bits of 16, in chunks of 64."""
    program = (
        f"""if 1:
        import h5py, numpy as np, zlib
        PACKBITS, BYTES = {PACKBITS}, {BYTES}
        def create(f, name, n, after=lambda p: None, before=lambda p: None, flag=h5py.h5z.FLAG_OPTIONAL, values=(12,), number=PACKBITS, tid=h5py.h5t.STD_U16LE):
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_chunk((64,))
            before(dcpl)
            dcpl.set_filter(number, flag, values)
            after(dcpl)
            space = h5py.h5s.create_simple((n,), (h5py.h5s.UNLIMITED,))
            return h5py.Dataset(h5py.h5d.create(f.id, name.encode(), tid, space, dcpl))
        def values(n, **at):
            v = np.arange(n, dtype="u2")
            for i, x in at.items(): v[int(i[1:])] = x
            return v
        """  # noqa: E501
        + "\n"
        + "\n".join("        " + line for line in script.strip().splitlines())
    )
    subprocess.run(
        [sys.executable, "-c", program, str(path)], env={**os.environ, "HDF5_PLUGIN_PATH": str(plugins)}, check=True, timeout=600
    )


def filtered(file, status=0, **more):
    return {d["path"]: d for d in json.loads(run("doctor", file, "--json", status=status, **more))["file"]["filtered"]}


def test_how_many_chunks_are_unpacked_and_what_would_hold_their_values(here):
    make(
        here / "x.h5",
        f"""
with h5py.File({str(here / "x.h5")!r}, "w") as f:
    check, deflate = (lambda p: p.set_fletcher32()), (lambda p: p.set_deflate(1))
    both = lambda p: (check(p), deflate(p))
    for name, more in dict(alone={{}}, checked=dict(after=check), deflated=dict(after=deflate), both=dict(after=both), before=dict(before=check),
                           before_deflated=dict(before=check, after=deflate), mandatory=dict(flag=0)).items():
        create(f, name, 640, **more)[:] = values(640, _70=5000, _400=8000, _401=9000)
    create(f, "signed", 128, tid=h5py.h5t.STD_I16BE)[:] = values(128, _5=65536 - 5000).astype("i2")
    create(f, "shifted", 128, values=(4, 0, 4))[:] = values(128, _5=0xF1) & 0xFFF1
    create(f, "fits", 128)[:] = values(128)
    f.create_dataset("mask", data=np.array([0, 1, 2], "i1").view(bool), chunks=(3,), compression=PACKBITS)
""",  # noqa: E501
    )
    found = filtered(here / "x.h5")
    for name in ("alone", "checked", "deflated", "both", "before", "before_deflated", "mandatory"):
        d = found["/" + name]
        assert (d["chunks"], d["raw_chunks"], d["would_hold_all"], d["problem"]) == (10, 2, "14 bits (0 to 13)", ""), d
        assert d["raw"] == [
            {"origin": [64], "why": "element (70) is 0x1388, which bits 0 to 11 cannot hold"},
            {"origin": [384], "why": "element (400) is 0x1f40, which bits 0 to 11 cannot hold"},
        ], d
    assert (
        found["/before"]["before"] == ["fletcher32"]
        and found["/both"]["after"] == ["fletcher32", "deflate"]
        and found["/mandatory"]["mandatory"]
    )
    assert found["/signed"]["would_hold_all"] == "14 bits (0 to 13)" and found["/signed"]["raw_chunks"] == 1
    assert found["/shifted"]["would_hold_all"] == "8 bits (0 to 7)" and found["/shifted"]["raw"][0]["why"].startswith(
        "element (1) is 0x1,"
    )
    assert found["/fits"]["raw_chunks"] == 0 and found["/fits"]["would_hold_all"] == ""
    assert (
        found["/mask"]["raw"][0]["why"] == "element (2) is 2, which is not a boolean" and found["/mask"]["would_hold_all"] == ""
    )
    assert "14 bits (0 to 13) would hold every value" in run("doctor", here / "x.h5")
    # nothing of it needs the plugins
    assert {name: d["raw"] for name, d in filtered(here / "x.h5", 1, path=here).items()} == {
        name: d["raw"] for name, d in found.items()
    }


def test_why_chunks_are_unpacked_whose_values_fit(here):
    path = here / "x.h5"
    make(
        path,
        f"""
with h5py.File({str(path)!r}, "w") as f:
    create(f, "appended", 128)[:] = values(128)
    d = create(f, "direct", 64)
    d.id.write_direct_chunk((0,), values(64).tobytes())
    f.create_dataset("whole", data=values(128), chunks=(64,), compression=PACKBITS, compression_opts=(12,))
""",
    )
    make(
        path,
        f"""
with h5py.File({str(path)!r}, "r+") as f:
    f["appended"].resize((256,))
    f["appended"][128:] = values(128)
""",
        here,
    )
    found = filtered(path)
    assert found["/appended"]["raw_chunks"] == 2 and "had not loaded the plugin" in found["/appended"]["raw"][0]["why"], found[
        "/appended"
    ]
    assert found["/direct"]["raw_chunks"] == 1 and "written around the filter" in found["/direct"]["raw"][0]["why"], found[
        "/direct"
    ]
    assert found["/whole"]["raw_chunks"] == 0


def test_what_was_created_without_the_plugin_is_named(here):
    path = here / "x.h5"
    make(
        path,
        f"""
with h5py.File({str(path)!r}, "w") as f:
    create(f, "numbers", 64)[:] = values(64)
    create(f, "order", 64, values=(1,), number=BYTES)[:] = values(64)
    create(f, "order0", 64, values=(), number=BYTES)[:] = values(64)
""",
        here,
    )
    make(
        path,
        f"""
with h5py.File({str(path)!r}, "r+") as f:
    f.create_dataset("words", data=["a", "b"], dtype=h5py.string_dtype(), chunks=(2,), compression=PACKBITS, compression_opts=(12,))
    regions = f.create_dataset("regions", (2,), h5py.regionref_dtype, chunks=(2,), compression=PACKBITS, compression_opts=(12,))
    regions[:] = [f["numbers"].regionref[:3]] * 2
    f["numbers"][3] = 5
""",  # noqa: E501
    )
    found = filtered(path, 1)
    for name, line in (
        ("/numbers", f"-f /numbers:UD={PACKBITS},1,1,12"),
        ("/order", f"-f /order:UD={BYTES},1,1,1"),
        ("/order0", f"-f /order0:UD={BYTES},1,1,0"),
    ):
        d = found[name]
        assert "did not find the plugin when the dataset was created" in d["problem"] and d["h5repack"] == line, d
        assert d["raw_chunks"] == d["chunks"] == 1, d
    for name in ("/words", "/regions"):
        assert found[name]["problem"] == "" and "variable length" in found[name]["parameters"], found[name]
    # the lines are for a shell, as they are
    text = run("doctor", path, status=1)
    assert "1 chunk of 64, 1 unpacked" in text, text
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("h5repack ")]
    assert len(lines) == 3
    subprocess.run(["bash", "-c", lines[0]], check=True, timeout=600, cwd=here)
    assert filtered(here / "packed.h5")["/numbers"]["stored_bytes"] == 96
    repack = [part for name in ("numbers", "order", "order0") for part in found["/" + name]["h5repack"].split()]
    subprocess.run(["h5repack", *repack, path, here / "new.h5"], check=True, timeout=600)
    found = filtered(here / "new.h5")
    assert found["/numbers"]["parameters"].startswith("bits 0 to 11") and found["/numbers"]["stored_bytes"] == 96


def test_names_that_h5repack_needs_quoted_or_does_not_take(here):
    path = here / "-x y.h5"
    make(
        path,
        f"""
with h5py.File({str(path)!r}, "w") as f:
    create(f, "it's", 64)[:] = values(64)
    create(f, "a:b", 64)[:] = values(64)
""",
        here,
    )
    found = filtered(path, 1)
    assert found["/a:b"]["h5repack"] == "" and "h5repack cannot do" in found["/a:b"]["problem"]
    (line,) = [line for line in run("doctor", path, status=1).splitlines() if line.strip().startswith("h5repack ")]
    subprocess.run(["bash", "-c", line], check=True, timeout=600, cwd=here)
    assert filtered(here / "packed.h5")["/it's"]["stored_bytes"] == 96


def test_h5repack_leaves_datasets_out_without_the_plugins(here, packed):
    """What doctor warns of."""
    warning = "leaves out these datasets, and exits with 0"
    assert warning in run("doctor", packed, path=here, status=1) and warning not in run("doctor", packed)
    done = subprocess.run(
        ["h5repack", "-f", "NONE", packed, here / "plain.h5"],
        env={**os.environ, "HDF5_PLUGIN_PATH": str(here)},
        capture_output=True,
        timeout=600,
    )
    with h5py.File(here / "plain.h5") as f:
        assert done.returncode == 0 and set(f) == {"plain"}


@pytest.mark.parametrize(
    "spelling, says",
    [
        ("~/plugins", "does not expand ~"),
        ("$HOME/plugins", "does not replace variables"),
        ("${HOME}/plugins", "does not replace variables"),
        ("{0};{1}", "separates folders by a colon"),
        ("{0} ", "blanks at its ends"),
        (" {0}", "blanks at its ends"),
        ("{0}\t", "blanks at its ends"),
        ("'{0}'", "quotes are part of the name"),
        ('"{0}"', "quotes are part of the name"),
        ("plugins", "a relative folder"),
        ("./plugins", "a relative folder"),
        ("plugin", "a relative folder"),  # that is not there
    ],
)
@pytest.mark.parametrize("also", ["", ":{0}", "{0}:"])
def test_a_folder_that_is_not_what_was_meant_is_a_fault(here, monkeypatch, spelling, says, also):
    """Wherever it is in the list, and although the plugins may be found here."""
    folder, home = ours(here, "plugins"), here / "home"
    shutil.copytree(folder, home / "plugins")
    monkeypatch.chdir(here)
    path = (also + spelling if also.endswith(":") else spelling + also).replace("{0}", str(folder)).replace("{1}", str(PLUGINS))
    report = doctor(path, HOME=str(home))
    (wrong,) = [f for f in report["folders"] if says in f["says"]]
    assert wrong["fault"] and "FAULT" in run("doctor", path=path, status=1, HOME=str(home))
    monkeypatch.chdir("/")
    follows(report["export"])
    assert not any(
        "plugins" in f["path"] and not f["path"].startswith("/")
        for f in doctor(report["export"].split("=", 1)[1], status=0)["folders"]
    )


def test_plugins_that_are_switched_off_are_switched_on_by_the_line(here):
    for path, status in ((str(PLUGINS), 0), (str(here), 0)):
        report = doctor(path, HDF5_PLUGIN_PRELOAD="::")
        line = report["export"] + '; test -z "${HDF5_PLUGIN_PRELOAD+set}" && exec "$0" doctor'
        done = subprocess.run(
            ["bash", "-c", line, COMMAND],
            env={**os.environ, "HDF5_PLUGIN_PRELOAD": "::", "HDF5_PLUGIN_PATH": path},
            capture_output=True,
        )
        assert done.returncode == status, (line, done.stdout)


def test_an_older_plugin_that_comes_first_is_named(here):
    """It says its version, or is too old for that."""
    version = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    report = doctor(PLUGINS, status=0)
    assert what(report, "libzarrbits_bytes.so")["zarrbits"] == version
    assert f"of zarrbits {version}" in what(report, "libzarrbits_packbits.so")["says"]
    older = here / "older"
    older.mkdir()
    silent = PLUGIN % (1, PACKBITS, "zarrbits-packbits", 0)
    compile_plugin(older, "libsilent.so", silent)
    compile_plugin(older, "libold.so", silent + 'const char* zarrbits_hdf5_version(void) { return "0.0.1"; }')
    report = json.loads(run("doctor", "--json", path=f"{older}:{PLUGINS}"))["plugins"]
    assert f"of zarrbits 0.0.1 (this command is {version})" in what(report, "libold.so")["says"]
    assert "an older zarrbits, which does not say its version" in what(report, "libsilent.so")["says"]
    assert report["filters"]["packbits"]["found_up_to_1_14"].startswith(str(older))


def test_a_folder_that_is_built_in_is_not_every_hdf5s(here):
    """As a package of a distribution installs the plugins, in a file system of its own."""
    built_in = pathlib.Path(json.loads(run("doctor", "--json", path=None, status=1))["plugins"]["folders"][0]["path"])
    there = next(folder for folder in built_in.parents if folder.exists())
    script = 'mount -t tmpfs none "$1" && mkdir -p "$2" && cp "$3"/* "$2" && unset HDF5_PLUGIN_PATH && exec "$0" doctor'
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "bash", "-c", script, COMMAND, there, built_in, PLUGINS],
        capture_output=True,
        text=True,
    )
    if "HDF5 searches" not in done.stdout:
        pytest.skip(f"no file system of its own: {done.stderr}")
    assert done.returncode == 0 and f"found, {built_in}" in done.stdout, done.stdout
    assert "h5py's wheel, does not search there" in done.stdout and f"export HDF5_PLUGIN_PATH={built_in}" in done.stdout


def test_old_files_whose_masks_say_that_chunks_are_unpacked(here):
    """As earlier plugins left them; without the plugin, HDF5 takes them as they are given."""
    path = here / "old.h5"
    make(
        path,
        f"""
with h5py.File({str(path)!r}, "w") as f:
    def old(name, chunk, raw, after=lambda p: None, compress=lambda b: b, mask=None):
        packed = (chunk * 12 + 7) // 8
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((chunk,))
        dcpl.set_filter(PACKBITS, 1, (12, 0, 0, 0, 0x5A504201, 2, 1, 2 | 16 << 8, chunk, 0, packed, 0x100))
        after(dcpl)
        d = h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_U16LE, h5py.h5s.create_simple((chunk,)), dcpl)
        data = np.full(chunk, 5000, "<u2").tobytes() if raw else bytes(packed)
        d.write_direct_chunk((0,), compress(data), filter_mask=int(raw) if mask is None else mask)
    deflate = dict(after=lambda p: p.set_deflate(1), compress=zlib.compress)
    old("alone", 64, True)
    old("one", 1, True)
    old("deflate", 64, False, **deflate)
    old("deflate_raw", 64, True, **deflate)
    old("collective", 64, True, mask=0)
""",
        here,
    )
    wanted = {"alone": 5000, "one": 5000, "deflate": 0, "deflate_raw": 5000, "collective": 5000}
    with h5py.File(path, "r") as f:
        assert {name: set(f[name][:]) for name in wanted} == {name: {value} for name, value in wanted.items()}
    found = filtered(path)
    assert {name: d["raw_chunks"] for name, d in found.items()} == {
        "/" + name: int(value == 5000) for name, value in wanted.items()
    }
    assert all("0x1388" in d["raw"][0]["why"] for d in found.values() if d["raw_chunks"])
    with h5py.File(path, "r+") as f:  # written again by this plugin, also where masks were
        for name in ("alone", "deflate", "deflate_raw", "collective"):
            for value in (7, 6000, 8):
                f[name][:] = value
                f.flush()
    with h5py.File(path, "r") as f:
        assert all(set(f[name][:]) == {8} for name in ("alone", "deflate", "deflate_raw", "collective"))
