"""Has a coding agent do a small task through the gateway, before an engine that follows a script; run by hand.

    python tests/gateway/agents/play.py codex --prefix DIR     # where npm installed it; or claude, cline, …
    python tests/gateway/agents/play.py aider --prefix DIR     # an environment of Python's

    python tests/gateway/agents/play.py codex --prefix DIR --engine http://127.0.0.1:8080 --model model.gguf

The task: read a file, change it by a call, run a command, say done. What the agent sent is kept beside this file, with
its long texts cut and its paths replaced; `test_agents.py` sends it again.

With ``--engine`` a real llama-server writes the answers. Then the task is `HELLO`, and the agent is told to send a
small prompt, as `small` says. What it sent is kept in the folder ``real``, with each text that the model wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from scripted import Llama, Upstream, Wire, forced, llama_end, llama_piece
from servers import Server

import chatparsers
from chatparsers.gateway import LlamaServer, Settings, create_app
from chatparsers.testing.tiny import tiny_model

ASK = "Change hello to goodbye in note.txt, show it, and say done."
HELLO = "Write the file hello.py. It has one line, which prints the word hello."
LONGEST = 200
AGENTS = ("aider", "claude", "cline", "codex", "opencode", "qwen")


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def steps(agent: str, file: str) -> list[str]:
    """What the model writes, turn by turn."""
    show = {"command": f"cat {file} && echo ran"}
    if agent == "codex":
        sed = f"sed -i s/hello/goodbye/ {file}"
        return [call("exec_command", cmd=cmd) for cmd in (f"cat {file}", sed, show["command"])]
    if agent == "opencode":
        edit = call("edit", filePath=file, oldString="hello", newString="goodbye")
        return [call("read", filePath=file), edit, call("bash", **show, description="Shows it")]
    if agent == "claude":
        edit = call("Edit", file_path=file, old_string="hello", new_string="goodbye")
        return [call("Read", file_path=file), edit, call("Bash", **show, description="Shows it")]
    if agent == "cline":
        edit = call("editor", path=file, old_text="hello", new_text="goodbye")
        read = call("read_files", files=[{"path": file}])
        return [read, edit, call("run_commands", commands=[show["command"]])]
    if agent == "aider":
        return ["note.txt\n```\n<<<<<<< SEARCH\nhello\n=======\ngoodbye\n>>>>>>> REPLACE\n```\n"]
    edit = call("edit", file_path=file, old_string="hello", new_string="goodbye")
    run = call("run_shell_command", **show, description="Shows it", is_background=False)
    return [call("read_file", file_path=file), edit, run]


class Plays:
    """An engine that does one step for each answer of a tool in the prompt, and says done."""

    def __init__(self, steps: list[str], tokenizer: Any) -> None:
        self.steps, self.probe = steps, Llama(tokenizer=tokenizer, gives_ids=False)
        self.sent: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if forced(body) is not None or body.get("n_predict") == 1:
            await self.probe(path, body, wire)
            return
        asked = next((one for _, one in reversed(self.sent) if one.get("tools")), self.sent[-1][1])
        turns = results(asked.get("messages") or asked["input"])
        text = self.steps[turns] if turns < len(self.steps) else "Done."
        await wire.head()
        for start in range(0, len(text), 7):
            await wire.send(llama_piece(text[start : start + 7]))
            await asyncio.sleep(0.001)
        await wire.send(llama_end())
        await wire.end()


def results(said: list[dict[str, Any]]) -> int:
    """How many results of tools a history has, in any of the three APIs."""
    parts = [part for one in said if isinstance(one.get("content"), list) for part in one["content"]]
    kinds = ("function_call_output", "tool_result")
    found = [one for one in (*said, *parts) if one.get("role") == "tool" or one.get("type") in kinds]
    return len(found)


class Records:
    """The gateway, and the bodies that came to it."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.state = app.state
        self.sent: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        raw = bytearray()

        async def heard() -> Any:
            event = await receive()
            raw.extend(event.get("body", b""))
            if raw and event["type"] == "http.request" and not event.get("more_body"):
                self.sent.append((scope["path"], json.loads(raw)))
            return event

        async def said(event: Any) -> None:
            if event["type"] == "http.response.start":
                print(scope["method"], scope["path"], event["status"])
            elif event["type"] == "http.response.body" and b'"error"' in event.get("body", b"")[:200]:
                print(event["body"][:400])
            await send(event)

        await self.app(scope, heard, said)


