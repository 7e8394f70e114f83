"""A judge of chat servers: asks one, reads the raw text of the same requests again, and says what is wrong, with a
witness, and whose fault it is.

    verdict = chatparsers.verify("http://127.0.0.1:8080", "model/")
    verdict.rows, verdict.facts, bool(verdict)

The package is the function: `chatparsers.verify` is called, and its names are imported from it. A package's name
belongs to its module as soon as anything imports it, so a function of this name would be lost then.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..lazy import lazy_names, load_reference

if TYPE_CHECKING:
    from .client import VerifyError
    from .rows import Row
    from .run import verify as verify
    from .verdict import Verdict

__all__ = ["Row", "Verdict", "VerifyError"]

__getattr__ = lazy_names(__name__, {"Row": "rows", "Verdict": "verdict", "VerifyError": "client"})


class _Callable(ModuleType):
    def __call__(self, url: str, model: Any, **options: Any) -> Verdict:
        verdict: Verdict = load_reference("chatparsers.verify.run:verify")(url, model, **options)
        return verdict


sys.modules[__name__].__class__ = _Callable
