"""The code of a template: what it gets besides the messages, and the data that one rendering lends to the next."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import TemplateError
from .jinja.environment import compile_source, strftime_now, variables_of
from .jinja.failure import Exhausted, explain
from .jinja.limits import Borrowed, Limits, Measured, account, current
from .messages import Wants, described, own, own_tools

if TYPE_CHECKING:
    import jinja2


class Code:
    """A template's source, compiled. Its methods run in the account of the caller (`limits.account`).

    Raises `TemplateError` if the source is not valid Jinja2.
    """

    def __init__(self, source: str, bos_token: str, eos_token: str, name: str, limits: Limits) -> None:
        self._bos_token = bos_token
        self._eos_token = eos_token
        self._name = name
        self._keeps_lists = True
        self._last_tools: tuple[bytes, list[dict[str, Any]], dict[int, Measured]] | None = None
        with account(limits, name):
            self._program = self._compiled(source)
        self.variables = variables_of(self._program)
        """The variables that the source reads and does not set."""

    def _compiled(self, source: str) -> jinja2.Template:
        from jinja2 import TemplateError as JinjaError

        try:
            return compile_source(source)
        except JinjaError as error:
            raise explain(error, self._name) from error

    def lend(
        self,
        messages: list[dict[str, Any]],
        wants: Wants,
        tools: Iterable[Mapping[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> str:
        """As `write`, with messages and tools that are used again. A template that changes lists gets copies."""
        definitions, sizes = self._copied(tools)
        if self._keeps_lists:
            meter = current()
            meter.lent, before = True, meter.known
            meter.known = sizes
            try:
                return self.write(messages, wants, definitions, add_generation_prompt, variables)
            except Borrowed:
                self._keeps_lists = False
            finally:
                meter.lent, meter.known = False, before
        return self.write(own(messages), wants, own_tools(definitions), add_generation_prompt, variables)

    def write(
        self,
        messages: list[dict[str, Any]],
        wants: Wants,
        tools: list[dict[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> str:
        """The rendering of messages in the shape that the template reads. The template may change them."""
        given = self.besides(wants, tools, add_generation_prompt, variables)
        try:
            return self._program.render({"messages": messages, **given})
        except (TemplateError, Exhausted, Borrowed):
            raise
        except Exception as error:  # a template may raise any error for input that it does not expect
            full = described(tools)
            if full == tools:
                raise explain(error, self._name, messages) from error
        return self.write(messages, wants, full, add_generation_prompt, variables)

    def besides(
        self,
        wants: Wants,
        tools: Sequence[Mapping[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> dict[str, Any]:
        """What the template gets besides the messages."""
        alone = wants.flat_tools or wants.functions
        functions = [tool.get("function", tool) for tool in tools or ()] if alone else []
        given: dict[str, Any] = {
            "tools": (functions if wants.flat_tools else tools) or (None if wants.no_tools == "none" else []),
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            "bos_token": self._bos_token,
            "eos_token": self._eos_token,
        }
        if wants.functions:
            clock = variables.get("strftime_now", strftime_now)
            given["functions"] = current().json(functions, indent=4)
            given["datetime"] = clock("%Y-%m-%d %H:%M:%S GMT")
        return {**given, **variables}

    def _copied(
        self, tools: Iterable[Mapping[str, Any]] | None
    ) -> tuple[list[dict[str, Any]] | None, Mapping[int, Measured]]:
        """Copies of the tools, and the sizes of their parts. The last ones are kept, as most requests have the same."""
        if tools is None:
            return None, {}
        tools = list(tools)
        try:
            key = marshal.dumps(tools, 2)
        except ValueError:  # no plain data
            return own_tools(tools), {}
        last = self._last_tools
        if last is None or last[0] != key:
            copies: list[dict[str, Any]] = marshal.loads(key)
            functions = [tool["function"] for tool in copies if isinstance(tool, dict) and "function" in tool]
            meter = current()
            parts = (copies, *copies, *functions)
            sizes = {id(part): meter.measured(part) for part in parts}
            self._last_tools = last = key, copies, sizes
        return last[1], last[2]
