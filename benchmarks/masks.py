"""Measures the grammars: time to write, to compile, and to make a token mask with a real vocabulary of 150,000 tokens.

    python benchmarks/masks.py [--shared DIR] [--formats NAME,…] [--tools 3,60] [--json FILE] [--page FILE]
    python benchmarks/masks.py --pairs 5    # our tags and xgrammar's own for the same model, in turns

Each format reads a required call of one of its tools, as its template writes it, with reasoning before it if the format
has reasoning. The mask is made before every token. For comparison, xgrammar's own structural tags for the same models
run too, if they take the same text. Compiling is wall-clock time, the best of three, with two threads. A mask is CPU
time, mean and worst over all tokens of the text, in the first run over it (a server's usual case: every text is new).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import _schemas
from _report import as_markdown, write_between

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / folder) for folder in ("common", "grammar"))]

from samples import many_tools  # noqa: E402
from test_matrix import TOOL_FORMATS  # noqa: E402

import chatparsers  # noqa: E402
from chatparsers import grammar as grammars  # noqa: E402
from chatparsers.testing import Entry  # noqa: E402
from chatparsers.testing.rendering import Inexpressible, render  # noqa: E402
from chatparsers.testing.scenarios import Call, Scenario  # noqa: E402

BUILT_IN = {
    "deepseek-r1": "deepseek_r1",
    "deepseek-v3": "deepseek_r1",
    "deepseek-v3-1": "deepseek_v3_1",
    "deepseek-v3-2": "deepseek_v3_2",
    "deepseek-v4": "deepseek_v4",
    "deepseek-v4-1": "deepseek_v4_1",
    "exaone-4": "exaone",
    "glm-4-7": "glm_4_7",
    "gpt-oss": "harmony",
    "kimi-k2": "kimi",
    "kimi-k3": "kimi_k3",
    "llama-3-x": "llama",
    "minimax-m2": "minimax",
    "minimax-m3": "minimax_m3",
    "qwen3": "qwen_3",
    "qwen3-coder": "qwen_3_coder",
}
SPELLED = {"deepseek-r1": ("</think>\n\n", "</think>")}
"""A spelling of the template that xgrammar's own tag refuses, and one that it takes as ours does."""
TARGETS = {"xgrammar": (500, 50), "llguidance": (50, 200)}
"""The targets with 60 tools: ms to compile, mean µs for a mask."""
TEXT = 3 * (
    "I think that the user wants to know about the open issues; let me look. A line of code: def f(x): return x + 1 "
    "<b>bold</b>, Ümläute, 你好 and so on, for a while. "
)


@dataclass(frozen=True)
class Row:
    """One grammar in one engine. ``refused``: the token of the text that it refused, -1 if it took all of them."""

    format: str
    tools: int
    engine: str
    dialect: str
    write_ms: float
    size: int
    compile_ms: float
    mean_us: float
    worst_us: float
    refused: int

    @property
    def within(self) -> bool:
        """Whether it meets the targets. They are for 60 tools; an engine's own tags have no target."""
        if self.tools < 60 or self.dialect not in grammars.DIALECTS:
            return True
        compile_ms, mean_us = TARGETS[self.engine]
        return self.refused < 0 and self.compile_ms <= compile_ms and self.mean_us <= mean_us

    def line(self) -> str:
        """The row as text."""
        note = f"  refused at token {self.refused}" if self.refused >= 0 else "" if self.within else "  over"
        return (
            f"{self.format:18} {self.tools:5} {self.engine + ' ' + self.dialect:27} {self.write_ms:8.1f} "
            f"{self.size // 1024:5} {self.compile_ms:10.1f} {self.mean_us:8.1f} {self.worst_us:9.1f}{note}"
        )


HEAD = (
    f"{'format':18} tools {'engine and dialect':27} {'write ms':>8} {'KB':>5} "
    f"{'compile ms':>10} {'mean µs':>8} {'worst µs':>9}"
)


