"""Finds what a template can show, and in which shape it reads it, by rendering. Its source is never read.

Each question is a rendering of stand-ins (`stand_ins`), whose trace says which of them are shown. A candidate shape is
right if every text of the messages comes out once, and not inside a printed Python dict. So a cosmetic edit of the
template cannot change the answer. Everything is found when it is asked for, and kept: a template that is given only
texts is asked only for the shape of texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from ...errors import TemplateError
from ...kept import cached
from ...shown import Shown
from ..messages import CallIds, ReasoningAs, Wants
from ..probed import NO_VARIABLES, Probed
from ..trace import Trace, covered
from .stand_ins import (
    ANSWER,
    ARGUMENTS,
    FOREIGN_IDS,
    FOUND,
    IDS,
    KEY,
    NAME,
    QUESTION,
    SYSTEM,
    THOUGHT,
    TOOLS,
    VALUE,
    answer,
    question,
)
from .stand_ins import results as _results
from .thinking import Thinking
from .turns import MARKER

Messages = list[dict[str, Any]]

# Parts printed as they are, by Python or as JSON: {'type': 'text', 'text': '…
_PART = re.compile(r"""["'](?:text|thinking)["']: ?["']\Z""")
PRINTED = (repr(ARGUMENTS), f'\\"{KEY}\\"')
"""What a printed dict of arguments has, and JSON within a JSON string."""

_ARGUMENT_FORMS: tuple[Literal["dict", "text"], ...] = ("dict", "text")
_EMPTIES: tuple[Literal["text", "none"], ...] = ("text", "none")
_IDS: tuple[CallIds, ...] = ("keep", "fill", "short", "function")
_FIELDS: tuple[ReasoningAs, ...] = ("reasoning_content", "reasoning", "thinking")
_MORE, _DEVELOPER = "Go on.", "Be exact."


@dataclass(frozen=True, slots=True)
class Capabilities(Shown):
    """What a template shows of a conversation. If a field is False, the template drops or refuses that part.

    ``tools``: the tools' definitions. ``tool_calls``, ``parallel_calls``: one, and more than one, call in a
    turn; ``bare_calls``: also in a turn without reasoning. ``content_beside_calls``: the text of a turn that calls,
    as content (not as reasoning). ``reasoning``: the last turn's reasoning before content; ``reasoning_with_calls``:
    before a call.
    ``system_role``, ``tool_role``, ``developer_role``: such messages. ``several_systems``, ``consecutive_users``: two
    of them in a row. ``late_system``: a system message after an answer. ``parallel_results``: the results of two
    calls; ``result_ids``: which call a result answers, by its id. ``images``: a picture's place among parts of text.
    ``content_as``, ``arguments_as``, ``reasoning_as``: see ``Wants``. ``thinking_switches``: the keywords that turn
    thinking on and off. ``thinking_default``: whether thinking is on without them, None if the prompt is neither the
    one nor the other. ``channel``: the markers that open and close the content of an answer, without the turn's own.
    ``generation_prompt``: the text that the template adds after a user message.
    """

    tools: bool
    tool_calls: bool
    parallel_calls: bool
    bare_calls: bool
    content_beside_calls: bool
    reasoning: bool
    reasoning_with_calls: bool
    system_role: bool
    tool_role: bool
    developer_role: bool
    several_systems: bool
    late_system: bool
    consecutive_users: bool
    parallel_results: bool
    result_ids: bool
    images: bool
    content_as: Literal["text", "parts", "either"]
    arguments_as: Literal["dict", "text"]
    reasoning_as: ReasoningAs | None
    thinking_switches: tuple[str, ...]
    thinking_default: bool | None
    channel: tuple[str, str]
    generation_prompt: str


class Prober:
    """What one template shows, each thing found at its first use. The properties are facts of `Capabilities`.
    ``reads``: the variables that the template reads. ``thinking``: its switches."""

    def __init__(self, probed: Probed, reads: frozenset[str]) -> None:
        self._probed = probed
        self.thinking = Thinking(self._asked, reads)

    def _shown(
        self,
        messages: Messages,
        wants: Wants,
        *,
        tools: bool = False,
        generate: bool = False,
        variables: Mapping[str, Any] = NO_VARIABLES,
    ) -> Trace | None:
        """The rendering; None if the template refuses it."""
        try:
            return self._probed.trace(messages, wants, TOOLS if tools else None, generate, variables)
        except TemplateError:
            return None

    def _asked(self, variables: Mapping[str, Any]) -> Trace | None:
        return self._shown([question()], self.plain, generate=True, variables=variables)

    # The shapes that it reads

    @cached
    def plain(self) -> Wants:
        """The shape of contents and tools."""
        empty: tuple[Literal["none", "list"], ...] = ("none", "list")
        forms: tuple[Literal["text", "parts"], ...] = ("text", "parts")
        for functions, no_tools, content in product((False, True), empty, forms):
            wants = Wants(content_as=content, no_tools=no_tools, functions=functions)
            if shows(self._shown([question()], wants), 0, QUESTION):
                break
        else:
            return Wants()
        if self._shows_tools(wants):
            return wants
        others = replace(wants, functions=True), replace(wants, flat_tools=True)
        return next(filter(self._shows_tools, others), wants)

    @cached
    def reads_lists(self) -> bool:
        """Whether a template that reads contents as texts reads lists of parts too."""
        if self.plain.content_as != "text":
            return False
        parts = [{"type": "text", "text": QUESTION}]
        return shows(self._shown([question(parts)], replace(self.plain, content_as="either")), 0, QUESTION)

    def _shows_tools(self, wants: Wants) -> bool:
        found = self._shown([question()], wants, tools=True)
        return found is not None and NAME in found.own

    @cached
    def calls(self) -> Wants:
        """``plain`` and the shape of calls."""
        last_only = None
        for wants in self._call_shapes():
            if self._keeps_calls(wants, 1):
                if all(self._keeps_calls(wants, 1, results=ids) for ids in (FOREIGN_IDS, ())):
                    break
                last_only = last_only or wants
        else:
            wants = last_only or self._after_reasoning or self.plain
        if self._shown([question(), answer("", calls=2, ids=())], wants, tools=True) is None:
            # A template may want ids where it tells several calls from each other.
            forms = (replace(wants, call_ids=ids) for ids in _IDS)
            wants = next((form for form in forms if self._keeps_calls(form, 2, results=())), wants)
        bare = replace(wants, empty_content="none")
        # R1-Distill-Qwen renders the empty text beside a call as a turn of its own.
        return bare if self._keeps_calls(bare, 1) and self._length(bare) < self._length(wants) else wants

    @cached
    def _after_reasoning(self) -> Wants | None:
        """The shape of calls that come out only after reasoning; None if none does."""
        if not self.tools:
            return None
        found = (
            self._after_thought(replace(self.plain, reasoning_as=form))
            for form in self._reasoning_forms(self.plain)
        )
        return next((wants for wants in found if wants is not None), None)

    def _after_thought(self, wants: Wants) -> Wants | None:
        forms = (replace(wants, arguments_as=form) for form in _ARGUMENT_FORMS)
        turns = (self._thought(form, 1) for form in forms)
        if not any(turn is not None and any(turn.of(1, "name")) for turn in turns):
            return None
        on = self.thinking.switched(True)
        for shape in self._call_shapes():
            shape = replace(shape, reasoning_as=wants.reasoning_as)
            if self._keeps_calls(shape, 1, thought=THOUGHT, variables=on):
                return replace(shape, reasoning_as=None)
        return None

    def _length(self, wants: Wants) -> int:
        found = self._shown([question(), answer("", calls=1)], wants, tools=True)
        return 0 if found is None else len(found.text)

    def _call_shapes(self) -> Iterator[Wants]:
        """The shapes to try. Where a template shows nothing of a call, other ids change nothing."""
        for empty, arguments in product(_EMPTIES, _ARGUMENT_FORMS):
            wants = replace(self.plain, empty_content=empty, arguments_as=arguments)
            found = self._shown([question(), answer("", calls=1)], wants, tools=True)
            silent = found is not None and not any(found.of(1))
            yield from (replace(wants, call_ids=ids) for ids in (_IDS[:1] if silent else _IDS))

    def _keeps_calls(
        self,
        wants: Wants,
        number: int,
        *,
        results: tuple[str, ...] | None = None,
        thought: str = "",
        variables: Mapping[str, Any] = NO_VARIABLES,
    ) -> bool:
        """Whether calls come out whole: in the last turn, or with the ids of ``results`` before these."""
        message = answer("", thought=thought, calls=number, ids=IDS if results is None else results)
        messages = [question(), message, *([] if results is None else _results(number, results))]
        found = self._shown(messages, wants, tools=True, generate=results is not None, variables=variables)
        return found is not None and all(shows_call(found, 1, part, once=True) for part in range(number))

    @cached
    def full(self) -> Wants:
        """``calls`` and the shape of reasoning."""
        for form in self._reasoning_forms(self.calls):
            wants = replace(self.calls, reasoning_as=form)
            if any(self._keeps_reasoning(wants, calls) for calls in (1, 0)):
                return wants
        return self.calls

    def _reasoning_forms(self, base: Wants) -> Iterator[ReasoningAs]:
        """The shapes of reasoning to try, without the fields if all together show nothing."""
        every = replace(base, reasoning_as="any")
        for found in (self._thought(every, calls) for calls in (1, 0)):
            if found is None or any(span.field == "reasoning" for span in found.spans):
                yield from _FIELDS
                break
        yield from ("part", "blocks")

    def _thought(self, wants: Wants, calls: int) -> Trace | None:
        """An answer, or that many calls, after a thought."""
        message = answer("" if calls else ANSWER, thought=THOUGHT, calls=calls)
        on = self.thinking.switched(True)
        return self._shown([question(), message], wants, tools=calls > 0, variables=on)

    def _keeps_reasoning(self, wants: Wants, calls: int) -> bool:
        found = self._thought(wants, calls)
        return _thinks(found) and (_named(found) if calls else shows(found, 1, ANSWER))

    @cached
    def joins_content(self) -> bool:
        """Whether the template shows reasoning beside a call, and refuses both beside content."""
        if not self._keeps_reasoning(self.full, 1):
            return False
        message = answer(thought=THOUGHT, calls=1)
        on = self.thinking.switched(True)
        return self._shown([question(), message], self.full, tools=True, variables=on) is None

    @cached
    def joins_results(self) -> bool:
        """Whether of several texts of a result the template shows the first alone."""
        if self.plain.content_as == "text" and not self.reads_lists:
            return False
        texts = [{"type": "text", "text": text} for text in (FOUND, _MORE)]
        messages = [question(), answer("", calls=1), {**_results(1)[0], "content": texts}]
        content = "either" if self.plain.content_as == "text" else self.plain.content_as
        found = self._shown(messages, replace(self.full, content_as=content), tools=True)
        shown = set() if found is None else {span.part for span in found.of(2, "content")}
        return shown == {0}

    def _ways(self) -> Iterator[Mapping[str, Any]]:
        """No variables, and those that switch thinking on."""
        yield {}
        yield self.thinking.switched(True)

    # What it shows: the fields of `Capabilities`

    @cached
    def tools(self) -> bool:
        return self._shows_tools(self.plain)

    @cached
    def tool_calls(self) -> bool:
        return self._shows_calls(1)

    @cached
    def parallel_calls(self) -> bool:
        return self._shows_calls(2)

    @cached
    def bare_calls(self) -> bool:
        return self._keeps_calls(self.full, 1)

    def _shows_calls(self, number: int) -> bool:
        """Whether that many calls come out, also if only after reasoning."""
        if self._keeps_calls(self.full, number):
            return True
        return self._after_reasoning is not None and any(
            self._keeps_calls(self.full, number, thought=THOUGHT, variables=variables)
            for variables in self._ways()
        )

    @cached
    def reasoning(self) -> bool:
        return self._keeps_reasoning(self.full, 0)

    @cached
    def reasoning_with_calls(self) -> bool:
        return self._keeps_reasoning(self.full, 1)

    @cached
    def content_beside_calls(self) -> bool:
        message = answer(calls=1)
        for variables in self._ways():
            found = self._shown([question(), message], self.full, tools=True, variables=variables)
            if found is not None and shows(found, 1, ANSWER) and _named(found):
                return not self._is_thought(found, variables) and not self._is_turn(found)
        return False

    def _is_thought(self, found: Trace, variables: Mapping[str, Any]) -> bool:
        """Whether the text beside a call is written in the place of reasoning."""
        message = answer("", thought=ANSWER, calls=1)
        other = self._shown([question(), message], self.full, tools=True, variables=variables)
        return other is not None and other.text == found.text

    def _is_turn(self, found: Trace) -> bool:
        """Whether the text beside a call is a turn of its own: what ends an answer is between them."""
        plain = self._shown([question(), answer()], self.full)
        said = [] if plain is None else list(plain.of(1, "content"))
        end = plain.text[said[-1].end :].strip() if plain is not None and said else ""
        content, name = (next(iter(found.of(1, field))).start for field in ("content", "name"))
        return end != "" and end in found.text[min(content, name) : max(content, name)]

    @cached
    def system_role(self) -> bool:
        return self._keeps([_said("system", SYSTEM), question()])

    @cached
    def developer_role(self) -> bool:
        return self._keeps([_said("developer", _DEVELOPER), question()])

    @cached
    def several_systems(self) -> bool:
        return self._keeps([_said("system", SYSTEM), _said("system", _DEVELOPER), question()])

    @cached
    def late_system(self) -> bool:
        found = self._shown([question(), answer(), _said("system", SYSTEM), question(_MORE)], self.full)
        return shows(found, 2, SYSTEM) and shows(found, 3, _MORE)

    @cached
    def consecutive_users(self) -> bool:
        return self._keeps([question(), question(_MORE)])

    @cached
    def tool_role(self) -> bool:
        return shows(self._answered(1), 2, FOUND)

    @cached
    def parallel_results(self) -> bool:
        found = self._answered(2)
        return shows(found, 2, FOUND) and shows(found, 3, FOUND)

    @cached
    def result_ids(self) -> bool:
        """With the result, the id occurs more often than with only the call."""
        id = f"functions.{NAME}:0" if self.full.call_ids == "function" else IDS[0]
        called = self._shown([question(), answer("", calls=1)], self.full, tools=True)
        found = self._answered(1)
        return found is not None and called is not None and found.text.count(id) > called.text.count(id)

    def _answered(self, calls: int) -> Trace | None:
        """Calls with their results."""
        messages = [question(), answer("", calls=calls), *_results(calls, IDS)]
        return self._shown(messages, self.full, tools=True)

    def _keeps(self, messages: Messages) -> bool:
        """Whether the text of each message comes out."""
        found = self._shown(messages, self.full)
        return all(shows(found, index, message["content"]) for index, message in enumerate(messages))


def _said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def shows(found: Trace | None, message: int, words: str, field: str = "content") -> bool:
    """Whether all words of a message's field come out as they are, and not inside a printed Python or JSON part."""
    if found is None:
        return False
    spans = [
        span
        for span in found.of(message, field)
        if span.verbatim and not _PART.search(found.text[max(0, span.start - 16) : span.start])
    ]
    return covered(words, spans)


