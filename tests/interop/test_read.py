"""Response templates become formats: what they read, in every cut, what they generate, and what is refused."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers import DefinitionError, Format, LoadError
from chatparsers.interop import read_response_template
from chatparsers.testing import check_cuts
from chatparsers.testing.chunkings import characters, random_cuts

from . import response_templates as templates
from .template_messages import TOOLS

WEATHER, TIME = ("get_weather", {"city": "Oslo", "days": 3}), ("get_time", {})
JSON_CALLS = (
    '\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}\n</tool_call>'
    '\n<tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
)
TAG_CALLS = (
    "\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
    "</function>\n</tool_call>\n<tool_call>\n<function=get_time>\n</function>\n</tool_call>"
)
GEMMA_CALLS = (
    '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>'
    "<|tool_call>call:get_time{}<tool_call|>"
)
LISTED = (
    '<|ACT|>[\n {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo", "days": 3}},\n'
    ' {"tool_call_id": "1", "tool_name": "get_time", "parameters": {}}\n]<|END_ACT|>'
)
HEADERS = (
    '<call:functions.get_weather:0>{"city": "Oslo", "days": 3}</call><call:functions.get_time:1>{}</call>'
)

BEAM_CALLS = (
    '<|start|>assistant to=get_weather<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="city">\n'
    'Oslo\n<rfl:parameter name="days">\n3\n</rfl:parameter><|call|>'
    "<|start|>assistant to=get_time<|channel|>analysis<|message|><|call|>"
)

CHANNEL_CALLS = (
    'to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Oslo", "days": 3}<|call|>'
    "to=functions.get_time<|channel|>commentary json<|message|>{}<|call|>"
)

PYTHON_CALLS = "<|tool_call_start|>[get_weather(city='Oslo', days=3), get_time()]<|tool_call_end|>"
AGAIN_CALLS = (
    '<tool_call><function=get_weather><a.city kind="text">Oslo</a.city><a.days>3\n</a.days></function></tool_call>'
    "<tool_call><function=get_time></function></tool_call>"
)
NEXT_CALLS = '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 3}[TOOL_CALLS]get_time[ARGS]{}'

ROWS: list[tuple[dict[str, Any], str, str, str, list[Any]]] = [
    (templates.JSON, "<think>\nHm.\n</think>\n\nLook." + JSON_CALLS + "<|im_end|>", "Look.", "Hm.", [WEATHER, TIME]),
    (templates.JSON, "Look at\n\nit.\n<|im_end|>\n<|endoftext|>", "Look at\n\nit.", "", []),
    (templates.TAGS, "<think>\nHm.\n</think>\n\nLook." + TAG_CALLS + "<|im_end|>", "Look.", "Hm.", [WEATHER, TIME]),
    (templates.TAGS, "Use <tool_call>, then.", "Use <tool_call>, then.", "", []),
    (templates.GEMMA, "<|channel>thought\nHm.<channel|>Look." + GEMMA_CALLS + "<turn|>", "Look.", "Hm.",
        [WEATHER, TIME]),
    (templates.BEAM, "<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>Look.<|end|>" + BEAM_CALLS,
        "Look.", "Hm.", [WEATHER, TIME]),
    (templates.LIST, "<|PLAN|>Hm.<|END_THINK|><|SAY|>Look.<|END_SAY|>" + LISTED, "Look.", "Hm.", [WEATHER, TIME]),
    (templates.LINES, "Look.[CALL get_weather]\ncity: Oslo\ndays: 3[END]", "Look.", "", [WEATHER]),
    (templates.LINES, "[CALL get_time] args\n[END]", "", "", [TIME]),
    (templates.HEADER, "Look." + HEADERS + "<end>", "Look.", "", [WEATHER, TIME]),
    (templates.CHANNELS, "<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>Look.<|return|>"
        + CHANNEL_CALLS, "Look.", "Hm.", [WEATHER, TIME]),
    (templates.OPENED, "<think>Hm.</think>Look." + JSON_CALLS + "<|im_end|>", "Look.", "Hm.", [WEATHER, TIME]),
    (templates.KEYWORDS, "<think>Hm.</think>Look." + PYTHON_CALLS, "Look.", "Hm.", [WEATHER, TIME]),
    (templates.CALL_LIST, "Look." + PYTHON_CALLS + "<|im_end|>", "Look.", "", [WEATHER, TIME]),
    (templates.AGAIN, "Look." + AGAIN_CALLS, "Look.", "", [WEATHER, TIME]),
    (templates.NEXT, "Look." + NEXT_CALLS + "<|im_end|>", "Look.", "", [WEATHER, TIME]),
]  # fmt: skip


IDS = {LISTED: ["0", "1"], HEADERS: ["functions.get_weather:0", "functions.get_time:1"]}
"""The ids that calls of a text have on the wire."""


def read(spec: dict[str, Any]) -> Format:
    return read_response_template(json.loads(json.dumps(spec)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][:30])
def test_what_it_reads(row: tuple[dict[str, Any], str, str, str, list[Any]]) -> None:
    spec, text, content, reasoning, calls = row
    turn = read(spec).bind(tools=TOOLS, id_seed="x")
    message = check_cuts(turn, text, [characters(text), *random_cuts(text, 40)])
    assert (message.content, message.reasoning) == (content, reasoning)
    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == calls
    assert message.complete and all(call.complete for call in message.tool_calls)
    for part, ids in IDS.items():
        assert part not in text or [call.id for call in message.tool_calls] == ids


@pytest.mark.parametrize("name", ["JSON", "TAGS", "GEMMA", "LIST", "LINES", "HEADER"])
def test_the_grammar_has_the_names_and_the_markers(name: str) -> None:
    """It is a format as any other: its grammar is written in every dialect, and its streams are pickled."""
    spec = getattr(templates, name)
    turn = read(spec).bind(tools=TOOLS, tool_choice="required")
    for dialect in ("gbnf", "lark"):
        text = re.sub(r'" "', "", str(turn.grammar(dialect)))
        assert "get_weather" in text and "city" in text
    assert read(spec) == read(spec), "equal templates share their compiled programs"


def changed(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(spec)
    *parents, last = path.split(".")
    at = found
    for name in parents:
        at = at[name]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return found


REFUSED = [
    (templates.JSON, "version", 2, "response_template.version: expected 1, found 2"),
    (templates.JSON, "field", {}, "response_template.field: expected one of version, defaults,"),
    (templates.JSON, "fields.mood", {}, "response_template.fields.mood: a message has only content,"),
    (templates.JSON, "fields.content.shape", 1, "response_template.fields.content.shape: expected one of open,"),
    (templates.JSON, "fields.content.content", "json", "fields.content.content: expected text, found 'json'"),
    (templates.JSON, "fields.thinking", templates.THOUGHT, "fields.thinking: there is another field of reasoning"),
    (templates.JSON, "fields.reasoning_content.open", None, "fields.reasoning_content: reasoning needs an opener"),
    (templates.JSON, "fields.tool_calls.open_pattern", "(?<=x)<a>", "open_pattern: assert has no counterpart"),
    (templates.JSON, "fields.tool_calls.open_pattern", "(<a>)+", "open_pattern: only one class of characters can be"),
    (templates.JSON, "fields.tool_calls.open_pattern", "<a", None),
    (templates.JSON, "fields.tool_calls.open_pattern", "(", "open_pattern: no regular expression"),
    (templates.JSON, "fields.tool_calls.open", "<a>", "fields.tool_calls.open: there is also open_pattern"),
    (templates.JSON, "fields.tool_calls.transform", None, "fields.tool_calls.transform: expected the object of a call"),
    (templates.JSON, "fields.tool_calls.transform.function", "call {content}", "transform.function: expected one"),
    (templates.JSON, "fields.tool_calls.transform.function", {"name": "{content.n}"}, "transform.function: expected"),
    (templates.JSON, "fields.tool_calls.content", "text", "fields.tool_calls.transform: expected the name and the"),
    (templates.JSON, "fields.tool_calls.join", ",", "fields.tool_calls.join: calls are no text"),
    (templates.JSON, "fields.content.close_pattern", r"<\|.*\|>", "content.close: expected a pattern of literals"),
    (templates.TAGS, "fields.tool_calls.content_args.tag_pattern", "(?P<key>a)", "tag_pattern: expected the groups"),
    (templates.TAGS, "fields.tool_calls.content_args.merge_duplicates", True, "merge_duplicates: an argument that"),
    (templates.TAGS, "fields.tool_calls.content_args.value_parser", {"name": "int"}, "value_parser: expected text"),
    (templates.TAGS, "fields.tool_calls.close_pattern", None, "fields.tool_calls: arguments one by one need a closer"),
    (templates.GEMMA, "fields.tool_calls.content_args.string_delims", [["<", ">"]], "string_delims: expected JSON, or"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "path", "value", "why"), REFUSED, ids=[f"{row[1]}={row[2]}" for row in REFUSED]
)
def test_what_is_refused_names_its_place(
    spec: dict[str, Any], path: str, value: Any, why: str | None
) -> None:
    if why is None:
        read(changed(spec, path, value))
        return
    with pytest.raises(DefinitionError, match=re.escape(why)):
        read(changed(spec, path, value))


TEMPLATE = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}\n<do>\n{{ c.function | tojson }}\n</do>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def model(folder: Path, **config: Any) -> Path:
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE, **config}))
    return folder


def test_load_uses_it_before_the_analysis(tmp_path: Path) -> None:
    """No format of the registry has these calls, and the response template comes before the analysis."""
    spec = changed(templates.JSON, "fields.tool_calls.open_pattern", r"\s*<do>")
    spec = changed(spec, "fields.tool_calls.close", "</do>")
    assert chatparsers.load(model(tmp_path)).detection.name.startswith("auto:")
    chat = chatparsers.load(model(tmp_path, response_template=spec))
    assert chat.detection.name == chat.format.name == "response-template"
    assert chat.detection.evidence[0] == "read from the model's response_template"
    assert chatparsers.detect(tmp_path).name == "response-template"
    turn = chat.prepare([{"role": "user", "content": "Hi"}], tools=TOOLS)
    message = turn.parse('Look.\n<do>\n{"name": "get_time", "arguments": {}}\n</do><|im_end|>')
    assert (message.content, [call.name for call in message.tool_calls]) == ("Look.", ["get_time"])
    assert "<|im_end|>" in turn.stops
    (tmp_path / "response_template.json").write_text(json.dumps(spec))  # a file of its own comes first
    assert chatparsers.load(model(tmp_path, response_template={})).detection.name == "response-template"


def test_load_does_not_trust_it(tmp_path: Path) -> None:
    """A response template that does not read the template's own turns does not count, and one that is wrong neither."""
    for spec, why in (
        (templates.JSON, "it does not read back a call, "),
        ({"fields": 1}, "response_template.fields: expected"),
    ):
        chat = chatparsers.load(model(tmp_path, response_template=spec))
        with pytest.warns(UserWarning, match="response template: it is not used"):
            assert chat.detection.name.startswith("auto:")
        assert [limit.part for limit in chat.detection.limits] == ["response template"]
        assert any(why in line for line in chat.detection.evidence), chat.detection.evidence
    with pytest.raises(LoadError, match='field "response_template": expected an object, found'):
        chatparsers.load(model(tmp_path, response_template="x"))
