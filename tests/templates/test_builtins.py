"""The built-in templates: found by name, nothing lost in them, and what they write is read back."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


import chatparsers
from chatparsers import LoadError
from chatparsers.detection.names import _FAMILIES, known
from chatparsers.formats._catalog import FORMATS
from chatparsers.templates.builtins import builtin_names, builtin_source
from chatparsers.templates.probe.edges import edges_of
from chatparsers.testing.rendering import exact
from chatparsers.testing.scenarios import raw_stops, scenarios

NAMES = builtin_names()
HISTORY = [{"role": "user", "content": "Please go on."}]


def test_every_format_has_a_small_one_and_every_row_leads_somewhere() -> None:
    formats = {row[0] for row in FORMATS}
    assert formats <= set(NAMES)
    families = {"chatml", "llama-2", "llama-3", "glm-4", "mistral", "gemma", "phi", "deepseek", "generic"}
    assert families <= set(NAMES)
    for pattern, template in _FAMILIES:
        assert template in NAMES, pattern
    assert [name for name in NAMES if len(builtin_source(name).splitlines()) > 40] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_they_write_is_read_back(name: str) -> None:
    """Through the whole matrix: the message goes into the history, the answer's text is cut out and parsed."""
    chat = chatparsers.load(template=name, eos_token="</s>")
    read = 0
    for scenario in scenarios(chat.syntax if name in ("chatml", "generic") else chat.format):
        format = chat.syntax if scenario.tools else chat.format
        held = any(stop in call.arguments for stop in raw_stops(format) for call in scenario.calls)
        if scenario.opened or scenario.after or held or scenario.name.startswith("1-MB"):
            continue
        if scenario.name == "nested" and name == "minimax-m3":
            continue  # the empty values of nested elements are alike
        if scenario.reasoning and not format.features.reasoning:
            continue
        tools = list(scenario.tools) or None
        given = chat.renderer(bool(tools)).rewrite([*HISTORY, scenario.message()], tools)
        if given.messages[-2]["role"] == "assistant":
            continue  # text and call, or two calls, as turns of their own
        _, opened, wire = chat.template().exchange(
            given.messages[-1], history=given.messages[:-1], tools=given.tools, thinking=scenario.thinking
        )
        turn = format.bind(tools=tools, prefix=edges_of(format).opening(opened), thinking=scenario.thinking)
        found = turn.parse(wire.rstrip() + format.stops[0] if name == "generic" else wire)
        wanted = [(call.name, exact(call.arguments)) for call in scenario.calls]
        assert [(call.name, exact(call.arguments)) for call in found.tool_calls] == wanted, scenario.name
        assert (found.content, found.complete) == (scenario.content, True), (scenario.name, wire)
        assert found.reasoning in (scenario.reasoning, ""), scenario.name
        read += 1
    assert read >= 6


