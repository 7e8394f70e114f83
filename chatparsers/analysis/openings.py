"""Where a generation prompt goes over from the role's header to the assistant's turn."""

from __future__ import annotations

from ..core.format import Format
from ..core.idioms import Options
from ..core.nodes import Body, Think, first, tokens, walk

__all__ = ["prompt_prefix"]


def prompt_prefix(fmt: Format, generation_prompt: str) -> str:
    """What a generation prompt already wrote of the assistant's turn: from the first marker of the format on."""
    places = [at for text in _openings(fmt) if (at := generation_prompt.find(text)) >= 0]
    return generation_prompt[min(places) :] if places else ""


def _openings(fmt: Format) -> set[str]:
    """The texts with which something of the format begins or ends."""
    tree = fmt.tree(Options(tools=True))
    found = set(tokens(tree))
    for node in walk(tree):
        spans = [node.span] if isinstance(node, Think) else []
        if isinstance(node, Body):
            spans = [span for span in (node.reasoning, node.content) if span is not None]
            if node.calls is not None:
                found.update(first(node.calls))
        for span in spans:
            found.update(first(span.open))
            found.update(first(span.close) if span.close is not None else ())
    return {text.strip() for text in found if len(text.strip()) > 2}
