"""The entries that a test is run for where it asks for an ``entry``: those of the matrix."""

from __future__ import annotations

import pytest

from chatparsers import get_format

from .test_matrix import entries


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "entry" in metafunc.fixturenames:
        only = metafunc.config.getoption("--chatparsers-format")
        chosen = [
            e for e in entries(metafunc.config) if only is None or e.format.name == get_format(only).name
        ]
        ids = [f"{entry.format.name}-{entry.path.stem}" for entry in chosen]
        metafunc.parametrize("entry", chosen, ids=ids)
