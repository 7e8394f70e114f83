"""Plugins: formats in other distributions, found through the entry-point group ``chatparsers``.

A plugin is a module (or an object) that defines hooks of `Hooks`. The prefix ``chatparsers_`` marks a hook, so a plugin
need not import this package (`hookimpl` sets options). The built-in formats are a plugin like any other.

pluggy's own loader is not used. If two distributions have the same entry-point name, it drops one; if one fails to
import, it loads no other. Here each entry point is loaded separately, under the name of its distribution, and has its
own manager. So every failure becomes a `PluginWarning` that names its origin, and the other plugins work. Only Ctrl-C
is passed on, once: the plugin in which it came is left out afterwards.

``CHATPARSERS_PLUGINS`` is read before any plugin is imported. It holds names of distributions or entry points,
separated by commas. Plain names allow only these, ``-name`` denies one, ``none`` or ``0`` denies all. The built-in
formats always load.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions
from itertools import islice
from reprlib import repr as short
from typing import Any
from warnings import warn

import pluggy

from .answers.check import check_model
from .errors import DefinitionError, did_you_mean
from .formats import FormatRef
from .kept import SharedLock

__all__ = ["BUILTIN", "FormatRef", "Hooks", "PluginWarning", "Plugins", "Selection", "hookimpl", "plugins"]

GROUP = "chatparsers"
BUILTIN = "chatparsers"
"""The origin of the built-in formats."""
_BUILTIN_MODULE = "chatparsers.formats"

hookspec = pluggy.HookspecMarker("chatparsers")
hookimpl = pluggy.HookimplMarker("chatparsers")
"""Marks a hook's implementation and takes pluggy's options. Not needed if the function has the hook's name."""


class PluginWarning(UserWarning):
    """A plugin is broken, or `CHATPARSERS_PLUGINS` names a missing one. The other plugins work."""


class Hooks:
    """The hooks that a plugin may define."""

    @hookspec
    def chatparsers_register_formats(self) -> Iterable[FormatRef]:
        """The plugin's formats, as references. Called once, before any format is needed."""
        return ()

    @hookspec(firstresult=True)
    def chatparsers_detect(self, template: str) -> str | None:
        """The name of the format for the chat template ``template`` (its source); None if the plugin does not know it.

        Called before the package's own detection. The first answer counts.
        """
        return None

    @hookspec
    def chatparsers_register_checks(self) -> Mapping[str, Callable[..., Any]] | None:
        """The checks that the plugin adds to `chatparsers.check`: each a name and a function of a model that yields
        findings (docs/check.md)."""
        return None


_HOOKS = tuple(name for name in vars(Hooks) if name.startswith("chatparsers_"))


@dataclass(frozen=True, slots=True)
class Selection:
    """Which plugins to load. ``allowed`` None: all plugins that are not ``denied``."""

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()

    @staticmethod
    def read(setting: str) -> Selection:
        """The selection that the value of ``CHATPARSERS_PLUGINS`` makes."""
        names = re.split(r"[\s,]+", setting.strip()) if setting.strip() else []
        denied = frozenset(_normal(name[1:]) for name in names if name.startswith("-"))
        allowed = frozenset(_normal(name) for name in names if name and not name.startswith("-"))
        if allowed & {"none", "0"}:
            return Selection(frozenset())
        return Selection(allowed or None, denied)

    def admits(self, distribution: str, entry_point: str) -> bool:
        """Whether the plugin of that distribution and entry point may load."""
        names = {_normal(distribution), _normal(entry_point)}
        return (self.allowed is None or not names.isdisjoint(self.allowed)) and names.isdisjoint(self.denied)


def _normal(name: str) -> str:
    """A name as packaging tools compare it: lower case, and ``-`` for ``_`` and ``.``."""
    return re.sub(r"[-_.]+", "-", name).lower()


