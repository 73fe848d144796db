# SPDX-License-Identifier: BSL-1.0
"""Secrets of S3 stay where they are needed, and connections are those that were asked for."""

import contextlib
import pathlib
import shutil
import ssl
import subprocess
import time

import pytest

from harness import COMMAND
from processes import SANITIZED
from s3_conversion import S3, TARGET, children, environment, run
from s3_server import KEY, SECRET, Server


def memory_has(pid, what):
    """None where that cannot be told."""
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                place, rights, *_ = line.split()
                if not rights.startswith("rw"):
                    continue
                first, last = (int(n, 16) for n in place.split("-"))
                with contextlib.suppress(OSError, OverflowError):
                    memory.seek(first)
                    if what in memory.read(last - first):
                        return True
        return False
    except PermissionError:
        return None


class TestSecrets(S3):
    @pytest.mark.skipif(
        SANITIZED, reason="SANITIZERS KEEP WHAT WAS FREED, IN TERABYTES OF ADDRESSES: the other builds look for the secret key"
    )
    def test_no_secret_in_the_process_that_decodes(self):
        credentials = self.folder / "credentials"
        credentials.write_text(f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
        from_file = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": str(credentials)}
        for variables in ({}, from_file):
            looked = []

            def look(r, go):
                if r.kind == "put" and (r.key.endswith("/c/7") or r.key.endswith("out.zarr/zarr.json")):
                    time.sleep(0.05)
                    for child in children(process.pid):
                        looked.append((memory_has(child, SECRET.encode()), memory_has(child, KEY.encode())))
                    for pid in (process.pid, *children(process.pid)):
                        assert SECRET.encode() not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                return go()

            with Server(look) as s:
                process = subprocess.Popen(
                    [COMMAND, "convert", "-q", self.source, TARGET, "--endpoint", s.url, "--threads", "1"],
                    env=environment(**variables),
                )
                assert process.wait(60) == 0
                self.whole(s)
                if any(has is None for pair in looked for has in pair):
                    pytest.skip(
                        "THE MEMORY OF A CHILD PROCESS CANNOT BE READ HERE: whether it has the secret key was not looked at"
                    )
                assert set(looked) == {(False, True)}  # it looks where the access key is found
                assert len(looked) >= 2

    def test_a_password_in_the_endpoint_is_not_repeated(self):
        for endpoint in (
            "http://user:geheim@127.0.0.1:1",
            "user:geheim@127.0.0.1",
            "https://user:ge/geheim@host",
            "http://geheim@[::1]:1/x",
        ):
            for more in ({"endpoint": ["--endpoint", endpoint]}, {"endpoint": [], "AWS_ENDPOINT_URL": endpoint}):
                options = more.pop("endpoint")
                done = run("convert", self.source, TARGET, *options, "--report", self.folder / "report.json", **more)
                self.sentence(done, "user name or a password", status=2)
                assert "geheim" not in done.stderr + done.stdout
                assert not (self.folder / "report.json").exists()
        assert "geheim" not in run("convert", self.source, self.folder / "x.zarr", "--endpoint", "http://u:geheim@h").stderr

    def test_plain_http_to_another_machine_is_warned_of(self):
        for url, warned in (
            ("http://192.0.2.1:1", True),
            ("http://127.evil.example:1", True),
            ("http://127.0.0.1:1", False),
            ("http://localhost:1", False),
            ("http://[::1]:1", False),
            ("https://192.0.2.1:1", False),
        ):
            # no request leaves this machine
            done = run(
                "convert",
                self.source,
                TARGET,
                "--endpoint",
                url,
                http_proxy="http://127.0.0.1:1",
                https_proxy="http://127.0.0.1:1",
                no_proxy="127.0.0.1,localhost,::1",
            )
            assert done.returncode == 1
            assert ("plain http" in done.stderr) == warned, done.stderr

    def test_certificates_of_ones_own(self):
        if not shutil.which("openssl"):
            pytest.skip("THERE IS NO openssl, WHICH MAKES A CERTIFICATE: AWS_CA_BUNDLE and ca_bundle were not looked at")
        key, certificate, config = (str(self.folder / n) for n in ("key.pem", "certificate.pem", "config"))
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
                "-keyout",
                key,
                "-out",
                certificate,
            ],
            check=True,
            capture_output=True,
        )
        pathlib.Path(config).write_text(f"[default]\nca_bundle = {certificate}\n")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        with Server() as s:
            s.http.socket = context.wrap_socket(s.http.socket, server_side=True)
            s.url = f"https://localhost:{s.port}"
            self.sentence(self.convert(s), "AWS_CA_BUNDLE")
            self.sentence(self.convert(s, AWS_CA_BUNDLE="/nonexistent.pem"), "AWS_CA_BUNDLE")
            for variables in ({"AWS_CA_BUNDLE": certificate}, {"AWS_CONFIG_FILE": config}):
                s.objects.clear()
                done = self.convert(s, **variables)
                assert (done.returncode, done.stderr) == (0, "")
                self.whole(s)
