"""A model's ``response_template``, written for its folder and proved on the turns that its chat template renders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..chat.chat import Chat
from ..detection.contest import reads
from ..errors import RequestError
from ..tokens.files import read_text
from .document import probes
from .mend import Mend
from .stops import folder_of

if TYPE_CHECKING:
    from ..interop import Readers

_FILE = "tokenizer_config.json"


def response_template_mend(
    chat: Chat, for_: Readers, others: Sequence[Mend] = ()
) -> tuple[Mend, tuple[str, ...]]:
    """``tokenizer_config.json`` with a ``response_template`` for these readers, and what that loses, a line each.
    ``others``: the mends before it.

    Raises `RequestError` if the model has one, or no such file, or if the template would not read back each turn that
    the chat template renders.
    """
    from ..interop import read_response_template

    folder = folder_of(chat.files)
    if folder is None or not (folder / _FILE).is_file():
        raise RequestError(
            f"{chat.name}: expected a model's folder with {_FILE}, which holds a response_template"
        )
    if chat.files.response_template is not None:
        raise RequestError(f"{chat.name}: it has a response_template; take it out first")
    written = chat.response_template(for_=for_)
    read = read_response_template(written.spec, stops=chat.format.stops)
    turns = probes(chat)
    lost = [turn.what for turn in turns if not reads(read, turn)]
    if lost:
        why = "; ".join(written.lost)
        raise RequestError(
            f"{chat.name}: no response_template is written, as it would read otherwise: {', '.join(lost)} ({why})"
        )
    mended = [mend.text for mend in others if mend.file == _FILE]
    before = mended[-1] if mended else read_text(folder / _FILE)
    reason = f"a response_template, proved on {len(turns)} turns: {', '.join(turn.what for turn in turns)}"
    return Mend("response-template", reason, _FILE, before, _with(before, written.spec)), written.lost


def _with(text: str, spec: dict[str, object]) -> str:
    """The text of a JSON object with one key more at its end; the rest of it stays as it is."""
    inside = text.rstrip()[:-1].rstrip()
    added = json.dumps({"response_template": spec}, indent=2, ensure_ascii=False)[1:]
    return f"{inside}{'' if inside.endswith('{') else ','}{added}\n"
