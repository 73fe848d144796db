# SPDX-License-Identifier: BSL-1.0
"""Damaged files: real ones with bytes changed, converted under limits of time and memory.

    test_mutations.py [--count N] [--seed S] [--only K] [--keep FOLDER]      60 by default; --only: mutation number K alone; --keep: files that fail

Whatever is in a file, `zarrbits convert` must end with 0 (or 3, something was skipped), and then there is a store, or with 1, and then there is one sentence
and no store. It must never be killed by a signal, hang, or take more than the memory that it is given. A file that kills libhdf5 is one of those that end with 1.
The real files are found through ZARRBITS_CORPUS. The same seed makes the same files.
"""
import argparse
import collections
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

COMMAND, CORPUS = os.environ["ZARRBITS_COMMAND"], os.environ.get("ZARRBITS_CORPUS")
LARGEST_FILE, SECONDS, MEMORY = 64 << 10, 200, 2 << 30
SIGNATURES = [b"\x89HDF\r\n\x1a\n", b"OHDR", b"OCHK", b"TREE", b"SNOD", b"HEAP", b"GCOL", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF",
              b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"FSHD", b"FSSE", b"SMTB", b"SMLI"]


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


def places(data):
    """Where structures begin: the superblock, headers, trees and heaps by their signatures. Version 1 object headers have none: all over the file, then."""
    return [m.start() for m in re.finditer(b"|".join(map(re.escape, SIGNATURES)), data)]


def mutated(data, r):
    data = bytearray(data)
    structures = places(data)
    for _ in range(r.choice([1, 1, 1, 2, 4, 16])):
        kind = r.random()
        if kind < 0.2:
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
            value = r.choice([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 1 << 40, (1 << 64) - 1, (1 << 63) - 1, len(data), r.randrange(len(data))])
            size = r.choice([2, 4, 8])
            data[at:at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")[:len(data) - at]
        elif change < 0.95:  # one part over another
            size, other = r.choice([4, 16, 64]), r.randrange(len(data))
            data[at:at + size] = data[other:other + size][:len(data) - at].ljust(min(size, len(data) - at), b"\0")
        else:
            del data[max(1, at):]
    return bytes(data)


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def convert(source, target):
    """(exit status, or minus a signal, or None where it did not end; standard error)"""
    # a group of its own, so that all of it can be ended
    # libhdf5 follows rings of addresses for ever; 20 s of processor time without progress are enough to tell
    process = subprocess.Popen([COMMAND, "convert", "--quiet", source, target], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=limits, start_new_session=True, env=os.environ | {"ZARRBITS_STALLED_AFTER": "20"})
    try:
        errors = process.communicate(timeout=SECONDS)[1]
        return process.returncode, errors.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""


def complaint(status, errors, target):
    """What is wrong with how it ended, or ""."""
    lines = errors.splitlines()
    if "crashed" in errors:  # glibc's last words on a heap that libhdf5 spoilt
        lines = [line for line in lines if line.startswith("zarrbits: ") or not GLIBC.match(line)]
    if status is None:
        return f"it did not end within {SECONDS} s"
    if status < 0 or status >= 126:
        return f"it was killed by signal {-status if status < 0 else status - 128}"
    if status not in (0, 1, 3):
        return f"exit status {status}"
    if any(word in errors for word in ("HDF5-DIAG", "terminate called", "Assertion", "std::", "basic_string", "Sanitizer", "vector::")):
        return f"no sentence for a user: {errors[:300]}"
    if any(not line.startswith("zarrbits: ") for line in lines):
        return f"a line that is not ours: {errors[:300]}"
    if status == 1:
        if len(lines) != 1 or len(lines[0]) < 30:
            return f"not one sentence but {len(lines)}: {errors[:300]}"
        if os.path.exists(target):
            return "it failed, but there is a store"
    elif not os.path.exists(os.path.join(target, "zarr.json")):
        return f"exit status {status}, but no store"
    elif status == 3 and not lines:
        return "exit status 3, but it does not say what was skipped"
    return ""


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", type=int)
    options.add_argument("--keep")
    options = options.parse_args()
    if not CORPUS:
        print("SKIPPED: mutations of real files: ZARRBITS_CORPUS is not set")
        return 0
    files = small_files()
    assert len(files) > 100, f"only {len(files)} small files in {CORPUS}"
    ended, failures, slowest = collections.Counter(), 0, (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.zarr")
        for k in range(options.count) if options.only is None else [options.only]:
            r = random.Random(options.seed * 1000003 + k)
            original = r.choice(files)
            with open(original, "rb") as f:
                data = mutated(f.read(), r)
            with open(source, "wb") as f:
                f.write(data)
            started = time.monotonic()
            status, errors = convert(source, target)
            slowest = max(slowest, (time.monotonic() - started, f"{k}, {os.path.relpath(original, CORPUS)}"))
            ended["libhdf5 died" if status == 1 and ("crashed" in errors or "come to an end" in errors) else status] += 1
            wrong = complaint(status, errors, target)
            if wrong:
                failures += 1
                print(f"FAILED: mutation {k} (seed {options.seed}) of {os.path.relpath(original, CORPUS)}: {wrong}", flush=True)
                if options.keep:
                    os.makedirs(options.keep, exist_ok=True)
                    os.replace(source, os.path.join(options.keep, f"{options.seed}_{k}.h5"))
            elif options.only is not None:
                print(errors)
            subprocess.run(["rm", "-rf", target], check=True)
    count = sum(ended.values())
    print(f"{count} mutations of {len(files)} files: " + ", ".join(f"{n} ended with {s}" for s, n in sorted(ended.items(), key=str)) +
          f"; slowest {slowest[0]:.1f} s ({slowest[1]}); {failures} failed")
    # damage that nothing notices would prove nothing
    assert options.only is not None or ended[1] + ended["libhdf5 died"] > count / 20, ended
    return 1 if failures else 0


sys.exit(main())
