"""The rooms that are read together: their size, and that the arrows between them run one way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import chatparsers

PACKAGE = Path(chatparsers.__file__).parent
CAPS = {"core": 3_600, "answers": 3_800, "parser": 600, "streams": 3_000, "watch": 700}
"""The most lines of each room."""
MAY_IMPORT = {
    "core": {"core", "errors", "kept", "lazy", "plain"},
    "answers": {"core", "answers", "schema", "values", "errors", "kept", "lazy", "public", "shown"},
    "parser": {"core", "answers", "parser", "schema", "values", "errors"},
    "streams": {
        *("core", "answers", "parser", "streams", "schema", "values"),
        *("compiled", "errors", "kept", "lazy", "plain", "public", "shown"),
    },
    "watch": {"core", "answers", "streams", "watch"},
}
MOST_OF_A_MEND = 90


def modules(room: str) -> list[Path]:
    return sorted((PACKAGE / room).rglob("*.py"))


@pytest.mark.parametrize("room", CAPS)
def test_a_room_can_be_read_together(room: str) -> None:
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in modules(room))
    assert lines <= CAPS[room], f"{room} has {lines} lines: what does not belong there?"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_what_it_stands_on(room: str) -> None:
    """Also in functions, for type checkers, and of the package as an attribute."""
    for path in modules(room):
        place = path.relative_to(PACKAGE.parent).parts[:-1]
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            targets: list[str] = []
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = ".".join(place[: len(place) - node.level + 1]) if node.level else ""
                module = ".".join(filter(None, (base, node.module)))
                targets = [f"{module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                targets = [f"{node.value.id}.{node.attr}"] if node.value.id == "chatparsers" else []
            for target in targets:
                parts = target.split(".")
                if parts[0] == "chatparsers" and len(parts) > 1:
                    typed = room == "answers" and parts[1] in ("streams", "grammar", "guide")  # signatures
                    assert parts[1] in MAY_IMPORT[room] or typed, f"{path}: {target}"


def test_a_mend_is_small() -> None:
    for path in modules("answers/mends"):
        assert len(path.read_text("utf-8").splitlines()) <= MOST_OF_A_MEND, path


def test_the_core_speaks_little_of_chats() -> None:
    """Names of the core that say what only a chat has; docs/architecture.md lists what they are for."""
    words = ("tool", "thought", "json", "argument", "message")
    found = set()
    for path in modules("core"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [getattr(node, field, None) for field in ("id", "attr", "arg", "name")]
            found |= {
                name for name in names if isinstance(name, str) and any(w in name.lower() for w in words)
            }
    assert len(found) <= 60, sorted(found)
