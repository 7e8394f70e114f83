"""A chat template: rendering conversations, its generation prompt, and the assistant turn cut out of one."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any

from ..answers.format import Format
from ..errors import TemplateError
from ..kept import Kept, cached, cached_method
from .code import Code
from .jinja.compared import compared_of
from .jinja.environment import Asked, asked_of
from .jinja.limits import DEFAULT, Limits, limited
from .messages import MARK, SHAPED, TEXTS, Wants, is_message, own, own_tools, reasoning_of, shape, with_texts
from .probe.capabilities import Capabilities, Prober, channel_of
from .probe.dial import Dial, Seen, find_dial
from .probe.edges import edges_of, end_marker
from .probe.parts import shows_part
from .probe.stand_ins import SYSTEM, TOOLS, answer, answered, ending_in, question
from .probe.turns import FOLLOW_UP, NEEDLE, Renderings, common, cut, outside_marker, trailer
from .probed import Probed, Rewrite
from .rewrite.continuation import cut_at_tag, tagged
from .rewrite.history import History
from .trace import Trace

_ENDS = frozenset({"user", "tool", "assistant", "system"})
"""The roles of a last message by which prompts are told apart."""


class Template:
    """A model's chat template, in the sandbox that transformers uses.

    ``bos_token``, ``eos_token``: the texts that the template writes for them. ``name``: its name in errors.
    ``limits``: how much it may do in one call. Raises ``TemplateError`` if the source is not valid Jinja2. Each
    method raises it if the limits are reached.
    """

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        name: str = "<template>",
        limits: Limits = DEFAULT,
    ) -> None:
        self.source = source
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.name = name
        self.limits = limits
        self._code = Code(source, bos_token, eos_token, name, limits)
        self._probed = Probed(self._code, name, limits)
        self.can = Prober(self._probed, self.variables)
        """What `probe` tells, each fact found at its first use."""
        self._tails: Kept[tuple[tuple[str, str] | None]] = Kept(64)
        self._dials: dict[str, Dial] = {}
        self._moves: dict[tuple[str, str, bool, bool], bool] = {}

    def __repr__(self) -> str:
        return f"Template({self.name!r}, {len(self.source)} characters)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.source, self.bos_token, self.eos_token, self.name, self.limits)

    @property
    @limited
    def wants(self) -> Wants:
        """The shape in which this template reads calls, reasoning and content; found by rendering stand-ins."""
        full, can = self.can.full, self.can
        content = "either" if can.reads_lists else full.content_as
        return replace(full, content_as=content, join_content=can.joins_content)

    @limited
    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        history: History | None = None,
        **variables: Any,
    ) -> str:
        """The conversation as the model reads it.

        ``messages``, ``tools``: OpenAI-shaped; they are not changed. Arguments may be JSON text or objects.
        Reasoning may be under ``reasoning_content``, ``reasoning`` or ``thinking``. The template gets both in
        the shape that it reads. ``continue_final_message``: the text ends with the last message's content (or
        else its reasoning), so that the model continues it; then no generation prompt is added.
        ``history``: the conversation, for which each step shapes only its new messages. ``variables``: other
        variables of the template, such as ``enable_thinking``. Raises ``TemplateError``, with the message's index if
        it is known.
        """
        if continue_final_message:
            messages = tagged(messages, self.name)
        wants = self._wants_for(messages)
        shaped = (
            history.shaped(messages, self, self.name, wants)
            if history is not None
            else shape(messages, wants, self.name)
        )
        if continue_final_message:
            variables["continue_final_message"] = True
        generate = add_generation_prompt and not continue_final_message
        given = own(variables) if variables else variables
        text = self._code.lend(shaped, wants, tools, generate, given)
        if MARK in text:
            text = with_texts(text, messages, self.name)
        return cut_at_tag(text, self.name, len(messages) - 1) if continue_final_message else text

    @limited
    def render_unshaped(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """As `render`, but the template gets the messages exactly as they are given, as a plain host would do it."""
        return self._code.write(
            list(map(dict, messages)), self.can.plain, own_tools(tools), False, own(variables)
        )

    @limited
    def generation_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """The text that ``add_generation_prompt`` adds after these messages; ``""`` if it adds nothing.

        Some templates write their header whether asked or not (Command R7B, Firefunction). Then it is that
        header.
        """
        tools = None if tools is None else list(tools)
        return self._generation_prompt(self.probed, messages, tools, variables)

    def _generation_prompt(
        self,
        render: Callable[..., str],
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        variables: dict[str, Any],
    ) -> str:
        plain = render(messages, tools=tools, **variables)
        prompt = render(messages, tools=tools, add_generation_prompt=True, **variables)
        if prompt == plain:
            tail = trailer(*self._followed([question()], self.can.plain, tools, variables))
            return tail if prompt.endswith(tail) else ""
        if prompt.startswith(plain):
            return prompt[len(plain) :]
        first, usual = [question()], ""
        if list(messages) != first:
            with suppress(TemplateError):  # it may refuse a question without a system message
                usual = self._generation_prompt(self.probed, first, tools, variables)
        if usual and prompt.endswith(usual):
            return usual
        return prompt[outside_marker(plain, outside_marker(prompt, common(plain, prompt))) :]

    @limited
    def generation_prompt_of(
        self,
        prompt: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """`generation_prompt` of a ``prompt`` that is already rendered with one.

        The text that a template writes after a message depends on the message's role and on the variables. So that
        text is rendered once for each role and set of variables. If a prompt ends in the last message's text and
        that text, nothing more is rendered.
        """
        last = messages[-1] if messages else {}
        known = self.tail(str(last.get("role")), bool(tools), variables)
        if known is not None:
            after, generated = known
            id = last.get("tool_call_id") if last.get("role") == "tool" else None
            if id and self._standing_id:  # the template may write it after the result
                after = after.replace(self._standing_id, str(id))
            text = last.get("content")
            if isinstance(text, str) and text and prompt.endswith(after):
                prompt, text = str.__str__(prompt), str.__str__(text)  # pieces of them need no runs
                at = len(prompt) - len(after)
                if prompt[max(at - 256, 0) : at].rstrip().endswith(text[-256:].strip()[-64:]):
                    return generated
        variables = {"strftime_now": self._probed.clock, **variables}
        tools = None if tools is None else list(tools)
        return self._generation_prompt(self.render, messages, tools, variables)

    def tail(self, role: str, tools: bool, variables: Mapping[str, Any]) -> tuple[str, str] | None:
        """What a prompt writes after a message of this role, and the part of it that is the generation prompt; None if
        the template refuses such a prompt, or drops the message."""
        # a text with another time in it is no end of the prompt
        if "strftime_now" in variables:
            variables = {name: value for name, value in variables.items() if name != "strftime_now"}
        try:
            key = marshal.dumps((role, tools, sorted(variables.items()) if variables else ()), 2)
        except (TypeError, ValueError):  # no plain data
            return self._tail(role, tools, variables)
        known = self._tails.get(key)
        if known is None:
            known = (self._tail(role, tools, variables),)
            self._tails.add(key, known, 1)
        return known[0]

    @cached
    def _standing_id(self) -> str:
        """The id of the call whose result ends `ending_in`, as the template reads it; ``""`` if it has none."""
        *_, result = shape(ending_in("tool"), self._wants_for(ending_in("tool")), self.name)
        return str(result.get("tool_call_id") or "")

    def _tail(self, role: str, tools: bool, variables: Mapping[str, Any]) -> tuple[str, str] | None:
        history, shown = ending_in(role), TOOLS if tools else None
        try:
            asked = self.shown(history, tools=shown, add_generation_prompt=True, **variables)
            *_, last_words = asked.of(len(history) - 1, "content")
            after = asked.text[last_words.end :]
            usual = None if role == "user" else self.tail("user", tools, variables)
            generated = usual[1] if usual is not None else ""
            if not generated or not after.endswith(generated):
                generated = self._generation_prompt(self.probed, history, shown, dict(variables))
        except (TemplateError, ValueError):  # refused, or the text is nowhere
            return None
        return after, generated

    @limited
    def end_of_turn(self, fmt: Format) -> tuple[str, ...]:
        """The texts that end an assistant's turn, as this template writes them after an answer: see `end_marker`."""
        history = [question()]
        shown = self._followed(history, self.can.plain, None, {})
        last, followed = ("" if trace is None else trace.text for trace in shown)
        tail = trailer(*shown)
        between, after, before, asking = "", "", "", ""
        if NEEDLE in last:
            shown_before, after = last[: last.rindex(NEEDLE)], last[last.rindex(NEEDLE) + len(NEEDLE) :]
            with suppress(TemplateError):  # a template may refuse a question that has no answer
                asked = self.probed(history).removesuffix(tail)
                before = shown_before[len(asked) :] if shown_before.startswith(asked) else ""
            after = after[: len(after) - len(tail)] if after.endswith(tail) else after
        if NEEDLE in followed:
            between, _, asking = followed[followed.rindex(NEEDLE) + len(NEEDLE) :].partition(FOLLOW_UP)
        return end_marker(fmt, after, between, before, asking.removesuffix(tail))

    @limited
    def exchange(
        self,
        message: Mapping[str, Any],
        *,
        history: Sequence[Mapping[str, Any]] | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        beside: Sequence[Mapping[str, Any]] | None = None,
        thinking: bool | None = None,
        **variables: Any,
    ) -> tuple[str, str, str]:
        """As `assistant_turn`, and between the two what of the prompt opens the assistant's turn. ``beside``: the tools
        of the renderings with which that of the message is compared; None if they are the same."""
        history = [{"role": "user", "content": "Hello"}] if history is None else list(history)
        variables = {**self.thinking_kwargs(thinking), **variables}
        wants = self._wants_for([*history, message])
        given = own_tools(tools)
        definitions = given if beside is None else beside

        def render(messages: Sequence[Mapping[str, Any]], generate: bool = False) -> Trace:
            return self._probed.trace(messages, wants, definitions, generate, variables)

        needle, followed = self._followed(history, wants, definitions, variables)
        texts = Renderings(
            plain=render(history),
            prompt=render(history, generate=True),
            full=self._probed.trace([*history, message], wants, given, False, variables),
            needle=needle,
            followed=followed,
        )
        content = message.get("content")
        prompt, wire = cut(texts, len(history), content if isinstance(content, str) else "")
        header = self._generation_prompt(self.probed, history, definitions, variables)
        prefilled = len(texts.prompt.text) - len(prompt)
        return prompt, header[: max(len(header) - prefilled, 0)], wire

    def assistant_turn(
        self,
        message: Mapping[str, Any],
        *,
        history: Sequence[Mapping[str, Any]] | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        thinking: bool | None = None,
        **variables: Any,
    ) -> tuple[str, str]:
        """The prompt, and the text with which a model that reads it would have answered ``message``.

        ``history``: the messages before it; None stands for one user message. The wire text ends with the
        end-of-turn marker, if the template writes one. The prompt is ``render(history,
        add_generation_prompt=True)``. It ends earlier if it prefills text that the template does not show of
        this answer: ``templates.turns`` has the rules. If the template drops a part of the answer, the wire text
        lacks it: see ``probe``. Raises ``TemplateError``.
        """
        prompt, _, wire = self.exchange(message, history=history, tools=tools, thinking=thinking, **variables)
        return prompt, wire

    @limited
    def thinking_kwargs(self, thinking: bool | None) -> dict[str, Any]:
        """The variables that turn thinking on or off in this template. Each is known to change its rendering.

        ``{}`` for None (the template's default) and for a template without a switch. If a template knows only an
        effort, without "none", thinking off is the least effort.
        """
        return self.can.thinking.switched(thinking)

    def dial(self, fmt: Format) -> Dial:
        """The levels of thought and effort that the template has, found by a few renderings in the first call. ``fmt``
        tells where a prompt ends in a thought.

        >>> template = chatparsers.load(template="qwen3").template()
        >>> [level.name for level in template.dial(chatparsers.get_format("qwen3")).levels]
        ['off', 'on']
        """
        found = self._dials.get(fmt.name)
        return self._found_dial(fmt) if found is None else found

    @limited
    def _found_dial(self, fmt: Format) -> Dial:
        words = compared_of(self.source, self.variables)
        found = self._dials[fmt.name] = find_dial(partial(self._turned, fmt), words)
        return found

    def _turned(self, fmt: Format, variables: Mapping[str, Any]) -> Seen | None:
        """What the prompt of a question shows with these variables; None if it is refused."""
        try:
            asked, plain = (
                self._probed.trace([question()], self.can.plain, None, generate, given)
                for generate, given in ((True, variables), (False, {}))
            )
        except TemplateError:
            return None
        after, written = (one.text[one.spans[-1].end :] if one.spans else "" for one in (plain, asked))
        return Seen(
            asked.text, edges_of(fmt).end_of(written.removeprefix(after) if asked.spans else asked.text)
        )

    def moved(self, dial: Dial, level: str, *, role: str, tools: bool, system: bool) -> bool:
        """Whether a level of the dial changes a prompt of this kind: one that ends in a message of this role, with or
        without tools and a system text. Found by two renderings for each kind."""
        kind = level, role if role in _ENDS else "user", tools, system
        known = self._moves.get(kind)
        if known is None:
            known = self._moves[kind] = self._moved(dial, *kind)
        return known

    @limited
    def _moved(self, dial: Dial, level: str, role: str, tools: bool, system: bool) -> bool:
        found, other = dial.level(level), dial.against(level)
        if found is None or other is None or (role, tools, system) == ("user", False, False):
            return True
        history = [*([{"role": "system", "content": SYSTEM}] if system else []), *ending_in(role)]
        shown = TOOLS if tools else None
        try:
            one, two = (
                self.shown(history, tools=shown, add_generation_prompt=True, **given).text
                for given in (found.variables, other)
            )
        except TemplateError:
            return True
        return one != two

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the template's source reads."""
        return self._code.variables

    @cached
    def asked(self) -> Asked:
        """The literals by which the template tells texts from each other."""
        return asked_of(self.source)

    @limited
    @cached_method
    def shows_part(self, kind: str, role: str = "user") -> bool:
        """Whether content parts of this type, such as ``image``, have a place in messages of ``role``."""
        before = {"tool": answered()[:-1], "assistant": [question()]}.get(role, [])
        one = answered()[-1] if role == "tool" else {"role": role}
        after = [question()] if role in ("system", "developer") else []

        def render(content: Any) -> str:
            return self.probed([*before, {**one, "content": content}, *after])

        return shows_part(render, kind)

    @limited
    def probe(self) -> Capabilities:
        """What this template can show, found by some 30 renderings in the first call."""
        return self._capabilities

    @cached
    def _capabilities(self) -> Capabilities:
        try:
            generation_prompt = self._generation_prompt(self.probed, [question()], None, {})
        except TemplateError:
            generation_prompt = ""
        wants, thinking = self.wants, self.can.thinking
        found: dict[str, Any] = {
            "images": self.shows_part("image"),
            "content_as": wants.content_as,
            "arguments_as": wants.arguments_as,
            "reasoning_as": wants.reasoning_as,
            "thinking_switches": thinking.names,
            "thinking_default": thinking.default,
            "channel": channel_of(self._wire()),
            "generation_prompt": generation_prompt,
        }
        names = (field.name for field in fields(Capabilities))
        return Capabilities(
            **{name: found[name] if name in found else getattr(self.can, name) for name in names}
        )

    def _wire(self) -> str:
        """An answer as the model would write it; ``""`` if the template shows none."""
        for thinking in (None, True):
            try:
                wire = self.assistant_turn(answer(), history=[question()], thinking=thinking)[1]
            except TemplateError:
                continue
            if NEEDLE in wire:
                return wire
        return ""

    def probed(self, messages: Sequence[Mapping[str, Any]], **request: Any) -> str:
        """As `render`, for stand-ins: see `Probed`."""
        return self.shown(messages, **request).text

    @limited
    def shown(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        rewrite: Rewrite | None = None,
        **variables: Any,
    ) -> Trace:
        """As `probed`, and whose each character is. ``rewrite``: what a polyfill makes of the messages."""
        wants = self._wants_for(messages if rewrite is None else rewrite(messages))
        return self._probed.trace(messages, wants, tools, add_generation_prompt, variables, rewrite)

    def _wants_for(self, messages: Iterable[Mapping[str, Any]]) -> Wants:
        """As much of the shape as these messages need; the rest is not probed."""
        unusual = [  # more than a text, and whose it is
            message
            for message in messages
            if type(message) is not dict
            or (len(message) != 2 and not SHAPED.isdisjoint(message))
            or type(message.get("content")) not in TEXTS
        ]
        if not unusual:
            return self.can.plain
        calls = thoughts = lists = joined = several = False
        for message in filter(is_message, unusual):
            content, called = message.get("content"), message.get("tool_calls")
            if called:
                calls = True
            if reasoning_of(message):
                thoughts, joined = True, joined or bool(called and content)
            if content and type(content) not in TEXTS:
                lists = True
                several = several or (message["role"] == "tool" and len(content) > 1)
        if not (calls or thoughts or lists):
            return self.can.plain
        found = self.can.full if thoughts else self.can.calls if calls else self.can.plain
        if lists and self.can.reads_lists:
            found = replace(found, content_as="either")
        if several and self.can.joins_results:
            found = replace(found, join_results=True)
        return replace(found, join_content=True) if joined and self.can.joins_content else found

    def _followed(
        self,
        history: Sequence[Mapping[str, Any]],
        wants: Wants,
        tools: Sequence[Mapping[str, Any]] | None,
        variables: Mapping[str, Any],
    ) -> tuple[Trace | None, Trace | None]:
        """The history with a needle as answer, and the same with a user message after it; None if refused."""
        answered = [*history, {"role": "assistant", "content": NEEDLE}]
        out: list[Trace | None] = []
        for messages in (answered, [*answered, {"role": "user", "content": FOLLOW_UP}]):
            try:
                out.append(self._probed.trace(messages, wants, tools, False, variables))
            except TemplateError:
                out.append(None)
        return out[0], out[1]


def _restore(source: str, bos_token: str, eos_token: str, name: str, limits: Limits) -> Template:
    return Template(source, bos_token=bos_token, eos_token=eos_token, name=name, limits=limits)
