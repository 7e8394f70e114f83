"""``continue_final_message``: a rendering that ends inside the last message, so that the model continues it.

As in transformers, a tag is added to the message's text, the whole conversation is rendered, and the rendering is cut
at the tag. The tag ends in a space. If that space is gone, the template strips its texts, so the cut text is stripped
too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import TemplateError
from ..jinja.failure import place
from ..messages import reasoning_of

_TAG = "continuefinalmessage "


def check_final(messages: Sequence[Mapping[str, Any]], name: str) -> None:
    """Raises `TemplateError` if the last message cannot be continued."""
    final = messages[-1] if messages else {}
    role = final.get("role") if isinstance(final, Mapping) else None
    if role != "assistant" or final.get("tool_calls"):
        found = (
            "no message" if not messages else "tool calls" if role == "assistant" else f"the role {role!r}"
        )
        raise TemplateError(
            f"{place(name, index=len(messages) - 1 if messages else None)}: continue_final_message expected an "
            f"assistant message without tool calls at the end, found {found} "
            "(add_generation_prompt starts a new turn)"
        )


def tagged(messages: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """The messages with the tag after the final message's content, or after its reasoning if it has no content."""
    check_final(messages, name)
    final = messages[-1]
    content: Any = final.get("content")
    reasoning = reasoning_of(final)
    last = content[-1] if isinstance(content, list) and content else None
    out = {key: value for key, value in final.items() if key not in ("reasoning", "thinking")}
    out["reasoning_content"] = reasoning
    if isinstance(last, Mapping) and isinstance(last.get("text"), str):
        out["content"] = [*content[:-1], {**last, "text": last["text"] + _TAG}]
    elif reasoning and not content:
        out["reasoning_content"] = reasoning + _TAG
    else:
        out["content"] = (content if isinstance(content, str) else "") + _TAG
    return [*messages[:-1], out]


def cut_at_tag(text: str, name: str, index: int) -> str:
    """The rendering up to the tag of ``messages[index]``. Raises ``TemplateError`` if the template dropped the tag."""
    at = text.rfind(_TAG.strip())
    if at < 0:
        raise TemplateError(
            f"{place(name, index=index)}: continue_final_message expected the final message's text in the "
            "rendering, found that the template drops it (put what is to be continued into its content)"
        )
    return text[:at] if text.startswith(_TAG, at) else text[:at].rstrip()
