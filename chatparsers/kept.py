"""Caches that stay small whatever strangers send: bounded in bytes, or closed to what is long.

A process may be forked while another of its threads holds a lock. That thread is not there in the child, so the child
makes its locks anew, and forgets what the thread may have been changing (`renewed_in_child`). The lock of a module that
another thread imports cannot be made anew, so a fork waits for such an import.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache, wraps
from threading import Lock, RLock
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload
from weakref import WeakSet

_V = TypeVar("_V")
_A = TypeVar("_A", bound=str | tuple[Any, ...])
_P = ParamSpec("_P")


class Lockable(Protocol):
    """What has a lock, and is used by several threads."""

    def renew(self) -> None:
        """Makes the lock anew in a forked child. What a thread of the parent may have left half done is dropped."""
        ...


_renewed: WeakSet[Any] = WeakSet()


def renewed_in_child(held: Lockable) -> None:
    """Has ``held`` renewed in each forked child of this process."""
    _renewed.add(held)


def _renew() -> None:
    for held in list(_renewed):
        held.renew()


def _imported() -> None:
    """Waits until no other thread imports a module that this package uses at its first need; at most ten seconds."""
    over = time.monotonic() + 10
    while threading.active_count() > 1 and _importing() and time.monotonic() < over:
        time.sleep(0.001)


def _importing() -> bool:
    """Whether another thread holds the import lock of such a module."""
    locks: Mapping[str, Any] = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    used = [held() for name, held in list(locks.items()) if name.partition(".")[0] in _USED]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in used)


_USED = ("chatparsers", "jinja2", "markupsafe", "tokenizers")

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_imported, after_in_child=_renew)


class SharedLock:
    """A lock that one thread may take several times. ``forget`` is called in a forked child if another had it."""

    def __init__(self, forget: Callable[[], None] | None = None) -> None:
        self._lock = RLock()
        self._forget = forget
        renewed_in_child(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Whether the lock is free within that time."""
        if not self._lock.acquire(timeout=seconds):
            return False
        self._lock.release()
        return True

    def renew(self) -> None:
        """Makes the lock anew, unless it is free or the thread that forked has it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return
        self._lock = RLock()
        if self._forget is not None:
            self._forget()


class cached(Generic[_V]):  # named as a decorator
    """`functools.cached_property` without its lock, which Python has up to 3.11: one for all objects of a class."""

    def __init__(self, make: Callable[[Any], _V]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, held: None, owner: type) -> cached[_V]: ...
    @overload
    def __get__(self, held: object, owner: type) -> _V: ...
    def __get__(self, held: object | None, owner: type) -> cached[_V] | _V:
        if held is None:
            return self
        # Two threads may both make the value. Then all get the one that was put there first.
        value: _V = held.__dict__.setdefault(self.name, self.make(held))
        return value


def cached_method(method: Callable[Concatenate[Any, _P], _V]) -> Callable[Concatenate[Any, _P], _V]:
    """A method whose answers are kept with its object, by its arguments: for questions of which there are few."""
    name = f"_cached_{method.__name__}"

    @wraps(method)
    def call(held: Any, /, *given: _P.args, **named: _P.kwargs) -> _V:
        known: dict[Hashable, _V] = held.__dict__.setdefault(name, {})
        key = (*given, *named.items())
        if key not in known:
            known[key] = method(held, *given, **named)
        return known[key]

    return call


class _Entry(Generic[_V]):
    """A value of `Kept`. ``asked``: it was asked for since it was put last."""

    __slots__ = ("asked", "size", "value")

    def __init__(self, value: _V, size: int) -> None:
        self.value = value
        self.size = size
        self.asked = False


class Kept(Generic[_V]):
    """Values by key, together at most ``most`` bytes. The oldest go first; one that was asked for counts as new again.

    A value of more than ``largest`` bytes (if not given, an eighth of ``most``) is not kept. ``fresh``: how many bytes
    of values that nobody has asked for are kept besides the newest, so that values of one use do not fill the memory,
    and take each other's place while it is still in the processor's cache. Threads may share it, and asking takes no
    lock.
    """

    __slots__ = (
        "__weakref__",
        "_lock",
        "_new",
        "_new_size",
        "_values",
        "fresh",
        "largest",
        "most",
        "size",
    )

    def __init__(self, most: int, largest: int | None = None, fresh: int | None = None) -> None:
        self.most = most
        self.largest = most >> 3 if largest is None else largest
        self.fresh = fresh
        self.size = 0
        self._values: OrderedDict[Hashable, _Entry[_V]] = OrderedDict()
        self._new: deque[tuple[Hashable, _Entry[_V]]] = deque()
        self._new_size = 0
        self._lock = Lock()
        renewed_in_child(self)

    def renew(self) -> None:
        """Makes the lock anew in a forked child, and forgets all values if a thread was changing them."""
        held, self._lock = self._lock.locked(), Lock()
        if held:
            self.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, (self.most, self.largest, self.fresh)  # a copy is empty

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> _V | None:
        """The value of ``key``; None if it is not kept."""
        found = dict.get(self._values, key)  # named so, the compiled core looks up no method
        if found is None:
            return None
        found.asked = True
        return found.value

    def add(self, key: Hashable, value: _V, size: int) -> None:
        """Keeps a value of ``size`` bytes, its key included."""
        if size > self.largest:
            return
        with self._lock:
            before = self._values.pop(key, None)
            self.size += size - (before.size if before else 0)
            while self.size > self.most:
                oldest, entry = self._values.popitem(last=False)
                if entry.asked:
                    entry.asked = False
                    self._values[oldest] = entry
                else:
                    self.size -= entry.size
            added = self._values[key] = _Entry(value, size)
            if self.fresh is not None:
                self._new.append((key, added))
                self._new_size += size
                while self._new_size > self.fresh and len(self._new) > 1:
                    first, entry = self._new.popleft()
                    self._new_size -= entry.size
                    if not entry.asked and self._values.get(first) is entry:
                        del self._values[first]
                        self.size -= entry.size

    def clear(self) -> None:
        """Forgets all values."""
        with self._lock:
            self._values = OrderedDict()
            self._new = deque()
            self.size = self._new_size = 0


def kept(entries: int, longest: int) -> Callable[[Callable[[_A], _V]], Callable[[_A], _V]]:
    """`functools.lru_cache` for a function of one text or tuple, which does not keep those longer than ``longest``."""

    def around(function: Callable[[_A], _V]) -> Callable[[_A], _V]:
        known = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(given: _A) -> _V:
            return known(given) if len(given) <= longest else function(given)

        return call

    return around
