"""A completion server that takes and gives token ids, as vLLM's: `/v1/completions` with `return_token_ids`, and
`/inference/v1/generate`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

Engine = Callable[[list[int], int, Sequence[int]], tuple[list[int], list[float]]]
"""Ids and their logprobs, for a prompt, at most so many tokens and the ids that end them."""


@contextmanager
def served(engine: Engine) -> Iterator[str]:
    """The address of a server over ``engine``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            given = body.get("sampling_params", body)
            stops, most = given["stop_token_ids"], given.get("max_tokens") or 300
            ids, logprobs = engine(body.get("prompt") or body["token_ids"], most, stops)
            told = [{"token": f"token_id:{id}", "logprob": p} for id, p in zip(ids, logprobs, strict=True)]
            choice = {
                "token_ids": ids,
                "logprobs": {"token_logprobs": logprobs, "content": told},
                "finish_reason": "stop" if ids and ids[-1] in stops else "length",
            }
            self.answered({"choices": [choice]})

        def do_GET(self) -> None:
            self.answered({"data": []})

        def answered(self, found: Any) -> None:
            answer = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def complete(url: str, rollout: Any, most: int = 300) -> Any:
    """One answer of the server: it is given to the rollout."""
    body = {
        "prompt": rollout.ids,
        "max_tokens": most,
        "stop_token_ids": list(rollout.turn.stop_ids),
        "return_token_ids": True,
    }
    request = Request(f"{url}/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        choice = json.load(answer)["choices"][0]
    return rollout.sampled(choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"])
