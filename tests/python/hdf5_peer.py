# SPDX-License-Identifier: BSL-1.0
"""Compares what zarrbits.File reads with what h5py reads."""

import h5py
import numpy as np

from zarrbits import hdf5_values


class Different(AssertionError):
    pass


def plain(value, file):
    """Values of both as nested lists of numbers, bytes and paths, in which NaN is equal to itself."""
    if isinstance(value, h5py.RegionReference):
        if not value:
            return ("region", None)
        target = file[value]
        return ("region", target.name, np.asarray(target[value]).tobytes() if target.dtype.kind != "O" else None)
    if isinstance(value, h5py.Reference):
        try:
            return ("reference", file[value].name if value else None)
        except ValueError:
            return ("reference", None)
    if isinstance(value, hdf5_values.RegionReference):
        if not value:
            return ("region", None)
        target = file[value]
        return ("region", target.name, np.asarray(target[value]).tobytes() if target.dtype.kind != "O" else None)
    if isinstance(value, hdf5_values.Reference):
        return ("reference", value.name)
    if isinstance(value, (h5py.Empty, hdf5_values.Empty)):
        return ("empty", value.dtype)
    if isinstance(value, np.void) and value.dtype.names:
        return tuple(plain(value[name], file) for name in value.dtype.names)
    if isinstance(value, (np.ndarray, np.generic)):
        dtype = value.dtype
        if dtype.names:
            return [(name, plain(np.ascontiguousarray(value[name]), file)) for name in dtype.names]
        if dtype.kind == "O":
            return [np.shape(value), [plain(v, file) for v in np.asarray(value).flat]]
        return [np.shape(value), dtype.str, np.ascontiguousarray(value).tobytes()]
    return value


def same(theirs, ours, their_file, our_file, where):
    a, b = plain(theirs, their_file), plain(ours, our_file)
    if a != b:
        raise Different(f"{where}: {str(a)[:200]} != {str(b)[:200]}")


def random_selection(shape, random):
    """A tuple of numbers, slices with steps, and at most one list."""
    selection, has_list = [], False
    for n in shape:
        kind = random.integers(5)
        if n == 0:
            selection.append(slice(None))
        elif kind == 0:
            selection.append(int(random.integers(-n, n)))
        elif kind == 1 and not has_list:
            has_list = True
            count = int(random.integers(1, min(n, 8) + 1))
            selection.append(np.sort(random.choice(min(n, 100000), count, replace=False)))
        else:
            first, last = sorted(int(v) for v in random.integers(0, n + 1, 2))
            selection.append(slice(first, last, int(random.choice([1, 1, 1, 2, 3, 7]))))
    return tuple(selection)


def compare_dataset(theirs, ours, random, boxes, where, max_bytes):
    if theirs.shape != ours.shape or theirs.chunks != ours.chunks:
        raise Different(f"{where}: shape {theirs.shape} {theirs.chunks} != {ours.shape} {ours.chunks}")
    if theirs.dtype != ours.dtype and theirs.dtype.kind != "O" and not theirs.dtype.hasobject:
        raise Different(f"{where}: type {theirs.dtype} != {ours.dtype}")
    if theirs.shape is None:
        return same(theirs[()], ours[()], theirs.file, ours.file, where)
    if theirs.nbytes <= max_bytes:
        same(theirs[()], ours[()], theirs.file, ours.file, where)
    for _ in range(boxes if theirs.shape else 0):
        selection = random_selection(theirs.shape, random)
        expected = None
        try:
            if (
                np.prod([np.size(np.empty(n)[s]) if n < 1 << 24 else 1 for n, s in zip(theirs.shape, selection)])
                * theirs.dtype.itemsize
                > max_bytes
            ):
                continue
            expected = theirs[selection]
        except (MemoryError, OSError):  # libhdf5 refuses some empty boxes of virtual datasets
            continue
        same(expected, ours[selection], theirs.file, ours.file, f"{where}[{selection}]")


def compare_attributes(theirs, ours, where):
    if set(theirs) != set(ours):
        raise Different(f"{where}: attributes {sorted(theirs)} != {sorted(ours)}")
    return list(theirs)


def compare_files(path, random, boxes=20, max_bytes=64 << 20):
    """(number of datasets, number of attributes, what differs, what only zarrbits refuses, what only h5py refuses)"""
    import zarrbits

    datasets = attributes = 0
    different, only_ours, only_theirs = [], [], []

    def attempt(where, function, *arguments):
        try:
            function(*arguments)
        except Different as e:
            different.append(str(e))
        except Exception as e:  # noqa: BLE001
            only_ours.append(f"{where}: {type(e).__name__}: {e}")

    with h5py.File(path, "r") as f, zarrbits.File(path) as g:
        pending, seen = ["/"], set()
        while pending:
            name = pending.pop()
            try:
                theirs = f[name]
                address = h5py.h5o.get_info(theirs.id)
            except (KeyError, OSError, RuntimeError) as e:
                try:
                    g[name]
                    only_theirs.append(f"{name}: {e}")
                except Exception:  # noqa: BLE001
                    pass
                continue
            if (address.fileno, address.addr) in seen:
                continue
            seen.add((address.fileno, address.addr))
            try:
                ours = g[name]
            except Exception as e:  # noqa: BLE001
                only_ours.append(f"{name}: {type(e).__name__}: {e}")
                continue

            try:
                list(theirs.attrs)
            except Exception as e:  # noqa: BLE001
                only_theirs.append(f"{name}: {e}")
                continue

            def each_attribute():
                nonlocal attributes
                for key in compare_attributes(theirs.attrs, ours.attrs, name):
                    attributes += 1
                    where = f"{name}@{key}"
                    try:
                        value = theirs.attrs[key]
                    except Exception as e:  # noqa: BLE001
                        only_theirs.append(f"{where}: {e}")
                        continue
                    attempt(where, lambda: same(value, ours.attrs[key], f, g, where))

            attempt(name, each_attribute)
            if isinstance(theirs, h5py.Group):
                if sorted(theirs) != sorted(ours):
                    different.append(f"{name}: members {sorted(theirs)} != {sorted(ours)}")
                pending += [name.rstrip("/") + "/" + member for member in theirs]
            elif isinstance(theirs, h5py.Dataset):
                datasets += 1
                try:
                    theirs[()] if theirs.shape is None or theirs.nbytes <= max_bytes else theirs.dtype
                except Exception as e:  # noqa: BLE001
                    only_theirs.append(f"{name}: {e}")
                    continue
                attempt(name, compare_dataset, theirs, ours, random, boxes, name, max_bytes)
    return datasets, attributes, different, only_ours, only_theirs
