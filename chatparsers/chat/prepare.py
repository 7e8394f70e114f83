"""A request becomes a turn: its messages are rewritten and rendered, and the prompt is bound to the format.

    messages ──polyfills──> ──template──> prompt ──generation prompt──> prefix ──format──> Turn

The same way gives the prompt's trace, if that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol, cast

from ..core.format import Format, Turn
from ..core.message import Message
from ..errors import RequestError, TemplateError, did_you_mean
from ..schema.tools import read_tools
from ..templates import Template
from ..templates.builtins import NAMED
from ..templates.jinja.traced import tracing
from ..templates.probe.edges import opening
from ..templates.probe.thinking import SWITCHES
from ..templates.renderer import Renderer, Rewritten
from ..templates.rewrite.continuation import check_final
from ..templates.rewrite.history import History
from ..templates.trace import Marked, Trace
from ..tokens import ModelFiles
from .around import Findings, Lead, Rendered
from .begun_calls import begun_calls
from .continuation import continued, without_half
from .options import PrepareOptions

_OPTIONS = frozenset(PrepareOptions.__annotations__)
_SET = {
    "messages": "pass the messages first",
    "tools": "pass tools=…",
    "add_generation_prompt": "pass add_generation_prompt=…",
    "continue_final_message": "pass continue_final_message=…",
    **dict.fromkeys(("self", "history", "prompt"), "no template can read one of that name"),
}
"""Names that a variable of a template cannot have, and how to set what they stand for."""
_OFTEN = frozenset({"bos_token", "eos_token", "documents", "strftime_now", "raise_exception"})
"""Variables that every template may read."""
_LONGEST_NAME = 60
"""How much of a variable's name a warning shows: it may come from a stranger."""


class Model(Protocol):
    """What of a `Chat` is used here."""

    name: str
    files: ModelFiles
    stand_in: tuple[str, str] | None
    found: dict[bytes, Findings]

    @property
    def tokenizer(self) -> Any: ...
    @property
    def format(self) -> Format: ...
    @property
    def syntax(self) -> Format: ...
    @property
    def template(self) -> Callable[..., Template]: ...
    @property
    def renderer(self) -> Callable[..., Renderer]: ...
    @property
    def prepare(self) -> Callable[..., Turn]: ...
    @property
    def _reasons(self) -> Callable[[Format, Template], bool | None]: ...
    @property
    def _proved(self) -> Callable[[Turn], None]: ...
    @property
    def _warn_once(self) -> Callable[[str], None]: ...


class _Prompt(NamedTuple):
    """A rendered request. ``prefix``: what of the prompt belongs to the answer."""

    text: str
    prefix: str
    format: Format
    polyfills: tuple[str, ...]


