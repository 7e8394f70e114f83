"""Third-party distributions, really built with pip, seen from a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("site"))
    site.install("acme-formats", "rival-formats", "broken-formats")
    return site


LIST = "result = [(f.name, f.origin) for f in chatparsers.list_formats() if f.origin != 'chatparsers']"
ACME = [["acme-brackets", "acme-formats 1.0"], ["acme-typo", "acme-formats 1.0"]]


def failure(call: str) -> str:
    return f"try: {call}\nexcept chatparsers.ChatParsersError as e: result = [type(e).__name__, str(e)]"


def test_a_format_of_a_plugin_is_found_and_listed_with_its_origin(site: Site) -> None:
    assert site.run(LIST, "acme-formats") == (ACME, [])
    code = "result = [chatparsers.get_format(n).title for n in ('acme-brackets', 'acme', 'Acme_Brackets')]"
    assert site.run(code, "acme-formats") == (["Acme"] * 3, [])
    code = (
        "infos = {f.name: f for f in chatparsers.list_formats()}\nresult = infos['acme-brackets'].load().url"
    )
    assert site.run(code, "acme-formats")[0] == "https://acme.example/format"


PLAIN = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"


@pytest.mark.nightly
def test_a_plugin_names_its_models(site: Site) -> None:
    """By the name of the folder, with a template that shows no calls and without one. Built-in formats come first."""
    for name in ("Acme_1-7B", "Qwen3-Acme-2"):
        (site.directory / name).mkdir()
        (site.directory / name / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    (site.directory / "Acme 2").mkdir()
    config = json.dumps({"chat_template": PLAIN})
    (site.directory / "Acme 2" / "tokenizer_config.json").write_text(config, encoding="utf-8")
    code = (
        "chats = [chatparsers.load(name) for name in ('Acme_1-7B', 'Acme 2', 'Qwen3-Acme-2')]\n"
        "result = [(chat.format.name, chat.builtin) for chat in chats]"
    )
    assert site.run(code, "acme-formats") == (
        [["acme-brackets", "chatml"], ["acme-brackets", None], ["qwen3", "qwen3"]],
        [],
    )
    assert site.run(code)[0][0] == ["content-only", "chatml"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "installed", "kind", "words"),
    [
        pytest.param(
            "acme-typo",
            ["acme-formats"],
            "DefinitionError",
            ["acme-formats 1.0", "acme_formats:FROMAT"],
            id="a reference to nothing names its origin",
        ),
        pytest.param(
            "acme-bracket",
            ["acme-formats"],
            "UnknownFormat",
            ["did you mean acme-brackets"],
            id="a misspelt name",
        ),
        pytest.param(
            "acme-brackets",
            ["acme-formats", "rival-formats"],
            "AmbiguousFormat",
            ["acme-formats 1.0", "rival-formats 2.1", "CHATPARSERS_PLUGINS"],
            id="two plugins with one name",
        ),
    ],
)
def test_a_format_that_cannot_be_had(
    site: Site, name: str, installed: list[str], kind: str, words: list[str]
) -> None:
    (found, text), _ = site.run(failure(f"chatparsers.get_format({name!r})"), *installed)
    assert found == kind and all(word in text for word in words), text


@pytest.mark.nightly
def test_a_broken_distribution_warns_by_name_and_the_rest_load(site: Site) -> None:
    result, warned = site.run(LIST, "broken-formats", "acme-formats")
    assert result == ACME
    assert len(warned) == 3
    assert all("broken-formats 0.3" in text for text in warned)
    text = "\n".join(warned)
    assert "RuntimeError: the engine room is flooded" in text
    assert "expected a FormatRef, found 'not a reference'" in text
    assert "no hook 'chatparsers_register_format': did you mean chatparsers_register_formats" in text


@pytest.mark.nightly
def test_a_built_in_name_neither_loads_nor_meets_plugins(site: Site) -> None:
    code = (
        "import sys\nformat = chatparsers.get_format('hermes-2-pro')\n"
        "loaded = {'pluggy', 'rival_formats', 'broken_formats', 'importlib.metadata'} & set(sys.modules)\n"
        "result = [format.title == 'Rival', sorted(loaded)]"
    )
    assert site.run(code, "rival-formats", "broken-formats") == ([False, []], [])


@pytest.mark.nightly
def test_distributions_with_one_entry_point_name_both_load(site: Site) -> None:
    both = ("acme-formats", "rival-formats")
    rival = "rival-formats 2.1"
    assert site.run(LIST, *both) == (
        [ACME[0], ["acme-brackets", rival], ACME[1], ["rival-plain", rival]],
        [],
    )
    assert site.run("result = chatparsers.get_format('rival-plain').title", *both)[0] == "Rival"
    code = (  # registering with replace settles a clash
        "mine = next(f for f in chatparsers.list_formats() if f.origin == 'acme-formats 1.0')\n"
        "chatparsers.register(mine.load(), replace=True)\n"
        "result = [chatparsers.get_format('acme-brackets').title,\n"
        "          [(f.name, f.origin) for f in chatparsers.list_formats() if f.name == 'acme-brackets']]"
    )
    assert site.run(code, *both)[0] == ["Acme", [["acme-brackets", "register()"]]]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("none", set()),
        ("Acme_Formats", {"acme-formats 1.0"}),
        ("formats,-rival-formats", {"acme-formats 1.0"}),
    ],
)
@pytest.mark.nightly
def test_the_environment_chooses_among_plugins(site: Site, setting: str, expected: set[str]) -> None:
    """By the names of distributions and entry points. `test_selection` has all settings."""
    result, warned = site.run(LIST, "acme-formats", "rival-formats", plugins=setting)
    assert {origin for _, origin in result} == expected
    assert warned == []


@pytest.mark.nightly
def test_a_denied_plugin_is_not_imported_and_an_absent_one_is_warned_of(site: Site) -> None:
    """The built-in formats come through the same hook, and cannot be denied."""
    code = "import sys\nfrom chatparsers.plugins import plugins\nchatparsers.list_formats()\n"
    code += "own = [ref.name for origin, ref in plugins().formats() if origin == 'chatparsers']\n"
    code += "result = ['hermes-2-pro' in own, *sorted({'acme_formats', 'broken_formats'} & set(sys.modules))]"
    both = ("broken-formats", "acme-formats")
    assert site.run(code, *both, plugins="-broken-formats") == ([True, "acme_formats"], [])
    assert site.run(code, *both, plugins="none") == ([True], [])
    result, (warned,) = site.run(LIST, "acme-formats", plugins="acme-format")
    assert result == []
    assert "allows 'acme-format', which is not installed: did you mean acme-formats" in warned


@pytest.mark.nightly
def test_detection_finds_a_plugins_format_asks_the_hooks_and_survives_a_broken_one(site: Site) -> None:
    code = f"result = chatparsers.detect({TEMPLATE!r}).name"
    assert site.run(code, "acme-formats")[0] == "acme-brackets" != site.run(code)[0]
    template = "{# acme house style #}{% for message in messages %}{{ message.content }}{% endfor %}"
    code = f"result = chatparsers.detect({template!r}).name"
    result, warned = site.run(code, "acme-formats", "broken-formats")
    assert result == "acme-brackets"
    assert any("chatparsers_detect failed: ValueError: no idea" in text for text in warned)
