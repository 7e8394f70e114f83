"""An engine of vLLM without a GPU: it writes the ids of a script, or samples from the tiny model under the request's
own structural tag."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from tag_mask import TagMask, compiler
from tinies import tiny
from vllm.config import ModelConfig
from vllm.logprobs import Logprob
from vllm.outputs import CompletionOutput, RequestOutput
from vllm.renderers.hf import HfRenderer
from vllm.sampling_params import RequestOutputKind
from vllm.tokenizers import cached_tokenizer_from_config


class Engine:
    """What the serving layer sees of an engine: ``generate`` gives the ids of ``script``, or samples under the tag."""

    errored = False
    dead_error = None

    def __init__(self, name: str, folder: Any) -> None:
        self.model = tiny(name)
        self.model_config = ModelConfig(model=str(folder), dtype="float32", max_model_len=4096)
        self.tokenizer = cached_tokenizer_from_config(self.model_config)
        config = SimpleNamespace(
            model_config=self.model_config,
            parallel_config=SimpleNamespace(_api_process_rank=0),
            cache_config=None,
            scheduler_config=SimpleNamespace(max_num_seqs=8),
            observability_config=None,
        )
        self.vllm_config = config
        self.renderer = HfRenderer(config, self.tokenizer)
        self.input_processor = SimpleNamespace(process_inputs=None)
        self.io_processor = None
        self.script: list[int] | None = None
        self.seed = 0
        self.seen: Any = None
        self.prompt: list[int] = []
        self.written: list[int] = []

    def check_admission(self, count: int) -> None:
        """Takes every request."""

    async def is_tracing_enabled(self) -> bool:
        return False

    async def generate(
        self, prompt: Any, params: Any, request_id: str, **others: Any
    ) -> AsyncIterator[RequestOutput]:
        self.seen, self.others, self.prompt = params, others, prompt["prompt_token_ids"]
        self.written = self.script if self.script is not None else list(self._sampled(params))
        ends = set(self.model.eos_ids)
        if params.output_kind == RequestOutputKind.DELTA:
            pieces, text, ids = [], "", []
            for id in self.written:
                ids.append(id)
                whole = self.tokenizer.decode([i for i in ids if i not in ends], skip_special_tokens=False)
                if not whole.endswith("\ufffd"):
                    pieces.append((whole[len(text) :], [id]))
                    text = whole
                else:
                    pieces.append(("", [id]))
        else:
            text = self.tokenizer.decode(
                [i for i in self.written if i not in ends], skip_special_tokens=False
            )
            pieces = [(text, self.written)]
        for number, (text, ids) in enumerate(pieces):
            over = number == len(pieces) - 1
            reason = ("stop" if self.written[-1] in ends else "length") if over else None
            probs = None if params.logprobs is None else [self.logprobs(id) for id in ids]
            output = CompletionOutput(0, text, ids, None, probs, finish_reason=reason)
            yield RequestOutput(request_id, None, prompt["prompt_token_ids"], None, [output], over)

    def logprobs(self, id: int) -> dict[int, Logprob]:
        """What it says of an id that it wrote: a number that only this id has, and the likeliest one."""
        return {id: Logprob(-1 - id / 1000, rank=2), id + 1: Logprob(-0.5, rank=1)}

    def _sampled(self, params: Any) -> Iterator[int]:
        backend, size = self.model.tokenizer, self.model_config.get_vocab_size()
        asked = params.structured_outputs
        mask = None
        if asked is not None:
            compiled = compiler(backend, size, self.model.eos_ids)
            mask = TagMask(compiled.compile_structural_tag(asked.structural_tag), size)
        biases = self.model._biases()
        for id, bias in (params.logit_bias or {}).items():
            biases[id] += bias
        generator = np.random.default_rng(self.seed if params.seed is None else params.seed)
        for _ in range(min(params.max_tokens, 900)):
            scores = biases + generator.gumbel(size=size)
            id = int((scores if mask is None else np.where(mask.allowed(), scores, -np.inf)).argmax())
            assert mask is None or mask.accept(id)
            yield id
            if id in self.model.eos_ids:
                return
