# SPDX-License-Identifier: BSL-1.0
"""A store of NWBZarrIO as a file of HDF5: pynwb reads all that hdmf-zarr reads, links and references among it."""

import datetime

import numpy as np
import pytest

pynwb = pytest.importorskip("pynwb")
nwb_zarr = pytest.importorskip("hdmf_zarr.nwb")
h5py = pytest.importorskip("h5py")
from hdmf.container import Container, Data  # noqa: E402
from pynwb.ecephys import LFP, ElectricalSeries  # noqa: E402

from harness import run, verify  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def nwb_file():
    f = pynwb.NWBFile("session", "id", datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc), keywords=["x", "yé"])
    shank = f.create_electrode_group("shank", description="s", location="l", device=f.create_device("probe"))
    f.add_electrode_column("label", "of the electrode")
    for i in range(4):
        f.add_electrode(group=shank, location="loc", label=f"e{i}")
    series = ElectricalSeries("es", np.arange(20.0).reshape(10, 2), f.create_electrode_table_region([0, 2], "r"), rate=10.0)
    f.add_acquisition(series)
    timed = pynwb.TimeSeries("t", np.arange(10, dtype="i2"), unit="m", timestamps=np.arange(10.0))
    f.add_acquisition(timed)
    f.add_acquisition(pynwb.TimeSeries("linked", np.arange(10, dtype="i2"), unit="m", timestamps=timed))
    f.add_trial(0.0, 1.0, timeseries=[timed])
    f.add_trial(1.0, 2.0, timeseries=[timed])
    f.add_unit(spike_times=[0.1, 0.2], electrodes=[0, 1])
    f.add_unit(spike_times=[0.3], electrodes=[2])
    f.create_processing_module("ecephys", "x").add(LFP(series))
    return f


def plain(value, seen):
    """A value of a container, to be compared: an object once, and then by its name."""
    if isinstance(value, (Container, Data)):
        if id(value) in seen:
            return seen[id(value)]
        seen[id(value)] = f"#{len(seen)} {value.name}"
        fields = {k: plain(v, seen) for k, v in value.fields.items() if k != "file_create_date"}
        if isinstance(value, Data):
            fields["data"] = plain(value.data, seen)
        if hasattr(value, "colnames"):
            fields["columns"] = {n: plain(value[n], seen) for n in value.colnames}
        return type(value).__name__, value.name, value.object_id, fields
    if isinstance(value, dict) or hasattr(value, "items"):
        return {k: plain(v, seen) for k, v in sorted(value.items())}
    if isinstance(value, (str, bytes, datetime.date)) or value is None or np.isscalar(value):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [plain(v, seen) for v in value]
    try:
        return [plain(value[i], seen) for i in range(len(value))]
    except TypeError:
        return repr(value)


@pytest.fixture(name="both")
def exported(tmp_path):
    store, back = str(tmp_path / "s.zarr"), str(tmp_path / "b.nwb")
    with nwb_zarr.NWBZarrIO(store, "w") as io:
        io.write(nwb_file())
    done = run("export", "-q", "--filters", "standard", store, back)
    assert done.stderr == ""
    return store, back


def test_pynwb_reads_what_hdmf_zarr_reads(both):
    with nwb_zarr.NWBZarrIO(both[0], "r") as a, pynwb.NWBHDF5IO(both[1], "r") as b:
        wanted, have = plain(a.read(), {}), plain(b.read(), {})
        assert have == wanted


def test_links_and_references_are_those_of_hdf5(both):
    with h5py.File(both[1]) as f:
        assert f["processing/ecephys/LFP"].get("es", getlink=True).path == "/acquisition/es"
        group = f["general/extracellular_ephys/electrodes/group"]
        assert h5py.check_ref_dtype(group.dtype) is h5py.Reference and f[group[0]].name == "/general/extracellular_ephys/shank"
        assert f[f.attrs[".specloc"]].name == "/specifications"
        assert f[f["units/electrodes"].attrs["table"]].name == "/general/extracellular_ephys/electrodes"
        names = []
        f.visititems(lambda _, o: names.extend(o.attrs))
        assert not {"_LINKS", "_DTYPE", "_REFERENCE_FIELDS"} & set(names)


def test_verify_knows_them(both):
    assert verify(both[1], both[0])["exit_status"] == 0
    with h5py.File(both[1], "a") as f:
        del f["processing/ecephys/LFP/es"]
        f["processing/ecephys/LFP/es"] = h5py.SoftLink("/acquisition/t")
    assert verify(both[1], both[0], status=1)["links"]["differs"] == 1
