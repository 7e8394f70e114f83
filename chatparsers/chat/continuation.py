"""A prompt that ends inside the answer, so that the model continues it.

If the template shows the beginning of an answer, and the format reads it as content or reasoning rightly, the
template's rendering is used. Some templates drop reasoning, put content into a thought that they opened, or write
another text before an answer than the prompt that asks for it (after another answer). Then the prompt for a new answer
is used, and the format writes the beginning after it, or its words are put there as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..answers.format import Format
from ..errors import ChatParsersError, TemplateError
from ..templates import Template
from ..templates.jinja.traced import untraced
from ..templates.messages import REASONING, reasoning_of
from ..templates.renderer import Rewritten
from .places import in_one_text
from .shapes import region_after, text_after
from .words import with_words

_HALF = "\ufffd"
_END = "\ue000"  # from the private use area: it marks the place of a cut


def continued(
    fmt: Format, template: Template, given: Rewritten, variables: Mapping[str, Any], asked: tuple[str, str]
) -> tuple[str, str]:
    """The prompt, and the part of it that belongs to the answer. ``asked``: the same for a new answer, without the last
    message. Raises `TemplateError` if the template drops the beginning and the format cannot write it."""
    final = in_one_text(given.messages[-1])
    wanted = "content" if final.get("content") or not reasoning_of(final) else "reasoning"
    header = asked[0].removesuffix(asked[1])
    content = final.get("content") or ""
    begun: str | None = None
    refused: TemplateError | None = None
    try:
        prompt = template.render(given.messages, tools=given.tools, continue_final_message=True, **variables)
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
