"""The matrix as a test module, for formats without test files: see `chatparsers.testing.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..registry import get_format
from .entry import Entry
from .plugin import matrix


def _from_options(config: pytest.Config) -> Iterator[Entry]:
    name = config.getoption("--chatparsers-format")
    templates = config.getoption("--chatparsers-template")
    if not name or not templates:
        raise pytest.Collector.CollectError("give --chatparsers-format NAME and --chatparsers-template FILE")
    for template in templates:
        yield Entry(get_format(name), Path(template), real=True)


test_matrix = matrix(_from_options)
