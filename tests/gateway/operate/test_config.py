"""The file of a gateway: every word of the command line has its place there, and each mistake its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the package uvicorn is not installed")

import tomli_w

from chatparsers.cli.arguments import build_parser
from chatparsers.cli.arguments.words import WORDS
from chatparsers.cli.main import main
from chatparsers.operate import config as files
from chatparsers.operate.config import read, written
from chatparsers.operate.places import Places
from chatparsers.operate.settings import settings_of
from chatparsers.operate.team import keys
from chatparsers.operate.toml import loads
from chatparsers.templates.builtins import builtin_source

MISTAKES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "mistakes.json").read_text(encoding="utf-8")
)
WELL = '\n[models.well]\nfiles = "chat.jinja"\nupstream = "http://127.0.0.1:9"\n'
SERVE = build_parser().actions["serve"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    (tmp_path / "chat.jinja").write_text(builtin_source("qwen3"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case["says"])
def test_a_mistake_has_its_place(case: Mapping[str, Any], folder: Path, capsys: Any) -> None:
    """And what to do; and the file starts nothing."""
    (folder / "g.toml").write_text(case["file"] + WELL * case.get("well", False), encoding="utf-8")
    assert main(["serve", "--check-config", "g.toml"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1, printed
    file, line, column, said = printed[0].split(":", 3)
    assert (file, int(line)) == ("g.toml", case["line"]) and case["says"] in said
    assert int(column) == case.get("column", int(column))
    assert main(["serve", "--config", "g.toml"]) == 2
    assert printed[0] in capsys.readouterr().err


def test_all_mistakes_are_said_at_once(folder: Path, capsys: Any) -> None:
    (folder / "g.toml").write_text("[server]\nport = 0\nhots = 1\n[kyes.x]\n")
    assert main(["serve", "--check-config", "g.toml"]) == 1
    assert [line.split(":")[1] for line in capsys.readouterr().out.splitlines()] == ["2", "3", "4"]


def everything(folder: Path) -> dict[str, dict[str, Any]]:
    """A table of each kind with all its words, but those that exclude each other."""
    (folder / "keys").write_text("k1\n")
    given: dict[str, Any] = {
        **{"cors": ["*"], "pass_on": ["/v1/embeddings"], "fetch_images": ["img.example"]},
        **{"allowed_hosts": ["a.example"], "template_kwargs": {"a": 1}, "api_key_file": "keys"},
        **{"upstream": "http://127.0.0.1:9", "files": "chat.jinja", "format": "qwen3"},
        **{"tokenizer": "chat.jinja", "key_file": "keys", "models": ["m"]},
    }
    apart = {"tls_cert", "tls_key", "gguf", "upstreams", "draining"}
    found: dict[str, dict[str, Any]] = {}
    for word in (*SERVE.words, *SERVE.in_file):
        for table, name in word.places:
            value: Any = "x"
            if name in given:
                value = given[name]
            elif not word.kind:
                value = True
            elif word.choices:
                value = word.choices[-1]
            elif word.many:
                value = ["x"]
            elif word.number:
                value = 7
            if name not in apart:
                found.setdefault(table, {})[name] = value
    found["models"], found["keys"] = {"m": found["models"]}, {"k": found["keys"]}
    return found


def test_every_flag_has_its_place_in_a_file(folder: Path, capsys: Any) -> None:
    """What is printed is a file that says the same, with keys as digests."""
    tables = everything(folder)
    shown = {word.key for word in SERVE.words if word.says} - {"config", "check_config", "print_config"}
    assert not [key for key in shown if not WORDS[key].places]
    (folder / "g.toml").write_text(tomli_w.dumps(tables))
    config, mistakes = read("g.toml", {})
    assert not mistakes
    assert main(["serve", "--config", "g.toml", "--print-config"]) == 0
    printed = capsys.readouterr().out
    (folder / "again.toml").write_text(printed)
    again, mistakes = read("again.toml", {})
    assert not mistakes and written(again) == written(config)
    assert vars(again.model("m")) | {"upstream_key": "", "api_key": ""} == vars(config.model("m")) | {
        "upstream_key": "",
        "api_key": "",
    }
    assert keys(again) == keys(config) and "upstream_key" not in printed
    assert loads(printed)["keys"]["k"]["key"].startswith("sha256:")


def test_a_file_says_what_flags_say(folder: Path, monkeypatch: Any) -> None:
    """The same settings by flags, by variables and by a file; and flags go before variables, and these before it."""
    (folder / "g.toml").write_text(
        '[server]\nmax_tokens = 11\nport = 9001\ncors = ["*"]\n[store]\npath = "kept"\nage = 0.5\n'
        '[models.m]\nfiles = "chat.jinja"\nupstream = "http://127.0.0.1:9"\nthinking = "off"\nmax_tokens = 12\n'
    )
    config, mistakes = read("g.toml", {})
    assert not mistakes
    given = ["--max-tokens", "12", "--port", "9001", "--cors", "*", "--store", "kept", "--store-age", "0.5"]
    given += ["--thinking", "off", "--name", "m", "--model", "chat.jinja", "--url", "http://127.0.0.1:9"]
    by_flags = build_parser().parse_args(["serve", *given])
    assert settings_of(by_flags, "", None) == settings_of(config.model("m"), "", None)
    for flag, value in zip(given[::2], given[1::2], strict=True):
        monkeypatch.setenv("CHATPARSERS_" + flag[2:].replace("-", "_").upper(), value)
    by_variables = build_parser().parse_args(["serve"])
    assert by_variables.said == by_flags.said
    over = build_parser().parse_args(["serve", "--max-tokens", "13"]).said
    assert read("g.toml", over)[0].model("m").max_tokens == 13
    assert read("g.toml", by_variables.said)[0].model("m").max_tokens == 12
    assert build_parser().parse_args(["serve", "--port", "8000"]).port == 8000


def test_a_variable_that_cannot_be_is_named(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("CHATPARSERS_MAX_BODY", "much")
    assert main(["serve"]) == 2
    assert "$CHATPARSERS_MAX_BODY: argument --max-body: expected a whole" in capsys.readouterr().err


def test_places_are_not_misled_by_values() -> None:
    text = '# port\n[a]\nx = """\nport = 1\n"""\n"port" = [\n  1,\n]\n[b]\ny = {port = 2}\n'
    places = Places(text)
    found = [places.of(path) for path in (("a", "port"), ("a", "x"), ("b", "y", "port"), ("a", "no"), ("c",))]
    assert found == [(6, 2), (3, 1), (10, 6), (2, 2), (1, 1)]


def test_flags_alone_are_a_file_too(folder: Path, capsys: Any) -> None:
    flags = ["--model", "chat.jinja", "--url", "http://127.0.0.1:9", "--api-key", "secret", "--name", "m"]
    assert main(["serve", *flags, "--print-config"]) == 0
    printed = capsys.readouterr().out
    assert "secret" not in printed
    (folder / "g.toml").write_text(printed)
    config, mistakes = read("g.toml", {})
    assert not mistakes and config.model("m").url == "http://127.0.0.1:9"
    assert files.digest_of(config.gateway().api_key) == files.digest_of("secret")
