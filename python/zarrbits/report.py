# SPDX-License-Identifier: BSL-1.0
"""What the calls of calls.py give. print() and notebooks show each as a table;
`document` is all that the command said, as a dict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from .locations import in_short
from .words import in_python

_GRIDS = ("regular", "rectilinear")
# Why an object is skipped, lossy or unusual; docs/reference/report.md says what to do about each.
ReasonCode = Literal[
    "not_selected",
    "parent_skipped",
    "unsupported_type",
    "unsupported_feature",
    "unsupported_codec",
    "missing_filter",
    "zarr_v3_only",
    "too_large",
    "invalid_name",
    "damaged",
    "unreadable",
    "lost_chunks",
    "missing_file",
    "refused_file",
    "not_joinable",
    "link_not_followed",
    "dangling_reference",
    "rounded",
    "changed_form",
    "bookkeeping",
]
Rows = Sequence[Sequence[object]]
Table = tuple[str, Sequence[str], Rows]  # what stands above it, the head, the rows


class _Shown:
    """Tables, as text and as HTML."""

    def _tables(self) -> list[Table]:
        raise NotImplementedError

    def _brief(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        # that of a dataclass would have a line for thousands of objects
        return f"<zarrbits.{type(self).__name__}: {self._brief()}>"

    def __str__(self) -> str:
        return "\n\n".join(_text(*table) for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(_html(*table) for table in self._tables())


@dataclass(frozen=True)
class Outcome:
    """What became of one object, or of one attribute of it. Sizes are of the stored bytes of a dataset."""

    path: str
    kind: str
    outcome: str
    attribute: str | None = None
    reason: str | None = None
    lossy: bool = False
    source_bytes: int | None = None
    store_bytes: int | None = None
    selected: bool = True  # False: include or exclude left it out
    code: ReasonCode | None = None  # the kind of `reason`; None: there is no reason


def _left_out(document: dict[str, Any]) -> list[Outcome]:
    return [
        Outcome(s["file"], "file", "skipped", reason=s["notes"][0] if s["notes"] else None, code=s.get("code"))
        for s in document.get("sources", [])
        if s.get("left_out")
    ]


def _lost_table(lost: list[Outcome]) -> list[Table]:
    return [("LOST", ("name", "kind", "reason"), [(_name(o), o.kind, o.reason or "") for o in lost])] if lost else []


@dataclass(frozen=True, repr=False)
class Report(_Shown):
    """What convert() or finalize() did, and the seconds that it took."""

    source: str
    store: str
    counts: dict[str, int]
    objects: list[Outcome]
    seconds: float
    document: dict[str, Any]

    @property
    def sources(self) -> list[str]:
        """All files that are in the store, and those that `keep_going` left out; `source` is the first."""
        return [s["file"] for s in self.document.get("sources", [])] or [self.source]

    @property
    def lost(self) -> list[Outcome]:
        """What is not in the store, or cannot be rebuilt from it; not what include and exclude left out.
        The files that `keep_going` left out come first, of kind "file"."""
        return _left_out(self.document) + [o for o in self.objects if o.lossy or (o.outcome == "skipped" and o.selected)]

    def _brief(self) -> str:
        return f"{_few(self.sources)} to {self.store}, {_brief_counts(self.counts, self.lost)}, {self.seconds:.2f} s"

    def _tables(self) -> list[Table]:
        datasets = [o for o in self.objects if o.kind == "dataset" and o.source_bytes is not None and o.store_bytes is not None]
        rows = [
            (o.path, o.outcome, _size(o.source_bytes), _size(o.store_bytes), _ratio(o.source_bytes, o.store_bytes))
            for o in datasets
        ]
        before, after = sum(o.source_bytes or 0 for o in datasets), sum(o.store_bytes or 0 for o in datasets)
        if len(rows) > 1:
            rows.append(("all", "", _size(before), _size(after), _ratio(before, after)))
        others = ", ".join(f"{n} {outcome}" for outcome, n in self.counts.items() if n)
        said = f"{_few(self.sources)} to {self.store} in {self.seconds:.2f} s" + (f"; objects: {others}" if others else "")
        tables: list[Table] = [(said, ("dataset", "outcome", "in source", "in store", "ratio"), rows)]
        return tables + _lost_table(self.lost)


@dataclass(frozen=True, repr=False)
class Export(_Shown):
    """What export_store() did, and the seconds that it took."""

    store: str
    file: str
    counts: dict[str, int]
    objects: list[Outcome]
    seconds: float
    document: dict[str, Any]

    @property
    def lost(self) -> list[Outcome]:
        """What is not in the file; the stores that `keep_going` left out come first, of kind "file"."""
        return _left_out(self.document) + [o for o in self.objects if o.lossy or o.outcome == "skipped"]

    def _brief(self) -> str:
        return f"{self.store} to {self.file}, {_brief_counts(self.counts, self.lost)}, {self.seconds:.2f} s"

    def _tables(self) -> list[Table]:
        rows = [
            (o["path"], o["outcome"], o.get("filters", ""), _size(o.get("store_bytes")), _size(o.get("file_bytes")))
            for o in self.document["objects"]
            if o["kind"] == "dataset" and o["outcome"] != "skipped"
        ]
        said = f"{self.store} to {self.file} in {self.seconds:.2f} s"
        tables: list[Table] = [(said, ("dataset", "outcome", "filters", "in store", "in file"), rows)]
        return tables + _lost_table(self.lost)


@dataclass(frozen=True, repr=False)
class Repack(_Shown):
    """What repack() did. `unchanged`: the file followed the rules already, and was left as it is."""

    source: str
    unchanged: bool
    datasets: list[dict[str, Any]]
    seconds: float
    document: dict[str, Any]

    def _brief(self) -> str:
        recoded = sum(d["outcome"] == "recoded" for d in self.datasets)
        return f"{self.source}, " + ("unchanged" if self.unchanged else f"{recoded} recoded, {self.seconds:.2f} s")

    def _tables(self) -> list[Table]:
        def described(d: dict[str, Any], chunk: str, filters: str) -> str:
            return " ".join(filter(None, ["x".join(map(str, d.get(chunk, []))), d.get(filters, "")]))

        rows = [
            (
                d["path"],
                d["outcome"],
                described(d, "source_chunk", "source_filters"),
                described(d, "chunk", "filters"),
                _size(d["source_bytes"]),
                _size(d["bytes"]),
            )
            for d in self.datasets
        ]
        said = f"{self.source}: follows the layout already" if self.unchanged else f"{self.source} in {self.seconds:.2f} s"
        return [(said, ("dataset", "outcome", "chunks before", "chunks after", "bytes before", "bytes after"), rows)]


@dataclass(frozen=True, repr=False)
class Digest(_Shown):
    """Digests of values. `digest`: of all arrays together; None if an array has none, and of a partition."""

    source: str
    digest: str | None
    arrays: list[dict[str, Any]]
    document: dict[str, Any]

    def __getitem__(self, path: str) -> str | None:
        """The digest of the array at a path: report["/a/b"]."""
        for array in self.arrays:
            if array["path"] == path:
                digest: str | None = array["digest"]
                return digest
        raise KeyError(path)

    def _brief(self) -> str:
        return f"{self.source}, {self.digest or 'no digest'}"

    def _tables(self) -> list[Table]:
        rows = [
            (a["digest"] or a.get("reason", ""), a["path"], a.get("data_type", ""), _shape(a.get("shape", [])))
            for a in self.arrays
        ]
        return [(self._brief(), ("digest", "array", "data type", "shape"), rows)]


@dataclass(frozen=True, repr=False)
class LayoutCheck(_Shown):
    """Which rules of a layout a file follows. `conforms`: all that are required."""

    source: str
    conforms: bool
    findings: list[dict[str, Any]]
    document: dict[str, Any]

    def _brief(self) -> str:
        return f"{self.source}, {self.document['layout']}: {'conforms' if self.conforms else 'does not conform'}"

    def _tables(self) -> list[Table]:
        rows = [
            ("ok" if f["met"] else "no" if f["required"] else "(no)", f["rule"], f["path"], f["value"], f["wanted"])
            for f in self.findings
        ]
        return [(self._brief(), ("", "rule", "of", "has", "wanted"), rows)]


@dataclass(frozen=True, repr=False)
class Check(_Shown):
    """What check() found. `sound`: there is no problem, and everything could be checked."""

    name: str
    sound: bool
    arrays: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    seconds: float
    document: dict[str, Any]

    def _brief(self) -> str:
        counts = ((self.document[kind], kind) for kind in ("problems", "unchecked", "notices"))
        found = [f"{n} {kind}" for n, kind in counts if n]
        return ", ".join([self.name, "sound" if self.sound else "NOT SOUND", *found])

    def _tables(self) -> list[Table]:
        columns = ("chunks", "checked", "missing", "damaged")
        arrays = [(a["path"], *(a[c] for c in columns), _size(a["bytes"])) for a in self.arrays]
        tables: list[Table] = [(self._brief(), ("array", *columns, "bytes"), arrays)]
        if self.findings:
            rows = [(f["severity"], f["rule"], f["path"], f.get("key", ""), f["reason"]) for f in self.findings]
            tables.append(("", ("", "rule", "of", "key", "reason"), rows))
        return tables


@dataclass(frozen=True, repr=False)
class Plan(_Shown):
    """What convert() would do. `complete`: whether all of the source would be in the store."""

    complete: bool
    datasets: list[dict[str, Any]]
    document: dict[str, Any]

    def _brief(self) -> str:
        return f"{_plural(len(self.datasets), 'dataset')}, {'complete' if self.complete else 'INCOMPLETE'}"

    def _tables(self) -> list[Table]:
        bound = False
        rows = []
        for d in self.datasets:
            source, store = d.get("source_bytes", 0), d.get("store_bytes", 0)
            at_most = d.get("outcome") != "raw" and store > 0  # a copy has the size of its source
            bound = bound or at_most
            rows.append(
                (
                    d.get("path", ""),
                    d.get("outcome", ""),
                    d.get("objects", ""),
                    _size(source),
                    _size(d.get("estimated_bytes")),
                    _at_most(at_most) + _size(store),
                    d.get("how", d.get("reason", "")),
                )
            )
        before, after = (sum(d.get(key, 0) for d in self.datasets) for key in ("source_bytes", "store_bytes"))
        if len(rows) > 1:
            objects = sum(d.get("objects", 0) for d in self.datasets) + self.document.get("groups", 0)
            total = (_size(before), _size(self.document.get("estimated_bytes")), _at_most(bound) + _size(after))
            rows.append(("all", "", objects, *total, ""))
        said = "" if self.complete else "INCOMPLETE: something would not be in the store"
        tables: list[Table] = [(said, ("dataset", "outcome", "objects", "in source", "about", "in store", "how"), rows)]
        notes = "\n".join(self.notes)
        return [*tables, (notes, (), ())] if notes else tables

    @property
    def notes(self) -> list[str]:
        """What the tables do not have: files that would be left out or were not read, what joining changes."""
        return [
            *(_note_of_grids(d) for d in self.datasets if "grids" in d),
            *_note_of_compression([d for d in self.datasets if "compressed" in d]),
            *_note_of_space(self.document),
            *([f"about {self.document['seconds']:.1f} s to read and encode it here"] if "seconds" in self.document else []),
            *([f"convention {self.document['convention']}"] if self.document.get("convention", "none") != "none" else []),
            *_notes_of_sources(self.document.get("sources", [])),
            *_note_of_links(self.document.get("links", {})),
            *(f'reads also "{file}"' for file in self.document.get("other_files", [])),
            *(f"not read: {in_python(refused['reason'])}" for refused in self.document.get("refused_files", [])),
        ]


@dataclass(frozen=True, repr=False)
class Verification(_Shown):
    """How a store compares with its source. `equal`: nothing differs, is missing or cannot be read; `complete`:
    and nothing was left unchecked."""

    equal: bool
    complete: bool
    document: dict[str, Any]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What differs, is missing, cannot be read or was not checked."""
        return list(self.document.get("findings", []))

    def _said(self) -> str:
        if self.complete:
            return "equal"
        return "equal, but something was not checked" if self.equal else "FAILED: the store is not equal to its source"

    def _brief(self) -> str:
        return self._said() + (f", {_plural(len(self.findings), 'finding')}" if self.findings else "")

    def _tables(self) -> list[Table]:
        counts = {k: v for k, v in self.document.items() if isinstance(v, dict) and {"equal", "differs"} <= set(v)}
        verdicts = list(next(iter(counts.values()), {}))
        rows = [(k.replace("_", " "), *(v.get(name, 0) for name in verdicts)) for k, v in counts.items() if any(v.values())]
        tables: list[Table] = [(self._said(), ("", *verdicts), rows)]
        if self.findings:
            tables.append(
                (
                    "",
                    ("what", "name", "at", "in source", "in store", "reason"),
                    [
                        (
                            f["outcome"],
                            f["path"] + (f" attribute {f['attribute']}" if "attribute" in f else ""),
                            _shape(f.get("index")) if "index" in f else "",
                            f.get("source_value", ""),
                            f.get("store_value", ""),
                            f.get("reason", ""),
                        )
                        for f in self.findings
                    ],
                )
            )
        return tables


