"""`Chat.ask` and `Chat.run`, before engines that are functions."""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

import chatparsers
from chatparsers import NoAnswer, RequestError, Turn
from chatparsers.schema.typed import WrongValue, schema_of, value_of

CHAT = chatparsers.load(template="qwen3")
GEMMA = chatparsers.load(template="gemma-4")


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


@dataclass
class Place:
    """A place on the earth."""

    name: str
    north: Annotated[float, "degrees"]
    tags: list[Literal["port", "capital"]] = field(default_factory=list)
    near: Optional[Place] = None  # noqa: UP045


class Trip(TypedDict):
    stops: list[Place]
    nights: dict[str, int]
    unit: Unit


OSLO = {"name": "Oslo", "north": 59.9, "tags": ["port"], "near": {"name": "Moss", "north": 59}}
VALUES: list[tuple[Any, Any, Any]] = [
    (Place, OSLO, Place("Oslo", 59.9, ["port"], Place("Moss", 59.0))),
    (
        Trip,
        {"stops": [OSLO], "nights": {"Oslo": 2}, "unit": "celsius"},
        {
            "stops": [Place("Oslo", 59.9, ["port"], Place("Moss", 59.0))],
            "nights": {"Oslo": 2},
            "unit": Unit.C,
        },
    ),
    (list[int], [1, 2.0], [1, 2]),
    (tuple[int, str], [1, "a"], (1, "a")),
    (set[str], ["a", "b"], {"a", "b"}),
    (int | None, None, None),
    (Literal["a", 1], 1, 1),
    (Any, {"a": [1]}, {"a": [1]}),
    ({"type": "object"}, {"a": 1}, {"a": 1}),
]
WRONG: list[tuple[Any, Any, str]] = [
    (Place, {"name": "Oslo"}, "north: expected a value, found none"),
    (Place, {**OSLO, "near": {"name": 5, "north": 1}}, "near.name: expected a string, found 5"),
    (Place, {**OSLO, "tags": ["city"]}, r"tags\[0\]: expected one of 'port', 'capital', found 'city'"),
    (Place, {**OSLO, "south": 1}, "south: expected one of name, north"),
    (
        Trip,
        {"stops": [], "nights": {"Oslo": True}, "unit": "celsius"},
        "nights.Oslo: expected a whole number",
    ),
    (Trip, {"stops": [], "nights": {}, "unit": "kelvin"}, "unit: expected one of 'celsius'"),
    (list[int], [1, "2"], r"\[1\]: expected a whole number, found '2'"),
    (tuple[int, str], [1], "expected 2 elements"),
    (Literal["a", 1], True, "expected one of 'a', 1, found True"),
]


class Scripted:
    """An engine that writes one text after another. ``turns``: what it was asked."""

    def __init__(self, *texts: str) -> None:
        self._texts = iter(texts)
        self.turns: list[Turn] = []

    def __call__(self, turn: Turn) -> Iterator[str]:
        self.turns.append(turn)
        text = next(self._texts)
        yield from (text[:7], text[7:])


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


@pytest.mark.parametrize(("kind", "data", "value"), VALUES)
def test_values_of_types(kind: Any, data: Any, value: Any) -> None:
    """Whatever JSON the schema admits is a value of the type."""
    jsonschema = pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")
    schema = kind if isinstance(kind, dict) else schema_of(kind)
    if data is not None:  # the schema says it as templates do: nullable
        jsonschema.validate(data, schema)
    assert CHAT.ask(Scripted(f"<think>\nHm.\n</think>\n\n{json.dumps(data)}"), "Which?", kind) == value


@pytest.mark.parametrize(("kind", "data", "said"), WRONG)
def test_what_is_no_value_is_said_to_the_model(kind: Any, data: Any, said: str) -> None:
    with pytest.raises(WrongValue, match=said):
        value_of(kind, data)
    engine = Scripted(json.dumps(data), "no JSON", json.dumps(data))
    with pytest.raises(NoAnswer, match=said) as caught:
        CHAT.ask(engine, "Which?", kind)
    roles = [message["role"] for message in caught.value.messages]
    assert roles == ["system", "user", *["assistant", "user"] * 3]
    assert [len(turn.prompt) for turn in engine.turns] == sorted(len(turn.prompt) for turn in engine.turns)
    assert "the answer is no JSON" in engine.turns[2].prompt


def test_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic", reason="the package pydantic is not installed")
    model = pydantic.create_model("Person", name=str, age=(int, pydantic.Field(ge=0)))
    engine = Scripted('{"name": "Ann", "age": -1}', '{"name": "Ann", "age": 7}')
    assert CHAT.ask(engine, "Who?", model) == model(name="Ann", age=7)
    assert "age: Input should be greater than or equal to 0" in engine.turns[1].prompt
    assert '"age"' in engine.turns[0].prompt


def test_the_schema_is_told_and_enforced() -> None:
    engine = Scripted('{"name": "Oslo", "north": 59.9}')
    messages = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Where is Oslo?"}]
    place = CHAT.ask(engine, messages, Place, thinking=False)
    assert place == Place("Oslo", 59.9) and messages[0]["content"] == "Be exact."
    (turn,) = engine.turns
    assert "Be exact.\n\nAnswer with JSON" in turn.prompt and "A place on the earth." in turn.prompt
    grammar = turn.grammar("gbnf")
    assert grammar is not None and "capital" in str(grammar) and turn.prefix == "<think>\n\n</think>\n\n"


# run


