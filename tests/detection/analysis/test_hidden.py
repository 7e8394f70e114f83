"""Every format with its module hidden: the analysis finds it again from each of its templates, and is never wrong."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chatparsers import TemplateError, detect, load
from chatparsers.detection.analysis import analyse
from chatparsers.detection.analysis.accepted import accepts
from chatparsers.templates import Template
from chatparsers.templates.jinja.limits import Limits
from chatparsers.testing import Entry, check_stream
from chatparsers.testing.scenarios import scenarios

from ..test_detect import EDITS, lex
from .reading import INEXPRESSIBLE, REFUSED, read

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
VARIANTS = {
    "apertus": "name-as-key",
    "apriel-1-5": "json-native",
    "apriel-1-6": "json-native",
    "command-r-plus": "markdown-block",
    "command-r7b": "json-native",
    "deepseek-r1": "markdown-block",
    "deepseek-v3": "markdown-block",
    "deepseek-v3-1": "tagged-json",
    "ernie-4-5": "json-native",
    "firefunction-v2": "json-native",
    "function-gemma": "gemma-like",
    "functionary-v3-1": "tagged-json",
    "functionary-v3-2": "recipient",
    "glm-4-5": "tagged-args",
    "gpt-oss": "channels",
    "granite": "json-native",
    "granite-4": "json-native",
    "hermes-2-pro": "json-native",
    "hyperclovax": "channels",
    "inkling": "channels",
    "jamba": "json-native",
    "kimi-k2": "prefixed-indexed",
    "kimi-k3": "tagged-args",
    "lfm2": "python-call",
    "llama-3-x": "json-native",
    "magistral": "bracket-tag",
    "minimax-m2": "tagged-args",
    "minimax-m3": "nested-elements",
    "ministral-3": "bracket-tag",
    "mistral-nemo": "json-native",
    "mistral-small-3-2": "bracket-tag",
    "muse": "channels",
    "muse-glimmer": "channels",
    "nemotron-v2": "json-native",
    "nemotron-v3": "tagged-args",
    "qwen3": "json-native",
    "qwen3-coder": "tagged-args",
    "seed-oss": "tagged-args",
    "solar-open": "channels",
    "xiaomi-mimo": "json-native",
}
"""What must be found of each format's templates; of others nothing wrong may be found."""


PINNED = Path(__file__).with_name("found.json")
"""What is found of each of our own templates: the variant, and how many cells of the matrix are read and refused."""


def pinned() -> dict[str, tuple[str, int, int]]:
    return {name: tuple(row) for name, row in json.loads(PINNED.read_text(encoding="utf-8")).items()}


@pytest.mark.one_in(24)
def test_found_reads_what_the_module_reads(
    entry: Entry, add_row: Callable[..., None], pytestconfig: pytest.Config
) -> None:
    template = entry.template()
    found = analyse(template)
    counts = {"cells": 0, "same": 0, "refused": 0, "wrong": 0}
    wrong = []
    for scenario in scenarios(entry.format):
        if scenario.heavy or read(entry.format, template, scenario):
            continue
        counts["cells"] += 1
        result = REFUSED if found.format is None else read(found.format, template, scenario)
        told = found.analysis is not None and any(limit.part in result for limit in found.analysis.limits)
        if told or result in (REFUSED, INEXPRESSIBLE):
            counts["refused"] += 1
        elif result:
            wrong.append(result)
            counts["wrong"] += 1
        else:
            counts["same"] += 1
    name = found.format.name if found.format else "none"
    add_row(template=entry.path.stem, format=entry.format.name, found=name, **counts)
    assert not wrong, "\n".join([str(found.analysis), *wrong])
    if entry.path.parent.name == "templates_own":
        row = (name.removeprefix("auto:"), counts["same"], counts["refused"])
        if pytestconfig.getoption("--update-goldens"):
            rows = sorted({**pinned(), entry.path.stem: row}.items())
            lines = ",\n".join(f"  {json.dumps(stem)}: {json.dumps(found)}" for stem, found in rows)
            PINNED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        assert pinned()[entry.path.stem] == row, (
            "found.json is not what is found (--update-goldens writes it)"
        )
    if entry.format.name in VARIANTS:
        assert found.analysis is not None and not counts["refused"] and counts["same"], found.levels
        calls = template.probe().tool_calls
        assert found.analysis.variant == (VARIANTS[entry.format.name] if calls else "content")


