"""Sends probes, whole and streamed, and makes exchanges of the answers, with the raw text if the server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ChatParsersError
from .answer import objects
from .apis import APIS, Api
from .client import Client, Response, VerifyError
from .events import events
from .exchange import Exchange
from .probes import MOST, Probe, user
from .raw import NOTHING, PAIRED, WAYS, Raw, RawSource, raw_of, raw_of_events
from .server import Server
from .subject import Subject

_TOOL = {
    "type": "function",
    "function": {"name": "wave", "description": "Waves.", "parameters": {"type": "object", "properties": {}}},
}
_HELLOS = (
    Probe("raw text", {"messages": [user("Good morning.")]}),
    Probe("raw text", {"messages": [user("Good morning.")], "tools": [_TOOL]}),  # some templates need tools
)
_SEEDS = 4
_REFUSED = (400, 404, 405, 415, 422, 501)


@dataclass
class Asked:
    """All exchanges of one probe through one API. ``again``: a second whole and a second streamed one, asked for where
    the first ones differ and their ids do not say why."""

    whole: Exchange
    stream: Exchange | None = None
    again: tuple[Exchange, ...] = ()

    @property
    def exchanges(self) -> list[Exchange]:
        return [self.whole, *([self.stream] if self.stream else []), *self.again]


@dataclass
class Asker:
    """Asks one server about one model.

    ``way``: how it is asked for the raw text. ``sampling``: the fields of every request, temperature 0 unless given.
    ``extra``: fields that are put into every request last. ``refused``: what the server refused and was left out.
    """

    client: Client
    subject: Subject
    server: Server
    sampling: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0, "seed": 0})
    extra: Mapping[str, Any] = field(default_factory=dict)
    way: RawSource = NOTHING
    most: int = MOST
    refused: list[str] = field(default_factory=list)

    def find_way(self) -> None:
        """Finds the first way by which the server tells a raw text. Raises `VerifyError` if it answers no request."""
        told = ""
        for hello in _HELLOS:
            told = self._find_by(hello)
            if not told:
                return
        raise VerifyError(f"the server answers no chat request: {told}")

    def _find_by(self, hello: Probe) -> str:
        """Finds the way by one request. What the server told instead of an answer; "" if it answers."""
        known = [way for way in WAYS if self.server.engine in way.engines]
        self.refused.clear()
        for way in [*known, *(each for each in WAYS if each not in known), NOTHING]:
            self.way = way
            asked = self._sent(hello, APIS["chat"], False, {"max_tokens": 1})
            if asked.response.status in (401, 403):
                raise VerifyError(f"the server refuses the key (status {asked.response.status})")
            if asked.said is not None and way is NOTHING:
                self.way = PAIRED if self._completed(asked) is not None else NOTHING
                return ""
            if asked.said is not None and asked.raw.known:
                return ""
            if way is not NOTHING and asked.response.status in _REFUSED:
                self.refused.append(f"{way.name}: status {asked.response.status}")
        if not asked.response.failed or asked.response.inconclusive:
            return f"status {asked.response.status}: {asked.response.text[:200]}"
        self.way = known[0] if known else NOTHING  # it fails at this text; the probes say at which else
        return ""

    def ask(
        self, probe: Probe, api: Api, *, streams: bool = True, more: Mapping[str, Any] | None = None
    ) -> Asked:
        """Asks a probe, whole and streamed, and again where that is needed to judge."""
        whole = self.asked(probe, api, False, more or {})
        for number in range(1, _SEEDS):
            if probe.prompt and whole.response.failed:  # the prompt is judged, and not the token after it
                whole = self.asked(probe, api, False, {**(more or {}), "seed": number})
        free = not (probe.prompt or probe.forced or probe.stops or probe.schema is not None)
        if self.way is PAIRED and free and whole.said is not None and api.name == "chat":
            whole.raw = self._paired(whole)
        if probe.prompt or not streams or whole.said is None:
            return Asked(whole)
        stream = self.asked(probe, api, True, more or {})
        if stream.said is None or alike(whole, stream):
            return Asked(whole, stream)
        again = (self.asked(probe, api, False, more or {}), self.asked(probe, api, True, more or {}))
        return Asked(whole, stream, again)

    def _paired(self, exchange: Exchange) -> Raw:
        """The raw text of the same prompt through the server's completions: if two of them are equal, and have as many
        tokens as the answer, so that no special token was left out."""
        first = self._completed(exchange)
        if first is None or first != self._completed(exchange):
            return exchange.raw
        size, paid = self.subject.count(first), exchange.answer.completion
        same = size is not None and paid is not None and abs(size - paid) <= 1  # with or without the stop
        same = same and bool(
            first or not exchange.answer.content
        )  # some leave special tokens out of the text
        return Raw(text=first, source="paired") if same else exchange.raw

    def _completed(self, exchange: Exchange) -> str | None:
        """What the server completes the prompt of an exchange to, if it counts as many tokens in it."""
        kept = ("model", "max_tokens", "temperature", "seed")
        body = {name: exchange.body[name] for name in kept if name in exchange.body}
        body |= {"prompt": exchange.turn.prompt, "skip_special_tokens": False}
        data = self.client.post("/v1/completions", body).data
        said, choice = data.get("usage") or {}, next(objects(data.get("choices")), {})
        if not isinstance(choice.get("text"), str) or said.get("prompt_tokens") != exchange.answer.prompt:
            return None
        return str(choice["text"])

    def asked(self, probe: Probe, api: Api, stream: bool, more: Mapping[str, Any]) -> Exchange:
        """One exchange. If the server refuses the fields for the raw text here, it is asked without them."""
        found = self._sent(probe, api, stream, more)
        fields = self.way.stream if stream else self.way.fields
        if found.response.status not in _REFUSED or not fields or api.name != "chat":
            return found
        plain = self._sent(probe, api, stream, more, raw=False)
        if plain.said is not None:
            self.refused.append(f"{self.way.name} in {found.name}: status {found.response.status}")
        return plain

    def body(
        self, probe: Probe, api: Api, stream: bool, more: Mapping[str, Any], *, raw: bool = True
    ) -> dict[str, Any]:
        """The body of a request, as it is sent."""
        most = {"max_tokens": 1 if probe.prompt else self.most}
        asked = api.request({"model": self.server.model, **most, **self.sampling, **probe.body, **more})
        if stream:
            asked = api.streamed(asked)
        if raw and api.name == "chat":
            asked.update(self.way.stream if stream else self.way.fields)
        return {name: value for name, value in {**asked, **self.extra}.items() if value is not None}

    def _sent(
        self, probe: Probe, api: Api, stream: bool, more: Mapping[str, Any], *, raw: bool = True
    ) -> Exchange:
        body = self.body(probe, api, stream, more, raw=raw)
        response = self.client.post(api.path, body)
        found = exchange_of(self.subject, probe, api, stream, body, response)
        if found.said is not None:
            self.client.used(found.said.completion)
        return found


def exchange_of(
    subject: Subject, probe: Probe, api: Api, stream: bool, body: dict[str, Any], response: Response
) -> Exchange:
    """The exchange of a request and its response. Raises `ChatParsersError` if we cannot make the request's turn."""
    said, raw = None, Raw()
    if response.ok and stream:
        found = list(events(response.text))
        said = api.read_events(found)
        raw = raw_of_events(found, said.completion)
    elif response.ok:
        said = api.read(response.data)
        raw = raw_of(response.data, said.completion)
    prompt = raw.prompt if raw.prompt_ids is None else subject.decoded(raw.prompt_ids)
    turn = subject.turn_after(probe.body, prompt, None if said is None else said.prompt)
    return Exchange(probe, api, stream, body, response, said, raw, subject, turn)


def alike(whole: Exchange, stream: Exchange) -> bool:
    """Whether two answers say the same, or their ids tell why not."""
    if whole.raw.ids is not None and stream.raw.ids is not None:
        return True
    return whole.answer.plain() == stream.answer.plain()


def can_ask(subject: Subject, probe: Probe) -> str:
    """Why we cannot judge a request; "" if we can."""
    try:
        subject.turn(probe.body)
    except ChatParsersError as error:
        return str(error)
    return ""