def timed(run: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """The best time in ms, and the result of the last run."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - start)
    return best * 1e3, found


# the text


def value_of(schema: dict[str, Any]) -> Any:
    """A value as a model might give it."""
    if "enum" in schema:
        return schema["enum"][-1]
    if "anyOf" in schema:
        return value_of(schema["anyOf"][0])
    if schema["type"] == "object":
        return {name: value_of(part) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return ["first", "second one"]
    return {"string": TEXT, "integer": 42, "number": 2.5, "boolean": True}[schema["type"]]


def example(name: str, tools: list[dict[str, Any]]) -> tuple[chatparsers.Turn, str]:
    """A request that requires a call, and its answer as the format's template writes it. The answer is a call with six
    arguments. Prose is the reasoning, if the format has it, and the strings of the call."""
    format = chatparsers.get_format(name)
    function = tools[len(tools) // 2]["function"]
    arguments = {key: value_of(schema) for key, schema in function["parameters"]["properties"].items()}
    scenario = Scenario("masks", calls=(Call.of(function["name"], **arguments),), tools=tuple(tools))
    template = Entry(format, ROOT / "tests" / "templates_own" / f"{name}.jinja").template()
    try:
        case = render(format, template, replace(scenario, reasoning=TEXT))
    except Inexpressible:
        case = render(format, template, scenario)
    text = case.text
    for stop in format.stops * 2:  # some templates write two
        text = text.removesuffix(stop)
    text = text.replace(*SPELLED.get(name, ("", "")))
    turn = format.bind(tools=tools, tool_choice="required", parallel_tool_calls=False, prefix=case.prefix)
    return turn, text.rstrip("\n")


# the engines


class Engines:
    """Both engines over the vocabulary of a tokenizer file."""

    def __init__(self, path: Path) -> None:
        from engines import llguidance, xgrammar
        from test_generated import real_vocabulary
        from tokenizers import Tokenizer

        self.xgrammar, self.llguidance = xgrammar(), llguidance()
        self.tokens, (self.compiler, _), self.tokenizer = real_vocabulary(path)
        plain = json.loads(gzip.decompress(path.read_bytes()))
        plain["added_tokens"] = []
        self.encoder = Tokenizer.from_str(json.dumps(plain))

    def compile(self, dialect: str, grammar: str) -> Callable[[], Any]:
        """Compiles a grammar; the result makes a matcher."""
        if dialect == "lark":
            matcher = self.llguidance.LLMatcher
            return lambda: matcher(self.tokenizer, matcher.grammar_from_lark(grammar), log_level=0)
        make = self.compiler.compile_grammar if dialect == "gbnf" else self.compiler.compile_structural_tag
        compiled = make(grammar)
        return lambda: self.xgrammar.GrammarMatcher(compiled)

    def masks(self, ids: list[int], *matchers: Any) -> list[list[float]]:
        """The CPU time in µs of the mask before each token, up to the first token that a matcher refuses. Several
        matchers take turns at each token."""
        times: list[list[float]] = [[] for _ in matchers]
        runs = [(*self._run(matcher), found) for matcher, found in zip(matchers, times, strict=True)]
        for token in ids:
            runs.reverse()  # each is the first one as often
            for make, _, found in runs:
                start = time.thread_time()
                make()
                found.append((time.thread_time() - start) * 1e6)
            if not all([take(token) for _, take, _ in runs]):
                break
        return times

    def _run(self, matcher: Any) -> tuple[Callable[[], Any], Callable[[int], bool]]:
        """What makes a mask, and what takes a token."""
        import numpy as np

        if isinstance(matcher, self.llguidance.LLMatcher):
            return matcher.compute_bitmask, matcher.consume_token
        mask = np.zeros((1, (len(self.tokens) + 31) // 32), dtype=np.int32)
        return lambda: matcher.fill_next_token_bitmask(mask), matcher.accept_token

    def measure(self, row: Row, grammar: str, ids: list[int]) -> Row:
        """Measures compiling and the masks, and returns the row with the figures."""

        def run() -> Any:
            return self.compile(row.dialect, grammar)()

        compile_ms, matcher = timed(run, 3)
        (times,) = self.masks(ids, matcher)
        return replace(
            row,
            size=len(grammar),
            compile_ms=compile_ms,
            mean_us=sum(times) / len(times),
            worst_us=max(times),
            refused=-1 if len(times) == len(ids) else len(times),
        )


def rows_of(name: str, count: int, engines: Engines) -> Iterator[Row]:
    """Measures a format with ``tools`` tools: in each dialect, and with the engine's own tags."""
    tools = many_tools(count)
    turn, text = example(name, tools)
    ids = engines.encoder.encode(text).ids
    blank = Row(name, count, "", "", 0, 0, 0, 0, 0, -1)
    for dialect in ("structural_tag", "gbnf", "lark"):
        grammars._CACHE.clear()
        write_ms, grammar = timed(lambda dialect=dialect: str(turn.grammar(dialect)))
        engine = "llguidance" if dialect == "lark" else "xgrammar"
        yield engines.measure(replace(blank, engine=engine, dialect=dialect, write_ms=write_ms), grammar, ids)
    if name in BUILT_IN:
        own = replace(blank, engine="xgrammar's", dialect=BUILT_IN[name])
        for tag in own_tags(name, tools, engines):
            row = engines.measure(own, tag, ids)
            if row.refused < 0:
                break
        yield row


def own_tags(name: str, tools: list[dict[str, Any]], engines: Engines) -> Iterator[str]:
    """xgrammar's own tags for the format: one takes the text if the prompt has opened the reasoning, one if not."""
    for reasoning in ("auto", "enabled"):
        tag = engines.xgrammar.get_model_structural_tag(
            BUILT_IN[name],
            tools=tools,
            tool_choice="required",
            reasoning=reasoning,
            parallel_tool_calls=False,
        )
        yield tag.model_dump_json(by_alias=True)


def pairs(name: str, count: int, engines: Engines, rounds: int) -> str:
    """Measures our tag and xgrammar's own, each compiled anew in each round. Returns a line of text: the mean mask of
    both, and the median of the ratios within a round with the least and the largest."""
    tools = many_tools(count)
    turn, text = example(name, tools)
    ids = engines.encoder.encode(text).ids

    def means(*tags: str) -> list[float]:
        matchers = [engines.compile("structural_tag", tag)() for tag in tags]
        return [sum(times) / len(times) for times in engines.masks(ids, *matchers) if len(times) == len(ids)]

    ours = str(turn.grammar("structural_tag"))
    own = next((tag for tag in own_tags(name, tools, engines) if means(tag)), None)
    if own is None:
        return f"{name:18} {count:5}  xgrammar's own tag reads other text"
    found = [means(ours, own) for _ in range(rounds)]
    mine, its = (statistics.median(column) for column in zip(*found, strict=True))
    ratios = sorted(one / other for one, other in found)
    middle = statistics.median(ratios)
    return f"{name:18} {count:5} {mine:8.1f} {its:8.1f} {middle:8.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


# the report


def page(path: Path, rows: list[Row]) -> None:
    """Puts the figures for 60 tools between the page's two comments. Raises SystemExit if the comments are missing."""
    lines = [
        ["60 tools", "xgrammar, structural tag", "xgrammar, GBNF", "llguidance, Lark", "xgrammar's own tag"]
    ]
    for name in dict.fromkeys(row.format for row in rows):
        cells = {row.dialect: row for row in rows if row.format == name and row.tools == 60}
        own = next((row for row in cells.values() if row.dialect not in grammars.DIALECTS), None)
        shown = [cells.get("structural_tag"), cells.get("gbnf"), cells.get("lark"), own]
        lines.append([f"`{name}`", *map(cell, shown)])
    try:
        write_between(path, "masks", as_markdown(lines))
    except ValueError as error:
        raise SystemExit(str(error)) from None


def cell(row: Row | None) -> str:
    """A row as one cell: ms to compile, mean and worst µs for a mask."""
    if row is None:
        return "–"
    if row.refused >= 0:
        return f"{row.compile_ms:.0f} ms, other text"
    return f"{row.compile_ms:.0f} ms, {row.mean_us:.0f} µs, {row.worst_us:.0f} µs"


def writing() -> Iterator[str]:
    """Measures writing the grammar of 100 tools. Returns lines of text."""
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=many_tools(100, 10))
    for dialect in grammars.DIALECTS:
        best = float("inf")
        for _ in range(5):
            grammars._CACHE.clear()
            spent, grammar = timed(lambda dialect=dialect: str(turn.grammar(dialect)))
            best = min(best, spent)
        cached, _ = timed(lambda dialect=dialect: turn.grammar(dialect))
        yield (
            f"writing 100 tools of 10 parameters, {dialect:15} {best:6.1f} ms, cached {cached:.2f} ms, "
            f"{len(grammar) // 1024} KB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shared", default=os.environ.get("CHATPARSERS_SHARED", str(ROOT.parent / "shared")))
    parser.add_argument("--formats", metavar="NAME,…", help="these alone")
    parser.add_argument("--tools", default="3,60", help="how many tools (default: %(default)s)")
    parser.add_argument(
        "--pairs", metavar="ROUNDS", type=int, help="our tags beside xgrammar's own, in turns"
    )
    parser.add_argument(
        "--schemas",
        metavar="FOLDER",
        type=Path,
        help="a folder of schemas instead, alone or as MaskBench has them",
    )
    parser.add_argument("--sample", metavar="COUNT", type=int, help="only so many schemas, drawn")
    parser.add_argument("--json", metavar="FILE", type=Path, help="keep every figure")
    parser.add_argument("--page", metavar="FILE", type=Path, help="write the table of 60 tools into a page")
    options = parser.parse_args()
    path = Path(options.shared) / "tokenizers" / "qwen3.json.gz"
    if not path.is_file():
        raise SystemExit(f"no vocabulary: {path} is missing (give --shared DIR)")
    engines = Engines(path)
    if options.schemas:
        lines = _schemas.table(
            options.schemas, options.sample, engines.tokenizer, engines.encoder, engines.llguidance
        )
        for line in lines:
            print(line, flush=True)
        return
    names = options.formats.split(",") if options.formats else TOOL_FORMATS
    counts = [int(count) for count in options.tools.split(",")]
    if options.pairs:
        print(f"{'format':18} tools  ours µs   its µs    ratio")
        for name, count in product((name for name in names if name in BUILT_IN), counts):
            print(pairs(name, count, engines, options.pairs), flush=True)
        return
    rows: list[Row] = []
    print(HEAD)
    for name in names:
        for count in counts:
            for row in rows_of(name, count, engines):
                rows.append(row)
                print(row.line(), flush=True)
    over = [row for row in rows if not row.within]
    print(f"\n{len(over)} over a target" + "".join(f"; {row.format} {row.dialect}" for row in over) + "\n")
    print("\n".join(writing()))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    if options.page:
        page(options.page, rows)


if __name__ == "__main__":
    main()
