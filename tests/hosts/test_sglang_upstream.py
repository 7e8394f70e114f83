"""SGLang after the gateway: its real ``/v1/completions`` on a port, over an engine without a GPU.

What is real: SGLang's request and response classes, ``OpenAIServingCompletion``, ``GenerateReqInput`` and
``SamplingParams``. Its engine is the tiny model under the structural tag that reached ``SamplingParams``.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from asked import check_asking
from stand_ins import stand_in
from tinies import FORMATS, TOOLS, tiny

if importlib.util.find_spec("sglang") is None:
    pytest.skip("SGLang is not installed: tests/hosts/install sglang", allow_module_level=True)
pytest.importorskip("starlette", reason="the package starlette is not installed")
httpx2 = pytest.importorskip("httpx2", reason="the package httpx2 is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    stand_in()
    from fastapi import FastAPI, Request
    from sglang.srt.entrypoints.api_contract import generate_contract_error
    from sglang.srt.entrypoints.openai import serving_completions
    from sglang.srt.entrypoints.openai.protocol import CompletionRequest, ModelCard, ModelList
    from sglang.srt.managers.io_struct import GenerateReqInput
    from sglang.srt.sampling.sampling_params import SamplingParams
    from sglang.srt.utils import load_image
    from starlette.responses import StreamingResponse

from seen import check_images, check_images_and_a_grammar  # noqa: E402
from served import APIS, Gateway, ask, check_recorded, check_runs, check_told  # noqa: E402
from servers import Server  # noqa: E402
from tag_mask import TagMask, compiler  # noqa: E402
from visions import seeing  # noqa: E402

from chatparsers.gateway import SGLang, SGLangGenerate  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:ORJSONResponse is deprecated")  # SGLang's own


class Manager:
    """What the serving layer sees of SGLang's engine: the text and the ids so far, after each token."""

    def __init__(self, name: str) -> None:
        self.model = tiny(name)
        self.served_model_name = "m"
        self.server_args = None
        self.request_logger = SimpleNamespace(log_requests=False, log_requests_level=0)
        self.seen: Any = None
        self.prompt: list[int] = []

    def create_abort_task(self, request: Any) -> None:
        """Stops nothing: the engine runs only while it is asked."""

    async def generate_request(self, request: Any, raw: Any = None) -> AsyncIterator[dict[str, Any]]:
        tokenizer, ends = self.model.tokenizer, set(self.model.eos_ids)
        if len(request.input_ids) > 4000:
            raise ValueError("The input is longer than the model's context length (4000 tokens)")
        self.prompt = request.input_ids
        self.seen = SamplingParams(**request.sampling_params)
        self.seen.normalize(tokenizer)
        self.seen.verify(tokenizer.get_vocab_size())
        ids: list[int] = []
        for id in self._sampled(self.seen):
            ids.append(id)
            reason: dict[str, Any] | None = None
            if id in self.seen.stop_token_ids:
                reason = {"type": "stop", "matched": id}
            elif len(ids) == self.seen.max_new_tokens:
                reason = {"type": "length", "length": len(ids)}
            shown = [found for found in ids if found not in ends]
            text = tokenizer.decode(shown, skip_special_tokens=self.seen.skip_special_tokens)
            counts = {"prompt_tokens": len(self.prompt), "completion_tokens": len(ids), "cached_tokens": 0}
            info = {"id": "a", "finish_reason": reason, **counts}
            if request.return_logprob:
                told = [
                    [(one.logprob, id, None) for id, one in self.logprobs(found).items()] for found in ids
                ]
                info["output_token_logprobs"] = [own for own, *_ in told]
                info["output_top_logprobs"] = told
            yield {"text": text.rstrip("\ufffd"), "output_ids": list(ids), "index": 0, "meta_info": info}
            if reason:
                return

    def logprobs(self, id: int) -> dict[int, SimpleNamespace]:
        """What it says of an id that it wrote: a number that only this id has, and the likeliest one."""
        return {id: SimpleNamespace(logprob=-1 - id / 1000), id + 1: SimpleNamespace(logprob=-0.5)}

    def _sampled(self, params: Any) -> Iterator[int]:
        size, biases = self.model.tokenizer.get_vocab_size(), self.model._biases()
        for id, bias in (params.logit_bias or {}).items():
            biases[int(id)] += bias
        mask = None
        if params.structural_tag is not None:
            compiled = compiler(self.model.tokenizer, size, self.model.eos_ids)
            mask = TagMask(compiled.compile_structural_tag(params.structural_tag), size)
        generator = np.random.default_rng(params.sampling_seed)
        while True:
            scores = biases + generator.gumbel(size=size)
            id = int((scores if mask is None else np.where(mask.allowed(), scores, -np.inf)).argmax())
            assert mask is None or mask.accept(id)
            yield id


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made: list[Any] = []
    flags = ("stream_response_default_include_usage", "incremental_streaming_output", "enable_cache_report")
    serving = SimpleNamespace(**dict.fromkeys(flags, False))
    patch = pytest.MonkeyPatch()
    patch.setattr(serving_completions, "get_serving", lambda: serving)

    @cache
    def gateway(name: str) -> tuple[Gateway, Manager]:
        manager = Manager(name)
        served = serving_completions.OpenAIServingCompletion(
            manager, SimpleNamespace(completion_template_name=None)
        )
        app = FastAPI()

        @app.post("/v1/completions")
        async def completions(request: CompletionRequest, raw: Request) -> Any:
            return await served.handle_request(request, raw)

        @app.get("/v1/models")
        async def models() -> Any:
            return ModelList(data=[ModelCard(id="m", max_model_len=4000)])

        made.append(Server(app))
        made.append(Gateway(tiny(name).chat, SGLang(made[-1].url)))
        return made[-1], manager

    yield gateway
    for found in reversed(made):
        found.close()
    patch.undo()


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, gateways: Any) -> None:
    gateway, _ = gateways(name)
    assert gateway.engine.ids and gateway.engine.model == "m" and gateway.engine.context == 4000
    check_runs(f"SGLang's completions, {name}, {choice}", gateway, choice, temperature=1.0)


