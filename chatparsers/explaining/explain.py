"""Why was this text not read as a call, or as a thought?

Strategy: questions in the order of how much their answer is worth. Each is a function of the case and says its causes;
a question whose answer leaves no doubt ends the search, the others are all asked, and their order is the order of the
causes. Evidence is a reading: of the text taken back (`altered`), of the turn with another prefix, of other formats
(`readings`), or of what our own writer writes (`stripped`). Only what is left is judged by the look of the text.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ..answers.format import Turn
from ..errors import ChatParsersError, RequestError
from ..public import public
from ..streams.ids import Piece
from ..streams.message import Diagnostic
from ..watch import tools_not_given
from ..watch.beside import beside
from ..writer.around import written_around
from .altered import ALTERATIONS
from .causes import Cause, CauseCode, Explanation, Mention
from .readings import Reading, own_markers, readings, whole
from .spelling import respelt
from .stripped import stripped_markers

_TOKENS = "more max_tokens, or look for a stop text that stands in the answer"
_GRAMMAR = "turn.grammar() for the sampler"
_NAMED = re.compile(
    r'"(?:name|tool_name)"\s*:\s*"(?P<json>[\w.-]{2,64})"(?=\s*,\s*"(?:arguments|parameters|args)")'
    r'|<function=(?P<tag>[\w.-]{2,64})>|<invoke name="(?P<invoke>[\w.-]{2,64})"'
)
"""A call of a tool of any name, in the three commonest dialects."""
_OPENERS = re.compile(r"```|<[a-z_]+>|\[\{|\{")
_STARTS = 12
"""The most places from which a call within a thought, or after words, is read."""


class _Case:
    """A text, its turn and its reading. Holds what several questions ask for."""

    def __init__(self, piece: Piece, turn: Turn) -> None:
        self.turn = turn
        self.message = turn.parse(piece)
        self.text = self.message.text
        self.tools = turn.tools
        self.names = turn.tools.names()
        self.good = whole(self.message, self.tools)
        self.evidence = list(beside(self.text, self.names))

    def bound(self, *, prefix: str | None = None, lenient: bool = False) -> Turn:
        """The turn with another prefix, or with calls that are a whole answer."""
        turn = self.turn if prefix is None else self.turn._replace(prefix=prefix)
        return turn._replace(options=turn.options._replace(lenient=True)) if lenient else turn

    def reads(self, turn: Turn, text: str) -> bool:
        """Whether this turn reads a whole call of a declared tool in this text."""
        try:
            return whole(turn.parse(text), self.tools)
        except ChatParsersError:  # the options do not fit this format
            return False

    def diagnostic(self, code: str) -> Diagnostic | None:
        return next((one for one in self.message.diagnostics if one.code == code), None)

    def mentions(self) -> list[Mention]:
        found = []
        for region in self.message.regions:
            text = self.text[region.start : region.end]
            for name in self.names:
                for hit in re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)", text):
                    found.append(Mention(name, region.kind, region.start + hit.start()))
        return sorted(found, key=lambda mention: mention.position)


_Question: TypeAlias = Callable[[_Case], Iterator[Cause]]


@public
def explain(text: Piece, turn: Turn) -> Explanation:
    """Says why a text was read as it was: what was read, where declared tools are named, and what is likely wrong.

    ``text``: the model's whole answer, as text or, if the turn has a tokenizer, as token ids. ``turn``: the request
    that it answers, from `Chat.prepare` or `Format.bind`. The causes are empty if a call was read and no other is left
    in the text, or if nothing in it looks like a call. It costs some tens of readings of the text, and once a second,
    to make the parsers of other formats. Raises `RequestError` for what is neither text nor ids.

    >>> turn = chatparsers.get_format("qwen3").bind(tools=tools)
    >>> answer = '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>'
    >>> found = chatparsers.explain(answer, turn)
    >>> found.code, found.causes[0].mend
    ('other-format', '--format gemma-4')
    """
    if not isinstance(turn, Turn):
        raise RequestError(
            f"explain: expected a turn, from Chat.prepare or Format.bind, found {type(turn).__name__}"
        )
    case = _Case(text, turn)
    return Explanation(case.message, case.mentions(), list(_causes(case)))


def _causes(case: _Case) -> Iterator[Cause]:
    for question in (_altered, _own_calls):
        causes = list(question(case))
        if causes:
            yield from causes
            return
    shown = f"{case.message.content}\n{case.message.reasoning}"
    if case.good and not any(beside(shown, case.names)):
        yield from _unopened_thought(case)
        return
    if not case.names:
        yield from _prefix(case)
        yield from _no_tools(case)
        return
    found = False
    for question in (_prefix, _in_thought, _respelt, _elsewhere, _near_miss):
        for cause in question(case):
            found = True
            yield cause
    if not found:
        yield from (_beside_json(case) if case.evidence else _undeclared(case))


def _altered(case: _Case) -> Iterator[Cause]:
    """Text that something changed on its way, and that is a call once that is taken back."""
    if case.good or not case.names:
        return
    for alteration in ALTERATIONS:
        changed = alteration.undone(case.text)
        if changed != case.text and case.reads(case.turn, changed):
            yield Cause(alteration.code, alteration.says, alteration.mend)


def _own_calls(case: _Case) -> Iterator[Cause]:
    """What is wrong in the calls that the format did read."""
    message = case.message
    for call in message.tool_calls:
        if call.name not in case.tools:
            if case.names:
                yield _unknown(case, "unknown-tool", call.name, f"call {call.index} names", None)
        elif not call.complete:
            codes = ("truncated", "malformed")
            why = next(
                (one for one in message.diagnostics if one.call == call.index and one.code in codes), None
            )
            stripped = next(_stripped(case), None)
            if stripped is not None and stripped.code == "markers-stripped":
                yield stripped
            elif why is None or why.code == "truncated" or why.position >= len(case.text.rstrip()) - 1:
                says = f"the text ends in call {call.index}, of {call.name}"
                yield Cause("truncated", says, _TOKENS, len(case.text))
            else:
                mend = f"{_GRAMMAR}; Chat.run asks the model again"
                yield Cause("broken", f"call {call.index}, of {call.name}: {why}", mend, why.position)


def _unknown(case: _Case, code: CauseCode, name: str, what: str, position: int | None) -> Cause:
    like = _near(name, case.names)
    known = f"near {like!r}" if like else f"declared: {', '.join(case.names)}"
    return Cause(code, f"{what} {name!r}; {known}", "declare the tool, or map its name", position)


def _near(name: str, names: tuple[str, ...]) -> str | None:
    by_key = {known.lower(): known for known in names}
    key = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2]).lower().replace("-", "_")
    for tried in (key, key.replace("_", "")):
        if near := difflib.get_close_matches(tried, by_key, 1, 0.6):
            return by_key[near[0]]
    return None


def _unopened_thought(case: _Case) -> Iterator[Cause]:
    """A closer of a thought that nothing opened, where the call beside it was read."""
    opener, closer, _ = written_around(case.turn.format)
    mark = closer.strip()
    if mark and mark in case.text and not case.message.reasoning and mark not in case.turn.prefix:
        says = f"{mark!r} stands in the text, and no thought was read: the prompt wrote {opener!r}"
        yield Cause("prefix", says, f"--prefix {opener!r}, or prefix={opener!r}", case.text.find(mark))


def _prefix(case: _Case) -> Iterator[Cause]:
    """A prompt that opened a thought, and a turn that does not know it; or the other way round."""
    opener, closer, _ = written_around(case.turn.format)
    begins, ends, prefix = opener.strip(), closer.strip(), case.turn.prefix
    if not (begins and ends):
        return
    thought = case.message.reasoning
    if begins not in prefix and begins not in case.text and ends in case.text and not thought:
        if case.bound(prefix=opener).parse(case.text).reasoning:
            says = f"{ends!r} stands in the text without {begins!r}: the prompt wrote that, so no thought is read"
            mend = f"--prefix {opener!r}, or a turn of Chat.prepare, which knows its prompt"
            yield Cause("prefix", says, mend, case.text.find(ends))
    elif (
        begins in prefix
        and ends not in case.text
        and thought
        and case.reads(case.bound(prefix=""), case.text)
    ):
        says = f"the prompt opened a thought ({prefix!r}) that the text never closes; without it the call is read"
        yield Cause("prefix", says, "--prefix '', or thinking=False where the prompt is made")


def _no_tools(case: _Case) -> Iterator[Cause]:
    """A call in a turn without tools."""
    noted = next(iter(tools_not_given(case.turn, case.message)), None)
    hit = _NAMED.search(case.text)
    mend = "--tools FILE, or tools= of the turn: without tools a call is content"
    if noted is not None:
        yield Cause("tools-not-given", str(noted), mend, noted.position)
    elif hit is not None:
        name = next(filter(None, hit.groups()))
        yield Cause("tools-not-given", f"no tools were given; the text calls {name!r}", mend, hit.start())


def _in_thought(case: _Case) -> Iterator[Cause]:
    """A call within the thought, after which the answer goes on: a draft."""
    if not case.evidence:
        return
    at = case.evidence[0][1]
    region = next((one for one in case.message.regions if one.start <= at < one.end), None)
    if region is None or region.kind != "reasoning":
        return
    marks = {*case.turn.format.preserved_tokens, "<", "["} - {""}
    before = case.text[region.start : at + 1]
    starts = {region.start + hit.start() for mark in marks for hit in re.finditer(re.escape(mark), before)}
    bare = case.bound(prefix="")
    if any(case.reads(bare, case.text[start:]) for start in sorted(starts)[-_STARTS:]):
        says = f"the call at character {at} stands in the thought, and the answer goes on after it: a draft"
        yield Cause("in-thought", says, "thinking=False, or a guide with thinking_tokens (docs/guide.md)", at)


def _elsewhere(case: _Case) -> Iterator[Cause]:
    """The same text without its markers, as a whole answer, or in another format. The likeliest depends on whether a
    marker of that other format stands in the text."""
    others = readings(case.text, case.tools, case.turn.format.name)[0]
    stripped, lenient = list(_stripped(case)), list(_leniently(case))
    best = [reading for reading in others if reading.rank == others[0].rank]
    marked = any(not one.rank[0] and own_markers(one.turn.format, case.text) for one in best)
    own = [*stripped, *lenient]
    if not marked or any(cause.code == "marker-missing" for cause in stripped):
        yield from own
        own = []
    if others:
        yield _of_other_formats(case, others)
    yield from own


def _stripped(case: _Case) -> Iterator[Cause]:
    """What the format writes, without its special tokens, or without some of them."""
    gone = stripped_markers(case.turn, case.text)
    if not gone:
        return
    says = f"this is what {case.turn.format.name} writes, without {', '.join(gone)}"
    if any(token.strip() and token in case.text for token in case.turn.format.preserved_tokens):
        yield Cause("marker-missing", says, f"the model left it out: {_GRAMMAR}")
    else:
        mend = "skip_special_tokens=False where the engine writes text, or feed token ids"
        yield Cause("markers-stripped", says, mend)


def _of_other_formats(case: _Case, others: list[Reading]) -> Cause:
    """The formats that read the calls; those of the meaning that most of the best agree on."""
    best, groups = others[0], dict[str, list[str]]()
    for reading in others:
        if reading.rank == best.rank or reading.meaning == best.meaning:
            groups.setdefault(reading.meaning, []).append(reading.name)
    names = max(groups.values(), key=len)
    called = best.message.tool_calls[0].name
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    says = f"{', '.join(names[:4])}{more} read{'s' if len(names) == 1 else ''} a call of {called}"
    own = case.turn.format
    if own.features.tools:
        return Cause(
            "other-format", f"{says}; {own.name} does not", f"--format {names[0]}", None, tuple(names)
        )
    says = f"{own.name} has no calls, as the template shows no tools; {says}"
    return Cause("template-without-tools", says, f"--format {names[0]}", None, tuple(names))


def _respelt(case: _Case) -> Iterator[Cause]:
    """The format's own call, whose markers are spelt nearly as the format spells them."""
    spelling = respelt(case.turn.format, case.text)
    if spelling.steps and case.reads(case.turn, spelling.text):
        at = spelling.steps[0][1]
        says = (
            f"the markers are spelt otherwise than {case.turn.format.name} does, first before character {at}"
        )
        yield Cause("broken", says, f"{_GRAMMAR}; recover(text, tools) reads this one", at)


