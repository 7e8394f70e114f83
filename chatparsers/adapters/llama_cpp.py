"""llama-cpp-python: a chat handler, so that ``create_chat_completion`` reads and constrains calls.

    llm = Llama("model.gguf", chat_handler=ChatHandler())
    llm.create_chat_completion(messages, tools=tools, tool_choice="auto", stream=True)

The chat template and the tokenizer come from the GGUF file. The handler samples ids, because the texts of
``create_completion`` have no control tokens. With ``tool_choice="auto"`` the grammar is lazy: it begins at a call.
``ChatHandler(limits={"thinking_tokens": 200})`` steers by a guide in the grammar's place.

The host's samplers know lazy grammars, but its ``Llama`` does not pass one on. So this module teaches
``LlamaSampler.add_grammar`` a second kind of grammar; every other grammar goes where it went before.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import llama_cpp
import numpy as np
from llama_cpp import Llama, LlamaGrammar, LogitsProcessorList
from llama_cpp._internals import LlamaSampler
from llama_cpp.llama_chat_format import LlamaChatCompletionHandlerRegistry

from ..answers.format import Turn
from ..chat.chat import Chat
from ..chat.load import load
from ..errors import RequestError
from ..grammar import Grammar
from ..guide import Guide
from ..serving import OpenAIChat, Usage
from ._answer import Answer, end_ids
from ._check import check_parameters
from ._masks import Rows, Steered

__all__ = [
    "ChatHandler",
    "LazyGrammar",
    "TurnMask",
    "generate",
    "logprobs_of",
    "register",
    "to_llama_grammar",
]

_SAMPLING = (
    "top_k", "top_p", "min_p", "typical_p", "frequency_penalty", "presence_penalty", "repeat_penalty", "tfs_z",
    "mirostat_mode", "mirostat_tau", "mirostat_eta", "logits_processor",
)  # fmt: skip
"""The options of ``create_chat_completion`` that ``Llama.generate`` has under the same name."""


class LazyGrammar(LlamaGrammar):  # type: ignore[misc]
    """A grammar that begins when the model writes one of its triggers."""

    def __init__(self, grammar: Grammar) -> None:
        super().__init__(_grammar=str(grammar))
        self._root = grammar.root
        self.patterns = [
            re.escape(trigger.value) if trigger.kind == "word" else trigger.value
            for trigger in grammar.triggers
            if trigger.kind != "token"
        ]
        self.tokens = [trigger.id for trigger in grammar.triggers if trigger.kind == "token"]


def to_llama_grammar(grammar: Grammar | None) -> LlamaGrammar | None:
    """The grammar of a turn (``turn.grammar()``) as llama-cpp-python takes it; None stays None."""
    if grammar is None:
        return None
    return LazyGrammar(grammar) if grammar.lazy else LlamaGrammar.from_string(str(grammar))


class TurnMask:
    """A logits processor that allows what a guide allows, in place of a grammar. A new one for each generation.

    ``steered``: a turn, or a guide (`Turn.guide`, which names the engine and sets limits).
    """

    def __init__(self, steered: Steered) -> None:
        self._rows = Rows(steered)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        (mask,) = self._rows.masks([input_ids.tolist()], len(scores))
        return scores if mask is None else np.where(mask, scores, -np.inf).astype(scores.dtype)


def generate(
    llama: Llama,
    turn: Turn,
    *,
    prompt: Sequence[int] | None = None,
    grammar: Any = None,
    guide: Guide | None = None,
    **sampling: Any,
) -> Iterator[int]:
    """The ids that the model writes in ``turn``, under its grammar, without an end. ``prompt``: the ids of
    ``turn.prompt``, if they are known. ``grammar``: a grammar of llama-cpp-python in place of the turn's. ``guide``:
    steers in place of a grammar. ``sampling``: options of ``Llama.generate``."""
    ids = tokenize(llama, turn) if prompt is None else prompt
    if guide is not None:
        processors = [*(sampling.pop("logits_processor", None) or ()), TurnMask(guide)]
        sampling["logits_processor"] = LogitsProcessorList(processors)
        own = None
    else:
        own = _grammar(llama, turn) if grammar is None else grammar
    found: Iterator[int] = llama.generate(ids, grammar=own, **sampling)
    return found


def logprobs_of(llama: Llama, id: int, most: int = 0) -> list[tuple[float, int]]:
    """The log probability of the id that `generate` gave last, and after it those of the ``most`` likeliest, each with
    its id. They are the model's own: neither the temperature nor a grammar is in them."""
    # The scores that the id was sampled by are still there: the model goes on when the next one is asked for.
    scores = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(llama.ctx, -1), shape=(llama.n_vocab(),))
    scores = scores.astype(np.float64) - scores.max()
    found = scores - np.log(np.exp(scores).sum())
    likeliest = np.argpartition(found, -most)[-most:] if most else np.array([], dtype=int)
    tops = sorted(((float(found[at]), int(at)) for at in likeliest), reverse=True)
    return [(float(found[id]), id), *tops]