def test_what_reaches_the_engine(gateways: Any) -> None:
    gateway, engine = gateways("qwen3")
    for api in APIS:
        ask(gateway.url, api, True, tools=TOOLS, tool_choice="required", max_tokens=700, top_k=7, seed=3)
        seen = engine.seen
        assert seen.structural_tag and seen.skip_special_tokens is False
        assert set(seen.stop_token_ids) == set(engine.model.eos_ids) and not seen.stop_strs
        assert (seen.max_new_tokens, seen.top_k, seen.sampling_seed) == (700, 7, 3)
    prompt = gateway.turn.tokenizer.encode(gateway.turn.prompt, add_special_tokens=False).ids
    assert engine.prompt == prompt


def test_usage_truncation_and_errors(gateways: Any) -> None:
    gateway, engine = gateways("qwen3")
    reasons = {"chat": "length", "responses": "incomplete", "messages": "max_tokens"}
    for api in APIS:
        answer = ask(
            gateway.url, api, api != "chat", tools=TOOLS, tool_choice="required", max_tokens=12, seed=1
        )
        assert (answer["reason"], answer["usage"]) == (reasons[api], (len(engine.prompt), 12))
    body = {"messages": [{"role": "user", "content": "word " * 5000}], "max_tokens": 5, "stream": True}
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 400 and "context length" in answer.json()["error"]["message"]


def generating(manager: Manager, images: list[Any]) -> FastAPI:
    """SGLang's ``/generate``: its contract and its request. ``images``: takes those of a request."""

    async def generate(raw: Request) -> Any:
        body = await raw.json()
        assert generate_contract_error(body) is None
        request = GenerateReqInput(**body)
        request.normalize_batch_and_arguments()
        images[:] = [load_image(one)[0] for one in request.image_data or ()]
        if request.input_ids is None:
            request.input_ids = manager.model.tokenizer.encode(request.text, add_special_tokens=False).ids

        async def events() -> AsyncIterator[bytes]:
            async for event in manager.generate_request(request):
                yield b"data: " + json.dumps(event).encode() + b"\n\n"

        return StreamingResponse(events())

    app = FastAPI()
    app.post("/generate")(generate)
    app.get("/v1/models")(lambda: ModelList(data=[ModelCard(id="m", max_model_len=4000)]))
    return app


@pytest.mark.filterwarnings("ignore:the engine has no /tokenize")
def test_by_ids(tmp_path: Path) -> None:
    """Without its completions: all runs, what is recorded, and log probabilities."""
    manager = Manager("qwen3")
    server = Server(generating(manager, []))
    gateway = Gateway(tiny("qwen3").chat, SGLangGenerate(server.url), rollouts=str(tmp_path))
    try:
        assert gateway.engine.ids and gateway.engine.model == "m" and gateway.engine.context == 4000
        check_runs("SGLang's ids, qwen3, required", gateway, "required", temperature=1.0)
        assert manager.seen.structural_tag and set(manager.seen.stop_token_ids) == set(manager.model.eos_ids)
        check_recorded(gateway, manager.logprobs)
        check_told(gateway, manager.logprobs)
    finally:
        gateway.close()
        server.close()


@pytest.fixture
def seeing_gateway() -> Iterator[tuple[Gateway, Manager, list[Any]]]:
    """SGLang's ``/generate``, and its own code that reads images."""
    manager, images = Manager("qwen3"), list[Any]()
    manager.model = seeing()
    app = generating(manager, images)
    app.get("/model_info")(lambda: {"has_image_understanding": True})
    served = serving_completions.OpenAIServingCompletion(
        manager, SimpleNamespace(completion_template_name=None)
    )

    @app.post("/v1/completions")
    async def completions(request: CompletionRequest, raw: Request) -> Any:
        return await served.handle_request(request, raw)

    server = Server(app)
    gateway = Gateway(seeing().chat, SGLang(server.url))
    yield gateway, manager, images
    gateway.close()
    server.close()


@pytest.mark.parametrize("api", APIS)
def test_images(api: str, seeing_gateway: Any, gateways: Any) -> None:
    check_images(api, *seeing_gateway)


def test_images_and_a_grammar(seeing_gateway: Any, gateways: Any) -> None:
    gateway, engine, _ = seeing_gateway
    check_images_and_a_grammar(gateway)
    assert engine.seen.structural_tag


@pytest.mark.filterwarnings("ignore:the engine has no /tokenize")
def test_asking(gateways: Any) -> None:
    gateway, _ = gateways("qwen3")
    check_asking(gateway.chat, gateway.engine.url, temperature=1.0)
