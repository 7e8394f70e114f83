"""vLLM and SGLang take each response template that is written for servers, and read a format's own messages by it.

What is real: their checks of a checkpoint's template, and their copies of transformers' parser of messages.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from stand_ins import stand_in
from template_messages import NAMES, TOOLS, in_short, texts

from chatparsers import get_format
from chatparsers.interop import write_response_template

HOSTS = {"vllm": "vllm.parser", "sglang": "sglang.srt.parser"}


@pytest.fixture(scope="module", params=HOSTS)
def host(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What checks a template, and what reads a message by it."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed: tests/hosts/install {request.param}")
    if request.param == "sglang":
        stand_in()
    parser = HOSTS[request.param]
    with warnings.catch_warnings():  # a host's own are its own
        warnings.simplefilter("ignore")
        checks = importlib.import_module(f"{parser}.response_template").validate_response_template_for_serving
        return checks, importlib.import_module(f"{parser}.chat_parsing.response_parser").parse_response


@pytest.mark.parametrize("name", NAMES)
def test_servers_take_what_is_written_for_them(name: str, host: Any) -> None:
    checks, parse_response = host
    format = get_format(name)
    written = write_response_template(format, "<|assistant|>", for_="servers")
    checks(written.spec)
    for text, said in texts(format, written):
        assert in_short(parse_response(text, written.spec, prefix="", tools=TOOLS)) == said
