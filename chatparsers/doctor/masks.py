"""The checks of training: what a loss counts, whether the generation tags say the same, and which steps are bridged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..chat.sample import Kind, Sample
from ..errors import ChatParsersError
from ..templates.probe.turns import common
from .generation import loud, marked, spans_of, tagged
from .report import Fact, Finding
from .subject import Messages, Subject, conversations, excerpt, quoted, sampled

_CONTEXT = (Kind.SYSTEM, Kind.USER, Kind.RESULT)


def bridge(model: Subject) -> Iterator[Finding | Fact]:
    """For which shapes of an answer what follows it is proved, so that a rollout adds only new text."""
    all_of_them = [each for each in model.chat.bridge.values() if each.delta is not None]
    unproved = [each for each in all_of_them if not each.proved]
    if unproved:
        yield Finding(
            "bridge-unproved",
            "note",
            f"at {len(unproved)} of {len(all_of_them)} steps a rollout renders the whole conversation anew",
            "\n".join(
                f"{each.shape}, then {each.next} ({each.reason}): held {quoted(each.held[:60])}, "
                f"rendered {quoted(each.shown[:60])}"
                for each in unproved
            ),
            "history='exact' keeps what was sampled: see docs/rollouts.md",
        )
    yield Fact(f"{len(all_of_them) - len(unproved)} of {len(all_of_them)} steps are proved")


def masks(model: Subject) -> Iterator[Finding | Fact]:
    """Whether the loss mask of eight conversations counts what the model writes and nothing else, and whether the
    generation tags mark the same."""
    total: Counter[str] = Counter()
    samples: list[tuple[str, Messages, Sample]] = []
    unit = "token"
    for name, messages in conversations(model):
        try:
            sample = sampled(model, messages)
        except ChatParsersError as error:
            yield Finding(
                "mask-impossible",
                "warning",
                f"no loss mask can be made of a conversation ({name})",
                str(error),
                "see docs/training.md",
            )
            continue
        unit = sample.unit
        samples.append((name, messages, sample))
        total.update(
            Kind(kind).name.lower().replace("_", " ")
            for kind, counted in zip(sample.kinds, sample.loss_mask, strict=True)
            if counted
        )
        yield from _counted(name, sample)
    kinds = ", ".join(f"{number} {kind}" for kind, number in total.most_common())
    yield Fact(f"in {len(samples)} conversations a loss counts {total.total()} {unit}s: {kinds or 'nothing'}")
    yield from _tags(model, samples)


def _counted(name: str, sample: Sample) -> Iterator[Finding]:
    wrong = [
        place
        for place, (mask, kind) in enumerate(zip(sample.loss_mask, sample.kinds, strict=True))
        if mask and kind in _CONTEXT
    ]
    if wrong:
        yield Finding(
            "mask-counts-context",
            "error",
            f"the loss mask counts text of the context ({name})",
            f"{len(wrong)} of {sample.counted} {sample.unit}s, the first at {wrong[0]}",
            "report it: chatparsers report",
        )
    reasons = "\n".join(f"message {at}: {why}" for at, why in sample.left_out.items())
    if not sample.counted:
        yield Finding(
            "mask-empty",
            "warning",
            f"the loss mask of a whole conversation counts nothing ({name})",
            reasons or sample.text[-120:],
            "train on turns (encode(split_turns=True)), or on rewritten=True",
        )
    elif sample.left_out:
        yield Finding(
            "mask-leaves-out",
            "note",
            f"an older answer does not stand as it was written, so a loss does not count it ({name})",
            reasons,
            "encode(split_turns=True) gives a sample for each question",
        )


def _tags(model: Subject, samples: list[tuple[str, Messages, Sample]]) -> Iterator[Finding]:
    if not tagged(model.template.source):
        yield Finding(
            "no-generation-tags",
            "note",
            "the template has no {% generation %} tags, so trainers that rely on them count nothing or all",
            "",
            "take the mask from Chat.encode, which needs none; --fix can write them",
        )
        return
    marking = loud(model)
    for name, messages, _ in samples:
        text, regions = marked(marking, messages)
        wanted = spans_of(model, messages)
        if regions == wanted:
            continue
        one, other = (
            "".join("·x"[any(a <= at < b for a, b in some)] for at in range(len(text)))
            for some in (regions, wanted)
        )
        at = common(one, other)
        yield Finding(
            "generation-tags-wrong",
            "warning",
            f"the {{% generation %}} tags mark other text than the model writes ({name})",
            f'{excerpt(text, at)}: after "{text[max(at - 20, 0) : at]}" '
            f"{'the tags mark more' if one[at : at + 1] == 'x' else 'the tags mark less'}",
            "put the tags around what stands after the generation prompt, with the stop; --fix can",
        )
        return
