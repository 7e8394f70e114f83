"""Twenty things that agents do with their history, over HTTP in three APIs, streamed and whole: the rows are what the
model was given and sampled, id by id, and no sampled id is lost or counts twice."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from behaviours import BEHAVIOURS, HARMLESS, Agent
from clients import CLIENTS, Client
from direct import Direct
from model import Model, chat_of
from played import chat_of as chat_of_template
from servers import Server

from chatparsers.gateway import Job, Settings, create_app
from chatparsers.sessions.samples import About, export, rows_of, summary

TEMPLATES = ("qwen3", "hermes-2-pro", "glm-4-5", "gpt-oss")
"""One that drops thoughts, one that never has any, one whose stop is the next header, and one of channels."""


def script(name: str, thinks: bool) -> Callable[[Job], tuple[dict[str, Any], str]]:
    """What the model says in a behaviour, request by request."""
    number = 0

    def say(job: Job) -> tuple[dict[str, Any], str]:
        nonlocal number
        at, number = number, number + 1
        message: dict[str, Any] = {"role": "assistant", "content": "" if at % 2 else f"Step {at} now."}
        if thinks:
            message["reasoning_content"] = f"I think of step {at}."
        cut = name == "cut answers"
        names = job.turn.tools.names()
        count = 0 if cut or not names else 2 if name == "several calls" else 1
        if not count:
            message["content"] = f"Step {at} now."
        else:
            arguments = [{"city": f"Os lo{at}", "days": place + 2} for place in range(count)]
            message["tool_calls"] = [
                {
                    "id": f"call{at:03}{place:02}",
                    "type": "function",
                    "function": {"name": names[-1], "arguments": json.dumps(one)},
                }
                for place, one in enumerate(arguments)
            ]
        return message, "length" if cut and at % 2 == 0 else "stop"

    return say


def rows(server: Any, session: str, **query: str) -> list[dict[str, Any]]:
    response = httpx2.get(f"{server.url}/sessions/{session}/samples", params=query, timeout=60)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def check_rows(model: Model, found: list[dict[str, Any]]) -> tuple[int, float]:
    """How many ids count, and how far the log probability of one is from that in the context of its row."""
    gap, counted = 0.0, 0
    for row in found:
        places = [place for place, mask in enumerate(row["loss_mask"]) if mask]
        now = model.network.logprobs(row["input_ids"], places)
        counted += len(places)
        gap = max([gap, *(abs(row["logprobs"][at] - here) for at, here in zip(places, now, strict=True))])
    return counted, gap


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Any, Model]]]:
    made: dict[str, tuple[Any, Model]] = {}

    def make(template: str) -> tuple[Any, Model]:
        if template not in made:
            model = Model(chat_of(template), script("", True))
            folder = tmp_path_factory.mktemp("rollouts")
            made[template] = Server(create_app(model.chat, model, Settings(rollouts=str(folder)))), model
        return made[template]

    yield make
    for server, _ in made.values():
        server.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", CLIENTS, ids=[one.name for one in CLIENTS])
@pytest.mark.parametrize("template", TEMPLATES)
def test_twenty_behaviours(
    template: str,
    kind: type[Client],
    stream: bool,
    gateways: Callable[[str], tuple[Any, Model]],
    record_property: Callable[[str, object], None],
) -> None:
    server, model = gateways(template)
    thinks = model.chat.format.features.reasoning
    shares: dict[str, Counter[str]] = {}
    for name, play in BEHAVIOURS.items():
        model.script, model.asked, model.sampled = script(name, thinks), [], 0
        session = f"{kind.name}/{stream}/{name}"
        client = kind(f"{server.url}/sessions/{session}/v1", stream=stream)
        agent = Agent(client)
        play(agent)
        share = shares[name] = Counter(reply.session["reason"] for reply in agent.goes_on)
        if name in HARMLESS and template != "gpt-oss":
            assert share.keys() <= {"exact", "thought"}, (name, share)
        kept = rows(server, session, twins="keep")
        counted, gap = check_rows(model, kept)
        assert counted == model.sampled, (name, counted, model.sampled)
        assert gap < 1e-9, (name, gap)
        given = {tuple(prompt) for prompt in model.asked}
        for row in kept:  # a row begins with what the model was given, and goes on as it was asked
            places = [at for at, mask in enumerate(row["loss_mask"]) if mask and not row["loss_mask"][at - 1]]
            assert all(tuple(row["input_ids"][:at]) in given for at in places if at), name
        usual = rows(server, session)
        assert check_rows(model, usual)[0] <= counted and usual, name
        record_property(name, dict(share))


TOKENIZERS = (None, "qwen3", "llama3.1", "gemma-4", "mistral-spm-v7")
"""None: a token for each byte."""


def check_directly(chat: Any, history: Any, count: Counter[str]) -> None:
    """The twenty behaviours without HTTP."""
    source = chat.template().source
    thinks = chat.format.features.reasoning and ("reasoning_content" in source or "<think>" in source)
    model = Model(chat, script("", thinks))
    for name, play in BEHAVIOURS.items():
        model.script, model.asked, model.sampled = script(name, thinks), [], 0
        client = Direct(chat, model, history=history)
        agent = Agent(client)
        try:
            play(agent)
        except AssertionError:  # the format, or the tokenizer, cannot write it
            count["unwritten"] += 1
            continue
        count["behaviours"] += 1
        count["on"] += len(agent.goes_on)
        count["exact"] += sum(reply.session["reason"] == "exact" for reply in agent.goes_on)
        for twins in ("keep", "context", "drop"):
            found = export(client.session, twins)
            told = summary([found])  # each id counts or is left out
            counted, gap = check_rows(model, rows_of(found, About("s", None, None, {})))
            assert counted == told["counted"] and gap < 1e-9, (chat.name, name, gap)
            assert twins != "keep" or counted == model.sampled, (chat.name, name, counted, model.sampled)


def test_every_template(
    real_templates: list[Path], tokenizer: Callable[[str], Any], amount: Callable[[int, int, int], int]
) -> None:
    """What stands in the rows is what the model was given and sampled, whatever the template does."""
    count: Counter[str] = Counter()
    for number, path in enumerate(Random(6).sample(real_templates, amount(1, 2, len(real_templates)))):
        name = TOKENIZERS[number % len(TOKENIZERS)]
        chat = chat_of_template(path, None if name is None else tokenizer(name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_directly(chat, "exact" if number % 4 == 3 else "template", count)
    assert count["behaviours"] > count["unwritten"] and count["exact"] > count["on"] // 4, count
