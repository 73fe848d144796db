# SPDX-License-Identifier: BSL-1.0
"""Reads one array with the GDAL of rasterio's wheel, by its C interface: rasterio itself has nothing for arrays of any rank.
A process of its own, because that GDAL brings other libraries, too.

    python3 gdal_reader.py 'ZARR:"/vsikerchunk_json_ref/{refs.json}"' v int16       # the shape, and the bytes in hexadecimal
"""

import ctypes
import glob
import os
import sys

import numpy as np
import rasterio

TYPES = {"int8": 14, "uint8": 1, "uint16": 2, "int16": 3, "uint32": 4, "int32": 5, "float32": 6, "float64": 7}
TYPES |= {"uint64": 12, "int64": 13, "complex64": 10, "complex128": 11}


def library():
    found = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(rasterio.__file__), "../rasterio.libs/libgdal*"))[0])
    for name in (
        "GDALOpenEx",
        "GDALDatasetGetRootGroup",
        "GDALGroupOpenMDArray",
        "GDALMDArrayGetDimensions",
        "GDALExtendedDataTypeCreate",
    ):
        getattr(found, name).restype = ctypes.c_void_p
    found.GDALDimensionGetSize.restype = ctypes.c_uint64
    found.CPLGetLastErrorMsg.restype = ctypes.c_char_p
    found.CPLPushErrorHandler(ctypes.cast(found.CPLQuietErrorHandler, ctypes.c_void_p))
    found.GDALAllRegister()
    return found


def read(path, name, dtype):
    gdal, pointer = library(), ctypes.c_void_p

    def there(value):
        if not value:
            sys.exit(gdal.CPLGetLastErrorMsg().decode() or "GDAL says nothing")
        return pointer(value)

    root = there(gdal.GDALDatasetGetRootGroup(there(gdal.GDALOpenEx(path.encode(), 0x10, None, None, None))))
    array = there(gdal.GDALGroupOpenMDArray(root, name.encode(), None))
    rank = ctypes.c_size_t()
    dimensions = ctypes.cast(gdal.GDALMDArrayGetDimensions(array, ctypes.byref(rank)), ctypes.POINTER(pointer))
    shape = [gdal.GDALDimensionGetSize(pointer(dimensions[i])) for i in range(rank.value)]
    out = np.empty(shape, dtype)
    begin, count = (ctypes.c_uint64 * len(shape))(), (ctypes.c_size_t * len(shape))(*shape)
    kind, to = pointer(gdal.GDALExtendedDataTypeCreate(TYPES[dtype])), pointer(out.ctypes.data)
    there(gdal.GDALMDArrayRead(array, begin, count, None, None, kind, to, to, ctypes.c_size_t(out.nbytes)))
    return out


if __name__ == "__main__":
    values = read(*sys.argv[1:])
    print(*values.shape)
    print(values.tobytes().hex())
