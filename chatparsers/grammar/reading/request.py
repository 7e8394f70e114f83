"""What a grammar is asked for, and what is read for all dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.definition.features import reasoning_spans
from ...core.definition.idioms import Options
from ...core.definition.nodes import Body, Node, Token
from ...core.definition.tree import once, tokens, walk
from ...errors import RequestError, check_limit
from ...schema.tools import Tool, Toolset
from ...writer.readable import unreadable
from ..ir import Ir
from ..schemas import Weakened
from .triggers import Trigger


@dataclass(frozen=True, slots=True)
class Request:
    """The parts of a turn that the grammar needs."""

    tree: Node
    options: Options
    tools: Toolset
    named: str | None
    prefix: str
    response_format: Mapping[str, Any] | None
    stops: tuple[str, ...]
    marker_ids: Mapping[str, int]
    reasoning: bool
    """Whether a thought may come."""
    max_calls: int | None
    """The most calls; None: any number."""
    unread: Callable[[Tool], tuple[str, ...]]
    """The tool's name, or the names of its arguments, if the parser would not read them back."""
    in_call: Callable[[], bool] = bool
    """Whether the prompt has begun a call."""
    begins_anew: Callable[[], bool] = bool
    """Whether the parser reads what is asked for after the prefix as if nothing had been written."""
    spent: bool = False
    """Whether no thought may begin any more, so that only those stand that the prompt has written."""
    call_next: bool = False
    """Whether a call comes next, in a turn in which text may."""
    call_within: int | None = None
    """How many tokens of text may come before the first call; None: any number."""

    @classmethod
    def of(
        cls,
        turn: Any,
        marker_ids: Mapping[str, int],
        max_calls: int | None = None,
        call_within: int | None = None,
        spent: bool = False,
        call_next: bool = False,
        anew: bool = True,
    ) -> Request:
        """What a turn asks for. ``marker_ids``: the markers that are written by their ids. ``max_calls``,
        ``call_within``: in place of the turn's. ``anew``: a prefix that no grammar begins with may count as none."""
        return cls(
            turn.tree,
            turn.options,
            turn.tools,
            turn.named,
            turn.prefix,
            turn.response_format,
            tuple(turn.stops),
            marker_ids,
            _reasons(turn),
            max_calls or turn.max_calls or (_MOST_CALLS if turn.options.mode == "required" else None),
            partial(unreadable, turn.format, tools=turn.tools.names()),
            lambda: turn.stream().state.kind == "call",
            partial(_begins_anew, turn) if anew else bool,
            spent,
            call_next,
            call_within or turn.call_within,
        )

    @property
    def called(self) -> tuple[Tool, ...]:
        """The tools that the model may call."""
        if not self.options.tools or self.options.mode == "none":
            return ()
        if self.named is None:
            return self.tools.all()
        return tuple(filter(None, (self.tools.get(self.named),)))

    @property
    def calls_only(self) -> bool:
        """Whether the model must call a tool."""
        return self.options.mode == "required"

    @property
    def grammar(self) -> Mapping[str, Any] | None:
        """The answer's form, if the user wrote a grammar of it."""
        given = self.response_format
        return given if given is not None and given.get("type") == "grammar" else None

    @property
    def shaped(self) -> bool:
        """Whether the request says how an answer is written, so that the format's own answers are not generated."""
        return self.options.schema is not None or self.grammar is not None

    @property
    def spelling(self) -> int:
        """Which of a token's names are in use: those that the prompt or the tokenizer has, else the first ones."""
        tokens = [node for node in walk(self.tree, True) if isinstance(node, Token) and node.also]
        for known in (self.prefix, self.marker_ids):
            for place in range(max((len(token.names) for token in tokens), default=0)):
                if any(token.names[place] in known for token in tokens if place < len(token.names)):
                    return place
        return 0


def check_call_within(turn: Any, number: int | None) -> None:
    """Raises `RequestError` if ``number`` is no limit, or if no call may follow text in the turn."""
    if number is None:
        return
    check_limit("call_within", number)
    options, given = turn.options, turn.response_format or {}
    free = (
        options.tools and options.mode == "auto" and options.schema is None and given.get("type") != "grammar"
    )
    if not free or not any(isinstance(node, Body) and node.calls is not None for node in once(turn.tree)):
        raise RequestError(
            f"call_within: expected a turn in which a call may follow text, found {turn!r}: give tools, with "
            'tool_choice="auto", and a format that calls after text'
        )


_MOST_CALLS = 16
"""A model that is made to call may fall into a loop of calls."""


def _reasons(turn: Any) -> bool:
    """Whether a turn may begin with a thought: as the caller says, else as the model's template shows. Without a
    template, a tokenizer without the marker of thoughts belongs to a model that writes none."""
    if turn.options.thinking is not None:
        return bool(turn.options.thinking)
    if turn.reasoning is not None:
        return bool(turn.reasoning)
    known = turn.marker_ids
    markers = [marker for span in reasoning_spans(turn.tree) for marker in tokens(span.open)]
    return not known or not markers or any(marker in known for marker in markers)


@dataclass(slots=True)
class Reading:
    """A request's grammar, the same for all dialects."""

    root: Ir
    rules: dict[str, Ir]
    lazy: bool
    triggers: tuple[Trigger, ...]
    reasoning: bool
    weakened: tuple[Weakened, ...]


def _begins_anew(turn: Any) -> bool:
    """Whether the parser, after what the prompt wrote, reads a call (an answer, where none is forced) as the format
    writes it: so of a header or a closed thought that no grammar begins with."""
    names = [turn.named] if turn.named else list(turn.tools.names())
    forced = turn.options.mode == "required" and names
    calls = [{"type": "function", "function": {"name": names[0], "arguments": "{}"}}] if forced else []
    try:
        text = turn.format.render({"role": "assistant", "content": "" if calls else "x", "tool_calls": calls})
    except RequestError:  # a name that the format cannot write
        return False
    found = turn.parse(text)
    read = [call.name for call in found.tool_calls] == names[:1] if calls else found.content == "x"
    return read and not found.diagnostics
