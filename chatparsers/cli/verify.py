"""``chatparsers verify``: what is wrong in the answers of a chat server, and whose fault it is."""

from __future__ import annotations

from argparse import Namespace

from ..lazy import load_reference
from .files import Refused

_VERIFY = "chatparsers.verify.command:run_command"
_PACKAGES = ("httpx2", "jsonschema")


def run(arguments: Namespace) -> int:
    """Asks and reports. Returns 0 if nothing is to the server's charge, 1 if something is, 2 if nothing could be
    judged. Raises `Refused` if the packages are not installed."""
    try:
        verify = load_reference(_VERIFY)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        raise Refused(
            f"verify needs {package}, which is not installed: pip install 'chatparsers[verify]'"
        ) from error
    status: int = verify(arguments)
    return status
