"""From a model's files to messages: load, prepare, stream; and the errors if that does not work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from making import tool

import chatparsers
from chatparsers import RequestError
from chatparsers.chat.record import RoleMarkers

OWN = Path(__file__).parent.parent / "templates_own"
TOOL = tool("get_weather", {"city": {"type": "string"}}, ["city"], description="The weather.")
OTHER = tool("get_time", description="")
USER = {"role": "user", "content": "Weather in Oslo?"}


def own(name: str) -> Path:
    return OWN / f"{name}.jinja"


class TestSources:
    def test_a_config_and_its_folder(self, tmp_path: Path) -> None:
        config = {
            "chat_template": own("mistral-nemo").read_text(encoding="utf-8"),
            "eos_token": {"content": "</s>"},
        }
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        for source in (tmp_path, tmp_path / "tokenizer_config.json", str(tmp_path)):
            chat = chatparsers.load(source)
            assert (chat.format.name, chat.files.eos_token) == ("mistral-nemo", "</s>")

    def test_the_tool_template_serves_requests_with_tools(self, tmp_path: Path) -> None:
        templates = [
            {
                "name": "default",
                "template": "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}",
            },
            {"name": "tool_use", "template": own("hermes-2-pro").read_text(encoding="utf-8")},
        ]
        (tmp_path / "tokenizer_config.json").write_text(
            json.dumps({"chat_template": templates}), encoding="utf-8"
        )
        chat = chatparsers.load(tmp_path)
        assert chat.format.name == "hermes-2-pro"
        assert chat.prepare([USER]).prompt.startswith("[user]")
        assert "get_weather" in chat.prepare([USER], tools=[TOOL]).prompt

    def test_a_format_by_name(self) -> None:
        chat = chatparsers.load("{{ messages[0].content }}", format="llama-3-x")
        own_format = chatparsers.get_format("llama-3-x")
        assert chatparsers.load("{{ messages[0].content }}", format=own_format).format is own_format
        assert (chat.format.name, chat.detection.evidence) == ("llama-3-x", ("named by the caller",))


class TestPrepare:
    @pytest.mark.parametrize(
        ("name", "thinking", "prefix"),
        [
            ("qwen3", None, ""),
            ("qwen3", False, "<think>\n\n</think>\n\n"),
            ("minimax-m2", None, "<think>\n"),
            ("deepseek-v3-1", True, "<think>"),
            ("deepseek-v3-1", False, "<think></think>"),
            ("gpt-oss", None, "<|start|>assistant"),
            ("functionary-v3-2", None, ">>>"),
            ("hermes-2-pro", None, ""),
        ],
    )
    def test_the_prefix_is_the_prompts_end(self, name: str, thinking: bool | None, prefix: str) -> None:
        turn = chatparsers.load(own(name)).prepare([USER], tools=[TOOL], thinking=thinking)
        assert turn.prefix == prefix and turn.prompt.endswith(prefix)
        inside = prefix.strip() == "<think>"
        assert (turn.stream().region == "reasoning") is inside
        assert (turn.parse("Hm").reasoning == "Hm") is inside

    def test_from_template_to_message(self) -> None:
        turn = chatparsers.load(own("qwen3-coder")).prepare([USER], tools=[TOOL, OTHER])
        assert "get_weather" in turn.prompt and "<function=get_weather>" in str(turn.grammar())
        call = "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>"
        wire = f"Let me look.\n\n<tool_call>\n{call}\n</tool_call>"
        message = turn.parse(wire + "<|im_end|>", strict=True)
        assert (message.content, message.complete) == ("Let me look.", True)
        assert message.to_openai()["tool_calls"][0]["function"] == {
            "name": "get_weather",
            "arguments": '{"city": "Oslo"}',
        }

    def test_the_prompt_is_the_same_when_no_tool_may_be_called(self) -> None:
        chat = chatparsers.load(own("hermes-2-pro"))
        turn = chat.prepare([USER], tools=[TOOL], tool_choice="none")
        assert turn.prompt == chat.prepare([USER], tools=[TOOL]).prompt
        wire = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
        message = turn.parse(wire)
        assert (message.content, message.tool_calls) == ("", [])
        assert [diagnostic.code for diagnostic in message.diagnostics] == ["unwanted-call"]

    def test_json_answers(self) -> None:
        schema = {"type": "object", "properties": {"rain": {"type": "boolean"}}, "required": ["rain"]}
        answer = {"type": "json_schema", "json_schema": {"name": "w", "schema": schema}}
        turn = chatparsers.load(own("qwen3")).prepare([USER], response_format=answer)
        assert turn.grammar() is not None and not turn.grammar().lazy
        message = turn.parse('<think>\nHm.\n</think>\n\n```json\n{"rain": true}\n```')
        assert (message.reasoning, message.content) == ("Hm.", '{"rain": true}')


class TestRecord:
    def test_it_says_all_there_is(self) -> None:
        record = chatparsers.load(own("qwen3")).record()
        assert (record.format, record.reasoning_markers) == ("qwen3", ("<think>", "</think>"))
        assert record.roles["assistant"].before == "<|im_start|>assistant\n"
        assert record.roles["user"] == RoleMarkers("<|im_start|>user\n", "<|im_end|>\n")
        assert record.roles["system"] == RoleMarkers("<|im_start|>system\n", "<|im_end|>\n")
        assert record.roles["tool"].before == "<|im_start|>user\n<tool_response>\n"
        assert record.call_markers == ("<tool_call>",)
        assert "<|im_end|>" in record.stops

    def test_the_markers_of_reasoning_are_whole(self) -> None:
        for name in (info.name for info in chatparsers.list_formats()):
            chat = chatparsers.load("{{ messages[0].content }}", format=name)
            markers = chat.record().reasoning_markers
            assert (markers is not None) == chat.format.features.reasoning, name
            if markers is not None:
                message = chat.format.parse("\nHm.\n".join(markers))
                assert (message.reasoning.strip(), message.content) == ("Hm.", ""), (name, markers)

    def test_clean_output(self) -> None:
        raw = '<think>\nHm.\n</think>\n\nRain.\n<tool_call>\n{"name": "x", "arguments": {}}\n</tool_call><|im_end|>'
        assert chatparsers.clean_output(raw, format="qwen3") == "Rain."
        assert chatparsers.load(own("qwen3")).clean_output(raw) == "Rain."
        assert (
            chatparsers.clean_output("Hm.\n</think>\n\nRain.", format="qwen3", prefix="<think>\n") == "Rain."
        )


@pytest.mark.parametrize(
    ("messages", "found"), [([], "none"), ((), "none"), ("Hi", "str"), ({"role": "user"}, "dict")]
)
def test_a_request_needs_messages(messages: Any, found: str) -> None:
    chat = chatparsers.load("{% for m in messages %}{{ m.content }}{% endfor %}")
    with pytest.raises(
        RequestError, match=f"messages: expected a list of at least one message, found {found}"
    ):
        chat.prepare(messages)


def test_a_bridge_is_a_text_with_its_proof_or_a_witness() -> None:
    bridges = chatparsers.load(own("qwen3")).bridge
    delta = "<|im_end|>\n<|im_start|>user\n永 third question<|im_end|>\n<|im_start|>assistant\n"
    assert bridges["answer", "user"].proved and bridges["answer", "user"].delta == delta
    dropped = bridges["thought and answer", "user"]
    assert not dropped.proved and dropped.reason == "thought"
    assert str(bridges["call", "result"]).startswith("proved: ") and "thought" in str(dropped)
    assert repr(bridges).startswith("<Bridges: ")
