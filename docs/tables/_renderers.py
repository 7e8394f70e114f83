"""What other renderers than Jinja2 make of real templates: ``chatparsers/doctor/renderers.json`` and ``renderers.md``.

    python docs/tables/_renderers.py                      # writes the page from the data
    python docs/tables/_renderers.py --check              # fails if the page is not that of the data
    python docs/tables/_renderers.py --run FOLDER…        # renders the templates anew, and writes both

``--run`` needs the package minijinja, node with ``@huggingface/jinja`` in the current folder, and two variables:
``LLAMA_SERVER`` (the program) and ``LLAMA_MODEL`` (any small ``.gguf`` file, as only its template is replaced). The
yardstick is Jinja2 as transformers sets it up. Of llama.cpp it is the prompt that ``/apply-template`` of its server
gives: that server turns thinking on for some templates, so there the yardstick is Jinja2 with the wish or without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from _page import put

from chatparsers.doctor.otherwise import digest

HERE = Path(__file__).resolve().parent
PAGE = HERE / "renderers.md"
DATA = HERE.parents[1] / "chatparsers" / "doctor" / "renderers.json"
CONVERSATIONS: dict[str, dict[str, Any]] = json.loads((HERE / "conversations.json").read_text("utf-8"))
VARIABLES = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
BEFORE, _WITNESS = 8, 22
"""How many characters a witness has before the difference, and at most."""
_JAVASCRIPT = """
import fs from "node:fs";
import { createRequire } from "node:module";
const { Template } = createRequire(process.cwd() + "/")("@huggingface/jinja");
for (const line of fs.readFileSync(process.argv[2], "utf8").split("\\n")) {
  if (!line) continue;
  const { source, context } = JSON.parse(line);
  let held;
  try { held = { text: new Template(source).render(context) }; } catch (error) { held = { raises: String(error) }; }
  console.log(JSON.stringify(held));
}
"""

Rendered = dict[str, str]
"""``text``, or ``raises`` with the error's text."""

__all__ = ["BEFORE", "CONVERSATIONS", "DATA", "VARIABLES", "context", "main", "page", "reference"]


def context(name: str) -> dict[str, Any]:
    """The variables of a conversation, as a host gives them to a template."""
    shown = {key: value for key, value in CONVERSATIONS[name].items() if key in ("messages", "tools")}
    return {**VARIABLES, **json.loads(json.dumps(shown))}


