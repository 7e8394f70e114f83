"""Checks of how a template writes a conversation: what it loses, whether it only adds, how it writes arguments."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import ChatParsersError, TemplateError
from ..templates.probe.turns import common
from ..templates.rewrite.outline import BESIDE_RESULT
from .report import Finding
from .subject import CLOCK, SYSTEM, Messages, Subject, answer, call, excerpt, quoted, result, user

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

_SHOWN: dict[str, tuple[Messages, str]] = {
    "tool_calls": ([user("Q"), call({"city": "Oslo"})], "Oslo"),
    "parallel_calls": ([user("Q"), call({"city": "Oslo"}, {"city": "Rome"})], "Rome"),
    "content_beside_calls": ([user("Q"), call({"city": "Oslo"}, content="LookThere")], "LookThere"),
    "tool_role": ([user("Q"), call({"city": "Oslo"}), result("ColdThere")], "ColdThere"),
    "system_role": ([SYSTEM, user("Q")], "BeBrief"),
    "reasoning": ([user("Q"), answer("A", "HmmThere")], "HmmThere"),
    "late_system": (
        [user("Q"), answer("A"), SYSTEM, user("R")],
        "BeBrief",
    ),
    "consecutive_users": ([user("FirstThing"), user("SecondThing")], "FirstThing"),
    "tools": ([user("Q")], "check_weather"),
    "result_ids": ([user("Q"), call({"city": "Oslo"}), result("ColdThere")], "checkid00"),
    "parallel_results": (
        [user("Q"), call({"city": "Oslo"}, {"city": "Rome"}), result("ColdThere"), result("WarmThere", 1)],
        "WarmThere",
    ),
}
"""For each part that may be lost: a conversation that has it, and a word of it."""


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
            f"{_stand_in(model, field)}; other hosts lose it",
        )
    yield from _elsewhere(model)
    yield from _shapes(model)
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
    text = model.tried([user("Q"), call({"city": "Zürich 永"})], tools=True)
    if text is None or "Zürich 永" not in text:
        yield Finding(
            "loses-unicode",
            "warning",
            "letters beyond ASCII do not come out as they were given",
            f"given: Zürich 永\nwritten: {_written(text)}",
            "write arguments with tojson(ensure_ascii=False)",
        )
    for code, what, sent in (
        ("loses-empty-arguments", "no arguments", {}),
        ("loses-escapes", "quotes, a backslash and a line's end", {"city": 'a"b\\c\nd'}),
    ):
        wire = _wire(model, call(sent))
        read = None if wire is None else _read_back(model, wire)
        if read == sent or (
            read is None and wire is not None and _read_back(model, _wire(model, call({"city": "a"}))) is None
        ):
            continue  # equal, or the format reads no call of this template, which another check says
        yield Finding(
            code,
            "warning",
            f"a call with {what} does not come out as it was given",
            f"given: {json.dumps(sent)}\nwritten: {_written(wire)}",
            "write each value so that the model's own reader gives it back",
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


_CALLED = [user("Q"), call({"city": "Oslo"}), result("ColdThere")]
_SECOND = [user("Q"), answer("A"), user("R")]
_ELSEWHERE: tuple[tuple[str, str, str, Messages, str], ...] = (
    ("system_role", "system", "system messages beside tools", [SYSTEM, user("Q")], "BeBrief"),
    ("tool_calls", "calls", "the calls of older turns", [*_CALLED, answer("A"), user("R")], "Oslo"),
    ("tool_role", "results", "the results of older turns", [*_CALLED, answer("A"), user("R")], "ColdThere"),
    ("tools", "tools", "the definitions of tools beside a system message", [SYSTEM, user("Q")], ""),
    ("tools", "tools", "the definitions of tools at a second question", _SECOND, ""),
    ("tools", "tools", "the definitions of tools after a result", _CALLED, ""),
)
"""Where a part may be lost that the template shows elsewhere: the part, the code, what is lost, a conversation, and a
word of it. Without a word, the rendering with tools must be another one than that without."""


def _elsewhere(model: Subject) -> Iterator[Finding]:
    """What the template shows in a short conversation, and not in another one."""
    lost: set[str] = set()
    for field, code, what, messages, word in _ELSEWHERE:
        text = model.tried(messages, tools=True)
        if not getattr(model.can, field) or code in lost or text is None:
            continue
        if word not in text or (not word and text == model.tried(messages)):
            lost.add(code)
            yield Finding(
                f"loses-{code}",
                "warning",
                f"the template does not show {what}",
                f"{quoted(word or 'check_weather')} is missing in {quoted(text[-160:])}",
                "write them wherever they are given",
            )


def _written(text: str | None) -> str:
    return "refused" if text is None else excerpt(text, max(text.find("check_weather"), 0))


def _wire(model: Subject, message: dict[str, Any]) -> str | None:
    """What the model would have written of an answer; None if the template refuses it."""
    shown = model.answered(message)
    return None if shown is None else shown[1]


def _read_back(model: Subject, wire: str | None) -> Any:
    """The arguments of the one call in a text; None if it is not read as one."""
    if wire is None:
        return None
    message = model.format.bind(tools=model.tools).parse(wire)
    if len(message.tool_calls) != 1 or not message.tool_calls[0].complete:
        return None
    return json.loads(message.tool_calls[0].arguments)


def _shapes(model: Subject) -> Iterator[Finding]:
    """Tools as people write them: without parameters, without a description, with nested ones."""
    if not model.can.tools:
        return
    nested = {
        "type": "object",
        "properties": {"where": {"type": "object", "properties": {"deep": {"type": "string"}}}},
    }
    for what, function, word in (
        ("without parameters", {"name": "bare_tool", "description": "Does it"}, "bare_tool"),
        (
            "without a description",
            {"name": "bare_tool", "parameters": {"type": "object", "properties": {}}},
            "bare_tool",
        ),
        (
            "with nested parameters",
            {"name": "bare_tool", "description": "Does it", "parameters": nested},
            "deep",
        ),
    ):
        tool = {"type": "function", "function": function}
        try:
            text = model.template.render_unshaped([user("Q")], tools=[tool], strftime_now=CLOCK)
        except TemplateError as error:
            text, said = "", str(error)
        else:
            said = quoted(text[:160])
        if word not in text:
            yield Finding(
                "loses-tool-shape",
                "note",
                f"a tool {what} is {'not shown whole' if text else 'refused'}",
                f"{json.dumps(tool)}\n{said}",
                "chatparsers fills in what is missing; other hosts must give tools in full",
            )


def _plain_call(arguments: object) -> dict[str, Any]:
    """A call with its arguments as an object."""
    message = call(json.dumps(arguments))
    message["tool_calls"][0]["function"]["arguments"] = arguments
    return message


def _stand_in(model: Subject, field: str) -> str:
    """Which polyfills write the part instead."""
    found = _SHOWN[field]
    if field == "result_ids":
        return "chatparsers gives the results in the order of the calls"
    return _prepared(model, found[0], tools=field != "system_role")


def _prepared(model: Subject, messages: Messages, tools: bool = True) -> str:
    """With which polyfills messages are written."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            turn = model.chat.prepare(
                messages, tools=model.tools if tools else None, add_generation_prompt=False
            )
    except ChatParsersError as error:
        return f"chatparsers refuses it: {error}"
    used = ", ".join(turn.polyfills)
    return f"chatparsers writes it with {used}" if used else "chatparsers writes it as the template does"


