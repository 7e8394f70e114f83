"""Names to formats, without any plugin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import chatparsers
from chatparsers import registry
from chatparsers.answers import Builder, Format, Node
from chatparsers.detection.names import known
from chatparsers.formats import FormatRef
from chatparsers.plugins import Plugins


def build(p: Builder) -> Node:
    return p.body()


def made(name: str, *aliases: str) -> Format:
    return Format(name=name, title="Made up", url="https://example.org", build=build, aliases=aliases)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    plugins = Plugins(found=lambda: ())
    plugins.load()
    monkeypatch.setattr("chatparsers.plugins._loaded", plugins)
    monkeypatch.setattr(registry, "_replacements", {})
    monkeypatch.setattr(registry, "_additions", {})
    yield


def test_a_name_may_be_written_carelessly_and_near_ones_are_suggested() -> None:
    for name in ("hermes-2-pro", "hermes_2_pro", "Hermes-2-Pro", " hermes 2 pro "):
        assert chatparsers.get_format(name).name == "hermes-2-pro"
    said = r"no format is named 'hermes-pro': did you mean hermes-2-pro"
    with pytest.raises(chatparsers.UnknownFormat, match=said):
        chatparsers.get_format("hermes-pro")
    with pytest.raises(LookupError):
        chatparsers.get_format("")


def test_every_listed_format_loads_under_its_name_and_aliases() -> None:
    infos = chatparsers.list_formats()
    assert [info.name for info in infos] == sorted(info.name for info in infos)
    for info in infos:
        format = info.load()
        assert (format.name, format.title, format.url) == (info.name, info.title, info.url)
        assert (tuple(format.aliases), tuple(format.markers)) == (info.aliases, info.markers)
        for name in (info.name, *info.aliases):
            assert chatparsers.get_format(name) is format


def test_a_registered_format_is_found_and_listed() -> None:
    format = made("made-up", "imaginary")
    chatparsers.register(format)
    assert chatparsers.get_format("made_up") is format
    assert chatparsers.get_format("imaginary") is format
    (info,) = [info for info in chatparsers.list_formats() if info.name == "made-up"]
    assert info.origin == "register()" and info.load() is format
    registry.unregister("made-up")
    with pytest.raises(chatparsers.UnknownFormat):
        chatparsers.get_format("made-up")
    with pytest.raises(chatparsers.UnknownFormat, match="no format was registered as 'made-up'"):
        registry.unregister("made-up")


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        (
            "my-hermes",
            "chatparsers.formats.hermes_2_pro:FORMAT",
            r"register\(\): format 'my-hermes': .*found Format 'hermes-2-pro'",
        ),
        ("gone", "no_such_module_at_all:FORMAT", "'no_such_module_at_all:FORMAT': ModuleNotFoundError"),
    ],
)
def test_a_reference_to_another_format_or_to_nothing_is_named(name: str, target: str, said: str) -> None:
    chatparsers.register(FormatRef(name, target))
    with pytest.raises(chatparsers.DefinitionError, match=said) as caught:
        chatparsers.get_format(name)
    assert name != "gone" or isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_taken_name_is_refused_unless_it_replaces() -> None:
    mine = made("hermes-2-pro")
    with pytest.raises(chatparsers.AmbiguousFormat, match="already the format 'hermes-2-pro' of chatparsers"):
        chatparsers.register(mine)
    with pytest.raises(chatparsers.AmbiguousFormat):
        chatparsers.register(made("made-up", "hermes_2_pro"))
    assert chatparsers.get_format("hermes-2-pro") is not mine
    chatparsers.register(mine, replace=True)
    assert chatparsers.get_format("hermes-2-pro") is mine
    assert [info.origin for info in chatparsers.list_formats() if info.name == "hermes-2-pro"] == [
        "register()"
    ]


def test_a_replacement_takes_a_models_name_from_the_built_in_format() -> None:
    mine = replace(made("mine"), models=("qwen3-mine", "nobodys"))
    chatparsers.register(mine)
    assert [getattr(known([name]), "format", None) for name in ("Qwen3-Mine", "Nobodys 7B")] == [
        "qwen3",
        "mine",
    ]
    chatparsers.register(mine, replace=True)
    assert getattr(known(["Qwen3-Mine"]), "format", None) == "mine"


def test_a_name_comes_before_an_alias() -> None:
    by_alias, by_name = made("one", "two"), made("two")
    chatparsers.register(by_alias, replace=True)
    chatparsers.register(by_name, replace=True)
    assert chatparsers.get_format("two") is by_name
    assert chatparsers.get_format("one") is by_alias