class Heard(LlamaServer):
    """A real llama-server. ``said`` has the length of each prompt and the text that the model wrote, as they come."""

    def __init__(self, url: str) -> None:
        super().__init__(url, stall=3600)
        self.said: list[dict[str, Any]] = []

    def reading(self) -> Any:
        read = super().reading()
        one: dict[str, Any] = {"prompt": 0, "cached": 0, "completion": 0, "text": ""}
        self.said.append(one)

        def heard(data: Any) -> Any:
            batch = read(data)
            if batch is not None:
                one["text"] += batch.text
                if batch.end is not None:
                    counts = {name: getattr(batch.end, name) for name in ("prompt", "cached", "completion")}
                    one.update(counts)
                    print(one, flush=True)
            return batch

        return heard


BRIEF = "You are a coding agent. Do what the user asks with your tools: call one."


def small(agent: str, words: list[str], env: dict[str, str]) -> None:
    """Changes how an agent is started, by its own options: a short system prompt, and the tools that a task needs."""
    if agent == "aider":
        words[words.index("--edit-format") + 1] = "whole"
        words += ["--map-tokens", "0", "--no-suggest-shell-commands"]
    elif agent == "claude":
        words[1:1] = ["--disable-slash-commands", "--system-prompt", BRIEF, "--tools", "Write"]
    elif agent == "codex":
        given = Path(env["HOME"]) / "brief.md"
        given.write_text(BRIEF, encoding="utf-8")
        off = ["apps", "multi_agent", "plugins", "goals", "image_generation", "tool_suggest", "hooks"]
        said = [f'model_instructions_file="{given}"', 'web_search="disabled"', "tools.view_image=false"]
        said += [f"features.{name}=false" for name in off]
        words[2:2] = [word for one in said for word in ("-c", one)]
    elif agent == "opencode":
        config = json.loads(env["OPENCODE_CONFIG_CONTENT"])
        mode = {"prompt": BRIEF, "tools": {"*": False, "write": True}}
        env["OPENCODE_CONFIG_CONTENT"] = json.dumps({**config, "agent": {"build": mode}})
    elif agent == "qwen":
        words[1:1] = ["--bare", "--system-prompt", BRIEF, "--core-tools", "write_file"]


