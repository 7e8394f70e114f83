"""Dictation: a server's parser is fed with any text, without its model, where it can be fed alone.

What is dictated are the scenarios of `chatparsers.testing`, as the model's template writes them, and one call cut at
every few tokens. What the server's parser says is judged by the same checks as an answer.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..answers.format import Turn
from ..testing.rendering import Inexpressible, render
from ..testing.scenarios import Scenario, scenarios
from .answer import Answer, AnswerCall, objects, text
from .apis import APIS
from .asking import Asked, can_ask
from .client import Client, Response
from .exchange import Exchange
from .probes import Probe, user
from .raw import WAYS, Raw, raw_of
from .server import Server
from .subject import Subject
from .written import without_stop

_CUTS, _TAIL = 12, 32
"""In how many places a call is cut, and how many ids of the prompt go along: vLLM reads the last ones alone."""


@dataclass(frozen=True, slots=True)
class Dictated:
    """A text that the server's parser is to read, and the request that it answers."""

    probe: Probe
    text: str
    ids: list[int] | None
    turn: Turn
    cut: bool = False

    @property
    def prompt_ids(self) -> list[int]:
        """The ids of the request's prompt."""
        found: list[int] = self.turn.tokenizer.encode(self.turn.prompt, add_special_tokens=False).ids
        return found


class Fed(NamedTuple):
    """A text that was fed: where, by which body, the response, and what a client would see. ``written``: what a model
    wrote that had to write the text, None if it does not run or that is not known."""

    path: str
    body: dict[str, Any]
    response: Response
    said: Answer | None
    written: Raw | None = None


class DictationRoute(NamedTuple):
    """How a server's parser is fed. ``forces``: by its model, which can write nothing else."""

    name: str
    feed: Callable[[Client, Server, Dictated], Fed]
    forces: bool = False


def dictated(subject: Subject) -> Iterator[Dictated]:
    """The texts: every scenario that the template can show, and one call cut in many places."""
    cut_one: Dictated | None = None
    for scenario in scenarios(subject.chat.format):
        if scenario.heavy or scenario.continued or scenario.tool_choice != "auto":
            continue  # a forced call each server writes in a form of its own
        one = _dictated(subject, scenario)
        if one is None:
            continue
        yield one
        if cut_one is None and len(scenario.calls) == 1 and not scenario.reasoning:
            cut_one = one
    if cut_one is not None:
        for number in range(1, _CUTS):
            at = len(cut_one.text) * number // _CUTS
            name = f"{cut_one.probe.name}/cut at {at}"
            probe, text = replace(cut_one.probe, name=name), cut_one.text[:at]
            yield replace(cut_one, probe=probe, text=text, ids=_ids(subject, text), cut=True)


def _dictated(subject: Subject, scenario: Scenario) -> Dictated | None:
    """The text of a scenario, and the request that it answers; None if the template cannot show it so."""
    chat = subject.chat
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = render(chat.format, chat.template(True), scenario)
    except Inexpressible:
        return None
    body: dict[str, Any] = {"messages": [user("Please go on.")]}
    for name in ("tools", "tool_choice", "parallel_tool_calls", "response_format"):
        value = case.options.get(name)
        if value is not None:
            body[name] = list(value) if isinstance(value, tuple) else value
    if not body.get("tools"):  # servers refuse a choice of none
        body = {name: body[name] for name in ("messages", "response_format") if name in body}
    switch = chat.template(True).thinking_kwargs(scenario.thinking)
    if switch:
        body["chat_template_kwargs"] = switch
    probe = Probe(f"dictated/{scenario.name}", body)
    if can_ask(subject, probe) or subject.turn(body).prefix != case.prefix:
        return None
    turn = subject.turn(body)
    text = without_stop(turn, case.text)  # the engine takes it off before its parser
    return Dictated(probe, text, _ids(subject, text), turn)


def _ids(subject: Subject, text: str) -> list[int] | None:
    if subject.tokenizer is None:
        return None
    found: list[int] = subject.tokenizer.encode(text, add_special_tokens=False).ids
    return found


def ways(client: Client, server: Server) -> Iterator[DictationRoute]:
    """How this server's parser can be fed alone: the ways that an engine of its kind may have."""
    if server.engine == "vllm":
        yield DictationRoute("/v1/chat/completions/derender", _derender)
        yield DictationRoute("structured_outputs.choice", _choice, forces=True)
    elif server.engine == "sglang":
        yield DictationRoute("/parse_function_call, /separate_reasoning", _parsers(client))
        yield DictationRoute("regex", _regex, forces=True)
    elif server.engine == "llama-server":
        yield DictationRoute("grammar, where there are no tools", _grammar, forces=True)
    elif server.engine == "other":
        yield DictationRoute("/v1/chat/completions/derender", _derender)


