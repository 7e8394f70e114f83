"""Spans of requests by OpenTelemetry, with the names of its conventions for generative AI.

A request is one span, under that of its client if it names one: ``chat qwen``. Under it stand ``prepare`` (the
template, the prompt, the grammar), ``engine`` (until its first token), and ``parse`` (the answer is read and written,
while it comes). The engine's own spans come under the request's. They hold no text of a client or the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .. import __version__
from ..gateway.record import Record, Times

_TRACE = TraceContextTextMapPropagator()
_USAGE = {
    "gen_ai.usage.input_tokens": "prompt_tokens",
    "gen_ai.usage.output_tokens": "completion_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cached_tokens",
    "gen_ai.request.max_tokens": "max_tokens",
    "chatparsers.loop": "loop",
    "error.type": "error",
}
"""Attributes, and the fields of the log that they are."""


class Spans:
    """Traces the requests of a gateway. ``provider``: where the spans go."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("chatparsers", __version__)

    @classmethod
    def exported(cls) -> Spans:
        """Spans that go by OTLP where the standard variables say (``OTEL_EXPORTER_OTLP_ENDPOINT``)."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = Resource.create({"service.name": "chatparsers", "service.version": __version__})
        provider = TracerProvider(resource=Resource({}).merge(named))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def __call__(self, api: str, headers: Mapping[str, str]) -> _Request:
        return _Request(self._tracer, api, headers)

    def close(self) -> None:
        """Sends what waits."""
        self._provider.shutdown()


class _Request:
    """The span of one request. ``parent``: what its engine's spans come under."""

    def __init__(self, tracer: Tracer, api: str, headers: Mapping[str, str]) -> None:
        above = _TRACE.extract(headers)
        self._tracer = tracer
        self._span = tracer.start_span("chat", above, SpanKind.SERVER, {"chatparsers.api": api})
        self._within = set_span_in_context(self._span, Context())
        carried: dict[str, str] = {}
        _TRACE.inject(carried, self._within)
        self.parent = carried.get("traceparent", "")

    def end(self, record: Record, status: int, times: Times) -> None:
        """The request is over."""
        span, fields = self._span, record.fields
        if record.model:
            span.update_name(f"chat {record.model}")
        told: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "chatparsers",
            "gen_ai.request.model": record.model,
            "gen_ai.conversation.id": record.session,
            "chatparsers.key": record.caller.key.name,
            "http.response.status_code": status,
            **{name: fields.get(field) for name, field in _USAGE.items()},
        }
        span.set_attributes({name: value for name, value in told.items() if value not in (None, "")})
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        now = time.time_ns()

        def at(when: float) -> int:
            return now - round((times.end - when) * 1e9)

        self._part("prepare", SpanKind.INTERNAL, at, times.start, times.asked or times.end)
        if times.asked is not None:
            name = "" if record.engine is None else record.engine.name
            where = {"server.address": name} if name else {}
            self._part("engine", SpanKind.CLIENT, at, times.asked, times.first or times.end, where)
        if times.first is not None:
            self._part("parse", SpanKind.INTERNAL, at, times.first, times.end)
        span.end(now)

    def _part(
        self,
        name: str,
        kind: SpanKind,
        at: Callable[[float], int],
        begin: float,
        end: float,
        told: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._tracer.start_span(name, self._within, kind, {**told}, start_time=at(begin)).end(at(end))
