"""A tool in every shape that users have it: the same prompt, the same grammar; what is no tool is refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pytest

import chatparsers
from chatparsers import RequestError
from chatparsers.schema.tool_shapes import open_ai_shaped

QWEN = chatparsers.get_format("qwen3")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city."},
        "days": {"type": "integer", "description": "How many days."},
    },
    "required": ["city"],
}
ABOUT = "The weather of a city."
OPENAI = {
    "type": "function",
    "function": {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA},
}


def get_weather(city: str, days: int = 3):  # type: ignore[no-untyped-def]  # with a result it would be shown as well
    """The weather of a city.

    Args:
        city: The city.
        days: How many days.
    """


class Model:
    """Stands for a pydantic model, which has this class method."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"title": "get_weather", "description": ABOUT, **SCHEMA}


Model.__name__ = "get_weather"


class Record:
    """Stands for the ``Tool`` of MCP's own package, which is a pydantic model's instance."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return SHAPES["mcp"]  # type: ignore[no-any-return]


SHAPES: dict[str, Any] = {
    "no type": {"function": OPENAI["function"]},
    "flat": {"type": "function", "strict": True, **OPENAI["function"]},  # type: ignore[dict-item]
    "bare": {"parameters": SCHEMA, "description": ABOUT, "name": "get_weather"},
    "anthropic": {
        "name": "get_weather",
        "description": ABOUT,
        "input_schema": SCHEMA,
        "cache_control": {"type": "ephemeral"},
    },
    "mcp": {
        "name": "get_weather",
        "title": "Weather",
        "description": ABOUT,
        "inputSchema": SCHEMA,
        "annotations": {"readOnlyHint": True},
    },
    "mcp, as its package for Python dumps it": {
        "name": "get_weather",
        "description": ABOUT,
        "input_schema": SCHEMA,
        "annotations": {"read_only_hint": True},
        **dict.fromkeys(("title", "output_schema", "icons", "execution", "meta")),
    },
    "nested": {
        "type": "function",
        "function": {"name": "get_weather", "description": ABOUT, "inputSchema": SCHEMA},
    },
    "function": get_weather,
    "model": Model,
    "record": Record(),
}
del SHAPES["flat"]["strict"]
OTHER = {
    "type": "function",
    "function": {"name": "get_time", "description": "The time.", "parameters": SCHEMA},
}
USER = [{"role": "user", "content": "Hello"}]


def test_all_templates_write_all_shapes_alike(any_template: Path) -> None:
    now = datetime(2026, 1, 2)

    def prompt(chat: chatparsers.Chat, tools: Sequence[Any]) -> str:
        return chat.prepare(USER, tools=tools, now=now).prompt

    chat = chatparsers.load(any_template, format="qwen3", bos_token="<s>", eos_token="</s>")
    expected = prompt(chat, [OPENAI, OTHER])
    assert "get_weather" in expected
    for shape, tool in SHAPES.items():
        assert prompt(chat, [tool, OTHER]) == expected, shape


def test_a_calls_members_stay_in_the_callers_order() -> None:
    chat = chatparsers.load("{% for m in messages %}{{ m.tool_calls | tojson if m.tool_calls }}{% endfor %}")
    call = {"id": "a", "function": {"arguments": {"b": 1, "a": 2}, "name": "f"}, "type": "function", "x": 1}
    prompt = chat.template().render([*USER, {"role": "assistant", "content": "", "tool_calls": [call]}])
    assert list(json.loads(prompt)[0]) == ["id", "function", "type", "x"]
    assert list(json.loads(prompt)[0]["function"]) == ["arguments", "name"]


def test_several_texts_of_a_result_are_joined_where_a_template_takes_the_first() -> None:
    first = "{{ m.content if m.content is string else m.content[0].text }}"
    parts = "{% for p in m.content %}{{ p.text }};{% endfor %}"
    each = "{% if m.content is string %}{{ m.content }}{% else %}" + parts + "{% endif %}"
    texts = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = [*USER, {"role": "assistant", "content": "", "tool_calls": [call]}]
    for shown, expected in ((first, "One.\nTwo."), (each, "One.;Two.;")):
        said = "[{{ m.role }}]{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}" + shown
        chat = chatparsers.load("{{ tools | tojson }}{% for m in messages %}" + said + "{% endfor %}")
        result = {"role": "tool", "tool_call_id": "a", "content": texts}
        assert expected in chat.template().render([*asked, result], tools=[OTHER])


def test_all_shapes_bind_alike() -> None:
    expected = QWEN.bind(tools=[OPENAI], tool_choice="required")
    for shape, tool in SHAPES.items():
        turn = QWEN.bind(tools=[tool], tool_choice="required")
        assert str(turn.grammar()) == str(expected.grammar()), shape
        assert list(turn.tools.raw) == [OPENAI], shape
    usual = [OPENAI, OTHER]
    assert QWEN.bind(tools=usual).tools.raw is usual, "it needs no other list"


# functions


def search(
    query: str,
    limit: int | None = None,
    kinds: list[Literal["a", "b"]] | None = None,
    where: dict[str, float] | None = None,
    pair: tuple[int, str] = (1, ""),
    exact: bool | float = False,
    mode: Literal["fast", 2] = "fast",
    anything: Any = None,
) -> str:
    """Searches.

    It finds what
    there is.

    Args:
        query: What to look for,
            in words: any
        limit: How many
        kinds: Of which kind
        where: Where
        pair: Two
        exact: Whether (choices: [true, 0.5])
        mode: How fast
        anything: More

    Returns:
        str: What was found.

    Raises:
        ValueError: never.
    """
    return query


class Desk:
    def book(self, day: str) -> None:
        """Books a desk.

        Args:
            day: The day.
        """


def no_docstring(a: int) -> None: ...


def not_indented(a: int) -> None:
    """Args:
    a: One
      more: or two
    """


def test_functions_are_read_as_transformers_reads_them() -> None:
    utils = pytest.importorskip(
        "transformers.utils", reason="no transformers: pip install transformers jinja2"
    )
    for function in (get_weather, search, Desk().book):
        assert open_ai_shaped(function) == utils.get_json_schema(function)


def test_what_a_function_says() -> None:
    shaped = open_ai_shaped(search)["function"]
    assert list(shaped) == ["name", "description", "parameters", "return"]
    assert shaped["description"] == "Searches.\n\nIt finds what\nthere is."
    members = shaped["parameters"]["properties"]
    assert members["query"] == {"type": "string", "description": "What to look for, in words: any"}
    assert members["exact"] == {"type": ["boolean", "number"], "enum": [True, 0.5], "description": "Whether"}
    assert shaped["parameters"]["required"] == ["query"]
    assert open_ai_shaped(no_docstring)["function"]["parameters"]["properties"] == {"a": {"type": "integer"}}
    only = open_ai_shaped(not_indented)["function"]["parameters"]["properties"]["a"]
    assert only == {"type": "integer", "description": "One more: or two"}


def bare(a): ...  # type: ignore[no-untyped-def]


def strange(a: Path) -> None: ...


def positional(a: int, /) -> None: ...


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([{"type": "function", "function": {"name": "f", "paramters": SCHEMA}}], "did you mean parameters"),
        (
            [{"name": "f", "inputshema": {}}],
            r"tools\[0\]: unknown field 'inputshema': did you mean input_schema or inputSchema",
        ),
        ([{"name": "f", "foo": 1}], "unknown field 'foo': a tool has"),
        (
            [{"function": {"name": "f"}, "parameter": {}}],
            r"tools\[0\]: unknown field 'parameter': did you mean param",
        ),
        ([{"type": "web_search", "name": "f"}], r"tools\[0\].type: expected 'function', found 'web_search'"),
        (
            [{"name": "f", "parameters": {}, "input_schema": {}}],
            "one schema, found parameters and input_schema",
        ),
        ([{"name": "f", "parameters": json.dumps(SCHEMA)}], r"tools\[0\].parameters: expected a JSON Schema"),
        ([{"name": "f"}, get_weather, Model], r"tools\[2\].function.name: 'get_weather' is there twice"),
        (OPENAI, "tools: expected a list of tools, found dict: put one tool into a list"),
        (json.dumps([OPENAI]), "tools: expected a list of tools, found str: json.loads"),
        (get_weather, "tools: expected a list of tools, found function: put one tool into a list"),
        (5, "tools: expected a list of tools, found int"),
        (
            [{"type": "function", "function": {"name": "f", "parameters": []}}],
            r"tools\[0\].function.parameters: expected a JSON Schema, found list: \[\]",
        ),
        ([json.dumps(OPENAI)], r"tools\[0\]: expected an object, found str \(json.loads reads it\)"),
        ([Path], r"tools\[0\]: expected a function or a pydantic model, found the class 'Path'"),
        ([lambda x: x], r"tools\[0\]: expected a function with a name"),
        ([bare], "the function 'bare', argument 'a': expected an annotation, found none"),
        ([strange], "the function 'strange', argument 'a': expected a type that JSON can write.*found Path"),
        ([positional], "argument 'a': expected an argument that is passed by its name"),
    ],
    ids=range(19),
)
def test_what_is_no_tool_is_refused_by_name(tools: Any, said: str) -> None:
    for take in (
        lambda: QWEN.bind(tools=tools),
        lambda: chatparsers.load(template="chatml").prepare(USER, tools=tools),
    ):
        with pytest.raises(RequestError, match=said):
            take()


def test_pydantic_models_and_arguments() -> None:
    pydantic = pytest.importorskip("pydantic", reason="no pydantic: pip install pydantic")

    class Place(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        name: str
        near: Place | None = None

    Place.model_rebuild(_types_namespace={"Place": Place})

    def go(place, note=""):  # type: ignore[no-untyped-def]
        """Goes there."""

    go.__annotations__ = {"place": Place, "note": str}
    tools = [Place, go]
    turn = QWEN.bind(tools=tools, tool_choice="go")
    assert turn.grammar() is not None
    text = '<tool_call>\n{"name": "go", "arguments": {"place": {"name": "x", "near": {"name": "y"}}}}\n</tool_call>'
    assert turn.parse(text).complete
    assert open_ai_shaped(Place)["function"]["parameters"] == {
        key: value for key, value in Place.model_json_schema().items() if key != "title"
    }
