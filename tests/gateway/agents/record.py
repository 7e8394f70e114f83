"""Has a coding agent work through a gateway that records it, with a sub-agent and a compaction; run by hand.

    python tests/gateway/agents/record.py codex --prefix DIR     # where npm installed it; or claude, opencode, qwen

The model is the random one of `sessions/model.py`, which says what a script wants: so each id that was sampled has a
log probability, and the rows are judged by running them through the model once more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from play import ASK, call, command, steps

sys.path.insert(0, str(Path(__file__).parents[1] / "sessions"))

import httpx2
from model import Model, chat_of
from servers import Server
from test_behaviours import check_rows, rows
from tokenizers import Tokenizer

from chatparsers.gateway import Job, Settings, create_app

LOOK = "Look into note.txt and tell its word."
AFTER = "Which word is in it now?"
SUB = {
    "claude": {"name": "Agent", "description": "Looks", "prompt": LOOK, "subagent_type": "general-purpose"},
    "codex": {"name": "spawn_agent", "message": LOOK},
    "opencode": {"name": "task", "description": "Looks", "prompt": LOOK, "subagent_type": "general"},
    "qwen": {"name": "agent", "description": "Looks", "prompt": LOOK, "subagent_type": "general-purpose"},
}
"""The call that starts a sub-agent."""


class Script:
    """What the model says: first it starts a sub-agent, which takes one step; then come the steps of `play`."""

    def __init__(self, agent: str, file: str, tokenizer: Any) -> None:
        self.agent, self.tokenizer, self.steps = agent, tokenizer, steps(agent, file)
        self.look, self.said = self.steps[0], list[str]()

    def __call__(self, job: Job) -> tuple[dict[str, Any], str]:
        text, names = self.tokenizer.decode(job.prompt, skip_special_tokens=False), job.turn.tools.names()
        results = text.count("<tool_response>\n")
        question = text.rpartition("<|im_start|>user\n")[2]
        if not names or ("summary" in question.lower()[-20_000:] and "<tool_response>" not in question):
            who, said = "summary", "The word of the file was changed to goodbye."
        elif ASK in text:
            who = "agent"
            sub = dict(SUB[self.agent])
            name = next((one for one in names if one.endswith(sub["name"])), None)
            del sub["name"]
            first = [call(name, **sub)] if name else []
            wait = self.waits(names, text) if self.agent == "codex" and name else []
            plan = [*first, *wait, *self.steps]
            said = plan[results] if results < len(plan) else "Done."
        elif LOOK in text:
            who, said = "sub-agent", "It is hello." if results else self.look
        else:
            who, said = "later", "goodbye"
        self.said.append(who)
        before, mark, rest = said.partition("<tool_call>\n")
        if not mark:
            return {"role": "assistant", "content": said}, "stop"
        asked = json.loads(rest.removesuffix("\n</tool_call>"))
        function = {"name": asked["name"], "arguments": json.dumps(asked["arguments"])}
        made = {"id": f"call{len(self.said):05}", "type": "function", "function": function}
        return {"role": "assistant", "content": before, "tool_calls": [made]}, "stop"

    def waits(self, names: Sequence[str], text: str) -> list[str]:
        """Codex waits for its sub-agents by their ids, which the result of the first call has."""
        name = next(one for one in names if one.endswith("wait_agent"))
        id = text.rpartition('"agent_id":"')[2].partition('"')[0]
        return [call(name, targets=[id])]


def again(agent: str, words: list[str]) -> list[list[str]]:
    """The commands after the first: a compaction, where the agent has one for it, and a question."""
    bare = [word for word in words if word != ASK]
    if agent == "claude":
        return [[*bare, "/compact", "--continue"], [*bare, AFTER, "--continue"]]
    if agent == "opencode":
        return [[*bare, "--continue", AFTER]]
    if agent == "codex":  # it compacts by itself before the question
        return [
            [
                bare[0],
                "exec",
                "resume",
                "--last",
                "-c",
                "model_auto_compact_token_limit=1000",
                *bare[2:],
                AFTER,
            ]
        ]
    return [[*bare, "/compress", "--continue"], [*bare, AFTER, "--continue"]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("agent", choices=sorted(SUB))
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, help="of a real model; else a token is a byte")
    parser.add_argument("--seconds", type=int, default=120)
    given = parser.parse_args()
    tokenizer = None if given.tokenizer is None else Tokenizer.from_file(str(given.tokenizer))
    with tempfile.TemporaryDirectory() as place:
        home, work, runs = (Path(place) / name for name in ("home", "work", "runs"))
        home.mkdir()
        work.mkdir()
        note = work / "note.txt"
        note.write_text("hello\n")
        subprocess.run(["git", "init", "-q", str(work)], check=False)
        chat = chat_of("qwen3", tokenizer)
        script = Script(given.agent, str(note), chat.tokenizer)
        model = Model(chat, script, odd=True)
        server = Server(create_app(chat, model, Settings(rollouts=str(runs), drop_unsupported=True)))
        words, env = command(given.agent, given.prefix, home, f"{server.url}/sessions/run")
        for one in [words, *again(given.agent, words)]:
            done = subprocess.run(
                ["timeout", str(given.seconds), *one],
                env=env,
                cwd=work,
                text=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
            print(f"{one[-1]!r}: {done.returncode}", done.stdout[-300:], done.stderr[-300:])
        told = httpx2.get(f"{server.url}/sessions/run", timeout=60).json()
        for twins in ("keep", "context"):
            found = rows(server, "run", twins=twins)
            counted, gap = check_rows(model, found)
            shown = [(row["line"], row["segment"], row["answers"], sum(row["loss_mask"])) for row in found]
            print(f"twins={twins}: {len(found)} rows, {counted} of {model.sampled} ids count, gap {gap}")
            print(*shown, sep="\n")
        print({name: value for name, value in told.items() if name != "rewards"}, "file:", note.read_text())
        log = [json.loads(line) for line in (runs / "run.jsonl").read_text("utf-8").splitlines()]
        answers = sorted((line for line in log if line["t"] == "answer"), key=lambda line: line["answer"])
        for line, who in zip(answers, script.said, strict=False):
            kept = "answer", "parent", "line", "reason", "forgiven", "delivered"
            print(who, *(f"{name}={line[name]}" for name in kept), f"given={len(line['given'])}")
        server.close()


if __name__ == "__main__":
    main()
