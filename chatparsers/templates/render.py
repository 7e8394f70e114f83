"""A chat template: rendering conversations, its generation prompt, and the assistant turn cut out of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..core.errors import TemplateError
from .capabilities import Capabilities, Prober
from .continuation import cut_at_tag, tagged
from .environment import compile_source, strftime_now
from .exact import to_json
from .failure import explain
from .messages import Wants, described, own, reasoning_of, shape
from .turns import FOLLOW_UP, NEEDLE, Renderings, common, cut, outside_marker, trailer

if TYPE_CHECKING:
    import jinja2

__all__ = ["Template"]


class Template:
    """A model's chat template, in the sandbox that transformers uses.

    ``bos_token``, ``eos_token``: what the template writes for them. ``name``: what errors call it.
    Raises ``TemplateError`` where the source is not valid Jinja2.
    """

    def __init__(
        self, source: str, *, bos_token: str = "", eos_token: str = "", name: str = "<template>"
    ) -> None:
        self.source = source
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.name = name
        self._prober = Prober(self._write, name)
        self._capabilities: Capabilities | None = None
        self._compiled()

    def __repr__(self) -> str:
        return f"Template({self.name!r}, {len(self.source)} characters)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.source, self.bos_token, self.eos_token, self.name)

    @property
    def wants(self) -> Wants:
        """The shape in which this template reads calls, reasoning and content; found by rendering needles."""
        return self._prober.full

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **variables: Any,
    ) -> str:
        """The conversation as the model reads it.

        ``messages``, ``tools``: OpenAI-shaped; none of them is changed. Arguments may be JSON text or
        objects, reasoning may stand under ``reasoning_content``, ``reasoning`` or ``thinking``: they are
        given to the template in the shape it reads. ``continue_final_message``: the text ends where the last
        message's content (or else its reasoning) ends, for the model to go on; no generation prompt is added
        then. ``variables``: whatever else the template knows, such as ``enable_thinking``. Raises
        ``TemplateError`` with the message's index where that can be told.
        """
        if continue_final_message:
            messages = tagged(messages, self.name)
        wants = self._wants_for(messages)
        shaped = shape(messages, wants, self.name)
        if continue_final_message:
            variables["continue_final_message"] = True
        text = self._write(
            shaped,
            wants,
            None if tools is None else own(list(tools)),
            add_generation_prompt and not continue_final_message,
            own(variables),
        )
        return cut_at_tag(text, self.name, len(messages) - 1) if continue_final_message else text

    def generation_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """What ``add_generation_prompt`` adds behind these messages; ``""`` where nothing is.

        Where a template writes its header whether asked or not (Command R7B, Firefunction), it is that
        header.
        """
        variables = self._at_one_time(variables)
        tools = None if tools is None else list(tools)
        plain = self.render(messages, tools=tools, **variables)
        prompt = self.render(messages, tools=tools, add_generation_prompt=True, **variables)
        if prompt == plain:
            tail = trailer(*self._followed(messages, self._wants_for(messages), tools, variables))
            return tail if prompt.endswith(tail) else ""
        if prompt.startswith(plain):
            return prompt[len(plain) :]
        first = [{"role": "user", "content": "Hello"}]
        usual = self.generation_prompt(first, tools=tools, **variables) if list(messages) != first else ""
        if usual and prompt.endswith(usual):
            return usual
        return prompt[outside_marker(plain, outside_marker(prompt, common(plain, prompt))) :]

    def assistant_turn(
        self,
        message: Mapping[str, Any],
        *,
        history: Sequence[Mapping[str, Any]] | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        thinking: bool | None = None,
        **variables: Any,
    ) -> tuple[str, str]:
        """The prompt, and the text with which a model that reads it would have answered ``message``.

        ``history``: the messages before it; one user message where None. The wire text ends with the
        end-of-turn marker, if the template writes one. The prompt is ``render(history,
        add_generation_prompt=True)``, but ends earlier where it prefills what the template does not show of
        this answer: see ``templates.turns`` for the rules. What the template loses is not in the wire text:
        see ``probe``. Raises ``TemplateError``.
        """
        history = [{"role": "user", "content": "Hello"}] if history is None else list(history)
        variables = self._at_one_time({**self.thinking_kwargs(thinking), **variables})
        wants = self._wants_for([*history, message])
        definitions = None if tools is None else own(list(tools))

        def render(messages: Sequence[Mapping[str, Any]], generate: bool = False) -> str:
            return self._write(
                shape(messages, wants, self.name), wants, definitions, generate, own(variables)
            )

        needle, followed = self._followed(history, wants, definitions, variables)
        texts = Renderings(
            plain=render(history),
            prompt=render(history, generate=True),
            full=render([*history, message]),
            needle=needle,
            followed=followed,
        )
        content = message.get("content")
        return cut(texts, content if isinstance(content, str) else "", reasoning_of(message))

    def thinking_kwargs(self, thinking: bool | None) -> dict[str, Any]:
        """The variables by which this template turns thinking on or off, each known to change its rendering.

        ``{}`` for None (the template's default) and for a template without a switch. Where there is only an
        effort that cannot be none, thinking off is the least effort.
        """
        return self._prober.thinking(thinking)

    def probe(self) -> Capabilities:
        """What this template can show, found by some 50 renderings in the first call."""
        if self._capabilities is None:

            def turn(answer: Mapping[str, Any], variables: Mapping[str, Any]) -> tuple[str, str]:
                return self.assistant_turn(answer, **variables)

            try:
                generation_prompt = self.generation_prompt([{"role": "user", "content": "Hello"}])
            except TemplateError:
                generation_prompt = ""
            self._capabilities = self._prober.capabilities(turn, generation_prompt)
        return self._capabilities

    def _compiled(self) -> jinja2.Template:
        from jinja2 import TemplateError as JinjaError

        try:
            return compile_source(self.source)
        except JinjaError as error:
            raise explain(error, self.name) from error

    def _wants_for(self, messages: Iterable[Mapping[str, Any]]) -> Wants:
        """As much of the shape as these messages need; the rest is not probed."""
        known = [message for message in messages if isinstance(message, Mapping)]
        if any(reasoning_of(message) for message in known):
            return self._prober.full
        return (
            self._prober.calls if any(message.get("tool_calls") for message in known) else self._prober.plain
        )

    def _write(
        self,
        messages: list[dict[str, Any]],
        wants: Wants,
        tools: list[dict[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> str:
        given: dict[str, Any] = {
            "messages": messages,
            "tools": tools or (None if wants.no_tools == "none" else []),
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
        }
        if wants.functions:
            clock = variables.get("strftime_now", strftime_now)
            given["functions"] = to_json([tool.get("function", tool) for tool in tools or ()], indent=4)
            given["datetime"] = clock("%Y-%m-%d %H:%M:%S GMT")
        given.update(variables)
        try:
            return self._compiled().render(given)
        except TemplateError:
            raise
        except Exception as error:  # a template may raise anything: what it does not expect it trips over
            full = described(tools)
            if full == tools:
                raise explain(error, self.name, messages) from error
        return self._write(messages, wants, full, add_generation_prompt, variables)

    def _followed(
        self,
        history: Sequence[Mapping[str, Any]],
        wants: Wants,
        tools: Iterable[Mapping[str, Any]] | None,
        variables: Mapping[str, Any],
    ) -> tuple[str | None, str | None]:
        """The history with a needle as answer, and that with a user message behind; None where refused."""
        answered = [*history, {"role": "assistant", "content": NEEDLE}]
        definitions = None if tools is None else own(list(tools))
        out: list[str | None] = []
        for messages in (answered, [*answered, {"role": "user", "content": FOLLOW_UP}]):
            try:
                shaped = shape(messages, wants, self.name)
                out.append(self._write(shaped, wants, definitions, False, own(variables)))
            except TemplateError:
                out.append(None)
        return out[0], out[1]

    @staticmethod
    def _at_one_time(variables: dict[str, Any]) -> dict[str, Any]:
        """Renderings that are compared must not see the clock move."""
        return {"strftime_now": datetime.now().strftime, **variables}


def _restore(source: str, bos_token: str, eos_token: str, name: str) -> Template:
    return Template(source, bos_token=bos_token, eos_token=eos_token, name=name)