def test_the_page_says_how_much_is_found(pytestconfig: pytest.Config) -> None:
    """``--update-goldens`` writes both lines."""
    page = Path(__file__).parents[3] / "docs" / "tables" / "analysis.md"
    if not page.exists():
        pytest.skip("no docs: not a checkout")
    rows = pinned()
    own = {path.stem for path in (PINNED.parents[2] / "templates_own").glob("*.jinja")}
    assert set(rows) == own, "a template is not pinned (--update-goldens), or is there no more"
    same, refused = (sum(row[place] for row in rows.values()) for place in (1, 2))
    lost = [f"`{name}`" for name, row in sorted(rows.items()) if row[2]]
    lines = {
        r"\| of the families here, ours \|.*": f"| of the families here, ours | {len(rows)} | {same + refused:,} | "
        f"{same:,} | {refused} | 0 |",
        r"Refused of ours: [^.]*\.": f"Refused of ours: {', '.join(lost)}.",
    }
    text = written = page.read_text(encoding="utf-8")
    for pattern, line in lines.items():
        written = re.sub(pattern, line, written)
    if pytestconfig.getoption("--update-goldens"):
        page.write_text(written, encoding="utf-8")
        text = written
    assert all(line in text for line in lines.values()) and text == written


def more_templates(folder: Path) -> list[Path]:
    """Real templates of no family here: those of a GGUF collection, and newer ones."""
    return [
        path
        for name in ("templates-gguf", "templates-new")
        for path in sorted((folder / name).glob("*.jinja"))
    ]


def test_other_templates_are_read_or_refused(
    shared_dir: Path, add_row: Callable[..., None], amount: Callable[[int, int, int], int]
) -> None:
    """What the analysis finds of templates of all kinds reads what they render, or nothing is claimed of it."""
    paths = more_templates(shared_dir)[:: amount(8, 1, 1)]
    if not paths:
        pytest.skip("no further templates in the folder of real data")
    wrong: list[Any] = []
    for path in paths:
        template = Template(path.read_text(encoding="utf-8"), eos_token="<eos>", name=path.name)
        found = analyse(template)
        counts = {"cells": 0, "same": 0, "refused": 0, "wrong": 0}
        for scenario in scenarios(found.format) if found.format else ():
            if scenario.heavy or found.format is None:
                continue
            result = read(found.format, template, scenario)
            if result == INEXPRESSIBLE:
                continue
            counts["cells"] += 1
            counts["same" if not result else "refused" if result == REFUSED else "wrong"] += 1
            if result and result != REFUSED:
                wrong.append((path.name, result))
        name = found.format.name if found.format else "none"
        add_row(template=path.stem, format="", found=name, **counts)
    assert not wrong, "\n".join(map(str, wrong))


@pytest.fixture
def own(request: pytest.FixtureRequest) -> Callable[[str], Template]:
    folder = Path(__file__).parents[2] / "templates_own"
    return lambda name: Template((folder / f"{name}.jinja").read_text(encoding="utf-8"))


def test_what_was_found_is_data(own: Callable[[str], Template]) -> None:
    """Equal analyses make equal formats, and a stream of one is copied and goes to another process in mid-call."""
    first, again = analyse(own("qwen3")), analyse(own("qwen3"))
    assert first is again and first.format is not None
    other = analyse(Template(own("qwen3").source + "{# edited #}"))
    assert other is not first and other.format == first.format
    turn = first.format.bind(tools=[TOOL])
    stream = turn.stream()
    text = '<think>\nA\n</think>\n\nB\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    stream.feed(text[:60])
    moved = pickle.loads(pickle.dumps(stream))
    for each in (stream, moved):
        each.feed(text[60:])
        each.finish()
    assert moved.message == stream.message == turn.parse(text)
    assert stream.message.tool_calls[0].arguments == '{"a": 1}'


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["qwen3", "glm-4-5", "gpt-oss", "kimi-k2", "lfm2", "command-r7b"])
def test_cosmetic_edits_change_nothing(name: str, own: Callable[[str], Template]) -> None:
    source = own(name).source
    found, edited = analyse(own(name)).analysis, 0
    for edit in EDITS:
        other = edit(lex(source))
        edited += other != source
        assert analyse(Template(other)).analysis == found, edit.__name__
    assert edited >= 5, "the edits must change the source, or they show nothing"


