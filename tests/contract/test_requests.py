"""The caller's arguments: each wrong value raises a `RequestError` that names it, and each usual value works."""

from __future__ import annotations

import array
import copy
import marshal
import pickle
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy
import pytest
from making import bytewise

import chatparsers
from chatparsers import Message, RequestError, Stream, Turn, get_format
from chatparsers.schema import tools as tools_module
from chatparsers.testing import TOOLS

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
SPECIAL = ("<tool_call>", "</tool_call>", "<|im_end|>")
hermes = get_format("hermes-2-pro")


def of_ids() -> tuple[Turn, list[int]]:
    tokenizer = bytewise(*SPECIAL)
    turn = hermes.bind(tools=TOOLS, tokenizer=tokenizer)
    return turn, tokenizer.encode("Hi " + CALL, add_special_tokens=False).ids


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"tools": [*TOOLS, 5]}, f"tools[{len(TOOLS)}]: expected an object, found int"),
        ({"tools": [{"type": "function"}]}, "tools[0].function.name: expected a name, found None"),
        ({"tools": [{"function": {"name": 5}}]}, "tools[0].function.name: expected a name, found 5"),
        ({"tools": [{"name": ""}]}, "tools[0].function.name: expected a name, found ''"),
        ({"tool_choice": []}, "tool_choice: expected 'auto', 'none', 'required', a tool's name"),
        ({"tool_choice": "gte_weather"}, "did you mean get_weather"),
        ({"tool_choice": {"function": {}}}, "tool_choice: no tool is named None"),
        ({"prefix": None}, "prefix: expected text, found NoneType"),
        ({"thinking": []}, "thinking: expected True, False or None, found list"),
        ({"parallel_tool_calls": {}}, "parallel_tool_calls: expected True or False, found dict"),
        ({"id_seed": 5}, "id_seed: expected text, found int"),
        ({"tokenizer": "tokenizer.json"}, "tokenizer: expected a tokenizers.Tokenizer"),
        ({"tools": None, "tool_choice": "required"}, "tool_choice: 'required' needs tools"),
        ({"response_format": 5}, "response_format.type: expected"),
        ({"response_format": {}}, "response_format.type: expected"),
        ({"response_format": {"type": "xml"}}, "'regex' or 'choice', found 'xml'"),
        ({"response_format": "json_object"}, "found 'json_object': write {'type': 'json_object'}"),
        ({"response_format": "xml"}, "OpenAI's response_format or a JSON Schema, found 'xml'"),
    ],
)
def test_a_wrong_request_is_named(request_: dict[str, Any], message: str) -> None:
    chat = chatparsers.load(template="qwen3")  # with a switch of thinking
    takes: list[Callable[..., Any]] = [hermes.bind]
    if not {"prefix", "tokenizer"} & request_.keys():
        takes.append(lambda **given: chat.prepare([{"role": "user", "content": "Hi"}], **given))
    for take in takes:
        with pytest.raises(RequestError) as error:
            take(**{"tools": TOOLS, **request_})
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("piece", "found"),
    [
        (b"Hello", "bytes"),
        (True, "bool"),
        (None, "NoneType"),
        (1.5, "float"),
        ({"a": 1}, "dict"),
        ([1, 2.0], "float"),
        ([1, False], "bool"),
        (["a"], "str"),
        (numpy.array([0.5]), "float"),
        (numpy.array([[1, 2]]), "list"),
    ],
)
def test_a_piece_of_another_type_is_named_and_changes_nothing(piece: Any, found: str) -> None:
    turn, ids = of_ids()
    for given in (turn, hermes.bind(tools=TOOLS)):
        with pytest.raises(RequestError, match=f"found {found}$"):
            given.stream().feed(piece)
    stream = turn.stream()
    stream.feed(ids[:20])
    with pytest.raises(RequestError):
        stream.feed(piece)
    stream.feed(ids[20:])
    stream.finish()
    assert stream.message == turn.parse(ids)


@pytest.mark.parametrize(
    "kind", [numpy.array, tuple, iter, lambda ids: array.array("i", ids), lambda ids: [*numpy.array(ids)]]
)
def test_ids_of_every_kind_of_integer(kind: Callable[[list[int]], Any]) -> None:
    turn, ids = of_ids()
    assert turn.parse(kind(ids)) == turn.parse(ids)
    stream = turn.stream()
    for id in numpy.array(ids):
        stream.feed(id)
    stream.finish()
    assert stream.message == turn.parse(ids)


