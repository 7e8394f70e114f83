"""``python -m chatparsers.formats [--check]``: write, or check, what is generated from the format modules."""

from __future__ import annotations

from ._generate import main

if __name__ == "__main__":
    raise SystemExit(main())
