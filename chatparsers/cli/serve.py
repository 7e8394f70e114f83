"""``chatparsers serve``: an HTTP server with three chat APIs over an engine that only completes text."""

from __future__ import annotations

from argparse import Namespace

from ..lazy import load_reference
from .files import Refused

_SERVE = "chatparsers.operate.serve:run"
_PACKAGES = ("anyio", "httpx2", "prometheus_client", "starlette", "tomli", "tomli_w", "uvicorn")


def run(arguments: Namespace) -> int:
    """Serves until it is interrupted. Raises `Refused` if the packages of the gateway are not installed."""
    try:
        serve = load_reference(_SERVE)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        raise Refused(
            f"serve needs {package}, which is not installed: pip install 'chatparsers[gateway]'"
        ) from error
    status: int = serve(arguments)
    return status
