"""The sandbox in which chat templates run: transformers' own, and what real templates need beyond it.

As in transformers: an immutable sandbox, ``trim_blocks``, ``lstrip_blocks``, loop controls, ``{% generation
%}``, the filter ``tojson`` and the functions ``raise_exception`` and ``strftime_now``. Beyond it, because
templates in use ask for it: the filter ``from_json``, ``tojson`` of iterables and of exact numbers,
``list.append`` and ``list.pop``. The last two are safe because a template only ever sees copies of what the
caller passed (see ``messages.own``). How much a template may do is in ``limits``.

Source: ``transformers.utils.chat_template_utils._compile_jinja_template``.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from .limits import current

if TYPE_CHECKING:
    import jinja2

__all__ = ["compile_source", "environment", "strftime_now"]

_KEPT = 65_536
"""The longest source, in characters, that is kept compiled; 64 of them are."""


def strftime_now(pattern: str) -> str:
    """The local time now in ``strftime`` notation; templates write dates into system texts with it."""
    current().spend(256 * len(pattern))  # a letter of it may be a whole date
    return datetime.now().strftime(pattern)


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The one environment of this process; jinja2 is imported here and nowhere earlier."""
    from .sandbox import Sandbox

    env = Sandbox()
    env.globals["strftime_now"] = strftime_now
    return env


def compile_source(source: str) -> jinja2.Template:
    """The compiled template, kept for the next call where the source is not long.

    Raises jinja2's ``TemplateSyntaxError`` for whatever cannot be compiled.
    """
    from jinja2 import TemplateSyntaxError

    most = current().limits.source
    if len(source) > most:
        raise TemplateSyntaxError(f"the template has {len(source):,} characters, more than {most:,}", 1)
    try:
        return _compiled(source) if len(source) <= _KEPT else environment().from_string(source)
    except TemplateSyntaxError:
        raise
    except RecursionError as error:
        raise TemplateSyntaxError("the template nests too deep", 1) from error
    except (
        SyntaxError
    ) as error:  # of the Python that jinja2 writes: `break` outside a loop, twenty loops in each other
        raise TemplateSyntaxError(f"the template cannot be compiled: {error.msg}", 1) from error
    except (ValueError, MemoryError, OverflowError) as error:  # a number of 5,000 digits
        raise TemplateSyntaxError(f"the template cannot be compiled: {error}", 1) from error


@lru_cache(maxsize=64)
def _compiled(source: str) -> jinja2.Template:
    return environment().from_string(source)
