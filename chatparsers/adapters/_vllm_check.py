"""The name of our parser in vLLM, and whether this version of vLLM composes its parsers as the adapter expects."""

from __future__ import annotations

from vllm import __version__
from vllm.parser.parser_manager import ParserManager

from ._check import check_parameters

__all__ = ["NAME", "check"]

NAME = "chatparsers"
_PARAMETERS = ("cls", "tool_parser_name", "reasoning_parser_name", "enable_auto_tools")


def check() -> None:
    """Raises ImportError, which names the version, if this vLLM composes its parsers in another way."""
    compose = getattr(ParserManager, "_compose_parser", None)
    function = getattr(compose, "__func__", None)
    if function is None:
        raise ImportError(
            f"vLLM {__version__}: vllm.parser.parser_manager.ParserManager has no _compose_parser"
        )
    if not getattr(function, NAME, False):
        check_parameters(function, _PARAMETERS, f"vLLM {__version__}")
