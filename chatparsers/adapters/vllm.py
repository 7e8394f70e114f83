"""vLLM: ``--tool-call-parser chatparsers --reasoning-parser chatparsers``.

vLLM loads `register` in each of its processes, by the entry point ``vllm.general_plugins``. So it only registers names;
what reads and writes is imported when a server asks for it (`chatparsers.adapters._vllm_parser`).

vLLM's serving layer talks to one object, a ``Parser``, and has no registry for one from outside. It makes one of two
registered halves, in ``ParserManager._compose_parser``. So two halves are registered that only carry the name, and that
method is wrapped for the name alone. If a version of vLLM has another method, everything else works as before; a server
that asks for our name gets an error that says so.
"""

from __future__ import annotations

import logging
from typing import Any

from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

from ._vllm_check import NAME, check

__all__ = ["NAME", "check", "register"]

_MODULE = "chatparsers.adapters._vllm_parser"


def register() -> None:
    """Registers the parser under `NAME`. It may be called again."""
    ToolParserManager.register_lazy_module(NAME, _MODULE, "ToolHalf")
    ReasoningParserManager.register_lazy_module(NAME, _MODULE, "ReasoningHalf")
    try:
        check()
    except ImportError as error:  # raised again when a server asks for the parser
        logging.getLogger(__name__).debug("%s", error)
        return
    compose = ParserManager._compose_parser.__func__
    if getattr(compose, NAME, False):
        return

    def _compose_parser(
        cls: Any, tool_parser_name: str | None, reasoning_parser_name: str | None, *others: Any, **named: Any
    ) -> Any:
        names = {name for name in (tool_parser_name, reasoning_parser_name) if name}
        if NAME not in names:
            return compose(cls, tool_parser_name, reasoning_parser_name, *others, **named)
        if len(names) > 1:
            raise TypeError(
                f"--tool-call-parser {tool_parser_name} and --reasoning-parser {reasoning_parser_name} cannot be "
                f"combined, because {NAME} reads both: name it in both"
            )
        from ._vllm_parser import ChatParser

        return ChatParser

    setattr(_compose_parser, NAME, True)
    ParserManager._compose_parser = classmethod(_compose_parser)
