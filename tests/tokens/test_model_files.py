from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from chatparsers.errors import LoadError
from chatparsers.tokens import ModelFiles, SpecialTokens, read_model, read_tokenizer


def write(folder: Path, **files: Any) -> Path:
    """Writes files by their stem, where ``__`` is a slash. A text gets the suffix ``.jinja``, another value is JSON;
    bytes are the text of one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        path = folder / (name.replace("__", "/") + (".jinja" if isinstance(value, str) else ".json"))
        path.parent.mkdir(exist_ok=True)
        if not isinstance(value, bytes):
            value = (value if isinstance(value, str) else json.dumps(value)).encode()
        path.write_bytes(value)
    return folder


def test_a_whole_folder(tmp_path: Path, byte_level: Tokenizer) -> None:
    folder = write(
        tmp_path / "Qwen9-1B",
        tokenizer_config={
            "bos_token": None,
            "eos_token": {"content": "<|im_end|>", "lstrip": False},
            "pad_token": "<|endoftext|>",
            "additional_special_tokens": ["<|im_start|>", {"content": "<think>"}],
            "add_bos_token": False,
            "image_token_id": 7,
            "chat_template": "old",
        },
        special_tokens_map={"eos_token": "<|endoftext|>", "unk_token": "<unk>"},
        generation_config={"eos_token_id": [9, 4], "pad_token_id": 4},
        config={"model_type": "qwen9", "architectures": ["Qwen9ForCausalLM"], "eos_token_id": 3},
        chat_template="{{ new }}",
        additional_chat_templates__tool_use="{{ tools }}",
    )
    byte_level.save(str(folder / "tokenizer.json"))
    model = read_model(folder)
    assert model.source == folder
    assert model.templates == {"default": "{{ new }}", "tool_use": "{{ tools }}"}
    assert (model.bos_token, model.eos_token) == (None, "<|im_end|>")
    assert model.eos_ids == (9, 4)
    assert model.special_tokens == {
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": "<unk>",
        "additional_special_tokens": ["<|im_start|>", "<think>"],
    }
    assert model.special_ids == {"pad_token_id": 4}
    assert SpecialTokens.from_tokenizer(byte_level, model.special_config).eos_ids >= {4, 9}
    assert model.names == ("Qwen9-1B", "qwen9", "Qwen9ForCausalLM")
    assert isinstance(model.tokenizer, Tokenizer)
    assert model.tokenizer is model.tokenizer
    assert model.tokenizer.get_vocab() == byte_level.get_vocab()


@pytest.mark.parametrize(
    "name", ["tokenizer_config.json", "tokenizer.json", "chat_template.json", "chat_template.jinja"]
)
def test_one_file_of_a_folder_brings_the_others(tmp_path: Path, byte_level: Tokenizer, name: str) -> None:
    folder = write(
        tmp_path,
        tokenizer_config={"bos_token": "<s>"},
        chat_template="jinja",
        generation_config={"eos_token_id": 2},
    )
    write(folder, chat_template={"chat_template": "json"})
    byte_level.save(str(folder / "tokenizer.json"))
    model = read_model(str(folder / name))
    assert model.source == folder / name
    assert (model.bos_token, model.eos_ids, model.templates) == ("<s>", (2,), {"default": "jinja"})
    assert model.tokenizer is not None


CONFIG, JSON = {"tokenizer_config": {"chat_template": "config"}}, {"chat_template": {"chat_template": "json"}}
NAMED = {"default": "one", "tool_use": "two"}
# The files of a folder, by their stems as `write` takes them, and what is read of them.
READ: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "a template in the config": ([CONFIG], {"templates": {"default": "config"}}),
    "one in JSON before it": ([CONFIG, JSON], {"templates": {"default": "json"}}),
    "one in Jinja before both": (
        [CONFIG, JSON, {"chat_template": "jinja"}],
        {"templates": {"default": "jinja"}},
    ),
    "named templates in a list": (
        [{"tokenizer_config": {"chat_template": [{"name": n, "template": t} for n, t in NAMED.items()]}}],
        {"templates": NAMED},
    ),
    "named templates in an object": ([{"tokenizer_config": {"chat_template": NAMED}}], {"templates": NAMED}),
    "ids in the config": ([{"config": {"eos_token_id": 3}}], {"eos_ids": (3,)}),
    "ids in the text's config": (
        [{"config": {"text_config": {"eos_token_id": [1, 106], "bos_token_id": 2}}}],
        {"eos_ids": (1, 106), "special_ids": {"bos_token_id": 2}},
    ),
    "minus one is no id": (
        [{"generation_config": {"eos_token_id": 5, "pad_token_id": -1}}],
        {"eos_ids": (5,)},
    ),
    "a token by its text has no id yet": (
        [{"tokenizer_config": {"eos_token": "</s>"}}],
        {"eos_token": "</s>", "special_tokens": {"eos_token": "</s>"}},
    ),
    "a token without a content is none": ([{"tokenizer_config": {"bos_token": {"text": "<s>"}}}], {}),
    "a byte order mark": (
        [{"tokenizer_config": '\ufeff{"bos_token": "<s>"}'.encode()}],
        {"bos_token": "<s>", "special_tokens": {"bos_token": "<s>"}},
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_is_read_of_a_folder(case: str, tmp_path: Path) -> None:
    """And nothing else: no template, no id, no token, no tokenizer that no file has."""
    written, expected = READ[case]
    for files in written:
        write(tmp_path, **files)
    model = read_model(tmp_path)
    nothing = {"templates": {}, "eos_ids": (), "special_ids": {}, "eos_token": None, "bos_token": None}
    found = {key: getattr(model, key) for key in (*nothing, "special_tokens", "tokenizer")}
    assert found == {**nothing, "special_tokens": {}, "tokenizer": None, **expected}


def test_a_jinja_file_stands_alone(tmp_path: Path) -> None:
    write(tmp_path, tokenizer_config={"bos_token": "<s>"})
    file = tmp_path / "Qwen3.jinja"
    file.write_text("{{ x }}\n é", encoding="utf-8")
    assert read_model(file) == ModelFiles(file, {"default": "{{ x }}\n é"}, names=("Qwen3",))


def test_a_tokenizer_by_any_path(tmp_path: Path, byte_level: Tokenizer) -> None:
    named = tmp_path / "my-tokenizer.json"
    byte_level.save(str(named))
    byte_level.save(str(tmp_path / "tokenizer.json"))
    for path in (named, tmp_path, tmp_path / "tokenizer.json"):
        assert read_tokenizer(path).get_vocab() == byte_level.get_vocab()


TOKENIZER_CONFIG = "tokenizer_config.json"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            TOKENIZER_CONFIG,
            "{oops",
            r"tokenizer_config\.json: expected JSON: .*line 1 column 2.*download it again",
        ),
        (TOKENIZER_CONFIG, "[]", r"tokenizer_config\.json: expected a JSON object, found list"),
        (
            TOKENIZER_CONFIG,
            '{"chat_template": 3}',
            r'field "chat_template": expected a template text or a list',
        ),
        (
            TOKENIZER_CONFIG,
            '{"chat_template": ["x"]}',
            r'field "chat_template\[0\]": expected an object .* str',
        ),
        (
            TOKENIZER_CONFIG,
            '{"chat_template": [{"name": "a"}]}',
            r'field "chat_template\[0\]\.template": expected a text, found nothing',
        ),
        (TOKENIZER_CONFIG, '{"eos_token": 2}', r'field "eos_token": expected a text.* found int 2; correct'),
        (TOKENIZER_CONFIG, '{"extra_special_tokens": 2}', r'field "extra_special_tokens": expected a list'),
        ("special_tokens_map.json", '{"pad_token": []}', r'special_tokens_map\.json: field "pad_token"'),
        (
            "generation_config.json",
            '{"eos_token_id": "</s>"}',
            r'generation_config\.json: field "eos_token_id"',
        ),
        (
            "generation_config.json",
            '{"eos_token_id": [1, true]}',
            r'field "eos_token_id": expected a token id',
        ),
        ("config.json", '{"eos_token_id": 1.5}', r'config\.json: field "eos_token_id".*found float 1\.5'),
        ("chat_template.json", "{}", r'chat_template\.json: field "chat_template" is missing'),
        ("chat_template.jinja", b"ab\xff", r"chat_template\.jinja: not UTF-8 at byte 2; save it as UTF-8"),
        *(
            pytest.param(TOKENIZER_CONFIG, content, rf"tokenizer_config\.json: .*({reason})", id=what)
            for what, content, reason in (
                ("deep lists", "[" * 100_000, "not JSON|cannot be read"),
                ("deep objects", '{"a":' * 100_000, "not JSON|cannot be read"),
                ("digits", '{"a": 1, "b": ' + "9" * 5_000 + "}", "cannot be read"),
                ("a long file", " " * 8_000_001, "expected at most 8,000,000 bytes, found 8,000,001"),
                ("a deep template", '{"chat_template": ' + "[" * 300 + "]" * 300 + "}", "chat_template"),
            )
        ),
        *(
            (name, None, rf"{name}: expected a file, found a folder")
            for name in ("generation_config.json", "config.json", "special_tokens_map.json")
        ),
        ("notes.txt", "", r"holds no model files; expected at least one of tokenizer_config\.json"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: str | bytes | None, message: str) -> None:
    """Also those of strangers; and a folder, beside a template, where a file belongs (None)."""
    if content is None:
        write(tmp_path, chat_template="{{ messages[0].content }}")
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(LoadError, match=message):
        read_model(tmp_path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", r"nowhere: no such file; expected a model folder"),
        ("", r"expected a model folder.*, found an empty text"),
        ("model.safetensors", r"model\.safetensors: not a model file by its name; expected a folder"),
    ],
)
def test_a_path_that_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.safetensors").write_bytes(b"")
    with pytest.raises(LoadError, match=message):
        read_model(path)


def test_a_tokenizer_that_is_missing_or_broken_is_named_when_it_is_used(tmp_path: Path) -> None:
    write(tmp_path, tokenizer_config={"chat_template": "x"})
    with pytest.raises(LoadError, match=r"no tokenizer there; expected a tokenizer\.json"):
        read_tokenizer(tmp_path)
    with pytest.raises(LoadError, match=r"other\.json: no such file; expected a tokenizer\.json"):
        read_tokenizer(tmp_path / "other.json")
    model = read_model(write(tmp_path, tokenizer={"version": "1.0"}))
    assert model.templates == {"default": "x"}
    said = r"tokenizer\.json: not a tokenizer that tokenizers can read: .*download"
    with pytest.raises(LoadError, match=said):
        model.tokenizer  # noqa: B018 - the access is what is tested
    with pytest.raises(LoadError, match=said):
        read_tokenizer(tmp_path)


def test_without_the_tokenizers_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, tokenizer={}, tokenizer_config={})
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert read_model(tmp_path).tokenizer is None
    with pytest.raises(LoadError, match=r": reading it needs tokenizers: pip install tokenizers"):
        read_tokenizer(tmp_path)


def test_reading_a_model_imports_no_tokenizers(tmp_path: Path) -> None:
    write(tmp_path, tokenizer={}, tokenizer_config={"chat_template": "x"})
    script = (
        "import sys, chatparsers.tokens as t\n"
        "t.Detokenizer, t.SpecialTokens, t.Vocabulary\n"
        "assert t.read_model(sys.argv[1]).templates\n"
        "assert not {'tokenizers', 'gguf', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
