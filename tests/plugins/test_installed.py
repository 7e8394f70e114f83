"""Third-party distributions, really built with pip, seen from a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest

import chatparsers

HERE = Path(__file__).parent
ROOT = Path(chatparsers.__file__).parents[1]

TEMPLATE = """\
{%- for tool in tools or [] %}<tool>{{ tool | tojson }}</tool>{% endfor -%}
{%- for message in messages %}<turn {{ message.role }}>{{ message.content or '' }}
{%- for call in message.tool_calls or [] -%}
[acme:{{ call.function.name }}]
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson -}}
[/acme]
{%- endfor %}</turn>{% endfor %}
{%- if add_generation_prompt %}<turn assistant>{% endif %}"""


class Site:
    """A directory for each distribution. A test puts those that it needs on the path of a process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def install(self, *names: str) -> None:
        """With one pip for all: it makes wheels, and a wheel of Python alone is installed when it is unpacked."""
        wheels = self.directory / "wheels"
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-index"]
        pip += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
        done = subprocess.run([*pip, *(str(HERE / name) for name in names)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for name in names:
            (wheel,) = wheels.glob(f"{name.replace('-', '_')}-*.whl")
            with ZipFile(wheel) as archive:
                archive.extractall(self.directory / name)

    def run(self, code: str, *names: str, plugins: str | None = None) -> Any:
        """Runs ``code`` with these distributions installed. Returns its ``result`` and the texts of its warnings."""
        script = (
            "import json, warnings, chatparsers\n"
            "with warnings.catch_warnings(record=True) as caught:\n"
            "    warnings.simplefilter('always')\n"
            + "".join(f"    {line}\n" for line in code.splitlines())
            + "warned = [str(w.message) for w in caught]\n"
            "print(json.dumps({'result': result, 'warned': warned}))\n"
        )
        env = {name: value for name, value in os.environ.items() if name != "CHATPARSERS_PLUGINS"}
        env["PYTHONPATH"] = os.pathsep.join([*(str(self.directory / name) for name in names), str(ROOT)])
        if plugins is not None:
            env["CHATPARSERS_PLUGINS"] = plugins
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=env,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        return answer["result"], answer["warned"]


PLAIN = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
MODELS = {"Acme_1-7B": None, "Qwen3-Acme-2": None, "Acme 2": PLAIN}
"""Folders of models: their names, and their templates."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("site"))
    site.install("acme-formats", "rival-formats", "broken-formats")
    for name, template in MODELS.items():
        (site.directory / name).mkdir()
        config = {} if template is None else {"chat_template": template}
        (site.directory / name / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return site


class Case(NamedTuple):
    """What ``code`` leaves in ``result`` where some distributions are installed, and words of each warning."""

    installed: str
    code: str
    result: Any
    warned: tuple[tuple[str, ...], ...] = ()
    plugins: str | None = None


LIST = "result = [(f.name, f.origin) for f in chatparsers.list_formats() if f.origin != 'chatparsers']"
ORIGINS = "result = sorted({f.origin for f in chatparsers.list_formats()} - {'chatparsers'})"
TITLES = "result = [chatparsers.get_format(n).title for n in ('acme-brackets', 'acme', 'Acme_Brackets')]"
URL = "result = {f.name: f for f in chatparsers.list_formats()}['acme-brackets'].load().url"
LOADED = """\
chats = [chatparsers.load(name) for name in ('Acme_1-7B', 'Acme 2', 'Qwen3-Acme-2')]
result = [(chat.format.name, chat.builtin) for chat in chats]"""
REPLACED = """\
mine = next(f for f in chatparsers.list_formats() if f.origin == 'acme-formats 1.0')
chatparsers.register(mine.load(), replace=True)
result = [chatparsers.get_format('acme-brackets').title]
result += [(f.name, f.origin) for f in chatparsers.list_formats() if f.name == 'acme-brackets']"""
UNTOUCHED = """\
import sys
result = [chatparsers.get_format('hermes-2-pro').title == 'Rival']
result += sorted({'pluggy', 'rival_formats', 'broken_formats', 'importlib.metadata'} & set(sys.modules))"""
IMPORTED = """\
import sys
from chatparsers.plugins import plugins
chatparsers.list_formats()
own = [ref.name for origin, ref in plugins().formats() if origin == 'chatparsers']
result = ['hermes-2-pro' in own, *sorted({'acme_formats', 'broken_formats'} & set(sys.modules))]"""


def raised(name: str) -> str:
    """The kind of the error for a format's name; its text is told as a warning's."""
    return (
        f"try: chatparsers.get_format({name!r})\n"
        "except chatparsers.ChatParsersError as e: result, _ = type(e).__name__, warnings.warn(str(e))"
    )


def detected(template: str) -> str:
    return f"result = chatparsers.detect({template!r}).name"


STYLE = "{# acme house style #}{% for message in messages %}{{ message.content }}{% endfor %}"
ACME = [["acme-brackets", "acme-formats 1.0"], ["acme-typo", "acme-formats 1.0"]]
RIVAL = [["acme-brackets", "rival-formats 2.1"], ["rival-plain", "rival-formats 2.1"]]
BOTH = "acme-formats rival-formats"
BROKEN = (
    ("broken-formats 0.3", "RuntimeError: the engine room is flooded"),
    ("broken-formats 0.3", "expected a FormatRef, found 'not a reference'"),
    (
        "broken-formats 0.3",
        "no hook 'chatparsers_register_format': did you mean chatparsers_register_formats",
    ),
)
DETECTS = (("chatparsers_detect failed: ValueError: no idea",),)
CASES = {
    "it is listed with its origin": Case("acme-formats", LIST, ACME),
    "it has its name and aliases": Case("acme-formats", TITLES, ["Acme"] * 3),
    "it loads": Case("acme-formats", URL, "https://acme.example/format"),
}
RARE = {
    # With a template that shows no calls and without one. Built-in formats come first.
    "models by the name of their folder": Case(
        "acme-formats",
        LOADED,
        [["acme-brackets", "chatml"], ["acme-brackets", None], ["qwen3", "qwen3"]],
    ),
    "these models without it": Case(
        "", LOADED, [["content-only", "chatml"], ["content-only", None], ["qwen3", "qwen3"]]
    ),
    "a reference to nothing names its origin": Case(
        "acme-formats",
        raised("acme-typo"),
        "DefinitionError",
        (("acme-formats 1.0", "acme_formats:FROMAT"),),
    ),
    "a misspelt name": Case(
        "acme-formats", raised("acme-bracket"), "UnknownFormat", (("did you mean acme-brackets",),)
    ),
    "two with one name": Case(
        BOTH,
        raised("acme-brackets"),
        "AmbiguousFormat",
        (("acme-formats 1.0", "rival-formats 2.1", "CHATPARSERS_PLUGINS"),),
    ),
    "a broken one warns by name and the rest load": Case("broken-formats acme-formats", LIST, ACME, BROKEN),
    "a built-in name neither loads nor meets them": Case("rival-formats broken-formats", UNTOUCHED, [False]),
    "two with one entry point both load": Case(BOTH, LIST, [ACME[0], RIVAL[0], ACME[1], RIVAL[1]]),
    "the formats of the second": Case(BOTH, "result = chatparsers.get_format('rival-plain').title", "Rival"),
    "registering with replace settles a clash": Case(
        BOTH, REPLACED, ["Acme", ["acme-brackets", "register()"]]
    ),
    # `test_selection` has all settings.
    "none is allowed": Case(BOTH, LIST, [], plugins="none"),
    "a distribution is allowed": Case(BOTH, ORIGINS, ["acme-formats 1.0"], plugins="Acme_Formats"),
    "an entry point is allowed, a distribution denied": Case(
        BOTH, ORIGINS, ["acme-formats 1.0"], plugins="formats,-rival-formats"
    ),
    # The built-in formats come through the same hook, and cannot be denied.
    "a denied one is not imported": Case(
        "broken-formats acme-formats", IMPORTED, [True, "acme_formats"], plugins="-broken-formats"
    ),
    "none is imported": Case("broken-formats acme-formats", IMPORTED, [True], plugins="none"),
    "an absent one is warned of": Case(
        "acme-formats",
        LIST,
        [],
        (("allows 'acme-format', which is not installed: did you mean acme-formats",),),
        plugins="acme-format",
    ),
    "a template": Case("acme-formats", detected(TEMPLATE), "acme-brackets"),
    "the same template without it": Case("", detected(TEMPLATE), "auto:tagged-json"),
    "a template that it answers for by a hook": Case("acme-formats", detected(STYLE), "acme-brackets"),
    "the same beside a broken hook": Case(
        "acme-formats broken-formats", detected(STYLE), "acme-brackets", BROKEN + DETECTS
    ),
}


@pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.nightly, id=name) for name in RARE)]
)
def test_distributions_that_are_installed(name: str, site: Site) -> None:
    case = {**CASES, **RARE}[name]
    result, warned = site.run(case.code, *case.installed.split(), plugins=case.plugins)
    assert result == case.result, warned
    found = [[text for text in warned if all(word in text for word in words)] for words in case.warned]
    assert [len(texts) for texts in found] == [1] * len(warned), warned
