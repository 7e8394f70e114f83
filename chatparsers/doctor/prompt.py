"""The check of a prompt: the generation prompt against the history, and what a prompt invents."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.errors import TemplateError
from .report import Finding
from .subject import CLOCK, Subject, answer, excerpt, quoted, user

__all__ = ["prompt"]


_VARIABLE = re.compile(r"'(\w+)' is undefined")


def prompt(model: Subject) -> Iterator[Finding]:
    """Whether the prompt is what the history has, and invents nothing: thoughts, bos, a system text, dates."""
    hello = [user("Hello")]
    try:
        text = model.render(hello, generate=True)
    except TemplateError as error:
        undefined = _VARIABLE.search(str(error))
        yield Finding(
            "prompt-unknown-variable" if undefined else "prompt-refused",
            "error",
            f"the template refuses the simplest conversation: {error}",
            quoted("Hello"),
            "give the variable in template_kwargs" if undefined else "see the error",
        )
        return
    bos = model.template.bos_token
    if bos and text.startswith(bos * 2):
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
    plain = model.template.generation_prompt(hello, strftime_now=CLOCK)
    history = model.tried([*hello, answer("FirstAnswer"), user("R")])
    if not plain:
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
    before = text[: text.find("Hello")]
    invented = [line.strip() for line in before.splitlines() if len(line.split()) >= 4]
    if invented:
        yield Finding(
            "system-invented",
            "note",
            "the template writes a system text that nobody gave",
            quoted(invented[0][:160]),
            "give a system message of your own to replace it",
        )
    later = model.tried(hello, generate=True, strftime_now=lambda pattern: "needledate")
    if later is not None and later != text:
        yield Finding(
            "date",
            "note",
            "the prompt holds today's date, so it is not the same tomorrow",
            excerpt(later, max(later.find("needledate"), 0)),
            "give the time with prepare(now=…), and keep it for a conversation",
        )
