# SPDX-License-Identifier: BSL-1.0
"""A small server of Azure Blob Storage in memory, beside that of S3: it checks signatures by the account's key, shared access
signatures and tokens, and has Azure's words for objects, blocks, copies, lists and errors. The account is the first part of the
path, as in Azurite.

with AzureServer() as s:
    convert(source, "az://bucket/x.zarr", "--endpoint", s.url)
    s.content("x.zarr")
"""

import base64
import email.utils
import hashlib
import hmac
import itertools
import time
import urllib.parse
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from s3_server import BUCKET, Answer, Request, Server, Stored

ACCOUNT = "devstoreaccount1"
KEY = base64.b64encode(b"sixty-four bytes, as each of Azure's accounts has them for keys.").decode()
NUMBERS = itertools.count(0x8DD0000000000000)


def error(status, code, message="no"):
    """As Azure sends it: with a mark of UTF-8, and lines about the request."""
    text = f'\ufeff<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>{escape(message)}\nRequestId:1\nTime:2</Message></Error>'  # noqa: E501
    return Answer(status, text.encode(), {"x-ms-error-code": code, "Content-Type": "application/xml"})


def md5(body):
    return base64.b64encode(hashlib.md5(body).digest()).decode()


class AzureRequest(Request):
    def __init__(self, method, path, query, headers, body):
        super().__init__(method, path, query, headers, body)
        parts = urllib.parse.unquote(path).split("/", 3)
        self.account, self.bucket, self.key = parts[1], parts[2], parts[3] if len(parts) > 3 else ""

    @property
    def kind(self):
        """put, block, blocklist, copy, list, get, head, delete"""
        if self.query.get("comp") == "list":
            return "list"
        if self.method == "PUT":
            return "copy" if "x-ms-copy-source" in self.headers else self.query.get("comp", "put")
        return self.method.lower()