@cache
def _compiled(source: str) -> Any:
    """The template in Jinja2 as transformers sets it up."""
    import jinja2
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags: ClassVar[set[str]] = {"generation"}

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def refuse(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


def reference(source: str, variables: Mapping[str, Any]) -> Rendered:
    """Jinja2 as transformers sets it up."""
    from jinja2 import TemplateError

    try:
        return {"text": _compiled(source).render(**variables)}
    except (TemplateError, TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:
        return {"raises": f"{type(error).__name__}: {error}"}


def _minijinja(source: str, variables: Mapping[str, Any]) -> Rendered:
    import minijinja  # type: ignore[import-not-found, unused-ignore]

    def refuse(message: str) -> None:
        raise RuntimeError(message)

    environment = minijinja.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.add_global("raise_exception", refuse)
    environment.add_global("strftime_now", lambda form: datetime.now().strftime(form))
    try:
        return {"text": environment.render_str(source, **variables)}
    except Exception as error:
        return {"raises": str(error).split("\n")[0]}


def _javascript(cases: list[tuple[str, dict[str, Any]]]) -> list[Rendered]:
    with tempfile.TemporaryDirectory() as folder:
        script, given = Path(folder, "render.mjs"), Path(folder, "cases.txt")
        script.write_text(_JAVASCRIPT, "utf-8")
        lines = (json.dumps({"source": source, "context": variables}) for source, variables in cases)
        given.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        done = subprocess.run(["node", script, given], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


@contextmanager
def _llama(source: str) -> Iterator[Callable[[Mapping[str, Any]], Rendered]]:
    """A server of llama.cpp with this template."""
    port = 18080
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", encoding="utf-8") as file:
        file.write(source)
        file.flush()
        program = os.environ["LLAMA_SERVER"]
        command = [
            program,
            "-m",
            os.environ["LLAMA_MODEL"],
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--jinja",
        ]
        command += ["--chat-template-file", file.name, "--no-warmup", "-c", "512", "-np", "1"]
        libraries = {**os.environ, "LD_LIBRARY_PATH": str(Path(program).parent)}
        server = subprocess.Popen(
            command, env=libraries, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

        def render(variables: Mapping[str, Any]) -> Rendered:
            body = {key: variables[key] for key in ("messages", "tools") if key in variables}
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/apply-template", json.dumps(body).encode()
            )
            try:
                with urllib.request.urlopen(request) as answer:
                    return {"text": json.load(answer)["prompt"]}
            except urllib.error.HTTPError as error:
                return {"raises": json.loads(error.read())["error"]["message"].replace("-", "").strip()}
            except urllib.error.URLError:
                return {"raises": "the server does not start with this template"}

        try:
            for _ in range(100):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
                    break
                except urllib.error.URLError:
                    if server.poll() is not None:
                        break
                    time.sleep(0.05)
            yield render
        finally:
            server.terminate()
            server.wait()


def _witness(expected: str, found: str) -> list[str]:
    """The two texts around their first difference."""
    at = next(
        (i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b),
        min(len(expected), len(found)),
    )
    begin = max(0, at - BEFORE)
    return [expected[begin : begin + _WITNESS], found[begin : begin + _WITNESS]]


def _judged(expected: Rendered, found: Rendered) -> list[str] | None:
    """None if both are the same; else the two texts around their difference, or what was raised."""
    if "raises" in expected:
        return None  # the template refuses it, or its host would
    if "raises" in found:
        return [" ".join(found["raises"].split())[:90]]
    one, other = (text["text"].removeprefix("<s>") for text in (expected, found))
    return None if one == other else _witness(one, other)


def _nearer(one: list[str] | None, other: list[str] | None, plain: Rendered) -> list[str] | None:
    """None if either yardstick is met; else the witness that is further on, so not that of the wish."""
    if one is None or other is None or len(other) == 1:
        return None if one is None or other is None else other
    text = plain.get("text", "")
    return one if text.find(one[0]) > text.find(other[0]) else other


def _rows(folders: list[Path]) -> dict[str, Any]:
    """The differences of each template."""
    sources = {
        path.stem: path.read_text("utf-8") for folder in folders for path in sorted(folder.glob("*.jinja"))
    }
    cases = [(source, context(name)) for source in sources.values() for name in CONVERSATIONS]
    from_javascript = iter(_javascript(cases))
    rows: dict[str, Any] = {}
    for template, source in sources.items():
        held: dict[str, dict[str, list[str]]] = {"llama.cpp": {}, "minijinja": {}, "@huggingface/jinja": {}}
        with _llama(source) as llama:
            for name, told in CONVERSATIONS.items():
                variables = context(name)
                plain = reference(source, context(name))
                thinking = reference(source, {**context(name), "enable_thinking": True})
                served = llama(variables)
                found = {
                    "llama.cpp": _nearer(_judged(plain, served), _judged(thinking, served), plain),
                    "minijinja": _judged(plain, _minijinja(source, context(name))),
                    "@huggingface/jinja": _judged(plain, next(from_javascript)),
                }
                for renderer, witness in found.items():
                    if witness is not None and told["beside"] not in held[renderer]:
                        held[renderer][name] = witness
        rows[template] = {"sha256": digest(source), **held}
        print(template, {renderer: list(kinds) for renderer, kinds in held.items()}, file=sys.stderr)
    return dict(sorted(rows.items(), key=lambda row: row[0].lower()))


def _cell(kinds: Mapping[str, list[str]]) -> str:
    raised = [name for name, witness in kinds.items() if len(witness) == 1]
    differ = [name for name, witness in kinds.items() if len(witness) == 2]
    parts = [*(["differs: " + ", ".join(differ)] if differ else [])]
    parts += ["raises: " + ", ".join(raised)] if raised else []
    return "; ".join(parts) or "equal"


def _code(text: str) -> str:
    shown = text.replace("\\", "\\\\").replace("\n", "\\n").replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


_HEAD = """\
# Templates in other renderers

A model was trained on what Jinja2 renders. Servers and pages that render with llama.cpp, minijinja or JavaScript may
show it something else. This table says where, for real templates: each was rendered with {count} conversations, and
compared letter by letter with Jinja2 as transformers sets it up. `chatparsers check` names the row of a template that
is in it ([renders-otherwise](findings.md#renders-otherwise)). chatparsers renders with Jinja2, and as it does.

Rendered on {date} with {renderers}. Of llama.cpp it is what `/apply-template` of its server gives. That server turns
thinking on for some templates (`enable_thinking`), and leaves out the first token, which it adds by id: neither is
counted here. A conversation that Jinja2 refuses is not counted either, nor one that adds something to another that
differs already. `python docs/tables/_renderers.py --run FOLDER` makes the table anew."""


def page(data: Mapping[str, Any]) -> str:
    """The page of the data."""
    renderers: dict[str, str] = data["renderers"]
    templates: dict[str, Any] = data["templates"]
    versions = ", ".join(f"{name} {version}" for name, version in renderers.items())
    lines = [
        *_HEAD.format(count=len(CONVERSATIONS), date=data["date"], renderers=versions).splitlines(),
        "",
        "| Conversation | What is in it | " + " | ".join(renderers) + " |",
        "|---|---|" + "---:|" * len(renderers),
    ]
    for name, told in CONVERSATIONS.items():
        counts = (sum(name in row[renderer] for row in templates.values()) for renderer in renderers)
        lines.append(f"| {name} | {told['say']} | " + " | ".join(map(str, counts)) + " |")
    lines += [
        "",
        f"The numbers count the templates, of {len(templates)}, that come out otherwise or raise an error.",
        "",
        "## A witness of each kind",
        "",
        "| Renderer | Conversation | Template | Jinja2 | It |",
        "|---|---|---|---|---|",
    ]
    for renderer in renderers:
        for name in CONVERSATIONS:
            for template, row in templates.items():
                witness = row[renderer].get(name, [])
                if len(witness) == 2:
                    lines.append(
                        f"| {renderer} | {name} | {template} | {_code(witness[0])} | {_code(witness[1])} |"
                    )
                    break
    lines += ["", "## The templates", "", "| Template | " + " | ".join(renderers) + " |"]
    lines.append("|---|" + "---|" * len(renderers))
    for template, row in templates.items():
        lines.append(f"| {template} | " + " | ".join(_cell(row[renderer]) for renderer in renderers) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Writes or checks the page, or makes the data anew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", nargs="+", type=Path, metavar="FOLDER")
    asked = parser.parse_args(argv)
    if asked.run:
        data = {
            "date": f"{datetime.now():%Y-%m-%d}",
            "renderers": json.loads(os.environ["RENDERERS"]),
            "templates": _rows(asked.run),
        }
        DATA.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return put(PAGE, page(json.loads(DATA.read_text("utf-8"))), asked.check)


if __name__ == "__main__":
    sys.exit(main())
