"""``python docs/_tools_table.py TOKENIZERS [--check]``: counts the tokens of tools, in docs/tables/polyfills.md.

The tools (``_tools.json``) are thirty of public servers, written anew as those servers list them.
TOKENIZERS is a folder of ``NAME.json.gz`` or ``NAME.json``, each a ``tokenizer.json``.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import get_args

from tokenizers import Tokenizer

from chatparsers.templates.rewrite.declared import ToolsAs, declared

BEGIN, END = "<!-- tools: begin -->", "<!-- tools: end -->"
PAGE = Path(__file__).parent / "tables" / "polyfills.md"
TOOLS = json.loads((Path(__file__).parent / "_tools.json").read_text(encoding="utf-8"))


def table(folder: Path) -> str:
    """The table: a row for each tokenizer, a column for each way."""
    ways = get_args(ToolsAs)
    texts = {way: "\n".join(declared(tool, way) for tool in TOOLS) for way in ways}
    lines = [
        f"| {len(TOOLS)} tools, tokens | " + " | ".join(f"`{way}`" for way in ways) + " |",
        "|---|" + "---:|" * len(ways),
    ]
    files = sorted(path for path in folder.iterdir() if ".json" in path.name)
    for path in files:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        tokenizer = Tokenizer.from_buffer(raw)
        counts = [len(tokenizer.encode(texts[way], add_special_tokens=False).ids) for way in ways]
        shares = [
            f"{count:,}" + (f" ({count / counts[0]:.0%})" if place else "")
            for place, count in enumerate(counts)
        ]
        lines.append(f"| {path.name.partition('.json')[0]} | " + " | ".join(shares) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    folders = [Path(argument) for argument in arguments if argument != "--check"]
    if len(folders) != 1 or not folders[0].is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = f"{before}{BEGIN}\n{table(folders[0])}\n{END}{after}"
    if "--check" in arguments:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
