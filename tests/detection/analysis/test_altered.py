"""Real templates with one feature altered: what is left is read, and what is not is named."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from making import tool

from chatparsers import detect, get_format, load
from chatparsers.cli.module_source import module_source
from chatparsers.detection.analysis import analyse
from chatparsers.detection.shown import CALL, HISTORY
from chatparsers.errors import ChatParsersError
from chatparsers.templates import Template
from chatparsers.templates.probe.stand_ins import ARGUMENTS, TOOLS
from chatparsers.testing import check_stream
from chatparsers.testing.scenarios import scenarios

from ...needle.test_matrix import FAMILIES
from .altered import alter
from .reading import INEXPRESSIBLE, REFUSED, read

OWN = Path(__file__).parents[2] / "templates_own"
LEAST = 0.9
"""The least share of altered templates that are read whole, calls and all."""


def test_the_rest_is_read(
    amount: Callable[[int, int, int], int],
    real_templates: list[Path],
    add_row: Callable[..., None],
) -> None:
    """One feature is altered: a marker renamed, a blank added or removed, a value wrapped. Nothing is read wrongly."""
    paths = [*sorted(OWN.glob("*.jinja")), *(path for path in real_templates if path.name in FAMILIES)]
    r = random.Random(5)
    kinds: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    seeds = range(1000) if amount(0, 0, 1) else r.sample(range(1000, 9000), amount(8, 40, 0))
    for seed in seeds:
        path = paths[seed % len(paths)] if amount(0, 0, 1) else r.choice(paths)
        source = path.read_text(encoding="utf-8")
        kind, other = alter(source, seed)
        if other == source:
            continue
        family = FAMILIES.get(path.name, {})
        fmt = get_format(family.get("format", path.stem))
        outcome, why = judge(
            Template(other, eos_token=family.get("eos") or "<eos>", name=path.name), fmt, seed
        )
        kinds.setdefault(kind, Counter())[outcome] += 1
        wrong += [f"{seed} {path.name}, {kind}: {text}" for text in why]
    total: Counter[str] = Counter()
    for kind, counts in sorted(kinds.items()):
        total += counts
        cells = {"cells": counts.total(), "same": counts["read"], "refused": 0, "wrong": counts["wrong"]}
        add_row(template=f"altered: {kind}", format="", found=str(dict(counts)), **cells)
    assert not wrong, "\n".join(wrong)
    most = max(1, (1 - LEAST) * total.total())  # of a few draws one is more than a tenth
    assert total.total() - total["read"] <= most, total


def judge(template: Template, fmt: Any, seed: int) -> tuple[str, list[str]]:
    """``read``: all cells are; ``part``: what is not is named; ``refused``: the calls, or all; ``wrong``, and why."""
    try:
        found = analyse(template)
    except ChatParsersError:
        return "refused", []
    if found.format is None or found.analysis is None:
        return "refused", []
    cells = [scenario for scenario in scenarios(fmt) if not scenario.heavy and not scenario.after]
    results = [read(found.format, template, cell) for cell in random.Random(seed).sample(cells, 12)]
    wrong = [result for result in results if result not in ("", REFUSED, INEXPRESSIBLE)]
    if wrong and not found.analysis.limits:
        return "wrong", wrong
    if template.probe().tool_calls and found.analysis.calls is None:
        return "refused", []
    return ("part" if found.analysis.limits else "read"), []


SEVERAL = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<do {{ c.function.name }}>{% for k, v in c.function.arguments.items() %}"
    "<{{ k }}=$VALUE$;>{% endfor %}</do>{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MARKED = (
    "{% if '<' in v | string %}<![CDATA[{{ v }}]]>{% else %}{{ v if v is string else v | tojson }}{% endif %}"
)
LISTS = "{{ v | join('/') if v is sequence and v is not string else v if v is string else v | tojson }}"


THOUGHTS = {
    "it stands after the answer's text": "{{ m.content }}{% if m.thought %}<why>{{ m.thought }}</why>{% endif %}",
    "nothing shows what closes it": "{% if m.thought %}> {{ m.thought }}\n{% endif %}{{ m.content }}",
}


def test_what_is_not_proved_is_named_and_warned_of_where_tools_need_it() -> None:
    """Lists are written so that nothing tells them from texts: all else is read."""
    chat = load(SEVERAL.replace("$VALUE$", LISTS), format="auto")
    assert {limit.part for limit in chat.detection.limits} == {"array", "object"} and chat.detection.score < 1

    def tool(schema: dict[str, Any]) -> dict[str, Any]:
        parameters = {"type": "object", "properties": {"a": schema}}
        return {"type": "function", "function": {"name": "f", "parameters": parameters}}

    ask = [{"role": "user", "content": "Hi"}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turn = chat.prepare(
            ask,
            tools=[
                tool({"type": "string"}),
            ],
        )
        assert turn.parse("<do f><a=b;></do><|end|>").tool_calls[0].arguments == '{"a": "b"}'
    with pytest.warns(
        UserWarning, match="not proved of auto:tagged-args with this template: array: "
    ) as told:
        chat.prepare(ask, tools=[tool({"type": "array"})])
    assert Path(told[0].filename) == Path(__file__) and len(told) == 1


BLANK = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.role }}: "
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think> {% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}$CALL${% endfor %}</s>{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
OBJECT = """{{ '{"name": "' + c.function.name + '", "arguments": ' + c.function.arguments | tojson + '}' }}"""


@pytest.mark.parametrize("where", ["first", "in headers", "at the end"])
@pytest.mark.parametrize("thought", [False, True])
def test_tools_may_be_told_anywhere(where: str, thought: bool) -> None:
    tools = "{% for t in tools or [] %} [{{ t.function.name }}]{% endfor %}"
    header = "<|{{ role }}" + (tools if where == "in headers" else "") + "|>"
    thinks = (
        "{% if m.reasoning_content %}<mull>{{ m.reasoning_content }}</mull>{% endif %}" if thought else ""
    )
    calls = "{% for c in m.tool_calls or [] %}<<call>>{{ c.function | tojson }}<</call>>{% endfor %}"
    source = (
        (tools if where == "first" else "")
        + "{% for m in messages %}"
        + header.replace("role", "m.role")
        + f"{thinks}{{{{ m.content }}}}{calls}<|fin|>{{% endfor %}}"
        + (tools if where == "at the end" else "")
        + "{% if add_generation_prompt %}"
        + header.replace("{{ role }}", "assistant")
        + "{% endif %}"
    )
    found = detect(source)
    assert found.name == "auto:json-native" and found.score == 1, found


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        OBJECT.join(("<call>", "</call>")),
        "<do {{ c.function.name }}>{{ c.function.arguments | tojson }}</do>",
    ],
)
def test_calls_that_are_shown_only_behind_reasoning(call: str, opened: bool) -> None:
    """``opened``: the prompt begins the thought."""
    assistant = (
        "{% if m.reasoning_content %}<muse>\n{{ m.reasoning_content }}\n</muse>\n"
        "{% for c in m.tool_calls or [] %}$CALL${% endfor %}{% endif %}{{ m.content }}"
    )
    source = BLANK.replace(
        "{% if add_generation_prompt %}assistant:", "{% if add_generation_prompt %}assistant: $OPEN$"
    )
    begun, end = source.index("{% if m.reasoning"), source.index("</s>")
    source = source[:begun] + assistant.replace("$CALL$", call) + source[end:]
    template = Template(source.replace("$OPEN$", "<muse>\n" if opened else ""))
    can = template.probe()
    assert can.tool_calls and can.parallel_calls and can.reasoning_with_calls and not can.bare_calls
    message = {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [CALL, CALL]}
    wire = template.assistant_turn(message, history=HISTORY, tools=TOOLS)[1]
    chat = load(source.replace("$OPEN$", "<muse>\n" if opened else ""), format="auto")
    assert chat.format is not None and not chat.detection.limits, chat.detection
    found = chat.prepare(HISTORY, tools=TOOLS).parse(wire)
    assert (found.reasoning, found.content, found.complete) == ("Hm.", "", True), wire
    assert [call.parsed_arguments for call in found.tool_calls] == [ARGUMENTS, ARGUMENTS]
    # A call without a thought, which the template drops, comes into the prompt as text.
    past = [
        *HISTORY,
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "user", "content": "So?"},
    ]
    assert str(ARGUMENTS["thing"]) in chat.prepare(past, tools=TOOLS).prompt


QUOTED = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% macro spelt(v) %}{% if v is string %}"
    '{{ "\'" + v + "\'" }}'
    "{% elif v is mapping %}{{ v | tojson }}{% else %}{{ v }}{% endif %}{% endmacro %}"
    "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}{% set ns = namespace(all=[]) %}"
    "{% for c in m.tool_calls %}{% set it = namespace(all=[]) %}{% for k, v in c.function.arguments.items() %}"
    "{% set it.all = it.all + [k + '=' + spelt(v)] %}{% endfor %}"
    "{% set ns.all = ns.all + [c.function.name + '(' + it.all | join(', ') + ')'] %}{% endfor %}"
    "<|calls|>[{{ ns.all | join(', ') }}]<|/calls|>{% endif %}{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SECTIONS = (
    "{% if tools %}<|caps|>{{ tools | tojson }}\n{% endif %}{% for m in messages %}{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content %}<|think|>\n{{ m.reasoning_content }}\n{% endif %}"
    "{% if m.content %}<|out|>\n{{ m.content }}\n{% endif %}"
    "{% for c in m.tool_calls or [] %}<|act|>\n"
    '{"name":{{ c.function.name | tojson }},"arguments":{{ c.function.arguments | tojson }}}\n{% endfor %}'
    "{% else %}<|{{ m.role }}|>\n{{ m.content }}\n{% endif %}<|eot|>\n{% endfor %}"
)
CLOSED = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.role == 'assistant' %}{{ m.reasoning_content or '' }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<do>" + OBJECT + "</do>{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NAMES = {
    "brackets of its own": "⟦do {0}⟧{1}⟦/do⟧",
    "quotes for brackets": "«{0}»{1}«end»",
    "the name in the closer": "[{0}]{1}[/{0}]",
    "the name as a value in both tags": "<fn={0}>{1}</fn={0}>",
    "the name in both tags, arguments in tags": "<tool:{0}><arg:a>{1}</arg:a></tool:{0}>",
}


def named(shape: str) -> str:
    """A template that writes calls in that shape, with the name and the arguments."""
    arguments = "{{ c.function.arguments | tojson }}"
    if "arg:" in shape:
        each = "<arg:{{ k }}>{{ v if v is string else v | tojson }}</arg:{{ k }}>"
        shape = shape.replace("<arg:a>{1}</arg:a>", "{1}")
        arguments = "{% for k, v in c.function.arguments.items() %}" + each + "{% endfor %}"
    return BLANK.replace("$CALL$", shape.replace("{0}", "{{ c.function.name }}").replace("{1}", arguments))


class Known(NamedTuple):
    """A template, the texts of answers with the thought, the content and the arguments that are read, the type of the
    argument ``a``, what is not proved (and why, where it is told), the variant of the calls, and how much is proved."""

    source: str
    texts: tuple[tuple[str, str, str, list[str]], ...]
    a: Mapping[str, Any] = MappingProxyType({})
    limits: Mapping[str, str] = MappingProxyType({})
    variant: str = ""
    confidence: float | None = None
    name: str = "f"
    module: str = ""
    """What the module that is written for it has."""


A, TEXT = '{"name": "f", "arguments": {"a": 1}}', {"type": "string"}
KNOWN: dict[str, Known] = {
    **{
        f"of a thought, {why}: the calls are read": Known(
            SEVERAL.replace("$VALUE$", "{{ v }}")
            .replace("{{ m.content }}", shown)
            .replace("m.thought", "m.reasoning_content"),
            (("Hi.<do f><a=b;></do><|end|>", "", "Hi.", ['{"a": "b"}']),),
            TEXT,
            {"reasoning": why},
            "tagged-args",
            0.73,
        )
        for why, shown in THOUGHTS.items()
    },
    "values between marks beside plain ones": Known(
        SEVERAL.replace("$VALUE$", MARKED),
        (
            ("<do f><a=plain;></do><|end|>", "", "", ['{"a": "plain"}']),
            ("<do f><a=<![CDATA[1 < 2;> ]]>;></do><|end|>", "", "", ['{"a": "1 < 2;> "}']),
        ),
        TEXT,
    ),
    "strings of Python that the template does not escape": Known(
        QUOTED,
        (
            (
                "<|calls|>[f(a='x', b=True), f(a=[1, None])]<|/calls|><|end|>",
                "",
                "",
                ['{"a": "x", "b": true}', '{"a": [1, null]}'],
            ),
        ),
        limits={"grammar": "", "special characters": ""},
        variant="python-call",
    ),
    # The opener of the answer ends the thought; it stands there without a thought too, and calls end thoughts.
    "sections that nothing closes": Known(
        SECTIONS,
        (
            ("<|out|>\nHi.\n<|eot|>", "", "Hi.", []),
            ('<|think|>\nHm.\n<|act|>\n{"name":"f","arguments":{"a": 1}}\n<|eot|>', "Hm.", "", ['{"a": 1}']),
        ),
    ),
    "a marker that ends messages and opens calls": Known(
        (OWN / "gigachat-3.jinja").read_text(encoding="utf-8"),
        (
            (
                f"I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{A}<|message_sep|>\n\n",
                "",
                "I look.",
                ['{"a": 1}'],
            ),
        ),
    ),
    **{
        f"a prompt that ends before a blank that answers have, {how}": Known(
            BLANK.replace("$CALL$", call),
            (
                (f" {call.replace(OBJECT, A)}</s>", "", "", ['{"a": 1}']),
                (f"{call.replace(OBJECT, A)}</s>", "", "", ['{"a": 1}']),
                (f" <think>Hm.</think> {call.replace(OBJECT, A)}</s>", "Hm.", "", ['{"a": 1}']),
                (" Hi.</s>", "", "Hi.", []),
            ),
        )
        for how, call in {"calls in tags": f"<call>{OBJECT}</call>", "bare calls": OBJECT}.items()
    },
    # The prompt opens no thought, and the closer alone stands before each answer without one.
    "a thought that only its closer marks": Known(
        CLOSED,
        tuple(
            (f"{opener}{thought}</think>{said}<do>{A}</do><|end|>", thought, said, ['{"a": 1}'])
            for opener, thought, said in (
                ("", "Hm.", "I look."),
                ("", "", "I look."),
                ("", "Hm.", ""),
                ("<think>", "Hm.", ""),
            )
        ),
        confidence=1.0,
        module="always=True",
    ),
    # A name ends at the sign after it, and may be in the closer.
    **{
        f"a name between signs: {how}": Known(
            named(shape),
            (
                (
                    f" I look.{shape.format('get_weather', one)}{shape.format('get_weather', two)}</s>",
                    "",
                    "I look.",
                    ['{"a": 1}', '{"a": 2}'],
                ),
            ),
            {"type": "integer"},
            name="get_weather",
        )
        for how, shape in NAMES.items()
        for one, two in [("1", "2") if "arg:" in shape else ('{"a": 1}', '{"a": 2}')]
    },
}


@pytest.mark.parametrize("case", KNOWN)
def test_an_analysed_template_reads_its_answers(case: str) -> None:
    known = KNOWN[case]
    found = analyse(Template(known.source))
    assert found.format is not None and found.analysis is not None, found.levels
    limits = {limit.part: limit.why for limit in found.analysis.limits}
    assert limits == {part: why or limits.get(part) for part, why in known.limits.items()}
    assert known.confidence in (None, found.analysis.confidence)
    if limits:
        told = detect(known.source)
        assert told.name == found.format.name and told.limits == found.analysis.limits and told.score < 1
    assert known.variant in ("", found.analysis.variant)
    features = found.format.features
    assert features.tools and features.reasoning >= any(thought for _, thought, *_ in known.texts)
    turn = found.format.bind(tools=[tool(known.name, {"a": dict(known.a)})])
    for text, *meant in known.texts:
        message = check_stream(turn, text, list(text))
        assert [
            message.reasoning,
            message.content,
            [call.arguments for call in message.tool_calls],
        ] == meant, text
        assert {call.name for call in message.tool_calls} <= {known.name}, text
        assert message.complete and not message.diagnostics, text
    assert known.module in module_source(found, "known", ["<|end|>"])


def test_a_text_with_a_quote_is_broken_where_the_template_does_not_escape_it() -> None:
    found = analyse(Template(QUOTED)).format
    assert found is not None
    assert found.bind(tools=[tool("f")]).parse("<|calls|>[f(a='it's')]<|/calls|><|end|>").diagnostics
