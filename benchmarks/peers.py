"""Measures parsing beside other parsers, in one run: small calls, long arguments, setting up, whole answers by ids.

    pip install 'mlx-lm[cpu]==0.32.2' transformers renderers tokenizers httpx
    python benchmarks/peers.py [--quick] [--tables calls,arguments,…] [--json FILE] [--page docs/performance.md]

Each figure is this package's CPU time; beside it stands its ratio to each peer: the median over rounds of the ratio
within a round, in which all take turns. A peer that is not installed has no figures, and one that reads a text
otherwise says so. The peers are used as their own servers use them:

- mlx-lm: `TextStateMachine` and `ToolCallFormatter`, in the loop of its server. A call comes out whole, at its end.
  Setting up is measured twice: these two objects beside `bind` and `stream`; and all that its server does for a request
  up to the first id (look up the machine, copy the detokenizer, make the two objects, decode the id, split its text)
  beside `bind`, `stream` and `feed` of the first id with the same tokenizer. Neither renders the prompt.
- transformers: `ResponseParser`, with a template that `write_response_template` writes for the format.
- renderers: `Qwen3Renderer.parse_response`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout, installed or not
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from _measure import ROOT, cut, machine, tokenizers_in, trained
from _report import Row, Table, as_json, as_markdown, as_text, number, write_between
from _texts import KINDS, Wire, argument_wire, many_tools
from tokenizers import Tokenizer

from chatparsers import Format, get_format

FORMATS = {
    "hermes-2-pro": "json_tools",
    "qwen3-coder": "qwen3_coder",
    "lfm2": "pythonic",
    "gemma-4": "gemma4",
    "glm-4-7": "glm47",
}
"""A format for each syntax of calls, and mlx-lm's parser of it."""
OTHERWISE = "reads it otherwise"

Calls = list[tuple[str, Any]]
Run = Callable[[], float]


# the texts

SMALL: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in properties.items()},
            },
        },
    }
    for name, properties in {
        "get_weather": {"city": "string", "days": "integer"},
        "search": {"query": "string", "limit": "integer", "exact": "boolean"},
        "read_file": {"path": "string", "start": "integer", "end": "integer"},
    }.items()
]
_EIGHT: Calls = [
    ("get_weather", {"city": "Oslo", "days": 2}),
    ("search", {"query": "ferry to Bergen", "limit": 5, "exact": False}),
    ("read_file", {"path": "src/app.py", "start": 1, "end": 80}),
    ("get_weather", {"city": "San José", "days": 10}),
    ("search", {"query": "opening hours", "limit": 3, "exact": True}),
    ("read_file", {"path": "docs/index.md", "start": 12, "end": 40}),
    ("get_weather", {"city": "Reykjavík", "days": 1}),
    ("search", {"query": "train times", "limit": 10, "exact": False}),
]
_SENTENCE = (
    "Let me look at that first; the answer depends on it, so I ask the tool and then compare the two.\n"
)


