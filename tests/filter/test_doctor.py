# SPDX-License-Identifier: BSL-1.0
"""zarrbits doctor, with every fault that it can report planted."""
import json
import os
import shutil
import subprocess
import sys

import h5py
import pytest

from doctor import COMMAND, PACKBITS, PLUGINS, run, write_packed


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
    r = subprocess.run([sys.executable, "-c", f"import h5py; print(h5py.h5z.filter_avail({PACKBITS}))"], env={**os.environ, "HDF5_PLUGIN_PATH": str(path)},
                       capture_output=True, text=True)
    return r.stdout.strip() == "True"


def follows(line):
    """HDF5 and doctor agree that the export line helps."""
    value = subprocess.run(["bash", "-c", line + '; printf %s "$HDF5_PLUGIN_PATH"'], capture_output=True, text=True).stdout
    assert hdf5_finds(value), line
    again = json.loads(subprocess.run(
        [COMMAND, "doctor", "--json"], env={**os.environ, "HDF5_PLUGIN_PATH": value}, capture_output=True, text=True).stdout)["plugins"]
    assert again["filters"]["packbits"]["found_up_to_1_14"] and again["export"] == "", again


def test_a_healthy_folder_has_no_faults():
    report = doctor(PLUGINS, status=0)
    assert report["faults"] == 0 and report["export"] == "" and hdf5_finds(PLUGINS)
    assert report["filters"]["packbits"] == {"id": PACKBITS, "found_up_to_1_14": f"{PLUGINS}/libzarrbits_packbits.so", "found_from_2_0": f"{PLUGINS}/libzarrbits_packbits.so"}
    assert what(report, "libzarrbits_packbits.so")["netcdf_codec"] and not what(report, "libzarrbits_bytes.so")["netcdf_codec"]
    assert "FAULT" not in run("doctor")


def test_a_missing_folder_in_front_stops_hdf5_up_to_1_14(here):
    missing = here / "missing"
    report = doctor(missing, PLUGINS)
    assert report["folders"][0]["fault"] and report["folders"][0]["ends_search_up_to_1_14"] and "does not exist" in report["folders"][0]["says"]
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
    assert what(report, "libgone.so")["ends_search"] and "a link to nothing" in what(report, "libgone.so")["says"]
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
    assert "wrong architecture" in what(report, "libother_machine.so")["says"] and "32 bits" in what(report, "libnarrow.so")["says"]
    assert "no shared library" in what(report, "libjunk.so")["says"] and "no shared library" in what(report, "libempty.so")["says"]
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
    assert says["class_version"] == 2 and says["fault"] and "netCDF" in says["says"] and "every other plugin of this folder" in says["says"], says
    assert report["faults"] == 1


def test_what_cannot_be_loaded_or_crashes_or_is_no_filter(here):
    folder = ours(here, "loading")
    compile_plugin(folder, "libundefined.so", "extern int nowhere_defined; int f(void) { return nowhere_defined; }" + PLUGIN % (1, 300, "u", 0))
    compile_plugin(folder, "libcrash.so", "__attribute__((constructor)) static void c(void) { *(volatile int*)0 = 1; }" + PLUGIN % (1, 300, "c", 0))
    compile_plugin(folder, "libloud.so", "#include <stdio.h>\n__attribute__((constructor)) static void c(void) { puts(\"{loud\"); fflush(stdout); }" + PLUGIN % (1, 301, "loud", 0))
    compile_plugin(folder, "libvol.so", PLUGIN % (1, 300, "v", 1))
    compile_plugin(folder, "libplain.so", "int x;")
    report = doctor(folder)
    assert "nowhere_defined" in what(report, "libundefined.so")["says"] and "ended the process" in what(report, "libcrash.so")["says"]
    assert what(report, "libloud.so")["filter"] == 301 and "no filter" in what(report, "libvol.so")["says"] and "no plugin" in what(report, "libplain.so")["says"]
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
    assert "1 bit of each boolean" in found["/mask"]["parameters"] and found["/mask"]["raw_chunks"] == 0 and found["/mask"]["stored_bytes"] == 14
    assert found["/edge"]["raw_chunks"] == 1 and "over the edge, where the fill value is 0x9" in found["/edge"]["raw"][0]["why"]
    assert found["/big"]["parameters"] == "big endian chunks" and found["/mandatory"]["mandatory"]
    text = run("doctor", packed)
    assert "96 saved" in text and "MANDATORY" in text and "element (1, 7) is 0x1000" in text, text
    # the same where the plugins are not found: nothing of it needs them but the faults
    report = json.loads(run("doctor", packed, "--json", path=here, status=1))["file"]
    assert [d for d in report["filtered"] if d["path"] == "/camera"][0]["raw"] == camera["raw"]


