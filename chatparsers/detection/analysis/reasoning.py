"""Phase one: the markers around reasoning and content, and the end of the turn.

Everything is found in the texts before and after words that were asked for. The opener of reasoning is the text between
the role's header and the reasoning, whether the prompt or the model writes it. If there is none, and every answer has
the closer, it is the tag that the closer closes. The closer is the text between reasoning and content, or the text that
the prompt writes after the opener if thinking is off, or the text that the template writes for an empty thought.
Content has markers of its own if a part of the turn's end follows only content, and not a call or a user's message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...templates.probe.differences import is_marker, shared_end, shared_start, units
from ..limits import Limit
from .found import Analysis, ContentMarkers, ReasoningMarkers, Refused
from .probes import ASKED, Asker, Call, Rendering

_THINKING = (None, True, False)


class _Texts(NamedTuple):
    """The texts around the words of answers. ``befores``: before content, without reasoning. ``opener``, ``closers``
    and ``between``: before reasoning; after it, at the end or before a call; and between it and content. ``tails``:
    what the prompts write after the header, with thinking as usual, on and off."""

    header: str
    befores: list[str]
    opener: str
    closers: list[str]
    between: str
    tails: dict[bool | None, str]


def one_call() -> tuple[Call, ...]:
    """The call that most questions ask for."""
    return (Call(ASKED.names[0], {ASKED.keys[0]: ASKED.texts[0]}, ASKED.ids[0]),)


def turn_of(answer: Rendering, header: str) -> str:
    """The assistant's turn after its header, whether the prompt or the model wrote it."""
    written = answer.opening[len(header) :] if answer.opening.startswith(header) else ""
    return written + answer.wire


def without_calls(asker: Asker) -> Analysis:
    """The analysis of answers with and without reasoning, thinking on and off. Raises `Refused` if no answer is
    shown."""
    answers = [
        found
        for thinking in _THINKING
        if (found := asker.shown("an answer", content=ASKED.content, thinking=thinking))
    ]
    if not answers:
        raise Refused("the template shows no answer's text")
    thoughts, refused = list(_thoughts(asker)), []
    if thoughts and ASKED.content in thoughts[0].wire.partition(ASKED.reasoning)[0]:
        thoughts, refused = [], ["reasoning: it stands after the answer's text"]
    calling = asker.shown("a call", calls=one_call())
    header = asker.header()
    befores = [turn_of(answer, header).partition(ASKED.content)[0] for answer in answers]
    after = answers[0].wire.partition(ASKED.content)[2]
    end = _end(after, calling, asker.user_turn())
    close = after[: len(after) - len(end)].rstrip() if end else ""
    if not close:
        end = after
    opener, closers, between = _around(thoughts, header)
    openings = ((thinking, asker.opening(thinking)) for thinking in _THINKING)
    prompts = {thinking: text for thinking, text in openings if text is not None}
    usual = prompts.get(None, "").strip()
    if usual and usual in opener:  # the prompts with thinking on and off differ before the role too
        opener = opener.partition(usual)[2]
    tails = {key: text[len(header) :] for key, text in prompts.items() if text.startswith(header)}
    texts = _Texts(header, befores, opener, closers, between, tails)
    content, block = _content(texts, close, prompts.get(None, ""))
    if thoughts and thoughts[0].content and not content.open:
        content = _beside_reasoning(thoughts[0], end, between, closers) or content
    reasoning = _reasoning(texts, thoughts, content, block, refused)
    if reasoning is not None and block and not content.close:
        # In a turn of blocks, one marker may close each block, also the last one before the end.
        close, _, rest = end.strip().partition(reasoning.close.strip())
        if not close and rest:
            content, end = replace(content, close=reasoning.close.strip()), rest
    limits: list[Limit] = []
    if reasoning is None:  # what is shown of it is read as content
        limits, refused = [Limit("reasoning", line.partition(": ")[2]) for line in refused], []
    return Analysis(
        "reasoning" if reasoning else "content",
        header,
        reasoning,
        content,
        block=block,
        end=end,
        stops=stops_of(end, [answer.wire for answer in asker.answers]),
        refused=tuple(refused),
        limits=tuple(limits),
    )


