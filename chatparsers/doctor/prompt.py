"""The check of a prompt: the generation prompt against the history, and what a prompt invents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..errors import TemplateError
from ..templates.jinja.environment import watched
from .report import Finding
from .subject import CLOCK, HELLO, SYSTEM, Messages, Subject, answer, call, excerpt, quoted, result, user

_VARIABLE = re.compile(r"'(\w+)' is undefined")
_GIVEN = re.compile(
    r"messages|tools|documents|functions|datetime|add_generation_prompt|continue_\w+|\w+_token"
)
"""The variables that hosts give."""
_TWICE = re.compile(r"(<[^<>\s]{1,40}>|\[[^\[\]\s]{1,40}\])\1")
"""A marker at the beginning of a text, twice."""
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|quot|apos|amp|lt|gt);")
_SENTENCE = re.compile(r"\S+(?: +\S+)+[.!?]\W*|\S+(?: +\S+){3,}")


def prompt(model: Subject) -> Iterator[Finding]:
    """Whether the prompt is what the history has, and invents nothing: thoughts, bos, a system text, dates."""
    if model.refusal is not None:
        undefined = _VARIABLE.search(str(model.refusal))
        yield Finding(
            "prompt-unknown-variable" if undefined else "prompt-refused",
            "error",
            f"the template refuses the simplest conversation: {model.refusal}",
            quoted("Hello"),
            "give the variable in template_kwargs" if undefined else "see the error",
        )
        return
    yield from _unknown(model)
    text = model.render(HELLO, generate=True)
    yield from _begin(model, text)
    yield from _generation(model, text)
    before = text[: text.find("Hello")]
    invented = [line.strip() for line in before.splitlines() if _SENTENCE.search(line)]
    if invented:
        yield Finding(
            "system-invented",
            "note",
            "the template writes a system text that nobody gave",
            quoted(invented[0][:160]),
            "give a system message of your own to replace it",
        )
    yield from _date(model)
    yield from _escapes(model)


def _escapes(model: Subject) -> Iterator[Finding]:
    """Text that comes out as HTML, such as ``&#34;`` for a quotation mark."""
    marked = 'Say "this" & <that>, it\'s so'
    for messages in ([user(marked)], [user("Q"), call({"city": marked}), result(marked)]):
        try:
            text = model.render(messages)
        except TemplateError:
            continue
        found = _ENTITY.search(text)
        if found is not None:
            yield Finding(
                "prompt-escapes-html",
                "error",
                "the template writes text as HTML has it",
                excerpt(text, found.start()),
                "leave out the filter e (escape, forceescape), or write | safe",
            )
            return


def _begin(model: Subject, text: str) -> Iterator[Finding]:
    """A bos token that comes twice, in the prompt or in its ids."""
    bos = model.template.bos_token
    if (bos and text.startswith(bos * 2)) or _TWICE.match(text):
        yield Finding(
            "bos-twice", "error", "the prompt begins with two bos tokens", excerpt(text, 0), "write it once"
        )
    elif bos and text.startswith(bos) and model.tokenizer is not None:
        ids = list(model.tokenizer.encode(text).ids)
        first = model.tokenizer.token_to_id(bos)
        if first is not None and ids[:2] == [first, first]:
            yield Finding(
                "bos-twice",
                "warning",
                "the tokenizer adds a bos token to a prompt that has one",
                f"{excerpt(text, 0)} → {ids[:4]}",
                "encode with add_special_tokens=False, as chatparsers does",
            )


def _generation(model: Subject, text: str) -> Iterator[Finding]:
    """A generation prompt that is missing, or is not what the history has before an answer."""
    plain = model.generation_prompt
    history = model.tried([*HELLO, answer("FirstAnswer"), user("R")])
    if model.unasked:
        yield Finding(
            "no-generation-prompt",
            "warning",
            f"the history writes {quoted(model.unasked)} before an answer, and no generation prompt does: the model "
            "must write it itself, and a parser finds it in the answer",
            excerpt(history or "", (history or "").find("FirstAnswer")),
            "write it at the end, under {% if add_generation_prompt %}; all else was checked with it",
        )
    elif not plain:
        yield Finding(
            "no-generation-prompt",
            "note",
            "the template has no generation prompt",
            excerpt(text, len(text)),
            "nothing, if the model was trained so: usual where the user's end marks the answer",
        )
    if plain and history is not None and plain not in history and plain.strip():
        at = history.find("FirstAnswer")
        yield Finding(
            "prompt-not-in-history",
            "note",
            "what the generation prompt writes is not in the history of a finished answer",
            f"generation prompt: {quoted(plain)}\nhistory: {excerpt(history, at, 40, 20)}",
            "older answers look other than the model was asked to write them",
        )


def _date(model: Subject) -> Iterator[Finding]:
    """A prompt that is another one tomorrow."""
    for where, messages, tools in _KINDS:
        now, later = (
            model.tried(messages, generate=True, tools=tools, strftime_now=clock)
            for clock in (CLOCK, lambda pattern: "needledate")
        )
        if later is not None and later != now:
            yield Finding(
                "date",
                "note",
                f"the prompt holds today's date{where}, so it is not the same tomorrow",
                excerpt(later, max(later.find("needledate"), 0)),
                "give the time with prepare(now=…), and keep it for a conversation",
            )
            return


_KINDS: list[tuple[str, Messages, bool]] = [
    ("", HELLO, False),
    (", where tools are offered", HELLO, True),
    (", beside a system message", [SYSTEM, *HELLO], False),
]
"""Kinds of prompts: what is special, the messages, and whether tools are offered."""
_CALLED = [*HELLO, call({"city": "Oslo"}), result("Cold")]


def _unknown(model: Subject) -> Iterator[Finding]:
    """Variables that the template writes or needs, and that no host gives."""
    names = [name for name in model.template.variables if not _GIVEN.fullmatch(name)]
    for where, messages, tools in [*_KINDS, (", after a call", _CALLED, True)]:
        written: set[str] = set()
        try:
            offered = model.tools if tools else None  # also those that a missing variable keeps out
            given: dict[str, Any] = {"strftime_now": CLOCK, **watched(names, written)}
            model.template.render(messages, tools=offered, add_generation_prompt=True, **given)
        except TemplateError as error:
            found = _VARIABLE.search(str(error))
            if found is None or found[1] not in names:
                continue
            name, how, witness = found[1], "needs", str(error)
        else:
            if not written:
                continue
            name, how, witness = min(written), "writes", ", ".join(sorted(written))
        yield Finding(
            "prompt-unknown-variable",
            "warning",
            f"the template {how} the variable {name!r}, which no host gives{where}",
            witness,
            "give the variable in template_kwargs",
        )
        return
