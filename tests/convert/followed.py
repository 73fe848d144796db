# SPDX-License-Identifier: BSL-1.0
"""References in JSON, followed by hand; and what a store in a folder has, to compare with."""

import base64
import json
import os


def followed(name):
    """Each key, its bytes, and the file that they are in, if it is another one."""
    with open(name, encoding="utf-8") as f:
        document = json.load(f)
    assert document["version"] == 1
    for key, value in document["refs"].items():
        if isinstance(value, str):
            yield key, base64.b64decode(value[7:]) if value.startswith("base64:") else value.encode(), None
        else:
            url, offset, size = value
            assert url.startswith("file:///")
            with open(url[7:], "rb") as f:
                f.seek(offset)
                yield key, f.read(size), os.path.basename(url)


def files(store):
    """The path of each object of a store in a folder, by its key."""
    return {os.path.relpath(os.path.join(at, n), store): os.path.join(at, n) for at, _, names in os.walk(store) for n in names}
