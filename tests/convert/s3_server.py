# SPDX-License-Identifier: BSL-1.0
"""A small S3 server in memory, with only the standard library: it checks every signature and obeys conditions.
Faults make it bad or hostile. With `google`, it is the XML interface of Google Cloud Storage, with its own words for all of that.

with Server() as s:
    convert(source, "s3://bucket/x.zarr", "--endpoint", s.url)
    s.content("x.zarr")
"""

import base64
import email.utils
import hashlib
import hmac
import http.server
import itertools
import socket
import socketserver
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

KEY, SECRET, BUCKET = "zarrbits-test", "a/secret+with=signs/and-40-characters-xx", "bucket"
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


GENERATIONS = itertools.count(1_700_000_000_000_001)


def iso_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


class Stored:
    def __init__(self, body, etag=None, modified=None):
        self.body, self.modified = body, time.time() if modified is None else modified
        self.etag = etag or hashlib.md5(body).hexdigest()
        self.generation = next(GENERATIONS)


class Answer:
    """The answer. `stored` False: the server only claims that a PUT or a removal has happened."""

    def __init__(self, status=200, body=b"", headers=None):
        self.status, self.body, self.headers = status, body, headers or {}


def error(status, code, message="no"):
    return Answer(status, f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>'.encode())


class Request:
    def __init__(self, method, path, query, headers, body):
        self.method, self.query, self.headers, self.body = method, query, headers, body
        parts = urllib.parse.unquote(path).split("/", 2)
        self.bucket, self.key = parts[1], parts[2] if len(parts) > 2 else ""
        self.raw_path = path

    @property
    def kind(self):
        """put, part, complete, initiate, abort, list, get, head, delete"""
        if self.method == "GET" and not self.key:
            return "list_uploads" if "uploads" in self.query else "list"
        if self.method == "POST":
            return "initiate" if "uploads" in self.query else "complete"
        if "uploadId" in self.query:
            return "part" if self.method == "PUT" else "abort"
        return self.method.lower()


class Server:
    request_type = Request

    def __init__(self, fault=None, conditions="kept", page=1000, endless=False, google=False, tokens=(), public=False):
        # tokens: those that are accepted in place of signatures; public: requests need neither
        # conditions: kept; ignored; rejected; "only new", those of If-None-Match alone
        # fault(request, go_on) -> Answer, or a function of the connection's handler that writes what it likes
        self.fault, self.conditions, self.page = fault, conditions, page
        self.objects, self.uploads, self.upload_keys, self.upload_times, self.lock = {}, {}, {}, {}, threading.RLock()
        self.requests, self.wrong_signatures, self.connects = [], [], 0
        self.versions = {}  # (key, version): object
        self.google, self.tokens, self.public = google, set(tokens), public
        self.prefix, self.algorithm = ("x-goog-", "GOOG4") if google else ("x-amz-", "AWS4")
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

            def one(self):
                path, _, query = self.path.partition("?")
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = server.request_type(
                    self.command, path, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)), self.headers, body
                )
                with server.lock:
                    server.requests.append(request)
                if wrong := server.check(request, query):
                    server.wrong_signatures.append(wrong)
                    answer = server.refusal(request, wrong)
                else:

                    def go_on():
                        return server.answer(request)

                    answer = server.fault(request, go_on) if server.fault else go_on()
                if callable(answer):
                    self.close_connection = True
                    answer(self)
                    return
                self.send_response(answer.status)
                length = answer.headers.pop("Content-Length", len(answer.body))
                for name, value in {"Content-Length": str(length), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            def safe(self):
                try:
                    self.one()
                except (OSError, ValueError):
                    self.close_connection = True

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = safe

            def do_CONNECT(self):
                """As a proxy that requires a login."""
                server.connects += 1
                self.send_response(407)
                self.send_header("Proxy-Authenticate", 'Basic realm="x"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads, request_queue_size = True, 64

            def handle_error(self, *_):
                pass

        self.http = Threads(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def put_version(self, key, body, version):
        """An object in place of another one, which stays as a version of it."""
        self.objects[key] = Stored(body)
        self.versions[key, version] = self.objects[key]

    def content(self, prefix, unfinished=True):
        with self.lock:
            below = {k[len(prefix) + 1 :]: o.body for k, o in self.objects.items() if k.startswith(prefix + "/")}
        return {k: b for k, b in below.items() if unfinished or not k.startswith(".zarrbits-unfinished/")}

    def refusal(self, request, reason):
        by_token = request.headers.get("Authorization", "").startswith("Bearer ")
        return error(401, "InvalidSecurity") if by_token else error(403, "SignatureDoesNotMatch", reason)

    def check(self, request, query):
        """Why the signature is wrong; None where it is right."""
        given = request.headers.get("Authorization", "")
        if self.google and any(n.lower().startswith("x-amz-") for n in request.headers):
            return "words of Amazon's"
        if not given and self.public:
            return None
        if given.startswith("Bearer "):
            return None if given.removeprefix("Bearer ") in self.tokens else "another token"
        try:
            kind, _, rest = given.partition(" ")
            fields = dict(f.strip().split("=", 1) for f in rest.split(","))
            key, scope = fields["Credential"].split("/", 1)
            names = fields["SignedHeaders"].split(";")
        except (KeyError, ValueError):
            return "no authorization"
        if kind != f"{self.algorithm}-HMAC-SHA256" or key != KEY or "host" not in names or names != sorted(names):
            return "another key or kind"
        if any(n.lower() not in names for n in request.headers if n.lower().startswith(self.prefix)):
            return "a header of S3's is not signed"
        if "accept-encoding" in names:
            return "a header that servers change on the way is signed"
        if hashlib.sha256(request.body).hexdigest() != request.headers[self.prefix + "content-sha256"]:
            return "other bytes"
        right = self.signature(request.method, request.raw_path, query, names, request.headers, scope, SECRET)
        return None if right == fields["Signature"] else "another signature"

    def signature(self, method, path, query, names, headers, scope, secret):
        lines = "".join(f"{n}:{headers.get(n, '').strip()}\n" for n in names)
        sorted_query = "&".join(sorted(query.split("&"))) if query else ""
        digest = headers[self.prefix + "content-sha256"]
        text = "\n".join((method, path, sorted_query, lines, ";".join(names), digest))
        signing = self.algorithm.encode() + secret.encode()
        day, region, service, _ = scope.split("/")
        for part in (day, region, "storage", "goog4_request") if self.google else (day, region, service, "aws4_request"):
            signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
        kind, date = f"{self.algorithm}-HMAC-SHA256", headers[self.prefix + "date"]
        signed = "\n".join((kind, date, scope, hashlib.sha256(text.encode()).hexdigest()))
        return hmac.new(signing, signed.encode(), hashlib.sha256).hexdigest()

    def condition_failed(self, request):
        if self.conditions == "ignored":
            return None
        there = self.objects.get(request.key)
        if self.google:  # which has no other conditions of writes
            generation = request.headers.get("x-goog-if-generation-match")
            current = str(there.generation) if there else "0"
            return error(412, "PreconditionFailed") if generation not in (None, current) else None
        none, match = request.headers.get("If-None-Match"), request.headers.get("If-Match")
        if self.conditions == "only new":
            match = None
        if (none or match) and self.conditions == "rejected":
            return error(501, "NotImplemented", "A header you provided implies functionality that is not implemented")
        if (none == "*" and there) or (match and (not there or there.etag != match.strip('"'))):
            return error(412, "PreconditionFailed")
        return None

    def answer(self, r):
        with self.lock:
            if r.bucket != BUCKET:
                return error(404, "NoSuchBucket")
            return getattr(self, "do_" + r.kind)(r)

    def copied(self, r):
        """The bytes that a copy takes from another object, or an error."""
        bucket, _, key = urllib.parse.unquote(r.headers[self.prefix + "copy-source"]).removeprefix("/").partition("/")
        if bucket != BUCKET or key not in self.objects:
            return error(404, "NoSuchKey")
        body = self.objects[key].body
        if "x-amz-copy-source-range" in r.headers:
            first, last = (int(n) for n in r.headers["x-amz-copy-source-range"].removeprefix("bytes=").split("-"))
            if last >= len(body):
                return error(400, "InvalidArgument")
            body = body[first : last + 1]
        return body

    @staticmethod
    def copy_xml(name, body):
        etag = hashlib.md5(body).hexdigest()
        return Answer(body=f'<{name} xmlns="{NAMESPACE}"><ETag>"{etag}"</ETag></{name}>'.encode())

    def do_put(self, r):
        if failed := self.condition_failed(r):
            return failed
        if self.prefix + "copy-source" in r.headers:
            body = self.copied(r)
            if isinstance(body, Answer):
                return body
            self.objects[r.key] = Stored(body)
            return self.copy_xml("CopyObjectResult", body)
        self.objects[r.key] = Stored(r.body)
        return Answer(headers={"ETag": f'"{self.objects[r.key].etag}"', **self.generation(r.key)})

    def generation(self, key):
        return {"x-goog-generation": str(self.objects[key].generation)} if self.google else {}

    def do_get(self, r):
        version = r.query.get("versionId")
        there = self.versions.get((r.key, version)) if version else self.objects.get(r.key)
        if not there:
            return error(404, "NoSuchVersion" if version else "NoSuchKey")
        match = r.headers.get("If-Match")
        if match and match.strip('"') != there.etag:
            return error(412, "PreconditionFailed")
        headers = {"ETag": f'"{there.etag}"', "Last-Modified": email.utils.formatdate(there.modified, usegmt=True)}
        headers |= self.generation(r.key)
        if "Range" in r.headers and r.method == "GET":
            first, last = (int(n) for n in r.headers["Range"].removeprefix("bytes=").split("-"))
            size = len(there.body)
            if first >= size:
                return Answer(416, b"", headers | {"Content-Range": f"bytes */{size}"})
            headers["Content-Range"] = f"bytes {first}-{min(last, size - 1)}/{size}"
            return Answer(206, there.body[first : last + 1], headers)
        return Answer(200, there.body, headers)

    do_head = do_get

    def do_delete(self, r):
        self.objects.pop(r.key, None)
        return Answer(204)

    def do_initiate(self, r):
        name = base64.b32encode(hashlib.sha256(r.key.encode()).digest()).decode()[:20] + str(len(self.uploads))
        self.uploads[name], self.upload_keys[name], self.upload_times[name] = {}, r.key, time.time()
        return Answer(
            body=f'<InitiateMultipartUploadResult xmlns="{NAMESPACE}"><UploadId>{name}</UploadId></InitiateMultipartUploadResult>'.encode()  # noqa: E501
        )

    def do_part(self, r):
        parts = self.uploads.get(r.query["uploadId"])
        if parts is None:
            return error(404, "NoSuchUpload")
        if self.prefix + "copy-source" in r.headers:
            if self.google:
                return error(501, "NotImplemented")
            body = self.copied(r)
            if isinstance(body, Answer):
                return body
            parts[int(r.query["partNumber"])] = body
            return self.copy_xml("CopyPartResult", body)
        parts[int(r.query["partNumber"])] = r.body
        return Answer(headers={"ETag": f'"{hashlib.md5(r.body).hexdigest()}"'})

    def do_complete(self, r):
        parts = self.uploads.pop(r.query["uploadId"], None)
        if parts is None:
            return error(404, "NoSuchUpload")
        bodies = [parts[n] for n in sorted(parts)]
        etag = hashlib.md5(b"".join(hashlib.md5(b).digest() for b in bodies)).hexdigest() + f"-{len(bodies)}"
        self.objects[r.key] = Stored(b"".join(bodies), etag)
        # a long joining begins its answer early
        return Answer(
            body=f'<?xml version="1.0" encoding="UTF-8"?>\n   \n<x:CompleteMultipartUploadResult xmlns:x="{NAMESPACE}"><x:ETag>&quot;{etag}&quot;</x:ETag>'  # noqa: E501
            "</x:CompleteMultipartUploadResult>".encode()
        )

    def do_list_uploads(self, r):
        """Two in a page."""
        of = sorted((self.upload_keys[u], u) for u in self.uploads if self.upload_keys[u].startswith(r.query.get("prefix", "")))
        after = (r.query.get("key-marker", ""), r.query.get("upload-id-marker", ""))
        page = [u for u in of if u > after][:2]
        rows = "".join(
            f"<Upload><Key>{urllib.parse.quote(key, safe='/')}</Key><UploadId>{name}</UploadId><Initiated>{iso_time(self.upload_times.get(name, 0))}</Initiated></Upload>"  # noqa: E501
            for key, name in page
        )
        more = bool(page) and page[-1] != of[-1]
        key, name = page[-1] if more else ("", "")
        return Answer(
            body=f'<ListMultipartUploadsResult xmlns="{NAMESPACE}"><EncodingType>url</EncodingType>{rows}'
            f"<IsTruncated>{str(more).lower()}</IsTruncated><NextKeyMarker>{urllib.parse.quote(key, safe='/')}</NextKeyMarker>"
            f"<NextUploadIdMarker>{name}</NextUploadIdMarker></ListMultipartUploadsResult>".encode()
        )

    def do_abort(self, r):
        self.uploads.pop(r.query["uploadId"], None)
        return Answer(204)

    def listed(self, r):
        """[(key, None for a folder, or the object)] of one page, and the token of the next"""
        prefix, delimiter = r.query.get("prefix", ""), r.query.get("delimiter", "")
        found = {}
        for key in sorted(self.objects):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                found[prefix + rest.split(delimiter, 1)[0] + delimiter] = None
            else:
                found[key] = self.objects[key]
        keys = [k for k in sorted(found) if k > base64.b64decode(r.query.get("continuation-token", "")).decode()]
        n = min(self.page, int(r.query.get("max-keys", 1000)))
        return [(k, found[k]) for k in keys[:n]], base64.b64encode(keys[n - 1].encode()).decode() if len(keys) > n else None

    @staticmethod
    def list_xml(entries, token=None):
        def encode(k):
            return urllib.parse.quote(k, safe="/")

        rows = "".join(
            f"<CommonPrefixes><Prefix>{encode(k)}</Prefix></CommonPrefixes>"
            if o is None
            else f"<Contents><Key>{encode(k)}</Key><LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(o.modified))}.000Z</LastModified>"  # noqa: E501
            f"<ETag>&quot;{o.etag}&quot;</ETag><Size>{len(o.body)}</Size></Contents>"
            for k, o in entries
        )
        more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else ""
        return (
            f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="{NAMESPACE}"><EncodingType>url</EncodingType>'
            f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>{more}{rows}</ListBucketResult>"
        ).encode()

    def do_list(self, r):
        return Answer(body=self.list_xml(*self.listed(r)))


def reset(handler):
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.connection.close()