class AzureServer(Server):
    """signatures: the shared access signatures that are accepted. pending: how often a copy is looked at before it is done.
    folders: keys of folders that a hierarchical namespace lists as blobs."""

    request_type = AzureRequest

    def __init__(self, *arguments, signatures=(), pending=0, folders=(), **options):
        super().__init__(*arguments, **options)
        self.signatures, self.pending, self.folders = list(signatures), pending, list(folders)
        self.blocks, self.copies = {}, {}
        self.url += f"/{ACCOUNT}"

    def refusal(self, request, reason):
        if request.headers.get("Authorization", "").startswith("Bearer "):
            return error(401, "InvalidAuthenticationInfo", reason)
        if "Authorization" not in request.headers and "sig" not in request.query:
            return error(404, "ResourceNotFound", "The specified resource does not exist.")
        return error(403, "AuthenticationFailed", reason)

    def check(self, request, query):
        given = request.headers.get("Authorization", "")
        if any(n.lower().startswith(("x-amz-", "x-goog-")) for n in request.headers):
            return "words of another cloud"
        if request.account != ACCOUNT or not request.headers.get("x-ms-version"):
            return "no version, or another account"
        if not given and self.public:
            return None
        if given.startswith("Bearer "):
            return None if given.removeprefix("Bearer ") in self.tokens else "another token"
        if not given:
            return None if any(query == s or query.endswith("&" + s) for s in self.signatures) else "another signature"
        date = email.utils.parsedate_to_datetime(request.headers["x-ms-date"]).timestamp()
        if abs(date - time.time()) > 900:
            return "another time"
        return None if given == f"SharedKey {ACCOUNT}:{self.signature_of(request, query)}" else "another signature"

    def signature_of(self, r, query):
        """https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key"""
        length = r.headers.get("Content-Length", "")
        names = "Content-MD5 Content-Type Date If-Modified-Since If-Match If-None-Match If-Unmodified-Since Range".split()
        lines = [r.method, r.headers.get("Content-Encoding", ""), r.headers.get("Content-Language", "")]
        lines += ["" if length == "0" else length, *(r.headers.get(n, "") for n in names)]
        lines += sorted(f"{n.lower()}:{v.strip()}" for n, v in r.headers.items() if n.lower().startswith("x-ms-"))
        lines += [f"/{ACCOUNT}{r.raw_path}"]
        lines += sorted(f"{n.lower()}:{v}" for n, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
        digest = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256)
        return base64.b64encode(digest.digest()).decode()

    def answer(self, r):
        with self.lock:
            if r.bucket != BUCKET:
                return error(404, "ContainerNotFound", "The specified container does not exist.")
            if r.method == "PUT" and r.headers.get("Content-MD5", md5(r.body)) != md5(r.body):
                return error(400, "Md5Mismatch")
            return getattr(self, "do_" + r.kind)(r)

    def condition_failed(self, r):
        if self.conditions == "ignored":
            return None
        there, none, match = self.objects.get(r.key), r.headers.get("If-None-Match"), r.headers.get("If-Match")
        if none == "*" and there:
            return error(409, "BlobAlreadyExists")
        if match and (not there or there.etag != match.strip('"')):
            return error(412, "ConditionNotMet")
        return None

    def store(self, key, body):
        self.objects[key] = Stored(body, f"0x{next(NUMBERS):X}")
        return {"ETag": f'"{self.objects[key].etag}"'}

    def do_put(self, r):
        if r.headers.get("x-ms-blob-type") != "BlockBlob":
            return error(400, "MissingRequiredHeader")
        return self.condition_failed(r) or Answer(201, b"", self.store(r.key, r.body) | {"Content-MD5": md5(r.body)})

    def do_block(self, r):
        blocks = self.blocks.setdefault(r.key, {})
        name = r.query["blockid"]
        if any(len(base64.b64decode(n)) != len(base64.b64decode(name)) for n in blocks):
            return error(400, "InvalidBlobOrBlock")
        blocks[name] = r.body
        return Answer(201, b"", {"Content-MD5": md5(r.body)} if "Content-MD5" in r.headers else {})

    def do_blocklist(self, r):
        blocks = self.blocks.get(r.key, {})
        names = [e.text for e in ElementTree.fromstring(r.body)]
        if any(n not in blocks for n in names):
            return error(400, "InvalidBlockList")
        return Answer(201, b"", self.store(r.key, b"".join(blocks[n] for n in names)))

    def do_copy(self, r):
        source, _, query = r.headers["x-ms-copy-source"].partition("?")
        key = urllib.parse.unquote(source.removeprefix(f"{self.url}/{BUCKET}/"))
        if "Authorization" not in r.headers and query not in self.signatures:
            return error(401, "CannotVerifyCopySource")
        if key not in self.objects:
            return error(404, "CannotVerifyCopySource")
        self.copies[r.key] = self.pending
        return Answer(202, b"", self.store(r.key, self.objects[key].body) | {"x-ms-copy-status": "pending"})

    def do_get(self, r):
        there = self.objects.get(r.key)
        if not there:
            return error(404, "BlobNotFound", "The specified blob does not exist.")
        match = r.headers.get("If-Match")
        if match and match.strip('"') != there.etag:
            return error(412, "ConditionNotMet")
        headers = {"ETag": f'"{there.etag}"', "Last-Modified": email.utils.formatdate(there.modified, usegmt=True)}
        if r.key in self.copies:
            self.copies[r.key] -= 1
            headers["x-ms-copy-status"] = "pending" if self.copies[r.key] >= 0 else "success"
        if "Range" in r.headers and r.method == "GET":
            first, last = (int(n) for n in r.headers["Range"].removeprefix("bytes=").split("-"))
            size = len(there.body)
            if first >= size:
                answer = error(416, "InvalidRange")
                answer.headers["Content-Range"] = f"bytes */{size}"
                return answer
            headers["Content-Range"] = f"bytes {first}-{min(last, size - 1)}/{size}"
            return Answer(206, there.body[first : last + 1], headers)
        return Answer(200, there.body, headers)

    do_head = do_get

    def do_delete(self, r):
        return Answer(202) if self.objects.pop(r.key, None) else error(404, "BlobNotFound")

    def listed(self, r):
        r.query["continuation-token"] = r.query.get("marker", "")
        r.query["max-keys"] = r.query.get("maxresults", "5000")
        return super().listed(r)

    def list_xml(self, entries, token=None):
        rows = "".join(
            f"<BlobPrefix><Name>{escape(k)}</Name></BlobPrefix>"
            if o is None
            else f"<Blob><Name>{escape(k)}</Name><Properties><Last-Modified>{email.utils.formatdate(o.modified, usegmt=True)}"
            f"</Last-Modified><Etag>{o.etag}</Etag><Content-Length>{len(o.body)}</Content-Length></Properties></Blob>"
            for k, o in entries
        )
        for key in [] if token else self.folders:
            rows += (
                f"<Blob><Name>{escape(key)}</Name><Properties><Content-Length>0</Content-Length></Properties>"
                "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
            )
        more = f"<NextMarker>{escape(token)}</NextMarker>" if token else "<NextMarker />"
        return (
            f'\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{BUCKET}"><Blobs>{rows}</Blobs>'
            f"{more}</EnumerationResults>"
        ).encode()

    def do_list(self, r):
        if r.query.get("restype") != "container" or self.condition_failed(r):
            return error(400, "InvalidQueryParameterValue")
        return Answer(body=self.list_xml(*self.listed(r)))
