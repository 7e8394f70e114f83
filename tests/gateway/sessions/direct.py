"""A client of chat completions without HTTP: its requests go to the session at once, so that many can be tried."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from clients import Chat, Items, Reply
from model import Model

from chatparsers.chat.chat import Chat as Model_
from chatparsers.gateway import Job
from chatparsers.gateway.apis import CHAT
from chatparsers.serving import OpenAIChat, read_chat
from chatparsers.sessions.session import NextAnswer, Sampled, Session
from chatparsers.sessions.walks import Walks


class Direct(Chat):
    """Plays against ``session``. ``anew``: how many requests that go on would have the same ids if the template was
    rendered and encoded anew, as most do."""

    name = "direct"

    def __init__(self, chat: Model_, model: Model, *, history: Any = "template") -> None:
        super().__init__("")
        self.session = Session(chat, "s", now=datetime(2025, 1, 1), history=history)
        self.chat, self.model = chat, model
        self.anew: list[bool] = []
        self._lasts: list[list[int]] = []

    def ask(self, system: str, items: Items, tools: Sequence[dict[str, Any]] = (), **more: Any) -> Reply:
        request = read_chat({"model": "m", **self.body(system, items, tools)})
        options = {name: value for name, value in request.prepare.items() if name != "messages"}
        step = self.session.ask(request.messages, options)
        self.check_cold(step, request.messages, options)
        turn, prompt = step.rollout.turn_alone, step.rollout.ids
        whole = self.chat.prepare(**request.prepare, now=self.session.now)
        again = self.model.tokenizer.encode(whole.prompt, add_special_tokens=False).ids
        self.anew.append(any(again[: len(ids)] == ids for ids in self._lasts))
        self.model.asked.append(prompt)
        ids, finish = self.model.write(Job(turn, prompt))
        self.model.sampled += len(ids)
        places = range(len(prompt), len(prompt) + len(ids))
        logprobs = self.model.network.logprobs([*prompt, *ids], places)
        self._lasts.append([*prompt, *ids])
        seeded = turn._replace(id_seed=f"{step.number}")
        writer = OpenAIChat("m", call_id=seeded.call_id)
        message = seeded.parse(ids) if finish == "stop" else cut(seeded, ids)
        answer = json.loads(json.dumps(writer.whole(message)))
        sampled = Sampled(ids, logprobs, [(len(ids), 3)], cut=finish == "length")
        self.session.answered(step, sampled, CHAT.echo(answer, {}))
        reply = self.reply(answer)
        reply.session = {"reason": step.reason, "forgiven": ",".join(sorted(step.forgiven))}
        return reply

    def check_cold(self, step: NextAnswer, messages: Sequence[Any], options: dict[str, Any]) -> None:
        """What the session remembers of earlier requests changes nothing."""
        session = self.session
        warm, session._walks = session._walks, Walks(session.root, session.keys)
        cold = session.ask(messages, options)
        session._walks = warm
        assert (cold.parent, cold.reason, cold.forgiven) == (step.parent, step.reason, step.forgiven)
        assert cold.rollout.ids == step.rollout.ids


def cut(turn: Any, ids: list[int]) -> Any:
    stream = turn.stream()
    stream.feed(ids)
    stream.finish("length")
    return stream.message
