"""What was left out of requests: counted, and said once on standard error."""

from __future__ import annotations

import sys

from ..plain import one_line
from .metrics import Metrics, field_of_ignored, kind_of_dropped
from .record import Record

_NAMED = 64
"""How many names of unknown fields are warned of, and how many of them one request may count."""


class LeftOut:
    """Counts what was left out, and warns once of each kind."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._named: set[str] = set()
        """The unknown fields that were warned of."""

    def dropped(self, kinds: tuple[str, ...]) -> None:
        """Counts what was left out of a request, and warns once of each kind that is known, and of the others."""
        for kind in kinds:
            label = kind_of_dropped(kind)
            if not self.metrics.value("dropped", kind=label):
                said = f"requests have a {one_line(kind)}, which is left out"
                print(f"chatparsers: warning: {said}", file=sys.stderr)
            self.metrics.count("dropped", kind=label)

    def ignored(self, fields: list[str], record: Record) -> None:
        """Counts the fields that no API has, and warns once of each of the first `_NAMED` names."""
        for name in fields[:_NAMED]:
            self.metrics.count("ignored", field=field_of_ignored(name))
            if name not in self._named and len(self._named) < _NAMED:
                self._named.add(name)
                said = f"requests have the field {name[:64]!r}, which no API has: it is ignored"
                print(f"chatparsers: warning: {said}", file=sys.stderr)
        if fields:
            record.fields["ignored"] = sorted(set(map(field_of_ignored, fields)))