def written(format: Format, calls: Calls, content: str = "") -> str:
    """The text of a message with these calls."""
    asked = [
        {"type": "function", "id": f"call{index:05}", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content or None, "tool_calls": asked}
    return format.render(message, tools=SMALL)


def small_calls(format: Format) -> str:
    """Eight calls one after another."""
    return written(format, _EIGHT)


def mixed(format: Format) -> str:
    """Eight calls, a sentence before each."""
    return "".join(written(format, [call], _SENTENCE) for call in _EIGHT)


# the parsers: each makes a new reader, which has `feed(piece)` and `close()`, and `calls()` to be checked


class Ours:
    """A stream of this package."""

    def __init__(self, format: Format, tools: list[dict[str, Any]], prefix: str = "") -> None:
        self.stream = format.bind(tools=tools, prefix=prefix, id_seed="benchmark").stream()
        self.feed = self.stream.feed
        self.close = self.stream.finish

    def calls(self) -> Calls:
        return [(call.name, json.loads(call.arguments)) for call in self.stream.message.tool_calls]


class MlxLm:
    """The loop of mlx-lm's server over its own state machine and formatter."""

    def __init__(self, parser: str, tools: list[dict[str, Any]], initial: str = "normal") -> None:
        machine, parse = _mlx_lm(parser)
        self.split = _mlx().TextStateMachine.split
        self.state = machine.make_state(initial)
        self.formatter = _mlx().ToolCallFormatter(parse, tools, True)
        self.before = initial
        self.text = self.reasoning = self.tool_text = ""
        self.tool_calls: list[str] = []
        self.found: list[Any] = []

    def feed(self, piece: str) -> tuple[str, str, list[Any]] | None:
        self.state, segments = self.split(self.state, piece)
        for state, clean in segments:
            if state == "reasoning":
                self.reasoning += clean
            elif state == "tool":
                self.tool_text += clean
            elif state == "normal":
                if self.before == "tool":
                    self.tool_calls.append(self.tool_text)
                    self.tool_text = ""
                self.text += clean
            self.before = state
        if state != "tool" and (self.text or self.tool_calls or self.reasoning):
            delta = self.text, self.reasoning, self.formatter(self.tool_calls)
            self.found += delta[2]
            self.text = self.reasoning = ""
            self.tool_calls = []
            return delta
        return None

    def close(self) -> list[Any]:
        if self.before == "tool" and self.tool_text:
            self.tool_calls.append(self.tool_text)
        self.found += self.formatter(self.tool_calls)
        return self.found

    def calls(self) -> Calls:
        functions = [call["function"] for call in self.found]
        return [(function["name"], json.loads(function["arguments"])) for function in functions]


@cache
def _mlx() -> Any:
    generate, server = import_module("mlx_lm.generate"), import_module("mlx_lm.server")
    return SimpleNamespace(
        TextStateMachine=generate.TextStateMachine,
        make=generate.make_text_state_machine,
        ToolCallFormatter=server.ToolCallFormatter,
    )


@cache
def _mlx_lm(parser: str) -> tuple[Any, Any]:
    """mlx-lm's state machine and parser; its server keeps them for each model too."""
    module = import_module(f"mlx_lm.tool_parsers.{parser}")
    tokenizer = SimpleNamespace(
        has_thinking=True,
        think_start="<think>",
        think_end="</think>",
        has_tool_calling=True,
        tool_call_start=module.tool_call_start,
        tool_call_end=module.tool_call_end,
        structural_markers=[],
        response_transitions={},
    )
    return _mlx().make(tokenizer), module.parse_tool_call


class Transformers:
    """transformers' parser, which keeps a call until its end."""

    def __init__(self, format: Format, tools: list[dict[str, Any]]) -> None:
        self.parser = _transformers(format)(tools=tools, prefix="")
        self.feed = self.parser.feed
        self.message: dict[str, Any] = {}

    def close(self) -> None:
        self.message = self.parser.finalize()[0]

    def calls(self) -> Calls:
        found = self.message.get("tool_calls", [])
        found = found if isinstance(found, list) else [found]
        functions = [call.get("function", call) for call in found]
        return [(function["name"], function["arguments"]) for function in functions]


@cache
def _transformers(format: Format) -> Callable[..., Any]:
    from transformers.utils.chat_parsing import response_parser, response_templates

    from chatparsers.interop.write import write_response_template

    spec = response_templates.load_response_template(write_response_template(format, "<|assistant|>").spec)
    return partial(response_parser.ResponseParser, spec)


Maker = Callable[[], Any]


def makers(format: Format, tools: list[dict[str, Any]]) -> dict[str, Maker]:
    """How each parser makes a new reader of this format."""
    found: dict[str, Maker] = {"ours": partial(Ours, format, tools)}
    if format.name in FORMATS:
        found["mlx-lm"] = partial(MlxLm, FORMATS[format.name], tools)
    found["transformers"] = partial(Transformers, format, tools)
    return found


def reading(make: Maker, pieces: Sequence[str], close: bool, times: int) -> Run:
    """Measures the seconds that a new reader takes for the pieces. Making the reader is not counted."""

    def run() -> float:
        spent = 0.0
        for _ in range(times):
            reader = make()
            feed = reader.feed
            begun = process_time()
            for piece in pieces:
                feed(piece)
            if close:
                reader.close()
            spent += process_time() - begun
        return spent / times

    return run


def usable(maker: Maker, pieces: Sequence[str], expected: Calls) -> str:
    """Why a parser has no figure for these pieces; "" if it reads the calls as expected."""
    try:
        reader = maker()
        for piece in pieces:
            reader.feed(piece)
        reader.close()
        return "" if reader.calls() == expected else OTHERWISE
    except ModuleNotFoundError:
        return "–"
    except Exception:
        return OTHERWISE


# the measure


def ratios(cases: Mapping[str, Run], rounds: int) -> dict[str, tuple[float, float]]:
    """For each case the median seconds, and the median ratio of the first case to it, round by round."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    order = list(cases)
    for turn in range(rounds + 1):
        for name in order if turn % 2 else reversed(order):
            gc.collect()
            gc.freeze()
            value = cases[name]()
            if turn:
                found[name].append(value)
    gc.unfreeze()
    first = found[order[0]]
    return {
        name: (
            statistics.median(values),
            statistics.median(mine / value for mine, value in zip(first, values, strict=True)),
        )
        for name, values in found.items()
    }


def row(name: str, cases: Mapping[str, Run | str], peers: Sequence[str], scale: float, rounds: int) -> Row:
    """A line of a table: this package's figure, times ``scale``, and its ratio to each peer."""
    figures = ratios({key: run for key, run in cases.items() if not isinstance(run, str)}, rounds)
    cells: list[float | str | None] = [figures["ours"][0] * scale]
    for peer in peers:
        case = cases.get(peer, "–")
        cells.append(case if isinstance(case, str) else figures[peer][1])
    return Row(name, cells)


def tokens(tokenizer: Tokenizer, text: str, size: int) -> list[str]:
    """The text in pieces of ``size`` tokens; a piece never ends inside a character."""
    ends = [end for _, end in tokenizer.encode(text, add_special_tokens=False).offsets]
    ends = [end for index, end in enumerate(ends) if index % size == size - 1] + [len(text)]
    ends = sorted(set(ends))
    return [text[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


PEERS = ("mlx-lm", "transformers")


def calls_table(tokenizer: Tokenizer, rounds: int) -> Table:
    """Small calls: µs for a token."""
    table = Table("small calls", "Small calls: µs a token, and × each peer", ["µs a token", *PEERS])
    for kind, make in (("8 calls", small_calls), ("8 calls, text between", mixed)):
        for name in FORMATS:
            format = get_format(name)
            text = make(format)
            for size in (1, 5, 0):
                pieces = tokens(tokenizer, text, size) if size else [text]
                count = len(tokens(tokenizer, text, 1))
                cases: dict[str, Run | str] = {}
                for peer, maker in makers(format, SMALL).items():
                    why = usable(maker, pieces, _EIGHT)
                    assert peer != "ours" or not why, (name, kind, size)
                    cases[peer] = why or reading(maker, pieces, True, 20)
                label = f"{kind}, {name}, {f'{size} a delta' if size else 'whole'}"
                table.rows.append(row(label, cases, PEERS, 1e6 / count, rounds))
    return table


def arguments_table(tokenizer: Tokenizer, rounds: int) -> Table:
    """Long arguments and content: µs for a token. Peers get the end of the call as well, where they do their work."""
    table = Table("long texts", "Long texts: µs a token, and × each peer", ["µs a token", *PEERS])
    wires = [wire for wire in KINDS if wire.part != "reasoning"]
    wires = [Wire(**{**wire.__dict__, "format": _WITH_PEER.get(wire.format, wire.format)}) for wire in wires]
    for name in FORMATS:
        wire = argument_wire(get_format(name))
        assert wire is not None
        wires.append(Wire(**{**wire.__dict__, "kind": f"one string, {name}"}))
    for wire in wires:
        format = get_format(wire.format)
        parser = FORMATS.get(wire.format) or _PARSERS.get(wire.format)
        body = wire.text(16_000)
        text = wire.head + body + wire.tail
        expected = Ours(format, wire.tools)
        expected.feed(text)
        expected.close()
        for size in (1, 5):
            pieces = [wire.head, *tokens(tokenizer, body, size), wire.tail]
            count = len(tokens(tokenizer, body, 1))
            readers = makers(format, wire.tools)
            if parser is not None:
                readers["mlx-lm"] = partial(MlxLm, parser, wire.tools)
            cases: dict[str, Run | str] = {
                peer: usable(maker, pieces, expected.calls()) or reading(maker, pieces, True, 2)
                for peer, maker in readers.items()
            }
            table.rows.append(row(f"{wire.kind}, {size} a delta", cases, PEERS, 1e6 / count, rounds))
    return table


_WITH_PEER = {"qwen3": "hermes-2-pro"}
_PARSERS = {"function-gemma": "function_gemma"}


def repeated(run: Callable[[], object], times: int) -> Run:
    """Measures the seconds of one call."""

    def measure() -> float:
        begun = process_time()
        for _ in range(times):
            run()
        return (process_time() - begun) / times

    return measure


def setup_table(tokenizer: Tokenizer, rounds: int) -> Table:
    """Setting up a request whose tools were seen before: µs."""
    table = Table("set-up", "Setting up a request, tools seen before: µs, and × each peer", ["µs", *PEERS])
    format = get_format("qwen3")
    first = tokenizer.encode("Okay", add_special_tokens=False).ids[0]
    requests = _mlx_requests(tokenizer, first)
    for count_of_tools in (3, 60):
        tools = many_tools(count_of_tools)
        read = format.bind(tools=tools).tools
        for kept, label in ((tools, "the same list"), (read, "the tools of another turn")):
            cases: dict[str, Run | str] = {
                "ours": repeated(lambda kept=kept: format.bind(tools=kept, prefix="<think>\n").stream(), 2000)
            }
            for peer, make in (
                ("mlx-lm", partial(MlxLm, "json_tools", tools, "reasoning")),
                ("transformers", partial(Transformers, format, tools)),
            ):
                cases[peer] = usable(make, [], []) or repeated(make, 2000)
            table.rows.append(row(f"{count_of_tools} tools, {label}", cases, PEERS, 1e6, rounds))

        def by_ids(tools: list[dict[str, Any]] = tools) -> object:
            turn = format.bind(tools=tools, prefix="<think>\n", tokenizer=tokenizer)
            return turn.stream().feed(first)

        cases = {"ours": repeated(by_ids, 2000)}
        if requests is not None:
            cases["mlx-lm"] = repeated(partial(requests, tools), 2000)
        table.rows.append(row(f"{count_of_tools} tools, to the first id", cases, PEERS, 1e6, rounds))
    return table


def _mlx_requests(tokenizer: Tokenizer, first: int) -> Callable[[list[dict[str, Any]]], object] | None:
    """What mlx-lm's server does for a request up to the text of the first id; None where it is not installed."""
    try:
        utils, transformers = import_module("mlx_lm.tokenizer_utils"), import_module("transformers")
        machine, _ = _mlx_lm("json_tools")
    except ModuleNotFoundError:
        return None
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    detokenizer = utils.BPEStreamingDetokenizer(fast)
    machines = {(("model", None, None), ()): machine}

    def request(tools: list[dict[str, Any]]) -> object:
        stop_words: list[str] = []
        assert machines[("model", None, None), tuple(stop_words)] is machine
        own = copy(detokenizer)
        own.reset()
        reader = MlxLm("json_tools", tools, "reasoning")
        own.add_token(first)
        return reader.feed(own.last_segment)

    return request


_THOUGHT = "The user wants the weather and the ferry. Both need a tool, so I ask for them at once. "
_ANSWER = "Here is what I know so far: the ferry leaves at dawn, and the wind turns at the cape. "


def whole_table(tokenizer: Tokenizer, rounds: int) -> Table:
    """Whole answers: ids, and a short row of a table with tools that were never seen."""
    table = Table("whole answers", "Whole answers: µs, and × each peer", ["µs", "renderers"])
    format = get_format("qwen3")
    text = f"<think>\n{_THOUGHT * 10}\n</think>\n\n{_ANSWER * 8}\n" + small_calls(get_format("hermes-2-pro"))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    turn = format.bind(tools=SMALL, tokenizer=tokenizer)
    message = turn.parse(ids)
    assert [call.name for call in message.tool_calls] == [name for name, _ in _EIGHT], message
    cases: dict[str, Run | str] = {"ours": repeated(partial(turn.parse, ids), 50)}
    try:
        renderers, transformers = import_module("renderers.qwen3"), import_module("transformers")
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
        renderer = renderers.Qwen3Renderer(fast)
        found = renderer.parse_response(ids)
        assert [call.name for call in found.tool_calls] == [name for name, _ in _EIGHT], found
        cases["renderers"] = repeated(partial(renderer.parse_response, ids), 50)
    except ImportError:
        cases["renderers"] = "–"
    table.rows.append(row(f"parse, {len(ids)} ids", cases, ["renderers"], 1e6, rounds))
    short = written(get_format("hermes-2-pro"), _EIGHT[:1], "One moment.\n")
    numbers = count()

    def new_tools() -> list[list[dict[str, Any]]]:
        made = []
        for _ in range(200):
            tools = json.loads(json.dumps(SMALL))
            tools[0]["function"]["description"] = f"Number {next(numbers)}."
            made.append(tools)
        return made

    def a_row() -> float:
        lists = new_tools()
        gc.freeze()  # that they are looked at by the collector is no part of reading them
        begun = process_time()
        for tools in lists:
            format.bind(tools=tools).parse(short)
        return (process_time() - begun) / len(lists)

    def seen() -> float:
        begun = process_time()
        for _ in range(200):
            format.bind(tools=SMALL).parse(short)
        return (process_time() - begun) / 200

    pieces = cut(KINDS[0].text(40_000), 4, 10_000)

    def content() -> float:
        stream = format.bind(tools=SMALL).stream()
        begun = process_time()
        for piece in pieces:
            stream.feed(piece)
        return (process_time() - begun) / len(pieces)

    figures = ratios({"new": a_row, "seen": seen, "content": content}, rounds)
    for name, key in (("bind + parse, a short row, new tools", "new"), ("… tools seen before", "seen")):
        spent = figures[key][0]
        table.rows.append(Row(name, [spent * 1e6, None]))
        in_pieces = spent / figures["content"][0]
        table.rows.append(Row("… where content costs 0.5 µs a piece", [in_pieces * 0.5, None]))
    table.rows.append(Row("content, a piece of four characters", [figures["content"][0] * 1e6, None]))
    return table


_TABLES: dict[str, Callable[[Tokenizer, int], Table]] = {
    "calls": calls_table,
    "arguments": arguments_table,
    "setup": setup_table,
    "whole": whole_table,
}


def the_tokenizer(given: Path | None) -> Tokenizer:
    """Qwen3's tokenizer from the folder of real data; without it, a small one made here."""
    folder = given or Path(os.environ.get("CHATPARSERS_SHARED") or ROOT.parent / "shared")
    real = tokenizers_in(folder / "tokenizers", ["qwen3"])
    if real:
        return real["qwen3"]
    special = (*get_format("qwen3").preserved_tokens, *get_format("qwen3").stops)
    return trained([wire.text(20_000) for wire in KINDS], special)


def versions(names: Iterable[str]) -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, no figures to quote")
    parser.add_argument("--tables", default="", help=f"only these tables: {','.join(_TABLES)}")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write all figures as JSON")
    parser.add_argument("--page", metavar="FILE", type=Path, help="also write the tables into this page")
    parser.add_argument("--shared", metavar="DIR", type=Path, help="folder with tokenizers/*.json(.gz)")
    options = parser.parse_args()
    keys = [key for key in options.tables.split(",") if key] or list(_TABLES)
    if unknown := [key for key in keys if key not in _TABLES]:
        parser.error(f"--tables: expected some of {', '.join(_TABLES)}, found {unknown[0]!r}")
    tokenizer = the_tokenizer(options.shared)
    about = machine()
    used = versions(("mlx-lm", "transformers", "renderers"))
    print(f"{about['cpu']}, {about['python']}; {used}; CPU time, medians")
    tables = []
    for key in keys:
        tables.append(_TABLES[key](tokenizer, 5 if options.quick else 15))
        print(f"\n{as_text([tables[-1]], False)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(as_json(tables, about), indent=1) + "\n", encoding="utf-8")
    if options.page:
        write_page(options.page, tables, f"{about['cpu']}, {about['python']}; {used}")
    return 0


def write_page(page: Path, tables: Sequence[Table], about: str) -> None:
    """Writes the tables between the page's marks."""
    lines = []
    for table in tables:
        cells = [[table.key, *table.columns]]
        cells += [[line.name, *map(number, line.figures)] for line in table.rows]
        lines += [*as_markdown(cells), ""]
    write_between(page, "peers", [*lines, f"CPU time, medians, on {about}; `python benchmarks/peers.py`."])


if __name__ == "__main__":
    raise SystemExit(main())
