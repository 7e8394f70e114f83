"""Counters in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter

__all__ = ["Metrics"]

_HELP = {
    "requests": "Requests by API and status; a stream that failed later has the status of its error.",
    "calls": "Tool calls by format, and whether they are complete.",
    "diagnostics": "Mistakes of the model by format and code.",
    "dropped": "What --drop-unsupported left out of requests, by kind.",
    "tokens": "Tokens of prompts, answers and reasoning.",
}


class Metrics:
    """What a gateway has counted since it started."""

    def __init__(self) -> None:
        self.active = 0
        self._counts: dict[str, Counter[tuple[tuple[str, str], ...]]] = {name: Counter() for name in _HELP}

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        """Adds to a counter: ``requests``, ``calls``, ``diagnostics`` or ``tokens``."""
        self._counts[name][tuple(labels.items())] += number

    def value(self, name: str, **labels: str) -> int:
        """The sum of a counter over all series that have these labels."""
        wanted = set(labels.items())
        return sum(number for key, number in self._counts[name].items() if wanted <= set(key))

    def text(self) -> str:
        """All counters, as ``/metrics`` shows them."""
        lines = [
            "# HELP chatparsers_active_requests Requests that are being answered.",
            "# TYPE chatparsers_active_requests gauge",
            f"chatparsers_active_requests {self.active}",
        ]
        for name, series in self._counts.items():
            full = f"chatparsers_{name}_total"
            lines += [f"# HELP {full} {_HELP[name]}", f"# TYPE {full} counter"]
            for labels, number in sorted(series.items()):
                shown = ",".join(f'{key}="{value}"' for key, value in labels)
                lines.append(f"{full}{{{shown}}} {number}")
        return "\n".join(lines) + "\n"
