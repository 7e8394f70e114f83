"""Measures parsing: CPU time for a piece and a token, throughput, latency, memory. Each figure has its budget.

    python benchmarks/parse.py [--quick] [--markdown] [--json FILE] [--page FILE] [--memory] [--strict]

The yardstick is a bare `tokenizers.decoders.DecodeStream` over the same text in the same run. docs/performance.md
says how to read the tables. A slow figure is a failure only with ``--strict``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout, installed or not

from _measure import ROOT, best_of, cut, feed, fresh, machine, medians, step, tokenizers_in, trained
from _report import Budget, Row, Table, as_json, as_text, number, write_page
from _texts import KINDS, TOOLS, Wire, argument_wire, many_tools
from tokenizers import Tokenizer

from chatparsers import CallArguments, Message, RequestError, Stream, Turn, get_format, list_formats

SIZES = (256, 4096, 65536)
FLAT = 1.2
MEGABYTE = 1_000_000
# For each real tokenizer by the name of its file: a format of the models that have it.
FORMAT_OF = {
    "qwen3": "qwen3",
    "llama3.1": "llama-3-x",
    "tekken-v13": "ministral-3",
    "mistral-spm-v7": "mistral-nemo",
    "o200k_harmony": "gpt-oss",
    "deepseek-v3x": "deepseek-v3-1",
}


def started(wire: Wire) -> Stream:
    """A stream that has read the wire before the text."""
    stream = wire.turn().stream()
    stream.feed(wire.head)
    return stream


def grouped(tokenizer: Tokenizer, text: str, size: int) -> list[str]:
    """The text, cut after each group of tokens."""
    ends = [end for _, end in tokenizer.encode(text, add_special_tokens=False).offsets][size - 1 :: size]
    return [text[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True) if end > start]


def a_piece(wire: Wire, pieces: list[str], least: int = 8192) -> Callable[[], float]:
    """Measures µs for a piece. Short streams run several times."""
    times = max(1, least // len(pieces))

    def run() -> float:
        return sum(feed(started(wire), pieces) for _ in range(times)) / times / len(pieces) * 1e6

    return run


def a_token(tokenizer: Tokenizer, ids: list[int]) -> float:
    """Measures µs for a token of the yardstick."""
    return step(tokenizer, ids) / len(ids) * 1e6


def an_id(turn: Turn, head: list[int], pieces: list[Any], tokens: int) -> float:
    """Measures µs for a token of a stream that is fed ids, one by one or in lists."""
    stream = turn.stream()
    stream.feed(head)
    return feed(stream, pieces) / tokens * 1e6


def check_pieces(wire: Wire, pieces: list[str]) -> None:
    """Asserts that the stream's message is that of the whole parse, so that the right work is measured."""
    stream = started(wire)
    for piece in pieces:
        stream.feed(piece)
    stream.feed(wire.tail)
    stream.finish()
    assert stream.message == wire.turn().parse(wire.head + "".join(pieces) + wire.tail), wire.kind


def pieces_table(tokenizer: Tokenizer, quick: bool) -> Table:
    sizes = SIZES[:2] if quick else SIZES
    rounds = 3 if quick else 7
    columns = [f"{size:,} pieces" for size in sizes]
    columns += ["flat", "five tokens", "DecodeStream a token", "ratio"]
    table = Table("µs a piece", "Streaming: µs a 4-character piece, and a piece of five tokens", columns)
    for wire in KINDS:
        wire.check(2000)
        text = wire.text(4 * sizes[-1])
        fives = grouped(tokenizer, text[: 4096 * 32], 5)[:4096]
        ids = tokenizer.encode(text[: 4096 * 8], add_special_tokens=False).ids
        check_pieces(wire, cut(text, 4, 512))
        cases: dict[str, Callable[[], float]] = {
            str(size): a_piece(wire, cut(text, 4, size)) for size in sizes
        }
        cases["five"] = a_piece(wire, fives)
        cases["yardstick"] = partial(a_token, tokenizer, ids)
        found = medians(cases, rounds)
        figures = [found[str(size)] for size in sizes]
        yardstick = found["yardstick"]
        share = figures[-1] / figures[0]
        plain = wire.part != "arguments"
        limit = max(1.5, 3 * yardstick) if plain else max(2.5, 5 * yardstick)
        worst = max(*figures, found["five"])
        table.rows.append(
            Row(
                wire.kind,
                [*figures, f"{share - 1:+.0%}", found["five"], yardstick, max(figures) / yardstick],
                [Budget(limit, "µs", worst), *([] if quick else [Budget(FLAT, "× flat", share)])],
            )
        )
    table.notes.append(
        "Budget: 1.5 µs (or 3 × DecodeStream where that is more) in text, 2.5 µs (or 5 ×) in arguments; 65,536 "
        "pieces at most 1.2 × of 256."
    )
    return table


