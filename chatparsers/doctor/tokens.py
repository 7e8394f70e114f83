"""The check of ids: what this tokenizer makes of the format's markers, of texts, and of a user who writes a marker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .report import Fact, Finding
from .subject import Subject, quoted, user

_TEXTS = (
    "Plain words.",
    "naïve café 永 😀",
    "  two  spaces\n\n\ttabs ",
    "for i in range(3):\n    print(i)\n",
)
_FLAGS = ("lstrip", "rstrip", "single_word")


def ids(model: Subject) -> Iterator[Finding | Fact]:
    """Whether each marker is one token, added tokens keep white space, and texts come back from encode and decode."""
    if model.tokenizer is None:
        return
    added = {token.content: token for token in model.tokenizer.get_added_tokens_decoder().values()}
    markers = dict.fromkeys([*model.format.preserved_tokens, *model.format.stops])
    whole = [marker for marker in markers if len(model.ids(marker)) == 1]
    yield Fact(f"{len(whole)} of {len(markers)} markers are one token")
    # The check of ends looks at these.
    ends = {stop.strip() for stop in model.template.end_of_turn(model.format)}
    spelt = [marker for marker in markers if marker not in whole and marker.strip() not in ends]
    yield from _spelt(model, spelt, few=bool(whole))
    for marker in whole:
        if marker in added:
            yield from _beside(model, marker, added[marker])
    yield from _by_users(model, [marker for marker in whole if marker in added])
    for text in _TEXTS:
        back = _back(model, text)
        if back != text:
            yield Finding(
                "text-changes",
                "note",
                "a text does not come back from encode and decode",
                f"given: {quoted(text)}\nback:  {quoted(back)}",
                "offsets and loss masks of such texts are found by ids, not by characters",
            )
            break


def _spelt(model: Subject, markers: list[str], *, few: bool) -> Iterator[Finding]:
    """Markers that are several tokens, and markers that this tokenizer cannot spell at all."""
    missing = [marker for marker in markers if marker not in _back(model, marker)]
    for marker in missing:
        yield Finding(
            "marker-missing",
            "error",
            f"this tokenizer cannot spell the marker {marker!r}",
            f"{marker} → {model.ids(marker)} → {quoted(_back(model, marker))}",
            "is it the model's own tokenizer?",
        )
    several = [marker for marker in markers if marker not in missing]
    if several:
        yield Finding(
            "marker-several-tokens",
            "warning" if few else "note",  # of a format without special tokens, it is the rule
            f"{len(several)} markers are several tokens of this tokenizer, such as {several[0]!r}",
            "\n".join(f"{marker} → {model.ids(marker)}" for marker in several),
            "a user's text can spell them: see docs/security.md; is this the model's own tokenizer?",
        )


def _beside(model: Subject, marker: str, token: Any) -> Iterator[Finding]:
    """What an added token does to the text around it."""
    flags = [name for name in _FLAGS if getattr(token, name, False)]
    text = f"one {marker} two"
    if flags:
        yield Finding(
            "token-strips",
            "warning",
            f"the added token {marker!r} has {' and '.join(flags)}, so the text beside it is read in another way",
            f"{quoted(text)} → {quoted(_back(model, text))}",
            "set lstrip, rstrip and single_word to false in tokenizer.json",
        )
    normalizer = getattr(model.tokenizer, "normalizer", None)
    if getattr(token, "normalized", False) and normalizer is not None:
        wide = marker.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
        id = model.tokenizer.token_to_id(marker)
        for other in (normalizer.normalize_str(marker), marker.upper(), marker.lower(), wide):
            if other != marker and id in model.ids(other):
                yield Finding(
                    "token-normalized",
                    "warning",
                    f"the added token {marker!r} is normalized, so other texts become it too",
                    f"{quoted(marker)} and {quoted(other)} → {id}",
                    "set normalized to false in tokenizer.json",
                )
                return


def _by_users(model: Subject, markers: list[str]) -> Iterator[Finding]:
    """Markers that become special tokens where a user writes them."""
    found = []
    for marker in markers:
        text = model.tried([user(f"Say {marker} now.")])
        plain = model.tried([user("Say  now.")])
        if text is not None and plain is not None and marker in text:
            id = model.tokenizer.token_to_id(marker)
            if model.ids(text).count(id) > model.ids(plain).count(id):
                found.append((marker, id))
    if found:
        yield Finding(
            "marker-in-user-text",
            "note",
            f"a user's text that spells {found[0][0]!r} becomes the special token",
            "\n".join(f"{marker} → {id}" for marker, id in found),
            "encode users' texts apart, or escape markers in them: see docs/security.md",
        )


def _back(model: Subject, text: str) -> str:
    back: str = model.tokenizer.decode(model.ids(text), skip_special_tokens=False)
    return back