def stops_of(end: str, turns: Sequence[str] = ()) -> tuple[str, ...]:
    """The texts that end a turn: the first marker that the template writes after it. If this marker also is inside
    of ``turns``, which all end so, the tag that it begins, and the marker after that."""
    core = end.strip()
    if not core:
        return ()
    found = units(core)
    stop = found[0] if is_marker(found[0]) else core.split()[0]
    also: tuple[str, ...] = ()
    inside = [turn[: -len(end)] for turn in turns if turn.endswith(end)]
    for number, unit in enumerate(found[1:], 2):
        if not any(stop in turn for turn in inside):
            break
        if is_marker(unit):
            stop = "".join(found[:number])
            also = tuple(unit for unit in found[number : number + 1] if is_marker(unit))
    before = end[: len(end) - len(end.lstrip())]
    return (before + stop, stop, *also) if before else (stop, *also)


def _thoughts(asker: Asker) -> list[Rendering]:
    """Turns in which the reasoning shows, those with content first."""
    found = []
    for thinking in (True, None):
        for what, content, calls in (
            ("an answer after reasoning", ASKED.content, ()),
            ("a call after reasoning", "", one_call()),
            ("reasoning alone", "", ()),
        ):
            answer = asker.shown(
                what, content=content, reasoning=ASKED.reasoning, calls=calls, thinking=thinking
            )
            if answer is not None:
                found.append(answer)
        if found:
            break
    return found


def _end(after: str, calling: Rendering | None, user: tuple[str, str] | None) -> str:
    """The end of the turn: the part of the text after content that also follows a call or a user's text."""
    others = [calling.wire] if calling is not None else []
    if user is not None:
        others.append(user[1].rstrip())
    for other in others:
        for text in (after, after.rstrip()):
            end = shared_end(text, other)
            if end.strip():
                return after[len(text) - len(end) :]
    return after


def _around(thoughts: list[Rendering], header: str) -> tuple[str, list[str], str]:
    """The texts before reasoning; after it, at the end or before a call; and between it and content."""
    opener, closers, between = "", [], ""
    for answer in thoughts:
        before, _, after = turn_of(answer, header).partition(ASKED.reasoning)
        opener = before if answer is thoughts[0] else opener
        if answer.content:
            between = after.partition(ASKED.content)[0]
        else:
            closers.append(after)
    return opener, closers, between


def _content(texts: _Texts, close: str, prompt: str) -> tuple[ContentMarkers, str]:
    """The markers around content, and the text that opens a later block of the turn."""
    header, befores, opener, closers, between, _ = texts
    own = opener.strip()
    for before in sorted(befores, key=len):
        text = before.strip()
        if not text:
            break
        if own and text.startswith(own):
            continue
        if between and not between.strip().endswith(text):
            continue
        if between.strip() == text:
            continue  # the closer of an empty thought
        if not between and not close and text in header + prompt:
            continue
        block = header.strip() if between.rstrip().endswith(header.strip() + before.rstrip()) else ""
        return ContentMarkers(before, close), block
    if befores and all(befores) and not any(before.strip() for before in befores):
        if between.strip() and header.strip() and between.endswith(header.strip() + befores[0]):
            return ContentMarkers(befores[0], close), header.strip()  # a bare role opens content
        return ContentMarkers(lead=befores[0]), ""
    if close and between and closers:
        rest = between[len(shared_start(between, *closers)) :]
        if rest.strip() and rest.strip() != between.strip():
            return ContentMarkers(rest.lstrip(), close), ""
    if close:  # nothing opens it, or it cannot be told from the end of reasoning
        raise Refused(f"content is closed by {close!r}, and nothing tells what opens it")
    return ContentMarkers(), ""


