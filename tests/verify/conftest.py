"""The formats whose servers are judged: all that have a template here."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatparsers import Format, get_format, list_formats

TEMPLATES = Path(__file__).parents[1] / "templates_own"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "format" in metafunc.fixturenames:
        names = [info.name for info in list_formats() if (TEMPLATES / f"{info.name}.jinja").exists()]
        metafunc.parametrize("format", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def format(request: pytest.FixtureRequest) -> Format:
    """The format of that name."""
    return get_format(request.param)
