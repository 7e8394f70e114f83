"""A chat whose template says little: the calls that it reads, and its warnings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers import RequestError

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
USER = [{"role": "user", "content": "Weather in Oslo?"}]
OWN = Path(__file__).parents[1] / "templates_own"
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# A template that shows tools and calls in its own way, which no format reads: names in capitals.
STRANGE = (
    "{% if tools %}(tools {{ tools | tojson }}){% endif %}{% for m in messages %}({{ m.role }} {{ m.content }}"
    "{% for c in m.tool_calls or [] %}~{{ c.function.name | upper }}~{{ c.function.arguments | tojson }}~{% endfor %})"
    "{% endfor %}{% if add_generation_prompt %}(assistant {% endif %}"
)


def called(message: chatparsers.streams.message.Message) -> list[tuple[str, str]]:  # type: ignore[name-defined]
    return [(call.name, call.arguments) for call in message.tool_calls]


# A template that shows the tools, and of calls nothing.
TOOLS_ALONE = (
    "{% if tools %}(tools {{ tools | tojson }}){% endif %}{% for m in messages %}({{ m.role }} {{ m.content }})"
    "{% endfor %}{% if add_generation_prompt %}(assistant {% endif %}"
)


def test_what_a_polyfill_teaches_is_told_and_read() -> None:
    """Where a polyfill writes the calls of the history, the prompt tells their form, also before the first call."""
    chat = chatparsers.load(TOOLS_ALONE)
    call = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    history = [
        *USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "content": "Rain."},
    ]
    wire = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turn = chat.prepare(history, tools=[TOOL])
        first = chat.prepare(USER, tools=[TOOL])
    assert "tool_calls" in turn.polyfills and wire in turn.prompt
    for prepared in (first, turn):
        assert "in exactly this form" in prepared.prompt and "tools" in prepared.polyfills
        assert called(prepared.parse(wire)) == [("get_weather", "{}")]
    with pytest.warns(UserWarning, match="tools are not read"):
        assert not chat.prepare(USER, tools=[TOOL], polyfills=False).parse(wire).tool_calls


class TestPolyfilledTools:
    def test_calls_are_asked_for_read_and_constrained(self) -> None:
        chat = chatparsers.load(CHATML)
        turn = chat.prepare(USER, tools=[TOOL], tool_choice="required")
        assert (turn.format.name, turn.polyfills) == ("hermes-2-pro", ("tools",))
        wire = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
        assert (
            '<tool_call>\n{"name": "tool_name", "arguments": {"argument_name": "value"}}\n</tool_call>'
            in turn.prompt
        )
        assert called(turn.parse(wire + "<|im_end|>", strict=True)) == [("get_weather", "{}")]
        assert "get_weather" in str(turn.grammar())
        assert chat.prepare(USER).format.name == "content-only"

    @pytest.mark.parametrize(
        ("name", "format"),
        [
            ("Qwen2.5-7B-Instruct-Q4_K_M", "qwen3"),
            ("Qwen3-Coder-30B-A3B-Instruct", "qwen3-coder"),
            ("my-own-finetune", "content-only"),
        ],
    )
    def test_the_models_name_tells_its_format(self, tmp_path: Path, name: str, format: str) -> None:
        path = tmp_path / f"{name}.jinja"
        path.write_text(CHATML, encoding="utf-8")
        chat = chatparsers.load(path)
        assert chat.format.name == format
        assert format == "content-only" or f"the model's name: {name}" in chat.detection.evidence
        assert "<|im_end|>" in chat.format.stops
        own = (OWN / "llama-3-x.jinja").read_text(encoding="utf-8")
        path.write_text(own, encoding="utf-8")  # which shows its calls, and that is stronger
        assert chatparsers.load(path).format.name == "llama-3-x"


class TestAloud:
    @pytest.mark.parametrize("choice", ["required", "get_weather", {"function": {"name": "get_weather"}}])
    def test_a_call_that_nobody_could_read_is_refused(self, choice: Any) -> None:
        with pytest.raises(RequestError, match="no call could be read, as no format explains the template"):
            chatparsers.load(STRANGE).prepare(USER, tools=[TOOL], tool_choice=choice)
        with pytest.raises(RequestError, match="the template shows none and the polyfill is off"):
            chatparsers.load(CHATML, polyfills=False, format="qwen3").prepare(
                USER, tools=[TOOL], tool_choice=choice
            )

    def test_tools_that_are_not_read_are_warned_of_once(self) -> None:
        chat = chatparsers.load(STRANGE)
        with pytest.warns(
            UserWarning, match=r"tools are not read: .*no format explains .*name one with load"
        ):
            chat.prepare(USER, tools=[TOOL])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chat.prepare(USER, tools=[TOOL])
            chat.prepare(USER, tools=[TOOL], tool_choice="none")
            chatparsers.load(CHATML).prepare(USER, tools=[TOOL])

    def test_thinking_without_a_switch(self) -> None:
        chat = chatparsers.load(OWN / "hermes-2-pro.jinja")
        with pytest.warns(UserWarning, match="thinking=True: .*has no switch"):
            chat.prepare(USER, thinking=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chat.prepare(USER, thinking=False)
            chatparsers.load(OWN / "qwen3.jinja").prepare(USER, thinking=False)
