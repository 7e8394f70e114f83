"""The record of what a model's files say, for every kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..kept import cached
from ..lazy import installed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_ReadTokenizer: TypeAlias = "Callable[[], Tokenizer | None]"


def no_tokenizer() -> None:
    """Reads the tokenizer of files that have no tokenizer: returns None."""
    return None


@dataclass(frozen=True)
class ModelFiles:
    """What a model's files say about its chat format."""

    source: Path
    """The file or folder that was read."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """The chat templates by name: ``default``, and others such as ``tool_use``; empty if there is none."""
    bos_token: str | None = None
    eos_token: str | None = None
    eos_ids: tuple[int, ...] = ()
    """Every id that ends generation, as the configuration lists them."""
    ends: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    """What each file, or field of a ``.gguf``, names as an end: a token's text, or ids."""
    special_tokens: Mapping[str, Any] = field(default_factory=dict)
    """The named special tokens, role to text: ``bos_token``, …; several texts for extra ones."""
    special_ids: Mapping[str, int] = field(default_factory=dict)
    """The ids that the configuration gives to roles, such as ``bos_token_id``."""
    names: tuple[str, ...] = ()
    """Possible names of the model, the most telling first: its name, its folder, its architecture."""
    response_template: Mapping[str, Any] | None = None
    """The ``response_template`` of transformers, which says how a message is cut out of the model's text."""
    unknown_pre: str | None = None
    """A pre-tokenizer of a ``.gguf`` that is not known: the tokenizer decodes ids, but its ids of texts may differ from
    the model's."""
    _read_tokenizer: _ReadTokenizer = field(default=no_tokenizer, repr=False, compare=False)

    @cached
    def tokenizer(self) -> Tokenizer | None:
        """The model's ``tokenizers.Tokenizer``, loaded at the first use; None if the files have no tokenizer.

        Also None where ``tokenizers`` is not installed: some interpreters have no wheel of it. Text is read there all
        the same, and whoever needs ids says what to install. Raises LoadError if it is broken or of an unknown kind.
        """
        return self._read_tokenizer() if installed("tokenizers") else None

    def template_name(self, tools: bool = True) -> str | None:
        """The name of the chat template: ``tool_use`` for requests with ``tools``, if there is one, else ``default``,
        else the first; None if there is none."""
        for name in ("tool_use", "default") if tools else ("default",):
            if name in self.templates:
                return name
        return next(iter(self.templates), None)

    @property
    def special_config(self) -> dict[str, Any]:
        """The ``config`` for ``SpecialTokens.from_tokenizer``."""
        ends: dict[str, Any] = {"eos_token_id": list(self.eos_ids)} if self.eos_ids else {}
        return {**self.special_tokens, **self.special_ids, **ends}
