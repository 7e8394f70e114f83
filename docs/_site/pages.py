"""The generated pages: one for each format, the reference of the API, the command line."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Collection, Iterator
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import public

import chatparsers
from chatparsers import Format, FormatInfo, RequestError, display, list_formats
from chatparsers.cli.arguments import build_parser
from chatparsers.cli.arguments.parser import commands_of

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = " ".join((chatparsers.__doc__ or "").partition("\n")[0].split())

_PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
_TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": _PARAMETERS}}]
_CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'},
}
# From rich to poor: the first that the format can write is shown.
_MESSAGES = (
    {"reasoning_content": "The user wants the weather.", "content": "Let me look.", "tool_calls": [_CALL]},
    {"content": "Let me look.", "tool_calls": [_CALL]},
    {"reasoning_content": "The user wants the weather.", "content": None, "tool_calls": [_CALL]},
    {"content": None, "tool_calls": [_CALL]},
    {"reasoning_content": "A greeting.", "content": "Hello!"},
    {"content": "Hello!"},
)


def generated(formats: Collection[str] | None = None) -> dict[Path, str]:
    """The generated pages by their place on the site; with ``formats``, only these have a page."""
    names = _other_names()
    listed = [info for info in list_formats() if info.origin == "chatparsers"]
    listed = [info for info in listed if formats is None or info.name in formats]
    pages = {Path("format", f"{info.name}.md"): _format(info, names) for info in listed}
    pages[Path("format/index.md")] = _formats(listed)
    pages |= {Path("reference", f"{page.file}.md"): _reference(page) for page in public.PAGES}
    pages[Path("reference/index.md")] = _index()
    pages[Path("reference/commands.md")] = _commands()
    return pages


def _other_names() -> dict[str, list[tuple[str, str, str]]]:
    """For each name here, those of other servers that mean it: the server, the option, the name."""
    hosts = json.loads((ROOT / "docs" / "_host_names.json").read_text(encoding="utf-8"))
    ours = {name: info.name for info in list_formats() for name in (*info.aliases, info.name)}
    found: dict[str, list[tuple[str, str, str]]] = {}
    for host, options in hosts["hosts"].items():
        for option, names in options.items():
            for name in names:
                for meant in hosts["meant"].get(name, (name.lower().replace("_", "-"),)):
                    if meant in ours:
                        found.setdefault(ours[meant], []).append((host, option, name))
    return found


def _formats(listed: list[FormatInfo]) -> str:
    yes = {True: "yes", False: "–"}
    rows = []
    for info in listed:
        has = info.load().features
        marks = " | ".join(yes[one] for one in (has.reasoning, has.tools, has.parallel, has.ids))
        rows.append(f"| [{info.name}]({info.name}.md) | {_cell(info.title)} | {marks} |")
    return (
        "# All formats\n\n"
        f"There are {len(listed)} formats. Each page shows a sample, what is special about the format, a diagram, "
        "a grammar, and the names that other servers have for it. [Which name is my model?](../models.md) says how "
        "to find yours.\n\n"
        "| Name | Models | Reasoning | Calls | Several calls | Own ids |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _format(info: FormatInfo, names: dict[str, list[tuple[str, str, str]]]) -> str:
    format = info.load()
    told = inspect.getdoc(import_module(info.source.target.partition(":")[0])) or ""
    sample, quirks = _told(told)
    strip = _strip(format)
    diagram = display.diagram(format)
    aliases = ", ".join(f"`{alias}`" for alias in info.aliases)
    lines = [
        f"# {info.name}",
        "",
        f"`{info.name}` is the format of [{info.title}]({info.url}). See also [all formats](index.md).",
        "",
        f"```python\nturn = chatparsers.get_format({info.name!r}).bind(tools=tools)\n```",
        "",
        "## A sample",
        "",
        *(["```text", sample, "```", ""] if sample else []),
        *(["What this package writes, and how it reads it back:", "", strip, ""] if strip else []),
        *(["## What is special", "", quirks, ""] if quirks else []),
        "## Diagram",
        "",
        '<div class="cp">',
        f'<div class="scroll whole" role="group" aria-label="Railroad diagram of {escape(info.name)}">',
        _svg(diagram.svg),
        "</div></div>",
        "",
        "A blue box stands for what the model fills in. A line above a part goes around it; a line below goes back. "
        "The same as one line:",
        "",
        f"```text\n{diagram.text()}\n```",
        "",
        *_grammar(format),
        "## Facts",
        "",
        "| Fact | Value |",
        "|---|---|",
        *_facts(format, info, aliases),
        "",
        "## Names elsewhere",
        "",
        *_elsewhere(names.get(info.name, [])),
        "",
    ]
    return "\n".join(lines)


def _grammar(format: Format) -> list[str]:
    grammar = format.bind(tools=_TOOLS).grammar() if format.features.tools else None
    if grammar is None:
        return []
    said = "What a sampler gets for `get_weather(city, days)`, in GBNF. [Grammars](../grammar.md) has more dialects."
    return ["## Grammar", "", said, "", f"```text\n{grammar.text.strip()}\n```", ""]


def _facts(format: Format, info: FormatInfo, aliases: str) -> Iterator[str]:
    has = format.features
    able = {
        "reasoning": has.reasoning,
        "tool calls": has.tools,
        "several calls in a turn": has.parallel,
        "ids of its own": has.ids,
    }
    rows = {
        "Other names here": aliases,
        "It has": ", ".join(name for name, there in able.items() if there) or "content alone",
        "Ends of a turn": _codes(format.stops),
        "Special tokens": _codes(format.preserved_tokens),
        "A template of it holds": _codes(format.markers),
        "Names of its models": _codes(format.models),
    }
    return (f"| {name} | {value} |" for name, value in rows.items() if value)


def _elsewhere(found: list[tuple[str, str, str]]) -> list[str]:
    if not found:
        return ["vLLM and SGLang have no parser of this name."]
    options = {"calls": "--tool-call-parser", "reasoning": "--reasoning-parser"}
    rows = [f"| {host} | `{options.get(option, option)}` | `{name}` |" for host, option, name in found]
    return ["| Server | Option | Name |", "|---|---|---|", *rows]


def _told(told: str) -> tuple[str, str]:
    """The sample and the quirks that a format's module tells."""
    before, _, quirks = told.partition("Quirks:")
    sample = re.findall(r"^(?: {4}.*\n?|\n(?= {4}))+", before, re.MULTILINE)
    text = "\n".join(inspect.cleandoc("\n" + each.rstrip()) for each in sample)
    return text.strip("\n"), "\n" + quirks.strip("\n") if quirks.strip() else ""


