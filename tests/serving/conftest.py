"""The formats, and the real clients of the two companies, fed with frames instead of a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ..contract.conftest import format, pytest_generate_tests

__all__ = ["format", "pytest_generate_tests"]


class Wire:
    """What the next request is answered with."""

    def __init__(self) -> None:
        self.stream = ""
        self.whole = ""

    def answer(self, request: Any) -> Any:
        import httpx2

        if json.loads(request.content).get("stream"):
            headers = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, content=self.stream.encode())
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=self.whole.encode())


@pytest.fixture(scope="session")
def wire() -> Wire:
    return Wire()


@pytest.fixture(scope="session")
def clients(wire: Wire) -> Callable[[str], Any]:
    """``clients("openai")``: that company's client. Its requests are answered from ``wire``."""
    made: dict[str, Any] = {}

    def client(name: str) -> Any:
        if name not in made:
            sdk = pytest.importorskip(name, reason=f"the package {name} is not installed")
            import httpx2

            http = httpx2.Client(transport=httpx2.MockTransport(wire.answer))
            make = sdk.OpenAI if name == "openai" else sdk.Anthropic
            made[name] = make(api_key="none", base_url="http://test", http_client=http, max_retries=0)
        return made[name]

    return client
