"""Makes a turn from the arguments: the format, the tools, and the part of the answer that the prompt already wrote."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from .files import Refused, existing, items, name_of, read_json, read_template, read_text

if TYPE_CHECKING:
    from ..answers.format import Format, Turn
    from ..chat.chat import Chat

_ANYTHING: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]


def thinking_of(arguments: Namespace) -> bool | Literal["adaptive"] | None:
    """``--thinking``: True or False, or ``adaptive``; None if not given."""
    said: dict[str | None, bool | Literal["adaptive"]] = {"on": True, "off": False, "adaptive": "adaptive"}
    return said.get(arguments.thinking)


def chat_of(source: str, arguments: Namespace, *, tokenizer: Any = None) -> Chat:
    """The chat of the model file or template ``source``; ``-`` reads a template from standard input."""
    from .. import load

    where: Any = read_template(source) if source == "-" else existing(source)
    given = vars(arguments)
    return load(
        where,
        tokenizer=tokenizer,
        format=given.get("format"),
        bos_token=given.get("bos_token"),
        eos_token=given.get("eos_token"),
    )


def turn_of(arguments: Namespace, *, tokenizer: Any = None) -> Turn:
    """The turn that ``--format`` or ``--template`` and the request's options ask for.

    With a template, the prefix is the part of the answer that its generation prompt wrote, unless ``--prefix`` is
    given. Raises `Refused` and the errors of `Format.bind`.
    """
    if parsers := [name for name in (arguments.tool_call_parser, arguments.reasoning_parser) if name]:
        if arguments.format is not None:
            raise Refused(
                "--format names a whole format: leave out --tool-call-parser and --reasoning-parser"
            )
        arguments.format = "+".join(parsers)
    if arguments.format is None and arguments.template is None:
        raise Refused("which format? Say --format NAME (`chatparsers formats` lists them) or --template FILE")
    options: dict[str, Any] = {
        "tools": None if arguments.tools is None else items(arguments.tools, "tools"),
        "tool_choice": arguments.tool_choice,
        "parallel_tool_calls": not arguments.no_parallel,
        "lenient_calls": arguments.lenient_calls,
        "response_format": _response_format(arguments.response_format),
        "thinking": thinking_of(arguments),
        "id_seed": "",  # the same ids for the same input
    }
    if arguments.template is None:
        turn = _format(arguments.format).bind(prefix=arguments.prefix or "", tokenizer=tokenizer, **options)
    else:
        chat = chat_of(arguments.template, arguments, tokenizer=tokenizer)
        if arguments.prefix is None:
            turn = chat.prepare(_ANYTHING, **options)
        else:
            turn = chat.bind(prefix=arguments.prefix, **options)
    return turn


def _format(name: str) -> Format:
    """The format of ``--format``."""
    from ..errors import UnknownFormat
    from ..registry import named_format

    try:
        return named_format(name)
    except UnknownFormat as error:
        if not os.path.exists(name):
            raise
        raise Refused(
            f"--format {name_of(name)}: expected the name of a format or its document (FILE.json), found a file of a "
            f"model, or its folder: say --template {name_of(name)}"
        ) from error


def _response_format(path: str | None) -> Mapping[str, Any] | None:
    """OpenAI's ``response_format``, also for a bare JSON Schema or a ``.gbnf`` file."""
    if path is None:
        return None
    if path.endswith(".gbnf"):
        return {"type": "grammar", "grammar": read_text(path)}
    found = read_json(path)
    if not isinstance(found, (dict, bool)):
        raise Refused(f"{name_of(path)}: expected a response_format or a JSON Schema, found {found!r:.40}")
    if isinstance(found, dict) and ("type" in found or not found.keys().isdisjoint({"$ref", "properties"})):
        return found
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": found}}
