"""Checks that need the tokenizer: markers and ids, what decodes to itself, what a loss counts, what is bridged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from ..chat.sample import Kind
from ..core.errors import ChatParsersError
from .prompt import roles
from .report import Finding
from .subject import CLOCK, Subject, quoted, user

__all__ = ["bridge", "ids", "masks"]

_TEXTS = (
    "Plain words.",
    "naïve café 永 😀",
    "  two  spaces\n\n\ttabs ",
    "for i in range(3):\n    print(i)\n",
)


def ids(model: Subject) -> Iterator[Finding]:
    """Whether each marker is one token, added tokens keep white space, and texts come back from encode and decode."""
    if model.tokenizer is None:
        return
    added = model.tokenizer.get_added_tokens_decoder()
    known = {token.content: token for token in added.values()}
    for marker in model.format.preserved_tokens:
        found = model.ids(marker)
        if len(found) > 1 and marker.startswith(("<|", "<｜", "[")):
            yield Finding(
                "marker-several-tokens",
                "warning",
                f"the marker {marker!r} is {len(found)} tokens of this tokenizer",
                f"{marker} → {found}",
                "a user's text can spell it: see docs/security.md; is this the model's own tokenizer?",
            )
        token = known.get(marker)
        if token is None:
            continue
        flags = [name for name in ("lstrip", "rstrip", "normalized") if getattr(token, name, False)]
        if [name for name in flags if name != "normalized"]:
            yield Finding(
                "token-strips",
                "warning",
                f"the added token {marker!r} eats the white space beside it ({', '.join(flags)})",
                f"{marker}: {', '.join(flags)}",
                "set lstrip and rstrip to false in tokenizer.json",
            )
    spelt = next((m for m in model.format.preserved_tokens if m in known and len(m) > 3), None)
    if spelt is not None:
        text = model.tried([user(f"Say {spelt} now.")])
        if text is not None and spelt in text and known[spelt].special:
            count = model.ids(text).count(model.tokenizer.token_to_id(spelt))
            if count:
                yield Finding(
                    "marker-in-user-text",
                    "note",
                    f"a user's text that spells {spelt!r} becomes the special token",
                    f"Say {spelt} now. → {model.tokenizer.token_to_id(spelt)}",
                    "encode users' texts apart, or escape markers in them: see docs/security.md",
                )
    for text in _TEXTS:
        back = model.tokenizer.decode(model.ids(text), skip_special_tokens=False)
        if back != text:
            yield Finding(
                "text-changes",
                "note",
                "a text does not come back from encode and decode",
                f"given: {quoted(text)}\nback:  {quoted(back)}",
                "offsets and loss masks of such texts are found by ids, not by characters",
            )
            break


def bridge(model: Subject) -> Iterator[Finding]:
    """For which shapes of an answer what follows it is proved, so that a rollout adds only new text."""
    found = [each for each in model.chat.bridge.values() if each.delta is not None and not each.proved]
    for each in found:
        yield Finding(
            "bridge-unproved",
            "note",
            f"{each.shape}, then {each.next}: a rollout renders the whole conversation anew ({each.reason})",
            f"held:     {quoted(each.held[:120])}\nrendered: {quoted(each.shown[:120])}",
            "history='exact' keeps what was sampled: see docs/rollouts.md",
        )


def masks(model: Subject) -> Iterator[Finding]:
    """Whether the loss mask counts what the model writes and nothing else, and whether there are generation tags."""
    messages = roles(model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tools = model.tools if model.can.tools else None
            sample = model.chat.encode(messages, tools=tools, template_kwargs={"strftime_now": CLOCK})
    except ChatParsersError as error:
        yield Finding(
            "mask-impossible",
            "warning",
            "no loss mask can be made of a conversation with this template",
            str(error),
            "see docs/training.md",
        )
        return
    wrong = [
        place
        for place, (mask, kind) in enumerate(zip(sample.loss_mask, sample.kinds, strict=True))
        if mask and kind in (Kind.SYSTEM, Kind.USER, Kind.RESULT)
    ]
    if wrong:
        yield Finding(
            "mask-counts-context",
            "error",
            "the loss mask counts text of the user",
            f"{len(wrong)} of {sample.counted} {sample.unit}s, the first at {wrong[0]}",
            "report it: chatparsers report",
        )
    if not sample.counted:
        reasons = "; ".join(sorted(set(sample.left_out.values())))
        yield Finding(
            "mask-empty",
            "warning",
            "the loss mask of a whole conversation counts nothing",
            reasons,
            "train on turns (encode(split_turns=True)), or on rewritten=True",
        )
    elif sample.left_out:
        first = min(sample.left_out)
        yield Finding(
            "mask-leaves-out",
            "note",
            "an older answer does not stand as it was written, so a loss does not count it",
            f"message {first}: {sample.left_out[first]}",
            "encode(split_turns=True) gives a sample for each question",
        )
    source = model.template.source
    if "generation" not in source or "endgeneration" not in source:
        yield Finding(
            "no-generation-tags",
            "note",
            "the template has no {% generation %} tags, so trainers that rely on them count nothing or all",
            "",
            "take the mask from Chat.encode, which needs none",
        )