def _grammar(llama: Llama, turn: Turn) -> LlamaGrammar | None:
    """The grammar of a turn. Raises RequestError if this llama.cpp cannot read its markers."""
    grammar = turn.grammar()
    if grammar is not None and grammar.by_id and not _reads_ids(llama_cpp.llama_model_get_vocab(llama.model)):
        raise RequestError(
            f"llama-cpp-python {llama_cpp.__version__}: its llama.cpp reads no references to tokens in grammars, and "
            f"the markers of this turn are written so ({', '.join(grammar.by_id)}): install 0.3.20 or later"
        )
    return to_llama_grammar(grammar)


_reading: list[bool] = []
"""Whether the host's llama.cpp reads references to tokens, once it was asked."""


def _reads_ids(vocab: Any) -> bool:
    if not _reading:
        sampler = llama_cpp.llama_sampler_init_grammar(vocab, b"root ::= <[0]>", b"root")
        _reading.append(bool(sampler))
        if sampler:
            llama_cpp.llama_sampler_free(sampler)
    return _reading[0]


def tokenize(llama: Llama, turn: Turn) -> list[int]:
    """The ids of the turn's prompt. Nothing is put before it: the template writes the first token."""
    ids: list[int] = llama.tokenize(turn.prompt.encode(), add_bos=False, special=True)
    return ids


