"""Requests of the user's own: lines of request bodies to ask again, and lines of requests with answers to judge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .apis import APIS
from .asking import Asked, can_ask, exchange_of
from .client import Response, VerifyError
from .exchange import Exchange
from .probes import Probe
from .subject import Subject

_REQUESTS = ("body", "request", "raw_request", "prepared_request")
_ANSWERS = ("response", "raw_response", "answer")
_LEFT_OUT = ("model", "stream", "stream_options", "n", "user", "metadata", "store")


def lines_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, each with the name of its line. Raises `VerifyError` for a line that is none."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # texts may have U+2028 and its like
    except (OSError, UnicodeDecodeError) as error:
        raise VerifyError(f"{path}: expected lines of JSON: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise VerifyError(f"{path}: line {number}: expected a JSON object: {error}") from None
        if not isinstance(found, dict):
            raise VerifyError(f"{path}: line {number}: expected a JSON object, found {str(found)[:40]!r}")
        yield f"{path.name}:{number}", found


def _request(name: str, line: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request: the line itself, or a field of it, as the vendors' verifiers write it."""
    body = next((line[key] for key in _REQUESTS if isinstance(line.get(key), dict)), line)
    if not isinstance(body.get("messages"), list):
        fields = ", ".join(_REQUESTS)
        raise VerifyError(f"{name}: expected messages, or a request under one of {fields}")
    extra = body.get("extra_body") or {}
    return {key: value for key, value in {**body, **extra}.items() if key not in (*_LEFT_OUT, "extra_body")}


def requests(path: Path) -> Iterator[Probe]:
    """The requests in a file, to be asked again. Raises `VerifyError` for a line that is none."""
    for name, line in lines_of(path):
        yield Probe(name, _request(name, line), private=True)


def recorded(path: Path, subject: Subject) -> tuple[list[Asked], list[str]]:
    """The requests with answers in a file, as if they had been asked now, and what cannot be judged.

    Raises `VerifyError` for a line that is no request.
    """
    asked: dict[tuple[str, str], Asked] = {}
    left = []
    for name, line in lines_of(path):
        probe = Probe(
            str(line.get("probe", name)),
            _request(name, line),
            prompt=str(line.get("probe", "")).startswith("prompt/"),
            private="probe" not in line,
        )
        answer = next((line[key] for key in _ANSWERS if line.get(key) is not None), None)
        why = can_ask(subject, probe) if answer is not None else "no answer in the line"
        if why:
            left.append(f"{name}: {why}")
            continue
        exchange = _exchange(subject, probe, line, answer)
        key = probe.name, exchange.api.name
        if key not in asked:
            asked[key] = Asked(exchange)
        elif exchange.stream and asked[key].stream is None:
            asked[key].stream = exchange
        else:
            asked[key].again += (exchange,)
    return list(asked.values()), left


def _exchange(subject: Subject, probe: Probe, line: Mapping[str, Any], answer: object) -> Exchange:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    stream = bool(line.get("stream", text.lstrip().startswith(("data:", "event:"))))
    status = line.get("status_code", line.get("status", 200))
    tries = line.get("tries", 1)
    response = Response(status if type(status) is int else 200, text, tries if type(tries) is int else 1)
    api = APIS[str(line.get("api", "chat"))]
    return exchange_of(subject, probe, api, stream, dict(line.get("sent") or probe.body), response)


def record(one: Asked) -> Iterator[str]:
    """The lines of what was asked, as `recorded` reads them."""
    for each in one.exchanges:
        line = {
            "probe": each.probe.name,
            "api": each.api.name,
            "stream": each.stream,
            "body": dict(each.probe.body),
            "sent": each.body,
            "status": each.response.status,
            "tries": each.response.tries,
            "response": each.response.text,
        }
        yield json.dumps(line, ensure_ascii=False)
