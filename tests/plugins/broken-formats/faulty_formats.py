"""Imports, but its hooks fail, return a wrong value, or do not exist."""

from __future__ import annotations


def chatparsers_register_formats() -> list[object]:
    return ["not a reference"]


def chatparsers_detect(template: str) -> str | None:
    raise ValueError("no idea")


def chatparsers_register_format() -> None:
    """A hook's name misspelt."""
