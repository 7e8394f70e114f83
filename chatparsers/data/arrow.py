"""pyarrow, imported with an error that names the extra."""

from __future__ import annotations

try:
    import pyarrow
    import pyarrow.compute
    import pyarrow.ipc
    import pyarrow.parquet
except ModuleNotFoundError as error:
    if error.name != "pyarrow":
        raise
    raise ModuleNotFoundError(
        "chatparsers.data needs pyarrow: pip install 'chatparsers[data]'", name="pyarrow"
    ) from error

__all__ = ["pyarrow"]
