"""What is written down of one request, without its texts: times and counts for the metrics, and a line of the log."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from logging.handlers import WatchedFileHandler
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import uuid4

from ..serving import ApiError, Usage
from ..streams.message import Diagnostic, Message
from .engine import Engine
from .keys import ANYBODY
from .metrics import Metrics
from .witness import Seen

LEFT = 499
"""The status of a request whose client left, in the metrics and the log."""

_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


def request_id(given: str | None) -> str:
    """The client's id of a request if it can be one, else a new one."""
    return given if given is not None and _ID.fullmatch(given) else uuid4().hex


class Log:
    """Writes JSON lines to a file, or to standard output (``-``). A file that was renamed is left, and its name begins
    anew. If a line cannot be written (a full disk), it says so once, counts, and the requests go on."""

    def __init__(self, path: str, metrics: Metrics) -> None:
        self._file = None if path == "-" else WatchedFileHandler(path, encoding="utf-8")
        self._metrics = metrics
        self._failed = False

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def write(self, fields: dict[str, Any]) -> None:
        """Writes one line."""
        try:
            file = sys.stdout
            if self._file is not None:
                self._file.reopenIfNeeded()
                file = self._file.stream
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")
            file.flush()
        except (OSError, ValueError) as error:
            self._metrics.count("log_failures")
            if not self._failed:
                self._failed = True
                print(f"chatparsers: warning: the request log cannot be written: {error}", file=sys.stderr)


class Span(Protocol):
    """What is told of one request to who traces it. ``parent``: the ``traceparent`` that the engine gets."""

    parent: str

    def end(self, record: Record, status: int, times: Times) -> None:
        """The request is over."""


Spans: TypeAlias = Callable[[str, Mapping[str, str]], Span]
"""Begins the span of a request: of an API, with its headers."""


class Times(NamedTuple):
    """When a request began, the engine was asked, its first batch came, and all was over: seconds of a clock that
    nobody sets. None: it did not come to that."""

    start: float
    asked: float | None
    first: float | None
    end: float


