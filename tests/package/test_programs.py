# SPDX-License-Identifier: BSL-1.0
"""Every C++ program in README.md and docs/ compiles without a warning, casts nothing, and ends with status 0; their fragments
compile among what they leave out.
The examples cast nothing, either. A camera's recorder that begins with README's program learns of a full disk."""

import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCKS = [
    (f"{document.relative_to(ROOT)} {i}", block)
    for document in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    for i, block in enumerate(re.findall(r"```cpp\n(.*?)```", document.read_text(encoding="utf-8"), re.S))
]
PROGRAMS = [b for b in BLOCKS if "int main(" in b[1]]
EXAMPLES = sorted(ROOT.glob("examples/*.cpp"))


def test_there_are_some():
    assert PROGRAMS and len(PROGRAMS) + len(EXAMPLES) >= 5


@pytest.mark.parametrize("name, block", BLOCKS, ids=[name for name, _ in BLOCKS])
def test_nothing_is_cast_to_char(name, block):
    """write_elements() and read_elements() take elements as they are."""
    assert "_cast<char" not in block and "_cast<const char" not in block


def compiled(block, folder):
    source, program = folder / "program.cpp", folder / "program"
    source.write_text(block, encoding="utf-8")
    subprocess.run(
        [
            os.environ["ZARRBITS_CXX"],
            "-std=c++20",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            f"-I{ROOT / 'include'}",
            source,
            *os.environ["ZARRBITS_LIBRARIES"].split(":"),
            *(flag for flag in os.environ["ZARRBITS_HDF5_FLAGS"].split(":") if flag and "hdf5" in block),
            "-pthread",
            "-o",
            program,
        ],
        check=True,
    )
    return program


@pytest.mark.parametrize("name, block", PROGRAMS, ids=[name for name, _ in PROGRAMS])
def test_a_program_compiles_and_runs(name, block, tmp_path):
    if "hdf5" in block and not os.environ["ZARRBITS_HDF5_FLAGS"]:
        pytest.skip("this build has no HDF5 plugins")
    plugins = {"HDF5_PLUGIN_PATH": os.environ.get("ZARRBITS_PLUGINS", "")}
    subprocess.run([compiled(block, tmp_path)], cwd=tmp_path, env=os.environ | plugins, check=True)


def test_a_recorder_without_the_plugin_says_why(tmp_path):
    [block] = [block for name, block in PROGRAMS if name.startswith("README") and "hdf5.hpp" in block]
    if not os.environ["ZARRBITS_HDF5_FLAGS"]:
        pytest.skip("this build has no HDF5 plugins")
    without = os.environ | {"HDF5_PLUGIN_PATH": str(tmp_path)}
    done = subprocess.run([compiled(block, tmp_path)], cwd=tmp_path, env=without, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert "zarrbits: HDF5 does not find libzarrbits_packbits.so (filter" in done.stderr, done
    assert "set HDF5_PLUGIN_PATH to its folder before the program starts" in done.stderr, done


# what the fragments of docs/guide/streams.md and hdf5-threads.md leave out
AROUND = """
#include <zarrbits/iostreams.hpp>
#include <boost/iostreams/compose.hpp>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/device/file_descriptor.hpp>
#include <boost/iostreams/filter/zlib.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <boost/iostreams/restrict.hpp>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>
namespace io = boost::iostreams;
const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});
std::vector<std::uint16_t> frame(100);
std::vector<std::vector<char>> chunks;
std::string next_name();
const char* data = nullptr;
const std::size_t size = 0;
const std::uint64_t elements = 100;
const io::stream_offset offset = 0;
"""


def test_fragments_compile(tmp_path):
    fragments = [(name, block) for name, block in BLOCKS if "int main(" not in block]
    assert len(fragments) >= 10
    functions = []
    for i, (name, block) in enumerate(fragments):
        missing = [
            declaration
            for word, declaration in (
                ("out.", "io::filtering_ostream out;"),
                ("frames", "std::vector<std::uint16_t> frames;"),
                ("spot", "std::vector<std::uint16_t> spot;"),
                ("hdf5::", "const hid_t camera = 0;"),
            )
            if word in block and declaration.rstrip(";") not in block
        ]
        functions.append(f'#line 1 "{name}"\nvoid fragment_{i}() {{ {" ".join(missing)}\n{block}}}\n')
    has_hdf5 = bool(os.environ["ZARRBITS_HDF5_FLAGS"])
    functions = [f for f in functions if has_hdf5 or "hdf5::" not in f]
    text = ("#include <zarrbits/hdf5.hpp>\n" if has_hdf5 else "") + AROUND + "".join(functions)
    (tmp_path / "fragments.cpp").write_text(text, encoding="utf-8")
    include_flags = [f for f in os.environ["ZARRBITS_HDF5_FLAGS"].split(":") if f.startswith("-")]
    done = subprocess.run(
        [
            os.environ["ZARRBITS_CXX"],
            "-std=c++20",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused",
            f"-I{ROOT / 'include'}",
        ]
        + [*include_flags, "fragments.cpp"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_fragments_in_c_compile(tmp_path):
    [block] = re.findall(r"^```c\n(.*?)^```", (ROOT / "docs/guide/c.md").read_text(encoding="utf-8"), re.M | re.S)
    text = (
        "#include <stdio.h>\n#include <zarrbits/zarrbits_c.h>\n"
        "uint16_t row[1000];\nunsigned char chunk[1500];\nint main(void) {\n" + block + "return element != 0; }"
    )
    (tmp_path / "fragment.c").write_text(text, encoding="utf-8")
    subprocess.run(
        ["cc", "-std=c99", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "fragment.c"],
        cwd=tmp_path,
        check=True,
    )


def check_recorder_was_told(done):
    """It has no handler: an exception that nobody catches ends it, and the sentence is on standard error."""
    assert done.returncode == -signal.SIGABRT and "what():" in done.stderr and "written" in done.stderr, done


@pytest.mark.parametrize("values", [1 << 20, 100])  # as it stands there, and no more than the buffers hold
def test_a_recorder_learns_of_a_full_disk(tmp_path, values):
    [block] = [block for name, block in PROGRAMS if name.startswith("README") and "iostreams" in block]
    assert block.count("1 << 20") == 1
    block = block.replace("1 << 20", str(values))
    program, disk = compiled(block, tmp_path), tmp_path / "disk"
    disk.mkdir()

    def record(before=(), **how):
        return subprocess.run([*before, program], cwd=disk, capture_output=True, text=True, timeout=600, **how)

    whole = values * 12 // 8
    assert record().returncode == 0 and (disk / "frame.bits").read_bytes() == b"\xbc\xca\xab" * (whole // 3)
    for room in (
        0,
        whole // 2,
        whole - 1,
    ):  # as `ulimit -f` has it, where a signal that nobody handles would be the end without a sentence

        def limited(most=room):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        check_recorder_was_told(record(preexec_fn=limited))
    (disk / "frame.bits").unlink()
    (disk / "frame.bits").symlink_to("/dev/full")
    check_recorder_was_told(record())
    (disk / "frame.bits").unlink()
    small = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        'mount -t tmpfs -o size=4096 none "$0" && head -c 4096 /dev/zero > "$0/full" && cd "$0" && exec "$@"',
        str(disk),
    ]
    if not shutil.which("unshare") or subprocess.run([*small, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the rest passed, but this system lets nobody mount a small disk (unshare --map-root-user --mount)")
    check_recorder_was_told(record(small))


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.name for e in EXAMPLES])
def test_an_example_casts_nothing(example):
    assert "reinterpret_cast" not in example.read_text(encoding="utf-8")
