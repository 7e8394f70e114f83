"""A template together with its polyfills: it takes the caller's conversation and gives a prompt in which nothing is
lost.

    messages, tools ──outline──> plan (kept) ──polyfills──> messages, tools ──template──> prompt

Nothing here knows a template or a format by name. The plan is found by rendering stand-ins. The format itself writes
the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..answers.format import Format
from ..errors import TemplateError
from .jinja.failure import place
from .probe.parts import part_kinds
from .probe.stand_ins import ending_in
from .render import Template
from .rewrite.declared import ToolsAs
from .rewrite.history import History
from .rewrite.outline import Message, Outline, Survey
from .rewrite.parts import shown_parts
from .rewrite.plan import Planner
from .rewrite.polyfills import POLYFILLS, apply, flat_tools
from .rewrite.results import MISSING, ORDER, Settled, settled
from .trace import Trace

_ALL = frozenset(POLYFILLS)


class Rewritten(NamedTuple):
    """The template's input. ``tools`` is None if there are no tools or a message describes them. ``names``: the
    polyfills that were used. ``warnings``: what the messages leave open. ``history``: the conversation, if it grows."""

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] | None
    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    history: History | None = None


class Renderer:
    """One template with the polyfills that it needs.

    ``syntax``: the format that writes tools and calls if the template does not. ``allowed``: the polyfills that may be
    used; None allows all. ``tools_as``: how the polyfill ``tools`` writes them. ``calls_known``: whether it
    is known how the model writes calls. If not, and if the template shows nothing of them, ``tools`` is used wherever
    there are tools, also if the template shows these.
    """

    def __init__(
        self,
        template: Template,
        syntax: Format,
        allowed: Iterable[str] | None = None,
        tools_as: ToolsAs = "json",
        calls_known: bool = True,
    ) -> None:
        self.template = template
        self.tools_as = tools_as
        self.syntax = syntax
        self.allowed = _ALL if allowed is None else frozenset(allowed)
        self._planner = Planner(template, syntax, tools_as, calls_known)

    def rewrite(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Rewritten:
        """The conversation as this template can show it.

        Raises `TemplateError` for a message that it cannot show in any way. With polyfills switched off, such a message
        is lost if the template drops it.
        """
        grown = history = messages if isinstance(messages, History) else None
        if not self.allowed:
            return Rewritten(messages, tools, (), (), grown)
        try:
            survey = Survey(messages) if history is None else history.survey()
        except TypeError:  # the rendering itself says which message is malformed
            return Rewritten(messages, tools, (), (), grown)
        ordered, moved, warnings = self._settled(messages, survey)
        messages, in_results = ordered, frozenset[str]()
        if survey.parts:
            messages, moves = shown_parts(
                self.template, ordered, results_as=self._results_as, moves="result_parts" in self.allowed
            )
            if messages is not ordered:
                history = None
            kinds = {kind for kind, _ in part_kinds(messages)}
            in_results = frozenset(kind for kind in kinds if self.template.shows_part(kind, self._results_as))
            if moves:
                moved = (*moved, "result_parts")
                messages = apply(("result_parts",), messages, (), self.syntax, in_results=in_results)
        if moved:
            survey = Survey(messages)
        plan = self._planner.plan(survey.outline(), bool(tools), self.allowed)
        if plan.lost and self.allowed == _ALL:
            raise self._refusal(plan.lost[0], messages)
        names = plan.names
        if not names:
            return Rewritten(messages, tools, moved, warnings, grown)
        if tools and "flat" in names:
            tools = flat_tools(tools)

        def rewrite(part: Sequence[Message], first: int) -> list[Message]:
            # The tools are described at the beginning.
            some = names if first == 0 else [name for name in names if name != "tools"]
            return apply(some, part, tools or (), self.syntax, self.tools_as, in_results)

        if history is not None:
            given = history.rewritten(messages, (self, names, tools), rewrite)
        else:
            given = rewrite(messages, 0)
        shown = None if "tools" in names else tools
        return Rewritten(given, shown, (*moved, *names), warnings, grown)

    def settled(self, messages: Sequence[Message]) -> Settled:
        """The messages, with each result after its call, if that is allowed."""
        try:
            survey = Survey(messages)
        except TypeError:  # the rendering itself says which message is malformed
            return Settled(messages)
        return self._settled(messages, survey)

    def _settled(self, messages: Sequence[Message], survey: Survey) -> Settled:
        if ORDER not in self.allowed:
            return Settled(messages)
        return settled(messages, survey.steps, missing=MISSING in self.allowed)

    def prompt(self, given: Rewritten, generate: bool, variables: Mapping[str, Any]) -> tuple[str, str]:
        """The rendering of what was rewritten, and the generation prompt that it ends with; ``""`` without
        ``generate``."""
        messages, tools = given.messages, given.tools
        text = self.template.render(
            messages, tools=tools, add_generation_prompt=generate, history=given.history, **variables
        )
        if not generate:
            return text, ""
        return text, self.template.generation_prompt_of(text, messages, tools=tools, **variables)

    def stand_in(
        self,
        messages: Sequence[Message],
        names: Sequence[str],
        tools: bool,
        generate: bool,
        variables: Mapping[str, Any],
    ) -> Trace:
        """The rendering of a conversation of stand-ins, written by these polyfills, traced. Tools that a message
        describes are left out."""
        told = "tools" in names
        way = self._planner.way([name for name in names if name != "tools"], messages, tools and not told)
        return self._planner.rendered(way, generate, **variables)

    def tail(
        self, role: str, names: Sequence[str], tools: bool, variables: Mapping[str, Any]
    ) -> tuple[str, str] | None:
        """As `Template.tail`, after a message of this role as these polyfills write it."""
        way = self._planner.way(names, ending_in(role), tools)
        return self.template.tail(str(way.given[-1].get("role")), bool(way.tools), variables)

    def warm(self) -> None:
        """Finds the plans of the usual conversations."""
        for shape, tools in _USUAL:
            self._planner.plan(shape, tools, self.allowed)

    def _refusal(self, lost: tuple[Any, str], messages: Sequence[Message]) -> TemplateError:
        kind, what = lost
        index = next((i for i, m in enumerate(messages) if m.get("role") == kind.role), None)
        said = "the tools" if kind.role == "tools" else f"{what} of the role {kind.role!r}"
        return TemplateError(
            f"{place(self.template.name, index=index)}: the template does not show {said} in such a conversation, in "
            "any way of writing it (change the conversation; polyfills=False renders it with that loss)"
        )

    @property
    def _results_as(self) -> str:
        """The role whose messages results are written as."""
        return "tool" if self._planner.knows_results else "user"


def _usual() -> Iterable[tuple[Outline, bool]]:
    user: Message = {"role": "user", "content": "x"}
    answer: Message = {"role": "assistant", "content": "x"}
    call = {"id": "x", "function": {"name": "x", "arguments": {}}}
    called: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
    result: Message = {"role": "tool", "tool_call_id": "x", "content": "x"}
    for start in ([user], [{**user, "role": "system"}, user]):
        yield Survey(start).outline(), False
        yield Survey([*start, answer, user]).outline(), False
        yield Survey(start).outline(), True
        yield Survey([*start, called, result]).outline(), True
        yield Survey([*start, called, result, answer, user]).outline(), True


_USUAL = tuple(_usual())
