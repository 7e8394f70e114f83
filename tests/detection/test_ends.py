"""The text that a template writes after an answer is not content: its end of turn, or the header of the next turn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from making import tool

import chatparsers
from chatparsers.templates.probe.edges import edges_of

SHARED = ("templates", "templates-new", "templates-gguf")
# Classifiers: their templates show only the last turn, between texts of their own.
CLASSIFIERS = {"granite3-guardian_2b", "llama-guard3_1b", "shieldgemma_27b"}
ASK = {"role": "user", "content": "Find it."}
NEXT = {"role": "user", "content": "Needle of the next turn."}
ANSWER = "It is the 47th."
TOOLS = [tool("look", {"at": {"type": "string"}}, description="Looks.")]


def leaks(path: Path) -> Iterator[str]:
    """The part of the text after an answer that is wrongly read as content: at the end, and before a next turn."""
    chat = chatparsers.load(path, bos_token="<BOS>", eos_token="<EOS>")
    answer = {"role": "assistant", "content": ANSWER}
    for tools in (None, TOOLS):
        turn = chat.prepare([ASK], tools=tools)
        template, shown = chat.template(bool(tools)), None if "tools" in turn.polyfills else tools
        _, opened, wire = template.exchange(answer, history=[ASK], tools=shown)
        before = wire[: wire.rindex(ANSWER)]
        turn = turn._replace(prefix=edges_of(turn.format).opening(opened))
        for more in ([], [NEXT]):
            rendered = chat.prepare([ASK, answer, *more], tools=tools, add_generation_prompt=False).prompt
            behind = rendered[rendered.rindex(ANSWER) + len(ANSWER) :]
            message = turn.parse(before + ANSWER + behind)
            said = message.reasoning + message.content  # if the prompt opens a thought, the text is in it
            if not said.strip().endswith(ANSWER) or message.tool_calls:
                yield f"{path.stem}, tools {bool(tools)}: {behind!r} → {said!r}"
            if behind.strip():  # else the header of the next turn marks the end
                break


@pytest.mark.parametrize("folder", SHARED)
def test_what_ends_a_turn_is_no_content(
    folder: str, real_templates: list[Path], amount: Callable[[int, int, int], int]
) -> None:
    paths = sorted((real_templates[0].parents[1] / folder).glob("*.jinja"))
    if not paths:
        pytest.skip(f"no folder {folder} of real templates")
    paths = paths[:: amount(8, 1, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of tools that nobody reads
        found = [leak for path in paths if path.stem not in CLASSIFIERS for leak in leaks(path)]
    assert not found, "\n".join(found)


SEVERAL = (
    "{% for m in messages %}<|open|>{{ m.role }}<|sep|>{% if m.role == 'assistant' %}$HM$<|open|>say<|sep|>{% endif %}"
    "{{ m.content }}{% if m.role == 'assistant' %}<|close|>say<|sep|>{% endif %}<|close|>{{ m.role }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|open|>assistant<|sep|>{% endif %}"
)

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
COHERE = (
    "{% for m in messages %}<|start|>{{ m.role }}{{ '<|answer|>' if m.role == 'assistant' }}{{ m.content }}"
    "{{ '<|done|>' if m.role == 'assistant' }}<|stop|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant<|answer|>{% endif %}"
)
OWN_LLAMA = Path(__file__).parents[1] / "templates_own" / "llama-3-x.jinja"
LLAMA = ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>")
PART = "<|open|>hm<|sep|><|close|>hm<|sep|>"
EOS, CONTENT = {"eos_token": "[eos]"}, {"format": "content-only"}
# A template, how it is loaded, and the stops.
STOPS: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "a marker, and the model's own": (CHATML, EOS, ("<|im_end|>", "[eos]")),
    "the next turn's header": (
        "{% for m in messages %}### {{ m.role }}\n{{ m.content }}\n\n{% endfor %}",
        EOS,
        ("\n\n### user", "[eos]"),
    ),
    "the model's own": (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}",
        EOS,
        ("[eos]",),
    ),
    "a marker, and the model's own after the last answer": (
        "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
        "{{ '' if add_generation_prompt else eos_token }}",
        EOS,
        ("<|end|>", "[eos]"),
    ),
    "nothing": ("{{ messages[-1].content }}", EOS, ("[eos]",)),
    # What closes a part of the turn does not end it. Else what follows the first part would be lost, the answer too.
    "one part": (SEVERAL.replace("$HM$", ""), CONTENT, ("<|close|>",)),
    "several parts": (
        SEVERAL.replace("$HM$", PART),
        CONTENT,
        ("<|close|>say<|sep|><|close|>assistant<|end|>", "<|end|>"),
    ),
    # Cohere closes an answer's text by another marker before the one that also ends questions.
    "a marker that also ends questions": (COHERE, {}, ("<|done|><|stop|>", "<|stop|>")),
    "a format's own": (OWN_LLAMA.read_text(encoding="utf-8"), {}, LLAMA),
    "a format's own, and the template's": (CHATML, {"format": "llama-3-x"}, (*LLAMA, "<|im_end|>")),
}


@pytest.mark.parametrize("case", STOPS)
def test_the_stops_are_what_the_template_writes(case: str) -> None:
    source, given, stops = STOPS[case]
    chat = chatparsers.load(source, **given)
    assert chat.format.stops == stops
    for stop in stops:
        assert chat.prepare([ASK]).parse(f"It rains.{stop}\nWhat?").content == "It rains.", stop
