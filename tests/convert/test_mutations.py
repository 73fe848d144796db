# SPDX-License-Identifier: BSL-1.0
"""Damaged files: real ones, and some made here, with bytes changed, converted under limits of time and memory.

ZARRBITS_MUTATIONS: how many, 60 by default; ZARRBITS_SEED: others; ZARRBITS_ONLY: the mutation of this number alone;
ZARRBITS_KEEP: a folder for files that fail.

Of two in three the checksums are right again (superblocks, object headers and the other structures of HDF5 1.8 and later;
chunks with fletcher32), so that what was changed is believed. What malloc returns and what is freed is filled with marks;
none of them may be in the store.

Whatever is in a file, `zarrbits convert` must end with 0 (or 3, something was skipped), and then there is a store, or with 1,
and then there is one sentence and no store. It must never be killed by a signal, hang,
or take more than the memory that it is given.
A file that kills libhdf5 is one of those that end with 1.
The real files are found through ZARRBITS_CORPUS; without it there are only those made here. The same seed makes the same files.
"""

import collections
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import h5py
import numpy as np

COMMAND, CORPUS = os.environ["ZARRBITS_COMMAND"], os.environ.get("ZARRBITS_CORPUS")
LARGEST_FILE, SECONDS, MEMORY = 64 << 10, 200, 2 << 30
SIGNATURES = [
    b"\x89HDF\r\n\x1a\n",
    b"OHDR",
    b"OCHK",
    b"TREE",
    b"SNOD",
    b"HEAP",
    b"GCOL",
    b"FRHP",
    b"FHDB",
    b"FHIB",
    b"BTHD",
    b"BTIN",
    b"BTLF",
    b"FAHD",
    b"FADB",
    b"EAHD",
    b"EAIB",
    b"EASB",
    b"EADB",
    b"FSHD",
    b"FSSE",
    b"SMTB",
    b"SMLI",
]


GLIBC = re.compile(r"$|(free|malloc|realloc|calloc|munmap_chunk|mremap_chunk)\S*: |double free|corrupted |malloc_|\*\*\* ")


def small_files():
    found = []
    for folder, _, names in os.walk(CORPUS):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.getsize(path) <= LARGEST_FILE:
                with open(path, "rb") as f:
                    data = f.read()
                if SIGNATURES[0] in data:
                    found.append(path)
    return sorted(found)


MARKS = [bytes([b]) * 24 for b in (0x6B, 0x6B ^ 0xFF)]  # malloc's, and freed
CHECKED = [s for s in SIGNATURES if s not in (b"TREE", b"SNOD", b"HEAP", b"GCOL")]


def rotated(x, k):
    return x << np.uint32(k) | x >> np.uint32(32 - k)


def lookup3(data, lengths):
    """Bob Jenkins' hash of the first n bytes, for each n of the ascending lengths (numpy)."""
    lengths = np.asarray(lengths, "i8")
    words = np.frombuffer(bytes(data) + b"\0" * (24 - len(data) % 12), "<u4")
    result = np.empty(len(lengths), "u4")
    a = lengths.astype("u4") + np.uint32(0xDEADBEEF)
    b, c = a.copy(), a.copy()
    for i in range(0, len(words) - 2, 3):
        left = lengths[len(lengths) - len(a) :] - 4 * i
        ends = int(np.searchsorted(left, 12, "right"))
        if ends:  # bytes behind the end count as zeros
            x, y, z = (
                v[:ends]
                + (
                    words[i + k]
                    & (np.uint64(0xFFFFFFFF) >> (8 * np.clip(4 - (left[:ends] - 4 * k), 0, 4)).astype("u8")).astype("u4")
                )
                for k, v in enumerate((a, b, c))
            )
            result[len(lengths) - len(a) :][:ends] = final(x, y, z)
        a, b, c = a[ends:], b[ends:], c[ends:]
        if not len(a):
            break
        a, b, c = mixed(a + words[i], b + words[i + 1], c + words[i + 2])
    return result


def mixed(a, b, c):
    for k in (4, 6, 8, 16, 19, 4):
        a = (a - c) ^ rotated(c, k)
        a, b, c = b, c + b, a
    return a, b, c


def final(a, b, c):
    c = (c ^ b) - rotated(b, 14)
    a = (a ^ c) - rotated(c, 11)
    b = (b ^ a) - rotated(a, 25)
    c = (c ^ b) - rotated(b, 16)
    a = (a ^ c) - rotated(c, 4)
    b = (b ^ a) - rotated(a, 14)
    return (c ^ b) - rotated(b, 24)


def fletcher32(data):
    a = b = 0
    for (word,) in struct.iter_unpack(">H", data + b"\0" * (len(data) % 2)):
        a += word
        b += a

    def folded(v):
        return (v - 1) % 65535 + 1 if v else 0

    return folded(b) << 16 | folded(a)


