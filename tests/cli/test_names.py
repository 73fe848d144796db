# SPDX-License-Identifier: BSL-1.0
"""Names in a file are hostile: none of them acts on the terminal, and every line of `suggest` can be pasted."""

import json
import os
import re
import subprocess

import h5py
import numpy as np
import pytest

from command import COMMAND, run
from screen import on_terminal

ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
EVIL = [
    "esc\x1b[31m",
    "bell\x07",
    "line\nfeed",
    "carriage\rreturn",
    "tab\t",
    "delete\x7f",
    "c1\u009b31m",
    "nel\u0085x",
    "over\u202egnp.exe",
    "isolate\u2066x\u2069",
    "mark\u200e\u200f\u061c",
    "separator\u2028x\u2029",
    "bom\ufeff",
    "not utf8 \udcff\udcfe",
    "surrogate \udced\udca0\udc80",
    "escape\\x1b",
    "euro \u20ac",
]
PLAIN = [
    "it's",
    'say "x"',
    "sp ace",
    "$HOME `id` $(id)",
    "a;b|c&d",
    "-f",
    "NONE",
    "star*?[a]",
    "#hash",
    "!bang",
    "{a,b}".replace(",", " "),
    " lead",
    "trail ",
    "~",
    "back\\slash",
    "per%cent%FF",
    "\\033",
]
CANNOT = ["colon:", ":before", "a:b", "com,ma", "long" + "x" * 260]


def raw(name):
    return os.fsencode(name)


def create(group, name, values):
    # h5py's own way refuses names that are not UTF-8
    space, dcpl = h5py.h5s.create_simple(values.shape), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk(values.shape)
    d = h5py.h5d.create(group, raw(name), h5py.h5t.py_create(values.dtype, logical=True), space, dcpl)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return d


def hostile_file(path):
    # 12 bits of 16: all of them gain
    values = np.arange(4096, dtype="<u2")
    with h5py.File(path, "w") as f:
        for name in EVIL + PLAIN + CANNOT:
            create(f.id, name, values)
            group = h5py.h5g.create(f.id, raw("in " + name[:100]))
            d = create(group, name, values[::2].copy())
            # attributes, members and links with such names
            space = h5py.h5s.create(h5py.h5s.SCALAR)
            h5py.h5a.create(d, raw(name), h5py.h5t.NATIVE_INT32, space).write(np.array(1, "i4"))
            group.links.create_soft(raw("soft " + name), raw("/nowhere/" + name))
            group.links.create_external(raw("external " + name), raw(name) + b".h5", raw("/" + name))
            compound = h5py.h5t.create(h5py.h5t.COMPOUND, 4)
            compound.insert(raw(name), 0, h5py.h5t.STD_I32LE)
            h5py.h5d.create(group, raw("compound " + name), compound, h5py.h5s.create_simple((2,)))
            h5py.h5d.create(group, raw("skipped " + name), h5py.h5t.STD_REF_DSETREG, h5py.h5s.create_simple((2,)))


def nothing_acts(what, text):
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as e:
        raise AssertionError(f"{what}: bytes that are not UTF-8: {text[e.start - 40 : e.end + 40]}") from e
    found = ACTS.search(text)
    assert not found, f"{what}: {found.group()!r} in {text[max(0, found.start() - 60) : found.end() + 60]!r}"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return str(tmp_path_factory.mktemp("names"))


@pytest.fixture(scope="module")
def file(here):
    name = raw(here) + raw("/in\x1b[2J\u202e\udcff 'n.h5")
    hostile_file(name)
    return name


