"""``import chatparsers`` is lazy and quick. Its names do not depend on earlier imports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import chatparsers
from chatparsers import answers

ROOT = Path(chatparsers.__file__).parents[1]
HEAVY = {"jinja2", "pluggy", "tokenizers", "importlib.metadata", "rich", "gguf", "numpy"}


def fresh(code: str) -> Any:
    """Runs ``code`` in a new process, and returns its ``result``."""
    script = f"import json, sys, time\nbefore = set(sys.modules)\n{code}\nprint(json.dumps(result))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_step_loads_what_it_needs_alone() -> None:
    """The import itself; a built-in format, without plugins and other formats; and a stream, without grammars."""
    code = """
import chatparsers
def loaded():
    return sorted(set(sys.modules) - before)
result = [loaded()]
format = chatparsers.get_format('hermes-2-pro')
result.append(loaded())
stream = format.bind().stream()
stream.feed('Hello')
stream.finish()
assert stream.message.content == 'Hello'
result.append(loaded())"""
    steps = fresh(code)
    imported, looked_up, streamed = (
        {name for name in step if name.partition(".")[0] == "chatparsers"} for step in steps
    )
    assert not HEAVY & {*steps[-1]}
    assert imported == {"chatparsers", "chatparsers.compiled", "chatparsers.lazy"}
    own = {"_catalog", "_shapes", "hermes_2_pro"}
    prefix = "chatparsers.formats."
    assert {name.removeprefix(prefix) for name in looked_up if name.startswith(prefix)} == own
    assert not {name for name in streamed if name.startswith("chatparsers.grammar")}


def test_import_takes_at_most_50_ms() -> None:
    code = "start = time.process_time()\nimport chatparsers\nresult = time.process_time() - start"
    assert min(fresh(code) for _ in range(3)) <= 0.050


@pytest.mark.nightly
def test_a_known_template_needs_neither_the_analysis_nor_a_grammar() -> None:
    """What detection of a known template does not use is not imported, and no other format's tree is built."""
    template = ROOT / "tests" / "templates_own" / "qwen3.jinja"
    if not template.exists():
        pytest.skip("no templates: not a checkout")
    code = f"""
import chatparsers
from chatparsers.answers import check
checked = []
inner = check.check
from chatparsers.answers import features
features.check = lambda tree: (checked.append(tree), inner(tree))[1]
found = chatparsers.load({str(template)!r})
names = [found.detection.name, found.format.name]
result = [names, len(checked), sorted(set(sys.modules) - before)]"""
    names, checked, loaded = fresh(code)
    assert names == ["qwen3", "qwen3"]
    assert 1 <= checked <= 10, "the trees of formats whose markers are not in the template were built"
    packages = ("chatparsers.grammar", "chatparsers.interop", "chatparsers.detection.analysis", "tokenizers")
    assert not [name for name in loaded if name.startswith(packages)]


def test_texts_and_grammars_need_no_other_package() -> None:
    """Streams, all dialects of grammars and the list of formats work if the three packages cannot be imported.

    Each format is loaded; grammars are made of one for each value syntax and kind of call.
    """
    code = """
for name in ("jinja2", "pluggy", "tokenizers"):
    sys.modules[name] = None
import chatparsers
tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
result = {}
for info in chatparsers.list_formats():
    format, result[info.name] = info.load(), []
    if info.name in ("hermes-2-pro", "qwen3-coder", "lfm2", "gemma-4", "minimax-m3", "gpt-oss"):
        turn = format.bind(tools=tools)
        written = [turn.grammar(dialect) for dialect in ("gbnf", "lark", "structural_tag")]
        result[info.name] = [turn.parse("Hello").complete, *(bool(grammar and str(grammar)) for grammar in written)]
"""
    done = fresh(code)
    assert done["hermes-2-pro"] == done["gemma-4"] == [True, True, True, True]
    assert set(done) == {info.name for info in chatparsers.list_formats() if info.origin == "chatparsers"}