class _Manager(pluggy.PluginManager):
    """pluggy's manager, except that a function with a hook's name needs no marker."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None and name in _HOOKS and inspect.isroutine(getattr(plugin, name)):
            return {
                "wrapper": False,
                "hookwrapper": False,
                "optionalhook": False,
                "tryfirst": False,
                "trylast": False,
                "specname": None,
            }
        return options


class _Plugin:
    """One plugin with its own manager, so that its failures do not reach the others."""

    def __init__(self, name: str, origin: str, object: Any) -> None:
        self.name = name
        self.origin = origin
        self.object = object
        self._manager = _Manager("chatparsers")
        self._manager.add_hookspecs(Hooks)
        self._manager.register(object, name)

    def call(self, hook: str, **arguments: object) -> Any:
        """The hook's result as pluggy returns it; None if the hook fails."""
        try:
            return getattr(self._manager.hook, hook)(**arguments)
        except KeyboardInterrupt:
            _interrupted.add(self.name)
            raise
        except BaseException as error:  # a plugin may raise anything
            _warn(f"plugin {self.origin}: {hook} failed: {_described(error)}")
            return None


@dataclass
class Plugins:
    """The plugins of a set of distributions. Call ``load`` once, then the other methods."""

    selection: Selection = field(default_factory=Selection)
    found: Callable[[], Iterable[Distribution]] = distributions

    def __post_init__(self) -> None:
        self._plugins: list[_Plugin] = []
        self._formats: list[tuple[str, FormatRef]] = []
        self.loading = ""
        """The plugin that is being imported or asked for its formats."""

    @property
    def names(self) -> list[str]:
        """The loaded plugins, as ``distribution:entry-point``."""
        return [plugin.name for plugin in self._plugins]

    def load(self) -> None:
        """Finds the plugins, imports those that may load, and collects their formats."""
        known: set[str] = set()
        for distribution, version, entry in self._entry_points():
            known |= {_normal(distribution), _normal(entry.name)}
            if entry.value == _BUILTIN_MODULE:
                self._add(f"{distribution}:{entry.name}", BUILTIN, entry.load)
            elif self.selection.admits(distribution, entry.name):
                self._add(f"{distribution}:{entry.name}", f"{distribution} {version}", entry.load)
        if not any(
            plugin.origin == BUILTIN for plugin in self._plugins
        ):  # no metadata: on the path, not installed
            self._add(f"{BUILTIN}:builtin", BUILTIN, lambda: import_module(_BUILTIN_MODULE))
        for name in sorted((self.selection.allowed or frozenset()) - known):
            _warn(f"CHATPARSERS_PLUGINS allows {name!r}, which is not installed: {did_you_mean(name, known)}")
        for plugin in self._plugins:
            self.loading = plugin.origin
            for result in plugin.call("chatparsers_register_formats") or ():
                self._formats += [(plugin.origin, ref) for ref in _references(result, plugin.origin)]

    def formats(self) -> list[tuple[str, FormatRef]]:
        """Every format that a plugin offers, with its origin (a distribution's name and version)."""
        return list(self._formats)

    def detect(self, template: str) -> Iterator[tuple[str, str]]:
        """Asks the plugins about a template. Yields an origin and the name of a format, the last plugin first."""
        for plugin in reversed(self._plugins):
            result = plugin.call("chatparsers_detect", template=template)
            if isinstance(result, str):
                yield plugin.origin, result
            elif result is not None:
                self.complain(plugin.origin, f"expected a name or None, found {short(result)}")

    def checks(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        """The checks of all plugins, each with its name."""
        for plugin in self._plugins:
            for result in plugin.call("chatparsers_register_checks") or ():
                if isinstance(result, Mapping):
                    yield from ((str(name), run) for name, run in result.items() if callable(run))
                else:
                    _warn(
                        f"plugin {plugin.origin}: chatparsers_register_checks: expected names and functions, "
                        f"found {short(result)}"
                    )

    def complain(self, origin: str, reason: str) -> None:
        """Warns of a plugin's wrong answer to ``chatparsers_detect``."""
        _warn(f"plugin {origin}: chatparsers_detect: {reason}")

    def _entry_points(self) -> Iterator[tuple[str, str, EntryPoint]]:
        """The group's entry points, each as distribution, version, entry point; of two copies of one, the first."""
        seen: set[str] = set()
        for distribution in self.found():
            try:
                if GROUP not in (distribution.read_text("entry_points.txt") or ""):
                    continue
                entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
                name, version = str(distribution.metadata["Name"]), distribution.version
            except Exception as error:
                _warn(f"the metadata of {distribution!r} cannot be read: {type(error).__name__}: {error}")
                continue
            if _normal(name) not in seen:
                seen.add(_normal(name))
                for entry in entries:
                    yield name, version, entry

    def _add(self, name: str, origin: str, load: Callable[[], Any]) -> None:
        if name in _interrupted:
            _warn(f"plugin {origin} is left out: it was interrupted while it loaded")
            return
        self.loading = origin
        try:
            loaded = load()
            if any(loaded is plugin.object for plugin in self._plugins):
                return
            plugin = _Plugin(name, origin, loaded)
            strange = [hook for hook in dir(loaded) if hook.startswith("chatparsers_") and hook not in _HOOKS]
        except KeyboardInterrupt:
            _interrupted.add(name)
            raise
        except BaseException as error:  # a module may exit, or raise anything
            _warn(f"plugin {origin} cannot be loaded: {_described(error)}")
            return
        self._plugins.append(plugin)
        for hook in strange:
            if callable(getattr(loaded, hook, None)):
                _warn(f"plugin {origin}: there is no hook {hook!r}: {did_you_mean(hook, _HOOKS)}")


_MOST_FORMATS = 1000


def _references(result: object, origin: str) -> list[FormatRef]:
    """The references in a hook's result. Warns of everything else in it."""
    hook = f"plugin {origin}: chatparsers_register_formats"
    references: list[FormatRef] = []
    try:
        for item in islice(result, _MOST_FORMATS):  # type: ignore[call-overload]  # whatever a plugin returns
            if not isinstance(item, FormatRef):
                _warn(f"{hook}: expected a FormatRef, found {short(item)}")
            elif wrong := _wrong(item):
                _warn(f"{hook}: FormatRef {short(item.name)}: {wrong}")
            else:
                references.append(item)
        if len(references) == _MOST_FORMATS:
            _warn(f"{hook}: more than {_MOST_FORMATS} formats are not taken")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _warn(f"{hook}: expected FormatRefs: {_described(error)}")
    return references


def _wrong(reference: FormatRef) -> str | None:
    """The first mistake in the fields of a reference; None if there is none."""
    for field_, value in (
        ("name", reference.name),
        ("target", reference.target),
        ("title", reference.title),
        ("url", reference.url),
    ):
        if not isinstance(value, str):
            return f"{field_}: expected a text, found {short(value)}"
    if not reference.name.strip():
        return "name: expected a text, found an empty one"
    lists = (("aliases", reference.aliases), ("markers", reference.markers), ("models", reference.models))
    for field_, texts in lists:
        if not isinstance(texts, (tuple, list)) or not all(isinstance(text, str) for text in texts):
            return f"{field_}: expected a tuple of texts, found {short(texts)}"
        if "" in texts:
            return f"{field_}: expected texts that are not empty, found {short(texts)}"
    try:
        for pattern in reference.models:
            check_model("models", pattern)
    except DefinitionError as error:
        return str(error)
    return None


def _described(error: BaseException) -> str:
    """The error's type and text; the type alone if its text fails."""
    try:
        return f"{type(error).__name__}: {error}"[:1000]
    except Exception:
        return type(error).__name__


def _warn(message: str) -> None:
    warn(f"{message} (leave it out with CHATPARSERS_PLUGINS)", PluginWarning, stacklevel=2)


_interrupted: set[str] = set()
"""The plugins that Ctrl-C interrupted. They may have caused it."""
_PATIENCE = 10.0
"""After so many seconds a thread says that it waits for a plugin."""
_loaded: Plugins | None = None


def _forget() -> None:
    """In a forked child: forgets plugins that another thread was loading."""
    global _loaded
    _loaded = None


_lock = SharedLock(_forget)


def plugins() -> Plugins:
    """The plugins of this process, loaded at the first call."""
    global _loaded
    if not _lock.wait(_PATIENCE):
        loading = _loaded.loading if _loaded is not None else ""
        _warn(
            f"plugin {loading or '?'} is still being imported by another thread, and this thread waits for it"
        )
    with _lock:
        if _loaded is None:
            # Set before loading, so that a plugin that asks for formats at import sees those loaded so far.
            _loaded = Plugins(Selection.read(os.environ.get("CHATPARSERS_PLUGINS", "")))
            try:
                _loaded.load()
            except BaseException:  # a warning turned into an error: the next call raises it again
                _loaded = None
                raise
        return _loaded
