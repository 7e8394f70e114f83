"""A document may be a stranger's: it is refused, with its place and what to do, or it is read; in bounded time.

Mutated documents are those of our formats with one place changed. What is read must parse any text, and write a grammar
or refuse as a format of ours may.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from chatparsers import DefinitionError, Format, RequestError, SchemaError
from chatparsers.document import loads

_GOLDEN = sorted(Path(__file__).with_name("documents").glob("*.json"))
_TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
_CALL = ["<c>", {"name": "tool", "class": ["a-z"]}, " ", {"object": "json"}, "</c>"]
_BOMB = {f"s{at}": [{"use": f"s{at + 1}"}, {"use": f"s{at + 1}"}] for at in range(25)} | {"s25": "x"}
_CHAIN = {f"s{at}": {"optional": {"use": f"s{at + 1}"}} for at in range(3000)} | {"s3000": "x"}


def nested(wrap: Callable[[Any], Any], times: int) -> Any:
    found: Any = "x"
    for _ in range(times):
        found = wrap(found)
    return found


def called(*items: Any, **more: Any) -> dict[str, Any]:
    """A document whose call is made of ``items``."""
    return {"chat_format": 1, "name": "mine", "tree": {"body": {"calls": {"call": [*items]}}}, **more}


FINE = called(*_CALL)
HEADER = {"name": "tool"}
HOSTILE: dict[str, tuple[Any, str]] = {
    "no object": ([1], "$: expected an object, found a list of 1"),
    "a new version": (
        {**FINE, "chat_format": 2},
        "$.chat_format: it is written for chat_format 2, and this reads 1",
    ),
    "no version": ({"tree": {}}, "$.chat_format: expected the version of the document, 1, found null"),
    "true is no version": (
        {**FINE, "chat_format": True},
        "$.chat_format: expected the version of the document, 1",
    ),
    "an unknown key": ({**FINE, "code": "x"}, "$.code: there is no such key"),
    "no name": ({**FINE, "name": ""}, "$.name: expected the name of the format, found ''"),
    "a name of two lines": ({**FINE, "name": "a\nb"}, "$.name: expected a line of text, found"),
    "a slow pattern for names": (
        {**FINE, "models": ["a", "(a*)*b"]},
        "$.models[1]: expected a pattern for a model's",
    ),
    "many loops in a name": (
        {**FINE, "models": [".*a.*a.*a"]},
        "$.models[0]: expected a pattern for a model's name",
    ),
    "a pattern that is none": ({**FINE, "models": ["(a"]}, "$.models[0]: expected a regular expression"),
    "a bomb of uses": (called("<c>", {"use": "s0"}, *_CALL[1:], shared=_BOMB), "$.shared.s"),
    "a bomb in a header": (
        called("<c>", {"header": [{"use": "s0"}, HEADER], "write": HEADER}, *_CALL[2:], shared=_BOMB),
        "$.tree.body.calls.call[1]: p.header(",
    ),
    "a bomb of calls": (
        called(
            "<c>", {"use": "s0"}, *_CALL[1:], shared={**_BOMB, "s25": {"call": {"use": "s26"}}, "s26": _CALL}
        ),
        "$.shared.s",
    ),
    "a chain of uses": (
        called("<c>", {"use": "s0"}, *_CALL[1:], shared=_CHAIN),
        "it stands inside 100 other nodes",
    ),
    "a cycle": (
        called(
            "<c>",
            {"use": "a"},
            *_CALL[1:],
            shared={"a": ["x", {"use": "b"}], "b": {"optional": {"use": "a"}}},
        ),
        "$.shared.b.optional: it stands in itself (a → b → a); write a rule and a ref for what recurs",
    ),
    "a name that is not there": (
        called({"use": "a"}),
        "$.tree.body.calls.call[0]: there is no 'a' under $.shared",
    ),
    "a name that nothing uses": ({**FINE, "shared": {"a": "x"}}, "$.shared.a: nothing uses it; leave it out"),
    "too deep": (
        called("<c>", nested(lambda x: {"optional": x}, 200), *_CALL[1:]),
        "$: it stands inside 100 others",
    ),
    "too long": (
        called("<c>" + "x" * 1_000_000, *_CALL[1:]),
        "$: it has more than 1,000,000 characters and values",
    ),
    "repeated too often": (
        called("<c>", nested(lambda x: {"repeat": ["y", x], "max": 900}, 4), *_CALL[1:]),
        "$.tree.body.calls.call[1]",
    ),
    "too many stops": ([{"until": [f"stop{at}" for at in range(20_000)]}, FINE["tree"]], "$.tree[0]"),
    "too many alternatives": (
        called("<c>", {"first_of": [f"option {at:06}" for at in range(20_000)]}, *_CALL[1:]),
        "$.tree: p.choice: it has more than 1,000 parts",
    ),
    "a header that takes years": (
        called(
            "<c>", {"header": [{"chars": ["a"]}, {"chars": ["a-z"]}, HEADER], "write": HEADER}, *_CALL[2:]
        ),
        "$.tree.body.calls.call[1]: p.header(",
    ),
    "many options in a header": (
        called("<c>", {"header": [*[{"optional": "a"}] * 40, HEADER], "write": HEADER}, *_CALL[2:]),
        "$.tree.body.calls.call[1]: p.header(",
    ),
    "a regular expression": (
        called("<c>", {"name": "tool", "class": "(?:a|aa)+"}, *_CALL[2:]),
        '$.tree.body.calls.call[1].class: expected a class of characters, such as ["a-z", "_"]',
    ),
    "a range backwards": (
        called("<c>", {"name": "tool", "class": ["z-a"]}, *_CALL[2:]),
        "$.tree.body.calls.call[1].class: expected a character, a range such as 'a-z', or a set, found 'z-a'",
    ),
    "an unknown node": (
        called({"exec": "rm"}),
        "$.tree.body.calls.call[0]: expected a node, an object with one key",
    ),
    "two kinds at once": (
        called({"token": "a", "end": True}),
        "its kinds are told by 'token' and 'end'; keep one",
    ),
    "a number for a text": (
        called({"token": 5}),
        "$.tree.body.calls.call[0].token: expected a text, found 5",
    ),
    "a list for a name": (
        called({"name": ["tool"]}),
        "$.tree.body.calls.call[0].name: expected 'tool' or 'argument'",
    ),
    "a flag that is one": (called({"end": 1}), "$.tree.body.calls.call[0].end: expected true, found 1"),
    "a count below zero": (
        called({"chars": ["a"], "min": -1}),
        "$.tree.body.calls.call[0].min: expected a whole",
    ),
    "an unknown key of a node": (called({"token": "a", "alse": ["b"]}), "did you mean also?"),
    "half a character": (called({"token": "\ud800"}), "$: a lone surrogate is no character"),
    "a set": (called({"token": {"a"}}), "$: expected JSON, found set"),
    "no body": ({**FINE, "tree": ["x"]}, "$.tree: build: what is parsed has no p.body()"),
    "a call without a name": (called("<c>", {"object": "json"}), "$.tree.body.calls"),
    "a value without an end": (
        called(
            "<c>",
            {"name": "tool"},
            ":",
            {"arguments": [{"name": "argument"}, "=", {"value": {"syntax": "raw"}}]},
        ),
        "$.tree.body.calls.call[3].arguments[2].value: Raw: expected until=",
    ),
    "an unknown syntax": (
        called("<c>", {"name": "tool"}, ":", {"object": "yaml"}),
        "$.tree.body.calls.call[3].object: expected a value syntax: json, python, gemma, elements, raw, found 'yaml'",
    ),
    "stops that are not there": (called({"stops": True}), "the format has no stops"),
    "left out in a call": (
        called({"if_tools": "<c>"}, *_CALL[1:]),
        "$.tree.body.calls.call[0]: expected the key 'else'",
    ),
    "a rule without an end": (
        called("<c>", {"rule": "a", "is": ["(", {"ref": "a"}]}, *_CALL[1:]),
        "it has no end, as each way through it calls itself",
    ),
    "calls in each other": (called("<c>", {"call": _CALL}, *_CALL[1:]), "it stands inside the call"),
}


@pytest.mark.parametrize("case", HOSTILE, ids=str)
def test_a_hostile_document_is_refused(case: str) -> None:
    document, said = HOSTILE[case]
    if isinstance(document, list) and len(document) == 2:
        document = {**FINE, "tree": document}
    with pytest.raises(DefinitionError) as caught:
        Format.from_data(document)
    text = str(caught.value)
    assert said in text and text.startswith("$") and len(text) < 1000, text


def test_a_sound_document_is_read() -> None:
    message = Format.from_data(FINE).bind(tools=_TOOLS).parse('Hi <c>f {"a": 1}</c>')
    assert (message.content, [(call.name, call.arguments) for call in message.tool_calls]) == (
        "Hi ",
        [("f", '{"a": 1}')],
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "$: expected JSON: Expecting property name"),
        ("[" * 100_000, "$: expected JSON: it is too deep"),
        ('{"name": "a", "name": "b"}', "$: the key 'name' stands twice in one object"),
        (" " * 1_000_001, "$: expected at most 1,000,000 characters, found 1,000,001"),
        ('{"chat_format": ' + "1" * 5000 + "}", "$: expected JSON: Exceeds the limit"),
    ],
    ids=["no JSON", "deep", "a key twice", "long", "a long number"],
)
def test_a_text_that_is_no_document_is_refused(text: str, said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        loads(text)
    assert str(caught.value).startswith(said)


def test_a_mutated_document_is_refused_or_read(amount: Callable[[int, int, int], int]) -> None:
    draw = random.Random(0)
    read = 0
    for _ in range(amount(60, 1000, 10_000)):
        document = json.loads(draw.choice(_GOLDEN).read_text(encoding="utf-8"))
        what = mutate(document, draw)
        try:
            format = Format.from_data(document)
        except DefinitionError as error:
            assert str(error).startswith("$"), (what, error)
            continue
        read += 1
        Format.from_data(json.loads(json.dumps(format.to_data())))
        turn = format.bind(tools=_TOOLS)
        for text in ("", "Hi", "<tool_call>", '{"name": "f", "arguments": {}}', "".join(format.markers)):
            stream = turn.stream()
            for char in text:
                stream.feed(char)
            stream.finish()
        with suppress(RequestError, SchemaError, DefinitionError):
            turn.grammar()
    assert read, "every mutated document was refused"


_OTHERS: tuple[Any, ...] = (
    "", "x", "<tool_call>", "\n", None, True, 0, -1, 7, 1001, 1.5, [], {}, ["x"], {"x": 1}, {"end": True},
    {"until": []}, {"commit": True}, {"name": "tool"}, {"object": "json"}, {"stops": True}, {"optional": "x"},
)  # fmt: skip


def mutate(document: Any, draw: random.Random) -> str:
    """Changes one place of ``document``, and says what."""
    places = list(_places(document))
    holder, key = draw.choice(places)
    kind = draw.choice(("other", "remove", "move", "double"))
    if kind == "other":
        holder[key] = copy.deepcopy(draw.choice(_OTHERS))
    elif kind == "remove":
        del holder[key]
    elif kind == "move":
        of, at = draw.choice(places)
        holder[key] = copy.deepcopy(of[at])
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[f"{key}s"] = holder[key]
    return f"{kind} at {key!r}"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, (dict, list)):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(item)
