"""What others wrote, as judges: `renderers`, and the `{% generation %}` marks of TRL's training templates.

TRL marks more than a model writes after its prompt. So its marks are cut in front to the end of the generation prompt,
and behind to the end of the first stop. What is left must be our mask.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox
import pytest
from making import tool

import chatparsers
from chatparsers import Chat
from chatparsers.errors import ChatParsersError
from chatparsers.templates.probe.turns import common, outside_marker

sys.path.insert(0, str(Path(__file__).parent))

from dialogues import TOOLS as DIALOGUE_TOOLS
from dialogues import conversation

BEGIN, END = "\ue100", "\ue101"
FOUND = find_spec("trl")
PAIRS = (
    sorted(Path(FOUND.submodule_search_locations[0], "chat_templates").glob("*_training.jinja"))
    if FOUND is not None and FOUND.submodule_search_locations
    else []
)
TOOLS = [
    tool("get_weather", {"city": {"type": "string", "description": "Where."}}, description="The weather.")
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


FAMILIES = {
    "qwen3": ("Qwen-Qwen3-0.6B", "Qwen/Qwen3-0.6B", None, "<|im_end|>"),
    "llama3.1": (
        "meta-llama-Llama-3.2-3B-Instruct",
        "meta-llama/Llama-3.2-3B-Instruct",
        "<|begin_of_text|>",
        "<|eot_id|>",
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_our_renderer_is_theirs(
    name: str, shared_dir: Path, tokenizer: Callable[[str], Any], amount: Callable[[int, int, int], int]
) -> None:
    """ids, masks, answers and bridges of `renderers`; where ours bridges alone, theirs renders anew at a question."""
    pytest.importorskip("openai")
    base = pytest.importorskip("renderers.base")
    transformers = pytest.importorskip("transformers")
    from chatparsers.adapters.renderers import Renderer

    template, model, bos, eos = FAMILIES[name]
    path, real = shared_dir / "templates" / f"{template}.jinja", tokenizer(name)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=real, bos_token=bos, eos_token=eos)
    fast.name_or_path, fast.chat_template = model, path.read_text(encoding="utf-8")
    theirs = base.create_renderer(fast)
    chat = chatparsers.load(path, tokenizer=real, bos_token=bos, eos_token=eos)
    ours = Renderer(chat, now=datetime(2024, 7, 26))
    for seed in range(amount(5, 20, 1000)):
        thoughts = chat.format.features.reasoning and seed % 2 == 0
        messages = conversation(Random(seed), tools=seed % 4 != 0, several=False, thoughts=thoughts)
        tools = DIALOGUE_TOOLS if seed % 4 else None
        mine, other = ours.render(messages, tools=tools), theirs.render(messages, tools=tools)
        assert (mine.token_ids, mine.sampled_mask) == (
            other.token_ids,
            [bool(mark) for mark in other.sampled_mask],
        )
        for index, message in enumerate(messages[:-1]):
            if message["role"] != "assistant":
                continue
            after = next(
                (i for i in range(index + 1, len(messages)) if messages[i]["role"] == "assistant"), None
            )
            prompt = ours.render_ids(messages[:index], tools=tools, add_generation_prompt=True)
            whole = ours.render(messages[: index + 1], tools=tools)
            answer = whole.token_ids[len(prompt) : len(prompt) + sum(whole.sampled_mask[len(prompt) :])]
            new = messages[index + 1 : after]
            have = ours.bridge_to_next_turn(prompt, answer, new, tools=tools)
            want = theirs.bridge_to_next_turn(prompt, answer, new, tools=tools)
            assert want is None or (have is not None and have.token_ids == want.token_ids)
