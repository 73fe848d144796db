# SPDX-License-Identifier: BSL-1.0
"""`--report FILE.html` of convert, verify and plan: one page that needs nothing else, and says what the JSON report says.
Names and messages of a hostile file stay text."""

import json
from html.parser import HTMLParser

import h5py
import numpy as np
import pytest

from harness import convert, run

HOSTILE = "<script>alert('x')</script>&amp;\"<img src=x onerror=y>"
ALONE = {"meta"}  # elements without an end


class Page(HTMLParser):
    """Elements, in their order, and the rows of tables: (text, bytes of data-bytes or None) of each cell."""

    def __init__(self, path):
        super().__init__()
        self.open, self.elements, self.attributes, self.headings, self.tables = [], [], set(), [], []
        text = path.read_text()
        assert text.startswith("<!DOCTYPE html>\n")
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ALONE:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(["", dict(attrs).get("data-bytes")])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1][0] += data
        elif self.open and self.open[-1] == "h2":
            self.headings.append(data)

    def table(self, column):
        """{first cell: row} of the table that has this column."""
        for head, *rows in self.tables:
            names = [text for text, _ in head]
            if column in names:
                return [dict(zip(names, row)) for row in rows]
        raise AssertionError(f"no table with {column}")


def checked(path):
    page = Page(path)
    assert not {"script", "img", "link", "iframe", "object"} & set(page.elements)
    assert page.attributes <= {"lang", "charset", "class", "style", "data-bytes"}
    return page


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f.create_dataset("deflate", data=np.arange(5000) // 9, chunks=(500,), compression="gzip")
        f[HOSTILE.replace("/", "|")] = np.arange(300.0)
        f["deflate"].attrs[HOSTILE] = HOSTILE
        # which no array of Zarr can hold
        f["lost"] = np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
        f.create_dataset("time", (3,), dtype=h5py.opaque_dtype(np.dtype("M8[s]")))
    return str(tmp_path / "in.h5")


def sums(rows, column):
    return sum(int(row[column][1] or 0) for row in rows if row["dataset"][0] != "all")


def test_the_page_of_a_conversion(source, tmp_path):
    store = tmp_path / "out.zarr"
    convert(source, store, "-q", "--report", tmp_path / "r.json")
    convert(source, store, "-q", "--overwrite", "--report", tmp_path / "r.html")
    report, page = json.loads((tmp_path / "r.json").read_text()), checked(tmp_path / "r.html")
    rows = page.table("in source")
    datasets = [o for o in report["objects"] if o["kind"] == "dataset"]
    assert {row["dataset"][0] for row in rows} - {"all"} == {d["path"] for d in datasets}
    assert any("<script>" in row["dataset"][0] for row in rows)
    for column, key in (("in source", "source_bytes"), ("in store", "store_bytes")):
        assert sums(rows, column) == sum(d[key] for d in datasets) == int(rows[-1][column][1])


def test_what_was_lost_comes_first(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as f:
        f["good"] = np.arange(10)
        f.create_dataset("bad", data=np.arange(1000), chunks=(100,), compression="gzip")
        place = f["bad"].id.get_chunk_info(3)
    with open(tmp_path / "in.h5", "r+b") as f:
        f.seek(place.byte_offset)
        f.write(b"\xff" * place.size)
    convert(tmp_path / "in.h5", tmp_path / "out.zarr", "-q", "--keep-going", "--report", tmp_path / "r.html", status=3)
    page = checked(tmp_path / "r.html")
    assert page.headings == ["LOST", "Datasets"]
    (lost,) = page.table("reason")
    assert lost["name"][0] == "/bad" and "chunk" in lost["reason"][0]


def test_the_page_of_a_plan(source, tmp_path):
    printed = json.loads(run("plan", source, "--json", "--report", tmp_path / "p.html").stdout)
    page = checked(tmp_path / "p.html")
    rows = page.table("in source")
    for column, key in (("in source", "source_bytes"), ("in store", "store_bytes"), ("about", "estimated_bytes")):
        assert sums(rows, column) == sum(d.get(key, 0) for d in printed["datasets"])
    run("plan", source, "--report", tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["datasets"] == printed["datasets"]


def test_the_page_of_a_comparison(source, tmp_path):
    store = tmp_path / "out.zarr"
    convert(source, store, "-q")
    run("verify", source, store, "--report", tmp_path / "equal.html")
    assert checked(tmp_path / "equal.html").tables
    with h5py.File(source, "r+") as f:
        f["deflate"][7] = -1
        f["deflate"].attrs[HOSTILE] = HOSTILE + "<b>"
    printed = json.loads(run("verify", source, store, "--json", "--report", tmp_path / "differs.html", status=1).stdout)
    page = checked(tmp_path / "differs.html")
    findings = page.table("what")
    assert [f["what"][0] for f in findings] == [f["outcome"] for f in printed["findings"]]
    assert any("<b>" in f["in source"][0] for f in findings)
    (datasets,) = [row for row in page.table("unchecked") if row["kind"][0] == "datasets"]
    assert {name: int(datasets[name][0]) for name in printed["datasets"]} == printed["datasets"]
