# SPDX-License-Identifier: BSL-1.0
"""Which orders of HDF5 filters have codecs that numcodecs' own code decodes:
what zarr-python makes of every pair is measured, and the profiles native and virtual have to do the same:
copy what it reads, decode what it refuses. Then random orders.

cases.py has the variables that ask for more random orders.
"""

import faulthandler
import itertools
import json
import os
import signal
import subprocess
import warnings

import h5py
import hdf5plugin
import numpy as np
import zarr
from h5py import h5d, h5p, h5s, h5t, h5z

import zarrbits
from cases import SEED, dice_of, number_of_cases
from conftest import COMMAND, ROOT

CASES = number_of_cases(40)
PLUGINS = os.environ | {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH}  # for H5Dread of verify
OPTIONAL = h5z.FLAG_OPTIONAL


def plugin(number, *values):
    return lambda p: p.set_filter(number, OPTIONAL, values)


# how HDF5 is told of a filter, and the codec that has its name in a store; none: there is no such codec
FILTERS = {
    "shuffle": (lambda p: p.set_shuffle(), lambda size: {"name": "numcodecs.shuffle", "configuration": {"elementsize": size}}),
    "fletcher32": (lambda p: p.set_fletcher32(), lambda _: {"name": "numcodecs.fletcher32", "configuration": {}}),
    "deflate": (lambda p: p.set_deflate(4), lambda _: {"name": "numcodecs.zlib", "configuration": {"level": 4}}),
    "bzip2": (plugin(307, 5), lambda _: {"name": "numcodecs.bz2", "configuration": {"level": 5}}),
    "zstd": (plugin(32015, 3), lambda _: {"name": "zstd", "configuration": {"level": 3, "checksum": False}}),
    "blosc": (
        plugin(32001, 0, 0, 0, 0, 5, 1, 1),
        lambda size: {
            "name": "blosc",
            "configuration": {"typesize": size, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0},
        },
    ),
    "lz4": (plugin(32004), lambda _: {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}),
    "lzf": (lambda p: p.set_filter(32000, OPTIONAL, ()), None),
    "nbit": (plugin(5), None),
    "scaleoffset": (lambda p: p.set_scaleoffset(h5z.SO_INT, 0), None),
    "bitshuffle": (plugin(32008, 0, 2), None),
}
COPIED = [name for name, (_, codec) in FILTERS.items() if codec]
TYPES = ["<i1", "<i2", "<i4", "<f8", ">i8", "V3"]
CHUNK = (7, 9)
SHAPE = (21, 18)


def values_of(dtype, rng):
    v = rng.integers(0, 50, SHAPE) * rng.integers(0, 2, SHAPE)
    return v.astype(dtype) if dtype != "V3" else np.frombuffer(v.astype("<u4").tobytes(), "V4").astype("V3").reshape(SHAPE)


def stored_type(dtype):
    if dtype != "V3":
        return h5t.py_create(np.dtype(dtype), logical=True)
    opaque = h5t.create(h5t.OPAQUE, 3)
    opaque.set_tag(b"x")
    return opaque


def create(f, name, order, dtype, seed):
    values = values_of(dtype, np.random.default_rng(seed))
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(CHUNK)
    for filter_name in order:
        FILTERS[filter_name][0](p)
    d = h5d.create(f.id, name.encode(), stored_type(dtype), h5s.create_simple(SHAPE), p)
    d.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values), stored_type(dtype))
    return values


