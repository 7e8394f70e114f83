"""A prompt that ends inside the answer, so that the model continues it.

If the template shows the beginning of an answer, and the format reads it as content or reasoning rightly, the
template's rendering is used. Some templates drop reasoning, put content into a thought that they opened, or write more
text after the last message. Then the prompt for a new answer is used, and the format writes the beginning after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.format import Format
from ..errors import ChatParsersError, TemplateError
from ..templates import Template
from ..templates.messages import REASONING, reasoning_of
from ..templates.probe.edges import opening
from ..templates.renderer import Rewritten
from ..templates.rewrite.continuation import check_final
from .shapes import region_after, text_after

_HALF = "\ufffd"
_END = "\ue000"  # from the private use area: it marks the place of a cut


def continued(
    fmt: Format, template: Template, given: Rewritten, variables: Mapping[str, Any]
) -> tuple[str, str]:
    """The prompt, and the part of it that belongs to the answer. Raises `TemplateError` if both ways fail."""
    check_final(given.messages, template.name)
    final = given.messages[-1]
    wanted = "content" if final.get("content") or not reasoning_of(final) else "reasoning"
    try:
        prompt = template.render(given.messages, tools=given.tools, continue_final_message=True, **variables)
        prefix = _after_header(fmt, template, given, prompt, variables)
        if region_after(fmt, prefix) == wanted:
            return prompt, prefix
    except TemplateError as error:
        refused: TemplateError | None = error
    else:
        refused = None
    try:
        return _written(fmt, template, given, wanted, variables)
    except ChatParsersError:
        if refused is not None:
            raise refused from None
        return prompt, prefix


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


def _written(
    fmt: Format, template: Template, given: Rewritten, wanted: str, variables: Mapping[str, Any]
) -> tuple[str, str]:
    """The prompt for a new answer, followed by the answer's beginning as the format writes it."""
    history, final = given.messages[:-1], given.messages[-1]
    base = template.render(history, tools=given.tools, add_generation_prompt=True, **variables)
    generated = template.generation_prompt_of(base, history, tools=given.tools, **variables)
    opened = opening(fmt, generated)
    content = final.get("content")
    begun = {"role": "assistant", "content": content if isinstance(content, str) else ""}
    thought = reasoning_of(final)
    if wanted == "reasoning":
        begun["reasoning_content"] = thought + _END
    else:
        begun |= {"content": begun["content"] + _END, "reasoning_content": thought}
    rest = text_after(fmt, opened, begun).partition(_END)[0]
    if region_after(fmt, opened + rest) != wanted:
        raise TemplateError(
            f"{template.name}: the format {fmt.name!r} cannot go on with a {wanted} that has begun"
        )
    return base + rest, opened + rest


def _after_header(
    fmt: Format, template: Template, given: Rewritten, prompt: str, variables: Mapping[str, Any]
) -> str:
    """The last message in ``prompt``: everything after its role header. Raises `TemplateError`."""
    messages, tools = given.messages, given.tools
    history: Sequence[Mapping[str, Any]] = messages[:-1]
    plain = template.render(history, tools=tools, **variables) if history else ""
    if not prompt.startswith(plain):
        raise TemplateError(
            f"{template.name}: cannot tell where message {len(messages) - 1} begins, as it changes how the "
            "messages before it are rendered; pass the prompt's end as bind(prefix=…) instead"
        )
    header = template.generation_prompt(history, tools=tools, **variables) if history else ""
    opened = opening(fmt, header)
    header = header[: len(header) - len(opened)]
    after = prompt[len(plain) :]
    return after[len(header) :] if after.startswith(header) else opening(fmt, after) or after
