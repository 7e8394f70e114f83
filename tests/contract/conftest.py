"""The formats on which each promise is tested: all built-in formats; and a tool."""

from __future__ import annotations

import pytest
from making import tool

from chatparsers import Format, get_format, list_formats

TOOLS = [tool("get_weather", {"city": {"type": "string"}}, ["city"])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "format" in metafunc.fixturenames:
        only = metafunc.config.getoption("--chatparsers-format")
        names = [info.name for info in list_formats() if info.origin == "chatparsers"]
        chosen = [name for name in names if only is None or name == get_format(only).name]
        # The scope puts the tests of a format one after another: its programs are compiled once.
        metafunc.parametrize("format", chosen, indirect=True, scope="session")


@pytest.fixture(scope="session")
def format(request: pytest.FixtureRequest) -> Format:
    """The format of that name, loaded when the first test of it runs."""
    return get_format(request.param)
