"""SGLang: ``--tool-call-parser chatparsers --reasoning-parser chatparsers``.

SGLang loads `register` in each of its processes, by the entry point ``sglang.srt.plugins``, before it reads its
arguments. There is no registry: the tables of parsers are written to. If a version of SGLang has no such tables, only a
server that asks for our name notices.

``--grammar-backend chatparsers`` is registered too: see `chatparsers.adapters._sglang_guide`. The halves themselves are
in `chatparsers.adapters._sglang_halves`. SGLang's tables hold classes, so `register` imports them with the modules that
hold the tables.
"""

from __future__ import annotations

import logging
from typing import Any

from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.version import __version__

__all__ = ["NAME", "register"]

NAME = "chatparsers"


def register() -> None:
    """Puts both halves and the backend for grammars into SGLang's tables under `NAME`. It may be called again."""
    tools = getattr(FunctionCallParser, "ToolCallParserEnum", None)
    reasoning = getattr(ReasoningParser, "DetectorMap", None)
    try:
        if not isinstance(tools, dict) or not isinstance(reasoning, dict):
            raise ImportError(
                "FunctionCallParser.ToolCallParserEnum and ReasoningParser.DetectorMap are no dicts"
            )
        from ._sglang_halves import ReasoningHalf, ToolHalf
    except ImportError as error:  # other parsers must not suffer
        logging.getLogger(__name__).error(
            "SGLang %s: --tool-call-parser %s is not there: %s: use a version that `python -m chatparsers.adapters` "
            "names as tested",
            __version__,
            NAME,
            error,
        )
        return
    tools[NAME] = ToolHalf
    reasoning[NAME] = ReasoningHalf
    _register_backend()


def _register_backend() -> None:
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend

    register_grammar_backend(NAME, _backend)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])


def _backend(*made: Any) -> Any:
    """The backend for grammars; what it needs is imported when a server asks for it."""
    from ._sglang_guide import create

    return create(*made)
