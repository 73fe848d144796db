# SPDX-License-Identifier: BSL-1.0
"""What the command needs to reach servers, from what fsspec's file systems are told: storage_options={"anon": True}.
Secrets go to the command through a pipe: other processes see neither its arguments nor its environment with them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .locations import cloud_of, name_of, storage_options_of

# of fsspec and s3fs, for what the command does in its own way
_WITHOUT_EFFECT = {
    "access",
    "asynchronous",
    "cache_regions",
    "config_kwargs",
    "default_block_size",
    "default_cache_type",
    "default_fill_cache",
    "loop",
    "skip_instance_cache",
    "use_listings_cache",
    "use_ssl",
}


def _google_variables(token: Any) -> dict[str, str]:
    """What gcsfs calls a token: a file, its content, or a token itself."""
    if token in (None, "google_default", "cloud"):
        return {}
    if isinstance(token, str) and os.path.isfile(token):
        return {"GOOGLE_APPLICATION_CREDENTIALS": os.path.abspath(token)}
    if isinstance(token, str) and token not in ("cache", "browser"):
        return {"GOOGLE_OAUTH_ACCESS_TOKEN": token}
    raise ValueError(
        'storage_options has a token that zarrbits does not know; it knows the name of a file, an access token, "anon", '
        '"google_default" and "cloud"'
    )


# of adlfs and obstore
_AZURE_VARIABLES = {
    "connection_string": "AZURE_STORAGE_CONNECTION_STRING",
    "account_name": "AZURE_STORAGE_ACCOUNT",
    "account_key": "AZURE_STORAGE_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
    "client_id": "AZURE_CLIENT_ID",
    "client_secret": "AZURE_CLIENT_SECRET",
    "tenant_id": "AZURE_TENANT_ID",
}


def _take_azure_variables(told: dict[str, Any]) -> dict[str, str]:
    """Takes what adlfs is told out of its options. What is given wins over the environment, all of it."""
    given = {variable: told.pop(name, None) for name, variable in _AZURE_VARIABLES.items()}
    if host := told.pop("account_host", None):
        told["endpoint_url"] = told.get("endpoint_url") or f"https://{host}"
    if not any(given.values()):
        return {}
    return {variable: value or "" for variable, value in given.items()}


def header_lines(headers: Any) -> list[str]:
    """A line "NAME: VALUE" for each header, of a mapping or of a file with such lines."""
    if isinstance(headers, Mapping):
        for name, value in headers.items():
            if "\n" in f"{name}{value}":  # it would be another header
                raise ValueError(f"zarrbits: the header {name!r} is not one line; remove what follows the first")
        return [f"{name}: {value}" for name, value in headers.items()]
    if not isinstance(headers, (str, os.PathLike)):
        raise TypeError(
            f"zarrbits: `headers` is a mapping of names to values, or the name of a file, not {type(headers).__name__}"
        )
    try:
        with open(headers, encoding="utf-8", errors="surrogateescape") as file:
            return [line.rstrip("\n") for line in file if line.strip()]
    except OSError as e:  # its own sentence has the name
        raise OSError(
            e.errno,
            "zarrbits: cannot read the file of `headers` (its name is not shown, because it may be a header, and secret): "
            f'{e.strerror}; set the name of a file, or a mapping such as {{"Authorization": "Bearer TOKEN"}}',
        ) from None


def of_storage_options(given: Mapping[str, Any] | None, cloud: str = "s3") -> tuple[dict[str, Any], dict[str, str]]:
    """(options of the command, variables that are secrets). cloud: whose they are: of s3fs ("s3"), gcsfs ("gs"), adlfs ("az")."""
    options: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    told = dict(given or {})
    client = dict(told.pop("client_kwargs", None) or {})
    told.setdefault("endpoint_url", client.pop("endpoint_url", None))
    told.setdefault("region_name", client.pop("region_name", None))
    told.setdefault("headers", client.pop("headers", None))
    verify = client.pop("verify", told.pop("verify", None))
    if verify is False:
        raise ValueError("storage_options has verify=False: zarrbits always verifies servers; name their certificates as verify")
    if isinstance(verify, (str, os.PathLike)):
        options["ca_file"] = verify
    google = cloud == "gs"
    if cloud == "az":
        secrets |= _take_azure_variables(told)
    if google and told.get("token") == "anon":
        told["anon"], told["token"] = True, None
    if told.pop("anon", False):
        options["sign_request"] = False
    if told.pop("requester_pays", False):
        options["request_payer"] = True
    for name, option in (("endpoint_url", "endpoint"), ("profile", "aws_profile")):
        if value := told.pop(name, None):
            options[option] = value
    key, secret = told.pop("key", None), told.pop("secret", None)
    token, session = told.pop("token", None), told.pop("session_token", None)
    if google:
        secrets |= _google_variables(token)
        if project := told.pop("project", None):
            secrets["GOOGLE_CLOUD_PROJECT"] = project
    elif key or secret:
        if not (key and secret):
            raise ValueError('storage_options has only one of "key" and "secret"; set both')
        secrets |= {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token or session or ""}
        secrets["AWS_PROFILE"] = ""  # keys that are given win over it
    if region := told.pop("region_name", None):
        secrets["AWS_REGION"] = region
    if headers := told.pop("headers", None):
        secrets["ZARRBITS_HEADERS"] = "\n".join(header_lines(headers))
    unknown = sorted(set(told) - _WITHOUT_EFFECT) + [f"client_kwargs.{name}" for name in sorted(client)]
    if unknown:
        raise ValueError(
            f"storage_options has {unknown[0]!r}, which zarrbits does not know; it knows anon, key, secret, token, profile, "
            "requester_pays, project, endpoint_url, region_name, headers and verify, also in client_kwargs, and for az:// "
            "account_name, account_key, sas_token, connection_string, account_host, client_id, client_secret and tenant_id"
        )
    return options, secrets


class Secrets:
    """A pipe with variables for one run of the command, and the arguments with which it finds them."""

    def __init__(self, options: dict[str, Any], locations: Sequence[Any]) -> None:
        paths = [name_of(location, options.get("lock", True)) for location in locations]
        given = options.pop("storage_options", None)
        clouds = [cloud_of(path) for path in paths]
        cloud = next((c for c in ("az", "gs") if c in clouds), "s3")
        more, variables = of_storage_options(storage_options_of(list(locations)) if given is None else given, cloud)
        for name, value in more.items():
            if isinstance(value, bool) or options.get(name) is None:  # a call may define other values itself
                options[name] = value
        headers = options.pop("headers", None)
        if headers:
            others = filter(None, [variables.get("ZARRBITS_HEADERS")])
            variables["ZARRBITS_HEADERS"] = "\n".join([*header_lines(headers), *others])
        self.paths: list[str] = []
        for path in paths:
            secret = path.startswith(("http://", "https://")) and ("?" in path or "@" in path)
            if secret:
                name = f"ZARRBITS_ARGUMENT_{len(self.paths)}"
                variables[name] = path
            self.paths.append("@" + name if secret else path)
        self.descriptors: tuple[int, ...] = ()
        self.environment: dict[str, str] = {}
        if not variables:
            return
        content = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())
        if len(content) > 60_000:  # what a pipe holds before anyone reads it
            raise ValueError(
                "storage_options, headers and URLs are longer than 60,000 bytes together; put the URLs into a list @LIST.txt"
            )
        end, other = os.pipe()
        try:
            os.write(other, content)
        finally:
            os.close(other)
        self.descriptors, self.environment = (end,), {"ZARRBITS_SECRETS_FD": str(end)}

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = ()
