"""The loader of plugins, on distributions made here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import chatparsers
from chatparsers.core import Format, Node
from chatparsers.formats import FormatRef
from chatparsers.plugins import BUILTIN, Plugins, PluginWarning, Selection, hookimpl


class Made(Distribution):
    """A distribution that exists only in memory."""

    def __init__(self, name: str, entry_points: str, metadata: str = "") -> None:
        self.files_ = {
            "METADATA": metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
            "entry_points.txt": entry_points,
        }

    def read_text(self, filename: str) -> str | None:
        return self.files_.get(filename)

    def locate_file(self, path: object) -> Path:
        raise PackageNotFoundError(str(path))


def group(*lines: str) -> str:
    return "\n".join(["[chatparsers]", *lines, ""])


def loaded(*found: Made, setting: str = "") -> Plugins:
    plugins = Plugins(Selection.read(setting), lambda: found)
    plugins.load()
    return plugins


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    made = ModuleType("made_up_formats")
    monkeypatch.setitem(sys.modules, "made_up_formats", made)
    yield made


def test_the_built_in_formats_load_once_whatever_the_metadata_and_the_environment_say() -> None:
    own = Made("chatparsers", group("builtin = chatparsers.formats"))
    for found, setting in (([], ""), ([own], ""), ([own], "none"), ([own], "-chatparsers")):
        plugins = loaded(*found, setting=setting)
        assert plugins.names == ["chatparsers:builtin"]
        names = [ref.name for origin, ref in plugins.formats() if origin == BUILTIN]
        assert len(names) == len(set(names)) and "hermes-2-pro" in names


def test_of_two_copies_of_a_distribution_the_first_counts(module: ModuleType) -> None:
    module.first = SimpleNamespace(chatparsers_detect=lambda template: "first")
    module.second = SimpleNamespace(chatparsers_detect=lambda template: "second")
    plugins = loaded(
        Made("Some_Formats", group("it = made_up_formats:first")),
        Made("some-formats", group("it = made_up_formats:second")),
    )
    assert list(plugins.detect("")) == [("Some_Formats 1", "first")]


NO_ENTRIES = "[chatparsers]\nthis line has no equals sign\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param(Made("odd", NO_ENTRIES), r"metadata of .*Made.* cannot be read", id="metadata"),
        pytest.param(
            Made("odd", group("it = made_up_formats:odd")),
            "plugin odd 1 cannot be loaded: PluginValidationError",
            id="a hook with other parameters",
        ),
    ],
)
def test_what_cannot_be_loaded_warns_and_the_rest_load(module: ModuleType, wrong: Made, said: str) -> None:
    def chatparsers_detect(template: str, model: str) -> str:
        return model

    module.odd = SimpleNamespace(chatparsers_detect=chatparsers_detect)
    module.good = SimpleNamespace(chatparsers_detect=lambda template: template.upper())
    with pytest.warns(PluginWarning, match=said):
        plugins = loaded(wrong, Made("good", group("it = made_up_formats:good")))
    assert list(plugins.detect("a")) == [("good 1", "A")]


def test_every_hook_is_called_by_itself(module: ModuleType) -> None:
    def fails(template: str) -> str:
        raise ValueError("no idea")

    module.a = SimpleNamespace(chatparsers_detect=lambda template: "a")
    module.b = SimpleNamespace(chatparsers_detect=fails)
    module.c = SimpleNamespace(chatparsers_detect=lambda template: 3)
    module.d = SimpleNamespace(chatparsers_detect=lambda template: None)
    module.e = SimpleNamespace(chatparsers_detect=lambda: "e")
    plugins = loaded(*(Made(name, group(f"it = made_up_formats:{name}")) for name in "abcde"))
    with pytest.warns(PluginWarning) as caught:
        assert list(plugins.detect("")) == [("e 1", "e"), ("a 1", "a")]
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2
    assert "plugin c 1: chatparsers_detect: expected a name or None, found 3" in texts[0]
    assert "plugin b 1: chatparsers_detect failed: ValueError: no idea" in texts[1]


def test_the_marker_allows_another_name_for_a_function(module: ModuleType) -> None:
    @hookimpl(specname="chatparsers_register_formats")
    def mine() -> list[FormatRef]:
        return [FormatRef("mine", "made_up_formats:FORMAT")]

    module.mine = mine
    plugins = loaded(Made("marked", group("it = made_up_formats")))
    assert ("marked 1", FormatRef("mine", "made_up_formats:FORMAT")) in plugins.formats()


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "expected FormatRefs: KeyError: 'two'"), (10**9, "more than 1000 formats are not taken")],
    ids=["they fail halfway", "they have no end"],
)
def test_formats_are_kept_as_far_as_they_came(module: ModuleType, number: int, said: str) -> None:
    def chatparsers_register_formats() -> Iterator[FormatRef]:
        for _ in range(number):
            yield FormatRef("one", "made_up_formats:ONE")
        raise KeyError("two")

    module.chatparsers_register_formats = chatparsers_register_formats
    with pytest.warns(PluginWarning, match=said):
        plugins = loaded(Made("half", group("it = made_up_formats")))
    names = [ref.name for origin, ref in plugins.formats() if origin == "half 1"]
    assert names == ["one"] * min(number, 1000)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": 5}, "name: expected a text, found 5"),
        ({"name": " "}, "name: expected a text, found an empty one"),
        ({"target": None}, "target: expected a text, found None"),
        ({"title": b"t"}, "title: expected a text"),
        ({"aliases": "abc"}, "aliases: expected a tuple of texts, found 'abc'"),
        ({"aliases": None}, "aliases: expected a tuple of texts, found None"),
        ({"markers": (1,)}, r"markers: expected a tuple of texts, found \(1,\)"),
        ({"markers": ("",)}, "markers: expected texts that are not empty"),
        ({"models": "acme"}, "models: expected a tuple of texts, found 'acme'"),
        ({"models": ("acme-(2",)}, r"models: expected a regular expression, found 'acme-\(2'"),
        ({"models": (".*",)}, r"models: '\.\*' fits every name"),
        ({"models": ("Acme-2",)}, "models: 'Acme-2' fits no name, as names are compared in lower case"),
    ],
)
def test_a_reference_of_wrong_types_is_left_out(
    module: ModuleType, fields: dict[str, object], reason: str
) -> None:
    """Each of them made ``formats()`` or ``detect()`` raise for everybody."""
    made: dict[str, object] = {"name": "one", "target": "made_up_formats:ONE", **fields}
    module.chatparsers_register_formats = lambda: [
        FormatRef(**made),  # type: ignore[arg-type]  # what is tested
        FormatRef("two", "made_up_formats:TWO"),
    ]
    with pytest.warns(PluginWarning, match=f"plugin half 1: chatparsers_register_formats: .*{reason}"):
        plugins = loaded(Made("half", group("it = made_up_formats")))
    assert [ref.name for origin, ref in plugins.formats() if origin == "half 1"] == ["two"]


class Odd(BaseException):
    """It is neither an error nor an exit."""


@pytest.mark.parametrize("problem", [Odd("x"), SystemExit(3), GeneratorExit(), RecursionError("deep")])
def test_whatever_a_plugin_raises_stays_in_it(module: ModuleType, problem: BaseException) -> None:
    def raises(*_: object) -> None:
        raise problem

    module.hooks = SimpleNamespace(
        chatparsers_register_formats=lambda: raises(), chatparsers_detect=lambda template: raises()
    )
    module.good = SimpleNamespace(chatparsers_detect=lambda template: "good")
    kind = type(problem).__name__
    with pytest.warns(PluginWarning, match=f"plugin bad 1: chatparsers_register_formats failed: {kind}"):
        plugins = loaded(
            Made("good", group("it = made_up_formats:good")), Made("bad", group("it = made_up_formats:hooks"))
        )
    with pytest.warns(PluginWarning, match=f"plugin bad 1: chatparsers_detect failed: {kind}"):
        assert list(plugins.detect("")) == [("good 1", "good")]


def test_a_plugin_that_exits_at_import_warns_and_ctrl_c_is_passed_on_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Otherwise a plugin that raises it at import would end every call of every user."""
    for kind in ("SystemExit", "KeyboardInterrupt"):
        path = tmp_path / f"{kind.lower()}_formats.py"
        path.write_text(f"raise {kind}(3)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("chatparsers.plugins._interrupted", set())
    with pytest.warns(PluginWarning, match="plugin exiting 1 cannot be loaded: SystemExit: 3"):
        assert loaded(Made("exiting", group("it = systemexit_formats"))).names == ["chatparsers:builtin"]
    made = Made("interrupting", group("it = keyboardinterrupt_formats"))
    with pytest.raises(KeyboardInterrupt):
        loaded(made)
    with pytest.warns(PluginWarning, match="plugin interrupting 1 is left out: it was interrupted"):
        assert loaded(made).names == ["chatparsers:builtin"]


@pytest.mark.parametrize(
    "code", ["import sys; sys.exit(2)", "raise BaseException('no')", "def f(): f()\nf()"]
)
def test_a_format_that_exits_is_an_error_of_its_definition(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str
) -> None:
    """As its module is imported, or as it is built."""
    (tmp_path / "leaving_formats.py").write_text(code + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    said = "format 'gone' cannot be loaded from 'leaving_formats:F'"
    with pytest.raises(chatparsers.DefinitionError, match=said):
        FormatRef("gone", "leaving_formats:F").load()

    def build(p: object) -> Node:
        exec(code)
        raise AssertionError

    format = Format(name="leaving", title="t", url="https://example.org", build=build)
    with pytest.raises(chatparsers.DefinitionError, match="format 'leaving': build failed: "):
        format.bind().parse("x")


def test_a_plugin_that_names_no_format_for_a_template_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    module.chatparsers_detect = lambda template: "no such format"
    monkeypatch.setattr("chatparsers.plugins._loaded", loaded(Made("odd", group("it = made_up_formats"))))
    with pytest.warns(
        PluginWarning, match="plugin odd 1: chatparsers_detect: named a format that cannot be had"
    ):
        found = chatparsers.detect("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    assert found.name != "no such format"


@pytest.mark.parametrize(
    ("setting", "admitted"),
    [
        ("", "abc"),
        ("  ", "abc"),
        ("a", "a"),
        ("a, c", "ac"),
        ("-a", "bc"),
        ("a,-a", ""),
        ("a none", ""),
        ("0", ""),
    ],
)
def test_selection(setting: str, admitted: str) -> None:
    selection = Selection.read(setting)
    assert [name for name in "abc" if selection.admits(name, "formats")] == list(admitted)
