"""The model that is checked: its files, its chat, and renderings in which words occur that occur nowhere else."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ..answers.format import Format
from ..chat.chat import Chat
from ..chat.sample import Sample
from ..detection.shown import CONTENT_ONLY
from ..errors import TemplateError
from ..kept import cached
from ..registry import get_format
from ..templates import Capabilities, Template
from ..templates.probe.roles import role_headers
from ..tokens.model_files import no_tokenizer

Messages = Sequence[Mapping[str, Any]]
CLOCK = datetime(2024, 1, 1).strftime
"""The time of all renderings that are compared."""

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "check_weather",
            "description": "Says how the weather is.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]


HELLO: Messages = [{"role": "user", "content": "Hello"}]
SYSTEM: dict[str, Any] = {"role": "system", "content": "BeBrief"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str, reasoning: str = "") -> dict[str, Any]:
    thought = {"reasoning_content": reasoning} if reasoning else {}
    return {"role": "assistant", "content": text, **thought}


def call(
    *arguments: object, content: str = "", reasoning: str = "", name: str = "check_weather"
) -> dict[str, Any]:
    """An answer that calls a tool once with each of ``arguments``, objects or JSON text."""
    calls = [
        {
            "id": f"checkid{place:02}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given, ensure_ascii=False),
            },
        }
        for place, given in enumerate(arguments)
    ]
    return {**answer(content, reasoning), "tool_calls": calls}


def result(text: str, place: int = 0, name: str = "check_weather") -> dict[str, Any]:
    return {"role": "tool", "name": name, "tool_call_id": f"checkid{place:02}", "content": text}


class Subject:
    """A model under check. All renderings have one clock, so that they can be compared."""

    def __init__(
        self, chat: Chat, tools: Sequence[Mapping[str, Any]] | None = None, samples: int = 0
    ) -> None:
        self.chat = chat
        self.tools: list[Any] = list(tools) if tools else TOOLS
        self.given = bool(tools)
        self.samples = samples
        self.unasked = ""
        """The header of an answer that was put to the end of the prompt: see `asked`."""

    def asked(self) -> Subject:
        """The same with a generation prompt, if only the history has the header of an answer; else itself.

        So a fault that every answer would show is found once, and what else is found is of the template's rest."""
        for header in unasked_headers(self):
            for source in with_prompt(self.template.source, header):
                chat = with_source(self.chat, source, self.chat._format)
                model = Subject(chat, self.tools if self.given else None, self.samples)
                if model.refusal is None and model.generation_prompt == header:
                    model.unasked = header
                    return model
        return self

    @cached
    def template(self) -> Template:
        return self.chat.template()

    @cached
    def generation_prompt(self) -> str:
        return self.template.generation_prompt(HELLO, strftime_now=CLOCK)

    @cached
    def refusal(self) -> TemplateError | None:
        """Why the template refuses a user's hello; None if it does not."""
        try:
            self.render(HELLO, generate=True)
        except TemplateError as error:
            return error
        return None

    @cached
    def can(self) -> Capabilities:
        return self.template.probe()

    @cached
    def format(self) -> Format:
        return self.chat.format

    @cached
    def bare(self) -> Subject:
        """The same without the tokenizer, so that a loss counts characters."""
        files = replace(self.chat.files, _read_tokenizer=no_tokenizer)
        chat = Chat._made(files, format=self.chat.format, limits=self.chat.limits)
        return Subject(chat, self.tools if self.given else None)

    @property
    def tokenizer(self) -> Any:
        return self.chat.tokenizer

    @property
    def offered(self) -> list[Any] | None:
        """The tools, if the template shows tools."""
        return self.tools if self.can.tools else None

    def render(
        self, messages: Messages, *, generate: bool = False, tools: bool = False, **variables: Any
    ) -> str:
        """What the template writes. Raises `TemplateError`."""
        shown = self.offered if tools else None
        variables.setdefault("strftime_now", CLOCK)
        return self.template.render(messages, tools=shown, add_generation_prompt=generate, **variables)

    def tried(self, messages: Messages, **options: Any) -> str | None:
        """As `render`; None if the template refuses."""
        try:
            return self.render(messages, **options)
        except TemplateError:
            return None

    def raw(self, messages: Messages) -> str | None:
        """What the template writes of messages that are not shaped for it, as a plain host gives them."""
        try:
            return self.template.render_unshaped(messages, tools=self.offered, strftime_now=CLOCK)
        except TemplateError:
            return None

    def answered(self, message: Mapping[str, Any], history: Messages = ()) -> tuple[str, str] | None:
        """The prompt, and how the model would have written ``message`` after it; None if the template refuses.
        ``history``: a question, if it is empty."""
        history = history or [user("Q")]
        try:
            return self.template.assistant_turn(
                message, history=history, tools=self.offered, strftime_now=CLOCK
            )
        except TemplateError:
            return None

    def ids(self, text: str) -> list[int]:
        """The ids of a text, special tokens as such."""
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found