def dictate(client: Client, server: Server, subject: Subject) -> tuple[list[Asked], str]:
    """Feeds all texts by the first way that works. The way is "" if there is none. What a model wrote instead of the
    text that it had to write proves nothing, and is left out."""
    texts = [one for one in dictated(subject) if server.engine != "llama-server" or not one.probe.tools]
    for way in ways(client, server):
        asked: list[Asked] = []
        for number, one in enumerate(texts):
            if way.forces and one.probe.schema is not None:
                continue  # a request has one grammar
            fed = way.feed(client, server, one)
            if fed.said is None and not number and not fed.response.ok:
                break
            if not way.forces or _obeyed(subject, one, fed):
                asked.append(Asked(_exchange(subject, one, fed)))
        if asked:
            return asked, way.name
    return [], ""


def _obeyed(subject: Subject, one: Dictated, fed: Fed) -> bool:
    """Whether the model wrote the text that it had to write."""
    if fed.written is None or not fed.written.known:
        return False
    text = fed.written.text if fed.written.ids is None else subject.decoded(fed.written.ids)
    return without_stop(one.turn, text or "") == one.text


def _exchange(subject: Subject, one: Dictated, fed: Fed) -> Exchange:
    if fed.said is not None:
        fed.said.prompt = None  # nothing was rendered
        fed.said.finish = fed.said.finish or ("length" if one.cut else None)
    raw = Raw(text=one.text)
    return Exchange(
        one.probe,
        APIS["chat"],
        False,
        fed.body,
        fed.response,
        fed.said,
        raw,
        subject,
        one.turn,
        fed.path,
        sane=True,
    )


def _forced(client: Client, server: Server, one: Dictated, **fields: Any) -> Fed:
    """The answer of a model that can write nothing else, with what it wrote."""
    told = next(way.fields for way in WAYS if server.engine in way.engines)
    body = {"model": server.model, "temperature": 0, "max_tokens": 4096, **one.probe.body, **told, **fields}
    fed = _posted(client, APIS["chat"].path, body)
    return fed if fed.said is None else fed._replace(written=raw_of(fed.response.data, fed.said.completion))


def _posted(client: Client, path: str, body: dict[str, Any]) -> Fed:
    response = client.post(path, body)
    return Fed(path, body, response, APIS["chat"].read(response.data) if response.ok else None)


def _derender(client: Client, server: Server, one: Dictated) -> Fed:
    """vLLM: ids in, message out, without a model."""
    choice = {"index": 0, "finish_reason": "length" if one.cut else "stop", "token_ids": one.ids or []}
    body = {
        "model": server.model,
        "generate_response": {"output_mode": "tokens", "choices": [choice]},
        "prompt_token_ids": one.prompt_ids[-_TAIL:],
        "chat_request": {"model": server.model, **one.probe.body},
    }
    return _posted(client, "/v1/chat/completions/derender", body)


def _choice(client: Client, server: Server, one: Dictated) -> Fed:
    """vLLM. Where it reads reasoning, it forces what comes after, or all with ``enable_in_reasoning``."""
    return _forced(client, server, one, structured_outputs={"choice": [one.text]})


def _regex(client: Client, server: Server, one: Dictated) -> Fed:
    """SGLang."""
    return _forced(client, server, one, regex=re.escape(one.text))


def _grammar(client: Client, server: Server, one: Dictated) -> Fed:
    """llama-server takes a grammar only where the request has no tools. Its strings are escaped as JSON's are."""
    return _forced(client, server, one, grammar=f"root ::= {json.dumps(one.text, ensure_ascii=False)}")


def _parsers(client: Client) -> Callable[[Client, Server, Dictated], Fed]:
    """SGLang: its parsers of reasoning and of calls alone, by the names with which the server was started."""
    info = client.get("/server_info").data
    calls, thoughts = info.get("tool_call_parser"), info.get("reasoning_parser")

    def feed(client: Client, server: Server, one: Dictated) -> Fed:
        said = Answer(content=one.text, finish="stop")
        fed = Fed("", {}, Response(200 if calls or thoughts else 404, ""), None)
        if thoughts:
            body = {"text": one.text, "reasoning_parser": thoughts}
            fed = _posted(client, "/separate_reasoning", body)
            said.reasoning, said.content = (
                text(fed.response.data.get("reasoning_text")),
                text(fed.response.data.get("text")),
            )
        if calls and one.probe.tools and (fed.response.ok or not thoughts):
            body = {"text": said.content, "tools": one.probe.body["tools"], "tool_call_parser": calls}
            fed = _posted(client, "/parse_function_call", body)
            said.content = text(fed.response.data.get("normal_text"))
            for number, call in enumerate(objects(fed.response.data.get("calls"))):
                said.calls.append(AnswerCall(f"call_{number}", call.get("name"), call.get("parameters", "")))
            said.finish = "length" if one.cut else "calls" if said.calls else "stop"
        return fed._replace(said=said if fed.response.ok else None)

    return feed
