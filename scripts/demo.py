# SPDX-License-Identifier: BSL-1.0
"""scripts/demo runs it after the build: demo.py ZARRBITS FOLDER. Needs only h5py and numpy.

The checks here share no code with zarrbits: chunks are unpacked by numpy, zarr.json is read by hand.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time

import h5py
import numpy as np

PACKBITS = 45429  # the filter id, see include/zarrbits/hdf5.h
BITS = 12
failed = []


def run(*command, stdin=None):
    """Runs a command, says what it was, and returns (seconds, standard output)."""
    print("  $ " + " ".join(os.path.basename(c) if os.path.isabs(c) else shlex.quote(c) for c in command))
    started = time.monotonic()
    result = subprocess.run(command, input=stdin, capture_output=True)
    if result.returncode != 0:
        sys.exit(f"exit status {result.returncode}: {result.stderr.decode(errors='replace').strip()}")
    return time.monotonic() - started, result.stdout


def check(what, ok):
    print(f"  {'ok    ' if ok else 'FAILED'}  {what}")
    if not ok:
        failed.append(what)


def make_camera_file(path):
    """A 12-bit camera that looks at drifting bright spots, and the mask of where it saw them."""
    rng = np.random.default_rng(12)
    frames, height, width = 40, 480, 640
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    vignette = 1 - 0.4 * (((x - width / 2) / width) ** 2 + ((y - height / 2) / height) ** 2)
    spots = [
        (
            rng.uniform(0, height),
            rng.uniform(0, width),
            rng.normal(0, 2),
            rng.normal(0, 2),
            rng.uniform(8, 30),
            rng.uniform(300, 2500),
        )
        for _ in range(25)
    ]
    stack = np.empty((frames, height, width), np.uint16)
    mask = np.empty((frames, height, width), bool)
    for t in range(frames):
        light = np.full((height, width), 180, np.float32)
        for y0, x0, vy, vx, radius, power in spots:
            light += power * np.exp(-((y - y0 - vy * t) ** 2 + (x - x0 - vx * t) ** 2) / (2 * radius**2))
        light *= vignette
        # a photon count varies as its square root; the read-out adds a little of its own
        signal = rng.poisson(light * 4) / 4 + rng.normal(100, 3, light.shape)
        stack[t] = np.clip(np.rint(signal), 0, 4095)
        mask[t] = light > 600
    with h5py.File(path, "w", libver=("earliest", "v110")) as f:
        f.attrs["title"] = "12-bit camera, synthetic"
        f.create_dataset("camera/frames", data=stack, chunks=(4, 240, 320)).attrs["units"] = "counts"
        f.create_dataset("camera/mask", data=mask, chunks=(4, 240, 320))
        f.create_dataset("camera/time", data=np.arange(frames) * 0.02).attrs["units"] = "s"
    return stack, mask


def read_zarr(store, path):
    """An array of a Zarr v3 store: `bytes` or `packbits` alone, regular chunks."""
    folder = os.path.join(store, path)
    with open(os.path.join(folder, "zarr.json")) as f:
        meta = json.load(f)
    shape, chunk = meta["shape"], meta["chunk_grid"]["configuration"]["chunk_shape"]
    (codec,) = meta["codecs"]
    dtype = np.dtype({"bool": "?", "uint16": "<u2"}[meta["data_type"]])
    out = np.empty(shape, dtype)
    for index in np.ndindex(*[-(-n // c) for n, c in zip(shape, chunk)]):
        with open(os.path.join(folder, "c", *map(str, index)), "rb") as f:
            payload = f.read()
        if codec["name"] == "bytes":
            values = np.frombuffer(payload, dtype)
        else:
            count = int(np.prod(chunk))
            configuration = codec.get("configuration", {})
            assert configuration.get("padding_encoding", "none") == "none" and configuration.get("first_bit", 0) == 0
            bits = 1 if dtype.kind == "b" else configuration["last_bit"] + 1
            flat = np.unpackbits(np.frombuffer(payload, np.uint8), bitorder="little")[: count * bits]
            weights = (1 << np.arange(bits)).astype(np.uint16)
            values = (flat.reshape(count, bits) @ weights).astype(dtype)
        where = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunk))
        out[where] = values.reshape(chunk)[tuple(slice(0, min(c, n - i * c)) for i, c, n in zip(index, chunk, shape))]
    return out, codec


def stored_h5(path, name):
    with h5py.File(path, "r") as f:
        return f[name].id.get_storage_size()


def stored_zarr(store, name):
    return sum(
        os.path.getsize(os.path.join(d, n))
        for d, _, names in os.walk(os.path.join(store, name))
        for n in names
        if n != "zarr.json"
    )


def main():
    zarrbits, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    plain, packed, deflated = (os.path.join(folder, n) for n in ("camera.h5", "camera-packed.h5", "camera-gzip.h5"))
    store, portable, report = (os.path.join(folder, n) for n in ("camera.zarr", "camera-portable.zarr", "report.json"))

    for old in (plain, packed, deflated, store, portable, report):  # what an earlier run left
        shutil.rmtree(old) if os.path.isdir(old) else os.path.exists(old) and os.remove(old)

    print("1. A camera file, written by h5py: 40 frames of 640 x 480, 12 of 16 bits, and a boolean mask")
    stack, mask = make_camera_file(plain)

    print("2. Packed by h5repack through the plugin (and by gzip, to compare)")
    seconds_packed, _ = run(
        "h5repack", "-f", f"camera/frames:UD={PACKBITS},1,1,{BITS}", "-f", f"camera/mask:UD={PACKBITS},1,0", plain, packed
    )
    seconds_deflated, _ = run(
        "h5repack", "-f", "camera/frames,camera/mask:SHUF", "-f", "camera/frames,camera/mask:GZIP=4", plain, deflated
    )

    print("3. Converted to Zarr v3: as it is packed, and unpacked for readers that do not know packbits yet")
    seconds_store, _ = run(zarrbits, "convert", "--quiet", "--codec", "packbits", packed, store, "--report", report)
    seconds_portable, _ = run(zarrbits, "convert", "--quiet", "--codec", "bytes", packed, portable)

    print("4. Read back")
    run(zarrbits, "verify", packed, store)
    run(zarrbits, "verify", packed, portable)
    check("zarrbits verify finds both stores equal to camera-packed.h5", True)  # it had exit status 0
    with h5py.File(packed, "r") as f:
        check(
            "h5py reads camera-packed.h5 through the plugin, all values equal",
            np.array_equal(f["camera/frames"][...], stack) and np.array_equal(f["camera/mask"][...], mask),
        )
        raw = [f["camera/frames"].id.read_direct_chunk((4, 240, 320)), f["camera/mask"].id.read_direct_chunk((4, 240, 320))]
    for name, values in (("frames", stack), ("mask", mask)):
        for where, wanted in ((store, "packbits"), (portable, "bytes")):
            got, codec = read_zarr(where, "camera/" + name)
            check(
                f"numpy reads {os.path.basename(where)}/camera/{name}, whose codec is {wanted}: all values equal",
                codec["name"] == wanted and np.array_equal(got, values),
            )
    for (filter_mask, payload), name in zip(raw, ("frames", "mask")):
        with open(os.path.join(store, "camera", name, "c", "1", "1", "1"), "rb") as f:
            check(
                f"chunk (1, 1, 1) of {name}: the same {len(payload)} bytes in HDF5 and in Zarr",
                filter_mask == 0 and f.read() == payload,
            )
    codec = json.dumps({"name": "packbits", "configuration": {"last_bit": BITS - 1}})
    piece = np.ascontiguousarray(stack[4:8, 240:480, 320:640])
    _, streamed = run(zarrbits, "encode", "--data-type", "uint16", "--codec", codec, stdin=piece.tobytes())
    check("the same chunk of frames through the stream (zarrbits encode): the same bytes", streamed == raw[0][1])
    _, back = run(zarrbits, "decode", "--data-type", "uint16", "--codec", codec, "--elements", str(piece.size), stdin=streamed)
    check("and decoded again: the same values", back == piece.tobytes())
    with open(report) as f:
        account = json.load(f)
    summary = account["summary"]
    check(
        "the converter's report: nothing skipped, nothing lossy", summary.get("skipped", 0) == 0 and summary.get("lossy", 0) == 0
    )
    check(
        "and all packed chunks copied as they were",
        all(o["outcome"] == "raw" for o in account["objects"] if o["kind"] == "dataset"),
    )

    def row(label, sizes, seconds):
        times = "" if seconds is None else f"{seconds:7.2f} s"
        cells = "".join(f"{size:12,} {100 * size / whole:5.1f} %" for size, whole in zip(sizes, (stack.nbytes, mask.nbytes)))
        print(f"  {label:46}{cells}{times}")

    names = ("camera/frames", "camera/mask")
    print("\nBytes of the stored chunks, also as a share of the array, and how long the command took here:")
    print(f"  {'':46}{'frames':>20}{'mask':>20}{'time':>9}")
    row("camera.h5             HDF5, as h5py wrote it", [stored_h5(plain, n) for n in names], None)
    row("camera-gzip.h5        HDF5, shuffle and gzip 4", [stored_h5(deflated, n) for n in names], seconds_deflated)
    row("camera-packed.h5      HDF5, packbits plugin", [stored_h5(packed, n) for n in names], seconds_packed)
    row("camera.zarr           Zarr v3, packbits", [stored_zarr(store, n) for n in names], seconds_store)
    row("camera-portable.zarr  Zarr v3, bytes", [stored_zarr(portable, n) for n in names], seconds_portable)
    print(f"\nReport of the conversion: {json.dumps(summary)}")
    print("What gzip reaches depends on the image (this one is synthetic); packbits always takes 12 of 16 bits, and 1 of 8.")
    print(f"Files: {folder}")
    if failed:
        print(f"{len(failed)} checks FAILED")
        sys.exit(1)
    print("All checks passed.")


if __name__ == "__main__":
    main()