@dataclass(frozen=True, repr=False)
class Inspection(_Shown):
    """What is in each file or store: the nodes of its tree."""

    trees: list[dict[str, Any]]
    document: dict[str, Any]

    @property
    def unfinished(self) -> list[dict[str, Any]]:
        """Stores that are not complete yet: how far they are."""
        return list(self.document.get("unfinished", []))

    def _brief(self) -> str:
        return ", ".join([t["name"] for t in self.trees] + [f"{u['name']} (unfinished)" for u in self.unfinished]) or "nothing"

    def _tables(self) -> list[Table]:
        return [
            (
                f"{t['name']}: {t['format']}, {_size(t['bytes'])}",
                ("name", "kind", "shape", "type", "chunk", "stored"),
                [
                    (
                        n["path"],
                        n["kind"],
                        _shape(n["shape"]) if "shape" in n else "",
                        _word(n.get("type", "")),
                        _chunks(n),
                        _size(n.get("stored_bytes")),
                    )
                    for n in t["nodes"]
                ],
            )
            for t in self.trees
        ] + [(_unfinished(u), (), ()) for u in self.unfinished]


@dataclass(frozen=True, repr=False)
class Suggestions(_Shown):
    """How many bits the values of each dataset need, or with `chunks` which chunks they should have."""

    datasets: list[dict[str, Any]]
    document: dict[str, Any]

    @property
    def bits(self) -> dict[str, int]:
        """Of the datasets that are worth it: convert(..., codec="packbits", bits=suggestions.bits)."""
        return {d["path"]: d["bits"] for d in self.datasets if d.get("worthwhile") and d["first_bit"] == 0}

    @property
    def options(self) -> dict[str, Any]:
        """With `chunks`: convert(..., **suggestions.options) makes them."""
        if "convert" not in self.document:
            return {}
        chunk = [d["option"] for d in self.datasets if d["option"]]
        shard = {"shard": self.document["convert"][-1]} if "--shard" in self.document["convert"] else {}
        return {**({"chunk": chunk} if chunk else {}), **shard}

    def _brief(self) -> str:
        if "convert" in self.document:
            return f"{_plural(len(self.datasets), 'array')}, {sum(bool(d['option']) for d in self.datasets)} with other chunks"
        return f"{_plural(len(self.datasets), 'dataset')}, {len(self.bits)} worth it"

    def _tables(self) -> list[Table]:
        if "convert" in self.document:
            titles = ("array", "type", "chunks", "of", "size", "objects", "reason")
            rows = [
                (
                    d["path"],
                    d["type"],
                    f"{d['chunks']:,}",
                    _shape(d["chunk"]),
                    _size(d["chunk_bytes"]),
                    f"{d['objects']:,}",
                    d["reason"],
                )
                for d in self.datasets
            ]
            return [("", titles, rows)]
        rows = [
            (
                d["path"],
                d["type"],
                f"{d['first_bit']} to {d['last_bit']}",
                _size(d["stored_bytes"]),
                _size(d["packed_bytes"]),
                _ratio(d["stored_bytes"], d["packed_bytes"]),
                d["obstacle"],
            )
            for d in self.datasets
        ]
        return [("", ("dataset", "type", "bits", "stored", "packed", "ratio", "but"), rows)]


