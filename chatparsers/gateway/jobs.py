"""What a prepared request asks of the engine, and the answers that its response is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..serving import AnthropicMessages
from .answer import Answer, Answers
from .apis import Api
from .engine import Job
from .prepare import Prepared
from .rollouts import Recording

_LACKING = ("tool ", "part ", "item ", "grammar ", "encrypted ")
"""What was left out without which an answer may be another: the answer says so."""


def jobs_of(prepared: Prepared, headers: dict[str, str], recording: Recording | None = None) -> list[Job]:
    """The job of each answer. ``headers`` go with them. ``recording``: writes the answers down."""
    request = prepared.request
    job = Job(
        prepared.turn,
        prepared.prompt,
        prepared.grammar,
        prepared.max_tokens,
        {**request.sampling, **request.engine_fields, **({} if recording is None else recording.sampling)},
        headers,
        request.logprobs if recording is None else recording.logprobs,
        prepared.pictures,
        request.thinking_tokens,
        prepared.loops is not None and prepared.loops.closes,
        0 if prepared.seen is None else prepared.seen.shared,
    )
    return [_choice(job, index) for index in range(request.choices)]


def _choice(job: Job, index: int) -> Job:
    """The job of one of several answers. With a seed, each has another one, or all would be alike."""
    seed = job.sampling.get("seed")
    if seed is None or not index:
        return job
    return replace(job, sampling={**job.sampling, "seed": (seed + index) % 2**63})


def answers_of(api: Api, prepared: Prepared, recording: Recording | None = None) -> Answers:
    """The answers to a request, with their writers. ``recording``: writes them down."""
    request, prompt = prepared.request, prepared.prompt
    ids = prompt if isinstance(prompt, list) else None
    framed = request.stream or (prepared.asked is not None and prepared.asked.background)
    made: list[Answer] = []
    for index in range(request.choices):
        id = made[0].writer.id if made else None
        # The calls of each choice have ids of their own. The prompt is not held for as long as the answer lasts.
        turn = prepared.turn._replace(prompt="", id_seed=f"{prepared.turn.id_seed}/{index}")
        writer = api.writer(request.model or prepared.model.name, turn, request, index, id)
        writer.begun_call = request.begun_call(turn)
        if request.dropped or turn.warnings:
            lacks = [f"left out: {kind}" for kind in request.dropped if kind.startswith(_LACKING)]
            writer.warnings = (*lacks, *turn.warnings)
        if isinstance(writer, AnthropicMessages) and isinstance(request.body.get("diagnostics"), Mapping):
            writer.diagnostics = (prepared.missed,)
        if request.token_ids:
            writer.prompt_token_ids, writer.token_ids = ids, []
        if request.logprobs is not None and not request.stream:
            writer.logprobs = {}
        answer = Answer(
            turn,
            writer,
            request,
            by_ids=prepared.model.engine.ids,
            framed=framed,
            holds=prepared.held is not None,
            prompt=None if ids is None or prepared.pictures else len(ids),
            most=prepared.max_tokens,
            taking=None if recording is None else recording.taking(index),
            loops=prepared.loops,
        )
        made.append(answer)
    if prepared.kept is not None:
        prepared.kept.answer = made[0].writer.id
    return Answers(made, framed=framed, usage=request.include_usage)
