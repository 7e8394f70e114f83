"""The templates of this package, for models that come without one: small Jinja files, a name each.

They write roles, results and thoughts as their models read them. Tools and calls are left to the polyfills, which
take them from the format's own definition, so no syntax of calls is spelt a second time here. Some families mark
the parts of an answer one by one; their templates write the calls as well.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..errors import LoadError, did_you_mean

NAMED = "named by the caller"
"""Why a built-in template is the one."""
UNKNOWN = "chatml"
"""The template for an unknown model."""

_FOLDER = Path(__file__).with_name("builtin")
_SUFFIX = ".jinja"
_LONGEST_NAME = 80


@cache
def builtin_names() -> tuple[str, ...]:
    """The names of the built-in templates, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.iterdir() if file.suffix == _SUFFIX))


def builtin_source(name: str) -> str:
    """The text of a built-in template. Raises `LoadError` for an unknown name."""
    key = name.strip().lower().replace("_", "-")
    if key not in builtin_names():
        if len(name) > _LONGEST_NAME or not name.isprintable():
            raise LoadError(
                f"template: expected the name of a built-in template, found a text of {len(name):,} characters "
                "(a template's own text is the first argument of load)"
            )
        raise LoadError(f"no built-in template is named {name!r}: {did_you_mean(key, builtin_names())}")
    return (_FOLDER / f"{key}{_SUFFIX}").read_text(encoding="utf-8")


def builtin_named(source: str) -> str | None:
    """The name of the built-in template whose text ``source`` is, or None."""
    return _names().get(source.strip())


@cache
def _names() -> dict[str, str]:
    return {builtin_source(name).strip(): name for name in builtin_names()}