@pytest.mark.parametrize(
    "unknown", [-1, 999_999, 1 << 70, 10**5000], ids=["-1", "999999", "2**70", "10**5000"]
)
def test_an_unknown_id_is_a_replacement_character_and_noted(unknown: int) -> None:
    turn, ids = of_ids()
    fed = [*ids[:2], unknown, *ids[2:]]
    message = turn.parse(fed)
    assert message.content == "Hi\ufffd " and message.tool_calls[0].complete and message.complete
    assert [(d.code, d.position) for d in message.diagnostics] == [("unknown-token", 2)]
    told = "which has no id so large" if unknown > 1 << 100 else str(unknown)
    assert told in message.diagnostics[0].expected
    stream = turn.stream()
    for id in fed:
        stream.feed(id)
    stream.finish()
    assert stream.message == message


def test_a_prefix_spells_no_token() -> None:
    """A lone surrogate stands for a token in the machine's text alone."""
    turn, ids = of_ids()
    for char in map(chr, range(0xD800, 0xD810)):
        prefixed = turn.format.bind(tools=turn.tools, tokenizer=turn.tokenizer, prefix=char)
        assert prefixed.parse(ids).content == turn.parse(ids).content, hex(ord(char))


def test_a_stream_that_was_looked_at_may_still_read_either() -> None:
    turn, ids = of_ids()
    for look in (Stream.fork, lambda s: pickle.loads(pickle.dumps(s)), lambda s: s.feed("") or s):
        for output in (ids, "Hi" + CALL):
            stream = turn.stream()
            assert stream.region and not stream.message.text and not stream.token_regions()
            stream = look(stream)
            stream.feed(output)
            stream.finish()
            assert stream.message == turn.parse(output)


def test_ids_of_calls_are_new_in_each_turn_and_agree_within_one() -> None:
    turn, other = (hermes.bind(tools=TOOLS) for _ in range(2))
    ids = [call.id for call in turn.parse(CALL * 3).tool_calls]
    assert len({*ids, *(call.id for call in other.parse(CALL * 3).tool_calls)}) == 6
    stream = turn.stream()
    stream.feed(CALL * 2)
    for again in (
        stream.fork(),
        pickle.loads(pickle.dumps(stream)),
        pickle.loads(pickle.dumps(turn)).stream(),
    ):
        again.feed(CALL if again.message.text else CALL * 3)
        again.finish()
        assert [call.id for call in again.message.tool_calls] == ids
    for copied in (pickle.loads(pickle.dumps(other := hermes.bind())), other._replace(prompt="Hi")):
        assert copied.call_id(0) == other.call_id(0)
    seeded = [hermes.bind(tools=TOOLS, id_seed="a").parse(CALL).tool_calls[0].id for _ in range(2)]
    assert seeded[0] == seeded[1] == turn.parse(CALL, id_seed="a").tool_calls[0].id != ids[0]