def whole_table(quick: bool) -> Table:
    table = Table("one shot", "Whole outputs: MB/s of Turn.parse over 1 MB", ["MB/s", "ms"])
    size = MEGABYTE // 4 if quick else MEGABYTE
    for wire in KINDS:
        text = wire.head + wire.text(size) + wire.tail
        turn = wire.turn()
        seconds = best_of(partial(turn.parse, text), 1, 3 if quick else 7)
        rate = len(text.encode()) / seconds / 1e6
        limit = 20 if wire.part == "arguments" else 50
        table.rows.append(Row(wire.kind, [rate, seconds * 1e3], [Budget(limit, "MB/s", rate, least=True)]))
    return table


_FIRST = """
import chatparsers
from _texts import many_tools
tools = many_tools({tools})
begun = clock()
turn = chatparsers.get_format("qwen3").bind(tools=tools, prefix="<think>\\n")
stream = turn.stream()
stream.feed("Hm")
print(json.dumps([clock() - begun]))
"""
_GRAMMAR = """
import chatparsers
from _texts import many_tools
first, second = many_tools(100), many_tools(100, mark="x_")
form = chatparsers.get_format("hermes-2-pro")
turn = form.bind(tools=first)
begun = clock()
turn.grammar({dialect!r})
read = clock()
form.bind(tools=second).grammar({dialect!r})
again = clock()
for _ in range(20):
    form.bind(tools=second).grammar({dialect!r})
print(json.dumps([read - begun, again - read, (clock() - again) / 20]))
"""


def latency_table(quick: bool) -> Table:
    table = Table("latency", "Latency: before the first piece", ["µs warm", "ms first in a process"])
    times, rounds = (3, 3) if quick else (7, 7)
    format = get_format("qwen3")
    for count in (2, 500):
        tools = many_tools(count)
        call = f'</think>\n\n<tool_call>\n{{"name": "tool_{count - 1}", "arguments": {{}}}}\n</tool_call>'

        def bound(tools: list[dict[str, Any]] = tools) -> Stream:
            return format.bind(tools=tools, prefix="<think>\n").stream()

        def called(call: str = call, bound: Callable[[], Stream] = bound) -> None:
            bound().feed(call)

        warm, read = best_of(bound, 500, rounds) * 1e6, best_of(called, 100, rounds) * 1e6
        (first,) = fresh(_FIRST.format(tools=count), times)
        table.rows.append(Row(f"bind + stream, {count} tools", [warm, first], [Budget(100, "µs", warm)]))
        table.rows.append(Row(f"… and one call read, {count} tools", [read, None]))
    (imported,) = fresh(
        "begun = clock()\nimport chatparsers\nprint(json.dumps([clock() - begun]))", times + 4
    )
    table.rows.append(Row("import chatparsers", [None, imported], [Budget(50, "ms", imported)]))
    return table


_CALLED = ("hermes-2-pro", "qwen3-coder", "gemma-4", "lfm2")
"""A format of each syntax of values."""


