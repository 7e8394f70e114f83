"""vLLM's own manager of structured outputs drives guides: masks at each place of a draft, drafts that are rejected."""

from __future__ import annotations

import importlib.util
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tinies import MESSAGES, TOOLS, chosen, draft_of, host_tokenizers, tiny, wrong_in

import chatparsers
from chatparsers.adapters.steered import to_spec

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed: tests/hosts/install vllm", allow_module_level=True)
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar, StructuredOutputOptions

    from chatparsers.adapters.vllm_guide import GuideBackend

BUDGET, DRAFTS = 6, 4


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return host_tokenizers(tmp_path_factory)


def manager(tokenizer: Any) -> Any:
    """vLLM's manager, with as much of a configuration as it reads, and the backend in its place."""
    config = SimpleNamespace(
        model_config=SimpleNamespace(skip_tokenizer_init=True, is_diffusion=False),
        parallel_config=SimpleNamespace(distributed_executor_backend="mp"),
        scheduler_config=SimpleNamespace(max_num_seqs=2),
        structured_outputs_config=SimpleNamespace(enable_in_reasoning=True),
        num_speculative_tokens=DRAFTS,
    )
    made = StructuredOutputManager(config)
    made.backend = GuideBackend(config, tokenizer, len(tokenizer) + 40)
    return made


def request_of(made: Any, spec: str) -> Any:
    grammar = made.backend.compile_grammar(StructuredOutputOptions.GRAMMAR, spec)
    assert isinstance(grammar, StructuredOutputGrammar)
    asked = SimpleNamespace(grammar=grammar, reasoning_ended=None)
    return SimpleNamespace(request_id="r", use_structured_output=True, structured_output_request=asked)


@pytest.mark.parametrize("name", ["qwen3", "hermes-2-pro", "gpt-oss"])
def test_drafts_are_taken_back(name: str, tokenizers: Any) -> None:
    made, model, rejected = manager(tokenizers(name)), tiny(name), 0
    turn = model.chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required")
    spec = to_spec(turn, thinking_tokens=BUDGET, max_calls=1)
    size = model.tokenizer.get_vocab_size()
    for seed in range(3):
        request = request_of(made, spec)
        grammar = request.structured_output_request.grammar
        reference = turn.guide(thinking_tokens=BUDGET, max_calls=1)
        biases, generator = model._biases(), np.random.default_rng(seed)
        ids: list[int] = []
        while not grammar.is_terminated() and len(ids) < 900:
            scores = biases + generator.gumbel(size=(DRAFTS + 1, size))
            proposed = draft_of(reference, biases + generator.gumbel(size=(DRAFTS, size)))
            drafts = made.validate_tokens(request, [*proposed[:-1], int(generator.integers(size))])
            masks = made.grammar_bitmask({"r": request}, ["r"], {"r": drafts})
            taken: list[int] = []
            for place in range(len(drafts) + 1):  # what the target model samples at each place of the draft
                row = np.zeros_like(masks[place])
                reference.fill(row)
                assert (masks[place] == row).all(), "a draft left something behind"
                id = chosen(row, scores[place])
                taken.append(id)
                reference.feed(id)
                if reference.ended or place == len(drafts):
                    break
                if id != drafts[place]:
                    rejected += 1
                    break
            assert made.accept_tokens(request, taken)
            ids += taken
        message = turn.parse(ids, strict=True)
        assert message.complete and len(message.tool_calls) == 1
        assert not wrong_in(message.tool_calls[0].name, message.tool_calls[0].arguments)
        thought = sum(r.token_end - r.token_start for r in message.regions if r.kind == "reasoning")
        assert thought <= BUDGET + 3
        grammar.reset()
        assert not grammar.is_terminated() and grammar.validate_tokens(ids) == ids
        assert not grammar.accept_tokens("r", [*ids[:3], ids[-1]]) and grammar.accept_tokens("r", ids)
    assert rejected > 10


def test_what_it_cannot_make(tokenizers: Any) -> None:
    backend = manager(tokenizers("qwen3")).backend
    with pytest.raises(chatparsers.RequestError, match="to_spec"):
        backend.compile_grammar(StructuredOutputOptions.GRAMMAR, "root ::= x")
    with pytest.raises(chatparsers.RequestError, match="found json"):
        backend.compile_grammar(StructuredOutputOptions.JSON, "{}")
