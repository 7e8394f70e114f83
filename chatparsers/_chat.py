"""A chat: a model's template, format and tokenizer, from which requests become turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from ._detect import CONTENT_ONLY, Detection, detect, prompt_prefix
from ._record import TemplateFormat, record
from .core.errors import LoadError, TemplateError
from .core.format import Format
from .core.turn import Turn
from .registry import get_format
from .templates import Template
from .tokens import ModelFiles, read_model, read_tokenizer

__all__ = ["Chat", "clean_output", "load"]

_TOOL_TEMPLATES = ("tool_use", "default")


class Chat:
    """A model's template, format and tokenizer. Made by `load`."""

    def __init__(self, files: ModelFiles, *, tokenizer: Any = None, format: Format | None = None) -> None:
        self.files = files
        self._tokenizer = tokenizer
        self._format = format
        self._templates: dict[str, Template] = {}

    def template(self, tools: bool = True) -> Template:
        """The chat template: the one named ``tool_use`` for requests with ``tools``, if there is one, else the default.

        Raises `TemplateError` where it is no Jinja template.
        """
        names = _TOOL_TEMPLATES if tools else ("default",)
        name = next(
            (name for name in names if name in self.files.templates), next(iter(self.files.templates))
        )
        found = self._templates.get(name)
        if found is None:
            label = f"{self.files.source}" + ("" if name == "default" else f" ({name})")
            found = self._templates[name] = Template(
                self.files.templates[name],
                bos_token=self.files.bos_token or "",
                eos_token=self.files.eos_token or "",
                name=label,
            )
        return found

    @cached_property
    def tokenizer(self) -> Any:
        """The model's tokenizer; None where its files have none."""
        return self._tokenizer if self._tokenizer is not None else self.files.tokenizer

    @cached_property
    def detection(self) -> Detection:
        """How the template's format was found."""
        if self._format is not None:
            return Detection(self._format.name, 1.0, ("named by the caller",))
        return detect(self.template().source)

    @cached_property
    def format(self) -> Format:
        """The model's format; where none explains the template, `content-only`: all that the model writes is
        content."""
        return self._format or get_format(self.detection.name or CONTENT_ONLY)

    def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> Turn:
        """The turn that answers ``messages`` (OpenAI-shaped, as are ``tools``).

        ``thinking``: True or False where the template has a switch, None for its default.
        ``continue_final_message``: the last message is an assistant's that the model goes on with; its
        beginning is the turn's ``prefix``, and the stream reads what is new. ``template_kwargs`` are the
        template's own variables. Raises `RequestError` for tools or a choice that are none, `TemplateError`
        where the messages cannot be rendered.
        """
        tools = None if tools is None else list(tools)
        template = self.template(bool(tools))
        variables = {**template.thinking_kwargs(thinking), **(template_kwargs or {})}
        shown = None if tool_choice == "none" else tools
        prompt = template.render(
            messages,
            tools=shown,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            **variables,
        )
        opening = ""
        if continue_final_message:
            opening = self._continued(template, messages, shown, prompt, variables)
        elif add_generation_prompt:
            opening = prompt_prefix(
                self.format, template.generation_prompt(messages, tools=shown, **variables)
            )
        turn = Turn(
            self.format,
            tools=tools,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            response_format=response_format,
            thinking=thinking,
            prefix=opening,
            tokenizer=self.tokenizer,
            token_config=self.files.special_config,
            prompt=prompt,
        )
        turn.tools.check()
        return turn

    def _continued(
        self,
        template: Template,
        messages: Sequence[Mapping[str, Any]],
        tools: list[Mapping[str, Any]] | None,
        prompt: str,
        variables: Mapping[str, Any],
    ) -> str:
        """What of ``prompt`` is the last message: all behind its role header."""
        history = messages[:-1]
        plain = template.render(history, tools=tools, **variables) if history else ""
        if not prompt.startswith(plain):
            raise TemplateError(
                f"{template.name}: cannot tell where message {len(messages) - 1} begins, as it changes how the "
                "messages before it are rendered; pass the prompt's end as bind(prefix=…) instead"
            )
        header = template.generation_prompt(history, tools=tools, **variables) if history else ""
        opened = prompt_prefix(self.format, header)
        header = header[: len(header) - len(opened)]
        behind = prompt[len(plain) :]
        return (
            behind[len(header) :]
            if behind.startswith(header)
            else prompt_prefix(self.format, behind) or behind
        )

    def bind(self, **request: Any) -> Turn:
        """A turn without messages, as `Format.bind` makes it, with this model's tokenizer."""
        return self.format.bind(**{"tokenizer": self.tokenizer, **request})

    def record(self) -> TemplateFormat:
        """The explicit record of the model's format: what `chatparsers inspect` prints."""
        return record(self.files, self.template(), self.detection, self.format, self.tokenizer)

    def clean_output(self, text: str) -> str:
        """The content of a finished raw output: no reasoning, no calls, no markup."""
        return clean_output(text, format=self.format)


def load(
    source: str | PathLike[str],
    *,
    tokenizer: Any = None,
    format: str | None = None,
    bos_token: str | None = None,
    eos_token: str | None = None,
) -> Chat:
    """The chat of a model.

    ``source``: a model's folder, its ``tokenizer_config.json``, a ``.jinja`` or ``.gguf`` file, or a template's text.
    ``tokenizer``: a ``tokenizers.Tokenizer``, or the path of a ``tokenizer.json``. ``format``: a name that overrides
    detection. ``bos_token``, ``eos_token`` override the files'. Raises `LoadError`, which names the file and the field,
    `UnknownFormat` and `TemplateError`.
    """
    named = None if format is None else get_format(format)
    files = _text(source) if isinstance(source, str) and _is_text(source) else read_model(source)
    if not files.templates:
        raise LoadError(
            f"{files.source}: no chat template (chat_template in tokenizer_config.json, chat_template.jinja, "
            "tokenizer.chat_template in a GGUF file); pass the template's own file or text"
        )
    if bos_token is not None or eos_token is not None:
        bos = files.bos_token if bos_token is None else bos_token
        eos = files.eos_token if eos_token is None else eos_token
        files = ModelFiles(
            files.source,
            files.templates,
            bos,
            eos,
            files.eos_ids,
            {**files.special_tokens, "bos_token": bos, "eos_token": eos},
            files.special_ids,
            files.names,
            files._read_tokenizer,
        )
    if isinstance(tokenizer, (str, PathLike)):
        tokenizer = read_tokenizer(tokenizer)
    return Chat(files, tokenizer=tokenizer, format=named)


def clean_output(text: str, *, format: str | Format, prefix: str = "") -> str:
    """The content of a finished raw output, as the format's parser reads it: no reasoning, no calls, no markup.

    ``prefix``: what the prompt already wrote of the turn, such as ``"<think>\\n"``. Calls are taken for calls
    although no tools are named, as a finished output is not to show them.
    """
    fmt = get_format(format) if isinstance(format, str) else format
    return fmt.bind(tools=[{"name": "any"}], prefix=prefix).parse(text).content


def _is_text(source: str) -> bool:
    return "{%" in source or "{{" in source or "\n" in source


def _text(source: str) -> ModelFiles:
    return ModelFiles(Path("<template>"), {"default": source})
