"""What a user gets wrong is named, with what to do; what a user may expect to be taken is taken."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers import LoadError, RequestError, TemplateError, UnknownFormat

OWN = Path(__file__).parents[1] / "templates_own"
USER = {"role": "user", "content": "Hello"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.fixture(scope="module")
def qwen() -> chatparsers.Chat:
    return chatparsers.load(OWN / "qwen3.jinja")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"enable_thinking": False},
            "thinking=False sets the switch of any template; .*template_kwargs={'enable_think",
        ),
        (
            {"reasoning_effort": "low"},
            "template's own variables go into template_kwargs={'reasoning_effort': 'low'}",
        ),
        ({"tool_chioce": "none"}, "there is no option 'tool_chioce': did you mean tool_choice?"),
        (
            {"template_kwargs": {"messages": []}},
            "template_kwargs: 'messages' is no variable for it: pass the messages",
        ),
        ({"template_kwargs": {"tools": 5}}, "'tools' is no variable for it: pass tools="),
        ({"template_kwargs": {"add_generation_prompt": False}}, "pass add_generation_prompt="),
        ({"template_kwargs": {"self": 1}}, "'self' is no variable for it"),
        ({"template_kwargs": {"prompt": 1}}, "'prompt' is no variable for it"),
        ({"template_kwargs": {"history": 1}}, "'history' is no variable for it"),
        ({"template_kwargs": [1]}, r"template_kwargs: expected an object of variables by name, found \[1\]"),
        ({"template_kwargs": {5: 1}}, "template_kwargs: expected an object of variables by name"),
    ],
)
def test_an_option_that_does_nothing_is_refused(
    qwen: chatparsers.Chat, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        qwen.prepare([USER], **options)
    with pytest.raises(RequestError, match=said):
        qwen.conversation([USER], **options)


def test_a_variable_that_the_template_does_not_read_is_named_once() -> None:
    chat = chatparsers.load(OWN / "qwen3.jinja")
    with pytest.warns(
        UserWarning, match="reads no variable 'enable_thinkng': did you mean enable_thinking"
    ) as said:
        for _ in range(2):
            chat.prepare([USER], template_kwargs={"enable_thinkng": False})
    assert len(said) == 1 and said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chat.prepare([USER], template_kwargs={"enable_thinking": False, "bos_token": "x"})


def history(arguments: Any) -> list[dict[str, Any]]:
    call = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "name": "f", "content": "ok"},
    ]


@pytest.mark.parametrize("arguments", ["{bad}", '{"a": 1', "[1]", "5", '{"a": 1} x', 5, [1], "[" * 100_000])
@pytest.mark.parametrize("name", ["qwen3", "mistral-nemo", "deepseek-v3", "gemma"])
def test_arguments_that_are_no_json_object_are_refused(name: str, arguments: Any) -> None:
    own = OWN / f"{name}.jinja"
    chat = chatparsers.load(own, format=name) if own.exists() else chatparsers.load(template=name)
    with pytest.raises((TemplateError, RequestError), match=r"tool_calls\[0\].*JSON object"):
        chat.prepare(history(arguments), tools=[TOOL])
    for right in ("", None, "{}", {}, ' {"a": 1} '):
        chat.prepare(history(right), tools=[TOOL])


def test_a_message_of_ours_is_taken(qwen: chatparsers.Chat) -> None:
    text = '<think>\nHm\n</think>\n\nHi.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    message = qwen.format.parse(text, tools=[TOOL])
    plain = [USER, message.to_openai(), {"role": "tool", "content": "ok"}]
    ours = [USER, message, {"role": "tool", "content": "ok"}]
    expected = qwen.prepare(plain, tools=[TOOL]).prompt
    assert '"name": "f"' in expected
    assert qwen.prepare(ours, tools=[TOOL]).prompt == expected
    conversation = qwen.conversation(ours, tools=[TOOL])
    assert conversation.text == expected
    conversation.replace(ours)
    assert conversation.text == expected
    assert qwen.format.render(message) == qwen.format.render(message.to_openai())
    assert str(qwen.encode(ours)) == str(qwen.encode(plain))


def test_a_message_in_other_shapes() -> None:
    hermes = chatparsers.get_format("hermes-2-pro")
    text = 'Hi.<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    message = hermes.parse(text + text[3:-20], tools=[TOOL])
    whole, cut_off = message.tool_calls
    assert (whole.parsed_arguments, cut_off.parsed_arguments) == ({"a": 1}, None)
    assert message.to_anthropic() == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Hi."},
            {"type": "tool_use", "id": whole.id, "name": "f", "input": {"a": 1}},
        ],
    }
    huge = hermes.parse(text.replace("1", "1" * 5_000), tools=[TOOL]).tool_calls[0]
    assert huge.complete and huge.parsed_arguments is None
    thought = chatparsers.get_format("qwen3").parse("<think>\nHm\n</think>\n\nHi.")
    assert thought.to_anthropic()["content"][0] == {"type": "thinking", "thinking": "Hm", "signature": ""}


@pytest.mark.parametrize(
    "bare", [SCHEMA, {"anyOf": [SCHEMA]}, {"type": ["object"], **{"properties": {}}}, {"enum": [1]}]
)
def test_a_json_schema_is_a_response_format(bare: dict[str, Any]) -> None:
    qwen = chatparsers.get_format("qwen3")
    spelt = {"type": "json_schema", "json_schema": {"name": "answer", "schema": bare}}
    assert str(qwen.bind(response_format=bare).grammar()) == str(qwen.bind(response_format=spelt).grammar())
    flat = {"type": "json_schema", "name": "answer", "schema": bare}
    assert str(qwen.bind(response_format=flat).grammar()) == str(qwen.bind(response_format=spelt).grammar())


QWEN = (OWN / "qwen3.jinja").read_text(encoding="utf-8")
UNLOADED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a repository": (
        {"source": "Qwen/Qwen3-8B"},
        LoadError,
        r"nothing is downloaded.*hf download Qwen/Qwen3-8B .*--local-dir Qwen3-8B, then load\('Qwen3-8B'\)",
    ),
    "a built-in template": (
        {"source": "qwen3"},
        LoadError,
        r"the built-in template of that name is load\(template='qwen3'\)",
    ),
    "a format": (
        {"source": "deepseek_v31"},
        LoadError,
        r"the format of that name is get_format\('deepseek_v31'\)",
    ),
    "no file": ({"source": "model.gguf"}, LoadError, "no such file; expected a model folder"),
    "no folder": ({"source": Path("nothing")}, LoadError, "no such file"),
    "an empty folder": ({"source": Path()}, LoadError, "holds no model files"),
    "a template's text as its name": (
        {"template": QWEN},
        LoadError,
        "a template's own text is the first argument of load",
    ),
    "a template that is broken": ({"source": "{{ 1 }}\n{% if %}"}, TemplateError, "line 2"),
    "a misspelt format": ({"source": "{{ 1 }}", "format": "qwen3-codr"}, UnknownFormat, "qwen3-coder"),
    "a number as format": (
        {"source": "{{ 1 }}", "format": 3},
        RequestError,
        "format: expected a format or its name, found int",
    ),
}


@pytest.mark.parametrize("case", UNLOADED)
def test_what_cannot_be_loaded(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given, kind, said = UNLOADED[case]
    with pytest.raises(kind, match=said) as error:
        chatparsers.load(**given).prepare([USER])
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("name", [None, 5, chatparsers.get_format("qwen3")], ids=["none", "number", "format"])
def test_what_is_no_name_of_a_format(name: Any) -> None:
    with pytest.raises(UnknownFormat, match="expected the name of a format, found"):
        chatparsers.get_format(name)
    with pytest.raises(UnknownFormat, match="expected the name of a format, found"):
        chatparsers.unregister(name)
    if not isinstance(name, chatparsers.Format):
        with pytest.raises(chatparsers.DefinitionError, match="expected a Format or a FormatRef, found"):
            chatparsers.register(name)
