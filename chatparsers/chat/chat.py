"""A chat: a model's template, format and tokenizer, from which requests become turns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from ..core.format import Format, ToolChoice, Turn
from ..core.message import Message
from ..detection.detect import CONTENT_ONLY, Detection, analysed, by_name, detect_in
from ..detection.limits import needed
from ..detection.names import known
from ..detection.shown import knows_reasoning
from ..errors import LoadError, RequestError, TemplateError, did_you_mean, warn_user
from ..kept import cached
from ..public import made_by, public
from ..registry import get_format, list_formats
from ..schema.tools import Tools, read_tools
from ..templates import Template
from ..templates.builtins import UNKNOWN, builtin_names, builtin_source
from ..templates.jinja.limits import DEFAULT, Limits, limited
from ..templates.probe.edges import opening
from ..templates.probe.roles import role_headers
from ..templates.probe.thinking import SWITCHES
from ..templates.renderer import Renderer
from ..templates.rewrite.declared import ToolsAs
from ..templates.rewrite.history import History
from ..templates.rewrite.polyfills import POLYFILLS
from ..tokens import ModelFiles, TokenizerLike, read_model, read_tokenizer
from ..tokens.loaders import is_template_text
from .around import Around
from .continuation import continued
from .conversation import Conversation
from .quoted import quoted_markers
from .read_back import PromptMessage, read_back
from .record import TemplateFormat, record
from .request import Request, plain_messages
from .syntax import with_calls
from .training import Training

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..interop import Readers, WrittenTemplate
    from .options import BindOptions, PrepareOptions

_AUTO = "auto"
"""The name that stands for the analysis of the template."""
_DEFAULT_SYNTAX = "hermes-2-pro"
"""The syntax of calls for models that know no tool syntax: docs/templates.md says why."""
_LONGEST_NAME, _MOST_WARNINGS = 60, 256
"""How much of a variable's name a warning shows, and how many warnings are remembered: both may come from strangers."""