def can_write(path, orders):
    """Whether HDF5 itself writes these, and reads what it wrote. In a process of its own: some orders crash it."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(3)  # and some run for ever
        status = 1
        try:
            with h5py.File(path, "w") as f:
                values = [create(f, *o) for o in orders]
            with h5py.File(path) as f:
                for (name, _, dtype, _), want in zip(orders, values):
                    back = np.empty_like(want)
                    f[name].id.read(h5s.ALL, h5s.ALL, back, stored_type(dtype))
                    assert back.tobytes() == want.tobytes()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def is_defined(order):
    """nbit and scaleoffset take a whole chunk's bytes, and read behind the end of one that a filter before them has made
    smaller."""
    smaller = False
    for name in order:
        if smaller and name in ("nbit", "scaleoffset"):
            return False
        smaller = smaller or name not in (
            "shuffle",
            "fletcher32",
            "nbit",
        )  # all types here have full precision, which nbit leaves alone
    return True


def writable(path, orders):
    """Those of them that HDF5 has; many are asked at once."""
    if not orders or can_write(path, orders):
        return orders
    half = len(orders) // 2
    return [] if half == 0 else writable(path, orders[:half]) + writable(path, orders[half:])


def write(path, orders):
    """Datasets of (name, order, dtype, seed). The values of those that HDF5 has."""
    orders = [o for o in orders if is_defined(o[1])]
    alike = [list(group) for _, group in itertools.groupby(orders, key=lambda o: o[1])]
    made = [o for group in alike for o in writable(path.parent / "probe.h5", group)]
    with h5py.File(path, "w") as f:
        return {name: create(f, name, *rest) for name, *rest in made}


def command(*arguments, status=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=600, env=PLUGINS)
    assert done.returncode == status, (arguments, done.returncode, done.stderr[:2000], done.stdout[:2000])
    return done.stdout


def codecs_of(store, name):
    return [c["name"] for c in json.loads((store / name / "zarr.json").read_text())["codecs"]]


def bytes_of(got, dtype):
    """In the byte order of the source, which zarr-python gives in that of the machine."""
    return np.asarray(got).tobytes() if dtype == "V3" else np.asarray(got).astype(dtype).tobytes()


def assert_reads(group, values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of every codec of numcodecs
        for name, want in values.items():
            assert bytes_of(group[name][...], want.dtype) == want.tobytes(), name


def check(path, values, folder):
    """Each profile, read by zarr-python, and verify."""
    for way, target in (
        (["--profile", "native"], "native.zarr"),
        (["--profile", "native", "--checksum", "crc32c"], "summed.zarr"),
        (["--profile", "native", "--shard", "14,18"], "shards.zarr"),
        ([], "portable.zarr"),
        (["--virtual", "--inline", "0"], "refs.json"),
    ):
        command("convert", "-q", "--overwrite", *way, path, folder / target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store = zarrbits.open_references(folder / target) if target.endswith(".json") else str(folder / target)
            assert_reads(zarr.open_group(store, mode="r"), values)
        command("verify", path, folder / target)


def by_hand(path, store, name, order, dtype, want):
    """The chunks as HDF5 has them, under the codecs of the filters' names; whether zarr-python reads the values."""
    size = np.dtype(dtype).itemsize
    with h5py.File(path) as f:
        chunks = {
            at: f[name].id.read_direct_chunk(at) for at in itertools.product(*(range(0, s, c) for s, c in zip(SHAPE, CHUNK)))
        }
    if any(mask for mask, _ in chunks.values()):
        return None
    node = json.loads((store / name / "zarr.json").read_text())
    plain = next(c for c in node["codecs"] if c["name"] == "bytes")
    node["codecs"] = [plain] + [FILTERS[f][1](size) for f in order]
    (store / name / "zarr.json").write_text(json.dumps(node))
    for at, (_, chunk) in chunks.items():
        key = store / name / "c" / "/".join(str(a // c) for a, c in zip(at, CHUNK))
        (key / "0" if dtype == "V3" else key).write_bytes(chunk)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = bytes_of(zarr.open_array(str(store / name), mode="r")[...], dtype)
        except Exception:
            return False
    assert got == want.tobytes(), f"{name}: zarr-python reads other values"
    return True


def rows_of(copies):
    """The table of docs/explanation/chunks.md."""
    lines = ["| before \\ after | " + " | ".join(COPIED) + " |", "|---" * (len(COPIED) + 1) + "|"]
    for first in COPIED:
        cells = []
        for second in COPIED:
            yes = [d for d in TYPES if copies.get((first, second, d))]
            no = [d for d in TYPES if copies.get((first, second, d)) is False]
            sizes = ", ".join(map(str, sorted({np.dtype(d).itemsize for d in yes})))
            cells.append("copied" if not no else "decoded" if not yes else f"copied of {sizes} bytes")
        lines.append(f"| {first} | " + " | ".join(cells) + " |")
    return lines


def test_every_pair(tmp_path):
    orders = [
        (f"{'_'.join(order)}_{i}", order, dtype, 1)
        for order in [*([f] for f in FILTERS), *map(list, itertools.product(FILTERS, repeat=2))]
        for i, dtype in enumerate(TYPES)
    ]
    path = tmp_path / "in.h5"
    values = write(path, orders)
    assert len(values) > 500
    check(path, values, tmp_path)
    store = tmp_path / "by_hand.zarr"
    command("convert", "-q", "--compress", "none", path, store)
    native, copies, refused = tmp_path / "native.zarr", {}, set()
    for name, order, dtype, _ in orders:
        if name not in values:
            continue
        has = [c for c in codecs_of(native, name) if c.startswith("numcodecs.") or c in ("zstd", "blosc")]
        if not set(order) <= set(COPIED):
            assert not any(c.startswith("numcodecs.") for c in has), (name, has)
            continue
        named = [FILTERS[f][1](1)["name"] for f in order]
        if len(order) == 2:
            copies[(*order, dtype)] = has == named
        if "lz4" in order:
            continue  # another frame in HDF5
        reads = by_hand(path, store, name, order, dtype, values[name])
        if reads is not None:
            assert (has == named) == reads, (
                f"{name}: zarr-python {'reads' if reads else 'refuses'} the chunks as they are, and native has {has}"
            )
        if reads is False:
            refused.add("/" + name)
    assert len(refused) > 20
    # and verify says so
    found = json.loads(command("verify", "--json", path, store, status=1))
    assert {f["path"] for f in found["findings"] if f["outcome"] == "differs"} == refused
    table = rows_of(copies)
    assert "\n".join(table) in (ROOT / "docs/explanation/chunks.md").read_text(), (
        "docs/explanation/chunks.md has another table; this is it:\n" + "\n".join(table)
    )


def test_random_orders(tmp_path):
    rng = dice_of("orders")
    orders = [
        (f"x{i}", rng.choices(list(FILTERS), k=rng.randint(1, 5)), rng.choice(TYPES), rng.randrange(1 << 30))
        for i in range(CASES)
    ]
    path = tmp_path / "in.h5"
    values = write(path, orders)
    print(f"seed {SEED}: {len(values)} of {len(orders)} orders that HDF5 writes and reads")
    assert len(values) > CASES // 3
    with h5py.File(path, "r+") as f:  # chunks without some of their filters
        for name, order, dtype, _ in orders:
            if name in values and rng.random() < 0.3:
                plain = np.ascontiguousarray(values[name][: CHUNK[0], : CHUNK[1]])
                f[name].id.write_direct_chunk((0, 0), plain.tobytes(), (1 << len(order)) - 1)
    with h5py.File(path) as f:  # HDF5 2 keeps the mask of a chunk that is written again with the same size
        for name, want in values.items():
            f[name].id.read(h5s.ALL, h5s.ALL, want, f[name].id.get_type())
    check(path, values, tmp_path)


def test_sequences_with_filters(tmp_path):
    """HDF5 leaves shuffle out where it has no size of elements, as for sequences."""
    path = tmp_path / "in.h5"
    rows = [np.arange(n, dtype="i4") * n for n in (0, 5, 1, 700, 3)]
    with h5py.File(path, "w") as f:
        for name, options in (
            ("gzip", dict(compression="gzip")),
            ("both", dict(compression="gzip", shuffle=True)),
            ("shuffle", dict(shuffle=True)),
        ):
            d = f.create_dataset(name, (5,), h5py.vlen_dtype("i4"), chunks=(2,), **options)
            for i, row in enumerate(rows):
                d[i] = row
    command("convert", "-q", path, tmp_path / "out.zarr")
    group = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    for name in ("gzip", "both", "shuffle"):
        assert np.array_equal(group[f"{name}/values"][:], np.concatenate(rows))
        assert group[f"{name}/offsets"][:].tolist() == [0, *np.cumsum([len(r) for r in rows])]
    command("verify", path, tmp_path / "out.zarr")
