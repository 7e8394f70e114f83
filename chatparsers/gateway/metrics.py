"""Counters and histograms for Prometheus, by its own client.

Each application has a registry of its own. Where several processes serve one address, set ``PROMETHEUS_MULTIPROC_DIR``
before they start, as its client has it: then ``/metrics`` of any of them shows all. No label is a client's text.
"""

from __future__ import annotations

import os
import re
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

_COUNTERS = {
    "requests": (
        "Requests by API and status; a stream that failed later has the status of its error.",
        ("api", "status"),
    ),
    "calls": ("Tool calls by format, and whether they are complete.", ("format", "complete")),
    "diagnostics": ("Mistakes of the model by format and code.", ("format", "code")),
    "dropped": ("What --drop-unsupported left out of requests, by kind.", ("kind",)),
    "ignored": ("Fields of requests that no API has, by name.", ("field",)),
    "tokens": ("Tokens of prompts, answers and reasoning.", ("kind",)),
    "prompt_cache": (
        "Prompts by client, and by what changed since the one before: first, nothing, or what.",
        ("client", "changed"),
    ),
    "prompt_cache_tokens": (
        "Tokens of prompts by client: shared with the prompt before, again (lost of it), new.",
        ("client", "kind"),
    ),
    "key_requests": (
        "Requests by the name of their key, by model and status.",
        ("key", "model", "status"),
    ),
    "key_tokens": (
        "Tokens by the name of their key, by model: of prompts, cached of these, and of answers.",
        ("key", "model", "kind"),
    ),
    "store_failures": ("Responses that could not be kept.", ()),
    "store_gone": (
        "What the store lacks, by why: damaged, lost (writes), aged, room (for others); session: lines of a log.",
        ("why",),
    ),
    "log_failures": ("Lines of the request log that could not be written.", ()),
}
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
_HISTOGRAMS = {
    "queue_seconds": ("From the head of a request until the engine is asked.", _SECONDS),
    "first_token_seconds": ("Until the first batch of the engine.", _SECONDS),
    "token_seconds": (
        "Between tokens, the mean of an answer.",
        _SHORT,
    ),
    "duration_seconds": ("Of whole requests.", _SECONDS),
    "prompt_tokens": ("Tokens of a prompt.", (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)),
}
_MOST_NAMES = 1_000
"""How many names of keys and models are told apart: a file that is read again may bring others each time."""
_DATE = re.compile(r"_20\d{6}$")
_DROPPED = {
    "context_management": ("clear_thinking", "clear_tool_uses", "compact"),
    "part": (
        "audio",
        "document",
        "file",
        "image",
        "image_url",
        "input_audio",
        "input_file",
        "input_image",
        "video",
        "video_url",
    ),
    "tool": (
        *("bash", "code_execution", "code_interpreter", "computer", "computer_use_preview", "file_search"),
        *(
            "image_generation",
            "local_shell",
            "mcp",
            "memory",
            "shell",
            "text_editor",
            "web_fetch",
            "web_search",
        ),
        "web_search_preview",
    ),
}
"""The kinds of edits, parts and tools that the three APIs name. Clients may send any other word."""

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """What a gateway has counted since it started. ``model``: the label of a histogram if no other is known."""

    def __init__(self, model: str = "") -> None:
        self.registry = CollectorRegistry()
        self._model = model
        self._names: set[str] = set()
        self._series: dict[tuple[str, ...], Any] = {}
        """What was counted or observed before, as its client takes long to find it."""
        self._active = Gauge(
            "chatparsers_active_requests",
            "Requests that are being answered.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self._running = 0
        self._counters = {
            name: Counter(f"chatparsers_{name}", said, labels, registry=self.registry)
            for name, (said, labels) in _COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(
                f"chatparsers_{name}", said, ("api", "model"), buckets=buckets, registry=self.registry
            )
            for name, (said, buckets) in _HISTOGRAMS.items()
        }

    @property
    def active(self) -> int:
        """How many requests this process answers now."""
        return self._running

    @active.setter
    def active(self, number: int) -> None:
        self._running = number
        self._active.set(number)

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        """Adds to a counter, such as ``requests``; ``labels`` are all that it has."""
        key = (name, *labels.values())
        if key not in self._series:
            counter = self._counters[name]
            self._series[key] = counter.labels(**labels) if labels else counter
        self._series[key].inc(number)

    def name(self, given: str) -> str:
        """The label of a key or a model: its name, "other" once there were very many."""
        if given not in self._names:
            if len(self._names) >= _MOST_NAMES:
                return "other"
            self._names.add(given)
        return given

    def observe(self, name: str, value: float, api: str, model: str = "") -> None:
        """Adds to a histogram: seconds, or tokens of a prompt."""
        model = self.name(model or self._model)
        key = (name, api, model)
        if key not in self._series:
            self._series[key] = self._histograms[name].labels(api=api, model=model)
        self._series[key].observe(value)

    def value(self, name: str, **labels: str) -> int:
        """The sum of a counter over all series of this process that have these labels."""
        wanted = labels.items()
        return sum(
            int(sample.value)
            for metric in self._counters[name].collect()
            for sample in metric.samples
            if sample.name.endswith("_total") and wanted <= sample.labels.items()
        )

    def text(self) -> str:
        """All that was counted, as ``/metrics`` shows it."""
        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry).decode()


_ELSEWHERE = frozenset(
    (
        *("context_management", "extra_body", "models", "provider", "plugins", "route", "safety_settings"),
        *("reasoning", "store", "thinking", "transforms", "user_id"),
    )
)
"""Fields of other services that are often sent."""


def field_of_ignored(name: str) -> str:
    """The label for a field that no API has: a name that is often sent, else ``other``."""
    return name if name in _ELSEWHERE else "other"


def kind_of_dropped(said: str) -> str:
    """The label for what was left out of a request, such as ``tool web_search``: an API's own word, else ``other``."""
    what, _, kind = said.partition(" ")
    known = _DROPPED.get(what)
    kind = _DATE.sub("", kind)
    return said if known is None else f"{what} {kind if kind in known else 'other'}"
