"""Twenty things that agents do with their history, over HTTP in three APIs, streamed and whole: the rows are what the
model was given and sampled, id by id, and no sampled id is lost or counts twice."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from math import inf
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
from chatparsers.sessions import samples
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
        told = [inf if row["logprobs"][at] is None else row["logprobs"][at] for at in places]
        gap = max([gap, *(abs(one - here) for one, here in zip(told, now, strict=True))])
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
        calls = [id for reply in agent.replies for id in reply.calls]
        assert len({*calls}) == len(calls), "agents tell calls apart by their ids"
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


def _swap(row: dict[str, Any], at: int) -> None:
    ids = row["input_ids"]
    ids[at - 1], ids[at] = ids[at], ids[at - 1]


def _drop(row: dict[str, Any], at: int) -> None:
    for name in ("input_ids", "labels", "loss_mask", "logprobs"):
        del row[name][at - 1]


def _wrong(row: dict[str, Any], at: int) -> None:
    row["input_ids"][at] += 1


def _other_context(row: dict[str, Any], at: int) -> None:
    row["input_ids"][row["loss_mask"].index(1) - 1] += 1


def _other_logprob(row: dict[str, Any], at: int) -> None:
    row["logprobs"][at] = row["logprobs"][at - 1]


def _shifted(row: dict[str, Any], at: int) -> None:
    row["logprobs"] = [row["logprobs"][-1], *row["logprobs"][:-1]]


def _uncounted(row: dict[str, Any], at: int) -> None:
    row["loss_mask"][at] = 0


def _no_answer(row: dict[str, Any], at: int) -> None:
    end = next(end for end in range(at, len(row["loss_mask"])) if not row["loss_mask"][end])
    for name in ("input_ids", "labels", "loss_mask", "logprobs"):
        del row[name][row["loss_mask"].index(1) : end]


def _rest_of(row: dict[str, Any], at: int) -> None:
    row["loss_mask"][at:] = [0] * len(row["loss_mask"][at:])


FAULTS = {
    "one wrong id": _wrong,
    "two ids in another order": _swap,
    "an id left out": _drop,
    "one wrong id in the prompt": _other_context,
    "the logprob of another id": _other_logprob,
    "logprobs moved by one": _shifted,
    "an id that does not count": _uncounted,
    "a row without one of its answers": _no_answer,
    "a row that ends early": _rest_of,
}


@cache
def played(name: str) -> tuple[Model, Direct]:
    model = Model(chat_of("qwen3"), script("", True))
    client = Direct(model.chat, model)
    BEHAVIOURS[name](Agent(client))
    return model, client


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault: str) -> None:
    """The control of the check above: what it must never see, and would see."""
    model, client = played("verbatim")
    found = rows_of(export(client.session, "keep"), About("s", None, None, {}))
    counted, gap = check_rows(model, found)
    assert counted == model.sampled and gap < 1e-9
    longest = max(found, key=lambda row: row["length"])
    places = [at for at, mask in enumerate(longest["loss_mask"]) if mask and longest["loss_mask"][at - 1]]
    FAULTS[fault](longest, places[len(places) // 3])
    counted, gap = check_rows(model, found)
    assert counted != model.sampled or gap > 1e-3, gap


@pytest.mark.parametrize("fault", ["lost", "twice"])
def test_a_row_that_is_lost_or_counts_twice_is_an_error(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours: no row is given out then, as what was sampled counts once, or is left out for a reason."""
    _, client = played("branches")
    assert summary([export(client.session)])["counted"]
    rows_of_a_line = samples._rows

    def wrong(*given: Any) -> list[samples.Row]:
        found = [*rows_of_a_line(*given)]
        return found[1:] if fault == "lost" else [*found, *found]

    monkeypatch.setattr(samples, "_rows", wrong)
    with pytest.raises(RuntimeError, match="ids were sampled"):
        summary([export(client.session)])