def command(
    agent: str, prefix: Path, home: Path, url: str, ask: str = ASK
) -> tuple[list[str], dict[str, str]]:
    """How an agent is started, with settings in a home of its own."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "NO_COLOR": "1",
        "XDG_CONFIG_HOME": str(home / ".config"),
    }
    if agent == "codex":
        config = home / ".codex"
        config.mkdir()
        lines = ['model = "mine"', 'model_provider = "local"', "[model_providers.local]", 'name = "local"']
        (config / "config.toml").write_text(
            "\n".join([*lines, f'base_url = "{url}/v1"', 'wire_api = "responses"\n'])
        )
        full = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", ask]
        return [str(prefix / "node_modules/.bin/codex"), "exec", *full], env
    if agent == "opencode":
        options = {"baseURL": f"{url}/v1", "apiKey": "none"}
        npm = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"mine": {"name": "mine"}}}
        given = {
            "model": "local/mine",
            "small_model": "local/mine",
            "provider": {"local": npm},
            "autoupdate": False,
        }
        env["OPENCODE_CONFIG_CONTENT"] = json.dumps({**given, "permission": "allow"})
        return [str(prefix / "node_modules/.bin/opencode"), "run", ask], env
    if agent == "claude":
        env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "none", "ANTHROPIC_MODEL": "mine"}
        env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
        return [str(prefix / "node_modules/.bin/claude"), "--dangerously-skip-permissions", "-p", ask], env
    env |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "mine"}
    if agent == "aider":
        quiet = ["--yes", "--no-git", "--no-check-update", "--analytics-disable", "--no-show-model-warnings"]
        edit = ["--edit-format", "diff", "--message", ask, "hello.py" if ask == HELLO else "note.txt"]
        env["OPENAI_API_BASE"] = f"{url}/v1"
        return [str(prefix / "bin/aider"), "--model", "openai/mine", *quiet, *edit], env
    if agent == "cline":
        program = str(prefix / "node_modules/.bin/cline")
        named = ["-p", "openai", "-k", "none", "-m", "mine", "-b", f"{url}/v1"]
        subprocess.run([program, "auth", *named], env=env, check=True, timeout=60)
        return [program, "-P", "openai", "-m", "mine", ask], env
    return [str(prefix / "node_modules/.bin/qwen"), "--yolo", "--auth-type", "openai", "-p", ask], env


def shortened(value: Any, paths: dict[str, str], longest: int = LONGEST) -> Any:
    """A body whose long texts are cut and whose paths are replaced."""
    if isinstance(value, dict):
        return {key: shortened(inner, paths, longest) for key, inner in value.items()}
    if isinstance(value, list):
        return [shortened(inner, paths, longest) for inner in value]
    if isinstance(value, str):
        for path, name in paths.items():
            value = value.replace(path, name)
        value = re.sub(
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,}", "id", value
        )
        return value if len(value) <= longest or value.startswith("{") else f"{value[:longest]}…"
    return value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("agent", choices=AGENTS)
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--engine")
    parser.add_argument("--model", help="the file of the model that the engine runs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        home, work = Path(place) / "home", Path(place) / "work"
        home.mkdir()
        work.mkdir()
        subprocess.run(["git", "init", "-q", str(work)], check=False)
        paths = {str(work): "/work", str(home): "/home/user", place: "/tmp/place"}
        if given.engine is None:
            scripted(given.agent, given, home, work, paths)
        else:
            real(given.agent, given, home, work, paths)


def scripted(agent: str, given: Any, home: Path, work: Path, paths: dict[str, str]) -> None:
    """The task by a script, and what was sent, if it was done."""
    note = work / "note.txt"
    note.write_text("hello\n")
    tiny = tiny_model("qwen3")
    plays = Plays(steps(agent, str(note)), tiny.tokenizer)
    engine = Upstream(plays, context=200_000)
    app = Records(create_app(tiny.chat, LlamaServer(engine.url), Settings(drop_unsupported=True)))
    plays.sent = app.sent
    server = Server(app)
    run(*command(agent, given.prefix, home, server.url), work, given.seconds)
    server.close()
    engine.close()
    ran = any("ran" in json.dumps(body) and "goodbye" in json.dumps(body) for _, body in app.sent)
    print("file:", note.read_text().strip(), "| command seen:", ran, "| requests:", len(app.sent))
    kept = [{"path": path, "body": shortened(body, paths)} for path, body in app.sent]
    kept = [one for one in kept if one["body"].get("tools") or agent == "aider"]
    if (ran or agent == "aider") and note.read_text() == "goodbye\n":  # aider runs no command
        write(HERE / f"{agent}.json", [kept[0], kept[-1]][: len(kept)])


def real(agent: str, given: Any, home: Path, work: Path, paths: dict[str, str]) -> None:
    """The small task by a real model, and what was sent and written, done or not."""
    heard = Heard(given.engine)
    settings = Settings(drop_unsupported=True, lenient_calls=True, max_tokens=400)
    app = Records(create_app(chatparsers.load(given.model), heard, settings))
    server = Server(app, patience=600)
    words, env = command(agent, given.prefix, home, server.url, HELLO)
    small(agent, words, env)
    begin = time.monotonic()
    run(words, env, work, given.seconds)
    took = time.monotonic() - begin
    server.close()
    made = work / "hello.py"
    printed = ""
    if made.exists():
        ran = subprocess.run([sys.executable, made], capture_output=True, text=True, timeout=20)
        printed = ran.stdout
        print(made.read_text(), ran.stdout, ran.stderr)
    print("prints:", repr(printed), "| seconds:", round(took), "| requests:", len(app.sent))
    sent = [{"path": path, "body": shortened(body, paths)} for path, body in app.sent]
    written = shortened(
        [one for one in heard.said if one["prompt"] != 1], paths, 10_000
    )  # without the probes
    done = printed.strip().lower().startswith("hello")
    result = {"model": Path(given.model).name, "done": done, "seconds": round(took)}
    write(HERE / "real" / f"{agent}.json", {**result, "sent": sent, "written": written})


def run(words: list[str], env: dict[str, str], work: Path, seconds: int) -> None:
    try:
        done = subprocess.run(
            words,
            env=env,
            cwd=work,
            timeout=seconds,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        print(done.stdout[-1500:], done.stderr[-1500:])
    except subprocess.TimeoutExpired as late:
        print("late", (late.stdout or b"")[-1500:], (late.stderr or b"")[-1500:])


def write(file: Path, found: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
