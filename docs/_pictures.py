"""Makes the pictures of docs/img that the package draws: ``python docs/_pictures.py [--check]``."""

from __future__ import annotations

import json
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


def peers() -> str:
    """What `benchmarks/peers.py --json docs/_peers.json` measured: small calls beside mlx-lm, a bar for each row."""
    told = json.loads((IMAGES.parent / "_peers.json").read_text(encoding="utf-8"))
    (table,) = (one for one in told["tables"] if one["key"] == "small calls")
    peer = next(name for name in table["columns"] if "mlx-lm" in name)
    bars = [
        (row["name"].removeprefix("8 calls, "), row["figures"][peer])
        for row in table["rows"]
        if row["name"].endswith("a delta") and isinstance(row["figures"][peer], float)
    ]
    left, unit, line = 330, 190, 20
    height = 60 + line * len(bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" role="img" '
        'aria-label="CPU time of small calls beside mlx-lm, by format and size of a piece">',
        "<style>text{font:12px sans-serif;fill:#1f2933}.b{fill:#0072b2}.r{stroke:#d55e00;stroke-width:1.5}</style>",
        f'<rect width="800" height="{height}" rx="8" fill="#ffffff"/>',
        f'<text x="{left}" y="20">CPU time, × mlx-lm (the line)</text>',
    ]
    for place, (name, ratio) in enumerate(bars):
        y = 34 + line * place
        parts.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{name}</text>')
        parts.append(f'<rect class="b" x="{left}" y="{y + 2}" width="{unit * ratio:.0f}" height="13"/>')
        parts.append(f'<text x="{left + unit * ratio + 6:.0f}" y="{y + 12}">{ratio:.2f}</text>')
    parts.append(f'<line class="r" x1="{left + unit}" x2="{left + unit}" y1="30" y2="{height - 20}"/></svg>')
    return "\n".join(parts) + "\n"


def diagram() -> str:
    svg = display.diagram(get_format("qwen3")).svg
    return svg[svg.index("<svg") :]


PICTURES: dict[str, Callable[[], str]] = {
    "stream.svg": stream,
    "diagram-qwen3.svg": diagram,
    "guide.svg": guide,
    "peers.svg": peers,
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