def _lost(model: Subject, field: str) -> str:
    """A conversation with that part, as the template writes it."""
    messages, word = _SHOWN[field]
    text = model.tried(messages, tools=True)
    if text is None:
        return f"refused: {word}"
    if word in text:
        return f"not in its place: {excerpt(text, text.find(word))}"
    return f"{quoted(word)} is missing in {quoted(text[-120:])}"


def append_only(model: Subject) -> Iterator[Finding]:
    """Whether what an engine holds (prompt and answer) is a prefix of the next prompt, for each shape of an answer."""
    changed: set[str] = set()
    for name, same, history, said, following in _steps(model):
        held = _prompt_and_answer(model, history, said)
        rendered = model.tried([*history, said, following], generate=True, tools=True)
        if held is None or rendered is None or same in changed:
            continue
        prompt, text = held
        at = common(text, rendered)
        if at >= len(text):
            continue
        changed.add(name)
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


def _steps(model: Subject) -> Iterator[tuple[str, str, Messages, dict[str, Any], dict[str, Any]]]:
    """Steps of a conversation: a name, that of a step whose fault would be the same, what is before the answer, the
    answer, and what follows."""
    question, then = [user("FirstQuestion")], user("NextQuestion")
    said, called = answer("FirstAnswer"), call({"city": "Oslo"})
    short = "an answer, then a user's message"
    yield short, "", question, said, then
    if model.can.reasoning:
        yield "a thought and an answer, then a user's message", "", question, answer("A", "Hmm"), then
    if model.can.tool_calls and model.can.tool_role:
        yield "a call, then its result", "", question, called, result("Cold")
        if model.can.reasoning_with_calls:
            thought = call({"city": "Oslo"}, reasoning="Hmm")
            yield "a thought and a call, then its result", "", question, thought, result("Cold")
        after = [*question, called, result("Cold")]
        yield "an answer after a result, then a user's message", short, after, said, then
    long = [message for turn in range(8) for message in (user(f"Question {turn}"), answer(f"Answer {turn}"))]
    yield "an answer in a long conversation, then a user's message", short, [*long, *question], said, then


_ADDED: Mapping[str, dict[str, Any]] = {
    "a user's text": {**user("ByTheWay"), BESIDE_RESULT: True},
    "a system text": SYSTEM,
}


