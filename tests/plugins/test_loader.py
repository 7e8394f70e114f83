"""The loader of plugins, on distributions made here."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import pytest

import chatparsers
from chatparsers.answers import Format, Node
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


class Odd(BaseException):
    """It is neither an error nor an exit."""


class Case(NamedTuple):
    """What distributions give whose entry points lead to ``attributes`` of a module.

    ``formats``: the plugins' own; ``detected``: the answers for the template ``a``; ``said``: each warning, in turn."""

    found: tuple[Made, ...]
    attributes: dict[str, object]
    formats: tuple[tuple[str, str], ...] = ()
    detected: tuple[tuple[str, str], ...] = ()
    said: tuple[str, ...] = ()


def each(*names: str) -> tuple[Made, ...]:
    """A distribution for each name, whose entry point leads to the attribute of that name."""
    return tuple(Made(name, group(f"it = made_up_formats:{name}")) for name in names)


def answers(answer: object) -> SimpleNamespace:
    """A plugin that answers so for every template; it raises what is an exception."""

    def chatparsers_detect(template: str) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return SimpleNamespace(chatparsers_detect=chatparsers_detect)


def registers(*formats: object) -> SimpleNamespace:
    """A plugin with these formats. What is an exception is raised where it comes."""

    def chatparsers_register_formats() -> Iterator[object]:
        for one in formats:
            if isinstance(one, BaseException):
                raise one
            yield one

    return SimpleNamespace(chatparsers_register_formats=chatparsers_register_formats)


def wrong(reason: str, **fields: object) -> Case:
    """A reference of wrong types. Each of them made ``formats()`` or ``detect()`` raise for everybody."""
    made: dict[str, object] = {"name": "one", "target": "made_up_formats:ONE", **fields}
    found = registers(FormatRef(**made), TWO)  # type: ignore[arg-type]  # what is tested
    said = f"plugin half 1: chatparsers_register_formats: .*{reason}"
    return Case(each("half"), {"half": found}, (("half 1", "two"),), said=(said,))


def raises(problem: BaseException) -> Case:
    """Both hooks raise it: it stays in the plugin."""

    def raising(*_: object) -> None:
        raise problem

    bad = SimpleNamespace(
        chatparsers_register_formats=lambda: raising(), chatparsers_detect=lambda template: raising()
    )
    said = [
        f"plugin bad 1: {hook} failed: {type(problem).__name__}"
        for hook in ("chatparsers_register_formats", "chatparsers_detect")
    ]
    attributes = {"good": answers("good"), "bad": bad}
    return Case(each("good", "bad"), attributes, detected=(("good 1", "good"),), said=(*said,))


@hookimpl(specname="chatparsers_register_formats")
def marked() -> list[FormatRef]:
    return [TWO]


ONE, TWO = FormatRef("one", "made_up_formats:ONE"), FormatRef("two", "made_up_formats:TWO")
GOOD = Made("good", group("it = made_up_formats:good"))
CASES = {
    "of two copies of a distribution the first counts": Case(
        (
            Made("Some_Formats", group("it = made_up_formats:first")),
            Made("some-formats", group("it = made_up_formats:second")),
        ),
        {"first": answers("first"), "second": answers("second")},
        detected=(("Some_Formats 1", "first"),),
    ),
    "metadata that cannot be read": Case(
        (Made("odd", "[chatparsers]\nthis line has no equals sign\n"), GOOD),
        {"good": answers("good")},
        detected=(("good 1", "good"),),
        said=("metadata of .*Made.* cannot be read",),
    ),
    "a hook with other parameters": Case(
        each("odd", "good"),
        {
            "odd": SimpleNamespace(chatparsers_detect=lambda template, model: model),
            "good": SimpleNamespace(chatparsers_detect=lambda template: template.upper()),
        },
        detected=(("good 1", "A"),),
        said=("plugin odd 1 cannot be loaded: PluginValidationError",),
    ),
    "every hook is called by itself, the last first": Case(
        each(*"abcde"),
        {
            "a": answers("a"),
            "b": answers(ValueError("no idea")),
            "c": answers(3),
            "d": answers(None),
            "e": SimpleNamespace(chatparsers_detect=lambda: "e"),
        },
        detected=(("e 1", "e"), ("a 1", "a")),
        said=(
            "plugin c 1: chatparsers_detect: expected a name or None, found 3",
            "plugin b 1: chatparsers_detect failed: ValueError: no idea",
        ),
    ),
    "the marker allows another name for a function": Case(
        (Made("marked", group("it = made_up_formats")),), {"mine": marked}, (("marked 1", "two"),)
    ),
    "formats that fail halfway are kept as far as they came": Case(
        each("half"),
        {"half": registers(ONE, KeyError("two"))},
        (("half 1", "one"),),
        said=("expected FormatRefs: KeyError: 'two'",),
    ),
    "formats that have no end are kept as far as they came": Case(
        each("half"),
        {"half": registers(*[ONE] * 1001, AssertionError("more were taken"))},
        (("half 1", "one"),) * 1000,
        said=("more than 1000 formats are not taken",),
    ),
    "a name that is a number": wrong("name: expected a text, found 5", name=5),
    "an empty name": wrong("name: expected a text, found an empty one", name=" "),
    "no target": wrong("target: expected a text, found None", target=None),
    "a title in bytes": wrong("title: expected a text", title=b"t"),
    "aliases in a text": wrong("aliases: expected a tuple of texts, found 'abc'", aliases="abc"),
    "no aliases": wrong("aliases: expected a tuple of texts, found None", aliases=None),
    "a marker that is a number": wrong(r"markers: expected a tuple of texts, found \(1,\)", markers=(1,)),
    "an empty marker": wrong("markers: expected texts that are not empty", markers=("",)),
    "models in a text": wrong("models: expected a tuple of texts, found 'acme'", models="acme"),
    "models of no pattern": wrong(
        r"models: expected a regular expression, found 'acme-\(2'", models=("acme-(2",)
    ),
    "models of every name": wrong(r"models: '\.\*' fits every name", models=(".*",)),
    "models in capitals": wrong(
        "models: 'Acme-2' fits no name, as names are compared in lower case", models=("Acme-2",)
    ),
    **{
        f"a plugin that raises {type(one).__name__}": raises(one)
        for one in (Odd("x"), SystemExit(3), GeneratorExit(), RecursionError("deep"))
    },
}


@pytest.mark.parametrize("name", CASES)
def test_what_plugins_give_and_what_is_warned_of(name: str, module: ModuleType) -> None:
    """What is wrong stays in its plugin and is said by its name; the rest load."""
    case = CASES[name]
    vars(module).update(case.attributes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plugins = loaded(*case.found)
        detected = tuple(plugins.detect("a"))
    formats = tuple((origin, ref.name) for origin, ref in plugins.formats() if origin != BUILTIN)
    assert (formats, detected) == (case.formats, case.detected)
    assert [one.category for one in caught] == [PluginWarning] * len(case.said)
    for one, said in zip(caught, case.said, strict=True):
        assert re.search(said, str(one.message)), str(one.message)


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
