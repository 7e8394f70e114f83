"""Measures a request: `Chat.prepare` beside the bare Jinja render of the same prompt. Each figure has its budget.

    python benchmarks/prepare.py [--quick] [--markdown] [--shared DIR] [TEMPLATE…]

The yardstick is what a caller of transformers pays: the template's own ``render`` in the sandbox of transformers,
without limits, with messages and tools that are already in its shape, in the same run. So our figure has the cost of
the limits too. A slow figure is a failure only with ``--strict``.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
from jinja2.ext import LoopControlExtension
from jinja2.sandbox import ImmutableSandboxedEnvironment

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout, installed or not

from _measure import ROOT, best_of, medians
from _report import Budget, Row, Table, as_text

from chatparsers import load
from chatparsers.templates.jinja.environment import compile_source, strftime_now
from chatparsers.templates.jinja.sandbox import Generation, raise_exception
from chatparsers.templates.messages import own, shape

NAMES = ("Qwen-Qwen3-0.6B", "openai-gpt-oss-120b", "meta-llama-Llama-3.1-8B-Instruct", "google-gemma-2-2b-it")
FACTOR, MORE = 1.3, 100.0


def tools(number: int) -> list[dict[str, Any]]:
    """Tools with three described arguments each."""
    properties = {
        "city": {"type": "string", "description": "The city and its country, in English"},
        "days": {"type": "integer", "description": "How many days", "minimum": 1},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    }
    parameters = {"type": "object", "properties": properties, "required": ["city"]}
    return [
        {
            "type": "function",
            "function": {
                "name": f"tool_{n}",
                "description": f"Does the thing number {n}.",
                "parameters": parameters,
            },
        }
        for n in range(number)
    ]


def messages(number: int) -> list[dict[str, Any]]:
    """A conversation of that many messages. Every sixth has a call and its result."""
    text = "The ship left harbour at dawn with salt and timber for the north. " * 3
    out: list[dict[str, Any]] = [{"role": "user", "content": text}]
    while len(out) < number:
        if len(out) % 6 == 1 and len(out) + 4 <= number:
            call = {
                "id": f"call{len(out):05d}",
                "type": "function",
                "function": {"name": "tool_0", "arguments": '{"city": "Oslo", "days": 3}'},
            }
            out.append({"role": "assistant", "content": "", "tool_calls": [call]})
            out.append(
                {"role": "tool", "tool_call_id": call["id"], "name": "tool_0", "content": "-3 degrees"}
            )
        out.append({"role": "assistant", "content": text})
        out.append({"role": "user", "content": text})
    return out


def bare(chat: Any, given: list[dict[str, Any]], shown: list[dict[str, Any]] | None) -> Callable[[], object]:
    """The render that a caller of Jinja would write, with the request as our polyfills rewrote it."""
    renderer = chat.renderer(bool(shown))
    template = renderer.template
    rewritten = renderer.rewrite(given, shown)
    variables = {
        "messages": shape(rewritten.messages, template.wants, template.name),
        "tools": own(rewritten.tools),
        "documents": None,
        "add_generation_prompt": True,
        "bos_token": "",
        "eos_token": "",
    }
    compiled = plain().from_string(template.source)
    assert compiled.render(variables) == compile_source(template.source).render(variables)
    return lambda: compiled.render(variables)


@cache
def plain() -> jinja2.Environment:
    """The sandbox of transformers."""

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, LoopControlExtension]
    )
    made.filters["tojson"] = tojson
    made.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return made


def requests(quick: bool) -> list[tuple[str, list[dict[str, Any]], list[dict[str, Any]] | None]]:
    """The measured requests: name, messages, tools."""
    found: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]] | None]] = [
        ("1 message", messages(1), None),
        ("1 message, 20 tools", messages(1), tools(20)),
        ("25 messages, 5 tools", messages(25), tools(5)),
    ]
    return found if quick else [*found, ("201 messages, 20 tools", messages(201), tools(20))]


def timed(run: Callable[[], object], number: int) -> Callable[[], float]:
    """Measures µs for a call."""
    return lambda: best_of(run, number, 1) * 1e6


def beside(name: str, request: str, base: float, ours: float) -> Row:
    """A row of both figures, with the budget."""
    budget = Budget(FACTOR * base + MORE, "µs", ours)
    return Row(name[:24], [request, base, ours, ours / base, ours - base], [budget])


def prepared(chats: dict[str, Any], quick: bool) -> Table:
    """`prepare` beside the bare render."""
    table = Table("template", "A request", ["request", "bare µs", "prepare µs", "times", "more µs"])
    for name, chat in chats.items():
        for request, given, shown in requests(quick):
            ours = partial(chat.prepare, given, tools=shown)
            ours()  # its plan is made once
            number = 2 if len(given) > 100 else 10
            cases = {"bare": timed(bare(chat, given, shown), number), "ours": timed(ours, number)}
            cost = medians(cases, 5 if quick else 15)
            table.rows.append(beside(name, request, cost["bare"], cost["ours"]))
    return table


def appended(chats: dict[str, Any], quick: bool) -> Table:
    """`Conversation.append` beside the bare render of the whole, at the end of a conversation."""
    columns = ["messages", "bare µs", "append µs", "times", "more µs"]
    table = Table("template", "A message appended", columns)
    for name, chat in chats.items():
        for size in (21, 201) if quick else (21, 101, 201):
            given = messages(size)
            conversation = chat.conversation(given[:-1])

            def step(conversation: Any = conversation, given: Any = given) -> None:
                conversation.messages = given[:-1]
                conversation.append(given[-1])

            cases = {"bare": timed(bare(chat, given, None), 2), "ours": timed(step, 2)}
            cost = medians(cases, 5 if quick else 15)
            table.rows.append(beside(name, str(size), cost["bare"], cost["ours"]))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TEMPLATE")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a figure is over its budget")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    folder = given.shared / "templates"
    paths = [folder / f"{name}.jinja" for name in given.names or NAMES]
    paths = [path for path in paths if path.is_file()] or sorted(
        (ROOT / "tests" / "templates_own").glob("*.jinja")
    )
    chats = {path.stem: load(path).warm() for path in paths}
    tables = [prepared(chats, given.quick), appended(chats, given.quick)]
    print(as_text(tables, given.markdown))
    return int(given.strict and not all(budget.ok for table in tables for budget in table.budgets))


if __name__ == "__main__":
    raise SystemExit(main())