class Preparation:
    """A request on its way to a turn: what `Chat.prepare` does with its ``options``. Raises its errors."""

    def __init__(self, chat: Model, options: Mapping[str, Any]) -> None:
        if not _OPTIONS.issuperset(options):
            unknown = next(name for name in options if name not in _OPTIONS)
            raise _no_option(unknown, options[unknown])
        self._chat = chat
        self._options = options
        self._tools = read_tools(options.get("tools"))
        self._renderer = chat.renderer(bool(self._tools), options.get("polyfills"))
        self._template = self._renderer.template
        self._variables = self._read_variables()

    def turn(self, messages: Sequence[Mapping[str, Any] | Message]) -> Turn:
        """The turn that answers these messages."""
        return self._bound(self._rendered(plain_messages(messages), self._tools.raw))

    def traced(
        self, messages: Sequence[Mapping[str, Any]], since: int, quoted: Callable[[str], object] | None
    ) -> Rendered:
        """The turn, and whose each character of its prompt is. ``since``: the first message that is traced. ``quoted``:
        which texts of the tools are."""
        marked = Marked()
        tools = self._tools.raw if quoted is None else marked.tools(self._tools.raw, quoted)
        with tracing():
            prompt = self._rendered(marked.messages(messages, since), tools)
        trace = marked.trace(prompt.text)
        prefix = "".join((prompt.prefix, ""))
        return Rendered(self._bound(prompt._replace(text=trace.text, prefix=prefix)), trace)

    def asked(self, role: str, polyfills: Sequence[str]) -> Lead | None:
        """What a prompt writes between a message of this role and the answer, in a conversation with these polyfills;
        None if the template refuses that."""
        found = self._renderer.tail(role, polyfills, bool(self._tools), self._variables)
        return None if found is None else Lead(*found, opening(self._format(polyfills), found[1]))

    def stops(self, polyfills: Sequence[str]) -> Sequence[str]:
        """The stops of the format that reads the answers of a conversation with these polyfills."""
        return self._format(polyfills).stops

    def stand_in(
        self, messages: Sequence[Mapping[str, Any]], polyfills: Sequence[str], generate: bool
    ) -> Trace:
        """A conversation of stand-ins with these options and polyfills, traced."""
        variables = {name: value for name, value in self._variables.items() if name != "strftime_now"}
        return self._renderer.stand_in(messages, polyfills, bool(self._tools), generate, variables)

    def polyfills(self, messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """The polyfills that these messages need."""
        return self._renderer.rewrite(messages, self._tools.raw or None).names

    def _format(self, polyfills: Sequence[str]) -> Format:
        """What the prompt shows in the syntax of the polyfills, the model answers in it."""
        return self._chat.syntax if {"tools", "tool_calls"}.intersection(polyfills) else self._chat.format

    def _rendered(self, messages: Sequence[Mapping[str, Any]], tools: Any) -> _Prompt:
        continues, calling = bool(self._options.get("continue_final_message")), None
        if continues and messages:
            messages = [*messages[:-1], without_half(messages[-1])]
            if messages[-1].get("tool_calls"):  # it is put after the prompt for a new answer
                *messages, calling = messages
                check_final([*messages, {**calling, "tool_calls": None}], self._template.name)
        # Also with tool_choice="none": an engine's cached prefix stays, and the turn's reading drops calls.
        given = self._renderer.rewrite(messages, tools or None)
        fmt = self._format(given.names)
        history = messages if isinstance(messages, History) else None
        try:
            if continues and calling is None:
                check_final(given.messages, self._template.name)
                *before, _ = given.messages
                asked = self._asking(fmt, replace(given, messages=before), None) if before else ("", "")
                text, prefix = continued(fmt, self._template, given, self._variables, asked)
            else:
                text, prefix = self._asking(fmt, given, history)
        except TemplateError as error:
            if not given.names:
                raise
            used = ", ".join(given.names)
            raise TemplateError(f"{error}; messages are counted as the polyfills {used} left them") from error
        if calling is not None:
            begun = begun_calls(fmt, prefix, calling, self._tools)
            text, prefix = text + begun, prefix + begun
        return _Prompt(text, prefix, fmt, given.names)

    def _asking(self, fmt: Format, given: Rewritten, history: History | None) -> tuple[str, str]:
        """The prompt for a new answer, and what of it belongs to the answer."""
        continues = bool(self._options.get("continue_final_message"))
        generate = continues or bool(self._options.get("add_generation_prompt", True))
        text = self._template.render(
            given.messages,
            tools=given.tools,
            add_generation_prompt=generate,
            history=history,
            **self._variables,
        )
        if not generate:
            return text, ""
        end = self._template.generation_prompt_of(text, given.messages, tools=given.tools, **self._variables)
        return text, opening(fmt, end)

    def _bound(self, prompt: _Prompt) -> Turn:
        chat, known, option = self._chat, self._tools, self._options.get
        turn = prompt.format.bind(
            tools=known,
            tool_choice=option("tool_choice", "auto"),
            parallel_tool_calls=option("parallel_tool_calls", True),
            response_format=option("response_format"),
            thinking=option("thinking"),
            prefix=prompt.prefix,
            tokenizer=chat.tokenizer,
            token_config=chat.files.special_config,
            prompt=prompt.text,
            polyfills=prompt.polyfills,
            reasoning=chat._reasons(prompt.format, self._template),
            id_seed=option("id_seed"),
            lenient_calls=option("lenient_calls", False),
            max_calls=option("max_calls"),
            call_within=option("call_within"),
        )
        if known and turn.options.mode != "none" and "tools" not in prompt.polyfills:
            _heard(chat, prompt.format, self._template, turn)
            chat._proved(turn)
        elif known and chat.stand_in is not None and chat.stand_in[1] != NAMED:
            name, why = chat.stand_in
            chat._warn_once(
                f"{chat.name}: the built-in template {name!r}, {why}, is a small stand-in: it tells the tools in words "
                "that are not the model's own (load the model's own chat_template, or name this one with "
                "load(template=…))"
            )
        return turn

    def _read_variables(self) -> dict[str, Any]:
        """The template's variables for the request."""
        template, thinking, given = (
            self._template,
            self._options.get("thinking"),
            self._options.get("template_kwargs"),
        )
        if given is not None:
            _check_kwargs(self._chat, template, given)
        variables = {} if thinking is None else template.thinking_kwargs(thinking)
        if thinking is not None and not variables and thinking is not self._chat.format.features.reasoning:
            self._chat._warn_once(
                f"thinking={thinking}: {template.name} has no switch for it, so the prompt is the same without (leave "
                "it out, or pass the template's own variable in template_kwargs)"
            )
        if self._options.get("documents") is not None:
            variables["documents"] = self._options["documents"]
        if self._options.get("now") is not None:
            variables["strftime_now"] = self._options["now"].strftime
        return {**variables, **given} if given else variables


def plain_messages(messages: Sequence[Mapping[str, Any] | Message]) -> Sequence[Mapping[str, Any]]:
    """The messages as plain data; the list itself if they are. Raises `RequestError` for anything but a list of at
    least one message."""
    if isinstance(messages, (str, Mapping, Message)) or not messages:
        found = type(messages).__name__ if messages else "none"
        raise RequestError(f"messages: expected a list of at least one message, found {found}")
    if any(isinstance(message, Message) for message in messages):
        return [message.to_openai() if isinstance(message, Message) else message for message in messages]
    return cast("Sequence[Mapping[str, Any]]", messages)


def _check_kwargs(chat: Model, template: Template, given: Mapping[str, Any]) -> None:
    """Raises for variables that `prepare` sets itself, and warns of those that the template does not read."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise RequestError(f"template_kwargs: expected an object of variables by name, found {given!r:.60}")
    for name in given:
        if name in _SET:
            raise RequestError(f"template_kwargs: {name!r} is no variable for it: {_SET[name]}")
    read = template.variables
    for name in given:
        if read is not None and name not in read and name not in _OFTEN:
            shown = name[:_LONGEST_NAME]
            hint = did_you_mean(shown, read - _SET.keys() - _OFTEN)
            chat._warn_once(f"template_kwargs: {template.name} reads no variable {shown!r}: {hint}")


def _heard(chat: Model, fmt: Format, template: Template, turn: Turn) -> None:
    """Raises or warns if the prompt does not show the tools, or if no format could read the calls."""
    if not fmt.features.tools:
        why, mend = "no format explains the template", "name one with load(…, format=…)"
    elif not template.can.tools:
        why, mend = "the template shows none and the polyfill is off", "allow the polyfill 'tools'"
    else:
        return
    if turn.options.mode == "required":
        raise RequestError(f"tool_choice: {template.name}: no call could be read, as {why} ({mend})")
    chat._warn_once(f"tools are not read: {template.name}: {why} ({mend})")


def _no_option(name: str, value: Any) -> RequestError:
    near = get_close_matches(name, _OPTIONS, n=1, cutoff=0.75)
    if near and name not in SWITCHES:
        return RequestError(f"prepare: there is no option {name!r}: did you mean {near[0]}?")
    switch = f"thinking={value} sets the switch of any template; " if name in SWITCHES else ""
    return RequestError(
        f"prepare: there is no option {name!r}: {switch}a template's own variables go into "
        f"template_kwargs={{{name!r}: {value!r:.40}}}"
    )
