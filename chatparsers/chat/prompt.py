"""The prompt for messages: what the template writes, and what of it belongs to the answer, new or begun.

    messages ──polyfills──> ──template──> text ──generation prompt──> prefix

An answer has begun if a host continues it, or if its ids were cut off. Its beginning is the template's own, if what
that writes can go on; else the format writes it after the prompt for a new answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..answers.format import Format
from ..errors import ChatParsersError, TemplateError
from ..schema.tools import Toolset
from ..templates.jinja.traced import untraced
from ..templates.messages import REASONING, reasoning_of
from ..templates.probe.edges import Edges, edges_of
from ..templates.probe.stand_ins import TOOLS
from ..templates.renderer import Renderer, Rewritten
from ..templates.rewrite.continuation import check_final
from .begun_calls import begun_calls
from .places import in_one_text
from .shapes import region_after, text_after
from .words import with_words

_HALF = "\ufffd"
_END = "\ue000"  # from the private use area: it marks the place of a cut
Messages = Sequence[Mapping[str, Any]]


class Prompt(NamedTuple):
    """``prefix``: the part of the text that belongs to the answer, which ``format`` reads. ``given``: what the template
    got."""

    text: str
    prefix: str
    format: Format
    given: Rewritten


class Prompter:
    """A template with the variables of a request, and the formats that read what the model answers."""

    def __init__(
        self, renderer: Renderer, format: Format, syntax: Format, variables: Mapping[str, Any]
    ) -> None:
        self._renderer = renderer
        self._edges = edges_of(format)
        self._in_words = edges_of(syntax)
        self._variables = variables

    def edges(self, polyfills: Sequence[str]) -> Edges:
        """Of the format that reads the answer: what the prompt shows in the syntax of the polyfills, the model answers
        in it."""
        return self._in_words if {"tools", "tool_calls"}.intersection(polyfills) else self._edges

    def prompt(
        self, messages: Messages, tools: Any, known: Toolset, *, generate: bool = True, begun: bool = False
    ) -> Prompt:
        """``known``: the tools that can be called. ``generate``: the prompt asks for an answer. ``begun``: the last
        message is an answer that is continued. Raises `TemplateError`, also if neither the template nor the format can
        write its beginning."""
        template, calling = self._renderer.template, None
        if begun and messages:
            messages = [*messages[:-1], without_half(messages[-1])]
            if messages[-1].get("tool_calls"):  # it is put after the prompt for a new answer
                *messages, calling = messages
                check_final([*messages, {**calling, "tool_calls": None}], template.name)
        given = self._renderer.rewrite(messages, tools or None)
        edges = self.edges(given.names)
        fmt = edges.format
        try:
            if begun and calling is None:
                check_final(given.messages, template.name)
                text, prefix = self._continued(edges, given)
            else:
                text, prefix = self._asking(edges, given, generate or begun)
        except TemplateError as error:
            if not given.names:
                raise
            used = ", ".join(given.names)
            raise TemplateError(f"{error}; messages are counted as the polyfills {used} left them") from error
        if calling is not None:
            rest = with_words(begun_calls(fmt, prefix, untraced(calling), known), calling)
            text, prefix = text + rest, prefix + rest
        return Prompt(text, prefix, fmt, given)

    def _asking(self, edges: Edges, given: Rewritten, generate: bool = True) -> tuple[str, str]:
        """The prompt for a new answer, and what of it belongs to the answer."""
        text, generated = self._renderer.prompt(given, generate, self._variables)
        return text, edges.opening(generated)

    def _continued(self, edges: Edges, given: Rewritten) -> tuple[str, str]:
        """The same for the answer that the last message begins."""
        fmt = edges.format
        *before, last = given.messages
        asked = self._asking(edges, given._replace(messages=before, history=None)) if before else ("", "")
        final = in_one_text(last)
        wanted = "content" if final.get("content") or not reasoning_of(final) else "reasoning"
        header = asked[0].removesuffix(asked[1])
        content = final.get("content") or ""
        begun: str | None = None
        refused: TemplateError | None = None
        try:
            prompt = self._renderer.template.render(
                given.messages, tools=given.tools, continue_final_message=True, **self._variables
            )
        except TemplateError as error:
            refused = error
        else:
            if prompt.startswith(header):
                begun = prompt.removeprefix(header)
                if region_after(fmt, begun) == wanted:
                    return prompt, begun
        try:
            rest = _written(fmt, asked[1], untraced(content), untraced(reasoning_of(final)), wanted)
        except ChatParsersError as error:
            if begun is None and wanted == "content":
                whole = asked[1] + content  # the prompt's own beginning is a header, or opens a thought
                begun = whole if region_after(fmt, whole) == wanted else content
            if refused is not None or begun is None:
                raise refused or error from None
            return header + begun, begun
        rest = with_words(rest, final)
        return asked[0] + rest, asked[1] + rest

    def stand_in(self, messages: Messages, generate: bool) -> str:
        """A conversation of stand-ins, with their tools."""
        given = self._renderer.rewrite(messages, TOOLS)
        return self._renderer.template.probed(
            given.messages, tools=given.tools, add_generation_prompt=generate, **self._variables
        )


def without_half(final: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message without the half of a character that it ends in, where ids were cut off: the model writes it anew."""
    calls = final.get("tool_calls")
    if calls:
        function = calls[-1].get("function")
        given = function.get("arguments") if isinstance(function, Mapping) else None
        if isinstance(given, str) and given.endswith(_HALF):
            last = {**calls[-1], "function": {**function, "arguments": given.rstrip(_HALF)}}
            return {**final, "tool_calls": [*calls[:-1], last]}
        return final
    for name in ("content", *REASONING):
        text = final.get(name)
        if isinstance(text, str) and text:
            return {**final, name: text.rstrip(_HALF)} if text.endswith(_HALF) else final
    return final


def _written(fmt: Format, opened: str, content: str, thought: str, wanted: str) -> str:
    """The beginning of an answer, as the format writes it after what the prompt has of it."""
    if wanted == "reasoning":
        thought += _END
    else:
        content += _END
    begun = {"role": "assistant", "content": content, "reasoning_content": thought}
    rest = text_after(fmt, opened, begun).partition(_END)[0]
    if region_after(fmt, opened + rest) != wanted:
        raise TemplateError(f"the format {fmt.name!r} cannot go on with a {wanted} that has begun")
    return rest
