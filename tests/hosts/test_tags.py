"""Generation tags that the doctor writes: transformers counts, letter for letter, what our loss mask counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

import chatparsers
from chatparsers.doctor.generation import spans_of, with_tags
from chatparsers.doctor.subject import CLOCK, Subject, conversations
from chatparsers.templates.messages import shape

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
chat_templates = pytest.importorskip("transformers.utils.chat_template_utils")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
OWN = Path(__file__).parents[1] / "templates_own"


class Stopped(datetime):
    """The time of all renderings that are compared."""

    @classmethod
    def now(cls, tz: Any = None) -> Stopped:
        return cls(2024, 1, 1)


def test_transformers_counts_what_our_mask_counts(
    monkeypatch: pytest.MonkeyPatch, amount: Callable[[int, int, int], int]
) -> None:
    monkeypatch.setattr(chat_templates, "datetime", Stopped)
    letters = Tokenizer(models.WordLevel({"?": 0}, "?"))  # an id for each letter: none stands on a border
    letters.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    host = transformers.PreTrainedTokenizerFast(tokenizer_object=letters)
    host.bos_token, host.eos_token = "<s>", "</s>"
    compared = 0
    for path in sorted(OWN.glob("*.jinja"))[:: amount(16, 6, 1)]:
        chat = chatparsers.load(path, bos_token="<s>", eos_token="</s>")
        source = with_tags(chat)
        model = Subject(chat).bare
        for _, messages in conversations(model) if source else ():
            turn = chat.prepare(
                messages,
                tools=model.offered,
                add_generation_prompt=False,
                template_kwargs={"strftime_now": CLOCK},
            )
            if turn.polyfills:
                continue
            given = shape(messages, model.template.wants)
            try:
                shown = host.apply_chat_template(
                    given,
                    tools=model.offered,
                    chat_template=source,
                    return_dict=True,
                    return_assistant_tokens_mask=True,
                )
            except Exception as error:  # it has fewer filters, and refuses the template without tags as well
                with pytest.raises(type(error)):
                    host.apply_chat_template(given, tools=model.offered, chat_template=chat.template().source)
                continue
            mask = [0] * len(turn.prompt)
            for start, end in spans_of(model, messages):
                mask[start:end] = [1] * (end - start)
            assert shown["assistant_masks"] == mask, path.stem
            compared += 1
    assert compared > 5
