# SPDX-License-Identifier: BSL-1.0
"""Makes docs/explanation/performance.md of bench/results/*.json, which bench/all.py writes: every figure of the page is one of a
result, or a ratio of two.

python3 bench/performance.py            # writes the page
python3 bench/performance.py --check    # exit status 1 if the page is another one
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/performance.md"


class Result:
    """The tables of one benchmark."""

    def __init__(self, name):
        self.__dict__.update(json.loads((ROOT / f"bench/results/{name}.json").read_text(encoding="utf-8")))

    def text(self, row, column, title=""):
        """The cell of the row whose first cells are `row`, in the first table whose title begins with `title`."""
        row = (row,) if isinstance(row, str) else row
        for table in self.tables:
            if not table["title"].startswith(title) or column not in table["columns"]:
                continue
            for cells in table["rows"]:
                if tuple(cells[: len(row)]) == row:
                    return cells[table["columns"].index(column)]
        raise KeyError(f"{self.command}: no cell {title!r} {row} {column!r}")

    def number(self, row, column, title=""):
        return float(self.text(row, column, title).split()[0].replace(",", ""))

    def ratio(self, row, other, column, title=""):
        """How many times less `row` takes than `other`."""
        return f"{self.number(other, column, title) / self.number(row, column, title):.2g}"

    def source(self):
        return f"`{self.command}`, {self.commit}, {self.date}, {self.cpu} with {self.cores} cores"


def table(head, *rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def section(title, result, note, *parts):
    return "\n\n".join([f"## {title}", result if isinstance(result, str) else f"{result.source()}{note}", *parts])


def packing_section():
    r = Result("packing")
    sizes = {"64 KiB": 65536, "1 MiB": 1 << 20, "64 MiB": 64 << 20}

    def row(what, name, size, table_of_kernels=None):
        rows = [
            x
            for x in r.rows
            if x["name"] == name and x["bytes"] == sizes[size] and "kernels" in x and table_of_kernels in (None, x["kernels"])
        ]
        best = max(rows, key=lambda x: x["gbps"])
        return f"{what}, {size}", f"{best['gbps']:.3g}", f"{best['ratio']:.2f}"

    return section(
        "How fast is packing?",
        r,
        "; GB/s of decoded bytes in one thread",
        table(
            ["what", "GB/s", "times memcpy"],
            row("pack 12 of 16 bits", "encode/16/12", "64 KiB"),
            row("unpack them", "decode/16/12", "64 KiB"),
            row("pack booleans", "encode/bool", "64 KiB"),
            row("pack 12 of 16 bits", "encode/16/12", "64 MiB"),
            row("without SIMD (`portable`), pack 12 of 16 bits", "encode/16/12", "64 KiB", "portable"),
            row("through a plain Boost chain, pack 12 of 16 bits", "push/encode/16/12", "1 MiB"),
        ),
        "Beside it a full run of `scripts/bench` on an Intel Xeon with AVX-512:\n\n![GB/s over the bits kept](performance.svg)",
    )


def hdf5_section():
    reader, codec = Result("hdf5_reader"), Result("zarr_codec")

    def read(name):
        return name, *(reader.text(name, c) for c in ("h5py, s", "1 thread", "2 threads"))

    return section(
        "How fast is HDF5 with it?",
        reader,
        "; `zarrbits.File` beside h5py with hdf5plugin, elapsed: seconds of h5py, and how many times faster",
        table(
            ["256 MiB", "h5py, s", "1 thread", "2 threads"],
            *(
                read(name)
                for name in (
                    "shuffle+deflate float32",
                    "shuffle+deflate float32: 1,000 boxes",
                    "zstd float32",
                    "lzf float32",
                    "bitshuffle-lz4 uint32",
                    "blosc:lz4 float32",
                    "chunks without filters",
                    "contiguous",
                )
            ),
        ),
        f"{codec.source()}; a uint16 array with 12 bits used, in zarr-python",
        table(codec.tables[0]["columns"], *codec.tables[0]["rows"]),
    )


def conversion_section():
    convert, stores, repack, start = (Result(n) for n in ("convert", "stores", "repack", "start"))

    def converted(what, title, ours, theirs, column="CPU seconds"):
        mine, peer = (convert.text(way, column, title) for way in (ours, theirs))
        return what, mine, f"{theirs} {peer}", convert.ratio(ours, theirs, column, title)

    def of_stores(what, job, peer):
        mine, other = (stores.text((job, way), "CPU s") for way in ("zarrbits", peer))
        return what, mine, f"{peer} {other}", stores.ratio((job, "zarrbits"), (job, peer), "CPU s")

    def repacked(what, job, peer, column="elapsed s"):
        mine, other = (repack.text((job, way), column) for way in ("zarrbits", peer))
        return what, mine, f"{peer} {other}", repack.ratio((job, "zarrbits"), (job, peer), column)

    return section(
        "How fast are conversions?",
        f"{convert.source()}; CPU seconds of all threads, medians, in turns with loops of h5py and zarr-python",
        "",
        table(
            ["what", "zarrbits", "peer", "ratio"],
            converted("`convert` of 240 MB, shuffle and deflate", "deflate:", "zarrbits", "loop that encodes"),
            converted("the same", "deflate:", "zarrbits", "xarray's to_zarr"),
            converted("with `--profile native`", "deflate:", "zarrbits native", "loop, same codecs"),
            converted("`verify`", "deflate:", "zarrbits verify", "loop that compares"),
            converted("`verify`, elapsed", "deflate:", "zarrbits verify", "loop that compares", "elapsed"),
            converted("a table of 10 million rows", "table:", "zarrbits", "loop"),
        ),
        stores.source(),
        table(
            ["what", "zarrbits", "peer", "ratio"],
            of_stores("Zarr to Zarr, into shards", "into shards of 32 chunks", "zarr-python"),
            of_stores("rows to columns, 256 MiB", "rows to columns, 512 MB", "zarr-python"),
            of_stores("`export`, shuffle and deflate 4", "export, shuffle and deflate 4", "zarr-python, h5py"),
        ),
        f"{repack.source()}; elapsed seconds",
        table(
            ["what", "zarrbits", "peer", "ratio"],
            repacked("`repack --layout cmip7`, 106 MB", "cmip7", "cmip7repack"),
            repacked("the same", "cmip7", "h5repack"),
            repacked("the same", "cmip7", "nccopy"),
            repacked("metadata alone, `--layout asis`", "asis", "cp"),
        ),
        f"{start.source()}; of a command with Debian's libraries, for a file with ten numbers",
        table(start.tables[0]["columns"], *start.tables[0]["rows"]),
    )


def many_section():
    many = Result("many")
    names = (
        "zarrbits, native, shards of 64M",
        "zarrbits, native",
        "zarrbits",
        "zarrbits --virtual, JSON",
        "kerchunk, references alone",
    )
    xarray = "xarray, open_mfdataset to to_zarr"
    tiles = ("zarrbits, native", "zarrbits", "zarrbits --virtual, JSON", "VirtualiZarr to icechunk, references alone")
    head = [t["title"] for t in many.tables if t["columns"][-1] == "times xarray"]

    def rows(title, list_of_names):
        return [(name, *(many.text(name, c, title) for c in ("CPU s", "times xarray"))) for name in (*list_of_names, xarray)]

    return section(
        "How fast are many files?",
        many,
        "; CPU seconds",
        table([head[0], "CPU s", "times xarray"], *rows(head[0], names)),
        table([head[1], "CPU s", "times xarray"], *rows(head[1], tiles)),
    )


def remote_section():
    remote = Result("remote")
    return section(
        "How fast are files on servers?",
        f"`{remote.command}`, {remote.commit}, {remote.date}; requests and MB downloaded, which no processor changes: a file in "
        "pages (cloud-optimised), one with 400 variables whose metadata is all over, 10,000 small chunks, and 1,000 of 4,000 "
        "chunks written",
        "",
        table(remote.tables[0]["columns"], *remote.tables[0]["rows"]),
        "h5netcdf reads no index of chunks to open a file, and `plan` reads all of them. `convert` counts its last look at the "
        "file, which finds out whether it has changed.",
    )


def goals_section():
    reader, convert, stores, repack, many = (Result(n) for n in ("hdf5_reader", "convert", "stores", "repack", "many"))
    xarray = "xarray, open_mfdataset to to_zarr"

    def times(way, title):
        return many.number(xarray, "CPU s", title) / many.number(way, "CPU s", title)

    def of_convert(ours, theirs, column="CPU seconds", title="deflate:"):
        return convert.number(theirs, column, title) / convert.number(ours, column, title)

    def goal_lines():
        yield "default conversion over the loop, CPU", 4.5, of_convert("zarrbits", "loop that encodes")
        yield "the same with 2 threads over 1, elapsed", 1.8, of_convert("zarrbits, 2 threads", "zarrbits, 1 thread", "elapsed")
        yield "`verify` over the loop that compares, CPU", 2.5, of_convert("zarrbits verify", "loop that compares")
        cell = convert.text("zarrbits native", "as fast as `cp -r` of it (CPU)", "deflate:")
        yield "`--profile native` over `cp -r` of the store, CPU", 0.8, float(cell)
        export = "export, shuffle and deflate 4"
        yield (
            "`export` over the loop, CPU",
            4,
            stores.number((export, "zarr-python, h5py"), "CPU s") / stores.number((export, "zarrbits"), "CPU s"),
        )
        yield (
            "`repack --layout cmip7` over cmip7repack, elapsed",
            5,
            repack.number(("cmip7", "cmip7repack"), "elapsed s") / repack.number(("cmip7", "zarrbits"), "elapsed s"),
        )
        yield "400 daily files, native, in shards, over xarray, CPU", 25, times("zarrbits, native, shards of 64M", "400 daily")
        yield "400 daily files over xarray, CPU", 4.5, times("zarrbits", "400 daily")
        yield "400 tiles, native, over xarray, CPU", 20, times("zarrbits, native", "400 tiles")
        for name, threads, wanted in (
            ("shuffle+deflate float32", "1 thread", 1.6),
            ("shuffle+deflate float32", "2 to 1", 1.7),
            ("zstd float32", "2 threads", 1.5),
            ("bitshuffle-lz4 uint32", "2 threads", 1.5),
            ("blosc:lz4 float32", "2 threads", 1.5),
            ("contiguous", "1 thread", 0.95),
            ("chunks without filters", "1 thread", 0.95),
            ("tiny", "1 thread", 0.95),
        ):
            yield f"`zarrbits.File` over h5py, {name}, {threads}, elapsed", wanted, reader.number(name, threads)

    lines = []
    for text, wanted, value in goal_lines():
        lines.append((text, wanted, f"{value:.2f}", "met" if value >= wanted else "**missed**"))
    return "## Goals\n\nRatios of the figures above.\n\n" + table(["goal", "wanted", "measured", ""], *lines)


HEAD = """# Performance