@pytest.mark.parametrize(
    ("model", "template", "format"),
    [
        ("Qwen3-8B-Q4_K", "qwen3", "qwen3"),
        ("Meta-Llama-3-8B", "llama-3", "content-only"),
        ("Meta-Llama-3.1-8B-Instruct", "llama-3-x", "llama-3-x"),
        ("llama-2-7b-chat", "llama-2", "content-only"),
        ("yi-34b", "chatml", "content-only"),
        ("DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1", "deepseek-r1"),
        ("Hermes-3-Llama-3.1-8B", "hermes-2-pro", "hermes-2-pro"),
        ("Mistral-7B-Instruct-v0.2", "mistral", "content-only"),
        ("Mistral-7B-Instruct-v0.3", "mistral-nemo", "mistral-nemo"),
        ("gemma-2-9b-it", "gemma", "content-only"),
        ("Phi-3.5-mini-instruct", "phi", "content-only"),
        ("GLM-4.7-Flash", "glm-4-7", "glm-4-7"),
        ("Trinity-Mini-Q4", "trinity", "trinity"),
        ("Trinity-Large-Thinking", "qwen3-coder", "qwen3-coder"),
        ("Llama-xLAM-2-8b-fc-r", "xlam", "xlam"),
        ("GigaChat3.1-10B-A1.8B", "gigachat-3-1", "gigachat-3-1"),
        ("LongCat-Flash-Thinking-2601", "longcat-lite", "longcat-lite"),
        ("Muse-Glimmer-30B", "muse-glimmer", "muse-glimmer"),
        ("step3-fp8", "step-3", "step-3"),
        ("Laguna-XS.2-Q4", "laguna-xs-2", "laguna-xs-2"),
        ("Laguna-XS-2.1", "laguna", "laguna"),
        ("Ring-3.0-flash", "ling-3", "ling-3"),
        ("Spark-X2.5-4B", "spark-2-5", "spark-2-5"),
        ("phi-4-Q4_K", "phi-4", "content-only"),
        ("somebodys-model", "chatml", "content-only"),
    ],
)
def test_a_model_without_a_template(tmp_path: Path, model: str, template: str, format: str) -> None:
    folder = tmp_path / model
    folder.mkdir()
    (folder / "tokenizer_config.json").write_text('{"eos_token": "</s>"}', encoding="utf-8")
    chat = chatparsers.load(folder)
    assert (chat.template().source, chat.format.name) == (builtin_source(template), format)
    why = "nothing is known of the model" if model.startswith("some") else f"by the model's name: {model}"
    assert chat.detection.evidence[0] == f"the built-in template {template!r}: {why}"
    assert "stand-in" in chat.detection.evidence[1]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        turn = chat.prepare([{"role": "user", "content": "Hi"}], tools=[{"name": "f"}])
    assert ["small stand-in" in str(one.message) for one in told] == [True] * ("tools" in turn.polyfills)


def test_one_by_name_or_by_format_stands_for_the_models_own(own_folder: Path, tmp_path: Path) -> None:
    chat = chatparsers.load(own_folder / "qwen3.jinja", template="Llama_3_x")
    assert (chat.template().source, chat.format.name) == (builtin_source("llama-3-x"), "llama-3-x")
    assert chatparsers.load(template="chatml", format="qwen3").format.name == "qwen3"
    (tmp_path / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    chat = chatparsers.load(tmp_path, format="granite-4")
    assert chat.template().source == builtin_source("granite-4")
    with pytest.raises(LoadError, match=r"no built-in template is named 'lama-3': .*llama-3"):
        chatparsers.load(template="lama-3")
    with pytest.raises(LoadError, match="expected a model's folder or file"):
        chatparsers.load()


def test_a_file_that_carries_one_is_of_its_format(tmp_path: Path) -> None:
    """As tiny models do. Calls are left to the polyfills, so the renderings alone do not show the format."""
    formats = {info.name for info in chatparsers.list_formats()}
    for name in NAMES:
        path = tmp_path / f"{name}.jinja"
        path.write_text(builtin_source(name) + "\n", encoding="utf-8")
        if name in formats:
            assert chatparsers.load(path).detection.name == name


@pytest.mark.parametrize(
    ("names", "format"),
    [
        (["Qwen/Qwen3-8B"], "qwen3"),  # no format's pattern is the publisher's name
        (["mistralai/Mistral-Nemo-Instruct-2407"], "mistral-nemo"),
        (["Qwen3-Coder-30B-A3B"], "qwen3-coder"),  # both are found at the same place
        (["Hermes-3-Llama-3.1-8B"], "hermes-2-pro"),  # the one to the left
        (["nothing", "NousResearch/Hermes-3-Llama-3.1-8B"], "hermes-2-pro"),
        (["llama-3-firefunction-v2"], "firefunction-v2"),
        (["c4ai-command-r7b-12-2024"], "command-r7b"),
        (["c4ai-command-r-v01"], "command-r-plus"),
        (["granite-3.3-8b-instruct"], "granite"),
        (["granite-guardian-3.1-8b"], ""),
        (["granite-3.0-guardian"], ""),
        (["OpenHermes-2.5-Mistral-7B"], ""),
        (["Apriel-1.6-15b-Thinker"], "apriel-1-6"),
        (["Apriel-5B"], "apriel-1-5"),
        (["TinyLlama-1.1B", "x"], ""),
    ],
)
def test_formats_name_their_models(names: list[str], format: str) -> None:
    found = known(names)
    assert (found.format if found else "") == format
    assert found is None or found.template == format or not format
