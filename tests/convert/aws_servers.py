# SPDX-License-Identifier: BSL-1.0
"""An S3 server with several keys, temporary ones among them, and small servers of what gives keys: STS, a container's, an
instance's. All check what they are asked for.

keys = Keys("role")
with SignedServer(keys) as s3, Sts([keys], base) as sts:
    convert(..., AWS_ENDPOINT_URL_STS=sts.url)
"""

import dataclasses
import hashlib
import hmac
import http.server
import json
import socketserver
import threading
import time
import urllib.parse

import s3_server


def in_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


@dataclasses.dataclass
class Keys:
    """Keys of a name, which say in what they end."""

    name: str
    ends_in: float = 3600
    temporary: bool = True

    def __post_init__(self):
        self.access, self.secret = f"ASIA{self.name}", f"{self.name}/secret+{'x' * 20}="
        self.token = f"{self.name}/token+{'y' * 60}==" if self.temporary else ""
        self.expiration = in_time(self.ends_in)

    def json(self, token="Token", **more):
        values = {"AccessKeyId": self.access, "SecretAccessKey": self.secret, "Expiration": self.expiration}
        return json.dumps(values | ({token: self.token} if self.token else {}) | more)

    @property
    def secrets(self):
        return [self.secret, *([self.token] if self.token else [])]

    @property
    def variables(self):
        return {"AWS_ACCESS_KEY_ID": self.access, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_SESSION_TOKEN": self.token}

    @property
    def lines(self):
        """In a profile."""
        token = f"aws_session_token = {self.token}\n" if self.token else ""
        return f"aws_access_key_id = {self.access}\naws_secret_access_key = {self.secret}\n{token}"


def used_keys(headers):
    """The access key of a request; None where it is not signed."""
    given = headers.get("Authorization")
    return given.partition("Credential=")[2].partition("/")[0] if given else None


def region_of(headers):
    return headers["Authorization"].partition("Credential=")[2].split("/")[2]


def wrong_signature(method, path, query, headers, body, keys, service):
    """Why the signature is not that of these keys; None where it is."""
    kind, _, rest = headers.get("Authorization", "").partition(" ")
    fields = dict(f.strip().split("=", 1) for f in rest.split(","))
    scope, names = fields["Credential"].split("/", 1)[1], fields["SignedHeaders"].split(";")
    day, region, named, _ = scope.split("/")
    if kind != "AWS4-HMAC-SHA256" or named != service or "host" not in names or names != sorted(names):
        return "another kind, service or order"
    if any(n.lower() not in names for n in headers if n.lower().startswith("x-amz-")):
        return "a header of Amazon's is not signed"
    if headers.get("X-Amz-Security-Token", "") != keys.token:
        return "another session token"
    digest = hashlib.sha256(body).hexdigest()
    if headers.get("X-Amz-Content-Sha256", digest) != digest:
        return "other bytes"
    lines = "".join(f"{n}:{headers.get(n, '').strip()}\n" for n in names)
    canonical = "\n".join((method, path, "&".join(sorted(query.split("&"))), lines, ";".join(names), digest))
    key = b"AWS4" + keys.secret.encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = "\n".join((kind, headers["X-Amz-Date"], scope, hashlib.sha256(canonical.encode()).hexdigest()))
    return None if hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"] else "another signature"


class SignedServer(s3_server.Server):
    """Knows these keys; without any, only anonymous requests are allowed. `used`: access keys in the order of their first use."""

    def __init__(self, *keys, fault=None):
        super().__init__(fault)
        self.keys, self.used = {k.access: k for k in keys}, []

    def check(self, request, query):
        access = used_keys(request.headers)
        if access not in self.used:
            self.used.append(access)
        if access is None:
            return "not signed" if self.keys else None
        if access not in self.keys:
            return f"unknown key {access}"
        return wrong_signature(request.method, request.raw_path, query, request.headers, request.body, self.keys[access], "s3")


class Service:
    """answer(request) -> (status, body). `asked` has the requests: method, path, headers, body. headers: of all responses."""

    def __init__(self, answer, headers=None):
        service, self.asked = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Asked(self.command, self.path, self.headers, body)
                service.asked.append(request)
                status, text = answer(request)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text.encode())), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_PUT = do_POST = one

            def log_message(self, *_):
                pass

        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

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


