"""Adapters: the parser and the grammar inside hosts that run models.

One module for each host; it imports the host at its top, and nothing else imports the module. `hosts` says which hosts
are installed and which versions were tested; ``python -m chatparsers.adapters`` prints that.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

__all__ = ["Host", "hosts"]


@dataclass(frozen=True, slots=True)
class Host:
    """A host: the name of its package, its module, our adapter's module, and the version that was tested."""

    name: str
    module: str
    adapter: str
    tested: str

    @property
    def importable(self) -> bool:
        """Whether the host's module is there. It is not imported."""
        return find_spec(self.module) is not None

    @property
    def version(self) -> str | None:
        """The version that is installed; None if there is none."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return None


_HOSTS = (
    Host("llama-cpp-python", "llama_cpp", "chatparsers.adapters.llama_cpp", "0.3.36"),
    Host("mlx-lm", "mlx_lm", "chatparsers.adapters.mlx_lm", "0.32.2"),
    Host("sglang", "sglang", "chatparsers.adapters.sglang", "0.5.23"),
    Host("transformers", "transformers", "chatparsers.adapters.transformers", "5.23.0"),
    Host("vllm", "vllm", "chatparsers.adapters.vllm", "0.33.0"),
)


def hosts() -> tuple[Host, ...]:
    """All hosts that have an adapter."""
    return _HOSTS
