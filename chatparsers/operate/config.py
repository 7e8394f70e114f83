"""The file of a gateway: what it says, and what is wrong in it.

Each key of a table is a word of the command line, read and checked as its flag is (`chatparsers.cli.arguments.words`
says where each stands). What no word can know alone is checked here: names that stand for nothing, files that are not
there, a key that two clients share. All mistakes are found at once, each with its line and column.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..cli.arguments.parser import Parser, build_parser
from ..cli.arguments.words import WORDS, Word
from ..cli.files import read_text
from ..cli.request import known_format
from ..errors import did_you_mean
from ..gateway.guard import is_loopback
from ..gateway.keys import KeyFile, digest_of
from .places import Path as Keys
from .places import Places, of_error
from .settings import settings_of
from .toml import TOMLDecodeError, loads

TABLES = {
    "server": "where it listens, and what all models share",
    "models": "a table for each model, [models.NAME]",
    "keys": "a table for each key, [keys.NAME]",
    "store": "what is kept of the Responses API",
    "rollouts": "what is recorded for training",
}
_NAMED = ("models", "keys")
PORTS = 65_535
"""The last port."""
_NO_KEYS = "expected a file with a key in each line, found none"
Values = Mapping[str, Any]
"""What was said, by the keys of words."""


class Mistake(NamedTuple):
    """Something wrong in a file."""

    file: str
    line: int
    column: int
    said: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.said}"


@dataclass(frozen=True, slots=True)
class Config:
    """What a gateway is to be, as far as somebody said it. ``server``: values of the tables without names. ``models``
    and ``keys``: those of each, by its name. ``over``: what flags and environment say, which goes before all."""

    server: Values = field(default_factory=dict)
    models: Mapping[str, Values] = field(default_factory=dict)
    keys: Mapping[str, Values] = field(default_factory=dict)
    over: Values = field(default_factory=dict)

    def gateway(self) -> Namespace:
        """All words with their values, as the command line alone would give them."""
        return Namespace(**{**_parser().defaults, **self.server, **self.over})

    def model(self, name: str) -> Namespace:
        """The same, of one model."""
        said = {"name": name, **self.models[name], **self.over}
        return Namespace(**{**vars(self.gateway()), **said})


def of_flags(arguments: Namespace) -> Config:
    """What flags and environment alone say: one model."""
    return Config(models={"": {}}, over=arguments.said)


def read(path: str, over: Values) -> tuple[Config, list[Mistake]]:
    """What a file says, and what is wrong in it. Raises `Refused` if it cannot be read."""
    text = read_text(path).removeprefix("\ufeff")
    try:
        data = loads(text)
    except TOMLDecodeError as error:
        return Config(over=over), [Mistake(path, *of_error(text, error))]
    found: list[tuple[Keys, str]] = []
    config = _config(data, over, lambda *where, said: found.append((where, said)))
    if not found:
        found += _checked(config)
    places = Places(text) if found else None
    mistakes = [Mistake(path, *places.of(where), said) for where, said in found if places is not None]
    return config, sorted(mistakes, key=lambda one: one[1:3])


def written(config: Config) -> dict[str, Any]:
    """What a gateway is, as the tables of a file. Keys stand as digests, and an engine's key is left out."""
    found: dict[str, Any] = {}
    served = config.gateway()
    told = {key: value for key, value in vars(served).items() if key in {**config.server, **config.over}}
    for table in ("server", "store", "rollouts"):
        found[table] = _table(table, told)
    if found["server"].get("api_key"):
        found["server"]["api_key"] = _shown(found["server"]["api_key"])
    alone = len(config.models) == 1
    for name, values in config.models.items():
        shown = _table("models", {**values, **(config.over if alone else {})})
        shown.pop("upstream_key", None)
        found.setdefault("models", {})[name or shown.get("name") or "model"] = shown
    for name, values in config.keys.items():
        shown = _table("keys", values)
        if "key" in shown:
            shown["key"] = _shown(shown["key"])
        found.setdefault("keys", {})[name] = shown
    return {name: table for name, table in found.items() if table}


def _shown(key: str) -> str:
    return f"sha256:{digest_of(key).hex()}"


# tables


@cache
def _parser() -> Parser:
    return build_parser().actions["serve"]


@cache
def _words(table: str) -> dict[str, Word]:
    """The words of a table by their names there."""
    parser = _parser()
    places = [(word, place) for word in (*parser.words, *parser.in_file) for place in word.places]
    return {name: word for word, (in_table, name) in places if in_table == table}


