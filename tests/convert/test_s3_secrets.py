# SPDX-License-Identifier: BSL-1.0
"""Secrets of S3 stay where they are needed, and connections are those that were asked for."""

import pathlib
import resource
import shutil
import ssl
import subprocess

import pytest

from harness import COMMAND
from promises import promise
from s3_conversion import S3, TARGET, children, environment, run
from s3_server import SECRET, Server


def core_limit(pid):
    """Bytes that a core dump of a process may have."""
    lines = pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line.split()[4] for line in lines if line.startswith("Max core file size"))


class TestSecrets(S3):
    @promise("Credentials are never in stores, reports")
    def test_keys_are_in_no_command_line_and_no_core_dump(self):
        """The processes that have them do not leave them behind: not to other users, and not on the disk."""
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        commands, limits = [], []

        def look(r, go):
            if r.kind == "put" and (r.key.endswith("/c/7") or r.key.endswith("out.zarr/zarr.json")):
                for pid in (process.pid, *children(process.pid)):
                    commands.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
                limits.extend(core_limit(child) for child in children(process.pid))
            return go()

        with Server(look) as s:
            process = subprocess.Popen(
                [COMMAND, "convert", "-q", self.source, TARGET, "--endpoint", s.url, "--threads", "1"],
                env=environment(),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most)),
            )
            assert process.wait(60) == 0
            self.whole(s)
        assert len(commands) >= 4 and not any(SECRET.encode() in c for c in commands)
        assert set(limits) == {"0"}, limits

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

    def test_a_password_in_a_name_is_not_repeated(self):
        for name in (
            "s3://user:geheim@bucket/x",
            "s3://geheim@bucket/x",
            "s3://KEY:ge/geheim@bucket/x",
            "S3://user:geheim@bucket/x",
        ):
            for command in (
                ("convert", self.source, name),
                ("convert", name, self.folder / "x.zarr"),
                ("convert", "--concat", "time", name + "{a,b}.nc", self.folder / "x.zarr"),
                ("verify", self.source, name),
                ("finalize", self.source, name),
                ("export", self.folder / "x.zarr", name),
                ("convert", self.source, self.folder / "y.zarr", f"--report={name}"),
                *((single, name) for single in ("plan", "inspect", "suggest", "doctor")),
            ):
                done = run(*command)
                assert done.returncode in (1, 2) and done.stderr and "geheim" not in done.stderr + done.stdout, (command, done)
                if name.startswith("s3:") and command[:2] == ("convert", name):
                    self.sentence(done, "user name or a password", status=2)

    @promise("Keys, tokens, headers or passwords over")
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
        nothing = "/nonexistent.pem"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        with Server() as s:
            s.http.socket = context.wrap_socket(s.http.socket, server_side=True)
            s.url = f"https://localhost:{s.port}"
            self.sentence(self.convert(s), "AWS_CA_BUNDLE")
            self.sentence(self.convert(s, AWS_CA_BUNDLE="/nonexistent.pem"), "AWS_CA_BUNDLE")
            for options, variables in (
                ([], {"AWS_CA_BUNDLE": certificate, "SSL_CERT_FILE": nothing}),
                ([], {"AWS_CONFIG_FILE": config, "SSL_CERT_FILE": nothing}),
                ([], {"SSL_CERT_FILE": certificate}),
                (["--ca-file", certificate], {"AWS_CA_BUNDLE": nothing}),
            ):
                s.objects.clear()
                done = self.convert(s, *options, **variables)
                assert (done.returncode, done.stderr) == (0, "")
                self.whole(s)
