"""Spans of requests: their names, how they stand under one another, and that they hold no text."""

from __future__ import annotations

import signal
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from scripted import Llama, Upstream, soon
from servers import free_port, served, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")
pytest.importorskip("opentelemetry.sdk", reason="the package opentelemetry-sdk is not installed")

import httpx2
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from chatparsers.gateway import LlamaServer, Settings
from chatparsers.gateway.app import create_team_app
from chatparsers.gateway.models import Model
from chatparsers.operate.spans import Spans

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_a_request_is_four_spans(upstream: Callable[..., Upstream], serve: Callable[..., Any]) -> None:
    engine = upstream(Llama(["A secret answer."], tiny_model("qwen3").tokenizer), context=500)
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    model = Model(tiny_model("qwen3").chat, LlamaServer(engine.url), Settings("qwen"))
    server = serve(create_team_app([model], Settings("qwen"), spans=Spans(provider)))
    body = {"messages": [{"role": "user", "content": "A secret question"}], "max_tokens": 9}
    head = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    httpx2.post(f"{server.url}/v1/chat/completions", json=body, headers=head, timeout=20)
    soon(lambda: len(kept.get_finished_spans()) == 4)
    spans = {span.name: span for span in kept.get_finished_spans()}
    whole = spans.pop("chat qwen")
    assert whole.parent is not None and format(whole.parent.span_id, "016x") == PARENT
    assert [*spans] == ["prepare", "engine", "parse"]
    times = [time for span in spans.values() for time in (span.start_time, span.end_time)]
    assert times == sorted(times) and whole.start_time - 10**9 < times[0] and times[-1] <= whole.end_time
    for span in (whole, *spans.values()):
        assert format(span.context.trace_id, "032x") == TRACE
        assert "secret" not in span.to_json()
    assert {span.parent and span.parent.span_id for span in spans.values()} == {whole.context.span_id}
    told = dict(whole.attributes or {})
    assert told["gen_ai.request.model"] == "qwen" and told["gen_ai.usage.input_tokens"] == 5
    assert told["gen_ai.usage.output_tokens"] == 3 and told["gen_ai.request.max_tokens"] == 9
    assert dict(spans["engine"].attributes or {})["server.address"] == engine.url
    asked = next(head for head in reversed(engine.heads) if "traceparent" in head)
    assert f"00-{TRACE}-{whole.context.span_id:016x}-01" in asked
    engine.close()
    httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=20)
    soon(lambda: len(kept.get_finished_spans()) > 5)
    failed = kept.get_finished_spans()[-1]
    assert failed.name == "chat qwen" and failed.parent is None and not failed.status.is_ok
    assert dict(failed.attributes or {})["error.type"] == "engine_error"


def test_what_waits_is_sent_when_it_ends(
    upstream: Callable[..., Upstream],
    model: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SIGTERM comes before the exporter's next turn."""
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http",
        reason="the package opentelemetry-exporter-otlp is not installed",
    )
    paths: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        Thread(target=collector.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        engine = upstream(Llama(["Hello."], tiny_model("qwen3").tokenizer), context=500)
        port = free_port()
        process = served(port, engine, model, "--spans")
        body = {"messages": [{"role": "user", "content": "Hello?"}], "max_tokens": 9}
        assert httpx2.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body, timeout=60).is_success
        process.terminate()
        process.communicate(timeout=60)
        collector.shutdown()
    assert paths == ["/v1/traces"] and process.returncode == -signal.SIGTERM