def _table(table: str, values: Values) -> dict[str, Any]:
    """Values as a table has them."""
    shown = {name: values[word.key] for name, word in _words(table).items() if word.key in values}
    if isinstance(shown.get("template_kwargs"), str):
        shown["template_kwargs"] = json.loads(shown["template_kwargs"])
    return {name: value for name, value in shown.items() if value is not None}


def _config(data: Mapping[str, Any], over: Values, wrong: Callable[..., None]) -> Config:
    server: dict[str, Any] = {}
    named: dict[str, dict[str, Values]] = {"models": {}, "keys": {}}
    for table, value in data.items():
        if table not in TABLES:
            wrong(table, said=f"there is no such table: {_known(table, TABLES)}")
        elif not isinstance(value, dict):
            wrong(table, said=f"expected the table [{table}]: {TABLES[table]}")
        elif table not in _NAMED:
            server |= _values(table, (table,), value, wrong)
        else:
            for name, inner in value.items():
                if isinstance(inner, dict):
                    named[table][name] = _values(table, (table, name), inner, wrong)
                else:
                    wrong(table, name, said=f"expected a table with a name, such as [{table}.{name}]")
    if not named["models"] and not {"url", "gguf"}.isdisjoint(over):
        named["models"][""] = {}
    return Config(server, named["models"], named["keys"], over)


def _known(name: str, known: Mapping[str, Any]) -> str:
    guess, there = did_you_mean(name, known), ", ".join(sorted(known))
    return f"{guess} (known are: {there})" if guess.startswith("did") else guess


def _values(table: str, path: Keys, given: Mapping[str, Any], wrong: Callable[..., None]) -> dict[str, Any]:
    words = _words(table)
    parser = Parser(exit_on_error=False, add_help=False, allow_abbrev=False)
    for word in words.values():
        parser.take_word(word)
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in words:
            wrong(*path, name, said=f"there is no {name!r} in [{'.'.join(path)}]: {_known(name, words)}")
            continue
        try:
            found |= parser.given(_arguments(words[name], value))[0]
        except argparse.ArgumentError as error:
            wrong(*path, name, said=f"{name}: {error.message}")
        except _Unfit as error:
            wrong(*path, name, said=f"{name}: expected {error}, found {_kind(value)}")
    return found


class _Unfit(Exception):
    """A value is of another kind."""


def _arguments(word: Word, value: Any) -> list[str]:
    """The arguments that mean a value. Raises `_Unfit`."""
    if not word.kind:
        if not isinstance(value, bool):
            raise _Unfit("true or false")
        return [word.flag] if value else []
    if word.many:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise _Unfit("a list of texts")
        return [f"{word.flag}={one}" for one in value] if word.many != "+" else [word.flag, *value]
    if word.kind == "JSON":
        if not isinstance(value, dict):
            raise _Unfit("a table")
        return [f"{word.flag}={json.dumps(value)}"]
    if word.number:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _Unfit(word.number)
    elif not isinstance(value, str):
        raise _Unfit("a text")
    return [f"{word.flag}={value}"]


def _kind(value: Any) -> str:
    kinds = {str: "a text", bool: "true or false", list: "a list", dict: "a table"}
    return kinds.get(type(value), f"{value!s:.40}")


# what no word can know alone


def _checked(config: Config) -> Iterator[tuple[Keys, str]]:
    """What is wrong in a file whose values are each well."""
    yield from _server(config)
    if not config.models:
        yield ("models",), "expected a model: a table [models.NAME] with files and upstream"
    names: dict[str, str] = {}
    for name, values in config.models.items():
        yield from _model(name, values, config)
        first = values.get("name", name)
        if names.setdefault(first, name) != name:
            yield ("models", name, "name"), f"the model {names[first]} has the name {first!r} too"
    for name, values in config.models.items():
        for alias in values.get("aliases", ()):
            if names.setdefault(alias, name) != name:
                yield ("models", name, "aliases"), f"the model {names[alias]} has the name {alias!r} too"
    secrets: dict[bytes, str] = {}
    for name, values in config.keys.items():
        yield from _key(name, values, {**config.models, **names}, secrets)


