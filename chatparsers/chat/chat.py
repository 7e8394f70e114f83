"""A chat: a model's template, format and tokenizer, from which requests become turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from ..answers.format import Format, ToolChoice, Turn
from ..detection.detect import Detection, analysed, by_name, detect_in
from ..detection.limits import needed
from ..detection.names import known
from ..detection.shown import CONTENT_ONLY, knows_reasoning
from ..errors import ChatParsersError, RequestError, TemplateError, did_you_mean, warn_user
from ..kept import cached
from ..public import made_by, public
from ..registry import get_format, list_formats
from ..schema.tools import Tools
from ..shown import Shown
from ..streams.message import Message
from ..templates import Template
from ..templates.jinja.limits import DEFAULT, Limits, limited
from ..templates.probe.edges import edges_of
from ..templates.probe.parts import part_kinds
from ..templates.renderer import Renderer
from ..templates.rewrite.declared import ToolsAs
from ..templates.rewrite.polyfills import POLYFILLS
from ..tokens import ModelFiles, TokenizerLike
from ..tokens.vocabulary import Vocabulary
from .asking import Asking
from .inline import Marks, marks_of
from .placeholders import Placeholder, all_placeholders
from .request import Request, plain_messages
from .syntax import with_calls
from .training import Training

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..interop import Readers, WrittenTemplate
    from .conversation import Conversation
    from .options import BindOptions, PrepareOptions, Thinking
    from .read_back import PromptMessage
    from .record import TemplateFormat

_DEFAULT_SYNTAX = "hermes-2-pro"
"""The syntax of calls for models that know no tool syntax: docs/templates.md says why."""
_MOST_WARNINGS = 256
"""How many warnings are remembered: they may quote what strangers send."""


@public
class Chat(Training, Asking, Shown):
    """A model's template, format and tokenizer. Made by `load`."""

    def __init__(self) -> None:
        made_by("a chat", "load()")

    @classmethod
    def _made(cls, files: ModelFiles, **options: Any) -> Chat:
        chat: Chat = object.__new__(cls)
        chat._open(files, **options)
        return chat

    def _open(
        self,
        files: ModelFiles,
        *,
        tokenizer: Any = None,
        format: Format | None = None,
        polyfills: bool | Iterable[str] = True,
        analysed: bool = False,
        limits: Limits = DEFAULT,
        builtin: tuple[str, str] | None = None,
        tools_as: ToolsAs = "json",
    ) -> None:
        self.files = files
        self.name = str(files.source)
        self.limits = limits
        self.stand_in = builtin
        """The built-in template in the place of the model's own, and why it is that one."""
        self._analysed = analysed
        self._tokenizer = tokenizer
        self._format = format
        self._templates: dict[str, Template] = {}
        self._renderers: dict[tuple[str, frozenset[str]], Renderer] = {}
        self._polyfills = _chosen(polyfills)
        self._tools_as = tools_as
        self._warned: set[str] = set()
        self._reasoning: dict[tuple[str, str], bool | None] = {}
        """Whether a template shows that the model writes reasoning as a format has it, by their names."""
        self.found: dict[bytes, dict[Any, Any]] = {}
        """What was found of the template, by the options of the request."""

    def __repr__(self) -> str:
        known = "format" in self.__dict__ or self._format is not None
        format = self.format.name if known else "format not yet detected"
        return f"<Chat: {self.name}, {format}>"

    def __getstate__(self) -> dict[str, Any]:
        # What was found of the template is not sent to another process: its renderers keep functions.
        return {**self.__dict__, "_templates": {}, "_renderers": {}, "found": {}}

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
        return None if self.stand_in is None else self.stand_in[0]

    @cached
    def tokenizer(self) -> TokenizerLike | None:
        """The model's tokenizer; None if its files have no tokenizer, or ``tokenizers`` is not installed."""
        found: TokenizerLike | None = self._tokenizer if self._tokenizer is not None else self.files.tokenizer
        if found is not None:
            self._warn_of_another(found)
        return found

    def _warn_of_another(self, tokenizer: Any) -> None:
        """Warns of a tokenizer that has none of the markers: it is another model's."""
        with suppress(ChatParsersError):  # a template that fails says so where it is used
            markers = [text.strip() for text in (*self.format.preserved_tokens, *self.format.stops)]
            if any(markers) and not Vocabulary.bare(tokenizer).single(markers):
                self._warn_once(
                    f"tokenizer: {self.name}: none of the markers of {self.format.name!r} and its ends of turns is one "
                    f"token of it, such as {next(filter(None, markers))!r}: is it another model's? (pass the model's "
                    "own; markers of several tokens are read from their text, which anybody can spell)"
                )

    @cached
    def detection(self) -> Detection:
        """How the format was found: by the template, else by the model's name."""
        if self._format is not None:
            return Detection(self._format.name, 1.0, ("named by the caller",))
        if self._analysed:
            return analysed(self.template())
        named = known(self.files.names)
        if self.stand_in is not None:
            name, why = self.stand_in
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
                self._warn_once(
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
    def _marks(self) -> tuple[Marks, ...]:
        """The markers of thoughts of its format."""
        return marks_of(self.format)

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
        loaded: Tools | None = None,
        tool_choice: ToolChoice = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        thinking: Thinking | None = None,
        effort: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template_kwargs: Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        now: datetime | None = None,
        polyfills: bool | Iterable[str] | None = None,
        id_seed: str | None = None,
        lenient_calls: bool = False,
        max_calls: int | None = None,
        call_within: int | None = None,
        **unknown: NoReturn,
    ) -> Turn:
        """The turn that answers ``messages``: OpenAI-shaped, or a `Message` of an earlier turn.

        ``tools``: in OpenAI's, Anthropic's or MCP's shape, Python functions, or pydantic models; or the ``tools`` of
        another turn, which are not read again. ``loaded``: tools that load later, in the same shapes. A part ``{"type":
        "tool_reference", "tool_name": …}`` of a message shows one, and it can be called from there on; the text before
        it stays as it was. One that no message names is neither in the prompt nor in the grammar. ``tool_removal`` in
        the place of ``tool_reference`` takes one back.

        Polyfills write in another way what the template cannot show. The turn's ``polyfills`` names those that were
        used. Here, False or a list of names overrides the ``polyfills`` of `load`. ``thinking``, ``effort``: a
        wish for thoughts, and how many (``none``, ``minimal``, ``low`` … ``max``). The nearest level that the template
        has is used (`Turn.thoughts` names it); without a wish, its default. ``thinking`` decides on and off.
        ``continue_final_message``: the last message is an assistant's, and the model continues it; its beginning is the
        turn's ``prefix``, and the stream reads only the new text. Its last call may be cut off anywhere; the stream
        gives it whole. ``template_kwargs``, ``documents``: the template's own variables. ``now``: the time that the
        template writes. ``id_seed``, ``lenient_calls``, ``max_calls``, ``call_within``: as in `Format.bind`.
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
        options = {
            "tools": tools,
            "loaded": loaded,
            "tool_choice": tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
            "response_format": response_format,
            "thinking": thinking,
            "effort": effort,
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
            "template_kwargs": template_kwargs,
            "documents": documents,
            "now": now,
            "polyfills": polyfills,
            "id_seed": id_seed,
            "lenient_calls": lenient_calls,
            "max_calls": max_calls,
            "call_within": call_within,
            **unknown,
        }
        return Request(self, options).turn(messages)

    def _reasons(self, fmt: Format, template: Template) -> bool | None:
        """Whether the model writes reasoning; None if the format has none, or no template of the model tells."""
        key = template.name, fmt.name
        if key not in self._reasoning:
            known = knows_reasoning(template, fmt) if fmt.features.reasoning else None
            self._reasoning[key] = known
        found = self._reasoning[key]
        return None if self.stand_in is not None and not found else found

    def _proved(self, turn: Turn) -> None:
        """Warns of what the analysis of the template did not prove, if calls of these tools may meet it."""
        if turn.tools and self.detection.limits:
            for limit in needed(self.detection.limits, turn.tools):
                self._warn_once(
                    f"{self.name}: not proved of {self.format.name} with this template: {limit} (name another format "
                    "with load(…, format=…), or leave out what needs it)"
                )

    def _warn_once(self, text: str) -> None:
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
        return made.quoted(made.read(plain_messages(messages)))

    def placeholders(
        self, messages: Sequence[Mapping[str, Any] | Message], **request: Unpack[PrepareOptions]
    ) -> list[Placeholder]:
        """What the prompt has in the places of images and other parts that are no text, in characters of the prompt.

        ``request``: the keywords of `prepare`. Raises `TemplateError` for a part that the template has no place for.

        >>> part = "{{ '<|image|>' if part.type == 'image' else part.text }}"
        >>> each = "{% for m in messages %}{% for part in m.content %}" + part + "{% endfor %}{% endfor %}"
        >>> content = [{"type": "text", "text": "See "}, {"type": "image"}]
        >>> chatparsers.load(each).placeholders([{"role": "user", "content": content}])
        [Placeholder(start=4, end=13, message=0, part=1, kind='image')]
        """
        made = Request(self, request)
        read = made.read(plain_messages(messages))
        return all_placeholders(made.traced(read), read) if part_kinds(read) else []

    def conversation(
        self, messages: Iterable[Mapping[str, Any]] = (), **request: Unpack[PrepareOptions]
    ) -> Conversation:
        """A conversation to which messages are added one by one. Each step gives only the new text.

        ``messages``: the first messages. ``request``: the keywords of `prepare`, the same for every step.

        >>> conversation = chat.conversation()
        >>> conversation.append(*messages).text
        '<|im_start|>user\\nIs it cold in Oslo?<|im_end|>\\n<|im_start|>assistant\\n'
        """
        from .conversation import Conversation

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
        from .cut import headers_of
        from .read_back import read_back

        template, request = self.template(), Request(self, {"thinking": thinking})
        opens = headers_of(request)["assistant"].before
        if not any(text.rstrip().endswith(header.strip()) for header in opens):
            prompts = {self._generation_prompt(template, thinking) for thinking in (None, True, False)}
            longest = sorted(prompts, key=len, reverse=True)
            text = next((text[: -len(end)] for end in longest if end and text.endswith(end)), text)
        return read_back(request, text, (False,) if thinking is None else ())

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
        from .record import record

        thinks = bool(self._reasons(self.format, self.template()))
        return record(self.files, self.template(), self.detection, self.format, self.tokenizer, thinks)

    def response_template(self, *, for_: Readers = "transformers") -> WrittenTemplate:
        """The ``response_template`` of transformers for this model, and what is lost by it.

        ``for_``: who reads it, ``"transformers"`` or the ``"servers"`` vLLM and SGLang, which take other fields. Raises
        `TemplateError` if the template has no generation prompt, because the assistant's message begins after it.

        >>> chat.response_template().lost[:1]
        ('white space at the ends of reasoning and content is stripped',)
        """
        from ..interop import write_response_template

        prompt = self._generation_prompt(self.template(), None)
        anchor = prompt[: len(prompt) - len(edges_of(self.format).opening(prompt))]
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