def test_a_pickle_names_its_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pickles of a stream of ids and its turn do not hold the vocabulary. A missing tokenizer raises an error."""
    turn, ids = of_ids()
    stream = turn.stream()
    unread = pickle.dumps(stream)
    stream.feed(ids[:20])
    data = pickle.dumps(stream)
    assert turn.tokenizer.to_str().encode() not in unread + data + pickle.dumps(turn)
    assert max(map(len, (unread, data, pickle.dumps(turn)))) < 4000
    assert copy.deepcopy(turn).parse(ids) == pickle.loads(pickle.dumps(turn)).parse(ids) == turn.parse(ids)
    monkeypatch.setattr("chatparsers.tokens.bound._read", {})
    with pytest.raises(RequestError, match="the tokenizer of this turn is not loaded"):
        pickle.loads(data)


def test_a_turn_and_a_stream_show_what_they_are() -> None:
    turn = hermes.bind(tools=TOOLS[:1], prefix="<tool_call>")
    assert repr(turn) == "<Turn: hermes-2-pro, 1 tools, tool_choice='auto', prefix='<tool_call>'>"
    with pytest.raises(FrozenInstanceError):
        turn.prefix = "x"  # type: ignore[misc]
    stream = hermes.bind(tools=TOOLS).stream()
    stream.feed("Hi " + CALL[:50])
    assert repr(stream) == "<Stream: in call, 53 characters read, 1 calls>"


def test_the_message_may_be_asked_for_after_each_piece() -> None:
    """A polled stream has the message of one that was not polled. A message taken earlier does not change."""
    turn, ids = of_ids()
    text = "<tool_call>a\ufffd" + CALL.replace("Oslo", "\t\n") + "</tool_call>" + CALL
    for pieces, whole in ((list(text), text), (ids, ids)):
        stream = turn.stream()
        seen: list[tuple[Message, str]] = []
        for piece in pieces:
            stream.feed(piece)
            message = stream.message
            seen.append((message, repr(message)))
        stream.finish()
        assert stream.message == turn.parse(whole)
        for message, shown in seen:
            assert repr(message) == shown
            at = 0
            for region in message.regions:
                assert region.start == at
                at = region.end


def _typed(**properties: Any) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": properties}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


TYPED: dict[str, tuple[dict[str, Any], str]] = {
    "at every depth": (
        {
            "a": {"type": "int"},
            "b": {"type": "array", "items": {"type": ["str", "null"]}},
            "c": {"anyOf": [{"type": "dict"}]},
        },
        "f.a: 'int' is read as 'integer'; f.b.items: 'str' is read as 'string'; "
        "f.c.anyOf[0]: 'dict' is read as 'object'",
    ),
    "words that are no types": (
        {"type": {"type": "string"}, "int": {"enum": ["int"]}, "x": {"default": {"type": "int"}}},
        "",
    ),
    "no plain data": ({"a": {"default": object()}}, ""),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize("case", TYPED)
def test_types_spelt_as_in_python_are_read_and_said(case: str) -> None:
    """And again for the same tools, as the caller may have missed it."""
    properties, told = TYPED[case]
    for _ in range(2):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            turn = get_format("glm-4-5").bind(tools=_typed(**properties))
        expected = [f"tools: expected JSON's names of types, found others: {told}"] * bool(told)
        assert [str(one.message) for one in said] == expected
        assert {one.filename for one in said} <= {__file__}
    call = "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>30</arg_value>\n</tool_call>"
    assert not told or turn.parse(call).tool_calls[0].arguments == '{"a": 30}'


def test_the_schemas_of_many_tools_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binding the same list again walks no schema: a request with 500 tools took four milliseconds for it."""
    described = {f"p{i}": {"type": "string", "description": "d" * 100} for i in range(10)}
    parameters = {"type": "object", "properties": described}
    tools = [
        {"type": "function", "function": {"name": f"f{i}", "parameters": copy.deepcopy(parameters)}}
        for i in range(400)
    ]
    dumped: list[bytes] = []

    def dump(tools: Any, version: int = 2) -> bytes:
        dumped.append(marshal.dumps(tools, version))
        return dumped[-1]

    monkeypatch.setattr(tools_module, "_dumped", dump)
    for _ in range(3):
        hermes.bind(tools=tools)
    assert len(dumped) == 1
    # what has changed in the same list is seen
    tools[0]["function"]["name"] = "first"
    assert hermes.bind(tools=tools).tools.names()[:2] == ("first", "f1")
    tools[1]["function"] = {**tools[1]["function"]}
    tools.append(tools.pop(0))
    turn = hermes.bind(tools=tools)
    described["p0"]["type"] = "integer"
    tools[0]["function"]["parameters"] = parameters
    tool = turn.tools.get("f1")
    assert tool is not None and tool.argument("p0").types == {"integer"}
    tools[0]["color"] = "red"
    with pytest.raises(RequestError, match="'color'"):
        hermes.bind(tools=tools)


def test_the_tools_of_a_turn_are_not_read_again() -> None:
    """Neither by `bind` nor by `prepare`; a tool in another shape needs no second conversion."""

    def get_weather(city: str) -> str:
        """The weather."""
        return city

    turn = hermes.bind(tools=[get_weather])
    again = hermes.bind(tools=turn.tools, tool_choice="get_weather", thinking=False)
    assert again.tools is turn.tools and again.parse(CALL).tool_calls[0].parsed_arguments == {"city": "Oslo"}
    chat = chatparsers.load(Path(__file__).parents[1] / "templates_own" / "hermes-2-pro.jinja")
    messages = [{"role": "user", "content": "Hi"}]
    prepared = chat.prepare(messages, tools=turn.tools)
    assert prepared.tools is turn.tools
    assert (
        prepared.prompt == chat.prepare(messages, tools=[get_weather]).prompt != chat.prepare(messages).prompt
    )