def calls_table(quick: bool) -> Table:
    columns = [f"{number} {pieces}" for number in ("one", "eight") for pieces in ("whole", "in 20s", "in 4s")]
    table = Table("calls", "Small calls: µs a message, whole and in pieces of 20 and 4 characters", columns)
    for name in _CALLED:
        format = get_format(name)
        turn = format.bind(tools=TOOLS, id_seed="benchmark")
        cases: dict[str, Callable[[], float]] = {}
        for count in (1, 8):
            called = [
                {
                    "id": f"benchmark{place}",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": {"city": f"Oslo {place}"}},
                }
                for place in range(count)
            ]
            text = format.render({"role": "assistant", "content": None, "tool_calls": called}, tools=TOOLS)
            for size in (len(text), 20, 4):
                pieces = cut(text, size, -(-len(text) // size))
                assert len(read(turn, pieces).tool_calls) == count
                cases[f"{count} {size}"] = partial(a_message, turn, pieces)
        found = medians(cases, 3 if quick else 7)
        table.rows.append(Row(name, list(found.values())))
    return table


def read(turn: Turn, pieces: list[str]) -> Message:
    """The message of the pieces."""
    stream = turn.stream()
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return stream.message


def a_message(turn: Turn, pieces: list[str], times: int = 50) -> float:
    """Measures µs for a message."""
    begun = process_time()
    for _ in range(times):
        read(turn, pieces)
    return (process_time() - begun) / times * 1e6


def grammar_table(quick: bool) -> Table:
    columns = ["ms first in a process", "ms new tools", "ms cached", "characters"]
    table = Table("grammar", "Grammar: 100 tools with 10 parameters each", columns)
    turn = get_format("hermes-2-pro").bind(tools=many_tools(100))
    for dialect in ("gbnf", "lark", "structural_tag"):
        try:
            size = len(str(turn.grammar(dialect)))
        except ModuleNotFoundError as error:
            table.notes.append(f"{dialect}: skipped, no module named {error.name}")
            continue
        except RequestError as error:
            table.notes.append(f"{dialect}: skipped: {error}")
            continue
        first, new, cached = fresh(_GRAMMAR.format(dialect=dialect), 3 if quick else 7)
        budgets = [Budget(50, "ms new", new), Budget(1, "ms cached", cached)]
        table.rows.append(Row(dialect, [first, new, cached, size], budgets))
    return table


def longest_silence(wire: Wire, pieces: list[str]) -> int:
    """The longest run of pieces in the text without an event for the arguments, in pieces."""
    stream = started(wire)
    longest = silent = 0
    for piece in pieces:
        heard = any(isinstance(event, CallArguments) for event in stream.feed(piece))
        silent = 0 if heard else silent + 1
        longest = max(longest, silent)
    return longest


def formats_table(names: list[str], quick: bool) -> Table:
    columns = ["µs a piece", "of 20 characters", "longest silence in pieces", "of 1 character"]
    table = Table("format", "Every format: one long string argument, 4-character pieces", columns)
    infos = [
        info for info in list_formats() if (info.name in names if names else info.origin == "chatparsers")
    ]
    unknown = sorted(set(names) - {info.name for info in infos})
    if unknown:
        get_format(unknown[0])  # says what was meant
    without = []
    for info in infos:
        wire = argument_wire(info.load())
        if wire is None:
            without.append(info.name)
            continue
        wire.check(2000)
        text = wire.text(4096 * 20)
        pieces = cut(text, 4, 4096)
        check_pieces(wire, pieces[:512])
        cases = {"four": a_piece(wire, pieces), "twenty": a_piece(wire, cut(text, 20, 4096), 4096)}
        found = medians(cases, 3 if quick else 5)
        silences = [longest_silence(wire, cut(text, size, 4096)) for size in (4, 1)]
        budget = Budget(3.5, "µs", max(found.values()))
        table.rows.append(Row(info.name, [*found.values(), *silences], [budget]))
    if without:
        table.notes.append(f"No call in the sample, so left out: {', '.join(without)}.")
    return table


def ids_table(tokenizers: dict[str, Tokenizer], quick: bool) -> Table:
    columns = ["format", "content", "in fives", "arguments", "in fives", "DecodeStream", "ms first stream"]
    keyed = [f"{column} " if column in columns[:place] else column for place, column in enumerate(columns)]
    table = Table("tokenizer", "Ids: µs a token, from id to event", keyed)
    for name, tokenizer in tokenizers.items():
        argued = argument_wire(get_format(FORMAT_OF.get(name, "qwen3")))
        assert argued is not None
        content = Wire("content", argued.format, "content", "", KINDS[0].text, "")
        begun = process_time()
        stream = argued.turn(tokenizer=tokenizer).stream()
        stream.feed(tokenizer.encode(argued.head, add_special_tokens=False).ids)
        first = (process_time() - begun) * 1e3
        cases: dict[str, Callable[[], float]] = {}
        for case in (content, argued):
            turn = case.turn(tokenizer=tokenizer)
            text = case.text(4096 * 4)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            head = tokenizer.encode(case.head, add_special_tokens=False).ids
            check_ids(case, tokenizer, head, ids)
            fives = [ids[at : at + 5] for at in range(0, len(ids), 5)]
            cases[case.part] = partial(an_id, turn, head, ids, len(ids))
            cases[f"{case.part} fives"] = partial(an_id, turn, head, fives, len(ids))
            cases["yardstick"] = partial(a_token, tokenizer, ids)
        found = medians(cases, 3 if quick else 7)
        figures = [found[f"{part}{size}"] for part in ("content", "arguments") for size in ("", " fives")]
        budget = Budget(4, "µs", max(figures))
        table.rows.append(Row(name, [argued.format, *figures, found["yardstick"], first], [budget]))
    return table


def check_ids(case: Wire, tokenizer: Tokenizer, head: list[int], ids: list[int]) -> None:
    """Asserts that ids give the message of their text. Some tokenizers write a first space, which `decode` strips."""
    turn = case.turn(tokenizer=tokenizer)
    stream = turn.stream()
    for id in [*head, *ids]:
        stream.feed(id)
    said = case.turn().stream()
    said.feed(tokenizer.decode([*head, *ids], skip_special_tokens=False))
    found, expected = case.found(stream.message).lstrip(), case.found(said.message).lstrip()
    assert found and found == expected, (case.format, case.part)


def memory_table(quick: bool) -> Table:
    columns = ["bytes a character, streamed", "… with its message", "bytes a character, one shot"]
    table = Table("memory", "Memory: peak of 1 MB of text, pieces included", columns)
    size = MEGABYTE // 8 if quick else MEGABYTE
    for wire in KINDS:
        text = wire.text(size)[:size]
        turn = wire.turn()
        stream = turn.stream()
        stream.feed(wire.head)
        tracemalloc.start()
        for at in range(0, size, 4):
            stream.feed(text[at : at + 4])
        streamed = tracemalloc.get_traced_memory()[1]
        message = stream.message
        both = tracemalloc.get_traced_memory()[1]
        del stream, message
        tracemalloc.stop()
        whole = wire.head + text
        tracemalloc.start()
        message = turn.parse(whole)
        once = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        del message
        table.rows.append(Row(wire.kind, [streamed / size, both / size, once / size]))
    return table


def summary(tables: dict[str, Table]) -> list[tuple[str, str, str]]:
    """The lines of the page's second table: name, measured figure, budget."""

    def of(key: str, name: str) -> Row:
        return next(row for row in tables[key].rows if row.name == name)

    def between(key: str, place: int) -> str:
        values = [float(row.figures[place] or 0) for row in tables[key].rows]
        return f"{number(min(values))} to {number(max(values))}"

    def budget(key: str, *names: str) -> str:
        held = [
            budget for row in tables[key].rows if not names or row.name in names for budget in row.budgets
        ]
        verdicts: dict[tuple[float, str, bool], bool] = {}
        for found in held:
            limit = (found.limit, found.unit, found.least)
            verdicts[limit] = verdicts.get(limit, True) and found.ok
        return ", ".join(
            f"{'≥' if least else '≤'} {number(limit)} {unit}: {'ok' if ok else 'over'}"
            for (limit, unit, least), ok in verdicts.items()
        )

    silent = max(int(row.figures[2] or 0) for row in tables["formats"].rows)
    lines = [
        (
            f"{len(tables['formats'].rows)} formats, a 4-character piece of one long string argument",
            f"{between('formats', 0)} µs; longest silence {silent} piece{'s' * (silent != 1)}",
            budget("formats"),
        ),
        (
            f"token ids, {len(tables['ids'].rows)} tokenizers, from id to event, a token",
            f"content {between('ids', 1)} µs, arguments {between('ids', 3)} µs (`DecodeStream` {between('ids', 5)} µs)",
            budget("ids"),
        ),
    ]
    texts, calls = ("content", "reasoning"), [w.kind for w in KINDS if w.part == "arguments"]
    for kinds in (texts, calls):
        rates = " / ".join(number(of("whole", kind).figures[0]) for kind in kinds)
        lines.append((f"1 MB in one piece: {' / '.join(kinds)}", f"{rates} MB/s", budget("whole", *kinds)))
    two, many = (of("latency", f"bind + stream, {count} tools") for count in (2, 500))
    lines.append(
        (
            "`bind` + `stream`, 2 / 500 tools",
            f"{number(two.figures[0])} / {number(many.figures[0])} µs",
            budget("latency", two.name, many.name),
        )
    )
    imported = of("latency", "import chatparsers")
    lines.append(
        ("`import chatparsers`", f"{number(imported.figures[1])} ms", budget("latency", imported.name))
    )
    for row in tables["grammar"].rows:
        made = f"{number(row.figures[1])} ms, cached {number(row.figures[2])} ms"
        lines.append(
            (f"grammar of 100 tools × 10 parameters, `{row.name}`", made, budget("grammar", row.name))
        )
    return lines


_TABLES: dict[str, Callable[[argparse.Namespace, Callable[[], dict[str, Tokenizer]]], Table]] = {
    "pieces": lambda options, real: pieces_table(next(iter(real().values())), options.quick),
    "whole": lambda options, real: whole_table(options.quick),
    "latency": lambda options, real: latency_table(options.quick),
    "calls": lambda options, real: calls_table(options.quick),
    "grammar": lambda options, real: grammar_table(options.quick),
    "formats": lambda options, real: formats_table(
        [n for n in options.formats.split(",") if n], options.quick
    ),
    "ids": lambda options, real: ids_table(real(), options.quick),
    "memory": lambda options, real: memory_table(options.quick),
}


def shared(given: Path | None) -> Path | None:
    """The folder of tokenizers: of ``--shared``, else of CHATPARSERS_SHARED, else beside the checkout."""
    folder = given or Path(os.environ.get("CHATPARSERS_SHARED") or ROOT.parent / "shared")
    return folder / "tokenizers" if (folder / "tokenizers").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and sizes: a look, no figures to quote"
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write all figures as JSON")
    parser.add_argument(
        "--page", metavar="FILE", type=Path, help="also write the short tables into this page"
    )
    parser.add_argument(
        "--formats", metavar="NAMES", default="", help="only these formats in their table: a,b,c"
    )
    parser.add_argument(
        "--tables", metavar="KEYS", default="", help=f"only these tables: {','.join(_TABLES)}"
    )
    parser.add_argument("--memory", action="store_true", help="also the table of memory")
    parser.add_argument("--shared", metavar="DIR", type=Path, help="folder with tokenizers/*.json(.gz)")
    parser.add_argument("--strict", action="store_true", help="exit status 1 where a budget is exceeded")
    options = parser.parse_args()
    keys = [key for key in options.tables.split(",") if key] or [
        k for k in _TABLES if k != "memory" or options.memory
    ]
    if unknown := [key for key in keys if key not in _TABLES]:
        parser.error(f"--tables: expected some of {', '.join(_TABLES)}, found {unknown[0]!r}")
    if options.page and set(_TABLES) - {"memory"} - set(keys):
        parser.error("--page needs all the tables: leave out --tables")

    @cache
    def real() -> dict[str, Tokenizer]:
        """Real tokenizers, with Qwen3's (the yardstick's) first; without any, a small one made here."""
        found = tokenizers_in(shared(options.shared), [] if {"ids"} & set(keys) else ["qwen3"])
        if not found:
            special = get_format("qwen3").preserved_tokens
            found = {"made here": trained([wire.text(20_000) for wire in KINDS], special)}
        return dict(sorted(found.items(), key=lambda item: item[0] != "qwen3"))

    about = machine()
    print(f"{about['cpu']}, {about['python']}, tokenizers {about['tokenizers']}; CPU time, medians")
    tables: dict[str, Table] = {}
    for key in keys:
        tables[key] = _TABLES[key](options, real)
        print(f"\n{as_text([tables[key]], options.markdown)}", flush=True)
    over = [budget for table in tables.values() for budget in table.budgets if not budget.ok]
    print(f"\n{sum(len(table.budgets) for table in tables.values())} budgets, {len(over)} exceeded")
    if options.json:
        options.json.write_text(
            json.dumps(as_json(tables.values(), about), indent=1) + "\n", encoding="utf-8"
        )
    if options.page:
        write_page(options.page, tables["pieces"], summary(tables), about)
    return 1 if over and options.strict else 0


if __name__ == "__main__":
    raise SystemExit(main())
