"""All built-in formats, as the contract's tests have them."""

from __future__ import annotations

import pytest

from chatparsers import Format, get_format, list_formats


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "format" in metafunc.fixturenames:
        names = [info.name for info in list_formats() if info.origin == "chatparsers"]
        metafunc.parametrize("format", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def format(request: pytest.FixtureRequest) -> Format:
    return get_format(request.param)
