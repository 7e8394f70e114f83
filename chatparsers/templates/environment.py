"""The sandbox in which chat templates run: transformers' own, and what real templates need beyond it.

As in transformers: an immutable sandbox, ``trim_blocks``, ``lstrip_blocks``, loop controls, ``{% generation
%}``, the filter ``tojson`` and the functions ``raise_exception`` and ``strftime_now``. Beyond it, because
templates in use ask for it: the filter ``from_json``, ``tojson`` of iterables and of exact numbers,
``list.append`` and ``list.pop``. The last two are safe because a template only ever sees copies of what the
caller passed (see ``messages.own``).

Source: ``transformers.utils.chat_template_utils._compile_jinja_template``.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from .exact import from_json, to_json

if TYPE_CHECKING:
    import jinja2

__all__ = ["compile_source", "environment", "strftime_now"]

_LIST_METHODS = frozenset({"append", "pop"})


def strftime_now(pattern: str) -> str:
    """The local time now in ``strftime`` notation; templates write dates into system texts with it."""
    return datetime.now().strftime(pattern)


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The one environment of this process; jinja2 is imported here and nowhere earlier."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, LoopControlExtension
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """``{% generation %}…{% endgeneration %}``: what a trainer masks; here it passes through."""

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(
                line
            )

    Generation.tags = {"generation"}

    class Sandbox(ImmutableSandboxedEnvironment):
        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            if type(obj) is list and attr in _LIST_METHODS:
                return True
            return super().is_safe_attribute(obj, attr, value)

    def raise_exception(message: str) -> NoReturn:
        raise TemplateError(message)

    env = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, LoopControlExtension])
    env.filters["tojson"] = to_json
    env.filters["from_json"] = from_json
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


@lru_cache(maxsize=64)
def compile_source(source: str) -> jinja2.Template:
    """The compiled template; raises jinja2's ``TemplateSyntaxError``."""
    return environment().from_string(source)
