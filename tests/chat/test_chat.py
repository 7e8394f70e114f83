"""From a model's files to messages: load, prepare, stream; and the errors if that does not work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from making import tool

import chatparsers
from chatparsers import LoadError, RequestError, TemplateError, UnknownFormat
from chatparsers.chat.record import RoleMarkers

OWN = Path(__file__).parent.parent / "templates_own"
TOOL = tool("get_weather", {"city": {"type": "string"}}, ["city"], description="The weather.")
OTHER = tool("get_time", description="")
USER = {"role": "user", "content": "Weather in Oslo?"}


def own(name: str) -> Path:
    return OWN / f"{name}.jinja"


class TestSources:
    def test_a_jinja_file(self) -> None:
        chat = chatparsers.load(own("qwen3"))
        assert (chat.format.name, chat.tokenizer) == ("qwen3", None)

    def test_template_text(self) -> None:
        assert chatparsers.load(own("kimi-k2").read_text(encoding="utf-8")).format.name == "kimi-k2"

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

    def test_tokens_given_by_hand(self) -> None:
        chat = chatparsers.load(
            "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", bos_token="<s>", eos_token="</s>"
        )
        assert chat.prepare([USER]).prompt == "<s>Weather in Oslo?</s>"

    def test_a_format_by_name(self) -> None:
        chat = chatparsers.load("{{ messages[0].content }}", format="llama-3-x")
        own_format = chatparsers.get_format("llama-3-x")
        assert chatparsers.load("{{ messages[0].content }}", format=own_format).format is own_format
        with pytest.raises(RequestError, match="format: expected a format or its name, found int"):
            chatparsers.load("{{ messages[0].content }}", format=3)  # type: ignore[arg-type]
        assert (chat.format.name, chat.detection.evidence) == ("llama-3-x", ("named by the caller",))

    @pytest.mark.parametrize(
        ("make", "error", "said"),
        [
            (lambda tmp: tmp / "nothing", LoadError, "no such file"),
            (lambda tmp: tmp, LoadError, "holds no model files"),
            (lambda tmp: str(tmp / "x.bin"), LoadError, "no such file"),
        ],
    )
    def test_nothing_there(self, tmp_path: Path, make: Any, error: type[Exception], said: str) -> None:
        with pytest.raises(error, match=said):
            chatparsers.load(make(tmp_path))

    def test_a_misspelt_format(self) -> None:
        with pytest.raises(UnknownFormat, match="qwen3-coder"):
            chatparsers.load("{{ 1 }}", format="qwen3-codr")

    def test_a_broken_template(self) -> None:
        with pytest.raises(TemplateError, match="line 2"):
            chatparsers.load("{{ 1 }}\n{% if %}").prepare([USER])


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
            ("hermes-2-pro", None, ""),
        ],
    )
    def test_the_prefix_is_the_prompts_end(self, name: str, thinking: bool | None, prefix: str) -> None:
        turn = chatparsers.load(own(name)).prepare([USER], tools=[TOOL], thinking=thinking)
        assert turn.prefix == prefix
        assert turn.prompt.endswith(prefix)

    def test_an_open_thought_starts_the_stream_inside_reasoning(self) -> None:
        stream = chatparsers.load(own("minimax-m2")).prepare([USER]).stream()
        assert stream.region == "reasoning"
        assert stream.feed("Hm") == [chatparsers.Reasoning("Hm")]

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

    def test_the_answer_goes_back_into_the_conversation(self) -> None:
        chat = chatparsers.load(own("hermes-2-pro"))
        wire = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
        first = chat.prepare([USER], tools=[TOOL])
        answer = first.parse(wire).to_openai()
        result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "rain"}
        second = chat.prepare([USER, answer, result], tools=[TOOL])
        assert wire in second.prompt
        assert second.parse(wire).tool_calls[0].id != first.parse(wire).tool_calls[0].id

    def test_continued_content(self) -> None:
        half = {"role": "assistant", "content": "It is rai"}
        turn = chatparsers.load(own("hermes-2-pro")).prepare([USER, half], continue_final_message=True)
        assert turn.prompt.endswith("It is rai") and turn.prefix == "It is rai"
        assert turn.parse("ning.<|im_end|>").content == "ning."

    def test_continued_reasoning(self) -> None:
        half = {"role": "assistant", "content": "", "reasoning_content": "Hm, the"}
        turn = chatparsers.load(own("qwen3")).prepare([USER, half], continue_final_message=True)
        assert turn.prompt.endswith("Hm, the")
        message = turn.parse(" sky.\n</think>\n\nRain.")
        assert (message.reasoning, message.content) == (" sky.", "Rain.")

    def test_the_prompt_is_the_same_when_no_tool_may_be_called(self) -> None:
        chat = chatparsers.load(own("hermes-2-pro"))
        turn = chat.prepare([USER], tools=[TOOL], tool_choice="none")
        assert turn.prompt == chat.prepare([USER], tools=[TOOL]).prompt
        wire = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
        message = turn.parse(wire)
        assert (message.content, message.tool_calls) == ("", [])
        assert [diagnostic.code for diagnostic in message.diagnostics] == ["unwanted-call"]

    @pytest.mark.parametrize(
        ("request_", "said"),
        [
            ({"tools": [{"type": "function"}]}, r"tools\[0\].function.name: expected a name"),
            ({"tools": ["x"]}, r"tools\[0\]: expected an object, found str"),
            ({"tools": [TOOL, TOOL]}, r"tools\[1\].function.name: 'get_weather' is there twice"),
            ({"tool_choice": "required"}, "needs tools"),
            ({"tools": [TOOL], "tool_choice": "get_wether"}, "did you mean get_weather"),
            ({"tools": [TOOL], "tool_choice": {"function": {"name": "x"}}}, "no tool is named 'x'"),
            ({"response_format": {"type": "xml"}}, "response_format.type"),
        ],
    )
    def test_requests_that_contradict_themselves(self, request_: dict[str, Any], said: str) -> None:
        with pytest.raises(RequestError, match=said):
            chatparsers.load("{{ messages[0].content }}", format="hermes-2-pro").prepare([USER], **request_)

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
            chat = chatparsers.load(own("qwen3"), format=name)
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


def test_a_real_model_end_to_end(real_templates: list[Path], amount: Callable[[int, int, int], int]) -> None:
    seen, count = 0, len(real_templates)
    for path in Random(3).sample(real_templates, min(count, amount(8, count, count))):
        chat = chatparsers.load(path)
        if not chat.detection or not chat.format.features.tools:
            continue
        turn = chat.prepare([USER], tools=[TOOL])
        grammar = turn.grammar()
        assert turn.prompt and grammar is not None
        assert turn.parse("Plain words.").text == "Plain words."
        seen += 1
    assert seen > 0


@pytest.mark.parametrize(
    ("messages", "found"), [([], "none"), ((), "none"), ("Hi", "str"), ({"role": "user"}, "dict")]
)
def test_a_request_needs_messages(messages: Any, found: str) -> None:
    chat = chatparsers.load("{% for m in messages %}{{ m.content }}{% endfor %}")
    with pytest.raises(
        RequestError, match=f"messages: expected a list of at least one message, found {found}"
    ):
        chat.prepare(messages)


def test_the_fast_tokenizer_of_transformers_is_taken_for_its_backend() -> None:
    class Fast:
        def __init__(self, backend: object) -> None:
            self.backend_tokenizer = backend

    from tokenizers import Tokenizer, models

    backend = Tokenizer(models.BPE())
    assert chatparsers.load("{{ 'x' }}", tokenizer=Fast(backend)).tokenizer is backend


def test_detection_takes_a_path_as_load_does(tmp_path: Path) -> None:
    path = tmp_path / "own.jinja"
    path.write_text((OWN / "hermes-2-pro.jinja").read_text(encoding="utf-8"), encoding="utf-8")
    assert chatparsers.detect(path).name == chatparsers.detect(str(path)).name == "hermes-2-pro"
