"""The error of a document: where it is wrong, what was expected, what was found, and what to do."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ..errors import DefinitionError
from ..plain import one_line


def refuse(at: str, expected: str, found: Any, mend: str = "") -> NoReturn:
    """Raises `DefinitionError` for what is at ``at``, a JSON path."""
    raise DefinitionError(f"{at}: expected {expected}, found {shown(found)}" + (f"; {mend}" if mend else ""))


def shown(found: Any) -> str:
    """A value of a stranger's document, shortened, in one line."""
    if isinstance(found, dict):
        return "an object with " + (
            ", ".join(one_line(repr(key), 40) for key in list(found)[:4]) or "no keys"
        )
    if isinstance(found, list):
        return f"a list of {len(found)}"
    if found is None or isinstance(found, (bool, int, float)):
        return one_line(json.dumps(found), 40)
    return one_line(repr(found), 60)


def below(at: str, key: str | int) -> str:
    """The path of what is there under ``key``."""
    return f"{at}[{key}]" if isinstance(key, int) else f"{at}.{one_line(key, 40)}"