@dataclasses.dataclass
class Asked:
    method: str
    path: str
    headers: dict
    body: bytes


class Turns:
    """The first, the second, ... and then always the last of several keys; or what a function says. Threads may ask at once."""

    def __init__(self, keys):
        self.keys, self.given, self.lock = keys, 0, threading.Lock()

    def __call__(self):
        with self.lock:
            self.given += 1
            return self.keys() if callable(self.keys) else self.keys[min(self.given, len(self.keys)) - 1]


class Sts(Service):
    """Gives keys for a role, in turn, to those who sign with one of `users`, or have the web identity token `identity`."""

    def __init__(self, keys, *users, identity=None):
        self.turns, self.users, self.identity, self.forms, self.wrong = Turns(keys), users, identity, [], []
        super().__init__(self.answer)

    def answer(self, r):
        form = {k: v[0] for k, v in urllib.parse.parse_qs(r.body.decode()).items()}
        self.forms.append(form)
        if (r.method, form.get("Version")) != ("POST", "2011-06-15"):
            return 400, self.error("InvalidAction")
        if form["Action"] == "AssumeRoleWithWebIdentity":
            if form.get("WebIdentityToken") != self.identity or "Authorization" in r.headers:
                return 400, self.error("InvalidIdentityToken", form.get("WebIdentityToken"))
        else:
            user = next((u for u in self.users if u.access == used_keys(r.headers)), None)
            wrong = wrong_signature("POST", "/", "", r.headers, r.body, user, "sts") if user else "unknown user"
            if wrong:
                self.wrong.append(wrong)
                return 403, self.error("SignatureDoesNotMatch", wrong)
        keys = self.turns()
        action = form["Action"]
        values = "".join(
            f"<{k}>{v}</{k}>"
            for k, v in {
                "AccessKeyId": keys.access,
                "SecretAccessKey": keys.secret,
                "SessionToken": keys.token,
                "Expiration": keys.expiration,
            }.items()
        )
        return 200, (
            f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>'
            f"<Credentials>{values}</Credentials></{action}Result></{action}Response>"
        )

    @staticmethod
    def error(code, message="no"):
        return f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"


class Container(Service):
    """Credentials of a task, for those who send `authorization`. In place of keys: (status, body)."""

    def __init__(self, keys, authorization=None):
        self.turns, self.authorization = Turns(keys), authorization
        super().__init__(self.answer)

    def answer(self, r):
        if r.path != "/task" or r.headers.get("Authorization") != self.authorization:
            return 403, "{}"
        keys = self.turns()
        return (200, keys.json()) if isinstance(keys, Keys) else keys


class Instance(Service):
    """The metadata of an instance, version 2 alone."""

    TOKEN, ROLES = "AQAE/token==", "/latest/meta-data/iam/security-credentials/"

    def __init__(self, keys, role="a-role"):
        self.turns, self.role = Turns(keys), role
        super().__init__(self.answer)

    def answer(self, r):
        if r.path == "/latest/api/token":
            ttl = r.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
            return (200, self.TOKEN) if r.method == "PUT" and ttl.isdigit() else (400, "")
        if r.method != "GET" or r.headers.get("X-aws-ec2-metadata-token") != self.TOKEN:
            return 401, ""
        if r.path == self.ROLES and self.role:
            return 200, self.role + "\n"
        if r.path != self.ROLES + (self.role or "?"):
            return 404, ""
        keys = self.turns()
        return (200, keys.json(Code="Success", Type="AWS-HMAC")) if isinstance(keys, Keys) else keys