class ChatHandler:
    """A chat handler of ``Llama``. It answers with OpenAI's dicts; reasoning has the keys ``reasoning`` and
    ``reasoning_content``.

    ``chat``: the model's chat; None loads it from the GGUF file that the ``Llama`` was made of. ``request``: options of
    `Chat.prepare` for every request, such as ``thinking`` and ``parallel_tool_calls``. ``limits``: the arguments of
    `Turn.guide`, which steers each answer then. A call raises `RequestError` for
    what it cannot serve: ``functions`` (use ``tools``), ``logprobs``, and a prompt longer than the context.
    """

    def __init__(
        self, chat: Chat | None = None, *, limits: Mapping[str, Any] | None = None, **request: Any
    ) -> None:
        self._chat = chat
        self._limits = limits
        self._request = request
        self._loaded: WeakKeyDictionary[Any, Chat] = WeakKeyDictionary()

    def chat(self, llama: Llama) -> Chat:
        """The chat of a model."""
        if self._chat is not None:
            return self._chat
        if llama not in self._loaded:
            self._loaded[llama] = load(llama.model_path)
        return self._loaded[llama]

    def __call__(
        self,
        *,
        llama: Llama,
        messages: Sequence[Mapping[str, Any]],
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: Any = None,
        response_format: Mapping[str, Any] | None = None,
        stream: bool = False,
        stop: str | Sequence[str] | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.2,
        seed: int | None = None,
        model: str | None = None,
        grammar: Any = None,
        logit_bias: Mapping[str, float] | None = None,
        **others: Any,
    ) -> Any:
        for name in ("functions", "function_call", "logprobs", "top_logprobs"):
            if others.get(name):
                mend = "use tools and tool_choice" if name.startswith("function") else "leave it out"
                raise RequestError(f"{name}: this handler has no place for it: {mend}")
        turn = self.chat(llama).prepare(
            messages,
            tools=tools,
            tool_choice=tool_choice or "auto",
            response_format=response_format,
            **self._request,
        )
        end_ids(turn)
        prompt = tokenize(llama, turn)
        room = llama.n_ctx() - len(prompt)
        if room <= 0:
            raise RequestError(
                f"messages: expected a prompt of less than {llama.n_ctx()} tokens (n_ctx), found {len(prompt)}: "
                "shorten it, or make the Llama with a larger n_ctx"
            )
        most = min(max_tokens, room) if max_tokens and max_tokens > 0 else room
        sampling = {name: others[name] for name in _SAMPLING if others.get(name) is not None}
        if logit_bias:
            biased = [*sampling.get("logits_processor", ()), _biased(logit_bias)]
            sampling["logits_processor"] = LogitsProcessorList(biased)
        if seed is not None:
            llama.set_seed(seed)
        guide = None if self._limits is None else turn.guide(**self._limits)
        ids = generate(llama, turn, prompt=prompt, grammar=grammar, guide=guide, temp=temperature, **sampling)
        stops = [stop] if isinstance(stop, str) else list(stop or ())
        writer = OpenAIChat(model or llama.model_path, call_id=turn.call_id)
        chunks = _chunks(writer, Answer(turn, stops), ids, len(prompt), most)
        if stream:
            return chunks
        for _ in chunks:
            pass
        return writer.answer


def _chunks(
    writer: OpenAIChat, answer: Answer, ids: Iterator[int], prompt: int, most: int
) -> Iterator[Mapping[str, Any]]:
    yield from writer.start(prompt)
    for id in ids:
        for event in answer.feed(id):
            yield from writer.event(event)
        if answer.ended or answer.count >= most:
            break
    for event in answer.finish():
        yield from writer.event(event)
    usage = Usage.of(answer.message, prompt, completion=answer.count)
    yield from writer.finish(answer.reason, usage)


def _biased(bias: Mapping[str, float]) -> Callable[[Any, Any], Any]:
    """A logits processor that adds ``bias``, which maps ids to numbers."""
    ids, values = [int(id) for id in bias], [float(value) for value in bias.values()]

    def process(_: Any, scores: Any) -> Any:
        changed = scores.copy()
        changed[ids] += values
        return changed

    return process


def register(name: str = "chatparsers") -> None:
    """Makes ``Llama(…, chat_format=name)`` use this handler."""
    LlamaChatCompletionHandlerRegistry().register_chat_completion_handler(name, ChatHandler(), overwrite=True)


def _teach() -> None:
    """Teaches the host's sampler lazy grammars. Raises ImportError if the host's sampler is another."""
    add = LlamaSampler.add_grammar
    if getattr(add, "lazy", False):
        return
    version = f"llama-cpp-python {llama_cpp.__version__}"
    check_parameters(add, ("self", "model", "grammar"), version)
    check_parameters(
        LlamaSampler.add_grammar_lazy_patterns,
        ("self", "model", "grammar", "trigger_patterns", "trigger_tokens"),
        version,
    )
    if "grammar" not in inspect.signature(Llama._init_sampler).parameters:
        raise ImportError(f"{version}: Llama._init_sampler takes no grammar")

    def add_grammar(self: Any, model: Any, grammar: Any) -> None:
        if isinstance(grammar, LazyGrammar):
            self.add_grammar_lazy_patterns(model, grammar, grammar.patterns, grammar.tokens)
        else:
            add(self, model, grammar)

    add_grammar.lazy = True  # type: ignore[attr-defined]
    LlamaSampler.add_grammar = add_grammar


_teach()
