"""Many templates: gathers them, and writes tables/templates.md of what ``check --templates`` says of them.

python docs/tables/_templates.py gather FOLDER|WHEEL… > histories.json
chatparsers check --templates histories.json --as json > rows.json
python docs/tables/_templates.py page rows.json
"""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from jinja2 import TemplateSyntaxError

from chatparsers.templates.jinja.environment import environment

PAGE = Path(__file__).with_name("templates.md")
_INTRO = """# Many templates

What `chatparsers check --templates` says of {count} different chat templates, under {models} names: those of the
packages {sources}, of llama.cpp's tree, of GGUF files and of model repositories. {fine} are fine: each message that
the template renders comes back, and each prompt is that of transformers {version}.
[check.md](../check.md#histories-of-templates) has the command; `docs/tables/_templates.py` gathers templates and
writes this page.

A score below 1 says why in `chatparsers detect`. Most often the template renders no calls (0.5): then markers and
content alone tell the format. What is not read back is named below. gpt-oss writes a text beside a call as a thought,
so it comes back as one. Guards, rerankers and reward models write an answer into a question. `qwen3` at 0.9 is a prompt
that tells one form of calls while the template writes old calls in another: the model follows the prompt."""


_FOLDERS = {"llama.cpp", "models5", "templates", "templates-gguf", "templates-new"}


def gathered(sources: Iterable[Path]) -> dict[str, list[dict[str, str]]]:
    """The templates of folders and wheels by model, each text once: files ``.jinja``, and what JSON and Python say."""
    found: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    seen: set[str] = set()
    for source in sources:
        version = source.name.partition("-")[0] if source.is_file() else source.name
        for model, text in _texts(source):
            if text not in seen:
                seen.add(text)
                found[model].append({"version": version, "template": text})
    return dict(sorted(found.items()))


def _texts(source: Path) -> Iterator[tuple[str, str]]:
    if source.is_dir():
        for path in sorted(source.rglob("*.jinja")):
            yield path.stem, path.read_text(encoding="utf-8")
        return
    with ZipFile(source) as wheel:
        for name in wheel.namelist():
            path = Path(name)
            if path.suffix in (".jinja", ".json", ".py"):
                text = wheel.read(name).decode("utf-8", "replace")
                yield from ((model, one) for model, one in _strings(path, text) if _is_template(one))


def _is_template(text: str) -> bool:
    return "messages" in text and "{%" in text and "endfor" in text


def _strings(path: Path, text: str) -> Iterator[tuple[str, str]]:
    if path.suffix == ".jinja":
        yield path.stem, text
    elif not _is_template(text):
        return
    elif path.suffix == ".json":
        yield from _of_json(json.loads(text), path.stem)
    else:
        texts = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        for number, one in enumerate(value for value in texts if isinstance(value, str)):
            with suppress(TemplateSyntaxError):  # a part of a template
                environment().parse(one)
                yield f"{path.stem}-{number}", one


def _of_json(value: object, model: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield model, value
    elif isinstance(value, list):
        for one in value:
            yield from _of_json(one, model)
    elif isinstance(value, Mapping):
        name = value.get("model_name")
        for one in value.values():
            yield from _of_json(one, name if isinstance(name, str) else model)


def _row(row: dict[str, Any]) -> str:
    why = [row["error"]] if row["error"] else []
    why += [f"not read: {', '.join(row['lost'])}"] if row["lost"] else []
    why += [f"{row['differ']} of 4 prompts are not those of transformers"] if row["differ"] else []
    why += [f"not proved: {', '.join(dict.fromkeys(row['limits']))}"] if row["limits"] else []
    name = row["model"].replace("|", "\\|")
    return f"| {name} | {row['format'] or 'none'} | {row['score']:.1f} | {'; '.join(why).replace('|', chr(92) + '|')} |"


def page(rows: list[dict[str, Any]], version: str) -> str:
    """The page of these rows."""
    by: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by[row["format"] or "none"].append(row)
    fine = [row for row in rows if not (row["error"] or row["lost"] or row["differ"])]
    models = len({row["model"] for row in rows})
    packages = {row["version"] for row in rows} - _FOLDERS
    sources = ", ".join(f"`{name}`" for name in sorted(packages))
    lines = [
        _INTRO.format(count=len(rows), models=models, sources=sources, fine=len(fine), version=version),
        "## By format",
        "| Format | Templates | Score 1 | Below | Such as |\n|---|---|---|---|---|",
    ]
    for name, found in sorted(by.items(), key=lambda item: -len(item[1])):
        whole = sum(row["score"] == 1 for row in found)
        such = ", ".join(sorted({row["model"] for row in found})[:2])
        lines[-1] += f"\n| {name} | {len(found)} | {whole} | {len(found) - whole} | {such} |"
    lines.append("## What is not whole")
    lines.append("| Template | Format | Score | Why |\n|---|---|---|---|")
    wrong = [row for row in rows if row not in fine or row["limits"]]
    for row in sorted(wrong, key=lambda row: str(row["model"]).lower()):
        lines[-1] += "\n" + _row(row)
    return "\n\n".join(lines) + "\n"


def main() -> int:
    command, *rest = sys.argv[1:]
    if command == "gather":
        json.dump(gathered(map(Path, rest)), sys.stdout, ensure_ascii=False, indent=0)
    else:
        rows = json.loads(Path(rest[0]).read_text(encoding="utf-8"))
        PAGE.write_text(page(rows, rest[1] if len(rest) > 1 else "5"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
