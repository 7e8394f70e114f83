"""Prints the hosts: ``python -m chatparsers.adapters``."""

from __future__ import annotations

from . import hosts


def main() -> None:
    """Prints a line for each host: its adapter, the version that is installed, and the one that was tested."""
    rows = [("host", "adapter", "installed", "tested")]
    rows += [(host.name, host.adapter, host.version or "-", host.tested) for host in hosts()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
