"""What a grammar is asked for, and what is read for all dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...answers.features import reasoning_spans
from ...answers.idioms import Options
from ...answers.nodes import Body, Node, Token
from ...core.tree import once, tokens, walk
from ...errors import RequestError, check_limit
from ...schema.tools import Tool, Toolset
from ...values.bars import other_bars
from ..ir import Ir
from ..schemas import Weakened
from .triggers import Trigger

_NO_IDS: Mapping[str, int] = {}


def _ends(stop: str, marker_ids: Mapping[str, int]) -> tuple[str, ...]:
    """The texts at which the parser ends the turn: all spellings of a stop, unless it is known by its id."""
    return (stop,) if stop in marker_ids else (stop, *other_bars(stop))


class Request:
    """What a turn asks of its grammar.

    ``marker_ids``: the markers that are written by their ids. ``max_calls`` (None: any number), ``call_within``: in
    place of the turn's. ``thinking_tokens``, ``answer_tokens``: how many tokens a thought and the text of the answer
    may take (None: any number). ``spent``: no thought may begin any more, so only those are there that the prompt has
    written. ``call_next``: a call comes next, in a turn in which text may. ``anew``: a prefix that no grammar begins
    with may count as none.
    """

    def __init__(
        self,
        turn: Any,
        marker_ids: Mapping[str, int] = _NO_IDS,
        max_calls: int | None = None,
        call_within: int | None = None,
        spent: bool = False,
        call_next: bool = False,
        anew: bool = True,
        thinking_tokens: int | None = None,
        answer_tokens: int | None = None,
    ) -> None:
        self.turn = turn
        self.tree: Node = turn.tree
        self.options: Options = turn.options
        self.prefix: str = turn.prefix
        self.stops = tuple(dict.fromkeys(form for stop in turn.stops for form in _ends(stop, marker_ids)))
        self.marker_ids = marker_ids
        self.max_calls = max_calls or turn.max_calls or (_MOST_CALLS if self.calls_only else None)
        self.call_within = call_within or turn.call_within
        self.spent = spent
        self.call_next = call_next
        self.anew = anew
        self.thinking_tokens = thinking_tokens
        self.answer_tokens = answer_tokens

    @property
    def called(self) -> tuple[Tool, ...]:
        """The tools that the model may call."""
        if not self.options.tools or self.options.mode == "none":
            return ()
        tools: Toolset = self.turn.tools
        if self.turn.named is None:
            return tools.all()
        return tuple(filter(None, (tools.get(self.turn.named),)))

    @property
    def calls_only(self) -> bool:
        """Whether the model must call a tool."""
        return self.options.mode == "required"

    @property
    def call_spaces(self) -> tuple[tuple[str, ...], ...] | None:
        """The white space before a call that must come, before a thought, and between the two, as the template writes
        it in later prompts: with any other, the model would read its own call otherwise there. Empty where the template
        does not tell; None if it tells nothing."""
        spaces: tuple[tuple[str, ...], ...] = self.turn.call_spaces
        return spaces if self.calls_only and not self.shaped and any(spaces) else None

    @property
    def grammar(self) -> Mapping[str, Any] | None:
        """The answer's form, if the user wrote a grammar of it, a regular expression or its choices."""
        given: Mapping[str, Any] | None = self.turn.response_format
        return given if given is not None and given.get("type") in _WRITTEN else None

    @property
    def shaped(self) -> bool:
        """Whether the request says how an answer is written, so that the format's own answers are not generated."""
        return self.options.schema is not None or self.grammar is not None

    @property
    def counted(self) -> bool:
        """Whether the engine counts the tokens of thoughts or of the answer."""
        return self.thinking_tokens is not None or self.answer_tokens is not None

    @property
    def spelling(self) -> int:
        """Which of a token's names are in use: those that the prompt or the tokenizer has, else the first ones."""
        tokens = [node for node in walk(self.tree, True) if isinstance(node, Token) and node.also]
        for known in (self.prefix, self.marker_ids):
            for place in range(max((len(token.names) for token in tokens), default=0)):
                if any(token.names[place] in known for token in tokens if place < len(token.names)):
                    return place
        return 0

    @property
    def reasoning(self) -> bool:
        """Whether the turn may begin with a thought: as the caller says, else as the model's template shows. Without a
        template, a tokenizer without the marker of thoughts belongs to a model that writes none."""
        for said in (self.options.thinking, self.turn.reasoning):
            if said is not None:
                return bool(said)
        known = self.turn.marker_ids
        markers = [marker for span in reasoning_spans(self.tree) for marker in tokens(span.open)]
        return not known or not markers or any(marker in known for marker in markers)

    def in_call(self) -> bool:
        """Whether the prompt has begun a call."""
        return bool(self.turn.stream().state.kind == "call")

    def begins_anew(self) -> bool:
        """Whether the parser, after what the prompt wrote, reads a call (an answer, where none is forced) as the format
        writes it: so of a header or a closed thought that no grammar begins with."""
        if not self.anew:
            return False
        turn = self.turn
        names = [turn.named] if turn.named else list(turn.tools.names())
        forced = self.calls_only and names
        calls = [{"type": "function", "function": {"name": names[0], "arguments": "{}"}}] if forced else []
        message = {"role": "assistant", "content": "" if calls else "x", "tool_calls": calls}
        try:
            text = turn.format.render(message)
        except RequestError:  # a name that the format cannot write
            return False
        found = turn.parse(text)
        read = [call.name for call in found.tool_calls] == names[:1] if calls else found.content == "x"
        return read and not found.diagnostics


def check_call_within(turn: Any, number: int | None) -> None:
    """Raises `RequestError` if ``number`` is no limit, or if no call may follow text in the turn."""
    if number is None:
        return
    check_limit("call_within", number)
    options, given = turn.options, turn.response_format or {}
    free = (
        options.tools
        and options.mode == "auto"
        and options.schema is None
        and given.get("type") not in _WRITTEN
    )
    if not free or not any(isinstance(node, Body) and node.calls is not None for node in once(turn.tree)):
        raise RequestError(
            f"call_within: expected a turn in which a call may follow text, found {turn!r}: give tools, with "
            'tool_choice="auto", and a format that calls after text'
        )


_WRITTEN = ("grammar", "lark", "regex", "choice")
"""The answers whose form the user writes without a schema."""
_MOST_CALLS = 16
"""A model that is made to call may fall into a loop of calls."""


@dataclass(slots=True)
class Reading:
    """A request's grammar, the same for all dialects."""

    root: Ir
    rules: dict[str, Ir]
    lazy: bool
    triggers: tuple[Trigger, ...]
    reasoning: bool
    weakened: tuple[Weakened, ...]
