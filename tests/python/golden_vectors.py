# SPDX-License-Identifier: BSL-1.0
"""The golden vectors of packbits whose data types numpy has, for the tests of the Python package."""

import json

NAMES = {
    "bool": "?",
    "complex_float32": "c8",
    "complex_float64": "c16",
    "numpy.datetime64": "M8[s]",
    "numpy.timedelta64": "m8[s]",
}
PLAIN = {
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
}


def packbits_vectors(path):
    """[(vector, numpy type)]; those that ask for an option the package does not have (to cut values, any byte as true)
    are left out."""
    with open(path, encoding="utf-8") as f:
        vectors = json.load(f)
    return [
        (v, NAMES.get(v["data_type"], v["data_type"]))
        for v in vectors
        if v["codec"] == "packbits"
        and isinstance(v["data_type"], str)
        and (v["data_type"] in NAMES or v["data_type"] in PLAIN)
        and not v.get("truncate")
        and not v.get("nonzero_is_true")
    ]
