# SPDX-License-Identifier: BSL-1.0
"""Stores in S3, on the small server of s3_server.py: the store has the same objects as a directory,
or the conversion says why not.
tests/interop/test_s3.py has real servers; attack_s3.py a hostile one."""

import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

import h5py
import numpy as np

import s3_server
from harness import COMMAND, contents
from promises import promise
from s3_conversion import GROUP, MARK, S3, TARGET, children, environment, run
from s3_server import Answer, Server


class Held:
    """A fault: the PUT of a key that ends so waits until it is let go; those of other chunks take `delay` seconds."""

    def __init__(self, end, delay=0):
        self.end, self.delay = end, delay
        self.waiting, self.go_on = threading.Event(), threading.Event()

    def __call__(self, r, go):
        if r.kind == "put" and r.key.endswith(self.end):
            self.waiting.set()
            self.go_on.wait(30)
        elif r.kind == "put" and "/c/" in r.key:
            time.sleep(self.delay)
        return go()


class TestS3(S3):
    def test_what_a_directory_holds(self):
        for page in (1000, 3):
            with Server(page=page) as s:
                done = self.convert(s)
                assert (done.returncode, done.stderr) == (0, "")
                self.whole(s)
        with Server() as s:
            done = self.convert(s, source=self.large)
            assert (done.returncode, done.stderr) == (0, "")
            self.whole(s, self.large)
            assert run("verify", self.large, TARGET, "--endpoint", s.url).returncode == 0
            assert "big" in run("inspect", TARGET, "--endpoint", s.url).stdout
            assert s.wrong_signatures == []

    def test_a_store_of_zarr_v2(self):
        with tempfile.TemporaryDirectory() as folder:
            run("convert", "-q", "--zarr-format", "2", self.source, folder + "/out.zarr")
            expected = contents(folder + "/out.zarr")
        with Server(page=3) as s:
            done = self.convert(s, "--zarr-format", "2")
            assert (done.returncode, done.stderr) == (0, "")
            assert s.content("out.zarr") == expected
            assert run("verify", self.source, TARGET, "--endpoint", s.url).returncode == 0
            self.sentence(self.convert(s, "--zarr-format", "2"), "complete store")
            assert self.convert(s, "--overwrite").returncode == 0
            self.whole(s)
            assert self.convert(s, "--overwrite", "--zarr-format", "2").returncode == 0
            assert s.content("out.zarr") == expected

    @promise("An object counts as written only")
    def test_an_upload_that_is_not_confirmed_is_none(self):
        ns = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
        answers = {
            "an error with a namespace": f"<Error {ns}><Code>InvalidPart</Code></Error>",
            "an error with a prefix": '<s:Error xmlns:s="u"><s:Code>InvalidPart</s:Code></s:Error>',
            "an error that passes": "<Error><Code>InternalError</Code></Error>",
            "nothing": "",
            "another": "<html><body>ok</body></html>",
        }
        for name, body in answers.items():
            with Server(lambda r, go: Answer(body=body.encode()) if r.kind == "complete" else go()) as s:
                self.sentence(self.convert(s, source=self.large), "s3://bucket/out.zarr/big/c/0")
                assert s.content("out.zarr") == {}

        # parts that are joined to less
        def shorter(r, go):
            if r.kind == "complete":
                s.uploads[r.query["uploadId"]].pop(2)
            return go()

        with Server(shorter) as s:
            self.sentence(self.convert(s, source=self.large), "joined", "16777216 bytes")

    @promise("An object counts as written only")
    def test_an_etag_shows_that_bytes_arrived(self):
        wrong = "0123456789abcdef" * 2
        for kinds in (("put",), ("part",)):
            for headers, words in (
                ({}, "ETag"),
                ({"ETag": f'"{wrong}"'}, "different bytes"),
                ({"ETag": f'"{wrong}"', "x-amz-server-side-encryption": "AES256"}, "different bytes"),
            ):

                def fault(r, go):
                    return Answer(headers=dict(headers)) if r.kind in kinds and "/c/0" in r.key else go()

                with Server(fault) as s:
                    self.sentence(self.convert(s, source=self.source if kinds == ("put",) else self.large), words)
                    assert s.content("out.zarr") == {}
        # an object that is encrypted with another key has another ETag
        for header in (
            {"x-amz-server-side-encryption": "aws:kms"},
            {"x-amz-server-side-encryption-customer-algorithm": "AES256"},
            {"ibm-sse-kp-enabled": "true"},
        ):

            def encrypted(r, go):
                answer = go()
                if r.kind == "put" and answer.status == 200:
                    answer.headers = {"ETag": f'"{wrong}"', **header}
                return answer

            with Server(encrypted) as s:
                assert self.convert(s).returncode == 0
                self.whole(s)

    @promise("An object counts as written only")
    def test_what_is_not_listed_is_not_there(self):
        def lost(r, go):
            return (
                Answer(headers={"ETag": f'"{s3_server.Stored(r.body).etag}"'})
                if r.kind == "put" and r.key.endswith("/c/3")
                else go()
            )

        with Server(lost) as s:
            self.sentence(self.convert(s), "lists other objects", "run the same command again to continue")
            assert "zarr.json" not in s.content("out.zarr")
            s.fault = None
            assert self.convert(s, "--resume").returncode == 0
            self.whole(s)
        with Server(lost) as s:
            self.sentence(self.convert(s, "--resume"), "lists only")
            assert "zarr.json" not in s.content("out.zarr")

    def test_a_journal_of_chunks_that_are_gone_is_not_believed(self):
        with Server() as s:
            for i in (0, 1):
                assert self.convert(s, "--partition", f"{i}/2").returncode == 0
            chunk = next(k for k in s.objects if k.endswith("/c/3"))
            for other in (None, b"shorter"):
                if other is None:
                    del s.objects[chunk]
                else:
                    s.objects[chunk] = s3_server.Stored(other)
                done = subprocess.run(
                    [COMMAND, "finalize", "-q", self.source, TARGET, "--endpoint", s.url],
                    env=environment(),
                    capture_output=True,
                    text=True,
                )
                self.sentence(done, "the size that its journal says")
                assert "zarr.json" not in s.content("out.zarr")
            assert self.convert(s, "--resume").returncode == 0
            self.whole(s)

    @promise("No response, header, list or XML")
    def test_lists_that_do_not_end(self):
        pages = iter(range(10**9))

        def same(r, go):
            return Answer(body=Server.list_xml([(f"out.zarr/x{next(pages)}", s3_server.Stored(b""))], "again"))

        def empty(r, go):
            return Answer(body=Server.list_xml([], f"token{next(pages)}"))

        def objects(r, go):
            return Answer(body=Server.list_xml([("out.zarr/x", s3_server.Stored(b""))], f"token{next(pages)}"))

        for kind in (same, empty, objects):
            for command in (
                ["convert", "-q", self.source, TARGET, "--overwrite"],
                ["verify", self.source, TARGET],
                ["inspect", TARGET],
            ):

                def fault(r, go):
                    return kind(r, go) if r.kind == "list" and "max-keys" not in r.query else go()

                with Server(fault) as s:
                    s.objects["out.zarr/zarr.json"] = s3_server.Stored(GROUP)
                    done = run(*command, "--endpoint", s.url)
                    assert done.returncode != 0
                    assert "does not end" in done.stdout + done.stderr

    @promise("No response, header, list or XML")
    def test_xml_that_is_deep_or_wide_kills_nothing(self):
        deep = b"<ListBucketResult>" + b"<a>" * 3_000_000
        for body in (
            deep,
            b"<a/>" * 3_000_000,
            b"<ListBucketResult>" + b"<a/>" * 3_000_000 + b"</ListBucketResult>",
            b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><ListBucketResult>&c;</ListBucketResult>',
            b"<ListBucketResult>&#0;</ListBucketResult>",
            b"<ListBucketResult",
            b"<ListBucketResult><Contents><Key>out.zarr/a</Key><Size>-1</Size></Contents></ListBucketResult>",
        ):
            for status in (200, 404) if body is deep else (200,):
                with Server(lambda r, go: Answer(status, body) if r.kind == "list" else go()) as s:
                    done = self.convert(s)
                    assert done.returncode == 1, done.stderr
                    assert len(done.stderr.splitlines()) == 1, done.stderr

    @promise("No response, header, list or XML")
    def test_answers_are_bounded(self):
        def huge(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(500):
                    handler.wfile.write(b" " * (1 << 20))

        def headers(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            with contextlib.suppress(OSError):
                while True:
                    handler.wfile.write(b"x: y\r\n" * 10000)

        for kind in (huge, headers):
            with Server(lambda r, go: kind if r.kind == "list" else go()) as s:
                self.sentence(self.convert(s), "response is too long")

    @promise("No response, header, list or XML")
    def test_a_server_that_is_slow_for_ever(self):
        def drip(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            with contextlib.suppress(OSError):
                while True:
                    handler.wfile.write(b"<")
                    time.sleep(0.2)

        def silence(handler):
            time.sleep(15)

        def one(kind):
            with Server(lambda r, go: kind if r.kind == "put" and r.key.endswith("zarr.json") else go()) as s:
                return self.convert(s)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in pool.map(one, (drip, silence)):
                self.sentence(done, "cannot be reached")

    @promise("A redirect leads neither to a")
    def test_redirects_are_not_followed(self):
        with Server() as other:
            for status in (301, 302, 307, 308):
                with Server(lambda r, go: Answer(status, b"", {"Location": other.url + r.raw_path})) as s:
                    self.sentence(self.convert(s), str(status))
            assert other.requests == []

    @promise("Of two conversions into one target")
    def test_one_of_two_conversions_says_no(self):
        for conditions in ("kept", "ignored", "rejected"):
            for options in ([], ["--overwrite"]):
                with Server(conditions=conditions) as s:
                    for i in range(3 if conditions == "kept" else 1):
                        s.objects.clear()
                        if options:
                            s.objects["out.zarr/zarr.json"] = s3_server.Stored(GROUP)
                            s.objects["out.zarr/old/zarr.json"] = s3_server.Stored(GROUP)
                        with concurrent.futures.ThreadPoolExecutor() as pool:
                            done = list(
                                pool.map(
                                    lambda source: (source, self.convert(s, *options, source=source)), (self.source, self.other)
                                )
                            )
                        good = [source for source, d in done if d.returncode == 0]
                        # the slower one may come after the end of the other: then it replaces what that one made
                        assert len(good) in ((1, 2) if options else (1,)), [d.stderr for _, d in done]
                        for _, d in done:
                            if d.returncode:
                                assert re.search("another conversion|exists", d.stderr)
                        assert s.content("out.zarr") in [self.good[g] for g in good]
                        if conditions != "kept":
                            assert "does not support conditional writes" in "".join(d.stderr for _, d in done)

    def test_a_conversion_that_still_runs_is_not_replaced(self):
        """It writes one chunk and waits for the answer; only its heartbeat shows that it is alive."""
        held = Held("/c/7")
        with Server(held) as s:
            first = subprocess.Popen(
                [COMMAND, "convert", "-q", self.source, TARGET, "--endpoint", s.url, "--threads", "1"],
                env=environment(ZARRBITS_S3_PATIENCE="3"),
            )
            assert held.waiting.wait(30)
            time.sleep(4)
            self.sentence(
                self.convert(s, "--overwrite", source=self.other, ZARRBITS_S3_PATIENCE="3"), "a moment ago", "try again in"
            )
            assert any("/alive-" in k for k in s.objects), list(s.objects)
            held.go_on.set()
            assert first.wait(30) == 0
            self.whole(s)

    def test_a_run_that_was_ended_leaves_nothing_to_wait_for(self):
        patient = {"ZARRBITS_S3_PATIENCE": "40"}  # a killed run would have to be waited for that long
        for options in ([], ["--resume"]):
            held = Held("grp/d/c/3", delay=0.1)  # so that the journal has the first array when the next one begins
            with Server(held) as s:
                words = [COMMAND, "convert", "-q", self.source, TARGET, "--endpoint", s.url, "--threads", "1", *options]
                first = subprocess.Popen(words, env=environment(**patient), stderr=subprocess.PIPE, text=True)
                assert held.waiting.wait(30)
                first.send_signal(signal.SIGINT)
                held.go_on.set()
                said = first.communicate(timeout=60)[1]
                assert first.returncode == -signal.SIGINT and "to continue" in said, (first.returncode, said)
                left = s.content("out.zarr")
                assert ".zarrbits-unfinished/plan" in left and ".zarrbits-unfinished/begun" not in left, list(left)
                assert not any("alive-" in key for key in left)
                s.fault = None
                began = time.monotonic()
                done = self.convert(s, *options, **patient)
                assert done.returncode == 0 and time.monotonic() - began < 30, done.stderr
                self.whole(s)

    def test_resume_beside_a_run(self):
        """It does not take the place of one that is alive; after one of several, it goes on at once."""
        patient = {"ZARRBITS_S3_PATIENCE": "40"}
        for options in ([], ["--partition", "0/2"]):
            held = Held("/c/2")
            with Server(held) as s:
                words = [COMMAND, "convert", "-q", self.source, TARGET, "--endpoint", s.url, "--threads", "1", *options]
                first = subprocess.Popen(words, env=environment(**patient))
                assert held.waiting.wait(30)
                self.sentence(self.convert(s, "--resume", **patient), "a moment ago")
                held.go_on.set()
                assert first.wait(30) == 0
                if options:
                    done = self.convert(s, "--resume", **patient)  # at once
                    assert (done.returncode, done.stderr) == (0, "")
                self.whole(s)

    def test_what_overwrite_removes(self):
        old = time.time() - 3600
        plan, began = b'{"zarrbits": "0.1", "source": "in.h5", "options": {}}', b'{"zarrbits": "0.1", "run": "", "sink": "x"}'
        for name, objects, removed in (
            ("an empty zarr.json", {"zarr.json": b"", "precious": b"x"}, False),
            ("a zarr.json of version 2", {"zarr.json": b'{"zarr_format": 2, "node_type": "group"}'}, False),
            ("another zarr.json", {"zarr.json": b'["node_type", "zarr_format"]'}, False),
            ("a folder of the name", {".zarrbits-unfinished/x": b"", "precious": b"x"}, False),
            ("a plan of another's", {".zarrbits-unfinished/plan": b'{"a": 1}', "precious": b"x"}, False),
            ("a store", {"zarr.json": GROUP, "a/c/0": b"x", "other/zarr.json": GROUP}, True),
            ("our plan", {".zarrbits-unfinished/plan": plan, ".zarrbits-unfinished/begun": b"", "a/c/0": b"x"}, True),
            ("what we began", {".zarrbits-unfinished/begun": began, "a/c/0": b"x"}, True),
        ):
            with Server() as s:
                for key, body in objects.items():
                    s.objects["out.zarr/" + key] = s3_server.Stored(body, modified=old)
                s.objects["out.zarr.neighbour/x"] = s.objects["out"] = s3_server.Stored(b"n")
                done = self.convert(s, "--overwrite")
                if removed:
                    assert (done.returncode, done.stderr) == (0, "")
                    self.whole(s)
                else:
                    self.sentence(done, "not a Zarr store")
                    assert s.content("out.zarr") == objects
                assert "out.zarr.neighbour/x" in s.objects
                assert "out" in s.objects

    @promise("An object counts as written only")
    def test_keys_that_are_not_ours_are_not_removed(self):
        """A server that lists more than it was asked for."""
        strange = [
            "precious",
            "out.zarr2/x",
            "out.zarr/../precious",
            "out.zarr//x",
            "out.zarr/a/../../precious",
            "out.zarr/./x",
            "/etc/passwd",
        ]

        def lists(r, go):
            answer = go()
            if r.kind == "list":
                entries, token = s.listed(r)
                answer.body = Server.list_xml(entries + [(k, s3_server.Stored(b"x")) for k in strange], token)
            return answer

        with Server(lists) as s:
            s.objects["out.zarr/zarr.json"] = s.objects["out.zarr/a/zarr.json"] = s3_server.Stored(GROUP)
            assert self.convert(s, "--overwrite").returncode == 0
            assert s.content("out.zarr") == self.good[self.source]
            assert [r.key for r in s.requests if r.kind != "list" and r.key in strange] == []
            assert [r.key for r in s.requests if r.kind == "delete" and not r.key.startswith("out.zarr/")] == []

    def test_objects_that_are_named_as_our_folder(self):
        path = self.folder / "named.h5"
        names = ("a", ".zarrbits-unfinished2", "g/.zarrbits-unfinished/begun", ".zarrbits-unfinished/plan")
        with h5py.File(path, "w") as f:
            for i, name in enumerate(names):
                f[name] = np.full(4, i)
        with Server() as s:
            done = self.convert(s, source=path)
            assert (done.returncode, done.stderr) == (0, "")
            chunks = [body for key, body in s.content("out.zarr").items() if key.endswith("/c/0")]
            assert sorted(chunks) == [np.full(4, i).tobytes() for i in range(len(names))]
            assert run("verify", path, TARGET, "--endpoint", s.url).returncode == 0

    def test_a_run_cleans_up_after_itself_alone(self):
        """The process that decodes is killed; what another run has there by then stays."""
        for stolen in (False, True):
            waiting, go_on = threading.Event(), threading.Event()

            def slow(r, go):
                answer = go()
                if r.kind == "put" and r.key.endswith("/c/7"):
                    waiting.set()
                    go_on.wait(30)
                return answer

            with Server(slow) as s:
                process = subprocess.Popen(
                    [COMMAND, "convert", "-q", self.source, TARGET, "--endpoint", s.url],
                    env=environment(),
                    stderr=subprocess.PIPE,
                    text=True,
                )
                assert waiting.wait(30)
                if stolen:
                    s.objects[MARK + "begun"] = s3_server.Stored(b'{"zarrbits": "0.1", "run": "another", "sink": "x"}')
                for child in children(process.pid):
                    os.kill(child, 9)
                go_on.set()
                assert "Killed" in process.communicate(timeout=600)[1]
                assert bool(s.content("out.zarr")) == stolen
