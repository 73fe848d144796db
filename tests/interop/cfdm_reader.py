# SPDX-License-Identifier: BSL-1.0
"""What cfdm, the reference implementation of CF's data model, reads in files. Runs in an environment of its own.

python3 cfdm_reader.py OUT.pickle FILE...     a list with a dictionary for each file, by the names of its netCDF variables
python3 cfdm_reader.py --write OUT.nc FILE    writes the file's fields as aggregation variables
"""

import os
import pickle
import sys

import cfdm
import numpy as np
from cfdm.data.xnetcdfarray import XnetcdfArray

get_array = XnetcdfArray._get_array  # pylint: disable=protected-access


def get_array_or_value_error(self, index=None):
    """For fragments with fewer dimensions, cfdm 1.13.3 catches ValueError, and its backends raise IndexError."""
    try:
        return get_array(self, index)
    except IndexError as e:
        raise ValueError(str(e)) from e


XnetcdfArray._get_array = get_array_or_value_error  # pylint: disable=protected-access


def values_of(construct):
    values = construct.data.array
    return np.ma.filled(values, np.nan) if np.ma.is_masked(values) else np.asarray(values)


def read(path):
    # cfdm 1.13.3 takes relative names of fragments from the working directory
    os.chdir(os.path.dirname(path))
    fields = {}
    for field in cfdm.read(os.path.basename(path)):
        coordinates = {c.nc_get_variable(): c for c in field.dimension_coordinates().values()}
        fields[field.nc_get_variable()] = {
            "values": values_of(field),
            "fragments": [len(chunks) for chunks in field.data.chunks],
            "properties": field.properties(),
            "coordinates": {
                name: (values_of(c), c.properties(), values_of(c.bounds) if c.has_bounds() else None)
                for name, c in coordinates.items()
            },
            "dimensions": [field.domain_axes()[key].nc_get_dimension(None) for key in field.get_data_axes()],
        }
    return fields


if sys.argv[1] == "--write":
    cfdm.write(cfdm.read(sys.argv[3], cfa_write="field"), sys.argv[2], cfa={"constructs": {"field": None}, "uri": "absolute"})
else:
    out = os.path.abspath(sys.argv[1])
    found = [read(os.path.abspath(path)) for path in sys.argv[2:]]
    with open(out, "wb") as f:
        pickle.dump(found, f)