def test_without_tokenizers_the_first_use_of_ids_says_so(tmp_path: Path) -> None:
    """Some interpreters have no wheel of it. A chat reads text all the same."""
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    (tmp_path / "chat_template.jinja").write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        encoding="utf-8",
    )
    code = f"""
sys.modules["tokenizers"] = None
import chatparsers
folder = {str(tmp_path)!r}
chat = chatparsers.load(folder, format="hermes-2-pro")
messages = [{{"role": "user", "content": "Hi"}}]
turn = chat.prepare(messages)
result = [turn.prompt, turn.parse("Hello").content]
for use in (
    lambda: turn.stream().feed(1),
    lambda: turn.parse([1]),
    lambda: chat.rollout(messages),
    lambda: turn.guide(),
    lambda: chatparsers.load(folder, tokenizer=folder),
):
    try:
        use()
    except chatparsers.ChatParsersError as error:
        result.append(str(error))"""
    prompt, content, *wrong = fresh(code)
    assert (prompt, content) == ("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "Hello")
    assert len(wrong) == 5 and all(
        one.endswith("needs tokenizers: pip install tokenizers") for one in wrong
    ), wrong


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in (chatparsers, answers) for name in module.__all__]
)
def test_every_public_name_is_there_and_says_where_from(module: ModuleType, name: str) -> None:
    shown = getattr(module, name)
    if isinstance(shown, ModuleType):
        assert name == "verify" and callable(
            shown
        )  # a package that is its function, whoever imported it before
    elif name not in ("Event", "hookimpl"):  # a union, and pluggy's
        named = isinstance(shown, type) or (module is chatparsers and callable(shown))
        assert not named or shown.__module__ in {"chatparsers", module.__name__}
    if name in ("Message", "ToolCall", "Region", "Diagnostic", "Content", "CallEnd"):
        assert typing.get_type_hints(shown)
    if isinstance(shown, type) and name not in ("Builder", "Node"):
        assert shown.__repr__ is not object.__repr__, f"repr() of a {name} says nothing"


def test_dir_and_star_name_the_public_names_and_there_is_no_other() -> None:
    assert dir(chatparsers) == sorted(chatparsers.__all__)
    namespace: dict[str, object] = {}
    exec("from chatparsers import *", namespace)
    assert set(chatparsers.__all__) <= set(namespace)
    with pytest.raises(AttributeError, match="module 'chatparsers' has no attribute 'parse_everything'"):
        chatparsers.parse_everything  # noqa: B018  # the look-up is what is tested


@pytest.mark.nightly
def test_names_are_the_same_after_every_module_is_imported() -> None:
    code = """
import importlib, pkgutil
import chatparsers
skipped = ("__main__", "_xgrammar", "adapters", "data", "gateway", "testing", "verify")
names = [found.name for found in pkgutil.walk_packages(chatparsers.__path__, "chatparsers.")]
for name in names:
    if not any(part in skipped for part in name.split(".")):
        importlib.import_module(name)
kinds = {name: type(getattr(chatparsers, name)).__name__ for name in chatparsers.__all__}
result = [name for name, kind in kinds.items() if kind == "module"]
assert chatparsers.list_formats() and callable(chatparsers.detect) and callable(chatparsers.load)
from chatparsers.formats.hermes_2_pro import FORMAT
from chatparsers import list_formats
assert list_formats()[0].load() and FORMAT.name == "hermes-2-pro"
"""
    assert fresh(code) == []


def test_the_type_checker_sees_the_names_where_they_are_loaded_from() -> None:
    tree = ast.parse(Path(chatparsers.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    (block,) = [node for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING"]
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == chatparsers._HOME
    assert {*seen, "CORE", "__version__"} == set(chatparsers.__all__)


@pytest.mark.parametrize(
    ("kind", "maker"),
    [
        (chatparsers.Chat, "load()"),
        (chatparsers.Conversation, "Chat.conversation()"),
        (chatparsers.Stream, "Turn.stream()"),
        (chatparsers.Turn, "Format.bind()"),
    ],
)
def test_a_constructor_that_is_not_for_users_says_what_is(kind: type, maker: str) -> None:
    with pytest.raises(
        TypeError, match=rf"expected .*{re.escape(maker)}.* to make it, found a call of the class"
    ):
        kind()
