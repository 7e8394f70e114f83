"""An extension of griffe: a public name in backticks is a link, and an example is code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from griffe import Attribute, Class, Extension, Function, Object

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from public import anchors

_NAME = re.compile(r"(?<!`)`(?P<name>[A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
_EXAMPLE = re.compile(r"^>>> .*\n(?:.+\n)*", re.MULTILINE)


class Docstrings(Extension):
    """Links names, and makes code blocks of examples that begin with ``>>>``."""

    def __init__(self) -> None:
        self.anchors = anchors()

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Called for each object of the sources."""
        if obj.docstring is None:
            return
        text = obj.docstring.value + "\n"
        parts: list[str] = []
        at = 0
        for example in _EXAMPLE.finditer(text):
            parts += [self._linked(text[at : example.start()]), f"```pycon\n{example[0]}```\n"]
            at = example.end()
        obj.docstring.value = "".join([*parts, self._linked(text[at:])])

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Called for each class: what ``@cached`` decorates is a property."""
        for name, member in list(cls.members.items()):
            if isinstance(member, Function) and any(
                str(each.value) == "cached" for each in member.decorators
            ):
                shown = Attribute(name, annotation=member.returns, docstring=member.docstring, parent=cls)
                shown.labels |= {"property"}
                cls.members[name] = shown

    def _linked(self, text: str) -> str:
        lines = text.split("\n")
        return "\n".join(line if line.startswith("    ") else _NAME.sub(self._link, line) for line in lines)

    def _link(self, found: re.Match[str]) -> str:
        anchor = self.anchors.get(found["name"].removeprefix("chatparsers."))
        return f"[{found[0]}][{anchor}]" if anchor else found[0]
