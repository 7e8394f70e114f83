"""Checks of how an answer begins and ends: the stop in all files, the generation prompt, what a prompt invents."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.errors import TemplateError
from .report import Finding
from .subject import CLOCK, Subject, answer, call, excerpt, quoted, result, user

__all__ = ["ends", "prompt"]


def ends(model: Subject) -> Iterator[Finding]:
    """Whether the stop is the same in the template and in all files, is one token, and stands in the history."""
    files, fmt = model.chat.files, model.format
    written = model.template.end_of_turn(fmt)
    listed = {files.eos_token} if files.eos_token else set()
    texts: dict[int, str] = {}
    if model.tokenizer is not None:
        texts = {id: model.tokenizer.id_to_token(id) or f"id {id}" for id in files.eos_ids}
        listed |= set(texts.values())
    stops = [stop for stop in written if stop.strip()]
    if stops and listed and not listed & {stop.strip() for stop in stops}:
        yield Finding(
            "stop-differs",
            "error",
            "the stop that the template writes is not one that the files name as an end",
            f"template: {', '.join(map(quoted, stops))}\neos_token: {files.eos_token!r}\n"
            f"eos_token_id: {list(files.eos_ids)} {sorted(texts.values()) if texts else ''}",
            f"add the id of {stops[0].strip()} to eos_token_id in generation_config.json",
        )
    elif files.eos_token and texts and files.eos_token not in texts.values():
        yield Finding(
            "stop-config-differs",
            "note",
            "tokenizer_config.json and generation_config.json name different ends",
            f"eos_token: {files.eos_token!r}\neos_token_id: {sorted(texts.values())}",
            "give engines both (Turn.stop_ids has all)",
        )
    if model.tokenizer is not None:
        for stop in stops:
            ids = model.ids(stop.strip())
            if len(ids) != 1:
                yield Finding(
                    "stop-several-tokens",
                    "warning",
                    f"the stop {stop.strip()!r} is not one token of this tokenizer",
                    f"{stop.strip()} → {ids}",
                    "engines must stop on text; name it as a stop text",
                )
    if not stops:
        history = model.tried([user("Q"), answer("FirstAnswer"), user("R")])
        where = "" if history is None else excerpt(history, history.find("FirstAnswer"))
        yield Finding(
            "stop-missing",
            "warning",
            "the template writes no end behind an answer in the history",
            where,
            "write the end token behind the content: else training does not teach the model to stop",
        )


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
            "give the variable in template_kwargs" if undefined else "",
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


def roles(model: Subject) -> list[dict[str, object]]:
    """A conversation with every role that the template shows."""
    messages: list[dict[str, object]] = []
    if model.can.system_role:
        messages.append({"role": "system", "content": "BeBrief"})
    messages += [user("Q")]
    if model.can.tool_calls and model.can.tool_role:
        messages += [call({"city": "Oslo"}), result("Cold")]
    return [*messages, answer("A"), user("R"), answer("B")]
