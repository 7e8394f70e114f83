"""A finished conversation as the samples of a rollout: each answer as the model would have written it at its turn.

A template drops the thoughts of older answers. So of one rendering, few answers of a reasoning model can be taught.
Here each answer is put after the prompt that asked for it, and what the template rewrites begins another sample: every
answer counts once, in the context in which it would have been sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ..errors import RequestError, warn_user
from .encode import How, wanted
from .request import Request
from .rollout import Rollout
from .rows import Rows
from .sample import Sample


def encode_as_sampled(request: Request, rows: Rows, how: How) -> list[Sample]:
    """The samples of a conversation. An answer that the format cannot write is context, and `Sample.left_out` of the
    last sample names it."""
    messages = rows.messages
    answers = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    left_out: dict[int, str] = {
        index: "moved" for index in answers[:1] if not index
    }  # no prompt asked for it
    rollouts: list[Rollout] = []
    for index, end in pairwise([*(index for index in answers if index), len(messages)]):
        if not rollouts:
            rollouts.append(Rollout(request, messages[:index], quiet=True))
        counted = wanted(how.train_on, messages[index], index, answers[-1])
        following = messages[index + 1 : end]
        written = True
        try:
            rollouts[-1].said(messages[index], counted=counted, reasoning=how.reasoning)
        except RequestError:
            written = False
            if counted:
                left_out[index] = "unwritten"
        if end == len(messages):
            break
        if written and following:
            rollouts[-1].append(*following)
        else:
            rollouts.append(rollouts[-1].rebased(messages[:end], *rollouts[:-1]))
    last = answers[-1] if answers else 0
    for index, how_it_counts in rows.noted.items():
        if index not in left_out and wanted(how.train_on, messages[index], index, last):
            left_out[index] = how_it_counts
    return _samples(rollouts, left_out)


def _samples(rollouts: Sequence[Rollout], left_out: Mapping[int, str]) -> list[Sample]:
    found = rollouts[0].samples(*rollouts[1:]) if rollouts else []
    if found:
        found[-1].left_out.update(left_out)
    elif left_out:
        warn_user(f"encode: no answer counts ({', '.join(f'{at}: {why}' for at, why in left_out.items())})")
    return found