def test_no_command_prints_what_acts(here, file):
    name = file
    store = raw(here) + raw("/out\x1b]0;x\x07.zarr")
    commands = {
        "inspect": ["inspect", name],
        "inspect --json": ["inspect", "--json", name],
        "plan": ["plan", name, store],
        "plan --json": ["plan", "--json", name, store],
        "convert": ["convert", "--json", name, store],
        "inspect store": ["inspect", store],
        "inspect both": ["inspect", name, store],
        "verify": ["verify", name, store],
        "verify --json": ["verify", "--json", name, store],
        "again": ["convert", name, store],
        "suggest": ["suggest", name],
        "suggest --all": ["suggest", "--all", name],
        "suggest --json": ["suggest", "--json", name],
        "doctor": ["doctor", name],
        "doctor --json": ["doctor", "--json", name],
        "no such object": ["plan", name + b":/no\x1bthing", store],
        "no such file": ["encode", "--data-type", "u\x1bint8", "--codec", "pa\u009bck", raw("no\x1b\udcff")],
        "no such command": [raw("\x1b[2J\udcff")],
        "no such option": ["convert", raw("--\x1bx\udcff")],
        "selection": ["convert", "--include", raw("/\x1b\udcff**"), name, store + b"2"],
        "share": ["convert", "--share", raw("\x1b\udcff"), name, store + b"3"],
    }
    for title, arguments in commands.items():
        r = subprocess.run(
            [raw(COMMAND), *(raw(a) if isinstance(a, str) else a for a in arguments)], capture_output=True, timeout=600
        )
        assert r.returncode in (0, 1, 2, 3), (title, r.returncode, r.stderr[-500:])
        assert r.stdout or r.stderr, title
        nothing_acts(title, r.stdout)
        nothing_acts(title, r.stderr)
        if "--json" in arguments:
            json.loads(r.stdout)
    # on a terminal there are colours and a line that is drawn again, and nothing else
    for arguments in (["convert", "--overwrite", name, store], ["inspect", name], ["suggest", name]):
        text, _ = on_terminal([COMMAND, *arguments], 100)
        nothing_acts("on a terminal", re.sub("\x1b\\[(K|[0-9;]*m)|\r", "", text))
    # JSON has the names as they are
    found = {
        d["path"]
        for d in json.loads(subprocess.run([raw(COMMAND), b"suggest", b"--json", name], capture_output=True, check=True).stdout)[
            "datasets"
        ]
    }
    assert {"/esc\x1b[31m", "/over\u202egnp.exe", "/not utf8 %FF%FE", "/nel\u0085x"} <= found, found


@pytest.fixture(scope="module")
def floats(here):
    path = os.path.join(here, "floats.h5")
    with h5py.File(path, "w") as f:
        positive = np.random.default_rng(1).random(10000).astype("f4") + np.float32(1.5)
        f.create_dataset("positive", data=np.append(positive, np.float32(3e38)), chunks=(1000,))  # no sign: 31 of 32 bits
        f.create_dataset("rounded", data=np.round(positive * 4), chunks=(1000,))
        f.create_dataset("integers", data=np.arange(2**31 - 1000, 2**31 - 1, dtype="u4"), chunks=(999,))  # 31 of 32 bits as well
    return path


def test_what_a_store_says_does_not_act(here, floats):
    for i, evil in enumerate(EVIL):
        store = os.path.join(here, f"hostile{i}.zarr")
        node = os.path.join(store, raw(evil).decode("latin1").replace("/", "_"))
        os.makedirs(node)
        says = evil.encode("utf-8", "replace").decode()
        with open(os.path.join(store, "zarr.json"), "w") as f:
            json.dump({"zarr_format": 3, "node_type": "group", "attributes": {says: says}, "zarrbits": {says: says}}, f)
        with open(os.path.join(node, "zarr.json"), "w") as f:
            json.dump(
                {
                    "zarr_format": 3,
                    "node_type": "array",
                    "shape": [1],
                    "data_type": {"name": says, "configuration": {says: says}},
                    "fill_value": says,
                    "chunk_grid": {"name": says, "configuration": {"chunk_shape": [1]}},
                    "chunk_key_encoding": {"name": says},
                    "codecs": [{"name": says, "configuration": {says: says}}],
                    "dimension_names": [says],
                    says: says,
                },
                f,
            )
        for arguments in (["inspect", store], ["inspect", "--json", store], ["verify", floats, store]):
            r = subprocess.run([COMMAND, *arguments], capture_output=True, timeout=600)
            nothing_acts(arguments, r.stdout)
            nothing_acts(arguments, r.stderr)


