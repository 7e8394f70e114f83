"""Builds the site: ``python docs/_site``. It writes ``site/``, or says what is wrong and returns 1.

It needs the extra ``site``. Its pages are those of ``docs/`` and the generated ones, put together in ``build/docs``.
The result is a folder of static pages: open ``site/index.html``, or serve it with ``python -m http.server -d site``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from check import faults
from pages import ROOT, as_text
from stage import stage


def main() -> int:
    """Builds and checks. The exit status is 0, 1 for a fault of a page, or the generator's own."""
    staged, site = ROOT / "build" / "docs", ROOT / "site"
    for folder in (staged, site):
        shutil.rmtree(folder, ignore_errors=True)
    problems = stage(staged)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if status := subprocess.run(command, cwd=ROOT, check=False).returncode:
        return status
    for page in staged.rglob("*.md"):  # llms.txt names these
        text = as_text(page.read_text(encoding="utf-8"))
        (site / page.relative_to(staged)).write_text(text, encoding="utf-8", newline="\n")
    found = faults(site)
    for fault in found:
        print(fault, file=sys.stderr)
    print(f"{sum(1 for _ in site.rglob('*.html'))} pages in {site}, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
