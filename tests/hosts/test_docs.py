"""The pages of the hosts: their examples run where the host is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from chatparsers.adapters import Host, hosts

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("host", hosts(), ids=lambda host: host.name)
@pytest.mark.nightly
def test_examples_run_where_the_host_is(host: Host) -> None:
    page = ROOT / "docs" / "hosts" / f"{host.name}.md"
    wanted = len(re.findall(r"^<!-- run -->$", page.read_text(encoding="utf-8"), re.M))
    if not wanted:
        pytest.skip("the page's commands start a server, which needs a GPU")
    if not host.importable or host.version is None:
        pytest.skip(f"{host.name} is not installed: tests/hosts/install {host.name}")
    if host.name == "transformers" and find_spec("torch") is None:
        pytest.skip("transformers is another host's here, without torch: tests/hosts/install transformers")
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    command = [sys.executable, str(ROOT / "docs" / "_examples.py"), str(page)]
    done = subprocess.run(command, env=given, capture_output=True, text=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr + done.stdout
    assert f"{page.name}: {wanted} examples run" in done.stdout