@public
class Chat(Training):
    """A model's template, format and tokenizer. Made by `load`."""

    def __init__(self) -> None:
        made_by("a chat", "load()")

    @classmethod
    def _made(
        cls,
        files: ModelFiles,
        *,
        tokenizer: Any = None,
        format: Format | None = None,
        polyfills: bool | Iterable[str] = True,
        analysed: bool = False,
        limits: Limits = DEFAULT,
        builtin: tuple[str, str] | None = None,
        tools_as: ToolsAs = "json",
    ) -> Chat:
        chat: Chat = object.__new__(cls)
        chat._open(files, tokenizer, format, _chosen(polyfills), analysed, limits, builtin, tools_as)
        return chat

    def _open(
        self,
        files: ModelFiles,
        tokenizer: Any,
        format: Format | None,
        polyfills: frozenset[str],
        analysed: bool,
        limits: Limits,
        builtin: tuple[str, str] | None,
        tools_as: ToolsAs,
    ) -> None:
        self.files = files
        self.name = str(files.source)
        self.limits = limits
        self._builtin = builtin
        self._analysed = analysed
        self._tokenizer = tokenizer
        self._format = format
        self._templates: dict[str, Template] = {}
        self._renderers: dict[tuple[str, frozenset[str]], Renderer] = {}
        self._polyfills = polyfills
        self._tools_as = tools_as
        self._warned: set[str] = set()
        self._reasoning: dict[tuple[str, str], bool] = {}
        """Whether a template shows that the model writes reasoning as a format has it, by their names."""
        self.around: dict[bytes, Around] = {}
        """What the template writes around answers, by the options of the request."""

    def __repr__(self) -> str:
        known = "format" in self.__dict__ or self._format is not None
        format = self.format.name if known else "format not yet detected"
        return f"<Chat: {self.name}, {format}>"

    def __getstate__(self) -> dict[str, Any]:
        # What was found of the template is not sent to another process: its renderers keep functions.
        return {**self.__dict__, "_templates": {}, "_renderers": {}, "around": {}}

    def template(self, tools: bool = True) -> Template:
        """The chat template: the one named ``tool_use`` for requests with ``tools``, if there is one, else the default.

        Raises `TemplateError` if it is not a Jinja template.

        >>> chat.template().source.count("<|im_start|>") > 0
        True
        """
        name = self.files.template_name(tools) or "default"
        found = self._templates.get(name)
        if found is None:
            label = f"{self.files.source}" + ("" if name == "default" else f" ({name})")
            found = self._templates[name] = Template(
                self.files.templates[name],
                bos_token=self.files.bos_token or "",
                eos_token=self.files.eos_token or "",
                name=label,
                limits=self.limits,
            )
        return found

    def renderer(self, tools: bool = True, polyfills: bool | Iterable[str] | None = None) -> Renderer:
        """`template` with the polyfills that it needs.

        >>> chat.renderer(tools=True).rewrite(messages, tools).names
        ('tools',)
        """
        template = self.template(tools)
        allowed = self._polyfills if polyfills is None else _chosen(polyfills)
        key = template.name, allowed
        if key not in self._renderers:
            known = self.format.features.tools
            self._renderers[key] = Renderer(template, self.syntax, allowed, self._tools_as, calls_known=known)
        return self._renderers[key]

    @property
    def builtin(self) -> str | None:
        """The name of the built-in template that is used; None if the template is the model's own."""
        return None if self._builtin is None else self._builtin[0]

    @cached
    def tokenizer(self) -> TokenizerLike | None:
        """The model's tokenizer; None if its files have no tokenizer."""
        found: TokenizerLike | None = self._tokenizer if self._tokenizer is not None else self.files.tokenizer
        return found

    @cached
    def detection(self) -> Detection:
        """How the format was found: by the template, else by the model's name."""
        if self._format is not None:
            return Detection(self._format.name, 1.0, ("named by the caller",))
        if self._analysed:
            return analysed(self.template())
        named = known(self.files.names)
        if self._builtin is not None:
            name, why = self._builtin
            format = (
                name if any(name == info.name for info in list_formats()) else named.format if named else ""
            )
            stand_in = "a small stand-in for the model's own, which tells tools in other words"
            return Detection(
                format or CONTENT_ONLY, 1.0, (f"the built-in template {name!r}: {why}", stand_in)
            )
        found = detect_in(self.template(), self.files.response_template)
        for limit in found.limits:
            if (
                limit.part == "response template"
            ):  # what the model's authors say of it is lost, whatever is asked
                self._warn(
                    f"{self.name}: {limit} (name a format with load(…, format=…), or mend the template)"
                )
        if found.name not in (None, CONTENT_ONLY) or named is None or not named.format:
            return found
        return by_name(self.template(), found, named.format, named.name)

    @cached
    def format(self) -> Format:
        """The model's format, with the stops that its template writes. If no known format explains the template, it is
        the format that the analysis found, else `content-only`: then everything that the model writes is content."""
        found = self._format or self.detection.format or get_format(self.detection.name or CONTENT_ONLY)
        return self._with_stops(found, own=found.name != CONTENT_ONLY)

    @cached
    def syntax(self) -> Format:
        """The format of tools and calls if the template shows no tools: the model's own, or one that many models know,
        with the model's own reasoning."""
        if self.format.features.tools:
            return self.format
        return self._with_stops(with_calls(self.format, get_format(_DEFAULT_SYNTAX)), own=False)

    def _with_stops(self, fmt: Format, *, own: bool) -> Format:
        """The format with the template's stops. ``own``: its own stops stay as well."""
        stops = dict.fromkeys(fmt.stops) if own else {}
        for stop in (*self.template(False).end_of_turn(fmt), self.files.eos_token):
            if stop:
                stops[stop] = None
        return fmt if tuple(stops) == fmt.stops else replace(fmt, stops=tuple(stops))

    def warm(self) -> Chat:
        """Does now what a first request would do: finds the format, probes the template, makes the usual plans.

        >>> chat = chatparsers.load(template="qwen3").warm()
        """
        for tools in (False, True):
            renderer = self.renderer(tools)
            renderer.template.probe()
            renderer.warm()
        self.prepare([{"role": "user", "content": "Hello"}])
        return self

    @limited
    def prepare(
        self,
        messages: Sequence[Mapping[str, Any] | Message],
        *,
        tools: Tools | None = None,
        tool_choice: ToolChoice = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template_kwargs: Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        now: datetime | None = None,
        polyfills: bool | Iterable[str] | None = None,
        id_seed: str | None = None,
        lenient_calls: bool = False,
        max_calls: int | None = None,
        **unknown: NoReturn,
    ) -> Turn:
        """The turn that answers ``messages``: OpenAI-shaped, or a `Message` of an earlier turn.

        ``tools``: in OpenAI's, Anthropic's or MCP's shape, Python functions, or pydantic models; or the ``tools`` of
        another turn, which are not read again.

        Polyfills write in another way what the template cannot show. The turn's ``polyfills`` names those that were
        used. Here, False or a list of names overrides the ``polyfills`` of `load`. ``thinking``: True or False sets the
        template's switch (if it has no switch, a warning says so), None leaves its default.
        ``continue_final_message``: the last message is an assistant's, and the model continues it; its beginning is the
        turn's ``prefix``, and the stream reads only the new text. ``template_kwargs``, ``documents``: the template's
        own variables. ``now``: the time that the template writes. ``id_seed``, ``lenient_calls``, ``max_calls``: as in
        `Format.bind`.
        Raises `RequestError` for malformed tools, an invalid choice or an unknown option, or if ``tool_choice``
        requires a call and no known format reads this model's calls. Raises `TemplateError` if the messages cannot be
        rendered, also for calls whose arguments are no JSON object. Warns of variables that the template does not read.

        >>> turn = chat.prepare(messages, tools=tools)
        >>> turn.prompt[-41:]
        'in Oslo?<|im_end|>\\n<|im_start|>assistant\\n'
        >>> turn.parse(call).tool_calls[0].arguments
        '{"city": "Oslo"}'
        >>> chat.prepare(messages, thinking=False).prefix
        '<think>\\n\\n</think>\\n\\n'
        """
        if unknown:
            raise _no_option(unknown)
        messages = plain_messages(messages)
        known = read_tools(tools)
        renderer = self.renderer(bool(known), polyfills)
        template = renderer.template
        if template_kwargs is not None:
            self._check_kwargs(template, template_kwargs)
        variables = self._variables(template, thinking, template_kwargs, documents, now)
        # Also with tool_choice="none": an engine's cached prefix stays, and the turn's reading drops calls.
        given = renderer.rewrite(messages, known.raw or None)
        history = messages if isinstance(messages, History) else None
        # What the prompt shows in this syntax, the model answers in it.
        fmt = self.syntax if {"tools", "tool_calls"}.intersection(given.names) else self.format
        prefix = ""
        try:
            if continue_final_message:
                prompt, prefix = continued(fmt, template, given, variables)
            else:
                prompt = template.render(
                    given.messages,
                    tools=given.tools,
                    add_generation_prompt=add_generation_prompt,
                    history=history,
                    **variables,
                )
        except TemplateError as error:
            if not given.names:
                raise
            used = ", ".join(given.names)
            raise TemplateError(f"{error}; messages are counted as the polyfills {used} left them") from error
        if add_generation_prompt and not continue_final_message:
            end = template.generation_prompt_of(prompt, given.messages, tools=given.tools, **variables)
            prefix = opening(fmt, end)
        turn = fmt.bind(
            tools=known,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            response_format=response_format,
            thinking=thinking,
            prefix=prefix,
            tokenizer=self.tokenizer,
            token_config=self.files.special_config,
            prompt=prompt,
            polyfills=given.names,
            id_seed=id_seed,
            lenient_calls=lenient_calls,
            reasoning=self._reasons(fmt, template),
            max_calls=max_calls,
        )
        if known and turn.options.mode != "none" and "tools" not in given.names:
            self._heard(fmt, template, turn)
            self._proved(turn)
        elif known and self._builtin is not None and self._builtin[1] != _NAMED:
            self._warn(
                f"{self.name}: the built-in template {self._builtin[0]!r}, {self._builtin[1]}, is a small stand-in: it "
                "tells the tools in words that are not the model's own (load the model's own chat_template, or name "
                "this one with load(template=…))"
            )
        return turn

    def _reasons(self, fmt: Format, template: Template) -> bool | None:
        """Whether the model writes reasoning; None if the format has none, or no template of the model tells."""
        if not fmt.features.reasoning:
            return None
        key = template.name, fmt.name
        found = self._reasoning.get(key)
        if found is None:
            found = self._reasoning[key] = knows_reasoning(template, fmt)
        return None if self._builtin is not None and not found else found

    def _variables(
        self,
        template: Template,
        thinking: bool | None,
        template_kwargs: Mapping[str, Any] | None,
        documents: Sequence[Mapping[str, Any]] | None,
        now: datetime | None,
    ) -> dict[str, Any]:
        """The template's variables for a request."""
        variables = template.thinking_kwargs(thinking)
        if thinking is not None and not variables and thinking is not self.format.features.reasoning:
            self._warn(
                f"thinking={thinking}: {template.name} has no switch for it, so the prompt is the same without (leave "
                "it out, or pass the template's own variable in template_kwargs)"
            )
        if documents is not None:
            variables["documents"] = documents
        if now is not None:
            variables["strftime_now"] = now.strftime
        return {**variables, **(template_kwargs or {})}

    def _check_kwargs(self, template: Template, given: Mapping[str, Any]) -> None:
        """Raises for variables that `prepare` sets itself, and warns of those that the template does not read."""
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise RequestError(
                f"template_kwargs: expected an object of variables by name, found {given!r:.60}"
            )
        for name in given:
            if name in _SET:
                raise RequestError(f"template_kwargs: {name!r} is no variable for it: {_SET[name]}")
        read = template.variables
        for name in given:
            if read is not None and name not in read and name not in _OFTEN:
                shown = name[:_LONGEST_NAME]
                hint = did_you_mean(shown, read - _SET.keys() - _OFTEN)
                self._warn(f"template_kwargs: {template.name} reads no variable {shown!r}: {hint}")

    def _heard(self, fmt: Format, template: Template, turn: Turn) -> None:
        """Raises or warns if the prompt does not show the tools, or if no format could read the calls."""
        if not fmt.features.tools:
            why, mend = "no format explains the template", "name one with load(…, format=…)"
        elif not template.can.tools:
            why, mend = "the template shows none and the polyfill is off", "allow the polyfill 'tools'"
        else:
            return
        if turn.options.mode == "required":
            raise RequestError(f"tool_choice: {template.name}: no call could be read, as {why} ({mend})")
        self._warn(f"tools are not read: {template.name}: {why} ({mend})")

    def _proved(self, turn: Turn) -> None:
        """Warns of what the analysis of the template did not prove, if calls of these tools may meet it."""
        if turn.tools and self.detection.limits:
            for limit in needed(self.detection.limits, turn.tools):
                self._warn(
                    f"{self.name}: not proved of {self.format.name} with this template: {limit} (name another format "
                    "with load(…, format=…), or leave out what needs it)"
                )

    def _warn(self, text: str) -> None:
        """Warns once."""
        if text not in self._warned:
            if len(self._warned) > _MOST_WARNINGS:
                self._warned.clear()
            self._warned.add(text)
            warn_user(text)

    def quoted(
        self, messages: Sequence[Mapping[str, Any] | Message], **request: Unpack[PrepareOptions]
    ) -> list[tuple[int, int]]:
        """The spans of the prompt in which words of users, tools and old answers spell a special token: encode these as
        text, or the words can forge a turn. Empty without a tokenizer.

        ``request``: the keywords of `prepare`. The messages are rendered only if a text of theirs, or of the tools,
        spells one.

        >>> chat.quoted([{"role": "user", "content": "Hi<|im_end|>"}])
        [(19, 29)]
        """
        made = Request(self, request)
        return quoted_markers(made, plain_messages(messages))

    def conversation(
        self, messages: Iterable[Mapping[str, Any]] = (), **request: Unpack[PrepareOptions]
    ) -> Conversation:
        """A conversation to which messages are added one by one. Each step gives only the new text.

        ``messages``: the first messages. ``request``: the keywords of `prepare`, the same for every step.

        >>> conversation = chat.conversation()
        >>> conversation.append(*messages).text
        '<|im_start|>user\\nIs it cold in Oslo?<|im_end|>\\n<|im_start|>assistant\\n'
        """
        conversation = Conversation._made(self, request)
        first = list(messages)
        if first:
            conversation.append(*first)
        return conversation

    def parse_prompt(self, text: str, *, thinking: bool | None = None) -> list[PromptMessage]:
        """The messages of a rendered conversation, such as a dataset's row or a log, each with its span.

        `PromptMessage.written` marks the model's messages: a loss mask over the text or its tokens. What the generation
        prompt wrote of an answer is not in its span: that of ``thinking``, or for None the template's own, else the
        empty thought of thinking off. Text that the template merges or drops does not come back. Raises
        `TemplateError` if the template marks no roles.

        >>> prompt = chat.prepare(messages).prompt
        >>> [each.message["role"] for each in chat.parse_prompt(prompt)]
        ['user']
        """
        template = self.template()
        headers = role_headers(template, self.syntax)
        opens = headers["assistant"].before if headers else ()
        if not any(text.rstrip().endswith(header.strip()) for header in opens):
            prompts = {self._generation_prompt(template, thinking) for thinking in (None, True, False)}
            longest = sorted(prompts, key=len, reverse=True)
            text = next((text[: -len(end)] for end in longest if end and text.endswith(end)), text)
        modes = (None, False) if thinking is None else (thinking,)
        prefixes = [opening(self.syntax, self._generation_prompt(template, mode)) for mode in modes]
        return read_back(Request(self, {"thinking": thinking}), text, headers, prefixes)

    @staticmethod
    def _generation_prompt(template: Template, thinking: bool | None) -> str:
        try:
            hello = [{"role": "user", "content": "Hello"}]
            return template.generation_prompt(hello, **template.thinking_kwargs(thinking))
        except TemplateError:
            return ""

    def bind(self, **request: Unpack[BindOptions]) -> Turn:
        """A turn without messages, as `Format.bind` makes it, with this model's tokenizer.

        ``request``: the keywords of `Format.bind`. Raises as it does.

        >>> chat.bind(prefix="<think>").parse("Hm.</think>Hi").content
        'Hi'
        """
        request.setdefault("tokenizer", self.tokenizer)
        request.setdefault("reasoning", self._reasons(self.format, self.template(bool(request.get("tools")))))
        turn = self.format.bind(**request)
        self._proved(turn)
        return turn

    def record(self) -> TemplateFormat:
        """The explicit record of the model's format: what `chatparsers inspect` prints.

        >>> record = chat.record()
        >>> record.format, record.reasoning_markers, record.stops
        ('qwen3', ('<think>', '</think>'), ('<|im_end|>', '<|endoftext|>'))
        """
        return record(self.files, self.template(), self.detection, self.format, self.tokenizer)

    def response_template(self, *, for_: Readers = "transformers") -> WrittenTemplate:
        """The ``response_template`` of transformers for this model, and what is lost by it.

        ``for_``: who reads it, ``"transformers"`` or the ``"servers"`` vLLM and SGLang, which take other fields. Raises
        `TemplateError` if the template has no generation prompt, because the assistant's message begins after it.

        >>> chat.response_template().lost[:1]
        ('white space at the ends of reasoning and content is stripped',)
        """
        from ..interop import write_response_template

        prompt = self._generation_prompt(self.template(), None)
        anchor = prompt[: len(prompt) - len(opening(self.format, prompt))]
        if not anchor.strip():
            raise TemplateError(
                f"{self.name}: expected a generation prompt, found none: nothing marks a message"
            )
        return write_response_template(self.format, anchor, for_=for_)

    def clean_output(self, text: str) -> str:
        """The content of a finished raw output: no reasoning, no calls, no markup.

        >>> chat.clean_output("<think>Hm.</think>Hi")
        'Hi'
        """
        return clean_output(text, format=self.format)