def _strip(format: Format) -> str:
    for message in _MESSAGES:
        try:
            text = format.render({"role": "assistant", **message}, tools=_TOOLS)
        except RequestError:
            continue
        turn = format.bind(tools=_TOOLS)
        drawn = display.strip(turn.parse(text), turn=turn).html()
        return re.sub(r"\n\s*\n", "\n", drawn)
    return ""


def _svg(text: str) -> str:
    """The drawing as a part of a page: without the prologue, and without blank lines, which end HTML in Markdown."""
    return re.sub(r"\n\s*\n", "\n", text[text.index("<svg") :])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _codes(texts: tuple[str, ...]) -> str:
    return ", ".join(f"<code>{escape(text).replace('|', '&#124;')}</code>" for text in texts)


def _reference(page: public.Page) -> str:
    names = page.names or tuple(import_module(page.module).__all__)
    lines = [f"# {page.title}", "", page.says, ""]
    lines += [f"```python\nfrom {page.module} import {names[0]}\n```", ""]
    for name in names:
        lines += [f"::: {page.module}.{name}", ""]
    return "\n".join(lines)


def as_text(page: str) -> str:
    """A page of the reference with the docstrings in it, for those who read Markdown."""
    members = {name: found for page in public.PAGES for name, found in public.members(page)}

    def told(line: re.Match[str]) -> str:
        parts = []
        for name, found in members.items():
            if name == line[1] or name.startswith(f"{line[1]}."):
                level = "##" if name == line[1] else "###"
                parts.append(f"{level} {name}{_signature(found)}\n\n{inspect.getdoc(found) or ''}")
        return "\n\n".join(parts)

    return re.sub(r"^::: (.*)$", told, page, flags=re.MULTILINE)


def _signature(found: Any) -> str:
    try:
        return str(inspect.signature(found)) if callable(found) else ""
    except ValueError:
        return ""


def _index() -> str:
    lines = [
        "# Reference",
        "",
        "Every public name, by subject. Every example runs. Each begins with these lines:",
        "",
        f"```python\n{public.BEGINNING}```",
        "",
    ]
    for page in public.PAGES:
        names = page.names or tuple(import_module(page.module).__all__)
        shown = ", ".join(f"[`{name}`][{page.module}.{name}]" for name in names)
        lines += [f"## [{page.title}]({page.file}.md)", "", f"{page.says} `{page.module}`: {shown}", ""]
    return "\n".join(lines)


def _commands() -> str:
    """What each command says of itself with ``--help``."""
    parser = build_parser()
    lines = ["# The command line", "", "Each command says this with `--help`.", ""]
    for command in commands_of(parser):
        command.formatter_class = _Wide
        command.first = ""  # its help has a place of its own
        lines += [f"## {command.prog}", "", "```text", command.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


class _Wide(argparse.HelpFormatter):
    """Help that does not depend on the width of a terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=88)
