"""The needle harness: every promise of a stream checked on a format, for this project and for authors of plugins.

As a pytest plugin: ``pytest_plugins = ["chatparsers.testing"]``, then ``test_matrix = matrix("acme",
templates=["acme.jinja"])``; see `chatparsers.testing.plugin`. As a library: `check_stream` for one feeding,
`scenarios` and `render` for the texts, `chunkings` for the cuts. For one output: `tester`. For readers in other
languages: `vectors`.
The plugin needs pytest; without it `matrix` is missing here. `exam` asks all of it of one format at once.
"""

from __future__ import annotations

from importlib.util import find_spec

from . import chunkings
from .cases import load_cases, run_case, update_golden
from .check import (
    check_conservation,
    check_cuts,
    check_expected,
    check_message,
    check_prefixes,
    check_stream,
    longest_silence,
)
from .entry import Entry
from .exam import Failure, exam
from .matrix import Record, feed_in_every_way, table
from .needles import needle
from .rendering import Case, Expected, Inexpressible, exact, render
from .scenarios import TOOLS, Call, Scenario, scenarios
from .tester import Tester, tester
from .vectors import vectors

if find_spec("pytest") is not None:  # tiny models are for users too
    from .plugin import (
        matrix,
        pytest_addoption,
        pytest_configure,
        pytest_generate_tests,
        pytest_terminal_summary,
    )

__all__ = [
    "TOOLS",
    "Call",
    "Case",
    "Entry",
    "Expected",
    "Failure",
    "Inexpressible",
    "Record",
    "Scenario",
    "Tester",
    "check_conservation",
    "check_cuts",
    "check_expected",
    "check_message",
    "check_prefixes",
    "check_stream",
    "chunkings",
    "exact",
    "exam",
    "feed_in_every_way",
    "load_cases",
    "longest_silence",
    "matrix",
    "needle",
    "pytest_addoption",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_terminal_summary",
    "render",
    "run_case",
    "scenarios",
    "table",
    "tester",
    "update_golden",
    "vectors",
]
