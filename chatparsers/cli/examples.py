"""Two examples of each command, which its ``--help`` shows."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, str]] = {
    "demo": ("chatparsers demo", "chatparsers demo qwen3-coder gpt-oss --speed 20"),
    "parse": (
        "chatparsers parse --format qwen3 --show answer.txt",
        "llama-cli … | chatparsers parse --template model/ --tools tools.json --openai",
    ),
    "explain": (
        "chatparsers explain answer.txt --model model/ --tools tools.json",
        "chatparsers explain answer.txt --model qwen3 --tools tools.json --prefix '<think>' --json",
    ),
    "batch": (
        "chatparsers batch parse outputs.jsonl --model qwen3 --out parsed/",
        "chatparsers batch encode chats.parquet --model model/ --max-length 4096 --out samples/",
    ),
    "grammar": (
        "chatparsers grammar --format qwen3 --tools tools.json --tool-choice required > calls.gbnf",
        "chatparsers grammar --template model/ --response-format schema.json --dialect lark",
    ),
    "render": (
        "chatparsers render --template model/ --messages messages.json --tools tools.json",
        "chatparsers render --template chat.jinja --messages messages.json --thinking off",
    ),
    "detect": ("chatparsers detect model/", "chatparsers detect --json chat_template.jinja"),
    "inspect": (
        "chatparsers inspect model.gguf",
        "chatparsers inspect model/ --messages messages.json --tools tools.json",
    ),
    "check": ("chatparsers check model/", "chatparsers check models/*/ --format-output junit --strict"),
    "report": (
        "chatparsers report model/ --output answer.txt --tools tools.json --out report.json",
        "chatparsers report model.gguf --ids ids.json",
    ),
    "formats": (
        "chatparsers formats qwen3 --diagram qwen3.svg",
        "chatparsers formats check mine.py chat_template.jinja",
    ),
    "export": (
        "chatparsers export model/ > chat_format.json",
        "chatparsers export qwen3 --vectors 100 -o qwen3.jsonl",
    ),
    "playground": ("chatparsers playground", "chatparsers playground --build site/"),
    "serve": (
        "chatparsers serve --gguf model.gguf",
        "chatparsers serve --upstream http://127.0.0.1:8080 --model model/ --port 9000",
    ),
    "rollouts": (
        "chatparsers rollouts runs/",
        "chatparsers rollouts runs/ --samples rows.jsonl --model model/",
    ),
    "verify": (
        "chatparsers verify http://127.0.0.1:8080 --model model/",
        "chatparsers verify http://127.0.0.1:8080 --model model/ --api all --html report.html",
    ),
}
