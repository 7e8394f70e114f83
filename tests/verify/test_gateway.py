"""Our own gateway, judged like any other server: over every format nothing is to its charge."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("starlette", reason="the packages of the gateway are not installed")
pytest.importorskip("httpx2", reason="the packages of the gateway are not installed")
pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")

from models import Good, tiny
from servers import Server

import chatparsers
from chatparsers.gateway import Engine, Settings, create_app
from chatparsers.verify import Verdict


def judged(name: str, engine: Engine, **options: Any) -> Verdict:
    server = Server(create_app(tiny(name).chat, engine, Settings(model="m")))
    try:
        return chatparsers.verify(
            server.url, tiny(name).chat, answer_tokens=600, requests=400, tokens=400_000, **options
        )
    finally:
        server.close()


@pytest.mark.one_in(80)
@pytest.mark.parametrize("random", [False, True], ids=["good", "random"])
def test_a_model_behind_our_gateway(format: Any, random: bool) -> None:
    """A random one writes noise, and calls where the grammar forces them: its mistakes are its own."""
    model = tiny(format.name)
    if random:
        from noise import Random

        verdict = judged(format.name, Random(model), extra={"temperature": 1.0, "seed": 5})
    else:
        verdict = judged(format.name, Good(model.chat), api="all")
    charged = verdict.blamed("server", "likely", "unknown")
    assert not charged, f"{charged[0].code}: {charged[0]}"
    assert verdict and verdict.facts["answers"] >= (30 if random else 80) and not verdict.not_judged
