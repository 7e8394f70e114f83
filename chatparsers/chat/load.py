"""A chat from what names a model: its folder, a file, a template's text, or the name of a built-in template."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from ..answers.format import Format
from ..detection.names import known
from ..errors import LoadError, RequestError
from ..public import public
from ..registry import list_formats, named_format
from ..templates.builtins import NAMED, UNKNOWN, builtin_names, builtin_source
from ..templates.jinja.limits import DEFAULT, Limits
from ..templates.rewrite.declared import ToolsAs
from ..tokens import ModelFiles, read_model, read_tokenizer
from ..tokens.loaders import is_template_text
from .chat import Chat

_AUTO = "auto"
"""The name that stands for the analysis of the template."""
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@public
def load(
    source: str | PathLike[str] | None = None,
    *,
    tokenizer: Any = None,
    format: str | Format | None = None,
    bos_token: str | None = None,
    eos_token: str | None = None,
    polyfills: bool | Iterable[str] = True,
    limits: Limits = DEFAULT,
    template: str | None = None,
    tools_as: ToolsAs = "json",
) -> Chat:
    """The chat of a model.

    ``source``: a model's folder, its ``tokenizer_config.json``, a ``.jinja`` or ``.gguf`` file, or a template's
    text. ``tokenizer``: a ``tokenizers.Tokenizer``, or the path of a ``tokenizer.json``. ``format``: a format, its
    name, or the path of a document of one that ends with ``.json``; it overrides detection. ``"auto"`` has the template
    analysed, whatever format is known for it.
    ``bos_token``, ``eos_token`` override the files'. ``polyfills``: whether what the template cannot show is
    written in another way, or the names of the polyfills that may do so. ``template``: the name of a built-in
    template, instead of the model's own; a model without one gets that of its format, or else that which its name
    tells. It is a small stand-in, which tells tools in words that are not the model's own. ``tools_as``: how a
    template that shows no tools gets them: as JSON Schemas, or in fewer words (``"compact"``, ``"typescript"``).
    ``limits``: how much the template may do in one call. Warns if none of the format's markers is a token of the
    ``tokenizer``. Raises `LoadError`, which names the file and the field,
    `UnknownFormat` and `TemplateError`.

    >>> chat = chatparsers.load(template="qwen3")
    >>> chat.format
    <Format: qwen3, Qwen3, Qwen2.5, QwQ>
    >>> chatparsers.load("{{ messages[0].content }}", format="hermes-2-pro").format.name
    'hermes-2-pro'
    """
    if tools_as not in get_args(ToolsAs):
        raise RequestError(f"tools_as: expected 'json', 'compact' or 'typescript', found {tools_as!r:.40}")
    named = _named(format)
    if source is None:
        if template is None:
            raise LoadError(
                "expected a model's folder or file, a template's text, or template=, found none of them"
            )
        files = ModelFiles(Path("<template>"), {})
    else:
        files = _text(source) if isinstance(source, str) and is_template_text(source) else _found(source)
    builtin = None
    if template is not None or not files.templates:
        builtin = _builtin(template, named, files)
        files = replace(files, templates={"default": builtin_source(builtin[0])})
    if bos_token is not None or eos_token is not None:
        bos = files.bos_token if bos_token is None else bos_token
        eos = files.eos_token if eos_token is None else eos_token
        tokens = {**files.special_tokens, "bos_token": bos, "eos_token": eos}
        files = replace(files, bos_token=bos, eos_token=eos, special_tokens=tokens)
    if isinstance(tokenizer, (str, PathLike)):
        tokenizer = read_tokenizer(tokenizer)
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)  # a fast tokenizer of transformers
    if tokenizer is not None and not hasattr(tokenizer, "get_vocab_size"):
        raise RequestError(
            "tokenizer: expected a tokenizers.Tokenizer, a fast tokenizer of transformers or a path, found "
            f"{type(tokenizer).__name__}"
        )
    chat = Chat._made(
        files,
        tokenizer=tokenizer,
        format=named,
        polyfills=polyfills,
        analysed=format == _AUTO,
        limits=limits,
        builtin=builtin,
        tools_as=tools_as,
    )
    if tokenizer is not None:
        _ = chat.tokenizer  # warns if it is another model's
    return chat


def _named(format: str | Format | None) -> Format | None:
    if isinstance(format, str):
        return None if format == _AUTO else named_format(format)
    if format is not None and not isinstance(format, Format):
        raise RequestError(f"format: expected a format or its name, found {type(format).__name__}")
    return format


def _found(source: str | PathLike[str]) -> ModelFiles:
    """The files at a path. A name that is none gets an error that says what it may have been meant for."""
    try:
        return read_model(source)
    except LoadError as error:
        name = str(source)
        if not isinstance(source, str) or os.path.exists(name):
            raise
        hint, key = "", name.strip().lower().replace("_", "-")
        if key in builtin_names():
            hint = f"the built-in template of that name is load(template={name!r})"
        elif any(
            key in (info.name, *(alias.replace("_", "-") for alias in info.aliases))
            for info in list_formats()
        ):
            hint = f"the format of that name is get_format({name!r})"
        elif _HUB_NAME.fullmatch(name):
            folder = name.rpartition("/")[2]
            hint = (
                "nothing is downloaded here; these lines fetch a model's small files: pip install huggingface_hub && "
                f"hf download {name} --include '*.json' '*.jinja' --local-dir {folder}, then load({folder!r})"
            )
        raise LoadError(f"{error}; {hint}" if hint else str(error)) from error


def _builtin(template: str | None, format: Format | None, files: ModelFiles) -> tuple[str, str]:
    """The name of the built-in template, and why it is that one."""
    if template is not None:
        return template.strip().lower().replace("_", "-"), NAMED
    if format is not None and format.name in builtin_names():
        return format.name, "that of the format"
    found = known(files.names)
    if found is not None:
        return found.template, f"by the model's name: {found.name}"
    return UNKNOWN, "nothing is known of the model"


def _text(source: str) -> ModelFiles:
    return ModelFiles(Path("<template>"), {"default": source})