def wrong(values: Namespace, mend: str | None) -> Iterator[tuple[str, str]]:
    """What cannot be of what all models share, by the keys of words. ``mend``: what gives a key to clients that reach
    an address; None: they have keys."""
    if values.port > PORTS:
        yield "port", f"expected a port from 1 to {PORTS}, found {values.port}"
    keyed = mend is None or values.api_key is not None or values.api_key_file is not None
    if not (keyed or is_loopback(values.host)):
        yield "host", f"without a key anybody who reaches {values.host} may use the models: {mend}"
    if values.api_key is not None and not values.api_key.strip():
        yield "api_key", "expected a key, found an empty text, which anybody can send"
    if values.api_key_file is not None and not KeyFile(values.api_key_file).digests():
        yield "api_key_file", f"{values.api_key_file}: {_NO_KEYS}"
    try:
        settings_of(values, "", None)
    except ValueError as error:
        field, _, said = str(error).partition(": ")
        yield {"hosts": "allowed_hosts", "passed": "pass_on"}.get(field, field), said
    if values.log not in (None, "-") and not Path(values.log).absolute().parent.is_dir():
        yield "log", f"{values.log}: there is no such folder"
    if (values.tls_cert is None) != (values.tls_key is None):
        there = "tls_cert" if values.tls_key is None else "tls_key"
        yield there, "expected a certificate and its private key, found one of both"
    elif values.tls_cert is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(values.tls_cert, values.tls_key)
        except OSError as error:
            yield "tls_cert", f"{values.tls_cert} and {values.tls_key}: {error.strerror or error}"


def _server(config: Config) -> Iterator[tuple[Keys, str]]:
    values = config.gateway()
    for key, said in wrong(values, None if config.keys else "add a table [keys.NAME]"):
        table, name = WORDS[key].places[0]
        yield (table, name), f"{name}: {said}"
    if len(config.models) > 1 and values.rollouts is not None:
        yield (
            ("rollouts", "path"),
            "path: rollouts are of one model, found several: serve one, or leave it out",
        )
    if len(config.models) > 1 and values.pass_on:
        said = "pass_on: paths are passed on to the engine of one model, found several: leave it out"
        yield ("server", "pass_on"), said


def _model(name: str, values: Values, config: Config) -> Iterator[tuple[Keys, str]]:
    where, whole = ("models", name), config.model(name)
    engines = [word for word in ("upstream", "upstreams", "gguf") if values.get(_KEYS.get(word, word))]
    if len(engines) != 1 and not (config.over.get("url") or config.over.get("gguf")):
        said = "expected one of upstream, upstreams and gguf"
        yield where, f"{said}, found {' and '.join(engines) or 'none'}: which engine runs the model?"
    for key in ("url", "upstreams", "draining"):
        given = values.get(key) or []
        for url in [given] if isinstance(given, str) else given:
            if not url.startswith(("http://", "https://")):
                at = "upstream" if key == "url" else key
                yield (*where, at), f"{at}: expected a URL such as http://127.0.0.1:8080, found {url!r}"
    for url in values.get("draining", ()):
        if url not in values.get("upstreams", ()):
            yield (*where, "draining"), f"draining: {url} is none of the upstreams"
    if whole.model is None and whole.gguf is None:
        yield where, "expected files: the model's folder, a file of it, or its chat template"
    for key, at in (("model", "files"), ("tokenizer", "tokenizer"), ("gguf", "gguf")):
        if values.get(key) is not None and not os.path.exists(values[key]):
            yield (*where, at), f"{at}: {values[key]}: no such file or folder"
    if values.get("format") is not None and not known_format(values["format"]):
        yield (
            (*where, "format"),
            f"format: there is no format {values['format']!r} (see `chatparsers formats`)",
        )


_KEYS = {"upstream": "url"}


def _key(
    name: str, values: Values, models: Mapping[str, Any], secrets: dict[bytes, str]
) -> Iterator[tuple[Keys, str]]:
    where = ("keys", name)
    secret = values.get("secret")
    if secret is None and values.get("secret_file") is None:
        yield where, "expected key or key_file: what do its clients send?"
    if secret is not None:
        if not secret.strip():
            yield (*where, "key"), "key: expected a key, found an empty text, which anybody can send"
        elif secrets.setdefault(digest_of(secret), name) != name:
            yield (*where, "key"), f"key: it is that of {secrets[digest_of(secret)]} too: give each its own"
    path = values.get("secret_file")
    if path is not None and not KeyFile(path).digests():
        yield (*where, "key_file"), f"key_file: {path}: {_NO_KEYS}"
    for model in values.get("granted", ()):
        if model not in models:
            yield (*where, "models"), f"models: there is no model {model!r}: {_known(model, models)}"
