"""What the grammars cost: time to write, to compile, and to make a token mask with a real vocabulary of 150,000 tokens.

    python benchmarks/masks.py [--shared DIR] [--formats NAME,…] [--tools 3,60] [--json FILE]

Each format is driven along a required call of one of its tools, reasoning before it where the format has that; the mask
is made before every token. Beside it stand xgrammar's own structural tags for the same models. Times are wall-clock; a
mask's mean and worst are over all tokens of the text.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "grammar")]

import chatparsers  # noqa: E402
from chatparsers import grammar as grammars  # noqa: E402

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


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def example(name: str, tools: list[dict[str, Any]], tokens: list[bytes], engine: Any, seed: int) -> str:
    """A text of the required grammar: a random walk with long strings put in where the grammar admits them."""
    from samples import Walk, literals, walk_bytes
    from test_generated import byte_vocabulary

    byte_tokens, (compiler, end), _ = byte_vocabulary()
    turn = chatparsers.get_format(name).bind(tools=tools, tool_choice="required", parallel_tool_calls=False)
    text, tag = str(turn.grammar()), str(turn.grammar("structural_tag"))
    compiled = compiler.compile_structural_tag(tag)
    closers = [list(closer) for closer in literals(text, tag)]
    for attempt in range(30):
        found = walk_bytes(
            Walk("xgrammar", compiled, byte_tokens, end), closers, seed + attempt, free=15, limit=3000
        )
        if found is None:
            continue
        for at in range(len(found)):
            longer = found[:at] + TEXT + found[at:]
            if at and found[at - 1] in '"\n>' and engine(longer):
                return longer
    raise SystemExit(f"{name}: no example")


def masks_xgrammar(compiled: Any, ids: list[int], size: int) -> tuple[list[float], bool]:
    import numpy as np
    from engines import xgrammar

    matcher = xgrammar().GrammarMatcher(compiled)
    mask = np.zeros((1, (size + 31) // 32), dtype=np.int32)
    times = []
    for token in ids:
        start = time.perf_counter()
        matcher.fill_next_token_bitmask(mask)
        times.append(time.perf_counter() - start)
        if not matcher.accept_token(token):
            return times, False
    return times, True


def masks_llguidance(tokenizer: Any, text: str, ids: list[int]) -> tuple[list[float], bool, str]:
    from engines import llguidance

    matcher = llguidance().LLMatcher(tokenizer, llguidance().LLMatcher.grammar_from_lark(text), log_level=0)
    times = []
    for token in ids:
        start = time.perf_counter()
        matcher.compute_bitmask()
        times.append(time.perf_counter() - start)
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
    from engines import Xgrammar, llguidance, xgrammar
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
            turn = chatparsers.get_format(name).bind(
                tools=tools, tool_choice="required", parallel_tool_calls=False
            )
            judge = Xgrammar(str(turn.grammar("structural_tag")), "structural_tag")
            text = example(name, tools, tokens, lambda t, judge=judge: judge.status(t).kind == "full", 7)
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
                        )
                    )
                    times, whole, _ = masks_llguidance(tokenizer, grammar, ids)
                else:
                    make = compiler.compile_grammar if dialect == "gbnf" else compiler.compile_structural_tag
                    compile_time, compiled = timed(lambda make=make, g=grammar: make(g))
                    times, whole = masks_xgrammar(compiled, ids, len(tokens))
                rows.append(
                    row(name, count, f"{engine} {dialect}", written, len(grammar), compile_time, times, whole)
                )
            if name in BUILT_IN:
                try:
                    tag = xgrammar().get_model_structural_tag(
                        BUILT_IN[name], tools=tools, tool_choice="required"
                    )
                    compile_time, _ = timed(lambda tag=tag: compiler.compile_structural_tag(tag))
                    rows.append(
                        row(name, count, f"xgrammar's {BUILT_IN[name]}", 0, 0, compile_time, [], True)
                    )
                except (ValueError, RuntimeError) as error:
                    print(
                        f"{name:18} {count:5} xgrammar's {BUILT_IN[name]}: {str(error).splitlines()[0][:80]}"
                    )
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
    note = "" if whole else "  REFUSED"
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