def rounds(model: Subject) -> Iterator[Finding]:
    """Whether a round of calls keeps its thoughts, and its earlier prompt, where an agent adds texts after results."""
    if not (model.can.tool_calls and model.can.tool_role and model.can.reasoning_with_calls):
        return
    told: set[str] = set()
    for variables in ({}, model.template.thinking_kwargs(True)):
        plain = _round(model, [], variables)
        for what, added in _ADDED.items():
            found = _round(model, [added], variables)
            if plain is None or found is None or what in told:
                continue
            if plain.thought and not found.thought:
                lost, text = "drops the running thought", found.text
            elif plain.extends and not found.extends:
                lost, text = "changes the prompt before it", found.text
            else:
                continue
            told.add(what)
            yield Finding(
                "round-broken",
                "warning",
                f"{what} after a result {lost}, so a reminder of an agent costs the model its thought or its cache",
                f"{quoted('FirstThought')} and the prompt before should stand in {quoted(text[-240:])}",
                _written_with(model, added),
            )


class _Round(NamedTuple):
    """A round with texts after its results: its rendering, whether its thoughts are there, and whether it begins with
    the prompt before."""

    text: str
    thought: bool
    extends: bool


def _round(model: Subject, added: Messages, variables: Mapping[str, Any]) -> _Round | None:
    """A round of two calls; None if the template refuses it."""
    one = [user("Q"), call({"city": "Oslo"}, reasoning="FirstThought"), result("Cold"), *added]
    two = [*one, call({"city": "Rome"}, reasoning="SecondThought"), result("Warm"), *added]
    before, text = (model.tried(some, generate=True, tools=True, **variables) for some in (one, two))
    if before is None or text is None:
        return None
    return _Round(text, "FirstThought" in text and "SecondThought" in text, text.startswith(before))


def _written_with(model: Subject, added: dict[str, Any]) -> str:
    """How the polyfills write a text after a result."""
    messages = [user("Q"), call({"city": "Oslo"}, reasoning="FirstThought"), result("Cold"), added]
    return f"{_prepared(model, messages)}; other hosts lose it"


def _prompt_and_answer(model: Subject, history: Messages, said: dict[str, Any]) -> tuple[str, str] | None:
    """The prompt, and the prompt with the answer that an engine holds after it; None if the template refuses."""
    prompt = model.tried(history, generate=True, tools=True)
    shown = model.answered(said, history)
    if prompt is None or shown is None:
        return None
    start, wire = shown
    if len(start) > len(prompt):
        return prompt, start + wire
    return prompt, prompt + wire.removeprefix(prompt[len(start) :])


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
            f"arguments are dumped anew ({', '.join(_respelt(model))}), so the history is not what the model sampled",
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
    inner = model.tried([user("Q"), call({"where": {"city": "Oslo"}})], tools=True) or ""
    if '\\"city' in inner and '\\"where' not in inner:
        yield Finding(
            "arguments-escaped-twice",
            "warning",
            "an argument that is an object comes out as a JSON string that holds JSON",
            excerpt(inner, inner.find('\\"city')),
            "dump each value once: tojson writes an object or a number as it is",
        )
    broken = model.raw([user("Q"), call("{bad")])
    shown = plain or "", model.raw([user("Q"), _plain_call({"city": "Oslo"})]) or ""
    if broken is not None and "{bad" not in broken and any("Oslo" in text for text in shown):
        yield Finding(
            "arguments-lost",
            "warning",
            f"arguments that are {'no JSON' if 'Oslo' in shown[0] else 'text'} vanish",
            excerpt(broken, max(broken.find("check_weather"), 0)),
            "write what the model wrote, so that it sees its mistake",
        )


def _respelt(model: Subject) -> Iterator[str]:
    """What of the spelling of arguments changes."""
    for what, given in (
        ("spaces", '{"city":"Oslo"}'),
        ("order", '{"days": 2, "city": "Oslo"}'),
        ("escapes", '{"city": "Z\\u00fcrich"}'),
        ("floats", '{"city": 1e3}'),
    ):
        text = model.tried([user("Q"), call(given)], tools=True)
        if text is not None and given not in text:
            yield what


def whitespace(model: Subject) -> Iterator[Finding]:
    """Whether white space at the ends of a text stays."""
    spaced = user("  needle \n ")
    texts: list[tuple[str, Messages]] = [
        ("a user's text", [spaced]),
        ("a user's text", [user("Q"), answer("A"), spaced]),
    ]
    if model.can.tool_calls and model.can.tool_role:
        texts.append(("a result", [user("Q"), call({"city": "Oslo"}), result("  needle \n ")]))
    trimmed: set[str] = set()
    for what, messages in texts:
        text = model.tried(messages, tools=True)
        if (
            what in trimmed
            or text is None
            or "needle" not in text
            or "  needle \n " in text
            or json.dumps("  needle \n ")[1:-1] in text
        ):
            continue
        trimmed.add(what)
        yield Finding(
            "whitespace-trimmed",
            "note",
            f"the white space around {what} is trimmed",
            f"given: {quoted('  needle ' + chr(10) + ' ')}\nwritten: {excerpt(text, text.find('needle'), 12, 16)}",
            "if the text is code or a table, its first line loses its indent",
        )