@dataclass(frozen=True, repr=False)
class Diagnosis(_Shown):
    """Whether HDF5 finds the plugins, and what they did in a file. `healthy`: nothing is at fault."""

    healthy: bool
    document: dict[str, Any]

    def _brief(self) -> str:
        return "all is well" if self.healthy else "something is at fault"

    def _tables(self) -> list[Table]:
        plugins = self.document["plugins"]
        files = [
            (f"{folder['path']}/{f['name']}", "FAULT" if f["fault"] else "", f["says"])
            for folder in plugins["folders"]
            for f in folder["files"]
        ]
        folders = [
            (folder["path"], "FAULT" if folder["fault"] else "", folder["says"])
            for folder in plugins["folders"]
            if folder["says"]
        ]
        said = "all is well" if self.healthy else "something is at fault"
        tables: list[Table] = [
            (said + (f"; {plugins['export']}" if plugins["export"] else ""), ("file", "", "what it is"), folders + files)
        ]
        if "file" in self.document:
            tables.append(
                (
                    self.document["file"]["path"],
                    ("dataset", "filter", "chunks", "of them raw", "decoded", "stored", "ratio", "problem"),
                    [
                        (
                            d["path"],
                            d["filter"],
                            d["chunks"],
                            d["raw_chunks"],
                            _size(d["decoded_bytes"]),
                            _size(d["stored_bytes"]),
                            _ratio(d["decoded_bytes"], d["stored_bytes"]),
                            d["problem"] + (f": h5repack {d['h5repack']}" if d["h5repack"] else ""),
                        )
                        for d in self.document["file"]["filtered"]
                    ],
                )
            )
        return tables


