"""Models, keys and settings of what a gateway is to be."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..chat.chat import Chat
from ..cli.files import Refused
from ..cli.request import chat_of
from ..gateway.engine import Engine, EngineError
from ..gateway.http_engine import HttpEngine
from ..gateway.keys import Key, digest_of
from ..gateway.kind import kind_at
from ..gateway.llama_server import LlamaServer
from ..gateway.models import Model
from ..gateway.ollama import Ollama
from ..gateway.openai_completions import VLLM, OpenAICompletions, SGLang, SGLangGenerate, VLLMGenerate
from .config import Config
from .settings import settings_of
from .upstreams import Upstreams

KINDS: dict[str, type[HttpEngine]] = {
    "llama-server": LlamaServer,
    "vllm": VLLM,
    "vllm-generate": VLLMGenerate,
    "sglang": SGLang,
    "sglang-generate": SGLangGenerate,
    "ollama": Ollama,
    "openai-completions": OpenAICompletions,
}
"""The engines over HTTP by the names of ``--kind``."""


class Team:
    """Makes what is served. A model whose part of the file is as before stays the same."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[dict[str, Any], Model]] = {}

    def models(self, config: Config) -> list[Model]:
        """The models. It reads their files, and asks engines what they are. Raises `Refused`, or `EngineError`."""
        made: dict[str, tuple[dict[str, Any], Model]] = {}
        for name in config.models:
            arguments = config.model(name)
            before = self._made.get(name)
            same = before is not None and before[0] == vars(arguments)
            made[name] = before if same and before is not None else (vars(arguments), _model(arguments))
        self._made = made
        return [model for _, model in made.values()]


def keys(config: Config) -> list[Key]:
    """The keys with names."""
    names = {
        alias: config.model(name).name
        for name, values in config.models.items()
        for alias in (name, config.model(name).name, *values.get("aliases", ()))
    }
    return [_key(name, values, names) for name, values in config.keys.items()]


def _key(name: str, values: Mapping[str, Any], models: Mapping[str, str]) -> Key:
    secret, granted = values.get("secret"), values.get("granted")
    return Key(
        name,
        frozenset() if secret is None else frozenset([digest_of(secret)]),
        values.get("secret_file"),
        None if granted is None else frozenset(models[one] for one in granted),
        values.get("requests_per_minute"),
        values.get("tokens_per_day"),
        values.get("at_once"),
        values.get("admin", False),
    )


def _model(arguments: Namespace) -> Model:
    chat, engine, name = _local(arguments) if arguments.gguf is not None else _remote(arguments)
    aliases = tuple(getattr(arguments, "aliases", ()))
    return Model(chat, engine, settings_of(arguments, name, None), aliases)


def _remote(arguments: Namespace) -> tuple[Chat, Engine, str]:
    several = getattr(arguments, "upstreams", None) if arguments.url is None else None
    urls = several or ([] if arguments.url is None else [arguments.url])
    if not urls:
        raise Refused("which engine? Say its URL, or --gguf FILE to run a model in this process")
    if arguments.model is None:
        raise Refused(
            "which model? Say --model with its folder, its tokenizer_config.json or its chat template"
        )
    chat = chat_of(arguments.model, arguments, tokenizer=arguments.tokenizer)
    key = arguments.upstream_key
    kind = arguments.kind if arguments.kind != "auto" else _kind(urls, key, arguments.wait)
    if kind is None:
        raise Refused(f"what runs at {urls[0]}? Say --kind, one of {', '.join(KINDS)}")
    engines = [
        KINDS[kind](url, model=arguments.upstream_model, api_key=key, stall=arguments.stall) for url in urls
    ]
    draining = getattr(arguments, "draining", ())
    engine: Engine = engines[0] if several is None else Upstreams(engines, draining)
    path = Path(arguments.model)
    known = path.stem if path.is_file() else path.name
    return chat, engine, arguments.upstream_model or known


def _kind(urls: Sequence[str], key: str | None, wait: float) -> str | None:
    """The kind of the engines, as the first that answers says. Raises `EngineError` if none does."""
    for url in urls[:-1]:
        with suppress(EngineError):
            return kind_at(url, key, 0.0)
    return kind_at(urls[-1], key, wait)


def _local(arguments: Namespace) -> tuple[Chat, Engine, str]:
    if arguments.url is not None:
        raise Refused("--gguf runs the model in this process: leave the URL out")
    try:
        from ..gateway.local import Local
    except ModuleNotFoundError as error:
        raise Refused(
            f"--gguf needs llama-cpp-python, and {error.name} is not installed: pip install llama-cpp-python"
        ) from error
    chat = chat_of(arguments.model or arguments.gguf, arguments, tokenizer=arguments.tokenizer)
    engine = Local(
        arguments.gguf,
        context=arguments.context,
        gpu_layers=arguments.gpu_layers,
        threads=arguments.threads,
    )
    return chat, engine, Path(arguments.gguf).stem
