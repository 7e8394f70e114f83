"""The methods of a `Chat` for training: conversations encoded with their loss mask, rollouts, bridges.

Each imports what it needs when it is called: most chats only ask and read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from ..errors import RequestError, warn_user
from ..kept import cached
from ..lazy import load_reference
from ..templates.jinja.limits import limited
from ..templates.trace import Trace
from .request import Model, Request, plain_messages
from .sample import Sample

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..labels.charges import Charge
    from .bridges import Bridges
    from .encode import TrainOn
    from .options import PrepareOptions
    from .rollout import Rollout


class Training:
    """The part of `Chat` that makes samples."""

    @cached
    def bridge(self) -> Bridges:
        """For each shape of answer and what follows it: the text that the template writes between, and whether a
        rollout may rely on it. Found by some dozens of renderings at its first use."""
        from .bridges import bridges_of

        return bridges_of(cast("Model", self))

    @overload
    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        train_on: TrainOn = "all",
        reasoning: bool = True,
        rewritten: bool = False,
        split: bool = False,
        final_stop: bool = True,
        split_turns: Literal[False] = False,
        as_sampled: Literal[False] = False,
        **request: Unpack[PrepareOptions],
    ) -> Sample: ...

    @overload
    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        train_on: TrainOn = "all",
        reasoning: bool = True,
        rewritten: bool = False,
        split: bool = False,
        final_stop: bool = True,
        split_turns: Literal[True],
        as_sampled: Literal[False] = False,
        **request: Unpack[PrepareOptions],
    ) -> list[Sample]: ...

    @overload
    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        train_on: TrainOn = "all",
        reasoning: bool = True,
        as_sampled: Literal[True],
        **request: Unpack[PrepareOptions],
    ) -> list[Sample]: ...

    @limited
    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        train_on: TrainOn = "all",
        reasoning: bool = True,
        rewritten: bool = False,
        split: bool = False,
        final_stop: bool = True,
        split_turns: bool = False,
        as_sampled: bool = False,
        **request: Unpack[PrepareOptions],
    ) -> Sample | list[Sample]:
        """A finished conversation as ids with their loss mask: for supervised data, and for scoring.

        The mask is 1 for what a model would have to write: each answer, from after its generation prompt to the end of
        its stop. An answer that the template does not show as the model wrote it is context: `Sample.left_out` names
        it, and ``rewritten=True`` counts it nevertheless.

        ``train_on``: ``"all"`` answers, the ``"last"``, or a function of the message and its index. A message of
        ``weight`` 0 never counts. ``reasoning=False`` does not count thoughts and their markers. ``split``: prompt and
        answers are encoded apart, as an engine has them. ``split_turns``: a list with a sample for each question, so
        that every answer counts once. ``as_sampled``: a list with the samples of a rollout in which the model wrote
        these answers, so that every answer counts once, in the context in which it is sampled. ``final_stop``: a last
        answer that the template leaves open gets its stop. ``request``: the keywords of `prepare`; no generation prompt
        is added unless they ask for it. Without a tokenizer, the sample counts characters. Raises the errors of
        `prepare`.

        >>> answer = {"role": "assistant", "content": "Yes."}
        >>> sample = chat.encode([*messages, answer])
        >>> counted = [id for id, counts in zip(sample.ids, sample.loss_mask) if counts]
        >>> tokenizer.decode(counted, skip_special_tokens=False)
        'Yes.<|im_end|>'
        """
        from .as_sampled import encode_as_sampled
        from .encode import How, encode, encode_turns
        from .rows import read_rows

        messages = plain_messages(messages)
        how = How(train_on, reasoning, rewritten, split, final_stop)
        made = Request(cast("Model", self), {"add_generation_prompt": False, **request})
        if as_sampled:
            if split_turns or split or rewritten or not final_stop:
                raise RequestError("as_sampled: takes train_on and reasoning; leave the other options out")
            made = made.but(add_generation_prompt=True)
        rows = read_rows(made, messages, as_sampled=as_sampled)
        if as_sampled:
            return encode_as_sampled(made, rows, how)
        if split_turns:
            return encode_turns(made, rows, how)
        sample = encode(made, rows, how)
        if sample.left_out and not sample.counted:
            left_out = ", ".join(f"message {index}: {why}" for index, why in sample.left_out.items())
            warn_user(f"encode: no id counts ({left_out}); as_sampled=True counts each answer at its turn")
        return sample

    def encode_pair(
        self,
        messages: Sequence[Mapping[str, Any]],
        chosen: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        rejected: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        **request: Unpack[PrepareOptions],
    ) -> tuple[Sample, Sample]:
        """Two ways that a conversation went on, for preference data: a sample of each, in which only the answers after
        ``messages`` count.

        ``chosen``, ``rejected``: an answer, or the messages from the first answer on. ``request``: the keywords of
        `prepare`. Raises its errors.

        >>> good, bad = ({"role": "assistant", "content": text} for text in ("It is.", "No."))
        >>> chosen, rejected = chat.encode_pair(messages, good, bad)
        >>> chosen.ids[: chosen.prompt_length] == rejected.ids[: rejected.prompt_length]
        True
        """
        past = len(messages)
        ways = ([way] if isinstance(way, Mapping) else list(way) for way in (chosen, rejected))
        first, second = (
            self.encode([*messages, *way], train_on=lambda _, index: index >= past, **request) for way in ways
        )
        return first, second

    def judge_labels(
        self,
        ids: Sequence[int],
        labels: Sequence[int],
        messages: Sequence[Mapping[str, Any]] | None = None,
        tools: Any = None,
    ) -> list[Charge]:
        """What is wrong with the labels that a trainer made of a conversation: what they teach that `encode` does not.

        ``ids``, ``labels``: of one conversation; -100 where no loss is counted, also shifted by one, or padded.
        ``messages``, ``tools``: what the trainer was given, if they are at hand. Empty if nothing is wrong; a code that
        the template does not show is never there (docs/labels.md). Raises `RequestError` without a tokenizer, for
        labels of another length, and for several conversations in a row, and `TemplateError` if the template marks no
        roles.

        >>> sample = chat.encode([*messages, {"role": "assistant", "content": "Yes."}])
        >>> chat.judge_labels(sample.ids, sample.labels())
        []
        >>> [str(charge) for charge in chat.judge_labels(sample.ids, sample.ids)][:1]
        ["header-counted: '<|im_start|>' counts"]
        """
        request = Request(cast("Model", self), {})
        judge = request.fact("labels", lambda: load_reference("chatparsers.labels.judge:Judge")(self))
        found: list[Charge] = judge.judge(ids, labels, messages, tools)
        return found

    @limited
    def trace(self, messages: Sequence[Mapping[str, Any]], **request: Unpack[PrepareOptions]) -> Trace:
        """Whose each character of a prompt is: for each run of characters the message and the field that it came from,
        however the template, or a polyfill, cut, joined or escaped it. The rest is the template's own.

        ``request``: the keywords of `prepare`. Raises its errors.

        >>> trace = chat.trace(messages)
        >>> [(span.message, span.field, trace.text[span.start : span.end]) for span in trace.spans]
        [(0, 'content', 'Is it cold in Oslo?')]
        """
        made = Request(cast("Model", self), request)
        return made.traced(made.read(plain_messages(messages))).trace

    def rollout(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        history: Literal["template", "exact"] = "template",
        count_stop: bool = False,
        **request: Unpack[PrepareOptions],
    ) -> Rollout:
        """A conversation by exact ids: what the engine was given and sampled is never encoded again.

        ``history``: where the template drops or moves what was sampled, ``"template"`` begins a new segment, as the
        model would see it; ``"exact"`` keeps what was sampled. ``count_stop``: a stop that the engine left out counts
        as sampled. ``request``: the keywords of `prepare`; the clock and the seed of ids are fixed at the beginning.
        Raises `RequestError` without a tokenizer, and the errors of `prepare`.

        >>> rollout = chat.rollout(messages, tools=tools)
        >>> rollout.sampled(tokenizer.encode(call + "<|im_end|>").ids).tool_calls[0].name
        'get_weather'
        >>> rollout.append({"role": "tool", "content": "4 degrees"})
        >>> tokenizer.decode(rollout.ids[-12:], skip_special_tokens=False)
        '\\n<|im_start|>assistant\\n'
        """
        from .rollout import Rollout

        messages = plain_messages(messages)
        return Rollout(
            Request(cast("Model", self), request), messages, history=history, count_stop=count_stop
        )