def test_confidence_is_the_share_of_the_proof_that_is_shown(own: Callable[[str], Template]) -> None:
    """A template that shows less is proved by less."""
    whole, single = analyse(own("qwen3")).analysis, analyse(own("gpt-oss")).analysis
    no_calls = analyse(own("content-only")).analysis
    assert whole is not None and single is not None and no_calls is not None
    assert (whole.confidence, single.confidence, no_calls.confidence) == (1.0, 0.87, 0.27)
    assert (whole.parallel, single.parallel, single.tools, no_calls.tools) == (True, False, True, False)


def test_an_answer_that_is_not_shown(own: Callable[[str], Template]) -> None:
    found = analyse(Template("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"))
    assert (found.format, found.levels) == (None, (("content", "the template shows no answer's text"),))


def test_calls_that_no_grammar_of_ours_writes_are_refused() -> None:
    """Arguments as JSON in a JSON string: nothing is claimed of the calls, and content is still read."""
    source = (
        "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
        "{% for c in m.tool_calls or [] %}<call>{{ {'name': c.function.name, 'arguments': c.function.arguments"
        " | tojson} | tojson }}</call>{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    found = analyse(Template(source))
    assert found.format is not None and not found.format.features.tools
    assert [level for level, why in found.levels if why] == ["tools"]
    detection = detect(source)
    assert (detection.name, bool(detection)) == (None, False) and detection.format == found.format
    assert any("tools dropped: calls: " in line for line in detection.evidence)


def test_found_formats_are_used_by_load(own: Callable[[str], Template]) -> None:
    """The analysis runs if no format is known, or if the caller asks for it."""
    unknown = own("qwen3").source.replace("<tool_call>", "<do_it>").replace("</tool_call>", "</do_it>")
    for chat in (load(unknown), load(own("hermes-2-pro").source, format="auto")):
        assert chat.detection.name == chat.format.name == "auto:json-native"
        assert chat.format.features.tools and "<|im_end|>" in chat.format.stops
        turn = chat.prepare([{"role": "user", "content": "Hi"}], tools=[TOOL], tool_choice="required")
        assert str(turn.grammar())
    chat = load(unknown)
    turn = chat.prepare([{"role": "user", "content": "Hi"}], tools=[TOOL])
    message = turn.parse('So.\n<do_it>\n{"name": "f", "arguments": {"a": "<tool_call>"}}\n</do_it><|im_end|>')
    assert message.content == "So." and message.complete
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("f", '{"a": "<tool_call>"}')]


@pytest.mark.parametrize(
    "hostile",
    ["{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}", "{{ 'x' * 10 ** 9 }}"],
)
def test_hostile_templates_are_stopped(hostile: str, own: Callable[[str], Template]) -> None:
    """All questions share one account: if it is overdrawn, nothing is concluded and nothing is kept."""
    template = Template(
        own("qwen3").source.replace("{%- if add_generation_prompt", hostile + "{%- if add_generation_prompt")
    )
    for _ in range(2):
        with pytest.raises(TemplateError, match="more than"):
            analyse(template)
    small = Template(own("qwen3").source, limits=Limits(work=2_000))
    with pytest.raises(TemplateError, match="more than"):
        analyse(small)
    assert analyse(own("qwen3")).format is not None


def test_calls_without_their_section_are_read(own: Callable[[str], Template]) -> None:
    """As models leave it out; it is generated all the same."""
    found = analyse(own("kimi-k2")).format
    assert found is not None
    turn = found.bind(tools=[TOOL], tool_choice="required")
    call = '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>'
    section = f"<|tool_calls_section_begin|>{call}<|tool_calls_section_end|>"
    for text in (call, section):
        message = check_stream(turn, f"So.{text}", list(f"So.{text}"))
        assert (message.content, message.complete, message.diagnostics) == ("So.", True, [])
        assert [(c.id, c.name, c.arguments) for c in message.tool_calls] == [
            ("functions.f:0", "f", '{"a": 1}')
        ]
    assert not accepts(turn, call) and accepts(turn, section.replace('"a": 1', ""))


def test_an_open_thought_ends_where_an_answer_begins(own: Callable[[str], Template]) -> None:
    """Where the answer has an opener of its own."""
    found = analyse(own("kimi-k3")).format
    assert found is not None
    turn = found.bind(prefix="<|open|>think<|sep|>")
    for closer in ("<|close|>think<|sep|>", ""):
        text = f"Hm.{closer}<|open|>response<|sep|>Hi.<|close|>response<|sep|>"
        message = check_stream(turn, text, list(text))
        assert (message.reasoning, message.content, message.complete) == ("Hm.", "Hi.", True)
