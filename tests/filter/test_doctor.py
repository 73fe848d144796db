# SPDX-License-Identifier: BSL-1.0
"""zarrbits doctor and zarrbits suggest, with every fault that they tell planted: test_doctor.py PLUGIN_DIR PACKBITS_ID BYTES_ID"""
import fcntl
import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

PLUGINS, PACKBITS, BYTES = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if os.environ.get("HDF5_PLUGIN_PATH") != PLUGINS:
    os.environ["HDF5_PLUGIN_PATH"] = PLUGINS
    os.execv(sys.executable, [sys.executable] + sys.argv)

import h5py
import numpy as np

COMMAND = os.environ["ZARRBITS_COMMAND"]
home = tempfile.TemporaryDirectory()
here = pathlib.Path(home.name)
ran = []


def test(f):
    f()
    ran.append(f.__name__)


def run(*arguments, path=PLUGINS, status=0, **more):
    env = {**os.environ, **more}
    env.pop("HDF5_PLUGIN_PATH")
    if path is not None:
        env["HDF5_PLUGIN_PATH"] = str(path)
    r = subprocess.run([COMMAND, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=120)
    assert r.returncode == status, f"{arguments}: exit {r.returncode}\n{r.stdout}{r.stderr}"
    return r.stdout if status != 2 else r.stderr


def doctor(*folders, status=1, **more):
    return json.loads(run("doctor", "--json", path=":".join(map(str, folders)), status=status, **more))["plugins"]


def what(report, name):
    (file,) = [f for folder in report["folders"] for f in folder["files"] if f["name"] == name]
    return file


def ours(name):
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


@test
def a_healthy_folder_has_no_faults():
    report = doctor(PLUGINS, status=0)
    assert report["faults"] == 0 and report["export"] == "" and hdf5_finds(PLUGINS)
    assert report["filters"]["packbits"] == {"id": PACKBITS, "found_up_to_1_14": f"{PLUGINS}/libzarrbits_packbits.so", "found_from_2_0": f"{PLUGINS}/libzarrbits_packbits.so"}
    assert what(report, "libzarrbits_packbits.so")["netcdf_codec"] and not what(report, "libzarrbits_bytes.so")["netcdf_codec"]
    assert "FAULT" not in run("doctor")


@test
def a_missing_folder_in_front_stops_hdf5_up_to_1_14():
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


@test
def a_dangling_link_ends_the_search():
    folder = here / "dangling"
    folder.mkdir()
    (folder / "libgone.so").symlink_to("/nonexistent/libgone.so")
    report = doctor(folder, PLUGINS)
    assert what(report, "libgone.so")["ends_search"] and "a link to nothing" in what(report, "libgone.so")["says"]
    assert report["filters"]["packbits"]["found_up_to_1_14"] == "" and report["filters"]["packbits"]["found_from_2_0"]
    if h5py.version.hdf5_version_tuple < (1, 15):
        assert not hdf5_finds(f"{folder}:{PLUGINS}")
    follows(report["export"])


@test
def another_architecture_and_junk_are_skipped():
    folder = ours("architecture")
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


@test
def a_class_version_that_netcdf_refuses():
    folder = ours("version")
    compile_plugin(folder, "libnewer.so", PLUGIN % (2, 300, "newer", 0))
    report = doctor(folder)
    says = what(report, "libnewer.so")
    assert says["class_version"] == 2 and says["fault"] and "netCDF" in says["says"] and "every other plugin of this folder" in says["says"], says
    assert report["faults"] == 1


@test
def what_cannot_be_loaded_or_crashes_or_is_no_filter():
    folder = ours("loading")
    compile_plugin(folder, "libundefined.so", "extern int nowhere_defined; int f(void) { return nowhere_defined; }" + PLUGIN % (1, 300, "u", 0))
    compile_plugin(folder, "libcrash.so", "__attribute__((constructor)) static void c(void) { *(volatile int*)0 = 1; }" + PLUGIN % (1, 300, "c", 0))
    compile_plugin(folder, "libloud.so", "#include <stdio.h>\n__attribute__((constructor)) static void c(void) { puts(\"{loud\"); fflush(stdout); }" + PLUGIN % (1, 301, "loud", 0))
    compile_plugin(folder, "libvol.so", PLUGIN % (1, 300, "v", 1))
    compile_plugin(folder, "libplain.so", "int x;")
    report = doctor(folder)
    assert "nowhere_defined" in what(report, "libundefined.so")["says"] and "ended the process" in what(report, "libcrash.so")["says"]
    assert what(report, "libloud.so")["filter"] == 301 and "no filter" in what(report, "libvol.so")["says"] and "no plugin" in what(report, "libplain.so")["says"]
    assert report["faults"] == 2, report


@test
def plugins_switched_off_and_not_there():
    assert doctor(PLUGINS, HDF5_PLUGIN_PRELOAD="::")["disabled"]
    report = json.loads(run("doctor", "--json", path=None, status=1))["plugins"]
    assert not report["from_environment"] and report["filters"]["packbits"]["found_from_2_0"] == ""
    follows(report["export"])
    assert "NOT FOUND" in run("doctor", path=None, status=1)


@test
def a_hostile_name_stays_one_line():
    folder = ours("a\n\x1b[31m'; rm")
    report = run("doctor", path=str(folder))
    assert "\x1b" not in report and "\\x1b" in report
    missing = here / "missing"
    follows(doctor(missing, folder)["export"])


packed = here / "packed.h5"


@test
def what_the_filters_did_in_a_file():
    v = np.arange(4 * 64, dtype="u2").reshape(4, 64)
    v[1, 7] = 4096
    with h5py.File(packed, "w") as f:
        f.create_dataset("camera", data=v, chunks=(1, 64), compression=PACKBITS, compression_opts=(12,))
        f.create_dataset("checked", data=v, chunks=(1, 64), compression=PACKBITS, compression_opts=(12, 2), fletcher32=True)
        f.create_dataset("mask", data=np.ones(99, bool), chunks=(50,), compression=PACKBITS)
        f.create_dataset("edge", data=np.zeros(70, "u2"), chunks=(64,), compression=PACKBITS, compression_opts=(3,), fillvalue=9)
        f.create_dataset("big", data=v, chunks=(4, 64), compression=BYTES, compression_opts=(1,))
        f["plain"] = v
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((64,))
        dcpl.set_filter(PACKBITS, 0, (5,))
        h5py.h5d.create(f.id, b"mandatory", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((64,)), dcpl)
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


def of_an_earlier_plugin(path):
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
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "HDF5_PLUGIN_PATH": str(here)}, check=True, timeout=120)


