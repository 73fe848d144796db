# SPDX-License-Identifier: BSL-1.0
"""What requests to S3 say, and how refusals are reported: who pays, versions of objects, keys with empty parts, many sources with
few descriptors, reasons that have their own remedies."""

import json
import resource

import h5py
import pytest

import harness
from harness import contents
from s3_conversion import S3, environment, run
from s3_server import Answer, Server, Stored, error

GOOGLE = {"AWS_ACCESS_KEY_ID": "", "GOOGLE_OAUTH_ACCESS_TOKEN": "a-token"}


class TestRequests(S3):
    def reads(self, server, name, *options, **variables):
        target = self.folder / "read.zarr"
        done = run("convert", "-q", "--overwrite", name, target, "--endpoint", server.url, *options, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        assert contents(target) == self.good[self.source]
        assert server.wrong_signatures == []

    def test_the_requester_pays(self):
        def only_payers(r, go):
            return go() if r.headers.get("x-amz-request-payer") == "requester" else error(403, "AccessDenied")

        with Server(only_payers) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            self.reads(s, "s3://bucket/in.h5", "--request-payer")
            for value in ("requester", "true"):
                self.reads(s, "s3://bucket/in.h5", AWS_REQUEST_PAYER=value)
            self.sentence(self.convert(s, source="s3://bucket/in.h5", target=self.folder / "none.zarr"), "AccessDenied")
            assert self.convert(s, "--request-payer").returncode == 0
            self.whole(s)

    def test_the_requester_pays_at_google(self):
        def only_payers(r, go):
            return go() if r.headers.get("x-goog-user-project") == "mine" else error(400, "UserProjectMissing")

        with Server(only_payers, google=True, tokens=["a-token"]) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_QUOTA_PROJECT", "GS_USER_PROJECT"):
                self.reads(s, "gs://bucket/in.h5", "--request-payer", **GOOGLE, **{name: "mine"})
            self.reads(s, "gs://bucket/in.h5", **GOOGLE, GS_USER_PROJECT="mine")
            source = {"source": "gs://bucket/in.h5", "target": self.folder / "none.zarr"}
            self.sentence(self.convert(s, **source, **GOOGLE), "UserProjectMissing", "--request-payer")
            self.sentence(self.convert(s, "--request-payer", **source, **GOOGLE), "GS_USER_PROJECT", status=2)

    def test_a_version(self):
        """Of an object that has another one now; names with a version are as fsspec has them."""
        with Server() as s:
            s.put_version("in.h5", self.source.read_bytes(), "old/1+2")
            s.put_version("in.h5", self.other.read_bytes(), "new")
            name = "s3://bucket/in.h5?versionId=old/1+2"
            self.reads(s, name)
            ranges = [r for r in s.requests if r.query.get("versionId") == "old/1+2" and "Range" in r.headers]
            assert ranges and all(r.query == {"versionId": "old/1+2"} for r in s.requests)
            target = self.folder / "read.zarr"
            assert run("verify", name, target, "--endpoint", s.url).returncode == 0
            assert run("verify", "s3://bucket/in.h5", target, "--endpoint", s.url).returncode == 1
            done = self.convert(s, source="s3://bucket/in.h5?versionId=2", target=self.folder / "none.zarr")
            self.sentence(done, "no such object")

    def test_references_name_no_version(self):
        """s3fs ignores it unless it is told to be aware of versions, and so do others: they would read another one's bytes."""
        with Server() as s:
            s.put_version("in.h5", self.source.read_bytes(), "old")
            done = run(
                "convert", "-q", "--virtual", "s3://bucket/in.h5?versionId=old", self.folder / "v.json", "--endpoint", s.url
            )
            self.sentence(done, "version", "copy")
            assert not (self.folder / "v.json").exists()

    def test_a_version_is_appended_once(self):
        with Server() as s:
            for number in range(3):
                with h5py.File(self.folder / "day.h5", "w") as f:
                    f.create_dataset("t", data=[number], maxshape=(None,), chunks=(1,))
                s.put_version("day.h5", (self.folder / "day.h5").read_bytes(), f"v{number}")
            first, second = (f"s3://bucket/day.h5?versionId=v{n}" for n in (0, 1))
            store = self.folder / "days.zarr"
            options = ("--endpoint", s.url)
            assert run("convert", "-q", "--concat", "/t:0", first, second, store, *options).returncode == 0
            before = contents(store)
            done = run("convert", "-q", "--append", "/t:0", second, store, *options)
            assert done.returncode == 0 and contents(store) == before, done.stderr
            done = run("convert", "-q", "--append", "/t:0", "s3://bucket/day.h5?versionId=v2", store, *options)
            assert done.returncode == 0, done.stderr
            assert json.loads((store / "t/zarr.json").read_text())["shape"] == [3]

    def test_keys_with_empty_parts(self):
        with Server() as s:
            for name in ("s3://bucket/a//b.h5", "s3://bucket//a/b.h5", "s3://bucket///b.h5"):
                s.objects = {name.removeprefix("s3://bucket/"): Stored(self.source.read_bytes())}
                self.reads(s, name)
            self.sentence(self.convert(s, target="s3://bucket/a//out.zarr"), "empty part", status=2)

    def test_many_sources_with_few_descriptors(self):
        with Server() as s:
            for i in range(600):
                s.objects[f"days/{i:03}.h5"] = Stored(self.source.read_bytes())
            limit = (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            done = harness.run(
                *("convert", "-q", "--concat-new", "n", "s3://bucket/days/*.h5", self.folder / "many.zarr", "--endpoint", s.url),
                status=None,
                env=environment(),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
            )
            assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("status", "code", "words"),
        [
            (403, "InvalidObjectState", ["archive", "restore it first"]),
            (403, "RequestTimeTooSkewed", ["clock of this machine"]),
            (403, "InvalidAccessKeyId", ["does not know the access key"]),
            (403, "SignatureDoesNotMatch", ["the secret"]),
            (400, "ExpiredToken", ["credentials have ended"]),
            (403, "AccessDenied", ["permissions"]),
        ],
    )
    def test_each_refusal_has_its_remedy(self, status, code, words):
        with Server(lambda r, go: error(status, code)) as s:
            done = self.convert(s, source="s3://bucket/in.h5", target=self.folder / "none.zarr")
            self.sentence(done, code, *words)

    def test_a_proxy_that_requires_a_login_is_asked_once(self):
        """Also by CONNECT."""
        with Server() as proxy:
            proxy.check = lambda *_: None
            proxy.fault = lambda r, go: Answer(407, b"", {"Proxy-Authenticate": 'Basic realm="x"'})
            done = run("inspect", "s3://bucket/x.zarr", "--endpoint", "http://192.0.2.1", http_proxy=proxy.url)
            assert done.returncode == 1 and "407" in done.stderr and "proxy" in done.stderr
            assert len(proxy.requests) == 1
            proxy.connects = 0
            done = run("inspect", "s3://bucket/x.zarr", "--endpoint", "https://192.0.2.1", https_proxy=proxy.url)
            assert done.returncode == 1 and "407" in done.stderr and "proxy" in done.stderr
            assert proxy.connects == 1
