"""Makes the pictures of docs/img that the package draws: ``python docs/_pictures.py [--check]``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chatparsers import display, get_format
from chatparsers.cli.demos import Sample, samples, tools
from chatparsers.testing.tiny import tiny_model

IMAGES = Path(__file__).resolve().parent / "img"
TOOLS = [
    {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
PIECES = [
    "Weather?\n</th",
    "ink>\n\nI look.\n\n<tool",
    "_call>\n<function=get_wea",
    "ther>\n<parameter=city>\nOs",
    "lo\n</para",
    "meter>\n</function>\n</tool_call>",
]


def stream() -> str:
    turn = get_format("qwen3-coder").bind(tools=TOOLS, prefix="<think>\n", id_seed="a picture")
    return display.timeline(turn, PIECES).svg()


def strip_of(sample: Sample) -> str:
    fmt = get_format(sample.format)
    turn = fmt.bind(tools=tools(), prefix=sample.prefix, id_seed="a picture")
    return display.strip(turn.parse(sample.output)).svg(f"{fmt.title}: {sample.question}")


def guide() -> str:
    """A guided answer: the model wishes for a longer thought than it may have."""
    tokenizer = tiny_model("qwen3").tokenizer
    turn = get_format("qwen3").bind(tools=TOOLS, prefix="<think>\n", tokenizer=tokenizer, id_seed="a picture")
    steered = turn.guide(thinking_tokens=10)
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    wished = tokenizer.encode(f"Hm, it may rain there. I look.{call}<|im_end|>").ids
    while wished and not steered.ended:
        for id in steered.forced():
            steered.feed(id)
            wished = wished[1:] if wished[:1] == [id] else wished
        while wished and not steered.accepts(wished[:1]):
            wished = wished[1:]
        steered.feed(wished[:1])
        wished = wished[1:]
    steered.finish()
    return display.strip(steered).svg("An answer with a budget of ten tokens for the thought")


def diagram() -> str:
    svg = display.diagram(get_format("qwen3")).svg
    return svg[svg.index("<svg") :]


PICTURES: dict[str, Callable[[], str]] = {
    "stream.svg": stream,
    "diagram-qwen3.svg": diagram,
    "guide.svg": guide,
    **{f"strip-{sample.format}.svg": partial(strip_of, sample) for sample in samples()},
}


def main(check: bool) -> int:
    stale = [
        name
        for name, make in PICTURES.items()
        if not (file := IMAGES / name).is_file() or file.read_text("utf-8") != make()
    ]
    for name in stale:
        if check:
            print(f"docs/img/{name} is stale: run python docs/_pictures.py", file=sys.stderr)
        else:
            (IMAGES / name).write_text(PICTURES[name](), encoding="utf-8", newline="\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
