# SPDX-License-Identifier: BSL-1.0
"""gs://: what s3:// can do, in the words of Google's XML interface, with keys, tokens and without either. The environment
variables and their order are those of google-auth; keys and anonymous requests have GDAL's names."""

import base64
import json
import shutil
import subprocess
import time
import urllib.parse

import pytest

from aws_servers import Service
from harness import contents
from promises import promise
from s3_conversion import S3, run
from s3_server import BUCKET, KEY, SECRET, Answer, Server, Stored, error

TARGET = f"gs://{BUCKET}/out.zarr"
HMAC = {"GS_ACCESS_KEY_ID": KEY, "GS_SECRET_ACCESS_KEY": SECRET}
TOKEN = "ya29.a-token_of.Google"  # noqa: S105
NOBODY = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "ZARRBITS_S3_PATIENCE": "2"}
USER = {
    "type": "authorized_user",
    "client_id": "an-id.apps",
    "client_secret": "GOCSPX-geheim",
    "refresh_token": "1//0refresh+geheim",
}


class Tokens(Service):
    """The server of access tokens: (status, body) or a token, in turn."""

    def __init__(self, *tokens, life=3599):
        self.tokens, self.life, self.forms = list(tokens), life, []
        super().__init__(self.answer)

    def answer(self, r):
        self.forms.append({k: v[0] for k, v in urllib.parse.parse_qs(r.body.decode()).items()})
        one = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        if isinstance(one, tuple):
            return one
        return 200, json.dumps({"access_token": one, "expires_in": self.life, "token_type": "Bearer"})


class Machine(Service):
    """The metadata server of a machine at Google."""

    PATH = "/computeMetadata/v1/instance/service-accounts/default/token"

    def __init__(self, token=TOKEN, flavor="Google"):
        self.token = token
        super().__init__(self.answer, {"Metadata-Flavor": flavor} if flavor else {})

    def answer(self, r):
        if r.path.partition("?")[0] != self.PATH or r.headers.get("Metadata-Flavor") != "Google":
            return 403, ""
        return 200, json.dumps({"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"})


