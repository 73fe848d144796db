# SPDX-License-Identifier: BSL-1.0
"""What is different between two HDF5 files: h5diff's lines, and what h5py sees and h5diff does not."""

import subprocess

import h5py


def h5diff(a, b):
    """Its lines without the names of the files, and without those about the order of REFERENCE_LIST."""
    try:
        done = subprocess.run(["h5diff", "-c", a, b], capture_output=True, text=True, errors="replace", timeout=10, check=False)
    except subprocess.TimeoutExpired:  # it walks 2^32 elements; verify does not
        return []
    lines, references = [], False
    for line in done.stdout.splitlines():
        if "REFERENCE_LIST" in line or (references and "differences found" in line):
            references = "REFERENCE_LIST" in line
            continue
        lines.append(line.replace(str(b), str(a)))
    return lines


def plain(dtype):
    """Without the gaps of compounds, which a store does not have."""
    return dtype if dtype.names is None else [(name, plain(dtype[name])) for name in dtype.names]


def differences(a, b, path="/"):
    """What h5diff does not look at."""
    if a.get(path, getclass=True) is None:
        return
    x, y = a[path], b[path]
    names = {n for n in x.attrs if n not in ("REFERENCE_LIST", "DIMENSION_LIST", "CLASS")}
    for name in names & set(y.attrs):
        p, q = x.attrs.get_id(name), y.attrs.get_id(name)
        if plain(p.dtype) != plain(q.dtype) or p.shape != q.shape:
            yield f"{path}@{name}: {p.dtype} {p.shape}, {q.dtype} {q.shape}"
    for name in names - set(y.attrs):
        yield f"{path}@{name} is missing"
    if isinstance(x, h5py.Dataset):
        if plain(x.dtype) != plain(y.dtype) or x.shape != y.shape or x.maxshape != y.maxshape and x.chunks == y.chunks:
            yield f"{path}: {x.dtype} {x.shape} {x.maxshape}, {y.dtype} {y.shape} {y.maxshape}"
        if x.dtype.kind in "iufc" and x.shape is not None and str(x.fillvalue) != str(y.fillvalue):
            yield f"{path}: fill value {x.fillvalue}, {y.fillvalue}"
        if h5py.check_enum_dtype(x.dtype) != h5py.check_enum_dtype(y.dtype):
            yield f"{path}: {h5py.check_enum_dtype(x.dtype)}, {h5py.check_enum_dtype(y.dtype)}"
    elif isinstance(x, h5py.Group):
        for name in x:
            p, q = x.get(name, getlink=True), y.get(name, getlink=True)
            if type(p) is not type(q) or vars(p) != vars(q):
                yield f"{path}/{name}: {p}, {q}"
            elif isinstance(p, h5py.HardLink) and path.count("/") < 20:
                yield from differences(a, b, path.rstrip("/") + "/" + name)
