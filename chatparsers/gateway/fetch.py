"""Fetches images that requests name by URLs, from the hosts that the gateway was told and from no other.

A stranger chooses the URL, so it must lead nowhere but to the host that it names: a redirect is not followed, no proxy
of the environment is asked, and the host's addresses must be public ones. The connection goes to the address that was
looked at, so a name that means another address a moment later changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from ipaddress import IPv6Network, ip_address
from socket import SOCK_STREAM
from typing import Any

import anyio
import httpx2

from ..serving import ApiError, Image, ImageLimits
from ..serving.images import host_of

_SECONDS = 20.0
"""How long the images of a request may take."""
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("2002::/16"))
"""Addresses that mean another one, in the older protocol."""
Resolve = Callable[[str, int], Awaitable[list[str]]]


class Fetching:
    """Fetches the images of requests. ``limits``: how large they may be, and from which hosts they may come. ``total``:
    how many bytes the images of one request may have. ``resolve``: finds the addresses of a host. ``transport``: as of
    ``httpx2.AsyncClient``."""

    def __init__(
        self,
        limits: ImageLimits,
        total: int,
        *,
        resolve: Resolve | None = None,
        transport: Any = None,
    ) -> None:
        self._limits = limits
        self._total = total
        self._resolve = resolve or _addresses
        self._client = httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(_SECONDS),
            transport=transport,
            headers={"accept": "image/*", "accept-encoding": "identity"},
        )

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.aclose()

    async def fetched(self, images: Iterable[Image]) -> tuple[Image, ...]:
        """The images, each with its bytes. Raises `ApiError` for one that cannot be had."""
        left, found = self._total, []
        try:
            with anyio.fail_after(_SECONDS):
                for image in images:
                    if image.url is not None:
                        raw = await self._bytes(image.url, image.path, left)
                        left -= len(raw)
                        image = image.fetched(raw, self._limits)
                    found.append(image)
        except TimeoutError:
            raise _failed(image.path, f"it did not arrive in {_SECONDS:g} seconds") from None
        return tuple(found)

    async def _bytes(self, url: str, path: str, left: int) -> bytes:
        try:
            given = httpx2.URL(url)
        except httpx2.InvalidURL:
            raise _failed(path, "it has characters that no URL has") from None
        if host_of(url) not in self._limits.hosts:
            raise _failed(path, "its host is none of those that are fetched from")
        port = given.port or (443 if given.scheme == "https" else 80)
        try:
            addresses = await self._resolve(given.host, port)
        except OSError:
            raise _failed(path, "its host is not known") from None
        if not addresses or not all(map(is_public, addresses)):
            raise _failed(path, "its host has an address that is not public")
        # The name goes into the header and the handshake, the address into the connection.
        request = self._client.build_request(
            "GET",
            given.copy_with(host=addresses[0]),
            headers={"host": given.netloc.decode()},
            extensions={"sni_hostname": given.host},
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code != 200:
                    said = "redirects are not followed" if response.is_redirect else "no image is there"
                    raise _failed(path, f"its host answers with the status {response.status_code}: {said}")
                return await self._read(response, path, left)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise _failed(path, f"the connection failed ({type(error).__name__})") from None

    async def _read(self, response: httpx2.Response, path: str, left: int) -> bytes:
        most, raw = min(self._limits.size, left), bytearray()
        async for piece in response.aiter_raw():
            raw += piece
            if len(raw) > most:
                said = f"expected images of at most {self._limits.size:,} bytes, and {self._total:,} together"
                raise ApiError(said, status=413, param=path, code="image_too_large")
        return bytes(raw)


def is_public(address: str) -> bool:
    """Whether an address is one of the public network."""
    found = ip_address(address.partition("%")[0])
    if found.version == 6:
        if found.ipv4_mapped is not None or found.teredo is not None:
            return False
        if any(found in network for network in _TRANSLATED):
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


async def _addresses(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _failed(path: str, why: str) -> ApiError:
    return ApiError(f"the image was not fetched: {why}", param=path, code="image_not_fetched")