def _beside_reasoning(answer: Rendering, end: str, between: str, closers: list[str]) -> ContentMarkers | None:
    """The markers that content has only after reasoning."""
    after = answer.wire.partition(ASKED.content)[2]
    if not after.endswith(end) or after == end or not closers:
        return None
    close = after[: len(after) - len(end)].strip()
    opener = between[len(shared_start(between, closers[0])) :]
    return ContentMarkers(opener, close) if close and opener.strip() else None


def _reasoning(
    texts: _Texts, thoughts: list[Rendering], content: ContentMarkers, block: str, refused: list[str]
) -> ReasoningMarkers | None:
    """The markers of reasoning, from the renderings that show it, or from the prompts with thinking on and off."""
    _, befores, opener, closers, between, tails = texts
    if thoughts:
        close = between
        wrapped = block + content.open
        if wrapped and close.rstrip().endswith(wrapped.rstrip()):
            close = close.rstrip()[: -len(wrapped.rstrip())]
        if not close.strip():
            close = _closer(opener, closers, [*befores, *tails.values()], content)
        if not close.strip():
            refused.append("reasoning: nothing shows what closes it")
            return None
        bare = any(text.strip() == close.strip() for text in (*befores, *tails.values()))
        left_open = any(
            answer.calls and close.strip() not in answer.wire.partition(ASKED.reasoning)[2]
            for answer in thoughts
        )
        if opener.strip():
            return ReasoningMarkers(opener, close, left_open=left_open, bare_close=bare)
        core = close.strip()
        guess = re.sub(r"^([<\[]\|?)/", r"\1", core)  # a model may still write the opener
        if guess != core and all(core in before for before in befores):
            return ReasoningMarkers(guess, close, always=True)
        refused.append(f"reasoning: nothing opens it, and {close!r} closes it")
        return None
    return _from_prompts(tails, befores, content, refused)


def _closer(opener: str, closers: list[str], texts: list[str], content: ContentMarkers) -> str:
    """The text that closes an empty thought, if it also follows reasoning."""
    for text in texts:
        if opener.strip() and text.strip().startswith(opener.strip()):
            rest = text.strip()[len(opener.strip()) :]
            if content.open and rest.endswith(content.open.rstrip()):
                rest = rest[: -len(content.open.rstrip())]
            if rest.strip() and all(rest.strip() in after for after in closers):
                return rest
    return ""


_TAG = re.compile(r"(?P<open>[<\[]\|?)(?P<name>[^<>\[\]/|\s]+)(?P<close>\|?[>\]])")


def _from_prompts(
    tails: dict[bool | None, str], befores: list[str], content: ContentMarkers, refused: list[str]
) -> ReasoningMarkers | None:
    """Reasoning that no message shows: the prompts open it, and close it if thinking is off."""
    on = min((text for text in tails.values() if text.strip()), key=len, default="")
    if not on or on.strip() == content.open.strip():
        return None
    if len(set(tails.values())) > 1:
        for text in (*tails.values(), *befores):
            if text.strip().startswith(on.strip()) and len(text.strip()) > len(on.strip()):
                close = text.strip()[len(on.strip()) :]
                bare = any(other.strip() == close.strip() for other in (*tails.values(), *befores))
                return ReasoningMarkers(on, close, bare_close=bare)
    last = units(on.strip())[-1]
    tag = _TAG.fullmatch(last)
    if tag is not None and last == on.strip():
        close = f"{tag['open']}/{tag['name']}{tag['close']}"
        bare = any(other.strip() == close for other in (*tails.values(), *befores))
        refused.append(f"reasoning: no rendering shows what closes {last}: taken to be {close}")
        if on.endswith("\n"):  # who opens with a line break closes with one, and leaves a line free
            close = f"\n{close}\n\n"
        return ReasoningMarkers(on, close, bare_close=bare)
    return None
