"""Images of messages in three APIs: what their bytes are, how many and how large they may be.

A message keeps a small part in the place of its image, ``{"type": "image_url", "image_url": {"url": "image:0"}}``, so
that no template writes the bytes into the prompt. `Request.images` has the images. An image that is named by a URL is
refused, unless its host is one that the server was told: then it has no bytes yet (`Image.url`), and whoever fetches
them gives them to `Image.fetched`.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from .errors import ApiError
from .fields import mapping, string

_DATA = re.compile(r"data:[^;,]*(?:;[^;,=]+=[^;,]*)*;base64,", re.IGNORECASE)
_TYPES = ("image_url", "input_image", "image")
_PLACE = "image:"
NOT_FETCHED = "image_url_not_fetched"
"""The code of an image that is named by a URL which is not fetched."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What images a request may have. ``most``: how many; ``size``: how many bytes each; ``pixels``: how many each,
    as a small file can be a huge image. ``hosts``: the hosts of URLs that may be fetched, such as ``img.example`` or
    ``img.example:8443``; all other URLs are refused."""

    most: int = 64
    size: int = 16 * 1024 * 1024
    pixels: int = 40_000_000
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a request. ``path``: where the request has it. ``media_type``: what its bytes are, such as
    ``image/png``. ``data``: the bytes as base64. ``url``: where they are, if they are still to be fetched."""

    path: str
    media_type: str = ""
    data: str = ""
    url: str | None = None

    @property
    def data_url(self) -> str:
        """The image as a ``data:`` URL."""
        return f"data:{self.media_type};base64,{self.data}"

    def fetched(self, raw: bytes, limits: ImageLimits) -> Image:
        """The image with its bytes. Raises `ApiError` for bytes that are no image, or too many."""
        return replace(self, media_type=_checked(raw, self.path, limits), data=_base64(raw), url=None)


class Images:
    """Collects the images of one request. ``found``: in the order of the messages."""

    __slots__ = ("_limits", "found")

    def __init__(self, limits: ImageLimits) -> None:
        self._limits = limits
        self.found: list[Image] = []

    def part(self, part: Mapping[str, Any], path: str) -> dict[str, Any] | None:
        """What a message has in the place of an image; None if the part is none. Raises `ApiError`."""
        if part.get("type") not in _TYPES:
            return None
        if len(self.found) >= self._limits.most:
            said = f"expected at most {self._limits.most} images: leave old ones out"
            raise ApiError(said, param=path, code="too_many_images")
        self.found.append(self._image(part, path))
        return {"type": "image_url", "image_url": {"url": f"{_PLACE}{len(self.found) - 1}"}}

    def _image(self, part: Mapping[str, Any], path: str) -> Image:
        if part["type"] == "image":
            source, at = mapping(part.get("source"), f"{path}.source"), f"{path}.source"
            if source.get("type") == "base64":
                return self._inline(string(source.get("data"), f"{at}.data"), f"{at}.data")
            if source.get("type") == "url":
                return self._named(string(source.get("url"), f"{at}.url"), f"{at}.url")
            said = f"expected a source of type 'base64' or 'url', found {source.get('type')!r}"
            raise ApiError(said, param=f"{at}.type")
        if part.get("file_id") is not None:
            raise ApiError("this server keeps no files: send image_url", param=f"{path}.file_id")
        url, at = part.get("image_url"), f"{path}.image_url"
        if isinstance(url, Mapping):
            url, at = url.get("url"), f"{at}.url"
        return self._named(string(url, at), at)

    def _named(self, url: str, path: str) -> Image:
        data = _DATA.match(url)
        if data is not None:
            return self._inline(url[data.end() :], path)
        if url[:5].lower() == "data:":
            raise ApiError("expected a data: URL in base64, such as data:image/png;base64,…", param=path)
        if host_of(url) in self._limits.hosts:
            return Image(path, url=url)
        said = "this server fetches nothing from there: send the image itself, as data:image/png;base64,…"
        raise ApiError(said, param=path, code=NOT_FETCHED)

    def _inline(self, data: str, path: str) -> Image:
        if len(data) > self._limits.size * 4 // 3 + 4:
            raise _too_large(path, self._limits)
        try:
            raw = base64.b64decode(data, validate=True)
        except (ValueError, binascii.Error) as error:
            raise ApiError(f"expected base64: {error}", param=path) from error
        return Image(path, _checked(raw, path, self._limits), data)


def image_number(part: Mapping[str, Any]) -> int:
    """Which of `Request.images` is in the place of a message's part."""
    return int(part["image_url"]["url"].removeprefix(_PLACE))


def host_of(url: str) -> str | None:
    """The host of a URL, with its port if it is another than its scheme's; None if nothing can be fetched there."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    if usual is None or not host or parts.username is not None:
        return None
    return host if port in (None, usual) else f"{host}:{port}"


def _checked(raw: bytes, path: str, limits: ImageLimits) -> str:
    """What the bytes are. Raises `ApiError` if they are no image, or if it is too large."""
    if len(raw) > limits.size:
        raise _too_large(path, limits)
    try:
        media_type, width, height = _measured(raw)
    except (struct.error, IndexError, ValueError):
        raise ApiError("expected an image in PNG, JPEG, GIF or WebP", param=path) from None
    if not 0 < width * height <= limits.pixels:
        said = f"expected an image of at most {limits.pixels:,} pixels, found {width} × {height}"
        raise ApiError(said, status=413, param=path, code="image_too_large")
    return media_type


def _too_large(path: str, limits: ImageLimits) -> ApiError:
    said = f"expected an image of at most {limits.size:,} bytes"
    return ApiError(said, status=413, param=path, code="image_too_large")


def _measured(raw: bytes) -> tuple[str, int, int]:
    """The type of an image, its width and height, from its first bytes. Raises `ValueError` if it has none that is
    known, `struct.error` or `IndexError` if it is cut off."""
    if raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return ("image/png", *struct.unpack(">II", raw[16:24]))
    if raw[:6] in (b"GIF87a", b"GIF89a"):
        return ("image/gif", *struct.unpack("<HH", raw[6:10]))
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return ("image/webp", *_webp(raw))
    if raw[:2] == b"\xff\xd8":
        return ("image/jpeg", *_jpeg(raw))
    raise ValueError


def _webp(raw: bytes) -> tuple[int, int]:
    kind = raw[12:16]
    if kind == b"VP8X":
        return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", raw[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", raw[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(raw: bytes) -> tuple[int, int]:
    """Walks over the segments to the frame's header, of which there are several kinds."""
    at = 2
    while raw[at] == 0xFF:
        kind = raw[at + 1]
        if kind == 0xFF:  # fill bytes
            at += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return width, height
        (length,) = struct.unpack(">H", raw[at + 2 : at + 4])
        at += 2 + max(length, 2)
    raise ValueError


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