def of_an_earlier_plugin(path, elsewhere):
    """Datasets as the plugin of 0.1.0 made them, whose sizes packed and raw could be the same. Without the plugin, HDF5 takes them as they are given."""
    program = f"""if 1:
        import h5py, numpy as np
        with h5py.File({str(path)!r}, "w") as f:
            def make(name, chunk, raw, after=lambda p: None, options=0, compress=lambda b: b):
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                dcpl.set_chunk((chunk,))
                packed = (chunk * 12 + 7) // 8
                dcpl.set_filter({PACKBITS}, h5py.h5z.FLAG_OPTIONAL, (12, options, 0, 0, 0x5A504201, 2, 1, 2 | 16 << 8, chunk, 0, packed, 0x100))
                after(dcpl)
                d = h5py.h5d.create(f.id, name, h5py.h5t.STD_U16LE, h5py.h5s.create_simple((chunk,)), dcpl)
                values = np.full(chunk, 5000 if raw else 0, "<u2").tobytes()
                d.write_direct_chunk((0,), compress(values if raw else bytes(packed)), filter_mask=int(raw))
            import zlib
            deflate = dict(after=lambda p: p.set_deflate(1), compress=zlib.compress)
            make(b"alone", 64, True)
            make(b"one", 1, True)
            make(b"deflate", 64, False, **deflate)
            make(b"deflate_raw", 64, True, **deflate)
            make(b"cut", 64, False, options=4, **deflate)
            make(b"collective", 64, True)
            f["collective"].id.write_direct_chunk((0,), np.full(64, 5000, "<u2").tobytes(), filter_mask=0)
        """
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "HDF5_PLUGIN_PATH": str(elsewhere)}, check=True, timeout=120)


def test_what_an_earlier_plugin_left_at_risk(here):
    old, new = here / "old.h5", here / "new.h5"
    of_an_earlier_plugin(old, here)
    values = {"alone": 5000, "one": 5000, "deflate": 0, "deflate_raw": 5000, "cut": 0, "collective": 5000}
    with h5py.File(old, "r") as f:
        for name, value in values.items():
            assert (f[name][:] == value).all(), (name, f[name][:])
    found = {d["path"]: d for d in json.loads(run("doctor", old, "--json", status=1))["file"]["filtered"]}
    at_risk = {name: d["problem"] for name, d in found.items() if d["problem"].startswith("AT RISK")}
    assert set(at_risk) == {"/one", "/deflate", "/deflate_raw"}, at_risk
    assert found["/collective"]["raw_chunks"] == found["/alone"]["raw_chunks"] == 1
    # what it says to do, in one command
    advice = [at_risk[name].split("(h5repack ")[1].split(" old.h5")[0].replace("NAME", name[1:]).split() for name in ("/one", "/deflate", "/deflate_raw")]
    subprocess.run(["h5repack", *sum(advice, []), old, new], check=True, timeout=120)
    assert all(not d["problem"] for d in json.loads(run("doctor", new, "--json"))["file"]["filtered"])
    with h5py.File(new, "r") as f:
        for name, value in values.items():
            assert (f[name][:] == value).all(), (name, f[name][:])
