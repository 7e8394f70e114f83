"""What the grammars cost: time to write, to compile, and to make a token mask with a real vocabulary of 150,000 tokens.

    python benchmarks/masks.py [--shared DIR] [--formats NAME,…] [--tools 3,60] [--json FILE]

Each format is driven along a required call of one of its tools as its template writes it, reasoning before it where the
format has that; the mask is made before every token. Beside it stand xgrammar's own structural tags for the same
models, as far as they take the same text. Compiling: wall-clock, the best of three, two threads. A mask: CPU time, mean
and worst over all tokens of the text, in the first run over it (a server's usual case: every text is new).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "grammar")]

import chatparsers  # noqa: E402
from chatparsers import grammar as grammars  # noqa: E402
from chatparsers.testing import Entry  # noqa: E402
from chatparsers.testing.rendering import Inexpressible, render  # noqa: E402
from chatparsers.testing.scenarios import Call, Scenario  # noqa: E402

BUILT_IN = {
    "qwen3-coder": "qwen_3_coder",
    "qwen3": "qwen_3",
    "llama-3-x": "llama",
    "kimi-k2": "kimi",
    "deepseek-v3-1": "deepseek_v3_1",
    "glm-4-5": "glm_4_7",
    "minimax-m2": "minimax",
    "gpt-oss": "harmony",
}
TEXT = 3 * (
    "I think that the user wants to know about the open issues; let me look. A line of code: def f(x): return x + 1 "
    "<b>bold</b>, Ümläute, 你好 and so on, for a while. "
)


def timed(run: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """The best time in seconds, and what the last run gave."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - start)
    return best, found


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
    """A request that requires a call, and its answer as the format's template writes it: prose as reasoning, where the
    format has that, and as the strings of a call with six arguments."""
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
    for stop in format.stops:
        text = text.removesuffix(stop)
    turn = format.bind(tools=tools, tool_choice="required", parallel_tool_calls=False, prefix=case.prefix)
    return turn, text.rstrip("\n")