@pytest.fixture(scope="module")
def private_key(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl is missing")
    folder = tmp_path_factory.mktemp("key")
    run_openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", folder / "key.pem")
    run_openssl("pkey", "-in", folder / "key.pem", "-pubout", "-out", folder / "public.pem")
    return folder


def run_openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True).stdout


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class TestGoogle(S3):
    def convert(self, server, *options, source=None, target=TARGET, **variables):
        return super().convert(server, *options, source=source, target=target, **{**NOBODY, **variables})

    def works(self, server, *options, **variables):
        server.objects.clear()
        done = self.convert(server, *options, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        self.whole(server)

    def refused(self, done, *words, secrets=(), status=1):
        self.sentence(done, *words, status=status)
        for secret in (*secrets, TOKEN):
            assert secret not in done.stderr + done.stdout

    def file(self, name="credentials.json", **content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        return path

    @pytest.mark.parametrize("way", ["keys", "token"])
    def test_all_that_s3_can_do(self, way):
        variables = HMAC if way == "keys" else {"GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN}
        with Server(google=True, tokens=[TOKEN], page=7) as s:

            def zarrbits(*words):
                done = run(*words, "--endpoint", s.url, **NOBODY, **variables)
                assert (done.returncode, done.stderr) == (0, ""), done.stderr
                return done.stdout

            self.works(s, **variables)
            for source in (self.large, self.source):  # in parts, and over another store
                assert self.convert(s, "--overwrite", source=source, **variables).returncode == 0
                self.whole(s, source)
            zarrbits("verify", self.source, TARGET)
            assert "2 arrays" in zarrbits("inspect", TARGET)
            zarrbits("export", "-q", TARGET, self.folder / f"{way}.h5")
            zarrbits("convert", "-q", TARGET, "gs://bucket/copy.zarr", "--shard", "64K")
            s.objects["days/in.h5"] = Stored(self.source.read_bytes())
            zarrbits("convert", "-q", "--overwrite", "gs://bucket/days/in.h5", self.folder / "read.zarr")
            assert contents(self.folder / "read.zarr") == self.good[self.source]
            zarrbits("convert", "-q", "--overwrite", "--concat-new", "n", "gs://bucket/days/*.h5", self.folder / "read.zarr")
            refused = self.convert(s, **variables)  # exists
            self.refused(refused, TARGET, "--overwrite")
            assert s.wrong_signatures == []
            for r in s.requests:
                assert not any(n.lower().startswith("x-amz-") for n in r.headers)
                assert r.headers.get("Accept-Encoding") == "gzip"  # else Google decompresses, and ignores ranges

    def test_references(self):
        with Server(google=True) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            refs = self.folder / "refs.json"
            done = run("convert", "-q", "--virtual", "gs://bucket/in.h5", refs, "--endpoint", s.url, **NOBODY, **HMAC)
            assert (done.returncode, done.stderr) == (0, "")
            urls = {v[0] for v in json.loads(refs.read_text())["refs"].values() if isinstance(v, list)}
            assert urls == {"gs://bucket/in.h5"}  # as fsspec, with gcsfs, has them
            done = run("verify", "gs://bucket/in.h5", refs, "--endpoint", s.url, **NOBODY, **HMAC)
            assert done.returncode == 0, done.stdout + done.stderr

    def test_conditions(self):
        """Of two conversions at once, one is refused; a server that ignores generations is not appended to."""
        import h5py
        import numpy as np

        days = [self.folder / f"day{i}.h5" for i in range(2)]
        for i, day in enumerate(days):
            with h5py.File(day, "w") as f:
                t = f.create_dataset("t", data=np.arange(4) + 4 * i, maxshape=(None,), chunks=(4,))
                t.make_scale("t")
                f.create_dataset("v", data=np.arange(4.0) + i, maxshape=(None,), chunks=(4,)).dims[0].attach_scale(t)
        local = self.folder / "joined.zarr"
        assert run("convert", "-q", "--concat", "t", *days, local).returncode == 0
        with Server(google=True) as s:
            assert self.convert(s, "--concat", "t", source=days[0], **HMAC).returncode == 0
            done = self.convert(s, "--append", "t", source=days[1], **HMAC)
            assert (done.returncode, done.stderr) == (0, "")
            assert run("verify", "--concat", "t", *days, TARGET, "--endpoint", s.url, **NOBODY, **HMAC).returncode == 0
            written = [r.headers.get("x-goog-if-generation-match") for r in s.requests if r.method == "PUT"]
            assert "0" in written and any(g and int(g) > 1 for g in written)
            assert not any(r.headers.get("If-Match") or r.headers.get("If-None-Match") for r in s.requests if r.method == "PUT")

            s.objects["out.zarr/.zarrbits-unfinished/begun"] = Stored(b"{}")  # of another run, a moment ago
            self.refused(self.convert(s, "--overwrite", **HMAC), "a moment ago")
        with Server(google=True, conditions="ignored") as s:
            assert "conditional writes" in self.convert(s, "--concat", "t", source=days[0], **HMAC).stderr
            before = dict(s.objects)
            self.refused(self.convert(s, "--append", "t", source=days[1], **HMAC), "conditional writes")
            assert {k: o.body for k, o in s.objects.items()} == {k: o.body for k, o in before.items()}

    def test_anonymous(self):
        with Server(google=True, public=True) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            target = self.folder / "anonymous.zarr"
            for options, variables in (
                (["--no-sign-request"], {}),
                ([], {"GS_NO_SIGN_REQUEST": "YES"}),
                ([], {"GOOGLE_SKIP_SIGNATURE": "true", **HMAC}),
                ([], {"STORAGE_EMULATOR_HOST": s.url}),
                ([], {"STORAGE_EMULATOR_HOST": s.url.removeprefix("http://")}),
            ):
                s.requests.clear()
                words = [] if "STORAGE_EMULATOR_HOST" in variables else ["--endpoint", s.url]
                done = run(
                    *("convert", "-q", "--overwrite", "gs://bucket/in.h5", target, *words, *options), **{**NOBODY, **variables}
                )
                assert (done.returncode, done.stderr) == (0, ""), variables
                assert contents(target) == self.good[self.source]
                assert s.requests and not any("Authorization" in r.headers for r in s.requests)

    def test_a_service_account(self, private_key):
        account = {"type": "service_account", "client_email": "a@b.iam", "private_key_id": "an-id", "project_id": "mine"}
        with Server(google=True, tokens=[TOKEN]) as s, Tokens(TOKEN) as tokens:
            key = (private_key / "key.pem").read_text()
            file = self.file(**account, private_key=key, token_uri=tokens.url)
            self.works(s, GOOGLE_APPLICATION_CREDENTIALS=str(file))
            form = tokens.forms[0]
            assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            header, claims, signature = form["assertion"].split(".")
            assert json.loads(decoded(header)) == {"alg": "RS256", "typ": "JWT", "kid": "an-id"}
            told = json.loads(decoded(claims))
            assert (told["iss"], told["aud"], told["exp"] - told["iat"]) == ("a@b.iam", tokens.url, 3600)
            assert abs(told["iat"] - time.time()) < 600
            assert told["scope"].startswith("https://www.googleapis.com/auth/devstorage.")
            (private_key / "signature").write_bytes(decoded(signature))
            (private_key / "text").write_text(f"{header}.{claims}")
            words = ("-verify", private_key / "public.pem", "-signature", private_key / "signature", private_key / "text")
            assert b"Verified OK" in run_openssl("dgst", "-sha256", *words)
            assert not any("x-goog-user-project" in r.headers for r in s.requests)
            for wrong in ("", "no key", key.replace("A", "B", 30)):
                file = self.file(**account, private_key=wrong, token_uri=tokens.url)
                done = self.convert(s, GOOGLE_APPLICATION_CREDENTIALS=str(file))
                self.refused(done, str(file), "private_key", secrets=[key[60:100]])

    def test_a_user(self):
        secrets = [USER["client_secret"], USER["refresh_token"]]
        with Server(google=True, tokens=[TOKEN]) as s, Tokens(TOKEN) as tokens:
            file = self.file(**USER, token_uri=tokens.url, quota_project_id="theirs")
            self.works(s, GOOGLE_APPLICATION_CREDENTIALS=str(file))
            assert tokens.forms[0] == {
                "grant_type": "refresh_token",
                **{k: USER[k] for k in ("client_id", "client_secret", "refresh_token")},
            }
            assert {r.headers.get("x-goog-user-project") for r in s.requests} == {"theirs"}
            s.requests.clear()
            self.works(s, GOOGLE_APPLICATION_CREDENTIALS=str(file), GOOGLE_CLOUD_QUOTA_PROJECT="ours")
            assert {r.headers.get("x-goog-user-project") for r in s.requests} == {"ours"}
            # gcloud's file, in its two places
            self.file("gcloud/application_default_credentials.json", **USER, token_uri=tokens.url)
            self.works(s, CLOUDSDK_CONFIG=str(self.folder / "gcloud"))
            (self.folder / ".config").mkdir()
            shutil.copytree(self.folder / "gcloud", self.folder / ".config/gcloud")
            self.works(s, HOME=str(self.folder))
        for answer, words in (
            ((400, '{"error": "invalid_grant", "error_description": "geheim"}'), ["invalid_grant", "gcloud auth"]),
            ((200, "{}"), ["access token"]),
            ((200, '{"access_token": "x", "expires_in": -1}'), ["access token"]),
            ((200, '{"access_token": "two\\nlines", "expires_in": 99}'), ["access token"]),
            ((200, "<html>"), ["access token"]),
            ((200, " " * (1 << 20)), ["too long"]),
        ):
            with Server(google=True, tokens=[TOKEN]) as s, Tokens(answer) as tokens:
                file = self.file(**USER, token_uri=tokens.url)
                self.refused(self.convert(s, GOOGLE_APPLICATION_CREDENTIALS=str(file)), *words, secrets=[*secrets, "geheim"])
                assert s.requests == []
        for content, words in (
            ({**USER, "type": "external_account"}, ["external_account", "GOOGLE_OAUTH_ACCESS_TOKEN"]),
            ({**USER, "refresh_token": ""}, ["refresh_token", "gcloud auth"]),
            ({**USER, "token_uri": "http://example.org/token"}, ["plain http"]),
            ({**USER, "token_uri": "ftp://example.org/token"}, ["is not a URL"]),
        ):
            file = self.file(**content)
            with Server(google=True) as s:
                status = 2 if "is not a URL" in words else 1
                self.refused(self.convert(s, GOOGLE_APPLICATION_CREDENTIALS=str(file)), *words, secrets=secrets, status=status)
        with Server(google=True) as s:
            self.refused(self.convert(s, GOOGLE_APPLICATION_CREDENTIALS="/nonexistent"), "cannot read", "/nonexistent")
            self.refused(self.convert(s), "no credentials", "gcloud auth", "--no-sign-request")

    def test_a_machine(self):
        with Server(google=True, tokens=[TOKEN]) as s, Machine() as machine:
            host = f"localhost:{machine.port}"
            for name in ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"):  # which no proxy sees
                self.works(s, **{name: host}, NO_GCE_CHECK="", http_proxy="http://127.0.0.1:1", no_proxy="127.0.0.1")
            self.refused(self.convert(s, GCE_METADATA_HOST=host), "no credentials")  # NO_GCE_CHECK
        with Server(google=True, tokens=[TOKEN]) as s, Machine(flavor=None) as machine:  # another cloud's
            done = self.convert(s, GCE_METADATA_HOST=machine.url.removeprefix("http://"), NO_GCE_CHECK="")
            self.refused(done, "no credentials")

    def test_the_order(self):
        """Each way, while all later ones are there, too."""
        with Server(google=True, tokens=["env", "file", "gcloud", "machine"], public=True) as s:
            with Tokens("file") as file_tokens, Tokens("gcloud") as gcloud_tokens, Machine("machine") as machine:
                file = self.file(**USER, token_uri=file_tokens.url)
                self.file("gcloud/application_default_credentials.json", **USER, token_uri=gcloud_tokens.url)
                ways = [
                    ("GOOG4-HMAC-SHA256", HMAC),
                    ("Bearer env", {"GOOGLE_OAUTH_ACCESS_TOKEN": "env"}),
                    ("Bearer file", {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}),
                    ("Bearer gcloud", {"CLOUDSDK_CONFIG": str(self.folder / "gcloud")}),
                    ("Bearer machine", {"GCE_METADATA_HOST": machine.url.removeprefix("http://"), "NO_GCE_CHECK": ""}),
                ]
                for i, (expected, _) in enumerate(ways):
                    variables = {k: v for _, more in ways[i:] for k, v in more.items()}
                    s.requests.clear()
                    self.works(s, **variables)
                    assert all(r.headers["Authorization"].startswith(expected) for r in s.requests), expected

    def test_tokens_are_replaced(self):
        """Before they end, and when the server refuses them."""
        with Server(google=True, tokens=["second"]) as s, Tokens("first", "second") as tokens:
            file = self.file(**USER, token_uri=tokens.url)
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            done = self.convert(
                s, source="gs://bucket/in.h5", target=self.folder / "again.zarr", GOOGLE_APPLICATION_CREDENTIALS=str(file)
            )
            assert (done.returncode, done.stderr) == (0, "")
        with Server(google=True) as s:
            self.refused(self.convert(s, GOOGLE_OAUTH_ACCESS_TOKEN=TOKEN), "401", "InvalidSecurity")

    @promise("Access tokens of Google and Azure")
    def test_a_token_goes_by_https_alone(self):
        for url in ("http://zarrbits.invalid", "http://192.0.2.1:9000"):
            done = run("convert", "-q", self.source, TARGET, "--endpoint", url, **NOBODY, GOOGLE_OAUTH_ACCESS_TOKEN=TOKEN)
            self.refused(done, "plain http", url)

    @promise("They go only to the server")
    def test_redirects_get_no_token(self):
        with Server(google=True) as other:

            def elsewhere(r, go):
                return Answer(307, b"", {"Location": f"{other.url}/bucket/x"})

            with Server(google=True, tokens=[TOKEN], fault=elsewhere) as s:
                self.refused(self.convert(s, GOOGLE_OAUTH_ACCESS_TOKEN=TOKEN), "307")
            assert other.requests == []

    def test_one_endpoint_for_two_clouds(self):
        with Server(google=True) as s:
            done = self.convert(s, source="s3://bucket/in.h5", AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, **HMAC)
            self.refused(done, "STORAGE_EMULATOR_HOST", status=2)

    def test_names(self):
        for name, words in (("gs://", ["does not name"]), ("gs://b//x", ["empty part"]), ("gs://u:geheim@b/x", ["***@b"])):
            done = run("convert", "-q", self.source, name, **NOBODY, **HMAC)
            self.refused(done, *words, "gs://bucket/prefix", secrets=["geheim"], status=2)

    def test_a_bucket_that_is_missing(self):
        with Server(google=True) as s:
            self.refused(self.convert(s, target="gs://another/x", **HMAC), "Cloud Storage bucket", "another")
            s.fault = lambda r, go: error(404, "NoSuchKey") if r.kind == "put" else go()
            assert self.convert(s, **HMAC).returncode == 1


def test_the_server_checks_signatures_as_google_describes_them():
    """With a signature of another implementation, lua-resty-gcs-signature."""
    signature = "528346f587a0b46433f92d583f3148b88a5117bf26131f328553789feb433028"
    digest = "UNSIGNED-PAYLOAD"
    server = Server(google=True)
    server.http.server_close()
    names = "host;x-goog-content-sha256;x-goog-date"
    values = {"host": "example.com", "x-goog-content-sha256": digest, "x-goog-date": "20241121T023539Z"}
    assert server.signature("GET", "/foo/bar", "", names.split(";"), values, "20241121/auto/storage/goog4_request", "YYYYY") == (
        signature
    )
