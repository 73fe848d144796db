# SPDX-License-Identifier: BSL-1.0
"""The size of a store over that of its source (shuffle, deflate 4), for each compression:
twelve kinds of data, from packages that ship them.

python3 -m venv VENV && VENV/bin/pip install h5py scikit-image nibabel
VENV/bin/python bench/compression.py build/release/bin/zarrbits [FILE.h5 of other datasets]
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import h5py
import numpy as np

WAYS = ["default", "blosc:zstd:1", "blosc:zstd:2", "blosc:zstd:3", "blosc:zstd:4", "blosc:zstd:5"]


def kinds():
    import nibabel
    from skimage import data, filters, measure

    rng = np.random.default_rng(2)
    images = [getattr(data, n)() for n in ("camera", "coins", "moon", "page", "text", "clock", "brick", "grass", "gravel")]
    masks = [i > filters.threshold_otsu(i) for i in images]
    mri = np.asarray(nibabel.load(pathlib.Path(nibabel.__file__).parent / "tests/data/example4d.nii.gz").dataobj)
    field = np.sin(np.arange(2000000) / 5000) * 100
    return {
        "float32 field": (field + rng.normal(0, 0.01, field.size)).astype("f4"),
        "int16 packed": np.round((field + rng.normal(0, 0.1, field.size)) * 20).astype("i2"),
        "MRI, int16": mri.astype("i2"),
        "photographs, uint16": np.concatenate([i.ravel() for i in images]).astype("u2"),
        "masks, bool": np.concatenate([m.ravel() for m in masks]),
        "labels, int32": np.concatenate([measure.label(m).astype("i4").ravel() for m in masks]),
        "counts, int32": rng.poisson(np.tile(rng.gamma(0.3, 2, 2000), 1000)).astype("i4"),
        "coordinates, float64": np.concatenate(
            [np.arange(200000) * 0.25, np.cumsum(rng.random(100000)), np.sort(rng.random(100000)) * 360]
        ),
        "times, int64": np.concatenate([np.arange(200000) * 3600000000000, np.cumsum(rng.integers(1, 2000, 200000))]),
        "sparse indices, int32": np.concatenate([np.sort(rng.choice(30000, 800, replace=False)) for _ in range(800)]).astype(
            "i4"
        ),
        "sparse values, float32": np.where(rng.random(1000000) < 0.05, rng.random(1000000), 0).astype("f4"),
        "noise, float32": rng.normal(0, 1, 1000000).astype("f4"),
    }


def main():
    command = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        source = sys.argv[2] if len(sys.argv) > 2 else os.path.join(folder, "in.h5")
        if len(sys.argv) == 2:
            with h5py.File(source, "w") as f:
                for name, values in kinds().items():
                    a = values.ravel()
                    f.create_dataset(
                        name,
                        data=a,
                        chunks=(min(a.size, (1 << 20) // a.itemsize),),
                        compression="gzip",
                        compression_opts=4,
                        shuffle=True,
                    )
        with h5py.File(source) as f:
            stored = {name: f[name].id.get_storage_size() for name in f}
        shares, times = {}, []
        for way in WAYS:
            out = os.path.join(folder, way.replace(":", "-"))
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            subprocess.run(
                [command, "convert", "-q", source, out, *([] if way == "default" else ["--compress", way])], check=True
            )
            times.append(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before:.2f}")
            for name in stored:
                size = sum(p.stat().st_size for p in pathlib.Path(out, name).rglob("*") if p.is_file() and p.name != "zarr.json")
                shares.setdefault(name, []).append(f"{size / stored[name]:.3f}")
    print("| store over source's chunks | " + " | ".join(WAYS) + " |\n|" + "---|" * (1 + len(WAYS)))
    for name, values in shares.items():
        print(f"| {name} | " + " | ".join(values) + " |")
    print("| user seconds of all | " + " | ".join(times) + " |")


if __name__ == "__main__":
    main()
