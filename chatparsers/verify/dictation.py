"""Dictation: a server's parser is fed with any text, without its model, where it can be fed alone.

What is dictated are the scenarios of `chatparsers.testing`, as the model's template writes them, and one call cut at
every few tokens. What the server's parser says is judged by the same checks as an answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..core.format import Turn
from ..testing.rendering import Case, Inexpressible, render
from ..testing.scenarios import scenarios
from .apis import APIS
from .asking import Asked
from .client import Client, Response
from .exchange import Exchange
from .probes import Probe, user
from .raw import Raw
from .said import Said, SaidCall, objects, text
from .server import Server
from .subject import Subject

_CUTS = 12
"""In how many places a call is cut."""


@dataclass(frozen=True, slots=True)
class Dictated:
    """A text that the server's parser is to read, and the request that it answers."""

    probe: Probe
    text: str
    ids: list[int] | None
    turn: Turn
    cut: bool = False


class Way(NamedTuple):
    """How a server's parser is fed. ``feed`` gives the response and what a client would see, or None for no answer."""

    name: str
    feed: Callable[[Client, Server, Dictated], tuple[Response, Said | None]]


def dictated(subject: Subject) -> Iterator[Dictated]:
    """The texts: every scenario that the template can show, and one call cut in many places."""
    chat = subject.chat
    template = chat.template(True)
    cut_one: Case | None = None
    for scenario in scenarios(chat.format):
        if scenario.heavy or scenario.continued:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case = render(chat.format, template, scenario)
        except Inexpressible:
            continue
        yield _dictated(subject, case, case.text)
        if cut_one is None and len(case.expected.calls) == 1 and not case.prefix:
            cut_one = case
    if cut_one is not None:
        size = len(cut_one.text)
        for number in range(1, _CUTS):
            at = size * number // _CUTS
            yield replace(_dictated(subject, cut_one, cut_one.text[:at], f"cut at {at}"), cut=True)


def _dictated(subject: Subject, case: Case, text: str, more: str = "") -> Dictated:
    options = case.options
    body: dict[str, Any] = {"messages": [user("Please go on.")]}
    for name in ("tools", "tool_choice", "parallel_tool_calls", "response_format"):
        if options.get(name) is not None:
            body[name] = options[name]
    name = "/".join(filter(None, ("dictated", case.scenario, more)))
    ids = None if subject.tokenizer is None else subject.tokenizer.encode(text, add_special_tokens=False).ids
    return Dictated(Probe(name, body), text, ids, case.turn())


def ways(client: Client, server: Server) -> Iterator[Way]:
    """How this server's parser can be fed alone: the ways that an engine of its kind may have."""
    if server.engine == "vllm":
        yield Way("/v1/chat/completions/derender", _derender)
        yield Way("structured_outputs.choice", _choice)
    elif server.engine == "sglang":
        yield Way("/parse_function_call, /separate_reasoning", _parsers(client))
        yield Way("regex", _regex)
    elif server.engine == "llama-server":
        yield Way("grammar", _grammar)
    elif server.engine == "other":
        yield Way("/v1/chat/completions/derender", _derender)


def dictate(client: Client, server: Server, subject: Subject) -> tuple[list[Asked], str]:
    """Feeds all texts by the first way that works. The way is "" if there is none."""
    texts = list(dictated(subject))
    for way in ways(client, server):
        asked: list[Asked] = []
        for one in texts:
            response, said = way.feed(client, server, one)
            if response.status in (403, 404, 405, 501) or (
                said is None and not asked and response.status != 200
            ):
                break
            asked.append(Asked(_exchange(subject, one, response, said)))
        else:
            return asked, way.name
    return [], ""


def _exchange(subject: Subject, one: Dictated, response: Response, said: Said | None) -> Exchange:
    body = dict(one.probe.body)
    raw = Raw(text=one.text)
    if said is not None and one.cut:
        said.finish = said.finish or "length"
    return Exchange(one.probe, APIS["chat"], False, body, response, said, raw, subject, one.turn)


def _chat(
    client: Client, server: Server, one: Dictated, fields: dict[str, Any]
) -> tuple[Response, Said | None]:
    body = {"model": server.model, "temperature": 0, **one.probe.body, **fields}
    response = client.post(APIS["chat"].path, body)
    return response, APIS["chat"].read(response.data) if response.ok else None


def _derender(client: Client, server: Server, one: Dictated) -> tuple[Response, Said | None]:
    """vLLM: ids in, message out, without a model."""
    choice = {"index": 0, "finish_reason": "length" if one.cut else "stop", "token_ids": one.ids or []}
    request = {"model": server.model, **one.probe.body}
    body = {
        "model": server.model,
        "generate_response": {"output_mode": "tokens", "choices": [choice]},
        "prompt_token_ids": [],
        "chat_request": request,
    }
    response = client.post("/v1/chat/completions/derender", body)
    return response, APIS["chat"].read(response.data) if response.ok else None


def _choice(client: Client, server: Server, one: Dictated) -> tuple[Response, Said | None]:
    """vLLM: the model can write nothing else."""
    return _chat(client, server, one, {"structured_outputs": {"choice": [one.text]}, "max_tokens": 4096})


def _regex(client: Client, server: Server, one: Dictated) -> tuple[Response, Said | None]:
    """SGLang: the model can write nothing else."""
    pattern = "".join(
        f"\\{letter}" if not letter.isalnum() and letter.isascii() else letter for letter in one.text
    )
    return _chat(client, server, one, {"regex": pattern, "max_tokens": 4096})


def _grammar(client: Client, server: Server, one: Dictated) -> tuple[Response, Said | None]:
    """llama-server takes a grammar only where the request has no tools."""
    if one.probe.tools:
        return Response(200, ""), Said(finish="stop")
    escaped = (
        one.text.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\r", "\\r")
        .replace("\t", "\\t")
    )
    return _chat(client, server, one, {"grammar": f'root ::= "{escaped}"', "max_tokens": 4096})


def _parsers(client: Client) -> Callable[[Client, Server, Dictated], tuple[Response, Said | None]]:
    """SGLang: its parsers of reasoning and of calls alone, by the names with which the server was started."""
    info = client.get("/server_info").data
    calls, thoughts = info.get("tool_call_parser"), info.get("reasoning_parser")

    def feed(client: Client, server: Server, one: Dictated) -> tuple[Response, Said | None]:
        said = Said(content=one.text, finish="stop")
        response = Response(404, "")
        if thoughts:
            response = client.post("/separate_reasoning", {"text": one.text, "reasoning_parser": thoughts})
            if not response.ok:
                return response, None
            said.reasoning, said.content = (
                text(response.data.get("reasoning_text")),
                text(response.data.get("text")),
            )
        if calls and one.probe.tools:
            asked = {"text": said.content, "tools": one.probe.body["tools"], "tool_call_parser": calls}
            response = client.post("/parse_function_call", asked)
            if not response.ok:
                return response, None
            said.content = text(response.data.get("normal_text"))
            for number, call in enumerate(objects(response.data.get("calls"))):
                said.calls.append(SaidCall(f"call_{number}", call.get("name"), call.get("parameters", "")))
            said.finish = "calls" if said.calls else "stop"
        return response, said if response.ok else None

    return feed
