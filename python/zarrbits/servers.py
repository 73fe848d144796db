# SPDX-License-Identifier: BSL-1.0
"""Which servers references may lead to by http:// and https://, and which of them get secrets: whoever made the references may
have written any URL. The rules are those of the command for redirects."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from .command import Error

_SECRETS = ("headers", "auth", "cookies")  # of aiohttp's requests
_MOST_REDIRECTS = 10
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
WEB = ("https", "http")


def is_web(url: str) -> bool:
    return url.startswith(("https://", "http://"))


def origin_of(url: str) -> str:
    """ "https://host:8000" of a URL; requests go there."""
    parts = urlsplit(url)
    try:
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    except (ValueError, KeyError) as e:
        raise Error(f'zarrbits: "{url[:200]}" is not the URL of a server', 1) from e
    if not parts.hostname:
        raise Error(f'zarrbits: "{url[:200]}" is not the URL of a server', 1)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def is_private(address: str) -> bool:
    """Of this machine, its network, or none at all."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 or int(ip) >> 32 == 0 else None)
        if inner is not None and int(ip) > 1:
            ip = inner
    return not ip.is_global or ip.is_multicast


class Servers:
    """All but those with private addresses. `allowed`: URLs of servers that may have one, and get the secrets. `everything`:
    any may have one."""

    def __init__(self, references: str, allowed: list[str], everything: bool) -> None:
        self._references, self._everything = references, everything
        self._allowed = {origin_of(url) for url in allowed}
        self._checked: set[str] = set()

    def gets_secrets(self, url: str) -> bool:
        return origin_of(url) in self._allowed

    def check(self, url: str) -> None:
        """Raises Error if no request may go there. A name without an address is told where it is read."""
        origin = origin_of(url)
        if origin in self._checked:
            return
        if not self._everything and origin not in self._allowed:
            host = urlsplit(origin).hostname or ""
            try:
                found = socket.getaddrinfo(host.rstrip("."), None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                return
            if any(is_private(str(place[0])) for *_, place in found):
                raise Error(
                    f'zarrbits: "{self._references}" leads to "{origin}", which has a private address; '
                    f'if it may be read, pass external="{origin}"',
                    1,
                )
        self._checked.add(origin)

    def require_receiver(self, options: Mapping[str, Any], urls: list[str]) -> None:
        """Raises Error where there are secrets for servers, and it is not said for which."""
        client = dict(options.get("client_kwargs") or {})
        given = [name for name in _SECRETS if options.get(name) or client.get(name)]
        servers = sorted({origin_of(url) for url in urls})
        if given and servers and not self._allowed:
            raise Error(
                f'zarrbits: storage_options has {given[0]}, and it is not said for which server; "{self._references}" leads to '
                f'{", ".join(servers[:5])}: pass the one that gets them, such as external="{servers[0]}"',
                1,
            )

    def options_for(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of fsspec's file system of HTTP, which asks this object before each request."""
        told = dict(options)
        client = dict(told.pop("client_kwargs", None) or {})
        secrets: dict[str, Any] = {}
        for name in _SECRETS:
            for value in (client.pop(name, None), told.pop(name, None)):
                if name == "headers":
                    secrets[name] = {**secrets.get(name, {}), **(value or {})}
                elif value is not None:
                    secrets[name] = value
        return {**told, "client_kwargs": client, "get_client": self._client_maker(secrets), "skip_instance_cache": True}

    def _client_maker(self, secrets: dict[str, Any]) -> Callable[..., Awaitable[_Client]]:
        async def make(**options: Any) -> _Client:
            return _Client(self, secrets, **options)

        return make


class _Pending:
    """What aiohttp's requests return: to await, or for `async with`."""

    def __init__(self, request: Any) -> None:
        self._request = request

    def __await__(self) -> Generator[Any, None, Any]:
        return self._request.__await__()  # type: ignore[no-any-return]

    async def __aenter__(self) -> Any:
        self._response = await self._request
        return self._response

    async def __aexit__(self, *_: object) -> None:
        self._response.release()


class _Client:
    """A session of aiohttp that connects to no private address, and follows redirects itself."""

    def __init__(self, servers: Servers, secrets: dict[str, Any], **options: Any) -> None:
        import aiohttp
        from aiohttp.abc import AbstractResolver

        class Resolver(AbstractResolver):
            """A name may have another address than when it was checked."""

            def __init__(self) -> None:
                self._resolver = aiohttp.DefaultResolver()

            async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> Any:
                found = await self._resolver.resolve(host, port, family)
                if any(is_private(place["host"]) for place in found):
                    if not any(f"{scheme}://{host}:{port}" in servers._allowed for scheme in WEB) and not servers._everything:
                        raise OSError(f'"{host}" has a private address')
                return found

            async def close(self) -> None:
                await self._resolver.close()

        options.pop("loop", None)
        if not options.get("trust_env") and "connector" not in options:  # of a proxy, the proxy looks names up
            options["connector"] = aiohttp.TCPConnector(resolver=Resolver())
        self._servers, self._secrets = servers, secrets
        self._session = aiohttp.ClientSession(**options)
        self._connector = self._session.connector  # fsspec closes it

    async def _send(self, method: str, url: Any, **options: Any) -> Any:
        options.pop("allow_redirects", None)
        headers = dict(options.pop("headers", None) or {})
        url = str(url)
        for _ in range(_MOST_REDIRECTS + 1):
            self._servers.check(url)
            own = dict(self._secrets) if self._servers.gets_secrets(url) else {}
            own["headers"] = {**own.get("headers", {}), **headers}
            response = await self._session.request(method, url, allow_redirects=False, **own, **options)
            to = response.headers.get("Location")
            if not (300 <= response.status < 400 and to):
                return response
            response.release()
            to = urljoin(url, to)
            if not is_web(to) or (url.startswith("https:") and not to.startswith("https:")):
                raise OSError(f'"{origin_of(url)}" redirects to a URL without https')
            url = to
        raise OSError(f'"{origin_of(url)}" redirects without end')

    def get(self, url: Any, **options: Any) -> _Pending:
        return _Pending(self._send("GET", url, **options))

    def head(self, url: Any, **options: Any) -> _Pending:
        return _Pending(self._send("HEAD", url, **options))

    @property
    def closed(self) -> bool:
        return bool(self._session.closed)

    async def close(self) -> None:
        await self._session.close()