def _thinks(found: Trace | None) -> bool:
    return shows(found, 1, THOUGHT, "reasoning")


def _named(found: Trace | None) -> bool:
    return found is not None and any(span.verbatim for span in found.of(1, "name"))


def shows_call(
    found: Trace, message: int, part: int, printed: tuple[str, ...] = PRINTED, *, once: bool = False
) -> bool:
    """Whether a call comes out: its name, its argument's name and value, and none of the texts ``printed``. ``once``:
    the value comes once, and the argument's name once or, in a tag, twice."""
    spans = [span for span in found.of(message, "arguments") if span.part == part]
    texts = [found.text[span.start : span.end] for span in spans]
    keys, values = (sum(text.count(word) for text in texts) for word in (KEY, VALUE))
    whole = found.text[max(0, spans[0].start - 2) : spans[-1].end + 2] if spans else ""
    if any(text in whole for text in printed):
        return False
    counted = (keys in (1, 2) and values == 1) if once else bool(keys and values)
    return counted and any(span.part == part and span.verbatim for span in found.of(message, "name"))


def channel_of(wire: str) -> tuple[str, str]:
    """The text from the first marker before the words of an answer, and the first marker after them if a second one
    follows."""
    before, _, after = wire.partition(ANSWER)
    opens = MARKER.search(before)
    closes = MARKER.findall(after)
    opener = before[opens.start() :] if opens else ""
    return opener, closes[0] if opener and len(closes) > 1 else ""
