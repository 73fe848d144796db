# SPDX-License-Identifier: BSL-1.0
"""Sessions of NWB: PyNWB reads the file, hdmf-zarr the store. test_corpus_roundtrips.py has files of others."""

import numpy as np
import pytest

from conftest import run
from conventions import WAYS, at_least

pytest_plugins = ["conventions"]  # its fixtures
pytestmark = pytest.mark.filterwarnings("ignore")


def session(path):
    from datetime import datetime, timezone

    from pynwb import NWBHDF5IO, NWBFile, TimeSeries
    from pynwb.behavior import Position, SpatialSeries
    from pynwb.ecephys import ElectricalSeries
    from pynwb.file import Subject

    nwb = NWBFile(
        session_description="d",
        identifier="id1",
        session_start_time=datetime(2020, 1, 1, tzinfo=timezone.utc),
        experimenter=["A", "B"],
        lab="lab",
        keywords=["k1", "k2"],
    )
    nwb.subject = Subject(subject_id="001", age="P90D", species="Mus musculus", sex="M")
    device = nwb.create_device(name="array", description="probe")
    nwb.add_electrode_column(name="label", description="l")
    for i in range(2):
        group = nwb.create_electrode_group(name=f"s{i}", description="e", device=device, location="b")
        for j in range(3):
            nwb.add_electrode(group=group, label=f"s{i}e{j}", location="b")
    region = nwb.create_electrode_table_region(region=list(range(6)), description="all")
    raw = ElectricalSeries(
        name="raw", data=np.random.default_rng(0).random((50, 6)), electrodes=region, starting_time=0.0, rate=20000.0
    )
    nwb.add_acquisition(raw)
    nwb.add_unit_column(name="quality", description="q")
    for k in range(4):
        nwb.add_unit(spike_times=np.arange(k + 1) * 0.1, quality="good")
    place = SpatialSeries(name="place", data=np.zeros((10, 2)), timestamps=np.arange(10) / 10.0, reference_frame="z")
    nwb.create_processing_module(name="behavior", description="b").add(Position(spatial_series=place))
    nwb.add_trial_column(name="correct", description="c")
    nwb.add_trial(start_time=1.0, stop_time=2.0, correct=True)
    nwb.add_trial(start_time=3.0, stop_time=4.0, correct=False)
    linked = TimeSeries(name="linked", data=raw, timestamps=np.arange(50.0), unit="V")
    shared = TimeSeries(name="shared", data=np.arange(50), timestamps=linked, unit="V")
    nwb.add_acquisition(linked)
    nwb.add_acquisition(shared)
    nwb.add_epoch(1.0, 3.0, ["a"], [shared])
    with NWBHDF5IO(path, "w") as io:
        io.write(nwb)


class Fields:
    """Two containers, field by field, with all that they lead to."""

    def __init__(self, identified=True):
        self.seen, self.different, self.identified = set(), [], identified

    def compare(self, a, b, path=""):
        from hdmf.common import DynamicTable
        from hdmf.container import AbstractContainer, Data

        if isinstance(a, AbstractContainer) or isinstance(b, AbstractContainer):
            if type(a) is not type(b) or a.name != b.name or (self.identified and a.object_id != b.object_id):
                return self.different.append((path, repr(a)[:80], repr(b)[:80]))
            if id(a) in self.seen:
                return None
            self.seen.add(id(a))
            if isinstance(a, Data):
                self.compare(a.data, b.data, path + ".data")
            for key in sorted(set(a.fields) | set(b.fields)):
                self.compare(a.fields.get(key), b.fields.get(key), f"{path}.{key}")
            if isinstance(a, DynamicTable):
                for column in a.colnames:
                    self.compare(a[column], b[column], f"{path}[{column}]")
            return None
        if hasattr(a, "items") and not hasattr(a, "shape"):
            a, b = dict(a), dict(b)
            if set(a) != set(b):
                return self.different.append((path, sorted(a), sorted(b)))
            return [self.compare(a[k], b[k], f"{path}/{k}") for k in a]
        a, b = (x[()] if getattr(x, "shape", None) == () else x[:] if hasattr(x, "shape") else x for x in (a, b))
        record = isinstance(a, np.ndarray) and a.dtype.names is not None
        if isinstance(a, (list, tuple)) or record or (isinstance(a, np.ndarray) and a.dtype == object):
            if len(a) != len(b):
                return self.different.append((path, len(a), len(b)))
            return [
                self.compare(tuple(x) if record else x, tuple(y) if record else y, f"{path}[{i}]")
                for i, (x, y) in enumerate(zip(a, b))
            ]
        a, b = np.asarray(a), np.asarray(b)
        if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"):
            self.different.append((path, repr(a)[:80], repr(b)[:80]))
        return None


def same_session(source, store):
    from hdmf_zarr import NWBZarrIO
    from pynwb import NWBHDF5IO

    with NWBHDF5IO(source, "r", load_namespaces=True) as a, NWBZarrIO(store, "r", load_namespaces=True) as b:
        fields = Fields()
        fields.compare(a.read(), b.read())
        assert not fields.different
        return len(fields.seen)


@pytest.mark.parametrize("way", ["portable", "native", "shards"])  # hdmf-zarr opens no .zip files
def test_nwb_sees_the_session(way, tmp_path):
    at_least("hdmf-zarr", (0, 14))
    session(tmp_path / "in.nwb")
    run("convert", tmp_path / "in.nwb", tmp_path / "store.zarr", "--quiet", *WAYS[way])
    assert same_session(str(tmp_path / "in.nwb"), str(tmp_path / "store.zarr")) > 30
