# SPDX-License-Identifier: BSL-1.0
"""Where the credentials for S3 come from: each way once, and what is wrong with it; that they are replaced before they end,
or when the server says that they have ended; anonymous requests; the region of a bucket."""

import hashlib
import json
import shlex
import sys
import threading
import time

import pytest

from aws_servers import Container, Instance, Keys, Service, SignedServer, Sts, in_time, region_of, used_keys
from harness import contents
from promises import promise
from s3_conversion import S3, TARGET, run
from s3_server import Answer, Stored, error

ROLE = "arn:aws:iam::123456789012:role/reader"
USER = Keys("user", temporary=False)


def settings(**more):
    """The environment of somebody who has nothing: no keys, no profile, no instance."""
    nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"}
    return nothing | {"ZARRBITS_S3_PATIENCE": "5"} | {k: str(v) for k, v in more.items()}


class Credentials(S3):
    """S3.convert() for somebody who has nothing but `variables`."""

    def convert(self, server, *options, **variables):
        return super().convert(server, *options, **settings(**variables))

    def files(self, credentials="", config=""):
        """Variables that name profile files of this content."""
        for name, text in (("credentials", credentials), ("config", config)):
            (self.folder / name).write_text(text)
        return {
            "AWS_SHARED_CREDENTIALS_FILE": self.folder / "credentials",
            "AWS_CONFIG_FILE": self.folder / "config",
        }

    def works(self, server, *options, **variables):
        """The conversion has the right store, and is silent."""
        server.objects.clear()
        done = self.convert(server, *options, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        self.whole(server)
        return done

    def reads(self, server, *options, **variables):
        """The same with a source in S3."""
        server.objects["in.h5"] = Stored(self.source.read_bytes())
        target = self.folder / "read.zarr"
        done = self.convert(server, "--overwrite", *options, source="s3://bucket/in.h5", target=target, **variables)
        assert (done.returncode, done.stderr) == (0, "") and server.wrong_signatures == []
        assert contents(target) == self.good[self.source]

    def refused(self, done, *words, secrets=()):
        """It fails with one sentence that has these words, and no secret."""
        self.sentence(done, *words)
        for secret in secrets:
            assert secret not in done.stderr + done.stdout


class TestEnvironmentAndProfiles(Credentials):
    def test_a_session_token_of_the_environment(self):
        keys = Keys("env")
        with SignedServer(keys) as s:
            self.works(s, **keys.variables)
            assert s.used == [keys.access]
            # a token of somebody else's
            other = keys.variables | {"AWS_SESSION_TOKEN": Keys("x").token}
            self.refused(self.convert(s, **other), "SignatureDoesNotMatch", secrets=keys.secrets)

    def test_a_session_token_of_a_profile(self):
        keys, other = Keys("lab"), Keys("other", temporary=False)
        with SignedServer(keys) as s:
            for files in (
                self.files(f"[default]\n{other.lines}\n[lab]\n{keys.lines}", "[profile lab]\nregion = eu-lab-1\n"),
                self.files(f"[default]\n{other.lines}", f"[profile lab]\nregion = eu-lab-1\n{keys.lines}"),
                self.files("", f'[profile "lab"]\nREGION = eu-lab-1\n{keys.lines}[sso-session lab]\nregion = x\n'),
            ):
                self.works(s, **files, AWS_PROFILE="lab")
                self.works(s, "--aws-profile", "lab", **files)
                assert {region_of(r.headers) for r in s.requests} == {"eu-lab-1"}
            assert s.used == [keys.access]

    def test_which_of_several_keys(self):
        keys, others = Keys("lab"), Keys("env")
        files = self.files(f"[lab]\n{keys.lines}[empty]\nregion = x-1\n")
        with SignedServer(keys, others) as s:
            for expected, options, variables in (
                (others, [], {"AWS_DEFAULT_PROFILE": "lab"}),
                (others, [], {"AWS_PROFILE": "lab"}),  # as in the AWS SDK for Python
                (others, [], {"AWS_PROFILE": "empty"}),
                (keys, ["--aws-profile", "lab"], {"AWS_PROFILE": "empty"}),
            ):
                s.used.clear()
                self.works(s, *options, **files, **others.variables, **variables)
                assert s.used == [expected.access], (options, variables)
            # keys of the environment are not those of a profile that was asked for by an option
            done = self.convert(s, "--aws-profile", "empty", **files, **others.variables)
            self.refused(done, "no credentials", '"empty"', "--no-sign-request", secrets=others.secrets)
            done = self.convert(s, "--aws-profile", "missing", **files, **others.variables)
            self.refused(done, 'no profile "missing"')

    def test_no_credentials(self):
        with SignedServer(USER) as s:
            done = self.convert(s)
            self.refused(done, f'"{TARGET}"', "AWS_ACCESS_KEY_ID", '"default"', "--no-sign-request")
            # half of a pair is none
            self.refused(self.convert(s, AWS_ACCESS_KEY_ID=USER.access), "no credentials")
            self.refused(self.convert(s, **self.files(f"[default]\naws_secret_access_key = {USER.secret}\n")), "no credentials")
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"):
                broken = USER.variables | {name: "two\r\nx-header: lines"}
                self.refused(self.convert(s, **broken), "characters that a header cannot have", secrets=[USER.secret])
            assert s.requests == []

    def test_a_profile_that_needs_the_aws_cli(self):
        with SignedServer(USER) as s:
            config = "[profile lab]\nlogin_session = x\n"
            done = self.convert(s, **self.files("", config), AWS_PROFILE="lab")
            self.refused(done, "credential_process = aws configure export-credentials --profile lab --format process")
            self.works(s, **self.files(f"[lab]\n{USER.lines}", config), AWS_PROFILE="lab")

    def test_a_sign_in(self):
        """What "aws sso login" left in ~/.aws/sso/cache, in both forms of a profile."""
        keys, token = Keys("sso"), "eyJ.a-sign-in_token"
        given = {
            "accessKeyId": keys.access,
            "secretAccessKey": keys.secret,
            "sessionToken": keys.token,
            "expiration": int(time.time() + 3600) * 1000,
        }
        answers = [(200, json.dumps({"roleCredentials": given}))]

        def answer(r):
            if r.headers.get("x-amz-sso_bearer_token") != token or r.method != "GET":
                return 401, "{}"
            return answers[-1]

        url = "https://d-1.awsapps.com/start"
        role = "sso_account_id = 123456789012\nsso_role_name = A Role\n"
        by_session = (
            f"[profile lab]\n{role}sso_session = mine\n[sso-session mine]\nsso_region = eu-lab-1\nsso_start_url = {url}\n"
        )
        by_url = f"[profile lab]\n{role}sso_region = eu-lab-1\nsso_start_url = {url}\n"
        cache = self.folder / ".aws/sso/cache"
        cache.mkdir(parents=True)
        with SignedServer(keys) as s, Service(answer) as sso:
            variables = {"AWS_PROFILE": "lab", "AWS_ENDPOINT_URL_SSO": sso.url, "HOME": self.folder}

            def sign_in(name, ends_in=3600, **more):
                content = {"accessToken": token, "expiresAt": in_time(ends_in), "region": "eu-lab-1", "startUrl": url} | more
                path = cache / f"{hashlib.sha1(name.encode()).hexdigest()}.json"  # noqa: S324
                path.write_text(json.dumps(content))

            for config, name in ((by_session, "mine"), (by_url, url)):
                files = self.files("", config)
                self.refused(self.convert(s, **files, **variables), "aws sso login --profile lab")
                sign_in(name)
                self.works(s, **files, **variables)
                assert sso.asked[-1].path == "/federation/credentials?account_id=123456789012&role_name=A%20Role"
            sign_in("mine", ends_in=-60)
            files = self.files("", by_session)
            self.refused(self.convert(s, **files, **variables), "has ended", "aws sso login", secrets=[token])
            sign_in("mine", accessToken="another")  # noqa: S106
            self.refused(self.convert(s, **files, **variables), "401", "aws sso login", secrets=[token, "another"])
            sign_in("mine")
            for status, body, word in ((403, "{}", "403"), (200, "[]", "JSON"), (200, '{"roleCredentials": {}}', "complete set")):
                answers.append((status, body))
                self.refused(self.convert(s, **files, **variables), word, secrets=[token])
            far = {**variables, "AWS_ENDPOINT_URL_SSO": "http://192.0.2.1"}
            self.refused(self.convert(s, **files, **far), "plain http", secrets=[token])
            without = self.files("", by_session.replace("sso_region = eu-lab-1\n", ""))
            self.refused(self.convert(s, **without, **variables), "sso_region")


class TestAnonymous(Credentials):
    def test_requests_are_not_signed(self):
        with SignedServer() as s:
            for options, variables in (
                (["--no-sign-request"], {}),
                (["--no-sign-request"], USER.variables),
                ([], {"AWS_NO_SIGN_REQUEST": "YES"} | USER.variables),
                ([], {"AWS_SKIP_SIGNATURE": "true"}),
                ([], self.files("", "[default]\nno_sign_request = true\n")),
            ):
                s.requests.clear()
                self.reads(s, *options, **variables)
                assert s.requests
                for r in s.requests:
                    names = {n.lower() for n in r.headers}
                    assert not names & {"authorization", "x-amz-security-token"}, names

    def test_a_bucket_that_is_not_public(self):
        with SignedServer(USER) as s:
            s.objects["in.h5"] = Stored(self.source.read_bytes())
            done = self.convert(s, "--no-sign-request", source="s3://bucket/in.h5", target="none.zarr", **USER.variables)
            self.refused(done, "anonymous", "--no-sign-request")
            s.wrong_signatures.clear()
            self.works(s, "--no-sign-request", **USER.variables)  # what is written is signed all the same
            self.works(s, **USER.variables, AWS_NO_SIGN_REQUEST="no")


class TestRoles(Credentials):
    def profile(self, role, more=""):
        return self.files(
            f"[user]\n{USER.lines}",
            f"[profile lab]\nrole_arn = {role}\nregion = eu-lab-1\n{more}",
        ) | {"AWS_PROFILE": "lab"}

    def test_a_role_of_another_profile(self):
        keys = Keys("role")
        with SignedServer(keys) as s, Sts([keys], USER) as sts:
            more = "source_profile = user\nexternal_id = e/1\nrole_session_name = me\nduration_seconds = 900\n"
            self.works(s, **self.profile(ROLE, more), AWS_ENDPOINT_URL_STS=sts.url)
            assert s.used == [keys.access]
            assert sts.wrong == []
            expected = {"Action": "AssumeRole", "RoleArn": ROLE, "RoleSessionName": "me"}
            assert sts.forms[0] == expected | {"Version": "2011-06-15", "ExternalId": "e/1", "DurationSeconds": "900"}
            assert region_of(sts.asked[0].headers) == "eu-lab-1"
            # with a name of our own, and the keys in the same profile
            sts.forms.clear()
            own = self.files("", f"[default]\nrole_arn = {ROLE}\nsource_profile = default\n{USER.lines}")
            self.works(s, **own, AWS_ENDPOINT_URL=sts.url)
            assert sts.forms[0]["RoleSessionName"].startswith("zarrbits-") and "ExternalId" not in sts.forms[0]

    def test_a_role_of_a_role(self):
        between, keys = Keys("between"), Keys("role")
        first = "arn:aws:iam::1:role/first"
        with SignedServer(keys) as s, Sts([between, keys] * 9, USER, between) as sts:
            more = f"source_profile = first\n[profile first]\nrole_arn = {first}\nsource_profile = user\n"
            self.works(s, **self.profile(ROLE, more), AWS_ENDPOINT_URL_STS=sts.url)
            assert [f["RoleArn"] for f in sts.forms[:2]] == [first, ROLE]
            assert [used_keys(r.headers) for r in sts.asked[:2]] == [USER.access, between.access]

    def test_a_role_of_the_environment(self):
        keys = Keys("role")
        with SignedServer(keys) as s, Sts([keys], USER) as sts:
            variables = self.profile(ROLE, "credential_source = Environment\n") | USER.variables
            del variables["AWS_PROFILE"]  # beside which the keys themselves would be used
            self.works(s, "--aws-profile", "lab", **variables, AWS_ENDPOINT_URL_STS=sts.url)
        with SignedServer(keys) as s, Sts([keys], USER) as sts, Container([Keys("task")]) as task:
            variables = self.profile(ROLE, "credential_source = EcsContainer\n")
            done = self.convert(
                s, **variables, AWS_ENDPOINT_URL_STS=sts.url, AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task"
            )
            assert task.asked
            self.refused(done, ROLE, "403", secrets=Keys("task").secrets)  # not a user of this role

    def test_what_is_wrong_with_a_role(self):
        loop = "source_profile = b\n[profile b]\nrole_arn = y\nsource_profile = lab\n"
        for more, words in (
            ("", ["either source_profile or credential_source"]),
            ("source_profile = user\ncredential_source = Environment\n", ["either source_profile or credential_source"]),
            ("source_profile = nobody\n", ['"nobody"', "no credentials"]),
            ("source_profile = lab\n", ["leads back"]),
            (loop, ["leads back"]),
            ("credential_source = Moon\n", ["unknown credential_source"]),
            ("credential_source = Environment\n", ["gives no credentials"]),
            ("credential_source = Ec2InstanceMetadata\n", ["gives no credentials"]),
            ("source_profile = user\nmfa_serial = x\n", ["MFA"]),
            ("web_identity_token_file = /nonexistent\n", ["/nonexistent", "web identity token"]),
        ):
            with SignedServer(USER) as s:
                self.refused(self.convert(s, **self.profile(ROLE, more)), *words, secrets=USER.secrets)
                assert s.requests == []

    def test_answers_of_sts_that_are_not_credentials(self):
        whole = Keys("role")
        good = Sts([whole], USER).answer
        for status, body, words in (
            (403, Sts.error("AccessDenied", "not you"), ["403", "AccessDenied", "not you"]),
            (200, "<html/>", ["complete set"]),
            (200, "", ["complete set"]),
            (200, "<a>" * 50_000, ["complete set"]),
            (200, lambda text: text.replace(whole.token, ""), ["complete set"]),
            (200, lambda text: text.replace(whole.access, "two&#10;lines"), ["complete set"]),
            (200, lambda text: text.replace(whole.expiration, "soon"), ["when its credentials end"]),
            (200, lambda text: text.replace(whole.expiration, in_time(-60)), ["have ended"]),
            (200, " " * (1 << 20), ["too long"]),
            (503, "", ["503"]),
        ):
            answer = (lambda r: (200, body(good(r)[1]))) if callable(body) else (lambda r: (status, body))
            with SignedServer(whole) as s, Service(answer) as sts:
                variables = self.profile(ROLE, "source_profile = user\n") | {"AWS_ENDPOINT_URL_STS": sts.url}
                done = self.convert(s, **variables, ZARRBITS_S3_PATIENCE="0.5")
                self.refused(done, *words, secrets=USER.secrets + whole.secrets)
                assert s.requests == []
        with SignedServer(whole) as s:
            variables = self.profile(ROLE, "source_profile = user\n")
            for url, words in (("http://127.0.0.1:1", ["cannot be reached"]), ("http://u:geheim@h", ["user name"])):
                done = self.convert(s, **variables, AWS_ENDPOINT_URL_STS=url, ZARRBITS_S3_PATIENCE="0.5")
                assert done.returncode != 0 and "geheim" not in done.stderr
                for word in words:
                    assert word in done.stderr

    def test_a_web_identity(self):
        keys, token, path = Keys("web"), "eyJ.a-web.identity_token", self.folder / "token"
        path.write_text(token + "\n")
        by_variables = {"AWS_WEB_IDENTITY_TOKEN_FILE": path, "AWS_ROLE_ARN": ROLE, "AWS_ROLE_SESSION_NAME": "pod"}
        by_profile = self.profile(ROLE, f"web_identity_token_file = {path}\nrole_session_name = pod\n")
        with SignedServer(keys) as s, Sts([keys], identity=token) as sts:
            for variables in (by_variables, by_profile):
                self.works(s, **variables, AWS_ENDPOINT_URL_STS=sts.url)
                assert sts.forms[-1]["RoleArn"] == ROLE and sts.forms[-1]["RoleSessionName"] == "pod"
            assert s.used == [keys.access]
            # by plain http to another machine, which a proxy stands for here
            far = {"AWS_ENDPOINT_URL_STS": "http://sts.example.org", "http_proxy": sts.url, "no_proxy": "127.0.0.1"}
            done = self.convert(s, "--overwrite", **by_variables, **far)
            assert done.returncode == 0 and "web identity token goes to" in done.stderr and token not in done.stderr
            assert "sts.example.org" in done.stderr and "plain http" in done.stderr
            only_token = {k: v for k, v in by_variables.items() if k != "AWS_ROLE_ARN"}
            self.refused(self.convert(s, **only_token), "AWS_ROLE_ARN")
            # the server repeats the token in its error
            path.write_text("another.web.identity")
            done = self.convert(s, **by_variables, AWS_ENDPOINT_URL_STS=sts.url)
            self.refused(done, "InvalidIdentityToken", ROLE, secrets=["another.web.identity"])


class TestProcess(Credentials):
    def profile(self, command):
        return self.files("", f"[profile lab]\ncredential_process = {command}\n") | {"AWS_PROFILE": "lab"}

    def python(self, code):
        """A command that runs this code; its words need quotes."""
        return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"

    def test_it_prints_credentials(self):
        for keys in (Keys("process"), Keys("lasting", temporary=False)):
            more = {"Version": 1} | ({} if keys.temporary else {"Expiration": None})
            output = self.folder / 'a name\'s "quotes".json'
            output.write_text(keys.json("SessionToken", **more))
            with SignedServer(keys) as s:
                # each way to write such a name
                self.works(s, **self.profile("cat " + shlex.quote(str(output))))
                self.works(s, **self.profile('cat "' + str(output).replace('"', '\\"') + '"'))
                assert s.used == [keys.access]

    @promise("A program that is named as")
    def test_no_shell(self):
        seen = self.folder / "seen"
        with SignedServer(USER) as s:
            done = self.convert(s, **self.profile(f"echo x; touch {seen} && $HOME `touch {seen}` > {seen}"))
            self.refused(done, '"lab"', "JSON")
        assert not seen.exists()

    def test_what_is_wrong_with_it(self):
        keys = Keys("process")
        good = json.loads(keys.json("SessionToken", Version=1))

        def prints(value):
            return self.python(f"print({json.dumps(value)!r})")

        for command, words in (
            ("/nonexistent/program --password geheim", ["cannot be started"]),
            ("'not closed geheim", ["closed quotes"]),
            (self.python("import sys; sys.exit(7) # geheim"), ["status 7"]),
            (self.python("import os; os.kill(os.getpid(), 9) # geheim"), ["signal"]),
            (self.python("print('nonsense geheim')"), ["JSON"]),
            (prints([good]), ["JSON"]),
            (prints(good | {"Version": 2}), ["Version"]),
            (prints({k: v for k, v in good.items() if k != "Version"}), ["Version"]),
            (prints({k: v for k, v in good.items() if k != "SecretAccessKey"}), ["complete set"]),
            (prints(good | {"AccessKeyId": 5}), ["AccessKeyId", "not a text"]),
            (prints(good | {"SessionToken": "two\nlines"}), ["complete set"]),
            (prints(good | {"Expiration": "tomorrow"}), ["when its credentials end"]),
            (prints(good | {"Expiration": in_time(-5)}), ["have ended"]),
            (self.python("while True: print('x' * 1000)"), ["more than credentials take"]),
        ):
            with SignedServer(keys) as s:
                done = self.convert(s, **self.profile(command))
                assert done.returncode == 1, done.stderr
                assert s.requests == []
                said = [line for line in done.stderr.splitlines() if line.startswith("zarrbits: ")]
                assert len(said) == 1, done.stderr
                for word in ('"lab"', *words):
                    assert word in said[0], (command, done.stderr)
                for secret in ("geheim", *keys.secrets):
                    assert secret not in done.stderr

    @pytest.mark.parametrize("code", ["import time; time.sleep(60)", "import os, time; os.close(1); time.sleep(60)"])
    def test_it_hangs(self, code):
        begun = time.time()
        with SignedServer(USER) as s:
            done = self.convert(s, **self.profile(self.python(code)), ZARRBITS_S3_PATIENCE="2")
            self.refused(done, '"lab"', "did not end within 2 seconds")
        assert time.time() - begun < 30

    def test_a_child_of_it_hangs(self):
        """It has our standard error, too: whoever waits for the end of that waits no longer than for the command."""
        code = "import subprocess, sys, time; subprocess.Popen(['sleep', '25']); print('why it hangs', file=sys.stderr, flush=True); time.sleep(60)"  # noqa: E501
        begun = time.time()
        with SignedServer(USER) as s:
            done = self.convert(s, **self.profile(self.python(code)), ZARRBITS_S3_PATIENCE="2")
            assert done.returncode == 1 and "did not end within 2 seconds" in done.stderr, done.stderr
            assert "why it hangs\n" in done.stderr
        assert time.time() - begun < 15


class TestContainerAndInstance(Credentials):
    def test_of_a_container(self):
        keys, token = Keys("task"), self.folder / "authorization"
        token.write_text("from-a-file\n")
        for authorization, variables in (
            (None, {}),
            ("Basic x=", {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic x="}),
            (
                "from-a-file",
                {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "another"},
            ),
        ):
            with SignedServer(keys) as s, Container([keys], authorization) as task:
                self.works(s, **variables, AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task")
                assert s.used == [keys.access]
                # keys of the environment come first
                before = len(task.asked)
                s.keys[USER.access] = USER
                self.works(s, **USER.variables, AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task")
                assert len(task.asked) == before

    @promise("Proxies see no requests for metadata")
    def test_what_is_wrong_with_a_container(self):
        for url in (
            "http://0.0.0.0:1/task",
            "http://127.0.0.1:1@0.0.0.0:1/task",
            "http://127.0.0.1.invalid/task",
            "http://169.254.170.2.invalid/task",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "http:///task",
        ):
            with SignedServer(USER) as s:
                done = self.convert(s, AWS_CONTAINER_CREDENTIALS_FULL_URI=url)
                self.refused(done, "AWS_CONTAINER_CREDENTIALS_FULL_URI")
        for answer, words in (
            ((404, ""), ["404"]),
            ((200, "geheim"), ["JSON"]),
            ((200, "{}"), ["complete set"]),
            ((200, Keys("x", -5).json()), ["have ended"]),
            ((200, Keys("x", temporary=False).json()), ["complete set"]),
            ((200, '{"AccessKeyId": ' + "[" * 100_000), ["JSON"]),
            ((200, "x" * (1 << 20)), ["too long"]),
        ):
            with SignedServer(USER) as s, Container([answer]) as task:
                done = self.convert(s, AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task")
                self.refused(done, "the container's credential server", *words, secrets=["geheim", *Keys("x").secrets])
                assert s.requests == []

    @promise("Proxies see no requests for metadata")
    def test_of_an_instance(self):
        keys = Keys("instance")
        with SignedServer(keys) as s, Instance([keys]) as instance:
            variables = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": instance.url + "/", "AWS_EC2_METADATA_DISABLED": "false"}
            self.works(s, **variables)
            assert s.used == [keys.access]
            assert [r.method for r in instance.asked[:3]] == ["PUT", "GET", "GET"]
            asked = len(instance.asked)
            self.refused(self.convert(s, **variables | {"AWS_EC2_METADATA_DISABLED": "True"}), "no credentials")
            assert len(instance.asked) == asked
            # a proxy has nothing to do with it, not even its own metadata
            with Service(lambda r: (200, "x")) as proxy:
                by_name = variables | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://localhost:{instance.port}"}
                self.works(s, **by_name, http_proxy=proxy.url, no_proxy="127.0.0.1")
                assert proxy.asked == []

    def test_what_is_wrong_with_an_instance(self):
        for answers, role, words in (
            ([Keys("x")], "", ["no credentials"]),
            ([(404, "")], "a-role", ["404"]),
            ([(200, '{"Code": "Failed", "Message": "no"}')], "a-role", ["complete set"]),
        ):
            with SignedServer(USER) as s, Instance(answers, role) as instance:
                variables = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": instance.url, "AWS_EC2_METADATA_DISABLED": ""}
                self.refused(self.convert(s, **variables), *words)
        begun = time.time()  # a laptop does not wait for a server that it does not have
        with SignedServer(USER) as s, Service(lambda r: (time.sleep(20), (200, ""))[1]) as silent:
            variables = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": silent.url, "AWS_EC2_METADATA_DISABLED": ""}
            self.refused(self.convert(s, **variables, ZARRBITS_S3_PATIENCE="60"), "no credentials")
        assert time.time() - begun < 15


class Ending:
    """A fault: keys that end after some requests with them. `then` is called once, before the first refusal."""

    def __init__(self, keys, status, code, after, then=lambda: None):
        self.keys, self.status, self.code, self.after, self.then = keys, status, code, after, then
        self.requests, self.is_over, self.lock = 0, False, threading.Lock()

    def __call__(self, r, go):
        if used_keys(r.headers) != self.keys.access:
            return go()
        with self.lock:
            self.requests += 1
            if self.requests > self.after and not self.is_over:
                self.then()
                self.is_over = True
        if not self.is_over:
            return go()
        return Answer(self.status) if r.method == "HEAD" else error(self.status, self.code)


class TestEnds(Credentials):
    """Each process of the command asks by itself, so that servers count more than one request."""

    @promise("The process that reads has the")
    def test_they_are_replaced_before_they_end(self):
        first, second = Keys("first", 200), Keys("second")

        with SignedServer(first, second) as s, Container([first, second]) as task:
            self.works(s, AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task")
            assert s.used[-1] == second.access
            assert task.turns.given <= 6  # it is not asked for each request

    def test_the_old_ones_are_good_until_they_end(self):
        first = Keys("first", 200)
        with SignedServer(first) as s, Container([first, (403, "")]) as task:
            self.works(s, AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task", ZARRBITS_S3_PATIENCE="0.3")
            assert 1 < task.turns.given <= 8  # one attempt in each process, and not one for each request

    @pytest.mark.parametrize(
        "status, code",
        [
            (400, "ExpiredToken"),
            (403, "ExpiredToken"),
            (400, "InvalidToken"),
            (403, "RequestExpired"),
            (403, "InvalidAccessKeyId"),
        ],
    )
    def test_they_end_in_the_middle(self, status, code):
        for after in (0, 3, 11):
            first, second = Keys("first"), Keys("second")
            end = Ending(first, status, code, after)
            with SignedServer(first, second, fault=end) as s, Container(lambda: second if end.is_over else first) as task:
                self.works(s, "--threads", "4", AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task")
                assert end.is_over and s.used == [first.access, second.access]
                assert task.turns.given <= 6  # threads ask together

    def test_a_profile_gets_new_keys_in_the_middle(self):
        first, second = Keys("first"), Keys("second")
        files = self.files(f"[default]\n{first.lines}")

        def replace():
            new = self.folder / "new"
            new.write_text(f"[default]\n{second.lines}")
            new.replace(files["AWS_SHARED_CREDENTIALS_FILE"])

        with SignedServer(first, second, fault=Ending(first, 400, "ExpiredToken", 7, replace)) as s:
            self.works(s, **files)
            assert s.used == [first.access, second.access]

    def test_there_are_no_new_ones(self):
        keys = Keys("env")
        with SignedServer(keys, fault=Ending(keys, 400, "ExpiredToken", 7)) as s:
            done = self.convert(s, **keys.variables)  # the answer to a HEAD does not say why
            self.refused(done, " ended", "400", secrets=keys.secrets)
            assert "zarr.json" not in s.content("out.zarr")
        with SignedServer(keys, fault=lambda r, go: error(400, "ExpiredToken")) as s:
            self.refused(self.convert(s, **keys.variables), "ExpiredToken", "have ended", secrets=keys.secrets)
        # other keys, which have no access: this is not repeated forever
        turns = [Keys(f"k{i}") for i in range(50)]
        with SignedServer(*turns, fault=lambda r, go: error(403, "ExpiredToken")) as s, Container(turns) as task:
            done = self.convert(s, AWS_CONTAINER_CREDENTIALS_FULL_URI=task.url + "/task")
            self.refused(done, "have ended")
            assert len(s.requests) <= 4


class TestRegion(Credentials):
    def redirects(self, answer_of):
        def fault(r, go):
            region = region_of(r.headers)
            return go() if region == "eu-lab-1" else answer_of(r, region)

        return fault

    @promise("They go only to the server")
    def test_the_server_says_in_which_region_a_bucket_is(self):
        def moved(r, _):
            return Answer(301, b"", {"x-amz-bucket-region": "eu-lab-1", "Location": "http://127.0.0.1:1/"})

        def bad_request(r, _):
            return Answer(400, b"", {"x-amz-bucket-region": "eu-lab-1"})

        def malformed(r, _):
            text = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-lab-1</Region></Error>"
            return Answer(400, text.encode())

        for answer_of in (moved, bad_request, malformed):
            with SignedServer(USER, fault=self.redirects(answer_of)) as s:
                self.works(s, **USER.variables)
                wrong = [r for r in s.requests if region_of(r.headers) != "eu-lab-1"]
                assert 1 <= len(wrong) <= 4, len(wrong)  # once for each client of a few processes

    @promise("They go only to the server")
    def test_what_is_not_a_region(self):
        for region in ("server.invalid/x", "a b", "x" * 100, "EU", "eu-lab-1\u00e9", ""):

            def elsewhere(r, go):
                return Answer(301, b"", {"x-amz-bucket-region": region.encode().decode("latin-1")})

            with SignedServer(USER, fault=elsewhere) as s:
                self.refused(self.convert(s, **USER.variables), "301")
                assert {region_of(r.headers) for r in s.requests} == {"us-east-1"}

    def test_a_bucket_that_is_always_elsewhere(self):
        count = []

        def elsewhere(r, go):
            count.append(r)
            return Answer(301, b"", {"x-amz-bucket-region": f"x-{len(count)}"})

        with SignedServer(USER, fault=elsewhere) as s:
            self.refused(self.convert(s, **USER.variables), "301")
            assert len(count) <= 9  # three for each of a few processes


class TestSecretsOfCredentials(Credentials):
    def test_they_are_nowhere(self):
        """Not in the store, the report, the log or the plan."""
        base, keys = USER, Keys("role")
        files = self.files(f"[user]\n{base.lines}", f"[profile lab]\nrole_arn = {ROLE}\nsource_profile = user\n")
        report = self.folder / "report.json"
        with SignedServer(keys) as s, Sts([keys], base) as sts:
            variables = files | {"AWS_PROFILE": "lab", "AWS_ENDPOINT_URL_STS": sts.url}
            done = run(
                *("convert", self.source, TARGET, "--endpoint", s.url, "--report", report, "--log-format", "json"),
                **settings(**variables),
            )
            assert done.returncode == 0, done.stderr
            more = [
                run(*words, "--endpoint", s.url, **settings(**variables))
                for words in (
                    ("verify", self.source, TARGET),
                    ("inspect", TARGET),
                    ("convert", self.source, "s3://bucket/x.zarr", "--partition", "0/2"),  # leaves its plan and journal
                )
            ]
            assert [d.returncode for d in more] == [0, 0, 0], [d.stderr for d in more]
            texts = [d.stdout + d.stderr for d in (done, *more)] + [report.read_text()]
            texts += [k + o.body.decode("latin-1") for k, o in s.objects.items()]
            for secret in (*base.secrets, *keys.secrets, base.access, keys.access):
                assert not any(secret in text for text in texts), secret
