"""Makes the API reference from the docstrings: ``python docs/_reference.py [FOLDER]``, by default ``site/``.

It needs the extra ``docs`` (pdoc, and what the gateway and the tables need). Open ``site/index.html`` in a browser.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

ROOT = Path(__file__).resolve().parents[1]
MODULES = (
    "chatparsers",
    "chatparsers.core",
    "chatparsers.data",
    "chatparsers.serving",
    "chatparsers.gateway",
    "chatparsers.testing",
)
"""What users import; their ``__all__`` says what is shown."""


def main(folder: Path) -> int:
    pdoc.render.configure(footer_text="chatparsers", show_source=False)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # our classes say that they are of ``chatparsers``, wherever their source is
        pdoc.pdoc(*MODULES, output_directory=folder)
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    print(f"{len(pages)} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