def weather(city: str, unit: Unit = Unit.C) -> dict[str, Any]:
    """The weather of a city."""
    assert isinstance(unit, Unit)
    if city == "Atlantis":
        raise LookupError("it sank")
    return {"city": city, "degrees": 4, "unit": unit.value}


def near(place: Place) -> Place:
    """A place near another."""
    return Place(f"near {place.name}", place.north)


def test_functions_are_called_with_values_of_their_types() -> None:
    engine = Scripted(
        call("weather", city="Oslo", unit="fahrenheit")
        + "\n"
        + call("near", place={"name": "Oslo", "north": 59.9}),
        "Cold.",
    )
    ran = CHAT.run(engine, "How is it?", [weather, near])
    assert ran.content == "Cold." and ran.message.complete
    assert [result.value for result in ran.results] == [
        {"city": "Oslo", "degrees": 4, "unit": "fahrenheit"},
        Place("near Oslo", 59.9),
    ]
    assert [message["role"] for message in ran.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert json.loads(ran.messages[3]["content"])["name"] == "near Oslo"
    assert '"degrees": 4' in engine.turns[1].prompt and "The weather of a city." in engine.turns[0].prompt


BROKEN: dict[str, tuple[str, str]] = {
    "no such function": (call("wether", city="Oslo"), "there is no function 'wether', but: weather, near"),
    "a wrong value": (call("weather", city=5), "city: expected a string, found 5"),
    "a missing one": (call("weather"), "missing 1 required positional argument: 'city'"),
    "an unknown one": (call("weather", city="Oslo", country="no"), "unexpected keyword argument 'country'"),
    "what it raises": (call("weather", city="Atlantis"), "LookupError: it sank"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_goes_wrong_is_the_models_next_message(name: str) -> None:
    wrong, said = BROKEN[name]
    engine = Scripted(wrong, call("weather", city="Oslo"), "Cold.")
    ran = CHAT.run(engine, "How is it?", [weather, near])
    assert ran.content == "Cold." and [result.error is None for result in ran.results] == [False, True]
    assert said in str(ran.results[0].error) or said in ran.messages[2]["content"]
    assert said in engine.turns[1].prompt.replace("\\'", "'")


@pytest.mark.parametrize("chat", [CHAT, GEMMA], ids=lambda chat: chat.format.name)
def test_a_call_that_the_model_broke(chat: chatparsers.Chat) -> None:
    """It is text in the history, and the diagnostic is the next message. Nothing is called."""
    broken = {
        "qwen3": '<tool_call>\n{"name": "weather", "arguments": {"city": oops}}\n</tool_call>',
        "gemma-4": "<|tool_call>call:weather{city:<|tool_call|>",
    }[chat.format.name]
    engine = Scripted(broken, "Cold.")
    ran = chat.run(engine, "How is it?", [weather])
    assert ran.results == [] and ran.content == "Cold."
    assert [message["role"] for message in ran.messages] == ["user", "assistant", "user", "assistant"]
    assert "tool_calls" not in ran.messages[1] and "weather" in ran.messages[1]["content"]
    assert (
        "was not understood: " in ran.messages[2]["content"] and "at character" in ran.messages[2]["content"]
    )


def test_it_ends() -> None:
    engine = Scripted(*[call("weather", city="Oslo")] * 4)
    with pytest.raises(NoAnswer, match="still calls after 4 steps") as caught:
        CHAT.run(engine, "How is it?", [weather], steps=4)
    assert len(engine.turns) == 4 and len(caught.value.messages) == 9


def test_what_cannot_be_asked_or_called() -> None:
    with pytest.raises(RequestError, match="expected a type that JSON can write"):
        CHAT.ask(Scripted(), "Which?", complex)
    with pytest.raises(RequestError, match="engine: expected"):
        CHAT.ask(object(), "Which?", int)
    with pytest.raises(RequestError, match="two functions are named 'weather'"):
        CHAT.run(Scripted("A"), "?", [weather, weather])
    with pytest.raises(RequestError, match="expected an annotation"):
        CHAT.run(Scripted("A"), "?", [untyped])

    async def later(city: str) -> str:
        return city

    with pytest.raises(RequestError, match="'later' is async"):
        CHAT.run(Scripted(call("later", city="Oslo")), "?", [later])


def untyped(city):  # type: ignore[no-untyped-def]
    return city


def test_the_same_with_await() -> None:
    async def later(city: str) -> str:
        await asyncio.sleep(0)
        return f"later in {city}"

    async def both() -> tuple[Any, Any]:
        engine = Scripted(call("later", city="Oslo") + "\n" + call("weather", city="Atlantis"), "Cold.")
        return await asyncio.gather(
            CHAT.arun(engine, "?", [later, weather]), CHAT.aask(Scripted("[1]"), "?", list[int])
        )

    ran, numbers = asyncio.run(both())
    assert numbers == [1] and ran.content == "Cold."
    assert ran.results[0].value == "later in Oslo" and isinstance(ran.results[1].error, LookupError)


@pytest.mark.parametrize("ids", [True, False])
def test_an_engine_may_give_ids(ids: bool) -> None:
    from chatparsers.testing.tiny import tiny_model

    model = tiny_model("qwen3")
    text = "<think>\nHm.\n</think>\n\n[1, 2]<|im_end|>and on"

    def engine(turn: Turn) -> Iterator[Any]:
        found = model.tokenizer.encode(text, add_special_tokens=False).ids
        yield from found if ids else [found[:3], found[3:]]

    assert model.chat.ask(engine, "?", list[int]) == [1, 2]
