"""What a `Chat` asks of an engine: a value of a type, or a run of Python functions. `chatparsers.asking` does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..errors import ChatParsersError
from ..lazy import load_reference
from ..public import public
from ..streams.message import Message, ToolCall

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import PrepareOptions

T = TypeVar("T")
_ASK, _AASK = "chatparsers.asking.drive:ask", "chatparsers.asking.drive:aask"
_RUN, _ARUN = "chatparsers.asking.drive:run", "chatparsers.asking.drive:arun"


@public
class NoAnswer(ChatParsersError):
    """The model did not answer as it was asked. ``messages``: the conversation up to there."""

    def __init__(self, message: str, messages: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.messages = messages


@public
@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of a call. ``value``: what the function returned. ``error``: what it raised, or what was wrong with the
    call; then the model read its text."""

    call: ToolCall
    value: Any = None
    error: Exception | None = None


@public
@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. ``message``: the last answer, without calls. ``messages``: the whole conversation, to go on
    with. ``results``: of all calls, in their order."""

    message: Message
    messages: list[dict[str, Any]]
    results: list[CallResult] = field(default_factory=list)

    @property
    def content(self) -> str:
        """The text of the last answer."""
        return self.message.content


class Asking:
    """The methods of a `Chat` that ask an engine."""

    @overload
    def ask(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        kind: type[T],
        *,
        tries: int = 3,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> T: ...

    @overload
    def ask(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        kind: Any,
        *,
        tries: int = 3,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> Any: ...

    def ask(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        kind: Any,
        *,
        tries: int = 3,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> Any:
        """A value of a Python type, which the engine's model answers with.

        ``engine``: a ``llama_cpp.Llama``, a model of transformers, the URL of a server, an engine of
        ``chatparsers.gateway``, or a function that gives the pieces of the answer to a turn. ``messages``: or one
        question. ``kind``: a dataclass, a `TypedDict`, a pydantic model, or what annotations have, such as
        ``list[int]``; a JSON Schema gives plain data. The schema is told to the model in the system message, and it
        writes under its grammar where the engine takes one.

        What is no such value is asked for again, with what was wrong as the next message, in all ``tries`` times.
        ``max_tokens``: of each answer. ``sampling``: options for the sampler, such as ``{"temperature": 0}``.
        ``request``: keywords of `prepare`. Raises `NoAnswer` if no try gave one, `RequestError` for a type that JSON
        cannot write, and what the engine raises.

        >>> chat.ask(lambda turn: ['["Oslo", "Rome"]'], "Which cities?", list[str])
        ['Oslo', 'Rome']
        """
        return load_reference(_ASK)(self, engine, max_tokens, sampling, messages, kind, tries, request)

    @overload
    async def aask(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        kind: type[T],
        *,
        tries: int = 3,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> T: ...

    @overload
    async def aask(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        kind: Any,
        *,
        tries: int = 3,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> Any: ...

    async def aask(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        kind: Any,
        *,
        tries: int = 3,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> Any:
        """`ask`, while other tasks go on.

        >>> import asyncio
        >>> asyncio.run(chat.aask(lambda turn: ["[4, 7]"], "Which numbers?", list[int]))
        [4, 7]
        """
        return await load_reference(_AASK)(self, engine, max_tokens, sampling, messages, kind, tries, request)

    def run(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        functions: Sequence[Callable[..., Any]],
        *,
        steps: int = 10,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> RunResult:
        """Lets the engine's model call Python functions until it answers without a call.

        ``functions``: their names, annotations and docstrings are the tools, and their arguments become values of their
        annotations. What a function returns is the model's next message, as text or as JSON; so is what it raises, or
        what is wrong with the call. If the model broke a call, it reads the diagnostic and may write it again.
        ``steps``: how many answers there may be. All others are as for `ask`.

        Only give it functions whose every call is harmless: nobody is asked before one. Raises `NoAnswer` if the model
        still calls after all steps, and `RequestError` for functions that cannot be described.

        >>> def get_weather(city: str) -> str:
        ...     return "4 degrees"
        >>> answers = iter([[call], ["It is 4 degrees."]])
        >>> ran = chat.run(lambda turn: next(answers), "Is it cold in Oslo?", [get_weather])
        >>> ran.content, ran.results[0].value
        ('It is 4 degrees.', '4 degrees')
        """
        found: RunResult = load_reference(_RUN)(
            self, engine, max_tokens, sampling, messages, functions, steps, request
        )
        return found

    async def arun(
        self,
        engine: Any,
        messages: str | Sequence[Mapping[str, Any] | Message],
        functions: Sequence[Callable[..., Any]],
        *,
        steps: int = 10,
        max_tokens: int = 1024,
        sampling: Mapping[str, Any] | None = None,
        **request: Unpack[PrepareOptions],
    ) -> RunResult:
        """`run`, while other tasks go on. The functions may be async.

        >>> import asyncio
        >>> asyncio.run(chat.arun(lambda turn: ["Hello."], "Say hello.", [])).content
        'Hello.'
        """
        found: RunResult = await load_reference(_ARUN)(
            self, engine, max_tokens, sampling, messages, functions, steps, request
        )
        return found
