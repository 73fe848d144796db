# SPDX-License-Identifier: BSL-1.0
"""az:// and abfs://: what s3:// can do, in the words of Azure Blob Storage, with the account's key, a shared access signature, a
token, and anonymously. The names of the settings are those of Azure's command line, adlfs and obstore."""

import json
import urllib.parse

import h5py
import numpy as np
import pytest

from aws_servers import Service
from azure_server import ACCOUNT, KEY, AzureServer, error
from harness import contents
from promises import promise
from s3_conversion import S3, run
from s3_server import BUCKET, Answer, Stored

TARGET = f"az://{BUCKET}/out.zarr"
SHARED_KEY = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY}
SAS = "sv=2022-11-02&ss=b&srt=co&sp=rwdlac&se=2036-01-01T00%3A00%3A00Z&sig=geheim%2Bsignature%3D"
TOKEN = "eyJ0eXAi.a-token_of.Azure"  # noqa: S105
NOBODY = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "ZARRBITS_S3_PATIENCE": "2"}
IN_BUCKET = f"az://{BUCKET}/in.h5"


class TestAzure(S3):
    def convert(self, server, *options, source=None, target=TARGET, **variables):
        return super().convert(server, *options, source=source, target=target, **{**NOBODY, **variables})

    def works(self, server, *options, **variables):
        server.objects.clear()
        done = self.convert(server, *options, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        self.whole(server)

    def refused(self, done, *words, secrets=(), status=1):
        self.sentence(done, *words, status=status)
        for secret in (*secrets, TOKEN, KEY, "geheim"):
            assert secret not in done.stderr + done.stdout

    @pytest.mark.parametrize("way", ["key", "signature", "token"])
    def test_all_that_s3_can_do(self, way):
        variables = {
            "key": SHARED_KEY,
            "signature": {"AZURE_STORAGE_SAS_TOKEN": "?" + SAS},
            "token": {"AZURE_STORAGE_TOKEN": TOKEN},
        }[way]
        with AzureServer(tokens=[TOKEN], signatures=[SAS], page=7, folders=["out.zarr/grp"]) as s:

            def zarrbits(*words):
                done = run(*words, "--endpoint", s.url, **NOBODY, **variables)
                assert (done.returncode, done.stderr) == (0, ""), done.stderr
                return done.stdout

            self.works(s, **variables)
            for source in (self.large, self.source):  # in blocks, and over another store
                assert self.convert(s, "--overwrite", source=source, **variables).returncode == 0
                self.whole(s, source)
            assert any(r.query.get("comp") == "blocklist" for r in s.requests)
            zarrbits("verify", self.source, TARGET)
            assert "2 arrays" in zarrbits("inspect", TARGET)
            zarrbits("export", "-q", TARGET, self.folder / f"{way}.h5")
            zarrbits("convert", "-q", TARGET, f"abfs://{BUCKET}/copy.zarr", "--shard", "64K")
            s.objects["days/in.h5"] = Stored(self.source.read_bytes())
            zarrbits("convert", "-q", "--overwrite", f"abfss://{BUCKET}/days/in.h5", self.folder / "read.zarr")
            assert contents(self.folder / "read.zarr") == self.good[self.source]
            zarrbits("convert", "-q", "--overwrite", "--concat-new", "n", f"az://{BUCKET}/days/*.h5", self.folder / "read.zarr")
            self.refused(self.convert(s, **variables), TARGET, "--overwrite")
            assert s.wrong_signatures == []
            assert {r.headers["x-ms-version"] for r in s.requests} == {"2020-10-02"}

    def test_blocks_that_only_have_a_status(self):
        """Azurite does not say what it has of a block; their list has an ETag."""

        def quiet(r, go):
            answer = go()
            if r.kind == "block":
                answer.headers.clear()
            return answer

        with AzureServer(fault=quiet) as s:
            done = self.convert(s, source=self.large, **SHARED_KEY)
            assert (done.returncode, done.stderr) == (0, "")
            self.whole(s, self.large)

        def loses_one(r, go):
            return Answer(201) if r.kind == "block" else go()

        with AzureServer(fault=loses_one) as s:
            self.refused(self.convert(s, source=self.large, **SHARED_KEY), "InvalidBlockList")

    def test_references(self):
        with AzureServer(signatures=[SAS]) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            refs = self.folder / "refs.json"
            words = ("--endpoint", s.url)
            done = run("convert", "-q", "--virtual", IN_BUCKET, refs, *words, **NOBODY, AZURE_STORAGE_SAS_TOKEN=SAS)
            assert (done.returncode, done.stderr) == (0, "")
            assert "geheim" not in refs.read_text()
            urls = {v[0] for v in json.loads(refs.read_text())["refs"].values() if isinstance(v, list)}
            assert urls == {IN_BUCKET}  # as fsspec, with adlfs, has them
            done = run("verify", IN_BUCKET, refs, *words, **NOBODY, **SHARED_KEY)
            assert done.returncode == 0, done.stdout + done.stderr

    def days(self):
        days = [self.folder / f"day{i}.h5" for i in range(2)]
        for i, day in enumerate(days):
            with h5py.File(day, "w") as f:
                t = f.create_dataset("t", data=np.arange(4) + 4 * i, maxshape=(None,), chunks=(4,))
                t.make_scale("t")
                f.create_dataset("v", data=np.arange(4.0) + i, maxshape=(None,), chunks=(4,)).dims[0].attach_scale(t)
        return days

    @pytest.mark.parametrize("way", ["key", "signature"])
    def test_append(self, way):
        """The server copies the new chunks, and is asked until it has."""
        days = self.days()
        variables = SHARED_KEY if way == "key" else {"AZURE_STORAGE_SAS_TOKEN": SAS}
        with AzureServer(signatures=[SAS], pending=2) as s:
            assert self.convert(s, "--concat", "t", source=days[0], **variables).returncode == 0
            done = self.convert(s, "--append", "t", source=days[1], **variables)
            assert (done.returncode, done.stderr) == (0, "")
            assert run("verify", "--concat", "t", *days, TARGET, "--endpoint", s.url, **NOBODY, **variables).returncode == 0
            assert any(r.kind == "copy" for r in s.requests)
            writes = [r for r in s.requests if r.method == "PUT"]
            assert any(r.headers.get("If-Match") for r in writes) and any(r.headers.get("If-None-Match") for r in writes)

        def fails(r, go):
            answer = go()
            if r.method == "HEAD" and answer.headers.get("x-ms-copy-status"):
                answer.headers["x-ms-copy-status"] = "failed"
            return answer

        with AzureServer(signatures=[SAS], fault=fails) as s:
            assert self.convert(s, "--concat", "t", source=days[0], **variables).returncode == 0
            self.refused(self.convert(s, "--append", "t", source=days[1], **variables), "does not copy")

    def test_conditions(self):
        days = self.days()
        with AzureServer() as s:
            s.objects["out.zarr/.zarrbits-unfinished/begun"] = Stored(b"{}")  # of another run, a moment ago
            self.refused(self.convert(s, "--overwrite", **SHARED_KEY), "not a Zarr store")
            s.objects["out.zarr/zarr.json"] = Stored(b'{"zarr_format": 3, "node_type": "group"}')
            self.refused(self.convert(s, "--overwrite", **SHARED_KEY), "a moment ago")
        with AzureServer(conditions="ignored") as s:
            assert "conditional writes" in self.convert(s, "--concat", "t", source=days[0], **SHARED_KEY).stderr
            before = {k: o.body for k, o in s.objects.items()}
            self.refused(self.convert(s, "--append", "t", source=days[1], **SHARED_KEY), "conditional writes")
            assert {k: o.body for k, o in s.objects.items()} == before

    def test_settings(self):
        """Each name of a setting."""
        connection = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint="
        with AzureServer(signatures=[SAS], tokens=[TOKEN]) as s:
            server = {"AZURE_STORAGE_ENDPOINT": s.url}
            for variables in (
                {**SHARED_KEY, **server},
                {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY, "AZURE_ENDPOINT": s.url},
                {"AZURE_STORAGE_ACCESS_KEY": KEY, **server},  # the account is in the URL
                {"AZURE_STORAGE_CONNECTION_STRING": f"{connection}{s.url}"},
                {"AZURE_STORAGE_CONNECTION_STRING": f"{connection}{s.url}/;", "AZURE_STORAGE_ACCOUNT": "another"},
                {"AZURE_STORAGE_CONNECTION_STRING": f"BlobEndpoint={s.url};SharedAccessSignature={SAS}"},
                {"AZURE_STORAGE_SAS_KEY": SAS, **server},
                {"AZURE_STORAGE_ACCESS_TOKEN": TOKEN, **server},
                {
                    "AZURE_STORAGE_USE_EMULATOR": "true",
                    "AZURITE_BLOB_STORAGE_URL": s.url.removesuffix(f"/{ACCOUNT}"),
                    "AZURE_STORAGE_KEY": KEY,
                },
            ):
                s.objects.clear()
                done = run("convert", "-q", self.source, TARGET, **{**NOBODY, **variables})
                assert (done.returncode, done.stderr) == (0, ""), variables
                self.whole(s)

    def test_anonymous(self):
        with AzureServer(public=True) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            target = self.folder / "anonymous.zarr"
            for options, variables in (
                (["--no-sign-request"], {}),
                (["--no-sign-request"], SHARED_KEY),
                ([], {"AZURE_STORAGE_ANON": "true", **SHARED_KEY}),
                ([], {"AZURE_SKIP_SIGNATURE": "true", "AZURE_STORAGE_SAS_TOKEN": SAS}),
                ([], {"AZURE_NO_SIGN_REQUEST": "YES"}),
            ):
                s.requests.clear()
                words = ["--endpoint", s.url]
                done = run("convert", "-q", "--overwrite", IN_BUCKET, target, *words, *options, **{**NOBODY, **variables})
                assert (done.returncode, done.stderr) == (0, ""), variables
                assert contents(target) == self.good[self.source]
                assert s.requests and not any("Authorization" in r.headers or "sig" in r.query for r in s.requests)
        with AzureServer() as s:
            done = run("convert", "-q", IN_BUCKET, target, "--overwrite", "--no-sign-request", "--endpoint", s.url, **NOBODY)
            self.refused(done, "ResourceNotFound" if "ResourceNotFound" in done.stderr else "404", "not public")

    @promise("A name at `abfs://` leads only")
    def test_names(self):
        account = "abfs://bucket@another.dfs.core.windows.net/x"
        for name, words in (
            ("az://", ["does not name a container"]),
            ("az://b//x", ["empty part"]),
            ("az://u:geheim@b/x", ["***@b"]),
            (f"az://bucket/x?{SAS}", ["?***", "AZURE_STORAGE_SAS_TOKEN"]),
            ("abfs://bucket@evil.example/x", ["not on a server of Azure's"]),
            ("abfs://bucket@a.dfs.core.windows.net.evil.example/x", ["not on a server of Azure's"]),
        ):
            self.refused(run("convert", "-q", self.source, name, **NOBODY, **SHARED_KEY), *words, status=2)
        self.refused(run("convert", "-q", self.source, account, **NOBODY, **SHARED_KEY), ACCOUNT, "another", "does not get them")
        self.refused(run("convert", "-q", self.source, "az://bucket/x", **NOBODY), "AZURE_STORAGE_ACCOUNT", status=2)
        only_account = {"AZURE_STORAGE_ACCOUNT": "x1"}
        self.refused(
            run("convert", "-q", self.source, "az://bucket/x", **NOBODY, **only_account), "no credentials", "AZURE_STORAGE_KEY"
        )
        for key in ("geheim no Base64", "geheim\ntwo"):
            done = run("convert", "-q", self.source, "az://bucket/x", **NOBODY, **only_account, AZURE_STORAGE_KEY=key)
            self.refused(done, "not Base64")

    def test_errors(self):
        """Each has its sentence; a 404 counts as absence only in Azure's words."""
        for status, code, words in (
            (403, "AuthenticationFailed", ["AuthenticationFailed", "clock"]),
            (403, "AuthorizationFailure", ["network rules"]),
            (403, "AuthorizationPermissionMismatch", ["Storage Blob Data Contributor"]),
            (403, "KeyBasedAuthenticationNotPermitted", ["AZURE_STORAGE_TOKEN"]),
            (404, "ContainerNotFound", ["Azure container", "bucket"]),
            (404, "ResourceNotFound", ["does not say that the object is absent"]),
            (409, "ContainerBeingDeleted", ["being deleted"]),
            (409, "BlobArchived", ["rehydrate"]),
        ):
            with AzureServer(fault=lambda r, go, status=status, code=code: error(status, code)) as s:
                self.refused(self.convert(s, **SHARED_KEY), *words)
                done = self.convert(s, source=IN_BUCKET, target=self.folder / "none.zarr", **SHARED_KEY)
                self.refused(done, *words)
        with AzureServer(fault=lambda r, go: Answer(404, b"<html>a proxy</html>")) as s:
            self.refused(self.convert(s, **SHARED_KEY), "404", "does not say that the object is absent")
        with AzureServer() as s:
            done = self.convert(s, source=IN_BUCKET, target=self.folder / "none.zarr", **SHARED_KEY)
            self.refused(done, "there is no such object")
            self.refused(self.convert(s, **{**SHARED_KEY, "AZURE_STORAGE_KEY": KEY[:-4] + "AAA="}), "AuthenticationFailed")

    def test_hostile_answers(self):
        def other_range(r, go):
            answer = go()
            if answer.status == 206:
                answer.headers["Content-Range"] = answer.headers["Content-Range"].replace("bytes 0-", "bytes 1-")
            return answer

        def other_bytes(r, go):
            answer = go()
            if "Content-MD5" in answer.headers:
                answer.headers["Content-MD5"] = "AAAAAAAAAAAAAAAAAAAAAA=="
            return answer

        def endless(r, go):
            answer = go()
            if r.kind == "list":
                answer.body = answer.body.replace(b"<NextMarker />", b"<NextMarker>again</NextMarker>")
            return answer

        with AzureServer(fault=other_range) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            done = self.convert(s, source=IN_BUCKET, target=self.folder / "none.zarr", **SHARED_KEY)
            self.refused(done, "and the range")
        with AzureServer(fault=other_bytes) as s:
            self.refused(self.convert(s, **SHARED_KEY), "different bytes", "Content-MD5")
        with AzureServer(fault=endless) as s:
            self.refused(self.convert(s, **SHARED_KEY), "does not end")

    @promise("Access tokens of Google and Azure")
    def test_secrets_go_by_https_alone(self):
        for url in ("http://zarrbits.invalid/x", "http://192.0.2.1:9000/x"):
            for secret in ({"AZURE_STORAGE_TOKEN": TOKEN}, {"AZURE_STORAGE_SAS_TOKEN": SAS}):
                done = run("convert", "-q", self.source, TARGET, "--endpoint", url, **NOBODY, **secret)
                self.refused(done, "plain http", url)

    @promise("They go only to the server")
    def test_redirects_get_no_secret(self):
        with AzureServer() as other:

            def elsewhere(r, go):
                return Answer(307, b"", {"Location": f"{other.url}/bucket/x"})

            for secret in ({"AZURE_STORAGE_TOKEN": TOKEN}, {"AZURE_STORAGE_SAS_TOKEN": SAS}):
                with AzureServer(tokens=[TOKEN], signatures=[SAS], fault=elsewhere) as s:
                    self.refused(self.convert(s, **secret), "307")
            assert other.requests == []

    def test_tokens(self):
        """Of an application, of a workload, and of a machine."""
        forms = []

        def answer(r):
            forms.append((r.path, {k: v[0] for k, v in urllib.parse.parse_qs(r.body.decode()).items()}))
            if r.method == "GET" and r.headers.get("Metadata") != "true":
                return 403, ""
            life = "3599" if r.method == "GET" else 3599  # as text from a machine
            return 200, json.dumps({"access_token": TOKEN, "expires_in": life, "token_type": "Bearer"})

        identity = self.folder / "identity"
        identity.write_text("a.federated.token\n")
        application = {"AZURE_TENANT_ID": "a-tenant", "AZURE_CLIENT_ID": "an-application"}
        with AzureServer(tokens=[TOKEN]) as s, Service(answer) as login:
            authority = {"AZURE_AUTHORITY_HOST": login.url}
            self.works(s, **application, **authority, AZURE_CLIENT_SECRET="geheim+1")
            path, form = forms.pop()
            assert path == "/a-tenant/oauth2/v2.0/token"
            assert form == {
                "grant_type": "client_credentials",
                "scope": "https://storage.azure.com/.default",
                "client_id": "an-application",
                "client_secret": "geheim+1",
            }
            self.works(s, **application, **authority, AZURE_FEDERATED_TOKEN_FILE=str(identity))
            _, form = forms.pop()
            assert form["client_assertion"] == "a.federated.token"
            assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            self.works(s, AZURE_POD_IDENTITY_AUTHORITY_HOST=login.url, AZURE_CLIENT_ID="mine")
            path, _ = forms.pop()
            assert "resource=https%3A%2F%2Fstorage.azure.com%2F" in path and "client_id=mine" in path
            for wrong, words in (
                ({"AZURE_FEDERATED_TOKEN_FILE": "/nonexistent"}, ["/nonexistent"]),
                ({"AZURE_CLIENT_SECRET": "geheim", "AZURE_TENANT_ID": "a/b"}, ["AZURE_TENANT_ID"]),
                ({"AZURE_CLIENT_SECRET": "geheim", "AZURE_AUTHORITY_HOST": "http://192.0.2.1"}, ["plain http"]),
            ):
                self.refused(self.convert(s, **{**application, **authority, **wrong}), *words)
        for status, body in ((403, ""), (404, "<html>"), (400, '{"error": "invalid_request"}'), (200, "<html>")):  # another cloud
            with AzureServer() as s, Service(lambda r, status=status, body=body: (status, body)) as machine:
                done = self.convert(s, AZURE_POD_IDENTITY_AUTHORITY_HOST=machine.url)
                self.refused(done, "access token" if status == 200 else "no credentials")
        with AzureServer() as s, Service(lambda r: (401, '{"error": "invalid_client", "error_description": "geheim"}')) as login:
            done = self.convert(s, **application, AZURE_CLIENT_SECRET="geheim", AZURE_AUTHORITY_HOST=login.url)
            self.refused(done, "invalid_client", "AZURE_CLIENT_ID")

    def test_one_endpoint_for_two_clouds(self):
        with AzureServer() as s:
            done = self.convert(s, source="s3://bucket/in.h5", AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s", **SHARED_KEY)
            self.refused(done, "AZURE_STORAGE_ENDPOINT", status=2)

    def test_a_store_within_its_source(self):
        with AzureServer() as s:
            self.works(s, **SHARED_KEY)
            before = dict(s.objects)
            done = self.convert(s, "--overwrite", source=TARGET, target=TARGET.replace("az:", "abfs:"), **SHARED_KEY)
            self.refused(done, "is the source, or in it", status=2)
            assert s.objects == before