def _leniently(case: _Case) -> Iterator[Cause]:
    """JSON in a fence, in tags or bare, which the format reads with ``lenient_calls``."""
    if not case.turn.format.features.tools:
        return
    turn = case.bound(lenient=True)
    says = "the call is JSON in a fence, in tags or bare, which this format does not write"
    if case.reads(turn, case.text):
        yield Cause("lenient", says, "--lenient-calls, or lenient_calls=True")
    elif case.evidence:
        starts = [hit.start() for hit in _OPENERS.finditer(case.text) if hit.start() <= case.evidence[0][1]]
        for start in starts[:_STARTS]:
            within = case.text[:start].rstrip(" \n").endswith((">", "]"))
            if not within and case.reads(turn, case.text[start:]):
                more = f"{says}; text stands before it, so the answer is no call as a whole"
                mend = f"parse from character {start} with --lenient-calls"
                yield Cause("lenient", more, mend, start)
                return


def _near_miss(case: _Case) -> Iterator[Cause]:
    """Markup of the format itself that leads to no call. A stray marker in prose is none, unless a tool is named, or
    the rest of the text is JSON to the look."""
    named = bool(case.evidence or case.mentions())
    for code in ("truncated", "malformed", "stray-marker", "unwanted-call", "markup-in-value"):
        noted = case.diagnostic(code)
        if noted is None or not (named or (code == "stray-marker" and _before_json(case, noted.position))):
            continue
        if code != "truncated":
            yield Cause("broken", str(noted), _GRAMMAR, noted.position)
        elif case.message.reasoning and not case.message.content:
            yield Cause("thought-open", f"the text ends in the thought: {noted}", _TOKENS, noted.position)
        else:
            yield Cause("truncated", str(noted), _TOKENS, noted.position)