@public
def load(
    source: str | PathLike[str] | None = None,
    *,
    tokenizer: Any = None,
    format: str | None = None,
    bos_token: str | None = None,
    eos_token: str | None = None,
    polyfills: bool | Iterable[str] = True,
    limits: Limits = DEFAULT,
    template: str | None = None,
    tools_as: ToolsAs = "json",
) -> Chat:
    """The chat of a model.

    ``source``: a model's folder, its ``tokenizer_config.json``, a ``.jinja`` or ``.gguf`` file, or a template's
    text. ``tokenizer``: a ``tokenizers.Tokenizer``, or the path of a ``tokenizer.json``. ``format``: a name that
    overrides detection; ``"auto"`` has the template analysed, whatever format is known for it. ``bos_token``,
    ``eos_token`` override the files'. ``polyfills``: whether what the template cannot show is written in another
    way, or the names of the polyfills that may do so. ``template``: the name of a built-in template, instead of the
    model's own; a model without one gets that of its format, or else that which its name tells. It is a small stand-in,
    which tells tools in words that are not the model's own. ``tools_as``:
    how a template that shows no tools gets them: as JSON Schemas, or in fewer words (``"compact"``, ``"typescript"``).
    ``limits``: how much the template may do in one call. Raises `LoadError`, which names the file and the field,
    `UnknownFormat` and `TemplateError`.

    >>> chat = chatparsers.load(template="qwen3")
    >>> chat.format
    <Format: qwen3, Qwen3, Qwen2.5, QwQ>
    >>> chatparsers.load("{{ messages[0].content }}", format="hermes-2-pro").format.name
    'hermes-2-pro'
    """
    if tools_as not in get_args(ToolsAs):
        raise RequestError(f"tools_as: expected 'json', 'compact' or 'typescript', found {tools_as!r:.40}")
    named = None if format in (None, _AUTO) else get_format(format)
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
    return Chat._made(
        files,
        tokenizer=tokenizer,
        format=named,
        polyfills=polyfills,
        analysed=format == _AUTO,
        limits=limits,
        builtin=builtin,
        tools_as=tools_as,
    )


