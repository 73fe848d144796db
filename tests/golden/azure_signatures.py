#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes azure_signatures.json: what the azure-storage-blob package signs, and the signature, of requests as zarrbits has them.
Takes azure-storage-blob from PyPI; tests/convert/test_azure_request.cpp reads the file.

python3 tests/golden/azure_signatures.py
"""

import base64
import json
import pathlib
import types
import urllib.parse

from azure.core.rest import HttpRequest
from azure.storage.blob._shared import authentication

KEY = base64.b64encode(bytes(range(64))).decode()
ACCOUNT = "account"
COMMON = {"x-ms-date": "Fri, 27 Nov 2026 20:00:00 GMT", "x-ms-version": "2020-10-02"}
PUT = {"content-type": "application/octet-stream", "content-md5": "XrY7u+Ae7tCTyyK7j1rNww=="}
BLOB = {"x-ms-blob-type": "BlockBlob"}


def cases():
    """(name, method, path, query, headers, bytes in the body). The package sends no Range, but x-ms-range."""
    yield "get", "GET", "/container/key", {}, {}, 0
    yield "get if unchanged", "GET", "/container/key", {}, {"if-match": '"0x8DD"'}, 0
    yield "head", "HEAD", "/container/a/b/zarr.json", {}, {}, 0
    yield "delete", "DELETE", "/container/a/c/0/0", {}, {}, 0
    yield "put", "PUT", "/container/a/c/0", {}, PUT | BLOB, 11
    yield "put nothing", "PUT", "/container/empty", {}, PUT | BLOB, 0
    yield "put if absent", "PUT", "/container/begun", {}, PUT | BLOB | {"if-none-match": "*"}, 5
    yield "put if unchanged", "PUT", "/container/zarr.json", {}, PUT | BLOB | {"if-match": '"0x8DD"'}, 123456
    yield "put a block", "PUT", "/container/key", {"comp": "block", "blockid": "MDAw+/=="}, PUT, 1 << 24
    yield "put a list of blocks", "PUT", "/container/key", {"comp": "blocklist"}, PUT, 200
    source = {"x-ms-copy-source": "https://account.blob.core.windows.net/container/from%20here"}
    yield "copy", "PUT", "/container/to", {}, source | {"content-type": "application/octet-stream"}, 0
    lists = {"restype": "container", "comp": "list", "include": "metadata", "maxresults": "1000"}
    yield "list", "GET", "/container", lists | {"prefix": "out.zarr/"}, {}, 0
    yield (
        "list folders",
        "GET",
        "/container/",
        lists | {"prefix": "a b/ü+&=~*'()%", "delimiter": "/", "marker": "2!96!x/=="},
        {},
        0,
    )
    yield "list all", "GET", "/container/", lists | {"prefix": ""}, {}, 0
    for key in ("w é+&=~*'()% y", "a:b;c,d$e@f", "ä/ö/ü", "%41", "a//b", "x?y#z"):
        yield f"key {key}", "GET", "/container/" + urllib.parse.quote(key, safe="/~"), {}, {}, 0
    yield "emulator", "GET", "/account/container/key", {}, {}, 0


def signed(method, path, query, headers, size):
    url = "https://account.blob.core.windows.net" + path
    if query:
        url += "?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
    sent = {k: v for k, v in headers.items()} | COMMON | ({"content-length": str(size)} if method == "PUT" else {})
    request = HttpRequest(method, url, headers=sent)
    request.query = dict(p.partition("=")[::2] for p in urllib.parse.urlsplit(url).query.split("&") if p)
    pipeline = types.SimpleNamespace(http_request=request, context=types.SimpleNamespace(transport=None))
    texts = []
    policy = authentication.SharedKeyCredentialPolicy(ACCOUNT, KEY)
    add = policy._add_authorization_header
    policy._add_authorization_header = lambda r, text: (texts.append(text), add(r, text))
    policy.on_request(pipeline)
    return texts[0], request.headers["Authorization"]


def main():
    done = []
    for name, method, path, query, headers, size in cases():
        text, authorization = signed(method, path, query, headers, size)
        done.append(
            {
                "name": name,
                "method": method,
                "path": path,
                "query": query,
                "headers": headers | COMMON,
                "body_bytes": size,
                "signed": text,
                "authorization": authorization,
            }
        )
    document = {"account": ACCOUNT, "key": KEY, "cases": done}
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