def _before_json(case: _Case, position: int) -> bool:
    """Whether a special token stands there, and from it to the end what looks like JSON."""
    rest = case.text[position:].rstrip()
    token = next((one for one in case.turn.format.preserved_tokens if rest.startswith(one)), "")
    after = rest[len(token) :].lstrip()
    return bool(token) and after.startswith(("{", "[")) and after.endswith(("}", "]", ">"))


def _beside_json(case: _Case) -> Iterator[Cause]:
    """A declared name as in a call, which no format reads: cut off, broken, or of a dialect that is not known."""
    name, at = case.evidence[0]
    rest = case.text[at:]
    brace = rest.find("{")
    report = "chatparsers report ANSWER --model MODEL: nobody here knows this dialect"
    if brace >= 0:
        try:
            json.JSONDecoder().raw_decode(rest[brace:])
        except json.JSONDecodeError as error:
            end = at + brace + error.pos
            if end >= len(case.text.rstrip()):
                says = f"the JSON beside {name} at character {at} has no end"
                yield Cause("truncated", says, _TOKENS, end)
            else:
                says = f"the JSON beside {name} is broken at character {end}: {error.msg}"
                yield Cause("broken", says, _GRAMMAR, end)
        except RecursionError:
            yield Cause("broken", f"the JSON beside {name} is nested too deep", _GRAMMAR, at + brace)
        else:
            yield Cause(
                "unread", f"{name} stands beside JSON at character {at}; no format reads it", report, at
            )
    elif _is_open(rest) or (case.text.lstrip()[:1] in ("{", "[") and case.text.count('"') % 2):
        yield Cause("truncated", f"{name} at character {at} begins what looks like a call", _TOKENS, at)
    else:
        says = f"{name} at character {at} looks like a call; no format reads it"
        yield Cause("unread", says, report, at)


def _is_open(text: str) -> bool:
    return text.count("(") > text.count(")") or text.count("<") != text.count(">")


def _undeclared(case: _Case) -> Iterator[Cause]:
    """A call of a tool that the request does not have."""
    for hit in _NAMED.finditer(case.text):
        name = next(filter(None, hit.groups()))
        if name not in case.tools:
            code: CauseCode = "unknown-tool" if _near(name, case.names) else "undeclared"
            yield _unknown(case, code, name, f"the text at character {hit.start()} calls", hit.start())
            return