class Record:
    """One request, from its head to its end. `end` is called once; later calls do nothing. ``spans``: who traces
    requests, if anybody does."""

    def __init__(
        self, api: str, headers: Any, metrics: Metrics, log: Log | None, spans: Spans | None = None
    ) -> None:
        self.api = api
        self.id = request_id(headers.get("x-request-id"))
        trace = headers.get("traceparent", "")
        self.trace = trace if _TRACE.fullmatch(trace) else None
        self._span = None if spans is None else spans(api, headers)
        if self._span is not None:
            self.trace = self._span.parent
        self.fields: dict[str, Any] = {}
        self.caller = ANYBODY
        """Who sent it, once that is known; and the name of the model, the session, and the engine."""
        self.model = ""
        self.session = ""
        self.engine: Engine | None = None
        self._metrics = metrics
        self._log = log
        self._start = time.monotonic()
        self._asked: float | None = None
        self._first: float | None = None
        self._ended = False
        self._usage = Usage()
        self._answers = 0

    @property
    def passed_on(self) -> dict[str, str]:
        """The headers that the engine gets."""
        trace = {} if self.trace is None else {"traceparent": self.trace}
        return {"x-request-id": self.id, **trace}

    def asked(self) -> None:
        """The engine is asked now."""
        self._asked = time.monotonic()

    def first(self) -> None:
        """The engine's first batch is here."""
        if self._first is None:
            self._first = time.monotonic()

    def answered(self, format: str, message: Message, usage: Usage, notes: Sequence[Diagnostic] = ()) -> None:
        """An answer is whole, or as whole as it gets. ``notes``: what observers tell of it."""
        if self._answers:  # the prompt of several answers counts once
            usage = Usage(0, usage.completion, usage.reasoning)
        self._answers += 1
        self._count(usage)
        metrics = self._metrics
        for call in message.tool_calls:
            metrics.count("calls", format=format, complete=str(call.complete).lower())
        told = [*message.diagnostics, *notes]
        for diagnostic in told:
            metrics.count("diagnostics", format=format, code=diagnostic.code)
        for kind in ("prompt", "completion", "reasoning"):
            if number := getattr(usage, kind):
                metrics.count("tokens", number, kind=kind)
        self.fields["format"] = format
        self.fields["calls"] = self.fields.get("calls", 0) + len(message.tool_calls)
        if self._answers > 1:
            self.fields["choices"] = self._answers
        codes = Counter(diagnostic.code for diagnostic in told)
        if codes:
            self.fields["diagnostics"] = dict(codes + Counter(self.fields.get("diagnostics", {})))

    def took(self, prompt: int, completion: int) -> None:
        """An answer was cut off after so many tokens of it."""
        self._count(Usage(0 if self._usage.prompt else prompt, completion))

    def _count(self, usage: Usage) -> None:
        """Its answers have taken so many tokens more."""
        before = self._usage
        self._usage = Usage(
            before.prompt + usage.prompt,
            before.completion + usage.completion,
            before.reasoning + usage.reasoning,
            max(before.cached, usage.cached),
        )
        for kind in ("prompt", "completion", "reasoning", "cached"):
            if number := getattr(self._usage, kind):
                self.fields[f"{kind}_tokens"] = number

    def saw(self, seen: Seen, client: str) -> None:
        """What was seen of the prompt, and whose it is."""
        self.fields["cache"] = seen.fields()
        self._metrics.count("prompt_cache", client=client, changed=seen.changed)
        for kind in ("shared", "again", "new"):
            if number := getattr(seen, kind):
                self._metrics.count("prompt_cache_tokens", number, client=client, kind=kind)

    def failed(self, error: ApiError) -> None:
        """The request is over, with an error."""
        if error.code is not None:
            self.fields["error"] = error.code
        self.end(error.status)

    def end(self, status: int) -> None:
        """The request is over."""
        if self._ended:
            return
        self._ended = True
        now = time.monotonic()
        metrics, api = self._metrics, self.api
        metrics.count("requests", api=api, status=str(status))
        self._charge(status)
        metrics.observe("duration_seconds", now - self._start, api, self.model)
        if self._asked is not None:
            metrics.observe("queue_seconds", self._asked - self._start, api, self.model)
        if self._usage.prompt:
            metrics.observe("prompt_tokens", self._usage.prompt, api, self.model)
        if self._first is not None:
            metrics.observe(
                "first_token_seconds", self._first - (self._asked or self._start), api, self.model
            )
            if self._usage.completion > 1:  # of several answers, those of one
                each = max(self._usage.completion / max(self._answers, 1) - 1, 1)
                metrics.observe("token_seconds", (now - self._first) / each, api, self.model)
        if self._log is not None:
            self._log.write(self._line(status, now))
        if self._span is not None:
            self._span.end(self, status, Times(self._start, self._asked, self._first, now))

    def _charge(self, status: int) -> None:
        """Counts it for its key, with its tokens."""
        usage, metrics = self._usage, self._metrics
        self.caller.tokens(usage.prompt + usage.completion)
        key, model = metrics.name(self.caller.key.name), metrics.name(self.model)
        metrics.count("key_requests", key=key, model=model, status=str(status))
        for kind in ("prompt", "cached", "completion"):
            if number := getattr(usage, kind):
                metrics.count("key_tokens", number, key=key, model=model, kind=kind)

    def _line(self, status: int, now: float) -> dict[str, Any]:
        line = {"time": round(time.time(), 3), "id": self.id, "api": self.api, "status": status}
        named = {
            "trace": self.trace,
            "key": self.caller.key.name,
            "model": self.model,
            "session": self.session,
            "engine": "" if self.engine is None else self.engine.name,
        }
        line |= {name: said for name, said in named.items() if said}
        line["ms"] = round((now - self._start) * 1e3)
        if self._first is not None:
            line["first_ms"] = round((self._first - self._start) * 1e3)
        return {**line, **self.fields}