def masks_xgrammar(compiled: Any, ids: list[int], size: int) -> tuple[list[float], bool]:
    import numpy as np
    from engines import xgrammar

    matcher = xgrammar().GrammarMatcher(compiled)
    mask = np.zeros((1, (size + 31) // 32), dtype=np.int32)
    times = []
    for token in ids:
        start = time.thread_time()
        matcher.fill_next_token_bitmask(mask)
        times.append(time.thread_time() - start)
        if not matcher.accept_token(token):
            return times, False
    return times, True


def masks_llguidance(tokenizer: Any, text: str, ids: list[int]) -> tuple[list[float], bool, str]:
    from engines import llguidance

    matcher = llguidance().LLMatcher(tokenizer, llguidance().LLMatcher.grammar_from_lark(text), log_level=0)
    times = []
    for token in ids:
        start = time.thread_time()
        matcher.compute_bitmask()
        times.append(time.thread_time() - start)
        if not matcher.consume_token(token):
            return times, False, matcher.get_error()
    return times, True, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", default=os.environ.get("CHATPARSERS_SHARED", str(ROOT.parent / "shared")))
    parser.add_argument("--formats", default="")
    parser.add_argument("--tools", default="3,60")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    path = Path(options.shared) / "tokenizers" / "qwen3.json.gz"
    if not path.is_file():
        raise SystemExit(f"no vocabulary: {path} is missing (give --shared DIR)")
    from engines import llguidance, xgrammar
    from samples import many_tools
    from test_generated import names, real_vocabulary

    tokens, (compiler, _), tokenizer = real_vocabulary(path)
    import gzip

    from tokenizers import Tokenizer

    plain = json.loads(gzip.decompress(path.read_bytes()))
    plain["added_tokens"] = []
    encoder = Tokenizer.from_str(json.dumps(plain))
    rows: list[dict[str, Any]] = []
    chosen = (
        options.formats.split(",")
        if options.formats
        else [n for n in names() if chatparsers.get_format(n).features.tools]
    )
    print(
        f"{'format':18} tools {'engine and dialect':24} {'write ms':>8} {'KB':>5} "
        f"{'compile ms':>10} {'mean µs':>8} {'worst µs':>9}"
    )
    for name in chosen:
        for count in map(int, options.tools.split(",")):
            tools = many_tools(count)
            turn, text = example(name, tools)
            ids = encoder.encode(text).ids
            plans: list[tuple[str, str]] = [
                ("xgrammar", "structural_tag"),
                ("xgrammar", "gbnf"),
                ("llguidance", "lark"),
            ]
            for engine, dialect in plans:
                grammars._CACHE.clear()
                written, grammar = timed(lambda turn=turn, dialect=dialect: str(turn.grammar(dialect)))
                if engine == "llguidance":
                    compile_time, _ = timed(
                        lambda g=grammar: llguidance().LLMatcher(
                            tokenizer, llguidance().LLMatcher.grammar_from_lark(g), log_level=0
                        ),
                        3,
                    )
                    times, whole, _ = masks_llguidance(tokenizer, grammar, ids)
                else:
                    make = compiler.compile_grammar if dialect == "gbnf" else compiler.compile_structural_tag
                    compile_time, compiled = timed(lambda make=make, g=grammar: make(g), 3)
                    times, whole = masks_xgrammar(compiled, ids, len(tokens))
                rows.append(
                    row(name, count, f"{engine} {dialect}", written, len(grammar), compile_time, times, whole)
                )
            if name in BUILT_IN:
                what = f"xgrammar's {BUILT_IN[name]}"
                try:
                    tag = xgrammar().get_model_structural_tag(
                        BUILT_IN[name], tools=tools, tool_choice="required", reasoning="auto"
                    )
                    compile_time, compiled = timed(lambda tag=tag: compiler.compile_structural_tag(tag), 3)
                except (ValueError, RuntimeError) as error:
                    print(f"{name:18} {count:5} {what}: {str(error).splitlines()[0][:80]}")
                    continue
                times, whole = masks_xgrammar(compiled, ids, len(tokens))
                rows.append(row(name, count, what, 0, 0, compile_time, times, whole))
    over = [row for row in rows if row["tools"] == 60 and not within(row)]
    print(f"\n60 tools: {len(over)} over a target" + "".join(f"; {r['format']} {r['engine']}" for r in over))
    print()
    for dialect in grammars.DIALECTS:
        tools = many_tools(100, 10)
        turn = chatparsers.get_format("hermes-2-pro").bind(tools=tools)
        best = 1.0
        for _ in range(5):
            grammars._CACHE.clear()
            seconds, grammar = timed(lambda turn=turn, dialect=dialect: str(turn.grammar(dialect)))
            best = min(best, seconds)
        cached, _ = timed(lambda turn=turn, dialect=dialect: turn.grammar(dialect))
        rows.append({"write": dialect, "ms": best * 1e3, "cached ms": cached * 1e3, "bytes": len(grammar)})
        print(
            f"writing 100 tools of 10 parameters, {dialect:15} {best * 1e3:6.1f} ms, "
            f"cached {cached * 1e3:.2f} ms, {len(grammar) // 1024} KB"
        )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")


TARGETS = {"xgrammar": (500, 50), "llguidance": (50, 200)}
"""With 60 tools: ms to compile, mean µs a mask."""


def within(row: dict[str, Any]) -> bool:
    """Whether a row keeps to the targets for 60 tools; an engine's own tags have none."""
    engine, _, dialect = row["engine"].partition(" ")
    if dialect not in grammars.DIALECTS:
        return True
    compile_ms, mean = TARGETS[engine]
    return row["accepted"] and row["compile_ms"] <= compile_ms and row["mask_mean_us"] <= mean


def row(
    name: str,
    count: int,
    what: str,
    written: float,
    size: int,
    compile_time: float,
    times: list[float],
    whole: bool,
) -> dict[str, Any]:
    mean = sum(times) / len(times) * 1e6 if times else 0.0
    worst = max(times, default=0.0) * 1e6
    note = "" if whole else f"  refused at token {len(times)}"
    print(
        f"{name:18} {count:5} {what:24} {written * 1e3:8.1f} {size // 1024:5} "
        f"{compile_time * 1e3:10.1f} {mean:8.1f} {worst:9.1f}{note}",
        flush=True,
    )
    return {
        "format": name,
        "tools": count,
        "engine": what,
        "write_ms": written * 1e3,
        "bytes": size,
        "compile_ms": compile_time * 1e3,
        "mask_mean_us": mean,
        "mask_worst_us": worst,
        "accepted": whole,
    }


if __name__ == "__main__":
    main()
