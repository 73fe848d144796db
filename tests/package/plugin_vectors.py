# SPDX-License-Identifier: BSL-1.0
"""The golden vectors as tests/package/plugin_host.c reads them."""

import json

# what a libhdf5 calls its types, and their size
TYPES = {
    "bool": ("bool", 1),
    **{f"{u}int{b}": (f"H5T_STD_{u.upper() or 'I'}{b}LE_g", b // 8) for u in ("", "u") for b in (8, 16, 32, 64)},
    **{f"float{b}": (f"H5T_IEEE_F{b}LE_g", b // 8) for b in (32, 64)},
}
PADDING = {"none": 0, "first_byte": 1, "start_byte": 1, "last_byte": 2, "end_byte": 2}
ERROR = 12  # of values that do not fit: their chunks are not stored as they are


def filter_line(vector):
    """None where HDF5 has no such type, or the filter no such option; tests/filter/filter_golden.cpp has more of them."""
    plain = set(vector) == {"codec", "configuration", "data_type", "decoded", "elements", "encoded"}
    if not plain or vector["elements"] == 0 or not isinstance(vector["data_type"], str) or vector["data_type"] not in TYPES:
        return None
    c, (name, size) = vector["configuration"], TYPES[vector["data_type"]]
    if vector["codec"] == "bytes":
        number, values = 45438, [int(c["endian"] == "big")] if "endian" in c else []
    elif vector["codec"] == "packbits":
        first, last = (
            next((c[k] for k in keys if c.get(k) is not None), None)
            for keys in (("first_bit", "start_bit"), ("last_bit", "end_bit"))
        )
        bits = (last if last is not None else 0 if name == "bool" else 8 * size - 1) + 1 - (first or 0)
        options = PADDING[c.get("padding_encoding") or "none"]
        if len(vector["encoded"]) == 2 * size * vector["elements"]:
            options |= ERROR  # the length does not say which chunks are packed
        number, values = 45429, [bits, options, first or 0]
    else:
        return None
    words = ("filter", number, ",".join(map(str, values)), name, size, vector["elements"], vector["decoded"], vector["encoded"])
    return "\t".join(map(str, words))


def codec_line(vector, sizes):
    """None where it asks for an option that the C ABI does not have."""
    if vector.get("truncate") or vector.get("nonzero_is_true"):
        return None
    text = vector.get("codec_json") or {"name": vector["codec"], "configuration": vector["configuration"]}
    text = text if isinstance(text, str) else json.dumps(text)
    kind = vector["data_type"] if isinstance(vector["data_type"], str) else json.dumps(vector["data_type"])
    stage, wrong = vector.get("stage", "both"), "error" in vector
    # of what has to be refused, one side is not known; its size must be right, or it would be refused for that
    size = 2 * vector["elements"] * sizes.get(kind, 0)
    decoded, encoded = (vector.get(side) or "-" for side in ("decoded", "encoded"))
    if wrong and stage == "decode":
        decoded = "00" * (size // 2) or "-"
    return "\t".join(("codec", text, kind, str(vector["elements"]), decoded, encoded, stage, str(int(wrong))))


def write_vectors(golden, path):
    """(of codecs, of filters)"""
    with open(golden, encoding="utf-8") as f:
        vectors = json.load(f)
    sizes = {}
    for v in vectors:
        if isinstance(v["data_type"], str) and v["elements"] and v.get("decoded"):
            sizes[v["data_type"]] = len(v["decoded"]) // 2 // v["elements"]
    codecs = [line for v in vectors if (line := codec_line(v, sizes))]
    filters = [line for v in vectors if (line := filter_line(v))]
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(line + "\n" for line in codecs + filters))
    return len(codecs), len(filters)
