"""What six coding agents really sent (`agents/`), asked again of a gateway that records: each goes on by exact ids.

The model says what the recorded agent was told, in its own spelling; the agent sends it back in the agent's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from model import Model, chat_of
from servers import Server
from test_behaviours import check_rows, rows

from chatparsers.gateway import Job, Settings, create_app
from chatparsers.gateway.apis import CHAT, MESSAGES, RESPONSES

APIS = {"/v1/chat/completions": CHAT, "/v1/messages": MESSAGES, "/v1/responses": RESPONSES}
SENT = sorted((Path(__file__).parents[1] / "agents").glob("*.json"))


def answers(item: dict[str, Any]) -> bool:
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")


class Agent:
    """``asks``: the requests of a recorded agent, one after the other. ``told``: what the model said to each; None
    after the last."""

    def __init__(self, file: Path) -> None:
        sent = json.loads(file.read_text(encoding="utf-8"))
        self.path, self.body = sent[0]["path"], sent[-1]["body"]
        self.field = "input" if "input" in self.body else "messages"
        items, first = self.body[self.field], len(sent[0]["body"][self.field])
        ends = [at for at in range(first, len(items)) if answers(items[at]) and not answers(items[at - 1])]
        self.asks = [self.upto(end) for end in [*ends, len(items)]]
        self.told = [self.answer(end) for end in ends] + [None]

    def upto(self, end: int) -> dict[str, Any]:
        return {**self.body, self.field: self.body[self.field][:end]}

    def answer(self, start: int) -> dict[str, Any]:
        """The answer that begins at an item, as a message of chat completions."""
        items = self.body[self.field]
        end = next((at for at in range(start, len(items)) if not answers(items[at])), len(items))
        read = APIS[self.path].read(self.upto(end), drop_unsupported=True)
        message: dict[str, Any] = dict(read.messages[-1])
        return message


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Model, list[Any]]]:
    says: list[Any] = []

    def say(job: Job) -> tuple[dict[str, Any], str]:
        return says.pop(0) or {"role": "assistant", "content": "Done."}, "stop"

    model = Model(chat_of("hermes-2-pro"), say)
    settings = Settings(rollouts=str(tmp_path_factory.mktemp("rollouts")), drop_unsupported=True)
    server = Server(create_app(model.chat, model, settings))
    yield server, model, says
    server.close()


@pytest.mark.parametrize("file", SENT, ids=lambda file: file.stem)
def test_recorded_agents_are_samples(file: Path, served: tuple[Any, Model, list[Any]]) -> None:
    server, model, says = served
    agent = Agent(file)
    says[:], model.sampled, reasons, numbers = agent.told, 0, [], []
    for body in agent.asks:
        answer = httpx2.post(f"{server.url}/sessions/{file.stem}{agent.path}", json=body, timeout=60)
        assert answer.status_code == 200 and '"error"' not in answer.text[-300:], answer.text
        reasons.append(answer.headers["x-session-reason"])
        numbers.append(int(answer.headers["x-session-answer"]))
    assert reasons == ["first"] + ["exact"] * (len(reasons) - 1)
    (row,) = rows(server, file.stem)
    counted, gap = check_rows(model, [row])
    assert row["answers"] == numbers and counted == model.sampled and gap < 1e-9
    assert len(numbers) >= 4 or file.stem == "aider", "the agent went on"
