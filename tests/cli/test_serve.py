"""``chatparsers serve`` where the packages of the gateway are not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["uvicorn", "starlette", "httpx2"])
@pytest.mark.nightly
def test_a_missing_package_is_named_with_what_to_install(package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "for other in ('anyio', 'uvicorn', 'starlette', 'httpx2'):\n"
        "    try: __import__(other)\n"
        "    except ModuleNotFoundError as error:\n"
        f"        if error.name != {package!r}: sys.exit(99)\n"
        "from chatparsers.cli.main import main\n"
        "sys.exit(main(['serve', '--upstream', 'http://127.0.0.1:9']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    if done.returncode == 99:
        pytest.skip("the other packages of the gateway are not installed")
    assert done.returncode == 2
    wanted = (
        f"chatparsers: serve needs {package}, which is not installed: pip install 'chatparsers[gateway]'\n"
    )
    assert done.stderr == wanted