def checked_spans(data):
    """Where what follows a signature ends with its checksum: (begin, checksum)."""
    spans = []
    for m in re.finditer(b"|".join(map(re.escape, CHECKED)), data):
        for shortest, longest in (6, 256), (256, 1024), (1024, 4096):
            piece = data[m.start() : m.start() + longest + 4]
            lengths = np.arange(shortest, len(piece) - 3)
            sums = np.array([int.from_bytes(piece[i : i + 4], "little") for i in lengths], "u4")
            hits = np.nonzero(lookup3(piece, lengths) == sums)[0] if len(lengths) else []
            if len(hits):
                spans.append((m.start(), m.start() + int(lengths[hits[0]])))
                break
    return spans


def made_files(folder):
    """Of every index of chunks and every filter of libhdf5, and chunks with checksums: (path, where these are)."""
    made = []
    numbers = (np.arange(3000, dtype="<i4") * 7919 % 1000).reshape(60, 50)
    for libver in "earliest", "latest":
        path = os.path.join(folder, f"made_{libver}.h5")
        with h5py.File(path, "w", libver=libver) as f:
            for name, options in {
                "fixed": {},
                "one": {"chunks": (60, 50)},
                "growing": {"maxshape": (None, 50)},
                "both": {"maxshape": (None, None)},
            }.items():
                for filters in (
                    {},
                    {"fletcher32": True},
                    {"compression": "gzip", "fletcher32": True},
                    {"compression": "lzf", "shuffle": True, "fletcher32": True},
                    {"scaleoffset": 0},
                ):
                    f.create_dataset(
                        f"{name}/with_{'_'.join(filters) + str(filters.get('compression', ''))}",
                        data=numbers,
                        **{"chunks": (20, 25)} | options | filters,
                    )
            f["contiguous"] = numbers
            f["strings"] = np.array(["a", "bc", "def"] * 20, h5py.string_dtype())
            f["pairs"] = np.array([(1, 2.5), (3, 4.5)], "i4,f8")
            f["references"] = np.array([f["one"].ref, f.ref], h5py.ref_dtype)
            f.attrs["title"], f.attrs["list"] = "made", [1.5, 2.5]
            for i in range(12 if libver == "latest" else 3):
                f["contiguous"].attrs[f"a{i}"] = i
            chunks = []
            f.visititems(
                lambda _, o: (
                    chunks.extend(
                        (c.byte_offset, c.byte_offset + c.size - 4)
                        for c in map(o.id.get_chunk_info, range(o.id.get_num_chunks()))
                    )
                    if isinstance(o, h5py.Dataset) and o.fletcher32
                    else None
                )
            )
        made.append((path, chunks))
    return made


def repaired(data, original, spans, chunks):
    data = bytearray(data)
    for begin, end in spans:
        if end + 4 <= len(data) and data[begin : end + 4] != original[begin : end + 4]:
            data[end : end + 4] = struct.pack("<I", int(lookup3(data[begin:end], [end - begin])[0]))
    for begin, end in chunks:
        if end + 4 <= len(data) and data[begin : end + 4] != original[begin : end + 4]:
            data[end : end + 4] = struct.pack("<I", fletcher32(bytes(data[begin:end])))
    return bytes(data)


def places(data):
    """Where structures begin: the superblock, headers, trees and heaps by their signatures. Version 1 object headers have none:
    all over the file, then."""
    return [m.start() for m in re.finditer(b"|".join(map(re.escape, SIGNATURES)), data)]


def mutated(data, r, chunks=()):
    data = bytearray(data)
    structures = places(data)
    for _ in range(r.choice([1, 1, 1, 2, 4, 16])):
        kind = r.random()
        if chunks and r.random() < 0.3:
            at = r.randrange(*r.choice(chunks))
        elif kind < 0.2:
            at = structures[0] + r.randrange(96)  # the superblock
        elif kind < 0.7:
            at = r.choice(structures) + r.randrange(4, 128)  # what follows a signature
        else:
            at = r.randrange(len(data))
        if at >= len(data):
            continue
        change = r.random()
        if change < 0.4:
            data[at] ^= 1 << r.randrange(8)
        elif change < 0.7:
            data[at] = r.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF, r.randrange(256)])
        elif change < 0.85:  # a whole field: sizes and addresses are 8 bytes
            value = r.choice(
                [0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 1 << 40, (1 << 64) - 1, (1 << 63) - 1, len(data), r.randrange(len(data))]
            )
            size = r.choice([2, 4, 8])
            data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")[: len(data) - at]
        elif change < 0.95:  # one part over another
            size, other = r.choice([4, 16, 64]), r.randrange(len(data))
            data[at : at + size] = data[other : other + size][: len(data) - at].ljust(min(size, len(data) - at), b"\0")
        else:
            del data[max(1, at) :]
    return bytes(data)


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def convert(source, target, *more):
    """(exit status, or minus a signal, or None where it did not end; standard error)"""
    # a group of its own, so that all of it can be ended
    # libhdf5 follows rings of addresses for ever; 20 s of processor time without progress are enough to tell
    process = subprocess.Popen(
        [COMMAND, "convert", "--quiet", source, target, *more],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=limits,
        start_new_session=True,
        env=os.environ | {"ZARRBITS_STALLED_AFTER": "20", "MALLOC_PERTURB_": str(MARKS[0][0])},
    )
    try:
        errors = process.communicate(timeout=SECONDS)[1]
        return process.returncode, errors.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""


