"""The gateway: an HTTP server with three chat APIs over an engine that only completes text.

    app = create_app(chatparsers.load("model/"), LlamaServer("http://127.0.0.1:8080"))

`create_app` makes an ASGI application; ``chatparsers serve`` runs it. It renders the chat template, sends the prompt,
the grammar and the stops to the engine, and reads what the engine writes back. It keeps nothing between requests, so
any number of gateways can run side by side. It needs the extra ``gateway``.
"""

from __future__ import annotations

from .app import create_app
from .engine import Batch, End, Engine, EngineError, Job
from .llama_server import LlamaServer
from .ollama import Ollama
from .openai_completions import VLLM, OpenAICompletions, SGLang, SGLangGenerate, VLLMGenerate
from .settings import Settings

__all__ = [
    "VLLM",
    "Batch",
    "End",
    "Engine",
    "EngineError",
    "Job",
    "LlamaServer",
    "Ollama",
    "OpenAICompletions",
    "SGLang",
    "SGLangGenerate",
    "Settings",
    "VLLMGenerate",
    "create_app",
]
