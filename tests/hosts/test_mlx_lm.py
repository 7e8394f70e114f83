"""mlx-lm: a tiny model generates under the grammar, on any processor, and its ids are read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tinies import FORMATS, MESSAGES, RUNS, TOOLS, Table, tiny

import chatparsers

mx = pytest.importorskip("mlx.core", reason="mlx is not installed: tests/hosts/install mlx-lm")
mlx_lm = pytest.importorskip("mlx_lm", reason="mlx-lm is not installed: tests/hosts/install mlx-lm")

from chatparsers.adapters.mlx_lm import generate  # noqa: E402


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def loaded(name: str) -> tuple[Path, Any]:
        folder = tiny(name).write_folder(tmp_path_factory.mktemp(name))
        return folder, mlx_lm.load(str(folder))[0]

    return loaded


def sampler(logprobs: Any) -> Any:
    return mx.random.categorical(logprobs)


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, models: Any) -> None:
    folder, model = models(name)
    chat = chatparsers.load(folder)
    assert chat.format.name == name
    table = Table()
    for seed in range(RUNS):
        turn = chat.prepare(MESSAGES, tools=TOOLS, tool_choice=choice)
        mx.random.seed(seed)
        ids: list[int] = []
        answer = generate(model, turn, max_tokens=900, guide=turn.guide("llguidance"), sampler=sampler)
        answer._tokens = ((ids.append(id), (id, _))[1] for id, _ in answer._tokens)
        events = list(answer)
        message = answer.message
        arguments = {call.index: "" for call in message.tool_calls}
        for event in events:
            if isinstance(event, chatparsers.CallArguments):
                arguments[event.index] += event.text
        assert [call.arguments for call in message.tool_calls] == list(arguments.values())
        table.add(message, turn.parse(ids), choice == "required")
    table.check(f"mlx-lm, llguidance, {name}, {choice}", RUNS)


def test_stops_and_limits(models: Any) -> None:
    folder, model = models("qwen3")
    chat = chatparsers.load(folder)
    turn = chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required", thinking=False)
    mx.random.seed(1)
    cut = generate(model, turn, max_tokens=3, sampler=sampler)
    list(cut)
    assert not cut.message.complete
    mx.random.seed(1)
    stopped = generate(model, turn, stop=["arguments"], sampler=sampler)
    list(stopped)
    assert "arguments" not in stopped.message.text
