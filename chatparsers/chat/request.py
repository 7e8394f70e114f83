"""A request: messages are rewritten and rendered, and the prompt is bound to the format.

    messages ──polyfills──> ──template──> prompt ──generation prompt──> prefix ──format──> Turn

The same way gives the prompt's trace, if that is asked for, with what the template writes around answers: those who
look into a rendering get all that as values (`Rendered`), and render nothing. What was found of the template for such
options is kept with the chat, and shared by all requests with the same ones.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from os import urandom
from types import NoneType
from typing import Any, Protocol, TypeVar, cast

from ..answers.format import Format, Turn
from ..detection.shown import call_spaces
from ..errors import ChatParsersError, RequestError, TemplateError, did_you_mean
from ..kept import cached
from ..schema.tools import Toolset, read_tools
from ..schema.wished import Thoughts
from ..streams.message import Message
from ..templates import Template
from ..templates.builtins import NAMED
from ..templates.jinja.environment import Asked as Literals
from ..templates.jinja.limits import account
from ..templates.jinja.traced import tracing, untraced
from ..templates.probe.parts import part_kinds
from ..templates.probe.thinking import SWITCHES
from ..templates.renderer import Renderer
from ..templates.rewrite.declared import declared
from ..templates.rewrite.history import History
from ..templates.rewrite.results import MISSING, ORDER, Settled
from ..templates.trace import Marked, Trace
from ..tokens import ModelFiles
from ..tokens.markers import markers_of, may_spell, spelling_part
from ..tokens.vocabulary import Vocabulary
from .around import HOSTS, Around, Rendered
from .inline import Marks, with_thoughts
from .loading import Loading, data_of, entry_before
from .options import PrepareOptions
from .placeholders import showing, shown_by
from .prompt import Prompt, Prompter
from .quoted import may_quote, quoted_in, read_arguments
from .sample import Span
from .wishes import Wish, wish_of

_T = TypeVar("_T")
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
_FREE = (
    *("now", "id_seed", "response_format", "parallel_tool_calls"),
    *("add_generation_prompt", "continue_final_message", "loaded"),
)
"""Options on which nothing around answers depends."""
_UNSAID = {"add_generation_prompt": True, "continue_final_message": False}
"""What options are that a request does not say, which are often changed."""
_PLAIN = frozenset({dict})
"""The type of most messages."""
_KEPT = 64
_NO_ARGUMENTS = {"type": "object", "properties": {}}
_ONE_TOOL = {
    "type": "function",
    "function": {"name": "one_tool", "description": "Does one thing.", "parameters": _NO_ARGUMENTS},
}
_ASKED = ({"role": "user", "content": "x"},)
"""A list of tools and a question, in which is found how a template writes one more tool."""


Messages = Sequence[Mapping[str, Any]]


class Model(Protocol):
    """What of a `Chat` is used here."""

    name: str
    files: ModelFiles
    stand_in: tuple[str, str] | None
    found: dict[bytes, dict[Any, Any]]

    @property
    def tokenizer(self) -> Any: ...
    @property
    def format(self) -> Format: ...
    @property
    def syntax(self) -> Format: ...
    @property
    def _marks(self) -> tuple[Marks, ...]: ...
    @property
    def template(self) -> Callable[..., Template]: ...
    @property
    def renderer(self) -> Callable[..., Renderer]: ...
    @property
    def _reasons(self) -> Callable[[Format, Template], bool | None]: ...
    @property
    def _proved(self) -> Callable[[Turn], None]: ...
    @property
    def _warn_once(self) -> Callable[[str], None]: ...


class Request:
    """A chat, and the options with which it renders. Raises the errors of `Chat.prepare`."""

    def __init__(self, chat: Model, options: Mapping[str, Any]) -> None:
        if not _OPTIONS.issuperset(options):
            unknown = next(name for name in options if name not in _OPTIONS)
            raise _no_option(unknown, options[unknown])
        self.chat = chat
        own = self.options = dict(options)
        get = own.get
        self._wishes = (
            get("thinking") is not None or get("effort") is not None or bool(get("template_kwargs"))
        )
        """Whether it may wish for thoughts. Nothing more is asked of a request that does not."""
        self.tools = read_tools(get("tools"))
        """The tools, which are read once."""
        own["tools"] = self.tools.raw or None
        later = get("loaded")
        self.loading = None if later is None else Loading(self.tools, read_tools(later))
        """The tools that messages load; None: no message is looked at for that."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Request, (self.chat, self.options)

    def but(self, **changes: Any) -> Request:
        """The request with other options. Only flags and texts are compared: a caller may have changed other data, and
        ``1`` is no ``True`` in a prompt."""
        own = self.options
        if all(
            isinstance(value, (bool, str, NoneType)) and own.get(name, _UNSAID.get(name)) == value
            for name, value in changes.items()
        ):
            return self
        return Request(self.chat, {**own, "tools": self.tools, **changes})

    def fixed(self) -> Request:
        """The request with the clock and the seed of ids of now, so that its renderings can be compared."""
        now, seed = self.options.get("now"), self.options.get("id_seed")
        return self.but(now=now or datetime.now(), id_seed=urandom(8).hex() if seed is None else seed)

    def prepare(self, messages: Sequence[Mapping[str, Any] | Message], **changes: Any) -> Turn:
        """The turn that answers these messages. ``changes``: of the options."""
        request = self.but(**changes)
        with request._account(messages):
            return request.turn(messages)

    def turn(self, messages: Sequence[Mapping[str, Any] | Message]) -> Turn:
        """As `prepare`, in the caller's account."""
        plain = self._read(plain_messages(messages))
        tools, warnings = self._callable(plain)
        prompt = self._prompt(plain, self.tools.raw, tools)
        turn = self._bound(prompt, tools, warnings, _roles(plain))
        if self.chat.tokenizer is not None:
            turn.__dict__["_quoted"] = partial(self.quoted, list(plain))
        return turn

    def traced(self, messages: Messages, *, since: int = 0, **changes: Any) -> Rendered:
        """As `prepare`, of messages that are read, and whose each character of the prompt is. ``since``: the first
        message that is traced. A call that was cut off has no arguments: for a template that wants an object, an empty
        one."""
        request = self.but(**changes)
        with request._account(messages):
            try:
                turn, trace = request._traced(messages, since)
            except TemplateError:
                mended = [*map(with_objects, messages)]
                if mended == messages:
                    raise
                turn, trace = request._traced(mended, since)
        parts = {kind: request._part(*kind) for kind in part_kinds(messages)}
        return Rendered(turn, trace, request.around(turn.polyfills), parts)

    def quoted(self, messages: Messages, **changes: Any) -> list[Span]:
        """The spans of quoted markers in the prompt of messages that are read. It is rendered only if a text may hold a
        marker: most hold none."""
        given = self.may_quote("tools") or self.may_quote("documents")
        if not given and not may_quote(self.chat.tokenizer, messages, self.beside):
            return []
        return quoted_in(self.traced(messages, **changes), messages)

    def read(self, messages: Messages) -> Messages:
        """The messages as they are rendered: with the thought of each answer in a field of its own, and with the words
        of tools that they load; the same list if nothing changes."""
        with self._account(messages):
            return self._read(messages)

    def _read(self, messages: Messages) -> Messages:
        if isinstance(messages, History):  # what grows is read as it comes
            return messages
        if self.loading is not None:
            named = self.loading.named(messages)
            entries = {name: self._entry(tool) for name, tool in named.items()}
            messages = self.loading.written(messages, entries)
        found = with_thoughts(messages, self.chat._marks)
        return messages if found is messages or not self.marks else found

    def _entry(self, tool: Mapping[str, Any]) -> str:
        """How the template's list of tools writes one: found by writing a list with it, and one without."""
        bare = {"tools": [_ONE_TOOL], "polyfills": self.options.get("polyfills")}
        one = Request(self.chat, bare).fixed()

        def found() -> str:
            lists = [one, one.but(tools=[tool, _ONE_TOOL])]
            function = tool["function"]
            try:
                others, whole = (each._prompt(_ASKED, each.tools.raw, each.tools).text for each in lists)
            except TemplateError:
                others = whole = ""
            found = entry_before(others, whole, function["name"])
            return found or declared(function, one._renderer.tools_as)

        data = data_of(tool)
        text: str = found() if data is None else one.fact(("tool", data), found)
        return text

    @property
    def marks(self) -> tuple[Marks, ...]:
        """The markers of thoughts; none if the template shows that the model has none."""
        chat = self.chat
        silent = chat._reasons(chat.format, self._renderer.template) is False
        return () if silent else chat._marks

    def _account(self, messages: object) -> AbstractContextManager[None]:
        template = self.chat.template()
        return account(template.limits, template.name, messages, self.options)

    def _callable(self, messages: Messages) -> tuple[Toolset, tuple[str, ...]]:
        """The tools that can be called after these messages, and what is to be said of them."""
        if self.loading is None:
            return self.tools, ()
        return self.loading.tools(messages, self.options.get("tool_choice"))

    def _prompt(self, messages: Messages, tools: Any, known: Toolset) -> Prompt:
        """The prompt of these messages with these tools, of which those that are ``known`` can be called."""
        option = self.options.get
        # Also with tool_choice="none": an engine's cached prefix stays, and the turn's reading drops calls.
        generate, begun = bool(option("add_generation_prompt", True)), bool(option("continue_final_message"))
        return self._prompter.prompt(messages, tools, known, generate=generate, begun=begun)

    def _traced(self, messages: Messages, since: int) -> tuple[Turn, Trace]:
        marked, tools, request = Marked(), self.tools.raw, self
        if self.may_quote("tools"):
            tools = marked.given(tools, "tools", self._may_be_marker)
        if self.may_quote("documents"):
            documents = marked.given(self.options["documents"], "documents", self._may_be_marker)
            request = self.but(documents=documents)
        known, warnings = self._callable(messages)
        with tracing():
            prompt = request._prompt(marked.messages(messages, since), tools, known)
        trace = marked.trace(prompt.text)
        prompt = prompt._replace(text=trace.text, prefix="".join((prompt.prefix, "")))
        return self._bound(prompt, known, warnings, _roles(messages)), trace

    def _part(self, kind: str, role: str) -> str:
        """What the template writes for a part of this type in a message of ``role``; ``""`` if that is not known."""

        def found() -> str:
            messages = showing(kind, role)
            request = self.but(add_generation_prompt=False, continue_final_message=False)
            try:
                with request._account(messages):
                    turn, trace = request._traced(messages, 0)
            except ChatParsersError:
                return ""
            return self._part(kind, "user") if "result_parts" in turn.polyfills else shown_by(trace)

        return self.fact(("part", kind, role), found)

    @property
    def markers(self) -> re.Pattern[str] | None:
        """The markers of the tokenizer; None without one."""
        tokenizer = self.chat.tokenizer
        return None if tokenizer is None else markers_of(Vocabulary.bare(tokenizer))

    @property
    def beside(self) -> str:
        """What is written beside the words of requests: the template's source."""
        return self._renderer.template.source

    def may_quote(self, option: str) -> bool:
        """Whether a text of the tools or documents may hold a marker, or a part of one that the template completes."""
        given = self.options.get(option)
        if not given or self.chat.tokenizer is None:
            return False
        return self.fact((option, "may quote"), lambda: may_spell(self.chat.tokenizer, given, self.beside))

    @cached
    def _may_be_marker(self) -> Callable[[str], bool]:
        """Tells of a text what `may_quote` tells of all."""
        part, whole = spelling_part(self.chat.tokenizer, self.beside), self.markers
        return lambda text: (whole is not None and whole.search(text) is not None) or part(text)

    def around(self, polyfills: tuple[str, ...]) -> Around:
        """What the template writes around answers, for these options and polyfills."""
        polyfills = tuple(name for name in polyfills if name not in (ORDER, MISSING))  # of results alone

        def found() -> Around:
            edges = self._prompter.edges(polyfills)
            given = bool(self.options.get("template_kwargs"))
            return Around(self._renderer, edges, polyfills, bool(self.tools), self._variables, given)

        return self.fact(("around", polyfills), found)

    def polyfills(self, messages: Messages) -> tuple[str, ...]:
        """The polyfills that these messages need; none if the template refuses them."""
        try:
            return self._renderer.rewrite(messages, self.tools.raw or None).names
        except TemplateError:
            return ()

    def settled(self, messages: Messages) -> Settled:
        """The messages, with each result after its call."""
        return self._renderer.settled(messages)

    @cached
    def found(self) -> dict[Any, Any]:
        """What was found of the template for these options: facts by their names, and what rollouts proved of steps."""
        kept, key = self.chat.found, self.key()
        found = None if key is None else kept.get(key)
        if found is None:
            found = {}
            if key is not None:
                if len(kept) >= _KEPT:  # a caller may send ever new tools
                    kept.clear()
                kept[key] = found
        return found

    def fact(self, name: Any, find: Callable[[], _T]) -> _T:
        """A fact of the template, which is found once for these options."""
        if name not in self.found:
            self.found[name] = find()
        found: _T = self.found[name]
        return found

    @property
    def asked(self) -> Literals:
        """What the template asks of the texts of messages."""
        return self.chat.template(bool(self.tools)).asked

    def key(self) -> bytes | None:
        """The options on which that may depend, as bytes; None if they are no plain data."""
        fixed = {name: value for name, value in sorted(self.options.items()) if name not in _FREE}
        try:
            return marshal.dumps(fixed, 2)
        except ValueError:
            return None

    @cached
    def _renderer(self) -> Renderer:
        found: Renderer = self.chat.renderer(bool(self.tools), self.options.get("polyfills"))
        return found

    @cached
    def _prompter(self) -> Prompter:
        return Prompter(self._renderer, self.chat.format, self.chat.syntax, self._variables)

    def _bound(self, prompt: Prompt, known: Toolset, warnings: Sequence[str], roles: tuple[str, str]) -> Turn:
        """The turn of a prompt. ``known``: the tools that can be called; ``warnings``: what is to be said of them.
        ``roles``: of the first message and of the last."""
        chat, option = self.chat, self.options.get
        text, prefix, fmt, given = prompt
        polyfills, warnings = given.names, (*given.warnings, *warnings)
        stops = self.around(polyfills).stops if option("template_kwargs") else fmt.stops
        fmt = fmt if stops == fmt.stops else replace(fmt, stops=stops)
        turn = fmt.bind(
            tools=known,
            tool_choice=option("tool_choice", "auto"),
            parallel_tool_calls=option("parallel_tool_calls", True),
            response_format=option("response_format"),
            thinking=self.wish.on() if self._wishes and self.wish is not None else None,
            prefix=prefix,
            tokenizer=chat.tokenizer,
            token_config=chat.files.special_config,
            prompt=text,
            polyfills=polyfills,
            reasoning=chat._reasons(fmt, self._renderer.template),
            id_seed=option("id_seed"),
            lenient_calls=option("lenient_calls", False),
            max_calls=option("max_calls"),
            call_within=option("call_within"),
        )
        if turn.options.mode == "required" and not option("continue_final_message"):
            stand_in = self._prompter.stand_in
            spaces = self.fact(("spaces", prefix), lambda: call_spaces(stand_in, fmt, prefix))
            turn = turn._replace(call_spaces=spaces)
        if warnings:
            turn = turn._replace(warnings=tuple(map(untraced, warnings)))
        if known and turn.options.mode != "none" and "tools" not in polyfills:
            _heard(chat, fmt, self._renderer, turn)
            chat._proved(turn)
        elif known and chat.stand_in is not None and chat.stand_in[1] != NAMED:
            name, why = chat.stand_in
            chat._warn_once(
                f"{chat.name}: the built-in template {name!r}, {why}, is a small stand-in: it tells the tools in words "
                "that are not the model's own (load the model's own chat_template, or name this one with "
                "load(template=…))"
            )
        if self._wishes:
            self._set_thoughts(turn, *roles)
        return turn

    @cached
    def wish(self) -> Wish | None:
        """What the request wishes of thoughts; None: nothing."""
        return wish_of(self.options, self._renderer.template) if self._wishes else None

    @cached
    def thoughts(self) -> Thoughts | None:
        """What becomes of that."""
        chat, template = self.chat, self._renderer.template
        if self.wish is None:
            return None
        dial = template.dial(chat.format)
        return self.wish.asked(dial, bool(chat._reasons(chat.format, template)))

    def _set_thoughts(self, turn: Turn, first: str, last: str) -> None:
        """Tells the turn, which nobody has yet, what became of the wish in a prompt whose first and last messages have
        these roles."""
        thoughts = self.thoughts
        if thoughts is None:
            return
        if thoughts.variables:
            template = self._renderer.template
            in_system = "tools" in turn.polyfills
            moves = template.moved(
                template.dial(self.chat.format),
                thoughts.level,
                role=last,
                tools=bool(self.tools) and not in_system,
                system=in_system or first in HOSTS,
            )
            thoughts = thoughts if moves else replace(thoughts, moves=False)
        turn.__dict__["thoughts"] = thoughts

    @cached
    def _variables(self) -> dict[str, Any]:
        """The template's variables for the request."""
        template, option = self._renderer.template, self.options.get
        thinking, given = option("thinking"), option("template_kwargs")
        thoughts = self.thoughts if self._wishes else None
        if given is not None:
            given = given if self.wish is None else self.wish.given
            _check_kwargs(self.chat, template, given)
        variables = {} if thoughts is None else {**thoughts.variables}
        if (
            isinstance(thinking, bool)
            and not variables
            and thinking is not self.chat.format.features.reasoning
        ):
            self.chat._warn_once(
                f"thinking={thinking}: {template.name} has no switch for it, so the prompt is the same without (leave "
                "it out, or pass the template's own variable in template_kwargs)"
            )
        if option("documents") is not None:
            variables["documents"] = option("documents")
        now = option("now")
        if now is not None:
            variables["strftime_now"] = now.strftime
        return {**variables, **given} if given else variables