Each table is of a single run, in turns with its peers, on a machine without other work; the line above it names the command, the commit, the day and the processor, and `bench/results/` has all that the run printed.
`python3 bench/all.py` runs them all, and `python3 bench/performance.py` makes this page of the results.
Measure on yours: ratios differ between processors, and seconds more."""  # noqa: E501
LIMITS = """## What limits it

- Packing costs what copying costs: memory is the limit, and in HDF5 libhdf5's own copies.
- Copied chunks cost what the kernel takes to copy a file.
- Under `portable`, shuffle and deflate are decoded and become blosc: most of the time is libdeflate and zstd (`bench/convert_profile.py`). Deflate alone keeps its stream, which is inflated once for gzip's CRC-32 and to find damage; `--profile native` inflates nothing.
- `verify` decodes with code of its own, past libhdf5's lock; H5Dread confirms one chunk of each dataset and each difference.
- `export` encodes with libdeflate, which takes four fifths of its time.
- A tile costs the metadata that libhdf5 reads, in a file that is opened three times; its values cost little.
- A small slice in zarr-python takes 0.17 ms, nearly all of it zarr-python's own work."""  # noqa: E501


def page():
    parts = (
        HEAD,
        packing_section(),
        hdf5_section(),
        conversion_section(),
        many_section(),
        remote_section(),
        LIMITS,
        goals_section(),
    )
    return "\n\n".join(parts) + "\n"


def main():
    if sys.argv[1:] == ["--check"]:
        return PAGE.read_text(encoding="utf-8") != page() and f"{PAGE} is not made of bench/results; run bench/performance.py"
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
