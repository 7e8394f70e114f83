"""The models that a gateway serves, by the names under which clients ask for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..chat.chat import Chat
from ..serving import ApiError
from .engine import Engine, EngineError
from .keys import Caller
from .prompting import Prompting
from .settings import Settings

_SHOWN = 20


@dataclass(slots=True, eq=False)
class Model:
    """A model. ``settings``: those of its requests, with its name. ``aliases``: other names of it. ``started``: its
    engine can be asked."""

    chat: Chat
    engine: Engine
    settings: Settings
    aliases: tuple[str, ...] = ()
    started: bool = False
    prompting: Prompting = field(init=False)

    def __post_init__(self) -> None:
        self.prompting = Prompting(self.chat, self.engine, self.settings)

    @property
    def name(self) -> str:
        """Its first name."""
        return self.settings.model


class Models:
    """The models of a gateway. One alone answers to any name."""

    def __init__(self, models: Iterable[Model]) -> None:
        self.change(models)

    def change(self, models: Iterable[Model]) -> None:
        """These are the models from now on."""
        self.all = tuple(models)
        self.names = {name: one for one in self.all for name in (one.name, *one.aliases)}

    @property
    def first(self) -> Model:
        """The first of them."""
        return self.all[0]

    @property
    def several(self) -> bool:
        """Whether a request has to name one."""
        return len(self.all) > 1

    def of(self, name: object, caller: Caller) -> Model:
        """The model that a request names. Raises `ApiError` if there is none, or its key may not ask it."""
        found = self.names.get(name) if isinstance(name, str) else None
        if found is None and self.several:
            there = [*self.open_to(caller)]
            shown = ", ".join(there[:_SHOWN]) + (", …" if len(there) > _SHOWN else "")
            said = "which model?" if name is None else f"this server has no model {name!r:.99}:"
            raise ApiError(
                f"{said} it has {shown}",
                status=400 if name is None else 404,
                param="model",
                code="model_not_found",
            )
        model = found or self.first
        caller.may_ask(model.name)
        if not model.started:
            raise EngineError("the engine of this model does not answer yet", status=503)
        return model

    def open_to(self, caller: Caller) -> dict[str, Model]:
        """The models that a client may ask, by all their names."""
        may = caller.key.models
        return {name: one for name, one in self.names.items() if may is None or one.name in may}
