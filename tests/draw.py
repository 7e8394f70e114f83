"""Which cases of a test over formats or templates run: all of what a change touches, and a share that turns with the
commit.

The share is drawn by a seed, which is the commit: the same code has the same cases, and the next commit has others.
``--draw SEED`` repeats a draw. Of a format that differs from the main branch all cases run: its module, the module on
which it is built, or its own template is another one.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar
from zlib import crc32

from chatparsers.formats import _catalog

Case = TypeVar("Case")

ROOT = Path(__file__).parents[1]
MODULES, TEMPLATES = (
    Path(_catalog.__file__).parent,
    ROOT / "tests/templates_own",
)  # an installed package is elsewhere
_PACKAGE = "chatparsers.formats."
MOST = 6
"""So many formats that differ run whole. A change of more is one of what they share: ``--whole``."""


def _git(*arguments: str) -> str:
    """What git prints; "" if there is no git or no checkout."""
    try:
        ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


class Draw(NamedTuple):
    """``seed`` draws the cases; of the formats in ``whole`` all run."""

    seed: str
    whole: tuple[str, ...]

    @classmethod
    def of_checkout(cls, seed: str | None = None) -> Draw:
        """The draw of the commit that is checked out; all sources without git have one."""
        differ = tuple(changed_formats())
        commit = _git("rev-parse", "--short=12", "HEAD") or "none"
        return cls(seed or commit, differ if len(differ) <= MOST else ())

    def __str__(self) -> str:
        whole = f"; all of {', '.join(self.whole)}, which differ" if self.whole else ""
        return f"drawn by --draw {self.seed}{whole}"

    def some(self, cases: Iterable[Case], name_of: Callable[[Case], str], number: int) -> list[Case]:
        """``number`` of the cases."""
        return sorted(cases, key=lambda case: crc32(f"{self.seed} {name_of(case)}".encode()))[:number]

    def random(self, name: str) -> Random:
        """Chance of its own for a test and its case."""
        return Random(f"{self.seed} {name}")


def changed_formats() -> list[str]:
    """The names of the formats that differ from the main branch, on it from the commit before."""
    head = _git("rev-parse", "HEAD")
    bases = (_git("merge-base", "HEAD", main) for main in ("origin/main", "main"))
    base = next(filter(None, bases), head)
    if base == head:
        base = _git("rev-parse", "HEAD^")
    listed = [_git("diff", "--name-only", "-z", base)] if base else []
    listed.append(_git("ls-files", "--others", "--exclude-standard", "-z"))
    return touched(Path(file) for file in "\0".join(listed).split("\0") if file)


def touched(files: Iterable[Path]) -> list[str]:
    """The names of the formats whose module, or a module on which it is built, or own template is one of the files.

    A private module of the formats serves too many to name them.
    """
    files = {ROOT / file for file in files}
    modules = {row[0]: row[1].partition(":")[0].removeprefix(_PACKAGE) for row in _catalog.FORMATS}
    return sorted(
        name
        for name, module in modules.items()
        if TEMPLATES / f"{name}.jinja" in files
        or any(MODULES / f"{used}.py" in files for used in _uses(module))
    )


def _uses(module: str) -> set[str]:
    """The module of a format and those on which it is built, without private ones."""
    found, waiting = set[str](), [module]
    while waiting:
        one = waiting.pop()
        if one not in found and not one.startswith("_"):
            found.add(one)
            tree = ast.parse((MODULES / f"{one}.py").read_text("utf-8"))
            waiting += [
                name.removeprefix(_PACKAGE)
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for name in (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))
                if name.startswith(_PACKAGE) and (MODULES / f"{name.removeprefix(_PACKAGE)}.py").exists()
            ]
    return found