def _name(o: Outcome) -> str:
    return o.path + (f" attribute {o.attribute}" if o.attribute else "")


def _plural(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _few(names: Sequence[str]) -> str:
    listed = 3
    return ", ".join(names[:listed]) + (f" and {len(names) - listed:,} more" if len(names) > listed else "")


def _brief_counts(counts: dict[str, int], lost: list[Outcome]) -> str:
    return _plural(sum(counts.values()), "object") + (f", {len(lost):,} LOST" if lost else "")


def _at_most(bound: bool) -> str:
    return "<= " if bound else ""


def _note_of_grids(dataset: dict[str, Any]) -> str:
    grids = dataset["grids"]
    kept = [f"a {name} grid keeps {grids[name]['copied']:,} of {_plural(grids[name]['chunks'], 'chunk')}" for name in _GRIDS]
    better = f'; grid="{grids["suggested"]}" encodes less than half as much again' if grids["suggested"] != grids["used"] else ""
    return f'"{dataset["path"]}": {", ".join(kept)}{better}'


def _note_of_compression(datasets: list[dict[str, Any]]) -> list[str]:
    """What arrays without compression would save with one."""
    if not datasets:
        return []
    before, after = sum(d["store_bytes"] for d in datasets), sum(d["compressed"]["store_bytes"] for d in datasets)
    datasets = sorted(datasets, key=lambda d: d["compressed"]["store_bytes"] - d["store_bytes"])
    names = _few([f'"{d["path"]}"' for d in datasets])
    how = datasets[0]["compressed"]["compress"]
    return [f'compress="{how}" would save about {_size(before - after)} of {_size(before)}, by a sample of the values of {names}']


def _note_of_space(plan: dict[str, Any]) -> list[str]:
    estimate, free = plan.get("estimated_bytes"), plan.get("free_bytes")
    if estimate is None or free is None or estimate <= free:
        return []
    return [f"the store needs about {_size(estimate)}, and its file system has {_size(free)} free"]


def _notes_of_sources(sources: list[dict[str, Any]]) -> list[str]:
    """A note that many files have stands once, with the first of them."""
    left_out = [f'left out "{s["file"]}": {in_python(s["notes"][0])}' for s in sources if s.get("left_out")]
    files: dict[str, list[str]] = {}
    for s in sources:
        for note in s["notes"] if not s.get("left_out") else []:
            files.setdefault(note, []).append(s["file"])
    return left_out + [f"{in_short(names)}: {in_python(note)}" for note, names in files.items()]


def _note_of_links(links: dict[str, int]) -> list[str]:
    words = {"copied": "copied", "kept": "kept as notes", "lost": "whose targets cannot be copied"}
    counts = [f"{links[key]} {text}" for key, text in words.items() if links.get(key)]
    return [f"links: {', '.join(counts)}"] if counts else []


def _chunks(node: dict[str, Any]) -> str:
    if "chunk_shape" not in node:
        return str(node.get("layout", ""))
    return _shape(node["chunk_shape"]) + (f" in {_shape(node['shard_shape'])}" if "shard_shape" in node else "")


def _unfinished(store: dict[str, Any]) -> str:
    lines = [f'"{store["name"]}" is an unfinished store, begun by zarrbits {store["zarrbits"]} from "{store["source"]}"']
    of = f" of {store['units']:,}" if store["units"] else ""
    lines.append(f"  {store['units_done']:,}{of} units made, {_size(store['bytes_done'])}")
    if store["share_count"]:
        missing = [*store["missing"], *(share["index"] for share in store["shares"] if not share["done"])]
        if missing:
            lines.append(
                f"  partitions {_few([str(i) for i in sorted(missing)])} of {store['share_count']} are missing or not done"
            )
        lines.append("  when all partitions are done, finalize() completes it; convert(resume=True) makes the missing ones")
    else:
        lines.append("  the same call continues")
    return "\n".join(lines)


def _size(n: int | None) -> str:
    if n is None:
        return ""
    size, units = float(n), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{n} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def _ratio(before: int | None, after: int | None) -> str:
    return f"{after / before:.2f}" if before and after is not None else ""


def _shape(extent: Sequence[int] | None) -> str:
    return "null" if extent is None else "x".join(map(str, extent)) or "scalar"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else str(value.get("name", value)) if isinstance(value, dict) else str(value)


def _text(said: str, head: Sequence[object], rows: Rows) -> str:
    cells = [[str(c) for c in line] for line in (head, *rows)] if rows else []
    # a column without a word says nothing
    columns = [i for i in range(len(head)) if any(line[i] for line in cells[1:])]
    width = {i: max(len(line[i]) for line in cells) for i in columns}
    lines = ["  ".join(line[i].ljust(width[i]) for i in columns).rstrip() for line in cells]
    return "\n".join(([said] if said else []) + lines)


def _html(said: str, head: Sequence[object], rows: Rows) -> str:
    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    table = "<table>" + line(head, "th") + "".join(line(r, "td") for r in rows) + "</table>" if rows else ""
    text = escape(said).replace("\n", "<br>")
    return (f"<p>{text}</p>" if said else "") + table