def test_any_name_in_a_sentence_can_be_pasted():
    random = np.random.default_rng(17)
    characters = [chr(c) for c in (*range(1, 0xFF), 0x2028, 0x202E, 0x2066, 0xFEFF, 0x20AC, 0x1F600, 0xDC80, 0xDCFF)]
    names = ["".join(random.choice(characters, random.integers(1, 12))) for _ in range(100)]
    said = []
    for name in names:
        r = subprocess.run([raw(COMMAND), raw("no " + name)], capture_output=True)
        nothing_acts(name, r.stderr)
        said.append(re.fullmatch("zarrbits: (.*) is not a command of zarrbits; .*\n", r.stderr.decode()).group(1))
    back = subprocess.run(
        ["bash", "-c", "printf '%s\\0' " + " ".join(said)], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout
    assert back.split(b"\0")[:-1] == [raw("no " + n) for n in names]


def lines_of(name):
    out = subprocess.run([raw(COMMAND), b"suggest", name], capture_output=True, check=True).stdout.decode()
    return [line[2:] for line in out.splitlines() if line.startswith("  h5repack ")]


def test_lines_of_suggest_can_be_pasted(here, file):
    name = file
    lines = lines_of(name)
    *single, every = lines
    assert len(single) == 2 * len(EVIL + PLAIN), len(single)
    # what a shell makes of them, in bash and, where nothing needs $'...', in any other
    for line in lines:
        nothing_acts("h5repack", line)
        words = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True).stdout.split(b"\0")[:-1]
        assert words[0] == b"h5repack" and words[-2:] == [name, b"packed.h5"], words
    given = subprocess.run(["bash", "-c", f"printf '%s\\0' {every}"], capture_output=True, check=True).stdout.split(b"\0")
    wanted = [b"/" + raw(n) for n in EVIL + PLAIN] + [b"/in " + raw(n[:100]) + b"/" + raw(n) for n in EVIL + PLAIN]
    assert sorted(w.rsplit(b":", 1)[0] for w in given if b":UD=" in w) == sorted(wanted)
    # the others are named, and why
    everything = run("suggest", "--all", os.fsdecode(name)).stdout.decode()
    assert everything.count("cannot be given a name with a colon, a comma or more than 250 bytes") == 2 * len(CANNOT), everything
    if "ZARRBITS_PLUGINS" not in os.environ:
        pytest.skip("no plugins: h5repack has no sanitizer")
    environment = {**os.environ, "HDF5_PLUGIN_PATH": os.environ["ZARRBITS_PLUGINS"], "LC_ALL": "C.UTF-8"}
    for line in [every, *single[:4]]:
        r = subprocess.run(["bash", "-c", line], cwd=here, capture_output=True, env=environment)
        assert r.returncode == 0, (line, r.stderr)
    r = subprocess.run(["bash", "-c", every], cwd=here, capture_output=True, env=environment)
    with h5py.File(os.path.join(here, "packed.h5")) as f:
        for n in EVIL + PLAIN:
            d = h5py.h5d.open(f.id, raw(n))
            assert d.get_create_plist().get_nfilters() == 1 and d.get_storage_size() == 4096 * 12 // 8, n


def test_floats_that_save_little_are_left_out(floats):
    path = floats
    text = run("suggest", path).stdout.decode()
    assert "/positive" not in text and "/rounded" in text and "/integers" in text, text
    text = run("suggest", "--all", path).stdout.decode()
    assert "saves less than 5 %" in text and "-f /positive:UD=45429,1," in text, text
    found = {d["path"]: d for d in json.loads(run("suggest", "--json", path).stdout)["datasets"]}
    assert not found["/positive"]["worthwhile"] and found["/positive"]["h5repack"] and found["/rounded"]["worthwhile"], found


def test_names_with_a_scheme(folder):
    """As users write them: those of files and of S3 are known, and of others it is said how to reach them."""
    source = os.path.join(folder, "a b.h5")
    with h5py.File(source, "w") as f:
        f["x"] = [1]
    for name in (f"file://{folder}/a%20b.h5", f"FILE://localhost{folder}/a b.h5"):
        assert run("plan", name).returncode == 0
    assert run("convert", source, f"file://{folder}/out.zarr").returncode == 0 and os.path.isdir(os.path.join(folder, "out.zarr"))
    for name, words in {
        "adl://container/in.nc": ['"adl://" is not a scheme', "az://CONTAINER/KEY"],
        "ftp://host/in.nc": ['"ftp://" is not a scheme', "s3://BUCKET/KEY"],
        "file://other/in.nc": ['"other"', "the path that it has here"],
    }.items():
        for arguments in (["plan", name], ["convert", source, name], ["verify", source, name], ["inspect", name]):
            r = run(*arguments)
            assert r.returncode == 2 and all(word in r.stderr for word in words), (arguments, r.stderr)
    with open(os.path.join(folder, "list.txt"), "w") as f:
        f.write("adl://container/in.nc\n")
    assert "az://CONTAINER" in run("convert", "--concat", "t", f"@{folder}/list.txt", f"{folder}/joined.zarr").stderr
    r = run("plan", "S3a://bucket/in.nc", "--endpoint", "http://127.0.0.1:1", "--no-sign-request")
    assert r.returncode == 1 and "s3://bucket/in.nc" in r.stderr, r.stderr
    os.makedirs(os.path.join(folder, "adl:"))
    os.rename(source, os.path.join(folder, "adl:", "b.h5"))
    assert run("plan", "adl://b.h5", cwd=folder).returncode == 0  # a file of that name
