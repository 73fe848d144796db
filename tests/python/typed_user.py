# SPDX-License-Identifier: BSL-1.0
"""A program of a user, as mypy --strict sees it; nobody runs it. An error that is not there is one, too."""

from __future__ import annotations

import concurrent.futures

import zarrbits


def tell(state: zarrbits.Progress) -> None:
    print(state.done / state.total, state.path)


report: zarrbits.Report = zarrbits.convert(
    "in.h5", "out.zarr", shard="64M", chunk=(1, 512), bits={"/movie/frames": 12}, progress=tell
)
lost: list[zarrbits.Outcome] = report.lost
code: zarrbits.ReasonCode | None = lost[0].code
needs_plugins: bool = code == "missing_filter"
needs_plugins = code == "no_such_code"  # type: ignore[comparison-overlap]
equal: bool = zarrbits.verify(["a.nc", "b.nc"], "out.zarr", concat="time", order="value").equal
widths: dict[str, int] = zarrbits.suggest("in.h5").bits
zarrbits.convert("in.h5", "out.zarr", partition="0/2")
whole: zarrbits.Report = zarrbits.finalize("in.h5", "out.zarr")
zarrbits.write(zarrbits.read(None, ..., threads=2), [1, 2], first=3)
zarrbits.write(None, zarrbits.read(None, 3, out=None, counts={"chunks": 0}), slice(2), counts={})
zarrbits.write(None, [1], threads="2")  # type: ignore[arg-type]
print(zarrbits.inspect("in.h5").trees, zarrbits.doctor().healthy)
zarrbits.open_references("refs.json", storage_options={"anon": True}, check=False).read_only
snapshot: str = zarrbits.to_icechunk("refs.json", "repository", branch="main", overwrite=True)
zarrbits.to_icechunk("refs.json")  # type: ignore[call-arg]
zarrbits.open_references(5)  # type: ignore[arg-type]
zarrbits.convert("in.h5", "out.zarr", codec="gzip")  # type: ignore[arg-type]
zarrbits.convert("in.h5", "out.zarr", lock=False, consolidate=False, headers={"Authorization": "Bearer TOKEN"})
zarrbits.convert("in.h5", "out.zarr", lock=None)  # type: ignore[arg-type]
zarrbits.convert("in.h5", "out.zarr", headers=["Authorization: Bearer TOKEN"])  # type: ignore[arg-type]
zarrbits.convert("in.h5", "out.zarr", no_such_option=1)  # type: ignore[call-arg]
zarrbits.plan("in.h5", overwrite=True)  # type: ignore[call-arg]
zarrbits.convert("in.h5")  # type: ignore[call-arg]
zarrbits.verify("in.h5", "out.zarr").lost  # type: ignore[attr-defined]
zarrbits.no_such_name  # type: ignore[attr-defined]


def with_workers(executor: concurrent.futures.Executor) -> zarrbits.Report:
    return zarrbits.convert(["a.nc", "b.nc"], "out.zarr", concat="time", client=executor, partitions=64)


zarrbits.convert("in.h5", "out.zarr", client="tcp://127.0.0.1:8786")  # type: ignore[arg-type]
zarrbits.convert(5, "out.zarr")  # type: ignore[arg-type]
files: list[str] = report.sources