def unasked_headers(model: Subject) -> Sequence[str]:
    """The header with which all answers begin in the history, if the prompt has none; else nothing."""
    try:
        if model.refusal is not None or model.generation_prompt:
            return ()
    except TemplateError:  # which the checks say
        return ()
    question, whole = model.tried(HELLO), model.tried([*HELLO, answer("FirstAnswer")])
    if question is None or whole is None or not whole.startswith(question):
        return ()
    headers = role_headers(model.template, get_format(CONTENT_ONLY)).get("assistant")
    return [header for header in headers.before if whole.startswith(header, len(question))] if headers else ()


def with_source(chat: Chat, source: str, format: Format | None) -> Chat:
    """The same model with another template. ``format``: None if it is to be found anew."""
    name = chat.files.template_name() or "default"
    files = replace(chat.files, templates={**chat.files.templates, name: source})
    return Chat._made(files, tokenizer=chat.tokenizer, format=format, limits=chat.limits)


def with_prompt(source: str, header: str) -> Iterator[str]:
    """The template with this generation prompt: at its end, and also if it overrides what it was asked."""
    written = f"{{{{ {quoted(header)} }}}}"
    source = source.removesuffix("\n")
    yield f"{source}{{% if add_generation_prompt %}}{written}{{% endif %}}"
    kept = "{% set asked_to_answer = add_generation_prompt %}"
    yield f"{kept}{source}{{% if asked_to_answer %}}{written}{{% endif %}}"


def conversations(model: Subject) -> list[tuple[str, list[dict[str, Any]]]]:
    """Eight conversations, each with a name, as far as the template shows their parts itself."""
    can, oslo = model.can, {"city": "Oslo"}
    calls = can.tool_calls and can.tool_role
    thoughts = can.reasoning and calls and can.reasoning_with_calls
    said = [user("Hi"), answer("Fine")]
    asked = [user("Weather?"), call(oslo), result("Cold"), answer("Cold")]
    several = [
        user("Weather?"),
        call(oslo, {"city": "Rome"}),
        result("Cold"),
        result("Warm", 1),
        answer("Both"),
    ]
    thinking = [user("Weather?"), call(oslo, reasoning="Ask"), result("Cold"), answer("Cold", "Say")]
    found: list[tuple[str, bool, list[dict[str, Any]]]] = [
        ("answer", True, said),
        ("system", can.system_role, [SYSTEM, *said]),
        ("two questions", True, [*said, user("And you?"), answer("Well")]),
        ("call", calls, asked),
        ("several calls", calls and can.parallel_calls and can.parallel_results, several),
        (
            "text and call",
            calls and can.content_beside_calls,
            [user("Q"), call(oslo, content="See"), result("Cold")],
        ),
        ("thought", can.reasoning, [user("Hi"), answer("Fine", "Say so")]),
        ("thought and call", thoughts, thinking),
    ]
    return [(name, messages) for name, shown, messages in found if shown]


def sampled(model: Subject, messages: Messages, **options: Any) -> Sample:
    """The conversation as a loss sees it. Raises the errors of `Chat.encode`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample: Sample = model.chat.encode(
            messages, tools=model.offered, template_kwargs={"strftime_now": CLOCK}, **options
        )
        return sample


def excerpt(text: str, at: int, before: int = 30, after: int = 40) -> str:
    """The text around a place, in quotes."""
    start, end = max(at - before, 0), at + after
    return quoted(f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}")


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
