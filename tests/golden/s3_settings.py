#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes s3_settings.json: what botocore makes of variables and profile files. Each case has the URL of an object, the region
of its signature and the access key. Takes botocore from PyPI; tests/convert/test_s3_settings.cpp reads the file.

python3 tests/golden/s3_settings.py
"""

import contextlib
import json
import logging
import os
import pathlib
import re
import tempfile

import botocore
import botocore.session

logging.disable(logging.CRITICAL)

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "env", "AWS_SECRET_ACCESS_KEY": "s", "AWS_EC2_METADATA_DISABLED": "true"}
REGION = {"AWS_DEFAULT_REGION": "eu-west-1"}
KEYS = "aws_access_key_id = {0}\naws_secret_access_key = s\n"


class Caught(BaseException):
    """Ends a request before it is sent."""


def process(key):
    return "credential_process = echo " + repr(json.dumps({"Version": 1, "AccessKeyId": key, "SecretAccessKey": "s"}))


def cases():
    """(name, what it has beside the usual environment)"""
    yield "nothing", {}
    yield "region of the environment", {"env": REGION}
    yield "region of the profile", {"config": "[default]\nregion = eu-west-1\n"}
    yield "region of the credentials file", {"credentials": "[default]\nregion = eu-west-1\n"}
    yield "region of both", {"config": "[default]\nregion = us-west-2\n", "env": REGION}
    yield (
        "region of a named profile",
        {"config": "[default]\nregion = us-west-2\n[profile lab]\nregion = eu-west-1\n", "env": {"AWS_PROFILE": "lab"}},
    )
    for region in ("us-east-1", "us-west-2", "ap-south-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1", "eu-isoe-west-1"):
        yield f"in {region}", {"env": {"AWS_DEFAULT_REGION": region}}
    for bucket in ("a.bucket.with.dots", "bucket-1", "UPPER", "under_score", "ab1", "x" * 63):
        yield f"bucket {bucket}", {"env": REGION, "bucket": bucket}
        yield f"bucket {bucket} on another server", {"env": REGION | {"AWS_ENDPOINT_URL": "https://h:9000"}, "bucket": bucket}
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        yield name, {"env": {name: "http://h:9000"}}
        yield f"{name} with a path", {"env": {name: "http://h:9000/a/b"}}
        yield f"{name} with a slash", {"env": {name: "http://h:9000/"}}
    yield "both variables", {"env": {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}}
    yield "option and variable", {"env": {"AWS_ENDPOINT_URL_S3": "http://b"}, "endpoint": "http://a"}
    profile = "[default]\nendpoint_url = http://p\n"
    services = (
        "[default]\nservices = mine\n{}[services mine]\ns3 =\n  endpoint_url = http://s\nec2 =\n  endpoint_url = http://e\n"
    )
    yield "endpoint of the profile", {"config": profile}
    yield "endpoint of the profile and a variable", {"config": profile, "env": {"AWS_ENDPOINT_URL": "http://a"}}
    yield "endpoint of services", {"config": services.format("")}
    yield "endpoint of services and the profile", {"config": services.format("endpoint_url = http://p\n")}
    yield "endpoint of services and a variable", {"config": services.format(""), "env": {"AWS_ENDPOINT_URL": "http://a"}}
    yield "services of another name", {"config": services.format("").replace("services = mine", "services = other")}
    yield "services of a service that is not S3", {"config": services.format("").replace("s3 =", "sqs =")}
    for value in ("true", "TRUE", "false", "1"):
        ignored = {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": value}
        yield f"endpoints ignored: {value}", {"config": services.format(""), "env": ignored | {"AWS_ENDPOINT_URL": "http://a"}}
    yield "endpoints ignored by the profile", {"config": profile + "ignore_configured_endpoint_urls = true\n"}
    yield (
        "endpoints ignored, not the option",
        {
            "config": profile + "ignore_configured_endpoint_urls = true\n",
            "endpoint": "http://a",
        },
    )
    for name, setting in (
        ("AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint"),
        ("AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint"),
    ):
        yield f"{name}", {"env": REGION | {name: "true"}}
        yield f"{setting}", {"env": REGION, "config": f"[default]\n{setting} = true\n"}
        yield f"{setting} and not {name}", {"env": REGION | {name: "false"}, "config": f"[default]\n{setting} = true\n"}
    yield "two stacks in China", {"env": {"AWS_DEFAULT_REGION": "cn-north-1", "AWS_USE_DUALSTACK_ENDPOINT": "true"}}
    both = REGION | {"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"}
    yield "FIPS and two stacks", {"env": both}
    yield "FIPS and a bucket with dots", {"env": both, "bucket": "a.b.c"}
    yield "two stacks by s3", {"env": REGION, "config": "[default]\ns3 =\n  use_dualstack_endpoint = true\n"}
    yield "accelerated", {"env": REGION, "config": "[default]\ns3 =\n  use_accelerate_endpoint = true\n"}
    for style in ("path", "virtual", "auto"):
        config = f"[default]\ns3 =\n  addressing_style = {style}\n"
        yield f"{style} style", {"env": REGION, "config": config}
        yield f"{style} style, dots", {"env": REGION, "config": config, "bucket": "a.b.c"}
        yield f"{style} style on another server", {"config": config, "env": {"AWS_ENDPOINT_URL": "http://h:9000"}}
    yield "tabs and comments", {"config": "# c\n[default]\n; c\ns3 =\n\taddressing_style = path\nregion=eu-west-1\n"}
    lab = {"credentials": "[default]\n" + KEYS.format("def") + "[lab]\n" + KEYS.format("lab")}
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    yield "keys of the default profile", lab | {"env": nobody}
    yield "keys of AWS_PROFILE", lab | {"env": nobody | {"AWS_PROFILE": "lab"}}
    yield "keys of AWS_DEFAULT_PROFILE", lab | {"env": nobody | {"AWS_DEFAULT_PROFILE": "lab"}}
    yield "keys of both profile variables", lab | {"env": nobody | {"AWS_DEFAULT_PROFILE": "lab", "AWS_PROFILE": "default"}}
    yield "keys of the environment and AWS_PROFILE", lab | {"env": {"AWS_PROFILE": "lab"}}
    yield "keys of the environment and a profile by option", lab | {"profile": "lab"}
    yield "keys of the configuration", {"config": "[default]\n" + KEYS.format("conf"), "env": nobody}
    yield "keys of both files", lab | {"config": "[default]\n" + KEYS.format("conf"), "env": nobody}
    yield "keys of a program", {"config": "[default]\n" + process("proc") + "\n", "env": nobody}
    yield "keys of a program and the credentials file", lab | {"config": "[default]\n" + process("proc") + "\n", "env": nobody}
    yield (
        "keys of a program and the configuration",
        {
            "config": "[default]\n" + process("proc") + "\n" + KEYS.format("conf"),
            "env": nobody,
        },
    )
    yield (
        "files in the home folder",
        {"home": True, "config": "[default]\nregion = eu-west-1\n", "credentials": lab["credentials"], "env": nobody},
    )
    yield (
        "files named with a tilde",
        {
            "tilde": True,
            "config": "[default]\nregion = eu-west-1\n",
            "credentials": lab["credentials"],
            "env": nobody,
        },
    )


def environment(case, home):
    """The same in test_s3_settings.cpp."""
    names = (".aws/config", ".aws/credentials") if case.get("home") else ("c.ini", "k.ini")
    files = {"config": home / names[0], "credentials": home / names[1]}
    (home / ".aws").mkdir(exist_ok=True)
    for kind, path in files.items():
        path.write_text(case.get(kind, ""))
    variables = {"HOME": str(home)} | ENVIRONMENT | case.get("env", {})
    if not case.get("home"):
        folder = "~" if case.get("tilde") else str(home)
        variables |= {"AWS_CONFIG_FILE": f"{folder}/{names[0]}", "AWS_SHARED_CREDENTIALS_FILE": f"{folder}/{names[1]}"}
    return {k: v for k, v in variables.items() if v}


def resolved(case):
    with tempfile.TemporaryDirectory() as folder:
        kept = dict(os.environ)
        for name in [n for n in os.environ if n.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(environment(case, pathlib.Path(folder)))
        requests = []

        def catch(request, **_):
            requests.append(request)
            raise Caught

        try:
            session = botocore.session.Session(profile=case.get("profile"))
            client = session.create_client("s3", endpoint_url=case.get("endpoint"))
            client.meta.events.register("before-send.s3", catch)
            with contextlib.suppress(Caught):
                client.head_object(Bucket=case.get("bucket", "bucket"), Key="a/key")
        finally:
            os.environ.clear()
            os.environ.update(kept)
    signature = requests[0].headers["Authorization"]
    signature = signature.decode() if isinstance(signature, bytes) else signature
    key, region = re.search(r"Credential=([^/]*)/[0-9]*/([^/]*)/", signature).groups()
    return {"url": requests[0].url, "region": region, "key": key}


def main():
    results = []
    for name, case in cases():
        try:
            expected = resolved(case)
        except Exception as e:  # noqa: BLE001  (what botocore refuses)
            print(f"{name}: {type(e).__name__}: {e}")
            continue
        results.append({"name": name, **case, "expected": expected})
    path = pathlib.Path(__file__).with_suffix(".json")
    document = {"botocore": botocore.__version__, "environment": ENVIRONMENT, "cases": results}
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(results)} cases")


if __name__ == "__main__":
    main()
