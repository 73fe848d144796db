# SPDX-License-Identifier: BSL-1.0
"""netCDF-3 files byte by byte, so that each number in them can be wrong."""

import struct

import numpy as np

BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE, UBYTE, USHORT, UINT, INT64, UINT64 = range(1, 12)
DTYPES = {1: ">i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: ">u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}


class Header:
    """Writes the bytes of a file, and lets each number be wrong."""

    def __init__(self, version=1, records=0):
        self.version, self.records = version, records
        self.dimensions, self.attributes, self.variables = [], [], []

    def number(self, n):
        return struct.pack(">Q" if self.version == 5 else ">I", n)

    def text(self, name):
        raw = name if isinstance(name, bytes) else name.encode()
        return self.number(len(raw)) + raw + b"\0" * (-len(raw) % 4)

    def listed(self, tag, parts):
        return struct.pack(">I", tag if parts else 0) + self.number(len(parts)) + b"".join(parts)

    def attribute_list(self, attributes):
        parts = []
        for name, kind, values in attributes:
            raw = values if isinstance(values, bytes) else np.asarray(values, DTYPES[kind]).tobytes()
            n = len(raw) // np.dtype(DTYPES[kind]).itemsize
            parts.append(self.text(name) + struct.pack(">I", kind) + self.number(n) + raw + b"\0" * (-len(raw) % 4))
        return self.listed(12, parts)

    def dimension(self, name, length):
        self.dimensions.append((name, length))
        return len(self.dimensions) - 1

    def variable(self, name, kind, dimensions=(), values=b"", attributes=(), begin=None):
        """values: of a fixed variable all bytes, of a record variable those of each record."""
        if isinstance(values, np.ndarray):
            is_record = len(dimensions) > 0 and self.dimensions[dimensions[0]][1] == 0
            raw = np.asarray(values, DTYPES[kind])
            values = [np.asarray(r, raw.dtype).tobytes() for r in raw] if is_record else raw.tobytes()
        self.variables.append((name, kind, dimensions, values, attributes, begin))

    def bytes(self):
        begins = [0] * len(self.variables)
        head = self.head(begins)
        position = len(head)
        fixed = [i for i, v in enumerate(self.variables) if not isinstance(v[3], list)]
        records = [i for i, v in enumerate(self.variables) if isinstance(v[3], list)]
        for i in fixed:
            begins[i] = position
            position += len(self.variables[i][3]) + -len(self.variables[i][3]) % 4
        for i in records:
            begins[i] = position
            _, kind, dimensions, *_ = self.variables[i]
            size = int(np.prod([self.dimensions[d][1] for d in dimensions[1:]])) * np.dtype(DTYPES[kind]).itemsize
            position += size + -size % 4
        out = bytearray(self.head([v[5] if v[5] is not None else b for v, b in zip(self.variables, begins)]))
        for i in fixed:
            raw = self.variables[i][3]
            out += raw + b"\0" * (-len(raw) % 4)
        for record in range(max((len(self.variables[i][3]) for i in records), default=0)):
            for i in records:
                raw = self.variables[i][3][record]
                out += raw + (b"\0" * (-len(raw) % 4) if len(records) > 1 else b"")
        return bytes(out)

    def head(self, begins):
        dims = [self.text(name) + self.number(length) for name, length in self.dimensions]
        variables = []
        for (name, kind, dimensions, values, attributes, _), begin in zip(self.variables, begins):
            size = len(values[0]) if isinstance(values, list) and values else len(values)
            part = self.text(name) + self.number(len(dimensions)) + b"".join(map(self.number, dimensions))
            part += self.attribute_list(attributes) + struct.pack(">I", kind)
            part += self.number(min(size + -size % 4, 2**32 - 1)) + struct.pack(">I" if self.version == 1 else ">Q", begin)
            variables.append(part)
        records = self.number(self.records if self.records >= 0 else 2 ** (64 if self.version == 5 else 32) - 1)
        head = b"CDF" + bytes([self.version]) + records + self.listed(10, dims)
        return head + self.attribute_list(self.attributes) + self.listed(11, variables)