_SET = {
    "messages": "pass the messages first",
    "tools": "pass tools=…",
    "add_generation_prompt": "pass add_generation_prompt=…",
    "continue_final_message": "pass continue_final_message=…",
    **dict.fromkeys(("self", "history", "prompt"), "no template can read one of that name"),
}
"""Names that a variable of a template cannot have, and how to set what they stand for."""
_OFTEN = frozenset({"bos_token", "eos_token", "documents", "strftime_now", "raise_exception"})
"""Variables that every template may read."""


_NAMED = "named by the caller"
"""Why a built-in template is the one."""
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


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


def _no_option(unknown: Mapping[str, Any]) -> RequestError:
    from .options import PrepareOptions

    name = next(iter(unknown))
    near = get_close_matches(name, PrepareOptions.__annotations__, n=1, cutoff=0.75)
    if near and name not in SWITCHES:
        return RequestError(f"prepare: there is no option {name!r}: did you mean {near[0]}?")
    switch = f"thinking={unknown[name]} sets the switch of any template; " if name in SWITCHES else ""
    return RequestError(
        f"prepare: there is no option {name!r}: {switch}a template's own variables go into "
        f"template_kwargs={{{name!r}: {unknown[name]!r:.40}}}"
    )


def _builtin(template: str | None, format: Format | None, files: ModelFiles) -> tuple[str, str]:
    """The name of the built-in template, and why it is that one."""
    if template is not None:
        return template.strip().lower().replace("_", "-"), _NAMED
    if format is not None and format.name in builtin_names():
        return format.name, "that of the format"
    found = known(files.names)
    if found is not None:
        return found.template, f"by the model's name: {found.name}"
    return UNKNOWN, "nothing is known of the model"


@public
def clean_output(text: str, *, format: str | Format, prefix: str = "") -> str:
    """The content of a finished raw output, as the format's parser reads it: no reasoning, no calls, no markup.

    ``prefix``: what the prompt already wrote of the turn, such as ``"<think>\\n"``. Calls are left
    out although no tools are named.

    >>> chatparsers.clean_output("Hm.</think>Hi", format="qwen3", prefix="<think>")
    'Hi'
    """
    fmt = get_format(format) if isinstance(format, str) else format
    return fmt.bind(tools=[{"name": "any"}], prefix=prefix).parse(text).content


def _chosen(polyfills: bool | Iterable[str]) -> frozenset[str]:
    """The names of the polyfills that may be used. Raises `RequestError` for an unknown name."""
    if isinstance(polyfills, bool):
        return frozenset(POLYFILLS) if polyfills else frozenset()
    names = frozenset([polyfills] if isinstance(polyfills, str) else polyfills)
    for name in sorted(names - POLYFILLS.keys()):
        raise RequestError(f"polyfills: no polyfill is named {name!r}: {did_you_mean(name, POLYFILLS)}")
    return names


def _text(source: str) -> ModelFiles:
    return ModelFiles(Path("<template>"), {"default": source})
