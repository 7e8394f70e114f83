"""Makes a turn from the arguments: the format, the tools, and the part of the answer that the prompt already wrote."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .files import Refused, existing, items, name_of, read_json, read_template, read_text

if TYPE_CHECKING:
    from ..answers.format import Format, Turn
    from ..chat.chat import Chat

_ANYTHING: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]


def thinking_of(arguments: Namespace) -> bool | Literal["adaptive"] | None:
    """``--thinking``: True or False, or ``adaptive``; None if not given."""
    said: dict[str | None, bool | Literal["adaptive"]] = {"on": True, "off": False, "adaptive": "adaptive"}
    return said.get(vars(arguments).get("thinking"))


def chat_of(source: str, arguments: Namespace, *, tokenizer: Any = None) -> Chat:
    """The chat of the model file or template ``source``; ``-`` reads a template from standard input.

    Raises `Refused` for the name of a format, which writes no prompts."""
    from .. import load

    if names_format(source) and (source.endswith(".py") or known_format(source)):
        raise Refused(
            f"{source}: expected a model's folder, a file of it, a .gguf or .jinja file, as its chat template is "
            "needed; found the name of a format"
        )
    where: Any = read_template(source) if source == "-" else existing(source)
    given = vars(arguments)
    format = given.get("format")
    return load(
        where,
        tokenizer=tokenizer,
        format=_defined(format) if format and format.endswith(".py") else format,
        bos_token=given.get("bos_token"),
        eos_token=given.get("eos_token"),
    )


def turn_of(arguments: Namespace, *, tokenizer: Any = None) -> Turn:
    """The turn that ``--model`` or ``--format`` and the request's options ask for.

    With a model's files, the prefix is the part of the answer that its generation prompt wrote, unless ``--prefix`` is
    given. Raises `Refused` and the errors of `Format.bind`.
    """
    if parsers := [name for name in (arguments.tool_call_parser, arguments.reasoning_parser) if name]:
        if arguments.format is not None:
            raise Refused(
                "--format names a whole format: leave out --tool-call-parser and --reasoning-parser"
            )
        arguments.format = "+".join(parsers)
    model = arguments.model
    if model is not None and names_format(model):
        arguments.format, model = arguments.format or model, None
    if arguments.format is None and model is None:
        raise Refused(
            "which model? Say --model with its folder, a file of it, or a format's name (`chatparsers formats`)"
        )
    options: dict[str, Any] = {
        "tools": None if arguments.tools is None else items(arguments.tools, "tools"),
        "tool_choice": arguments.tool_choice,
        "parallel_tool_calls": not arguments.no_parallel,
        "lenient_calls": arguments.lenient_calls,
        "response_format": _response_format(arguments.response_format),
        "thinking": thinking_of(arguments),
        "id_seed": "",  # the same ids for the same input
    }
    if model is None:
        turn = named_format_of(arguments.format).bind(
            prefix=arguments.prefix or "", tokenizer=tokenizer, **options
        )
    else:
        chat = chat_of(model, arguments, tokenizer=tokenizer)
        if arguments.prefix is None:
            turn = chat.prepare(_ANYTHING, **options)
        else:
            turn = chat.bind(prefix=arguments.prefix, **options)
    return turn


def names_format(source: str) -> bool:
    """Whether ``source`` is the name, the document or the module of a format, and not a file or folder of a model."""
    from ..tokens.loaders import FOLDER_FILES

    if source.endswith(".json"):
        return Path(source).name not in FOLDER_FILES
    if source.endswith(".py"):
        return True
    like_a_path = source == "-" or {"/", os.sep} & {*source} or source.endswith((".jinja", ".gguf"))
    return not like_a_path and not os.path.exists(source)


def known_format(source: str) -> bool:
    """Whether there is a format of that name; of a document, whether there is that file."""
    from ..errors import ChatParsersError
    from ..registry import named_format

    try:
        return bool(named_format(source))
    except ChatParsersError:
        return False


def named_format_of(source: str) -> Format:
    """The format of that name, of that document, or of that module (its ``FORMAT``)."""
    from ..errors import UnknownFormat
    from ..registry import named_format

    if source.endswith(".py"):
        return _defined(source)
    try:
        return named_format(source)
    except UnknownFormat as error:
        if names_format(source):
            raise Refused(f"{error} (or name a model's folder or file)") from error
        raise Refused(
            f"--format {name_of(source)}: expected the name of a format, its document (FILE.json) or module (FILE.py), "
            f"found a file of a model, or its folder: say --model {name_of(source)}"
        ) from error


def _defined(source: str) -> Format:
    """The format of a module."""
    import runpy

    from ..answers.format import Format

    path = str(existing(source))
    try:
        found = runpy.run_path(path).get("FORMAT")
    except Exception as error:  # a module may raise anything
        raise Refused(f"{source}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Format):
        raise Refused(f"{source}: expected a module with FORMAT, a Format, found {type(found).__name__}")
    return found


def _response_format(path: str | None) -> Mapping[str, Any] | None:
    """OpenAI's ``response_format``, also for a bare JSON Schema or a ``.gbnf`` or ``.lark`` file."""
    if path is None:
        return None
    for end, kind in ((".gbnf", "grammar"), (".lark", "lark")):
        if path.endswith(end):
            return {"type": kind, "grammar": read_text(path)}
    found = read_json(path)
    if not isinstance(found, (dict, bool)):
        raise Refused(f"{name_of(path)}: expected a response_format or a JSON Schema, found {found!r:.40}")
    if isinstance(found, dict) and ("type" in found or not found.keys().isdisjoint({"$ref", "properties"})):
        return found
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": found}}
