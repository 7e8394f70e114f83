"""What the playground shows of a request: a piece of HTML for each of its sections.

A request is what the page's fields hold, all as text. Each section is made alone, so a mistake in one field (messages
that are no JSON) leaves the others. Nothing is raised: a section says what was wrong.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypedDict, get_args

from ..answers.format import Dialect, Format, Turn
from ..chat.chat import Chat
from ..chat.load import load
from ..display import Card, show, strip, timeline
from ..display.card import box
from ..display.looks import cut, for_html
from ..display.picture import Picture
from ..display.strip import causes_html
from ..document import dumps
from ..errors import ChatParsersError, RequestError
from ..explaining.explain import explain
from ..registry import get_format
from ..serving import AnthropicMessages, OpenAIChat, OpenAIResponses, Writer
from ..streams.message import Message

SECTIONS = {
    "strip": "What the output says",
    "why": "Why it is no call",
    "message": "The message in three APIs",
    "timeline": "As it arrives",
    "format": "Format and evidence",
    "data": "The format as data",
    "prompt": "Prompt",
    "grammar": "Grammar",
}
"""The sections in their order on the page, with their headings."""
_STEPS = 400
"""How many pieces the timeline shows."""
_WRITERS: dict[str, type[Writer[Any, Any]]] = {
    "OpenAI, chat completions": OpenAIChat,
    "OpenAI, responses": OpenAIResponses,
    "Anthropic, messages": AnthropicMessages,
}


class Asked(TypedDict, total=False):
    """What the page's fields hold. ``template`` decides over ``format``; ``thinking`` is ``on``, ``off`` or empty,
    ``choice`` a tool choice, ``size`` how many characters a piece has."""

    template: str
    format: str
    messages: str
    tools: str
    thinking: str
    choice: str
    output: str
    size: int


def answer(request: str, post: Callable[[str, str], object]) -> None:
    """Answers a request in JSON: calls ``post(section, html)`` for each section as soon as it is made."""
    for name, html in sections(json.loads(request)):
        post(name, html)


def sections(asked: Asked) -> Iterator[tuple[str, str]]:
    """Each section's name and its HTML. Raises nothing for what a user may write."""
    reading = _Reading(asked)
    for name in SECTIONS:
        make: Callable[[], str] = getattr(reading, name)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                html = make()
            except (ChatParsersError, ValueError) as error:
                html = f'<div class="note">{for_html(cut(str(error), 2_000)[0])}</div>'
        notes = dict.fromkeys(str(each.message) for each in told)
        yield name, html + "".join(f'<div class="note">{for_html(note)}</div>' for note in notes)


@lru_cache(maxsize=4)
def _chat(template: str, format: str) -> Chat:
    return load(template, format=format or None)


class _Reading:
    """A request as it is read: each part once, and only when a section needs it."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._message: Message | None = None
        self._turn: Turn | None = None

    # sections

    def strip(self) -> str:
        return strip(self._read(), turn=self._bound()).body()

    def why(self) -> str:
        found = explain(self.asked.get("output", ""), self._bound())
        if not found.causes:
            return "<p>Nothing is wrong: a call was read, or none was meant.</p>"
        return causes_html(found.causes)

    def message(self) -> str:
        read = self._read()
        texts = []
        for name, writer in _WRITERS.items():
            whole = writer("a-model", id="an-id", created=0).whole(read)
            texts.append((name, json.dumps(whole, ensure_ascii=False, indent=2)))
        return _boxes(texts)

    def timeline(self) -> str:
        text, size = self.asked.get("output", ""), max(int(self.asked.get("size") or 4), 1)
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        return timeline(self._bound(), pieces, most=_STEPS).table()

    def format(self) -> str:
        chat = self._chat()
        if chat is None:
            return show(self._format()).body()
        name = f"named by you: {chat.format.name}" if self.asked.get("format") else ""
        parts: list[Picture] = [Card(name)] if name else [show(chat.detection)]
        parts += [show(chat.template().probe()), *_drawn(chat.format)]
        return "".join(picture.body() for picture in parts)

    def data(self) -> str:
        chat = self._chat()
        format = self._format() if chat is None else chat.format
        return _boxes([(f"{format.name}.json", dumps(format.to_data()))])

    def prompt(self) -> str:
        chat = self._chat()
        if chat is None:
            return "<p>Without a template there is no prompt: the format alone is bound.</p>"
        turn = self._bound()
        told = [f"written in another way: {', '.join(turn.polyfills)}"] if turn.polyfills else []
        told += [f"the prompt begins the answer: {turn.prefix!r}"] if turn.prefix else []
        notes = "".join(f"<p>{for_html(line)}</p>" for line in told)
        sample = chat.encode(self._messages(), **self._options(), add_generation_prompt=True)
        return notes + strip(sample).body()

    def grammar(self) -> str:
        turn = self._bound()
        texts, notes = [], dict[str, None]()
        for dialect in get_args(Dialect):
            grammar = turn.grammar(dialect)
            if grammar is None:
                return "<p>This request constrains nothing, so there is no grammar.</p>"
            begins = "from a call on" if grammar.lazy else "from the first token on"
            texts.append((f"{dialect}, {begins}", grammar.text))
            notes |= dict.fromkeys(f"{each.path}, {each.keyword}: {each.why}" for each in grammar.weakened)
        weak = "".join(f"<li>{for_html(note)}</li>" for note in notes)
        return _boxes(texts) + (f"<p>Not enforced:</p><ul>{weak}</ul>" if weak else "")

    # what they need

    def _chat(self) -> Chat | None:
        template = self.asked.get("template", "")
        return _chat(template, self.asked.get("format", "")) if template.strip() else None

    def _format(self) -> Format:
        name = self.asked.get("format", "")
        if not name:
            raise RequestError("expected a template or a format, found neither: paste one, or choose one")
        return get_format(name)

    def _options(self) -> dict[str, Any]:
        thinking = {"on": True, "off": False}.get(self.asked.get("thinking", ""))
        return {"tools": self._list("tools"), "thinking": thinking, **self._choice()}

    def _choice(self) -> dict[str, Any]:
        choice = self.asked.get("choice", "")
        return {"tool_choice": choice} if choice and self._list("tools") else {}

    def _messages(self) -> list[Any]:
        return self._list("messages") or [{"role": "user", "content": "Hello"}]

    def _list(self, field: str) -> list[Any] | None:
        """A field that holds a JSON list; None if it is empty."""
        text = str(self.asked.get(field, ""))
        if not text.strip():
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"{field}: expected JSON: {error}") from error
        if isinstance(value, Mapping) and isinstance(value.get(field), list):
            value = value[field]
        if not isinstance(value, list):
            raise RequestError(f"{field}: expected a list in JSON, found {type(value).__name__}")
        return value

    def _bound(self) -> Turn:
        if self._turn is None:
            chat = self._chat()
            if chat is None:
                self._turn = self._format().bind(**self._options(), id_seed="playground")
            else:
                self._turn = chat.prepare(self._messages(), **self._options(), id_seed="playground")
        return self._turn

    def _read(self) -> Message:
        if self._message is None:
            self._message = self._bound().parse(self.asked.get("output", ""))
        return self._message


def _drawn(format: Format) -> list[Picture]:
    """The diagram of the format, where the package that draws it is there."""
    try:
        return [show(format)]
    except ModuleNotFoundError:
        return []


def _boxes(texts: list[tuple[str, str]]) -> str:
    """Texts that open and close; the first is open."""
    return "".join(box(name, text, open=number == 0) for number, (name, text) in enumerate(texts))
