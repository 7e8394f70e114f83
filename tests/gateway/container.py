"""Builds the image of deploy/, runs it before a scripted engine, and checks the unit there; run by hand.

    python tests/gateway/container.py                                  # with podman, from its own base image
    python tests/gateway/container.py --base IMAGE --wheels FOLDER     # from another one, with wheels not yet published

In the container: the command of the health check succeeds, a request with a key of the file is answered, one without
is 401, and SIGTERM ends it. The unit: what `systemd-analyze verify` says.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import httpx2
from scripted import Llama, Upstream
from servers import tiny_model

from chatparsers.templates.builtins import builtin_source

DEPLOY = HERE.parents[1] / "deploy"
ASK = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}
NAME = "chatparsers-gateway"


def healthcheck() -> list[str]:
    found: list[str] = json.loads(
        (DEPLOY / "Dockerfile").read_text().split("HEALTHCHECK CMD ")[1].split("\n")[0]
    )
    return found


def run(*command: str | Path, **options: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, **options
    )
    if done.returncode:
        raise SystemExit(f"{command}: {done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def unit() -> None:
    found = subprocess.run(
        ["systemd-analyze", "verify", DEPLOY / "chatparsers.service"], capture_output=True, text=True
    )
    print("systemd-analyze verify:", found.returncode, found.stderr.strip() or "nothing to say")


def image(base: str | None, wheels: Path | None) -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    if base is not None:
        text = re.sub(r"^FROM .*", f"FROM {base}", text)
    given = []
    if wheels is not None:
        text = re.sub(r"^(FROM .*)", r"\1\nENV PIP_FIND_LINKS=/wheels", text)
        given = ["--volume", f"{wheels.resolve()}:/wheels:ro"]
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "Dockerfile").write_text(text)
        run(
            "podman",
            "build",
            "--isolation=chroot",
            "--network=host",
            "--format=docker",
            *given,
            "-t",
            NAME,
            place,
        )
    size = json.loads(run("podman", "image", "inspect", NAME))[0]["Size"]
    print(f"built: {size / 1e6:.0f} MB, base {base or 'its own'}")


def container(options: list[str]) -> None:
    model = tiny_model("qwen3")
    engine = Upstream(Llama(["Hello"], model.tokenizer, gives_ids=False))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "keys").write_text("secret\n")
        (folder / "model").mkdir()
        (folder / "model" / "chat_template.jinja").write_text(builtin_source("qwen3"))
        (folder / "model" / "tokenizer.json").write_text(model.tokenizer.to_str())
        (folder / "model" / "tokenizer_config.json").write_text("{}")
        mounts = ["-v", f"{folder}/keys:/run/secrets/keys:ro", "-v", f"{folder}/model:/model:ro"]
        command = ["--upstream", engine.url, "--upstream-kind", "llama-server", "--model", "/model"]
        command += ["--host", "0.0.0.0", "--api-key-file", "/run/secrets/keys"]
        id = run(
            "podman",
            "run",
            "-d",
            "--network=host",
            *options,
            "--read-only",
            "--tmpfs=/tmp",
            *mounts,
            NAME,
            *command,
        ).split()[-1]
        try:
            check = ["podman", "exec", id, *healthcheck()]
            until = time.monotonic() + 120
            while subprocess.run(check, capture_output=True).returncode:
                assert time.monotonic() < until, run("podman", "logs", id)
                time.sleep(1)
            print("health check: healthy")
            url = "http://127.0.0.1:8000/v1/chat/completions"
            whole = httpx2.post(url, json=ASK, headers={"authorization": "Bearer secret"}, timeout=30)
            print("with the key:", whole.status_code, whole.json()["choices"][0]["message"]["content"])
            print("without:", httpx2.post(url, json=ASK, timeout=30).status_code)
            print("user:", run("podman", "exec", id, "id", "-un").strip())
            begun = time.monotonic()
            run("podman", "stop", "-t", "70", id)
            state = json.loads(run("podman", "inspect", id))[0]["State"]
            said = [line for line in run("podman", "logs", id).splitlines() if "end" in line]
            print(f"SIGTERM: exit code {state['ExitCode']} after {time.monotonic() - begun:.1f} s; {said}")
        finally:
            run("podman", "rm", "-f", id)
            engine.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base")
    parser.add_argument("--wheels", type=Path)
    parser.add_argument(
        "--option", action="append", default=[], help="of podman run, such as --option=--cgroups=disabled"
    )
    given = parser.parse_args()
    unit()
    image(given.base, given.wheels)
    container(given.option)


if __name__ == "__main__":
    main()
