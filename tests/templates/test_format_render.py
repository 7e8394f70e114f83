"""`Format.render`: a message written from the definition is read back as that message, in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers.answers import Builder, Format, Node
from chatparsers.errors import DefinitionError, RequestError
from chatparsers.registry import get_format, list_formats
from chatparsers.templates.probe.stand_ins import NAME, THOUGHT, TOOLS, VALUE, answer, question
from chatparsers.testing import Entry
from chatparsers.testing.rendering import Inexpressible, exact, render
from chatparsers.testing.scenarios import Scenario, raw_stops, scenarios

FORMATS = [info.name for info in list_formats()]
# Formats whose calls begin the turn or have no closer: they have no place for text before (several of) them.
TEXT_REFUSED = {
    "generic": {"text-before-call", "text-before-calls"},
    "llama-3-x": {"text-before-calls"},
    "pythonic": {"text-before-call", "text-before-calls"},
    "ui-tars": {
        "content-with-reasoning",
        "long-reasoning",
        "reasoning-text-call",
        "response-format-reasoning",
    },
    "xlam": {"text-before-call", "text-before-calls"},
}
# An element without text says neither that it is a text, nor a list, nor an object. The models' own templates write it.
ALIKE = {"minimax-m3": {"nested"}}


def writable(format: Format, scenario: Scenario) -> bool:
    held = any(stop in call.arguments for stop in raw_stops(format) for call in scenario.calls)
    alike = scenario.name in ALIKE.get(format.name, ())
    return not (alike or scenario.opened or scenario.after or held or scenario.name.startswith("1-MB"))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_read_back(name: str) -> None:
    format, refused = get_format(name), list[Scenario]()
    for scenario in scenarios(format):
        if not writable(format, scenario) or (scenario.calls and not format.features.tools):
            continue
        try:
            text = format.render(scenario.message(), scenario.tools)
        except RequestError:
            refused.append(scenario)
            continue
        found = format.bind(tools=list(scenario.tools) or None, thinking=scenario.thinking).parse(text)
        calls = [(call.name, exact(call.arguments)) for call in found.tool_calls]
        wanted = [(call.name, exact(call.arguments)) for call in scenario.calls]
        assert (found.content, found.reasoning, calls) == (scenario.content, scenario.reasoning, wanted), text
        assert found.complete, scenario.name
    for scenario in refused:
        thought = bool(scenario.reasoning) and not format.features.reasoning
        several = len(scenario.calls) > 1 and not format.features.parallel
        assert thought or several or scenario.name in TEXT_REFUSED.get(name, ()), (
            f"{name} refuses {scenario.name}"
        )


def _call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**more, "function": {"name": "f", "arguments": arguments}}],
    }


def test_around_an_answer_are_the_markers_that_the_template_writes(own_entry: Entry) -> None:
    format = own_entry.format
    name = "content-with-reasoning" if format.features.reasoning else "content-no-tools"
    scenario = next(one for one in scenarios(format) if one.name == name)
    try:
        case = render(format, own_entry.template(), scenario)
        written = format.render(scenario.message())
    except (Inexpressible, RequestError):
        return
    markers = [text for text in format.preserved_tokens if text in written]
    assert [text for text in markers if text not in case.prefix + case.text] == [], case.text


# The writer spells the value otherwise, or the prompt writes the beginning of the calls.
OTHERWISE = {"minicpm5", "command-r-plus"}


def test_between_two_calls_is_what_the_template_writes(own_template: Path) -> None:
    chat = chatparsers.load(own_template, bos_token="<BOS>", eos_token="<EOS>")
    template = chat.template(True)
    if not template.can.parallel_calls or not chat.format.features.tools or own_template.stem in OTHERWISE:
        pytest.skip("the template shows no two calls, or otherwise than they are written")
    bare = template.can.bare_calls
    message = answer("", calls=2, thought="" if bare else THOUGHT)
    _, wire = template.assistant_turn(
        message, history=[question()], tools=TOOLS, thinking=None if bare else True
    )
    written = chat.format.render(message, TOOLS)
    assert written[written.index(VALUE) : written.rindex(NAME)] in wire


def test_spelling_of_the_message_is_kept() -> None:
    text = '{"x":  1.10, "y": "\\u00e9"}'
    assert text in get_format("qwen3").render(_call(text))
    assert "<parameter=x>\n1.10\n</parameter>" in get_format("qwen3-coder").render(_call(text))


def test_ids_that_fit_are_the_models_and_others_are_made() -> None:
    nemo = get_format("mistral-nemo")
    assert '"id": "abcdefgh9"' in nemo.render(_call("{}", id="abcdefgh9"))
    made = nemo.bind(tools=[{"name": "f"}]).parse(nemo.render(_call("{}", id="call-of-another-form")))
    assert made.complete and len(made.tool_calls[0].id) == 9


NO_OBJECT = r"tool_calls\[0\].function.arguments: expected a JSON object"


@pytest.mark.parametrize(
    ("name", "message", "said"),
    [
        ("qwen3-coder", _call("[1]"), NO_OBJECT),
        ("lfm2", _call("{x: 1}"), NO_OBJECT),
        ("function-gemma", _call("1"), NO_OBJECT),
        ("gemma-4", _call(f'{{"x": {"1" * 5000}}}'), NO_OBJECT),  # more digits than Python reads
        (
            "qwen3",
            {"role": "assistant", "tool_calls": [{"name": 1}]},
            r"tool_calls\[0\]: expected an object with function.name",
        ),
    ],
)
def test_what_is_no_call(name: str, message: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        get_format(name).render(message)


def _inside(p: Builder) -> Node:
    return p.think("<t>", "</t>", always=True) + p.body()


def test_where_the_model_starts_inside_a_thought() -> None:
    format = Format(name="inside", title="", url="", build=_inside)
    for message in ({"content": "C"}, {"content": "C", "reasoning_content": "R"}):
        found = format.bind().parse(format.render({"role": "assistant", **message}))
        assert (found.content, found.reasoning) == ("C", message.get("reasoning_content", ""))


def _any_char(p: Builder) -> Node:
    return p.body(p.calls(p.each_tool(lambda tool: "<" + p.name(tool) + p.any() + p.args(tool) + ">")))


def test_a_part_that_nobody_says_how_to_write() -> None:
    """It must not be written as nothing: the text would be another turn."""
    fmt = Format(
        "any-char", "Any", "https://models.example/any", _any_char, markers=("<",), stops=("<|end|>",)
    )
    call = {"function": {"name": "f", "arguments": "{}"}}
    with pytest.raises(
        DefinitionError, match=r"cannot write a message: nothing says what stands for p\.any\(\)"
    ):
        fmt.render({"role": "assistant", "content": "", "tool_calls": [call]})
