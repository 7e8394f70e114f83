"""vLLM after the gateway: its real ``/v1/completions`` on a port, over an engine without a GPU.

What is real: vLLM's router, its request and response classes, ``OpenAIServingCompletion`` and ``OpenAIServingModels``.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from asked import check_asking
from tinies import FORMATS, MESSAGES, TOOLS, tiny

pytest.importorskip("vllm", reason="vLLM is not installed: tests/hosts/install vllm")
pytest.importorskip("starlette", reason="the package starlette is not installed")
httpx2 = pytest.importorskip("httpx2", reason="the package httpx2 is not installed")

with warnings.catch_warnings():  # vLLM's own are its own
    warnings.simplefilter("ignore")
    from fastapi import FastAPI
    from vllm.entrypoints.openai.completion.api_router import router as completions
    from vllm.entrypoints.openai.completion.serving import OpenAIServingCompletion
    from vllm.entrypoints.openai.models.api_router import router as models
    from vllm.entrypoints.openai.models.protocol import BaseModelPath
    from vllm.entrypoints.openai.models.serving import OpenAIServingModels
    from vllm.entrypoints.scale_out.token_in_token_out import serving as tokens_serving
    from vllm.entrypoints.scale_out.token_in_token_out.api_router import router as generate
    from vllm.entrypoints.scale_out.token_in_token_out.protocol import PlaceholderRangeInfo
    from vllm.entrypoints.serve.exception_handling.register import init_exception_handler
    from vllm.multimodal.media import MediaConnector
    from vllm.renderers.online_renderer import OnlineRenderer
    from vllm_engine import Engine

from seen import check_images, check_images_and_a_grammar  # noqa: E402
from served import APIS, Gateway, ask, check_recorded, check_runs, check_told  # noqa: E402
from servers import Server  # noqa: E402
from visions import seeing  # noqa: E402

from chatparsers.gateway import VLLM, VLLMGenerate  # noqa: E402


def served_app(engine: Engine, *, tokens_only: bool = False) -> Any:
    """vLLM's endpoints for completions and for ids with images, before an engine. ``tokens_only``: as ``vllm serve
    --tokens-only`` has them."""
    online = OnlineRenderer(
        engine.model_config,
        engine.renderer,
        request_logger=None,
        chat_template=None,
        chat_template_content_format="auto",
    )
    app = FastAPI()
    app.state.args = SimpleNamespace(log_error_stack=False)
    init_exception_handler(app)
    if not tokens_only:
        app.include_router(completions)
    app.include_router(models)
    app.include_router(generate)
    served = OpenAIServingModels(engine, [BaseModelPath(name="m", model_path="m")])
    app.state.openai_serving_models = served
    app.state.openai_serving_completion = OpenAIServingCompletion(
        engine, served, online_renderer=online, request_logger=None
    )
    app.state.serving_tokens = tokens_serving.ServingTokens(
        engine,
        served,
        online,
        online_derenderer=None,
        request_logger=None,
        force_no_detokenize=tokens_only,
    )
    app.state.enable_server_load_tracking = False
    return app


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made: list[Any] = []

    @cache
    def gateway(name: str) -> tuple[Gateway, Engine]:
        engine = Engine(name, tiny(name).write_folder(tmp_path_factory.mktemp(name)))
        made.append(Server(served_app(engine)))
        made.append(Gateway(tiny(name).chat, VLLM(made[-1].url)))
        return made[-1], engine

    yield gateway
    for found in reversed(made):
        found.close()


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, gateways: Any) -> None:
    gateway, _ = gateways(name)
    assert gateway.engine.ids and gateway.engine.model == "m" and gateway.engine.context == 4096
    check_runs(f"vLLM's completions, {name}, {choice}", gateway, choice, temperature=1.0)


def test_what_reaches_the_engine(gateways: Any) -> None:
    gateway, engine = gateways("qwen3")
    for api in APIS:
        ask(gateway.url, api, True, tools=TOOLS, tool_choice="required", max_tokens=700, top_k=7, seed=3)
        seen = engine.seen
        assert json.loads(seen.structured_outputs.structural_tag)["type"] == "structural_tag"
        assert (seen.skip_special_tokens, seen.spaces_between_special_tokens) == (False, False)
        assert set(seen.stop_token_ids) == set(engine.model.eos_ids) and not seen.stop
        assert (seen.max_tokens, seen.top_k, seen.seed) == (700, 7, 3)
    prompt = gateway.turn.tokenizer.encode(gateway.turn.prompt, add_special_tokens=False).ids
    assert engine.prompt == prompt  # vLLM puts no second beginning before it


@pytest.mark.parametrize("stream", [True, False])
def test_usage_and_truncation(stream: bool, gateways: Any) -> None:
    gateway, engine = gateways("qwen3")
    reasons = {"chat": "length", "responses": "incomplete", "messages": "max_tokens"}
    for api in APIS:
        answer = ask(gateway.url, api, stream, tools=TOOLS, tool_choice="required", max_tokens=12, seed=1)
        assert answer["reason"] == reasons[api]
        assert answer["usage"] == (len(engine.prompt), 12)


def test_what_vllm_refuses_is_the_clients_error(gateways: Any) -> None:
    """Before the first byte: a status, in the shape of the API, with vLLM's own words."""
    gateway, _ = gateways("qwen3")
    body = {"messages": [{"role": "user", "content": "word " * 5000}], "max_tokens": 5}
    for path, shape in (("chat/completions", "error"), ("messages", "type")):
        answer = httpx2.post(f"{gateway.url}/v1/{path}", json=body, timeout=60)
        assert answer.status_code == 400, answer.text
        assert "4096" in answer.json()["error"]["message"] and shape in answer.json()
    body = {"messages": MESSAGES, "max_tokens": 5, "temperature": 0.5, "top_p": 7, "stream": True}
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 400 and "top_p" in answer.json()["error"]["message"]


