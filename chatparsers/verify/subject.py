"""The model that the server should serve: what its files say of a request's prompt, and of a raw text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..answers.format import Turn
from ..chat.chat import Chat
from ..errors import ChatParsersError
from ..kept import cached
from ..serving import read_chat
from ..streams.message import Message
from .answer import data_of
from .raw import Raw
from .rows import first_difference
from .written import without_stop

_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2} [A-Z][a-z]{2,8} \d{4}|[A-Z][a-z]{2,8} \d{1,2}, \d{4}|\d\d:\d\d(:\d\d)?"
)


class Prompts(NamedTuple):
    """The prompts of one request. ``right``: what the template renders, with its polyfills and without. ``known``:
    what servers do by choice, each with the name of that choice. ``plain``: what the template renders of the request
    as it is, without the generation prompt; None if it does not."""

    right: dict[str, str]
    known: dict[str, str]
    plain: str | None

    @property
    def bare(self) -> bool:
        """Whether the template renders the request as it is."""
        return self.plain is not None


class Subject:
    """A model, for many requests."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.tokenizer = chat.tokenizer
        self._turns: dict[str, Turn] = {}

    def turn(self, body: Mapping[str, Any]) -> Turn:
        """The turn that answers a chat-completions request. Raises `ChatParsersError` if there is none."""
        key = repr(body)
        if key not in self._turns:
            self._turns[key] = self._prepared(body)
        return self._turns[key]

    def turn_after(self, body: Mapping[str, Any], prompt: str | None, size: int | None) -> Turn:
        """The turn by which an answer is read. A server that lets the model think by default, or not, wrote another
        beginning of the answer: its prompt tells that by its end, or by its ``size`` in tokens."""
        ours = self.turn(body)
        turns = [ours, *filter(None, (self._thinking(body, on) for on in (True, False)))]
        if prompt is not None:
            return max(turns, key=lambda turn: first_difference(turn.prompt[::-1], prompt[::-1]))
        fits = [turn for turn in turns if size is not None and self.count(turn.prompt) in (size, size - 1)]
        return fits[0] if fits else ours

    def _thinking(self, body: Mapping[str, Any], on: bool) -> Turn | None:
        key = f"{on} {body!r}"
        if key not in self._turns:
            try:
                self._turns[key] = self._prepared(body, thinking=on)
            except ChatParsersError:
                return None
        return self._turns[key]

    def _prepared(self, body: Mapping[str, Any], **more: Any) -> Turn:
        asked = read_chat({"model": "", **body}).prepare
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options: dict[str, Any] = {"id_seed": "", **asked, **more}
            return self.chat.prepare(**options)

    def prompts(self, body: Mapping[str, Any]) -> Prompts:
        """The prompts that a server may make of a request. Raises `ChatParsersError` if we make none."""
        right, known = {self.turn(body).prompt: "ours"}, dict[str, str]()
        bare = self._rendered(body, polyfills=False)
        if bare is not None:
            right.setdefault(bare, "the template alone")
        choices: dict[str, Mapping[str, Any]] = {
            "parts of a text are joined by a line break": {**body, "messages": _joined(body, "\n")},
            "parts of a text are joined by a space": {**body, "messages": _joined(body, " ")},
            "parts of a text are joined by nothing": {**body, "messages": _joined(body, "")},
        }
        if body.get("tool_choice") == "none":
            choices["tools are left out under none"] = {
                name: value for name, value in body.items() if name not in ("tools", "tool_choice")
            }
        for name, other in choices.items():
            known.setdefault(self._rendered(other) or "", name)
            known.setdefault(self._rendered(other, polyfills=False) or "", name)
        switches: dict[str, dict[str, Any]] = {
            "the date of today": {"now": datetime.now()},
            "thinking is on": {"thinking": True},
            "thinking is off": {"thinking": False},
        }
        for name, more in switches.items():
            known.setdefault(self._rendered(body, **more) or "", name)
            known.setdefault(self._rendered(body, **more, polyfills=False) or "", name)
        return Prompts(
            right,
            {text: name for text, name in known.items() if text and text not in right},
            None if bare is None else self._plain(body),
        )

    def _plain(self, body: Mapping[str, Any]) -> str | None:
        """What a plain host renders of a request: with the messages as they are, and arguments as text or as data, in
        Hugging Face's own sandbox, where templates may not change lists, and no tools are None."""
        template = self.chat.template(True)
        if re.search(r"\.(append|pop)\(", template.source):
            return None
        if template.wants.no_tools == "list" and not body.get("tools"):
            return None
        options = {"tools": body.get("tools"), **(body.get("chat_template_kwargs") or {})}
        for messages in (body["messages"], _as_data(body["messages"])):
            try:
                return template.render_unshaped(messages, **options)
            except ChatParsersError:
                continue
        return None

    def _rendered(self, body: Mapping[str, Any], **more: Any) -> str | None:
        try:
            return self._prepared(body, **more).prompt
        except ChatParsersError:
            return None

    def read(self, turn: Turn, raw: Raw) -> Message | None:
        """What we read in a raw text: by ids if they are known, because no text can forge them."""
        if raw.ids is not None and self.tokenizer is not None:
            return turn.parse(raw.ids)
        if raw.text is None:
            return None
        return turn.parse(without_stop(turn, raw.text))

    def decoded(self, ids: list[int]) -> str | None:
        """The text of ids, with every special token."""
        if self.tokenizer is None:
            return None
        found: str = self.tokenizer.decode(ids, skip_special_tokens=False)
        return found

    def count(self, text: str) -> int | None:
        """How many tokens a text has; None without a tokenizer."""
        if self.tokenizer is None:
            return None
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def quotes(self, body: Mapping[str, Any]) -> bool:
        """Whether the words of a request spell a special token. A careful server gives them more ids."""
        asked = read_chat({"model": "", **body}).prepare
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(self.chat.quoted(**asked))

    @cached
    def ends(self) -> set[int]:
        """The ids that end an answer by the model's files."""
        return set(self.chat.files.eos_ids)

    @cached
    def markers(self) -> tuple[str, ...]:
        """The markers of the format that a client must never see: those that no prose has."""
        turn = self.chat.bind(tools=[{"name": "any"}])
        added = () if self.tokenizer is None else self.tokenizer.get_added_tokens_decoder().values()
        found = dict.fromkeys([*turn.preserved_tokens, *turn.stops, *(token.content for token in added)])
        return tuple(text for text in found if re.search(r"[<\[|｜]", text) and len(text) > 3)


def same_but_dates(left: str, right: str) -> bool:
    """Whether two prompts differ in nothing but dates and times."""
    return _DATE.sub("0", left) == _DATE.sub("0", right)


def _as_data(messages: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The messages, with the arguments of calls as data."""
    return [
        {**message, "tool_calls": [_with_data(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in messages
    ]


def _with_data(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {**call, "function": {**function, "arguments": data_of(function["arguments"])}}


def _joined(body: Mapping[str, Any], by: str) -> list[Any]:
    """The messages, with the parts of each text joined."""
    return [
        {**message, "content": by.join(part.get("text", "") for part in message["content"])}
        if isinstance(message.get("content"), list)
        else message
        for message in body["messages"]
    ]