@test
def what_an_earlier_plugin_left_at_risk():
    old, new = here / "old.h5", here / "new.h5"
    of_an_earlier_plugin(old)
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


@test
def what_packbits_would_do():
    rng = np.random.default_rng(5)
    source = here / "it's plain.h5"
    fields = {
        "raw": (rng.integers(0, 4096, (300, 200)).astype("u2"), 0, 11), "mask": (rng.integers(0, 2, (30, 20)).astype(bool), 0, 0),
        "shifted": ((rng.integers(0, 1000, (64, 65)) << 4).astype(">i4"), 4, 14), "negative": (rng.integers(-8, 8, 1000), 0, 3),
        "floats": (rng.integers(0, 100, 1000).astype("f4"), 17, 30), "flags": (rng.integers(0, 2, 1000).astype("u1"), 0, 0), "zeros": (np.zeros(50, "u8"), 0, 0),
        "minus": (np.full(50, -1, "i2"), 0, 0), "top": (np.full(50, 128, "u1"), 7, 7), "least": (np.full(50, -128, "i1"), 7, 7)}
    with h5py.File(source, "w") as f:
        for name, (values, _, _) in fields.items():
            f[f"a group/{name}"] = values
            values.flat[0] = {"raw": 4095, "shifted": 1023 << 4 if values.dtype.kind == "i" else 0, "negative": -8, "floats": 99}.get(name, values.flat[0])
            f[f"a group/{name}"][...] = values
        f["full"] = rng.integers(0, 65536, 1000).astype("u2")
        f["full"][0] = 65535
        f["text"] = np.array([b"a"] * 100)
        f["one"] = 5
        f.create_dataset("gzipped", data=np.zeros(1000, "u4"), compression="gzip")
        f.create_dataset("fill", shape=(1000,), chunks=(64,), dtype="u2", fillvalue=1023)
        f["fill"][:64] = 3
        f.create_dataset("chunked", data=np.arange(5000).astype("u4").reshape(50, 100), chunks=(16, 64))
    report = json.loads(run("suggest", "--json", source))
    found = {d["path"].rsplit("/")[-1]: d for d in report["datasets"]}
    for name, (_, first, last) in fields.items():
        assert (found[name]["first_bit"], found[name]["last_bit"]) == (first, last), (name, found[name])
        assert found[name]["worthwhile"], found[name]
    assert found["fill"]["last_bit"] == 9 and found["chunked"]["last_bit"] == 12 and found["chunked"]["chunk"] == [16, 64]
    assert not found["full"]["worthwhile"] and "no gain" in found["gzipped"]["obstacle"]
    assert {l["path"] for l in report["left_out"]} == {"/text", "/one"}, report["left_out"]
    # the lines do what they say
    text = run("suggest", source)
    all_at_once = text.split("All at once")[1].splitlines()[1].strip()
    subprocess.run(all_at_once, shell=True, check=True, cwd=here)
    with h5py.File(here / "packed.h5") as f, h5py.File(source) as g:
        for name in found:
            path = found[name]["path"]
            assert np.array_equal(f[path][...], g[path][...]), path
            if found[name]["worthwhile"]:
                assert f[path].id.get_storage_size() == found[name]["packed_bytes"], (path, f[path].id.get_storage_size(), found[name])
    assert f'{sum(d["worthwhile"] for d in found.values())} datasets would gain' in text, text
    done = run("suggest", "--all", here / "packed.h5")
    # "fill" was not packed, and h5repack wrote all its chunks
    assert "1 dataset would gain" in done and done.count("packed already") == len(fields) + 1, done