def plain_messages(messages: Sequence[Mapping[str, Any] | Message]) -> Sequence[Mapping[str, Any]]:
    """The messages as plain data; the list itself if they are. Raises `RequestError` for anything but a list of at
    least one message."""
    if not messages or (type(messages) is not list and isinstance(messages, (str, Mapping, Message))):
        found = type(messages).__name__ if messages else "none"
        raise RequestError(f"messages: expected a list of at least one message, found {found}")
    if not _PLAIN.issuperset(map(type, messages)) and any(isinstance(one, Message) for one in messages):
        return [message.to_openai() if isinstance(message, Message) else message for message in messages]
    return cast("Sequence[Mapping[str, Any]]", messages)


def _roles(messages: Messages) -> tuple[str, str]:
    """The roles of the first message and of the last."""
    return str(messages[0].get("role")), str(messages[-1].get("role"))


def _check_kwargs(chat: Model, template: Template, given: Mapping[str, Any]) -> None:
    """Raises for variables that `prepare` sets itself, and warns of those that the template does not read."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise RequestError(f"template_kwargs: expected an object of variables by name, found {given!r:.60}")
    for name in given:
        if name in _SET:
            raise RequestError(f"template_kwargs: {name!r} is no variable for it: {_SET[name]}")
    read = template.variables
    for name in given:
        if name not in read and name not in _OFTEN:
            shown = name[:_LONGEST_NAME]
            hint = did_you_mean(shown, read - _SET.keys() - _OFTEN)
            chat._warn_once(f"template_kwargs: {template.name} reads no variable {shown!r}: {hint}")


def _heard(chat: Model, fmt: Format, renderer: Renderer, turn: Turn) -> None:
    """Raises or warns if the prompt does not show the tools, or if no format could read the calls."""
    template = renderer.template
    if not fmt.features.tools:
        why, mend = "no format explains the template", "name one with load(…, format=…)"
    elif "tools" not in renderer.allowed and not template.can.tools:
        why, mend = "the template shows none and the polyfill is off", "allow the polyfill 'tools'"
    else:
        return
    if turn.options.mode == "required":
        raise RequestError(f"tool_choice: {template.name}: no call could be read, as {why} ({mend})")
    chat._warn_once(f"tools are not read: {template.name}: {why} ({mend})")


def _no_option(name: str, value: Any) -> RequestError:
    from difflib import get_close_matches  # only errors need it

    near = get_close_matches(name, _OPTIONS, n=1, cutoff=0.75)
    if near and name not in SWITCHES:
        return RequestError(f"prepare: there is no option {name!r}: did you mean {near[0]}?")
    switch = f"thinking={value} sets the switch of any template; " if name in SWITCHES else ""
    return RequestError(
        f"prepare: there is no option {name!r}: {switch}a template's own variables go into "
        f"template_kwargs={{{name!r}: {value!r:.40}}}"
    )


def with_objects(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message, with an empty object for arguments that are none."""
    calls = [
        call
        if isinstance(read_arguments(call["function"]["arguments"]), Mapping)
        else {**call, "function": {**call["function"], "arguments": "{}"}}
        for call in message.get("tool_calls") or ()
    ]
    return {**message, "tool_calls": calls} if calls else message
