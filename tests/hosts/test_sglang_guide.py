"""SGLang's own code drives guides: its table of backends, its walk of draft trees, drafts that are rejected."""

from __future__ import annotations

import ast
import importlib.util
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import numpy as np
import pytest
from stand_ins import stand_in
from tinies import MESSAGES, TOOLS, chosen, draft_of, host_tokenizers, tiny, wrong_in

import chatparsers
from chatparsers.adapters.steered import to_spec

if importlib.util.find_spec("sglang") is None:
    pytest.skip("SGLang is not installed: tests/hosts/install sglang", allow_module_level=True)
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("llguidance.torch")  # before the stand-ins: torch looks for the real triton

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    stand_in()
    from sglang.srt.constrained import base_grammar_backend as host

    from chatparsers.adapters.sglang import register


def own_walk() -> Any:
    """SGLang's walk of a draft tree. Its module needs the kernels of a GPU, so the function alone is read from it."""
    file = Path(host.__file__).parents[1] / "speculative" / "spec_utils.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    (walk,) = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "traverse_tree"
    ]
    names = {"torch": torch, "BaseGrammarObject": host.BaseGrammarObject, "Optional": Optional}
    exec(compile(ast.Module([walk], []), str(file), "exec"), names)
    return names["traverse_tree"]


register()
traverse_tree = own_walk()
BUDGET, DRAFTS = 6, 4


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return host_tokenizers(tmp_path_factory)


def backend(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    kernel = SimpleNamespace(grammar_backend="chatparsers")
    monkeypatch.setattr(host, "get_exec", lambda: SimpleNamespace(kernel=kernel))
    return host.create_grammar_backend(None, tokenizer, len(tokenizer) + 40, {tokenizer.eos_token_id})


def asked(name: str, **limits: Any) -> tuple[chatparsers.Turn, str]:
    turn = tiny(name).chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required")
    return turn, to_spec(turn, **limits)


def packed(guide: Any, words: int) -> Any:
    mask = np.zeros(words, dtype=np.int32)
    guide.fill(mask)
    return mask


@pytest.mark.parametrize("name", ["qwen3", "hermes-2-pro", "gpt-oss"])
def test_drafts_are_taken_back(name: str, tokenizers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = backend(tokenizers(name), monkeypatch)
    turn, spec = asked(name, thinking_tokens=BUDGET, max_calls=1)
    future, hit = made.get_cached_or_future_value(("ebnf", spec), False)
    assert not hit
    made.set_cache(("ebnf", spec), future.result())
    model, rejected = tiny(name), 0
    size = model.tokenizer.get_vocab_size()
    for seed in range(3):
        grammar, hit = made.get_cached_or_future_value(("ebnf", spec), False)
        assert hit and grammar is not made.cache["ebnf", spec]
        reference = turn.guide(thinking_tokens=BUDGET, max_calls=1)
        biases, generator = model._biases(), np.random.default_rng(seed)
        ids: list[int] = []
        mask = grammar.allocate_vocab_mask(size + 40, DRAFTS + 1, "cpu")
        while not grammar.is_terminated() and len(ids) < 900:
            scores = biases + generator.gumbel(size=(DRAFTS + 1, size))
            proposed = draft_of(reference, biases + generator.gumbel(size=(DRAFTS, size)))
            proposed[-1:] = [int(generator.integers(size))] * (1 + DRAFTS - len(proposed))
            drafts = torch.tensor([ids[-1] if ids else 0, *proposed])
            chain = torch.tensor([*range(1, DRAFTS + 1), -1])
            grammar.reset_vocab_mask(mask)
            traverse_tree(chain, torch.full_like(chain, -1), drafts, grammar, mask, size)
            for place in range(DRAFTS + 1):  # what the target model samples at each place of the draft
                row = mask[place].numpy()
                assert (row == packed(reference, len(row))).all(), "a draft left something behind"
                id = chosen(row, scores[place])
                grammar.accept_token(id)
                reference.feed(id)
                ids.append(id)
                if grammar.is_terminated() or place == DRAFTS:
                    break
                if id != int(drafts[place + 1]):
                    rejected += 1
                    break
            jump = grammar.try_jump_forward(None)
            assert (jump or ([], ""))[0] == reference.forced()
        message = turn.parse(ids, strict=True)
        assert message.complete and len(message.tool_calls) == 1
        assert not wrong_in(message.tool_calls[0].name, message.tool_calls[0].arguments)
        thought = sum(r.token_end - r.token_start for r in message.regions if r.kind == "reasoning")
        assert thought <= BUDGET + 3
    assert rejected > 10


def test_the_command_line_takes_the_name() -> None:
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    register()
    assert GRAMMAR_BACKEND_CHOICES.count("chatparsers") == 1


def test_other_grammars_and_wrong_ones(tokenizers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = backend(tokenizers("qwen3"), monkeypatch)
    own = made.get_cached_or_future_value(("json", '{"type": "integer"}'), False)[0].result()
    assert type(own).__name__ == "GuidanceGrammar"
    _, spec = asked("qwen3")
    wrong = made.get_cached_or_future_value(("ebnf", spec.replace("get_weather", "plan_trip")), False)[
        0
    ].result()
    assert isinstance(wrong, host.InvalidGrammarObject) and "plan_trip" in wrong.error_message
    grammar = made.get_cached_or_future_value(("ebnf", spec), False)[0].result()
    with pytest.raises(ValueError, match="expected an id that may come here"):
        for _ in range(50):
            grammar.accept_token(tiny("qwen3").eos_ids[0])
