"""``chatparsers detect``: finds the format of a chat template."""

from __future__ import annotations

from argparse import Namespace

from .files import Refused, existing, print_json, read_text

__all__ = ["run", "template_text"]

_MODEL_FILES = (".json", ".gguf")


def run(arguments: Namespace) -> int:
    """Prints name, score and evidence; returns 1 if no format explains the template."""
    from .. import detect

    found = detect(template_text(arguments.file))
    if arguments.json:
        print_json({"name": found.name, "score": found.score, "evidence": list(found.evidence)}, indent=2)
    else:
        print(f"{found.name or 'none'}  {found.score:.2f}")
        for line in found.evidence:
            print(f"  {line}")
    return 0 if found.name else 1


def template_text(path: str) -> str:
    """Reads the chat template from a template file, from a model's files, or (``-``) from standard input.

    Raises `Refused` if there is no such file or it has no template, and `LoadError` if it is broken.
    """
    if path == "-":
        return read_text(path)
    source = existing(path)
    if source.is_file() and source.suffix not in _MODEL_FILES:
        return read_text(path)
    from .. import load

    chat = load(source)
    if chat.builtin is not None:
        raise Refused(
            f"{path}: no chat template (chat_template in tokenizer_config.json, chat_template.jinja, "
            f"tokenizer.chat_template in a GGUF file); load would serve it with the built-in one {chat.builtin!r}"
        )
    return chat.template().source