@test
def the_lines_name_datasets_as_h5repack_does():
    source = here / "links.h5"
    with h5py.File(source, "w") as f:
        f["b"] = np.arange(100, dtype="u2")
        f["a/inner/x"] = f["b"]  # the same dataset: h5repack meets it here first
        f["z"] = f["b"]
    (found,) = json.loads(run("suggest", "--json", source))["datasets"]
    assert "/a/inner/x:UD=" in found["h5repack"], found
    subprocess.run(f"h5repack {found['h5repack']} links.h5 links_packed.h5", shell=True, check=True, cwd=here)
    with h5py.File(here / "links_packed.h5") as f:
        assert f["z"].id.get_storage_size() == found["packed_bytes"] and np.array_equal(f["b"][...], np.arange(100))


@test
def what_h5repack_cannot_read_is_warned_of():
    source = here / "lzf.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("packed", data=np.zeros((100, 100), "u2"), compression="lzf")
        f["plain"] = np.arange(100, dtype="u2")
    report = json.loads(run("suggest", "--json", source))
    assert [(u["path"], "lzf" in u["filter"]) for u in report["filter_not_found"]] == [("/packed", True)], report
    text = run("suggest", source)
    assert "WARNING: h5repack" in text and "/packed: lzf" in text, text
    assert "WARNING" not in run("suggest", here / "links.h5")


@test
def suggestions_are_made_in_little_memory():
    big = here / "large.h5"
    with h5py.File(big, "w", libver="latest") as f:
        d = f.create_dataset("x", (1 << 26,), "u4", chunks=(1 << 20,))  # 256 MiB
        for i in range(0, 1 << 26, 1 << 22):
            d[i:i + (1 << 22)] = np.full(1 << 22, 7, "u4")
    r = subprocess.run(["sh", "-c", f'ulimit -v 200000; exec "{COMMAND}" suggest --json "{big}"'], capture_output=True, text=True, timeout=120)
    big.unlink()
    assert r.returncode == 0 and json.loads(r.stdout)["datasets"][0]["last_bit"] == 2, r.stderr


@test
def a_terminal_sees_progress_and_nothing_of_it_stays():
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
    with subprocess.Popen([COMMAND, *map(str, arguments)], stdout=theirs, stderr=subprocess.DEVNULL) as p:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


@test
def on_a_terminal_lines_are_broken_between_words_and_nothing_else_changes():
    for arguments in (["doctor", packed], ["suggest", "--all", packed]):
        piped = run(*arguments)
        assert "\x1b" not in piped
        for columns in (40, 80):
            shown = on_a_terminal(columns, *arguments)
            assert shown.split() == piped.split() and len(shown.splitlines()) > len(piped.splitlines()), (columns, shown)
            for line in shown.splitlines():
                copied = line.startswith(("  h5repack ", "  export "))
                assert len(line) <= columns or copied or " " not in line.strip(), (columns, line)
            # lines that people copy are whole
            assert [l for l in shown.splitlines() if l.startswith("  h5repack ")] == [l for l in piped.splitlines() if l.startswith("  h5repack ")]
        assert on_a_terminal(1000, *arguments) == piped


@test
def wrong_use_and_wrong_files():
    assert "FILE" in run("suggest", status=2)
    for command in ("doctor", "suggest"):
        for wrong in ("/nonexistent.h5", here, os.path.abspath(__file__)):
            r = subprocess.run([COMMAND, command, str(wrong)], capture_output=True, text=True)
            assert r.returncode == 1 and r.stderr.startswith("zarrbits: ") and r.stderr.count("\n") == 1, r


@test
def damaged_files_never_end_without_a_word():
    whole = packed.read_bytes() if packed.exists() else b""
    rng = np.random.default_rng(9)
    for k in range(40):
        damaged = bytearray(whole)
        for _ in range(1 + k % 8):
            damaged[rng.integers(8, len(damaged))] = rng.integers(0, 256)
        (here / "damaged.h5").write_bytes(damaged)
        for command in ("doctor", "suggest"):
            r = subprocess.run([COMMAND, command, str(here / "damaged.h5")], capture_output=True, text=True, errors="replace", timeout=60)
            assert r.returncode in (0, 1) and r.stdout + r.stderr, (command, k, r)


print(f"{len(ran)} tests passed: {', '.join(ran)}")
