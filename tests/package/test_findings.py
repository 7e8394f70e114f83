"""The scripts of findings/: each is listed with its seconds, says what it must, and pins all that it installs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FINDINGS = Path(__file__).resolve().parents[2] / "findings"
SCRIPTS = sorted(FINDINGS.glob("*.sh"))

pytestmark = pytest.mark.skipif(not SCRIPTS, reason="findings/ is not part of a distribution")


def test_each_script_is_listed_once_with_its_seconds() -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(\1\.sh\) \| .+ \| (\d+) \|$", (FINDINGS / "README.md").read_text("utf-8"), re.M
    )
    assert sorted(name for name, _ in rows) == [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_says_what_is_seen_and_pins_what_it_installs(script: Path) -> None:
    text = script.read_text("utf-8")
    head = text.split("\nset -eu\n")[0]
    assert "# Seen:\n#   " in head and "# Who meets it: " in head
    installs = re.findall(r"(?:--no-deps|--save-exact)(?: |\\\n)+((?:[^\n]*\\\n)*[^\n]*)\n", text)
    assert installs
    for package in (word for line in installs for word in line.replace("\\\n", " ").split()):
        assert re.fullmatch(r"[\w.-]+==[\w.]+|@?[\w./-]+@\d[\w.]*", package), package
    assert len(re.findall(r"pip install|npm install", text)) == len(installs)
    assert "import chatparsers" not in text
