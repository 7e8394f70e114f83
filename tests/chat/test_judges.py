"""Masks that others wrote: the `{% generation %}` marks of TRL's training templates, character for character.

TRL marks more than a model writes after its prompt. So its marks are cut in front to the end of the generation prompt,
and behind to the end of the first stop. What is left must be our mask.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox
import pytest

import chatparsers
from chatparsers import Chat
from chatparsers.core.errors import ChatParsersError
from chatparsers.templates.probe.turns import common, outside_marker

BEGIN, END = "\ue100", "\ue101"
FOUND = find_spec("trl")
PAIRS = (
    sorted(Path(FOUND.submodule_search_locations[0], "chat_templates").glob("*_training.jinja"))
    if FOUND is not None and FOUND.submodule_search_locations
    else []
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Where."}},
            },
        },
    }
]
ASK = {"role": "user", "content": "Is it cold in Oslo?"}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call00000",
            "type": "function",
            "function": {"name": "get_weather", "arguments": {"city": "Oslo"}},
        }
    ],
}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "4 degrees"}
ANSWER = {"role": "assistant", "content": "Rather cold."}
THOUGHT = {**ANSWER, "reasoning_content": "4 is cold.", "thinking": "4 is cold."}
CASES: dict[str, list[dict[str, Any]]] = {
    "answer": [ASK, ANSWER],
    "two answers": [{"role": "system", "content": "Be brief."}, ASK, ANSWER, ASK, ANSWER],
    "thought": [ASK, THOUGHT],
    "call": [ASK, CALL, RESULT, ANSWER],
}
# What is right and differs, each with the reason: docs/training.md has the table.
EXPLAINED = {
    "diffusion_gemma_training": "the stop that the result's header writes, and a header that no prompt writes, count",
    "idefics3_training": "the text differs: the template of pictures reads content as parts, and ours are put so",
    "phi3_5_training": "the eos token behind the stop does not count",
    "phi3_training": "the eos token behind the stop does not count",
    "smolvlm_training": "the text differs: the template of pictures reads content as parts, and ours are put so",
}


class Marks(jinja2.ext.Extension):
    """Writes a mark before and behind what a template marks as the model's."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

    def _mark(self, caller: Any) -> str:
        return f"{BEGIN}{caller()}{END}"


def marked(path: Path, messages: list[dict[str, Any]], tools: Any) -> tuple[str, list[tuple[int, int]]]:
    """The text and the marked spans."""
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Marks, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = lambda value, **more: json.dumps(
        value, ensure_ascii=False, indent=more.get("indent")
    )
    env.globals["raise_exception"] = lambda text: (_ for _ in ()).throw(jinja2.TemplateError(text))
    env.globals["strftime_now"] = lambda pattern: "today"
    text = env.from_string(path.read_text(encoding="utf-8")).render(
        messages=messages, tools=tools, bos_token="<BOS>", eos_token="<EOS>", add_generation_prompt=False
    )
    spans, plain = [], ""
    for piece in re.split(f"({BEGIN}|{END})", text):
        if piece == BEGIN:
            spans.append((len(plain), -1))
        elif piece == END:
            spans[-1] = spans[-1][0], len(plain)
        else:
            plain += piece
    return plain, [span for span in spans if span[1] > span[0]]


def chat_of(path: Path) -> Chat:
    source = re.sub(
        r"\{%-?\s*(end)?generation\s*-?%\}", lambda m: _nothing(m[0]), path.read_text(encoding="utf-8")
    )
    return chatparsers.load(source, bos_token="<BOS>", eos_token="<EOS>")


def _nothing(tag: str) -> str:
    """A tag that writes nothing and takes the same white space."""
    left, right = tag.startswith("{%-"), tag.endswith("-%}")
    return "{%" + "-" * left + " set _ = 0 " + "-" * right + "%}"


def reduced(
    chat: Chat,
    text: str,
    spans: list[tuple[int, int]],
    messages: list[dict[str, Any]],
    request: Mapping[str, Any],
) -> Iterator[tuple[int, int]]:
    """The marked spans, without what the prompts wrote and what stands behind a stop."""
    prompts = [
        chat.prepare(messages[:index], add_generation_prompt=True, **request).prompt
        for index, message in enumerate(messages)
        if message["role"] == "assistant"
    ]
    for start, end in spans:
        for prompt in prompts:
            shared = outside_marker(prompt, outside_marker(text, common(text, prompt)))
            if start < shared <= end:
                start = shared
        stops = [at + len(stop) for stop in chat.format.stops if (at := text.find(stop, start, end)) >= 0]
        yield start, min([*stops, end])


@pytest.mark.skipif(not PAIRS, reason="trl is not installed: pip install --no-deps trl")
@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.stem)
def test_our_mask_is_trls(path: Path) -> None:
    wrong = list(differences(path))
    assert bool(wrong) is (path.stem in EXPLAINED), wrong


def differences(path: Path) -> Iterator[str]:
    """Where the masks differ."""
    chat = chat_of(path)
    can = chat.template().probe()
    for name, messages in CASES.items():
        if (name == "call" and not (can.tools and can.tool_calls)) or (
            name == "thought" and not can.reasoning
        ):
            continue
        tools = TOOLS if name == "call" else None
        request: dict[str, Any] = {
            "tools": tools,
            "template_kwargs": {"strftime_now": lambda pattern: "today"},
        }
        try:
            text, spans = marked(path, messages, tools)
        except jinja2.TemplateError:  # TRL's template refuses it
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sample = chat.encode(messages, final_stop=False, rewritten=True, **request)
                wanted = set()
                for start, end in reduced(chat, text, spans, messages, request):
                    wanted |= set(range(start, end))
        except ChatParsersError as refused:
            yield f"{name}: refused: {refused}"
            continue
        if sample.text != text:
            yield f"{name}: other text"
            continue
        have = {place for place, mask in enumerate(sample.loss_mask) if mask}
        if have != wanted:
            ours, theirs = have - wanted, wanted - have
            yield (
                f"{name}: ours alone {''.join(text[i] for i in sorted(ours))!r}, "
                f"TRL's alone {''.join(text[i] for i in sorted(theirs))!r}"
            )