def complaint(status, errors, target):
    """What is wrong with the way it ended, or ""."""
    lines = errors.splitlines()
    if "crashed" in errors:  # glibc's last words on a heap that libhdf5 spoilt
        lines = [line for line in lines if line.startswith("zarrbits: ") or not GLIBC.match(line)]
    if status is None:
        return f"it did not end within {SECONDS} s"
    if status < 0 or status >= 126:
        return f"it was killed by signal {-status if status < 0 else status - 128}"
    if status not in (0, 1, 3):
        return f"exit status {status}"
    if any(
        word in errors
        for word in ("HDF5-DIAG", "terminate called", "Assertion", "std::", "basic_string", "Sanitizer", "vector::")
    ):
        return f"no sentence for a user: {errors[:300]}"
    if any(not line.startswith("zarrbits: ") for line in lines):
        return f"a line that is not ours: {errors[:300]}"
    if status == 1:
        kept = len(lines) == 2 and "crashed" in errors and lines[0].startswith("zarrbits: what is done is kept")
        if (len(lines) != 1 and not kept) or len(lines[0]) < 30:
            return f"not one sentence but {len(lines)}: {errors[:300]}"
        if os.path.exists(os.path.join(target, "zarr.json")):
            return "it failed, but there is a store"
        if os.path.exists(target) and "run the same command again to continue" not in errors:
            return "it failed, and left something that it does not mention"
    elif not os.path.exists(os.path.join(target, "zarr.json")):
        return f"exit status {status}, but no store"
    elif status == 3 and not lines:
        return "exit status 3, but it does not say what was skipped"
    for folder, _, names in os.walk(target):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                if any(mark in f.read() for mark in MARKS):
                    return f"memory of the process is in {os.path.join(folder, name)}"
    return ""


def test_damaged_files_end_with_a_sentence_or_a_store(folder):
    count, seed = int(os.environ.get("ZARRBITS_MUTATIONS", "60")), int(os.environ.get("ZARRBITS_SEED", "1"))
    only, keep = os.environ.get("ZARRBITS_ONLY"), os.environ.get("ZARRBITS_KEEP")
    real = small_files() if CORPUS else []
    assert not CORPUS or len(real) > 100, f"only {len(real)} small files in {CORPUS}"
    ended, failures, slowest = collections.Counter(), [], (0.0, "")
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
    made = made_files(folder)
    files = [(path, []) for path in real] + made * (max(1, len(real) // 4))
    spans = {}
    for k in range(count) if only is None else [int(only)]:
        r = random.Random(seed * 1000003 + k)
        original, chunks = r.choice(files)
        with open(original, "rb") as f:
            data = f.read()
        if r.random() < 0.67:
            if original not in spans:
                spans[original] = checked_spans(data)
                assert CORPUS or spans[original] or "earliest" in original
            data = repaired(mutated(data, r, chunks), data, spans[original], chunks)
            ended["repaired"] += 1
        else:
            data = mutated(data, r, chunks)
        more = r.choice([[], [], ["--keep-going"], ["--profile", "recode", "--compress", "none", "--keep-going"]])
        with open(source, "wb") as f:
            f.write(data)
        started = time.monotonic()
        status, errors = convert(source, target, *more)
        slowest = max(slowest, (time.monotonic() - started, f"{k}, {os.path.relpath(original, CORPUS or folder)}"))
        ended["libhdf5 died" if status == 1 and ("crashed" in errors or "gave up" in errors) else status] += 1
        wrong = complaint(status, errors, target)
        if wrong:
            failures.append(f"mutation {k} (seed {seed}) of {os.path.relpath(original, CORPUS or folder)}: {wrong}")
            if keep:
                os.makedirs(keep, exist_ok=True)
                shutil.move(source, os.path.join(keep, f"{seed}_{k}.h5"))
        elif only is not None:
            print(errors)
        subprocess.run(["rm", "-rf", target], check=True)
    checks = ended.pop("repaired", 0)
    print(
        f"{sum(ended.values())} mutations of {len(real) + len(made)} files, {checks} with right checksums: "
        + ", ".join(f"{n} ended with {s}" for s, n in sorted(ended.items(), key=str))
        + f"; slowest {slowest[0]:.1f} s ({slowest[1]})"
    )
    assert not failures, "\n".join(failures)
    # damage that nothing notices would prove nothing
    assert only is not None or ended[1] + ended["libhdf5 died"] > count / 20, ended
