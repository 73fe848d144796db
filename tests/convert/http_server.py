# SPDX-License-Identifier: BSL-1.0
"""A small HTTP and HTTPS server of files in memory, with only the standard library: ranges, ETags, conditions, a delay, a rate.
It counts requests and bytes. Faults make it bad or hostile.

with Server(delay=0.02) as s:
    convert(s.put("x.nc", pathlib.Path("x.nc").read_bytes()), "out.zarr")
    print(len(s.requests), s.sent)
"""

import contextlib
import email.utils
import hashlib
import http.server
import pathlib
import re
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import traceback
import urllib.parse

MODIFIED = 1_700_000_000  # of files that say nothing else


class File:
    """etag: as it is sent, with its quotes; "": none. modified: seconds since 1970; None: no Last-Modified."""

    def __init__(self, body, etag=None, modified=MODIFIED):
        self.body, self.modified = body, modified
        self.etag = f'"{hashlib.md5(body).hexdigest()}"' if etag is None else etag

    def headers(self):
        headers = {"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        if self.etag:
            headers["ETag"] = self.etag
        if self.modified is not None:
            headers["Last-Modified"] = email.utils.formatdate(self.modified, usegmt=True)
        return headers


class Answer:
    """Content-Length is that of the body, unless `headers` has another; None there: no such header, and the connection ends."""

    def __init__(self, status=200, body=b"", headers=None):
        self.status, self.body, self.headers = status, body, headers or {}


def redirect(to, status=302):
    return Answer(status, b"moved", {"Location": to})


class Request:
    """method, path (decoded), query (as it came), headers; `range`: (first, last) as asked for, or None.
    Later also status, and `sent`: bytes of the body."""

    def __init__(self, method, target, headers):
        path, _, self.query = target.partition("?")
        self.method, self.target, self.headers, self.at = method, target, headers, time.monotonic()
        self.name = urllib.parse.unquote(path).removeprefix("/")
        self.status, self.sent = 0, 0
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("Range", ""))
        self.range = (int(found[1]), int(found[2]) if found[2] else None) if found else None


class Server:
    """delay: seconds before each answer. rate: bytes a second, of all connections together. ranges False: they are ignored.
    certificate: (file of the certificate, file of its key), for HTTPS. fault(request, go_on) returns an Answer, such as that of
    go_on(), or a function of the connection's handler that writes what it likes."""

    def __init__(self, fault=None, delay=0.0, rate=None, ranges=True, certificate=None, host=None):
        self.fault, self.delay, self.rate, self.ranges = fault, delay, rate, ranges
        self.files, self.lock = {}, threading.RLock()
        self.connections, self.at_once, self.most_at_once = 0, 0, 0
        self.requests, self.open, self.free_at, self.mistakes = [], set(), 0.0, []
        context = None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

            def one(self):
                request = Request(self.command, self.path, self.headers)
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with server.lock:
                    server.requests.append(request)
                    server.at_once += 1
                    server.most_at_once = max(server.most_at_once, server.at_once)
                try:
                    self.answer(request)
                finally:
                    with server.lock:
                        server.at_once -= 1

            def answer(self, request):
                if server.delay:
                    time.sleep(server.delay)

                def go_on():
                    return server.answer(request)

                answer = server.fault(request, go_on) if server.fault else go_on()
                if callable(answer):
                    self.close_connection = True
                    answer(self)
                    return
                request.status = answer.status
                self.send_response(answer.status)
                headers = {"Content-Length": str(len(answer.body)), **answer.headers}
                if headers["Content-Length"] is None:
                    del headers["Content-Length"]
                    headers["Connection"] = "close"
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.send_body(request, answer.body)

            def send_body(self, request, body):
                body, piece = memoryview(body), 1 << 16
                for at in range(0, len(body), piece):
                    some = body[at : at + piece]
                    server.wait_for_turn(len(some))
                    self.connection.sendall(some)
                    request.sent += len(some)

            def safe(self):
                try:
                    self.one()
                except (OSError, ValueError):
                    self.close_connection = True
                except Exception:  # noqa: BLE001  (a mistake of a test, which would look like a connection that breaks)
                    server.mistakes.append(traceback.format_exc())
                    self.close_connection = True

            do_GET = do_HEAD = do_PUT = do_POST = safe

            def log_message(self, *_):
                pass

        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads, request_queue_size = True, 128

            def finish_request(self, request, client_address):
                connection = None
                try:
                    # here, and not where it is accepted: a client that hangs in its greeting stops no other
                    connection = context.wrap_socket(request, server_side=True) if context else request
                    with server.lock:
                        server.connections += 1
                        server.open.add(connection)
                    Handler(connection, client_address, self)
                except OSError:
                    pass
                finally:
                    with server.lock:
                        server.open.discard(connection)
                    if connection is not None and connection is not request:
                        self.shutdown_request(connection)

            def handle_error(self, *_):
                pass

        self.http = Threads(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://{host or '127.0.0.1'}:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, error, *_):
        self.close()
        if error is None:
            assert not self.mistakes, self.mistakes[0]

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def stop_at_once(self):
        """As a program that is killed: its connections end, and nobody listens."""
        self.close()
        with self.lock:
            for connection in self.open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def put(self, name, body, **how):
        """The URL of a file that is there from now on."""
        self.files[name] = File(body, **how)
        return f"{self.url}/{urllib.parse.quote(name)}"

    @property
    def sent(self):
        """Bytes of the bodies of all answers."""
        return sum(r.sent for r in self.requests)

    def of(self, name):
        return [r for r in self.requests if r.name == name]

    def wait_for_turn(self, size):
        if not self.rate:
            return
        with self.lock:
            mine = self.free_at = max(self.free_at, time.monotonic()) + size / self.rate
        time.sleep(max(0.0, mine - time.monotonic()))

    def answer(self, r):
        there = self.files.get(r.name)
        if r.method not in ("GET", "HEAD"):
            return Answer(405, b"only GET and HEAD", {"Allow": "GET, HEAD"})
        if there is None:
            return Answer(404, b"<html>Not Found</html>")
        headers, size = there.headers(), len(there.body)
        match = r.headers.get("If-Match")
        if match is not None and match != "*" and (there.etag not in match.split(", ") or there.etag.startswith("W/")):
            return Answer(412, b"changed", headers)
        since = r.headers.get("If-Unmodified-Since")
        if since and there.modified is not None and there.modified > email.utils.parsedate_to_datetime(since).timestamp():
            return Answer(412, b"changed", headers)
        if not self.ranges:
            del headers["Accept-Ranges"]
            return Answer(200, there.body, headers)
        if r.range is None or r.headers.get("If-Range", there.etag) not in (there.etag, headers.get("Last-Modified")):
            return Answer(200, there.body, headers)
        first, last = r.range[0], size - 1 if r.range[1] is None else min(r.range[1], size - 1)
        if first >= size:
            return Answer(416, b"", {**headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        return Answer(206, memoryview(there.body)[first : last + 1], headers)


def reset(handler):
    """Ends a connection as a machine does that knows nothing of it."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.connection.close()


def certificate(folder, *names, name="server"):
    """Makes a certificate that signs itself: its file and that of its key. names: such as "DNS:localhost", "IP:127.0.0.1".
    None where there is no openssl."""
    files = [str(pathlib.Path(folder, f"{name}-{what}.pem")) for what in ("certificate", "key")]
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj".split()
    words += [f"/CN={name}", "-addext", "subjectAltName=" + ",".join(names), "-out", files[0], "-keyout", files[1]]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except FileNotFoundError:
        return None
    return tuple(files)
