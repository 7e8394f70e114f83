"""A format and a template of its family."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..answers.format import Format
from ..errors import TemplateError
from ..templates import Template


@dataclass(frozen=True)
class Entry:
    """A format and a template of its family.

    ``eos``, ``bos``: the texts that the template writes for them. None: the first stop, or ``""`` where the template
    writes that by itself. ``real``: a model's own template, not one made for tests.
    """

    format: Format
    path: Path
    eos: str | None = None
    bos: str = ""
    real: bool = False

    @property
    def key(self) -> str:
        """The format's name and the template's."""
        return f"{self.format.name} {self.path.name}"

    def template(self) -> Template:
        """The template, read once."""
        return _template(self.path, self.bos, self.eos_token)

    @property
    def eos_token(self) -> str:
        """The text that the template gets for the end of a turn."""
        if self.eos is not None:
            return self.eos
        usual = self.format.stops[0].strip() if self.format.stops else ""
        return "" if usual and _writes_twice(self.path, self.bos, usual) else usual


@lru_cache(maxsize=64)
def _template(path: Path, bos: str, eos: str) -> Template:
    return Template(path.read_text(encoding="utf-8"), bos_token=bos, eos_token=eos, name=path.name)


@lru_cache(maxsize=256)
def _writes_twice(path: Path, bos: str, eos: str) -> bool:
    """Whether the template ends a turn with this text and with its ``eos_token``."""
    said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    try:
        text = _template(path, bos, eos).render(said)
    except TemplateError:
        return False
    return re.search(rf"{re.escape(eos)}\s*{re.escape(eos)}", text) is not None