@pytest.fixture(scope="session")
def by_ids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Engine]]:
    """A server without a tokenizer and without completions, and a gateway that records."""
    engine = Engine("qwen3", tiny("qwen3").write_folder(tmp_path_factory.mktemp("qwen3")))
    server = Server(served_app(engine, tokens_only=True))
    folder = str(tmp_path_factory.mktemp("rollouts"))
    gateway = Gateway(tiny("qwen3").chat, VLLMGenerate(server.url), rollouts=folder)
    yield gateway, engine
    gateway.close()
    server.close()


@pytest.mark.filterwarnings("ignore:the engine has no /tokenize")
def test_by_ids_alone(by_ids: Any) -> None:
    gateway, engine = by_ids
    assert gateway.engine.ids and gateway.engine.model == "m" and gateway.engine.context == 4096
    check_runs("vLLM's ids, qwen3, required", gateway, "required", temperature=1.0)
    assert engine.seen.detokenize is False and engine.seen.structured_outputs.structural_tag
    check_recorded(gateway, engine.logprobs)


@pytest.mark.filterwarnings("ignore:the engine has no /tokenize")
def test_log_probabilities_by_ids_alone(by_ids: Any) -> None:
    gateway, engine = by_ids
    check_told(gateway, engine.logprobs)


@pytest.fixture
def seeing_gateway(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Gateway, Engine, list[Any]]]:
    """vLLM's real endpoint that takes images. Its engine sees nothing, so the images are read by vLLM's own code and
    left out of the prompt, and the places that it tells are a stand-in."""
    images: list[Any] = []

    class Parser:
        def parse_image(self, url: str, uuid: Any) -> None:
            images.append(MediaConnector().fetch_image(url))

    class Tracker:
        def __init__(self, config: Any) -> None:
            images.clear()

        def create_parser(self) -> Parser:
            return Parser()

        async def resolve_items(self) -> tuple[None, None]:
            return None, None

    monkeypatch.setattr(tokens_serving, "AsyncMultiModalItemTracker", Tracker)
    monkeypatch.setattr(
        tokens_serving,
        "placeholder_ranges_from_engine_input",
        lambda given: {"image": [PlaceholderRangeInfo(offset=n, length=1) for n in range(len(images))]},
    )
    engine = Engine("qwen3", seeing().write_folder(tmp_path))
    engine.model = seeing()
    app = served_app(engine)
    server = Server(app)
    gateway = Gateway(seeing().chat, VLLM(server.url))
    yield gateway, engine, images
    gateway.close()
    server.close()


@pytest.mark.parametrize("api", APIS)
def test_images(api: str, seeing_gateway: Any) -> None:
    check_images(api, *seeing_gateway)


def test_images_and_a_grammar(seeing_gateway: Any) -> None:
    gateway, engine, _ = seeing_gateway
    check_images_and_a_grammar(gateway)
    assert engine.seen.structured_outputs.structural_tag


@pytest.mark.filterwarnings("ignore:the engine has no /tokenize")
def test_asking(gateways: Any) -> None:
    gateway, _ = gateways("qwen3")
    check_asking(gateway.chat, gateway.engine.url, temperature=1.0)
