"""A model for the judge's tests that answers every probe well, in any format: the format's own writer writes it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from chatparsers.answers.format import Turn
from chatparsers.chat.chat import Chat
from chatparsers.errors import RequestError
from chatparsers.gateway import Batch, End, Engine, Job
from chatparsers.testing.tiny import TinyModel, tiny_model
from chatparsers.verify.probes import HARD

THOUGHT = "The user asks me, so I answer."
_ROOM = {
    "guests": 2,
    "view": True,
    "room": "double",
    "nights": ["1 May", "2 May"],
    "address": {"city": "Oslo", "zip": 150},
}
_CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "Use the tool": [("find_train", {"to": "Bergen", "seats": 2})],
    "for 3?": [("find_train", {"to": "Oslo", "seats": 3})],
    "two calls": [("find_train", {"to": "Bergen"}), ("find_train", {"to": "Oslo"})],
    "Bergen now": [("find_train", {"to": "Bergen"})],
    "Bergen today": [("read_clock", {"zone": "CET"})],
    "Bergen tomorrow": [("find_train", {"to": "Bergen"})],
    "Book a double": [("book_stay", _ROOM)],
    "as a note": [("keep_note", {"title": "said", "text": HARD})],
}
_TEXTS = {
    "Greet Ingrid": "Good morning to you, Ingrid, and welcome!",
    "Name a city": '{"city": "Oslo", "people": 700000}',
    "Count from": "1, 2, 3, 4, 5, 6, 7, 8, 9",
    "cheap?": "A train to Bergen costs little if you book early.",
    "Good morning": "Good morning to you as well.",
    "about trains": "Trains run on rails.",
}


@cache
def tiny(name: str) -> TinyModel:
    """The tiny model of a format, with a template that shows the format by itself."""
    path = Path(__file__).parents[1] / "templates_own" / f"{name}.jinja"
    return tiny_model(name, template=path.read_text(encoding="utf-8"))


def said(prompt: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """The content and the calls that answer a prompt: those of the last request in it."""
    found = max([*_CALLS, *_TEXTS], key=prompt.rfind)
    content = _TEXTS.get(found, "I look it up." if found == "Use the tool" else "")
    return content, _CALLS.get(found, [])


def written(turn: Turn, prompt: str) -> str:
    """What the good model writes: its format's own writer writes it, with a thought where the format has one. Where the
    format has no place for a part, such as a second call or a text with its own markers, the model leaves it out."""
    content, calls = said(prompt)
    tools = {tool["function"]["name"]: tool for tool in turn.tools.raw}
    calls = [(name, arguments) for name, arguments in calls if name in tools]
    plainer = [
        (name, {**arguments, "text": "grün"} if "text" in arguments else arguments)
        for name, arguments in calls
    ]
    for wanted in dict.fromkeys(map(json.dumps, (calls, plainer, plainer[:1]))):
        for text, thought in _texts(turn, content, json.loads(wanted), tools):
            text = text.lstrip() if turn.prefix else text
            shared = _shared(turn.prefix, text)
            if thought and turn.prefix and not shared:
                continue  # the prompt wrote that there is none
            begun = text[shared:]
            read = turn.parse(begun)
            found = [[call.name, call.parsed_arguments] for call in read.tool_calls]
            if not read.diagnostics and found == json.loads(wanted) and bool(read.reasoning) == thought:
                return begun
    raise AssertionError(f"{turn.format.name} cannot write {content!r}, {calls}")


def _texts(turn: Turn, content: str, calls: list[Any], tools: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The texts of a message, with a thought and without, with content beside the calls and without."""
    message: dict[str, Any] = {"content": content or ("" if calls else "Yes.")}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}00000000",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for number, (name, arguments) in enumerate(calls)
        ]
    plain = {key: value for key, value in message.items() if key != "content" or not calls}
    for wanted in (
        {**message, "reasoning_content": THOUGHT},
        {**plain, "reasoning_content": THOUGHT},
        message,
        plain,
    ):
        try:
            text = turn.format.render(wanted, list(tools.values()) or None, read_back=False)
        except RequestError:
            continue
        yield text, "reasoning_content" in wanted


def _shared(prefix: str, text: str) -> int:
    """How much of the text the prompt already wrote: the longest end of the prefix that the text begins with."""
    return next(size for size in range(len(prefix), -1, -1) if text.startswith(prefix[len(prefix) - size :]))


class Good(Engine):
    """Answers every probe as a good model does. ``prompt``: what the engine makes of a prompt before it counts it."""

    def __init__(self, chat: Chat, *, ids: bool = True) -> None:
        assert chat.tokenizer is not None
        self.chat, self.tokenizer, self.ids = chat, chat.tokenizer, ids

    async def start(self, chat: Chat) -> list[str]:
        return []

    def answer(self, job: Job) -> str:
        assert isinstance(job.prompt, list)
        return written(job.turn, self.tokenizer.decode(job.prompt, skip_special_tokens=False))

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        ids = [*self.tokenizer.encode(self.answer(job), add_special_tokens=False).ids, *self.ends[:1]]
        most = job.max_tokens or 4000
        for id in ids[:most]:
            yield Batch(ids=[id])
        reason = "stop" if len(ids) <= most else "length"
        yield Batch(end=End(reason, prompt=len(job.prompt), completion=min(len(ids), most)))  # type: ignore[arg-type]

    @property
    def ends(self) -> list[int]:
        return list(self.chat.files.eos_ids)
