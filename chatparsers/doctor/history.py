"""Checks of how a template writes a conversation: what it loses, whether it only adds, how it writes arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..core.errors import TemplateError
from ..templates.probe.turns import common
from .report import Finding
from .subject import CLOCK, Messages, Subject, answer, call, excerpt, quoted, result, user

__all__ = ["append_only", "arguments", "loses", "whitespace"]

_PARTS = (
    ("tools", "tools", "the definitions of tools", "warning"),
    ("tool_calls", "calls", "calls", "warning"),
    ("parallel_calls", "several-calls", "more than one call in an answer", "note"),
    ("content_beside_calls", "text-beside-calls", "the text of an answer that calls", "warning"),
    ("tool_role", "results", "results of tools", "warning"),
    ("parallel_results", "several-results", "the results of two calls", "note"),
    ("result_ids", "result-ids", "which call a result answers", "note"),
    ("system_role", "system", "system messages", "warning"),
    ("late_system", "late-system", "a system message after an answer", "note"),
    ("consecutive_users", "two-users", "two messages of the user in a row", "note"),
)


def loses(model: Subject) -> Iterator[Finding]:
    """What the template drops or refuses of a conversation, and which polyfill writes it in another way."""
    for field, code, what, severity in _PARTS:
        if getattr(model.can, field):
            continue
        if field in ("parallel_calls", "content_beside_calls", "result_ids") and not model.can.tool_calls:
            continue
        yield Finding(
            f"loses-{code}",
            severity,  # type: ignore[arg-type]
            f"the template does not show {what}",
            _lost(model, field),
            "chatparsers writes it in another way (Turn.polyfills names how); other hosts lose it",
        )
    if model.format.features.reasoning and not model.can.reasoning:
        yield Finding(
            "loses-reasoning",
            "note",
            "the template does not show the reasoning of an answer, not even of the last one",
            _lost(model, "reasoning"),
            "training on the template's text teaches to answer without a thought: see docs/training.md",
        )
    if not model.can.tool_calls:
        return
    for name, sent, shown in (
        ("unicode", {"city": "Zürich 永"}, "Zürich 永"),
        ("no arguments", {}, "check_weather"),
    ):
        text = model.tried([user("Q"), call(sent)], tools=True)
        if text is None or shown not in text:
            code = "loses-unicode" if name == "unicode" else "loses-empty-arguments"
            held = "refused" if text is None else excerpt(text, max(text.find("check_weather"), 0))
            yield Finding(
                code,
                "warning",
                f"a call with {name} does not come out as it was given",
                f"given: {json.dumps(sent, ensure_ascii=False)}\nwritten: {held}",
                "write arguments with tojson(ensure_ascii=False)"
                if name == "unicode"
                else "accept an empty object",
            )
    null = model.raw([user("Q"), {**_plain_call({"city": "Oslo"}), "content": None}])
    if null is not None and "None" in null:
        yield Finding(
            "loses-null-content",
            "error",
            "content that is null is printed as the word None",
            excerpt(null, null.find("None")),
            "test message.content before it is written",
        )


def _plain_call(arguments: object) -> dict[str, Any]:
    """A call with its arguments as an object."""
    message = call(json.dumps(arguments))
    message["tool_calls"][0]["function"]["arguments"] = arguments
    return message


def _lost(model: Subject, field: str) -> str:
    """A conversation with that part, as the template writes it."""
    conversations: dict[str, tuple[Messages, str]] = {
        "tool_calls": ([user("Q"), call({"city": "Oslo"})], "Oslo"),
        "parallel_calls": ([user("Q"), call({"city": "Oslo"}, {"city": "Rome"})], "Rome"),
        "content_beside_calls": ([user("Q"), call({"city": "Oslo"}, content="LookThere")], "LookThere"),
        "tool_role": ([user("Q"), call({"city": "Oslo"}), result("ColdThere")], "ColdThere"),
        "system_role": ([{"role": "system", "content": "BeBrief"}, user("Q")], "BeBrief"),
        "reasoning": ([user("Q"), answer("A", "HmmThere")], "HmmThere"),
        "late_system": (
            [user("Q"), answer("A"), {"role": "system", "content": "BeBrief"}, user("R")],
            "BeBrief",
        ),
        "consecutive_users": ([user("FirstThing"), user("SecondThing")], "FirstThing"),
        "tools": ([user("Q")], "check_weather"),
    }
    if field not in conversations:
        return ""
    messages, word = conversations[field]
    text = model.tried(messages, tools=True)
    if text is None:
        return f"refused: {word}"
    return f"{quoted(word)} is missing in {quoted(text[-120:])}" if word not in text else ""


def append_only(model: Subject) -> Iterator[Finding]:
    """Whether what an engine holds (prompt and answer) is a prefix of the next prompt, for each shape of an answer."""
    question = [user("FirstQuestion")]
    shapes: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("an answer, then a user's message", answer("FirstAnswer"), user("NextQuestion")),
    ]
    if model.can.reasoning:
        shapes.append(
            ("a thought and an answer, then a user's message", answer("A", "Hmm"), user("NextQuestion"))
        )
    if model.can.tool_calls and model.can.tool_role:
        shapes.append(("a call, then its result", call({"city": "Oslo"}), result("Cold")))
        if model.can.reasoning_with_calls:
            shapes.append(
                (
                    "a thought and a call, then its result",
                    call({"city": "Oslo"}, reasoning="Hmm"),
                    result("Cold"),
                )
            )
    for name, said, following in shapes:
        held = _held(model, question, said)
        rendered = model.tried([*question, said, following], generate=True, tools=True)
        if held is None or rendered is None:
            continue
        prompt, text = held
        at = common(text, rendered)
        if at >= len(text):
            continue
        where = (
            "the generation prompt is not in the history"
            if at < len(prompt)
            else "the answer is written anew"
        )
        lost = 100 * (len(text) - at) // max(len(text), 1)
        yield Finding(
            "not-append-only",
            "warning",
            f"{name}: {where}, so an engine's cache is valid up to that place only",
            f"held:     {excerpt(text, at)}\nrendered: {excerpt(rendered, at)}\n"
            f"lost: the last {len(text) - at:,} of {len(text):,} characters ({lost} %) of this short conversation",
            "keep the ids that were sampled (Chat.rollout), or write history as it was generated",
        )


def _held(model: Subject, history: Messages, said: dict[str, Any]) -> tuple[str, str] | None:
    """The prompt, and the prompt with the answer that an engine holds after it; None if the template refuses."""
    try:
        shown = model.tools if model.can.tools else None
        prompt = model.template.render(history, tools=shown, add_generation_prompt=True, strftime_now=CLOCK)
        start, wire = model.template.assistant_turn(said, history=history, tools=shown, strftime_now=CLOCK)
    except TemplateError:
        return None
    return prompt, prompt + wire[max(len(prompt) - len(start), 0) :] if len(start) <= len(
        prompt
    ) else start + wire


def arguments(model: Subject) -> Iterator[Finding]:
    """Whether arguments come out as they were given: spaces and order, no escape twice, text that is no JSON."""
    if not model.can.tool_calls:
        return
    given = '{"days":2,"city":"Oslo"}'
    text = model.tried([user("Q"), call(given)], tools=True)
    if text is not None and given not in text and '"city"' in text:
        at = text.rfind('"city"')
        yield Finding(
            "arguments-respelt",
            "note",
            "arguments are dumped anew, so the history is not what the model sampled",
            f"given:   {given}\nwritten: {excerpt(text, at, 40, 40)}",
            "write the arguments as text where they are text; chatparsers compares messages, so rollouts keep the ids",
        )
    plain = model.raw([user("Q"), call(given)])
    if plain is None:
        yield Finding(
            "arguments-text-refused",
            "note",
            "the template refuses arguments as text, which is what OpenAI's API has",
            given,
            "chatparsers gives it an object; other hosts must parse the text first",
        )
    elif '\\"city' in plain:
        yield Finding(
            "arguments-escaped-twice",
            "warning",
            "arguments that are text, as in OpenAI's API, are printed as JSON within JSON",
            excerpt(plain, plain.find('\\"city')),
            "write them as they are if they are a string; chatparsers gives the template an object",
        )
    broken = model.tried([user("Q"), call("{bad")], tools=True)
    if broken is not None and "{bad" not in broken:
        yield Finding(
            "arguments-lost",
            "warning",
            "arguments that are no JSON vanish",
            excerpt(broken, max(broken.find("check_weather"), 0)),
            "write what the model wrote, so that it sees its mistake",
        )


def whitespace(model: Subject) -> Iterator[Finding]:
    """Whether white space at the ends of a text stays."""
    texts: list[tuple[str, Messages]] = [("a user's text", [user("  needle \n ")])]
    if model.can.tool_calls and model.can.tool_role:
        texts.append(("a result", [user("Q"), call({"city": "Oslo"}), result("  needle \n ")]))
    for what, messages in texts:
        text = model.tried(messages, tools=True)
        if (
            text is None
            or "needle" not in text
            or "  needle \n " in text
            or json.dumps("  needle \n ")[1:-1] in text
        ):
            continue
        yield Finding(
            "whitespace-trimmed",
            "note",
            f"the white space around {what} is trimmed",
            f"given: {quoted('  needle ' + chr(10) + ' ')}\nwritten: {excerpt(text, text.find('needle'), 12, 16)}",
            "if the text is code or a table, its first line loses its indent",
        )
